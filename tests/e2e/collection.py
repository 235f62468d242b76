#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""Settings that say what is collected: windows, threads, rates, kinds of samples. Each is checked
by what is in the results, in amounts and not just by presence.

usage: collection.py KYMO PROGRAM-DIRECTORY     (TAP)
"""
import collections
import json
import os
import sys

from harness import Kymo, Result, Scratch, Tap, expect


class Collection:
    """Each public method is one test. The program is one thread, or a few, that use CPU time all
    the time, so CPU time collected tells for how long collection was on."""

    def __init__(self, kymo, programs, scratch):
        self._kymo, self._programs, self._scratch, self._runs = kymo, programs, scratch, 0

    def _run(self, program, *options, status=0, environment=None):
        self._runs += 1
        directory = self._scratch.path(f"run-{self._runs}")
        command = program.split()
        command[0] = os.path.join(self._programs, command[0])
        ended = self._kymo.sample(command, directory, *options, environment=environment)
        expect(ended.status == status, f"status {ended.status}, not {status}\n{ended.stderr}")
        return Result(directory), ended

    def _window(self, open_for, seconds, *options):
        """One thread for `seconds`, collection on for `open_for` of them. On a busy machine the
        thread gets less than a CPU, and the less is collected."""
        result, ended = self._run(f"truth random 1 {seconds}", *options)
        share = json.loads(ended.stdout)["cpu_ns"] / 1e9 / seconds
        seen = result.profile().total("cpu") / 1e9
        low, high = open_for * share * 0.5 - 0.05, open_for + 0.12
        expect(low <= seen <= high, f"{seen:.3f} s collected, not {low:.3f} to {high:.3f}")

    @staticmethod
    def _near(seen, wanted, slack):
        expect(abs(seen - wanted) <= slack, f"{seen:.3f} s collected, not {wanted:.3f}")

    def delay(self):
        self._window(0.7, 1.5, "--wait=0.8")

    def duration(self):
        self._window(0.5, 1.5, "--duration=0.5")

    def delay_and_duration(self):
        self._window(0.5, 1.6, "--wait=0.4", "--duration=0.5")

    def periods(self):
        self._window(0.6, 1.6, "--periods=realtime:0.2:0.2:3")

    def periods_by_cpu_time(self):
        """Half a second of CPU time, however long that takes."""
        result, _ = self._run("truth random 2 1.5 1.5", "--periods=process_cputime:0.3:0.5:1")
        self._near(result.profile().total("cpu") / 1e9, 0.5, 0.15)

    def sampling_delay(self):
        self._window(0.7, 1.5, "--sampling-cputime-delay=0.8")

    def sampling_duration(self):
        self._window(0.5, 1.5, "--sampling-duration=0.5")

    def threads(self):
        """Threads 0 and 2 of four."""
        result, _ = self._run("truth random 4 1 1", "--sampling-tids=0,2")
        threads = collections.Counter()
        for sample in result.profile().samples:
            threads[sample.labels["tid"]] += 1
        expect(len(threads) == 2, f"samples of threads {dict(threads)}")

    def thread_names(self):
        """Names that threads take after they began, and main at its end."""
        result, _ = self._run("thread_names")
        names = {sample.labels["thread"] for sample in result.profile().samples}
        expect(names == {"render", "decoder-long-15", "conductor"}, f"threads named {sorted(names)}")

    def frequency(self):
        """Samples a CPU second follow the rate; the CPU time they stand for does not."""
        for rate in (50, 200, 2000):
            result, ended = self._run("truth random 1 1 1", f"--freq={rate}")
            profile = result.profile()
            seconds = profile.total("cpu") / 1e9
            seen = profile.total("samples") / seconds
            tick_driven = "perf" not in str(result.metadata()).lower()
            if not tick_driven or rate < 250:
                expect(0.8 * rate - 5 <= seen <= 1.2 * rate + 5, f"{seen:.0f} Hz, not {rate}")
            self._near(seconds, json.loads(ended.stdout)["cpu_ns"] / 1e9, 0.06)

    def frequency_too_high(self):
        _, ended = self._run("ends return", "--freq=50000", status=125)
        expect("10000" in ended.stderr, f"does not say the limit: {ended.stderr!r}")
        expect(ended.stdout == b"", "the program ran")

    def unknown_setting(self):
        """An error that names the nearest as an option. In the environment, where a job may have any variable, it is a
        warning (tests/cli has its text), unless --strict makes it an error."""
        _, ended = self._run("ends return", "--sampling-fresq=10", status=125)
        expect("sampling-freq" in ended.stderr, f"no nearest name: {ended.stderr!r}")
        stray = {"KYMO_SAMPLNG_FREQ": "10"}
        self._run("ends return", status=6, environment=stray)
        _, ended = self._run("ends return", "--strict", status=125, environment=stray)
        expect("KYMO_SAMPLING_FREQ" in ended.stderr, f"no nearest name: {ended.stderr!r}")
        expect(ended.stdout == b"", "the program ran")

    def disabled(self):
        """KYMO_ENABLED=off: the program alone, with everything off (the peer forgets the trace: defect A11)."""
        result, ended = self._run("truth random 1 0.3", status=0, environment={"KYMO_ENABLED": "off"})
        expect(b"work_a" in ended.stdout, "no output")
        expect(not result.has("profile.pb.gz"), "there are results")

    def children_left_alone(self):
        result, _ = self._run("fork", "--follow-children=off")
        expect(len(result.processes()) == 1, f"{len(result.processes())} processes")

    def overflow_of_page_faults(self):
        """One sample every 100 page faults."""
        result, _ = self._run("threads_parked 2000", "--sampling-overflow",
                              "--sampling-overflow-event=page-faults", "--sampling-overflow-freq=100",
                              "--sampling-cputime=off")
        expect(result.samples() > 20, f"{result.samples()} samples of page faults")

    def real_time(self):
        """Blocked and working time together are the real time of the one thread."""
        result, ended = self._run("blocking times", "--realtime")
        times = json.loads(ended.stdout)
        real = sum(times.values()) / 1e9
        profile = result.profile()
        expect("wall" in profile.types, f"no wall-clock values among {profile.types}")
        total = sum(sample.values["wall"] for sample in profile.samples
                    if sample.labels["thread"] == "blocking") / 1e9
        expect(real - 0.4 <= total <= real + 0.3, f"{total:.2f} s of real time, not {real:.2f} s")

    def formats(self):
        """Only what was asked for."""
        result, _ = self._run("truth random 1 0.3", "--format=folded,json")
        files = set(os.listdir(result.directory))
        expect({"samples.folded", "profile.json"} <= files, f"files: {sorted(files)}")
        expect(not files & {"trace.pftrace", "report.html", "flamegraph.html", "profile.pb.gz", "profile.txt"},
               f"files: {sorted(files)}")


def main():
    kymo, tap = Kymo(sys.argv[1]), Tap()
    with Scratch() as scratch:
        collection = Collection(kymo, os.path.abspath(sys.argv[2]), scratch)
        for name in sorted(vars(Collection)):
            if not name.startswith("_"):
                tap.point(name.replace("_", " "), getattr(collection, name), retries=1)
    tap.finish()


main()
