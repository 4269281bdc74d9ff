//! Selection of the constants that are weights of a layer, by nncf's rules.

use typelift_promote::ElementType;

use super::grid::Grid;
use super::mode::Group;
use super::order::Order;
use crate::base::hash::HashSet;
use crate::model::graph::{Graph, Layer, LayerId, Output};
use crate::ops;
use crate::ops::values::conversion::Stored;

/// Kind of layer that uses weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    MatMul,
    Gather,
    Convolution,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Weight {
    pub(super) constant: LayerId,
    /// First layer that uses it, and the position of the input.
    pub(super) consumer: LayerId,
    pub(super) port: usize,
    pub(super) role: Role,
    pub(super) stored: Stored,
    pub(super) dims: Vec<usize>,
    /// True for each axis along which values share a scale.
    pub(super) reduced: Vec<bool>,
}

impl Weight {
    /// `None` if there are several, or none.
    pub(super) fn axis(&self) -> Option<usize> {
        let mut axes = (0..self.dims.len()).filter(|&axis| self.reduced[axis]);
        axes.next().filter(|_| axes.next().is_none())
    }

    pub(super) fn channel_size(&self) -> Option<usize> {
        self.axis().map(|axis| self.dims[axis])
    }

    /// `None` if the length of the only reduced axis is not a multiple of the group size.
    pub(super) fn shapes(&self, group: Group) -> Option<[Vec<usize>; 2]> {
        let (mut codes, mut reduced) = (self.dims.clone(), self.reduced.clone());
        if let Group::Of(size) = group {
            let (axis, size) = (self.axis()?, usize::try_from(size).ok()?);
            let dim = codes[axis];
            if dim % size != 0 {
                return None;
            }
            codes.splice(axis..=axis, [dim / size, size]);
            reduced.splice(axis..=axis, [false, true]);
        }
        let scales = codes.iter().zip(&reduced).map(|(&dim, &is_reduced)| if is_reduced { 1 } else { dim }).collect();
        Some([codes, scales])
    }

    pub(super) fn grid(&self, group: Group) -> Option<Grid> {
        let [codes, scales] = self.shapes(group)?;
        Grid::new(codes.into_iter().zip(scales).map(|(dim, scale)| (dim, scale != dim || dim == 1)))
    }
}

pub(super) struct Weights {
    /// Each constant once, in the order of the first layers that use them.
    pub(super) list: Vec<Weight>,
    /// True if the last layer with weights is not in the list, because it is excluded or shares its constant.
    pub(super) is_last_left_out: bool,
}

/// Finds the weights of a graph. `is_left_out` is true for weights that are not quantized.
pub(super) fn find(graph: &Graph, mut is_left_out: impl FnMut(&Weight) -> bool) -> Weights {
    let order = Order::of(graph);
    let all: Vec<_> = order.layers.iter().map(|&layer| weights_of(graph, layer, &order.reachable)).collect();
    let last = all.iter().rposition(|weights| !weights.is_empty());
    let (mut known, mut list, mut is_last_left_out) = (HashSet::default(), Vec::new(), false);
    for (at, weights) in all.into_iter().enumerate() {
        for weight in weights {
            if known.contains(&weight.constant) || is_left_out(&weight) || is_rotary(graph, weight.consumer) {
                is_last_left_out = Some(at) == last;
                continue;
            }
            known.insert(weight.constant);
            list.push(weight);
        }
    }
    Weights { list, is_last_left_out }
}

fn weights_of(graph: &Graph, id: LayerId, reachable: &HashSet<LayerId>) -> Vec<Weight> {
    let Some((layer, role)) = graph.layer(id).and_then(|layer| Some((layer, role_of(graph, layer)?))) else {
        return Vec::new();
    };
    if !reachable.contains(&id) {
        return Vec::new();
    }
    let inputs = graph.producers(id).into_iter().take(2).enumerate();
    let fed = inputs.filter_map(|(port, source)| Some((port, source?)));
    let constant = fed.filter(|(_, source)| !reachable.contains(&source.layer));
    constant.filter_map(|(port, source)| weight(graph, layer, role, port, source)).collect()
}

fn role_of(graph: &Graph, layer: &Layer) -> Option<Role> {
    match layer.operation()?.name {
        "MatMul" => Some(Role::MatMul),
        "Convolution" | "GroupConvolution" | "ConvolutionBackpropData" | "GroupConvolutionBackpropData" => {
            Some(Role::Convolution)
        }
        "Gather" => {
            let table = graph.output(graph.producer(layer.id().input(0))?)?.element_type();
            [ElementType::F16, ElementType::F32, ElementType::F64].contains(&table).then_some(Role::Gather)
        }
        _ => None,
    }
}

fn weight(graph: &Graph, layer: &Layer, role: Role, port: usize, source: Output) -> Option<Weight> {
    let constant = constant_behind(graph, source.layer)?;
    let stored = Stored::of(constant)?;
    let shape = constant.outputs().first()?.shape();
    let dims: Option<Vec<_>> = shape.to_static()?.into_iter().map(|dim| usize::try_from(dim).ok()).collect();
    let dims = dims.filter(|dims| !dims.contains(&0))?;
    is_source(stored.element_type).then_some(())?;
    let reduced = reduced_axes(layer, port, dims.len());
    Some(Weight { constant: constant.id(), consumer: layer.id(), port, role, stored, dims, reduced })
}

fn is_source(element_type: ElementType) -> bool {
    use ElementType::{Bf16, F8E4M3, F8E5M2, F16, F32, F64};
    [F16, Bf16, F32, F64, F8E4M3, F8E5M2].contains(&element_type)
}

/// The constant whose values reach a layer through Converts and other layers without computation.
fn constant_behind(graph: &Graph, mut id: LayerId) -> Option<&Layer> {
    loop {
        let layer = graph.layer(id)?;
        if ops::is_constant(layer) {
            return Some(layer);
        }
        let passes_on = ["Convert", "FakeQuantize", "FakeConvert", "Reshape"].contains(&layer.operation()?.name);
        id = graph.producer(id.input(0)).filter(|_| passes_on)?.layer;
    }
}

/// For each axis of the weights, true if values along it share a scale.
fn reduced_axes(layer: &Layer, port: usize, rank: usize) -> Vec<bool> {
    let kept: &[usize] = match layer.operation().map_or("", |operation| operation.name) {
        "MatMul" => {
            let is_set = |name| layer.attribute(name).is_some_and(|value| ["true", "1"].contains(&value.trim()));
            let transposed = is_set(if port == 0 { "transpose_a" } else { "transpose_b" });
            // The inner axis is the last one of the first input, and the last but one of the second.
            let from_end = if transposed == (port == 0) { 2 } else { 1 };
            let inner = rank.saturating_sub(from_end);
            return (0..rank).map(|axis| axis == inner).collect();
        }
        "GroupConvolution" => &[0, 1],
        "ConvolutionBackpropData" => &[1],
        "GroupConvolutionBackpropData" => &[0, 2],
        _ => &[0],
    };
    (0..rank).map(|axis| !kept.contains(&axis)).collect()
}

/// True for a MatMul that computes angles of rotary position embeddings: a Sin and a Cos use its result.
fn is_rotary(graph: &Graph, id: LayerId) -> bool {
    let is = |id: LayerId, name: &str| {
        graph.layer(id).and_then(Layer::operation).is_some_and(|operation| operation.name == name)
    };
    let users = |of: LayerId, name: &'static str| graph.users(of).filter(move |&user| is(user, name));
    let has_both = |of: LayerId| users(of, "Sin").next().is_some() && users(of, "Cos").next().is_some();
    if !is(id, "MatMul") {
        return false;
    }
    let joins = |of: LayerId| {
        let joined = |name| users(of, name).flat_map(|user| users(user, "Concat")).collect::<HashSet<_>>();
        !joined("Sin").is_disjoint(&joined("Cos"))
    };
    let turned = || users(id, "Transpose").any(|it| has_both(it) || users(it, "Concat").any(has_both));
    turned() || users(id, "Concat").any(has_both) || users(id, "Multiply").any(joins)
}
