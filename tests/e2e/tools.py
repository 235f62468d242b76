#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""kymo run --tool: tools in programs that know nothing of them, and runtimes that come late.

  tools.py KYMO DIRECTORY-OF-PROGRAMS DIRECTORY-OF-SAMPLES
"""
import os
import re
import sys

from harness import Scratch, Skipped, Tap, expect, run

# What hsa_late.c does after each hsa_init(), which itself is told as the tables are there by then.
ROUND = ["hsa_init"] + ["hsa_agent_get_info"] * 3 + ["hsa_iterate_agents"]


def main():
    kymo, programs, samples = (os.path.abspath(path) for path in sys.argv[1:4])
    tap = Tap()
    libraries = os.path.abspath(os.path.join(programs, "../../src/libkymo-sdk-roctx"))
    library = os.path.join(libraries, "librocprofiler-sdk.so")

    def sample(name):
        return os.path.join(samples, f"{name}.so")

    def run_tools(tools, program, environment=None, options=()):
        output = scratch.path("output")
        if os.path.exists(output):
            os.unlink(output)
        options = [*options, *(word for tool in tools for word in ("--tool", tool))]
        ended = run([kymo, "run", *options, "--", *program],
                    environment={"SAMPLE_OUTPUT": output, "TOOL_OUTPUT": output, **(environment or {})})
        text = ""
        if os.path.exists(output):
            with open(output, encoding="utf-8") as stream:
                text = stream.read()
        return ended, text

    def markers():
        ended, text = run_tools([sample("callback_tracing")], [os.path.join(samples, "workload"), "2", "10"])
        expect(ended.status == 0 and ended.stdout == b"workload: 2 threads, 10 steps\n", f"{ended}")
        expect(len(re.findall("^MARKER_CORE_API roctxMarkA", text, re.MULTILINE)) == 20, text)
        expect(re.search(r"entered 104, left 104\n$", text), text[-100:])

    def several():
        ended, text = run_tools([sample("multi_tool_one"), sample("multi_tool_two")],
                                [os.path.join(samples, "workload"), "2", "10"])
        expect(ended.status == 0, f"{ended}")
        for line in "one: asked with priority 0", "two: asked with priority 1", "one: events 102", "two: events 2":
            expect(f"{line}\n" in text, f"no {line!r} in {text}")

    def no_runtime_at_all():
        ended, text = run_tools([sample("callback_tracing")], ["false"])
        expect(ended.status == 1, f"{ended}")
        expect(text.endswith("entered 0, left 0\n"), text)

    def not_a_tool():
        ended, _ = run_tools(["/nowhere/tool.so"], ["true"])
        expect("/nowhere/tool.so" in ended.stderr, f"{ended}")

    def early():
        """Its constructor runs within the search for tools (before: -1), or before anybody looks (0)."""
        tool = os.path.join(programs, "libearly_tool.so")
        ended, text = run_tools([tool], ["true"])
        expect(ended.status == 0 and text == "before -1, forced 0, asked 1, initialized 1\n", f"{ended} {text}")
        expect(ended.seconds < 5, f"took {ended.seconds} s")
        output = scratch.path("preloaded")
        ended = run(["true"], environment={"LD_PRELOAD": tool, "TOOL_OUTPUT": output, "LD_LIBRARY_PATH": os.path.join(
            programs, "../../src/libkymo-sdk-roctx")})
        with open(output, encoding="utf-8") as stream:
            text = stream.read()
        expect(ended.status == 0 and text == "before 0, forced 0, asked 1, initialized 1\n", f"{ended} {text}")

    def processors_as_gpus():
        """Tools that look at GPUs alone have one on PoCL."""
        mix = os.path.join(programs, "opencl_mix")
        if not os.path.exists(mix) or run([mix, "1"]).status != 0:
            raise Skipped("no OpenCL device here")
        tool = os.path.join(programs, "libhsa_tool.so")
        for options, agents in ((), 0), (("--opencl-cpu-as-gpu=on",), 1), (("--opencl-cpu-as-gpu=off",), 0):
            ended, text = run_tools([tool], [mix, "1"], options=options)
            expect(ended.status == 0, f"{ended}")
            expect(len(re.findall("^agent pocl_cpu visible=1", text, re.MULTILINE)) == agents, f"{options}: {text}")

    def preloaded(environment, program, output):
        """The library or a tool without kymo, by the loader."""
        if os.path.exists(output):
            os.unlink(output)
        ended = run(program, environment={"TOOL_OUTPUT": output, "ROCPROFILER_LIBRARY_CTOR": "1",
                                          "LD_LIBRARY_PATH": libraries, **environment})
        with open(output, encoding="utf-8") as stream:
            return ended, stream.read()

    def globals_alive(way):
        """However the tool came in and the program ends, finalize comes before destructors, and once."""
        tool, program = os.path.join(programs, "libglobals_tool.so"), [os.path.join(programs, "exits"), way]
        output = scratch.path("globals")
        for what, (ended, text) in {
                "kymo run": run_tools([tool], program),
                "ROCP_TOOL_LIBRARIES": preloaded({"ROCP_TOOL_LIBRARIES": tool, "LD_PRELOAD": library}, program, output),
                "LD_PRELOAD of the tool": preloaded({"LD_PRELOAD": tool}, program, output)}.items():
            expect(ended.status == 0, f"{what}: {ended}")
            expect(text.startswith("alive, made 1, initialized 1,") and text.count("\n") == 1, f"{what}: {text}")

    def forks():
        """Children end although the tool held its mutex on other threads when they were made."""
        roctx = os.path.join(libraries, "librocprofiler-sdk-roctx.so")
        ended, _ = run_tools([os.path.join(programs, "libmutex_tool.so")], [os.path.join(programs, "exits"), "forks", roctx])
        expect(ended.status == 0 and ended.stdout == b"hung 0 of 50\n", f"{ended}")

    def devices_at_the_beginning():
        """OpenCL's devices and what they count are there although the program has not used OpenCL yet."""
        mix = os.path.join(programs, "opencl_mix")
        if not os.path.exists(mix) or run([mix, "1"]).status != 0:
            raise Skipped("no OpenCL device here")
        tool = os.path.join(programs, "libglobals_tool.so")
        for program in [mix, "1"], ["true"]:
            for environment in {}, {"ROCPROFILER_LIBRARY_CTOR": "0"}:
                if program == ["true"] and environment:
                    continue
                ended, text = run_tools([tool], program, environment, ("--opencl-cpu-as-gpu",))
                expect(ended.status == 0 and text.endswith("GPUs 1, counters some\n"), f"{program} {environment}: {ended} {text}")
        ended, text = run_tools([tool], [mix, "1"])
        expect("GPUs 0, counters none" in text, text)

    def late(ways):
        """The second hsa_init() finds the runtime's own functions in its tables again."""
        environment = {"HSA_FAKE_WAYS": ways} if ways else {}
        ended, text = run_tools([os.path.join(programs, "libhsa_tool.so")],
                                [os.path.join(programs, "hsa_late"), os.path.join(programs, "libhsa_fake.so")], environment)
        expect(ended.status == 0 and ended.stdout == b"gfx901\ngfx902\ngfx903\n" * 2, f"{ended}")
        calls = re.findall(r"^(hsa_\w+) ancestor=(\d) status=0$", text, re.MULTILINE)
        expect([call[0] for call in calls] == ROUND + ["hsa_shut_down"] + ROUND, text)
        expect(all(call[1] == ("1" if call[0] == "hsa_agent_get_info" else "0") for call in calls), text)
        expect(text.count("RUNTIME_INITIALIZATION_HSA\n") == 2, text)
        expect(re.findall("^agent .*", text, re.MULTILINE) == ["agent gfx902 visible=1", "agent gfx903 visible=1"], text)

    def bare():
        ended = run([os.path.join(programs, "hsa_late"), os.path.join(programs, "libhsa_fake.so")])
        expect(ended.status == 0, f"{ended}")

    with Scratch() as scratch:
        tap.point("markers of a program", markers)
        tap.point("several tools", several)
        tap.point("a program without any runtime", no_runtime_at_all)
        tap.point("a tool that is not there", not_a_tool)
        tap.point("a tool that registers itself when it is loaded", early)
        tap.point("OpenCL's processors as GPUs", processors_as_gpus)
        tap.point("OpenCL's devices when a tool begins", devices_at_the_beginning)
        for way in "return", "exit", "thread", "quick":
            tap.point(f"globals of a tool at its end ({way})", lambda way=way: globals_alive(way))
        tap.point("forks while a tool gets buffers and calls", forks)
        tap.point("the late runtime, bare", bare)
        for ways in "tools", "register", "":
            tap.point(f"a runtime that is opened late ({ways or 'both ways'})", lambda ways=ways: late(ways))
    tap.finish()


if __name__ == "__main__":
    main()
