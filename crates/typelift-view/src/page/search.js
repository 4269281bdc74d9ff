// The search: words, regular expressions and sizes, for layers, constants, groups, tensors and types.

const SHOWN_HITS = 60;
const entries = [], sized = (bytes) => bytes ? " · " + size(bytes) : "";
/** The words of operations that a person may not know. @type {Record<string, string>} */
const WORD_OF = { Parameter: "input", Result: "output", ReadValue: "state", Assign: "state" };
const foundAt = (path) => (marks.get(path) ?? []).map(({ severity, code }) => `${severity} ${code}`).join(" ");
for (const group of groups) {
  const bytes = group.weights?.reduce((sum, [, bytes]) => sum + bytes, 0) ?? 0, kinds = [...(group.weights ?? []), ...(group.computed ?? [])].map(([type]) => type);
  entries.push({ item: group, path: group.path, bytes, note: `${plural(group.layers, "layer")}${bytes ? ", " + size(bytes) : ""}`, text: `${group.path} block ${kinds.join(" ")}` });
}
for (const node of layers) {
  if (data.outline && node.up.kind === "group") continue;
  const bytes = node.outputs.reduce((sum, [type, shape]) => sum + (tensorBytes(type, shape) ?? 0), 0);
  const state = variableOf(node), ran = runs.map((run) => run.layers.get(node.path)).filter(Boolean), us = Math.max(0, ...ran.map(({ us = 0 }) => us));
  entries.push({ item: node, path: node.path, op: node.op, id: node.id, bytes, us, note: `${node.end ?? ""} ${node.op} ${state ? state + " · " : ""}${types(node)}${us ? " · " + micros(us) : ""}${sized(bytes)}`.trim(), text: `${node.path} ${node.end ?? ""} ${node.op} ${types(node)} ${node.id ?? ""} ${(node.tensors ?? []).join(" ")} ${state ?? ""} ${ran.map(({ text, type }) => `${text} ${type}`).join(" ")} ${node.weights ?? ""} ${WORD_OF[node.op] ?? ""} ${node.only === SIDES.before ? "removed" : ""} ${foundAt(node.path)}` });
}
for (const { path, op, types, item } of data.names) {
  const bytes = [...types.matchAll(/(\w+)(\[[^\]]*\])/g)].reduce((sum, [, type, shape]) => sum + (tensorBytes(type, shape) ?? 0), 0);
  entries.push({ item, path, op, bytes, constant: path, note: `${op} ${types}${sized(bytes)}`, text: `${path} ${op} ${types} ${WORD_OF[op] ?? ""} ${foundAt(path)}` });
}
// Numbers and settings are no weights.
function isWeight(op, own) {
  const count = (lengthsOf(own) ?? []).reduce((all, length) => all * Number(length), 1);
  return op === "Const" && count >= (/^(b?f|nf)\d/.test(own) ? 2 : 32);
}
const sharedBy = new Map();
for (const { only, inputs } of layers) for (const path of only === SIDES.before ? [] : new Set(inputs.flatMap(({ held = [] }) => held))) sharedBy.set(path, (sharedBy.get(path) ?? 0) + 1);
for (const [path, node] of holders) {
  const input = node.inputs.find((input) => input.held?.includes(path)) ?? node.was?.inputs.find((input) => input.held?.includes(path));
  const known = values.get(path), step = stepsAt.get(path), own = known?.text ?? (step ? step.type + (step.stored ?? "") : input?.text ?? "");
  const op = step?.op ?? "Const", stored = known?.bytes ?? (step?.stored ? tensorBytes(step.type, step.stored) ?? 0 : 0);
  // The file stores no bytes of what it computes from constants.
  const bytes = op === "Const" ? stored : 0, isMain = op === "Const" && [undefined, path].includes(input?.parts?.[0]?.[0]);
  // What is said of a weight, such as how it is quantized, concerns the constant that stores it.
  entries.push({ item: node, path, op, id: step?.id, bytes, step, constant: path, note: `${op} ${own}${sized(stored)} in ${sharedBy.get(path) > 1 ? `${sharedBy.get(path)} layers` : `${node.op} ${labelOf(node)}`}`, text: `${path} ${op === "Const" ? "constant" : op} ${own} ${isMain ? (input?.text ?? "").replace(/ \([^)]*→[^)]*\)/, "") : ""} ${sharedBy.get(path) > 1 && isWeight(op, own) ? "shared" : ""} ${foundAt(path)}` });
}
for (const entry of entries) entry.lower = entry.text.toLowerCase();

const UNITS = { "": 1, b: 1, kb: 1e3, mb: 1e6, gb: 1e9, k: 1e3, m: 1e6, g: 1e9, us: 1, "µs": 1, ms: 1e3 };
const measureOf = (word) => /s$/i.test(word) ? "us" : "bytes";
/** Returns the test of one word: `>10MB`, `>100us`, `op:MatMul`, `id:601`, `[24,16]`, `/^model.*Add$/`, `layers\.1\d`, or plain text. */
function testOf(word) {
  // The name of this operation in its file is Const.
  const [, key, value] = word.match(/^(op|type|id|name):(.+)$/i) ?? [], wanted = value?.toLowerCase().replace(/^constant$/, "const");
  if (key) return { op: ({ op = "" }) => op.toLowerCase() === wanted, type: ({ op = "" }) => op.toLowerCase() === wanted, id: ({ id }) => String(id) === wanted, name: ({ path }) => path.toLowerCase().includes(wanted) }[key.toLowerCase()];
  // A shape, in which `?` is any dimension. The search has taken its spaces out.
  if (/^\[[^[\]^]*\]$/.test(word)) {
    const part = (text) => text.replace(/[.[\]()]/g, "\\$&").replace(/[+*/-]/g, " ?\\$& ?").replaceAll(",", ", ?");
    const shape = new RegExp(word.toLowerCase().split("?").map(part).join("[^,\\[\\]]+"));
    return (entry) => shape.test(entry.lower);
  }
  const limit = word.match(/^([<>])=?(\d+(?:\.\d+)?)\s*([kmg]?b?|[uµm]s)$/i);
  if (limit) {
    const least = Number(limit[2]) * UNITS[limit[3].toLowerCase()], key = measureOf(word);
    return limit[1] === ">" ? (entry) => entry[key] >= least : (entry) => entry[key] > 0 && entry[key] <= least;
  }
  const inner = word.match(/^\/(.+?)\/?$/)?.[1] ?? (/[\\^$*+?|[\](){}]/.test(word) ? word : null), lower = word.toLowerCase();
  const contains = (entry) => entry.lower.includes(lower);
  if (!inner) return contains;
  try {
    // What leads or trails changes nothing in a search, and is slow.
    const expression = new RegExp(inner.replace(/^(?:\.\*)+(?=.)|(?<=[^\\])(?:\.\*)+$/g, ""), "i"), isAnchored = /[\^$]/.test(inner);
    return (entry) => isAnchored && expression.test(entry.path) || expression.test(entry.text) || contains(entry);
  } catch { return contains; }
}
let hits = [], chosen = 0;
function search(most = SHOWN_HITS) {
  const asked = by("search").value.trim().replace(/\[[^\]]*\]/g, (shape) => shape.replace(/\s/g, "")), words = asked.split(/\s+/).filter(Boolean), tests = words.map(testOf);
  const sizes = words.filter((word) => /^[<>]/.test(word)), bySize = sizes.length > 0 || words.includes("shared"), wantedTypes = words.filter((word) => COLORS[word.toLowerCase()]);
  // A type is that of the tensor itself. Blocks that have it come last.
  const isOwn = ({ item, constant, note }) => item.kind === "group" && !constant || wantedTypes.every((type) => new RegExp(`\\b${type}\\b`, "i").test(note.split(" in ")[0]));
  const all = words.length ? entries.filter((entry) => tests.every((test) => test(entry)) && isOwn(entry)) : [];
  // Exact names come first, then names that end or begin a word there, then other matches. Large ones come first if a size was asked for.
  const wanted = words.join(" ").toLowerCase(), names = new Set([wanted, ...wanted.split(" ")]);
  const rank = ({ path, item, id, op, note }) => {
    // `Const f32` is how a row begins. A constant of another type may be one only by its use.
    if (words.length > 1 && note.toLowerCase().startsWith(wanted)) return -1;
    if (String(id) === wanted || op !== undefined && WORD_OF[op] === wanted) return -1;
    if (wantedTypes.length && !id && item.kind === "group") return 4;
    const name = path.toLowerCase(), at = name.indexOf(wanted);
    // The layers around a block have its name after a word.
    if (names.has(name) || names.has(last(name)) || item.kind === "group" && item.path === path && !/^(before|after|between) /.test(item.name) && (name.endsWith("." + wanted) || name.endsWith("/" + wanted))) return 0;
    return at < 0 ? words.some((word) => word.toLowerCase() === op?.toLowerCase()) ? 2 : 3 : /[\d]/.test(name[at + wanted.length] ?? "") && /\d$/.test(wanted) ? 2 : 1;
  };
  const ranks = new Map(all.map((entry) => [entry, rank(entry)]));
  all.sort((a, b) => bySize ? b[measureOf(sizes[0] ?? "B")] - a[measureOf(sizes[0] ?? "B")] : ranks.get(a) - ranks.get(b));
  hits = all.slice(0, most);
  chosen = 0;
  by("hits").hidden = !words.length;
  by("search").setAttribute("aria-expanded", String(words.length > 0));
  const rows = hits.map((hit, at) => make("li", { role: "option", "aria-selected": String(at === 0), onclick: () => jump(at) }, brief(hit.path), " ", make("small", {}, shortName(hit.note, 80))));
  const idle = (text) => make("li", { role: "option", "aria-selected": "false", "aria-disabled": "true", class: "faint" }, text);
  const blocks = all.filter(({ item, constant }) => item.kind === "group" && !constant).length;
  if (all.length > hits.length) rows.push(make("li", { role: "option", "aria-selected": "false", class: "faint", onclick: () => search(4 * most) }, `${hits.length} of ${grouped(all.length)}${blocks && blocks < all.length ? ` (${plural(all.length - blocks, "layer")} and ${plural(blocks, "block")})` : ""}: add a word, or show more`));
  by("hits").replaceChildren(...(rows.length ? rows : [idle("nothing found; try a part of a name, a type, .*, >1MB")]));
}
function jump(at) {
  const hit = hits[at];
  by("hits").hidden = true;
  by("search").setAttribute("aria-expanded", "false");
  if (!hit) return;
  go(hit.item, hit.constant);
  if (hit.step) follow(hit.step);
}
function choose(step) {
  const rows = by("hits").children;
  rows[chosen]?.setAttribute("aria-selected", "false");
  chosen = Math.max(0, Math.min(hits.length - 1, chosen + step));
  rows[chosen]?.setAttribute("aria-selected", "true");
  rows[chosen]?.scrollIntoView({ block: "nearest" });
}
by("search").addEventListener("input", () => search());
by("search").addEventListener("keydown", (event) => {
  if (event.key === "ArrowDown" || event.key === "ArrowUp") { choose(event.key === "ArrowDown" ? 1 : -1); event.preventDefault(); }
  else if (event.key === "Enter") { jump(chosen); canvas.focus(); }
  else if (event.key === "Escape") { by("hits").hidden = true; canvas.focus(); }
});
