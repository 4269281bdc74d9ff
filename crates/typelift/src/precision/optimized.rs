//! Detection of models that were already optimized for low precision.

use typelift_promote::ElementType;

use crate::model::graph::{Graph, Layer, LayerId};
use crate::ops::{self, LayerKind};

/// Element types that OpenVINO recognizes as compressed weights.
const WEIGHTS: [ElementType; 7] = [
    ElementType::I4,
    ElementType::U4,
    ElementType::I8,
    ElementType::U8,
    ElementType::Nf4,
    ElementType::F8E4M3,
    ElementType::F8E5M2,
];

/// True if OpenVINO's `save_model` would not compress the model because it is already optimized. Either the model
/// contains a FakeQuantize, or weights of few bits are converted and multiplied by a constant scale. Bodies are
/// ignored.
pub(super) fn is_optimized(graph: &Graph) -> bool {
    graph.unordered().any(|layer| match operation(layer) {
        "FakeQuantize" | "FakeConvert" => true,
        "Multiply" => scales_weights(graph, layer.id()),
        _ => false,
    })
}

fn operation(layer: &Layer) -> &'static str {
    layer.operation().map_or("", |row| row.name)
}

fn scales_weights(graph: &Graph, multiply: LayerId) -> bool {
    let feeds = graph.feeds(multiply);
    let [Some((a, _)), Some((b, _))] = feeds[..] else { return false };
    [(a, b), (b, a)].into_iter().any(|(weights, scale)| {
        let source = |layer: &Layer| graph.feeds(layer.id()).first().copied().flatten().map(|(layer, _)| layer);
        let converted = if operation(weights) == "Subtract" { source(weights) } else { Some(weights) };
        ops::is_constant(scale)
            && converted.is_some_and(|convert| {
                let constant = source(convert).filter(|layer| ops::is_constant(layer));
                let stored = constant.and_then(|layer| layer.named_type("element_type"));
                let to = convert.outputs().first().map(|port| port.element_type());
                ops::kind(convert) == LayerKind::Convert
                    && stored.is_some_and(|stored| WEIGHTS.contains(&stored))
                    && to.is_some_and(|to| [ElementType::F16, ElementType::F32].contains(&to))
            })
    })
}
