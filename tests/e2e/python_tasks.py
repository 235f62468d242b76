#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""Tasks of asyncio as frames: CPU time by task, which tasks wait for them, threads with loops of their own.

usage: python_tasks.py KYMO     (TAP)
"""
import os
import re
import sys

from harness import Kymo, Result, Scratch, Tap, expect, require_tool
from python_modes import VERSIONS, python_of

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "python", "tasks.py")
TASK = re.compile(r"^\[task (.*)\]$")
OTHERS = "[tasks beyond SAMPLING_TASK_NAMES]"
SECONDS = 1.5
# Shares of the main thread's loop; the tasks outside of each, outermost first, where "main" is what runs main().
SHARES = {("alone",): 20, ("main", "heavy"): 40, ("main", "l\u00efght"): 10, ("main", "waited"): 10, ("main", "direct"): 10,
          ("main",): 10}
POINTS = 2.5


class Tasks:
    def __init__(self, kymo, scratch):
        self.kymo, self.scratch = kymo, scratch
        self.count = 0

    def profile(self, version, arguments, *options):
        self.count += 1
        directory = self.scratch.path(f"run-{self.count}")
        ended = self.kymo.sample([python_of(version), PROGRAM, str(SECONDS), *arguments], directory, *options)
        expect(ended.status == 0 and ended.stdout == b"done\n", f"{ended}")
        return Result(directory)

    @staticmethod
    def spinning(result):
        """(names of tasks, outermost first; frames) of each stack that spins, with its weight."""
        for stack, weight in result.folded():
            if any(frame.startswith("spin (tasks.py:") for frame in stack):
                names = [TASK.match(frame)[1] for frame in stack if TASK.match(frame)]
                # asyncio numbers tasks without a name.
                yield tuple("main" if name.startswith("Task-") else name for name in names), stack, weight

    def shares(self, version):
        result = self.profile(version, [], "--freq=1000")
        sums, threaded = {}, 0
        for names, stack, weight in self.spinning(result):
            if names and names[-1] == "threaded":
                expect(names == ("threaded",), f"{names}")
                threaded += weight
                continue
            sums[names] = sums.get(names, 0) + weight
            self.check_place(names, stack)
        whole = sum(sums.values())
        nameless = sums.pop((), 0)
        expect(nameless <= 0.05 * whole, f"{nameless} of {whole} without a task")
        whole -= nameless
        seen = {names: 100 * weight / whole for names, weight in sums.items()}
        # While "alone" runs nobody waits for it; then main() does.
        seen[("alone",)] = seen.get(("alone",), 0) + seen.pop(("main", "alone"), 0)
        for names, wanted in SHARES.items():
            expect(abs(seen.get(names, 0) - wanted) <= POINTS, f"{names}: {seen.get(names, 0):.1f} %, not {wanted}: {seen}")
        expect(set(seen) == set(SHARES), f"{seen}")
        expect(abs(threaded / whole - 0.25) <= 0.03, f"other thread's loop: {threaded} beside {whole}")

    @staticmethod
    def check_place(names, stack):
        """Between the event loop's frames and the coroutine's."""
        if not names:
            return
        first = next(i for i, frame in enumerate(stack) if TASK.match(frame))
        expect(any("Handle._run" in frame or frame.startswith("_run (events.py") for frame in stack[:first]),
               ";".join(stack))
        behind = stack[first + len(names)]
        expect(behind.startswith(("work (tasks.py:", "generate (tasks.py:", "main (tasks.py:")), ";".join(stack))

    def limit(self):
        result = self.profile("3.11", ["many"], "--freq=1000", "--sampling-task-names=20")
        names = {frame for stack, _ in result.folded() for frame in stack if TASK.match(frame)}
        others = sum(weight for stack, weight in result.folded() if OTHERS in stack)
        expect(5 <= len(names) <= 20, f"{len(names)} names: {names}")
        expect(others > 0, f"no row for others: {names}")

    def none(self):
        result = self.profile("3.11", [], "--sampling-task-names=0")
        expect(not [frame for stack, _ in result.folded() for frame in stack if frame.startswith("[task")], "named")

    def blocked(self, version):
        """A coroutine that blocks its loop is told from the loop that waits for something to do."""
        result = self.profile(version, ["block"], "--realtime", "--sampling-realtime-freq=500")
        blocked = 0
        for sample in result.profile().samples:
            names = [frame.function for frame in sample.stack]
            if "block" in names:
                expect("[task blocker]" in names, f"{names}")
                blocked += sample.values["wall"]
        expect(abs(blocked / 1e9 - 0.5 * SECONDS) <= 0.1 * SECONDS, f"blocked for {blocked / 1e9} s")


def main():
    tap, kymo = Tap(), Kymo(sys.argv[1])
    require_tool("/usr/bin/python3")
    with Scratch() as scratch:
        tasks = Tasks(kymo, scratch)
        for version in VERSIONS:
            if version != "3.14":
                tap.point(f"CPU time by task, {version}", lambda version=version: tasks.shares(version), retries=1)
        for version in ("3.8", "3.11", "3.13"):
            tap.point(f"a task that blocks its loop, {version}", lambda version=version: tasks.blocked(version), retries=1)
        tap.point("the names are limited", tasks.limit)
        tap.point("no names", tasks.none)
    tap.finish()


if __name__ == "__main__":
    main()
