# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""bench/causal elsewhere: everything it needs in one folder, and workloads side by side, each on
processors of its own."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAMS = "tests/programs/causal"
LIBRARIES = "libraries"  # of programs; in the build
# Options that choose workloads and say where they run; the last one has no value.
OF_THE_WHOLE = ("--only", "--side-by-side", "--json", "--time", "--whole-cores")
OF_THE_SYSTEM = r"(libc|libm|libpthread|libdl|librt|ld-linux.*)\.so"


def take_libraries(program, others, rpath=None):
    """What the program is linked with and not every machine has."""
    needed = subprocess.run(["ldd", program], stdout=subprocess.PIPE, text=True, check=True).stdout
    for name, path in re.findall(r"(\S+) => (/\S+)", needed):
        if not re.match(OF_THE_SYSTEM, name):
            shutil.copy(path, os.path.join(others, name))
            subprocess.run(["patchelf", "--set-rpath", "$ORIGIN", os.path.join(others, name)], check=True)
    if rpath:
        subprocess.run(["patchelf", "--set-rpath", rpath, program], check=True)


def pack(build, directory):
    """To be run as DIRECTORY/bench/causal DIRECTORY/build."""
    others, libraries = os.path.join(directory, "build/others"), os.path.join(directory, "build", LIBRARIES)
    for name in ("bench", PROGRAMS, "build/src/cmd", "build/" + PROGRAMS, "build/others", "build/" + LIBRARIES):
        os.makedirs(os.path.join(directory, name), exist_ok=True)
    for name in ("causal", "causal_measure.py", "causal_pack.py", "causal_workloads.py"):
        shutil.copy(os.path.join(HERE, name), os.path.join(directory, "bench"))
    for name in ("libkymo", "libkymo-dl"):
        os.makedirs(os.path.join(directory, "build/src", name), exist_ok=True)
        shutil.copy(os.path.join(build, "src", name, name + ".so"),
                    os.path.join(directory, "build/src", name))
    kymo = shutil.copy(os.path.join(build, "src/cmd/kymo"), os.path.join(directory, "build/src/cmd"))
    take_libraries(kymo, others, "$ORIGIN/../../others")
    for name in os.listdir(os.path.join(HERE, "..", PROGRAMS)):
        source = os.path.join(HERE, "..", PROGRAMS, name)
        program = os.path.join(build, PROGRAMS, os.path.splitext(name)[0])
        if name.endswith(".c"):
            shutil.copy(source, os.path.join(directory, PROGRAMS))
        if name.endswith(".c") and os.path.exists(program):
            copy = shutil.copy(program, os.path.join(directory, "build", PROGRAMS))
            take_libraries(copy, libraries)
    size = sum(os.path.getsize(os.path.join(at, name)) for at, _, names in os.walk(directory)
               for name in names)
    print(f"{directory}: {size / 2**20:.1f} MiB")


def arguments_for_one():
    """The command line without what chooses workloads and where they run."""
    kept, skipping = [], False
    for argument in sys.argv:
        if argument.startswith("-"):
            skipping = argument in OF_THE_WHOLE[:-1]
            if argument.startswith(OF_THE_WHOLE):
                continue
        if not skipping:
            kept.append(argument)
    return kept


def siblings(processor):
    """Those of the same core, as text; the processor itself where that is not told."""
    path = f"/sys/devices/system/cpu/cpu{processor}/topology/thread_siblings_list"
    try:
        with open(path, encoding="ascii") as stream:
            return stream.read().strip()
    except OSError:
        return str(processor)


def slots_of(processors, whole_cores):
    """Lists of so many processors each. Two of one core take from each other, so a slot has them of
    different cores as long as there are any; with whole_cores, each core counts for one only."""
    turns = {}
    for processor in sorted(os.sched_getaffinity(0)):
        of_core = turns.setdefault(siblings(processor), [])
        of_core.append(processor)
    layers = [[core[layer] for core in turns.values() if len(core) > layer]
              for layer in range(1 if whole_cores else max(map(len, turns.values())))]
    ordered = [processor for layer in layers for processor in layer]
    print(f"{len(turns)} cores, {sum(map(len, turns.values()))} processors; "
          f"{len(ordered) // processors} workloads at once", flush=True)
    return [ordered[i:i + processors] for i in range(0, len(ordered) - processors + 1, processors)]


def start(command, name, slot, scratch):
    """One workload on these processors; what it prints is for the end."""
    with open(os.path.join(scratch, name + ".txt"), "w", encoding="utf-8") as stream:
        return subprocess.Popen(
            [sys.executable, *command, "--only", name, "--json", os.path.join(scratch, name + ".json")],
            stdout=stream, stderr=subprocess.STDOUT,
            preexec_fn=lambda: os.sched_setaffinity(0, slot))


def finished(name, scratch):
    """Prints what the workload printed; {name: what do_workload() gives}, empty where that failed."""
    with open(os.path.join(scratch, name + ".txt"), encoding="utf-8") as stream:
        print("\n".join(line for line in stream.read().splitlines()
                        if line and not re.match(r"(rate |kymo[ :]|[Cc]oz[ :]|time to |\|)", line)),
              flush=True)
    path = os.path.join(scratch, name + ".json")
    if not os.path.exists(path):
        return {}
    with open(path, encoding="utf-8") as stream:
        return json.load(stream)


def side_by_side(names, slots, seconds):
    """{workload: what do_workload() gives} of one process each, on the processors of a slot each; none
    begins after `seconds`."""
    waiting, running, results = list(names), {}, {}
    command = arguments_for_one()
    end = time.monotonic() + seconds
    with tempfile.TemporaryDirectory(prefix="bench-causal-") as scratch:
        while running or waiting and time.monotonic() < end:
            while waiting and slots and time.monotonic() < end:
                name, slot = waiting.pop(0), slots.pop(0)
                running[name] = start(command, name, slot, scratch), slot
            for name in [name for name, (process, _) in running.items() if process.poll() is not None]:
                slots.append(running.pop(name)[1])
                results.update(finished(name, scratch))
            time.sleep(0.1)
    if waiting:
        print(f"no time for: {' '.join(waiting)}")
    return results
