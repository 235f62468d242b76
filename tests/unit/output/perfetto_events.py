# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""Track events of a Perfetto trace: clocks of sequences, slices, instants, counters and arrows.

Events are sorted by time as the importer does: those of equal time keep the order of the file.
"""
import struct

from protobuf_walk import first, message

CATEGORIES, EVENT_NAMES, VALUE_NAMES, LOCATIONS, VALUE_STRINGS = 1, 2, 3, 4, 29
BOOTTIME, BEGIN, END, COUNTER = 6, 1, 2, 4
DEPTH_MAX = 512


def signed(value):
    return value - (1 << 64) if value >> 63 else value


class Events:
    def __init__(self, errors):
        self.errors, self.clocks, self.defaults, self.all = errors, {}, {}, []

    def packet(self, sequence, flags, packet):
        """The time of a packet; keeps what the following ones are relative to."""
        if flags & 1:
            self.clocks.pop(sequence, None)
            self.defaults.pop(sequence, None)
        if 59 in packet:
            defaults = message(packet[59][0])
            self.defaults[sequence] = (first(defaults, 58, BOOTTIME),
                                       first(message(first(defaults, 11, b"")), 11))
        if 6 in packet:
            clocks = [message(c) for c in message(packet[6][0])[1]]
            for clock in clocks:
                if first(clock, 3):
                    if len({first(c, 2) for c in clocks}) != 1:
                        self.errors.append("clock of a sequence that does not begin at its time")
                    self.clocks[sequence] = first(clock, 2)
        time = first(packet, 8)
        if time is not None and self.defaults.get(sequence, (BOOTTIME, 0))[0] != BOOTTIME:
            if sequence not in self.clocks:
                self.errors.append(f"sequence {sequence} has no clock")
                return time
            self.clocks[sequence] += time
            return self.clocks[sequence]
        return time

    def known(self, state, kind, iid):
        if iid not in state.get(kind, {}):
            self.errors.append(f"event refers to unknown {kind} {iid}")
            return {2: [b""]}
        return state[kind][iid]

    def values(self, state, event):
        found = {}
        for value in event.get(4, []):
            value = message(value)
            if 1 in value:
                name = self.known(state, VALUE_NAMES, value[1][0])[2][0].decode()
            else:
                name = value[10][0].decode()
            if 4 in value:
                found[name] = signed(value[4][0])
            elif 5 in value:
                found[name] = struct.unpack("<d", value[5][0])[0]
            elif 6 in value:
                found[name] = value[6][0].decode()
            elif 17 in value:
                found[name] = self.known(state, VALUE_STRINGS, value[17][0])[2][0].decode()
            else:
                found[name] = next(bool(v[0]) if k == 2 else v[0] for k, v in value.items()
                                   if k in (2, 3, 7))
        if 34 in event:
            place = self.known(state, LOCATIONS, event[34][0])
            found["source"] = (first(place, 2).decode(), first(place, 4))
        return found

    def event(self, sequence, state, time, event):
        track = first(event, 11, self.defaults.get(sequence, (0, None))[1])
        record = {"kind": first(event, 9), "time": time, "track": track}
        if time is None:
            self.errors.append("event without a time")
            return
        if record["kind"] == COUNTER:
            record["value"] = signed(event[30][0]) if 30 in event else \
                struct.unpack("<d", event[44][0])[0]
        elif record["kind"] != END:
            record["name"] = event[23][0] if 23 in event else \
                self.known(state, EVENT_NAMES, first(event, 10))[2][0]
            record["category"] = event[22][0] if 22 in event else \
                self.known(state, CATEGORIES, first(event, 3))[2][0]
            for key in "name", "category":
                record[key] = record[key].decode()
        elif {3, 10, 22, 23} & set(event):
            self.errors.append("end with a name")
        if record["kind"] != COUNTER:
            record["values"] = self.values(state, event)
            record["flows"] = [struct.unpack("<Q", f)[0] for f in event.get(47, [])]
            record["last_flows"] = [struct.unpack("<Q", f)[0] for f in event.get(48, [])]
        self.all.append(record)
        for value, uuid in zip(event.get(12, []), event.get(31, []), strict=True):
            self.all.append({"kind": COUNTER, "time": time, "track": uuid, "value": signed(value)})

    def end(self, open_slices, event):
        if not open_slices:
            self.errors.append(f"end of nothing at {event['time']}")
            return
        ended = open_slices.pop()
        ended["end"] = event["time"]
        ended["values"].update(event["values"])

    def finish(self):
        """Slices, instants and counters, each in order of time."""
        slices, instants, counters, tracks = [], [], [], {}
        self.all.sort(key=lambda event: event["time"])
        for event in self.all:
            open_slices = tracks.setdefault(event["track"], [])
            if event["kind"] == BEGIN:
                event["depth"] = len(open_slices)
                event["parent"] = open_slices[-1]["name"] if open_slices else None
                open_slices.append(event)
                slices.append(event)
                if len(open_slices) > DEPTH_MAX:
                    self.errors.append("slices too deep")
            elif event["kind"] == END:
                self.end(open_slices, event)
            else:
                (counters if event["kind"] == COUNTER else instants).append(event)
        for track, open_slices in tracks.items():
            for event in open_slices:
                self.errors.append(f"{event['name']} on track {track} does not end")
        return slices, instants, counters
