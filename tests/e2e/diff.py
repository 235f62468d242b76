#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""kymo diff on real runs: two builds of a program, by every kind of row, in every format, with a status for CI.

  diff.py KYMO
"""
import json
import os
import re
import sys

from harness import Kymo, Scratch, Tap, expect, require_tool, run

SOURCE = r"""
#include <pthread.h>
#include <stdint.h>
#include <string.h>
static volatile uint64_t sink;
static char block[1 << 16];
__attribute__((noinline)) static void parse(long n) { uint64_t a = sink; for (long i = 0; i < n; i++) a = a * 6364136223846793005u + 1; sink = a; }
__attribute__((noinline)) static void render(long n) { uint64_t a = sink | 1; for (long i = 0; i < n; i++) { a ^= a << 13; a ^= a >> 7; } sink = a; }
__attribute__((noinline)) static void EXTRA(long n) { for (long i = 0; i < n; i++) { memset(block, (int)i, sizeof(block)); for (int j = 0; j < 800; j++) sink += (uint64_t)block[j]; } }
static void *worker(void *x) { render(40000000); return x; }
int main(void) { pthread_t t; pthread_create(&t, 0, worker, 0); for (int i = 0; i < 40; i++) parse(PARSE); EXTRA(20000);
	pthread_join(t, 0); return 0; }
"""
REPEATS = 4


class Diff:
    def __init__(self, kymo, scratch):
        self.kymo, self.scratch = kymo, scratch
        self.results = {"before": [], "after": []}
        before = self.build("app-1.0", "-DPARSE=2000000", "-DEXTRA=old_name")
        after = self.build("app-1.1", "-DPARSE=4000000", "-DEXTRA=new_name", "-O1", "-fno-pie", "-no-pie")
        for number in range(REPEATS):
            for side, program in (("before", before), ("after", after)):
                directory = scratch.path(f"{side} {number}")
                ended = kymo.sample([program], directory, "--trace=off")
                expect(ended.status == 0, f"{ended}")
                self.results[side].append(directory)

    def build(self, name, *flags):
        source, program = self.scratch.path("app.c"), self.scratch.path(name)
        with open(source, "w", encoding="utf-8") as stream:
            stream.write(SOURCE)
        ended = run(["cc", "-O2", "-g", *flags, source, "-o", program, "-pthread"])
        expect(ended.status == 0, f"{ended}")
        return program

    def diff(self, *options, repeats=REPEATS, before="before", after="after", status=0):
        pairs = [name for pair in zip(self.results[before][:repeats], self.results[after][:repeats]) for name in pair]
        ended = run([self.kymo.path, "diff", *options, *pairs])
        expect(ended.status == status, f"{ended}")
        return ended

    def json(self, *options, **how):
        answer = json.loads(self.diff("--format", "json", *options, **how).stdout)
        expect(answer["schema"] == "kymo.diff/1", f"{answer}")
        return answer["total"], {row["name"]: row for row in answer["rows"]}

    def functions(self):
        total, rows = self.json()
        parse = rows["parse"]
        expect(1.5 < parse["after"] / parse["before"] < 2.6 and parse["verdict"] == "higher", f"{parse}")
        expect(total["verdict"] == "higher", f"{total}")
        expect(rows["render"]["verdict"] == "unchanged", f"{rows['render']}")
        sums = [sum(row["values"][run] for row in rows.values()) for run in range(2 * REPEATS)]
        expect(all(abs(a - b) <= 1e-6 * b for a, b in zip(sums, total["values"])), f"{sums} {total}")

    def sums_are_those_of_json(self):
        total, rows = self.json(repeats=1)
        for side, index in (("before", 0), ("after", 1)):
            with open(os.path.join(self.results[side][0], "profile.json"), encoding="utf-8") as stream:
                profile = json.load(stream)
            expect(total["values"][index] == sum(f["self_ns"] for f in profile["functions"]), f"{total}")
            parse = sum(f["self_ns"] for f in profile["functions"] if f["name"].split(".")[0] == "parse")
            expect(rows["parse"]["values"][index] == parse, f"{rows['parse']} {parse}")

    def other_rows(self):
        _, paths = self.json("--by", "path")
        expect(paths["main;parse"]["verdict"] == "higher", f"{paths['main;parse']}")
        expect(paths["worker;render"]["verdict"] == "unchanged", f"{paths['worker;render']}")
        expect(any(name.startswith("main;old_name;") or name == "main;old_name" for name in paths), f"{list(paths)}")
        _, lines = self.json("--by", "line")
        expect(lines["parse app.c:7"]["verdict"] == "higher", f"{lines}")
        _, threads = self.json("--by", "thread")
        expect(threads, "no threads")
        ended = self.diff("--by", "rank", status=125)
        expect("no ranks" in ended.stderr, ended.stderr)

    def text(self):
        text = self.diff("--top", "3").stdout.decode()
        expect("more than noise explains" in text.splitlines()[0], text)
        expect(re.search(r"\+\S+ %\s+\S+ %\s+more\s+parse$", text, re.M), text)
        expect("rows (--top 0 shows all)" in text, text)
        text = self.diff(repeats=1).stdout.decode()
        expect("5 % is assumed" in text, text)

    def markdown(self):
        text = self.diff("--format", "markdown", "--top", "0").stdout.decode()
        rows = [line for line in text.splitlines() if line.startswith("| ")]
        expect(text.startswith("### CPU time +"), text)
        expect(all(len(re.findall(r"(?<!\\)\|", row)) == 7 for row in rows), text)
        expect(any(row.startswith("| parse | ") and "**+" in row for row in rows), text)
        expect(any(row.startswith(r"| new\_name | ") for row in rows), text)

    def folded(self):
        lines = self.diff("--format", "folded").stdout.decode().splitlines()
        expect(lines and all(re.match(r".+ \d+ \d+$", line) for line in lines), "\n".join(lines))

    def status(self):
        ended = self.diff("--fail-if", "total>+3%", status=1)
        expect("--fail-if 'total>+3%'" in ended.stderr and "'total' went from" in ended.stderr, ended.stderr)
        self.diff("--fail-if", "parse>+50%", status=1)
        self.diff("--fail-if", "any>+1ms", status=1)
        self.diff("--fail-if", "render>+200%", "--fail-if", "total>+500%")
        self.diff("--fail-if", "total<-3%")
        self.diff("--fail-if", "total<-3%", before="after", after="before", status=1)
        self.diff("--fail-if", "total>0%", before="before", after="before")
        self.diff("--fail-if", "total>+20%", repeats=1, status=1)
        ended = self.diff("--fail-if", "no such row>+1%", status=125)
        expect("no row of these results is called 'no such row'" in ended.stderr, ended.stderr)

    def errors(self):
        ended = self.diff("--measure", "wall", status=125)
        expect("has no samples of real time" in ended.stderr, ended.stderr)
        missing = self.scratch.path("missing")
        ended = run([self.kymo.path, "diff", self.results["before"][0], missing])
        expect(ended.status == 125 and "missing" in ended.stderr, f"{ended}")


def main():
    tap = Tap()
    require_tool("cc")
    with Scratch() as scratch:
        diff = Diff(Kymo(sys.argv[1]), scratch)
        tap.point("functions of two builds are matched by name", diff.functions)
        tap.point("sums are those of profile.json", diff.sums_are_those_of_json)
        tap.point("call paths, lines, threads", diff.other_rows)
        tap.point("text", diff.text)
        tap.point("Markdown", diff.markdown)
        tap.point("folded", diff.folded)
        tap.point("--fail-if", diff.status)
        tap.point("errors", diff.errors)
    tap.finish()


if __name__ == "__main__":
    main()
