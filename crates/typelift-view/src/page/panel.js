// The panel: the precision map, findings, changes, Converts, and a list of boxes.

const sign = (kind) => ({ added: "+", removed: "−" })[kind] ?? "~", signClass = (kind) => ({ added: "added", removed: "removed" })[kind] ?? "changed";
function changeLink(change, text, kind) {
  const box = boxOf(change);
  return box ? link({ title: change.path, class: kind }, change.path, () => go(box, box.path === change.path ? null : change.path, endsOf(box)), text) : make("span", { title: change.path }, text);
}
function changeItem(change) {
  const { kind, path, follows, consequences = [] } = change, more = follows - consequences.length;
  const following = () => [make("summary", { class: "faint" }, `and ${grouped(follows)} that ${follows === 1 ? "follows" : "follow"}`), make("ul", {}, ...consequences.map(changeItem), ...(more ? [make("li", { class: "faint" }, `and ${grouped(more)} more`)] : []))];
  return make("li", {}, make("span", { class: "sign " + signClass(kind) }, sign(kind)), changeLink(change, called(path)), ...changeSides(change), ...(follows ? [make("details", {}, ...following())] : []));
}
// What differs, with both sides whole if there are two. What both have in common is faint.
function changeSides({ kind, subject = "", before, after, figures, worst = [] }) {
  if (["added", "removed"].includes(kind)) return [make("div", { class: "faint mono clamp", title: before || after }, before || after)];
  const what = subject.startsWith(kind) ? subject : [kind, subject].filter(Boolean).join(" "), [one, other] = [brief(before ?? "none"), brief(after ?? "none")];
  let start = 0, end = 0;
  while (start < Math.min(one.length, other.length) && one[start] === other[start]) start++;
  while (end < Math.min(one.length, other.length) - start && one.at(-1 - end) === other.at(-1 - end)) end++;
  // Words differ as a whole: `true` and `false`.
  while (start && /\w/.test(one[start - 1]) && /\w/.test((one[start] ?? "") + (other[start] ?? ""))) start--;
  while (end && /\w/.test(one.at(-end)) && /\w/.test((one.at(-1 - end) ?? "") + (other.at(-1 - end) ?? ""))) end--;
  const line = (text, kind) => make("div", { class: "mono side-" + kind }, make("span", { class: "sign " + kind }, sign(kind)), make("span", { class: "faint" }, text.slice(0, start)), make("b", {}, text.slice(start, text.length - end)), make("span", { class: "faint" }, text.slice(text.length - end)));
  return [make("div", { class: "faint" }, what + (figures ? `: ${figures}` : "")), ...(one === other ? [make("div", { class: "mono" }, one)] : [line(one, "removed"), line(other, "added")]), ...details3(worst, "mono")];
}
const more = (count) => count > 0 ? [make("div", { class: "faint" }, `and ${grouped(count)} more, which typelift prints`)] : [];

// The first items of a long list, and a button for the next ones.
const PART = 200;
function inParts(items, element) {
  const rest = items.slice(PART), next = make("button", { onclick: () => { next.replaceWith(...inParts(rest, element)); tellApart(by("side")); } }, `${grouped(Math.min(PART, rest.length))} more of ${grouped(rest.length)}`);
  return [...items.slice(0, PART).map(element), ...(rest.length ? [next] : [])];
}

// Items with the same key, in the order of the first of each.
function together(items, key) {
  const same = new Map();
  for (const item of items) {
    if (!same.has(key(item))) same.set(key(item), []);
    same.get(key(item)).push(item);
  }
  return [...same.values()];
}

const allChanges = () => data.changes.length + data.more_changes;
// The story first: each line selects its changes. Then every change, equal ones together.
let told = null;
function changeList() {
  const line = (it, at) => make("li", {}, link({ class: "told", "aria-current": String(told === at) }, "story:" + at, () => tell(at), it.text));
  const story = data.story.length ? [make("ol", { id: "story" }, ...data.story.map(line))] : [];
  const wanted = told === null ? data.changes : data.story[told].changes.map((at) => data.changes[at]), kept = data.story[told]?.kept ?? [];
  const items = together(wanted, (change) => change.group).flatMap((same) => {
    if (same.length < 3) return same.map(changeItem);
    const { what, places } = data.groups[same[0].group], kind = same[0].kind;
    return [make("li", {}, make("span", { class: "sign " + signClass(kind) }, sign(kind)), changeLink(same[0], what, "told"), make("span", { class: "faint" }, ` ${places}`), make("details", {}, make("summary", {}, plural(same.length, "layer")), make("ul", {}, ...same.map(changeItem))))];
  });
  if (!allChanges()) return [make("p", {}, `No changes since ${last(data.before)}.`)];
  const head = told === null ? `${plural(allChanges(), "change")} since ${last(data.before)}` : kept.length ? `${plural(kept.length, "constant")} of this line` : `${plural(wanted.length, "change")} of this line`;
  return [...story, make("p", {}, head, ...(told === null ? [] : [" ", link({}, "", () => tell(null), "show all")])), make("ul", { id: "changes" }, ...items, ...kept.map((path) => make("li", {}, reach(path, path, called(path))))), ...(told === null ? more(data.more_changes) : [])];
}
// Shows the changes of a line of the story, and the first of them in the graph.
function tell(at) {
  told = at;
  const { changes = [], kept = [] } = data.story[at] ?? {}, paths = [...changes.map((number) => data.changes[number].path), ...kept];
  const boxes = [...changes.map((number) => boxOf(data.changes[number])), ...kept.map(find)].filter(Boolean);
  side();
  if (!boxes.length) return select(null);
  const whole = boxes[0].up.kind === "group" && boxes[0].up.only ? outermost(boxes[0]) : boxes[0];
  const ends = boxes.length < 4 ? boxes.flatMap(endsOf) : [];
  go(whole, isHeld(paths[0]) ? paths[0] : null, ends);
  bright = new Set([...boxes, ...ends]);
  refresh();
}
const outermost = (item) => { let found = item; for (let up = item.up; up && up.kind !== "graph"; up = up.up) found = up; return found; };

function commandItem(command) {
  return [make("span", { class: "command" }, make("code", {}, command), copier(command, "command"))];
}
function copier(text, what) {
  const button = make("button", { class: "copy", title: `Copy the ${what}`, "aria-label": `Copy the ${what}`, onclick: () => copied(button, text) }, "Copy");
  return button;
}
function copied(button, command) {
  const done = () => { button.textContent = "Copied"; setTimeout(() => { button.textContent = "Copy"; }, 1500); };
  const select = () => { const text = make("textarea", {}, command); document.body.append(text); text.select(); document.execCommand("copy"); text.remove(); done(); };
  if (navigator.clipboard) navigator.clipboard.writeText(command).then(done, select); else select();
}
// A finding with its layers, producers and fixes. A command that fixes it can be copied.
function findingItem(finding, ...where) {
  const { severity, code, message, help, producers = [], sites = [], notes = [], layers: all = [] } = finding;
  const helpItem = ([words, command]) => make("div", { class: "help" }, `help: ${words}`, ...(command ? [" ", ...commandItem(command)] : []));
  return make("li", { class: "finding" }, make("b", { class: severity }, `${severity}[${code}] `), message, ...where,
    ...producers.map(([text, path]) => make("div", { class: "producer" }, text.replace(/ from .*/, " from "), reach(path, path, text.replace(/.* from /, "")))),
    ...sites.map(([text, paths]) => make("div", { class: "producer" }, ...paths.flatMap((path, at) => [at ? " → " : "", reach(path, path, called(path))]), `: ${text}`)),
    ...(all.length ? [make("details", {}, make("summary", {}, `${plural(all.length, "layer")} require it`), ...inParts(all, (path) => make("div", {}, reach(path, path, called(path)))))] : notes.map((text) => make("div", { class: "faint" }, text))), ...help.map(helpItem));
}
function findingList() {
  const order = ["error", "warning", "note"];
  const findings = [...data.findings].sort((a, b) => order.indexOf(a.severity) - order.indexOf(b.severity));
  const items = together(findings, (finding) => JSON.stringify([finding.severity, finding.code, finding.message, finding.producers, finding.sites, finding.notes, finding.help])).map((same) => {
    const where = same.filter((finding) => finding.path).map((finding) => make("div", {}, "in ", reach(finding.path, finding.path, brief(finding.path)))), rest = where.splice(3);
    const item = findingItem(same[0], ...where, ...(rest.length ? [make("details", {}, make("summary", {}, plural(rest.length, "more layer")), ...rest)] : []));
    item.firstChild.after(...(same.length > 1 ? [`${same.length} × `] : []));
    return item;
  });
  return [make("ul", {}, ...items), ...more(data.more_findings)];
}

function precisions(weights) {
  const parts = weights.map((weight) => make("i", { style: `flex:${Math.max(weight.bytes, 1)};background:${color(weight.element_type)}`, title: `${weight.element_type} ${size(weight.bytes)}` }));
  return make("div", { class: "bar", role: "img", "aria-label": weights.map((weight) => `${weight.element_type} ${size(weight.bytes)}`).join(", ") }, ...parts);
}

// With a run, types are those of the run, and differences between blocks those of the model.
const computedWord = runs.length ? "ran in " : "computed ", ofModel = (text) => runs.length ? text.replace(/(^|; )computes /, "$1in the model computes ") : text;
const SHOWN_PATHS = 3;
// The types in which the blocks of a row computed, as a plugin ran them or as inferred.
function computedOf(row) {
  const blocks = runs.length ? row.parts.map((path) => blockAt.get(path)).filter((block) => block?.members?.length) : [], counts = {};
  if (!blocks.length) return row.computed;
  for (const [type, count] of blocks.flatMap((block) => computedIn(block))) counts[type] = (counts[type] ?? 0) + count;
  return counts;
}
const computes = (row) => Object.entries(computedOf(row)).map(([type, count]) => `${type} ${grouped(count)}`).join(", ");
const stores = (row) => row.weights.filter(({ bytes }) => bytes).map((weight) => `${weight.element_type} ${size(weight.bytes)}`).join(", ");
// The types in which a block stores and computes.
// Constants that other blocks use too are in the last rows.
function sharedIn(row) {
  const whole = row.parts.reduce((sum, path) => sum + (blockAt.get(path)?.weights ?? []).reduce((sum, [, bytes]) => sum + bytes, 0), 0), own = row.weights.reduce((sum, { bytes }) => sum + bytes, 0);
  return whole > own && own > 0 ? `, and ${size(whole - own)} that other parts use too` : "";
}
const facts = (row) => [...(row.weights.some(({ bytes }) => bytes) ? [precisions(row.weights), make("div", { class: "mono" }, "stored " + stores(row) + (row.parts.length > 1 || data.before ? "" : sharedIn(row)))] : []), ...(computes(row) ? [make("div", { class: "mono" }, computedWord + computes(row))] : [])];
const rowName = (row) => (row.path ? row.path + "/" : "") + row.name;
// Shows the block, or the first layer of a row without one.
function mapTitle(row) {
  const block = row.parts.map((path) => groupAt.get(path)).find(Boolean) ?? (row.at && find(row.at)), text = brief(rowName(row));
  return block ? link({ title: rowName(row), class: "row-title" }, block.path, () => { go(block); canvas.focus(); }, text) : make("b", { title: rowName(row) }, text);
}
// The layers of the blocks of a row, as their boxes count them. The last rows have constants that several blocks use.
function layersOf(row) {
  const blocks = row.parts.map((path) => blockAt.get(path));
  return blocks.length && blocks.every(Boolean) ? plural(blocks.reduce((sum, block) => sum + block.layers, 0), "layer") : row.name.startsWith("shared") ? "constants" : plural(row.layers, "layer");
}
const details3 = (lines, kind) => [...lines.slice(0, SHOWN_PATHS).map((text) => make("div", { class: kind }, text)), ...(lines.length > SHOWN_PATHS ? [make("details", {}, make("summary", { class: kind }, `and ${lines.length - SHOWN_PATHS} more`), ...lines.slice(SHOWN_PATHS).map((text) => make("div", { class: kind }, text)))] : [])];

// Stages that all differ from each other are no warning.
const differsClass = (text) => /^[^;]* differ from each other: /.test(text) ? "faint" : "differs";
// The differences from siblings in lines. Those of siblings that all differ from each other are in one text.
const differLines = (texts, block = "") => details3(texts.flatMap((text) => differsClass(text) === "faint" ? text.split(/(?<=;) /) : [text]).map((text) => withLinks(ofModel(text), block)), texts.length ? differsClass(texts[0]) : "");
// A text with links to the layers that it names, by their path or by what follows the name of their block.
const withLinks = (text, block) => make("span", {}, ...text.split("`").map((part, at) => {
  const path = at % 2 ? [part, `${block}.${part}`, `${block}/${part}`].find((path) => find(path)) : undefined;
  return path === undefined ? at % 2 ? `\`${part}\`` : part : reach(path, path, part);
}));
// The same for a block whose sibling says it.
function saidBySibling(group) {
  const [name, stem] = group.name.match(/([^./]*)[./ ]\d+$/) ?? [], others = name ? group.graph.groups.filter((other) => other !== group && other.parent === group.parent && other.number !== undefined) : [];
  return others.flatMap(({ differs = [] }) => differs).filter((text) => { const [all] = text.split(" differ from each other: "); return all !== text && (all.split(" and ").includes(name) || new RegExp(`^the \\d+ blocks of ${stem}$`).test(all)); });
}
// The modules of a graph without blocks, as links.
function modulesOf(row) {
  const block = row.name === "all layers" && blockAt.get(row.parts[0]), inner = block ? groups.filter(({ graph, up, parent }) => graph === block.graph && up === graph && parent !== undefined) : [];
  return inner.length ? [make("ul", {}, ...inner.map((group) => make("li", {}, link({ title: group.path }, group.path, () => go(group), groupName(group)), make("span", { class: "faint" }, ` ${plural(group.layers, "layer")}`))))] : [];
}
function mapRow(row) {
  const index = row.lossy.filter(({ indices }) => indices), ways = row.paths.filter((path) => path.types.length > 1).map((path) => `${grouped(path.constants)} × ${path.types.join(" → ")} → ${path.operation}`);
  const notes = [
    ...details3(ways, "mono"),
    ...row.lossy.filter(({ count, indices }) => count > indices).map(({ count, indices, from, to, loses }) => make("div", { class: "warning" }, `${plural(count - indices, "Convert")} ${from} → ${to}: ${loses.join(", ")}`)),
    ...(index.length ? [make("div", { class: "faint" }, `${plural(index.reduce((sum, { indices }) => sum + indices, 0), "Convert")} of indices: ${index.map(({ from, to, loses }) => `${from} → ${to} ${loses.join(", ")}`).join("; ")}`)] : []),
    ...(row.marks ? [make("div", {}, `${plural(row.marks, "layer")} marked to keep precision`)] : []),
    ...(row.errors ? [make("div", { class: "error" }, plural(row.errors, "error"))] : []),
    ...(row.warnings ? [make("div", { class: "warning" }, plural(row.warnings, "warning"))] : []),
    ...differLines(row.differs, row.parts[0]),
    ...modulesOf(row),
  ];
  return make("li", { class: "row" + (row.differs.length && differsClass(row.differs[0]) !== "faint" ? " differing" : "") }, mapTitle(row), make("span", { class: "faint" }, ` ${row.blocks > 1 ? `${row.blocks} blocks, ` : ""}${layersOf(row)}`), ...facts(row), ...notes);
}

// The blocks of two models, side by side. Runs of equal blocks are compared block by block.
function mapPairs() {
  const single = (row) => row.parts.length > 1 ? row.parts.map((path) => [path, row]) : [[rowName(row), row]];
  const before = new Map(data.map_before.flatMap(single)), after = new Map(data.map.flatMap(single));
  const facts1 = (row) => `${Math.round(row.layers / row.blocks)} ${row.weights.map((weight) => `${weight.element_type} ${Math.round(weight.bytes / row.blocks)}`)} ${Object.entries(row.computed).map(([type, count]) => `${type} ${Math.round(count / row.blocks)}`)}`;
  const names = [...new Set([...before.keys(), ...after.keys()])], stored = ({ layers, weights, computed, differs }) => JSON.stringify([layers, weights, computed, differs]), changesIn = (name) => inside.get(groupAt.get(name))?.changed ?? 0;
  const isAlike = ({ name, old, row }) => {
    const block = blockAt.get(name);
    if (changesIn(name)) return false;
    if (data.both && block) return !block.only && (!block.was || stored(block) === stored(block.was));
    return Boolean(old && row && facts1(old) === facts1(row));
  };
  const pairs = names.map((name) => ({ name, old: before.get(name), row: after.get(name) })).map((pair) => ({ ...pair, same: !allChanges() || isAlike(pair) }));
  const factsOf = (row, name, label) => {
    const block = blockAt.get(name);
    if (data.both && block) return groupFacts(label === "before" && block.was ? block.was : block);
    return [make("div", { class: "faint" }, plural(Math.round(row.layers / row.blocks), "layer")), ...facts(row.blocks > 1 ? each(row) : row)];
  };
  const part = (row, name, label) => make("div", { role: "group", "aria-label": label }, ...(row ? factsOf(row, name, label) : [make("div", { class: "faint" }, "not there")]));
  const item = ({ name, old, row, same }) => make("li", { class: "row" + (same ? "" : " differing") }, mapTitle({ ...(row ?? old), parts: [name], name, path: "" }), ...(changesIn(name) ? [make("span", { class: "faint" }, " " + plural(changesIn(name), "change"))] : []), ...(data.changes.some(({ bypassed }) => bypassed === name) ? [make("div", { class: "differs" }, "bypassed")] : []), make("div", { class: "pair" }, part(old, name, "before"), part(row, name, "after")));
  const changed = pairs.filter(({ same }) => !same), equal = pairs.filter(({ same }) => same);
  return [
    ...lengthFields(),
    make("div", { class: "pair" }, make("b", {}, last(data.before)), make("b", {}, last(data.file))),
    make("ul", {}, ...changed.map(item)),
    make("details", changed.length ? {} : { open: "" }, make("summary", {}, `${plural(equal.length, "part")} without changes`), make("ul", {}, ...equal.map(item))),
    ...metadata(),
  ];
}
// One block of a run of equal ones.
const each = (row) => ({ ...row, weights: row.weights.map((weight) => ({ ...weight, bytes: Math.round(weight.bytes / row.blocks) })), computed: Object.fromEntries(Object.entries(row.computed).map(([type, count]) => [type, Math.round(count / row.blocks)])) });

function mapList() {
  if (data.before) return mapPairs();
  const stored = new Map();
  for (const weight of data.map.flatMap((row) => row.weights)) stored.set(weight.element_type, (stored.get(weight.element_type) ?? 0) + weight.bytes);
  const all = [...stored].map(([element_type, bytes]) => ({ element_type, bytes })).sort((a, b) => b.bytes - a.bytes);
  const sum = all.reduce((sum, weight) => sum + weight.bytes, 0);
  const head = all.length ? [make("div", {}, `${size(sum)} of weights: ${all.map((weight) => `${weight.element_type} ${size(weight.bytes)}`).join(", ")}`), precisions(all)] : [make("p", { class: "faint" }, "No weights.")];
  // What all outermost blocks need.
  const outer = data.graphs[0].groups.filter((group) => group.parent === undefined && !group.only), all1 = (blocks, key) => blocks.reduce((sum, group) => sum + (group[key] ?? 0), 0), macs = all1(outer, "macs");
  // The MACs of a body are those of the layer around it.
  const parameters = all1(data.graphs.flatMap(({ groups }) => groups).filter((group) => group.parent === undefined && !group.only), "parameters");
  const counts = [plural(data.layers, "layer"), parameters ? `${grouped(parameters)} parameters` : "", macs ? operations({ macs, least: outer.some(({ least }) => least) }) : ""];
  return [...(data.outline ? [make("p", {}, data.outline)] : []), make("div", {}, counts.filter(Boolean).join(" · ")), ...lengthFields(), ...(counts[1] ? [make("div", { class: "faint" }, "parameters are the values of float and quantized weights, and of integers in products; single numbers, scales and zero points are not counted")] : []), ...modelEnds("Inputs", "Parameter"), ...modelEnds("Outputs", "Result"), ...states(), ...ranking(outer, macs), make("h3", {}, "Weights"), ...head, ...(common ? [make("div", { class: "faint" }, `names below leave out ${common}`)] : []), make("ul", {}, ...data.map.map(mapRow)), ...metadata()];
}

const SHOWN_LENGTHS = 8;
function lengthFields() {
  if (!openLengths.length) return [];
  const fields = openLengths.map(lengthField), rest = fields.splice(SHOWN_LENGTHS);
  const flip = make("button", { onclick: () => renumber(!isNumeric) }, isNumeric ? "shapes as formulas" : "shapes as numbers");
  // Lengths inside that follow from values, such as the size of an image that the model scales, are known if those of the inputs are.
  const unknown = data.outline ? 0 : openMacs.filter(({ node }) => node.least && !node.only).length, inputs = data.graphs[0].nodes.filter((node) => node.op === "Parameter" && !node.only && types(node) !== numeric(types(node)));
  const command = `typelift convert ${data.file} ${inputs.map((node) => `--set-shape '${nameOf(node)}=${numeric(types(node)).replace(/^[^[]*/, "")}'`).join(" ")} -o set.xml`;
  const note = unknown && inputs.length ? [make("div", { class: "faint" }, `${plural(unknown, "layer")} with MACs ${unknown === 1 ? "has" : "have"} lengths that follow from values inside of the model, and count at least. A model of these lengths may know them: `, ...commandItem(command))] : [];
  return [make("div", { class: "lengths" }, "at", ...fields, ...(rest.length ? [make("details", {}, make("summary", {}, plural(rest.length, "more length")), ...rest)] : []), flip), ...(refused ? [make("div", { class: "error", id: "refused" }, `${refused.name} ${refused.value || "without a number"} is not allowed: ${refused.must}. The numbers are those at ${refused.name} ${lengths.get(refused.name)}.`)] : []), ...details3(broken().map((text) => `these lengths do not fit: ${text}`), "warning"), ...note];
}
/** The length that was typed and is not allowed. @type {{name: string, value: string, must: string} | null} */
let refused = null;
// A length that can be set. The numbers of operations and shapes follow.
function lengthField(name) {
  const also = [...lengths.keys()].filter((other) => other !== name && leaderOf(other) === name), isRefused = refused?.name === name;
  const field = make("input", { type: "number", title: also.length ? `also for ${also.slice(0, 12).join(", ")}${also.length > 12 ? `, and ${also.length - 12} more` : ""}` : null, id: `length-${name}`, ...boundsOf.get(name), required: "", value: isRefused ? refused.value : lengths.get(name), ...(isRefused ? { "aria-invalid": "true", "aria-describedby": "refused" } : {}) });
  field.addEventListener("change", () => {
    const isOpen = by("ranking")?.open, must = setLength(name, field.valueAsNumber);
    refused = must ? { name, value: field.value, must } : null;
    countMacs();
    renumber(isNumeric || !must);
    if (by("ranking")) by("ranking").open = isOpen;
    by(`length-${name}`).focus();
  });
  return make("label", {}, `${name} `, field);
}
// Shows shapes as numbers, or as formulas. The box in the middle of the screen stays where it is.
function renumber(numbers) {
  isNumeric = numbers;
  side();
  if (selected) details(selected);
  const [x, y] = [(canvas.clientWidth / 2 - view.x) / view.scale, (canvas.clientHeight / 2 - view.y) / view.scale], away = (spot) => Math.hypot(spot.x + spot.w / 2 - x, spot.y + spot.h / 2 - y);
  const middle = shownBoxes.filter(({ item }) => !item.open).reduce((near, spot) => near && away(near) <= away(spot) ? near : spot, null);
  redraw();
  const after = middle && spots.get(middle.item);
  if (after) view = { ...view, x: view.x + (middle.x - after.x) * view.scale, y: view.y + (middle.y - after.y) * view.scale };
  refresh();
}

// The blocks and layers that need most operations, or store most bytes.
let ranked = "macs";
const SHOWN_RANKS = 10;
function ranking(blocks, macs) {
  if (!macs) return [];
  const stored = ({ weights, inputs = [] }) => Array.isArray(weights) ? weights.reduce((sum, [, bytes]) => sum + bytes, 0) : inputs.flatMap(({ held = [] }) => held).reduce((sum, path) => sum + (values.get(path)?.bytes ?? 0), 0);
  const rows = (items) => items.map((item) => ({ item, macs: item.macs ?? 0, bytes: stored(item) })).filter((row) => row[ranked]).sort((a, b) => b[ranked] - a[ranked]);
  const row = ({ item, macs: own, bytes }) => make("tr", {}, make("td", {}, link({ title: item.path }, item.path, () => go(item), item.kind === "group" ? groupName(item) : called(item.path, item.op))), make("td", { class: "number", title: item.kind === "layer" ? macsFormula(item) : "" }, own ? operations(item).replace("at least", "≥").replace(" MACs", "") : ""), make("td", { class: "number" }, own ? percent(own / macs) : ""), make("td", { class: "number" }, bytes ? size(bytes) : ""));
  const head = (title) => make("tr", {}, make("th", { scope: "col" }, title), ...[["macs", "MACs"], ["", "share"], ["bytes", "weights"]].map(([key, text]) => make("th", { scope: "col", ...(key ? { "aria-sort": ranked === key ? "descending" : "none" } : {}) }, key ? make("button", { onclick: () => { ranked = key; side(); by("ranking").open = true; } }, text) : text)));
  const table = (title, items) => items.length ? [make("table", { class: "times" }, make("thead", {}, head(title)), make("tbody", {}, ...rows(items).slice(0, SHOWN_RANKS).map(row)))] : [];
  return [make("details", { id: "ranking" }, make("summary", {}, "Where the MACs and bytes are", make("span", { class: "faint" }, atLengths(countedLengths))), ...table("Block", blocks), ...table("Layer", data.graphs[0].nodes.filter(({ layers }) => layers === undefined)))];
}

// The inputs or outputs of the model, by name with types.
const SHOWN_ENDS = 6;
const shortened = (items) => [make("ul", {}, ...items.slice(0, SHOWN_ENDS)), ...(items.length > SHOWN_ENDS ? [make("details", {}, make("summary", {}, `${grouped(items.length - SHOWN_ENDS)} more`), make("ul", {}, ...items.slice(SHOWN_ENDS)))] : [])];
function modelEnds(title, op) {
  const ends = [...data.graphs[0].nodes.filter((node) => node.op === op && node.only !== SIDES.before), ...data.names.filter((name) => name.op === op && !name.path.includes("/body/"))];
  // An output is known by the layer that computes it.
  const source = (node) => { const producer = node.op === "Result" && node.inputs?.[0]?.from && producerOf(node, node.inputs[0]); return producer ? [make("span", { class: "faint" }, " from "), reachNode(producer)] : []; };
  const item = (node) => make("li", { class: "end" }, node.kind ? reachNode(node, nameOf(node)) : reach(node.path), " ", make("code", {}, shaped(node.types ?? types(node))), ...(node.limits ?? []).map(([limit]) => make("span", { class: "faint" }, ` ${limit}`)), ...source(node));
  return ends.length ? section(`${title} (${grouped(ends.length)})`, ...shortened(ends.map(item))) : [];
}
// What the model keeps between inferences: each variable with its type, and the layers that read and write it.
function states() {
  const own = layers.filter((node) => variableOf(node) !== undefined && node.only !== SIDES.before), all = together(own, variableOf);
  // The layers of an outline have no attributes.
  const closed = data.names.filter(({ op }) => op === "ReadValue").map(({ path, types }) => make("li", { class: "end" }, reach(path), " ", make("code", {}, types)));
  const links = (same, op, words) => same.filter((node) => node.op === op).flatMap((node, at) => [make("span", { class: "faint" }, at ? ", " : words), reachNode(node)]);
  const item = (same) => make("li", { class: "end" }, make("b", {}, variableOf(same[0])), " ", make("code", {}, shaped(types(same.find(({ outputs }) => outputs.length) ?? same[0]))), ...links(same, "ReadValue", " read by "), ...links(same, "Assign", " written by "));
  const items = [...all.map(item), ...closed];
  return items.length ? section(`States (${grouped(items.length)})`, ...shortened(items)) : [];
}
// What the metadata says, or how it changed.
function metadata() {
  const items = (data.metadata ?? []).map(([path, was, value]) => make("li", { class: "end" }, make("code", {}, path), " ", data.before ? `${was ?? "none"} → ${value ?? "none"}` : value));
  return section("Metadata", ...(data.made_by ? [make("div", {}, `made by ${data.made_by}`)] : []), ...(items.length ? shortened(items) : []));
}

let sorted = "loses";
// All Converts: those with a box, and those of weights, which are part of their consumer.
function allConverts() {
  const own = layers.filter((node) => node.convert && node.only !== SIDES.before).map(({ path, name, convert: [from, to, loses, index] }) => ({ path, name, from, to, loses, index, of: index ? " of indices" : "" }));
  const held = data.steps.filter((step) => step.loses !== undefined && !places.has(step.path) && holders.has(step.path)).map((step) => ({ path: step.path, name: step.path, from: data.steps[step.before]?.type ?? "?", to: step.type, loses: step.loses === "exact" ? "" : step.loses, index: step.stored === undefined, of: step.stored === undefined ? " of indices" : " of constants" }));
  // A FakeQuantize or a FakeConvert rounds in one type.
  const rounding = { FakeQuantize: (attribute) => `${attribute("levels") ?? "few"} levels`, FakeConvert: (attribute) => `values of ${attribute("destination_type") ?? "f8e4m3"}` };
  const rounds = ({ op, path }) => rounding[op] && !(find(path)?.only === SIDES.before);
  const rounded = data.steps.filter(rounds).map(({ path, op, type, stored }) => ({ path, name: path, from: type, to: rounding[op]((key) => places.get(path)?.attributes?.find(([name]) => name === key)?.[1]), loses: op === "FakeQuantize" ? "rounds, clips" : "rounds", of: stored === undefined ? "" : " of constants" }));
  const added = data.runs.flatMap((run) => run.added.filter(({ loses }) => loses !== undefined).map(({ exec, from, to, types, loses }) => ({ path: to ?? from ?? exec, name: exec, from: types[0], to: types[1], loses, of: ` ${ADDED}` })));
  return [...own, ...held, ...rounded, ...added];
}
function convertList() {
  const converts = allConverts();
  const entries = together(converts, ({ from, to, loses, of }) => [from, to, loses, of].join("\n")).map((same) => ({ ...same[0], types: `${same[0].from} → ${same[0].to}${same[0].of}`, count: same.length, same }));
  // Losses of weights and activations come first, then those of indices.
  const weight = ({ loses, index }) => loses ? index ? 1 : 2 : 0;
  entries.sort((a, b) => sorted === "count" ? b.count - a.count : sorted === "loses" ? weight(b) - weight(a) || b.count - a.count : a.types.localeCompare(b.types));
  const heads = [["types", "From → to"], ["count", "Layers"], ["loses", "Can lose"]].map(([key, text]) => make("th", { scope: "col", "aria-sort": sorted === key ? "descending" : "none" }, make("button", { onclick: () => { sorted = key; side(); } }, text)));
  const item = ({ path }) => make("div", {}, reach(path, path, called(path)));
  const links = (same) => make("details", same.length < 4 ? { open: "" } : {}, make("summary", {}, grouped(same.length)), ...inParts(same, item));
  const rows = entries.map((entry) => make("tr", {}, make("td", { class: "mono" }, entry.types), make("td", {}, links(entry.same)), make("td", { class: entry.loses ? lossClass(entry.index) : "faint" }, entry.loses || (entry.from === entry.to ? "nothing: not needed" : "nothing"))));
  return converts.length ? [make("table", {}, make("thead", {}, make("tr", {}, ...heads)), make("tbody", {}, ...rows))] : [make("p", { class: "faint" }, "No Converts.")];
}

const SHOWN_BOXES = 3000;
function boxList() {
  const row = ({ item }) => make("li", {}, link({ title: item.path }, item.path, () => go(item), item.kind === "layer" ? `${item.op} ${brief(nameOf(item))}` : `▸ ${titleOf(item)}`), " ", make("code", { class: "faint" }, item.kind === "group" ? plural(item.layers, "layer") : item.outputs ? cut(types(item), 60) : ""));
  const count = shownBoxes.length;
  return [make("div", { class: "faint" }, count > SHOWN_BOXES ? `${grouped(SHOWN_BOXES)} of ${plural(count, "box")}` : plural(count, "box")), make("ol", { id: "outline" }, ...shownBoxes.slice(0, SHOWN_BOXES).map(row))];
}

// The tabs.
const errors = data.findings.filter((finding) => finding.severity === "error").length;
const TABS = { findings: ["Findings", findingList], changes: ["Changes", changeList], map: [data.before ? "Blocks" : "Map", mapList], run: ["Run", runList], converts: ["Converts", convertList], outline: ["List", boxList] };
let tab = data.before ? "changes" : errors ? "findings" : "map";
function tabs() {
  const counts = { findings: data.findings.length + data.more_findings, changes: allChanges(), run: runs.length };
  const first = errors ? ["findings"] : [];
  const order = [...new Set([...(data.before ? ["changes"] : []), ...first, "map", ...(runs.length ? ["run"] : []), "findings", "converts", "outline"])];
  return order.filter((key) => counts[key] !== 0 || key === "changes").map((key) => ({ key, count: counts[key] }));
}
// The number on a tab. Notes are no reason to look.
const badge = (key, count) => key === "run" ? 0 : key === "findings" ? data.findings.filter(({ severity }) => severity !== "note").length : count;
function side() {
  const there = tabs();
  if (!there.some(({ key }) => key === tab)) tab = "map";
  const button = ({ key, count }) => make("button", { role: "tab", id: "tab-" + key, "aria-controls": "side", "aria-selected": String(key === tab), tabindex: key === tab ? 0 : -1, onclick: () => turn(key) }, TABS[key][0], ...(badge(key, count) ? [" ", make("span", { class: key === "findings" && errors ? "count error" : "count" }, grouped(badge(key, count)))] : []));
  by("tabs").replaceChildren(...there.map(button));
  by("side").setAttribute("aria-label", TABS[tab][0]);
  by("side").replaceChildren(make("h2", { class: "unseen" }, TABS[tab][0]), ...TABS[tab][1]());
  tellApart(by("side"));
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
  // A narrow window shows one sheet at a time.
  if (shown && innerWidth <= 1000) select(null);
  later();
}

function legend() {
  const weights = [...data.map, ...data.map_before].flatMap((row) => [...row.weights.map((weight) => weight.element_type), ...Object.keys(row.computed)]), visible = shownBoxes.map(({ item }) => item).filter((item) => item.kind === "layer");
  const found = new Set([...visible.flatMap((node) => node.outputs.map(([type]) => type)), ...weights, ...runs.flatMap((run) => visible.map((node) => run.layers.get(node.path)?.type).filter(Boolean))]);
  const items = [...found].sort().map((type) => make("span", {}, make("i", { style: `background:${color(type)}` }), type));
  const key = (kind, text) => items.push(make("span", {}, make("i", { class: kind }), text));
  if (visible.some((node) => node.op === "Parameter")) key("input", "input");
  if (visible.some((node) => node.op === "Result")) key("output", "output");
  if (visible.some((node) => node.convert && !node.convert[2] && !node.convert[3])) key("dash", "Convert");
  if (visible.some((node) => node.convert?.[3])) key("dash narrows", "Convert of indices");
  if (visible.some((node) => node.convert?.[2] && !node.convert[3])) key("dash loses", "Convert that can lose values");
  if (runs.length) { items.push(make("span", {}, "as computed")); key("pale", "no layer of its own"); }
  if (runs[0]?.added.size) key("dash extra", "Reorder or Convert that was added");
  if (data.before) items.push(make("span", {}, make("span", { class: "sign added" }, "+"), "added"), make("span", {}, make("span", { class: "sign changed" }, "~"), "changed"), make("span", {}, make("i", { class: "gone" }), "removed"));
  for (const [fate, text] of [["new", "new arrow"], ["gone", "removed arrow"]]) if (data.graphs.some(({ edges }) => edges.some((edge) => edge.fate === fate))) key(`line ${fate}`, text);
  by("legend").replaceChildren(...items);
  by("legend").hidden = !items.length;
}
