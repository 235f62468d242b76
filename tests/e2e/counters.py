#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""Counters of kernels and devices, from the command line to the files: OpenCL on PoCL, and the host.

  counters.py KYMO DIRECTORY-OF-PROGRAMS
"""
import collections
import csv
import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../unit/output"))

from harness import (Kymo, Result, Scratch, Skipped, Tap, clean_environment, expect, installed,
                     run, wait_until)  # noqa: E402
from perfetto_decode import Trace  # noqa: E402

COLUMNS = ("Correlation_Id,Dispatch_Id,Agent_Id,Queue_Id,Process_Id,Thread_Id,Grid_Size,Kernel_Id,Kernel_Name,"
           "Workgroup_Size,LDS_Block_Size,Scratch_Size,VGPR_Count,Accum_VGPR_Count,SGPR_Count,Counter_Name,"
           "Counter_Value,Start_Timestamp,End_Timestamp").split(",")
BURN = "import time\nend = time.process_time() + 0.6\nwhile time.process_time() < end: pass\nprint(time.process_time())"

RANGES = """import ctypes, mmap, sys, time
marks = ctypes.CDLL(sys.argv[1])
def burn(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end: pass
marks.roctxRangePushA(b"all")
for seconds in (0.05, 0.1, 0.15):
    before = time.thread_time()
    marks.roctxRangePushA(b"turn")
    burn(seconds)
    marks.roctxRangePop()
    print(time.thread_time() - before)
memory = mmap.mmap(-1, 4 << 20)
if hasattr(memory, "madvise") and hasattr(mmap, "MADV_NOHUGEPAGE"): memory.madvise(mmap.MADV_NOHUGEPAGE)
for at in range(0, 4 << 20, 4096): memory[at] = 1
marks.roctxRangePop()
marks.roctxRangePushA(b"open at the end")
sys.exit(3)
"""

THREADS = """import ctypes, sys, threading
marks = ctypes.CDLL(sys.argv[1])
together = threading.Barrier(6)
def work():
    together.wait()
    for _ in range(5):
        marks.roctxRangePushA(b"of a thread")
        marks.roctxRangePop()
threads = [threading.Thread(target=work) for _ in range(6)]
for each in threads: each.start()
for each in threads: each.join()
"""


def rows_of(result, name="counter_collection.csv"):
    with open(result.path(name), encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def launches_of(result):
    """{dispatch: {counter: value}} and {dispatch: row}."""
    values, rows = collections.defaultdict(dict), {}
    for row in rows_of(result):
        values[int(row["Dispatch_Id"])][row["Counter_Name"]] = float(row["Counter_Value"])
        rows[int(row["Dispatch_Id"])] = row
    return values, rows


def main():
    kymo, tap = Kymo(sys.argv[1]), Tap()
    programs = os.path.abspath(sys.argv[2])
    mix, spin = os.path.join(programs, "opencl_mix"), os.path.join(programs, "opencl_spin")

    def counted(program, *options, quiet=True, **how):
        directory = scratch.path(f"{os.path.basename(program[0])}-{len(os.listdir(scratch.directory))}")
        ended = run([kymo.path, "run", "-o", directory, "--time-output=off", *(["-q"] if quiet else []), *options,
                     "--", *program], **how)
        return Result(directory), ended

    def refused(*options):
        marker = scratch.path("ran")
        _, ended = counted(["touch", marker], *options)
        expect(ended.status == 125, f"{ended.status}: {ended.stderr}")
        expect(not os.path.exists(marker), "the program ran all the same")
        return ended.stderr

    def with_opencl():
        if not os.path.exists(spin) or not shutil.which("clinfo") or \
                b"Platform #0" not in run(["clinfo", "-l"]).stdout:
            raise Skipped("no OpenCL device here")

    def each_launch_is_counted():
        with_opencl()
        bare = run([mix, "3"])
        result, ended = counted([mix, "3"], "--counters", "task_clock,page_faults")
        expect(ended.status == 0, f"{ended.status}: {ended.stderr}")
        expect(ended.stdout == bare.stdout, f"prints {ended.stdout}, not {bare.stdout}")
        launched = int(re.search(r"kernels (\d+)", ended.stdout.decode()).group(1))
        with open(result.path("counter_collection.csv"), encoding="utf-8", newline="") as stream:
            expect(next(csv.reader(stream)) == COLUMNS, "other columns than rocprofv3's")
        values, rows = launches_of(result)
        expect(sorted(values) == list(range(1, launched + 1)), f"launches {sorted(values)}, not {launched}")
        expect(collections.Counter(row["Kernel_Name"] for row in rows.values()) ==
               {"add": launched / 2, "scale": launched / 2}, "other kernels")
        for dispatch, counters in values.items():
            expect(set(counters) == {"task_clock", "page_faults"}, f"launch {dispatch} has {counters}")
            expect(counters["task_clock"] > 0, f"launch {dispatch} took no time")
            expect(rows[dispatch]["Grid_Size"] == "4096", f"grid {rows[dispatch]['Grid_Size']}")
            expect(int(rows[dispatch]["Thread_Id"]) > 0, "no thread")

    def values_are_what_the_program_measures():
        """CPU time of a launch: the counter's beside that of the process, by the program's own clock."""
        with_opencl()
        result, ended = counted([spin, "5"], "--counters", "task_clock,kernel_time")
        expect(ended.status == 0, f"{ended.status}: {ended.stderr}")
        values, rows = launches_of(result)
        own = {int(number): int(ns) for number, ns in re.findall(r"spin (\d+) (\d+)", ended.stdout.decode())}
        expect(len(own) == 5 and len(values) == 15, f"{len(own)} and {len(values)} launches")
        for number, ns in own.items():
            # What the program sees has the enqueueing in it as well.
            expect(0.75 * ns - 2e6 <= values[number]["task_clock"] <= 1.02 * ns + 1e6,
                   f"launch {number}: counted {values[number]['task_clock']:.0f} ns, measured {ns}")
            took = int(rows[number]["End_Timestamp"]) - int(rows[number]["Start_Timestamp"])
            expect(abs(values[number]["kernel_time"] - took) <= 1e5 + took * 0.01,
                   f"launch {number}: {values[number]['kernel_time']} ns in {took}")
        expect(values[5]["task_clock"] > 3 * values[1]["task_clock"], "five times the work, but not three times the time")

    def launches_are_one_after_the_other():
        with_opencl()
        result, ended = counted([spin, "4"], "--counters", "task_clock")
        expect(ended.status == 0, ended.stderr)
        _, rows = launches_of(result)
        expect(len({row["Queue_Id"] for row in rows.values()}) == 2, "one queue")
        intervals = sorted((int(row["Start_Timestamp"]), int(row["End_Timestamp"])) for row in rows.values())
        for before, after in zip(intervals, intervals[1:]):
            expect(before[1] <= after[0], f"{before} and {after} overlap")
        with open(result.path("trace.pftrace"), "rb") as stream:
            trace = Trace(stream.read())
        expect(not trace.errors, f"{trace.errors[:5]}")
        kernels = sorted((event["time"], event["end"]) for event in trace.slices if event["category"] == "kernel")
        expect(len(kernels) == 12, f"{len(kernels)} kernels on the timeline")
        for before, after in zip(kernels, kernels[1:]):
            expect(before[1] <= after[0], f"{before} and {after} overlap on the timeline")
        tracks = [track for track in trace.tracks.values() if "task_clock of kernels on" in str(track)]
        expect(len(tracks) == 1, f"{len(tracks)} tracks of the counter")

    def filter_of_kernels():
        with_opencl()
        result, ended = counted([mix, "3"], "--counters", "task_clock", "--kernel-include", "^add$",
                                "--kernel-range", "2-3; 5", quiet=False)
        expect(ended.status == 0, ended.stderr)
        _, rows = launches_of(result)
        expect([row["Kernel_Name"] for row in rows.values()] == ["add"] * 3, f"launches {sorted(rows)} are counted")
        filtered = result.json("counters.json")["missing"]["filtered"]
        expect(filtered == int(re.search(r"kernels (\d+)", ended.stdout.decode()).group(1)) - 3, f"{filtered}")
        expect(f"{filtered} launches were not counted" in ended.stderr, ended.stderr)
        result, _ = counted([mix, "1"], "--counters", "task_clock", "--kernel-exclude", "add|nothing")
        expect({row["Kernel_Name"] for row in rows_of(result)} == {"scale"}, "the excluded kernel is there")

    def files_say_the_same():
        with_opencl()
        result, ended = counted([mix, "2"], "--counters", "task_clock page_faults", quiet=False)
        values, rows = launches_of(result)
        document = result.json("counters.json")
        expect(document["schema"] == "kymo.counters/1", document["schema"])
        seen = {launch["dispatch"]: {value["counter"]: value["value"] for value in launch["values"]}
                for process in document["processes"] for launch in process["dispatches"]}
        expect(seen == values, "JSON and CSV differ")
        for row in document["kernels"]:
            mine = [values[d][row["counter"]] for d in values if rows[d]["Kernel_Name"] == row["kernel"]]
            expect((row["launches"], row["sum"], row["min"], row["max"]) ==
                   (len(mine), sum(mine), min(mine), max(mine)), f"{row}")
        with sqlite3.connect(result.path("results.db")) as database:
            table = {(dispatch, counter): value for dispatch, counter, value in
                     database.execute("SELECT dispatch_id, counter_name, value FROM counters_collection")}
            kernels = database.execute("SELECT COUNT(*) FROM rocpd_kernel_dispatch JOIN rocpd_info_agent agent "
                                       "ON agent.id = agent_id").fetchone()[0]
        expect(table == {(d, counter): value for d in values for counter, value in values[d].items()}, "SQL and CSV differ")
        expect(kernels == len(values), f"{kernels} rows of kernels")
        for word in "Counters of kernels", "task_clock", "page_faults", "add", "scale":
            expect(word in ended.stderr, f"{word!r} is not in the summary")
        converted = kymo.report(result.directory, "--format", "counters")
        with open(result.path("counter_collection.csv"), "rb") as stream:
            expect(converted.stdout == stream.read(), "kymo report gives another table")

    def mistakes_end_before_the_start():
        expect("did you mean 'task_clock'?" in (said := refused("--counters", "task_clok")), said)
        expect("--kernel-range: '5-3'" in (said := refused("--counters", "task_clock", "--kernel-range", "5-3")), said)
        expect("--kernel-range: ','" in (said := refused("--counters", "task_clock", "--kernel-range", ",")), said)
        expect("not a regular expression" in (said := refused("--counters", "task_clock", "--kernel-include", "(")), said)
        expect("no device here has a counter 'zzz'" in (said := refused("--device-counters", "zzz")), said)
        expect("cannot read" in (said := refused("-i", "/nonexistent.txt")), said)
        expect("--input takes one FILE, not both 'a' and 'b'" in (said := refused("-i", "a", "--input=b")),
               said)
        expect("--kernel-range: '9-8'" in
               (said := refused("--counters", "task_clock", "--kernel-range=9-8", "--kernel-range", "1")), said)
        path = scratch.path("wrong.yaml")
        with open(path, "w", encoding="ascii") as stream:
            stream.write("jobs:\n  - pcm: [task_clock]\n")
        expect(f"{path}:2:5: unknown key 'pcm'; did you mean 'pmc'?" in (said := refused("-i", path)), said)
        path = scratch.path("wrong.json")
        with open(path, "w", encoding="ascii") as stream:
            stream.write('{\n\t"jobs":\t[\n\t\t{"pmc": ["task_clock"]},\n\t\t{\t"pcm": ["task_clock"]}]}\n')
        expect(f"{path}:4:5: unknown key 'pcm'; did you mean 'pmc'?" in (said := refused("-i", path)), said)

    def what_no_device_counts_that_way_is_told_before():
        """Of the host alone, of devices alone, of kernels alone, and what is computed of them."""
        expect("'system_task_clock' counts a device over time" in (said := refused("--counters", "system_task_clock")), said)
        path = scratch.path("ways.yaml")
        with open(path, "w", encoding="ascii") as stream:
            stream.write("WHOLE:\n  architectures:\n    host:\n      expression: 1+system_task_clock\n"
                         "  description: of devices\nOF_HOST:\n  architectures:\n    host:\n"
                         "      expression: 2*task_clock\n  description: of the host\n")
        definitions = ("--counter-defs", path)
        expect("'WHOLE' counts a device over time" in (said := refused(*definitions, "--counters", "WHOLE")), said)
        expect("only the host has 'OF_HOST'" in (said := refused(*definitions, "--counters", "OF_HOST")), said)
        for options in ("--counters", "OF_HOST", "--count-regions=on"), ("--device-counters", "OF_HOST,WHOLE"):
            _, ended = counted(["true"], *definitions, *options)
            expect(ended.status == 0, f"{options}: {ended.stderr}")
        jobs = scratch.path("ways.txt")
        with open(jobs, "w", encoding="ascii") as stream:
            stream.write("pmc: task_clock\npmc: system_task_clock\n")
        with_opencl()
        expect(f"{jobs}:2: 'system_task_clock'" in (said := refused("-i", jobs)), said)
        expect("'kernels' counts a device over time" in (said := refused("--counters", "kernels")), said)
        expect("'kernel_time' counts single kernels" in (said := refused("--device-counters", "kernel_time")), said)

    def several_runs():
        with_opencl()
        forms = {
            "runs.txt": "# two runs\npmc: task_clock\npmc: page_faults, kernel_time # both\n",
            "runs.yaml": "jobs:\n  - pmc: [task_clock]\n    kernel_include_regex: add\n"
                         "    kernel_iteration_range: \"[1-2]\"\n  - pmc: [page_faults, kernel_time]\n",
            "runs.json": '{"jobs": [{"pmc": ["task_clock"], "kernel_include_regex": "add", '
                         '"kernel_iteration_range": "[1-2]"}, {"pmc": ["page_faults", "kernel_time"]}]}',
        }
        for name, text in forms.items():
            path = scratch.path(name)
            with open(path, "w", encoding="ascii") as stream:
                stream.write(text)
            result, ended = counted([mix, "1"], "-i", path)
            expect(ended.status == 0, f"{name}: {ended.stderr}")
            expect(ended.stdout.count(b"kernels") == 2, f"{name}: {ended.stdout}")
            folder = "pmc" if name.endswith(".txt") else "pass"
            first, _ = launches_of(Result(result.path(f"{folder}_1")))
            second, _ = launches_of(Result(result.path(f"{folder}_2")))
            expect({tuple(counters) for counters in first.values()} == {("task_clock",)}, f"{name}: {first}")
            expect({frozenset(counters) for counters in second.values()} == {frozenset(("page_faults", "kernel_time"))},
                   f"{name}: {second}")
            expect(len(first) == (2 if folder == "pass" else len(second)), f"{name}: {len(first)} launches")

        path = scratch.path("late.txt")
        with open(path, "w", encoding="ascii") as stream:
            stream.write("pmc: task_clock\n\npmc: task_clokc\n")
        expect(f"{path}:3: no device here has a counter 'task_clokc'" in (said := refused("-i", path)), said)

    def statuses_are_the_programs():
        for status in 0, 3:
            _, ended = counted(["sh", "-c", f"exit {status}"], "--device-counters", "task_clock", quiet=False)
            expect(ended.status == status, f"{ended.status}, not {status}: {ended.stderr}")
            # Shells end by _exit(): no reading is made of the last interval.
            expect("1 of 1 processes did not end by exit()" in ended.stderr, ended.stderr)
        path = scratch.path("two.txt")
        with open(path, "w", encoding="ascii") as stream:
            stream.write("pmc: task_clock\npmc: page_faults\n")
        _, ended = counted(["sh", "-c", "exit 4"], "-i", path)
        expect(ended.status == 4, f"{ended.status}: {ended.stderr}")
        _, ended = counted(["sh", "-c", "kill -TERM $$"], "-i", path)
        expect(ended.status == -signal.SIGTERM, f"{ended.status}: {ended.stderr}")

    def device_over_time():
        """CPU time of the process in intervals, beside what the process says itself at its end."""
        result, ended = counted([sys.executable, "-c", BURN], "--device-counters", "task_clock,page_faults",
                                "--interval", "20", quiet=False)
        expect(ended.status == 0, ended.stderr)
        rows = [row for row in rows_of(result, "device_counters.csv") if row["Agent_Id"] == "Agent 0"]
        clock = [row for row in rows if row["Counter_Name"] == "task_clock"]
        expect(len(clock) >= 5, f"{len(clock)} readings")
        expect(len(rows) == 2 * len(clock), "not as many readings of each counter")
        for before, after in zip(clock, clock[1:]):
            expect(before["End_Timestamp"] == after["Start_Timestamp"], "a gap between readings")
        counted_s, own = sum(float(row["Counter_Value"]) for row in clock) / 1e9, float(ended.stdout)
        expect(0.9 * own <= counted_s <= 1.15 * own + 0.1, f"counted {counted_s} s, the process says {own} s")
        expect("Counters of devices" in ended.stderr, ended.stderr)
        with sqlite3.connect(result.path("results.db")) as database:
            total = database.execute("SELECT SUM(value) FROM device_counters WHERE counter_name = 'task_clock' AND "
                                     "agent_abs_index = 0").fetchone()[0]
        expect(abs(total / 1e9 - counted_s) < 1e-6, f"{total} in the database")
        with open(result.path("trace.pftrace"), "rb") as stream:
            trace = Trace(stream.read())
        expect(not trace.errors, f"{trace.errors[:5]}")
        expect(any("task_clock of" in str(track) for track in trace.tracks.values()), "no track")

    def roctx():
        return installed(os.path.join(os.path.dirname(kymo.path),
                                      "../libkymo-sdk-roctx/librocprofiler-sdk-roctx.so.1"))

    def first_ranges_of_all_threads():
        """The tool is loaded at the first mark of one thread, while others make theirs."""
        program = scratch.path("threads.py")
        with open(program, "w", encoding="utf-8") as stream:
            stream.write(THREADS)
        result, _ = counted([sys.executable, program, roctx()], "--counters", "task_clock", "--count-regions=on")
        expect(len(rows_of(result)) == 30, f"{len(rows_of(result))} of 30 ranges")

    def ranges_are_kernels_of_the_host():
        """roctx in a program that knows nothing of kymo: what each range says of itself, and what is counted."""
        library = roctx()
        program = scratch.path("ranges.py")
        with open(program, "w", encoding="utf-8") as stream:
            stream.write(RANGES)
        options = ("--counters", "task_clock,page_faults", "--count-regions=on")
        result, ended = counted([sys.executable, program, library], *options, quiet=False)
        expect(ended.status == 3, f"{ended.status}: {ended.stderr}")
        own = [float(line) for line in ended.stdout.split()]
        values, rows = launches_of(result)
        names = collections.Counter(row["Kernel_Name"] for row in rows.values())
        expect(names == {"turn": 3, "all": 1}, f"{names}")
        turns = [values[number]["task_clock"] / 1e9 for number in sorted(rows) if rows[number]["Kernel_Name"] == "turn"]
        for counted_s, said_s in zip(turns, own):
            expect(abs(counted_s - said_s) <= 0.05 * said_s + 0.001, f"{turns} s counted, the program says {own} s")
        whole = next(values[number] for number in rows if rows[number]["Kernel_Name"] == "all")
        expect(whole["task_clock"] / 1e9 >= sum(turns), f"{whole} about {turns}")
        expect(whole["page_faults"] >= 500, f"{whole}")
        expect("turn, 3 launches" in ended.stderr, ended.stderr)
        expect("open when the process ended" in ended.stderr + json.dumps(result.json("counters.json")),
               "nothing of the range that was open")
        _, ended = counted([sys.executable, program, library], *options[:2], quiet=False)
        expect("turn" not in ended.stderr, ended.stderr)

    def survives_sigkill():
        with_opencl()
        directory = scratch.path("killed")
        process = subprocess.Popen([kymo.path, "run", "-q", "-o", directory, "--time-output=off", "--counters",
                                    "task_clock", "--", spin, "100000"], stdout=subprocess.PIPE,
                                   env=clean_environment(), start_new_session=True)
        try:
            for _ in range(20):
                process.stdout.readline()
            spool = os.path.join(directory, "spool")
            pid = wait_until(lambda: next((int(name.split("-")[0]) for name in os.listdir(spool)
                                           if name.endswith(".gpu")), 0), "no records")
            wait_until(lambda: process.stdout.readline(), "the program stopped")
            os.kill(pid, signal.SIGKILL)
            process.stdout.read()
            process.wait(timeout=120)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
        values, _ = launches_of(Result(directory))
        expect(len(values) >= 10, f"{len(values)} launches are left")
        expect(all(counters["task_clock"] > 0 for counters in values.values()), "values without time")

    def a_full_disk_stops_nothing():
        """Each record finds the disk full anew; asking for room each time took longer than the program."""
        with_opencl()
        if os.geteuid():
            raise Skipped("needs root for a small file system")
        place = scratch.path("small")
        os.mkdir(place)
        if run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", place]).status != 0:
            raise Skipped("cannot mount")
        try:
            for quiet in [], ["-q"]:
                results = os.path.join(place, f"results{len(quiet)}")
                ended = run([kymo.path, "run", *quiet, "-o", results, "--counters", "task_clock", "--", mix, "2000"],
                            timeout=60)
                expect(ended.status == 0 and ended.stdout == run([mix, "2000"]).stdout, f"{ended}")
                expect("the disk is full" in " ".join(ended.stderr.split()), ended.stderr)
                shutil.rmtree(results, ignore_errors=True)
        finally:
            run(["umount", "-l", place])

    def nothing_counted_is_said():
        with_opencl()
        _, ended = counted(["true"], "--counters", "task_clock", "--device-counters", "busy_time,task_clock", quiet=False)
        expect(ended.status == 0 and "no kernel was counted" in ended.stderr and "no device was read" in ended.stderr,
               ended.stderr)
        result, _ = counted([mix, "1"], "--counters", "task_clock", "--kernel-include", "no such kernel")
        expect(result.json("counters.json")["processes"], "nothing about what the filter left out")

    def damage_is_told():
        """By formats that have no place for it, too."""
        with_opencl()
        result, _ = counted([mix, "1"], "--counters", "task_clock")
        for name in os.listdir(result.path("spool")):
            if name.endswith(".gpu"):
                with open(os.path.join(result.path("spool"), name), "r+b") as stream:
                    stream.seek(4096 + 64)
                    stream.write(b"\xff" * 200)
        ended = run([kymo.path, "report", "--format", "counters", result.path("")])
        expect("could not be read" in ended.stderr, f"{ended}")

    def survives_exit():
        """A counted kernel is in the file when its enqueueing returns."""
        with_opencl()
        result, ended = counted([mix, "2", "_exit"], "--counters", "task_clock")
        expect(ended.status == 0, f"{ended.status}: {ended.stderr}")
        values, _ = launches_of(result)
        expect(len(values) == int(re.search(r"kernels (\d+)", ended.stdout.decode()).group(1)), f"{len(values)} launches")

    def children_that_end_at_once():
        """Of a shell, and of a program that goes on with what its parent had opened."""
        for options in (["--device-counters", "task_clock"], ["--counters", "task_clock", "--count-regions=on"]):
            directory = scratch.path("children")
            ended = run([kymo.path, "run", "-q", "--force", "--output-path", directory, *options, "--", "bash", "-c",
                         "(true); x=$(echo one); echo $x | cat; (exit 3)"], timeout=60)
            expect(ended.status == 3 and ended.stdout == b"one\n", f"{ended}")

    def definitions_of_users():
        with_opencl()
        right, wrong = scratch.path("right.yaml"), scratch.path("wrong_defs.yaml")
        with open(right, "w", encoding="ascii") as stream:
            stream.write("TWICE:\n  architectures:\n    pocl_cpu:\n      expression: 2*task_clock\n"
                         "  description: twice the time\n")
        with open(wrong, "w", encoding="ascii") as stream:
            stream.write("TWICE:\n  architectures:\n    pocl_cpu:\n      expression: 2*task_clock+\n"
                         "  description: half of it\n")
        ended = run([kymo.path, "counters", "check", right])
        expect(ended.status == 0 and not ended.stdout, f"{ended}")
        ended = run([kymo.path, "counters", "check", wrong, right])
        expect(ended.status == 1 and ended.stdout.startswith(f"{wrong}:4:".encode()), f"{ended}")
        foreign = scratch.path("latin1.yaml")
        with open(foreign, "w", encoding="latin-1") as stream:
            stream.write("TWICE:\n  architectures:\n    pocl_cpu:\n      expression: 2*task_clock\n"
                         "  description: \xdcberall\n")
        ended = run([kymo.path, "counters", "check", foreign])
        expect(ended.status == 1 and ended.stdout.startswith(f"{foreign}:5:16: ".encode()), f"{ended}")
        listed = scratch.path("listed.yaml")
        with open(listed, "w", encoding="ascii") as stream:
            stream.write("A: {architectures: {host: {expression: 'reduce(system_task_clock,sum)'}}}\n"
                         "B: {architectures: {pocl_cpu: {expression: task_clock+kernel_time}}}\n"
                         "kernel_time: {architectures: {opencl: {expression: kernel_time*2}}}\n"
                         "task_clock: {architectures: {host: {expression: task_clock*2}}}\n")
        ended = run([kymo.path, "counters", "check", listed])
        expect(ended.status == 0 and not ended.stdout, f"what devices list by themselves: {ended}")
        expect("cannot both be given" in (said := refused("--counters", "task_clock", "--input", listed)), said)
        expect("--counter-defs: cannot read 'nothing.yaml'" in
               (said := refused("--counters", "task_clock", "--counter-defs", "nothing.yaml")), said)
        result, ended = counted([mix, "1"], "--counters", "TWICE,task_clock", "--counter-defs", right)
        expect(ended.status == 0, ended.stderr)
        values, _ = launches_of(result)
        expect(values and all(each["TWICE"] == 2 * each["task_clock"] for each in values.values()), f"{values}")
        agent = json.loads(run([kymo.path, "avail", "--counters", "--json", "--counter-defs", right, "TWICE"]).stdout)
        found = [counter for each in agent["agents"] for counter in each["counters"]]
        expect([counter["name"] for counter in found] == ["TWICE"] and found[0]["derived"], f"{found}")

    def what_is_no_number():
        """Empty, and the same in every file."""
        with_opencl()
        path = scratch.path("no_numbers.yaml")
        with open(path, "w", encoding="ascii") as stream:
            for name, expression in ("HUGE", "(task_clock+1)*1e308*1e308"), ("NONE", "HUGE-HUGE"):
                stream.write(f"{name}:\n  architectures:\n    pocl_cpu:\n      expression: {expression}\n"
                             f"  description: no finite number\n")
        result, ended = counted([mix, "1"], "--counters", "HUGE,NONE,task_clock", "--counter-defs", path, quiet=False)
        expect(ended.status == 0, ended.stderr)
        expect(not re.search(r"\b(nan|inf)\b", ended.stderr), ended.stderr)
        for row in (rows := rows_of(result)):
            expect((row["Counter_Value"] == "") == (row["Counter_Name"] != "task_clock"), f"{row}")
        expect(rows, "nothing was counted")
        values = [value for each in result.json("counters.json")["processes"][0]["dispatches"] for value in each["values"]]
        expect(values and all((value["value"] is None) == (value["counter"] != "task_clock") for value in values), f"{values}")
        with sqlite3.connect(result.path("results.db")) as database:
            types = set(database.execute("SELECT counter_name, typeof(value) FROM counters_collection"))
        expect(types == {("HUGE", "null"), ("NONE", "null"), ("task_clock", "real")}, f"{types}")
        with open(result.path("trace.pftrace"), "rb") as stream:
            expect(not (trace := Trace(stream.read())).errors, f"{trace.errors[:5]}")

    def listing():
        ended = run([kymo.path, "avail", "--counters"])
        expect(ended.status == 0, ended.stderr)
        for word in b"Agent 0:", b"SW", b"task_clock", b"system_task_clock":
            expect(word in ended.stdout, f"{word} is not listed")
        agents = json.loads(run([kymo.path, "avail", "--counters", "--agent", "0", "--json"]).stdout)["agents"]
        expect(len(agents) == 1 and agents[0]["type"] == "cpu", f"{len(agents)} agents")
        system = next(each for each in agents[0]["counters"] if each["name"] == "system_task_clock")
        expect(system["dimensions"] == [{"name": "DIMENSION_INSTANCE", "size": os.cpu_count()}], f"{system}")
        ended = run([kymo.path, "avail", "--counters", "--agent", "99"])
        expect(ended.status == 125 and "there is no agent 99" in ended.stderr, f"{ended}")

    def a_terminal_gets_no_commands():
        """Of names of files and what is in them, from the command, the tool library and the summary."""
        path = scratch.path("a \033[31m\u009b31m.yaml")
        with open(path, "w", encoding="utf-8") as stream:
            stream.write('GOOD:\n  architectures:\n    host:\n      expression: 2*task_clock\n'
                         '  description: "a \\e[2J and \\x9b31m"\n"BAD\\e[2J\\n":\n  description: none\n')
        _, counted_with = counted(["true"], "--device-counters", "GOOD", "--counter-defs", path, quiet=False)
        checked, listed = run([kymo.path, "counters", "check", path]), \
            run([kymo.path, "avail", "--counters", "--counter-defs", path, "GOOD"])
        expect(counted_with.status == 0 and checked.status == 1 and listed.status == 0, f"{checked} {listed}")
        expect("BAD?[2J?" in checked.stdout.decode() and "a ?[2J and ?31m = 2*task_clock" in listed.stdout.decode(),
               f"{checked} {listed}")
        for ended in counted_with, checked, listed:
            said = ended.stdout.decode() + ended.stderr
            expect(not re.search("[\0-\x08\x0b-\x1f\x7f-\x9f]", said), f"{said!r}")

    with Scratch() as scratch:
        for check in (each_launch_is_counted, values_are_what_the_program_measures, launches_are_one_after_the_other,
                      filter_of_kernels, files_say_the_same, mistakes_end_before_the_start,
                      what_no_device_counts_that_way_is_told_before, several_runs,
                      statuses_are_the_programs, device_over_time, ranges_are_kernels_of_the_host,
                      first_ranges_of_all_threads, survives_sigkill, survives_exit, children_that_end_at_once, a_full_disk_stops_nothing, nothing_counted_is_said, damage_is_told, definitions_of_users,
                      what_is_no_number, listing, a_terminal_gets_no_commands):
            tap.point(check.__name__, check, retries=2 if check is values_are_what_the_program_measures else 0)
    tap.finish()


main()
