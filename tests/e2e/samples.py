#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""The tools of samples/, each with the program that they look at: loaded in every way there is, and what they report.

  samples.py DIRECTORY SOURCE BUILD   with the built samples
"""
import glob
import os
import re
import sys

from harness import Scratch, Skipped, Tap, expect, require_tool, run

OPENMP = """
#include <stdio.h>

int main(void)
{
	double sum = 0;

	for (int round = 0; round < 10; round++) {
#pragma omp parallel for reduction(+ : sum) num_threads(2)
		for (int i = 0; i < 1000; i++)
			sum += i;
	}
	printf("%g\\n", sum);
	return 0;
}
"""
CMAKE = """
cmake_minimum_required(VERSION 3.18)
project(demo C CXX)
find_package(rocprofiler-sdk 1.0 REQUIRED)
find_package(rocprofiler-sdk-rocpd REQUIRED)
find_package(rocprofiler-sdk-roctx REQUIRED)
find_package(Threads REQUIRED)
add_library(tool MODULE {source}/samples/buffered_tracing.cpp)
target_compile_features(tool PRIVATE cxx_std_17)
target_link_libraries(tool PRIVATE rocprofiler-sdk::rocprofiler-sdk)
add_executable(program {source}/samples/workload.c)
target_link_libraries(program PRIVATE rocprofiler-sdk-rocpd::rocprofiler-sdk-rocpd
                      rocprofiler-sdk-roctx::rocprofiler-sdk-roctx Threads::Threads)
find_package(rocprofiler-sdk 2.0 QUIET)
if(rocprofiler-sdk_FOUND)
  message(FATAL_ERROR "a version that does not exist was found")
endif()
"""
THREADS, STEPS = 3, 200
# What workload.c does on each thread in a step, and once.
PER_STEP = {"roctxRangePushA": 2, "roctxMarkA": 1, "roctxRangePop": 2}
ONCE = {"roctxRangeStartA": 1, "roctxRangeStop": 1}


def expected():
    counts = {name: count * THREADS * STEPS for name, count in PER_STEP.items()}
    return {**counts, **ONCE}


class Samples:
    def __init__(self, directory, source, build, scratch):
        self.directory = directory
        self.source = source
        self.build = build
        self.scratch = scratch

    def tool(self, name):
        return os.path.join(self.directory, f"{name}.so")

    def run(self, environment, said="", program=None):
        """What the tool wrote; the program must not notice any of it."""
        output = self.scratch.path("output")
        if os.path.exists(output):
            os.unlink(output)
        done = run([program or os.path.join(self.directory, "workload"), str(THREADS), str(STEPS)],
                   environment={**environment, "SAMPLE_OUTPUT": output})
        expect(done.status == 0, f"status {done.status}: {done.stderr}")
        expect(done.stdout.decode() == f"workload: {THREADS} threads, {STEPS} steps\n", f"printed {done.stdout}")
        expect(done.stderr == said, f"said {done.stderr}")
        expect(os.path.exists(output) or not environment, "the tool wrote nothing")
        if not os.path.exists(output):
            return ""
        with open(output, encoding="utf-8") as stream:
            return stream.read()

    def bare(self):
        self.run({})

    def callback(self, environment):
        text = self.run(environment)
        lines = [line for line in text.splitlines() if line.startswith("MARKER_CORE_API ")]
        counts = {}
        for line in lines:
            operation = re.match(r"MARKER_CORE_API (\w+)\(", line).group(1)
            counts[operation] = counts.get(operation, 0) + 1
            expect(line.endswith(" ok"), line)
        expect(counts == expected(), f"{counts} instead of {expected()}")
        expect(text.startswith("callback tracing with version 10000 (1.0.0)\n"), text[:80])
        ids = [int(number) for number in re.findall(r" id=(\d+) ", text)]
        expect(len(set(ids)) == len(ids) and min(ids) > 0, "an id comes twice, or is 0")
        expect(len(set(re.findall(r" thread=(\d+) ", "\n".join(lines)))) == THREADS + 2, "threads are mixed up")
        for text_of in ("roctxRangePushA(message=step)", "roctxMarkA(message=here)", "roctxRangePop()",
                        "roctxRangeStop(id=1)"):
            expect(text_of in text, f"no {text_of}")
        for number in range(THREADS):
            expect(f"MARKER_NAME_API roctxNameOsThread(name=worker {number})" in text, f"worker {number} is not named")
        total = len(lines) + THREADS
        expect(f"entered {total}, left {total}\n" in text, text.splitlines()[-1])

    def callback_ways(self):
        tool = self.tool("callback_tracing")
        self.callback({"LD_PRELOAD": tool})
        self.callback({"ROCP_TOOL_LIBRARIES": tool})

    def buffered(self, tool=None, program=None):
        text = self.run({"ROCP_TOOL_LIBRARIES": tool or self.tool("buffered_tracing")}, program=program)
        counts = {name: int(count) for name, count in re.findall(r"^(roctx\w+) (\d+) \d+ ns$", text, re.MULTILINE)}
        expect(counts == expected(), f"{text}\ninstead of {expected()}")
        expect(f"retired {sum(expected().values())}\n" in text, text)
        expect("dropped 0\n" in text and "threads told\n" in text, text)

    def external(self):
        text = self.run({"ROCP_TOOL_LIBRARIES": self.tool("external_correlation")})
        marks = THREADS * STEPS
        expect(f"steps {2 * marks}\n" in text, text)
        expect(f"asked {marks}\n" in text and f"by request {marks}\n" in text, text)
        # Pushes and pops have the id of the range that they begin or end; the process's range has none.
        expect(f"by stack {4 * marks}\n" in text and "without 2\n" in text, text)

    def several(self):
        tools = [self.tool(f"multi_tool_{name}") for name in ("one", "fails", "two")]
        text = self.run({"ROCP_TOOL_LIBRARIES": ":".join(tools)},
                        "kymo: tools: tool 'fails': its initialize function failed (-1); it is left out\n")
        for priority, name in enumerate(("one", "fails", "two")):
            expect(f"{name}: asked with priority {priority}\n" in text, text)
        expect(text.index("two: asked") < text.index("fails: gives up"), "one is initialized before all are asked")
        expect(f"one: events {sum(expected().values())}\n" in text, text)
        expect(f"two: events {THREADS}\n" in text and "fails: events" not in text, text)

    def several_preloaded(self):
        """Only one of them is what dlsym(3) finds."""
        text = self.run({"LD_PRELOAD": ":".join(self.tool(f"multi_tool_{name}") for name in ("one", "two"))})
        expect(f"one: events {sum(expected().values())}\n" in text and f"two: events {THREADS}\n" in text, text)

    def registration(self):
        for language in ("c", "cpp"):
            text = self.run({"LD_PRELOAD": self.tool(f"registration_{language}")})
            expect(text == "ExampleTool: version 10000 (1.0.0), 1 context\n"
                   f"code objects 0, unloaded 0, kernels 0, marks {sum(expected().values())}\n", text)

    def opencl(self):
        """Kernels and copies as the program counts them, by callbacks, in buffers and by the documented tool."""
        program = self.scratch.path("opencl")
        built = run(["gcc", f"{self.source}/tests/programs/opencl_mix.c", "-o", program, "-lOpenCL"])
        if built.status != 0:
            raise Skipped("OpenCL is not installed")
        if run([program, "1"]).status != 0:
            raise Skipped("there is no OpenCL device")
        for tool, check in (("buffered_tracing", self.opencl_buffered), ("callback_tracing", self.opencl_callback),
                            ("registration_c", self.opencl_objects), ("registration_cpp", self.opencl_objects)):
            output = self.scratch.path(f"opencl-{tool}")
            done = run([program, "5"], environment={
                "OPENCL_LAYERS": os.path.join(self.build, "src/libkymo-sdk-roctx/librocprofiler-sdk.so.1"),
                "ROCP_TOOL_LIBRARIES": self.tool(tool), "SAMPLE_OUTPUT": output})
            expect(done.status == 0 and not done.stderr, f"{tool}: {done}")
            counts = re.match(r"kernels (\d+) copies (\d+)", done.stdout.decode())
            with open(output, encoding="utf-8") as stream:
                check(stream.read(), *map(int, counts.groups()))

    @staticmethod
    def opencl_buffered(text, kernels, copies):
        expect(f"KERNEL_DISPATCH_COMPLETE {kernels} " in text and "before" not in text, text)
        expect(sum(map(int, re.findall(r"MEMORY_COPY_\w+ (\d+) ", text))) == copies, f"{text}, {copies} copies")
        expect(f"retired {kernels + copies}\n" in text and "dropped 0\n" in text, text)

    @staticmethod
    def opencl_callback(text, kernels, copies):
        completed = len(re.findall("^KERNEL_DISPATCH KERNEL_DISPATCH_COMPLETE", text, re.MULTILINE))
        copied = len(re.findall("^MEMORY_COPY ", text, re.MULTILINE))
        expect(completed == kernels and copied == copies, f"{completed} {copied} of {kernels} {copies}")
        launches = re.findall(r"^OPENCL_API clEnqueueNDRangeKernel\(.*work_dim=1, ", text, re.MULTILINE)
        expect(len(launches) == kernels, f"{len(launches)} launches of {kernels}")
        expect(re.search(r"^OPENCL_API clCreateKernel\(.*kernel_name=add, ", text, re.MULTILINE), text[:1000])
        counts = re.search(r"entered (\d+), left (\d+)\n", text)
        expect(counts and counts.group(1) == counts.group(2), text[-200:])

    @staticmethod
    def opencl_objects(text, _kernels, _copies):
        counts = list(map(int, re.findall(r"\d+", text.splitlines()[1])))
        expect(counts[0] >= 1 and counts[0] == counts[1] and counts[2] >= 2, text)

    def openmp(self):
        require_tool("clang")
        program = self.scratch.path("parallel")
        built = run(["clang", "-fopenmp", "-x", "c", "-", "-o", program], stdin=OPENMP.encode())
        expect(built.status == 0, f"clang: {built.stderr}")
        library = os.path.join(self.build, "src/libkymo-sdk-roctx/librocprofiler-sdk.so")
        named = {"ROCP_TOOL_LIBRARIES": self.tool("openmp")}
        # Wherever the library stands: before the runtime, where it is asked with the version of the runtime's own
        # function, or opened by it.
        for environment in ({"LD_PRELOAD": self.tool("openmp")}, {**named, "LD_PRELOAD": library},
                            {**named, "OMP_TOOL_LIBRARIES": library}):
            self.openmp_in(program, environment)

    def openmp_in(self, program, environment):
        output = self.scratch.path("openmp-output")
        if os.path.exists(output):
            os.unlink(output)
        done = run([program], environment={**environment, "SAMPLE_OUTPUT": output})
        expect(done.status == 0 and done.stdout == b"4.995e+06\n", f"{environment}: {done}")
        with open(output, encoding="utf-8") as stream:
            text = stream.read()
        expect(text.startswith("parallel regions 10\nloops 20\n"), f"{environment}: {text}")
        waits, waited = map(int, re.search(r"waits (\d+), (\d+) ns", text).groups())
        # Each thread waits at the end of each region; of the last one the process may see the end first.
        expect(18 <= waits <= 22 and 0 < waited < 1e11, f"{environment}: {text}")

    def packages(self):
        """Built with what an installation that was moved says, as packages are made."""
        require_tool("cmake", "meson", "pkg-config")
        stage, project = self.scratch.path("stage"), self.scratch.path("project")
        done = run(["meson", "install", "-C", self.build, "--no-rebuild", "--destdir", stage])
        expect(done.status == 0, f"install: {done.stderr} {done.stdout.decode()[-1000:]}")
        self.by_cmake(stage, project)
        self.by_pkg_config(stage)

    def by_cmake(self, stage, project):
        configs = {name: glob.glob(f"{stage}/**/{name}-config.cmake", recursive=True)
                   for name in ("rocprofiler-sdk", "rocprofiler-sdk-rocpd", "rocprofiler-sdk-roctx")}
        expect(all(len(found) == 1 for found in configs.values()), f"{configs}")
        os.mkdir(project)
        with open(f"{project}/CMakeLists.txt", "w", encoding="utf-8") as stream:
            stream.write(CMAKE.replace("{source}", self.source))
        where = [f"-D{name}_DIR={os.path.dirname(found[0])}" for name, found in configs.items()]
        for command in (["cmake", "-S", project, "-B", f"{project}/b", *where], ["cmake", "--build", f"{project}/b"]):
            done = run(command)
            expect(done.status == 0, f"cmake: {done.stderr} {done.stdout.decode()[-1000:]}")
        self.buffered(f"{project}/b/libtool.so", f"{project}/b/program")

    def by_pkg_config(self, stage):
        found = glob.glob(f"{stage}/**/rocprofiler-sdk.pc", recursive=True)
        expect(len(found) == 1, f"{found}")
        flags = run(["pkg-config", "--cflags", "--libs", "rocprofiler-sdk"],
                    environment={"PKG_CONFIG_PATH": os.path.dirname(found[0]), "PKG_CONFIG_SYSROOT_DIR": stage})
        expect(flags.status == 0, f"pkg-config: {flags.stderr}")
        tool = self.scratch.path("by-pkg-config.so")
        built = run(["gcc", "-shared", "-fPIC", f"{self.source}/samples/callback_tracing.c", "-o", tool,
                     *flags.stdout.decode().split()])
        expect(built.status == 0, f"gcc: {built.stderr}")
        library = glob.glob(f"{stage}/**/librocprofiler-sdk.so.1", recursive=True)
        self.callback({"ROCP_TOOL_LIBRARIES": tool, "LD_LIBRARY_PATH": os.path.dirname(library[0])})


def main():
    tap = Tap()
    with Scratch() as scratch:
        samples = Samples(*sys.argv[1:4], scratch)
        tap.point("the program without a tool", samples.bare)
        tap.point("callback tracing, preloaded and by ROCP_TOOL_LIBRARIES", samples.callback_ways)
        tap.point("buffered tracing", samples.buffered)
        tap.point("external correlation", samples.external)
        tap.point("several tools, one of which fails", samples.several)
        tap.point("several tools, preloaded", samples.several_preloaded)
        tap.point("the documented registration, in C and C++", samples.registration)
        tap.point("OpenMP", samples.openmp)
        tap.point("OpenCL", samples.opencl)
        tap.point("built with the installed packages", samples.packages)
    tap.finish()


if __name__ == "__main__":
    main()
