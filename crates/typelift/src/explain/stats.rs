//! Statistics of a model: its weights, tensors and operations by element type.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;

use serde::{Serialize, Serializer};
use typelift_promote::{ElementType, Kind};

use crate::model::graph::{Graph, Layer, Model, OutputPort, Place};
use crate::model::shape::Shape;
use crate::model::weights::{Weights, stored_size};
use crate::ops::{self, LayerKind, Macs};
use crate::precision::schemes::{self, Scheme, Simulated};
use crate::symbols::{self, Formulas};

/// Statistics of a model, including its bodies.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Stats {
    /// The name of the model.
    pub name: String,
    /// The IR version.
    pub version: u8,
    /// The programs that made the model, by its metadata: [`Model::made_by`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub made_by: Option<String>,
    /// The metadata of the model by path, in the order of the file.
    #[serde(serialize_with = "pairs_of", skip_serializing_if = "Vec::is_empty")]
    pub metadata: Vec<(String, String)>,
    /// The number of layers.
    pub layers: usize,
    /// The number of bodies.
    pub bodies: usize,
    /// The inputs of the model, in order.
    pub inputs: Vec<Tensor>,
    /// The outputs of the model, in order.
    pub outputs: Vec<Tensor>,
    /// The size of all constants in bytes. Shared bytes are counted once.
    pub weight_bytes: u64,
    /// The constants by element type, sorted by size.
    pub weights: Vec<Weight>,
    /// Constants that are stored in a narrower type than they are used in: all their consumers are Converts to a wider
    /// float. OpenVINO calls this decompression. Sorted by size.
    pub decompressed: Vec<Decompressed>,
    /// The quantized constants, sorted by size.
    pub schemes: Vec<SchemeCount>,
    /// The constants that FakeQuantize or FakeConvert quantizes, sorted by size.
    pub simulated: Vec<SimulatedCount>,
    /// The number of tensors, except constants, after a FakeQuantize with 255 or 256 levels.
    pub quantized_activations: usize,
    /// The number of tensors by element type, except constants, the most frequent first.
    #[serde(serialize_with = "map_of")]
    pub tensors: Vec<TypeCount>,
    /// The operations, the most frequent first.
    pub operations: Vec<OperationCount>,
    /// The ten largest constants, the largest first.
    pub largest_constants: Vec<LargeTensor>,
    /// The ten largest tensors that are computed, the largest first. An open dimension counts as its lower bound, and as
    /// 1 at least.
    pub largest_tensors: Vec<LargeTensor>,
    /// The multiply-accumulate operations of all layers, those of bodies once. Open dimensions count as for tensors.
    pub macs: u64,
    /// True if a dimension was open, so that `macs` is a lower bound.
    pub macs_is_least: bool,
    /// The multiply-accumulate operations as an expression over the model's open lengths; `None` if they depend on data.
    pub macs_formula: Option<String>,
    /// The state between inferences; `None` without variables.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<StateStats>,
}

/// Variables of a model.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct StateStats {
    /// The number of variables.
    pub variables: usize,
    /// The size in bytes. Open dimensions count as for tensors.
    pub bytes: u64,
    /// The size as an expression over `batch` and `past`; `None` if other lengths are open.
    pub bytes_formula: Option<String>,
}

/// A large tensor.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct LargeTensor {
    /// The name of its layer, after those of the surrounding bodies.
    pub path: String,
    /// The operation that computes it.
    pub operation: String,
    /// The element type.
    #[serde(serialize_with = "name_of")]
    pub element_type: ElementType,
    /// The shape.
    pub shape: Shape,
    /// The size in bytes.
    pub bytes: u64,
    /// The size as an expression over the model's open lengths; `None` if it depends on data.
    pub bytes_formula: Option<String>,
}

/// Input or output of the model.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Tensor {
    /// The name of its tensor, or of its layer if the tensor has none.
    pub name: String,
    /// The element type.
    #[serde(serialize_with = "name_of")]
    pub element_type: ElementType,
    /// The shape.
    pub shape: Shape,
}

/// Constants of one element type.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Weight {
    /// The element type.
    #[serde(serialize_with = "name_of")]
    pub element_type: ElementType,
    /// The number of constants.
    pub constants: usize,
    /// The number of their values. Shared values are counted once.
    pub values: u64,
    /// The size in bytes. Shared bytes are counted once.
    pub bytes: u64,
}

/// Constants of one element type that Converts widen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Decompressed {
    /// The element type in which they are stored.
    #[serde(serialize_with = "name_of")]
    pub from: ElementType,
    /// The element type in which they are used.
    #[serde(serialize_with = "name_of")]
    pub to: ElementType,
    /// The number of constants.
    pub constants: usize,
    /// The size in bytes. Shared bytes are counted once.
    pub bytes: u64,
}

/// Quantized constants with the same storage format.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SchemeCount {
    /// The storage format: `int4 asymmetric, groups of 128`.
    pub scheme: Scheme,
    /// The number of constants.
    pub constants: usize,
    /// The size of their codes in bytes.
    pub bytes: u64,
}

/// Constants of floats whose quantization is simulated in the same way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SimulatedCount {
    /// The quantization: `FakeQuantize to 255 levels, per channel`.
    #[serde(serialize_with = "text_of")]
    pub quantization: Simulated,
    /// The number of constants.
    pub constants: usize,
    /// The size of their floats in bytes.
    pub bytes: u64,
}

fn text_of<S: Serializer>(text: &impl Display, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(text)
}

/// Number of tensors of an element type.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TypeCount {
    /// The element type.
    pub element_type: ElementType,
    /// The count.
    pub count: usize,
}

/// Number of layers of an operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct OperationCount {
    /// The operation, as the file spells it.
    #[serde(rename = "type")]
    pub ty: String,
    /// The count.
    pub count: usize,
    /// The number of layers by the element type of their first output, the most frequent type first.
    #[serde(serialize_with = "map_of")]
    pub element_types: Vec<TypeCount>,
}

fn pairs_of<S: Serializer>(pairs: &[(String, String)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(pairs.iter().map(|(path, value)| (path, value)))
}

pub(super) fn name_of<S: Serializer>(ty: &ElementType, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(ty.name())
}

pub(crate) fn map_of<S: Serializer>(counts: &[TypeCount], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(counts.iter().map(|of| (of.element_type.name(), of.count)))
}

/// Computes the statistics of an inferred model. Of the weights, only scales and zero points are read.
///
/// # Examples
/// ```
/// # let mut model = typelift::Model::open(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/model.xml"))?;
/// typelift::infer(&mut model);
/// let stats = typelift::stats(&model);
/// assert_eq!((stats.layers, stats.weight_bytes), (5, 4));
/// assert_eq!(stats.weights[0].element_type.name(), "f32");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub fn stats(model: &Model) -> Stats {
    let shapes = symbols::shapes(model);
    stats_with(model, &mut Formulas::new(model, &shapes))
}

/// Computes the statistics of an inferred model with the formulas of its lengths.
#[must_use]
pub fn stats_with(model: &Model, formulas: &mut Formulas<'_>) -> Stats {
    let variables = model.state();
    let state_formula = if variables.is_empty() { None } else { formulas.state() };
    let state = (!variables.is_empty()).then(|| StateStats {
        variables: variables.len(),
        bytes: variables.iter().filter_map(|(_, it)| least_bytes(it.element_type, &it.shape)).sum(),
        bytes_formula: state_formula.map(|formula| formula.text.to_owned()),
    });
    let mut count = Counting::default();
    for (place, graph) in model.walk() {
        count.add_schemes(graph, model.weights());
        for layer in graph.layers() {
            count.add(graph, layer);
            count.large(&place, layer);
            if place.is_model() {
                count.macs = count.macs.and(ops::macs(graph, layer));
            }
            count.bodies += layer.bodies().len();
        }
    }
    Stats {
        name: model.name().to_owned(),
        version: model.version().number(),
        made_by: model.made_by(),
        metadata: model.rt_info_entries(),
        layers: count.operations.values().map(|types| types.values().sum::<usize>()).sum(),
        bodies: count.bodies,
        inputs: model.inputs().map(|layer| end(model, layer)).collect(),
        outputs: model.outputs().map(|layer| end(model, layer)).collect(),
        weight_bytes: count.weights.values().map(|weight| weight.bytes).sum(),
        weights: by_size(count.weights.into_values(), |weight| weight.bytes),
        decompressed: by_size(count.decompressed.into_values(), |weight| weight.bytes),
        schemes: by_size(count.schemes.into_values(), |scheme| scheme.bytes),
        simulated: by_size(count.simulated.into_values(), |simulated| simulated.bytes),
        quantized_activations: count.quantized_activations,
        tensors: counted(count.tensors),
        operations: by_size(count.operations.into_iter().map(operation), |operation| operation.count),
        largest_constants: largest(model, count.constants, formulas),
        largest_tensors: largest(model, count.computed, formulas),
        macs: count.macs.count,
        macs_is_least: count.macs.is_least,
        macs_formula: formulas.macs().map(|formula| formula.text.to_owned()),
        state,
    }
}

/// The number of tensors in a list of the largest.
const LARGEST: usize = 10;
/// The number of tensors from which the largest are chosen at once.
const MOST_REMEMBERED: usize = 1000;

fn largest(model: &Model, mut tensors: Vec<Large>, formulas: &mut Formulas<'_>) -> Vec<LargeTensor> {
    tensors.sort_by_key(|&(bytes, ..)| std::cmp::Reverse(bytes));
    let largest = tensors.into_iter().take(LARGEST).map(|(bytes, place, layer, port)| LargeTensor {
        bytes_formula: model
            .graph_at(&place)
            .and_then(|graph| formulas.bytes(graph, layer.id().output(port)))
            .map(|formula| formula.text.to_owned()),
        path: place.path_to(layer.name()),
        operation: layer.ty().to_owned(),
        element_type: layer.outputs()[port].element_type(),
        shape: layer.outputs()[port].shape().clone(),
        bytes,
    });
    largest.collect()
}

/// An open dimension counts as its lower bound, and as 1 at least.
fn least_bytes(ty: ElementType, shape: &Shape) -> Option<u64> {
    let count = ops::least_count(shape.dims()?)?;
    u64::try_from(stored_size(ty, count)?).ok()
}

/// Describes an input or output. An output has the name in its Result, otherwise that of its tensor.
fn end(model: &Model, layer: &Layer) -> Tensor {
    let port = model.end_tensor(layer);
    Tensor {
        name: model.end_name(layer),
        element_type: port.map_or(ElementType::Dynamic, OutputPort::element_type),
        shape: port.map_or_else(Shape::dynamic, |port| port.shape().clone()),
    }
}

fn operation((ty, types): (String, BTreeMap<Option<ElementType>, usize>)) -> OperationCount {
    let known = types.iter().filter_map(|(ty, &count)| Some(((*ty)?, count)));
    OperationCount { ty, count: types.values().sum(), element_types: counted(known.collect()) }
}

pub(crate) fn counted(types: BTreeMap<ElementType, usize>) -> Vec<TypeCount> {
    by_size(types.into_iter().map(|(element_type, count)| TypeCount { element_type, count }), |of| of.count)
}

/// Sorts by size in descending order. The order of equal ones is kept.
pub(crate) fn by_size<T, S: Ord>(items: impl Iterator<Item = T>, size: impl Fn(&T) -> S) -> Vec<T> {
    let mut items: Vec<T> = items.collect();
    items.sort_by_key(|item| std::cmp::Reverse(size(item)));
    items
}

/// A tensor with its size in bytes, as an output of a layer.
type Large<'a> = (u64, Place, &'a Layer, usize);

#[derive(Default)]
struct Counting<'a> {
    bodies: usize,
    macs: Macs,
    constants: Vec<Large<'a>>,
    computed: Vec<Large<'a>>,
    census: Census,
    weights: BTreeMap<ElementType, Weight>,
    decompressed: BTreeMap<(ElementType, ElementType), Decompressed>,
    schemes: BTreeMap<Scheme, SchemeCount>,
    simulated: BTreeMap<Simulated, SimulatedCount>,
    quantized_activations: usize,
    tensors: BTreeMap<ElementType, usize>,
    operations: BTreeMap<String, BTreeMap<Option<ElementType>, usize>>,
}

impl<'a> Counting<'a> {
    /// Remembers the tensors of a layer by their size.
    fn large(&mut self, place: &Place, layer: &'a Layer) {
        let is_constant = ops::kind(layer) == LayerKind::Constant;
        let list = if is_constant { &mut self.constants } else { &mut self.computed };
        for (at, port) in layer.outputs().iter().enumerate() {
            let is_stored = is_constant.then(|| Census::size(layer));
            let bytes = is_stored.or_else(|| least_bytes(port.element_type(), port.shape()));
            list.extend(bytes.map(|bytes| (bytes, place.clone(), layer, at)));
        }
        if list.len() > MOST_REMEMBERED {
            list.sort_by_key(|&(bytes, ..)| std::cmp::Reverse(bytes));
            list.truncate(LARGEST);
        }
    }

    /// Counts the quantized constants of a graph, and the tensors after a FakeQuantize.
    fn add_schemes(&mut self, graph: &Graph, weights: &Weights) {
        let mut known = BTreeSet::new();
        for quantized in schemes::find(graph, weights) {
            let Some(codes) = graph.layer(quantized.codes).filter(|_| known.insert(quantized.codes)) else { continue };
            let scheme = quantized.scheme;
            let count = self.schemes.entry(scheme).or_insert_with(|| SchemeCount { scheme, constants: 0, bytes: 0 });
            count.constants += 1;
            count.bytes += Census::size(codes);
        }
        for (floats, quantization) in schemes::find_simulated(graph, weights) {
            let empty = || SimulatedCount { quantization, constants: 0, bytes: 0 };
            let count = self.simulated.entry(quantization).or_insert_with(empty);
            count.constants += 1;
            count.bytes += Census::size(floats);
        }
        let is_8_bit = |layer: &&Layer| {
            let levels = layer.attribute("levels").map(str::trim);
            let is_stored =
                || graph.feeds(layer.id()).first().copied().flatten().is_none_or(|(it, _)| ops::is_constant(it));
            layer.ty() == "FakeQuantize" && matches!(levels, Some("255" | "256")) && !is_stored()
        };
        self.quantized_activations += graph.layers().filter(is_8_bit).count();
    }

    fn add(&mut self, graph: &Graph, layer: &Layer) {
        let first = layer.outputs().first().map(OutputPort::element_type);
        *self.operations.entry(layer.ty().to_owned()).or_default().entry(first).or_default() += 1;
        match (ops::kind(layer), layer.outputs().first()) {
            (LayerKind::Constant, Some(port)) => self.constant(graph, layer, port),
            _ => {
                for port in layer.outputs() {
                    *self.tensors.entry(port.element_type()).or_default() += 1;
                }
            }
        }
    }

    fn constant(&mut self, graph: &Graph, layer: &Layer, port: &OutputPort) {
        let from = port.element_type();
        let bytes = self.census.add(layer, &mut self.weights);
        if let Some(to) = widened(graph, layer, from) {
            let empty = || Decompressed { from, to, constants: 0, bytes: 0 };
            let found = self.decompressed.entry((from, to)).or_insert_with(empty);
            found.constants += 1;
            found.bytes += bytes;
        }
    }
}

/// Counter of constants that counts shared bytes once.
#[derive(Default)]
pub(crate) struct Census {
    /// Ranges of bytes that were counted: their ends by their starts. They are merged if they touch.
    covered: BTreeMap<i64, i64>,
}

impl Census {
    pub(crate) fn range(layer: &Layer) -> Option<(i64, i64)> {
        let number = |name| i64::try_from(layer.byte_count(name)?).ok();
        Some((number("offset")?, number("size")?))
    }

    pub(crate) fn size(layer: &Layer) -> u64 {
        let found = Self::range(layer).and_then(|(_, size)| u64::try_from(size).ok()).or_else(|| {
            let port = layer.outputs().first()?;
            u64::try_from(stored_size(port.element_type(), port.shape().element_count()?)?).ok()
        });
        found.unwrap_or(0)
    }

    /// Counts a constant for its element type, and ignores other layers. Returns the number of its bytes that were not
    /// counted before.
    pub(crate) fn add(&mut self, layer: &Layer, weights: &mut BTreeMap<ElementType, Weight>) -> u64 {
        let Some((element_type, bytes)) = self.count(layer) else { return 0 };
        let values = layer.outputs().first().and_then(|port| port.shape().element_count()).unwrap_or(0);
        let weight =
            weights.entry(element_type).or_insert_with(|| Weight { element_type, constants: 0, values: 0, bytes: 0 });
        weight.constants += 1;
        weight.values += if bytes > 0 { values } else { 0 };
        weight.bytes += bytes;
        bytes
    }

    /// The element type of a constant, and its bytes that were not counted before.
    pub(crate) fn count(&mut self, layer: &Layer) -> Option<(ElementType, u64)> {
        let port = layer.outputs().first().filter(|_| ops::kind(layer) == LayerKind::Constant)?;
        let bytes = match Self::range(layer) {
            Some((offset, size)) => self.cover(offset, offset.saturating_add(size)),
            None => Self::size(layer),
        };
        Some((port.element_type(), bytes))
    }

    fn cover(&mut self, start: i64, end: i64) -> u64 {
        let (mut from, mut to, mut known) = (start, end, 0);
        while let Some((&start, &end)) = self.covered.range(..=to).next_back().filter(|(_, end)| **end >= from) {
            known += end.min(to) - start.max(from);
            self.covered.remove(&start);
            (from, to) = (from.min(start), to.max(end));
        }
        if from < to {
            self.covered.insert(from, to);
        }
        u64::try_from((end - start) - known).unwrap_or(0)
    }
}

fn widened(graph: &Graph, constant: &Layer, from: ElementType) -> Option<ElementType> {
    let mut to = None;
    for user in graph.users(constant.id()) {
        let user = graph.layer(user).filter(|user| ops::kind(user) == LayerKind::Convert)?;
        to = Some(user.outputs().first()?.element_type());
    }
    to.filter(|to| to.kind() == Kind::Float && from.bits() < to.bits())
}
