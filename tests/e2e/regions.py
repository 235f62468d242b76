#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""Regions of real programs, with everything switched on, against counts that others make: strace and
ltrace, the servers' own statistics, the programs' own counters. The programs do what they do alone.

usage: regions.py KYMO     (TAP)
"""
import collections
import glob
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time

import spool
from harness import (Kymo, Result, Scratch, Skipped, Tap, clean_environment, expect, require_tool,
                     require_tracer, run)

EVERYTHING = ["--realtime", "--cputime=on"] + [f"--trace-{name}=on" for name in (
    "thread-locks", "thread-rw-locks", "thread-spin-locks", "thread-barriers", "thread-join",
    "thread-conditions", "threads", "processes", "sleep", "io", "loader", "memory")]

PYTHON_PROGRAM = """
import os, sys, threading, time
def work(number):
    fd = os.open(os.path.join(sys.argv[1], f"file-{number}"), os.O_RDWR | os.O_CREAT | os.O_TRUNC)
    for i in range(20 + number):
        os.pwrite(fd, b"x" * (i + 1), i * 100)
        os.fsync(fd)
        os.pread(fd, i + 1, i * 100)
        time.sleep(0.001)
    os.close(fd)
threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print("done")
"""

LOCKS_PROGRAM = """
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#define THREADS 4
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rw = PTHREAD_RWLOCK_INITIALIZER;
static pthread_barrier_t barrier;
static sem_t semaphore;
static void *work(void *rounds)
{
	for (long i = 0; i < (long)rounds; i++) {
		pthread_mutex_lock(&lock);
		pthread_mutex_unlock(&lock);
		if (i % 10 == 0) {
			pthread_rwlock_rdlock(&rw);
			pthread_rwlock_unlock(&rw);
			sem_post(&semaphore);
			sem_wait(&semaphore);
		}
		if (i % 100 == 0)
			pthread_barrier_wait(&barrier);
	}
	return NULL;
}
int main(int argc, char **argv)
{
	pthread_t threads[THREADS];
	(void)argc;
	pthread_barrier_init(&barrier, NULL, THREADS);
	sem_init(&semaphore, 0, 0);
	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, work, (void *)atol(argv[1]));
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	usleep(1000);
	puts("done");
	return 0;
}
"""
LOCKS_CALLS = ("pthread_mutex_lock", "pthread_mutex_unlock", "pthread_rwlock_rdlock",
               "pthread_rwlock_unlock", "sem_wait", "pthread_barrier_wait", "pthread_create",
               "pthread_join", "usleep")

SQL = ("create table t(a integer primary key, b text); "
       "insert into t(b) select 'row' from generate_series(1, 400); ")


def calls(directory, *names):
    """[(name, values, process)] of finished calls and marks of all threads of a session."""
    found = []
    threads = [thread for path in glob.glob(os.path.join(directory, "spool", "*.spool"))
               for thread in spool.regions_of_file(path).items()]
    for (pid, _), events in threads:
        open_calls = []
        for event in events:
            if event.what in ("whole", "mark"):
                found.append((event.name, event.values, pid))
            elif event.what == "begin":
                open_calls.append(event)
            elif event.what == "end" and open_calls:
                begun = open_calls.pop()
                found.append((begun.name, {**begun.values, **event.values}, pid))
    return [call for call in found if not names or call[0] in names]


def counts(directory, *names):
    return collections.Counter(name for name, _, _ in calls(directory, *names))


STRACE_LINE = re.compile(r"^(\d+) +(\w+)\((.*)\) += (-?\d+)")
STRACE_BEGUN = re.compile(r"^(\d+) +(\w+)\((.*) <unfinished \.\.\.>$")
STRACE_RESUMED = re.compile(r"^(\d+) +<\.\.\. (\w+) resumed>(.*)\) += (-?\d+)")


def strace_calls(path):
    """[(thread, name, arguments, result)] of an strace -f -o file."""
    found, pending = [], {}
    with open(path, encoding="utf-8", errors="replace") as stream:
        for line in stream:
            begun, resumed = STRACE_BEGUN.match(line), STRACE_RESUMED.match(line)
            if begun:
                pending[begun[1]] = begun[3]
            elif resumed:
                found.append((int(resumed[1]), resumed[2], pending.get(resumed[1], "") + resumed[3],
                              int(resumed[4])))
            elif match := STRACE_LINE.match(line):
                found.append((int(match[1]), match[2], match[3], int(match[4])))
    return found


class Server:
    """A server in the foreground under kymo (and strace), stopped by SIGTERM."""

    def __init__(self, command, ready):
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, env=clean_environment(),
                                        start_new_session=True)
        deadline = time.monotonic() + 30
        while not ready():
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                raise AssertionError(f"the server did not start: {self.process.stdout.read()[-2000:]!r}")
            time.sleep(0.02)

    def stop(self, pid):
        os.kill(pid, signal.SIGTERM)
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError("the server did not end") from None
        return self.process.returncode

    def kill(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()


def accepts(path):
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(path) == 0


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Regions:
    """Each public method is one test."""

    def __init__(self, kymo, scratch):
        self.kymo, self.scratch, self.runs = kymo, scratch, 0

    def _directory(self):
        self.runs += 1
        return self.scratch.path(f"result-{self.runs}")

    def _sample_line(self, directory, command, *options):
        return [self.kymo.path, "sample", "-q", "-o", directory, "--time-output=off", "--format=json",
                *EVERYTHING, *options, "--"] + command

    def _sample(self, command, *options, **how):
        directory = self._directory()
        ended = run(self._sample_line(directory, command, *options), **how)
        expect(ended.status == 0, f"status {ended.status}\n{ended.stderr[-2000:]}")
        self._nothing_lost(directory)
        return directory, ended

    @staticmethod
    def _nothing_lost(directory):
        """Of regions; a sample may be lost where the machine is short of processors."""
        losses = Result(directory).metadata()["losses"]
        lost = {reason: count for reason, count in losses.items()
                if count and (reason.startswith(("region", "profile", "wrapper", "torn")) or
                              reason in ("disk_full", "memory_limit", "unreadable_files"))}
        expect(not lost, f"losses: {lost}")

    @staticmethod
    def _equal(what, ours, theirs):
        expect(ours == theirs, f"{what}: kymo {sorted((ours - theirs).items())[:10]} too many, "
               f"{sorted((theirs - ours).items())[:10]} too few")

    def locks_as_ltrace_counts(self):
        require_tool("gcc")
        require_tracer("ltrace")
        program = self.scratch.path("locks")
        with open(program + ".c", "w", encoding="ascii") as stream:
            stream.write(LOCKS_PROGRAM)
        built = run(["gcc", "-O1", "-no-pie", "-z", "lazy", "-pthread", "-o", program, program + ".c"])
        expect(built.status == 0, built.stderr)
        directory, ended = self._sample([program, "300"])
        expect(ended.stdout == b"done\n", f"output {ended.stdout!r}")
        ours = counts(directory, *LOCKS_CALLS)
        traced = run(["ltrace", "-f", "-c", "-e", "+".join(LOCKS_CALLS), "-o", self.scratch.path("ltrace"),
                      program, "300"], timeout=200)
        expect(traced.status == 0, traced.stderr)
        theirs = collections.Counter()
        with open(self.scratch.path("ltrace"), encoding="utf-8") as stream:
            for line in stream:
                fields = line.split()
                if len(fields) == 5 and fields[4] in LOCKS_CALLS:
                    theirs[fields[4]] = int(fields[3])
        self._equal("calls", ours, theirs)
        expect(ours["pthread_mutex_lock"] == 1200 and ours["sem_wait"] == 120, f"{ours}")

    def python_threads(self):
        """Against the program's own numbers, and strace's of the same run without kymo."""
        require_tracer("strace")
        files = self.scratch.path("files")
        os.mkdir(files)
        command = ["/usr/bin/python3", "-c", PYTHON_PROGRAM, files]
        directory, ended = self._sample(command)
        expect(ended.stdout == b"done\n", f"output {ended.stdout!r}")
        rounds = sum(20 + number for number in range(6))
        ours = counts(directory, "pwrite", "fsync", "pread", "pthread_create", "clock_nanosleep")
        self._equal("calls", ours, collections.Counter(
            {"pwrite": rounds, "fsync": rounds, "pread": rounds, "pthread_create": 6,
             "clock_nanosleep": rounds}))
        size = sum(values["bytes"] for name, values, _ in calls(directory, "pwrite"))
        expect(size == sum(sum(range(1, 21 + number)) for number in range(6)), f"{size} bytes written")
        trace = self.scratch.path("strace")
        run(["strace", "-f", "-y", "-o", trace, "-e", "trace=pwrite64,pread64,fsync"] + command)
        theirs = collections.Counter(name.replace("64", "") for _, name, arguments, _ in strace_calls(trace)
                                     if files in arguments)
        self._equal("calls by strace", counts(directory, "pwrite", "fsync", "pread"), theirs)

    def sqlite_on_disk(self):
        """Calls that a library makes through a table of function pointers."""
        require_tool("sqlite3")
        require_tracer("strace")
        trace = self.scratch.path("strace")

        def command(name):
            return ["sqlite3", self.scratch.path(name), SQL + "select count(*) from t;"]
        probe = run(["sqlite3", ":memory:", SQL + "select count(*) from t;"])
        if probe.status != 0:
            raise Skipped("sqlite3 lacks generate_series")
        run(["strace", "-f", "-y", "-o", trace, "-e", "trace=pwrite64,pread64,fsync,fdatasync"] +
            command("bare.db"))
        theirs = collections.Counter((name.replace("64", ""), result)
                                     for _, name, arguments, result in strace_calls(trace)
                                     if self.scratch.directory in arguments)
        directory, _ = self._sample(command("kymo.db"))
        ours = collections.Counter((name, values.get("bytes", values.get("result")))
                                   for name, values, _ in calls(directory, "pwrite", "pread", "fsync",
                                                                "fdatasync"))
        self._equal("calls and results", ours, theirs)
        expect(sum(ours.values()) > 5, f"{ours}")

    def make(self):
        """Processes made and waited for, all over a build."""
        require_tool("make", "gcc")
        require_tracer("strace")
        project = self.scratch.path("project")
        os.mkdir(project)
        for name in "abcdef":
            with open(os.path.join(project, name + ".c"), "w", encoding="ascii") as stream:
                stream.write(f"int {name}(void)\n{{\n\treturn 1;\n}}\n")
        with open(os.path.join(project, "Makefile"), "w", encoding="ascii") as stream:
            stream.write("libp.a: a.o b.o c.o d.o e.o f.o\n\trm -f $@; ar rcD $@ $^\n"
                         "clean:\n\trm -f *.o *.a\n")
        trace = self.scratch.path("strace")
        run(["strace", "-f", "-o", trace, "-e", "trace=clone,clone3,fork,vfork"] +
            ["make", "-s", "-j4", "-C", project])
        theirs = sum(1 for _, name, arguments, result in strace_calls(trace)
                     if result > 0 and "CLONE_THREAD" not in arguments)
        run(["make", "-s", "-C", project, "clean"])
        directory, _ = self._sample(["make", "-s", "-j4", "-C", project])
        expect(os.path.exists(os.path.join(project, "libp.a")), "nothing was built")
        ours = counts(directory, "fork", "vfork", "posix_spawn", "posix_spawnp", "system", "popen")
        expect(sum(ours.values()) == theirs, f"kymo: {dict(ours)}, strace: {theirs} processes made")

    def _redis(self, *prefix):
        """One run under load; the server's own statistics and the result directory."""
        require_tool("redis-server", "redis-benchmark", "redis-cli")
        place, directory = self.scratch.path(f"redis-{self.runs}"), self._directory()
        os.mkdir(place)
        path = os.path.join(place, "socket")
        server = Server(list(prefix) + self._sample_line(
            directory, ["redis-server", "--port", "0", "--unixsocket", path, "--save", "", "--dir", place,
                        "--appendonly", "yes", "--appendfsync", "always"]), lambda: accepts(path))
        try:
            load = run(["redis-benchmark", "-s", path, "-n", "2000", "-c", "8", "-t", "set,get,lpush",
                        "--csv"], timeout=100)
            info = run(["redis-cli", "-s", path, "info"]).stdout.decode()
            pid = int(re.search(r"process_id:(\d+)", info)[1])
            status = server.stop(pid)
        except BaseException:
            server.kill()
            raise
        expect(load.status == 0 and load.stdout.count(b"\n") == 4, f"{load.stdout!r} {load.stderr!r}")
        rates = [float(line.split(b",")[1].strip(b'"')) for line in load.stdout.splitlines()[1:]]
        expect(min(rates) > 50, f"requests a second: {rates}")
        expect(status == 0, f"status {status}")
        self._nothing_lost(directory)
        return directory, pid, dict(re.findall(r"(\w+):(\d+)\r", info))

    @staticmethod
    def _of_clients(mine):
        """Calls on descriptors between their accept and their close, and accepts."""
        clients, found = set(), []
        for name, values in mine:
            if name in ("accept", "accept4"):
                found.append((name, values))
                clients.add(values.get("result"))
            elif values.get("fd", -1) in clients - {-1}:
                found.append((name, values))
                if name == "close":
                    clients.discard(values["fd"])
        return found

    def redis_statistics(self):
        """Bytes and connections as the server itself counts them."""
        directory, pid, info = self._redis()
        mine = self._of_clients([(name, values) for name, values, process in calls(directory)
                                 if process == pid])
        accepted = sum(1 for name, values in mine if name == "accept4" and values.get("result", -1) >= 0)
        expect(accepted == int(info["total_connections_received"]),
               f"{accepted} accepted, the server says {info['total_connections_received']}")
        received = sum(max(values.get("bytes", 0), 0) for name, values in mine if name == "read")
        expect(received == int(info["total_net_input_bytes"]),
               f"{received} bytes read, the server says {info['total_net_input_bytes']}")
        expect(Result(directory).samples() > 20, "hardly any samples")

    def redis_as_strace_counts(self):
        """Every call with its descriptor and result, of the same run."""
        require_tracer("strace")
        trace = self.scratch.path("strace")
        directory, pid, _ = self._redis("strace", "-f", "-o", trace, "-e",
                                        "trace=epoll_wait,accept4,read,write,fdatasync,close")
        mine = [(name, values) for name, values, process in calls(directory) if process == pid]
        theirs_all = [(name, self._fields(name, arguments, result))
                      for thread, name, arguments, result in strace_calls(trace) if thread == pid]
        for what, pick in (("of clients", self._of_clients),
                           ("others", lambda all_: [call for call in all_
                                                    if call[0] in ("epoll_wait", "fdatasync")])):
            ours = collections.Counter(self._key(*call) for call in pick(mine))
            theirs = collections.Counter(self._key(*call) for call in pick(theirs_all))
            expect(sum(ours.values()) > 100, f"{what}: {ours}")
            self._equal(f"calls {what} and results", ours, theirs)

    @staticmethod
    def _fields(name, arguments, result):
        number = re.match(r"\d+", arguments)
        key = {"epoll_wait": "ready", "read": "bytes", "write": "bytes"}.get(name, "result")
        return {"fd": int(number[0]) if number else -1, key: result}

    @staticmethod
    def _key(name, values):
        result = values.get("bytes", values.get("ready", values.get("result", -1)))
        return name, None if name == "epoll_wait" else values.get("fd"), result

    def nginx(self):
        """Connections and requests as the server counts them, and as ab sees them."""
        require_tool("nginx", "ab")
        place, directory, port = self.scratch.path("nginx"), self._directory(), free_port()
        os.mkdir(place)
        os.chmod(place, 0o755)
        with open(os.path.join(place, "index.html"), "w", encoding="ascii") as stream:
            stream.write("x" * 5000)
        with open(os.path.join(place, "nginx.conf"), "w", encoding="ascii") as stream:
            stream.write(
                f"daemon off; worker_processes 1; pid {place}/pid; error_log {place}/error.log;\n"
                "events {}\nhttp { sendfile on; "
                f"access_log {place}/access.log; client_body_temp_path {place}/b; proxy_temp_path {place}/p;\n"
                f"fastcgi_temp_path {place}/f; uwsgi_temp_path {place}/u; scgi_temp_path {place}/s;\n"
                f"server {{ listen 127.0.0.1:{port}; root {place}; location /status {{ stub_status; }} }} }}\n")
        url = f"http://127.0.0.1:{port}"
        server = Server(self._sample_line(directory, ["nginx", "-c", f"{place}/nginx.conf", "-p", place]),
                        lambda: run(["ab", "-n", "1", f"{url}/index.html"]).status == 0)
        try:
            load = run(["ab", "-n", "2000", "-c", "8", f"{url}/index.html"], timeout=100)
            status_page = run(["/usr/bin/python3", "-c", "import urllib.request, sys; "
                               f"print(urllib.request.urlopen('{url}/status').read().decode())"])
            with open(f"{place}/pid", encoding="ascii") as stream:
                status = server.stop(int(stream.read()))
        except BaseException:
            server.kill()
            raise
        text = load.stdout.decode()
        expect("Complete requests:      2000" in text and "Failed requests:        0" in text, text)
        expect(float(re.search(r"Requests per second: +([\d.]+)", text)[1]) > 50, text)
        expect(status == 0, f"status {status}")
        self._nothing_lost(directory)
        accepted, _, requests = map(int, re.search(rb"(\d+) (\d+) (\d+)", status_page.stdout).groups())
        ours = calls(directory, "accept4", "writev", "sendfile")
        seen = sum(1 for name, values, _ in ours if name == "accept4" and values.get("result", -1) >= 0)
        expect(seen == accepted, f"{seen} accepted, the server says {accepted}")
        # Each answer with a file: its head by writev, the file by sendfile.
        files = sum(1 for name, values, _ in ours if name == "sendfile" and values["bytes"] == 5000)
        expect(files == requests - 1, f"{files} files sent, the server says {requests} requests")
        with open(f"{place}/access.log", encoding="ascii") as stream:
            lines = stream.read().count("\n")
        expect(lines == requests, f"{lines} lines of log, {requests} requests")

    def profile_agrees_with_trace(self):
        """The counts of the profile are those of the events, for a program that forks."""
        directory, _ = self._sample(["sh", "-c", "for i in 1 2 3 4 5; do /bin/echo $i; done | sort"])
        result = Result(directory)
        profile = result.json("profile.json")
        names = {(region["process"], region["id"]): region["name"] for region in profile["regions"]}
        by_profile = collections.Counter()
        for node in profile["region_nodes"]:
            if node.get("region") is not None:
                by_profile[names.get((node.get("process"), node["region"]), node["region"])] += node["count"]
        by_events = collections.Counter(name for name, _, _ in calls(directory))
        expect(sum(by_profile.values()) > 0, json.dumps(profile["region_nodes"][:3]))
        for name in ("read", "write", "close"):
            expect(abs(by_profile[name] - by_events[name]) == 0,
                   f"{name}: {by_profile[name]} in the profile, {by_events[name]} in the trace")


def main():
    kymo, tap = Kymo(sys.argv[1]), Tap()
    chosen = sys.argv[2:]
    with Scratch() as scratch:
        regions = Regions(kymo, scratch)
        for name in sorted(vars(Regions)):
            if not name.startswith("_") and (not chosen or name in chosen):
                tap.point(name.replace("_", " "), getattr(regions, name))
    tap.finish()


main()
