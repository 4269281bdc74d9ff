//! Inference of single layers, without their graph.

use std::rc::Rc;

use super::check_input_count;
use super::value::{Evaluator, Values};
use crate::base::hash::HashMap;
use crate::model::graph::{Graph, Layer, LayerId, Output, OutputPort};
use crate::model::shape::TensorType;
use crate::model::weights::Weights;
use crate::ops::evaluate::Bounds;
use crate::ops::{AttributeValues, Fault, Operation, Outputs, Subject, Surroundings};

/// Tool that applies the inference rule of one layer to inputs and attributes that the caller chooses.
///
/// Bodies and variables are not supported.
pub(crate) struct Probe {
    evaluator: Evaluator,
    pub(crate) values: Values,
    variables: HashMap<String, TensorType>,
    iterations: Option<i64>,
}

impl Probe {
    pub(crate) fn new(weights: &Weights) -> Self {
        let (values, variables) = Default::default();
        Self { evaluator: Evaluator::new(weights), values, variables, iterations: None }
    }

    /// A probe for which promotions that leave integers unchanged are not there.
    pub(crate) fn past_promotions(mut self) -> Self {
        self.evaluator.is_past_promotions = true;
        self
    }

    /// Applies the rule of a layer without bodies to its own inputs and attributes.
    ///
    /// # Errors
    /// Inputs or attributes that the operation refuses.
    pub(crate) fn ask_as_it_is(
        &mut self,
        graph: &Graph,
        id: LayerId,
        operation: &'static Operation,
    ) -> Result<Outputs, Fault> {
        let Some(layer) = graph.layer(id) else { return Ok(Outputs::new()) };
        let inputs = graph.tensors(id);
        let values = AttributeValues::checked(layer, operation)?;
        check_input_count(layer, operation, inputs.len())?;
        self.ask(&Subject { graph, layer, operation, values: &values, given: None }, &inputs)
    }

    /// Applies the rule of a layer without bodies to these inputs.
    ///
    /// # Errors
    /// Inputs or attributes that the rule refuses.
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

    fn variables(&mut self) -> &mut HashMap<String, TensorType> {
        &mut self.variables
    }

    /// An edit does not require that the variable has a ReadValue; inference of the whole model reports that.
    fn is_readable(&self, _: &str) -> bool {
        true
    }

    fn iterations(&mut self, _: &Layer, _: usize) -> &mut Option<i64> {
        &mut self.iterations
    }
}
