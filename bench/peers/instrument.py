#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""Recording every call: kymo instrument beside uftrace, -finstrument-functions and two time stamps.

usage: instrument.py BUILD-DIRECTORY [CALLS [ROUNDS]]

First ns of CPU time a call on two functions (a leaf and fib), the least of the rounds; then the CPU
time of real programs with all their functions and those of their libraries instrumented, as a
multiple of bare, beside what two bare time stamps for each of these calls would make of it; then
coroutines, and what starting costs. Peers that are not installed are left out.
"""
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time

LUA = """
local function fib(n) if n<2 then return n end return fib(n-1)+fib(n-2) end
local t={} for i=1,200000 do t[i]=(i*7919)%60013 end table.sort(t)
local s={} for i=1,20000 do s[#s+1]=string.format("%d:%s",i,tostring(i*2)) end
local str=table.concat(s,",") local c=0 for w in str:gmatch("%d+") do c=c+tonumber(w)%7 end
for i=1,2000 do pcall(error,"x") end
print(fib(27),#str,c)
"""
SQL = """
create table t(a integer primary key, b text, c real);
with recursive n(x) as (select 1 union all select x+1 from n where x<200000)
insert into t select x, 'row'||(x*7919%60013), x*1.5 from n;
create index i on t(b); select count(*), sum(c) from t where b like 'row1%';
update t set c=c+1 where a%3=0; delete from t where a%5=0; select count(*), sum(c) from t;
"""


class Bench:
    def __init__(self, build, calls, rounds):
        self.build, self.calls, self.rounds = build, str(calls), rounds
        self.kymo = os.path.join(build, "src", "cmd", "kymo")
        self.directory = tempfile.mkdtemp(prefix="kymo-bench-")
        self.best = {}

    def path(self, name):
        return os.path.join(self.directory, name)

    def program(self, name):
        return os.path.join(self.build, "bench", name)

    def instrument(self, options, command, **how):
        shutil.rmtree(self.path("out"), ignore_errors=True)
        return subprocess.run([self.kymo, "instrument", "-q", "--format=text", *options,
                               "--output", self.path("out"), "--", *command],
                              check=True, capture_output=True, text=True, **how)

    def note(self, name, output):
        for function, ns in re.findall(r"^(\w+) ([\d.]+)$", output, re.MULTILINE):
            key = (name, function)
            self.best[key] = min(float(ns), self.best.get(key, 1e30))

    def calls_once(self):
        plain = [self.program("function_calls"), self.calls]
        run = lambda command: subprocess.run(command, check=True, capture_output=True, text=True).stdout
        self.note("bare", run(plain + ["rdtsc"]))
        self.note("kymo instrument: traced", self.instrument([], plain).stdout)
        self.note("kymo instrument: counted", self.instrument(["--count", "."], plain).stdout)
        self.note("kymo instrument: window closed", self.instrument(["--init-enabled=off"], plain).stdout)
        self.note("-finstrument-functions, empty hooks", run([self.program("function_calls_hooks"), self.calls]))
        if shutil.which("uftrace"):
            for name, command in (("uftrace record -pg", [self.program("function_calls_pg")]),
                                  ("uftrace record -P .", ["-P", ".", plain[0]])):
                shutil.rmtree(self.path("uftrace"), ignore_errors=True)
                ended = subprocess.run(["uftrace", "record", "--no-libcall", "-d", self.path("uftrace"),
                                        *command, self.calls], capture_output=True, text=True)
                if ended.returncode == 0:
                    self.note(name, ended.stdout)

    def show_calls(self):
        for _ in range(self.rounds):
            self.calls_once()
        print(f"{'ns a call, with the call itself':44} {'leaf':>8} {'fib':>8}")
        for name in dict.fromkeys(name for name, _ in self.best):
            print(f"{name:44} {self.best[name, 'leaf']:8.2f} {self.best[name, 'fib']:8.2f}")
        print(f"{'two rdtsc':44} {self.best['bare', 'rdtsc']:8.2f}")

    def cpu_seconds(self, options, command):
        """Of the program alone, as the shell that waits for it counts."""
        script = self.path("time.sh")
        with open(script, "w", encoding="ascii") as file:
            file.write('"$@" >/dev/null; times >&2\n')
        # times prints the shell's own line, then that of its children
        wrapped = ["/bin/sh", script, *command]
        if options is None:
            text = subprocess.run(wrapped, capture_output=True, text=True, check=True).stderr
        else:
            text = self.instrument(options + ["-ME", "dash|libc|readline|tinfo"], wrapped).stderr
        minutes = re.findall(r"(\d+)m([\d.]+)s", text)
        return sum(int(m) * 60 + float(s) for m, s in minutes[2:4])

    def calls_recorded(self):
        """In the result of the last run."""
        text = subprocess.run([self.kymo, "report", os.path.join(self.path("out"), "latest")], check=True,
                              capture_output=True, text=True).stdout
        found = re.search(r"([\d,]+) calls recorded of", text)
        return int(found.group(1).replace(",", "")) if found else 0

    def show_programs(self):
        open(self.path("bench.lua"), "w", encoding="ascii").write(LUA)
        open(self.path("bench.sql"), "w", encoding="ascii").write(SQL)
        programs = {"lua5.4": ["lua5.4", self.path("bench.lua")],
                    "sqlite3": ["sqlite3", ":memory:", ".read " + self.path("bench.sql")]}
        print(f"\n{'CPU time, times bare':24} {'bare s':>8} {'calls':>11} {'stamps':>8} {'traced':>8} "
              f"{'demoted':>8} {'counted':>8}")
        for name, command in programs.items():
            if not shutil.which(name):
                continue
            least = lambda options: min(self.cpu_seconds(options, command) for _ in range(self.rounds))
            bare, traced = least(None), least([])
            calls = self.calls_recorded()
            stamps = 1 + calls * self.best["bare", "rdtsc"] / 1e9 / bare
            demoted, counted = least(["--demote", "50000,400"]), least(["--count", "."])
            print(f"{name:24} {bare:8.3f} {calls:11} {stamps:8.2f} " +
                  " ".join(f"{figure / bare:8.2f}" for figure in (traced, demoted, counted)))

    def show_coroutines(self):
        print(f"\n{'ns a turn of a coroutine, 7 calls':44} {'bare':>8} {'traced':>8}")
        for count in (10, 100, 1000):
            command = [self.program("coroutines"), str(count), str(100000 // count)]
            turn = lambda text: float(re.search(r"turn ([\d.]+)", text).group(1))
            bare = min(turn(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
                       for _ in range(self.rounds))
            traced = min(turn(self.instrument([], command).stdout) for _ in range(self.rounds))
            print(f"{count:4} coroutines {'':28} {bare:8.2f} {traced:8.2f}")

    def show_start(self):
        print("\nstarting python3 (all functions of it and its libraries)")
        environment = dict(os.environ, KYMO_PLAN_CACHE=self.path("cache"))
        command = ["/usr/bin/python3", "-c", "import resource; print(resource.getrusage(0).ru_maxrss)"]
        begin = time.monotonic()
        bare = int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        print(f"  bare           {(time.monotonic() - begin) * 1e3:8.0f} ms, {bare:8} KiB")
        for what in ("no plan cached", "plans cached"):
            begin = time.monotonic()
            peak = int(self.instrument(["--init-enabled=off"], command, env=environment).stdout)
            print(f"  {what:14} {(time.monotonic() - begin) * 1e3:8.0f} ms, {peak:8} KiB, with all results written")


def main():
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    bench = Bench(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 2000000,
                  int(sys.argv[3]) if len(sys.argv) > 3 else 3)
    try:
        bench.show_calls()
        bench.show_programs()
        bench.show_coroutines()
        bench.show_start()
    finally:
        shutil.rmtree(bench.directory, ignore_errors=True)


if __name__ == "__main__":
    main()
