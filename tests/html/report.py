#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""report.html of real results in a real browser; sums that it shows are those of profile.json. TAP.

  report.py KYMO E2E-DIRECTORY FAKE-CUDA-DIRECTORY NCCL_WRITE [SCREENSHOT-DIRECTORY]
"""
import base64
import collections
import glob
import json
import os
import random
import re
import shutil
import sys

sys.path.insert(0, sys.argv[2] if len(sys.argv) > 2 else ".")
from browser import Browser, find_chromium  # noqa: E402
from harness import Kymo, Scratch, Skipped, Tap, expect, run  # noqa: E402
from devices import CALL_PATHS  # noqa: E402

HOSTILE = b"</script><b>\"quote'&lt;\xff"
SOURCE = r"""
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>
static volatile double sum;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
__attribute__((noinline)) void parse(long n)
{
	for (long i = 0; i < n; i++)
		sum += (double)i; /* the hot line */
}
__attribute__((noinline)) static void allocate(void) { for (int i = 0; i < 2000; i++) { char *p = malloc(100); memset(p, i, 100); if (i % 10) free(p); } }
static void *worker(void *x)
{
	prctl(PR_SET_NAME, "</script><b>\"\xff");
	for (int i = 0; i < 20; i++) {
		pthread_mutex_lock(&lock);
		parse(1500000);
		pthread_mutex_unlock(&lock);
		usleep(2000);
	}
	allocate();
	return x;
}
int main(void)
{
	pthread_t t[2];
	for (int i = 0; i < 2; i++) pthread_create(&t[i], 0, worker, 0);
	for (int i = 0; i < 2; i++) pthread_join(t[i], 0);
	return 0;
}
"""
PYTHON = """
import time
def parse(n):
    return sum(i * i % 7 for i in range(n))
for _ in range(12):
    parse(60000)
    time.sleep(0.005)
"""
VIEWS = ["overview", "timeline", "flame", "functions", "source"]
START = '<script type="application/json" id="data">'
# Texts whose contrast with what is behind them is below 4.5; canvases are not seen here.
LOW_CONTRAST = """(() => {
  const parse = text => { const n = text.match(/[\\d.]+/g).map(Number); return n.length === 3 ? [...n, 1] : n; };
  const light = ([r, g, b]) => { const f = v => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; return 0.2126 * f(r) + 0.7152 * f(g) + 0.0722 * f(b); };
  const behind = e => { const layers = []; for (; e; e = e.parentElement) { const c = parse(getComputedStyle(e).backgroundColor); layers.push(c); if (c[3] === 1) break; }
    let out = [255, 255, 255]; for (const c of layers.reverse()) out = out.map((v, i) => v * (1 - c[3]) + c[i] * c[3]); return out; };
  const low = [];
  for (const e of document.querySelectorAll("body *")) {
    if (!e.checkVisibility || !e.checkVisibility() || ![...e.childNodes].some(n => n.nodeType === 3 && n.data.trim())) continue;
    const a = light(parse(getComputedStyle(e).color)), b = light(behind(e));
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) low.push(`${e.tagName} ${e.id} ${e.className} "${e.textContent.slice(0, 30)}" ${ratio.toFixed(2)}`);
  }
  return low; })()"""


def equal(found, expected, what=""):
    if found != expected:
        raise AssertionError(f"{what}: {found!r} instead of {expected!r}")


def format_ns(value):
    """As the page writes times; this is not its code."""
    for size, name in ((1e9, "s"), (1e6, "ms"), (1e3, "µs")):
        if value >= size:
            number = value / size
            return f"{number:.{0 if number >= 100 else 1 if number >= 10 else 2}f} {name}"
    return f"{round(value)} ns"


class Page(Browser):
    def show(self, path):
        self.console, self.requests, self.dialogs = [], [], []
        self.open("file://" + path)

    def view(self, name):
        self.evaluate(f"document.getElementById('tab-{name}').click()")
        self.settle()

    def text(self, selector):
        return self.evaluate(f"document.querySelector({json.dumps(selector)}).textContent")

    def all(self, selector):
        return self.evaluate(f"[...document.querySelectorAll({json.dumps(selector)})].map(e => e.textContent)")

    def choose(self, name, label):
        self.evaluate(f"""(() => {{ const select = document.getElementById({json.dumps(name)});
            const option = [...select.options].find(o => o.text.startsWith({json.dumps(label)}));
            select.value = option.value; select.dispatchEvent(new Event("change")); }})()""")
        self.settle()

    def search(self, pattern):
        self.evaluate(f"""(() => {{ const input = document.getElementById("search");
            input.value = {json.dumps(pattern)}; input.dispatchEvent(new Event("input")); }})()""")
        self.settle()
        return self.text("#matched")

    def select_all(self):
        self.view("timeline")
        self.evaluate("page.views.timeline.canvas.show(0, 1e18)")
        self.evaluate("document.getElementById('timeline').focus()")
        self.key("Enter")
        return self.text("#selected-sums")

    def table(self, selector):
        return self.evaluate(f"""[...document.querySelectorAll({json.dumps(selector + ' tbody tr')})].map(row => [...row.cells].map(c => c.textContent))""")

    def quiet(self):
        equal(self.console, [], "console")
        equal(self.dialogs, [], "dialogs")
        equal([url for url in self.requests if not url.startswith("file://")], [], "requests")

    def views(self):
        return self.evaluate("Object.keys(page.views)")


class Report:
    """Results, and the page that shows one after the other."""

    def __init__(self, scratch, page):
        self.kymo, self.scratch, self.page = Kymo(sys.argv[1]), scratch, page
        self.fake, self.nccl_write = (os.path.abspath(path) for path in sys.argv[3:5])

    def build(self, name, source, *options):
        program = self.scratch.path(name)
        if not os.path.exists(program):
            with open(program + ".c", "w", encoding="utf-8") as stream:
                stream.write(source)
            made = run(["cc", "-O1", "-g", program + ".c", "-o", program, "-pthread", "-ldl", *options])
            expect(made.status == 0, f"{made}")
        return program

    def record(self, name, command, *options, **how):
        directory = self.scratch.path(name)
        if not os.path.isdir(directory):
            ended = self.kymo.sample(command, directory, *options, **how)
            expect(ended.status == 0, f"{ended}")
        with open(os.path.join(directory, "profile.json"), encoding="utf-8", errors="replace") as stream:
            profile = json.load(stream)
        self.page.show(os.path.join(directory, "report.html"))
        return profile

    # What every page must do, and the sums of each measure.
    def check(self, profile):
        page, totals = self.page, collections.Counter(profile["totals"])
        wanted = {"CPU time": totals["cpu_ns"], "Blocked": totals["blocked_ns"], "Waiting for a CPU": totals["runnable_ns"],
                  "Wall time": totals["cpu_ns"] + totals["blocked_ns"] + totals["runnable_ns"]}
        for name in page.evaluate("page.data.measures.map(m => m.name)"):
            page.choose("measure", name)
            page.view("flame")
            label = page.evaluate("document.getElementById('graph').getAttribute('aria-label')")
            if name not in wanted:
                continue
            equal(page.evaluate("page.tree().total[0]"), wanted[name], name)
            expect(f", {name}, all: {format_ns(wanted[name])} (" in ", " + label.split(", ", 1)[1], label)
            page.view("functions")
            equal(page.evaluate("page.views.functions.groups.self.reduce((a, b) => a + b, 0)"), wanted[name], f"functions, {name}")
            page.evaluate("document.getElementById('by-module').click()")
            equal(page.evaluate("page.views.functions.groups.self.reduce((a, b) => a + b, 0)"), wanted[name], f"modules, {name}")
            page.evaluate("document.getElementById('by-function').click()")
        page.evaluate("page.measure = page.data.measures[0]; page.changed()")
        self.check_timeline(profile, totals)
        for view in page.views():
            page.view(view)
        page.quiet()

    def check_timeline(self, profile, totals):
        page, unsampled = self.page, sum(it["self_ns"] for it in profile["functions"] if it["name"] == "[unsampled]")
        if profile["measure"] not in ("cpu_time", "real_time") or "timeline" not in page.views():
            return
        said = page.select_all()
        for words, value in (("running", totals["cpu_ns"] - unsampled), ("blocked", totals["blocked_ns"]), ("waiting for a CPU", totals["runnable_ns"])):
            if value:
                expect(f"{words} {format_ns(value)}" in said, f"{words} {format_ns(value)}: {said}")
        if unsampled:
            expect(f"{format_ns(unsampled)} of CPU time is in no sample" in page.text("#timeline-note"), page.text("#timeline-note"))

    def cpu_time(self):
        self.check(self.record("cpu", [self.build("work", SOURCE)]))

    def real_time_and_regions(self):
        profile = self.record("real", [self.build("work", SOURCE)], "--realtime", "--trace-thread-locks", "--trace-memory")
        self.check(profile)
        self.page.view("overview")
        wanted = collections.Counter()
        for node in profile["region_nodes"]:
            wanted[node["name"]] += node["count"]
        rows = {row[-1].split(": ")[-1]: row for row in self.page.table("#view-overview section:has(h2) .table") if row[-1].split(": ")[-1] in wanted}
        equal({name: int(row[0].replace(",", "")) for name, row in rows.items()}, dict(wanted), "calls of regions")
        self.page.select_all()
        found = {row[-1]: int(row[0].replace(",", "")) for row in self.page.table("#selected .tables > div:last-child")}
        equal(found, dict(wanted), "regions of the timeline")
        with open(self.scratch.path("real/memory.json"), encoding="utf-8") as stream:
            sites = [site for process in json.load(stream)["processes"] for site in process["sites"]]
        for name, key in (("Allocated memory", "allocated_bytes"), ("Allocations", "allocations")):
            self.page.choose("measure", name)
            equal(self.page.evaluate("page.tree().total[0]"), sum(site[key] for site in sites), name)

    def summary_is_here(self):
        """Facts, warnings and losses are those that the command prints."""
        self.record("real", [self.build("work", SOURCE)])
        ended = self.kymo.report(self.scratch.path("real"))
        printed = " ".join(ended.stdout.decode().split())
        self.page.view("overview")
        paragraphs = self.page.all("#view-overview section > p:not(.note)")
        missing = [text for text in paragraphs if " ".join(text.split()) not in printed and not text.startswith("running ")]
        expect(len(paragraphs) > 6 and not missing, f"{missing}")

    def source_lines(self):
        self.record("cpu", [self.build("work", SOURCE)])
        self.page.view("source")
        expect(self.page.text("#source-file option:checked").endswith("work.c"), self.page.text("#source-file option:checked"))
        rows = sorted(self.page.table("#source-table"), key=lambda row: -float((row[0] or "0").split()[0]))
        expect("the hot line" in rows[0][3] or "for (long" in rows[0][3], f"{rows[0]}")
        equal(self.page.search("the hot line"), "1 line")
        self.page.search("")

    def instructions(self):
        """The costs of a function's instructions are those of profile.json's function."""
        profile = self.record("cpu", [self.build("work", SOURCE)])
        function = self.page.evaluate("page.data.assembly.functions.find(f => page.data.strings[f.name] === 'parse')")
        if function is None and not self.page.evaluate("page.data.assembly"):
            raise Skipped("kymo is built without Zydis")
        wanted = sum(it["self_ns"] for it in profile["functions"] if it["name"] == "parse")
        equal(sum(cost[2] for cost in function["costs"]), wanted, "parse")
        self.page.view("source")
        self.page.choose("source-file", "parse (work)")
        rows = self.page.table("#source-table")
        objdump = run(["objdump", "-d", "-M", "intel", "--no-show-raw-insn", "--disassemble=parse", self.scratch.path("work")]).stdout.decode()
        places = [int(line.split(":")[0], 16) for line in objdump.splitlines() if re.match(r" +[0-9a-f]+:\t", line)]
        equal([int(row[2], 16) for row in rows], [place - places[0] for place in places][:len(rows)], "instructions begin where objdump says")

    def python(self):
        script = self.scratch.path("program.py")
        with open(script, "w", encoding="utf-8") as stream:
            stream.write(PYTHON)
        self.check(self.record("python", [sys.executable, script], "--realtime"))
        self.page.view("source")
        equal("program.py" in " ".join(self.page.all("#source-file option")), True, "the script is among the files")

    def devices(self):
        program = self.build("call_paths", CALL_PATHS)
        profile = self.record("devices", [program, "thread"], "--gpu", "--realtime", environment={"LD_LIBRARY_PATH": self.fake})
        self.check(profile)
        paths = profile["devices"]["paths"]["all"]
        self.page.choose("measure", "Device time")
        equal(self.page.evaluate("page.tree().total[0]"), paths["device_ns"], "device time")
        self.page.select_all()
        rows = {(row[2], row[3]): int(row[0].replace(",", "")) for row in self.page.table("#selected .tables > div:last-child")}
        equal((rows[("kernels", "nothing")], rows[("copies", "[copy host to device]")]), (paths["kernels"], paths["copies"]), "kernels and copies")

    def nccl(self):
        os.makedirs(self.scratch.path("nccl"), exist_ok=True)
        expect(run([self.nccl_write, self.scratch.path("nccl")]).status == 0, "no records")
        merged = run([self.kymo.path, "merge", "-q", *sorted(glob.glob(self.scratch.path("nccl/rank?"))), "-o", self.scratch.path("nccl/all")])
        expect(merged.status == 0, f"{merged}")
        ended = self.kymo.report(self.scratch.path("nccl/all"), "--format", "report,nccl-operations", "-o", self.scratch.path("nccl/out/"))
        expect(ended.status == 0, f"{ended}")
        self.page.show(self.scratch.path("nccl/out/report.html"))
        self.page.select_all()
        rows = {row[3]: int(row[0].replace(",", "")) for row in self.page.table("#selected .tables > div:last-child")}
        wanted = collections.Counter()
        for path in glob.glob(self.scratch.path("nccl/out/**/*operations*"), recursive=True):
            with open(path, encoding="utf-8") as stream:
                wanted.update(json.loads(line).get("function") for line in stream if line.startswith("{"))
        for name in ("AllReduce", "Send", "AllGather"):
            equal(rows["enqueue " + name], wanted[name], f"{name}: {wanted}")
        self.page.quiet()

    def hostile_names(self):
        if not shutil.which("objcopy"):
            raise Skipped("no objcopy")
        program = self.build("work", SOURCE)
        names = self.scratch.path("names")
        with open(names, "wb") as stream:
            stream.write(b"parse " + HOSTILE + b"\n")
        object_file, hostile = self.scratch.path("hostile.o"), self.scratch.path("<b>\"'\n&lt;")
        made = run(["cc", "-O1", "-c", program + ".c", "-o", object_file])
        made = made if made.status else run(["objcopy", "--redefine-syms", names, object_file])
        made = made if made.status else run(["cc", object_file, "-o", hostile, "-pthread"])
        expect(made.status == 0, f"{made}")
        self.check(self.record("hostile", [hostile, "</script><script>alert(1)</script>"], "--realtime"))
        shown = HOSTILE.decode(errors="replace")
        self.page.view("functions")
        expect(shown in self.page.all("#rows button"), self.page.all("#rows button")[:4])
        expect(any(text.startswith("</script><b>") for text in self.page.all("#selection option")), "the thread's name")
        equal(self.page.evaluate("document.querySelectorAll('script, img, b').length"), 2, "elements from names")
        expect("</script><script>" in self.page.text("#title"), self.page.text("#title"))

    def nothing_recorded(self):
        directory = self.scratch.path("empty")
        ended = self.kymo.sample(["true"], directory)
        expect(ended.status == 0, f"{ended}")
        self.page.show(os.path.join(directory, "report.html"))
        for view in self.page.views():
            self.page.view(view)
        self.page.search("x")
        self.page.quiet()

    def keyboard(self):
        page = self.page
        self.record("real", [self.build("work", SOURCE)])
        for number, name in enumerate(page.views(), 1):
            page.key(str(number))
            equal(page.evaluate("page.current"), name)
        page.view("timeline")
        page.evaluate("document.getElementById('timeline').focus()")
        whole = page.evaluate("page.views.timeline.canvas.to - page.views.timeline.canvas.from")
        page.key("+")
        equal(page.evaluate("page.views.timeline.canvas.to - page.views.timeline.canvas.from"), whole / 2, "zoomed in")
        from_ns = page.evaluate("page.views.timeline.canvas.from")
        page.key("ArrowRight")
        expect(page.evaluate("page.views.timeline.canvas.from") > from_ns, "panned")
        for _ in range(60):
            page.key("w")
        equal(page.evaluate("page.views.timeline.canvas.to - page.views.timeline.canvas.from"), 10, "as far as 10 ns")
        page.key("0")
        expect(page.search("parse").endswith(" hits"), "hits")
        page.evaluate("document.getElementById('timeline').focus()")
        page.key("n")
        expect("parse" in page.text("#status") or "waiting" in page.text("#status"), page.text("#status"))
        page.search("")
        page.key("Enter")
        equal(page.evaluate("document.getElementById('selected').hidden"), False)
        page.evaluate("document.getElementById('timeline').focus()")
        page.key("Escape")
        equal(page.evaluate("document.getElementById('selected').hidden"), True)

    def mouse(self):
        """A drag selects, the wheel zooms at the pointer."""
        page = self.page
        self.record("real", [self.build("work", SOURCE)])
        page.view("timeline")
        left, top = page.evaluate("(r => [r.left, r.top])(document.getElementById('timeline').getBoundingClientRect())")
        page.mouse("mousePressed", left + 400, top + 10)
        page.call("Input.dispatchMouseEvent", type="mouseMoved", x=left + 700, y=top + 12, button="left", buttons=1)
        page.mouse("mouseReleased", left + 700, top + 12)
        page.settle()
        length = page.evaluate("page.views.timeline.canvas.selection.to - page.views.timeline.canvas.selection.from")
        expect(abs(length - page.evaluate("300 / page.views.timeline.canvas.scale()")) < 2, f"{length}")
        before = page.evaluate(f"page.views.timeline.canvas.time({600})")
        page.call("Input.dispatchMouseEvent", type="mouseWheel", x=left + 600, y=top + 60, deltaX=0, deltaY=-200)
        page.settle()
        expect(abs(page.evaluate(f"page.views.timeline.canvas.time({600})") - before) < 1000, "the time at the pointer stays")
        expect(page.evaluate("page.views.timeline.canvas.from") > 0, "zoomed")

    def contrast(self):
        page = self.page
        for scheme in ("light", "dark"):
            page.prefer(scheme)
            self.record("real", [self.build("work", SOURCE)])
            page.select_all()
            for view in page.views():
                page.view(view)
                equal(page.evaluate(LOW_CONTRAST), [], f"{view}, {scheme}")
            page.call("DOM.enable")
            page.call("CSS.enable")
            root = page.call("DOM.getDocument")["root"]["nodeId"]
            for view in page.views():
                page.view(view)
                nodes = page.call("DOM.querySelectorAll", nodeId=root, selector="button, tr, select")["nodeIds"]
                for node in nodes[:300]:
                    page.call("CSS.forcePseudoState", nodeId=node, forcedPseudoClasses=["hover"])
                equal(page.evaluate(LOW_CONTRAST), [], f"{view}, {scheme}, hover")
        page.prefer("light")

    def sizes(self):
        page = self.page
        for width in (400, 760, 1280, 4000):
            page.resize(width, 900)
            self.record("real", [self.build("work", SOURCE)])
            for view in page.views():
                page.view(view)
                expect(page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{view} is wider than {width}")
                if len(sys.argv) > 5:
                    page.screenshot(os.path.join(sys.argv[5], f"report-{view}-{width}.png"))
            page.view("timeline")
            expect(page.evaluate("page.views.timeline.canvas.drawn") > 0, f"nothing is drawn at {width}")
        page.resize(1280, 760)

    def too_much_is_added_up(self):
        """More samples and calls than a page holds: sums stay, and the page says so."""
        source = SOURCE.replace("for (int i = 0; i < 20; i++) {", "for (int i = 0; i < 90000; i++) {").replace("parse(1500000)", "parse(10)").replace("usleep(2000)", "parse(1)")
        profile = self.record("added-up", [self.build("many", source)], "--trace-thread-locks", "--realtime")
        self.check(profile)
        note = self.page.text("#timeline-note")
        expect(re.search(r"[\d,]+ regions, calls and kernels shorter than .* are added up", note), note)
        self.page.select_all()
        wanted = collections.Counter()
        for node in profile["region_nodes"]:
            wanted[node["name"]] += node["count"]
        found = {row[-1]: int(row[0].replace(",", "")) for row in self.page.table("#selected .tables > div:last-child")}
        equal(found, {name: wanted[name] for name in found}, "calls of the timeline")
        expect(os.path.getsize(self.scratch.path("added-up/report.html")) < 10_000_000, "the page is too large")

    def large(self):
        """100,000 nodes and 200,000 slices: how long it takes to open, and hits narrower than a pixel."""
        with open(self.scratch.path("real/report.html"), encoding="utf-8") as stream:
            head, rest = stream.read().split(START)
        path = self.scratch.path("large.html")
        with open(path, "w", encoding="utf-8") as stream:
            stream.write(head + START + json.dumps(large_data(100_000, 200_000)) + rest[rest.index("</script>"):])
        page = self.page
        page.show(path)
        took = page.evaluate("""(async () => {
          const frame = () => new Promise(done => requestAnimationFrame(() => setTimeout(done)));
          const time = async action => { const t = performance.now(); await action(); await frame(); return Math.round(performance.now() - t); };
          const input = document.getElementById("search"), view = page.views.timeline;
          const search = text => { input.value = text; input.dispatchEvent(new Event("input")); };
          const opened = Math.round(performance.getEntriesByType("navigation")[0].loadEventEnd);
          return { opened, timeline: await time(() => page.showView("timeline")), draw: await time(() => view.canvas.draw()), zoomed: await time(() => { view.canvas.zoom(0.1); view.canvas.draw(); view.canvas.zoom(10); view.canvas.draw(); }),
            search: await time(() => search("needle")), select: await time(() => view.selectView()), flame: await time(() => page.showView("flame")), functions: await time(() => page.showView("functions")) }; })()""")
        print("# milliseconds with 100,000 nodes and 200,000 slices:", json.dumps(took), f"{os.path.getsize(path):,} bytes", flush=True)
        page.view("timeline")
        equal(page.text("#matched"), "3 hits")
        page.evaluate("page.views.timeline.clear()")
        page.settle()
        pixels = page.evaluate("""(() => { const c = document.getElementById("timeline"), k = document.createElement("canvas");
            Object.assign(k, { width: c.width, height: c.height }); const x = k.getContext("2d"); x.drawImage(c, 0, 0);
            const d = x.getImageData(0, 0, c.width, c.height).data; let n = 0;
            for (let i = 0; i < d.length; i += 4) if (d[i] > 180 && d[i + 2] > 120 && d[i + 1] < 130) n++; return n; })()""")
        expect(pixels >= 3 * 2 * 10, f"{pixels} pixels of hits")
        page.quiet()


def pack(numbers):
    packed = bytearray()
    for number in numbers:
        while number >= 128:
            packed.append(number & 127 | 128)
            number >>= 7
        packed.append(number)
    return base64.b64encode(packed).decode()


def large_data(node_count, slice_count):
    random.seed(1)
    parents, depth = [-1], [0]
    while len(parents) < node_count:
        parent = random.randrange(len(parents))
        if depth[parent] < 60:
            parents.append(len(parents) - parent)
            depth.append(depth[parent] + 1)
    threads, per_track = 40, slice_count // 80
    duration = per_track * 1_000_000
    tracks, columns = [], [[], [], [], []]
    for thread in range(threads):
        for kind in ("samples", "regions"):
            tracks.append({"kind": kind, "process": 0, "thread": thread, "name": -1, "owner": -1, "count": per_track})
            for i in range(per_track):
                needle = kind == "regions" and thread == 7 and i in (100, 1200, 2000)
                columns[0].append(0 if i == 0 else 2_000_000)
                columns[1].append(1_000_000 if kind == "samples" else 700_000)
                columns[2].append(random.randrange(node_count) * 5 if kind == "samples" else 401 if needle else 400)
                columns[3].append(1)
    weights = [int(random.paretovariate(1.1) * 1e6) for _ in parents]
    nothing = {"merged": 0, "entries": 0, "length_ns": 0, "span_ns": 0}
    return {"title": "large", "host": "", "start_ms": 0, "duration_ns": duration, "thread_count": threads, "kinds": ["native"],
            "measures": [{"name": "CPU time", "unit": "ns", "columns": [0], "samples_columns": [1], "sources": [0]}],
            "processes": [{"name": "p", "pid": 1}],
            "threads": [{"name": "t", "tid": i + 1, "process": 0, "count": 1} for i in range(threads)],
            "functions": {"name": list(range(400)), "file": [-1] * 400, "line": [0] * 400, "module": [-1] * 400, "kind": [0] * 400},
            "strings": [f"f{i}" for i in range(400)] + ["call", "needle"],
            "nodes": {"parent": parents, "function": [random.randrange(400) for _ in parents], "left_out": 0},
            "rows": {"per_thread": [node_count] + [0] * (threads - 1), "node": list(range(node_count)), "values": [weights, [1] * node_count]},
            "summary": [["line", "exit status 0"]], "heaviest": [],
            "timeline": {"sources": 5, "offset_ns": 0, "duration_ns": duration, "tracks": tracks, "start": pack(columns[0]),
                         "duration": pack(columns[1]), "name": pack(columns[2]), "number": pack(columns[3]),
                         "samples": nothing, "spans": nothing, "other_threads": 0}}


def main():
    if find_chromium() is None:
        print("1..0 # SKIP no chromium")
        return
    tap, page = Tap(), Page(limit_s=120)
    try:
        with Scratch() as scratch:
            report = Report(scratch, page)
            for test in (report.cpu_time, report.real_time_and_regions, report.summary_is_here, report.source_lines, report.instructions, report.python,
                         report.devices, report.nccl, report.hostile_names, report.nothing_recorded, report.keyboard, report.mouse,
                         report.contrast, report.sizes, report.too_much_is_added_up, report.large):
                tap.point(test.__name__, test)
    finally:
        page.close()
    tap.finish()


if __name__ == "__main__":
    main()
