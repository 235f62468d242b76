#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""A training step of a small transformer, launch bound: what profilers slow down most. With SDK_TRAIN_BATCH=512
(default 32) the device has work for longer than its kernels take to be launched.

usage: sdk_train.py [STEPS [ROCTX-LIBRARY]]     prints ms a step, the median of rounds of ten
       sdk_train.py STEPS CUPTI-FLOOR CLOCK     without kymo: what CUPTI costs, by what is asked of it

With a library, recording pauses in every other round: both medians come from one process, whose memory and clocks
are the same.
"""
import ctypes
import os
import statistics
import sys
import time

import torch

floor = ctypes.CDLL(sys.argv[2]) if len(sys.argv) > 3 else None
if floor and floor.floor_begin(int(sys.argv[3])) != 0:
    sys.exit("sdk_train: CUPTI is not there, or not free")
steps = int(sys.argv[1]) if len(sys.argv) > 1 else 300
torch.manual_seed(0)
layer = torch.nn.TransformerEncoderLayer(512, 8, 1024, batch_first=True)
model = torch.nn.TransformerEncoder(layer, 4).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
batch = torch.randn(int(os.environ.get("SDK_TRAIN_BATCH", "32")), 64, 512, device="cuda")


def step():
    torch.cuda.nvtx.range_push("step")
    optimizer.zero_grad(set_to_none=True)
    torch.cuda.nvtx.range_push("forward")
    loss = model(batch).square().mean()
    torch.cuda.nvtx.range_pop()
    torch.cuda.nvtx.range_push("backward")
    loss.backward()
    torch.cuda.nvtx.range_pop()
    optimizer.step()
    torch.cuda.nvtx.range_pop()
    return loss


for _ in range(10):
    step()
torch.cuda.synchronize()


def round_of_ten():
    start = time.perf_counter()
    for _ in range(10):
        step()
    torch.cuda.synchronize()
    return (time.perf_counter() - start) / 10 * 1e3


# kinds (1 kernels, 2 graphs, 4 copies and fills), ms between flushes, bytes of a buffer, cleared by us, callbacks
MODES = {
    "kernels, never flushed": (1, 0, 1 << 20, 1, 0),
    "kernels and graphs": (3, 0, 1 << 20, 1, 0),
    "kernels, copies and fills": (5, 0, 1 << 20, 1, 0),
    "all, flushed every 100 ms": (7, 100, 1 << 20, 1, 0),
    "all, flushed every 100 ms, 4 MiB, CUPTI clears": (7, 100, 4 << 20, 0, 0),
    "all, flushed every 100 ms, callbacks": (7, 100, 1 << 20, 1, 1),
}


def turn_of(mode):
    kinds, flush, size, clear, callbacks = mode
    floor.floor_turn(kinds, flush, ctypes.c_size_t(size), clear, callbacks)
    step()
    torch.cuda.synchronize()
    return round_of_ten()


def lower(values):
    """What others on the machine disturb least."""
    return sorted(values)[len(values) // 4]


def middle(values):
    values = sorted(values)
    return f"{statistics.median(values):.3f} ({values[len(values) // 4]:.3f} to {values[3 * len(values) // 4]:.3f})"


if floor:
    floor.floor_told.restype = ctypes.c_uint64
    ratios, paused = {name: [] for name in MODES}, []
    recorded, without = {name: [] for name in MODES}, {name: [] for name in MODES}
    off, flushes = (0, 0, 1 << 20, 1, 0), {}
    for _ in range(max(steps // 10, 1)):
        for name, mode in MODES.items():
            before, flushed = turn_of(off), [floor.floor_told(what) for what in (2, 3)]
            after = turn_of(mode)
            flushed = [floor.floor_told(what) - was for what, was in zip((2, 3), flushed)]
            ratios[name].append(after / before)
            recorded[name].append(after)
            without[name].append(before)
            flushes[name] = [old + new for old, new in zip(flushes.get(name, (0, 0)), flushed)]
            paused.append(before)
    print(f"floor: {statistics.median(paused):.3f} ms a step without records; with, of the step before:")
    for name, values in ratios.items():
        print(f"  {name:48} {middle(values)}; of lower quarters {lower(recorded[name]) / lower(without[name]):.3f}; "
              f"{flushes[name][0]} flushes of "
              f"{flushes[name][1] / max(flushes[name][0], 1) / 1e3:.0f} us")
    print("  records {}, dropped {}, buffers {}".format(*(floor.floor_told(what) for what in (0, 1, 4))), flush=True)
elif len(sys.argv) > 2:
    roctx, times = ctypes.CDLL(sys.argv[2]), {"paused": [], "recorded": []}
    for number in range(max(steps // 10, 2)):
        turn = "paused" if number % 2 else "recorded"
        (roctx.roctxProfilerPause if number % 2 else roctx.roctxProfilerResume)(0)
        step()  # what turning it on or off costs is not of the round
        torch.cuda.synchronize()
        times[turn].append(round_of_ten())
    medians = {turn: statistics.median(values) for turn, values in times.items()}
    ratios = sorted(after / before for before, after in zip(times["paused"], times["recorded"][1:]))
    print(f"train: paused {medians['paused']:.3f}, recorded {medians['recorded']:.3f} ms a step, "
          f"ratio {medians['recorded'] / medians['paused']:.3f}; of neighbours {statistics.median(ratios):.3f} "
          f"({ratios[len(ratios) // 4]:.3f} to {ratios[3 * len(ratios) // 4]:.3f}); of lower quarters "
          f"{lower(times['recorded']) / lower(times['paused']):.3f}", flush=True)
else:
    # The median of rounds is not disturbed by what else the machine does.
    rounds = sorted(round_of_ten() for _ in range(max(steps // 10, 1)))
    print(f"train: {rounds[len(rounds) // 2]:.3f} ms a step (median; best {rounds[0]:.3f}), "
          f"loss {step().item():.4f}", flush=True)
