//! Figures of blocks: bytes by stored type, parameters, types computed in, operations.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use typelift_promote::{ElementType, Kind};

use super::wiring::Flow;
use super::{Block, StoredWeights};
use crate::base::hash::{HashMap, HashSet};
use crate::explain::stats::{Census, by_size, counted};
use crate::infer::blocks::{GraphFacts, Role};
use crate::model::graph::{Graph, Layer, LayerId, LayerMap, Place};
use crate::model::weights::Weights;
use crate::ops::{self, Macs};
use crate::precision::schemes::{self, Scheme};

/// A graph with facts about its constants.
pub(crate) struct Figures<'a> {
    pub(crate) graph: &'a Graph,
    weights: &'a Weights,
    pub(crate) facts: Rc<GraphFacts<'a>>,
    /// Formats of the quantized constants, by the layer of their codes.
    pub(crate) schemes: HashMap<LayerId, Scheme>,
    /// Scales and zero points, which are no parameters.
    operands: HashSet<LayerId>,
    /// The last mark, and the marks of layers in a search.
    pub(super) marks: RefCell<(usize, LayerMap<usize>)>,
}

impl<'a> Figures<'a> {
    pub(super) fn new(graph: &'a Graph, weights: &'a Weights) -> Self {
        let (mut schemes, mut operands) = (HashMap::default(), HashSet::default());
        for quantized in schemes::find(graph, weights) {
            schemes.insert(quantized.codes, quantized.scheme);
            let mut pending: Vec<LayerId> = quantized.layers.clone();
            while let Some(layer) = pending.pop() {
                let producers = graph.feeds(layer).into_iter().flatten().map(|(producer, _)| producer.id());
                let others = producers.filter(|id| *id != quantized.codes && !quantized.layers.contains(id));
                pending.extend(others.filter(|&id| operands.insert(id)));
            }
        }
        let marks = (0, LayerMap::new(graph)).into();
        Self { graph, weights, facts: GraphFacts::new(graph).into(), schemes, operands, marks }
    }

    pub(super) fn flow(&self) -> Flow<'_> {
        Flow { graph: self.graph, roles: &self.facts.roles, weights: self.weights }
    }

    pub(crate) fn is_data(&self, layer: LayerId) -> bool {
        self.facts.roles.get(layer) == Some(&Role::Data)
    }

    /// Layers as a block without number and scopes.
    pub(super) fn block(&self, place: &Place, name: &str, layers: Vec<LayerId>) -> Block {
        let (mut census, mut macs, mut parameters) = (Census::default(), Macs::default(), 0);
        let mut weights = BTreeMap::<(ElementType, Option<Scheme>), StoredWeights>::new();
        let mut computed = BTreeMap::<ElementType, usize>::new();
        for layer in layers.iter().filter_map(|&id| self.graph.layer(id)) {
            if let Some((element_type, bytes)) = census.count(layer) {
                let scheme = self.schemes.get(&layer.id()).copied();
                let empty = || StoredWeights { element_type, scheme, constants: 0, bytes: 0 };
                let stored = weights.entry((element_type, scheme)).or_insert_with(empty);
                (stored.constants, stored.bytes) = (stored.constants + 1, stored.bytes + bytes);
                parameters += if bytes > 0 { self.parameters(layer, element_type) } else { 0 };
            }
            if self.is_data(layer.id()) {
                layer.outputs().iter().for_each(|port| *computed.entry(port.element_type()).or_default() += 1);
            }
            macs = macs.and(ops::macs(self.graph, layer));
        }
        Block {
            name: name.to_owned(),
            path: place.path_to(name),
            layers,
            weights: by_size(weights.into_values(), |stored| stored.bytes),
            parameters,
            computed: counted(computed),
            macs: macs.count,
            macs_is_least: macs.is_least,
            place: place.clone(),
            ..Block::default()
        }
    }

    fn parameters(&self, layer: &Layer, element_type: ElementType) -> u64 {
        let count = layer.outputs().first().and_then(|port| port.shape().element_count()).unwrap_or(0);
        let is_float = element_type.kind() == Kind::Float && !self.operands.contains(&layer.id());
        let mut users = self.graph.users(layer.id()).filter_map(|id| self.graph.layer(id));
        let is_weight = count > 1 && (is_float || users.any(ops::has_macs));
        if is_weight || self.schemes.contains_key(&layer.id()) { count } else { 0 }
    }
}
