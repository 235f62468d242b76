#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""Calls of Python functions: the same counts as cProfile's, in programs that notice nothing.

usage: python_calls.py KYMO     (TAP)
"""
import collections
import glob
import json
import os
import re
import sys

from harness import Kymo, Result, Scratch, Skipped, Tap, clean_environment, expect, require_tool, run

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "unit", "output"))
from perfetto_decode import Trace  # noqa: E402 pylint: disable=wrong-import-position

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "python")
CALLS = os.path.join(HERE, "calls.py")
PYTHON = "/usr/bin/python3"
VERSIONS = ("3.8", "3.9", "3.10", "3.11", "3.12", "3.13", "3.14")
WORKLOADS = ("recursion", "generators", "exceptions", "classes", "json", "re", "asyncio")
NAME = re.compile(r"^(.*) \((.*):([0-9]+)\)$")


def find_version(version):
    """A version manager's Python of this version."""
    found = sorted(glob.glob(os.path.expanduser(f"~/.pyenv/versions/{version}.*/bin/python{version}")))
    if not found:
        raise Skipped(f"Python {version} is not installed")
    return found[-1]


def shorten(path):
    """The file as regions name it."""
    parts = path.split("/")
    return "/".join(parts[-2:]) if parts[-1].startswith("__") else parts[-1]


class Calls:
    """A run with its regions."""

    def __init__(self, kymo, scratch, name, command, *options, bare=None, **how):
        directory = scratch.path(name)
        self.ended = run([kymo.path, "instrument", "--python", "-q", "--output", directory, "--time-output=off",
                          *options, "--", *command], **how)
        bare = bare or run(command, **how)
        expect((self.ended.status, self.ended.stdout) == (bare.status, bare.stdout), f"{self.ended}, bare: {bare}")
        self.result = Result(directory)
        self.profile = self.result.json("profile.json")

    def below(self, ancestor):
        """{(file, line, last part of the name): calls} below functions of this name."""
        counts, chosen = collections.Counter(), set()
        for node in self.profile["region_nodes"]:  # parents come first
            match = NAME.match(node["name"])
            if node["parent"] in chosen:
                if match:
                    counts[match[2], int(match[3]), match[1].split(".")[-1]] += node["count"]
            elif not match or match[1] != ancestor:
                continue
            chosen.add(node["id"])
        return counts

    def totals(self):
        """{name: calls} of the whole tree of processes."""
        counts = collections.Counter()
        for row in self.profile["region_totals"]:
            counts[row["name"].split(" (")[0]] += row["count"]
        return counts

    def expect_no_losses(self, besides=()):
        for process in self.profile["processes"]:
            lost = {name: count for name, count in process["losses"].items() if count and name not in besides}
            expect(not lost, f"{lost}")


class Checks:
    def __init__(self, kymo, scratch):
        self.kymo, self.scratch, self.count = kymo, scratch, 0

    def calls(self, command, *options, **how):
        self.count += 1
        return Calls(self.kymo, self.scratch, f"run{self.count}", command, *options, **how)

    def script(self, text):
        self.count += 1
        path = self.scratch.path(f"script{self.count}.py")
        with open(path, "w", encoding="utf-8") as stream:
            stream.write(text)
        return path

    def counted_by_cprofile(self, python, workload):
        statistics = self.scratch.path("statistics.json")
        ended = run([python, CALLS, workload, statistics])
        expect(ended.status == 0, f"{ended}")
        with open(statistics, encoding="utf-8") as stream:
            return {(shorten(file), line, name): count for file, line, name, count in json.load(stream)
                    if file != "~"}

    def same_counts(self, python, *options):
        """As cProfile counts, by function, for every workload."""
        for workload in WORKLOADS:
            expected = self.counted_by_cprofile(python, workload)
            calls = self.calls([python, CALLS, workload], *options)
            found = dict(calls.below("run_counted"))
            endless = [key for key in expected if key[2] == "endless"]
            for key in endless:  # the call that the recursion limit refuses counts up to 3.11
                expect(found[key] - expected[key] in (0, 1), f"{key}: {found[key]}, not {expected[key]}")
                found[key] = expected[key]
            wrong = {key: (found.get(key), expected.get(key)) for key in {**found, **expected}
                     if found.get(key) != expected.get(key)}
            expect(len(expected) > 3 and not wrong, f"{workload}: (kymo, cProfile): {wrong}")
            calls.expect_no_losses()

    def threads(self, python):
        """Threads, a forked child and a program that it executes: numbers that are known."""
        calls = self.calls([python, os.path.join(HERE, "calls_threads.py")])
        totals = calls.totals()
        expected = {"thread": 9, "child": 1, "work": 9500, "leaf": 9500, "again": 5, "executed": 77, "replaced": 88}
        found = {name: totals[name] for name in expected}
        expect(found == expected, f"{found}, not {expected}")
        calls.expect_no_losses()

    def own_profile(self, python):
        """The program's own profile and trace functions, recursion and interpreters are as without kymo."""
        calls = self.calls([python, os.path.join(HERE, "calls_own.py")])
        totals = calls.totals()
        minor = int(run([python, "-c", "import sys; print(sys.version_info[1])"]).stdout)
        expect(totals["work"] == 30, f"{totals['work']} calls of work()")
        if minor in (10, 11, 12):
            expect(totals["inside"] == 33, f"{totals['inside']} calls in another interpreter")
        if minor != 11:
            expect(totals["deep"] >= 30902, f"{totals['deep']} calls of deep()")
            calls.expect_no_losses(besides=("interpreters",) if minor in (8, 9) else ())
        else:
            lost = calls.profile["processes"][0]["losses"]
            expect(lost.get("region_depth") and 30902 <= totals["deep"] < 81000, f"{totals['deep']}, {lost}")

    def c_functions(self, python):
        script = self.script("import time\n\n\ndef work():\n    text = [str.upper('a') for _ in range(30)]\n"
                             "    text.append(len(text))\n    time.sleep(0)\n    try:\n        [].pop()\n"
                             "    except IndexError:\n        pass\n    return sorted([2, 1], key=lambda x: -x)\n\n\n"
                             "print(work())\n")
        expected = {"str.upper": 30, "list.append": 1, "builtins.len": 1, "time.sleep": 1, "list.pop": 1,
                    "builtins.sorted": 1}
        for options, factor in ((["--python-builtins"], 1), ([], 0)):
            calls = self.calls([python, script], *options)
            found = collections.Counter()
            chosen = set()
            for node in calls.profile["region_nodes"]:
                if node["parent"] in chosen or node["name"].startswith("work ("):
                    chosen.add(node["id"])
                    found[node["name"].split(" (")[0]] += node["count"]
            wrong = {name: found[name] for name in expected if found[name] != factor * expected[name]}
            expect(not wrong, f"{options}: {wrong}")
            calls.expect_no_losses()

    def expressions(self):
        """-R, -MR, -E, -ME, -I and -MI are about names of functions and files."""
        def names(*options):
            totals = self.calls([PYTHON, CALLS, "json"], *options).totals()
            return {name for name, count in totals.items() if count}

        everything = names()
        expect({"work_json", "JSONEncoder.encode", "_find_and_load"} <= everything, f"{everything}")
        expect(names("-R", "^work_json$") == {"work_json"}, "-R")
        only = names("-MR", "/json/")
        expect("JSONEncoder.encode" in only and "work_json" not in only and "_find_and_load" not in only, f"{only}")
        expect(names("-R", "^work_json$", "-MR", "/json/") == only | {"work_json"}, "-R and -MR")
        expect(names("-MR", "/json/", "-E", "encode") == {name for name in only if "encode" not in name}, "-E")
        expect(names("-MR", "/json/", "-ME", "encoder") == {name for name in only if not name.startswith(
            ("JSONEncoder", "_make_iterencode"))}, "-ME")
        expect(names("-MR", "/json/", "-I", "^work_json$") == only | {"work_json"}, "-I")

    def hosted(self, python):
        """A program that opens libpython by itself."""
        require_tool("cc")
        base = os.path.dirname(os.path.dirname(python))
        found = glob.glob(os.path.join(base, "lib", "libpython3.*.so.*")) or glob.glob(
            "/usr/lib/x86_64-linux-gnu/libpython3.11.so.*")
        if not found:
            raise Skipped("there is no libpython")
        host = self.scratch.path("host")
        ended = run(["cc", "-o", host, os.path.join(HERE, "host.c"), "-ldl"])
        expect(ended.status == 0, ended.stderr)
        script = self.script("def hosted():\n    pass\n\n\nfor i in range(99):\n    hosted()\nprint('done')\n")
        environment = clean_environment()
        if "pyenv" in base:
            environment["PYTHONHOME"] = base
        calls = self.calls([host, found[0], script], environment=environment)
        expect(calls.totals()["hosted"] == 99, f"{calls.totals()['hosted']} calls")
        calls.expect_no_losses()

    def code_comes_and_goes(self, python):
        calls = self.calls([python, os.path.join(os.path.dirname(CALLS), "calls_made.py")])
        totals = calls.totals()
        made = sum(count for name, count in totals.items() if re.fullmatch(r"made\d+", name))
        expect((made, totals["note"]) == (2000, 2000), f"{made} of 2000 functions, note {totals['note']} times")
        calls.expect_no_losses()

    def own_tests(self, python):
        """Modules of CPython's own test suite: the same results."""
        for module in ("test_generators", "test_sys_setprofile", "test_sys_settrace", "test_gc"):
            command = [python, "-m", "unittest", "-v", f"test.{module}"]
            bare, directory = run(command), self.scratch.path(f"{module}-{python.replace('/', '-')}")
            if bare.status != 0:
                raise Skipped("its tests are not installed, or fail without kymo")
            ended = run([self.kymo.path, "instrument", "--python", "-q", "--trace", "off", "--output", directory,
                         "--", *command])
            expect(ended.status == 0, f"{module}: {ended}")
            results = [sorted(re.findall(r"^(test\w+ .*) \.\.\. (?:.*\n)?.*\b(ok|FAIL|ERROR|skipped)\b", text, re.M))
                       for text in (bare.stderr, ended.stderr)]
            expect(results[0] and results[0] == results[1], f"{module}: {set(results[0]) ^ set(results[1])}")

    def outputs(self):
        """The text says how many calls there are; the trace has slices, with the profile or without it."""
        directory = self.scratch.path("outputs")
        ended = run([self.kymo.path, "instrument", "--python", "-R", "^recurse$", "--output", directory,
                     "--time-output=off", "--", PYTHON, CALLS, "recursion"])
        match = re.search(r"Python functions\n +([0-9,]+) calls recorded of 1 function", ended.stderr)
        expect(match, ended.stderr)
        nodes = Result(directory).json("profile.json")["region_nodes"]
        expect(int(match[1].replace(",", "")) == sum(node["count"] for node in nodes) == 2 * 1219, f"{match[0]}")
        depths = {node["depth"] for node in nodes}
        expect(depths == set(range(14)), f"{depths}")
        with open(Result(directory).path("trace.pftrace"), "rb") as stream:
            trace = Trace(stream.read())
        slices = [each for each in trace.slices if each["name"].startswith("recurse (calls.py:")]
        expect(not trace.errors and len(slices) == 2 * 1219, f"{trace.errors[:3]}, {len(slices)} slices")
        nothing = run([self.kymo.path, "instrument", "--python", "--output", self.scratch.path("nothing"), "--",
                       "/bin/true"])
        expect("no calls: no interpreter was found" in nothing.stderr, nothing.stderr)
        for option in (["-p", "1"], ["--simulate"], ["-o", self.scratch.path("copy")]):
            wrong = run([self.kymo.path, "instrument", "--python", *option,
                         *([] if option[0] == "-p" else ["--", "/bin/true"])])
            expect(wrong.status == 125 and f"--python and {option[0]} cannot both be given" in wrong.stderr, f"{wrong}")


    def further_interpreters(self, python):
        """Versions that do not make their first module anew do not ask kymo: how many is said."""
        script = self.script("try:\n    import _xxsubinterpreters as interpreters\nexcept ImportError:\n"
                             "    import _interpreters as interpreters\nrun = getattr(interpreters, 'run_string', None) or "
                             "interpreters.exec\nfor _ in range(3):\n    one = interpreters.create()\n"
                             "    run(one, 'def inside(): pass\\ninside()')\n    interpreters.destroy(one)\n")
        calls = self.calls([python, script])
        recorded = calls.totals()["inside"]
        lost = sum(process["losses"].get("interpreters", 0) for process in calls.profile["processes"])
        expect(recorded + lost == 3 and (recorded, lost) in ((0, 3), (3, 0)), f"{recorded} recorded, {lost} lost")
        version = run([python, "-c", "import sys; print(sys.version_info[1])"]).stdout
        expect((lost == 3) == (int(version) in (8, 9, 13)), f"3.{version}: {lost} lost")
        report = self.kymo.report(calls.result.directory)
        expect(("3 further interpreters of Python" in report.stdout.decode() + report.stderr) == (lost == 3), f"{report}")

    def free_threaded(self):
        require_tool("cc")
        program = self.scratch.path("free-threaded")
        ended = run(["cc", "-rdynamic", "-o", program, os.path.join(HERE, "free_threaded.c")])
        expect(ended.status == 0, ended.stderr)
        for arguments in (["sample"], ["instrument"], ["instrument", "--python"]):
            self.count += 1
            ended = run([self.kymo.path, *arguments, "--output", self.scratch.path(f"free{self.count}"), "--time-output=off",
                         "--", program])
            expect((ended.status, ended.stdout) == (0, b"done\n"), f"{ended}")
            expect(ended.stderr.count("this Python is free-threaded") == 1, f"{arguments}: {ended.stderr}")


def main():
    tap, kymo = Tap(), Kymo(sys.argv[1])
    require_tool(PYTHON)
    with Scratch() as scratch:
        checks = Checks(kymo, scratch)
        tap.point("what is written, and what is refused", checks.outputs)
        tap.point("expressions", checks.expressions)
        tap.point("a Python without the global lock", checks.free_threaded)
        for version in ("Debian's", *VERSIONS):
            def point(name, check, version=version):
                tap.point(f"{name}: Python {version}",
                          lambda: check(PYTHON if version == "Debian's" else find_version(version)))
            point("counts are cProfile's", checks.same_counts)
            point("threads, children, programs", checks.threads)
            point("the program's own profile functions", checks.own_profile)
            point("C functions", checks.c_functions)
            point("hosted", checks.hosted)
            point("further interpreters", checks.further_interpreters)
            point("code that comes and goes", checks.code_comes_and_goes)
            point("its own tests", checks.own_tests)
    tap.finish()


if __name__ == "__main__":
    main()
