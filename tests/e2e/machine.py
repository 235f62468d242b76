#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""kymo sample --all-cpus: CPU time of each process as the kernel counts it (wait4(2), cpu.stat of a control group), parts of
the machine, programs that ran before, the end, and what is said where it is not permitted.

usage: machine.py KYMO PROGRAMS     (TAP)
"""
import json
import math
import os
import signal
import subprocess
import sys
import time

from harness import Kymo, Result, Scratch, Skipped, Tap, clean_environment, expect, require_tool, run

# Computes for so many seconds of CPU time in burn(), in one or two threads.
SOURCE = """
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
static double seconds;
__attribute__((noinline)) double burn(int n) { volatile double s = 0; while (n--) s += n * 1.5; return s; }
static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}
static void *work(void *none)
{
    while (now() < seconds)
        burn(10000);
    return none;
}
int main(int argc, char **argv)
{
    pthread_t thread;
    seconds = argc > 1 ? atof(argv[1]) : 1e9;
    if (argc > 2)
        pthread_create(&thread, 0, work, 0);
    work(0);
    if (argc > 2)
        pthread_join(thread, 0);
    return 0;
}
"""

# Runs several programs at once, and prints for each what the kernel counted: {pid: [ns, name]}.
SCRIPT = """
import json, os, sys
program, group, out = sys.argv[1:4]
children = []
for arguments in (["1.5"], ["2.5", "threads"], ["1.0"], ["2.0"]):
    child = os.fork()
    if not child:
        if group:
            with open(group + "/cgroup.procs", "w") as stream:
                stream.write("0")
        os.execv(program, [program, *arguments])
    children.append(child)
times = {}
for child in children:
    usage = os.wait4(child, 0)[2]
    times[child] = (usage.ru_utime + usage.ru_stime) * 1e9
if group:
    with open(group + "/cpu.stat") as stream:
        times["group"] = 1e3 * int(stream.readline().split()[1])
with open(out, "w") as stream:
    json.dump(times, stream)
"""


class Machine:
    def __init__(self, kymo, scratch):
        self.kymo, self.scratch = kymo, scratch
        self.program = scratch.path("burning")
        self.groups, self.started, self.runs = [], [], 0
        require_tool("cc")
        source = scratch.path("burning.c")
        with open(source, "w", encoding="ascii") as stream:
            stream.write(SOURCE)
        built = run(["cc", "-O2", "-g", "-pthread", "-o", self.program, source])
        expect(built.status == 0, built.stderr)
        self.script = scratch.path("several.py")
        with open(self.script, "w", encoding="ascii") as stream:
            stream.write(SCRIPT)

    def _sample(self, name, *arguments, command=(), status=0, **how):
        if os.geteuid():
            raise Skipped("needs root")
        self.runs += 1
        directory = self.scratch.path(f"{name}-{self.runs}")
        done = run([self.kymo.path, "sample", "-a", "-o", directory, "--time-output=off", *arguments, *(["--", *command] if command else [])],
                   **how)
        expect(done.status == status, f"status {done.status}, not {status}: {done.stderr}")
        return (Result(directory) if not status else None), done

    def _make_group(self, name):
        root = None
        with open("/proc/self/mountinfo", encoding="utf-8") as stream:
            for line in stream:
                if " - cgroup2 " in line:
                    root = line.split()[4]
        if not root:
            raise Skipped("no cgroup2 hierarchy is mounted")
        group = os.path.join(root, name)
        try:
            os.makedirs(group, exist_ok=True)
        except OSError as error:
            raise Skipped(f"cannot make a control group: {error}") from error
        self.groups.append(group)
        return group

    def _remove_groups(self):
        for group in self.groups:
            for _ in range(50):
                try:
                    os.rmdir(group)
                    break
                except OSError:
                    time.sleep(0.1)

    @staticmethod
    def _sampled(result, pid):
        return sum(process["covered_cpu_ns"] for process in result.processes() if process["pid"] == int(pid))

    def _check_times(self, result, times):
        for pid, counted in times.items():
            if pid == "group":
                continue
            sampled = self._sampled(result, pid)
            Tap.note(f"measured: process {pid}: {sampled / 1e6:.0f} ms sampled, {counted / 1e6:.0f} ms counted, "
                     f"{100 * (sampled / counted - 1):+.2f} %")
            # 2 %, or 1.5 standard deviations of as many independent samples (they are less scattered than that).
            bound = max(0.02, 1.5 / math.sqrt(counted / 1e6))
            expect(abs(sampled - counted) <= bound * counted, f"{pid}: {sampled} ns, not {counted}")
        losses = sum(process["losses"].get("perf_ring", 0) for process in result.processes())
        expect(losses == 0, f"{losses} records lost")

    def _read_times(self):
        with open(self.scratch.path("times"), encoding="ascii") as stream:
            return json.load(stream)

    def times_of_processes(self):
        result, done = self._sample("times-of-processes", command=["/usr/bin/python3", self.script, self.program, "",
                                                          self.scratch.path("times")], timeout=120)
        self._check_times(result, self._read_times())
        expect("CPUs" in done.stderr and "Processes" in done.stderr, done.stderr)
        for process in result.processes():
            if process["samples"]:
                by_cpu = sum(cpu["cpu_ns"] for cpu in process["cpus"])
                expect(by_cpu == process["covered_cpu_ns"], f"{process['cpus']}")

    def group_selected_by_kernel(self):
        group = self._make_group("kymo-test-kernel")
        result, done = self._sample("group", "--cgroup", group, timeout=120, command=[
            "/usr/bin/python3", self.script, self.program, group, self.scratch.path("times")])
        expect("which the kernel selects" in done.stderr, done.stderr)
        times = self._read_times()
        self._check_times(result, times)
        sampled = sum(process["covered_cpu_ns"] for process in result.processes())
        expect(abs(sampled - times["group"]) <= 0.02 * times["group"], f"{sampled} ns, not {times['group']}")
        groups = {process["cgroup"] for process in result.processes() if process["samples"]}
        expect(groups == {"/kymo-test-kernel"}, f"{groups}")


    def _start(self, name, *arguments, **how):
        process = subprocess.Popen([name, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **how)
        self.started.append(process)
        return process

    def _stop_all(self):
        for process in self.started:
            process.kill()
            process.wait()
        self.started = []

    def group_selected_by_kymo(self):
        """A hierarchy of version 1, which has no perf events."""
        place = "/sys/fs/cgroup/pids"
        if not os.path.isdir(place) or not os.access(place, os.W_OK):
            raise Skipped("no hierarchy of version 1")
        group = os.path.join(place, "kymo-test-pids")
        os.makedirs(group, exist_ok=True)
        self.groups.append(group)
        inside, outside = self._start(self.program), self._start(self.program)
        try:
            with open(group + "/cgroup.procs", "w", encoding="ascii") as stream:
                stream.write(str(inside.pid))
            result, done = self._sample("by-kymo", "--cgroup", "/kymo-test-pids", "-d", "1")
        finally:
            self._stop_all()
        expect("(pids), which kymo selects by /proc/PID/cgroup" in done.stderr, done.stderr)
        pids = {process["pid"] for process in result.processes() if process["samples"]}
        expect(pids == {inside.pid} and outside.pid not in pids, f"{pids}, not {inside.pid}")

    def containers_by_their_ids(self):
        first, second = "12ab" + 60 * "c", "12ac" + 60 * "d"
        groups = [self._make_group(f"docker-{number}.scope") for number in (first, second)]
        inside = self._start(self.program)
        try:
            with open(groups[0] + "/cgroup.procs", "w", encoding="ascii") as stream:
                stream.write(str(inside.pid))
            result, _ = self._sample("container", "--container", "12ab", "-d", "1")
        finally:
            self._stop_all()
        pids = {process["pid"] for process in result.processes() if process["samples"]}
        expect(pids == {inside.pid}, f"{pids}, not {inside.pid}")
        _, done = self._sample("ambiguous", "--container", "12a", "-d", "1", status=125)
        expect("several containers begin with '12a'" in done.stderr and first in done.stderr, done.stderr)
        _, done = self._sample("unknown", "--container", "ffff", "-d", "1", status=125)
        expect("no control group has the ID 'ffff'" in done.stderr, done.stderr)

    def processes_of_a_user(self):
        if os.geteuid():
            raise Skipped("needs root")
        other = self._start(self.program, user="nobody", cwd="/")
        self._start(self.program)
        try:
            result, _ = self._sample("user", "--user", "nobody", "-d", "1")
        finally:
            self._stop_all()
        pids = {process["pid"] for process in result.processes() if process["samples"]}
        expect(other.pid in pids, f"{pids} without {other.pid}")
        uids = {process["executable"] for process in result.processes() if process["pid"] in pids}
        expect(self.program in uids, f"{uids}")

    def names_in_another_mount_namespace(self):
        """A program that runs before, in a file system that kymo does not see."""
        require_tool("unshare")
        place = self.scratch.path("mounted")
        os.makedirs(place, exist_ok=True)
        self._start("unshare", "-m", "sh", "-c", f"mount -t tmpfs none {place} && cp {self.program} {place}/hidden && "
                    f"exec {place}/hidden")
        try:
            time.sleep(1)
            result, _ = self._sample("hidden", "-d", "1")
        finally:
            self._stop_all()
        found = [process for process in result.processes() if process["executable"].endswith("/hidden")]
        expect(found and found[0]["samples"] > 100, f"{found}")
        leaves = {stack[-1] for stack, _weight in result.folded() if "hidden" in stack[0]}
        expect("burn" in leaves or any("burn" in stack for stack, _weight in result.folded()), f"{leaves}")

    def kernel_threads_and_frames(self):
        """Kernel threads are named as ps(1) names them; with --kernel, what they do has names."""
        result, _ = self._sample("kernel", "--kernel", "-d", "2", command=[
            "dd", "if=/dev/zero", f"of={self.scratch.path('big')}", "bs=1M", "count=200", "conv=fsync", "status=none"])
        names = [process["executable"] for process in result.processes()]
        frames = {frame for stack, _weight in result.folded() for frame in stack}
        expect(any("write" in frame for frame in frames), "no frame of the kernel")
        Tap.note(f"kernel threads: {[name for name in names if name.startswith('[')][:8]}")
        expect(not any(name.startswith("[swapper") for name in names), f"{names}")

    def a_signal_ends_it(self):
        if os.geteuid():
            raise Skipped("needs root")
        directory = self.scratch.path("signal")
        self._start(self.program)
        process = subprocess.Popen([self.kymo.path, "sample", "-a", "-o", directory, "--time-output=off"],
                                   stderr=subprocess.PIPE, env=clean_environment(), text=True)
        try:
            time.sleep(2)
            process.send_signal(signal.SIGTERM)
            text = process.communicate(timeout=60)[1]
        finally:
            self._stop_all()
        expect(process.returncode == 0, f"{process.returncode}: {text}")
        expect("Ctrl-C ends it" in text and Result(directory).samples() > 500, text)
        for name in ("profile.json", "trace.pftrace", "samples.folded", "profile.pb.gz", "report.html"):
            expect(Result(directory).has(name), f"no {name}")

    def status_is_that_of_the_program(self):
        _, done = self._sample("status", command=["sh", "-c", "exit 3"], status=3)
        expect("sampling the whole machine" in done.stderr, done.stderr)

    def not_permitted(self):
        if os.geteuid():
            raise Skipped("needs root, to become another user")
        with open("/proc/sys/kernel/perf_event_paranoid", encoding="ascii") as stream:
            if int(stream.read()) <= 0:
                raise Skipped("every user is permitted to sample the machine")
        directory = self.scratch.path("denied")
        done = run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", self.kymo.path, "sample", "-a", "-o",
                    directory, "-d", "1"])
        lines = done.stderr.splitlines()
        expect(done.status == 125 and len(lines) == 1, f"{done}")
        expect("sampling the whole machine is not permitted (kernel.perf_event_paranoid is " in lines[0] and
               "CAP_PERFMON" in lines[0], lines[0])
        expect(not os.path.exists(directory), "a result directory was made")

    def wrong_options(self):
        for options, text in (
                (("--cgroup", "/no/such/group"), "there is no control group '/no/such/group'"),
                (("--user", "no-such-user"), "there is no user 'no-such-user'"),
                (("--user", "nobody", "--cgroup", "/"), "cannot be combined")):
            done = run([self.kymo.path, "sample", "-o", self.scratch.path("wrong"), *options])
            expect(done.status == 125 and text in done.stderr, f"{done}")
            expect(not os.path.exists(self.scratch.path("wrong")), "a result directory was made")


def main():
    tap = Tap()
    with Scratch() as scratch:
        machine = Machine(Kymo(sys.argv[1]), scratch)
        try:
            for name in [name for name in vars(Machine) if not name.startswith("_")]:
                tap.point(name.replace("_", " "), getattr(machine, name), retries=2)
        finally:
            machine._remove_groups()
    tap.finish()


main()
