# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""Region records of spool files, read as docs/reference/spool-format.md says and without kymo's own reader.

  regions(directory) -> {(pid, thread): [Event]}   in the order in which the thread wrote them
"""
import collections
import fcntl
import glob
import os
import struct
import time

F_OFD_GETLK = 36  # fcntl(2); fcntl.F_OFD_GETLK is not in every Python
FLOCK = "hhqqi4x"  # struct flock
WRITER_SECONDS = 10

HEADER = 4096
CHUNK = 64
REGION, SPAN, BEGIN, END, END_OTHER, VALUE, MARK, COUNTER, PROGRESS, WHOLE = range(32, 42)

Event = collections.namedtuple("Event", "what category name ticks extra values")


class Cursor:
    def __init__(self, data, at, end):
        self.data, self.at, self.end = data, at, end

    def byte(self):
        self.at += 1
        return self.data[self.at - 1]

    def number(self):
        value = shift = 0
        while True:
            byte = self.byte()
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    def fixed(self):
        self.at += 8
        return struct.unpack_from("<Q", self.data, self.at - 8)[0]

    def text(self):
        size = self.number()
        self.at += size
        return self.data[self.at - size:self.at].decode(errors="replace")

    def records(self):
        while self.at < self.end:
            kind, size = self.byte(), self.number()
            yield kind, Cursor(self.data, self.at, self.at + size)
            self.at += size


def headers(data):
    """(place in the file, size, committed, sequence number) of each chunk, in the order of the file."""
    at = HEADER
    while at + CHUNK <= len(data):
        magic, size, committed, _, sequence = struct.unpack_from("<IIIIQ", data, at)
        if magic != 0x4b4e4843 or size < HEADER:
            at += HEADER
            continue
        yield at, size, committed, sequence
        at += size


def chunks(data):
    """Cursors over the records of each chunk, in the order of handing out."""
    found = {}
    for at, _, committed, sequence in headers(data):
        if committed:
            found.setdefault(sequence, Cursor(data, at + CHUNK, at + CHUNK + committed))
    return [found[sequence] for sequence in sorted(found)]


def value_of(cursor):
    kind, name = cursor.number(), cursor.text()
    if kind == 4:
        return name, cursor.text()
    bits = cursor.fixed()
    if kind == 0:
        return name, bits - (1 << 64) if bits >> 63 else bits
    return name, struct.unpack("<d", struct.pack("<Q", bits))[0] if kind == 3 else bits


def names_of(data):
    names = {}
    for chunk in chunks(data):
        for kind, record in chunk.records():
            if kind == REGION:
                number, how, category = record.number(), record.number(), record.text()
                names[number] = (category, hex(record.fixed()) if how else record.text())
    return names


class Thread:
    """One thread's events, and what is open."""

    def __init__(self):
        self.events, self.open = [], []

    def add(self, what, name, ticks, extra=None):
        self.events.append(Event(what, name[0], name[1], ticks, extra, {}))

    def end(self, number, inner, names, ticks):
        place = len(self.open) - 1 - self.open[::-1].index(number)
        for one in reversed(self.open[place + 1:]) if inner else ():
            self.add("end", names[one], ticks, "inner")
        del self.open[place:len(self.open) if inner else place + 1]
        self.add("end", names[number], ticks)


def one_record(kind, record, thread, names, ticks):
    if kind == VALUE:
        name, value = value_of(record)
        thread.events[-1].values[name] = value
        return ticks
    ticks += record.number()
    if kind == BEGIN:
        number = record.number()
        thread.open.append(number)
        thread.add("begin", names[number], ticks)
    elif kind == END:
        thread.end(thread.open[-1], False, names, ticks)
    elif kind == END_OTHER:
        number, inner = record.number(), record.number()
        thread.end(number, inner == 1, names, ticks)
    elif kind == MARK:
        thread.add("mark", names[record.number()], ticks)
    elif kind == COUNTER:
        name = names[record.number()]
        thread.add("counter", name, ticks, struct.unpack("<d", struct.pack("<Q", record.fixed()))[0])
    elif kind == PROGRESS:
        how = record.number()
        thread.add("progress", names[record.number()], ticks, how)
    elif kind == WHOLE:
        duration = record.number()
        thread.add("whole", names[record.number()], ticks, duration)
    return ticks


def wait_for_writer(stream):
    """Waits until nobody writes the file any more: kymo's helper, which outlives a process that was
    killed until it has written the rest, holds a lock of it (fcntl(2), F_OFD_GETLK)."""
    end = time.monotonic() + WRITER_SECONDS
    while time.monotonic() < end:
        lock = fcntl.fcntl(stream, F_OFD_GETLK, struct.pack(FLOCK, fcntl.F_RDLCK, os.SEEK_SET, 0, 0, 0))
        if struct.unpack(FLOCK, lock)[0] == fcntl.F_UNLCK:
            return
        time.sleep(0.001)
    raise TimeoutError(f"{stream.name} is still written")


def regions_of_file(path):
    with open(path, "rb") as stream:
        wait_for_writer(stream)
        data = stream.read()
    if len(data) < HEADER:  # of a process that was replaced at once
        return {}
    pid = struct.unpack_from("<I", data, 16)[0]
    names, threads = names_of(data), collections.defaultdict(Thread)
    for chunk in chunks(data):
        thread, ticks = None, 0
        for kind, record in chunk.records():
            if kind == SPAN:
                thread = threads[record.number()]
                record.number()
                ticks = record.fixed()
                open_now = []
                for _ in range(record.number()):
                    open_now.append(record.number())
                    record.number()
                thread.open = open_now
            elif thread is not None and BEGIN <= kind <= WHOLE:
                ticks = one_record(kind, record, thread, names, ticks)
    return {(pid, number): thread.events for number, thread in threads.items()}


def regions(directory):
    """Of all spool files of a session."""
    found = {}
    for path in sorted(glob.glob(os.path.join(directory, "spool", "*.spool"))):
        found.update(regions_of_file(path))
    return found


def tree(events, categories=None):
    """One line an event, indented by depth; for tests that compare whole runs."""
    lines, depth = [], 0
    for event in events:
        if categories and event.category not in categories:
            continue
        if event.what == "end":
            depth -= 1
            continue
        lines.append("  " * depth + f"{event.what} {event.name}")
        depth += event.what == "begin"
    return lines
