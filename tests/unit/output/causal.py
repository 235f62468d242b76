#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""Reads back what is made of causal experiments: causal.py CAUSAL_WRITE. TAP."""
import html.parser
import json
import os
import random
import re
import subprocess
import sys
import tempfile

import causal_experiments
from causal_experiments import BASELINE, NAME
from causal_read import Coz

SOURCE = "".join(f"line {number}\n" if number != 5 else "\tint <five> = 5;\n" for number in range(1, 40))
PLAIN = NAME.replace("\t", " ").replace("\n", " ")


def equal(found, expected, what=""):
    if found != expected:
        raise AssertionError(f"{what}: {found!r} instead of {expected!r}")


def close(found, expected, error, what=""):
    if not abs(found - expected) <= error:
        raise AssertionError(f"{what}: {found!r} instead of {expected!r}")


class Written:
    def __init__(self, **options):
        with tempfile.TemporaryDirectory(prefix="kymo-causal-") as directory:
            source = os.path.join(directory, "a.c")
            if options.pop("with_source", False):
                options["source"] = source
                with open(source, "w", encoding="utf-8") as file:
                    file.write(SOURCE)
            experiments = os.path.join(directory, "windows.ndjson")
            causal_experiments.write(experiments, **options)
            out = os.path.join(directory, "out")
            os.mkdir(out)
            self.summary = subprocess.run([sys.argv[1], experiments, out], check=True,
                                          stdout=subprocess.PIPE).stdout.decode()
            self.names = sorted(os.listdir(out))
            self.files = {}
            for name in self.names:
                with open(os.path.join(out, name), encoding="utf-8") as file:
                    self.files[name] = file.read()
        self.json = json.loads(self.files["experiments.json"])
        self.text = self.files["report.txt"]
        self.coz = Coz(self.files["profile.coz"])

    def prediction(self, target, kind="throughput"):
        return next(p for p in self.json["predictions"] if p["target"] == target and p["type"] == kind)


def files():
    equal(Written().names, ["experiments.json", "profile.coz", "report.html", "report.txt"])


def json_predictions():
    written = Written(with_source=True)
    equal(written.json["schema"], "kymo.causal/1")
    equal(len(written.json["predictions"]), 6)
    best = written.json["predictions"][0]
    equal((best["progress_point"], best["function"], best["line"]), ("work", "fast(int)", 5))
    equal([p["speedup_percent"] for p in best["points"]], [25, 50, 100])
    equal([p["experiments"] for p in best["points"]], [10, 10, 10])
    for point in best["points"]:
        close(point["predicted_percent"], point["speedup_percent"] / 2, 1e-3)
        assert point["ci_low_percent"] <= point["predicted_percent"] <= point["ci_high_percent"]
    close(best["full_speedup"]["value"], 50, 0.1)
    equal(best["headline"], {"speedup_percent": 100, **best["full_speedup"]})
    close(best["slope"]["value"], 0.5, 1e-3)
    close(best["baseline_ns"], BASELINE, 1)
    close(best["self_percent"], 50, 1e-3)
    equal([p["function"] for p in written.json["predictions"][:3]], ["fast(int)", "rest", NAME], "order")
    close(written.prediction(2)["points"][1]["predicted_percent"], -10, 1e-3, "harm")
    equal(written.prediction(1, "latency")["progress_point"], "request to answer")
    close(written.prediction(1, "latency")["baseline_ns"], 2.345 * BASELINE, 1)


def untried_speedups():
    """Nothing is claimed for a speedup beyond those that were tried."""
    written = Written(speedups=(250, 500))
    for prediction in written.json["predictions"]:
        assert "full_speedup" not in prediction, prediction
        equal(prediction["headline"]["speedup_percent"], 50)
    close(written.json["predictions"][0]["headline"]["value"], 25, 0.1)
    assert re.search(r"^ +1 +\+25\.0 %.* 50 %.*fast\(int\)", written.text, re.M), written.text
    assert re.search(r"^ +1 +\+25\.0 %.* 50 %.*fast\(int\)", written.summary, re.M), written.summary
    assert "100.0 %" not in written.text and "took no time" not in written.text, written.text


def json_experiments():
    written = Written()
    equal(len(written.json["experiments"]), 120)
    first, second = written.json["experiments"][:2]
    equal((first["target"], first["speedup_percent"], "function" in first), (0, 0, False))
    equal((second["function"], second["speedup_percent"], second["ended"]), ("fast(int)", 25, "visits"))
    equal(second["points"][0]["visits"], 20)
    equal(second["points"][1]["departures"], 20)
    equal(written.json["runs"][0]["samples"], 1000)
    equal((second["stolen_ns"], second["queued_ns"], second["threads"]), (8, 9, 3))
    equal([point["name"] for point in written.json["progress_points"] if point.get("given_up")],
          ["too often"])
    equal(written.json["bad_lines"], 0)


def line_mode():
    written = Written(with_source=True, mode="line")
    best = written.json["predictions"][0]
    equal(("function" in best, best["in_function"], best["line"]), (False, "fast(int)", 5))
    assert best["file"].endswith("/a.c")
    assert "a.c:5 (fast(int))" in written.text
    assert any(name.endswith("/a.c:5") for name in written.coz.data), list(written.coz.data)


def coz():
    written = Written(noise=noisy())
    equal(written.coz.unknown, [])
    equal(sorted(written.coz.data), sorted(["fast(int)", PLAIN, "rest"]))
    for target, selected in ((1, "fast(int)"), (2, PLAIN), (3, "rest")):
        for kind, point in (("throughput", "work"), ("latency", "request to answer")):
            viewer = written.coz.speedups(selected, point)
            equal(viewer.pop(0.0), 0)
            ours = written.prediction(target, kind)["points"]
            equal(sorted(viewer), [p["speedup_percent"] / 100 for p in ours])
            for estimate in ours:
                # The viewer compares with all baselines, kymo with those near in time.
                close(100 * viewer[estimate["speedup_percent"] / 100], estimate["predicted_percent"], 1.5)
    latency = written.coz.data["fast(int)"]["request to answer"][0.0]
    close(Coz.measure(latency) / BASELINE, 2.345, 0.03, "latency")
    equal(set(written.coz.samples), {"fast(int)", PLAIN, "rest"})


def noisy():
    source = random.Random(7)
    values = [source.lognormvariate(0, 0.02) for _ in range(200)]
    return lambda number: values[number]


def intervals():
    written = Written(noise=noisy())
    for prediction in written.json["predictions"]:
        for point in prediction["points"]:
            width = point["ci_high_percent"] - point["ci_low_percent"]
            assert 0.5 < width < 8, width


def text():
    written = Written(with_source=True)
    lines = written.text.splitlines()
    assert max(len(line) for line in lines) <= 110, max(lines, key=len)
    ranks = [line for line in lines if re.match(r" +[123]  +[+-]\d", line)]
    equal(len(ranks), 6)
    # Windows that do not scatter: what is left is the method's own error, 1 point at full speedup.
    assert re.match(r" +1 +\+50\.0 % +\+48\.0 \.\.\. +\+52\.0 +100 % +\+5\.00 +50\.0 % +50\.0 %  fast\(int\) \(a\.c:5\)",
                    ranks[0]), ranks[0]
    assert re.match(r" +3 +-20\.0 %", ranks[2]), ranks[2]
    assert "50.0   50.0  +50.0      5          int <five> = 5;" in written.text, written.text
    assert "..." in written.text
    assert "'too often' runs more often" in " ".join(written.text.split()), written.text
    assert all(ord(c) >= 32 for line in lines for c in line)
    assert "fast(int)" in written.summary and "Source" not in written.summary


def curves():
    """The bars: zero, value and interval at their places on one scale."""
    rows = re.findall(r"^ +(\d+\.0) % +([+-]\d+\.\d) %.*? \d+ +\d+  ( *.*)$", Written(noise=noisy()).text, re.M)
    equal(len(rows), 18)
    for speedup, gain, bar in rows:
        assert bar.count("*") == 1, bar
        if float(gain) > 5:
            assert bar.index("|") < bar.index("*"), bar
        if float(gain) < -5:
            assert bar.index("*") < bar.index("|"), bar


def cut():
    """Nothing but a beginning: no predictions, in words."""
    written = Written(lines=7)
    equal(written.json["predictions"], [])
    equal(written.json["warnings"], ["no_visits", "few_windows"])
    assert "did not reach the progress point" in written.text and "no experiments to predict" in written.text
    written = Written(lines=12)
    equal([p["ranked"] for p in written.json["predictions"]], [False] * 6)
    assert "not enough data for any target" in written.summary
    assert "Not enough data: fast(int), " in written.summary and " and 1 more" in written.summary
    assert "few_windows" in written.json["predictions"][0]["warnings"]


class Page(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags, self.data, self.links, self.inside = [], "", [], False
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.links += [value for key, value in attributes if key in ("src", "href")]
        self.inside = dict(attributes).get("id") == "data"

    def handle_endtag(self, tag):
        self.inside = False

    def handle_data(self, data):
        if self.inside:
            self.data += data


def page():
    written = Written(with_source=True)
    found = Page(written.files["report.html"])
    equal((found.links, found.tags.count("script"), found.tags.count("img")), ([], 2, 0))
    data = json.loads(found.data)
    equal([point["name"] for point in data["points"]], ["work", "request to answer"])
    equal([target["name"] for target in data["points"][0]["targets"]], ["fast(int)", "rest", NAME])
    equal(data["source"][0]["lines"][3][:2], [5, "\tint <five> = 5;"])
    assert "default-src 'none'" in written.files["report.html"]


def the_same_count():
    """The page counts the experiments that the text counts: none that was cut short."""
    written = Written(cut_short=8)
    data = json.loads(Page(written.files["report.html"]).data)
    equal(data["experiments"], 112)
    assert "112 experiments in " in written.text, written.text[:300]
    windows = [w for w in written.json["experiments"] if w["ended"] != "cut"]
    equal(len(windows), 112)
    assert abs(data["measured_ns"] / sum(w["real_ns"] for w in windows) - 1) < 1e-5, data["measured_ns"]


def the_same_again():
    first, second = Written(noise=noisy()), Written(noise=noisy())
    equal(first.files, second.files)


def main():
    tests = [files, json_predictions, untried_speedups, json_experiments, line_mode, coz, intervals, text, curves, cut, page,
             the_same_count, the_same_again]
    print(f"1..{len(tests)}")
    failed = False
    for number, test in enumerate(tests, 1):
        try:
            test()
            print(f"ok {number} - {test.__name__}")
        except Exception as error:  # a test that cannot run has failed
            failed = True
            print(f"not ok {number} - {test.__name__}: {type(error).__name__} {error}")
    sys.exit(failed)


if __name__ == "__main__":
    main()
