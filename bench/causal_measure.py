# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""What bench/causal measures: a workload with less work (the truth), under kymo, and under Coz."""
import collections
import json
import os
import random
import re
import signal
import statistics
import subprocess
import tempfile

from causal_workloads import LINES

SCALES = (0.75, 0.5, 0.25, 0.0)


class Trouble(Exception):
    """A run that did not do what it should; the text says which and why."""


class Bench:
    """Where things are and how programs are run."""

    def __init__(self, build, nice=0, seed=1, keep=None, realtime=False):
        self.kymo = os.path.join(build, "src/cmd/kymo")
        self.programs = os.path.join(build, "tests/programs/causal")
        self.libraries = os.path.join(build, "libraries")  # of --pack
        self.sources = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                    "../tests/programs/causal")
        self.nice, self.realtime = nice, realtime
        self.random = random.Random(seed)
        self.keep = keep
        self.rate = None

    def command(self, workload, *more):
        return [os.path.join(self.programs, workload.program), *workload.arguments, *more,
                *(["--rate", self.rate] if self.rate else [])]

    def run(self, command, timeout, environment=None):
        """Standard output and error of a run that has to succeed. Never hangs."""
        merged = {name: value for name, value in os.environ.items()
                  if not name.startswith(("KYMO_", "LD_PRELOAD"))}
        if os.path.isdir(self.libraries):
            merged["LD_LIBRARY_PATH"] = self.libraries
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, start_new_session=True, text=True,
                                   env={**merged, **(environment or {})},
                                   preexec_fn=self.set_priority)
        try:
            stdout, stderr = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            raise Trouble(f"still running after {timeout} s: {' '.join(command)}") from None
        if process.returncode:
            raise Trouble(f"status {process.returncode}: {' '.join(command)}\n{stderr[-2000:]}")
        return stdout, stderr

    def set_priority(self):
        """In the child, which leads a session: with autogroups that is what is scheduled against
        others, by a priority of its own."""
        if self.realtime:
            os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
        elif self.nice:
            os.setpriority(os.PRIO_PROCESS, 0, self.nice)
            if os.path.exists("/proc/self/autogroup"):
                with open("/proc/self/autogroup", "w", encoding="ascii") as stream:
                    stream.write(str(self.nice))

    def calibrate(self):
        self.rate = self.run([os.path.join(self.programs, "toy"), "--calibrate"], 60)[0].strip()


def measured(stdout):
    """What the program printed: visits, seconds, latency_us."""
    values = {name: float(value) for name, value in
              re.findall(r"^(visits|seconds|latency_us) ([\d.]+)$", stdout, re.M)}
    if values.get("visits", 0) < 2:
        raise Trouble(f"no result printed: {stdout[-500:]}")
    return values


def cost(workload, values):
    """Microseconds: of a request, or from visit to visit."""
    if workload.latency:
        return values["latency_us"]
    return values["seconds"] / (values["visits"] - 1) * 1e6


# ---- truth ----

def visits_for(bench, workload, seconds):
    """As many as take that long, in whole cycles."""
    values = measured(bench.run(bench.command(workload, "--seconds", str(seconds / 2)), 60)[0])
    rate = values["visits"] / max(values["seconds"], 1e-3)
    return max(1, round(rate * seconds / workload.visits)) * workload.visits


def bare_cost(bench, workload, seconds):
    command = bench.command(workload, "--seconds", str(seconds))
    return cost(workload, measured(bench.run(command, 4 * seconds + 60)[0]))


def measure_truth(bench, workload, rounds, seconds):
    """{(function, scale): [cost, ...]} and {"baseline": [cost, ...]}: in turns and in random order, so
    that what else the machine does falls on all alike."""
    visits = str(visits_for(bench, workload, seconds))
    settings = [(function, scale) for function in workload.functions for scale in SCALES]
    costs = collections.defaultdict(list)
    for _ in range(rounds):
        turn = settings + ["baseline"] * len(workload.functions)
        bench.random.shuffle(turn)
        for setting in turn:
            how = [] if setting == "baseline" else ["--scale", f"{setting[0]}={setting[1]}"]
            stdout, _ = bench.run(bench.command(workload, "--visits", visits, *how), 120)
            costs[setting].append(cost(workload, measured(stdout)))
    return costs


def typical(costs):
    """Of the quicker half of runs: what else the machine does only ever makes them slower."""
    return statistics.mean(sorted(costs)[:(len(costs) + 1) // 2])


def gain(costs, baseline):
    return 100 * (1 - typical(costs) / typical(baseline))


def truth_curves(bench, workload, costs):
    """{function: [{speedup, gain, error}]}; error: of the gain, one standard error, by resampling."""
    curves = {}
    for function in workload.functions:
        curves[function] = []
        for scale in SCALES:
            here, baseline = costs[(function, scale)], costs["baseline"]
            again = [gain(bench.random.choices(here, k=len(here)),
                          bench.random.choices(baseline, k=len(baseline))) for _ in range(200)]
            curves[function].append({"speedup": round(100 * (1 - scale)), "gain": gain(here, baseline),
                                     "error": statistics.pstdev(again)})
    return curves


def model_curves(workload):
    base = workload.model(dict.fromkeys(workload.functions, 1.0))
    curves = {}
    for function in workload.functions:
        curves[function] = []
        for scale in SCALES:
            scales = {**dict.fromkeys(workload.functions, 1.0), function: scale}
            curves[function].append({"speedup": round(100 * (1 - scale)), "error": 0.0,
                                     "gain": 100 * (1 - workload.model(scales) / base)})
    return curves


# ---- kymo ----

def line_of(bench, workload, function):
    path = os.path.join(bench.sources, workload.program + ".c")
    with open(path, encoding="utf-8") as stream:
        for number, line in enumerate(stream, 1):
            if re.match(rf"WORK\w*\({function}\)", line):
                return number
    raise Trouble(f"{path}: no {function}")


def run_kymo(bench, workload, seconds, *options, keep=False):
    """Values that the program printed, and what is in experiments.json."""
    with tempfile.TemporaryDirectory(prefix="bench-causal-") as scratch:
        directory = os.path.join(bench.keep, workload.name) if bench.keep and keep else scratch
        command = [bench.kymo, "causal", "-q", "-o", directory, "--time-output=off",
                   *workload.options, *options, "--",
                   *bench.command(workload, "--seconds", str(seconds))]
        stdout, _ = bench.run(command, 4 * seconds + 60)
        with open(os.path.join(directory, "causal/experiments.json"), encoding="utf-8") as stream:
            return measured(stdout), json.load(stream)


def kymo_curves(bench, workload, experiments):
    """{function: [{speedup, gain, low, high}]} for the functions of the workload."""
    curves = {}
    for prediction in experiments["predictions"]:
        if prediction["progress_point"] != workload.point:
            continue
        for function in workload.functions:
            if workload.options == LINES:
                same = (os.path.basename(prediction.get("file") or "") == workload.program + ".c"
                        and prediction.get("line") == line_of(bench, workload, function))
            else:
                same = prediction.get("function") == function
            if same:
                curves[function] = [
                    {"speedup": point["speedup_percent"], "gain": point["predicted_percent"],
                     "low": point["ci_low_percent"], "high": point["ci_high_percent"]}
                    for point in prediction["points"]]
    return curves


def time_to_intervals(bench, workload, points, seconds):
    """Seconds until the leading targets' intervals are +-points wide; None: not within `seconds`."""
    with tempfile.TemporaryDirectory(prefix="bench-causal-") as directory:
        bench.run([bench.kymo, "causal", "-q", "-o", directory, "--time-output=off",
                   *workload.options, f"--until-ci={points}", "--",
                   *bench.command(workload, "--seconds", str(seconds))], 4 * seconds + 60)
        windows = []
        with open(os.path.join(directory, "causal/windows.ndjson"), encoding="utf-8") as stream:
            for line in stream:
                record = json.loads(line)
                if record["kind"] == "window":
                    windows.append(record)
        if not windows:
            return None
        took = (windows[-1]["start_ns"] + windows[-1]["real_ns"] - windows[0]["start_ns"]) / 1e9
        return took if took < seconds - 3 else None


# ---- Coz ----

def run_coz(bench, workload, seconds):
    """Values printed, and the text of profile.coz. Only lines of the program's own file."""
    with tempfile.TemporaryDirectory(prefix="bench-causal-") as directory:
        profile = os.path.join(directory, "profile.coz")
        stdout, _ = bench.run(["coz", "run", "--source-scope", f"%/{workload.program}.c", "--output",
                               profile, "---",
                               *bench.command(workload, "--points", "coz", "--seconds", str(seconds))],
                              2 * seconds + 60)
        with open(profile, encoding="utf-8") as stream:
            return measured(stdout), stream.read()


def coz_experiments(text, point):
    """[(line, speedup, seconds, delta, area)] of profile.coz."""
    selected, listed = None, []
    for line in text.splitlines():
        kind, *fields = line.split("\t")
        values = dict(field.split("=", 1) for field in fields if "=" in field)
        if kind == "experiment":
            selected = (int(values["selected"].rpartition(":")[2]), float(values["speedup"]),
                        float(values["duration"]))
        elif kind == "throughput-point" and selected and values["name"] == point:
            listed.append((*selected, float(values["delta"]), 0.0))
        elif kind == "latency-point" and selected and values["name"] == point:
            listed.append((*selected, float(values["arrivals"]),
                           float(values["difference"]) * selected[2]))
    return listed


def coz_curves(bench, workload, text):
    """As `coz plot` reckons: periods by speedup against those of the same line's 0 %. It has twenty
    speedups where four are looked at: the neighbours count with them."""
    experiments = coz_experiments(text, workload.point)
    curves = {}

    def period(chosen):
        count = sum(delta for _, _, _, delta, _ in chosen)
        amount = sum(area if workload.latency else took for _, _, took, _, area in chosen)
        return amount / count if count and amount else None

    for function in workload.functions:
        number = line_of(bench, workload, function)
        mine = [experiment for experiment in experiments if experiment[0] == number]
        base = period([experiment for experiment in mine if experiment[1] == 0])
        curve = []
        for speedup in (0.25, 0.5, 0.75, 1.0):
            near = period([one for one in mine if one[1] and abs(one[1] - speedup) < 0.051])
            if base and near:
                curve.append({"speedup": 100 * speedup, "gain": 100 * (1 - near / base)})
        if curve:
            curves[function] = curve
    return curves
