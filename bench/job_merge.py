#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""What kymo merge costs a rank, as ranks grow. Prints; asserts only that results are equal.

  job_merge.py KYMO [RANKS ...]

One process is recorded as a rank (the environment says which), and its directory is copied with
other ranks in its RANK record, so every rank costs the reading of a real session. It also takes
parts: each rank's part, joined. Shown are seconds, what a rank costs, and the largest resident
memory of any process.
"""
import os
import resource
import shutil
import struct
import subprocess
import sys
import tempfile
import time

SOURCE, SIZE = 5000, 16000  # in the recorded process; two bytes each, as those that replace them
FIRST = 128                 # the lowest rank whose number takes two bytes
PROGRAM = ["/usr/bin/python3", "-c",
           "import ast, glob\nfor path in sorted(glob.glob('/usr/lib/python3*/*.py'))[:60]:\n"
           " ast.parse(open(path, encoding='utf-8').read())\n"]


def varint(number):
    return bytes([number & 0x7f | 0x80, number >> 7])


def record(kymo, place):
    environment = dict(os.environ, OMPI_COMM_WORLD_RANK=str(SOURCE), OMPI_COMM_WORLD_SIZE=str(SIZE))
    subprocess.run([kymo, "sample", "-q", "-o", place + "/%r", "--time-output=off", "--", *PROGRAM],
                   check=True, env=environment)
    return os.path.join(place, str(SOURCE))


def copy_rank(source, place, rank):
    """Only what is read: launch.json and the spool files."""
    target = os.path.join(place, f"{rank:05}")
    os.makedirs(target + "/spool")
    shutil.copy(source + "/launch.json", target)
    wanted, written = varint(SOURCE) + varint(SIZE), varint(rank) + varint(SIZE)
    for name in os.listdir(source + "/spool"):
        if not name.endswith(".spool"):
            continue
        with open(os.path.join(source, "spool", name), "rb") as stream:
            data = stream.read()
        at = data.find(wanted)
        if at < 0 or data.find(wanted, at + 1) >= 0:
            raise SystemExit(f"{name}: {data.count(wanted)} records look like the rank's")
        with open(os.path.join(target, "spool", name), "wb") as stream:
            stream.write(data[:at] + written + data[at + len(wanted):])


def measure(*command):
    """(seconds, largest resident memory in MB of it or of a worker)"""
    begin = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = status
    if status:
        raise SystemExit(f"{command} ended with {status}")
    return time.monotonic() - begin, usage.ru_maxrss / 1024, usage.ru_utime + usage.ru_stime


def show(what, ranks, measured, size=None):
    seconds, memory, cpu = measured
    print(f"{what:<28} {ranks:>6} {seconds:>9.2f} {cpu:>9.2f} {1000 * cpu / ranks:>9.2f} {memory:>9.1f}"
          + (f" {size / 1e6:>9.2f}" if size is not None else ""), flush=True)


def same(a, b):
    for name in ("job.txt", "job.json", "samples.folded", "job.part"):
        with open(os.path.join(a, name), "rb") as one, open(os.path.join(b, name), "rb") as other:
            if one.read() != other.read():
                raise SystemExit(f"{name} of {b} differs from {a}")


def run(kymo, scratch, source, ranks):
    place = os.path.join(scratch, f"ranks-{ranks}")
    for rank in range(FIRST, FIRST + ranks):
        copy_rank(source, place, rank)
    direct, two, joined = (os.path.join(scratch, f"{name}-{ranks}") for name in ("direct", "two", "joined"))
    measured = measure(kymo, "merge", "-q", place, "-o", direct)
    show("merge", ranks, measured, os.path.getsize(direct + "/job.part"))
    show("merge -j 2", ranks, measure(kymo, "merge", "-q", "-j", "2", place, "-o", two))
    parts = [os.path.join(scratch, f"part-{ranks}-{number}") for number in range(64)]
    for number, part in enumerate(parts, 1):
        subprocess.run([kymo, "merge", "--shard", f"{number}/64", place, "-o", part], check=True)
    show("merge --join of 64 parts", ranks,
         measure(kymo, "merge", "-q", "--join", *parts, "-o", joined))
    same(direct, two)
    same(direct, joined)
    shutil.rmtree(place)


def main():
    kymo, counts = os.path.abspath(sys.argv[1]), [int(each) for each in sys.argv[2:]] or [64, 256, 1024]
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with tempfile.TemporaryDirectory(prefix="kymo-bench-") as scratch:
        source = record(kymo, scratch)
        spool = sum(os.path.getsize(os.path.join(source, "spool", name))
                    for name in os.listdir(source + "/spool"))
        whole = sum(os.path.getsize(os.path.join(root, name))
                    for root, _, names in os.walk(source) for name in names)
        print(f"a rank: {spool / 1e6:.2f} MB of records, {whole / 1e6:.2f} MB with its results, "
              f"{len(os.listdir(source)) + len(os.listdir(source + '/spool'))} files")
        print(f"{'':<28} {'ranks':>6} {'seconds':>9} {'CPU s':>9} {'ms/rank':>9} {'MB':>9} {'MB part':>9}")
        for ranks in counts:
            run(kymo, scratch, source, ranks)


main()
