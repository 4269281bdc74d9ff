//! Tolerance of a comparison, which depends on the element types of both models.

use std::collections::BTreeSet;

use serde::Serialize;
use typelift::explain::map::{Role, roles};
use typelift::model::graph::{Graph, Model};
use typelift::promote::ElementType;

/// Tolerance of a comparison. Values agree if they differ by at most `absolute + relative * scale`, where the scale is
/// the largest finite value of the tensor.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Tolerance {
    /// The tolerance relative to the scale of the tensor.
    pub relative: f64,
    /// Added to that.
    pub absolute: f64,
    /// The rounding noise as a fraction of the scale.
    pub noise: f64,
}

/// Element types that a model may use, the widest first, each with its relative tolerance and noise.
const TYPES: [(ElementType, f64, f64); 6] = [
    (ElementType::F32, 1e-3, 2e-6),
    (ElementType::F16, 2e-2, 1e-3),
    (ElementType::Bf16, 1e-1, 8e-3),
    (ElementType::F8E4M3, 2e-1, 6e-2),
    (ElementType::F8E5M2, 4e-1, 1e-1),
    (ElementType::F4E2M1, 4e-1, 2e-1),
];

/// Two units in the last place of bf16, and the largest error that many roundings cause.
const ROUNDED: f64 = 1.0 / 128.0;
pub(super) const OFTEN_ROUNDED: f64 = 1e-1;

/// Returns the narrowest type that only one of the two models uses, at least f32, with its tolerance. Types that both
/// use cause no difference, except for bf16: a fused layer rounds fewer values to it.
pub(super) fn narrowest(a: &Model, b: &Model, hints: [Option<&str>; 2]) -> (ElementType, Tolerance) {
    let (of_a, of_b) = (types(a), types(b));
    let hinted = |ty: ElementType| hints[0] != hints[1] && hints.contains(&Some(ty.name()));
    let differs = |ty: ElementType| of_a.contains(&ty) != of_b.contains(&ty) || hinted(ty);
    let &(ty, relative, noise) = TYPES.iter().rev().find(|(ty, ..)| differs(*ty)).unwrap_or(&TYPES[0]);
    let relative = if round(a, b) { relative.max(ROUNDED) } else { relative };
    (ty, Tolerance { relative, absolute: relative / 1000.0, noise })
}

/// True if both models round computed values to bf16.
pub(super) fn round(a: &Model, b: &Model) -> bool {
    let is_rounded = |graph: &Graph| {
        let roles = roles(graph);
        let mut computed = graph.layers().filter(|layer| roles.get(layer.id()) != Some(&Role::Stored));
        computed.any(|layer| layer.outputs().iter().any(|port| port.element_type() == ElementType::Bf16))
    };
    [a, b].into_iter().all(|model| model.walk().any(|(_, graph)| is_rounded(graph)))
}

/// Returns the element types of all tensors of a model.
pub(super) fn types(model: &Model) -> BTreeSet<ElementType> {
    let graphs = model.walk();
    graphs
        .flat_map(|(_, graph)| {
            graph.layers().flat_map(|layer| layer.outputs()).map(|port| port.element_type()).collect::<Vec<_>>()
        })
        .collect()
}
