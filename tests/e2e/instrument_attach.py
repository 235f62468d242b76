#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""kymo instrument -p: processes that run are instrumented, and later are as they were; and libraries
that are opened while a program runs.

usage: instrument_attach.py KYMO PROGRAM-DIRECTORY [CYCLES]     (TAP)
"""
import collections
import os
import re
import shutil
import socket
import statistics
import subprocess
import sys
import time

from attach import Target, is_recording, trace_of
from harness import (Kymo, Scratch, Tap, clean_environment, expect, require_tool, run, wait_until)

LATER_CALLS = 100  # of each time that opens_later opens its library
OWN_CALLS = 1000
COUNTED = """
#include <stdio.h>
__attribute__((noinline)) int counted(int n) { return n * 3 + (n >> 2) * 5 + n %% 7; }
int main(void) { int sum = 0; for (int i = 0; i < %d; i++) sum += counted(i); printf("%%d\\n", sum); }
""" % OWN_CALLS
# Begins before libkymo does, for it is behind it in LD_PRELOAD.
TAKES_PLACE = """
#define _GNU_SOURCE
#include <stdint.h>
#include <sys/auxv.h>
#include <sys/mman.h>
__attribute__((constructor)) static void take(void)
{
	char *program = (char *)(getauxval(AT_PHDR) & ~(uintptr_t)4095);
	mmap(program - (1ul << 30), 1ul << 26, PROT_NONE,
	     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
}
"""
RELOCATED = """
__attribute__((noinline)) int other(int n) { __asm__ volatile(""); return n; }
int relocated(int n)
{
	int (*call)(int);
	__asm__("movabs $local_other, %0" : "=r"(call));
	return call(n) + 1;
}
__asm__(".set local_other, other");
"""
PLUGIN = "__attribute__((noinline)) int later(int n) { __asm__ volatile(\"\"); return 2 * n; }"
UNLOADS = """
#include <dlfcn.h>
#include <unistd.h>
int main(int count, char **arguments)
{
	for (;;) {
		void *library = dlopen(arguments[1], RTLD_NOW);
		int (*later)(int) = (int (*)(int))dlsym(library, "later");
		for (int i = 0; i < 100; i++)
			later(i);
		usleep(100);
		dlclose(library);
		usleep(100);
	}
}
"""
# As V8 does: a function looks up where it will return to, through whoever told where to ask.
TELLS = """
#include <stdint.h>
#include <stdio.h>
#ifdef TELLS
static uintptr_t (*resolver)(uintptr_t);
void set(uintptr_t (*to)(uintptr_t)) __asm__("_ZN2v82V832SetReturnAddressLocationResolverEPFmmE");
void set(uintptr_t (*to)(uintptr_t)) { resolver = to; }
#endif
static unsigned plain, found;
int caller(void);
__attribute__((noinline)) static void look(uintptr_t *frame)
{
	uintptr_t *slot = frame + 1, *place = slot;
#ifdef TELLS
	if (resolver)
		place = (uintptr_t *)resolver((uintptr_t)slot);
#endif
	plain += place == slot;
	found += *place - (uintptr_t)caller < 64;
}
int called(void) __asm__("_ZN2v88internal9Builtin_XEPNS0_7IsolateE");
__attribute__((noinline)) int called(void)
{
	look(__builtin_frame_address(0));
	__asm__ volatile("");
	return 7;
}
__attribute__((noinline)) int caller(void) { return called() + 1; }
int main(void)
{
	for (int i = 0; i < %d; i++)
		if (caller() != 8)
			return 1;
	printf("plain %%u found %%u\\n", plain, found);
}
""" % OWN_CALLS


def code_of(pid, name):
    """[(bytes in memory, bytes in the file)] of what is mapped executable of that file."""
    parts = []
    with open(f"/proc/{pid}/maps", encoding="utf-8", errors="replace") as stream:
        lines = [line.split() for line in stream]
    for line in lines:
        if len(line) < 6 or "x" not in line[1] or os.path.basename(line[5]) != name:
            continue
        start, end = (int(word, 16) for word in line[0].split("-"))
        with open(f"/proc/{pid}/mem", "rb") as memory, open(line[5], "rb") as file:
            memory.seek(start)
            file.seek(int(line[2], 16))
            original = file.read(end - start)
            parts.append((memory.read(end - start)[:len(original)], original))
    return parts


class InstrumentAttach:
    def __init__(self, kymo, programs, scratch, cycles):
        self._kymo, self._programs, self._scratch, self._cycles = kymo, programs, scratch, cycles
        self._count = 0
        self._stops = []  # ms that the process stood still, a number for each time

    def _program(self, *words):
        return [os.path.join(self._programs, words[0]), *words[1:]]

    def _line(self, pid, *options):
        self._count += 1
        directory = self._scratch.path(f"result-{self._count}")
        return directory, [self._kymo.path, "instrument", "-p", str(pid), "--output", directory,
                           "--time-output=off", *options]

    def _attach(self, pid, seconds, *options):
        """{function: calls}"""
        directory, line = self._line(pid, "-d", str(seconds), *options)
        ended = run(line, timeout=120)
        expect(ended.status == 0, f"status {ended.status}: {ended.stderr}")
        stood = re.search(r"was stopped for (?:at most )?([\d.]+) ms", ended.stderr)
        expect(stood, f"{ended.stderr}")
        self._stops.append(float(stood.group(1)))
        calls = calls_in(directory)
        shutil.rmtree(directory)
        return calls

    def _attach_until(self, pid, seconds, enough):
        """The calls of as many times as it takes on a busy machine."""
        calls = collections.Counter()
        for _ in range(20):
            calls.update(self._attach(pid, seconds))
            if enough(calls):
                break
        return calls

    @staticmethod
    def _attached(line):
        """kymo, once it has attached."""
        kymo = subprocess.Popen(line, env=clean_environment(), stderr=subprocess.PIPE)
        told = b""
        while b"was stopped for" not in told:
            got = kymo.stderr.readline()
            expect(got, f"kymo ended: {told}")
            told += got
        return kymo

    def _is_as_it_was(self, pid, name):
        parts = code_of(pid, name)
        expect(parts, f"no code of {name}")
        for now, original in parts:
            expect(now == original, f"{name}: code is not what it was")

    def _make(self, name, source, *options):
        require_tool("gcc")
        path = self._scratch.path(name)
        with open(path + ".c", "w", encoding="ascii") as file:
            file.write(source)
        ended = run(["gcc", "-O1", path + ".c", *options, "-o", path])
        expect(ended.status == 0, f"{ended}")
        return path

    def server(self):
        """A server with 32 busy threads loses no request and is as it was, each time."""
        with Target(self._program("busy_server")) as server:
            before = trace_of(server.pid)
            for cycle in range(self._cycles):
                if cycle and cycle % 100 == 0:
                    Tap.note(f"{cycle} cycles, {max(self._stops)} ms at most")
                names = ("answer", "leaf", "recurse", "compare", "leap")
                calls = self._attach_until(server.pid, 0.1, lambda calls: all(calls[name] for name in names))
                for name in names:
                    expect(calls.get(name, 0) > 0, f"no calls of {name}: {calls}")
                self._is_as_it_was(server.pid, "busy_server")
                expect(server.process.poll() is None, "the server ended")
            after = trace_of(server.pid)
            for key in ("handlers", "ignored", "blocked", "threads", "spool"):
                expect(before[key] == after[key], f"{key}: {before[key]}, {after[key]}")
            status, output = server.end()
        stops = sorted(self._stops)
        Tap.note(f"{self._cycles} cycles, attached to {len(stops)} times; stood still for "
                 f"{statistics.median(stops)} ms in the middle, {stops[-1]} ms at most")
        expect((status, output) == (0, "busy_server: OK\n"), f"{status}: {output}")

    def kymo_is_killed(self):
        """The process goes on, and can be attached to again."""
        with Target(self._program("busy_server")) as server:
            _, line = self._line(server.pid)
            with self._attached(line) as kymo:
                time.sleep(0.2)
                kymo.kill()
            # the library looks once a second whether kymo is there
            wait_until(lambda: not is_recording(server.pid), "it is still recording")
            expect(server.process.poll() is None, "the server ended")
            calls = self._attach_until(server.pid, 0.2, lambda calls: calls["answer"])
            expect(calls.get("answer", 0) > 0, f"{calls}")
            self._is_as_it_was(server.pid, "busy_server")
            status, output = server.end()
        expect((status, output) == (0, "busy_server: OK\n"), f"{status}: {output}")

    def python(self):
        """7,000 functions, recursion through C, several times."""
        code = ("import time, threading, sys\n"
                "go = True\n"
                "def work():\n"
                "    while go: sum(i * i for i in range(1000)); time.sleep(0.001)\n"
                "threads = [threading.Thread(target=work) for _ in range(4)]\n"
                "[t.start() for t in threads]\n"
                "sys.stdin.readline()\n"
                "go = False\n"
                "[t.join() for t in threads]\n"
                "print('done')\n")
        with Target(["/usr/bin/python3", "-c", code], stdin=subprocess.PIPE) as target:
            for _ in range(3):
                calls = self._attach_until(target.pid, 0.2, lambda calls: sum(calls.values()) > 1000)
                expect(sum(calls.values()) > 1000, f"{calls}")
                self._is_as_it_was(target.pid, os.path.basename(
                    os.readlink(f"/proc/{target.pid}/exe")))
            output, _ = target.process.communicate(b"\n", timeout=40)
        expect((target.process.returncode, output) == (0, b"done\n"), f"{output}")

    def redis(self):
        require_tool("redis-server", "redis-benchmark")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = str(probe.getsockname()[1])
        with Target(["redis-server", "--port", port, "--save", "", "--bind", "127.0.0.1"]) as server:
            with Target(["redis-benchmark", "-p", port, "-n", "100000000", "-c", "20", "-q", "-t",
                         "set,get"], stdout=subprocess.DEVNULL) as load:
                time.sleep(0.3)
                for _ in range(3):
                    expect(self._attach_until(server.pid, 0.1, lambda calls: calls), "no calls")
                    expect(load.process.poll() is None, "the load ended")
            answer = run(["redis-cli", "-p", port, "ping"])
            expect(answer.stdout == b"PONG\n", f"{answer}")
            self._is_as_it_was(server.pid, os.path.basename(
                os.readlink(f"/proc/{server.pid}/exe")))
            status, output = server.end()
        expect(status == 0, f"status {status}: {output[-500:]}")

    def debugged(self):
        """Only one can trace a process."""
        require_tool("strace")
        with Target(self._program("busy_server")) as server:
            with Target(["strace", "-f", "-o", "/dev/null", "-e", "trace=none", "-p",
                         str(server.pid)]):
                _, line = self._line(server.pid, "-d", "0.1")
                ended = run(line)
                expect(ended.status == 125 and "traced" in ended.stderr, f"{ended}")
            status, output = server.end()
        expect((status, output) == (0, "busy_server: OK\n"), f"{status}: {output}")

    def opened_later(self):
        """Also what runs when a library is opened; closed and opened again; and while attached."""
        directory = self._scratch.path("later")
        ended = run([self._kymo.path, "instrument", "-q", "--output", directory,
                     "--time-output=off", "--", *self._program("opens_later", "5")])
        expect((ended.status, ended.stdout) == (0, b"opens_later: OK\n"), f"{ended}")
        counts = sorted(calls_in(directory).values())
        for count in (5 * LATER_CALLS, 5 * LATER_CALLS + 5, 5):
            expect(count in counts, f"{counts}")
        with Target(self._program("opens_later", "5", "4000")) as target:
            directory, line = self._line(target.pid)
            ended = run(line, timeout=60)
            expect(ended.status == 0, f"{ended}")
            output, _ = target.process.communicate(timeout=40)
        expect((target.process.returncode, output) == (0, b"opens_later: OK\n"), f"{output}")
        counts = sorted(calls_in(directory).values())
        expect(5 * LATER_CALLS + 5 in counts, f"{counts}")

    def unloaded(self):
        """Where a library is unloaded nothing stays patched: no word of it, and the others are put back."""
        library = self._make("libunloaded.so", PLUGIN, "-shared", "-fPIC")
        program = self._make("unloads", UNLOADS)
        for _ in range(10):  # one that is unloaded while kymo attaches fails that time
            with Target([program, library]) as target:
                _, line = self._line(target.pid, "-q", "-d", "0.1", "-I", "later|main")
                ended = run(line, timeout=60)
                expect("stay patched" not in ended.stderr, f"{ended}")
                if ended.status == 0:
                    self._is_as_it_was(target.pid, "unloads")

    def place_taken(self):
        """The program has something where stubs would be; and no build-id says which file it is."""
        taker = self._make("taker.so", TAKES_PLACE, "-shared", "-fPIC")
        program = self._make("counted", COUNTED, "-Wl,--build-id=none")
        for preload in ("", taker):
            for wrapper in ([], ["setarch", "-R"]):
                self._count += 1
                directory = self._scratch.path(f"place-{self._count}")
                ended = run([*wrapper, self._kymo.path, "instrument", "-q", "--output", directory,
                             "--time-output=off", "-I", "counted", "--", program],
                            environment={"LD_PRELOAD": preload} if preload else {})
                expect(ended.status == 0, f"{ended}")
                expect(calls_in(directory).get("counted") == OWN_CALLS,
                       f"{preload} {wrapper}: {calls_in(directory)}, {ended}")

    def told_where_addresses_are(self):
        """Functions that V8's code calls are recorded if V8 can be told where return addresses are, and left alone
        if not."""
        for flag, recorded in (("-DTELLS", OWN_CALLS), ("-DNONE", None)):
            program = self._make("tells" + flag, TELLS, "-fno-omit-frame-pointer", flag)
            self._count += 1
            directory = self._scratch.path(f"tells-{self._count}")
            ended = run([self._kymo.path, "instrument", "-q", "--output", directory, "--time-output=off",
                         "-I", "Builtin_X|caller", "-E", "look", "--", program])
            expected = f"plain {0 if recorded else OWN_CALLS} found {OWN_CALLS}\n"
            expect((ended.status, ended.stdout.decode()) == (0, expected), f"{flag}: {ended}")
            calls = [count for name, count in calls_in(directory).items() if "Builtin_X" in name]
            expect(calls == ([recorded] if recorded else []), f"{flag}: {calls_in(directory)}")

    def text_relocations(self):
        """Code that the loader changes is left alone, and that is said."""
        library = self._make("librelocated.so", RELOCATED, "-shared", "-fPIC", "-Wl,-z,notext")
        program = self._make("relocates", "int relocated(int); int main(void) { return relocated(6); }",
                             library, "-Wl,-rpath," + os.path.dirname(library))
        directory = self._scratch.path("relocated")
        ended = run([self._kymo.path, "instrument", "--output", directory, "--time-output=off",
                     "-I", "relocated|main", "--", program])
        expect(ended.status == 7, f"{ended}")
        expect("relocated" not in calls_in(directory), f"{calls_in(directory)}")
        with open(os.path.join(directory, "instrumentation", "excluded.json"),
                  encoding="utf-8") as file:
            expect("text relocations" in file.read(), f"{os.listdir(directory)}")


def calls_in(directory):
    """{function: calls}, from the text profile."""
    calls = {}
    with open(os.path.join(directory, "profile.txt"), encoding="utf-8") as stream:
        text = stream.read()
    part = re.search(r"^REGIONS: trip_count$(.*?)^(REGIONS|[A-Z]+:)", text + "\nEND:\n",
                     re.MULTILINE | re.DOTALL)
    expect(part, f"no calls in {directory}")
    for line in part.group(1).splitlines():
        row = re.match(r"\s+(\S+)\s+(\d+)\s+\d+ trip_count", line)
        if row:
            calls[row.group(1)] = calls.get(row.group(1), 0) + int(row.group(2))
    return calls


def main():
    kymo, tap = Kymo(sys.argv[1]), Tap()
    cycles = int(sys.argv[3]) if len(sys.argv) > 3 else 10
    only = sys.argv[4:]
    with Scratch() as scratch:
        tests = InstrumentAttach(kymo, os.path.abspath(sys.argv[2]), scratch, cycles)
        for name in vars(InstrumentAttach):
            if not name.startswith("_") and (not only or name in only):
                tap.point(name.replace("_", " "), getattr(tests, name))
    tap.finish()


main()
