//! Findings about values that a narrower type cannot represent.

use typelift_promote::ElementType;

use crate::findings::{Code, Diagnostic, Fix, FixAction, Severity};
use crate::model::graph::Model;
use crate::precision::{Risk, RiskRule, risks};
use crate::text::xml;

/// Returns the findings for an [inferred](crate::infer()) model, if it were computed in another type: in f16 or bf16
/// instead of f32 and f64, or in i32 instead of i64. Each [risk](risks) is a warning, in the order of the file.
#[must_use]
pub(crate) fn check_precision(model: &Model, to: ElementType) -> Vec<Diagnostic> {
    let mut found: Vec<_> = risks(model, to).into_iter().map(|risk| finding(model, risk, to)).collect();
    found.sort_by_key(|diagnostic| diagnostic.labels.first().map(|label| label.span.start));
    found
}

/// Returns notes on integers beyond i32, because OpenVINO's CPU plugin computes i64 as i32.
pub(super) fn beyond_i32(model: &Model) -> impl Iterator<Item = Diagnostic> {
    let found = check_precision(model, ElementType::I32).into_iter();
    found.map(|found| Diagnostic { severity: Severity::Note, ..found })
}

fn finding(model: &Model, risk: Risk, to: ElementType) -> Diagnostic {
    let Risk { rule, layer, detail, keep, span } = risk;
    let name = &layer.name;
    let (code, message) = match rule {
        RiskRule::EpsilonLost => {
            (Code::EpsilonLost, format!("the epsilon that protects `{name}` from zero is lost in {to}"))
        }
        RiskRule::ExponentOverflow => (Code::ExponentOverflow, format!("the results of `{name}` can overflow {to}")),
        RiskRule::SquareOverflow => (Code::SquareOverflow, format!("the squares that `{name}` sums can overflow {to}")),
        RiskRule::MaskOverflow => (Code::MaskOverflow, format!("`{name}` can add two masks, which overflows {to}")),
        RiskRule::IntegerOverflow => {
            (Code::IntegerOverflow, format!("the integers that `{name}` converts overflow {to}"))
        }
        RiskRule::IndexRounded => {
            (Code::IndexRounded, format!("`{name}` converts values to integers that {to} has rounded before"))
        }
        RiskRule::CountRounded => {
            (Code::CountRounded, format!("`{name}` counts beyond the largest integer that {to} represents exactly"))
        }
        RiskRule::BeyondI32 => {
            (Code::BeyondI32, format!("`{name}` has values beyond i32, but OpenVINO's CPU plugin computes i64 as i32"))
        }
    };
    let span = xml::locate(model.source(), span, "layer", "name");
    let finding = Diagnostic { layer: Some(layer), ..Diagnostic::new(code, message) }.at(span, detail);
    Diagnostic { severity: Severity::Warning, ..finding }.help(Fix::untried(FixAction::Keep(keep)))
}
