#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""Tasks of asyncio that spin for known parts of the CPU time.

usage: tasks.py SECONDS [many | block]
"many": besides that, hundreds of tasks with names of their own. "block": a task that sleeps and blocks its loop.
"""
import asyncio
import sys
import threading
import time

ROUNDS = 50


def spin(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


async def deep(levels, seconds):
    if levels:
        await deep(levels - 1, seconds)
    else:
        spin(seconds)


async def work(seconds):
    for _ in range(ROUNDS):
        await deep(3, seconds / ROUNDS)
        await asyncio.sleep(0)


def numbers(count):
    """A generator between the coroutine and what spins."""
    for number in range(count):
        spin(0.001)
        yield number


async def generate(seconds):
    for _ in range(ROUNDS):
        sum(numbers(max(1, round(seconds / ROUNDS / 0.001))))
        await asyncio.sleep(0)


async def short():
    spin(0.0005)


async def main(seconds):
    loop = asyncio.get_running_loop()
    # 40 and 10 of 100 hundredths, which gather() waits for; 20 that nobody waits for yet; 10 each by other ways.
    alone = loop.create_task(generate(0.2 * seconds), name="alone")
    await asyncio.gather(loop.create_task(work(0.4 * seconds), name="heavy"),
                         loop.create_task(work(0.1 * seconds), name="l\u00efght"))
    await alone
    await asyncio.wait([loop.create_task(work(0.1 * seconds), name="waited")])
    await loop.create_task(work(0.1 * seconds), name="direct")
    await work(0.1 * seconds)
    if "many" in sys.argv:
        for number in range(400):
            await loop.create_task(short(), name=f"request {number}")
    if "block" in sys.argv:
        await loop.create_task(block(0.5 * seconds), name="blocker")


async def block(seconds):
    time.sleep(seconds)


def run(seconds):
    loop = asyncio.new_event_loop()
    loop.run_until_complete(loop.create_task(work(seconds), name="threaded"))
    loop.close()


thread = threading.Thread(target=run, args=(0.25 * float(sys.argv[1]),))
thread.start()
asyncio.run(main(float(sys.argv[1])))
thread.join()
print("done")
