#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""Reads back what the writers made of the fixture session (session_fixture.c), with decoders that
share nothing with them: formats.py WRITE_FIXTURE. TAP."""
import json
import shutil
import subprocess
import sys

from perfetto_decode import Trace
from pprof_decode import Profile

MS = 1_000_000
START = 5_000_000_000


def written(*arguments):
    return subprocess.run([sys.argv[1], *arguments], check=True, stdout=subprocess.PIPE).stdout


def equal(found, expected, what=""):
    if found != expected:
        raise AssertionError(f"{what}: {found!r} instead of {expected!r}")


def perfetto_samples():
    trace = Trace(written("perfetto"))
    equal(trace.errors, [], "rules")
    equal(len(trace.perf), 9, "CPU samples")
    hot = [s for s in trace.perf if s["stack"][-1] == "hot"]
    equal([(s["time"] - START) // MS for s in hot], [20, 30, 40], "times")
    equal(hot[0]["stack"], ["main", "compute(int, char const*)", "hot"], "outermost first")
    equal(hot[0]["lines"], [10, 40, 3], "lines")
    equal((hot[0]["pid"], hot[0]["tid"]), (1000, 1000), "thread")
    equal([(s["counter"], s["weight"]) for s in trace.stack],
          [("blocked", 40 * MS), ("blocked", 20 * MS), ("runnable", 10 * MS),
           (None, 1000), (None, 1000)], "weights")
    equal(trace.perf[0]["stack"], ["worker;\ufffd<img src=x onerror=alert(1)>"], "hostile name")


def perfetto_compressed():
    plain, packed = Trace(written("perfetto")), Trace(written("perfetto", "compress"))
    equal(packed.errors, [], "rules")
    equal((packed.perf, packed.stack, packed.counters), (plain.perf, plain.stack, plain.counters))


def perfetto_interns_once():
    trace = Trace(written("perfetto", "samples=14000"))
    equal(trace.errors, [], "rules")
    equal(len(trace.perf) + len(trace.stack), 14000)


def perfetto_tracks():
    trace = Trace(written("perfetto"))
    names = sorted(trace.track_name(uuid) for uuid, track in trace.tracks.items() if 3 in track)
    equal(names, ["</script>", "sh → work"], "processes")
    ranks = {trace.track_name(uuid): track.get(12, [0])[0]
             for uuid, track in trace.tracks.items() if 4 in track}
    equal(ranks["main"], 0, "main thread first")
    equal(ranks["pool; 1"] > 0, True)
    equal([(p["pid"], p["parent"], p["arguments"]) for p in trace.process_tree],
          [(1000, 999, ["./work", "-j2", "a file"]), (2000, 1000, ["</script>"])], "process tree")


def perfetto_counters():
    trace = Trace(written("perfetto"))
    values = {}
    for counter in trace.counters:
        values.setdefault(trace.track_name(counter["track"]), []).append(counter["value"])
    equal(values, {"Resident memory": [1 << 20, 2 << 20], "CPU load, user": [50.0],
                   "Host CPU load": [50.0], "CPU time": [20 * MS, 31 * MS],
                   "Minor page faults": [3, 4], "Major page faults": [1, 2],
                   "Waiting for a CPU": [100.0, 0.0]},
          "the second reading is thinned out, not what it told; the last reading counts")
    equal(trace.frequency, [(0, 2_000_000_000)], "frequency")
    equal([(i["name"], (i["time"] - START) // MS) for i in trace.instants],
          [("kymo: sampling source", 0), ("kymo: rate lowered", 50)], "notices")


def perfetto_losses():
    trace = Trace(written("perfetto"))
    equal(sum(trace.losses), 7, "dropped samples")
    equal((trace.losses[0], trace.losses[3]), (5, 2), "by reason")
    equal({k: v for k, v in trace.attributes.items() if "loss" in k or "truncated" in k},
          {"kymo.loss.no_chunk": 5, "kymo.loss.reentry": 2, "kymo.loss.throttled": 1,
           "kymo.truncated.no_table": 1})
    equal(trace.attributes["kymo.command_line"], "sh -c ./work")
    equal(trace.clocks[0], {6: START, 1: START + 1_700_000_000_000_000_000}, "clocks")


def pprof_samples():
    profile = Profile(written("pprof"))
    equal(profile.errors, [], "rules")
    equal(profile.types, ["samples/count", "cpu/nanoseconds", "wall/nanoseconds", "events/count"])
    sums = profile.summary()["types"]
    equal(list(sums.values()), [14, 90 * MS, 160 * MS, 2000], "sums")
    hot = [s for s in profile.samples if s["stack"][-1] == ("hot", 3)]
    equal(len(hot), 1)
    equal(hot[0]["stack"], [("main", 10), ("compute(int, char const*)", 40), ("hot", 3)])
    equal(hot[0]["labels"], {"thread": "main", "tid": 1000, "process": "work", "pid": 1000})
    equal(profile.default_type, "cpu")
    equal(profile.period, 10 * MS)
    inlined = [l for l in profile.locations.values() if len(l.get(4, [])) == 2]
    equal(len(inlined), 1, "an inlined function and its caller are one location")
    build_ids = [profile.text(m[6][0]) for m in profile.mappings.values() if 6 in m]
    equal("deadbeef" + "00" * 16 in build_ids, True, "build-id")


def regions_folded():
    expected = ["main_loop(int) 60000000", "main_loop(int);compute 30000000",
                "main_loop(int);compute;\xef\xbf\xbd:<step> 10000000",
                "main_loop(int);fork;pthread_mutex_lock 5000000", "pthread_mutex_lock 7000000"]
    lines = written("regions-folded", "regions").decode("latin-1").splitlines()
    equal(lines, ["work;" + line for line in expected])
    lines = written("regions-folded", "regions", "per_thread").decode("latin-1").splitlines()
    equal((lines[0], lines[4]), ("work;main-1000;" + expected[0], "work;pool: 1-1001;" + expected[4]))
    equal(written("regions-folded"), b"")


def page_data():
    page = written("html").decode()
    data = page.split('<script type="application/json" id="data">')[1].split("</script>")[0]
    equal("<" in data, False, "nothing in the data can end its element")
    found = json.loads(data)
    equal([m["name"] for m in found["measures"]], ["CPU time", "Wall time", "Blocked", "Waiting for a CPU", "Events", "Samples"])
    equal([sum(column) for column in found["rows"]["values"]],
          [90 * MS, 9, 60 * MS, 2, 2000, 2, 10 * MS, 1], "columns")
    equal([m["columns"] for m in found["measures"]], [[0], [0, 2, 6], [2], [6], [4], [1, 3, 5, 7]], "columns of measures")
    equal(found["rows"]["per_thread"], [0, 4, 2, 1])
    names = [found["strings"][i] for i in found["functions"]["name"]]
    equal("</script><script>alert(1)</script>" in names, True)
    equal(page.count("<script"), 2, "script elements")
    equal("http://" in page or "https://" in page, False, "nothing to load")


def nothing_recorded():
    trace = Trace(written("perfetto", "empty"))
    equal((trace.errors, trace.perf, trace.attributes["kymo.samples"]), ([], [], 0))
    profile = Profile(written("pprof", "empty"))
    equal((profile.errors, profile.samples, profile.types),
          ([], [], ["samples/count", "cpu/nanoseconds"]))
    equal(written("folded", "empty"), b"")


def protoc_agrees():
    if not shutil.which("protoc"):
        return "protoc is not installed"
    for arguments in (["perfetto"], ["perfetto", "compress"], ["perfetto", "regions"]):
        subprocess.run(["protoc", "--decode_raw"], input=written(*arguments), check=True,
                       stdout=subprocess.DEVNULL)
    return None


def main():
    tests = [perfetto_samples, perfetto_compressed, perfetto_interns_once, perfetto_tracks,
             perfetto_counters, perfetto_losses, pprof_samples, regions_folded, page_data, nothing_recorded,
             protoc_agrees]
    print(f"1..{len(tests)}")
    failed = 0
    for number, test in enumerate(tests, 1):
        try:
            skip = test()
            print(f"ok {number} - {test.__name__}" + (f" # SKIP {skip}" if skip else ""))
        except Exception as error:  # a decoder that fails is a failed test, not a crash
            failed += 1
            print(f"not ok {number} - {test.__name__}\n# {type(error).__name__}: {error}")
    sys.exit(1 if failed else 0)


main()
