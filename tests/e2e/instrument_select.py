#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""kymo instrument: which functions are chosen, the lists, and that runs record just these.

    instrument_select.py KYMO
"""
import json
import os
import sys

from harness import Kymo, Scratch, Tap, expect, require_tool, run

SOURCE = r"""
#include <cstdio>
#include <cstdlib>
#include <string>
#include <unistd.h>
#include <sys/wait.h>
#define KEEP __attribute__((noinline))
namespace work {
volatile long sink;
KEEP void add(int value) { sink += value; for (int i = 0; i < value; i++) sink += i * value; }
KEEP void add(double value) { sink += (long)value; sink *= 3; sink ^= 5; }
struct Shape { KEEP virtual int area(int side) const { sink += side; return side * side + (int)sink % 2; } virtual ~Shape() {} };
struct Square : Shape { KEEP int area(int side) const override { sink -= side; return side * side; } };
}
static KEEP int hidden_step(int n) { work::sink += n; return n + (int)(work::sink & 1); }
extern "C" KEEP int plain_c(int n) { return hidden_step(n) + hidden_step(n + 1); }
extern "C" KEEP void *allocates(int n) { void *p = malloc(n + 1); work::sink += n; return p; }
int main(int argc, char **argv)
{
	work::Square square;
	work::Shape *shape = &square;
	for (int i = 0; i < 10; i++) { work::add(i); work::add(1.5); shape->area(i); plain_c(i); free(allocates(i)); }
	if (argc > 1) { pid_t pid = fork(); if (!pid) { execl(argv[0], argv[0], (char *)0); _exit(127); } int s; waitpid(pid, &s, 0); return WEXITSTATUS(s); }
	return 7;
}
"""

ENDINGS = r"""
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
static volatile int sum;
__attribute__((noinline, noclone)) int counted(int x) { for (int i = 0; i < 3; i++) sum += x; return sum + x; }
int main(int argc, char **argv)
{
	pid_t child = argv[2] ? fork() : 0;
	if (child) return wait(NULL) != child;
	for (int i = 0; i < 1000; i++) counted(i);
	if (!strcmp(argv[1], "_exit")) _exit(0);
	if (!strcmp(argv[1], "_Exit")) _Exit(0);
	if (!strcmp(argv[1], "quick_exit")) quick_exit(0);
	if (!strcmp(argv[1], "kill")) raise(SIGKILL);
	if (!strcmp(argv[1], "exec")) execl("/bin/true", "true", NULL);
	return argc < 2;
}
"""


class Tests:
    def __init__(self, kymo, scratch):
        self.kymo = Kymo(kymo)
        self.scratch = scratch
        self.program = scratch.path("subject")
        self.count = 0
        source = scratch.path("subject.cc")
        with open(source, "w", encoding="utf-8") as stream:
            stream.write(SOURCE)
        built = run(["g++", "-O1", "-g", source, "-o", self.program])
        expect(built.status == 0, built.stderr)

    def instrument(self, *options, arguments=(), program=None, status=None, quiet=("-q",)):
        self.count += 1
        directory = self.scratch.path(f"out{self.count}")
        line = [self.kymo.path, "instrument", *quiet, "--output", directory, "--time-output=off",
                f"--plan-cache={self.scratch.path('cache')}", *options, "--", program or self.program, *arguments]
        ended = run(line)
        wanted = (0 if "--simulate" in options else 7) if status is None else status
        expect(ended.status == wanted, f"status {ended.status}: {' '.join(line)}\n{ended.stderr}")
        return directory, ended

    def listed(self, directory, name="instrumented", module="subject", key="function_signature"):
        with open(f"{directory}/instrumentation/{name}.json", encoding="utf-8") as stream:
            document = json.load(stream)
        expect(document["schema"] == "kymo.functions", document["schema"])
        for entry in document["modules"]:
            if os.path.basename(entry["module"]) == module:
                return {function[key]: function for function in entry["functions"]}
        return {}

    def chosen(self, *options):
        directory, _ = self.instrument("--simulate", *options)
        return set(self.listed(directory))

    def reason(self, function, *options):
        directory, _ = self.instrument("--simulate", *options)
        return self.listed(directory, "excluded").get(function, {}).get("reason")

    def calls(self, directory):
        """{name: calls} of the profile's regions."""
        with open(f"{directory}/profile.txt", encoding="utf-8") as stream:
            text = stream.read()
        found = {}
        section = text.split("REGIONS: wall_clock", 1)[1].split("REGIONS:", 1)[0] if "REGIONS: wall_clock" in text else ""
        for line in section.splitlines():
            words = line.split(" wall_clock ")
            if len(words) < 2:
                continue
            label, count, _ = words[0].rsplit(None, 2)
            found[label.strip()] = found.get(label.strip(), 0) + int(count)
        return found

    # ---- points ----

    def default(self):
        directory, _ = self.instrument("--simulate")
        functions = set(self.listed(directory))
        for name in ("main", "work::add(int)", "work::add(double)", "plain_c", "hidden_step(int)", "work::Square::area(int) const"):
            expect(name in functions, f"{name} is not among {functions}")
        excluded = self.listed(directory, "excluded")
        expect(all(entry.get("reason") and entry.get("reason_text") for entry in excluded.values()), "a reason is missing")
        expect("_start" in excluded and "_start" not in functions, "_start")
        available = set(self.listed(directory, "available"))
        expect(functions <= available, "instrumented, but not available")
        for name in ("available", "instrumented", "excluded", "overlapping"):
            expect(os.path.exists(f"{directory}/instrumentation/{name}.txt"), name)

    def names_and_signatures(self):
        expect(self.chosen("-R", r"^work::add$") == {"work::add(int)", "work::add(double)"}, "plain name")
        expect(self.chosen("-R", r"^work::add\(int\)$") == {"work::add(int)"}, "signature")
        expect(self.chosen("-R", "^_ZN4work3addEd$") == {"work::add(double)"}, "mangled")
        expect(self.chosen("-R", "plain_c", "-R", "^main$") == {"plain_c", "main"}, "two expressions")
        found = self.chosen("--label", "args,file,line", "-R", r"subject\.cc:10\]")
        expect(len(found) == 1 and "work::add(int) [" in found.pop(), "file and line")

    def rules(self):
        expect(self.chosen("-i", "100000", "--min-instructions-loop", "100000") == {"main"}, "main has no minimum")
        expect("work::add(int)" in self.chosen("-r", "100000", "--min-address-range-loop=0"), "functions with loops")
        expect(self.chosen("-i", "100000", "-I", "plain_c", "--min-instructions-loop", "100000") == {"main", "plain_c"}, "-I")
        expect(self.reason("plain_c", "-I", "plain_c", "-E", "plain_c") == "excluded", "-E beats -I")
        expect(self.reason("plain_c", "-ME", "subject") == None and not self.chosen("-ME", "subject"), "-ME")
        expect("main" in self.chosen("-MR", "subject", "-R", "nothing"), "-MR and -R are joined")
        expect(self.chosen("-MR", "nowhere", "-R", "^plain_c$") == {"plain_c"}, "-MR does not hide -R")
        expect(self.chosen("-i", "100000", "--min-instructions-loop", "100000", "--caller-include", "^malloc$")
               == {"main", "allocates"}, "callers of malloc")
        expect("plain_c" in self.chosen("-i", "100000", "--caller-include", "^hidden_step$"), "callers of a local function")
        expect("hidden_step(int)" in self.chosen("--linkage", "local"), "linkage")
        expect(self.reason("plain_c", "--linkage", "local") == "linkage", "other linkage")
        expect(self.reason("plain_c", "--visibility", "hidden") == "visibility", "visibility")

    def lists_go_back_in(self):
        directory, _ = self.instrument("--simulate", "-R", "^work::add$")
        again, _ = self.instrument("--load-instr", f"{directory}/instrumentation/instrumented.json")
        expect(set(self.listed(again)) == {"work::add(int)", "work::add(double)"}, self.listed(again).keys())
        names = self.scratch.path("names")
        with open(names, "w", encoding="utf-8") as stream:
            stream.write("# by hand\nplain_c\nwork::add(int)  # one of two\n")
        again, _ = self.instrument("--load-instr", names)
        expect(set(self.listed(again)) == {"work::add(int)", "plain_c"}, self.listed(again).keys())
        expect(self.listed(again, "excluded")["main"]["reason"] == "not-listed", "reason")

    def what_was_named_and_has_no_effect(self):
        names = self.scratch.path("names")
        for text, told in (("plain_c\nplian_c\n", "1 of its 2 functions were not found, such as 'plian_c'"),
                           ("plian_c\n", "none of its 1 functions was found, such as 'plian_c'"),
                           ("# plain_c\n", "no functions on the list"), ("plain_c\nwork::add(int)\n", None)):
            with open(names, "w", encoding="utf-8") as stream:
                stream.write(text)
            _, ended = self.instrument("--simulate", "--load-instr", names, quiet=())
            expect(f"warning: --load-instr: {told}" in ended.stderr if told else "warning" not in ended.stderr,
                   f"{text}: {ended.stderr}")
        _, ended = self.instrument("--selected-regions", "plain_c,step", quiet=())
        expect("warning: --selected-regions: 'plain_c' is an instrumented function" in ended.stderr and
               "'step'" not in ended.stderr, ended.stderr)
        for copy in (self.program, self.scratch.path("link")):
            if copy != self.program:
                os.symlink(self.program, copy)
            _, ended = self.instrument("-o", copy, "--force", status=125)
            expect("is the file to be instrumented" in ended.stderr, ended.stderr)

    def runs_record_what_is_chosen(self):
        directory, _ = self.instrument("-R", "^work::add|^plain_c$")
        calls = self.calls(directory)
        expect(calls.get("plain_c") == 10 and "main" not in calls, calls)
        expect(calls.get("work::add(int)", 0) == 10 and calls.get("work::add(double)", 0) == 10, calls)

    def children_follow(self):
        directory, _ = self.instrument("-R", "^plain_c$", arguments=("again",))
        expect(self.calls(directory).get("plain_c") == 20, self.calls(directory))

    def counted(self):
        directory, _ = self.instrument("--count", "plain_c")
        expect(self.listed(directory)["plain_c"]["mode"] == "count", "mode")
        expect("plain_c" not in self.calls(directory) or self.calls(directory)["plain_c"] == 10, self.calls(directory))

    def left_out_as_other_regions_are(self):
        """Settings of regions hold for calls as well."""
        directory, _ = self.instrument("-R", "^plain_c$", "--disable-categories=host")
        expect("plain_c" not in self.calls(directory), self.calls(directory))
        directory, _ = self.instrument("-R", "^(main|plain_c)$", "--max-depth=1")
        calls = self.calls(directory)
        expect(calls.get("main") == 1 and "plain_c" not in calls, calls)
        directory, _ = self.instrument("-R", "^plain_c$", "--throttle-count=4", "--throttle-value=1000000000")
        expect(self.calls(directory).get("plain_c") == 4, self.calls(directory))
        summary = self.kymo.report(directory).stdout.decode()
        expect("4 calls recorded of 1 function in 1 module\n" in summary, summary)

    def counted_to_the_end(self):
        """However the process ends, where kymo can know."""
        source, program = self.scratch.path("endings.c"), self.scratch.path("endings")
        with open(source, "w", encoding="utf-8") as stream:
            stream.write(ENDINGS)
        built = run(["gcc", "-O1", source, "-o", program])
        expect(built.status == 0, built.stderr)
        for end in ("return", "_exit", "_Exit", "quick_exit", "exec"):
            for child in ((), ("child",)):
                directory, _ = self.instrument("--count", "^counted$", program=program, arguments=(end, *child), status=0)
                with open(f"{directory}/profile.json", encoding="utf-8") as stream:
                    counts = {one["name"]: one["calls"] for one in json.load(stream).get("counted_functions", ())}
                expect(counts == {"counted": 1000}, f"{end} {child}: {counts}")

    def killed(self):
        """By a signal: the summary says that counts are missing, and says nothing where none can be."""
        for options, missing in ((("--count=^counted$",), True), ((), False)):
            directory, _ = self.instrument(*options, program=self.scratch.path("endings"), arguments=("kill",),
                                           status=-9)
            summary = self.kymo.report(directory).stdout.decode()
            expect(("made in the last second are missing" in summary) == missing, summary)

    def printed(self):
        _, ended = self.instrument("--simulate", "-R", "^plain_c$", "--print-instrumented", "pair+")
        expect(ended.stdout.decode() == f"[{self.program}] plain_c\n", ended.stdout)
        _, ended = self.instrument("--simulate", "-R", "^plain_c$", "--print-instrumented", "modules")
        expect(ended.stdout.decode() == f"{self.program}\n", ended.stdout)
        _, ended = self.instrument("-R", "^plain_c$", "--print-instrumented", "functions")
        expect(not ended.stdout and "plain_c" in ended.stderr, "the program's output is its own")

    def long_paths(self):
        """The session's path is longer than that of a socket can be."""
        directory = self.scratch.path("/".join(["long" * 12] * 4))
        ended = run([self.kymo.path, "instrument", "-q", "--output", directory, "--time-output=off", "-R", "plain_c", "--",
                     self.program])
        expect(ended.status == 7, ended.stderr)
        expect(self.calls(directory).get("plain_c") == 10, self.calls(directory))
        expect(not [name for name in os.listdir(directory) if name == "plans"], "the socket is left")

    def self_contained(self):
        """The session needs neither the cache nor the program afterwards."""
        directory, _ = self.instrument("-R", "^plain_c$")
        files = os.listdir(f"{directory}/instrumentation")
        expect(any(f.endswith(".plan") for f in files) and any(f.endswith(".modes") for f in files), files)

    def in_memory(self):
        directory, _ = self.instrument("-R", "^plain_c$", "--use-temporary-files=off")
        expect(self.calls(directory).get("plain_c") == 10, self.calls(directory))


def main():
    require_tool("g++")
    tap = Tap()
    with Scratch() as scratch:
        tests = Tests(sys.argv[1], scratch)
        for name in ("default", "names_and_signatures", "rules", "lists_go_back_in",
                     "what_was_named_and_has_no_effect", "runs_record_what_is_chosen",
                     "children_follow", "counted",
                     "left_out_as_other_regions_are", "counted_to_the_end", "killed", "printed", "long_paths",
                     "self_contained", "in_memory"):
            tap.point(name.replace("_", " "), getattr(tests, name))
    tap.finish()


main()
