#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""Threads that change context often are sampled by the source that costs least there, and by the
finer one once they no longer do: programs/switches.c measures its own CPU time. The sums stay right,
the change is told, and what the user chose stays as chosen.

usage: switches.py KYMO PROGRAM-DIRECTORY
"""
import os
import re
import statistics
import sys

from harness import Kymo, Result, Scratch, Skipped, Tap, expect, run

ROUNDS = 5
SIGNAL_ROUNDS = 20
COST_LIMIT = 1.5     # times bare; 1.05 to 1.2 on a quiet machine, 5 with an event a thread
START_LIMIT = 1.2    # times what a thread takes bare, made and joined; 0.5 to 1.1 where five runs were measured


def on_one_processor():
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


class Switches:
    def __init__(self, kymo, programs, scratch):
        self.kymo, self.scratch, self.runs = kymo, scratch, 0
        self.program = os.path.join(programs, "switches")

    def sample(self, arguments, *options, quiet=False, pin=on_one_processor):
        self.runs += 1
        directory = self.scratch.path(f"run-{self.runs}")
        ended = self.kymo.sample([self.program] + arguments, directory, *options, quiet=quiet, preexec=pin)
        expect(ended.status == 0, f"{ended}")
        result = Result(directory)
        source = result.processes()[0]["cpu_source"]
        if "--sampling-source=timer" not in options and not source.startswith("perf"):
            raise Skipped(f"perf events are not permitted here: {source}")
        return result, ended.stderr, self.used_ns(ended)

    @staticmethod
    def used_ns(ended):
        return int(re.search(rb"used (\d+)", ended.stdout)[1])

    def bare(self, arguments, pin=on_one_processor):
        return self.used_ns(run([self.program] + arguments, preexec=pin))

    @staticmethod
    def notices(result, kind):
        return [notice for process in result.processes() for notice in process["notices"]
                if notice["kind"] == kind]

    def is_covered(self, result):
        """What samples stand for, beside what the kernel counted for the process."""
        for process in result.processes():
            covered = process["covered_cpu_ns"]
            totals = [thread["total_cpu_ns"] for thread in result.json("profile.json")["threads"]
                      if thread["process"] == process["id"]]
            total = sum(totals)
            expect(covered >= 0.95 * total - 8e6 * len(totals) and covered <= 1.05 * total + 8e6,
                   f"{covered / 1e6:.0f} of {total / 1e6:.0f} ms are covered")
        samples = sum(row.values["cpu"] for row in result.profile().samples
                      if row.stack[0].function != "[unsampled]")
        covered = sum(process["covered_cpu_ns"] for process in result.processes())
        expect(abs(samples - covered) < 0.05 * covered, f"{samples} in samples, {covered} in processes")

    def is_changed(self, arguments, threads):
        result, text, used = self.sample(arguments)
        told = self.notices(result, "source_changed")
        expect(len(told) == threads, f"{len(told)} of {threads} threads")
        expect(all(notice["argument"] > 100 for notice in told), f"{told[:3]}")
        expect("sampling source: CPU-time timers in " in text, text)
        self.is_covered(result)
        covered = sum(process["covered_cpu_ns"] for process in result.processes())
        # The time since a thread's last tick has no sample.
        expect(0.85 * used - 8e6 * threads < covered < 1.05 * used, f"{covered / 1e6:.0f} of {used / 1e6:.0f} ms")

    def costs(self, arguments):
        ratios = []
        for _ in range(ROUNDS):
            bare = self.bare(arguments)
            ratios.append(self.sample(arguments, quiet=True)[2] / bare)
        expect(statistics.median(ratios) < COST_LIMIT, f"{' '.join(f'{ratio:.2f}' for ratio in ratios)} times bare")

    def changes_back(self):
        """It computes for 1.2 s: by the kernel's ticks alone it would have 300 samples of that."""
        result, _, _ = self.sample(["changes", "60000"], "--freq=1000")
        expect(self.notices(result, "source_changed"), "the source was never changed")
        computing = [row for row in result.profile().samples
                     if any(frame.function == "compute" for frame in row.stack)]
        count = sum(row.values["samples"] for row in computing)
        cpu = sum(row.values["cpu"] for row in computing)
        expect(count > 500, f"{count} samples of the time that it computed")
        expect(abs(cpu - 1.2e9) < 0.05 * 1.2e9, f"compute has {cpu / 1e6:.0f} ms; right: 1,200")
        self.is_covered(result)

    def stays_as_chosen(self):
        result, text, _ = self.sample(["threads", "2", "20000"], "--sampling-source=perf")
        expect(not self.notices(result, "source_changed"), "the user chose perf events")
        expect(len(self.notices(result, "switch_cost")) == 2, f"{self.notices(result, 'switch_cost')}")
        expect("perf events cost more than 5 %" in " ".join(text.split()), text)
        result, text, _ = self.sample(["threads", "2", "20000"], "--sampling-source=timer")
        expect(not self.notices(result, "source_changed") and not self.notices(result, "switch_cost"), text)

    def starts_are_cheap(self):
        """All that the start and the end of a thread add, kymo's own process included."""
        added = []
        for _ in range(ROUNDS):
            bare = self.bare(["starts", "10000"], pin=None)
            result, _, used = self.sample(["starts", "10000"], "--format=folded,json", quiet=True, pin=None)
            own = sum(process["helper_cpu_ns"] for process in result.processes())
            added.append((used + own - bare) / bare)
        expect(statistics.median(added) < START_LIMIT,
               f"{' '.join(f'{share:.2f}' for share in added)} times bare, which took {bare / 1e7:.1f} us a thread")

    def pending_signals_stay_ours(self):
        """A plain signal of an event that is closed meanwhile ends nothing: its default action would."""
        for _ in range(SIGNAL_ROUNDS):
            self.sample(["processes", "20000"], "--freq=10000", "--sampling-signal=SIGPROF", quiet=True)


def main():
    tap = Tap()
    with Scratch() as scratch:
        switches = Switches(Kymo(sys.argv[1]), os.path.abspath(sys.argv[2]), scratch)
        for name, arguments, threads in (("processes", ["processes", "60000"], 2),
                                         ("two threads", ["threads", "2", "60000"], 2),
                                         ("64 threads", ["threads", "64", "4000"], 64)):
            tap.point(f"{name}: the source changes",
                      lambda a=arguments, n=threads: switches.is_changed(a, n), retries=1)
            tap.point(f"{name}: the cost", lambda a=arguments: switches.costs(a), retries=1)
        tap.point("changes back", switches.changes_back, retries=1)
        tap.point("the user's choice stays", switches.stays_as_chosen, retries=1)
        tap.point("signals of closed events", switches.pending_signals_stay_ours)
        tap.point("threads start and end", switches.starts_are_cheap, retries=1)
    tap.finish()


if __name__ == "__main__":
    main()
