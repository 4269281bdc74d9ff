//! Risks of a narrower type, found without running the model.

use std::rc::Rc;

use serde::ser::SerializeStruct as _;
use serde::{Serialize, Serializer};
use typelift_promote::ElementType;

use super::view::{self, GraphView, is_float};
use crate::base::hash::HashSet;
use crate::base::span::Span;
use crate::findings::{Code, LayerRef, Message, Text, message};
use crate::infer::Probe;
use crate::model::graph::{Graph, Layer, LayerId, Model, Output, OutputPort};
use crate::ops::evaluate::Bounds;
use crate::ops::values::array::{self, Array};
use crate::ops::{self, LayerKind, Spread, Surroundings as _};

/// A problem that a narrower type causes in a layer, and the layers whose types must be kept to avoid it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Risk {
    /// The code of the finding that reports it.
    pub code: Code,
    /// The narrower type.
    pub to: ElementType,
    /// The affected layer.
    pub layer: LayerRef,
    /// The problem, as a clause.
    pub detail: Message,
    /// The layers whose types must be kept, all of which [`KeepPattern::AtRisk`](super::KeepPattern::AtRisk) selects.
    pub keep: Vec<LayerRef>,
    pub(crate) span: Span,
}

impl Serialize for Risk {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Risk", 4)?;
        fields.serialize_field("rule", &self.code)?;
        fields.serialize_field("layer", &self.layer)?;
        fields.serialize_field("detail", &self.detail)?;
        fields.serialize_field("keep", &self.keep.iter().map(LayerRef::full_name).collect::<Vec<_>>())?;
        fields.end()
    }
}

/// Returns the risks of computing an inferred model in another type: f16 or bf16 instead of f32 and f64, or i32
/// instead of i64. Other types have no risks here. A risk that depends on input values is reported unless known values
/// exclude it.
///
/// # Examples
/// ```
/// use typelift::promote::ElementType;
/// let mut model = typelift::Model::open(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/model.xml"))?;
/// assert_eq!(typelift::infer(&mut model), []);
/// assert_eq!(typelift::precision::risks(&model, ElementType::F16), []);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub fn risks(model: &Model, to: ElementType) -> Vec<Risk> {
    if to == ElementType::I32 && !can_be_beyond_i32(model) {
        return Vec::new();
    }
    let (mut risks, lowered) = (Vec::new(), view::lowered(model));
    for (place, graph) in lowered.walk() {
        let mut search = RiskSearch::new(&lowered, graph, to);
        match to {
            ElementType::F16 => search.in_f16(),
            ElementType::Bf16 => search.in_short_floats(),
            ElementType::I32 => search.in_i32(),
            _ => return risks,
        }
        let reference = |id: LayerId| LayerRef::named(&place, id, graph.layer(id).map_or("", Layer::name));
        let is_there = |id: &LayerId| model.graph_at(&place).is_some_and(|graph| graph.layer(*id).is_some());
        let found = search.found.into_iter().filter(|found| is_there(&found.layer));
        risks.extend(found.map(|GraphRisk { code, layer, detail, keep }| {
            let keep = keep.into_iter().filter(is_there).map(reference).collect();
            let span = graph.layer(layer).and_then(Layer::span).unwrap_or_default();
            Risk { code, to, layer: reference(layer), detail, keep, span }
        }));
    }
    risks
}

/// True if an integer may be beyond i32 after promotions were replaced. This check is much cheaper than replacing
/// them. A graph with a cycle is not checked.
fn can_be_beyond_i32(model: &Model) -> bool {
    model.walk().any(|(_, graph)| {
        let mut search = RiskSearch::new(model, graph, ElementType::I32);
        search.probe = search.probe.past_promotions();
        let order = search.view.order.clone();
        let is_beyond = order.iter().any(|&id| search.beyond_i32(id).is_some());
        is_beyond || search.probe.values.lacks_promoted || order.len() < graph.len()
    })
}

struct GraphRisk {
    code: Code,
    layer: LayerId,
    detail: Message,
    keep: Vec<LayerId>,
}

struct RiskSearch<'a> {
    view: GraphView<'a>,
    probe: Probe,
    to: ElementType,
    found: Vec<GraphRisk>,
}

/// Operations that reduce large values, or that do not need the last digits of a value.
const SCALING: &[&str] = &["Divide", "Sqrt", "Power", "Log", "Softmax", "LogSoftmax"];
/// Operations that map any number to a fixed range.
const BOUNDING: &[&str] = &["Sin", "Cos", "Tanh", "Sigmoid", "Softmax", "LogSoftmax"];

impl<'a> RiskSearch<'a> {
    fn new(model: &'a Model, graph: &'a Graph, to: ElementType) -> Self {
        Self { view: GraphView::new(model, graph), probe: Probe::new(model.weights()), to, found: Vec::new() }
    }

    fn in_f16(&mut self) {
        for id in self.view.order.clone() {
            self.epsilon(id);
            self.exponent(id);
            self.square(id);
            self.integer(id);
        }
        self.masks();
        self.in_short_floats();
    }

    /// Finds risks that exist even in a type with the range of f32.
    fn in_short_floats(&mut self) {
        let small = self.small_integers();
        for id in self.view.order.clone() {
            self.count(id);
            self.index(id, &small);
        }
    }

    fn small_integers(&mut self) -> HashSet<Output> {
        let converts = self.view.graph.unordered().filter(|layer| ops::kind(layer) == LayerKind::Convert);
        let tensors: Vec<_> = converts.filter_map(|layer| self.view.graph.producer(layer.id().input(0))).collect();
        let (last, graph) = (self.last_integer(), self.view.graph);
        let within = |values: &Array| values.to_floats().iter().all(|value| value.abs() <= last);
        let small = tensors.into_iter().filter(|tensor| {
            let ty = graph.output(*tensor).map_or(ElementType::Dynamic, OutputPort::element_type);
            let is_within = |bounds: Rc<Bounds>| within(&bounds.lower) && within(bounds.upper());
            ty.bits() <= 8 || self.probe.bounds(graph, *tensor).is_some_and(is_within)
        });
        small.collect()
    }

    fn add(&mut self, code: Code, layer: LayerId, detail: Message, keep: Vec<LayerId>) {
        self.found.push(GraphRisk { code, layer, detail, keep });
    }

    fn last_integer(&self) -> f64 {
        if self.to == ElementType::F16 { 2048.0 } else { 256.0 }
    }

    /// Reports an epsilon that f16 cannot represent. It is added, or used as a maximum, before a division, a negative
    /// power or a logarithm.
    fn epsilon(&mut self, id: LayerId) {
        let view = &self.view;
        let base = if view.is_of(id, &["Divide"]) {
            view.source(id, 1)
        } else if view.is_of(id, &["Log"]) {
            view.source(id, 0)
        } else if view.is_of(id, &["Power"]) {
            let exponent = view.source(id, 1).and_then(|exponent| view.constant(exponent));
            view.source(id, 0).filter(|_| exponent.is_some_and(|values| values.iter().all(|&value| value < 0.0)))
        } else {
            None
        };
        let Some(base) = base.filter(|&base| takes_floats(view, base)) else { return };
        let mut keep = vec![id];
        let sum = if view.is_of(base, &["Sqrt"]) {
            keep.push(base);
            view.source(base, 0)
        } else {
            Some(base)
        };
        let Some(sum) = sum.filter(|&sum| view.is_of(sum, &["Add", "Maximum"])) else { return };
        keep.push(sum);
        let smallest = |input| {
            let values = view.constant(view.source(sum, input)?)?;
            values.into_iter().filter(|&value| value > 0.0).reduce(f64::min)
        };
        let Some(epsilon) = [0, 1].into_iter().filter_map(smallest).next() else { return };
        let (least, normal) = (2_f64.powi(-25), 2_f64.powi(-14));
        let name = name(view.graph, sum);
        let written = epsilon as f32;
        let detail = match epsilon {
            epsilon if epsilon <= least => {
                message!("{} in `{}` becomes 0 in f16"; Text(format_args!("{written:e}")), name)
            }
            epsilon if epsilon < normal => {
                message!(
                    "{} in `{}` is subnormal in f16: it loses digits, or becomes 0";
                    Text(format_args!("{written:e}")), name
                )
            }
            _ => return,
        };
        self.add(Code::EpsilonLost, id, detail, keep);
    }

    /// Reports an Exp whose results are summed, unless the maximum of its input was subtracted before.
    fn exponent(&mut self, id: LayerId) {
        let view = &self.view;
        if !view.is_of(id, &["Exp"]) || !takes_floats(view, id) || self.is_shifted(id) {
            return;
        }
        let keep = self.downstream(&[id], SCALING);
        let sum = keep.iter().copied().find(|&layer| view.is_of(layer, &["ReduceSum", "ReduceMean"]));
        if let Some(sum) = sum {
            let detail = message!(
                "`{}` sums exponentials; the exponential of an input above 11.09 overflows f16";
                name(view.graph, sum)
            );
            self.add(Code::ExponentOverflow, id, detail, keep);
        }
    }

    fn is_shifted(&self, exp: LayerId) -> bool {
        let mut pending: Vec<_> = self.view.source(exp, 0).into_iter().collect();
        let subtract = pending.pop().filter(|&source| self.view.is_of(source, &["Subtract"]));
        let mut subtrahend = subtract.and_then(|subtract| self.view.source(subtract, 1));
        while let Some(id) = subtrahend {
            if self.view.is_of(id, &["ReduceMax"]) {
                return true;
            }
            let passes = self.view.is_of(id, &["Reshape", "Unsqueeze", "Squeeze", "Broadcast"]);
            subtrahend = self.view.source(id, 0).filter(|_| passes);
        }
        false
    }

    /// Reports a sum or mean of squares.
    fn square(&mut self, id: LayerId) {
        let view = &self.view;
        if !view.is_of(id, &["ReduceSum", "ReduceMean"]) || !takes_floats(view, id) {
            return;
        }
        let Some(square) = view.source(id, 0) else { return };
        let is_two =
            || view.source(square, 1).and_then(|exponent| view.constant(exponent)).is_some_and(|it| it == [2.0]);
        let squares = view.is_of(square, &["SquaredDifference"])
            || view.is_of(square, &["Multiply"])
                && view.graph.producer(square.input(0)) == view.graph.producer(square.input(1))
            || view.is_of(square, &["Power"]) && is_two();
        if squares {
            let detail =
                message!("`{}` squares its input; above 255.9 the square overflows f16"; name(view.graph, square));
            let keep = [vec![square], self.downstream(&[id], SCALING)].concat();
            self.add(Code::SquareOverflow, id, detail, keep);
        }
    }

    /// Reports sums of two tensors that both contain numbers beyond half of f16's range.
    fn masks(&mut self) {
        const HALF: f64 = 32752.0;
        let view = &self.view;
        let passes = |id: LayerId| {
            view.spreads(id, Spread::Quantized)
                || view.is_of(id, &["Add", "Subtract", "Multiply", "Select", "Gather", "Convert", "Minimum"])
        };
        // Only constants that reach a sum are read, not large weights.
        let mut summed = HashSet::<LayerId>::default();
        for &id in view.order.iter().rev().filter(|&&id| passes(id)) {
            if view.is_of(id, &["Add"]) || summed.contains(&id) {
                summed.extend(view.float_sources(id));
            }
        }
        let (mut masks, mut sums) = (HashSet::<LayerId>::default(), Vec::new());
        for &id in &view.order {
            let masked = view.float_sources(id).filter(|source| masks.contains(source)).count();
            if masked == 2 && view.is_of(id, &["Add"]) {
                sums.push(id);
            }
            let is_large = || summed.contains(&id) && view.value(id, |value| value < -HALF).is_some();
            if masked > 0 && passes(id) || view.layer(id).is_some_and(ops::is_constant) && is_large() {
                masks.insert(id);
            }
        }
        for id in sums {
            let detail = "both inputs can be below -32752, so their sum is infinite in f16".into();
            let keep = self.downstream(&[id], SCALING);
            self.add(Code::MaskOverflow, id, detail, keep);
        }
    }

    /// Reports a Convert of integers that are known to exceed f16's range.
    fn integer(&mut self, id: LayerId) {
        let view = &self.view;
        let converts = view.layer(id).is_some_and(|layer| ops::kind(layer) == LayerKind::Convert && is_float(layer, 0));
        let Some(tensor) = view.graph.producer(id.input(0)).filter(|_| converts && !takes_floats(view, id)) else {
            return;
        };
        let is_beyond = |value: i128| value.unsigned_abs() > LARGEST as u128 && !ENDS.contains(&value);
        if let Some(large) = self.known_integer(tensor, is_beyond).map(Text) {
            let view = &self.view;
            let detail =
                message!("`{}` contains {}; the largest f16 is {}"; name(view.graph, tensor.layer), large, LARGEST);
            let keep = self.downstream(&[id], SCALING);
            self.add(Code::IntegerOverflow, id, detail, keep);
        }
    }

    /// Reports a range or running sum that is so long that the type cannot distinguish its numbers.
    fn count(&mut self, id: LayerId) {
        let view = &self.view;
        let Some(layer) = view.layer(id).filter(|layer| is_float(layer, 0)) else { return };
        let last = self.last_integer();
        let number = |input: usize| {
            view.source(id, input).and_then(|source| view.constant(source)).and_then(|it| it.first().copied())
        };
        let is_short = if view.is_of(id, &["Range"]) {
            let ends = [number(0), number(1), number(2)];
            ends.iter().all(|end| end.is_some_and(|end| end.abs() <= last && end.fract() == 0.0))
        } else if view.is_of(id, &["CumSum"]) {
            let axis = number(1).filter(|axis| axis.fract() == 0.0).map(|axis| axis as i64);
            axis.and_then(|axis| length(&layer.outputs()[0], axis)).is_some_and(|length| length as f64 <= last)
        } else {
            return;
        };
        if !is_short {
            let detail = message!("{} has no odd integers beyond {}, so counting in steps of 1 fails"; self.to, last);
            let keep = self.downstream(&[id], BOUNDING);
            self.add(Code::CountRounded, id, detail, keep);
        }
    }

    /// Reports a Convert to integers if its values come from integers that the type cannot represent, or may come from
    /// such.
    fn index(&mut self, id: LayerId, small: &HashSet<Output>) {
        let view = &self.view;
        let Some(layer) = view.layer(id).filter(|layer| ops::kind(layer) == LayerKind::Convert) else { return };
        let is_integer = layer.outputs().first().is_some_and(|port| port.element_type().is_integer());
        if !is_integer || !takes_floats(view, id) {
            return;
        }
        let (mut pending, mut seen, mut origin) =
            (view.float_sources(id).collect::<Vec<_>>(), HashSet::default(), None);
        while let Some(source) = pending.pop().filter(|_| seen.len() < FARTHEST) {
            let Some(layer) = view.layer(source).filter(|_| seen.insert(source)) else { continue };
            let feeds: Vec<_> = view.float_sources(source).collect();
            if ops::is_constant(layer) {
                let lost = view.value(source, |value| value.fract() == 0.0 && array::round(self.to, value) != value);
                origin = origin.or_else(|| lost.map(|lost| message!("`{}` contains {}"; layer.name(), lost)));
            } else if ops::kind(layer) == LayerKind::Convert && feeds.is_empty() {
                let is_small = view.graph.producer(source.input(0)).is_some_and(|tensor| small.contains(&tensor));
                origin = origin.or_else(|| (!is_small).then(|| message!("`{}` converts integers to it"; layer.name())));
            } else if view.spreads(source, Spread::Kept) || view.spreads(source, Spread::Quantized) {
                pending.extend(feeds);
            }
        }
        if let Some(origin) = origin {
            let detail =
                message!("{} cannot represent every integer beyond {}, and {}"; self.to, self.last_integer(), origin);
            let mut keep =
                view.ordered(seen.into_iter().filter(|id| view.layer(*id).is_some_and(|it| !ops::is_constant(it))));
            keep.push(id);
            self.add(Code::IndexRounded, id, detail, keep);
        }
    }

    /// Reports known values that i32 cannot represent, at the first layer that has them. [`ENDS`] are excluded.
    fn in_i32(&mut self) {
        let mut beyond = HashSet::default();
        for id in self.view.order.clone() {
            let Some(value) = self.beyond_i32(id).filter(|_| beyond.insert(id)) else { continue };
            if self.view.graph.sources(id).any(|source| beyond.contains(&source)) {
                continue;
            }
            let detail = message!("its value is {}, which i32 cannot represent"; Text(value));
            let keep = self.downstream(&[id], &[]);
            self.add(Code::BeyondI32, id, detail, keep);
        }
    }

    fn beyond_i32(&mut self, id: LayerId) -> Option<i128> {
        let is_long = |port: &OutputPort| port.element_type() == ElementType::I64;
        // Values of a ConvertPromoteTypes are not known.
        let holds = |layer: &&Layer| !ops::is_promotion(layer) && layer.outputs().first().is_some_and(is_long);
        self.view.layer(id).filter(holds)?;
        self.known_integer(id.output(0), |value| i32::try_from(value).is_err() && !ENDS.contains(&value))
    }

    fn known_integer(&mut self, tensor: Output, is: impl Fn(i128) -> bool) -> Option<i128> {
        if self.view.layer(tensor.layer).is_some_and(ops::is_constant) {
            return self.view.integer(tensor.layer, is);
        }
        let bounds = self.probe.bounds(self.view.graph, tensor).filter(|bounds| bounds.is_exact())?;
        bounds.lower.find_integer(is)
    }

    /// Layers with their consumers through operations that work element by element, move values or sum
    /// them. Stops at operations in `last` and at outputs of the model.
    fn downstream(&self, from: &[LayerId], last: &[&str]) -> Vec<LayerId> {
        let view = &self.view;
        let (mut pending, mut seen) = (from.to_vec(), HashSet::default());
        while let Some(id) = pending.pop() {
            let Some(layer) = view.layer(id) else { continue };
            if seen.len() == FARTHEST || !seen.insert(id) || view.is_of(id, last) {
                continue;
            }
            let goes_on = |user: &LayerId| {
                view.spreads(*user, Spread::Kept)
                    || view.spreads(*user, Spread::Quantized)
                    || view.is_of(*user, last)
                    || view.is_of(*user, &["Gather", "Select", "Result"])
            };
            let keeps_type = layer.outputs().iter().any(|port| self.changes(port.element_type()));
            pending.extend(view.graph.users(id).filter(goes_on).filter(|_| keeps_type));
        }
        view.ordered(seen)
    }

    fn changes(&self, ty: ElementType) -> bool {
        match self.to {
            ElementType::I32 => ty == ElementType::I64,
            _ => ty == ElementType::F32 || ty == ElementType::F64,
        }
    }
}

const LARGEST: f64 = 65504.0;
/// Integers that mean "unlimited", for example the end of a slice.
const ENDS: [i128; 4] = [i64::MIN as i128, i64::MAX as i128, i32::MIN as i128, i32::MAX as i128];

/// Maximum number of layers that one risk lists.
const FARTHEST: usize = 64;

fn takes_floats(view: &GraphView, id: LayerId) -> bool {
    view.float_sources(id).next().is_some()
}

fn name(graph: &Graph, id: LayerId) -> &str {
    graph.layer(id).map_or("", Layer::name)
}

/// The length of an axis; a negative axis counts from the end.
fn length(port: &OutputPort, axis: i64) -> Option<i64> {
    let dims = port.shape().dims()?;
    let at = if axis < 0 { axis.checked_add(i64::try_from(dims.len()).ok()?)? } else { axis };
    dims.get(usize::try_from(at).ok()?)?.value()
}
