# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""Reads profile.coz by the rules of Coz's viewer, and estimates as it does; shares nothing with
kymo's writer."""


def members(line):
    """A line's type and members: separated by tabs, split at the first '='."""
    kind, *rest = line.split("\t")
    return kind, dict(part.split("=", 1) for part in rest)


class Coz:
    KINDS = {"startup", "shutdown", "runtime", "samples", "experiment", "throughput-point",
             "latency-point"}

    def __init__(self, text):
        self.data, self.samples, self.unknown = {}, {}, []
        experiment = None
        for line in text.split("\n"):
            if not line:
                continue
            kind, values = members(line)
            if kind not in self.KINDS:
                self.unknown.append(line)
            elif kind == "experiment":
                experiment = values
            elif kind == "samples":
                self.samples[values["location"]] = int(values["count"])
            elif kind.endswith("-point"):
                self.add(experiment, kind, values)

    def add(self, experiment, kind, values):
        point = self.data.setdefault(experiment["selected"], {}).setdefault(values["name"], {})
        entry = point.setdefault(float(experiment["speedup"]),
                                 {"kind": kind, "duration": 0, "delta": 0, "arrivals": 0, "difference": 0})
        duration = int(experiment["duration"])
        if kind == "throughput-point":
            entry["delta"] += int(values["delta"])
        else:
            entry["arrivals"] += int(values["arrivals"])
            total = entry["duration"] + duration
            entry["difference"] = (entry["difference"] * entry["duration"] +
                                   int(values["difference"]) * duration) / total
        entry["duration"] += duration

    @staticmethod
    def measure(entry):
        if entry["kind"] == "throughput-point":
            return entry["duration"] / entry["delta"]
        return entry["difference"] / (entry["arrivals"] / entry["duration"])

    def speedups(self, selected, point):
        """{speedup: share of the baseline that is gained}; none without a baseline."""
        entries = self.data[selected][point]
        if 0 not in entries:
            return {}
        baseline = self.measure(entries[0])
        return {speedup: (baseline - self.measure(entry)) / baseline
                for speedup, entry in entries.items()}
