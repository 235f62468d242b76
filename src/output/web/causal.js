// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: the kymo authors
//
// The page of a causal profile. Text from the profile becomes text nodes only, never markup.
"use strict";

const SVG = "http://www.w3.org/2000/svg";
const SHOWN = 6; // curves at first

const byId = id => document.getElementById(id);

function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

function drawn(name, attributes, text) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

const signed = (value, digits = 1) => (value < 0 ? "−" : "+") + Math.abs(value).toFixed(digits);
const percent = value => signed(value) + " %";

function duration(ns) {
  for (const [unit, size] of [["s", 1e9], ["ms", 1e6], ["µs", 1e3]])
    if (ns >= size) return `${(ns / size).toPrecision(3)} ${unit}`;
  return `${Math.round(ns)} ns`;
}

// ---- one curve ----

const VIEW = { width: 360, height: 210, left: 46, right: 22, top: 10, bottom: 34 };

function axisStep(span) {
  const rough = span / 5, size = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 5, 10].map(factor => factor * size).find(step => step >= rough);
}

// The same for all curves of a point, so that they can be compared.
function gainRange(targets) {
  let low = 0, high = 10;
  for (const target of targets)
    for (const [, , from, to] of target.points) {
      low = Math.min(low, Math.max(from, -100));
      high = Math.max(high, Math.min(to, 100));
    }
  return [low, high];
}

function drawAxes(svg, x, y, [low, high]) {
  const step = axisStep(high - low);
  for (let gain = Math.ceil(low / step) * step; gain <= high; gain += step) {
    const line = { x1: x(0), x2: x(100), y1: y(gain), y2: y(gain) };
    svg.append(drawn("line", { ...line, class: Math.abs(gain) < step / 2 ? "zero" : "grid" }),
      drawn("text", { x: VIEW.left - 6, y: y(gain) + 4, "text-anchor": "end" },
        `${Math.round(gain * 10) / 10} %`));
  }
  for (const speedup of [0, 25, 50, 75, 100])
    svg.append(drawn("text", { x: x(speedup), y: VIEW.height - VIEW.bottom + 16, "text-anchor": "middle" },
      `${speedup} %`));
  svg.append(drawn("text", { x: (x(0) + x(100)) / 2, y: VIEW.height - 4, "text-anchor": "middle" },
    "target faster by"));
}

function drawCurve(target, range) {
  const svg = drawn("svg", { viewBox: `0 0 ${VIEW.width} ${VIEW.height}`, role: "img",
    "aria-label": `Gain over speedup of ${target.name}` });
  const x = speedup => VIEW.left + speedup / 100 * (VIEW.width - VIEW.left - VIEW.right);
  const inside = gain => Math.min(Math.max(gain, range[0]), range[1]);
  const y = gain => VIEW.top + (range[1] - inside(gain)) / (range[1] - range[0]) *
    (VIEW.height - VIEW.top - VIEW.bottom);
  const points = [[0, 0, 0, 0, 0, 0], ...target.points];
  const line = index => points.map(point => `${x(point[0])},${y(point[index])}`);
  drawAxes(svg, x, y, range);
  svg.append(drawn("polygon", { class: "band", points: [...line(3), ...line(2).reverse()].join(" ") }),
    drawn("polyline", { class: "curve", points: line(1).join(" ") }));
  for (const [speedup, gain, low, high, windows, visits] of target.points) {
    const dot = drawn("circle", { class: "dot", cx: x(speedup), cy: y(gain), r: 3.5 });
    dot.append(drawn("title", {}, `${speedup} % faster: ${percent(gain)} (${signed(low)} to ${signed(high)}), ` +
      `${windows} experiments, ${visits} visits`));
    svg.append(drawn("line", { class: "whisker", x1: x(speedup), x2: x(speedup), y1: y(low), y2: y(high) }), dot);
  }
  return svg;
}

// ---- the page ----

class Report {
  constructor(data) {
    this.data = data;
    this.order = "rank";
    this.descending = false;
    byId("title").textContent = data.command ? `Causal profile of ${data.command}` : "Causal profile";
    byId("subtitle").textContent = `${data.experiments} experiments in ${duration(data.measured_ns)}, ` +
      `${data.baselines} of them without a speedup` + (data.runs > 1 ? `, in ${data.runs} runs` : "") +
      (data.disturbed ? `; ${data.disturbed} that took far longer than others like them were left out` : "");
    byId("warnings").append(...data.warnings.map(text => element("li", { textContent: text })));
    data.points.forEach((point, index) => {
      point.targets.forEach((target, rank) => { target.rank = target.ranked ? rank + 1 : Infinity; });
      byId("point").append(element("option", { value: index, textContent: point.name }));
    });
    byId("point").addEventListener("change", event => this.show(Number(event.target.value)));
    byId("theme").addEventListener("click", () =>
      this.setTheme(document.documentElement.dataset.theme !== "dark"));
    for (const button of document.querySelectorAll("[data-order]"))
      button.addEventListener("click", () => this.sort(button.dataset.order));
    this.setTheme(matchMedia("(prefers-color-scheme: dark)").matches);
    this.show(0);
  }

  setTheme(dark) {
    document.documentElement.dataset.theme = dark ? "dark" : "light";
  }

  show(index) {
    this.point = this.data.points[index] ?? { name: "", targets: [], baseline_ns: 0 };
    this.chosen = new Set(this.point.targets.filter(target => target.ranked).slice(0, SHOWN));
    byId("baseline").textContent = this.point.baseline_ns
      ? `${this.point.baseline} ${duration(this.point.baseline_ns)} without a speedup.`
      : "There is nothing to predict from.";
    this.drawRanking();
    this.drawCurves();
    this.drawSource();
  }

  sort(order) {
    this.descending = this.order === order ? !this.descending : !["rank", "name"].includes(order);
    this.order = order;
    this.drawRanking();
  }

  sorted() {
    const key = { rank: t => t.rank, name: t => t.name, best: t => t.best[0], slope: t => t.slope[0],
      self: t => t.self, total: t => t.total }[this.order];
    const before = (a, b) => a < b ? -1 : a > b ? 1 : 0;
    return [...this.point.targets].sort((a, b) =>
      before(key(a), key(b)) * (this.descending ? -1 : 1) || before(a.name, b.name));
  }

  drawRanking() {
    for (const button of document.querySelectorAll("[data-order]")) {
      if (button.dataset.order === this.order)
        button.parentElement.setAttribute("aria-sort", this.descending ? "descending" : "ascending");
      else button.parentElement.removeAttribute("aria-sort");
    }
    byId("rows").replaceChildren(...this.sorted().map(target => this.row(target)));
  }

  row(target) {
    const known = target.points.length > 0, [best, low, high] = target.best;
    const name = element("td", {}, target.name);
    const row = element("tr", { tabIndex: 0, className: target.ranked ? "" : "unknown" },
      element("td", { textContent: target.ranked ? target.rank : "?" }), name,
      element("td", { textContent: known ? percent(best) : "", className: low > 0 ? "good" : high < 0 ? "bad" : "" }),
      element("td", { textContent: known ? `${signed(low)} … ${signed(high)}` : "" }),
      element("td", { textContent: known ? `${Math.round(target.reach)} %` : "" }),
      element("td", { textContent: known ? signed(10 * target.slope[0], 2) : "" }),
      element("td", { textContent: target.self.toFixed(1) + " %" }),
      element("td", { textContent: target.total.toFixed(1) + " %" }));
    if (target.place) name.append(" ", element("span", { className: "place", textContent: target.place }));
    for (const text of target.warnings) name.append(element("span", { className: "why", textContent: text }));
    const choose = () => {
      if (!this.chosen.delete(target) && known) this.chosen.add(target);
      row.setAttribute("aria-selected", this.chosen.has(target));
      this.drawCurves();
    };
    row.setAttribute("aria-selected", this.chosen.has(target));
    row.addEventListener("click", choose);
    row.addEventListener("keydown", event => { if (event.key === "Enter") choose(); });
    return row;
  }

  drawCurves() {
    const shown = this.point.targets.filter(target => this.chosen.has(target));
    const range = gainRange(shown);
    byId("curves").replaceChildren(...shown.map(target => element("figure", {},
      element("figcaption", { textContent: target.name, title: target.name }), drawCurve(target, range))));
  }

  drawSource() {
    const gains = new Map(this.point.targets.filter(t => t.ranked).map(t => [t.name, t.best[0]]));
    const share = value => value > 0 ? value.toFixed(1) : "";
    byId("source").hidden = this.data.source.length === 0;
    byId("files").replaceChildren(...this.data.source.map(file => {
      const rows = file.lines.map(([number, text, self, total, name]) => {
        const gain = name === undefined ? "" : gains.has(name) ? signed(gains.get(name)) : "?";
        return element("tr", { className: total > 0 ? "marked" : "" },
          ...[share(self), share(total), gain, number || "⋯", text].map(value => element("td", { textContent: value })));
      });
      return element("div", { className: "file" }, element("h3", { textContent: file.path }),
        element("table", {}, element("tbody", {}, ...rows)));
    }));
  }
}

new Report(JSON.parse(byId("data").textContent));
