# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""Threads that do known things about the global lock. Each prints its name, seconds of real time and of CPU time.

usage: contend.py SECONDS
"""
import ctypes
import sys
import threading
import time
import zlib

SECONDS = float(sys.argv[1])
DATA = b"".join(str(i).encode() for i in range(200000))
LIBC = ctypes.PyDLL(None)  # keeps the lock
LINES = []


def spin(end):
    while time.monotonic() < end:
        for _ in range(10000):
            pass


def compress(end):
    while time.monotonic() < end:
        zlib.compress(DATA, 6)


def sleep(end):
    time.sleep(max(0, end - time.monotonic()))


def hold(end):
    while time.monotonic() < end:
        LIBC.usleep(100000)


def run(name, function):
    begin = time.monotonic()
    function(begin + SECONDS)
    LINES.append(f"{name} {time.monotonic() - begin} {time.thread_time()}")


def together(*functions):
    threads = [threading.Thread(target=run, args=(f"{function.__name__}-{i}", function))
               for i, function in enumerate(functions)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


together(spin, spin)
together(compress)
together(sleep)
together(hold)
print("\n".join(LINES))
