# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""kymo sample --off-cpu: how long the threads of a pipeline block, as the kernel's own accounts say (lifetime less CPU time
less the time on the run queue, /proc/self/task/TID/schedstat), and who wakes them, as the program is made.

usage: off_cpu.py KYMO PROGRAMS     (TAP)
"""
import os
import sqlite3
import subprocess
import sys
import time

from harness import Kymo, Result, Scratch, Skipped, Tap, expect, require_tool, run

# produce() -> transform() -> consume(): each waits in wait_for() until the one before it calls flush_to(). Each thread prints
# its number, its name, how long it lived, ran and waited for a CPU.
SOURCE = """
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
struct box { pthread_mutex_t mutex; pthread_cond_t cond; int count; };
static struct box first = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0};
static struct box second = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0};
static int rounds;
static long long now(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}
static void burn(long long ns)
{
    long long end = now(CLOCK_THREAD_CPUTIME_ID) + ns;
    while (now(CLOCK_THREAD_CPUTIME_ID) < end)
        ;
}
static long long queued(void)
{
    unsigned long long ran, waited = 0;
    char path[64];
    FILE *file;
    snprintf(path, sizeof(path), "/proc/self/task/%ld/schedstat", syscall(SYS_gettid));
    file = fopen(path, "r");
    if (!file || fscanf(file, "%llu %llu", &ran, &waited) != 2)
        waited = 0;
    if (file)
        fclose(file);
    return waited;
}
static void tell(const char *name, long long from)
{
    printf("%s %ld %lld %lld %lld\\n", name, syscall(SYS_gettid), now(CLOCK_MONOTONIC) - from,
           now(CLOCK_THREAD_CPUTIME_ID), queued());
}
__attribute__((noinline)) void flush_to(struct box *box)
{
    pthread_mutex_lock(&box->mutex);
    box->count++;
    pthread_mutex_unlock(&box->mutex);
    pthread_cond_signal(&box->cond);
    __asm__ volatile(""); /* no tail call: it stays on the stack */
}
__attribute__((noinline)) void wait_for(struct box *box)
{
    pthread_mutex_lock(&box->mutex);
    while (!box->count)
        pthread_cond_wait(&box->cond, &box->mutex);
    box->count--;
    pthread_mutex_unlock(&box->mutex);
}
static void *transform(void *none)
{
    long long from = now(CLOCK_MONOTONIC);
    prctl(PR_SET_NAME, "transform");
    for (int i = 0; i < rounds; i++) {
        wait_for(&first);
        burn(300000);
        flush_to(&second);
    }
    tell("transform", from);
    return none;
}
static void *consume(void *none)
{
    long long from = now(CLOCK_MONOTONIC);
    prctl(PR_SET_NAME, "consume");
    for (int i = 0; i < rounds; i++) {
        wait_for(&second);
        burn(200000);
    }
    tell("consume", from);
    return none;
}
int main(int argc, char **argv)
{
    pthread_t threads[2];
    rounds = argc > 1 ? atoi(argv[1]) : 300;
    pthread_create(&threads[0], 0, transform, 0);
    pthread_create(&threads[1], 0, consume, 0);
    for (int i = 0; i < rounds; i++) {
        usleep(8000);
        burn(200000);
        flush_to(&first);
    }
    pthread_join(threads[0], 0);
    pthread_join(threads[1], 0);
    printf("main %d 0 0 0\\n", getpid());
    return 0;
}
"""


class OffCpu:
    def __init__(self, kymo, programs, scratch):
        self.kymo, self.programs, self.scratch, self.runs = kymo, programs, scratch, 0
        require_tool("cc")
        self.pipeline = scratch.path("pipeline")
        source = scratch.path("pipeline.c")
        with open(source, "w", encoding="ascii") as stream:
            stream.write(SOURCE)
        built = run(["cc", "-O2", "-g", "-pthread", "-o", self.pipeline, source])
        expect(built.status == 0, built.stderr)

    def _sample(self, *options, command=None, status=0):
        self.runs += 1
        directory = self.scratch.path(f"out-{self.runs}")
        done = self.kymo.sample(command or [self.pipeline], directory, "--off-cpu", *options, quiet=False)
        expect(done.status == status, f"status {done.status}: {done.stderr}")
        if "recording where threads block is not permitted" in done.stderr:
            raise Skipped("perf events in the kernel are not permitted")
        return Result(directory), done

    @staticmethod
    def _threads(done):
        """By name: number, and how long it was blocked."""
        threads = {}
        for line in done.stdout.decode().splitlines():
            name, tid, lived, ran, queued = line.split()
            threads[name] = (int(tid), int(lived) - int(ran) - int(queued))
        return threads

    def _check(self, result, done):
        threads = self._threads(done)
        waits = result.json("profile.json")["waits"]
        losses = sum(process["losses"].get("perf_ring", 0) for process in result.processes())
        expect(losses == 0, f"{losses} records were lost")
        for name, maker in (("transform", "main"), ("consume", "transform")):
            tid, truth = threads[name]
            mine = [wait for wait in waits if wait["tid"] == tid]
            blocked = sum(wait["blocked_ns"] for wait in mine)
            Tap.note(f"measured: {name}: blocked {blocked / 1e6:.1f} ms, by the kernel's accounts {truth / 1e6:.1f} ms, "
                     f"{100 * (blocked / truth - 1):+.2f} %")
            expect(abs(blocked - truth) <= 0.02 * truth + 1e6, f"{name}: {blocked} ns, not {truth}")
            waiting = [wait for wait in mine if "wait_for" in wait["stack"]]
            total = sum(wait["waits"] for wait in waiting)
            right = sum(wait["waits"] for wait in waiting if wait["waker"].get("tid") == threads[maker][0] and
                        "flush_to" in wait["waker"]["stack"])
            Tap.note(f"measured: {name}: {right} of {total} waits with the right waker and its stack")
            expect(total > 20 and right >= 0.99 * total, f"{name}: {right} of {total}")
            expect({wait["thread"] for wait in mine} == {name}, f"{mine[0]['thread']}")
        return threads, waits

    def blocked_time_and_wakers(self):
        result, done = self._sample()
        threads, waits = self._check(result, done)
        sleeps = [wait for wait in waits if wait["tid"] == threads["main"][0] and "usleep" in wait["stack"]]
        total = sum(wait["waits"] for wait in sleeps)
        timer = sum(wait["waits"] for wait in sleeps if wait["waker"]["kind"] == "interrupt")
        expect(total >= 270 and timer >= 0.99 * total, f"{timer} of {total} sleeps end by a timer")
        expect("Where threads block" in done.stderr and "< transform" in done.stderr, done.stderr)

    def agrees_with_samples_and_database(self):
        """The time by waits is that of samples, thread by thread, in every output."""
        result, _ = self._sample("--format", "json,folded,db")
        by_waits, by_threads = {}, {}
        for wait in result.json("profile.json")["waits"]:
            by_waits[wait["tid"]] = by_waits.get(wait["tid"], 0) + wait["blocked_ns"]
        with sqlite3.connect(result.path("results.db")) as database:
            for tid, blocked in database.execute("select tid, blocked_ns from kymo_threads"):
                by_threads[tid] = blocked
            summed = dict(database.execute("select tid, sum(blocked_ns) from kymo_waits group by tid"))
            stacks = database.execute("select waker_stack from kymo_waits where waker_stack like '%flush_to%'").fetchall()
        expect(by_waits == {tid: ns for tid, ns in by_threads.items() if ns} == summed,
               f"{by_waits}, {by_threads}, {summed}")
        expect(stacks, "no stack of a waker")

    def the_whole_machine(self):
        if os.geteuid():
            raise Skipped("needs root")
        result, done = self._sample("-a")
        losses = sum(process["losses"].get("perf_ring", 0) for process in result.processes())
        if losses: # other programs switch more often than can be recorded
            expect("waits at these times are missing" in done.stderr, done.stderr)
            raise Skipped(f"{losses} records were lost, as the summary says")
        self._check(result, done)

    def kernel_frames(self):
        result, _ = self._sample("--kernel")
        waits = [wait for wait in result.json("profile.json")["waits"] if "wait_for" in wait["stack"]]
        expect(waits and all("do_syscall_64" in wait["stack"] for wait in waits), f"{waits[:1]}")

    def preempted_is_not_blocked(self):
        """Two threads that compute on one CPU block nowhere: each waits for the other's time to end."""
        code = "import threading\ndef f():\n    i = 0\n    while i < 8000000: i += 1\nf()"
        require_tool("taskset")
        result, _ = self._sample(command=["taskset", "-c", "0", "sh", "-c",
                                          f"python3 -c '{code}' & python3 -c '{code}'; wait"])
        busy = [process for process in result.processes() if process["executable"].endswith(("python3", "python3.11")) and
                process["covered_cpu_ns"] > 0.2e9]
        expect(len(busy) == 2, f"{[process['executable'] for process in result.processes()]}")
        for process in busy:
            times = process["real_time"]
            expect(times["runnable_ns"] > 0.2 * times["running_ns"] and times["blocked_ns"] < 0.1 * times["running_ns"],
                   f"{times}")

    def without_the_tracepoint(self):
        """With CAP_PERFMON alone, tracefs is closed: where threads block is known, and not who wakes them."""
        if os.geteuid():
            raise Skipped("needs root, to become another user")
        directory = self.scratch.path("perfmon")
        os.makedirs(directory, exist_ok=True)
        os.chown(directory, 65534, 65534)
        done = run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=+perfmon",
                    "--ambient-caps=+perfmon", self.kymo.path, "sample", "--off-cpu", "--time-output=off", "--force", "-o",
                    directory, "--", self.pipeline, "100"], cwd="/")
        expect(done.status == 0 and "who wakes threads is not known (" in done.stderr, f"{done}")
        waits = Result(directory).json("profile.json")["waits"]
        expect(waits and {wait["waker"]["kind"] for wait in waits} == {"unknown"}, f"{waits[:1]}")
        expect(any("wait_for" in wait["stack"] for wait in waits), f"{waits[:1]}")

    def attached(self):
        """A process that runs already: its threads are known from when they leave a CPU again."""
        process = subprocess.Popen([self.pipeline, "1000"], stdout=subprocess.PIPE)
        try:
            time.sleep(0.5)
            directory = self.scratch.path("attached")
            done = run([self.kymo.path, "attach", "--off-cpu", "-p", str(process.pid), "-d", "1", "-o", directory,
                        "--time-output=off", "--force"])
        finally:
            process.kill()
            process.wait()
        if "cannot be opened" in done.stderr or "not permitted" in done.stderr:
            raise Skipped(done.stderr.strip())
        expect(done.status == 0, f"{done}")
        waits = [wait for wait in Result(directory).json("profile.json")["waits"] if "wait_for" in wait["stack"]]
        wakers = {wait["waker"].get("thread") for wait in waits if wait["waits"] > 10}
        expect({wait["thread"] for wait in waits} == {"transform", "consume"} and wakers and wakers <= {"transform", "pipeline"},
               f"{wakers}")

    def not_permitted(self):
        """One line says so, and CPU time is sampled all the same."""
        with open("/proc/sys/kernel/perf_event_paranoid", encoding="ascii") as stream:
            paranoid = int(stream.read())
        if os.geteuid() or paranoid != 2:
            raise Skipped("needs root, to become another user, and kernel.perf_event_paranoid of 2")
        directory = self.scratch.path("denied")
        os.makedirs(directory, exist_ok=True)
        os.chown(directory, 65534, 65534)
        done = run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", self.kymo.path, "sample", "--off-cpu",
                    "--time-output=off", "-o", directory, "--", self.pipeline, "50"], cwd="/")
        expect(done.status == 0 and "recording where threads block is not permitted (kernel.perf_event_paranoid is 2" in
               done.stderr, f"{done}")
        expect("waits" not in Result(directory).json("profile.json"), "waits without permission")


def main():
    tap = Tap()
    with Scratch() as scratch:
        off_cpu = OffCpu(Kymo(sys.argv[1]), sys.argv[2], scratch)
        for name in [name for name in vars(OffCpu) if not name.startswith("_")]:
            tap.point(name.replace("_", " "), getattr(off_cpu, name), retries=2)
    tap.finish()


main()
