//! `typelift verify`: two models run on an installed OpenVINO, and what differs.

use std::fmt::Write as _;
use std::path::PathBuf;

use anstyle::{AnsiColor, Style};
use serde::Serialize;
use typelift::Model;
use typelift::findings::Voice;
use typelift::shape::Shape;
use typelift_run::verify::{Difference, First, Growth, Report, RunError, Verification, VerifyError};

use crate::columns::count;
use crate::diff::load_both;
use crate::failure::Failure;
use crate::findings;
use crate::gate::Clean;
use crate::input::{self, Input};
use crate::openvino::PythonArgs;

use crate::render::{self, Show};
use crate::status::Status;
use crate::terminal::{Format, Page, Terminal};

/// The most outputs that are listed.
const OUTPUTS_LISTED: usize = 12;

/// Run two models on an installed OpenVINO and say whether they compute the same
///
/// Both models get the same inputs, made from the graph: indices in range, masks of 0 and 1, open dimensions as small as both
/// models accept. If an output differs, inner tensors are compared to find the layer at which the difference starts. Both
/// models run in f32 unless a hint says otherwise.
///
/// Exits with status 0 if they agree, 1 if they differ, and 2 if a model cannot run.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  typelift verify model.xml rewritten.xml
  typelift verify --shape 'input_ids=[1,16]' --layers model.xml int8.xml
  typelift verify --hint-a f32 --hint-b bf16 model.xml model.xml")]
pub(crate) struct Args {
    /// The first model's .xml, or - for standard input
    #[arg(value_name = "A.xml")]
    a: PathBuf,
    /// The second model's .xml, or - for standard input
    #[arg(value_name = "B.xml")]
    b: PathBuf,
    #[command(flatten)]
    run: RunArgs,
    /// Precision in which A runs: f32, bf16, f16
    #[arg(long, value_name = "TYPE")]
    hint_a: Option<String>,
    /// Precision in which B runs: f32, bf16, f16
    #[arg(long, value_name = "TYPE")]
    hint_b: Option<String>,
    /// Print how the error grows, block by block
    #[arg(long)]
    layers: bool,
    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

/// Options of every comparison by running.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) python: PythonArgs,
    /// Device on which both models run
    #[arg(long, value_name = "DEVICE", default_value = "CPU")]
    device: String,
    /// Shape of an input, such as NAME=[1,16]; repeatable. NAME takes * and ?
    #[arg(long, value_name = "NAME=SHAPE", value_parser = input::parse_shape)]
    shape: Vec<(String, Shape)>,
    /// Inputs from an .npz file or a folder of .npy files, by name or in order
    #[arg(long, value_name = "FILE")]
    inputs: Option<PathBuf>,
    /// Seed of random inputs
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Number of samples. The first has the smallest sizes, the others larger ones. A model with an If gets four times
    /// as many
    #[arg(long, value_name = "N", default_value_t = 2)]
    samples: usize,
    /// Steps to run a model with state; 3 unless given
    #[arg(long, value_name = "N")]
    steps: Option<usize>,
    /// Tolerance relative to the largest value of a tensor; by default that of the narrowest type in only one model
    #[arg(long, value_name = "REL")]
    rtol: Option<f64>,
    /// Absolute tolerance
    #[arg(long, value_name = "ABS")]
    atol: Option<f64>,
    /// Seconds that loading or running a model may take
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    pub(crate) timeout: u64,
}

impl RunArgs {
    pub(crate) fn verification(&self) -> Verification {
        let mut verification = Verification::default();
        verification.device.clone_from(&self.device);
        verification.shapes.clone_from(&self.shape);
        verification.inputs.clone_from(&self.inputs);
        verification.seed = self.seed;
        verification.samples = self.samples;
        verification.steps = self.steps;
        verification.relative = self.rtol;
        verification.absolute = self.atol;
        verification
    }
}

/// A comparison before a model is written
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct BeforeWriting {
    /// Write only if an installed OpenVINO computes the same
    #[arg(long)]
    verify: bool,
    /// Tolerance of --verify, relative to the largest value of a tensor
    #[arg(long, value_name = "REL", requires = "verify")]
    rtol: Option<f64>,
    /// The Python of --verify that has openvino installed. Without it TYPELIFT_PYTHON, else python3
    #[arg(long, value_name = "PYTHON", requires = "verify")]
    python: Option<PathBuf>,
}

/// Outcome of a comparison before a model is written.
pub(crate) enum Verdict {
    /// No comparison was requested, or the models agree: a remark on that.
    Agree(Option<String>),
    /// The models differ: the report.
    Differ(String),
}

impl BeforeWriting {
    /// Seconds that loading or running a model may take.
    const SECONDS: u64 = 600;

    /// Compares the result of a change with the model that was read.
    pub(crate) fn compare(&self, input: &Input, result: &Model) -> Result<Verdict, Failure> {
        if !self.verify {
            return Ok(Verdict::Agree(None));
        }
        if input.is_stdin() {
            return Err(
                Failure::new("--verify reads the model again, which standard input does not allow").help("give a file")
            );
        }
        let original = input.load()?;
        let Some(original) = &original.model else { return Err(Failure::new("the model cannot be read again")) };
        let mut result = result.clone();
        // The result was found to be well-typed; its shapes may be out of date.
        let _known = typelift::infer(&mut result);
        let mut verification = Verification::default();
        verification.relative = self.rtol;
        let mut runner = PythonArgs { python: self.python.clone() }.runner(Self::SECONDS);
        let report = verification.run(original, &result, &mut runner).map_err(failure)?;
        if !report.same {
            return Ok(Verdict::Differ(text(&report)));
        }
        let worst = report.outputs.iter().map(|output| output.difference.max_relative).fold(0.0, f64::max);
        let apart = format!(", apart at most {} of the largest value", number(worst, 2));
        let apart = if worst > 0.0 { &apart } else { "" };
        Ok(Verdict::Agree(Some(format!("computes the same{apart}"))))
    }
}

/// A comparison as JSON has it.
#[derive(Serialize)]
struct Document<'a> {
    files: [&'a String; 2],
    #[serde(flatten)]
    report: &'a Report,
}

pub(crate) fn run(args: &Args, terminal: &mut Terminal) -> Result<Status, Failure> {
    if input::is_dash(&args.a) && input::is_dash(&args.b) {
        return Err(Failure::new("only one of the two models can come from standard input"));
    }
    terminal.answers_in_json = args.format == Format::Json;
    let (a, b) = load_both(&args.a, &args.b)?;
    for loaded in [&a, &b] {
        terminal.say(&render::text(&loaded.diagnostics, Voice::Shell(None), Show::Briefly));
    }
    let refused = [&a, &b].into_iter().find(|loaded| loaded.model.is_none() || loaded.diagnostics.has_errors());
    let (Some(first), Some(second), None) = (&a.model, &b.model, refused) else {
        if let Some(refused) = refused.filter(|_| args.format == Format::Json) {
            terminal.print(&findings::refused(&refused.diagnostics)?)?;
        }
        return Ok(Status::Failed);
    };
    let mut verification = args.run.verification();
    verification.hints = [args.hint_a.clone(), args.hint_b.clone()];
    verification.layers = args.layers;
    let mut runner = args.run.python.runner(args.run.timeout);
    let report = verification.run(first, second, &mut runner).map_err(failure)?;
    match args.format {
        Format::Json => {
            let files = [&a.diagnostics.file, &b.diagnostics.file];
            terminal.print_document(&Document { files, report: &report })?;
        }
        Format::Text => {
            terminal.show(&Page { said: String::new(), printed: text(&report), styled: true, ..Page::default() })?
        }
    }
    Ok(Status::of(!report.same))
}

/// Explains how to get an OpenVINO. `reason` says where it was looked for.
pub(crate) fn no_runtime(reason: String) -> Failure {
    Failure::new(reason).help("install it with `pip install openvino`, or name the Python that has it with --python")
}

/// Explains why models could not be compared.
pub(crate) fn failure(error: VerifyError) -> Failure {
    let failure = Failure::new(error.to_string());
    match error {
        VerifyError::Runtime(RunError::Missing(reason)) => no_runtime(reason),
        VerifyError::NoShapes => failure.help("give the shapes of inputs, such as --shape 'NAME=[1,16]'"),
        VerifyError::Run { .. } => {
            failure.help("give inputs that fit with --shape or --inputs; if OpenVINO refuses the model itself, `typelift check` may say why")
        }
        _ => failure,
    }
}

const GOOD: Style = AnsiColor::Green.on_default();
const BAD: Style = AnsiColor::Red.on_default();
const FAINT: Style = Style::new().dimmed();

/// Writes a report for reading.
pub(crate) fn text(report: &Report) -> String {
    let mut text = String::new();
    let verdict = match report.same {
        true => format!("{GOOD}agree{GOOD:#}"),
        false => format!("{BAD}differ{BAD:#}"),
    };
    let failing = report.outputs.iter().filter(|output| !output.difference.same).count();
    let outputs = count(report.outputs.len(), "output");
    let of = if report.same { outputs } else { format!("{failing} of {outputs}") };
    let _ = writeln!(text, "the models {verdict}: {of}, {}", count(report.samples.len(), "sample"));
    let mut listed: Vec<_> = report.outputs.iter().collect();
    listed.sort_by_key(|output| output.difference.same);
    for output in listed.iter().take(OUTPUTS_LISTED) {
        let (mark, style) = if output.difference.same { ("=", GOOD) } else { ("~", BAD) };
        let types = output.element_type_in_b.as_ref().map_or(String::new(), |other| format!(", {other} in B"));
        let ty = &output.element_type;
        let _ = writeln!(
            text,
            "{style}{mark}{style:#} {} ({ty}{types}): {}",
            Clean(&output.name),
            figures(&output.difference)
        );
    }
    if listed.len() > OUTPUTS_LISTED {
        let _ = writeln!(text, "{FAINT}  and {} more{FAINT:#}", listed.len() - OUTPUTS_LISTED);
    }
    if let Some(first) = &report.first {
        text += &start(first);
    }
    report.blocks.iter().for_each(|block| text += &growth(block));
    text + &circumstances(report)
}

/// Formats ``  layers.3: at most 0.0012 of the largest value, in `layers.3.norm` (34 tensors)``.
fn growth(block: &Growth) -> String {
    let name = if block.block.is_empty() { "outside of blocks" } else { &block.block };
    let tensors = count(block.tensors, "tensor");
    match block.max_relative {
        0.0 => format!("  {}: equal ({tensors})\n", Clean(name)),
        most => {
            let most = match most.is_finite() {
                true => format!("at most {} of the largest value", number(most, 2)),
                false => size(most),
            };
            format!("  {}: {most}, in `{}` ({tensors})\n", Clean(name), Clean(&block.layer))
        }
    }
}

/// Returns the inputs, the device and the tolerance.
fn circumstances(report: &Report) -> String {
    let mut text = String::new();
    for (at, sample) in report.samples.iter().enumerate() {
        let inputs = sample
            .inputs
            .iter()
            .take(6)
            .map(|fed| format!("{} {}{}: {}", Clean(&fed.name), fed.element_type, fed.shape, fed.values));
        let rest = sample.inputs.len().saturating_sub(6);
        let rest = if rest > 0 { format!("; and {rest} more") } else { String::new() };
        let steps = if sample.steps > 1 { format!(", {} steps", sample.steps) } else { String::new() };
        let inputs = inputs.collect::<Vec<_>>().join("; ");
        let _ = writeln!(text, "{FAINT}sample {}{steps}: {inputs}{rest}{FAINT:#}", at + 1);
    }
    let runtime = &report.runtime;
    let name = runtime.full_name.as_ref().map_or(String::new(), |name| format!(" ({})", Clean(name.trim())));
    let precision = |at: usize| report.precision[at].as_deref().unwrap_or("the device's own precision");
    let precision = match (precision(0), precision(1)) {
        (a, b) if a == b => a.to_owned(),
        (a, b) => format!("{a} for A and {b} for B"),
    };
    let tolerance = report.tolerance;
    let _ = writeln!(
        text,
        "{FAINT}OpenVINO {} on {}{name} in {precision}; tolerance {:.0e} of the largest value ({}){FAINT:#}",
        runtime.version, runtime.device, tolerance.relative, report.narrowest
    );
    for note in &report.notes {
        let _ = writeln!(text, "{FAINT}note: {}{FAINT:#}", Clean(note));
    }
    text
}

/// Formats `3 of 8 values differ, at most 0.01, 2.3e-4 of the largest value; cosine 0.9999`.
fn figures(difference: &Difference) -> String {
    if let Some([a, b]) = &difference.shapes {
        return format!("shape {a} in A, {b} in B");
    }
    if difference.changed == 0 {
        return "equal".to_owned();
    }
    let mut text = format!("{} of {} values differ", difference.changed, difference.of);
    if difference.max_absolute > 0.0 {
        let (most, part) = (number(difference.max_absolute, 4), size(difference.max_relative));
        let _ = write!(text, ", at most {most}, {part} of the largest value");
    }
    if difference.not_finite > 0 {
        let _ = write!(text, ", {} NaN or infinite in one model", difference.not_finite);
    }
    let _ = write!(text, "; cosine {:.6}", difference.cosine);
    text
}

fn size(relative: f64) -> String {
    if relative.is_finite() { number(relative, 2) } else { "not finite in one model".to_owned() }
}

/// Formats a number with as many significant digits: `0.0013`, `-1.608602`, `7.2e-5`.
fn number(value: f64, digits: usize) -> String {
    let size = value.abs();
    if value == 0.0 || !value.is_finite() {
        return format!("{value}");
    }
    if !(1e-3..1e7).contains(&size) {
        return format!("{value:.*e}", digits - 1);
    }
    let before = size.log10().floor() as i32 + 1;
    let after = usize::try_from(digits as i32 - before).unwrap_or(0);
    let text = format!("{value:.after$}");
    if after == 0 { text } else { text.trim_end_matches('0').trim_end_matches('.').to_owned() }
}

fn start(first: &First) -> String {
    let mut text = String::new();
    let side = |operation: &str, layer: &typelift::findings::LayerRef, types: &[String]| {
        format!("{operation} {} `{}` : {}", layer.id, Clean(&layer.name), types.join(", "))
    };
    let how =
        if first.inputs_agree { "the difference starts" } else { "no layer starts it alone; the error grows most" };
    let step = if first.step > 1 { format!(" in step {}", first.step) } else { String::new() };
    let _ = writeln!(text, "{how}{step} at");
    let _ = writeln!(text, "  A: {}", side(&first.operation, &first.layer, &first.types));
    let _ = writeln!(text, "  B: {}", side(&first.operation_in_b, &first.in_b, &first.types_in_b));
    if let Some(difference) = &first.difference {
        let _ = writeln!(text, "  {}", figures(difference));
        for place in &difference.worst {
            let _ = writeln!(text, "    {:?}: {} in A, {} in B", place.index, number(place.a, 7), number(place.b, 7));
        }
    }
    for change in first.changes.iter().take(5) {
        let _ = writeln!(text, "  change: {}", crate::diff::headline(change));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_exact_enough() {
        let cases = [
            (0.0, 4, "0"),
            (1.142_051, 4, "1.142"),
            (-0.001_25, 4, "-0.00125"),
            (7.234e-5, 2, "7.2e-5"),
            (123_456.0, 2, "123456"),
            (-1.608_601_808_547, 7, "-1.608602"),
            (9e20, 3, "9.00e20"),
            (f64::NAN, 3, "NaN"),
            (f64::NEG_INFINITY, 3, "-inf"),
        ];
        for (value, digits, text) in cases {
            assert_eq!(number(value, digits), text);
        }
    }
}
