//! Comparison of quantized constants by their computed values.

use std::borrow::Cow;
use std::collections::BTreeMap;

use typelift_promote::ElementType;

use crate::base::hash::{HashMap, HashSet};
use crate::model::graph::{Graph, LayerId, Model};
use crate::ops;
use crate::precision::schemes::{self, QuantizedConstant, Rows, Scheme};
use crate::precision::{Kept, Plan};

/// Model in which quantized constants were replaced by constants with the computed values.
pub(super) struct Plain<'m> {
    pub(super) model: Cow<'m, Model>,
    /// The quantized constants of the model's own graph, by the layer that replaces each.
    pub(super) quantized: HashMap<LayerId, QuantizedConstant>,
}

impl<'m> Plain<'m> {
    fn unchanged(model: &'m Model) -> Self {
        Self { model: Cow::Borrowed(model), quantized: HashMap::default() }
    }

    fn of(model: &'m Model, other: &Model) -> Self {
        let bare = bare_codes(other);
        let is_compared = |graph: &Graph, quantized: &QuantizedConstant| {
            let codes = (quantized.name(graph), quantized.scheme.element_type);
            !bare.contains(&codes)
        };
        let mut found = schemes::find(model.graph(), model.weights());
        found.retain(|quantized| is_compared(model.graph(), quantized));
        let mut plan = Plan::dequantize(model, None, &Kept::default());
        let ids: HashSet<_> = found.iter().map(|quantized| quantized.codes).collect();
        plan.constants.retain(|constant| !constant.place.is_model() || ids.contains(&constant.layer));
        let mut plain = model.clone();
        match plan.apply(&mut plain) {
            Ok(()) => Self {
                model: Cow::Owned(plain),
                quantized: found.into_iter().map(|quantized| (quantized.codes, quantized)).collect(),
            },
            Err(_) => Self::unchanged(model),
        }
    }

    pub(super) fn scheme(&self, layer: LayerId) -> Option<(Scheme, Option<Rows>)> {
        self.quantized.get(&layer).map(|quantized| (quantized.scheme, quantized.rows()))
    }
}

/// If their constants have the same storage format, the codes are compared directly.
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
    [Plain::of(before, after), Plain::of(after, before)]
}

/// Constants of a model's own graph that no scheme is known for: names and element types. Their codes are compared with codes.
fn bare_codes(model: &Model) -> HashSet<(&str, ElementType)> {
    let graph = model.graph();
    let known: HashSet<_> = schemes::find(graph, model.weights()).iter().map(|quantized| quantized.codes).collect();
    let bare = graph.layers().filter(|layer| ops::is_constant(layer) && !known.contains(&layer.id()));
    bare.filter_map(|layer| Some((layer.name(), layer.outputs().first()?.element_type()))).collect()
}
