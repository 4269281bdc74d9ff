//! `typelift stats`: what a model consists of.

use anstyle::Style;
use serde::Serialize;
use typelift::diagnostic::grouped;
use typelift::stats::{Stats, Tensor, TypeCount};

use crate::batch::{Frame, Inputs};
use crate::columns::{Columns, Side, count};
use crate::failure::Failure;
use crate::findings;
use crate::input::Input;
use crate::listing::Clean;
use crate::remedy::Fixes;
use crate::render::{self, Show};
use crate::status::Status;
use crate::terminal::{self, Format, Page, Terminal};

/// Count what a model consists of
///
/// Its inputs and outputs with their types, the bytes of its weights by element type, how many of them are stored narrower
/// than they are computed with, such as f16 after a Convert to f32, and its tensors and operations by element type. Bodies
/// are included. Types are the inferred ones.
///
/// Several models are counted in parallel and reported in order. A directory means every .xml file below it.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  typelift stats model.xml
  typelift stats models
  typelift stats --format json model.xml | jq '.weights[] | {element_type, bytes}'")]
pub(crate) struct Args {
    #[command(flatten)]
    inputs: Inputs,
    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

/// What a model consists of, as JSON has it.
#[derive(Serialize)]
struct Document<'a> {
    file: &'a str,
    #[serde(flatten)]
    stats: &'a Stats,
}

pub(crate) fn run(args: &Args, terminal: &mut Terminal) -> Result<Status, Failure> {
    terminal.answers_in_json = args.format == Format::Json;
    let batch = args.inputs.find(None, None, &[])?;
    let frame = match (args.format, batch.single()) {
        (Format::Json, None) => Frame::ARRAY,
        _ => Frame::PARAGRAPHS,
    };
    let outcomes = batch.each(&frame, terminal, |input, page| args.count(input, page))?;
    if batch.single().is_none() {
        let with_errors = outcomes.done.iter().filter(|faulty| **faulty).count();
        let files = [(outcomes.done.len() - with_errors, "counted"), (with_errors, "with errors")];
        terminal.say(&format!("{}\n", outcomes.summary(&files)));
    }
    Ok(outcomes.status(|faulty| *faulty))
}

impl Args {
    /// Counts what one model consists of; says whether it has errors.
    fn count(&self, input: &Input, page: &mut Page) -> Result<bool, Failure> {
        let loaded = input.load()?;
        page.said = render::text(&loaded.diagnostics, &Fixes::default(), Show::Briefly);
        let (file, stats) = (&loaded.diagnostics.file, loaded.model.as_ref().map(typelift::stats));
        match (self.format, &stats) {
            (Format::Json, Some(stats)) => page.printed = terminal::json(&Document { file, stats })?,
            (Format::Json, None) => page.printed = findings::refused(&loaded.diagnostics)?,
            (Format::Text, Some(stats)) => page.printed = text(file, stats),
            (Format::Text, None) => {}
        }
        page.styled = self.format == Format::Text;
        Ok(loaded.diagnostics.has_errors())
    }
}

const HEAD: Style = Style::new().bold();
const PLAIN: Style = Style::new();
const FAINT: Style = Style::new().dimmed();

pub(crate) fn text(file: &str, stats: &Stats) -> String {
    let mut text = format!("{HEAD}{}{HEAD:#}: ", Clean(file));
    if !stats.name.is_empty() {
        text += &format!("{}, ", Clean(&stats.name));
    }
    text += &format!("IR version {}, {}", stats.version, count(stats.layers, "layer"));
    if stats.bodies > 0 {
        text += &format!(" in the graph and {}", count(stats.bodies, "body"));
    }
    text + "\n" + &ends(stats) + &weights(stats) + &decompressed(stats) + &operations(stats)
}

fn ends(stats: &Stats) -> String {
    let mut columns = Columns::new([Side::Left, Side::Left, Side::Left]);
    let mut part = |title: &str, ends: &[Tensor]| {
        for (at, Tensor { name, element_type, shape }) in ends.iter().enumerate() {
            let title = if at == 0 { title } else { "" };
            columns.push(PLAIN, [title.to_owned(), Clean(name).to_string(), format!("{element_type}{shape}")]);
        }
    };
    part("inputs", &stats.inputs);
    part("outputs", &stats.outputs);
    "\n".to_owned() + &columns.print()
}

/// `84.1 %` of the bytes.
fn share(bytes: u64, stats: &Stats) -> String {
    format!("{:.1} %", 100.0 * bytes as f64 / stats.weight_bytes.max(1) as f64)
}

fn weights(stats: &Stats) -> String {
    if stats.weights.is_empty() {
        return String::new();
    }
    let mut columns = Columns::new([Side::Left, Side::Right, Side::Right, Side::Right, Side::Right]);
    columns.push(HEAD, ["weights", "constants", "values", "bytes", ""].map(str::to_owned));
    for weight in &stats.weights {
        let numbers = [weight.constants as u64, weight.values, weight.bytes].map(grouped);
        let [constants, values, bytes] = numbers;
        columns.push(PLAIN, [weight.element_type.to_string(), constants, values, bytes, share(weight.bytes, stats)]);
    }
    if stats.weights.len() > 1 {
        let sum = |of: fn(&typelift::stats::Weight) -> u64| grouped(stats.weights.iter().map(of).sum());
        let all = [sum(|weight| weight.constants as u64), sum(|weight| weight.values), sum(|weight| weight.bytes)];
        let [constants, values, bytes] = all;
        columns.push(FAINT, ["all".to_owned(), constants, values, bytes, String::new()]);
    }
    "\n".to_owned() + &columns.print()
}

fn decompressed(stats: &Stats) -> String {
    if stats.decompressed.is_empty() {
        return String::new();
    }
    let mut columns = Columns::new([Side::Left, Side::Left, Side::Right, Side::Right, Side::Right]);
    columns.push(HEAD, ["stored as", "computed as", "constants", "bytes", ""].map(str::to_owned));
    for found in &stats.decompressed {
        let (from, to) = (found.from.to_string(), found.to.to_string());
        let (constants, bytes) = (grouped(found.constants as u64), grouped(found.bytes));
        columns.push(PLAIN, [from, to, constants, bytes, share(found.bytes, stats)]);
    }
    "\n".to_owned() + &columns.print()
}

fn operations(stats: &Stats) -> String {
    let mut columns = Columns::new([Side::Left, Side::Right, Side::Left]);
    columns.push(HEAD, ["operations", "layers", "element types"].map(str::to_owned));
    for operation in &stats.operations {
        let name = Clean(&operation.ty).to_string();
        columns.push(PLAIN, [name, grouped(operation.count as u64), types(&operation.element_types)]);
    }
    let tensors: usize = stats.tensors.iter().map(|of| of.count).sum();
    columns.push(FAINT, ["tensors".to_owned(), grouped(tensors as u64), types(&stats.tensors)]);
    "\n".to_owned() + &columns.print()
}

/// `f32 70, i64 3`
fn types(counts: &[TypeCount]) -> String {
    let counts = counts.iter().map(|of| format!("{} {}", of.element_type, grouped(of.count as u64)));
    counts.collect::<Vec<_>>().join(", ")
}
