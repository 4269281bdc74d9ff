//! The arithmetic of quantization: scales from ranges, codes from values, and values from codes, all in f32.
//!
//! A scale is computed from the smallest and the largest value that share it. Codes are computed with the scale in
//! f32, which is then stored in fewer bits. nncf uses NumPy for constants of fewer than [`SMALL`] values, and OpenVINO
//! for others. Their results differ only for tiny scales of floating-point modes.

use half::f16;
use typelift_promote::ElementType;

use super::mode::Mode;
use crate::ops::values::array;

/// Number of values below which nncf computes a constant with NumPy.
pub(super) const SMALL: usize = 10_000;

const SMALLEST_SCALE: f32 = f32::EPSILON;

/// The smallest and the largest value of those that share a scale.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Bounds {
    pub(super) min: f32,
    pub(super) max: f32,
}

impl Bounds {
    pub(super) const NONE: Self = Self { min: f32::INFINITY, max: f32::NEG_INFINITY };

    pub(super) fn and(self, other: Self) -> Self {
        Self { min: self.min.min(other.min), max: self.max.max(other.max) }
    }

    pub(super) fn width(self) -> f32 {
        self.max.max(0.0) - self.min.min(0.0)
    }
}

/// Scale, with a zero point in the modes that have one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Scale {
    /// Difference between consecutive codes, in f32.
    pub(super) step: f32,
    pub(super) zero: u8,
}

impl Scale {
    /// `is_small` is true for a constant of fewer than [`SMALL`] values.
    pub(super) fn of(mode: Mode, bounds: Bounds, is_small: bool) -> Self {
        let largest = bounds.min.abs().max(bounds.max.abs());
        let step = match mode {
            Mode::Int8Asym => return Self::asymmetric(bounds, 255.0),
            Mode::Int4Asym => return Self::asymmetric(bounds, 15.0),
            Mode::Int8Sym => symmetric(bounds, 128.0),
            Mode::Int4Sym => symmetric(bounds, 8.0),
            Mode::Nf4 => divided(largest, 1.0, is_small),
            Mode::Fp4 => divided(largest, 6.0, is_small),
            Mode::Fp8 => divided(largest, 448.0, is_small),
            Mode::Mxfp4 => power_of_two(divided(largest, 6.0, is_small)),
            Mode::Mxfp8 => power_of_two(divided(largest, 448.0, is_small)),
        };
        Self { step, zero: 0 }
    }

    fn asymmetric(bounds: Bounds, largest: f32) -> Self {
        let (low, high) = (bounds.min.min(0.0), bounds.max.max(0.0));
        let step = at_least_the_smallest((high - low) / largest);
        let zero = (-(low / step).round_ties_even()).clamp(0.0, largest) as u8;
        Self { step, zero }
    }

    pub(super) fn stored(self, mode: Mode) -> f32 {
        if mode.has_powers_of_two() { self.step } else { f16::from_f32(self.step).to_f32() }
    }

    pub(super) fn write(self, mode: Mode, bytes: &mut Vec<u8>) {
        if mode.has_powers_of_two() {
            bytes.push((self.step.to_bits() >> 23) as u8);
        } else {
            bytes.extend(f16::from_f32(self.step).to_le_bytes());
        }
    }
}

fn at_least_the_smallest(scale: f32) -> f32 {
    if scale.abs() < SMALLEST_SCALE { SMALLEST_SCALE } else { scale }
}

/// A symmetric scale. It is negative if the largest value is positive, because there is one more negative code than
/// positive ones.
fn symmetric(bounds: Bounds, codes: f32) -> f32 {
    let below = bounds.min.abs();
    let reach = if below >= bounds.max { below } else { -bounds.max };
    at_least_the_smallest(reach / codes)
}

fn divided(largest: f32, codes: f32, is_small: bool) -> f32 {
    if is_small { at_least_the_smallest(largest / codes) } else { at_least_the_smallest(largest) / codes }
}

/// The smallest power of two that is not below a scale. The logarithm is computed in f32.
fn power_of_two(scale: f32) -> f32 {
    let exponent = (f64::from(scale).log2() as f32).ceil();
    2_f32.powi(exponent as i32)
}

/// Adding this number to one below 2²² rounds it to the nearest integer, ties to even. The integer is then in the low
/// bits.
const ROUNDER: f32 = 12_582_912.0;

fn nearest(value: f32, lowest: f32, highest: f32) -> u8 {
    let within = if value > lowest { value } else { lowest };
    let within = if within < highest { within } else { highest };
    (within + ROUNDER).to_bits() as u8
}

/// Midpoints between the levels of `nf4`, as nncf rounds them.
const NF4_BORDERS: [f32; 15] = [
    -0.848_096_43,
    -0.610_632_9,
    -0.459_995_27,
    -0.339_679_42,
    -0.234_607_4,
    -0.137_911_74,
    -0.045_525_018,
    0.039_790_15,
    0.120_255_254,
    0.203_521_25,
    0.292_013_76,
    0.389_312_54,
    0.501_663_4,
    0.642_786_9,
    0.861_478_4,
];

fn nf4(value: f32) -> u8 {
    NF4_BORDERS.iter().map(|&border| u8::from(border < value)).sum()
}

fn f4(value: f32) -> u8 {
    let size = value.abs();
    let above = [0.25, 1.25, 2.5, 5.0].iter().map(|&border| u8::from(size > border)).sum::<u8>();
    let from = [0.75, 1.75, 3.5].iter().map(|&border| u8::from(size >= border)).sum::<u8>();
    above + from + u8::from(value.is_sign_negative()) * 8
}

/// Rounds a value to f16, and returns the nearest code of `f8e4m3`.
fn f8(value: f32) -> u8 {
    let half = f64::from(f16::from_f32(value).to_f32());
    let size = array::round(ElementType::F8E4M3, half.abs().min(448.0));
    let code = if size < 2_f64.powi(-6) {
        (size * 512.0) as u8
    } else {
        let bits = size.to_bits();
        let exponent = (bits >> 52) as i64 - 1023 + 7;
        (exponent as u8) << 3 | (bits >> 49) as u8 & 7
    };
    code | u8::from(half.is_sign_negative()) << 7
}

fn code(mode: Mode, quotient: f32, zero: f32) -> u8 {
    match mode {
        Mode::Int8Asym => nearest(quotient + zero, 0.0, 255.0),
        Mode::Int4Asym => nearest(quotient + zero, 0.0, 15.0),
        Mode::Int8Sym => nearest(quotient, -128.0, 127.0),
        Mode::Int4Sym => nearest(quotient, -8.0, 7.0) & 15,
        Mode::Nf4 => nf4(quotient),
        Mode::Fp4 | Mode::Mxfp4 => f4(quotient),
        Mode::Fp8 | Mode::Mxfp8 => f8(quotient),
    }
}

/// Writes the codes of values to `codes`, one per byte. `is_across` is true if each value has its own scale; otherwise
/// all have the first one.
pub(super) fn encode(mode: Mode, values: &[f32], scales: &[Scale], is_across: bool, codes: &mut [u8]) {
    /// Each mode has its own loop, so that the compiler can use vector instructions.
    macro_rules! each_mode {
        ($($mode:ident)*) => {
            match mode {
                $(Mode::$mode => encode_with(values, scales, is_across, codes, |quotient, zero| code(Mode::$mode, quotient, zero)),)*
            }
        };
    }
    each_mode!(Int8Asym Int8Sym Int4Asym Int4Sym Nf4 Fp4 Mxfp4 Fp8 Mxfp8);
}

fn encode_with(values: &[f32], scales: &[Scale], is_across: bool, codes: &mut [u8], code: impl Fn(f32, f32) -> u8) {
    let pairs = codes.iter_mut().zip(values);
    if is_across {
        pairs.zip(scales).for_each(|((to, &value), scale)| *to = code(value / scale.step, f32::from(scale.zero)));
    } else if let Some(scale) = scales.first() {
        let (step, zero) = (scale.step, f32::from(scale.zero));
        pairs.for_each(|(to, &value)| *to = code(value / step, zero));
    }
}

pub(super) fn decode(mode: Mode, code: u8, zero: u8) -> f32 {
    match mode {
        Mode::Int8Asym | Mode::Int4Asym => f32::from(code) - f32::from(zero),
        Mode::Int8Sym => f32::from(code as i8),
        Mode::Int4Sym => f32::from((code << 4) as i8 >> 4),
        _ => array::float(mode.codes(), code.into()).unwrap_or(0.0) as f32,
    }
}

/// Packs 4-bit codes in pairs into bytes, the first one in the low bits.
pub(super) fn pack(codes: &[u8], bytes: &mut Vec<u8>) {
    let pairs = codes.chunks_exact(2);
    let last = pairs.remainder().first().copied();
    let start = bytes.len();
    bytes.resize(start + pairs.len(), 0);
    bytes[start..].iter_mut().zip(pairs).for_each(|(byte, pair)| *byte = pair[0] | pair[1] << 4);
    bytes.extend(last);
}
