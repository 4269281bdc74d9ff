// Tests a page of `typelift view` from within the page, for `.ci/view`. It operates the page like a user, and writes
// the faults to `data-checked` of the body, and the figures of the layout to `data-figures`.
(async () => {
  const faults = [], figures = { arrows: 0, through: 0, single: 0, straight: 0, boxes: 0, overlaps: 0 };
  const expect = (what, holds) => { if (!holds) faults.push(what); };
  const settled = (time) => new Promise((done) => setTimeout(done, time));
  const shownTo = (element) => element.getClientRects().length > 0 && getComputedStyle(element).display !== "none";
  const key = (key) => document.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
  const isPhone = innerWidth <= 720;

  expect("the page is as wide as the window", document.documentElement.scrollWidth <= innerWidth);
  expect("with an error the findings are first", !errors || data.before || tab === "findings" && by("side").querySelector(".error") && by("tabs").querySelector(".count.error"));
  readable();
  const usual = data.map.flatMap(({ computed }) => Object.entries(computed)).reduce((sums, [type, count]) => sums.set(type, (sums.get(type) ?? 0) + count), new Map()), [most] = [...usual].sort((a, b) => b[1] - a[1])[0] ?? [];
  expect("the most frequent type is grey", data.before || !COLORS[most] || ["#7c8a9d", "#8b99ab"].includes(getComputedStyle(document.documentElement).getPropertyValue("--t-" + most)));
  expect("a box is drawn", document.querySelectorAll(".node .body").length > 0);
  turn("map");
  expect("each stored type is on the map", data.before || data.map.flatMap((row) => row.weights).every(({ element_type }) => by("side").textContent.includes(element_type)));

  function readable() {
    const texts = [...document.querySelectorAll("svg text, aside *, header *, #foot *")].filter((element) => [...element.childNodes].some((child) => child.nodeType === Node.TEXT_NODE && child.textContent.trim()) && shownTo(element));
    const scaleOf = (element) => element.closest(".world") ? view.scale : 1;
    expect("text is at least 10 pixels high", texts.every((element) => parseFloat(getComputedStyle(element).fontSize) * scaleOf(element) >= 9.99));
  }

  // The points of an arrow as it is drawn.
  function pointsOf({ points }) {
    const list = [];
    for (let at = 1; at < points.length; at++) {
      const [x, y] = points[at], [a, b] = points[at - 1], middle = (b + y) / 2;
      for (let step = 0; step <= 12; step++) {
        const t = step / 12, s = 1 - t;
        list.push(at % 2 ? [a + (x - a) * t, b + (y - b) * t] : [s ** 3 * a + 3 * s * s * t * a + 3 * s * t * t * x + t ** 3 * x, s ** 3 * b + 3 * s * s * t * middle + 3 * s * t * t * middle + t ** 3 * y]);
      }
    }
    return list;
  }
  // Counts arrows through boxes that are not theirs, straight links, and boxes over others.
  function measure() {
    const isAround = (outer, inner) => { for (let up = inner; up; up = up.up) if (up === outer) return true; return false; };
    const ends = new Map(), count = (end, side) => { const known = ends.get(end) ?? { in: 0, out: 0 }; known[side]++; ends.set(end, known); };
    const isBack = (route) => route.arrows[0].edges[0].back;
    for (const { arrows: [{ from, to }] } of shownRoutes.filter((route) => !isBack(route))) { count(from, "out"); count(to, "in"); }
    const sorted = shownBoxes.slice().sort((a, b) => a.y - b.y);
    for (const route of shownRoutes) {
      const [{ from, to }] = route.arrows, points = pointsOf(route), [left, right, top, bottom] = route.extent;
      const near = sorted.filter(({ item, x, y, w, h }) => y < bottom && y + h > top && x < right + 1 && x + w > left - 1 && !isAround(item, from.kind === "port" ? from.group : from) && !isAround(item, to.kind === "port" ? to.group : to) && !isAround(from, item) && !isAround(to, item));
      figures.arrows++;
      if (near.some(({ x, y, w, h }) => points.some(([a, b]) => a > x + 1 && a < x + w - 1 && b > y + 1 && b < y + h - 1))) figures.through++;
      if (!isBack(route) && from.kind !== "port" && to.kind !== "port" && ends.get(from).out === 1 && ends.get(to).in === 1) {
        figures.single++;
        if (Math.abs(points[0][0] - points.at(-1)[0]) <= 3) figures.straight++;
      }
    }
    const closed = sorted.filter(({ item }) => !item.open);
    figures.boxes += closed.length;
    closed.forEach((box, at) => {
      for (let next = at + 1; next < closed.length && closed[next].y < box.y + box.h - 1; next++) {
        const other = closed[next];
        if (box.x < other.x + other.w - 1 && other.x < box.x + box.w - 1) figures.overlaps++;
      }
    });
  }
  measure();
  const opened = groups.filter((group) => group.up.kind === "graph").slice(0, 8);
  for (const group of opened) setOpen(group, true);
  for (const node of layers.filter((node) => node.bodies.length).slice(0, 4)) { expose(node); setOpen(node, true); }
  redraw();
  measure();
  expect("no box is over another", !figures.overlaps);
  const isShown = ({ from, to }) => spots.has(from) && spots.has(to);
  expect("arrows lead to the next iteration", backEdges.filter(isShown).every((edge) => shownRoutes.some(({ arrows }) => arrows[0].edges[0] === edge)));
  const repeats = [...document.querySelectorAll(".node:not(.open)")].filter((element) => element.querySelector("text.op")?.textContent === element.querySelector("text.name")?.textContent);
  expect("no second line repeats the first", !repeats.length);

  // Words in the boxes at every zoom.
  for (const scale of [0.5, 0.7, 0.84, 1]) {
    view = { ...view, scale };
    const [spot] = shownBoxes.filter(({ item }) => !item.open);
    view = { scale, x: canvas.clientWidth / 2 - (spot.x + spot.w / 2) * scale, y: canvas.clientHeight / 2 - (spot.y + spot.h / 2) * scale };
    refresh();
    const visible = [...canvas.querySelectorAll(".node:not(.open)")], said = visible.filter((element) => [...element.querySelectorAll("text")].some((text) => shownTo(text) && text.textContent.trim()));
    // A word without room is left out, because a part of it could be another one.
    expect(`words are on screen at ${scale}`, visible.length && said.length >= (scale < READABLE ? 1 : visible.length));
    expect(`words are whole at ${scale}`, scale >= READABLE || [...canvas.querySelectorAll(".node text.word")].every(({ textContent, dataset }) => !textContent || textContent === dataset.text || dataset.text.endsWith(textContent.slice(1))));
    readable();
  }
  for (const group of opened) setOpen(group, false);
  redraw();
  fit(false);

  // The wheel pans, and zooms with Ctrl.
  const wheel = (options) => canvas.dispatchEvent(new WheelEvent("wheel", { bubbles: true, cancelable: true, clientX: innerWidth / 2, clientY: innerHeight / 2, ...options }));
  const start = { ...view };
  wheel({ deltaY: 100 });
  expect("the wheel pans", view.y === start.y - 100 && view.scale === start.scale);
  wheel({ deltaY: 100, ctrlKey: true });
  expect("Ctrl and the wheel zoom", view.scale < start.scale);
  fit(false);

  const wanted = data.outline && groups.length ? groups[groups.length >> 1] : data.graphs[0].nodes.find((node) => node.outputs.length && places.get(node.path) === node) || data.graphs[0].nodes[0];
  const seek = (text) => { by("search").value = text; by("search").dispatchEvent(new Event("input")); };
  seek(wanted.path);
  expect("the search finds", hits.some((hit) => hit.path === wanted.path));
  jump(hits.findIndex((hit) => hit.path === wanted.path));
  await settled(30);
  const element = canvas.querySelector(".node.selected");
  expect("what was found is selected", element && selected === wanted);
  const box = element?.querySelector(".body").getBoundingClientRect();
  const corners = [[0.5, 0.5], [0.1, 0.2], [0.8, 0.2], [0.1, 0.8], [0.9, 0.8]];
  expect("nothing covers the selected box", box && corners.every(([x, y]) => document.elementFromPoint(box.x + box.width * x, box.y + box.height * y)?.closest(".node") === element));
  element?.dispatchEvent(new MouseEvent("click", { bubbles: true }));
  expect("a click shows details", !by("details").hidden && by("details").textContent.includes(wanted.name));
  expect("a click shows why", data.outline || !wanted.outputs.length || by("why").textContent.includes("Why"));
  expect("the address names the layer", decoded(location.hash.slice(1)) === wanted.path);
  if (isPhone) expect("a phone shows one sheet", by("panel").hidden && canvas.getBoundingClientRect().height >= innerHeight * 0.25);
  key("d");
  expect("downstream is counted", /^[\d,]+ layers? downstream, [\d,]+ outputs?/.test(by("reach")?.textContent));
  key("u");
  expect("upstream is counted", /^[\d,]+ layers? upstream, [\d,]+ inputs?/.test(by("reach")?.textContent));
  follow(null);
  const went = new Promise((done) => addEventListener("popstate", done, { once: true }));
  history.back();
  await Promise.race([went, settled(5000)]);
  expect("Back goes back", location.hash === "" ? selected === null : decoded(location.hash.slice(1)) === selected?.path);

  // Products of lengths equal the operations, where all lengths are known.
  const atSet = new Set(openMacs.map(({ node }) => node));
  for (const node of layers.filter((node) => node.macs && !atSet.has(node))) {
    const products = macsFormula(node).slice(3).split(" + ").filter(Boolean).map((product) => product.split("·"));
    const sum = products.reduce((all, factors) => all + factors.reduce((product, factor) => product * Number(factor), 1), 0);
    expect(`the formula of ${node.path}`, products.length === 0 || sum === node.macs);
  }
  // Each limit of a length leads to a layer, and both ends of a state to each other.
  expect("limits lead to layers", layers.every(({ limits = [] }) => limits.every(([, others]) => others.every((path) => find(path)))));
  for (const state of layers.filter((node) => variableOf(node) && !node.only).slice(0, 4)) {
    go(state);
    expect(`the state of ${state.path} leads on`, layers.every((node) => node === state || variableOf(node) !== variableOf(state) || by("details").querySelector(`a[title="${CSS.escape(node.path)}"]`)));
    seek(variableOf(state));
    expect("the search finds a state, and says which", hits.some(({ item, note }) => item === state && note.includes(variableOf(state))));
  }
  // Each input leads to the layer that it reads.
  expect("inputs lead to their producers", layers.every((node) => node.inputs.every((input) => !input.from || producerOf(node, input)?.path === input.from)));

  // Constant inputs say what they are, and Converts of unknown values why they can lose. Links that look the same have ids.
  for (const [op, name] of [["Gather", "axis"], ["Range", "step"], ["Transpose", "input_order"]]) {
    const node = layers.find((node) => node.op === op && node.inputs.at(-1)?.held);
    if (node) { select(node); expect(`${node.path} has ${name}`, by("details").textContent.includes(`${name}: `)); }
  }
  expect("a Convert has the range of its values", layers.every(({ convert }) => !convert?.[2] || /^\d/.test(convert[2]) || convert[2] === UNKNOWN || /its values/.test(convert[4])));
  for (const node of layers.filter(({ inputs }) => inputs.length > 1).slice(0, 20)) {
    select(node);
    const named = [...by("details").querySelectorAll("a.link[title]:not(.told)")].filter(({ title }) => places.has(title));
    expect(`links of ${node.path} are told apart`, named.every((one) => named.every((other) => one.title === other.title || one.textContent !== other.textContent)));
  }

  // All layers that lead to the results are as many as a plain search finds.
  const ends = data.graphs[0].nodes.filter((node) => node.op === "Result" && !node.only);
  if (ends.length && data.graphs.length === 1 && !data.outline) {
    const seen = new Set([ends[0]]), pending = [ends[0]];
    for (let node; (node = pending.pop());) for (const { from, only } of node.before) if (only !== SIDES.before && !seen.has(from)) { seen.add(from); pending.push(from); }
    const { boxes } = reachOf(ends[0], true);
    expect("upstream has all producers", [...seen].filter((node) => !node.only).every((node) => boxes.has(node)));
  }

  // Inputs and outputs have their names, on the box and on the map.
  turn("map");
  for (const node of data.graphs[0].nodes.filter((node) => ["Parameter", "Result"].includes(node.op) && !node.only)) {
    const name = node.end ?? node.name;
    expect(`the end ${name} is on the map with its type`, data.before || data.outline || by("side").textContent.replace(/ · id \d+/g, "").includes(`${name} ${types(node)}`));
    expect(`the end ${name} has its type`, !["Parameter", "Result"].includes(node.op) || types(node) !== "");
  }

  // A weight of several constants shows what the model computes with, and each stored part.
  for (const node of layers.filter((node) => node.inputs.some(({ parts = [] }) => parts[0]?.[1] === "codes")).slice(0, 3)) {
    go(node);
    const [input] = node.inputs.filter(({ parts = [] }) => parts[0]?.[1] === "codes"), [[codes]] = input.parts;
    const sections = [...by("details").querySelectorAll("details.values")], titles = sections.map((section) => section.querySelector("summary").textContent);
    expect(`the values of ${node.path} come first, then its codes`, titles[0] === "Values" && titles[1] === "Codes" && titles.includes("Scales"));
    expect("the codes are as many as the values", values.get(codes)?.count === values.get(sections[0]?.dataset.path)?.count);
    const product = values.get(sections[0].dataset.path), before = data.steps[stepsAt.get(product.path)?.before];
    if (before?.type === "f16") expect(`the values of ${product.path} are those of f32, and say so`, product.within === "f16" && sections[0].textContent.includes("in f32"));
    seek(codes);
    jump(hits.findIndex((hit) => hit.path === codes));
    expect(`the codes ${codes} can be chosen`, by("details").querySelector(`details.values[open]`)?.dataset.path === codes);
  }
  // What is called exact is no loss.
  expect("a Convert of an exact constant loses nothing", allConverts().every(({ loses }) => !/^0 of/.test(loses)));

  // Groups open and close in place, and are found.
  const blocks = groups.filter((group) => group.number !== undefined && group.up.kind === "graph" && group.up === data.graphs[0]);
  for (const group of [...new Set([blocks[0], blocks[blocks.length >> 1], blocks.at(-1)])].filter(Boolean)) {
    const name = group.name.split(/[./]/).slice(-2).join(group.name.includes(".") ? "." : "/");
    seek(name);
    expect(`the search finds the block ${name}`, hits.slice(0, 5).some((hit) => hit.item === group || hit.item.kind === "group" && hit.item.name.endsWith(name)));
    jump(0);
    expect(`the block ${name} is selected`, selected?.kind === "group" && selected.name.endsWith(name) && !/^(before|after|between) /.test(selected.name) && by("details").textContent.includes("layer"));
    go(group);
    if (!opens(group)) continue;
    const was = spots.get(group), before = [was.x * view.scale + view.x, was.y * view.scale + view.y], count = shownBoxes.length, open = group.open;
    flip(group);
    expect(`the block ${name} opens or closes`, open ? shownBoxes.length < count : shownBoxes.length > count);
    const now = spots.get(group);
    expect(`the block ${name} stays in its place`, Math.abs(now.y * view.scale + view.y - Math.max(20, before[1])) < 2);
    const inner = group.items.find((item) => item.kind === "layer");
    if (inner) { go(inner); expect("a layer in a group is shown", spots.has(inner) && document.querySelector("#graphs .node.selected")); }
    setOpen(group, open);
    redraw();
  }
  // Words with a meaning: a shape, an operation, an id.
  const shaped = layers.find((node) => node.outputs[0]?.[1].includes(","));
  if (shaped) {
    const [[, shape]] = shaped.outputs;
    for (const text of [shape, shape.replaceAll(",", ", ")]) { seek(text); expect(`${text} is a shape`, hits.length && hits.every((hit) => hit.lower.includes(shape))); }
    seek(`op:${shaped.op}`);
    expect(`op:${shaped.op} is an operation`, hits.length && hits.every((hit) => hit.op === shaped.op));
    seek(`id:${shaped.id}`);
    expect(`id:${shaped.id} is an id`, data.outline || hits.length && hits.every((hit) => hit.id === shaped.id));
  }
  for (const [path, { op, type }] of [...stepsAt].filter(([path, { op }]) => op === "Const" && holders.has(path)).slice(0, 3)) {
    seek(`Const ${type}`);
    expect(`Const ${type} finds constants of this type first`, hits[0]?.op === op && hits[0].note.startsWith(`Const ${type}`));
  }
  const rounding = layers.filter(({ op }) => ["FakeQuantize", "FakeConvert"].includes(op)).slice(0, 3);
  expect("layers that round are in the list of Converts", rounding.every(({ path }) => allConverts().some((convert) => convert.path === path)));
  if (errors) { seek("error"); expect("`error` finds the layers with errors", hits.length && marks.has(hits[0].path)); }
  const looped = layers.find((node) => node.bodies.some(({ nodes }) => nodes.length) && !node.only);
  if (looped) {
    go(looped);
    flip(looped, true);
    graphKey(new KeyboardEvent("keydown", { key: "ArrowDown" }));
    expect("Down leads into a body", selected.kind === "layer" && selected.graph.up === looped);
    for (const [path, outer] of [...outerInputs].filter(([path]) => places.get(path)?.graph.up === looped).slice(0, 3)) {
      go(places.get(path));
      expect(`${path} has a link to what enters there`, !outer.from || [...by("details").querySelectorAll("a")].some((link) => link.title === outer.from));
    }
    flip(looped, false);
    select(null);
  }
  if (!data.before) { seek("input"); expect("`input` finds the inputs", data.outline || !layers.some((node) => node.op === "Parameter") || hits.some((hit) => hit.op === "Parameter")); }

  // A page that is too large for every layer has closed blocks, and knows all names.
  if (data.outline) {
    const started = performance.now();
    seek(data.names.at(-2).path);
    expect(`the search of ${data.names.length} names takes less than 100 ms`, performance.now() - started < 100);
    expect("the search finds a layer of a closed block", hits.some((hit) => hit.path === data.names.at(-2).path));
    jump(hits.findIndex((hit) => hit.path === data.names.at(-2).path));
    expect("a layer of a closed block is described", by("details").textContent.includes(data.names.at(-2).path) && selected === data.names.at(-2).item);
    turn("map");
    expect("the blocks of the map are links", by("side").querySelector("a.row-title") && groups.length);
    expect("a closed block has its name and facts", [...canvas.querySelectorAll(".node")].some((element) => /\d+ layers/.test(element.textContent)));
  }

  // Keys are announced, and lead into an open group.
  select(null);
  canvas.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowDown", bubbles: true }));
  expect("a key says where it led", selected && by("live").textContent === spoken(selected));
  const wide = groups.find((group) => opens(group) && group.items.length);
  if (wide) {
    expose(wide); setOpen(wide, true); redraw(); go(wide);
    canvas.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowDown", bubbles: true }));
    expect("Down enters an open group", selected?.up === wide);
    canvas.dispatchEvent(new KeyboardEvent("keydown", { key: "Backspace", bubbles: true }));
    expect("Backspace leaves it", selected === wide && by("live").textContent === spoken(wide));
    setOpen(wide, false); redraw();
  }
  key("?");
  expect("the question mark lists the keys", by("keys").open);
  by("keys").close();

  // An arrow leads to its other end, and back.
  const route = shownRoutes.find(({ arrows: [{ from, to }] }) => from.kind !== "port" && to.kind !== "port");
  if (route) {
    const [{ from, to }] = route.arrows.flatMap((arrow) => arrow.edges), [x, y] = route.points[0];
    select(null);
    jumpAlong(route, x * view.scale + view.x, y * view.scale + view.y);
    const first = selected;
    jumpAlong(route, 0, 0);
    expect("an arrow leads to its other end, and back", first === to && selected === from);
  }

  seek("/^.*$/");
  expect("the search takes expressions", hits.length);
  seek("op:Constant");
  expect("op:Constant finds constants", ![...holders].some(([path]) => stepsAt.get(path)?.op === "Const") || hits.length && hits.every(({ op }) => op === "Const"));
  seek("shared");
  expect("`shared` finds weights, the largest first", hits.every(({ op, text, bytes }, at) => !/ shared /.test(text) || op === "Const" && bytes > 1 && bytes <= (hits[at - 1]?.bytes ?? bytes)));
  expect("all layers of a finding are links", data.findings.every((finding) => !finding.layers?.length || findingItem(finding).querySelectorAll("details a").length === Math.min(PART, finding.layers.length)));
  seek("<1000GB");
  expect("the search takes sizes", hits.length || ![...entries].some((entry) => entry.bytes));
  const stored = data.map.flatMap((row) => row.weights)[0]?.element_type;
  if (stored && !data.outline) { seek(stored); expect(`the search finds ${stored}`, hits.length); }
  const whole = layers.find((node) => node.outputs.length === 1 && tensorBytes(...node.outputs[0]) && !data.outline);
  if (whole) { seek(whole.path); expect("hits have sizes", hits.find(({ item, constant }) => item === whole && !constant)?.note.endsWith(` · ${size(tensorBytes(...whole.outputs[0]))}`)); }
  seek("");

  // Each tenth of the constants, by name, with the path of its value.
  for (const held of [...holders.keys()].filter((path, at, all) => at % Math.ceil(all.length / 10) === 0 && stepsAt.has(path))) {
    seek(held);
    expect(`the search finds the weight ${held}`, hits.some((hit) => hit.path === held));
    jump(hits.findIndex((hit) => hit.path === held));
    const links = [...by("path").querySelectorAll("a")];
    expect(`the path of ${held} is shown`, !by("path").hidden && links.length && path.steps.some((step) => step.path === held));
    const lit = new Set([...path.boxes].map(standIn));
    expect("the rest is dimmed", [...canvas.querySelectorAll(".node:not(.off):not(.open)")].every((box) => lit.has(itemAt(box))));
    // A layer without a box opened its consumer, which answered for it.
    expect(`${held} is said to have no box`, !isHeld(held) || by("details").querySelector(".closed b")?.textContent === held);
    const consumers = layers.filter((node) => node.only !== SIDES.before && node.inputs.some((input) => input.held?.includes(held)));
    expect(`all uses of ${held} are named`, consumers.every((node) => path.steps.some((step) => step.path === node.path) || path.others.includes(node)));
    expect(`other uses of ${held} are links`, path.others.slice(0, 6).every((node) => links.some(({ title }) => title === node.path)));
    if (values.has(held)) expect(`the values of ${held} are shown`, by("details").querySelector(`.values[open]`)?.textContent.includes("minimum"));
    links.at(-1)?.click();
    expect("a step of the path is a link", selected !== null);
  }
  follow(null);
  // A consumer of a tensor lists it among its inputs, and the tensor lists its consumers.
  expect("wires can be followed both ways", layers.every((node) => node.inputs.every((input) => !input.from || !places.has(input.from) || node.only === "before" || users.get(input.from)?.has(node.path))));

  // What ran in another type is counted, and each block has the types of its layers, with a box or without.
  if (runs.length) {
    turn("run");
    const timed = data.runs[0].layers.find(({ us, path }) => us && places.has(path));
    if (timed) {
      seek(`>${timed.us}us ${timed.path}`);
      expect("the search finds layers by their time", hits[0]?.item === places.get(timed.path) && hits[0].note.includes(micros(timed.us)));
      expect("a kernel leads to its layers", by("side").querySelector(`table a[title="${CSS.escape(timed.path)}"]`));
    }
    const tables = [...by("side").querySelectorAll("table.times")].slice(0, 2).map((table) => [...table.querySelectorAll("tbody tr")].reduce((sum, { lastChild }) => sum + Number(lastChild.textContent.replaceAll(",", "")), 0));
    expect("blocks and kinds have all kernels", new Set(tables).size < 2 && (!tables.length || by("side").querySelector("h3").textContent.includes(plural(tables[0], "kernel"))));
    const fused = data.runs[0].layers.find(({ became, exec }) => became === "fused" && places.has(exec));
    if (fused) { select(places.get(fused.exec)); expect("a kernel lists the layers that it holds", by("details").querySelector(`div > a[title="${CSS.escape(fused.path)}"]`)); }
    turn("run");
    const counts = [...by("side").querySelectorAll("summary")].map(({ textContent }) => Number(textContent.match(/^([\d,]+) layers? ran in another type/)?.[1].replaceAll(",", "") ?? 0));
    const own = data.runs.flatMap(({ layers }) => layers).filter(({ path, type }) => type && places.has(path) && typeOf(places.get(path), null) !== type);
    expect("layers that ran in another type are counted", counts.reduce((sum, count) => sum + count, 0) === own.length);
    turn("map");
    for (const { path, type } of runs[0].layers.values()) if (type && places.get(path)?.group !== undefined) expect(`${path} ran in ${type}, as its block`, [...blockAt.values()].some((block) => block.members.some((node) => node.path === path) && computedIn(block).some(([known]) => known === type)));
  }

  if (data.before && allChanges()) await comparison();
  else if (data.before) { turn("changes"); expect("equal models have no changes", by("side").textContent.includes("No changes")); }
  async function comparison() {
    turn("changes");
    tell(null);
    const entries = [...by("changes").querySelectorAll("li")].filter((item) => !item.querySelector("ul"));
    const dead = entries.filter((item) => item.querySelector(".sign") && !item.querySelector("a"));
    expect(`every change is a link, but ${dead.length} are not`, !data.both || !dead.length);
    for (const entry of entries.filter((_, at) => at % Math.ceil(entries.length / 25) === 0)) {
      select(null);
      entry.querySelector("a")?.click();
      expect(`the change ${entry.textContent.slice(0, 40)} is shown`, !data.both || selected && spots.has(standIn(selected)));
    }
    turn("map");
    const rows = [...by("side").querySelectorAll("li.row.differing a")].map(({ title }) => title);
    expect("blocks with changes inside are listed as changed", data.outline || data.graphs[0].groups.every((group) => group.parent !== undefined || !groupAt.has(group.path) || !inside.get(groupAt.get(group.path))?.changed || rows.includes(group.name)));
    expect("bypassed blocks are listed as changed", data.changes.every(({ bypassed }) => !bypassed || rows.includes(bypassed)));
    expect("types of both models are in the legend", data.map_before.every(({ computed }) => Object.keys(computed).every((type) => by("legend").textContent.includes(type))));
    split(true);
    for (const [{ item }, element] of data.both ? [...panes.find(({ side }) => side === SIDES.before).shown] : []) {
      if (item.kind === "group" && !item.open && item.was?.computed) expect(`${item.path} computed as before`, element.textContent.includes(`computed ${item.was.computed[0][0]}`) || !element.querySelector("text.type"));
    }
    turn("changes");
    expect("the story has at most five lines", data.story.length > 0 && data.story.length <= 5);
    // A rewired input has both sources whole, and a red and a green arrow that stay, with both ends in view.
    for (const change of data.both ? data.changes.filter((change) => change.kind === "input" && layers.some((node) => node === boxOf(change) && endsOf(node).length)).slice(0, 3) : []) {
      const box = boxOf(change), entry = changeItem(change);
      expect(`${change.path}: both sources are whole`, [change.before, change.after].every((text) => entry.textContent.includes(brief(text ?? "none"))) && !entry.querySelector(".clamp"));
      for (const both of [true, false]) {
        split(both);
        entry.querySelector("a").click();
        const drawn = panes.filter((_, at) => both || !at).flatMap(({ lines }) => [...lines.values()]);
        for (const kind of ["gone", "new"].filter((kind) => box.before.some((edge) => edge.moved && (edge.only === SIDES.before) === (kind === "gone")))) {
          const own = drawn.filter((element) => element.classList.contains(kind));
          expect(`${change.path}: an arrow is ${kind}`, own.length && own.every((element) => !element.classList.contains("off") && getComputedStyle(element).stroke !== getComputedStyle(canvas.querySelector(".edge:not(.gone):not(.new)") ?? document.body).stroke));
        }
        const seen = [box, ...endsOf(box)].map((item) => spots.get(standIn(item)));
        expect(`${change.path}: both ends are in view`, seen.every(({ x, w }) => x * view.scale + view.x >= -1 && (x + w) * view.scale + view.x <= canvas.clientWidth + 1) || isPhone);
      }
    }
    expect("operations of both sides are at the same lengths", !data.both || openMacs.some(({ node }) => node.least) || allGroups.every(({ was, least }) => !was || was.least === least));
    const causes = data.changes.filter(({ follows }) => follows).slice(0, 3);
    expect("consequences are links", !data.both || causes.every((change) => changeItem(change).querySelectorAll("details a").length === change.consequences.length));
    expect("arrows to new layers are new", layers.every(({ only, before }) => !only || before.every(({ fate }) => fate === (only === SIDES.before ? "gone" : "new"))));
    tell(null);
    for (let at = 0; at < data.story.length; at++) {
      tell(null);
      by("story").querySelectorAll("a")[at].click();
      expect(`the line ${data.story[at].text} is shown`, !data.both || selected && told === at && by("changes").children.length);
    }
    tell(null);
    if (!data.both) return;
    split(true);
    const common = layers.find((node) => !node.only && spots.get(standIn(node))?.item === node) ?? layers.find((node) => !node.only);
    const offsets = () => panes.map(({ svg, shown }) => {
      const [, element] = [...shown].find(([{ item }]) => item === standIn(common)) ?? [], outer = svg.getBoundingClientRect(), inner = element?.querySelector(".body").getBoundingClientRect();
      return inner && [inner.x - outer.x, inner.y - outer.y, inner.width];
    });
    const level = (after) => {
      refresh();
      const [one, other] = offsets();
      expect(`both graphs are at the same place after ${after}`, one && other && one.every((number, at) => Math.abs(number - other[at]) < 1));
    };
    const pointer = (type, x, y) => canvas.dispatchEvent(new PointerEvent(type, { pointerId: 7, clientX: x, clientY: y, bubbles: true }));
    go(common);
    level("the start");
    pointer("pointerdown", 500, 400); pointer("pointermove", 540, 430); pointer("pointerup", 540, 430);
    level("a drag");
    wheel({ deltaY: -40, ctrlKey: true });
    level("a zoom");
    fit();
    level("Fit");
    expect("Fit fits both", isSplit && world.right * view.scale + view.x <= canvas.clientWidth + 1 || view.scale <= 0.02);
    split(false);
    const gone = layers.find((node) => node.only === "before");
    if (gone) { go(gone); expect("a removed layer is marked", canvas.querySelector(".node.selected.removed")); }
    turn("map");
  }

  select(null);
  panel(false);
  panel(true);
  expect("a closed panel opens again", shownTo(by("panel")));
  for (const { key } of tabs()) {
    turn(key);
    expect(`${TABS[key][0]} says something`, by("side").textContent.trim());
  }
  if (data.findings.some(({ help }) => help.some(([, command]) => command))) {
    turn("findings");
    expect("a fix can be copied", by("side").querySelector(".copy"));
  }
  if (data.findings.some(({ path }) => path && find(path))) {
    turn("findings");
    for (const item of by("side").querySelectorAll(".finding")) expect("a finding leads to its layer first", data.findings.some(({ path, producers = [] }) => item.querySelector("a")?.title === path || producers.length === 0 && !path));
  }
  const ending = layers.find(({ op, inputs, only }) => op === "Result" && !only && inputs[0]?.from);
  if (ending && !data.outline) {
    go(ending);
    expect("a Result says why", by("why").textContent.includes("Why"));
    const anchor = by("details").querySelector("a.link");
    anchor?.focus();
    anchor?.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowUp", bubbles: true }));
    expect("arrow keys work after a link", !anchor || !ending.before.length || selected !== ending);
  }
  // A search for a type found layers of another one whose weights have it.
  for (const type of data.outline ? [] : ["f16", "i64"]) {
    seek(type);
    const shown = hits.map(({ item, constant, note }) => item.kind === "group" && !constant ? "" : note);
    expect(`a search for ${type} finds its tensors, then blocks`, shown.every((note, at) => note ? note.includes(type) && shown[Math.max(0, at - 1)] : true));
  }
  seek("");
  expect("numbers keep their zeros", [300.2, 1000.5, 450, 0.0301437, 2.5e7, 5.8e-309, "inf"].map(shortNumber).join() === "300.2,1001,450,0.03014,25000000,5.8e-309,inf");
  lengths.set("n", 7);
  expect("expressions are Python", ["max(1, (n + 1) // 2) * 3", "-n // 2 + 2 * (n % 4)", "(n == 7) + (n >= 8)", "n >= 9 or n == 7 and n <= 3", "n ** 2", "?"].map(valueOf).join() === "12,2,1,0,NaN,NaN");
  lengths.delete("n");
  const length = openLengths.find((name) => 2 * lengths.get(name) <= (boundsOf.get(name).max ?? Infinity)), outer = data.before ? [] : data.graphs[0].groups.filter(({ parent }) => parent === undefined), macsOf = () => outer.reduce((sum, { macs = 0 }) => sum + macs, 0), before = macsOf();
  turn("map");
  if (length && by(`length-${length}`)) {
    by(`length-${length}`).value = 2 * lengths.get(length);
    by(`length-${length}`).dispatchEvent(new Event("change"));
    const side = by("side").getBoundingClientRect();
    expect("the fields of lengths are within the panel", [...document.querySelectorAll(".lengths > *")].every((field) => field.getBoundingClientRect().right <= side.right));
    expect("the graph stays after a length was set", canvas.querySelector(".node"));
    // Shapes stayed formulas, and a mask was as long as the tokens without the cache.
    const open = data.graphs[0].nodes.find((node) => node.op === "Parameter" && node.outputs[0][1].match(/\w+/g)?.includes(length)), shown = open && numeric(open.outputs[0].join(""));
    expect("shapes are numbers at the lengths that are set", !open || types(open) === shown && (data.before || by("side").textContent.includes(shown)) && /[[,]\d+[,\]]/.test(shown));
    if (open) { go(open); expect("the panel has the formula and its numbers", by("details").textContent.includes(open.outputs[0].join("")) && by("details").textContent.includes(`= ${shown.match(/\[.*/)[0]}`)); }
    expect("lengths fit each other", broken().length < (data.conditions?.length ?? 0) + 1 && broken().every((text) => by("side").textContent.includes(text) || broken().length > SHOWN_PATHS));
    expect("the operations follow the lengths", !countedLengths.includes(length) || macsOf() > before || outer.every(({ least }) => least));
    // Lengths that do not fit were set, or jumped back without a word.
    const { min, max } = boundsOf.get(length), set = lengths.get(length);
    for (const wrong of [min - 1, ...(max === undefined ? [] : [max + 1])]) {
      by(`length-${length}`).value = wrong;
      by(`length-${length}`).dispatchEvent(new Event("change"));
      expect(`${length} ${wrong} is refused`, lengths.get(length) === set && by(`length-${length}`).getAttribute("aria-invalid") && by("refused").textContent.startsWith(`${length} ${wrong} is not allowed: ${length}`));
    }
    renumber(false);
    expect("the graph stays when shapes are formulas", canvas.querySelector(".node"));
  }
  // A limit between the bounds was computed as if it was allowed.
  if (length) {
    const set = lengths.get(length), alone = `${length} >= ${set}`;
    (data.conditions ??= []).push(alone);
    boundsOf.set(length, { min: 0 });
    expect("a length that breaks a condition is refused", setLength(length, set - 1)?.startsWith(length) && lengths.get(length) === set && !setLength(length, set));
    data.conditions.pop();
  }
  // In either order of the two, a mask is as long as the tokens and the cache.
  if (lengths.has("past") && lengths.has("seq") && lengths.has("attention_mask_seq")) {
    const were = ["seq", "past"].map((name) => [name, lengths.get(name)]);
    for (const [name, value] of [["seq", 5], ["past", 7]]) setLength(name, value);
    expect("a mask follows a shorter cache", lengths.get("attention_mask_seq") === 12);
    for (const [name, value] of were) setLength(name, value);
  }
  // The name of a block as the page shows it is an address, too; another name is searched.
  const numbered = groups.find((group) => group.number !== undefined && endingIn(brief(group.name).slice(-4)) === group);
  if (numbered) {
    show(brief(numbered.name).slice(-4), false);
    expect("the end of a name is an address", selected === numbered);
    show("no such layer", false);
    expect("an unknown name is searched", !selected && by("search").value === "no such layer");
    by("search").value = "";
    search();
  }
  expect("a shape without room keeps its numbers", shorter("f32[max(batch, types), past + seq, 16]", 14) === "f32[…, …, 16]" && shorter("f32[?,16]", 14) === "f32[?,16]");
  // A stateful model did not say that it keeps anything.
  const variables = new Set(layers.filter(({ only }) => only !== SIDES.before).map(variableOf).filter((id) => id !== undefined));
  if (variables.size) {
    turn("map");
    expect("the map lists the states", by("side").textContent.includes(`States (${grouped(variables.size)})`) && [...variables].slice(0, SHOWN_ENDS).every((id) => by("side").textContent.includes(id)));
    seek("state");
    expect("`state` finds what reads and writes states", ["ReadValue", "Assign"].includes(hits[0].op));
    seek("");
  }
  expect("further places of a finding are links", data.findings.every((finding) => (finding.sites ?? []).every(([text, paths]) => { const item = findingItem(finding); return item.textContent.includes(text) && paths.every((path) => item.querySelector(`a[title="${CSS.escape(path)}"]`)); })));
  expect("producers are links", data.findings.every(({ producers = [] }) => producers.every(([, path]) => find(path))) || errors);
  const gathering = layers.find((node) => node.op === "Gather" && node.inputs.length === 3 && !node.only);
  if (gathering) { go(gathering); expect(`${gathering.path} has names for all inputs`, ["data: ", "indices: ", "axis: "].every((name) => by("details").textContent.includes(name))); }
  const folded = data.steps.find(({ path, loses, stored }) => isHeld(path) && loses !== undefined && stored !== undefined);
  if (folded) { go(find(folded.path), folded.path); expect(`${folded.path} says what it loses`, by("details").querySelector(".closed").textContent.includes(` → ${folded.type}: `)); }
  const words = changeSides({ kind: "attribute", before: "true", after: "false" }).map((line) => line.querySelector("b")?.textContent);
  expect("words differ as a whole", words.join() === ",true,false");
  // What differs between two blocks was one long line, and only on the first of them.
  expect("each difference of two blocks has its line", differLines(["a.0 and a.1 differ from each other: 1 and 0 Swish; 2 and 3 Add"]).map(({ textContent }) => textContent).join("|") === "a.0 and a.1 differ from each other: 1 and 0 Swish;|2 and 3 Add");
  const pair = [{ name: "m.a.0", number: 0, differs: ["a.0 and a.1 differ from each other: wiring"] }, { name: "m.a.1", number: 1, differs: [] }], family = { groups: pair };
  expect("both blocks say how they differ", saidBySibling({ ...pair[1], graph: family }).length === 1 && saidBySibling({ name: "m.b.1", graph: family }).length === 0);
  // An input was `44` in one place and `pixel_values` in another.
  for (const { item } of shownBoxes.filter(({ item }) => item.end)) {
    turn("outline");
    expect(`${item.end} has one name`, [spoken(item), wordOf(item), boxFacts(item)[0].textContent, by("outline").querySelector(`a[title="${CSS.escape(item.path)}"]`)?.textContent ?? item.end].every((text) => text.includes(item.end)));
  }
  const equal = changeSides({ kind: "constant", before: "f32[2]", after: "f32[2]", figures: "1 of 2 values, at most 0.5", worst: ["[1]: 0.5 → 1"] }).map(({ textContent }) => textContent);
  expect("a changed constant has its figures, its type once, and its worst values", equal.join() === "constant: 1 of 2 values, at most 0.5,f32[2],[1]: 0.5 → 1");
  turn("outline");
  expect("the list has the boxes", document.querySelectorAll("#outline li").length >= Math.min(shownBoxes.length, SHOWN_BOXES));
  turn("map");
  fit();
  expect("something can be read at Fit", view.scale >= READABLE || [...canvas.querySelectorAll(".node text.word")].some(({ textContent }) => textContent));
  expect("Fit fits", shownBoxes.every(({ x, w }) => x * view.scale + view.x > -1 && (x + w) * view.scale + view.x < canvas.clientWidth + 1) || view.scale <= 0.02);
  fit(false);
  const pictured = new DOMParser().parseFromString(decodeURIComponent((await save("svg")).split(",").slice(1).join(",")), "image/svg+xml");
  const drawn = active().reduce((sum, pane) => sum + shownBoxes.filter(({ item }) => belongs(item, pane)).length, 0);
  expect("the picture is SVG", !pictured.querySelector("parsererror"));
  expect("the picture and paper have every box", shownBoxes.length >= MOST_PICTURED || [pictured, sheet()].every((it) => it.querySelectorAll(".node").length === drawn));
  // The style of the drawing came after that of the page, so that paper showed the buttons and no graph.
  dispatchEvent(new Event("beforeprint"));
  expect("paper has the graph and the rules of paper", canvas.parentElement.querySelector(".sheet .node") && [...[...document.styleSheets].at(-1).cssRules].some((rule) => /** @type {any} */ (rule).media?.mediaText === "print"));
  dispatchEvent(new Event("afterprint"));
  expect("the picture has the legend and its fonts", [...by("legend").querySelectorAll("span:has(i[style])")].every(({ textContent }) => pictured.documentElement.textContent.includes(textContent)) && /svg\s*\{\s*font/.test(pictured.querySelector("style")?.textContent));
  expect("the picture is PNG", (await Promise.race([save("png"), settled(4000)]))?.startsWith("data:image/png"));

  // Without axe-core nothing is known of how a screen reader takes it.
  for (const dark of globalThis.axe ? [false, true] : []) {
    document.documentElement.classList.toggle("dark", dark);
    for (const node of [null, wanted]) {
      select(node);
      const { violations } = await axe.run(document, { resultTypes: ["violations"] });
      for (const { id, impact, nodes } of violations.filter(({ impact }) => ["serious", "critical"].includes(impact))) faults.push(`${dark ? "dark" : "light"} ${impact} ${id}: ${nodes[0].html.slice(0, 80)}`);
    }
  }
  document.body.dataset.figures = Object.entries(figures).map(([name, number]) => `${name}=${number}`).join(" ");
  document.body.dataset.checked = faults.join("; ") || "ok";
})().catch((error) => { document.body.dataset.checked = `${error.stack ?? error}`.replaceAll("\"", "'"); });
