#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""Python beyond samples: lines of allocations and of wrapped calls, who has the global lock, the module kymo; each
version at hand.

usage: python_modes.py KYMO MODULE-DIRECTORY LIBKYMO-USER     (TAP)
"""
import glob
import json
import os
import re
import subprocess
import sys
import time

from harness import Kymo, Result, Scratch, Skipped, Tap, clean_environment, expect, require_tool, run

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "unit", "output"))
from perfetto_decode import Trace  # noqa: E402 pylint: disable=wrong-import-position
from protobuf_walk import first, message  # noqa: E402 pylint: disable=wrong-import-position

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "python")
ALLOCATE, CONTEND = os.path.join(HERE, "allocate.py"), os.path.join(HERE, "contend.py")
VERSIONS = ("3.8", "3.9", "3.10", "3.11", "3.12", "3.13", "3.14")
POINTS = 2 / 100

MODULE_PROGRAM = """
import asyncio
import kymo

@kymo.region
def decorated():
    kymo.mark("instant", number=7)

@kymo.region("coroutine")
async def wait():
    await asyncio.sleep(0.001)

@kymo.region("numbers")
def numbers():
    yield from range(3)

with kymo.region("outer", category="phases", text="t\\u00e9xt", count=3, share=0.5, big=2**63):
    for step in range(10):
        with kymo.region("step"):
            decorated()
        kymo.counter("steps", step)
        kymo.progress("done")
with kymo.work("job"):
    kymo.range_push("pushed")
    kymo.range_pop()
    kymo.range_pop()
asyncio.run(wait())
print(list(numbers()), kymo.is_active())
"""


def python_of(version):
    """A python of this version: the system's, else a version manager's."""
    patterns = [f"/usr/bin/python{version}", f"/usr/local/bin/python{version}",
                os.path.join(os.environ.get("PYENV_ROOT", os.path.expanduser("~/.pyenv")), "versions",
                             f"{version}.*", "bin", f"python{version}")]
    found = [path for pattern in patterns for path in sorted(glob.glob(pattern))]
    if not found:
        raise Skipped(f"no Python {version} here")
    return found[0]


def line_of(mark):
    with open(ALLOCATE, encoding="utf-8") as stream:
        return next(number for number, line in enumerate(stream, 1) if f"# line: {mark}" in line)


def innermost_line(site):
    """(function, line) of allocate.py, None where it is elsewhere."""
    for frame in site["frames"]:
        if frame.get("interpreted"):
            return (frame["function"], frame["line"]) if frame["file"] == ALLOCATE else None
    return None


class Modes:
    def __init__(self, kymo, module, library, scratch):
        self.kymo, self.module, self.library, self.scratch = kymo, module, library, scratch
        self.tries = 0

    # ---- allocations ----

    def check_sites(self, process):
        sums = {}
        for site in process["sites"]:
            where = innermost_line(site)
            if where and site["frames"]:
                count, size = sums.get(where, (0, 0))
                sums[where] = (count + site["allocations"], size + site["allocated_bytes"])
        for where, count, size in ((("keep", line_of("keep")), 200, 70000), (("drop", line_of("drop")), 200, 50000),
                                   (("two", line_of("first")), 200, 3000), (("two", line_of("second")), 200, 3000)):
            allocations, allocated = sums.get(where, (0, 0))
            # The object itself and what keeps the list may be there as well.
            expect(count <= allocations <= 3 * count and count * size <= allocated <= count * (size + 1000),
                   f"{where}: {allocations} blocks, {allocated} bytes, not {count} of {size}; all: {sums}")
        kept = [site for site in process["sites"] if innermost_line(site) == ("keep", line_of("keep"))]
        expect(any(frame["function"] == "work" for site in kept for frame in site["frames"]), f"{kept[:1]}")

    def allocations(self, version):
        directory = self.scratch.path(f"allocations-{version}")
        ended = self.kymo.sample([python_of(version), ALLOCATE], directory, "--trace-memory=on")
        expect(ended.status == 0 and ended.stdout == b"done\n", f"{ended}")
        result = Result(directory)
        process, = result.json("memory.json")["processes"]
        self.check_sites(process)
        losses = result.processes()[0].get("losses", {})
        expect(not losses.get("interpreted_code"), f"{losses}")
        report = self.kymo.report(directory)
        expect("keep (allocate.py:" in report.stdout.decode() + report.stderr, f"{report}")

    def allocations_attached(self):
        """To a Python that runs: its lines are known at once."""
        directory = self.scratch.path("attached")
        code = ("import time\ndef grow():\n    return bytearray(90000)\nkept = []\n"
                "while True:\n    kept.append(grow())\n    time.sleep(0.005)\n")
        with subprocess.Popen(["/usr/bin/python3", "-c", code], env=clean_environment()) as process:
            try:
                time.sleep(0.3)
                ended = run([self.kymo.path, "attach", "-q", "-o", directory, "--time-output=off",
                             "--trace-memory", "--duration=1", "-p", str(process.pid)])
                if ended.status != 0 and "ptrace" in ended.stderr:
                    raise Skipped("attaching is not allowed here")
                expect(ended.status == 0 and process.poll() is None, f"{ended}, {process.poll()}")
            finally:
                process.kill()
        process, = Result(directory).json("memory.json")["processes"]
        large = [site for site in process["sites"] if site["allocated_bytes"] > 90000]
        named = [site for site in large if any(frame["function"] == "grow" and frame["line"] == 3
                                               for frame in site["frames"])]
        expect(large and sum(site["allocated_bytes"] for site in named) >=
               0.99 * sum(site["allocated_bytes"] for site in large), f"{large}")

    def wrapped_calls(self, version):
        """The line that makes a wrapped call is a value of its region."""
        directory = self.scratch.path(f"wrapped-{version}")
        script = self.scratch.path("wrapped.py")
        with open(script, "w", encoding="utf-8") as stream:
            stream.write("import os, time\n\ndef write(fd):\n    os.write(fd, b'x')\n\n"
                         "fd = os.open('/dev/null', os.O_WRONLY)\nfor _ in range(20):\n    write(fd)\n    time.sleep(0.001)\n")
        ended = self.kymo.sample([python_of(version), script], directory, "--trace-io=on", "--trace-sleep=on")
        expect(ended.status == 0, f"{ended}")
        with open(Result(directory).path("trace.pftrace"), "rb") as stream:
            trace = stream.read()
        for text in (b"write (wrapped.py:4)", b"<module> (wrapped.py:9)"):
            expect(trace.count(text) >= 19, f"{text}: {trace.count(text)} of 20 calls")

    # ---- the lock ----

    def lock(self, version):
        """Each thread's own clocks say what is true: CPU time is time with the lock, or without in zlib."""
        self.tries += 1
        directory = self.scratch.path(f"lock-{version}-{self.tries}")
        ended = self.kymo.sample([python_of(version), CONTEND, "1.5"], directory, "--realtime", "--freq=1000",
                                 "--sampling-realtime-freq=1000")
        expect(ended.status == 0, f"{ended}")
        truth = [line.split() for line in ended.stdout.decode().split("\n") if line]
        threads = sorted((thread for thread in Result(directory).json("profile.json")["threads"]
                          if thread.get("python_lock")), key=lambda thread: thread["start_ns"])
        expect(len(threads) == len(truth) + 1, f"{len(threads)} threads of Python: {threads}")
        shares = []
        for thread in threads:
            states = thread["python_lock"]
            whole = sum(states.values())
            shares.append({state.replace("_ns", ""): ns / whole for state, ns in states.items()})
        # The main thread starts Python, and waits for all others.
        expect(max(shares[0], key=shares[0].get) == "waits_otherwise", f"main: {shares[0]}")
        # Spinning threads start at the same time: their order is not known, but both did half.
        spinning = [(float(real), float(cpu)) for name, real, cpu in truth if name.startswith("spin")]
        wanted = sum(cpu for _, cpu in spinning) / sum(real for real, _ in spinning)
        seen = (shares[1]["runs_with_lock"] + shares[2]["runs_with_lock"]) / 2
        expect(abs(seen - wanted) <= POINTS, f"with the lock: {seen:.3f}, not {wanted:.3f}: {shares[1:3]}")
        # On a busy machine they wait for a CPU as well, with the lock and without.
        waits = sum(shares[i][what] for i in (1, 2) for what in ("waits_for_lock", "waits_for_cpu")) / 2
        expect(abs(waits - (1 - wanted)) <= POINTS, f"for the lock: {waits:.3f}, not {1 - wanted:.3f}: {shares[1:3]}")
        expect(all(shares[i]["waits_for_lock"] > 0.1 for i in (1, 2)), f"{shares[1:3]}")
        expect(shares[3]["runs_without_lock"] >= 0.95 * (1 - shares[3]["waits_for_cpu"]), f"zlib: {shares[3]}")
        expect(shares[4]["waits_otherwise"] >= 0.98, f"sleep: {shares[4]}")
        # On a slow machine the thread's own start is some of its time.
        _, real, cpu = next(line for line in truth if line[0].startswith("hold"))
        expect(shares[5]["waits_with_lock"] + shares[5]["runs_with_lock"] >= 0.98 and
               abs(shares[5]["runs_with_lock"] - float(cpu) / float(real)) <= POINTS,
               f"usleep with the lock for {real} s, {cpu} of the CPU: {shares[5]}")
        self.check_summary_of_lock(directory, threads)
        self.check_trace_of_lock(directory, threads)
        self.check_database_of_lock(directory, threads)

    def check_summary_of_lock(self, directory, threads):
        report = self.kymo.report(directory)
        text = report.stdout.decode() + report.stderr
        expect("waits for the lock" in text, f"{report}")
        rows = {int(match[5]): [float(match[i]) / 100 for i in range(1, 5)] for match in
                re.finditer(r"^ +([0-9.]+) % +([0-9.]+) % +([0-9.]+) % +([0-9.]+) %  \S+ \[([0-9]+)\]$", text, re.M)}
        for thread in threads[1:3]:
            states = thread["python_lock"]
            whole = sum(states.values())
            for seen, keys in zip(rows[thread["tid"]], (("runs_with_lock_ns", "waits_with_lock_ns"), ("waits_for_lock_ns",),
                                                       ("runs_without_lock_ns",), ("waits_otherwise_ns", "waits_for_cpu_ns"))):
                expect(abs(seen - sum(states[key] for key in keys) / whole) <= 0.001, f"{keys}: {seen}, {states}")

    @staticmethod
    def check_trace_of_lock(directory, threads):
        """A track a thread: slices that do not overlap, whose arguments add up to the thread's sums."""
        with open(Result(directory).path("trace.pftrace"), "rb") as stream:
            trace = Trace(stream.read())
        expect(not trace.errors, f"{trace.errors[:5]}")
        tids = {uuid: first(message(track[4][0]), 2) for uuid, track in trace.tracks.items() if 4 in track}
        texts = {"runs with the lock": "runs_with_lock_ns", "waits for the lock": "waits_for_lock_ns",
                 "waits for something else": "waits_otherwise_ns", "waits for a CPU": "waits_for_cpu_ns",
                 "waits for something else and keeps the lock": "waits_with_lock_ns",
                 "runs without it (code of libraries)": "runs_without_lock_ns"}
        slices = {}
        for event in trace.slices:
            if event["category"] == "python_lock":
                slices.setdefault(tids[first(trace.tracks[event["track"]], 5)], []).append(event)
        for thread in threads:
            sums, own = dict.fromkeys(texts.values(), 0), slices[thread["tid"]]
            for event in own:
                expect(event["depth"] == 0 and abs(sum(event["values"].values()) - 100) < 0.001 and
                       event["values"][event["name"]] > 100 / 6, f"{event}")
                for text, share in event["values"].items():
                    sums[texts[text]] += share / 100 * (event["end"] - event["time"])
            whole = sum(thread["python_lock"].values())
            for key, wanted in thread["python_lock"].items():
                expect(abs(sums[key] - wanted) <= POINTS * whole, f"{key}: {sums[key]} in the trace, {wanted}: {own[:4]}")

    def check_database_of_lock(self, directory, threads):
        keys = list(threads[0]["python_lock"])
        ended = run([self.kymo.path, "sql", "--format", "json", directory,
                     f"SELECT tid, {', '.join(keys)} FROM threads WHERE {keys[0]} IS NOT NULL"])
        expect(ended.status == 0, f"{ended}")
        rows = {row["tid"]: row for row in json.loads(ended.stdout)}
        expect({thread["tid"]: thread["python_lock"] for thread in threads} ==
               {tid: {key: row[key] for key in keys} for tid, row in rows.items()}, f"{rows}")
        ended = run([self.kymo.path, "sql", "--format", "json", directory,
                     "SELECT t.tid, s.python_lock, SUM(s.weight) AS ns FROM samples s JOIN threads t ON t.id = s.thread_id "
                     "WHERE s.python_lock IS NOT NULL GROUP BY 1, 2"])
        expect(ended.status == 0, f"{ended}")
        sums = {(row["tid"], row["python_lock"] + "_ns"): row["ns"] for row in json.loads(ended.stdout)}
        expect(sums == {(thread["tid"], key): ns for thread in threads for key, ns in thread["python_lock"].items() if ns},
               f"{sums}")

    # ---- the module ----

    def run_module(self, python, *wrapper, library=True):
        environment = {"PYTHONPATH": self.module}
        if library:
            environment["LD_LIBRARY_PATH"] = os.path.dirname(self.library)
        return run([*wrapper, python, "-c", MODULE_PROGRAM], environment=environment)

    def module_without_kymo(self):
        for library in (False, True):
            ended = self.run_module("/usr/bin/python3", library=library)
            expect((ended.status, ended.stdout) == (0, b"[0, 1, 2] False\n"), f"{ended}")

    def module_recorded(self, version):
        directory = self.scratch.path(f"module-{version}")
        ended = self.run_module(python_of(version), self.kymo.path, "sample", "-q", "-o", directory, "--time-output=off",
                                "--trace=on", "--profile=on", "--")
        expect((ended.status, ended.stdout) == (0, b"[0, 1, 2] True\n"), f"{ended}")
        text = open(Result(directory).path("profile.txt"), encoding="utf-8").read()
        for name in ("outer", "step", "decorated", "coroutine", "numbers", "pushed"):
            expect(name in text, f"{name} is not in profile.txt")


def main():
    tap, kymo = Tap(), Kymo(sys.argv[1])
    require_tool("/usr/bin/python3")
    with Scratch() as scratch:
        modes = Modes(kymo, sys.argv[2], sys.argv[3], scratch)
        for version in VERSIONS:
            tap.point(f"allocations by line, {version}", lambda version=version: modes.allocations(version))
        tap.point("allocations of a Python that runs already", modes.allocations_attached)
        for version in VERSIONS:
            tap.point(f"lines of wrapped calls, {version}", lambda version=version: modes.wrapped_calls(version))
        for version in VERSIONS:
            tap.point(f"the global lock, {version}", lambda version=version: modes.lock(version), retries=1)
        tap.point("the module without kymo", modes.module_without_kymo)
        for version in VERSIONS:
            tap.point(f"the module, {version}", lambda version=version: modes.module_recorded(version))
    tap.finish()


if __name__ == "__main__":
    main()
