#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""Workloads whose calls are counted: by kymo around this program, or by cProfile in it.

usage: calls.py WORKLOAD [STATISTICS]     with a file, cProfile's counts go there
"""
import asyncio
import contextlib
import json
import re
import sys
import textwrap


def recurse(n):
    return n if n < 2 else recurse(n - 1) + recurse(n - 2)


def ackermann(m, n):
    if m == 0:
        return n + 1
    return ackermann(m - 1, 1 if n == 0 else ackermann(m, n - 1))


def work_recursion():
    return recurse(14) + ackermann(2, 3)


def numbers(count):
    try:
        for i in range(count):
            got = yield i
            if got:
                yield -got
    finally:
        note_end()


def note_end():
    pass


def delegate(count):
    total = yield from numbers(count)
    return total


def tree(depth):
    if depth:
        yield from tree(depth - 1)
        yield depth
        yield from tree(depth - 1)


def work_generators():
    total = sum(numbers(50)) + sum(delegate(20)) + sum(x for x in numbers(7)) + sum(tree(5))
    sent = numbers(3)
    next(sent)
    total += sent.send(5)
    with contextlib.suppress(KeyError):
        sent.throw(KeyError("thrown"))
    closed = numbers(9)
    next(closed)
    closed.close()
    never = numbers(3)
    del never
    unfinished = delegate(4)
    total += next(unfinished)
    del unfinished
    return total


class Refused(Exception):
    def __init__(self, depth):
        super().__init__(depth)
        self.depth = depth


def refuse(depth):
    if depth == 0:
        raise Refused(depth)
    try:
        refuse(depth - 1)
    except Refused as error:
        if depth % 2:
            raise Refused(depth) from error
        raise


def work_exceptions():
    caught = 0
    for depth in range(12):
        try:
            refuse(depth)
        except Refused:
            caught += 1
        finally:
            note_end()
    try:
        endless(0)
    except RecursionError:
        caught += 1
    return caught


def endless(n):
    return endless(n + 1)


class Vector:
    def __init__(self, x):
        self.x = x

    def __getitem__(self, index):
        return self.x + index

    def __add__(self, other):
        return Vector(self.x + other.x)

    def __eq__(self, other):
        return self.x == other.x

    def __lt__(self, other):
        return self.x < other.x

    def __hash__(self):
        return hash(self.x)

    def __call__(self, x):
        return self.x * x

    def __getattr__(self, name):
        return len(name)

    @property
    def doubled(self):
        return 2 * self.x

    @staticmethod
    def fixed():
        return 1

    @classmethod
    def make(cls, x):
        return cls(x)


def work_classes():
    total = 0
    for i in range(40):
        vector = Vector.make(i) + Vector(i)
        total += vector[i] + vector.doubled + vector(2) + Vector.fixed() + vector.missing + (vector == vector)
    total += sorted([Vector(i) for i in range(30, 0, -1)])[0].x + len({Vector(i % 5) for i in range(20)})
    total += sum(map(lambda x: x + 1, range(25)))
    total += sorted(range(20), key=lambda x: -x)[0]
    return total


def work_json():
    value = {"list": [{"n": i, "s": str(i) * 3, "f": i / 7} for i in range(40)], "none": None}
    return len(json.dumps(json.loads(json.dumps(value, indent=2, sort_keys=True)), indent=1))


def work_re():
    re.purge()
    text = "the quick brown fox " * 50
    found = [len(re.findall(pattern, text)) for pattern in (r"\w+o\w*", r"(?P<a>q)(u)+", r"[^aeiou ]{2,}", r"x|y|z")]
    return sum(found) + len(re.sub(r"o(\w)", lambda match: match[1].upper(), text)) + len(textwrap.fill(text, 40))


async def step(n):
    await asyncio.sleep(0)
    return n


async def produce(queue):
    for i in range(20):
        await queue.put(await step(i))
    await queue.put(None)


async def consume(queue):
    total = 0
    while (item := await queue.get()) is not None:
        total += item
    return total


async def count_up(n):
    for i in range(n):
        yield i


@contextlib.asynccontextmanager
async def around():
    await step(1)
    yield 5
    await step(2)


async def run_coroutines():
    queue = asyncio.Queue(3)
    _, total = await asyncio.gather(produce(queue), consume(queue))
    async for i in count_up(15):
        total += i
    async with around() as value:
        total += value
    with contextlib.suppress(asyncio.TimeoutError):
        await asyncio.wait_for(asyncio.Event().wait(), 0.01)
    return total


def work_asyncio():
    loop = asyncio.new_event_loop()
    try:
        return loop.run_until_complete(run_coroutines())
    finally:
        loop.close()


def run(workload):
    return globals()["work_" + workload]()


def main():
    workload, statistics = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None
    run(workload)  # caches are warm
    if statistics:
        import cProfile
        profile = cProfile.Profile()
        result = profile.runcall(run, workload)
        profile.create_stats()
        with open(statistics, "w", encoding="utf-8") as stream:
            json.dump([[*where, counts[1]] for where, counts in profile.stats.items()], stream)
    else:
        result = run_counted(workload)
    print(workload, result)


def run_counted(workload):
    return run(workload)


if __name__ == "__main__":
    main()
