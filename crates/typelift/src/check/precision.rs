//! Findings about values that a narrower type cannot represent.

use typelift_promote::ElementType;

use crate::edit::precision_marks::{Marks, Spelling};
use crate::findings::{Code, Diagnostic, Fix, FixAction, LayerRef, Severity, message, replaced_by};
use crate::model::graph::{Layer, LayerId, Model, OutputPort};
use crate::ops::{self, LayerKind};
use crate::precision::{KeepPattern, Kept, Retyping, Risk, TypeMap, mark, risks};
use crate::text::xml;

/// The findings for an [inferred](crate::infer()) model that would compute in f16 or bf16 instead of f32 and
/// f64, or in i32 instead of i64. Each [risk](risks) is a warning, in the order of the file. Layers with precision marks
/// keep f32 on devices, and are no risk; nor are layers in i64 between Converts from and to i32. If the model has no
/// errors, each finding has the conversion that avoids all of them, if it was tried and does.
pub(crate) fn check_precision(model: &Model, to: ElementType, has_errors: bool) -> Vec<Diagnostic> {
    let mut risks = unmarked(model, to);
    let trial = if has_errors || risks.is_empty() { KeepTrial::Fails } else { KeepTrial::new(model, to, &risks) };
    if trial == KeepTrial::Done {
        risks.clear();
    }
    let mut found: Vec<_> = risks.iter().map(|risk| finding(model, risk, to, trial == KeepTrial::Succeeds)).collect();
    found.sort_by_key(|diagnostic| diagnostic.labels.first().map(|label| label.span.start));
    found
}

fn unmarked(model: &Model, to: ElementType) -> Vec<Risk> {
    let mut risks = risks(model, to);
    risks.retain(|risk| to == ElementType::I32 || !risk.keep.iter().all(|layer| is_marked(model, layer)));
    risks
}

/// Outcome of a conversion that keeps the layers at risk.
#[derive(Clone, Copy, PartialEq, Eq)]
enum KeepTrial {
    /// The conversion avoids all risks.
    Succeeds,
    Fails,
    /// The model is as the conversion leaves it.
    Done,
}

impl KeepTrial {
    fn new(model: &Model, to: ElementType, risks: &[Risk]) -> Self {
        Self::convert(&mut model.clone(), to, risks).unwrap_or(Self::Fails)
    }

    /// Does what `convert --types … --keep-io --keep risk:TYPE --mark-keeps` does.
    fn convert(model: &mut Model, to: ElementType, before: &[Risk]) -> Option<Self> {
        let kept = Kept::find(model, &[KeepPattern::AtRisk(to)]).ok()?;
        if to != ElementType::I32 {
            mark(model, &kept, Spelling::Both).ok()?;
        }
        let types = TypeMap::new([(replaced_by(to), to)]).ok()?;
        let retyping = Retyping { types, keep_io: true, kept };
        let (plan, _) = retyping.plan_and_lower(model, false).ok()?;
        if plan.changes_nothing() && to == ElementType::I32 {
            return Some(if is_mixed(model, &retyping.kept) { Self::Done } else { Self::Fails });
        }
        plan.apply(model).ok()?;
        let left = if to == ElementType::I32 { Vec::new() } else { unmarked(model, to) };
        let is_left = |risk: &Risk| left.iter().any(|it| (it.code, &it.layer) == (risk.code, &risk.layer));
        Some(if before.iter().any(is_left) { Self::Fails } else { Self::Succeeds })
    }
}

fn is_mixed(model: &Model, kept: &Kept) -> bool {
    let is_i32 = |port: Option<&OutputPort>| port.is_some_and(|port| port.element_type() == ElementType::I32);
    kept.iter().filter_map(|(place, layer)| Some((model.graph_at(place)?, layer))).any(|(graph, layer)| {
        let is_convert = |id: &LayerId| graph.layer(*id).is_some_and(|layer| ops::kind(layer) == LayerKind::Convert);
        let narrows = graph.users(layer).filter(is_convert).any(|id| is_i32(graph.output(id.output(0))));
        let mut widening = graph.sources(layer).filter(is_convert).filter_map(|id| graph.producer(id.input(0)));
        narrows || widening.any(|tensor| is_i32(graph.output(tensor)))
    })
}

/// True if a layer has a mark by which devices keep its precision, or computes nothing.
fn is_marked(model: &Model, layer: &LayerRef) -> bool {
    let is_end = |layer: &Layer| [LayerKind::Parameter, LayerKind::Result].contains(&ops::kind(layer));
    layer_of(model, layer).is_some_and(|layer| is_end(layer) || Marks::of(layer, model.version()).keeps_precision())
}

fn computes_in(model: &Model, layer: &LayerRef, ty: ElementType) -> bool {
    layer_of(model, layer).is_some_and(|layer| layer.outputs().first().is_some_and(|port| port.element_type() == ty))
}

fn layer_of<'m>(model: &'m Model, layer: &LayerRef) -> Option<&'m Layer> {
    model.graph_at(&layer.place)?.layer(layer.id)
}

/// Notes on integers beyond i32, because OpenVINO's CPU plugin computes i64 as i32.
pub(super) fn beyond_i32(model: &Model) -> impl Iterator<Item = Diagnostic> {
    let risks = unmarked(model, ElementType::I32).into_iter();
    risks.map(|risk| Diagnostic { severity: Severity::Note, ..finding(model, &risk, ElementType::I32, false) })
}

/// The finding of a risk, with the conversion that avoids it if that was tried.
fn finding(model: &Model, risk: &Risk, to: ElementType, is_avoidable: bool) -> Diagnostic {
    let Risk { code, layer, detail, keep, span, .. } = risk;
    let name = &layer.name;
    let message = match code {
        Code::EpsilonLost => message!("the epsilon that protects `{}` from zero is lost in {}"; name, to),
        Code::ExponentOverflow => message!("the results of `{}` can overflow {}"; name, to),
        Code::SquareOverflow => message!("the squares that `{}` sums can overflow {}"; name, to),
        Code::MaskOverflow => message!("`{}` can add two masks, which overflows {}"; name, to),
        Code::IntegerOverflow => message!("the integers that `{}` converts overflow {}"; name, to),
        Code::IndexRounded => message!("`{}` converts values to integers that {} has rounded before"; name, to),
        Code::CountRounded => message!("`{}` counts beyond the largest integer that {} represents exactly"; name, to),
        _ => message!("`{}` has values beyond i32, but OpenVINO's CPU plugin computes i64 as i32"; name),
    };
    let span = xml::locate(model.source(), *span, "layer", "name");
    let finding = Diagnostic { layer: Some(layer.clone()), ..Diagnostic::new(*code, message) }.at(span, detail.clone());
    let finding = Diagnostic { severity: Severity::Warning, ..finding };
    let finding = match code {
        Code::BeyondI32 => finding.note("a CPU does so whatever type the file declares; other devices may not"),
        _ => finding,
    };
    if keep.iter().all(|layer| computes_in(model, layer, to)) {
        let help = message!("the file itself computes it in {}: compute it in f32, between Converts"; to);
        return finding.help(help);
    }
    if is_avoidable { finding.help(Fix::possible(FixAction::Keep { to })) } else { finding }
}
