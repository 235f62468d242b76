#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""kymo python: scripts and modules, what is recorded of them, and that the program is as it is without kymo.

usage: python_command.py KYMO     (TAP)
"""
import os
import re
import sys

from harness import Kymo, Result, Scratch, Tap, expect, require_tool, run
from python_modes import VERSIONS, python_of

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "python")
SECTIONS = os.path.join(HERE, "sections.py")
SCRIPT = """import os
import sys
import helper

def caller():
    return helper.called() + len("four")

print(sys.argv[1:], sys.path[0], __name__, __file__, os.environ.get("PYTHONPATH"), caller(), "kymo" in str(sys.path))
sys.exit(7)
"""
HELPER = "def called():\n    return 1\n"
SETUP = "import helper\nfor _ in range(1000):\n    helper.called()\n"


class Command:
    def __init__(self, kymo, scratch):
        self.kymo, self.scratch, self.count = kymo, scratch, 0
        self.script = self.write("script.py", SCRIPT)
        self.write("helper.py", HELPER)
        self.setup = self.write("setup.py", SETUP)

    def write(self, name, text):
        path = self.scratch.path(name)
        with open(path, "w", encoding="utf-8") as stream:
            stream.write(text)
        return path

    def python(self, *arguments, environment=None):
        """(how it ended, {region: calls})"""
        self.count += 1
        directory = self.scratch.path(f"run-{self.count}")
        ended = run([self.kymo.path, "python", "-q", "-o", directory, "--time-output=off", "--format=json", *arguments],
                    environment=environment)
        if not os.path.isdir(directory):
            return ended, {}
        calls = {}
        for total in Result(directory).json("profile.json").get("region_totals", []):
            calls[total["name"]] = calls.get(total["name"], 0) + total["count"]
        return ended, calls

    def same_program(self, version):
        """Arguments, search path, environment, status: also with code before it."""
        python = python_of(version)
        bare = run([python, self.script, "a", "-b"])
        for options in ([], ["-s", self.setup], ["-b"]):
            ended, calls = self.python(*options, "--interpreter", python, "--", self.script, "a", "-b")
            wanted = bare.stdout
            if options == ["-b"]:  # children need it
                own = re.search(rb"(?<=script\.py) (/.+/kymo/python/start) ", ended.stdout)
                expect(own, f"{ended}")
                wanted = wanted.replace(b" None ", own[0])
            expect((ended.status, ended.stdout) == (7, wanted), f"{options}: {ended}, not {bare}")
            expect(calls.get("called (helper.py:1)", 0) == (0 if options == ["-b"] else 1), f"{options}: {calls}")

    def sections(self, version):
        ended, calls = self.python("-b", "--interpreter", python_of(version), "--", SECTIONS)
        expect((ended.status, ended.stdout) == (0, b"failed decorated Documented.\n[2, 'sent', 'end']\n"), f"{ended}")
        own = {name.rsplit(" (", 1)[0]: count for name, count in calls.items() if "(sections.py:" in name}
        for comprehension in ("<listcomp>", "decorated.<locals>.<listcomp>"):
            own.pop(comprehension, None)
        expect(own == {"decorated": 1, "leaf": 10 + 10 + 2 + 3, "plain": 2, "coroutine": 2, "generator": 3, "fail": 1},
               f"{own}")
        expect(not [name for name in calls if "sitecustomize" in name], f"{calls}")

    def modules(self):
        for arguments in (["-m", "helper_module", "x"], ["--", "-m", "helper_module", "x"],
                          ["--", "/usr/bin/python3", "-m", "helper_module", "x"]):
            self.write("helper_module.py", "import sys\ndef f():\n    return 3\nprint(sys.argv[1:], f())\n")
            ended, calls = self.python(*arguments, environment={"PYTHONPATH": os.path.dirname(self.script)})
            expect((ended.status, ended.stdout) == (0, b"['x'] 3\n"), f"{arguments}: {ended}")
            expect(calls.get("f (helper_module.py:2)") == 1, f"{arguments}: {calls}")

    def names(self):
        """--label, -F, --trace-c, and the expressions."""
        for options, wanted, unwanted in (
                (["--label", "none"], ["called"], ["called (helper.py:1)"]),
                (["--label", "line"], ["called (line 1)"], []),
                (["--label", "file"], ["called (helper.py)"], []),
                (["-F"], [f"called ({self.scratch.path('helper.py')}:1)"], ["called (helper.py:1)"]),
                (["--trace-c"], ["builtins.len (C)", "called (helper.py:1)"], []),
                (["-MR", "script.py$"], ["caller (script.py:5)"], ["called (helper.py:1)", "builtins.len (C)"]),
                (["-R", "^called$", "-R", "^caller$"], ["caller (script.py:5)", "called (helper.py:1)"],
                 ["<module> (script.py:1)"]),
                (["-E", "^called$"], ["caller (script.py:5)"], ["called (helper.py:1)"]),
                (["-MR", "script.py$", "-I", "^called$"], ["caller (script.py:5)", "called (helper.py:1)"], [])):
            ended, calls = self.python(*options, "--", self.script)
            expect(ended.status == 7, f"{options}: {ended}")
            expect(set(wanted) <= set(calls) and not set(unwanted) & set(calls), f"{options}: {sorted(calls)[:40]}")

    def setup_fails(self):
        bad = self.write("bad.py", "raise ValueError('of the setup')\n")
        ended, _ = self.python("-s", bad, "--", self.script)
        expect(ended.status == 1 and ended.stdout == b"" and "of the setup" in ended.stderr and
               "was not started" in ended.stderr, f"{ended}")

    def mistakes(self):
        for arguments, text in (([], "which script?"), (["--", "no-such-script.py"], "no script 'no-such-script.py'"),
                                (["--", "/no/such.py"], "there is no such file"),
                                (["--label", "args", "--", self.script], "--label args"),
                                (["--label", "module", "--", self.script], "PYTHON_LABEL"),
                                (["-s", "/no/setup.py", "--", self.script], "cannot open '/no/setup.py'"),
                                (["--builtin=perhaps", "--", self.script], "perhaps")):
            ended, _ = self.python(*arguments)
            expect(ended.status not in (0, 7) and ended.stdout == b"" and text in ended.stderr, f"{arguments}: {ended}")


def main():
    tap, kymo = Tap(), Kymo(sys.argv[1])
    require_tool("/usr/bin/python3")
    with Scratch() as scratch:
        command = Command(kymo, scratch)
        for version in VERSIONS:
            tap.point(f"the program is the same, {version}", lambda version=version: command.same_program(version))
        for version in VERSIONS:
            tap.point(f"sections, {version}", lambda version=version: command.sections(version))
        tap.point("modules", command.modules)
        tap.point("names and expressions", command.names)
        tap.point("setup code that fails", command.setup_fails)
        tap.point("mistakes", command.mistakes)
    tap.finish()


if __name__ == "__main__":
    main()
