//! Report of a conversion, formatted on demand.

use std::sync::Arc;

use pyo3::prelude::*;
use typelift::convert::Converted;
use typelift::findings::Severity;
use typelift_cli::report::{self, ReportError};

use crate::failure::Failure;
use crate::state::State;

/// Changes that a conversion made to a model.
#[pyclass(frozen, module = "typelift._typelift")]
pub(crate) struct Report {
    converted: Converted,
    /// The model after the conversion.
    state: Arc<State>,
}

fn fault(error: ReportError) -> Failure {
    Failure::Fault(error.message)
}

impl Report {
    pub(crate) fn new(converted: Converted, state: Arc<State>) -> Self {
        Self { converted, state }
    }
}

#[pymethods]
impl Report {
    fn print(&self, py: Python<'_>) -> PyResult<(String, String)> {
        py.detach(|| report::conversion(&self.state.file, &self.converted, &self.state.model))
            .map_err(|error| fault(error).raise(py))
    }

    /// `None` if nothing was to be quantized.
    fn plan(&self) -> Option<String> {
        self.converted.quantized.as_ref().map(|plan| plan.to_text())
    }

    fn warnings(&self, py: Python<'_>) -> PyResult<String> {
        py.detach(|| {
            let mut found = self.converted.found.clone();
            found.retain(|diagnostic| diagnostic.severity == Severity::Warning);
            found.extend(report::losses(&self.converted, &self.state.model));
            report::findings_json(&self.state.diagnostics(found), None).map_err(fault)
        })
        .map_err(|failure| failure.raise(py))
    }
}
