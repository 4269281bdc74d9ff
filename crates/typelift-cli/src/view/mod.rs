//! `typelift view`: a model as one page for a browser.

mod block;
mod layout;
mod outline;
mod scene;

use std::path::{Path, PathBuf};

use serde::Serialize;
use typelift::diagnostic::LayerRef;
use typelift::diff::{ChangeKind, Diff};
use typelift::map::{PrecisionMap, Row};
use typelift::{Diagnostic, Model, Severity};

use crate::failure::Failure;
use crate::files::Run;
use crate::input::{self, Input, Loaded};
use crate::output;
use crate::remedy::{self, Fixes};
use crate::render::{self, Show};
use crate::status::Status;
use crate::terminal::Terminal;

const PAGE: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// Draw a model as a page for a browser
///
/// One self-contained HTML file: the graph with element types as colours, the Converts and what they can
/// lose, the findings of `check` at their layers, a search, and for each tensor why it has its type. Constants are part of
/// the layers that use them; bodies and repeated blocks open with a click. With a second model, the page shows that one
/// with what `diff` finds.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  typelift view model.xml -o model.html
  typelift view old.xml new.xml -o changes.html")]
pub(crate) struct Args {
    #[command(flatten)]
    input: Input,
    /// A second model, to show what differs from the first
    #[arg(value_name = "B.xml")]
    other: Option<PathBuf>,
    /// The page to write, or - for standard output
    #[arg(short, value_name = "OUT.html")]
    output: PathBuf,
}

/// All that the page shows.
#[derive(Serialize)]
struct Document {
    title: String,
    file: String,
    /// The file that it is compared with.
    before: Option<String>,
    layers: usize,
    /// Why the page shows an outline, if it does.
    outline: Option<String>,
    scenes: Vec<scene::Scene>,
    /// Where the model keeps which precision.
    map: Vec<MapRow>,
    steps: Vec<scene::Step>,
    findings: Vec<Finding>,
    /// How many more findings there are.
    more_findings: usize,
    changes: Vec<Change>,
    more_changes: usize,
}

/// A row of the precision map.
#[derive(Serialize)]
struct MapRow {
    #[serde(flatten)]
    row: Row,
    /// The path of a layer in its first block.
    at: Option<String>,
}

fn map_row(model: &Model, row: Row) -> MapRow {
    let graph = model.graph_at(&row.place);
    let first = row.parts.first().and_then(|part| graph?.layer(*part.layers.first()?));
    let at = first.map(|layer| match row.path.as_str() {
        "" => layer.name().to_owned(),
        path => format!("{path}/{}", layer.name()),
    });
    MapRow { row, at }
}

/// Limit on findings and on changes that are on the page.
const MOST: usize = 2000;

/// Something that `check` found.
#[derive(Serialize)]
struct Finding {
    code: &'static str,
    severity: Severity,
    message: String,
    help: Vec<String>,
    /// The path of its layer, as scenes have it.
    path: Option<String>,
}

#[derive(Serialize)]
struct Change {
    kind: ChangeKind,
    path: String,
    /// The path of the layer to show for it: of one that was removed, what used it.
    at: String,
    text: String,
    follows: usize,
}

pub(crate) fn run(args: &Args, terminal: &mut Terminal) -> Result<Status, Failure> {
    let other =
        args.other.as_ref().map(|file| Input { file: file.clone(), bin: None, member: None, on_one_thread: false });
    let models: Vec<_> = [args.input.clone()].into_iter().chain(other).collect();
    Run { models: &models, document: Some((&args.output, "the page")), ..Run::default() }.check()?;
    let (before, mut shown) = match &args.other {
        Some(other) => {
            let (before, after) = crate::diff::load_both(&args.input.file, other)?;
            (Some(before), after)
        }
        None => (None, args.input.load()?),
    };
    terminal.say(&render::text(&shown.diagnostics, &Fixes::default(), Show::Briefly));
    let Some(model) = &shown.model else { return Ok(Status::Faulty) };
    let found = typelift::check_after(model, std::mem::take(&mut shown.diagnostics.list));
    let faulty = found.iter().any(Diagnostic::is_error);
    let before = match (&args.other, &before) {
        (Some(_), Some(Loaded { model: Some(before), .. })) => {
            Some((args.input.file.display().to_string(), typelift::diff(before, model)))
        }
        (Some(_), _) => return Ok(Status::Faulty),
        (None, _) => None,
    };
    let shown_file = args.other.as_ref().unwrap_or(&args.input.file);
    let page = draw(model, shown_file, before, &found)?;
    if input::is_stdout(&args.output) {
        terminal.print(&page)?;
    } else {
        output::write_report(&args.output, &page)?;
    }
    Ok(Status::of(faulty))
}

/// The page of an inferred model with what was found in it, and how it differs from the one of another file.
pub(crate) fn draw(
    model: &Model,
    file: &Path,
    before: Option<(String, Diff)>,
    found: &[Diagnostic],
) -> Result<String, Failure> {
    let changes = before.as_ref().map_or(&[][..], |(_, diff)| &diff.changes);
    let outline = outline::instead_of_drawing(model);
    let drawn = outline.is_none();
    let shown: Vec<Change> = changes.iter().take(MOST).map(change).collect();
    let removed = shown.iter().filter(|change| change.kind == ChangeKind::Removed).map(removed).collect::<Vec<_>>();
    let title = if model.name().is_empty() { "model" } else { model.name() }.to_owned();
    page(&Document {
        title: match file.file_stem() {
            Some(name) if !input::is_dash(file) => name.to_string_lossy().into_owned(),
            _ => model.name().to_owned(),
        },
        file: file.display().to_string(),
        layers: model.graph().len(),
        scenes: if drawn { scene::scenes(model, title, &removed) } else { vec![outline::scene(model.graph(), title)] },
        map: PrecisionMap::new(model, found).rows.into_iter().map(|row| map_row(model, row)).collect(),
        steps: if drawn { scene::steps(model) } else { Vec::new() },
        outline,
        findings: found.iter().take(MOST).map(finding).collect(),
        more_findings: found.len().saturating_sub(MOST),
        changes: shown,
        more_changes: changes.len().saturating_sub(MOST),
        before: before.map(|(file, _)| file),
    })
}

fn change(change: &typelift::diff::Change) -> Change {
    let side = |text: &Option<String>| text.clone().unwrap_or_else(|| "none".to_owned());
    let subject = change.subject.as_ref().map_or(String::new(), |subject| format!("{subject} "));
    let figures = change.values.map_or(String::new(), |values| format!(" ({values})"));
    let text = match change.kind {
        ChangeKind::Added => side(&change.after),
        ChangeKind::Removed => side(&change.before),
        _ => format!("{subject}{} → {}{figures}", side(&change.before), side(&change.after)),
    };
    let user = change.follows.iter().find(|follow| follow.kind == ChangeKind::Input);
    let at = match change.kind {
        ChangeKind::Removed => user.map_or_else(|| change.path.clone(), |user| user.path.clone()),
        _ => change.path.clone(),
    };
    Change { kind: change.kind, path: change.path.clone(), at, text, follows: change.follows.len() }
}

/// A removed layer, from the text of it: `Add(x, y.1) : f32[2]`.
fn removed(change: &Change) -> scene::Removed {
    let (operation, rest) = change.text.split_once('(').unwrap_or((&change.text, ""));
    let operands = rest.split_once(')').map_or("", |(operands, _)| operands).split(", ");
    let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
    let without_port = |name: &str| match name.rsplit_once('.') {
        Some((layer, port)) if is_port(port) => vec![name.to_owned(), layer.to_owned()],
        _ => vec![name.to_owned()],
    };
    scene::Removed {
        path: change.path.clone(),
        operation: operation.split(' ').next().unwrap_or_default().to_owned(),
        operands: operands.flat_map(without_port).collect(),
        user: change.at.clone(),
    }
}

fn finding(diagnostic: &Diagnostic) -> Finding {
    let path = diagnostic.layer.as_ref().map(LayerRef::full_name);
    Finding {
        code: diagnostic.code.name(),
        severity: diagnostic.severity,
        message: scene::brief(&diagnostic.message).into_owned(),
        help: remedy::advice(diagnostic, None).help.iter().map(|help| scene::brief(help).into_owned()).collect(),
        path,
    }
}

/// The page with everything in it. Nothing that a model says can end the script that it is in.
fn page(document: &Document) -> Result<String, Failure> {
    let data = serde_json::to_string(document).map_err(|error| Failure::new(error.to_string()))?;
    let data = data.replace('<', "\\u003c").replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029");
    let title = document.title.replace('&', "&amp;").replace('<', "&lt;");
    let parts = [("/*STYLE*/", STYLE), ("/*SCRIPT*/", SCRIPT), ("<!--TITLE-->", &title), ("/*DATA*/", &data)];
    let mut page = PAGE.to_owned();
    for (place, text) in parts {
        page = page.replacen(place, text, 1);
    }
    Ok(page)
}
