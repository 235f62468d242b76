#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""A program that loads hundreds of libraries under kymo instrument: the functions of all of them are
counted, and a library costs no more for those that came before it.

usage: instrument_many.py KYMO   (TAP)
"""
import json
import os
import resource
import shutil
import statistics
import sys

from harness import Kymo, Scratch, Skipped, Tap, clean_environment, expect, require_tool, run

LIBRARY = """
__attribute__((noinline)) int inner(int x) { __asm__ volatile(""); return x * 3 + 1; }
int entry_of_library(int x) { __asm__ volatile(""); return inner(x) + inner(x + 1); }
"""
PROGRAM = """
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv)
{
	long sum = 0;
	for (int i = 0; i < atoi(argv[1]); i++) {
		char path[64];
		snprintf(path, sizeof(path), "./library-%d.so", i);
		void *library = dlopen(path, RTLD_NOW);
		if (!library)
			return 1;
		sum += ((int (*)(int))dlsym(library, "entry_of_library"))(i);
	}
	printf("%ld\\n", sum);
	return argc != 2;
}
"""
COUNT = 200
ROUNDS = 3


class Many:
    def __init__(self, kymo, scratch):
        self.kymo, self.directory, self.runs = kymo, scratch.directory, 0

    def build(self):
        require_tool("cc")
        for name, text in (("library.c", LIBRARY), ("program.c", PROGRAM)):
            with open(os.path.join(self.directory, name), "w", encoding="ascii") as stream:
                stream.write(text)
        first = os.path.join(self.directory, "library-0.so")
        for command in (["cc", "-O1", "-fpic", "-shared", "-o", first, "library.c"],
                        ["cc", "-O1", "-o", "program", "program.c", "-ldl"]):
            ended = run(command, cwd=self.directory)
            expect(ended.status == 0, f"{ended}")
        for i in range(1, COUNT):
            shutil.copy(first, os.path.join(self.directory, f"library-{i}.so"))

    def instrument(self, count):
        """{function: calls}, and the CPU time of the program."""
        self.runs += 1
        result = os.path.join(self.directory, f"run-{self.runs}")
        ended = run([self.kymo.path, "instrument", "-q", "--output-path", result, "--time-output=off",
                     "--format=json", "--", "./program", str(count)], cwd=self.directory,
                    environment=clean_environment())
        right = run(["./program", str(count)], cwd=self.directory)
        expect(ended.status == 0 and ended.stdout == right.stdout, f"{ended}")
        with open(os.path.join(result, "launch.json"), encoding="utf-8") as stream:
            launch = json.load(stream)
        with open(os.path.join(result, "profile.json"), encoding="utf-8") as stream:
            totals = json.load(stream)["region_totals"]
        calls = {row["name"]: row["count"] for row in totals}
        return calls, (launch["user_ns"] + launch["system_ns"]) / 1e9

    def are_all_counted(self):
        calls, _ = self.instrument(COUNT)
        for name, right in (("entry_of_library", COUNT), ("inner", 2 * COUNT)):
            expect(calls.get(name) == right, f"{name}: {calls.get(name)} calls; right: {right}")

    def costs_grow_evenly(self):
        half, whole = ([self.instrument(count)[1] for _ in range(ROUNDS)] for count in (COUNT // 2, COUNT))
        ratio = statistics.median(whole) / statistics.median(half)
        expect(ratio < 3, f"twice as many libraries take {ratio:.1f} times: {half} and {whole} s")
        Tap.note(f"measured: {COUNT} libraries take the program {1e3 * statistics.median(whole):.0f} ms of CPU time, "
                 "at most 300")
        expect(statistics.median(whole) < 0.3, f"{whole} s for {COUNT} libraries")

    def python_starts(self):
        """With plans that are there, CPU time of the program: the start of the interpreter, all functions recorded."""
        path = "/usr/bin/python3"
        if not os.path.exists(path):
            raise Skipped("no python3 of the distribution")
        times = {"bare": [], "recorded": []}
        for _ in range(ROUNDS + 1):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            run([path, "-c", "pass"])
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            times["bare"].append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
            result = os.path.join(self.directory, "python")
            ended = run([self.kymo.path, "instrument", "-q", "--output-path", result, "--time-output=off", "--force",
                         "--format=folded", "--", path, "-c", "pass"])
            expect(ended.status == 0, f"{ended}")
            with open(os.path.join(result, "launch.json"), encoding="utf-8") as stream:
                launch = json.load(stream)
            times["recorded"].append((launch["user_ns"] + launch["system_ns"]) / 1e9)
        bare, recorded = (statistics.median(values[1:]) for values in (times["bare"], times["recorded"]))
        Tap.note(f"measured: python3 -c pass takes {1e3 * recorded:.0f} ms of CPU time, {1e3 * bare:.0f} bare; "
                 "at most 60 more")
        expect(recorded - bare < 0.06, f"{times}")


def main():
    tap = Tap()
    with Scratch() as scratch:
        many = Many(Kymo(sys.argv[1]), scratch)
        many.build()
        tap.point("all are counted", many.are_all_counted)
        tap.point("costs grow evenly", many.costs_grow_evenly, retries=1)
        tap.point("python starts", many.python_starts, retries=1)
    tap.finish()


if __name__ == "__main__":
    main()
