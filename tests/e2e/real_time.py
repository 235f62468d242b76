#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""Real time, divided into running, waiting for a CPU and blocked: what --realtime says about threads
that measure the same by themselves (tests/programs/thirds.c), with fewer, as many and more busy
threads than processors, beside busy strangers, on one processor, in idle time and under a CPU limit.

usage: real_time.py KYMO PROGRAMS   (TAP)
"""
import collections
import contextlib
import gzip
import os
import subprocess
import sys

from harness import Kymo, Result, Scratch, Skipped, Tap, expect

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "unit", "output"))
from perfetto_decode import Trace  # noqa: E402 pylint: disable=wrong-import-position

WAITING = "[waiting for a CPU]"
POINTS = 3.0  # of a thread's real time

Own = collections.namedtuple("Own", "pid tid elapsed running waiting computing resting")


def processors():
    return len(os.sched_getaffinity(0))


@contextlib.contextmanager
def strangers(count, cpu=None):
    """Processes that kymo does not know, and that always want a processor."""
    pin = (lambda: os.sched_setaffinity(0, {cpu})) if cpu is not None else None
    started = [subprocess.Popen([sys.executable, "-c", "while True: pass"], preexec_fn=pin)
               for _ in range(count)]
    try:
        yield
    finally:
        for process in started:
            process.kill()
            process.wait()


@contextlib.contextmanager
def limited(share):
    """A control group with this many CPUs; gives a function that puts the calling process into it."""
    for root, files in (("/sys/fs/cgroup", {"cpu.max": f"{int(share * 100000)} 100000"}),
                        ("/sys/fs/cgroup/cpu", {"cpu.cfs_period_us": "100000",
                                                "cpu.cfs_quota_us": f"{int(share * 100000)}"})):
        group = os.path.join(root, f"kymo-test-{os.getpid()}")
        try:
            os.mkdir(group)
        except OSError:
            continue
        try:
            for name, text in files.items():
                # not to be created where it is no control group's
                with open(os.path.join(group, name), "r+", encoding="ascii") as stream:
                    stream.write(text)
        except OSError:
            os.rmdir(group)
            continue
        try:
            yield lambda g=group: open(os.path.join(g, "cgroup.procs"), "w", encoding="ascii").write("0")
        finally:
            os.rmdir(group)
        return
    raise Skipped("no control group with a CPU limit can be made here")


class Test:
    def __init__(self, kymo, programs, scratch):
        self.kymo, self.scratch, self.runs, self.summary = kymo, scratch, 0, ""
        self.program = os.path.join(programs, "thirds")

    def measure(self, kind, threads, seconds=2.0, preexec=None):
        self.runs += 1
        directory = self.scratch.path(f"run-{self.runs}")
        ended = self.kymo.sample([self.program, kind, str(threads), str(seconds)], directory,
                                 "--realtime", quiet=False, preexec=preexec)
        self.summary = " ".join(ended.stderr.split())
        if ended.status == 77:
            raise Skipped("this kernel does not count waits in the run queue")
        expect(ended.status == 0, f"status {ended.status}: {ended.stderr[-500:]}")
        own = [Own(*map(float, line.split())) for line in ended.stdout.decode().splitlines()]
        expect(len(own) >= threads, f"{len(own)} lines of {threads} threads")
        return own, Result(directory)

    @staticmethod
    def threads(result):
        """By process and thread; a thread that is seen once more while it ends counts as it was."""
        profile, threads = result.json("profile.json"), {}
        for thread in profile["threads"]:
            key = profile["processes"][thread["process"]]["pid"], thread["tid"]
            if thread["found"] != "kymo" and (key not in threads or
                                              thread["total_cpu_ns"] > threads[key]["total_cpu_ns"]):
                threads[key] = thread
        return threads

    @staticmethod
    def thirds(thread):
        return (thread["total_cpu_ns"] / 1e9, thread.get("runnable_ns", 0) / 1e9,
                thread.get("blocked_ns", 0) / 1e9)

    def compare(self, own, result):
        """Each thread's shares, and that they add up to its life."""
        threads, wrong = self.threads(result), []
        for it in own:
            thread = threads.get((it.pid, it.tid))
            expect(thread, f"no thread {it.tid:.0f} of {it.pid:.0f}")
            told = self.thirds(thread)
            life = (thread["end_ns"] - thread["start_ns"]) / 1e9
            mine = (it.running, it.waiting, it.elapsed - it.running - it.waiting)
            off = [100 * (a / sum(told) - b / it.elapsed) for a, b in zip(told, mine)]
            line = (f"thread {it.tid:.0f}: running, waiting, blocked {told[0]:.3f} {told[1]:.3f} "
                    f"{told[2]:.3f} of {life:.3f} s, by itself {mine[0]:.3f} {mine[1]:.3f} "
                    f"{mine[2]:.3f} of {it.elapsed:.3f} s")
            if max(map(abs, off)) > POINTS or abs(sum(told) - life) > 0.03 * life:
                wrong.append(line)
        expect(not wrong, "\n".join(wrong))

    def shares(self, kind, factor):
        own, result = self.measure(kind, factor * processors())
        self.compare(own, result)
        return own, result

    def places(self):
        """Time in the queue stands where the threads compute, time asleep where they sleep."""
        own, result = self.shares("mixed", 2)
        functions = {function["name"]: function["inclusive_ns"] / 1e9
                     for function in result.json("profile.json")["functions"]}
        elapsed = sum(it.elapsed for it in own)
        for name, mine in (("computes", sum(it.computing for it in own)),
                           ("rests", sum(it.resting for it in own))):
            told = functions.get(name, 0)
            expect(abs(told - mine) <= POINTS / 100 * elapsed,
                   f"{name}: {told:.3f} s, by itself {mine:.3f} s of {elapsed:.3f} s")

    def beside_strangers(self):
        with strangers(2 * processors()):
            self.shares("mixed", 1)

    def on_one_processor(self):
        cpu = min(os.sched_getaffinity(0))
        with strangers(2, cpu):
            own, result = self.measure("mixed", 2, preexec=lambda: os.sched_setaffinity(0, {cpu}))
        self.compare(own, result)

    def in_idle_time(self):
        def idle():
            os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
        with strangers(processors()):
            own, result = self.measure("compute", processors(), preexec=idle)
        self.compare(own, result)

    def under_a_limit(self):
        with limited(0.2) as enter:
            own, result = self.measure("mixed", 2, seconds=3, preexec=enter)
        self.compare(own, result)
        expect("the CPU limit of the control group (0.20 CPUs) stopped it in" in self.summary,
               self.summary[:2000])

    def rows(self):
        """Every output has a row for it, and no stack lacks without a reason."""
        _, result = self.measure("compute", 3 * processors(), seconds=1)
        folded = result.folded()
        expect(any(stack[-1] == WAITING and "computes" in stack for stack, _ in folded), "folded")
        expect(not any("not_walked" in frame for stack, _ in folded for frame in stack),
               "a stack without a reason")
        profile = result.json("profile.json")
        expect(any(it["name"] == WAITING for it in profile["functions"]), "profile.json")
        expect(profile["processes"][0]["real_time"]["runnable_ns"] > 0, "profile.json, process")
        with gzip.open(result.path("profile.pb.gz")) as stream:
            expect(WAITING.encode() in stream.read(), "profile.pb.gz")
        with open(result.path("report.html"), encoding="utf-8") as stream:
            expect(WAITING in stream.read(), "report.html")
        with open(result.path("profile.txt"), encoding="utf-8") as stream:
            expect("waiting for a CPU  " in stream.read(), "profile.txt, thread")
        with open(result.path("trace.pftrace"), "rb") as stream:
            trace = Trace(stream.read())
        expect(any(trace.track_name(counter["track"]) == "Waiting for a CPU" and
                   counter["value"] > 0 for counter in trace.counters), "trace.pftrace")
        expect(" running " in self.summary and "waiting for a CPU" in self.summary and
               "CPU wait" in self.summary, self.summary[:2000])


def main():
    tap = Tap()
    with Scratch() as scratch:
        test = Test(Kymo(sys.argv[1]), sys.argv[2], scratch)
        for kind, factors in (("compute", (1, 2, 4)), ("mixed", (1, 2, 4)), ("nap", (1, 4)),
                              ("futex", (2,)), ("pool", (4,)), ("fault", (2,)), ("fork", (1,))):
            for factor in factors:
                tap.point(f"{kind}, {factor} threads a processor: shares as they measure them",
                          lambda k=kind, f=factor: test.shares(k, f), retries=1)
        tap.point("time stands where it was spent", test.places, retries=2)
        tap.point("beside processes that are always busy", test.beside_strangers, retries=1)
        tap.point("on one processor with others", test.on_one_processor, retries=1)
        tap.point("in idle time", test.in_idle_time, retries=1)
        tap.point("under a CPU limit", test.under_a_limit, retries=1)
        tap.point("a row in every output", test.rows)
    tap.finish()


main()
