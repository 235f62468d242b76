#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""A training step of a small transformer, launch bound: what profilers slow down most.

usage: sdk_train.py [STEPS]     prints ms a step
"""
import sys
import time

import torch

steps = int(sys.argv[1]) if len(sys.argv) > 1 else 60
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


for _ in range(20):
    step()
torch.cuda.synchronize()
start = time.perf_counter()
for _ in range(steps):
    loss = step()
torch.cuda.synchronize()
print(f"train: {(time.perf_counter() - start) / steps * 1e3:.3f} ms a step, loss {loss.item():.4f}", flush=True)
