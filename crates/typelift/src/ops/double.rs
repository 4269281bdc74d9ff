//! Test double of [`Surroundings`], for testing one rule without a model. The inputs are types, shapes and values.

use std::rc::Rc;

use typelift_promote::ElementType;

use super::evaluate::Bounds;
use super::{AttributeValues, Fault, Outputs, Subject, Surroundings};
use crate::base::hash::HashMap;
use crate::ops::values::array::Array;

use crate::model::graph::{Graph, InputPort, Layer, LayerId, Output, OutputPort};
use crate::model::shape::{Shape, TensorType};
use crate::model::weights::Weights;

/// Surroundings of one layer. They only know the values of its inputs.
#[derive(Default)]
struct Double {
    weights: Weights,
    values: HashMap<Output, Rc<Bounds>>,
    lints: Vec<String>,
    variables: HashMap<String, TensorType>,
    iterations: Option<i64>,
}

#[derive(Default)]
pub(super) struct Case<'a> {
    /// Operation and operation set: `Reshape`, `opset1`.
    pub(super) operation: (&'a str, &'a str),
    pub(super) attributes: &'a [(&'a str, &'a str)],
    /// Types and shapes, `f32[2,3]`, with values if the rule needs them.
    pub(super) inputs: &'a [(&'a str, Option<&'a [i64]>)],
}

impl Case<'_> {
    /// # Errors
    /// Inputs or attributes that the rule refuses.
    pub(super) fn infer(&self) -> Result<(Vec<String>, Vec<String>), Fault> {
        let mut graph = Graph::default();
        let mut around = Double::default();
        let mut ports = Vec::new();
        for (at, (text, values)) in self.inputs.iter().enumerate() {
            let (ty, shape) = text.split_once('[').unwrap_or((text, ""));
            let ty = ElementType::from_name(ty).expect("an element type");
            let shape: Shape = format!("[{shape}").parse().expect("a shape");
            let mut layer = Layer::new("Parameter", "opset1", "input").with_output(ty, shape.clone());
            layer.id = LayerId(at as u64);
            graph.append(layer);
            if let Some(values) = values {
                let dims = shape.to_static().expect("a static shape");
                let dims = dims.into_iter().map(|dim| usize::try_from(dim).expect("a dim")).collect();
                let array = Array::ints(ty, dims, values.iter().map(|&value| value.into()));
                around.values.insert(LayerId(at as u64).output(0), Rc::new(Bounds::exactly(array)));
            }
            ports.push(OutputPort::new(ty, shape));
        }
        let id = LayerId(self.inputs.len() as u64);
        let mut layer = Layer::new(self.operation.0, self.operation.1, "subject");
        layer.id = id;
        layer.inputs =
            (0..id.0).map(|port| InputPort { id: port, declared: None, content: Default::default() }).collect();
        for (name, value) in self.attributes {
            layer = layer.with_attribute(name, value);
        }
        graph.append(layer);
        graph.index_layers();
        (0..self.inputs.len()).for_each(|at| graph.wire(LayerId(at as u64).output(0), id.input(at), None));
        let outputs = around.ask(&graph, id, &ports.iter().collect::<Vec<_>>())?;
        Ok((outputs.iter().map(ToString::to_string).collect(), around.lints))
    }
}

impl Double {
    fn ask(&mut self, graph: &Graph, id: LayerId, inputs: &[&OutputPort]) -> Result<Outputs, Fault> {
        let layer = graph.layer(id).expect("the layer was added");
        let operation = layer.operation().expect("a known operation");
        let values = AttributeValues::checked(layer, operation)?;
        Subject { graph, layer, operation, values: &values, given: None }.infer(inputs, &mut [], self)
    }
}

impl Surroundings for Double {
    fn weights(&self) -> &Weights {
        &self.weights
    }

    fn bounds(&mut self, _: &Graph, tensor: Output) -> Option<Rc<Bounds>> {
        self.values.get(&tensor).cloned()
    }

    fn lint(&mut self, _: &Graph, _: LayerId, lint: &Fault) {
        self.lints.push(lint.message.to_string());
    }

    fn variables(&mut self) -> &mut HashMap<String, TensorType> {
        &mut self.variables
    }

    fn is_readable(&self, variable: &str) -> bool {
        self.variables.contains_key(variable)
    }

    fn iterations(&mut self, _: &Layer, _: usize) -> &mut Option<i64> {
        &mut self.iterations
    }
}

#[test]
fn a_rule_is_tested_alone() {
    let reshape = |data, target| {
        Case {
            operation: ("Reshape", "opset1"),
            attributes: &[("special_zero", "true")],
            inputs: &[(data, None), ("i64[2]", target)],
        }
        .infer()
    };
    let outputs = |answer: Result<(Vec<String>, Vec<String>), Fault>| answer.map(|answer| answer.0);
    assert_eq!(outputs(reshape("f16[2,3,4]", Some(&[0, -1]))).expect("it fits"), ["f16[2,12]"]);
    assert_eq!(outputs(reshape("f16[2,3,4]", None)).expect("nothing is known of it"), ["f16[?,?]"]);
    let refusal = outputs(reshape("f16[2,3,4]", Some(&[5, 5]))).expect_err("24 elements are not 25");
    assert_eq!(refusal.inputs.as_slice(), [0, 1]);
}
