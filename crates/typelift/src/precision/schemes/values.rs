//! Values of quantized constants, computed in chunks.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use half::{bf16, f16};
use smallvec::smallvec;
use typelift_promote::ElementType;

use super::super::plan::Loss;
use super::{QuantizedConstant, place};
use crate::base::progress::poll;
use crate::model::graph::Graph;
use crate::model::weights::{Content, Weights, byte_size};
use crate::ops::values::array::Array;
use crate::ops::values::conversion::Stored;

/// Number of values in a chunk.
const PART: usize = 1 << 16;

/// Computation of the values of a quantized constant.
pub(crate) struct Values {
    constant: QuantizedConstant,
    stored: Stored,
    weights: Weights,
    zero_strides: Vec<usize>,
    scale_strides: Vec<usize>,
}

impl Values {
    /// The computation; `None` if the layer does not declare its codes correctly.
    pub(crate) fn of(constant: &QuantizedConstant, graph: &Graph, weights: &Weights) -> Option<Self> {
        let stored = Stored::of(graph.layer(constant.codes)?)?;
        let none = || Some(vec![0; constant.dims.len()]);
        Some(Self {
            stored,
            weights: weights.clone(),
            zero_strides: constant.zero.as_ref().map_or_else(none, |zero| zero.strides(&constant.dims))?,
            scale_strides: constant.scale.strides(&constant.dims)?,
            constant: constant.clone(),
        })
        .filter(|values| values.len() as u64 == stored.count)
    }

    pub(crate) fn len(&self) -> usize {
        self.constant.dims.iter().product()
    }

    /// All values, in the order of the computed tensor. `None` if they exceed the memory limit.
    pub(crate) fn all(&self) -> Option<Vec<f32>> {
        self.weights.hold(self.len() as u64).ok()?;
        let mut values = Vec::with_capacity(self.len());
        for start in (0..self.len()).step_by(PART) {
            poll();
            values.extend(self.part(start..self.len().min(start + PART))?);
        }
        Some(match &self.constant.order {
            Some(order) => transposed(&values, &self.constant.dims, order)?,
            None => values,
        })
    }

    pub(crate) fn part(&self, range: Range<usize>) -> Option<Vec<f32>> {
        let QuantizedConstant { dims, zero, scale, book, .. } = &self.constant;
        let mut values = self.codes(range.clone())?;
        if let Some(book) = book {
            values.iter_mut().try_for_each(|value| {
                *value = *book.get(*value as usize)?;
                Some(())
            })?;
        }
        let row = dims.last().copied().unwrap_or(1).max(1);
        let (mut at, mut rest) = (range.start, &mut values[..]);
        while !rest.is_empty() {
            let within = at % row;
            let (run, others) = rest.split_at_mut((row - within).min(rest.len()));
            let outer = &dims[..dims.len().saturating_sub(1)];
            let start = |strides: &[usize]| {
                let last = strides.last().copied().unwrap_or(0);
                (place(at / row, outer, strides) + within * last, last)
            };
            if let Some(zero) = zero {
                let (first, step) = start(&self.zero_strides);
                run.iter_mut().enumerate().for_each(|(nth, value)| *value -= zero.values()[first + nth * step]);
            }
            let (first, step) = start(&self.scale_strides);
            run.iter_mut().enumerate().for_each(|(nth, value)| *value *= scale.values()[first + nth * step]);
            at += run.len();
            rest = others;
        }
        Some(values)
    }

    fn codes(&self, range: Range<usize>) -> Option<Vec<f32>> {
        let Stored { element_type, offset, .. } = self.stored;
        // Codes of less than a byte are read from a whole byte on.
        let start = range.start / 8 * 8;
        let at = offset.checked_add(byte_size(element_type, start as u64)?.try_into().ok()?)?;
        let count = range.end - start;
        let length = usize::try_from(byte_size(element_type, count as u64)?).ok()?;
        let decode = |bytes: &[u8]| {
            let by_code: Option<Vec<f32>> = match element_type.bits() {
                bits @ (4 | 8) => (0..1_u64 << bits).map(|code| number(element_type, code)).collect(),
                _ => None,
            };
            match (element_type.bits(), by_code) {
                (8, Some(numbers)) => Some(bytes.iter().map(|&code| numbers[usize::from(code)]).collect::<Vec<_>>()),
                (_, Some(numbers)) => {
                    let halves = bytes.iter().flat_map(|&byte| [byte & 15, byte >> 4]);
                    Some(halves.take(count).map(|code| numbers[usize::from(code)]).collect())
                }
                _ => {
                    let array = Array::decode_all(element_type, smallvec![count], bytes)?;
                    Some(array.to_floats().iter().map(|&value| value as f32).collect())
                }
            }
        };
        let mut values = self.weights.with(at, length, decode)??;
        values.drain(..range.start - start);
        Some(values)
    }
}

fn number(element_type: ElementType, code: u64) -> Option<f32> {
    let bytes = code.to_le_bytes();
    let array = Array::decode_all(element_type, smallvec![1], &bytes)?;
    array.to_floats().first().map(|&value| value as f32)
}

fn transposed(values: &[f32], dims: &[usize], order: &[usize]) -> Option<Vec<f32>> {
    let mut strides = vec![1; dims.len()];
    for axis in (1..dims.len()).rev() {
        strides[axis - 1] = strides[axis] * dims[axis];
    }
    let new: Option<(Vec<_>, Vec<_>)> =
        order.iter().map(|&axis| Some((*dims.get(axis)?, *strides.get(axis)?))).collect();
    let (dims, strides) = new.filter(|(new, _)| new.len() == dims.len())?;
    (0..values.len()).map(|at| values.get(place(at, &dims, &strides)).copied()).collect()
}

/// Values in the bytes of another element type, computed when they are read.
pub(crate) struct Dequantized {
    pub(crate) values: Arc<Values>,
    pub(crate) to: ElementType,
}

impl Dequantized {
    pub(crate) fn takes(to: ElementType) -> bool {
        [ElementType::F16, ElementType::Bf16, ElementType::F32, ElementType::F64].contains(&to)
    }

    /// The loss of rounding the values, which are computed in f32. `None` if they cannot be read.
    pub(crate) fn loss(&self) -> Option<Loss> {
        let count = self.values.len();
        let mut loss = Loss { n: count as u64, ..Loss::default() };
        let step = if self.values.constant.order.is_some() { count.max(1) } else { PART };
        for start in (0..count).step_by(step) {
            poll();
            let end = count.min(start + step);
            let values = if step == PART { self.values.part(start..end)? } else { self.values.all()? };
            values.into_iter().for_each(|value| self.count(value, &mut loss));
        }
        Some(loss)
    }

    fn count(&self, value: f32, loss: &mut Loss) {
        let (stored, is_normal) = match self.to {
            ElementType::F16 => (f16::from_f32(value).to_f32(), f16::from_f32(value).is_normal()),
            ElementType::Bf16 => (bf16::from_f32(value).to_f32(), bf16::from_f32(value).is_normal()),
            _ => (value, true),
        };
        if value.is_nan() {
            loss.nan += 1;
        } else if stored.is_infinite() && value.is_finite() {
            loss.to_inf += 1;
        } else if value != 0.0 {
            let error = (f64::from(stored) - f64::from(value)).abs();
            loss.to_zero += u64::from(stored == 0.0);
            loss.to_subnormal += u64::from(stored != 0.0 && !is_normal);
            loss.max_abs = loss.max_abs.max(error);
            loss.max_rel = loss.max_rel.max(error / f64::from(value).abs());
        }
    }

    fn write(&self, values: &[f32], bytes: &mut Vec<u8>) {
        bytes.clear();
        match self.to {
            ElementType::F16 => values.iter().for_each(|&value| bytes.extend(f16::from_f32(value).to_le_bytes())),
            ElementType::Bf16 => values.iter().for_each(|&value| bytes.extend(bf16::from_f32(value).to_le_bytes())),
            ElementType::F64 => values.iter().for_each(|&value| bytes.extend(f64::from(value).to_le_bytes())),
            _ => values.iter().for_each(|&value| bytes.extend(value.to_le_bytes())),
        }
    }
}

impl Content for Dequantized {
    fn len(&self) -> u64 {
        self.values.len() as u64 * u64::from(self.to.bits()) / 8
    }

    fn read(&self, range: Range<u64>, look: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        let missing = || io::Error::from(io::ErrorKind::UnexpectedEof);
        let size = u64::from(self.to.bits()) / 8;
        let (first, last) = ((range.start / size) as usize, range.end.div_ceil(size) as usize);
        // Reordered values are computed all at once.
        let whole = match self.values.constant.order {
            Some(_) => Some(self.values.all().ok_or_else(missing)?),
            None => None,
        };
        let mut bytes = Vec::new();
        for start in (first..last).step_by(PART) {
            poll();
            let part = start..last.min(start + PART);
            match &whole {
                Some(whole) => self.write(whole.get(part).ok_or_else(missing)?, &mut bytes),
                None => self.write(&self.values.part(part).ok_or_else(missing)?, &mut bytes),
            }
            let begin = start as u64 * size;
            let from = range.start.saturating_sub(begin) as usize;
            let to = (range.end - begin).min(bytes.len() as u64) as usize;
            look(bytes.get(from..to).ok_or_else(missing)?)?;
        }
        Ok(())
    }
}
