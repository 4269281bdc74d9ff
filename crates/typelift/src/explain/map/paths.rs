//! Data paths of weights, from their constant to their consumer.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};
use typelift_promote::{ElementType, Kind};

use crate::explain::blocks::Figures;
use crate::explain::stats::{Census, by_size};
use crate::infer::blocks::{FEW_VALUES, Role, values};
use crate::model::graph::{LayerId, OutputPort};
use crate::precision::schemes::Scheme;

/// Data path of weights from their constant to their consumer: `10 × u4 → f16 → f32 → MatMul`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WeightPath {
    /// The element types along the path, beginning with the stored type.
    #[serde(serialize_with = "names_of")]
    pub types: Vec<ElementType>,
    /// The operation that uses the weights.
    pub operation: String,
    /// The format of quantized weights: `int4 asymmetric, groups of 128`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheme: Option<Scheme>,
    /// The number of weights with this path.
    pub constants: usize,
    /// The stored size in bytes. Weights that several layers use are counted for each.
    pub bytes: u64,
}

fn names_of<S: Serializer>(types: &[ElementType], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(types.iter().map(|ty| ty.name()))
}

pub(super) fn of(figures: &Figures<'_>, layers: &[LayerId]) -> Vec<WeightPath> {
    let Figures { graph, facts, schemes, .. } = figures;
    let mut paths = BTreeMap::<(Vec<ElementType>, &str, Option<Scheme>), (usize, u64)>::new();
    for layer in layers.iter().filter(|&&id| figures.is_data(id)).filter_map(|&id| graph.layer(id)) {
        for (producer, port) in graph.feeds(layer.id()).into_iter().flatten() {
            let Some(Role::Stored) = facts.roles.get(producer.id()) else { continue };
            let chain = facts.stored().path(producer.id());
            let Some(root) = chain.first() else { continue };
            let mut types: Vec<ElementType> =
                chain.iter().filter_map(|layer| Some(layer.outputs().first()?.element_type())).collect();
            types.extend(producer.outputs().get(port).map(OutputPort::element_type));
            types.dedup();
            let values = values(root);
            if types.last().is_some_and(|&used| is_weight(values, used)) {
                let count = paths.entry((types, layer.ty(), schemes.get(&root.id()).copied())).or_default();
                *count = (count.0 + 1, count.1 + Census::size(root));
            }
        }
    }
    let path = |((types, operation, scheme), (constants, bytes)): ((Vec<ElementType>, &str, _), _)| WeightPath {
        types,
        operation: operation.to_owned(),
        scheme,
        constants,
        bytes,
    };
    by_size(paths.into_iter().map(path), |path| path.bytes)
}

/// True if a constant with this many values, used in this type, contains weights and not a setting.
pub(super) fn is_weight(values: u64, used: ElementType) -> bool {
    values >= FEW_VALUES || used.kind() == Kind::Float && values > 1
}
