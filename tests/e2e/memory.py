#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""Allocations by call site (TRACE_MEMORY) of programs that know what they allocate, and real
programs that must not notice.

  memory.py KYMO DIRECTORY-OF-PROGRAMS
"""
import json
import os
import shutil
import signal
import subprocess
import sys
import time

from harness import Kymo, Result, Scratch, Skipped, Tap, expect, run

SUMS = ("allocations", "frees", "allocated_bytes", "peak_bytes", "live_blocks", "live_bytes")


class Memory:
    def __init__(self, kymo, programs, scratch):
        self.kymo, self.programs, self.scratch = kymo, programs, scratch

    def profiled(self, name, command, *options, **how):
        """The run, bare and profiled: the same to whoever looks on. Returns its result."""
        directory = self.scratch.path(name)
        bare = run(command, **how)
        ended = self.kymo.sample(command, directory, "--trace-memory=on", *options, **how)
        expect(ended.status == bare.status,
               f"status {ended.status}, bare {bare.status}: {ended.stderr[-2000:]}")
        expect(ended.stdout == bare.stdout, f"said {ended.stdout[:200]!r}")
        return Result(directory)

    def processes(self, scenario, *options):
        command = [os.path.join(self.programs, "allocations"), scenario]
        name = "-".join([scenario, *(option.strip("-") for option in options)])
        return self.profiled(name, command, *options).json("memory.json")["processes"]

    def sites(self, process):
        """{function: sums} added up over the stacks that lead to it; libc's are left out."""
        found = {}
        for site in process["sites"]:
            name = site["frames"][0]["function"]
            sums = found.setdefault(name, dict.fromkeys(SUMS, 0))
            for key in SUMS:
                sums[key] += site[key]
        return found

    def expect_site(self, process, function, *wanted):
        sums = self.sites(process).get(function)
        expect(sums is not None, f"no site {function} among {sorted(self.sites(process))}")
        got = tuple(sums[key] for key in SUMS)
        expect(all(want is None or want == have for want, have in zip(wanted, got)),
               f"{function}: {dict(zip(SUMS, got))}, not {wanted}")

    def counts_bytes_peaks_and_leaks(self):
        process, = self.processes("plain")
        self.expect_site(process, "site_freed", 1000, 1000, 100000, 100, 0, 0)
        self.expect_site(process, "site_leaks", 1000, 900, 24000, 2424, 100, 2400)
        self.expect_site(process, "site_peak", 100, 100, 100 << 20, 100 << 20, 0, 0)
        expect(process["unknown_frees"] == 0, f"{process['unknown_frees']} unknown frees")

    def threads(self):
        process, = self.processes("threads")
        self.expect_site(process, "site_freed", 4000, 4000, 400000, None, 0, 0)
        self.expect_site(process, "site_leaks", 4000, 3600, 96000, None, 400, 9600)

    def children_of_a_process_that_is_allocating(self):
        processes = self.processes("fork")
        expect(len(processes) == 21, f"{len(processes)} processes")
        for process in processes:
            if "site_leaks" in self.sites(process):
                self.expect_site(process, "site_leaks", 1000, 900, 24000, 2424, 100, 2400)
                expect("site_freed" not in self.sites(process), "allocations of the parent")
        children = sum("site_leaks" in self.sites(process) for process in processes)
        expect(children == 20, f"{children} children")

    def blocks_that_grow(self):
        process, = self.processes("resize")
        self.expect_site(process, "site_grows", 8000, 8000, 255000, 128, 0, 0)

    def the_whole_family(self):
        process, = self.processes("family")
        size = 128 + 64 + 10 + 10 + 15 + 13 + 7 + 100
        self.expect_site(process, "site_family", 8000, 8000, 1000 * size, None, 0, 0)

    def what_libc_allocates_is_its_callers(self):
        process, = self.processes("libc")
        lines = [site for site in process["sites"] if site["allocated_bytes"] == 10 * 120
                 and any(frame["function"] == "site_libc" for frame in site["frames"])]
        expect(len(lines) == 1 and lines[0]["allocations"] == lines[0]["frees"] == 10,
               f"getline: {lines}")
        expect(process["unknown_frees"] == 0 and process["live_blocks"] == 0,
               f"{process['unknown_frees']} unknown frees, {process['live_blocks']} blocks live")

    def calls_through_the_next_definition(self):
        process, = self.processes("next")
        self.expect_site(process, "site_next", 10, 0, 2020)

    def who_held_what_at_the_peak_of_the_process(self):
        process, = self.processes("peak")
        expect(process["peak_bytes"] == 80000000, f"peak of {process['peak_bytes']}")
        held = {site["frames"][0]["function"]: site["bytes_at_process_peak"]
                for site in process["sites"]}
        both = {site["frames"][0]["line"]: site["bytes_at_process_peak"]
                for site in process["sites"] if site["frames"][0]["function"] == "site_first"}
        expect(held["site_second"] == 50000000 and sum(both.values()) == 30000000, f"{held}, {both}")
        expect(process["temporary_allocations"] == 2, f"{process['temporary_allocations']} temporary")
        sizes = {entry["up_to_bytes"]: entry["allocations"] for entry in process["sizes"]}
        expect(sizes == {1 << 26: 2, 1 << 25: 1}, f"{sizes}")

    def ends_by_signals_lose_nothing(self):
        for number in (signal.SIGTERM, signal.SIGABRT, signal.SIGSEGV, signal.SIGKILL):
            directory = self.scratch.path(f"signal-{number}")
            command = [os.path.join(self.programs, "allocations"), "signal", str(int(number))]
            self.kymo.sample(command, directory, "--trace-memory=on")
            process, = Result(directory).json("memory.json")["processes"]
            self.expect_site(process, "site_leaks", 1000, 900, 24000, 2424, 100, 2400)
            expect(process["complete"], f"signal {number}: marked as incomplete")

    def a_window_of_the_run(self):
        name, command = "window", [os.path.join(self.programs, "allocations"), "steady"]
        self.profiled(name, command)
        ended = self.kymo.report(self.scratch.path(name), "--from=0.5", "--to=1.0", "--format=memory")
        expect(ended.status == 0, ended.stderr)
        process, = json.loads(ended.stdout)["processes"]
        expect(500 <= process["allocations"] <= 1500,
               f"{process['allocations']} allocations in half a second, 1000 expected")
        expect(all(0.3e9 <= point["time_ns"] <= 1.0e9 for point in process["over_time"]),
               f"{process['over_time']}")

    def plugins_that_come_and_go(self):
        sources = {"host.c": "#include <dlfcn.h>\n"
                   "int main(int c, char **v) { for (int r = 0; r < 3; r++) for (int i = 1; i < c; i++) {"
                   " void *h = dlopen(v[i], RTLD_NOW); void *(*f)(int) = (void *(*)(int))dlsym(h, \"make\");"
                   " for (int j = 0; j < 10; j++) f(100 * i); dlclose(h); } return 0; }\n"}
        for name in ("one", "two"):
            sources[f"{name}.c"] = ("#include <stdlib.h>\n"
                                    f"__attribute__((noinline)) void *site_{name}(int n)"
                                    " { void *p = malloc(n); __asm__ volatile(\"\" ::\"r\"(p)); return p; }\n"
                                    f"void *make(int n) {{ void *p = site_{name}(n);"
                                    " __asm__ volatile(\"\"); return p; }\n")
        for name, text in sources.items():
            with open(self.scratch.path(name), "w", encoding="ascii") as stream:
                stream.write(text)
        path = self.scratch.path
        for name in ("one", "two"):
            built = run(["gcc", "-O1", "-g", "-shared", "-fPIC", path(f"{name}.c"), "-o", path(f"{name}.so")])
            expect(built.status == 0, built.stderr)
        built = run(["gcc", "-O1", "-g", path("host.c"), "-o", path("host"), "-ldl"])
        expect(built.status == 0, built.stderr)
        process, = self.profiled("plugins", [path("host"), path("one.so"), path("two.so")]).json(
            "memory.json")["processes"]
        self.expect_site(process, "site_one", 30, 0, 3000)
        self.expect_site(process, "site_two", 30, 0, 6000)
        for site in process["sites"]:
            names = [frame["function"] for frame in site["frames"]]
            expect(not names[0].startswith("site_") or "main" in names, f"a stack of {names}")

    def a_process_that_runs_already(self):
        directory = self.scratch.path("attached")
        with subprocess.Popen([os.path.join(self.programs, "allocations"), "steady"],
                              stdout=subprocess.PIPE) as target:
            time.sleep(0.2)
            ended = run([self.kymo.path, "attach", "-p", str(target.pid), "--trace-memory",
                         "--duration=0.6", "--time-output=off", "-o", directory])
            output, _ = target.communicate(timeout=40)
        if "ptrace" in ended.stderr and ended.status:
            raise Skipped("tracing is not permitted")
        expect(output == b"ok\n" and target.returncode == 0, f"{target.returncode}, {output}")
        process, = Result(directory).json("memory.json")["processes"]
        sums = self.sites(process)["site_first"]
        expect(sums["allocations"] >= 300 and sums["live_bytes"] == 50 * sums["allocations"],
               f"{sums}")

    def depth_of_sites(self):
        process, = self.processes("plain", "--memory-site-depth=2")
        depths = {len(site["frames"]) for site in process["sites"]}
        expect(depths == {2}, f"stacks of {depths} frames")

    def killed_programs_keep_what_they_allocated(self):
        directory = self.scratch.path("killed")
        code = "import os,time; x=[str(i)*200 for i in range(5000)]; time.sleep(2.5); os.kill(os.getpid(), 9)"
        ended = self.kymo.sample(["/usr/bin/python3", "-c", code], directory, "--trace-memory=on")
        expect(ended.status in (-9, 137), f"status {ended.status}")
        process, = Result(directory).json("memory.json")["processes"]
        expect(process["live_bytes"] > 5000 * 600, f"{process['live_bytes']} bytes live")

    def a_program_with_an_allocator_of_its_own(self):
        result = self.profiled("own", [os.path.join(self.programs, "own_malloc")])
        notices = [notice["text"] for process in result.processes()
                   for notice in process.get("notices", [])]
        expect(any("its own allocator" in text for text in notices), f"notices: {notices}")

    def python_with_threads(self):
        code = ("import threading, json\n"
                "def f(): return [json.dumps({'a': list(range(100))}) for i in range(300)]\n"
                "ts = [threading.Thread(target=f) for i in range(4)]\n"
                "[t.start() for t in ts]; [t.join() for t in ts]; print('done')")
        process, = self.profiled("python", ["/usr/bin/python3", "-c", code]).json(
            "memory.json")["processes"]
        expect(process["allocations"] > 5000, f"{process['allocations']} allocations")

    def a_database(self):
        if not shutil.which("sqlite3"):
            raise Skipped("sqlite3 is not installed")
        self.profiled("sqlite3", ["sqlite3", ":memory:",
                                  "create table t(a, b); with recursive c(x) as (select 1 union all "
                                  "select x + 1 from c where x < 20000) insert into t select x, hex(x) "
                                  "from c; select count(*), max(b) from t;"])

    def a_compiler(self):
        source, target = self.scratch.path("source.c"), self.scratch.path("target.o")
        with open(source, "w", encoding="ascii") as stream:
            for i in range(300):
                stream.write(f"int f{i}(int x) {{ return x * {i} + f{i and i - 1}(x); }}\n"
                             if i else "int f0(int x) { return x; }\n")
        result = self.profiled("gcc", ["gcc", "-O1", "-c", source, "-o", target])
        names = {process["name"] for process in result.json("memory.json")["processes"]}
        expect("cc1" in names, f"allocations of {names}")

    def sanitized_programs_are_left_alone(self):
        source, program = self.scratch.path("leak.c"), self.scratch.path("leak")
        with open(source, "w", encoding="ascii") as stream:
            stream.write('#include <stdlib.h>\n#include <stdio.h>\nint main(int c, char **v) '
                         '{ char *p = malloc(10); puts("x"); return c > 5 ? p[11] : 0; }\n')
        if run(["gcc", "-fsanitize=address", "-o", program, source]).status:
            raise Skipped("no address sanitizer")
        environment = {"ASAN_OPTIONS": "detect_leaks=0"}
        result = self.profiled("asan", [program], environment=environment)
        expect(not result.has("memory.json"), "allocations were counted")

    def nothing_without_being_asked(self):
        directory = self.scratch.path("off")
        ended = self.kymo.sample([os.path.join(self.programs, "allocations"), "plain"], directory)
        expect(ended.status == 0, ended.stderr)
        expect(not Result(directory).has("memory.json"), "there is a memory.json")


def main():
    kymo, tap = Kymo(sys.argv[1]), Tap()
    with Scratch() as scratch:
        memory = Memory(kymo, os.path.abspath(sys.argv[2]), scratch)
        for name in (name for name in vars(Memory) if not name.startswith("_")):
            if name not in ("profiled", "processes", "sites", "expect_site"):
                tap.point(name.replace("_", " "), getattr(memory, name))
    tap.finish()


main()
