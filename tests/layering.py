#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""The dependency rules of ARCHITECTURE.md, made by the machine.

  includes  every #include "room/..." in src/ goes to an allowed room
  links     libkymo.so exports exactly tests/abi/libkymo.symbols, needs no library but libc and the
            loader, and takes from libc only what tests/abi/libkymo.imports allows: no malloc, no
            stdio, nothing of the loader's that locks. libkymo-dl.so, libkymo-user.so and the NCCL
            plugin, which no handler enters, export and need no more than their lists say either
  files     every source has its licence lines, no file is over 800 lines

usage: layering.py SOURCE-DIRECTORY [LIBRARY...]     (TAP)
       layering.py --update SOURCE-DIRECTORY LIBRARY...    rewrites the committed lists
"""
import os
import re
import subprocess
import sys

ALLOWED = {
    "common": set(),
    "core": {"common"},
    "regions": {"core", "common"},
    "causal": {"core", "common"},
    "wrappers": {"causal", "regions", "core", "common"},
    "instrument": {"regions", "core", "common"},
    "libkymo": {"causal", "instrument", "wrappers", "regions", "core", "common"},
    "libkymo-dl": {"libkymo", "regions", "common"},  # libkymo/api.h alone of libkymo
    "libkymo-user": set(),
    "nccl": {"core", "common"},
    "device": {"core", "common"},
    "counters": {"device", "common"},  # device/counting.h: what an event is
    "libkymo-sdk": {"counters", "device", "core", "common"},
    "libkymo-sdk-rocpd": set(),
    "libkymo-sdk-roctx": set(),
    "libkymo-gpu": {"common"},
    "libkymo-opencl": {"device"},  # its tables of functions
    "inject": {"common"},
    "binary": {"common"},
    "analysis": {"binary", "common"},
    "output": {"analysis", "common"},
    "cmd": {"counters", "inject", "binary", "analysis", "output", "common"},
}
PUBLIC = {"kymo"}  # include/kymo, open to every room
IN_PROCESS = ("common", "core", "libkymo")
# Headers of libraries, by the rooms that may see them.
LIBRARIES = {
    "elfutils/": {"binary", "analysis", "inject"}, "libelf.h": {"binary", "analysis"},
    "gelf.h": {"binary", "analysis"}, "dwarf.h": {"binary", "analysis"},
    "zlib.h": {"binary", "analysis", "output"}, "libiberty/": {"binary"},
    "demangle.h": {"binary"}, "jansson.h": {"cmd", "binary", "analysis", "output"},
    "sqlite3.h": {"output"},
}
# Names that have no place in a signal handler's library, whatever the committed list says.
POISON = re.compile(r"^(malloc|calloc|realloc|free|f?printf|v?f?s?n?printf|fopen|fwrite|puts|dlopen|"
                    r"dl_iterate_phdr|dladdr|backtrace|__tls_get_addr|pthread_mutex_\w+|sleep|system|"
                    r"bcmp|mem\w+|str\w+)$")  # ours are in common/own_bytes.c, which says why
# The wrappers' own, called on the program's threads only, where the program may wait for the loader.
LOADER = {
    "dl_iterate_phdr",  # the engine looks for objects to rewrite (got.c)
    "dladdr", "dlopen",  # which MPI library is there, and its own functions (mpi_library.c)
}
INCLUDE = re.compile(r'^\s*#\s*include\s+(["<])([^">]+)[">]', re.MULTILINE)
LICENCE = "SPDX-License-Identifier: MIT"


def sources(root):
    for directory, _, names in os.walk(os.path.join(root, "src")):
        for name in sorted(names):
            if name.endswith((".c", ".h")):
                yield os.path.join(directory, name)


def check_includes(root):
    problems = []
    for path in sources(root):
        inside = os.path.relpath(path, os.path.join(root, "src"))
        room = inside.split(os.sep)[0]
        if room not in ALLOWED:
            problems.append(f"src/{inside}: room {room} is not in the table")
            continue
        with open(path, encoding="utf-8") as stream:
            text = stream.read()
        for quote, name in INCLUDE.findall(text):
            target = name.split("/")[0] if "/" in name else None
            if quote == '"' and target is None:
                problems.append(f'src/{inside}: "{name}" is not written from the root of src/')
            elif quote == '"' and target not in ALLOWED[room] | {room} | PUBLIC:
                problems.append(f"src/{inside}: {room} must not include {name}")
            for prefix, rooms in LIBRARIES.items():
                if quote == "<" and name.startswith(prefix) and room not in rooms:
                    problems.append(f"src/{inside}: {room} must not include <{name}>")
    return problems


def check_files(root):
    problems = []
    for path in sources(root):
        with open(path, encoding="utf-8") as stream:
            lines = stream.read().splitlines()
        name = os.path.relpath(path, root)
        if not any(LICENCE in line for line in lines[:3]):
            problems.append(f"{name}: no licence line")
        if len(lines) > 800:
            problems.append(f"{name}: {len(lines)} lines")
    return problems


def tool(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def exported(library):
    lines = tool("nm", "-D", "--defined-only", library).splitlines()
    return sorted({line.split()[-1].split("@")[0] for line in lines if line.split()[-2] != "A"})


def imported(library):
    lines = tool("nm", "-D", "--undefined-only", library).splitlines()
    return sorted({line.split()[-1].split("@")[0] for line in lines})


def needed(library):
    return re.findall(r"\(NEEDED\).*\[(.+)\]", tool("readelf", "-d", library))


def read_list(path):
    with open(path, encoding="utf-8") as stream:
        return [line.split("#")[0].strip() for line in stream if line.split("#")[0].strip()]


def compare(what, seen, wanted):
    return ([f"{what} is new: {name}" for name in sorted(set(seen) - set(wanted))] +
            [f"{what} is gone: {name}" for name in sorted(set(wanted) - set(seen))])


def list_of(root, library, kind):
    """tests/abi/libkymo.symbols and its like."""
    name = os.path.basename(library).split(".so")[0]
    return os.path.join(root, "tests/abi", f"{name}.{kind}")


def check_exports(root, library):
    return compare("exported symbol", exported(library), read_list(list_of(root, library, "symbols")))


def is_entered_by_handlers(library):
    return os.path.basename(library) == "libkymo.so"


def check_imports(root, library):
    poisoned = {name for name in imported(library) if POISON.match(name) and name not in LOADER}
    if not is_entered_by_handlers(library):
        poisoned = set()
    allowed = set(read_list(list_of(root, library, "imports")))
    names = imported(library)
    problems = [f"not allowed in process: {name}" for name in names if name in poisoned]
    problems += [f"imported symbol not in the list: {name}" for name in names
                 if name not in allowed and name not in poisoned]
    for name in needed(library):
        if not re.match(r"(libc|ld-linux-x86-64|libpthread|libdl)\.so", name):
            problems.append(f"links {name}")
    return problems


def check_hardening(_root, library):
    """Bound at load time; what other threads may be inside of is never unloaded, and what handlers
    use is reachable without a call."""
    flags = tool("readelf", "-dW", library)
    problems = [] if re.search(r"BIND_NOW|\bNOW\b", flags) else ["not linked with -z now"]
    if "libkymo-user" not in library and "NODELETE" not in flags:
        problems.append("not linked with -z nodelete")
    if is_entered_by_handlers(library) and "__tls_get_addr" in imported(library):
        problems.append("thread-local storage that a handler cannot reach without the loader")
    return problems


def update(root, *libraries):
    for library in libraries:
        for kind, symbols in (("symbols", exported(library)), ("imports", imported(library))):
            with open(list_of(root, library, kind), "w", encoding="utf-8") as stream:
                stream.write("\n".join(symbols) + "\n")


def main():
    arguments = sys.argv[1:]
    if arguments[0] == "--update":
        update(*arguments[1:])
        return
    root, libraries = arguments[0], arguments[1:]
    points = [("includes", check_includes(root)), ("files", check_files(root))]
    for library in libraries:
        for name, check in (("exports", check_exports), ("imports", check_imports),
                            ("hardening", check_hardening)):
            points.append((f"{name} of {os.path.basename(library)}", check(root, library)))
    print(f"1..{len(points)}")
    for number, (name, problems) in enumerate(points, 1):
        for problem in problems:
            print(f"# {problem}")
        print(f"{'not ok' if problems else 'ok'} {number} - {name}")


main()
