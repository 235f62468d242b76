#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""What `meson install` puts on a user's disk: how large it is, where debug information goes, and whether programs
find the libraries without a variable of the environment.

usage: installation.py BUILD-DIRECTORY SOURCE-DIRECTORY     (TAP)
"""
import glob
import json
import os
import shlex
import sys

from harness import Kymo, Result, Scratch, Skipped, Tap, expect, require_tool, run

TREE_LIMIT = 5_000_000
# The kymo command and what programs load of it.
LOADED_LIMIT = 4_000_000
LOADED = ("bin/kymo", "libkymo", "libnccl-profiler-kymo.so")


def sections(path):
    done = run(["readelf", "-W", "-S", path])
    expect(done.status == 0, f"readelf {path}: {done.stderr}")
    return done.stdout.decode()


def build_id(path):
    lines = run(["readelf", "-n", path]).stdout.decode().splitlines()
    found = [line.split(":")[1].strip() for line in lines if "Build ID:" in line]
    expect(len(found) == 1, f"{path}: {len(found)} build IDs")
    return found[0]


class Installation:
    def __init__(self, build, source, scratch):
        self.build, self.source, self.scratch = build, source, scratch
        self.stage = scratch.path("stage")
        done = run(["meson", "install", "-C", build, "--no-rebuild", "--destdir", self.stage])
        expect(done.status == 0, f"install: {done.stderr} {done.stdout.decode()[-1000:]}")
        with open(f"{build}/meson-info/intro-installed.json", encoding="utf-8") as stream:
            self.plan = {built: self.stage + path for built, path in json.load(stream).items()}
        with open(f"{build}/meson-info/intro-buildoptions.json", encoding="utf-8") as stream:
            self.options = {option["name"]: option["value"] for option in json.load(stream)}
        self.prefix = self.stage + self.options["prefix"]

    def programs(self):
        """(in the build directory, installed) of what has machine code."""
        for built, installed in self.plan.items():
            if os.path.isfile(built) and os.path.isfile(installed):
                with open(installed, "rb") as stream:
                    if stream.read(4) == b"\x7fELF":
                        yield built, installed

    def size(self):
        files = [f"{folder}/{name}" for folder, _, names in os.walk(self.stage) for name in names]
        sizes = {path: os.lstat(path).st_size for path in files if not os.path.islink(path)}
        loaded = {path: size for path, size in sizes.items() if path.endswith("/bin/kymo") or
                  (os.path.basename(path).startswith(LOADED) and ".so" in path)}
        expect(len(loaded) >= 10, f"{sorted(loaded)}")
        for what, found, limit in (("the installed tree", sizes, TREE_LIMIT),
                                   ("the kymo command and what programs load", loaded, LOADED_LIMIT)):
            total = sum(found.values())
            Tap.note(f"measured: {what}: {total:,} bytes, at most {limit:,}")
            largest = sorted(found, key=found.get)[-5:]
            expect(total <= limit, f"{what}: {total:,} bytes: " + ", ".join(
                f"{os.path.basename(path)} {found[path]:,}" for path in reversed(largest)))

    def split(self):
        """Nothing of debug information is installed, and what is installed is what was built."""
        for built, installed in self.programs():
            expect(".debug_" not in sections(installed), f"{installed}: {sections(installed)}")
            # gdb's interface to just-in-time compilers is found by name.
            symbols = {line.split()[-1] for line in run(["nm", installed]).stdout.decode().splitlines()}
            wanted = {"__jit_debug_register_code", "__jit_debug_descriptor"} if installed.endswith("/libkymo.so") else set()
            expect(symbols == wanted, f"{installed}: {symbols}")
            expect(build_id(built) == build_id(installed), f"{installed}: another build ID than {built}")
        archive = glob.glob(f"{self.prefix}/**/libkymo-user.a", recursive=True)
        expect(len(archive) == 1, f"{archive}")
        symbols = run(["nm", archive[0]]).stdout.decode()
        expect(" T kymo_push_region" in symbols, symbols)
        expect(".debug_info" not in sections(archive[0]), "libkymo-user.a has debug information")

    def debug_files(self):
        """With -Ddebug_files=true."""
        if not self.options["debug"]:
            raise Skipped("this build has no debug information")
        command = [f"{self.source}/packaging/after-install", "objcopy", "lib/debug", "lib"]
        done = run(command, environment={"MESON_BUILD_ROOT": self.build, "MESON_INSTALL_PREFIX": self.options["prefix"],
                                         "MESON_INSTALL_DESTDIR_PREFIX": self.prefix})
        expect(done.status == 0, f"{done.stderr}")
        for _, installed in self.programs():
            identity = build_id(installed)
            file = f"{self.prefix}/lib/debug/.build-id/{identity[:2]}/{identity[2:]}.debug"
            expect(".debug_info" in sections(file) and build_id(file) == identity, file)
            expect(".gnu_debuglink" in sections(installed), f"{installed} names no debug file")
        require_tool("gdb")
        found = run(["gdb", "-nx", "-batch", "-iex", f"set debug-file-directory {self.prefix}/lib/debug",
                     "-ex", "info line main", f"{self.prefix}/bin/kymo"]).stdout.decode()
        expect("main.c" in found, found)

    def folder(self):
        """The folder of libraries is one where this machine's pkg-config and loader look."""
        prefix = self.options["prefix"]
        if prefix not in ("/usr", "/usr/local") or self.options["libdir"] != "lib":
            raise Skipped(f"a place of its own: {prefix}, {self.options['libdir']}")
        require_tool("pkg-config")
        found = glob.glob(f"{self.stage}/**/kymo.pc", recursive=True)
        expect(len(found) == 1, f"{found}")
        folder = os.path.dirname(found[0])[len(self.stage):]
        searched = run(["pkg-config", "--variable", "pc_path", "pkg-config"]).stdout.decode().strip().split(":")
        expect(folder in searched, f"{folder} is not among {searched}")
        program = next((path for path in ("/sbin/ldconfig", "/usr/sbin/ldconfig") if os.path.exists(path)), None)
        if program:
            # It names folders that exist, and complains of the others.
            done = run([program, "-v", "-N", "-X"])
            expect(os.path.dirname(folder) in done.stdout.decode() + done.stderr, f"{done}")

    def linked(self):
        """By pkg-config, elsewhere than in the system's own prefix; run without a variable."""
        require_tool("pkg-config")
        if self.options["prefix"] == "/usr":
            raise Skipped("the system's own prefix")
        folder = os.path.dirname(glob.glob(f"{self.stage}/**/kymo.pc", recursive=True)[0])
        # By a path with a blank.
        os.symlink(self.stage, self.scratch.path("a stage"))
        prefix = f"{self.scratch.path('a stage')}{self.options['prefix']}".replace(" ", "\\ ")
        for package, source in (("kymo", "examples/regions.c"), ("rocprofiler-sdk-roctx", "samples/workload.c")):
            flags = run(["pkg-config", "--define-variable", f"prefix={prefix}", "--cflags", "--libs", package],
                        environment={"PKG_CONFIG_PATH": folder})
            expect(flags.status == 0, f"pkg-config: {flags.stderr}")
            program = self.scratch.path(package)
            built = run(["cc", f"{self.source}/{source}", "-o", program, *shlex.split(flags.stdout.decode()), "-lm", "-pthread"])
            expect(built.status == 0, f"cc: {built.stderr}")
            ended = run([program])
            expect(ended.status == 0, f"{program}: {ended}")

    def command(self):
        """The installed command, from where it was moved to, names what it samples."""
        directory = self.scratch.path("result")
        program = self.scratch.path("pack")
        built = run(["cc", "-O2", "-pthread", f"{self.source}/examples/pack.c", "-o", program])
        expect(built.status == 0, f"cc: {built.stderr}")
        ended = Kymo(f"{self.prefix}/bin/kymo").sample([program, "1"], directory)
        expect(ended.status == 0, f"{ended.stderr}")
        shares = Result(directory).inclusive_shares()
        expect(shares.get("work", 0) > 0.9, f"{shares}")


    def completion(self):
        """Where a value is wanted, bash offers values of that kind, or nothing; never the shell's own words."""
        script = f"{self.prefix}/share/bash-completion/completions/kymo.bash"
        expect(os.path.exists(script), f"no {script}")

        def offered(*words):
            line = " ".join(map(shlex.quote, words))
            done = run(["bash", "-c", f". {shlex.quote(script)}; COMP_WORDS=({line}); COMP_CWORD={len(words) - 1}; "
                        '_kymo; printf "%s\\n" "${COMPREPLY[@]}"'])
            expect(done.status == 0 and not done.stderr, f"{words}: {done.stderr}")
            return done.stdout.decode().split()

        for words, some in ((("report", "--format"), {"text", "pprof", "counters-db"}),
                            (("report", "--measure"), {"cpu", "wall"}),
                            (("sample", "--format"), {"text", "lcov"}),
                            (("sample", "--components"), {"wall_clock", "cpu_clock"}),
                            (("attach", "-p"), {str(os.getpid()), "1"}),
                            (("help",), {"sample", "settings"}), (("ctl",), {"start", "stop"}),
                            (("avail",), {"counters"}), (("sample",), {"sh"}),
                            (("run", "--counters"), set()), (("sample", "--freq"), set())):
            values = offered("kymo", *words, "")
            expect(some <= set(values) and ("fi" not in values) and (bool(some) == bool(values)),
                   f"{words}: {len(values)} offered: {values[:20]}")
        expect(offered("kymo", "report", "--format", "text,pp") == ["text,pprof"], "the second word of a list")
        expect(offered("kymo", "report", "--format", "=", "pp") == ["pprof"], "--format=pp")
        expect("--freq" in offered("kymo", "sample", "--fr"), "options")
        expect(offered("kymo", "sam") == ["sample"], "commands")


def main():
    tap = Tap()
    build, source = sys.argv[1:3]
    with Scratch() as scratch:
        installation = Installation(build, source, scratch)
        tap.point("its size", installation.size)
        tap.point("without debug information", installation.split)
        tap.point("the installed command samples", installation.command)
        tap.point("where libraries go", installation.folder)
        tap.point("programs find them", installation.linked)
        tap.point("completion of values", installation.completion)
        tap.point("debug files", installation.debug_files)
    tap.finish()


if __name__ == "__main__":
    main()
