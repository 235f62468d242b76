#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""Functions and lines of Python in stacks: shares of a program with a known split.

usage: python_stacks.py KYMO     (TAP)
"""
import glob
import math
import os
import re
import signal
import subprocess
import sys
import time

from harness import Kymo, Result, Scratch, Skipped, Tap, clean_environment, expect, require_tool, run

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "python")
SPLIT = os.path.join(HERE, "split.py")
PYTHON = "/usr/bin/python3"
RATE = 2000
SHARES = {"alpha": 30, "Gamma.method": 20, "recurse": 10, "numbers": 15, "sort_many": 25}
OWN = re.compile(r"^(\S+) \(split\.py:([0-9]+)\)$")


def line_of(mark):
    with open(SPLIT, encoding="utf-8") as stream:
        return next(number for number, line in enumerate(stream, 1) if f"# line: {mark}" in line)


def python_frames(stack):
    """[(function, line)] of split.py, outermost first."""
    return [(match[1], int(match[2])) for match in map(OWN.match, stack) if match]


def check_share(name, share, samples, wanted):
    """Within two points or three standard deviations."""
    share *= 100
    bound = max(2, 300 * math.sqrt(wanted / 100 * (1 - wanted / 100) / samples))
    expect(abs(share - wanted) <= bound, f"{name}: {share:.1f} %, not {wanted} % within {bound:.1f}")


class Split:
    def __init__(self, kymo, scratch):
        self.kymo, self.scratch = kymo, scratch

    def profile(self, name, command, *options):
        directory = self.scratch.path(name)
        ended = self.kymo.sample(command, directory, f"--freq={RATE}", *options)
        expect(ended.status == 0 and ended.stdout == b"done\n", f"{ended}")
        return Result(directory)

    @staticmethod
    def check_functions(result):
        """By CPU time: samples come late in the kernel, and stand for more then."""
        sums, total, samples = dict.fromkeys(SHARES, 0), 0, 0
        for sample in result.profile().samples:
            names = {frame.function for frame in sample.stack if not frame.module}
            if "main" not in names:
                continue
            total += sample.values["cpu"]
            samples += sample.values["samples"]
            for name in names & set(SHARES):
                sums[name] += sample.values["cpu"]
        expect(samples > 200, f"{samples} samples below main()")
        for name, wanted in SHARES.items():
            check_share(name, sums[name] / total, samples, wanted)

    @staticmethod
    def check_lines(result):
        """Each function spends nearly all of its time at one line, or in what that calls."""
        expected = {"alpha": line_of("alpha"), "Gamma.method": line_of("method"),
                    "sort_many": line_of("sort_many")}
        at_line, total = dict.fromkeys(expected, 0), dict.fromkeys(expected, 0)
        for stack, weight in result.folded():
            for name, line in python_frames(stack):
                if name in expected:
                    total[name] += weight
                    at_line[name] += weight * (line == expected[name])
        for name, weight in at_line.items():
            expect(weight >= 0.9 * total[name], f"{name}: {weight} of {total[name]} at line {expected[name]}")

    @staticmethod
    def check_mixture(result):
        """Native frames stand between those of Python: sort_many calls sorted(), which calls key()."""
        seen = 0
        for stack, weight in result.folded():
            names = [frame.split(" ")[0] for frame in stack]
            if "key" in names:
                between = names[names.index("sort_many") + 1:names.index("key")]
                expect(between and not any("Eval" in name for name in between), ";".join(stack))
                seen += weight
        expect(seen > 10, "no samples in key()")
        loops = sum(weight for stack, weight in result.folded() if any("EvalFrameDefault" in f for f in stack))
        whole = sum(weight for _, weight in result.folded())
        expect(loops <= 0.05 * whole, f"{loops} of {whole} samples show the interpreter's loop")

    @staticmethod
    def check_losses(result):
        for process in result.processes():
            lost = process.get("losses", {})
            expect(not lost.get("interpreted_code"), f"{lost}")
            expect(lost.get("interpreted_frames", 0) <= 0.002 * process["samples"] + 2, f"{lost}")

    def one_thread(self):
        result = self.profile("one", [PYTHON, SPLIT, "2"])
        self.check_functions(result)
        self.check_lines(result)
        self.check_mixture(result)
        self.check_losses(result)
        self.check_outputs(result)

    def check_outputs(self, result):
        expect("work (split.py:" in open(result.path("profile.txt"), encoding="utf-8").read(), "profile.txt")
        frames = [frame for frame in result.json("profile.json")["frames"] if frame["name"] == "work"]
        expect(any(frame["kind"] == "interpreted" and frame["file"] == SPLIT and
                   frame["line"] == line_of("work") for frame in frames), f"{frames}")
        pprof = {(frame.function, frame.line) for sample in result.profile().samples
                 for frame in sample.stack}
        expect(("work", line_of("work")) in pprof, "profile.pb.gz")
        report = self.kymo.report(result.directory)
        expect(re.search(r"Heaviest lines of Python.*\n.*\n.*split\.py:[0-9]+\)",
                         report.stderr + report.stdout.decode()), f"{report}")

    def threads(self):
        result = self.profile("threads", [PYTHON, SPLIT, "2", "4"])
        self.check_functions(result)
        self.check_losses(result)

    def hosted(self):
        """In a library that a program opens while it runs."""
        require_tool("cc")
        version = run([PYTHON, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]).stdout.decode().strip()
        found = glob.glob(f"/usr/lib/*/libpython{version}.so*")
        if not found:
            raise Skipped(f"libpython{version} is not installed")
        host, script = self.scratch.path("host"), self.scratch.path("split.py")
        ended = run(["cc", "-o", host, os.path.join(HERE, "host.c"), "-ldl"])
        expect(ended.status == 0, ended.stderr)
        with open(SPLIT, encoding="utf-8") as stream, open(script, "w", encoding="utf-8") as copy:
            copy.write("import sys\nsys.argv = ['split.py', '1']\n" + stream.read())
        result = self.profile("hosted", [host, found[0], script])
        self.check_functions(result)
        self.check_losses(result)

    def attached(self):
        """To a Python that runs already."""
        directory = self.scratch.path("attached")
        with subprocess.Popen([PYTHON, SPLIT, "30"], env=clean_environment(), stdout=subprocess.DEVNULL) as process:
            try:
                time.sleep(0.3)
                ended = run([self.kymo.path, "attach", "-q", "-o", directory, "--time-output=off",
                             f"--freq={RATE}", "--duration=2", "-p", str(process.pid)])
                if ended.status != 0 and "ptrace" in ended.stderr:
                    raise Skipped("attaching is not allowed here")
                expect(ended.status == 0, f"{ended}")
                expect(process.poll() is None, "the program ended")
            finally:
                process.send_signal(signal.SIGKILL)
        result = Result(directory)
        stacks = [(python_frames(stack), weight) for stack, weight in result.folded()]
        total = sum(weight for _, weight in stacks)
        named = sum(weight for frames, weight in stacks if any(function == "main" for function, _ in frames))
        expect(total > 200 and named >= 0.95 * total, f"{named} of {total} samples are below main()")

    def blocked(self):
        """Real time: a thread that waits is at a line of Python."""
        script = self.scratch.path("wait.py")
        with open(script, "w", encoding="utf-8") as stream:
            stream.write("import time\n\n\ndef wait():\n    time.sleep(0.5)\n\n\nwait()\nprint('done')\n")
        result = self.profile("blocked", [PYTHON, script], "--realtime")
        weights = {frames[-2:] for stack, _ in result.folded()
                   if (frames := tuple(f for f in stack if "wait.py" in f))}
        expect(("<module> (wait.py:8)", "wait (wait.py:5)") in weights, f"{weights}")


def main():
    tap, kymo = Tap(), Kymo(sys.argv[1])
    require_tool(PYTHON)
    with Scratch() as scratch:
        split = Split(kymo, scratch)
        tap.point("shares by function and line, mixed stacks, all outputs", split.one_thread, retries=1)
        tap.point("shares of four threads", split.threads, retries=1)
        tap.point("a program that opens libpython", split.hosted, retries=1)
        tap.point("attached to a running Python", split.attached)
        tap.point("a thread that waits", split.blocked)
    tap.finish()


if __name__ == "__main__":
    main()
