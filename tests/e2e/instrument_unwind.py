#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""Unwinding through instrumented functions: by the program, by kymo, by debuggers.

usage: instrument_unwind.py KYMO PROGRAM-DIRECTORY [POINT...]     (TAP)
"""
import os
import re
import subprocess
import sys
import time

from attach import Target
from harness import Kymo, Result, Scratch, Tap, clean_environment, expect, require_tool, run

COMPLETE = 0.99
HIDDEN = re.compile(r"\.plan\b|^stub|gate_(begin|entry|exit|count)|kymo:|^\[?0x")
PYTHON = """
import json, re
def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)
for i in range(3):
    fib(19)
    json.dumps([{"a": i, "b": [1, 2, 3] * 10}] * 200)
    re.sub("a+b", "c", "aaab" * 1000)
"""
SQL = """
create table t(a integer primary key, b text);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 20000)
insert into t select i, hex(i * 7919) from n;
create index u on t(b);
select count(*), min(b), max(b) from t where b like '3%';
"""


class InstrumentUnwind:
    def __init__(self, kymo, programs, scratch):
        self._kymo, self._scratch = kymo, scratch
        self._unwound = os.path.join(programs, "unwound")
        self._blocking = os.path.join(programs, "blocking")

    def _line(self, name, *options):
        directory = self._scratch.path(name)
        return directory, [self._kymo.path, "instrument", "-q", "--output", directory,
                           "--time-output=off", *options]

    def _same(self, name, *options):
        bare = run([self._unwound])
        expect(bare.status == 0, f"{bare}")
        _, line = self._line(name, *options)
        ended = run(line + ["--", self._unwound])
        expect(ended.status == 0, f"status {ended.status}: {ended.stderr}")
        expect(ended.stdout == bare.stdout, f"{ended.stdout.decode()}\nbare: {bare.stdout.decode()}")

    def traced(self):
        """throw, rethrow, nested, exception_ptr, pthread_exit, cancel, longjmp, backtraces"""
        self._same("traced")

    def in_profile(self):
        """The slow way through the gates"""
        self._same("profiled", "--sample", "--cputime", "1000")

    def attached(self):
        """libgcc was bound before kymo came."""
        with Target([self._unwound, "until-asked"]) as target:
            for turn in range(2):
                _, line = self._line(f"attached-{turn}", "-p", str(target.pid), "-d", "0.5")
                ended = run(line)
                expect(ended.status == 0, f"status {ended.status}: {ended.stderr}")
                expect(target.process.poll() is None, "it ended")
            status, output = target.end()
        expect((status, output) == (0, "unwound: OK\n"), f"{status}: {output}")

    def _sampled(self, name, command, text):
        directory, line = self._line(name, "--sample", "--cputime", "1000")
        ended = run(line + ["--", *command], stdin=text.encode(), timeout=200)
        expect(ended.status == 0, f"status {ended.status}: {ended.stderr}")
        stacks = Result(directory).processes()[0]["stacks"]
        total = sum(stacks.values())
        expect(total > 20, f"{total} samples")
        expect(stacks["complete"] >= COMPLETE * total - 1, f"{stacks}")
        for frames, _ in Result(directory).folded():
            hidden = [frame for frame in frames if HIDDEN.search(frame)]
            expect(not hidden, f"{hidden} in {frames}")

    def sampled_python(self):
        """It opens modules while it is sampled."""
        self._sampled("python", ["/usr/bin/python3", "-"], PYTHON)

    def sampled_python_long(self):
        """What is cut, if anything, is cut where it was interrupted in a few instructions."""
        for turn in range(10):
            self._sampled(f"python-{turn}", ["/usr/bin/python3", "-"], PYTHON)
        self._sampled("python-longer", ["/usr/bin/python3", "-"],
                      PYTHON.replace("range(3)", "range(60)"))

    def sampled_sqlite(self):
        require_tool("sqlite3")
        self._sampled("sqlite", ["sqlite3"], SQL)

    def waiting(self):
        """In real time, stacks are looked at by another thread than theirs."""
        directory, line = self._line("waiting", "--realtime", "--sampling-cputime=off")
        ended = run(line + ["--", self._blocking, "times"])
        expect(ended.status == 0, f"status {ended.status}: {ended.stderr}")
        waits = [frames for frames, _ in Result(directory).folded()
                 if {"wait_in_poll", "wait_in_sleep", "wait_in_lock"} & set(frames)]
        expect(len(waits) >= 3, f"{Result(directory).folded()}")
        for frames in waits:
            expect("main" in frames and not any(HIDDEN.search(frame) for frame in frames), f"{frames}")

    def debugged(self):
        """gdb -p sees the frames that the source says, and stubs by their name."""
        require_tool("gdb")
        _, line = self._line("debugged")
        with subprocess.Popen(line + ["--", self._unwound, "sit"], env=clean_environment(),
                              start_new_session=True) as kymo:
            try:
                pid = child_of(kymo.pid, "unwound")
                ended = run(["gdb", "-q", "-batch", "-nx", "-ex", "set debuginfod enabled off",
                             "-ex", "bt", "-p", str(pid)])
            finally:
                os.kill(pid, 15)
                kymo.wait(timeout=40)
        frames = re.findall(r"^#\d+ .*", ended.stdout.decode(errors="replace"), re.MULTILINE)
        names = [re.sub(r"^#\d+ +(0x[0-9a-f]+ in )?", "", frame).split(" (")[0] for frame in frames]
        expect(names and names[-1] == "main" and names.count("sit") == 4 and "??" not in names,
               f"{frames}\n{ended.stderr}")


def child_of(parent, name):
    """The process of that name below another, once it sleeps."""
    for _ in range(400):
        time.sleep(0.05)
        for entry in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{entry}/stat", encoding="utf-8", errors="replace") as stream:
                    words = re.fullmatch(r"\d+ \((.*)\) (.) (\d+) .*", stream.read().strip())
            except OSError:
                continue
            if words and words.groups() == (name, "S", str(parent)):
                time.sleep(0.3)
                return int(entry)
    raise AssertionError(f"no {name}")


def main():
    kymo, tap = Kymo(sys.argv[1]), Tap()
    with Scratch() as scratch:
        tests = InstrumentUnwind(kymo, os.path.abspath(sys.argv[2]), scratch)
        for name in vars(InstrumentUnwind):
            if not name.startswith("_") and (name in sys.argv[3:] if sys.argv[3:] else
                                             not name.endswith("_long")):
                tap.point(name.replace("_", " "), getattr(tests, name))
    tap.finish()


main()
