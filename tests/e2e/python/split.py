# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""Divides CPU time among its functions as SHARES says, by each thread's own clock.

usage: split.py SECONDS [THREADS]

The lines with a comment `# line: NAME` are looked up by the test.
"""
import sys
import threading
import time

SHARES = {"alpha": 0.30, "Gamma.method": 0.20, "recurse": 0.10, "numbers": 0.15, "sort_many": 0.25}
ROUNDS = 5


def work():
    total = 0
    for i in range(2000):
        total += i * i  # line: work
    return total


def alpha(end):
    while time.thread_time() < end:
        work()  # line: alpha


class Gamma:
    def method(self, end):
        while time.thread_time() < end:
            [i ^ 3 for i in range(2000)]  # line: method


def recurse(depth, end):
    if depth:
        return recurse(depth - 1, end)
    return alpha_again(end)


def alpha_again(end):
    while time.thread_time() < end:
        work()


def numbers(end):
    while time.thread_time() < end:
        for i in range(1000):
            pass
        yield i  # line: numbers


def key(value):
    total = 0
    for i in range(300):
        total += i * value
    return total


def sort_many(end):
    while time.thread_time() < end:
        sorted(range(30), key=key)  # line: sort_many


def run_for(share, function, *arguments):
    """The calls of `function` share all of what is left after those before."""
    return function(*arguments, time.thread_time() + share)


def main(seconds):
    for _ in range(ROUNDS):
        part = seconds / ROUNDS
        run_for(part * SHARES["alpha"], alpha)
        run_for(part * SHARES["Gamma.method"], Gamma().method)
        run_for(part * SHARES["recurse"], recurse, 400)
        for _ in run_for(part * SHARES["numbers"], numbers):
            pass
        run_for(part * SHARES["sort_many"], sort_many)


if __name__ == "__main__":
    COUNT = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    if COUNT == 1:
        main(float(sys.argv[1]))
    else:
        THREADS = [threading.Thread(target=main, args=(float(sys.argv[1]) / COUNT,), name=f"worker-{i}")
                   for i in range(COUNT)]
        for thread in THREADS:
            thread.start()
        for thread in THREADS:
            thread.join()
    print("done")
