#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""kymo top: what it shows of running, attached, ended and killed programs, in logs and on a terminal.

  top.py KYMO
"""
import fcntl
import glob
import json
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import termios
import time

from harness import Kymo, Scratch, Tap, cpu_seconds, expect, is_alive, require_tool, run, wait_until

SOURCE = r"""
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
static volatile double sum;
static double cpu(clockid_t clock) { struct timespec t; clock_gettime(clock, &t); return (double)t.tv_sec + (double)t.tv_nsec * 1e-9; }
__attribute__((noinline)) static void compute(void) { for (long i = 0; i < 100000; i++) sum += (double)i; }
static void *worker(void *x) { double until = *(double *)x; while (cpu(CLOCK_MONOTONIC) < until) compute(); return x; }
int main(int argc, char **argv) {
	pthread_t t;
	double until = cpu(CLOCK_MONOTONIC) + atof(argv[1]);
	pthread_create(&t, 0, worker, &until);
	pthread_join(t, 0);
	printf("%.3f\n", cpu(CLOCK_PROCESS_CPUTIME_ID));
	return argc > 2 ? atoi(argv[2]) : 0;
}
"""

# Threads that end before a sample of 10 ms is due.
SHORT_THREADS = r"""
#include <pthread.h>
#include <time.h>
static void *run(void *x) {
	struct timespec t;
	do clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t); while (t.tv_nsec < 2000000);
	return x;
}
int main(void) {
	pthread_t thread;
	for (int i = 0; i < 300; i++) { pthread_create(&thread, 0, run, 0); pthread_join(thread, 0); }
	return 0;
}
"""


class Look:
    """One block of plain output."""

    def __init__(self, text):
        head = re.match(r"kymo top  (?:([0-9.]+) (\S+) of )?([0-9.]+) (\S+)  CPU ([0-9.]+) %  (\d+) threads?  (.*)\n", text)
        expect(head, f"no head: {text[:300]!r}")
        units = {"ms": 1e-3, "s": 1, "us": 1e-6, "ns": 1e-9}
        self.after, self.cpu, self.is_whole = float(head[3]) * units[head[4]], float(head[5]), not head[1]
        self.length = self.after if self.is_whole else float(head[1]) * units[head[2]]
        functions, _, threads = text.partition("\n\n")[2].partition("\n\n")
        self.functions = {row[2]: (float(row[0]), float(row[1])) for row in
                          re.findall(r"^ *([0-9.]+) % +([0-9.]+) %  (.+)$", functions, re.M)}
        self.threads = re.findall(r"^ *([0-9.]+) %.*  (\S.*)$", threads, re.M)


def looks(text):
    return [Look("kymo top  " + block) for block in text.decode().split("kymo top  ")[1:]]


class Top:
    def __init__(self, kymo, scratch):
        self.kymo, self.scratch = kymo, scratch
        self.program = scratch.path("program")
        with open(self.program + ".c", "w", encoding="utf-8") as stream:
            stream.write(SOURCE)
        built = run(["cc", "-O1", "-g", self.program + ".c", "-o", self.program, "-pthread"])
        expect(built.status == 0, f"{built}")
        self.temporary = scratch.path("temporary")
        os.mkdir(self.temporary)

    def top(self, *arguments, status=0, **how):
        ended = run([self.kymo.path, "top", *arguments], environment={"TMPDIR": self.temporary}, **how)
        expect(ended.status == status, f"{arguments}: {ended}")
        expect(not glob.glob(self.temporary + "/*"), f"{os.listdir(self.temporary)} is left")
        return ended

    @staticmethod
    def last_screen(text):
        return re.sub(rb"\033\[[0-9;?]*[A-Za-z]", b"", text.rpartition(b"\033[?1049l")[2])

    def program_of_its_own(self):
        """The whole run has the CPU time that the program measured itself, which the other file says."""
        directory = self.scratch.path("kept")
        ended = self.top("--interval", "0.5", "-o", directory, "--", self.program, "2", "7", status=7)
        found = looks(ended.stdout)
        expect(len(found) >= 3 and found[-1].is_whole and not any(look.is_whole for look in found[:-1]), f"{ended.stdout}")
        with open(os.path.join(directory, "program-output.txt"), encoding="utf-8") as stream:
            wanted = float(stream.read())
        seen = found[-1].cpu / 100 * found[-1].length
        expect(abs(seen - wanted) <= 0.1 * wanted + 0.03, f"CPU {seen} s, the program's own {wanted} s")
        expect(any("compute (program)" in look.functions for look in found[:-1]), f"{ended.stdout}")
        own, total = found[-1].functions["compute (program)"]
        expect(own > 0.8 * found[-1].cpu and total >= own, f"{found[-1].functions}")
        expect(os.path.exists(os.path.join(directory, "profile.json")), "the result is not kept")

    def intervals(self):
        """The looks' intervals follow each other, and their parts make the whole."""
        found = looks(self.top("--interval", "0.4", "--", self.program, "2").stdout)
        parts, whole = found[:-1], found[-1]
        for before, look in zip(parts, parts[1:]):
            expect(abs(before.after + look.length - look.after) <= 0.02, f"{before.after} + {look.length}, {look.after}")
        seen = sum(look.cpu * look.length for look in parts) / 100
        # what the last look does not have yet is in the whole
        expect(seen <= 1.05 * whole.cpu * whole.length / 100 + 0.02 and seen > 0.5 * whole.cpu * whole.length / 100,
               f"{seen} s in the intervals, {whole.cpu * whole.length / 100} s in all")

    def attached(self):
        with subprocess.Popen([self.program, "60"], stdout=subprocess.DEVNULL) as process:
            try:
                time.sleep(0.3)
                found = looks(self.top("-p", str(process.pid), "--count", "3", "--interval", "0.5").stdout)
                expect(len(found) == 4 and any("compute (program)" in look.functions for look in found), f"{len(found)} looks")
                before = cpu_seconds(process.pid)
                wait_until(lambda: cpu_seconds(process.pid) > before + 0.1, "the process does not go on")
            finally:
                process.send_signal(signal.SIGKILL)

    def being_written(self):
        directory = self.scratch.path("growing")
        with subprocess.Popen([self.kymo.path, "sample", "-q", "-o", directory, "--time-output=off", "--", self.program, "60"],
                              stdout=subprocess.DEVNULL) as process:
            try:
                wait_until(lambda: glob.glob(directory + "/spool/*"), "nothing is written")
                found = looks(self.top("--count", "3", "--interval", "0.5", directory).stdout)
                expect(len(found) == 4 and found[2].after > found[1].after > found[0].after, f"{[look.after for look in found]}")
                expect("compute (program)" in found[-1].functions, f"{found[-1].functions}")
            finally:
                process.terminate()

    def killed(self):
        """Nobody says that the program ended."""
        directory = self.scratch.path("killed")
        run([self.kymo.path, "sample", "-q", "-o", directory, "--time-output=off", "--", "sh", "-c",
             f"'{self.program}' 60 & sleep 0.7; kill -9 $!"])
        found = looks(self.top(directory, timeout=30).stdout)
        expect(len(found) == 1 and "compute (program)" in found[0].functions, f"{len(found)} looks")

    def ended(self):
        directory = self.scratch.path("ended")
        expect(self.kymo.sample([self.program, "1"], directory, "--format", "json", "--realtime").status == 0, "sample")
        look, = looks(self.top("--plain", directory, timeout=30).stdout)
        with open(os.path.join(directory, "profile.json"), encoding="utf-8") as stream:
            profile = json.load(stream)
        for function in [row for row in profile["functions"] if row["name"] in ("compute", "worker", "main")]:
            own, total = look.functions.get(f"{function['name']} (program)", (0, 0))
            if own == 0 and total == 0:
                continue
            for seen, wanted in ((own, function["self_ns"]), (total, function["inclusive_ns"])):
                expect(abs(seen - wanted / look.length / 1e7) <= 0.5, f"{function['name']}: {seen} %, {wanted} ns of {look.length} s")
        expect("compute (program)" in look.functions and look.threads, f"{look.functions}")

    def short_threads(self):
        """CPU time that no sample stands for counts for its thread, as it counts for [unsampled]."""
        program, directory = self.scratch.path("short"), self.scratch.path("short threads")
        with open(program + ".c", "w", encoding="utf-8") as stream:
            stream.write(SHORT_THREADS)
        built = run(["cc", "-O1", "-g", program + ".c", "-o", program, "-pthread"])
        expect(built.status == 0, f"{built}")
        expect(self.kymo.sample([program], directory, "--format", "json", "-f", "100").status == 0, "sample")
        look, = looks(self.top("--plain", directory).stdout)
        with open(os.path.join(directory, "profile.json"), encoding="utf-8") as stream:
            profile = json.load(stream)
        wanted = profile["totals"]["cpu_ns"] / 1e9
        unsampled, = [row["self_ns"] for row in profile["functions"] if row["name"] == "[unsampled]"]
        expect(unsampled > 0.2e9 * wanted, f"{unsampled} ns of {wanted} s are not sampled")
        seen = look.cpu * look.length / 100
        expect(abs(seen - wanted) <= 0.02 * wanted, f"CPU {seen} s, in profile.json {wanted} s")

    def terminal(self):
        """Keys, and the terminal as it was before."""
        process, screen = pty.fork()
        if process == 0:
            os.environ.update(TERM="xterm", TMPDIR=self.temporary)
            os.environ.pop("COLUMNS", None)
            os.execv(self.kymo.path, [self.kymo.path, "top", "--interval", "0.3", "--", self.program, "60"])
        fcntl.ioctl(screen, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 70, 0, 0))
        before = termios.tcgetattr(screen)
        text = self.read_until(screen, rb" of .*compute \(program\)")
        expect(b"\033[?1049h" in text and not termios.tcgetattr(screen)[3] & termios.ECHO, "no screen of its own")
        os.write(screen, b"a")
        self.read_until(screen, rb"kymo top  [0-9.]+ m?s  CPU")
        os.write(screen, b"t")
        text = self.read_until(screen, rb"worker \(program\)")
        lines = re.sub(rb"\033\[[0-9;?]*[A-Za-z]", b"", text.replace(b"\033[H", b"\r\n")).decode().splitlines()
        expect(max(map(len, lines)) <= 70, f"{max(lines, key=len)}")
        os.write(screen, b"q")
        text = self.read_until(screen, None)
        expect(b"\033[?1049l" in text and re.search(rb"^kymo top  [0-9.]+ m?s  CPU", self.last_screen(text)), f"{text[-600:]}")
        expect(termios.tcgetattr(screen)[3] == before[3], "the terminal is not as it was")
        status = os.waitpid(process, 0)[1]
        os.close(screen)
        expect(status == 0, f"status {status}")
        self.expect_nothing_left("60")

    def narrow_terminal(self):
        """No line is longer than the terminal: it would take two."""
        process, screen = pty.fork()
        if process == 0:
            os.environ.update(TERM="xterm", TMPDIR=self.temporary)
            os.environ.pop("COLUMNS", None)
            time.sleep(0.2)
            os.execv(self.kymo.path, [self.kymo.path, "top", "--realtime", "--interval", "0.3", "--", self.program, "60"])
        fcntl.ioctl(screen, termios.TIOCSWINSZ, struct.pack("HHHH", 12, 20, 0, 0))
        text = self.read_until(screen, rb"%  com.*CPU  thread")
        os.write(screen, b"q")
        text += self.read_until(screen, None)
        os.waitpid(process, 0)
        os.close(screen)
        text = re.sub(rb"\033\[(H|\?1049l)", b"\r\n", text)
        lines = re.sub(rb"\033\[[0-9;?]*[A-Za-z]", b"", text).decode().splitlines()
        expect(max(map(len, lines)) <= 20, f"{max(lines, key=len)!r}")
        expect(any(re.match(r" *[0-9.]+ %  com", line) for line in lines), f"{lines[-30:]}")

    def reader_that_goes(self):
        """As `kymo top -- PROGRAM | head -1`: the program ends, nothing is left."""
        with subprocess.Popen([self.kymo.path, "top", "--interval", "0.2", "--", self.program, "61"], stdout=subprocess.PIPE,
                              env={**os.environ, "TMPDIR": self.temporary},
                              preexec_fn=lambda: signal.signal(signal.SIGPIPE, signal.SIG_DFL)) as process:
            expect(process.stdout.readline().startswith(b"kymo top  "), "no head")
            process.stdout.close()
            expect(process.wait(timeout=40) == -signal.SIGPIPE, f"status {process.returncode}")
        self.expect_nothing_left("61")

    def killed_view(self):
        """Nothing runs on for a view that is gone."""
        with subprocess.Popen([self.kymo.path, "top", "--interval", "0.2", "--", self.program, "62"], stdout=subprocess.PIPE,
                              env={**os.environ, "TMPDIR": self.temporary}) as process:
            process.stdout.readline()
            process.kill()
        wait_until(lambda: not self.find_running("62"), "the program runs on")
        wait_until(lambda: not run(["pgrep", "-f", self.temporary]).stdout, "its kymo runs on")
        for left in glob.glob(self.temporary + "/*"):
            shutil.rmtree(left, ignore_errors=True)

    def signals(self):
        """The status says that a signal ended the program, and the program has the signals that it had."""
        for number in (signal.SIGKILL, signal.SIGSEGV, signal.SIGPIPE):
            self.top("--", "sh", "-c", f"kill -{int(number)} $$", status=128 + number)

    def find_running(self, seconds):
        running = run(["pgrep", "-f", f"^{self.program} {seconds}$"]).stdout.split()
        return [pid for pid in running if is_alive(int(pid))]

    def expect_nothing_left(self, seconds):
        expect(not self.find_running(seconds), f"{self.find_running(seconds)} is left")
        expect(not os.listdir(self.temporary), f"{os.listdir(self.temporary)}")

    @staticmethod
    def read_until(screen, wanted, seconds=40):
        """What comes up to the expression; None: to the end."""
        text, deadline = b"", time.monotonic() + seconds
        while wanted is None or not re.search(wanted, text, re.S):
            expect(time.monotonic() < deadline, f"{wanted} does not come: {text[-800:]}")
            if not select.select([screen], [], [], 0.2)[0]:
                if wanted is None and time.monotonic() > deadline - seconds + 3:
                    return text
                continue
            try:
                piece = os.read(screen, 65536)
            except OSError:
                piece = b""
            if not piece:
                return text
            text += piece
        return text

    def errors(self):
        ended = self.top("--", "/no/such/program", status=127)
        expect("/no/such/program" in ended.stderr and not ended.stdout, f"{ended}")
        for arguments in (("true",), ("true", "false"), ("./no-such-result",)):
            ended = self.top(*arguments, status=125)  # no program without --
            expect(not ended.stdout and ("cannot read results in" in ended.stderr or "one result only" in ended.stderr), f"{ended}")
        ended = self.top("-p", "4194304", status=125)
        expect("could not be sampled" in ended.stderr and "4194304" in ended.stderr, f"{ended}")
        for option, value in (("--interval", "0"), ("--count", "none"), ("--top", "0"), ("--pid", "x"), ("--freq", "fast")):
            ended = self.top(option, value, "--", "/bin/true", status=125)
            expect(option in ended.stderr, ended.stderr)
        ended = self.top(self.scratch.directory, status=125)
        expect("no kymo results" in ended.stderr or "not a result" in ended.stderr, ended.stderr)
        gone = self.scratch.path("gone")
        expect(self.kymo.sample(["/bin/true"], gone).status == 0, "sample")
        shutil.rmtree(gone + "/spool")
        began = time.monotonic()
        ended = self.top(gone, status=125)
        expect("/spool" in ended.stderr and "No such file" in ended.stderr and time.monotonic() - began < 15, f"{ended}")
        kept = self.scratch.path("others")
        os.makedirs(kept)
        with open(os.path.join(kept, "profile.json"), "w", encoding="utf-8") as stream:
            stream.write("of another run")
        ended = self.top("-o", kept, "--", "/bin/true", status=125)
        expect("--force overwrites it" in ended.stderr and os.listdir(kept) == ["profile.json"], f"{ended}")
        self.top("--force", "-o", kept, "--", "/bin/true")
        file = os.path.join(kept, "launch.json")
        ended = self.top("--force", "-o", file, "--", "/bin/true", status=125)
        expect("is not a directory" in ended.stderr and not ended.stdout and not glob.glob(file + "-*"), f"{ended}")
        ended = run([self.kymo.path, "sample", "--force", "-o", file, "--", "/bin/true"])
        expect("Not a directory" in ended.stderr and ended.status == 0 and not glob.glob(file + "-*"), f"{ended}")
        ended = self.top("-p", "1", "--", "/bin/true", status=125)
        expect("either --pid" in ended.stderr, ended.stderr)


def main():
    tap = Tap()
    require_tool("cc", "pgrep")
    with Scratch() as scratch:
        top = Top(Kymo(sys.argv[1]), scratch)
        for name, check in (("a program of its own", top.program_of_its_own), ("intervals", top.intervals), ("attached", top.attached),
                            ("a result that is being written", top.being_written), ("a killed program", top.killed),
                            ("an ended program", top.ended), ("short threads", top.short_threads), ("a terminal", top.terminal),
                            ("a narrow terminal", top.narrow_terminal), ("a reader that goes", top.reader_that_goes),
                            ("a killed view", top.killed_view), ("signals", top.signals), ("errors", top.errors)):
            tap.point(name, check)
    tap.finish()


if __name__ == "__main__":
    main()
