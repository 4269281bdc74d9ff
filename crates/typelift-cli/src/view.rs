//! `typelift view`: draws a model as one page for a browser.

use std::path::{Path, PathBuf};

use typelift::findings::{Diagnostic, Voice};
use typelift::{Checking, Model, NeedForWeights, Shapes};
use typelift_run::execution::Ran;
use typelift_view::{Before, Page};

use crate::failure::Failure;
use crate::files::Run;
use crate::gate::Form;
use crate::input::{self, Input, Loaded};
use crate::output;
use crate::process;
use crate::ran::RanArgs;
use crate::render::{self, Show};
use crate::status::Status;
use crate::terminal::Terminal;

/// Draw a model as a page for a browser
///
/// The output is one self-contained HTML file. It shows the graph with element types as colours, Converts and their
/// losses, the findings of `check` at their layers, a search, and why each tensor has its type. Constants are part of
/// their consumers; bodies and repeated blocks open with a click. With a second model, the page shows that one with the
/// result of `diff`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  typelift view model.xml
  typelift view model.xml -o model.html
  typelift view model.xml --ran exec.xml -o ran.html
  typelift view old.xml new.xml -o changes.html")]
pub(crate) struct Args {
    #[command(flatten)]
    input: Input,
    /// A second model, to show its differences from the first
    #[arg(value_name = "B.xml")]
    other: Option<PathBuf>,
    #[command(flatten)]
    ran: RanArgs,
    /// The page to write, or - for standard output. Without it, the page goes to the user's cache folder, and a browser
    /// opens it
    #[arg(short, long, value_name = "OUT.html")]
    output: Option<PathBuf>,
    /// Print where the page is, and open no browser
    #[arg(long)]
    no_open: bool,
}

pub(crate) fn run(args: &Args, terminal: &mut Terminal) -> Result<Status, Failure> {
    let other = args.other.as_ref().map(Input::new);
    let models: Vec<_> = [args.input.clone()].into_iter().chain(other).collect();
    let output = match &args.output {
        Some(output) => output.clone(),
        None => cached(args.other.as_ref().unwrap_or(&args.input.file))?,
    };
    Run { models: &models, documents: &[(&output, "the page")], ..Run::default() }.check()?;
    if !input::is_stdout(&output) && !output::is_stream(&output) {
        output::check_ending(&output, "html", "a page for a browser")?;
    }
    let (before, mut shown) = match &args.other {
        Some(other) => {
            let (before, after) = crate::diff::load_both(&args.input.file, other)?;
            (Some(before), after)
        }
        None => (None, args.input.load()?),
    };
    let Some(model) = &shown.model else {
        terminal.say(&render::text(&shown.diagnostics, Voice::Shell(None), Show::Briefly));
        return Ok(Status::Faulty);
    };
    let file = args.other.as_ref().unwrap_or(&args.input.file);
    let weights = if input::is_dash(file) { NeedForWeights::Optional } else { NeedForWeights::of(file) };
    let checking = Checking { weights, ..Checking::default() };
    let shapes = typelift::shapes(model);
    let read = std::mem::take(&mut shown.diagnostics.list);
    shown.diagnostics.list = checking.check_inferred(model, Some(&shapes), read, true);
    let found = &shown.diagnostics.list;
    terminal.say(&render::text(&shown.diagnostics, voice(file), Show::Briefly));
    let faulty = found.iter().any(Diagnostic::is_error);
    let before = match &before {
        Some(Loaded { model: Some(before), .. }) => Some((before, typelift::diff(before, model))),
        Some(_) => return Ok(Status::Faulty),
        None => None,
    };
    let (shown_file, file) = (file, args.input.file.display().to_string());
    let before = before.as_ref().map(|(model, diff)| Before { file: &file, model, diff });
    let runs = args.ran.read(model)?;
    let page = draw(model, shown_file, found, Extras { before, shapes: Some(&shapes), runs: &runs, most_bytes: None })?;
    if input::is_stdout(&output) {
        terminal.print_as(&page, Form::Product)?;
    } else {
        output::write_report(&output, &page)?;
        if args.output.is_some() {
            terminal.say(&format!("wrote {}\n", output.display()));
        } else {
            terminal.print(&format!("{}\n", output.display()))?;
            terminal.flush()?;
        }
    }
    if args.output.is_none() && !args.no_open && has_display() {
        process::open_in_browser(&output);
    }
    Ok(Status::of(faulty))
}

/// The page of a model in the user's cache folder, which browsers can read, unlike some temporary folders.
fn cached(model: &Path) -> Result<PathBuf, Failure> {
    let folder = if cfg!(windows) {
        process::variable("LOCALAPPDATA")
    } else if cfg!(target_os = "macos") {
        process::variable("HOME").map(|home| home.join("Library/Caches"))
    } else {
        process::variable("XDG_CACHE_HOME")
            .filter(|path| path.is_absolute())
            .or_else(|| process::variable("HOME").map(|home| home.join(".cache")))
    };
    let folder =
        folder.ok_or_else(|| Failure::new("there is no folder for the page").help("name the page: -o MODEL.html"));
    let folder = folder?.join("typelift");
    std::fs::create_dir_all(&folder).map_err(|error| Failure::io("create", &folder, &error))?;
    let stem = if input::is_dash(model) { None } else { model.file_stem() };
    Ok(folder.join(stem.unwrap_or("model".as_ref())).with_added_extension("html"))
}

fn has_display() -> bool {
    cfg!(any(windows, target_os = "macos"))
        || ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| std::env::var_os(name).is_some())
}

#[derive(Clone, Copy, Default)]
pub(crate) struct Extras<'a> {
    pub(crate) before: Option<Before<'a>>,
    /// The lengths of the model, if they are known already.
    pub(crate) shapes: Option<&'a Shapes>,
    pub(crate) runs: &'a [Ran],
    /// The limit on the data of a page that shows every layer; `None` for the default.
    pub(crate) most_bytes: Option<usize>,
}

fn voice(file: &Path) -> Voice<'_> {
    Voice::Shell(Some(file).filter(|file| !input::is_dash(file)))
}

pub(crate) fn draw(model: &Model, file: &Path, found: &[Diagnostic], extras: Extras<'_>) -> Result<String, Failure> {
    let (title, name) = (file.file_stem().unwrap_or_default().to_string_lossy(), file.display().to_string());
    let mut page = Page::new(model, found);
    page.title = if input::is_dash(file) { model.name() } else { &title };
    (page.file, page.before, page.shapes, page.runs) = (&name, extras.before, extras.shapes, extras.runs);
    page.voice = voice(file);
    page.most_bytes = extras.most_bytes.unwrap_or(page.most_bytes);
    page.html().map_err(|error| Failure::new(error.to_string()))
}
