// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: the kymo authors
//
// Source lines, and instructions, with what was spent in them.
"use strict";

class SourceView {
  constructor(page) {
    const { data } = page, { strings } = data;
    this.page = page;
    this.source = data.source;
    this.assembly = data.assembly ?? { functions: [], unreadable: 0, left_out: 0 };
    this.shown = 0;
    this.help = "Costs are those of all threads; choose the measure above, / searches.";
    const own = it => it.costs.reduce((sum, cost) => sum + cost[2], 0);
    const functions = [...this.assembly.functions].sort((a, b) => own(b) - own(a));
    this.entries = [
      ...this.source.files.map(file => ({ group: "Source", title: strings[file.path], file: file.path, labels: file.line.map(number => number || ""), ...file })),
      ...functions.map(it => ({ group: "Instructions", title: strings[it.name] + (it.module === NONE ? "" : ` (${strings[it.module]})`),
        labels: it.at.map(offset => offset === NONE ? "" : "+0x" + offset.toString(16)), text: it.text, costs: it.costs })),
    ];
    const select = element("source-file");
    this.entries.forEach((entry, i) => {
      if (!i || this.entries[i - 1].group !== entry.group) select.append(make("optgroup", "", { label: entry.group }));
      select.lastChild.append(make("option", entry.title, { value: i }));
    });
    select.addEventListener("change", () => { this.shown = Number(select.value); this.rebuild(); });
  }

  show() {}
  setTheme() {}
  key() { return false; }
  focus() { element("source-file").focus(); }

  // By place in the excerpt: what the measure's columns add up to. Instructions have no total.
  sums(entry) {
    const self = new Float64Array(entry.text.length), total = new Float64Array(entry.text.length);
    for (const [place, column, own, all] of entry.costs) {
      if (!this.page.measure.columns.includes(column)) continue;
      self[place] += own;
      total[place] += all ?? 0;
    }
    return { self, total };
  }

  notes(entry) {
    const { unreadable, left_out } = entry.group === "Source" ? this.source : this.assembly;
    return [entry.changed ? "The file changed after the run: lines may not fit." : "",
      entry.group === "Source" ? "" : "A cost may stand at an instruction behind the one that took the time.",
      unreadable ? plural(unreadable, "file") + " could not be read, or changed." : "", left_out ? formatCount(left_out) + " with less time or too large not shown." : ""].filter(Boolean).join(" ");
  }

  rebuild() {
    const { page } = this, entry = this.entries[this.shown], { strings } = page.data, { unit } = page.measure;
    const { self, total } = this.sums(entry), whole = page.totalOf(page.measure);
    element("source-file").value = this.shown;
    element("source-note").textContent = this.notes(entry);
    element("source-rows").replaceChildren(...entry.labels.map((label, i) => {
      const row = make("tr", "", { className: label ? "" : "gap" }), text = label ? strings[entry.text[i]] : "⋯";
      const cells = [[self[i], "number"], [total[i], "number"]].map(([value, className]) =>
        make("td", value ? formatShare(value, whole) : "", { className, title: value ? formatValue(value, unit) : "" }));
      if (self[i]) cells[0].style.background = `rgb(var(--heat) / ${(0.08 + 0.3 * Math.sqrt(self[i] / whole)).toFixed(2)})`;
      row.append(...cells, make("td", String(label), { className: "number where" }), make("td", text, { className: "name" }));
      if (label && page.pattern && page.pattern.test(text)) row.classList.add("hit");
      return row;
    }));
  }

  search() {
    this.rebuild();
    const hits = document.querySelectorAll("#source-rows .hit").length;
    document.querySelector("#source-rows .hit")?.scrollIntoView({ block: "center" });
    return this.page.pattern && { text: plural(hits, "line") };
  }

  // Where a function's source or instructions are: a number, or NONE.
  find(func) {
    const { functions, strings } = this.page.data, file = functions.file[func] ?? NONE, module = functions.module[func] ?? NONE;
    const source = file === NONE ? NONE : this.entries.findIndex(entry => entry.file === file);
    if (source !== NONE || module === NONE) return source;
    return this.entries.findIndex(entry => entry.group !== "Source" && entry.title === `${strings[functions.name[func]]} (${strings[module]})`);
  }

  showFunction(func) {
    this.shown = this.find(func);
    this.rebuild();
    const entry = this.entries[this.shown], from = this.page.data.functions.line[func];
    const at = entry.group === "Source" ? entry.labels.findIndex(number => number >= from) : 0;
    element("source-rows").children[Math.max(0, at)]?.scrollIntoView({ block: "start" });
  }
}
