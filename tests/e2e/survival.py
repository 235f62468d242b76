#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""What is left when things go wrong around kymo: the program killed in the middle, kymo itself
killed, no room on the disk, nowhere to write, results damaged afterwards.

usage: survival.py KYMO PROGRAM-DIRECTORY     (TAP)
"""
import glob
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys

from harness import (Kymo, Result, Scratch, Skipped, Tap, clean_environment, cpu_seconds, expect, is_alive, run,
                     wait_until)
from spool import headers


class Survival:
    """Each public method is one test."""

    def __init__(self, kymo, programs, scratch):
        self.kymo, self.programs, self.scratch = kymo, programs, scratch

    def program(self, *words):
        return [os.path.join(self.programs, words[0]), *words[1:]]

    def child_of(self, pid):
        def child():
            with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as stream:
                return [int(word) for word in stream.read().split()]
        return wait_until(child, "kymo started no program")[0]

    def killed_in_the_middle(self):
        """SIGKILL after about a second: nearly a second of samples, status 137."""
        directory = self.scratch.path("killed")
        process = subprocess.Popen(
            [self.kymo.path, "sample", "-q", "-o", directory, "--time-output=off", "--"] +
            self.program("truth", "random", "1", "20", "20"), env=clean_environment(),
            stdout=subprocess.DEVNULL)
        child = self.child_of(process.pid)
        wait_until(lambda: cpu_seconds(child) > 0.9, "the program does not run")
        used = main_thread_seconds(child)
        os.kill(child, signal.SIGKILL)
        status = process.wait(60)
        expect(status == -signal.SIGKILL, f"status {status}")
        covered = Result(directory).profile().total("cpu") / 1e9
        expect(covered >= used - 0.06, f"{covered:.3f} s of {used:.3f} s are in the profile")

    def killed_while_calls_are_recorded(self):
        """SIGKILL at any moment: every chunk that was ever begun is there, though they move meanwhile."""
        for trial in range(6):
            directory = self.scratch.path(f"calls-{trial}")
            process = subprocess.Popen(
                [self.kymo.path, "instrument", "-q", "--output", directory, "--time-output=off", "--format=text", "--",
                 "/usr/bin/python3", "-c", "while True: hex(7)"], env=clean_environment())
            child = self.child_of(process.pid)
            wait_until(lambda: cpu_seconds(child) > 1.2 + 0.03 * trial, "the program does not run")
            os.kill(child, signal.SIGKILL)
            expect(process.wait(60) == -signal.SIGKILL, f"status {process.returncode}")
            data = read_file(glob.glob(os.path.join(directory, "spool", "*.spool"))[0])
            chunks = list(headers(data))
            begun = {sequence for _, _, _, sequence in chunks if sequence}
            large = [sequence for _, size, _, sequence in chunks if size == 65536 and sequence]
            # which of them move depends on how soon the background thread comes to run
            expect(len(large) > 1024 and max(large[:-1024]) > min(large[1024:]) + 1024,
                   f"all of {len(large)} chunks are where they were begun")
            missing = set(range(1, max(begun))) - begun
            expect(len(missing) <= 1, f"of {max(begun)} chunks {len(missing)} are missing")

    def the_newest_are_kept_at_the_limit(self):
        """A run that records more than SPOOL_LIMIT: the file stays below it, the last function has all of its
        time, the first is gone, and the summary says how much was overwritten."""
        limit = 512 << 10
        directory = self.scratch.path("limit")
        code = ("import time, threading, zlib\n"
                "def first(end):\n    while time.thread_time() < end: pow(3, 70)\n"
                "def last(end):\n    while time.thread_time() < end: zlib.compress(bytes(range(256)) * 4096)\n"
                "def both():\n    first(2.5); last(4.0)\n"
                "thread = threading.Thread(target=both); thread.start(); thread.join()")
        ended = self.kymo.sample(["/usr/bin/python3", "-c", code], directory, "--freq=5000",
                                 f"--spool-limit={limit}", quiet=False)
        expect(ended.status == 0, f"status {ended.status}\n{ended.stderr}")
        spools = glob.glob(os.path.join(directory, "spool", "*.spool"))
        expect(spools and all(os.path.getsize(path) <= limit for path in spools), f"sizes of {spools}")
        process = Result(directory).processes()[0]
        counted, left = process["samples_counted_by_process"], process["samples"]
        expect(0 < left < counted, f"{left} of {counted} samples are left")
        expect(process["records"]["overwritten_bytes"] > limit / 4, f"{process['records']}")
        text = ended.stdout + ended.stderr.encode()
        expect(b"newest records only" in text, "the summary does not say what was overwritten")
        expect(f"{left:,} are left".encode() in text, f"the summary does not say that {left} are left")
        shares = Result(directory).inclusive_shares()
        expect(shares.get("deflate", 0) > 0.1, f"deflate has {shares.get('deflate')} of what is left")
        expect(not any("not walked" in name or name == "[unknown]" for name in shares if shares[name] > 0.02),
               "frames lost their modules with the oldest records")

    def kymo_killed(self):
        """kymo dies: the program goes on and ends well; report still reads what is there."""
        directory = self.scratch.path("orphan")
        output = self.scratch.path("orphan.out")
        with open(output, "wb") as stream:
            process = subprocess.Popen(
                [self.kymo.path, "sample", "-q", "-o", directory, "--time-output=off", "--"] +
                self.program("truth", "random", "1", "1", "1"), env=clean_environment(), stdout=stream)
        child = self.child_of(process.pid)
        wait_until(lambda: cpu_seconds(child) > 0.3, "the program does not run")
        process.kill()
        process.wait()
        wait_until(lambda: not is_alive(child), "the program did not finish")
        with open(output, "rb") as stream:
            expect(b"work_a" in stream.read(), "the program did not finish")
        report = self.kymo.report(directory, "--format=text")
        expect(report.status == 0, f"report: status {report.status}\n{report.stderr}")
        expect(b"work_a" in report.stdout, "the report lacks work_a")

    def terminated(self):
        """SIGTERM to kymo reaches the program; results are written."""
        directory = self.scratch.path("terminated")
        process = subprocess.Popen(
            [self.kymo.path, "sample", "-q", "-o", directory, "--time-output=off", "--"] +
            self.program("truth", "random", "1", "20", "20"), env=clean_environment(),
            stdout=subprocess.DEVNULL)
        child = self.child_of(process.pid)
        wait_until(lambda: cpu_seconds(child) > 0.5, "the program does not run")
        process.terminate()
        expect(process.wait(60) == -signal.SIGTERM, f"status {process.returncode}")
        expect(Result(directory).samples() > 100, "hardly any samples")

    def file_size_limit(self):
        """RLIMIT_FSIZE from outside: the program must not die of SIGXFSZ in our name."""
        directory = self.scratch.path("fsize")

        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (40960, 40960))
        ended = self.kymo.sample(self.program("truth", "random", "2", "1"), directory, preexec=limit)
        expect(ended.status == 0, f"status {ended.status}\n{ended.stderr}")
        expect(b"work_a" in ended.stdout, "the program's output is missing")

    def file_size_limit_from_the_start(self):
        """No room for kymo's own first file either: the program runs, kymo says why it is alone, and what
        SIGXFSZ does in the program is up to who started kymo."""
        program = ["sh", "-c", "grep SigIgn /proc/self/status; exit 3"]
        for is_ignored in False, True:
            def limit():
                signal.signal(signal.SIGXFSZ, signal.SIG_IGN if is_ignored else signal.SIG_DFL)
                resource.setrlimit(resource.RLIMIT_FSIZE, (512, 512))
            bare = run(program, preexec=limit)
            for command in "sample", "instrument", "run":
                place = self.scratch.path(f"first-{command}-{is_ignored}")
                ended = run([self.kymo.path, command, "-q", "--output", place, "--"] + program, preexec=limit)
                expect(ended.status == 3, f"{command}: status {ended.status}\n{ended.stderr}")
                expect(ended.stdout == bare.stdout, f"{command}: {ended.stdout}, and bare {bare.stdout}")
                expect(command == "run" or
                       re.fullmatch("kymo: error: .*File too large; the program runs unprofiled\n", ended.stderr),
                       f"{command}: {ended.stderr!r}")

    def few_descriptors(self):
        """Not even a process can be made: the program runs in kymo's place, and one line says so."""
        program = ["sh", "-c", "echo ran; exit 3"]

        def limit():
            resource.setrlimit(resource.RLIMIT_NOFILE, (4, 4))
        for command in "sample", "instrument", "causal":
            line = [self.kymo.path, command, "-q", "--output", self.scratch.path(f"few-{command}")]
            ended = run(line + ["--"] + program, preexec=limit)
            expect((ended.status, ended.stdout) == (3, b"ran\n"), f"{command}: {ended}")
            expect(re.fullmatch("kymo: error: .*: Too many open files; the program runs unprofiled\n", ended.stderr),
                   f"{command}: {ended.stderr!r}")
            ended = run(line + ["--strict", "--"] + program, preexec=limit)
            expect((ended.status, ended.stdout) == (125, b""), f"{command}: {ended}")

    def file_size_limit_of_reports(self):
        """A report that has no room is an error, and no half of it is left."""
        directory = self.scratch.path("limited")
        expect(self.kymo.sample(self.program("ends", "exit"), directory).status == 3, "no results")
        for output in "report", "report/":
            ended = self.kymo.report(directory, "--format=report", "-o", self.scratch.path(output),
                                     preexec=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)))
            expect(ended.status == 125 and "File too large" in ended.stderr, f"{ended.status}\n{ended.stderr}")
            left = [name for name in glob.glob(self.scratch.path(output) + "*") if os.path.isfile(name)]
            expect(not left, f"left behind: {left}")

    def address_space_limit(self):
        """RLIMIT_AS with room for the program but not for kymo's tables: it runs, kymo says so."""
        program = " ".join(self.program("ends", "exit"))
        ended = self.kymo.sample(["bash", "-c", f"ulimit -v 90000; exec {program}"],
                                 self.scratch.path("space"), quiet=False)
        bare = run(self.program("ends", "exit"))
        expect(ended.status == bare.status, f"status {ended.status}\n{ended.stderr}")
        expect(ended.stdout == bare.stdout, "the program's output is missing")
        expect("ulimit -v" in ended.stderr, f"nothing said about the limit: {ended.stderr!r}")

    def full_disk(self):
        """A file system of 512 KB: the program runs, drops are counted, kymo says so."""
        if os.getuid() != 0:
            raise Skipped("needs root for a small file system")
        place = self.scratch.path("small")
        os.mkdir(place)
        mounted = run(["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", place])
        if mounted.status != 0:
            raise Skipped(f"cannot mount: {mounted.stderr.strip()}")
        try:
            ended = self.kymo.sample(self.program("truth", "random", "4", "2"),
                                     os.path.join(place, "results"), "--freq=10000", quiet=False)
            expect(ended.status == 0, f"status {ended.status}\n{ended.stderr}")
            expect(b"work_a" in ended.stdout, "the program's output is missing")
            expect("kymo" in ended.stderr and
                   ("space" in ended.stderr.lower() or "full" in ended.stderr.lower()),
                   f"nothing said about the full disk: {ended.stderr!r}")
        finally:
            run(["umount", "-l", place])

    def quiet_losses(self):
        """-q says nothing of the run, but how much of it was lost, and nothing where nothing was."""
        for limit, is_lost in ("64K", True), ("0", False):
            place = self.scratch.path(f"quiet-{limit}")
            ended = self.kymo.sample(self.program("truth", "random", "4", "2"), place, "--freq=10000",
                                     f"--spool-limit={limit}")
            losses = Result(place).json("metadata.json")["losses"]
            said = re.findall(r"error: the results are not complete: ([\d,]+) records dropped at the spool's size limit",
                              ended.stderr)
            expect(ended.status == 0, f"status {ended.status}\n{ended.stderr}")
            expect([int(count.replace(",", "")) for count in said] == ([losses["memory_limit"]] if is_lost else []),
                   f"{limit}: {losses} is told as {ended.stderr!r}")
            expect(any(losses.values()) or "not complete" not in ended.stderr, ended.stderr)

    def unwritable_output(self):
        """Nowhere to write: one line, the program runs and keeps its status; --strict refuses."""
        place = "/proc/kymo-results"
        ended = self.kymo.sample(self.program("ends", "exit"), place, quiet=False)
        expect(ended.status == 3, f"status {ended.status}\n{ended.stderr}")
        expect(len(ended.stderr.splitlines()) == 1 and place in ended.stderr,
               f"not one clear line: {ended.stderr!r}")
        strict = self.kymo.sample(self.program("ends", "exit"), place, "--strict")
        expect(strict.status == 125, f"--strict: status {strict.status}")
        expect(b"begins" not in strict.stdout, "--strict: the program ran")

    def never_overwrites(self):
        """A result directory that holds a result is left alone."""
        directory = self.scratch.path("twice")
        for _ in range(2):
            ended = self.kymo.sample(self.program("ends", "return"), directory)
            expect(ended.status == 6, f"status {ended.status}\n{ended.stderr}")
        found = [name for name in os.listdir(self.scratch.directory) if name.startswith("twice")]
        expect(len(found) >= 2 or len(os.listdir(directory)) >= 2, f"results: {found}")

    def damaged_results(self):
        """Truncated, flipped, emptied: report says so in a line or shows the rest; never crashes."""
        directory = self.scratch.path("damaged")
        ended = self.kymo.sample(self.program("truth", "random", "2", "0.5"), directory)
        expect(ended.status == 0, ended.stderr)
        draw = random.Random(1)
        spool = os.path.join(directory, "spool")
        files = [os.path.join(spool, name) for name in os.listdir(spool)]
        expect(files, "no spool files are kept")
        originals = {path: read_file(path) for path in files}
        for trial in range(40):
            for path, data in originals.items():
                write_file(path, damage(data, trial, draw))
            report = self.kymo.report(directory, "--format=json", timeout=60)
            expect(report.status >= 0 and report.status not in (134, 139),
                   f"trial {trial}: killed by signal, status {report.status}\n{report.stderr}")
            if report.status != 0:
                expect(report.stderr.startswith("kymo"), f"trial {trial}: {report.stderr!r}")

    def unreadable_directory(self):
        """No such result, not a result, an empty directory: one line and a status."""
        empty = self.scratch.path("empty")
        os.mkdir(empty)
        for place in ("/nonexistent", "/etc/passwd", empty):
            report = self.kymo.report(place)
            expect(0 < report.status < 128, f"{place}: status {report.status}")
            expect(len(report.stderr.splitlines()) == 1, f"{place}: {report.stderr!r}")
            expect(report.stdout == b"", f"{place}: wrote {report.stdout[:100]!r}")

    def in_memory(self):
        """USE_TEMPORARY_FILES=off: the same results, nothing left behind."""
        directory = self.scratch.path("memory")
        before = set(os.listdir("/dev/shm"))
        ended = self.kymo.sample(self.program("truth", "random", "2", "0.5", "1"), directory,
                                 "--use-temporary-files=off")
        expect(ended.status == 0, ended.stderr)
        expect(Result(directory).samples() > 100, "hardly any samples")
        left = [name for name in set(os.listdir("/dev/shm")) - before if "kymo" in name]
        expect(not left, f"left behind: {left}")


def main_thread_seconds(pid):
    with open(f"/proc/{pid}/schedstat", encoding="ascii") as stream:
        return int(stream.read().split()[0]) / 1e9


def read_file(path):
    with open(path, "rb") as stream:
        return stream.read()


def write_file(path, data):
    with open(path, "wb") as stream:
        stream.write(data)


def damage(data, trial, draw):
    if trial == 0:
        return b""
    if trial == 1:
        return bytes(len(data))
    if trial % 3 == 0:
        return data[:draw.randrange(len(data))]
    changed = bytearray(data)
    for _ in range(1 + trial):
        limit = 4096 * 3 if trial % 2 else len(changed)
        changed[draw.randrange(min(limit, len(changed)))] = draw.randrange(256)
    return bytes(changed)


def main():
    kymo, tap = Kymo(sys.argv[1]), Tap()
    if not shutil.which("mount"):
        tap.note("mount is missing")
    with Scratch() as scratch:
        survival = Survival(kymo, os.path.abspath(sys.argv[2]), scratch)
        for name in sorted(vars(Survival)):
            if name.startswith("_") or name in ("program", "child_of"):
                continue
            tap.point(name.replace("_", " "), getattr(survival, name))
    tap.finish()


main()
