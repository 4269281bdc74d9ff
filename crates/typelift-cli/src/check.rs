//! `typelift check`: reports the errors and lints of a model.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::io;
use std::str::FromStr;
use std::sync::{Arc, LazyLock};

use clap::ValueEnum;
use clap::builder::PossibleValue;
use typelift::findings::{
    About, Code, Count, Diagnostic, Diagnostics, Document, FixAction, Frame, Severity, TextEdit, Voice, shell_command,
    shell_word,
};
use typelift::ops::Release;
use typelift::programs::Program;
use typelift::promote::ElementType;
use typelift::rewrite::library;
use typelift::{Checked, Checking, Device, Model, NeedForWeights};

use crate::batch::{ARRAY, Batch, Inputs, LINES};
use crate::explain::find_code;
use crate::failure::Failure;
use crate::fit;
use crate::gate::Form;
use crate::input::{Input, Loaded, ReadFrom};
use crate::output::{OutputArgs, Target};
use crate::ran::RanArgs;
use crate::render::{self, STAND_IN, Show};
use crate::status::Status;
use crate::terminal::{self, Page, Terminal};
use crate::verify::{BeforeWriting, Verdict};

/// Report every error and lint of a model
///
/// OpenVINO refuses a model with errors. Warnings are probable mistakes that it accepts silently. One run reports
/// everything, causes first, and writes nothing. `typelift explain CODE` describes a finding.
///
/// Several models are checked in parallel and reported in order. A directory means every .xml file below it; files
/// that are not IR are skipped. The exit status is the worst of all.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  typelift check model.xml
  typelift check models --deny warnings
  typelift check --target 2023.3 model.xml
  typelift check --for f16 model.xml
  typelift check --ran exec.xml --deny ran-unfolded model.xml
  typelift check --deny stale-port,unreachable-layer --allow unaligned-constant model.xml
  typelift check --fix --diff model.xml
  typelift check --fix model.xml -o fixed.xml
  typelift check --format json model.xml | jq '.diagnostics[].code'
  typelift check --format sarif models > typelift.sarif")]
pub(crate) struct Args {
    #[command(flatten)]
    inputs: Inputs,
    /// Take the files that changed, as a hook names them. A .bin stands for the .xml next to it, and XML of another kind
    /// is skipped
    #[arg(long, conflicts_with_all = ["fix", "bin"])]
    changed: bool,
    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Also exit with status 1 on these findings: codes, or `warnings` for all warnings
    #[arg(long, value_name = "CODE", value_delimiter = ',')]
    deny: Vec<Kinds>,
    /// Do not report these findings; errors cannot be allowed
    #[arg(long, value_name = "CODE", value_delimiter = ',', value_parser = parse_allowed)]
    allow: Vec<Kinds>,
    /// Report errors of this release, such as 2023.3. Parts that this OpenVINO release does not support are errors
    #[arg(long, value_name = "RELEASE")]
    target: Option<Release>,
    /// Also report what would go wrong in this type, on this device or in this program. With f16 or bf16 the model
    /// computes in that type, with i32 in place of i64. A device refuses some layers, or computes them otherwise. A
    /// program finds inputs, outputs, state, metadata and files by name: genai (or genai:PIPELINE with llm, vlm, whisper,
    /// text2image, embedding, rerank or tokenizer), ovms, model-api, optimum. May be given more than once
    #[arg(long = "for", value_name = "TYPE|DEVICE|PROGRAM")]
    purposes: Vec<Purpose>,
    /// Make the safe edits in the text of the model. Each was tried, fixes a finding, and has no rival. Writes the
    /// model to -o OUT.xml or --in-place, and reports the findings that remain
    #[arg(long)]
    fix: bool,
    /// Print the changes of --fix as a unified diff, and write nothing
    #[arg(long, requires = "fix")]
    diff: bool,
    #[command(flatten)]
    ran: RanArgs,
    #[command(flatten)]
    before: BeforeWriting,
    #[command(flatten)]
    output: OutputArgs,
    /// Show every finding, and the oldest release that reads the model
    #[arg(long)]
    all: bool,
}

#[derive(Clone, Copy)]
enum Format {
    Text,
    /// The JSON document of all commands.
    Json,
    Other(&'static typelift::findings::Format),
}

impl ValueEnum for Format {
    fn value_variants<'a>() -> &'a [Self] {
        static ALL: LazyLock<Vec<Format>> = LazyLock::new(|| {
            let others = typelift::findings::Format::ALL.iter().map(Format::Other);
            [Format::Text, Format::Json].into_iter().chain(others).collect()
        });
        &ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let (name, about) = match self {
            Self::Text => ("text", "Findings with the source they point at"),
            Self::Json => ("json", "One document with everything"),
            Self::Other(format) => (format.name, format.about),
        };
        Some(PossibleValue::new(name).help(about))
    }
}

impl Format {
    fn form(self) -> Form {
        match self {
            Self::Text => Form::Text,
            Self::Json => Form::Json,
            Self::Other(format) if format.name == "sarif" => Form::Json,
            Self::Other(_) => Form::Commands,
        }
    }

    fn frame(self, is_single: bool) -> Result<Frame, Failure> {
        match self {
            Self::Json if !is_single => Ok(ARRAY),
            Self::Text | Self::Json => Ok(LINES),
            Self::Other(format) => format.frame().map_err(unwritten),
        }
    }
}

fn unwritten(error: io::Error) -> Failure {
    Failure::new(error.to_string())
}

#[derive(Clone, Copy)]
enum Purpose {
    Precision(ElementType),
    Device(Device),
    Program(Program),
}

impl FromStr for Purpose {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let written = text.to_lowercase();
        // Other programs spell the types differently: bfloat16, int32.
        let text = typelift::host::named_element_type(&written).map_or(written.clone(), |ty| ty.name().to_owned());
        let known: Vec<_> = ["f16", "bf16", "i32", "cpu", "gpu", "npu"]
            .map(str::to_owned)
            .into_iter()
            .chain(Program::names())
            .collect();
        if !known.contains(&text) {
            let near = typelift::near(&written, known.iter().map(String::as_str));
            let near = near.map_or(String::new(), |near| format!("; did you mean `{near}`?"));
            return Err(format!("expected one of {}{near}", known.join(", ")));
        }
        let precision = typelift::host::named_element_type(&text).map(Self::Precision);
        precision.ok_or(()).or_else(|()| text.parse().map(Self::Device)).or_else(|_| text.parse().map(Self::Program))
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kinds {
    Warnings,
    Code(Code),
}

impl Kinds {
    fn include(self, diagnostic: &Diagnostic) -> bool {
        match self {
            Self::Warnings => diagnostic.severity == Severity::Warning,
            Self::Code(code) => diagnostic.code == code,
        }
    }
}

impl FromStr for Kinds {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "warnings" | "warning" => Ok(Self::Warnings),
            text => find_code(text).map(Self::Code),
        }
    }
}

fn parse_allowed(text: &str) -> Result<Kinds, String> {
    match text.parse()? {
        Kinds::Code(code) if code.severity() == Severity::Error => {
            Err("it is an error: OpenVINO refuses the model, whether it is reported or not".to_owned())
        }
        kinds => Ok(kinds),
    }
}

/// The command that applies safe fixes, if a refused model of this text has some.
pub(crate) fn suggestion(input: &Input, text: &Arc<String>) -> Option<String> {
    let file = input.as_argument()?;
    let checked = Checking { fix: true, ..Checking::default() }.run(text, &input.open_weights().ok()?);
    let edits = match checked.fixed.len() {
        0 => return None,
        1 => "an edit that was".to_owned(),
        count => format!("{count} edits that were"),
    };
    Some(format!("`{}` makes {edits} tried\n", shell_command("check", " --fix", file)))
}

/// Removes the proposed rules after which a finding remains.
fn try_rules(model: &Model, checking: &Checking, found: &mut [Diagnostic]) {
    let proposed = found.iter().flat_map(|it| &it.fixes).filter_map(|fix| match fix.action {
        FixAction::Rewrite(name) => Some(name),
        _ => None,
    });
    for name in proposed.collect::<BTreeSet<_>>() {
        let mut changed = model.clone();
        let rules = library::get(name).and_then(|set| set.rules().ok());
        let is_applied = rules.is_some_and(|rules| changed.rewrite(&rules).is_ok());
        let read = typelift::infer(&mut changed);
        let left = checking.check_inferred(&changed, None, read, false);
        for it in found.iter_mut() {
            let remains = !is_applied || left.iter().any(|other| (other.code, &other.layer) == (it.code, &it.layer));
            it.fixes.retain(|fix| !remains || fix.action != FixAction::Rewrite(name));
        }
    }
}

struct Fix<'a> {
    before: Arc<String>,
    read_from: &'a ReadFrom,
    removed: Vec<Diagnostic>,
    /// True if the budget of one run was used up.
    is_unfinished: bool,
}

struct Outcome {
    count: Count,
    fails: bool,
}

pub(crate) fn run(args: &Args, terminal: &mut Terminal) -> Result<Status, Failure> {
    terminal.answers_in_json = matches!(args.format, Format::Json);
    if args.output.is_given() && !args.fix {
        return Err(Failure::new("`check` writes a model only with --fix").help("add --fix, or leave the output out"));
    }
    if args.fix && !args.diff && !args.output.is_given() {
        let failure = args.inputs.nowhere("--diff to see what would be changed");
        let batch = args.inputs.find(None, &[], &[]).ok();
        let Some(input) = batch.as_ref().and_then(Batch::single) else { return Err(failure) };
        let (loaded, file) = (input.load()?, input.file.to_string_lossy());
        return Err(match suggestion(input, &loaded.diagnostics.source) {
            None => {
                failure.helped(format!("no edit is safe: `typelift check {}` says what is wrong", shell_word(&file)))
            }
            Some(_) => failure,
        });
    }
    let writes = args.fix && !args.diff;
    let batch = match args.changed {
        true => args.inputs.find_changed(),
        false => args.inputs.find(writes.then_some(&args.output), &[], &[])?,
    };
    args.ran.check(batch.single().is_some())?;
    let frame = if args.keeps_stdout() { LINES } else { args.format.frame(batch.single().is_some())? };
    let is_quiet = terminal.is_quiet;
    let outcomes = batch.each(&frame, terminal, |input, page| args.check(input, page, is_quiet))?;
    if batch.single().is_none() {
        let with_errors = outcomes.done.iter().filter(|outcome| outcome.count.errors > 0).count();
        let files = [(outcomes.done.len() - with_errors, "without errors"), (with_errors, "with errors")];
        let total: Count = outcomes.done.iter().map(|outcome| outcome.count).sum();
        terminal.say(&format!("{}; {total}\n", outcomes.summary(&files)));
    }
    Ok(outcomes.status(|outcome| outcome.fails))
}

impl Args {
    fn denies(&self, found: &Diagnostic) -> bool {
        !found.is_error() && self.deny.iter().any(|kinds| kinds.include(found))
    }

    /// True if standard output is reserved for a model or a diff, not for findings.
    fn keeps_stdout(&self) -> bool {
        self.fix && (self.diff || self.output.is_stdout())
    }

    /// Checks one model. A quiet run prints no findings but errors, and those that are denied.
    fn check(&self, input: &Input, page: &mut Page, is_quiet: bool) -> Result<Outcome, Failure> {
        let target = if self.fix && !self.diff { Target::new(&self.output, input)? } else { None };
        let mut loaded = input.read()?;
        let before = loaded.diagnostics.source.clone();
        let Loaded { model, diagnostics, read_from, .. } = &mut loaded;
        let checking = self.checking(input);
        let checked = match model.take() {
            // A text that is not a model may become one by a fix, which needs the weights.
            None if !before.is_empty() => checking.run(&before, &input.open_weights()?),
            model => checking.check_read(model, std::mem::take(&mut diagnostics.list), before.clone()),
        };
        let fixes = self.fix && checked.model.is_some();
        let Checked { findings, text, fixed, is_unfinished, .. } = checked;
        (*model, diagnostics.source, diagnostics.list) = (checked.model, text, findings);
        if let Some(model) = model {
            diagnostics.list.extend(self.ran.findings(model)?);
            let of_programs = self.for_programs(model, input);
            let is_bin =
                |found: &Diagnostic| matches!(&*found.about, About::Subject { name, .. } if name.ends_with(".bin"));
            if of_programs.iter().any(is_bin) {
                diagnostics.list.retain(|found| found.code != Code::MissingWeights);
            }
            diagnostics.list.extend(of_programs);
            try_rules(model, &checking, &mut diagnostics.list);
            // Documents have what the library finds, which knows no folders.
            if matches!(self.format, Format::Text) {
                input.name_weights(model, &mut diagnostics.list);
            }
            diagnostics.list.sort_by_key(|found| Reverse(found.severity));
        }
        diagnostics.list.retain(|diagnostic| !self.allow.iter().any(|kinds| kinds.include(diagnostic)));
        let voice = Voice::Shell(input.as_argument());
        let place = if fixes && matches!(self.format, Format::Text) && target.is_some() {
            // Positions are those of the fixed text.
            diagnostics.file = target.as_ref().map_or_else(String::new, Target::name);
            Some(format!("{}: ", diagnostics.file))
        } else if fixes {
            Some(format!("{}: after these fixes, ", diagnostics.file))
        } else {
            None
        };
        let denied = diagnostics.list.iter().filter(|found| self.denies(found)).count();
        let count = Count::of(diagnostics);
        let mut outcome = Outcome { count, fails: count.errors > 0 || denied > 0 };
        page.form = self.format.form();
        match self.format {
            Format::Json => page.printed = terminal::json(&Document::with(diagnostics, voice))?,
            Format::Other(format) if self.keeps_stdout() => {
                page.printed = format.document(diagnostics, voice).map_err(unwritten)?;
            }
            Format::Other(format) => page.printed = format.page(diagnostics, voice).map_err(unwritten)?,
            Format::Text => {
                page.styled = true;
                if is_quiet {
                    diagnostics.list.retain(|found| found.is_error() || self.denies(found));
                }
                page.printed = self.text(diagnostics, voice, denied, place.as_deref());
                if is_quiet && diagnostics.list.is_empty() {
                    page.printed.clear();
                }
            }
        }
        if fixes {
            let fixed = Fix { before, read_from, removed: fixed, is_unfinished };
            outcome.fails |= !self.write(input, &fixed, model.as_ref().zip(target.as_ref()), page)?;
            if self.diff {
                page.form = Form::Text;
                let (file, text) = (&diagnostics.file, diagnostics.source.as_str());
                let edits = similar::TextDiff::from_lines(fixed.before.as_str(), text);
                page.printed = edits.unified_diff().header(file, file).to_string();
            }
        }
        Ok(outcome)
    }

    fn checking(&self, input: &Input) -> Checking {
        let weights = if input.is_stdin() { NeedForWeights::Optional } else { NeedForWeights::of(&input.file) };
        let mut checking = Checking { target: self.target, weights, fix: self.fix, ..Checking::default() };
        for purpose in &self.purposes {
            match *purpose {
                Purpose::Precision(ty) => checking.precisions.push(ty),
                Purpose::Device(device) => checking.devices.push(device),
                Purpose::Program(_) => {}
            }
        }
        checking
    }

    fn for_programs(&self, model: &Model, input: &Input) -> Vec<Diagnostic> {
        let programs = self.purposes.iter().filter_map(|purpose| match purpose {
            Purpose::Program(program) => Some(*program),
            _ => None,
        });
        programs.flat_map(|program| typelift::programs::check(model, program, input.as_argument())).collect()
    }

    /// Writes a fixed model, or shows its differences. Findings move to standard error if the model takes standard
    /// output. False if --verify found that it computes something else.
    fn write(
        &self,
        input: &Input,
        fixed: &Fix<'_>,
        written: Option<(&Model, &Target)>,
        page: &mut Page,
    ) -> Result<bool, Failure> {
        let name = input.file.display();
        if self.keeps_stdout() {
            page.said += &std::mem::take(&mut page.printed);
        }
        // Each position refers to the text after the edits before it.
        let mut text = fixed.before.to_string();
        for it in &fixed.removed {
            let edits = it.edits().unwrap_or_default();
            let line = edits.first().map_or(1, |edit| edit.span.line_column(&text).0);
            let edit = it.fixes.first().map(ToString::to_string).unwrap_or_default();
            page.said += &format!("{name}:{line}: fixed {}: {edit}\n", it.code);
            text = TextEdit::apply(edits, &text);
        }
        if fixed.removed.is_empty() {
            page.said += &format!("{name}: no edit is safe to make\n");
        }
        if fixed.is_unfinished {
            page.said += &format!("{name}: one run does not try everything: run --fix on the result again\n");
        }
        if let Some((model, target)) = written {
            match self.before.compare(input, model)? {
                Verdict::Agree(remark) => page.said.extend(remark.map(|remark| format!("{name}: {remark}\n"))),
                Verdict::Differ(report) => {
                    page.said += &format!("{report}{name}: not written, because the result computes something else\n");
                    return Ok(false);
                }
            }
            target.write(model, fixed.read_from, self.output.text(input, false), page)?;
        }
        Ok(true)
    }

    /// Formats the findings and their number. `place` begins the last line for a fixed model.
    fn text(&self, diagnostics: &mut Diagnostics, voice: Voice<'_>, denied: usize, place: Option<&str>) -> String {
        diagnostics.list.retain(|diagnostic| match diagnostic.code {
            Code::RequiredRelease => self.all || self.target.is_some(),
            Code::IntegerResult => self.all,
            _ => true,
        });
        let show = if self.all { Show::All } else { Show::Folded };
        let denied = if denied > 0 { format!(", {denied} of them denied") } else { String::new() };
        let count = format!("{}{denied}", Count::of(diagnostics));
        let mut summary = match place {
            Some(place) => format!("{place}{count}"),
            None => format!("{count} in {}", diagnostics.file),
        };
        let fixable = diagnostics.list.iter().filter(|found| found.edits().is_some()).count();
        if let (Voice::Shell(Some(file)), true) = (voice, fixable > 0) {
            summary += &format!(", {fixable} with a safe fix: `{}`", shell_command("check", " --fix", file));
        }
        let text = render::text(diagnostics, voice, show) + &fit::wrapped(&summary, 0) + "\n";
        if diagnostics.file == "<stdin>" && text.contains(STAND_IN) {
            return text + &format!("`{STAND_IN}` stands for the model from standard input\n");
        }
        text
    }
}
