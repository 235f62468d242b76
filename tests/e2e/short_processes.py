#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""Processes that use little CPU time: each is in the results with its command and CPU time, they cost next to
nothing, and one that lives on is sampled.

usage: short_processes.py KYMO PROGRAM-DIRECTORY [NAME...]     (TAP)
"""
import os
import re
import resource
import statistics
import subprocess
import sys

from harness import (Failed, Kymo, Result, Scratch, Tap, clean_environment, expect, run)

SHARED = "short-processes"
CHILDREN = 300
# Of CPU time, a process, on machines where a bare child takes less than that; on slower ones (virtual machines whose
# page faults cost twenty times as much) no more than the child itself takes.
ADDED_MS = 1.0

SPAWN = """
import os, sys
for _ in range(int(sys.argv[1])):
    os.waitpid(os.posix_spawn("/bin/true", ["true", "argument"], os.environ), 0)
"""

FORK = """
import os, sys
for number in range(int(sys.argv[1])):
    child = os.fork()
    if not child:
        os._exit(0)
    os.waitpid(child, 0)
"""

CHAIN = """
import os, sys
for _ in range(int(sys.argv[1])):
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        os._exit(0)
print(sum(1 for line in open("/proc/self/maps")))
"""


def cpu_of(command):
    """CPU time of a command and all its children, in ms, and its output."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    ended = subprocess.run(command, capture_output=True, text=True, timeout=200, env=clean_environment(), check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    expect(ended.returncode == 0, f"{command}: status {ended.returncode}: {ended.stderr[-300:]}")
    return 1e3 * (after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime), ended.stdout


def named(process):
    return os.path.basename(process["executable"])


def cpu_ns(result, processes):
    ids = {process["id"] for process in processes}
    return sum(thread["total_cpu_ns"] for thread in result.json("profile.json")["threads"] if thread["process"] in ids)


class ShortProcesses:
    """Each public method is one test."""

    def __init__(self, kymo, programs, scratch):
        self.kymo, self.programs, self.scratch = kymo, programs, scratch

    def _sample(self, name, command, *options, status=0):
        directory = self.scratch.path(name)
        ended = self.kymo.sample(command, directory, *options)
        expect(ended.status == status, f"status {ended.status}: {ended.stderr[-300:]}")
        return Result(directory)

    def _program(self, name, *arguments):
        return [os.path.join(self.programs, name), *arguments]

    @staticmethod
    def _spools(result):
        return [name for name in os.listdir(os.path.join(result.directory, "spool")) if name.endswith(".spool")]

    @staticmethod
    def _starts_are_slow():
        """Where exec and loader alone take some milliseconds, the timer of 1 ms wakes some processes in time."""
        return cpu_of([sys.executable, "-c", SPAWN, "40"])[0] / 40 > 3

    def all_are_there(self):
        """Each child is a process with its command and parent, and has no file of its own."""
        result = self._sample("there", [sys.executable, "-c", SPAWN, "40"], "--format=json,folded")
        processes = result.processes()
        parent = [process for process in processes if named(process).startswith("python")]
        children = [process for process in processes if named(process) == "true"]
        expect(len(parent) == 1 and len(children) == 40, f"{len(parent)} parents, {len(children)} children")
        for child in children:
            expect(child["command_line"] == "true argument", f"command {child['command_line']!r}")
            expect(child["parent_pid"] == parent[0]["pid"], f"parent {child['parent_pid']}")
            expect(child["state"] == "exited", f"state {child['state']}")
        spools = self._spools(result)
        expect(result.has(SHARED) and len(spools) < (20 if self._starts_are_slow() else 6), f"files: {sorted(spools)}")

    def sums(self):
        """CPU time that is not sampled is in the profile, at the process that used it."""
        script = "for i in 1 2 3 4 5 6 7 8 9 10; do " + " ".join(self._program("short_burn", "4")) + "; done"
        result = self._sample("sums", ["sh", "-c", script], "--format=json,folded")
        burnt = [process for process in result.processes() if named(process) == "short_burn"]
        total = cpu_ns(result, burnt)
        profile = result.json("profile.json")
        nodes = {node["id"] for node in profile["nodes"] if node["process"] in {process["id"] for process in burnt}}
        shown = sum(node.get("cpu_ns", 0) for node in profile["nodes"] if node["id"] in nodes)
        expect(len(burnt) == 10, f"{len(burnt)} processes")
        most = 12e6 + (1e7 * cpu_of(self._program("short_burn", "4"))[0] if self._starts_are_slow() else 40e6)
        expect(40e6 <= total <= most, f"{total / 1e6:.1f} ms of CPU time, and they used 40 of at most {most / 1e6:.1f}")
        expect(abs(shown - total) <= 1e6, f"{shown / 1e6:.1f} ms in the profile, {total / 1e6:.1f} ms used")

    def longer_ones_are_sampled(self):
        """A process that lives on has its samples where it spent its time."""
        result = self._sample("longer", ["sh", "-c", " ".join(self._program("short_burn", "200")) + "; true"],
                              "--format=json,pprof")
        burnt = [process for process in result.processes() if named(process) == "short_burn"]
        expect(len(burnt) == 1, f"{len(burnt)} processes")
        total = cpu_ns(result, burnt)
        share = result.inclusive_shares().get("burn", 0)
        expect(195e6 <= total <= 230e6, f"{total / 1e6:.1f} ms of CPU time, and it used 200")
        expect(share >= 0.9, f"burn has {share:.1%} of the samples")

    def told(self):
        """The summary says how many were not sampled, and what they used."""
        directory = self.scratch.path("told")
        ended = self.kymo.sample([sys.executable, "-c", SPAWN, "40"], directory, quiet=False)
        text = ended.stderr.decode() if isinstance(ended.stderr, bytes) else ended.stderr
        found = re.search(r"([0-9]+) short processes with [0-9.]+ (us|ms) of CPU time in total ended before sampling began",
                          " ".join(text.split()))
        expect(found, text[:800])
        # The parent has a file as well; a child that has one was sampled.
        expect(int(found.group(1)) + len(self._spools(Result(directory))) - 1 == 40, found.group(0))

    def images(self):
        """An image that is executed follows the one before it, whether these were sampled or not."""
        script = "exec sh -c 'exec " + " ".join(self._program("short_burn", "60")) + "'"
        result = self._sample("images", [sys.executable, "-c", f'import os; os.execlp("sh", "sh", "-c", """{script}""")'],
                              "--format=json")
        images = sorted(result.processes(), key=lambda process: process["image"])
        expect([process["image"] for process in images] == [0, 1, 2, 3], f"{[p['image'] for p in images]}")
        expect(len({process["pid"] for process in images}) == 1, "one pid")
        expect([process["state"] for process in images[:3]] == ["replaced_by_exec"] * 3,
               f"{[p['state'] for p in images]}")
        expect(named(images[3]) == "short_burn", named(images[3]))

    def wakes_while_it_starts(self):
        """The timer may wake a process before kymo's start in it is over: where the machine is busy, say."""
        command = ["/bin/sh", "-c", "for i in 1 2 3; do sh -c 'trap : USR1; echo in; (exit 3)'; echo $?; done"]
        environment = {**clean_environment(), "LD_PRELOAD": self._program("libslow_start.so")[0]}
        directory = self.scratch.path("wakes")
        bare = subprocess.run(command, capture_output=True, text=True, timeout=100, env=environment, check=False)
        expect(bare.stdout == "in\n3\n" * 3, f"bare: {bare.stdout!r}, {bare.stderr!r}")
        for source in ("auto", "timer"):
            ended = subprocess.run([self.kymo.path, "sample", "-q", "--format=json", f"--sampling-source={source}", "-o",
                                    f"{directory}-{source}", "--", *command], capture_output=True, text=True, timeout=100,
                                   env=environment, check=False)
            expect((ended.returncode, ended.stdout) == (bare.returncode, bare.stdout),
                   f"{source}: status {ended.returncode}: {ended.stdout!r}, {ended.stderr!r}")

    def _cost(self, name, program, children):
        """Added CPU time a child: medians of turns."""
        command, directory = [sys.executable, "-c", program], self.scratch.path(name)
        bare, with_kymo = [], []
        for turn in range(5):
            rows = []
            for prefix in ([], [self.kymo.path, "sample", "-q", "--format=json", "-o", f"{directory}-{turn}", "--"]):
                few, many = (cpu_of(prefix + command + [str(count)])[0] for count in (10, 10 + children))
                rows.append((many - few) / children)
            bare.append(rows[0])
            with_kymo.append(rows[1])
        bare, with_kymo = statistics.median(bare), statistics.median(with_kymo)
        Tap.note(f"{name}: bare {bare:.3f} ms a child, kymo {with_kymo:.3f} ms")
        added = with_kymo - bare
        expect(added <= max(ADDED_MS, bare), f"{added:.2f} ms added, {with_kymo / bare:.1f} times bare")

    def cost_of_executed(self):
        self._cost("executed", SPAWN, CHILDREN)

    def cost_of_forked(self):
        self._cost("forked", FORK, CHILDREN)

    def depth(self):
        """A child's memory has no more mappings for having many ancestors."""
        few, many = (int(self._run_chain(str(depth))) for depth in (2, 100))
        expect(many <= few + 20, f"{few} mappings at depth 2, {many} at depth 100")

    def _run_chain(self, depth):
        directory = self.scratch.path("depth" + depth)
        return cpu_of([self.kymo.path, "sample", "-q", "--format=json", "-o", directory, "--", sys.executable, "-c", CHAIN,
                       depth])[1]


def main():
    tap = Tap()
    with Scratch() as scratch:
        tests = ShortProcesses(Kymo(sys.argv[1]), sys.argv[2], scratch)
        for name in [name for name in (sys.argv[3:] or vars(ShortProcesses)) if not name.startswith("_")]:
            tap.point(name.replace("_", " "), getattr(tests, name), retries=2 if name.startswith("cost") else 0,
                      retried=Failed)
    return tap.finish()


if __name__ == "__main__":
    sys.exit(main())
