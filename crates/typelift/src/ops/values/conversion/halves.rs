//! Fast conversions between f32 and 16-bit floats, which are used for almost all weights.

use typelift_promote::ElementType;

use super::Audit;
use super::audit::Range;

/// Number of values whose counts fit into small integers.
const BLOCK: usize = 1 << 10;
/// The number of values that are processed together, so that the compiler can use vector instructions.
const LANES: usize = 8;

/// Bits of an f32 without its sign.
const SIZE: u32 = 0x7fff_ffff;
const SIGN: u32 = 1 << 31;
/// Bits of the exponent of an f32.
const EXPONENT: u32 = 0xff << 23;

/// 16-bit floating-point type. Its conversions use integer operations and sums without branches, which compilers can
/// vectorize.
trait Half {
    const TYPE: ElementType;
    /// Code of infinity; larger codes are NaN.
    const INFINITE: u16;
    /// Smallest code that is not subnormal in f32.
    const NORMAL: u16;

    /// A value beyond the largest number becomes that number.
    fn nearest(value: f32) -> (f32, u32);

    fn value(code: u16) -> f32;
}

struct HalfFloat;
struct BrainFloat;

impl Half for HalfFloat {
    const TYPE: ElementType = ElementType::F16;
    const INFINITE: u16 = 0x7c00;
    const NORMAL: u16 = 0;

    /// As in OpenVINO, NaN becomes the largest number, whatever its sign.
    fn nearest(value: f32) -> (f32, u32) {
        const LARGEST: u32 = 0x477f_e000;
        const LEAST_EXPONENT: u32 = (127 - 14) << 23;
        let bits = value.to_bits();
        let sign = if bits & SIZE > EXPONENT { 0 } else { bits & SIGN };
        let size = least(bits & SIZE, LARGEST);
        let exponent = greatest(size & EXPONENT, LEAST_EXPONENT);
        // Adding this power of two rounds the value, because its last digit has the weight of the last digit of f16.
        let power = f32::from_bits(exponent + (13 << 23));
        let sum = f32::from_bits(size) + power;
        let code = (sum.to_bits() & !(SIGN | EXPONENT)) + ((exponent - LEAST_EXPONENT) >> 13);
        (f32::from_bits((sum - power).to_bits() | sign), code | sign >> 16)
    }

    fn value(code: u16) -> f32 {
        let size = u32::from(code) << 13 & (SIZE >> 3);
        // An f32 exponent is 112 larger than that of f16. Multiplying adjusts it; infinities and NaN need the largest
        // exponent.
        let scaled = (f32::from_bits(size) * f32::from_bits((127 + 112) << 23)).to_bits();
        let bits = if size < u32::from(Self::INFINITE) << 13 { scaled } else { scaled | EXPONENT };
        f32::from_bits(bits | u32::from(code) << 16 & SIGN)
    }
}

impl Half for BrainFloat {
    const TYPE: ElementType = ElementType::Bf16;
    const INFINITE: u16 = 0x7f80;
    const NORMAL: u16 = 0x0080;

    fn nearest(value: f32) -> (f32, u32) {
        const LARGEST: u32 = 0x7f7f_0000;
        let bits = value.to_bits();
        let size = bits & SIZE;
        // The low half is rounded away. For NaN the high half is kept.
        let rounded = least(size + 0x7fff + (size >> 16 & 1), LARGEST);
        let code = if size > EXPONENT { size | 1 << 22 } else { rounded } | bits & SIGN;
        (f32::from_bits(code & 0xffff_0000), code >> 16)
    }

    fn value(code: u16) -> f32 {
        f32::from_bits(u32::from(code) << 16)
    }
}

/// Signed comparisons have vector instructions on every processor.
fn least(a: u32, b: u32) -> u32 {
    if (a as i32) < b as i32 { a } else { b }
}

fn greatest(a: u32, b: u32) -> u32 {
    if (a as i32) < b as i32 { b } else { a }
}

/// Converts the bytes of f32 values to a 16-bit float, or the reverse; `None` for other types.
pub(super) fn convert(from: ElementType, to: ElementType, bytes: &[u8]) -> Option<Vec<u8>> {
    match (from, to) {
        (ElementType::F32, ElementType::F16) => Some(narrow::<HalfFloat>(bytes)),
        (ElementType::F32, ElementType::Bf16) => Some(narrow::<BrainFloat>(bytes)),
        (ElementType::F16, ElementType::F32) => Some(widen::<HalfFloat>(bytes)),
        (ElementType::Bf16, ElementType::F32) => Some(widen::<BrainFloat>(bytes)),
        _ => None,
    }
}

/// Counts the losses of [`convert`]; `None` for other types.
pub(super) fn audit(from: ElementType, to: ElementType, bytes: &[u8], audit: &mut Audit) -> Option<()> {
    match (from, to) {
        (ElementType::F32, ElementType::F16) => count_narrowed::<HalfFloat>(bytes, audit),
        (ElementType::F32, ElementType::Bf16) => count_narrowed::<BrainFloat>(bytes, audit),
        (ElementType::F16, ElementType::F32) => count_widened::<HalfFloat>(bytes, audit),
        (ElementType::Bf16, ElementType::F32) => count_widened::<BrainFloat>(bytes, audit),
        _ => return None,
    }
    Some(())
}

/// Converts the bytes of values of a 16-bit float to f32; `None` for other types.
pub(crate) fn widened(from: ElementType, bytes: &[u8]) -> Option<Vec<u8>> {
    convert(from, ElementType::F32, bytes)
}

fn narrow<H: Half>(bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![0; bytes.len() / 2];
    for (value, code) in bytes.as_chunks().0.iter().zip(out.as_chunks_mut().0) {
        *code = (H::nearest(f32::from_le_bytes(*value)).1 as u16).to_le_bytes();
    }
    out
}

fn widen<H: Half>(bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![0; bytes.len() * 2];
    for (code, value) in bytes.as_chunks().0.iter().zip(out.as_chunks_mut().0) {
        *value = H::value(u16::from_le_bytes(*code)).to_le_bytes();
    }
    out
}

fn count_narrowed<H: Half>(bytes: &[u8], audit: &mut Audit) {
    let limits = HalfLimits::of(H::TYPE);
    for block in bytes.chunks(4 * BLOCK) {
        let mut tally = LaneCounts::default();
        let (lanes, rest) = block.as_chunks();
        // The last block is filled with zeros, which do not change the counts.
        let mut last = [0; 4 * LANES];
        last[..rest.len()].copy_from_slice(rest);
        for values in lanes.iter().chain([&last]) {
            tally.add::<H>(&limits, values);
        }
        tally.add_to(audit);
    }
}

/// Counts values that are converted to f32: nothing is lost, but some may be NaN.
fn count_widened<H: Half>(bytes: &[u8], audit: &mut Audit) {
    for block in bytes.chunks(2 * BLOCK) {
        let (mut beyond, mut nan, mut subnormal) = (0_u16, 0_u16, 0_u16);
        for code in block.as_chunks().0 {
            let size = u16::from_le_bytes(*code) & (u16::MAX >> 1);
            beyond += u16::from(size >= H::INFINITE);
            nan += u16::from(size > H::INFINITE);
            subnormal += u16::from((size < H::NORMAL) & (size > 0));
        }
        audit.beyond += u64::from(beyond);
        audit.nan += u64::from(nan);
        audit.subnormal += u64::from(subnormal);
    }
}

struct HalfLimits {
    largest: f32,
    overflow: f32,
    normal: f32,
    least: f32,
    inexact: f32,
    counts_nan: bool,
}

impl HalfLimits {
    fn of(to: ElementType) -> Self {
        let Range { largest, overflow, normal, least, inexact, .. } = Range::of(ElementType::F32, to);
        let [largest, overflow, normal, least, inexact] =
            [largest, overflow, normal, least, inexact].map(|number| number as f32);
        // OpenVINO converts NaN to a number in f16.
        Self { largest, overflow, normal, least, inexact, counts_nan: to == ElementType::F16 }
    }
}

#[derive(Default)]
struct LaneCounts {
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

impl LaneCounts {
    /// The array length is constant, because with profile-guided optimization the compiler would not vectorize a
    /// variable loop.
    fn add<H: Half>(&mut self, to: &HalfLimits, values: &[u8; 4 * LANES]) {
        for (lane, bytes) in values.as_chunks().0.iter().enumerate() {
            let value = f32::from_le_bytes(*bytes);
            let becomes = H::nearest(value).0;
            let (size, error) = (value.abs(), (becomes - value).abs());
            let (is_finite, is_nan) = (size <= f32::MAX, size.is_nan());
            let is_within = size <= to.largest;
            // The quotient is NaN for zero and infinities, so the comparisons below are false.
            let relative = error / size;
            let is_tiny = (size < to.least) & (value != 0.0);
            let overflows = (size >= to.overflow) | (is_nan & to.counts_nan);
            let vanishes = (becomes == 0.0) & (value != 0.0);
            self.nan[lane] += u32::from(is_nan);
            self.overflowed[lane] += u32::from(overflows);
            self.vanished[lane] += u32::from(vanishes);
            self.rounded[lane] += u32::from((error > 0.0) & !overflows & !vanishes);
            self.subnormal[lane] += u32::from((becomes != 0.0) & (becomes.abs() < to.normal));
            self.beyond[lane] += u32::from(!is_within);
            self.tiny[lane] += u32::from(is_tiny);
            self.inexact[lane] += u32::from(is_within & !is_tiny & (relative > to.inexact));
            let absolute = if is_finite { error } else { 0.0 };
            let within = if is_within { error } else { 0.0 };
            self.absolute[lane] = if absolute > self.absolute[lane] { absolute } else { self.absolute[lane] };
            self.within[lane] = if within > self.within[lane] { within } else { self.within[lane] };
            self.relative[lane] = if relative > self.relative[lane] { relative } else { self.relative[lane] };
        }
    }

    fn add_to(&self, audit: &mut Audit) {
        let sum = |lanes: &[u32; LANES]| lanes.iter().map(|&count| u64::from(count)).sum();
        let worst = |lanes: &[f32; LANES]| lanes.iter().copied().fold(0.0, f32::max).into();
        audit.add_counts(&Audit {
            rounded: sum(&self.rounded),
            overflowed: sum(&self.overflowed),
            vanished: sum(&self.vanished),
            subnormal: sum(&self.subnormal),
            nan: sum(&self.nan),
            beyond: sum(&self.beyond),
            tiny: sum(&self.tiny),
            inexact: sum(&self.inexact),
            worst_absolute_error: worst(&self.absolute),
            worst_relative_error: worst(&self.relative),
            worst_within: worst(&self.within),
            ..Audit::default()
        });
    }
}
