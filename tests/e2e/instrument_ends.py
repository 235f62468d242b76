#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""Calls that end with the process and calls that a fork divides, however they are recorded: as a trace, summed up in the
process, or as regions with components. The program says itself how long it was in what.

usage: instrument_ends.py KYMO     (TAP)
"""
import json
import os
import re
import sys

from harness import Kymo, Scratch, Tap, expect, run

PROGRAM = r"""
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
static volatile long sink;
__attribute__((always_inline)) static inline double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return (double)t.tv_sec + t.tv_nsec * 1e-9; }
__attribute__((noinline)) static void burn(double s) { double end = now() + s; while (now() < end) sink++; }
__attribute__((noinline)) static void child_part(void) { burn(0.03); burn(0.03); exit(0); }
__attribute__((noinline)) static void divided(void)
{
	burn(0.05);
	pid_t pid = fork();
	if (!pid) child_part();
	waitpid(pid, NULL, 0);
}
__attribute__((noinline)) static void last(void) { burn(0.02); exit(0); }
__attribute__((noinline)) static void *waits(void *x) { sink++; pause(); return x; }
int main(void)
{
	pthread_t thread;
	divided();
	pthread_create(&thread, NULL, waits, NULL);
	burn(0.01);
	last();
}
"""
COUNTS = {"main": 1, "burn": 5, "child_part": 1, "divided": 1, "last": 1, "waits": 1}
MODES = {"a trace": ["--trace=on"], "summed up": ["--trace=off"],
         "components": ["--trace=on", "--components=wall_clock,cpu_clock"]}


class Ends:
    def __init__(self, kymo, scratch):
        self.kymo, self.scratch = kymo, scratch
        source = scratch.path("ends.c")
        with open(source, "w", encoding="utf-8") as stream:
            stream.write(PROGRAM)
        self.program = scratch.path("ends")
        ended = run(["cc", "-O1", "-g", "-pthread", source, "-o", self.program])
        expect(ended.status == 0, f"{ended}")

    def calls(self, options):
        place = self.scratch.path("results")
        ended = run([self.kymo.path, "instrument", *options, "-f", "100", "--force", "--output", place, "--",
                     self.program])
        expect(ended.status == 0, f"{ended}")
        with open(os.path.join(place, "latest", "profile.json"), encoding="utf-8") as stream:
            profile = json.load(stream)
        found = {name: [0, 0, 0] for name in COUNTS}
        for row in profile["region_totals"]:  # one a process
            if row["name"] in found:
                values = (row["count"], row.get("open", 0), row["wall_clock"]["sum_ns"] * 1e-6)
                found[row["name"]] = [sum(pair) for pair in zip(found[row["name"]], values)]
        counts = {name: tuple(values[:2]) for name, values in found.items()}
        expect(counts == {name: (count, 0) for name, count in COUNTS.items()}, f"(calls, open ones): {counts}")
        # The child was in divided() and main() for its 60 ms as well.
        ms = {name: values[2] for name, values in found.items()}
        expect(139 <= ms["burn"] <= 200, f"{ms}")
        expect(59 <= ms["child_part"], f"{ms}")
        expect(50 + 2 * 60 - 1 <= ms["divided"] <= ms["main"], f"{ms}")
        expect(19 <= ms["last"] and 15 <= ms["waits"], f"{ms}")
        expect(re.search(r"\b10 calls recorded of 6 functions in 1 module\b", ended.stderr), ended.stderr)


def main():
    tap = Tap()
    with Scratch() as scratch:
        ends = Ends(Kymo(sys.argv[1]), scratch)
        for name, options in MODES.items():
            tap.point(name, lambda options=options: ends.calls(options))
    tap.finish()


if __name__ == "__main__":
    main()
