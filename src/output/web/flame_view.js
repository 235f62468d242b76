// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: the kymo authors
//
// The flame graph with its zoom history, tooltip and keys.
"use strict";

class FlameView {
  constructor(page) {
    this.page = page;
    this.model = page.model;
    this.bottomUp = false;
    this.history = [];
    this.graph = new Graph(element("graph"), element("scroller"), element("spacer"), page.model);
    this.help = "Arrow keys walk the graph, Enter zooms, Backspace goes back, Escape resets, / searches.";
    const on = (id, type, action) => element(id).addEventListener(type, action);
    on("callees", "click", () => this.setOrder(false));
    on("callers", "click", () => this.setOrder(true));
    on("flip", "click", () => this.flip());
    on("back", "click", () => this.back());
    on("reset", "click", () => this.zoomTo(0));
    on("graph", "click", event => this.click(event));
    on("graph", "dblclick", () => this.graph.hovered !== NONE && page.showFunction(this.tree.func[this.graph.hovered]));
    on("graph", "mousemove", event => this.hover(event));
    on("graph", "mouseleave", () => this.hover(null));
    on("scroller", "scroll", () => this.hover(null));
    on("graph", "keydown", event => this.graphKey(event));
  }

  show() {
    this.graph.resize();
  }

  setTheme(dark) {
    this.graph.setTheme(dark);
  }

  setOrder(bottomUp) {
    if (bottomUp === this.bottomUp) return;
    this.bottomUp = bottomUp;
    this.page.press("callees", !bottomUp);
    this.page.press("callers", bottomUp);
    this.history = [];
    this.tree = null;
    this.rebuild();
    this.page.searchAgain();
  }

  flip() {
    this.graph.flipped = !this.graph.flipped;
    this.page.press("flip", this.graph.flipped);
    this.graph.resize();
    element("scroller").scrollTop = this.graph.flipped ? this.graph.height : 0;
  }

  // A new tree; the same call path is found in it again, as far as it goes.
  rebuild() {
    const { page } = this, path = this.tree ? this.pathOf(this.graph.zoomed) : [];
    this.tree = this.bottomUp ? buildTree(this.model, page.measure, page.selection, true) : page.tree();
    this.graph.setTree(this.tree, "all " + formatValue(this.tree.total[0], page.measure.unit));
    if (path.length) this.graph.zoom(this.find(path));
    this.showZoom();
    this.hover(null);
  }

  pathOf(box) {
    const path = [];
    for (; box > 0; box = this.tree.parent[box]) path.push(this.tree.func[box]);
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
      const item = make("li"), name = this.model.names[this.tree.func[box]], button = make("button", name, { title: name });
      const target = box;
      button.addEventListener("click", () => this.zoomTo(target));
      item.append(button);
      items.unshift(item);
    }
    element("path").replaceChildren(...items);
    element("graph").setAttribute("aria-label", `Flame graph, ${this.page.measure.name}, ${this.summary(this.graph.zoomed)}`);
  }

  name(box) {
    return this.tree.func[box] === NONE ? "all" : this.model.names[this.tree.func[box]];
  }

  summary(box) {
    const { tree } = this, unit = this.page.measure.unit;
    return `${this.name(box)}: ${formatValue(tree.total[box], unit)} (${formatShare(tree.total[box], tree.total[0])}), self ${formatValue(tree.self[box], unit)} (${formatShare(tree.self[box], tree.total[0])})`;
  }

  click(event) {
    const box = this.graph.at(event.offsetX, event.offsetY);
    if (box === NONE) return;
    this.graph.selected = NONE;
    this.zoomTo(box);
    this.hover(null);
  }

  hover(event) {
    hoverGraph(this.page, this.graph, this.tree, event);
  }

  // How much of all is under matching boxes.
  search(matches) {
    this.graph.matches = matches;
    this.graph.refresh();
    return matches && matchTree(this.tree, matches);
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

  // True: the key was meant for this view.
  key(key) {
    if (key === "Escape") this.zoomTo(0);
    else if (key === "Backspace") this.back();
    else if (key === "i") this.flip();
    else if (key === "b") this.setOrder(!this.bottomUp);
    else return false;
    return true;
  }

  focus() {
    element("graph").focus();
  }
}

// The tooltip of the box under the pointer; event null: there is none.
function hoverGraph(page, graph, tree, event) {
  const box = event ? graph.at(event.offsetX, event.offsetY) : NONE;
  if (box !== graph.hovered) {
    graph.hovered = box;
    graph.refresh();
    graph.canvas.style.cursor = box === NONE ? "default" : "pointer";
    if (box !== NONE) page.fillTooltip(...describeBox(page, graph, tree, box));
  }
  page.placeTooltip(box === NONE ? null : event);
}

function describeBox(page, graph, tree, box) {
  const list = make("dl"), { unit } = page.measure, func = tree.func[box];
  for (const [label, value] of [["Total", tree.total[box]], ["Self", tree.self[box]]])
    list.append(make("dt", label), make("dd", formatValue(value, unit)), make("dd", formatShare(value, tree.total[0])));
  if (page.measure.samples_columns.length && unit !== "samples" && tree.samples[0])
    list.append(make("dt", "Samples"), make("dd", formatValue(tree.samples[box], "samples")), make("dd", ""));
  if (graph.zoomed)
    list.append(make("dt", "Of view"), make("dd", ""), make("dd", formatShare(tree.total[box], tree.total[graph.zoomed])));
  return [func === NONE ? "all" : page.model.names[func], page.where(func), list];
}
