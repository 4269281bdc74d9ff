//! `typelift infer`: prints the types and shapes of every tensor.

use crate::batch::{ARRAY, Inputs, PARAGRAPHS};
use crate::failure::Failure;
use crate::findings;
use crate::input::{self, Input, InputChanges, Loaded};
use crate::lengths;
use crate::listing;
use crate::output::{OutputArgs, Target};
use crate::paint;
use crate::render::{self, Show};
use crate::status::Status;
use crate::terminal::{self, Format, Page, Terminal};
use typelift::findings::Voice;

/// Infer the element type and the shape of every tensor
///
/// Types and shapes are computed from Parameters, constants and attributes alone; the ports of the file are used only
/// for unknown operations. With -o, writes the file with its ports filled in.
///
/// Several models are processed in parallel and reported in order. A directory means every .xml below it; files that
/// are not IR are named and skipped. The JSON output is then an array of documents that name their files, and OUT is a
/// directory in which each model keeps its path. The exit status is the worst of all.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  typelift infer model.xml
  typelift infer --set-shape 'x=[1..8,3,?,?]' --format json model.xml
  typelift infer model.xml -o filled.xml
  typelift infer models -o filled")]
pub(crate) struct Args {
    #[command(flatten)]
    inputs: Inputs,
    /// Output format: text has one line per layer; the default is text, and nothing if the model is written
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// Say which lengths of open dimensions fit, and why
    #[arg(long)]
    shapes: bool,
    #[command(flatten)]
    changes: InputChanges,
    #[command(flatten)]
    output: OutputArgs,
}

pub(crate) fn run(args: &Args, terminal: &mut Terminal) -> Result<Status, Failure> {
    if args.format.is_some() && args.output.is_stdout() {
        return Err(Failure::new("standard output cannot take both the model and the list of types")
            .help("give -o a file, or leave --format out"));
    }
    terminal.answers_in_json = args.format == Some(Format::Json);
    let batch = args.inputs.find(Some(&args.output), &[], &[])?;
    let frame = match (args.format, batch.single()) {
        (Some(Format::Json), None) => ARRAY,
        _ => PARAGRAPHS,
    };
    let is_for_people = terminal.is_for_people();
    let ends = batch.each(&frame, terminal, |input: &Input, page: &mut Page| {
        let status = args.infer(input, page)?;
        if is_for_people && args.format != Some(Format::Json) {
            page.printed = paint::types(&page.printed);
            page.styled = true;
        }
        Ok(status)
    })?;
    if batch.single().is_none() {
        let with_errors = ends.done.iter().filter(|&&status| status != Status::Done).count();
        let files = [(ends.done.len() - with_errors, "inferred"), (with_errors, "with errors")];
        terminal.say(&format!("{}\n", ends.summary(&files)));
    }
    Ok(ends.status(|&status| status != Status::Done))
}

impl Args {
    fn infer(&self, input: &Input, page: &mut Page) -> Result<Status, Failure> {
        let target = Target::new(&self.output, input)?;
        let mut loaded = input.read()?;
        let Loaded { model, diagnostics, read_from, .. } = &mut loaded;
        if let Some(model) = model {
            page.said = self.changes.other_ranks(model, &diagnostics.file);
            let changed = self.changes.apply(model)?;
            input::infer(model, diagnostics, &changed);
            self.changes.say_what_fits(input, diagnostics);
        }
        page.said += &render::text(diagnostics, Voice::Shell(None), Show::Briefly);
        let faulty = diagnostics.has_errors();
        let graph = model.as_ref().map(typelift::Model::graph);
        let shapes = model.as_ref().filter(|_| self.shapes).map(typelift::shapes);
        match (self.format, &target) {
            (Some(Format::Json), _) => {
                page.printed = match graph {
                    Some(graph) => {
                        let types = listing::types(&diagnostics.file, graph);
                        match (&shapes, &model) {
                            (Some(shapes), Some(model)) => terminal::json(&lengths::document(types, model, shapes))?,
                            _ => terminal::json(&types)?,
                        }
                    }
                    None => findings::refused(diagnostics)?,
                }
            }
            (Some(Format::Text), _) | (None, None) => {
                if input.member.is_some() {
                    page.printed = format!("{}:\n", diagnostics.file);
                }
                page.printed += &match (&shapes, &model) {
                    (Some(shapes), Some(model)) => lengths::text(model, shapes),
                    _ => graph.map(listing::types_text).unwrap_or_default(),
                };
            }
            (None, Some(_)) => {}
        }
        if let (Some(target), Some(model), false) = (&target, model, faulty) {
            let options = self.output.text(input, true);
            if let Some(objection) = target.objection(model, input) {
                diagnostics.list = vec![objection];
                input.name_weights(model, &mut diagnostics.list);
                page.said += &render::text(diagnostics, Voice::Shell(None), Show::Briefly);
                return Ok(Status::Faulty);
            }
            target.write(model, read_from, options, page)?;
        }
        Ok(Status::of(faulty))
    }
}
