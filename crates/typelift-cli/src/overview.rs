//! `typelift MODEL.xml`: an overview of a model on one screen, and the commands that make sense for it.

use std::path::{Path, PathBuf};

use typelift::explain::Stats;
use typelift::explain::map::PrecisionMap;
use typelift::findings::{
    Code, Count, Diagnostic, Diagnostics, Lines, Voice, grouped, shell_command, shell_word, size,
};
use typelift::promote::ElementType;
use typelift::shape::TensorType;
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
    let bodies =
        if stats.bodies > 0 { format!(" and {}", counted(stats.bodies, "body", "bodies")) } else { String::new() };
    let layers = count(stats.layers, "layer");
    let head =
        format!(": {name}IR version {}, {layers}{bodies}, {} of weights\n\n", stats.version, size(stats.weight_bytes));
    let mut columns = Columns::new([Side::Left, Side::Left, Side::Left]);
    let mut row = |title: &str, name: String, what: String| columns.push(PLAIN, [title.to_owned(), name, what]);
    let shapes = typelift::shapes(model);
    let lines = Lines::new(model.source().clone());
    let inputs: Vec<_> = model.inputs().collect();
    let input = |at: usize| {
        let (name, what) = end(model, &shapes, inputs[at], Some(inputs[at].id().output(0)));
        match lengths::limits(&shapes, inputs[at].id(), &lines) {
            limits if limits.is_empty() => (name, what),
            limits => (name, format!("{what}   {}", Clean(&limits))),
        }
    };
    list("inputs", inputs.len(), input, &mut row);
    let outputs: Vec<_> = model.outputs().collect();
    let output = |at: usize| end(model, &shapes, outputs[at], model.graph().producer(outputs[at].id().input(0)));
    list("outputs", outputs.len(), output, &mut row);
    for (title, entries) in metadata(model, &stats, file) {
        list(title, entries.len(), |at| entries[at].clone(), &mut row);
    }
    let weights = &stats.weights;
    let weight = |at: usize| {
        (
            weights[at].element_type.to_string(),
            format!("{}, {}", count(weights[at].constants, "constant"), size(weights[at].bytes)),
        )
    };
    list("weights", weights.len(), weight, &mut row);
    let rows = PrecisionMap::new(model, found).rows;
    let blocks: Vec<_> =
        rows.iter().filter(|row| row.parts.first().is_some_and(|part| part.family.is_some())).collect();
    let block = |at: usize| {
        let types: Vec<_> = blocks[at].computed.iter().take(3).map(|count| count.element_type.to_string()).collect();
        let what = format!(
            "{} of {}, in {}",
            count(blocks[at].blocks, "block"),
            count(blocks[at].layers / blocks[at].blocks, "layer"),
            types.join(", ")
        );
        (Clean(&blocks[at].name).to_string(), what)
    };
    list("blocks", blocks.len(), block, &mut row);
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
    let variables = model.state();
    let state = |(id, tensor): &(String, TensorType)| (Clean(id).to_string(), tensor.to_string());
    let one = |text: Option<String>| text.into_iter().map(|text| (Clean(&text).to_string(), String::new())).collect();
    let under = |group: &str| -> Vec<(String, String)> {
        let inside = stats.metadata.iter().filter(|(path, _)| path.starts_with(group));
        inside.map(|(path, value)| (Clean(&path[group.len()..]).to_string(), Clean(value).to_string())).collect()
    };
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
        ("state", variables.iter().map(state).collect()),
        ("made by", one(stats.made_by.clone())),
        (
            "fits",
            one(typelift::programs::fitting_part(model, Some(file)).map(|part| format!("openvino.genai, {part}"))),
        ),
        ("options", under("runtime_options/")),
        ("metadata", api),
    ]
}

fn list(title: &str, len: usize, of: impl Fn(usize) -> (String, String), row: &mut impl FnMut(&str, String, String)) {
    for at in 0..len.min(MOST) {
        let (name, what) = of(at);
        row(if at == 0 { title } else { "" }, name, what);
    }
    if len > MOST {
        row("", format!("and {} more", grouped((len - MOST) as u64)), String::new());
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
    let stored = |weight: &typelift::explain::Weight| match weight.element_type {
        ElementType::F32 => weight.bytes / 2,
        ElementType::F64 => weight.bytes / 4,
        _ => weight.bytes,
    };
    let bytes = stats.weights.iter().map(stored).sum();
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
    let fix = |finding: &Diagnostic| Voice::Shell(Some(Path::new(file))).command(finding);
    let is_safe = found.iter().any(|finding| finding.edits().is_some());
    let safe = is_safe.then(|| shell_command("check", " --fix", Path::new(file)));
    let fix = safe.or_else(|| found.iter().filter(|finding| finding.is_error()).find_map(fix));
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

/// `1 body`, `2 bodies`
fn counted(number: usize, one: &str, many: &str) -> String {
    format!("{} {}", grouped(number as u64), if number == 1 { one } else { many })
}
