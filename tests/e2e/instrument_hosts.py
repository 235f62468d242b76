#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""Programs that do with their code and their stacks what compilers do not: coroutines that copy stacks,
code that is copied or entered in the middle, callers that are looked at through a jump; and what a
profile without a trace has to say of libraries that were closed and of calls that never returned.

usage: instrument_hosts.py KYMO     (TAP)
"""
import collections
import json
import os
import shutil
import signal
import subprocess
import sys
import time

from harness import Kymo, Scratch, Skipped, Tap, clean_environment, expect, run

# Coroutines as greenlet has them: each one's part of the stack is copied away when another goes on.
COPIES = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
struct coroutine { char *low, *copy; size_t size; void *rsp; int left, id; };
static char *base;
static struct coroutine all[7], *current, *next;
static void *save(void *rsp)
{
	current->low = rsp;
	current->size = (size_t)(base - (char *)rsp);
	current->copy = realloc(current->copy, current->size);
	memcpy(current->copy, rsp, current->size);
	return next->low;
}
static void restore(void)
{
	current = next;
	memcpy(current->low, current->copy, current->size);
}
static int __attribute__((noinline, noclone)) change(void)
{
	void *from, *to;
	long distance;
	__asm__ volatile("" ::: "rbx", "r12", "r13", "r14", "r15", "memory");
	__asm__ volatile("mov %%rsp, %0" : "=r"(from));
	to = save(from);
	if (!to)
		return 1;
	distance = (char *)to - (char *)from;
	__asm__ volatile("add %0, %%rsp\n\tadd %0, %%rbp" : : "r"(distance));
	restore();
	return 0;
}
static int __attribute__((noinline)) yield(void) { int new = change(); __asm__ volatile(""); return new; }
static long __attribute__((noinline)) deep(int depth, int id)
{
	volatile char room[64];
	room[0] = (char)depth;
	long got = depth ? deep(depth - 1, id) : yield();
	return got + room[0] + id;
}
static volatile long sum;
static void __attribute__((noinline)) run_all(char *stack)
{
	base = stack;
	for (int i = 0; i < 7; i++)
		all[i].id = i;
	current = &all[0];
	for (int i = 1; i < 7; i++) {
		next = &all[i];
		if (yield()) { /* a new one begins here, with a copy of the stack */
			current = next;
			break;
		}
	}
	for (int k = 0; k < 20; k++) {
		do
			next = &all[(int)((next - all) + 1) % 7];
		while (!next->low);
		sum += deep(current->id + k % 3, current->id);
	}
}
int main(void)
{
	char here[256];
	here[0] = 0;
	run_all(here + 128);
	printf("%ld\n", sum);
	fflush(stdout);
	_Exit(0);
}
"""

CODE = r"""
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
int __attribute__((noinline, aligned(64))) step(int a, int b)
{
	int sum = a;
	for (int i = 0; i < b; i++)
		sum = sum * 3 + i;
	return sum;
}
int __attribute__((noinline, aligned(64))) after(void) { return 1; }
__asm__(".globl ladder\n.type ladder, @function\n.p2align 4\nladder:\n.cfi_startproc\n"
	".rept 16\nlea 1(%rdi), %edi\n.endr\nmov %edi, %eax\nret\n.cfi_endproc\n.size ladder, . - ladder");
int ladder(int from);
int __attribute__((noinline)) climb(int steps)
{
	const char *code = (const char *)ladder;
	return ((int (*)(int))(code + 3 * (16 - steps)))(0);
}
int main(void)
{
	unsigned char *at = mmap(0, 4096, 7, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int sum = 0;
	memcpy(at, (void *)step, (size_t)((char *)after - (char *)step));
	for (int i = 0; i <= 16; i++)
		sum = sum * 2 + climb(i);
	printf("%d %d %d\n", step(3, 5), ((int (*)(int, int))at)(3, 5), sum);
	return 0;
}
"""

INTERPOSER = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <unistd.h>
static void *__attribute__((noinline)) look_up(const char *name) { return dlsym(RTLD_NEXT, name); }
static void *__attribute__((noinline)) find(const char *name, int parent)
{
	return look_up(parent ? "getppid" : name);
}
pid_t getppid(void) { pid_t (*real)(void) = find("getpid", 1); return real() ? 7 : 8; }
"""
PARENT = r"""
#include <stdio.h>
#include <unistd.h>
int main(void) { printf("%d\n", getppid()); return 0; }
"""

PLUGINS = {"a": "int __attribute__((noinline)) inner(int x) { return x * 3 + 1; }"
                "int plug(int x) { int s = 0; for (int i = 0; i < x; i++) s += inner(i); return s; }",
           "b": "int __attribute__((noinline)) other(int x) { return x * 5 + 1; }"
                "int spare(int x) { return other(x) + 2; }"
                "int plug(int x) { int s = 0; for (int i = 0; i < x; i++) s += other(i); return s; }"}
OPENS = r"""
#include <dlfcn.h>
#include <stdio.h>
int main(void)
{
	long sum = 0;
	for (int i = 0; i < 10; i++) {
		void *handle = dlopen(i & 1 ? "./a.so" : "./b.so", RTLD_NOW);
		int (*plug)(int) = (int (*)(int))dlsym(handle, "plug");
		for (int k = 0; k < 10; k++)
			sum += plug(k);
		dlclose(handle);
	}
	printf("%ld\n", sum);
	return 0;
}
"""

SERVER = r"""
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
static int __attribute__((noinline)) work(int i) { usleep(1000); return i * 3; }
static void __attribute__((noinline)) leave(void) { usleep(2000); pthread_exit(0); }
static void *__attribute__((noinline)) thread(void *unused) { leave(); return unused; }
static void __attribute__((noinline)) serve(void)
{
	volatile int sum = 0;
	for (int i = 0;; i++) {
		sum += work(i);
		if (i == 100) {
			puts("ready");
			fflush(stdout);
		}
	}
}
int main(void)
{
	pthread_t other;
	pthread_create(&other, 0, thread, 0);
	pthread_join(other, 0);
	serve();
	return 0;
}
"""

LARGE = r"""
#include <stdio.h>
static char data[3ul << 30];
static int __attribute__((noinline)) touch(unsigned long i) { data[i] = 3; return data[i / 2] + (int)(i % 7); }
int main(void)
{
	int sum = 0;
	for (unsigned long i = 0; i < sizeof(data); i += 1ul << 28)
		sum += touch(i);
	printf("%d\n", sum);
	return 0;
}
"""
# A run time as OCaml's: its collector takes return addresses of compiled code from the stack, and knows them all.
RUN_TIME = r"""
#include <stdio.h>
#include <stdlib.h>
void **saved_stack;
extern void *const known_addresses[2];
long compiled_outer(long);
long __attribute__((noinline)) collect(long n)
{
	if (saved_stack[0] != known_addresses[0] || saved_stack[2] != known_addresses[1])
		abort();
	return n * 2 + 1;
}
#define COMPILED(name, callee, label) \
	".globl " name "\n.type " name ",@function\n" name ":\n.cfi_startproc\n subq $8,%rsp\n.cfi_adjust_cfa_offset 8\n" \
	" nop\n nop\n nop\n call " callee "\n" label ": addq $8,%rsp\n.cfi_adjust_cfa_offset -8\n ret\n.cfi_endproc\n" \
	".size " name ",.-" name "\n"
__asm__(".text\n" COMPILED("compiled_outer", "compiled_inner", ".Lin_outer")
	COMPILED("compiled_inner", "caml_call_gc", ".Lin_inner")
	".globl caml_call_gc\n.type caml_call_gc,@function\ncaml_call_gc:\n.cfi_startproc\n movq %rsp,saved_stack(%rip)\n"
	" subq $8,%rsp\n.cfi_adjust_cfa_offset 8\n call collect\n addq $8,%rsp\n.cfi_adjust_cfa_offset -8\n ret\n"
	".cfi_endproc\n.size caml_call_gc,.-caml_call_gc\n"
	".section .data.rel.ro,\"aw\"\nknown_addresses: .quad .Lin_inner, .Lin_outer\n.text\n");
int main(void)
{
	long sum = 0;
	for (long i = 0; i < 1000; i++)
		sum += compiled_outer(i);
	printf("%ld\n", sum);
	return 0;
}
"""
OCAML = """
exception E of int
type t = L | N of t * int * t
let rec ins t x = match t with L -> N (L, x, L) | N (l, y, r) -> if x < y then N (ins l x, y, r) else N (l, y, ins r x)
let rec sum = function L -> 0 | N (l, x, r) -> sum l + x + sum r
let () =
  let t = ref L in
  for i = 1 to 20000 do t := ins !t (i * 7919 mod 100003) done;
  print_int (sum !t); print_newline ();
  let s = ref 0 in
  for i = 1 to 10000 do (try raise (E i) with E j -> s := !s + j) done;
  print_int !s; Gc.compact ()
"""
JAVA = """
public class Thrown {
  static int deep(int n) { return deep(n + 1) + 1; }
  public static void main(String[] arguments) throws Exception {
    int s = 0;
    for (int i = 0; i < 2000; i++) try { throw new RuntimeException("e" + i); } catch (RuntimeException e) { s += e.getStackTrace().length; }
    Object none = null;
    try { none.toString(); } catch (NullPointerException e) { s += 1; }
    try { deep(0); } catch (StackOverflowError e) { s += 1; }
    System.gc();
    System.out.println(s);
  }
}
"""
CSHARP = """
using System;
class Thrown {
  static void Main() {
    int s = 0;
    for (int i = 0; i < 1000; i++) { try { throw new Exception("e" + i); } catch (Exception e) { s += e.Message.Length; } }
    object none = null;
    try { none.ToString(); } catch (NullReferenceException) { s++; }
    GC.Collect();
    Console.WriteLine(s);
  }
}
"""


class Hosts:
    def __init__(self, kymo, scratch):
        self.kymo, self.scratch, self.directory = kymo, scratch, scratch.directory

    def compile(self, name, source, *options):
        path = self.scratch.path(name + ".c")
        with open(path, "w", encoding="utf-8") as stream:
            stream.write(source)
        ended = run(["gcc", "-w", "-g", *options, "-o", self.scratch.path(name), path, "-ldl", "-pthread"])
        expect(ended.status == 0, ended.stderr.decode() if isinstance(ended.stderr, bytes) else ended.stderr)
        return self.scratch.path(name)

    def command(self, name, *options):
        return [self.kymo.path, "instrument", "--time-output=off", "--format=json", "--force",
                "--output", self.scratch.path("results-" + name), *options, "--"]

    def results(self, name, part="profile.json"):
        with open(os.path.join(self.scratch.path("results-" + name), part), encoding="utf-8") as stream:
            return json.load(stream)

    def runs_as_alone(self, name, *options, environment=None):
        """In both ways of recording; what kymo said of the last one."""
        environment = {**clean_environment(), **(environment or {})}
        alone = run(["./" + name], cwd=self.directory, environment=environment)
        for trace in ("on", "off"):
            ended = run([*self.command(name, "--trace=" + trace, *options), "./" + name],
                        cwd=self.directory, environment=environment)
            expect((ended.status, ended.stdout) == (alone.status, alone.stdout),
                   f"status {ended.status}, {ended.stdout}; alone {alone.status}, {alone.stdout}; {ended.stderr}")
        expect(alone.status == 0, f"alone: status {alone.status}")
        return ended.stderr if isinstance(ended.stderr, str) else ended.stderr.decode()

    def reason_of(self, name, function):
        for module in self.results(name, "instrumentation/excluded.json")["modules"]:
            for row in module["functions"]:
                if row["function"] == function:
                    return row["reason"]
        return None

    # --- points ---

    def stacks_are_copied(self):
        for level in ("-O1", "-O2"):
            self.compile("copies", COPIES, level, "-fno-omit-frame-pointer", "-fno-stack-protector")
            said = self.runs_as_alone("copies")
            expect("only counted" in said, said)

    def return_addresses_are_looked_up(self):
        """By a run time: it finds what its compiler put there. The calls are counted."""
        self.compile("looks", RUN_TIME, "-O1")
        said = self.runs_as_alone("looks")
        expect("only counted" in said and "looks up return addresses" in " ".join(said.split()), said)
        totals = {row["name"]: row["calls"] for row in self.results("looks")["counted_functions"]}
        expect(all(totals.get(name) == 1000 for name in ("compiled_outer", "compiled_inner", "collect")), totals)

    def _run_time(self, name, source, compiler, program):
        """A program of another language is built and does the same under kymo."""
        for command in compiler[0], program[0]:
            if "/" not in command and not shutil.which(command):
                raise Skipped(f"no {command} here")
        with open(self.scratch.path(name), "w", encoding="ascii") as stream:
            stream.write(source)
        built = run(compiler, cwd=self.directory, timeout=200)
        if built.status != 0:
            raise Skipped(f"{compiler} does not work here: {built.stderr[-300:]}")
        alone = run(program, cwd=self.directory, timeout=200)
        if alone.status != 0:
            raise Skipped(f"{program} does not work here: {alone.stderr[-300:]}")
        for options in ([], ["--trace=off"], ["-I", "."]):
            ended = run([*self.command(name, *options), *program], cwd=self.directory, timeout=300)
            expect((ended.status, ended.stdout) == (0, alone.stdout), f"{name} {options}: {ended}")

    def ocaml(self):
        self._run_time("trees.ml", OCAML, ["ocamlopt", "-o", "trees", "trees.ml"], [self.scratch.path("trees")])

    def java(self):
        self._run_time("Thrown.java", JAVA, ["javac", "Thrown.java"], ["java", "Thrown"])

    def mono(self):
        self._run_time("thrown.cs", CSHARP, ["mcs", "thrown.cs", "-out:thrown.exe"], ["mono", "thrown.exe"])

    def code_is_copied(self):
        for level in ("-O0", "-O2"):
            self.compile("code", CODE, level)
            self.runs_as_alone("code")
            for function in ("step", "ladder"):
                expect(self.reason_of("code", function) == "used-as-data",
                       f"{level} {function}: {self.reason_of('code', function)}")

    def callers_are_seen(self):
        self.compile("interposer.so", INTERPOSER, "-O2", "-shared", "-fPIC")
        self.compile("parent", PARENT, "-O2")
        self.runs_as_alone("parent", environment={"LD_PRELOAD": self.scratch.path("interposer.so")})

    def closed_libraries_have_names(self):
        for name, source in PLUGINS.items():
            self.compile(name + ".so", source, "-O1", "-shared", "-fPIC")
        self.compile("opens", OPENS, "-O1")
        self.runs_as_alone("opens", "-i", "1", "-r", "1")
        calls = collections.Counter()
        for node in self.results("opens")["region_nodes"]:
            calls[node["name"]] += node["count"]
        right = {"plug": 100, "inner": 225, "other": 225}
        expect({name: calls[name] for name in right} == right, dict(calls))

    def open_calls_have_time(self):
        self.compile("server", SERVER, "-O1")
        for trace in ("on", "off"):
            with subprocess.Popen([*self.command("server", "--trace=" + trace), "./server"], cwd=self.directory,
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                  env=clean_environment()) as kymo:
                kymo.stdout.readline()
                time.sleep(0.3)
                children = run(["pgrep", "-P", str(kymo.pid), "server"]).stdout.split()
                expect(children, "the server is not running")
                os.kill(int(children[0]), signal.SIGTERM)
                kymo.wait(60)
            calls = collections.defaultdict(lambda: [0, 0, 0])
            for node in self.results("server")["region_nodes"]:
                row = calls[node["name"]]
                row[0] += node["count"]
                row[1] += node.get("open", 0)
                row[2] += node["wall_clock"]["sum_ns"]
            expect(calls["work"][2] > 0, f"{trace}: {dict(calls)}")
            for name in ("main", "serve"):
                expect(calls[name][1] == 1 and calls[name][2] >= calls["work"][2], f"{trace}: {name}: {dict(calls)}")
            for name in ("thread", "leave"):
                expect(calls[name][:2] == [1, 0] and calls[name][2] >= 2e6, f"{trace}: {name}: {dict(calls)}")

    def own_results_go_where_said(self):
        self.compile("parent", PARENT, "-O1")
        ended = run([self.kymo.path, "instrument", "-q", "--output", self.scratch.path("lists"), "-o",
                     self.scratch.path("copy"), "--", self.scratch.path("parent")], environment=clean_environment())
        expect(ended.status == 0, ended.stderr)
        for wanted, made in (("there/%n", "there/copy/latest"), (self.scratch.path("a/b"), "a/b/latest")):
            ended = run(["./copy"], cwd=self.directory,
                        environment={**clean_environment(), "KYMO_ENABLED": "on", "KYMO_OUTPUT_PATH": wanted})
            expect(ended.status == 0 and os.listdir(self.scratch.path(made + "/spool")), f"{wanted}: {ended}")
        ended = run(["./copy"], cwd=self.directory,
                    environment={**clean_environment(), "KYMO_ENABLED": "on", "KYMO_OUTPUT_PATH": "c",
                                 "KYMO_TIME_OUTPUT": "off"})
        expect(os.listdir(self.scratch.path("c/spool")), ended)

    def data_may_be_large(self):
        self.compile("large", LARGE, "-O2", "-mcmodel=large")
        self.runs_as_alone("large")
        totals = {row["name"]: row["count"] for row in self.results("large")["region_totals"]}
        expect(totals.get("touch") == 12, totals)


def main():
    tap = Tap()
    with Scratch() as scratch:
        hosts = Hosts(Kymo(sys.argv[1]), scratch)
        tap.point("stacks are copied", hosts.stacks_are_copied)
        tap.point("return addresses are looked up", hosts.return_addresses_are_looked_up)
        for language in ("ocaml", "java", "mono"):
            tap.point(language, getattr(hosts, language))
        tap.point("code is copied and entered inside", hosts.code_is_copied)
        tap.point("callers are seen through jumps", hosts.callers_are_seen)
        tap.point("closed libraries have names", hosts.closed_libraries_have_names)
        tap.point("open calls have time", hosts.open_calls_have_time)
        tap.point("own results go where it is said", hosts.own_results_go_where_said)
        tap.point("data may be large", hosts.data_may_be_large)
    tap.finish()


if __name__ == "__main__":
    main()
