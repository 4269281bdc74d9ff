//! Conversions between f32 and its halves, many values at a time: nearly all weights of a model take this way.

use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};
use typelift_promote::ElementType;

use super::Audit;
use super::audit::Range;

/// The number of values on the stack at a time.
const BLOCK: usize = 1 << 10;
/// The number of values that are looked at side by side, so that the compiler can use vectors.
const LANES: usize = 8;

/// A type of 16 bits that f32 is converted to.
#[derive(Clone, Copy)]
pub(super) struct Narrow {
    is_f16: bool,
    largest: f32,
    overflow: f32,
    normal: f32,
    least: f32,
    inexact: f32,
}

impl Narrow {
    /// From f32 to a half; `None` for other types.
    pub(super) fn new(from: ElementType, to: ElementType) -> Option<Self> {
        let is_half = [ElementType::F16, ElementType::Bf16].contains(&to);
        (from == ElementType::F32 && is_half).then(|| {
            let Range { largest, overflow, normal, least, inexact, .. } = Range::of(from, to);
            let [largest, overflow, normal, least, inexact] =
                [largest, overflow, normal, least, inexact].map(|number| number as f32);
            Self { is_f16: to == ElementType::F16, largest, overflow, normal, least, inexact }
        })
    }

    /// The bytes of the values in the type.
    pub(super) fn convert(self, bytes: &[u8]) -> Vec<u8> {
        let mut out = vec![0; bytes.len() / 2];
        for (block, out) in bytes.chunks(4 * BLOCK).zip(out.chunks_mut(2 * BLOCK)) {
            let (values, count) = floats(block);
            let codes = self.codes(&values);
            for (bytes, code) in out.chunks_exact_mut(2).zip(&codes[..count]) {
                bytes.copy_from_slice(&code.to_le_bytes());
            }
        }
        out
    }

    /// Counts what becomes of the values.
    pub(super) fn audit(self, bytes: &[u8], audit: &mut Audit) {
        for block in bytes.chunks(4 * BLOCK) {
            let (values, count) = floats(block);
            let become_of = self.values(&self.codes(&values));
            let mut tally = Tally::default();
            // What lies beyond the values in a block are zeros, which change nothing.
            let end = count.next_multiple_of(LANES);
            for (values, become_of) in values[..end].chunks_exact(LANES).zip(become_of[..end].chunks_exact(LANES)) {
                tally.add(self, values, become_of);
            }
            tally.add_to(audit);
        }
    }

    /// The codes of values in the type.
    fn codes(self, values: &[f32; BLOCK]) -> [u16; BLOCK] {
        let mut codes = [0; BLOCK];
        if self.is_f16 {
            // As OpenVINO does it, NaN becomes the largest number.
            let mut clamped = [0.0; BLOCK];
            for (clamped, value) in clamped.iter_mut().zip(values) {
                *clamped = value.min(self.largest).max(-self.largest);
            }
            let mut halves = [f16::ZERO; BLOCK];
            halves.convert_from_f32_slice(&clamped);
            for (code, half) in codes.iter_mut().zip(halves) {
                *code = half.to_bits();
            }
        } else {
            for (code, value) in codes.iter_mut().zip(values) {
                let bits = value.clamp(-self.largest, self.largest).to_bits();
                // The low half is rounded away, to the even one of two; of NaN the high half stays.
                let rounded = bits.wrapping_add(0x7fff + (bits >> 16 & 1));
                *code = (if value.is_nan() { bits | 1 << 22 } else { rounded } >> 16) as u16;
            }
        }
        codes
    }

    /// The values that have these codes.
    fn values(self, codes: &[u16; BLOCK]) -> [f32; BLOCK] {
        let mut values = [0.0; BLOCK];
        if self.is_f16 {
            codes.map(f16::from_bits).convert_to_f32_slice(&mut values);
        } else {
            for (value, code) in values.iter_mut().zip(codes) {
                *value = f32::from_bits(u32::from(*code) << 16);
            }
        }
        values
    }
}

/// The bytes of halves as f32; `None` for other types.
pub(super) fn widen(from: ElementType, to: ElementType, bytes: &[u8]) -> Option<Vec<u8>> {
    if to != ElementType::F32 || ![ElementType::F16, ElementType::Bf16].contains(&from) {
        return None;
    }
    let mut out = vec![0; bytes.len() * 2];
    for (block, out) in bytes.chunks(2 * BLOCK).zip(out.chunks_mut(4 * BLOCK)) {
        let mut codes = [0; BLOCK];
        for (code, bytes) in codes.iter_mut().zip(block.chunks_exact(2)) {
            *code = u16::from_le_bytes([bytes[0], bytes[1]]);
        }
        let mut values = [0.0; BLOCK];
        if from == ElementType::F16 {
            codes.map(f16::from_bits).convert_to_f32_slice(&mut values);
        } else {
            codes.map(bf16::from_bits).convert_to_f32_slice(&mut values);
        }
        for (bytes, value) in out.chunks_exact_mut(4).zip(values) {
            bytes.copy_from_slice(&value.to_le_bytes());
        }
    }
    Some(out)
}

/// The values of a block, zeros after them, and how many they are.
fn floats(block: &[u8]) -> ([f32; BLOCK], usize) {
    let mut values = [0.0; BLOCK];
    for (value, bytes) in values.iter_mut().zip(block.chunks_exact(4)) {
        *value = f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    }
    (values, block.len() / 4)
}

/// What was counted in each lane.
#[derive(Default)]
struct Tally {
    rounded: [u32; LANES],
    overflowed: [u32; LANES],
    vanished: [u32; LANES],
    subnormal: [u32; LANES],
    nan: [u32; LANES],
    beyond: [u32; LANES],
    tiny: [u32; LANES],
    inexact: [u32; LANES],
    absolute: [f32; LANES],
    relative: [f32; LANES],
    within: [f32; LANES],
}

impl Tally {
    fn add(&mut self, to: Narrow, values: &[f32], become_of: &[f32]) {
        for lane in 0..LANES {
            let (value, becomes) = (values[lane], become_of[lane]);
            let (size, error) = (value.abs(), (becomes - value).abs());
            let (is_finite, is_nan) = (size <= f32::MAX, size.is_nan());
            let is_within = size <= to.largest;
            // NaN for zero, and for what is infinite: no comparison holds for it.
            let relative = error / size;
            let is_tiny = size < to.least && value != 0.0;
            let overflows = size >= to.overflow || is_nan && to.is_f16;
            let vanishes = becomes == 0.0 && value != 0.0;
            self.nan[lane] += u32::from(is_nan);
            self.overflowed[lane] += u32::from(overflows);
            self.vanished[lane] += u32::from(vanishes);
            self.rounded[lane] += u32::from(error > 0.0 && !overflows && !vanishes);
            self.subnormal[lane] += u32::from(becomes != 0.0 && becomes.abs() < to.normal);
            self.beyond[lane] += u32::from(!is_within);
            self.tiny[lane] += u32::from(is_tiny);
            self.inexact[lane] += u32::from(is_within && !is_tiny && relative > to.inexact);
            let absolute = if is_finite { error } else { 0.0 };
            let within = if is_within { error } else { 0.0 };
            self.absolute[lane] = if absolute > self.absolute[lane] { absolute } else { self.absolute[lane] };
            self.within[lane] = if within > self.within[lane] { within } else { self.within[lane] };
            self.relative[lane] = if relative > self.relative[lane] { relative } else { self.relative[lane] };
        }
    }

    fn add_to(&self, audit: &mut Audit) {
        let sum = |lanes: &[u32; LANES]| lanes.iter().map(|&count| u64::from(count)).sum::<u64>();
        let worst = |lanes: &[f32; LANES]| lanes.iter().copied().fold(0.0, f32::max).into();
        audit.rounded += sum(&self.rounded);
        audit.overflowed += sum(&self.overflowed);
        audit.vanished += sum(&self.vanished);
        audit.subnormal += sum(&self.subnormal);
        audit.nan += sum(&self.nan);
        audit.beyond += sum(&self.beyond);
        audit.tiny += sum(&self.tiny);
        audit.inexact += sum(&self.inexact);
        audit.worst_absolute_error = audit.worst_absolute_error.max(worst(&self.absolute));
        audit.worst_relative_error = audit.worst_relative_error.max(worst(&self.relative));
        audit.worst_within = audit.worst_within.max(worst(&self.within));
    }
}
