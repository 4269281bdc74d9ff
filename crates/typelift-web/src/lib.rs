//! Interface for the page in `page/`: a model in memory, read from files that the user chose. Findings and changes are
//! returned as JSON, and files as bytes.

use std::fmt::Display;
use std::sync::Arc;

use serde_json::{Value, json};
use typelift::convert::{Conversion, ConvertError};
use typelift::findings::{Diagnostic, Diagnostics, Document};
use typelift::passes::Change;
use typelift::precision::PlanTotals;
use typelift::rewrite::Script;
use typelift::rewrite::notation::NotationError;
use typelift::xml::{self, WriteOptions};
use typelift::{Checking, Weights, WeightsMode};
use typelift_view::Page;
use wasm_bindgen::prelude::wasm_bindgen;

/// A model that the user opened.
#[wasm_bindgen]
#[derive(Default)]
pub struct Session {
    /// `None` if the file is not a model at all.
    model: Option<typelift::Model>,
    source: Arc<String>,
    /// The weights of a file that is not a model. A model has its own.
    weights: Weights,
    /// Findings of the reader.
    read: Vec<Diagnostic>,
    /// Findings of inference.
    inferred: Vec<Diagnostic>,
    refresh_ports: bool,
    /// True after a change: the text is no longer that of the model.
    is_edited: bool,
}

#[wasm_bindgen]
impl Session {
    /// Reads the bytes of an `.xml` and, if it was chosen too, of its `.bin`.
    #[must_use]
    pub fn open(graph: Vec<u8>, weights: Option<Vec<u8>>) -> Self {
        match xml::decode_utf8(graph) {
            Ok(text) => Self::read(Arc::new(text), weights.map_or_else(Weights::none, Weights::from_owner)),
            Err(refusal) => Self { read: vec![*refusal], ..Self::default() },
        }
    }

    /// Returns one line about the model.
    pub fn summary(&self) -> String {
        let Some(model) = &self.model else { return "This is not a model that OpenVINO reads.".to_owned() };
        let counts =
            [(model.graph().len(), "layer"), (model.inputs().count(), "input"), (model.outputs().count(), "output")];
        let counts = counts.map(|(number, what)| count(number, what));
        format!("{} · IR v{} · {}", model.name(), model.version().number(), counts.join(" · "))
    }

    /// Returns the findings of `typelift check` as a JSON array, in their order.
    pub fn check(&self) -> String {
        self.findings(&self.found()).to_string()
    }

    /// Returns the page of `typelift view` with the precision map and the graph; empty without a model.
    pub fn page(&self, title: &str) -> String {
        let Some(model) = &self.model else { return String::new() };
        let found = self.found();
        let mut page = Page::new(model, &found);
        (page.title, page.file) = (title.strip_suffix(".xml").unwrap_or(title), title);
        page.html().unwrap_or_else(|error| error.to_string())
    }

    /// Applies the safe fixes of the text as `typelift check --fix` does. Returns an answer as [`convert`](Self::convert) does.
    pub fn fix(&mut self) -> String {
        let text = match &self.model {
            Some(model) if self.is_edited => Arc::new(xml::write(model, self.options())),
            _ => self.source.clone(),
        };
        let weights = self.model.as_ref().map_or(&self.weights, typelift::Model::weights).clone();
        let checked = Checking { fix: true, ..Checking::default() }.run(&text, &weights);
        *self = Self::read(checked.text, weights);
        json!({ "changes": checked.fixed.iter().map(fix_row).collect::<Vec<_>>(), "findings": [] }).to_string()
    }

    /// Converts the model as `typelift convert` does with these options, a JSON object such as `{"compress": "f16"}`.
    /// Returns `{"changes": [...], "findings": [...]}`. A change has four texts: what was done, the layer, its types and
    /// the reason. A finding that is an error explains why the model did not change.
    pub fn convert(&mut self, options: &str) -> String {
        self.change(|session, mut model| {
            let conversion = Conversion::from_options(options).map_err(refusal)?;
            let mut converted = conversion.run(&mut model).map_err(|error| match error {
                ConvertError::Refused(mut found) => {
                    found.retain(Diagnostic::is_error);
                    session.findings(&found)
                }
                error => refusal(error),
            })?;
            let mut found = std::mem::take(&mut converted.found);
            found.retain(|it| !session.inferred.contains(it));
            found.extend(converted.changes.iter().filter_map(|change| change.warning(&model)));
            let mut rows: Vec<_> = converted.changes.iter().map(change_row).collect();
            if let Some(plan) = &converted.stored {
                let PlanTotals { changed, bytes_before, bytes_after, max_rel, .. } = plan.totals();
                let sizes = format!("{bytes_before} → {bytes_after} bytes");
                let error = format!("largest relative error {max_rel:.2e}");
                rows.push(row("stored", count(changed, "constant"), sizes, error));
            }
            if let Some(plan) = &converted.quantized {
                let before: u64 = plan.changed().map(|it| it.bytes_before).sum();
                let after: u64 = plan.changed().map(|it| it.bytes_after).sum();
                let sizes = format!("{before} → {after} bytes");
                rows.push(row("quantized", count(plan.changed().count(), "constant"), sizes, ""));
            }
            Ok(Changed { model, rows, found, refresh_ports: converted.refresh_ports })
        })
    }

    /// Applies statements as `typelift rewrite -e` does. Returns an answer as [`convert`](Self::convert) does.
    pub fn rewrite(&mut self, statements: &str) -> String {
        self.change(|_, model| {
            let script: Script = statements.parse().map_err(refusal::<NotationError>)?;
            let (model, report) = script.run(model).map_err(refusal)?;
            let rules = report.applied.iter().map(|it| row(&it.rule, &it.layer.name, "", it.losses));
            let removed = report.statements.iter().map(|it| row(&it.statement, "", "", it));
            let lossy = report.lossy.iter().map(|it| row(&it.statement, "", "", it.losses));
            let mut rows: Vec<_> = rules.chain(removed).chain(lossy).collect();
            if rows.is_empty() {
                rows.push(row("applied", "", "", count(script.edits(), "statement")));
            }
            Ok(Changed { model, rows, found: Vec::new(), refresh_ports: script.edits_interface() })
        })
    }

    /// Returns the listing of `typelift show`.
    pub fn listing(&self) -> String {
        self.model.as_ref().map(ToString::to_string).unwrap_or_default()
    }

    /// Returns the bytes of the `.xml` to save.
    pub fn graph(&self) -> Vec<u8> {
        self.model.as_ref().map(|model| xml::write(model, self.options()).into_bytes()).unwrap_or_default()
    }

    /// True if there is a `.bin` to save.
    pub fn has_weights(&self) -> bool {
        self.model.as_ref().is_some_and(|model| model.weights().len().is_some())
    }

    /// Returns the bytes of the `.bin` to save.
    pub fn weights(&self) -> Vec<u8> {
        self.model.as_ref().and_then(|model| model.weights().to_bytes().ok()).unwrap_or_default()
    }
}

struct Changed {
    model: typelift::Model,
    rows: Vec<[String; 4]>,
    found: Vec<Diagnostic>,
    refresh_ports: bool,
}

impl Session {
    fn read(source: Arc<String>, weights: Weights) -> Self {
        let reading = xml::parse(source.clone());
        let mut session = Self { source, weights, read: reading.diagnostics, model: reading.model, ..Self::default() };
        if let Some(model) = &mut session.model {
            model.set_weights(std::mem::take(&mut session.weights));
            let read = session.read.len();
            typelift::infer_read(model, &mut session.read);
            session.inferred = session.read.split_off(read);
        }
        session
    }

    /// Changes a copy of the model, and keeps it if nothing failed.
    fn change(&mut self, act: impl FnOnce(&Self, typelift::Model) -> Result<Changed, Value>) -> String {
        let errors: Vec<_> = self.read.iter().filter(|it| it.is_error()).cloned().collect();
        let Some(model) = self.model.clone().filter(|_| errors.is_empty()) else {
            return refused(self.findings(&errors));
        };
        let done = act(self, model).and_then(|changed| {
            let arranged = changed.model.arranged(WeightsMode::Copy).map_err(refusal)?.into_owned();
            Ok(Changed { model: arranged, ..changed })
        });
        match done {
            Ok(Changed { mut model, rows, found, refresh_ports }) => {
                self.inferred = typelift::infer(&mut model);
                self.refresh_ports |= refresh_ports;
                self.is_edited = true;
                self.model = Some(model);
                json!({ "changes": rows, "findings": self.findings(&found) }).to_string()
            }
            Err(findings) => refused(findings),
        }
    }

    fn options(&self) -> WriteOptions {
        WriteOptions { refresh_ports: self.refresh_ports, ..WriteOptions::default() }
    }

    fn found(&self) -> Vec<Diagnostic> {
        let found = self.read.iter().chain(&self.inferred).cloned().collect();
        match &self.model {
            Some(model) => Checking::default().check_inferred(model, None, found, !self.is_edited),
            None => found,
        }
    }

    fn findings(&self, found: &[Diagnostic]) -> Value {
        let source = self.source.clone();
        let found = Diagnostics { list: found.to_vec(), ..Diagnostics::new("model.xml", source) };
        serde_json::to_value(Document::new(&found))
            .map(|mut document| document["diagnostics"].take())
            .unwrap_or_default()
    }
}

fn row(action: &str, layer: impl Display, types: impl Display, reason: impl Display) -> [String; 4] {
    [action.to_owned(), layer.to_string(), types.to_string(), reason.to_string()]
}

fn change_row(change: &Change) -> [String; 4] {
    let types = format!("{} → {}", change.from, change.to);
    row(json!(change.action).as_str().unwrap_or_default(), &change.layer.name, types, &change.reason)
}

fn fix_row(fixed: &Diagnostic) -> [String; 4] {
    row("fixed", fixed.layer.as_ref().map_or("", |layer| &layer.name), fixed.code, &fixed.message)
}

fn count(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// The findings of a change that failed with this error.
fn refusal<E: Display>(error: E) -> Value {
    json!([{ "severity": "error", "code": "", "message": error.to_string(), "related": [], "notes": [], "help": [] }])
}

fn refused(findings: Value) -> String {
    json!({ "changes": [], "findings": findings }).to_string()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]
mod tests {
    use std::path::Path;

    use super::*;

    fn of_library(graph: Vec<u8>, weights: Weights) -> Value {
        let text = match xml::decode_utf8(graph) {
            Ok(text) => Arc::new(text),
            Err(refusal) => return Session::default().findings(&[*refusal]),
        };
        let list = Checking::default().run(&text, &weights).findings;
        let found = Diagnostics { list, ..Diagnostics::new("model.xml", text) };
        serde_json::to_value(Document::new(&found)).unwrap()["diagnostics"].take()
    }

    #[test]
    fn a_session_and_the_library_report_the_same() {
        let testdata = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata");
        let fixtures = std::fs::read_dir(testdata.join("fixtures")).unwrap().map(|entry| entry.unwrap().path());
        let folders = fixtures.filter(|path| path.is_dir()).chain([testdata.join("models")]);
        let files = folders.flat_map(|folder| std::fs::read_dir(folder).unwrap()).map(|entry| entry.unwrap().path());
        let (mut count, mut faults) = (0, Vec::new());
        for file in files.filter(|path| path.extension().is_some_and(|it| it == "xml")) {
            let graph = std::fs::read(&file).unwrap();
            let bin = std::fs::read(file.with_extension("bin")).ok();
            let weights = bin.clone().map_or_else(Weights::none, Weights::from_bytes);
            let shown: Value = serde_json::from_str(&Session::open(graph.clone(), bin).check()).unwrap();
            count += 1;
            if shown != of_library(graph, weights) {
                faults.push(file);
            }
        }
        assert!(count > 100, "{count} models");
        assert!(faults.is_empty(), "{faults:#?}");
    }

    #[test]
    fn a_change_is_saved_in_both_files_or_leaves_the_model_as_it_is() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/tutorial/classifier.xml");
        let [graph, bin] = ["xml", "bin"].map(|ending| std::fs::read(file.with_extension(ending)).unwrap());
        let mut session = Session::open(graph, Some(bin.clone()));
        for (options, parts) in
            [(r#"{"compress": "f16"}"#, 2), (r#"{"decompress": true}"#, 1), (r#"{"quantize": "int4_sym"}"#, 4)]
        {
            let answer: Value = serde_json::from_str(&session.convert(options)).unwrap();
            assert!(!answer["changes"].as_array().unwrap().is_empty(), "{options}: {answer}");
            assert!(
                session.weights().len() <= bin.len() / parts + bin.len() / 8,
                "{options}: {} bytes",
                session.weights().len()
            );
            let saved = Session::open(session.graph(), Some(session.weights()));
            assert!(!saved.check().contains(r#""severity":"error""#), "{options}: {}", saved.check());
            assert_eq!(saved.listing(), session.listing(), "{options}");
        }
        let before = (session.graph(), session.weights());
        for refused in
            [session.rewrite("rename absent other"), session.rewrite("rename"), session.convert(r#"{"align": 1}"#)]
        {
            let answer: Value = serde_json::from_str(&refused).unwrap();
            assert_eq!((&answer["changes"], &answer["findings"][0]["severity"]), (&json!([]), &json!("error")));
        }
        assert!((session.graph(), session.weights()) == before);
    }
}
