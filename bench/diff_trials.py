#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""How often `kymo diff` names a change where there is none, and finds one of 3 % that was made, with five runs of each side.

  diff_trials.py KYMO [TRIALS]
"""
import json
import os
import subprocess
import sys
import tempfile

REPEATS = 5
PLANTED = 1.03
WORK = r"""
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static volatile uint64_t sink;
__attribute__((noinline)) static void parse(long n) { uint64_t a = sink, b = 2;
	for (long i = 0; i < n; i++) { a = a * 6364136223846793005u + 1442695040888963407u; b ^= a / (b | 1); } sink = a + b; }
__attribute__((noinline)) static void render(long n) { uint64_t a = sink | 1;
	for (long i = 0; i < n; i++) { a ^= a << 13; a ^= a >> 7; a ^= a << 17; } sink = a; }
int main(int argc, char **argv) { double factor = argc > 1 ? atof(argv[1]) : 1;
	for (int i = 0; i < 100; i++) { parse((long)(350000 * factor)); render((long)(600000 * factor)); } return 0; }
"""
PYTHON = """
import sys
factor = float(sys.argv[1]) if len(sys.argv) > 1 else 1
def tally(n):
    words = {}
    for i in range(n):
        words[i % 997] = words.get(i % 997, 0) + i
    return sum(words.values())
def line(n):
    return ' '.join(str(i * i) for i in range(n)).count('7')
for _ in range(20):
    tally(int(40000 * factor)); line(int(40000 * factor))
"""


def programs(directory):
    source, binary, script = (os.path.join(directory, name) for name in ("work.c", "work", "tally.py"))
    with open(source, "w", encoding="utf-8") as stream:
        stream.write(WORK)
    with open(script, "w", encoding="utf-8") as stream:
        stream.write(PYTHON)
    subprocess.run(["cc", "-O2", "-g", source, "-o", binary], check=True)
    text = os.path.join(directory, "text")
    with open(text, "w", encoding="utf-8") as stream:
        stream.writelines(f"{i} {i * 7919 % 10007} {i * i % 65537}\n" for i in range(60000))
    return {"work": lambda factor: [binary, str(factor)], "python3": lambda factor: ["python3", script, str(factor)],
            "xz": lambda _: ["xz", "-3", "-T1", "-k", "-c", text]}


def trial(kymo, directory, command, factor, counter):
    """One comparison: (verdict of the total, rows named, relative change)."""
    results = []
    for _ in range(REPEATS):
        for side in (1, factor):
            counter[0] += 1
            result = os.path.join(directory, f"r{counter[0]}")
            subprocess.run([kymo, "sample", "-q", "--time-output=off", "--trace=off", "--format", "json", "-o", result, "--",
                            *command(side)], check=True, stdout=subprocess.DEVNULL)
            results.append(result)
    answer = json.loads(subprocess.run([kymo, "diff", "--format", "json", *results], check=True, stdout=subprocess.PIPE).stdout)
    subprocess.run(["rm", "-rf", *results], check=True)
    total = answer["total"]
    named = [row["name"] for row in answer["rows"] if row["verdict"] != "unchanged"]
    return total["verdict"], named, total["after"] / total["before"] - 1


def main():
    kymo, trials = os.path.abspath(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 20
    counter = [0]
    with tempfile.TemporaryDirectory(prefix="kymo-diff-") as directory:
        for name, command in programs(directory).items():
            seen = [trial(kymo, directory, command, 1, counter) for _ in range(trials)]
            print(f"{name}: no change: total named in {sum(v != 'unchanged' for v, _, _ in seen)} of {trials}, a row in "
                  f"{sum(bool(n) for _, n, _ in seen)}; changes {min(c for *_, c in seen):+.2%} to {max(c for *_, c in seen):+.2%}",
                  flush=True)
            if name == "xz":
                continue
            seen = [trial(kymo, directory, command, PLANTED, counter) for _ in range(trials)]
            print(f"{name}: {PLANTED - 1:.0%} more: found in {sum(v == 'higher' for v, _, _ in seen)} of {trials}; changes "
                  f"{min(c for *_, c in seen):+.2%} to {max(c for *_, c in seen):+.2%}", flush=True)


if __name__ == "__main__":
    main()
