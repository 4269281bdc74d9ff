//! Options for the storage of constants, and their losses.

use anstyle::{AnsiColor, Style};
use clap::builder::TypedValueParser;
use typelift::findings::grouped;
use typelift::precision::{KeepPattern, Kept, Like, Plan, PlanTotals, Risk, Storage};
use typelift::promote::ElementType;
use typelift::{Layer, Model};

use crate::columns::{Columns, Side, count, unless_zero};
use crate::gate::Clean;
use crate::input::{names, parsed};

const LISTED: usize = 10;

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct StorageArgs {
    /// Store constants of f32 and f64 in this type. Each gets a Convert back to its type, as OpenVINO's save_model does
    /// with compress_to_fp16
    #[arg(long, value_name = "TYPE", value_parser = half(), ignore_case = true, conflicts_with = "decompress")]
    compress: Option<ElementType>,
    /// Undo --compress: store constants in the type they are used in. =f16 or =bf16 limits it to constants of that type
    #[arg(long, value_name = "TYPE", value_parser = half(), ignore_case = true, num_args = 0..=1,
        require_equals = true)]
    decompress: Option<Option<ElementType>>,
    /// Store the values of quantized constants: in the type in which they are used, or with =f16 in f16 with a Convert. Undoes
    /// --quantize, but for what that lost
    #[arg(long, value_name = "TYPE", value_parser = float(), ignore_case = true, num_args = 0..=1, require_equals = true,
        conflicts_with_all = ["compress", "decompress"])]
    dequantize: Option<Option<ElementType>>,
    /// Rules that select constants for --compress: those of this OpenVINO release, or all for every constant whose
    /// values fit the type
    #[arg(long, value_name = "RULES", value_parser = parsed::<Like>(&["2026.4", "2025.2", "all"]), default_value = "2026.4", requires = "compress")]
    like: Like,
    /// Print the loss of each constant, and write no model
    #[arg(long, requires = "auditable")]
    pub(crate) audit: bool,
    /// Fail if the relative error of a constant's value would exceed this, such as 1e-3
    #[arg(long, value_name = "REL", value_parser = relative_error, requires = "auditable")]
    pub(crate) max_error: Option<f64>,
}

fn half() -> impl TypedValueParser<Value = ElementType> {
    names(&["f16", "bf16"]).try_map(|name| typelift::host::named_element_type(&name).ok_or("unknown"))
}

fn float() -> impl TypedValueParser<Value = ElementType> {
    names(&["f16", "f32"]).try_map(|name| typelift::host::named_element_type(&name).ok_or("unknown"))
}

fn relative_error(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number: &f64| *number >= 0.0 && number.is_finite());
    number.ok_or_else(|| "it is not a number from 0 on, such as 1e-3".to_owned())
}

impl StorageArgs {
    /// The storage of constants; `None` if it does not change.
    pub(crate) fn storage(&self) -> Option<Storage> {
        if let Some(to) = self.dequantize {
            return Some(Storage::Dequantize(to));
        }
        match (self.compress, self.decompress) {
            (Some(to), _) => Some(Storage::Compress { to, like: self.like }),
            (None, Some(None)) => Some(Storage::Decompress(vec![ElementType::F16, ElementType::Bf16])),
            (None, Some(Some(from))) => Some(Storage::Decompress(vec![from])),
            (None, None) => None,
        }
    }
}

/// Summarizes a plan: `1,024 -> 512 bytes, worst relative error 0`, `2 of 5 constants stay (2 shape-path)`.
pub(crate) fn remarks(plan: &Plan) -> Vec<String> {
    let PlanTotals { constants, changed, bytes_before, bytes_after, kept, max_rel, .. } = plan.totals();
    let mut remarks = Vec::new();
    if changed > 0 {
        let (before, after) = (grouped(bytes_before), grouped(bytes_after));
        remarks.push(format!("{before} -> {after} bytes, worst relative error {}", short(max_rel)));
    }
    if !kept.is_empty() {
        let reasons: Vec<_> = kept.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
        let left = constants - changed;
        let stay = if left == 1 { "stays" } else { "stay" };
        let (left, of) = (grouped(left as u64), count(constants, "constant"));
        remarks.push(format!("{left} of {of} {stay} ({})", reasons.join(", ")));
    }
    remarks
}

pub(crate) fn table(plan: &Plan) -> String {
    let worst = plan.worst(LISTED);
    if worst.is_empty() {
        return String::new();
    }
    let right = Side::Right;
    let head = ["constant", "type", "values", "relative", "absolute", "to inf", "to zero", "subnormal"];
    let mut columns = Columns::headed([Side::Left, Side::Left, right, right, right, right, right, right], head);
    for constant in worst {
        let loss = constant.loss;
        let damaged = loss.to_inf + loss.nan > 0;
        let style = if damaged { AnsiColor::Yellow.on_default() } else { Style::new() };
        columns.push(
            style,
            [
                Clean(&constant.path).to_string(),
                format!("{} -> {}", constant.from, constant.to),
                grouped(loss.n),
                short(loss.max_rel),
                short(loss.max_abs),
                unless_zero(loss.to_inf),
                unless_zero(loss.to_zero),
                unless_zero(loss.to_subnormal),
            ],
        );
    }
    columns.print()
}

/// Lists the risks, one per line, and the option that avoids those of each type.
pub(crate) fn dangers(risks: &[Risk]) -> String {
    let mut text = String::new();
    for of_type in risks.chunk_by(|a, b| a.to == b.to) {
        for risk in of_type {
            let (layer, detail) = (risk.layer.full_name(), risk.detail.to_string());
            text += &format!("risk[{}] {}: {}\n", risk.code.name(), Clean(&layer), Clean(&detail));
        }
        text += &format!("`--keep risk:{}` leaves the layers at risk in their types\n", of_type[0].to);
    }
    text
}

/// Formats a number with three significant digits.
pub(crate) fn short(number: f64) -> String {
    let rounded: f64 = format!("{number:.2e}").parse().unwrap_or(number);
    if rounded == 0.0 || (1e-2..1e7).contains(&rounded) { rounded.to_string() } else { format!("{rounded:e}") }
}

/// True if a pattern matches constants, or layers with some of their own.
pub(crate) fn keeps_constants(model: &Model, pattern: &KeepPattern) -> bool {
    let kept = Kept::find(model, std::slice::from_ref(pattern));
    kept.is_ok_and(|kept| kept.iter().filter_map(|(place, id)| model.graph_at(place)?.layer(id)).any(is_constant))
}

fn is_constant(layer: &Layer) -> bool {
    layer.ty() == "Const"
}
