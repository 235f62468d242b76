# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""Experiments of a program that is known: what the controller would have written."""
import json

NAME = "solve</script><b>&\t\n\"'"
BASELINE = 10_000_000


def write(path, source=None, mode="function", lines=None, noise=None, speedups=(250, 500, 1000), cut_short=0):
    """Gains at full speedup: 50 % of "fast(int)", -20 % of NAME, and nothing of "rest"."""
    noise = noise or (lambda number: 1)
    out = [{"kind": "run", "run": 0, "command": ["./a", "<img src=x>"], "mode": mode, "seed": 1,
            "end_to_end": False, "processors": 4, "pid": 7}]
    for number, (function, line) in enumerate([("fast(int)", 5), (NAME, 12), ("rest", 13)]):
        target = {"kind": "target", "id": number + 1, "function": function, "module": "/x/a"}
        if source:
            target.update(file=source, line=line)
        out.append(target)
    for number, (name, kind) in enumerate([("work", "progress"), ("request", "begin"), ("answer", "end")]):
        out.append({"kind": "point", "id": number, "name": name, "type": kind, "origin": "user"})
    out.append({"kind": "point", "id": 9, "name": "too often", "type": "progress", "origin": "named",
                "given_up": True})
    gains = {0: 0, 1: 0.5, 2: -0.2, 3: 0}
    for number in range(120):
        target = (0, 1, 2, 3)[number % 4]
        speedup = (0 if target == 0 else speedups[number // 4 % len(speedups)])
        period = BASELINE * (1 - gains[target] * speedup / 1000) * noise(number)
        taken = round(20 * period)
        out.append({"kind": "window", "run": 0, "target": target, "speedup_permille": speedup,
                    "start_ns": 10**9 * (number + 1), "real_ns": taken + 1000, "delay_ns": 1000,
                    "ended": "cut" if number < cut_short else "visits", "cpu_ns": 2 * taken, "involuntary_switches": 0, "stolen_ns": 8, "queued_ns": 9,
                    "threads": 3,
                    "points": [{"id": 0, "visits": 20, "virtual_ns": taken},
                               {"id": 1, "end": 2, "arrivals": 19, "departures": 20,
                                "area_ns": round(2.345 * taken), "virtual_ns": taken}],
                    "times": [[1, taken, taken], [2, taken // 2, taken], [3, taken // 10, taken // 5]]})
    out.append({"kind": "end", "run": 0, "status": 0, "real_ns": 130 * 10**9, "samples": 1000,
                "samples_in_scope": 900, "paid_ns": 1, "overslept_ns": 2, "credited_ns": 3, "pauses": 4})
    with open(path, "w", encoding="utf-8") as file:
        for line in out if lines is None else out[:lines]:
            file.write(json.dumps(line) + "\n")
