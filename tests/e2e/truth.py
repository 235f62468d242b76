#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""Accuracy: shares of work_a, work_b and work_c as sampled, against what the program truth itself
measured with its threads' CPU clocks.

The aim is max(2 sigma, 1.5 points) for the mean over runs (bench/accuracy prints that); one run
must stay within max(3 sigma, 1.5 points), in one of three attempts since the machine may be busy
with other things. Tick-driven samples stand for amounts of time that scatter about as much as their
mean, which makes them worth half as many. Sources driven by the tick cannot see programs in step
with it; there is nothing to test then.

All weights together, "[unsampled]" included, are the CPU time used by the program's threads, with their
start, their system calls and the handler; how much may be unsampled depends
on the source: a thread's last stretch after its last tick is.

usage: truth.py KYMO PROGRAM-DIRECTORY SOURCE MODE THREADS SECONDS [FREQUENCY]     (TAP)
"""
import json
import math
import os
import sys

from harness import Kymo, Result, Scratch, Skipped, Tap, expect

FUNCTIONS = ("work_a", "work_b", "work_c")


def measure(kymo, programs, scratch, source, mode, threads, seconds, frequency):
    """(truth, seen, effective samples, metadata, sampled and accounted shares of the CPU time)"""
    directory = scratch.path(f"{source}-{mode}-{threads}-{len(os.listdir(scratch.directory))}")
    # What is busy all the time is so for as long as it takes on a machine that is busy otherwise.
    least = [seconds] if mode in ("random", "cycle") else []
    ended = kymo.sample([os.path.join(programs, "truth"), mode, threads, seconds, *least], directory,
                        f"--sampling-source={source}", f"--freq={frequency}", "--format=pprof")
    expect(ended.status == 0, f"status {ended.status}\n{ended.stderr[-2000:]}")
    truth, result = json.loads(ended.stdout), Result(directory)
    profile = result.profile()
    shares = profile.shares(lambda sample: {frame.function for frame in sample.stack} &
                            set(FUNCTIONS))
    inside = sum(shares.get(name, 0) for name in FUNCTIONS)
    seen = {name: shares.get(name, 0) / inside if inside else 0 for name in FUNCTIONS}
    # The clock readings between two pieces of work are the program's, but in none of the functions.
    unsampled = sum(sample.values["cpu"] for sample in profile.samples if sample.stack[0].function == "[unsampled]")
    sampled = (profile.total("cpu") - unsampled) / truth["threads_ns"]
    accounted = profile.total("cpu") / truth["threads_ns"]
    effective = profile.total("samples") / (2 if source == "timer" else 1)
    return truth, seen, effective, result.metadata(), (sampled, accounted)


def main():
    path, programs, source, mode, threads, seconds = sys.argv[1:7]
    frequency = sys.argv[7] if len(sys.argv) > 7 else "1000"
    kymo, tap = Kymo(path), Tap()

    with Scratch() as scratch:
        def shares():
            truth, seen, samples, metadata, (sampled, accounted) = measure(
                kymo, programs, scratch, source, mode, threads, seconds, frequency)
            chosen = json.dumps(metadata)
            tick_driven = '"timer"' in chosen and '"perf_' not in chosen
            if tick_driven and mode != "random":
                raise Skipped("tick-driven source on a program in step with the tick")
            expect(samples >= 15, f"{samples:.0f} samples only")
            worst = 0.0
            for name in FUNCTIONS:
                sigma = math.sqrt(truth[name] * (1 - truth[name]) / samples)
                error = abs(seen[name] - truth[name])
                worst = max(worst, error)
                expect(error <= max(3 * sigma, 0.015),
                       f"{name}: {seen[name]:.2%}, really {truth[name]:.2%} ({samples:.0f} samples, "
                       f"sigma {sigma:.2%})")
            text = f"{sampled:.2%} of the CPU time sampled, {accounted:.2%} accounted for"
            expect(0.97 <= accounted <= 1.03, text)
            expect(sampled >= (0.7 if tick_driven else 0.97), text)
            tap.note(f"largest error {worst:.2%}, {samples:.0f} samples, {text}")

        tap.point(f"{mode} x {threads} threads, {source} at {frequency} Hz", shares, retries=2)
    tap.finish()


main()
