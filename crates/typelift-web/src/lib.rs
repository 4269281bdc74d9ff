//! Interface for the page in `page/`: a model in memory, read from files that the user chose. Findings and changes are
//! returned as JSON, and files as bytes.

use std::sync::Arc;

use serde_json::{Value, json};
use typelift::convert::{Conversion, ConvertError};
use typelift::findings::{Diagnostic, Diagnostics, Document};
use typelift::xml::{self, WriteOptions};
use typelift::{Checking, Weights};
use typelift_view::Page;
use wasm_bindgen::prelude::wasm_bindgen;

/// A model that the user opened.
#[wasm_bindgen]
pub struct Session {
    /// `None` if the file is not a model at all.
    model: Option<typelift::Model>,
    source: Arc<String>,
    /// Findings of the reader.
    read: Vec<Diagnostic>,
    /// Findings of inference.
    inferred: Vec<Diagnostic>,
    refresh_ports: bool,
    /// True after a conversion: the text is no longer that of the model.
    is_edited: bool,
}

#[wasm_bindgen]
impl Session {
    /// Reads the bytes of an `.xml` and, if it was chosen too, of its `.bin`.
    #[must_use]
    pub fn open(graph: Vec<u8>, weights: Option<Vec<u8>>) -> Self {
        let text = match xml::decode_utf8(graph) {
            Ok(text) => Arc::new(text),
            Err(refusal) => return Self::without_model(*refusal),
        };
        let reading = xml::parse(text.clone());
        let mut session = Self { source: text, read: reading.diagnostics, model: reading.model, ..Self::empty() };
        if let Some(model) = &mut session.model {
            model.set_weights(weights.map_or_else(Weights::none, Weights::from_bytes));
            let read = session.read.len();
            typelift::infer_read(model, &mut session.read);
            session.inferred = session.read.split_off(read);
        }
        session
    }

    /// Returns one line about the model.
    #[must_use]
    pub fn summary(&self) -> String {
        let Some(model) = &self.model else { return "This is not a model that OpenVINO reads.".to_owned() };
        let counts =
            [(model.graph().len(), "layer"), (model.inputs().count(), "input"), (model.outputs().count(), "output")];
        let counts = counts.map(|(count, what)| format!("{count} {what}{}", if count == 1 { "" } else { "s" }));
        format!("{} · IR v{} · {}", model.name(), model.version().number(), counts.join(" · "))
    }

    /// Returns the findings of `typelift check` as a JSON array, in their order.
    #[must_use]
    pub fn check(&self) -> String {
        self.findings(&self.found()).to_string()
    }

    /// Returns the page of `typelift view` with the precision map and the graph; empty without a model.
    #[must_use]
    pub fn page(&self, title: &str) -> String {
        let Some(model) = &self.model else { return String::new() };
        let found = self.found();
        let mut page = Page::new(model, &found);
        (page.title, page.file) = (title.strip_suffix(".xml").unwrap_or(title), title);
        page.html().unwrap_or_else(|error| error.to_string())
    }

    /// Converts the model as `typelift convert` does with these options, a JSON object such as `{"align": "pytorch"}`.
    /// Returns `{"changes": [...], "findings": [...]}`. A finding that is an error explains why the model did not change.
    pub fn convert(&mut self, options: &str) -> String {
        let Some(mut model) = self.model.clone() else { return json!({ "changes": [], "findings": [] }).to_string() };
        let found = self.read.iter().filter(|diagnostic| diagnostic.is_error()).cloned().collect();
        let conversion = match Conversion::from_options(options) {
            Ok(conversion) => conversion,
            Err(error) => return refusal(&error),
        };
        match conversion.run_after(&mut model, found) {
            Ok(mut converted) => {
                let mut found = std::mem::take(&mut converted.found);
                found.extend(converted.changes.iter().filter_map(|change| change.warning(&model)));
                self.inferred = typelift::infer(&mut model);
                self.refresh_ports |= converted.refresh_ports;
                self.is_edited = true;
                self.model = Some(model);
                json!({ "changes": converted.changes, "findings": self.findings(&found) }).to_string()
            }
            Err(ConvertError::Refused(found)) => {
                json!({ "changes": [], "findings": self.findings(&found) }).to_string()
            }
            Err(error) => refusal(&error),
        }
    }

    /// Returns the listing of `typelift show`.
    #[must_use]
    pub fn listing(&self) -> String {
        self.model.as_ref().map(ToString::to_string).unwrap_or_default()
    }

    /// Returns the bytes of the `.xml` to save.
    #[must_use]
    pub fn graph(&self) -> Vec<u8> {
        let options = WriteOptions { refresh_ports: self.refresh_ports, ..WriteOptions::default() };
        self.model.as_ref().map(|model| xml::write(model, options).into_bytes()).unwrap_or_default()
    }
}

impl Session {
    fn empty() -> Self {
        Self {
            model: None,
            source: Arc::default(),
            read: Vec::new(),
            inferred: Vec::new(),
            refresh_ports: false,
            is_edited: false,
        }
    }

    fn without_model(refusal: Diagnostic) -> Self {
        Self { read: vec![refusal], ..Self::empty() }
    }

    fn found(&self) -> Vec<Diagnostic> {
        let found = self.read.iter().chain(&self.inferred).cloned().collect();
        match &self.model {
            Some(model) => Checking::default().check_inferred(model, found, !self.is_edited),
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

/// The answer of a conversion that did not run.
fn refusal(error: &impl ToString) -> String {
    let message = error.to_string();
    let finding =
        json!({ "severity": "error", "code": "", "message": message, "related": [], "notes": [], "help": [] });
    json!({ "changes": [], "findings": [finding] }).to_string()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]
mod tests {
    use std::path::Path;

    use super::*;

    fn of_library(graph: Vec<u8>, weights: Weights) -> Value {
        let text = match xml::decode_utf8(graph) {
            Ok(text) => Arc::new(text),
            Err(refusal) => return Session::empty().findings(&[*refusal]),
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
}
