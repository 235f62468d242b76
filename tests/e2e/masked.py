#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""A sample that comes late does not take the time of what ran before: programs/masked.c works while
signals are blocked. Where kymo sees the call it samples the work; else the time has a row of its own.
What takes long in the kernel stays where it is.

usage: masked.py KYMO PROGRAM-DIRECTORY
"""
import os
import sys

from harness import Kymo, Result, Scratch, Tap, expect

BLOCKED = "[not sampled: signals blocked]"
SOURCES = ("auto", "timer")


class Masked:
    def __init__(self, kymo, programs, scratch):
        self.kymo, self.scratch = kymo, scratch
        self.program = os.path.join(programs, "masked")

    def shares(self, way, source, *options):
        directory = self.scratch.path(f"{way}-{source}{len(options)}")
        ended = self.kymo.sample([self.program, way], directory, f"--sampling-source={source}", *options, quiet=False)
        expect(ended.status == 0 and ended.stdout == b"masked: OK\n", f"{ended}")
        result = Result(directory)
        return result.inclusive_shares(), ended.stderr, result

    def is_a_row_of_its_own(self, way, source):
        shares, text, result = self.shares(way, source)
        expect(shares.get(BLOCKED, 0) > 0.8, f"{way}: {shares.get(BLOCKED, 0):.1%} is blocked")
        expect("was not sampled, because the program had all signals blocked" in text, text)
        for thread in result.json("profile.json")["threads"]:
            parts = thread["covered_cpu_ns"] + thread.get("signals_blocked_cpu_ns", 0)
            expect(parts <= thread["total_cpu_ns"] <= parts * 1.05 + 2e7, f"{thread}")
        folded = result.folded()
        expect(sum(weight for stack, weight in folded if stack[-1] == BLOCKED) >
               0.7 * sum(weight for _, weight in folded), "not in the folded stacks")

    def is_sampled(self, source):
        shares, _, _ = self.shares("syscall", source)
        expect(shares.get("masked_work", 0) > 0.7, f"masked_work has {shares.get('masked_work', 0):.1%}")

    def kernel_time_stays(self, source):
        shares, _, _ = self.shares("kernel", source)
        expect(shares.get("kernel_work", 0) > 0.7 and shares.get(BLOCKED, 0) < 0.05,
               f"kernel_work {shares.get('kernel_work', 0):.1%}, blocked {shares.get(BLOCKED, 0):.1%}")


def main():
    tap = Tap()
    with Scratch() as scratch:
        masked = Masked(Kymo(sys.argv[1]), os.path.abspath(sys.argv[2]), scratch)
        for source in SOURCES:
            for way in ("raw", "ppoll", "handler"):
                tap.point(f"{way} {source}", lambda way=way, source=source: masked.is_a_row_of_its_own(way, source))
            tap.point(f"syscall {source}", lambda source=source: masked.is_sampled(source), retries=1)
            tap.point(f"kernel {source}", lambda source=source: masked.kernel_time_stays(source), retries=1)
    tap.finish()


if __name__ == "__main__":
    main()
