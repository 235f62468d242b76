// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: the kymo authors
//
// What the summary says, with tables of functions, threads and regions.
"use strict";

const OVERVIEW_THREADS = 100, OVERVIEW_REGIONS = 100;
// Sections of the summary whose rows stand in tables of the page.
const HAS_TABLE_HERE = /^(Heaviest regions|Real time of all threads|Threads( \(|$))/;

class OverviewView {
  constructor(page) {
    this.page = page;
    element("view-overview").tabIndex = 0;
    this.help = "Keys 1 to 5 choose a view, / searches.";
  }

  show() {}
  setTheme() {}
  search(matches) { return matches && matchTree(this.page.tree(), matches); }
  key() { return false; }
  focus() { element("view-overview").focus(); }

  rebuild() {
    const { data } = this.page.model, sections = this.sections(data.summary);
    const facts = this.section("What ran");
    this.addParts(facts, sections[0].parts);
    const isLoss = section => /^Lost/.test(section.heading);
    const isWarning = ([kind]) => kind === "warning";
    const warnings = sections.slice(1).filter(section => !isLoss(section)).flatMap(section => section.parts.filter(isWarning));
    const warned = warnings.length ? [this.summarySection({ heading: "Warnings", parts: warnings })] : [];
    const plain = sections.slice(1).map(section => isLoss(section) ? section : { heading: section.heading, parts: section.parts.filter(part => !isWarning(part) && !(part[0].startsWith("row") && HAS_TABLE_HERE.test(section.heading))) })
      .filter(section => section.parts.length);
    element("view-overview").replaceChildren(facts, ...warned, ...plain.filter(isLoss).map(section => this.summarySection(section)), ...this.wallTime(),
      ...this.functions(), ...this.threads(), ...this.regions(), ...plain.filter(section => !isLoss(section)).map(section => this.summarySection(section)));
  }

  // The summary by headings; what is before the first has none.
  sections(summary) {
    const sections = [{ heading: "", parts: [] }];
    for (const [kind, ...texts] of summary) {
      if (kind === "heading") sections.push({ heading: texts[0], parts: [] });
      else sections[sections.length - 1].parts.push([kind, ...texts]);
    }
    return sections;
  }

  section(title) {
    const section = make("section");
    section.append(make("h2", title));
    return section;
  }

  addParts(section, parts) {
    let rows = [];
    for (const [i, [kind, text, ...cells]] of parts.entries()) {
      if (kind === "row") {
        rows.push([text, ...cells]);
        const next = parts[i + 1];
        if (next && next[0] === "row" && next.length === cells.length + 2) continue;
        const hasHeadings = !/\d/.test(rows[0].slice(0, -1).join(""));
        section.append(this.around(makeTable(...hasHeadings ? [rows[0], rows.slice(1)] : [rows[0].length === 3 ? ["Share", "Time", "Call path"] : rows[0].map(() => ""), rows])));
        rows = [];
      } else if (kind === "rows") section.append(make("pre", text.replace(/\n+$/, "")));
      else section.append(make("p", text, { className: kind === "warning" ? "warning" : "" }));
    }
  }

  summarySection({ heading, parts }) {
    const section = this.section(heading);
    this.addParts(section, parts);
    return section;
  }

  around(table) {
    const around = make("div", "", { className: "table" });
    around.append(table);
    return around;
  }

  table(title, headings, rows, note) {
    const section = this.section(title);
    section.append(this.around(makeTable(headings, rows)));
    if (note) section.append(make("p", note, { className: "note" }));
    return [section];
  }

  // How threads spent their time, as a bar and in words.
  wallTime() {
    const { page } = this, { measures } = page.data;
    const measure = name => measures.find(measure => measure.name === name);
    if (!measure("Wall time")) return [];
    const states = [["running", "CPU time", "running"], ["waiting for a CPU", "Waiting for a CPU", "queued"], ["blocked", "Blocked", "blocked"]]
      .filter(([, name]) => measure(name)).map(([label, name, state]) => [label, page.totalOf(measure(name)), state]);
    const whole = page.totalOf(measure("Wall time")), section = this.section("Wall time in samples"), bar = make("div", "", { className: "states" });
    for (const [label, value, state] of states) {
      const part = make("div", "", { title: label });
      part.style.flex = String(value / whole);
      part.style.background = stateColour(state, page.dark);
      bar.append(part);
    }
    section.append(bar, make("p", states.map(([label, value]) => `${label} ${formatValue(value, "ns")} (${formatShare(value, whole)})`).join(", ")));
    return [section];
  }

  functions() {
    const { page } = this, { heaviest, measures } = page.data;
    if (!heaviest.length) return [];
    const { unit } = measures[0], whole = page.totalOf(measures[0]);
    return this.table("Heaviest functions, by " + measures[0].name.replace(/^[A-Z](?![A-Z])/, letter => letter.toLowerCase()), ["Self", "", "Total", "", "Function"],
      heaviest.map(([name, self, total]) => [formatShare(self, whole), formatValue(self, unit), formatShare(total, whole), formatValue(total, unit), name]),
      "Time in the C library counts for the function that called it; the view Functions has each by itself.");
  }

  threads() {
    const { page } = this, { model } = page;
    const measures = page.data.measures.filter(measure => measure.unit === "ns" || measure.unit === "events").slice(0, 5);
    const first = measures[0], total = (thread, measure) => totalOfThread(thread, measure.columns);
    if (!first) return [];
    const threads = model.threads.filter(thread => thread.count && measures.some(measure => total(thread, measure)));
    threads.sort((a, b) => total(b, first) - total(a, first));
    return this.table(plural(page.data.thread_count, "thread"), [...measures.map(measure => measure.name), "Thread"],
      threads.slice(0, OVERVIEW_THREADS).map(thread => [...measures.map(measure => formatValue(total(thread, measure), measure.unit)), page.threadName(thread)]),
      threads.length > OVERVIEW_THREADS ? `${formatCount(threads.length - OVERVIEW_THREADS)} threads with less are not listed` : "");
  }

  regions() {
    const { page } = this, { regions, regions_left_out, strings } = page.data;
    if (!regions || !regions.length) return [];
    return this.table("Regions", ["Calls", "Total", "Self", "Mean", "Least", "Most", "Region"],
      regions.slice(0, OVERVIEW_REGIONS).map(([name, category, count, total, self, least, most]) => [formatCount(count), formatValue(total, "ns"), formatValue(self, "ns"),
        count ? formatValue(total / count, "ns") : "-", count ? formatValue(least, "ns") : "-", count ? formatValue(most, "ns") : "-",
        (category > NONE && strings[category] ? strings[category] + ": " : "") + strings[name]]),
      regions.length + regions_left_out > OVERVIEW_REGIONS ? `${formatCount(regions.length + regions_left_out - OVERVIEW_REGIONS)} regions with less time are not listed` : "");
  }
}
