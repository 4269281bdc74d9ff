//! `typelift infer`: the types and shapes of every tensor.

use typelift::xml::WriteOptions;

use crate::Status;
use crate::failure::Failure;
use crate::input::{self, Input, InputChanges};
use crate::listing;
use crate::output::{OutputArgs, Target};
use crate::render::{self, Show};
use crate::terminal::Terminal;

/// Find the element type and the shape of every tensor
///
/// They follow from Parameters, constants and attributes alone; what the ports of the file declare counts only for
/// operations that are not known. With -o, writes the file with its ports filled in.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  typelift infer model.xml
  typelift infer --set-shape 'x=[1..8,3,?,?]' --format json model.xml
  typelift infer model.xml -o filled.xml")]
pub(crate) struct Args {
    #[command(flatten)]
    input: Input,
    /// Print them as text, one line a layer, or as one JSON document; text unless the model is written
    #[arg(long, value_enum)]
    format: Option<Format>,
    #[command(flatten)]
    changes: InputChanges,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    Text,
    Json,
}

pub(crate) fn run(args: &Args, terminal: &mut Terminal) -> Result<Status, Failure> {
    let target = Target::new(&args.output, &args.input)?;
    if args.format.is_some() && target.as_ref().is_some_and(Target::is_stdout) {
        return Err(Failure::new("standard output cannot take both the model and the list of types")
            .help("give -o a file, or leave --format out"));
    }
    let mut loaded = args.input.read()?;
    let diagnostics = &mut loaded.diagnostics;
    if let Some(model) = &mut loaded.model {
        let changed = args.changes.apply(model)?;
        input::infer(model, diagnostics, &changed, None);
    }
    render::print(diagnostics, Show::Briefly, terminal);
    let faulty = diagnostics.has_errors();
    let graph = loaded.model.as_ref().map(|model| &model.graph);
    match (args.format, &target) {
        (Some(Format::Json), _) => {
            let layers = graph.map(listing::types).unwrap_or_default();
            terminal.print_json(&serde_json::json!({ "layers": layers }))?;
        }
        (Some(Format::Text), _) | (None, None) => {
            terminal.print(&graph.map(listing::types_text).unwrap_or_default())?;
        }
        (None, Some(_)) => {}
    }
    if let (Some(target), Some(model), false) = (&target, &loaded.model, faulty) {
        let options = WriteOptions { canonical: args.output.canonical, refresh_ports: true };
        if let Some(objection) = target.objection(model, &args.input) {
            diagnostics.list = vec![objection];
            render::print(diagnostics, Show::Briefly, terminal);
            return Ok(Status::Faulty);
        }
        target.write(&typelift::xml::write(model, options), model.source(), terminal)?;
    }
    Ok(Status::of(faulty))
}
