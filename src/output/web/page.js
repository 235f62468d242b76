// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: the kymo authors
//
// The page around the graph: controls, zoom history, tooltip, keyboard, table of functions. Names
// come from the profiled program and are hostile: they reach the document as text only.
"use strict";

const element = id => document.getElementById(id);
const TABLE_ROWS = 200, SELECTION_THREADS = 500;

function make(tag, text, properties) {
  return Object.assign(document.createElement(tag), { textContent: text }, properties);
}

function significant(value) {
  return value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2);
}

function formatValue(value, unit) {
  if (unit === "ns") {
    for (const [size, name] of [[1e9, "s"], [1e6, "ms"], [1e3, "µs"]]) if (value >= size) return significant(value / size) + " " + name;
    return Math.round(value) + " ns";
  }
  for (const [size, name] of [[1e12, "T"], [1e9, "G"], [1e6, "M"]]) if (value >= size) return significant(value / size) + " " + name + " " + unit;
  return Math.round(value).toLocaleString("en") + " " + (value === 1 ? unit.replace(/s$/, "") : unit);
}

function formatShare(part, whole) {
  if (!whole) return "0 %";
  const percent = 100 * part / whole;
  return (percent >= 99.95 ? "100" : percent >= 0.1 || percent === 0 ? percent.toFixed(1) : percent.toFixed(3)) + " %";
}

class Page {
  constructor(model) {
    this.model = model;
    this.data = model.data;
    this.measure = this.data.measures[0];
    this.selection = { process: NONE, thread: NONE };
    this.bottomUp = false;
    this.order = "self";
    this.history = [];
    this.graph = new Graph(element("graph"), element("scroller"), element("spacer"), model);
    this.describe();
    this.fillControls();
    this.listen();
    this.setTheme(matchMedia("(prefers-color-scheme: dark)").matches);
    this.rebuild();
  }

  describe() {
    const { data } = this;
    document.title = data.title + " – kymo flame graph";
    element("title").textContent = data.title;
    const facts = [data.host, data.start_ms ? new Date(data.start_ms).toLocaleString() : "", formatValue(data.duration_ns, "ns"),
      `${data.processes.length} process${data.processes.length === 1 ? "" : "es"}`, `${data.threads.length} thread${data.threads.length === 1 ? "" : "s"}`];
    element("subtitle").textContent = facts.filter(Boolean).join(" · ");
  }

  fillControls() {
    const { data, model } = this;
    for (const [i, measure] of data.measures.entries()) element("measure").append(make("option", measure.name, { value: i }));
    element("measure").disabled = data.measures.length < 2;
    const selection = element("selection");
    selection.append(make("option", data.processes.length > 1 ? "all processes" : "all threads", { value: "all" }));
    const column = this.measure.column;
    const heaviest = [...model.threads].sort((a, b) => b.total[column] - a.total[column]).slice(0, SELECTION_THREADS);
    data.processes.forEach((process, index) => {
      const threads = heaviest.filter(thread => thread.process === index);
      if (!threads.length) return;
      const group = make("optgroup", "", { label: `${process.name} (${process.pid})` });
      if (data.processes.length > 1) group.append(make("option", "whole process " + process.name, { value: "p" + index }));
      for (const thread of threads)
        group.append(make("option", `${thread.name} (${thread.tid}), ${formatValue(thread.total[column], this.measure.unit)}`, { value: "t" + thread.index }));
      selection.append(group);
    });
  }

  listen() {
    const on = (id, type, action) => element(id).addEventListener(type, action);
    on("measure", "change", event => { this.measure = this.data.measures[event.target.value]; this.rebuild(true); });
    on("selection", "change", event => this.select(event.target.value));
    on("callees", "click", () => this.setOrder(false));
    on("callers", "click", () => this.setOrder(true));
    on("flip", "click", () => this.flip());
    on("theme", "click", () => this.setTheme(document.documentElement.dataset.theme !== "dark"));
    on("table", "click", () => this.toggleTable());
    on("search", "input", () => this.search());
    on("back", "click", () => this.back());
    on("reset", "click", () => this.zoomTo(0));
    on("graph", "click", event => this.click(event));
    on("graph", "mousemove", event => this.hover(event));
    on("graph", "mouseleave", () => this.hover(null));
    on("scroller", "scroll", () => this.hover(null));
    on("graph", "keydown", event => this.graphKey(event));
    document.addEventListener("keydown", event => this.pageKey(event));
    for (const button of document.querySelectorAll("[data-order]")) button.addEventListener("click", () => this.sortTable(button.dataset.order));
  }

  press(id, pressed) {
    element(id).setAttribute("aria-pressed", pressed);
  }

  select(value) {
    const index = Number(value.slice(1));
    this.selection = { process: value[0] === "p" ? index : NONE, thread: value[0] === "t" ? index : NONE };
    this.rebuild(true);
  }

  setOrder(bottomUp) {
    if (bottomUp === this.bottomUp) return;
    this.bottomUp = bottomUp;
    this.press("callees", !bottomUp);
    this.press("callers", bottomUp);
    this.rebuild();
  }

  flip() {
    this.graph.flipped = !this.graph.flipped;
    this.press("flip", this.graph.flipped);
    this.graph.resize();
    element("scroller").scrollTop = this.graph.flipped ? this.graph.height : 0;
  }

  setTheme(dark) {
    document.documentElement.dataset.theme = dark ? "dark" : "light";
    this.graph.setTheme(dark);
  }

  // A new tree; `keepZoom` finds the same call path in it again, as far as it goes.
  rebuild(keepZoom) {
    const path = keepZoom ? this.pathOf(this.graph.zoomed) : [];
    if (!keepZoom) this.history = [];
    this.tree = buildTree(this.model, this.measure, this.selection, this.bottomUp);
    this.functions = null;
    this.graph.setTree(this.tree, "all " + formatValue(this.tree.total[0], this.measure.unit));
    if (path.length) this.graph.zoom(this.find(path));
    this.search();
    this.showZoom();
    this.hover(null);
    this.showTable();
  }

  pathOf(box) {
    const path = [];
    for (; this.tree && box > 0; box = this.tree.parent[box]) path.push(this.tree.func[box]);
    return path.reverse();
  }

  find(path) {
    const { tree } = this;
    let box = 0;
    for (const func of path) {
      const from = tree.firstChild[box], to = from + tree.childCount[box];
      let child = from;
      while (child < to && tree.func[child] !== func) child++;
      if (child === to) break;
      box = child;
    }
    return box;
  }

  zoomTo(box, isBack) {
    if (box === this.graph.zoomed) return;
    if (!isBack) this.history.push(this.pathOf(this.graph.zoomed));
    this.graph.zoom(box);
    this.showZoom();
  }

  back() {
    if (this.history.length) this.zoomTo(this.find(this.history.pop()), true);
    this.showZoom();
  }

  showZoom() {
    element("back").disabled = !this.history.length;
    element("reset").disabled = this.graph.zoomed === 0;
    const items = [];
    for (let box = this.graph.zoomed; box > 0 && items.length < 12; box = this.tree.parent[box]) {
      const item = make("li"), button = make("button", this.model.names[this.tree.func[box]], { title: this.model.names[this.tree.func[box]] });
      const target = box;
      button.addEventListener("click", () => this.zoomTo(target));
      item.append(button);
      items.unshift(item);
    }
    element("path").replaceChildren(...items);
    element("graph").setAttribute("aria-label", `Flame graph, ${this.measure.name}, ${this.summary(this.graph.zoomed)}`);
  }

  name(box) {
    return this.tree.func[box] === NONE ? "all" : this.model.names[this.tree.func[box]];
  }

  summary(box) {
    const { tree } = this, unit = this.measure.unit;
    return `${this.name(box)}: ${formatValue(tree.total[box], unit)} (${formatShare(tree.total[box], tree.total[0])}), self ${formatValue(tree.self[box], unit)} (${formatShare(tree.self[box], tree.total[0])})`;
  }

  where(func) {
    const { functions, strings } = this.data;
    if (func === NONE || func >= functions.name.length) return [];
    const file = functions.file[func], line = functions.line[func], module = functions.module[func];
    return [file === NONE ? "" : strings[file] + (line ? ":" + line : ""), module === NONE ? "" : strings[module]].filter(Boolean);
  }

  click(event) {
    const box = this.graph.at(event.offsetX, event.offsetY);
    if (box === NONE) return;
    this.graph.selected = NONE;
    this.zoomTo(box);
    this.hover(null);
  }

  hover(event) {
    const box = event ? this.graph.at(event.offsetX, event.offsetY) : NONE, tooltip = element("tooltip");
    if (box !== this.graph.hovered) {
      this.graph.hovered = box;
      this.graph.refresh();
      element("graph").style.cursor = box === NONE ? "default" : "pointer";
      if (box !== NONE) this.fillTooltip(box);
    }
    tooltip.hidden = box === NONE;
    if (box === NONE) return;
    const { width, height } = tooltip.getBoundingClientRect();
    const left = Math.min(event.clientX + 14, innerWidth - width - 8);
    const top = event.clientY + 18 + height > innerHeight ? event.clientY - height - 10 : event.clientY + 18;
    tooltip.style.left = Math.max(4, left) + "px";
    tooltip.style.top = Math.max(4, top) + "px";
  }

  fillTooltip(box) {
    const { tree } = this, list = make("dl"), unit = this.measure.unit;
    for (const [label, value] of [["Total", tree.total[box]], ["Self", tree.self[box]]])
      list.append(make("dt", label), make("dd", formatValue(value, unit)), make("dd", formatShare(value, tree.total[0])));
    if (unit !== "samples")
      list.append(make("dt", "Samples"), make("dd", formatValue(tree.samples[box], "samples")), make("dd", ""));
    if (this.graph.zoomed)
      list.append(make("dt", "Of view"), make("dd", ""), make("dd", formatShare(tree.total[box], tree.total[this.graph.zoomed])));
    element("tooltip").replaceChildren(make("strong", this.name(box)),
      ...this.where(tree.func[box]).map(text => make("div", text, { className: "where" })), list);
  }

  search() {
    const input = element("search"), { model, graph } = this;
    this.pattern = null;
    input.removeAttribute("aria-invalid");
    if (input.value) {
      try {
        this.pattern = new RegExp(input.value, /[A-Z]/.test(input.value) ? "u" : "iu");
      } catch (error) {
        input.setAttribute("aria-invalid", "true");
        element("matched").textContent = "not a pattern";
        graph.matches = null;
        return graph.refresh();
      }
    }
    graph.matches = this.pattern && Uint8Array.from(model.names, name => this.pattern.test(name) ? 1 : 0);
    const found = this.pattern && matchTree(this.tree, graph.matches);
    element("matched").textContent = found ? `${formatShare(found.share, 1)} matched` : "";
    graph.refresh();
    this.showTable();
  }

  walk(key) {
    const { tree, graph } = this;
    let box = graph.selected === NONE ? graph.zoomed : graph.selected;
    const parent = tree.parent[box], from = parent === NONE ? 0 : tree.firstChild[parent], to = parent === NONE ? 1 : from + tree.childCount[parent];
    const deeper = graph.flipped ? "ArrowUp" : "ArrowDown";
    if (graph.selected === NONE) box = graph.zoomed;
    else if (key === "ArrowLeft") box = Math.max(from, box - 1);
    else if (key === "ArrowRight") box = Math.min(to - 1, box + 1);
    else if (key === deeper) box = tree.childCount[box] ? tree.firstChild[box] : box;
    else if (parent !== NONE) box = parent;
    graph.selected = box;
    graph.reveal(box);
    element("status").textContent = this.summary(box);
  }

  graphKey(event) {
    const { graph } = this;
    if (event.key.startsWith("Arrow")) this.walk(event.key);
    else if (event.key === "Enter" && graph.selected !== NONE) this.zoomTo(graph.selected);
    else return;
    event.preventDefault();
  }

  pageKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const typing = /^(INPUT|SELECT)$/.test(event.target.tagName);
    if (event.key === "Escape" && typing) {
      element("search").value = "";
      this.search();
      element("graph").focus();
    } else if (event.key === "Escape") this.zoomTo(0);
    else if (typing) return;
    else if (event.key === "/") element("search").focus();
    else if (event.key === "Backspace") this.back();
    else if (event.key === "i") this.flip();
    else if (event.key === "b") this.setOrder(!this.bottomUp);
    else if (event.key === "t") this.toggleTable();
    else return;
    event.preventDefault();
  }

  toggleTable() {
    const table = element("functions");
    table.hidden = !table.hidden;
    this.press("table", !table.hidden);
    this.showTable();
  }

  sortTable(order) {
    this.order = order;
    for (const button of document.querySelectorAll("[data-order]")) button.setAttribute("aria-pressed", button.dataset.order === order);
    this.showTable();
  }

  showTable() {
    if (element("functions").hidden) return;
    const { model, measure, pattern } = this, whole = this.tree.total[0];
    this.functions ||= sumFunctions(model, measure, this.selection);
    const { self, total } = this.functions, key = this.functions[this.order];
    const shown = [...total.keys()].filter(func => total[func] && (!pattern || pattern.test(model.names[func])));
    shown.sort((a, b) => key[b] - key[a] || total[b] - total[a]);
    element("rows").replaceChildren(...shown.slice(0, TABLE_ROWS).map(func => {
      const row = make("tr"), cell = make("td"), button = make("button", model.names[func]);
      button.addEventListener("click", () => {
        element("search").value = "^" + model.names[func].replace(/[\\^$.*+?()[\]{}|\/]/g, "\\$&") + "$";
        this.search();
      });
      cell.append(button, make("div", this.where(func).join(" · ")));
      cell.lastChild.className = "where";
      row.append(make("td", formatShare(self[func], whole), { title: formatValue(self[func], measure.unit) }),
        make("td", formatShare(total[func], whole), { title: formatValue(total[func], measure.unit) }), cell);
      return row;
    }));
  }
}

new Page(loadModel(JSON.parse(element("data").textContent)));
