#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""What the summary says kymo itself cost is the difference that kymo makes: CPU time of the tree with kymo, its
helpers included, less that of bare runs, in turns.

usage: overhead.py KYMO PROGRAM-DIRECTORY [NAME...]     (TAP)
"""
import os
import re
import resource
import statistics
import sys

from harness import Failed, Kymo, Result, Scratch, Tap, expect, run

TURNS = 5
FACTOR = 1.7
SMALL_MS = 5

SPAWN = """
import os, sys
for _ in range(300):
    os.waitpid(os.posix_spawn("/bin/true", ["true"], os.environ), 0)
"""

FORK = """
import os
for _ in range(300):
    child = os.fork()
    if not child:
        os._exit(0)
    os.waitpid(child, 0)
"""

COMPUTE = """
total = 0
for number in range(4000000):
    total += number
"""


def on_one_processor():
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def bare_ms(command, **how):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    ended = run(command, **how)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    expect(ended.status == 0, f"{command}: {ended}")
    return 1e3 * (after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)


def spread(values):
    """Of their median: half of the range of the middle half, for values of one kind that differ by chance."""
    quarters = statistics.quantiles(values, n=4)
    return (quarters[2] - quarters[0]) / 2


class Overhead:
    """Each public method is one test."""

    def __init__(self, kymo, programs, scratch):
        self.kymo, self.programs, self.scratch, self.runs = kymo, programs, scratch, 0

    def _sampled(self, command, *options, **how):
        self.runs += 1
        directory = self.scratch.path(f"run-{self.runs}")
        ended = self.kymo.sample(command, directory, "--format=json", *options, **how)
        expect(ended.status == 0, f"{ended}")
        return Result(directory), ended

    def _tree_and_told_ms(self, command, **how):
        """The kernel's count of the program and its children, with kymo's helpers; what is told of kymo."""
        result, _ended = self._sampled(command, **how)
        launch, helpers = result.json("launch.json"), sum(p["helper_cpu_ns"] for p in result.processes())
        return ((launch["user_ns"] + launch["system_ns"] + helpers) / 1e6,
                result.json("profile.json")["kymo_itself"])

    def _compare(self, name, command, **how):
        bare, tree, told = [], [], []
        for _turn in range(TURNS):
            bare.append(bare_ms(command, **how))
            with_kymo, parts = self._tree_and_told_ms(command, **how)
            tree.append(with_kymo)
            told.append(parts)
        added = statistics.median(tree) - statistics.median(bare)
        doubt = max(spread(bare), spread(tree))
        figure = statistics.median(parts["total_ns"] for parts in told) / 1e6
        middle = {part: statistics.median(parts[part] for parts in told) / 1e6 for part in told[0] if "_ns" in part}
        Tap.note(f"{name}: bare {statistics.median(bare):.1f} ms, kymo adds {added:.1f} ms (+-{doubt:.1f}), "
                 f"told {figure:.1f} ms: " + ", ".join(f"{part} {value:.2f}" for part, value in middle.items()))
        most, least = FACTOR * (added + doubt), (added - doubt) / FACTOR
        expect(figure <= max(most, SMALL_MS) and (figure >= least or added <= SMALL_MS),
               f"{figure:.1f} ms are told, {added:.1f} ms +-{doubt:.1f} are right")

    def short_children(self):
        self._compare("short children", [sys.executable, "-c", SPAWN])

    def forked_children(self):
        self._compare("forked children", [sys.executable, "-c", FORK])

    def context_switches(self):
        self._compare("context switches", [os.path.join(self.programs, "switches"), "processes", "60000"],
                      preexec=on_one_processor)

    def computing(self):
        self._compare("computing", [sys.executable, "-c", COMPUTE])

    def said(self):
        """The whole first, then its parts, in few lines; a report says the same later."""
        result, ended = self._sampled([sys.executable, "-c", SPAWN], quiet=False)
        told = result.json("profile.json")["kymo_itself"]
        expect(told["loaded_images"] == 301 and told["loader_ns_estimated"] > 0, f"{told}")
        expect(told["total_ns"] == sum(value for part, value in told.items()
                                       if "_ns" in part and part not in ("total_ns", "tree_cpu_ns")), f"{told}")
        texts = [output if isinstance(output, str) else output.decode()
                 for output in (ended.stderr, self.kymo.report(result.directory).stdout)]
        firsts = []
        for text in texts:
            section = text.partition("Overhead of kymo\n")[2].partition("recorded\n")[0]
            first = re.match(r"  kymo itself: about [0-9.]+ m?s of CPU time \([0-9.]+ % of the tree's [0-9.]+ m?s;",
                             section)
            expect(first, section or text)
            firsts.append(first[0])
            expect("measured: " in section and "estimated: " in section and len(section.splitlines()) <= 6, section)
        expect(firsts[0] == firsts[1], f"{firsts}")


def main():
    tap = Tap()
    with Scratch() as scratch:
        tests = Overhead(Kymo(sys.argv[1]), os.path.abspath(sys.argv[2]), scratch)
        for name in [name for name in (sys.argv[3:] or vars(Overhead)) if not name.startswith("_")]:
            tap.point(name.replace("_", " "), getattr(tests, name), retries=0 if name == "said" else 2,
                      retried=Failed)
    return tap.finish()


if __name__ == "__main__":
    sys.exit(main())
