#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""The user API in whole programs: C, C++, an archive in the program, Python's ctypes; without kymo,
under it, and with libkymo-dl linked instead of preloaded. The packages that programs find it by.

usage: user_api.py KYMO EXAMPLE-DIRECTORY SOURCE-DIRECTORY BUILD-DIRECTORY LIBKYMO-USER LIBKYMO-DL     (TAP)
"""
import collections
import glob
import os
import sys

import spool
from harness import Kymo, Scratch, Tap, expect, require_tool, run

LINKED = r"""
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "kymo/user.h"
#include "libkymo-dl/kymo_dl.h"

static uint32_t named, function;

static void *record(void *unused)
{
	named = kymo_dl_region_define(NULL, "named");
	function = kymo_dl_function_define((uint64_t)(uintptr_t)record);
	for (int i = 0; i < 100; i++) {
		kymo_dl_enter(function);
		kymo_dl_enter(named);
		kymo_push_region("user");
		kymo_pop_region("user");
		kymo_dl_leave(named);
		kymo_dl_leave(function);
	}
	return unused;
}

static int in_child(void)
{
	int status;
	pid_t child = fork();

	if (!child) {
		kymo_push_region("child");
		_exit(kymo_pop_region("child") == KYMO_SUCCESS ? 0 : 1);
	}
	return waitpid(child, &status, 0) == child && !status ? 0 : 9;
}

static int stopped(void)
{
	record(NULL);
	kymo_stop_trace();
	record(NULL);
	kymo_start_trace();
	record(NULL);
	kymo_stop_thread_trace();
	record(NULL);
	kymo_start_thread_trace();
	return 0;
}

static int in_any_order(void)
{
	for (int i = 0; i < 10; i++) {
		kymo_push_region("first");
		kymo_push_region("second");
		if (kymo_pop_region("first") || kymo_pop_region("second"))
			return 9;
	}
	return kymo_pop_region("first") == KYMO_NOT_OPEN ? 0 : 8;
}

int main(int count, char **arguments)
{
	const char *what = count > 1 ? arguments[1] : "";
	pthread_t thread;
	int status = 0;

	if (!strcmp(what, "thread")) {
		pthread_create(&thread, NULL, record, NULL);
		pthread_join(thread, NULL);
		record(NULL);
	} else if (!strcmp(what, "stopped")) {
		status = stopped();
	} else if (!strcmp(what, "order")) {
		status = in_any_order();
	} else {
		record(NULL);
		status = *what ? in_child() : 0;
	}
	printf("%d\n", kymo_dl_active());
	return status;
}
"""

CMAKE = """
cmake_minimum_required(VERSION 3.18)
project(demo C CXX)
find_package(kymo 0.1 REQUIRED COMPONENTS user)
add_executable(c_program {source}/examples/regions.c)
target_link_libraries(c_program PRIVATE kymo::user m)
add_executable(static_program {source}/examples/regions.c)
target_link_libraries(static_program PRIVATE kymo::user_static m)
find_package(Threads REQUIRED)
add_executable(cpp_program {source}/examples/regions.cpp)
target_compile_features(cpp_program PRIVATE cxx_std_11)
target_link_libraries(cpp_program PRIVATE kymo::user Threads::Threads)
find_package(kymo QUIET COMPONENTS user nosuch)
if(kymo_FOUND)
  message(FATAL_ERROR "a component that does not exist was found")
endif()
find_package(kymo 9.0 QUIET)
if(kymo_FOUND)
  message(FATAL_ERROR "a version that does not exist was found")
endif()
"""


def counted(directory, category=None):
    counts = collections.Counter()
    for events in spool.regions(directory).values():
        counts.update((event.what, event.name) for event in events
                      if category in (None, event.category))
    return counts


class Tests:
    def __init__(self, scratch):
        (kymo, self.examples, self.source, self.build, *libraries) = sys.argv[1:]
        self.user, self.dl = (os.path.abspath(library) for library in libraries)
        self.kymo, self.scratch = Kymo(kymo), scratch

    def example(self, name):
        return os.path.join(self.examples, name)

    def profiled(self, command, name, *options, **how):
        directory = self.scratch.path(name)
        ended = self.kymo.sample(command, directory, "--trace=on", *options, **how)
        expect(ended.status == 0, f"status {ended.status}: {ended.stderr}")
        return directory, ended

    def regions_of(self, program, name):
        bare = run([self.example(program)])
        expect(bare.status == 0 and "not running under kymo" in bare.stderr, f"bare: {bare.stderr}")
        directory, ended = self.profiled([self.example(program)], name)
        expect(ended.stdout == bare.stdout, f"{ended.stdout} instead of {bare.stdout}")
        expect(not ended.stderr, f"said {ended.stderr}")
        counts = counted(directory)
        wanted = {("begin", "all iterations"): 1, ("begin", "iteration"): 10,
                  ("end", "iteration"): 10, ("counter", "total"): 10, ("progress", "request"): 20,
                  ("mark", "setup done"): 1, ("begin", "print"): 1}
        for event, number in wanted.items():
            expect(counts[event] == number, f"{event}: {counts[event]}; all: {counts}")
        events = [event for events in spool.regions(directory).values() for event in events]
        begins = [event for event in events if event[0] == "begin" and event.name == "iteration"]
        expect([event.values for event in begins] ==
               [{"iteration": n, "solver": "roots"} for n in range(10)], f"values: {begins}")
        ends = [event for event in events if event[0] == "end" and event.name == "iteration"]
        expect(all(event.values["sum"] > 0 for event in ends), f"values: {ends}")

    def c(self):
        self.regions_of("regions", "c")

    def archive(self):
        self.regions_of("regions-static", "archive")

    def cpp(self):
        bare = run([self.example("regions-cpp")])
        directory, ended = self.profiled([self.example("regions-cpp")], "cpp")
        expect(ended.stdout == bare.stdout == b"15\n", f"{ended.stdout} and {bare.stdout}")
        counts = counted(directory)
        expect(counts["begin", "parse"] == counts["end", "parse"] == 7, f"all: {counts}")
        expect(counts["mark", "bad line"] == 2 and counts["begin", "add"] == 2, f"all: {counts}")

    def callbacks(self):
        bare = run([self.example("callbacks")])
        directory, ended = self.profiled([self.example("callbacks")], "callbacks")
        expect(ended.stdout == bare.stdout == b"1000 regions\n", f"{ended.stdout}, {bare.stdout}")
        expect(counted(directory)["begin", "counted"] == 1000, "regions recorded")

    def python(self):
        command = ["/usr/bin/python3", os.path.join(self.source, "examples", "regions.py"), self.user]
        bare = run(command)
        expect("not running under kymo" in bare.stderr, f"bare: {bare.stderr}")
        directory, ended = self.profiled(command, "python")
        expect(ended.stdout == bare.stdout and ended.stderr == "success\n", f"{ended}")
        counts = counted(directory, "user")
        expect(counts == {("begin", "everything"): 1, ("end", "everything"): 1, ("begin", "step"): 5,
                          ("end", "step"): 5, ("counter", "total"): 5, ("progress", "steps"): 5},
               f"all: {counts}")

    def categories(self):
        directory, _ = self.profiled([self.example("regions")], "off", "--disable-categories=output")
        counts = counted(directory)
        expect(not counts["begin", "print"] and counts["begin", "iteration"] == 10, f"{counts}")

    def enabled_off(self):
        ended = run([self.example("regions")], environment={
            "LD_PRELOAD": f"{self.libkymo()}:{self.dl}", "KYMO_ENABLED": "off"})
        expect(ended.status == 0 and "not running under kymo" in ended.stderr, f"{ended}")

    def libkymo(self):
        return os.path.join(self.build, "src", "libkymo", "libkymo.so")

    def build_linked(self):
        program = self.scratch.path("linked")
        built = run(["gcc", "-g", "-O1", "-x", "c", "-", "-x", "none", "-o", program,
                     f"-I{self.source}/include", f"-I{self.source}/src", "-Wl,--no-as-needed",
                     self.dl, self.user, f"-Wl,-rpath,{os.path.dirname(self.dl)}",
                     f"-Wl,-rpath,{os.path.dirname(self.user)}"], stdin=LINKED.encode())
        expect(built.status == 0, f"gcc: {built.stderr[:2000]}")
        return program

    def linked(self):
        """libkymo-dl in the program: it decides by the environment whether libkymo is opened."""
        program, home = self.build_linked(), self.scratch.path("home")
        os.mkdir(home)
        bare = run([program], cwd=home)
        expect(bare.status == 0 and bare.stdout == b"0\n", f"bare: {bare}")
        expect(not os.listdir(home), f"left behind: {os.listdir(home)}")
        alone = run([program, "fork"], cwd=home, environment={"KYMO_ENABLED": "on"})
        expect(alone.status == 0 and alone.stdout == b"1\n", f"alone: {alone}")
        sessions = glob.glob(f"{home}/kymo-linked-output/*-*-*")
        latest = f"{home}/kymo-linked-output/latest"
        expect(len(sessions) == 1 and os.path.realpath(latest) == sessions[0], f"{sessions}")
        counts = counted(latest)
        for name in ("named", "user"):
            expect(counts["begin", name] == counts["end", name] == 100, f"{name}: {counts}")
        functions = [name for what, name in counts if name.startswith("0x") and what == "begin"]
        expect(len(functions) == 1 and counts["begin", functions[0]] == 100, f"{counts}")
        expect(counts["begin", "child"] == 1, f"the forked child: {counts}")
        report = self.kymo.report(latest)
        expect(report.status == 0, f"report: {report.stderr}")

    def linked_and_first_used_in_a_thread(self):
        program, home = self.build_linked(), self.scratch.path("home-thread")
        os.mkdir(home)
        ended = run([program, "thread"], cwd=home, environment={"KYMO_ENABLED": "on"})
        expect(ended.status == 0 and ended.stdout == b"1\n", f"{ended}")
        threads = spool.regions(f"{home}/kymo-linked-output/latest")
        begun = sorted(sum(event.what == "begin" and event.name == "named" for event in events)
                       for events in threads.values())
        expect(begun[-2:] == [100, 100], f"regions of threads: {begun}")

    def linked_under_kymo(self):
        directory, ended = self.profiled([self.build_linked(), "fork"], "linked-under")
        expect(ended.stdout == b"1\n", f"{ended}")
        counts = counted(directory)
        expect(counts["begin", "named"] == 100 and counts["begin", "child"] == 1, f"{counts}")

    def the_programs_own_regions_pass_a_stop(self):
        directory, _ = self.profiled([self.build_linked(), "stopped"], "stopped")
        counts = counted(directory)
        expect(counts["begin", "user"] == 400, f"{counts['begin', 'user']} user regions")
        expect(counts["begin", "named"] == 200, f"{counts['begin', 'named']} others")

    def pops_in_any_order(self):
        directory, _ = self.profiled([self.build_linked(), "order"], "order")
        counts = counted(directory)
        for name in ("first", "second"):
            expect(counts["begin", name] == counts["end", name] == 10, f"{counts}")

    def packages(self):
        """Out of an installation that was moved, as packages are made."""
        require_tool("cmake", "meson", "pkg-config")
        stage, project = self.scratch.path("stage"), self.scratch.path("project")
        done = run(["meson", "install", "-C", self.build, "--no-rebuild", "--destdir", stage])
        expect(done.status == 0, f"install: {done.stderr} {done.stdout.decode()[-1000:]}")
        config = glob.glob(f"{stage}/**/kymo-config.cmake", recursive=True)
        expect(len(config) == 1, f"{config}")
        os.mkdir(project)
        with open(f"{project}/CMakeLists.txt", "w", encoding="utf-8") as stream:
            stream.write(CMAKE.replace("{source}", self.source))
        for command in (["cmake", "-S", project, "-B", f"{project}/b",
                         f"-Dkymo_DIR={os.path.dirname(config[0])}"],
                        ["cmake", "--build", f"{project}/b"]):
            done = run(command)
            expect(done.status == 0, f"cmake: {done.stderr} {done.stdout.decode()[-1000:]}")
        installed = glob.glob(f"{stage}/**/bin/kymo", recursive=True)
        for program, events in (("c_program", 10), ("static_program", 10), ("cpp_program", 0)):
            directory = self.scratch.path(program)
            ended = Kymo(installed[0]).sample([f"{project}/b/{program}"], directory, "--trace=on")
            expect(ended.status == 0, f"{program}: {ended.stderr}")
            counts = counted(directory)
            expect(counts["begin", "iteration"] == events, f"{program}: {counts}")
            expect(events or counts["begin", "parse"] == 7, f"{program}: {counts}")
        self.pkg_config(stage, os.path.dirname(os.path.dirname(os.path.dirname(config[0]))))

    def pkg_config(self, stage, libraries):
        flags = run(["pkg-config", "--cflags", "--libs", "kymo"], environment={
            "PKG_CONFIG_PATH": f"{libraries}/pkgconfig", "PKG_CONFIG_SYSROOT_DIR": stage})
        expect(flags.status == 0, f"pkg-config: {flags.stderr}")
        program = self.scratch.path("by-pkg-config")
        built = run(["gcc", f"{self.source}/examples/regions.c", "-o", program,
                     *flags.stdout.decode().split(), "-lm"])
        expect(built.status == 0, f"gcc: {built.stderr}")
        ended = run([program], environment={"LD_LIBRARY_PATH": libraries})
        expect(ended.status == 0, f"{ended}")

    def headers(self):
        """Each public header alone, as strict C and C++."""
        for header in ("kymo.h", "user.h", "spool.h", "user.hpp"):
            languages = [["c++", "-std=c++11"]] if header.endswith("hpp") else \
                [["c", "-std=c99" if header != "spool.h" else "-std=c11"], ["c++", "-std=c++11"]]
            for language, standard in languages:
                for compiler in ("gcc", "clang"):
                    require_tool(compiler)
                    done = run([compiler, "-x", language, standard, "-pedantic", "-Wall", "-Wextra",
                                "-Werror", "-fsyntax-only", f"-I{self.source}/include", "-"],
                               stdin=f"#include <kymo/{header}>\n".encode())
                    expect(done.status == 0, f"{compiler} {language} {header}: {done.stderr}")


def main():
    tap = Tap()
    with Scratch() as scratch:
        tests = Tests(scratch)
        for name in ("c", "archive", "cpp", "callbacks", "python", "categories", "enabled_off",
                     "linked",
                     "linked_and_first_used_in_a_thread", "linked_under_kymo",
                     "the_programs_own_regions_pass_a_stop", "pops_in_any_order", "headers", "packages"):
            tap.point(name.replace("_", " "), getattr(tests, name))
    tap.finish()


main()
