// Selection, the address, keys and buttons.

// The address holds the current selection, so that links and the Back button work.
let restoring = false;
const hashOf = (item) => item ? item.path : "";
function remember(hash) {
  if (restoring || decoded(location.hash.slice(1)) === hash) return;
  // A page embedded in another, such as a notebook, may have no address of its own.
  try { history.pushState(null, "", hash ? "#" + encodeURIComponent(hash) : location.pathname + location.search); } catch { }
}

/** Selects an item and shows it in the middle, or with others. @param {Item} item @param {string | null} constant @param {Item[]} others */
function go(item, constant = null, others = []) {
  select(item, constant);
  center(item, others);
}
function select(item, constant = null) {
  selected = item;
  if (!item || path && !path.boxes.has(item)) { path = null; bright = null; by("path").hidden = true; }
  // A phone shows one sheet at a time.
  if (item && innerWidth <= 720) { by("panel").hidden = true; by("beside").setAttribute("aria-expanded", "false"); }
  details(item, constant);
  refresh();
  remember(constant && namesAt.has(constant) ? constant : hashOf(item));
}

// The block, or else the layer, whose name ends in these words, `h.5`, if it is the only one.
function endingIn(words) {
  const ends = ({ path }) => words && (path.endsWith("." + words) || path.endsWith("/" + words));
  return [groups, layers].map((list) => list.filter(ends)).find((found) => found.length === 1)?.[0];
}
const restore = () => show(decoded(location.hash.slice(1)), true);
function show(hash, fits) {
  restoring = true;
  const asked = hash.startsWith("path:") ? data.steps.find((step) => stepName(step) === hash.slice(5)) : null;
  const name = asked ? asked.path : hash, item = find(name) ?? endingIn(name);
  if (item) {
    go(item, isHeld(name) ? name : null);
    if (asked) follow(asked);
  } else {
    select(null);
    if (fits) fit(false);
    // A name that nothing has, or several, is searched.
    if (name) { by("search").value = name; search(); }
    // The first error is in view, or the first change, in its block.
    const wrong = fits && !data.before && data.findings.map(({ severity, path }) => severity === "error" && path && find(path)).find(Boolean);
    const changed = fits && data.changes.filter(({ kind }) => kind !== "names").map(boxOf).find(Boolean);
    if (wrong || changed) center(wrong || standIn(changed));
  }
  restoring = false;
}
window.addEventListener("popstate", () => show(decoded(location.hash.slice(1)), false));

const isDark = () => document.documentElement.classList.contains("dark");
function paint(dark) {
  document.documentElement.classList.toggle("dark", dark);
  later();
}

// The box that an arrow key leads to: along the arrows, or the next one in the row.
function neighbour(key) {
  // Down leads into an open group.
  if (key === "ArrowDown" && selected.open && selected.items) {
    const inner = shownBoxes.filter(({ item }) => item.kind !== "graph" && (item.up === selected || item.up?.up === selected && item.up.kind === "graph"));
    if (inner.length) return inner.reduce((top, next) => next.y < top.y ? next : top).item;
  }
  const spot = spots.get(standIn(selected));
  const nodes = selected.kind === "layer" ? [selected] : layersIn(selected), own = new Set(nodes);
  if (key === "ArrowUp" || key === "ArrowDown") {
    const [list, end] = key === "ArrowUp" ? ["before", "from"] : ["next", "to"];
    const edge = nodes.flatMap((node) => node[list]).find((edge) => !own.has(edge[end]));
    return edge && standIn(edge[end]);
  }
  const side = key === "ArrowRight" ? 1 : -1, middle = (it) => it.x + it.w / 2;
  const row = shownBoxes.filter((it) => it.item.up === spot.item.up && it !== spot && Math.abs(it.y + it.h / 2 - spot.y - spot.h / 2) < 40 && (middle(it) - middle(spot)) * side > 0);
  return row.length ? row.reduce((near, it) => Math.abs(middle(it) - middle(spot)) < Math.abs(middle(near) - middle(spot)) ? it : near).item : null;
}
function graphKey(event) {
  if (event.key === "Escape") {
    if (bright) follow(null); else if (selected) select(null); else fit();
    say(selected ? spoken(selected) : "nothing selected");
  } else if (event.key === "Enter" && opens(selected)) { flip(selected); say(spoken(selected)); }
  else if (event.key === "Backspace" && selected) {
    const up = selected.up?.kind === "graph" ? selected.up.up : selected.up;
    if (!up) return;
    go(up);
    say(spoken(up));
  } else if (event.key.startsWith("Arrow")) {
    const next = selected ? neighbour(event.key) : (shownBoxes.find(({ item }) => item.op === "Parameter") ?? shownBoxes[0])?.item;
    if (next) go(next);
    say(next ? spoken(next) : "nothing there");
  } else return;
  event.preventDefault();
}
// Tells a screen reader what a key did.
const say = (text) => { by("live").textContent = text; };
for (const { svg } of panes) svg.addEventListener("keydown", graphKey);
document.addEventListener("keydown", (/** @type {any} */ event) => {
  const isTyping = event.target.tagName === "INPUT" && !(event.target.type === "number" && event.key === "/");
  if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
  const { clientWidth: width, clientHeight: height } = canvas;
  const action = { "/": () => by("search").focus(), 0: () => fit(), o: () => by("beside").click(), b: () => by("both").click(), u: () => showReach(true), d: () => showReach(false), "?": () => by("keys").showModal(), "+": () => zoom(1.25, width / 2, height / 2), "-": () => zoom(0.8, width / 2, height / 2) }[event.key];
  if (action) { action(); event.preventDefault(); }
  // On a fresh page nothing has the focus, so the first key selects an input. A link to a layer is where that layer is.
  else if ((event.target === document.body || selected && event.target.closest?.("a.link")) && event.key.startsWith("Arrow")) { canvas.focus(); graphKey(event); }
});
// Paper has the whole graph in light colours.
window.addEventListener("beforeprint", () => {
  const dark = isDark();
  document.documentElement.classList.remove("dark");
  const paper = sheet();
  by("graphs").append(paper);
  window.addEventListener("afterprint", () => { paper.remove(); paint(dark); }, { once: true });
});
by("fit").addEventListener("click", () => fit());
by("beside").addEventListener("click", () => panel(!by("panel").offsetWidth));
by("theme").addEventListener("click", () => paint(!isDark()));
by("both").hidden = !canSplit;
by("both").addEventListener("click", () => split(!isSplit));
for (const kind of ["svg", "png"]) by(kind).addEventListener("click", (event) => save(kind, !event.shiftKey));
by("help").addEventListener("click", () => by("keys").showModal());
by("title").append(data.title, make("small", {}, plural(data.layers, "layer")));
by("names").replaceChildren(...(data.both ? [last(data.before), last(data.file)] : ["second run", "first run"]).map((name) => make("span", {}, name)));
document.title = data.title + " · Typelift";
document.documentElement.classList.toggle("dark", matchMedia("(prefers-color-scheme: dark)").matches);
window.addEventListener("resize", later);
side();
if (canSplit && innerWidth > 1100) split(true); else redraw();
if (tab === "outline") side();
restore();
