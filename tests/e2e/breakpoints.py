# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""Whether this machine's hardware breakpoints fire, found out without kymo: in some virtual machines they can be
opened and count nothing.

  require_breakpoints()   skips a test that needs them
"""
import ctypes
import os
import struct

from harness import Skipped

PERF_EVENT_OPEN = 298  # on x86-64
PERF_TYPE_BREAKPOINT = 5
HW_BREAKPOINT_W = 2
ATTR_SIZE = 128
EXCLUDE_KERNEL = 1 << 5


def _open_watchpoint(address):
    attr = struct.pack("=IIQQQQQIIQQ", PERF_TYPE_BREAKPOINT, ATTR_SIZE, 0, 0, 0, 0, EXCLUDE_KERNEL, 0,
                       HW_BREAKPOINT_W, address, 8).ljust(ATTR_SIZE, b"\0")
    buffer = ctypes.create_string_buffer(attr, ATTR_SIZE)
    return ctypes.CDLL(None, use_errno=True).syscall(PERF_EVENT_OPEN, buffer, 0, -1, -1, 0)


def breakpoints_fire():
    """None: they cannot be opened."""
    watched = ctypes.c_long(0)
    descriptor = _open_watchpoint(ctypes.addressof(watched))
    if descriptor < 0:
        return None
    for value in range(10):
        watched.value = value
    count = struct.unpack("=Q", os.read(descriptor, 8))[0]
    os.close(descriptor)
    return count >= 10


def require_breakpoints():
    if breakpoints_fire() is False:
        raise Skipped("hardware breakpoints never fire on this machine")
