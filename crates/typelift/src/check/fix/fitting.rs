//! Finds the attribute values that give a layer the outputs that its ports declare.

use crate::infer::{Probe, are_as_declared, declared, with_value};
use crate::model::graph::{Graph, Layer, LayerId, Model};
use crate::ops::{self, AttributeValues, Subject};

/// Tells which values of attributes give the outputs of a layer of an inferred graph the types and shapes that its ports
/// declare.
pub(super) struct Fitting<'a> {
    model: &'a Model,
    graph: &'a Graph,
    layer: Option<&'a Layer>,
    probe: Probe,
}

impl<'a> Fitting<'a> {
    pub(super) fn new(model: &'a Model, graph: &'a Graph, id: LayerId) -> Self {
        let declares = |layer: &&Layer| {
            let port = |port| declared(&model.source, port).shape.rank().is_some();
            layer.bodies().is_empty() && !ops::is_constant(layer) && layer.outputs().iter().any(port)
        };
        Self { model, graph, layer: graph.layer(id).filter(declares), probe: Probe::new(&model.weights) }
    }

    /// Returns true if a value does; `None` if that is unknown.
    pub(super) fn fits(&mut self, name: &str, value: &str) -> Option<bool> {
        let layer = with_value(self.layer?, name, value);
        self.are_as_declared(&layer)
    }

    /// Returns true if two values together do; `None` if that is unknown.
    pub(super) fn fits_both(&mut self, one: (&str, &str), other: (&str, &str)) -> Option<bool> {
        let layer = with_value(&with_value(self.layer?, one.0, one.1), other.0, other.1);
        self.are_as_declared(&layer)
    }

    fn are_as_declared(&mut self, layer: &Layer) -> Option<bool> {
        let original = self.layer?;
        let operation = original.operation()?;
        let values = AttributeValues::of(layer, operation);
        let subject = Subject { graph: self.graph, layer, operation, values: &values, given: None };
        let inputs = self.graph.tensors(original.id());
        let outputs = self.probe.ask(&subject, &inputs);
        Some(outputs.is_ok_and(|outputs| are_as_declared(&self.model.source, original, &outputs)))
    }
}
