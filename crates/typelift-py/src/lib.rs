//! The native module `typelift._typelift` of the Python package `typelift`. Findings, changes and reports are passed as
//! JSON; the package turns them into dataclasses.

mod answer;
mod arrays;
mod blocks;
mod comparison;
mod failure;
mod graph;
mod layer;
mod model;
mod report;
mod rules;
mod state;
mod types;
mod work;

use std::ffi::OsString;

use pyo3::prelude::*;

use crate::answer::{Answer, Differences};
use crate::blocks::Blocks;
use crate::failure::Failure;
use crate::graph::Graph;
use crate::layer::Layer;
use crate::model::{Model, fix};
use crate::report::Report;
use crate::rules::{Spec, explain_rule, rewrite};
use crate::work::watch;

/// The native part of typelift.
#[pymodule]
mod _typelift {
    #[pymodule_export]
    use super::{
        Answer, Blocks, Graph, Layer, Model, Report, begin, check_rule, diff, explain, explain_rule, fix, promote,
        promotion_tables, rewrite, rule_sets, run, verify, watch,
    };

    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}

/// Runs the program with these arguments, its name first, and returns its exit status.
#[pyfunction]
fn run(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    py.detach(|| typelift_cli::run(arguments))
}

/// Runs two models, or one in two ways, with options as a JSON object: the report as JSON and as text.
#[pyfunction]
fn verify(
    py: Python<'_>,
    a: &Bound<'_, Model>,
    b: Option<&Bound<'_, Model>>,
    options: &str,
) -> PyResult<(String, String)> {
    comparison::verify(py, a, b, options)
}

/// Begins a batch of edits of a model.
#[pyfunction]
fn begin(model: &Bound<'_, Model>) -> Graph {
    Graph::begin(model)
}

/// Parses a rule to check its syntax.
#[pyfunction]
fn check_rule(py: Python<'_>, rule: Spec) -> PyResult<()> {
    rule.check().map_err(|failure| failure.raise(py))
}

#[pyfunction]
fn promote(
    py: Python<'_>,
    operands: Vec<String>,
    rules: &str,
    operation: &str,
    settings: Vec<(String, String)>,
) -> PyResult<String> {
    let operands: Vec<_> = operands.iter().map(String::as_str).collect();
    typelift_cli::report::promotion(&operands, rules, operation, &settings)
        .map_err(|refusal| Failure::Value(refusal.to_string()).raise(py))
}

#[pyfunction]
fn promotion_tables(
    py: Python<'_>,
    rules: &str,
    operation: &str,
    settings: Vec<(String, String)>,
) -> PyResult<Vec<(String, Vec<Vec<String>>)>> {
    typelift_cli::report::promotion_tables(rules, operation, &settings)
        .map_err(|refusal| Failure::Value(refusal.to_string()).raise(py))
}

#[pyfunction]
fn rule_sets(operation: &str) -> Vec<&'static str> {
    let all = typelift::promote::RuleSet::all();
    all.filter(|rules| rules.operation(operation).is_some()).map(|rules| rules.name()).collect()
}

/// Explains a finding; without a code, lists all codes with a line on each.
#[pyfunction]
fn explain(py: Python<'_>, code: Option<&str>) -> PyResult<String> {
    typelift_cli::report::explanation(code).map_err(|refusal| Failure::Value(refusal.to_string()).raise(py))
}

/// Compares two models.
#[pyfunction]
fn diff(py: Python<'_>, before: &Bound<'_, Model>, after: &Bound<'_, Model>, ignore: Vec<String>) -> PyResult<Answer> {
    let (first, second) = (before.get().state(), after.get().state());
    let diff = work::run(py, move |_| {
        let mut diff = typelift::diff(&first.model, &second.model);
        diff.changes.retain(|change| {
            let kind = serde_json::to_value(change.kind).unwrap_or_default();
            !ignore.iter().any(|ignored| kind == ignored.as_str())
        });
        Ok(Differences { diff, files: [first.file.clone(), second.file.clone()] })
    });
    diff.map(Answer::new)
}
