//! `typelift MODEL.xml`: an overview of a model on one screen, and the commands that make sense for it.

use std::path::{Path, PathBuf};

use typelift::explain::Stats;
use typelift::explain::map::PrecisionMap;
use typelift::findings::{
    Code, Count, Diagnostic, Diagnostics, Lines, Voice, grouped, shell_command, shell_word, size,
};
use typelift::promote::ElementType;
use typelift::{Checking, IrVersion, Layer, Model, NeedForWeights, Output, Shapes};

use crate::columns::{Columns, HEAD, PLAIN, Side, count};
use crate::failure::Failure;
use crate::fit;
use crate::gate::Clean;
use crate::input::{Input, Loaded};
use crate::lengths;
use crate::status::Status;
use crate::terminal::{Page, Terminal};

/// The most inputs, outputs and rows of blocks that are listed.
const MOST: usize = 6;

/// Print an overview of a model on one screen: its content, its findings, and the next commands
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The model's .xml
    #[arg(value_name = "MODEL.xml")]
    file: PathBuf,
}

pub(crate) fn run(args: &Args, terminal: &mut Terminal) -> Result<Status, Failure> {
    let input = Input::new(&args.file);
    let Loaded { model, diagnostics, .. } = &mut input.read()?;
    let checking = Checking { weights: NeedForWeights::of(&args.file), ..Checking::default() };
    let found = std::mem::take(&mut diagnostics.list);
    let checked = checking.check_read(model.take(), found, diagnostics.source.clone());
    diagnostics.list = checked.findings;
    let has_errors = diagnostics.has_errors();
    let facts = checked.model.as_ref().map(|model| facts(model, &diagnostics.list, &args.file));
    let file = &diagnostics.file;
    let printed = format!(
        "{HEAD}{}{HEAD:#}{}{}\nnext\n{}",
        Clean(file),
        facts.unwrap_or_else(|| "\n".to_owned()),
        findings(diagnostics),
        next(file, checked.model.as_ref(), &diagnostics.list)
    );
    terminal.show(&Page { said: String::new(), printed, styled: true, ..Page::default() })?;
    Ok(Status::of(has_errors))
}

/// Tells what a model consists of, from its name to its size in f16.
fn facts(model: &Model, found: &[Diagnostic], file: &Path) -> String {
    let stats = typelift::stats(model);
    let name = if stats.name.is_empty() { String::new() } else { format!("{}, ", Clean(&stats.name)) };
    let bodies = if stats.bodies > 0 { format!(" and {}", count(stats.bodies, "body")) } else { String::new() };
    let layers = count(stats.layers, "layer");
    let head =
        format!(": {name}IR version {}, {layers}{bodies}, {} of weights\n\n", stats.version, size(stats.weight_bytes));
    let mut columns = Columns::new([Side::Left, Side::Left, Side::Left]);
    let shapes = typelift::shapes(model);
    let lines = Lines::new(model.source().clone());
    let inputs: Vec<_> = model.inputs().collect();
    let named = inputs.iter().map(|input| {
        let (name, what) = end(model, &shapes, input, Some(input.id().output(0)));
        match lengths::limits(&shapes, input.id(), &lines) {
            limits if limits.is_empty() => (name, what),
            limits => (name, format!("{what}   {}", Clean(&limits))),
        }
    });
    list(&mut columns, "inputs", named);
    let outputs: Vec<_> = model.outputs().collect();
    let named = outputs.iter().map(|it| end(model, &shapes, it, model.graph().producer(it.id().input(0))));
    list(&mut columns, "outputs", named);
    for (title, entries) in metadata(model, &stats, file) {
        list(&mut columns, title, entries.into_iter());
    }
    let weights = stats.weights.iter().map(|weight| {
        let what = format!("{}, {}", count(weight.constants, "constant"), size(weight.bytes));
        (weight.element_type.to_string(), what)
    });
    list(&mut columns, "weights", weights);
    let rows = PrecisionMap::new(model, found).rows;
    let blocks: Vec<_> =
        rows.iter().filter(|row| row.parts.first().is_some_and(|part| part.family.is_some())).collect();
    let blocks = blocks.iter().map(|row| {
        let types: Vec<_> = row.computed.iter().take(3).map(|count| count.element_type.to_string()).collect();
        let (blocks, layers) = (count(row.blocks, "block"), count(row.layers / row.blocks, "layer"));
        (Clean(&row.name).to_string(), format!("{blocks} of {layers}, in {}", types.join(", ")))
    });
    list(&mut columns, "blocks", blocks);
    let mut text = columns.print();
    if inputs.len() <= MOST
        && !has_errors(found)
        && let Some(fitting) = lengths::fitting(model, &shapes)
    {
        text += &format!("{}\n", fit::hanging(&format!("shapes   {}", Clean(&fitting)), 9));
    }
    if let Some(release) = found.iter().find(|finding| finding.code == Code::RequiredRelease) {
        text += &format!("release  {}\n", release.message);
    }
    if let Some(bytes) = in_f16(&stats) {
        let what = format!("{} of weights instead of {}", size(bytes), size(stats.weight_bytes));
        text += &format!("in f16   {what}\n");
    }
    head + &text + "\n"
}

/// Rows under titles: the metadata, and the program that the model fits.
fn metadata(model: &Model, stats: &Stats, file: &Path) -> Vec<(&'static str, Vec<(String, String)>)> {
    let state = model.state().into_iter().map(|(id, tensor)| (Clean(&id).to_string(), tensor.to_string()));
    let options =
        stats.metadata.iter().filter_map(|(path, value)| Some((path.strip_prefix("runtime_options/")?, value)));
    let options = options.map(|(name, value)| (Clean(name).to_string(), Clean(value).to_string()));
    let fits = typelift::programs::fitting_part(model, Some(file)).map(|part| format!("openvino.genai, {part}"));
    let mut api = Vec::new();
    if let Some(model_type) = model.rt_info("model_info/model_type") {
        let labels = model.rt_info("model_info/labels").map_or(0, |labels| labels.split_whitespace().count());
        api.push((Clean(&model_type).to_string(), count(labels, "label")));
    }
    if let Some(eos) = model.rt_info("eos_token_id") {
        let template = if model.rt_info("chat_template").is_some() { "with" } else { "without" };
        api.push((format!("end token {}", Clean(&eos)), format!("{template} a chat template")));
    }
    vec![
        ("state", state.collect()),
        ("made by", stats.made_by.iter().map(|text| (Clean(text).to_string(), String::new())).collect()),
        ("fits", fits.iter().map(|text| (Clean(text).to_string(), String::new())).collect()),
        ("options", options.collect()),
        ("metadata", api),
    ]
}

fn list(columns: &mut Columns, title: &str, entries: impl ExactSizeIterator<Item = (String, String)>) {
    let more = entries.len().saturating_sub(MOST);
    for (at, (name, what)) in entries.take(MOST).enumerate() {
        columns.push(PLAIN, [if at == 0 { title } else { "" }.to_owned(), name, what]);
    }
    if more > 0 {
        columns.push(PLAIN, [String::new(), format!("and {} more", grouped(more as u64)), String::new()]);
    }
}

fn end(model: &Model, shapes: &Shapes, layer: &Layer, tensor: Option<Output>) -> (String, String) {
    let what = tensor.map_or_else(String::new, |tensor| lengths::tensor(model, shapes, tensor));
    (Clean(&model.end_name(layer)).to_string(), what)
}

fn has_errors(found: &[Diagnostic]) -> bool {
    found.iter().any(Diagnostic::is_error)
}

/// About how many bytes the weights take if `--compress f16` stores them; `None` if there is little to gain.
fn in_f16(stats: &Stats) -> Option<u64> {
    let stored = stats.weights.iter().map(|weight| match weight.element_type {
        ElementType::F32 => weight.bytes / 2,
        ElementType::F64 => weight.bytes / 4,
        _ => weight.bytes,
    });
    let bytes = stored.sum();
    (bytes < stats.weight_bytes - stats.weight_bytes / 10).then_some(bytes)
}

/// Counts the findings, and tells the first error or warning.
fn findings(diagnostics: &Diagnostics) -> String {
    let (found, lines) = (&diagnostics.list, Lines::new(diagnostics.source.clone()));
    let first = found
        .iter()
        .find(|finding| finding.is_error())
        .or_else(|| found.iter().find(|it| it.code != Code::RequiredRelease));
    let first = first.map(|finding| {
        let line = finding.labels.first().map_or(1, |label| lines.line_column(label.span.start).0);
        let text = format!(
            "{}[{}] in line {line}: {}",
            finding.severity.name(),
            finding.code,
            Clean(&finding.message.to_string())
        );
        fit::wrapped(&text, 0) + "\n"
    });
    format!("{}\n{}", Count::of(diagnostics), first.unwrap_or_default())
}

/// Names the three commands that make most sense for a model. Fixes are those that were tried.
fn next(file: &str, model: Option<&Model>, found: &[Diagnostic]) -> String {
    let word = shell_word(file);
    if found.iter().any(|finding| finding.code == Code::ExecutionGraph) {
        let model = file.strip_suffix(".exec.xml").map(|stem| format!("{stem}.xml"));
        let known = model.filter(|model| Path::new(model).is_file());
        let note = if known.is_some() { "" } else { "MODEL.xml is the model that the device ran\n" };
        let model = known.map_or_else(|| "MODEL.xml".to_owned(), |model| shell_word(&model).into_owned());
        return format!("  typelift check {model} --ran {word}\n{note}");
    }
    // Results go into the current directory, which can be written more often than that of the model.
    let stem = Path::new(file).file_stem().map_or("model".into(), |stem| stem.to_string_lossy());
    let has_errors = has_errors(found);
    let mut commands = Vec::new();
    if found.iter().any(|finding| finding.code != Code::RequiredRelease) {
        commands.push(format!("typelift check {word}"));
    }
    let is_safe = found.iter().any(|finding| finding.edits().is_some());
    let safe = is_safe.then(|| shell_command("check", " --fix", Path::new(file)));
    let voice = Voice::Shell(Some(Path::new(file)));
    let fix = safe.or_else(|| found.iter().filter(|it| it.is_error()).find_map(|it| voice.command(it)));
    commands.extend(fix.or_else(|| {
        let gains = model.is_some_and(|model| {
            !has_errors && in_f16(&typelift::stats(model)).is_some() && model.version() == IrVersion::V11
        });
        let output = format!("{stem}.f16.xml");
        gains.then(|| format!("typelift convert --compress f16 {word} -o {}", shell_word(&output)))
    }));
    if model.is_some() {
        commands.push(format!("typelift view {word}"));
        commands.push(format!("typelift stats {word}"));
    }
    if commands.is_empty() {
        commands.push("typelift help".to_owned());
    }
    commands.iter().take(3).map(|command| format!("  {command}\n")).collect()
}
