//! Lists whose text is formatted on demand.

use pyo3::prelude::*;
use typelift::explain::{Derivation, Diff};
use typelift_cli::report;

use crate::failure::{self, Failure};

/// A list with a text, which can be long.
#[pyclass(frozen, module = "typelift._typelift")]
pub(crate) struct Answer(Box<dyn Listed>);

impl Answer {
    pub(crate) fn new(listed: impl Listed + 'static) -> Self {
        Self(Box::new(listed))
    }
}

/// The source of an answer: formats its text and its items.
pub(crate) trait Listed: Send + Sync {
    fn len(&self) -> usize;

    /// Formats the text of the program; the complete text if `all` is true.
    fn text(&self, all: bool) -> String;

    fn json(&self, most: usize) -> Result<String, Failure>;
}

impl Listed for Derivation {
    fn len(&self) -> usize {
        self.steps.len()
    }

    fn text(&self, all: bool) -> String {
        report::why_text(self, all)
    }

    fn json(&self, most: usize) -> Result<String, Failure> {
        failure::json(&self.steps.iter().take(most).collect::<Vec<_>>())
    }
}

/// Differences between two models, with the names of their files.
pub(crate) struct Differences {
    pub(crate) diff: Diff,
    pub(crate) files: [String; 2],
}

impl Listed for Differences {
    fn len(&self) -> usize {
        self.diff.changes.len()
    }

    fn text(&self, all: bool) -> String {
        let [before, after] = self.files.each_ref().map(AsRef::as_ref);
        report::diff_text(&self.diff, before, after, all)
    }

    fn json(&self, most: usize) -> Result<String, Failure> {
        failure::json(&self.diff.changes.iter().take(most).collect::<Vec<_>>())
    }
}

#[pymethods]
impl Answer {
    fn __len__(&self) -> usize {
        self.0.len()
    }

    fn text(&self, py: Python<'_>, all: bool) -> String {
        py.detach(|| self.0.text(all))
    }

    fn json(&self, py: Python<'_>, most: Option<usize>) -> PyResult<String> {
        py.detach(|| self.0.json(most.unwrap_or(usize::MAX))).map_err(|failure| failure.raise(py))
    }
}
