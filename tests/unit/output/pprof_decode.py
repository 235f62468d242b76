#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""Reads a pprof profile, checks that every reference resolves, and sums it up.

`pprof_decode.py FILE` prints the summary as JSON and exits with 1 when a rule is broken.
"""
import gzip
import json
import sys

from protobuf_walk import first, message, packed


class Profile:
    def __init__(self, data):
        self.errors = []
        found = message(gzip.decompress(data))
        self.strings = [text.decode() for text in found.get(6, [])]
        if not self.strings or self.strings[0] != "":
            self.errors.append("string 0 is not empty")
        self.functions = self.by_id(found.get(5, []), "function")
        self.mappings = self.by_id(found.get(3, []), "mapping")
        self.locations = self.by_id(found.get(4, []), "location")
        self.types = [self.value_type(t) for t in found[1]]
        self.default_type = self.text(first(found, 14, 0))
        self.period = first(found, 12)
        self.samples = [self.sample(message(s)) for s in found.get(2, [])]
        for location in self.locations.values():
            if 2 in location and location[2][0] not in self.mappings:
                self.errors.append("location with unknown mapping")

    def text(self, number):
        if number >= len(self.strings):
            self.errors.append(f"no string {number}")
            return "?"
        return self.strings[number]

    def by_id(self, entries, what):
        table = {}
        for entry in map(message, entries):
            if first(entry, 1, 0) == 0 or first(entry, 1) in table:
                self.errors.append(f"bad {what} id {first(entry, 1)}")
            table[first(entry, 1)] = entry
        return table

    def value_type(self, entry):
        entry = message(entry)
        return self.text(first(entry, 1)) + "/" + self.text(first(entry, 2))

    def stack(self, ids):
        """Root first, as (function, line)."""
        frames = []
        for number in ids:
            if number not in self.locations:
                self.errors.append(f"unknown location {number}")
                continue
            for line in map(message, self.locations[number].get(4, [])):
                function = self.functions.get(first(line, 1))
                if function is None:
                    self.errors.append("line with unknown function")
                    continue
                frames.append((self.text(first(function, 2)), first(line, 2, 0)))
        return frames[::-1]

    def sample(self, sample):
        values = packed(first(sample, 2, b""))
        if len(values) != len(self.types):
            self.errors.append("sample with a wrong number of values")
        labels = {}
        for label in map(message, sample.get(3, [])):
            key = self.text(first(label, 1))
            labels[key] = self.text(label[2][0]) if 2 in label else first(label, 3, 0)
        return {"values": values, "labels": labels,
                "stack": self.stack(packed(first(sample, 1, b"")))}

    def summary(self):
        sums = [sum(s["values"][i] for s in self.samples) for i in range(len(self.types))]
        return {"types": dict(zip(self.types, sums)), "samples": len(self.samples),
                "locations": len(self.locations), "functions": len(self.functions),
                "mappings": len(self.mappings), "period": self.period, "errors": self.errors}


if __name__ == "__main__":
    with open(sys.argv[1], "rb") as file:
        profile = Profile(file.read())
    json.dump(profile.summary(), sys.stdout, indent=1)
    print()
    sys.exit(1 if profile.errors else 0)
