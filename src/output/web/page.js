// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: the kymo authors
//
// The page: its views, and what they share: the measure, the threads, the search, the theme, the
// tooltip. A view is built when it is first shown, and again after what it shows has changed.
"use strict";

const SELECTION_THREADS = 500;

class Page {
  constructor(model) {
    this.model = model;
    this.data = model.data;
    this.measure = this.data.measures[0];
    this.selection = { process: NONE, thread: NONE };
    this.pattern = this.matches = null;
    this.describe();
    this.fillControls();
    this.makeViews();
    this.listen();
    this.setTheme(matchMedia("(prefers-color-scheme: dark)").matches);
    const byFile = location.pathname.endsWith("flamegraph.html") ? "flame" : ""; // report.html's earlier name
    const named = location.hash.replace("#show-", "") || byFile;
    this.showView(Object.hasOwn(this.views, named) ? named : Object.keys(this.views)[0]);
  }

  makeViews() {
    const { data } = this;
    this.views = {};
    if (data.summary) this.views.overview = new OverviewView(this);
    if (data.timeline) this.views.timeline = new TimelineView(this);
    this.views.flame = new FlameView(this);
    this.views.functions = new FunctionsView(this);
    if (data.source && (data.source.files.length || data.assembly?.functions.length)) this.views.source = new SourceView(this);
    this.stale = new Set(Object.keys(this.views));
    const labels = { overview: "Overview", timeline: "Timeline", flame: "Flame graph", functions: "Functions", source: "Source" };
    for (const name of Object.keys(this.views)) {
      const tab = make("button", labels[name], { id: "tab-" + name });
      tab.setAttribute("role", "tab");
      tab.setAttribute("aria-controls", "view-" + name);
      tab.addEventListener("click", () => {
        this.showView(name);
        history.replaceState(null, "", "#show-" + name); // a link to the view
      });
      tab.addEventListener("keydown", event => this.tabKey(event));
      element("tabs").append(tab);
    }
    element("tabs").hidden = false;
  }

  describe() {
    const { data } = this;
    document.title = data.title ? data.title + " – kymo report" : "kymo report";
    element("title").textContent = element("title").title = data.title || "kymo report";
    const facts = [data.host, data.start_ms ? new Date(data.start_ms).toLocaleString() : "", formatValue(data.duration_ns, "ns"),
      ...data.processes.length ? [plural(data.processes.length, "process"), plural(data.thread_count, "thread")] : []];
    element("subtitle").textContent = facts.filter(Boolean).join(" · ");
  }

  processName(index) {
    const process = this.data.processes[index];
    return `${process.name} (${process.pid})`;
  }

  threadName(thread) {
    const name = !thread.count ? "all threads" : thread.tid ? `${thread.name} (${thread.tid})` : plural(thread.count, "other thread");
    return this.data.processes.length > 1 ? `${name} of ${this.processName(thread.process)}` : name;
  }

  fillControls() {
    const { data, model } = this;
    for (const [i, measure] of data.measures.entries()) element("measure").append(make("option", measure.name, { value: i }));
    element("measure").disabled = data.measures.length < 2;
    const selection = element("selection"), total = thread => totalOfThread(thread, this.measure.columns);
    selection.append(make("option", data.processes.length > 1 ? "all processes" : "all threads", { value: "all" }));
    const heaviest = model.threads.filter(thread => thread.count).sort((a, b) => total(b) - total(a)).slice(0, SELECTION_THREADS);
    data.processes.forEach((process, index) => {
      const threads = heaviest.filter(thread => thread.process === index);
      if (!threads.length) return;
      const group = make("optgroup", "", { label: this.processName(index) });
      if (data.processes.length > 1) group.append(make("option", "whole process " + process.name, { value: "p" + index }));
      for (const thread of threads)
        group.append(make("option", `${thread.tid ? `${thread.name} (${thread.tid})` : plural(thread.count, "other thread")}, ${formatValue(total(thread), this.measure.unit)}`, { value: "t" + thread.index }));
      selection.append(group);
    });
  }

  listen() {
    const on = (id, type, action) => element(id).addEventListener(type, action);
    on("measure", "change", event => { this.measure = this.data.measures[event.target.value]; this.changed(); });
    on("selection", "change", event => this.select(event.target.value));
    on("theme", "click", () => this.setTheme(document.documentElement.dataset.theme !== "dark"));
    on("search", "input", () => this.search());
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", event => this.setTheme(event.matches));
    document.addEventListener("keydown", event => this.pageKey(event));
  }

  press(id, pressed) {
    element(id).setAttribute("aria-pressed", pressed);
  }

  select(value) {
    const index = Number(value.slice(1));
    this.selection = { process: value[0] === "p" ? index : NONE, thread: value[0] === "t" ? index : NONE };
    this.changed();
  }

  changed() {
    this.currentTree = null;
    this.stale = new Set(Object.keys(this.views));
    this.refresh();
  }

  // Top down, for the chosen measure and threads.
  tree() {
    return this.currentTree ||= buildTree(this.model, this.measure, this.selection, false);
  }

  // Of all threads.
  totalOf(measure) {
    return this.model.threads.reduce((sum, thread) => sum + totalOfThread(thread, measure.columns), 0);
  }

  setTheme(dark) {
    this.dark = dark;
    document.documentElement.dataset.theme = dark ? "dark" : "light";
    for (const name of Object.keys(this.views)) if (!this.stale.has(name)) this.views[name].setTheme(dark);
    this.stale.add("overview");
    this.refresh();
  }

  showView(name) {
    this.current = name;
    for (const other of Object.keys(this.views)) {
      const tab = element("tab-" + other);
      element("view-" + other).hidden = other !== name;
      tab.setAttribute("aria-selected", other === name);
      tab.tabIndex = other === name ? 0 : -1;
    }
    element("help").textContent = this.views[name].help;
    element("status").textContent = "";
    this.placeTooltip(null);
    this.refresh();
    this.views[name].show();
  }

  refresh() {
    const view = this.views[this.current];
    if (!view) return;
    if (this.stale.delete(this.current)) {
      view.rebuild();
      view.setTheme(this.dark);
    }
    this.searchAgain();
  }

  search() {
    const input = element("search");
    input.removeAttribute("aria-invalid");
    this.pattern = this.matches = null;
    try {
      this.pattern = searchPattern(input.value);
    } catch (error) {
      input.setAttribute("aria-invalid", "true");
    }
    this.matches = this.pattern && Uint8Array.from(this.model.names, name => this.pattern.test(name) ? 1 : 0);
    for (const name of Object.keys(this.views)) if (name !== this.current) this.stale.add(name);
    this.searchAgain();
  }

  searchAgain() {
    const found = this.views[this.current].search(this.matches);
    element("matched").textContent = element("search").getAttribute("aria-invalid") ? "not a pattern"
      : !found ? "" : found.text ?? `${formatShare(found.share, 1)} matched`;
  }

  // Where a function is: its file and line, and its module.
  where(func) {
    const { functions, strings } = this.data;
    if (func === NONE || func >= functions.name.length) return [];
    const file = functions.file[func], line = functions.line[func], module = functions.module[func];
    return [file === NONE ? "" : strings[file] + (line ? ":" + line : ""), module === NONE ? "" : strings[module]].filter(Boolean);
  }

  showFunction(func) {
    if (func === NONE) return;
    this.showView("functions");
    this.views.functions.choose(func);
  }

  hasSource(func) {
    return Boolean(this.views.source) && this.views.source.find(func) !== NONE;
  }

  showSource(func) {
    this.showView("source");
    this.views.source.showFunction(func);
  }

  fillTooltip(title, lines, list) {
    element("tooltip").replaceChildren(make("strong", title), ...lines.map(text => make("div", text, { className: "where" })), list);
  }

  placeTooltip(event) {
    const tooltip = element("tooltip");
    tooltip.hidden = !event;
    if (!event) return;
    const { width, height } = tooltip.getBoundingClientRect();
    const left = Math.min(event.clientX + 14, innerWidth - width - 8);
    const top = event.clientY + 18 + height > innerHeight ? event.clientY - height - 10 : event.clientY + 18;
    tooltip.style.left = Math.max(4, left) + "px";
    tooltip.style.top = Math.max(4, top) + "px";
  }

  tabKey(event) {
    const names = Object.keys(this.views), step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step) return;
    this.showView(names[(names.indexOf(this.current) + step + names.length) % names.length]);
    element("tab-" + this.current).focus();
    event.preventDefault();
  }

  pageKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    const typing = /^(INPUT|SELECT)$/.test(event.target.tagName), view = this.views[this.current];
    if (event.key === "Escape" && typing) {
      element("search").value = "";
      this.search();
      view.focus();
    } else if (typing) return;
    else if (event.key === "/") element("search").focus();
    else if (Object.keys(this.views)[event.key - 1]) this.showView(Object.keys(this.views)[event.key - 1]);
    else if (event.key === "t" && this.views.functions) this.showView(this.current === "functions" ? "flame" : "functions");
    else if (!view.key(event.key)) return;
    event.preventDefault();
  }
}

window.page = new Page(loadModel(JSON.parse(element("data").textContent)));
