#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""Steps with planted slow ones, for the table of steps (docs/reference/devices.md). Prints what it did and measured.

  kymo sample -- python3 sdk_steps.py train|ranges|generate [STEPS]

train, ranges: a transformer is trained; step 12 waits for its data (CPU), step 24 copies 256 MiB, step 32 multiplies large
matrices. ranges: each step is an NVTX range. generate: tokens one after the other, of which each 20th comes late.
"""
import sys
import time

import torch

MODE = sys.argv[1] if len(sys.argv) > 1 else "train"
STEPS = int(sys.argv[2]) if len(sys.argv) > 2 else 40
torch.manual_seed(0)
layer = torch.nn.TransformerEncoderLayer(1024, 16, 4096, batch_first=True)
model = torch.nn.TransformerEncoder(layer, 12).cuda().to(torch.bfloat16)
large = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
host = torch.empty(64 << 20, dtype=torch.float32)
times = []


def load(step):
    if step == 12:
        time.sleep(0.1)
    if step == 24:
        host.cuda()
    return torch.randn(8, 128, 1024, device="cuda", dtype=torch.bfloat16)


def train():
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for step in range(1, STEPS + 1):
        begin = time.perf_counter()
        if MODE == "ranges":
            torch.cuda.nvtx.range_push("training step")
        batch = load(step)
        if step == 32:
            for _ in range(40):
                large @ large
        loss = model(batch).float().pow(2).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        loss.item()
        if MODE == "ranges":
            torch.cuda.nvtx.range_pop()
        times.append(time.perf_counter() - begin)


@torch.no_grad()
def generate():
    head = torch.nn.Linear(1024, 50000).cuda().to(torch.bfloat16)
    embedding = torch.nn.Embedding(50000, 1024).cuda().to(torch.bfloat16)
    token = torch.zeros(1, 1, dtype=torch.long, device="cuda")
    model.eval()
    for step in range(1, STEPS + 1):
        begin = time.perf_counter()
        if step % 20 == 0:
            time.sleep(0.05)
        token = head(model(embedding(token))).argmax(-1)
        token.item()
        times.append(time.perf_counter() - begin)


(generate if MODE == "generate" else train)()
torch.cuda.synchronize()
ordered = sorted(times)
print(f"{MODE}: {len(times)} steps, median {ordered[len(times) // 2] * 1e3:.2f} ms; the longest: " +
      ", ".join(f"#{i + 1} {times[i] * 1e3:.1f} ms" for i in sorted(range(len(times)), key=lambda i: -times[i])[:4]))
