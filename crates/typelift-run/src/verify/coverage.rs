//! Layers that the inputs of a comparison cannot test, because a change there would not show in the outputs.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::Tensor;
use foldhash::{HashMap, HashSet};
use typelift::explain::map::{Role, roles};
use typelift::explain::{Change, ChangeKind};
use typelift::findings::LayerRef;
use typelift::graph::{Direction, Place};
use typelift::ops::{self, LayerKind};
use typelift::shape::{Dim, Shape};
use typelift::{Graph, Input, Layer, LayerId, Model, Output, Weights};

/// Share of the largest value below which values count as equal.
const NOISE: f64 = 1e-7;
/// Number of steps from which on a loop is ended by its condition.
const MANY_STEPS: f64 = 65536.0;
/// Distance to the end of its range at which a value is saturated.
const SATURATED: f64 = 1e-5;

/// A layer that the inputs could not test.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct NotTested {
    /// The layer.
    pub layer: LayerRef,
    /// Why a change of the layer would not show.
    pub reason: String,
}

/// Layers with the axis along which each mixes values, and has only one.
pub(super) type Short = BTreeMap<(Place, LayerId), String>;

/// The layers of a model with fixed shapes that mix values along an axis with fewer elements than `least`, which
/// `open` allows to be longer. Both models have the same layers.
pub(super) fn short(fixed: &Model, open: &Model, least: i64) -> Short {
    let mut found = Short::new();
    for (place, graph) in fixed.walk() {
        let Some(declared) = open.graph_at(&place) else { continue };
        for layer in graph.layers() {
            if let Some((_, axis)) = mixed(graph, layer, fixed.weights()).into_iter().find(|&(input, axis)| {
                let dim = length(graph, layer.id(), input, axis);
                dim.is_some_and(|dim| dim.is_fixed() && dim.lower() < least)
                    && length(declared, layer.id(), input, axis) != dim
            }) {
                let name = place.path_to(layer.name());
                let reason = match ops::kind(layer) {
                    LayerKind::Loop | LayerKind::TensorIterator => format!("`{name}` ran one step"),
                    _ => format!("`{name}` saw one element along axis {axis}"),
                };
                found.insert((place.clone(), layer.id()), reason);
            }
        }
    }
    found
}

pub(super) fn mixing(model: &Model) -> Vec<(Output, i64)> {
    let graph = model.graph();
    let found = graph.layers().flat_map(|layer| {
        let id = layer.id();
        mixed(graph, layer, model.weights())
            .into_iter()
            .filter_map(move |(input, axis)| Some((graph.producer(id.input(input))?, axis)))
            .collect::<Vec<_>>()
    });
    found.collect()
}

/// The length of an axis of an input; `None` if the shape does not have it.
pub(super) fn length(graph: &Graph, layer: LayerId, input: usize, axis: i64) -> Option<Dim> {
    let shape: &Shape = graph.output(graph.producer(layer.input(input))?)?.shape();
    let dims = shape.dims()?;
    let axis = if axis < 0 { axis + dims.len() as i64 } else { axis };
    dims.get(usize::try_from(axis).ok()?).copied()
}

/// The axes along which a layer combines values, each with the input that has it.
fn mixed(graph: &Graph, layer: &Layer, weights: &Weights) -> Vec<(usize, i64)> {
    let Some(operation) = layer.operation() else { return Vec::new() };
    let attribute = |name: &str| {
        let text = layer.attribute(name).or_else(|| operation.default_of(name));
        text.and_then(|text| text.trim().parse().ok()).unwrap_or(0)
    };
    let source = |input: usize| graph.producer(layer.id().input(input));
    // Without an input for them, all axes from the third on are meant.
    let rank = source(0).and_then(|source| graph.output(source)).and_then(|port| port.shape().rank()).unwrap_or(0);
    let spatial = || (2..rank as i64).map(|axis| (0, axis)).collect::<Vec<_>>();
    let axes = |input: usize| {
        let Some(axes) = source(input).and_then(|source| graph.layer(source.layer)) else { return spatial() };
        axes.numbers(weights).unwrap_or_default().into_iter().map(|axis| (0, axis as i64)).collect()
    };
    match operation.name {
        "Softmax" | "LogSoftmax" | "TopK" => vec![(0, attribute("axis"))],
        "MatMul" => vec![(0, if layer.attribute("transpose_a") == Some("true") { -2 } else { -1 })],
        "Einsum" => contracted(layer.attribute("equation").unwrap_or_default()),
        "ScaledDotProductAttention" => vec![(1, -2)],
        "LSTMSequence" | "GRUSequence" | "RNNSequence" | "CTCGreedyDecoderSeqLen" | "CTCLoss" => vec![(0, 1)],
        "CTCGreedyDecoder" => vec![(0, 0)],
        "NonMaxSuppression" | "MatrixNms" | "MulticlassNms" => vec![(0, 1)],
        "ReverseSequence" => vec![(0, attribute("seq_axis"))],
        "Concat" => (0..graph.producers(layer.id()).len()).map(|input| (input, attribute("axis"))).collect(),
        "Convolution"
        | "GroupConvolution"
        | "BinaryConvolution"
        | "DeformableConvolution"
        | "ConvolutionBackpropData"
        | "GroupConvolutionBackpropData"
        | "MaxPool"
        | "AvgPool"
        | "AdaptiveAvgPool"
        | "AdaptiveMaxPool"
        | "GroupNormalization"
        | "GridSample"
        | "ROIAlign" => spatial(),
        "MVN" | "NormalizeL2" | "LRN" | "CumSum" | "Reverse" | "DFT" | "IDFT" | "RDFT" | "IRDFT" => axes(1),
        "Roll" => axes(2),
        "Interpolate" => axes(if operation.revision < 11 { 3 } else { 2 }),
        name if name.starts_with("Reduce") => axes(1),
        "Loop" | "TensorIterator" => sliced(layer),
        _ => Vec::new(),
    }
}

fn contracted(equation: &str) -> Vec<(usize, i64)> {
    let Some((inputs, result)) = equation.split_once("->") else { return Vec::new() };
    let found = inputs.split(',').enumerate().flat_map(|(input, labels)| {
        // Labels after an ellipsis are counted from the end.
        let (before, after) = labels.trim().split_once("...").unwrap_or((labels.trim(), ""));
        let count = after.len() as i64;
        let places = before.chars().zip(0..).chain(after.chars().zip(-count..0));
        places.filter(|(label, _)| !result.contains(*label)).map(move |(_, axis)| (input, axis)).collect::<Vec<_>>()
    });
    found.collect()
}

fn sliced(layer: &Layer) -> Vec<(usize, i64)> {
    let entries =
        layer.bodies().iter().flat_map(|body| &body.port_map).filter(|entry| entry.direction == Direction::Input);
    entries.filter_map(|entry| Some((usize::try_from(entry.external_port_id).ok()?, entry.axis?))).collect()
}

/// Smallest and largest value of a tensor in all samples.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spread {
    least: f64,
    most: f64,
    /// True if every value is close to -1, 0 or 1.
    is_saturated: bool,
}

impl Spread {
    /// The spread of a tensor; `None` if it has no numbers.
    pub(super) fn of(tensor: &Tensor) -> Option<Self> {
        let found =
            tensor.floats()?.into_iter().map(|value| Self { least: value, most: value, is_saturated: is_end(value) });
        found.reduce(Self::and)
    }

    /// Combines two spreads. A value that is not a number makes them varied.
    pub(super) fn and(self, other: Self) -> Self {
        let is_number = !(self.least.is_nan() || other.least.is_nan());
        let (least, most) = (self.least.min(other.least), self.most.max(other.most));
        let (least, most) = if is_number { (least, most) } else { (f64::NEG_INFINITY, f64::INFINITY) };
        Self { least, most, is_saturated: self.is_saturated && other.is_saturated }
    }

    fn is_constant(self) -> bool {
        let width = self.most - self.least;
        self.least == self.most || width.is_finite() && width <= NOISE * self.most.abs().max(self.least.abs())
    }
}

/// True if a value is so close to -1, 0 or 1 that it hardly depends on what a saturating operation got.
fn is_end(value: f64) -> bool {
    [0.0, 1.0].iter().any(|end| (value.abs() - end).abs() < SATURATED)
}

/// Operations whose values end at -1, 0 or 1.
const SATURATING: [&str; 6] = ["Softmax", "Sigmoid", "Tanh", "Erf", "HardSigmoid", "SoftSign"];

/// The layers of a model that were not tested, and the number of all layers that can be. `short` has those that were
/// short in all samples, `spreads` the values of tensors of the model's own graph, and `ends` the Results that were not
/// compared, with the reason.
pub(super) fn not_tested(
    model: &Model,
    spreads: &HashMap<Output, Spread>,
    short: &Short,
    ends: HashMap<LayerId, String>,
) -> (Vec<NotTested>, usize) {
    let graph = model.graph();
    let hidden = Hidden::of(graph, spreads, short, ends);
    let endings = endings(model);
    let (mut found, mut total) = (Vec::new(), 0);
    for (place, graph) in model.walk() {
        let roles = roles(graph);
        let outer = hidden.around(model, &place, spreads);
        for layer in graph.layers().filter(|layer| is_computed(layer) && roles.get(layer.id()) == Some(&Role::Data)) {
            if place.is_model() && !hidden.is_needed.contains(&layer.id()) {
                continue;
            }
            total += 1;
            let key = (place.clone(), layer.id());
            let own = if place.is_model() { hidden.reasons.get(&layer.id()) } else { None };
            if let Some(reason) = short.get(&key).or(outer.as_ref()).or(own).or(endings.get(&key)) {
                found.push(NotTested { layer: LayerRef::of(&place, layer), reason: reason.clone() });
            }
        }
    }
    (found, total)
}

/// True if values in a body may end a loop before its last step, or choose a branch.
pub(super) fn may_end(model: &Model) -> bool {
    endings(model).into_keys().any(|(place, id)| {
        let graph = model.graph_at(&place);
        graph.is_some_and(|graph| graph.layer(id).is_some_and(is_computed) && roles(graph).get(id) == Some(&Role::Data))
    })
}

/// The layers of bodies that only decide which branch of an If runs, or if a loop with a given number of steps ends before.
fn endings(model: &Model) -> Short {
    let mut found = Short::new();
    for (place, graph) in model.walk() {
        let Some((&(owner, at), outer)) = place.steps().split_last() else { continue };
        let outer = outer.iter().try_fold(model.graph(), |graph, &(owner, at)| {
            graph.layer(owner).and_then(|layer| layer.bodies().get(at)).map(|body| &body.graph)
        });
        let Some((outer, layer)) = outer.and_then(|outer| Some((outer, outer.layer(owner)?))) else { continue };
        let steps = outer.producer(owner.input(0)).and_then(|steps| outer.layer(steps.layer)?.numbers(model.weights()));
        let is_ended = steps.is_some_and(|steps| steps.iter().any(|steps| !(0.0..MANY_STEPS).contains(steps)));
        let may_end = ops::kind(layer) == LayerKind::Loop && !is_ended;
        let body = &layer.bodies()[at];
        let is_read = |id: LayerId| {
            body.port_map.iter().any(|entry| entry.internal_layer_id == id && entry.external_port_id >= 0)
                || body.back_edges.iter().any(|edge| edge.from == id)
        };
        for inner in graph.topological_order().unwrap_or_default().into_iter().rev().filter_map(|id| graph.layer(id)) {
            let key = |id: LayerId| (place.clone(), id);
            let id = inner.id();
            let reason = if ops::kind(inner) == LayerKind::Result {
                let is_end = may_end && !is_read(id);
                is_end.then(|| format!("it only says if `{}` ends before its last step", layer.name()))
            } else {
                let users = (0..inner.outputs().len()).flat_map(|port| graph.consumers(id.output(port)));
                let reasons = users.map(|input| {
                    let user = graph.layer(input.layer)?;
                    match ops::kind(user) {
                        LayerKind::If if input.port == 0 => {
                            Some(format!("it only says which branch of `{}` runs", user.name()))
                        }
                        _ => found.get(&key(input.layer)).cloned(),
                    }
                });
                reasons.collect::<Option<Vec<_>>>().and_then(|reasons| reasons.into_iter().next())
            };
            found.extend(reason.map(|reason| (key(id), reason)));
        }
    }
    found
}

/// The first of `changes` from `a` to another model with the reason, if the inputs test no layer that differs. `not_tested`
/// has layers of `a`.
pub(super) fn first_unseen<'c>(
    a: &Model,
    changes: &'c [Change],
    not_tested: &'c [NotTested],
) -> Option<(&'c Change, &'c str)> {
    let untested: HashMap<_, _> =
        not_tested.iter().map(|it| ((&it.layer.place, it.layer.id), it.reason.as_str())).collect();
    let unseen = |change: &Change| {
        let found = match change.kind {
            ChangeKind::Removed => Some((change.layer.place.clone(), change.layer.id)),
            _ => a.find(&change.path).ok(),
        };
        // A layer that only the other model has is taken for tested.
        let (place, id) = found?;
        let computed = computed_from(a.graph_at(&place)?, id).into_iter();
        let reasons: Option<Vec<&str>> = computed.map(|id| untested.get(&(&place, id)).copied()).collect();
        reasons?.into_iter().next()
    };
    let mut valued =
        changes.iter().filter(|it| ![ChangeKind::Names, ChangeKind::Info, ChangeKind::Mark].contains(&it.kind));
    let first = valued.next()?;
    let reason = unseen(first)?;
    valued.all(|change| unseen(change).is_some()).then_some((first, reason))
}

/// The layer itself, or those that use what it stores.
fn computed_from(graph: &Graph, layer: LayerId) -> Vec<LayerId> {
    let roles = roles(graph);
    let (mut pending, mut seen, mut found) = (vec![layer], HashSet::default(), Vec::new());
    while let Some(id) = pending.pop() {
        match roles.get(id) {
            Some(Role::Stored) if seen.insert(id) => pending.extend(graph.users(id)),
            Some(Role::Stored) => {}
            _ => found.push(id),
        }
    }
    found
}

fn is_computed(layer: &Layer) -> bool {
    use LayerKind::{Assign, Constant, Parameter, ReadValue, Result};
    !matches!(ops::kind(layer), Parameter | Constant | Result | Assign | ReadValue)
}

/// Why a Select never takes the value at an input: its condition was the same everywhere.
fn never_selected(graph: &Graph, spreads: &HashMap<Output, Spread>, input: Input) -> Option<String> {
    let select = graph.layer(input.layer).filter(|layer| layer.ty() == "Select")?;
    let condition = spreads.get(&graph.producer(select.id().input(0))?)?;
    let taken = if condition.least == 0.0 { 2 } else { 1 };
    let is_other = condition.is_constant() && input.port != 0 && input.port != taken;
    is_other.then(|| format!("`{}` took its other value everywhere", select.name()))
}

/// Layers of a graph whose values do not reach an output.
struct Hidden {
    /// The layers that lead to an output of the model or to its state.
    is_needed: HashSet<LayerId>,
    reasons: HashMap<LayerId, String>,
}

impl Hidden {
    fn of(graph: &Graph, spreads: &HashMap<Output, Spread>, short: &Short, reasons: HashMap<LayerId, String>) -> Self {
        let roles = roles(graph);
        let is_data = |tensor: &Output| {
            graph.layer(tensor.layer).is_some_and(|layer| {
                ops::kind(layer) == LayerKind::Parameter || roles.get(layer.id()) == Some(&Role::Data)
            })
        };
        let is_constant = |tensor: &Output| spreads.get(tensor).is_some_and(|spread| spread.is_constant());
        let mut hidden = Self { is_needed: HashSet::default(), reasons };
        let order = graph.topological_order().unwrap_or_default();
        for layer in order.iter().rev().filter_map(|&id| graph.layer(id)) {
            let (id, kind) = (layer.id(), ops::kind(layer));
            if matches!(kind, LayerKind::Result | LayerKind::Assign) {
                hidden.is_needed.insert(id);
                continue;
            }
            let users: BTreeSet<LayerId> = graph.users(id).collect();
            if !users.iter().any(|user| hidden.is_needed.contains(user)) {
                continue;
            }
            hidden.is_needed.insert(id);
            let known: Option<Vec<Spread>> =
                (0..layer.outputs().len()).map(|port| spreads.get(&id.output(port)).copied()).collect();
            let name = layer.operation().map_or("", |operation| operation.name);
            let is_saturating = SATURATING.contains(&name);
            let hides = |spread: &Spread| spread.is_constant() || is_saturating && spread.is_saturated;
            let data: Vec<Output> = graph.producers(id).into_iter().flatten().filter(is_data).collect();
            let is_fed_zeros = is_computed(layer)
                && !data.is_empty()
                && data.iter().all(|tensor| matches!(spreads.get(tensor), Some(Spread { least: 0.0, most: 0.0, .. })));
            let is_blocked = is_computed(layer)
                && known.is_some_and(|known| !known.is_empty() && known.iter().all(hides))
                && !data.iter().all(is_constant);
            let is_shape = |user: &LayerId| graph.layer(*user).is_some_and(|user| user.ty() == "ShapeOf");
            let reason = if is_blocked {
                let what = match spreads.get(&id.output(0)) {
                    Some(Spread { least: 0.0, most: 0.0, .. }) => "was 0 everywhere",
                    Some(spread) if !spread.is_constant() => "was saturated everywhere",
                    _ => "was the same value everywhere",
                };
                let own = short.get(&(Place::default(), id)).cloned();
                Some(own.unwrap_or_else(|| format!("`{}` {what}", layer.name())))
            } else if is_fed_zeros {
                Some(format!("`{}` got 0 everywhere", layer.name()))
            } else {
                let ports = (0..layer.outputs().len()).flat_map(|port| graph.consumers(id.output(port)));
                let data = ports.filter(|input| !is_shape(&input.layer));
                let reasons = data.map(|input| {
                    let own = hidden.reasons.get(&input.layer).cloned();
                    own.or_else(|| never_selected(graph, spreads, input))
                });
                reasons.collect::<Option<Vec<_>>>().and_then(|reasons| reasons.into_iter().next())
            };
            hidden.reasons.extend(reason.map(|reason| (id, reason)));
        }
        hidden
    }

    /// Why the layers of a body were not tested: its owner was not, the branch did not run, or it is not known to have run.
    fn around(&self, model: &Model, place: &Place, spreads: &HashMap<Output, Spread>) -> Option<String> {
        if let Some(reason) = self.reasons.get(&place.steps().first()?.0) {
            return Some(reason.clone());
        }
        let mut graph = model.graph();
        for (depth, &(owner, at)) in place.steps().iter().enumerate() {
            let layer = graph.layer(owner)?;
            let body = layer.bodies().get(at)?;
            if ops::kind(layer) == LayerKind::If {
                // The tensors of bodies are not read.
                let condition = graph.producer(owner.input(0)).filter(|_| depth == 0);
                let condition = condition.and_then(|condition| spreads.get(&condition));
                let is_run = condition.is_some_and(|it| if at == 0 { it.most != 0.0 } else { it.least == 0.0 });
                if !is_run {
                    let what = if condition.is_some() { "did not run" } else { "is not known to have run" };
                    return Some(format!("`{}` of `{}` {what}", body.name(), layer.name()));
                }
            }
            graph = &body.graph;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_bodies_do_not_show_is_not_tested() {
        let reasons = |name: &str, layer: &str| {
            let path = format!("{}/../../testdata/models/{name}.xml", env!("CARGO_MANIFEST_DIR"));
            let mut model = Model::open(path).unwrap();
            model.infer().unwrap();
            // Layers of bodies have the same ids.
            let varied = Spread { least: 0.0, most: 1.0, is_saturated: false };
            let seen = model.graph().layers().map(|layer| (layer.id().output(0), varied));
            let found = not_tested(&model, &seen.collect(), &Short::new(), HashMap::default()).0;
            found.into_iter().find(|it| it.layer.name == layer).map(|it| it.reason)
        };
        let ends = "it only says if `Loop_23` ends before its last step";
        assert_eq!(reasons("loop_py", "Less_14").as_deref(), Some(ends));
        assert_eq!(reasons("loop_py", "Add_8"), None, "the next step reads it too");
        let chooses = "it only says which branch of `inner_if` runs";
        assert_eq!(reasons("onnx_loop", "even").as_deref(), Some(chooses));
        let nested = "`then_body` of `gto` is not known to have run";
        assert_eq!(reasons("onnx_if_deep", "gttc").as_deref(), Some(nested));
    }
}
