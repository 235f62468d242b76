#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""Nothing that kymo does leaves the loader's, libc's or the allocator's state of a program's threads
changed: programs/loader_state.c under every way of profiling, alone and behind an allocator's shim
that a foreign message of the loader's ends; and programs/caller_state.c, whose callers a library that
stands before libc has to see as they are; and programs/pending_message.c, which kymo attaches to.

usage: program_state.py KYMO PROGRAM-DIRECTORY
"""
import os
import subprocess
import sys

from harness import Kymo, Scratch, Tap, expect, run

WAYS = {
    "sample": ["sample"],
    "sample-timers": ["sample", "--sampling-source=timer"],
    "everything-wrapped": ["sample", "--realtime", "--sampling-cputime=on", "--trace-memory=on",
                           "--trace-loader=on", "--trace-io=on", "--trace-thread-locks=on",
                           "--trace-threads=on", "--trace-processes=on"],
    "instrument": ["instrument"],
    "causal": ["causal"],
}


class State:
    def __init__(self, kymo, programs, scratch):
        self.kymo, self.scratch = kymo, scratch
        self.program = os.path.join(programs, "loader_state")
        self.shim = os.path.join(programs, "libloader_shim.so")

    def command(self, shim):
        return ["env", f"LD_PRELOAD={self.shim}", self.program] if shim else [self.program]

    def bare(self, shim):
        ended = run(self.command(shim))
        expect(ended.status == 0, f"bare: {ended.status} {ended.stderr}")

    def under(self, way, shim):
        line = [self.kymo.path, *WAYS[way], "-q",
                f"--output-path={self.scratch.path(way + str(shim))}", "--"]
        ended = run(line + self.command(shim))
        expect(ended.status == 0 and ended.stdout == b"loader_state: OK\n",
               f"{ended.status} {ended.stdout!r} {ended.stderr}")

    def callers(self, way):
        line = [] if way is None else [self.kymo.path, *WAYS[way], "-q", f"--output-path={self.scratch.path(way)}", "--"]
        shim = os.path.join(os.path.dirname(self.program), "libcaller_shim.so")
        ended = run(line + ["env", f"LD_PRELOAD={shim}", os.path.join(os.path.dirname(self.program), "caller_state")])
        expect(ended.status == 0 and ended.stdout == b"caller_state: OK\n",
               f"{ended.status} {ended.stdout!r} {ended.stderr}")

    def attached(self):
        """The borrowed thread's message of the loader's is there afterwards."""
        program = os.path.join(os.path.dirname(self.program), "pending_message")
        with subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as target:
            expect(target.stdout.readline() == b"ready\n", "it did not begin")
            for turn in range(2):
                ended = run([self.kymo.path, "attach", "-q", "--duration=0.3", "-p", str(target.pid),
                             f"--output-path={self.scratch.path(f'attach-{turn}')}"])
                expect(ended.status == 0, f"attach: {ended.status} {ended.stderr}")
            output = target.communicate(b"x", timeout=60)[0]
        expect(target.returncode == 0 and output == b"pending_message: OK\n", f"{target.returncode} {output!r}")


def main():
    tap = Tap()
    with Scratch() as scratch:
        state = State(Kymo(sys.argv[1]), os.path.abspath(sys.argv[2]), scratch)
        for way in (None, *WAYS):
            tap.point(f"callers, {way or 'bare'}", lambda way=way: state.callers(way))
        for shim in (False, True):
            behind = " behind a shim" if shim else ""
            tap.point("bare" + behind, lambda shim=shim: state.bare(shim))
            for way in WAYS:
                tap.point(way + behind, lambda way=way, shim=shim: state.under(way, shim))
        tap.point("attach", state.attached)
    tap.finish()


if __name__ == "__main__":
    main()
