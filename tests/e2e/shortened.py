# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""Somebody shortens kymo's files under a running program (a cleaner, copytruncate, a second tool): the program runs on
as bare, and what is missing is said. shortened.py KYMO PROGRAMS"""
import glob
import json
import os
import shutil
import subprocess
import sys

from harness import Kymo, Result, Scratch, Tap, clean_environment, cpu_seconds, expect, run, wait_until

SAID = "somebody shortened a spool file"


class Shortened:
    def __init__(self, kymo, scratch):
        self.kymo, self.scratch = kymo, scratch
        self.program = os.path.join(scratch.directory, "busy")
        source = self.program + ".c"
        with open(source, "w", encoding="ascii") as stream:
            stream.write("""
                #include <stdio.h>
                #include <stdlib.h>
                #include <time.h>
                __attribute__((noinline)) long work(long n) { volatile long s = 0; while (n--) s += n; return s; }
                int main(int argc, char **argv)
                {
                    double end = argc > 1 ? atof(argv[1]) : 2;
                    while (clock() < end * CLOCKS_PER_SEC)
                        work(10000);
                    puts("end");
                    return 7;
                }
                """)
        built = run(["cc", "-O1", "-g", "-o", self.program, source])
        expect(built.status == 0, built.stderr)

    def _command(self, *words):
        return [self.kymo.path, *words, "--", self.program, "2"]

    def _cut(self, directory, patterns):
        """Cuts what matches to nothing again and again, while the program runs; returns how it ended."""
        def files():
            return [name for pattern in patterns
                    for name in glob.glob(os.path.join(directory, "**", pattern), recursive=True)]
        seen = set()

        def cut():
            for name in files():
                try:
                    os.truncate(name, 0)
                    seen.add(os.path.basename(name))
                except OSError:
                    seen.add(os.path.basename(name))
        return cut, seen

    def _run(self, name, patterns, *words):
        directory = self.scratch.path(name)
        cut, seen = self._cut(directory, patterns)
        process = subprocess.Popen(self._command(*words, "--output", directory, "--time-output=off"),
                                   env=clean_environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        child = wait_until(lambda: self._child_of(process.pid), "no program")
        for moment in (0.5, 1.0):
            wait_until(lambda m=moment: process.poll() is not None or cpu_of(child) > m, "it does not run")
            expect(process.poll() is None, "it ended early")
            cut()
        stdout, stderr = process.communicate(timeout=100)
        expect(seen, f"no file of {patterns}")
        expect(process.returncode == 7 and stdout == b"end\n", f"{process.returncode} {stdout} {stderr[-2000:]}")
        return Result(directory), stderr.decode()

    def _child_of(self, pid):
        """The program itself, which kymo has become the parent of."""
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as stream:
            for word in stream.read().split():
                try:
                    if os.readlink(f"/proc/{word}/exe") == self.program:
                        return int(word)
                except OSError:
                    pass
        return 0

    def spool_file_of_sample(self):
        result, text = self._run("sample", ["*.spool"], "sample", "--format=pprof,json")
        expect(SAID in text, text)
        # What was in memory is written again: only full chunks are missing, which the summary counts.
        share = result.inclusive_shares().get("work", 0)
        expect(share > 0.9 or (share > 0.2 and "samples are lost: the recording was cut short" in text),
               f"work is {share}: {text}")
        covered = result.profile().total("cpu") / 1e9
        expect(1.8 < covered < 2.3, f"{covered} s of 2 s")

    def spool_file_of_instrument(self):
        """Its calls are written in place and in many chunks: what is missing is said, and no more is there than was."""
        _, text = self._run("instrument", ["*.spool"], "instrument", "--format=text")
        expect(SAID in text, text)

    def spool_file_in_real_time(self):
        _, text = self._run("real", ["*.spool"], "sample", "--realtime", "--format=text")
        expect(SAID in text, text)

    def file_of_experiments(self):
        self._run("causal", ["control", "*.spool"], "causal")

    def spool_file_of_attach(self):
        directory = self.scratch.path("attach")
        process = subprocess.Popen([self.program, "4"], env=clean_environment(), stdout=subprocess.PIPE)
        attached = subprocess.Popen([self.kymo.path, "attach", "-p", str(process.pid), "--output", directory,
                                     "--time-output=off", "--format=text"], env=clean_environment(),
                                    stderr=subprocess.PIPE)
        cut, seen = self._cut(directory, ["*.spool"])
        wait_until(lambda: glob.glob(os.path.join(directory, "spool", "*.spool")), "no spool file")
        used = cpu_of(process.pid)
        wait_until(lambda: cpu_of(process.pid) > used + 0.5, "it does not run")
        cut()
        stdout, _ = process.communicate(timeout=100)
        stderr = attached.communicate(timeout=100)[1].decode()
        expect(seen and process.returncode == 7 and stdout == b"end\n", f"{process.returncode} {stderr}")
        expect(attached.returncode == 0 and SAID in stderr, f"{attached.returncode} {stderr}")

    def asked_from_outside_afterwards(self):
        """`kymo ctl` is answered by a process whose file was cut."""
        directory = self.scratch.path("asked")
        cut, _ = self._cut(directory, ["*.spool"])
        process = subprocess.Popen([self.kymo.path, "sample", "-q", "-o", directory, "--time-output=off", "--",
                                    self.program, "3"], env=clean_environment(), stdout=subprocess.DEVNULL)
        child = wait_until(lambda: self._child_of(process.pid), "no program")
        wait_until(lambda: cpu_of(child) > 0.3, "it does not run")
        cut()
        wait_until(lambda: run([self.kymo.path, "ctl", str(child), "status"]).status == 0, "no answer")
        for command in ("stop", "start", "flush"):
            ended = run([self.kymo.path, "ctl", str(child), command])
            expect(ended.status == 0, f"{command}: {ended}")
        expect(process.wait(60) == 7, f"{process.returncode}")

    def cached_unwind_tables(self):
        cache = self.scratch.path("cache")
        os.mkdir(cache, 0o700)
        how = {"environment": {"XDG_CACHE_HOME": cache}}
        self.kymo.sample([self.program, "0.1"], self.scratch.path("fill"), **how)
        tables = glob.glob(os.path.join(cache, "kymo", "unwind", "*.unwind"))
        expect(tables, "no tables")
        process = subprocess.Popen([self.kymo.path, "sample", "-q", "-o", self.scratch.path("tables"),
                                    "--time-output=off", "--", self.program, "1.5"],
                                   env=clean_environment() | how["environment"], stdout=subprocess.DEVNULL)
        child = wait_until(lambda: self._child_of(process.pid), "no program")
        wait_until(lambda: cpu_of(child) > 0.3, "it does not run")
        for name in tables:
            os.chmod(name, 0o600)
            os.truncate(name, 0)
        expect(process.wait(60) == 7, f"{process.returncode}")
        expect(Result(self.scratch.path("tables")).inclusive_shares().get("main", 0) > 0.9, "stacks are cut")


    def incomplete_copy(self):
        """Whatever shows numbers of the result says beside them how many samples are lost."""
        whole, cut = self.scratch.path("whole"), self.scratch.path("incomplete copy")
        expect(self.kymo.sample([self.program, "0.5"], whole, "--format", "json").status == 7, "sample")
        shutil.copytree(whole, cut)
        spool, = glob.glob(os.path.join(cut, "spool", "*.spool"))
        original, = glob.glob(os.path.join(whole, "spool", "*.spool"))
        for pages in range(2, 40):  # until there is a part of the samples
            shutil.copyfile(original, spool)
            os.truncate(spool, pages * 4096 - 500)
            says = self._read(cut, "report", "--format", "json", "-o", "-")
            process, = json.loads(says.stdout)["processes"]
            lost = process["samples_counted_by_process"] - process["samples"]
            if process["samples"] > 0:
                break
        expect(lost > 0 and process["samples"] > 0, f"not a part: {process}")
        said = f"{lost:,} samples are lost: the recording was cut short"
        expect(said in says.stderr, says.stderr)
        for words in (("report",), ("top", "--plain"), ("report", "--format", "gecko", "-o", "-"),
                      ("report", "--format", "otlp", "-o", "-"), ("report", "--format", "text", "-o", "-")):
            ended = self._read(cut, *words)
            expect(said in " ".join(ended.stdout.decode(errors="replace").split()) or "text" in words, f"{words}: {ended}")
            expect(said in ended.stderr or len(words) < 3, f"{words}: {ended.stderr}")
        ended = self._read(cut, "report", "--format", "speedscope", "-o", "-")
        expect("the result is not complete" in json.loads(ended.stdout)["name"], ended.stdout[:300])
        ended = self._read(cut, "annotate", "--format", "json")
        expect(said in ended.stderr and any(said in text for text in json.loads(ended.stdout)["incomplete"]), f"{ended}")
        ended = run([self.kymo.path, "diff", whole, cut])
        expect(said in ended.stderr and ended.status == 0, f"{ended}")
        ended = run([self.kymo.path, "sql", cut, "SELECT 1"])
        expect(said in ended.stderr and ended.status == 0, f"{ended}")
        ended = self._read(whole, "report", "--format", "otlp", "-o", "-")
        expect("lost" not in ended.stderr and b"kymo.incomplete" not in ended.stdout, f"{ended.stderr}")

    def _read(self, directory, command, *words):
        ended = run([self.kymo.path, command, *words, directory])
        expect(ended.status == 0, f"{command} {words}: {ended}")
        return ended


def cpu_of(pid):
    try:
        return cpu_seconds(pid)
    except OSError:
        return 1e9


def main():
    tap = Tap()
    with Scratch() as scratch:
        shortened = Shortened(Kymo(sys.argv[1]), scratch)
        for name in sorted(name for name in vars(Shortened) if not name.startswith("_")):
            tap.point(name.replace("_", " "), getattr(shortened, name))
    tap.finish()


main()
