//! Quantized constants in a comparison: they are compared by the values with which the model computes.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::base::hash::HashMap;
use crate::model::graph::{LayerId, Model};
use crate::precision::schemes::{self, QuantizedConstant, Rows, Scheme};
use crate::precision::{Kept, Plan};

/// A model in which each quantized constant is one constant with its values.
pub(super) struct Plain<'m> {
    pub(super) model: Cow<'m, Model>,
    /// The quantized constants of the model's own graph, by the layer that has their values now.
    pub(super) quantized: HashMap<LayerId, QuantizedConstant>,
}

impl<'m> Plain<'m> {
    fn unchanged(model: &'m Model) -> Self {
        Self { model: Cow::Borrowed(model), quantized: HashMap::default() }
    }

    fn of(model: &'m Model) -> Self {
        let found = schemes::find(model.graph(), model.weights());
        let mut plain = model.clone();
        match Plan::dequantize(model, None, &Kept::default()).apply(&mut plain) {
            Ok(()) => Self {
                model: Cow::Owned(plain),
                quantized: found.into_iter().map(|quantized| (quantized.codes, quantized)).collect(),
            },
            Err(_) => Self::unchanged(model),
        }
    }

    /// The scheme of a constant, and the rows of its values.
    pub(super) fn scheme(&self, layer: LayerId) -> Option<(Scheme, Option<Rows>)> {
        self.quantized.get(&layer).map(|quantized| (quantized.scheme, quantized.rows()))
    }
}

/// Both models as they are to be compared. If both store all constants in the same way, codes are compared with codes.
pub(super) fn plain<'m>(before: &'m Model, after: &'m Model) -> [Plain<'m>; 2] {
    let schemes = |model: &Model| -> BTreeMap<String, Scheme> {
        let graphs = model.walk().map(|(place, graph)| (place, graph, schemes::find(graph, model.weights())));
        let named = graphs.flat_map(|(place, graph, found)| {
            let name = move |quantized: QuantizedConstant| (place.path_to(quantized.name(graph)), quantized.scheme);
            found.into_iter().map(name).collect::<Vec<_>>()
        });
        named.collect()
    };
    if schemes(before) == schemes(after) {
        return [before, after].map(Plain::unchanged);
    }
    [before, after].map(Plain::of)
}
