// Tests a page of `typelift view` from within the page, for `.ci/view`. It operates the page like a user, and writes
// the faults to `data-checked` of the body.
(async () => {
  const faults = [];
  const expect = (what, holds) => { if (!holds) faults.push(what); };
  const settled = (time) => new Promise((done) => setTimeout(done, time));
  const shownTo = (element) => element.getClientRects().length > 0 && getComputedStyle(element).display !== "none";

  expect("the page is as wide as the window", document.documentElement.scrollWidth <= innerWidth);
  const small = [...document.querySelectorAll("svg text, aside *, header *, #foot *")].filter((element) => [...element.childNodes].some((child) => child.nodeType === Node.TEXT_NODE && child.textContent.trim()) && shownTo(element));
  const scaleOf = (element) => element.closest("#world") ? view.scale : 1;
  expect("text is at least 10 pixels high", small.every((element) => parseFloat(getComputedStyle(element).fontSize) * scaleOf(element) >= 9.99));
  const boxes = [...document.querySelectorAll(".node .body")].map((box) => box.getBoundingClientRect());
  expect("a box is drawn", boxes.length > 0);
  const meet = (a, b) => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1;
  expect("no box is over another", boxes.every((a, at) => boxes.slice(at + 1).every((b) => !meet(a, b))));
  expect("each stored type is on the first screen", data.before || data.map.flatMap((row) => row.weights).every(({ element_type }) => by("side").textContent.includes(element_type)));

  const wanted = data.scenes[0].nodes.find((node) => node.outputs.length) || data.scenes[0].nodes[0];
  const seek = (text) => { by("search").value = text; by("search").dispatchEvent(new Event("input")); };
  seek(wanted.path);
  expect("the search finds", hits.some((hit) => hit.path === wanted.path));
  jump(hits.findIndex((hit) => hit.path === wanted.path));
  const element = document.querySelector(".node.selected");
  expect("what was found is selected", element);
  const box = element?.querySelector(".body").getBoundingClientRect();
  const corners = [[0.5, 0.5], [0.1, 0.2], [0.9, 0.2], [0.1, 0.8], [0.9, 0.8]];
  expect("nothing covers the selected box", box && corners.every(([x, y]) => document.elementFromPoint(box.x + box.width * x, box.y + box.height * y)?.closest(".node") === element));
  element?.dispatchEvent(new MouseEvent("click", { bubbles: true }));
  expect("a click shows details", !by("details").hidden && by("details").textContent.includes(wanted.name));
  expect("a click shows why", data.outline || !wanted.outputs.length || by("why").textContent.includes("Why"));
  expect("the address names the layer", decoded(location.hash.slice(1)) === wanted.path);
  const went = new Promise((done) => addEventListener("popstate", done, { once: true }));
  history.back();
  await Promise.race([went, settled(5000)]);
  expect("Back goes back", selected === null && location.hash === "");

  // Each tenth of the constants, by name, with the path of its value.
  for (const held of [...holders.keys()].filter((_, at, all) => at % Math.ceil(all.length / 10) === 0)) {
    seek(held);
    expect(`the search finds the weight ${held}`, hits.some((hit) => hit.path === held));
    jump(hits.findIndex((hit) => hit.path === held));
    const links = [...by("path").querySelectorAll("a")];
    expect(`the path of ${held} is shown`, !by("path").hidden && links.length && path.steps.some((step) => step.path === held));
    expect("the rest is dimmed", [...document.querySelectorAll(".node:not(.off)")].every((box) => path.boxes.has(places.get(box.dataset.path))));
    links.at(-1)?.click();
    expect("a step of the path is a link", selected !== null);
  }
  follow(null);
  // A consumer of a tensor lists it among its inputs, and the tensor lists its consumers.
  const linked = [...places.values()].filter((node) => !node.layers).every((node) => node.inputs.every((input) => !input.from || !places.has(input.from) || users.get(input.from)?.has(node.path)));
  expect("wires can be followed both ways", linked);

  turn("changes");
  for (const change of data.changes.filter((change) => change.kind === "added")) {
    const [entry] = [...by("side").querySelectorAll("a")].filter((link) => link.title === change.path);
    expect(`the added ${change.path} is linked`, entry);
    entry?.click();
    expect(`the added ${change.path} is shown`, selected && (selected.path !== change.path || kept.get(selected)?.classList.contains("added")));
  }
  if (data.beside) {
    beside(true);
    const there = () => frame.contentDocument?.querySelector(".node.selected")?.dataset.path;
    const until = async (holds) => { for (let tries = 0; tries < 100 && !holds(); tries++) await settled(20); };
    const twin = data.beside.scenes[0].nodes.find((node) => places.get(node.path)?.id !== null && places.has(node.path) && !node.layers).path;
    await until(() => frame.contentDocument?.querySelector(".node"));
    go(places.get(twin));
    await until(() => there() === twin);
    expect("what is selected is so in the graph before", there() === twin);
    const removed = data.changes.find((change) => change.kind === "removed" && places.get(change.path)?.gone)?.path;
    if (removed) {
      go(places.get(removed));
      await until(() => there() === removed);
      expect("what was removed is marked in the graph before", there() === removed && frame.contentDocument.querySelector(".node.selected.removed:not(.gone)"));
    }
    beside(false);
  }
  select(null);
  panel(false);
  panel(true);
  expect("a closed panel opens again", shownTo(by("panel")));
  for (const key of Object.keys(TABS).filter((key) => by("tab-" + key))) {
    turn(key);
    expect(`${TABS[key][0]} says something`, by("side").textContent.trim());
  }
  turn("outline");
  expect("the list has the boxes", document.querySelectorAll("#outline li").length >= Math.min(scene.nodes.length, SHOWN_BOXES));
  turn("map");
  fit();
  expect("Fit fits", scene.nodes.every((node) => node.x * view.scale + view.x > -1 && node.x * view.scale + view.x < canvas.clientWidth + 1) || view.scale <= 0.02);
  data.scenes.forEach((_, at) => open(at));
  enter(0);
  fit(false);

  // Without axe-core nothing is known of how a screen reader takes it.
  for (const dark of globalThis.axe ? [false, true] : []) {
    document.documentElement.classList.toggle("dark", dark);
    for (const node of [null, wanted]) {
      select(node);
      const { violations } = await axe.run(document, { resultTypes: ["violations"] });
      for (const { id, impact, nodes } of violations.filter(({ impact }) => ["serious", "critical"].includes(impact))) faults.push(`${dark ? "dark" : "light"} ${impact} ${id}: ${nodes[0].html.slice(0, 80)}`);
    }
  }
  document.body.dataset.checked = faults.join("; ") || "ok";
})();
