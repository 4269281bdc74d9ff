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
  showFindings(JSON.parse(session.check()));
  const page = session.page(name);
  by("view").hidden = by("text").hidden = page === "";
  by("view").srcdoc = page;
}

/** Opens a model from the bytes of its files. */
function open(file, graph, weights) {
  session?.free();
  session = wasm_bindgen.Session.open(graph, weights);
  name = file;
  table(by("changes"), [], []);
  by("convert").disabled = by("save").disabled = session.listing() === "";
  show();
}

function convert() {
  const { changes, findings } = JSON.parse(session.convert(JSON.stringify({ align: by("align").value })));
  show();
  const rows = changes.map((it) => ["", [it.action, it.layer.name, `${it.from} → ${it.to}`, it.reason]]);
  table(by("changes"), ["change", "layer*", "types", "why*"], rows);
  if (findings.some((it) => it.severity === "error")) showFindings(findings);
}

async function choose(chosen) {
  const files = [...chosen];
  const graph = files.find((file) => !file.name.endsWith(".bin"));
  if (!graph) return;
  const weights = files.find((file) => file.name.endsWith(".bin"));
  const bytes = async (file) => file && new Uint8Array(await file.arrayBuffer());
  open(graph.name, await bytes(graph), await bytes(weights));
}

function save() {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([session.graph()], { type: "application/xml" }));
  link.download = name.replace(/(\.xml)?$/, ".converted.xml");
  link.click();
  URL.revokeObjectURL(link.href);
}

wasm_bindgen.initSync({ module: Uint8Array.from(atob(by("wasm").textContent), (c) => c.charCodeAt(0)) });
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
by("convert").addEventListener("click", convert);
by("save").addEventListener("click", save);
