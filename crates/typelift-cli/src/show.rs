//! `typelift show`: prints the graph for reading.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use anstyle::{AnsiColor, Style};
use typelift::explain::blocks::Blocks;
use typelift::findings::{Code, Voice};
use typelift::ops::{self, Effect};
use typelift::rewrite::notation::{self, Line};
use typelift::values::Export;
use typelift::{Graph, LayerId, Model, Shapes, Weights};
use unicode_width::UnicodeWidthStr;

use crate::columns::FAINT;
use crate::failure::Failure;
use crate::files::Run;
use crate::findings;
use crate::fit::{self, ShortNames};
use crate::gate::Clean;
use crate::input::Input;
use crate::paint::color;
use crate::render::{self, Show};
use crate::selection::{self, Selection, SelectionArgs};
use crate::status::Status;
use crate::terminal::{Page, Terminal};
use crate::{dot, lengths, listing, output};

/// The largest width of a column; longer text shifts the rest of its line. On a narrower terminal the columns share the
/// width.
const WIDEST: usize = 48;
const LEAST: usize = 20;
/// The smallest number of characters of a constant's values.
const LEAST_VALUES: usize = 8;

/// Print the graph for reading
///
/// Each layer is one line, such as `3 sum = Add(0, 2) : f32[1,?,3..5]`. It has the id and name, the operation with its
/// inputs, the attributes that differ from their defaults, and the inferred types and shapes of the outputs. The input
/// `4.1` is the second output of layer 4. Small constants show their values; bodies are indented under their layers.
/// Rules use the same notation. On a terminal the lines are in columns and colours.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  typelift show model.xml
  typelift show --only Convert --losses model.xml
  typelift show --around logits --depth 3 --fold-constants model.xml
  typelift show model.xml lm_head.weight --npy lm_head.npy
  typelift show --format dot model.xml | dot -Tsvg > model.svg")]
pub(crate) struct Args {
    #[command(flatten)]
    input: Input,
    /// The tensor of --npy: a constant, or a tensor that is computed from constants
    #[arg(value_name = "NAME")]
    name: Option<String>,
    /// Write the values of the tensor NAME to this file for NumPy, and print nothing
    #[arg(long, value_name = "FILE.npy", requires = "name", conflicts_with_all = ["format", "info", "losses"])]
    npy: Option<PathBuf>,
    #[command(flatten)]
    selection: SelectionArgs,
    /// Show what each Convert can lose, such as `# rounds`; the text is still notation
    #[arg(long)]
    losses: bool,
    /// Show open lengths by the names that `infer --shapes` gives them, such as `f32[batch, seq + past, 64]`
    #[arg(long, conflicts_with = "format")]
    shapes: bool,
    /// Show the metadata (rt_info) of the model and its layers instead, as statements of `rewrite`
    #[arg(long, conflicts_with = "format")]
    info: bool,
    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// One line per layer
    Text,
    /// A single JSON document
    Json,
    /// A picture for Graphviz
    Dot,
}

pub(crate) fn run(args: &Args, terminal: &mut Terminal) -> Result<Status, Failure> {
    terminal.answers_in_json = args.format == Format::Json;
    if let (Some(name), None) = (&args.name, &args.npy) {
        return Err(Failure::new(format!("unexpected argument `{name}` found")));
    }
    if let Some(file) = &args.npy {
        let models = std::slice::from_ref(&args.input);
        Run { models, documents: &[(file, "the array")], ..Run::default() }.check()?;
        output::check_ending(file, "npy", "arrays of NumPy")?;
    }
    let mut loaded = args.input.load()?;
    let is_wrong = loaded.diagnostics.list.iter().any(|found| found.code == Code::WrongWeights && found.is_error());
    // The bytes of a wrong file are no values.
    loaded.model.iter_mut().filter(|_| is_wrong).for_each(|model| model.set_weights(Weights::none()));
    let diagnostics = &loaded.diagnostics;
    terminal.say(&render::text(diagnostics, Voice::Shell(None), Show::Briefly));
    if let (Some(model), Some(name), Some(file)) = (&loaded.model, &args.name, &args.npy) {
        let (place, tensor) = selection::find_tensor(model, name)?;
        let export = Export::npy(model, &place, tensor).map_err(|error| output::not_exported(&error))?;
        output::write_export(file, &export)?;
        terminal.say(&format!("{}wrote {}\n", crate::input::other_meaning(model, name), file.display()));
        return Ok(Status::Done);
    }
    let selection = match &loaded.model {
        Some(model) => Some((model, args.selection.find(model)?)),
        None => None,
    };
    if let (Some(model), Some(word)) = (&loaded.model, &args.selection.around) {
        terminal.say(&crate::input::other_meaning(model, word));
    }
    match (&selection, args.format) {
        (Some((model, _)), _) if args.info => terminal.print(&metadata(model))?,
        (None, Format::Json) => {
            terminal.print(&findings::refused(diagnostics)?)?;
            return Ok(Status::Faulty);
        }
        (None, _) => return Ok(Status::Faulty),
        (Some((model, selection)), Format::Json) => {
            terminal.print_document(&listing::model(&diagnostics.file, model, selection))?;
        }
        (Some((model, selection)), Format::Dot) => terminal.print(&dot::print(model, selection))?,
        (Some((model, selection)), Format::Text)
            if selection.is_all() && !terminal.is_for_people() && !args.losses && !args.shapes =>
        {
            terminal.print(&model.to_string())?;
        }
        (Some((model, selection)), Format::Text) => {
            let shapes = args.shapes.then(|| typelift::shapes(model));
            let mut rows = Rows::new(model, selection, args.losses, shapes.as_ref());
            if selection.is_all() && terminal.is_for_people() {
                rows.add_blocks();
            }
            if rows.rows.is_empty() && !selection.is_all() {
                terminal.say("note: no layer of the model is shown by these options\n");
            }
            let printed = if terminal.is_for_people() { rows.columns() } else { rows.lines() };
            terminal.show(&Page { said: String::new(), printed, styled: true, ..Page::default() })?;
        }
    }
    // A model with errors is shown all the same, so that `git diff` can compare it.
    Ok(Status::Done)
}

fn metadata(model: &Model) -> String {
    let mut text = String::new();
    for (path, value) in model.rt_info_entries() {
        let _ = writeln!(text, "info : {path} = {}", notation::quoted(&value));
    }
    for layer in model.graph().layers() {
        for key in layer.rt_info_names() {
            let value = layer.rt_info(&key).unwrap_or_default();
            let name = notation::quoted_name(layer.name());
            let _ = writeln!(text, "info {name} : {key} = {}", notation::quoted(&value));
        }
    }
    text
}

struct Rows<'a> {
    model: &'a Model,
    selection: &'a Selection<'a>,
    rows: Vec<Row>,
    /// True if Converts say what they can lose.
    with_losses: bool,
    /// The names of open lengths.
    shapes: Option<&'a Shapes>,
}

/// One line with its indentation.
enum Row {
    Layer(usize, Line, Style, Style),
    /// The line above a body or a block.
    Title(usize, String),
}

pub(crate) fn text(model: &Model, selection: &Selection<'_>) -> String {
    Rows::new(model, selection, false, None).lines()
}

impl<'a> Rows<'a> {
    fn new(model: &'a Model, selection: &'a Selection<'a>, with_losses: bool, shapes: Option<&'a Shapes>) -> Self {
        let mut rows = Self { model, selection, rows: Vec::new(), with_losses, shapes };
        rows.add(selection.graph, 0);
        rows
    }

    fn add(&mut self, graph: &Graph, indent: usize) {
        for layer in self.selection.layers(graph) {
            let mut line = Line::new(graph, layer, self.model.weights(), self.selection.folds);
            if let Some(shapes) = self.shapes.filter(|_| std::ptr::eq(graph, self.model.graph())) {
                let tensors =
                    (0..layer.outputs().len()).map(|port| lengths::tensor(self.model, shapes, layer.id().output(port)));
                line.outputs = tensors.collect::<Vec<_>>().join(", ");
            }
            let effect = ops::conversion(graph, layer).map(|it| it.effect(graph, self.model.weights(), layer));
            if let Some(effect) = effect.filter(|_| self.with_losses) {
                line.outputs += &format!("  # {effect}");
            }
            let ty = layer.outputs().first().map(|port| port.element_type());
            self.rows.push(Row::Layer(indent, line, emphasis(effect), ty.map_or(Style::new(), color)));
            for body in layer.bodies() {
                let line = notation::body_line(layer, body);
                if self.selection.opens(body) {
                    self.rows.push(Row::Title(indent + 2, line + ":"));
                    self.add(&body.graph, indent + 4);
                } else {
                    let layers = crate::columns::count(body.graph.len(), "layer");
                    self.rows.push(Row::Title(indent + 2, format!("{line}: {layers}")));
                }
            }
        }
    }

    /// Adds the name of each block above its layers, if there are several. A block whose layers are not together is named
    /// again.
    fn add_blocks(&mut self) {
        let mut blocks = Blocks::new(self.model).list;
        blocks.retain(|block| block.place.is_model());
        if blocks.len() < 2 {
            return;
        }
        let of_layer: HashMap<LayerId, &String> =
            blocks.iter().flat_map(|block| block.layers.iter().map(|&id| (id, &block.name))).collect();
        let mut last = None;
        for row in std::mem::take(&mut self.rows) {
            if let Row::Layer(0, line, ..) = &row {
                let block = of_layer.get(&line.id).copied();
                if let Some(name) = block.filter(|_| block != last) {
                    self.rows.push(Row::Title(0, Clean(name).to_string()));
                }
                last = block;
            }
            self.rows.push(row);
        }
    }

    fn lines(&self) -> String {
        let mut text = String::new();
        for row in &self.rows {
            let _ = match row {
                Row::Layer(indent, line, ..) => writeln!(text, "{:indent$}{line}", ""),
                Row::Title(indent, line) => writeln!(text, "{:indent$}{line}", ""),
            };
        }
        text
    }

    fn columns(&mut self) -> String {
        let most = fit::columns().map_or(WIDEST, |columns| (columns * 2 / 5).clamp(LEAST, WIDEST));
        let is_wide =
            |row: &Row| matches!(row, Row::Layer(indent, line, ..) if indent + line_width(line) > fit::width());
        if fit::columns().is_some() && self.rows.iter().any(is_wide) {
            let names = ShortNames::of([self.model]);
            let ids = self.rows.iter().filter_map(|row| match row {
                Row::Layer(indent, line, ..) => Some(indent + line.id.to_string().len()),
                Row::Title(..) => None,
            });
            let ids = ids.max().unwrap_or(0);
            for row in &mut self.rows {
                if let Row::Layer(_, line, ..) = row {
                    shorten(ids, line, &names, most);
                }
            }
        }
        let [mut ids, mut names, mut calls] = [0; 3];
        for row in &self.rows {
            if let Row::Layer(indent, line, ..) = row {
                let id = indent + line.id.to_string().len();
                for (widest, width) in [(&mut ids, id), (&mut names, line.name.width()), (&mut calls, call_width(line))]
                {
                    *widest = if width <= most { width.max(*widest) } else { *widest };
                }
            }
        }
        let mut text = String::new();
        for row in &self.rows {
            let _ = match row {
                Row::Title(indent, line) => writeln!(text, "{:indent$}{FAINT}{line}{FAINT:#}", ""),
                Row::Layer(indent, line, emphasis, color) => {
                    let id = format!("{:indent$}{}", "", line.id);
                    // Columns give way before a line is broken.
                    let taken = ids.max(id.len()) + line_width(line) - line.id.to_string().len();
                    let room = fit::width().saturating_sub(taken);
                    let after_name = names.saturating_sub(line.name.width()).min(room);
                    let after_call = calls.saturating_sub(call_width(line)).min(room - after_name);
                    let attributes = match line.attributes.as_str() {
                        "" => String::new(),
                        attributes => format!(" {FAINT}{attributes}{FAINT:#}"),
                    };
                    let outputs = match line.outputs.as_str() {
                        "" => String::new(),
                        outputs => format!("{:after_call$} : {color}{outputs}{color:#}", ""),
                    };
                    let call = format!("{emphasis}{}{emphasis:#}{}", line.operation, line.arguments);
                    let name = format!("{}{:after_name$}", line.name, "");
                    let line = format!("{FAINT}{id:<ids$}{FAINT:#} {name} = {call}{attributes}{outputs}");
                    writeln!(text, "{}", fit::hanging(&line, ids + 1 + names + 3))
                }
            };
        }
        text
    }
}

/// Shortens the name, and then the values of a constant, so that the line fits if it can. `ids` is the width before the
/// name.
fn shorten(ids: usize, line: &mut Line, names: &ShortNames, most: usize) {
    let name = std::mem::take(&mut line.name);
    line.name = names.within(&name, most);
    if over(ids, line) > 0 && line.operation == "Const" {
        let kept = line.arguments.chars().count().saturating_sub(over(ids, line) + 2);
        let values: String = line.arguments.chars().take(kept.max(LEAST_VALUES)).collect();
        if values.len() < line.arguments.len() {
            line.arguments = format!("{values}…)");
        }
    }
    // A name that would be short without a line that fits stays as it is.
    let room = line.name.width().saturating_sub(over(ids, line));
    if over(ids, line) > 0 && room >= LEAST {
        line.name = names.within(&name, room);
    }
}

/// The columns by which a line is too wide.
fn over(ids: usize, line: &Line) -> usize {
    (ids + line_width(line) - line.id.to_string().len()).saturating_sub(fit::width())
}

fn call_width(line: &Line) -> usize {
    let gap = usize::from(!line.attributes.is_empty());
    line.operation.width() + line.arguments.width() + gap + line.attributes.width()
}

fn line_width(line: &Line) -> usize {
    line.id.to_string().len() + line.name.width() + call_width(line) + line.outputs.width() + 7
}

/// A style that marks conversions, more strongly if they can lose something.
fn emphasis(effect: Option<Effect>) -> Style {
    match effect {
        None => Style::new().bold(),
        Some(effect) if effect.is_exact() => AnsiColor::Green.on_default().bold(),
        Some(_) => AnsiColor::Red.on_default().bold(),
    }
}
