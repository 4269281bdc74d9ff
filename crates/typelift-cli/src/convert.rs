//! `typelift convert`: promotion made explicit.

use std::fs;
use std::path::{Path, PathBuf};

use typelift::passes::{
    self, Action, Change, ELIMINATE_NOOP_CONVERTS, LOWER_PROMOTE_TYPES, LOWER_WITHOUT_NOOPS, Pass, UNIQUE_TENSOR_NAMES,
};
use typelift::promote::RuleSet;
use typelift::xml::WriteOptions;
use typelift::{Graph, Model};

use crate::Status;
use crate::failure::Failure;
use crate::input::{self, Input, InputChanges};
use crate::output::{OutputArgs, Target};
use crate::plan::Plan;
use crate::promote::OpenVinoArgs;
use crate::render::{self, Show};
use crate::terminal::Terminal;

/// Put Converts in the place of every ConvertPromoteTypes
///
/// Infers types and shapes, gives operations whose inputs disagree in type the common type, replaces each
/// ConvertPromoteTypes in the model and its bodies by the Converts it stands for, takes out the Converts that do nothing,
/// and writes the model. What is not changed stays as it is in the file, byte for byte. A model with errors is not
/// written.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  typelift convert model.xml -o out.xml
  typelift convert --in-place model.xml
  typelift convert --dry-run model.xml
  typelift convert --align pytorch --set-type x=f16 model.xml -o out.xml
  cat model.xml | typelift convert - -o - > out.xml")]
pub(crate) struct Args {
    #[command(flatten)]
    input: Input,
    #[command(flatten)]
    output: OutputArgs,
    /// Leave what OpenVINO's own pass leaves: two Converts for each ConvertPromoteTypes, needed or not
    #[arg(long)]
    keep_noop_converts: bool,
    #[command(flatten)]
    changes: InputChanges,
    /// Give inputs that must have one type, and do not, the common type of these rules, by inserting Converts
    #[arg(long, value_name = "RULES", default_value = "openvino", value_parser = ["openvino", "pytorch", "paddle", "off"])]
    align: String,
    #[command(flatten)]
    openvino: OpenVinoArgs,
    /// Print what would be done, and write no model
    #[arg(long, conflicts_with_all = ["output", "in_place"])]
    dry_run: bool,
    /// Write what is done to this file as JSON, or - for standard output
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
}

pub(crate) fn run(args: &Args, terminal: &mut Terminal) -> Result<Status, Failure> {
    let target = Target::new(&args.output, &args.input)?;
    if target.is_none() && !args.dry_run {
        return Err(Failure::new("nowhere to write to")
            .help("give -o OUT.xml, or --in-place to write over the model, or --dry-run to see what would be done"));
    }
    let report_on_stdout = args.report.as_deref() == Some(Path::new("-"));
    if report_on_stdout && target.as_ref().is_some_and(Target::is_stdout) {
        return Err(
            Failure::new("standard output cannot take both the model and the report").help("give one of them a file")
        );
    }
    let mut loaded = args.input.read()?;
    let diagnostics = &mut loaded.diagnostics;
    let mut changes = Vec::new();
    if let Some(model) = &mut loaded.model {
        let changed = args.changes.apply(model)?;
        changes = input::infer(model, diagnostics, &changed, args.rule_set());
        diagnostics.list.extend(target.as_ref().and_then(|target| target.objection(model, &args.input)));
    }
    let (Some(mut model), false) = (loaded.model, diagnostics.has_errors()) else {
        render::print(diagnostics, Show::Briefly, terminal);
        return Ok(Status::Faulty);
    };
    let refresh_ports = !args.changes.is_empty() || !changes.is_empty();
    let before = promotions(&model.graph);
    // OpenVINO's reader makes names of tensors unique before its pass sees them.
    let (lower, tidy) = match args.keep_noop_converts {
        true => (LOWER_PROMOTE_TYPES, UNIQUE_TENSOR_NAMES),
        false => (LOWER_WITHOUT_NOOPS, ELIMINATE_NOOP_CONVERTS),
    };
    changes.extend(run_pass(&mut model, lower)?);
    let after = promotions(&model.graph);
    // A model that promotes nothing comes back as it is.
    if before > after {
        changes.extend(run_pass(&mut model, tidy)?);
    }
    let plan = Plan::new(&diagnostics.file, changes);
    diagnostics.list.extend(plan.warnings(&model));
    render::print(diagnostics, Show::Briefly, terminal);
    let summary = summary(&plan, before, after);
    match args.report.as_deref() {
        Some(_) if report_on_stdout => terminal.print_json(&plan)?,
        Some(path) => write_report(path, &plan)?,
        None => {}
    }
    if let Some(target) = &target {
        let options = WriteOptions { canonical: args.output.canonical, refresh_ports };
        target.write(&typelift::xml::write(&model, options), model.source(), terminal)?;
        terminal.say(&format!("{}: {summary}\n", diagnostics.file));
    }
    if args.dry_run && !report_on_stdout {
        terminal.print(&format!("{plan}{}: {summary}\n", diagnostics.file))?;
    }
    Ok(Status::Done)
}

impl Args {
    /// The rules to align by, unless that is off.
    fn rule_set(&self) -> Option<RuleSet> {
        match RuleSet::from_name(&self.align)? {
            RuleSet::OpenVino(_) => Some(RuleSet::OpenVino(self.openvino.attributes())),
            rules => Some(rules),
        }
    }
}

fn run_pass(model: &mut Model, pass: Pass) -> Result<Vec<Change>, Failure> {
    passes::run(model, pass).map_err(|violations| {
        let first = violations.first().map(ToString::to_string).unwrap_or_default();
        Failure::new(format!("pass {} left a damaged graph: {first}", pass.name))
            .help("this is a fault of typelift, not of the model; nothing was written")
    })
}

fn write_report(path: &Path, plan: &Plan) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(plan).map_err(|error| Failure::new(error.to_string()))?;
    fs::write(path, text + "\n").map_err(|error| Failure::io("write", path, &error))
}

/// The number of ConvertPromoteTypes in a graph and its bodies.
fn promotions(graph: &Graph) -> usize {
    let count = |layer: &typelift::Layer| {
        let own = usize::from(layer.ty().eq_ignore_ascii_case("ConvertPromoteTypes"));
        own + layer.bodies().iter().map(|body| promotions(&body.graph)).sum::<usize>()
    };
    graph.layers().map(count).sum()
}

fn summary(plan: &Plan, before: usize, after: usize) -> String {
    let mut done = Vec::new();
    if before > after {
        done.push(format!("{} ConvertPromoteTypes replaced", before - after));
    }
    if after > 0 {
        done.push(format!("{after} ConvertPromoteTypes left, whose type is not known before run time"));
    }
    let kinds = [
        (Action::Inserted, "Convert inserted", "Converts inserted"),
        (Action::Removed, "Convert removed", "Converts removed"),
        (Action::Used, "layer used once more", "layers used once more"),
        (Action::Retyped, "Parameter of a body retyped", "Parameters of bodies retyped"),
    ];
    for (action, one, more) in kinds {
        match plan.count(action) {
            0 => {}
            1 => done.push(format!("1 {one}")),
            count => done.push(format!("{count} {more}")),
        }
    }
    if done.is_empty() { "nothing to convert".to_owned() } else { done.join(", ") }
}
