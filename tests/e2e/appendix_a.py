#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""Defects that were found in another profiler by reading its code, each with a test that kymo does not
have it. The numbers are those of our list; what is not here: A4 (formats) and A13 (a delay alone) are
in collection.py; A8 is about instrumentation, A18 about Python scripts.

usage: appendix_a.py KYMO PROGRAM-DIRECTORY     (TAP)
"""
import collections
import os
import sys

import spool
from harness import Kymo, Result, Scratch, Tap, expect, require_tool, run


class AppendixA:
    """Each public method is one test; its text says what went wrong elsewhere."""

    def __init__(self, kymo, programs, scratch):
        self.kymo, self.programs, self.scratch, self.runs = kymo, programs, scratch, 0

    def _program(self, name):
        return os.path.join(self.programs, name)

    def _sample(self, command, *options, status=0, **how):
        self.runs += 1
        result = Result(self.scratch.path(f"result-{self.runs}"))
        ended = self.kymo.sample(command, result.directory, *options, **how)
        expect(ended.status == status, f"status {ended.status}, not {status}\n{ended.stderr[-1500:]}")
        return result, ended

    def _settings(self):
        shown = run([self.kymo.path, "avail", "settings", "--json", "--all"])
        expect(shown.status == 0, shown.stderr)
        self.runs += 1
        path = self.scratch.path(f"avail-{self.runs}.json")
        with open(path, "wb") as stream:
            stream.write(shown.stdout)
        return Result(self.scratch.directory).json(os.path.basename(path))["settings"]

    @staticmethod
    def _command(setting):
        """Most settings are those of sampling; some categories belong to a command of their own."""
        return setting["category"] if setting["category"] in ("instrument", "causal") else "sample"

    def a1_choices_offered_are_choices_taken(self):
        """The command line offered a value that the library did not know."""
        tried = 0
        for setting in self._settings():
            for choice in setting.get("choices", []):
                if setting["type"] != "choice":
                    continue
                # One with debug information: that is what a choice of lines wants.
                program = self._program("causal/toy") if setting["category"] == "causal" else None
                ended = run([self.kymo.path, self._command(setting), "-q", f"{setting['option']}={choice}",
                             "--output", self.scratch.path(f"choice-{tried}"), "--format=json", "--",
                             *([program, "--visits", "1"] if program else ["/bin/true"])])
                expect(ended.status == 0, f"{setting['option']}={choice}: {ended.stderr}")
                tried += 1
        expect(tried >= 15, f"{tried} choices tried")

    def a2_several_periods(self):
        """Joined by a separator that the parser did not split on: only the first one counted."""
        result, _ = self._sample(["sleep", "1.5"], "--periods=realtime:0.2:0.2:1,realtime:0.3:0.3:1")
        texts = [notice["text"] for process in result.processes() for notice in process["notices"]
                 if notice["kind"] == "window"]
        expect(texts == ["window opened", "window closed"] * 2, f"windows: {texts}")

    def a3_options_set_settings_that_exist(self):
        """Options set variables that nothing read."""
        known = {setting["environment"] for setting in self._settings()} | {"KYMO_SPOOL_DIRECTORY",
                                                                          "KYMO_COMPONENT_EVENTS"}
        values = {"boolean": "on", "integer": "64", "number": "1", "duration": "1", "size": "1G"}
        options = {"instrument": [], "causal": [], "sample": []}
        for setting in self._settings():
            if setting["type"] in values and setting["name"] not in (
                    "TRACE_DELAY", "TRACE_DURATION", "STRICT", "VERBOSE", "FOLLOW_CHILDREN", "FROM_OUTSIDE",
                    "KERNEL_FRAMES", "OFF_CPU"):
                value = "2" if setting["name"] in ("CAUSAL_ITERATIONS", "CAUSAL_UNTIL_CI") else values[setting["type"]]
                options[self._command(setting)].append(f"{setting['option']}={value}")
        for command in ("instrument", "causal"):
            expect(options[command], f"no option of kymo {command}")
            ended = run([self.kymo.path, command, "-q", "--output", self.scratch.path(command),
                         *options[command], "--", "/bin/true"])
            expect(ended.status == 0, f"{ended}")
        _, ended = self._sample(["/usr/bin/env"], "--follow-children=on", *options["sample"])
        shown = {line.split("=")[0] for line in ended.stdout.decode().splitlines()
                 if line.startswith("KYMO_")}
        expect(len(shown) > 10, f"variables: {sorted(shown)}")
        expect(not shown - known, f"variables that are no settings: {sorted(shown - known)}")

    def a5_a_configuration_file_alone(self):
        """-c did nothing without a second option."""
        path = self.scratch.path("kymo.conf")
        with open(path, "w", encoding="ascii") as stream:
            stream.write("SAMPLING_FREQ = 137\n")
        _, ended = self._sample(["/usr/bin/env"], "-c", path)
        expect(b"KYMO_SAMPLING_FREQ=137" in ended.stdout, "the file's setting did not arrive")

    def a6_exit_codes(self):
        """Lost where the launcher forked; a signal's number was returned raw."""
        for status in (0, 1, 3, 42, 125, 255):
            self._sample(["sh", "-c", f"exit {status}"], "--format=json", status=status)
        for signal in (6, 9, 11, 15):
            self._sample(["sh", "-c", f"kill -{signal} $$"], "--format=json", status=-signal)

    def a7_what_children_do_at_their_end(self):
        """A forked child's exit status, exit handlers and unwritten output were lost."""
        bare = run([self._program("child_exit")])
        expect(bare.status == 0 and bare.stdout.count(b"handler of the child") == 4, f"{bare}")
        for options in ((), ("--trace-processes=on", "--trace-threads=on", "--realtime")):
            _, ended = self._sample([self._program("child_exit")], *options)
            expect(ended.stdout == bare.stdout, f"{ended.stdout!r}\nbare {bare.stdout!r}")

    def a9_hardware_cache_events(self):
        """Cache events were taken for unknown ones, their result read from the operation."""
        for event in ("L1-dcache-load-misses", "LLC-loads", "dTLB-store-misses"):
            _, ended = self._sample(["/bin/true"], "--sampling-overflow",
                                    f"--sampling-overflow-event={event}", "--format=json")
            expect("unknown" not in ended.stderr.lower(), f"{event}: {ended.stderr}")

    def a10_collapse_settings_have_defaults_of_their_own(self):
        """One collapse setting took its default from another, the wrong way round."""
        for given in ((), ("--collapse-processes=on",), ("--collapse-processes=off",)):
            _, ended = self._sample(["/usr/bin/env"], *given)
            expect(b"KYMO_COLLAPSE_THREADS" not in ended.stdout, f"{given} changes COLLAPSE_THREADS")

    def a11_disabled_is_all_off(self):
        """ENABLED=false left the trace on."""
        result, ended = self._sample(["/usr/bin/env"], "--enabled=off")
        expect(not os.path.exists(result.directory), "a result directory was made")
        expect(b"libkymo.so" not in ended.stdout, "the library is preloaded")

    def a12_settings_are_listed_whatever_was_built(self):
        """A wrong preprocessor test hid settings of what was built in."""
        names = {setting["name"] for setting in self._settings()}
        wanted = {"USE_OMPT", "USE_KOKKOSP", "USE_MPIP", "USE_NCCL", "COMPONENTS", "WRAP"}
        expect(wanted <= names, f"not listed: {sorted(wanted - names)}")

    def a14_memory_is_not_called_page_faults(self):
        """A counter had the name of another one."""
        program = "import os; os.read(os.open('/dev/zero', os.O_RDONLY), 100 << 20); print('read')"
        result, _ = self._sample(["/usr/bin/python3", "-c", program], "--trace-io=on",
                                 "--components=peak_rss,num_minor_page_faults")
        components = {component["name"]: component["unit"]
                      for component in result.json("profile.json")["components"]}
        expect(components["peak_rss"] == "bytes" and components["num_minor_page_faults"] == "count",
               f"{components}")
        reads = [node for node in result.json("profile.json")["region_nodes"] if node["name"] == "read"]
        grown = max(node["peak_rss"]["sum_bytes"] for node in reads)
        faults = max(node["num_minor_page_faults"]["sum"] for node in reads)
        expect(90 << 20 <= grown <= 110 << 20, f"{grown} bytes more while 100 MiB were read")
        expect(10 < faults < 60000, f"{faults} page faults while 100 MiB were read")

    def a15_depth_across_switches(self):
        """A pop lowered the depth of what its push had left out: depths drifted."""
        result, _ = self._sample([self._program("balance")], "--trace-thread-locks=on",
                                 "--trace-threads=off", "--trace-thread-join=off")
        depths = collections.Counter()
        for events in spool.regions(result.directory).values():
            depth = 0
            for event in events:
                if event.what in ("begin", "whole"):
                    depths[event.name, depth] += 1
                depth += (event.what == "begin") - (event.what == "end")
                expect(depth >= 0, f"below 0 at {event}")
            expect(depth == 0, f"{depth} regions are left open")
        wanted = {("outer", 0): 30, ("inner", 1): 30, ("pthread_mutex_lock", 1): 60,
                  ("pthread_mutex_lock", 2): 30, ("pthread_mutex_unlock", 1): 60,
                  ("pthread_mutex_unlock", 2): 30}
        expect(dict(depths) == wanted, f"{dict(depths)}")

    def a16_preload_is_put_in_front_once(self):
        """Prepending appended."""
        require_tool("gcc")
        other = self.scratch.path("other.so")
        built = run(["gcc", "-shared", "-fPIC", "-x", "c", "/dev/null", "-o", other])
        expect(built.status == 0, built.stderr)
        _, ended = self._sample(["sh", "-c", "exec /usr/bin/env"], environment={"LD_PRELOAD": other})
        preload = [line.split("=", 1)[1] for line in ended.stdout.decode().splitlines()
                   if line.startswith("LD_PRELOAD=")]
        expect(len(preload) == 1, f"{preload}")
        entries = preload[0].split(":")
        expect(entries[-1] == other and "libkymo" in entries[0], f"{entries}")
        expect(len(set(entries)) == len(entries), f"twice: {entries}")

    def a17_tests_that_can_fail(self):
        """Validators let additional and missing rows pass: ours sees one event more or less."""
        result, _ = self._sample([self._program("balance")], "--trace-thread-locks=on")
        path = [os.path.join(result.directory, "spool", name)
                for name in os.listdir(result.path("spool"))][0]
        before = sum(map(len, spool.regions_of_file(path).values()))
        with open(path, "rb") as stream:
            data = bytearray(stream.read())
        for at in range(spool.HEADER, len(data), spool.HEADER):
            if data[at:at + 4] == b"CHNK" and data[at + 8] | data[at + 9]:
                data[at + 8:at + 12] = bytes(4)  # nothing committed in this chunk
        with open(path, "wb") as stream:
            stream.write(data)
        after = sum(map(len, spool.regions_of_file(path).values()))
        expect(before > 300 > after, f"{before} events, {after} after emptying the file")

    def a19_traces_are_not_kept_in_memory_nor_cut_silently(self):
        """The trace lay in memory until the end and was cut at a limit without a word."""
        command = [self._program("locks_counted"), "4", "250000", "peak"]
        options = ("--trace-thread-locks=on", "--format=json")
        bare, ended = self._peak(command), None
        result, ended = self._sample(command, *options)
        losses = result.metadata()["losses"]
        expect(not losses.get("region_events", 0), f"events lost: {losses}")
        peak = max(int(line) for line in ended.stdout.decode().splitlines() if line.isdigit())
        expect(peak - bare < 100 << 10, f"{peak} KiB resident, {bare} alone, for two million events")
        for more, least in (["--spool-ring=off"], 1000), ([], 20):
            result, ended = self._sample(command, *options, "--spool-limit=2M", *more, quiet=False)
            losses = result.metadata()["losses"]
            missing = ("memory_limit", "region_events") if more else ("ring_overwrite",)
            expect(sum(losses.get(name, 0) for name in missing) > least, f"{more}: {losses}")
            expect("limit" in ended.stderr.lower() or "lost" in ended.stderr.lower(),
                   f"{more}: nothing said: {ended.stderr!r}")

    @staticmethod
    def _peak(command):
        ended = run(command)
        return max(int(line) for line in ended.stdout.decode().splitlines() if line.isdigit())

    def a20_shares_are_of_time_not_of_frames(self):
        """Percentages were of frames: deep stacks weighed more."""
        result, _ = self._sample([self._program("depths")], "--format=json,pprof")
        shares = result.inclusive_shares()
        for name in ("shallow_work", "deep_work"):
            expect(0.42 < shares.get(name, 0) < 0.58, f"{name}: {shares.get(name, 0):.1%} of the time")


def main():
    kymo, tap = Kymo(sys.argv[1]), Tap()
    chosen = sys.argv[3:]
    with Scratch() as scratch:
        tests = AppendixA(kymo, os.path.abspath(sys.argv[2]), scratch)
        for name in sorted(vars(AppendixA), key=lambda name: (len(name.split("_")[0]), name)):
            if not name.startswith("_") and (not chosen or name.split("_")[0] in chosen):
                tap.point(name.replace("_", " "), getattr(tests, name))
    tap.finish()


main()
