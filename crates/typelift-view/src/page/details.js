// What is known of the selected layer or group.

const link = ({ class: kind = "", ...attributes }, hash, action, text) => make("a", { class: ("link " + kind).trim(), href: "#" + encodeURIComponent(hash), ...attributes, onclick: (event) => { event.preventDefault(); action(); } }, text);

function reach(path, at = path, text = path) {
  const node = find(path) ?? find(at);
  return node ? link({ title: path }, path, () => go(node, isHeld(path) ? path : null), text) : make("span", { title: path }, text);
}
// Adds the ids to links that look the same but lead to different layers, or the paths if layers of several bodies share an id.
function tellApart(root) {
  for (const same of together([...root.querySelectorAll("a.link[title]:not(.told)")], (it) => it.firstChild.textContent)) {
    const ids = new Map(same.map(({ title }) => [title, places.get(title)?.id ?? stepsAt.get(title)?.id])), isOwn = new Set(ids.values()).size === ids.size && ![...ids.values()].includes(undefined);
    if (ids.size > 1) for (const it of same) if (!it.children.length) it.append(make("span", { class: "faint" }, isOwn ? ` · id ${ids.get(it.title)}` : ` · ${brief(it.title)}`));
  }
}
const reachNode = (node, text = called(node.path, node.op)) => link({ title: node.path }, node.path, () => go(node), text);
function section(title, ...content) {
  return content.length ? [make("h3", {}, title), ...content] : [];
}
const listed = (title, items) => section(title, ...(items.length ? [make("ul", {}, ...items)] : []));
function closing(aside) {
  return make("button", { class: "close", "aria-label": "Close", onclick: () => { aside.hidden = true; select(null); canvas.focus(); } }, "×");
}
// Converts of integers that count or select do not lose values of weights or activations.
const lossClass = (isIndex) => isIndex ? "faint" : "warning";

// Lines about the run of a layer: its kernel with the layers fused into it, its weights, and the layers added before it.
function ranLines(node) {
  return data.runs.flatMap((run, at) => {
    const layer = runs[at].layers.get(node.path);
    if (!layer) return [];
    const execOf = ({ exec, path }) => exec ?? path, inKernel = layer.pale && !layer.exec ? [layer] : run.layers.filter((it) => execOf(it) === execOf(layer)), kernel = inKernel.find(({ us }) => us);
    const exec = layer.exec ? `: ${layer.exec}` : "", share = kernel ? `, ${percent(kernel.us / run.us)} of the run` : "";
    const text = kernel === layer ? layer.text + share + exec : layer.text + exec + (kernel ? ` · ${micros(kernel.us)}${share}` : "");
    const [named, placed] = [false, true].map((isPlaced) => inKernel.filter((it) => it !== layer && (it.became === "inside") === isPlaced));
    const held = [[named, "the kernel also holds "], [placed, "by their place, it also holds "]].filter(([all]) => all.length).map(([all, words]) => make("div", {}, words, ...all.flatMap(({ path }, at) => [at ? ", " : "", reach(path, path, called(path))])));
    const weights = (layer.weights ?? []).map(([stored, used]) => `weights stored as ${stored}, ${stored === used ? "kept" : used === "?" ? "arrive in a type that no name shows" : `arrive as ${used}`}`);
    const before = run.added.filter(({ from, to }) => from && to === node.path).map((added) => `${added.text} after ${last(added.from)}`);
    const parts = layer.parts ? [`in ${plural(layer.parts.length + 1, "kernel")}: ${layer.parts.join(", ")}, and the last one, which has the name`] : [];
    const lines = [which(at) + text, ...parts, ...weights, ...before].map((text) => make("div", {}, text));
    return [lines[0], ...held, ...lines.slice(1)];
  });
}
const where = (node) => [node.op, node.id !== null ? `id ${node.id}` : null, node.line ? `line ${node.line}` : null].filter(Boolean).join(" · ");

// An integer, or another number in at most four digits.
const shortNumber = (number) => typeof number === "string" || Number.isSafeInteger(number) ? String(number) : String(Number(number.toPrecision(4)));
const percent = (part) => part === 0 ? "0 %" : part < 0.001 ? "< 0.1 %" : `${(100 * part).toFixed(part < 0.1 ? 1 : 0)} %`;

// The values of a constant in rows, each with the index of its first value.
const ROW = 8;
function rowsOf(list, dims) {
  const indexOf = (at) => dims.map(Number).reduceRight(([rest, index], length) => [Math.floor(rest / length), [rest % length, ...index]], [at, []])[1];
  return Array.from({ length: Math.ceil(list.length / ROW) }, (_, row) => make("div", { class: "mono" }, make("span", { class: "faint" }, `[${indexOf(row * ROW).join(",")}] `), list.slice(row * ROW, (row + 1) * ROW).map(shortNumber).join(", ")));
}
/** The values of a constant: range, histogram, share of zeros, and losses in narrower types. */
function valuesOf(path, opened, title = "Values") {
  const known = values.get(path);
  if (!known) return [];
  const { text, bytes, count, sample, first, min, max, zeros, not_finite, bars, narrowed, within } = known, read = sample ?? count;
  const most = Math.max(...(bars ?? []), 1);
  const chart = bars && draw("svg", { class: "histogram", viewBox: `0 0 ${bars.length * 10} 50`, preserveAspectRatio: "none", role: "img", "aria-label": `Histogram from ${shortNumber(min)} to ${shortNumber(max)}` });
  bars?.forEach((bar, at) => {
    const column = draw("rect", { x: at * 10 + 1, y: 50 - 48 * bar / most, width: 8, height: 48 * bar / most });
    column.append(draw("title", {}, max - min + 1 === bars.length ? `${grouped(bar)} of ${Number(min) + at}` : `${grouped(bar)} from ${shortNumber(Number(min) + (max - min) * at / bars.length)}`));
    chart.append(column);
  });
  const loss = ({ type, infinite, zero, worst }) => {
    const parts = [infinite ? `${percent(infinite / read)} become infinite` : "", zero ? `${percent(zero / read)} become zero` : "", worst ? `worst relative error ${worst.toExponential(1)}` : ""].filter(Boolean);
    return make("div", { class: infinite ? "warning" : "" }, `as ${type}: ${parts.join(", ") || "exact"}`);
  };
  const facts = [
    make("div", { class: "mono" }, [text, plural(count, "value"), bytes ? size(bytes) : `computed from the parts below${within ? ` in f32, as OpenVINO's CPU plugin does; the file says ${within}` : ""}`].join(" · ")),
    make("div", {}, `${sample ? `of ${grouped(sample)} values, taken evenly: ` : ""}minimum ${shortNumber(min)}, maximum ${shortNumber(max)}, zeros ${percent(zeros / read)}`),
    ...(not_finite ? [make("div", { class: "warning" }, `${plural(not_finite, "value")} infinite or not a number`)] : []),
    ...(chart ? [chart, make("div", { class: "ends mono" }, make("span", {}, shortNumber(min)), make("span", {}, shortNumber(max)))] : []),
    make("div", { class: "mono faint" }, first.slice(0, ROW).map(shortNumber).join(", ") + (count > ROW ? ", …" : "")),
    ...(first.length > ROW ? [make("details", {}, make("summary", { class: "faint" }, `first ${grouped(first.length)} values by index`), ...rowsOf(first, lengthsOf(text)))] : []),
    ...(narrowed ?? []).map(loss),
  ];
  return [make("details", { class: "values", "data-path": path, ...(opened ? { open: "" } : {}) }, make("summary", {}, title), ...facts)];
}
// The values of an input that has no box: as the model computes with them, and then each stored part.
function storedValues({ held = [], parts = [] }, asked) {
  const shown = (path, isFirst) => asked && held.includes(asked) && values.has(asked) ? path === asked : isFirst && asked && held.includes(asked);
  if (!parts.length) { const path = held.find((path) => values.has(path)); return path ? valuesOf(path, shown(path, true), path === held[0] ? "Values" : "Values as stored") : []; }
  const stored = new Set(parts.map(([path]) => path)), whole = held.find((path) => values.has(path) && !stored.has(path));
  const few = ([path, part]) => values.has(path) ? [] : [make("div", { class: "faint" }, `${part}: `, make("span", { class: "mono" }, last(path)))];
  return [
    ...(whole ? valuesOf(whole, shown(whole, true), "Values") : []),
    ...parts.flatMap((it, at) => [...valuesOf(it[0], shown(it[0], !whole && at === 0), capital(it[1])), ...few(it)]),
  ];
}
const capital = (text) => text.includes("_") ? text : text[0].toUpperCase() + text.slice(1);

function inputItem(node, input, constant) {
  const [first] = input.held ?? [], producer = input.from && producerOf(node, input);
  const subject = producer ? reachNode(producer) : input.from ? reach(input.from, input.from, called(input.from)) : make("span", { class: "faint" }, input.of ? "computed of the shape of " : "constant");
  const inner = [...outerInputs].filter(([, outer]) => outer === input).map(([path]) => path);
  // The first input has no name of its own where the others have one.
  const at = node.inputs.indexOf(input), role = input.name ?? (node.inputs.length < 2 || at < 0 ? "" : at === 0 && node.inputs[1].name ? "data" : String(at));
  return make("li", {}, role ? `${role}: ` : "", subject, ...(first && !input.of ? [" ", ...pathLink(stepsAt.get(first), "path")] : []), ...(input.of ?? []).flatMap((path) => [reach(path, path, last(path)), " "]), " ", make("code", {}, input.text), ...inNumbers(input.text), ...inner.flatMap((path) => [" → ", reach(path, path, last(path))]), ...storedValues(input, constant));
}

// The shape at the lengths that are set.
const inNumbers = (text) => numeric(text) === text ? [] : [" ", make("code", { class: "faint", title: atLengths(openLengths).trim() }, `= ${numeric(text).match(/\[.*\]/)[0]}`)];
function outputItem(node, [type, shape], port) {
  const known = numeric(type + shape), bytes = tensorBytes(type, known.slice(type.length));
  const facts = [bytes !== null ? size(bytes) : null].filter(Boolean).join(" · ");
  return make("li", {}, make("button", { class: "link mono", title: "Why this type?", onclick: () => why(node, port) }, `${type}${shape}`), ...inNumbers(type + shape), " ", make("span", { class: "faint" }, facts), " ", ...pathLink(reasons.get(`${node.path}\n${node.id}\n${port}`), "path"), ...[...outerOutputs].filter(([, { around, output }]) => around === node && output === port).flatMap(([path]) => [" ← ", reach(path, path, last(path))]));
}
// The places outside of a body, and in the next iteration, to which a layer of the body leads.
function inBody(node) {
  const exit = outerOutputs.get(node.path), next = backEdges.filter(({ from }) => from === node).map(({ to }) => to), previous = backEdges.filter(({ to }) => to === node).map(({ from }) => from);
  const item = (text, other) => make("li", {}, text, reach(other.path, other.path, called(other.path)));
  const role = roleAt.get(node.path), items = [...(role ? [make("li", {}, role)] : []), ...(exit ? [item(`output ${exit.output} of `, exit.around)] : []), ...next.map((other) => item("in the next iteration ", other)), ...previous.map((other) => item("of the iteration before: ", other))];
  return items.length ? listed("Around the body", items) : [];
}

// The two keys that show what is upstream and downstream.
const reachButtons = () => make("p", { class: "buttons" }, make("button", { onclick: () => showReach(true), title: "All layers that lead to it (u)" }, "Upstream"), make("button", { onclick: () => showReach(false), title: "All layers that it leads to (d)" }, "Downstream"));

function details(item, constant = null) {
  const panel = by("details");
  panel.hidden = !item;
  document.body.classList.toggle("detailed", Boolean(item));
  if (!item) return;
  const name = nameOf(item);
  panel.replaceChildren(closing(panel), make("h2", {}, name, " ", copier(name, "name")), ...(item.end ? [make("div", { class: "faint mono" }, item.name)] : []), ...closedLayer(namesAt.get(constant)), ...foldedLayer(constant, item), ...trail(item), ...(item.kind === "layer" ? layerDetails(item, constant) : groupDetails(item)));
  panel.scrollTop = 0;
  // A Result has the type of what it returns.
  if (item.kind === "layer" && item.outputs.length) why(item, 0);
  else if (item.op === "Result" && item.inputs[0]) why({ path: item.inputs[0].from ?? item.inputs[0].held?.[0] }, null, item.inputs[0].text);
  else tellApart(panel);
  if (constant) panel.querySelector("details.values[open]")?.scrollIntoView({ block: "nearest" });
}
// A layer of a block whose inside is not on the page.
function closedLayer(layer) {
  if (!layer) return [];
  const command = `typelift show --around '${layer.path.replaceAll("'", "'\\''")}' ${data.file}`;
  return [make("div", { class: "closed" }, make("b", {}, layer.path), make("div", { class: "mono" }, `${layer.op} ${layer.types}`), make("div", { class: "faint" }, "is in this box, which has no room for its inside on the page:"), ...commandItem(command))];
}
// A layer without a box, which its consumer stands for.
function foldedLayer(path, item) {
  const step = isHeld(path) && stepsAt.get(path);
  return step ? [make("div", { class: "closed" }, make("b", {}, path), make("div", { class: "mono" }, `${step.op} ${step.type}${step.stored ?? ""}`), ...(step.loses === undefined ? [] : [make("div", { class: step.loses === "exact" ? "" : "warning" }, `${data.steps[step.before]?.type ?? "?"} → ${step.type}: ${step.loses === "exact" ? "keeps every value" : step.loses}`)]), make("div", {}, "used by ", ...layers.filter(({ inputs }) => inputs.some(({ held = [] }) => held.includes(path))).slice(0, 12).flatMap((user, at) => [at ? ", " : "", reachNode(user)])), make("div", { class: "faint" }, `It has no box. All below is of ${nameOf(item)}.`), ...pathLink(step, "path of its value"))] : [];
}
// The groups around an item, as links.
function trail(item) {
  const around = [];
  for (let up = item.up; up?.up; up = up.up) around.unshift(up);
  // Layers with bodies have names such as `prim::If/If_1`, and bodies those that only their layer makes unique.
  const links = around.flatMap((up, at) => [at ? " › " : "", up.kind === "graph" ? up.name : link({ title: up.path }, up.path, () => go(up), up.kind === "layer" ? called(up.path, up.op) : titleOf(up))]);
  return links.length ? [make("div", { class: "faint" }, "in ", ...links)] : [];
}
function layerDetails(node, constant) {
  const findings = (marks.get(node.path) || []).map((finding) => findingItem(finding));
  const changes = data.changes.filter((change) => boxOf(change) === node).map(changeItem);
  const direct = new Set(node.next.filter(({ only }) => only !== SIDES.before || node.only).map(({ to }) => to)), seen = new Set([...direct].map(({ path }) => path));
  const used = [...[...direct].map((user) => reachNode(user)), ...[...(users.get(node.path) ?? [])].filter((path) => !seen.has(path)).map((path) => make("span", {}, reach(path, path, called(path)), ...(places.get(path)?.inputs.some(({ from }) => from === node.path) ? [] : [make("span", { class: "faint" }, " by its shape")])))].map((user) => make("li", {}, user));
  const attributes = (node.attributes || []).flatMap(([name, value]) => [make("dt", {}, name), make("dd", { class: "mono clamp", title: value }, value)]);
  const was = node.was && types(node.was) !== types(node) ? section("Before", make("div", { class: "mono" }, types(node.was))) : [];
  return [
    make("div", { class: "faint" }, where(node) + (node.macs ? " · " + operations(node) + macsFormula(node) : "") + (node.only === SIDES.before ? " · only in the model before" : "")),
    ...(node.bodies.length ? [make("p", {}, make("button", { onclick: () => flip(node) }, node.open ? "Close" : `Open ${node.bodies.map((body) => body.name).join(" and ")}`))] : []),
    reachButtons(),
    ...(node.convert ? section("Converts", make("div", { class: node.convert[2] ? lossClass(node.convert[3]) : "" }, `${node.convert[0]} → ${node.convert[1]}${node.convert[3] ? " of indices" : ""}: ${node.convert[2] || (node.convert[0] === node.convert[1] ? "not needed, as the type stays" : "keeps every value")}`), ...(node.convert[4] ? [make("div", { class: "faint" }, node.convert[4])] : [])) : []),
    ...listed("Findings", findings), ...listed("Changed", changes), ...was,
    ...(attributes.length ? section("Attributes", make("dl", {}, ...attributes)) : []),
    ...listed("Inputs", [...node.inputs, outerInputs.get(node.path)].filter(Boolean).map((input) => inputItem(node, input, constant))), ...listed("Outputs", node.outputs.map((output, port) => outputItem(node, output, port))), ...inBody(node),
    ...listed("Lengths that fit", (node.limits ?? []).map(([limit, others]) => make("li", {}, limit, ...others.flatMap((path) => [" ", reach(path, path, called(path))])))),
    ...listed("State", layers.filter((other) => other !== node && variableOf(node) !== undefined && variableOf(other) === variableOf(node)).map((other) => make("li", {}, other.op === "Assign" ? "written by " : "read by ", reachNode(other)))),
    ...section("As a plugin ran it", ...ranLines(node)),
    make("div", { id: "why" }), ...listed("Used by", used),
    ...section("Tensor names", ...(node.tensors ?? []).map((name) => make("div", { class: "mono" }, name, " ", copier(name, "tensor name")))),
  ];
}
// The facts on a group, as lines.
function groupFacts(group) {
  const weights = (group.weights ?? []).map(([element_type, bytes]) => ({ element_type, bytes })), sum = weights.reduce((sum, { bytes }) => sum + bytes, 0);
  const computed = computedIn(group).map(([type, count]) => `${type} ${grouped(count)}`).join(", ");
  return [
    make("div", { class: "faint" }, [plural(group.layers, "layer"), group.parameters ? `${grouped(group.parameters)} parameters` : null, group.macs ? operations(group) + (openGroups.some((it) => it === group || it.was === group) ? atLengths(countedLengths) : "") : null].filter(Boolean).join(" · ")),
    ...(weights.length ? [precisions(weights), make("div", { class: "mono" }, `stored ${size(sum)}: ${weights.map((weight) => `${weight.element_type} ${size(weight.bytes)}`).join(", ")}`)] : []),
    ...(computed ? [make("div", { class: "mono" }, computedWord + computed)] : []),
    ...differLines(group.differs ?? [], group.path),
  ];
}
function groupDetails(group) {
  const stem = group.name.replace(/\d+$/, ""), around = group.up.items.filter((item) => item.kind === "group" && item.number !== undefined && item.name.startsWith(stem)).sort((a, b) => a.number - b.number), at = around.indexOf(group);
  const beside = [[at - 1, "← "], [at + 1, "→ "]].filter(([at]) => around[at]).map(([at, sign]) => link({ title: around[at].path }, around[at].path, () => go(around[at]), sign + groupName(around[at])));
  const changes = data.changes.filter((change) => { if (change.bypassed === group.path) return true; for (let up = boxOf(change); up; up = up.up) if (up === group) return true; return false; });
  const closed = data.names.filter((name) => name.item === group).map((name) => make("li", {}, reach(name.path), " ", make("code", { class: "faint" }, cut(`${name.op} ${name.types}`, 40))));
  const inner = data.outline ? closed : group.items.map((item) => make("li", {}, link({ title: item.path }, item.path, () => go(item), item.kind === "group" ? groupName(item) : `${item.op} ${labelOf(item)}`), " ", make("code", { class: "faint" }, item.kind === "group" ? plural(item.layers, "layer") : cut(types(item), 40))));
  return [
    ...groupFacts(group), ...differLines(saidBySibling(group), group.path), ...ranGroup(group), make("p", { class: "buttons" }, ...(opens(group) ? [make("button", { onclick: () => flip(group) }, group.open ? "Close" : "Open")] : []), ...(at >= 0 ? beside : [])),
    reachButtons(), ...listed("Changed", changes.slice(0, 40).map(changeItem)), ...listed("Inside", inner.slice(0, 400)),
  ];
}

// The source of a tensor's type, and the steps from the source to the tensor.
const MOST_STEPS = 12, MOST_SOURCES = 6;
function why(node, port, text = "") {
  const start = port === null ? data.steps.find(({ path, type }) => path === node.path && text.includes(type)) : reasons.get(`${node.path}\n${node.id}\n${port}`), seen = new Set(), steps = [];
  const pending = start ? [start] : [];
  for (let step; (step = pending.shift());) {
    if (seen.has(step)) continue;
    seen.add(step);
    steps.push(step);
    pending.push(...step.from.map(([, from]) => data.steps[from]));
  }
  const link = (step) => reach(step.path, step.path, called(step.path, step.op));
  // A Convert has a type of its own so that it agrees with the other input of its consumer.
  const partner = (step) => {
    const isOther = (it) => it !== step && it.type === step.type && it.loses === undefined;
    const ends = step.loses !== undefined && !step.from.length ? data.steps.map((user) => [user, user.from.map(([, from]) => data.steps[from])]).find(([, from]) => from.includes(step) && from.some(isOther)) : null;
    return ends ? [make("div", { class: "faint" }, `so that it has the type of `, link(ends[1].find(isOther)), ", the other input of ", link(ends[0]))] : [];
  };
  const item = (step) => make("li", {}, make("code", {}, step.type + " "), link(step), make("div", { class: "faint" }, step.rule), ...partner(step));
  const list = (steps, most) => make("ol", { class: "why" }, ...steps.slice(0, most).map(item), ...(steps.length > most ? [make("li", {}, make("details", {}, make("summary", { class: "faint" }, `and ${steps.length - most} more`), ...steps.slice(most, most + 300).map(item)))] : []));
  // Sources of the asked type come first, and a number gives way to a weight. The terminal has the same order.
  const rank = ({ op, type, stored = "" }) => (type === start.type ? 0 : 2) + (op === "Const" && /^\[(1(,1)*)?\]$/.test(stored) ? 1 : 0);
  const sources = steps.filter((step) => !step.from.length && step !== start).sort((a, b) => rank(a) - rank(b));
  const rest = steps.filter((step) => step.from.length && step !== start), first = sources.slice(0, 1), others = sources.slice(1);
  const more = [...(others.length ? section("Decided by", list(others, MOST_SOURCES)) : []), ...(rest.length ? section("By way of", list(rest, MOST_STEPS)) : [])];
  // The nearest cause is in view; what else decides is folded.
  by("why")?.replaceChildren(...(start ? section(`Why ${start.type}`, list([start, ...first], 2), ...(more.length ? [make("details", {}, make("summary", { class: "faint" }, plural(others.length + rest.length, "more step")), ...more)] : [])) : []));
  tellApart(by("details"));
}
