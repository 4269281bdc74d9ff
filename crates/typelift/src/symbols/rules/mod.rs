//! Dimensions of outputs and constraints, by operation.
//!
//! A rule describes lengths that inference accepts; ranks, types and attributes were checked by inference. An operation
//! without a rule is asked by its rule of inference which lengths of its inputs it passes on.

mod body;
mod join;
mod movement;
mod network;
mod values;

use std::rc::Rc;

use smallvec::SmallVec;

use super::expression::{Arena, Expr};
use super::walk::{Dims, Length, Tensor, Value, Walk, reason};
use super::{Noticed, Reads, Reason};
use crate::base::hash::HashMap;
use crate::infer::Probe;
use crate::model::graph::{Graph, Layer, LayerMap, Output, OutputPort, Start};
use crate::model::shape::{Dim as Interval, Shape};
use crate::ops::common::normalize_axis;
use crate::ops::{self, AttributeValues, Attributes, LayerKind, Operation, Subject};

/// A layer whose dimensions are wanted.
pub(super) struct Rule<'w, 'm> {
    pub(super) walk: &'w mut Walk<'m>,
    pub(super) graph: &'w Graph,
    pub(super) layer: &'w Layer,
    pub(super) operation: &'static Operation,
    pub(super) attributes: Attributes<'w>,
    pub(super) inputs: SmallVec<[Tensor; 4]>,
    /// The dimensions of the outputs; `None` if the rank is unknown.
    pub(super) outputs: Vec<Option<Dims>>,
    /// Largest value of the second output.
    pub(super) last_of_second: Length,
}

/// Visits the layers of a graph whose Parameters are known.
pub(super) fn visit(walk: &mut Walk, graph: &Graph) {
    let Ok(order) = graph.topological_order() else { return };
    let (read, is_silent) = (read_layers(graph), walk.is_silent);
    for id in order {
        walk.is_silent = is_silent || read.get(id).is_none();
        let Some(layer) = graph.layer(id) else { continue };
        let Some(operation) = layer.operation() else {
            walk.keep_inferred(layer);
            continue;
        };
        match ops::kind(layer) {
            LayerKind::Parameter | LayerKind::ReadValue if walk.tensors.contains_key(&id.output(0)) => {}
            LayerKind::Parameter | LayerKind::Constant => walk.keep_inferred(layer),
            _ => visit_layer(walk, graph, layer, operation),
        }
    }
    walk.is_silent = is_silent;
}

/// The layers on which a Result or an Assign depends. OpenVINO drops the others, so they demand nothing.
fn read_layers(graph: &Graph) -> LayerMap<()> {
    let sinks = graph.unordered().filter(|layer| layer.start().is_some_and(|start| start != Start::Parameter));
    let mut read = LayerMap::new(graph);
    graph.mark_upstream(sinks.map(Layer::id), &mut read);
    read
}

fn visit_layer(walk: &mut Walk, graph: &Graph, layer: &Layer, operation: &'static Operation) {
    let feeds = graph.feeds(layer.id());
    let mut inputs: SmallVec<[Tensor; 4]> = SmallVec::new();
    for feed in &feeds {
        let output = feed.map(|(layer, port)| layer.id().output(port));
        let tensor = output.and_then(|output| walk.tensors.get(&output).cloned()).unwrap_or_default();
        inputs.push(walk.resolved_tensor(tensor));
    }
    // Without an open length or a value that depends on one, inference knows all.
    let is_open = inputs.iter().any(|tensor| {
        tensor.value.is_some()
            || tensor.last.is_some()
            || tensor.dims.as_ref().is_none_or(|dims| dims.iter().any(|dim| !walk.is_number(*dim)))
    }) || layer.outputs().iter().any(|port| !port.shape().is_static());
    // An index may leave a table whose lengths are all known.
    let is_gather = operation.name == "Gather";
    if layer.bodies().is_empty() && !is_gather && !is_open {
        return walk.keep_inferred(layer);
    }
    let attributes = Attributes::new(layer, operation);
    let mut cx = Rule { walk, graph, layer, operation, attributes, inputs, outputs: Vec::new(), last_of_second: None };
    apply(&mut cx);
    let value = cx.value_of_output();
    let last = cx.last_of_output();
    let last_of_second = cx.last_of_second;
    let outputs = std::mem::take(&mut cx.outputs);
    let mut outputs = outputs.into_iter();
    for port in 0..layer.outputs().len() {
        let value = value.clone().filter(|_| port == 0);
        let last = if port == 0 { last } else { last_of_second.filter(|_| port == 1) };
        walk.store(layer, port, outputs.next().flatten(), value, last);
    }
    if layer.outputs().len() > 1 && matches!(operation.name, "Split" | "VariadicSplit") {
        split_values(walk, graph, layer, operation);
    }
}

fn split_values(walk: &mut Walk, graph: &Graph, layer: &Layer, operation: &'static Operation) {
    for port in 0..layer.outputs().len() {
        let attributes = Attributes::new(layer, operation);
        let feeds = graph.feeds(layer.id());
        let inputs = feeds.iter().map(|feed| {
            let output = feed.map(|(layer, port)| layer.id().output(port));
            output.and_then(|output| walk.tensors.get(&output).cloned()).unwrap_or_default()
        });
        let inputs = inputs.collect();
        let mut cx =
            Rule { walk, graph, layer, operation, attributes, inputs, outputs: Vec::new(), last_of_second: None };
        let value = cx.moved_value(port);
        if let (Some(value), Some(tensor)) = (value, walk.tensors.get_mut(&layer.id().output(port))) {
            tensor.value = Some(Rc::new(value));
        }
    }
}

/// Finds the dimensions of a layer's outputs and records its constraints.
fn apply(rule: &mut Rule) {
    let found = match rule.operation.name {
        "ConvertPromoteTypes" => join::elementwise(rule),
        "Select" => join::select(rule),
        "MatMul" => join::matmul(rule),
        "Einsum" => join::einsum(rule),
        "Concat" => join::concat(rule),
        "ScaledDotProductAttention" => join::attention(rule),
        "PRelu" => join::prelu(rule),
        "FakeQuantize" | "FakeConvert" => rule.pass_on(),
        "Relu" | "Sigmoid" | "Tanh" | "Gelu" | "Swish" | "Convert" | "ConvertLike" | "Softmax" | "LogSoftmax"
        | "MVN" | "CumSum" | "Exp" | "Log" | "Sqrt" | "Sin" | "Cos" | "Abs" | "Negative" | "Floor" | "Ceiling"
        | "Clamp" | "Erf" | "HSwish" | "HSigmoid" | "SoftPlus" | "Elu" | "Mish" | "LogicalNot" | "BitwiseNot"
        | "Sign" | "Round" | "Result" | "Assign" | "Identity" | "NormalizeL2" | "LRN" | "Selu" | "IsInf" | "IsNaN"
        | "IsFinite" => rule.pass_on(),
        "GroupNormalization" => network::group_normalization(rule),
        "BatchNormInference" => network::batch_normalization(rule),
        "Reshape" => movement::reshape(rule),
        "Squeeze" => movement::squeeze(rule),
        "Unsqueeze" => movement::unsqueeze(rule),
        "Transpose" => movement::transpose(rule),
        "Split" => movement::split(rule),
        "VariadicSplit" => movement::variadic_split(rule),
        "Slice" => movement::slice(rule),
        "StridedSlice" => movement::strided_slice(rule),
        "Pad" => movement::pad(rule),
        "Gather" => movement::gather(rule),
        "GatherElements" => movement::gather_elements(rule),
        "GatherND" => movement::gather_nd(rule),
        "ScatterNDUpdate" => movement::scatter_nd(rule),
        "ScatterElementsUpdate" => movement::scatter_elements(rule),
        "ScatterUpdate" => movement::scatter(rule),
        "Broadcast" => movement::broadcast(rule),
        "Tile" => movement::tile(rule),
        "Range" => movement::range(rule),
        "TopK" => movement::top_k(rule),
        "OneHot" => movement::one_hot(rule),
        "DepthToSpace" | "SpaceToDepth" => movement::depth_and_space(rule),
        "BatchToSpace" | "SpaceToBatch" => movement::batch_and_space(rule),
        "ShuffleChannels" => movement::shuffle_channels(rule),
        "NonZero" => movement::non_zero(rule),
        "RandomUniform" => rule.values(0).and_then(|dims| rule.put(dims.into_iter().collect())),
        "Eye" => movement::eye(rule),
        "Convolution" | "GroupConvolution" | "BinaryConvolution" => network::convolution(rule),
        "ConvolutionBackpropData" | "GroupConvolutionBackpropData" => network::deconvolution(rule),
        "MaxPool" | "AvgPool" => network::pool(rule),
        "AdaptiveAvgPool" | "AdaptiveMaxPool" => network::adaptive_pool(rule),
        "Interpolate" => network::interpolate(rule),
        "ReduceSum" | "ReduceMean" | "ReduceMax" | "ReduceMin" | "ReduceProd" | "ReduceL1" | "ReduceL2"
        | "ReduceLogicalAnd" | "ReduceLogicalOr" => movement::reduce(rule),
        "LSTMSequence" | "GRUSequence" | "RNNSequence" | "LSTMCell" | "GRUCell" | "RNNCell" => network::recurrent(rule),
        "NonMaxSuppression" | "NMSRotated" => network::suppression(rule),
        "ROIAlign" | "ROIAlignRotated" => network::roi_align(rule),
        "GridSample" => network::grid_sample(rule),
        "ReverseSequence" => {
            let _ = network::reverse_sequence(rule);
            rule.pass_on()
        }
        "RDFT" => network::real_transform(rule),
        "Col2Im" => network::blocks_to_image(rule),
        "IRDFT" => network::real_inverse(rule),
        "STFT" => network::frames(rule),
        "If" => body::branches(rule),
        "Loop" => body::looped(rule),
        "TensorIterator" => body::iterated(rule),
        // The initial value is that of the first inference alone.
        "ReadValue" => Some(()),
        _ if rule.operation.attribute("auto_broadcast").is_some() => join::elementwise(rule),
        _ => None,
    };
    if found.is_none() {
        rule.outputs.clear();
        if rule.layer.bodies().is_empty() {
            probe(rule);
        }
    }
}

impl<'w, 'm> Rule<'w, 'm> {
    pub(super) fn arena(&mut self) -> &mut Arena {
        &mut self.walk.arena
    }

    pub(super) fn number(&mut self, number: i64) -> Expr {
        self.walk.arena.number(number)
    }

    pub(super) fn dims(&self, input: usize) -> Option<Dims> {
        self.inputs.get(input)?.dims.as_deref().cloned()
    }

    pub(super) fn dim(&self, input: usize, axis: usize) -> Length {
        self.inputs.get(input)?.dims.as_ref()?.get(axis).copied().flatten()
    }

    pub(super) fn output(&self, input: usize) -> Option<Output> {
        self.graph.producer(self.layer.id().input(input))
    }

    pub(super) fn input_value(&mut self, input: usize) -> Option<Value> {
        match self.inputs.get(input)?.value.clone() {
            Some(value) => Some((*value).clone()),
            None => {
                let output = self.output(input)?;
                self.walk.value(self.graph, output)
            }
        }
    }

    pub(super) fn values(&mut self, input: usize) -> Option<Vec<Length>> {
        let value = self.input_value(input)?;
        Some(value.items.iter().map(|item| item.and_then(|(expr, by)| (by == 1).then_some(expr))).collect())
    }

    pub(super) fn ints(&mut self, input: usize) -> Option<Vec<i64>> {
        let values = self.values(input)?;
        values.into_iter().map(|value| self.walk.arena.value(value?)).collect()
    }

    pub(super) fn single(&mut self, input: usize) -> Length {
        match self.values(input)?[..] {
            [value] => value,
            _ => None,
        }
    }

    pub(super) fn axis(&self, axis: i64, rank: usize) -> Option<usize> {
        normalize_axis(axis, rank).filter(|&axis| axis < rank)
    }

    fn pass_on(&mut self) -> Option<()> {
        let dims = self.dims(0)?;
        self.outputs.push(Some(dims));
        Some(())
    }

    pub(super) fn put(&mut self, dims: Dims) -> Option<()> {
        self.outputs.push(Some(dims));
        Some(())
    }

    /// Records what lengths must satisfy. The input names what the reason is read from.
    pub(super) fn demand(&mut self, test: Length, at: Noticed, input: usize) {
        self.demand_with(test, at, input, None);
    }

    /// Records what lengths must satisfy, and what is read otherwise from which table.
    pub(super) fn demand_with(
        &mut self,
        test: Length,
        at: Noticed,
        input: usize,
        left: Option<(Reads, Option<Reason>)>,
    ) {
        let (graph, layer) = (self.graph, self.layer);
        self.walk.demand(test, at, |walk| walk.reasons(graph, layer, input), left);
    }

    /// The constant from which an input is computed by operations on constants alone, such as decompression.
    pub(super) fn stored(&self, input: usize) -> Option<&'w Layer> {
        const MOST: usize = 6;
        let mut layer = self.graph.layer(self.output(input)?.layer)?;
        for _ in 0..MOST {
            if ops::is_constant(layer) {
                return Some(layer);
            }
            let feeds = self.graph.feeds(layer.id());
            for feed in feeds.iter().skip(1) {
                feed.filter(|(feed, _)| ops::is_constant(feed) || feed.ty() == "Convert")?;
            }
            (layer, _) = feeds.first().copied().flatten()?;
        }
        None
    }

    /// The table of a Gather whose indices are computed.
    pub(super) fn table(&self) -> Option<Reason> {
        let table = self.stored(0).filter(|_| self.stored(1).is_none())?;
        Some(reason(&self.walk.place, table))
    }

    /// Demands that two lengths are equal, and returns the one of which more is known.
    pub(super) fn same(&mut self, a: Length, b: Length, at: Noticed, input: usize) -> Length {
        self.same_with(a, b, at, input, None)
    }

    /// Demands that two lengths are equal, as [`same`](Self::same) does, and says what is read otherwise.
    pub(super) fn same_with(
        &mut self,
        a: Length,
        b: Length,
        at: Noticed,
        input: usize,
        left: Option<(Reads, Option<Reason>)>,
    ) -> Length {
        let (Some(one), Some(other)) = (a, b) else { return a.or(b) };
        let test = self.arena().equal(one, other);
        self.demand_with(test, at, input, left);
        let (left, right) = (self.walk.resolve(a)?, self.walk.resolve(b)?);
        Some(if self.walk.arena.value(right).is_some() { right } else { left })
    }

    /// Demands that the dimensions on these axes of inputs are equal.
    pub(super) fn same_axes(&mut self, axes: &[(usize, usize)]) -> Length {
        let mut common = None;
        for &(input, axis) in axes {
            let dim = self.dim(input, axis);
            common = self.same(common, dim, Noticed::Load, input);
        }
        common
    }

    /// Demands that two lengths broadcast to each other, and returns the result.
    pub(super) fn broadcast_length(&mut self, a: Length, b: Length, input: usize) -> Length {
        let (Some(left), Some(right)) = (a, b) else {
            // A fixed length other than 1 is that of the result.
            let known = a.or(b)?;
            return self.walk.arena.value(known).filter(|&number| number != 1).map(|_| known);
        };
        let test = self.arena().broadcasts(left, right);
        self.demand(test, Noticed::Load, input);
        self.arena().broadcast(left, right)
    }

    /// Demands that dimensions broadcast to each other, aligned at the last axis, and returns the result.
    pub(super) fn broadcast_dims(&mut self, a: &[Length], b: &[Length], input: usize) -> Dims {
        let (longer, shorter) = if a.len() >= b.len() { (a, b) } else { (b, a) };
        let start = longer.len() - shorter.len();
        let mut dims = Dims::from_slice(longer);
        for (axis, &other) in shorter.iter().enumerate() {
            dims[start + axis] = self.broadcast_length(dims[start + axis], other, input);
        }
        dims
    }

    /// Demands that a length is a multiple of another one, and returns the quotient.
    pub(super) fn divided(&mut self, length: Expr, by: Expr, input: usize) -> Length {
        let test = self.arena().divides(length, by);
        self.demand(test, Noticed::Load, input);
        self.arena().div(length, by)
    }

    pub(super) fn sum(&mut self, lengths: impl IntoIterator<Item = Length>) -> Length {
        let zero = self.number(0);
        lengths.into_iter().try_fold(zero, |sum, length| self.walk.arena.add(sum, length?))
    }

    pub(super) fn product(&mut self, lengths: impl IntoIterator<Item = Length>) -> Length {
        let factors: Option<Vec<Expr>> = lengths.into_iter().collect();
        self.arena().product(factors?)
    }
}

/// Applies the rule of inference to inputs whose open lengths have different lower bounds. A length of an output that
/// has one of these bounds is the length of that input.
fn probe(rule: &mut Rule) -> Option<()> {
    const FIRST: i64 = 1 << 40;
    let mut marks: HashMap<i64, Expr> = HashMap::default();
    let mut marked: HashMap<Expr, i64> = HashMap::default();
    let mut ports: SmallVec<[OutputPort; 4]> = SmallVec::new();
    for (input, tensor) in rule.inputs.iter().enumerate() {
        let output = rule.graph.producer(rule.layer.id().input(input))?;
        let port = rule.graph.output(output)?;
        let mut port = OutputPort::new(port.element_type(), port.shape().clone());
        if let Some(dims) = &tensor.dims {
            let lengths = dims.iter().map(|dim| match dim {
                Some(dim) => rule.walk.arena.value(*dim).map_or_else(
                    || {
                        let mark = FIRST + (marked.len() as i64 + 1) * 1_000_003;
                        let mark = *marked.entry(*dim).or_insert(mark);
                        marks.insert(mark, *dim);
                        Interval::at_least(mark)
                    },
                    Interval::fixed,
                ),
                None => Interval::ANY,
            });
            port.shape = lengths.collect::<Shape>();
        }
        ports.push(port);
    }
    let values = AttributeValues::of(rule.layer, rule.operation);
    let (graph, layer, operation) = (rule.graph, rule.layer, rule.operation);
    let subject = Subject { graph, layer, operation, values: &values, given: None };
    let ports: SmallVec<[&OutputPort; 4]> = ports.iter().collect();
    let mut probe = rule.walk.probe.take().unwrap_or_else(|| Probe::new(rule.walk.evaluator.weights()));
    let outputs = probe.ask(&subject, &ports);
    rule.walk.probe = Some(probe);
    let outputs = outputs.ok()?;
    let found = outputs.iter().map(|output| {
        let lengths = output.shape.dims()?.iter().map(|dim| match dim.value() {
            Some(number) => Some(rule.walk.arena.number(number)),
            None => marks.get(&dim.lower()).copied().filter(|_| dim.upper().is_none()),
        });
        Some(lengths.collect())
    });
    rule.outputs = found.collect();
    Some(())
}
