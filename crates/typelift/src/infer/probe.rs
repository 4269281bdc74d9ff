//! Asking single rules, without going through a graph.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use typelift_promote::ElementType;

use super::check_input_count;
use super::value::{Evaluator, Values};
use crate::diagnostic::Code;
use crate::graph::{Body, Graph, Layer, LayerId, Output, OutputPort};
use crate::ops::evaluate::Bounds;
use crate::ops::{self, AttributeValues, Fault, Finding, Given, Outputs, Subject, Surroundings, Variable};
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

/// Element types and shapes of the outputs of one layer without bodies, as its rule has them; `None` where it has no rule.
///
/// # Errors
/// Why the operation refuses its inputs or attributes.
pub(crate) fn outputs_of(
    graph: &Graph,
    id: LayerId,
    (source, weights): (&Arc<String>, &Weights),
) -> Option<Result<Outputs, String>> {
    let layer = graph.layer(id)?;
    let operation = ops::lookup(&layer.ty, &layer.version)?;
    let outputs = || {
        let inputs = graph.tensors(id);
        let (values, findings) = AttributeValues::read(layer, operation);
        let refused = |finding| if let Finding::Refused(fault) = finding { Some(fault) } else { None };
        findings.into_iter().find_map(refused).map_or(Ok(()), Err)?;
        check_input_count(layer, operation, inputs.len())?;
        let subject = Subject { graph, layer, operation, values: &values, given: None };
        Probe::new(source, weights).ask(&subject, &inputs)
    };
    Some(outputs().map_err(|fault: Fault| fault.message.into()))
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

    fn lint(&mut self, _: &Graph, _: LayerId, _: &Fault) {}

    fn variables(&mut self) -> &mut HashMap<String, Variable> {
        &mut self.variables
    }

    fn is_readable(&self, _: &str) -> bool {
        false
    }

    fn infer_body(&mut self, _: &Layer, _: usize, _: &mut Body, _: &Given) -> Result<(), Fault> {
        Err(Fault::other(Code::InvalidBody, "bodies are not inferred here"))
    }

    fn body_bounds(&mut self, _: &Layer, _: usize, _: &Graph, _: Output) -> Option<Rc<Bounds>> {
        None
    }

    fn iterations(&mut self, _: &Layer, _: usize) -> &mut Option<i64> {
        &mut self.iterations
    }

    fn common_result_type(&mut self, _: &Layer, _: &[Body], _: [(usize, LayerId); 2]) -> Option<ElementType> {
        None
    }

    fn spend(&mut self, _: usize) -> Result<(), Fault> {
        Ok(())
    }
}
