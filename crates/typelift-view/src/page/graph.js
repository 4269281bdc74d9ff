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

// The facts that the data leaves out where there are none: the earlier model lacks those of the later one.
const ABSENT = Object.fromEntries(["differs", "weights", "computed", "parameters", "macs", "least", "convert", "tensors", "attributes", "end", "layers"].map((fact) => [fact, undefined]));
function box(spot, pane) {
  const { item, w, h } = spot, old = pane.side === SIDES.before && item.was;
  const node = old ? { ...item, ...ABSENT, ...old, kind: item.kind, up: item.up, bodies: item.bodies } : item;
  const group = draw("g", { class: "node", "data-path": item.path });
  const state = changed.get(item);
  if (state && (!pane.side || state !== "added" || pane.side === SIDES.after)) group.classList.add(state);
  if (state === "removed" && !pane.side) group.classList.add("gone");
  if (inside.get(item)?.changed && !item.open) group.classList.add("changed");
  if (opens(item)) group.classList.add("opens");
  if (item.open) { frame(group, spot); return group; }
  const run = runs[pane.run]?.layers.get(item.path), isGroup = item.kind === "group";
  if (run?.pale) group.classList.add("pale");
  if (node.op === "Parameter" || node.op === "Result") group.classList.add(node.op === "Parameter" ? "input" : "output");
  if (node.convert) group.classList.add("convert");
  if (node.convert?.[3]) group.classList.add("narrows");
  else if (node.convert?.[2]) group.classList.add("loses");
  const type = isGroup ? computedIn(node, runs[pane.run])[0]?.[0] : typeOf(node, runs[pane.run]), rx = 9;
  if (opens(item)) group.append(draw("rect", { class: "under", x: 5, y: 5, width: w, height: h, rx }));
  group.append(draw("rect", { class: "body", width: w, height: h, rx }));
  if (type) group.append(draw("rect", { class: "tint", width: w, height: h, rx, style: "fill:" + color(type) }), draw("path", { d: `M${rx} 0V${h}A${rx} ${rx} 0 0 1 0 ${h - rx}V${rx}A${rx} ${rx} 0 0 1 ${rx} 0Z`, style: "fill:" + color(type) }));
  // Findings are those of the later model.
  const isOwn = ({ text }) => pane.side !== SIDES.before || !/^[●▲] /.test(text);
  write(group, (isGroup ? [{ kind: "op", text: groupName(item) }, ...groupLines(node, item)] : lines(node)).filter(isOwn), w);
  if (isGroup && node.weights?.length) storedBar(group, node, w, h);
  if (run?.weights) group.append(draw("rect", { x: 9, y: h - 5, width: w - 18, height: 4, rx: 2, style: "fill:" + color(run.weights[0][1]) }));
  if (opens(item)) group.append(toggle(item, w));
  if (item.stubs?.length) group.append(draw("text", { class: "stub", x: w - 6, y: h - 6, "text-anchor": "end" }, cut("↥ " + (item.stubs.length === 1 ? last(item.stubs[0].name) : item.stubs.length + " from elsewhere"), 22)));
  group.append(draw("text", { class: "word", x: 14, "data-text": isGroup ? groupName(item) : wordOf(node) }));
  group.setAttribute("aria-label", spoken(item, node));
  return group;
}
// The one word of a layer that is seen from afar: inputs and outputs have their name.
const wordOf = (node) => ["Parameter", "Result"].includes(node.op) ? nameOf(node) : node.op;
// What a screen reader says of an item.
function spoken(item, node = item) {
  if (item.kind === "layer") return `${node.op} ${nameOf(node)} ${types(node)}`;
  return `${item.open ? "open " : ""}group ${item.name}, ${plural(item.layers ?? item.items.length, "layer")}`;
}
// A type without room has `…` for its longest open lengths, because `?` is an unknown one. Numbers stay.
function shorter(text, room) {
  let short = text;
  for (let call; short.length > room && (call = short.match(/[a-z]\w*\([^()]*\)/i)); ) short = short.replace(call[0], "…");
  const open = short.match(/(?<=[[,])[^[\],]*[a-z_][^[\],]*(?=[\],])/gi) ?? [];
  for (const length of open.sort((a, b) => b.length - a.length)) if (short.length > room) short = short.replace(length, length[0] === " " ? " …" : "…");
  return short;
}
function write(group, list, w) {
  let y = 4;
  for (const { kind, text, loses, of } of list) {
    y += 16;
    const room = Math.floor((w - 22 - (kind === "op" && group.classList.contains("opens") ? 26 : 0)) / WIDTHS[kind]);
    const shown = cut(kind === "type" && text.includes("[") ? shorter(text, room) : kind === "name" || /[./]/.test(text) ? shortName(text, room) : text, room), line = draw("text", { class: of ? `badge ${of}` : kind, x: 15, y }, shown);
    if (loses) line.append(draw("tspan", { class: group.classList.contains("narrows") ? "name" : "warning", dx: 8 }, cut(loses, Math.max(4, room - text.length - 1))));
    if (shown !== text) line.append(draw("title", {}, text));
    group.append(line);
  }
}
function storedBar(group, item, w, h) {
  const all = item.weights.reduce((sum, [, bytes]) => sum + bytes, 0) || 1;
  let x = 14;
  for (const [type, bytes] of item.weights) {
    const part = Math.max(1, bytes / all * (w - 28));
    group.append(draw("rect", { class: "part", x, y: h - 14, width: part, height: 7, style: "fill:" + color(type) }));
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
  group.append(draw("text", { class: "word", x: 14, "data-text": titleOf(item) }));
  group.setAttribute("aria-label", spoken(item));
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
  const edges = route.arrows.flatMap((arrow) => arrow.edges).filter((edge) => belongs(edge, pane)), first = edges[0];
  const isEnd = route.arrows[0].to.kind === "port" || route.arrows[0].to.open;
  const path = draw("path", { class: "edge", d: curve(route.points), ...(isEnd ? {} : { "marker-end": "url(#arrow)" }) });
  const extra = runs[pane.run]?.added.get(`${first.from.path}\n${first.to.path}`);
  if (extra) path.classList.add("extra");
  if (first.back) path.classList.add("back");
  // One moved arrow of a bundle gives it its colour, and otherwise all of them do.
  const moved = edges.find((edge) => edge.moved), fate = moved ? moved.fate : edges.every((edge) => edge.fate === first.fate) && first.fate;
  if (fate) path.classList.add(fate);
  return path;
}
// The arrow near a point of the canvas, in pixels.
const NEAR = 7;
function routeAt(x, y) {
  const [px, py] = [(x - view.x) / view.scale, (y - view.y) / view.scale], near = NEAR / view.scale;
  let best = null, least = near;
  for (const route of panes[0].lines.keys()) {
    const [left, right, top, bottom] = route.extent;
    if (px < left - near || px > right + near || py < top - near || py > bottom + near) continue;
    const away = awayFrom(route.points, px, py);
    if (away < least) [best, least] = [route, away];
  }
  return best;
}
// The distance of a point from an arrow: straight pieces, and curves as a few straight ones.
function awayFrom(points, x, y) {
  let least = Infinity;
  for (let at = 1; at < points.length; at++) {
    const [a, b] = points[at - 1], [c, d] = points[at], steps = at % 2 || Math.abs(a - c) < 0.5 ? 1 : 8;
    const place = (t) => { const s = 1 - t, middle = (b + d) / 2; return steps === 1 ? [a + (c - a) * t, b + (d - b) * t] : [s ** 3 * a + 3 * s * s * t * a + 3 * s * t * t * c + t ** 3 * c, s ** 3 * b + 3 * s * s * t * middle + 3 * s * t * t * middle + t ** 3 * d]; };
    for (let step = 0; step < steps; step++) {
      const [x1, y1] = place(step / steps), [x2, y2] = place((step + 1) / steps), length = (x2 - x1) ** 2 + (y2 - y1) ** 2;
      const t = length ? Math.max(0, Math.min(1, ((x - x1) * (x2 - x1) + (y - y1) * (y2 - y1)) / length)) : 0;
      least = Math.min(least, Math.hypot(x - x1 - t * (x2 - x1), y - y1 - t * (y2 - y1)));
    }
  }
  return least;
}
// Jumps along an arrow: to the end that is not selected, or to the farther one. A second click leads back.
function jumpAlong(route, x, y) {
  const [{ from, to }] = route.arrows.flatMap((arrow) => arrow.edges), [[x1, y1], [x2, y2]] = [route.points[0], route.points.at(-1)];
  const [px, py] = [(x - view.x) / view.scale, (y - view.y) / view.scale], isNearStart = Math.hypot(px - x1, py - y1) < Math.hypot(px - x2, py - y2);
  go(selected === from ? to : selected === to ? from : isNearStart ? to : from);
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
  here();
  minimap();
}
// The open groups around the top of the screen whose titles are out of view.
function here() {
  const x = (canvas.clientWidth / 2 - view.x) / view.scale, y = 40 / view.scale - view.y / view.scale, [left, top] = [-view.x / view.scale, -view.y / view.scale];
  const around = shownBoxes.filter(({ item, ...box }) => item.open && item.kind !== "graph" && box.x < x && box.x + box.w > x && box.y < y && box.y + box.h > y && (box.y + HEAD / 2 < top || box.x + 40 < left));
  by("here").hidden = !around.length;
  by("here").replaceChildren(...around.sort((a, b) => a.depth - b.depth).flatMap(({ item }, at) => [at ? " › " : "", link({ title: item.path }, item.path, () => go(item), titleOf(item))]));
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
  if (far) chooseWords(it.shown);
  for (const [spot, element] of it.shown) {
    const { item } = spot;
    element.classList.toggle("selected", item === selected);
    element.classList.toggle("off", bright !== null && !item.open && !lit.has(item));
    // The title of a wide frame stays in view.
    if (item.open) element.querySelector("text.op").setAttribute("x", Math.max(14, Math.min(spot.w - 50 - titleWidth(item), 14 - view.x / view.scale - spot.x)));
    if (far) words(element, spot);
  }
  for (const [{ arrows }, element] of it.lines) {
    const touches = selected && arrows.some((arrow) => arrow.edges.some((edge) => edge.from === selected || edge.to === selected) || arrow.from === selected || arrow.to === selected);
    element.classList.toggle("on", Boolean(touches));
    element.classList.toggle("off", bright !== null && !arrows.some((arrow) => arrow.edges.some((edge) => edge.moved)) && !arrows.some((arrow) => arrow.edges.some((edge) => bright.has(edge.from) && bright.has(edge.to))));
  }
}
// A closed box that is lower than a line has its word beside it, as far as the words above leave room.
const isLowBox = ({ item, h }) => !item.open && (h + 24) * view.scale < WORDS;
function chooseWords(shown) {
  const apart = 1.3 * WORDS / view.scale, taken = [];
  for (const spot of [...shown.keys()].filter(({ item }) => !item.open).sort((a, b) => a.y - b.y)) {
    spot.isWorded = !isLowBox(spot) || !taken.some(({ x, y, w }) => spot.y - y < apart && x < spot.x + spot.w && x + w > spot.x);
    if (spot.isWorded) taken.push(spot);
  }
}
// The names of groups by each end of them, `7` and `layers.7` of `encoder.layers.7`.
const tails = new Map();
for (const group of groups) {
  const text = groupName(group);
  for (const { index } of text.matchAll(/[./]/g)) { const tail = text.slice(index + 1); tails.set(tail, (tails.get(tail) ?? new Set()).add(text)); }
}
// The longest end of a group's name that has room, if no other name ends so.
function tailOf(text, room) {
  const ends = [...text.matchAll(/[./]/g)].map(({ index }) => text.slice(index + 1)), tail = ends.find((end) => end && end.length < room);
  return tail && tails.get(tail).size === 1 ? "…" + tail : "";
}
// One line of a readable height in a box that is seen from afar. It may reach over the free place beside the box. A name
// that is too long keeps its end, which tells it apart; without room for that there is none.
function words(element, spot) {
  const { item } = spot, word = element.lastElementChild, isLow = isLowBox(spot), font = Math.min(WORDS / view.scale, item.open ? 400 : isLow ? Infinity : 200);
  if (word?.getAttribute("class") !== "word") return;
  const key = `${Math.round(font * 4)} ${isLow && spot.isWorded}`;
  if (word.dataset.key === key) return;
  word.dataset.key = key;
  spot.room ??= roomOf(spot);
  const room = Math.floor((spot.room - (isLow ? spot.w : 0)) / (font * 0.6)), text = word.dataset.text;
  const isBare = isLow && !spot.isWorded || item.open && (spot.h + 24) * view.scale < WORDS || item.open && spot.depth > 0 && spot.h * view.scale < 5 * WORDS;
  word.textContent = isBare ? "" : text.length <= room ? text : item.kind === "group" ? tailOf(text, room) : "";
  // The name of a narrow open group is beside it.
  const isBeside = item.open && spot.depth === 0 && spot.room < text.length * font * 0.6;
  if (isBeside) word.textContent = text;
  word.setAttribute("x", isBeside ? -8 : isLow ? spot.w + font * 0.5 : 14);
  word.setAttribute("text-anchor", isBeside ? "end" : "start");
  word.style.fontSize = font + "px";
  word.setAttribute("y", String(item.open ? Math.max(18, font) : Math.min(font + 6, Number(element.querySelector(".body").getAttribute("height")) / 2 + font * 0.35)));
}
// The width from the start of a box to the next one in its row, at least that of the box.
function roomOf({ item, x, y, w, h }) {
  if (item.open) return w - 30;
  const next = shownBoxes.reduce((near, other) => other.x > x && other.item !== item && (!other.item.open || other.y > y) && other.y < y + h && other.y + other.h > y ? Math.min(near, other.x) : near, x + w + 4000);
  return Math.max(w - 20, next - x - 24);
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
  const spot = spots.get(item), before = spot && topOf(item, spot);
  setOpen(item, open);
  redraw();
  const after = spots.get(item);
  if (before && after) {
    // A corner that was off the screen comes to its border.
    const screen = Math.max(view.y + spot.y * view.scale, 20);
    const top = topOf(item, after);
    view = { ...view, x: view.x + (before.x + before.w / 2 - top.x - top.w / 2) * view.scale, y: screen - after.y * view.scale };
  }
  if (item === selected) details(item);
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

/** Shows an item in the middle of the screen, with others next to it as far as that stays readable. */
function center(item, others = []) {
  if ([item, ...others].some((it) => standIn(it) !== it)) { [item, ...others].forEach(expose); redraw(); }
  if (others.length && centerAll([item, ...others])) return;
  const spot = spots.get(standIn(item)), scale = Math.max(view.scale, 0.9);
  if (!spot) return;
  const { clientWidth: width, clientHeight: height } = canvas, isTall = spot.h * scale > height - 40;
  // Of a group that is larger than the screen, its upper end.
  const first = topOf(item, spot);
  view = { scale, x: width / 2 - (first.x + first.w / 2) * scale, y: isTall ? 30 - spot.y * scale : height / 2 - (spot.y + spot.h / 2) * scale };
  refresh();
}

// The upper end of an open group that is wider than the screen; otherwise the whole group.
function topOf(item, spot) {
  const isWide = item.open && spot.w * Math.max(view.scale, 0.9) > canvas.clientWidth - 40, inner = item.items?.filter(({ op }) => op !== "Parameter") ?? [];
  return isWide && inner.length ? spots.get(inner.reduce((top, next) => spots.get(next).y < spots.get(top).y ? next : top)) : spot;
}

function centerAll(items) {
  const all = items.map((item) => spots.get(standIn(item))).filter(Boolean), { clientWidth: width, clientHeight: height } = canvas;
  const [left, right] = [Math.min(...all.map(({ x }) => x)), Math.max(...all.map(({ x, w }) => x + w))];
  const [top, bottom] = [Math.min(...all.map(({ y }) => y)), Math.max(...all.map(({ y, h }) => y + h))];
  const scale = Math.min(1, (width - 60) / (right - left), (height - 60) / (bottom - top));
  if (scale < 0.15) return false;
  view = { scale, x: width / 2 - (left + right) / 2 * scale, y: height / 2 - (top + bottom) / 2 * scale };
  refresh();
  return true;
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
    const place = [edge + x * along, 6 + y * high, Math.max(2, w * along), Math.max(1.5, h * high)], type = item.kind === "layer" ? typeOf(item) : computedIn(item)[0]?.[0] ?? item.weights?.[0]?.[0];
    context.globalAlpha = item.open ? 0.12 : 1;
    context.fillStyle = colorOf(type ? color(type).slice(4, -1) : "--edge");
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
    const item = itemAt(event.target), { left, top } = svg.getBoundingClientRect();
    const route = item && !item.open ? null : routeAt(event.clientX - left, event.clientY - top);
    if (route) return jumpAlong(route, event.clientX - left, event.clientY - top);
    if (event.target.closest(".toggle")) { flip(item); remember(hashOf(selected)); } else select(item ?? null);
  });
  svg.addEventListener("dblclick", (event) => { const item = itemAt(event.target); if (opens(item) && !event.target.closest(".toggle")) flip(item); });
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
  const svg = event.target.closest?.("#graphs > svg"), item = svg && itemAt(event.target), tip = by("tip"), box = svg?.getBoundingClientRect();
  const route = svg && (!item || item.open) ? routeAt(event.clientX - box.left, event.clientY - box.top) : null;
  svg?.classList.toggle("over-arrow", Boolean(route));
  for (const { lines } of panes) for (const [it, element] of lines) element.classList.toggle("hovered", it === route);
  tip.hidden = !route && (!item || item.open || item.kind === "graph");
  if (tip.hidden) return;
  tip.replaceChildren(...(route ? arrowFacts(route) : boxFacts(item)));
  tip.style.left = Math.max(4, Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8)) + "px";
  tip.style.top = Math.max(4, Math.min(event.clientY + 14, innerHeight - tip.offsetHeight - 8)) + "px";
}

function boxFacts(item) {
  const findings = (marks.get(item.path) || []).map((finding) => make("div", { class: finding.severity }, finding.message));
  const facts = item.kind === "layer" ? [make("div", { class: "faint" }, where(item)), make("div", { class: "mono" }, types(item)), ...ranLines(item)] : groupFacts(item);
  return [make("b", {}, nameOf(item)), ...facts, ...findings];
}
// The producer, the consumer and the tensor of an arrow.
function arrowFacts({ arrows }) {
  const edges = arrows.flatMap((arrow) => arrow.edges), added = (edge) => runs[0]?.added.get(`${edge.from.path}\n${edge.to.path}`)?.text;
  const one = (edge) => [make("div", {}, `${called(edge.from.path, edge.from.op)} → ${called(edge.to.path, edge.to.op)}`), make("div", { class: "mono" }, shaped(edge.type + edge.shape) + (edge.moved ? edge.only === SIDES.before ? " · only before" : " · only after" : "")), ...(added(edge) ? [make("div", {}, added(edge))] : [])];
  return [...edges.slice(0, 4).flatMap(one), ...(edges.length > 4 ? [make("div", { class: "faint" }, `and ${edges.length - 4} more`)] : []), make("div", { class: "faint" }, "click: to the other end")];
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
  if (selected) center(selected, endsOf(selected)); else fit(false);
}
// The producers of a layer on one side of a comparison only.
const endsOf = (item) => item.kind === "layer" ? item.before.filter((edge) => edge.moved).map((edge) => edge.from) : [];

// A picture of the whole graph, or of what is on the screen, with the legend.
const LEGEND = 32, AROUND = 24;
function picture(whole) {
  const [wide, high] = whole ? [world.right - world.left + 2 * AROUND, world.bottom - world.top + 2 * AROUND] : [canvas.clientWidth, canvas.clientHeight];
  const kinds = [...by("legend").children], room = (item) => 34 + 7 * item.textContent.length;
  const titles = active().length > 1 ? [...by("names").children].map(({ textContent }) => textContent) : [], top = titles.length ? LEGEND : 0;
  const width = Math.max(wide * active().length, kinds.reduce((sum, item) => sum + room(item), 24)), height = top + high + LEGEND;
  const svg = draw("svg", { xmlns: NS, width, height, viewBox: `0 0 ${width} ${height}`, class: isDark() ? "dark" : "" });
  svg.append(draw("style", {}, document.querySelector("style").textContent.replace(/@media[^{]*\{(?:[^{}]*\{[^{}]*\})*[^{}]*\}/g, "")));
  svg.append(draw("rect", { width, height, style: "fill: var(--back)" }), canvas.querySelector("defs").cloneNode(true));
  active().toReversed().forEach((it, at) => {
    const part = draw("svg", { x: at * wide, y: top, width: wide, height: high, style: "overflow: hidden" });
    if (titles[at]) svg.append(draw("text", { x: at * wide + 12, y: 20, style: "fill: var(--ink); font-size: 14px; font-weight: 600" }, titles[at]));
    part.append(whole ? wholeWorld(it) : it.world.cloneNode(true));
    for (const hidden of part.querySelectorAll("title, .toggle")) hidden.remove();
    svg.append(part);
  });
  let x = 12;
  for (const item of kinds) {
    const mark = item.querySelector("i, .sign"), looks = mark && getComputedStyle(mark), isSign = mark?.matches(".sign"), write = (x, text, fill) => svg.append(draw("text", { x, y: top + high + 20, style: `fill: ${fill}; font-size: 12px` }, text));
    if (isSign) write(x + 3, mark.textContent, looks.color);
    else if (mark) svg.append(draw("rect", { x, y: top + high + (mark.matches(".line") ? 16 : 10), width: 12, height: mark.matches(".line") ? 0.1 : 12, rx: 3, opacity: looks.opacity, style: `fill: ${mark.style.background || "none"}; stroke: ${looks.borderTopColor}; stroke-width: ${parseFloat(looks.borderTopWidth)}; stroke-dasharray: ${looks.borderTopStyle === "dashed" ? "3 2" : "none"}` }));
    write(x + 18, isSign ? item.textContent.slice(mark.textContent.length) : item.textContent, "var(--ink)");
    x += room(item);
  }
  return svg;
}
// Every box and arrow of a pane, in full size.
function wholeWorld(pane) {
  const parts = ["frames", "edges", "nodes"].map((kind) => draw("g", { class: kind })), [frames, edges, nodes] = parts;
  for (const spot of shownBoxes.filter(({ item }) => belongs(item, pane))) {
    const element = box(spot, pane);
    element.setAttribute("transform", `translate(${spot.x} ${spot.y})`);
    (spot.item.open ? frames : nodes).append(element);
  }
  edges.append(...shownRoutes.filter((route) => route.arrows.some((arrow) => arrow.edges.some((edge) => belongs(edge, pane)))).map((route) => line(route, pane)));
  const found = draw("g", { class: "world", transform: `translate(${AROUND - world.left} ${AROUND - world.top})` });
  found.append(...parts);
  return found;
}
// A drawing of a whole graph for paper. A long graph is cut into columns, which overlap a little.
const PAPER = 1.3, OVERLAP = 40;
function sheet() {
  const svg = picture(true), [width, height] = [svg.width.baseVal.value, svg.height.baseVal.value];
  // Inside the page, this style would apply to all of it, without the rules for paper.
  svg.querySelector("style").remove();
  const columns = Math.max(1, Math.round(Math.sqrt(height / width / PAPER))), part = height / columns;
  const paper = draw("svg", { class: "sheet", viewBox: `0 0 ${columns * width} ${part + OVERLAP}` });
  for (let at = 0; at < columns; at++) {
    const column = draw("svg", { x: at * width, width, height: part + OVERLAP, viewBox: `0 ${at * part} ${width} ${part + OVERLAP}` });
    if (at) column.append(draw("use", { href: "#whole" })); else { svg.id = "whole"; column.append(svg); }
    paper.append(column);
  }
  return paper;
}
// A browser takes too long for more boxes.
const MOST_PICTURED = 4000;
function save(kind, whole = true) {
  const svg = picture(whole && shownBoxes.length < MOST_PICTURED), text = new XMLSerializer().serializeToString(svg), url = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(text);
  const download = (href) => make("a", { href, download: `${data.title}.${kind}` }).click();
  if (kind === "svg") return Promise.resolve(download(url)).then(() => url);
  return new Promise((done) => {
    const image = new Image();
    image.addEventListener("load", () => {
      // Browsers refuse larger sheets.
      const { width, height } = svg.viewBox.baseVal, scale = Math.min(2, 16000 / Math.max(width, height), Math.sqrt(1e8 / width / height));
      const sheet = make("canvas", { width: Math.floor(width * scale), height: Math.floor(height * scale) }), context = sheet.getContext("2d");
      context.scale(scale, scale);
      context.drawImage(image, 0, 0);
      download(sheet.toDataURL("image/png"));
      done(sheet.toDataURL("image/png"));
    });
    image.src = url;
  });
}
