#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""Compares kymo's symbolizer with binutils on real programs.

Names: every function symbol that nm lists is found by its address, under one of the names that nm
has there. Inline chains: as addr2line -i -f -C tells them. Usage: peers.py SYMBOLIZE_ADDRESSES
"""

import collections
import os
import random
import re
import shutil
import subprocess
import sys

SYMBOLIZE = sys.argv[1]
SAMPLES = os.environ["SAMPLES"]


def run(*command, text=""):
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout


def frames(lines):
    return [(lines[i], lines[i + 1]) for i in range(0, len(lines) - 1, 2)]


def kymo(path, addresses, *mode):
    text = "".join(f"{address:x}\n" for address in addresses)
    blocks = [block.split("\n") for block in run(SYMBOLIZE, path, *mode, text=text).split("\n\n")]
    return {int(block[0], 16): frames(block[1:]) for block in blocks if block[0]}


def addr2line(path, addresses):
    text = "".join(f"{address:x}\n" for address in addresses)
    found, lines = {}, None
    for line in run("addr2line", "-e", path, "-i", "-f", "-C", "-a", text=text).split("\n"):
        if re.fullmatch(r"0x[0-9a-f]{16}", line):
            lines = found[int(line, 16)] = []
        elif line:
            lines.append(line)
    return {address: frames(lines) for address, lines in found.items()}


def function(name):
    return re.sub(r"( \[clone [^]]*\])+$|\.(cold|part|isra|constprop)\b.*$", "", name)


def place(text):
    path, _, line = re.sub(r" \(discriminator \d+\)$", "", text).rpartition(":")
    return os.path.basename(path), line.replace("?", "0")


def compare_names(path):
    symbols = collections.defaultdict(set)
    for line in (run("nm", "-S", path) + run("nm", "-S", "-D", path)).splitlines():
        parts = line.split()
        if len(parts) == 4 and parts[2] in "TtWwi" and int(parts[1], 16) > 0:
            symbols[int(parts[0], 16)].add(re.sub(r"@.*", "", parts[3]))
    addresses = sorted(symbols)
    answers = kymo(path, addresses, "names")
    wrong = []
    for address in addresses:
        names = symbols[address]
        shown = run("c++filt", text="\n".join(names)).split("\n") if any(
            name.startswith("_Z") for name in names) else names
        answer = answers.get(address)
        if not answer or function(answer[0][0]) not in {function(name) for name in shown}:
            wrong.append((hex(address), names, answer))
    return f"{len(addresses)} symbols of {path}", len(addresses) > 0 and not wrong, wrong[:5]


def text_addresses(path, count):
    match = re.search(r"\] \.text +PROGBITS +(\w+) \w+ (\w+)", run("readelf", "-SW", path))
    start, size = int(match[1], 16), int(match[2], 16)
    chosen = random.Random(1)
    return sorted({start + chosen.randrange(size) for _ in range(count)})


def compare_chains(path, count):
    addresses = text_addresses(path, count)
    ours, theirs = kymo(path, addresses), addr2line(path, addresses)
    differing, compared, inlined = [], 0, 0
    for address in addresses:
        a, b = ours.get(address, []), theirs[address]
        if not a or b[0][0] == "??":
            continue  # padding between functions
        compared += 1
        inlined += len(b) > 1
        # Real functions have the symbol table's name here and often the source's there; addr2line
        # at times gives that name to the innermost inlined function, too, and has no namespaces
        # where there is no linkage name.
        outer = function(b[-1][0])
        same = len(a) == len(b) and all(
            (function(y[0]) in (function(x[0]), outer) or x[0].endswith("::" + y[0])) and place(x[1])[1] == place(y[1])[1]
            for x, y in zip(a[:-1], b[:-1])) and place(a[-1][1])[1] == place(b[-1][1])[1]
        if not same:
            differing.append((hex(address), a, b))
    good = compared > count / 2 and len(differing) <= compared / 100
    return f"{compared} addresses of {path}, {inlined} in inlined code, {len(differing)} differ", \
        good, differing[:3]


def main():
    libc = re.search(r"(/\S*libc\.so\.6)", run("ldd", "/bin/sh"))
    tests = [(compare_names, (f"{SAMPLES}/sample",)), (compare_chains, (f"{SAMPLES}/sample", 300))]
    if os.path.exists(f"{SAMPLES}/cplusplus"):
        tests += [(compare_names, (f"{SAMPLES}/cplusplus",)),
                  (compare_chains, (f"{SAMPLES}/cplusplus", 2000))]
    for path in filter(None, (libc and libc[1], shutil.which("python3.11", path="/usr/bin"))):
        tests.append((compare_names, (path,)))
    failed = 0
    print(f"1..{len(tests)}")
    for number, (test, arguments) in enumerate(tests, 1):
        title, good, examples = test(*arguments)
        failed += not good
        print(f"{'ok' if good else 'not ok'} {number} - {title}")
        for example in examples:
            print("#", example)
    sys.exit(1 if failed else 0)


main()
