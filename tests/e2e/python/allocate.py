# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""Allocates known blocks at known lines, in two threads. usage: allocate.py"""
import threading

KEPT = []


def keep():
    KEPT.append(bytearray(70000))  # line: keep


def drop():
    return len(bytearray(50000))  # line: drop


def two():
    a = bytearray(3000)  # line: first
    b = bytearray(3000)  # line: second
    return len(a) + len(b)


def deep(depth):
    return deep(depth - 1) if depth else drop()


def work():
    for _ in range(100):
        keep()
        two()
    for _ in range(50):
        drop()
        deep(3)


THREADS = [threading.Thread(target=work) for _ in range(2)]
for thread in THREADS:
    thread.start()
for thread in THREADS:
    thread.join()
print("done")
