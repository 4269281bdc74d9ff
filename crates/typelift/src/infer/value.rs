//! The values of small tensors, as far as they are known: shapes that are computed as data.
//!
//! As in OpenVINO, what is known of a tensor's values is two whole tensors, its lower and its upper end, found by running
//! the operation on the ends of its inputs. Nothing is computed before a rule asks for it.

use std::collections::HashMap;
use std::rc::Rc;

use petgraph::stable_graph::NodeIndex;
use smallvec::SmallVec;
use typelift_promote::{ElementType, Kind};

use crate::graph::{Graph, Layer, OutputPort};
use crate::ops;
use crate::weights::Weights;

/// Tensors with more elements than this have no known values: no shape is computed from so many numbers.
const MAX_ELEMENTS: u64 = 1 << 20;

/// A tensor with its values.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Array {
    pub(crate) element_type: ElementType,
    pub(crate) dims: Vec<usize>,
    pub(crate) data: Data,
}

/// The values of a tensor, in row-major order.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Data {
    /// Integers and booleans, each within the range of the element type.
    Ints(Vec<i128>),
    /// Floating-point numbers, each one the element type can hold.
    Floats(Vec<f64>),
}

impl Array {
    /// Which of the values are not zero.
    pub(crate) fn truths(&self) -> Vec<bool> {
        match &self.data {
            Data::Ints(values) => values.iter().map(|&value| value != 0).collect(),
            Data::Floats(values) => values.iter().map(|&value| value != 0.0).collect(),
        }
    }

    /// The values as integers; fractions are cut off and too large ones saturate.
    pub(crate) fn to_integers(&self) -> Vec<i64> {
        match &self.data {
            Data::Ints(values) => values.iter().map(|&v| v.clamp(i64::MIN.into(), i64::MAX.into()) as i64).collect(),
            Data::Floats(values) => values.iter().map(|&v| v as i64).collect(),
        }
    }
}

/// The two ends of what the values of a tensor can be, element by element.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Bounds {
    pub(crate) lower: Array,
    /// `None` where it is the same as `lower`: the values are known exactly.
    pub(crate) upper: Option<Array>,
}

impl Bounds {
    pub(crate) fn is_exact(&self) -> bool {
        self.upper.is_none()
    }

    pub(crate) fn upper(&self) -> &Array {
        self.upper.as_ref().unwrap_or(&self.lower)
    }
}

/// How to find the values of an operation's outputs.
#[derive(Clone, Copy)]
pub(crate) enum Evaluate {
    /// Not at all.
    Never,
    /// From the values of its inputs, where they are all known exactly.
    Exact(fn(&Evaluation, &[&Array], usize) -> Option<Array>),
    /// As `Exact`, and where only bounds are known by doing it for each end.
    Ends(fn(&Evaluation, &[&Array], usize) -> Option<Array>),
    /// From what is known of its inputs, value or not.
    Custom(fn(&Evaluation, &[Option<Rc<Bounds>>], usize) -> Option<Bounds>),
    /// From its attributes and the shapes of its inputs alone.
    Source(fn(&Evaluation, usize) -> Option<Bounds>),
}

/// A layer whose values are to be found.
pub(crate) struct Evaluation<'a> {
    pub(crate) layer: &'a Layer,
    pub(crate) inputs: SmallVec<[&'a OutputPort; 4]>,
    pub(crate) weights: &'a Weights,
}

/// The values found so far in one graph, by output. `None`: looked for and not known.
pub(crate) type Cache = HashMap<(NodeIndex, usize), Option<Rc<Bounds>>>;

/// What is known of the values of an output. Walks back through the graph without recursion.
pub(crate) fn bounds(
    graph: &Graph,
    weights: &Weights,
    cache: &mut Cache,
    output: (NodeIndex, usize),
) -> Option<Rc<Bounds>> {
    let mut pending = vec![output];
    while let Some(&(node, port)) = pending.last() {
        if cache.contains_key(&(node, port)) {
            pending.pop();
            continue;
        }
        let found = match evaluate(graph, weights, cache, node, port) {
            Ok(found) => found,
            Err(missing) => {
                pending.extend(missing);
                continue;
            }
        };
        cache.insert((node, port), found.map(Rc::new));
        pending.pop();
    }
    cache.get(&output).cloned().flatten()
}

/// The values of one output, or the outputs whose values must be looked for first.
fn evaluate(
    graph: &Graph,
    weights: &Weights,
    cache: &Cache,
    node: NodeIndex,
    port: usize,
) -> Result<Option<Bounds>, SmallVec<[(NodeIndex, usize); 4]>> {
    let Some(layer) = graph.weight(node) else { return Ok(None) };
    let count = layer.outputs.get(port).and_then(|output| output.shape.element_count());
    let too_many = count.is_some_and(|count| count > MAX_ELEMENTS);
    let Some(operation) = ops::lookup(&layer.ty, &layer.version).filter(|_| !too_many) else { return Ok(None) };
    let feeds = graph.feeds(node);
    let feeds: SmallVec<[(NodeIndex, usize); 4]> = feeds.into_iter().flatten().collect();
    let evaluation = Evaluation {
        layer,
        inputs: feeds.iter().filter_map(|&(node, port)| graph.weight(node)?.outputs.get(port)).collect(),
        weights,
    };
    let known = || {
        let missing: SmallVec<_> = feeds.iter().copied().filter(|feed| !cache.contains_key(feed)).collect();
        if missing.is_empty() {
            Ok(feeds.iter().map(|feed| cache.get(feed).cloned().flatten()).collect::<SmallVec<[_; 4]>>())
        } else {
            Err(missing)
        }
    };
    Ok(match operation.evaluator() {
        Evaluate::Never => None,
        Evaluate::Source(find) => find(&evaluation, port),
        Evaluate::Custom(find) => find(&evaluation, &known()?, port),
        Evaluate::Exact(find) => {
            let known = known()?;
            let exact = known.iter().map(|bounds| bounds.as_deref().filter(|b| b.is_exact()).map(|b| &b.lower));
            let exact: Option<SmallVec<[_; 4]>> = exact.collect();
            exact.and_then(|inputs| find(&evaluation, &inputs, port)).map(|lower| Bounds { lower, upper: None })
        }
        Evaluate::Ends(find) => {
            let known = known()?;
            let bounds: Option<SmallVec<[&Bounds; 4]>> = known.iter().map(Option::as_deref).collect();
            bounds.and_then(|bounds| {
                let lower: SmallVec<[_; 4]> = bounds.iter().map(|bounds| &bounds.lower).collect();
                let lower = find(&evaluation, &lower, port)?;
                if bounds.iter().all(|bounds| bounds.is_exact()) {
                    return Some(Bounds { lower, upper: None });
                }
                let upper: SmallVec<[_; 4]> = bounds.iter().map(|bounds| bounds.upper()).collect();
                let upper = find(&evaluation, &upper, port)?;
                Some(Bounds { upper: (upper != lower).then_some(upper), lower })
            })
        }
    })
}

/// The value of a constant, from its bytes.
pub(crate) fn constant(evaluation: &Evaluation, _port: usize) -> Option<Bounds> {
    let element_type: ElementType = ElementType::from_name(evaluation.layer.attribute("element_type")?)?;
    let shape = evaluation.layer.outputs.first()?.shape.clone();
    let dims: Vec<usize> = shape.to_static()?.into_iter().map(usize::try_from).collect::<Result<_, _>>().ok()?;
    let count = usize::try_from(shape.element_count()?).ok()?;
    let offset = evaluation.layer.attribute("offset")?.trim().parse().ok()?;
    let width = match (element_type.kind(), element_type.bits()) {
        (Kind::Boolean, _) => 1,
        (_, bits @ (8 | 16 | 32 | 64)) => bits as usize / 8,
        _ => return None,
    };
    let bytes = evaluation.weights.read(offset, count.checked_mul(width)?)?;
    let items = bytes.chunks_exact(width);
    let unsigned = |item: &[u8]| item.iter().rev().fold(0_u64, |number, &byte| number << 8 | u64::from(byte));
    let data = match element_type {
        ElementType::F32 => Data::Floats(items.map(|i| f32::from_bits(unsigned(i) as u32).into()).collect()),
        ElementType::F64 => Data::Floats(items.map(|i| f64::from_bits(unsigned(i))).collect()),
        _ if element_type.kind() == Kind::Signed => {
            let shift = 64 - width * 8;
            Data::Ints(items.map(|i| i128::from((unsigned(i) << shift) as i64 >> shift)).collect())
        }
        _ if element_type.kind() == Kind::Boolean => Data::Ints(items.map(|i| i128::from(unsigned(i) != 0)).collect()),
        _ if element_type.is_integer() => Data::Ints(items.map(|i| i128::from(unsigned(i))).collect()),
        _ => return None,
    };
    Some(Bounds { lower: Array { element_type, dims, data }, upper: None })
}
