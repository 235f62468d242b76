#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""What a call of a Python function costs more when it is recorded: by kymo, by cProfile, by a function of
sys.setprofile. In turns; each run's number is the best of 15 loops by the CPU time of the thread.

usage: python_calls.py KYMO [ROUNDS [PYTHON ...]]
"""
import os
import statistics
import subprocess
import sys
import tempfile

LOOP = """
import sys, time
def called(x): return x
def loop(n):
    for i in range(n): called(i)
def measure(n):
    begun = time.thread_time_ns()
    loop(n)
    return (time.thread_time_ns() - begun) / n
mode = sys.argv[1]
if mode.startswith("cProfile"):
    import cProfile
    cProfile.Profile(builtins=mode != "cProfile").enable()
elif mode == "setprofile":
    sys.setprofile(lambda frame, event, argument: None)
print(min(measure(100000) for _ in range(15)))
"""
KYMO = {"kymo, trace": ["--profile", "off"], "kymo, trace and profile": [], "kymo, profile": ["--trace", "off"],
        "kymo, not recorded": ["-R", "^no such function$"], "kymo, C functions too": ["--python-builtins"]}


def run(python, mode, kymo):
    with tempfile.TemporaryDirectory() as directory:
        command = [python, "-c", LOOP, mode]
        if mode in KYMO:
            command = [kymo, "instrument", "--python", "-q", "--output", os.path.join(directory, "out"), "--format", "json",
                       *KYMO[mode], "--", *command]
        return float(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)


def main():
    kymo, rounds = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 7
    modes = ["bare", "cProfile", "cProfile, C functions too", "setprofile", *KYMO]
    for python in sys.argv[3:] or ["/usr/bin/python3"]:
        found = {mode: [] for mode in modes}
        for _ in range(rounds):
            for mode in modes:
                found[mode].append(run(python, mode, kymo))
        bare = statistics.median(found["bare"])
        print(f"{python}: {bare:.1f} ns a call")
        for mode in modes[1:]:
            added = sorted(number - bare for number in found[mode])
            print(f"  {mode:<25} +{statistics.median(added):6.1f} ns   ({added[0]:.1f} to {added[-1]:.1f})")


if __name__ == "__main__":
    main()
