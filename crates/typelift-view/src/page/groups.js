// Groups that open and close in place: the arrows on each level, and the places of all boxes on the screen.

const HEAD = 34, PAD = 20, GROUP_WIDTH = 300;

/** The end of an arrow at the border of a group, on the inside. */
const portOf = (ports, group, node, side) => {
  if (!ports.has(node)) ports.set(node, { kind: "port", group, node, side });
  return ports.get(node);
};

// Gives each arrow to the innermost group that contains both ends, and to the groups between.
function connect(graph) {
  const containers = [graph, ...groups.filter((group) => group.graph === graph)];
  for (const container of containers) Object.assign(container, { ins: new Map(), outs: new Map(), arrows: [], known: new Map() });
  const add = (container, from, to, edge) => {
    // The key has the numbers of both ends.
    const key = `${identity(from)} ${identity(to)} ${edge.from.number}`;
    if (!container.known.has(key)) {
      const arrow = { from, to, node: edge.from, edges: [], container };
      container.known.set(key, arrow);
      container.arrows.push(arrow);
    }
    container.known.get(key).edges.push(edge);
  };
  const chain = (node) => { const list = []; for (let at = node; at !== graph; at = at.up) list.push(at); return list; };
  for (const edge of graph.edges) {
    const from = chain(edge.from), to = chain(edge.to);
    let common = 0;
    while (common < from.length - 1 && common < to.length - 1 && from.at(-1 - common) === to.at(-1 - common)) common++;
    const [start, end] = [from.at(-1 - common), to.at(-1 - common)];
    add(common ? from.at(-common) : graph, start, end, edge);
    for (let at = 0; from[at] !== start; at++) add(from[at + 1], from[at], portOf(from[at + 1].outs, from[at + 1], edge.from, "out"), edge);
    for (let at = 0; to[at] !== end; at++) add(to[at + 1], portOf(to[at + 1].ins, to[at + 1], edge.from, "in"), to[at], edge);
  }
  for (const container of containers) delete container.known;
}
let identities = 0;
const identity = (end) => end.identity ??= ++identities;
data.graphs.forEach(connect);

// The size of a box, from the texts on it.
const letters = (text, wide) => [...text].length * wide;
function lines(node) {
  const list = [{ kind: "op", text: node.op }];
  const label = labelOf(node);
  if (label) list.push({ kind: "name", text: label });
  const run = runs[0]?.layers.get(node.path);
  if (node.layers) list.push({ kind: "type", text: plural(node.layers, "layer") });
  else if (node.convert) list.push({ kind: "type", text: `${node.convert[0]} → ${node.convert[1]}`, loses: node.convert[2] });
  else if (node.op === "Result" && types(node)) list.push({ kind: "type", text: types(node) });
  else if (node.outputs.length) list.push({ kind: "type", text: types(node) + (run?.type && run.type !== node.outputs[0][0] ? ` as ${run.type}` : "") });
  if (node.weights) list.push({ kind: "type", text: node.weights });
  for (const text of badges(node)) list.push({ kind: "badge", ...text });
  return list;
}
// Errors, warnings and changes of a box, or inside it while it is closed.
function badges(item) {
  const found = [], hidden = item.open ? {} : inside.get(item) ?? {}, own = marks.get(item.path) ?? [];
  const count = (severity) => (item.kind === "layer" ? own.filter((finding) => finding.severity === severity).length : 0) + (hidden[severity] ?? 0);
  if (changed.has(item)) found.push({ text: { added: "+ added", changed: "~ changed", removed: "− removed" }[changed.get(item)], of: changed.get(item) });
  if (count("error")) found.push({ text: "● " + plural(count("error"), "error"), of: "error" });
  else if (count("warning")) found.push({ text: "▲ " + plural(count("warning"), "warning"), of: "warning" });
  if (hidden.changed) found.push({ text: "~ " + plural(hidden.changed, "change"), of: "changes" });
  return found;
}
const WIDTHS = { op: 8.7, name: 6.6, type: 7.4, badge: 7 };
function boxSize(node) {
  const list = lines(node), widths = list.map(({ kind, text, loses }) => letters(text, WIDTHS[kind]) + (loses ? letters(loses, 7.4) + 8 : 0));
  const spare = node.bodies.length ? 30 : 0;
  return [Math.round(Math.max(96, Math.min(280, Math.max(...widths) + 30 + spare))), 14 + 16 * Math.max(list.length, 2)];
}
// The facts on a closed group: what it stores and computes, and how it differs from its siblings.
function groupLines(group, item = group) {
  const stored = group.weights?.reduce((sum, [, bytes]) => sum + bytes, 0) ?? 0;
  const facts = [plural(group.layers, "layer"), stored ? size(stored) : null, group.macs && (isNumeric || !openGroups.includes(item)) ? operations(group) : null];
  const list = [{ kind: "name", text: facts.filter(Boolean).join(" · ") }];
  const computed = computedIn(group).map(([type]) => type).join(", "), kept = (group.weights ?? []).map(([type]) => type).join(", ");
  const both = [kept ? `stored ${kept}` : "", computed ? computedWord + computed : ""].filter(Boolean).join(" · ");
  if (both) list.push({ kind: "type", text: both });
  if (group.differs?.length) list.push({ text: ofModel(group.differs[0]) + (group.differs.length > 1 ? ` (+${group.differs.length - 1})` : ""), ...(differsClass(group.differs[0]) === "faint" ? { kind: "name" } : { kind: "badge", of: "warning" }) });
  for (const badge of badges(item)) list.push({ kind: "badge", ...badge });
  return list;
}
const sizeOf = (item) => item.kind === "layer" ? boxSize(item) : [GROUP_WIDTH, 30 + 16 * groupLines(item).length + (item.weights?.length ? 10 : 0)];

// The layout of each arrangement of boxes. Equal siblings share one.
const layouts = new Map();

/** Places the boxes of a group or graph, and those of open groups inside it. */
function arrange(container) {
  if (container.plan) return container.plan;
  const children = container.items, index = new Map(children.map((child, at) => [child, at])), sizes = [], ports = [];
  for (const child of children) {
    if (child.open) arrange(child);
    sizes.push(child.open ? [Math.max(child.plan.w + 2 * PAD, titleWidth(child)), child.plan.h + HEAD + PAD] : sizeOf(child));
  }
  const pins = children.map(() => 0);
  for (const [list, pin] of [[container.ins, -1], [container.outs, 1]]) for (const port of list?.values() ?? []) {
    index.set(port, sizes.length);
    sizes.push([LANE, 0]);
    pins.push(pin);
    ports.push(port);
  }
  const arrows = [], drawn = [], known = new Map();
  for (const arrow of container.arrows ?? []) {
    const { from, to, node } = arrow, [a, b] = [index.get(from), index.get(to)];
    const out = from.open ? offset(from, node, "outs", sizes[a]) : 0, into = to.kind === "port" ? 0 : to.open ? offset(to, node, "ins", sizes[b]) : null;
    const key = `${a} ${b} ${out} ${into}`;
    if (!known.has(key)) {
      known.set(key, drawn.length);
      arrows.push({ from: a, to: b, out, into, trunk: from.open ? String(node.number) : "" });
      drawn.push([]);
    }
    drawn[known.get(key)].push(arrow);
  }
  // Trunks are named by their order, so that siblings are alike.
  const names = new Map(), hasPins = pins.some(Boolean);
  for (const arrow of arrows) {
    if (!names.has(arrow.trunk)) names.set(arrow.trunk, String(names.size));
    arrow.trunk = names.get(arrow.trunk);
  }
  const key = JSON.stringify([sizes, arrows, hasPins ? pins : 0]);
  if (!layouts.has(key)) layouts.set(key, layout({ sizes, arrows, pins: hasPins ? pins : undefined }));
  const { places, routes, w, h } = layouts.get(key);
  container.plan = { w, h, sizes, places, routes, drawn, index, ports };
  return container.plan;
}
// The place of a port of an open group, from the middle of the group.
function offset(group, node, side, [width]) {
  const port = group[side]?.get(node), plan = group.plan;
  return port ? Math.round((plan.places[plan.index.get(port)][0] + (width - plan.w) / 2 - width / 2) * 10) / 10 : 0;
}
const titleWidth = (item) => letters(titleOf(item), 8.1) + 60;
const titleOf = (item) => item.kind === "layer" ? `${item.op} ${labelOf(item)}` : item.kind === "graph" ? item.name : groupName(item);

/** All boxes and arrows at their places. */
let shownBoxes = [], shownRoutes = [], world = { left: 0, right: 0, top: 0, bottom: 0 };
const spots = new Map();
function flatten() {
  shownBoxes = [];
  shownRoutes = [];
  spots.clear();
  const root = data.graphs[0], whole = arrange(root), pending = [{ container: root, left: 0, top: 0, depth: 0 }];
  for (const node of layers) node.stubs = undefined;
  while (pending.length) {
    const { container, left, top, depth } = pending.pop(), { sizes, places, routes, drawn } = container.plan;
    container.items.forEach((item, at) => {
      const [w, h] = sizes[at], [x, y] = places[at];
      const spot = { item, x: left + x - w / 2, y: top + y - h / 2, w, h, depth };
      spots.set(item, spot);
      shownBoxes.push(spot);
      if (item.open) pending.push({ container: item, left: spot.x + (w - item.plan.w) / 2, top: spot.y + HEAD, depth: depth + 1 });
    });
    routes.forEach((points, at) => {
      if (points) shownRoutes.push({ arrows: drawn[at], points: stretch(points, drawn[at][0], left, top), container });
      else for (const { to, node } of drawn[at]) (to.stubs ??= []).push(node);
    });
  }
  world = { left: 0, top: 0, right: whole.w, bottom: whole.h };
  for (const graph of data.graphs) backEdges.filter((edge) => edge.graph === graph).forEach(drawBack);
}
// An arrow to the next iteration: below its Result, along the right border of the body, and to the Parameter from above.
function drawBack(edge, at) {
  const [from, to] = [standIn(edge.from), standIn(edge.to)], [a, b, body] = [spots.get(from), spots.get(to), spots.get(edge.graph)];
  if (!a || !b || !body || from === to) return;
  const along = body.x + body.w - 5 - 3 * (at % 4), [x, end] = [a.x + a.w / 2, b.x + b.w * 0.75];
  const below = clear(edge.graph, a, x, along, a.y + a.h + 7, 7), above = clear(edge.graph, b, end, along, b.y - 9, -9);
  shownRoutes.push({ arrows: [{ from, to, node: edge.from, edges: [edge] }], points: [[x, a.y + a.h], [x, below], [along, below], [along, above], [end, above], [end, b.y]], container: edge.graph });
}
// The nearest height, up or down, at which a line from a box to the right border of a body meets no other box.
function clear(graph, own, left, right, y, step) {
  const isAround = (it) => it.x <= own.x && it.x + it.w >= own.x + own.w && it.y <= own.y && it.y + it.h >= own.y + own.h;
  const inWay = shownBoxes.find((it) => it.item.graph === graph && !isAround(it) && it.x < right && it.x + it.w > left && it.y < y && it.y + it.h > y);
  return inWay ? clear(graph, own, left, right, (step > 0 ? inWay.y + inWay.h : inWay.y) + step, step) : y;
}
// Ends of arrows at ports continue to the border of the group.
function stretch(points, { from, to }, left, top) {
  const moved = points.map(([x, y]) => [x + left, y + top]);
  if (from.kind === "port") moved[0][1] -= HEAD;
  if (to.kind === "port") moved.at(-1)[1] += PAD;
  return moved;
}

/** Forgets the plans of a group and of all around it. */
function disturb(item) {
  for (let at = item; at; at = at.up) at.plan = null;
}
// True for a group or a layer that can be opened. The blocks of an outline cannot.
const opens = (item) => Boolean(item?.items) && item.kind !== "graph" && !(data.outline && item.kind === "group");
function setOpen(item, open) {
  if (!opens(item)) return;
  item.open = open;
  disturb(item.up);
  // Scopes inside open too, unless they have many boxes.
  if (open && item.kind === "group") for (const inner of item.items) if (inner.kind === "group") setOpen(inner, item.members.length <= MANY);
  if (open && item.kind === "layer") for (const body of item.bodies) if (body.boxes <= MANY) for (const inner of body.items) if (inner.kind === "group") setOpen(inner, true);
}
const expose = (item) => { for (let up = item.up; up; up = up.up) if (opens(up) && !up.open) { up.open = true; disturb(up.up); } };
/** Returns the box on the screen that stands for an item: itself, or the outermost closed group around it. */
function standIn(item) {
  let found = item;
  for (let up = item.up; up; up = up.up) if (up.kind !== "graph" && !up.open) found = up;
  return found;
}
// A small graph is open from the start.
if (data.graphs[0].boxes <= MANY && !data.outline) for (const item of data.graphs[0].items) if (item.kind === "group") setOpen(item, true);
