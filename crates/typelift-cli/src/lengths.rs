//! Lengths that fit, as JSON and as text.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Serialize;
use typelift::findings::{LayerRef, Lines};
use typelift::shape::{Constraint, Noticed, Reads, Reason};
use typelift::{Model, Output, Shapes};

use crate::columns::{Columns, PLAIN, Side};
use crate::document::Asked;
use crate::failure::Failure;
use crate::gate::Clean;
use crate::listing::{self, Types};

/// The most constraints that `why --shape` shows without `--all`.
const MOST_CONSTRAINTS: usize = 6;
/// The most layers of a reason that are shown without `--all`.
const MOST_LAYERS: usize = 3;

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
    #[serde(skip_serializing_if = "Option::is_none")]
    fits: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    because: Vec<ReasonEntry>,
}

#[derive(Serialize)]
struct ConstraintEntry {
    expression: String,
    named: String,
    because: Vec<ReasonEntry>,
    at: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reads: Option<String>,
}

#[derive(Serialize)]
struct ReasonEntry {
    layer: LayerRef,
    line: usize,
    column: usize,
}

/// A dimension with its origin, or a constraint, as JSON.
#[derive(Serialize)]
pub(crate) struct Answer {
    dimension: Option<usize>,
    expression: String,
    because: Vec<ReasonEntry>,
}

fn reasons(reasons: &[Reason], lines: &Lines) -> Vec<ReasonEntry> {
    let entries = reasons.iter().map(|reason| {
        let (line, column) = lines.line_column(reason.span.start);
        ReasonEntry { layer: reason.layer.clone(), line, column }
    });
    entries.collect()
}

fn when(at: Noticed) -> &'static str {
    match at {
        Noticed::Load => "load",
        Noticed::Run => "run",
    }
}

pub(crate) fn document<'a>(types: Types<'a>, model: &Model, shapes: &'a Shapes) -> Document<'a> {
    let lines = Lines::new(model.source().clone());
    let symbols = shapes.symbols.iter().map(|symbol| {
        let because = reasons(&symbol.because, &lines);
        let (axes, fits) = (symbol.named_axes().collect(), shapes.fit(symbol));
        (symbol.id.as_str(), SymbolEntry { axes, name: &symbol.name, fits, because })
    });
    let constraints = shapes.constraints.iter().map(|constraint| ConstraintEntry {
        expression: constraint.to_string(),
        named: constraint.named.to_owned(),
        because: reasons(&constraint.because, &lines),
        at: when(constraint.at),
        reads: constraint.reads.map(|reads| reads.to_string()),
    });
    let mut tensors = BTreeMap::new();
    for layer in model.graph().layers() {
        for port in 0..layer.outputs().len() {
            if let Some(dims) = shapes.dims(layer.id().output(port)) {
                tensors.insert(format!("{}.{port}", layer.name()), dims);
            }
        }
    }
    Document { types, symbols: symbols.collect(), constraints: constraints.collect(), tensors }
}

pub(crate) fn answer(asked: &Asked<'_>) -> Result<(String, String), Failure> {
    let shapes = typelift::shapes(asked.model);
    let types = listing::types(asked.file, asked.model.graph());
    Ok((text(asked.model, &shapes), serde_json::to_string(&document(types, asked.model, &shapes))?))
}

/// Formats a tensor's type with the names of symbols: `f32[batch, seq + past, 64]`.
pub(crate) fn tensor(model: &Model, shapes: &Shapes, output: Output) -> String {
    let Some(port) = model.graph().output(output) else { return String::new() };
    format!("{}{}", port.element_type(), shapes.text(output, port))
}

/// Describes the lengths that fit, for the first input that has each: `seq ≤ 512 (position table, line 40)`.
pub(crate) fn limits(shapes: &Shapes, layer: typelift::LayerId, lines: &Lines) -> String {
    let own = shapes.symbols.iter().filter(|symbol| symbol.axes.first().is_some_and(|&(id, _)| id == layer));
    let limits = own.filter_map(|symbol| {
        let (limit, constraint) = shapes.limit(symbol)?;
        let (what, source) = constraint.source()?;
        let (line, _) = lines.line_column(source.span.start);
        Some(format!("{limit} ({what}, line {line})"))
    });
    limits.collect::<Vec<_>>().join("; ")
}

/// Names shapes of the inputs that fit together, if lengths depend on each other: `a=[1,8] b=[1,8]`.
pub(crate) fn fitting(model: &Model, shapes: &Shapes) -> Option<String> {
    shapes
        .constraints
        .iter()
        .any(|it| it.symbols.len() > 1)
        .then(|| typelift::fitting_lengths(model, shapes, 8))?
        .map(|it| options(model, shapes, &it))
}

/// Formats a constraint with the layer that demands it.
fn constraint(constraint: &Constraint, lines: &Lines) -> [String; 2] {
    let because = constraint.because.first().map(|reason| place(reason, lines)).unwrap_or_default();
    let more = match (constraint.reads, constraint.at) {
        (Some(reads), _) => otherwise(reads),
        (None, Noticed::Run) => ", noticed only when it runs".to_owned(),
        (None, Noticed::Load) => String::new(),
    };
    [constraint.named.to_owned(), because + &more]
}

fn otherwise(reads: Reads) -> String {
    let verb = if reads == Reads::Zeros { "are" } else { "is" };
    format!(", else {reads} {verb} read")
}

fn place(reason: &Reason, lines: &Lines) -> String {
    let (line, _) = lines.line_column(reason.span.start);
    listing::at(&reason.layer, &reason.operation, 0, Some(line))
}

/// The inputs with their symbols, lengths that fit, the constraints with their reasons, and each tensor on a
/// line.
pub(crate) fn text(model: &Model, shapes: &Shapes) -> String {
    let lines = Lines::new(model.source().clone());
    let mut columns = Columns::new([Side::Left, Side::Left, Side::Left]);
    for (at, layer) in model.inputs().enumerate() {
        let title = if at == 0 { "inputs" } else { "" };
        let name = Clean(&model.end_name(layer)).to_string();
        let output = layer.id().output(0);
        let rank = layer.outputs().first().and_then(|port| port.shape().rank());
        let mut what = tensor(model, shapes, output);
        match (rank, limits(shapes, layer.id(), &lines)) {
            (None, _) => what += "   its rank is dynamic, so its lengths have no names",
            (_, fits) if !fits.is_empty() => what += &format!("   {fits}"),
            _ => {}
        }
        columns.push(PLAIN, [title.to_owned(), name, what]);
    }
    if shapes.symbols.is_empty() {
        columns.push(PLAIN, ["lengths", "no length of an input is open", ""].map(str::to_owned));
    } else {
        let fitting = typelift::fitting_lengths(model, shapes, 1);
        let fitting = fitting
            .map_or_else(|| "no lengths were found that fit".to_owned(), |lengths| options(model, shapes, &lengths));
        columns.push(PLAIN, ["fits".to_owned(), fitting, String::new()]);
    }
    for (at, it) in shapes.constraints.iter().enumerate() {
        let [named, because] = constraint(it, &lines);
        columns.push(PLAIN, [if at == 0 { "needs" } else { "" }.to_owned(), named, Clean(&because).to_string()]);
    }
    let mut out = columns.print() + "\n";
    for layer in model.graph().layers().filter(|layer| !layer.outputs().is_empty()) {
        let outputs = (0..layer.outputs().len()).map(|port| tensor(model, shapes, layer.id().output(port)));
        let _ = writeln!(out, "{}: {}", Clean(layer.name()), outputs.collect::<Vec<_>>().join(", "));
    }
    out
}

/// Formats the shapes of inputs with these lengths: `a=[1,8] b=[1,8]`.
fn options(model: &Model, shapes: &Shapes, lengths: &[i64]) -> String {
    let shapes = shapes.input_shapes(model, lengths);
    let named = shapes.iter().filter_map(|(id, shape)| Some((model.graph().layer(*id)?, shape)));
    named.map(|(layer, shape)| format!("{}={shape}", model.end_name(layer))).collect::<Vec<_>>().join(" ")
}

/// The constraints of a model, or the dimensions of a tensor with their origins, as JSON.
pub(crate) fn answers(model: &Model, shapes: &Shapes, tensor: Option<Output>, axis: Option<usize>) -> Vec<Answer> {
    let lines = Lines::new(model.source().clone());
    let Some(tensor) = tensor else {
        let constraints = shapes.constraints.iter().map(|constraint| Answer {
            dimension: None,
            expression: constraint.named.to_owned(),
            because: reasons(&constraint.because, &lines),
        });
        return constraints.collect();
    };
    let dims = shapes.named_dims(tensor).unwrap_or_default();
    let wanted = dims.into_iter().enumerate().filter(|(at, _)| axis.is_none_or(|axis| axis == *at));
    let answers = wanted.map(|(at, expression)| Answer {
        dimension: Some(at),
        expression,
        because: reasons(&shapes.origin(model.graph(), tensor, at), &lines),
    });
    answers.collect()
}

/// Explains the lengths of a model, or of one tensor, in a screen.
pub(crate) fn explained(
    model: &Model,
    shapes: &Shapes,
    tensor: Option<Output>,
    axis: Option<usize>,
    all: bool,
) -> String {
    let lines = Lines::new(model.source().clone());
    let mut out = String::new();
    let Some(tensor) = tensor else {
        for symbol in &shapes.symbols {
            let axes: Vec<String> = symbol.named_axes().map(|(input, axis)| format!("{input}[{axis}]")).collect();
            let fit = shapes.fit(symbol).map_or(String::new(), |fit| format!(": {fit}"));
            let _ = writeln!(out, "{}{fit}  ({})", &symbol.name, Clean(&axes.join(", ")));
        }
        out += &needs(&shapes.constraints.iter().collect::<Vec<_>>(), &lines, all);
        return if out.is_empty() { "no length of an input is open\n".to_owned() } else { out };
    };
    let Some(dims) = shapes.named_dims(tensor) else { return "the rank is dynamic\n".to_owned() };
    for (at, dim) in dims.iter().enumerate().filter(|(at, _)| axis.is_none_or(|axis| axis == *at)) {
        let open = if dim == "?" { "  (open: it depends on data or on an operation without a rule)" } else { "" };
        let _ = writeln!(out, "dimension {at} is {dim}{open}");
        out += &chain(&shapes.origin(model.graph(), tensor, at), &lines, all);
        if axis.is_some() || dims.len() == 1 {
            out += &needs(&shapes.constraints_on(tensor, at), &lines, all);
        }
    }
    out
}

fn needs(constraints: &[&Constraint], lines: &Lines, all: bool) -> String {
    let mut out = String::new();
    for constraint in constraints.iter().take(if all { usize::MAX } else { MOST_CONSTRAINTS }) {
        let more = constraint.reads.map_or_else(String::new, otherwise);
        let at = if constraint.at == Noticed::Run { "   (when it runs)" } else { "" };
        let _ = writeln!(out, "  {}{more}{at}", &constraint.named);
        out += &chain(&constraint.because, lines, all);
    }
    if constraints.len() > MOST_CONSTRAINTS && !all {
        let _ = writeln!(out, "  … and {} more: `--all` shows them", constraints.len() - MOST_CONSTRAINTS);
    }
    out
}

fn chain(reasons: &[Reason], lines: &Lines, all: bool) -> String {
    let mut out = String::new();
    let skipped = if all { 0 } else { reasons.len().saturating_sub(MOST_LAYERS + 1) };
    for (at, reason) in reasons.iter().enumerate() {
        if skipped > 0 && at == MOST_LAYERS {
            let _ = writeln!(out, "    … through {skipped} more layers");
        }
        if skipped == 0 || at < MOST_LAYERS || at + 1 == reasons.len() {
            let word = if at == 0 { "at" } else { "from" };
            let _ = writeln!(out, "    {word} {}", Clean(&place(reason, lines)));
        }
    }
    out
}
