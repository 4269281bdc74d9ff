//! `typelift reduce`: the smallest model on which a command, a finding or OpenVINO behaves as on the original.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use clap::ArgGroup;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;
use typelift::Model;
use typelift::convert::strip::{Values, strip_weights};
use typelift::findings::{Code, FileName, grouped};
use typelift_run::reduce::{Judge, Reduced, Reduction, Step, Stopped, anonymized, kept_texts, layers};

use crate::columns::count;
use crate::failure::{Failure, Kind};
use crate::files::Run;
use crate::input::Input;
use crate::interrupt;
use crate::openvino::Installations;
use crate::output;
use crate::render::{self, Show};
use crate::status::Status;
use crate::terminal::{self, Terminal};
use crate::verify::RunArgs;

mod judge;

use judge::{Command, Differs, Finding, Refused, Stop, Wanted};

/// Find a small model that still fails, has a finding or differs as the original does
///
/// Layers are removed as long as COMMAND ends with the same exit status as on IN. {} stands for the candidate. With --match its
/// output must match too. Candidates that inference refuses are not tried. Tensors that the rest needs become inputs, and
/// tensors that nothing uses any more become outputs. Ctrl-C keeps the smallest model found so far.
#[derive(clap::Args)]
#[command(group(ArgGroup::new("wanted").args(["command", "finding", "refused", "differs"]).required(true)))]
#[command(after_help = "Examples:
  typelift reduce model.xml -o small.xml -- python3 crashes.py {}
  typelift reduce model.xml -o small.xml --match 'Segmentation' -j 4 --timeout 60 -- ./run.sh {}
  typelift reduce model.xml -o small.xml --refused --anonymize --weights zero
  typelift reduce model.xml -o small.xml --differs --python-b old/bin/python
  typelift reduce model.xml -o small.xml --finding beyond-i32")]
pub(crate) struct Args {
    /// The model's .xml
    #[arg(value_name = "IN.xml")]
    model: PathBuf,
    /// Write the smallest model to this file
    #[arg(short, long, value_name = "OUT.xml")]
    output: PathBuf,
    /// Keep this finding of `typelift check`, by its code
    #[arg(long, value_name = "CODE", value_parser = parse_code)]
    finding: Option<Code>,
    /// Keep that OpenVINO refuses to compile the model, with the same first line
    #[arg(long)]
    refused: bool,
    /// Keep that `typelift verify` finds a difference: from this model, which is cut in the same way and whose part is written as
    /// OUT.other.xml, or without a model between two runs
    #[arg(long, value_name = "OTHER.xml", num_args = 0..=1)]
    differs: Option<Option<PathBuf>>,
    /// Output of COMMAND that a candidate must produce too
    #[arg(long = "match", value_name = "REGEX", requires = "command")]
    matches: Option<regex_lite::Regex>,
    /// Candidates that are tried at a time
    #[arg(short, long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    jobs: u16,
    /// Seconds that one run may take. A candidate that takes longer is not interesting
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    timeout: u64,
    /// The most runs
    #[arg(long, value_name = "N", default_value_t = 1000)]
    max_runs: usize,
    /// Rename layers and tensors, and drop metadata
    #[arg(long)]
    anonymize: bool,
    /// Replace the values of constants that no shape depends on
    #[arg(long, value_enum, default_value_t = Weights::Keep)]
    weights: Weights,
    /// Write what was tried and kept to this file as JSON, or - for standard output
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    #[command(flatten)]
    run: RunArgs,
    /// Command with its arguments, after --. {} is the candidate
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Weights {
    /// Zeros
    Zero,
    /// Random numbers
    Random,
    /// The values of the model
    Keep,
}

fn parse_code(text: &str) -> Result<Code, String> {
    Code::ALL.iter().copied().find(|code| code.name() == text).ok_or_else(|| {
        let near = typelift::near(text, Code::ALL.iter().map(|code| code.name()));
        format!("no finding has this code{}", near.map_or(String::new(), |near| format!("; did you mean `{near}`?")))
    })
}

#[derive(Serialize)]
struct Report<'a> {
    file: FileName<'a>,
    output: FileName<'a>,
    layers_before: usize,
    layers_after: usize,
    /// The number of runs of the command, or of the condition that replaces it.
    runs: usize,
    /// The number of candidates that inference refused.
    refused: usize,
    outcome: &'static str,
    steps: &'a [Step],
    /// The constants whose values --weights replaced; `null` if it was not given or not applied.
    stripped: Option<StrippedReport>,
    anonymized: bool,
}

#[derive(Clone, Copy, Serialize)]
struct StrippedReport {
    replaced: usize,
    kept: usize,
}

/// A result after --weights and --anonymize.
struct Safe {
    /// The result, and the part of the other model that belongs to it.
    models: Vec<Model>,
    stripped: Option<StrippedReport>,
    anonymized: bool,
    remarks: Vec<String>,
}

pub(crate) fn run(args: &Args, terminal: &mut Terminal) -> Result<Status, Failure> {
    args.check()?;
    terminal.answers_in_json = args.report.as_deref().is_some_and(crate::input::is_stdout);
    let loaded = Input::new(&args.model).load()?;
    let Some(model) = &loaded.model else {
        terminal.say(&render::text(&loaded.diagnostics, typelift::findings::Voice::Shell(None), Show::Briefly));
        return Ok(Status::Faulty);
    };
    let stop = interrupt::noticed()?;
    let seconds = args.timeout;
    if let Some(code) = args.finding {
        return args.reduce(model, &Finding { code, stop }, terminal);
    }
    if args.refused {
        return args.reduce(model, &Refused::new(args.run.settings()[0].clone(), seconds, stop), terminal);
    }
    if let Some(other) = &args.differs {
        let other = other.as_ref().map(|other| {
            let other = Input::new(other).load()?;
            other.model.clone().ok_or_else(|| Failure::new("OTHER.xml cannot be read"))
        });
        let differs =
            Differs::new(model, other.transpose()?, args.run.verification(), move || Installations::new(seconds), stop);
        return args.reduce(model, &differs, terminal);
    }
    args.reduce(model, &Command::new(&args.command, args.matches.clone(), seconds, stop), terminal)
}

impl Args {
    /// The graphs that are written: the smallest model, and with `--differs` the part of the other one.
    fn outputs(&self) -> Vec<PathBuf> {
        let other = self.differs.iter().flatten().next().map(|_| self.output.with_extension("other.xml"));
        [self.output.clone()].into_iter().chain(other).collect()
    }

    /// Refuses outputs that would overwrite an input.
    fn check(&self) -> Result<(), Failure> {
        output::check_ending(&self.output, "xml", "OpenVINO IR")?;
        let models: Vec<_> = [&self.model].into_iter().chain(self.differs.iter().flatten()).map(Input::new).collect();
        let graphs = self.outputs();
        let weights: Vec<_> = graphs.iter().map(|graph| graph.with_extension("bin")).collect();
        let mut documents: Vec<(&Path, _)> = graphs.iter().map(|graph| (&**graph, "a model")).collect();
        documents.extend(weights.iter().map(|weights| (&**weights, "the weights")));
        documents.extend(self.report.as_deref().map(|report| (report, "the report")));
        Run { models: &models, documents: &documents, ..Run::default() }.check()?;
        if !self.command.is_empty() && !self.command.iter().any(|part| part.to_string_lossy().contains("{}")) {
            return Err(Failure::new("COMMAND does not name the candidate").help("write {} where its file belongs"));
        }
        Ok(())
    }

    fn reduce<W: Wanted>(&self, model: &Model, wanted: &W, terminal: &mut Terminal) -> Result<Status, Failure> {
        let mut reduction = Reduction::default();
        reduction.jobs = self.jobs.into();
        reduction.most_runs = self.max_runs;
        if let Some(refusal) = wanted.learn(model)? {
            return Err(Failure::of_kind(Kind::Faulty, refusal));
        }
        let bar = bar();
        if !self.command.is_empty() && wanted.succeeds() && self.matches.is_none() {
            terminal.say("note: COMMAND succeeds on the model, so every model on which it succeeds counts as the same; give --match to keep what it prints\n");
        }
        let (judged, runs) = (Judged(wanted), AtomicUsize::new(0));
        let reduced = reduction.run(model, &|candidate: &Model| {
            let verdict = judged.is_interesting(candidate);
            let (layers, runs) = (layers(candidate) as u64, 1 + runs.fetch_add(1, Ordering::Relaxed));
            bar.set_message(format!("{} layers, {}", grouped(layers), count(runs, "run")));
            bar.tick();
            verdict
        });
        bar.finish_and_clear();
        let reduced = match reduced {
            Ok(reduced) => reduced,
            Err(None) => {
                return Err(Failure::of_kind(Kind::Faulty, "the model does not behave the same when it is run again"));
            }
            Err(Some(stop)) => return Err(stop.failure()),
        };
        let failed = match &reduced.stopped {
            Some(Stopped::ByJudge(stop @ (Stop::Failed(_) | Stop::NoRuntime(_)))) => Some(stop.clone().failure()),
            _ => None,
        };
        let failed = match failed {
            Some(failure) if reduced.layers_after == reduced.layers_before => return Err(failure),
            failed => failed.map(|failure| failure.help("the smallest model so far was written")),
        };
        let safe = self.safe_to_send(&reduced.model, wanted)?;
        safe.models.iter().zip(&self.outputs()).try_for_each(|(model, path)| judge::save(model, path))?;
        self.tell(&reduced, &safe, terminal)?;
        failed.map_or(Ok(Status::Done), Err)
    }

    /// Applies --weights and --anonymize as long as the result stays interesting.
    fn safe_to_send<W: Wanted>(&self, model: &Model, wanted: &W) -> Result<Safe, Failure> {
        let mut safe = Safe::new(model.clone(), wanted.other_for(model));
        let values = match self.weights {
            Weights::Zero => Some(Values::Zero),
            Weights::Random => Some(Values::Random),
            Weights::Keep => None,
        };
        if let Some(values) = values {
            let mut changed = safe.models.clone();
            let counts = changed.iter_mut().map(|model| strip_weights(model, values));
            let counts = counts.collect::<Result<Vec<_>, _>>().map_err(|error| Failure::new(error.to_string()))?;
            let is_kept = safe.apply("--weights", changed, wanted);
            let count = counts.first().filter(|_| is_kept);
            safe.stripped = count.map(|count| StrippedReport { replaced: count.replaced, kept: count.kept });
        }
        if self.anonymize {
            let changed = match &safe.models[..] {
                [model, other] => anonymized([model, other]).map(Vec::from),
                models => models
                    .iter()
                    .map(|model| anonymized([model]))
                    .collect::<Result<Vec<_>, _>>()
                    .map(|all| all.concat()),
            };
            let mut changed = changed.map_err(|error| Failure::new(error.to_string()))?;
            for model in &mut changed {
                // Nothing but names changed.
                let _known = typelift::infer(model);
            }
            safe.anonymized = safe.apply("--anonymize", changed, wanted);
            safe.remarks.extend(safe.what_stays());
        }
        Ok(safe)
    }

    fn tell(&self, reduced: &Reduced<Stop>, safe: &Safe, terminal: &mut Terminal) -> Result<(), Failure> {
        let outcome = match &reduced.stopped {
            Some(Stopped::AtLimit) => "limit",
            Some(Stopped::ByJudge(_)) => "stopped",
            None if reduced.layers_after < reduced.layers_before => "reduced",
            None => "unchanged",
        };
        let file = self.model.to_string_lossy();
        if let Some(path) = &self.report {
            let report = Report {
                file: FileName(&file),
                output: FileName(&self.output.to_string_lossy()),
                layers_before: reduced.layers_before,
                layers_after: reduced.layers_after,
                runs: reduced.runs,
                refused: reduced.refused,
                outcome,
                steps: &reduced.steps,
                stripped: safe.stripped,
                anonymized: safe.anonymized,
            };
            output::write_reports(path, vec![terminal::json(&report)?], false, terminal)?;
        }
        let mut text = String::new();
        let mut steps: Vec<&Step> = Vec::new();
        for step in &reduced.steps {
            match steps.last_mut() {
                Some(last) if last.what == step.what => *last = step,
                _ => steps.push(step),
            }
        }
        for step in steps {
            text += &format!("  {}: {} after {}\n", step.what, count(step.layers, "layer"), count(step.runs, "run"));
        }
        let why = match outcome {
            "limit" => "; the limit of runs was reached",
            "stopped" => "; stopped before the end",
            _ => "",
        };
        let (before, after) = (grouped(reduced.layers_before as u64), grouped(reduced.layers_after as u64));
        text += &format!("{file}: {before} layers -> {after} in {}{why}\n", count(reduced.runs, "run"));
        safe.remarks.iter().for_each(|remark| text += &format!("{remark}\n"));
        terminal.say(&text);
        Ok(())
    }
}

impl Safe {
    fn new(result: Model, other: Option<Model>) -> Self {
        let models = [result].into_iter().chain(other).collect();
        Self { models, stripped: None, anonymized: false, remarks: Vec::new() }
    }

    /// Names what anonymous models still say of the original.
    fn what_stays(&self) -> Vec<String> {
        let texts: BTreeSet<String> = self.models.iter().flat_map(kept_texts).collect();
        let values = match self.stripped {
            Some(StrippedReport { kept: 0, .. }) => None,
            Some(StrippedReport { kept, .. }) => {
                Some(format!("{} kept the values, on which shapes or axes depend", count(kept, "constant")))
            }
            None => Some("constants keep their values; --weights zero replaces them".to_owned()),
        };
        if self.anonymized { texts.into_iter().chain(values).collect() } else { Vec::new() }
    }

    /// Replaces the models by changed ones if they are interesting too; otherwise adds a remark. True if they are.
    fn apply<W: Wanted>(&mut self, name: &str, changed: Vec<Model>, wanted: &W) -> bool {
        let is_kept = match &changed[..] {
            [model, other] => matches!(wanted.is_interesting_with(model, other), Ok(true)),
            models => models.iter().all(|model| matches!(wanted.is_interesting(model), Ok(true))),
        };
        if is_kept {
            self.models = changed;
        } else {
            self.remarks.push(format!("{name} was not applied: the model does not behave the same with it"));
        }
        is_kept
    }
}

/// A condition as a judge of the library.
struct Judged<'w, W>(&'w W);

impl<W: Wanted> Judge for Judged<'_, W> {
    type Stop = Stop;

    fn is_interesting(&self, candidate: &Model) -> Result<bool, Stop> {
        self.0.is_interesting(candidate)
    }
}

fn bar() -> ProgressBar {
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    bar.with_style(ProgressStyle::with_template("reduce: {msg}").unwrap_or_else(|_| ProgressStyle::default_spinner()))
}

/// Set once the user asks the program to end.
type Asked = Arc<AtomicBool>;

fn is_asked(asked: &Asked) -> bool {
    asked.load(Ordering::Relaxed)
}
