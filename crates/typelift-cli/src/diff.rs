//! `typelift diff`: shows differences in meaning between two models.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anstyle::{AnsiColor, Style};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use serde::Serialize;
use typelift::alike;
use typelift::explain::{Alike, Change, ChangeKind, Consequence, Diff, InfoChange};
use typelift::findings::FileName;

use crate::batch::STACK;
use crate::columns::{FAINT, count};
use crate::failure::Failure;
use crate::findings;
use crate::fit::{self, ShortNames};
use crate::gate::Clean;
use crate::input::{self, Input, Loaded};
use crate::listing::MOST_LINES;
use crate::render;
use crate::status::Status;
use crate::terminal::{Format, Page, Terminal};
use crate::waiting;

/// The number of renamed layers that are listed.
const NAMES_LISTED: usize = 8;
/// The most inputs with another tensor that are listed for a change.
const REWIRED_LISTED: usize = 3;
const VERSIONS_LISTED: usize = 3;
/// The number of values of one group of metadata that are listed; more are counted.
const VALUES_LISTED: usize = 3;
/// The number of kinds of consequences that are listed below a change.
const CONSEQUENCES_LISTED: usize = 4;
/// The most changes that are listed without a story before them.
const LEAST_TOLD: usize = 5;
/// The smallest number of equal changes that share a line.
const LEAST_ALIKE: usize = 3;

/// Show the differences in meaning between two models
///
/// Ids, the order of layers, port numbers and the layout of the file are ignored. Layers are matched by name, else by
/// their neighbours. Types and shapes are the inferred ones. Consequences of a change are listed under it, and equal
/// changes, such as in each block of a model, are one line.
///
/// Exits with status 0 if nothing differs, and 1 if something does.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  typelift diff old.xml new.xml
  typelift diff --ignore names exported.xml rewritten.xml
  typelift diff --format json old.xml new.xml | jq -r '.changes[].path'")]
pub(crate) struct Args {
    /// The first model's .xml, or - for standard input
    #[arg(value_name = "A.xml")]
    before: PathBuf,
    /// The second model's .xml, or - for standard input
    #[arg(value_name = "B.xml")]
    after: PathBuf,
    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Kinds of changes to ignore
    #[arg(long, value_parser = kinds(), value_name = "KIND", value_delimiter = ',')]
    ignore: Vec<ChangeKind>,
    /// List every change, consequence and renamed layer, without grouping
    #[arg(long)]
    all: bool,
}

fn kinds() -> impl TypedValueParser<Value = ChangeKind> {
    PossibleValuesParser::new(ChangeKind::ALL.map(ChangeKind::name))
        .try_map(|name| ChangeKind::ALL.into_iter().find(|kind| kind.name() == name).ok_or("unknown"))
}

#[derive(Serialize)]
struct Document<'a> {
    files: [FileName<'a>; 2],
    #[serde(flatten)]
    diff: &'a Diff,
}

pub(crate) fn run(args: &Args, terminal: &mut Terminal) -> Result<Status, Failure> {
    if input::is_dash(&args.before) && input::is_dash(&args.after) {
        return Err(Failure::new("only one of the two models can come from standard input"));
    }
    terminal.answers_in_json = args.format == Format::Json;
    let (before, after, diff) = waiting::shown(|| {
        let (before, after) = load_both(&args.before, &args.after)?;
        let diff = before.model.as_ref().zip(after.model.as_ref()).map(|(first, second)| typelift::diff(first, second));
        Ok::<_, Failure>((before, after, diff))
    })??;
    for loaded in [&before, &after] {
        terminal.say(&render::in_one_line(&loaded.diagnostics));
    }
    let (Some(first), Some(second), Some(mut diff)) = (&before.model, &after.model, diff) else {
        if args.format == Format::Json {
            let refused = if before.model.is_none() { &before } else { &after };
            terminal.print(&findings::refused(&refused.diagnostics)?)?;
        }
        return Ok(Status::Faulty);
    };
    diff.changes.retain(|change| !args.ignore.contains(&change.kind));
    if args.ignore.contains(&ChangeKind::Info) {
        diff.info.clear();
    }
    match args.format {
        Format::Json => {
            let files = [&before, &after].map(|side| FileName(&side.diagnostics.file));
            terminal.print_document(&Document { files, diff: &diff })?;
        }
        Format::Text => {
            let names = ShortNames::of([first, second]);
            let printed = names.fit(&text(&diff, &args.before, &args.after, args.all, &names));
            terminal.show(&Page { said: String::new(), printed, styled: true, ..Page::default() })?;
        }
    }
    Ok(Status::of(!diff.is_same()))
}

/// Reads and infers two models side by side.
pub(crate) fn load_both(before: &Path, after: &Path) -> Result<(Loaded, Loaded), Failure> {
    std::thread::scope(|scope| {
        let thread =
            std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, move || Input::new(before).load());
        let thread = thread.map_err(|error| Failure::new(format!("cannot start a thread: {error}")))?;
        let after = Input::new(after).load();
        let before = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        Ok((before?, after?))
    })
}

const ADDED: Style = AnsiColor::Green.on_default();
const REMOVED: Style = AnsiColor::Red.on_default();
const CHANGED: Style = AnsiColor::Yellow.on_default();

/// Formats the differences: each change with its consequences, equal ones on one line. If that exceeds a screen, it
/// lists what was added, removed and changed in which blocks.
pub(crate) fn text(diff: &Diff, before: &Path, after: &Path, all: bool, names: &ShortNames) -> String {
    let mut head = String::new();
    if !diff.is_same() {
        let _ = writeln!(head, "{REMOVED}--- {}{REMOVED:#}", Clean(&before.to_string_lossy()));
        let _ = writeln!(head, "{ADDED}+++ {}{ADDED:#}", Clean(&after.to_string_lossy()));
        if !diff.changes.is_empty() {
            let _ = writeln!(head, "{}", summary(diff));
        }
        if diff.changes.len() > LEAST_TOLD || !diff.blocks.is_empty() {
            for line in diff.story() {
                let _ = writeln!(head, "  {}", Clean(&line));
            }
        }
    }
    let mut foot = String::new();
    let value =
        |value: &Option<String>| value.as_ref().map_or("none".to_owned(), |it| Clean(&shortened(it)).to_string());
    for group in diff.info.chunk_by(|a, b| group_of(a).is_some() && group_of(a) == group_of(b)) {
        let folder = group_of(&group[0]).filter(|_| group.len() > VALUES_LISTED && !all);
        if let Some((folder, is_added)) = folder {
            let done = if is_added { "added" } else { "removed" };
            let _ = writeln!(foot, "{CHANGED}~ metadata{CHANGED:#} {}: {} values {done}", Clean(folder), group.len());
            continue;
        }
        for change in group {
            let (before, after) = (value(&change.before), value(&change.after));
            let _ = writeln!(foot, "{CHANGED}~ metadata{CHANGED:#} {}: {before} -> {after}", Clean(&change.path));
        }
    }
    if !diff.versions.is_empty() {
        let shown = diff
            .versions
            .iter()
            .take(VERSIONS_LISTED)
            .map(|change| format!("{} {} -> {}", Clean(&change.path), value(&change.before), value(&change.after)));
        let rest = diff.versions.len().saturating_sub(VERSIONS_LISTED);
        let rest = if rest > 0 { format!(", and {rest} more") } else { String::new() };
        let _ = writeln!(
            foot,
            "{FAINT}made by other versions, which changes nothing: {}{rest}{FAINT:#}",
            shown.collect::<Vec<_>>().join(", ")
        );
    }
    if diff.unread > 0 {
        let constants = count(diff.unread, "constant");
        let _ = writeln!(foot, "{constants} compared by type and shape only: the weights of a model are missing");
    }
    let listed = listed(diff, all);
    let room = MOST_LINES.saturating_sub(names.lines(&head) + names.lines(&foot));
    if all || names.lines(&listed) <= room {
        return head + &listed + &foot;
    }
    head + &outlined(diff, room, names) + &foot
}

/// The keys that values have in common which were added, or removed, together: `nncf/weight_compression`.
fn group_of(change: &InfoChange) -> Option<(&str, bool)> {
    let is_added = change.before.is_none();
    let ends = change.path.match_indices('/').map(|(at, _)| at).take(2);
    let end = ends.last().filter(|_| is_added || change.after.is_none())?;
    Some((change.path.get(..end)?, is_added))
}

/// A value in quotes, without its middle if it is long.
fn shortened(value: &str) -> String {
    const LONGEST: usize = 60;
    let letters: Vec<char> = value.chars().collect();
    if letters.len() <= LONGEST {
        return format!("\"{value}\"");
    }
    let (start, end) = (&letters[..LONGEST / 2], &letters[letters.len() - LONGEST / 2..]);
    format!("\"{}…{}\"", String::from_iter(start), String::from_iter(end))
}

/// The changes to list: the story already names blocks that were added or removed whole.
fn apart(diff: &Diff, all: bool) -> impl Iterator<Item = &Change> {
    diff.changes.iter().filter(move |change| all || !diff.is_of_whole_block(change))
}

fn listed(diff: &Diff, all: bool) -> String {
    let mut text = String::new();
    let (renamed, changes): (Vec<_>, Vec<_>) =
        apart(diff, all).partition(|change| change.kind == ChangeKind::Names && !all);
    let (rounded, changes): (Vec<_>, Vec<_>) = changes.iter().partition(|change| change.error.is_some() && !all);
    text += &precision(&rounded);
    if all {
        changes.iter().for_each(|change| single(change, all, &mut text));
    } else {
        for alike in alike(changes.iter().copied()) {
            if alike.changes.len() < LEAST_ALIKE {
                alike.changes.iter().for_each(|change| single(change, all, &mut text));
            } else {
                text += &many_alike(&alike);
            }
        }
    }
    for change in renamed.iter().take(NAMES_LISTED) {
        let _ = writeln!(text, "{}", headline(change));
    }
    if renamed.len() > NAMES_LISTED {
        let rest = count(renamed.len() - NAMES_LISTED, "more layer");
        let _ = writeln!(text, "{FAINT}  and {rest} with other names; --all lists them{FAINT:#}");
    }
    text
}

/// Lists what was added, removed and changed, with one line for all changes in the same blocks. The places with the
/// most changes come first, as many as fit.
fn outlined(diff: &Diff, room: usize, names: &ShortNames) -> String {
    /// The number of lines that an entry may take.
    const MOST: usize = 2;
    let renamed = diff.changes.iter().filter(|change| change.kind == ChangeKind::Names).count();
    let (stored, changes): (Vec<_>, Vec<_>) = apart(diff, false)
        .filter(|change| change.kind != ChangeKind::Names)
        .partition(|change: &&Change| change.error.is_some());
    let mut foot = String::new();
    let follows = diff.changes.iter().flat_map(|change| &change.follows).collect::<Vec<_>>();
    if !follows.is_empty() {
        let _ = writeln!(
            foot,
            "{FAINT}what follows from these changes concerns {}{FAINT:#}",
            count(layers(&follows), "layer")
        );
    }
    if renamed > 0 {
        let (layers, have) = (count(renamed, "layer"), if renamed == 1 { "has" } else { "have" });
        let _ = writeln!(foot, "{FAINT}{layers} {have} other names{FAINT:#}");
    }
    // The changes in the same blocks, with one sign.
    let mut entries: Vec<(String, char, Style, Vec<Alike<'_>>)> = Vec::new();
    for alike in alike(changes) {
        let Some(first) = alike.changes.first() else { continue };
        let (sign, style) = sign(first.kind);
        let place = match (alike.range(), alike.in_each()) {
            (range, _) if range.is_empty() => range,
            (range, Some(_)) => format!(" in each of {range}:"),
            (range, None) => format!(" in {range}:"),
        };
        match entries.iter_mut().find(|(known, its, ..)| *known == place && *its == sign) {
            Some((.., kinds)) => kinds.push(alike),
            None => entries.push((place, sign, style, vec![alike])),
        }
    }
    let sizes = entries.iter().map(|(.., kinds)| kinds.iter().map(|alike| alike.changes.len()).sum::<usize>());
    let sizes: Vec<usize> = sizes.collect();
    let mut text = precision(&stored);
    let mut by_size: Vec<usize> = (0..entries.len()).collect();
    by_size.sort_by_key(|&at| std::cmp::Reverse(sizes[at]));
    // One line is reserved for the omitted entries.
    let most = room.saturating_sub(names.lines(&text) + names.lines(&foot) + 1)
        / if fit::columns().is_some() { MOST } else { 1 };
    let left_out: usize = by_size.iter().skip(most).map(|&at| sizes[at]).sum();
    let mut shown: Vec<usize> = by_size.into_iter().take(most).collect();
    shown.sort_unstable();
    for (place, sign, style, kinds) in shown.into_iter().map(|at| &entries[at]) {
        let place = Clean(place);
        let mut kinds: Vec<&Alike<'_>> = kinds.iter().collect();
        kinds.sort_by_key(|alike| std::cmp::Reverse(alike.changes.len()));
        let kind =
            |alike: &&Alike<'_>| format!("{} × {}", alike.in_each().unwrap_or(alike.changes.len()), Clean(&alike.what));
        let parts: Vec<String> = kinds.iter().map(kind).collect();
        let mut lines = (1..=parts.len()).rev().map(|shown| {
            let rest: usize = kinds.iter().skip(shown).map(|alike| alike.changes.len()).sum();
            let rest = if rest > 0 { format!(", {FAINT}and {rest} more{FAINT:#}") } else { String::new() };
            (shown, format!("{style}{sign}{place}{style:#} {}{rest}\n", parts[..shown].join(", ")))
        });
        let line = lines.find(|(shown, line)| {
            *shown == 1
                || fit::shown_width(line) <= fit::width()
                || names.lines(line) <= MOST && fit::columns().is_some()
        });
        text.extend(line.map(|(_, line)| line));
    }
    let rest =
        if left_out > 0 { format!("{} in other places; ", count(left_out, "more change")) } else { String::new() };
    text + &foot + &format!("{FAINT}{rest}`--all` lists every change{FAINT:#}\n")
}

/// Formats all constants with another type or storage on one line: `~ 41 constants are f16 of f32, worst relative
/// 4.88e-4 in w`.
fn precision(changes: &[&Change]) -> String {
    let mut alike = BTreeMap::<_, Vec<&Change>>::new();
    for change in changes {
        alike.entry(change.stored_types()).or_default().push(change);
    }
    let mut text = String::new();
    for ([before, after], changes) in alike {
        let errors = changes.iter().filter_map(|change| Some((change.error?, change)));
        let worst = errors.max_by(|(a, _), (b, _)| a.size().total_cmp(&b.size()));
        let worst = worst.map_or(String::new(), |(error, change)| match error.max_absolute {
            0.0 => ", exact".to_owned(),
            _ => format!(", {error} in {}", Clean(&change.path)),
        });
        let (constants, are) = (count(changes.len(), "constant"), if changes.len() == 1 { "is" } else { "are" });
        let _ = writeln!(text, "{CHANGED}~ {constants}{CHANGED:#} {are} {after} instead of {before}{worst}");
        text += &with_them(&changes);
    }
    text
}

/// Formats `+ Convert {destination_type=f16} : f16, 2 in each of layers.0–31: the first is layers.0.mlp/Convert_1`.
fn many_alike(alike: &Alike<'_>) -> String {
    let Some(first) = alike.changes.first() else { return String::new() };
    let (sign, style) = sign(first.kind);
    let (what, places, path) = (Clean(&alike.what), alike.places(), Clean(&first.path));
    let text = format!("{style}{sign} {what}{style:#}, {}: {FAINT}the first is {path}{FAINT:#}\n", Clean(&places));
    text + &with_them(&alike.changes)
}

/// Formats a line for the consequences of several changes.
fn with_them(changes: &[&Change]) -> String {
    let follows: Vec<&Consequence> = changes.iter().flat_map(|change| &change.follows).collect();
    match layers(&follows) {
        0 => String::new(),
        layers => format!("{FAINT}    and {} with them{FAINT:#}\n", count(layers, "layer")),
    }
}

fn sign(kind: ChangeKind) -> (char, Style) {
    match kind {
        ChangeKind::Added => ('+', ADDED),
        ChangeKind::Removed => ('-', REMOVED),
        _ => ('~', CHANGED),
    }
}

/// Formats `~ sum (Add 3, line 12): input 1: x -> y`.
pub(crate) fn headline(change: &Change) -> String {
    let (sign, style) = sign(change.kind);
    let path = Clean(&change.path);
    if matches!(change.kind, ChangeKind::Added | ChangeKind::Removed) {
        let what = or_none(change.after.as_ref().or(change.before.as_ref()));
        return format!("{style}{sign} {path} = {what}{style:#}");
    }
    let line = change.after_line.map_or(String::new(), |line| format!(", line {line}"));
    let place = format!("({} {}{line})", Clean(&change.operation), change.layer.id);
    let subject = match (change.kind, &change.subject) {
        (ChangeKind::Names, None) => "name ".to_owned(),
        (ChangeKind::Names, Some(_)) => "tensor names ".to_owned(),
        (ChangeKind::Attribute | ChangeKind::Input, Some(subject)) => format!("{} ", Clean(subject)),
        (kind, Some(subject)) => format!("{} of {} ", kind.name(), Clean(subject)),
        (ChangeKind::Constant, None) => String::new(),
        (kind, None) => format!("{} ", kind.name()),
    };
    let (before, after) = (or_none(change.before.as_ref()), or_none(change.after.as_ref()));
    let what = match &change.values {
        Some(values) if change.kind == ChangeKind::Constant && before == after => {
            let worst = values.worst.first().map_or(String::new(), |worst| format!("; the worst at {worst}"));
            format!("{values} differ in {after}{worst}")
        }
        Some(values) => {
            let error = change.error.map_or(String::new(), |error| format!(", {error}"));
            format!("{subject}{before} → {after} ({values}{error})")
        }
        None if change.kind == ChangeKind::Constant && before == after => format!("other bytes in {after}"),
        None => format!("{subject}{before} → {after}"),
    };
    format!("{style}{sign} {path}{style:#} {FAINT}{place}{FAINT:#}: {what}")
}

fn or_none(side: Option<&String>) -> String {
    Clean(side.map_or("none", String::as_str)).to_string()
}

/// Formats an input that another tensor feeds now: `input 1 of sum: cast → x`.
fn rewiring(follow: &Consequence) -> String {
    let subject = Clean(follow.subject.as_deref().unwrap_or("the input"));
    let [before, after] = [&follow.before, &follow.after].map(|side| or_none(side.as_ref()));
    let path = Clean(&follow.path);
    format!("{FAINT}    {subject} of {path}: {before} → {after}{FAINT:#}\n")
}

/// Formats a change and its consequences, with equal ones counted: `and 31 layers after it are f64`.
fn single(change: &Change, all: bool, text: &mut String) {
    let _ = writeln!(text, "{}", headline(change));
    if all {
        for Consequence { kind, path, subject, before, after, .. } in &change.follows {
            let subject = match (kind, subject) {
                (ChangeKind::Input, Some(subject)) => subject.clone(),
                (_, Some(subject)) => format!("{} of {subject}", kind.name()),
                (_, None) => kind.name().to_owned(),
            };
            let (path, before, after) = (Clean(path), or_none(before.as_ref()), or_none(after.as_ref()));
            let _ = writeln!(text, "{FAINT}    {path}: {subject} {before} → {after}{FAINT:#}");
        }
        return;
    }
    let mut alike = BTreeMap::<(u8, &str, &str), Vec<&Consequence>>::new();
    for follow in &change.follows {
        let key = match follow.kind {
            ChangeKind::Added | ChangeKind::Removed => (0, "with", ""),
            ChangeKind::Input => (1, "input", ""),
            ChangeKind::Type => (2, follow.after.as_deref().unwrap_or(""), follow.before.as_deref().unwrap_or("")),
            _ => (3, "shape", ""),
        };
        alike.entry(key).or_default().push(follow);
    }
    if let Some(rewired) = alike.get(&(1, "input", "")).filter(|rewired| rewired.len() <= REWIRED_LISTED) {
        rewired.iter().for_each(|follow| *text += &rewiring(follow));
        alike.remove(&(1, "input", ""));
    }
    let mut lines: Vec<_> = alike.into_iter().map(|(key, follows)| (key, layers(&follows), follows[0])).collect();
    lines.sort_by_key(|((kind, ..), layers, _)| (*kind, std::cmp::Reverse(*layers)));
    let rest = lines.len().saturating_sub(CONSEQUENCES_LISTED);
    for ((kind, after, before), number, first) in lines.into_iter().take(CONSEQUENCES_LISTED) {
        let path = Clean(&first.path);
        let line = match (kind, number) {
            (0, 1) => format!("with its constant {path}"),
            (0, _) => format!("with its {number} constants"),
            (1, _) => format!("at the inputs of {number} layers"),
            (2, 1) => format!("and {path} is {after} instead of {before}"),
            (2, _) => format!("and {number} layers after it are {after} instead of {before}"),
            (_, 1) => format!("and {path} has another shape"),
            _ => format!("and {number} layers after it have other shapes"),
        };
        let _ = writeln!(text, "{FAINT}    {line}{FAINT:#}");
    }
    if rest > 0 {
        let _ = writeln!(text, "{FAINT}    and more; --all lists everything{FAINT:#}");
    }
}

fn layers(follows: &[&Consequence]) -> usize {
    follows.iter().map(|follow| follow.path.as_str()).collect::<std::collections::HashSet<_>>().len()
}

/// Formats `4 changes: 1 added, 3 attributes`.
fn summary(diff: &Diff) -> String {
    let parts = ChangeKind::ALL.into_iter().filter_map(|kind| {
        let number = diff.changes.iter().filter(|change| change.kind == kind).count();
        match kind {
            _ if number == 0 => None,
            ChangeKind::Added | ChangeKind::Removed => Some(format!("{number} {}", kind.name())),
            ChangeKind::Names => Some(format!("{number} with other names")),
            _ => Some(count(number, kind.name())),
        }
    });
    format!("{}: {}", count(diff.changes.len(), "change"), parts.collect::<Vec<_>>().join(", "))
}
