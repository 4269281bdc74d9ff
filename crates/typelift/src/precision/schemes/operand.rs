//! Scales and zero points: small constants that are broadcast to the codes.

use half::f16;
use smallvec::smallvec;
use typelift_promote::ElementType;

use super::{Sharing, dims_of, is_convert, name, source};
use crate::model::graph::{Graph, Layer, LayerId};
use crate::model::weights::Weights;
use crate::ops;
use crate::ops::values::array::Array;
use crate::ops::values::conversion::Stored;

/// Small tensor that depends only on constants.
#[derive(Clone, Debug)]
pub(crate) struct Operand {
    dims: Vec<usize>,
    pub(super) values: Vec<f32>,
    pub(super) stored: ElementType,
}

impl Operand {
    /// `None` if it is not a scale or zero point that depends only on constants.
    pub(crate) fn of(graph: &Graph, weights: &Weights, id: LayerId, input: usize) -> Option<Self> {
        Self::at(graph, weights, source(graph, id, input)?.id())
    }

    pub(super) fn at(graph: &Graph, weights: &Weights, id: LayerId) -> Option<Self> {
        let layer = graph.layer(id)?;
        if ops::is_constant(layer) {
            return Self::read(layer, weights);
        }
        match name(layer) {
            "Convert" => {
                let from = source(graph, id, 0)?;
                let mut operand = Self::at(graph, weights, from.id())?;
                // CPU plugins compute constant expressions in f32, and round only computed values to f16.
                let is_computed = !ops::is_constant(from) && !is_convert(from);
                if is_computed && layer.outputs().first()?.element_type() == ElementType::F16 {
                    operand.values.iter_mut().for_each(|value| *value = f16::from_f32(*value).to_f32());
                }
                Some(operand)
            }
            "Reshape" | "Unsqueeze" | "Squeeze" => {
                let operand = Self::at(graph, weights, source(graph, id, 0)?.id())?;
                let dims = dims_of(layer)?;
                (dims.iter().product::<usize>() == operand.values.len()).then_some(Self { dims, ..operand })
            }
            "Multiply" => {
                let [a, b] = [0, 1].map(|input| source(graph, id, input).map(Layer::id));
                let (a, b) = (Self::at(graph, weights, a?)?, Self::at(graph, weights, b?)?);
                let (mut large, small) = if a.values.len() >= b.values.len() { (a, b) } else { (b, a) };
                let factor = *small.values.first().filter(|_| small.values.len() == 1)?;
                large.values.iter_mut().for_each(|value| *value *= factor);
                Some(large)
            }
            _ => None,
        }
    }

    fn read(constant: &Layer, weights: &Weights) -> Option<Self> {
        let stored = Stored::of(constant)?;
        weights.compute(stored.count).ok()?;
        let (size, count) = (usize::try_from(stored.size()?).ok()?, usize::try_from(stored.count).ok()?);
        let array = weights
            .with(stored.offset, size, |bytes| Array::decode_all(stored.element_type, smallvec![count], bytes))??;
        let values = array.to_floats().iter().map(|&value| value as f32).collect();
        Some(Self { dims: dims_of(constant)?, values, stored: stored.element_type })
    }

    pub(crate) fn dims(&self) -> &[usize] {
        &self.dims
    }

    pub(crate) fn values(&self) -> &[f32] {
        &self.values
    }

    /// 0 for a dimension to which it is broadcast.
    pub(crate) fn strides(&self, codes: &[usize]) -> Option<Vec<usize>> {
        let skipped = codes.len().checked_sub(self.dims.len())?;
        let (mut strides, mut stride) = (vec![0; codes.len()], 1);
        for (axis, &dim) in self.dims.iter().enumerate().rev() {
            if dim != 1 && dim != codes[skipped + axis] {
                return None;
            }
            strides[skipped + axis] = if dim == 1 { 0 } else { stride };
            stride *= dim;
        }
        Some(strides)
    }

    pub(crate) fn fits(&self, codes: &[usize]) -> bool {
        self.strides(codes).is_some()
    }

    pub(super) fn sharing(&self, codes: &[usize]) -> Sharing {
        let all: usize = codes.iter().product();
        if self.values.len() <= 1 {
            return Sharing::Tensor;
        }
        if self.values.len() == all {
            return Sharing::Value;
        }
        let strides = self.strides(codes).unwrap_or_default();
        let spread: Vec<_> = (0..codes.len()).filter(|&axis| codes[axis] != 1 && strides[axis] == 0).collect();
        // Weights in groups have three dimensions: rows, groups and the values of a group. Weights with two have no groups.
        match spread[..] {
            [axis] if codes.len() >= 3 && axis > 0 && (strides[axis - 1] != 0 || codes[axis - 1] == 1) => {
                Sharing::Group(codes[axis] as u64)
            }
            _ => Sharing::Channel,
        }
    }
}
