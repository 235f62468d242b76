#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""Process trees: builds, shells, pools of workers, daemons. Every process image that strace counts is
in the results, with an identity of its own; what the programs do and say is as without kymo.

usage: trees.py KYMO PROGRAM-DIRECTORY     (TAP)
"""
import collections
import os
import re
import subprocess
import sys

from harness import (Kymo, Result, Scratch, Skipped, Tap, expect, is_alive, require_tool, require_tracer, run,
                     wait_until)

MAKEFILE = """
objects = one.o two.o three.o four.o five.o six.o seven.o eight.o
all: program
program: main.o libparts.a
\tgcc -o $@ main.o libparts.a
libparts.a: $(objects)
\trm -f $@; ar rcD $@ $(objects)
%.o: %.c parts.h
\tgcc -O1 -c -o $@ $<
clean:
\trm -f *.o *.a program
"""

PYTHON_POOLS = """
import multiprocessing, subprocess, sys
def work(n):
    total = 0
    for i in range(n * 100000):
        total = (total * 31 + i) % 65521
    return total
if __name__ == "__main__":
    for method in ("fork", "spawn", "forkserver"):
        with multiprocessing.get_context(method).Pool(3) as pool:
            print(method, pool.map(work, [3, 4, 5, 6]))
    for options in ({}, {"close_fds": False}, {"env": {}}, {"shell": True}):
        command = "/bin/echo said" if options.get("shell") else ["/bin/echo", "said"]
        print(subprocess.run(command, capture_output=True, **options).stdout)
"""

PERL_PROGRAM = r"""
$| = 1;
my $child = fork();
if (!$child) { my $s = 0; $s += $_ * 7 % 5 for 1 .. 300000; exit($s % 200); }
waitpid($child, 0); print "fork ", $? >> 8, "\n";
system("/bin/sh", "-c", "exit 7"); print "system ", $? >> 8, "\n";
print "backticks ", `/bin/echo said`;
open(my $pipe, "-|", "/bin/echo", "piped"); print <$pipe>; close($pipe);
{ local %ENV = (); system("/usr/bin/env"); }
exec("/bin/sh", "-c", "exit 9");
"""


def images_by_strace(command, trace, cwd=None):
    """{executable: how many times it was executed}, as the kernel saw it."""
    require_tracer("strace")
    ended = run(["strace", "-f", "-qq", "-e", "trace=execve,execveat", "-o", trace] + command, cwd=cwd)
    counts = collections.Counter()
    with open(trace, encoding="utf-8", errors="replace") as stream:
        text = stream.read()
    # A call that another process interrupts is written in two parts: the path in the first.
    pending = {}
    for line in text.splitlines():
        pid, _, rest = line.partition(" ")
        begun = re.match(r'\s*execve(?:at)?\([^"]*"([^"]+)"', rest)
        if begun:
            pending[pid] = begun.group(1)
        if rest.endswith("= 0") and pid in pending:
            counts[program_of(pending[pid], cwd)] += 1
    return counts, ended


def program_of(path, cwd):
    """What runs when this file is executed: itself, or the interpreter of a script."""
    path = os.path.realpath(os.path.join(cwd or os.getcwd(), path))
    with open(path, "rb") as stream:
        first = stream.readline(200)
    return os.path.realpath(first[2:].split()[0].decode()) if first.startswith(b"#!") else path



class Trees:
    """Each public method is one test."""

    def __init__(self, kymo, programs, scratch):
        self.kymo, self.programs, self.scratch = kymo, programs, scratch
        self.runs = 0

    def _sample(self, command, *options, status=0, **how):
        self.runs += 1
        result = Result(self.scratch.path(f"result-{self.runs}"))
        ended = self.kymo.sample(command, result.directory, "--format=json,folded,pprof", *options,
                                 **how)
        expect(ended.status == status, f"status {ended.status}, not {status}\n{ended.stderr[-2000:]}")
        return result, ended

    def _same_tree(self, command, status=0, same_output=True, prepare=None, cwd=None):
        """Runs under strace and under kymo; the images are the same, the output as well."""
        if prepare:
            prepare()
        counts, bare = images_by_strace(command, self.scratch.path("strace"), cwd)
        expect(bare.status == status, f"bare: status {bare.status}\n{bare.stderr[-1000:]}")
        if prepare:
            prepare()
        result, ended = self._sample(command, status=status, cwd=cwd)
        if same_output:
            expect(ended.stdout == bare.stdout, f"{ended.stdout[-500:]!r}\nbare {bare.stdout[-500:]!r}")
        images = collections.Counter(process["executable"] for process in result.processes())
        for program, count in counts.items():
            # A forked process that is still its parent's image has the same executable.
            expect(images[program] >= count,
                   f"{program}: {images[program]} images, strace counts {count}\n{images}")
        self._identities(result)
        return result, counts

    def _identities(self, result):
        """No two images share pid and number; images of a pid follow each other; parents are known."""
        processes = result.processes()
        numbers = collections.defaultdict(list)
        for process in processes:
            numbers[process["pid"]].append(process["image"])
        for pid, images in numbers.items():
            # A forked process that executes at once may have had no time to record anything: no 0.
            images.sort()
            expect(images in (list(range(len(images))), list(range(1, len(images) + 1))),
                   f"pid {pid} has images {images}")
        launched = result.json("launch.json")["pid"]
        for process in processes:
            expect(process["pid"] == launched or process["parent_pid"] > 0,
                   f"pid {process['pid']} has no parent")
        for process in processes:
            if process["state"] == "replaced_by_exec":
                expect(process["image"] + 1 in numbers[process["pid"]] or
                       any(notice["kind"] == "not_followed" for notice in process["notices"]),
                       f"pid {process['pid']}: nothing after exec, and no word why")

    def make(self):
        """make -j4: the same object files, the same program, every compiler and assembler seen."""
        require_tool("make", "gcc", "ar")
        directory = self.scratch.path("project")
        os.mkdir(directory)
        self._write_project(directory)

        def clean():
            run(["make", "-s", "clean"], cwd=directory)
        result, counts = self._same_tree(["make", "-s", "-j4"], prepare=clean, cwd=directory)
        names = collections.Counter()
        for program, count in counts.items():
            names[os.path.basename(program)] += count
        expect(names["cc1"] == 9, f"strace saw {names}")
        made = self._objects(directory)
        clean()
        run(["make", "-s", "-j4"], cwd=directory)
        expect(self._objects(directory) == made, "what was built under kymo differs")
        compilers = [process for process in result.processes()
                     if os.path.basename(process["executable"]) == "cc1"]
        expect(len(compilers) == 9, f"{len(compilers)} images of cc1")

    @staticmethod
    def _write_project(directory):
        names = "one two three four five six seven eight".split()
        with open(os.path.join(directory, "Makefile"), "w", encoding="ascii") as stream:
            stream.write(MAKEFILE)
        with open(os.path.join(directory, "parts.h"), "w", encoding="ascii") as stream:
            stream.write("".join(f"int {name}(int);\n" for name in names))
        for number, name in enumerate(names):
            with open(os.path.join(directory, f"{name}.c"), "w", encoding="ascii") as stream:
                stream.write(f'#include <stdio.h>\n#include "parts.h"\nint {name}(int x)\n'
                             f"{{\n\treturn x * {number} + 1;\n}}\n")
        with open(os.path.join(directory, "main.c"), "w", encoding="ascii") as stream:
            stream.write('#include "parts.h"\nint main(void)\n{\n\treturn ' +
                         " + ".join(f"{name}(1)" for name in names) + " == 36 ? 0 : 1;\n}\n")

    @staticmethod
    def _objects(directory):
        made = {}
        for name in sorted(os.listdir(directory)):
            if name.endswith((".o", ".a")) or name == "program":
                with open(os.path.join(directory, name), "rb") as stream:
                    made[name] = stream.read()
        expect("program" in made, f"nothing was built: {sorted(made)}")
        return made

    def make_that_fails(self):
        directory = self.scratch.path("failing")
        os.mkdir(directory)
        with open(os.path.join(directory, "Makefile"), "w", encoding="ascii") as stream:
            stream.write("all:\n\t@echo begin; exit 3\n")
        self._same_tree(["make", "-s"], status=2, cwd=directory)

    def shell(self):
        """Pipes, subshells, background jobs, command substitution, a clean environment."""
        self._same_tree(["sh", "-c", "(echo a; echo b) | sort -r | tr a-z A-Z; x=$(/bin/echo sub); "
                         "echo $x; /bin/sleep 0.05 & wait; env -i /usr/bin/env; "
                         "env -i /bin/sh -c '/bin/echo inner; exit 4'; exit $?"],
                        status=4, same_output=False)

    def clean_environment_is_printed_clean(self):
        """The variables of a child that was given none: kymo's, and no other."""
        _, ended = self._sample(["env", "-i", "A=1", "/usr/bin/env"])
        others = [line for line in ended.stdout.decode().splitlines()
                  if not line.startswith(("LD_PRELOAD=", "KYMO_", "OMP_TOOL_LIBRARIES=", "KOKKOS_TOOLS_LIBS=",
                                           "NCCL_PROFILER_PLUGIN="))]
        expect(others == ["A=1"], f"environment: {others}")

    def bash_and_xargs(self):
        require_tool("bash", "xargs")
        self._same_tree(["bash", "-c", "seq 1 24 | xargs -P4 -n2 /bin/echo | wc -l; "
                         "find / -maxdepth 0 -exec /bin/true {} ';'; exec /bin/sh -c 'exit 6'"], status=6)

    def perl(self):
        require_tool("perl")
        self._same_tree(["perl", "-e", PERL_PROGRAM], status=9, same_output=False)

    def python_pools(self):
        """Workers by fork, spawn and forkserver; each of them is in the results with its work."""
        path = self.scratch.path("pools.py")
        with open(path, "w", encoding="ascii") as stream:
            stream.write(PYTHON_POOLS)
        result, _ = self._same_tree(["/usr/bin/python3", path])
        workers = [process for process in result.processes() if process["samples"] > 3]
        expect(len(workers) >= 7, f"{len(workers)} processes with samples")

    def daemon(self):
        """The program ends, its daemon goes on: results at once, and the rest later."""
        begun, go = self.scratch.path("begun"), self.scratch.path("go")
        for pipe in (begun, go):
            os.mkfifo(pipe)
        command = ["sh", "-c", f"(setsid sh -c 'echo > {begun}; read line < {go}; i=0; "
                   "while [ $i -lt 300000 ]; do i=$((i+1)); done; sleep 0.5; "
                   f"echo > {self.scratch.path('done')}' >/dev/null 2>&1 &); read line < {begun}; sleep 0.2"]
        self.runs += 1
        result = Result(self.scratch.path(f"result-{self.runs}"))
        ended = self.kymo.sample(command, result.directory, "--format=json,pprof", quiet=False)
        expect(ended.status == 0, f"status {ended.status}\n{ended.stderr}")
        expect(not os.path.exists(self.scratch.path("done")), "kymo waited for the daemon")
        expect("still running" in ended.stderr and f"kymo report {result.directory}" in ended.stderr,
               f"nothing said about the daemon: {ended.stderr!r}")
        before = result.profile().total("cpu")
        going_on = {process["pid"] for process in result.processes() if is_alive(process["pid"])}
        expect(len(going_on) == 1, f"processes that go on: {going_on}")
        daemon = going_on.pop()
        with open(go, "w", encoding="ascii") as stream:
            stream.write("\n")
        wait_until(lambda: not is_alive(daemon), "the daemon does not end")
        later = self.scratch.path("later")
        report = self.kymo.report(result.directory, "--format=json,pprof", "-o", later)
        expect(report.status == 0, f"report: status {report.status}\n{report.stderr}")
        after = Result(later).profile().total("cpu")
        expect(after > before, f"{after / 1e6} ms of CPU time later, {before / 1e6} ms before")
        sleeps = [process["state"] for process in Result(later).json("profile.json")["processes"]
                  if process["executable"].endswith("sleep")]
        expect(sleeps == ["exited", "exited"], f"sleep of the program and of the daemon: {sleeps}")

    def waits_of_forked_children(self):
        """A child waits for itself, not for what its parent waited for before."""
        program = ("import os, time\nfor _ in range(4):\n    time.sleep(0.3); pid = os.fork()\n    if not pid:\n"
                   "        time.sleep(0.15); os._exit(0)\n    os.waitpid(pid, 0)")
        result, _ = self._sample(["/usr/bin/python3", "-c", program], "--realtime")
        profile = result.json("profile.json")
        waited = collections.Counter()
        for thread in profile["threads"]:
            waited[thread["process"]] += thread.get("blocked_ns", 0)
        parent, *children = profile["processes"]
        expect(waited[parent["id"]] > 1000e6, f"the parent waited {waited[parent['id']] / 1e6} ms")
        expect(len(children) == 4, f"{len(children)} children")
        for child in children:
            alive = child["end_ns"] - child["start_ns"]
            expect(waited[child["id"]] <= alive,
                   f"{waited[child['id']] / 1e6} ms in a child that lived for {alive / 1e6} ms")

    def static_child(self):
        """It cannot be profiled where perf events are not permitted; who it is and why is said."""
        deny = [os.path.join(self.programs, "seccomp"), "deny-perf"]
        static = os.path.join(self.programs, "static")
        in_path = f"import os, sys; os.environ['PATH'] += ':{self.programs}'; "
        for command in (["sh", "-c", f"{static}; exec {static}"],
                        # execvp and posix_spawnp look for it in PATH
                        ["/usr/bin/python3", "-c", in_path + "pid = os.posix_spawnp('static', ['s'], os.environ); "
                         "os.wait(); os.execv('/usr/bin/env', ['env', 'static'])"],
                        ["/usr/bin/python3", "-c", f"import os; os.posix_spawn('{static}', ['s'], {{}}); "
                         "os.wait(); import subprocess; "
                         f"exit(subprocess.run(['{static}']).returncode)"]):
            directory = self.scratch.path(f"denied-{command[0].count('/')}-{len(command[2])}")
            ended = run([*deny, self.kymo.path, "sample", "-q", "-o", directory, "--time-output=off", "--", *command])
            expect(ended.status == 11, f"{ended}")
            result = Result(directory)
            texts = [notice["text"] for process in result.processes() for notice in process["notices"]
                     if notice["kind"] == "not_followed"]
            expect(len(texts) == 2 and all(static in text and "static" in text for text in texts),
                   f"said: {texts}")

    def child_of_another_user(self):
        """It runs as it would alone; that it may not write its data is said."""
        if os.getuid() != 0:
            raise Skipped("needs root")
        program = ("import os; pid = os.fork()\nif not pid:\n    os.setgroups([]); os.setresgid(65534, 65534, "
                   "65534); os.setresuid(65534, 65534, 65534); os.execv('/usr/bin/id', ['id', '-u'])\n"
                   "print(os.waitpid(pid, 0)[1])")
        result, ended = self._sample(["/usr/bin/python3", "-c", program])
        expect(ended.stdout == b"65534\n0\n" and not ended.stderr, f"{ended.stdout!r} {ended.stderr!r}")
        texts = [notice["text"] for process in result.processes() for notice in process["notices"]
                 if notice["kind"] == "not_followed"]
        expect(len(texts) == 1 and "/usr/bin/id" in texts[0] and "may not write" in texts[0], f"said: {texts}")

    def children_left_alone(self):
        """FOLLOW_CHILDREN=off: nothing of kymo in a child; other preloaded libraries stay."""
        other = self.scratch.path("other.so")
        require_tool("gcc")
        subprocess.run(["gcc", "-shared", "-fPIC", "-x", "c", "/dev/null", "-o", other], check=True)
        result, ended = self._sample(["sh", "-c", "/usr/bin/env; env -i /usr/bin/env"],
                                     "--follow-children=off", environment={"LD_PRELOAD": other})
        lines = ended.stdout.decode().splitlines()
        expect(f"LD_PRELOAD={other}" in lines, f"the other library is gone: {lines}")
        left = [line for line in lines if "libkymo.so" in line or line.startswith("KYMO_")]
        expect(not left, f"left in the environment: {left}")
        expect(len(result.processes()) == 1, f"{len(result.processes())} processes")

    def child_switched_off(self):
        """KYMO_ENABLED=off for one child."""
        result, _ = self._sample(["sh", "-c", "KYMO_ENABLED=off /usr/bin/env >/dev/null; /bin/true; :"])
        names = [os.path.basename(process["executable"]) for process in result.processes()]
        expect("env" not in names and "true" in names, f"processes: {names}")

    def kymo_under_kymo(self):
        """Each has its own session; the inner program belongs to the inner one."""
        inner = Result(self.scratch.path("inner"))
        outer, _ = self._sample([self.kymo.path, "sample", "-q", "-o", inner.directory,
                                 "--time-output=off", "--freq=1000", "--", "/bin/sh", "-c", "/bin/true"],
                                "--freq=50")
        programs = [os.path.basename(process["executable"]) for process in inner.processes()]
        expect("true" in programs, f"in the inner session: {programs}")
        expect(not any(process["executable"].endswith("true") for process in outer.processes()),
               "the inner program is in the outer session")
        frequency = inner.metadata()["settings"].get("SAMPLING_FREQ", {}).get("value")
        expect(frequency in (None, "1000"), f"inner frequency {frequency}")

    def other_preloads_kept(self):
        """A child that is given a preload of its own has both."""
        require_tool("gcc")
        other = self.scratch.path("second.so")
        subprocess.run(["gcc", "-shared", "-fPIC", "-x", "c", "/dev/null", "-o", other], check=True)
        _, ended = self._sample(["env", "-i", f"LD_PRELOAD={other}", "/usr/bin/env"])
        preload = [line for line in ended.stdout.decode().splitlines() if line.startswith("LD_PRELOAD=")]
        expect(len(preload) == 1 and other in preload[0] and "libkymo" in preload[0], f"{preload}")

    def large_environment(self):
        """So large that kymo's variables do not fit: the child runs as it would alone."""
        program = ("import os, sys\n"
                   "big = {'V%d' % i: 'x' * 130000 for i in range(14)}\n"
                   "for size in range(2090000 - 14 * 130010, 300000, 5000):\n"
                   "    big['LAST'] = 'y' * min(size, 131000)\n"
                   "    try:\n"
                   "        pid = os.posix_spawn('/bin/true', ['true'], big)\n"
                   "    except OSError as error:\n"
                   "        print(size, error.errno); break\n"
                   "    os.waitpid(pid, 0)\n"
                   "else:\n    print('all')\n")
        bare = run(["/usr/bin/python3", "-c", program])
        _, ended = self._sample(["/usr/bin/python3", "-c", program])
        expect(ended.stdout == bare.stdout, f"{ended.stdout!r}, bare {bare.stdout!r}")


def main():
    kymo, tap = Kymo(sys.argv[1]), Tap()
    with Scratch() as scratch:
        trees = Trees(kymo, os.path.abspath(sys.argv[2]), scratch)
        for name in sorted(vars(Trees)):
            if not name.startswith("_"):
                tap.point(name.replace("_", " "), getattr(trees, name))
    tap.finish()


main()
