#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""Programs that call wrapped functions a known number of times: they do what they do alone, and
every call is in the results.

usage: wrappers.py KYMO PROGRAM-DIRECTORY
"""
import os
import subprocess
import sys

from harness import Kymo, Result, Scratch, Skipped, Tap, expect, require_tool, run

EVERYTHING = [f"--trace-{name}=on" for name in (
    "threads", "thread-locks", "thread-rw-locks", "thread-spin-locks", "thread-barriers",
    "thread-join", "thread-conditions", "processes", "sleep", "io", "loader")]

# By the source of tests/programs/wrapped_calls.c. Reads that are cancelled never end.
CALLS = {
    "pthread_create": 25, "pthread_join": 25, "pthread_barrier_wait": 4,
    "pthread_mutex_lock": 4027, "pthread_mutex_unlock": 4026, "pthread_mutex_trylock": 1,
    "pthread_mutex_timedlock": 2, "pthread_rwlock_rdlock": 4000, "pthread_rwlock_wrlock": 4000,
    "pthread_rwlock_unlock": 8000, "pthread_spin_lock": 4000, "pthread_spin_unlock": 4000,
    "sem_wait": 2, "sem_trywait": 1, "sem_timedwait": 1, "sem_post": 1,
    "write": 11, "read": 11, "poll": 11, "open": 3, "close": 5, "pwrite": 1, "pread": 1,
    "usleep": 13, "sleep": 1, "fork": 3, "waitpid": 6, "wait": 1, "posix_spawn": 2, "system": 1,
}

WRAP = "; ".join((
    "double libwrapped_library:library_many(int, long, const char *, double, float, unsigned char,"
    " short, long, long, double, double, double, double, double, double, double, double)",
    "int libwrapped_library.so:library_sum(int, ...)", "*:library_throw(int)", "*:library_jump",
    "long double *:library_extended(long double, int, long double)", "*:library_structure", "*:library_vectors",
    "float *:library_single(float)", "int *:library_depth(int)", "double libm.so:pow(double,double)",
    "int libnone.so:library_throw(int)"))

# In each of three threads; one sum at the end of a stack.
FUNCTIONS = {"library_many": 3, "library_sum": 4, "library_throw": 3000, "library_jump": 3000,
             "library_extended": 3, "library_structure": 3, "library_single": 3, "pow": 1}


def counts(result, process=0):
    """{region: calls} of one process, those that never ended included."""
    return {row["name"]: row["count"] for row in result.json("profile.json").get("region_totals", [])
            if row["process"] == process}


class Wrapped:
    def __init__(self, kymo, programs, scratch):
        self.kymo, self.programs, self.scratch = kymo, programs, scratch

    def both(self, name, *arguments, options=()):
        """Bare and under kymo; the results of the latter."""
        command = [os.path.join(self.programs, name), *arguments]
        bare = run(command)
        expect(bare.status == 0, f"bare: status {bare.status}: {bare.stderr}")
        directory = self.scratch.path(name + str(len(os.listdir(self.scratch.directory))))
        ended = self.kymo.sample(command, directory, *options)
        expect(ended.status == 0, f"status {ended.status}: {ended.stderr[-2000:]}")
        expect(ended.stdout == bare.stdout, f"output differs: {ended.stdout[-300:]!r}")
        return Result(directory)

    def expect_counts(self, result, wanted):
        seen = counts(result)
        wrong = {name: (seen.get(name), number) for name, number in wanted.items()
                 if seen.get(name) != number}
        expect(not wrong, f"counted, really: {wrong}")

    def calls(self):
        self.expect_counts(self.both("wrapped_calls", options=EVERYTHING), CALLS)

    def plugin(self):
        result = self.both("wrapped_plugin", self.programs, options=EVERYTHING)
        self.expect_counts(result, {"usleep": 100, "dlclose": 40})

    def functions(self):
        result = self.both("wrapped_functions", options=["--wrap", WRAP])
        seen = counts(result)
        # A call that longjmp leaves ends with the next one on its stack; the last has none.
        expect(2997 <= seen.get("library_jump", 0) <= 3000, f"library_jump: {seen}")
        self.expect_counts(result, {name: number for name, number in FUNCTIONS.items()
                                    if name != "library_jump"})

    def off(self):
        result = self.both("wrapped_calls", options=["--use-wrappers=off"])
        expect(not counts(result), f"regions although nothing is wrapped: {counts(result)}")

    def against_ltrace(self):
        """A program nobody here wrote, counted by its procedure linkage table."""
        require_tool("ltrace", "sort")
        command = ["sort", "-S", "1M", "/usr/share/dict/words"] \
            if os.path.exists("/usr/share/dict/words") else ["sort", __file__]
        names = ("pthread_mutex_lock", "pthread_mutex_unlock", "read", "close", "pthread_create")
        traced = run(["ltrace", "-f", "-c", "-e", "+".join(f"{n}@sort*" for n in names)] + command)
        really = {}
        for line in traced.stderr.splitlines():
            words = line.split()
            if len(words) == 5 and words[4] in names:
                really[words[4]] = int(words[3])
        if not really:
            raise Skipped("ltrace counted nothing")
        directory = self.scratch.path("sort")
        self.kymo.sample(command, directory, *EVERYTHING)
        seen = counts(Result(directory))
        for name, number in really.items():
            expect(seen.get(name) == number, f"{name}: kymo {seen.get(name)}, ltrace {number}")

    def refused(self):
        """Bad text is refused before the program starts, with its place."""
        for text, place in (("x", 1), ("a:b(", 4), ("a:b(thing)", 5), ("a:b(int,,int)", 9),
                            ("*:b c", 4), ("libm.so:pow(double) x", 21), (":b", 1)):
            ended = run([self.kymo.path, "sample", "--wrap", text, "--", "echo", "started"])
            expect(ended.status and b"started" not in ended.stdout, f"{text!r} was accepted")
            expect(f"at character {place} " in ended.stderr, f"{text!r}: {ended.stderr}")


def main():
    tap = Tap()
    with Scratch() as scratch:
        wrapped = Wrapped(Kymo(sys.argv[1]), os.path.abspath(sys.argv[2]), scratch)
        for name in ("calls", "plugin", "functions", "off", "against_ltrace", "refused"):
            tap.point(name, getattr(wrapped, name))
    tap.finish()


if __name__ == "__main__":
    try:
        main()
    except subprocess.SubprocessError as error:
        print(f"Bail out! {error}")
