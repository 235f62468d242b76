#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""The tools of samples/, each with the program that they look at: loaded in every way there is, and what they report.

  samples.py DIRECTORY   with the built samples
"""
import os
import re
import sys

from harness import Scratch, Tap, expect, run

THREADS, STEPS = 3, 200
# What workload.c does on each thread in a step, and once.
PER_STEP = {"roctxRangePushA": 2, "roctxMarkA": 1, "roctxRangePop": 2}
ONCE = {"roctxRangeStartA": 1, "roctxRangeStop": 1}


def expected():
    counts = {name: count * THREADS * STEPS for name, count in PER_STEP.items()}
    return {**counts, **ONCE}


class Samples:
    def __init__(self, directory, scratch):
        self.directory = directory
        self.scratch = scratch

    def tool(self, name):
        return os.path.join(self.directory, f"{name}.so")

    def run(self, environment, said=""):
        """What the tool wrote; the program must not notice any of it."""
        output = self.scratch.path("output")
        if os.path.exists(output):
            os.unlink(output)
        done = run([os.path.join(self.directory, "workload"), str(THREADS), str(STEPS)],
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

    def buffered(self):
        text = self.run({"ROCP_TOOL_LIBRARIES": self.tool("buffered_tracing")})
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


def main():
    tap = Tap()
    with Scratch() as scratch:
        samples = Samples(sys.argv[1], scratch)
        tap.point("the program without a tool", samples.bare)
        tap.point("callback tracing, preloaded and by ROCP_TOOL_LIBRARIES", samples.callback_ways)
        tap.point("buffered tracing", samples.buffered)
        tap.point("external correlation", samples.external)
        tap.point("several tools, one of which fails", samples.several)
        tap.point("several tools, preloaded", samples.several_preloaded)
        tap.point("the documented registration, in C and C++", samples.registration)
    tap.finish()


if __name__ == "__main__":
    main()
