# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""The workloads of bench/causal: programs of tests/programs/causal, their arguments and functions.

A model says what a step takes when functions are scaled, in any unit, from how the program is made
alone. It is a check of what is measured, or stands in for it on a machine too busy to measure on.
"""
import collections

# visits: a multiple of which makes a whole cycle; latency: of the point instead of its period;
# options: of kymo causal.
Workload = collections.namedtuple("Workload", "name program arguments functions point model latency "
                                  "options visits")

LINES = ("--mode=line",)


def make(name, program, arguments, functions, point, model=None, latency=False, options=(), visits=1):
    return Workload(name, program, arguments.split(), functions.split(), point, model, latency, options,
                    visits)


def pool_batch(scale):
    """The list of tasks, each to the worker that is free first."""
    free = [0.0, 0.0]
    for task in [0.8 * scale["large_task"]] + 4 * [0.1 * scale["small_task"]]:
        free.sort()
        free[0] += task
    return max(free) + 0.2 * scale["merge"]


def open_latency(scale, count=20000):
    """The queue, with the very same arrivals."""
    service = 0.4 * scale["handle"] + 0.2 * scale["render"]
    state, now, free, total = 1, 0.0, 0.0, 0.0
    for _ in range(count):
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        now += 0.2 + 1.6 * (state >> 40) / 2**24
        free = max(free, now) + service
        total += free - now
    return total / count


def workloads():
    listed = [
        make("toy", "toy", "", "large middle small", "done",
             lambda s: 0.6 * s["large"] + 0.3 * s["middle"] + 0.1 * s["small"]),
        make("toy-lines", "toy", "", "large middle small", "done",
             lambda s: 0.6 * s["large"] + 0.3 * s["middle"] + 0.1 * s["small"], options=LINES),
        make("single", "single", "", "half third rest", "done",
             lambda s: 0.5 * s["half"] + 0.333 * s["third"] + 0.167 * s["rest"]),
        make("callers", "callers", "", "lex resolve", "done",
             lambda s: 0.5 * s["lex"] + 0.5 * s["resolve"]),
        make("callers-outer", "callers", "", "parse check", "done",
             lambda s: 0.6 * s["parse"] + 0.4 * s["check"],
             options=("--function-scope=^(parse|check)$",)),
        make("inlined", "inlined", "", "decode filter encode", "done",
             lambda s: 0.5 * s["decode"] + 0.3 * s["filter"] + 0.2 * s["encode"], options=LINES),
        make("inlined-functions", "inlined", "", "decode filter encode", "done",
             lambda s: 0.5 * s["decode"] + 0.3 * s["filter"] + 0.2 * s["encode"]),
        make("phases", "phases", "", "first_phase second_phase both_phases", "step",
             lambda s: 0.4 * s["first_phase"] + 0.2 * s["second_phase"] + 0.2 * s["both_phases"],
             visits=1400),
        make("amdahl", "amdahl", "", "serial_part parallel_part", "step",
             lambda s: 0.4 * s["serial_part"] + 0.6 * s["parallel_part"]),
        make("pipeline", "pipeline", "", "stage_read stage_convert stage_write", "written",
             # three threads; of two processors
             lambda s: max(s["stage_read"], 0.5 * s["stage_convert"], 0.25 * s["stage_write"],
                           (s["stage_read"] + 0.5 * s["stage_convert"] + 0.25 * s["stage_write"]) / 2)),
        make("lock", "lock", "", "inside_lock outside_lock", "turn",
             lambda s: max(s["inside_lock"], (s["inside_lock"] + s["outside_lock"]) / 2)),
        # of two processors, however many threads there are
        make("lock-crowd", "lock", "--threads 6", "inside_lock outside_lock", "turn",
             lambda s: max(s["inside_lock"], (s["inside_lock"] + s["outside_lock"]) / 2)),
        # measured: a lock takes some of the time
        make("locks", "locks", "", "guarded between", "done"),
        make("locks-threads", "locks", "--threads 2", "guarded between", "done"),
        make("readers", "readers", "", "look_up use_result renew prepare", "used"),
        make("pool", "pool", "", "large_task small_task merge", "batch", pool_batch),
        make("server", "server", "", "parse_request make_answer use_answer", "answered",
             lambda s: max(0.6 * s["parse_request"] + 0.4 * s["make_answer"],
                           (0.6 * s["parse_request"] + 0.4 * s["make_answer"]
                            + 0.5 * s["use_answer"]) / 2)),
        make("spawner", "spawner", "", "left_part right_part put_together", "done",
             lambda s: max(0.8 * s["left_part"], 0.5 * s["right_part"]) + 0.2 * s["put_together"]),
        make("openmp", "openmp_loop", "", "dear_iterations cheap_iterations between_loops", "step",
             lambda s: max(0.7 * s["dear_iterations"], 0.4 * s["cheap_iterations"])
             + 0.3 * s["between_loops"]),
        make("hog", "hog", "", "hog useful useful_too", "done",
             lambda s: 0.5 * s["useful"] + 0.25 * s["useful_too"]),
        make("hog-sleep", "hog", "--sleep 1000", "hog useful useful_too", "done",
             lambda s: 0.5 * s["useful"] + 0.25 * s["useful_too"] + 1.06),
        make("closed", "closed", "", "think serve write_log", "request", latency=True),
        make("open", "open", "", "handle render", "request", open_latency, latency=True),
        make("open-regular", "open", "--kind regular", "handle render", "request",
             lambda s: 0.4 * s["handle"] + 0.2 * s["render"], latency=True),
    ]
    for kind in ("sleep", "poll", "device"):
        listed.append(make(f"sleeper-{kind}", "sleeper", f"--kind {kind}", "compute format", "done",
                           lambda s: 0.7 * s["compute"] + 0.3 * s["format"] + 1.06))
    for kind in ("pipe", "shared"):
        listed.append(make(f"processes-{kind}", "processes", f"--kind {kind}",
                           "child_part parent_part", "step",
                           lambda s: max(s["child_part"], 0.6 * s["parent_part"])))
    for kind in ("barrier", "cond", "sem", "futex", "c11", "pipe", "spin"):
        for suffix, length in (("", 2000), ("-short", 100)):
            listed.append(make(f"meet-{kind}{suffix}", "meet", f"--kind {kind} --length {length}",
                               "slow_half fast_half", "met",
                               lambda s: max(s["slow_half"], 0.7 * s["fast_half"])))
    return listed
