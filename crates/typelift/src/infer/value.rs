//! Known values of small tensors, from which shapes are computed.
//!
//! As in OpenVINO, a known value is a pair of tensors with a lower and an upper bound for each element. An operation
//! is computed on the lower bounds and on the upper bounds of its inputs. A value is computed only when a rule needs
//! it, and only once. The whole model has a budget; values that exceed it are unknown. Small constants are not
//! counted. Each is read once for all layers that share its attributes.

use std::rc::Rc;

use smallvec::SmallVec;
use typelift_promote::ElementType;

use super::alignment::Alignments;
use crate::base::hash::HashMap;
use crate::model::graph::{AttributeList, Graph, Layer, LayerId, Output, OutputPort};
use crate::model::shape::Shape;
use crate::model::weights::Weights;
use crate::ops::evaluate::{Bounds, Evaluate, Evaluation};
use crate::ops::values::array::MAX_ELEMENTS;
use crate::ops::{self, Attributes, Fault, LayerKind, Operation};

/// Maximum number of input and output elements of all computations for one model.
pub(crate) const BUDGET: u64 = 1 << 22;

/// Values of one graph that are known so far.
#[derive(Default)]
pub(crate) struct Values {
    states: States,
    /// True if a value computed by a ConvertPromoteTypes was needed.
    pub(crate) lacks_promoted: bool,
    /// Errors of values that OpenVINO fails to compute.
    pub(crate) faults: Vec<(LayerId, Fault)>,
}

type States = HashMap<Output, State>;

/// State of an output's values.
enum State {
    Unknown,
    /// A ConvertPromoteTypes is among the producers; OpenVINO does not compute it.
    Withheld,
    /// All producers can be computed.
    Possible,
    Known(Rc<Bounds>),
}

type Feeds = SmallVec<[Output; 4]>;

struct SmallConstant {
    /// Keeps the attributes alive, so that no others get the same address.
    _attributes: AttributeList,
    element_type: ElementType,
    shape: Shape,
    bounds: Option<Rc<Bounds>>,
}

/// Method of computing values.
#[derive(Clone, Copy)]
enum Policy {
    /// Values as OpenVINO computes shapes: the largest number of a type means unlimited.
    Bounds,
    /// Values as every device computes them: the largest number of a type is an ordinary number, and random numbers are never known.
    Exact,
}

/// Computes known values, with one budget for the whole model.
pub(crate) struct Evaluator {
    policy: Policy,
    weights: Weights,
    /// Small constants, by the address of their attributes.
    constants: HashMap<*const (), SmallConstant>,
    /// Number of elements that may still be computed.
    budget: u64,
    /// True if consumers of a ConvertPromoteTypes that leaves integers unchanged read its operand.
    pub(super) is_past_promotions: bool,
}

impl Evaluator {
    pub(crate) fn new(weights: &Weights) -> Self {
        Self {
            policy: Policy::Bounds,
            weights: weights.clone(),
            constants: HashMap::default(),
            budget: BUDGET,
            is_past_promotions: false,
        }
    }

    /// An evaluator of the values that every device computes.
    pub(crate) fn exact(weights: &Weights) -> Self {
        Self { policy: Policy::Exact, ..Self::new(weights) }
    }

    pub(crate) fn weights(&self) -> &Weights {
        &self.weights
    }

    /// The bounds of a tensor's values, if they are known. Inputs are converted to the types in `alignments`. Walks
    /// back through the graph without recursion.
    pub(crate) fn bounds(
        &mut self,
        graph: &Graph,
        values: &mut Values,
        alignments: Option<&Alignments>,
        tensor: Output,
    ) -> Option<Rc<Bounds>> {
        let layer = graph.layer(tensor.layer)?;
        if let Some(port) = port_of_small_constant(layer) {
            return self.constant(graph, layer, port);
        }
        match values.states.get(&tensor) {
            Some(State::Known(bounds)) => return Some(bounds.clone()),
            Some(State::Unknown) => return None,
            Some(State::Withheld | State::Possible) | None => {}
        }
        values.lacks_promoted |= self.mark_possible(graph, &mut values.states, tensor);
        let mut pending = Feeds::from_elem(tensor, 1);
        while let Some(&next) = pending.last() {
            if !matches!(values.states.get(&next), Some(State::Possible)) {
                pending.pop();
                continue;
            }
            let (operation, feeds) = self.open(graph, next)?;
            let waiting = pending.len();
            let states = &values.states;
            pending
                .extend(feeds.iter().rev().copied().filter(|feed| matches!(states.get(feed), Some(State::Possible))));
            if pending.len() == waiting {
                self.find(graph, values, alignments, next, operation, &feeds);
                pending.pop();
            }
        }
        match values.states.get(&tensor) {
            Some(State::Known(bounds)) => Some(bounds.clone()),
            _ => None,
        }
    }

    fn constant(&mut self, graph: &Graph, layer: &Layer, port: &OutputPort) -> Option<Rc<Bounds>> {
        let read = || {
            let operation = layer.operation()?;
            let attributes = Attributes::new(layer, operation);
            let evaluation = Evaluation::new(attributes, graph, 0, &self.weights);
            operation.evaluate.apply(&evaluation, &[]).map(Rc::new)
        };
        let Some(place) = layer.attributes.shared_at() else { return read() };
        let is_same = |known: &&SmallConstant| known.element_type == port.element_type && known.shape == port.shape;
        if let Some(known) = self.constants.get(&place).filter(is_same) {
            return known.bounds.clone();
        }
        let bounds = read();
        let (element_type, shape) = (port.element_type, port.shape.clone());
        let known =
            SmallConstant { _attributes: layer.attributes.clone(), element_type, shape, bounds: bounds.clone() };
        self.constants.insert(place, known);
        bounds
    }

    /// Computes a tensor from the values of `feeds`, and stores the result.
    fn find(
        &mut self,
        graph: &Graph,
        values: &mut Values,
        alignments: Option<&Alignments>,
        tensor: Output,
        operation: &'static Operation,
        feeds: &[Output],
    ) {
        let known = feeds.iter().map(|feed| match values.states.get(feed) {
            Some(State::Known(bounds)) => Some(&**bounds),
            _ => None,
        });
        let known: Option<SmallVec<[&Bounds; 4]>> = known.collect();
        let aligned = alignments
            .and_then(|alignments| alignments.get(&tensor.layer))
            .map_or(&[][..], |alignment| &alignment.inputs);
        let faults = &mut values.faults;
        let found = known.and_then(|known| self.evaluate(graph, tensor, operation, &known, aligned, faults));
        values.states.insert(tensor, found.map_or(State::Unknown, |found| State::Known(Rc::new(found))));
    }

    /// Computes a tensor from the known inputs of its layer. Records an error if OpenVINO fails to compute it.
    fn evaluate(
        &mut self,
        graph: &Graph,
        tensor: Output,
        operation: &'static Operation,
        known: &[&Bounds],
        aligned: &[(usize, ElementType)],
        faults: &mut Vec<(LayerId, Fault)>,
    ) -> Option<Bounds> {
        let layer = graph.layer(tensor.layer)?;
        let converted = aligned.iter().map(|&(input, to)| Some((input, known.get(input)?.converted(to)?)));
        let converted = converted.collect::<Option<Vec<_>>>()?;
        let mut known = SmallVec::<[&Bounds; 4]>::from_slice(known);
        for (input, bounds) in &converted {
            known[*input] = bounds;
        }
        let inputs: u64 = known.iter().map(|bounds| bounds.lower.len() as u64).sum();
        let output = layer.outputs.get(tensor.port).and_then(|port| port.shape.element_count()).unwrap_or(0);
        self.budget = self.budget.checked_sub(inputs + output)?;
        let attributes = Attributes::new(layer, operation);
        let evaluation = Evaluation::new(attributes, graph, tensor.port, &self.weights);
        let found = match self.policy {
            Policy::Bounds => operation.evaluate.apply(&evaluation, &known),
            Policy::Exact if operation.is_repeatable() => operation.evaluate.exact_bounds(&evaluation, &known),
            Policy::Exact => None,
        };
        if let Some(fault) = evaluation.fault.into_inner() {
            faults.push((tensor.layer, *fault));
        }
        let count = found.as_ref().map_or(0, |bounds| bounds.lower.len() as u64);
        self.budget = self.budget.saturating_sub(count.saturating_sub(output));
        found
    }
}

pub(super) fn port_of_small_constant(layer: &Layer) -> Option<&OutputPort> {
    const FEW: u64 = 16;
    let port = layer.outputs.first().filter(|_| ops::is_constant(layer))?;
    port.shape.element_count().is_some_and(|count| count <= FEW).then_some(port)
}

impl Evaluator {
    /// Checks that all producers of an output can be computed. Constants are read only afterwards, because usually some
    /// producer is a Parameter. Returns true if a ConvertPromoteTypes is among them.
    fn mark_possible(&self, graph: &Graph, states: &mut States, output: Output) -> bool {
        let mut path = SmallVec::<[(Output, Feeds, usize); 4]>::new();
        let mut next = output;
        loop {
            let withheld = match states.get(&next) {
                None => match self.open(graph, next) {
                    Some((_, feeds)) => {
                        // A tensor of a cycle has no value.
                        states.insert(next, State::Unknown);
                        path.push((next, feeds, 0));
                        None
                    }
                    None => {
                        let layer = graph.layer(next.layer);
                        Some(layer.is_some_and(|layer| ops::kind(layer) == LayerKind::ConvertPromoteTypes))
                    }
                },
                Some(State::Unknown) => Some(false),
                Some(State::Withheld) => Some(true),
                Some(State::Possible | State::Known(_)) => None,
            };
            if let Some(withheld) = withheld {
                // Tensors that depend on it have no value either.
                let state = || if withheld { State::Withheld } else { State::Unknown };
                states.insert(next, state());
                states.extend(path.into_iter().map(|(tensor, ..)| (tensor, state())));
                return withheld;
            }
            next = loop {
                let Some((tensor, feeds, at)) = path.last_mut() else { return false };
                if let Some(&feed) = feeds.get(*at) {
                    *at += 1;
                    break feed;
                }
                states.insert(*tensor, State::Possible);
                path.pop();
            };
        }
    }

    /// The operation of an output that can be computed, and the tensors whose values it needs.
    fn open(&self, graph: &Graph, tensor: Output) -> Option<(&'static Operation, Feeds)> {
        let layer = graph.layer(tensor.layer)?;
        let port = layer.outputs.get(tensor.port)?;
        let operation = layer.operation()?;
        let is_source = match operation.evaluate {
            Evaluate::Never => return None,
            evaluate => matches!(evaluate, Evaluate::Source(_)),
        };
        if port.shape.element_count().is_some_and(|count| count > MAX_ELEMENTS as u64) {
            return None;
        }
        if is_source {
            return Some((operation, Feeds::new()));
        }
        let feeds = graph.feeds(tensor.layer).into_iter();
        let feeds = feeds.map(|feed| feed.map(|(layer, port)| self.read(graph, layer.id.output(port))));
        Some((operation, feeds.collect::<Option<_>>()?))
    }

    /// The tensor that the consumers of another one read.
    fn read(&self, graph: &Graph, mut tensor: Output) -> Output {
        while self.is_past_promotions && graph.layer(tensor.layer).is_some_and(ops::is_promotion) {
            let Some(operand) = graph.producer(tensor.layer.input(tensor.port)) else { break };
            let [from, to] = [operand, tensor].map(|it| graph.output(it).map(OutputPort::element_type));
            if from != to || !to.is_some_and(ElementType::is_integer) {
                break;
            }
            tensor = operand;
        }
        tensor
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use crate::infer;
    use crate::model::graph::{LayerId, Model};
    use crate::model::weights::Weights;

    /// Creates a model from layers `(type, attributes, inputs)`, numbered in order, each with one output, from opset3.
    fn model(layers: &[(&str, &str, &[usize])], weights: &[u8]) -> Model {
        let (mut text, mut edges) = (String::new(), String::new());
        for (id, (ty, attributes, inputs)) in layers.iter().enumerate() {
            write!(text, r#"<layer id="{id}" name="n{id}" type="{ty}" version="opset3"><data {attributes}/><input>"#)
                .unwrap();
            for (port, from) in inputs.iter().enumerate() {
                write!(text, r#"<port id="{port}"/>"#).unwrap();
                write!(edges, r#"<edge from-layer="{from}" from-port="9" to-layer="{id}" to-port="{port}"/>"#).unwrap();
            }
            text += r#"</input><output><port id="9" precision="UNSPECIFIED"/></output></layer>"#;
        }
        let text = format!(r#"<net name="n" version="11"><layers>{text}</layers><edges>{edges}</edges></net>"#);
        let mut model = Model::from_xml(text).unwrap();
        model.weights = Weights::from_bytes(weights);
        model
    }

    fn shape(model: &Model, id: usize) -> String {
        model.graph.layer(LayerId(id as u64)).unwrap().outputs()[0].shape().to_string()
    }

    const SCALAR: (&str, &str, &[usize]) = ("Parameter", r#"shape="" element_type="f32""#, &[]);

    #[test]
    fn chains_of_any_length_are_evaluated_without_recursion() {
        let mut layers = vec![SCALAR, ("Const", r#"element_type="i8" shape="1" offset="0" size="1""#, &[])];
        let links: Vec<[usize; 1]> = (1..30_000).map(|link| [link]).collect();
        layers.extend(links.iter().map(|link| ("Abs", "", &link[..])));
        layers[2] = ("Convert", r#"destination_type="i64""#, &[1]);
        let target = [0, layers.len() - 1];
        layers.push(("Broadcast", "", &target));
        let mut model = model(&layers, &[7]);
        assert_eq!(infer(&mut model), []);
        assert_eq!(shape(&model, target[1] + 1), "[7]");
    }

    #[test]
    fn a_model_cannot_ask_for_more_than_a_budget_of_values() {
        let mut layers = vec![
            SCALAR,
            ("Const", r#"element_type="i8" shape="512, 512" offset="0" size="262144""#, &[]),
            ("Convert", r#"destination_type="i64""#, &[1]),
            ("Const", r#"element_type="i8" shape="1" offset="262144" size="1""#, &[]),
        ];
        let asked: Vec<[usize; 2]> = (0..40).flat_map(|ask| [[2, 3], [0, 4 + ask * 2]]).collect();
        for inputs in asked.chunks(2) {
            layers.push(("ReduceMax", "", &inputs[0]));
            layers.push(("Broadcast", "", &inputs[1]));
        }
        let mut weights = vec![5; 1 << 18];
        weights.push(0);
        let mut model = model(&layers, &weights);
        assert_eq!(infer(&mut model), []);
        assert!(shape(&model, 5).starts_with("[5,5,"), "{}", shape(&model, 5));
        assert!(shape(&model, layers.len() - 1).starts_with("[?,?,"));
    }

    #[test]
    fn what_is_too_large_to_be_a_shape_has_no_values() {
        let mut layers = vec![SCALAR, ("Const", r#"element_type="i64" shape="2" offset="0" size="16""#, &[])];
        let doubled: Vec<[usize; 2]> = (1..60).map(|link| [link, link]).collect();
        layers.extend(doubled.iter().map(|link| ("Concat", r#"axis="0""#, &link[..])));
        let target = [0, layers.len() - 1];
        layers.push(("Broadcast", "", &target));
        let mut model = model(&layers, &[1; 16]);
        assert_eq!(infer(&mut model), []);
        assert_eq!(shape(&model, target[1] + 1), "[...]");
    }

    #[test]
    fn layers_that_are_alike_differ_by_the_constants_that_they_read() {
        let constant = |offset| format!(r#"element_type="i64" shape="2" offset="{offset}" size="16""#);
        let (first, second) = (constant(0), constant(16));
        let reshape = ("Reshape", r#"special_zero="false""#);
        let layers: &[(&str, &str, &[usize])] = &[
            ("Parameter", r#"shape="2,3" element_type="f32""#, &[]),
            ("Const", &first, &[]),
            ("Const", &second, &[]),
            ("Const", &first, &[]),
            ("Const", &second, &[]),
            (reshape.0, reshape.1, &[0, 1]),
            (reshape.0, reshape.1, &[0, 2]),
            (reshape.0, reshape.1, &[0, 3]),
            (reshape.0, reshape.1, &[0, 4]),
            (reshape.0, reshape.1, &[5, 2]),
        ];
        let weights: Vec<u8> = [3_i64, 2, 6, 1].into_iter().flat_map(i64::to_le_bytes).collect();
        let mut model = model(layers, &weights);
        assert_eq!(infer(&mut model), []);
        let shapes: Vec<_> = (5..10).map(|id| shape(&model, id)).collect();
        assert_eq!(shapes, ["[3,2]", "[6,1]", "[3,2]", "[6,1]", "[6,1]"]);
    }

    #[test]
    fn what_is_odd_about_layers_that_are_alike_is_said_of_each() {
        let constant = ("Const", r#"element_type="i64" shape="1" offset="0" size="16""#, &[][..]);
        let mut model = model(&[constant; 3], &[0; 16]);
        assert_eq!(infer(&mut model).len(), 3);
    }

    #[test]
    fn an_integer_divided_by_zero_is_one_error_and_is_where_it_happens() {
        let layers: &[(&str, &str, &[usize])] = &[
            SCALAR,
            ("Parameter", r#"shape="2..7" element_type="f32""#, &[]),
            ("ShapeOf", r#"output_type="i64""#, &[1]),
            ("Const", r#"element_type="i64" shape="1" offset="0" size="8""#, &[]),
            ("Divide", "", &[2, 3]),
            ("Broadcast", "", &[0, 4]),
            ("Broadcast", "", &[0, 4]),
            ("Result", "", &[5]),
            ("Result", "", &[6]),
        ];
        let mut model = model(layers, &[0; 8]);
        let diagnostics = infer(&mut model);
        let [diagnostic] = &diagnostics[..] else { panic!("{diagnostics:?}") };
        assert!(diagnostic.is_error());
        assert_eq!(diagnostic.layer.as_ref().map(|layer| layer.name.as_str()), Some("n4"));
    }
}
