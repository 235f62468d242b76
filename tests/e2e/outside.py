# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""Programs that nothing can be preloaded into are sampled from outside: static C (glibc, static PIE, musl), Go, whole trees
of processes. Right shares, complete stacks, nothing lost, and the program is as it was.

usage: outside.py KYMO PROGRAMS     (TAP)
"""
import math
import os
import shutil
import signal
import subprocess
import sys
import time

from harness import (Kymo, Result, Scratch, Skipped, Tap, clean_environment, expect, require_tool, run,
                     wait_until)

# Of the CPU time below work(), `once` takes a third and `twice` two thirds.
SOURCE = """
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
__attribute__((noinline)) double once(int n) { volatile double s = 0; while (n--) s += n * 1.5; return s; }
__attribute__((noinline)) double twice(int n) { volatile double s = 0; while (n--) s += n * 1.5; return s; }
__attribute__((noinline)) double work(int depth)
{
    volatile char room[64];
    room[depth % 64] = 1;
    return (depth ? work(depth - 1) : once(10000) + twice(20000)) + 1;
}
static double seconds;
static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}
static void *turns(void *depth)
{
    double end = now() + seconds;
    while (now() < end)
        work(depth ? atoi(depth) : 3);
    return 0;
}
int main(int argc, char **argv)
{
    seconds = argc > 1 ? atof(argv[1]) : 1;
    if (argc > 3 && !strcmp(argv[2], "threads")) {
        pthread_t thread;
        pthread_create(&thread, 0, turns, argv[3]);
        turns(argv[3]);
        pthread_join(thread, 0);
    } else if (argc > 3 && !strcmp(argv[2], "fork")) {
        if (!fork()) {
            turns(0);
            _exit(0);
        }
        execl(argv[3], argv[3], argv[1], (char *)0);
    } else {
        turns(argc > 2 ? argv[2] : 0);
    }
    puts("end");
    return 7;
}
"""

GO_SOURCE = """
package main

import "fmt"

//go:noinline
func leaf(n int) int { s := 0; for i := 0; i < n; i++ { s += i ^ s }; return s }

//go:noinline
func once(n int) int { return leaf(n) + 1 }

//go:noinline
func twice(n int) int { return leaf(2 * n) + 1 }

func main() {
	s := 0
	for i := 0; i < 4000; i++ { s += once(100000) + twice(100000) }
	fmt.Println("end", s != 1)
}
"""


class Outside:
    def __init__(self, kymo, programs, scratch):
        self.kymo, self.programs, self.scratch = kymo, programs, scratch
        self.source = scratch.path("program.c")
        with open(self.source, "w", encoding="ascii") as stream:
            stream.write(SOURCE)
        self.static = self._build("static", "-static")
        probe = self.kymo.sample([self.static, "0.01"], self.scratch.path("probe"))
        self.refusal = probe.stderr if "runs unprofiled" in probe.stderr else None

    def _build(self, name, *options, compiler="cc"):
        require_tool(compiler)
        program = self.scratch.path(name)
        built = run([compiler, "-O2", "-g", "-pthread", *options, "-o", program, self.source])
        if built.status:
            raise Skipped(f"cannot build {name}: {built.stderr.strip().splitlines()[-1]}")
        return program

    def _permitted(self):
        if self.refusal:
            raise Skipped(self.refusal.strip())

    def _sample(self, name, command, *options, status=7, said="samples it from outside", **how):
        self._permitted()
        directory = self.scratch.path(name)
        done = self.kymo.sample(command, directory, *options, quiet=False, **how)
        expect(done.status == status, f"status {done.status}, not {status}: {done.stderr}")
        expect(said in done.stderr, done.stderr)
        return Result(directory), done

    @staticmethod
    def _check(result, complete=0.99, processes=1):
        for process in result.processes()[:processes]:
            stacks = process["stacks"]
            expect(process["samples"] >= 100, f"{process['samples']} samples")
            expect(stacks["complete"] >= complete * process["samples"], f"{stacks}")
            expect(process["cpu_source"] == "outside", process["cpu_source"])
            expect(process["losses"].get("perf_ring", 0) == 0, f"{process['losses']}")

    @staticmethod
    def _check_shares(result, expected):
        """Self shares among these functions, within 2 points or 3 sigma."""
        found = {name: 0.0 for name in expected}
        for stack, weight in result.folded():
            for name in expected:
                if stack[-1] == name or (stack[-1].endswith("leaf") and name == stack[-2]):
                    found[name] += weight
        total = sum(found.values())
        samples = sum(process["samples"] for process in result.processes())
        samples *= total / sum(weight for _stack, weight in result.folded())
        expect(samples >= 100, f"{found}")
        for name, share in expected.items():
            bound = max(0.02, 3 * math.sqrt(share * (1 - share) / samples))
            expect(abs(found[name] / total - share) <= bound, f"{name}: {found[name] / total:.3f}, not {share:.3f}")

    def _check_c(self, name, *options, compiler="cc"):
        result, done = self._sample(name + "-out", [self._build(name, *options, compiler=compiler), "1"])
        expect(done.stdout == b"end\n", f"{done.stdout}")
        self._check(result)
        self._check_shares(result, {"once": 1 / 3, "twice": 2 / 3})
        chain = ["main", "turns", "work", "work", "work", "work"]
        right = sum(weight for stack, weight in result.folded()
                    if [frame for frame in stack if frame in ("main", "turns", "work")] in (chain, chain[1:]))
        total = sum(weight for stack, weight in result.folded() if stack[-1] in ("once", "twice"))
        expect(right >= 0.99 * total, f"{right} of {total} samples have the whole chain")

    def static_glibc(self):
        self._check_c("static", "-static")

    def static_pie(self):
        self._check_c("static-pie", "-static-pie")

    def static_musl(self):
        self._check_c("static-musl", "-static", compiler="musl-gcc")

    def dynamic_musl(self):
        self._check_c("dynamic-musl", compiler="musl-gcc")

    def _go(self, name, *options):
        require_tool("go")
        source, program = self.scratch.path("program.go"), self.scratch.path(name)
        with open(source, "w", encoding="ascii") as stream:
            stream.write(GO_SOURCE)
        built = run(["go", "build", *options, "-o", program, source], timeout=300, environment={
            "CGO_ENABLED": "0", "GOCACHE": self.scratch.path("gocache"), "GOFLAGS": "-mod=mod", "GO111MODULE": "off"})
        expect(built.status == 0, built.stderr)
        said = "is a Go program" if "-buildmode=pie" in options else "samples it from outside"
        result, done = self._sample(name + "-out", [program], status=0, said=said)
        expect(done.stdout == b"end true\n", f"{done.stdout}")
        self._check(result)
        if "-s -w" not in options:
            self._check_shares(result, {"main.once": 1 / 3, "main.twice": 2 / 3})

    def go(self):
        self._go("go")

    def go_stripped(self):
        self._go("go-stripped", "-ldflags", "-s -w")

    def go_position_independent(self):
        """It has a dynamic linker, but its runtime would end it for kymo's signals."""
        self._go("go-pie", "-buildmode=pie")

    def asked_for_with_threads(self):
        result, done = self._sample("threads", [self._build("dynamic"), "1", "threads", "30"], "--from-outside",
                                    said="2 threads")
        expect("libkymo" not in done.stderr, done.stderr)
        self._check(result)
        self._check_shares(result, {"once": 1 / 3, "twice": 2 / 3})
        process = result.processes()[0]
        expect(abs(process["covered_cpu_ns"] - 2e9) < 0.2e9, f"{process['covered_cpu_ns']} ns")
        spool = sum(os.path.getsize(os.path.join(result.path("spool"), name))
                    for name in os.listdir(result.path("spool")))
        Tap.note(f"measured: {spool / process['samples']:.1f} bytes a sample, at most 40")
        expect(spool <= 40 * process["samples"] + 32768, f"{spool} bytes, {process['samples']} samples")

    def trees(self):
        """A process that forks and then executes another program."""
        result, _ = self._sample("tree", [self.static, "0.5", "fork", self._build("other", "-static")],
                                 status=7)
        names = sorted((os.path.basename(process["executable"]), process["image"]) for process in result.processes()
                       if process["samples"] > 200)
        expect(names == [("other", 0), ("static", 0)] or names == [("other", 1), ("static", 0)], f"{names}")
        self._check(result, processes=0)
        self._check_shares(result, {"once": 1 / 3, "twice": 2 / 3})

    def _in_a_tree(self, name, command, program, **how):
        """A dynamic program starts one that nothing can be loaded into: each is sampled its own way."""
        result, done = self._sample(name, command, status=0, said="CPU time", **how)
        expect(b"7" in done.stdout, f"{done.stdout}")
        found = [process for process in result.processes()
                 if os.path.basename(process["executable"]) == os.path.basename(program) and process["samples"]]
        expect(len(found) == 1 and found[0]["cpu_source"] == "outside" and found[0]["parent_pid"], f"{found}")
        expect("not_followed" not in str(result.metadata()), "notice of a child that was not followed")
        self._check_shares(result, {"once": 1 / 3, "twice": 2 / 3})

    def executed_in_a_tree(self):
        self._in_a_tree("executed", ["sh", "-c", f"{self.static} 0.5; echo $?"], self.static)

    def spawned_in_a_tree(self):
        code = (f"import os; child = os.posix_spawn('{self.static}', ['{self.static}', '0.5'], os.environ)\n"
                "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))")
        self._in_a_tree("spawned", ["python3", "-c", code], self.static)

    def musl_in_a_tree(self):
        """Whether perf events are permitted or not, it does not get a library that would end it."""
        program = self._build("dynamic-musl", compiler="musl-gcc")
        command = ["sh", "-c", f"{program} 0.5; echo $?"]
        self._in_a_tree("musl-child", command, program)
        done = run([os.path.join(self.programs, "seccomp"), "deny-perf", self.kymo.path, "sample", "-q", "-o",
                    self.scratch.path("denied-musl"), "--", *command])
        expect(done.stdout == b"end\n7\n", f"{done}")

    def dynamic_below_static(self):
        """A static shell starts a dynamic program: it is sampled once."""
        program = self._build("dynamic")
        require_tool("busybox")
        result, _ = self._sample("below", ["sh", "-c", f"busybox sh -c '{program} 0.5'; echo $?"], status=0,
                                 said="CPU time")
        found = [process for process in result.processes() if process["executable"] == program]
        expect(len(found) == 1 and found[0]["covered_cpu_ns"] < 0.7e9, f"{found}")

    def deep_stacks(self):
        """About 30 KB, without frame pointers."""
        if os.geteuid():
            raise Skipped("needs root, for large rings")
        result, _ = self._sample("deep", [self.static, "1", "250"])
        self._check(result)

    def kernel_frames(self):
        """Shares of the kernel's functions are those of perf."""
        self._permitted()
        if os.geteuid():
            raise Skipped("needs root, for the kernel's frames")
        require_tool("perf", "dd")
        command = ["dd", "if=/dev/zero", "of=/dev/null", "bs=64k", "count=400000"]
        result, _ = self._sample("kernel", command, "--kernel", status=0, said="[kernel]")
        self._check(result)
        stacks = result.folded()
        total = sum(weight for _, weight in stacks)
        found = {}
        for stack, weight in stacks:
            found[stack[-1]] = found.get(stack[-1], 0) + weight
        expect(any(["read", "vfs_read"] == [frame for frame in stack if frame in ("read", "vfs_read")]
                   for stack, _ in stacks), "no stack leads from read() into the kernel")
        data = self.scratch.path("perf.data")
        expect(run(["perf", "record", "-q", "-F", "1000", "-e", "cpu-clock", "-o", data, *command]).status == 0, "perf")
        lines = run(["perf", "report", "-i", data, "--stdio", "-q", "-s", "symbol"]).stdout.decode().splitlines()
        theirs = {words[2]: float(words[0].rstrip("%")) / 100 for words in map(str.split, lines) if len(words) >= 3}
        name = max(found, key=found.get)
        expect(name in theirs, f"{name} is not in {theirs}")
        samples = result.processes()[0]["samples"]
        bound = max(0.02, 3 * math.sqrt(2 * theirs[name] * (1 - theirs[name]) / samples))
        expect(abs(found[name] / total - theirs[name]) <= bound, f"{name}: {found[name] / total:.3f}, perf {theirs[name]:.3f}")

    def without_rights_to_the_kernel(self):
        """Another user gets the program's frames, and one line that says why no more."""
        self._permitted()
        with open("/proc/sys/kernel/perf_event_paranoid", encoding="ascii") as stream:
            if os.geteuid() or int(stream.read()) != 2:
                raise Skipped("needs root, to become another user, and kernel.perf_event_paranoid=2")
        kymo, directory = self.scratch.path("kymo"), self.scratch.path("nobody")
        shutil.copy(self.kymo.path, kymo)
        os.mkdir(directory)
        os.chown(directory, 65534, 65534)
        os.chmod(self.scratch.directory, 0o755)

        def become_nobody():
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
        done = run([kymo, "sample", "--kernel", "-o", directory + "/out", "--time-output=off", "--", self.static, "1"],
                   preexec=become_nobody, cwd=directory)
        expect(done.status == 7 and done.stderr.count("frames of the kernel are not permitted") == 1, f"{done}")
        self._check(Result(directory + "/out"))

    def a_window(self):
        result, _ = self._sample("window", [self.static, "1.5"], "--duration", "0.5")
        expect(30 < result.samples() <= 520, f"{result.samples()} samples in half a second")

    def attached(self):
        """All threads of a process that runs, by names and stacks; it goes on."""
        self._permitted()
        directory = self.scratch.path("attached")
        with subprocess.Popen([self.static, "2", "threads", "30"], stdout=subprocess.PIPE) as process:
            time.sleep(0.3)
            done = run([self.kymo.path, "attach", "-p", str(process.pid), "-d", "1", "-o", directory, "--time-output=off"])
            expect(done.status == 0 and "samples it from outside" in done.stderr, f"{done}")
            expect(process.wait(60) == 7, f"{process.returncode}")
        result = Result(directory)
        self._check(result)
        self._check_shares(result, {"once": 1 / 3, "twice": 2 / 3})
        expect(result.processes()[0]["threads_total"] == 2, f"{result.processes()[0]['threads_total']} threads")

    def other_root(self):
        """A process in another root: names come from its own files."""
        self._permitted()
        if os.geteuid():
            raise Skipped("needs root, for chroot")
        root = self.scratch.path("root")
        os.makedirs(root, exist_ok=True)
        os.rename(self._build("inside", "-static"), os.path.join(root, "inside"))
        result, _ = self._sample("root-out", ["chroot", root, "/inside", "0.5"], "--from-outside", said="CPU time")
        self._check_shares(result, {"once": 1 / 3, "twice": 2 / 3})

    def without_samples(self):
        result, done = self._sample("idle", [self.static, "0"], said="no samples")
        expect(len(result.processes()) == 1 and "nothing was recorded" not in done.stderr, done.stderr)

    def killed_program(self):
        self._permitted()
        directory = self.scratch.path("killed")
        process = subprocess.Popen([self.kymo.path, "sample", "-q", "-o", directory, "--time-output=off", "--",
                                    self.static, "60"], env=clean_environment())
        child = wait_until(lambda: self._child_of(process.pid, "static"), "no program")
        time.sleep(1)
        os.kill(child, signal.SIGKILL)
        expect(process.wait(60) == -signal.SIGKILL, f"{process.returncode}")
        expect(Result(directory).samples() > 100, f"{Result(directory).samples()} samples")

    def signals_are_passed_on(self):
        self._permitted()
        directory = self.scratch.path("terminated")
        process = subprocess.Popen([self.kymo.path, "sample", "-q", "-o", directory, "--time-output=off", "--",
                                    self.static, "60"], env=clean_environment())
        wait_until(lambda: self._child_of(process.pid, "static"), "no program")
        time.sleep(0.5)
        process.send_signal(signal.SIGTERM)
        expect(process.wait(60) == -signal.SIGTERM, f"{process.returncode}")
        expect(Result(directory).samples() > 50, f"{Result(directory).samples()} samples")

    def not_permitted(self):
        """One clear line, and the program runs as bare."""
        done = run([os.path.join(self.programs, "seccomp"), "deny-perf", self.kymo.path, "sample", "-q", "-o",
                    self.scratch.path("denied"), "--", self.static, "0.1"])
        lines = [line for line in done.stderr.splitlines() if line.startswith("kymo:")]
        expect(done.status == 7 and done.stdout == b"end\n", f"{done}")
        expect(len(lines) == 1 and "perf events are not permitted" in lines[0] and "runs unprofiled" in lines[0],
               f"{lines}")
        strict = run([os.path.join(self.programs, "seccomp"), "deny-perf", self.kymo.path, "sample", "-q", "--strict",
                      "-o", self.scratch.path("denied"), "--", self.static, "0.1"])
        expect(strict.status == 125 and strict.stdout == b"", f"{strict}")

    @staticmethod
    def _child_of(pid, name):
        try:
            with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as stream:
                for child in stream.read().split():
                    with open(f"/proc/{child}/comm", encoding="ascii") as comm:
                        if comm.read().strip() == name:
                            return int(child)
        except OSError:
            pass
        return None


def main():
    tap = Tap()
    with Scratch() as scratch:
        outside = Outside(Kymo(sys.argv[1]), sys.argv[2], scratch)
        for name in [name for name in vars(Outside) if not name.startswith("_")]:
            tap.point(name.replace("_", " "), getattr(outside, name), retries=2)
    tap.finish()


main()
