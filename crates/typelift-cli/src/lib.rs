//! The program `typelift`: makes type promotion in OpenVINO IR files explicit, checks the files and explains their
//! types.
//!
//! The program is a library, so that packages for other languages can include it. [`run`] runs it, and [`report`]
//! formats results of commands for models in memory.

mod batch;
mod changing;
mod check;
mod columns;
mod completions;
mod convert;
mod diff;
mod document;
mod dot;
mod explain;
mod failure;
mod files;
mod findings;
mod fit;
mod gate;
mod help;
mod infer;
mod input;
mod interrupt;
mod lengths;
mod listing;
mod not_a_model;
mod noted;
mod openvino;
mod output;
mod overview;
mod paint;
mod panics;
mod parts;
mod plan;
mod precision;
mod process;
mod promote;
mod quantize;
mod ran;
mod reduce;
mod render;
pub mod report;
mod rewrite;
mod schema;
mod selection;
mod settings;
mod show;
mod stats;
mod status;
mod strip;
mod terminal;
mod texts;
mod usage;
mod verify;
mod view;
mod waiting;
mod why;

use std::ffi::OsString;
use std::mem;
use std::time::Instant;

use clap::error::ErrorKind;
use clap::{ArgMatches, Args, ColorChoice, Command, CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::document::Asked;
use crate::failure::Failure;
use crate::status::Status;
use crate::terminal::Terminal;

/// Checks, repairs, converts and rewrites OpenVINO IR models (.xml with .bin) without OpenVINO
#[derive(Parser)]
#[command(
    name = "typelift",
    bin_name = "typelift",
    version,
    max_term_width = 100,
    after_help = "`typelift MODEL.xml` prints an overview of a model, with the commands that make sense for it.\n\n\
                  Exit status: 0 done, 1 the model has errors, 2 usage or files"
)]
struct Cli<const WHOLE: bool> {
    #[command(subcommand)]
    verb: Verb<WHOLE>,
    #[command(flatten)]
    general: General,
}

/// Prints an overview of a model on one screen: its content, its findings, and the next commands
#[derive(Parser)]
#[command(name = "typelift", bin_name = "typelift", version)]
struct OverviewCli {
    #[command(flatten)]
    overview: overview::Args,
    #[command(flatten)]
    general: General,
}

#[derive(Args)]
struct General {
    /// Print errors only
    #[arg(short, long, global = true, conflicts_with = "verbose", display_order = 98)]
    quiet: bool,
    /// Also print how long the run took
    #[arg(short, long, global = true, display_order = 99)]
    verbose: bool,
    /// When to use colours
    #[arg(long, global = true, value_name = "WHEN", default_value_t = ColorChoice::Auto, hide_default_value = true, display_order = 100)]
    color: ColorChoice,
    /// Print whole names if they do not fit the terminal, instead of `…self_attn/cat/Concat_2`
    #[arg(long, global = true, display_order = 101)]
    full_names: bool,
    /// Limit on the memory for computed values of constants, such as 2G. What needs more is left as it is, and named
    /// [default: 64M and 8 times the .bin]
    #[arg(long, global = true, value_name = "SIZE", value_parser = input::parse_size, display_order = 102)]
    max_memory: Option<u64>,
}

#[derive(Subcommand)]
enum Verb<const WHOLE: bool> {
    Check(Deferred<check::Args, WHOLE>),
    Convert(Deferred<convert::Args, WHOLE>),
    Rewrite(Deferred<rewrite::Args, WHOLE>),
    View(Deferred<view::Args, WHOLE>),
    Why(Deferred<why::Args, WHOLE>),
    Diff(Deferred<diff::Args, WHOLE>),
    Stats(Deferred<stats::Args, WHOLE>),
    Verify(Deferred<verify::Args, WHOLE>),
    Reduce(Deferred<reduce::Args, WHOLE>),
    Show(Deferred<show::Args, WHOLE>),
    Infer(Deferred<infer::Args, WHOLE>),
    Explain(Deferred<explain::Args, WHOLE>),
    Promote(Deferred<promote::Args, WHOLE>),
    Schema(Deferred<schema::Args, WHOLE>),
    Completions(Deferred<completions::Args, WHOLE>),
    Man(Deferred<completions::ManArgs, WHOLE>),
    /// A model without a command ([`OverviewCli`]).
    #[command(skip)]
    Overview(overview::Args),
}

impl<const WHOLE: bool> Verb<WHOLE> {
    fn run(self, terminal: &mut Terminal) -> Result<Status, Failure> {
        match self {
            Self::Check(Deferred(args)) => check::run(&args, terminal),
            Self::Convert(Deferred(args)) => convert::run(&args, terminal),
            Self::Rewrite(Deferred(args)) => rewrite::run(&args, terminal),
            Self::View(Deferred(args)) => view::run(&args, terminal),
            Self::Why(Deferred(args)) => why::run(&args, terminal),
            Self::Diff(Deferred(args)) => diff::run(&args, terminal),
            Self::Stats(Deferred(args)) => stats::run(&args, terminal),
            Self::Verify(Deferred(args)) => verify::run(&args, terminal),
            Self::Reduce(Deferred(args)) => reduce::run(&args, terminal),
            Self::Show(Deferred(args)) => show::run(&args, terminal),
            Self::Infer(Deferred(args)) => infer::run(&args, terminal),
            Self::Explain(Deferred(args)) => explain::run(&args, terminal),
            Self::Promote(Deferred(args)) => promote::run(&args, terminal),
            Self::Schema(Deferred(args)) => schema::run(&args, terminal),
            Self::Completions(Deferred(args)) => completions::run(&args, whole_command(), terminal),
            Self::Overview(args) => overview::run(&args, terminal),
            Self::Man(Deferred(args)) => {
                let program = help::arranged(Cli::<true>::command().disable_help_subcommand(true));
                completions::man(&args, program, terminal)
            }
        }
    }
}

/// Returns the answer of a command about a model in memory, as text and as JSON.
type Answer = fn(&Asked<'_>) -> Result<(String, String), Failure>;

/// Commands that answer without options, for packages in other languages.
const ANSWERS: [(&str, Answer); 2] = [("shapes", lengths::answer), ("stats", stats::answer)];

/// Arguments of a command. They are built only for the command of this run, unless the `WHOLE` program is needed, as
/// for help and messages. Building all of them takes as long as reading a small model.
struct Deferred<A, const WHOLE: bool>(A);

impl<A: Args, const WHOLE: bool> Args for Deferred<A, WHOLE> {
    fn augment_args(verb: Command) -> Command {
        if WHOLE { A::augment_args(verb) } else { verb.defer(A::augment_args) }
    }

    fn augment_args_for_update(verb: Command) -> Command {
        A::augment_args_for_update(verb)
    }
}

impl<A: FromArgMatches, const WHOLE: bool> FromArgMatches for Deferred<A, WHOLE> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        A::from_arg_matches(matches).map(Self)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.0.update_from_arg_matches(matches)
    }
}

fn whole_command() -> Command {
    help::arranged(Cli::<true>::command())
}

/// Runs the program with these arguments, the program's name first, and returns its exit status: 0 success, 1 the model
/// has errors, 2 usage or files.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    if let Some(failure) = usage::of_one_dash(&arguments) {
        Terminal::new(ColorChoice::Auto, false).fail(failure);
        return Status::Failed.code();
    }
    let cli = match parse(&arguments) {
        Ok(cli) => cli,
        Err(error) => return explain_usage(error, &arguments),
    };
    let mut terminal = Terminal::new(cli.general.color, cli.general.full_names);
    terminal.is_quiet = cli.general.quiet;
    let start = cli.general.verbose.then(Instant::now);
    let _first = input::MEMORY.set(cli.general.max_memory);
    typelift::host::on_wait(terminal::say_waiting);
    panics::expect(&arguments);
    let result = panics::catch(None, || cli.verb.run(&mut terminal));
    match result.and_then(|status| terminal.flush().map(|()| status)) {
        Ok(status) => {
            terminal.end(status);
            if let Some(start) = start {
                terminal.say(&format!("done in {:.2} s\n", start.elapsed().as_secs_f64()));
            }
            status.code()
        }
        // The reader of the output has closed it and needs no more.
        Err(failure) if failure.kind == failure::Kind::BrokenPipe => 0,
        Err(failure) => {
            let status = failure.status();
            terminal.end(status);
            terminal.fail(if status == Status::Failed { usage::after_run(failure, &arguments) } else { failure });
            status.code()
        }
    }
}

fn parse(arguments: &[OsString]) -> Result<Cli<false>, clap::Error> {
    if usage::is_overview(arguments) {
        let OverviewCli { overview, general } = OverviewCli::try_parse_from(arguments)?;
        return Ok(Cli { verb: Verb::Overview(overview), general });
    }
    let mut command = Cli::<false>::command();
    let mut matches = command.try_get_matches_from_mut(arguments)?;
    let parsed = Cli::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut command));
    // The process ends soon, and to free each option before would only take time.
    mem::forget(command);
    parsed
}

/// Runs a command that only reads, without its output; a conversion writes nothing.
fn try_out(words: &[String]) -> Result<Status, Failure> {
    let dry = ["--dry-run"].into_iter().filter(|dry| words[0] == "convert" && !words.iter().any(|word| word == dry));
    let words = ["typelift"].into_iter().chain(words.iter().map(String::as_str)).chain(dry).map(OsString::from);
    let cli = parse(&words.collect::<Vec<_>>()).map_err(|error| Failure::new(error.to_string()))?;
    panics::catch(None, || cli.verb.run(&mut Terminal::silent()))
}

/// Prints a usage error or the requested help, and returns the exit status.
fn explain_usage(error: clap::Error, arguments: &[OsString]) -> u8 {
    let is_overview = usage::is_overview(arguments);
    let error =
        (!is_overview).then(|| whole_command().try_get_matches_from(arguments).err()).flatten().unwrap_or(error);
    if error.exit_code() == 0 || error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        // A failure to print help is ignored.
        let _ = error.print();
        return u8::try_from(error.exit_code()).unwrap_or(2);
    }
    let mut terminal = Terminal::new(ColorChoice::Auto, false);
    terminal.fail(usage::failure(&error, &mut whole_command(), arguments));
    Status::Failed.code()
}
