//! Failures, and the Python exceptions that they become.

use std::io;

use pyo3::exceptions::{PyOSError, PyRuntimeError};
use pyo3::prelude::*;
use serde::Serialize;
use serde_json::json;
use typelift::SaveError;
use typelift::convert::ConvertError;
use typelift::edit::inputs_outputs::InterfaceError;
use typelift::findings::{Diagnostics, Document, Voice};
use typelift::graph::FindError;
use typelift::rewrite::ScriptError;
use typelift::rewrite::notation::NotationError;
use typelift::xml::ReadError;

/// Reason why a call failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// `OSError`, with the file.
    Io {
        file: String,
        source: io::Error,
    },
    /// An `OSError` raised by typelift itself.
    File(String),
    /// A `ModelError` with a sentence and the diagnostics as JSON.
    Model {
        message: String,
        diagnostics: String,
    },
    /// A `RuleError` with the same content.
    Rule {
        message: String,
        diagnostics: String,
    },
    /// A `KeyError`: the name does not exist.
    Unknown(String),
    Value(String),
    /// A `RuntimeError`: a bug in typelift.
    Fault(String),
    /// An exception that Python code raised.
    Raised(PyErr),
}

pub(crate) fn json(value: &impl Serialize) -> Result<String, Failure> {
    serde_json::to_string(value).map_err(|error| Failure::Fault(error.to_string()))
}

impl Failure {
    /// The package defines its classes.
    pub(crate) fn raise(self, py: Python<'_>) -> PyErr {
        let of_package = |class: &str, arguments: (String, String)| {
            let exception = py.import("typelift._errors").and_then(|errors| errors.getattr(class)?.call1(arguments));
            exception.map_or_else(|error| error, PyErr::from_value)
        };
        match self {
            Self::Io { file, source } => match source.raw_os_error() {
                Some(number) => {
                    let text = source.to_string();
                    let text = text.split(" (os error").next().unwrap_or_default().to_owned();
                    PyOSError::new_err((number, text, file))
                }
                None => PyOSError::new_err(format!("{file}: {source}")),
            },
            Self::File(message) => PyOSError::new_err(message),
            Self::Model { message, diagnostics } => of_package("model_error", (message, diagnostics)),
            Self::Rule { message, diagnostics } => of_package("rule_error", (message, diagnostics)),
            Self::Unknown(message) => of_package("unknown_name", (message, String::new())),
            Self::Value(message) => of_package("value_error", (message, String::new())),
            Self::Fault(message) => PyRuntimeError::new_err(message),
            Self::Raised(error) => error,
        }
    }

    pub(crate) fn model(diagnostics: &Diagnostics) -> Self {
        Self::Model {
            message: diagnostics.to_string(),
            diagnostics: serde_json::to_string(&Document::with(diagnostics, Voice::Python(None))).unwrap_or_default(),
        }
    }

    fn rule(code: &str, text: String, message: &str, place: Option<(usize, usize)>, help: Option<&str>) -> Self {
        let (line, column) = place.unzip();
        let diagnostic = json!({
            "severity": "error", "code": code, "message": message, "layer": null, "line": line, "column": column,
            "notes": [], "help": help.into_iter().collect::<Vec<_>>(), "fix": null,
        });
        Self::Rule { message: text, diagnostics: json!({ "diagnostics": [diagnostic] }).to_string() }
    }

    /// The failure for an unknown name in a model, with a similar name if there is one.
    pub(crate) fn unknown(model: &typelift::Model, name: &str, error: &impl ToString) -> Self {
        let near = model.nearest_name(name).map(|near| format!("; did you mean `{near}`?"));
        Self::Unknown(error.to_string() + &near.unwrap_or_default())
    }

    pub(crate) fn find(model: &typelift::Model, name: &str, error: &FindError) -> Self {
        match error {
            FindError::Unknown(_) => Self::unknown(model, name, error),
            error => Self::Unknown(error.to_string()),
        }
    }
}

impl From<ReadError> for Failure {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Io { file, source } => Self::Io { file, source },
            ReadError::Model(diagnostics) => Self::model(&diagnostics),
            error => Self::Fault(error.to_string()),
        }
    }
}

impl From<SaveError> for Failure {
    fn from(error: SaveError) -> Self {
        match error {
            SaveError::Io { path, source } => Self::Io { file: path.display().to_string(), source },
            SaveError::MissingWeights(diagnostic) => {
                Self::model(&Diagnostics { list: vec![*diagnostic], ..Diagnostics::default() })
            }
            error => Self::File(error.to_string()),
        }
    }
}

impl From<InterfaceError> for Failure {
    fn from(error: InterfaceError) -> Self {
        match error {
            InterfaceError::Unknown { .. } | InterfaceError::Ambiguous { .. } => Self::Unknown(error.to_string()),
            error => Self::Value(error.to_string()),
        }
    }
}

impl From<ConvertError> for Failure {
    fn from(error: ConvertError) -> Self {
        match error {
            ConvertError::Interface(error) => error.into(),
            error @ ConvertError::Pass { .. } => Self::Fault(error.to_string()),
            error => Self::Value(error.to_string()),
        }
    }
}

impl From<NotationError> for Failure {
    fn from(error: NotationError) -> Self {
        let place = Some(error.line_column());
        Self::rule("invalid-statement", error.to_string(), &error.message, place, error.help.as_deref())
    }
}

impl From<ScriptError> for Failure {
    fn from(error: ScriptError) -> Self {
        let code = match error {
            ScriptError::Statement { .. } => "refused-statement",
            ScriptError::Unexpected { .. } => "unexpected-count",
            _ => "refused-rule",
        };
        let message = error.to_string();
        Self::rule(code, message.clone(), &message, None, None)
    }
}
