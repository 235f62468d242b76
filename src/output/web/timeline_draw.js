// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: the kymo authors
//
// Draws the timeline: a ruler, and rows of tracks. Slices narrower than a pixel share one; search
// hits are drawn last and never narrower than two pixels. Only what can be seen is visited, and of
// slices that share a pixel only a few.
"use strict";

const RULER = 24, LANE = 16, STRIP = 4, GROUP = 22, GAP = 4, PIXEL_SLICES = 32;
const KIND_TITLES = { samples: "samples", regions: "regions", calls: "device calls", markers: "markers", steps: "steps", kernels: "kernels", copies: "copies", nccl: "NCCL", enqueue: "NCCL calls" };
const KIND_HUES = { regions: 205, calls: 262, markers: 340, steps: 230, kernels: 95, copies: 48, nccl: 10, enqueue: 175 };

function stateColour(state, dark) {
  return { running: dark ? "hsl(140 50% 42%)" : "hsl(140 50% 42%)", queued: dark ? "hsl(4 70% 55%)" : "hsl(4 75% 52%)", event: dark ? "hsl(262 60% 65%)" : "hsl(262 50% 50%)",
    blocked: dark ? "hsl(215 8% 40%)" : "hsl(215 10% 72%)" }[state] ?? "gray";
}

// Seconds with as many digits as tell `step` apart.
function formatTime(time, step) {
  const digits = Math.min(9, Math.max(0, Math.ceil(-Math.log10(step / 1e9))));
  return (time / 1e9).toFixed(digits) + " s";
}

class TimelineCanvas {
  constructor(canvas, scroller, spacer, slices) {
    Object.assign(this, { canvas, scroller, spacer, slices });
    this.context = canvas.getContext("2d");
    this.rows = [];
    this.from = 0;
    this.to = Math.max(1, slices.duration);
    this.selection = null; // { from, to, tracks }
    this.chosen = NONE;
    this.colours = new Map();
    this.width = this.gutter = this.height = this.pending = 0;
    scroller.addEventListener("scroll", () => this.refresh());
    new ResizeObserver(() => this.resize()).observe(scroller);
  }

  setTheme(dark) {
    this.dark = dark;
    this.colours.clear();
    this.refresh();
  }

  // Groups of tracks, each { title, tracks: [{ track, title }] }.
  setGroups(groups) {
    this.rows = [];
    let top = RULER;
    for (const group of groups) {
      this.rows.push({ top, height: GROUP, title: group.title, track: null });
      top += GROUP;
      for (const { track, title } of group.tracks) {
        const height = (track.isSamples ? STRIP + LANE : track.lanes.length * LANE) + GAP;
        this.rows.push({ top, height, title, track });
        top += height;
      }
    }
    this.height = top + GAP;
    this.resize();
  }

  scale() { return (this.width - this.gutter) / (this.to - this.from); }
  x(time) { return this.gutter + (time - this.from) * this.scale(); }
  time(x) { return this.from + (x - this.gutter) / this.scale(); }

  resize() {
    const width = this.width = Math.max(80, this.scroller.clientWidth);
    this.gutter = Math.round(Math.min(240, Math.max(86, width * 0.17)));
    const ratio = window.devicePixelRatio || 1, height = Math.max(RULER + LANE, Math.min(this.scroller.clientHeight, this.height));
    this.spacer.style.height = this.height + "px";
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    this.canvas.style.width = width + "px";
    this.canvas.style.height = height + "px";
    this.refresh();
  }

  refresh() {
    if (!this.pending) this.pending = requestAnimationFrame(() => { this.pending = 0; this.draw(); });
  }

  scrolled() {
    return Math.max(0, Math.min(this.scroller.scrollTop, this.height - this.canvas.clientHeight));
  }

  // Shows [from, to], kept inside the data and at least 10 ns.
  show(from, to) {
    const length = Math.min(Math.max(to - from, 10), this.slices.duration || 10);
    this.from = Math.max(0, Math.min(from, this.slices.duration - length));
    this.to = this.from + length;
    this.refresh();
  }

  zoom(factor, at = (this.from + this.to) / 2) {
    this.show(at - (at - this.from) * factor, at + (this.to - at) * factor);
  }

  pan(share) {
    const by = (this.to - this.from) * share;
    this.show(this.from + by, this.to + by);
  }

  // As #rrggbb, which a canvas reads faster.
  plainColour(colour) {
    this.context.fillStyle = colour;
    return this.context.fillStyle;
  }

  colour(track, slice) {
    const { slices } = this, key = track.isSamples ? slices.model.functionOf[slices.node(slice)] ?? "?" : track.kind + slices.names[slice];
    let colour = this.colours.get(key);
    if (!colour) {
      colour = key === "?" || slices.names[slice] === VARIOUS ? (this.dark ? "#444b52" : "#c8ced3")
        : track.isSamples ? functionColour(slices.model, key, this.dark) : nameColour(slices.title(track, slice), KIND_HUES[track.kind], this.dark);
      this.colours.set(key, colour = this.plainColour(colour));
    }
    return colour;
  }

  draw() {
    if (!this.height || !this.canvas.width) return;
    const { context, canvas, dark, width } = this, ratio = window.devicePixelRatio || 1, scrolled = this.scrolled();
    this.paint = dark ? { text: "#f0f2f4", dim: "#a3adb5", back: "#16191d", group: "#262c33", line: "#363d44", select: "rgb(127 176 248 / 22%)", edge: "#7fb0f8" }
      : { text: "#15191d", dim: "#57616a", back: "#fbfbfa", group: "#e9edf0", line: "#d5dade", select: "rgb(31 87 181 / 16%)", edge: "#1f57b5" };
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, canvas.width, canvas.height);
    context.font = FONT;
    context.textBaseline = "middle";
    this.drawn = 0;
    this.states = SOURCE_STATES.map(state => this.plainColour(stateColour(state, dark)));
    for (const row of this.rows) {
      const top = row.top - scrolled;
      if (top > canvas.clientHeight || top + row.height < RULER) continue;
      if (row.track) this.drawTrack(row, top, width);
      else this.drawGroup(row, top, width);
    }
    this.drawSelection(scrolled);
    this.drawRuler(width);
  }

  drawGroup(row, top, width) {
    const { context, paint } = this;
    context.fillStyle = paint.group;
    context.fillRect(0, top, width, GROUP - 2);
    context.fillStyle = paint.text;
    context.fillText(this.fit(row.title, width - 20), 8, top + GROUP / 2 - 1);
  }

  fit(text, room) {
    const letters = Math.floor(room / 6.4);
    return text.length <= letters ? text : letters < 3 ? "" : text.slice(0, letters - 1) + "…";
  }

  drawTrack(row, top, width) {
    const { context, paint, slices, gutter } = this, { track } = row;
    context.fillStyle = paint.dim;
    context.fillText(this.fit(row.title, gutter - 16), 12, top + (track.isSamples ? STRIP : 0) + LANE / 2);
    context.save();
    context.beginPath();
    context.rect(gutter, RULER, width - gutter, this.canvas.clientHeight);
    context.clip();
    track.lanes.forEach((lane, i) => {
      const y = top + (track.isSamples ? STRIP : i * LANE);
      if (y > this.canvas.clientHeight || y + LANE < RULER) return;
      this.drawLane(track, lane, y, width);
      this.endStrip();
      if (slices.matches) this.drawHits(lane, y, width);
    });
    context.restore();
  }

  drawLane(track, lane, y, width) {
    const { slices, context, paint } = this, { starts, durations, order } = slices, scale = this.scale(), dim = slices.matches;
    for (let at = slices.firstAfter(lane, this.from); at < lane.to;) {
      const slice = order[at], left = this.x(starts[slice]), right = left + durations[slice] * scale;
      if (left > width) break;
      if (right - left < 1) {
        at = this.drawPixel(track, lane, at, y);
        continue;
      }
      this.drawn++;
      context.globalAlpha = dim && !slices.matches[slice] ? 0.35 : 1;
      context.fillStyle = this.colour(track, slice);
      const from = Math.max(left, this.gutter - 1), wide = Math.min(right, width + 1) - from;
      context.fillRect(from, y, wide > 3 ? wide - 0.5 : wide, LANE - 1);
      if (track.isSamples) this.drawState(slice, from, wide, y);
      context.globalAlpha = 1;
      if (wide > 34) {
        context.fillStyle = paint.text;
        context.fillText(this.fit(slices.title(track, slice), wide - 8), from + 4, y + LANE / 2);
      }
      at++;
    }
  }

  // Neighbours in the same state are one rectangle.
  drawState(slice, from, wide, y) {
    const source = this.slices.source(slice), { strip } = this;
    if (strip && strip.source === source && from - strip.to < 0.5) {
      strip.to = from + wide;
      return;
    }
    this.endStrip();
    this.strip = { source, from, to: from + wide, y: y - STRIP };
  }

  endStrip() {
    const { strip } = this;
    if (!strip) return;
    this.context.globalAlpha = 1;
    this.context.fillStyle = this.states[strip.source];
    this.context.fillRect(strip.from, strip.y, strip.to - strip.from, STRIP);
    this.strip = null;
  }

  // All slices that begin in one pixel, in the colour of the longest of the first. The place of the next.
  drawPixel(track, lane, at, y) {
    const { slices, context } = this, { starts, durations, order } = slices;
    const left = Math.floor(this.x(starts[order[at]])), until = this.time(left + 1);
    let longest = order[at], next = at + 1;
    for (; next < lane.to && next < at + PIXEL_SLICES && starts[order[next]] < until && durations[order[next]] * this.scale() < 1; next++)
      if (durations[order[next]] > durations[longest]) longest = order[next];
    if (next === at + PIXEL_SLICES) {
      const end = slices.firstFrom(lane, until, next);
      while (next < end && durations[order[next]] * this.scale() < 1) next += 1;
    }
    this.drawn++;
    context.globalAlpha = slices.matches && !slices.matches[longest] ? 0.35 : 1;
    context.fillStyle = this.colour(track, longest);
    context.fillRect(left, y, 1, LANE - 1);
    if (track.isSamples) this.drawState(longest, left, 1, y);
    context.globalAlpha = 1;
    return next;
  }

  drawHits(lane, y, width) {
    const { slices, context } = this, { starts, durations, order, matches } = slices, scale = this.scale();
    context.fillStyle = MATCH_COLOUR(this.dark);
    let last = -10;
    for (let at = slices.firstAfter(lane, this.from); at < lane.to; at++) {
      const slice = order[at];
      if (!matches[slice]) continue;
      const left = this.x(starts[slice]), wide = Math.max(2, durations[slice] * scale);
      if (left > width) break;
      if (left + wide < last + 1) continue;
      context.fillRect(left, y, wide > 4 ? wide - 0.5 : wide, LANE - 1);
      last = left + wide;
      if (wide > 34) {
        const track = slices.tracks.find(it => it.lanes.includes(lane));
        context.fillStyle = this.paint.text;
        context.fillText(this.fit(slices.title(track, slice), wide - 8), Math.max(left, this.gutter) + 4, y + LANE / 2);
        context.fillStyle = MATCH_COLOUR(this.dark);
      }
    }
  }

  drawSelection(scrolled) {
    const { context, selection, paint, gutter } = this;
    if (!selection) return;
    const left = Math.max(gutter, this.x(selection.from)), right = Math.min(this.width, this.x(selection.to));
    if (right < gutter || left > this.width) return;
    context.fillStyle = paint.select;
    for (const row of this.rows)
      if (row.track && selection.tracks.has(row.track)) context.fillRect(left, row.top - scrolled, Math.max(1, right - left), row.height);
    context.fillStyle = paint.edge;
    for (const edge of [selection.from, selection.to]) {
      const x = this.x(edge);
      if (x >= gutter) context.fillRect(Math.round(x), RULER, 1, this.canvas.clientHeight);
    }
  }

  drawRuler(width) {
    const { context, paint, gutter } = this, least = (this.to - this.from) * 110 / (width - gutter);
    let step = 10 ** Math.floor(Math.log10(least));
    for (const factor of [2, 5, 10]) if (step < least) step = 10 ** Math.floor(Math.log10(least)) * factor;
    step = Math.max(1, step);
    context.fillStyle = paint.back;
    context.fillRect(0, 0, width, RULER - 1);
    context.fillStyle = paint.line;
    context.fillRect(0, RULER - 1, width, 1);
    for (let time = Math.ceil(this.from / step) * step; time <= this.to; time += step) {
      const x = Math.round(this.x(time));
      context.fillStyle = paint.line;
      context.fillRect(x, RULER - 8, 1, 8);
      context.fillStyle = paint.dim;
      context.fillText(formatTime(time, step), x + 4, RULER / 2 - 1);
    }
  }

  rowAt(y) {
    const offset = y + this.scrolled();
    return y < RULER ? null : this.rows.find(row => offset >= row.top && offset < row.top + row.height) ?? null;
  }

  // The slice at a point, within two pixels; { track, slice } or null.
  at(x, y) {
    const row = this.rowAt(y), { slices } = this;
    if (!row || !row.track || x < this.gutter) return null;
    const { track } = row, inside = y + this.scrolled() - row.top;
    const lane = track.lanes[track.isSamples ? 0 : Math.floor(inside / LANE)];
    if (!lane) return null;
    const time = this.time(x), slack = 2 / this.scale();
    let best = null, distance = slack;
    for (let at = slices.firstAfter(lane, time - slack); at < lane.to; at++) {
      const slice = slices.order[at], start = slices.starts[slice], end = start + slices.durations[slice];
      if (start > time + slack) break;
      const away = time < start ? start - time : time > end ? time - end : 0;
      if (away <= distance) [best, distance] = [slice, away];
      if (away === 0 && end - start > slack) break;
    }
    return best === null ? null : { track, slice: best };
  }
}
