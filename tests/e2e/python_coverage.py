#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""Coverage of Python: functions and lines that ran, as the interpreter's own tracing and code objects have them.

usage: python_coverage.py KYMO     (TAP)
"""
import json
import os
import sys

from harness import Kymo, Scratch, Tap, expect, require_tool, run
from python_modes import VERSIONS, python_of

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "python", "covered.py")
# An independent reader: a trace function, and the lines of all code objects of the file.
TRUTH = """
import json, runpy, sys, threading
path, lines, functions = sys.argv[1], set(), set()

def trace(frame, event, argument):
    code = frame.f_code
    if code.co_filename == path:
        if event == "call":
            functions.add((code.co_firstlineno, code.co_name))
        elif event == "line":
            lines.add(frame.f_lineno)
    return trace

def look(code, all_lines, all_functions):
    all_functions.add((code.co_firstlineno, code.co_name))
    if hasattr(code, "co_lines"):
        all_lines.update(line for _, _, line in code.co_lines() if line)
    for constant in code.co_consts:
        if isinstance(constant, type(code)):
            look(constant, all_lines, all_functions)

sys.argv = sys.argv[1:]
threading.settrace(trace)
sys.settrace(trace)
runpy.run_path(path, run_name="__main__")
sys.settrace(None)
all_lines, all_functions = set(), set()
with open(path) as stream:
    look(compile(stream.read(), path, "exec"), all_lines, all_functions)
sys.stderr.write(json.dumps([sorted(lines), sorted(functions), sorted(all_lines), sorted(all_functions)]))
"""


class Coverage:
    def __init__(self, kymo, scratch):
        self.kymo, self.scratch, self.count = kymo, scratch, 0
        self.truth_program = scratch.path("truth.py")
        with open(self.truth_program, "w", encoding="utf-8") as stream:
            stream.write(TRUTH)

    def truth(self, python, *arguments):
        ended = run([python, self.truth_program, PROGRAM, *arguments])
        expect(ended.status == 0, f"{ended}")
        lines, functions, all_lines, all_functions = json.loads(ended.stderr)
        as_set = lambda pairs: {(line, name) for line, name in pairs}  # noqa: E731
        return set(lines), as_set(functions), set(all_lines), as_set(all_functions)

    def record(self, python, kind, *arguments):
        self.count += 1
        directory = self.scratch.path(f"run-{self.count}")
        ended = run([self.kymo.path, "instrument", "--python", "--coverage", kind, "-MR", "covered.py$", "--output", directory,
                     "--format=coverage,coverage-json,lcov", "--time-output=off", "--", python, PROGRAM, *arguments])
        bare = run([python, PROGRAM, *arguments])
        expect((ended.status, ended.stdout) == (bare.status, bare.stdout), f"{ended}, bare: {bare}")
        expect("coverage.txt has which functions ran" in ended.stderr, ended.stderr)
        return directory

    @staticmethod
    def read_lcov(path):
        """(lines with code, those that ran, functions, those that ran) of the one file."""
        lines, functions, calls = {}, {}, {}
        with open(path, encoding="utf-8") as stream:
            for line in stream:
                kind, _, rest = line.rstrip("\n").partition(":")
                if kind == "SF":
                    expect(rest == PROGRAM, rest)
                elif kind == "DA":
                    number, count = rest.split(",")
                    lines[int(number)] = int(count)
                elif kind == "FN":
                    number, name = rest.split(",", 1)
                    functions[name] = int(number)
                elif kind == "FNDA":
                    count, name = rest.split(",", 1)
                    calls[name] = int(count)
        last = lambda name: name.split(".")[-1]  # noqa: E731
        return (set(lines), {line for line, count in lines.items() if count},
                {(line, last(name)) for name, line in functions.items()},
                {(functions[name], last(name)) for name, count in calls.items() if count})

    def check(self, directory, truth, with_lines):
        lines, functions, all_lines, all_functions = truth
        seen = self.read_lcov(os.path.join(directory, "coverage.info"))
        # Functions of one name in one file are one in lcov's format.
        expect(seen[2] == all_functions and seen[3] == functions,
               f"functions: {seen[2] ^ all_functions}; that ran: {seen[3] ^ functions}")
        expect(seen[0] == (all_lines if with_lines else set()), f"lines: {seen[0] ^ all_lines}")
        expect(seen[1] == (lines if with_lines else set()), f"lines that ran: {seen[1] ^ lines}")
        with open(os.path.join(directory, "coverage.json"), encoding="utf-8") as stream:
            document = json.load(stream)
        expect(document["functions"]["covered"] == len(functions) and document["functions"]["total"] == len(all_functions),
               f"{document['functions']}")
        if with_lines:
            expect(document["lines"]["covered"] == len(lines) and document["lines"]["total"] == len(all_lines),
                   f"{document['lines']}")

    def covers(self, version):
        python = python_of(version)
        minor = int(run([python, "-c", "import sys; print(sys.version_info[1])"]).stdout)
        truth = self.truth(python)
        self.check(self.record(python, "basic_block"), truth, minor >= 12)
        self.check(self.record(python, "function"), truth, False)

    def joined(self, version):
        """Two runs together: what either ran."""
        python = python_of(version)
        first, second = self.truth(python), self.truth(python, "more")
        expect(first[0] != second[0], "the second run is the same")
        directories = [self.record(python, "basic_block", *arguments) for arguments in ([], ["more"])]
        ended = run([self.kymo.path, "report", "--format", "lcov", *directories])
        path = self.scratch.path("joined.info")
        with open(path, "wb") as stream:
            stream.write(ended.stdout)
        seen = self.read_lcov(path)
        expect(ended.status == 0 and seen[1] == first[0] | second[0] and seen[3] == first[1] | second[1],
               f"{ended.stderr} {seen[1] ^ (first[0] | second[0])}")


    def by_command(self):
        """kymo python, and children: each process adds what it ran."""
        directory = self.scratch.path("command")
        script = self.scratch.path("parent.py")
        with open(script, "w", encoding="utf-8") as stream:
            stream.write("import subprocess, sys\nif len(sys.argv) == 1:\n    subprocess.run([sys.executable, __file__, 'child'])\n"
                         "else:\n    print('child')\n")
        ended = run([self.kymo.path, "python", "-q", "--coverage", "function", "-MR", "parent.py$", "-o", directory,
                     "--time-output=off", "--format=coverage-json", "--", script])
        expect((ended.status, ended.stdout) == (0, b"child\n"), f"{ended}")
        with open(os.path.join(directory, "coverage.json"), encoding="utf-8") as stream:
            document = json.load(stream)
        expect((document["functions"]["covered"], document["functions"]["total"]) == (1, 1), f"{document}")
        ended = run([self.kymo.path, "python", "--coverage", "function", "-o", self.scratch.path("none"), "--time-output=off",
                     "--interpreter", "/bin/echo", "--", script])
        expect(ended.status == 0 and "no coverage: no interpreter was found" in ended.stderr, f"{ended}")


def main():
    tap, kymo = Tap(), Kymo(sys.argv[1])
    require_tool("/usr/bin/python3")
    with Scratch() as scratch:
        coverage = Coverage(kymo, scratch)
        for version in VERSIONS:
            tap.point(f"functions and lines, {version}", lambda version=version: coverage.covers(version))
        for version in ("3.12", "3.13"):
            tap.point(f"two runs together, {version}", lambda version=version: coverage.joined(version))
        tap.point("kymo python, children, no Python", coverage.by_command)
    tap.finish()


if __name__ == "__main__":
    main()
