//! Tolerance of a comparison, which depends on the element types of both models.

use std::collections::BTreeSet;

use serde::Serialize;
use typelift::promote::ElementType;

use typelift::explain::ChangeKind;
use typelift::explain::map::{Role, roles};
use typelift::{Graph, Model, diff};

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

/// Element types in which a model or a device may compute, the widest first, each with its relative tolerance and noise.
const TYPES: [(ElementType, f64, f64); 3] =
    [(ElementType::F32, 1e-3, 2e-6), (ElementType::F16, 2e-2, 1e-3), (ElementType::Bf16, 1e-1, 8e-3)];

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
const ROUNDED: f64 = 1.0 / 128.0;
pub(super) const OFTEN_ROUNDED: f64 = 1e-1;

/// The narrowest type that only one of the two models uses, or in which a device computes, at least f32, with
/// its tolerance. Types that both use cause no difference, except for bf16: a fused layer rounds fewer values to it. The
/// tolerance of quantized weights holds if B is A with quantized weights, and otherwise the same.
pub(super) fn narrowest(a: &Model, b: &Model, precisions: [Option<&str>; 2]) -> (ElementType, Tolerance) {
    let (of_a, of_b) = (types(a), types(b));
    let is_computed_in = |ty: ElementType| precisions.contains(&Some(ty.name()));
    let differs = |ty: ElementType| of_a.contains(&ty) != of_b.contains(&ty);
    let computed = TYPES.iter().rev().find(|(ty, ..)| differs(*ty) || is_computed_in(*ty));
    let &(mut narrowest, mut relative, mut noise) = computed.unwrap_or(&TYPES[0]);
    if let Some(&(ty, of_weights, rounding, most)) = WEIGHTS.iter().rev().find(|(ty, ..)| differs(*ty)) {
        noise = noise.max(rounding);
        if of_weights > relative && of_b.contains(&ty) && is_quantized(a, b, most) {
            (narrowest, relative) = (ty, of_weights);
        }
    }
    let relative = if round(a, b) { relative.max(ROUNDED) } else { relative };
    (narrowest, Tolerance { relative, absolute: relative / 1000.0, noise })
}

/// True if B differs from A only in weights that are quantized, none by more than a part of the range of its row.
fn is_quantized(a: &Model, b: &Model, most: f64) -> bool {
    diff(a, b).changes.iter().filter(|change| change.kind != ChangeKind::Names).all(|change| {
        let part = change.error.and_then(|error| error.max_of_range);
        change.kind == ChangeKind::Constant && part.is_some_and(|part| part <= most)
    })
}

pub(super) fn round(a: &Model, b: &Model) -> bool {
    let is_rounded = |graph: &Graph| {
        let roles = roles(graph);
        let mut computed = graph.layers().filter(|layer| roles.get(layer.id()) != Some(&Role::Stored));
        computed.any(|layer| layer.outputs().iter().any(|port| port.element_type() == ElementType::Bf16))
    };
    [a, b].into_iter().all(|model| model.walk().any(|(_, graph)| is_rounded(graph)))
}

pub(super) fn types(model: &Model) -> BTreeSet<ElementType> {
    let graphs = model.walk();
    graphs
        .flat_map(|(_, graph)| {
            graph.layers().flat_map(|layer| layer.outputs()).map(|port| port.element_type()).collect::<Vec<_>>()
        })
        .collect()
}
