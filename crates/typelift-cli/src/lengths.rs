//! Lengths that fit, as JSON and as text.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Serialize;
use typelift::findings::LayerRef;
use typelift::span::Lines;
use typelift::symbols::{Constraint, Noticed, Reason, Symbol};
use typelift::{Model, Shapes};

use crate::gate::Clean;
use crate::listing::Types;

/// Types with symbols, constraints and dimensions as JSON.
#[derive(Serialize)]
pub(crate) struct Document<'a> {
    #[serde(flatten)]
    types: Types<'a>,
    symbols: BTreeMap<&'a str, SymbolEntry<'a>>,
    constraints: Vec<ConstraintEntry>,
    tensors: BTreeMap<String, Vec<String>>,
}

#[derive(Serialize)]
struct SymbolEntry<'a> {
    axes: Vec<(&'a str, usize)>,
    name: &'a str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    because: Vec<ReasonEntry>,
}

#[derive(Serialize)]
struct ConstraintEntry {
    expression: String,
    because: Vec<ReasonEntry>,
    at: &'static str,
}

#[derive(Serialize)]
struct ReasonEntry {
    layer: LayerRef,
    line: usize,
    column: usize,
}

fn reasons(reasons: &[Reason], lines: &Lines) -> Vec<ReasonEntry> {
    let entry = |reason: &Reason| {
        let (line, column) = lines.line_column(reason.span.start);
        ReasonEntry { layer: reason.layer.clone(), line, column }
    };
    reasons.iter().map(entry).collect()
}

/// Returns the document of a model.
pub(crate) fn document<'a>(types: Types<'a>, model: &Model, shapes: &'a Shapes) -> Document<'a> {
    let lines = Lines::new(model.source().clone());
    let symbol = |symbol: &'a Symbol| {
        let because = reasons(symbol.because(), &lines);
        (symbol.id(), SymbolEntry { axes: symbol.named_axes().collect(), name: symbol.name(), because })
    };
    let constraint = |constraint: &Constraint| ConstraintEntry {
        expression: constraint.to_string(),
        because: reasons(constraint.because(), &lines),
        at: match constraint.at {
            Noticed::Load => "load",
            Noticed::Run => "run",
        },
    };
    let mut tensors = BTreeMap::new();
    for layer in model.graph().layers() {
        for port in 0..layer.outputs().len() {
            if let Some(dims) = shapes.dims(layer.id().output(port)) {
                tensors.insert(format!("{}.{port}", layer.name()), dims);
            }
        }
    }
    Document {
        types,
        symbols: shapes.symbols().iter().map(symbol).collect(),
        constraints: shapes.constraints().iter().map(constraint).collect(),
        tensors,
    }
}

/// Returns the inputs with their symbols, the constraints with their reasons, and each tensor on a line.
pub(crate) fn text(model: &Model, shapes: &Shapes) -> String {
    let mut out = String::new();
    for constraint in shapes.constraints() {
        let _ = writeln!(out, "{}", constraint.named());
    }
    for layer in model.graph().layers().filter(|layer| !layer.outputs().is_empty()) {
        let outputs = layer.outputs().iter().enumerate().map(|(port, output)| {
            let dims = shapes.named_dims(layer.id().output(port)).map_or("...".to_owned(), |dims| dims.join(", "));
            format!("{}[{dims}]", output.element_type())
        });
        let _ = writeln!(out, "{}: {}", Clean(layer.name()), outputs.collect::<Vec<_>>().join(", "));
    }
    out
}
