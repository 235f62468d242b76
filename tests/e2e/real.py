#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""Real programs under kymo: output and status unchanged, sums equal to the CPU time used, stacks
complete, the outputs readable by others, and the same heavy functions as `perf record` finds.

usage: real.py KYMO WORKLOAD [SOURCE]     (TAP)
"""
import collections
import math
import os
import re
import shutil
import subprocess
import sys

import workloads
from harness import Kymo, Result, Scratch, Skipped, Tap, clean_environment, expect, run

COMPLETE = collections.defaultdict(lambda: 0.999, node=0.99)
PROCESSES = {"gcc": ("gcc", "cc1", "as", "ld"), "pipeline": ("sh", "tar", "gzip"),
             "openssl": ("sh", "openssl")}


class Real:
    """One workload: run once bare and once under kymo, then looked at from all sides."""

    def __init__(self, kymo, name, source, scratch):
        self.kymo, self.name, self.source, self.scratch = kymo, name, source, scratch
        self.command = getattr(workloads, name)(scratch.directory)
        self.result = Result(scratch.path("results"))
        self.cpu = 0.0
        self.beside_perf = []

    def same_as_bare(self):
        bare = run(self.command)
        made = self.made_file()
        before = os.times()
        ended = self.kymo.sample(self.command, self.result.directory,
                                 f"--sampling-source={self.source}", quiet=False)
        after = os.times()
        self.cpu = sum(after[2:4]) - sum(before[2:4])
        expect(ended.status == bare.status == 0, f"status {ended.status}, bare {bare.status}\n"
               f"{ended.stderr[-2000:]}")
        expect(ended.stdout == bare.stdout, f"output differs: {ended.stdout[-200:]!r}")
        expect(self.made_file() == made, "the file that it made differs")
        self.summary = ended.stderr

    def made_file(self):
        """What the program left on disk, where that is the point of it."""
        path = {"xz": self.command[-1] + ".xz"}.get(self.name)
        if not path:
            return None
        with open(path, "rb") as stream:
            data = stream.read()
        os.unlink(path)
        return data

    def sums_match(self):
        """Weights against the processes' CPU clocks. The helper's time is not among what wait4() tells."""
        profile, metadata = self.result.profile(), self.result.metadata()
        total = profile.total("cpu") / 1e9
        used = metadata.get("launched", {}).get("cpu_ns", 0) / 1e9 or self.program_cpu()
        expect(used > 0, "no CPU time of the program to compare with")
        expect(abs(total - used) <= 0.02 * used + 0.05 * len(metadata["processes"]),
               f"samples weigh {total:.3f} s, the program used {used:.3f} s")

    def program_cpu(self):
        """User and system time of the launched tree, from kymo's own wait4()."""
        launch = self.result.json("launch.json")
        return (launch["user_ns"] + launch["system_ns"]) / 1e9

    def stacks_complete(self):
        stacks = collections.Counter()
        for process in self.result.processes():
            stacks.update(process["stacks"])
        total, complete = sum(stacks.values()), stacks["complete"]
        expect(total > 200, f"{total} stacks only")
        expect(complete >= COMPLETE[self.name] * total - 1,
               f"{complete} of {total} stacks are complete: {dict(stacks)}")

    def nothing_lost(self):
        losses = collections.Counter()
        for process in self.result.processes():
            losses.update(process["losses"])
        lost = {reason: count for reason, count in losses.items()
                if count and reason not in ("throttled", "stale_modules")}
        expect(not lost, f"losses: {lost}")

    def processes_present(self):
        names = {os.path.basename(process["executable"]) for process in self.result.processes()}
        for wanted in PROCESSES.get(self.name, (os.path.basename(self.command[0]),)):
            expect(any(wanted in name or (wanted == "sh" and name == "dash") for name in names),
                   f"no process {wanted} among {sorted(names)}")

    def others_can_read(self):
        """jq, protoc and the standard library read every output and agree on the totals."""
        for name in ("metadata.json", "profile.json"):
            if shutil.which("jq"):
                checked = run(["jq", "-e", "has(\"schema\")", self.result.path(name)])
                expect(checked.status == 0, f"jq on {name}: {checked.stderr}")
            expect("schema" in self.result.json(name), f"{name} has no schema")
        samples = self.result.samples()
        counted = self.result.profile().total("samples")
        expect(counted == samples, f"pprof counts {counted} samples, metadata {samples}")
        totals = self.result.json("profile.json")["totals"]
        folded = sum(weight for _, weight in self.result.folded())
        expect(folded == sum(value for key, value in totals.items() if key.endswith("_ns")),
               f"folded stacks hold {folded} ns, profile.json {totals}")
        if shutil.which("protoc"):
            for command in (f"protoc --decode_raw < {self.result.path('trace.pftrace')}",
                            f"gunzip < {self.result.path('profile.pb.gz')} | protoc --decode_raw"):
                decoded = subprocess.run(["sh", "-c", command], stdout=subprocess.DEVNULL,
                                         stderr=subprocess.PIPE, check=False)
                expect(decoded.returncode == 0, f"{command}: {decoded.stderr[-300:]!r}")
        with open(self.result.path("report.html"), "rb") as stream:
            page = stream.read()
        expect(page.lower().startswith(b"<!doctype html") and b"http-equiv=refresh" not in page,
               "report.html is not a page")

    def summary_is_said(self):
        expect(self.result.directory in self.summary, "the summary does not say where the files are")
        expect(len(self.summary.splitlines()) >= 8, f"a short summary: {self.summary!r}")

    def symbols(self):
        """node: functions of the program by name, from the JIT's map."""
        if self.name != "node":
            raise Skipped("for the JIT")
        shares = self.result.inclusive_shares()
        for function in ("fib", "sieve", "text"):
            found = sum(share for name, share in shares.items()
                        if re.search(rf"\b{function}\b", name))
            expect(found > 0.05, f"{function} has {found:.1%}; seen: {sorted(shares)[:20]}")

    def like_perf(self):
        """Self shares by function and by module within 2 points of perf's (or 3 sigma of both). Both
        run afresh at each attempt, and a further attempt adds its samples to those before it."""
        if self.name not in ("xz", "sqlite3", "python3"):
            raise Skipped("compared on xz, sqlite3 and python3")
        if not shutil.which("perf"):
            raise Skipped("perf is not installed")
        self.beside_perf.append((self.profile_again(), perf_shares(self.command, self.scratch.path("perf.data"))))
        self.made_file()
        ours_total = sum(profile.total("samples") for profile, _ in self.beside_perf)
        theirs_total = sum(count for _, (_, count) in self.beside_perf)
        for kind, pick in (("function", lambda sample: [self.native_leaf(sample)[0]]),
                           ("module", lambda sample: [self.native_leaf(sample)[1]])):
            ours, theirs = collections.Counter(), collections.Counter()
            for profile, (shares, count) in self.beside_perf:
                for name, share in profile.shares(pick).items():
                    ours[name] += share * profile.total("samples") / ours_total
                for name, share in shares[kind].items():
                    theirs[name] += share * count / theirs_total
            for name in set(theirs) | set(ours):
                compare_share(kind, name, ours[name], theirs[name], theirs_total, ours_total)

    def native_leaf(self, sample):
        """(function, module) as perf sees it: a function of Python is the interpreter's loop."""
        leaf = sample.stack[0]
        if self.name == "python3" and not leaf.module and not unresolved(leaf.function):
            return "PyEval_EvalFrameDefault", os.path.basename(os.path.realpath("/usr/bin/python3"))
        return one_name(leaf.function), os.path.basename(leaf.module)

    def profile_again(self):
        result = Result(self.scratch.path(f"beside-perf-{len(self.beside_perf)}"))
        self.kymo.sample(self.command, result.directory, f"--sampling-source={self.source}")
        self.made_file()
        return result.profile()


def compare_share(kind, name, ours, theirs, their_count, our_count):
    if max(ours, theirs) < 0.03 or unresolved(name):
        return
    mean = (ours + theirs) / 2
    sigma = math.sqrt(mean * (1 - mean) * (1 / their_count + 1 / our_count))
    expect(abs(ours - theirs) <= max(0.02, 3 * sigma),
           f"{kind} {name}: kymo {ours:.2%}, perf {theirs:.2%}, sigma {sigma:.2%}")


def one_name(name):
    """libc has several names for one address, munmap and __munmap, __memcpy_avx512_unaligned_erms and
    __memmove_...: who takes which is all the same."""
    return re.sub(r"^memcpy_(?=avx|evex|sse|erms)", "memmove_", name.lstrip("_"))


def unresolved(name):
    return name == "" or name.startswith(("[", "0x")) or "+0x" in name


def perf_shares(command, data):
    """Shares by function and by module, and the number of samples. Time in the kernel counts for
    the user code that called it, as kymo counts it: the first frame of the chain outside it."""
    recorded = subprocess.run(["perf", "record", "-q", "-F", "997", "-g", "-e", "task-clock", "-o",
                               data, "--"] + command, stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, env=clean_environment(), check=False)
    if recorded.returncode != 0:
        raise Skipped("perf may not record here: " +
                      recorded.stderr.decode(errors="replace").strip()[:200])
    script = subprocess.run(["perf", "script", "--no-inline", "-i", data, "-F", "ip,sym,dso"], check=True,
                            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    counts = {"function": collections.Counter(), "module": collections.Counter()}
    total = 0
    for chain in script.stdout.decode(errors="replace").split("\n\n"):
        frames = [match.groups() for match in re.finditer(r"^\s*[0-9a-f]+ (.*) \((.*)\)$", chain, re.M)]
        frames = [frame for frame in frames if not frame[1].startswith("[")]
        if frames:
            total += 1
            counts["function"][one_name(frames[0][0].split("@")[0])] += 1
            counts["module"][os.path.basename(frames[0][1])] += 1
    expect(total > 100, f"perf took {total} samples")
    return {kind: {name: count / total for name, count in counter.items()}
            for kind, counter in counts.items()}, total


def main():
    kymo, name = Kymo(sys.argv[1]), sys.argv[2]
    source = sys.argv[3] if len(sys.argv) > 3 else "auto"
    tap = Tap()
    with Scratch() as scratch:
        try:
            real = Real(kymo, name, source, scratch)
        except Skipped as reason:
            print(f"1..0 # SKIP {reason}")
            return
        if tap.point(f"{name}: same as bare", real.same_as_bare):
            for check, retries in ((real.sums_match, 0), (real.stacks_complete, 0),
                                   (real.nothing_lost, 0), (real.processes_present, 0),
                                   (real.others_can_read, 0), (real.summary_is_said, 0),
                                   (real.symbols, 0), (real.like_perf, 2)):
                tap.point(f"{name}: {check.__name__.replace('_', ' ')}", check, retries)
    tap.finish()


if __name__ == "__main__":
    main()
