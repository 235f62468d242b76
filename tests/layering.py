#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""The dependency rules of ARCHITECTURE.md, checked by the machine. A room is a folder of src/, so
src/core/unwind is another room than src/core.

  includes  every #include "room/..." in src/ goes to a room that the table in ARCHITECTURE.md allows
  circles   no circle of includes or of calls runs between rooms; the number of rooms in circles and
            what makes them is printed
  links     libkymo.so exports exactly tests/abi/libkymo.symbols, needs no library but libc and the
            loader, and takes from libc only what tests/abi/libkymo.imports allows: no malloc, no
            stdio, nothing of the loader's that locks. libkymo-dl.so, libkymo-user.so and the NCCL
            plugin, which no handler enters, export and need no more than their lists say either
  files     every source has its licence lines, no file is over 600 lines (lists from
            which code is generated excepted), no room has more than 25 sources

usage: layering.py SOURCE-DIRECTORY [LIBRARY...]     (TAP)
       layering.py --libraries SOURCE-DIRECTORY LIBRARY...  what was linked only, not the sources     (TAP)
       layering.py --update SOURCE-DIRECTORY LIBRARY...    rewrites the committed lists
"""
import os
import re
import subprocess
import sys

PUBLIC = {"kymo"}  # include/kymo, open to every room
# Headers of libraries, by the rooms that may see them.
LIBRARIES = {
    "elfutils/": {"binary", "analysis", "inject"}, "libelf.h": {"binary", "analysis"},
    "gelf.h": {"binary", "analysis"}, "dwarf.h": {"binary", "analysis"},
    "zlib.h": {"binary", "analysis", "output"}, "libiberty/": {"binary"},
    "demangle.h": {"binary"},
    "jansson.h": {"cmd", "merging", "settings", "launch", "counting", "experiments", "binary", "analysis", "output"},
    "sqlite3.h": {"output"},
}
# Names that have no place in a signal handler's library, whatever the committed list says.
POISON = re.compile(r"^(malloc|calloc|realloc|free|f?printf|v?f?s?n?printf|fopen|fwrite|puts|dlopen|"
                    r"dl_iterate_phdr|dladdr|backtrace|__tls_get_addr|pthread_mutex_\w+|sleep|system|"
                    r"bcmp|mem\w+|str\w+)$")  # ours are in common/libc_mem.c, which says why
# The wrappers' own, called on the program's threads only, where the program may wait for the loader.
LOADER = {
    "dl_iterate_phdr",  # the engine looks for objects to rewrite (got.c)
    "dladdr", "dlopen",  # which MPI library is there, and its own functions (mpi_library.c)
}
INCLUDE = re.compile(r'^\s*#\s*include\s+(["<])([^">]+)[">]', re.MULTILINE)
# Lists from which declarations, tables and functions are generated: as long as what they list.
LISTS = {"src/device/opencl/calls_table.h"}
LICENCE = "SPDX-License-Identifier: MIT"


def sources(root):
    for directory, _, names in os.walk(os.path.join(root, "src")):
        for name in sorted(names):
            if name.endswith((".c", ".h", ".S")):
                yield os.path.join(directory, name)


def room_of(inside):
    return os.path.dirname(inside)


def expand(text):
    """analysis/{scan,gpu} stands for analysis/scan and analysis/gpu."""
    match = re.search(r"\{([^}]*)\}", text)
    if not match:
        return [text]
    return [name for part in match.group(1).split(",")
            for name in expand(text[:match.start()] + part.strip() + text[match.end():])]


def read_table(root):
    """The table "room | may include" of ARCHITECTURE.md: {room: set of rooms}."""
    allowed = {}
    with open(os.path.join(root, "ARCHITECTURE.md"), encoding="utf-8") as stream:
        lines = stream.read().splitlines()
    begin = lines.index("| room | may include |") + 2
    for line in lines[begin:]:
        if not line.startswith("|"):
            break
        rooms, targets = [re.sub(r"\([^)]*\)", "", cell) for cell in line.strip("|").split("|")]
        # A comma within braces is no separator.
        parts = [part.strip() for part in re.split(r"[,;](?![^{]*\})", targets) if part.strip()]
        named = {name for part in parts if part != "nothing" for name in expand(part)}
        for room in expand(rooms.strip()):
            allowed.setdefault(room, set()).update(named)
    return allowed


def read_sources(root):
    """{path below src/: text} of every source and header."""
    texts = {}
    for path in sources(root):
        with open(path, encoding="utf-8") as stream:
            texts[os.path.relpath(path, os.path.join(root, "src"))] = stream.read()
    return texts


def check_includes(texts, allowed):
    problems = []
    for inside, text in texts.items():
        room = room_of(inside)
        if room not in allowed:
            problems.append(f"src/{inside}: room {room} is not in the table")
            continue
        for quote, name in INCLUDE.findall(text):
            target = os.path.dirname(name) if "/" in name else None
            if quote == '"' and target is None:
                problems.append(f'src/{inside}: "{name}" is not written from the root of src/')
            elif quote == '"' and target not in allowed[room] | {room} | PUBLIC:
                problems.append(f"src/{inside}: {room} must not include {name}")
            for prefix, rooms in LIBRARIES.items():
                if quote == "<" and name.startswith(prefix) and room.split("/")[0] not in rooms:
                    problems.append(f"src/{inside}: {room} must not include <{name}>")
    return problems


def without_comments(text):
    """Code alone: comments and the contents of strings are blanked, lines stay."""
    def blank(match):
        if match.group(0)[0] in "\"'":
            return match.group(0)[0] * 2
        return "\n" * match.group(0).count("\n") + " "
    return re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', blank, text,
                  flags=re.DOTALL)


# A definition begins in the first column and its brace stands alone (the style of the house); one of
# data ends in "=", "[" or ";".
FUNCTION = re.compile(r"^(?!static\b|typedef\b|struct \w+ \{|enum\b|else\b|return\b|#)[A-Za-z_][^;{}=#]*?"
                      r"\b(\w+)\([^;{}]*\)[^;{}()]*\n\{", re.MULTILINE)
DATA = re.compile(r"^(?!static\b|extern\b|typedef\b|return\b|#)(?:_Alignas\([^)]*\) )?[a-z][\w \t*]*?"
                  r"\b(\w+)(?:\[[^\]]*\])*\s*(?:__attribute__\(\(.*?\)\)\s*)?(?:=|;)", re.MULTILINE)
PROTOTYPE = re.compile(r"^[A-Za-z_][^;{}=()#]*?\b(\w+)\(", re.MULTILINE)
EXTERN = re.compile(r"^extern\b[^;()]*?;", re.MULTILINE)
LABEL = re.compile(r"^\s*\.glob[a]?l\s+(\w+)", re.MULTILINE)


def declarations(code):
    """Names that a header declares: functions, and data."""
    data = {name for match in EXTERN.finditer(code) for name in re.findall(r"(\w+)(?=\s*[\[,;])", match.group(0))}
    return {name for name in set(PROTOTYPE.findall(code)) | data if not name.isupper()}


def definitions(inside, code):
    """Names with external linkage that a source defines."""
    if inside.endswith(".S"):
        return set(LABEL.findall(code))
    if not inside.endswith(".c"):
        return set()
    functions = {match.group(1) for match in FUNCTION.finditer(code) if "static" not in match.group(0)}
    return functions | set(DATA.findall(code))


def room_edges(texts):
    """{room: {other room: [what makes the edge]}}, by includes and by calls and uses of data."""
    edges = {}

    def add(source, target, what):
        if source != target:
            edges.setdefault(source, {}).setdefault(target, []).append(what)

    code = {inside: without_comments(text) for inside, text in texts.items()}
    owners = {}
    for inside in code:
        for name in definitions(inside, code[inside]):
            owners.setdefault(name, set()).add(inside)
    declares = {inside: declarations(code[inside]) for inside in code}
    reach = {}

    def visible(inside):
        """What the headers that a file includes, directly or not, declare."""
        if inside not in reach:
            reach[inside] = set()  # a circle of headers ends here
            names = set(declares[inside]) if inside.endswith(".h") else set()
            for _, name in INCLUDE.findall(texts[inside]):
                if name in texts:
                    names |= visible(name)
            reach[inside] = names
        return reach[inside]

    for inside, text in texts.items():
        room = room_of(inside)
        for quote, name in INCLUDE.findall(text):
            if quote == '"' and name in texts:
                add(room, room_of(name), f"src/{inside} includes {name}")
        # Headers declare; what their inline functions call counts for whoever includes them.
        if not inside.endswith((".c", ".S")):
            continue
        extern = set(re.findall(r"^\s*extern\b[^;]*?\b(\w+)(?:\[\w*\])*\s*[(;]", code[inside], re.MULTILINE))
        known = visible(inside) | extern
        for name in set(re.findall(r"\b[A-Za-z_]\w+", code[inside])) & known:
            places = owners.get(name, ())
            # A name that several libraries define is the caller's own library's.
            if len({room_of(place).split("/")[0] for place in places}) != 1:
                continue
            rooms = {room_of(place) for place in places}
            if room in rooms:
                continue
            for target in rooms:
                add(room, target, f"src/{inside} uses {name}, of src/{min(places)}")
    return edges


def circles(edges):
    """Strongly connected components of more than one room (Tarjan's algorithm)."""
    index, low, stack, found = {}, {}, [], []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        for target in edges.get(node, {}):
            if target not in index:
                visit(target)
                low[node] = min(low[node], low[target])
            elif target in stack:
                low[node] = min(low[node], index[target])
        if low[node] == index[node]:
            component = []
            while node not in component:
                component.append(stack.pop())
            if len(component) > 1:
                found.append(sorted(component))

    for room in sorted(edges):
        if room not in index:
            visit(room)
    return found


def check_circles(texts):
    edges = room_edges(texts)
    found = circles(edges)
    print(f"# rooms in circles: {sum(len(circle) for circle in found)}")
    problems = []
    for circle in found:
        problems.append("circle: " + ", ".join(circle))
        for room in circle:
            for target in sorted(set(edges[room]) & set(circle)):
                reasons = edges[room][target]
                problems.append(f"  {room} -> {target}: {len(reasons)}, such as {reasons[0]}")
    return problems


def check_files(root):
    problems = []
    for path in sources(root):
        with open(path, encoding="utf-8") as stream:
            lines = stream.read().splitlines()
        name = os.path.relpath(path, root)
        if not any(LICENCE in line for line in lines[:3]):
            problems.append(f"{name}: no licence line")
        if len(lines) > 600 and name not in LISTS:
            problems.append(f"{name}: {len(lines)} lines")
    for directory, _, names in os.walk(os.path.join(root, "src")):
        count = sum(name.endswith(".c") for name in names)
        if count > 25:
            problems.append(f"{os.path.relpath(directory, root)}: {count} sources")
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


def check_sources(root):
    texts = read_sources(root)
    return [("includes", check_includes(texts, read_table(root))), ("circles", check_circles(texts)),
            ("files", check_files(root))]


def main():
    arguments = sys.argv[1:]
    if arguments[0] == "--update":
        update(*arguments[1:])
        return
    linked_only = arguments[0] == "--libraries"
    root, *libraries = arguments[linked_only:]
    points = [] if linked_only else check_sources(root)
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
