//! Invariants of a graph.

use petgraph::stable_graph::NodeIndex;
use petgraph::visit::EdgeRef;
use thiserror::Error;

use super::{Graph, Input, Layer, LayerId, Output};

/// A violated invariant of the graph.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Violation {
    /// An edge starts at an output that its layer does not have.
    #[error("an edge starts at output {} of layer {}, which has no such port", .0.port, .0.layer)]
    NoOutput(Output),
    /// An edge ends at an input that its layer does not have.
    #[error("an edge ends at input {} of layer {}, which has no such port", .0.port, .0.layer)]
    NoInput(Input),
    /// Two edges end at one input.
    #[error("two edges end at input {} of layer {}", .0.port, .0.layer)]
    FedTwice(Input),
    /// An input is unconnected while a later one is connected.
    #[error("input {} of layer {} is not connected", .0.port, .0.layer)]
    Unconnected(Input),
    /// Layers form a cycle.
    #[error("layers {} form a cycle", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))]
    Circle(Vec<LayerId>),
}

impl Graph {
    /// Checks the invariants of the graph and of every body in it. [`infer`](crate::infer()) checks the connections of
    /// bodies.
    ///
    /// # Errors
    /// Every violated invariant.
    pub fn verify(&self) -> Result<(), Vec<Violation>> {
        let mut violations = Vec::new();
        self.collect_violations(&mut Vec::new(), &mut violations);
        if violations.is_empty() { Ok(()) } else { Err(violations) }
    }

    /// Collects violations. `fed` is a reusable buffer for the inputs of one layer.
    fn collect_violations(&self, fed: &mut Vec<bool>, violations: &mut Vec<Violation>) {
        for node in self.storage.node_indices() {
            let Some(layer) = self.weight(node) else { continue };
            self.check_inputs(node, layer, fed, violations);
            for body in &layer.bodies {
                body.graph.collect_violations(fed, violations);
            }
        }
        violations.extend(self.find_cycle().map(Violation::Circle));
    }

    fn check_inputs(&self, node: NodeIndex, layer: &Layer, fed: &mut Vec<bool>, violations: &mut Vec<Violation>) {
        fed.clear();
        fed.resize(layer.inputs.len(), false);
        let (mut count, mut end) = (0, 0);
        for edge in self.live_edges(node) {
            let input = Input { layer: layer.id, port: edge.weight().to_port as usize };
            match fed.get_mut(input.port) {
                None => violations.push(Violation::NoInput(input)),
                Some(true) => violations.push(Violation::FedTwice(input)),
                Some(fed) => (*fed, count, end) = (true, count + 1, end.max(input.port + 1)),
            }
            let source = &self.storage[edge.source()];
            let output = Output { layer: source.id, port: edge.weight().from_port as usize };
            if output.port >= source.outputs.len() {
                violations.push(Violation::NoOutput(output));
            }
        }
        // Trailing inputs may be optional; one before a connected input may not be missing.
        if count < end {
            let gaps = (0..end).filter(|&port| !fed[port]);
            violations.extend(gaps.map(|port| Violation::Unconnected(Input { layer: layer.id, port })));
        }
    }
}
