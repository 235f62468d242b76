// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: the kymo authors
//
// From the embedded data to a tree that can be drawn. The data holds the call tree once (parents
// before children) and, for every thread, which nodes it was seen in. A display tree is built from
// it for each choice of threads, measure and order: flat arrays, one entry a box, children of a box
// next to each other and heaviest first, so that drawing can stop at the first one too narrow.
"use strict";

const NONE = -1;

function loadModel(data) {
  const parents = new Int32Array(data.nodes.parent.length);
  const process = new Int32Array(parents.length);
  data.nodes.parent.forEach((delta, i) => {
    // Roots carry -1 - process instead of a distance to the parent.
    parents[i] = delta < 0 ? NONE : i - delta;
    process[i] = delta < 0 ? -1 - delta : process[i - delta];
  });
  const model = {
    data, parents, process,
    functionOf: Int32Array.from(data.nodes.function),
    names: data.functions.name.map(i => data.strings[i]),
    threads: data.threads.map((thread, index) => ({ ...thread, index, total: [] })),
    rowNode: Int32Array.from(data.rows.node),
    rowThread: new Int32Array(data.rows.node.length),
    values: data.rows.values.map(column => Float64Array.from(column)),
  };
  let row = 0;
  data.rows.per_thread.forEach((count, thread) => {
    const end = row + count;
    model.threads[thread].total = model.values.map(column => column.subarray(row, end).reduce((a, b) => a + b, 0));
    model.rowThread.fill(thread, row, end);
    row = end;
  });
  uniteFunctions(model);
  return model;
}

// The same function of the same module in several processes counts as one. Processes become
// functions of their own, to stand at the root where there are several.
function uniteFunctions(model) {
  const { data, names } = model;
  const known = new Map();
  const united = names.map((name, i) => {
    const key = data.functions.name[i] + "," + data.functions.module[i] + "," + data.functions.file[i];
    if (!known.has(key)) known.set(key, i);
    return known.get(key);
  });
  model.functionOf = model.functionOf.map(i => united[i]);
  model.kind = data.functions.kind.map(kind => data.kinds[kind]);
  model.moduleRank = rankModules(model);
  const byName = new Map();
  model.processFunction = data.processes.map(process => {
    if (!byName.has(process.name)) {
      byName.set(process.name, names.length);
      names.push(process.name);
      model.kind.push("process");
    }
    return byName.get(process.name);
  });
}

// Modules by how much is in them, so that those one sees have colours of their own.
function rankModules(model) {
  const weight = new Map(), { module } = model.data.functions;
  const columns = model.data.measures[0].columns.map(index => model.values[index]);
  for (let row = 0; row < model.rowNode.length; row++) {
    const of = module[model.functionOf[model.rowNode[row]]];
    let sum = weight.get(of) || 0;
    for (const column of columns) sum += column[row];
    weight.set(of, sum);
  }
  const rank = new Map([...weight.keys()].sort((a, b) => weight.get(b) - weight.get(a)).map((of, i) => [of, i]));
  return module.map(of => rank.get(of) ?? rank.size);
}

// What the program spent in each node, over the chosen threads.
function selfOfNodes(model, columns, wanted) {
  const self = new Float64Array(model.parents.length);
  for (const column of columns.map(index => model.values[index]))
    for (let row = 0; row < column.length; row++)
      if (wanted[model.rowThread[row]]) self[model.rowNode[row]] += column[row];
  return self;
}

function totalOfThread(thread, columns) {
  return columns.reduce((sum, column) => sum + thread.total[column], 0);
}

function isThreadSelected(selection, thread) {
  return (selection.process === NONE || thread.process === selection.process) &&
    (selection.thread === NONE || thread.index === selection.thread);
}

class TreeBuilder {
  constructor(functionCount) {
    this.stride = functionCount + 1;
    this.parent = [NONE];
    this.func = [NONE];
    this.self = [0];
    this.samples = [0];
    this.children = new Map();
  }
  child(parent, func) {
    const key = parent * this.stride + func;
    let box = this.children.get(key);
    if (box === undefined) {
      box = this.parent.length;
      this.children.set(key, box);
      this.parent.push(parent);
      this.func.push(func);
      this.self.push(0);
      this.samples.push(0);
    }
    return box;
  }
}

function addTopDown(model, builder, self, samples, byProcess) {
  const box = new Int32Array(self.length);
  const used = new Uint8Array(self.length);
  for (let i = self.length - 1; i >= 0; i--) {
    if (self[i]) used[i] = 1;
    if (used[i] && model.parents[i] !== NONE) used[model.parents[i]] = 1;
  }
  for (let i = 0; i < self.length; i++) {
    if (!used[i]) continue;
    const parent = model.parents[i];
    const above = parent !== NONE ? box[parent] : byProcess ? builder.child(0, model.processFunction[model.process[i]]) : 0;
    box[i] = builder.child(above, model.functionOf[i]);
    builder.self[box[i]] += self[i];
    builder.samples[box[i]] += samples[i];
  }
}

// Leaf first. A group is a box and the nodes that share it: where each began and how far up it is.
// Groups below a hundred-thousandth of everything are not taken further up, since the number of
// distinct caller paths can be far larger than that of nodes.
function addBottomUp(model, builder, self, samples, byProcess) {
  const { parents, process, functionOf, processFunction } = model;
  const smallest = self.reduce((a, b) => a + b, 0) * 1e-5;
  // Above a root stands its process, written as -2 - process, where processes are shown.
  const above = node => node < NONE ? NONE : parents[node] !== NONE ? parents[node] : byProcess ? -2 - process[node] : NONE;
  const leaves = [...self.keys()].filter(i => self[i]);
  const todo = [{ box: 0, origins: leaves, nodes: leaves }];
  while (todo.length) {
    const { box, origins, nodes } = todo.pop(), groups = new Map();
    nodes.forEach((node, i) => {
      if (node === NONE) return own(builder, box, self, samples, origins[i]);
      const child = builder.child(box, node < 0 ? processFunction[-2 - node] : functionOf[node]);
      let group = groups.get(child);
      if (!group) groups.set(child, group = { box: child, origins: [], nodes: [], weight: 0 });
      group.origins.push(origins[i]);
      group.nodes.push(above(node));
      group.weight += self[origins[i]];
    });
    for (const group of groups.values()) {
      if (group.weight >= smallest) todo.push(group);
      else for (const origin of group.origins) own(builder, group.box, self, samples, origin);
    }
  }
}

function own(builder, box, self, samples, node) {
  builder.self[box] += self[node];
  builder.samples[box] += samples[node];
}

// Numbers the boxes level by level, so that children are neighbours, and places them.
function layOut(builder) {
  const count = builder.parent.length;
  const total = Float64Array.from(builder.self);
  const samples = Float64Array.from(builder.samples);
  for (let i = count - 1; i > 0; i--) {
    total[builder.parent[i]] += total[i];
    samples[builder.parent[i]] += samples[i];
  }
  const order = Array.from({ length: count }, (_, i) => i);
  const level = new Int32Array(count);
  for (let i = 1; i < count; i++) level[i] = level[builder.parent[i]] + 1;
  const place = new Int32Array(count);
  const tree = {
    count, func: new Int32Array(count), parent: new Int32Array(count).fill(NONE), depth: new Int32Array(count),
    start: new Float64Array(count), total: new Float64Array(count), self: new Float64Array(count),
    samples: new Float64Array(count), firstChild: new Int32Array(count), childCount: new Int32Array(count), depthMax: 0,
  };
  // A parent's place is known before its children are compared: levels are handled one by one.
  const levels = [];
  for (const i of order) (levels[level[i]] ||= []).push(i);
  let next = 0;
  for (const boxes of levels) {
    boxes.sort((a, b) => place[builder.parent[a]] - place[builder.parent[b]] || total[b] - total[a] || builder.func[a] - builder.func[b]);
    for (const i of boxes) {
      const at = place[i] = next++;
      tree.func[at] = builder.func[i];
      tree.total[at] = total[i];
      tree.self[at] = builder.self[i];
      tree.samples[at] = samples[i];
      tree.depth[at] = level[i];
      if (i === 0) continue;
      const parent = tree.parent[at] = place[builder.parent[i]];
      if (tree.childCount[parent]++ === 0) {
        tree.firstChild[parent] = at;
        tree.start[at] = tree.start[parent];
      } else {
        tree.start[at] = tree.start[at - 1] + tree.total[at - 1];
      }
    }
  }
  tree.depthMax = levels.length - 1;
  return tree;
}

// measure: an entry of data.measures; selection: {process, thread}, NONE for all. Returns the tree;
// box 0 is everything.
function buildTree(model, measure, selection, bottomUp) {
  const wanted = model.threads.map(thread => isThreadSelected(selection, thread));
  const self = selfOfNodes(model, measure.columns, wanted);
  const samples = selfOfNodes(model, measure.samples_columns, wanted);
  const used = model.threads.filter(thread => wanted[thread.index] && totalOfThread(thread, measure.columns));
  const processes = new Set(used.map(thread => thread.process));
  const builder = new TreeBuilder(model.names.length);
  (bottomUp ? addBottomUp : addTopDown)(model, builder, self, samples, processes.size > 1);
  const tree = layOut(builder);
  if (bottomUp) ownLeaves(model, tree);
  return tree;
}

// Bottom up, "self" is what the first-level function spent itself: the weight of the box.
function ownLeaves(model, tree) {
  for (let i = 0; i < tree.count; i++) tree.self[i] = tree.depth[i] === 1 ? tree.total[i] : 0;
}

// Self and total of every group of functions; a group counts once a path. groupOf: by function.
function sumGroups(tree, groupOf, count) {
  const self = new Float64Array(count), total = new Float64Array(count);
  for (let i = 1; i < tree.count; i++) {
    const group = groupOf[tree.func[i]];
    self[group] += tree.self[i];
    let above = tree.parent[i];
    while (above > 0 && groupOf[tree.func[above]] !== group) above = tree.parent[above];
    if (above <= 0) total[group] += tree.total[i];
  }
  return { self, total };
}

// Boxes of a function that are inside no other box of it.
function outermostBoxes(tree, func) {
  const inside = new Uint8Array(tree.count), boxes = [];
  for (let i = 1; i < tree.count; i++) {
    inside[i] = inside[tree.parent[i]];
    if (tree.func[i] !== func || inside[i]) continue;
    inside[i] = 1;
    boxes.push(i);
  }
  return boxes;
}

// What the function calls, itself as the root.
function buildCallees(model, tree, func) {
  const builder = new TreeBuilder(model.names.length), box = new Int32Array(tree.count).fill(NONE);
  builder.func[0] = func;
  for (const i of outermostBoxes(tree, func)) box[i] = 0;
  for (let i = 1; i < tree.count; i++) {
    if (box[i] === NONE && box[tree.parent[i]] !== NONE) box[i] = builder.child(box[tree.parent[i]], tree.func[i]);
    if (box[i] !== NONE) builder.self[box[i]] += tree.self[i];
  }
  return layOut(builder);
}

// Who calls it, itself as the root.
function buildCallers(model, tree, func) {
  const builder = new TreeBuilder(model.names.length);
  builder.func[0] = func;
  for (const i of outermostBoxes(tree, func)) {
    let box = 0;
    for (let above = tree.parent[i]; above > 0; above = tree.parent[above]) box = builder.child(box, tree.func[above]);
    builder.self[box] += tree.total[i];
  }
  return layOut(builder);
}

// Weight under the matching boxes, nested matches once.
function matchTree(tree, isMatch) {
  const covered = new Uint8Array(tree.count);
  let sum = 0, boxes = 0;
  for (let i = 1; i < tree.count; i++) {
    const parent = tree.parent[i];
    const match = isMatch[tree.func[i]];
    boxes += match;
    if (match && !covered[parent]) sum += tree.total[i];
    covered[i] = covered[parent] | match;
  }
  return { share: tree.total[0] ? sum / tree.total[0] : 0, boxes };
}
