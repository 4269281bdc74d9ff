//! `typelift stats`: prints the statistics of a model.

mod screen;

use std::collections::BTreeMap;

use serde::Serialize;
use typelift::Shapes;
use typelift::explain::blocks::Blocks;
use typelift::explain::map::{PrecisionMap, Row};
use typelift::explain::{Stats, Tensor, TypeCount, Weight};
use typelift::findings::{FileName, Voice, grouped};
use typelift::shape::{Dim, Formulas};
use typelift_run::execution::Ran;

use crate::batch::{ARRAY, Inputs, PARAGRAPHS};
use crate::columns::Side::{Left, Right};
use crate::columns::{Columns, FAINT, HEAD, PLAIN, count};
use crate::document::Asked;
use crate::failure::Failure;
use crate::findings;
use crate::fit::{self, ShortNames};
use crate::gate::Clean;
use crate::input::{self, Input, parse_at};
use crate::ran::{self, AnswerArgs};
use crate::render::{self, Show};
use crate::status::Status;
use crate::terminal::{self, Format, Page, Terminal};

/// Print statistics of a model
///
/// Prints one screen: totals, the blocks with equal neighbours in one line, the largest constants and tensors, and the
/// operations. `--all` also lists every input and output, data paths of weights, possible losses, and all counts by
/// element type. Bodies are included. Types are the inferred ones.
///
/// Several models are processed in parallel and reported in order. A directory means every .xml file below it.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  typelift stats model.xml
  typelift stats models
  typelift stats --format json model.xml | jq '.weights[] | {element_type, bytes}'")]
pub(crate) struct Args {
    #[command(flatten)]
    inputs: Inputs,
    /// List everything, not only what fits one screen
    #[arg(long)]
    all: bool,
    /// Also count multiply-adds and bytes of state at this length, such as seq=128; repeatable. A length is named as in
    /// `infer --shapes`; `past` is that of the state
    #[arg(long, value_name = "NAME=N", value_parser = parse_at)]
    at: Vec<(String, Dim)>,
    #[command(flatten)]
    answer: AnswerArgs,
}

#[derive(Serialize)]
struct Document<'a> {
    file: FileName<'a>,
    #[serde(flatten)]
    stats: &'a Stats,
    map: &'a [Row],
    blocks: &'a Blocks,
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<&'a AtLengths>,
    /// The graph that a plugin ran; the first one for several files.
    #[serde(skip_serializing_if = "Option::is_none")]
    ran: Option<&'a Ran>,
}

#[derive(Serialize)]
struct AtLengths {
    lengths: BTreeMap<String, i64>,
    macs: Option<i64>,
    state_bytes: Option<i64>,
}

pub(crate) fn run(args: &Args, terminal: &mut Terminal) -> Result<Status, Failure> {
    terminal.answers_in_json = args.answer.format == Format::Json;
    let batch = args.inputs.find(None, &[], &[])?;
    args.answer.ran.check(batch.single().is_some())?;
    let frame = match (args.answer.format, batch.single()) {
        (Format::Json, None) => ARRAY,
        _ => PARAGRAPHS,
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
    /// Evaluates the formulas at the lengths of `--at`. A length that is not given must not matter.
    fn at_lengths(&self, shapes: &Shapes, formulas: &mut Formulas<'_>) -> Result<Option<AtLengths>, Failure> {
        if self.at.is_empty() {
            return Ok(None);
        }
        let (macs, state) = (formulas.macs(), formulas.state());
        let names = &formulas.names;
        let mut lengths = vec![None; names.len()];
        for (name, length) in &self.at {
            let found = shapes.symbols_of(name);
            let is_meant = |known: &str| known == name || found.iter().any(|symbol| symbol.name == known);
            if !names.iter().any(|known| is_meant(known)) {
                return Err(input::no_length(name, &names.iter().map(|it| &**it).collect::<Vec<_>>()));
            }
            for (_, own) in names.iter().zip(&mut lengths).filter(|(known, _)| is_meant(known)) {
                *own = length.value();
            }
        }
        let [macs, state_bytes] = [macs, state].map(|formula| formulas.at(&formula?, &lengths));
        let given = names.iter().zip(&lengths).filter_map(|(name, length)| Some((name.clone(), (*length)?)));
        Ok(Some(AtLengths { lengths: given.collect(), macs, state_bytes }))
    }

    /// Prints the statistics of one model, and returns true if it has errors.
    fn count(&self, input: &Input, page: &mut Page) -> Result<bool, Failure> {
        let loaded = input.load()?;
        page.said = render::text(&loaded.diagnostics, Voice::Shell(None), Show::Briefly);
        let file = &loaded.diagnostics.file;
        match (self.answer.format, &loaded.model) {
            (_, Some(model)) => {
                let shapes = typelift::shapes(model);
                let mut formulas = Formulas::new(model, &shapes);
                let stats = typelift::stats_with(model, &mut formulas);
                let map = PrecisionMap::new(model, &loaded.diagnostics.list).rows;
                let at = self.at_lengths(&shapes, &mut formulas)?;
                let runs = self.answer.ran.read(model)?;
                page.printed = match self.answer.format {
                    Format::Json => {
                        let mut blocks = Blocks::new(model);
                        blocks.add_formulas(model, &mut formulas);
                        let (at, ran) = (at.as_ref(), runs.first());
                        terminal::json(&Document {
                            file: FileName(file),
                            stats: &stats,
                            map: &map,
                            blocks: &blocks,
                            at,
                            ran,
                        })?
                    }
                    Format::Text if self.all => text(file, &stats, &map),
                    Format::Text => {
                        let names = (ShortNames::of([model]), screen::Ends::new(model, &shapes));
                        screen::text(file, &stats, &map, &names, at.as_ref())
                    }
                };
                if self.answer.format == Format::Text {
                    page.printed.extend(runs.iter().map(|run| ran::text(file, run)));
                    page.printed.extend(runs.windows(2).map(|pair| ran::compared(&pair[0], &pair[1])));
                }
            }
            (Format::Json, None) => page.printed = findings::refused(&loaded.diagnostics)?,
            (Format::Text, None) => {}
        }
        page.styled = self.answer.format == Format::Text;
        Ok(loaded.diagnostics.has_errors())
    }
}

pub(crate) fn answer(asked: &Asked<'_>) -> Result<(String, String), Failure> {
    let (stats, map) = (typelift::stats(asked.model), PrecisionMap::new(asked.model, asked.found).rows);
    Ok((text(asked.file, &stats, &map), serde_json::to_string(&(stats, map))?))
}

fn text(file: &str, stats: &Stats, map: &[Row]) -> String {
    headline(file, stats)
        + "\n"
        + &ends(stats)
        + &metadata(stats)
        + &weights(stats)
        + &decompressed(stats)
        + &schemes(stats)
        + &blocks(map, &(0..map.len()).collect::<Vec<_>>(), notes)
        + &operations(stats)
}

/// Formats `model.xml: llama, IR version 11, 482 layers`.
fn headline(file: &str, stats: &Stats) -> String {
    let mut text = format!("{HEAD}{}{HEAD:#}: ", Clean(file));
    if !stats.name.is_empty() {
        text += &format!("{}, ", Clean(&stats.name));
    }
    text += &format!("IR version {}, {}", stats.version, count(stats.layers, "layer"));
    if stats.bodies > 0 {
        text += &format!(" in the graph and {}", count(stats.bodies, "body"));
    }
    text
}

/// Formats a line for each chosen row of the map, with its share of the stored bytes as a bar, its notes below, and all
/// rows added up at the end.
fn blocks(map: &[Row], chosen: &[usize], notes: fn(&Row) -> Vec<String>) -> String {
    let all: u64 = map.iter().map(stored_bytes).sum();
    let mut columns =
        Columns::headed([Left, Right, Left, Left, Left], ["blocks", "layers", "", "stored bytes", "computed tensors"]);
    let names = chosen.iter().map(|&at| {
        let Row { path, name, blocks, .. } = &map[at];
        let path = if path.is_empty() { String::new() } else { format!("{path}/") };
        let run = if *blocks > 1 { format!(" ({blocks})") } else { String::new() };
        Clean(&format!("{path}{name}{run}")).to_string()
    });
    for (&at, name) in chosen.iter().zip(fit::blocks(names.collect())) {
        let row = &map[at];
        let stored = row.weights.iter().map(|weight| format!("{} {}", weight.element_type, grouped(weight.bytes)));
        let stored = stored.collect::<Vec<_>>().join(", ");
        let bar = if map.len() > 1 { bar(stored_bytes(row) as f64 / all.max(1) as f64) } else { String::new() };
        columns.push(PLAIN, [name, grouped(row.layers as u64), bar, stored, types(&row.computed)]);
    }
    if map.len() > 1 {
        let layers = map.iter().map(|row| row.layers as u64).sum();
        columns.push(FAINT, ["all".to_owned(), grouped(layers), String::new(), grouped(all), String::new()]);
    }
    let mut text = String::from("\n");
    for (row, line) in columns.lines().enumerate() {
        text += &line;
        let at = row.checked_sub(1).and_then(|row| chosen.get(row));
        for note in at.map(|&at| notes(&map[at])).unwrap_or_default() {
            text += &format!("{FAINT}{}{FAINT:#}\n", fit::hanging(&format!("    {note}"), 8));
        }
    }
    text
}

fn stored_bytes(row: &Row) -> u64 {
    row.weights.iter().map(|weight| weight.bytes).sum()
}

/// Draws a share of one, in eighths of a character.
fn bar(share: f64) -> String {
    let eighths = (share * 8.0 * BAR as f64).round() as usize;
    let rest = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"][eighths % 8];
    "█".repeat(eighths / 8) + rest
}

/// The characters of a whole bar.
const BAR: usize = 8;

const MOST_PATHS: usize = 4;

fn notes(row: &Row) -> Vec<String> {
    // A weight that is used in its stored type needs no line.
    let changing: Vec<_> = row.paths.iter().filter(|path| path.types.len() > 1).collect();
    let paths = changing.iter().take(MOST_PATHS);
    let mut notes: Vec<_> = paths
        .map(|path| {
            let scheme = path.scheme.map_or_else(String::new, |scheme| format!(" ({scheme})"));
            let types: String = path.types.iter().map(|ty| format!("{ty} → ")).collect();
            format!("{} × {types}{}{scheme}", grouped(path.constants as u64), path.operation)
        })
        .collect();
    if changing.len() > MOST_PATHS {
        notes.push(format!("{} more data paths", changing.len() - MOST_PATHS));
    }
    notes.extend(row.lossy.iter().map(|lossy| {
        format!("{} from {} to {}: {}", count(lossy.count, "Convert"), lossy.from, lossy.to, lossy.loses)
    }));
    let counts = [(row.marks, "layer"), (row.errors, "error"), (row.warnings, "warning")];
    let counted = counts.into_iter().filter(|(number, _)| *number > 0).map(|(number, what)| match what {
        "layer" => format!("{} with a mark that keeps precision", count(number, what)),
        _ => count(number, what),
    });
    notes.extend(counted);
    notes.extend(differences(row));
    notes
}

/// Describes how a block differs from its siblings.
fn differences(row: &Row) -> Vec<String> {
    if row.differs.is_empty() { Vec::new() } else { vec![row.differs.join("; ")] }
}

fn ends(stats: &Stats) -> String {
    let mut columns = Columns::new([Left, Left, Left]);
    for (title, ends) in [("inputs", &stats.inputs), ("outputs", &stats.outputs)] {
        for (at, Tensor { name, element_type, shape, .. }) in ends.iter().enumerate() {
            let title = if at == 0 { title } else { "" };
            columns.push(PLAIN, [title.to_owned(), Clean(name).to_string(), format!("{element_type}{shape}")]);
        }
    }
    "\n".to_owned() + &columns.print()
}

/// The most characters of a value in the list of metadata.
const MOST_OF_VALUE: usize = 60;

fn metadata(stats: &Stats) -> String {
    if stats.metadata.is_empty() {
        return String::new();
    }
    let mut columns = Columns::new([Left, Left]);
    columns.push(HEAD, ["metadata", stats.made_by.as_deref().unwrap_or_default()].map(|it| Clean(it).to_string()));
    for (path, value) in &stats.metadata {
        let rest = if value.chars().count() > MOST_OF_VALUE { "…" } else { "" };
        let value: String = value.chars().take(MOST_OF_VALUE).collect();
        columns.push(PLAIN, [Clean(path).to_string(), Clean(&(value + rest)).to_string()]);
    }
    "\n".to_owned() + &columns.print()
}

/// Formats the share of bytes: `84.1 %`.
fn share(bytes: u64, stats: &Stats) -> String {
    format!("{:.1} %", 100.0 * bytes as f64 / stats.weight_bytes.max(1) as f64)
}

fn weights(stats: &Stats) -> String {
    if stats.weights.is_empty() {
        return String::new();
    }
    let mut columns =
        Columns::headed([Left, Right, Right, Right, Right], ["weights", "constants", "values", "bytes", ""]);
    for weight in &stats.weights {
        let [constants, values, bytes] = numbers(weight).map(grouped);
        columns.push(PLAIN, [weight.element_type.to_string(), constants, values, bytes, share(weight.bytes, stats)]);
    }
    if stats.weights.len() > 1 {
        let sums = [0, 1, 2].map(|column| stats.weights.iter().map(|weight| numbers(weight)[column]).sum());
        let [constants, values, bytes] = sums.map(grouped);
        columns.push(FAINT, ["all".to_owned(), constants, values, bytes, String::new()]);
    }
    "\n".to_owned() + &columns.print()
}

fn numbers(weight: &Weight) -> [u64; 3] {
    [weight.constants as u64, weight.values, weight.bytes]
}

fn decompressed(stats: &Stats) -> String {
    if stats.decompressed.is_empty() {
        return String::new();
    }
    let mut columns =
        Columns::headed([Left, Left, Right, Right, Right], ["stored as", "computed as", "constants", "bytes", ""]);
    for found in &stats.decompressed {
        let (from, to) = (found.from.to_string(), found.to.to_string());
        let (constants, bytes) = (grouped(found.constants as u64), grouped(found.bytes));
        columns.push(PLAIN, [from, to, constants, bytes, share(found.bytes, stats)]);
    }
    "\n".to_owned() + &columns.print()
}

/// The ways in which constants are quantized, and the number of quantized activations.
fn schemes(stats: &Stats) -> String {
    let mut text = String::new();
    if !stats.schemes.is_empty() || !stats.simulated.is_empty() {
        let mut columns = Columns::headed([Left, Right, Right, Right], ["quantized", "constants", "bytes", ""]);
        let codes = stats.schemes.iter().map(|it| (it.scheme.to_string(), it.constants, it.bytes));
        let floats = stats.simulated.iter().map(|it| (it.quantization.to_string(), it.constants, it.bytes));
        for (scheme, constants, bytes) in codes.chain(floats) {
            columns.push(PLAIN, [scheme, grouped(constants as u64), grouped(bytes), share(bytes, stats)]);
        }
        text += &format!("\n{}", columns.print());
    }
    if stats.quantized_activations > 0 {
        text += &format!("{} with an 8-bit FakeQuantize\n", count(stats.quantized_activations, "activation"));
    }
    text
}

fn operations(stats: &Stats) -> String {
    let mut columns = Columns::headed([Left, Right, Left], ["operations", "layers", "element types"]);
    for operation in &stats.operations {
        let name = Clean(&operation.ty).to_string();
        columns.push(PLAIN, [name, grouped(operation.count as u64), types(&operation.element_types)]);
    }
    let tensors: usize = stats.tensors.iter().map(|of| of.count).sum();
    columns.push(FAINT, ["tensors".to_owned(), grouped(tensors as u64), types(&stats.tensors)]);
    "\n".to_owned() + &columns.print()
}

/// Formats `f32 70, i64 3`.
fn types(counts: &[TypeCount]) -> String {
    let counts = counts.iter().map(|of| format!("{} {}", of.element_type, grouped(of.count as u64)));
    counts.collect::<Vec<_>>().join(", ")
}
