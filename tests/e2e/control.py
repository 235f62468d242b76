#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""When collection is on: windows, start and stop by the program, by signal and from outside, selected regions. What was
recorded is compared with what the program did at that time.

usage: control.py KYMO PROGRAM-DIRECTORY     (TAP)
"""
import os
import re
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "unit", "output"))
import perfetto_decode  # pylint: disable=wrong-import-position
import spool  # pylint: disable=wrong-import-position
from harness import Kymo, Result, Scratch, Tap, clean_environment, expect  # pylint: disable=wrong-import-position


class Control:
    """Each public method is one test."""

    def __init__(self, kymo, programs, scratch):
        self._kymo, self._scratch, self._runs = kymo, scratch, 0
        self._program = os.path.join(programs, "control")

    def _directory(self):
        self._runs += 1
        return self._scratch.path(f"run-{self._runs}")

    def _run(self, mode, *options, shell=None):
        """`shell`: what a shell does before the program."""
        directory = self._directory()
        command = ["sh", "-c", f"{shell}; {self._program} {mode}; :"] if shell else [self._program, mode]
        ended = self._kymo.sample(command, directory, *options)
        expect(ended.status == 0, f"status {ended.status}\n{ended.stderr}")
        return Result(directory)

    def _outer(self, wanted, *options, crossing="", shell=None):
        """Which of outer_a to outer_d began in the window, and which counter values came with them. What was open
        when a window opened (`crossing`) has a record of its window and an end, but no begin."""
        result = self._run("outer", *options, shell=shell)
        events = [event for events in spool.regions(result.directory).values() for event in events]
        began = sorted(event.name for event in events if event.what == "begin" and event.category == "user")
        ended = sorted(event.name for event in events if event.what == "end" and event.category == "user")
        values = sorted(int(event.extra) for event in events if event.what == "counter")
        expect(began == [f"outer_{letter}" for letter in wanted], f"began: {began}, not {wanted}")
        expect(ended == sorted(began + [f"outer_{letter}" for letter in crossing]), f"began: {began}, ended: {ended}")
        expect(values == ["abcd".index(letter) for letter in wanted], f"counter values {values}")

    def windows_none(self):
        self._outer("abcd")

    def windows_duration(self):
        self._outer("abc", "--duration=1.25")

    def windows_delay_and_duration(self):
        self._outer("cd", "--wait=0.75", "--duration=0.75", crossing="b")

    def windows_delay_alone_a13(self):
        """The peer records nothing then (defect A13)."""
        self._outer("cd", "--wait=0.75", crossing="b")

    def windows_cycles(self):
        self._outer("bd", "--periods=monotonic:0.35:0.55:2", crossing="ac")

    def windows_two_periods(self):
        """The second begins when the first is over: off 0.2, on 0.5 (b), off 0.4, on (d)."""
        self._outer("bd", "--periods=monotonic:0.2:0.5:1 realtime:0.4:0:1", crossing="ac")

    def windows_two_options_a2(self):
        """The peer joins them by commas, which it does not split at (defect A2)."""
        self._outer("bd", "--periods", "monotonic:0.2:0.5:1", "realtime:0.4:0:1", crossing="ac")

    def windows_of_cpu_time(self):
        """A process that sleeps uses none: the delay is never over."""
        self._outer("", "--periods=process_cputime:0.5:0:1")

    def windows_are_those_of_the_session(self):
        """The program comes 0.5 s late: outer_b begins at 0.95 s, outer_c at 1.4 s."""
        self._outer("cd", "--wait=1.15", crossing="b", shell="sleep 0.5")

    def windows_do_not_drift(self):
        """Twenty cycles of 60 ms: what one change is late is not added to the next. A busy machine makes any of
        them late, so the promptest of the first and of the last five are compared."""
        result = self._run("outer", "--periods=monotonic:0.03:0.03:20")
        # When in the cycle; closing comes half a cycle later.
        times = [(notice["time_ns"] / 1e6 - (30 if "closed" in notice["text"] else 0)) % 60
                 for notice in result.processes()[0]["notices"] if notice["kind"] == "window"]
        expect(len(times) >= 20, f"{len(times)} changes")
        grid = min(times[:5], key=lambda origin: sum((time_ms - origin) % 60 for time_ms in times[:5]))
        late = min(((time_ms - grid) % 60 for time_ms in times[-5:]), key=lambda late: min(late, 60 - late))
        expect(min(late, 60 - late) < 12, f"the last changes are {late:.1f} ms off the grid of 60 ms")

    def _seconds(self, result):
        """CPU seconds by function."""
        total = result.profile().total("cpu") / 1e9
        return {name: share * total for name, share in result.inclusive_shares().items() if name.startswith("work_")}

    def _expect_worked(self, result, **wanted):
        seconds = self._seconds(result)
        for name, length in wanted.items():
            seen = seconds.pop(f"work_{name}", 0)
            expect(length - 0.06 <= seen <= length + 0.03, f"{seen:.3f} s in work_{name}, not {length}: {seconds}")
        rest = sum(seconds.values())
        expect(rest < 0.025, f"{rest:.3f} s in functions that ran while nothing was to be collected: {seconds}")

    def start_and_stop(self):
        self._expect_worked(self._run("switches"), before=0.2, after=0.2, other_thread=0.2, last=0.2)

    def not_before_the_start(self):
        self._expect_worked(self._run("switches", "--init-enabled=off"), after=0.2, other_thread=0.2, last=0.2)

    def windows_wait_for_the_start(self):
        """0.1 s from the first start on, not from the start of the program."""
        self._expect_worked(self._run("switches", "--init-enabled=off", "--periods=process_cputime:0:0.1:1"),
                            after=0.1)

    def stop_costs_no_coverage(self):
        """What was not to be collected is not missing."""
        process = self._run("switches").processes()[0]
        expect(not [n for n in process["notices"] if n["kind"] == "low_coverage"], f"{process['notices']}")

    def selected_regions(self):
        self._expect_worked(self._run("chosen", "--selected-regions=chosen"), after=0.2, last=0.2)

    def selected_regions_are_recorded_alone(self):
        result = self._run("chosen", "--selected-regions=chosen")
        names = {event.name for events in spool.regions(result.directory).values() for event in events}
        expect(names == {"chosen"}, f"regions {names}")

    def control_signal(self):
        result = self._run("signal", "--control-signal=SIGUSR2")
        self._expect_worked(result, before=0.2, after=0.2, last=0.2)
        notices = [n["text"] for n in result.processes()[0]["notices"] if n["kind"] == "conflict"]
        expect(any("stopped using it" in text for text in notices), f"notices {notices}")

    def counters_stand_still_while_stopped(self):
        result = self._run("counters", "--sampling-counters=minor-faults")
        last = self._run_counter(result)
        expect(1900 <= last <= 3500, f"{last} faults counted, not some 2000")

    def components_count_perf_events(self):
        """By the kernel's name and by libpfm4's, in a region of the program's own, which passes a stop."""
        result = self._run("counters", "--components=minor-faults,perf::PAGE-FAULTS")
        with open(result.path("profile.txt"), encoding="utf-8") as stream:
            counts = re.findall(r"^ +fault .* count +(\d+) ", stream.read(), re.M)
        expect(len(counts) == 2 and all(5000 <= int(count) <= 5100 for count in counts), f"{counts} faults, not 5000")

    @staticmethod
    def _run_counter(result):
        with open(result.path("trace.pftrace"), "rb") as stream:
            trace = perfetto_decode.Trace(stream.read())
        return max(event["value"] for event in trace.counters
                   if trace.track_name(event["track"]).startswith("Hardware counter"))

    def from_outside(self):
        """kymo ctl on a process and on its tree."""
        directory = self._directory()
        command = [self._kymo.path, "sample", "-q", "-o", directory, "--time-output=off", "--", "sh", "-c",
                   "sleep 600 & one=$!; sleep 600 & read line; kill $one $!"]
        with subprocess.Popen(command, env=clean_environment(), stdin=subprocess.PIPE) as sample:
            pids = []
            deadline = time.monotonic() + 60
            while (not pids or len(children_of(pids[0])) < 2) and time.monotonic() < deadline:
                time.sleep(0.005)
                pids = spool_pids(directory)
            # the children have used too little CPU time to record, and do because they are asked
            done = subprocess.run([self._kymo.path, "ctl", "--tree", str(pids[0]), "stop"], check=False,
                                  capture_output=True, env=clean_environment(), timeout=20)
            expect(done.returncode == 0, f"{done.stderr}")
            state = subprocess.run([self._kymo.path, "ctl", "--tree", str(pids[0])], check=False,
                                   capture_output=True, env=clean_environment(), timeout=20).stdout.decode()
            expect(state.count(" not collecting") == state.count("collecting") >= 3, state)
            sample.communicate(b"\n", timeout=60)
        expect(sample.returncode in (0, 143), f"status {sample.returncode}")


def children_of(pid):
    """Those that have executed their program."""
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as stream:
        children = stream.read().split()
    return [child for child in children if os.readlink(f"/proc/{child}/exe") != os.readlink(f"/proc/{pid}/exe")]


def spool_pids(directory):
    """Of the processes that record, the oldest first."""
    try:
        names = os.listdir(os.path.join(directory, "spool"))
    except FileNotFoundError:
        return []
    return sorted({int(name.split("-")[0]) for name in names})


def main():
    kymo, tap = Kymo(sys.argv[1]), Tap()
    with Scratch() as scratch:
        control = Control(kymo, os.path.abspath(sys.argv[2]), scratch)
        for name in sorted(vars(Control)):
            if not name.startswith("_") and (not sys.argv[3:] or name in sys.argv[3:]):
                tap.point(name.replace("_", " "), getattr(control, name), retries=2)
    tap.finish()


main()
