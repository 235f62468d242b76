// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: the kymo authors
//
// Source lines with what was spent in them.
"use strict";

class SourceView {
  constructor(page) {
    this.page = page;
    this.source = page.data.source;
    this.file = 0;
    this.help = "Costs of lines are those of all threads; choose the measure above, / searches.";
    const select = element("source-file");
    this.source.files.forEach((file, i) => select.append(make("option", page.data.strings[file.path], { value: i })));
    select.addEventListener("change", () => { this.file = Number(select.value); this.rebuild(); });
  }

  show() {}
  setTheme() {}
  key() { return false; }
  focus() { element("source-file").focus(); }

  // By place in the excerpt: what the measure's columns add up to.
  sums(file) {
    const self = new Float64Array(file.line.length), total = new Float64Array(file.line.length);
    for (const [place, column, own, all] of file.costs) {
      if (!this.page.measure.columns.includes(column)) continue;
      self[place] += own;
      total[place] += all;
    }
    return { self, total };
  }

  rebuild() {
    const { page, source } = this, file = source.files[this.file], { strings } = page.data, { unit } = page.measure;
    const { self, total } = this.sums(file), whole = page.totalOf(page.measure);
    const left = [source.unreadable ? plural(source.unreadable, "file") + " could not be read here" : "", source.left_out ? plural(source.left_out, "file") + " with less time not shown" : ""];
    element("source-note").textContent = [file.changed ? "The file changed after the run: lines may not fit." : "", left.filter(Boolean).join(", ")].filter(Boolean).join(" ");
    element("source-rows").replaceChildren(...file.line.map((number, i) => {
      const row = make("tr", "", { className: number ? "" : "gap" }), text = number ? strings[file.text[i]] : "⋯";
      const cells = [[self[i], "number"], [total[i], "number"]].map(([value, className]) =>
        make("td", value ? formatShare(value, whole) : "", { className, title: value ? formatValue(value, unit) : "" }));
      if (self[i]) cells[0].style.background = `rgb(var(--heat) / ${(0.08 + 0.3 * Math.sqrt(self[i] / whole)).toFixed(2)})`;
      row.append(...cells, make("td", number ? String(number) : "", { className: "number where" }), make("td", text, { className: "name" }));
      if (number && page.pattern && page.pattern.test(text)) row.classList.add("hit");
      return row;
    }));
  }

  search() {
    this.rebuild();
    const hits = document.querySelectorAll("#source-rows .hit").length;
    document.querySelector("#source-rows .hit")?.scrollIntoView({ block: "center" });
    return this.page.pattern && { text: plural(hits, "line") };
  }

  // The file of a function that is here: its number, or NONE.
  find(func) {
    const file = this.page.data.functions.file[func] ?? NONE;
    return file === NONE ? NONE : this.source.files.findIndex(it => it.path === file);
  }

  showFunction(func) {
    this.file = this.find(func);
    element("source-file").value = this.file;
    this.rebuild();
    const { line } = this.source.files[this.file], from = this.page.data.functions.line[func];
    const at = line.findIndex(number => number >= from);
    element("source-rows").children[Math.max(0, at)]?.scrollIntoView({ block: "start" });
  }
}
