#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""Regions in trace.pftrace of real programs, read by a decoder of its own as an importer reads it:
nested slices, times inside the life of their thread, the same calls and times as in the profile
that the process kept itself, and an arrow to every child.

usage: timeline.py KYMO LIBKYMO-USER   (TAP)
"""
import collections
import os
import sys

from harness import Kymo, Result, Scratch, Tap, expect, require_tool

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "unit", "output"))
from perfetto_decode import Trace  # noqa: E402 pylint: disable=wrong-import-position
from protobuf_walk import message  # noqa: E402 pylint: disable=wrong-import-position

PYTHON = "/usr/bin/python3"

LOCKS = """
import threading, time
lock = threading.Lock()
def work():
    for i in range(200):
        with lock:
            time.sleep(0.00005)
threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""

USER = """
import ctypes, sys, threading
user = ctypes.CDLL(sys.argv[1])
user.kymo_counter.argtypes = [ctypes.c_char_p, ctypes.c_double]
def work():
    for i in range(100):
        user.kymo_push_region(b"request")
        user.kymo_push_region(b"answer")
        user.kymo_pop_region(b"request")
        user.kymo_pop_region(b"answer")
        user.kymo_progress(b"requests")
        user.kymo_counter(b"load", i / 2)
    user.kymo_push_region(b"left open")
threads = [threading.Thread(target=work) for _ in range(2)]
for thread in threads: thread.start()
for thread in threads: thread.join()
for i in range(600): user.kymo_push_region(b"deep")
for i in range(600): user.kymo_pop_region(b"deep")
user.kymo_mark(b"done")
"""

CHILDREN = """
import os, subprocess
for i in range(3):
    child = os.fork()
    if child == 0: os._exit(0)
    os.waitpid(child, 0)
for i in range(3): subprocess.run(["sh", "-c", "true; true"])
os.system("true; sh -c 'true; true'")
os.waitpid(os.posix_spawn("/bin/sh", ["sh", "-c", ":"], os.environ), 0)
"""

MAKEFILE = """
program: a.o b.o c.o d.o
\tcc -o $@ $^
%.o: %.c
\tcc -c $<
"""


class Timeline:
    """A trace, its tracks by process and thread, and the profile beside it."""

    def __init__(self, directory):
        with open(os.path.join(directory, "trace.pftrace"), "rb") as stream:
            self.trace = Trace(stream.read())
        self.profile = Result(directory).json("profile.json")
        expect(not self.trace.errors, f"broken rules: {self.trace.errors[:5]}")
        expect(self.trace.slices, "no slices")

    def thread_of(self, uuid):
        """(pid, tid) of a track or of the thread that it belongs to."""
        track = self.trace.tracks[uuid]
        while 4 not in track and 5 in track:
            track = self.trace.tracks[track[5][0]]
        if 4 not in track:
            return message(track[3][0])[1][0], None
        thread = message(track[4][0])
        return thread[1][0], thread[2][0]

    def agrees_with_profile(self):
        """The profile comes from sums in the process, the trace from its events."""
        pids = {p["id"]: p["pid"] for p in self.profile["processes"]}
        expected = collections.defaultdict(lambda: [0, 0])
        for total in self.profile["region_totals"]:
            of_name = expected[pids[total["process"]], total["name"]]
            of_name[0] += total["count"]
            of_name[1] += total["wall_clock"]["sum_ns"]
        seen = collections.defaultdict(lambda: [0, 0])
        for one in self.trace.slices:
            if one["category"] == "python_lock":  # what samples say
                continue
            of_name = seen[self.thread_of(one["track"])[0], one["name"]]
            of_name[0] += "not ended" not in one["values"]
            of_name[1] += one["end"] - one["time"]  # what is open has its time up to the end of the data
        for key in {key for key in [*expected, *seen] if key[1] != "deep"}:
            calls, sum_ns = expected[key]
            expect(calls == seen[key][0], f"{key}: {seen[key][0]} slices, {calls} calls")
            close = abs(sum_ns - seen[key][1]) <= sum_ns / 100 + 100 * calls
            expect(close, f"{key}: slices of {seen[key][1]} ns, calls of {sum_ns} ns")

    def inside_threads(self):
        lives = {}
        pids = {p["id"]: p["pid"] for p in self.profile["processes"]}
        for thread in self.profile["threads"]:
            key = pids[thread["process"]], thread["tid"]
            start, end = lives.get(key, (1 << 63, 0))
            lives[key] = (min(start, thread["start_ns"]), max(end, thread.get("end_ns", 1 << 63)))
        for one in self.trace.slices:
            start, end = lives[self.thread_of(one["track"])]
            expect(start - 1_000_000 <= one["time"] <= one["end"] <= end + 1_000_000,
                   f"{one['name']} outside the life of its thread")

    def arrows(self):
        """{child's pid: the event that its arrow comes from}; each child has exactly one."""
        sources = {}
        for event in self.trace.slices + self.trace.instants:
            for flow in event["flows"]:
                expect(flow not in sources, "two arrows with one id")
                sources[flow] = event
        found = {}
        for event in self.trace.instants:
            for flow in event["last_flows"]:
                source = sources.pop(flow)
                pid = self.thread_of(event["track"])[0]
                parent = self.thread_of(source["track"])[0]
                expect(event["values"]["parent"] == parent, f"arrow to {pid} from {parent}")
                expect(source["time"] <= event["time"], f"arrow to {pid} goes back in time")
                found[pid] = source
        expect(not sources, f"arrows that lead nowhere: {sources}")
        return found


class Programs:
    """Each public method is one test."""

    def __init__(self, kymo, user_library, scratch):
        self._kymo, self._user, self._scratch, self._runs = kymo, user_library, scratch, 0

    def _run(self, command, cwd=None, **settings):
        self._runs += 1
        directory = self._scratch.path(f"run-{self._runs}")
        environment = {f"KYMO_{name}": value for name, value in settings.items()}
        ended = self._kymo.sample(command, directory, "--format=perfetto,json",
                                  environment=environment, cwd=cwd)
        expect(ended.status == 0, f"status {ended.status}\n{ended.stderr}")
        timeline = Timeline(directory)
        timeline.agrees_with_profile()
        timeline.inside_threads()
        return timeline

    def threads_and_locks(self):
        timeline = self._run([PYTHON, "-c", LOCKS], TRACE_THREAD_LOCKS="on", TRACE_SLEEP="on")
        locks = [s for s in timeline.trace.slices if s["name"] == "pthread_mutex_lock"]
        expect(len(locks) > 800, f"{len(locks)} waits for locks")
        expect(all("lock" in s["values"] for s in locks), "locks without address")
        sleeps = collections.Counter(timeline.thread_of(s["track"]) for s in timeline.trace.slices
                                     if s["category"] == "sleep")
        expect(sorted(sleeps.values()) == [200] * 4, f"sleeps by thread: {sleeps}")

    def user_regions_that_overlap(self):
        timeline = self._run([PYTHON, "-c", USER, self._user])
        trace = timeline.trace
        request = [s for s in trace.slices if s["name"] == "request"]
        tracks = {trace.track_name(s["track"]).split(",")[0] for s in request}
        expect(len(request) == 200 and tracks == {"request (overlapping"}, f"{tracks}")
        answer = [s for s in trace.slices if s["name"] == "answer"]
        expect({s["depth"] for s in answer} == {0}, "answers stand on the thread's track")
        counters = collections.Counter(trace.track_name(c["track"]) for c in trace.counters)
        expect(counters["load"] == 200, f"{counters}")
        progress = [c["value"] for c in trace.counters
                    if trace.track_name(c["track"]).startswith("requests (progress")]
        expect(sorted(progress) == sorted(2 * [*range(1, 101)]), "progress points")
        left = [s["values"] for s in trace.slices if s["name"] == "left open"]
        expect(left == [{"not ended": True}] * 2, f"{left}")
        deep = sum(s["name"] == "deep" for s in trace.slices)
        expect(deep == 500, f"{deep} of 600 nested regions drawn")
        expect(sum(i["name"] == "done" for i in trace.instants) == 1, "one mark")

    def arrows_to_children(self):
        timeline = self._run([PYTHON, "-c", CHILDREN], TRACE_PROCESSES="on")
        found = timeline.arrows()
        processes = {p["pid"] for p in timeline.profile["processes"]}
        expect(len(processes) - len(found) == 1, f"{len(found)} arrows, {len(processes)} processes")
        names = collections.Counter(source["name"] for source in found.values())
        expect(names["fork"] >= 3 and names["system"] == 1, f"{names}")

    def parallel_make(self):
        require_tool("make", "cc")
        directory = self._scratch.path("make")
        os.mkdir(directory)
        for name in "abcd":
            with open(os.path.join(directory, name + ".c"), "w", encoding="ascii") as stream:
                stream.write("int main(void) { return 0; }\n" if name == "a" else
                             f"int {name}(int x) {{ return x; }}\n")
        with open(os.path.join(directory, "Makefile"), "w", encoding="ascii") as stream:
            stream.write(MAKEFILE)
        timeline = self._run(["make", "-s", "-j4"], cwd=directory, TRACE_PROCESSES="on")
        found = timeline.arrows()
        processes = {p["pid"] for p in timeline.profile["processes"]}
        expect(len(processes) >= 11, f"{len(processes)} processes")
        expect(len(processes) - len(found) == 1, f"{len(found)} arrows, {len(processes)} processes")

    def run_all(self, tap):
        for name in ("threads_and_locks", "user_regions_that_overlap", "arrows_to_children",
                     "parallel_make"):
            tap.point(name, getattr(self, name))


def main():
    tap = Tap()
    with Scratch() as scratch:
        Programs(Kymo(sys.argv[1]), os.path.abspath(sys.argv[2]), scratch).run_all(tap)
    tap.finish()


main()
