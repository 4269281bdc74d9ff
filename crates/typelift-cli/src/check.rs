//! `typelift check`: what is wrong or odd about a model.

use crate::Status;
use crate::batch::{Frame, Inputs};
use crate::failure::Failure;
use crate::input::{self, Input, Loaded};
use crate::render::{self, Count, Document, Show};
use crate::terminal::{self, Page, Terminal};

/// Tell every error and every oddity of a model
///
/// Errors are what OpenVINO refuses. Warnings are what it takes in silence although it is surely or probably not what was
/// meant. All of a file is told in one run; nothing is written.
///
/// Several models are checked side by side and told in their order, of a directory every .xml beneath it; one that is no IR
/// is named and skipped. JSON is then an array. The exit status is the worst of all.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  typelift check model.xml
  typelift check models
  typelift check --format json model.xml | jq '.diagnostics[].code'")]
pub(crate) struct Args {
    #[command(flatten)]
    inputs: Inputs,
    /// How to tell it
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Show each one, not only the first of a kind that is very frequent
    #[arg(long)]
    all: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    Text,
    Json,
}

pub(crate) fn run(args: &Args, terminal: &mut Terminal) -> Result<Status, Failure> {
    let batch = args.inputs.find(None)?;
    let frame = match (args.format, batch.single()) {
        (Format::Json, None) => Frame::ARRAY,
        _ => Frame::LINES,
    };
    let counts = batch.each(&frame, terminal, |input, page| args.check(input, page))?;
    let faulty = |count: &Count| count.errors > 0;
    if batch.single().is_none() {
        let with_errors = counts.done.iter().filter(|count| faulty(count)).count();
        let files = [(counts.done.len() - with_errors, "without errors"), (with_errors, "with errors")];
        let total: Count = counts.done.iter().copied().sum();
        terminal.say(&format!("{}; {total}\n", counts.summary(&files)));
    }
    Ok(counts.status(faulty))
}

impl Args {
    /// Checks one model.
    fn check(&self, input: &Input, page: &mut Page) -> Result<Count, Failure> {
        let mut loaded = input.read()?;
        let Loaded { model, diagnostics, .. } = &mut loaded;
        if let Some(model) = model {
            input::infer(model, diagnostics, &[], None);
            diagnostics.list = typelift::check_after(model, std::mem::take(&mut diagnostics.list));
        }
        let count = Count::of(diagnostics);
        match self.format {
            Format::Json => page.printed = terminal::json(&Document::new(diagnostics))?,
            Format::Text => {
                page.said = render::text(diagnostics, if self.all { Show::All } else { Show::Many });
                page.printed = format!("{count} in {}\n", diagnostics.file);
            }
        }
        Ok(count)
    }
}
