#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""Kokkos Tools in whole programs; a small loader stands in for Kokkos.

usage: kokkos.py KYMO SOURCE-DIRECTORY     (TAP)
"""
import collections
import os
import sys

import spool
from harness import Kymo, Scratch, Tap, expect, run

WANTED = {("begin", "step"): 100, ("end", "step"): 100, ("begin", "axpy"): 100, ("end", "axpy"): 100,
          ("begin", "dot"): 100, ("end", "dot"): 100, ("begin", "kokkos_deep_copy"): 100,
          ("end", "kokkos_deep_copy"): 100, ("mark", "kokkos_allocate"): 100}


class Tests:
    def __init__(self, scratch):
        self.kymo, self.scratch = Kymo(sys.argv[1]), scratch
        self.program = scratch.path("loader")
        built = run(["gcc", "-O1", "-g", os.path.join(sys.argv[2], "programs", "kokkos_loader.c"),
                     "-o", self.program, "-ldl", "-lpthread"])
        expect(built.status == 0, f"gcc: {built.stderr}")
        self.bare = run([self.program])

    def counts(self, name, *options, **environment):
        directory = self.scratch.path(name)
        ended = self.kymo.sample([self.program], directory, "--trace=on", *options,
                                 environment=environment)
        expect(ended.status == 0 and ended.stdout == self.bare.stdout and not ended.stderr,
               f"{ended}")
        counts = collections.Counter()
        for events in spool.regions(directory).values():
            counts.update((event.what, event.name) for event in events
                          if event.category == "kokkos")
        return counts

    def everything(self):
        counts = self.counts("everything")
        expect(counts == WANTED, f"recorded {counts}")

    def settings(self):
        counts = self.counts("settings", "--kokkosp-prefix=k:", "--kokkosp-name-length-max=3",
                             "--kokkosp-deep-copy=off")
        expect(counts == {("begin", "k:dot"): 100, ("end", "k:dot"): 100,
                          ("mark", "kokkos_allocate"): 100}, f"recorded {counts}")

    def off(self):
        expect(not self.counts("off", "--kokkos=off"), "something was recorded")

    def another_tool_keeps_its_place(self):
        for variable in ("KOKKOS_TOOLS_LIBS", "KOKKOS_PROFILE_LIBRARY"):
            counts = self.counts(variable, **{variable: "/nonexistent/tool.so"})
            expect(not counts, f"{variable}: recorded {counts}")


def main():
    tap = Tap()
    with Scratch() as scratch:
        tests = []
        tap.point("the loader builds", lambda: tests.append(Tests(scratch)))
        for name in ("everything", "settings", "off", "another_tool_keeps_its_place") if tests else ():
            tap.point(name.replace("_", " "), getattr(tests[0], name))
    tap.finish()


main()
