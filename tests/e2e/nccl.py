#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""NCCL's functions, of a library that checks what arrives: regions with the right values.

  nccl.py KYMO DIRECTORY-OF-PROGRAMS
"""
import os
import sys

import spool
from harness import Kymo, Scratch, Tap, expect

WHERE = {"communicator": 0xc0, "stream": 5}
WANTED = [
    ("ncclGetUniqueId", {}),
    ("ncclCommInitRank", {"ranks": 4, "rank": 3}),
    ("ncclCommInitRankConfig", {"ranks": 4, "rank": 2}),
    ("ncclCommSplit", {"communicator": 0xc0}),
    ("ncclAllReduce", {"count": 5000000000, "datatype": "float32", "bytes": 20000000000,
                       "operation": "max", **WHERE}),
    ("ncclReduce", {"count": 10, "datatype": "float16", "bytes": 20, "operation": 77, "root": 3,
                    **WHERE}),
    ("ncclBcast", {"count": 20, "datatype": "int64", "bytes": 160, "root": 1, **WHERE}),
    ("ncclAllGather", {"count": 30, "datatype": "int8", "bytes": 30, **WHERE}),
    ("ncclReduceScatter", {"count": 40, "datatype": "int32", "bytes": 160, "operation": "avg",
                           **WHERE}),
    *([("ncclGroupStart", {}),
       ("ncclSend", {"count": 50, "datatype": "float32", "bytes": 200, "peer": 2, **WHERE}),
       ("ncclRecv", {"count": 60, "datatype": "float32", "bytes": 240, "peer": 1, **WHERE}),
       ("ncclGroupEnd", {})] * 10),
    ("ncclCommDestroy", {"communicator": 0xc0}),
]


def calls(directory):
    return [(event.name, event.values) for events in spool.regions(directory).values()
            for event in events if event.category == "nccl" and event.what == "begin"]


def main():
    kymo, tap = Kymo(sys.argv[1]), Tap()
    program = os.path.join(os.path.abspath(sys.argv[2]), "nccl_calls")

    def every_call_with_its_values():
        directory = scratch.path("values")
        ended = kymo.sample([program], directory)
        expect(ended.status == 0 and ended.stdout == b"ok\n", f"{ended.stdout} {ended.stderr}")
        got = calls(directory)
        for have, want in zip(got, WANTED):
            expect(have == want, f"{have}, not {want}")
        expect(len(got) == len(WANTED), f"{len(got)} calls, not {len(WANTED)}")

    def none_on_request():
        directory = scratch.path("off")
        ended = kymo.sample([program], directory, "--nccl=off")
        expect(ended.status == 0, ended.stderr)
        expect(not calls(directory), "calls are recorded")

    with Scratch() as scratch:
        tap.point("every call with its values", every_call_with_its_values)
        tap.point("none on request", none_on_request)
    tap.finish()


main()
