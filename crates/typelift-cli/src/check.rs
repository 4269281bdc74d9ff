//! `typelift check`: what is wrong or odd about a model.

use crate::Status;
use crate::failure::Failure;
use crate::input::{self, Input};
use crate::render::{self, Count, Document, Show};
use crate::terminal::Terminal;

/// Tell every error and every oddity of a model
///
/// Errors are what OpenVINO refuses. Warnings are what it takes in silence although it is surely or probably not what was
/// meant. All of a file is told in one run; nothing is written.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  typelift check model.xml\n  typelift check --format json model.xml | jq '.diagnostics[].code'"
)]
pub(crate) struct Args {
    #[command(flatten)]
    input: Input,
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
    let mut loaded = args.input.read()?;
    let diagnostics = &mut loaded.diagnostics;
    if let Some(model) = &mut loaded.model {
        input::infer(model, diagnostics, &[]);
    }
    let count = Count::of(diagnostics);
    match args.format {
        Format::Json => terminal.print_json(&Document::new(diagnostics))?,
        Format::Text => {
            render::print(diagnostics, if args.all { Show::All } else { Show::Many }, terminal);
            terminal.print(&format!("{count} in {}\n", diagnostics.file))?;
        }
    }
    Ok(Status::of(count.errors > 0))
}
