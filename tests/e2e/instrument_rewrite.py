#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""Programs and libraries that are rewritten (kymo instrument -o): they do their work as before, with
and without being recorded, also after strip, and tools take them for what they are.

usage: instrument_rewrite.py KYMO PROGRAM-DIRECTORY     (TAP)
"""
import glob
import os
import re
import resource
import shutil
import stat
import sys

from harness import Kymo, Result, Scratch, Skipped, Tap, expect, require_tool, run

LIBRARIES = "/usr/lib/x86_64-linux-gnu"
SQL = ("with recursive c(x) as (select 1 union all select x+1 from c where x<5000) "
       "select sum(x*x), count(*), group_concat(x % 7) from c;")
PYTHON = ("import json, re, hashlib\n"
          "try: raise ValueError('q')\n"
          "except ValueError as error: print(error)\n"
          "print(sum(i * i for i in range(9999)), json.dumps({'a': [1]}), re.sub('a+', 'b', 'caat'))\n"
          "print(hashlib.sha256(b'x').hexdigest())")
PERL = "my %h; $h{$_ % 7} += $_ for 1..9999; print map {\"$_=$h{$_},\"} sort keys %h; eval { die 1 }; print $@"
BASH = "for i in {1..200}; do s=$((s+i)); done; echo $s; (echo sub; exit 3); echo $?; echo $(echo hi | tr a-z A-Z)"
NODE = ("let s=0; for (let i=0;i<1e5;i++) s+=i; console.log(s); try { throw new Error('e') } "
        "catch (e) { console.log(e.message) }; console.log(require('crypto').createHash('sha1').update('x')"
        ".digest('hex'))")
# program: arguments, input
WORK = {
    "xz": (["-c", "-9"], b"some text, " * 9999),
    "sqlite3": ([":memory:", SQL], b""),
    "perl": (["-e", PERL], b""),
    "bash": (["-c", BASH], b""),
    "openssl": (["dgst", "-sha256"], b"text"),
    "python3": (["-c", PYTHON], b""),
    "gdb": (["-q", "--batch", "-nx", "-ex", "p 6*7", "-ex", "python print(1+1)"], b""),
    "node": (["-e", NODE], b""),
}
# Programs that break where libkymo does not see what they do with signals, threads and processes. It
# was not preloaded: their calls have to be led to it.
HAZARDS = {
    "exec_chain": ["15", "10"], "spawn": [], "fork": [], "eintr": [], "environments": [], "privileges": [],
    "seccomp": [], "signal_blocked": [], "signal_readback": [], "signal_signalfd": [], "signal_sigwait": [],
    "thread_ends": [],
}
EXCEPTIONS = """
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
__attribute__((noinline)) int inner(int n) { if (n == 0) throw std::runtime_error("thrown"); return inner(n - 1) + 1; }
__attribute__((noinline)) int outer(int n) { try { return inner(n); } catch (std::runtime_error &e) { puts(e.what()); return n; } }
int main(int count, char **) { int sum = 0; for (int i = 0; i < 100; i++) sum += outer(count * 3); printf("%d\\n", sum); }
"""
PLUGIN = "__attribute__((noinline)) int twice(int n) { __asm__ volatile(\"\"); return 2 * n; } int later(int n) { return twice(n); }"
OPENS = """
#include <dlfcn.h>
#include <stdio.h>
int main(int count, char **arguments)
{
	int sum = 0;
	for (int i = 0; i < 20; i++) {
		void *library = dlopen(arguments[1], RTLD_NOW);
		int (*later)(int) = library ? (int (*)(int))dlsym(library, "later") : 0;
		for (int j = 0; later && j < 50; j++)
			sum += later(j);
		if (count > 2)
			dlclose(library);
	}
	printf("%d\\n", sum);
}
"""

# With work in a constructor, before main; with an argument it makes the mistake that AddressSanitizer finds.
SANITIZED = """
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long sum;
__attribute__((noinline)) void step(int n)
{
	char *memory = malloc(n + 1);
	memory[n] = n & 3;
	pthread_mutex_lock(&lock);
	sum += memory[n];
	pthread_mutex_unlock(&lock);
	free(memory);
}
__attribute__((constructor, noinline)) void early(void)
{
	step(1);
}
static void *work(void *argument)
{
	for (int i = 0; i < 10000; i++)
		step(i % 300);
	return argument;
}
int main(int count, char **arguments)
{
	pthread_t threads[4];
	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, work, NULL);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	printf("%ld\\n", sum);
	if (count > 1) {
		fflush(stdout);
		free(arguments = malloc(9));
		return arguments[0] != NULL;
	}
	return 0;
}
"""


def in_path(name):
    require_tool(name)
    path = os.path.realpath(shutil.which(name))
    with open(path, "rb") as file:
        if file.read(4) != b"\x7fELF":
            path = {"python3": os.path.realpath("/usr/bin/python3")}.get(name, path)
    with open(path, "rb") as file:
        if file.read(4) != b"\x7fELF":
            raise Skipped(f"{name} is a script here")
    return path


def clang_libraries():
    """Where clang's shared run times are."""
    if not shutil.which("clang"):
        return "/"
    ended = run(["clang", "-print-file-name=libclang_rt.asan-x86_64.so"])
    return os.path.dirname(ended.stdout.decode()) or "/"


class Tests:
    def __init__(self, scratch):
        self.kymo, self.scratch = Kymo(sys.argv[1]), scratch

    def rewrite(self, path, name, *options):
        out = self.scratch.path(name)
        ended = run([self.kymo.path, "instrument", "-o", out, *options, "--", path], timeout=300,
                    cwd=self.scratch.directory)
        expect(ended.status == 0, f"{ended}")
        return out

    def same_work(self, program, bare, arguments, stdin, **how):
        """Alone, and recorded by itself."""
        for environment in ({}, {"KYMO_ENABLED": "on"}):
            merged = dict(how.get("environment", {}), **environment)
            ended = run([program] + arguments, stdin, environment=merged, timeout=200,
                        cwd=self.scratch.directory)
            expect((ended.status, ended.stdout, ended.stderr) ==
                   (bare.status, bare.stdout, bare.stderr), f"{program} {environment}: {ended}\nnot {bare}")

    def calls(self, name):
        """How many calls are recorded in the result of a program's own session."""
        directory = os.path.join(self.scratch.directory, f"kymo-{name}-output", "latest")
        expect(os.path.isdir(directory), f"no {directory}")
        ended = run([self.kymo.path, "report", directory], timeout=200)
        found = re.search(r"([0-9,]+) calls? recorded of", ended.stderr + ended.stdout.decode())
        return int(found.group(1).replace(",", "")) if found else 0

    def program(self, name):
        path = in_path(name)
        arguments, stdin = WORK[name]
        bare = run([path] + arguments, stdin, timeout=200)
        new = self.rewrite(path, name)
        before, after = os.stat(path), os.stat(new)
        expect(stat.S_IMODE(before.st_mode) == stat.S_IMODE(after.st_mode) and
               before.st_uid == after.st_uid, f"{before} became {after}")
        self.same_work(new, bare, arguments, stdin)
        expect(self.calls(name) > 10, "no calls are recorded")
        self.tools(path, new)
        run(["strip", "-o", new + "-stripped", new])
        self.same_work(new + "-stripped", bare, arguments, stdin)
        expect(self.calls(name + "-stripped") > 10, "no calls are recorded after strip")

    def tools(self, old, new):
        complaints = run(["readelf", "-aW", new]).stderr
        expect(not complaints or complaints == run(["readelf", "-aW", old]).stderr, complaints)
        ended = run(["ldd", new])
        expect(ended.status == 0 and b"libkymo-dl" in ended.stdout and
               b"not found" not in ended.stdout, f"{ended}")
        ids = [re.findall(r"Build ID: (\w+)", run(["readelf", "-nW", path]).stdout.decode())
               for path in (old, new)]
        expect(ids[0] == ids[1], f"build-ids {ids}")
        copy = new + "-copied"
        expect(run(["objcopy", new, copy]).status == 0 and ".kymo.plan" in
               run(["readelf", "-SW", copy]).stdout.decode(), "objcopy")
        os.unlink(copy)

    def recorded(self, name, arguments, frequency):
        """A hazard program that records itself; what it did alone."""
        path = os.path.join(sys.argv[2], name)
        bare = run([path] + arguments, timeout=200)
        new = self.rewrite(path, name)
        self.same_work(new, bare, arguments, b"", environment={"KYMO_SAMPLING_FREQ": str(frequency)})
        return bare

    def hazard(self, name):
        self.recorded(name, HAZARDS[name], 2000)

    def executes(self):
        """No program that it starts is ended by a sample, and the results tell of each."""
        plugin = os.path.join(os.path.abspath(sys.argv[2]), "libexecutes_plugin.so")
        bare = self.recorded("executes", ["40", plugin], 10000)
        expect(bare.status == 0, f"{bare}")
        directory = os.path.join(self.scratch.directory, "kymo-executes-output", "latest")
        ended = run([self.kymo.path, "report", directory, "--format=json", "-o", directory], timeout=200)
        expect(ended.status == 0, f"{ended}")
        processes = Result(directory).processes()
        executed = [process for process in processes if process["state"] == "replaced_by_exec"]
        # six ways by fork a round; a library's constructors run before its calls are led anywhere
        expect(len(executed) >= 6 * 40, f"{len(executed)} of {len(processes)} processes ended by exec")
        expect(len(processes) - len(executed) <= 1 + 6 * 40,
               f"{[process['state'] for process in processes]}")

    def library(self):
        path = os.path.join(LIBRARIES, "libsqlite3.so.0")
        if not os.path.exists(path):
            raise Skipped("libsqlite3 is not installed")
        sqlite3 = in_path("sqlite3")
        arguments, stdin = WORK["sqlite3"]
        bare = run([sqlite3] + arguments, stdin)
        new = self.rewrite(os.path.realpath(path), "libsqlite3.so.0")
        self.same_work(sqlite3, bare, arguments, stdin,
                       environment={"LD_LIBRARY_PATH": os.path.dirname(new)})
        expect(self.calls("sqlite3") > 1000, "no calls are recorded")

    def compiler(self):
        libraries = glob.glob(os.path.join(LIBRARIES, "libLLVM-14.so.1"))
        if not libraries or not shutil.which("clang"):
            raise Skipped("clang with libLLVM-14 is not installed")
        source, objects = self.scratch.path("one.c"), [self.scratch.path(n) for n in ("a.o", "b.o")]
        with open(source, "w", encoding="ascii") as file:
            file.write("int f(int n) { int s = 0; for (int i = 0; i < n; i++) s += i * i; return s; }\n")
        new = self.rewrite(os.path.realpath(libraries[0]), "libLLVM-14.so.1")
        for output, environment in zip(objects, ({}, {"LD_LIBRARY_PATH": os.path.dirname(new)})):
            ended = run(["clang", "-O2", "-c", source, "-o", output], environment=environment)
            expect(ended.status == 0, f"{ended}")
        contents = [open(output, "rb").read() for output in objects]
        os.unlink(new)
        expect(contents[0] == contents[1], "the compiler makes something else")

    def exceptions(self):
        """Without libkymo's own tables: it is opened by libkymo-dl and out of sight."""
        require_tool("g++")
        source = self.scratch.path("exceptions.cc")
        with open(source, "w", encoding="ascii") as file:
            file.write(EXCEPTIONS)
        for name, options in {"pie": [], "fixed": ["-no-pie"], "stripped": ["-s"],
                              "lld": ["-fuse-ld=lld"], "gold": ["-fuse-ld=gold"]}.items():
            program = self.scratch.path("exceptions-" + name)
            if run(["g++", "-O1", *options, source, "-o", program]).status:
                continue
            new = self.rewrite(program, "rewritten-" + name)
            self.same_work(new, run([program]), [], b"")
            expect(self.calls("rewritten-" + name) > 500, f"{name}: no calls are recorded")

    def sanitized(self, *compiler):
        """Their run times look at how they are loaded, and their functions are not to be called by kymo."""
        require_tool(compiler[0])
        name = re.sub(r"\W+", "-", "".join(compiler))
        source, built = self.scratch.path(name + ".c"), self.scratch.path(name + "-built")
        with open(source, "w", encoding="ascii") as file:
            file.write(SANITIZED)
        ended = run([*compiler, "-g", "-O1", "-pthread", source, "-o", built])
        if ended.status != 0:
            raise Skipped(f"{' '.join(compiler)} cannot build it: {ended.stderr[-300:]}")
        bare = run([built])
        if bare.status != 0:
            raise Skipped(f"it does not run here: {bare.stderr[-300:]}")
        new = self.rewrite(built, name)
        for _ in range(5):
            self.same_work(new, bare, [], b"", environment={"KYMO_SAMPLING_FREQ": "5000"})
            # with ThreadSanitizer, functions take their return address off the stack: few can be patched
            expect(self.calls(name) > (0 if "-fsanitize=thread" in compiler else 40000), f"{self.calls(name)} calls")
        if "-fsanitize=address" in compiler:
            for environment in ({}, {"KYMO_ENABLED": "on"}):
                ended = run([new, "wrong"], environment=environment, cwd=self.scratch.directory)
                expect(ended.status == 1 and "heap-use-after-free" in ended.stderr and
                       ended.stdout == bare.stdout, f"{ended}")

    def giants(self):
        """With more than 2 GiB of data nothing behind the file is in reach of its code, and nothing in front of it can
        be loaded: the run time makes room for the stubs."""
        require_tool("g++")
        source = self.scratch.path("giant.cc")
        with open(source, "w", encoding="ascii") as file:
            file.write("static char big[3UL << 30]; extern \"C\" __attribute__((noinline)) int touch(unsigned long i)"
                       "{ big[i] = 3; return big[i / 2] + i % 7; }\n" +
                       EXCEPTIONS.replace("int sum = 0;", "int sum = touch(sizeof(big) - count);"))
        for name, options in {"pie": ["-mcmodel=large"], "fixed": ["-no-pie", "-fno-pie", "-mcmodel=large"],
                              "medium": ["-mcmodel=medium"], "medium-fixed": ["-no-pie", "-mcmodel=medium"]}.items():
            program = self.scratch.path("giant-" + name)
            built = run(["g++", "-O1", *options, source, "-o", program])
            expect(built.status == 0, f"{name}: {built.stderr}")
            bare = run([program])
            expect(bare.status == 0, f"{name}: {bare}")
            new = self.rewrite(program, "new-giant-" + name)
            self.same_work(new, bare, [], b"")
            expect(self.calls("new-giant-" + name) > 500, f"{name}: no calls are recorded")
            run(["strip", "-o", new + "-stripped", new])
            self.same_work(new + "-stripped", bare, [], b"")
            expect(self.calls(f"new-giant-{name}-stripped") > 500, f"{name}: no calls are recorded after strip")
            directory = self.scratch.path("giant-session")
            ended = self.kymo.sample([new], directory, quiet=False)
            expect((ended.status, ended.stdout) == (0, bare.stdout), f"{name}: {ended}")
            expect("calls recorded of" in ended.stderr, ended.stderr)
            shutil.rmtree(directory)

    def opened_giant(self):
        """A library with that much data, closed and opened again."""
        program, plugin = self.scratch.path("opens-giant"), self.scratch.path("libgiant.so")
        for path, source, options in ((program, OPENS, []), (plugin, "static char big[3UL << 30]; " + PLUGIN.replace(
                "return 2 * n", "return 2 * n + n / 3").replace(
                "return twice(n)", "big[(3UL << 30) - 1 - n] = 1; return twice(n)"),
                ["-shared", "-fPIC", "-mcmodel=large"])):
            with open(path + ".c", "w", encoding="ascii") as file:
                file.write(source)
            ended = run(["gcc", "-O1", *options, path + ".c", "-o", path])
            expect(ended.status == 0, f"{ended}")
        new = self.rewrite(plugin, "libnewgiant.so", "-I", "twice|later")
        for arguments in ([new], [new, "close"]):
            bare = run([program, plugin, *arguments[1:]])
            expect(bare.status == 0 and bare.stdout != b"0\n", f"{bare}")
            self.same_work(program, bare, arguments, b"")
            expect(self.calls("opens-giant") >= 1000, f"{arguments}: no calls are recorded")

    def opened_later(self):
        """A library of a program that is not rewritten; also closed and opened again."""
        program, plugin = self.scratch.path("opens"), self.scratch.path("libplugin.so")
        for path, source, options in ((program, OPENS, []), (plugin, PLUGIN, ["-shared", "-fPIC"])):
            with open(path + ".c", "w", encoding="ascii") as file:
                file.write(source)
            ended = run(["gcc", "-O1", *options, path + ".c", "-o", path])
            expect(ended.status == 0, f"{ended}")
        new = self.rewrite(plugin, "libnew.so", "-I", "twice|later")
        for arguments in ([new], [new, "close"]):
            bare = run([program, plugin, *arguments[1:]])
            self.same_work(program, bare, arguments, b"")
            expect(self.calls("opens") >= 1000, "no calls are recorded")
            directory = self.scratch.path("opens-session")
            ended = run([self.kymo.path, "instrument", "-q", "--output", directory, "-I", "main",
                         "--time-output=off", "--", program, *arguments])
            expect((ended.status, ended.stdout) == (0, bare.stdout), f"{ended}")
            with open(os.path.join(directory, "profile.txt"), encoding="utf-8") as file:
                text = file.read()
            expect("later" in text and "[0x" not in text, text)
            shutil.rmtree(directory)

    def places(self):
        """Wherever the kernel puts it."""
        new = self.rewrite(in_path("xz"), "xz-places")
        for _ in range(200):
            ended = run([new, "--version"])
            expect(ended.status == 0, f"{ended}")
        ended = run(["setarch", "-R", new, "--version"])
        expect(ended.status == 0, f"{ended}")

    def limited(self):
        """Where the limit of file sizes is too small, nothing is left, and kymo says so."""
        output = self.scratch.path("limited")
        ended = run([self.kymo.path, "instrument", "-q", "-o", output, "--", in_path("xz")],
                    preexec=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)))
        expect(ended.status == 125, f"status {ended.status}: {ended.stderr}")
        expect(re.fullmatch("kymo: error: cannot write .*: File too large\n", ended.stderr), ended.stderr)
        expect(not glob.glob(output + "*"), f"left behind: {glob.glob(output + '*')}")

    def refused(self):
        static, script = self.scratch.path("static"), self.scratch.path("script")
        out = self.scratch.path("refused")
        source = self.scratch.path("static.c")
        with open(source, "w", encoding="ascii") as file:
            file.write("int main(void) { return 0; }\n")
        with open(script, "w", encoding="ascii") as file:
            file.write("#!/bin/sh\n")
        run(["gcc", "-static", source, "-o", static])
        new = self.rewrite(in_path("xz"), "xz-once")
        for path, words in ((static, "static"), (script, "script"), (new, "already"),
                            (os.path.join(LIBRARIES, "libc.so.6"), ""), (source, "")):
            ended = run([self.kymo.path, "instrument", "-o", out, "--", path],
                        cwd=self.scratch.directory)
            expect(ended.status not in (0, -11) and words in ended.stderr, f"{path}: {ended}")
            expect(not glob.glob(out + "*"), f"{path}: something was written")

    def places_taken(self):
        """What is there and no regular file stays what it is, also with --force."""
        fifo, directory, link = (self.scratch.path(name) for name in ("fifo", "directory", "to-null"))
        os.mkfifo(fifo)
        os.mkdir(directory)
        os.symlink("/dev/null", link)
        taken, device = [fifo, directory, link], self.scratch.path("device")
        try:
            os.mknod(device, stat.S_IFCHR | 0o600, os.makedev(1, 3))
            taken.append(device)
        except PermissionError:
            pass  # not root
        for out in taken:
            before = os.lstat(out)
            for options in ([], ["--force"]):
                ended = run([self.kymo.path, "instrument", *options, "-o", out, "--", in_path("xz")],
                            cwd=self.scratch.directory)
                expect(ended.status == 125 and "not a regular file" in ended.stderr, f"{out}: {ended}")
                after = os.lstat(out)
                expect((after.st_mode, after.st_ino) == (before.st_mode, before.st_ino), f"{out} was replaced")
        file = self.scratch.path("overwritten")
        with open(file, "wb"):
            pass
        ended = run([self.kymo.path, "instrument", "-o", file, "--", in_path("xz")], cwd=self.scratch.directory)
        expect(ended.status == 125 and "--force" in ended.stderr and not os.path.getsize(file), f"{ended}")
        self.rewrite(in_path("xz"), "overwritten", "--force")
        expect(os.path.getsize(file), "--force overwrites nothing")


def main():
    tap = Tap()
    with Scratch() as scratch:
        tests = Tests(scratch)
        for name in WORK:
            tap.point(name, lambda name=name: tests.program(name))
        for name in HAZARDS:
            tap.point(name, lambda name=name: tests.hazard(name))
        for name in ("executes", "library", "compiler", "exceptions", "giants", "opened_giant", "opened_later", "places", "limited",
                     "refused", "places_taken"):
            tap.point(name, getattr(tests, name))
        for compiler in (("gcc", "-fsanitize=address"), ("gcc", "-fsanitize=address", "-fsanitize=undefined"),
                         ("gcc", "-fsanitize=thread"), ("clang", "-fsanitize=address"),
                         ("clang", "-fsanitize=address", "-shared-libasan", "-Wl,-rpath," + clang_libraries())):
            tap.point(" ".join(compiler[:3]), lambda compiler=compiler: tests.sanitized(*compiler))
    tap.finish()


main()
