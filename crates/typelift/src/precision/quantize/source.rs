//! Reading of the values to be quantized, block by block.
//!
//! A large constant is never completely in memory. One pass over its values computes the scales, and codes are
//! computed when they are read. The scales of the last constants are cached, because codes and scales of a constant
//! are written one after the other.

use std::io;
use std::mem;
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock};

use smallvec::smallvec;
use typelift_promote::ElementType;

use super::grid::Grid;
use super::mode::Mode;
use super::numbers::{Bounds, SMALL, Scale, decode, encode, pack};
use crate::base::parallel::share;
use crate::base::progress::poll;
use crate::model::weights::{Content, TooLarge, Weights, byte_size};
use crate::ops::values::array::Array;
use crate::ops::values::conversion::{Stored, widened};

/// Number of values that a thread processes at a time. It is even, so that a block of 4-bit codes fills whole bytes.
const BLOCK: usize = 1 << 18;

/// Number of constants whose scales are cached.
const RECENT: usize = 4;

/// Constant to be quantized.
pub(super) struct Source {
    pub(super) stored: Stored,
    pub(super) grid: Grid,
    pub(super) mode: Mode,
    pub(super) weights: Arc<Weights>,
    pub(super) scales: KnownScales,
}

/// Errors of values that share a scale.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RowError {
    /// The sum of squared errors.
    pub(super) squares: f64,
    pub(super) largest: f32,
}

impl Source {
    fn block(&self, nth: u64) -> Range<usize> {
        let start = nth as usize * BLOCK;
        start..self.grid.len().min(start + BLOCK)
    }

    fn is_small(&self) -> bool {
        self.grid.len() < SMALL
    }

    /// Fails if the results for all scales exceed the memory limit.
    pub(super) fn reserve(&self) -> Result<(), TooLarge> {
        let size = size_of::<Bounds>().max(size_of::<RowError>()) + size_of::<Scale>();
        self.weights.reserve(self.grid.scales().saturating_mul(size) as u64)
    }

    /// Reads a range of values as f32; `None` if they cannot be read.
    fn floats(&self, values: Range<usize>, floats: &mut Vec<f32>) -> Option<()> {
        let Stored { element_type, offset, .. } = self.stored;
        let at = offset.checked_add(byte_size(element_type, values.start as u64)?.try_into().ok()?)?;
        let length = byte_size(element_type, values.len() as u64)?.try_into().ok()?;
        floats.clear();
        self.weights.with(at, length, |bytes| to_floats(element_type, bytes, values.len(), floats))?
    }

    /// Calls `look` for all values, block by block on several threads, with one result for each scale. Merges the
    /// results of all blocks.
    fn scan<T: Clone + Send + Sync>(
        &self,
        none: &T,
        look: impl Fn(&[f32], Range<usize>, &mut [T]) + Sync,
        merge: impl Fn(&mut T, &T) + Sync,
    ) -> Option<Vec<T>> {
        self.reserve().ok()?;
        let all = Mutex::new(vec![none.clone(); self.grid.scales()]);
        let blocks = self.grid.len().div_ceil(BLOCK) as u64;
        share("values", blocks, self.weights.on_one_thread, |(floats, found): &mut (Vec<f32>, Vec<T>), nth| {
            let values = self.block(nth);
            let scales = self.grid.scales_of(&values);
            self.floats(values.clone(), floats).ok_or(())?;
            found.clear();
            found.resize(scales.len(), none.clone());
            look(floats, values, found);
            let mut all = all.lock().map_err(drop)?;
            let into = all.get_mut(scales).ok_or(())?;
            into.iter_mut().zip(found.iter()).for_each(|(into, found)| merge(into, found));
            Ok::<_, ()>(())
        })
        .ok()?;
        all.into_inner().ok()
    }

    /// `None` if they cannot be read.
    pub(super) fn bounds(&self) -> Option<Vec<Bounds>> {
        let look = |floats: &[f32], values: Range<usize>, found: &mut [Bounds]| {
            let first = self.grid.scales_of(&values).start;
            for run in self.grid.runs(values) {
                let found = &mut found[run.scale - first..];
                let values = &floats[run.values];
                if run.is_across {
                    found.iter_mut().zip(values).for_each(|(found, &value)| *found = widest(*found, value));
                } else if let Some(found) = found.first_mut() {
                    *found = found.and(bounds_of(values));
                }
            }
        };
        self.scan(&Bounds::NONE, look, |into, found| *into = into.and(*found))
    }

    pub(super) fn scales_for(&self, bounds: &[Bounds]) -> Vec<Scale> {
        bounds.iter().map(|&bounds| Scale::of(self.mode, bounds, self.is_small())).collect()
    }

    /// `is_stored` is true if scales are rounded to their stored type first.
    pub(super) fn errors(&self, scales: &[Scale], is_stored: bool) -> Option<Vec<RowError>> {
        let steps: Vec<f32> =
            scales.iter().map(|scale| if is_stored { scale.stored(self.mode) } else { scale.step }).collect();
        let look = |floats: &[f32], values: Range<usize>, found: &mut [RowError]| {
            let first = self.grid.scales_of(&values).start;
            let mut codes = vec![0; floats.len()];
            self.encode(floats, values.clone(), scales, &mut codes);
            for run in self.grid.runs(values) {
                for (nth, at) in run.values.enumerate() {
                    let scale = run.scale + if run.is_across { nth } else { 0 };
                    let value = decode(self.mode, codes[at], scales[scale].zero) * steps[scale];
                    let error = (value - floats[at]).abs();
                    let found = &mut found[scale - first];
                    found.squares += f64::from(error) * f64::from(error);
                    found.largest = found.largest.max(error);
                }
            }
        };
        self.scan(&RowError::default(), look, |into: &mut RowError, found: &RowError| {
            into.squares += found.squares;
            into.largest = into.largest.max(found.largest);
        })
    }

    fn encode(&self, floats: &[f32], values: Range<usize>, scales: &[Scale], codes: &mut [u8]) {
        for run in self.grid.runs(values) {
            let scales = scales.get(run.scale..).unwrap_or_default();
            encode(self.mode, &floats[run.values.clone()], scales, run.is_across, &mut codes[run.values]);
        }
    }
}

/// Appends the values of a constant as f32. `None` for a type that is not numeric.
fn to_floats(element_type: ElementType, bytes: &[u8], count: usize, floats: &mut Vec<f32>) -> Option<()> {
    let f32s = |bytes: &[u8], floats: &mut Vec<f32>| {
        floats.extend(bytes.chunks_exact(4).map(|it| f32::from_le_bytes([it[0], it[1], it[2], it[3]])));
    };
    match element_type {
        ElementType::F32 => f32s(bytes, floats),
        ElementType::F16 | ElementType::Bf16 => f32s(&widened(element_type, bytes)?, floats),
        _ => {
            let values = Array::decode_all(element_type, smallvec![count], bytes)?;
            floats.extend(values.to_floats().iter().map(|&value| value as f32));
        }
    }
    Some(())
}

fn widest(bounds: Bounds, value: f32) -> Bounds {
    // NaN is treated as infinite, so that it is reported.
    let value = if value.is_nan() { f32::INFINITY } else { value };
    Bounds {
        min: if value < bounds.min { value } else { bounds.min },
        max: if value > bounds.max { value } else { bounds.max },
    }
}

/// Several are processed together, so that the compiler can use vector instructions.
fn bounds_of(values: &[f32]) -> Bounds {
    const LANES: usize = 16;
    let (mut min, mut max, mut nan) = ([f32::INFINITY; LANES], [f32::NEG_INFINITY; LANES], [0_u32; LANES]);
    let chunks = values.chunks_exact(LANES);
    let rest = chunks.remainder().iter().fold(Bounds::NONE, |bounds, &value| widest(bounds, value));
    for chunk in chunks {
        for lane in 0..LANES {
            let value = chunk[lane];
            min[lane] = if value < min[lane] { value } else { min[lane] };
            max[lane] = if value > max[lane] { value } else { max[lane] };
            nan[lane] |= u32::from(value.is_nan());
        }
    }
    let lanes = min.into_iter().zip(max).map(|(min, max)| Bounds { min, max });
    let bounds = lanes.fold(rest, Bounds::and);
    if nan.iter().any(|&nan| nan != 0) { widest(bounds, f32::INFINITY) } else { bounds }
}

/// Scales of a constant, computed by one thread; the inner `None` means that its values cannot be read.
type SharedScales = Arc<OnceLock<Option<Vec<Scale>>>>;

/// The scales of a constant that were computed with its plan. They follow from the rest of the plan, so that all are equal.
#[derive(Clone, Debug, Default)]
pub(super) struct KnownScales(SharedScales);

impl KnownScales {
    /// Keeps the scales; the first ones stay.
    pub(super) fn set(&self, scales: Vec<Scale>) {
        // Scales that are known already are the same.
        let _known = self.0.set(Some(scales));
    }
}

impl PartialEq for KnownScales {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// Cache of the scales of the last constants.
#[derive(Default)]
pub(super) struct Recent {
    scales: Mutex<Vec<(usize, SharedScales)>>,
}

impl Recent {
    fn of(&self, key: usize, source: &Source) -> Option<SharedScales> {
        if source.scales.0.get().is_some() {
            return Some(source.scales.0.clone());
        }
        let mut known = self.scales.lock().ok()?;
        let found = known.iter().position(|(known, _)| *known == key);
        let entry = found.map_or_else(|| (key, Arc::default()), |at| known.remove(at));
        let scales = entry.1.clone();
        known.push(entry);
        let surplus = known.len().saturating_sub(RECENT);
        known.drain(..surplus);
        drop(known);
        scales.get_or_init(|| source.bounds().map(|bounds| source.scales_for(&bounds)));
        Some(scales)
    }
}

/// Kind of constant that replaces a quantized one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Codes,
    Scales,
    ZeroPoints,
}

/// Bytes of such a constant, computed when they are read.
pub(super) struct Made {
    pub(super) source: Arc<Source>,
    pub(super) part: Part,
    /// Shared by all constants of a model.
    pub(super) recent: Arc<Recent>,
}

impl Made {
    pub(super) fn element_type(&self) -> ElementType {
        match self.part {
            Part::Codes | Part::ZeroPoints => self.source.mode.codes(),
            Part::Scales => self.source.mode.scales(),
        }
    }

    fn count(&self) -> usize {
        if self.part == Part::Codes { self.source.grid.len() } else { self.source.grid.scales() }
    }

    fn bytes(&self, values: Range<usize>, scales: &[Scale], buffers: &mut Buffers) -> Option<()> {
        let Buffers { floats, codes, bytes } = buffers;
        bytes.clear();
        codes.clear();
        match self.part {
            Part::Scales => scales.get(values)?.iter().for_each(|scale| scale.write(self.source.mode, bytes)),
            Part::ZeroPoints => codes.extend(scales.get(values)?.iter().map(|scale| scale.zero)),
            Part::Codes => {
                self.source.floats(values.clone(), floats)?;
                codes.resize(values.len(), 0);
                self.source.encode(floats, values, scales, codes);
            }
        }
        match self.element_type().bits() {
            _ if self.part == Part::Scales => {}
            4 => pack(codes, bytes),
            _ => mem::swap(codes, bytes),
        }
        Some(())
    }
}

/// Buffers that are reused for each block.
#[derive(Default)]
struct Buffers {
    floats: Vec<f32>,
    codes: Vec<u8>,
    bytes: Vec<u8>,
}

impl Content for Made {
    fn len(&self) -> u64 {
        byte_size(self.element_type(), self.count() as u64).and_then(|size| size.try_into().ok()).unwrap_or(0)
    }

    fn read(&self, range: Range<u64>, look: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        let missing = || io::Error::from(io::ErrorKind::UnexpectedEof);
        let known = self.recent.of(Arc::as_ptr(&self.source) as usize, &self.source).ok_or_else(missing)?;
        let scales = known.get().and_then(Option::as_ref).ok_or_else(missing)?;
        let bits = u64::from(self.element_type().bits());
        // A scale has two bytes, so the range may begin within a value.
        let (start, end) =
            ((range.start * 8 / bits) as usize, self.count().min((range.end * 8).div_ceil(bits) as usize));
        let mut buffers = Buffers::default();
        let mut skipped = (range.start - start as u64 * bits / 8) as usize;
        let mut left = (range.end - range.start) as usize;
        for at in (start..end).step_by(BLOCK / 4) {
            poll();
            self.bytes(at..end.min(at + BLOCK / 4), scales, &mut buffers).ok_or_else(missing)?;
            let bytes = buffers.bytes.get(skipped..).ok_or_else(missing)?;
            let bytes = &bytes[..left.min(bytes.len())];
            (skipped, left) = (0, left - bytes.len());
            look(bytes)?;
        }
        Ok(())
    }
}
