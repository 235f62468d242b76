#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""What kymo adds to a program is no thread and no child of it: the program finds itself as it is alone,
in every mode, and nothing stays behind when it ends.

usage: own_process.py KYMO PROGRAM-DIRECTORY     (TAP)
"""
import os
import signal
import subprocess
import sys
import time

from harness import (Kymo, Scratch, Skipped, Tap, clean_environment, cpu_seconds, expect, run, wait_until)

GONE_SECONDS = 0.1
MARK = "OWN_PROCESS_MARK"
WRAPPED = [f"--trace-{name}=on" for name in ("threads", "processes", "sleep", "io", "thread-locks", "memory")]
MODES = {
    "sample": ["sample"],
    "real time": ["sample", "--realtime"],
    "timers": ["sample", "--sampling-source=timer"],
    "wrappers": ["sample"] + WRAPPED,
    "counters": ["sample", "--components=wall_clock,cpu_clock,peak_rss,read_char"],
    "instrument": ["instrument"],
    "causal": ["causal"],
}


# Waits for what it started alone, as the first process of many a container does.
INIT = """
import os, subprocess, sys, time
for case in ("tasks", "threads", "kill-first", "raw-exit-last", "exec-thread", "adopt", "memory"):
    subprocess.run([sys.argv[1], "sample", "-q", "--format=text", "-o", f"{sys.argv[3]}-{case}", "--",
                    sys.argv[2], case], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(0.1)
    for name in os.listdir("/proc"):
        if name.isdigit() and name != "1":
            print(case, open(f"/proc/{name}/stat").read(), end="")
"""


def marked(mark):
    """The processes whose environment has the mark: helpers have the memory of their program, and so its
    environment."""
    found = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/environ", "rb") as stream:
                if f"{MARK}={mark}".encode() not in stream.read().split(b"\0"):
                    continue
            with open(f"/proc/{name}/comm", encoding="utf-8", errors="replace") as stream:
                found[int(name)] = stream.read().strip()
        except OSError:
            continue
    return found


def start(command, mark, **how):
    return subprocess.Popen(command, env={**clean_environment(), MARK: mark}, start_new_session=True, **how)


class OwnProcess:
    """Each public method is one test."""

    def __init__(self, kymo, programs, scratch):
        self.kymo, self.programs, self.scratch = kymo, programs, scratch
        self.program = os.path.join(programs, "own_process")
        self.cases = subprocess.run([self.program, "list"], capture_output=True, text=True,
                                    check=True).stdout.split()

    def _under(self, mode, directory, command):
        return [self.kymo.path, *MODES[mode][:1], "-q", "--output", directory, "--format=text", *MODES[mode][1:],
                "--", *command]

    def compare(self, mode):
        """Each case prints and ends as it does without kymo."""
        different = []
        for case in self.cases:
            # A perf event's signal that is under way when an image is replaced unseen ends the new one.
            if case == "exec-unseen" and mode != "timers":
                continue
            bare = run([self.program, case])
            ended = run(self._under(mode, self.scratch.path("compare"), [self.program, case]))
            if (bare.status, bare.stdout) != (ended.status, ended.stdout):
                different.append(f"{case}: status {ended.status}, not {bare.status}\n"
                                 f"{ended.stdout.decode()}instead of\n{bare.stdout.decode()}{ended.stderr}")
        expect(not different, "\n".join(different))

    def attached(self):
        """While kymo is attached, and when it has left, the process has its own threads alone."""
        target = start([os.path.join(self.programs, "truth"), "random", "1", "30", "30"], "attached",
                       stdout=subprocess.DEVNULL)
        try:
            wait_until(lambda: cpu_seconds(target.pid) > 0.2, "the program does not run")
            before = len(os.listdir(f"/proc/{target.pid}/task"))
            kymo = subprocess.Popen([self.kymo.path, "attach", "-q", "--output", self.scratch.path("attach"),
                                     "--duration=2", "-p", str(target.pid)], env=clean_environment())
            most = helpers = 0
            while kymo.poll() is None:
                most = max(most, len(os.listdir(f"/proc/{target.pid}/task")))
                helpers = max(helpers, len(marked("attached")) - 1)
                time.sleep(0.02)
            expect(kymo.returncode == 0, f"attach: status {kymo.returncode}")
            expect(helpers == 1, f"{helpers} helpers were seen")
            expect(most == before, f"{most} threads, not {before}")
            wait_until(lambda: len(marked("attached")) == 1, "the helper stays", 5)
        finally:
            target.kill()
            target.wait()

    def _time_to_end(self, trial, end):
        """How long a helper is there after its program has ended so."""
        mark = f"end-{trial}-{end.__name__}"
        kymo = start(self._under("sample", self.scratch.path("end"),
                                 [os.path.join(self.programs, "truth"), "random", "2", "30", "30"]), mark,
                     stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            program = wait_until(lambda: [pid for pid, name in marked(mark).items() if name == "truth"],
                                 "no program is seen")[0]
            wait_until(lambda: len(marked(mark)) == 3, "no helper is seen")
            wait_until(lambda: cpu_seconds(program) > 0.1, "the program does not run")
            began = end(program)
            wait_until(lambda: set(marked(mark)) <= {kymo.pid}, "the helper stays")
            return time.monotonic() - began
        finally:
            kymo.wait(60)

    def ends_with_the_program(self):
        """Whatever ends the program, its helper is gone within 100 ms, on a machine that has time for it."""
        def killed(program):
            os.kill(program, signal.SIGKILL)
            return time.monotonic()

        def terminated(program):
            os.kill(program, signal.SIGTERM)
            return time.monotonic()

        for end in (killed, terminated):
            times = [self._time_to_end(trial, end) for trial in range(3)]
            expect(min(times) < GONE_SECONDS, f"{end.__name__}: gone after {times} s")

    def leaves_nothing(self):
        """In a namespace whose first process reaps nothing, no process and no zombie is left."""
        own = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc"]
        if run(own + ["true"]).status:
            raise Skipped("no namespaces of one's own")
        ended = run(own + [sys.executable, "-c", INIT, self.kymo.path, self.program, self.scratch.path("left")])
        expect(ended.status == 0, ended.stderr)
        expect(not ended.stdout, f"processes that are left: {ended.stdout.decode()}")

    def namespaces(self):
        """A new pid namespace's first process is the program's, with and without a new user namespace."""
        tried = 0
        for options in (["--pid", "--fork"], ["--user", "--fork"], ["--user", "--map-root-user", "--pid", "--fork"],
                        ["--user", "--map-root-user", "--pid", "--fork", "--mount-proc", "--mount", "--ipc"]):
            command = ["unshare", *options, "sh", "-c", "id -u; sh -c 'exit 3'; echo $?"]
            bare = run(command)
            if bare.status:
                continue
            tried += 1
            ended = run(self._under("sample", self.scratch.path(f"namespaces-{tried}"), command))
            expect((ended.status, ended.stdout) == (0, bare.stdout), f"{options}: {ended}, bare {bare}")
        if not tried:
            raise Skipped("no namespaces of one's own")

    @staticmethod
    def is_helper(pid):
        """It has the program's memory; what is about to execute the program still has kymo's."""
        try:
            return os.path.basename(os.readlink(f"/proc/{pid}/exe")) == "truth"
        except OSError:
            return False

    def is_ended_by_others(self):
        """Somebody ends the helper: the program goes on, and ends as it would have."""
        mark = "ended"
        kymo = start(self._under("sample", self.scratch.path("ended"),
                                 [os.path.join(self.programs, "truth"), "random", "1", "1", "1"]), mark,
                     stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        helpers = wait_until(lambda: [pid for pid, name in marked(mark).items()
                                      if name == "kymo" and self.is_helper(pid)], "no helper is seen")
        for pid in helpers:
            os.kill(pid, signal.SIGKILL)
        expect(kymo.wait(60) == 0, f"status {kymo.returncode}")


def main():
    kymo, tap = Kymo(sys.argv[1]), Tap()
    with Scratch() as scratch:
        own = OwnProcess(kymo, os.path.abspath(sys.argv[2]), scratch)
        for mode in MODES:
            tap.point(f"as alone: {mode}", lambda mode=mode: own.compare(mode))
        for name in ("attached", "ends_with_the_program", "leaves_nothing", "namespaces", "is_ended_by_others"):
            tap.point(name.replace("_", " "), getattr(own, name))
    tap.finish()


main()
