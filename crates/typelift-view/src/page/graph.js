// The graph on the screen: one pane, or two that show two models or two runs in one view.

const canvas = by("canvas"), twin = by("canvas-before");
/** @typedef {{svg: SVGSVGElement, side: string | null, run: number, shown: Map, lines: Map, kept: Map}} Pane */
const pane = (svg, side, run) => ({ svg, side, run, world: svg.querySelector(".world"), shown: new Map(), lines: new Map(), kept: new Map() });
const panes = [pane(canvas, null, 0), pane(twin, null, 1)];
const canSplit = data.both || runs.length > 1;
let isSplit = false;
const active = () => isSplit ? panes : panes.slice(0, 1);
// True if a pane shows an item or an arrow.
const belongs = (it, { side }) => !side || !it.only || it.only === side;

let selected = null, view = { x: 0, y: 0, scale: 1 };
/** The layers that stay bright while the others are dimmed; null if all do. */
let bright = null;

// The smallest scale at which all text of a box is readable, and the height of words below it, in pixels.
const READABLE = 0.84, WORDS = 10.5;

function box(spot, pane) {
  const { item, w, h } = spot, old = pane.side === SIDES.before && item.was;
  const node = old ? { ...item, ...old, kind: item.kind, up: item.up, bodies: item.bodies } : item;
  const group = draw("g", { class: "node", "data-path": item.path });
  const state = changed.get(item);
  if (state && (!pane.side || state !== "added" || pane.side === SIDES.after)) group.classList.add(state);
  if (state === "removed" && !pane.side) group.classList.add("gone");
  if (inside.get(item)?.changed && !item.open) group.classList.add("changed");
  if (item.items) group.classList.add("opens");
  if (item.open) { frame(group, spot); return group; }
  const run = runs[pane.run]?.layers.get(item.path), isGroup = item.kind === "group";
  if (run?.pale) group.classList.add("pale");
  if (node.op === "Parameter" || node.op === "Result") group.classList.add(node.op === "Parameter" ? "input" : "output");
  if (node.convert) group.classList.add("convert");
  if (node.convert?.[2]) group.classList.add(isIndex(node.convert[0]) ? "narrows" : "loses");
  const type = isGroup ? node.computed?.[0]?.[0] : typeOf(node, runs[pane.run]), rx = 9;
  if (item.items) group.append(draw("rect", { class: "under", x: 5, y: 5, width: w, height: h, rx }));
  group.append(draw("rect", { class: "body", width: w, height: h, rx }));
  if (type) group.append(draw("rect", { class: "tint", width: w, height: h, rx, fill: color(type) }), draw("path", { d: `M${rx} 0V${h}A${rx} ${rx} 0 0 1 0 ${h - rx}V${rx}A${rx} ${rx} 0 0 1 ${rx} 0Z`, fill: color(type) }));
  write(group, isGroup ? [{ kind: "op", text: groupName(item) }, ...groupLines(node, item)] : lines(node), w);
  if (isGroup && node.weights?.length) storedBar(group, node, w, h);
  if (run?.weights) group.append(draw("rect", { x: 9, y: h - 5, width: w - 18, height: 4, rx: 2, fill: color(run.weights[0][1]) }));
  if (item.items) group.append(toggle(item, w));
  if (item.stubs?.length) group.append(draw("text", { class: "stub", x: w - 6, y: h - 6, "text-anchor": "end" }, cut("↥ " + (item.stubs.length === 1 ? last(item.stubs[0].name) : item.stubs.length + " from elsewhere"), 22)));
  group.append(draw("text", { class: "word", x: 14, "data-text": isGroup ? groupName(item) : node.op, "data-room": w - 20 }));
  group.setAttribute("aria-label", isGroup ? `group ${item.name}` : `${node.op} ${node.name} ${types(node)}`);
  return group;
}
function write(group, list, w) {
  let y = 4;
  for (const { kind, text, loses, of } of list) {
    y += 16;
    const room = Math.floor((w - 22 - (kind === "op" && group.classList.contains("opens") ? 26 : 0)) / WIDTHS[kind]);
    const line = draw("text", { class: of ? `badge ${of}` : kind, x: 15, y }, cut(text, room));
    if (loses) line.append(draw("tspan", { class: group.classList.contains("narrows") ? "name" : "warning", dx: 8 }, cut(loses, Math.max(4, room - text.length - 1))));
    if (cut(text, room) !== text) line.append(draw("title", {}, text));
    group.append(line);
  }
}
function storedBar(group, item, w, h) {
  const all = item.weights.reduce((sum, [, bytes]) => sum + bytes, 0) || 1;
  let x = 14;
  for (const [type, bytes] of item.weights) {
    const part = Math.max(1, bytes / all * (w - 28));
    group.append(draw("rect", { class: "part", x, y: h - 14, width: part, height: 7, fill: color(type) }));
    x += part;
  }
  group.append(draw("rect", { class: "bar-line", x: 14, y: h - 14, width: w - 28, height: 7, rx: 2 }));
}
// The frame of an open group.
function frame(group, { item, w, h, depth }) {
  group.classList.add("open", `depth-${Math.min(depth, 3)}`);
  group.append(draw("rect", { class: "body", width: w, height: h, rx: 12 }), draw("rect", { class: "head", width: w, height: HEAD - 8, rx: 12 }));
  group.append(draw("text", { class: "op", x: 14, y: 18 }, cut(titleOf(item), Math.floor((w - 50) / 8.1))));
  if (item.kind !== "graph") group.append(toggle(item, w));
  group.append(draw("text", { class: "word", x: 14, "data-text": titleOf(item), "data-room": w - 30 }));
  group.setAttribute("aria-label", `open ${titleOf(item)}`);
}
function toggle(item, w) {
  const button = draw("g", { class: "toggle", transform: `translate(${w - 27} 5)` });
  button.append(draw("rect", { width: 20, height: 18, rx: 5 }), draw("path", { d: item.open ? "M5 9H15" : "M5 9H15M10 4V14" }), draw("title", {}, item.open ? "Close (Enter)" : "Open (Enter)"));
  return button;
}

// The path of an arrow: straight down in rows, and a curve between them.
function curve(points) {
  let path = `M${points[0][0]} ${points[0][1]}`;
  for (let at = 1; at < points.length; at++) {
    const [x, y] = points[at], [a, b] = points[at - 1];
    if (Math.abs(y - b) < 0.5 && Math.abs(x - a) < 0.5) continue;
    if (at % 2 || Math.abs(x - a) < 0.5) path += `L${x} ${y}`;
    else path += `C${a} ${(b + y) / 2} ${x} ${(b + y) / 2} ${x} ${y}`;
  }
  return path;
}
function line(route, pane) {
  const edges = route.arrows.flatMap((arrow) => arrow.edges), first = edges[0];
  const isEnd = route.arrows[0].to.kind === "port" || route.arrows[0].to.open;
  const path = draw("path", { class: "edge", d: curve(route.points), ...(isEnd ? {} : { "marker-end": "url(#arrow)" }) });
  const extra = runs[pane.run]?.added.get(`${first.from.path}\n${first.to.path}`);
  const names = [...new Set(edges.map((edge) => `${last(edge.from.name)} → ${last(edge.to.name)}: ${edge.type}${edge.shape}`))];
  path.append(draw("title", {}, names.slice(0, 6).join("\n") + (names.length > 6 ? `\nand ${names.length - 6} more` : "") + (extra ? ` · ${extra.text}` : "")));
  if (extra) path.classList.add("extra");
  if (!pane.side && edges.every((edge) => edge.only)) path.classList.add(edges[0].only === SIDES.before ? "gone" : "new");
  return path;
}

// Only visible boxes are in the document.
const MOST = 1500;
function refresh() {
  const far = view.scale < READABLE;
  const { clientWidth: width, clientHeight: height } = canvas, margin = 80;
  const left = (-view.x - margin) / view.scale, right = (width - view.x + margin) / view.scale;
  const top = (-view.y - margin) / view.scale, bottom = (height - view.y + margin) / view.scale;
  let wanted = shownBoxes.filter(({ x, y, w, h }) => x + w > left && x < right && y + h > top && y < bottom);
  if (wanted.length > MOST) wanted = wanted.filter(({ item, w }, at) => item.open || w * view.scale > 40 || at % Math.ceil(wanted.length / MOST) === 0);
  const passing = shownRoutes.filter(({ points, extent }) => {
    const [x1, x2, y1, y2] = extent ?? [0, 0, 0, 0];
    return x2 > left && x1 < right && y2 > top && y1 < bottom && points;
  });
  for (const it of active()) {
    it.world.setAttribute("transform", `translate(${view.x} ${view.y}) scale(${view.scale})`);
    it.world.classList.toggle("far", far);
    fill(it.shown, wanted.filter(({ item }) => belongs(item, it)), (spot) => {
      if (!it.kept.has(spot)) it.kept.set(spot, box(spot, it));
      const element = it.kept.get(spot);
      element.setAttribute("transform", `translate(${spot.x} ${spot.y})`);
      return element;
    }, (spot) => it.world.querySelector(spot.item.open ? ".frames" : ".nodes"));
    fill(it.lines, passing.filter((route) => route.arrows.some((arrow) => arrow.edges.some((edge) => belongs(edge, it)))), (route) => line(route, it), () => it.world.querySelector(".edges"));
    emphasize(it, far);
  }
  minimap();
}
// Keeps the elements of what is wanted, and removes the others.
function fill(shown, wanted, build, place) {
  const keep = new Set(wanted);
  for (const [it, element] of shown) if (!keep.has(it)) { element.remove(); shown.delete(it); }
  for (const it of wanted) {
    if (shown.has(it)) continue;
    const element = build(it);
    shown.set(it, element);
    place(it).append(element);
  }
}
function emphasize(it, far) {
  const lit = bright && new Set([...bright].map(standIn));
  for (const [{ item }, element] of it.shown) {
    element.classList.toggle("selected", item === selected);
    element.classList.toggle("off", bright !== null && !item.open && !lit.has(item));
    if (far) words(element, item);
  }
  for (const [{ arrows }, element] of it.lines) {
    const touches = selected && arrows.some((arrow) => arrow.edges.some((edge) => edge.from === selected || edge.to === selected) || arrow.from === selected || arrow.to === selected);
    element.classList.toggle("on", Boolean(touches));
    element.classList.toggle("off", bright !== null && !arrows.some((arrow) => arrow.edges.some((edge) => bright.has(edge.from) && bright.has(edge.to))));
  }
}
// One line of a readable height in a box that is seen from afar.
function words(element, item) {
  const word = element.lastElementChild, font = Math.min(WORDS / view.scale, item.open ? 400 : 200);
  if (word?.getAttribute("class") !== "word") return;
  const key = Math.round(font * 4);
  if (word.dataset.key === String(key)) return;
  word.dataset.key = String(key);
  const room = Math.floor(Number(word.dataset.room) / (font * 0.66)), text = word.dataset.text;
  word.textContent = room >= 3 ? cut(text, room) : "";
  word.style.fontSize = font + "px";
  word.setAttribute("y", String(item.open ? Math.max(18, font) : Math.min(font + 6, Number(element.querySelector(".body").getAttribute("height")) / 2 + font * 0.35)));
}
let waiting = false;
function later() {
  if (!waiting) requestAnimationFrame(() => { waiting = false; refresh(); });
  waiting = true;
}

/** Draws everything again, after groups were opened or closed. */
function redraw() {
  flatten();
  for (const route of shownRoutes) {
    const xs = route.points.map(([x]) => x), ys = route.points.map(([, y]) => y);
    route.extent = [xs.reduce((a, b) => Math.min(a, b)), xs.reduce((a, b) => Math.max(a, b)), ys.reduce((a, b) => Math.min(a, b)), ys.reduce((a, b) => Math.max(a, b))];
  }
  for (const it of panes) {
    for (const list of [it.shown, it.lines]) { for (const element of list.values()) element.remove(); list.clear(); }
    it.kept.clear();
  }
  legend();
}
// Opens or closes a group in place: its upper left corner stays where it is.
function flip(item, open = !item.open) {
  const before = spots.get(item);
  setOpen(item, open);
  redraw();
  const after = spots.get(item);
  if (before && after) {
    // A corner that was off the screen comes to its border.
    const screen = Math.max(view.y + before.y * view.scale, 20);
    view = { ...view, x: view.x + (before.x + before.w / 2 - after.x - after.w / 2) * view.scale, y: screen - after.y * view.scale };
  }
  refresh();
}

// Shows everything; or the start, if everything would be too small to read and was not asked for.
function fit(whole = true) {
  const { left, right, top, bottom } = world, { clientWidth: width, clientHeight: height } = canvas;
  if (!(right > left) || !width) return refresh();
  const all = Math.min((width - 40) / (right - left), (height - 40) / (bottom - top), 1.25);
  const scale = whole ? Math.max(all, 0.02) : Math.max(all, Math.min(1.1, Math.max(0.9, (width - 40) / (right - left))));
  const first = shownBoxes.filter(({ y, h }) => (y + h / 2) * scale < height);
  let middle = (left + right) / 2;
  if (!whole && first.length) {
    // The middle of what is on the first screen, as far as nothing else leaves it.
    const weights = first.map(({ x, w, h }) => [x + w / 2, w * h]), sum = weights.reduce((sum, [, weight]) => sum + weight, 0);
    middle = weights.reduce((mean, [x, weight]) => mean + x * weight / sum, 0);
    const near = weights.reduce((near, [x]) => Math.abs(x - middle) < Math.abs(near - middle) ? x : near, Infinity);
    if (Math.abs(near - middle) > width / 3 / scale) middle = near;
    const half = width / 2 / scale - 20 / scale, [low, high] = [left + half, right - half].sort((a, b) => a - b);
    middle = Math.max(low, Math.min(high, middle));
  }
  view = { scale, x: width / 2 - middle * scale, y: scale > all ? 24 - top * scale : height / 2 - (top + bottom) / 2 * scale };
  refresh();
}

/** Shows an item in the middle of the screen. Groups around it are opened if `opens` is true. */
function center(item, opens = true) {
  if (opens && standIn(item) !== item) { expose(item); redraw(); }
  const spot = spots.get(standIn(item)), scale = Math.max(view.scale, 0.9);
  if (!spot) return;
  const { clientWidth: width, clientHeight: height } = canvas, isTall = spot.h * scale > height - 40, isWide = spot.w * scale > width - 40;
  // Of a group that is larger than the screen, its upper end.
  const first = isWide && item.open ? spots.get(item.items.reduce((top, next) => spots.get(next).y < spots.get(top).y ? next : top)) : spot;
  view = { scale, x: width / 2 - (first.x + first.w / 2) * scale, y: isTall ? 30 - spot.y * scale : height / 2 - (spot.y + spot.h / 2) * scale };
  refresh();
}

// A strip with all boxes, and the visible part.
function minimap() {
  const mini = by("mini"), context = mini.getContext("2d");
  const { left, right, top, bottom } = world, wide = (right - left) * view.scale, tall = (bottom - top) * view.scale;
  mini.hidden = innerWidth <= 720 || tall <= canvas.clientHeight && wide <= canvas.clientWidth;
  if (mini.hidden || !mini.offsetWidth) return;
  [mini.width, mini.height] = [mini.offsetWidth, mini.offsetHeight];
  const down = (mini.height - 12) / (bottom - top), along = Math.min((mini.width - 12) / (right - left), down * 3), high = Math.min(down, along * 3);
  const edge = (mini.width - (right - left) * along) / 2;
  mini.place = { along, high, edge };
  const style = getComputedStyle(document.documentElement), colorOf = (name) => style.getPropertyValue(name);
  for (const { item, x, y, w, h } of shownBoxes) {
    const place = [edge + x * along, 6 + y * high, Math.max(2, w * along), Math.max(1.5, h * high)], type = item.kind === "layer" ? typeOf(item) : item.computed?.[0]?.[0] ?? item.weights?.[0]?.[0];
    context.globalAlpha = item.open ? 0.12 : 1;
    context.fillStyle = type ? color(type) : colorOf("--edge");
    context.fillRect(...place);
    context.globalAlpha = 1;
    const severities = (marks.get(item.path) ?? []).map((finding) => finding.severity), within = item.open ? {} : inside.get(item) ?? {};
    const frame = changed.get(item) === "removed" || severities.includes("error") || within.error ? "--bad" : changed.get(item) === "added" ? "--good" : changed.has(item) || within.changed ? "--accent" : null;
    if (frame) {
      context.strokeStyle = colorOf(frame);
      context.lineWidth = 2;
      context.strokeRect(...place);
    }
  }
  context.strokeStyle = colorOf("--accent");
  context.lineWidth = 2;
  context.strokeRect(edge - view.x / view.scale * along, 6 - view.y / view.scale * high, canvas.clientWidth / view.scale * along, canvas.clientHeight / view.scale * high);
}
function jumpTo(event) {
  const { along, high, edge } = by("mini").place ?? {};
  if (!along) return;
  view = { ...view, x: canvas.clientWidth / 2 - (event.offsetX - edge) / along * view.scale, y: canvas.clientHeight / 2 - (event.offsetY - 6) / high * view.scale };
  later();
}
by("mini").addEventListener("pointerdown", jumpTo);
by("mini").addEventListener("pointermove", (event) => { if (event.buttons) jumpTo(event); });

// Panning and zooming, the same in both panes.
function zoom(factor, x, y) {
  const scale = Math.max(0.02, Math.min(4, view.scale * factor)), by = scale / view.scale;
  view = { scale, x: x - (x - view.x) * by, y: y - (y - view.y) * by };
  later();
}
const fingers = new Map();
let moved = 0;
for (const { svg } of panes) {
  svg.addEventListener("wheel", (event) => {
    event.preventDefault();
    const { left, top } = svg.getBoundingClientRect(), unit = event.deltaMode === 1 ? 20 : 1;
    if (event.ctrlKey || event.metaKey) return zoom(Math.exp(-event.deltaY * unit * 0.0025), event.clientX - left, event.clientY - top);
    const [dx, dy] = event.shiftKey && !event.deltaX ? [event.deltaY, 0] : [event.deltaX, event.deltaY];
    view = { ...view, x: view.x - dx * unit, y: view.y - dy * unit };
    later();
  }, { passive: false });
  svg.addEventListener("pointerdown", (event) => { fingers.set(event.pointerId, event); moved = 0; svg.classList.add("dragging"); });
  svg.addEventListener("click", (event) => {
    if (moved >= 6) return;
    const item = itemAt(event.target);
    if (event.target.closest(".toggle")) { flip(item); remember(hashOf(selected)); } else select(item ?? null);
  });
  svg.addEventListener("dblclick", (event) => { const item = itemAt(event.target); if (item?.items && item.kind !== "graph" && !event.target.closest(".toggle")) flip(item); });
}
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
  } else { view = { ...view, x: view.x + dx, y: view.y + dy }; later(); }
  fingers.set(event.pointerId, event);
});
for (const name of ["pointerup", "pointercancel"]) window.addEventListener(name, (/** @type {any} */ event) => { fingers.delete(event.pointerId); panes.forEach(({ svg }) => svg.classList.remove("dragging")); });
function itemAt(target) {
  const element = target?.closest?.(".node");
  for (const { shown } of element ? panes : []) for (const [spot, it] of shown) if (it === element) return spot.item;
  return null;
}
function hover(event) {
  const item = event.target.closest?.("#stage svg") ? itemAt(event.target) : null, tip = by("tip");
  tip.hidden = !item || item.open || item.kind === "graph";
  if (tip.hidden) return;
  const findings = (marks.get(item.path) || []).map((finding) => make("div", { class: finding.severity }, finding.message));
  const facts = item.kind === "layer" ? [make("div", { class: "faint" }, where(item)), make("div", { class: "mono" }, types(item)), ...ranLines(item)] : groupFacts(item);
  tip.replaceChildren(make("b", {}, item.name), ...facts, ...findings);
  tip.style.left = Math.max(4, Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8)) + "px";
  tip.style.top = Math.max(4, Math.min(event.clientY + 14, innerHeight - tip.offsetHeight - 8)) + "px";
}

// Shows both models, or one with what was removed from it.
function split(both) {
  if (!canSplit) return;
  isSplit = both;
  [panes[0].side, panes[1].side] = both && data.both ? [SIDES.after, SIDES.before] : [null, null];
  twin.toggleAttribute("hidden", !both);
  by("names").hidden = !both;
  by("both").setAttribute("aria-pressed", String(both));
  by("both").textContent = data.both ? both ? "One graph" : "Both" : both ? "One run" : "Both runs";
  redraw();
  fit(false);
}

// A picture of what is on the screen, as a file.
function picture() {
  const { clientWidth: width, clientHeight: height } = canvas, count = active().length;
  const svg = draw("svg", { xmlns: NS, width: width * count, height, viewBox: `0 0 ${width * count} ${height}`, class: isDark() ? "dark" : "" });
  svg.append(draw("style", {}, document.querySelector("style").textContent.replace(/@media[^{]*\{(?:[^{}]*\{[^{}]*\})*[^{}]*\}/g, "")));
  svg.append(draw("rect", { width: width * count, height, style: "fill: var(--back)" }), canvas.querySelector("defs").cloneNode(true));
  active().toReversed().forEach((it, at) => {
    const part = draw("svg", { x: at * width, width, height, style: "overflow: hidden" });
    part.append(it.world.cloneNode(true));
    for (const hidden of part.querySelectorAll("title, .toggle")) hidden.remove();
    svg.append(part);
  });
  return svg;
}
function save(kind) {
  const svg = picture(), text = new XMLSerializer().serializeToString(svg), url = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(text);
  const download = (href) => make("a", { href, download: `${data.title}.${kind}` }).click();
  if (kind === "svg") return Promise.resolve(download(url)).then(() => url);
  return new Promise((done) => {
    const image = new Image();
    image.addEventListener("load", () => {
      const scale = 2, sheet = make("canvas", { width: svg.getAttribute("width") * scale, height: svg.getAttribute("height") * scale });
      const context = sheet.getContext("2d");
      context.scale(scale, scale);
      context.drawImage(image, 0, 0);
      download(sheet.toDataURL("image/png"));
      done(sheet.toDataURL("image/png"));
    });
    image.src = url;
  });
}
