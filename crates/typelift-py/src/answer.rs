//! Answers whose words are made when somebody reads them.

use pyo3::prelude::*;
use typelift::diff::Diff;
use typelift::why::Derivation;
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

/// What an answer is made of.
pub(crate) trait Listed: Send + Sync {
    fn len(&self) -> usize;

    /// What the program prints, or that with everything.
    fn text(&self, all: bool) -> String;

    /// The first items as JSON.
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

/// What differs between two models, of these files.
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
