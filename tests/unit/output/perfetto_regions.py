#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""Reads back the regions in the trace of the fixture session (regions_fixture.c):
perfetto_regions.py WRITE_FIXTURE. TAP."""
import subprocess
import sys

from perfetto_decode import Trace

MS = 1_000_000
START = 5_000_000_000
WORK, MAIN, POOL, OTHER = 1000, "main", "pool; 1", "other"


def written(*arguments):
    return subprocess.run([sys.argv[1], "perfetto", *arguments], check=True,
                          stdout=subprocess.PIPE).stdout


def equal(found, expected, what=""):
    if found != expected:
        raise AssertionError(f"{what}: {found!r} instead of {expected!r}")


def rows(trace, events):
    return [(trace.track_name(e["track"]), e["name"], (e["time"] - START) / MS,
             (e["end"] - START) / MS) for e in events]


def decoded(*arguments):
    trace = Trace(written("regions", *arguments))
    equal(trace.errors, [], "rules")
    return trace


def slices_on_thread_tracks():
    trace = decoded()
    equal([row for row in rows(trace, trace.slices) if row[0] == MAIN],
          [(MAIN, "main_loop(int)", 5, 190), (MAIN, "compute", 11, 15), (MAIN, "fork", 18, 22),
           (MAIN, "pthread_mutex_lock", 27, 30), (MAIN, "pthread_mutex_lock", 30, 31)])
    equal(rows(trace, [s for s in trace.slices if s["name"] == "child work"]),
          [(OTHER, "child work", 25, 30)])
    categories = {s["name"]: s["category"] for s in trace.slices}
    equal(categories, {"main_loop(int)": "host", "compute": "user", "request": "user",
                       "fork": "process", "pthread_mutex_lock": "pthread",
                       "\ufffd;<step>": 'my "own"', "child work": "user"})


def overlapping_regions_apart():
    trace = decoded()
    request = [row for row in rows(trace, trace.slices) if row[1] == "request"]
    equal(request, [("request (overlapping, main 1000)", "request", 10, 13),
                    ("request (overlapping, main 1000)", "request", 16, 17),
                    ("request (overlapping, pool; 1 1001)", "request", 40, 41),
                    ("request (overlapping, pool; 1 1001)", "request", 40, 41)])
    equal([s["depth"] for s in trace.slices if s["name"] == "request"], [0, 0, 0, 1])


def values():
    trace = decoded()
    compute = next(s for s in trace.slices if s["name"] == "compute")
    equal(compute["values"], {"signed": -3, "unsigned": 1 << 63, "address": 0x5000, "real": 0.5,
                              "text": "two\nlines \ufffd"}, "those of the end last")
    loop = next(s for s in trace.slices if s["name"].startswith("main_loop"))
    equal(loop["values"], {"source": ("/src/work.c", 5), "began before the data": True,
                           "not ended": True})
    lock = [s["values"] for s in trace.slices if s["name"] == "pthread_mutex_lock"]
    equal(lock, [{"address": 0x5000}, {}, {}])


def marks_and_progress():
    trace = decoded()
    points = [(trace.track_name(i["track"]), i["name"], (i["time"] - START) // MS)
              for i in trace.instants if i["category"] == "user"]
    equal(points, [(MAIN, "checkpoint", 12), (MAIN, "iteration", 33), (MAIN, "iteration", 34),
                   (MAIN, "iteration", 35), (MAIN, "iteration", 36), (POOL, "iteration", 46)])
    counts = {}
    for counter in trace.counters:
        name = trace.track_name(counter["track"])
        if "progress" in name:
            counts.setdefault(name, []).append(((counter["time"] - START) // MS, counter["value"]))
    equal(counts, {"iteration (progress, main 1000)": [(33, 1), (34, 2)],
                   "iteration begun (progress, main 1000)": [(35, 1)],
                   "iteration ended (progress, main 1000)": [(36, 1)],
                   "iteration (progress, pool; 1 1001)": [(46, 1)]})


def counters_of_the_process():
    trace = decoded()
    queue = [c for c in trace.counters if trace.track_name(c["track"]) == "Threads"]
    equal([((c["time"] - START) // MS, c["value"]) for c in queue],
          [(31, 5), (32, -0.25), (45, 7)])
    track = trace.tracks[queue[0]["track"]]
    parent = trace.tracks[track[5][0]]
    equal((3 in parent, track[15]), (True, [2]), "of the process, merged with no other")


def fork_to_child():
    trace = decoded()
    fork = next(s for s in trace.slices if s["name"] == "fork")
    started = [i for i in trace.instants if i["name"] == "process started"]
    equal([trace.track_name(i["track"]) for i in started], [OTHER])
    equal(fork["flows"], started[0]["last_flows"], "one arrow")
    equal(len(fork["flows"]), 1)
    equal(fork["time"] <= started[0]["time"], True, "forward in time")
    equal(started[0]["values"], {"parent": WORK})
    equal(sum(len(e["flows"]) for e in trace.slices + trace.instants), 1, "no other arrows")


def vfork_to_child():
    trace = decoded("unknown_pid")
    mark = next(i for i in trace.instants if i["name"] == "vfork")
    started = next(i for i in trace.instants if i["name"] == "process started")
    equal(mark["flows"], started["last_flows"], "what the kernel's start time allows")
    equal(sum(len(e["flows"]) for e in trace.slices + trace.instants), 1, "no other arrows")


def deep_recursion():
    trace = decoded()
    steps = [s for s in trace.slices if s["category"] == 'my "own"']
    equal((len(steps), max(s["depth"] for s in steps)), (500, 499), "drawn")
    equal([s["values"] for s in steps if s["values"]], [{"deeper regions not drawn": 100}])
    equal(steps[499]["end"] - steps[499]["time"], 201_000, "durations are right")
    equal(trace.attributes["kymo.regions_too_deep"], 100)


def ranks_and_hosts():
    trace = decoded("job")
    names = sorted(trace.track_name(uuid) for uuid, track in trace.tracks.items() if 3 in track)
    equal(names, ["</script> [rank 1 on other]", "sh → work [rank 0 on box]"])


def size_of_events():
    plain, packed = written("regions=100000"), written("regions=100000", "compress")
    trace = Trace(plain)
    equal(trace.errors, [], "rules")
    equal(len(trace.slices), 50000)
    each = (len(plain) - len(written())) / 100000
    if each > 18:
        raise AssertionError(f"{each:.1f} bytes an event")
    print(f"# {each:.1f} bytes an event, {(len(packed) - len(written('compress'))) / 100000:.1f} "
          f"compressed")


def unchanged_without_regions():
    trace = Trace(written())
    equal((trace.errors, trace.slices), ([], []))
    equal([k for k in trace.attributes if "region" in k], [])


def main():
    tests = [slices_on_thread_tracks, overlapping_regions_apart, values, marks_and_progress,
             counters_of_the_process, fork_to_child, vfork_to_child, deep_recursion, ranks_and_hosts,
             size_of_events, unchanged_without_regions]
    print(f"1..{len(tests)}")
    failed = 0
    for number, test in enumerate(tests, 1):
        try:
            test()
            print(f"ok {number} - {test.__name__}")
        except Exception as error:  # a decoder that fails is a failed test, not a crash
            failed += 1
            print(f"not ok {number} - {test.__name__}\n# {type(error).__name__}: {error}")
    sys.exit(1 if failed else 0)


main()
