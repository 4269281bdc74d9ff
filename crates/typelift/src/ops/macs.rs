//! Multiply-accumulate operations of a layer, from the shapes of its inputs and outputs.

use super::common::normalize_axis;
use super::{LayerKind, kind};
use crate::model::graph::{Body, Direction, Graph, Layer};
use crate::model::shape::{Dim, Shape};

/// Number of multiply-accumulate operations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Macs {
    /// The number. Each open dimension counts as its lower bound, and as 1 at least.
    pub count: u64,
    /// True if a dimension is open, so that the layer may need more.
    pub is_least: bool,
}

impl Macs {
    pub(crate) fn and(self, other: Self) -> Self {
        Self { count: self.count.saturating_add(other.count), is_least: self.is_least || other.is_least }
    }
}

/// Returns the multiply-accumulate operations of a layer with inferred shapes: those of matrix products, convolutions,
/// recurrent cells and attention. A body counts once for each iteration, and an If as its branch with fewer. Other
/// operations count as 0.
///
/// # Examples
/// ```
/// let text = "x = Parameter : f32[2,3]\ny = Const([1, 2, 3]) : f32[3,1]\nz = MatMul(x, y)\nr = Result(z)\n";
/// let mut model = typelift::Model::from_text(text)?;
/// typelift::infer(&mut model);
/// let product = model.graph().layer(model.graph().find("z")?).unwrap();
/// assert_eq!(typelift::ops::macs(model.graph(), product).count, 6);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub fn macs(graph: &Graph, layer: &Layer) -> Macs {
    if !has_macs(layer) {
        return of_bodies(graph, layer);
    }
    let feeds = graph.feeds(layer.id()).into_iter();
    let ports = feeds.map(|feed| feed.and_then(|(producer, port)| producer.outputs().get(port)));
    let inputs: Vec<_> = ports.map(|port| port.map_or_else(Shape::dynamic, |port| port.shape().clone())).collect();
    let output = layer.outputs().first().map_or_else(Shape::dynamic, |port| port.shape().clone());
    let is_open = inputs.iter().chain([&output]).any(|shape| !shape.is_static());
    let dims: Vec<_> = inputs.iter().map(Shape::dims).collect();
    let count = products(layer, &dims, output.dims(), |dim| dim.value().is_some())
        .and_then(|products| products.iter().try_fold(0_u64, |sum, factors| sum.checked_add(least_count(factors)?)));
    Macs { count: count.unwrap_or(0), is_least: is_open || count.is_none() }
}

fn of_bodies(graph: &Graph, layer: &Layer) -> Macs {
    let bodies = layer.bodies().iter().map(|body| {
        let once = body.graph.layers().map(|layer| macs(&body.graph, layer)).fold(Macs::default(), Macs::and);
        let times = if kind(layer) == LayerKind::If { Some(1) } else { iterations(graph, layer, body) };
        let is_least = once.is_least || times.is_none() && once.count > 0;
        Macs { count: once.count.saturating_mul(times.unwrap_or(1)), is_least }
    });
    let fewer = |one: Macs, other: Macs| Macs {
        count: one.count.min(other.count),
        is_least: one.is_least || other.is_least || one.count != other.count,
    };
    bodies.reduce(fewer).unwrap_or_default()
}

/// The number of iterations, from a length that is concatenated or sliced. A Loop may end before its input does.
fn iterations(graph: &Graph, layer: &Layer, body: &Body) -> Option<u64> {
    body.port_map.iter().find_map(|link| {
        let is_port = |id: u64| i64::try_from(id) == Ok(link.external_port_id);
        let is_output = link.direction == Direction::Output;
        let shape = if is_output {
            layer.outputs().iter().find(|port| is_port(port.id()))?.shape()
        } else {
            let at = layer.inputs().iter().position(|port| is_port(port.id()))?;
            graph.output(graph.producer(layer.id().input(at)).filter(|_| kind(layer) != LayerKind::Loop)?)?.shape()
        };
        let length = shape.dims()?.get(normalize_axis(link.axis?, shape.rank()?)?)?.value()?;
        let [first, last] =
            [link.start.unwrap_or(0), link.end.unwrap_or(-1)].map(|at| at + if at < 0 { length } else { 0 });
        let reach = if is_output { length } else { last.checked_sub(first)?.checked_abs()?.checked_add(1)? };
        u64::try_from(reach.checked_div(link.part_size.unwrap_or(1))?).ok()
    })
}

pub(crate) fn has_macs(layer: &Layer) -> bool {
    layer.operation().is_some_and(|operation| HAVE_MACS.contains(&operation.name))
}

/// The operations that [`products`] knows.
const HAVE_MACS: &[&str] = &[
    "MatMul",
    "Einsum",
    "Convolution",
    "BinaryConvolution",
    "DeformableConvolution",
    "GroupConvolution",
    "ConvolutionBackpropData",
    "GroupConvolutionBackpropData",
    "ScaledDotProductAttention",
    "LSTMCell",
    "GRUCell",
    "RNNCell",
    "LSTMSequence",
    "GRUSequence",
    "RNNSequence",
];

/// The multiply-accumulate operations of a layer as a sum of products of lengths; `None` if a shape is missing.
/// A product takes the common length of its inputs from the one where it is known.
pub(crate) fn products<D: Clone>(
    layer: &Layer,
    inputs: &[Option<&[D]>],
    output: Option<&[D]>,
    is_known: impl Fn(&D) -> bool,
) -> Option<Vec<Vec<D>>> {
    let dims = |input: usize| inputs.get(input).copied().flatten();
    // The values of one tensor, each with the lengths of another one from an axis on.
    let of = |one: &[D], other: &[D], from: usize| Some(vec![[one, other.get(from..)?].concat()]);
    let name = layer.operation().map_or("", |row| row.name);
    match name {
        "MatMul" => {
            let inner = |input: usize, attribute: &str| {
                let dims = dims(input)?;
                let is_transposed = layer.attribute(attribute).is_some_and(|it| it.trim() == "true");
                let back = if dims.len() > 1 && is_transposed == (input == 0) { 2 } else { 1 };
                dims.get(dims.len().checked_sub(back)?..)?.get(..1)
            };
            let (a, b) = (inner(0, "transpose_a"), inner(1, "transpose_b"));
            of(output?, a.filter(|a| is_known(&a[0])).or(b.filter(|b| is_known(&b[0]))).or(a)?, 0)
        }
        "Einsum" => einsum(layer.attribute("equation")?, inputs),
        // Filters are [outputs, inputs, …], with groups first.
        "Convolution" | "BinaryConvolution" => of(output?, dims(1)?, 1),
        "DeformableConvolution" => of(output?, dims(2)?, 1),
        "GroupConvolution" => of(output?, dims(1)?, 2),
        // Each value of the data meets all outputs of its channel.
        "ConvolutionBackpropData" => of(dims(0)?, dims(1)?, 1),
        "GroupConvolutionBackpropData" => of(dims(0)?, dims(1)?, 2),
        "ScaledDotProductAttention" => {
            let (query, keys, values) = (dims(0)?, dims(1)?, dims(2)?);
            let rows = &query[..query.len().checked_sub(1)?];
            let length = keys.get(keys.len().checked_sub(2)?)?;
            let widths = [query.last()?, values.last()?];
            Some(widths.map(|width| [rows, &[length.clone(), width.clone()]].concat()).into())
        }
        "LSTMCell" | "GRUCell" | "RNNCell" | "LSTMSequence" | "GRUSequence" | "RNNSequence" => {
            // The weights of inputs and of the state are the first two matrices of the same rank after the states.
            let first = match name {
                "LSTMCell" => 3,
                "LSTMSequence" => 4,
                "GRUCell" | "RNNCell" => 2,
                _ => 3,
            };
            let data = dims(0)?;
            let rows = &data[..data.len().checked_sub(1)?];
            Some(vec![[rows, dims(first)?].concat(), [rows, dims(first + 1)?].concat()])
        }
        _ => None,
    }
}

/// The product of the lengths of all labels of an equation without an ellipsis.
fn einsum<D: Clone>(equation: &str, inputs: &[Option<&[D]>]) -> Option<Vec<Vec<D>>> {
    let (operands, _) = equation.split_once("->").unwrap_or((equation, ""));
    let mut lengths = std::collections::BTreeMap::new();
    for (operand, dims) in operands.split(',').zip(inputs) {
        let labels: Vec<char> = operand.trim().chars().collect();
        let dims = dims.filter(|dims| dims.len() == labels.len())?;
        lengths.extend(labels.into_iter().zip(dims));
    }
    Some(vec![lengths.into_values().cloned().collect()])
}

/// The lower bound of a length, at least 1 for an open one.
fn least(dim: &Dim) -> Option<u64> {
    match dim.value() {
        Some(length) => u64::try_from(length).ok(),
        None => u64::try_from(dim.lower()).ok().map(|length| length.max(1)),
    }
}

/// An open one counts as its lower bound, and as 1 at least.
pub(crate) fn least_count(dims: &[Dim]) -> Option<u64> {
    dims.iter().try_fold(1_u64, |all, dim| all.checked_mul(least(dim)?))
}

#[cfg(test)]
mod tests {
    use super::{Macs, macs};
    use crate::model::graph::Model;

    fn of(text: &str) -> Macs {
        let mut model = Model::from_text(text).unwrap();
        assert_eq!(crate::infer(&mut model), [], "{text}");
        let graph = model.graph();
        graph.layers().map(|layer| macs(graph, layer)).fold(Macs::default(), Macs::and)
    }

    #[test]
    fn products_convolutions_and_attention_are_counted_by_their_definitions() {
        let known = |count| Macs { count, is_least: false };
        // 2 * 5 results of 3 products each.
        let a = "x = Parameter : f32[2,3]\ny = Parameter : f32[3,5]\n";
        assert_eq!(of(&format!("{a}z = MatMul(x, y)\nr = Result(z)\n")), known(30));
        // 1 * 8 * 4 * 4 results of 3 * 3 * 3 products each.
        let a = "x = Parameter : f32[1,3,6,6]\nw = Parameter : f32[8,3,3,3]\n";
        let attributes = "{strides=\"1,1\", dilations=\"1,1\", pads_begin=\"0,0\", pads_end=\"0,0\"}";
        assert_eq!(of(&format!("{a}z = Convolution(x, w) {attributes}\nr = Result(z)\n")), known(8 * 16 * 27));
        // Scores of 4 * 6 pairs of width 8, and their sum of values of width 16, in 2 heads.
        let a = "q = Parameter : f32[2,4,8]\nk = Parameter : f32[2,6,8]\nv = Parameter : f32[2,6,16]\n";
        let z = "z = ScaledDotProductAttention(q, k, v) {causal=false}\nr = Result(z)\n";
        assert_eq!(of(&format!("{a}{z}")), known(2 * 4 * 6 * (8 + 16)));
        let a = "x = Parameter : f32[2,3]\ny = Parameter : f32[3,5]\n";
        assert_eq!(of(&format!("{a}z = Einsum(x, y) {{equation=\"ij,jk->ik\"}}\nr = Result(z)\n")), known(30));
    }

    #[test]
    fn an_open_length_counts_as_its_lower_bound() {
        let a = "x = Parameter : f32[?,4..9,3]\ny = Parameter : f32[3,5]\nz = MatMul(x, y)\nr = Result(z)\n";
        assert_eq!(of(a), Macs { count: 4 * 5 * 3, is_least: true });
    }
}
