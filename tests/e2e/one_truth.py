#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""One truth: sums, shares and counts of every output are the same, for results of every kind.

  one_truth.py KYMO
"""
import base64
import collections
import decimal
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time

from harness import Kymo, Result, Scratch, Tap, expect, require_tool, run

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../unit/output"))
import protobuf_walk  # noqa: E402 pylint: disable=wrong-import-position
from perfetto_decode import Trace  # noqa: E402 pylint: disable=wrong-import-position

SOURCE = r"""
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
static volatile double sum;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static inline __attribute__((always_inline)) double add(double a, long i) { return a + (double)i; }
__attribute__((noinline)) static void parse(long n) { for (long i = 0; i < n; i++) sum = add(sum, i); }
__attribute__((noinline)) static long fact(long n) { parse(200000); return n < 2 ? 1 : n * fact(n - 1); }
__attribute__((noinline)) static void touch(void) { for (int k = 0; k < 20; k++) { char *p = mmap(0, 4 << 20, PROT_READ | PROT_WRITE,
	MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); for (long i = 0; i < 4 << 20; i += 4096) p[i] = 1; munmap(p, 4 << 20); } }
__attribute__((noinline)) static void allocate(void) { for (int i = 0; i < 20000; i++) { char *p = malloc(100); memset(p, i, 100); free(p); } }
static void *worker(void *x) { for (int i = 0; i < 20; i++) { pthread_mutex_lock(&lock); parse(1500000); pthread_mutex_unlock(&lock); usleep(2000); }
	fact(20); allocate(); return x; }
int main(int argc, char **argv) {
	pthread_t t[3];
	do {
		for (int i = 0; i < 3; i++) pthread_create(&t[i], 0, worker, 0);
		for (int i = 0; i < 3; i++) pthread_join(t[i], 0);
		touch();
	} while (argc > 1);
	for (int i = 0; i < 3; i++) { pid_t child = fork(); if (!child) { parse(5000000); _exit(0); } waitpid(child, 0, 0); }
	return argv[0] == 0;
}
"""
PYTHON = """
def parse(n):
    return sum(i * i % 7 for i in range(n))
def main():
    for _ in range(12):
        parse(60000)
        sorted(str(i) for i in range(20000))
main()
"""
MANY = "i=0; while [ $i -lt 60 ]; do /bin/true; i=$((i+1)); done; i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done"
FORMATS = "json,text,perfetto,folded,pprof,html,report,db,regions-folded,gecko,speedscope,otlp"
MEASURES = {"cpu": ("cpu_ns",), "wall": ("cpu_ns", "blocked_ns", "runnable_ns"), "events": ("overflow_events",)}


def page_data(path):
    with open(path, encoding="utf-8") as stream:
        return json.loads(stream.read().split('<script type="application/json" id="data">')[1].split("</script>")[0])


def unpack_numbers(text):
    """Seven bits a byte, the lowest first, in base64: docs/reference/report-page.md."""
    number = shift = 0
    for byte in base64.b64decode(text):
        number |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            yield number
            number = shift = 0


def page_timeline_sums(data):
    sums = collections.Counter()
    if "timeline" not in data:
        return sums
    timeline = data["timeline"]
    columns = [unpack_numbers(timeline[name]) for name in ("duration", "name", "number")]
    for track in timeline["tracks"]:
        for _ in range(track["count"]):
            duration, name, number = (next(column) for column in columns)
            if track["kind"] == "samples":
                source = name % timeline["sources"]
                sums[source] += number if source == 2 else duration
    for column in columns:
        expect(next(column, None) is None, "more slices than the tracks have")
    return sums


def otlp_sums(path):
    """{type: sum}, after opentelemetry/proto/profiles/v1development/profiles.proto."""
    with open(path, "rb") as stream:
        data = protobuf_walk.message(stream.read())
    strings = [text.decode() for text in protobuf_walk.message(data[2][0])[5]]
    sums = collections.Counter()
    for resource in data.get(1, []):
        for scope in protobuf_walk.message(resource).get(2, []):
            for profile in map(protobuf_walk.message, protobuf_walk.message(scope).get(2, [])):
                kind = strings[protobuf_walk.message(profile[1][0])[1][0]]
                for sample in profile[2]:
                    sums[kind] += sum(protobuf_walk.packed(protobuf_walk.message(sample)[4][0]))
    return sums


class Truth:
    """All outputs of one result, made again with the same options."""

    def __init__(self, kymo, scratch, directory, *options):
        self.kymo, self.directory = kymo, directory
        self.out = scratch.path(f"out {abs(hash((directory, options)))}")
        formats = FORMATS.replace(",db", "") if options and options[0] == "--from" else FORMATS
        ended = kymo.report(directory, "--format", formats, "-o", self.out + "/", *options)
        expect(ended.status == 0, f"{ended}")
        self.options, self.result = options, Result(self.out)
        self.profile = self.result.json("profile.json")
        self.totals = collections.Counter(self.profile["totals"])
        names = {"cpu_time": "cpu", "real_time": "wall", "events": "events"}
        self.measure = names[self.profile["measure"]]
        self.whole = sum(self.totals[key] for key in MEASURES[self.measure])

    def same(self, what, found, wanted):
        expect(found == wanted, f"{what}: {found}, profile.json's totals {wanted}")

    def json(self):
        unit = "self_events" if self.measure == "events" else "self_ns"
        self.same("functions", sum(function[unit] for function in self.profile["functions"]), self.whole)
        for key, total in self.totals.items():
            self.same(f"nodes {key}", sum(node.get(key, 0) for node in self.profile["nodes"]), total)
        threads = collections.Counter()
        ended = self.kymo.report(self.directory, "--format", "json", "--per-thread", *self.options)
        for row in json.loads(ended.stdout)["thread_nodes"]:
            threads.update({key: row[key] for key in row if key in self.totals})
        self.same("thread_nodes", dict(threads), dict(self.totals))

    def folded(self):
        self.same("folded", sum(weight for _, weight in self.result.folded()), self.whole)
        ended = self.kymo.report(self.directory, "--format", "folded", "--per-thread", *self.options)
        weights = [int(line.rpartition(" ")[2]) for line in ended.stdout.decode(errors="replace").splitlines()]
        self.same("folded by thread", sum(weights), self.whole)

    def pprof(self):
        profile = self.result.profile()
        samples = sum(value for key, value in self.totals.items() if key.endswith("_samples"))
        self.same("pprof samples", profile.total("samples"), samples)
        for name, keys in MEASURES.items():
            if name in profile.types:
                self.same(f"pprof {name}", profile.total(name), sum(self.totals[key] for key in keys))
        by_function = collections.Counter()
        for sample in profile.samples:
            by_function[sample.stack[0].function] += sample.values[self.measure]
        unit = "self_events" if self.measure == "events" else "self_ns"
        wanted = collections.Counter()
        for function in self.profile["functions"]:
            wanted[function["name"]] += function[unit]
        self.same("pprof by function", +by_function, +wanted)

    def html(self):
        names = {"CPU time": "cpu", "Wall time": "wall", "Events": "events"}
        for name in ("flamegraph.html", "report.html"):
            data = page_data(self.result.path(name))
            for measure in data["measures"]:
                if measure["name"] in names:
                    found = sum(sum(data["rows"]["values"][column]) for column in measure["columns"])
                    self.same(f"{name}, {measure['name']}", found, sum(self.totals[key] for key in MEASURES[names[measure["name"]]]))
        self.timeline(data)

    def timeline(self, data):
        """Samples of the timeline, by source; time in no sample has no place there."""
        found = page_timeline_sums(data)
        unsampled = {index for index, function in enumerate(self.profile["functions"]) if function["name"] == "[unsampled]"}
        missing = sum(self.profile["functions"][index]["self_ns"] for index in unsampled) if self.measure != "events" else 0
        for source, key in ((0, "cpu_ns"), (1, "blocked_ns"), (2, "overflow_events"), (3, "runnable_ns")):
            if source == 0 and self.measure == "events":
                continue
            self.same(f"timeline, {key}", found[source] + (missing if source == 0 else 0), self.totals[key])

    def text(self):
        with open(self.result.path("profile.txt"), encoding="utf-8", errors="replace") as stream:
            table = stream.read().partition("\nLABEL")[2].partition("\n\n")[0]
        rows = re.findall(r"^\S.* (\d+) +0 (?:cpu_time|real_time) +s +([0-9.]+)", table, re.M)
        if self.measure != "events" and rows:
            found = sum(float(row[1]) for row in rows)
            expect(abs(found - self.whole / 1e9) <= 1e-5 * len(rows) + 1e-4 * found, f"profile.txt: {found} s, {self.whole / 1e9} s")

    def perfetto(self):
        with open(self.result.path("trace.pftrace"), "rb") as stream:
            trace = Trace(stream.read())
        samples = sum(value for key, value in self.totals.items() if key.endswith("_samples"))
        self.same("samples of the trace", trace.attributes["kymo.samples"], samples)

    def database(self):
        if not self.result.has("results.db"):
            return
        with sqlite3.connect(self.result.path("results.db")) as database:
            row = database.execute("select sum(cpu_ns), sum(blocked_ns), sum(runnable_ns), sum(events), sum(samples) from kymo_nodes").fetchone()
            keys = ("cpu_ns", "blocked_ns", "runnable_ns", "overflow_events")
            self.same("nodes of the database", tuple(value or 0 for value in row[:4]), tuple(self.totals[key] for key in keys))
            sources = dict(database.execute("select source, sum(weight) from kymo_samples group by 1"))
            for source, key in zip(("cpu", "blocked", "runnable", "event"), keys):
                self.same(f"samples of the database, {source}", sources.get(source, 0), self.totals[key])
            self.regions(database)

    def regions(self, database):
        """Calls of regions, by name, in all that have them."""
        wanted = collections.Counter()
        for node in self.profile.get("region_nodes", []):
            wanted[node["name"]] += node["count"]
        if not wanted:
            return
        found = dict(database.execute("select name, sum(calls) from kymo_regions group by name"))
        self.same("regions of the database", found, {name: count for name, count in wanted.items() if name in found})
        tree = dict(database.execute("select name, sum(calls) from kymo_calls where category is not null group by name"))
        self.same("tree of regions of the database", tree, found)

    def exchange(self):
        """Formats of others' viewers. Those of one measure have the default's."""
        scopes = self.result.json("profile.speedscope.json")["profiles"]
        self.same("speedscope", sum(sum(profile["weights"]) for profile in scopes), self.whole)
        with open(self.result.path("profile.gecko.json"), encoding="utf-8") as stream:
            threads = json.load(stream, parse_float=decimal.Decimal)["threads"]
        scale = 1 if self.measure == "events" else 1000000
        self.same("gecko", sum(sum(thread["samples"]["weight"]) for thread in threads) * scale, self.whole)
        found = otlp_sums(self.result.path("profiles.otlp"))
        for name, keys in MEASURES.items():
            if name in found:
                self.same(f"otlp {name}", found[name], sum(self.totals[key] for key in keys))
        expect(self.measure in found or not self.whole, f"otlp has {found}")

    def summary(self):
        text = self.kymo.report(self.directory, "--top", "100000", *self.options).stdout.decode(errors="replace")
        lines = text.splitlines()
        begin = next((i for i, line in enumerate(lines) if line.startswith("Heaviest functions")), None)
        if begin is None:
            expect(self.whole == 0, text)
            return
        shares = [float(line.split()[0]) for line in lines[begin + 2:lines.index("", begin)]]
        expect(abs(sum(shares) - 100) <= 0.05 * len(shares) + 0.1, f"the summary's functions are {sum(shares):.1f} % of all")

    def all(self):
        for check in (self.json, self.folded, self.pprof, self.html, self.text, self.perfetto, self.database, self.exchange, self.summary):
            check()


class Results:
    def __init__(self, kymo, scratch):
        self.kymo, self.scratch = kymo, scratch
        self.program = scratch.path("program")
        with open(self.program + ".c", "w", encoding="utf-8") as stream:
            stream.write(SOURCE)
        built = run(["cc", "-O1", "-g", self.program + ".c", "-o", self.program, "-pthread"])
        expect(built.status == 0, f"{built}")
        self.script = scratch.path("program.py")
        with open(self.script, "w", encoding="utf-8") as stream:
            stream.write(PYTHON)

    def sampled(self, name, command, *options):
        directory = self.scratch.path(name)
        if not os.path.isdir(directory):
            ended = self.kymo.sample(command, directory, "--format", "json", *options)
            expect(ended.status == 0, f"{ended}")
        return directory

    def check(self, name, command, options, *filters):
        truth = Truth(self.kymo, self.scratch, self.sampled(name, command, *options), *filters)
        expect(truth.whole > 0, f"{name}: nothing was recorded")
        truth.all()

    def attached(self):
        directory = self.scratch.path("attached")
        with subprocess.Popen([self.program, "again"]) as process:
            try:
                time.sleep(0.2)
                ended = run([self.kymo.path, "attach", "-p", str(process.pid), "-q", "--realtime", "-d", "1", "-o", directory,
                             "--time-output=off"])
            finally:
                process.send_signal(signal.SIGKILL)
        expect(ended.status == 0, f"{ended}")
        Truth(self.kymo, self.scratch, directory).all()

    def instrumented(self):
        directory = self.scratch.path("instrumented")
        ended = run([self.kymo.path, "instrument", "-q", "--realtime", "--time-output=off", "--", self.program],
                    environment={"KYMO_OUTPUT_PATH": directory})
        expect(ended.status == 0, f"{ended}")
        Truth(self.kymo, self.scratch, directory).all()

    def one_process(self):
        directory = self.sampled("processes", [self.program], "--realtime")
        pids = {process["pid"] for process in Result(directory).json("profile.json")["processes"]}
        whole, parts = Truth(self.kymo, self.scratch, directory), collections.Counter()
        for pid in pids:
            part = Truth(self.kymo, self.scratch, directory, "--pid", str(pid))
            part.all()
            parts.update(part.totals)
        expect(parts == whole.totals, f"processes {parts}, all {whole.totals}")

    def killed(self):
        directory = self.scratch.path("killed")
        command = [self.kymo.path, "sample", "-q", "--realtime", "-o", directory, "--time-output=off", "--format", "json", "--",
                   "sh", "-c", f"'{self.program}' again & sleep 0.7; kill -9 $!"]
        run(command)
        Truth(self.kymo, self.scratch, directory).all()


def main():
    tap = Tap()
    require_tool("cc")
    with Scratch() as scratch:
        results = Results(Kymo(sys.argv[1]), scratch)
        program, python = [results.program], [sys.executable, results.script]
        kinds = {
            "CPU time": (program, []),
            "CPU time by timers": (program, ["--sampling-source", "timer"]),
            "real time": (program, ["--realtime"]),
            "page faults": (program, ["--sampling-overflow", "--sampling-overflow-event", "page-faults", "--sampling-overflow-freq", "50",
                                      "--sampling-cputime", "off"]),
            "CPU time and page faults": (program, ["--sampling-overflow", "--sampling-overflow-freq", "50", "--sampling-cputime", "on"]),
            "locks, sleeps, allocations": (program, ["--realtime", "--trace-thread-locks", "--trace-sleep", "--trace-memory"]),
            "wrapped functions": (program, ["--wrap", "*:usleep(unsigned)"]),
            "without inlined functions": (program, ["--inlines=off"]),
            "Python": (python, []),
            "Python, real time": (python, ["--realtime"]),
            "many short processes": (["sh", "-c", MANY], []),
            "a small stack depth": (program, ["--sampling-max-depth", "4"]),
        }
        for name, (command, options) in kinds.items():
            tap.point(name, lambda name=name, command=command, options=options: results.check(name, command, options))
        tap.point("part of the time", lambda: results.check("real time", program, [], "--from", "50ms", "--to", "150ms"))
        tap.point("each process by itself", results.one_process)
        tap.point("attached", results.attached)
        tap.point("instrumented", results.instrumented)
        tap.point("killed", results.killed)
    tap.finish()


if __name__ == "__main__":
    main()
