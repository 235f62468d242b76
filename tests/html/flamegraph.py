#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""The flame graph page in a real browser: flamegraph.py WRITE_FIXTURE [SCREENSHOT-DIRECTORY]. TAP.

The page is made of the fixture session (tests/unit/output/session_fixture.c), whose CPU time is:
work 70 ms (main 30 with compute > hot 25; worker 30, recursive 10; a truncated stack 10) and a
process and function named to break out of the page 20 ms.
"""
import json
import os
import random
import subprocess
import sys
import tempfile

from browser import Browser, find_chromium

ROW = 20


def equal(found, expected, what=""):
    if found != expected:
        raise AssertionError(f"{what}: {found!r} instead of {expected!r}")


class Page(Browser):
    def element(self, name):
        return f"document.getElementById({json.dumps(name)})"

    def text(self, name):
        return self.evaluate(self.element(name) + ".textContent")

    def attribute(self, name, attribute):
        return self.evaluate(f"{self.element(name)}.getAttribute({json.dumps(attribute)})")

    def attribute_of(self, selector, name):
        return self.evaluate(f"document.querySelector({json.dumps(selector)}).{name}")

    def press(self, name):
        self.evaluate(self.element(name) + ".click()")
        self.settle()

    def choose(self, name, label):
        self.evaluate(f"""(() => {{ const select = {self.element(name)};
            const option = [...select.options].find(o => o.text.startsWith({json.dumps(label)}));
            select.value = option.value; select.dispatchEvent(new Event("change")); }})()""")
        self.settle()

    def search(self, pattern):
        self.evaluate(f"""(() => {{ const input = {self.element("search")};
            input.value = {json.dumps(pattern)}; input.dispatchEvent(new Event("input")); }})()""")
        self.settle()
        return self.text("matched")

    def point(self, row, share=0.002):
        """In the middle of a row of the graph, a share of its width from the left."""
        left, top, width = self.evaluate(
            f"(r => [r.left, r.top, r.width])({self.element('graph')}.getBoundingClientRect())")
        return left + 1 + width * share, top + row * ROW + ROW / 2

    def tip(self, row, share=0.002):
        self.move(*self.point(row, share))
        if self.evaluate(self.element("tooltip") + ".hidden"):
            return None
        return self.evaluate(f"[...{self.element('tooltip')}.querySelectorAll('strong, dd')].map(e => e.textContent)")

    def matched_pixels(self):
        """Pixels of the colour of matches: much red and blue, little green."""
        return self.evaluate(f"""(() => {{ const c = {self.element("graph")};
            const copy = Object.assign(document.createElement("canvas"), {{ width: c.width, height: c.height }});
            const context = copy.getContext("2d", {{ willReadFrequently: true }});
            context.drawImage(c, 0, 0);
            const data = context.getImageData(0, 0, c.width, c.height).data; let n = 0;
            for (let i = 0; i < data.length; i += 4)
              if (data[i] > 180 && data[i + 2] > 120 && data[i + 1] < 130) n++; return n; }})()""")

    def label(self):
        return self.attribute("graph", "aria-label")


def totals(page):
    equal(page.text("title"), "sh -c ./work")
    equal("3 processes · 4 threads" in page.text("subtitle"), True, page.text("subtitle"))
    equal(page.label().split(", self")[0], "Flame graph, CPU time, all: 90.0 ms (100 %)")


def tooltip(page):
    equal(page.tip(1)[:3], ["work", "70.0 ms", "77.8 %"])
    equal(page.tip(2)[:7], ["main", "30.0 ms", "33.3 %", "5.00 ms", "5.6 %", "4 samples", ""])
    equal(page.tip(4)[0], "hot")
    equal(page.tip(9), None, "below the graph")


def zoom(page):
    page.click(*page.point(2))
    equal(page.evaluate("[...document.querySelectorAll('#path li')].map(e => e.textContent)"),
          ["work", "main"])
    equal(page.tip(3, 0.82)[0], "compute(int, char const*)", "25 of 30 ms are now 83 % of the width")
    equal(page.tip(3, 0.85), None)
    page.click(*page.point(4))
    equal("hot: 25.0 ms" in page.label(), True, page.label())
    page.press("back")
    equal("main: 30.0 ms" in page.label(), True, page.label())
    page.press("reset")
    equal("all: 90.0 ms" in page.label(), True, page.label())
    equal(page.evaluate(page.element("reset") + ".disabled"), True)


def search(page):
    equal(page.matched_pixels(), 0)
    equal(page.search("worker"), "33.3 % matched", "a recursive match counts once")
    equal(page.matched_pixels() > 2000, True, "matches are highlighted")
    equal(page.search("^(hot|poll)$"), "38.9 % matched")
    equal(page.search("HOT"), "0.0 % matched", "capitals are meant")
    equal(page.search("("), "not a pattern")
    equal(page.attribute("search", "aria-invalid"), "true")
    equal(page.search(""), "")
    equal(page.matched_pixels(), 0)


def flip(page):
    page.press("flip")
    height = page.evaluate(page.element("graph") + ".clientHeight")
    x, _ = page.point(0)
    top = page.evaluate(page.element("graph") + ".getBoundingClientRect().top")
    page.move(x, top + height - ROW / 2)
    equal(page.text("tooltip").startswith("all"), True, page.text("tooltip"))
    page.press("flip")
    equal(page.tip(0)[0], "all")


def bottom_up(page):
    page.press("callers")
    equal(page.tip(1)[:5], ["worker;\ufffd<img src=x onerror=alert(1)>", "30.0 ms", "33.3 %", "30.0 ms",
                            "33.3 %"], "leaf first")
    equal(page.tip(1, 0.4)[:3], ["hot", "25.0 ms", "27.8 %"])
    equal(page.tip(2, 0.4)[0], "compute(int, char const*)", "callers below")
    equal(page.tip(4, 0.4)[0], "work", "the process last")
    page.press("callees")
    equal(page.tip(1)[0], "work")


def selection(page):
    page.choose("selection", "pool; 1 (1001)")
    equal("all: 30.0 ms" in page.label(), True, page.label())
    equal(page.tip(1)[0].startswith("worker"), True, "one process needs no box of its own")
    page.choose("selection", "whole process work")
    equal("all: 70.0 ms" in page.label(), True, page.label())
    page.choose("selection", "all processes")
    equal("all: 90.0 ms" in page.label(), True, page.label())


def measures(page):
    for name, total in (("Wall time", "160 ms"), ("Blocked", "60.0 ms"), ("Waiting for a CPU", "10.0 ms"),
                        ("Events", "2,000 events"), ("Samples", "14 samples"), ("CPU time", "90.0 ms")):
        page.choose("measure", name)
        equal(f"{name}, all: {total} (100 %)" in page.label(), True, page.label())


def keyboard(page):
    page.evaluate(page.element("graph") + ".focus()")
    for key in ("ArrowDown", "ArrowDown", "ArrowDown", "ArrowRight"):
        page.key(key)
    equal(page.text("status").split(":")[0].startswith("worker"), True, page.text("status"))
    page.key("ArrowLeft")
    equal(page.text("status").startswith("main: 30.0 ms (33.3 %), self 5.00 ms"), True)
    page.key("Enter")
    equal("main: 30.0 ms" in page.label(), True, page.label())
    page.key("Backspace")
    equal("all: 90.0 ms" in page.label(), True, page.label())
    page.key("Enter")
    page.key("Escape")
    equal("all: 90.0 ms" in page.label(), True, page.label())
    page.key("/")
    equal(page.evaluate("document.activeElement.id"), "search")
    page.key("Escape")
    equal(page.evaluate("document.activeElement.id"), "graph")


def functions(page):
    page.press("tab-functions")
    rows = page.evaluate("[...document.querySelectorAll('#rows tr')].map(r => r.children[2].firstChild.textContent)")
    equal(rows[:2], ["worker;\ufffd<img src=x onerror=alert(1)>", "hot"], "heaviest self first")
    equal(page.evaluate("document.querySelector('#rows tr').children[1].textContent"), "33.3 %",
          "a recursive function counts once")
    page.evaluate("document.querySelectorAll('#rows button')[1].click()")
    equal(page.text("sandwich-title"), "hot")
    equal(page.text("status"), "hot: total 25.0 ms (27.8 %), self 25.0 ms")
    equal(page.evaluate("[...page.views.functions.graphs[0].tree.func].map(f => page.model.names[f])"),
          ["hot", "compute(int, char const*)", "main", "work"], "callers")
    page.search("^main$")
    equal(page.evaluate("document.querySelectorAll('#rows tr').length"), 1)
    page.evaluate("document.querySelector('#rows button').click()")
    equal(page.evaluate("[...page.views.functions.graphs[1].tree.func].map(f => page.model.names[f])"),
          ["main", "compute(int, char const*)", "hot"], "callees")
    page.search("")
    page.press("by-module")
    equal(page.evaluate("[...document.querySelectorAll('#rows tr')].map(r => r.children[2].textContent + ' ' + r.children[0].textContent)")[:2],
          ["work 66.7 %", "</script> 22.2 %"], "modules")
    page.press("by-function")
    page.evaluate("document.querySelector('[data-order=total]').click()")
    equal(page.attribute_of("th[aria-sort]", "textContent"), "Total")
    equal(page.evaluate("document.querySelector('#rows tr').children[1].textContent"), "77.8 %", "the process")
    page.evaluate("document.querySelector('[data-order=self]').click()")
    page.press("sandwich-close")
    page.press("tab-flame")


def themes_and_sizes(page):
    width = page.evaluate(page.element("graph") + ".clientWidth")
    page.resize(900, 500)
    page.settle()
    equal(page.evaluate(page.element("graph") + ".clientWidth"), width - 380)
    page.resize(1280, 760)
    page.settle()
    before = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.press("theme")
    equal(page.evaluate("getComputedStyle(document.body).backgroundColor") != before, True)
    page.press("theme")


def hostile_names(page):
    page.tip(2, 0.9)
    equal(page.text("tooltip").startswith("</script><script>alert(1)</script>"), True, page.text("tooltip"))
    equal(page.dialogs, [], "nothing ran")
    equal(page.evaluate("document.querySelectorAll('script, img').length"), 2)


def quiet(page):
    equal(page.console, [], "console")
    equal([url for url in page.requests if not url.startswith("file://")], [], "requests")
    equal(len(page.requests), 1)


def empty(page):
    write_page(page, "empty")
    equal(page.label().split(", self")[0], "Flame graph, Samples, all: 0 samples (0 %)")
    page.press("callers")
    page.press("tab-functions")
    equal(page.search("x"), "0.0 % matched")
    quiet(page)


def write_page(page, *arguments):
    with open(page.path, "wb") as file:
        subprocess.run([sys.argv[1], "html", *arguments], check=True, stdout=file)
    page.console, page.requests = [], []
    page.open("file://" + page.path)


def large(page):
    """100,000 nodes: loads, zooms, searches, and says how long that took."""
    page.console, page.requests = [], []
    with open(page.path, encoding="utf-8") as file:
        html = file.read()
    start = '<script type="application/json" id="data">'
    head, rest = html.split(start)
    with open(page.path, "w", encoding="utf-8") as file:
        file.write(head + start + json.dumps(large_data(100_000)) + rest[rest.index("</script>"):])
    page.open("file://" + page.path)
    took = page.evaluate("""(async () => {
      const frame = () => new Promise(done => requestAnimationFrame(() => setTimeout(done)));
      const time = async action => { const t = performance.now(); await action(); await frame(); return Math.round(performance.now() - t); };
      const canvas = document.getElementById("graph"), search = document.getElementById("search");
      const key = name => canvas.dispatchEvent(new KeyboardEvent("keydown", { key: name, bubbles: true }));
      return { search: await time(() => { search.value = "f1"; search.dispatchEvent(new Event("input")); }),
        zoom: await time(() => { key("ArrowDown"); key("ArrowDown"); key("Enter"); }),
        reset: await time(() => key("Escape")),
        bottom_up: await time(() => document.getElementById("callers").click()) }; })()""")
    print("# milliseconds with 100,000 nodes, a frame included:", json.dumps(took))
    quiet(page)


def large_data(count):
    random.seed(1)
    parents, depth = [-1], [0]
    while len(parents) < count:
        parent = random.randrange(len(parents))
        if depth[parent] < 60:
            parents.append(len(parents) - parent)
            depth.append(depth[parent] + 1)
    weights = [int(random.paretovariate(1.1) * 1e6) for _ in parents]
    return {"title": "large", "host": "", "start_ms": 0, "duration_ns": 1, "kinds": ["native"],
            "measures": [{"name": "CPU time", "unit": "ns", "columns": [0], "samples_columns": [1], "sources": [0]}],
            "thread_count": 1,
            "processes": [{"name": "p", "pid": 1}], "threads": [{"name": "t", "tid": 1, "process": 0, "count": 1}],
            "functions": {"name": list(range(400)), "file": [-1] * 400, "line": [0] * 400,
                          "module": [-1] * 400, "kind": [0] * 400},
            "strings": [f"f{i}" for i in range(400)],
            "nodes": {"parent": parents, "function": [random.randrange(400) for _ in parents]},
            "rows": {"per_thread": [count], "node": list(range(count)),
                     "values": [weights, [1] * count]}}


TESTS = [totals, tooltip, zoom, search, flip, bottom_up, selection, measures, keyboard, functions,
         themes_and_sizes, hostile_names, quiet, empty, large]


def run(test, number, page):
    try:
        test(page)
        print(f"ok {number} - {test.__name__}")
        return True
    except Exception as error:  # the next test may still tell more
        print(f"not ok {number} - {test.__name__}\n# {type(error).__name__}: {error}")
        return False


def main():
    if find_chromium() is None:
        print("1..0 # SKIP no chromium")
        return 0
    print(f"1..{len(TESTS)}")
    page = Page()
    try:
        with tempfile.TemporaryDirectory() as directory:
            page.path = os.path.join(directory, "flamegraph.html")
            for scheme in ("light", "dark") if len(sys.argv) > 2 else ():
                page.prefer(scheme)
                write_page(page)
                page.screenshot(os.path.join(sys.argv[2], f"flamegraph-{scheme}.png"))
            write_page(page)
            passed = [run(test, number, page) for number, test in enumerate(TESTS, 1)]
    finally:
        page.close()
    return 0 if all(passed) else 1


sys.exit(main())
