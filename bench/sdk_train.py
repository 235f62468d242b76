#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""A training step of a small transformer, launch bound: what profilers slow down most.

usage: sdk_train.py [STEPS]     prints ms a step, the median of rounds of ten
"""
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
# Rounds of ten steps, the median of which is not disturbed by what else the machine does.
rounds = []
for _ in range(max(steps // 10, 1)):
    start = time.perf_counter()
    for _ in range(10):
        loss = step()
    torch.cuda.synchronize()
    rounds.append((time.perf_counter() - start) / 10 * 1e3)
rounds.sort()
print(f"train: {rounds[len(rounds) // 2]:.3f} ms a step (median; best {rounds[0]:.3f}), "
      f"loss {loss.item():.4f}", flush=True)
