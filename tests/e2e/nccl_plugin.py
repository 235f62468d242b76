#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""The NCCL plugin's records to results: ranks without GPUs (tests/programs/nccl_job.c) load the plugin
as NCCL does and are led through stories with known answers; files are read with other means than kymo's.

  nccl_plugin.py KYMO PLUGIN DIRECTORY-OF-PROGRAMS UNIT-TESTS-OF-OUTPUTS NCCL-WRITE [CHECK...]
"""
import glob
import json
import os
import re
import shutil
import signal
import sqlite3
import struct
import subprocess
import sys
import tempfile
import time

from harness import Failed, Scratch, Skipped, Tap, clean_environment, expect, run

KYMO, PLUGIN, PROGRAMS, DECODERS, WRITE = (os.path.abspath(path) for path in sys.argv[1:6])
JOB = os.path.join(PROGRAMS, "nccl_job")
sys.path.insert(0, DECODERS)
import perfetto_decode  # noqa: E402  pylint: disable=wrong-import-position,import-error

EIGHT_MIB = 2 << 20  # elements of float32
AROUND_NS = 2900  # of a kernel, outside of NCCL's stamps (NCCL_KERNEL_AROUND_NS)


class Rank:
    """One process of a job. Each told line is answered before the next one is."""

    def __init__(self, directory, api="v5", environment=None, command=None):
        self.directory = directory
        merged = clean_environment()
        merged.update({"KYMO_OUTPUT_PATH": directory, "KYMO_TIME_OUTPUT": "off", **(environment or {})})
        if environment and environment.get("KYMO_OUTPUT_PATH") == "":
            del merged["KYMO_OUTPUT_PATH"], merged["KYMO_TIME_OUTPUT"]
        self.process = subprocess.Popen((command or []) + [JOB, PLUGIN] + ([api] if api != "v5" else []),
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, env=merged, text=True, bufsize=1)

    def tell(self, *lines):
        answers = []
        for line in lines:
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
            while (answer := self.process.stdout.readline()) not in ("ok\n", ""):
                answers.append(answer.strip())
            if answer == "":
                raise Failed(f"'{line}' was not answered: {self.process.stderr.read()}")
        return answers

    def say(self, line):
        """What is not answered: it ends the process."""
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.end()

    def end(self):
        try:
            _, self.stderr = self.process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise Failed("a rank does not end") from None
        return self.process.returncode

def kymo(*arguments, **how):
    return run([KYMO, *arguments], **how)


def lines(directory, name, fmt):
    """Head and rows of a format of JSON lines, as `kymo report` writes it."""
    ended = kymo("report", "--format", fmt, directory)
    expect(ended.status == 0, ended.stderr)
    rows = [json.loads(line) for line in ended.stdout.decode().splitlines()]
    expect(rows and rows[0]["schema"] == f"kymo.nccl.{name}/1", f"first line {rows[:1]}")
    return rows[0], rows[1:]


def operations(directory):
    rows = lines(directory, "operations", "nccl-operations")[1]
    for row in rows:
        if row["timing"] == "shared" and "batched" not in row["marks"]:
            expect(row["duration_ns"] is None and row["stamped_ns"], row)
    return rows


def all_reduce(number, count=EIGHT_MIB, channels=4):
    return f"coll AllReduce {number} {count} ncclFloat32 {channels}"


def write_gpu_file(directory, pid, process_start, kernels):
    """A file of a GPU's records (kymo/gpu_records.h): the kernels of NCCL's [(thread, called, start, duration)]."""
    name = b"ncclDevKernel_AllReduce_Sum_f32_RING_LL\0"
    records = struct.pack("<HHI40s", 1, 48, 1, name) + struct.pack("<HHI10I", 3, 48, 1, 1, 0, 1, 1, 1, 1, 1, 1, 0, 0)
    for number, (thread, called, start, duration) in enumerate(kernels, 1):
        records += struct.pack("<HHI3Q2I", 6, 40, 0, called, 2000, number, thread, 0)
        records += struct.pack("<HHI4Q2I", 4, 48, 1, start, duration, number, 0, 0, 0)
    header = struct.pack("<8sHHIIIQQQQ", b"KYMOGPU", 1, 2, 4096, pid, 0, process_start,
                         time.clock_gettime_ns(time.CLOCK_BOOTTIME), time.time_ns(), len(records))
    with open(os.path.join(directory, f"spool/{pid}-0.gpu"), "wb") as stream:
        stream.write(header.ljust(4096, b"\0") + records)


def report(directory):
    ended = kymo("report", directory)
    expect(ended.status == 0, ended.stderr)
    return " ".join(ended.stdout.decode().split())


def needs(text, *parts):
    for part in parts:
        expect(part in text, f"'{part}' is not in: {text}")


def main():
    tap = Tap()

    def a_rank_alone():
        """Durations, sizes and bandwidths of operations with known lengths."""
        rank = Rank(scratch.path("alone"))
        rank.tell("comm abc 4 1 world")
        for number in range(5):
            rank.tell(all_reduce(number), "pause 0.01", "done")
        rank.tell("coll AllGather 0 1024 ncclInt8 1", "done", "coll ReduceScatter 0 1024 ncclFloat32 1",
                  "done", "p2p Send 2 100 ncclInt8 1", "done", "p2p Send 2 100 ncclInt8 1", "done",
                  "p2p Recv 3 100 ncclInt8 1", "done", "finalize")
        expect(rank.say("exit 0") == 0, rank.stderr)
        rows = operations(scratch.path("alone"))
        expect(len(rows) == 10, f"{len(rows)} operations")
        for number, row in enumerate(rows[:5]):
            expect(row["sequence"] == number and row["function"] == "AllReduce", row)
            expect(row["state"] == "done" and row["timing"] == "gpu" and not row["marks"], row)
            expect(row["stamped_ns"] == row["gpu_stop"] - row["gpu_start"], row)
            expect(row["duration_ns"] == row["stamped_ns"] + AROUND_NS, row)
            expect(row["duration_ns"] >= 10_000_000, row)
            expect(row["size_bytes"] == 8 << 20, row)
            algorithm = row["size_bytes"] / row["duration_ns"]
            expect(abs(row["algbw_gbs"] / algorithm - 1) < 1e-4, row)
            expect(abs(row["busbw_gbs"] / (algorithm * 2 * 3 / 4) - 1) < 1e-4, row)
            expect(row["time_error_ns"] is not None and row["time_error_ns"] < 10_000_000, row)
        sizes = {(row["function"], row["sequence"]): row["size_bytes"] for row in rows[5:]}
        expect(sizes == {("AllGather", 0): 4096, ("ReduceScatter", 0): 16384, ("Send", 0): 100,
                         ("Send", 1): 100, ("Recv", 0): 100}, sizes)
        text = report(scratch.path("alone"))
        expect("in flight" not in text, text)
        needs(text, "AllReduce in \"world\": 5 operations")

    def gpu_times_on_the_host_clock():
        """A GPU clock that is seconds off: begins lie where the host was, within the error that is told."""
        directory = scratch.path("clock")
        rank = Rank(directory)
        rank.tell("gpu 5000000123", "comm abc 2 0 world")
        spans = []
        for number in range(20):
            before = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
            rank.tell(all_reduce(number))
            spans.append((before, time.clock_gettime_ns(time.CLOCK_BOOTTIME)))
            rank.tell("done")
        expect(rank.say("exit 0") == 0, rank.stderr)
        rows = operations(directory)
        expect(len(rows) == 20, rows)
        for row, (before, after) in zip(rows, spans):
            error = row["time_error_ns"]
            stamp = row["begin_ns"] + AROUND_NS // 2
            expect(error is not None and before - error <= stamp <= after + error,
                   f"{row['begin_ns']} ± {error} is not in {before} to {after}")

    def killed_in_the_middle():
        """SIGKILL of one rank within an AllReduce: either result names the operation, the channels and
        the peer; together they say who has not come."""
        first, second = Rank(scratch.path("kill/r0"), environment={"KYMO_NCCL_EVENTS": "all"}), \
            Rank(scratch.path("kill/r1"), environment={"KYMO_NCCL_EVENTS": "all"})
        for number, rank in enumerate((first, second)):
            rank.tell(f"comm abc 2 {number} world", all_reduce(0), "done", all_reduce(1), "done")
        first.tell(all_reduce(2), "end 0", "proxy 3 1 send 16", "step 0 65536", "pause 0.4")
        expect(second.say("kill") == -signal.SIGKILL, "not killed")
        expect(first.say("abort") == -signal.SIGABRT, "not aborted")
        text = report(scratch.path("kill/r0"))
        needs(text, "AllReduce #2 (ncclFloat32, 8.00 MiB, RING SIMPLE): 1 rank waits", "channels 1-3 open",
              "channel 3 sends to rank 1: 1 of 16 steps done", "rank 1 unknown: no records here")
        expect("in flight" not in report(scratch.path("kill/r1")), "the killed rank was in nothing")
        ended = kymo("merge", scratch.path("kill/r0"), scratch.path("kill/r1"), "-o", scratch.path("kill/all"))
        expect(ended.status == 0, ended.stderr)
        text = " ".join(ended.stdout.decode().split())
        needs(text, "AllReduce #2", f"rank 1 (process {second.process.pid}, ended abnormally",
              "has NOT ENTERED it; its last was AllReduce #1, done", "channels 1-3 open")

    def killed_inside():
        """The killed rank's own records name what it was in."""
        rank = Rank(scratch.path("inside"))
        rank.tell("comm abc 2 0 world", all_reduce(0), "pause 0.3")
        expect(rank.say("kill") == -signal.SIGKILL, "not killed")
        needs(report(scratch.path("inside")), "AllReduce #0", "1 rank waits", "channels 0-3 open")
        row, = operations(scratch.path("inside"))
        expect(row["timing"] == "open" and row["channels_open"] == "0-3" and "in_flight" in row["marks"], row)
        expect(row["duration_ns"] is None and row["busbw_gbs"] is None and row["end_ns"] is None, row)

    def while_it_runs():
        """A job that hangs is looked at while it hangs: the time goes on."""
        rank = Rank(scratch.path("live"))
        rank.tell("comm abc 2 0 world", all_reduce(0), "pause 1.2")
        text = report(scratch.path("live"))
        rank.tell("done")
        expect(rank.say("exit 0") == 0, rank.stderr)
        needs(text, "still runs", "AllReduce #0", "in it for 1.")

    def watched():
        """While a rank runs its report is renewed; when it has exited, the rest is written and the command ends."""
        rank, merged = Rank(scratch.path("watch/r0")), scratch.path("watch/all")
        rank.tell("comm abc 2 0 world", all_reduce(0), "pause 1")
        watch = subprocess.Popen([KYMO, "merge", "--watch", scratch.path("watch/r0"), "-o", merged],
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=clean_environment(), text=True)
        summary = os.path.join(merged, "nccl", "summary.txt")
        for _ in range(300):
            if os.path.exists(summary):
                break
            time.sleep(0.1)
        with open(summary, encoding="utf-8") as stream:
            needs(" ".join(stream.read().split()), "AllReduce #0", "still runs")
        expect(not os.path.exists(os.path.join(merged, "trace.pftrace")), "a trace of a running job")
        rank.tell("done")
        expect(rank.say("exit 0") == 0, rank.stderr)
        stdout, stderr = watch.communicate(timeout=60)
        expect(watch.returncode == 0, stderr)
        expect(stdout.count("in flight") >= 1 and "still runs" not in stdout.split("kymo:")[-1], stdout)
        expect(os.path.exists(os.path.join(merged, "trace.pftrace")), "no trace")

    def sends_wait():
        rank = Rank(scratch.path("p2p"))
        rank.tell("comm abc 4 2 pipeline", "p2p Recv 1 1000 ncclFloat32 2")
        expect(rank.say("kill") == -signal.SIGKILL, "not killed")
        needs(report(scratch.path("p2p")), "Recv #0 from rank 1", "it waits for rank 1")

    def who_is_late():
        """Three ranks on one machine; rank 2 comes 60 ms late to every other collective."""
        ranks = [Rank(scratch.path(f"late/r{number}")) for number in range(3)]
        for number, rank in enumerate(ranks):
            rank.tell(f"comm abc 3 {number} world")
        for number in range(6):
            for rank in ranks[:2]:
                rank.tell(all_reduce(number))
            if number % 2:
                time.sleep(0.06)
            ranks[2].tell(all_reduce(number))
            time.sleep(0.01)
            for rank in ranks:
                rank.tell("done")
        for rank in ranks:
            expect(rank.say("exit 0") == 0, rank.stderr)
        merged = scratch.path("late/all")
        ended = kymo("merge", "-q", *sorted(glob.glob(scratch.path("late/r?"))), "-o", merged)
        expect(ended.status == 0, ended.stderr)
        head, rows = lines(merged, "collectives", "nccl-collectives")
        expect(len(rows) == 6 and head["without_a_rank"] == 0 and head["mismatched"] == 0, head)
        for row in rows:
            expect(row["ranks_seen"] == 3 and row["ranks_timed"] == 3, row)
            expect(row["longest_ns"] >= row["transfer_ns"] >= 10_000_000, row)
            if row["sequence"] % 2:
                expect(row["late_rank"] == 2 and row["late_by"] == "clock", row)
                expect(row["last_begin_ns"] - row["first_begin_ns"] >= 60_000_000, row)
                expect(row["longest_ns"] - row["transfer_ns"] >= 55_000_000, row)
        text = kymo("report", "--format", "nccl", merged).stdout.decode()
        worst = [line.split() for line in text.splitlines()]
        at = next(i for i, words in enumerate(worst) if words[:2] == ["Late", "ranks"])
        expect(worst[at + 2][0] == "2" and int(worst[at + 2][3]) >= 3, worst[at + 2])

    def by_their_kernels():
        """Without the plugin's own times of kernels: the GPU's records have them, in a merged result, too."""
        for number in range(2):
            directory = scratch.path(f"kernels/r{number}")
            rank = Rank(directory, environment={"KYMO_NCCL_EVENTS": "light"})
            with open(f"/proc/{rank.process.pid}/stat", encoding="ascii") as stream:
                process_start = int(stream.read().rpartition(")")[2].split()[19])
            rank.tell(f"comm abc 2 {number} world", *(line for i in range(4) for line in (all_reduce(i), "done")))
            expect(rank.say("exit 0") == 0, rank.stderr)
            rows = operations(directory)
            expect([row["timing"] for row in rows] == ["none"] * 4, rows)
            expect(all(row["marks"] == ["enqueue_only"] for row in rows), rows)
            # Rank 1 waits 2 ms each time; the last kernel has no record.
            write_gpu_file(directory, rank.process.pid, process_start,
                           [(row["tid"], row["enqueue_ns"], row["enqueue_ns"] + 50_000, 1_000_000 + number * 2_000_000)
                            for row in rows[:3]])
            rows = operations(directory)
            expect([row["timing"] for row in rows] == ["kernel"] * 3 + ["none"], rows)
            for row in rows[:3]:
                expect(row["duration_ns"] == 1_000_000 + number * 2_000_000 and not row["marks"], row)
                expect(row["begin_ns"] == row["enqueue_ns"] + 50_000 and row["state"] == "done", row)
                expect(abs(row["algbw_gbs"] * row["duration_ns"] / row["size_bytes"] - 1) < 1e-4, row)
        merged, again = scratch.path("kernels/all"), scratch.path("kernels/again")
        for inputs, to in (([scratch.path("kernels/r0"), scratch.path("kernels/r1")], merged), ([merged], again)):
            ended = kymo("merge", "-q", *inputs, "-o", to)
            expect(ended.status == 0, ended.stderr)
            rows = lines(to, "collectives", "nccl-collectives")[1]
            for row in rows[:3]:
                expect(row["ranks_timed"] == 2 and row["transfer_ns"] == 1_000_000, row)
                expect(row["longest_ns"] == 3_000_000, row)
        with open(os.path.join(merged, "trace.pftrace"), "rb") as stream:
            trace = perfetto_decode.Trace(stream.read())
        gpu = [uuid for uuid in trace.tracks if trace.track_name(uuid) == "operations on the GPU"]
        times = sorted(piece["end"] - piece["time"] for piece in trace.slices if piece["track"] in gpu)
        expect(times == [1_000_000] * 3 + [3_000_000] * 3, times)

    def a_collective_is_left_out():
        """NCCL numbers the calls of each rank by themselves: who skips one has the others' next one under
        its number. Sizes tell."""
        ranks = [Rank(scratch.path(f"skip/r{number}")) for number in range(3)]
        for number, rank in enumerate(ranks):
            rank.tell(f"comm abc 3 {number} world")
            sizes = [1000 + 10 * step for step in range(12)]
            if number == 1:
                del sizes[5]
            for sequence, size in enumerate(sizes):
                rank.tell(all_reduce(sequence, size), "done")
        for rank in ranks:
            expect(rank.say("exit 0") == 0, rank.stderr)
        merged = scratch.path("skip/all")
        ended = kymo("merge", *sorted(glob.glob(scratch.path("skip/r?"))), "-o", merged)
        needs(" ".join(ended.stdout.decode().split()), "1 rank seems to have skipped a collective")
        text = " ".join(kymo("report", "--format", "nccl", merged).stdout.decode().split())
        needs(text, "SKIPPED: from AllReduce #5 of \"world\" on, the calls of rank 1 are those that rank 0 makes "
              "one later", "AllReduce #11 of \"world\": not reached by rank 1")

    def skipped_and_different():
        ranks = [Rank(scratch.path(f"odd/r{number}")) for number in range(3)]
        for number, rank in enumerate(ranks):
            rank.tell(f"comm abc 3 {number} world", all_reduce(0), "done")
            if number != 1:
                rank.tell(all_reduce(1), "done")
            rank.tell(all_reduce(2, EIGHT_MIB * (2 if number == 2 else 1)), "done")
            rank.tell("coll Broadcast 0 100 ncclInt8 1" if number != 2 else "coll Reduce 0 100 ncclInt8 1")
        for rank in ranks:
            expect(rank.say("kill") == -signal.SIGKILL, rank.stderr)
        merged = scratch.path("odd/all")
        ended = kymo("merge", *sorted(glob.glob(scratch.path("odd/r?"))), "-o", merged)
        expect(ended.status == 0, ended.stderr)
        rows = {(row["function"], row["sequence"]): row for row in lines(merged, "collectives", "nccl-collectives")[1]}
        expect(rows["AllReduce", 1]["ranks_missing"] == [1] and rows["AllReduce", 1]["not_reported"] == 1, rows)
        expect(rows["AllReduce", 2]["mismatch"] and rows["AllReduce", 2]["mismatch_rank"] == 2, rows)
        needs(" ".join(ended.stdout.decode().split()), "MISMATCH: ranks of this communicator wait in different functions",
              "Broadcast #0", "Reduce #0")
        needs(" ".join(kymo("report", "--format", "nccl", merged).stdout.decode().split()),
              "AllReduce #1 of \"world\": NCCL did not report it on rank 1",
              "MISMATCH: rank 2 calls AllReduce of \"world\" with another size, type or root than rank 0: 1 time, "
              "first #2")

    def hosts_with_other_clocks():
        """Ranks of two hosts whose clocks are 3 s apart (tests/unit/output/nccl_write.c has the truth)."""
        os.makedirs(scratch.path("hosts"), exist_ok=True)
        expect(run([WRITE, scratch.path("hosts")]).status == 0, "no records")
        ended = kymo("merge", "-q", *sorted(glob.glob(scratch.path("hosts/rank?"))), "-o", scratch.path("hosts/all"))
        expect(ended.status == 0, ended.stderr)
        _, rows = lines(scratch.path("hosts/all"), "collectives", "nccl-collectives")
        late = {row["sequence"] for row in rows if row["late_rank"] == 3}
        expect(late == set(range(20, 30)), f"rank 3 is late in {late}")
        for row in rows:
            expect(row["last_begin_ns"] - row["first_begin_ns"] <= 200_000 + 2 * row["time_error_ns"], row)
        text = " ".join(kymo("report", "--format", "nccl", scratch.path("hosts/all")).stdout.decode().split())
        needs(text, "rank 1 to rank 2 of", "25 % of the median", "rank 2", "NOT ENTERED", "host node1 against node0")

    def lateness_is_passed_on():
        """Rank 3 began it (tests/unit/output/nccl_write.c); 2 and 0 are late because of it, and not by themselves."""
        where = scratch.path("chain")
        os.makedirs(where, exist_ok=True)
        expect(run([WRITE, where, "chain"]).status == 0, "no records")
        needs(" ".join(kymo("report", where).stdout.decode().split()),
              "rank 3 of the job (1 of tp1) on node1 was the last into 10 collectives",
              "ranks that waited for it came late elsewhere")
        needs(" ".join(kymo("report", "--format", "nccl", where).stdout.decode().split()),
              'rank 0 into "tp0": others waited', 'it had waited for rank 2 in "dp0"; rank 3 began it',
              'it had waited for rank 3 in "tp1"')
        summary = json.loads(kymo("report", "--format", "nccl-json", where).stdout)["between_ranks"]
        expect({(row["world_rank"], row["waited_for_world_rank"], row["root_world_rank"])
                for row in summary["passed_on"]} == {(2, 3, 3), (0, 2, 3)}, summary["passed_on"])
        expect(sum(row["others_waited_ns"] for row in summary["ranks"] if row["world_rank"] != 3) < 5_000_000, summary)

    def a_rank_is_missing():
        """Without rank 3's records nothing is concluded from collectives; with a file that cannot be read, 125."""
        os.makedirs(scratch.path("part"), exist_ok=True)
        expect(run([WRITE, scratch.path("part")]).status == 0, "no records")
        inputs = sorted(glob.glob(scratch.path("part/rank?")))
        ended = kymo("merge", "--no-operations", *inputs[:3], "-o", scratch.path("part/three"))
        expect(ended.status == 0, ended.stderr)
        expect(not os.path.exists(scratch.path("part/three/nccl/operations.jsonl")), "operations are written")
        text = " ".join(ended.stdout.decode().split())
        needs(text, "3 of 4 ranks of the job have records here, rank 3 has no records", "nothing is concluded from")
        expect("was the last into" not in text and "waiting for late ranks" not in text, text)
        rows = lines(scratch.path("part/three"), "collectives", "nccl-collectives")[1]
        expect(all(row["late_rank"] is None and not row["complete"] for row in rows), rows[0])
        record, = glob.glob(os.path.join(inputs[3], "spool", "*.nccl"))
        with open(record, "r+b") as stream:
            stream.write(bytes(100_000))
        ended = kymo("merge", "-q", *inputs, "-o", scratch.path("part/damaged"))
        expect(ended.status == 125 and "cannot be read" in ended.stderr, ended)
        with open(scratch.path("part/damaged/nccl/summary.txt"), encoding="utf-8") as stream:
            needs(" ".join(stream.read(2000).split()), "INCOMPLETE: 1 file of records could not be read",
                  "3 of 4 ranks of the job")

    def ranks_of_groups():
        """Two tensor groups and two batch groups: ranks of the job are named, and the root of a hang."""
        ranks = [Rank(scratch.path(f"groups/r{number}"), environment={"RANK": str(number), "WORLD_SIZE": "4"})
                 for number in range(4)]
        for number, rank in enumerate(ranks):
            rank.tell(f"comm a{number // 2} 2 {number % 2} tp{number // 2}", f"comm d{number % 2} 2 {number // 2} dp{number % 2}")
            for group in (0, 1):
                rank.tell(f"use {group}", all_reduce(0), "done")
        for number, group in ((0, 0), (1, 1), (2, 0)):
            ranks[number].tell(f"use {group}", all_reduce(1))
        for rank in ranks:
            expect(rank.say("kill") == -signal.SIGKILL, rank.stderr)
        ended = kymo("merge", *sorted(glob.glob(scratch.path("groups/r?"))), "-o", scratch.path("groups/all"))
        expect(ended.status == 0, ended.stderr)
        needs(" ".join(ended.stdout.decode().split()), f"The root is rank 3 (process {ranks[3].process.pid}",
              "2 ranks wait for it, and 1 more behind those", "rank 3 of the job (1 of tp1) (process")

    def timeline():
        """Every operation is on the tracks, ends nest, flows lead from calls to GPUs."""
        directory = scratch.path("trace")
        rank = Rank(directory, environment={"KYMO_NCCL_EVENTS": "all"})
        rank.tell("comm abc 2 0 world")
        tid = int(rank.tell("tid")[0])
        for number in range(4):
            rank.tell(all_reduce(number), "proxy 1 1 send 2", "step 0 4096", "step 1 4096", "proxydone", "done")
        rank.tell(all_reduce(4))
        expect(rank.say("kill") == -signal.SIGKILL, rank.stderr)
        path = scratch.path("trace.pftrace")
        ended = kymo("report", "--format", "perfetto", "-o", path, directory)
        expect(ended.status == 0, ended.stderr)
        with open(path, "rb") as stream:
            trace = perfetto_decode.Trace(stream.read())
        others = [error for error in trace.errors if not error.endswith("does not end")]
        expect(not others, others)
        names = {uuid: trace.track_name(uuid) for uuid in trace.tracks}
        found = {}
        for piece in trace.slices:
            found.setdefault(names[piece["track"]], []).append(piece["name"])
        found = {name: sorted(pieces) for name, pieces in found.items()}
        expect(found.get("operations on the GPU", []).count("AllReduce") == 5, found)
        for channel in range(4):
            expect(found.get(f"GPU channel {channel}", []).count("AllReduce") == 5, found)
        expect(found.get("network channel 1") == ["send to rank 1"] * 4, found)
        expect(found.get("network steps, sent") == ["step 0"] * 4 + ["step 1"] * 4, found)
        calls = found.get(f"NCCL calls of thread {tid}", [])
        expect(calls.count("ncclAllReduce") == 5 and calls.count("enqueue AllReduce") == 5, found)
        expect(sum(error.startswith("AllReduce") for error in trace.errors) == 5, trace.errors)
        with open(path, "rb") as stream:
            if shutil.which("protoc"):
                decoded = subprocess.run(["protoc", "--decode_raw"], stdin=stream, capture_output=True, check=False)
                expect(decoded.returncode == 0, decoded.stderr)

    def beside_samples():
        """Under kymo the plugin records into the session: one result, and its process is the samples'."""
        directory = scratch.path("session")
        job = subprocess.Popen([KYMO, "sample", "-q", "-o", directory, "--time-output=off", "--", JOB, PLUGIN],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               env=clean_environment(), text=True)
        _, stderr = job.communicate("comm abc 2 0 world\nloop 2000 1024 0\nfinalize\nexit 3\n", timeout=120)
        expect(job.returncode == 3, f"{job.returncode}: {stderr}")
        for name in ("summary.txt", "summary.json", "operations.jsonl", "collectives.jsonl"):
            expect(os.path.exists(os.path.join(directory, "nccl", name)), f"no nccl/{name}: {stderr}")
        with open(os.path.join(directory, "nccl", "operations.jsonl"), encoding="utf-8") as stream:
            expect(len(stream.readlines()) == 2001, "not all operations")
        with open(os.path.join(directory, "trace.pftrace"), "rb") as stream:
            trace = perfetto_decode.Trace(stream.read())
        expect(not trace.errors, trace.errors[:5])
        expect(sum(piece["name"] == "ncclAllReduce" for piece in trace.slices) >= 2000, "no calls in the trace")
        processes = [uuid for uuid, track in trace.tracks.items() if 3 in track]
        expect(len(processes) == 1, "the process is there twice")

    def set_up_by_itself():
        """In a session NCCL finds the plugin without a word of the user's; his own stays."""
        def session(name, options=(), environment=None, plugin=""):
            directory = scratch.path(f"by-itself-{name}")
            job = subprocess.run([KYMO, "sample", "-q", "-o", directory, "--time-output=off", *options, "--", "sh", "-c",
                                  'echo "$NCCL_PROFILER_PLUGIN"; exec "$1" "${2:-$NCCL_PROFILER_PLUGIN}"', "sh", JOB, plugin],
                                 input="comm abc 2 0 world\nloop 100 1024 0\nfinalize\nexit 0\n", capture_output=True,
                                 env={**clean_environment(), **(environment or {})}, text=True, timeout=120, check=False)
            named = job.stdout.splitlines()[0]
            named = os.path.realpath(named) if named else named
            if not os.path.exists(os.path.join(directory, "nccl")):
                return named, None
            return named, [row["timing"] for row in operations(directory)]
        # Where kymo times kernels itself, the plugin's own times cost too much.
        expect(session("light") == (PLUGIN, ["none"] * 100), "in a session")
        expect(session("timed", ["--gpu=off"]) == (PLUGIN, ["gpu"] * 100), "without devices")
        expect(session("asked", ["--nccl-events=default"]) == (PLUGIN, ["gpu"] * 100), "with --nccl-events=default")
        expect(session("others", environment={"CUDA_INJECTION64_PATH": "/other.so"}) == (PLUGIN, ["gpu"] * 100),
               "with another tool for CUDA")
        expect(session("own", environment={"NCCL_PROFILER_PLUGIN": "/opt/mine.so"}, plugin=PLUGIN) ==
               ("/opt/mine.so", ["none"] * 100), "with a plugin of the user's")
        expect(session("off", ["--nccl-plugin=off"], plugin="/nowhere.so") == ("", None), "with --nccl-plugin=off")

    def in_sqlite():
        """Tables of results.db are the lines of the other formats."""
        os.makedirs(scratch.path("tables"), exist_ok=True)
        expect(run([WRITE, scratch.path("tables")]).status == 0, "no records")
        directory, path = scratch.path("tables/all"), scratch.path("tables/results.db")
        expect(kymo("merge", "-q", *sorted(glob.glob(scratch.path("tables/rank?"))), "-o", directory).status == 0, "merge")
        ended = kymo("report", "--format", "counters-db", "-o", path, directory)
        expect(ended.status == 0, ended.stderr)
        summary = json.loads(kymo("report", "--format", "nccl-json", directory).stdout)
        overall = [{"communicator": None, **row} for row in summary["functions"]]
        with sqlite3.connect(path) as database:
            database.row_factory = sqlite3.Row
            for table, wanted, spared in (
                    ("nccl_operations", operations(directory), {"id", "marks"}),
                    ("nccl_collectives", lines(directory, "collectives", "nccl-collectives")[1], {"id"}),
                    ("nccl_functions", overall + summary["functions_by_communicator"], {"id"})):
                found = [dict(row) for row in database.execute(f"SELECT * FROM {table} ORDER BY id")]
                expect(len(found) == len(wanted) and found, f"{table}: {len(found)} rows, not {len(wanted)}")
                for row, line in zip(found, wanted):
                    for column in row.keys() - spared:
                        value = line.get(column, row[column] and None)
                        if table == "nccl_functions" and column.endswith("_ns") and row[column] is None:
                            value = value or None  # nothing timed
                        if table == "nccl_functions" and column.endswith("_gbs") and row[column] is None:
                            value = value or None
                        if isinstance(value, float):
                            expect(abs(row[column] - value) <= 1e-4 * abs(value), f"{table}.{column}: {row}, {line}")
                        elif column == "root" and row[column] is None:
                            expect((value if value is not None else -1) < 0, f"{table}.root: {row}, {line}")
                        else:
                            expect(row[column] == (int(value) if isinstance(value, bool) else value),
                                   f"{table}.{column}: {row}, {line}")
                    if "marks" in row:
                        expect(row["marks"] == ",".join(line["marks"]), f"{row}, {line}")
            slowest = database.execute("SELECT late_rank, COUNT(*) FROM nccl_collectives WHERE late_rank IS NOT NULL "
                                       "GROUP BY late_rank ORDER BY 2 DESC").fetchone()
            expect(tuple(slowest) == (3, 10), tuple(slowest))
            expect(database.execute("PRAGMA integrity_check").fetchone()[0] == "ok", "integrity_check")

    def no_room_for_a_database():
        """Neither for the file that is asked for, nor where SQLite makes it."""
        directory = scratch.path("alone-many")
        rank = Rank(directory)
        rank.tell("comm abc 2 0 world", "loop 3000 1000 0", "finalize")
        expect(rank.say("exit 0") == 0, rank.stderr)
        place = scratch.path("no-room")
        os.makedirs(place)
        if run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", place]).status != 0:
            raise Skipped("no permission to mount")
        try:
            for output, temporary in (place, scratch.directory), (scratch.directory, place):
                path = os.path.join(output, "full.db")
                ended = kymo("report", "--format", "counters-db", "-o", path, directory,
                             environment={"TMPDIR": temporary})
                expect(ended.status == 125 and re.search("No space left|disk is full", ended.stderr), ended)
                expect(not glob.glob(path + "*") and not glob.glob(os.path.join(place, "*")), "a part of it is left")
        finally:
            run(["umount", place])

    def a_hundred_thousand():
        """All are recorded, or what is missing is counted exactly."""
        directory = scratch.path("many")
        rank = Rank(directory)
        rank.tell("comm abc 2 0 world", "loop 100000 1024 0", "finalize")
        expect(rank.say("exit 0") == 0, rank.stderr)
        rows = operations(directory)
        text = kymo("report", "--format", "nccl", directory).stdout.decode()
        lost = sum(int(line.split()[0].replace(",", "")) for line in text.splitlines()
                   if "operations not recorded" in line or "operations overwritten" in line)
        expect(len(rows) + lost == 100000, f"{len(rows)} recorded, {lost} told as lost")
        expect(len({row["sequence"] for row in rows}) == len(rows), "operations come twice")

    def oldest_overwritten():
        """In a small ring the newest are left; sums are those of all."""
        directory = scratch.path("ring")
        rank = Rank(directory, environment={"KYMO_NCCL_SIZE": "4M"})
        rank.tell("comm abc 2 0 world")
        for _ in range(20):
            rank.tell("loop 2000 1024 0", "pause 0.1")
        rank.tell("finalize", "pause 0.3")
        expect(rank.say("exit 0") == 0, rank.stderr)
        rows = operations(directory)
        summary = json.loads(kymo("report", "--format", "nccl-json", directory).stdout)
        losses = summary["processes"][0]["losses"]
        expect(losses["ring_operations"] > 0, losses)
        expect(len(rows) + losses["ring_operations"] + losses["operations"] == 40000, (len(rows), losses))
        row, = summary["functions"]
        expect(row["operations"] + losses["operations"] == 40000, row)
        expect(row["timed"] + losses["operations"] == 40000 and row["busbw_gbs"] > 0, row)
        expect(row["shortest_ns"] <= row["median_ns"] <= row["p99_ns"] <= row["longest_ns"], row)
        expect(row["median_ns"] < 1.2 * row["time_ns"] / row["timed"], row)  # nearly all are equally short
        expect(row["shortest_ns"] > AROUND_NS and row["time_ns"] > AROUND_NS * row["timed"], row)
        expect("older ones are only in the sums" in report(directory), "nothing is said")

    def full_disk():
        """On a full disk the ring is as large as the file has come to be, and the disk is named."""
        place = scratch.path("small")
        os.makedirs(place)
        if run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", place]).status != 0:
            raise Skipped("no permission to mount")
        try:
            directory = os.path.join(place, "result")
            rank = Rank(directory)
            rank.tell("comm abc 2 0 world", "loop 100000 1000 0", "finalize")
            expect(rank.say("exit 0") == 0, rank.stderr)
            kept = len(operations(directory))
            expect(kept > 2000, f"{kept} operations are kept")
            text = report(directory)
        finally:
            run(["umount", place])
        needs(text, "only in the sums (the disk was full)")

    def stopped_is_no_hang():
        """Operations whose events had no room, of a communicator that was finalized, do not wait."""
        directory = scratch.path("stopped")
        rank = Rank(directory, environment={"KYMO_NCCL_FULL": "stop", "KYMO_NCCL_SIZE": "1M"})
        rank.tell("comm abc 2 0 world", "loop 60000 1000 0", "finalize")
        expect(rank.say("exit 0") == 0, rank.stderr)
        cut = [row for row in operations(directory) if "lost_events" in row["marks"]]
        expect(cut, "all were recorded")
        for row in cut:
            # The plugin itself may have seen that nothing tells when it ran.
            over = row["state"] == "incomplete" or (row["state"] == "enqueued" and "enqueue_only" in row["marks"])
            expect(row["state"] == "done" or (over and row["timing"] == "none"), row)
            expect("in_flight" not in row["marks"], row)
        expect("in flight" not in report(directory), "it hangs")

    def without_durations():
        """What was not timed has no duration, which is not 0."""
        directory = scratch.path("light")
        rank = Rank(directory, environment={"KYMO_NCCL_EVENTS": "light"})
        rank.tell("comm abc 2 0 world", "loop 100 1000 0", "finalize")
        expect(rank.say("exit 0") == 0, rank.stderr)
        summary = json.loads(kymo("report", "--format", "nccl-json", directory).stdout)
        row, = summary["functions"]
        expect(row["operations"] == 100 and row["timed"] == 0, row)
        keys = ("shortest_ns", "median_ns", "p99_ns", "longest_ns", "algbw_gbs", "busbw_gbs")
        expect(all(row[key] is None for key in keys), row)
        expect(all(row["sizes"][0][key] is None for key in keys[4:]), row)
        needs(report(directory), "100 operations, no durations")

    def old_versions():
        """v2 tells nothing of the number of ranks: what follows from a guess is marked."""
        directory = scratch.path("old")
        rank = Rank(directory, "v2")
        rank.tell("comm abc 4 0 world", "coll AllReduce 0 1024 ncclFloat32 2", "done",
                  "proxy 0 3 send 2", "proxydone")
        expect(rank.say("exit 0") == 0, rank.stderr)
        row, = operations(directory)
        expect(row["communicator"] == "world" and row["communicator_hash"].endswith("abc"), row)
        expect(row["ranks"] in (0, 4) and ("ranks_inferred" in row["marks"] or row["ranks"] == 0), row)
        expect("enqueue_only" in row["marks"] and row["timing"] == "none" and row["duration_ns"] is None and row["busbw_gbs"] is None, row)
        expect("in flight" not in report(directory), "an operation that nobody sees end is no hang")

    def names_of_anybody():
        directory = scratch.path("names")
        rank = Rank(directory)
        rank.tell('comm abc 2 0 "quoted" \\ \x1b[31m\x7f', all_reduce(0), "done")
        expect(rank.say("exit 0") == 0, rank.stderr)
        row, = operations(directory)
        expect(row["communicator"] == '"quoted" \\ \x1b[31m\x7f', row["communicator"])
        for fmt in ("nccl",):
            text = kymo("report", "--format", fmt, directory).stdout
            expect(b"\x1b" not in text and b"\x7f" not in text, text)
        expect("\x1b" not in report(directory), "control characters in the summary")

    def many_ranks():
        """Sixty-four ranks of 8 hosts' worth of files; memory does not grow with them."""
        os.makedirs(scratch.path("big"), exist_ok=True)
        expect(run([WRITE, scratch.path("big"), "64"]).status == 0, "no records")
        inputs = sorted(glob.glob(scratch.path("big/rank*")), key=lambda path: int(path.rpartition("rank")[2]))
        ended = kymo("merge", "-q", *inputs, "-o", scratch.path("big/all"))
        expect(ended.status == 0, ended.stderr)
        head, rows = lines(scratch.path("big/all"), "collectives", "nccl-collectives")
        expect(len(rows) == 54 and head["without_a_rank"] == 1, head)
        expect(all(row["ranks_with_records"] == 64 for row in rows), "ranks are missing")

    def alone():
        if not os.path.exists(scratch.path("alone")):
            a_rank_alone()
        return scratch.path("alone")

    def bad_directories():
        good = alone()
        ended = kymo("merge", good, scratch.path("nowhere"), "-o", scratch.path("bad1"))
        expect(ended.status == 125 and "nowhere" in ended.stderr, ended)
        needs(ended.stderr, "1 of 2 directories")
        expect(os.path.exists(scratch.path("bad1/nccl/summary.txt")), "the good one is not joined")
        expect(kymo("merge", good, "-o", scratch.path("bad1")).status == 125, "overwrites")
        expect(kymo("merge", "-o", scratch.path("bad2")).status == 125, "merges nothing")
        expect(kymo("merge", good).status == 125, "merges to nowhere")
        twice = kymo("merge", good, good, "-o", scratch.path("bad3"))
        expect(twice.status == 0 and "more than once" in twice.stderr, twice)
        copy = scratch.path("copy")
        shutil.copytree(good, copy)
        twice = kymo("merge", good, copy, "-o", scratch.path("bad4"))
        expect(twice.status == 0 and "is the same as" in twice.stdout.decode(), twice)
        expect(len(operations(scratch.path("bad4"))) == 10, "a copy counts twice")
        expect(kymo("merge", scratch.path("nowhere"), "-o", scratch.path("bad5")).status == 125, "merges nothing")
        expect(not os.path.exists(scratch.path("bad5")), "what could not be made is left")

    def overwrites_no_input():
        """Not even by force, and not by another name."""
        inputs = [scratch.path(f"input{number}") for number in (0, 1)]
        for path in inputs:
            shutil.copytree(alone(), path)
        os.symlink(inputs[1], scratch.path("other-name"))
        for output in (inputs[0], scratch.path("other-name")):
            ended = kymo("merge", "--force", *inputs, "-o", output)
            expect(ended.status == 125 and "one of the results to join" in ended.stderr, ended)
        for path in inputs:
            expect(len(operations(path)) == 10, "records are gone")

    def kinds_of_files():
        """What is no file of records is told, does not hold the merge up, and the rest is joined."""
        for number, place in enumerate((scratch.path("kinds"), tempfile.mkdtemp(dir="/dev/shm"))):
            shutil.copytree(alone(), os.path.join(place, "r0"))
            spool = os.path.join(place, "r0", "spool")
            record, = glob.glob(os.path.join(spool, "*.nccl"))
            os.rename(record, os.path.join(place, "kept"))
            os.symlink("../../kept", record)
            os.mkfifo(os.path.join(spool, "pipe.nccl"))
            os.mkdir(os.path.join(spool, "directory.nccl"))
            os.symlink("/dev/zero", os.path.join(spool, "zeros.nccl"))
            merged = scratch.path(f"kinds-all{number}")
            ended = kymo("merge", os.path.join(place, "r0"), "-o", merged)
            if number:
                shutil.rmtree(place)
            expect(ended.status == 125, ended)
            needs(ended.stderr, "pipe.nccl", "directory.nccl", "zeros.nccl", "3 files are missing from")
            expect(len(operations(merged)) == 10, "the good file is not joined")

    def damaged_files():
        """Cut at any place, of another version, of nothing: one line, and the rest is shown."""
        source, = glob.glob(os.path.join(alone(), "spool", "*.nccl"))
        with open(source, "rb") as stream:
            data = stream.read()
        for size in (0, 7, 100, 4095, 4096, 10000, len(data) // 2, len(data) - 1):
            directory = scratch.path(f"cut{size}")
            os.makedirs(os.path.join(directory, "spool"))
            with open(os.path.join(directory, "spool", "nccl-1-0.nccl"), "wb") as stream:
                stream.write(data[:size])
            ended = kymo("report", directory)
            text = ended.stdout.decode() + ended.stderr
            expect(ended.status in ((125,) if size < 4096 else (0, 125)), ended)  # without its header it is nothing
            expect("nccl-1-0.nccl" in text, f"{size}: {text}")
        other = bytearray(data)
        other[8] = 77
        directory = scratch.path("other")
        shutil.copytree(scratch.path("alone"), directory)
        with open(os.path.join(directory, "spool", "nccl-2-0.nccl"), "wb") as stream:
            stream.write(other)
        ended = kymo("report", directory)
        needs(ended.stdout.decode(), "NCCL record format 77.")
        expect(len(operations(directory)) == 10, "the good file is not read")
        empty = scratch.path("empty")
        os.makedirs(os.path.join(empty, "spool"))
        expect(kymo("report", "--format", "nccl", empty).status == 125, "a report of nothing")

    def stall_is_told():
        """KYMO_NCCL_STALL prints while it hangs; the report agrees with it."""
        rank = Rank(scratch.path("stall"), environment={"KYMO_NCCL_STALL": "1"})
        rank.tell("comm abc 2 0 world", all_reduce(0), "pause 3.5")
        expect(rank.say("kill") == -signal.SIGKILL, "not killed")
        expect("AllReduce" in rank.stderr, f"nothing is told: {rank.stderr}")
        needs(report(scratch.path("stall")), "AllReduce #0", "1 rank waits")

    with Scratch() as scratch:
        if not os.path.exists(PLUGIN):
            raise Skipped("no plugin")
        for check in (a_rank_alone, gpu_times_on_the_host_clock, killed_in_the_middle, killed_inside, while_it_runs,
                      watched, sends_wait, who_is_late, by_their_kernels, a_collective_is_left_out, skipped_and_different, hosts_with_other_clocks, lateness_is_passed_on, a_rank_is_missing, ranks_of_groups, timeline,
                      beside_samples, set_up_by_itself, in_sqlite, no_room_for_a_database, a_hundred_thousand, oldest_overwritten, full_disk, stopped_is_no_hang, without_durations, old_versions,
                      names_of_anybody, many_ranks, bad_directories, overwrites_no_input, kinds_of_files, damaged_files,
                      stall_is_told):
            if not sys.argv[6:] or check.__name__ in sys.argv[6:]:
                tap.point(check.__name__.replace("_", " "), check)
    tap.finish()


main()
