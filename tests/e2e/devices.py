#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""What runs on devices, from the program to the outputs: OpenCL on PoCL, CUDA on a driver that runs nothing.

  devices.py KYMO DIRECTORY-OF-PROGRAMS SDK-CUDA DIRECTORY-OF-FAKE
"""
import collections
import json
import os
import re
import shutil
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../unit/output"))

from harness import Kymo, Result, Scratch, Skipped, Tap, expect, installed, run  # noqa: E402
from perfetto_decode import Trace  # noqa: E402

STRING, AGENT, SHAPE, KERNEL, COPY, CALL, MARKER = 1, 2, 3, 4, 5, 6, 8
PAUSES = """
#include <rocprofiler-sdk-roctx/roctx.h>
int main(void)
{
	roctxMarkA("before");
	roctxProfilerPause(0);
	roctxMarkA("during");
	roctxRangePushA("inside");
	roctxRangePop();
	roctxProfilerResume(0);
	roctxMarkA("after");
	return 0;
}
"""


class Records:
    """The .gpu file of a process, read by what include/kymo/gpu_records.h says."""

    def __init__(self, directory):
        spool = os.path.join(directory, "spool")
        names = [name for name in os.listdir(spool) if name.endswith(".gpu")]
        expect(len(names) == 1, f"{len(names)} files of records: {names}")
        with open(os.path.join(spool, names[0]), "rb") as stream:
            data = stream.read()
        expect(data[:8] == b"KYMOGPU\0", "not a file of records")
        self.losses = struct.unpack_from("<16Q", data, 56)
        self.strings, self.shapes = {}, {}
        self.kernels, self.copies, self.calls, self.markers = [], [], {}, []
        at, end = 4096, 4096 + struct.unpack_from("<Q", data, 48)[0]
        while at < end:
            kind, size, number = struct.unpack_from("<HHI", data, at)
            body = at + 8
            if kind == STRING:
                self.strings[number] = data[body:at + size].split(b"\0")[0].decode()
            elif kind == SHAPE:
                self.shapes[number] = struct.unpack_from("<10I", data, body)
            elif kind == KERNEL:
                self.kernels.append((number, *struct.unpack_from("<4Q2I", data, body)))
            elif kind == COPY:
                self.copies.append((number, *struct.unpack_from("<4Q4I", data, body)))
            elif kind == CALL:
                start, duration, correlation, tid, _ = struct.unpack_from("<3Q2I", data, body)
                self.calls[correlation] = (self.strings[number], start, duration, tid)
            elif kind == MARKER:
                self.markers.append(self.strings.get(struct.unpack_from("<2Q2I", data, body)[2], ""))
            at += size

    def kernel_names(self):
        return collections.Counter(self.strings[self.shapes[kernel[0]][0]] for kernel in self.kernels)

    def check_order(self):
        """A kernel starts after the call that launched it, on a thread that is there."""
        for shape, start, duration, correlation, _, tid, _ in self.kernels:
            expect(correlation in self.calls, f"kernel of shape {shape} without its call")
            call = self.calls[correlation]
            expect(call[1] <= start, f"kernel starts at {start}, {call[0]} at {call[1]}")
            expect(duration > 0, f"kernel of {duration} ns")
            expect(tid == call[3], f"kernel of thread {tid}, call of {call[3]}")


def numbers_of(ended):
    return {name: int(value) for name, value in re.findall(r"(kernels|copies|bytes) (\d+)", ended.stdout.decode())}


def main():
    kymo, tap = Kymo(sys.argv[1]), Tap()
    programs, cuda, fake = (os.path.abspath(path) for path in sys.argv[2:5])
    mix = os.path.join(programs, "opencl_mix")

    def sample(program, *options, environment=None, **how):
        directory = scratch.path(f"{os.path.basename(program[0])}-{len(os.listdir(scratch.directory))}")
        ended = kymo.sample(program, directory, *options, environment=environment, **how)
        return Result(directory), ended

    def with_opencl():
        if not os.path.exists(mix) or not shutil.which("clinfo") or \
                b"Platform #0" not in run(["clinfo", "-l"]).stdout:
            raise Skipped("no OpenCL device here")

    def opencl_kernels_and_copies():
        with_opencl()
        result, ended = sample([mix, "5"])
        expect(ended.status == 0, f"{ended.status}: {ended.stderr}")
        wanted, records = numbers_of(ended), Records(result.directory)
        expect(len(records.kernels) == wanted["kernels"], f"{len(records.kernels)} kernels, not {wanted}")
        expect(len(records.copies) == wanted["copies"], f"{len(records.copies)} copies, not {wanted}")
        expect(sum(copy[4] for copy in records.copies) == wanted["bytes"], "other bytes than copied")
        expect(records.kernel_names() == {"add": wanted["kernels"] // 2, "scale": wanted["kernels"] // 2},
               f"{records.kernel_names()}")
        expect(not any(records.losses), f"losses {records.losses}")
        records.check_order()

    def opencl_in_database():
        """Launches and copies one by one, their sums, and those of profile.json are the same."""
        with_opencl()
        result, ended = sample([mix, "5"])
        wanted, devices = numbers_of(ended), result.json("profile.json")["devices"]

        def rows(query):
            asked = run([kymo.path, "sql", "--format", "json", result.directory, query])
            expect(asked.status == 0, f"{asked}")
            return json.loads(asked.stdout)

        work = {row["kind"]: row for row in rows("select kind, count(*) n, sum(duration_ns) ns, sum(bytes) bytes "
                                                 "from device_work group by 1")}
        expect(work["kernel"]["n"] == wanted["kernels"] and work["copy"]["n"] == wanted["copies"], f"{work}, not {wanted}")
        expect(work["copy"]["bytes"] == wanted["bytes"], f"{work}, not {wanted}")
        [sums] = rows("select sum(launches) n, sum(total_ns) ns from kernels")
        expect((sums["n"], sums["ns"]) == (work["kernel"]["n"], work["kernel"]["ns"]), f"{sums} {work}")
        expect(sums["ns"] == sum(row["total_ns"] for row in devices["kernels"]), f"{sums} {devices['kernels']}")
        [sums] = rows("select sum(copies) n, sum(total_ns) ns from copies")
        expect((sums["n"], sums["ns"]) == (work["copy"]["n"], work["copy"]["ns"]), f"{sums} {work}")

    def opencl_all_calls():
        with_opencl()
        result, ended = sample([mix, "2"], "--gpu-calls=all")
        names = collections.Counter(call[0] for call in Records(result.directory).calls.values())
        expect(ended.status == 0, ended.stderr)
        for name in "clCreateContext", "clBuildProgram", "clSetKernelArg", "clReleaseContext":
            expect(names[name] > 0, f"no {name} in {names}")

    def opencl_summary_and_timeline():
        with_opencl()
        result, ended = sample([mix, "3"], "--output-formats=perfetto", quiet=False)
        for word in "Kernels on devices", "add", "scale", "host to device", "GB/s":
            expect(word in ended.stderr, f"{word!r} is not in the summary: {ended.stderr}")
        threads = ended.stderr.partition("\nThreads\n")[2].partition("\n\n")[0]
        expect("opencl_mix" in threads and "kymo" not in threads, f"threads of the program: {threads}")
        with open(result.path("trace.pftrace"), "rb") as stream:
            trace = Trace(stream.read())
        expect(not trace.errors, f"{trace.errors[:5]}")
        kernels = [event for event in trace.slices if event["category"] == "kernel"]
        calls = {flow: event for event in trace.slices for flow in event["flows"]}
        expect(len(kernels) == 18, f"{len(kernels)} kernels on the timeline")
        for kernel in kernels:
            expect(kernel["name"] in ("add", "scale"), kernel["name"])
            expect(len(kernel["last_flows"]) == 1, f"arrows {kernel['last_flows']}")
            call = calls.get(kernel["last_flows"][0])
            expect(call and call["name"] == "clEnqueueNDRangeKernel", f"launched by {call}")
            expect(call["time"] <= kernel["time"], "before it was launched")
        copies = [event for event in trace.slices if event["category"] == "copy"]
        expect(copies and all("bandwidth" in copy["values"] for copy in copies if copy["end"] > copy["time"]),
               f"{copies[:1]}")

    def off_is_off():
        with_opencl()
        result, ended = sample([mix, "2"], "--gpu=off")
        expect(ended.status == 0, ended.stderr)
        expect(not [name for name in os.listdir(result.path("spool")) if name.endswith(".gpu")], "records")

    def paused_is_not_recorded():
        library = os.path.dirname(installed(os.path.join(
            os.path.dirname(kymo.path), "../libkymo-sdk-roctx/librocprofiler-sdk-roctx.so.1")))
        headers = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../include")
        program = scratch.path("pauses")
        with open(program + ".c", "w", encoding="utf-8") as stream:
            stream.write(PAUSES)
        made = run(["cc", f"-I{headers}", program + ".c", f"-L{library}", "-lrocprofiler-sdk-roctx",
                    f"-Wl,-rpath,{library}", "-o", program])
        expect(made.status == 0, made.stderr)
        result, ended = sample([program])
        expect(ended.status == 0, ended.stderr)
        markers = Records(result.directory).markers
        expect(markers == ["before", "after"], f"markers {markers}")

    def loaders_without_layers():
        with_opencl()
        result, ended = sample([mix, "4"], "--opencl-preload=on", environment={"OPENCL_LAYERS": "/nowhere.so"})
        expect(ended.status == 0, ended.stderr)
        expect(len(Records(result.directory).kernels) == numbers_of(ended)["kernels"], "other kernels")

    def clpeak():
        with_opencl()
        if not shutil.which("clpeak"):
            raise Skipped("no clpeak here")
        result, ended = sample(["clpeak", "--kernel-latency"], timeout=300)
        expect(ended.status == 0, ended.stderr)
        records = Records(result.directory)
        expect(len(records.kernels) >= 20000, f"{len(records.kernels)} kernels")
        expect(not any(records.losses), f"losses {records.losses}")
        records.check_order()

    def cuda_environment(**more):
        return {"LD_LIBRARY_PATH": fake, **more}

    def cuda_launches():
        result, ended = sample([cuda, "launch", "20000"], environment=cuda_environment())
        expect(ended.status == 0, ended.stderr)
        records = Records(result.directory)
        expect(records.kernel_names() == {"nothing": numbers_of(ended)["kernels"]}, f"{records.kernel_names()}")
        expect(not any(records.losses), f"losses {records.losses}")
        records.check_order()

    def cuda_in_json():
        result, ended = sample([cuda, "launch", "20000"], environment=cuda_environment())
        devices, wanted = result.json("profile.json")["devices"], numbers_of(ended)
        expect(sum(row["count"] for row in devices["kernels"]) == wanted["kernels"], f"{devices['kernels']}, not {wanted}")
        expect([row["name"] for row in devices["kernels"]] == ["nothing"], f"{devices['kernels']}")
        row = devices["kernels"][0]
        expect(0 < row["minimum_ns"] <= row["maximum_ns"] <= row["total_ns"], f"{row}")
        expect(devices["missing"] == [] and devices["problems"] == [] and devices["calls"] >= wanted["kernels"], f"{devices}")

    def cuda_ends():
        for how, status in (("return", 0), ("_exit", 0), ("abort", -6), ("kill", -9)):
            result, ended = sample([cuda, "end", how], environment=cuda_environment())
            expect(ended.status in (status, 128 - status), f"{how}: {ended.status}")
            found = len(Records(result.directory).kernels)
            expect(found == 1000, f"{how}: {found} kernels")

    def cuda_graphs():
        for options, names in (((), {"[CUDA graph 1]": 120}), (("--cuda-graphs=nodes",), {"nothing": 1200})):
            result, ended = sample([cuda, "graph", "10", "100"], *options, environment=cuda_environment())
            expect(ended.status == 0, ended.stderr)
            records = Records(result.directory)
            expect(records.kernel_names() == names, f"{records.kernel_names()}")
            records.check_order()

    def cuda_without_calls():
        result, ended = sample([cuda, "launch", "1000"], "--gpu-calls=none", environment=cuda_environment())
        expect(ended.status == 0, ended.stderr)
        records = Records(result.directory)
        expect(len(records.kernels) == 3000 and not records.calls, f"{len(records.kernels)}, {len(records.calls)}")

    def cuda_of_another_tool():
        result, ended = sample([cuda, "launch", "1000"], quiet=False,
                               environment=cuda_environment(FAKE_CUPTI_HOLDER="Kineto"))
        expect(ended.status == 0, ended.stderr)
        expect("Kineto" in ended.stderr, ended.stderr)
        expect(Records(result.directory).losses[4] == 1, "no conflict is counted")

    def cuda_that_drops():
        result, ended = sample([cuda, "launch", "1000"], quiet=False,
                               environment=cuda_environment(FAKE_CUPTI_DROP="10"))
        expect(ended.status == 0, ended.stderr)
        expect(Records(result.directory).losses[2] == 300, f"{Records(result.directory).losses}")
        expect("300 records of devices dropped" in ended.stderr, ended.stderr)

    with Scratch() as scratch:
        for check in (opencl_kernels_and_copies, opencl_in_database, opencl_all_calls,
                      opencl_summary_and_timeline, off_is_off, paused_is_not_recorded, loaders_without_layers, clpeak, cuda_launches, cuda_in_json,
                      cuda_ends, cuda_graphs, cuda_without_calls,
                      cuda_of_another_tool, cuda_that_drops):
            tap.point(check.__name__.replace("_", " "), check)
    tap.finish()


main()
