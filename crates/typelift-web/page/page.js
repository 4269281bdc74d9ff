"use strict";
const by = (id) => document.getElementById(id);
let session = null;
let name = "model.xml";

/** Shows rows as a table: its head, in which what may go to the next line has a star, and for each row a class and cells. */
function table(home, head, rows) {
  home.replaceChildren();
  home.parentElement.hidden = !rows.length;
  if (!rows.length) return;
  const element = home.appendChild(document.createElement("table"));
  const line = (cells, tag) => {
    const row = element.appendChild(document.createElement("tr"));
    for (const [at, text] of cells.entries()) {
      const cell = row.appendChild(document.createElement(tag));
      cell.textContent = text ?? "";
      if (tag === "td" && head[at].endsWith("*")) cell.className = "text";
    }
    return row;
  };
  line(head.map((title) => title.replace("*", "")), "th");
  for (const [kind, cells] of rows) line(cells, "td").className = kind;
}

function showFindings(findings) {
  const rows = findings.map((it) => {
    const related = it.related.map((tensor) => tensor.message);
    const help = [...related, ...it.notes, ...it.help.map((text) => `help: ${text}`)].join("\n");
    const layer = [it.layer?.path, it.layer?.name].filter(Boolean).join("/");
    return [it.severity, [it.severity, it.code, layer, it.line, it.message, help]];
  });
  table(by("findings"), ["severity", "code", "layer*", "line", "finding*", "more*"], rows);
}

function show() {
  by("summary").textContent = session.summary();
  by("listing").textContent = session.listing();
  const findings = JSON.parse(session.check());
  const page = session.page(name);
  by("view").hidden = by("text").hidden = page === "";
  by("view").srcdoc = page;
  // The page of a model lists its findings.
  showFindings(page === "" ? findings : []);
  by("convert").disabled = by("rewrite").disabled = by("save").disabled = page === "";
  by("save-weights").disabled = !session.has_weights();
  by("fix").disabled = !findings.some((it) => it.edits.length);
}

/** Opens a model from the bytes of its files. */
function open(file, graph, weights) {
  session?.free();
  session = wasm_bindgen.Session.open(graph, weights);
  name = file;
  table(by("changes"), [], []);
  show();
}

/** Shows what an operation of the session answered. */
function answer(text) {
  const { changes, findings } = JSON.parse(text);
  show();
  table(by("changes"), ["change*", "layer*", "types", "why*"], changes.map((cells) => ["", cells]));
  if (findings.length) showFindings(findings);
}

async function choose(chosen) {
  const files = [...chosen];
  const graph = files.find((file) => !file.name.endsWith(".bin"));
  if (!graph) return;
  const weights = files.find((file) => file.name.endsWith(".bin"));
  const bytes = async (file) => file && new Uint8Array(await file.arrayBuffer());
  const contents = [await bytes(graph), await bytes(weights)];
  await started;
  open(graph.name, ...contents);
}

function save(bytes, ending) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([bytes]));
  link.download = name.replace(/(\.xml)?$/, `.converted.${ending}`);
  link.click();
  URL.revokeObjectURL(link.href);
}

/** Unpacks and starts the program. */
async function start() {
  const packed = new Blob([Uint8Array.from(atob(by("wasm").textContent), (c) => c.charCodeAt(0))]);
  const stream = packed.stream().pipeThrough(new DecompressionStream("gzip"));
  await wasm_bindgen({ module_or_path: await new Response(stream).arrayBuffer() });
}

const started = start();
by("files").addEventListener("change", () => choose(by("files").files));
for (const kind of ["dragover", "dragleave", "drop"]) {
  document.addEventListener(kind, (event) => {
    event.preventDefault();
    by("drop").classList.toggle("over", kind === "dragover");
    if (kind === "drop") choose(event.dataTransfer.files);
  });
}
// Gives the picture of the model the colours of the surrounding page.
function paint(dark) {
  document.documentElement.classList.toggle("dark", dark);
  by("view").contentWindow?.postMessage({ dark }, "*");
}
by("theme").addEventListener("click", () => paint(!document.documentElement.classList.contains("dark")));
by("view").addEventListener("load", () => paint(document.documentElement.classList.contains("dark")));
paint(matchMedia("(prefers-color-scheme: dark)").matches);
const actions = {
  fix: () => answer(session.fix()),
  convert: () => answer(session.convert(JSON.stringify({ align: by("align").value, ...JSON.parse(by("store").value) }))),
  rewrite: () => answer(session.rewrite(by("statements").value)),
  save: () => save(session.graph(), "xml"),
  "save-weights": () => save(session.weights(), "bin"),
};
for (const [id, act] of Object.entries(actions)) by(id).addEventListener("click", act);
