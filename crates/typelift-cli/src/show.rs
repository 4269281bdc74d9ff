//! `typelift show`: the graph for reading.

use crate::Status;
use crate::failure::Failure;
use crate::input::{self, Input};
use crate::remedy::Fixes;
use crate::render::{self, Show};
use crate::terminal::Terminal;
use crate::{dot, listing};

/// Print the graph for reading
///
/// One line a layer: `3 sum = Add(0, 2) : f32[1,?,3..5]`, its id and name, the operation with the layers that feed it
/// (`4.1` is the second output of layer 4) and the attributes that are not at their defaults, and the types and shapes of
/// its outputs, as inferred. Small constants have their values; bodies are indented under their layers. Rules are written
/// in the same notation.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  typelift show model.xml
  typelift show --format dot model.xml | dot -Tsvg > model.svg")]
pub(crate) struct Args {
    #[command(flatten)]
    input: Input,
    /// Text, one JSON document, or a picture for Graphviz
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    Text,
    Json,
    Dot,
}

pub(crate) fn run(args: &Args, terminal: &mut Terminal) -> Result<Status, Failure> {
    let mut loaded = args.input.read()?;
    let diagnostics = &mut loaded.diagnostics;
    if let Some(model) = &mut loaded.model {
        input::infer(model, diagnostics, &[], None);
    }
    terminal.say(&render::text(diagnostics, &Fixes::default(), Show::Briefly));
    match (&loaded.model, args.format) {
        (model, Format::Json) => terminal.print_json(&model.as_ref().map(|model| listing::model(model)))?,
        (None, _) => {}
        (Some(model), Format::Text) => terminal.print(&model.to_string())?,
        (Some(model), Format::Dot) => terminal.print(&dot::print(model))?,
    }
    Ok(Status::of(diagnostics.has_errors()))
}
