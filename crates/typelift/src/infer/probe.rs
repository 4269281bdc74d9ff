//! Asking single rules, without going through a graph.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use super::value::{Evaluator, Values};
use super::{Walk, check_input_count};
use crate::graph::{Graph, Layer, LayerId, Origin, Output, OutputPort};
use crate::ops::evaluate::Bounds;
use crate::ops::{AttributeValues, Fault, Finding, Operation, Outputs, Subject, Surroundings, Variable};
use crate::weights::Weights;

/// Asks what the rule of one layer of an inferred graph gives, for inputs and attributes of the asker's choice.
///
/// Rules that look at more than their layer are not answered: bodies are not inferred, and there are no variables.
pub(crate) struct Probe {
    evaluator: Evaluator,
    values: Values,
    variables: HashMap<String, Variable>,
    iterations: Option<i64>,
}

/// Element types and shapes of the outputs of one layer, as its rule has them; `None` where it has no rule. What is inside
/// of it is inferred too.
///
/// # Errors
/// Why the operation refuses its inputs, attributes or bodies.
pub(crate) fn outputs_of(graph: &mut Graph, id: LayerId, origin: Origin) -> Option<Result<Outputs, String>> {
    let layer = graph.layer_mut(id)?;
    let operation = layer.operation()?;
    let outputs = if layer.bodies.is_empty() {
        ask_alone(graph, id, operation, origin)
    } else {
        let mut bodies = std::mem::take(&mut layer.bodies);
        let outputs = Walk::over(origin).outputs_with_bodies(graph, id, operation, &mut bodies);
        graph.layer_mut(id)?.bodies = bodies;
        outputs
    };
    Some(outputs)
}

fn ask_alone(graph: &Graph, id: LayerId, operation: &'static Operation, origin: Origin) -> Result<Outputs, String> {
    let Some(layer) = graph.layer(id) else { return Ok(Outputs::new()) };
    let ask = || {
        let inputs = graph.tensors(id);
        let mut values = AttributeValues::default();
        let findings = values.read(layer, operation);
        let refused = |finding| if let Finding::Refused(fault) = finding { Some(fault) } else { None };
        findings.into_iter().find_map(refused).map_or(Ok(()), Err)?;
        check_input_count(layer, operation, inputs.len())?;
        let subject = Subject { graph, layer, operation, values: &values, given: None };
        Probe::new(origin.source, origin.weights).ask(&subject, &inputs)
    };
    ask().map_err(|fault: Fault| fault.message.into())
}

impl Probe {
    /// A probe for one graph of a model with this text and these weights.
    pub(crate) fn new(source: &Arc<String>, weights: &Weights) -> Self {
        let evaluator = Evaluator::new(source, weights);
        Self { evaluator, values: Values::default(), variables: HashMap::new(), iterations: None }
    }

    /// What the rule of a layer without bodies gives for these inputs.
    ///
    /// # Errors
    /// Why the rule refuses.
    pub(crate) fn ask(&mut self, subject: &Subject, inputs: &[&OutputPort]) -> Result<Outputs, Fault> {
        subject.infer(inputs, &mut [], self)
    }
}

impl Surroundings for Probe {
    fn weights(&self) -> &Weights {
        self.evaluator.weights()
    }

    fn bounds(&mut self, graph: &Graph, tensor: Output) -> Option<Rc<Bounds>> {
        self.evaluator.bounds(graph, &mut self.values, None, tensor)
    }

    fn variables(&mut self) -> &mut HashMap<String, Variable> {
        &mut self.variables
    }

    fn iterations(&mut self, _: &Layer, _: usize) -> &mut Option<i64> {
        &mut self.iterations
    }
}
