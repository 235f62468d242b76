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

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAMS = "tests/programs/causal"
LIBRARIES = "libraries"  # of programs; in the build
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
            skipping = argument in ("--only", "--side-by-side", "--json", "--time")
            if argument.startswith(("--only", "--side-by-side", "--json", "--time")):
                continue
        if not skipping:
            kept.append(argument)
    return kept


def side_by_side(names, processors, seconds):
    """{workload: what do_workload() gives} of one process each, with so many processors of its own,
    for no longer than `seconds`."""
    free = sorted(os.sched_getaffinity(0))
    slots = [free[i:i + processors] for i in range(0, len(free) - processors + 1, processors)]
    waiting, running, results = list(names), [], {}
    command = arguments_for_one()
    end = os.times().elapsed + seconds
    with tempfile.TemporaryDirectory(prefix="bench-causal-") as scratch:
        while waiting or running:
            while waiting and slots and os.times().elapsed < end:
                name, slot = waiting.pop(0), slots.pop(0)
                path = os.path.join(scratch, name)
                process = subprocess.Popen(
                    [sys.executable, *command, "--only", name, "--json", path + ".json"],
                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                    preexec_fn=lambda slot=slot: os.sched_setaffinity(0, slot))
                running.append((process, name, slot, path))
            if not running:
                break
            process, name, slot, path = running.pop(0)
            text = process.communicate()[0]
            slots.append(slot)
            print("\n".join(line for line in text.splitlines()
                            if line and not re.match(r"(rate |kymo[ :]|[Cc]oz[ :]|time to )", line)), flush=True)
            if os.path.exists(path + ".json"):
                with open(path + ".json", encoding="utf-8") as stream:
                    results.update(json.load(stream))
    if waiting:
        print(f"no time for: {' '.join(waiting)}")
    return results
