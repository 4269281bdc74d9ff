//! Figures of blocks: bytes by stored type, parameters, types computed in, operations.

use std::collections::BTreeMap;

use typelift_promote::{ElementType, Kind};

use super::wiring::Flow;
use super::{Block, Form, StoredWeights};
use crate::base::hash::{HashMap, HashSet};
use crate::explain::stats::{Census, by_size, counted};
use crate::infer::blocks::{Role, roles};
use crate::model::graph::{Graph, Layer, LayerId, LayerMap, Place};
use crate::model::weights::Weights;
use crate::ops::{self, Macs};
use crate::precision::schemes::{self, Scheme};

/// A graph with facts about its constants.
pub(crate) struct Figures<'a> {
    pub(crate) graph: &'a Graph,
    weights: &'a Weights,
    pub(crate) roles: LayerMap<Role>,
    /// Formats of the quantized constants, by the layer of their codes.
    pub(crate) schemes: HashMap<LayerId, Scheme>,
    /// Scales and zero points, which are no parameters.
    operands: HashSet<LayerId>,
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
        Self { graph, weights, roles: roles(graph), schemes, operands }
    }

    pub(super) fn flow(&self) -> Flow<'_> {
        Flow { graph: self.graph, roles: &self.roles, weights: self.weights }
    }

    pub(crate) fn is_data(&self, layer: LayerId) -> bool {
        self.roles.get(layer) == Some(&Role::Data)
    }

    /// Layers as a block without number and scopes.
    pub(super) fn block(&self, place: &Place, name: &str, layers: Vec<LayerId>) -> Block {
        let (mut form, mut census, mut macs) = (Form::default(), Census::default(), Macs::default());
        let (mut operations, mut words) = (BTreeMap::<&str, u64>::new(), BTreeMap::<(&str, &str, &str), u64>::new());
        let mut weights = BTreeMap::<(ElementType, Option<Scheme>), StoredWeights>::new();
        let mut parameters = 0;
        let own: HashSet<LayerId> = layers.iter().copied().collect();
        for layer in layers.iter().filter_map(|&id| self.graph.layer(id)) {
            if let Some((element_type, bytes)) = census.count(layer) {
                let scheme = self.schemes.get(&layer.id()).copied();
                let empty = || StoredWeights { element_type, scheme, constants: 0, bytes: 0 };
                let stored = weights.entry((element_type, scheme)).or_insert_with(empty);
                (stored.constants, stored.bytes) = (stored.constants + 1, stored.bytes + bytes);
                parameters += if bytes > 0 { self.parameters(layer, element_type) } else { 0 };
                *form.stored.entry(element_type).or_default() += bytes;
            } else {
                *operations.entry(layer.ty()).or_default() += 1;
                let operation = layer.operation();
                let is_setting = |name: &str| operation.is_some_and(|it| it.settings().any(|setting| setting == name));
                for attribute in layer.attributes().iter().filter(|it| is_setting(it.name())) {
                    *words.entry((layer.ty(), attribute.name(), attribute.value())).or_default() += 1;
                }
            }
            if self.is_data(layer.id()) {
                layer.outputs().iter().for_each(|port| *form.computed.entry(port.element_type()).or_default() += 1);
                let feeds = self.graph.feeds(layer.id()).into_iter().flatten().map(|(it, _)| it.id());
                let mut counts = [0, 0];
                feeds.filter(|&id| self.is_data(id)).for_each(|id| counts[usize::from(own.contains(&id))] += 1);
                form.joins += usize::from(!counts.contains(&0));
                form.sums += usize::from(layer.ty() == "Add" && counts.iter().sum::<usize>() > 1);
            }
            macs = macs.and(ops::macs(self.graph, layer));
        }
        form.macs = macs.count;
        form.operations = operations.into_iter().map(|(operation, count)| (operation.to_owned(), count)).collect();
        form.words = words
            .into_iter()
            .map(|((operation, name, value), count)| ((operation.to_owned(), format!("{name}=\"{value}\"")), count))
            .collect();
        Block {
            name: name.to_owned(),
            path: place.path_to(name),
            layers,
            weights: by_size(weights.into_values(), |stored| stored.bytes),
            parameters,
            computed: counted(form.computed.iter().map(|(&ty, &count)| (ty, count as usize)).collect()),
            macs: macs.count,
            macs_is_least: macs.is_least,
            place: place.clone(),
            form,
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
