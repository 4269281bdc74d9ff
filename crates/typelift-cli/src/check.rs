//! `typelift check`: what is wrong or odd about a model.

use typelift::{Code, Diagnostic, Severity};

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
        let damaged = diagnostics.has_errors();
        input::infer(model, diagnostics, &[], None);
        let mut lints = typelift::check(model);
        // Where an edge could not be read, what it leads to only seems to be unreachable.
        lints.retain(|lint| !damaged || ![Code::UnreachableLayer, Code::RequiredRelease].contains(&lint.code));
        diagnostics.list.append(&mut lints);
    }
    // What is found step by step is told from the top of the file to its end, and notes last.
    let start = |diagnostic: &Diagnostic| diagnostic.labels.first().map(|label| label.span.start);
    diagnostics.list.sort_by_key(|diagnostic| (diagnostic.severity == Severity::Note, start(diagnostic)));
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
