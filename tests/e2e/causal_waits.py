#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""Programs that wait in every way, as causal profiling sees them: they do what they do alone, and
each wait is credited or paid as it should be. The part of kymo's controller is played here: a control
file (include/kymo/causal.h) in which the session's delay grows.

usage: causal_waits.py LIBKYMO PROGRAM-DIRECTORY SOURCE-DIRECTORY
"""
import contextlib
import mmap
import os
import struct
import sys
import threading

from harness import Scratch, Skipped, Tap, expect, preloadable, require_tool, run

COUNTER_NAMES = ("samples", "samples_in_scope", "samples_in_target", "earned", "paid", "overslept", "credited",
                 "forgiven", "pauses", "waits", "waits_outside", "visits_lost")
ACTIVE, EPOCH = 1 << 30, 1 << 32
AMOUNT_MS = 40  # tests/programs/causal_credits.c

# Programs of other tests that wait, are interrupted, cancelled, end in odd ways.
HAZARDS = ("causal_waits", "causal_credits", "wrapped_calls", "blocking", "locks_counted", "signal_signalfd",
           "signal_sigwait", "thread_ends", "spawn", "ends", "fork", "close_fds", "seccomp", "seccomp at-once", "no_stdio",
           "longjmp", "coroutines")
SHORT_RUNS = 200


class Session:
    """A control file with an experiment that speeds nothing up."""

    def __init__(self, directory, layout, ticks_are_ns):
        os.makedirs(os.path.join(directory, "spool"))
        os.makedirs(os.path.join(directory, "causal"))
        self.directory, self.layout = directory, layout
        with open(os.path.join(directory, "causal", "control"), "w+b") as stream:
            stream.truncate(layout["size"])
            self.memory = mmap.mmap(stream.fileno(), layout["size"])
        self.rate = 10 ** 9 if ticks_are_ns else tsc_rate()
        self.memory[0:32] = struct.pack("<8sIIQQ", b"kycausal", layout["version"], layout["size"], self.rate,
                                        ticks_are_ns)
        self.set("expires", 1 << 63)
        self.set("experiment", EPOCH | ACTIVE)

    def get(self, name):
        return struct.unpack_from("<Q", self.memory, self.layout[name])[0]

    def set(self, name, value):
        struct.pack_into("<Q", self.memory, self.layout[name], value)

    def counters(self):
        return dict(zip(COUNTER_NAMES, struct.unpack_from(f"<{len(COUNTER_NAMES)}Q", self.memory,
                                                       self.layout["counters"])))

    def points(self):
        """{name: visits} of the points that are ready."""
        found = {}
        for index in range(self.layout["point_count"]):
            at = self.layout["points"] + index * self.layout["point_size"]
            if struct.unpack_from("<I", self.memory, at)[0] == 2:
                name = self.memory[at + 48:at + 264].split(b"\0")[0].decode()
                found[name] = struct.unpack_from("<Q", self.memory, at + 16)[0]
        return found

    def environment(self, libkymo):
        return {"LD_PRELOAD": preloadable(libkymo, self.directory), "KYMO_CAUSAL": os.path.join(self.directory, "causal"),
                "KYMO_SPOOL_DIRECTORY": os.path.join(self.directory, "spool")}

    @contextlib.contextmanager
    def growing(self):
        """The delay grows by a quarter of the time; the experiment is now and then another one."""
        stop = threading.Event()

        def grow():
            steps = 0
            while not stop.wait(0.01):
                self.set("delay", self.get("delay") + self.rate // 400)
                steps += 1
                if steps % 50 == 0:
                    self.set("start_delay", self.get("delay"))
                    self.set("experiment", self.get("experiment") + EPOCH)

        thread = threading.Thread(target=grow)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()


def tsc_rate():
    """Near enough: all there is measured is measured by it."""
    with open("/proc/cpuinfo", encoding="utf-8") as stream:
        rates = [float(line.split(":")[1]) for line in stream if line.startswith("cpu MHz")]
    return int((rates[0] if rates else 1000) * 10 ** 6)


class Waits:
    def __init__(self, libkymo, programs, sources, scratch):
        self.libkymo, self.programs, self.sources = libkymo, programs, sources
        self.scratch, self.sessions = scratch, 0
        lines = run([self.program("causal_credits"), "--layout"]).stdout.decode().splitlines()
        self.layout = {name: int(value) for name, value in (line.split() for line in lines)}
        self.ticks_are_ns = 0
        if not self.takes_part():
            self.ticks_are_ns = 1

    def session(self):
        self.sessions += 1
        return Session(self.scratch.path(f"session{self.sessions}"), self.layout, self.ticks_are_ns)

    def program(self, name):
        return os.path.join(self.programs, name)

    def takes_part(self):
        return "session" in self.credits("pipe").stdout.decode() and self.last.counters()["paid"] > 0

    def credits(self, *names):
        self.last = self.session()
        return run([self.program("causal_credits"), *names], environment=self.last.environment(self.libkymo))

    def every_wait_is_credited_or_paid(self):
        ended = self.credits()
        expect(ended.status == 0, f"status {ended.status}: {ended.stderr}")
        wrong, rows = [], ended.stdout.decode().splitlines()
        for row in rows[:-1]:
            _, who, at_wake, end = row.split()
            # Who wakes pays before it does; who was woken by time pays as well as who waits for it.
            wanted = (AMOUNT_MS, AMOUNT_MS) if who == "session" else (0, 2 * AMOUNT_MS)
            if abs(float(at_wake) - wanted[0]) > 4 or abs(float(end) - wanted[1]) > 4:
                wrong.append(f"{row}, not {wanted}")
        expect(len(rows) > 35 and not wrong, f"{len(rows)} rows; paid at the wake and in the end: {wrong}")

    def same(self, command, environment=None, grow=True):
        """Bare and in a session: the same output and status."""
        bare = run(command, environment=environment)
        session = self.session()
        with session.growing() if grow else contextlib.nullcontext():
            ended = run(command, environment={**session.environment(self.libkymo), **(environment or {})})
        expect(ended.status == bare.status, f"{command}: status {ended.status}, not {bare.status}: {ended.stderr}")
        # causal_credits says more where there is a session.
        stdout = ended.stdout if "causal_credits" not in command[0] else ended.stdout.splitlines(True)[-1]
        expect(stdout == bare.stdout, f"{command}: {ended.stdout!r}, not {bare.stdout!r}")
        return session

    def programs_do_what_they_do_alone(self):
        for name in HAZARDS:
            program, *arguments = name.split()
            self.same([self.program(program), *arguments])

    def short_runs(self):
        for _ in range(SHORT_RUNS // 2):
            self.same([self.program("locks_counted")])
            self.same([self.program("wrapped_calls")], grow=False)

    def openmp(self, compiler, *options):
        require_tool(compiler)
        program = self.scratch.path("openmp-" + compiler)
        source = os.path.join(self.sources, "programs", "causal_openmp.c")
        built = run([compiler, "-w", "-O1", "-fopenmp", source, "-o", program, *options])
        if built.status:
            raise Skipped(f"{compiler} builds no OpenMP here")
        session = self.same([program], {"OMP_WAIT_POLICY": "passive", "KMP_BLOCKTIME": "0"})
        expect(session.counters()["waits"] > 100, f"counted {session.counters()}")
        regions = session.points().get("openmp regions", 0)
        expect(regions == 144, f"regions: {session.points()}")

    def openmp_of_gcc(self):
        self.openmp("gcc")

    def openmp_of_clang(self):
        self.openmp("clang")

    def requests_are_progress(self):
        session = self.same([self.program("causal_requests")])
        expect(session.points() == {"requests": 100}, f"points: {session.points()}")


def main():
    libkymo, programs, sources = (os.path.abspath(path) for path in sys.argv[1:4])
    with Scratch() as scratch:
        waits = Waits(libkymo, programs, sources, scratch)
        tap = Tap()
        for check in (waits.every_wait_is_credited_or_paid, waits.programs_do_what_they_do_alone, waits.short_runs,
                      waits.openmp_of_gcc, waits.openmp_of_clang, waits.requests_are_progress):
            tap.point(check.__name__, check)
        tap.finish()


main()
