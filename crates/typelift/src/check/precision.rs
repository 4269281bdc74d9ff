//! Findings about values that a narrower type cannot represent.

use std::collections::{BTreeMap, BTreeSet};

use typelift_promote::ElementType;

use crate::base::names::without_numbers;
use crate::edit::precision_marks::Marks;
use crate::findings::{Code, Diagnostic, Fix, FixAction, Severity, message};
use crate::model::graph::{Layer, Model};
use crate::ops::{self, LayerKind};
use crate::precision::{KeepPattern, Kept, Risk, RiskRule, risks};
use crate::text::xml;

/// Returns the findings for an [inferred](crate::infer()) model that would compute in f16 or bf16 instead of f32 and
/// f64, or in i32 instead of i64. Each [risk](risks) is a warning, in the order of the file. Layers with precision marks
/// keep f32 on devices, and are no risk.
#[must_use]
pub(crate) fn check_precision(model: &Model, to: ElementType) -> Vec<Diagnostic> {
    let mut risks = risks(model, to);
    risks.retain(|risk| to == ElementType::I32 || !risk.keep.iter().all(|path| is_marked(model, path)));
    let mut alike = BTreeMap::<_, BTreeSet<&str>>::new();
    for risk in &risks {
        let group = (risk.rule, without_numbers(&risk.layer.name));
        alike.entry(group).or_default().extend(risk.keep.iter().map(String::as_str));
    }
    let patterns: BTreeMap<_, _> =
        alike.into_iter().map(|(group, paths)| (group, keep_patterns(model, &paths))).collect();
    let found = risks.iter().map(|risk| {
        let keep = patterns.get(&(risk.rule, without_numbers(&risk.layer.name))).cloned().unwrap_or_default();
        finding(model, risk, keep, to)
    });
    let mut found: Vec<_> = found.collect();
    found.sort_by_key(|diagnostic| diagnostic.labels.first().map(|label| label.span.start));
    found
}

/// True if a layer has a mark by which devices keep its precision, or computes nothing.
fn is_marked(model: &Model, path: &str) -> bool {
    let layer = model.find(path).ok().and_then(|(place, id)| model.graph_at(&place)?.layer(id));
    let is_end = |layer: &Layer| [LayerKind::Parameter, LayerKind::Result].contains(&ops::kind(layer));
    layer.is_some_and(|layer| is_end(layer) || Marks::of(layer, model.version()).keeps_precision())
}

/// True if a layer computes in this type as the file is.
fn computes_in(model: &Model, path: &str, ty: ElementType) -> bool {
    let layer = model.find(path).ok().and_then(|(place, id)| model.graph_at(&place)?.layer(id));
    layer.is_some_and(|layer| layer.outputs().first().is_some_and(|port| port.element_type() == ty))
}

/// Returns patterns for `--keep` that match these layers and their constants only: one for layers that differ in
/// numbers, if it matches no other layer.
fn keep_patterns(model: &Model, paths: &BTreeSet<&str>) -> Vec<String> {
    let find = |patterns: &[KeepPattern]| Kept::find(model, patterns).ok();
    let single = |path: &&str| KeepPattern::from(*path);
    let wanted = find(&paths.iter().map(single).collect::<Vec<_>>());
    let mut groups = BTreeMap::<String, Vec<&str>>::new();
    for path in paths {
        groups.entry(without_numbers(path)).or_default().push(path);
    }
    let is_exact = |pattern: &str| {
        let (found, wanted) = (find(&[pattern.into()]), wanted.as_ref());
        found.zip(wanted).is_some_and(|(found, wanted)| found.iter().all(|(place, id)| wanted.contains(place, id)))
    };
    let of_group = |(pattern, paths): (String, Vec<&str>)| match paths.len() {
        1 => vec![paths[0].to_owned()],
        _ if is_exact(&pattern) => vec![pattern],
        _ => paths.into_iter().map(str::to_owned).collect(),
    };
    groups.into_iter().flat_map(of_group).collect()
}

/// Returns notes on integers beyond i32, because OpenVINO's CPU plugin computes i64 as i32.
pub(super) fn beyond_i32(model: &Model) -> impl Iterator<Item = Diagnostic> {
    let found = check_precision(model, ElementType::I32).into_iter();
    found.map(|found| Diagnostic { severity: Severity::Note, ..found })
}

fn finding(model: &Model, risk: &Risk, layers: Vec<String>, to: ElementType) -> Diagnostic {
    let Risk { rule, layer, detail, keep, span } = risk;
    let name = &layer.name;
    let (code, message) = match rule {
        RiskRule::EpsilonLost => {
            (Code::EpsilonLost, message!("the epsilon that protects `{}` from zero is lost in {}"; name, to))
        }
        RiskRule::ExponentOverflow => {
            (Code::ExponentOverflow, message!("the results of `{}` can overflow {}"; name, to))
        }
        RiskRule::SquareOverflow => {
            (Code::SquareOverflow, message!("the squares that `{}` sums can overflow {}"; name, to))
        }
        RiskRule::MaskOverflow => {
            (Code::MaskOverflow, message!("`{}` can add two masks, which overflows {}"; name, to))
        }
        RiskRule::IntegerOverflow => {
            (Code::IntegerOverflow, message!("the integers that `{}` converts overflow {}"; name, to))
        }
        RiskRule::IndexRounded => {
            (Code::IndexRounded, message!("`{}` converts values to integers that {} has rounded before"; name, to))
        }
        RiskRule::CountRounded => (
            Code::CountRounded,
            message!("`{}` counts beyond the largest integer that {} represents exactly"; name, to),
        ),
        RiskRule::BeyondI32 => (
            Code::BeyondI32,
            message!("`{}` has values beyond i32, but OpenVINO's CPU plugin computes i64 as i32"; name),
        ),
    };
    let span = xml::locate(model.source(), *span, "layer", "name");
    let finding = Diagnostic { layer: Some(layer.clone()), ..Diagnostic::new(code, message) }.at(span, detail.clone());
    let finding = Diagnostic { severity: Severity::Warning, ..finding };
    let finding = match rule {
        RiskRule::BeyondI32 => finding.note("a CPU does so whatever type the file declares; other devices may not"),
        _ => finding,
    };
    if keep.iter().all(|path| computes_in(model, path, to)) {
        let help = message!("the file itself computes it in {}: compute it in f32, between Converts"; to);
        return finding.help(help);
    }
    finding.help(Fix::untried(FixAction::Keep { layers, to }))
}
