//! `typelift verify`: two runs of models on an installed OpenVINO, and what differs.

use std::fmt::Write as _;
use std::path::PathBuf;

use anstyle::{AnsiColor, Style};
use serde::Serialize;
use typelift::Model;
use typelift::findings::{FileName, Voice, shell_word};
use typelift::shape::Shape;
use typelift_run::verify::{
    Difference, First, Growth, NotTested, Report, Run, RunError, RunOptions, Setting, Verification, VerifyError,
};

use crate::columns::{FAINT, count};
use crate::diff::load_both;
use crate::failure::Failure;
use crate::files;
use crate::findings;
use crate::gate::Clean;
use crate::input::{self, Input, Loaded};
use crate::noted;
use crate::openvino::Installations;
use crate::output::{check_ending, write_report};
use crate::render::{self, Show};
use crate::status::Status;
use crate::terminal::{Format, Page, Terminal};
use crate::waiting;

const OUTPUTS_LISTED: usize = 12;
/// The most reasons that are listed for layers that were not tested.
const REASONS_LISTED: usize = 6;

/// Run two models on an installed OpenVINO, or one model in two ways, and say whether they compute the same
///
/// Both get the same inputs, made from the graph: indices in range, masks of 0 and 1, open dimensions as small as both
/// models accept, and then larger. If an output differs, inner tensors are compared to find the layer at which the
/// difference starts. Without other options both run in f32, with all approximations of the device turned off.
///
/// Exits with status 0 if they agree, 1 if they differ, and 2 if a model cannot run or if the inputs that were made test
/// nothing that differs.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  typelift verify model.xml rewritten.xml
  typelift verify --shape 'input_ids=[1,16]' --layers model.xml int8.xml
  typelift verify --hint-b bf16 model.xml
  typelift verify --inputs inputs.npz --expect outputs.npz model.xml")]
pub(crate) struct Args {
    /// The first model's .xml, or - for standard input
    #[arg(value_name = "A.xml")]
    a: PathBuf,
    /// The second model's .xml, or - for standard input. Without it A runs twice, or is compared with --expect
    #[arg(value_name = "B.xml")]
    b: Option<PathBuf>,
    #[command(flatten)]
    run: RunArgs,
    /// Inputs from an .npz file or a folder of .npy files, by name or in order. Arrays named like outputs are expected
    #[arg(long, value_name = "FILE")]
    inputs: Option<PathBuf>,
    /// Outputs of the framework from an .npz file or a folder of .npy files, by name or in order, that A must compute
    #[arg(long, value_name = "FILE")]
    expect: Option<PathBuf>,
    /// Write the inputs of all samples to this .npz file, which --inputs reads
    #[arg(long, value_name = "FILE.npz")]
    save_inputs: Option<PathBuf>,
    /// Print how the error grows, block by block
    #[arg(long)]
    layers: bool,
    /// Seconds that loading or running a model may take
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    timeout: u64,
    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

/// Options of every comparison by running.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    sides: RunOptions,
    /// Shape of an input, such as NAME=[1,16]; repeatable. NAME takes * and ?
    #[arg(long, value_name = "NAME=SHAPE", value_parser = input::parse_shape)]
    shape: Vec<(String, Shape)>,
    /// Seed of random inputs
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Number of samples. The first has the smallest sizes, the others larger ones. A model with an If,
    /// or a Loop that values may end, gets four times as many
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
}

impl RunArgs {
    pub(crate) fn verification(&self) -> Verification {
        let mut verification = Verification::default();
        verification.settings = self.settings();
        verification.shapes.clone_from(&self.shape);
        verification.seed = self.seed;
        verification.samples = self.samples;
        verification.steps = self.steps;
        verification.relative = self.rtol;
        verification.absolute = self.atol;
        verification
    }

    pub(crate) fn settings(&self) -> [Setting; 2] {
        self.sides.clone().settings()
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

pub(crate) enum Verdict {
    /// No comparison was requested, or the models agree: a remark on that.
    Agree(Option<String>),
    /// The models differ: the report.
    Differ(String),
}

impl BeforeWriting {
    /// Seconds that loading or running a model may take.
    const SECONDS: u64 = 600;

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
        verification.settings.iter_mut().for_each(|setting| setting.python.clone_from(&self.python));
        let report =
            verification.run(original, Some(&result), &mut Installations::new(Self::SECONDS)).map_err(failure)?;
        if !report.same {
            return Ok(Verdict::Differ(text(&report)));
        }
        let worst = report.outputs.iter().map(|output| output.difference.max_relative).fold(0.0, f64::max);
        let apart = format!(", apart at most {} of the largest value", number(worst, 2));
        let apart = if worst > 0.0 { &apart } else { "" };
        let (tested, layers) = (report.tested, count(report.layers, "layer"));
        Ok(Verdict::Agree(Some(format!("computes the same{apart}; the inputs test {tested} of {layers}"))))
    }
}

#[derive(Serialize)]
struct Document<'a> {
    files: Vec<FileName<'a>>,
    #[serde(flatten)]
    report: &'a Report,
}

pub(crate) fn run(args: &Args, terminal: &mut Terminal) -> Result<Status, Failure> {
    let paths: Vec<&PathBuf> = [&args.a].into_iter().chain(&args.b).collect();
    if paths.iter().all(|path| input::is_dash(path)) && paths.len() == 2 {
        return Err(Failure::new("only one of the two models can come from standard input"));
    }
    if let Some(saved) = &args.save_inputs {
        check_ending(saved, "npz", "arrays as .npz")?;
        args.inputs.iter().chain(&args.expect).for_each(|path| noted::note_read(path));
        let models: Vec<_> = paths.into_iter().map(Input::new).collect();
        files::Run { models: &models, documents: &[(saved, "the inputs")], ..files::Run::default() }.check()?;
    }
    if let Some(path) = args.inputs.iter().chain(&args.expect).find(|path| !path.exists()) {
        let failure = Failure::no_file(path);
        return Err(failure.help("give an .npz file, or a folder of .npy files, as --save-inputs FILE.npz writes one"));
    }
    terminal.answers_in_json = args.format == Format::Json;
    let mut verification = args.run.verification();
    verification.layers = args.layers;
    verification.inputs.clone_from(&args.inputs);
    verification.expect.clone_from(&args.expect);
    let mut runner = Installations::new(args.timeout);
    let (loaded, report) = waiting::shown(|| {
        let loaded = match &args.b {
            Some(b) => <[Loaded; 2]>::from(load_both(&args.a, b)?).into(),
            None => vec![Input::new(&args.a).load()?],
        };
        let is_refused = loaded.iter().any(|loaded| loaded.diagnostics.has_errors());
        let models: Vec<&Model> = loaded.iter().filter_map(|loaded| loaded.model.as_ref()).collect();
        let first = models.first().filter(|_| !is_refused && models.len() == loaded.len());
        let report = first.map(|first| verification.run(first, models.get(1).copied(), &mut runner));
        Ok::<_, Failure>((loaded, report))
    })??;
    for loaded in &loaded {
        terminal.say(&render::text(&loaded.diagnostics, Voice::Shell(None), Show::Briefly));
    }
    let Some(report) = report else {
        let refused = loaded.iter().find(|loaded| loaded.model.is_none() || loaded.diagnostics.has_errors());
        if let (Some(refused), Format::Json) = (refused, args.format) {
            terminal.print(&findings::refused(&refused.diagnostics)?)?;
        }
        return Ok(Status::Failed);
    };
    let report = report.map_err(failure)?;
    if let Some(saved) = &args.save_inputs {
        let packed = runner.pack(&report.fed).map_err(|error| failure(VerifyError::Runtime(error)))?;
        write_report(saved, packed)?;
    }
    match args.format {
        Format::Json => {
            let files = loaded.iter().map(|loaded| FileName(&loaded.diagnostics.file)).collect();
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

pub(crate) fn failure(error: VerifyError) -> Failure {
    let failure = Failure::new(error.to_string());
    match error {
        VerifyError::Runtime(RunError::Missing(reason)) => no_runtime(reason),
        VerifyError::Lengths { ref fit, .. } if !fit.is_empty() => {
            let shapes = fit.iter().map(|shape| format!("--shape {}", shell_word(shape))).collect::<Vec<_>>();
            failure.help(format!("lengths that fit are {}", shapes.join(" ")))
        }
        VerifyError::Inputs(_) => failure.help("`typelift MODEL.xml` prints the inputs and outputs; --save-inputs FILE.npz writes a file that fits"),
        VerifyError::Unpaired(_) => failure.help("`typelift diff` says which inputs and outputs only one of the models has"),
        VerifyError::IllTyped { .. } => failure.help("give --inputs or --shape the shapes of the model's inputs, which `typelift MODEL.xml` prints"),
        VerifyError::NoShapes => failure.help("give the shapes of inputs, such as --shape 'NAME=[1,16]'"),
        VerifyError::NotTested { .. } => failure.help("give inputs that test it with --inputs, or larger ones with --shape"),
        VerifyError::NothingDiffers => failure.help(
            "give B.xml, --expect FILE, or an option for one side: --device-b, --python-b, --config-b, --hint-b, --simulate-b",
        ),
        VerifyError::NotTaken { ref name, ref asked, .. } if name == "INFERENCE_PRECISION_HINT" && asked == "f16" => {
            failure.help("--simulate f16 computes what f16 does on any device")
        }
        VerifyError::Runtime(RunError::Unknown { help, .. }) => failure.help(help),
        VerifyError::Run { error: RunError::Unknown { help, .. }, .. } => failure.help(help),
        VerifyError::Run { .. } => {
            failure.help("give inputs that fit with --shape or --inputs; if OpenVINO refuses the model itself, `typelift check` may say why")
        }
        _ => failure,
    }
}

const GOOD: Style = AnsiColor::Green.on_default();
const BAD: Style = AnsiColor::Red.on_default();

pub(crate) fn text(report: &Report) -> String {
    let mut text = String::new();
    let verdict = match report.same {
        true => format!("{GOOD}agree{GOOD:#}"),
        false => format!("{BAD}differ{BAD:#}"),
    };
    let failing = report.outputs.iter().filter(|output| !output.difference.same).count();
    let outputs = count(report.outputs.len(), "output");
    let of = if report.same { outputs } else { format!("{failing} of {outputs}") };
    let who = if report.runs.len() == 2 { "the models" } else { "the model and the expected outputs" };
    let _ = writeln!(text, "{who} {verdict}: {of}, {}", count(report.samples.len(), "sample"));
    let mut listed: Vec<_> = report.outputs.iter().collect();
    listed.sort_by_key(|output| output.difference.same);
    for output in listed.iter().take(OUTPUTS_LISTED) {
        let (mark, style) = if output.difference.same { ("=", GOOD) } else { ("~", BAD) };
        let other = if output.expected { "expected" } else { "in B" };
        let types = output.element_type_in_b.as_ref().map_or(String::new(), |ty| format!(", {ty} {other}"));
        let against = if output.expected && report.runs.len() == 2 { " against the expected output" } else { "" };
        let ty = &output.element_type;
        let _ = writeln!(
            text,
            "{style}{mark}{style:#} {} ({ty}{types}){against}: {}",
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
    text + &tested(report) + &circumstances(report)
}

/// Formats how many layers were tested, and why others were not.
fn tested(report: &Report) -> String {
    let Report { tested, layers, not_tested, .. } = report;
    if *layers == 0 {
        return String::new();
    }
    let mut text = format!("tested {tested} of {}\n", count(*layers, "layer"));
    let mut reasons: Vec<(&str, Vec<&NotTested>)> = Vec::new();
    for it in not_tested {
        match reasons.iter_mut().find(|(reason, _)| *reason == it.reason) {
            Some((_, layers)) => layers.push(it),
            None => reasons.push((&it.reason, vec![it])),
        }
    }
    reasons.sort_by_key(|(_, layers)| std::cmp::Reverse(layers.len()));
    for (reason, layers) in reasons.iter().take(REASONS_LISTED) {
        let first = Clean(&layers[0].layer.full_name()).to_string();
        let rest =
            if layers.len() > 1 { format!(" and {}", count(layers.len() - 1, "more layer")) } else { String::new() };
        let _ = writeln!(text, "  not tested: `{first}`{rest}, because {}", Clean(reason));
    }
    if reasons.len() > REASONS_LISTED {
        let _ = writeln!(text, "  and for {}", count(reasons.len() - REASONS_LISTED, "other reason"));
    }
    text
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
    match &report.runs[..] {
        [a, b] if ran(a) != ran(b) => {
            let _ = writeln!(text, "{FAINT}A: {}\nB: {}{FAINT:#}", ran(a), ran(b));
        }
        runs => runs.iter().take(1).for_each(|run| text += &format!("{FAINT}{}{FAINT:#}\n", ran(run))),
    }
    let (tolerance, narrowest) = (report.tolerance, report.narrowest);
    let _ = writeln!(text, "{FAINT}tolerance {:.0e} of the largest value ({narrowest}){FAINT:#}", tolerance.relative);
    for note in &report.notes {
        let _ = writeln!(text, "{FAINT}note: {}{FAINT:#}", Clean(note));
    }
    text
}

/// Formats `OpenVINO 2026.4.1 on CPU (Xeon) in f32, KV_CACHE_PRECISION=u8`. Properties that turn approximations off are not said.
fn ran(run: &Run) -> String {
    let name = run.full_name.as_ref().map_or(String::new(), |name| format!(" ({})", Clean(name.trim())));
    let precision = run.precision.as_deref().unwrap_or("a precision that it does not report");
    let simulated = if run.simulates_f16 { ", rounded to f16" } else { "" };
    let config: String = run.said().map(|(name, value)| format!(", {}={}", Clean(name), Clean(value))).collect();
    format!(
        "OpenVINO {} on {}{name} in {}{simulated}{config}",
        Clean(&run.openvino),
        Clean(&run.device),
        Clean(precision)
    )
}

/// Formats `3 of 8 values differ, at most 0.01, 2.3e-4 of the largest value; cosine 0.9999`.
fn figures(difference: &Difference) -> String {
    if let Some([a, b]) = &difference.shapes {
        return format!("shape {a} in A, {b} in B");
    }
    let nan = match difference.nan {
        0 => String::new(),
        nan => format!(", {nan} NaN in both"),
    };
    if difference.changed == 0 {
        return format!("equal{nan}");
    }
    let mut text = format!("{} of {} values differ", difference.changed, difference.of);
    if difference.max_absolute > 0.0 {
        let (most, part) = (number(difference.max_absolute, 4), size(difference.max_relative));
        let _ = write!(text, ", at most {most}, {part} of the largest value");
    }
    if difference.not_finite > 0 {
        let _ = write!(text, ", {} NaN or infinite in one model", difference.not_finite);
    }
    let _ = write!(text, "{nan}; cosine {:.6}", difference.cosine);
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
    let how =
        if first.inputs_agree { "the difference starts" } else { "no layer starts it alone; the error grows most" };
    let step = if first.step > 1 { format!(" in step {}", first.step) } else { String::new() };
    let _ = writeln!(text, "{how}{step} at");
    for (side, operation, layer, types) in [
        ("A", &first.operation, &first.layer, &first.types),
        ("B", &first.operation_in_b, &first.in_b, &first.types_in_b),
    ] {
        let (name, types) = (Clean(&layer.name), types.join(", "));
        let _ = writeln!(text, "  {side}: {operation} {} `{name}` : {types}", layer.id);
    }
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
