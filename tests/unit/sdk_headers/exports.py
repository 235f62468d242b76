#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""The libraries export what the headers declare, under the names and versions that programs look for.

  exports.py ROOT LIBKYMO-SDK LIBKYMO-SDK-ROCTX   reports in TAP
"""
import os
import re
import subprocess
import sys

# A tool defines it.
OF_TOOLS = {"rocprofiler_configure"}
# What runtimes call at their start: librocprofiler-register's functions, and the one that it calls.
OF_RUNTIMES = {"rocprofiler_set_api_table", "rocprofiler_register_library_api_table",
               "rocprofiler_register_error_string", "rocprofiler_register_iterate_registration_info",
               "rocprofiler_register_invoke_all_registrations",
               "rocprofiler_register_invoke_nonpropagated_registrations"}


def declared(folder, pattern):
    names = set()
    for directory, _, files in os.walk(folder):
        for name in files:
            with open(os.path.join(directory, name), encoding="utf-8") as stream:
                text = re.sub(r"/\*.*?\*/", "", stream.read(), flags=re.DOTALL)
            names.update(re.findall(pattern, text))
    return names


def tool(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def exported(library):
    """Names with their versions."""
    words = [line.split() for line in tool("nm", "-D", "--defined-only", "--with-symbol-versions", library).splitlines()]
    return {name[-1] for name in words if name[-2] in "TtiWD"}


def soname(library):
    found = re.search(r"\(SONAME\).*\[(.+)\]", tool("readelf", "-d", library))
    return found.group(1) if found else ""


def check_sdk(root, library):
    wanted = declared(os.path.join(root, "include/rocprofiler-sdk"),
                      r"\b(rocprofiler_\w+)\([^;{}]*?\)\s*ROCPROFILER_(?:PUBLIC_)?API\b") - OF_TOOLS | OF_RUNTIMES
    names = exported(library)
    plain = {name.split("@")[0] for name in names}
    problems = [f"not exported: {name}" for name in sorted(wanted - plain)]
    problems += [f"exported and not declared: {name}" for name in sorted(plain - wanted)
                 if name.startswith("rocprofiler_")]
    problems += [f"without a version: {name}" for name in sorted(names)
                 if name.startswith("rocprofiler_") and not name.endswith("@@ROCPROFILER_SDK_0.0")]
    if len(wanted) < 70:
        problems.append(f"only {len(wanted)} functions are declared: is the pattern right?")
    if soname(library) != "librocprofiler-sdk.so.1":
        problems.append(f"its name is {soname(library)}")
    return problems


def check_tested(root, library):
    """Every function of the interface is called by a unit test."""
    text = ""
    for folder in "libkymo-sdk", "counters":
        for directory, _, files in os.walk(os.path.join(root, "tests/unit", folder)):
            for name in files:
                with open(os.path.join(directory, name), encoding="utf-8") as stream:
                    text += stream.read()
    called = set(re.findall(r"\b(rocprofiler_\w+)\s*\(", text))
    return [f"in no test: {name}" for name in sorted({name.split("@")[0] for name in exported(library)} - called)
            if name.startswith("rocprofiler_")]


def check_roctx(root, library):
    wanted = declared(os.path.join(root, "include/rocprofiler-sdk-roctx"), r"\b(roctx\w+)\([^;{}]*?\)\s*ROCTX_API\b")
    names = exported(library)
    problems = [f"not exported: {name}" for name in sorted(wanted - names)]
    problems += [f"exported and not declared: {name}" for name in sorted(names - wanted)]
    if len(wanted) != 12:
        problems.append(f"{len(wanted)} functions are declared")
    if soname(library) != "librocprofiler-sdk-roctx.so.1":
        problems.append(f"its name is {soname(library)}")
    return problems


def check_rocpd(root, library):
    wanted = declared(os.path.join(root, "include/rocprofiler-sdk-rocpd"), r"\b(rocpd_\w+)\([^;{}]*?\)\s*ROCPD_API\b")
    names = exported(library)
    problems = [f"not exported: {name}" for name in sorted(wanted - names)]
    problems += [f"exported and not declared: {name}" for name in sorted(names - wanted)]
    if len(wanted) != 5:
        problems.append(f"{len(wanted)} functions are declared")
    if soname(library) != "librocprofiler-sdk-rocpd.so.1":
        problems.append(f"its name is {soname(library)}")
    return problems


def main():
    root, sdk, roctx, rocpd = sys.argv[1:5]
    points = [("tool library", check_sdk(root, sdk)), ("each function is called by a test", check_tested(root, sdk)),
              ("roctx", check_roctx(root, roctx)), ("rocpd", check_rocpd(root, rocpd))]
    print(f"1..{len(points)}")
    for number, (point, problems) in enumerate(points, 1):
        print(f"{'not ok' if problems else 'ok'} {number} - {point}")
        for problem in problems:
            print(f"# {problem}")
    sys.exit(any(problems for _, problems in points))


if __name__ == "__main__":
    main()
