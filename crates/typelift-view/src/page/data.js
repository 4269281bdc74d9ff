// The data of the page: layers, groups and graphs, and what is known of each.

/** @typedef {{kind: string, path: string, name: string, up: any, open: boolean}} Item A layer, a group or a body. */

const data = unfolded(JSON.parse(document.getElementById("data").textContent));
/** @param {string} id @returns {any} */
const by = (id) => document.getElementById(id);
const NS = "http://www.w3.org/2000/svg";

// Restores the strings of the page: `~1` is the second of the list. Each string shares its start with the one before.
function unfolded({ strings, page }) {
  const list = [];
  for (let at = 0; at < strings.length; at += 2) list.push((list.at(-1) ?? "").slice(0, strings[at]) + strings[at + 1]);
  const whole = (value) => {
    if (typeof value === "string") return value[0] === "~" ? list[value.slice(1)] : value;
    if (value !== null && typeof value === "object") for (const key of Object.keys(value)) value[key] = whole(value[key]);
    return value;
  };
  return whole(page);
}

function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "onclick") element.addEventListener("click", value);
    else if (value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

function draw(tag, attributes, text) {
  const element = document.createElementNS(NS, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (text !== undefined) element.textContent = text;
  return element;
}

// A colour for each element type, in light and in dark. Any two can be distinguished, also with deuteranopia, and each has a contrast
// of at least 3 to 1 with the boxes.
const COLORS = {
  f64: ["#0000c4", "#9e50d0"], f32: ["#0000ff", "#c642ff"], f16: ["#3055ff", "#3067ff"], bf16: ["#2194f0", "#72b3ff"],
  f8e4m3: ["#581cb8", "#ffd7ff"], f8e5m2: ["#000067", "#bb9c13"], f8e8m0: ["#027eff", "#07e1ff"], f4e2m1: ["#122052", "#c98bc7"], nf4: ["#41489b", "#7d69b0"],
  i64: ["#d87900", "#ffa301"], i32: ["#880c01", "#e4396a"], i16: ["#0b8334", "#0f9b00"], i8: ["#0185a8", "#ffffd0"], i4: ["#0d2b00", "#9dd1b0"],
  u64: ["#004036", "#46832f"], u32: ["#004f64", "#ffff91"], u16: ["#de715f", "#ffbb5d"], u8: ["#858020", "#ffff00"], u6: ["#000b00", "#f5ff5d"], u4: ["#8d2e41", "#ff785d"], u3: ["#f240e7", "#fe4aa6"], u2: ["#ac8693", "#ffd298"], u1: ["#649c6c", "#88c781"],
  boolean: ["#067b74", "#148471"], string: ["#b380b3", "#fffdf6"], other: ["#000121", "#447c8f"],
};
const color = (type) => `var(--t-${COLORS[type] ? type : "other"})`;
// The colours of both themes. The most frequent type of the model is grey, so that the others stand out.
function palette() {
  const counts = {};
  for (const [type, count] of (data.before ? data.map_before : data.map).flatMap(({ computed }) => Object.entries(computed))) counts[type] = (counts[type] ?? 0) + count;
  const usual = Object.keys(counts).reduce((most, type) => counts[type] > (counts[most] ?? 0) ? type : most, "");
  const rules = (dark) => Object.entries(COLORS).map(([type, hues]) => `--t-${type}:${type === usual ? dark ? "#8b99ab" : "#7c8a9d" : hues[dark]}`).join(";");
  document.querySelector("style").append(`:root{${rules(0)}}:root.dark{${rules(1)}}`);
}
palette();
const BITS = { boolean: 8, bf16: 16, nf4: 4, f8e4m3: 8, f8e5m2: 8, f8e8m0: 8, f4e2m1: 4 };
const bitsOf = (type) => BITS[type] ?? (Number(type.replace(/\D/g, "")) || 0);

const grouped = (number) => number.toLocaleString("en");
const plural = (count, what) => `${grouped(count)} ${count === 1 ? what : what.endsWith("x") ? what + "es" : what + "s"}`;
const cut = (text, room) => text.length > room ? text.slice(0, Math.max(1, room - 1)) + "…" : text;
// A name without its middle. Names that differ mostly differ at the end.
const shortName = (text, room) => text.length > room ? text.slice(0, Math.ceil((room - 1) / 3)) + "…" + text.slice(text.length - Math.floor((room - 1) * 2 / 3)) : text;
const last = (name) => name.split("/").pop() || name;
// A number with a unit, `30 K`.
function scaled(number, units) {
  const at = number < 1000 ? 0 : number < 1e6 ? 1 : number < 1e9 ? 2 : number < 1e12 ? 3 : 4;
  const part = number / 1000 ** at;
  return `${at && part < 100 ? part.toFixed(part < 10 ? 2 : 1) : Math.round(part)} ${units[at]}`;
}
const size = (bytes) => scaled(bytes, ["B", "KB", "MB", "GB", "TB"]);
const operations = ({ macs, least }) => `${least ? "at least " : ""}${macs < 1000 ? `${macs} MACs` : scaled(macs, ["", "k", "M", "G", "T"]) + " MACs"}`;
// The lengths of a type with a shape, `f32[batch,max(1, n)]`.
function lengthsOf(text = "") {
  const inner = text.match(/(?:^| )[a-z]\w*\[(.*?)\](?=$|[ ,)])/)?.[1], lengths = [];
  let depth = 0, length = "";
  for (const c of inner ? inner + "," : "") {
    depth += c === "(" ? 1 : c === ")" ? -1 : 0;
    if (c === "," && !depth) { lengths.push(length.trim()); length = ""; } else length += c;
  }
  return inner === undefined || inner === "..." ? null : lengths;
}
// The lengths at which multiply-accumulate operations are counted. The `batch` of one input is that of others.
const lengths = new Map(data.lengths ?? []), boundsOf = new Map((data.lengths ?? []).map(([name, , min, max]) => [name, { min, ...(max === null ? {} : { max }) }])), leaderOf = (name) => [...lengths.keys()].find((other) => name === other || name.replace(/_\d+$/, "").endsWith("_" + other));
// The lengths that formulas have, each with its equals.
const leaders = (products) => [...new Set(products.flat(2).flatMap((factor) => factor.match(/[a-z_]\w*/gi) ?? []).filter((name) => lengths.has(name)).map(leaderOf))];
const atLengths = (names) => names.length ? ` at ${names.map((name) => `${name} ${lengths.get(name)}`).join(", ")}` : "";
// The value of an expression over lengths, `max(1, (n + 1) // 2)`; NaN if it is not known.
function valueOf(text) {
  const words = text.match(/\w+|\/\/|[<>=]=|\S/g) ?? [], operators = [{ or: (a, b) => a || b }, { and: (a, b) => a && b }, { "==": (a, b) => Number(a === b), ">=": (a, b) => Number(a >= b), "<=": (a, b) => Number(a <= b) }, { "+": (a, b) => a + b, "-": (a, b) => a - b }, { "*": (a, b) => a * b, "//": (a, b) => Math.floor(a / b), "%": (a, b) => a - b * Math.floor(a / b) }];
  let at = 0;
  const takes = (word) => words[at] === word && ++at > 0;
  const value = (level = 0) => {
    if (level < operators.length) {
      let left = value(level + 1);
      for (let act; (act = operators[level][words[at]]);) { at++; left = act(left, value(level + 1)); }
      return left;
    }
    if (takes("-")) return -value(level);
    const word = takes("(") ? "(" : words[at++], choice = { max: Math.max, min: Math.min }[word];
    if (word !== "(" && !(choice && takes("("))) return /^\d+$/.test(word) ? Number(word) : lengths.get(word) ?? NaN;
    const list = [value()];
    while (takes(",")) list.push(value());
    return takes(")") ? (choice ?? Math.max)(...list) : NaN;
  };
  const found = value();
  return at === words.length ? found : NaN;
}
// The conditions on lengths that do not hold.
const broken = () => (data.conditions ?? []).filter((text) => valueOf(text) === 0);
const lengthsIn = (text) => [...new Set(text.match(/[a-z_]\w*/gi))].filter((name) => lengths.has(name));
// The lengths that are allowed by themselves, `height: 32, 57, …, 640`.
function allowed(name) {
  const { min, max } = boundsOf.get(name), limit = layers.flatMap(({ limits = [] }) => limits).find(([limit]) => limit.match(/^\w+/)?.[0] === name);
  return limit ? limit[0] : max === undefined ? `${name} ≥ ${min}` : min === max ? `${name} = ${min}` : `${name}: ${min} to ${max}`;
}
// Sets a length and those that follow it. Returns what it must be, if it is not allowed; then nothing is set.
function setLength(name, value) {
  const was = new Map(lengths), own = [...lengths.keys()].filter((other) => leaderOf(other) === name), outside = own.find((other) => !Number.isInteger(value) || value < boundsOf.get(other).min || value > (boundsOf.get(other).max ?? Infinity));
  if (outside) return allowed(outside);
  const before = new Set(broken());
  for (const other of own) lengths.set(other, value);
  settle();
  const alone = broken().find((text) => lengthsIn(text).length === 1 && (!before.has(text) || own.includes(lengthsIn(text)[0])));
  if (alone) for (const [other, length] of was) lengths.set(other, length);
  return alone && allowed(lengthsIn(alone)[0]);
}
// Lengths that follow others, such as that of a mask.
const followers = new Set();
// Gives a length that follows others the value with which most conditions hold: a mask is as long as the tokens and the cache.
function settle() {
  const own = [...new Set([...lengths.keys()].map(leaderOf))].filter((name) => !name.endsWith("batch")).map((name) => lengths.get(name)), sums = own.flatMap((one, at) => own.slice(at + 1).map((other) => one + other));
  // No condition holds the mask of a model that keeps its cache, but it has to mask the cache, too.
  for (const name of lengths.keys()) if (/mask\w*_seq$/.test(name) && lengths.has("past") && lengths.has("seq") && !followers.has(name)) lengths.set(name, lengths.get("seq") + lengths.get("past"));
  for (const name of broken().flatMap(lengthsIn)) if (leaderOf(name) !== name && !name.endsWith("batch")) followers.add(name);
  for (const name of followers) {
    const fit = (value) => { lengths.set(name, value); return broken().length; };
    const counts = [lengths.get(leaderOf(name)), ...own, ...sums, lengths.get(name)].map((value) => ({ value, count: fit(value) }));
    lengths.set(name, counts.reduce((best, it) => it.count < best.count ? it : best).value);
  }
}
settle();
// True after a person set a length: boxes and arrows have numbers instead of formulas.
let isNumeric = false;
// A text with the numbers of its types, `f32[1,64,16]` of `f32[batch,past + seq,16]`, as far as they are known.
const numeric = (text = "") => lengths.size ? text.replace(/(^| )([a-z]\w*)\[(.*?)\](?=$|[ ,)])/g, (all, before, type, inner) => {
  const dims = lengthsOf(`${type}[${inner}]`), numbers = dims?.map((dim) => Number.isNaN(valueOf(dim)) ? dim : String(valueOf(dim)));
  return numbers && numbers.some((number, at) => number !== dims[at]) ? `${before}${type}[${numbers.join(",")}]` : all;
}) : text;
const shaped = (text = "") => isNumeric ? numeric(text) : text;
// The products of lengths whose sum is the number of multiply-accumulate operations of a layer; null if they are not known.
function macsProducts({ op, inputs, outputs, attributes = [] }) {
  const [out, ...dims] = [outputs[0]?.join(""), ...inputs.map(({ text }) => text)].map(lengthsOf), [a, b, c] = dims, is = (name) => attributes.some(([known, value]) => known === name && value === "true");
  if (!a || !b || !out) return null;
  // The common length of a product is known from either side.
  const [one, other] = [a.at(is("transpose_a") && a.length > 1 ? -2 : -1), b.at(is("transpose_b") || b.length < 2 ? -1 : -2)], rows = a.slice(0, -1);
  // Recurrent layers multiply the input and the state by one matrix each.
  const first = { LSTMCell: 3, LSTMSequence: 4, GRUCell: 2, RNNCell: 2, GRUSequence: 3, RNNSequence: 3 }[op], matrices = first && [dims[first], dims[first + 1]];
  return matrices ? matrices.every(Boolean) && matrices.map((matrix) => [...rows, ...matrix]) : {
    MatMul: [[...out, /^\d+$/.test(other) ? other : one]], Convolution: [[...out, ...b.slice(1)]], GroupConvolution: [[...out, ...b.slice(2)]], ConvolutionBackpropData: [[...a, ...b.slice(1)]], GroupConvolutionBackpropData: [[...a, ...b.slice(2)]],
    ScaledDotProductAttention: c && [a, c].map((values) => [...rows, b.at(-2), values.at(-1)]),
  }[op];
}
// The number as a formula, ` = 1·128·512`, with the lengths that it is of.
function macsFormula(node) {
  const products = macsProducts(node);
  return products ? ` = ${products.map((factors) => factors.map((factor) => /^\w+$|^\?$/.test(factor) ? factor : `(${factor})`).join("·")).join(" + ")}${atLengths(leaders(products))}` : "";
}
// The bytes of a tensor, if its shape is known.
function tensorBytes(type, shape) {
  const dims = shape.slice(1, -1);
  if (!/^[\d,]*$/.test(dims)) return null;
  return Math.ceil(dims.split(",").filter(Boolean).reduce((all, dim) => all * Number(dim), 1) * bitsOf(type) / 8);
}

// Rows with these columns.
const named = (rows, ...names) => rows.map((row) => Object.fromEntries(names.map((name, at) => [name, row[at] ?? undefined])));
// The element type and the shape of `f32[2]`.
const parted = (text) => { const at = text.indexOf("["); return at < 0 ? [text, ""] : [text.slice(0, at), text.slice(at)]; };
function boxOfRow([id, path, op, line, group, outputs, inputs, attributes, tensors, more = {}]) {
  const was = more.was && { was: boxOfRow(more.was) };
  return { id, name: path, path, op, line, group: group ?? undefined, outputs: outputs.map(parted), inputs: named(inputs, "text", "from", "name", "held", "parts", "of"), attributes, tensors, ...more, ...was };
}
data.steps = named(data.steps, "id", "path", "op", "output", "rule", "type", "from", "before", "next", "stored", "loses");
const SIDES = { before: "before", after: "after" };

/** Boxes of a group below which it is not worth a frame of its own. */
const LEAST = 3, LEAST_AROUND = 13, MANY = 60;
/** All layers with a box, and all groups. */
const layers = [], groups = [];
for (const graph of data.graphs) {
  graph.kind = "graph";
  graph.up = null;
  graph.name = graph.path;
  graph.edges = graph.edges.map(([from, to, text, only]) => { const [type, shape] = parted(text); return { from, to, type, shape, only }; });
  graph.nodes = graph.nodes.map(boxOfRow);
  graph.nodes.forEach((node, number) => {
    Object.assign(node, { kind: "layer", graph, number, up: graph, bodies: [], next: [], before: [], open: false });
    layers.push(node);
  });
  for (const edge of graph.edges) {
    [edge.from, edge.to] = [graph.nodes[edge.from], graph.nodes[edge.to]];
    edge.from.next.push(edge);
    edge.to.before.push(edge);
  }
}
// An arrow is new or gone if the other side has none between these layers. It is moved if both sides have the consumer.
for (const graph of data.graphs) {
  const sides = new Map();
  for (const { from, to, only } of graph.edges) {
    const key = `${from.number} ${to.number}`;
    sides.set(key, sides.has(key) && sides.get(key) !== only ? "both" : only);
  }
  for (const edge of graph.edges) {
    edge.fate = edge.only && sides.get(`${edge.from.number} ${edge.to.number}`) === edge.only ? edge.only === "before" ? "gone" : "new" : null;
    edge.moved = Boolean(edge.fate) && !edge.to.only;
  }
}
for (const graph of data.graphs) {
  if (!graph.holder) continue;
  graph.up = data.graphs[graph.holder[0]].nodes[graph.holder[1]];
  graph.up.bodies.push(graph);
  graph.name = last(graph.path);
  graph.open = true;
}
// The input of the layer around a body that enters at each Parameter of the body, by path.
const outerOutputs = new Map(data.graphs.flatMap(({ exits = [], up }) => exits.filter(([, output]) => up?.outputs[output]).map(([path, output]) => [path, { around: up, output }])));
// How a body slices and joins tensors, and which values only the loop uses, by Parameter or Result.
const roleAt = new Map(data.graphs.flatMap(({ roles = [] }) => roles));
// The value of a Result in a body that a Parameter has in the next iteration, as arrows.
const backEdges = data.graphs.flatMap((graph) => (graph.back ?? []).map(([from, to]) => [from, to].map((path) => graph.nodes.find((node) => node.path === path))).filter(([from, to]) => from && to).map(([from, to]) => ({ from, to, type: from.before[0]?.type ?? "", shape: from.before[0]?.shape ?? "", back: true, graph })));
const outerInputs = new Map(data.graphs.flatMap(({ entries = [], up }) => entries.filter(([, input]) => up?.inputs[input]).map(([path, input]) => [path, up.inputs[input]])));

// Returns the groups without a number, such as layers between blocks, that lead to blocks which lead back to them.
function circles(graph, isKept) {
  const outermost = (node) => { let at = node.group; while (at !== undefined && graph.groups[at].parent !== undefined) at = graph.groups[at].parent; return at !== undefined && isKept(graph.groups[at]) ? graph.groups[at] : node; };
  const ends = new Map(graph.nodes.map((node) => [node, outermost(node)])), next = new Map(), before = new Map();
  for (const end of ends.values()) { next.set(end, new Set()); before.set(end, new Set()); }
  for (const { from, to } of graph.edges) {
    const [a, b] = [ends.get(from), ends.get(to)];
    if (a !== b) { next.get(a).add(b); before.get(b).add(a); }
  }
  const left = new Set(ends.values());
  // What has no predecessor left, and then what has no successor left, is in no circle.
  for (const [out, into] of [[next, before], [before, next]]) {
    const waits = new Map([...left].map((end) => [end, [...into.get(end)].filter((other) => left.has(other)).length]));
    const ready = [...left].filter((end) => !waits.get(end));
    for (let end; (end = ready.pop());) {
      left.delete(end);
      for (const other of out.get(end)) if (left.has(other)) { waits.set(other, waits.get(other) - 1); if (!waits.get(other)) ready.push(other); }
    }
  }
  return new Set([...left].filter((end) => end.kind === "group" && end.number === undefined));
}

// Puts each layer into its innermost group. Groups with few boxes are left out.
function gather(graph) {
  const has = graph.groups.some((group) => group.number !== undefined);
  for (const group of graph.groups) Object.assign(group, { kind: "group", graph, items: [], members: [], open: false, up: graph });
  const isEnd = (node) => ["Parameter", "Result", "ReadValue", "Assign"].includes(node.op);
  for (const node of graph.nodes) {
    let at = node.group;
    if (at !== undefined && graph.groups[at].number === undefined && graph.groups[at].parent === undefined && isEnd(node)) at = undefined;
    node.group = at;
    for (; at !== undefined; at = graph.groups[at].parent) graph.groups[at].members.push(node);
  }
  const isKept = (group) => {
    if (data.outline) return true;
    if (group.parent !== undefined) return group.members.length >= LEAST && group.members.length < graph.groups[group.parent].members.length;
    if (group.number !== undefined) return group.members.length >= LEAST;
    return has && group.members.length >= LEAST_AROUND && /^(before|between|after|block) /.test(group.name);
  };
  const kept = new Map(), circular = circles(graph, isKept);
  const keeper = (at) => {
    for (; at !== undefined && !kept.has(at); at = graph.groups[at].parent);
    return at === undefined ? graph : graph.groups[at];
  };
  graph.items = [];
  graph.groups.forEach((group, at) => {
    if (!isKept(group) || circular.has(group)) return;
    group.up = keeper(group.parent);
    kept.set(at, group);
    group.up.items.push(group);
    groups.push(group);
  });
  for (const node of graph.nodes) {
    node.up = keeper(node.group);
    node.up.items.push(node);
  }
  graph.boxes = graph.nodes.length;
}
data.graphs.forEach(gather);
// Layers whose number of operations depends on lengths.
const openMacs = layers.flatMap((node) => [node, ...(node.was ? [node.was] : [])]).filter(({ least }) => least).map((node) => ({ node, macs: node.macs ?? 0, products: macsProducts(node) }));
const allGroups = data.graphs.flatMap(({ groups }) => groups), countedLengths = leaders([...openMacs.map(({ products }) => products || []), ...allGroups.flatMap(({ formula }) => formula ?? [])]);
const openGroups = allGroups.filter(({ least, formula }) => formula || least && openMacs.length);
// Also the lengths that only shapes have.
const openLengths = [...new Set([...countedLengths, ...[...lengths.keys()].map(leaderOf)])];
function countMacs() {
  for (const { node, macs, products } of openMacs) {
    const count = (products || [[""]]).reduce((sum, factors) => sum + factors.reduce((all, factor) => all * valueOf(factor), 1), 0);
    [node.macs, node.least] = Number.isNaN(count) ? [macs, true] : [count, false];
  }
  for (const group of openGroups) {
    const count = group.formula ? valueOf(group.formula) : NaN;
    if (!Number.isNaN(count)) { [group.macs, group.least] = [count, false]; continue; }
    if (data.outline) continue;
    const sum = (group, own) => { [group.macs, group.least] = [own.reduce((sum, { macs = 0 }) => sum + macs, 0), own.some(({ least }) => least)]; };
    sum(group, group.members.filter(({ only }) => only !== SIDES.before || group.only === SIDES.before));
    if (group.was) sum(group.was, group.members.filter(({ only }) => only !== SIDES.after).map((node) => node.was ?? node));
  }
}
countMacs();
for (const node of layers) if (node.bodies.length) node.items = node.bodies;
// The layer that an input reads. Arrows are in the order of the inputs with a box; several layers can have one path.
const producerOf = (node, input) => node.before.filter(({ only }) => only !== (node.only === SIDES.before ? "after" : "before"))[node.inputs.filter(({ from }) => from).indexOf(input)]?.from;

// Layers by path. A layer of the earlier model only is found if the later one has none with its path.
const places = new Map();
for (const node of layers) if (!places.has(node.path) || places.get(node.path).only === SIDES.before) places.set(node.path, node);
const groupAt = new Map(groups.map((group) => [group.path, group])), blockAt = new Map(data.graphs.flatMap((graph) => graph.groups).map((group) => [group.path, group]));
// Layers without a box, mostly constants, by path: the box that uses them. Also the consumers of each layer.
const holders = new Map(), users = new Map();
for (const node of layers) {
  for (const input of [...node.inputs, ...(node.was?.inputs ?? [])]) {
    for (const path of input.held ?? []) if (!holders.has(path)) holders.set(path, node);
  }
  for (const input of node.inputs) {
    for (const from of [input.from, ...(input.of ?? [])].filter(Boolean)) {
      if (!users.has(from)) users.set(from, new Set());
      users.get(from).add(node.path);
    }
  }
}
const removedAt = new Map(layers.filter((node) => node.only === SIDES.before).map((node) => [node.path, node]));
// The layers of a page that shows only closed blocks, by path.
data.names = named(data.names ?? [], "path", "op", "types", "box");
for (const name of data.names) { const node = data.graphs[0].nodes[name.box]; name.item = node.up.kind === "group" ? node.up : node; }
const namesAt = new Map(data.names.map((name) => [name.path, name]));
const find = (path) => places.get(path) ?? holders.get(path) ?? groupAt.get(path) ?? namesAt.get(path)?.item;
// True if a path is that of a layer inside the box that stands for it.
const isHeld = (path) => !places.has(path) && (holders.has(path) || namesAt.has(path));

// Findings, changes, explanations and values by path.
const marks = new Map(), reasons = new Map(), stepsAt = new Map();
for (const finding of data.findings) {
  if (!marks.has(finding.path)) marks.set(finding.path, []);
  marks.get(finding.path).push(finding);
}
for (const step of data.steps) {
  reasons.set(`${step.path}\n${step.id}\n${step.output}`, step);
  if (!stepsAt.has(step.path)) stepsAt.set(step.path, step);
}
const values = new Map(data.constants.map((constant) => [constant.path, constant]));
// The box of a change. That of a removed layer is a box of the earlier model, or else the layer that used it.
const boxOf = (change) => change.kind === "removed" && (removedAt.get(change.path) ?? (holders.get(change.path)?.only ? holders.get(change.path) : null)) || find(change.path) || find(change.consequences?.find(({ kind }) => kind === "input")?.path);
const changed = new Map();
for (const change of data.changes) {
  if (change.kind === "names") continue;
  const box = boxOf(change);
  if (!box) continue;
  const isOwn = box.path === change.path && box.kind === "layer";
  const kind = isOwn && ["added", "removed"].includes(change.kind) ? change.kind : "changed";
  if (!changed.has(box) || kind !== "changed") changed.set(box, kind);
}
for (const node of layers) if (node.only && data.both && !changed.has(node)) changed.set(node, node.only === SIDES.before ? "removed" : "added");

// Errors, warnings and changes inside each group and body.
const inside = new Map();
function markInside(box, kind) {
  for (let up = box?.up; up; up = up.up) {
    const counts = inside.get(up) ?? {};
    counts[kind] = (counts[kind] ?? 0) + 1;
    inside.set(up, counts);
  }
}
for (const finding of data.findings) if (finding.severity !== "note") markInside(find(finding.path), finding.severity);
// A bypassed block is changed, too.
for (const change of data.changes) if (change.kind !== "names") for (const box of [boxOf(change), { up: groupAt.get(change.bypassed) }]) markInside(box, "changed");

// The layers as a plugin ran them, by path; and the layers that it added, by the names at both ends.
for (const layer of data.runs.flatMap(({ layers }) => layers)) layer.pale = !["ran", "input"].includes(layer.became);
const runs = data.runs.map((run) => ({
  layers: new Map(run.layers.map((layer) => [layer.path, layer])),
  added: new Map(run.added.filter(({ from }) => from).map((layer) => [`${layer.from}\n${layer.to}`, layer])),
}));

// The types in which the layers of a group computed, the most frequent first: as a plugin ran them, or else as inferred.
function computedIn(group, run = runs[0]) {
  const counts = new Map();
  for (const { path } of run && group.members || []) {
    const type = run.layers.get(path)?.type;
    if (type) counts.set(type, (counts.get(type) ?? 0) + 1);
  }
  return counts.size ? [...counts].sort((a, b) => b[1] - a[1]) : group.computed ?? [];
}

// The common start of all names of blocks, which titles leave out.
const common = (() => {
  const numbered = groups.filter((group) => group.number !== undefined && group.up.kind === "graph" && !group.up.path);
  const names = numbered.map((group) => group.name.replace(/[^./]+[./][^./]*$/, ""));
  const start = names.reduce((start, name) => { while (!name.startsWith(start)) start = start.slice(0, -1); return start; }, names[0] ?? "");
  return start.replace(/[^./]*$/, "");
})();
const brief = (name) => common ? name.split(common).join("") : name;
// The name of a group in the group around it.
function groupName(group) {
  const outer = group.up.kind === "group" && group.up.name;
  return outer && group.name.startsWith(outer) ? group.name.slice(outer.length).replace(/^[./]/, "") : brief(group.name);
}
// The name of a layer: that by which users know it, for an input or an output.
const nameOf = (node) => node.end ?? node.name;
// The state that a ReadValue or an Assign has.
const variableOf = ({ attributes = [] }) => attributes.find(([name]) => name === "variable_id")?.[1];
// The second line of a box: the part of its name that says more than the operation.
function labelOf(node) {
  if (node.end) return node.end;
  const name = last(node.name), repeats = name.replace(/_\d+$/, "").toLowerCase() === node.op.toLowerCase();
  if (!repeats) return brief(name);
  const scope = node.name.split("/")[0].split(".").pop() ?? "", outer = node.up.kind === "group" ? node.up.name.split(/[./]/).pop() : "";
  if (node.name.includes("/") && scope && scope !== outer && !/^\d+$/.test(scope)) return scope;
  return name.toLowerCase() === node.op.toLowerCase() ? "" : name;
}
// The types of a layer's outputs. A Result has that of its input.
const types = (node) => node.op === "Result" && !node.outputs.length ? shaped(node.inputs[0]?.text) : shaped(node.outputs.map(([type, shape]) => type + shape).join(", "));
// A layer by its module and operation, `layers.1.mlp.up_proj · MatMul`, however it is named.
function called(path, op = places.get(path)?.op ?? "") {
  if (places.get(path)?.end) return `${places.get(path).end} · ${op}`;
  const scope = brief(path).split("/").filter((part) => part && !part.includes("::")), end = scope.length > 1 ? scope.pop() : "";
  const name = scope.join("/"), repeats = name.replace(/_\d+$/, "").toLowerCase() === op.toLowerCase();
  const own = /^\w+_\d+$/.test(end) && end.startsWith(op) ? end : op;
  // A constant without a box ends in what it is, such as scale. Inputs and outputs of a body differ only by their ends.
  if (!op || end && end !== own && ["Parameter", "Result"].includes(op)) return [op ? "" : name, end].filter(Boolean).join("/") + (op ? ` · ${op}` : "");
  return repeats ? name : `${name} · ${own}`;
}
// The type that gives a box its colour: that in which it was computed, or that of its output, or else of its input.
const typeOf = (node, run = runs[0]) => run?.layers.get(node.path)?.type ?? node.outputs?.[0]?.[0] ?? node.inputs?.[0]?.text.match(/(?:^| )([a-z0-9]+)\[/)?.[1];

function decoded(text) {
  try { return decodeURIComponent(text); } catch { return text; }
}
