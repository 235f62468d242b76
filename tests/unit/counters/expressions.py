#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""Generated expressions, computed twice: by the library's programs (calculate.c) and here, where a
value is a mapping of positions to numbers and nothing is compiled.

usage: expressions.py CALCULATE [COUNT [SEED]]
"""
import itertools
import math
import random
import subprocess
import sys

XCC, AID, SE, AGENT, SA, WGP, INSTANCE = range(1, 8)
NAMES = {XCC: "XCC", AID: "AID", SE: "SHADER_ENGINE", AGENT: "AGENT", SA: "SHADER_ARRAY", WGP: "WGP",
         INSTANCE: "INSTANCE"}
EVENTS = [("X", {XCC: 2, SA: 3, WGP: 4}), ("Y", {XCC: 2, SE: 5}), ("W", {WGP: 4}), ("S", {INSTANCE: 1}),
          ("E", {SE: 5, WGP: 4})]


class Refused(Exception):
    pass


class Value:
    """axes: positions by dimension; cells: numbers by frozenset of (dimension, position)."""

    def __init__(self, axes, cells):
        self.axes, self.cells = axes, cells

    @staticmethod
    def single(number):
        return Value({}, {frozenset(): number})

    def places(self):
        dimensions = sorted(self.axes)
        for positions in itertools.product(*(self.axes[d] for d in dimensions)):
            yield frozenset(zip(dimensions, positions))


def raw(number):
    name, sizes = EVENTS[number]
    axes = {d: list(range(n)) for d, n in sizes.items()}
    value = Value(axes, {})
    for index, positions in enumerate(itertools.product(*(axes[d] for d in sorted(axes)))):
        value.cells[frozenset(zip(sorted(axes), positions))] = float((number * 31 + index * 17) % 13 - 3)
    return value


def apply(operator, a, b):
    if operator == "+":
        return a + b
    if operator == "-":
        return a - b
    if operator == "*":
        return a * b
    return a / b if b else 0.0


def combine(operator, left, right):
    if not left.cells or not right.cells:
        return Value({INSTANCE: []}, {})
    if len(left.cells) == 1 and len(right.cells) != 1:
        number = next(iter(left.cells.values()))
        return Value(right.axes, {p: apply(operator, number, v) for p, v in right.cells.items()})
    if len(right.cells) == 1:
        number = next(iter(right.cells.values()))
        return Value(left.axes, {p: apply(operator, v, number) for p, v in left.cells.items()})
    wide = [{d for d, p in side.axes.items() if len(p) != 1} for side in (left, right)]
    if wide[0] - wide[1] and wide[1] - wide[0]:
        raise Refused
    axes = dict(left.axes)
    for dimension, positions in right.axes.items():
        if dimension not in axes or (len(axes[dimension]) == 1 and len(positions) != 1):
            axes[dimension] = positions
        elif len(positions) != 1 and positions != axes[dimension]:
            raise Refused

    def cell(value, place):
        want = frozenset((d, value.axes[d][0] if len(value.axes[d]) == 1 else p) for d, p in place if d in value.axes)
        return value.cells[want]

    joined = Value(axes, {})
    for place in joined.places():
        joined.cells[place] = apply(operator, cell(left, place), cell(right, place))
    return joined


def reduce(value, operation, dimensions):
    gone = set(dimensions or range(1, 8)) & set(value.axes)
    if not gone or not value.cells:
        return value
    groups = {}
    for place in value.places():  # in order: sums are of doubles
        rest = frozenset((d, p) for d, p in place if d not in gone)
        groups.setdefault(rest, []).append(value.cells[place])
    functions = {"sum": lambda v: sum(v[1:], v[0]), "avr": lambda v: sum(v[1:], v[0]) / len(v), "min": min, "max": max}
    axes = {d: p for d, p in value.axes.items() if d not in gone}
    cells = {p: functions[operation](v) for p, v in groups.items()}
    return Value.single(next(iter(cells.values()))) if len(cells) == 1 else Value(axes, cells)


def select(value, picks):
    axes = dict(value.axes)
    for dimension, wanted in picks.items():
        if dimension in axes:
            axes[dimension] = [p for p in axes[dimension] if p in wanted]
        elif 0 not in wanted:
            return Value({INSTANCE: []}, {})
    if not value.cells or any(not p for p in axes.values()):
        return Value({INSTANCE: []}, {})
    kept = Value(axes, {})
    single = {d for d in picks if d in axes and len(axes[d]) == 1}
    cells = {frozenset((d, p) for d, p in place if d not in single): value.cells[place] for place in kept.places()}
    return Value({d: p for d, p in axes.items() if d not in single}, cells)


def make(rng, depth):
    """An expression's text and a function that computes it."""
    kind = rng.random()
    if depth == 0 or kind < 0.2:
        if rng.random() < 0.3:
            text = rng.choice(["0", "1", "2.5", ".25", "1e2", "3.", "7", "12e-1"])
            return text, lambda: Value.single(float(text))
        number = rng.randrange(len(EVENTS))
        return EVENTS[number][0], lambda: raw(number)
    if kind < 0.6:
        operator = rng.choice("+-*/")
        (a, left), (b, right) = make(rng, depth - 1), make(rng, depth - 1)
        blank = rng.choice(["", " ", "\t"])
        return f"({a}){blank}{operator}{blank}({b})", lambda: combine(operator, left(), right())
    if kind < 0.65:
        a, inner = make(rng, depth - 1)

        def negated():
            value = inner()
            return Value(value.axes, {p: -v for p, v in value.cells.items()})
        return f"-({a})", negated
    if kind < 0.7:
        # Without parentheses: what binds how is the parser's.
        names = [rng.randrange(len(EVENTS)) for _ in range(4)]
        signs = [rng.choice("+-*/") for _ in range(3)]
        text = EVENTS[names[0]][0] + "".join(s + EVENTS[n][0] for s, n in zip(signs, names[1:]))

        def flat():
            values, waiting = [raw(names[0])], []
            for sign, name in zip(signs, names[1:]):
                if sign in "*/":
                    values[-1] = combine(sign, values[-1], raw(name))
                else:
                    waiting.append(sign)
                    values.append(raw(name))
            total = values[0]
            for sign, value in zip(waiting, values[1:]):
                total = combine(sign, total, value)
            return total
        return text, flat
    a, inner = make(rng, depth - 1)
    if kind < 0.88:
        operation = rng.choice(["sum", "avr", "min", "max"])
        dimensions = rng.sample(sorted(NAMES), rng.randrange(4))
        listed = ",[" + ", ".join("DIMENSION_" + NAMES[d] for d in dimensions) + "]" if dimensions else ""
        return f"reduce({a},{operation}{listed})", lambda: reduce(inner(), operation, dimensions)
    picks, texts = {}, []
    for dimension in rng.sample(sorted(NAMES), rng.randrange(1, 3)):
        wanted, listed = set(), []
        for _ in range(rng.randrange(1, 3)):
            first = rng.randrange(5)
            last = first + rng.choice([0, 0, 1, 2])
            wanted |= set(range(first, last + 1))
            listed.append(str(first) if first == last else f"{first}:{last}")
        picks[dimension] = wanted
        texts.append(f"DIMENSION_{NAMES[dimension]}=[{','.join(listed)}]")
    return f"select({a},[{','.join(texts)}])", lambda: select(inner(), picks)


def parse(line):
    if line.startswith("refused"):
        return None
    cells = {}
    for part in line.split():
        place, _, number = part.partition("=")
        cells[frozenset(tuple(map(int, p.split(":"))) for p in place.split(",") if p)] = float(number)
    return cells


def same(one, other):
    if one is None or other is None:
        return one is other
    return one.keys() == other.keys() and all(
        a == other[p] or (math.isnan(a) and math.isnan(other[p])) or math.isclose(a, other[p], rel_tol=1e-12)
        for p, a in one.items())


def main():
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 10000
    rng = random.Random(int(sys.argv[3]) if len(sys.argv) > 3 else 7)
    made = [make(rng, rng.randrange(1, 6)) for _ in range(count)]
    run = subprocess.run([sys.argv[1]], input="\n".join(t for t, _ in made) + "\n", stdout=subprocess.PIPE,
                         text=True, check=True)
    lines = run.stdout.splitlines()
    refused = empty = wrong = 0
    print("1..1")
    for (text, compute), line in zip(made, lines):
        try:
            expected = compute().cells
        except Refused:
            expected = None
        refused += expected is None
        empty += expected == {}
        if not same(expected, parse(line)):
            wrong += 1
            if wrong <= 5:
                print(f"# {text}\n#   expected {expected}\n#   {line}")
    # A generator that makes nothing but mistakes would show nothing.
    good = len(lines) == count and not wrong and refused + empty < count * 2 // 3
    print(f"{'ok' if good else 'not ok'} 1 - {count} expressions: {wrong} differ, {refused} refused by both, "
          f"{empty} without a value")
    sys.exit(0 if good else 1)


main()
