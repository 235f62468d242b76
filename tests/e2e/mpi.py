#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""MPI programs under kymo: every call once with its bytes, ranks, and results a rank.

  mpi.py KYMO DIRECTORY-OF-PROGRAMS openmpi|mpich

What must be counted comes from a library that counts by the profiling interface of the standard
(tests/programs/mpi/count.c), in a run of its own; for Fortran, whose calls that interface need not
see, from the source.
"""
import collections
import glob
import os
import re
import shutil
import struct
import sys

import spool
from harness import Kymo, Result, Scratch, Skipped, Tap, expect, run

RANKS = 4
RANK_RECORD = 53
ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}

Calls = collections.namedtuple("Calls", "count sent received")


def ranks_of(directory):
    """{pid: [(rank, size, source)]}"""
    found = {}
    for path in glob.glob(os.path.join(directory, "spool", "*.spool")):
        with open(path, "rb") as stream:
            data = stream.read()
        if len(data) < spool.HEADER:  # of a process that was replaced at once
            continue
        for chunk in spool.chunks(data):
            for kind, record in chunk.records():
                if kind == RANK_RECORD:
                    pid = struct.unpack_from("<I", data, 16)[0]
                    found.setdefault(pid, []).append(
                        (record.number(), record.number(), record.text()))
    return found


def mpi_calls(directory):
    """{rank: ({function: Calls}, {counter: last value})}"""
    ranks, result = ranks_of(directory), {}
    for (pid, _), events in spool.regions(directory).items():
        calls, counters = collections.defaultdict(lambda: [0, 0, 0]), {}
        for event in events:
            if event.category != "mpi":
                continue
            if event.what == "counter":
                counters[event.name] = event.extra
            elif event.what == "begin":
                calls[event.name][0] += 1
            elif event.name in ("message sent", "message received"):  # in a call for many
                calls[{"message sent": "MPI_Startall", "message received": "MPI_Waitall"}
                      [event.name]][1] += event.values.get("bytes", 0)
            elif event.what == "end":
                calls[event.name][1] += event.values.get("bytes", 0)
                calls[event.name][2] += event.values.get("received", 0)
        if calls:
            expect(pid in ranks, f"process {pid} called MPI and has no rank")
            rank, size, source = ranks[pid][-1]
            expect(size == RANKS, f"{RANKS} ranks, but the record says {size}")
            expect(source == "MPI_COMM_WORLD", f"rank {rank} as {source} says")
            expect(rank not in result, f"two processes have rank {rank}")
            result[rank] = ({name: Calls(*each) for name, each in calls.items()}, counters)
    return result


def counted(prefix):
    """What the counting library wrote, in the same form."""
    result = {}
    for path in glob.glob(prefix + ".*"):
        calls = {}
        with open(path, encoding="ascii") as stream:
            for line in stream:
                name, *numbers = line.split()
                calls[name] = Calls(*map(int, numbers))
        result[int(path.rsplit(".", 1)[1])] = calls
    return result


def peer_in_world(values, world, local):
    """World rank of one side of a message."""
    if world in values:
        return values[world]
    expect(values.get("communicator") == "MPI_COMM_WORLD", f"no world rank in {values}")
    return values[local]


SENDS = {"MPI_Send", "MPI_Isend", "MPI_Issend", "MPI_Ibsend", "MPI_Sendrecv",
         "MPI_Sendrecv_replace", "message sent"}
RECEIVES = {"MPI_Recv", "MPI_Mrecv", "MPI_Wait", "MPI_Waitany", "MPI_Test", "MPI_Testany",
            "message received"}


def bytes_by_pair(events):
    """({world rank: bytes sent to it}, {world rank: bytes received from it}) of one process"""
    sent, received = collections.Counter(), collections.Counter()
    began = {}
    for event in events:
        values = dict(event.values)
        if event.what == "begin":
            began[event.name] = values
        if event.what == "begin" or event.category != "mpi":
            continue
        if event.what == "end":
            values = {**began.get(event.name, {}), **values}
        if event.name in SENDS:
            sent[peer_in_world(values, "world peer", "peer")] += values["bytes"]
        if "received" in values:
            received[peer_in_world(values, "world source", "source")] += values["received"]
        elif event.name in RECEIVES and "bytes" in values:
            received[peer_in_world(values, "world peer", "peer")] += values["bytes"]
    return sent, received


class Mpi:
    def __init__(self, kymo, programs, flavor, scratch):
        self.kymo, self.programs, self.flavor, self.scratch = kymo, programs, flavor, scratch

    def program(self, name):
        path = os.path.join(self.programs, f"{name}-{self.flavor}")
        if not os.path.exists(path):
            raise Skipped(f"{os.path.basename(path)} is not built")
        return path

    def counter(self):
        return os.path.join(self.programs, f"count-{self.flavor}.so")

    def mpirun(self, *command, ranks=RANKS):
        launcher = "mpirun." + self.flavor
        if not shutil.which(launcher):
            raise Skipped(f"{launcher} is not installed")
        extra = ["--oversubscribe"] if self.flavor == "openmpi" else []
        return [launcher, *extra, "-n", str(ranks), *command]

    def session(self, name, *options, command=None, environment=None):
        directory = self.scratch.path(name)
        ended = self.kymo.sample(command or self.mpirun(self.program("exchange")), directory,
                                 *options, environment={**ROOT, **(environment or {})})
        expect(ended.status == 0, f"status {ended.status}: {ended.stderr[-2000:]}")
        lines = sorted(ended.stdout.decode().split("\n"))
        expect(lines[1:] == [f"rank {rank} of {RANKS} done" for rank in range(RANKS)],
               f"the program said {lines}")
        return directory

    def expected(self):
        """Once: the program with the counting library alone."""
        prefix = self.scratch.path("counts")
        if not os.path.exists(prefix + ".0"):
            ended = run(self.mpirun("env", "LD_PRELOAD=" + self.counter(),
                                    self.program("exchange")),
                        environment={**ROOT, "MPI_COUNTS": prefix})
            expect(ended.status == 0, f"bare: status {ended.status}: {ended.stderr[-2000:]}")
        return counted(prefix)

    def compare(self, seen, wanted):
        """Not recorded: the call that stops recording, and the barrier after it."""
        single = ("MPI_Recv", "MPI_Waitall")  # their only amount is what they receive
        expect(sorted(seen) == sorted(wanted), f"ranks {sorted(seen)}, not {sorted(wanted)}")
        for rank, (calls, counters) in seen.items():
            for name, want in wanted[rank].items():
                stopped = name in ("MPI_Pcontrol", "MPI_Barrier")
                want = want._replace(count=want.count - stopped)
                got = calls.pop(name, Calls(0, 0, 0))
                expect(got.count == want.count,
                       f"rank {rank}: {name} {got.count} times, not {want.count}")
                if name.endswith("_init"):  # nothing is transferred yet
                    continue
                amounts = (0, got.sent) if name in single else (got.sent, got.received)
                expect(amounts == (want.sent, want.received),
                       f"rank {rank}: {name} bytes {amounts}, not {want[1:]}")
            expect(not calls, f"rank {rank}: calls that were not made: {calls}")
            for counter, field in (("MPI bytes sent", 1), ("MPI bytes received", 2)):
                total = sum(each[field] for each in wanted[rank].values())
                expect(counters[counter] == total, f"{counter} {counters[counter]}, not {total}")

    def every_call_once_with_its_bytes(self):
        self.compare(mpi_calls(self.session("counts")), self.expected())

    def beside_another_tool_of_the_profiling_interface(self):
        prefix = self.scratch.path("beside")
        directory = self.session("beside", environment={"MPI_COUNTS": prefix,
                                                        "LD_PRELOAD": self.counter()})
        expect(counted(prefix) == self.expected(), "the other tool counted something else")
        self.compare(mpi_calls(directory), self.expected())

    def bytes_by_pair_of_ranks(self):
        """Each message with its real source and size, however it is sent and received."""
        for ranks, seed in ((2, 1), (4, 2), (5, 3)):
            directory = self.scratch.path(f"matrix-{ranks}")
            ended = self.kymo.sample(self.mpirun(self.program("matrix"), str(seed), ranks=ranks),
                                     directory, environment=ROOT)
            expect(ended.status == 0, f"status {ended.status}: {ended.stderr[-2000:]}")
            truth = self.truth_of(ended, ranks)
            numbers, seen = ranks_of(directory), 0
            for (pid, _), events in spool.regions(directory).items():
                if pid not in numbers:
                    continue
                rank = numbers[pid][-1][0]
                sent, received = bytes_by_pair(events)
                if not sent and not received:
                    continue
                seen += 1
                for peer in range(ranks):
                    expect(sent[peer] == truth[rank, "sent"][peer],
                           f"{ranks} ranks: {rank} to {peer}: {sent[peer]} bytes, "
                           f"not {truth[rank, 'sent'][peer]}")
                    expect(received[peer] == truth[rank, "received"][peer],
                           f"{ranks} ranks: {rank} from {peer}: {received[peer]} bytes, "
                           f"not {truth[rank, 'received'][peer]}")
                cancelled = [event for event in events if event.what == "end"
                             and event.values.get("cancelled")]
                expect(len(cancelled) == 2, f"rank {rank}: {len(cancelled)} cancelled receives")
            expect(seen == ranks, f"{seen} ranks have messages, not {ranks}")
            profile = Result(directory).json("profile.json")
            self.check_table(profile, truth)
            self.check_communicators(profile, ranks)

    def messages_of_many_threads(self):
        directory = self.scratch.path("threads")
        ended = self.kymo.sample(self.mpirun(self.program("threads"), ranks=3), directory,
                                 environment=ROOT)
        expect(ended.status == 0, f"status {ended.status}: {ended.stderr[-2000:]}")
        profile = Result(directory).json("profile.json")
        self.check_table(profile, self.truth_of(ended, 3))
        for row in profile["mpi_calls"]:
            expect(not row["open"], f"a call that ended is open: {row}")

    @staticmethod
    def truth_of(ended, ranks):
        """{(rank, "sent" or "received"): {peer: bytes}}"""
        truth = {}
        for line in ended.stdout.decode().split("\n"):
            if line:
                rank, way, peer, size = line.split()
                truth.setdefault((int(rank), way), {})[int(peer)] = int(size)
        expect(len(truth) == 2 * ranks, f"the program said {ended.stdout}")
        return truth

    @staticmethod
    def check_table(profile, truth):
        """The rows of profile.json, added up by pair of ranks."""
        sums = collections.Counter()
        for row in profile["mpi_calls"]:
            if row["world_peer"] is None:
                expect(not row["sent_messages"] and not row["received_messages"],
                       f"messages without a peer: {row}")
                continue
            sums[row["rank"], "sent", row["world_peer"]] += row["sent_bytes"]
            sums[row["rank"], "received", row["world_peer"]] += row["received_bytes"]
        for (rank, way), peers in truth.items():
            for peer, size in peers.items():
                expect(sums[rank, way, peer] == size,
                       f"table: rank {rank} {way} {peer}: {sums[rank, way, peer]}, not {size}")

    @staticmethod
    def check_communicators(profile, ranks):
        barriers = sum(row["calls"] for row in profile["mpi_calls"]
                       if row["function"] == "MPI_Barrier")
        expect(barriers == 22 * ranks, f"{barriers} calls of MPI_Barrier, not {22 * ranks}")
        members = {row["world_ranks"] for row in profile["mpi_communicators"]
                   if row["name"] != "MPI_COMM_WORLD"}
        halves = {",".join(str(rank) for rank in range(ranks - 1, -1, -1) if rank % 2 == odd)
                  for odd in (0, 1)}
        expect(members == halves, f"communicators of {members}, not {halves}")
        names = {row["name"] for row in profile["mpi_communicators"] if row["size"] > 1}
        wanted = {"MPI_COMM_WORLD"} | {f"ranks {half} ({number})" for half in halves
                                       if "," in half for number in (1, 2)}
        expect(names == wanted, f"communicators are called {names}, not {wanted}")

    def fortran(self, name="fortran"):
        directory = self.session(name, command=self.mpirun(self.program(name)))
        seen = mpi_calls(directory)
        expect(sorted(seen) == list(range(RANKS)), f"ranks {sorted(seen)}")
        for rank, (calls, _) in seen.items():
            wanted = {"MPI_Init": 1, "MPI_Finalize": 1, "MPI_Comm_rank": 1, "MPI_Comm_size": 1,
                      "MPI_Comm_split": 1, "MPI_Comm_free": 1, "MPI_Allreduce": 21,
                      "MPI_Recv" if rank % 2 else "MPI_Send": 20}
            for each in ("Sendrecv", "Irecv", "Isend", "Waitall", "Bcast", "Gather", "Barrier"):
                wanted["MPI_" + each] = 20
            counts = {name: each.count for name, each in calls.items()}
            expect(counts == wanted, f"rank {rank}: {counts}, not {wanted}")
            one_way = calls["MPI_Recv" if rank % 2 else "MPI_Send"].sent
            expect(one_way == 20 * 50 * 4, f"rank {rank}: {one_way} bytes one way")
            waited = calls["MPI_Waitall"].sent
            expect(waited == 20 * 10 * 4, f"rank {rank}: waited for {waited} bytes")
            both_ways = calls["MPI_Sendrecv"][1:]
            expect(both_ways == (8000, 8000), f"rank {rank}: exchanged {both_ways}")
            messages = self.messages_received(directory, rank)
            expect(messages == {((rank - 1) % RANKS, 1, 40): 20},
                   f"rank {rank} received {messages} from anyone")
            gathered = calls["MPI_Gather"][1:]
            expect(gathered == (240, 0 if rank else 960), f"rank {rank}: gathered {gathered}")

    @staticmethod
    def messages_received(directory, rank):
        """{(peer, tag, bytes): how often}, of calls that end many requests."""
        ranks = ranks_of(directory)
        return collections.Counter(
            (event.values["peer"], event.values["tag"], event.values["bytes"])
            for (pid, _), events in spool.regions(directory).items()
            if pid in ranks and ranks[pid][-1][0] == rank
            for event in events if event.name == "message received")

    def fortran_2008(self):
        self.fortran("f08")

    def peers_and_communicators(self):
        directory = self.session("peers")
        ranks = ranks_of(directory)
        for (pid, _), events in spool.regions(directory).items():
            begins = [event for event in events if event.what == "begin"]
            sends = [event for event in begins if event.name == "MPI_Isend"]
            if not sends:
                continue
            rank = ranks[pid][-1][0]
            peers = {event.values["peer"] for event in sends}
            expect(peers == {(rank + 1) % RANKS}, f"rank {rank} sent to {peers}")
            ends = [event for event in events if event.what == "end"
                    and event.name == "MPI_Sendrecv_replace"]
            expect({event.values["communicator"] for event in ends} ==
                   {"odd" if rank % 2 else "even"}, "communicators are not named")
            world = {event.values["world peer"] for event in ends}
            expect(world == {(rank + 2) % RANKS}, f"rank {rank}: peers in the world {world}")
            received = {(event.values["peer"], event.values["tag"]) for event in events
                        if event.what == "end" and event.name == "MPI_Recv"
                        and "tag" in event.values}
            if rank % 2:  # it receives from any source, with any tag
                expect({peer for peer, _ in received} == {rank - 1} and
                       {tag for _, tag in received} >= {0, 1}, f"rank {rank} received {received}")
            copies = {event.values["communicator"] for event in events
                      if event.what == "end" and event.name == "MPI_Allreduce"}
            expect(f"ranks {2 + rank % 2},{rank % 2} (2)" in copies, f"rank {rank}: {copies}")

    def listed_functions_alone(self):
        for option, listed in (("--mpip-permit-list=MPI_Isend,MPI_I*recv,MPI_Bcast", True),
                               ("--mpip-reject-list=mpi_isend;MPI_I*recv;MPI_Bcast", False)):
            names = {"MPI_Isend", "MPI_Irecv", "MPI_Bcast"}
            seen = mpi_calls(self.session(f"listed-{listed}", option))
            expect(sorted(seen) == list(range(RANKS)), f"ranks {sorted(seen)}")
            for calls, _ in seen.values():
                if listed:
                    expect(set(calls) == names, f"recorded {sorted(calls)}")
                else:
                    expect(not names & set(calls), f"recorded {sorted(calls)}")
                    expect("MPI_Send_init" in calls, "too little is recorded")

    def no_wrappers_on_request(self):
        directory = self.session("off", "--mpi=off")
        expect(not mpi_calls(directory), "MPI calls are recorded")

    def a_result_for_each_rank(self):
        """mpirun kymo sample: the commands start in the same second and must not meet."""
        place = self.scratch.path("ranks")
        os.mkdir(place)
        command = self.mpirun(self.kymo.path, "sample", "-q", "--", self.program("exchange"))
        ended = run(command, environment=ROOT, cwd=place)
        expect(ended.status == 0, f"status {ended.status}: {ended.stderr[-2000:]}")
        results = glob.glob(os.path.join(place, "kymo-*-output", "[0-9]*-rank?"))
        names = sorted(result.rsplit("-", 1)[1] for result in results)
        expect(names == [f"rank{rank}" for rank in range(RANKS)], f"results {results}")
        for result in results:
            rank = int(result[-1])
            expect(set(mpi_calls(result)) == {rank}, f"{result} is of other ranks")
            expect(Result(result).has("profile.json"), f"{result} is not complete")
        for name, rank in [("latest", 0)] + [(f"latest-rank{rank}", rank) for rank in range(RANKS)]:
            target = os.readlink(os.path.join(os.path.dirname(results[0]), name))
            expect(re.fullmatch(rf"[0-9].*-rank{rank}", target), f"{name} is {target}")


def main():
    kymo, tap = Kymo(sys.argv[1]), Tap()
    with Scratch() as scratch:
        mpi = Mpi(kymo, os.path.abspath(sys.argv[2]), sys.argv[3], scratch)
        for name in ("every_call_once_with_its_bytes", "bytes_by_pair_of_ranks",
                     "messages_of_many_threads", "fortran", "fortran_2008",
                     "peers_and_communicators", "listed_functions_alone", "no_wrappers_on_request",
                     "beside_another_tool_of_the_profiling_interface", "a_result_for_each_rank"):
            tap.point(name.replace("_", " "), getattr(mpi, name))
    tap.finish()


main()
