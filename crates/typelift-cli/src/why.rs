//! `typelift why`: explains the source of an element type.

use std::collections::HashSet;
use std::fmt::Write as _;

use serde::Serialize;
use typelift::Model;
use typelift::explain::map::ValuePath;
use typelift::explain::{Derivation, Premise, Rule, Step};
use typelift::findings::FileName;
use typelift::graph::FindError;
use typelift::ops::LayerKind;
use typelift::promote::ElementType;
use typelift_run::execution::{Ran, RanLayer};

use crate::columns::count;
use crate::failure::Failure;
use crate::findings;
use crate::fit::ShortNames;
use crate::gate::Clean;
use crate::input::{self, Input};
use crate::lengths;
use crate::listing::{MOST_LINES, at};
use crate::ran::{self, AnswerArgs};
use crate::render;
use crate::status::Status;
use crate::terminal::{self, Format, Page, Terminal};
use crate::{paint, strip};

/// The number of sources, and of layers that refuse their inputs, that are named without `--all`.
const MOST_SOURCES: usize = 8;
const MOST_REFUSED: usize = 3;
const MOST_INDENT: usize = 16;

/// Explain where a tensor's element type comes from
///
/// Lists the Parameters, constants and attributes that decide the type, with their lines in the file. The path from the
/// tensor back to them follows, through each rule that was applied. Sources that several tensors share are shown once.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  typelift why model.xml logits
  typelift why model.xml split.1
  typelift why --path model.xml lm_head.weight
  typelift why --shape model.xml
  typelift why --all model.xml If_36/then_body/sum
  typelift why --format json model.xml encoder/add_3")]
pub(crate) struct Args {
    #[command(flatten)]
    input: Input,
    /// A tensor name, or the name or id of a layer, which means its first output; `split.1` is another output,
    /// `loop/body/x` is `x` in a body
    #[arg(value_name = "LAYER_OR_TENSOR", required_unless_present = "shape")]
    name: Option<String>,
    /// Show the data path of the value, with the loss of each Convert. It leads from where the value is stored to where
    /// it is used. The path of a weight ends at the layer that uses it; any other path starts at the nearest matrix of
    /// weights
    #[arg(long)]
    path: bool,
    /// Explain lengths instead of the type: where each comes from, why it is open, or what says which number it must be.
    /// Without a tensor, all constraints on the model's lengths
    #[arg(long, conflicts_with = "path")]
    shape: bool,
    /// With --shape, explain only the dimension of this axis
    #[arg(long, value_name = "N", requires = "shape")]
    axis: Option<usize>,
    /// Show every source and every step, not only a screen
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    answer: AnswerArgs,
}

#[derive(Serialize)]
struct Document<'a, A> {
    file: FileName<'a>,
    #[serde(flatten)]
    answer: &'a A,
    /// The result of compilation for the layer in the first run.
    #[serde(skip_serializing_if = "Option::is_none")]
    ran: Option<&'a RanLayer>,
}

pub(crate) fn run(args: &Args, terminal: &mut Terminal) -> Result<Status, Failure> {
    terminal.answers_in_json = args.answer.format == Format::Json;
    let mut loaded = args.input.read()?;
    let diagnostics = &mut loaded.diagnostics;
    if let Some(model) = &mut loaded.model {
        input::infer(model, diagnostics, &[]);
    }
    terminal.say(&render::in_one_line(diagnostics));
    let Some(model) = &loaded.model else {
        if args.answer.format == Format::Json {
            terminal.print(&findings::refused(diagnostics)?)?;
        }
        return Ok(Status::Faulty);
    };
    if let Some(name) = &args.name {
        terminal.say(&input::other_meaning(model, name));
    }
    if args.shape {
        let printed = args.lengths(model)?;
        terminal.print(&printed)?;
        return Ok(Status::of(diagnostics.has_errors()));
    }
    let names = ShortNames::of([model]);
    let name = args.name.as_deref().unwrap_or_default();
    let file = &diagnostics.file;
    let runs = args.answer.ran.read(model)?;
    let printed = if args.path {
        let path = ValuePath::new(model, name).map_err(|error| unnamed(model, name, &error))?;
        let layer = path.steps.get(path.asked).map(|step| step.layer.name.as_str());
        answer(args.answer.format, file, (&path, layer), &runs, |path| strip::text(path, args.all, &names))?
    } else {
        let derivation = typelift::why(model, name).map_err(|error| unnamed(model, name, &error))?;
        let layer = derivation.steps.first().map(|step| step.layer.name.as_str());
        answer(args.answer.format, file, (&derivation, layer), &runs, |it| text(it, args.all, &names))?
    };
    if args.answer.format == Format::Text && terminal.is_for_people() {
        let printed = paint::types(&printed);
        terminal.show(&Page { printed, styled: true, ..Page::default() })?;
    } else {
        terminal.print(&printed)?;
    }
    Ok(Status::of(diagnostics.has_errors()))
}

impl Args {
    fn lengths(&self, model: &Model) -> Result<String, Failure> {
        let tensor = self.name.as_deref().map(|name| -> Result<_, Failure> {
            let derivation = typelift::why(model, name).map_err(|error| unnamed(model, name, &error))?;
            let asked = derivation.steps.first().filter(|step| step.layer.place.is_model());
            let asked = asked.ok_or_else(|| {
                Failure::new(format!("`{name}` is in a body, whose tensors have no lengths of their own"))
                    .help("ask for an output of the layer around the body")
            })?;
            Ok(asked.layer.id.output(asked.output))
        });
        let tensor = tensor.transpose()?;
        let shapes = typelift::shapes(model);
        if let (Some(tensor), Some(axis)) = (tensor, self.axis) {
            let rank = shapes.dims(tensor).map_or(0, |dims| dims.len());
            if axis >= rank {
                return Err(Failure::new(format!("the tensor has no axis {axis}: its rank is {rank}")));
            }
        }
        match self.answer.format {
            Format::Json => {
                let answers = lengths::answers(model, &shapes, tensor, self.axis);
                Ok(serde_json::to_string_pretty(&answers)? + "\n")
            }
            Format::Text => Ok(lengths::explained(model, &shapes, tensor, self.axis, self.all)),
        }
    }
}

/// Formats an answer and what became of its layer in the runs.
fn answer<A: Serialize>(
    format: Format,
    file: &str,
    (answer, layer): (&A, Option<&str>),
    runs: &[Ran],
    text: impl Fn(&A) -> String,
) -> Result<String, Failure> {
    match format {
        Format::Json => {
            let ran = runs.first().zip(layer).and_then(|(run, layer)| run.layer(layer));
            terminal::json(&Document { file: FileName(file), answer, ran })
        }
        Format::Text => {
            let became = runs.iter().filter_map(|run| ran::of_layer(run, layer?));
            Ok(text(answer) + &became.collect::<String>())
        }
    }
}

/// The failure for a name that is not that of one tensor, with suggestions.
fn unnamed(model: &Model, name: &str, error: &FindError) -> Failure {
    let failure = Failure::new(error.to_string());
    match error {
        FindError::Ambiguous { .. } => failure.help("ask for one of them"),
        FindError::NoOutput { .. } => failure,
        _ => input::with_nearest(failure, model, name),
    }
}

/// Formats the tensor with its rule, the sources, and the path to them as a tree, one step per line.
pub(crate) fn text(derivation: &Derivation, all: bool, names: &ShortNames) -> String {
    let Some(asked) = derivation.steps.first() else { return String::new() };
    let mut text = names.fit(&(explained(asked) + "\n"));
    if derivation.steps.len() > 1 {
        text += &summary(derivation, all, names);
    }
    if derivation.steps.len() > 2 {
        text += "by way of:\n";
        let most = if all { usize::MAX } else { MOST_LINES.saturating_sub(text.lines().count() + 1) };
        text += &tree(derivation, most, names);
    }
    text
}

/// Formats the tree of a tensor's sources, each step explained once, in at most this many lines, and a line for the
/// rest.
fn tree(derivation: &Derivation, most: usize, names: &ShortNames) -> String {
    let (mut text, mut lines) = (String::new(), 0);
    let mut shown = HashSet::from([0]);
    let mut pending: Vec<_> = derivation.steps.first().map(|step| below(0, step)).into_iter().flatten().collect();
    while let Some((depth, source, branching)) = pending.pop() {
        let Some(step) = derivation.steps.get(source.step) else { continue };
        let mut line = "  ".repeat(depth.min(MOST_INDENT));
        match (branching, source.input) {
            (true, Some(input)) => drop(write!(line, "input {input}: ")),
            _ => line.push_str("from "),
        }
        let is_new = !shown.contains(&source.step);
        line += &if is_new { explained(step) } else { format!("{}, as above", headline(step)) };
        let line = names.fit(&(line + "\n"));
        lines += line.lines().count();
        if lines > most {
            let more = derivation.steps.len() - shown.len();
            text += &match more {
                0 => "… and ways to tensors that are above: `--all` shows them\n".to_owned(),
                _ => format!("… and {}: `--all` shows them\n", count(more, "more tensor")),
            };
            break;
        }
        if is_new {
            shown.insert(source.step);
            pending.extend(below(depth, step));
        }
        text += &line;
    }
    text
}

/// The sources of a step, with their depth and whether there are several, last one first.
fn below(depth: usize, step: &Step) -> impl Iterator<Item = (usize, Premise, bool)> {
    let parts = step.from.len() > 1;
    // A chain keeps its depth; a branch increases it.
    let depth = depth + usize::from(parts || depth == 0);
    step.from.iter().rev().map(move |&source| (depth, source, parts))
}

/// Formats `f32[1,?] `sum` (Add 3, line 12): the common type of inputs 0 and 1`.
fn explained(step: &Step) -> String {
    format!("{}: {}", headline(step), Clean(&step.rule.to_string()))
}

/// Formats `f32[1,?] `sum` (Add 3, line 12)`.
fn headline(step: &Step) -> String {
    format!("{}{} {}", step.element_type, step.shape, place(step))
}

/// Formats `` `sum` (Add 3, line 12) ``.
fn place(step: &Step) -> String {
    at(&step.layer, &step.operation, step.output, step.line)
}

/// Formats the decision of a source: for a promotion only its attributes, because its rule is on the path.
fn decision(step: &Step) -> String {
    match &step.rule {
        Rule::Promotion { attributes, .. } => {
            let attributes: Vec<String> = attributes.iter().map(ToString::to_string).collect();
            format!("{}: {}", headline(step), Clean(&attributes.join(", ")))
        }
        _ => explained(step),
    }
}

/// Lists the sources that decide; for layers that refuse their inputs, the sources of each.
fn summary(derivation: &Derivation, all: bool, names: &ShortNames) -> String {
    let refused = derivation.steps.iter().filter(|step| matches!(step.rule, Rule::Refused { .. }));
    let refused: Vec<&Step> = refused.filter(|step| !step.from.is_empty()).collect();
    if refused.is_empty() {
        let asked = derivation.steps.first().map_or(ElementType::Dynamic, |step| step.element_type);
        let count = derivation.sources().count();
        let sources = if count == 1 { "source" } else { "sources" };
        let mut most = if all { usize::MAX } else { MOST_SOURCES };
        loop {
            let lines = first(derivation.sources(), asked, most, decision);
            let list = names.fit(&lines.iter().map(|line| format!("  {line}\n")).collect::<String>());
            if all || most == 1 || list.lines().count() <= MOST_SOURCES + 1 {
                return format!("decided by {count} {sources}:\n{list}");
            }
            most -= 1;
        }
    }
    let mut lines = Vec::new();
    // Each search visits everything after it, so few of them are made.
    for step in refused.iter().take(MOST_REFUSED) {
        lines.push(format!("to change for {}:", place(step)));
        for source in step.from.iter().take(MOST_REFUSED) {
            let (Some(input), Some(fed)) = (source.input, derivation.steps.get(source.step)) else { continue };
            let sources = first(derivation.sources_of(source.step), fed.element_type, MOST_REFUSED, place).join(", ");
            lines.push(format!("  input {input} is {} by {sources}", fed.element_type));
        }
    }
    if refused.len() > MOST_REFUSED {
        let more = refused.len() - MOST_REFUSED;
        lines.push(format!("and {more} more layers that refuse their inputs"));
    }
    names.fit(&(lines.join("\n") + "\n"))
}

/// The first sources: those of the asked type before others, the nearest first.
fn first<'a>(
    sources: impl Iterator<Item = &'a Step>,
    asked: ElementType,
    most: usize,
    show: fn(&Step) -> String,
) -> Vec<String> {
    let mut sources: Vec<&Step> = sources.collect();
    // A number gives way to a weight. The page has the same order.
    sources.sort_by_key(|step| {
        let is_number = step.kind == LayerKind::Constant && step.shape.element_count() == Some(1);
        (!matches!(step.rule, Rule::Promotion { .. }), step.element_type != asked, is_number)
    });
    let more = sources.len().saturating_sub(most);
    let shown = sources.into_iter().take(most).map(show);
    shown.chain((more > 0).then(|| format!("and {more} more"))).collect()
}
