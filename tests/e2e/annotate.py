#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""kymo annotate: a function's lines and instructions add up to its self time, stand where objdump and the source have
them, and what cannot be shown is said.

  annotate.py KYMO PROGRAMS
"""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

from harness import Kymo, Result, Scratch, Skipped, Tap, expect, require_tool, run

MAIN = r"""
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>
double parse_one(long n);
double parse_two(long n);
static volatile double sum;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static inline __attribute__((always_inline)) double add(double a, long i) { return a + (double)i * 1.5; }
__attribute__((noinline)) static void compute(long n)
{
	for (long i = 0; i < n; i++)
		sum = add(sum, i);	/* hot */
}
__attribute__((noinline)) static void touch(void)
{
	for (int k = 0; k < 10; k++) {
		char *pages = mmap(0, 4 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		for (long i = 0; i < 4 << 20; i += 4096)
			pages[i] = 1;
		munmap(pages, 4 << 20);
	}
}
static void *worker(void *x)
{
	for (int i = 0; i < 10; i++) {
		pthread_mutex_lock(&lock); /* waits */
		compute(3000000);
		pthread_mutex_unlock(&lock);
		usleep(1000);
	}
	return x;
}
int main(int argc, char **argv)
{
	(void)argv;
	do {
		pthread_t t[2];
		for (int i = 0; i < 2; i++)
			pthread_create(&t[i], 0, worker, 0);
		for (int i = 0; i < 2; i++)
			pthread_join(t[i], 0);
		touch();
		sum = parse_one(20000000) + parse_two(10000000);
	} while (argc > 1);
	return 0;
}
"""
# Two functions of one name, with a name of a terminal's escape in the source.
PARSE = r"""
static volatile double sum;
__attribute__((noinline)) static double parse(long n)
{
	for (long i = 0; i < n; i++)
		sum += (double)i; /* @ @ESCAPE@]0;title@BELL@ */
	return sum;
}
double @NAME@(long n) { return parse(n) + 1; }
"""
NAMES = r"""
namespace { struct inner { __attribute__((noinline)) double work(long n); }; volatile double sum; }
double inner::work(long n) { for (long i = 0; i < n; i++) sum += (double)i; return sum; }
namespace other { __attribute__((noinline)) double work(int n, char c) { for (int i = 0; i < n; i++) sum += i * c; return sum; } }
int main() { inner it; return it.work(60000000) + other::work(30000000, 'a') == 0; }
"""
PYTHON = """
def parse(n):
    total = 0
    for i in range(n):
        total += i * i % 7  # hot
    return total


def main():
    for _ in range(12):
        parse(200000)
        sorted(str(i) for i in range(20000))


main()
"""


class Annotate:
    def __init__(self, kymo, scratch):
        self.kymo, self.scratch = kymo, scratch
        self.source = scratch.path("main.c")
        self.write(self.source, MAIN)
        libraries = []
        for name in ("one", "two"):
            text = PARSE.replace("@NAME@", f"parse_{name}").replace("@ESCAPE@", "\033").replace("@BELL@", "\007")
            self.write(scratch.path(f"{name}.c"), text)
            self.build([f"{name}.c", "-shared", "-fPIC"], f"lib{name}.so")
            libraries.append(scratch.path(f"lib{name}.so"))
        self.program = self.build(["main.c", "-pthread", *libraries, f"-Wl,-rpath,{scratch.directory}"], "program")
        self.cpu = self.sampled("cpu", [self.program])
        self.wall = self.sampled("wall", [self.program], "--realtime")

    @staticmethod
    def write(path, text):
        with open(path, "w", encoding="utf-8") as stream:
            stream.write(text)

    def build(self, arguments, name, compiler="cc"):
        ended = run([compiler, "-O1", "-g", "-o", name, *arguments], cwd=self.scratch.directory)
        expect(ended.status == 0, f"{ended}")
        return self.scratch.path(name)

    def sampled(self, name, command, *options, **how):
        directory = self.scratch.path(name)
        ended = self.kymo.sample(command, directory, "--format", "json", "--sampling-freq", "1000", *options, **how)
        expect(ended.status == 0, f"{ended}")
        return directory

    def annotate(self, *arguments, status=0, columns="", cwd=None):
        ended = run([self.kymo.path, "annotate", *arguments], environment={"COLUMNS": columns}, cwd=cwd)
        expect(ended.status == status, f"{arguments}: {ended}")
        return ended

    def read(self, *arguments):
        return json.loads(self.annotate("--format", "json", *arguments).stdout)

    def self_of(self, directory, name, module=None, measure="cpu"):
        ended = self.kymo.report(directory, "--format", "json", "--measure", measure)
        unit = "self_events" if measure == "overflow" else "self_ns"
        return sum(row[unit] for row in json.loads(ended.stdout)["functions"]
                   if row["name"] == name and module in (None, os.path.basename(row["module"] or "")))

    def check_sums(self, directory, name, *arguments, module=None, measure="cpu"):
        found = self.read("--measure", measure, *arguments, directory)
        wanted = self.self_of(directory, name, module, measure)
        expect(found["function"] == name and found["self"] == wanted, f"{found['function']}: {found['self']}, profile.json {wanted}")
        lines = sum(line["self"] for source in found["sources"] for line in source["lines"])
        expect(lines + found["self_without_line"] == wanted, f"lines {lines} + {found['self_without_line']}, function {wanted}")
        code = sum(row["self"] for code in found["code"] for row in code["instructions"])
        expect(code + found["self_without_instruction"] == wanted,
               f"instructions {code} + {found['self_without_instruction']}, function {wanted}")
        return found

    def sums(self):
        for directory in (self.cpu, self.wall):
            for measure in ("cpu", "wall"):
                for name in ("compute", "add", "worker", "main"):
                    found = self.check_sums(directory, name, name, measure=measure)
                    if name in ("compute", "add"):
                        expect(found["self"] > 0 and found["self_without_line"] == 0 and found["self_without_instruction"] == 0,
                               f"{name}: {found['self_without_line']}, {found['self_without_instruction']}")

    def events(self):
        directory = self.sampled("events", [self.program], "--sampling-overflow", "--sampling-overflow-event", "page-faults",
                                 "--sampling-overflow-freq", "100", "--sampling-cputime", "off")
        found = self.check_sums(directory, "touch", "touch", measure="overflow")
        heaviest = max(found["sources"][0]["lines"], key=lambda line: line["self"])
        expect(found["unit"] == "events" and "pages[i] = 1" in heaviest["text"] and heaviest["self"] > 0, f"{heaviest}")

    def lines(self):
        """Each text is the line of the file; the hot one is the one that is marked."""
        with open(self.source, encoding="utf-8") as stream:
            text = stream.read().split("\n")
        source, = self.read("compute", self.cpu)["sources"]
        for line in source["lines"]:
            expect(line["text"] == text[line["line"] - 1], f"{line}")
        heaviest = max(source["lines"], key=lambda line: line["total"])
        expect("/* hot */" in heaviest["text"] and source["problem"] is None, f"{heaviest} {source['problem']}")
        waits = max(self.read("--measure", "wall", "worker", self.wall)["sources"][0]["lines"], key=lambda line: line["total"])
        expect("waits" in waits["text"] or "compute" in waits["text"], f"{waits}")

    def instructions(self):
        """objdump has an instruction at each address, with the same bytes' mnemonic in most."""
        require_tool("objdump")
        found = self.read("--asm", "compute", self.cpu)
        expect("sources" not in found, f"{list(found)}")
        code, = found["code"]
        listing = run(["objdump", "-d", "-M", "intel", "--no-show-raw-insn", self.program]).stdout.decode()
        known = dict(re.findall(r"^ +([0-9a-f]+):\t(\S+)", listing, re.M))
        same = [known.get(f"{row['address']:x}") == row["text"].split()[0] for row in code["instructions"]]
        missing = [row for row in code["instructions"] if f"{row['address']:x}" not in known]
        expect(not missing and code["instructions"], f"objdump has no instruction at {missing}")
        expect(sum(same) >= len(same) * 0.6, f"{sum(same)} of {len(same)} mnemonics are objdump's")
        # the cost of what is inlined is there, but is not the function's own
        with_inlined = sum(row["with_inlined"] for row in code["instructions"])
        wanted = self.self_of(self.cpu, "compute") + self.self_of(self.cpu, "add")
        expect(with_inlined == wanted, f"{with_inlined}, compute and add {wanted}")

    def text(self):
        text = self.annotate("compute", self.cpu).stdout.decode()
        expect(re.search(r"^compute \(program\)\n  CPU time: .* in it \(", text), text)
        expect(re.search(r"%  +\S+ \S+ +\d+ +sum = add\(sum, i\);", text), text)
        expect("Instructions of compute" in text and "; main.c:" in text and "; add main.c:" in text, text)
        expect("Instructions" not in self.annotate("--source", "compute", self.cpu).stdout.decode(), "--source")
        expect("Source" not in self.annotate("--asm", "compute", self.cpu).stdout.decode(), "--asm")
        widest = max(len(line) for line in self.annotate("--source", "compute", self.cpu, columns="60").stdout.decode().splitlines()[3:])
        expect(widest <= 60, f"{widest} columns")

    def escapes(self):
        """A source line cannot give a terminal orders."""
        text = self.annotate("parse@libone.so", self.cpu).stdout
        expect(b"/* @" in text and b"\033" not in text and b"\007" not in text, f"{text}")

    def ambiguous(self):
        ended = self.annotate("parse", self.cpu, status=125)
        for name in ("one", "two"):
            expect(re.search(rf"parse@lib{name}\.so +\(.*/{name}\.c:\d+\)", ended.stderr), ended.stderr)
        expect("means 2 functions" in ended.stderr and not ended.stdout, f"{ended}")
        for arguments in (("parse@libtwo.so",), ("two.c:parse",)):
            found = self.check_sums(self.cpu, "parse", *arguments, module="libtwo.so")
            expect(found["module"].endswith("libtwo.so"), f"{found['module']}")

    def unknown(self):
        ended = self.annotate("comptue", self.cpu, status=125)
        expect("no function 'comptue'" in ended.stderr and "did you mean 'compute'" in ended.stderr, ended.stderr)
        ended = self.annotate("arse", self.cpu, status=125)
        expect("'parse" in ended.stderr, ended.stderr)
        ended = self.annotate("compute", self.scratch.path("nowhere"), status=125)
        expect("nowhere" in ended.stderr, ended.stderr)
        for arguments in (["--measure", "time"], ["--format", "html"], ["--context", "-1"], ["--context", "many"]):
            ended = self.annotate(*arguments, "compute", self.cpu, status=125)
            expect(arguments[0] in ended.stderr and not ended.stdout, f"{ended}")
        ended = self.annotate("a", "b", "c", status=125)
        expect("takes a function and a result" in ended.stderr, ended.stderr)

    def hottest(self):
        found = self.read(self.cpu)
        expect(found["function"] in ("add", "parse"), f"{found['function']}")
        functions = json.loads(self.kymo.report(self.cpu, "--format", "json", "--measure", "cpu").stdout)["functions"]
        expect(found["function"] == functions[0]["name"], f"{found['function']}, profile.json {functions[0]['name']}")
        # real time: what waits in libc is the function's that called it
        expect(self.read("--measure", "wall", self.wall)["function"] in ("worker", "main"), "waiting")

    def names(self):
        require_tool("c++")
        self.write(self.scratch.path("names.cc"), NAMES)
        directory = self.sampled("names result", [self.build(["names.cc"], "names", compiler="c++")])
        ended = self.annotate("work", directory, status=125)
        expect("means 2 functions" in ended.stderr, ended.stderr)
        for name in ("other::work", "other::work(int, char)", "_ZN5other4workEic"):
            found = self.read(name, directory)
            expect(found["function"].startswith("other::work"), f"{name}: {found['function']}")
        found = self.read("(anonymous namespace)::inner::work", directory)
        expect("inner::work" in found["function"], f"{found['function']}")

    def python(self):
        script = self.scratch.path("script.py")
        self.write(script, PYTHON)
        directory = self.sampled("python", [sys.executable, "script.py"], cwd=self.scratch.directory)
        found = self.check_sums(directory, "parse", "script.py:parse")
        heaviest = max(found["sources"][0]["lines"], key=lambda line: line["total"])
        expect("# hot" in heaviest["text"] and heaviest["self"] > 0, f"{heaviest}")
        text = self.annotate("parse", directory, cwd="/").stdout.decode()
        expect("# hot" in text and "interpreted: its instructions are those of the interpreter" in text, text)

    def missing(self):
        """What was looked for, and where; the costs are there all the same."""
        place = self.scratch.path("moved")
        os.makedirs(place)
        for name in ("main.c", "program"):
            shutil.copy2(self.scratch.path(name), place)
        there = {name: self.scratch.path(name) for name in ("main.c", "program")}
        for path in there.values():
            os.rename(path, path + ".away")
        try:
            found = self.check_sums(self.cpu, "compute", "compute")
            text = self.annotate("compute", self.cpu, "--debug-path", "/nowhere").stdout.decode()
            for name, path in there.items():
                expect(re.search(rf"looked for {path}, /nowhere{path} \(--debug-path", text), f"{name}: {text}")
            expect(found["self_without_instruction"] == found["self"] > 0, f"{found['self_without_instruction']}")
            self.found_elsewhere(there)
            self.write(there["main.c"], MAIN + "\n")
            self.build(["-x", "c", os.devnull, "-shared", "-fPIC"], "program")
            text = self.annotate("compute", self.cpu).stdout.decode()
            expect("the file is another build than the one that ran" in text, text)
            expect("the file has changed since the run began" in text, text)
        finally:
            for path in there.values():
                os.replace(path + ".away", path)

    def found_elsewhere(self, there):
        root = self.scratch.path("root")
        for path in there.values():
            os.makedirs(os.path.dirname(root + path), exist_ok=True)
            shutil.copy2(path + ".away", root + path)
        found = self.read("compute", self.cpu, "--debug-path", f"/nowhere:{root}")
        expect(found["sources"][0]["read_from"] == root + there["main.c"] and found["self_without_instruction"] == 0, f"{found}")

    def stripped(self):
        """The symbols of a separate debug file name the function's bytes in the stripped one."""
        require_tool("objcopy", "strip")
        program = self.build(["main.c", "-pthread", self.scratch.path("libone.so"), self.scratch.path("libtwo.so"),
                              f"-Wl,-rpath,{self.scratch.directory}"], "stripped")
        for command in (["objcopy", "--only-keep-debug", program, program + ".debug"], ["strip", program],
                        ["objcopy", f"--add-gnu-debuglink={program}.debug", program]):
            expect(run(command).status == 0, f"{command}")
        directory = self.sampled("stripped result", [program])
        found = self.check_sums(directory, "compute", "compute")
        expect(found["self_without_instruction"] == 0 and found["self"] > 0, f"{found['self_without_instruction']}")

    def other_results(self):
        directory = self.scratch.path("attached")
        with subprocess.Popen([self.program, "again"]) as process:
            try:
                time.sleep(0.2)
                ended = run([self.kymo.path, "attach", "-p", str(process.pid), "-q", "-d", "1", "-o", directory, "--time-output=off"])
            finally:
                process.send_signal(signal.SIGKILL)
        expect(ended.status == 0, f"{ended}")
        self.check_sums(directory, "compute", "compute")
        killed = self.scratch.path("killed")
        run([self.kymo.path, "sample", "-q", "-o", killed, "--time-output=off", "--format", "json", "--", "sh", "-c",
             f"'{self.program}' again & sleep 0.7; kill -9 $!"])
        self.check_sums(killed, "compute", "compute")
        expect(Result(killed).json("profile.json")["functions"], "nothing of the killed one")

    def device(self):
        """Work of a device is in the total of the line that launched it."""
        mix = os.path.join(sys.argv[2], "opencl_mix")
        if not os.path.exists(mix) or not shutil.which("clinfo") or b"Platform #0" not in run(["clinfo", "-l"]).stdout:
            raise Skipped("no OpenCL device here")
        directory = self.sampled("device", [mix, "5"])
        found = self.read("--measure", "device", directory)
        # Which of its functions is the hottest one depends on what the kernels took.
        expect(re.match("run_kernel|one_round", found["function"]), f"{found}")
        expect(found["self"] == 0 < found["total"], f"{found}")
        lines = [line for source in found["sources"] for line in source["lines"] if line["total"]]
        expect(sum(line["total"] for line in lines) == found["total"], f"{lines}")
        self.check_sums(directory, "scale", "scale", measure="device")

    def nothing(self):
        directory = self.sampled("idle", ["/bin/true"])
        ended = run([self.kymo.path, "annotate", "--measure", "device", directory])
        expect(ended.status == 125 and not ended.stdout, f"{ended}")


def main():
    tap = Tap()
    require_tool("cc")
    with Scratch() as scratch:
        annotate = Annotate(Kymo(sys.argv[1]), scratch)
        for name, check in (("lines and instructions add up to profile.json", annotate.sums), ("events", annotate.events),
                            ("lines are those of the file", annotate.lines), ("instructions are objdump's", annotate.instructions),
                            ("text", annotate.text), ("escapes of others", annotate.escapes), ("ambiguous names", annotate.ambiguous),
                            ("unknown names and bad options", annotate.unknown), ("the hottest function", annotate.hottest),
                            ("names of C++", annotate.names), ("Python", annotate.python), ("missing files", annotate.missing),
                            ("a stripped file", annotate.stripped), ("attached and killed programs", annotate.other_results),
                            ("work of a device", annotate.device), ("nothing to annotate", annotate.nothing)):
            tap.point(name, check)
    tap.finish()


if __name__ == "__main__":
    main()
