#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""kymo instrument -l and --coverage: exact counts of loops and lines, and programs that do the same.

    instrument_coverage.py KYMO
"""
import json
import os
import re
import shutil
import sys

from harness import Kymo, Scratch, Tap, expect, run

# "=N": how often the line is executed; "=0": never.
SOURCE = r"""
#include <stdio.h>
#define KEEP __attribute__((noinline))
volatile long sink;
KEEP void loops(int n)
{
	for (int i = 0; i < n; i++) {
		sink += i; // =16
		for (int j = 0; j < 7; j++)
			sink ^= j * 3; // =112
		int k = 9;
		do {
			sink -= k; // =144
		} while (--k);
	}
	sink++; // =2
}
KEEP int choose(int n)
{
	if (n < 0) {
		sink += 100; // =0
		return -1; // =0
	}
	if (n > 100) {
		sink -= 3; // =0
		puts("never"); // =0
	} else {
		sink += 2; // =4
	}
	switch (n) {
	case 0: sink += 5; break; // =1
	case 1: sink -= 5; break; // =1
	case 2: sink ^= 7; break; // =1
	case 3: sink *= 7; break; // =1
	case 4: sink += 9; break; // =0
	case 5: sink -= 9; break; // =0
	default: sink = 0; // =0
	}
	return n * 2;
}
KEEP int never(int n)
{
	sink += n; // =0
	return n + 1; // =0
}
int main(int argc, char **argv)
{
	(void)argv;
	loops(5); // =1
	loops(11); // =1
	for (int i = 0; i < 4; i++)
		choose(i); // =4
	if (argc > 1)
		never(argc); // =0
	printf("%ld\n", sink); // =1
	return 3; // =1
}
"""


class Tests:
    def __init__(self, kymo, scratch):
        self.kymo = Kymo(kymo)
        self.scratch = scratch
        self.count = 0
        self.source = scratch.path("subject.c")
        with open(self.source, "w", encoding="utf-8") as stream:
            stream.write(SOURCE)

    def build(self, *flags):
        self.count += 1
        program = self.scratch.path(f"subject{self.count}")
        built = run(["gcc", "-g", *flags, self.source, "-o", program])
        expect(built.status == 0, built.stderr)
        return program

    def instrument(self, command, *options):
        self.count += 1
        directory = self.scratch.path(f"out{self.count}")
        bare = run(command)
        line = [self.kymo.path, "instrument", "-q", "--output", directory, "--time-output=off",
                "--min-address-range=0", "--min-instructions=0", f"--plan-cache={self.scratch.path('cache')}",
                *options, "--", *command]
        ended = run(line)
        expect(ended.status == bare.status, f"status {ended.status}: {' '.join(line)}\n{ended.stderr}")
        expect(ended.stdout == bare.stdout, f"other output: {' '.join(line)}")
        return directory

    def wanted(self):
        return {number: int(found.group(1)) for number, line in enumerate(SOURCE.split("\n"), 1)
                if (found := re.search(r"// =(\d+)$", line))}

    def lines(self, directory):
        with open(f"{directory}/coverage.info", encoding="utf-8") as stream:
            text = stream.read()
        record = next(part for part in text.split("end_of_record") if f"SF:{self.source}\n" in part)
        return {int(line): int(count) for line, count in re.findall(r"^DA:(\d+),(\d+)$", record, re.MULTILINE)}

    def loops(self, *flags, heads):
        directory = self.instrument([self.build(*flags)], "-l")
        with open(f"{directory}/profile.txt", encoding="utf-8") as stream:
            counts = re.findall(r"^ +(\d+) loops \[loop#\d+, line \d+\]$", stream.read(), re.MULTILINE)
        expect(sorted(map(int, counts)) == sorted(heads), f"loops were executed {counts} times")

    def exact_lines(self, *flags):
        found = self.lines(self.instrument([self.build(*flags)], "--coverage", "basic_block", "--format=lcov"))
        for line, count in self.wanted().items():
            expect(line in found, f"line {line} was not measured")
            expect(found[line] == count, f"line {line}: {found[line]} instead of {count}")

    def no_line_too_many(self):
        found = self.lines(self.instrument([self.build("-O2")], "--coverage", "basic_block", "--format=lcov"))
        counted = {line: count for line, count in self.wanted().items() if line in found}
        expect(len(counted) >= 10, f"few lines: {found}")
        for line in (line for line, count in counted.items() if count in (1, 2, 16, 144)):
            expect(found[line], f"line {line} was executed")

    def shares(self):
        directory = self.instrument([self.build("-O0")], "--coverage", "function",
                                    "--function-restrict=^(loops|choose|never)$")
        with open(f"{directory}/coverage.json", encoding="utf-8") as stream:
            share = json.load(stream)["functions"]
        expect((share["covered"], share["total"]) == (2, 3) and round(share["percent"], 2) == 66.67, f"{share}")

    def files(self):
        """Beside the other results: text and JSON by themselves, what is asked for instead, none without coverage."""
        program, by_itself = self.build("-O1"), {"coverage.txt", "coverage.json"}
        for options, wanted in (((), set()), (("--format", "text,coverage,lcov"), set()), (("-M", "coverage"), by_itself),
                                (("--coverage", "function"), by_itself), (("--coverage", "basic_block"), by_itself),
                                (("--coverage", "function", "--profile=off", "--trace=off"), by_itself),
                                (("--coverage", "function", "--format", "coverage,lcov"),
                                 {"coverage.txt", "coverage.info"}),
                                (("-M", "coverage", "--format", "text"), set()),
                                (("-M", "coverage", "--output-prefix", "a-"), {"a-" + name for name in by_itself})):
            directory = self.instrument([program], *options)
            found = {name for name in os.listdir(directory) if "coverage" in name}
            expect(found == wanted, f"{options}: {found}")
            for name in found:
                with open(os.path.join(directory, name), encoding="utf-8") as stream:
                    expect("choose" in stream.read(), f"{options}: {name} names no function")

    def other_programs(self):
        commands = [["xz", "-9", "-c", self.source], ["sqlite3", ":memory:", "select hex(zeroblob(9)) || sum(1.5);"]]
        for command in commands:
            if shutil.which(command[0]):
                self.instrument(command, "-l")
                self.instrument(command, "--coverage", "basic_block")


def main():
    tap = Tap()
    with Scratch() as scratch:
        tests = Tests(sys.argv[1], scratch)
        # Without optimization a loop's head is its condition.
        tap.point("loops are counted exactly", lambda: tests.loops("-O0", heads=[18, 128, 144]))
        tap.point("optimized loops are counted exactly", lambda: tests.loops("-O1", heads=[16, 112, 144]))
        tap.point("lines are counted exactly", lambda: tests.exact_lines("-O0"))
        tap.point("jump tables hide no lines", lambda: tests.exact_lines("-O0", "-fno-pie", "-no-pie"))
        tap.point("optimized code: what ran is covered", tests.no_line_too_many)
        tap.point("two of three functions are 66.67 %", tests.shares)
        tap.point("files of coverage", tests.files)
        tap.point("real programs do the same", tests.other_programs)
    tap.finish()


if __name__ == "__main__":
    main()
