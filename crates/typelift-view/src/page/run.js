// What a plugin ran: times by block and by kernel, and the layers that it added and fused.

const micros = (us) => us < 1000 ? `${us} µs` : `${(us / 1000).toFixed(us < 10000 ? 2 : 1)} ms`;
// The sum of the times of layers by a key, the largest first.
function timesBy(layers, key) {
  const sums = new Map();
  for (const layer of layers) {
    const name = key(layer), known = sums.get(name) ?? { name, us: 0, count: 0 };
    sums.set(name, { ...known, us: known.us + layer.us, count: known.count + 1 });
  }
  return [...sums.values()].sort((a, b) => b.us - a.us);
}
const blockOf = (path) => { let found = null; for (let up = find(path)?.up; up; up = up.up) if (up.kind === "group") found = up; return found; };
const timeRow = (title, { us, count }, sum) => make("tr", {}, make("td", {}, title), make("td", { class: "number" }, micros(us)), make("td", { class: "number" }, percent(us / sum)), make("td", { class: "number faint" }, grouped(count)));
function timeTable(title, rows, sum, titleOf) {
  const head = make("tr", {}, ...[title, "time", "share", "layers"].map((text) => make("th", { scope: "col" }, text)));
  return rows.length ? [make("table", { class: "times" }, make("thead", {}, head), make("tbody", {}, ...rows.slice(0, 40).map((row) => timeRow(titleOf(row), row, sum))))] : [];
}
const which = (at) => runs.length > 1 ? `Run ${at + 1}: ` : "";
function runList() {
  return data.runs.flatMap((run, at) => {
    const timed = run.layers.filter(({ us }) => us), sum = timed.reduce((sum, { us }) => sum + us, 0);
    const blocks = timesBy(timed, ({ path }) => blockOf(path)), kernels = timesBy(timed, ({ kind, type }) => `${kind} ${type ?? ""}`.trim());
    const counts = ["fused", "inside", "folded"].map((became) => [became, run.layers.filter((layer) => layer.became === became)]).filter(([, all]) => all.length);
    const layerLinks = (all) => all.slice(0, 200).map(({ path, exec }) => make("div", {}, reach(path, path, called(path)), ...(exec ? [make("span", { class: "faint" }, ` → ${last(exec)}`)] : [])));
    return [
      make("h3", {}, `${which(at)}${plural(run.layers.length, "layer")}${sum ? ", " + micros(sum) : ", without times"}`),
      ...timeTable("Block", blocks, sum, ({ name }) => name ? link({ title: name.path }, name.path, () => go(name), groupName(name)) : "outside of blocks"),
      ...timeTable("Kernel and type", kernels, sum, ({ name }) => name),
      ...(run.added.length ? [make("details", {}, make("summary", {}, `${plural(run.added.length, "layer")} added by the plugin`), ...run.added.slice(0, 200).map(({ from, to, text }) => make("div", {}, text, make("span", { class: "faint" }, " between "), reach(from, from, called(from)), " and ", reach(to, to, called(to)))))] : []),
      ...counts.map(([became, all]) => make("details", {}, make("summary", {}, `${plural(all.length, "layer")} ${{ fused: "fused into others", inside: "inside others, by their place", folded: "computed when the model was compiled" }[became]}`), ...layerLinks(all))),
    ];
  });
}
// The time of a group as a plugin ran it.
function ranGroup(group) {
  return data.runs.flatMap((run, at) => {
    const own = new Set(layersIn(group).map(({ path }) => path)), timed = run.layers.filter(({ path, us }) => us && own.has(path)), us = timed.reduce((sum, layer) => sum + layer.us, 0);
    const all = run.layers.reduce((sum, layer) => sum + (layer.us ?? 0), 0);
    return us ? [make("div", {}, `${which(at)}${micros(us)}, ${percent(us / all)} of the run`)] : [];
  });
}
