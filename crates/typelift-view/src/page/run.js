// What a plugin ran: times by block and by kernel, and the layers that it added and fused.

const micros = (us) => us < 1000 ? `${us} µs` : `${(us / 1000).toFixed(us < 10000 ? 2 : 1)} ms`;
// The sum of the times of layers by a key, the largest first.
function timesBy(layers, key) {
  const sums = new Map();
  for (const layer of layers) {
    const name = key(layer), known = sums.get(name) ?? { name, us: 0, count: 0 };
    sums.set(name, { ...known, us: known.us + (layer.us ?? 0), count: known.count + 1 + (layer.parts?.length ?? 0) });
  }
  return [...sums.values()].sort((a, b) => b.us - a.us);
}
const blockOf = (path) => { let found = null; for (let up = find(path)?.up; up; up = up.up) if (up.kind === "group") found = up; return found; };
const timeRow = (title, { us, count }, sum) => make("tr", {}, make("td", {}, title), make("td", { class: "number" }, micros(us)), make("td", { class: "number" }, percent(us / sum)), make("td", { class: "number faint" }, count && grouped(count)));
function timeTable(title, rows, sum, titleOf) {
  const head = make("tr", {}, ...[title, "time", "share", "kernels"].map((text) => make("th", { scope: "col" }, text)));
  return rows.length ? [make("table", { class: "times" }, make("thead", {}, head), make("tbody", {}, ...rows.slice(0, 40).map((row) => timeRow(titleOf(row), row, sum))))] : [];
}
const total = (rows) => rows.reduce((sum, { us = 0 }) => sum + us, 0), ADDED = "added by the plugin";
const FATES = { fused: "fused into others", inside: "inside others, by their place", folded: "computed when the model was compiled" };
const which = (at) => runs.length > 1 ? `Run ${at + 1}: ` : "";
function runList() {
  return data.runs.flatMap((run, at) => {
    const sum = run.us, all = run.kernels.reduce((sum, { count }) => sum + count, 0), isTimed = ({ became }) => sum && became === "ran", blocks = timesBy(run.layers.filter(isTimed), ({ path }) => blockOf(path));
    const slowest = (isOne) => run.layers.filter(isOne).sort((a, b) => (b.us ?? 0) - (a.us ?? 0)), ranAs = (type, precision) => slowest(({ text }) => `${text} `.startsWith(`ran as ${type} in ${precision} `));
    const kernels = (sum ? run.kernels : []).map(({ type, precision, count, us }) => ({ name: `${type} ${precision}`, count, us, all: ranAs(type, precision) }));
    const added = [...run.added].sort((a, b) => (b.us ?? 0) - (a.us ?? 0)), ofAdded = total(added), rest = sum - total(blocks) - ofAdded;
    const others = sum - total(kernels);
    if (others > 0) kernels.push({ name: "other kernels of the plugin", us: others, count: "" });
    for (const row of [{ name: ADDED, us: ofAdded, count: added.length }, { name: "other kernels of the plugin", us: rest, count: all - added.length - blocks.reduce((sum, { count }) => sum + count, 0) }]) if (sum && (row.us > 0 || row.count > 0)) blocks.push(row);
    blocks.sort((a, b) => b.us - a.us);
    const ends = ({ from, to, exec }) => from ? [make("span", { class: "faint" }, " between "), reach(from, from, called(from)), " and ", reach(to, to, called(to))] : [make("span", { class: "faint", title: exec }, ` ${last(exec)}`)];
    const fates = together(run.layers, ({ became }) => became), counts = fates.filter(([{ became }]) => FATES[became]);
    const layerLinks = (all) => inParts(all, ({ path, exec, us }) => make("div", {}, reach(path, path, called(path)), ...(us ? [" · " + micros(us)] : []), ...(exec ? [make("span", { class: "faint" }, ` → ${last(exec)}`)] : [])));
    const unfolding = (title, all) => make("details", {}, make("summary", {}, title), ...layerLinks(all));
    // The layers that ran in another type than that of the model.
    const types = ({ path, type }) => `${typeOf(places.get(path), null)} → ${type}`;
    const retyped = together(run.layers.filter(({ path, type }) => type && places.has(path) && typeOf(places.get(path), null) !== type), types).sort((a, b) => b.length - a.length);
    return [
      make("h3", {}, `${which(at)}${plural(all, "kernel")}${sum ? `, ${micros(sum)} in all` : ", without times"}`),
      ...(run.once ? [make("div", { class: "faint" }, `${micros(run.once)} more for constants, once`)] : []),
      make("div", {}, `${plural(run.layers.length, "layer")} of the model, constants and outputs aside: ${fates.map((all) => `${grouped(all.length)} ${all[0].became}`).join(", ")}`),
      ...timeTable("Block", blocks, sum, ({ name }) => name?.path ? link({ title: name.path }, name.path, () => go(name), groupName(name)) : name ?? unfolding(groups.length ? "outside of blocks" : "layers of the model", slowest((layer) => isTimed(layer) && !blockOf(layer.path)))),
      ...timeTable("Kernel and type", kernels, sum, ({ name, all = [] }) => all.length ? unfolding(name, all) : name),
      ...retyped.map((all) => unfolding(`${plural(all.length, "layer")} ran in another type: ${types(all[0])}`, all)),
      ...(added.length ? [make("details", {}, make("summary", {}, `${plural(added.length, "layer")} ${ADDED}`), ...added.slice(0, 200).map((layer) => make("div", {}, layer.text, ...(layer.us ? [" · " + micros(layer.us)] : []), ...ends(layer))))] : []),
      ...counts.map((all) => unfolding(`${plural(all.length, "layer")} ${FATES[all[0].became]}`, all)),
    ];
  });
}
// The time of a group as a plugin ran it.
function ranGroup(group) {
  return data.runs.flatMap((run, at) => {
    const own = new Set(layersIn(group).map(({ path }) => path)), timed = run.layers.filter(({ path, us }) => us && own.has(path)), us = total(timed);
    return us ? [make("div", {}, `${which(at)}${micros(us)}, ${percent(us / run.us)} of the run`)] : [];
  });
}
