#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""A training step of a small transformer, launch bound: what profilers slow down most.

usage: sdk_train.py [STEPS [ROCTX-LIBRARY]]     prints ms a step, the median of rounds of ten

With a library, recording pauses in every other round: both medians come from one process, whose memory and clocks
are the same.
"""
import ctypes
import statistics
import sys
import time

import torch

steps = int(sys.argv[1]) if len(sys.argv) > 1 else 300
torch.manual_seed(0)
layer = torch.nn.TransformerEncoderLayer(512, 8, 1024, batch_first=True)
model = torch.nn.TransformerEncoder(layer, 4).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
batch = torch.randn(32, 64, 512, device="cuda")


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


if len(sys.argv) > 2:
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
          f"({ratios[len(ratios) // 4]:.3f} to {ratios[3 * len(ratios) // 4]:.3f})", flush=True)
else:
    # The median of rounds is not disturbed by what else the machine does.
    rounds = sorted(round_of_ten() for _ in range(max(steps // 10, 1)))
    print(f"train: {rounds[len(rounds) // 2]:.3f} ms a step (median; best {rounds[0]:.3f}), "
          f"loss {step().item():.4f}", flush=True)
