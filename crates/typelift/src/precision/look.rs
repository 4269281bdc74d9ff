//! Looking at one graph of a typed model: which operations feed which, and the values of constants.

use std::borrow::Cow;

use rustc_hash::{FxHashMap as HashMap, FxHashSet as HashSet};
use typelift_promote::ElementType;

use crate::model::graph::{Graph, IrVersion, Layer, LayerId, Model, OutputPort};
use crate::model::weights::Weights;
use crate::ops::values::conversion::Stored;
use crate::ops::{self, LayerKind, Spread};
use crate::promotion::passes;

/// Constants of more values are neither an epsilon nor an exponent.
const MOST_VALUES: u64 = 1 << 16;

/// The model as plugins see it, which lower promotions first. Layers keep their ids.
pub(super) fn lowered(model: &Model) -> Cow<'_, Model> {
    if !model.walk().any(|(_, graph)| graph.unordered().any(ops::is_promotion)) {
        return Cow::Borrowed(model);
    }
    let mut copy = model.clone();
    match passes::run_with(&mut copy, passes::LOWER_WITHOUT_NOOPS, false) {
        Ok(_) => Cow::Owned(copy),
        Err(_) => Cow::Borrowed(model),
    }
}

/// A graph in which nothing takes integers that a promotion passes on as they are: what does takes what is promoted, as it
/// does where promotions are lowered.
pub(super) fn past_idle_promotions(graph: &Graph) -> Cow<'_, Graph> {
    let promotions = graph.unordered().filter(|layer| ops::is_promotion(layer)).map(Layer::id).collect();
    let (mut stand_ins, mut wires) = (HashMap::default(), Vec::new());
    for id in graph.producers_first(promotions) {
        for port in 0..2 {
            let made = id.output(port);
            let Some(operand) = graph.producer(id.input(port)) else { continue };
            let [from, to] = [operand, made].map(|it| graph.output(it).map(OutputPort::element_type));
            if from == to && to.is_some_and(ElementType::is_integer) {
                let stand_in = *stand_ins.get(&operand).unwrap_or(&operand);
                stand_ins.insert(made, stand_in);
                wires.extend(graph.consumers(made).map(|to| (stand_in, to)));
            }
        }
    }
    if wires.is_empty() {
        return Cow::Borrowed(graph);
    }
    let mut copy = graph.clone();
    match copy.feed_all(wires) {
        Ok(()) => Cow::Owned(copy),
        Err(_) => Cow::Borrowed(graph),
    }
}

/// A graph, with what its constants hold.
pub(super) struct Look<'a> {
    pub(super) graph: &'a Graph,
    pub(super) weights: &'a Weights,
    pub(super) version: IrVersion,
    /// Each layer after those that feed it.
    pub(super) order: Vec<LayerId>,
}

impl<'a> Look<'a> {
    pub(super) fn new(model: &'a Model, graph: &'a Graph) -> Self {
        let order = graph.topological_order().unwrap_or_default();
        Self { graph, weights: model.weights(), version: model.version(), order }
    }

    pub(super) fn layer(&self, id: LayerId) -> Option<&'a Layer> {
        self.graph.layer(id)
    }

    pub(super) fn spreads(&self, id: LayerId, what: Spread) -> bool {
        self.layer(id).and_then(Layer::operation).is_some_and(|operation| operation.spreads(what))
    }

    pub(super) fn is_of(&self, id: LayerId, names: &[&str]) -> bool {
        self.layer(id).and_then(Layer::operation).is_some_and(|operation| names.contains(&operation.name()))
    }

    /// The layers that feed inputs of floating-point numbers.
    pub(super) fn float_sources(&self, id: LayerId) -> impl Iterator<Item = LayerId> {
        let feeds = self.graph.feeds(id).into_iter().flatten();
        feeds.filter(|(layer, port)| is_float(layer, *port)).map(|(layer, _)| layer.id())
    }

    /// Whether a layer that takes floating-point numbers of this one is in a set.
    pub(super) fn feeds_floats_to(&self, id: LayerId, set: &HashSet<LayerId>) -> bool {
        let Some(layer) = self.layer(id) else { return false };
        let ports = (0..layer.outputs().len()).filter(|&port| is_float(layer, port));
        ports.flat_map(|port| self.graph.consumers(id.output(port))).any(|input| set.contains(&input.layer))
    }

    pub(super) fn source(&self, id: LayerId, input: usize) -> Option<LayerId> {
        self.graph.producer(id.input(input)).map(|output| output.layer)
    }

    /// The values of a constant, or of one that a Convert converts; `None` for other layers, and for many values.
    pub(super) fn constant(&self, id: LayerId) -> Option<Vec<f64>> {
        let constant = self.values_of(id)?;
        let count = constant.outputs().first()?.shape().element_count()?;
        if count <= MOST_VALUES { constant.numbers(self.weights) } else { None }
    }

    /// The first such value of a constant, or of one that a Convert converts.
    pub(super) fn value(&self, id: LayerId, is: impl Fn(f64) -> bool) -> Option<f64> {
        let constant = self.values_of(id).filter(|layer| ops::is_constant(layer))?;
        Stored::of(constant)?.find(self.weights, is)
    }

    fn values_of(&self, id: LayerId) -> Option<&'a Layer> {
        let layer = self.layer(id)?;
        if ops::kind(layer) == LayerKind::Convert { self.layer(self.source(id, 0)?) } else { Some(layer) }
    }
}

pub(super) fn is_float(layer: &Layer, port: usize) -> bool {
    layer
        .outputs()
        .get(port)
        .is_some_and(|port| port.element_type().is_float() && port.element_type() != ElementType::Nf4)
}
