//! The tolerance of a comparison, from the element types of two models.

use std::collections::BTreeSet;

use serde::Serialize;
use typelift_promote::ElementType;

use crate::model::graph::Model;

/// The largest difference of values that still agree: `absolute + relative * scale`, where the scale of a tensor is its largest
/// finite value.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Tolerance {
    /// Relative to the scale of the tensor.
    pub relative: f64,
    /// Added to that.
    pub absolute: f64,
}

/// The types that a model can compute or store in, the widest first, each with its relative tolerance.
const TYPES: [(ElementType, f64); 6] = [
    (ElementType::F32, 1e-4),
    (ElementType::F16, 2e-2),
    (ElementType::Bf16, 1e-1),
    (ElementType::F8E4M3, 2e-1),
    (ElementType::F8E5M2, 4e-1),
    (ElementType::F4E2M1, 4e-1),
];

/// Returns the narrowest type that one of two models uses and the other does not, at least f32, with the tolerance that it asks
/// for. A type that both use makes no difference between them.
pub(super) fn narrowest(a: &Model, b: &Model, hints: [Option<&str>; 2]) -> (ElementType, Tolerance) {
    let (of_a, of_b) = (types(a), types(b));
    let hinted = |ty: ElementType| hints[0] != hints[1] && hints.contains(&Some(ty.name()));
    let differs = |ty: ElementType| of_a.contains(&ty) != of_b.contains(&ty) || hinted(ty);
    let found = TYPES.iter().rev().find(|(ty, _)| differs(*ty)).unwrap_or(&TYPES[0]);
    (found.0, Tolerance { relative: found.1, absolute: found.1 / 100.0 })
}

/// Returns the element types of all tensors of a model.
pub(super) fn types(model: &Model) -> BTreeSet<ElementType> {
    let graphs = model.walk();
    graphs
        .flat_map(|(_, graph)| {
            graph.unordered().flat_map(|layer| layer.outputs()).map(|port| port.element_type()).collect::<Vec<_>>()
        })
        .collect()
}
