#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""Somebody shortens kymo's other files under a running program (records of devices and of NCCL, patch plans), or their
disk is full: the program runs on as bare, and what is missing is counted and said.

  shortened_records.py KYMO PROGRAMS SDK-CUDA DIRECTORY-OF-FAKE PLUGIN
"""
import glob
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time

from harness import Kymo, Scratch, Skipped, Tap, clean_environment, expect, run, wait_until

LAUNCHES = 800000


class Files:
    """Of a directory, cut while something runs."""

    def __init__(self, directory, *patterns):
        self.directory, self.patterns = directory, patterns

    def found(self):
        return [name for pattern in self.patterns
                for name in glob.glob(os.path.join(self.directory, "**", pattern), recursive=True)]

    def cut(self, size=0):
        names = self.found()
        for name in names:
            os.truncate(name, size)
        return names

    def cut_until(self, ended, size=0):
        """Every 20 ms, ten times, until it has ended; how often."""
        count = 0
        while count < 10 and not ended.wait(0.02):
            count += len(self.cut(size))
        return count


class Rank:
    """One process of nccl_job, led line by line."""

    def __init__(self, command, environment, **how):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        env=clean_environment() | environment, text=True, bufsize=1, **how)

    def tell(self, *lines):
        for line in lines:
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
            answer = self.process.stdout.readline()
            expect(answer == "ok\n", f"'{line}': {answer!r}, {self.process.poll()}")

    def end(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        _, self.stderr = self.process.communicate(timeout=60)
        return self.process.returncode


class Shortened:
    def __init__(self, scratch):
        self.kymo = Kymo(sys.argv[1])
        programs, self.cuda, self.fake, self.plugin = (os.path.abspath(path) for path in sys.argv[2:6])
        self.job, self.scratch = os.path.join(programs, "nccl_job"), scratch

    def _cuda(self, directory, *options, meanwhile=None, **how):
        """Launches kernels on a device that runs nothing. How it ended, and what `meanwhile` returned."""
        environment = {"LD_LIBRARY_PATH": self.fake}
        ended, results = threading.Event(), []
        worker = threading.Thread(target=lambda: results.append(meanwhile(ended) if meanwhile else 0))
        worker.start()
        try:
            done = self.kymo.sample([self.cuda, "launch", str(LAUNCHES)], directory, *options, environment=environment,
                                    quiet=False, timeout=200, **how)
        finally:
            ended.set()
            worker.join()
        return done, results[0]

    def _kernels(self, done):
        return int(re.search(r"kernels (\d+)", done.stdout.decode()).group(1))

    def _devices(self, directory):
        with open(os.path.join(directory, "profile.json"), encoding="utf-8") as stream:
            return json.load(stream)["devices"]

    def _all_are_accounted_for(self, directory, done, reason):
        """Records of kernels and of their calls that are there, and those that are counted as lost."""
        devices, kernels = self._devices(directory), self._kernels(done)
        there = sum(row["count"] for row in devices["kernels"]) + devices["calls"]
        lost = sum(row["count"] for row in devices["missing"] if reason in row["what"])
        expect(lost > 0, f"{devices['missing']}")
        expect(2 * kernels <= there + lost <= 2 * kernels + 100, f"{there} + {lost} of {2 * kernels}")
        expect([row["name"] for row in devices["kernels"]] in (["nothing"], []), devices["kernels"])

    def device_records(self):
        directory = self.scratch.path("gpu")
        done, cuts = self._cuda(directory, "--format=json", meanwhile=Files(directory, "*.gpu").cut_until)
        expect(done.status == 0 and cuts > 2, f"{done.status} after {cuts} cuts: {done.stderr[-2000:]}")
        expect("records of devices lost: the file was shortened" in done.stderr, done.stderr)
        self._all_are_accounted_for(directory, done, "shortened")

    def device_records_cut_in_the_middle(self):
        directory = self.scratch.path("gpu-middle")
        files = Files(directory, "*.gpu")
        done, cuts = self._cuda(directory, "--format=json", meanwhile=lambda ended: files.cut_until(ended, 5000))
        expect(done.status == 0 and cuts > 2, f"{done.status} after {cuts} cuts: {done.stderr[-2000:]}")
        self._all_are_accounted_for(directory, done, "shortened")

    def device_records_on_a_full_disk(self):
        place = self._small_disk("6m")
        try:
            directory = os.path.join(place, "results")
            done, _ = self._cuda(directory)
            expect(done.status == 0 and self._kernels(done) > LAUNCHES, f"{done.status}: {done.stderr[-2000:]}")
            expect("records of devices dropped: the disk is full" in done.stderr, done.stderr)
        finally:
            run(["umount", "-l", place])

    def device_records_and_a_limit_of_file_sizes(self):
        directory = self.scratch.path("gpu-limit")
        done, _ = self._cuda(directory, "--format=json",
                             preexec=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20)))
        expect(done.status == 0 and self._kernels(done) > LAUNCHES, f"{done.status}: {done.stderr[-2000:]}")
        expect("records of devices dropped: the disk is full" in done.stderr, done.stderr)
        sizes = [os.path.getsize(name) for name in Files(directory, "*.gpu").found()]
        expect(sizes and max(sizes) <= 1 << 20, sizes)

    # ---- NCCL ----

    def _rank(self, directory, **how):
        return Rank([self.job, self.plugin], {"KYMO_OUTPUT_PATH": directory, "KYMO_TIME_OUTPUT": "off"}, **how)

    def _operations(self, directory):
        ended = run([self.kymo.path, "report", "--format", "nccl-operations", directory])
        expect(ended.status == 0, ended.stderr)
        return [json.loads(line) for line in ended.stdout.decode().splitlines()][1:]

    def _report(self, directory):
        return " ".join(run([self.kymo.path, "report", directory]).stdout.decode().split())

    def nccl_records(self):
        """All of it is in memory: it is written again, and nothing is lost."""
        for size in 0, 5000, 100000:
            directory = self.scratch.path(f"nccl-{size}")
            files, rank = Files(directory, "*.nccl"), self._rank(directory)
            rank.tell("comm abc 2 0 world")
            for _ in range(5):
                rank.tell("loop 200 1000 0")
                expect(files.cut(size), "no file")
                rank.tell("loop 100 1000 0", "pause 0.1")
            rank.tell("finalize")
            expect(rank.end("exit 3") == 3, rank.stderr)
            expect(len(self._operations(directory)) == 1500, f"{len(self._operations(directory))} after {size}")
            expect("somebody shortened the file" in self._report(directory), self._report(directory))

    def nccl_records_of_a_killed_process(self):
        """The last records are written when it is gone, whatever was cut before."""
        for _ in range(5):
            directory = self.scratch.path("nccl-killed")
            shutil.rmtree(directory, ignore_errors=True)
            files, rank = Files(directory, "*.nccl"), self._rank(directory)
            rank.tell("comm abc 2 0 world", "loop 100 1000 0")
            files.cut()
            rank.tell("loop 23 1000 0")
            expect(rank.end("kill") == -signal.SIGKILL, rank.stderr)
            expect(len(self._operations(directory)) == 123, f"{len(self._operations(directory))} operations")

    def nccl_records_under_kymo(self):
        directory = self.scratch.path("nccl-sample")
        files = Files(directory, "*.nccl")
        rank = Rank([self.kymo.path, "sample", "-o", directory, "--time-output=off", "--", self.job, self.plugin], {})
        rank.tell("comm abc 2 0 world", "loop 100 1000 0")
        expect(files.cut(), "no file")
        rank.tell("loop 23 1000 0", "finalize")
        expect(rank.end("exit 4") == 4, rank.stderr)
        expect(len(self._operations(directory)) == 123, "operations are missing")
        expect("somebody shortened the file" in " ".join(rank.stderr.split()), rank.stderr)

    def nccl_records_on_a_disk_that_is_full_later(self):
        """Blocks are reserved, but those of a file that was cut are anybody's."""
        place = self._small_disk("8m")
        try:
            directory = os.path.join(place, "results")
            files, rank = Files(directory, "*.nccl"), self._rank(directory)
            rank.tell("comm abc 2 0 world", "loop 1000 1000 0", "pause 0.2")
            files.cut()
            try:
                with open(os.path.join(place, "fill"), "wb") as stream:
                    while True:
                        stream.write(bytes(65536))
            except OSError:
                pass
            rank.tell("loop 1000 1000 0", "pause 0.5", "finalize")
            expect(rank.end("exit 3") == 3, rank.stderr)
            os.unlink(os.path.join(place, "fill"))
        finally:
            run(["umount", "-l", place])

    def nccl_rank_is_alone_in_its_process(self):
        """What writes its records is no thread and no child of the process, and does not outlive it."""
        directory = self.scratch.path("nccl-alone")
        rank = self._rank(directory)
        rank.tell("comm abc 2 0 world", "loop 10 1000 0")
        pid = rank.process.pid
        expect(len(os.listdir(f"/proc/{pid}/task")) == 2, "not the program's thread and the plugin's")
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as stream:
            expect(not stream.read().split(), "it has a child")
        before = wait_until(self._keepers, "nobody keeps the records", 5)
        expect(rank.end("kill") == -signal.SIGKILL, rank.stderr)
        wait_until(lambda: len(self._keepers()) < len(before), "it outlives its process", 1)

    def _keepers(self):
        found = []
        for name in glob.glob("/proc/[0-9]*/stat"):
            try:
                with open(name, encoding="utf-8") as stream:
                    text = stream.read()
            except OSError:
                continue
            if "(kymo-nccl)" in text and text.rpartition(") ")[2][0] not in "ZX":
                found.append(text.split()[0])
        return found

    # ---- plans ----

    def plans_of_patches(self):
        source, program = self.scratch.path("calls.c"), self.scratch.path("calls")
        with open(source, "w", encoding="ascii") as stream:
            stream.write("""
                #include <stdio.h>
                #include <time.h>
                __attribute__((noinline)) long once(long n) { __asm__ volatile("" : "+r"(n)); return n * 3; }
                __attribute__((noinline)) long work(long n) { long s = 0; while (n--) s += once(n); return s; }
                int main(void)
                {
                    while (clock() < 2 * CLOCKS_PER_SEC)
                        work(1000);
                    puts("end");
                    return 7;
                }
                """)
        built = run(["cc", "-O1", "-g", "-o", program, source])
        expect(built.status == 0, built.stderr)
        cache, directory = self.scratch.path("cache"), self.scratch.path("plans")
        os.mkdir(cache, 0o700)
        process = subprocess.Popen([self.kymo.path, "instrument", "-q", "--output", directory, "--time-output=off", "--",
                                    program], env=clean_environment() | {"XDG_CACHE_HOME": cache},
                                   stdout=subprocess.PIPE)
        files = Files(self.scratch.directory, "*.plan", "*.modes")
        wait_until(lambda: len(files.found()) > 1 or process.poll() is not None, "no plan")
        time.sleep(0.7)
        names = files.cut()
        expect(names and process.poll() is None, f"nothing was cut: {names}")
        stdout, _ = process.communicate(timeout=100)
        expect(process.returncode == 7 and stdout == b"end\n", f"{process.returncode} {stdout}")

    def _small_disk(self, size):
        place = self.scratch.path(f"disk-{size}")
        os.makedirs(place, exist_ok=True)
        if run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", place]).status != 0:
            raise Skipped("cannot mount")
        return place


def main():
    tap = Tap()
    with Scratch() as scratch:
        shortened = Shortened(scratch)
        for name in sorted(name for name in vars(Shortened) if not name.startswith("_")):
            if not sys.argv[6:] or name in sys.argv[6:]:
                tap.point(name.replace("_", " "), getattr(shortened, name))
    tap.finish()


main()
