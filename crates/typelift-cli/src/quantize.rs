//! Options of weight-only quantization, and the table of its effect on each constant.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anstyle::{AnsiColor, Style};
use typelift::Model;
use typelift::findings::grouped;
use typelift::precision::quantize::{
    Backup, Choice, Fallback, Group, Mode, Quantization, QuantizationPlan, Request, Rule,
};
use typelift::precision::schemes;

use crate::columns::{Columns, Side, count, unless_zero};
use crate::failure::Failure;
use crate::gate::Clean;
use crate::input::parsed;
use crate::precision::short;
use crate::texts;

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct QuantizeArgs {
    /// Store weights as codes of 4 or 8 bits with scales. nncf's compress_weights does the same without data. Modes:
    /// int8_asym, int8_sym, int4_asym, int4_sym, nf4, fp4, mxfp4. @FILE reads a plan that --write-plan wrote
    #[arg(long, value_name = "MODE|@FILE", value_parser = parse_request, conflicts_with_all = ["compress", "decompress", "dequantize", "types"])]
    quantize: Option<Wanted>,
    /// Number of values of a channel that share a scale, or -1 for whole channels. The default is 128
    #[arg(long, value_name = "N", requires = "quantize", allow_negative_numbers = true)]
    group_size: Option<Group>,
    /// Share of the weights of MatMul layers that get MODE, from 0 to 1. The others get the backup mode
    #[arg(long, value_name = "R", requires = "quantize")]
    ratio: Option<f64>,
    /// Also give MODE to the last MatMul and to the tables of Gather layers
    #[arg(long, requires = "quantize")]
    all_layers: bool,
    /// Mode of other weights: int8_asym, int8_sym, fp8_e4m3, mxfp8_e4m3, or none to leave them alone
    #[arg(long, value_name = "MODE", requires = "quantize")]
    backup: Option<Backup>,
    /// Leave weights alone whose channels the group size does not divide, or give them a smaller group
    #[arg(long, value_name = "HOW", value_parser = parsed::<Fallback>(&["ignore", "adjust"]), requires = "quantize")]
    group_fallback: Option<Fallback>,
    /// Write the mode and group of each constant to this file, to edit it and use it with --quantize @FILE
    #[arg(long, value_name = "FILE", requires = "quantize")]
    pub(crate) write_plan: Option<PathBuf>,
}

/// The request of `--quantize`.
#[derive(Clone, Debug)]
enum Wanted {
    Mode(Mode),
    Plan(Vec<Choice>),
}

fn parse_request(text: &str) -> Result<Wanted, String> {
    if let Some(file) = text.strip_prefix('@') {
        let text = texts::read(file.as_ref()).map_err(|failure| failure.message)?;
        return Choice::parse(&text).map(Wanted::Plan).map_err(|error| error.to_string());
    }
    let mode = text.parse().ok().filter(|mode: &Mode| mode.is_primary());
    mode.map(Wanted::Mode).ok_or_else(|| {
        let names = Mode::ALL.iter().filter(|mode| mode.is_primary()).map(|mode| mode.name());
        format!("expected one of {}, or @FILE", names.collect::<Vec<_>>().join(", "))
    })
}

impl QuantizeArgs {
    pub(crate) fn request(&self) -> Result<Option<Request>, Failure> {
        let settings = match &self.quantize {
            None => return Ok(None),
            Some(Wanted::Plan(_)) if self.has_settings() => {
                return Err(Failure::new("a plan says the mode and the group of each constant")
                    .help("edit the plan, or leave the other options of --quantize out"));
            }
            Some(Wanted::Plan(choices)) => return Ok(Some(Request::Plan(choices.clone()))),
            Some(Wanted::Mode(mode)) => {
                let mut settings = Quantization::to(*mode);
                settings.group = self.group_size;
                settings.ratio = self.ratio;
                settings.all_layers = self.all_layers;
                settings.backup = self.backup;
                settings.fallback = self.group_fallback.unwrap_or_default();
                settings
            }
        };
        settings.check().map_err(Failure::new)?;
        Ok(Some(Request::Settings(settings)))
    }

    fn has_settings(&self) -> bool {
        let given =
            [self.group_size.is_some(), self.ratio.is_some(), self.backup.is_some(), self.group_fallback.is_some()];
        self.all_layers || given.contains(&true)
    }
}

pub(crate) fn write_plan(plan: &QuantizationPlan, path: &Path) -> Result<(), Failure> {
    crate::output::write_report(path, plan.to_text())
}

/// One line about a quantization: `12 of 14 constants quantized (11 int4_sym, 1 int8_asym), 4,096 -> 1,088 bytes`.
pub(crate) fn remark(plan: &QuantizationPlan) -> String {
    let changed: Vec<_> = plan.changed().collect();
    let modes = Mode::ALL.into_iter().filter_map(|mode| {
        let count = changed.iter().filter(|it| it.to.is_some_and(|(to, _)| to == mode)).count();
        (count > 0).then(|| format!("{} {mode}", grouped(count as u64)))
    });
    let mut modes: Vec<_> = modes.collect();
    // Without a word, a mode that nobody asked for looks like an error.
    if changed.iter().all(|it| ![Rule::Main, Rule::Plan].contains(&it.rule)) {
        let rules: BTreeSet<_> = changed.iter().map(|it| it.rule.name()).collect();
        modes.extend(rules.iter().map(|rule| format!("the backup mode, by the rule {rule}")));
    }
    let before = grouped(changed.iter().map(|it| it.bytes_before).sum());
    let after = grouped(changed.iter().map(|it| it.bytes_after).sum());
    let all = count(plan.constants.len(), "constant");
    match changed.len() {
        0 => format!("none of {all} quantized"),
        some => {
            format!("{} of {all} quantized ({}), {before} -> {after} bytes", grouped(some as u64), modes.join(", "))
        }
    }
}

/// The weights of the result that no plan knows: those of a ConvertPromoteTypes, and those that were quantized before.
pub(crate) fn left(plan: &QuantizationPlan, model: &Model) -> Vec<String> {
    let graph = model.graph();
    let inputs = graph.layers().filter(|layer| layer.ty() == "ConvertPromoteTypes");
    let inputs = inputs.flat_map(|layer| graph.producers(layer.id())).flatten();
    let constants = inputs.filter(|input| graph.layer(input.layer).is_some_and(|layer| layer.ty() == "Const"));
    let weights = constants.filter(|it| graph.output(*it).is_some_and(|port| port.shape().rank() >= Some(2)));
    let promoted = weights.map(|it| it.layer).collect::<BTreeSet<_>>().len();
    let before = schemes::find(graph, model.weights()).len().saturating_sub(plan.changed().count());
    let all = [
        (promoted, "of a ConvertPromoteTypes left alone: run `convert` without --quantize first"),
        (before, "quantized already"),
    ];
    all.into_iter()
        .filter(|(left, _)| *left > 0)
        .map(|(left, why)| format!("{} {why}", count(left, "weight")))
        .collect()
}

pub(crate) fn table(plan: &QuantizationPlan) -> String {
    let (left, right) = (Side::Left, Side::Right);
    let head = ["constant", "mode", "group", "rule", "rms %", "worst %", "zero rows", "at limit", "bytes", "on CPU"];
    let mut columns = Columns::headed([left, left, right, left, right, right, right, right, right, left], head);
    for constant in &plan.constants {
        let loss = constant.loss.unwrap_or_default();
        let style = if loss.at_limit > 0 { AnsiColor::Yellow.on_default() } else { Style::new() };
        let parts = [loss.rms, loss.largest];
        let [rms, largest] = parts.map(|part| constant.loss.map_or_else(String::new, |_| short(part * 100.0)));
        let (mode, group) = match constant.to {
            Some((mode, Group::Channel)) => (mode.name(), "channel".to_owned()),
            Some((mode, group)) => (mode.name(), group.to_string()),
            None => ("keep", String::new()),
        };
        let on_cpu = match constant.is_kept_by_cpu() {
            Some(true) => "kept",
            Some(false) => "unfolded",
            None => "",
        };
        columns.push(
            style,
            [
                Clean(&constant.name).to_string(),
                mode.to_owned(),
                group,
                constant.rule.name().to_owned(),
                rms,
                largest,
                unless_zero(loss.zero_rows),
                unless_zero(loss.at_limit),
                format!("{} -> {}", grouped(constant.bytes_before), grouped(constant.bytes_after)),
                on_cpu.to_owned(),
            ],
        );
    }
    columns.print()
}
