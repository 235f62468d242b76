# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""Reads profile.pb.gz by the public description of the format (pprof's profile.proto), with the
standard library alone: a second opinion on what kymo recorded."""
import collections
import gzip

Frame = collections.namedtuple("Frame", "function module line")
# stack: frames innermost first, inlined ones expanded; values by type name; labels: name -> value.
Sample = collections.namedtuple("Sample", "stack values labels")


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7f) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def fields(data):
    """Yields (field number, value): integers, or bytes for what is length-prefixed."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = varint(data, at)
        elif kind == 1:
            value, at = int.from_bytes(data[at:at + 8], "little"), at + 8
        elif kind == 2:
            size, at = varint(data, at)
            if at + size > len(data):
                raise ValueError("length runs past the end")
            value, at = data[at:at + size], at + size
        elif kind == 5:
            value, at = int.from_bytes(data[at:at + 4], "little"), at + 4
        else:
            raise ValueError(f"wire type {kind}")
        yield key >> 3, value


def message(data):
    """{field number: [values]}"""
    result = collections.defaultdict(list)
    for number, value in fields(data):
        result[number].append(value)
    return result


def integers(values):
    """A repeated integer field, packed or not."""
    result = []
    for value in values:
        if isinstance(value, int):
            result.append(value)
            continue
        at = 0
        while at < len(value):
            number, at = varint(value, at)
            result.append(number)
    return result


def first(parsed, number, default=0):
    return parsed[number][0] if parsed.get(number) else default


class Profile:
    """A decoded profile: .types, .samples, .mappings."""

    def __init__(self, path):
        with gzip.open(path, "rb") as stream:
            top = message(stream.read())
        self.strings = [value.decode(errors="replace") for value in top[6]]
        if not self.strings or self.strings[0] != "":
            raise ValueError("string table does not begin with the empty string")
        self.types = [self.text(first(message(value), 1)) for value in top[1]]
        self.mappings = {first(parsed, 1): self.text(first(parsed, 5))
                         for parsed in map(message, top[3])}
        functions = {first(parsed, 1): self.text(first(parsed, 2))
                     for parsed in map(message, top[5])}
        self.locations = {}
        for parsed in map(message, top[4]):
            module = self.mappings.get(first(parsed, 2), "")
            lines = [(functions[first(line, 1)], first(line, 2))
                     for line in map(message, parsed[4])]
            self.locations[first(parsed, 1)] = [Frame(name, module, line) for name, line in lines] \
                or [Frame(hex(first(parsed, 3)), module, 0)]
        self.samples = [self.sample(message(value)) for value in top[2]]

    def text(self, index):
        return self.strings[index]

    def sample(self, parsed):
        stack = [frame for location in integers(parsed[1]) for frame in self.locations[location]]
        values = dict(zip(self.types, integers(parsed[2])))
        labels = {}
        for label in map(message, parsed[3]):
            value = first(label, 2)
            labels[self.text(first(label, 1))] = self.text(value) if value else first(label, 3)
        return Sample(stack, values, labels)

    def total(self, kind):
        return sum(sample.values.get(kind, 0) for sample in self.samples)

    def shares(self, pick, kind="cpu"):
        """{key: share of `kind`}; pick(sample) gives the keys that a sample counts for."""
        sums, total = collections.Counter(), 0
        for sample in self.samples:
            weight = sample.values.get(kind, 0)
            total += weight
            for key in pick(sample):
                sums[key] += weight
        return {key: weight / total for key, weight in sums.items()} if total else {}
