#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""Every part of kymo is found: in the build tree, in an installation, in one that was moved, below a
path that LD_PRELOAD cannot name, and by users who did not install it.

usage: parts.py KYMO BUILD-DIRECTORY INSTALLED-COPY
"""
import os
import shutil
import stat
import sys

from harness import Failed, Scratch, Skipped, Tap, expect, run

# Variables that name parts, and the parts that each names.
PARTS = {
    "LD_PRELOAD": ["libkymo.so", "libkymo-dl.so"],
    "OMP_TOOL_LIBRARIES": ["libkymo-dl.so"],
    "KOKKOS_TOOLS_LIBS": ["libkymo-dl.so"],
    "OPENCL_LAYERS": ["libkymo-sdk.so"],
    "ROCP_TOOL_LIBRARIES": ["libkymo-gpu.so"],
    "CUDA_INJECTION64_PATH": ["libkymo-sdk.so"],
    "NVTX_INJECTION64_PATH": ["libkymo-sdk.so"],
    "NCCL_PROFILER_PLUGIN": ["libnccl-profiler-kymo.so"],
}
STRANGER = 61234


def become_stranger():
    os.setgroups([])
    os.setresgid(STRANGER, STRANGER, STRANGER)
    os.setresuid(STRANGER, STRANGER, STRANGER)


class Parts:
    def __init__(self, kymo, build, installed_copy, scratch):
        self.kymo, self.build, self.installed_copy, self.scratch = kymo, build, installed_copy, scratch
        self.prefix, self.count = None, 0

    def installation(self):
        if not self.prefix:
            given = os.environ.get("E2E_PREFIX")
            ended = run([self.installed_copy, self.build]) if not given else None
            expect(given or ended.status == 0, f"no installation: {ended and ended.stderr}")
            self.prefix = given or ended.stdout.decode().strip()
            expect(" " in self.prefix, f"no blank in {self.prefix}")
        return self.prefix

    def expect_parts(self, kymo, below, **how):
        """All are named by paths that exist, lie below the directory, and are loaded without a word."""
        self.count += 1
        directory = self.scratch.path(f"results-{self.count}")
        ended = run([kymo, "sample", "-q", "-o", directory, "--time-output=off", "--", "env"], **how)
        expect(ended.status == 0 and not ended.stderr, f"{ended.status} {ended.stderr}")
        given = dict(line.split("=", 1) for line in ended.stdout.decode().splitlines() if "=" in line)
        for variable, names in PARTS.items():
            paths = [os.path.realpath(path) for path in given.get(variable, "").split(":") if path]
            expect([os.path.basename(path) for path in paths] == names, f"{variable}={given.get(variable)}")
            for path in paths:
                expect(os.path.isfile(path) and path.startswith(os.path.realpath(below) + os.sep),
                       f"{variable} names {path}, not below {below}")
        return given

    def in_the_build_tree(self):
        self.expect_parts(os.path.join(self.build, "src/cmd/kymo"), self.build)

    def installed(self):
        prefix = self.installation()
        self.expect_parts(os.path.join(prefix, "bin/kymo"), prefix)

    def by_another_name_of_the_command(self):
        prefix = self.installation()
        link = self.scratch.path("my kymo")
        os.symlink(os.path.join(prefix, "bin/kymo"), link)
        self.expect_parts(link, prefix)

    def moved(self):
        for name in ("moved", "moved once more: here"):
            there = self.scratch.path(name)
            shutil.copytree(self.installation(), there, symlinks=True)
            self.expect_parts(os.path.join(there, "bin/kymo"), there)

    def programs_of_programs(self):
        """What a program executes with this environment, later and elsewhere, has the libraries as well."""
        kymo = os.path.join(self.installation(), "bin/kymo")
        directory = self.scratch.path("tree")
        ended = run([kymo, "sample", "-q", "-o", directory, "--time-output=off", "--", "sh", "-c",
                     "cd /; sh -c 'grep -c libkymo.so /proc/self/maps'; env -i sh -c 'grep -c libkymo.so /proc/self/maps'"])
        counts = ended.stdout.decode().split()
        expect(ended.status == 0 and counts and int(counts[0]) > 0, f"{ended}")

    def counter_definitions(self):
        kymo = os.path.join(self.installation(), "bin/kymo")
        ended = run([kymo, "avail", "--counters"])
        expect(ended.status == 0 and b"task_clock" in ended.stdout, f"{ended.status} {ended.stderr}")

    def for_another_user(self):
        """Who has no say in the directory of links that somebody made before."""
        if os.getuid() != 0:
            raise Skipped("needs root")
        there = self.scratch.path("shared place")
        shutil.copytree(self.installation(), there, symlinks=True)
        os.chmod(self.scratch.directory, 0o1777)
        links = [f"{root}/kymo-{STRANGER}" for root in ("/var/tmp", "/tmp", "/dev/shm")]
        try:
            given = self.expect_parts(os.path.join(there, "bin/kymo"), there, preexec=become_stranger)
            expect(given["LD_PRELOAD"].startswith(links[0] + "/"), given["LD_PRELOAD"])
            made = os.lstat(links[0])
            expect(made.st_uid == STRANGER and not made.st_mode & (stat.S_IWGRP | stat.S_IWOTH), f"{made}")
            shutil.rmtree(links[0])
            os.mkdir(links[0])  # root's, for others to write
            os.chmod(links[0], 0o777)
            os.symlink("/etc", links[1])
            given = self.expect_parts(os.path.join(there, "bin/kymo"), there, preexec=become_stranger)
            expect(given["LD_PRELOAD"].startswith(links[2] + "/"), given["LD_PRELOAD"])
            expect(not os.listdir(links[0]), "written into somebody else's directory")
        finally:
            for link in links:
                if os.path.islink(link):
                    os.unlink(link)
                else:
                    shutil.rmtree(link, ignore_errors=True)


def main():
    tap = Tap()
    with Scratch() as scratch:
        parts = Parts(sys.argv[1], os.path.abspath(sys.argv[2]), os.path.abspath(sys.argv[3]), scratch)
        for name in ("in_the_build_tree", "installed", "by_another_name_of_the_command", "moved",
                     "programs_of_programs", "counter_definitions", "for_another_user"):
            tap.point(name.replace("_", " "), getattr(parts, name))
    tap.finish()


if __name__ == "__main__":
    try:
        main()
    except Failed as error:
        print(f"Bail out! {error}")
