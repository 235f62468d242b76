#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""What packaging/configure asks Meson for. A program of that name notes its arguments.

usage: configure.py SOURCE-DIRECTORY     (TAP)
"""
import json
import os
import subprocess
import sys
import tempfile

MESON = """#!/bin/sh
for argument; do echo "$argument"; done >"$NOTED"
"""


def asked(source, build, *arguments):
    """The arguments that Meson got; None: it did not run."""
    with tempfile.TemporaryDirectory() as folder:
        program, noted = f"{folder}/meson", f"{folder}/noted"
        with open(program, "w", encoding="utf-8") as stream:
            stream.write(MESON)
        os.chmod(program, 0o755)
        subprocess.run([f"{source}/packaging/configure", build, *arguments], check=True,
                       env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "NOTED": noted})
        if not os.path.exists(noted):
            return None
        with open(noted, encoding="utf-8") as stream:
            return stream.read().splitlines()


def made(build, **options):
    """A build directory with these options, as Meson leaves it."""
    os.makedirs(f"{build}/meson-info", exist_ok=True)
    with open(f"{build}/build.ninja", "w", encoding="utf-8"):
        pass
    with open(f"{build}/meson-info/intro-buildoptions.json", "w", encoding="utf-8") as stream:
        json.dump([{"name": name, "value": value} for name, value in options.items()], stream)


def main():
    source = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        fresh, there, broken = f"{folder}/a build", f"{folder}/there", f"{folder}/broken"
        made(there, tests=False, werror=False, prefix="/a b", buildtype="release")
        made(broken, tests=False)
        os.remove(f"{broken}/build.ninja")
        points = (
            ("a new directory has all options", [fresh, "-Dwerror=true", "--first", "-Dprefix=/a b", "-Dtests=false"],
             ["setup", fresh, "-Dprefix=/a b", "-Dtests=false", "-Dwerror=true"]),
            ("what is asked for comes before a first value", [fresh, "-Dprefix=/c", "--first", "-Dprefix=/usr/local"],
             ["setup", fresh, "-Dprefix=/c"]),
            ("nothing changes", [there, "-Dprefix=/a b", "-Dtests=false", "--first", "-Dbuildtype=plain"], None),
            ("what is lacking is set", [there, "-Dtests=true", "-Dwerror=true", "-Dprefix=/a b"],
             ["configure", there, "-Dtests=true", "-Dwerror=true"]),
            ("a directory that was not completed is set up", [broken, "-Dtests=true"], ["setup", broken, "-Dtests=true"]),
        )
        print(f"1..{len(points)}")
        for number, (name, arguments, wanted) in enumerate(points, 1):
            got = asked(source, *arguments)
            print(f"{'ok' if got == wanted else 'not ok'} {number} - {name}")
            if got != wanted:
                print(f"# {got}, not {wanted}")


main()
