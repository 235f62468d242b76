// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: the kymo authors
//
// The slices of the timeline: unpacked from the data, and put into lanes in which none overlaps the
// next. What lies inside another slice comes into a lane below it.
"use strict";

const LANES_MAX = 40, VARIOUS = 2 ** 32 - 2;
const SOURCE_CPU = 0, SOURCE_BLOCKED = 1, SOURCE_EVENT = 2, SOURCE_QUEUED = 3;
const SOURCE_STATES = ["running", "blocked", "event", "queued"];

// Numbers of seven bits a byte, the lowest first, in base64.
function unpackNumbers(text, count) {
  const bytes = atob(text), numbers = new Float64Array(count);
  let at = 0;
  for (let i = 0; i < count; i++) {
    let number = 0, scale = 1;
    for (;;) {
      const byte = bytes.charCodeAt(at++);
      number += (byte & 127) * scale;
      if (byte < 128) break;
      scale *= 128;
    }
    numbers[i] = number;
  }
  return numbers;
}

class Slices {
  constructor(page) {
    const { data } = page, { timeline } = data;
    this.page = page;
    this.model = page.model;
    this.sources = timeline.sources;
    this.duration = timeline.duration_ns;
    this.count = timeline.tracks.reduce((sum, track) => sum + track.count, 0);
    this.starts = unpackNumbers(timeline.start, this.count);
    this.durations = unpackNumbers(timeline.duration, this.count);
    this.names = unpackNumbers(timeline.name, this.count);
    this.numbers = unpackNumbers(timeline.number, this.count);
    this.matches = null;
    let first = 0;
    this.tracks = timeline.tracks.map(track => {
      const it = { ...track, first, end: first += track.count, isSamples: track.kind === "samples", title: track.name === NONE ? "" : data.strings[track.name] };
      this.undoDifferences(it);
      return it;
    });
    this.order = new Int32Array(this.count);
    this.ends = new Float64Array(this.count); // of a lane, in its order, never falling
    for (const track of this.tracks) this.makeLanes(track);
  }

  undoDifferences(track) {
    let start = 0;
    for (let i = track.first; i < track.end; i++) {
      const number = this.starts[i];
      start = this.starts[i] = start + (number % 2 ? -(number + 1) / 2 : number / 2);
    }
  }

  makeLanes(track) {
    const { starts, durations } = this, ends = [], laneOf = new Uint8Array(track.count), sizes = [];
    for (let i = track.first; i < track.end; i++) {
      let lane = 0;
      if (!track.isSamples) while (lane < LANES_MAX - 1 && lane < ends.length && ends[lane] > starts[i]) lane++;
      laneOf[i - track.first] = lane;
      ends[lane] = Math.max(ends[lane] ?? 0, starts[i] + durations[i]);
      sizes[lane] = (sizes[lane] ?? 0) + 1;
    }
    let from = track.first;
    track.lanes = sizes.map(size => ({ from, to: from, end: from += size }));
    for (let i = track.first; i < track.end; i++) {
      const lane = track.lanes[laneOf[i - track.first]], end = starts[i] + durations[i];
      this.ends[lane.to] = lane.to > lane.from ? Math.max(end, this.ends[lane.to - 1]) : end;
      this.order[lane.to++] = i;
    }
    delete track.end;
  }

  // The first place in a lane whose slice ends after a time.
  firstAfter(lane, time) {
    let low = lane.from, high = lane.to;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.ends[middle] > time) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  // The first place whose slice begins at a time or later.
  firstFrom(lane, time, from = lane.from) {
    let low = from, high = lane.to;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.starts[this.order[middle]] >= time) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  node(slice) {
    return this.names[slice] === VARIOUS ? NONE : Math.floor(this.names[slice] / this.sources);
  }

  source(slice) {
    return this.names[slice] === VARIOUS ? SOURCE_CPU : this.names[slice] % this.sources;
  }

  title(track, slice) {
    if (this.names[slice] === VARIOUS) return "[various]";
    return track.isSamples ? this.model.names[this.model.functionOf[this.node(slice)]] : this.page.data.strings[this.names[slice]];
  }

  // Marks the slices that match: samples by any function of their stack. Returns how many.
  search(pattern, functionMatches) {
    this.matches = null;
    if (!pattern) return 0;
    const { parents, functionOf } = this.model, { strings } = this.page.data;
    const ofNode = new Uint8Array(parents.length), ofString = new Map();
    for (let node = 0; node < parents.length; node++)
      ofNode[node] = functionMatches[functionOf[node]] | (parents[node] === NONE ? 0 : ofNode[parents[node]]);
    const matchString = name => {
      if (!ofString.has(name)) ofString.set(name, pattern.test(strings[name] ?? "") ? 1 : 0);
      return ofString.get(name);
    };
    this.matches = new Uint8Array(this.count);
    let hits = 0;
    for (const track of this.tracks)
      for (let i = track.first; i < track.first + track.count; i++)
        hits += this.matches[i] = this.names[i] === VARIOUS ? 0 : track.isSamples ? ofNode[this.node(i)] : matchString(this.names[i]);
    return hits;
  }

  // What is inside [from, to] on these tracks: time by state, by node, by name.
  sum(tracks, from, to, sources) {
    const states = new Float64Array(this.sources), nodes = new Float64Array(this.model.parents.length), names = new Map();
    for (const track of tracks) {
      for (const lane of track.lanes) {
        for (let at = this.firstAfter(lane, from - 1); at < lane.to && this.starts[this.order[at]] <= to; at++) {
          const slice = this.order[at], start = this.starts[slice], end = start + this.durations[slice];
          if (end < from) continue;
          const inside = Math.min(end, to) - Math.max(start, from);
          if (track.isSamples) this.addSample(slice, inside, states, nodes, sources);
          else this.addName(names, track, slice, inside, start >= from);
        }
      }
    }
    return { states, nodes, names };
  }

  addSample(slice, inside, states, nodes, sources) {
    const source = this.source(slice), weight = source === SOURCE_EVENT ? this.numbers[slice] : inside;
    states[source] += weight;
    if (this.node(slice) !== NONE && (!sources.length || sources.includes(source))) nodes[this.node(slice)] += weight;
  }

  addName(names, track, slice, inside, begins) {
    const key = track.kind + " " + this.names[slice];
    let sums = names.get(key);
    if (!sums) names.set(key, sums = { kind: track.kind, title: this.title(track, slice), count: 0, time: 0 });
    sums.count += begins ? this.numbers[slice] : 0;
    sums.time += inside;
  }
}
