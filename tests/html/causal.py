#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""The page of a causal profile in a real browser: causal.py CAUSAL_WRITE EXPERIMENTS-DIRECTORY
[SCREENSHOT-DIRECTORY]. TAP. What is measured is tests/unit/output/causal_experiments.py's."""
import json
import os
import random
import subprocess
import sys
import tempfile

from browser import Browser, find_chromium

sys.path.insert(0, sys.argv[2] if len(sys.argv) > 2 else ".")
import causal_experiments  # noqa: E402  (found by the line above)

MINUS = "−"


def equal(found, expected, what=""):
    if found != expected:
        raise AssertionError(f"{what}: {found!r} instead of {expected!r}")


class Page(Browser):
    def all(self, selector, value="textContent"):
        return self.evaluate(f"[...document.querySelectorAll({json.dumps(selector)})].map(e => e.{value})")

    def click_on(self, selector, place=0):
        self.evaluate(f"document.querySelectorAll({json.dumps(selector)})[{place}].dispatchEvent("
                      "new MouseEvent('click', { bubbles: true }))")
        self.settle()

    def column(self, number):
        return self.all(f"#rows td:nth-child({number})")


def ranking(page):
    equal(page.all("#title"), ["Causal profile of ./a <img src=x>"])
    equal(page.column(1), ["1", "2", "3"])
    names = page.column(2)
    assert names[0].startswith("fast(int) a.c:5"), names
    assert names[2].startswith(causal_experiments.NAME), names
    gains = page.column(3)
    assert gains[0].startswith("+50.") or gains[0].startswith("+49."), gains
    assert gains[2].startswith(MINUS), gains
    assert page.all("#baseline")[0].startswith("Progress work: once every 10"), page.all("#baseline")


def sorting(page):
    page.click_on("[data-order=name]")
    equal([name[:4] for name in page.column(2)], ["fast", "rest", "solv"])
    page.click_on("[data-order=name]")
    equal([name[:4] for name in page.column(2)], ["solv", "rest", "fast"])
    page.click_on("[data-order=self]")
    equal(page.column(1), ["1", "3", "2"], "most CPU time first")
    equal(page.all("th[aria-sort]", "textContent"), ["CPU self"])
    page.click_on("[data-order=rank]")
    equal(page.column(1), ["1", "2", "3"])


def curves(page):
    equal(len(page.all("#curves figure")), 3)
    page.click_on("#rows tr", 1)
    equal([name[:4] for name in page.all("#curves figcaption")], ["fast", "solv"])
    page.click_on("#rows tr", 1)
    equal(len(page.all("#curves .dot")), 9)
    heights = page.evaluate("""[...document.querySelectorAll("#curves figure")].map(f =>
        [...f.querySelectorAll(".dot")].map(d => Number(d.getAttribute("cy"))))""")
    assert heights[0][0] > heights[0][1] > heights[0][2], "a gain rises"
    harm = heights[-1]
    assert harm[0] < harm[1] < harm[2], "harm falls"
    assert page.all("#curves .dot title")[0].startswith("25 % faster: +12"), "a dot says what it is"


def latency(page):
    page.evaluate("""(() => { const select = document.getElementById("point"); select.value = "1";
        select.dispatchEvent(new Event("change")); })()""")
    page.settle()
    assert page.all("#baseline")[0].startswith("Latency request to answer: takes 23"), page.all("#baseline")
    equal(len(page.all("#curves figure")), 3)


def source(page):
    equal(page.evaluate("document.getElementById('source').hidden"), False)
    marked = page.all(".file tr.marked td:last-child")
    equal(marked, ["\tint <five> = 5;", "line 12", "line 13"])


def themes(page):
    before = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.click_on("#theme")
    assert before != page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.click_on("#theme")
    equal(page.evaluate("getComputedStyle(document.body).backgroundColor"), before)


def alone(page):
    """No message, no request but the file, nothing run that a name contains."""
    equal(page.console, [])
    equal(page.dialogs, [])
    equal([url for url in page.requests if not url.startswith("file:")], [])
    equal(page.evaluate("document.querySelectorAll('img').length"), 0)


def write(directory):
    source_path = os.path.join(directory, "a.c")
    with open(source_path, "w", encoding="utf-8") as file:
        file.write("".join(f"line {number}\n" if number != 5 else "\tint <five> = 5;\n"
                           for number in range(1, 40)))
    random.seed(7)
    values = [random.lognormvariate(0, 0.02) for _ in range(200)]
    experiments = os.path.join(directory, "windows.ndjson")
    causal_experiments.write(experiments, source=source_path, noise=lambda number: values[number])
    subprocess.run([sys.argv[1], experiments, directory], check=True, stdout=subprocess.DEVNULL)
    return os.path.join(directory, "report.html")


def main():
    tests = [ranking, sorting, curves, latency, source, themes, alone]
    if not find_chromium():
        print("1..0 # SKIP no chromium")
        return
    print(f"1..{len(tests)}")
    failed = False
    with tempfile.TemporaryDirectory(prefix="kymo-causal-") as directory:
        page = Page(limit_s=120)
        try:
            page.open("file://" + write(directory))
            for number, test in enumerate(tests, 1):
                try:
                    test(page)
                    print(f"ok {number} - {test.__name__}", flush=True)
                except Exception as error:  # a test that cannot run has failed
                    failed = True
                    print(f"not ok {number} - {test.__name__}: {type(error).__name__} {error}", flush=True)
            if len(sys.argv) > 3:
                page.screenshot(os.path.join(sys.argv[3], "causal.png"))
        finally:
            page.close()
    sys.exit(failed)


if __name__ == "__main__":
    main()
