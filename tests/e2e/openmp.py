#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""OpenMP through the tools interface of clang's runtime: what is recorded is what the program says
that it did, everything that begins ends, and other tools keep their place.

usage: openmp.py KYMO SOURCE-DIRECTORY     (TAP)
"""
import collections
import os
import sys

import spool
from harness import Kymo, Scratch, Tap, expect, require_tool, run

OTHER_TOOL = r"""
#include <stdio.h>
#include <stddef.h>
struct result { int (*initialize)(void *, int, void *); void (*finalize)(void *); unsigned long data; };
static int initialize(void *lookup, int device, void *data) { fputs("other tool\n", stderr); return 1; }
static void finalize(void *data) { }
struct result *ompt_start_tool(unsigned version, const char *runtime)
{
	static struct result result = {initialize, finalize, 0};
	return &result;
}
"""
GCC_PROGRAM = r"""
#include <stdio.h>
int main(void)
{
	int n = 0;
#pragma omp parallel reduction(+ : n)
	n++;
	return printf("%d\n", n) < 0;
}
"""
DECLINING_TOOL = "void *ompt_start_tool(unsigned version, const char *runtime) { return 0; }\n"


def build(arguments, text=None):
    built = run(["clang", "-O1", "-g", "-w", *arguments], stdin=text.encode() if text else b"")
    expect(built.status == 0, f"clang: {built.stderr[:2000]}")


def counts_of(directory):
    """Begins, marks and whole calls by name; and everything that is out of balance."""
    counts, wrong = collections.Counter(), []
    for thread, events in spool.regions(directory).items():
        events = [event for event in events if event.category == "ompt"]
        counts.update(event.name for event in events if event.what != "end")
        balance = collections.Counter()
        for event in events:
            balance[event.name] += {"begin": 1, "end": -1}.get(event.what, 0)
            if event.extra == "inner":
                wrong.append((thread, event.name, "ended by an outer one"))
        wrong += [(thread, name, left) for name, left in balance.items() if left]
    return counts, wrong


class Tests:
    def __init__(self, kymo, sources, scratch):
        self.kymo, self.scratch = kymo, scratch
        self.program = scratch.path("openmp")
        require_tool("clang")
        build(["-fopenmp", os.path.join(sources, "programs", "openmp.c"), "-o", self.program])

    def profile(self, name, *options, program=None, **environment):
        directory = self.scratch.path(name)
        ended = self.kymo.sample([program or self.program], directory, "--trace=on", *options,
                                 environment={"OMP_NUM_THREADS": "4", **environment})
        expect(ended.status == 0, f"status {ended.status}: {ended.stderr}")
        return directory, ended

    def counts_are_the_programs(self):
        directory, ended = self.profile("counts")
        counts, wrong = counts_of(directory)
        expect(not wrong, f"out of balance: {wrong}")
        told = [line.split() for line in ended.stdout.decode().splitlines()]
        expect(len(told) == 8, f"the program said {told}")
        for name, number in told[:-1]:
            seen = counts[name]
            # omp_test_lock() that succeeds is a wait as well
            expect(seen == int(number) or name == "omp_lock_wait" and seen >= int(number),
                   f"{name}: {seen} recorded, {number} done; all: {counts}")
        expect(counts["omp_thread"] >= 3, f"{counts['omp_thread']} worker threads")
        expect(counts["omp_lock_released"] == counts["omp_lock_wait"], "locks released and had")

    def values_say_where(self):
        directory, _ = self.profile("values")
        events = [event for events in spool.regions(directory).values() for event in events
                  if event.what == "begin" and event.name == "omp_parallel"]
        places = {event.values["code"] for event in events}
        # four constructs in four functions, and the one inside the last of them
        expect(len(places) == 5, f"parallel regions at {len(places)} places")
        expect(all(event.values["requested_threads"] in (2, 4) for event in events), "threads")

    def off_is_off(self):
        directory, _ = self.profile("off", "--use-ompt=off")
        counts, _ = counts_of(directory)
        expect(not counts, f"recorded {counts}")

    def another_tool_keeps_its_place(self):
        other = self.scratch.path("libother.so")
        build(["-shared", "-fPIC", "-xc", "-", "-o", other], OTHER_TOOL)
        directory, ended = self.profile("other", OMP_TOOL_LIBRARIES=other)
        expect("other tool" in ended.stderr, "the other tool was not started")
        counts, _ = counts_of(directory)
        expect(not counts, f"recorded {counts}")

    def a_tool_in_the_list_that_declines(self):
        other = self.scratch.path("libdeclines.so")
        build(["-shared", "-fPIC", "-xc", "-", "-o", other], DECLINING_TOOL)
        front = run([self.kymo.path, "sample", "-q", "-o", self.scratch.path("env"), "--", "env"])
        libraries = [line.split("=", 1)[1] for line in front.stdout.decode().splitlines()
                     if line.startswith("OMP_TOOL_LIBRARIES=")]
        expect(len(libraries) == 1, f"OMP_TOOL_LIBRARIES: {libraries}")
        directory, _ = self.profile("declines", OMP_TOOL_LIBRARIES=f"{other}:{libraries[0]}")
        counts, _ = counts_of(directory)
        expect(counts["omp_parallel"] == 120, f"recorded {counts}")

    def gcc_programs_run(self):
        require_tool("gcc")
        program = self.scratch.path("gomp")
        built = run(["gcc", "-x", "c", "-fopenmp", "-", "-o", program], stdin=GCC_PROGRAM.encode())
        expect(built.status == 0, f"gcc: {built.stderr}")
        _, ended = self.profile("gomp", program=program)
        expect(ended.stdout == b"4\n", f"said {ended.stdout}")


def main():
    tap = Tap()
    with Scratch() as scratch:
        tests = []

        def prepare():
            tests.append(Tests(Kymo(sys.argv[1]), sys.argv[2], scratch))
        tap.point("the program builds", prepare)
        for name in ("counts_are_the_programs", "values_say_where", "off_is_off",
                     "another_tool_keeps_its_place", "a_tool_in_the_list_that_declines",
                     "gcc_programs_run") if tests else ():
            tap.point(name.replace("_", " "), getattr(tests[0], name))
    tap.finish()


main()
