"use strict";
// A copy of this page as loaded, from which the page of the earlier model is made.
const copy = document.documentElement.cloneNode(true);
const data = unfolded(JSON.parse(document.getElementById("data").textContent));
const by = (id) => document.getElementById(id);
const NS = "http://www.w3.org/2000/svg";
const canvas = by("canvas"), world = by("world");

// Restores the strings of the page: `~1` is the second of the list. Each string shares its start with the one before.
function unfolded({ strings, page }) {
  if (!strings) return page;
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

// A colour for each element type. Any two can be distinguished, also with deuteranopia.
const COLORS = {
  f64: "#0300a6", f32: "#201fff", f16: "#8464ff", bf16: "#63adff", f8e4m3: "#7613a3", f8e5m2: "#254b60", f8e8m0: "#06e0ff", f4e2m1: "#122052", nf4: "#7a62a2",
  i64: "#d78907", i32: "#880c01", i16: "#0f9c1f", i8: "#31caa2", i4: "#0d2b00", u64: "#12593b", u32: "#eae5a1", u16: "#ffa462", u8: "#fde306", u6: "#012a26", u4: "#b84655", u3: "#f459bf", u2: "#ffdacf", u1: "#80b972",
  boolean: "#038276", string: "#f5d8fa",
};
const color = (type) => COLORS[type] ?? "#08415e";

// Steps and arrows are stored as rows.
const named = (rows, ...names) => rows.map((row) => Object.fromEntries(names.map((name, at) => [name, row[at] ?? undefined])));
data.steps = named(data.steps, "id", "path", "op", "output", "rule", "type", "from", "before", "next", "stored", "loses");
for (const scene of data.scenes) scene.edges = named(scene.edges, "from", "to", "type", "shape");

// Layers by path; findings and changes by path; explanations by path and output.
const places = new Map(), marks = new Map(), reasons = new Map();
data.scenes.forEach((scene, at) => scene.nodes.forEach((node, number) => {
  node.scene = at;
  node.number = number;
  if (node.id !== null || !places.has(node.path)) places.set(node.path, node);
}));
for (const finding of data.findings) {
  if (!marks.has(finding.path)) marks.set(finding.path, []);
  marks.get(finding.path).push(finding);
}
const changed = new Map(data.changes.filter((change) => change.kind !== "names").map((change) => [change.path, ["added", "removed"].includes(change.kind) ? change.kind : "changed"]));
data.steps.forEach((step) => reasons.set(`${step.path}\n${step.id}\n${step.output}`, step));
for (const scene of data.scenes) {
  scene.next = scene.nodes.map(() => []);
  scene.before = scene.nodes.map(() => []);
  for (const edge of scene.edges) {
    scene.next[edge.from].push(edge);
    scene.before[edge.to].push(edge);
  }
}

// Layers without a box, mostly constants, by path: the box that uses them. Also the consumers of each layer.
const holders = new Map(), users = new Map();
for (const node of data.scenes.flatMap((scene) => scene.nodes)) {
  for (const input of node.inputs) {
    for (const path of input.held ?? []) if (!holders.has(path)) holders.set(path, node);
    if (node.layers) continue;
    for (const from of [input.from, ...(input.of ?? [])].filter(Boolean)) {
      if (!users.has(from)) users.set(from, new Set());
      users.get(from).add(node.path);
    }
  }
}
const find = (path) => places.get(path) ?? holders.get(path);

// Errors, findings and changes inside a box that opens.
const inside = new Map();
function markInside(path, kind) {
  for (let at = find(path)?.scene ?? 0; data.scenes[at].parent !== null; at = data.scenes[at].parent) {
    const box = data.scenes[data.scenes[at].parent].nodes.find((node) => node.opens?.includes(at));
    if (!box) return;
    const counts = inside.get(box) ?? {};
    counts[kind] = (counts[kind] ?? 0) + 1;
    inside.set(box, counts);
  }
}
for (const finding of data.findings) if (finding.severity !== "note") markInside(finding.path, finding.severity);
for (const change of data.changes) if (change.kind !== "names") markInside(change.at, "changed");
const plural = (count, what) => `${count} ${what}${count === 1 ? "" : "s"}`;

function decoded(text) {
  try { return decodeURIComponent(text); } catch { return text; }
}

let scene = data.scenes[0], selected = null;
let view = { x: 0, y: 0, scale: 1 };
const shown = new Map(), lines = new Map(), kept = new Map();

// The smallest scale at which the text of a box is readable: 10 pixels.
const READABLE = 0.84;
const last = (name) => name.split("/").pop() || name;
// The end of a name, which is the most specific part. For a block, the part before its number is kept as well.
const short = (node) => node.layers ? node.name.split(/[./]/).slice(-2).join(".") : last(node.name);
const cut = (text, room) => text.length > room ? text.slice(0, Math.max(1, room - 1)) + "…" : text;
const types = (node) => node.outputs.map(([type, shape]) => type + shape).join(", ");

// The layers as a plugin ran them, by path; and the layers that it added, by the names at both ends.
const ran = new Map((data.ran?.layers ?? []).map((layer) => [layer.path, layer]));
const added = new Map((data.ran?.added ?? []).map((layer) => [`${layer.from}\n${layer.to}`, layer]));
const addedOn = (edge) => added.get(`${scene.nodes[edge.from].path}\n${scene.nodes[edge.to].path}`);

// The type that gives a box its colour: that in which it was computed, or that of its output, or else of its input.
const typeOf = (node) => ran.get(node.path)?.type ?? node.outputs[0]?.[0] ?? node.inputs[0]?.text.match(/(?:^| )([a-z0-9]+)\[/)?.[1] ?? data.scenes[node.scene].next[node.number].find((edge) => edge.type)?.type;

function box(node) {
  const group = draw("g", { class: "node", transform: `translate(${node.x - node.w / 2} ${node.y - node.h / 2})`, "data-path": node.path });
  const findings = marks.get(node.path) || [];
  if (node.gone) group.classList.add("removed", "gone");
  if (node.convert) group.classList.add("convert");
  if (node.convert && node.convert[2]) group.classList.add("loses");
  if (changed.has(node.path)) group.classList.add(changed.get(node.path));
  const run = ran.get(node.path);
  if (run?.pale) group.classList.add("pale");
  const { w, h } = node, room = Math.floor((w - 24) / 7.3);
  if (node.opens) {
    group.classList.add("opens");
    group.append(draw("rect", { class: "under", x: 5, y: 5, width: w, height: h, rx: 9 }));
  }
  const type = typeOf(node);
  group.append(draw("rect", { class: "body", width: w, height: h, rx: 9 }));
  if (type) group.append(draw("rect", { class: "tint", width: w, height: h, rx: 9, fill: color(type) }), draw("path", { d: `M9 0V${h}A9 9 0 0 1 0 ${h - 9}V9A9 9 0 0 1 9 0Z`, fill: color(type) }));
  const convert = node.convert && `${node.convert[0]} → ${node.convert[1]}`;
  group.append(draw("text", { class: "op", x: 15, y: 20 }, cut(node.layers ? short(node) : node.op, room)));
  group.append(draw("text", { class: "name", x: 15, y: 36 }, node.layers ? "a block of" : cut(last(node.name), room)));
  const line = draw("text", { class: "type", x: 15, y: 52 }, node.layers ? plural(node.layers, "layer") : convert ?? cut(types(node) + (run?.type && run.type !== node.outputs[0]?.[0] ? ` as ${run.type}` : ""), room));
  if (node.convert?.[2]) line.append(draw("tspan", { class: "warning", dx: 8 }, cut(node.convert[2], room - convert.length - 1)));
  group.append(line);
  if (node.weights) group.append(draw("text", { class: "type", x: 15, y: 67 }, cut(node.weights, room)));
  if (run?.weights) group.append(draw("rect", { x: 9, y: h - 5, width: w - 18, height: 4, rx: 2, fill: color(run.weights[0][1]) }));
  if (node.opens) group.append(draw("text", { class: "opener", x: w - 10, y: 20, "text-anchor": "end" }, "⤢"));
  const hidden = inside.get(node) ?? {};
  const badges = changed.has(node.path) ? [[changed.get(node.path), { added: "+ added", changed: "~ changed", removed: "− removed" }[changed.get(node.path)]]] : [];
  const errors = findings.filter((finding) => finding.severity === "error").length + (hidden.error ?? 0);
  const warnings = findings.filter((finding) => finding.severity === "warning").length + (hidden.warning ?? 0);
  if (errors) badges.push(["error", "● " + plural(errors, "error")]);
  else if (warnings) badges.push(["warning", "▲ " + plural(warnings, "warning")]);
  if (hidden.changed) badges.push(["changes", "~ " + plural(hidden.changed, "change")]);
  if (badges.length) {
    const label = draw("text", { class: "badge", x: w - 4, y: -5, "text-anchor": "end" });
    badges.forEach(([kind, text]) => label.append(draw("tspan", { class: kind, dx: 6 }, text)));
    group.append(label);
  }
  if (hidden.changed) group.classList.add("changed");
  const stubs = node.inputs.filter((input) => input.stub);
  if (stubs.length && !badges.length) group.append(draw("text", { class: "stub", x: w / 2 + 8, y: -5 }, cut("↥ " + (stubs.length === 1 ? last(stubs[0].from ?? stubs[0].text.split(" ")[0]) : stubs.length + " from elsewhere"), 22)));
  group.setAttribute("aria-label", `${node.op} ${node.name} ${types(node)}`);
  if (selected === node) group.classList.add("selected");
  return group;
}

function curve(edge) {
  const from = scene.nodes[edge.from], to = scene.nodes[edge.to];
  const x = from.x, y = from.y + from.h / 2, a = to.x, b = to.y - to.h / 2;
  const bend = Math.max(18, Math.min(90, Math.abs(b - y) / 2));
  return `M${x} ${y}C${x} ${y + bend} ${a} ${b - bend} ${a} ${b - 2}`;
}

// Only visible boxes are in the document.
const MOST = 1200;
function refresh() {
  world.setAttribute("transform", `translate(${view.x} ${view.y}) scale(${view.scale})`);
  const far = view.scale < READABLE;
  world.classList.toggle("far", far);
  by("far").hidden = !far;
  const { clientWidth: width, clientHeight: height } = canvas, margin = 80;
  const left = (-view.x - margin) / view.scale, right = (width - view.x + margin) / view.scale;
  const top = (-view.y - margin) / view.scale, bottom = (height - view.y + margin) / view.scale;
  const visible = (node) => node.x + node.w > left && node.x - node.w < right && node.y + node.h > top && node.y - node.h < bottom;
  let wanted = scene.nodes.filter(visible);
  if (wanted.length > MOST) wanted = wanted.filter((_, at) => at % Math.ceil(wanted.length / MOST) === 0);
  const keep = new Set(wanted);
  for (const [node, element] of shown) {
    if (!keep.has(node)) {
      element.remove();
      shown.delete(node);
    }
  }
  for (const node of keep) {
    if (!shown.has(node)) {
      if (!kept.has(node)) kept.set(node, box(node));
      shown.set(node, kept.get(node));
      by("nodes").append(kept.get(node));
    }
  }
  const arrows = new Set();
  for (const node of keep) {
    for (const edge of scene.next[node.number]) arrows.add(edge);
    for (const edge of scene.before[node.number]) arrows.add(edge);
  }
  for (const [edge, line] of lines) {
    if (!arrows.has(edge)) {
      line.remove();
      lines.delete(edge);
    }
  }
  for (const edge of arrows) {
    if (!lines.has(edge)) {
      const line = draw("path", { class: "edge", d: curve(edge), "marker-end": "url(#arrow)" });
      const extra = addedOn(edge);
      line.append(draw("title", {}, edge.type + edge.shape + (extra ? ` · ${extra.text}` : "")));
      if (extra) line.classList.add("added");
      lines.set(edge, line);
      by("edges").append(line);
    }
  }
  minimap();
  for (const [node, element] of shown) element.classList.toggle("off", path !== null && !path.boxes.has(node));
  for (const [edge, line] of lines) line.classList.toggle("off", path !== null && !(path.boxes.has(scene.nodes[edge.from]) && path.boxes.has(scene.nodes[edge.to])));
  for (const [edge, line] of lines) line.classList.toggle("on", selected !== null && (scene.nodes[edge.from] === selected || scene.nodes[edge.to] === selected));
}
let waiting = false;
function later() {
  if (!waiting) requestAnimationFrame(() => { waiting = false; refresh(); });
  waiting = true;
}

function bounds() {
  let [left, right, top, bottom] = [Infinity, -Infinity, Infinity, -Infinity];
  for (const node of scene.nodes) {
    left = Math.min(left, node.x - node.w / 2); right = Math.max(right, node.x + node.w / 2);
    top = Math.min(top, node.y - node.h / 2); bottom = Math.max(bottom, node.y + node.h / 2);
  }
  return { left, right, top, bottom };
}

// Shows everything; or the start, if everything would be too small to read and was not asked for.
function fit(whole = true) {
  if (!scene.nodes.length) return;
  const { left, right, top, bottom } = bounds();
  const { clientWidth: width, clientHeight: height } = canvas;
  const all = Math.min((width - 40) / (right - left), (height - 50) / (bottom - top), 1.25);
  const scale = whole ? Math.max(all, 0.02) : Math.max(all, 0.9);
  const first = scene.nodes.reduce((first, node) => node.y - node.h / 2 < first.y - first.h / 2 ? node : first);
  const middle = (right - left) * scale > width ? first.x : (left + right) / 2;
  view = { scale, x: width / 2 - middle * scale, y: scale > all ? 34 - top * scale : height / 2 - (top + bottom) / 2 * scale };
  refresh();
}

// Draws all boxes in the overview, and the visible part.
function minimap() {
  const mini = by("mini"), context = mini.getContext("2d");
  if (!mini.offsetWidth || !scene.nodes.length) return;
  [mini.width, mini.height] = [mini.offsetWidth, mini.offsetHeight];
  const { left, right, top, bottom } = bounds();
  // A tall graph is drawn sideways.
  const turned = bottom - top > right - left;
  const [long, wide] = turned ? [bottom - top, right - left] : [right - left, bottom - top];
  const across = (mini.width - 12) / long, along = Math.min((mini.height - 12) / wide, across * 4);
  const place = (x, y) => turned ? [6 + (y - top) * across, 6 + (x - left) * along] : [6 + (x - left) * across, 6 + (y - top) * along];
  mini.place = { turned, left, top, across, along };
  const rectangle = (x, y, w, h) => { const [a, b] = place(x, y); return turned ? [a, b, Math.max(2, h * across), Math.max(2, w * along)] : [a, b, Math.max(2, w * across), Math.max(2, h * along)]; };
  const style = getComputedStyle(document.documentElement), colorOf = (name) => style.getPropertyValue(name);
  for (const node of scene.nodes) {
    const place = rectangle(node.x - node.w / 2, node.y - node.h / 2, node.w, node.h), type = typeOf(node);
    context.fillStyle = type ? color(type) : colorOf("--edge");
    context.fillRect(...place);
    // A frame marks errors, losses and changes.
    const severities = (marks.get(node.path) ?? []).map((finding) => finding.severity), within = inside.get(node) ?? {};
    const frame = node.gone || severities.includes("error") || within.error ? "--bad" : node.convert?.[2] || severities.includes("warning") || within.warning ? "--warn" : changed.get(node.path) === "added" ? "--good" : changed.has(node.path) || within.changed ? "--accent" : null;
    if (frame) {
      context.strokeStyle = colorOf(frame);
      context.lineWidth = 2;
      context.strokeRect(...place);
    }
  }
  context.strokeStyle = colorOf("--accent");
  context.lineWidth = 2;
  context.strokeRect(...rectangle(-view.x / view.scale, -view.y / view.scale, canvas.clientWidth / view.scale, canvas.clientHeight / view.scale));
}
by("mini").addEventListener("pointerdown", (event) => {
  const place = by("mini").place;
  if (!place) return;
  const [a, b] = place.turned ? [event.offsetY / place.along, event.offsetX / place.across] : [event.offsetX / place.across, event.offsetY / place.along];
  view = { ...view, x: canvas.clientWidth / 2 - (place.left + a) * view.scale, y: canvas.clientHeight / 2 - (place.top + b) * view.scale };
  refresh();
});

function clear() {
  for (const element of [...shown.values(), ...lines.values()]) element.remove();
  shown.clear(); lines.clear(); kept.clear();
}

// The address holds the current selection, so that links and the Back button work.
let restoring = false;
function remember(hash) {
  if (restoring) return;
  record(hash);
  tell({ hash });
}
function record(hash) {
  if (isBeside || decoded(location.hash.slice(1)) === hash) return;
  // A page embedded in another, such as a notebook, may have no address of its own.
  try { history.pushState(null, "", hash ? "#" + encodeURIComponent(hash) : location.pathname + location.search); } catch { }
}
// The earlier model has its graph next to this one, in its own frame. Both frames select and open the same boxes.
const isBeside = document.documentElement.classList.contains("beside"), frame = by("before");
const tell = (told) => (isBeside ? parent : frame.contentWindow)?.postMessage(told, "*");
function beside(shown) {
  frame.hidden = !shown;
  by("both").setAttribute("aria-pressed", String(shown));
  if (shown && !frame.srcdoc) {
    copy.classList.add("beside");
    copy.querySelector("#data").textContent = JSON.stringify({ page: data.beside }).replace(/</g, "\\u003c");
    frame.srcdoc = "<!doctype html>" + copy.outerHTML;
  }
  later();
}
window.addEventListener("message", ({ data: told, source }) => {
  if (source !== parent && source !== frame.contentWindow) return;
  if (typeof told?.dark === "boolean") paint(told.dark);
  if (typeof told?.hash !== "string") return;
  show(told.hash, false);
  record(told.hash);
});
const isDark = () => document.documentElement.classList.contains("dark");
function paint(dark) {
  if (dark !== isDark()) later();
  document.documentElement.classList.toggle("dark", dark);
  if (!isBeside) tell({ dark });
}
frame.addEventListener("load", () => {
  tell({ dark: isDark() });
  tell({ hash: decoded(location.hash.slice(1)) });
});
const inScene = () => scene.parent === null ? "" : "in:" + scene.title;

// The data path of a value: its steps, and the boxes that contain them.
let path = null;
const stepName = (step) => step.output ? `${step.path}.${step.output}` : step.path;
// The path begins where the value is stored, leads to the first layer that computes with it, and continues through the
// Converts after that layer.
function pathOf(asked) {
  const steps = [], seen = new Set([asked]);
  const add = (step) => step && !seen.has(step) && seen.add(step);
  for (let step = asked; (step = data.steps[step.before]) && add(step);) steps.unshift(step);
  steps.push(asked);
  for (let step = asked, used = false; (step = data.steps[step.next]) && add(step);) {
    const passes = step.loses !== undefined || step.stored !== undefined;
    if (used && step.loses === undefined) break;
    used ||= !passes;
    steps.push(step);
  }
  const boxes = new Set();
  for (const step of steps) {
    for (let node = find(step.path); node && !boxes.has(node); node = holding(node.scene)) boxes.add(node);
  }
  return { asked, steps, boxes };
}
// The box that opens a scene.
const holding = (at) => data.scenes[at].parent === null ? null : data.scenes[data.scenes[at].parent].nodes.find((node) => node.opens?.includes(at));

function follow(asked) {
  path = asked ? pathOf(asked) : null;
  by("path").hidden = !path;
  if (path) {
    const lost = new Set(path.steps.flatMap((step) => (step.loses ?? "exact").split(", ")).filter((loss) => loss !== "exact"));
    const items = path.steps.map((step, at) => {
      const before = path.steps[at - 1], type = step.type + (step.stored !== undefined ? step.stored : "");
      const label = step.loses !== undefined ? `Convert ${step.type}` : before?.type === step.type && step.stored === undefined ? step.op : at ? `${step.op} ${type}` : type;
      const item = make("li", step === asked ? { "aria-current": "true" } : {}, link({ class: "mono", title: step.path }, step.path, () => { const node = find(step.path); if (node) go(node); }, label));
      if (step.loses !== undefined) item.append(make("span", { class: step.loses === "exact" ? "faint" : "warning" }, ` (${step.loses})`));
      return item;
    });
    by("path").replaceChildren(make("b", {}, "Path"), make("ol", {}, ...items), make("span", { class: lost.size ? "warning" : "faint" }, lost.size ? `loses: ${[...lost].join(", ")}` : "loses nothing"), make("button", { class: "close", "aria-label": "Close the path", onclick: () => { follow(null); canvas.focus(); } }, "×"));
    remember("path:" + stepName(asked));
  }
  refresh();
}
const pathLink = (step, text) => step ? [link({ title: "From where it is stored to where it is used" }, "path:" + stepName(step), () => follow(step), text)] : [];
// The first tensor of a layer, by its path.
const stepsAt = new Map();
for (const step of data.steps) if (!stepsAt.has(step.path)) stepsAt.set(step.path, step);

function enter(at) {
  scene = data.scenes[at];
  selected = null;
  clear();
  by("details").hidden = true;
  const trail = [];
  by("trail").hidden = scene.parent === null;
  for (let next = at; next !== null; next = data.scenes[next].parent) trail.unshift(next);
  by("trail").replaceChildren(...trail.flatMap((number, place) => {
    const { title, parent } = data.scenes[number], shown = parent === null ? "graph" : title.split(/[./]/).slice(-2).join(".");
    const step = number === at ? make("span", { "aria-current": "page", title }, shown) : make("button", { onclick: () => open(number), title }, shown);
    return place ? [make("span", {}, "›"), step] : [step];
  }));
  if (tab === "outline") side();
  legend();
}

function open(at) {
  enter(at);
  remember(inScene());
  fit(false);
}

function go(node) {
  if (data.scenes[node.scene] !== scene) enter(node.scene);
  select(node);
  const scale = Math.max(view.scale, 0.9);
  view = { scale, x: canvas.clientWidth / 2 - node.x * scale, y: canvas.clientHeight / 2 - node.y * scale };
  refresh();
}

function select(node) {
  if (selected && kept.has(selected)) kept.get(selected).classList.remove("selected");
  selected = node;
  details(node);
  refresh();
  if (node && kept.has(node)) kept.get(node).classList.add("selected");
  remember(node ? node.path : inScene());
}

const restore = () => show(decoded(location.hash.slice(1)), true);
function show(hash, fits) {
  restoring = true;
  const asked = hash.startsWith("path:") ? data.steps.find((step) => stepName(step) === hash.slice(5)) : null;
  if (asked || !find(hash)) follow(asked ?? null);
  if (asked) hash = asked.path;
  const node = find(hash);
  const at = hash.startsWith("in:") ? data.scenes.findIndex((scene) => scene.title === hash.slice(3)) : -1;
  const next = node?.scene ?? Math.max(at, 0), stays = data.scenes[next] === scene && !fits;
  if (!stays) enter(next);
  if (node) go(node);
  else if (stays) select(null);
  else fit(false);
  restoring = false;
}
window.addEventListener("popstate", restore);

// A link to a place of this page, such as a layer.
const link = ({ class: kind = "", ...attributes }, hash, action, text) => make("a", { class: ("link " + kind).trim(), href: "#" + encodeURIComponent(hash), ...attributes, onclick: (event) => { event.preventDefault(); action(); } }, text);

function reach(path, at = path, text = path) {
  const node = find(path) ?? find(at);
  return node ? link({ title: path }, path, () => go(node), text) : make("span", {}, text);
}

function section(title, ...content) {
  return content.length ? [make("h3", {}, title), ...content] : [];
}

const listed = (title, items) => section(title, ...(items.length ? [make("ul", {}, ...items)] : []));

function closing(aside) {
  return make("button", { class: "close", "aria-label": "Close", onclick: () => { aside.hidden = true; select(null); canvas.focus(); } }, "×");
}

// Lines about the run of a layer: the executed layer, its weights, and the layers added before it.
function ranLines(node) {
  const run = ran.get(node.path);
  if (!run) return [];
  const weights = (run.weights ?? []).map(([stored, used]) => `weights stored as ${stored}, ${stored === used ? "kept" : used === "?" ? "arrive in a type that no name shows" : `arrive as ${used}`}`);
  const before = [...added.values()].filter((layer) => layer.to === node.path).map((layer) => `${layer.text} after ${last(layer.from)}`);
  return [run.text + (run.exec ? `: ${run.exec}` : ""), ...weights, ...before].map((line) => make("div", {}, line));
}

function details(node) {
  const panel = by("details");
  panel.hidden = !node;
  if (!node) return;
  const where = [node.op, node.id !== null ? `id ${node.id}` : null, node.line ? `line ${node.line}` : null].filter(Boolean).join(" · ");
  const inputs = node.inputs.map((input) => make("li", {}, input.from ? reach(input.from, input.from, last(input.from)) : make("span", { class: "faint" }, input.of ? "computed of the shape of " : "constant"), ...(input.held && !input.of ? [" ", ...pathLink(stepsAt.get(input.held[0]), "path")] : []), ...(input.of ?? []).flatMap((path) => [reach(path, path, last(path)), " "]), " ", make("code", {}, input.text)));
  const outputs = node.outputs.map(([type, shape], port) => make("li", {}, make("button", { class: "link mono", title: "Why this type?", onclick: () => why(node, port) }, `${type}${shape}`), " ", ...pathLink(reasons.get(`${node.path}\n${node.id}\n${port}`), "path")));
  const findings = (marks.get(node.path) || []).map((finding) => make("li", {}, make("b", { class: finding.severity }, `${finding.severity}[${finding.code}] `), finding.message, ...finding.help.map((help) => make("div", { class: "faint" }, "help: " + help))));
  const changes = data.changes.filter((change) => change.at === node.path || change.path === node.path).map(changeItem);
  const used = [...(users.get(node.path) ?? [])].map((path) => make("li", {}, reach(path, path, last(path))));
  const attributes = (node.attributes || []).flatMap(([name, value]) => [make("dt", {}, name), make("dd", { class: "mono" }, value)]);
  panel.replaceChildren(
    closing(panel), make("h2", {}, node.name), make("div", { class: "faint" }, where),
    ...(node.opens || []).map((at) => make("p", {}, make("button", { onclick: () => open(at) }, `Open ${node.layers ? short(node) : last(data.scenes[at].title)}`))),
    ...(node.convert ? section("Converts", make("div", { class: node.convert[2] ? "warning" : "" }, `${node.convert[0]} → ${node.convert[1]}: ${node.convert[2] || "keeps every value"}`)) : []),
    ...section("As a plugin ran it", ...ranLines(node)),
    ...listed("Changed", changes), ...listed("Findings", findings),
    ...listed("Outputs", outputs), make("div", { id: "why" }), ...listed("Inputs", inputs), ...listed("Used by", used), ...section("Tensor names", ...(node.tensors ?? []).map((name) => make("div", { class: "mono" }, name))),
    ...(attributes.length ? section("Attributes", make("dl", {}, ...attributes)) : []));
  if (node.outputs.length) why(node, 0);
}

// The source of a tensor's type, and the steps from the source to the tensor.
const MOST_STEPS = 12, MOST_SOURCES = 6;
function why(node, port) {
  const start = reasons.get(`${node.path}\n${node.id}\n${port}`), seen = new Set(), steps = [];
  const waiting = start ? [start] : [];
  for (let step; (step = waiting.shift());) {
    if (seen.has(step)) continue;
    seen.add(step);
    steps.push(step);
    waiting.push(...step.from.map(([, from]) => data.steps[from]));
  }
  const item = (step) => make("li", {}, make("code", {}, step.type + " "), reach(step.path, step.path, last(step.path)), make("div", { class: "faint" }, step.rule));
  const list = (steps, most) => make("ol", { class: "why" }, ...steps.slice(0, most).map(item), ...(steps.length > most ? [make("li", { class: "faint" }, `and ${steps.length - most} more: typelift why ${data.file} '${node.path}'`)] : []));
  const sources = steps.filter((step) => !step.from.length && step !== start);
  by("why").replaceChildren(...(start ? section(`Why ${start.type}`, list([start], 1)) : []),
    ...(sources.length ? section("Decided by", list(sources, MOST_SOURCES)) : []),
    ...(steps.length > sources.length + 1 ? section("By way of", list(steps.filter((step) => step.from.length && step !== start), MOST_STEPS)) : []));
}

const sign = (kind) => ({ added: "+", removed: "−" })[kind] ?? "~", signClass = (kind) => ({ added: "added", removed: "removed" })[kind] ?? "changed";
function changeItem(change) {
  const follows = change.follows ? ` (and ${change.follows} that follow)` : "";
  return make("li", {}, make("span", { class: "sign " + signClass(change.kind) }, sign(change.kind)), reach(change.path, change.at, last(change.path)), make("div", { class: "faint mono clamp", title: change.text }, change.kind + " " + change.text + follows));
}

const more = (count) => count > 0 ? [make("div", { class: "faint" }, `and ${count} more: typelift prints them all`)] : [];
const grouped = (number) => number.toLocaleString("en");
function size(bytes) {
  const unit = ["B", "KB", "MB", "GB"], at = bytes < 1000 ? 0 : bytes < 1e6 ? 1 : bytes < 1e9 ? 2 : 3;
  return `${at ? (bytes / 1000 ** at).toFixed(at > 1 ? 1 : 0) : bytes} ${unit[at]}`;
}

// Items that differ only in numbers, as those of repeated blocks do, become one entry.
function together(items, key) {
  const groups = new Map();
  for (const item of items) groups.set(key(item), [...(groups.get(key(item)) ?? []), item]);
  return [...groups.values()];
}

function changeList() {
  const changes = data.changes.filter((change) => change.kind !== "names"), names = data.changes.length - changes.length;
  const groups = together(changes, (change) => change.group);
  const items = groups.map((same) => {
    if (same.length < 3) return same.map(changeItem);
    const { what, places } = data.groups[same[0].group], kind = same[0].kind;
    return [make("li", {}, make("span", { class: "sign " + signClass(kind) }, sign(kind)), make("b", {}, what), make("span", { class: "faint" }, ` ${places}`), make("details", {}, make("summary", {}, `${grouped(same.length)} layers`), make("ul", {}, ...same.map(changeItem))))];
  }).flat();
  return [make("p", {}, `${plural(changes.length + data.more_changes, "change")} since ${last(data.before)}`), make("ul", {}, ...items), ...more(data.more_changes), ...(names ? [make("div", { class: "faint" }, `and ${plural(names, "other name")}`)] : [])];
}

function findingList() {
  const order = ["error", "warning", "note"];
  const findings = [...data.findings].sort((a, b) => order.indexOf(a.severity) - order.indexOf(b.severity));
  const items = together(findings, (finding) => `${finding.severity} ${finding.code} ${finding.message}`).map((same) => {
    const [{ severity, code, message, help }] = same;
    const where = same.filter((finding) => finding.path).map((finding) => make("div", {}, reach(finding.path)));
    const rest = where.splice(3);
    return make("li", {}, make("b", { class: severity }, `${severity}[${code}] `), same.length > 1 ? `${same.length} × ` : "", message, ...help.map((text) => make("div", { class: "faint" }, "help: " + text)), ...where, ...(rest.length ? [make("details", {}, make("summary", {}, `${rest.length} more layers`), ...rest)] : []));
  });
  return [make("ul", {}, ...items), ...more(data.more_findings)];
}

function bar(weights) {
  const parts = weights.map((weight) => make("i", { style: `flex:${Math.max(weight.bytes, 1)};background:${color(weight.element_type)}`, title: `${weight.element_type} ${size(weight.bytes)}` }));
  return make("div", { class: "bar", role: "img", "aria-label": weights.map((weight) => `${weight.element_type} ${size(weight.bytes)}`).join(", ") }, ...parts);
}

const SHOWN_PATHS = 3;
const computes = (row) => Object.entries(row.computed).map(([type, count]) => `${type} ${grouped(count)}`).join(", ");
const stores = (row) => row.weights.map((weight) => `${weight.element_type} ${size(weight.bytes)}`).join(", ");
// The types in which a block stores and computes.
const facts = (row) => [...(row.weights.length ? [bar(row.weights), make("div", { class: "mono" }, "stored " + stores(row))] : []), ...(computes(row) ? [make("div", { class: "faint mono" }, "computes " + computes(row))] : [])];
// Opens the block in the graph.
function mapTitle(row, text) {
  const node = row.at && find(row.at);
  if (!node) return make("b", {}, text);
  const inner = data.scenes[node.scene], isWhole = inner.parent === null;
  return link({ title: isWhole ? "Show its first layer" : "Open it" }, isWhole ? node.path : "in:" + inner.title, () => isWhole ? go(node) : open(node.scene), text);
}
const rowName = (row) => (row.path ? row.path + "/" : "") + row.name;

function mapRow(row) {
  const ways = row.paths.filter((path) => path.types.length > 1);
  const notes = ways.slice(0, SHOWN_PATHS).map((path) => make("div", { class: "mono" }, `${grouped(path.constants)} × ${path.types.join(" → ")} → ${path.operation}`));
  if (ways.length > SHOWN_PATHS) notes.push(make("div", { class: "faint" }, `and ${ways.length - SHOWN_PATHS} more ways of weights`));
  for (const lossy of row.lossy) notes.push(make("div", { class: "warning" }, `${plural(lossy.count, "Convert")} ${lossy.from} → ${lossy.to}: ${lossy.loses.join(", ")}`));
  if (row.marks) notes.push(make("div", {}, `${plural(row.marks, "layer")} marked to keep precision`));
  if (row.errors) notes.push(make("div", { class: "error" }, plural(row.errors, "error")));
  if (row.warnings) notes.push(make("div", { class: "warning" }, plural(row.warnings, "warning")));
  const [first, rest] = [row.differs.slice(0, SHOWN_PATHS), row.differs.slice(SHOWN_PATHS)];
  if (first.length) notes.push(make("div", { class: "warning" }, "differs from its siblings: " + first.join("; ")));
  if (rest.length) notes.push(make("details", {}, make("summary", { class: "warning" }, `and in ${rest.length} more`), make("div", { class: "warning" }, rest.join("; "))));
  return make("li", { class: "row" + (row.differs.length ? " differs" : "") }, mapTitle(row, rowName(row)), make("span", { class: "faint" }, ` ${row.blocks > 1 ? `${row.blocks} blocks, ` : ""}${plural(row.layers, "layer")}`), ...facts(row), ...notes);
}

// The blocks of two models, side by side.
function mapPairs() {
  const before = new Map(data.map_before.map((row) => [rowName(row), row]));
  const side = (row, other, label) => make("div", { role: "group", "aria-label": label }, ...(row ? [make("div", { class: "faint" }, plural(row.layers, "layer")), ...facts(row)] : [make("div", { class: "faint" }, "not there")]));
  const text = (row) => row ? `${row.layers} ${stores(row)} ${computes(row)}` : "";
  const item = (old, row) => make("li", { class: "row" + (text(old) === text(row) ? "" : " differs") }, mapTitle(row ?? old, rowName(row ?? old)), make("div", { class: "pair" }, side(old, row, "before"), side(row, old, "after")));
  const rows = data.map.map((row) => {
    const old = before.get(rowName(row));
    before.delete(rowName(row));
    return item(old, row);
  });
  return [make("div", { class: "pair" }, make("b", {}, last(data.before)), make("b", {}, last(data.file))), make("ul", {}, ...rows, ...[...before.values()].map((old) => item(old)))];
}

function mapList() {
  if (data.before) return mapPairs();
  const stored = new Map();
  for (const weight of data.map.flatMap((row) => row.weights)) stored.set(weight.element_type, (stored.get(weight.element_type) ?? 0) + weight.bytes);
  const all = [...stored].map(([element_type, bytes]) => ({ element_type, bytes })).sort((a, b) => b.bytes - a.bytes);
  const sum = all.reduce((sum, weight) => sum + weight.bytes, 0);
  const head = all.length ? [make("div", {}, `${size(sum)} of weights: ${all.map((weight) => `${weight.element_type} ${size(weight.bytes)}`).join(", ")}`), bar(all)] : [make("p", { class: "faint" }, "No weights.")];
  return [...(data.outline ? [make("p", {}, data.outline)] : []), ...head, make("ul", {}, ...data.map.map(mapRow))];
}

let sorted = "count";
function convertList() {
  const converts = data.scenes.flatMap((scene) => scene.nodes).filter((node) => node.convert);
  const groups = together(converts, (node) => node.convert.join("\n")).map((nodes) => ({ types: `${nodes[0].convert[0]} → ${nodes[0].convert[1]}`, loses: nodes[0].convert[2], count: nodes.length, nodes }));
  groups.sort((a, b) => sorted === "count" ? b.count - a.count : b[sorted].localeCompare(a[sorted]) * (sorted === "types" ? -1 : 1));
  const heads = [["types", "From → to"], ["count", "Layers"], ["loses", "Can lose"]].map(([key, text]) => make("th", { scope: "col", "aria-sort": sorted === key ? "descending" : "none" }, make("button", { onclick: () => { sorted = key; side(); } }, text)));
  const links = (nodes) => make("details", {}, make("summary", {}, grouped(nodes.length)), ...nodes.slice(0, 200).map((node) => make("div", {}, reach(node.path, node.path, last(node.path)))), ...(nodes.length > 200 ? [make("div", { class: "faint" }, `200 of ${nodes.length}`)] : []));
  const rows = groups.map((group) => make("tr", {}, make("td", { class: "mono" }, group.types), make("td", {}, links(group.nodes)), make("td", { class: group.loses ? "warning" : "faint" }, group.loses || "nothing")));
  return converts.length ? [make("table", {}, make("thead", {}, make("tr", {}, ...heads)), make("tbody", {}, ...rows))] : [make("p", { class: "faint" }, "No Converts but those of weights, which the map shows.")];
}

const SHOWN_BOXES = 3000;
function boxList() {
  const row = (node) => make("li", {}, link({}, node.path, () => go(node), `${node.op} ${node.name}`), " ", make("code", { class: "faint" }, cut(types(node), 60)));
  const count = scene.nodes.length, said = count > SHOWN_BOXES ? `${SHOWN_BOXES} of ${plural(count, "box")}`.replace("boxs", "boxes") : count === 1 ? "1 box" : `${count} boxes`;
  return [make("h2", {}, scene.title), make("div", { class: "faint" }, said), make("ol", { id: "outline" }, ...scene.nodes.slice(0, SHOWN_BOXES).map(row))];
}

// The panel and its tabs.
const TABS = { map: [data.before ? "Blocks" : "Map", mapList], findings: ["Findings", findingList], changes: ["Changes", changeList], converts: ["Converts", convertList], outline: ["List", boxList] };
let tab = "map";
function side() {
  const counts = { findings: data.findings.length + data.more_findings, changes: data.changes.length + data.more_changes };
  const there = Object.keys(TABS).filter((key) => counts[key] !== 0 && (key !== "changes" || data.before));
  if (!there.includes(tab)) tab = "map";
  by("tabs").replaceChildren(...there.map((key) => make("button", { role: "tab", id: "tab-" + key, "aria-controls": "side", "aria-selected": String(key === tab), tabindex: key === tab ? 0 : -1, onclick: () => turn(key) }, TABS[key][0] + (counts[key] ? ` ${grouped(counts[key])}` : ""))));
  by("side").setAttribute("aria-label", TABS[tab][0]);
  by("side").replaceChildren(...TABS[tab][1]());
}
function turn(to) {
  tab = to;
  side();
  by("tab-" + tab)?.focus();
}
by("tabs").addEventListener("keydown", (event) => {
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (!step) return;
  const all = [...by("tabs").children], at = all.findIndex((button) => button.id === "tab-" + tab);
  turn(all[(at + step + all.length) % all.length].id.slice(4));
});
function panel(shown) {
  by("panel").hidden = !shown;
  by("beside").setAttribute("aria-expanded", String(shown));
  later();
}

function legend() {
  const weights = data.map.flatMap((row) => row.weights.map((weight) => weight.element_type));
  const computed = scene.nodes.map((node) => ran.get(node.path)?.type).filter(Boolean);
  const found = new Set([...scene.nodes.flatMap((node) => node.outputs.map(([type]) => type)), ...weights, ...computed]);
  const items = [...found].sort().map((type) => make("span", {}, make("i", { style: `background:${color(type)}` }), type));
  if (scene.nodes.some((node) => node.convert && !node.convert[2])) items.push(make("span", {}, make("i", { class: "dash" }), "Convert"));
  if (scene.nodes.some((node) => node.convert?.[2])) items.push(make("span", {}, make("i", { class: "dash loses" }), "Convert that can lose values"));
  if (data.ran) items.push(make("span", {}, "as computed"), make("span", {}, make("i", { class: "pale" }), "no layer of its own"), ...(added.size ? [make("span", {}, make("i", { class: "dash added" }), "Reorder or Convert that was added")] : []));
  if (data.before) items.push(make("span", {}, make("span", { class: "sign added" }, "+"), "added"), make("span", {}, make("span", { class: "sign changed" }, "~"), "changed"), make("span", {}, make("i", { class: "gone" }), "removed"));
  by("legend").replaceChildren(...items);
  by("legend").hidden = !items.length;
}

// Search for boxes and for layers inside them.
const SHOWN_HITS = 60;
const entries = [];
for (const node of places.values()) entries.push({ node, path: node.path, note: `${node.op} ${types(node)}`, text: `${node.path} ${node.op} ${types(node)} ${node.id ?? ""} ${(node.tensors ?? []).join(" ")} ${node.weights ?? ""} ${node.gone ? "removed" : ""}`.toLowerCase() });
for (const [path, node] of holders) {
  const text = node.inputs.find((input) => input.held?.includes(path)).text;
  entries.push({ node, path, step: stepsAt.get(path), note: `in ${node.op} ${last(node.path)}`, text: `${path} constant ${text}`.toLowerCase() });
}
let hits = [], chosen = 0;
function search() {
  const words = by("search").value.toLowerCase().split(/\s+/).filter(Boolean);
  const all = words.length ? entries.filter((entry) => words.every((word) => entry.text.includes(word))) : [];
  // Matches in names come before other matches, and exact names come first.
  const wanted = words.join(" "), rank = ({ path }) => [path, last(path)].map((name) => name.toLowerCase()).includes(wanted) ? 0 : path.toLowerCase().includes(wanted) ? 1 : 2;
  all.sort((a, b) => rank(a) - rank(b));
  hits = all.slice(0, SHOWN_HITS);
  chosen = 0;
  by("hits").hidden = !words.length;
  by("search").setAttribute("aria-expanded", String(words.length > 0));
  const rows = hits.map((hit, at) => make("li", { role: "option", "aria-selected": String(at === 0), onclick: () => jump(at) }, hit.path, " ", make("small", {}, cut(hit.note, 60))));
  if (all.length > hits.length) rows.push(make("li", { role: "option", "aria-selected": "false", "aria-disabled": "true", class: "faint" }, `${hits.length} of ${grouped(all.length)}: add a word`));
  by("hits").replaceChildren(...(rows.length ? rows : [make("li", { role: "option", "aria-selected": "false", "aria-disabled": "true", class: "faint" }, "nothing found")]));
}
function jump(at) {
  if (hits[at]) go(hits[at].node);
  if (hits[at]?.step) follow(hits[at].step);
  by("hits").hidden = true;
  by("search").setAttribute("aria-expanded", "false");
}
function choose(step) {
  const rows = by("hits").children;
  rows[chosen]?.setAttribute("aria-selected", "false");
  chosen = Math.max(0, Math.min(hits.length - 1, chosen + step));
  rows[chosen]?.setAttribute("aria-selected", "true");
  rows[chosen]?.scrollIntoView({ block: "nearest" });
}
by("search").addEventListener("input", search);
by("search").addEventListener("keydown", (event) => {
  if (event.key === "ArrowDown" || event.key === "ArrowUp") { choose(event.key === "ArrowDown" ? 1 : -1); event.preventDefault(); }
  else if (event.key === "Enter") { jump(chosen); canvas.focus(); }
  else if (event.key === "Escape") { by("hits").hidden = true; canvas.focus(); }
});

// Panning and zooming.
function zoom(factor, x, y) {
  const scale = Math.max(0.02, Math.min(4, view.scale * factor)), by = scale / view.scale;
  view = { scale, x: x - (x - view.x) * by, y: y - (y - view.y) * by };
  later();
}
canvas.addEventListener("wheel", (event) => {
  event.preventDefault();
  const { left, top } = canvas.getBoundingClientRect();
  if (event.ctrlKey || event.metaKey || !event.shiftKey) zoom(Math.exp(-event.deltaY * 0.0015), event.clientX - left, event.clientY - top);
  else { view.x -= event.deltaY; later(); }
}, { passive: false });
const fingers = new Map();
let moved = 0;
canvas.addEventListener("pointerdown", (event) => { fingers.set(event.pointerId, event); moved = 0; canvas.classList.add("dragging"); });
window.addEventListener("pointermove", (event) => {
  const before = fingers.get(event.pointerId);
  if (!before) return hover(event);
  const others = [...fingers.values()].filter((finger) => finger.pointerId !== event.pointerId);
  const dx = event.clientX - before.clientX, dy = event.clientY - before.clientY;
  moved += Math.abs(dx) + Math.abs(dy);
  if (others.length) {
    const [other] = others, { left, top } = canvas.getBoundingClientRect();
    const apart = (finger) => Math.hypot(finger.clientX - other.clientX, finger.clientY - other.clientY) || 1;
    zoom(apart(event) / apart(before), other.clientX - left, other.clientY - top);
  } else { view.x += dx; view.y += dy; later(); }
  fingers.set(event.pointerId, event);
});
for (const name of ["pointerup", "pointercancel"]) window.addEventListener(name, (event) => { fingers.delete(event.pointerId); canvas.classList.remove("dragging"); });
const nodeAt = (target) => [...shown.entries()].find(([, element]) => element === target?.closest?.(".node"))?.[0];
canvas.addEventListener("click", (event) => { if (moved < 6) select(nodeAt(event.target) ?? null); });
canvas.addEventListener("dblclick", (event) => { const node = nodeAt(event.target); if (node?.opens) open(node.opens[0]); });
function hover(event) {
  const node = canvas.contains(event.target) ? nodeAt(event.target) : null, tip = by("tip");
  tip.hidden = !node;
  if (!node) return;
  const findings = (marks.get(node.path) || []).map((finding) => make("div", { class: finding.severity }, finding.message));
  tip.replaceChildren(make("b", {}, node.name), make("div", { class: "faint" }, `${node.op}${node.id !== null ? ` · id ${node.id}` : ""}${node.line ? ` · line ${node.line}` : ""}`), make("div", { class: "mono" }, types(node)), ...ranLines(node), ...findings);
  tip.style.left = Math.min(event.clientX + 14, innerWidth - 300) + "px";
  tip.style.top = Math.min(event.clientY + 14, innerHeight - 120) + "px";
}
canvas.addEventListener("keydown", (event) => {
  const steps = { ArrowUp: ["before", "from"], ArrowDown: ["next", "to"] }[event.key];
  if (event.key === "Escape") { if (selected) select(null); else if (scene.parent !== null) open(scene.parent); }
  else if (event.key === "Enter" && selected?.opens) open(selected.opens[0]);
  else if (!selected && event.key.startsWith("Arrow")) go(scene.nodes[0]);
  else if (steps) { const edge = scene[steps[0]][selected.number][0]; if (edge) go(scene.nodes[edge[steps[1]]]); }
  else if (event.key === "ArrowLeft" || event.key === "ArrowRight") {
    const side = event.key === "ArrowRight" ? 1 : -1;
    const row = scene.nodes.filter((node) => Math.abs(node.y - selected.y) < 30 && (node.x - selected.x) * side > 0);
    if (row.length) go(row.reduce((near, node) => Math.abs(node.x - selected.x) < Math.abs(near.x - selected.x) ? node : near));
  } else return;
  event.preventDefault();
});
document.addEventListener("keydown", (event) => {
  if (event.target.tagName === "INPUT") return;
  const { clientWidth: width, clientHeight: height } = canvas;
  const action = { "/": () => by("search").focus(), 0: () => fit(), o: () => by("beside").click(), "+": () => zoom(1.25, width / 2, height / 2), "-": () => zoom(0.8, width / 2, height / 2) }[event.key];
  if (action) { action(); event.preventDefault(); }
});
by("fit").addEventListener("click", () => fit());
by("beside").addEventListener("click", () => panel(by("panel").hidden));
by("theme").addEventListener("click", () => paint(!isDark()));
paint(matchMedia("(prefers-color-scheme: dark)").matches);
by("both").hidden = !data.beside;
by("both").addEventListener("click", () => beside(frame.hidden));
window.addEventListener("resize", later);
by("title").append(isBeside && !data.ran ? "before: " + last(data.title) : data.title, make("small", {}, plural(data.layers, "layer")));
document.title = data.title + " · Typelift";
if (data.before && data.changes.length) tab = "changes";
side();
restore();
if (data.beside && innerWidth > 1100) beside(true);
