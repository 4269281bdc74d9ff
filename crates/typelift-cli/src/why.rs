//! `typelift why`: where an element type comes from.

use std::collections::HashSet;
use std::fmt::Write as _;

use typelift::why::{Derivation, Rule, Source, Step};

use crate::Status;
use crate::failure::Failure;
use crate::input::{self, Input};
use crate::listing::Clean;
use crate::remedy::Fixes;
use crate::render::{self, Show};
use crate::terminal::Terminal;

/// How many lines text output shows; JSON has all.
const MOST_LINES: usize = 200;
/// How many sources are named.
const MOST_SOURCES: usize = 8;

/// Tell how a tensor came to its element type
///
/// From the tensor back through each rule that was applied, to the Parameters, constants and attributes that decide, with
/// their lines in the file. What several tensors come from is shown once.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  typelift why model.xml logits
  typelift why --format json model.xml encoder/add_3")]
pub(crate) struct Args {
    #[command(flatten)]
    input: Input,
    /// The name of a layer, whose first output is meant, or of a tensor
    #[arg(value_name = "LAYER_OR_TENSOR")]
    name: String,
    /// Text, or one JSON document
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    Text,
    Json,
}

pub(crate) fn run(args: &Args, terminal: &mut Terminal) -> Result<Status, Failure> {
    let mut loaded = args.input.read()?;
    let diagnostics = &mut loaded.diagnostics;
    if let Some(model) = &mut loaded.model {
        input::infer(model, diagnostics, &[], None);
    }
    terminal.say(&render::text(diagnostics, &Fixes::default(), Show::Briefly));
    let Some(model) = &loaded.model else { return Ok(Status::Faulty) };
    let derivation = typelift::why(model, &args.name).map_err(|error| {
        let failure = Failure::new(error.to_string());
        match input::nearest_name(model, &args.name) {
            Some(near) => failure.help(format!("did you mean `{near}`?")),
            None => failure.help("`typelift show` lists the layers"),
        }
    })?;
    match args.format {
        Format::Json => terminal.print_json(&derivation)?,
        Format::Text => terminal.print(&text(&derivation))?,
    }
    Ok(Status::of(diagnostics.has_errors()))
}

/// The derivation as a tree, a line a step, and the sources below it.
fn text(derivation: &Derivation) -> String {
    let mut lines = Vec::new();
    let mut shown = HashSet::new();
    // Steps still to print, with their depth and the input by which they enter the step above, last one first.
    let mut pending = vec![(0, Source { input: None, step: 0 }, false)];
    while let Some((depth, source, branching)) = pending.pop() {
        let Some(step) = derivation.steps.get(source.step) else { continue };
        if lines.len() == MOST_LINES {
            lines.push(format!("… and more: --format json has all {} steps", derivation.steps.len()));
            break;
        }
        let mut line = "  ".repeat(depth);
        match (branching, source.input) {
            (true, Some(input)) => drop(write!(line, "input {input}: ")),
            _ if depth > 0 => line.push_str("from "),
            _ => {}
        }
        let first = shown.insert(source.step);
        let _ = write!(line, "{}", headline(step));
        if !first && !step.from.is_empty() {
            line.push_str(", as above");
            lines.push(line);
            continue;
        }
        let _ = write!(line, ": {}", Clean(&step.rule.to_string()));
        lines.push(line);
        // A chain stays at its depth; where it parts it goes deeper.
        let parts = step.from.len() > 1;
        let depth = depth + usize::from(parts || depth == 0);
        pending.extend(step.from.iter().rev().map(|&source| (depth, source, parts)));
    }
    let mut text = lines.join("\n") + "\n";
    if derivation.steps.len() > 1 {
        text.push_str(&summary(derivation));
    }
    text
}

/// `f32[1,?] `sum` (Add 3, line 12)`
fn headline(step: &Step) -> String {
    format!("{}{} {}", step.element_type, step.shape, place(step))
}

/// `` `sum` (Add 3, line 12) ``
fn place(step: &Step) -> String {
    let mut text = format!("`{}`", Clean(&step.layer.name));
    if step.output > 0 {
        let _ = write!(text, " output {}", step.output);
    }
    let _ = write!(text, " ({} {}", Clean(&step.operation), step.layer.id);
    if !step.layer.path.is_empty() {
        let _ = write!(text, " in {}", Clean(&step.layer.path));
    }
    if let Some(line) = step.line {
        let _ = write!(text, ", line {line}");
    }
    text + ")"
}

/// Who decides in the end; for a layer that refuses its inputs, who decides each of them.
fn summary(derivation: &Derivation) -> String {
    let mut text = String::new();
    for refused in
        derivation.steps.iter().filter(|step| matches!(step.rule, Rule::Refused { .. }) && !step.from.is_empty())
    {
        let _ = writeln!(text, "to change for {}:", place(refused));
        for source in &refused.from {
            let (Some(input), Some(step)) = (source.input, derivation.steps.get(source.step)) else { continue };
            let _ = writeln!(
                text,
                "  input {input} is {} by {}",
                step.element_type,
                list(derivation.sources_of(source.step), place, ", ")
            );
        }
    }
    if text.is_empty() {
        let count = derivation.sources().count();
        let sources = if count == 1 { "source" } else { "sources" };
        let _ = writeln!(text, "decided by {count} {sources}:\n  {}", list(derivation.sources(), headline, "\n  "));
    }
    text
}

/// The first of some sources, inputs before constants: they are what one changes.
fn list<'a>(sources: impl Iterator<Item = &'a Step>, show: fn(&Step) -> String, separator: &str) -> String {
    let mut sources: Vec<&Step> = sources.collect();
    sources.sort_by_key(|step| step.operation != "Parameter");
    let more = sources.len().saturating_sub(MOST_SOURCES);
    let shown = sources.into_iter().take(MOST_SOURCES).map(show);
    shown.chain((more > 0).then(|| format!("and {more} more"))).collect::<Vec<_>>().join(separator)
}
