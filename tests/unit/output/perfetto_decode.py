#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""Reads a Perfetto trace as its importer does, checks its rules and sums it up.

Rules: every interning id is defined on its sequence before use, a sequence begins with a cleared
state, track uuids are described, compressed bundles hold whole packets, slices begin before they
end and are nested in their track. `perfetto_decode.py FILE` prints the summary as JSON and exits
with 1 when a rule is broken.
"""
import json
import sys
import zlib

from perfetto_events import Events
from protobuf_walk import first, message

NAMES, FRAMES, STACKS, BUILD_IDS, PATHS, SOURCES, MAPPINGS, COUNTERS = 5, 6, 7, 16, 17, 18, 19, 50


class Trace:
    def __init__(self, data):
        self.errors, self.sequences, self.tracks = [], {}, {}
        self.perf, self.stack, self.counters, self.instants = [], [], [], []
        self.attributes, self.losses, self.process_tree, self.clocks = {}, [], [], []
        self.frequency = []
        self.events = Events(self.errors)
        for packet in message(data).get(1, []):
            self.packet(message(packet))
        self.slices, instants, counters = self.events.finish()
        self.instants += instants
        self.counters += counters
        for uuid in {e["track"] for e in self.counters + self.instants + self.slices}:
            if uuid not in self.tracks:
                self.errors.append(f"track {uuid} is not described")

    def packet(self, packet):
        for bundle in packet.get(50, []):
            for inner in message(zlib.decompress(bundle)).get(1, []):
                self.packet(message(inner))
            return
        number = first(packet, 10, 0)
        if number == 0:
            self.errors.append("packet without a sequence")
        flags = first(packet, 13, 0)
        if flags & 1:
            self.sequences[number] = {}
        if flags & 2 and number not in self.sequences:
            self.errors.append(f"sequence {number} used before it was cleared")
        state = self.sequences.get(number, {})
        if 12 in packet:
            self.intern(state, message(packet[12][0]))
        time = self.events.packet(number, flags, packet)
        if 66 in packet:
            self.perf.append(self.sample(state, time, message(packet[66][0]), 4, None))
        if 135 in packet:
            sample = message(packet[135][0])
            sample.update({k: v for k, v in message(sample[1][0]).items() if k in (2, 3)})
            self.stack.append(self.sample(state, time, sample, 6, state))
        if 11 in packet:
            self.events.event(number, state, time, message(packet[11][0]))
        if 60 in packet:
            descriptor = message(packet[60][0])
            self.tracks[first(descriptor, 1, 0)] = descriptor
        if 126 in packet:
            for attribute in message(packet[126][0]).get(1, []):
                attribute = message(attribute)
                value = attribute[2][0] if 2 in attribute else attribute[3][0].decode()
                self.attributes[attribute[1][0].decode()] = value
        if 35 in packet:
            self.losses = [first(message(b), 19, 0) for b in message(packet[35][0]).get(1, [])]
        if 2 in packet:
            for process in message(packet[2][0]).get(1, []):
                process = message(process)
                self.process_tree.append({"pid": process[1][0], "parent": first(process, 2),
                                          "arguments": [a.decode() for a in process.get(3, [])]})
        if 6 in packet:
            clocks = [message(c) for c in message(packet[6][0])[1]]
            self.clocks.append({first(c, 1): first(c, 2) for c in clocks})
        if 118 in packet:
            self.frequency.append(tuple(first(message(packet[118][0]), f, 0) for f in (1, 2)))

    def intern(self, state, data):
        """Ids may refer to others of the same message in any order, so references come second."""
        for kind, entries in data.items():
            for entry in entries:
                entry = message(entry)
                known = state.setdefault(kind, {})
                if first(entry, 1, 0) == 0:
                    self.errors.append(f"interned {kind} without an id")
                if first(entry, 1) in known:
                    self.errors.append(f"interned {kind} {first(entry, 1)} sent twice")
                known[first(entry, 1)] = entry
        for kind, field, target in ((FRAMES, 2, NAMES), (FRAMES, 3, MAPPINGS), (FRAMES, 5, SOURCES),
                                    (STACKS, 2, FRAMES), (MAPPINGS, 2, BUILD_IDS),
                                    (MAPPINGS, 7, PATHS)):
            for entry in data.get(kind, []):
                for reference in message(entry).get(field, []):
                    if reference not in state.get(target, {}):
                        self.errors.append(f"{kind}.{field} refers to unknown {reference}")

    def sample(self, state, time, sample, stack_field, counters):
        stack = first(sample, stack_field)
        if stack not in state.get(STACKS, {}):
            self.errors.append(f"sample with unknown stack {stack}")
            return {}
        frames = [state[FRAMES][f] for f in state[STACKS][stack][2]]
        found = {"time": time, "pid": first(sample, 2), "tid": first(sample, 3),
                 "stack": [state[NAMES][f[2][0]][2][0].decode() for f in frames],
                 "lines": [first(f, 6, 0) for f in frames]}
        if counters is not None:
            counter = counters.get(COUNTERS, {}).get(first(sample, 10))
            found["counter"] = counter[2][0].decode() if counter else None
            found["weight"] = first(sample, 11, 0)
        return found

    def track_name(self, uuid):
        track = self.tracks[uuid]
        if 4 in track:
            return message(track[4][0])[5][0].decode()
        if 3 in track:
            return message(track[3][0])[6][0].decode()
        return first(track, 2, b"").decode()

    def summary(self):
        return {"perf_samples": len(self.perf), "stack_samples": len(self.stack),
                "counters": len(self.counters), "instants": len(self.instants),
                "slices": len(self.slices),
                "tracks": len(self.tracks), "sequences": len(self.sequences),
                "attributes": self.attributes, "losses": self.losses, "errors": self.errors}


if __name__ == "__main__":
    with open(sys.argv[1], "rb") as file:
        trace = Trace(file.read())
    json.dump(trace.summary(), sys.stdout, indent=1)
    print()
    sys.exit(1 if trace.errors else 0)
