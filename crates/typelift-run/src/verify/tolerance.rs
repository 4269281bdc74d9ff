//! Tolerance of a comparison, which depends on the element types of both models.

use std::collections::BTreeSet;

use serde::Serialize;
use typelift::promote::ElementType;

use typelift::explain::ChangeKind;
use typelift::explain::map::{Role, roles};
use typelift::{Model, diff};

/// Tolerance of a comparison. Values agree if they differ by at most `absolute + relative * scale`, where the scale is
/// the largest finite value of the tensor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Tolerance {
    /// The tolerance relative to the scale of the tensor.
    pub relative: f64,
    /// Added to that.
    pub absolute: f64,
    /// The rounding noise as a fraction of the scale.
    pub noise: f64,
}

pub(super) const F32: Tolerance = Tolerance { relative: 1e-3, absolute: 1e-6, noise: 2e-6 };

/// Element types in which a model or a device may compute, the widest first, each with its relative tolerance and noise.
const TYPES: [(ElementType, f64, f64); 3] =
    [(ElementType::F32, F32.relative, F32.noise), (ElementType::F16, 2e-2, 1e-3), (ElementType::Bf16, 1e-1, 8e-3)];

/// Element types of quantized weights, the widest first, each with the tolerance and the noise of what they feed, and the
/// largest error of a value as a part of the range of the values that share its scale.
const WEIGHTS: [(ElementType, f64, f64, f64); 8] = [
    (ElementType::I8, 5e-2, 1e-2, 0.01),
    (ElementType::U8, 5e-2, 1e-2, 0.01),
    (ElementType::F8E4M3, 2e-1, 6e-2, 0.07),
    (ElementType::F8E5M2, 4e-1, 1e-1, 0.13),
    (ElementType::I4, 4e-1, 2e-1, 0.17),
    (ElementType::U4, 4e-1, 2e-1, 0.17),
    (ElementType::Nf4, 4e-1, 2e-1, 0.17),
    (ElementType::F4E2M1, 4e-1, 2e-1, 0.26),
];

/// Two units in the last place of bf16, and the largest error that many roundings cause.
pub(super) const ROUNDED: f64 = 1.0 / 128.0;
pub(super) const OFTEN_ROUNDED: f64 = 1e-1;

/// The narrowest type that only one of the two models uses, or in which a device computes, at least f32, with
/// its tolerance. Types that both use cause no difference, except for bf16: a fused layer rounds fewer values to it. The
/// tolerance of quantized weights holds if B is A with quantized weights, and otherwise the same. If one of them is farther
/// from A than quantization explains, no stored type explains a difference: scales are often f16.
pub(super) fn narrowest(a: &Model, b: &Model, precisions: [Option<&str>; 2]) -> (ElementType, Tolerance) {
    let (of_a, of_b) = (types(a, true), types(b, true));
    let (computed_a, computed_b) = (types(a, false), types(b, false));
    let narrowest_of = |of_a: &BTreeSet<ElementType>, of_b: &BTreeSet<ElementType>| {
        let mut types = TYPES.iter().rev();
        let found =
            types.find(|(ty, ..)| of_a.contains(ty) != of_b.contains(ty) || precisions.contains(&Some(ty.name())));
        found.unwrap_or(&TYPES[0])
    };
    let &(mut narrowest, mut relative, mut noise) = narrowest_of(&of_a, &of_b);
    let quantized = WEIGHTS.iter().rev().find(|(ty, ..)| of_a.contains(ty) != of_b.contains(ty));
    noise = quantized.map_or(noise, |&(_, _, rounding, _)| noise.max(rounding));
    if let Some(&(ty, of_weights, _, most)) = quantized.filter(|(ty, ..)| of_b.contains(ty)) {
        let parts = parts_of_range(a, b);
        if parts.iter().all(|part| part.is_some_and(|part| part <= most)) {
            (narrowest, relative) = if of_weights > relative { (ty, of_weights) } else { (narrowest, relative) };
        } else if parts.iter().flatten().any(|&part| part > most) {
            (narrowest, relative, _) = *narrowest_of(&computed_a, &computed_b);
        }
    }
    let relative = if round(a, b) { relative.max(ROUNDED) } else { relative };
    (narrowest, Tolerance { relative, absolute: relative / 1000.0, noise })
}

/// The largest error of each change as a part of the range of the values that share its scale; `None` for changes of other
/// kinds.
fn parts_of_range(a: &Model, b: &Model) -> Vec<Option<f64>> {
    let changes = diff(a, b).changes;
    let changes = changes.iter().filter(|change| change.kind != ChangeKind::Names);
    changes
        .map(|change| {
            let error = change.error.filter(|_| change.kind == ChangeKind::Constant);
            error.and_then(|error| error.max_of_range)
        })
        .collect()
}

/// True if a model computes values in bf16.
pub(super) fn round(a: &Model, b: &Model) -> bool {
    [a, b].into_iter().any(|model| types(model, false).contains(&ElementType::Bf16))
}

/// The types of tensors: of all, or of those that are computed from data.
fn types(model: &Model, with_stored: bool) -> BTreeSet<ElementType> {
    let mut types = BTreeSet::new();
    for (_, graph) in model.walk() {
        let roles = roles(graph);
        let layers = graph.layers().filter(|layer| with_stored || roles.get(layer.id()) != Some(&Role::Stored));
        types.extend(layers.flat_map(|layer| layer.outputs()).map(|port| port.element_type()));
    }
    types
}
