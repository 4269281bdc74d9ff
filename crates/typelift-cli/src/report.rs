//! Results of commands for a model in memory, without a terminal, for packages in other languages. The text has no
//! colours.

use std::fmt;
use std::path::Path;

use anstream::adapter::strip_str;
use serde::Serialize;
use typelift::Model;
use typelift::convert::Converted;
use typelift::explain::{Derivation, Diff};
use typelift::findings::{Diagnostic, Diagnostics, Document, Voice};
use typelift_run::verify::Runner;

use crate::document::Asked;
use crate::failure::Failure;
use crate::fit::ShortNames;
use crate::plan::Plan;
use crate::render::{self, Show};
use crate::{diff, dot, explain, openvino, promote, show, verify, view, why};

pub use typelift_view::Before;

pub use crate::selection::SelectionArgs;

/// Reason why a report cannot be created, with a suggestion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportError {
    /// The problem in one sentence, without a full stop.
    pub message: String,
    /// The suggested fix.
    pub help: Option<String>,
}

impl fmt::Display for ReportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        self.help.iter().try_for_each(|help| write!(f, "; {help}"))
    }
}

impl std::error::Error for ReportError {}

impl From<Failure> for ReportError {
    fn from(failure: Failure) -> Self {
        Self { message: failure.message, help: failure.help }
    }
}

/// Diagnostics as `check --format json` prints them, in the words of the Python package. With the file that the model was read from, commands that fix them are
/// named.
///
/// # Errors
/// [`ReportError`] if they cannot be printed as JSON.
pub fn findings_json(diagnostics: &Diagnostics, file: Option<&Path>) -> Result<String, ReportError> {
    json(&Document::with(diagnostics, Voice::Python(file)))
}

/// Formats diagnostics with their source, as `check --all` does.
#[must_use]
pub fn findings_text(diagnostics: &Diagnostics) -> String {
    strip_str(&render::text(diagnostics, Voice::Python(None), Show::All)).to_string()
}

/// Formats the differences between two models, as `diff` does.
#[must_use]
pub fn diff_text(diff: &Diff, before: &Path, after: &Path, all: bool) -> String {
    strip_str(&diff::text(diff, before, after, all, &ShortNames::default())).to_string()
}

/// The script that runs models on the `openvino` module: its class `Runner`.
pub const RUNNER: &str = openvino::SCRIPT;

/// Returns a runtime that starts the Python of each setting. A reply may take `seconds`.
#[must_use]
pub fn installations(seconds: u64) -> impl Runner {
    openvino::Installations::new(seconds)
}

/// Formats a comparison of two models that ran, as `verify` does.
#[must_use]
pub fn verify_text(report: &typelift_run::verify::Report) -> String {
    strip_str(&verify::text(report)).to_string()
}

/// Formats the explanation of an element type, as `why` does.
#[must_use]
pub fn why_text(derivation: &Derivation, all: bool) -> String {
    why::text(derivation, all, &ShortNames::default())
}

/// Formats the changes of a conversion: as `convert --dry-run` prints them, and as `convert --report` writes them.
///
/// # Errors
/// [`ReportError`] if it cannot be printed as JSON.
pub fn conversion(file: &str, converted: &Converted, model: &Model) -> Result<(String, String), ReportError> {
    let plan = Plan::new(file, converted.clone()).with_lines(model);
    Ok((format!("{plan}{}\n", plan.totals()), json(&plan)?))
}

/// Returns the warnings of a conversion: lost values of constants.
#[must_use]
pub fn losses(converted: &Converted, model: &Model) -> Vec<Diagnostic> {
    Plan::new("", converted.clone()).warnings(model).collect()
}

/// Returns the common type of operands, as `promote --explain --format json` prints it. Settings are options of a rule
/// set with their values, which are empty for flags.
///
/// # Errors
/// [`ReportError`] if the operands, the operation, the rule set or a setting is unknown. Operands without a common type
/// are an answer.
pub fn promotion(
    operands: &[&str],
    rules: &str,
    operation: &str,
    settings: &[(String, String)],
) -> Result<String, ReportError> {
    Ok(promote::json(operands, rules, operation, settings)?)
}

/// Returns the common types of all pairs of types, as `promote --table` prints them: tables with titles, whose first
/// row and column name the types. Settings are those of [`promotion`].
///
/// # Errors
/// [`ReportError`] if the rule set, the operation or a setting is unknown.
pub fn promotion_tables(
    rules: &str,
    operation: &str,
    settings: &[(String, String)],
) -> Result<Vec<promote::Table>, ReportError> {
    Ok(promote::tables(rules, operation, settings)?)
}

/// Returns the page that `view` draws of an inferred model, with what a check found in it and how it differs from
/// another one. A model that was not read from a file goes by its name. A page whose data would be longer than
/// `most_bytes` shows runs of layers; `None` is the limit of the program.
///
/// # Errors
/// [`ReportError`] if the model cannot be printed as JSON.
pub fn page(
    model: &Model,
    file: Option<&Path>,
    before: Option<Before<'_>>,
    found: &[Diagnostic],
    most_bytes: Option<usize>,
) -> Result<String, ReportError> {
    let extras = view::Extras { before, most_bytes, ..Default::default() };
    Ok(view::draw(model, file.unwrap_or(Path::new("-")), found, extras)?)
}

/// Returns the layers of an inferred model, as `show` prints them for scripts.
///
/// # Errors
/// [`ReportError`] if a requested name or operation does not exist.
pub fn listing(model: &Model, shown: &SelectionArgs) -> Result<String, ReportError> {
    Ok(show::text(model, &shown.find(model)?))
}

/// Returns the layers of an inferred model as a graph for Graphviz, as `show --format dot` prints them.
///
/// # Errors
/// The errors of [`listing`].
pub fn dot(model: &Model, shown: &SelectionArgs) -> Result<String, ReportError> {
    Ok(dot::print(model, &shown.find(model)?))
}

/// Returns the complete answer of a command about an inferred model, as text and as JSON. `file` is its name in the text, and
/// `found` are the findings of the reader and of inference.
///
/// # Errors
/// [`ReportError`] if no such command answers without options, or if the answer cannot be printed as JSON.
pub fn answer(command: &str, file: &str, model: &Model, found: &[Diagnostic]) -> Result<(String, String), ReportError> {
    let known = crate::ANSWERS.iter().find(|(name, _)| *name == command);
    let (_, answer) = known.ok_or_else(|| Failure::new(format!("`{command}` is not a command with one answer")))?;
    let (text, json) = answer(&Asked { file, model, found })?;
    Ok((strip_str(&text).to_string(), json))
}

/// Returns the description of a finding, as `explain` prints it; without its code, a line on each.
///
/// # Errors
/// [`ReportError`] if no finding has this code.
pub fn explanation(code: Option<&str>) -> Result<String, ReportError> {
    let code = code.map(explain::find_code).transpose().map_err(|message| ReportError { message, help: None })?;
    Ok(explain::text(code))
}

fn json(value: &impl Serialize) -> Result<String, ReportError> {
    serde_json::to_string(value).map_err(|error| ReportError { message: error.to_string(), help: None })
}
