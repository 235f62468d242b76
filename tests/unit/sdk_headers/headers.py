#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""The headers of the tool library compile without a warning, in C and C++, with each compiler here.

  headers.py ROOT   reports in TAP
  alone    every header by itself, in C99, or C++17 where it is C++
  layout   sizes, offsets and values are upstream's, in every standard
  complete of every struct of the interface the size is checked, of every enumerator the value
  names    programs with the names of all releases, and without the old ones
  helpers  what tools in C++ do with the helpers; serialization where cereal is installed
  running  what helpers answer; Perfetto's library is a stand-in
  code     instructions of code objects by a stand-in for AMD's disassembler, and without one
"""
import ctypes
import os
import re
import shutil
import subprocess
import sys
import tempfile

WARNINGS = ["-Wall", "-Wextra", "-pedantic", "-Werror", "-Wshadow", "-Wno-unused-function"]
C_WARNINGS = ["-Wstrict-prototypes", "-Wmissing-prototypes"]
C_COMPILERS = ("gcc", "clang")
CXX_COMPILERS = ("g++", "clang++")
C_STANDARDS = ("c99", "c11", "c17", "gnu17")
CXX_STANDARDS = ("c++17", "c++20")
TABLES = ("layout_table.h", "more_layout_table.h", "value_table.h", "more_value_table.h", "hip_id_table.h")
OF_INTERFACE = ("ROCPROFILER_", "ROCPD_", "KYMO_", "ompt_")
FOLDERS = ("rocprofiler-sdk", "rocprofiler-sdk-rocpd", "rocprofiler-sdk-roctx")


def headers(root, suffixes):
    for folder in FOLDERS:
        for directory, _, names in os.walk(os.path.join(root, "include", folder)):
            for name in sorted(names):
                # Lists for macros are no headers of their own.
                if name.endswith(suffixes) and not name.endswith("_list.h"):
                    yield os.path.relpath(os.path.join(directory, name), os.path.join(root, "include"))


def compilers(wanted):
    return [name for name in wanted if shutil.which(name)]


def compile_file(compiler, standard, root, path, *options):
    """What the compiler says; nothing where it is content."""
    language = "c++" if standard.startswith(("c++", "gnu++")) else "c"
    command = [compiler, "-x", language, f"-std={standard}", *WARNINGS, "-I", os.path.join(root, "include"),
               "-fsyntax-only", *options, path]
    if language == "c":
        command[4:4] = C_WARNINGS
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, check=False)
    return [f"{' '.join(command)}:", *done.stdout.splitlines()[:5]] if done.returncode else []


def check_alone(root):
    """One file a header: in one of them all, each would find what the others include."""
    problems = []
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "alone.c")
        with open(path, "w", encoding="utf-8") as stream:
            stream.write("#include <cereal/cereal.hpp>\n")
        has_cereal = bool(compilers(("g++",))) and not compile_file("g++", "c++17", root, path)
        for suffix, compiler, standard in ((".h", "gcc", "c99"), (".hpp", "g++", "c++17")):
            for header in headers(root, suffix):
                if header.endswith("serialization.hpp") and not has_cereal:
                    continue
                with open(path, "w", encoding="utf-8") as stream:
                    # Twice: guards hold.
                    stream.write(f"#include <{header}>\n#include <{header}>\nextern int translation_unit;\n")
                more = ["-I", perfetto(root)] if header.endswith("perfetto.hpp") else []
                for name in compilers((compiler,)):
                    problems += compile_file(name, standard, root, path, *more)
    return problems


def perfetto(root):
    """A stand-in for Perfetto's library."""
    return os.path.join(root, "tests/unit/sdk_headers/perfetto")


def check_running(root):
    path = os.path.join(root, "tests/unit/sdk_headers/helpers_run.cpp")
    problems = []
    with tempfile.TemporaryDirectory() as directory:
        program = os.path.join(directory, "helpers")
        for name, standard in zip(CXX_COMPILERS, CXX_STANDARDS):
            if not compilers((name,)):
                continue
            command = [name, f"-std={standard}", *WARNINGS, "-I", os.path.join(root, "include"), "-I", perfetto(root), path,
                       "-o", program]
            for step in command, [program]:
                done = subprocess.run(step, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                      text=True, check=False)
                if done.returncode:
                    problems += [f"{step[0]} {standard}: {line}" for line in done.stdout.splitlines()[:5]]
                    break
    return problems


def steps(prefix, commands, environment=None):
    """What the first command that fails says."""
    for command in commands:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, check=False, env=environment)
        if done.returncode:
            return [f"{prefix} {os.path.basename(command[0])}: {line}" for line in done.stdout.splitlines()[:5]] or [
                f"{prefix} {os.path.basename(command[0])}: {done.returncode}"]
    return []


def check_code_objects(root):
    source = os.path.join(root, "tests/unit/sdk_headers")
    sanitize = ["-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    problems = []
    with tempfile.TemporaryDirectory() as directory:
        program = os.path.join(directory, "disassembly")
        library = os.path.join(directory, "libamd_comgr.so.3")
        if compilers(("gcc",)):
            problems += steps("stand-in", [["gcc", "-std=c17", *WARNINGS, *C_WARNINGS, "-shared", "-fPIC",
                                            os.path.join(source, "fake_comgr.c"), "-o", library]])
        for name, standard in zip(CXX_COMPILERS, CXX_STANDARDS):
            if not compilers((name,)):
                continue
            build = [name, f"-std={standard}", *WARNINGS, *sanitize, "-I", os.path.join(root, "include"),
                     os.path.join(source, "disassembly_run.cpp"), "-o", program, "-ldl"]
            runs = [[program]] if has_comgr() else [[program], ["env", "-u", "LD_LIBRARY_PATH", program, "none"]]
            problems += steps(f"{name} {standard}", [build, *runs], dict(os.environ, LD_LIBRARY_PATH=directory))
    return problems


def has_comgr():
    """AMD's own, somewhere where the header looks."""
    for name in "libamd_comgr.so.3", "libamd_comgr.so.2", "libamd_comgr.so", "/opt/rocm/lib/libamd_comgr.so":
        try:
            ctypes.CDLL(name)
            return True
        except OSError:
            pass
    return False


def check_helpers(root):
    path = os.path.join(root, "tests/unit/sdk_headers/helpers.cpp")
    return [line for name, standard in zip(CXX_COMPILERS, CXX_STANDARDS) if compilers((name,))
            for line in compile_file(name, standard, root, path, "-DROCPROFILER_SDK_NO_ROCM_HEADERS")]


def check_everywhere(root, name, *options):
    path = os.path.join(root, "tests/unit/sdk_headers", name)
    problems = []
    for compiler in compilers(C_COMPILERS):
        for standard in C_STANDARDS:
            problems += compile_file(compiler, standard, root, path, *options)
    for compiler in compilers(CXX_COMPILERS):
        for standard in CXX_STANDARDS:
            problems += compile_file(compiler, standard, root, path, *options)
    return problems


def check_complete(root):
    """What layout.c includes, preprocessed, beside its tables."""
    folder = os.path.join(root, "tests/unit/sdk_headers")
    if not compilers(("gcc",)):
        return []
    with open(os.path.join(folder, "layout.c"), encoding="utf-8") as stream:
        includes = "".join(line for line in stream if line.startswith("#include <"))
    done = subprocess.run(["gcc", "-E", "-P", "-I", os.path.join(root, "include"), "-DROCPROFILER_SDK_NO_ROCM_HEADERS",
                           "-x", "c", "-"], input=includes, stdout=subprocess.PIPE, text=True, check=True)
    tables = ""
    for name in TABLES:
        with open(os.path.join(folder, name), encoding="utf-8") as stream:
            tables += stream.read()
    checked = set(re.findall(r"^(?:SIZE|VALUE)\((\w+),", tables, re.MULTILINE))
    structs = {name for name in re.findall(r"\}\s*(\w+)\s*;", done.stdout) if re.match(r"(rocprofiler|rocpd|kymo)_|roctx\w+_t$", name)}
    names = set()
    for body, name in re.findall(r"\benum\b\s*\w*\s*\{(.*?)\}\s*(\w*)", done.stdout, re.DOTALL):
        structs.discard(name)
        names.update(word for word in re.findall(r"(?:^|,)\s*(\w+)", body) if word.startswith(OF_INTERFACE))
    return [f"not in the tables: {name}" for name in sorted((names | structs) - checked)]


def main():
    root = sys.argv[1]
    # AMD's own headers, where they are installed, may be of a release with other tables.
    own = "-DROCPROFILER_SDK_NO_ROCM_HEADERS"
    points = [("alone", check_alone(root)),
              ("layout", check_everywhere(root, "layout.c", own)),
              ("complete", check_complete(root)),
              ("names", check_everywhere(root, "generations.c", own)),
              ("helpers", check_helpers(root)),
              ("helpers that run", check_running(root)),
              ("code objects", check_code_objects(root)),
              ("names of 1.0 only", check_everywhere(root, "layout.c", own, "-DROCPROFILER_SDK_BETA_COMPAT=0"))]
    print(f"1..{len(points)}")
    for number, (point, problems) in enumerate(points, 1):
        print(f"{'not ok' if problems else 'ok'} {number} - {point}")
        for problem in problems:
            print(f"# {problem}")
    sys.exit(any(problems for _, problems in points))


if __name__ == "__main__":
    main()
