// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: the kymo authors
//
// The table of functions or modules, and beside it the sandwich of one function: who calls it above,
// what it calls below.
"use strict";

const TABLE_ROWS = 500;

class FunctionsView {
  constructor(page) {
    this.page = page;
    this.model = page.model;
    this.order = "self";
    this.ascending = false;
    this.byModule = false;
    this.chosen = NONE;
    this.help = "Enter on a function shows its callers and callees, / searches.";
    this.graphs = ["callers", "callees"].map(side => {
      const graph = new Graph(element(side + "-graph"), element(side + "-scroller"), element(side + "-spacer"), page.model);
      graph.flipped = side === "callers";
      graph.canvas.addEventListener("mousemove", event => hoverGraph(page, graph, graph.tree, event));
      graph.canvas.addEventListener("mouseleave", () => hoverGraph(page, graph, graph.tree, null));
      graph.canvas.addEventListener("click", event => this.choose(graph.tree.func[graph.at(event.offsetX, event.offsetY)] ?? NONE));
      return graph;
    });
    const on = (id, action) => element(id).addEventListener("click", action);
    on("by-function", () => this.group(false));
    on("by-module", () => this.group(true));
    on("sandwich-close", () => this.choose(NONE));
    on("sandwich-source", () => page.showSource(this.chosen));
    for (const button of document.querySelectorAll("[data-order]")) button.addEventListener("click", () => this.sort(button.dataset.order));
  }

  show() {
    for (const graph of this.graphs) graph.resize();
  }

  setTheme(dark) {
    for (const graph of this.graphs) graph.setTheme(dark);
  }

  group(byModule) {
    this.byModule = byModule;
    this.page.press("by-function", !byModule);
    this.page.press("by-module", byModule);
    this.rebuild();
  }

  sort(order) {
    this.ascending = order === this.order ? !this.ascending : order === "name" || order === "module";
    this.order = order;
    for (const button of document.querySelectorAll("[data-order]")) {
      if (button.dataset.order === order) button.parentElement.setAttribute("aria-sort", this.ascending ? "ascending" : "descending");
      else button.parentElement.removeAttribute("aria-sort");
    }
    this.showTable();
  }

  moduleName(func) {
    const { data } = this.model, module = data.functions.module[func] ?? NONE;
    return module === NONE ? "" : data.strings[module];
  }

  rebuild() {
    const { model, page } = this, tree = page.tree();
    const functions = [...model.names.keys()];
    this.groups = { names: model.names, of: functions, modules: null };
    if (this.byModule) this.groups = this.groupByModule(functions);
    Object.assign(this.groups, sumGroups(tree, this.groups.of, this.groups.names.length));
    element("sandwich").hidden = this.chosen === NONE;
    if (this.chosen !== NONE) this.showSandwich();
    this.showTable();
  }

  groupByModule(functions) {
    const known = new Map(), names = [];
    const of = functions.map(func => {
      const name = this.moduleName(func) || { interpreted: "[Python]", device: "[devices]", process: "[processes]" }[this.model.kind[func]] || "[no module]";
      if (!known.has(name)) known.set(name, names.push(name) - 1);
      return known.get(name);
    });
    return { names, of };
  }

  compare(a, b) {
    const { names, self, total } = this.groups, sign = this.ascending ? 1 : -1;
    if (this.order === "self" || this.order === "total") {
      const key = this.order === "self" ? self : total;
      return sign * (key[a] - key[b]) || total[b] - total[a] || a - b;
    }
    if (this.order === "module" && !this.byModule) return sign * this.moduleName(a).localeCompare(this.moduleName(b)) || self[b] - self[a];
    return sign * names[a].localeCompare(names[b]) || self[b] - self[a];
  }

  showTable() {
    const { page, groups } = this, whole = page.tree().total[0], { unit } = page.measure;
    const shown = [...groups.total.keys()].filter(group => groups.total[group] && (this.byModule ? !page.pattern || page.pattern.test(groups.names[group]) : !page.matches || page.matches[group]));
    shown.sort((a, b) => this.compare(a, b));
    element("row-count").textContent = shown.length > TABLE_ROWS
      ? `the first ${formatCount(TABLE_ROWS)} of ${formatCount(shown.length)} rows: search to see others` : plural(shown.length, this.byModule ? "module" : "function");
    element("rows").replaceChildren(...shown.slice(0, TABLE_ROWS).map(group => {
      const row = make("tr"), name = make("td", "", { className: "name" });
      if (this.byModule) name.textContent = groups.names[group];
      else name.append(this.makeButton(group), make("div", page.where(group)[0] || "", { className: "where" }));
      row.append(this.makeNumber(groups.self[group], whole, unit), this.makeNumber(groups.total[group], whole, unit), name,
        make("td", this.byModule ? "" : this.moduleName(group), { className: "module" }));
      if (!this.byModule && group === this.chosen) row.setAttribute("aria-selected", "true");
      return row;
    }));
  }

  makeNumber(value, whole, unit) {
    return make("td", formatShare(value, whole), { title: formatValue(value, unit), className: "number" });
  }

  makeButton(func) {
    const button = make("button", this.model.names[func]);
    button.addEventListener("click", () => this.choose(func));
    return button;
  }

  choose(func) {
    if (func >= this.model.data.functions.name.length) return;
    this.chosen = func;
    element("sandwich").hidden = func === NONE;
    if (func !== NONE) this.showSandwich();
    this.showTable();
  }

  showSandwich() {
    const { page, model, chosen } = this, tree = page.tree(), { unit } = page.measure;
    const trees = [buildCallers(model, tree, chosen), buildCallees(model, tree, chosen)];
    const total = formatValue(trees[1].total[0], unit), self = formatValue(trees[1].self[0], unit);
    element("sandwich-title").textContent = model.names[chosen];
    element("sandwich-title").title = `total ${total}, self ${self}`;
    element("sandwich-source").hidden = !page.hasSource(chosen);
    element("status").textContent = `${model.names[chosen]}: total ${total} (${formatShare(trees[1].total[0], tree.total[0])}), self ${self}`;
    this.graphs.forEach((graph, i) => {
      graph.setTree(trees[i], model.names[chosen]);
      graph.matches = page.matches;
      graph.canvas.setAttribute("aria-label", `${i ? "Callees" : "Callers"} of ${model.names[chosen]}, ${total}`);
      if (graph.flipped) graph.scroller.scrollTop = graph.height;
    });
  }

  search(matches) {
    for (const graph of this.graphs) {
      graph.matches = matches;
      if (graph.tree) graph.refresh();
    }
    if (this.groups) this.showTable();
    return matches && matchTree(this.page.tree(), matches);
  }

  key(key) {
    if (key !== "Escape" || this.chosen === NONE) return false;
    this.choose(NONE);
    return true;
  }

  focus() {
    document.querySelector("#rows button")?.focus();
  }
}
