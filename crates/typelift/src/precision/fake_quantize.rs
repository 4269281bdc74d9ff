//! Weights behind FakeQuantize, stored as integers.
//!
//! A FakeQuantize of constants gives one of `levels` values: `low + k * (high - low) / (levels - 1)`. The constant becomes
//! the integers `k`, and layers after it compute `(k - zero point) * scale`, as OpenVINO's own conversion writes it.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use smallvec::smallvec;
use typelift_promote::ElementType;

use super::schemes::{Operand, dims_of, place};
use crate::base::progress::poll;
use crate::edit::Edit;
use crate::model::graph::{EditError, Graph, LayerId, NewLayer, Output};
use crate::model::weights::{Content, Weights, byte_size};
use crate::ops::values::array::Array;
use crate::ops::values::conversion::Stored;
use crate::ops::{self, LayerKind};

/// The number of values that are computed together. It is even, so that a part ends with a whole byte.
const PART: usize = 1 << 16;

/// Numbers of levels that integers of 8 bits hold.
pub(crate) const LEVELS: std::ops::RangeInclusive<u32> = 3..=256;

/// Replaces the constant of a FakeQuantize by integers, and returns the tensor of its values.
///
/// # Errors
/// [`EditError::Other`] with the reason why the constant stays as it is.
pub(crate) fn to_integers(graph: &mut Edit<'_>, id: LayerId) -> Result<Output, EditError> {
    let weights = Arc::new(graph.weights().clone());
    let refused = |reason: &str| EditError::Other(reason.to_owned());
    let source = RangedConstant::of(graph, &weights, id)
        .ok_or_else(|| refused("it has no constant of 3 to 256 levels, or ranges that are not constant"))?;
    let form = LevelStorage::of(&source).ok_or_else(|| refused("a range is empty, or its values are not finite"))?;
    let (dims, scales, zeros) = (source.dims.clone(), source.scales(), source.zeros(form.offset));
    if scales.iter().any(|&scale| !scale.is_finite() || scale <= 0.0) {
        return Err(refused("a range of results is empty"));
    }
    let (name, levels) = (source.name.clone(), source.levels);
    let range_dims = source.range_dims();
    let codes = LevelCodes { source, form, weights };
    if codes.have_nan() {
        return Err(refused("a weight is not a number, which no integer represents"));
    }
    let new = graph.made_constant(form.element_type, &dims, codes);
    let new = new.named(&graph.unused_name(format!("{name}/integers")));
    let new = graph.add(new, &[])?.output(0);
    let mut value = graph.add(NewLayer::convert(ElementType::F32), &[new])?.output(0);
    let arithmetic = |graph: &mut Edit<'_>, ty: &str, value, operand: &[f32]| {
        let bytes: Vec<u8> = operand.iter().flat_map(|number| number.to_le_bytes()).collect();
        let operand = graph.constant(ElementType::F32, &range_dims, &bytes)?;
        let new = NewLayer::new(ty, "opset1").with_attribute("auto_broadcast", "numpy");
        Ok::<_, EditError>(graph.add(new, &[value, operand])?.output(0))
    };
    // Less than this is what f32 rounds.
    let rounded = f32::EPSILON * levels;
    if zeros.iter().any(|&zero| zero.abs() > rounded) {
        value = arithmetic(graph, "Subtract", value, &zeros)?;
    }
    arithmetic(graph, "Multiply", value, &scales)
}

struct RangedConstant {
    name: String,
    stored: Stored,
    dims: Vec<usize>,
    levels: f32,
    /// The lowest and highest input, and the lowest and highest result.
    ranges: [Operand; 4],
    /// The steps of the inputs through their ranges, by axis.
    strides: [Vec<usize>; 2],
}

impl RangedConstant {
    fn of(graph: &Graph, weights: &Weights, id: LayerId) -> Option<Self> {
        let layer = graph.layer(id)?;
        let levels: u32 = layer.attribute("levels")?.trim().parse().ok().filter(|levels| LEVELS.contains(levels))?;
        let feed = |id: LayerId| graph.layer(graph.producer(id.input(0))?.layer);
        let mut constant = feed(id)?;
        if ops::kind(constant) == LayerKind::Convert {
            constant = feed(constant.id())?;
        }
        let is_f32 = layer.outputs().first()?.element_type() == ElementType::F32;
        let stored = Stored::of(constant)
            .filter(|stored| is_f32 && stored.element_type.is_float() && ops::is_constant(constant))?;
        let dims = dims_of(constant)?;
        let range = |input| Operand::of(graph, weights, id, input);
        let ranges = [range(1)?, range(2)?, range(3)?, range(4)?];
        let strides = [ranges[0].strides(&dims)?, ranges[1].strides(&dims)?];
        let fits = ranges[2].fits(&dims) && ranges[3].fits(&dims);
        fits.then(|| Self { name: constant.name().to_owned(), stored, dims, levels: levels as f32, ranges, strides })
    }

    /// The dimensions of scales and zero points: those of the ranges of results.
    fn range_dims(&self) -> Vec<i64> {
        let [.., low, high] = &self.ranges;
        let (longer, shorter) = if low.dims().len() >= high.dims().len() { (low, high) } else { (high, low) };
        let skipped = longer.dims().len() - shorter.dims().len();
        let other =
            |axis: usize| axis.checked_sub(skipped).and_then(|axis| shorter.dims().get(axis)).copied().unwrap_or(1);
        longer.dims().iter().enumerate().map(|(axis, &dim)| dim.max(other(axis)) as i64).collect()
    }

    /// For each scale its lowest and highest result.
    fn results(&self) -> Vec<(f32, f32)> {
        let dims: Vec<usize> = self.range_dims().iter().map(|&dim| dim as usize).collect();
        let [.., low, high] = &self.ranges;
        let strides = [low.strides(&dims), high.strides(&dims)].map(Option::unwrap_or_default);
        let count = dims.iter().product();
        (0..count)
            .map(|at| (low.values()[place(at, &dims, &strides[0])], high.values()[place(at, &dims, &strides[1])]))
            .collect()
    }

    fn scales(&self) -> Vec<f32> {
        self.results().into_iter().map(|(low, high)| (high - low) / (self.levels - 1.0)).collect()
    }

    fn zeros(&self, offset: f32) -> Vec<f32> {
        let scaled = self.results().into_iter().zip(self.scales());
        scaled.map(|((low, _), scale)| -low / scale - offset).collect()
    }

    fn level(&self, value: f32, at: usize) -> f32 {
        let [low, high] = [0, 1].map(|range| self.ranges[range].values()[place(at, &self.dims, &self.strides[range])]);
        let highest = self.levels - 1.0;
        ((value - low) / (high - low) * highest).round_ties_even().clamp(0.0, highest)
    }
}

#[derive(Clone, Copy)]
struct LevelStorage {
    element_type: ElementType,
    /// The level that is stored as 0.
    offset: f32,
}

impl LevelStorage {
    /// The form that OpenVINO chooses; `None` if a range is empty.
    fn of(source: &RangedConstant) -> Option<Self> {
        let [low, high, ..] = &source.ranges;
        let count = source.dims.iter().product::<usize>();
        if (0..count).any(|at| {
            let [low, high] =
                [(low, 0), (high, 1)].map(|(range, nth)| range.values()[place(at, &source.dims, &source.strides[nth])]);
            !(low < high && low.is_finite() && high.is_finite())
        }) {
            return None;
        }
        let results = source.results();
        let is_small = source.levels <= 16.0;
        let (unsigned, signed) =
            if is_small { (ElementType::U4, ElementType::I4) } else { (ElementType::U8, ElementType::I8) };
        Some(if results.iter().all(|&(low, _)| low == 0.0) {
            Self { element_type: unsigned, offset: 0.0 }
        } else if results.iter().all(|&(_, high)| high == 0.0) && (17.0..=129.0).contains(&source.levels) {
            Self { element_type: ElementType::I8, offset: source.levels - 1.0 }
        } else {
            Self { element_type: signed, offset: (source.levels / 2.0).floor() }
        })
    }
}

/// The integers, computed when they are read.
struct LevelCodes {
    source: RangedConstant,
    form: LevelStorage,
    weights: Arc<Weights>,
}

impl LevelCodes {
    fn count(&self) -> usize {
        self.source.dims.iter().product()
    }

    fn stored(&self, values: Range<usize>) -> Option<Array> {
        let Stored { element_type, offset, .. } = self.source.stored;
        let at = offset.checked_add(byte_size(element_type, values.start as u64)?.try_into().ok()?)?;
        let length = byte_size(element_type, values.len() as u64)?.try_into().ok()?;
        self.weights.with(at, length, |bytes| Array::decode_all(element_type, smallvec![values.len()], bytes))?
    }

    fn have_nan(&self) -> bool {
        let mut parts = (0..self.count()).step_by(PART).map(|start| start..self.count().min(start + PART));
        parts.any(|part| self.stored(part).is_some_and(|array| array.to_floats().iter().any(|value| value.is_nan())))
    }

    fn part(&self, values: Range<usize>) -> Option<Vec<u8>> {
        let floats = self.stored(values.clone())?.to_floats();
        let code = |(at, &value): (usize, &f64)| {
            (self.source.level(value as f32, values.start + at) - self.form.offset) as i32 as u8
        };
        let codes: Vec<u8> = floats.iter().enumerate().map(code).collect();
        Some(match self.form.element_type.bits() {
            4 => codes.chunks(2).map(|pair| pair[0] & 15 | pair.get(1).copied().unwrap_or(0) << 4).collect(),
            _ => codes,
        })
    }
}

impl Content for LevelCodes {
    fn len(&self) -> u64 {
        let count = self.count() as u64;
        (count * u64::from(self.form.element_type.bits())).div_ceil(8)
    }

    fn read(&self, range: Range<u64>, look: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        let missing = || io::Error::from(io::ErrorKind::UnexpectedEof);
        let in_byte = 8 / u64::from(self.form.element_type.bits());
        let count = self.count();
        let (first, end) = (range.start * in_byte, (range.end * in_byte).min(count as u64));
        for start in (first as usize..end as usize).step_by(PART) {
            poll();
            let bytes = self.part(start..(end as usize).min(start + PART)).ok_or_else(missing)?;
            look(&bytes)?;
        }
        Ok(())
    }
}
