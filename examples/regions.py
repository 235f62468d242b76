# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""The user API from Python, with nothing but ctypes: kymo sample -- python3 regions.py"""
import ctypes
import ctypes.util
import sys

name = sys.argv[1] if len(sys.argv) > 1 else "libkymo-user.so.0"
kymo = ctypes.CDLL(name)
kymo.kymo_counter.argtypes = [ctypes.c_char_p, ctypes.c_double]
kymo.kymo_error_string.restype = ctypes.c_char_p


class Region:
    """with Region("load"): ..."""

    def __init__(self, region):
        self.name = region.encode()

    def __enter__(self):
        self.status = kymo.kymo_push_region(self.name)
        return self

    def __exit__(self, *_):
        kymo.kymo_pop_region(self.name)


with Region("everything") as everything:
    total = 0
    for step in range(5):
        with Region("step"):
            total += sum(range(step * 1000))
        kymo.kymo_counter(b"total", total)
        kymo.kymo_progress(b"steps")
print(total)
print(kymo.kymo_error_string(everything.status).decode(), file=sys.stderr)
