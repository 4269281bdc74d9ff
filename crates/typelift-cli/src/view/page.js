"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const by = (id) => document.getElementById(id);
const NS = "http://www.w3.org/2000/svg";
const canvas = by("canvas"), world = by("world");

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

// One hue for each kind of element type, darker for wider ones.
function color(type) {
  const [, kind, bits] = /^([a-z]+?)(\d+)?(?:e\d.*)?$/.exec(type) || [];
  const hue = { f: 214, bf: 245, i: 146, u: 42, boolean: 12, string: 285, nf: 190 }[kind];
  if (hue === undefined) return "#9aa3ad";
  const light = { 64: 36, 32: 52, 16: 66 }[bits] || (bits ? 76 : 58);
  return `hsl(${hue} 68% ${light}%)`;
}

// Layers by path, findings and changes by path, reasons by path and output.
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
const changed = new Map(data.changes.filter((change) => change.kind !== "names").map((change) => [change.path, change.kind === "added" ? "added" : "changed"]));
data.steps.forEach((step) => reasons.set(`${step.path}\n${step.id}\n${step.output}`, step));
for (const scene of data.scenes) {
  scene.next = scene.nodes.map(() => []);
  scene.before = scene.nodes.map(() => []);
  for (const edge of scene.edges) {
    scene.next[edge.from].push(edge);
    scene.before[edge.to].push(edge);
  }
}

// What is marked inside of a box that opens: errors, findings, changes.
const inside = new Map();
function markInside(path, kind) {
  for (let at = places.get(path)?.scene ?? 0; data.scenes[at].parent !== null; at = data.scenes[at].parent) {
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

let scene = data.scenes[0], selected = null;
let view = { x: 0, y: 0, scale: 1 };
const shown = new Map(), lines = new Map(), kept = new Map();

const last = (name) => name.split("/").pop() || name;
// The end of a name, which says most; of a block the part before its number, too.
const short = (node) => node.layers ? node.name.split(/[./]/).slice(-2).join(".") : last(node.name);
const cut = (text, room) => text.length > room ? text.slice(0, Math.max(1, room - 1)) + "…" : text;
const types = (node) => node.outputs.map(([type, shape]) => type + shape).join(", ");

function box(node) {
  const group = draw("g", { class: "node", transform: `translate(${node.x - node.w / 2} ${node.y - node.h / 2})`, "data-path": node.path });
  const findings = marks.get(node.path) || [];
  if (node.convert) group.classList.add("convert");
  if (node.convert && node.convert[2]) group.classList.add("loses");
  if (changed.has(node.path)) group.classList.add(changed.get(node.path));
  const { w, h } = node, room = Math.floor((w - 22) / 6.4);
  if (node.opens) {
    group.classList.add("opens");
    group.append(draw("rect", { class: "under", x: 5, y: 5, width: w, height: h, rx: 9 }));
  }
  const type = node.outputs[0]?.[0] ?? node.inputs[0]?.text.match(/ ([a-z0-9]+)\[/)?.[1] ?? scene.next[node.number][0]?.type;
  group.append(draw("rect", { class: "body", width: w, height: h, rx: 9 }));
  if (type) group.append(draw("rect", { class: "tint", width: w, height: h, rx: 9, fill: color(type) }), draw("path", { d: `M9 0H6V${h}H9A9 9 0 0 1 0 ${h - 9}V9A9 9 0 0 1 9 0Z`, fill: color(type) }));
  const convert = node.convert && `${node.convert[0]} → ${node.convert[1]}`;
  group.append(draw("text", { class: "op", x: 15, y: 20 }, cut(node.layers ? short(node) : node.op, room)));
  group.append(draw("text", { class: "name", x: 15, y: 35 }, node.layers ? "a block of" : cut(last(node.name), room)));
  const line = draw("text", { class: "type", x: 15, y: 50 }, node.layers ? plural(node.layers, "layer") : convert ?? cut(types(node), room));
  if (node.convert?.[2]) line.append(draw("tspan", { class: "warning", dx: 8 }, cut(node.convert[2], room - convert.length - 1)));
  group.append(line);
  if (node.opens) group.append(draw("text", { class: "opener", x: w - 10, y: 20, "text-anchor": "end" }, "⤢"));
  const hidden = inside.get(node) ?? {};
  const badges = changed.has(node.path) ? [[changed.get(node.path), { added: "+ added", changed: "~ changed" }[changed.get(node.path)]]] : [];
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
  if (stubs.length && !badges.length) group.append(draw("text", { class: "stub", x: w / 2 + 8, y: -5 }, cut("↥ " + (stubs.length === 1 ? last(stubs[0].text.split(" ")[0]) : stubs.length + " from elsewhere"), 22)));
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

// Only what can be seen is in the page.
const MOST = 1200;
function refresh() {
  world.setAttribute("transform", `translate(${view.x} ${view.y}) scale(${view.scale})`);
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
      line.append(draw("title", {}, edge.type + edge.shape));
      lines.set(edge, line);
      by("edges").append(line);
    }
  }
  for (const [edge, line] of lines) line.classList.toggle("on", selected !== null && (scene.nodes[edge.from] === selected || scene.nodes[edge.to] === selected));
}
let waiting = false;
function later() {
  if (!waiting) requestAnimationFrame(() => { waiting = false; refresh(); });
  waiting = true;
}

function fit() {
  const { nodes } = scene;
  if (!nodes.length) return;
  const reach = (of, start, pick) => nodes.reduce((sum, node) => pick(sum, of(node)), start);
  const left = reach((n) => n.x - n.w / 2, Infinity, Math.min), right = reach((n) => n.x + n.w / 2, -Infinity, Math.max);
  const top = reach((n) => n.y - n.h / 2, Infinity, Math.min), bottom = reach((n) => n.y + n.h / 2, -Infinity, Math.max);
  // Beside the list of changes and findings, where there is room for both.
  const panel = by("side").hidden || canvas.clientWidth < 1000 ? 0 : by("side").offsetWidth + 12;
  const width = canvas.clientWidth - panel, height = canvas.clientHeight;
  const whole = Math.min((width - 60) / (right - left), (height - 90) / (bottom - top), 1.25);
  // What would be too small to read begins at the top.
  const scale = Math.max(whole, Math.min(0.55, (width - 60) / Math.min(right - left, 1600)));
  const wide = (right - left) * scale > width;
  const start = wide ? nodes.reduce((first, node) => node.y < first.y ? node : first).x : (left + right) / 2;
  view = { scale, x: panel + width / 2 - start * scale, y: scale > whole ? 40 - top * scale : height / 2 - (top + bottom) / 2 * scale };
  refresh();
}

function clear() {
  for (const element of [...shown.values(), ...lines.values()]) element.remove();
  shown.clear(); lines.clear(); kept.clear();
}

function open(at, focus) {
  scene = data.scenes[at];
  selected = null;
  clear();
  by("details").hidden = true;
  const trail = [];
  by("trail").hidden = data.scenes[at].parent === null;
  for (let next = at; next !== null; next = data.scenes[next].parent) trail.unshift(next);
  by("trail").replaceChildren(...trail.flatMap((number, place) => {
    const { title, parent } = data.scenes[number], shown = parent === null ? "graph" : title.split(/[./]/).slice(-2).join(".");
    const step = number === at ? make("span", { "aria-current": "page", title }, shown) : make("button", { onclick: () => open(number), title }, shown);
    return place ? [make("span", {}, "›"), step] : [step];
  }));
  if (!by("outline").hidden) outline();
  legend();
  if (focus) go(focus); else fit();
}

function go(node) {
  if (data.scenes[node.scene] !== scene) open(node.scene);
  const scale = Math.max(view.scale, 0.75);
  view = { scale, x: canvas.clientWidth / 2 - node.x * scale, y: canvas.clientHeight / 2 - node.y * scale };
  select(node);
}

function select(node) {
  if (selected && kept.has(selected)) kept.get(selected).classList.remove("selected");
  selected = node;
  refresh();
  if (node && kept.has(node)) kept.get(node).classList.add("selected");
  history.replaceState(null, "", node ? "#" + encodeURIComponent(node.path) : location.pathname + location.search);
  details(node);
}

function reach(path, at = path, text = path) {
  const node = places.get(at);
  return node ? make("button", { class: "link", title: path, onclick: () => go(node) }, text) : make("span", {}, text);
}

function section(title, ...content) {
  return content.length ? [make("h3", {}, title), ...content] : [];
}

function closing(aside) {
  return make("button", { class: "close", "aria-label": "Close", onclick: () => { aside.hidden = true; select(null); } }, "×");
}

function details(node) {
  const panel = by("details");
  panel.hidden = !node;
  if (!node) return;
  const where = [node.op, node.id !== null ? `id ${node.id}` : null, node.line ? `line ${node.line}` : null].filter(Boolean).join(" · ");
  const inputs = node.inputs.map((input) => make("li", {}, input.from ? reach(input.from, input.from, last(input.from)) : make("span", { class: "faint" }, "constant "), " ", make("code", {}, input.from ? input.text.slice(input.text.lastIndexOf(" ") + 1) : input.text)));
  const outputs = node.outputs.map(([type, shape], port) => make("li", {}, make("button", { class: "link mono", title: "Why this type?", onclick: () => why(node, port) }, `${type}${shape}`)));
  const findings = (marks.get(node.path) || []).map((finding) => make("li", {}, make("b", { class: finding.severity }, `${finding.severity}[${finding.code}] `), finding.message, ...finding.help.map((help) => make("div", { class: "faint" }, "help: " + help))));
  const changes = data.changes.filter((change) => change.at === node.path).map(changeItem);
  const attributes = (node.attributes || []).flatMap(([name, value]) => [make("dt", {}, name), make("dd", { class: "mono" }, value)]);
  panel.replaceChildren(
    closing(panel), make("h2", {}, node.name), make("div", { class: "faint" }, where),
    ...(node.opens || []).map((at) => make("p", {}, make("button", { onclick: () => open(at) }, `Open ${node.layers ? short(node) : last(data.scenes[at].title)}`))),
    ...(node.convert ? section("Converts", make("div", { class: node.convert[2] ? "warning" : "" }, `${node.convert[0]} → ${node.convert[1]}: ${node.convert[2] || "keeps every value"}`)) : []),
    ...section("Changed", ...changes), ...section("Findings", ...findings),
    ...section("Outputs", ...outputs), make("div", { id: "why" }), ...section("Inputs", ...inputs),
    ...(attributes.length ? section("Attributes", make("dl", {}, ...attributes)) : []));
  if (node.outputs.length) why(node, 0);
}

// What decides the type of a tensor, and the way from it back to that.
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

function changeItem(change) {
  const sign = { added: "+", removed: "−" }[change.kind] || "~";
  const follows = change.follows ? ` (and ${change.follows} that follow)` : "";
  return make("li", {}, make("span", { class: "sign " + ({ added: "added", removed: "removed" }[change.kind] || "changed") }, sign), reach(change.path, change.at, last(change.path)), make("div", { class: "faint mono clamp", title: change.text }, change.kind + " " + change.text + follows));
}

const more = (count) => count ? [make("div", { class: "faint" }, `and ${count} more`)] : [];

function side() {
  const changes = data.changes.filter((change) => change.kind !== "names"), names = data.changes.length - changes.length;
  const findings = data.findings.filter((finding) => finding.severity !== "note");
  const panel = by("side");
  const items = findings.slice(0, 200).map((finding) => make("li", {}, make("b", { class: finding.severity }, finding.code + " "), finding.path ? reach(finding.path) : finding.message));
  panel.replaceChildren(closing(panel),
    ...(data.outline ? section("Outline", make("p", {}, data.outline)) : []),
    ...(data.before ? section(`${plural(changes.length + data.more_changes, "change")} since ${last(data.before)}`, make("ul", {}, ...changes.slice(0, 1000).map(changeItem)), ...more(changes.length + data.more_changes - Math.min(changes.length, 1000)), ...(names ? [make("div", { class: "faint" }, `and ${plural(names, "other name")}`)] : [])) : []),
    ...(items.length ? section(plural(findings.length + data.more_findings, "finding"), make("ul", {}, ...items), ...more(findings.length + data.more_findings - items.length)) : []));
  panel.hidden = !(data.outline || data.before || items.length);
}

function outline() {
  const panel = by("outline");
  const row = (node) => make("li", {}, make("button", { class: "link", onclick: () => go(node) }, `${node.op} ${node.name}`), " ", make("code", { class: "faint" }, cut(types(node), 60)));
  const rows = scene.nodes.slice(0, 3000).map(row);
  panel.replaceChildren(closing(panel), make("h2", {}, scene.title), make("div", { class: "faint" }, `${scene.nodes.length} boxes`), make("ol", {}, ...rows));
}

function legend() {
  const found = new Set(scene.nodes.flatMap((node) => node.outputs.map(([type]) => type)));
  const items = [...found].sort().map((type) => make("span", {}, make("i", { style: `background:${color(type)}` }), type));
  if (scene.nodes.some((node) => node.convert && !node.convert[2])) items.push(make("span", {}, make("i", { class: "dash" }), "Convert"));
  if (scene.nodes.some((node) => node.convert?.[2])) items.push(make("span", {}, make("i", { class: "dash loses" }), "Convert that can lose values"));
  if (data.before) items.push(make("span", { class: "sign added" }, "+"), make("span", {}, "added"), make("span", { class: "sign changed" }, "~"), make("span", {}, "changed"));
  by("legend").replaceChildren(...items);
  by("legend").hidden = !items.length;
}

// Search.
let hits = [], chosen = 0;
function search() {
  const words = by("search").value.toLowerCase().split(/\s+/).filter(Boolean);
  const text = (node) => `${node.path} ${node.op} ${types(node)} ${node.id ?? ""}`.toLowerCase();
  hits = words.length ? [...places.values()].filter((node) => words.every((word) => text(node).includes(word))).slice(0, 60) : [];
  chosen = 0;
  by("hits").hidden = !words.length;
  const rows = hits.map((node, at) => make("li", { role: "option", "aria-selected": at === 0, onclick: () => jump(at) }, node.path, " ", make("small", {}, `${node.op} ${cut(types(node), 40)}`)));
  by("hits").replaceChildren(...(rows.length ? rows : [make("li", { class: "faint" }, "nothing found")]));
}
function jump(at) {
  if (hits[at]) go(hits[at]);
  by("hits").hidden = true;
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

// Moving about.
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
  tip.replaceChildren(make("b", {}, node.name), make("div", { class: "faint" }, `${node.op}${node.id !== null ? ` · id ${node.id}` : ""}${node.line ? ` · line ${node.line}` : ""}`), make("div", { class: "mono" }, types(node)), ...findings);
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
  const action = { "/": () => by("search").focus(), 0: fit, o: () => by("list").click(), "+": () => zoom(1.25, width / 2, height / 2), "-": () => zoom(0.8, width / 2, height / 2) }[event.key];
  if (action) { action(); event.preventDefault(); }
});
by("fit").addEventListener("click", fit);
by("list").addEventListener("click", () => {
  const panel = by("outline");
  panel.hidden = !panel.hidden;
  by("list").setAttribute("aria-expanded", String(!panel.hidden));
  if (!panel.hidden) outline();
});
by("theme").addEventListener("click", () => document.documentElement.classList.toggle("dark"));
if (matchMedia("(prefers-color-scheme: dark)").matches) document.documentElement.classList.add("dark");
window.addEventListener("resize", later);
by("title").append(data.title, make("small", {}, plural(data.layers, "layer")));
document.title = data.title + " · Typelift";
side();
// A link can name a layer: model.html#decoder/add_3
function decoded(text) {
  try { return decodeURIComponent(text); } catch { return text; }
}
const linked = places.get(decoded(location.hash.slice(1)));
open(linked?.scene ?? 0, linked);
