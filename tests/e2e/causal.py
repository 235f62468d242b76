#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""kymo causal on programs whose response to a speedup is known (tests/programs/causal) and on programs
that know nothing of it: results are there and are right about what matters most, and the program does
what it does bare, in every way of waiting. How far predictions are off is measured by bench/causal.

  causal.py KYMO DIRECTORY-OF-PROGRAMS [--alone | --beside | --long | CHECK...]

--alone are those checks that need the machine to themselves, --beside all others.
"""
import json
import os
import re
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from breakpoints import breakpoints_fire, require_breakpoints
from harness import Failed, Kymo, Result, Scratch, Skipped, Tap, clean_environment, expect, require_tool, run

# Unannotated: `step` is where progress is made, `costly` is what is worth most.
PLAIN = r"""
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
volatile uint64_t sink;
/* In a register: what memory that is read right after it was written takes differs by processor. */
#define TURNS(n) { uint64_t x = sink; for (; n; n--) { x = x * 3 + n; __asm__ volatile("" : "+r"(x)); } sink = x; }
__attribute__((noinline)) void costly(uint64_t n) TURNS(n)
__attribute__((noinline)) void minor(uint64_t n) { TURNS(n); sink++; }
__attribute__((noinline)) void step(int i)
{
	sink += (uint64_t)i; /* HERE */
	costly(2400000);
	minor(600000);
}
int main(int argc, char **argv)
{
	int count = argc > 1 ? atoi(argv[1]) : 0;
	for (int i = 0; i < count; i++)
		step(i);
	printf("%d steps, sum %llu\n", count, (unsigned long long)sink);
	return 5;
}
"""
# Requests one after the other on one thread, so that never more than one is inside; told as Coz's macros do.
REQUESTS = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
static size_t *counter(int kind, const char *name)
{
	size_t *(*get)(int, const char *) = (size_t *(*)(int, const char *))dlsym(RTLD_DEFAULT, "_coz_get_counter");
	return get ? get(kind, name) : NULL;
}
static void count(size_t *counter)
{
	if (counter)
		__atomic_add_fetch(counter, 1, __ATOMIC_RELAXED);
}
static int length = 100000;
__attribute__((noinline)) void inside(void) { for (volatile int i = 0; i < 3 * length; i++); }
__attribute__((noinline)) void outside(void) { for (volatile int i = 0; i < length; i++); }
int main(int argc, char **argv)
{
	int coz = argc > 2 && !strcmp(argv[2], "coz");
	if (getenv("REQUEST_LENGTH"))
		length = atoi(getenv("REQUEST_LENGTH"));
	size_t *begin = coz ? counter(2, "request") : NULL, *end = coz ? counter(3, "request") : NULL;
	for (int i = 0; i < atoi(argv[1]); i++) {
		count(begin);
		inside();
		count(end);
		outside();
	}
	return 0;
}
"""
# Every way of waiting, in runs that are over in a moment.
SHORT_RUNS = [["meet", "--kind", kind, "--length", length]
              for kind in ("barrier", "cond", "sem", "futex", "c11", "pipe", "spin")
              for length in ("100", "2000")]
SHORT_RUNS += [[name] for name in ("amdahl", "closed", "hog", "lock", "open", "openmp_loop", "phases",
                                   "pipeline", "pool", "readers", "server", "spawner")]
SHORT_RUNS += [["lock", "--threads", "6"], ["processes", "--kind", "pipe"],
               ["processes", "--kind", "shared"], ["sleeper", "--kind", "device"]]


# Threads of one program that wait for each other: what else runs there changes what is worth most.
ALONE = ("slower_half_is_worth_most", "hottest_function_is_worth_nothing", "other_process_is_worth_most",
         "latency_is_predicted", "waiting_awake_is_seen", "short_runs_are_measured", "few_visits_are_measured")


class Causal:
    def __init__(self, kymo, programs, scratch):
        self._kymo, self._programs, self._scratch = kymo, programs, scratch
        self._toys = None

    def _program(self, name, *arguments):
        return [os.path.join(self._programs, name), *arguments]

    def _causal(self, command, *options, quiet=True, **how):
        """(how it ended, its result)"""
        directory = tempfile.mkdtemp(dir=self._scratch.directory)
        line = [self._kymo.path, "causal", "-o", directory, "--time-output=off", *options]
        ended = run(line + (["-q"] if quiet else []) + ["--"] + command, **how)
        return ended, Result(directory)

    def _experiments(self, command, *options, status=0, **how):
        ended, result = self._causal(command, *options, **how)
        expect(ended.status == status, f"status {ended.status}: {ended.stderr[-2000:]}")
        expect(result.has("causal/experiments.json"), f"no experiments.json: {ended.stderr[-2000:]}")
        return result.json("causal/experiments.json"), result

    def _toy(self):
        """Experiments and result of a run that several checks look at."""
        if not self._toys:
            self._toys = self._experiments(self._program("toy", "--seconds", "5"))
        return self._toys

    def _predictions(self, experiments, point):
        found = [one for one in experiments["predictions"] if one["progress_point"] == point]
        expect(found, f"nothing is predicted of {point}: "
                      f"{[one['progress_point'] for one in experiments['predictions']]}")
        return found

    def _best(self, experiments, point):
        """The first one of which something was measured is what the user is told to speed up."""
        tried = [one for one in self._predictions(experiments, point) if one["points"]]
        expect(tried, f"nothing was tried: {[one.get('function') for one in experiments['predictions']]}")
        return tried[0]

    def _expect_best(self, program, point, function, *options, status=0):
        """`program`: made with how many seconds it is to run. A machine that has little time for it
        gives few measurements, and noisy ones; then it is asked to run longer."""
        for seconds in (4, 12, 36):
            experiments, _ = self._experiments(program(str(seconds)), "--speedups=50,100", *options,
                                               status=status, timeout=300)
            try:
                best = self._best(experiments, point)
                expect(best.get("function") == function,
                       f"best of {point} is {best.get('function')}, {best['points']}, not {function}")
                return
            except Failed as failure:
                text = f"{seconds} s: {failure}"
                Tap.note(text)
        raise Failed(text)

    def _plain(self):
        """(program, line of its progress): built once, without anything of kymo."""
        source, program = self._scratch.path("plain.c"), self._scratch.path("plain")
        if not os.path.exists(program):
            require_tool("gcc")
            with open(source, "w", encoding="ascii") as stream:
                stream.write(PLAIN)
            # On some processors code in the same cache line as a breakpoint takes several times as long
            # (docs/reference/causal.md): a function's loop is not to share one with the next function's begin.
            built = run(["gcc", "-O1", "-g", "-falign-functions=64", "-o", program, source])
            expect(built.status == 0, built.stderr)
        return program, PLAIN[:PLAIN.index("HERE")].count("\n") + 1

    # ---- results ----

    def results_are_there_and_well_formed(self):
        experiments, result = self._toy()
        for name in ("profile.coz", "report.txt", "report.html", "windows.ndjson"):
            expect(result.has("causal/" + name), f"no causal/{name}")
        if shutil.which("jq"):
            ended = run(["jq", "-e", ".experiments | length > 3", result.path("causal/experiments.json")])
            expect(ended.status == 0, f"jq: {ended.stdout} {ended.stderr}")
        with open(result.path("causal/windows.ndjson"), encoding="utf-8") as stream:
            kinds = {json.loads(line)["kind"] for line in stream}
        expect({"run", "target", "point", "window", "end"} <= kinds, f"lines of {kinds}")
        for prediction in self._predictions(experiments, "done"):
            speedups = [point["speedup_percent"] for point in prediction["points"]]
            expect(speedups == sorted(set(speedups)) and all(0 < one <= 100 for one in speedups),
                   f"speedups {speedups}")
            for point in prediction["points"]:
                expect(point["ci_low_percent"] <= point["predicted_percent"] <= point["ci_high_percent"]
                       and point["experiments"] > 0, f"{point}")

    def coz_can_read_the_profile(self):
        """By the grammar of its own viewer: tabs between fields, an experiment before its points."""
        _, result = self._toy()
        with open(result.path("causal/profile.coz"), encoding="utf-8") as stream:
            lines = stream.read().splitlines()
        shapes = {
            "startup": r"startup\ttime=\d+",
            "experiment": r"experiment\tselected=[^\t]+\tspeedup=[01]\.\d+\tduration=\d+"
                          r"\tselected-samples=\d+",
            "throughput-point": r"throughput-point\tname=done\tdelta=\d+",
            "samples": r"samples\tlocation=[^\t]+\tcount=\d+",
            "runtime": r"runtime\ttime=\d+",
        }
        kinds = [line.split("\t")[0] for line in lines]
        for kind, line in zip(kinds, lines):
            expect(kind in shapes and re.fullmatch(shapes[kind], line), f"line {line!r}")
        expect({"startup", "experiment", "throughput-point", "runtime"} <= set(kinds), f"only {set(kinds)}")
        expect(kinds.index("experiment") < kinds.index("throughput-point"), "points come first")

    def rests_have_fewer_samples_and_tell_what_they_cost(self):
        rates = {}
        for options in ((), ("--speedups=50",)):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            experiments, result = self._experiments(self._program("toy", "--seconds", "4"), *options)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            rates[options] = experiments["runs"][0]["samples"] / (after.ru_utime - before.ru_utime)
            error = experiments["runs"][0].get("samples_cost_error_percent")
            expect((error is not None) == (not options), f"{options}: {experiments['runs']}")
            with open(result.path("causal/report.txt"), encoding="utf-8") as stream:
                expect(("Sampling overhead:" in stream.read()) == (error is not None and 1.96 * error <= 5),
                       f"{options}: error {error}: the report says something else")
        expect(rates[()] < 0.93 * rates[("--speedups=50",)], f"samples for each second: {rates}")

    def largest_share_is_worth_most(self):
        self._expect_best(lambda seconds: self._program("toy", "--seconds", seconds), "done", "large")

    def slower_half_is_worth_most(self):
        self._expect_best(lambda seconds: self._program("meet", "--kind", "cond", "--seconds", seconds),
                          "met", "slow_half")

    def waiting_awake_is_seen(self):
        """Two threads that meet 10,000 times a second, by looking again and again."""
        self._expect_best(lambda seconds: self._program("meet", "--kind", "spin", "--length", "100",
                                                        "--seconds", seconds), "met", "slow_half")

    def hottest_function_is_worth_nothing(self):
        self._expect_best(lambda seconds: self._program("hog", "--seconds", seconds), "done", "useful")

    def other_process_is_worth_most(self):
        self._expect_best(lambda seconds: self._program("processes", "--seconds", seconds), "step",
                          "child_part")

    def latency_is_predicted(self):
        self._expect_best(lambda seconds: self._program("open", "--spacing", "3", "--seconds", seconds),
                          "request", "handle", "--function-scope=^(handle|render)$")

    def no_visit_is_lost(self):
        """Samples come as the same signal as visits do, which is not queued: whoever begins would be inside for
        ever, or a begin missing for good."""
        require_tool("gcc")
        source, program = self._scratch.path("requests.c"), self._scratch.path("requests")
        with open(source, "w", encoding="ascii") as stream:
            stream.write(REQUESTS)
        built = run(["gcc", "-O1", "-g", "-falign-functions=64", "-o", program, source])
        expect(built.status == 0, built.stderr)
        # Six thousand requests in three seconds, however fast the machine is.
        begun = time.monotonic()
        run([program, "600"])
        os.environ["REQUEST_LENGTH"] = str(max(100000, int(100000 * 0.3 / (time.monotonic() - begun))))
        for options in (["coz"], ["--progress=latency:inside,outside"]):
            if options != ["coz"]:
                require_breakpoints()
            command = [program, "6000"] + options if options == ["coz"] else [program, "6000"]
            experiments, result = self._experiments(command, "--speedups=0", *(options if options != ["coz"] else []))
            if options != ["coz"] and result.metadata()["processes"][0].get("cpu_source") != "perf_sigtrap":
                raise Skipped("visits are not timed by breakpoints here")
            inside = [point["area_ns"] / point["virtual_ns"] for window in experiments["experiments"]
                      for point in window.get("points", []) if point["type"] == "latency"]
            expect(len(inside) >= 3, f"{options}: {len(inside)} windows")
            # a window may begin and end amid a request; a lost visit shifts all windows that follow by one
            wrong = [number for number in inside if not 0.4 < number < 1.1]
            expect(len(wrong) <= len(inside) / 10, f"{options}: so many were inside: {inside}")

    def locks_that_are_free_cost_little(self):
        """Ten million calls a second: what they cost more in an experiment would be taken for a loss."""
        for seconds in ("4", "12", "36"):
            program = self._program("locks", "--length", "0.05", "--seconds", seconds)
            experiments, _ = self._experiments(program, "--speedups=50", timeout=300)
            losses = [(one["function"], point["ci_high_percent"])
                      for one in self._predictions(experiments, "done") for point in one["points"]
                      if one["function"] in ("guarded", "between") and point["ci_high_percent"] < 0]
            if not losses:
                return
            Tap.note(f"{seconds} s: {losses}")
        raise Failed(f"what takes time is worth less than nothing: {losses}")

    def lines_are_told_apart_where_all_is_inlined(self):
        experiments, _ = self._experiments(self._program("inlined", "--seconds", "4"), "--mode=line")
        best = self._predictions(experiments, "done")[0]
        expect(os.path.basename(best["file"]) == "inlined.c" and best["line"] > 0, f"best is {best}")

    def points_of_coz_are_seen(self):
        self._expect_best(lambda seconds: self._program("toy", "--seconds", seconds, "--points", "coz"),
                          "done", "large")

    def report_prints_it_again(self):
        _, result = self._toy()
        again = self._kymo.report(result.directory)
        expect(again.status == 0, again.stderr)
        expect("large" in again.stdout.decode() + again.stderr, f"says {again.stdout[:500]}")

    # ---- programs that were not written for it ----

    def _steps(self, seconds):
        """The plain program, for about so long on a machine that is its own."""
        return [self._plain()[0], str(500 * int(seconds))]

    def breakpoints_that_never_fire_are_told_of(self):
        """In some virtual machines they can be opened and do nothing: no conclusion from visits that were not seen."""
        if breakpoints_fire() is not False:
            raise Skipped("hardware breakpoints fire on this machine, or cannot be had")
        program, _ = self._plain()
        ended, _ = self._causal([program, "200"], "--progress=step", quiet=False)
        expect("breakpoints never fire" in ended.stdout.decode() + ended.stderr, f"not told: {ended}")

    def progress_by_name_of_a_function(self):
        require_breakpoints()
        self._expect_best(self._steps, "step", "costly", "--progress=step", status=5)

    def progress_by_a_line(self):
        require_breakpoints()
        place = f"plain.c:{self._plain()[1]}"
        self._expect_best(self._steps, place, "costly", f"--progress={place}", status=5)

    def traps_of_no_breakpoint_do_not_end_it(self):
        program = os.path.join(os.path.dirname(self._programs), "causal_traps")
        ended, result = self._causal([program, "sent"], "--progress=step")
        source = result.metadata()["processes"][0].get("cpu_source")
        if source != "perf_sigtrap":
            raise Skipped(f"samples come from {source}, and SIGTRAP is the program's")
        expect((ended.status, ended.stdout) == (5, b"done\n"), f"{ended.status} {ended.stdout} {ended.stderr[-1000:]}")
        for own in ("int3", "icebp"):
            ended, _ = self._causal([program, own], "--progress=step")
            expect(ended.status == -signal.SIGTRAP, f"{own}: {ended.status} {ended.stderr[-1000:]}")

    def place_that_is_come_to_too_often_is_told_of(self):
        """50,000 times a second: experiments go by the point of the program's own."""
        require_breakpoints()
        with open(os.path.join(os.path.dirname(os.path.abspath(__file__)),
                               "../programs/causal/toy.c"), encoding="utf-8") as stream:
            line = stream.read().split("WORK(small)")[0].count("\n") + 1
        ended, result = self._causal(self._program("toy", "--length", "20", "--seconds", "4"),
                                     f"--progress=toy.c:{line}", quiet=False)
        expect(ended.status == 0, f"status {ended.status}: {ended.stderr[-2000:]}")
        with open(result.path("causal/report.txt"), encoding="utf-8") as stream:
            report = stream.read()
        for text in (ended.stderr, report):
            expect(re.search(rf"'toy\.c:{line}' runs more often", text.replace("\n", " ")), text[-2000:])
        experiments = result.json("causal/experiments.json")
        expect(any(point["progress_point"] == "done" for one in experiments["experiments"]
                   for point in one["points"]), "no experiment by 'done'")

    def end_to_end_over_several_runs(self):
        program, _ = self._plain()
        directory = tempfile.mkdtemp(dir=self._scratch.directory)
        bare = run([program, "300"])
        ended = run([self._kymo.path, "causal", "-q", "-o", directory, "--time-output=off",
                     "--end-to-end", "--iterations=3", "--speedups=0,50,100", "--", program, "300"])
        expect(ended.status == 5, f"status {ended.status}: {ended.stderr[-2000:]}")
        expect(ended.stdout and ended.stdout == bare.stdout * (len(ended.stdout) // len(bare.stdout)),
               f"said {ended.stdout[:300]!r}")
        runs = len(ended.stdout) // len(bare.stdout)
        expect(runs >= 3, f"{runs} runs")
        experiments = Result(directory).json("causal/experiments.json")
        expect(experiments["predictions"], "nothing is predicted")
        expect(len(experiments["experiments"]) >= 3, f"{len(experiments['experiments'])} experiments")

    def _visits_of_a_short_run(self):
        """As many as the toy makes in 0.1 s here: fewer where the machine is slow."""
        ended = run(self._program("toy", "--visits", "70"))
        seconds = float(ended.stdout.decode().split("seconds ")[1].split()[0])
        return max(14, min(70, int(70 * 0.1 / seconds)))

    def short_runs_are_measured(self):
        """A run that is over before a window would be is an experiment by itself, without its begin and end."""
        visits = self._visits_of_a_short_run()
        experiments, _ = self._experiments(self._program("toy", "--visits", str(visits)), "--iterations=40")
        tried = [one for one in experiments["experiments"] if one["target"]]
        expect(len(tried) >= 10, f"{len(tried)} experiments in 40 runs of {visits} visits")
        expect(all(0 < point["visits"] < visits for one in tried for point in one["points"]), f"{tried[0]}")
        best = self._best(experiments, "done")
        expect(best["function"] == "large", f"{visits} visits, best is {best}")
        shares = sum(one["self_percent"] for one in self._predictions(experiments, "done"))
        expect(shares < 105, f"shares of the CPU time: {shares} %")

    def few_visits_are_measured(self):
        """However few they are: all that lie between its begin and end."""
        experiments, _ = self._experiments(self._program("toy", "--visits", "16", "--length", "4000"), "--iterations=5")
        points = [point for one in experiments["experiments"] for point in one["points"]]
        expect(points and all(0 < point["visits"] < 16 for point in points), f"{points}")

    def processes_in_the_background_are_measured(self):
        """As long as --duration says; without it, it is said that they are not."""
        command = ["/bin/sh", "-c", shlex.join(self._program("toy", "--seconds", "3")) + " > /dev/null 2>&1 & exit 3"]
        experiments, _ = self._experiments(command, "--duration=2", "--binary-scope=toy", status=3)
        expect(any(one["target"] for one in experiments["experiments"]), "no experiment")
        ended, _ = self._causal(command, "--binary-scope=toy", quiet=False)
        expect(ended.status == 3 and "not measured any more" in ended.stderr and "kymo report" not in ended.stderr,
               f"{ended.status} {ended.stderr[-600:]}")

    def runs_no_oftener_than_asked(self):
        """There is no point to measure by, and -n says how often; without it, it would be ten times."""
        command = ["/bin/sh", "-c", "i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done; echo once"]
        for times in (1, 2):
            directory = tempfile.mkdtemp(dir=self._scratch.directory)
            ended = run([self._kymo.path, "causal", "-q", "-o", directory, "--time-output=off",
                         f"--iterations={times}", "--", *command])
            expect(ended.status == 0, f"status {ended.status}: {ended.stderr[-1000:]}")
            expect(ended.stdout == b"once\n" * times, f"said {ended.stdout[:300]!r}")

    def output_is_there_once_unless_asked_for(self):
        """Nothing is visited: whole runs would be compared, and whoever reads the output would get all of them."""
        script = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done"
        for output, words, runs in ((" | cat", "; echo once", 1), (" > file; cat file", "; echo once", 1),
                                    (" > /dev/null", "; echo once", 10), (" > file", "", 10)):  # or more
            directory = tempfile.mkdtemp(dir=self._scratch.directory)
            ended = run(["sh", "-c", f"cd {directory}; {shlex.quote(self._kymo.path)} causal -o out --time-output=off -- "
                                     f"sh -c '{script}{words}' < /dev/null{output}"])
            with open(os.path.join(directory, "out/causal/windows.ndjson"), encoding="utf-8") as stream:
                ends = [line for line in stream if '"end"' in line]
            expect(len(ends) == 1 if runs == 1 else len(ends) >= runs, f"{output}: {len(ends)} runs: {ended.stderr[-600:]}")
            expect(ended.stdout == (b"once\n" if "cat" in output else b""), f"{output}: {ended.stdout[:300]!r}")
            expect(bool(re.search(r"allow it with --iterations=\d+ \(about \d+ s\)", ended.stderr)) == (runs == 1), f"{output}: {ended.stderr[-600:]}")

    def points_behind_a_script(self):
        """The point is in a program that a script runs: its name cannot be known before."""
        require_breakpoints()
        program, _ = self._plain()
        script = self._scratch.path("behind.sh")
        with open(script, "w", encoding="utf-8") as stream:
            stream.write(f"#!/bin/sh\n{program} 2000\n")
        os.chmod(script, 0o755)
        for command in ([script], ["env", program, "2000"]):
            ended, result = self._causal(command, "--progress=step")
            expect(ended.status == 5, f"status {ended.status}: {ended.stderr[-1000:]}")
            expect(result.json("causal/experiments.json")["experiments"], f"{command[0]}: no experiment by the point")

    # ---- the program does what it does bare ----

    def two_in_one_directory(self):
        """By force the second takes the place of the first, whose program goes on."""
        directory = tempfile.mkdtemp(dir=self._scratch.directory)
        command = [self._kymo.path, "causal", "-q", "-o", directory, "--time-output=off", "--force",
                   "--iterations=1", "--", "/bin/sh", "-c",
                   "i=0; while [ $i -lt 150000 ]; do i=$((i+1)); done; echo done"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              env=clean_environment()) as first:
            time.sleep(0.1)
            second = run(command)
            said = first.communicate(timeout=60)[0]
        for status, output in ((first.returncode, said), (second.status, second.stdout)):
            expect((status, output) == (0, b"done\n"), f"status {status}, said {output!r}")

    def output_and_status_are_the_programs(self):
        program, _ = self._plain()
        bare = run([program, "1500"])
        ended, _ = self._causal([program, "1500"], "--progress=step")
        expect((ended.status, ended.stdout) == (bare.status, bare.stdout),
               f"{ended.status} {ended.stdout}, bare {bare.status} {bare.stdout}: {ended.stderr[-1000:]}")

    def end_by_a_signal_is_the_programs(self):
        command = self._program("toy", "--visits", "800", "--raise", str(int(signal.SIGTERM)))
        ended, result = self._causal(command)
        expect(ended.status == -signal.SIGTERM, f"status {ended.status}: {ended.stderr[-1000:]}")
        expect(b"visits 800\n" in ended.stdout, f"said {ended.stdout!r}")
        expect(result.has("causal/experiments.json"), "no experiments.json")

    def compressed_data_are_the_same(self):
        require_tool("xz")
        data = b"".join(b"%d,%d\n" % (i, i * i * 7919 % 65537) for i in range(400000))
        bare = run(["xz", "-c", "-T2", "--block-size=1MiB", "-3"], stdin=data)
        ended, _ = self._causal(["xz", "-c", "-T2", "--block-size=1MiB", "-3"],
                                "--binary-scope=.*lzma.*", stdin=data)
        expect((ended.status, ended.stdout) == (0, bare.stdout), f"{ended.status} {ended.stderr[-1000:]}")

    def short_runs_end(self):
        self._short_runs(len(SHORT_RUNS))

    def _short_runs(self, count):
        for i in range(count):
            name, *arguments = SHORT_RUNS[i % len(SHORT_RUNS)]
            ended, _ = self._causal(self._program(name, *arguments, "--seconds", "0.3"), timeout=60)
            expect(ended.status == 0 and b"visits " in ended.stdout,
                   f"run {i}, {name} {' '.join(arguments)}: {ended.status} {ended.stderr[-1000:]}")

    def program_outlives_a_killed_kymo(self):
        """Debts are not paid for ever to a controller that is gone."""
        output = self._scratch.path("outlives")
        directory = tempfile.mkdtemp(dir=self._scratch.directory)
        with open(output, "wb") as stream:
            kymo = subprocess.Popen([self._kymo.path, "causal", "-q", "-o", directory,
                                     "--time-output=off", "--", *self._program("meet", "--seconds", "6")],
                                    stdin=subprocess.DEVNULL, stdout=stream, stderr=subprocess.DEVNULL,
                                    env=clean_environment(), start_new_session=True)
        try:
            self._wait_for(lambda: self._some_window_in(directory), "no window", 60)
            kymo.kill()
            kymo.wait()
            self._wait_for(lambda: os.path.getsize(output) > 0, "the program does not end", 90)
        finally:
            try:
                os.killpg(kymo.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        with open(output, "rb") as stream:
            expect(b"\nseconds " in stream.read(), "it did not come to its end")

    def _some_window_in(self, directory):
        for parent, _, names in os.walk(directory):
            if "windows.ndjson" in names:
                with open(os.path.join(parent, "windows.ndjson"), encoding="utf-8") as stream:
                    return '"window"' in stream.read()
        return False

    @staticmethod
    def _wait_for(condition, text, seconds):
        end = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > end:
                raise Failed(f"{text} after {seconds} s")
            time.sleep(0.02)

    # ---- what is not there is said ----

    def bad_options_are_refused(self):
        program, _ = self._plain()
        for options, words in ((["--mode=words"], ["function", "line"]), (["--speedups=250"], ["250"]),
                               (["--speedups=10-"], ["10-"]), (["--progress=stepp"], ["stepp", "step"]),
                               (["--function-scope=("], ["("]), (["--iterations=none"], ["none"])):
            ended, _ = self._causal([program, "10"], *options, quiet=False, timeout=60)
            expect(ended.status not in (0, 5) and not ended.stdout,
                   f"{options}: status {ended.status}, {ended.stdout}, {ended.stderr[-500:]}")
            missing = [word for word in words if word not in ended.stderr]
            expect(not missing, f"{options}: {missing} not in {ended.stderr[-500:]}")

    def no_progress_is_said(self):
        """No point, and one run that failed, so that it is not run again: nothing is made up."""
        program, _ = self._plain()
        ended, result = self._causal([program, "600"], quiet=False)
        expect(ended.status == 5, f"status {ended.status}: {ended.stderr}")
        expect("progress" in ended.stderr, f"says {ended.stderr}")
        self._expect_nothing(result)

    def result_file_has_the_name_it_was_given(self):
        ended, result = self._causal(["/bin/true"], "--causal-file=mine", quiet=False)
        expect(ended.status == 0 and result.has("causal/mine.json"), f"{ended}")
        expect(re.search("results: .*/causal/report.html, report.txt, mine.json, ", ended.stderr), ended.stderr)

    def without_room_the_program_runs_alone(self):
        """A limit of file sizes that the shared file does not fit into: an error, and the program runs."""
        program = self._plain()[0]
        ended, result = self._causal([program, "10"], "--progress=step",
                                     preexec=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536)))
        expect(ended.status == 5 and ended.stdout.startswith(b"10 steps"), f"{ended}")
        expect(re.fullmatch("kymo: error: cannot make '.*/causal/control': File too large; the program runs "
                            "unprofiled\n", ended.stderr), f"{ended}")
        expect(not result.has("causal/control"), "the file is left")

    def a_moment_is_no_profile(self):
        ended, result = self._causal(["/bin/true"], quiet=False)
        expect(ended.status == 0 and ended.stderr, f"status {ended.status}: {ended.stderr}")
        self._expect_nothing(result)

    @staticmethod
    def _expect_nothing(result):
        if result.has("causal/experiments.json"):
            predictions = result.json("causal/experiments.json")["predictions"]
            expect(not any(point["experiments"] for one in predictions for point in one["points"]),
                   f"predicts {predictions}")


def main():
    kymo, tap = Kymo(sys.argv[1]), Tap()
    with Scratch() as scratch:
        causal = Causal(kymo, os.path.abspath(sys.argv[2]), scratch)
        if "--long" in sys.argv:
            tap.point("1000 short runs end", lambda: causal._short_runs(1000))  # pylint: disable=protected-access
            tap.finish()
        names = [name for name in vars(Causal) if not name.startswith("_")]
        groups = {"--alone": ALONE, "--beside": [name for name in names if name not in ALONE]}
        wanted = [name for word in sys.argv[3:] for name in groups.get(word, [word])] or names
        for name in (name for name in names if name in wanted):
            tap.point(name.replace("_", " "), getattr(causal, name))
    tap.finish()


main()
