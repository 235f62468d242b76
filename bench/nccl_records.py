#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""A second reader of the NCCL plugin's files (include/kymo/nccl_records.h), for measurements.

usage: nccl_records.py FILE...       prints communicators, counts, losses, and what is in flight
"""
import collections
import struct
import sys

CHUNKS_OFFSET, CHUNK_SIZE, CHUNK_HEADER = 12288, 16384, 64
SIZES = {1: 512, 2: 256, 3: 64, 4: 256}
LOSSES = ["operations", "events", "communicators", "ring_operations", "ring_events", "no_parent",
          "late", "foreign_context", "foreign_parent", "foreign_handle", "stale_handle",
          "null_handle", "double_stop", "unknown_type", "unknown_state", "no_arguments", "names",
          "restarted", "finalized", "disk_full", "limit", "call_trace", "ring_communicators"]
KINDS = ["group", "coll", "p2p", "proxy-op", "proxy-step", "proxy-ctrl", "kernel-channel",
         "net-plugin", "group-api", "coll-api", "p2p-api", "kernel-launch", "ce-coll", "ce-sync",
         "ce-batch", "kernel-phase"]
STATES = ["?", "started", "enqueued", "running", "done", "incomplete"]
FLAGS = ["enqueue-only", "batched", "aliased", "graph", "replayed", "count-is-bytes",
         "type-unknown", "no-sequence", "network", "late", "lost-child", "sealed"]

Header = collections.namedtuple("Header", "pid tick_clock tick_hz state api nccl_version mask ring "
                                "file_size chunks_taken communicators recorded losses heartbeat "
                                "clocks host problem")
Communicator = collections.namedtuple("Communicator", "id hash creation start finalize rank ranks "
                                      "nodes api mask flags operations finished name stall")
Operation = collections.namedtuple(
    "Operation", "id parent group start stop launch last sequence ordinal count bytes gpu_start "
    "gpu_stop started stopped network_start network_stop communicator thread root peer flags "
    "proxies networks kind state function data_type algorithm protocol channels late")
Event = collections.namedtuple("Event", "id parent start stop thread communicator kind flags a b c "
                               "words")


def text(data):
    return data.split(b"\0")[0].decode("utf-8", "replace")


class File:
    def __init__(self, path):
        with open(path, "rb") as stream:
            self.data = stream.read()
        data = self.data
        if data[:8] != b"KYMONCL\0":
            raise ValueError(f"{path}: not a file of the NCCL plugin")
        def word(at, code="I"):
            return struct.unpack_from("<" + code, data, at)[0]

        clocks = sorted(struct.unpack_from("<4Q", data, 936 + 32 * i)
                        for i in range(min(word(924), 32)))
        self.header = Header(
            pid=word(16), tick_clock=word(36), tick_hz=word(40, "Q"), state=word(48), api=word(52),
            nccl_version=word(56), mask=word(64), ring=word(72), file_size=word(88, "Q"),
            chunks_taken=word(96, "Q"), communicators=word(104, "Q"),
            recorded=struct.unpack_from("<16Q", data, 368),
            losses=struct.unpack_from("<48Q", data, 496), heartbeat=word(880, "Q"), clocks=clocks,
            host=text(data[1976:2040]), problem=text(data[2400:2656]))
        self.communicators, self.operations, self.events = {}, [], []
        self._chunks()

    def name(self, index):
        return text(self.data[4096 + 32 * index:4096 + 32 * index + 32])

    def _chunks(self):
        for at in range(CHUNKS_OFFSET, len(self.data) - CHUNK_SIZE + 1, CHUNK_SIZE):
            magic, kind, size = struct.unpack_from("<III", self.data, at)
            if magic != 0x4c43434e or kind not in SIZES or size != SIZES[kind]:
                continue
            for record in range(at + CHUNK_HEADER, at + CHUNK_SIZE - size + 1, size):
                if self.data[record:record + 8] != bytes(8):
                    self._record(kind, record)
        self.operations.sort(key=lambda op: (op.communicator, op.ordinal))

    def _record(self, kind, at):
        data = self.data
        if kind == 1:
            head = struct.unpack_from("<5QiiiIII", data, at)
            operations, finished = struct.unpack_from("<QQ", data, at + 64)
            stall, = struct.unpack_from("<Q", data, at + 128)
            communicator = Communicator(*head, operations, finished,
                                        text(data[at + 256:at + 512]), stall)
            self.communicators[communicator.creation] = communicator
        elif kind == 2:
            words = struct.unpack_from("<21Q", data, at)
            rest = struct.unpack_from("<IIiiII4H10B", data, at + 168)
            self.operations.append(Operation(
                *words[0:11], *words[15:19], *words[19:21], rest[0], rest[1], rest[2], rest[3],
                rest[4], rest[6:8], rest[8:10], rest[10], rest[11], self.name(rest[12]),
                self.name(rest[13]), self.name(rest[14]), self.name(rest[15]), rest[16], rest[18]))
        elif kind == 3:
            head = struct.unpack_from("<4QIIBBBBi2Q", data, at)
            self.events.append(Event(*head[:11], head[11:]))

    def ns(self, ticks):
        """CLOCK_REALTIME of ticks, by the clocks around."""
        clocks = self.header.clocks
        for low, high in zip(clocks, clocks[1:]):
            if ticks < high[0]:
                break
        else:
            low, high = clocks[0], clocks[-1]
        if high[0] == low[0]:
            return low[3] + (ticks - low[0]) * 1e9 / self.header.tick_hz
        return low[3] + (ticks - low[0]) * (high[3] - low[3]) / (high[0] - low[0])


def is_quiet(operation):
    """All of it that started has stopped: over, though nobody came to say so."""
    if not operation.stop or operation.networks[0] != operation.networks[1]:
        return False
    if operation.started:
        return operation.started == operation.stopped
    return operation.networks[0] > 0


def flags_of(operation):
    return [name for bit, name in enumerate(FLAGS) if operation.flags >> bit & 1]


def main():
    for path in sys.argv[1:]:
        file = File(path)
        header = file.header
        print(f"{path}: pid {header.pid} host {header.host} API {header.api} NCCL "
              f"{header.nccl_version} mask {header.mask:#x} state {header.state} "
              f"{header.problem}")
        print("  events:", dict(collections.Counter(KINDS[event.kind] for event in file.events)))
        print("  states:", dict(collections.Counter(STATES[op.state] for op in file.operations)))
        print("  flags:", dict(collections.Counter(flag for op in file.operations
                                                   for flag in flags_of(op))))
        print("  losses:", {LOSSES[i]: n for i, n in enumerate(header.losses) if n})
        for communicator in file.communicators.values():
            print(f"  communicator {communicator.creation} '{communicator.name}' "
                  f"{communicator.hash:016x} rank {communicator.rank} of {communicator.ranks}: "
                  f"{communicator.operations} operations, {communicator.finished} finished")
            open_ones = [op for op in file.operations if op.communicator == communicator.creation
                         and not op.flags >> 11 & 1 and not is_quiet(op)]
            for op in open_ones[:2]:
                print(f"    in flight: {op.function} number {op.sequence} ordinal {op.ordinal} "
                      f"{STATES[op.state]} channels {op.started:#x} stopped {op.stopped:#x} "
                      f"peer {op.peer}")
                for event in file.events:
                    if event.parent == op.id and event.kind == 3 and not event.flags & 1:
                        print(f"      proxy: channel {event.a} "
                              f"{'to' if event.flags & 64 else 'from'} rank {event.c}")


if __name__ == "__main__":
    main()
