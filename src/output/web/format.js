// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: the kymo authors
//
// Elements and numbers as people read them. Names come from the profiled program and are hostile:
// they reach the document as text only.
"use strict";

const element = id => document.getElementById(id);

function make(tag, text, properties) {
  return Object.assign(document.createElement(tag), { textContent: text }, properties);
}

function significant(value) {
  return value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2);
}

function formatCount(value) {
  return Math.round(value).toLocaleString("en");
}

function formatValue(value, unit) {
  const scaled = steps => {
    for (const [size, name] of steps) if (value >= size) return significant(value / size) + " " + name;
    return null;
  };
  if (unit === "ns") return scaled([[1e9, "s"], [1e6, "ms"], [1e3, "µs"]]) || Math.round(value) + " ns";
  if (unit === "bytes") return scaled([[2 ** 40, "TiB"], [2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"]]) || Math.round(value) + " B";
  const large = scaled([[1e12, "T"], [1e9, "G"], [1e6, "M"]]);
  if (large) return large + " " + unit;
  return formatCount(value) + " " + (value === 1 ? unit.replace(/s$/, "") : unit);
}

function formatShare(part, whole) {
  if (!whole) return "0 %";
  const percent = 100 * part / whole;
  return (percent >= 99.95 ? "100" : percent >= 0.1 || percent === 0 ? percent.toFixed(1) : percent.toFixed(3)) + " %";
}

function plural(count, name) {
  return `${formatCount(count)} ${name}${count === 1 ? "" : /s$/.test(name) ? "es" : "s"}`;
}

// A table with these headings; cells of rows are texts or elements, numbers stand on the right.
function makeTable(headings, rows) {
  const table = make("table", ""), head = make("tr", ""), body = make("tbody", "");
  headings.forEach((heading, i) => head.append(make("th", heading, { scope: "col", className: i === headings.length - 1 ? "" : "number" })));
  for (const cells of rows) {
    const row = make("tr", "");
    cells.forEach((cell, i) => {
      const column = make("td", typeof cell === "string" ? cell : "", { className: i === cells.length - 1 ? "name" : "number" });
      if (typeof cell !== "string") column.append(cell);
      row.append(column);
    });
    body.append(row);
  }
  const group = make("thead", "");
  group.append(head);
  table.append(group, body);
  return table;
}

function searchPattern(text) {
  return text ? new RegExp(text, /[A-Z]/.test(text) ? "u" : "iu") : null;
}
