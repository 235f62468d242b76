// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: the kymo authors
//
// The timeline: which rows there are, pointer and keys, search hits, and the sums of a selection.
"use strict";

const SELECTED_ROWS = 15, DRAG_FROM = 4;
const SOURCE_WORDS = ["running", "blocked", "events", "waiting for a CPU", "on devices"];

class TimelineView {
  constructor(page) {
    this.page = page;
    this.help = "Wheel zooms, drag selects, Shift and drag pans; + − ← → zoom and pan, Enter selects what is shown, n finds the next hit, Escape clears.";
    this.drag = this.hit = null;
    this.hits = 0;
  }

  // Slices are unpacked when they are first looked at, so that the page opens at once.
  init() {
    this.slices = new Slices(this.page);
    this.canvas = new TimelineCanvas(element("timeline"), element("timeline-scroller"), element("timeline-spacer"), this.slices);
    const on = (id, type, action) => element(id).addEventListener(type, action), press = (id, action) => on(id, "click", () => { action(); this.moved(); });
    press("zoom-in", () => this.canvas.zoom(0.5));
    press("zoom-out", () => this.canvas.zoom(2));
    press("zoom-all", () => this.canvas.show(0, this.slices.duration));
    press("zoom-selection", () => this.zoomToSelection());
    press("hit-before", () => this.toHit(-1));
    press("hit-after", () => this.toHit(1));
    element("timeline").addEventListener("wheel", event => this.wheel(event), { passive: false });
    on("timeline", "pointerdown", event => this.down(event));
    on("timeline", "pointermove", event => this.move(event));
    on("timeline", "pointerup", event => this.up(event));
    on("timeline", "pointerleave", () => this.hover(null));
    on("timeline", "keydown", event => { if (this.canvasKey(event)) event.preventDefault(); });
    this.describeRule();
  }

  // What is added up or not here.
  describeRule() {
    const { samples, spans, other_threads } = this.page.data.timeline, notes = [];
    for (const [what, store] of [["samples", samples], ["regions, calls and kernels", spans]])
      if (store.merged) notes.push(`${formatCount(store.merged)} ${what} shorter than ${formatValue(store.length_ns, "ns")} are added up: those of one row and one ${what === "samples" ? "stack" : "name"} within ${formatValue(store.span_ns, "ns")} are one slice with their sum.`);
    const missing = this.timeInNoSample();
    if (missing > 0 && !other_threads) notes.push(`${formatValue(missing, "ns")} of CPU time is in no sample ([unsampled] in the other views) and has no place here.`);
    if (other_threads) notes.push(`${formatCount(other_threads)} samples and regions of less busy threads have no row${missing > 0 ? `; with what is in no sample, that is ${formatValue(missing, "ns")} of CPU time` : ""}.`);
    element("timeline-note").textContent = notes.join(" ");
    element("timeline-note").hidden = !notes.length;
  }

  timeInNoSample() {
    const { slices, page } = this, cpu = page.data.measures.find(measure => measure.name === "CPU time");
    if (!cpu) return 0;
    let sum = 0;
    for (const track of slices.tracks)
      for (let i = track.first; track.isSamples && i < track.first + track.count; i++) sum += slices.source(i) === SOURCE_CPU ? slices.durations[i] : 0;
    return page.totalOf(cpu) - sum;
  }

  // Tracks by process, those of threads before those of the process.
  groups() {
    const { page } = this, groups = new Map();
    const tracks = this.slices.tracks.filter(track => track.count && this.isShown(track));
    const rank = Object.keys(KIND_TITLES), rankOf = track => track.thread === NONE ? 1e9 : track.thread;
    tracks.sort((a, b) => a.process - b.process || rankOf(a) - rankOf(b) || rank.indexOf(a.kind) - rank.indexOf(b.kind));
    for (const track of tracks) {
      const title = track.process === NONE ? track.owner === NONE ? "" : page.data.strings[track.owner] : page.processName(track.process);
      const key = track.process + title;
      if (!groups.has(key)) groups.set(key, { title, tracks: [] });
      const { tracks: rows } = groups.get(key), isFirst = !rows.length || rows[rows.length - 1].track.thread !== track.thread;
      rows.push({ track, title: this.rowTitle(track, isFirst) });
    }
    return [...groups.values()];
  }

  isShown(track) {
    const { process, thread } = this.page.selection;
    return (process === NONE || track.process === process) && (thread === NONE || track.thread === thread);
  }

  // The first row of a thread has its name.
  rowTitle(track, isFirst = true) {
    const thread = track.thread === NONE ? null : this.page.model.threads[track.thread], what = track.title || KIND_TITLES[track.kind];
    if (!thread) return what;
    return !isFirst ? "  " + what : `${thread.name} (${thread.tid})${track.isSamples ? "" : ": " + what}`;
  }

  rebuild() {
    if (!this.slices) this.init();
    this.canvas.setGroups(this.groups());
    if (this.canvas.selection) this.select(this.canvas.selection.from, this.canvas.selection.to, this.canvas.selection.tracks);
    this.moved();
  }

  show() { this.canvas.resize(); }
  setTheme(dark) { this.canvas.setTheme(dark); }
  focus() { element("timeline").focus(); }

  moved() {
    const { canvas } = this, length = canvas.to - canvas.from;
    element("range").textContent = `${formatTime(canvas.from, length / 100)} to ${formatTime(canvas.to, length / 100)} (${formatValue(length, "ns")})`;
    element("timeline").setAttribute("aria-label", `Timeline, ${element("range").textContent}, ${plural(canvas.rows.filter(row => row.track).length, "row")}`);
  }

  // ---- pointer and keys ----

  wheel(event) {
    const { canvas } = this;
    if (event.offsetX < canvas.gutter || event.altKey) return; // the rows scroll
    event.preventDefault();
    if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) canvas.pan((event.deltaX || event.deltaY) / 800);
    else canvas.zoom(Math.exp(Math.max(-200, Math.min(200, event.deltaY)) / 300), canvas.time(event.offsetX));
    this.moved();
  }

  down(event) {
    if (event.button > 1) return;
    const isPan = event.shiftKey || event.button === 1;
    this.drag = { x: event.offsetX, y: event.offsetY, from: this.canvas.from, to: this.canvas.to, isPan, moved: false };
    element("timeline").setPointerCapture(event.pointerId);
  }

  move(event) {
    const { drag, canvas } = this;
    if (!drag) return this.hover(event);
    if (Math.abs(event.offsetX - drag.x) < DRAG_FROM && !drag.moved) return;
    drag.moved = true;
    this.page.placeTooltip(null);
    if (drag.isPan) {
      const by = (drag.x - event.offsetX) / canvas.scale();
      canvas.show(drag.from + by, drag.to + by);
      this.moved();
    } else {
      canvas.selection = this.dragged(event);
      canvas.refresh();
    }
  }

  // From the ruler: all rows; else the rows between the ends.
  dragged(event) {
    const { drag, canvas } = this, times = [canvas.time(Math.max(canvas.gutter, drag.x)), canvas.time(Math.max(canvas.gutter, event.offsetX))].sort((a, b) => a - b);
    const [top, bottom] = [drag.y, event.offsetY].sort((a, b) => a - b).map(y => y + canvas.scrolled());
    const rows = canvas.rows.filter(row => row.track && (drag.y < RULER || (row.top < bottom && row.top + row.height > top)));
    return { from: Math.max(0, times[0]), to: Math.min(this.slices.duration, times[1]), tracks: new Set(rows.map(row => row.track)) };
  }

  up(event) {
    const { drag, canvas } = this;
    this.drag = null;
    if (!drag) return;
    if (drag.moved && !drag.isPan) {
      const { from, to, tracks } = this.dragged(event);
      return this.select(from, to, tracks);
    }
    const found = !drag.moved && canvas.at(event.offsetX, event.offsetY);
    if (found) this.choose(found.track, found.slice);
    else if (!drag.moved) this.clear();
  }

  hover(event) {
    const found = event && this.canvas.at(event.offsetX, event.offsetY);
    this.page.placeTooltip(null);
    if (!found) return;
    this.page.fillTooltip(this.slices.title(found.track, found.slice), [], this.describe(found.track, found.slice));
    this.page.placeTooltip(event);
  }

  describe(track, slice) {
    const { slices } = this, list = make("dl"), add = (label, text) => list.append(make("dt", label), make("dd", text), make("dd", ""));
    const number = slices.numbers[slice], isEvent = track.isSamples && slices.source(slice) === SOURCE_EVENT;
    add("At", formatTime(slices.starts[slice], 1));
    if (!isEvent) add(number > 1 ? "Together" : "Took", formatValue(slices.durations[slice], "ns"));
    if (number > 1 || isEvent) add(isEvent ? "Events" : track.isSamples ? "Samples" : "Number", formatCount(number));
    if (track.isSamples) add("State", SOURCE_WORDS[slices.source(slice)]);
    add(track.thread === NONE ? "Row" : "Thread", track.thread === NONE ? this.rowTitle(track) : this.page.threadName(this.page.model.threads[track.thread]));
    return list;
  }

  canvasKey(event) {
    const { canvas } = this, { key } = event;
    const actions = { ArrowLeft: () => canvas.pan(-0.1), ArrowRight: () => canvas.pan(0.1), Home: () => canvas.pan(-1e9), End: () => canvas.pan(1e9),
      ArrowUp: () => { canvas.scroller.scrollTop -= 2 * LANE; }, ArrowDown: () => { canvas.scroller.scrollTop += 2 * LANE; },
      a: () => canvas.pan(-0.1), d: () => canvas.pan(0.1), w: () => canvas.zoom(0.7), s: () => canvas.zoom(1 / 0.7), Enter: () => this.selectView() };
    if (event.ctrlKey || event.metaKey || event.altKey || !actions[key]) return false;
    actions[key]();
    this.moved();
    return true;
  }

  key(key) {
    const { canvas } = this;
    if (key === "+" || key === "=") canvas.zoom(0.5);
    else if (key === "-") canvas.zoom(2);
    else if (key === "0") canvas.show(0, this.slices.duration);
    else if (key === "f") this.zoomToSelection();
    else if (key === "n") this.toHit(1);
    else if (key === "N") this.toHit(-1);
    else if (key === "Escape") this.clear();
    else return false;
    this.moved();
    return true;
  }

  // ---- search ----

  search(matches) {
    const { page, slices, canvas } = this;
    this.hits = slices.search(page.pattern, matches);
    for (const id of ["hit-before", "hit-after"]) element(id).disabled = !this.hits;
    element("hits").textContent = "";
    canvas.refresh();
    return page.pattern && { text: plural(this.hits, "hit") };
  }

  // Brings the next hit, by time, into the middle.
  toHit(direction) {
    const { canvas, slices } = this, middle = this.hit ? slices.starts[this.hit.slice] : canvas.from - 1;
    let found = null;
    for (const row of canvas.rows) {
      for (let i = row.track ? row.track.first : 0, end = row.track ? i + row.track.count : 0; slices.matches && i < end; i++) {
        const away = (slices.starts[i] - middle) * direction;
        if (slices.matches[i] && away > 0 && (!found || away < (slices.starts[found.slice] - middle) * direction)) found = { row, slice: i };
      }
    }
    element("hits").textContent = found ? "" : "no further hit";
    this.hit = found;
    if (!found) return;
    const start = slices.starts[found.slice], half = Math.max((canvas.to - canvas.from) / 2, slices.durations[found.slice]);
    canvas.show(start + slices.durations[found.slice] / 2 - half, start + slices.durations[found.slice] / 2 + half);
    canvas.scroller.scrollTop = Math.max(0, found.row.top - canvas.canvas.clientHeight / 2);
    element("status").textContent = `${slices.title(found.row.track, found.slice)}: ${formatValue(slices.durations[found.slice], "ns")} at ${formatTime(start, 1)}`;
  }

  // ---- selection ----

  clear() {
    this.canvas.selection = null;
    element("selected").hidden = true;
    element("zoom-selection").disabled = true;
    this.canvas.refresh();
  }

  selectView() {
    const { canvas } = this;
    this.select(canvas.from, canvas.to, new Set(canvas.rows.filter(row => row.track).map(row => row.track)));
  }

  zoomToSelection() {
    if (this.canvas.selection) this.canvas.show(this.canvas.selection.from, this.canvas.selection.to);
  }

  choose(track, slice) {
    const { slices } = this, start = slices.starts[slice];
    this.select(start, start + slices.durations[slice], new Set([track]), { track, slice });
  }

  select(from, to, tracks, one) {
    const { canvas, slices, page } = this;
    canvas.selection = { from, to, tracks };
    element("zoom-selection").disabled = false;
    const sums = slices.sum(tracks, from, to, page.measure.sources), panel = element("selected"), tables = make("div", "", { className: "tables" });
    const title = one ? slices.title(one.track, one.slice) : `Selected ${formatValue(to - from, "ns")}`;
    panel.hidden = false;
    const states = SOURCE_WORDS.map((word, source) => sums.states[source] ? `${word} ${source === SOURCE_EVENT ? formatCount(sums.states[source]) : formatValue(sums.states[source], "ns")}` : "").filter(Boolean);
    tables.append(...this.functionTable(sums), ...this.nameTable(sums));
    panel.replaceChildren(make("h2", title), make("p", `${formatTime(from, 1)} to ${formatTime(to, 1)}, ${plural(tracks.size, "row")}${states.length ? ": " + states.join(", ") : ""}`, { className: "note", id: "selected-sums" }));
    if (one && one.track.isSamples) panel.append(make("p", "Stack, innermost first: " + this.stack(slices.node(one.slice)).join(" ← ")));
    else panel.append(tables);
    canvas.resize();
  }

  stack(node) {
    const { parents, functionOf, names } = this.page.model, path = [];
    for (; node !== NONE; node = parents[node]) path.push(names[functionOf[node]]);
    return path;
  }

  // Self, and total once a stack.
  functionTable({ nodes }) {
    const { parents, functionOf, names } = this.page.model, self = new Map(), total = new Map(), add = (map, func, weight) => map.set(func, (map.get(func) ?? 0) + weight);
    let whole = 0;
    nodes.forEach((weight, leaf) => {
      if (!weight) return;
      whole += weight;
      add(self, functionOf[leaf], weight);
      const seen = new Set();
      for (let node = leaf; node !== NONE; node = parents[node]) {
        if (!seen.has(functionOf[node])) add(total, functionOf[node], weight);
        seen.add(functionOf[node]);
      }
    });
    if (!whole) return [];
    const rows = [...total.keys()].sort((a, b) => (self.get(b) ?? 0) - (self.get(a) ?? 0) || total.get(b) - total.get(a)).slice(0, SELECTED_ROWS);
    const unit = this.page.measure.unit === "events" ? "events" : "ns", around = make("div", "");
    around.append(makeTable(["Self", "", "Total", "Function"], rows.map(func => [formatShare(self.get(func) ?? 0, whole), formatValue(self.get(func) ?? 0, unit), formatShare(total.get(func), whole), names[func]])));
    return [around];
  }

  nameTable({ names }) {
    const rows = [...names.values()].sort((a, b) => b.time - a.time).slice(0, SELECTED_ROWS), around = make("div", "");
    if (!rows.length) return [];
    around.append(makeTable(["Number", "Time", "", "Region, call or kernel"], rows.map(row => [formatCount(row.count), formatValue(row.time, "ns"), KIND_TITLES[row.kind], row.title])));
    return [around];
  }
}
