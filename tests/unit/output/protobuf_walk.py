# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""A reader of protocol buffers that shares nothing with the writer under test."""

VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5


def varint(data, at):
    value, shift = 0, 0
    while True:
        if shift > 63:
            raise ValueError("varint of more than ten bytes")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def fields(data):
    """Yields (field, value); value is an int or bytes."""
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        field, wire = tag >> 3, tag & 7
        if field == 0:
            raise ValueError("field number 0")
        if wire == VARINT:
            value, at = varint(data, at)
        elif wire in (FIXED64, FIXED32):
            size = 8 if wire == FIXED64 else 4
            value, at = data[at:at + size], at + size
        elif wire == LENGTH:
            size, at = varint(data, at)
            value, at = data[at:at + size], at + size
            if len(value) != size:
                raise ValueError("field runs past its message")
        else:
            raise ValueError(f"wire type {wire}")
        yield field, value


def message(data):
    """Field number to list of values."""
    found = {}
    for field, value in fields(data):
        found.setdefault(field, []).append(value)
    return found


def first(found, field, otherwise=None):
    return found.get(field, [otherwise])[0]


def packed(data):
    values, at = [], 0
    while at < len(data):
        value, at = varint(data, at)
        values.append(value)
    return values
