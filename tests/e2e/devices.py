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

# Launches from functions whose shares are known, some time after the driver was loaded. MODE: as main() says.
CALL_PATHS = """
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static int (*launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **);
static int (*to_device)(unsigned long, const void *, unsigned long, void *);
static int (*fill)(unsigned long, unsigned char, unsigned long, void *);
static void *function;
static unsigned long memory;
static char bytes[4096];
#define APART __attribute__((noinline, noclone))
APART void kernels(int count)
{
	for (int i = 0; i < count; i++)
		launch(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
}
APART void forward(void) { kernels(1000); __asm__ volatile(""); }
APART void backward(void) { kernels(3000); __asm__ volatile(""); }
APART void load(void)
{
	for (int i = 0; i < 500; i++)
		to_device(memory, bytes, sizeof(bytes), NULL);
	__asm__ volatile("");
}
APART void deep(int depth) { if (depth) deep(depth - 1); else kernels(100); __asm__ volatile(""); }
static void *thread(void *unused) { backward(); return unused; }
static void *find(void *driver, const char *name)
{
	void *found = dlsym(driver, name);
	if (found == NULL) { fprintf(stderr, "no %s\\n", name); exit(1); }
	return found;
}
int main(int count, char **values)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW), *context, *module;
	int device, steps = 2;
	pthread_t other;
	if (driver == NULL) { fprintf(stderr, "%s\\n", dlerror()); return 1; }
	((int (*)(unsigned))find(driver, "cuInit"))(0);
	((int (*)(int *, int))find(driver, "cuDeviceGet"))(&device, 0);
	((int (*)(void **, int))find(driver, "cuDevicePrimaryCtxRetain"))(&context, device);
	((int (*)(void *))find(driver, "cuCtxSetCurrent"))(context);
	((int (*)(void **, const void *))find(driver, "cuModuleLoadData"))(&module, "x");
	((int (*)(void **, void *, const char *))find(driver, "cuModuleGetFunction"))(&function, module, "nothing");
	((int (*)(unsigned long *, unsigned long))find(driver, "cuMemAlloc_v2"))(&memory, sizeof(bytes));
	*(void **)&launch = find(driver, "cuLaunchKernel");
	*(void **)&to_device = find(driver, "cuMemcpyHtoDAsync_v2");
	usleep(400000);
	while (steps-- > 0) { forward(); backward(); load(); }
	if (strcmp(values[1], "deep") == 0) deep(400);
	if (strcmp(values[1], "thread") == 0) { pthread_create(&other, NULL, thread, NULL); pthread_join(other, NULL); }
	usleep(300000);
	if (strcmp(values[1], "kill") == 0) raise(SIGKILL);
	return 0;
}
"""
PYTHON_CALL_PATHS = """
import ctypes, time
cuda = ctypes.CDLL("libcuda.so.1")
def check(status): assert status == 0, status
device, context, module, function = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
check(cuda.cuInit(0))
check(cuda.cuDeviceGet(ctypes.byref(device), 0))
check(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device))
check(cuda.cuCtxSetCurrent(context))
check(cuda.cuModuleLoadData(ctypes.byref(module), b"x"))
check(cuda.cuModuleGetFunction(ctypes.byref(function), module, b"nothing"))
launch = cuda.cuLaunchKernel
time.sleep(0.4)
def kernels(count):
    for _ in range(count): launch(function, 1, 1, 1, 1, 1, 1, 0, None, None, None)
def forward(): kernels(500)
def backward(): kernels(1500)
def nested(depth):
    if depth: return nested(depth - 1)
    kernels(300)
for step in range(3):
    forward()
    backward()
nested(30)
nested(31)
"""


# A thread of C launches while Python waits for it, as gradients are computed.
GRADIENTS_LIBRARY = """
#include <pthread.h>
#include <unistd.h>
static int (*launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **);
static void *kernel;
static int count;
__attribute__((noinline)) static void *compute_gradients(void *unused)
{
	usleep(20000);
	for (int i = 0; i < count; i++)
		launch(kernel, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0);
	return unused;
}
void run_backward(void *function, void *of, int kernels)
{
	pthread_t thread;
	launch = function;
	kernel = of;
	count = kernels;
	pthread_create(&thread, 0, compute_gradients, 0);
	pthread_join(thread, 0);
}
"""
WAITING_PYTHON = """
def _engine_run_backward(library, *arguments):
    library.run_backward(*arguments)
"""
GRADIENTS = PYTHON_CALL_PATHS[:PYTHON_CALL_PATHS.index("for step in")] + """
import sys, os
sys.path.insert(0, os.path.dirname(__file__))
from torch.autograd import graph
import pool
library = ctypes.CDLL(os.path.join(os.path.dirname(__file__), "libtorch_python.so"))
entry = ctypes.cast(launch, ctypes.c_void_p)
library.run_backward(entry, function, 1) # from here on kymo knows the library
time.sleep(0.6)
def train():
    forward()
    graph._engine_run_backward(library, entry, function, 2000)
def elsewhere():
    pool._engine_run_backward(library, entry, function, 700)
train()
train()
elsewhere()
"""


# The host does something else for 4 ms before each of 50 launches.
STALLS = PYTHON_CALL_PATHS[:PYTHON_CALL_PATHS.index("def kernels")] + """
def busy(): launch(function, 1, 1, 1, 1, 1, 1, 0, None, None, None)
def after_stall(): launch(function, 1, 1, 1, 1, 1, 1, 0, None, None, None)
for step in range(50):
    for _ in range(20): busy()
    time.sleep(0.004)
    after_stall()
"""

# Thirty steps of 26 launches, of which two wait for their data. argv[1]: a library with roctx, whose ranges are then around
# two launches of each step.
STEPS = PYTHON_CALL_PATHS[:PYTHON_CALL_PATHS.index("time.sleep")] + """
import sys
roctx = ctypes.CDLL(sys.argv[1]) if len(sys.argv) > 1 else None
def kernel(name):
    function = ctypes.c_void_p()
    check(cuda.cuModuleGetFunction(ctypes.byref(function), module, name))
    return lambda: launch(function, 1, 1, 1, 1, 1, 1, 0, None, None, None)
first, matmul, add, loss, adam = [kernel(name) for name in (b"embed", b"matmul", b"add", b"loss", b"adam")]
start_up = kernel(b"init")
def load(step): time.sleep(0.15 if step in (11, 23) else 0.004)
def forward(step): load(step); first()
time.sleep(0.4)
for _ in range(40): start_up()
for step in range(30):
    if roctx: roctx.roctxRangePushA(b"optimizer step")
    forward(step)
    for layer in range(11): matmul(); add()
    if roctx: roctx.roctxRangePop()
    loss(); adam(); adam()
"""


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

    def call_paths_program():
        program = scratch.path("call_paths")
        if not os.path.exists(program):
            with open(program + ".c", "w", encoding="utf-8") as stream:
                stream.write(CALL_PATHS)
            made = run(["cc", "-g", "-O1", program + ".c", "-o", program, "-ldl", "-lpthread"])
            expect(made.status == 0, made.stderr)
        return program

    def device_ns_below(profile, function, kind="native"):
        """Device time of the nodes that have the function above them, and how often it has what it stands for."""
        frames, nodes = {frame["id"]: frame for frame in profile["frames"]}, profile["nodes"]
        total = 0
        for node in nodes:
            at, found = node, False
            while "device_ns" in node and at is not None and not found:
                frame = frames[at["frame"]]
                found = frame["name"] == function and (kind is None or frame["kind"] == kind)
                at = None if at["parent"] is None else nodes[at["parent"]]
            total += node.get("device_ns", 0) if found else 0
        return total

    def call_paths(mode, *options, status=0):
        result, ended = sample([call_paths_program(), mode], *options, environment=cuda_environment(), quiet=False)
        expect(ended.status in (status, 128 - status), f"{ended.status}: {ended.stderr}")
        return result.json("profile.json"), ended

    def cuda_call_paths():
        profile, ended = call_paths("plain")
        paths = profile["devices"]["paths"]
        # 8000 kernels of 500 ns, 1000 copies: as long as the fake says
        expect(paths["all"]["kernels"] == 8000 and paths["all"]["copies"] == 1000, f"{paths['all']}")
        expect(paths["complete"] == paths["all"] and not paths["incomplete"] and not paths["missing"], f"{paths}")
        forward, backward, load = (device_ns_below(profile, name) for name in ("forward", "backward", "load"))
        expect(forward == 2000 * 500 and backward == 6000 * 500, f"forward {forward}, backward {backward}")
        expect(forward + backward + load == paths["all"]["device_ns"], f"{forward} + {backward} + {load}: {paths['all']}")
        expect(device_ns_below(profile, "main") == paths["all"]["device_ns"], "not all from main")
        expect(device_ns_below(profile, "nothing", "device") == 8000 * 500, "the kernel is no leaf")
        expect(not any(frame["name"].startswith("launch_find_path") and device_ns_below(profile, frame["name"])
                       for frame in profile["frames"]), "kymo's own frames in a path")
        for word in "Device time by line of code", "call_paths.c:":
            expect(word in ended.stderr, f"{word!r} is not in the summary: {ended.stderr}")

    def cuda_call_paths_of_threads_and_deep_stacks():
        profile, _ = call_paths("thread")
        expect(device_ns_below(profile, "thread") == 3000 * 500, "work of the thread")
        expect(device_ns_below(profile, "main") == 8000 * 500 + device_ns_below(profile, "load"), "work of main()")
        profile, _ = call_paths("deep")
        paths = profile["devices"]["paths"]
        expect([gap["kernels"] for gap in paths["incomplete"]] == [100], f"{paths['incomplete']}")
        expect(device_ns_below(profile, "deep") == 100 * 500, "what is cut has its innermost frames")

    def cuda_call_paths_survive_a_kill():
        profile, _ = call_paths("kill", status=137)
        paths = profile["devices"]["paths"]
        expect(paths["all"]["kernels"] == 8000, f"{paths['all']}")
        expect(paths["complete"] == paths["all"], f"{paths}")

    def cuda_call_paths_can_be_off():
        profile, ended = call_paths("plain", "--gpu-stacks=off")
        expect("paths" not in profile["devices"], "paths that were not asked for")
        expect("Device time by line" not in ended.stderr, ended.stderr)
        expect(not any("device_ns" in node for node in profile["nodes"]), "device time in the tree")

    def cuda_call_paths_of_graphs():
        result, _ = sample([cuda, "graph", "10", "60000"], environment=cuda_environment())
        profile = result.json("profile.json")
        paths = profile["devices"]["paths"]
        # The first launches come before kymo knows the driver's code.
        expect(paths["complete"]["device_ns"] > 0, f"{paths}")
        expect(device_ns_below(profile, "run_graph") == paths["complete"]["device_ns"], "other functions launched it")

    def cuda_call_paths_of_python():
        script = scratch.path("train.py")
        with open(script, "w", encoding="utf-8") as stream:
            stream.write(PYTHON_CALL_PATHS)
        result, ended = sample([sys.executable, script], "--output-formats=json,perfetto",
                               environment=cuda_environment(), quiet=False)
        expect(ended.status == 0, ended.stderr)
        profile = result.json("profile.json")
        paths = profile["devices"]["paths"]
        if not any(frame["kind"] == "interpreted" for frame in profile["frames"]):
            raise Skipped("a Python whose frames kymo cannot read")
        expect(paths["all"]["kernels"] == 6600 and paths["complete"] == paths["all"], f"{paths}")
        for name, kernels in (("forward", 1500), ("backward", 4500), ("nested", 600), ("<module>", 6600)):
            found = device_ns_below(profile, name, "interpreted")
            expect(found == kernels * 500, f"{name}: {found} ns, not {kernels * 500}")
        line = 1 + PYTHON_CALL_PATHS.split("\n").index(
            "    for _ in range(count): launch(function, 1, 1, 1, 1, 1, 1, 0, None, None, None)")
        rows = [(row["function"], row["line"], row["self_ns"]) for row in paths["lines"]]
        expect(rows == [("kernels", line, 6600 * 500)], f"{rows}")
        expect([row["name"] for row in paths["modules"]] == [script], f"{paths['modules']}")
        with open(result.path("trace.pftrace"), "rb") as stream:
            trace = Trace(stream.read())
        launched = collections.Counter(event["values"].get("launched by") for event in trace.slices
                                       if event["category"] == "kernel")
        expect(not trace.errors, f"{trace.errors[:5]}")
        expect(launched == {f"kernels (train.py:{line})": 6600}, f"{launched}")
        folded = run([kymo.path, "report", "--measure=device", "--format=folded", result.directory]).stdout.decode()
        expect(sum(int(row.rpartition(" ")[2]) for row in folded.splitlines()) == 6600 * 500, folded)

    def cuda_call_paths_of_gradients():
        directory = scratch.path("gradients")
        os.makedirs(os.path.join(directory, "torch", "autograd"))
        for name, text in (("gradients.c", GRADIENTS_LIBRARY), ("train.py", GRADIENTS), ("pool.py", WAITING_PYTHON),
                           ("torch/__init__.py", ""), ("torch/autograd/__init__.py", ""),
                           ("torch/autograd/graph.py", WAITING_PYTHON)):
            with open(os.path.join(directory, name), "w", encoding="utf-8") as stream:
                stream.write(text)
        made = run(["cc", "-g", "-O1", "-shared", "-fPIC", os.path.join(directory, "gradients.c"), "-o",
                    os.path.join(directory, "libtorch_python.so"), "-lpthread"])
        expect(made.status == 0, made.stderr)
        result, ended = sample([sys.executable, os.path.join(directory, "train.py")], environment=cuda_environment())
        expect(ended.status == 0, ended.stderr)
        profile = result.json("profile.json")
        paths = profile["devices"]["paths"]
        if not any(frame["kind"] == "interpreted" for frame in profile["frames"]):
            raise Skipped("a Python whose frames kymo cannot read")
        expect(paths["all"]["kernels"] == 5701 and paths["complete"]["kernels"] >= 5700, f"{paths}")
        # Whose work it is where PyTorch waits; what another thread launches is its own.
        for name, kernels in (("train", 5000), ("_engine_run_backward", 4000), ("elsewhere", 0)):
            found = device_ns_below(profile, name, "interpreted")
            expect(found == kernels * 500, f"{name}: {found} ns, not {kernels * 500}")
        rows = {row["function"]: row["self_ns"] // 500 for row in paths["lines"]}
        expect((rows["kernels"], rows["_engine_run_backward"]) == (1000, 4000), f"{rows}")
        expect(rows["compute_gradients"] in (700, 701), f"{rows}")
        found = device_ns_below(profile, "compute_gradients")
        expect(found in (4700 * 500, 4701 * 500), f"the thread's own frames: {found} ns")

    def cuda_idle_time():
        script = scratch.path("stalls.py")
        with open(script, "w", encoding="utf-8") as stream:
            stream.write(STALLS)
        result, ended = sample([sys.executable, script], environment=cuda_environment(), quiet=False)
        expect(ended.status == 0, ended.stderr)
        profile = result.json("profile.json")
        idle = profile["devices"]["idle"]
        if not any(frame["kind"] == "interpreted" for frame in profile["frames"]):
            raise Skipped("a Python whose frames kymo cannot read")
        expect(idle["span_ns"] == idle["busy_ns"] + idle["idle_ns"], f"{idle}")
        expect(sum(row["idle_ns"] for row in idle["lines"]) == idle["idle_ns"], f"{idle}")
        rows = {row["function"]: row for row in idle["lines"]}
        stalled = rows["after_stall"]
        # Each of them ends one gap; nearly all of it is the host's.
        expect(stalled["gaps"] == 50 and stalled["idle_ns"] >= 50 * 4000000, f"{stalled}")
        expect(stalled["before_launch_ns"] > 0.98 * stalled["idle_ns"], f"{stalled}")
        expect(idle["lines"][0]["function"] == "after_stall", f"{idle['lines']}")
        expect(stalled["idle_ns"] + rows["busy"]["idle_ns"] == idle["idle_ns"], f"{rows}")
        for word in "Idle time of devices by line of code", "after_stall (stalls.py:", "had not launched":
            expect(word in ended.stderr, f"{word!r} is not in the summary: {ended.stderr}")

    def cuda_steps(*arguments, options=(), found_by, name):
        script = scratch.path("steps.py")
        with open(script, "w", encoding="utf-8") as stream:
            stream.write(STEPS)
        result, ended = sample([sys.executable, script, *arguments], *options, environment=cuda_environment(), quiet=False)
        expect(ended.status == 0, ended.stderr)
        profile = result.json("profile.json")
        series, = profile["devices"]["steps"]
        expect((series["found_by"], series["name"], series["count"]) == (found_by, name, 30), f"{series}")
        parts = ("computing_ns", "exposed_communication_ns", "exposed_copies_ns", "idle_before_launch_ns", "idle_after_launch_ns")
        for step in series["steps"]:
            expect(step["ns"] == sum(step[part] for part in parts), f"{step}")
        # Behind the last range the program still launches three kernels, which are in no step.
        works = [step["work"] for step in series["steps"]]
        expect(works == 29 * [26] + [23 if found_by == "range" else 26], f"{works}")
        with open(result.path("trace.pftrace"), "rb") as stream:
            trace = Trace(stream.read())
        slices = [event for event in trace.slices if event["category"] == "step"]
        expect(not trace.errors, f"{trace.errors[:5]}")
        expect([event["name"].split(" (")[0] for event in slices] == [f"step {i}" for i in range(1, 31)], f"{slices[:3]}")
        expect(sum("(slow)" in event["name"] for event in slices) == series["slow"], f"{slices}")
        if shutil.which("sqlite3"):
            rows = run([kymo.path, "sql", "--format", "json", result.directory,
                        "select count(*) as steps, sum(duration_ns) as ns, sum(slow) as slow from steps"])
            expect(rows.status == 0, rows.stderr)
            expect(json.loads(rows.stdout)[0] == {"steps": 30, "ns": sum(step["ns"] for step in series["steps"]),
                                                  "slow": series["slow"]}, f"{rows.stdout}")
        # A step lasts until the next one begins, which waits for its data.
        steps = sorted(range(30), key=lambda step: -series["steps"][step]["ns"])
        expect(sorted(steps[:2]) == [10, 22], f"{steps}")
        if any(frame["kind"] == "interpreted" for frame in profile["frames"]):
            more = series["slow_steps_have_more"][0]
            expect(more["what"].startswith("idle before launches from ") and "(steps.py:" in more["what"], f"{more}")
        expect("Steps of the work on devices" in ended.stderr and f"'{name}'" in ended.stderr, ended.stderr)

    def cuda_steps_by_launches():
        cuda_steps(found_by="launches", name="embed")

    def cuda_steps_by_ranges():
        roctx = os.path.join(programs, "../../src/libkymo-sdk-roctx/librocprofiler-sdk-roctx.so.1")
        if not os.path.exists(roctx):
            raise Skipped("no " + roctx)
        cuda_steps(roctx, found_by="range", name="optimizer step")
        cuda_steps(roctx, options=("--step-range=optimizer step",), found_by="range", name="optimizer step")

    with Scratch() as scratch:
        for check in (opencl_kernels_and_copies, opencl_in_database, opencl_all_calls,
                      opencl_summary_and_timeline, off_is_off, paused_is_not_recorded, loaders_without_layers, clpeak, cuda_launches, cuda_in_json,
                      cuda_ends, cuda_graphs, cuda_without_calls,
                      cuda_of_another_tool, cuda_that_drops, cuda_call_paths,
                      cuda_call_paths_of_threads_and_deep_stacks, cuda_call_paths_survive_a_kill,
                      cuda_call_paths_can_be_off, cuda_call_paths_of_graphs, cuda_call_paths_of_python,
                      cuda_call_paths_of_gradients, cuda_idle_time, cuda_steps_by_launches, cuda_steps_by_ranges):
            tap.point(check.__name__.replace("_", " "), check)
    tap.finish()


if __name__ == "__main__":
    main()
