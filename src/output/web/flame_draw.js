// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: the kymo authors
//
// Draws a tree on the canvas and says which box is where. The canvas is as large as the window and
// sticks to it; a spacer of the graph's height makes the scroll bar. Only boxes of half a pixel and
// more are visited: children are sorted by width, so the first one too narrow ends the loop, and a
// muted stripe stands for the rest.
"use strict";

const ROW = 20, NARROWEST = 0.5, TEXT_FROM = 28, FONT = '12px system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif';

class Graph {
  constructor(canvas, scroller, spacer, model) {
    Object.assign(this, { canvas, scroller, spacer, model });
    this.context = canvas.getContext("2d");
    this.widths = new Float32Array(model.names.length);
    this.colours = [];
    this.matches = null;
    this.flipped = false;
    this.dark = false;
    this.zoomed = 0;
    this.hovered = this.selected = NONE;
    this.pending = 0;
    scroller.addEventListener("scroll", () => this.refresh());
    new ResizeObserver(() => this.resize()).observe(scroller);
  }

  setTree(tree, total) {
    this.tree = tree;
    this.total = total;
    this.hovered = this.selected = NONE;
    this.zoom(0);
  }

  setTheme(dark) {
    this.dark = dark;
    this.colours = [];
    this.refresh();
  }

  zoom(box) {
    this.zoomed = box;
    this.rows = this.depthBelow(box) + 1;
    this.resize();
    this.reveal(box);
  }

  // The deepest level that shows anything at this zoom.
  depthBelow(top) {
    const { tree } = this, scale = this.scale();
    let deepest = tree.depth[top];
    const todo = [top];
    while (todo.length) {
      const box = todo.pop();
      if (tree.depth[box] > deepest) deepest = tree.depth[box];
      for (let c = tree.firstChild[box], end = c + tree.childCount[box]; c < end && tree.total[c] * scale >= NARROWEST; c++) todo.push(c);
    }
    return deepest;
  }

  scale() {
    return this.tree.total[this.zoomed] ? this.width() / this.tree.total[this.zoomed] : 0;
  }

  width() {
    const style = getComputedStyle(this.scroller);
    return Math.max(50, this.scroller.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight));
  }

  resize() {
    if (!this.tree) return;
    const ratio = window.devicePixelRatio || 1, width = this.width();
    const view = this.scroller.clientHeight - parseFloat(getComputedStyle(this.scroller).paddingTop);
    this.rows = this.depthBelow(this.zoomed) + 1;
    this.height = Math.max(this.rows * ROW + 8, this.flipped ? view : 0);
    this.spacer.style.height = this.height + "px";
    const visible = Math.max(ROW, Math.min(view, this.height));
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(visible * ratio);
    this.canvas.style.width = width + "px";
    this.canvas.style.height = visible + "px";
    this.refresh();
  }

  refresh() {
    if (!this.pending) this.pending = requestAnimationFrame(() => { this.pending = 0; this.draw(); });
  }

  scrolled() {
    return Math.max(0, Math.min(this.scroller.scrollTop, this.height - this.canvas.clientHeight));
  }

  // Top of a box on the canvas.
  top(box) {
    const row = this.tree.depth[box];
    return (this.flipped ? this.height - (row + 1) * ROW : row * ROW) - this.scrolled();
  }

  isAncestor(box) {
    const { tree, zoomed } = this;
    return tree.start[box] <= tree.start[zoomed] && tree.depth[box] < tree.depth[zoomed];
  }

  left(box) {
    return this.isAncestor(box) ? 0 : (this.tree.start[box] - this.tree.start[this.zoomed]) * this.scale();
  }

  boxWidth(box) {
    return this.isAncestor(box) ? this.width() : this.tree.total[box] * this.scale();
  }

  colour(func) {
    return this.colours[func] ||= functionColour(this.model, func, this.dark);
  }

  draw() {
    const { context, tree, canvas } = this;
    if (!tree) return;
    const ratio = window.devicePixelRatio || 1, width = this.width();
    const dark = this.dark;
    this.paint = {
      text: dark ? "#f0f2f4" : "#15191d", edge: dark ? "#16191d" : "#fbfbfa", rest: dark ? "#2a3037" : "#e9ecee",
      match: MATCH_COLOUR(dark), mark: dark ? "#ffffff" : "#11151a",
    };
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, canvas.width, canvas.height);
    context.font = FONT;
    context.textBaseline = "middle";
    context.textAlign = "left";
    this.drawn = 0;
    for (let box = tree.parent[this.zoomed]; box !== NONE; box = tree.parent[box]) this.drawBox(box, 0, width, 0.45);
    this.drawSubtree(width);
    this.outline(this.hovered, 1);
    this.outline(this.selected, 2);
    context.globalAlpha = 1;
  }

  drawSubtree(width) {
    const { tree, context } = this, scale = this.scale(), origin = tree.start[this.zoomed];
    const todo = [this.zoomed];
    while (todo.length) {
      const box = todo.pop();
      this.drawBox(box, (tree.start[box] - origin) * scale, box === this.zoomed ? width : tree.total[box] * scale, 1);
      const end = tree.firstChild[box] + tree.childCount[box];
      let child = tree.firstChild[box];
      for (; child < end && tree.total[child] * scale >= NARROWEST; child++) todo.push(child);
      if (child >= end || tree.childCount[box] === 0) continue;
      const from = (tree.start[child] - origin) * scale, to = (tree.start[end - 1] + tree.total[end - 1] - origin) * scale;
      if (to - from < NARROWEST) continue;
      context.globalAlpha = 1;
      context.fillStyle = this.paint.rest;
      context.fillRect(from, this.top(child), to - from, ROW - 1);
    }
  }

  drawBox(box, left, width, alpha) {
    const { context, tree, model, paint } = this, top = this.top(box);
    if (top > this.canvas.clientHeight || top + ROW < 0) return;
    const func = tree.func[box], match = this.matches && func !== NONE && this.matches[func];
    this.drawn++;
    context.globalAlpha = this.matches && !match ? alpha * 0.4 : alpha;
    context.fillStyle = match ? paint.match : func === NONE ? paint.rest : this.colour(func);
    context.fillRect(left, top, width > 3 ? width - 1 : Math.max(width, NARROWEST), ROW - 1);
    if (width < TEXT_FROM) return;
    context.globalAlpha = 1; // faint boxes have readable names
    context.fillStyle = paint.text;
    context.fillText(this.fit(func, func === NONE ? this.total : model.names[func], width - 9), left + 4, top + ROW / 2);
  }

  // The text, shortened when it is too wide: in proportion, then letter by letter.
  fit(func, text, room) {
    const shown = text.length > 400 ? text.slice(0, 400) : text;
    let width = func === NONE ? 0 : this.widths[func];
    if (!width) {
      width = this.context.measureText(shown).width;
      if (func !== NONE) this.widths[func] = width;
    }
    if (width <= room) return shown;
    let kept = Math.floor(shown.length * room / width);
    while (kept > 1 && this.context.measureText(shown.slice(0, kept) + "…").width > room) kept--;
    return kept < 2 ? "" : shown.slice(0, kept) + "…";
  }

  outline(box, thickness) {
    if (box === NONE || !this.isShown(box)) return;
    const { context } = this;
    context.globalAlpha = 1;
    context.strokeStyle = this.paint.mark;
    context.lineWidth = thickness;
    const inset = thickness / 2;
    context.strokeRect(this.left(box) + inset, this.top(box) + inset, Math.max(this.boxWidth(box) - 1 - thickness, 1), ROW - 1 - thickness);
  }

  isShown(box) {
    const { tree, zoomed } = this;
    let at = box;
    while (tree.depth[at] > tree.depth[zoomed]) at = tree.parent[at];
    let above = zoomed;
    while (tree.depth[above] > tree.depth[at]) above = tree.parent[above];
    return at === above;
  }

  // The box at a point of the canvas, or NONE.
  at(x, y) {
    const { tree, zoomed } = this;
    const offset = y + this.scrolled();
    const row = Math.floor((this.flipped ? this.height - offset : offset) / ROW);
    let box = zoomed;
    if (row < 0) return NONE;
    for (; tree.depth[box] > row; box = tree.parent[box]);
    const value = tree.start[zoomed] + x / this.scale();
    while (tree.depth[box] < row) {
      box = this.childAt(box, value);
      if (box === NONE) return NONE;
    }
    return box;
  }

  childAt(box, value) {
    const { tree } = this;
    let low = tree.firstChild[box], high = low + tree.childCount[box] - 1;
    while (low <= high) {
      const middle = (low + high) >> 1;
      if (value < tree.start[middle]) high = middle - 1;
      else if (value >= tree.start[middle] + tree.total[middle]) low = middle + 1;
      else return middle;
    }
    return NONE;
  }

  // Scrolls so that the box can be seen.
  reveal(box) {
    const top = this.top(box) + this.scrolled(), view = this.canvas.clientHeight;
    if (top < this.scroller.scrollTop) this.scroller.scrollTop = top - ROW;
    else if (top + ROW > this.scroller.scrollTop + view) this.scroller.scrollTop = top + 2 * ROW - view;
    this.refresh();
  }
}

const MATCH_COLOUR = dark => dark ? "hsl(318 62% 38%)" : "hsl(318 85% 72%)";

// A hue for each module, a shade for each function; grey for what has no name.
function functionColour(model, func, dark) {
  const kind = model.kind[func];
  if (kind === "unresolved") return dark ? "hsl(215 6% 32%)" : "hsl(215 8% 80%)";
  if (kind === "synthetic") return dark ? "hsl(0 0% 27%)" : "hsl(0 0% 87%)";
  if (kind === "state") return dark ? "hsl(4 58% 36%)" : "hsl(4 78% 76%)"; // waits for a CPU
  if (kind === "process") return dark ? "hsl(215 22% 32%)" : "hsl(215 32% 84%)";
  return nameColour(model.names[func], [28, 205, 140, 262, 48, 340, 175, 95, 230, 10][model.moduleRank[func] % 10], dark);
}

function nameColour(name, hue, dark) {
  const hash = hashText(name), shade = (hash % 9) - 4, tint = hue + ((hash >>> 8) % 7 - 3) * 5;
  return dark ? `hsl(${tint} ${40 + shade}% ${28 + shade * 0.5}%)` : `hsl(${tint} ${72 + shade * 2}% ${76 + shade * 1.5}%)`;
}

// FNV-1a over UTF-16 units.
function hashText(text) {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return hash >>> 0;
}
