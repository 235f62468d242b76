#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""`make demo`: what a newcomer sees first.

usage: demo.py SOURCE-DIRECTORY BUILD-DIRECTORY     (TAP)
"""
import os
import re
import sys

from harness import Scratch, Tap, expect, require_tool, run

SECONDS_MOST = 10
ROW = re.compile(r"^ +[0-9.]+ % .*  (\S.*) \((\S+)\)$")


def rows(text, heading):
    """The lines below a heading of the summary, up to the next empty one."""
    lines = text.splitlines()
    expect(heading in lines, f"no '{heading}': {text[-3000:]}")
    begin = lines.index(heading) + 2
    return lines[begin:lines.index("", begin)]


class Demo:
    def __init__(self, source, build, scratch):
        os.makedirs(scratch.path("build/src"))
        os.symlink(f"{build}/src/cmd", scratch.path("build/src/cmd"))
        self.ended = run([f"{source}/tests/demo", scratch.path("build")])
        expect(self.ended.status == 0, f"{self.ended}")
        self.text = self.ended.stdout.decode() + self.ended.stderr

    def is_short(self):
        expect(self.ended.seconds <= SECONDS_MOST, f"{self.ended.seconds:.1f} s")

    def names(self):
        first = rows(self.text, "Heaviest functions")[:10]
        found = [ROW.match(line) for line in first]
        expect(len(found) == 10 and all(found), "\n".join(first))
        expect(not [match for match in found if re.match(r"0x|\[|\?", match[1])], "\n".join(first))
        expect("find_match (pack)" in self.text and "decode_bit (pack)" in self.text, "\n".join(first))

    def threads(self):
        shares = [float(line.split()[0]) for line in rows(self.text, "Threads")]
        expect(len([share for share in shares if share >= 30]) == 2, f"{shares}")


def main():
    tap = Tap()
    require_tool("cc")
    with Scratch() as scratch:
        demo = Demo(*(os.path.abspath(path) for path in sys.argv[1:3]), scratch)
        tap.point("ten functions have names", demo.names)
        tap.point("two threads are busy", demo.threads)
        tap.point("it takes ten seconds at most", demo.is_short)
    tap.finish()


if __name__ == "__main__":
    main()
