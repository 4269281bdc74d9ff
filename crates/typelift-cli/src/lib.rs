//! `typelift`: makes type promotion in OpenVINO IR files explicit, checks them and explains them.
//!
//! The program is a library, so that a package for another language can bring it along: [`run`] is the whole of it, and
//! [`report`] has what its verbs say about a model in memory.

mod batch;
mod check;
mod columns;
mod completions;
mod convert;
mod diff;
mod dot;
mod explain;
mod failure;
mod findings;
mod infer;
mod input;
mod interrupt;
mod listing;
mod nearest;
mod output;
mod plan;
mod promote;
mod remedy;
mod render;
pub mod report;
mod rewrite;
mod selection;
mod show;
mod stats;
mod status;
mod terminal;
mod usage;
mod view;
mod why;

use std::ffi::OsString;

use clap::{ColorChoice, CommandFactory, Parser, Subcommand};

use crate::failure::Failure;
use crate::status::Status;
use crate::terminal::Terminal;

/// Reads OpenVINO IR models, infers every element type and shape, makes type promotion explicit, and writes them back.
/// No OpenVINO needed.
#[derive(Parser)]
#[command(
    name = "typelift",
    version,
    max_term_width = 100,
    after_help = "Exit status: 0 done, 1 the model has errors, 2 usage or files"
)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
    /// When to use colours
    #[arg(long, global = true, value_name = "WHEN", default_value_t = ColorChoice::Auto, hide_default_value = true, display_order = 100)]
    color: ColorChoice,
}

#[derive(Subcommand)]
enum Verb {
    Convert(convert::Args),
    Rewrite(rewrite::Args),
    Infer(infer::Args),
    Check(check::Args),
    Explain(explain::Args),
    Diff(diff::Args),
    Show(show::Args),
    Stats(stats::Args),
    Promote(promote::Args),
    View(view::Args),
    Why(why::Args),
    Completions(completions::Args),
    #[command(hide = true)]
    Man(completions::ManArgs),
}

/// Runs the program with these arguments, the name of the program first, and returns its exit status: 0 done, 1 the model has
/// errors, 2 usage or files.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    let cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(error) => {
            // Help that nobody reads is not a failure.
            let error = usage::with_tip(error, &mut Cli::command());
            let _ = error.print();
            return u8::try_from(error.exit_code()).unwrap_or(2);
        }
    };
    let mut terminal = Terminal::new(cli.color);
    let result = match cli.verb {
        Verb::Convert(args) => convert::run(&args, &mut terminal),
        Verb::Rewrite(args) => rewrite::run(&args, &mut terminal),
        Verb::Infer(args) => infer::run(&args, &mut terminal),
        Verb::Check(args) => check::run(&args, &mut terminal),
        Verb::Explain(args) => explain::run(&args, &mut terminal),
        Verb::Diff(args) => diff::run(&args, &mut terminal),
        Verb::Show(args) => show::run(&args, &mut terminal),
        Verb::Stats(args) => stats::run(&args, &mut terminal),
        Verb::Promote(args) => promote::run(&args, &mut terminal),
        Verb::View(args) => view::run(&args, &mut terminal),
        Verb::Why(args) => why::run(&args, &mut terminal),
        Verb::Completions(args) => completions::run(&args, Cli::command(), &mut terminal),
        Verb::Man(args) => completions::man(&args, Cli::command()),
    };
    match result.and_then(|status| terminal.flush().map(|()| status)) {
        Ok(Status::Done) => 0,
        Ok(Status::Faulty) => 1,
        Ok(Status::Failed) => 2,
        // The reader of our output closed it: it has seen enough.
        Err(Failure::BrokenPipe) => 0,
        Err(failure) => {
            terminal.say(&failure.text());
            2
        }
    }
}
