# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""What bench/causal_real has in common for all programs: what `kymo causal` predicts, how much faster a
function has really become by what was done, and what that gained.

What was done seldom makes the function that was recommended take no time at all: something else does
its work. So the CPU time of the innermost function that there is before and after is measured both
times (`kymo sample`), and the prediction is read off its curve, at the speedup that it has really got.

All three are measured in turns: on a machine that others use one function takes twice as long for some
seconds or minutes and another does not, so that making it faster gains more. Each has an error, by how much
it differed from turn to turn. What was predicted agrees with what was gained where they differ by no more
than both errors together.
"""
import json
import math
import os
import re
import statistics
import sys

from harness import Result, run

PERCENTS = "--speedups=25,50,75,100"


def ask(condition, text):
    if not condition:
        sys.exit(text)


NICE = [0]


def be_nice():
    """In a child that leads a session: with autogroups that is what is scheduled against others, by a
    priority of its own."""
    os.setpriority(os.PRIO_PROCESS, 0, NICE[0])
    if os.path.exists("/proc/self/autogroup"):
        with open("/proc/self/autogroup", "w", encoding="ascii") as stream:
            stream.write(str(NICE[0]))


def succeeded(command, **how):
    ended = run(command, preexec=be_nice, **how)
    ask(ended.status == 0, f"{' '.join(command)}: {ended.status}\n{ended.stderr[-2000:]}")
    return ended


def causal(kymo, directory, *options):
    return [kymo, "causal", "-q", "-o", directory, "--time-output=off", *options, "--"]


def sample(kymo, directory):
    return [kymo, "sample", "-q", "-f", "1000", "-o", directory, "--time-output=off", "--"]


# ---- predictions ----

def predictions_in(directory):
    with open(os.path.join(directory, "causal/experiments.json"), encoding="utf-8") as stream:
        return json.load(stream)["predictions"]


def best_leaf(predictions):
    """The best target that does most of its work itself: callers of it gain at least as much."""
    best = next((one for one in predictions if one["points"]
                 and one["self_percent"] > one["total_percent"] / 2), None)
    ask(best, "  nothing is recommended")
    return best


def prediction_of(predictions, function):
    found = next((one for one in predictions if one["function"] == function and one["points"]), None)
    ask(found, f"  {function} was not tried")
    return found


def only(function):
    """The option that has it tried alone."""
    return "--function-scope=^" + re.sub(r"([][+.^$*?(){}|\\])", r"\\\1", function) + "$"


def print_top(predictions):
    for one in predictions[:3]:
        print(f"  {one.get('function')}: " + ", ".join(
            f"{point['speedup_percent']:.0f} %: {point['predicted_percent']:.1f} "
            f"[{point['ci_low_percent']:.1f}, {point['ci_high_percent']:.1f}]" for point in one["points"]),
            flush=True)


def at(prediction, speedup):
    """(gain, low, high), between the points that were tried; at the largest one by all of them."""
    last = prediction["headline"]
    points = [(0.0, 0.0, 0.0, 0.0)] + [
        (one["speedup_percent"], one["predicted_percent"], one["ci_low_percent"], one["ci_high_percent"])
        for one in prediction["points"] if one["speedup_percent"] < last["speedup_percent"]] + [
            (last["speedup_percent"], last["value"], last["ci_low"], last["ci_high"])]
    for left, right in zip(points, points[1:]):
        if speedup <= right[0]:
            share = (speedup - left[0]) / (right[0] - left[0])
            return tuple(a + share * (b - a) for a, b in zip(left[1:], right[1:]))
    return points[-1][1:]


# ---- what was done ----

def cpu_by_function(directory):
    """{function: CPU time with all that it calls}"""
    times = {}
    for one in Result(directory).profile().samples:
        for function in {frame.function for frame in one.stack}:
            times[function] = times.get(function, 0) + one.values["cpu"]
    return times


def innermost_of_both(before, after, function):
    """The function itself, or the innermost caller of it that is there afterwards; of several, that in
    which it takes most time."""
    left, found = cpu_by_function(after), {}
    for one in Result(before).profile().samples:
        names = [frame.function for frame in one.stack]
        if function in names:
            name = next((name for name in names[names.index(function):] if name in left), None)
            found[name] = found.get(name, 0) + one.values["cpu"]
    ask(found, f"  {function} was not sampled")
    return max(found, key=found.get)


def cpu_times(directory, function):
    """(of the function with all that it calls, of all else)"""
    both = {True: 0, False: 0}
    for one in Result(directory).profile().samples:
        both[any(frame.function == function for frame in one.stack)] += one.values["cpu"]
    return both[True], both[False]


# ---- was it right? ----

# Of Student's distribution: 97.5 % are below. By degrees of freedom.
STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)


def saved(pairs):
    """Percent by which the second of a pair is less than the first: (mean of all turns, to both sides of
    that as far as its 95 % interval reaches, least, most)."""
    each = [100 * (1 - after / before) if before else 0 for before, after in pairs]
    wide = STUDENT[min(len(each) - 1, len(STUDENT)) - 1] * statistics.stdev(each) / math.sqrt(len(each))
    return statistics.mean(each), wide, min(each), max(each)


def at_speedup(prediction, speedup, error):
    """(gain, low, high), where the speedup is known to so many percent."""
    gain, low, high = at(prediction, speedup)
    ends = [at(prediction, min(max(speedup + side, 0), 100))[0] - gain for side in (-error, error)]
    return (gain, gain - math.hypot(gain - low, min(ends + [0])),
            gain + math.hypot(high - gain, max(ends + [0])))


def verdict(costs, times, prediction):
    """costs: what a unit of work took, before and after; times: cpu_times(), before and after; in turns. All
    else may have become faster as well (caches, larger batches): that is gained, but not predicted."""
    gain, gain_error, *gain_range = saved(costs)
    (speedup, speedup_error, *speedup_range), (rest, rest_error, *_) = (
        saved([(before[i], after[i]) for before, after in times]) for i in (0, 1))
    predicted, low, high = at_speedup(prediction, speedup, speedup_error)
    side = predicted - low if gain < predicted else high - predicted
    apart = abs(gain - predicted) - math.hypot(gain_error, side)
    print(f"  {prediction['function']} made {speedup:.1f} % faster, +-{speedup_error:.1f} "
          f"(in turns {speedup_range[0]:.1f} to {speedup_range[1]:.1f}), all else {rest:.1f} %, +-{rest_error:.1f}\n"
          f"  predicted {predicted:.1f} % [{low:.1f}, {high:.1f}], "
          "[{1:.1f}, {2:.1f}] if that were exact; ".format(*at(prediction, speedup))
          + f"gained {gain:.1f} % [{gain - gain_error:.1f}, {gain + gain_error:.1f}] "
          f"(in turns {gain_range[0]:.1f} to {gain_range[1]:.1f}): "
          + ("agrees" if apart <= 0 else f"{apart:.1f} points more than both errors apart"), flush=True)
    return apart <= 0
