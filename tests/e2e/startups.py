#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""Starts one program again and again with everything switched on that kymo has. A start that does not
end in time is a hang: the stacks of all its processes are printed. Output and status of each start
are those of the bare program.

The first starts go through `kymo sample`; the others get the environment that it gives to programs,
and are so started without its work before and after.

usage: startups.py --list
       startups.py KYMO NAME [--count N]     (TAP)
"""
import concurrent.futures
import os
import re
import shutil
import signal
import subprocess
import sys

from harness import (Failed, Kymo, Result, Scratch, Skipped, Tap, clean_environment, expect,
                     require_tool, run)

EVERYTHING = ["--realtime", "--cputime=on", "--trace=on", "--profile=on",
              "--components=wall_clock,cpu_clock,peak_rss,trip_count"] + [
    f"--trace-{name}=on" for name in (
        "thread-locks", "thread-rw-locks", "thread-spin-locks", "thread-barriers", "thread-join",
        "thread-conditions", "threads", "processes", "sleep", "io", "loader", "memory")]
HANG_SECONDS = 60
BATCH = 50  # starts between two clean-ups
AT_ONCE = 2

MPI_PROGRAM = """
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv)
{
	int rank, size, sum;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 0)
		printf("%d ranks, sum %d\\n", size, sum);
	MPI_Finalize();
	return 0;
}
"""
OPENMP_PROGRAM = """
#include <stdio.h>
int main(void)
{
	long sum = 0;
	#pragma omp parallel for num_threads(4) reduction(+ : sum)
	for (long i = 0; i < 10000; i++)
		sum += i;
	printf("%ld\\n", sum);
	return 0;
}
"""
PYTHON_PROGRAM = """
import threading, queue
tasks, done = queue.Queue(), []
def work():
    while (task := tasks.get()) is not None:
        done.append(task * task)
threads = [threading.Thread(target=work) for _ in range(6)]
for thread in threads: thread.start()
for task in range(100): tasks.put(task)
for _ in threads: tasks.put(None)
for thread in threads: thread.join()
print(sum(done))
"""
ASAN_C_PROGRAM = """
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *work(void *argument)
{
	for (int i = 1; i < 100; i++) {
		pthread_mutex_lock(&lock);
		char *memory = malloc(i);
		memory[i - 1] = 1;
		free(memory);
		pthread_mutex_unlock(&lock);
	}
	return argument;
}
int main(void)
{
	pthread_t threads[4];
	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, work, NULL);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	puts("done");
	return 0;
}
"""
ASAN_CXX_PROGRAM = """
#include <iostream>
#include <map>
#include <stdexcept>
#include <thread>
#include <vector>
int main()
{
	std::vector<std::thread> threads;
	for (int i = 0; i < 4; i++)
		threads.emplace_back([i] {
			std::map<int, std::vector<int>> map;
			for (int k = 0; k < 50; k++)
				map[k % 7].push_back(k * i);
			try {
				map.at(99);
			} catch (const std::out_of_range &) {
			}
		});
	for (auto &thread : threads)
		thread.join();
	std::cout << "done" << std::endl;
}
"""
TSAN_C_PROGRAM = """
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long total;
static void *work(void *argument)
{
	for (int i = 0; i < 8000; i++) {
		size_t size = (size_t)i % 300 + 1;
		char *one = malloc(size), *other = malloc(size);
		memset(one, i & 3, size);
		memcpy(other, one, size);
		pthread_mutex_lock(&lock);
		total += other[size - 1];
		pthread_mutex_unlock(&lock);
		free(one);
		free(other);
	}
	return argument;
}
int main(void)
{
	for (int round = 0; round < 3; round++) {
		pthread_t threads[4];
		for (int i = 0; i < 4; i++)
			pthread_create(&threads[i], NULL, work, NULL);
		for (int i = 0; i < 4; i++)
			pthread_join(threads[i], NULL);
	}
	printf("%ld\\n", total);
	return 0;
}
"""
MAKEFILE = "all: a b c d\n\t@echo done\na b c d:\n\t@sleep 0.001; expr 1 + 1 >$@.out\n"


def compiled(scratch, compiler, source, suffix, *options):
    require_tool(compiler)
    path = scratch.path("program")
    with open(path + suffix, "w", encoding="ascii") as stream:
        stream.write(source)
    built = run([compiler, *options, "-o", path, path + suffix])
    if built.status != 0:
        raise Skipped(f"{compiler} cannot build it: {built.stderr[-300:]}")
    return path


def mpi(kind, *options):
    def prepare(scratch):
        require_tool(f"mpirun.{kind}", f"mpicc.{kind}")
        program = compiled(scratch, f"mpicc.{kind}", MPI_PROGRAM, ".c")
        return [f"mpirun.{kind}", *options, "-n", "2", program]
    return prepare


def openmp(scratch):
    return [compiled(scratch, "clang", OPENMP_PROGRAM, ".c", "-fopenmp")]


def python(_scratch):
    return ["/usr/bin/python3", "-c", PYTHON_PROGRAM]


def sqlite(_scratch):
    require_tool("sqlite3")
    return ["sqlite3", ":memory:", "create table t(a); insert into t values(1),(2); select sum(a) from t;"]


def make(scratch):
    require_tool("make")
    with open(scratch.path("Makefile"), "w", encoding="ascii") as stream:
        stream.write(MAKEFILE)
    return ["make", "-s", "-j4", "-C", scratch.directory]


def nginx(scratch):
    require_tool("nginx")
    with open(scratch.path("nginx.conf"), "w", encoding="ascii") as stream:
        stream.write(f"pid {scratch.path('pid')};\nerror_log stderr;\nevents {{}}\n"
                     f"http {{ access_log off; server {{ listen unix:{scratch.path('socket')}; }} }}\n")
    return ["nginx", "-t", "-q", "-c", scratch.path("nginx.conf"), "-p", scratch.directory]


def redis(_scratch):
    require_tool("redis-server")
    return ["redis-server", "--version"]


def asan_c(scratch):
    return [compiled(scratch, "gcc", ASAN_C_PROGRAM, ".c", "-fsanitize=address", "-g", "-pthread")]


def asan_cxx(scratch):
    return [compiled(scratch, "g++", ASAN_CXX_PROGRAM, ".cc", "-fsanitize=address", "-g", "-pthread")]


def tsan_c(scratch):
    program = compiled(scratch, "gcc", TSAN_C_PROGRAM, ".c", "-fsanitize=thread", "-g", "-O1", "-pthread")
    if "unexpected memory mapping" in run([program]).stderr:
        raise Skipped("this kernel's random addresses are not for this ThreadSanitizer")
    return [program]


PROGRAMS = {
    "openmpi": mpi("openmpi", "--oversubscribe"),
    "mpich": mpi("mpich"),
    "openmp": openmp, "python": python, "sqlite3": sqlite, "make": make, "nginx": nginx, "redis": redis,
    "asan-c": asan_c, "asan-c++": asan_cxx, "tsan-c": tsan_c,
}
# Where many samples are what finds the hazard: a handler that calls functions of the sanitizer's.
FREQUENCIES = {"tsan-c": ["--freq=5000"]}
# As root, and so that ranks do not fight for the one core that they are bound to.
MPI_ENVIRONMENT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                   "OMPI_MCA_hwloc_base_binding_policy": "none", "OMPI_MCA_mpi_yield_when_idle": "1",
                   "OMPI_MCA_btl_base_warn_component_unused": "0"}


def processes_of_session(session):
    """All processes of a session (setsid), by /proc."""
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", encoding="ascii", errors="replace") as stream:
                fields = stream.read().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == session:
            found.append(int(name))
    return found


def stacks_of(pids):
    """What gdb sees; for a person who reads a failed test."""
    if not shutil.which("gdb"):
        return "(no gdb)"
    text = ""
    for pid in pids:
        shown = subprocess.run(["gdb", "-q", "-batch", "-ex", "thread apply all bt 25", "-p", str(pid)],
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=60, check=False,
                               env=clean_environment())
        text += f"--- {pid}\n" + shown.stdout.decode(errors="replace")[-6000:]
    return text


def start(command, environment):
    """One start; Failed with stacks when it hangs. Output goes to pipes that children may keep open,
    so the end of the program is waited for, not theirs."""
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, env=environment, start_new_session=True)
    try:
        stdout, stderr = process.communicate(timeout=HANG_SECONDS)
    except subprocess.TimeoutExpired:
        pids = processes_of_session(process.pid)
        text = stacks_of(pids)
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        process.communicate()
        raise Failed(f"hang: still running after {HANG_SECONDS} s\n{text}") from None
    return process.returncode, stdout, stderr


class Startups:
    def __init__(self, kymo, name, count, scratch):
        self.kymo, self.name, self.count, self.scratch = kymo, name, count, scratch
        self.command = PROGRAMS[name](scratch)
        self.plain = {**clean_environment(), **MPI_ENVIRONMENT}
        self.bare = None
        self.profiled = None

    def run_bare(self):
        self.bare = start(self.command, self.plain)
        expect(self.bare[0] == 0, f"status {self.bare[0]}: {self.bare[2][-500:]!r}")

    def check(self, seen, which):
        status, stdout, stderr = seen
        expect(status == self.bare[0],
               f"start {which}: status {status}, bare {self.bare[0]}\n{stderr[-1500:].decode(errors='replace')}")
        expect(stdout == self.bare[1], f"start {which}: output {stdout[-300:]!r}, bare {self.bare[1][-300:]!r}")

    def launch(self, directory, command):
        return start([self.kymo.path, "sample", "-q", "-o", directory, "--time-output=off", *EVERYTHING,
                      *FREQUENCIES.get(self.name, ()), "--format=json", "--"] + command, self.plain)

    def through_kymo(self):
        for number in range(3):
            directory = self.scratch.path(f"result-{number}")
            seen = self.launch(directory, self.command)
            self.check(seen, number)
            executables = " ".join(process["executable"] for process in Result(directory).processes())
            program = os.path.basename(os.path.realpath(shutil.which(self.command[0])))
            expect(re.search(rf"\b{re.escape(program)}", executables), f"no {program} among {executables}")
            if self.name.startswith(("openmpi", "mpich")):
                expect(executables.count("/program") >= 2, f"ranks: {executables}")

    def again_and_again(self):
        """The environment that kymo gives to programs, taken from one of them."""
        session = self.scratch.path("session")
        status, stdout, stderr = self.launch(session, ["env", "-0"])
        expect(status == 0, stderr)
        environment = dict(item.split("=", 1) for item in stdout.decode().split("\0") if "=" in item)
        expect("libkymo" in environment["LD_PRELOAD"], environment["LD_PRELOAD"])
        for first in range(0, self.count, BATCH):
            self.batch(range(first, min(first + BATCH, self.count)), environment)
            for file in os.listdir(environment["KYMO_SPOOL_DIRECTORY"]):
                os.unlink(os.path.join(environment["KYMO_SPOOL_DIRECTORY"], file))

    def one_of_many(self, environment, number):
        """In a temporary directory of its own: runs of Open MPI make and remove one that is common to
        the user's runs, and fail when they meet there."""
        place = self.scratch.path(f"tmp-{number}")
        os.mkdir(place)
        try:
            return start(self.command, {**environment, "TMPDIR": place})
        finally:
            shutil.rmtree(place, ignore_errors=True)

    def batch(self, numbers, environment):
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            starts = {pool.submit(self.one_of_many, environment, number): number for number in numbers}
            try:
                for ended in concurrent.futures.as_completed(starts):
                    self.check(ended.result(), starts[ended])
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise
        left = os.listdir(environment["KYMO_SPOOL_DIRECTORY"])
        expect(len(left) >= len(numbers), f"{len(left)} spool files of {len(numbers)} starts")


def main():
    if sys.argv[1] == "--list":
        print("\n".join(PROGRAMS))
        return
    kymo, name = Kymo(sys.argv[1]), sys.argv[2]
    count = int(sys.argv[sys.argv.index("--count") + 1]) if "--count" in sys.argv else 25
    tap = Tap()
    with Scratch() as scratch:
        try:
            startups = Startups(kymo, name, count, scratch)
        except Skipped as reason:
            print(f"1..0 # SKIP {reason}")
            return
        if tap.point(f"{name} bare", startups.run_bare):
            tap.point(f"{name} through kymo", startups.through_kymo)
            tap.point(f"{name} {count} times", startups.again_and_again)
    tap.finish()


main()
