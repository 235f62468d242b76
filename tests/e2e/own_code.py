#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""The program's own code leads: no output shows kymo's frames, the summary names the function that waits or works, and
disassembly finds each address.

  own_code.py KYMO
"""
import os
import re
import signal
import subprocess
import sys
import time

from harness import Kymo, Result, Scratch, Skipped, Tap, expect, require_tool, run

DEADLOCK = r"""
#include <pthread.h>
#include <unistd.h>
static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;
__attribute__((noinline)) static void transfer_ab(void) { pthread_mutex_lock(&a); usleep(200000); pthread_mutex_lock(&b); }
__attribute__((noinline)) static void transfer_ba(void) { pthread_mutex_lock(&b); usleep(200000); pthread_mutex_lock(&a); }
static void *one(void *x) { transfer_ab(); return x; }
static void *two(void *x) { transfer_ba(); return x; }
int main(void) { alarm(60); pthread_t t, u; pthread_create(&t, 0, one, 0); pthread_create(&u, 0, two, 0);
	pthread_join(t, 0); return 0; }
"""
MIXED = r"""
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
static volatile double sum;
static char *volatile block;
__attribute__((noinline)) static void compute(long n) { for (long i = 0; i < n; i++) sum += (double)i; }
__attribute__((noinline)) static void fill(void) { for (int i = 0; i < 400; i++) memset(block, i, 4000000); }
__attribute__((noinline)) static void allocate(void) { for (int i = 0; i < 200000; i++) { block = malloc(64); free(block); } }
static void handler(int n) { (void)n; compute(10000); }
__attribute__((noinline)) static void signals(void) { signal(SIGUSR2, handler); for (int i = 0; i < 2000; i++) raise(SIGUSR2); }
static void *worker(void *a) { compute(30000000); allocate(); signals(); usleep(100000); return a; }
int main(void) {
	pthread_t t[2];
	for (int i = 0; i < 2; i++) pthread_create(&t[i], 0, worker, 0);
	for (int i = 0; i < 2; i++) pthread_join(t[i], 0);
	for (int i = 0; i < 5; i++) { pid_t p = fork(); if (!p) { compute(3000000); _exit(0); } waitpid(p, 0, 0); }
	block = malloc(4000000); fill(); free(block);
	return 0;
}
"""
QUEUE = r"""
#include <condition_variable>
#include <mutex>
#include <thread>
#include <chrono>
struct queue { std::mutex m; std::condition_variable c; bool ready = false;
	__attribute__((noinline)) void take() { std::unique_lock<std::mutex> l(m); c.wait(l, [this] { return ready; }); }
	__attribute__((noinline)) void put() { std::lock_guard<std::mutex> l(m); ready = true; c.notify_one(); } };
int main() { queue q; std::thread t([&] { q.take(); }); std::this_thread::sleep_for(std::chrono::milliseconds(900)); q.put();
	t.join(); return 0; }
"""
PACK = r"""
#include <stdlib.h>
#include <zlib.h>
__attribute__((noinline)) static unsigned long pack_all(unsigned char *in, unsigned long size) {
	unsigned long bound = compressBound(size), total = 0;
	unsigned char *out = malloc(bound);
	for (int i = 0; i < 6; i++) { unsigned long n = bound; compress2(out, &n, in, size, 9); total += n; }
	free(out); return total; }
int main(void) { unsigned long size = 1500000; unsigned char *in = malloc(size);
	for (unsigned long i = 0; i < size; i++) in[i] = (unsigned char)(i * i >> 7 & 15);
	return pack_all(in, size) == 0; }
"""
OWN = re.compile(r"libkymo|wrapped_[a-z]|wall_sampler|runtime_finish|runtime_start|kymo_thread")
MIX = r"""
#include <stdint.h>
#include <stdio.h>
static inline __attribute__((always_inline)) uint64_t step(uint64_t a, uint64_t *b) {
	*b ^= a >> 17;
	*b += a / (1 + (*b & 1023));
	return a * 6364136223846793005u + 1; }
__attribute__((noinline)) uint64_t mix(uint64_t n) { uint64_t a = 1, b = 2; for (uint64_t i = 0; i < n; i++) a = step(a, &b); return a + b; }
int main(void) { printf("%d\n", (int)(mix(60000000) & 1)); return 0; }
"""
MODES = {
    "cpu": [],
    "real time": ["--realtime"],
    "wrapped": ["--realtime", "--trace-memory", "--trace-thread-locks", "--trace-io", "--trace-sleep"],
}


def table(text, heading):
    """The rows below a heading that begins so, without the heads of columns."""
    lines = text.splitlines()
    begin = next((i for i, line in enumerate(lines) if line.startswith(heading)), None)
    expect(begin is not None, f"no '{heading}': {text[-3000:]}")
    rows = lines[begin + 1:lines.index("", begin)]
    return [row for row in rows if "%" in row]


class OwnCode:
    def __init__(self, kymo, scratch):
        self.kymo, self.scratch, self.compiled = kymo, scratch, {}

    def program(self, name, source, *flags, compiler="cc", suffix=".c"):
        if name not in self.compiled:
            path = self.scratch.path(name)
            with open(path + suffix, "w", encoding="utf-8") as stream:
                stream.write(source)
            ended = run([compiler, "-O1", "-g", path + suffix, "-o", path, "-pthread", *flags])
            if ended.status:
                raise Skipped(ended.stderr.splitlines()[0])
            self.compiled[name] = path
        return self.compiled[name]

    def summary(self, directory, *options, columns=None):
        ended = self.kymo.report(directory, *options, environment={"COLUMNS": columns} if columns else None)
        expect(ended.status == 0, f"{ended}")
        return ended.stdout.decode()

    def no_own_frames(self, mode):
        directory = self.scratch.path(f"mixed {mode}")
        ended = self.kymo.sample([self.program("mixed", MIXED)], directory, *MODES[mode])
        expect(ended.status == 0, f"{ended}")
        result = Result(directory)
        named = {"json": [(function["name"], function["module"] or "") for function in result.json("profile.json")["functions"]],
                 "folded": [(frame, "") for stack, _ in result.folded() for frame in stack[1:]],
                 "pprof": [(frame.function, frame.module or "") for sample in result.profile().samples
                           for frame in sample.stack]}
        if mode == "wrapped":
            named["memory"] = [(frame.get("function") or "", frame.get("module") or "")
                               for process in result.json("memory.json")["processes"] for site in process["sites"]
                               for frame in site.get("frames", [])]
        for name, frames in named.items():
            expect(frames, f"{name} is empty")
            seen = sorted({frame for frame in frames if OWN.search(frame[0]) or OWN.search(os.path.basename(frame[1]))})
            expect(not seen, f"{name}: {seen}")
        for name in ("report.html", "trace.pftrace", "profile.txt"):
            with open(result.path(name), "rb") as stream:
                seen = re.findall(rb"wrapped_[a-z_]+|wall_sampler_[a-z_]+|runtime_finish", stream.read())
            expect(not seen, f"{name}: {set(seen)}")

    def deadlock(self):
        path = self.program("bank", DEADLOCK)
        with subprocess.Popen([path]) as process:
            try:
                time.sleep(0.6)
                ended = run([self.kymo.path, "attach", "-p", str(process.pid), "--realtime", "-d", "1", "-o",
                             self.scratch.path("bank-result"), "--time-output=off"])
            finally:
                process.send_signal(signal.SIGKILL)
        rows = table(ended.stderr, "Heaviest functions")
        for function in ("transfer_ab", "transfer_ba"):
            expect(any(re.search(rf"\S+ under {function} \(bank\.c:[56]\)$", row) for row in rows), "\n".join(rows))
        paths = table(ended.stderr, "Heaviest call paths")
        expect(any("one > transfer_ab > " in row for row in paths), "\n".join(paths))

    def widths(self):
        directory = self.scratch.path("mixed real time")
        for columns in (40, 57, 80, 100, 200):
            text = self.summary(directory, columns=str(columns))
            wide = [line for line in text.splitlines() if len(line) > columns]
            expect(not wide, f"{columns}: {wide}")
            expect("compute" in "".join(table(text, "Heaviest functions")), text)
            expect("compute" in "".join(table(text, "Heaviest call paths")), text)
        expect(self.summary(directory) == self.summary(directory, columns="100"), "not 100 columns by default")

    def library_leaf(self):
        directory = self.scratch.path("mixed cpu")
        rows = table(self.summary(directory), "Heaviest functions")
        expect(any(re.search(r"mem\w+ under fill \(mixed\.c:11\)$", row) for row in rows), "\n".join(rows))
        total = sum(float(row.split()[0]) for row in table(self.summary(directory, "--top", "1000"), "Heaviest functions"))
        expect(98 < total < 102, f"{total} % in all")

    def templates(self):
        directory = self.scratch.path("queue-result")
        self.kymo.sample([self.program("queue", QUEUE, compiler="c++", suffix=".cc")], directory, "--realtime")
        rows = table(self.summary(directory), "Heaviest functions")[:3]
        expect(any("under queue::take() (queue.cc:7)" in row for row in rows), "\n".join(rows))

    def static(self):
        directory = self.scratch.path("static-result")
        self.kymo.sample([self.program("static", MIXED, "-static")], directory, "--realtime")
        if not Result(directory).has("profile.json"):
            raise Skipped("static programs are not profiled here")
        rows = table(self.summary(directory), "Heaviest functions")
        expect("compute" in "".join(rows), "\n".join(rows))

    def other_library(self):
        directory = self.scratch.path("pack-result")
        self.kymo.sample([self.program("pack", PACK, "-lz")], directory)
        rows = table(self.summary(directory), "Heaviest functions")
        expect(re.search(r"libz\S* under pack_all \(pack\.c:7\)", rows[0]) or "(libz" in rows[0], "\n".join(rows))
        expect("pack_all" in "".join(rows), "\n".join(rows))

    def addresses(self):
        """Locations are instructions, each with the lines of what was inlined there."""
        directory = self.scratch.path("mix-result")
        self.kymo.sample([self.program("mix", MIX)], directory)
        profile = Result(directory).json("profile.json")
        addresses = {frame["relative_pc"] for frame in profile["frames"] if frame["name"] == "mix"}
        lines = {frame["line"] for frame in profile["frames"] if frame["name"] == "step"}
        expect(len(addresses) > 3, f"{addresses}")
        expect({5, 6} & lines and lines <= {5, 6, 7}, f"{lines}")
        locations = {sample.stack[1].line for sample in Result(directory).profile().samples
                     if sample.stack[0].function == "step"}
        expect(locations == {8}, f"step was inlined at {locations}")


def main():
    tap = Tap()
    require_tool("cc")
    with Scratch() as scratch:
        own = OwnCode(Kymo(sys.argv[1]), scratch)
        for mode in MODES:
            tap.point(f"no frame of kymo's in stacks: {mode}", lambda mode=mode: own.no_own_frames(mode))
        tap.point("a deadlock names its functions", own.deadlock)
        tap.point("40 to 200 columns", own.widths)
        tap.point("time in libc counts for its caller", own.library_leaf)
        tap.point("templates count for their caller", own.templates)
        tap.point("functions of libraries say whom they serve", own.other_library)
        tap.point("a static program's libc", own.static)
        tap.point("each address has its line", own.addresses)
    tap.finish()


if __name__ == "__main__":
    main()
