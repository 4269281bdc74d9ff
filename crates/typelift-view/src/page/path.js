// What leads to a layer and away from it, and the data path of a value.

let path = null;
// The loss of a Convert of unknown types, and of one of a constant, whose changed values are counted.
const UNKNOWN = "of an unknown type", COUNTED = /^\d/;
const stepName = (step) => step.output ? `${step.path}.${step.output}` : step.path;
// The path begins where the value is stored, leads to the first layer that computes with it, and continues through the
// Converts after that layer.
function pathOf(asked) {
  const steps = [], seen = new Set([asked]), own = new Set([asked.path]);
  const add = (step) => step && !seen.has(step) && seen.add(step);
  for (let step = asked; (step = data.steps[step.before]) && add(step);) steps.unshift(step);
  steps.push(asked);
  for (let step = asked, used = false; (step = data.steps[step.next]) && add(step);) {
    const passes = step.loses !== undefined || step.stored !== undefined;
    if (used && step.loses === undefined) break;
    used ||= !passes;
    if (!used) own.add(step.path);
    steps.push(step);
  }
  const boxes = new Set(steps.map((step) => find(step.path)).filter(Boolean)), along = new Set(steps.map((step) => step.path));
  const uses = (node) => !along.has(node.path) && node.inputs.some(({ from, held = [] }) => own.has(from) || held.some((path) => own.has(path)));
  return { asked, steps, boxes, others: layers.filter((node) => node.only !== SIDES.before && uses(node)) };
}

function follow(asked) {
  path = asked ? pathOf(asked) : null;
  bright = path?.boxes ?? null;
  by("path").hidden = !path;
  if (path) {
    const converts = path.steps.filter((step) => step.loses !== undefined), changes = converts.some(({ loses }) => COUNTED.test(loses));
    const lost = new Set(converts.flatMap(({ loses }) => COUNTED.test(loses) ? [] : loses.split(", ")).filter((loss) => loss !== "exact"));
    const summary = !converts.length ? "no Convert on the way" : lost.has(UNKNOWN) ? "what the Converts can lose is not known" : lost.size ? `the Converts can lose: ${[...lost].join(", ")}` : changes ? "the Converts change values of constants" : "the Converts lose nothing";
    const items = path.steps.map((step, at) => {
      const before = path.steps[at - 1], type = step.type + (step.stored !== undefined ? step.stored : "");
      const label = step.loses !== undefined ? `Convert ${step.type}` : before?.type === step.type && step.stored === undefined ? step.op : at ? `${step.op} ${type}` : type;
      const item = make("li", step === asked ? { "aria-current": "true" } : {}, link({ class: "mono", title: step.path }, step.path, () => { const node = find(step.path); if (node) go(node); }, label));
      if (step.loses !== undefined) item.append(make("span", { class: step.loses === "exact" ? "faint" : "warning" }, ` (${step.loses})`));
      return item;
    });
    const others = path.others.slice(0, 6).map((node) => make("li", {}, link({ class: "mono", title: node.path }, node.path, () => go(node), called(node.path))));
    const also = others.length ? [make("span", { class: "faint" }, "also used by"), make("ol", { class: "plain" }, ...others), ...(path.others.length > 6 ? [make("span", { class: "faint" }, `and ${path.others.length - 6} more`)] : [])] : [];
    bar("Path", make("ol", {}, ...items), ...also, make("span", { class: lost.size || changes ? "warning" : "faint" }, summary));
    for (const box of path.boxes) expose(box);
    redraw();
    remember("path:" + stepName(asked));
  }
  refresh();
}
// Shows a line below the graph.
function bar(title, ...content) {
  by("path").hidden = false;
  by("path").replaceChildren(make("b", {}, title), ...content, make("button", { class: "close", "aria-label": "Close", onclick: () => { follow(null); canvas.focus(); } }, "×"));
}
const pathLink = (step, text) => step ? [link({ title: "From where it is stored to where it is used" }, "path:" + stepName(step), () => follow(step), text)] : [];

// The shape computations without a box that use a layer, and the boxes that use such a computation.
const hiddenUsers = new Map(), fed = new Map();
const list = (map, key, item) => { if (!map.has(key)) map.set(key, []); map.get(key).push(item); };
for (const { hidden = [] } of data.graphs) for (const [path, from] of hidden) for (const producer of from) list(hiddenUsers, producer, path);
for (const node of layers) for (const { held = [] } of node.inputs) if (held.length) list(fed, held[0], node);

/** Returns the layers that lead to a layer, or that it leads to: those with a box, and the paths of those without. */
function reachOf(start, up) {
  const boxes = new Set(), held = new Set(), own = start.kind === "layer" ? [start] : layersIn(start), pending = [...own];
  const visit = (node) => { if (node && !boxes.has(node)) { boxes.add(node); pending.push(node); } };
  const side = start.only ?? SIDES.after, isThere = (edge) => !edge.only || edge.only === side;
  own.forEach((node) => boxes.add(node));
  for (let node; (node = pending.pop());) {
    if (up) {
      for (const edge of node.before) if (isThere(edge)) visit(edge.from);
      for (const input of node.inputs) {
        for (const path of input.held ?? []) held.add(path);
        for (const path of input.of ?? []) visit(places.get(path));
      }
    } else {
      for (const edge of node.next) if (isThere(edge)) visit(edge.to);
      const hidden = [...hiddenUsers.get(node.path) ?? []];
      for (let path; (path = hidden.pop());) {
        if (held.has(path)) continue;
        held.add(path);
        hidden.push(...hiddenUsers.get(path) ?? []);
        (fed.get(path) ?? []).forEach(visit);
      }
    }
    // What enters a body comes from the layer around it, and what leaves it leads there.
    if (node.op === (up ? "Parameter" : "Result") && node.graph.up) visit(node.graph.up);
    for (const body of node.bodies) body.nodes.forEach(visit);
  }
  return { boxes, held, count: boxes.size - own.length + held.size };
}
function layersIn(item) {
  const found = [], pending = [...item.items];
  for (let next; (next = pending.pop());) next.kind === "layer" ? found.push(next) : pending.push(...next.items);
  return found;
}
// Dims all but the layers upstream or downstream of the selected one, and counts them.
function showReach(up) {
  if (!selected) return;
  const { boxes, count } = reachOf(selected, up), ends = [...boxes].filter((node) => node.op === (up ? "Parameter" : "Result") && node.graph === data.graphs[0] && node !== selected);
  path = null;
  bright = boxes;
  const text = `${plural(count, "layer")} ${up ? "upstream" : "downstream"}, ${plural(ends.length, up ? "input" : "output")}`;
  const links = ends.slice(0, 12).map((node) => make("li", {}, link({ class: "mono" }, node.path, () => go(node), nameOf(node))));
  bar(up ? "Upstream" : "Downstream", make("span", { id: "reach" }, `${text} of ${selected.kind === "group" ? groupName(selected) : selected.end ?? last(selected.name)}`), make("ol", { class: "plain" }, ...links), ...(ends.length > 12 ? [make("span", { class: "faint" }, `and ${ends.length - 12} more`)] : []));
  refresh();
  say(by("reach").textContent);
}
