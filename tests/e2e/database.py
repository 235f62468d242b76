#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""results.db and kymo sql: the sums of the other outputs, the guide's queries, errors.

  database.py KYMO SOURCE-DIRECTORY
"""
import csv
import io
import json
import os
import re
import shlex
import sqlite3
import sys

from harness import Kymo, Result, Scratch, Tap, expect, require_tool, run

SOURCE = r"""
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>
static volatile double sum;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
__attribute__((noinline)) static void parse(long n) { for (long i = 0; i < n; i++) sum += (double)i; }
static void *worker(void *x) { for (int i = 0; i < 20; i++) { pthread_mutex_lock(&lock); parse(2000000); pthread_mutex_unlock(&lock); usleep(3000); } return x; }
int main(void) { pthread_t t[2]; for (int i = 0; i < 2; i++) pthread_create(&t[i], 0, worker, 0);
	for (int i = 0; i < 2; i++) pthread_join(t[i], 0);
	pid_t child = fork(); if (!child) { parse(20000000); _exit(0); } waitpid(child, 0, 0); return 0; }
"""


class Database:
    def __init__(self, kymo, source, scratch):
        self.kymo, self.source, self.scratch = kymo, source, scratch
        program, self.directory = scratch.path("a program"), scratch.path("a result")
        with open(program + ".c", "w", encoding="utf-8") as stream:
            stream.write(SOURCE)
        expect(run(["cc", "-O1", "-g", program + ".c", "-o", program, "-pthread"]).status == 0, "no program")
        ended = kymo.sample([program], self.directory, "--realtime", "--trace-thread-locks", "--format", "json,db")
        expect(ended.status == 0, f"{ended}")
        self.profile = Result(self.directory).json("profile.json")

    def sql(self, query, *options, result=None, status=0):
        ended = run([self.kymo.path, "sql", *options, result or self.directory, query])
        expect(ended.status == status, f"{query}: {ended}")
        return ended

    def rows(self, query, **how):
        return json.loads(self.sql(query, "--format", "json", **how).stdout)

    def sums(self):
        totals = self.profile["totals"]
        file = self.scratch.path("a result/results.db")
        for place in (self.directory, file):
            [row] = self.rows("select sum(cpu_ns) c, sum(blocked_ns) b, sum(runnable_ns) r, sum(samples) n from nodes", result=place)
            expect((row["c"], row["b"]) == (totals["cpu_ns"], totals["blocked_ns"]), f"{row} {totals}")
            expect(row["n"] == sum(value for key, value in totals.items() if key.endswith("_samples")), f"{row} {totals}")
            by_source = {row["source"]: row["w"] for row in self.rows("select source, sum(weight) w from samples group by 1", result=place)}
            expect(by_source["cpu"] == totals["cpu_ns"] and by_source["blocked"] == totals["blocked_ns"], f"{by_source} {totals}")
            [row] = self.rows("select sum(self_real_ns) s from functions", result=place)
            expect(row["s"] == sum(function["self_ns"] for function in self.profile["functions"]), f"{row}")
            [row] = self.rows("select sum(cpu_ns) c from stacks", result=place)
            expect(row["c"] == totals["cpu_ns"], f"{row}")
            regions = {row["name"]: row for row in self.rows("select * from regions", result=place)}
            expect(regions["pthread_mutex_lock"]["calls"] == 40, f"{regions}")

    def functions(self):
        rows = {row["function"]: row for row in self.rows("select * from functions")}
        for function in self.profile["functions"]:
            row = rows[function["name"]]
            if sum(it["name"] == function["name"] for it in self.profile["functions"]) == 1:
                expect((row["self_real_ns"], row["total_real_ns"], row["module"]) ==
                       (function["self_ns"], function["inclusive_ns"], function["module"]), f"{row} {function}")

    def guide(self):
        """Each query of the guide is one, and has rows where this program has something to tell."""
        with open(os.path.join(self.source, "docs/guide/queries.md"), encoding="utf-8") as stream:
            text = stream.read()
        commands = re.findall(r"kymo sql R ('[^']*'|\"[^\"]*\")", text)
        expect(len(commands) == 10, f"{len(commands)} queries")
        for number, command in enumerate(commands, 1):
            rows = self.rows(shlex.split(command)[0])
            expect(rows or number in (6, 8, 10), f"query {number} has no rows: {command}")

    def reference(self):
        """Tables and columns are those of the reference."""
        with open(os.path.join(self.source, "docs/reference/database.md"), encoding="utf-8") as stream:
            text = stream.read()
        weights = {"cpu_ns", "blocked_ns", "runnable_ns", "events", "samples"}
        regions = set()
        with sqlite3.connect(self.scratch.path("a result/results.db")) as database:
            for table, columns in re.findall(r"^\| `(\w+)` \| [^|]* \| (.*) \|$", text, re.M):
                words = set(re.findall(r"`([a-z_]+)`", re.sub(r"\([^)]*\)", "", columns)))
                words |= weights if "*weights*" in columns else set()
                regions = words if table == "regions" else regions
                words = (words - {"regions"}) | regions if table == "calls" else words
                there = {row[1] for row in database.execute(f"pragma table_info(kymo_{table})")}
                expect(there == words, f"{table}: {there ^ words}")
            [(schema,)] = database.execute("select value from kymo_metadata where tag = 'schema'")
            expect(f"`{schema}`" in text, schema)
            expect(database.execute("select count(*) from rocpd_metadata").fetchone()[0], "no tables of rocpd")

    def formats(self):
        text = self.sql("select function, self_cpu_ns from functions where function = 'parse'").stdout.decode().splitlines()
        expect(text[0].split() == ["function", "self_cpu_ns"] and text[1].split()[0] == "parse", f"{text}")
        rows = list(csv.reader(io.StringIO(self.sql("select 'a,\"b\"' as x, null as y, 1.5 as z", "--format", "csv").stdout.decode())))
        expect(rows == [["x", "y", "z"], ['a,"b"', "", "1.5"]], f"{rows}")
        expect(self.rows("select 1 as x, null as y, 'é' as z") == [{"x": 1, "y": None, "z": "é"}], "JSON")
        ended = run([self.kymo.path, "report", "--table", "threads", "--top", "2", self.directory])
        expect(ended.status == 0 and len(ended.stdout.splitlines()) == 3, f"{ended}")

    def errors(self):
        for query, text in (("select * from sample", "no such table: sample (tables: metadata, "), ("selec 1", "syntax error"),
                            ("delete from kymo_samples", "results are read, not changed"), ("select 1; select 2", "one query"),
                            ("", "one query"), ("create table x(y)", "results are read, not changed")):
            expect(text in self.sql(query, status=125).stderr, f"{query}: {self.sql(query, status=125)}")
        ended = run([self.kymo.path, "report", "--table", "sample", self.directory])
        expect(ended.status == 125 and "no table 'sample'; there are" in ended.stderr, f"{ended}")
        other = self.scratch.path("a program.c")
        expect("is no database of kymo's" in self.sql("select 1", result=other, status=125).stderr, "a source file")
        expect("--format: 'cvs' is not table, csv or json; did you mean 'csv'?" in
               self.sql("select 1", "--format", "cvs", status=125).stderr, "a format")
        expect("takes a result and one query" in run([self.kymo.path, "sql", self.directory]).stderr, "no query")


def main():
    tap = Tap()
    require_tool("cc")
    with Scratch() as scratch:
        database = Database(Kymo(sys.argv[1]), sys.argv[2], scratch)
        tap.point("sums are those of profile.json", database.sums)
        tap.point("functions are those of profile.json", database.functions)
        tap.point("the guide's queries", database.guide)
        tap.point("the reference has all tables and columns", database.reference)
        tap.point("formats", database.formats)
        tap.point("errors", database.errors)
    tap.finish()


if __name__ == "__main__":
    main()
