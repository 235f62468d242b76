# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""What kymo says of NCCL's operations against what others measured; for bench/nccl_device.

Kernels are lines "DEVICE START END NAME" of one file or, with ".RANK" behind its name, one a rank: what CUPTI recorded
in the same run, one kernel an operation. They are compared in the order of both.
"""
import glob
import json
import os
import statistics
import subprocess
import tempfile


def operations(kymo, directory):
    """The lines of operations.jsonl of a result, or of results in directories below (rank-0, rank-1)."""
    below = sorted(glob.glob(os.path.join(directory, "rank-*")))
    lines = []
    for result in below or [directory]:
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "operations.jsonl")
            subprocess.run([kymo, "report", "--format", "nccl-operations", "-o", path, result], check=True, timeout=300,
                           stdout=subprocess.DEVNULL)
            with open(path, encoding="utf-8") as stream:
                lines += [line for line in map(json.loads, stream) if "ordinal" in line]
    return lines


def read_kernels(path):
    by_rank = {}
    for name in [path] if os.path.exists(path) else sorted(glob.glob(path + ".*")):
        with open(name, encoding="utf-8") as stream:
            for line in stream:
                device, start, end, _ = line.split(None, 3)
                rank = int(device) if name == path else int(name.rpartition(".")[2])
                by_rank.setdefault(rank, []).append((int(start), int(end)))
    return {rank: sorted(kernels) for rank, kernels in by_rank.items()}


def is_within(ours, theirs, ns, share):
    return abs(ours - theirs) <= ns + share * theirs


def compare_size(size, pairs, marked):
    """`pairs`: (ours, CUPTI's) of those that are not marked. How many are off by far."""
    off = [pair for pair in pairs if not is_within(*pair, 5000, 0.05)]
    if not pairs:
        print(f"    {size:>9} B: all {marked} marked")
        return 0
    difference = sorted(ours - theirs for ours, theirs in pairs)
    middle = difference[len(difference) // 2]
    print(f"    {size:>9} B x {len(pairs):4}, {marked} more marked: CUPTI median "
          f"{statistics.median(theirs for _, theirs in pairs) / 1e3:9.2f} us, ours "
          f"{statistics.median(ours for ours, _ in pairs) / 1e3:9.2f} us; ours - CUPTI median "
          f"{middle} ns, 5 % {difference[len(difference) // 20]}, 95 % {difference[len(difference) * 19 // 20]}; "
          f"within 2 us + 2 %: {sum(1 for pair in pairs if is_within(*pair, 2000, 0.02))} of {len(pairs)}; "
          f"off by more than 600 ns from the median: {sum(1 for each in difference if abs(each - middle) > 600)}, "
          f"by more than 5 us + 5 %: {len(off)}")
    return len(off)


def compare_rank(rank, ours, kernels):
    timed = [op for op in ours if op["timing"] == "gpu"]
    print(f"  rank {rank}: {len(ours)} operations, {len(kernels)} kernels; timed by the GPU {len(timed)}, "
          f"aliased {sum(1 for op in ours if 'aliased' in op['marks'])}, "
          f"batched {sum(1 for op in ours if 'batched' in op['marks'])}")
    if len(ours) != len(kernels):
        print("    numbers differ: not compared one by one")
        return
    by_size = {}
    for op, (start, end) in zip(ours, kernels):
        pairs, marked = by_size.setdefault(op["bytes"], ([], []))
        if op["timing"] == "gpu":
            pairs.append((op["duration_ns"], end - start))
        else:
            marked.append(op)
    off = sum(compare_size(size, pairs, len(marked)) for size, (pairs, marked) in sorted(by_size.items()))
    print(f"    not marked, and off by more than 5 us + 5 %: {off} of {len(timed)}")


def compare(kymo, directory, kernels):
    """Durations against CUPTI's for the same operations."""
    by_rank, theirs = {}, read_kernels(kernels)
    for op in operations(kymo, directory):
        by_rank.setdefault(op["rank"], []).append(op)
    for rank, ours in sorted(by_rank.items()):
        ours.sort(key=lambda op: (op["communicator_hash"], op["communicator_occurrence"], op["ordinal"]))
        compare_rank(rank, ours, theirs.get(rank, []))


def collectives(kymo, directory, ranks=2):
    """By size: the shortest time of the ranks of each collective, which is that of the one that came last."""
    by_number, by_size = {}, {}
    for op in operations(kymo, directory):
        if op["timing"] in ("gpu", "kernel"):
            by_number.setdefault((op["bytes"], op["function"], op["sequence"]), []).append(op["duration_ns"])
    for (size, _, _), times in sorted(by_number.items()):
        if len(times) == ranks:
            by_size.setdefault(size, []).append(min(times))
    return by_size
