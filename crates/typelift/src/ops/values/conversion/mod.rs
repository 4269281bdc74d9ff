//! Conversion of constants of any size between element types, and its losses.
//!
//! Every value becomes the nearest number of the other type, ties to even. Values out of range become the largest or
//! smallest number. Conversion to an integer truncates. A `Convert` layer gives other results for values out of range;
//! `Audit::of` counts these.

pub(crate) mod audit;
mod halves;

use std::io;
use std::ops::Range;
use std::sync::Arc;

use smallvec::smallvec;
use typelift_promote::{ElementType, Kind};

pub(crate) use audit::Audit;
pub(crate) use audit::survives;
pub(crate) use halves::widened;

use crate::base::parallel::share;
use crate::base::progress::poll;
use crate::model::graph::Layer;
use crate::model::shape::Shape;
use crate::model::weights::{Content, Weights, byte_size, stored_size};
use crate::ops::values::array::Array;

/// Number of values in a chunk. For every type it fills whole bytes.
pub(crate) const CHUNK: u64 = 1 << 16;

/// Number of values that fill whole bytes for every type.
const GROUP: u64 = 64;

/// Location of a constant's values in the weights: element type, offset and count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stored {
    pub(crate) element_type: ElementType,
    pub(crate) offset: u64,
    pub(crate) count: u64,
}

impl Stored {
    /// The location of a constant's values; `None` if it does not declare their offset or count.
    pub(crate) fn of(constant: &Layer) -> Option<Self> {
        let element_type = ElementType::from_name(constant.attribute("element_type")?.trim())?;
        let shape: Shape = constant.attribute("shape")?.parse().ok()?;
        let offset = constant.byte_count("offset")?;
        Some(Self { element_type, offset, count: shape.element_count()? })
    }

    pub(crate) fn size(&self) -> Option<u64> {
        u64::try_from(byte_size(self.element_type, self.count)?).ok()
    }

    /// Adds up the counts of all chunks. `look` gets a chunk and its number of values. `None` if bytes are missing or
    /// `look` returns `None`.
    fn count(&self, weights: &Weights, look: impl Fn(&mut Audit, &[u8], usize) -> Option<()> + Sync) -> Option<Audit> {
        let count_chunk = |audit: &mut Audit, chunk: u64| {
            let (at, length, count) = self.chunk(chunk * CHUNK)?;
            weights.with(at, length, |bytes| look(audit, bytes, count))?
        };
        let chunks = self.count.div_ceil(CHUNK);
        let counted =
            share("values", chunks, weights.on_one_thread, |audit, chunk| count_chunk(audit, chunk).ok_or(()));
        let mut audit = Audit::new(self.element_type, self.count);
        counted.ok()?.iter().for_each(|part| audit.add_counts(part));
        Some(audit)
    }

    /// The first value that satisfies `is`; `None` if there is none, or if bytes before it are missing.
    pub(crate) fn find(&self, weights: &Weights, is: impl Fn(f64) -> bool) -> Option<f64> {
        self.find_in(weights, |values| values.to_floats().iter().copied().find(|&value| is(value)))
    }

    pub(crate) fn find_integer(&self, weights: &Weights, is: impl Fn(i128) -> bool) -> Option<i128> {
        self.find_in(weights, |values| values.find_integer(&is))
    }

    fn find_in<T>(&self, weights: &Weights, first: impl Fn(&Array) -> Option<T>) -> Option<T> {
        (0..self.count).step_by(CHUNK as usize).find_map(|start| {
            let (at, length, count) = self.chunk(start)?;
            first(
                &weights
                    .with(at, length, |bytes: &[u8]| Array::decode(self.element_type, smallvec![count], bytes))??,
            )
        })
    }

    /// The chunk that begins with this value: its offset, length in bytes and number of values.
    fn chunk(&self, start: u64) -> Option<(u64, usize, usize)> {
        let count = CHUNK.min(self.count.checked_sub(start)?);
        let at = self.offset.checked_add(u64::try_from(byte_size(self.element_type, start)?).ok()?)?;
        Some((at, stored_size(self.element_type, count)?.try_into().ok()?, count.try_into().ok()?))
    }

    /// The values in another type; they are converted when they are read. `None` if one of the types is not
    /// numeric, or if bytes are missing.
    pub(crate) fn converted(self, to: ElementType, weights: &Arc<Weights>) -> Option<Converted> {
        let has_numbers =
            |ty: ElementType| matches!(ty.kind(), Kind::Signed | Kind::Unsigned | Kind::Boolean | Kind::Float);
        let end = self.offset.checked_add(self.size()?)?;
        let is_there = self.count == 0 || weights.len().is_some_and(|length| end <= length);
        let fits = has_numbers(self.element_type) && has_numbers(to) && is_there;
        fits.then(|| Converted { from: self, to, weights: weights.clone() })
    }

    /// Counts the losses of a conversion to another type; `None` if the values cannot be read.
    pub(crate) fn audit(&self, to: ElementType, weights: &Weights) -> Option<Audit> {
        let from = self.element_type;
        self.count(weights, |audit, bytes, count| {
            halves::audit(from, to, bytes, audit).or_else(|| {
                let values = Array::decode(from, smallvec![count], bytes)?;
                audit.add(&values, &values.saturated(to)?);
                Some(())
            })
        })
    }

    /// Counts the losses of a `Convert` layer, which differ for values out of range; `None` if the values cannot be
    /// read.
    fn audit_converted(&self, to: ElementType, weights: &Weights) -> Option<Audit> {
        let from = self.element_type;
        let fast = self.count(weights, |audit, bytes, _| halves::audit(from, to, bytes, audit));
        fast.filter(|audit| audit.beyond == 0).or_else(|| {
            self.count(weights, |audit, bytes, count| {
                let values = Array::decode(from, smallvec![count], bytes)?;
                audit.add(&values, &values.converted(to)?);
                Some(())
            })
        })
    }
}

/// Stored values in another type. They are converted when they are read, chunk by chunk.
pub(crate) struct Converted {
    from: Stored,
    pub(crate) to: ElementType,
    /// Shared by all values that are converted together. A separate clone for each would keep an older state of the
    /// added bytes.
    weights: Arc<Weights>,
}

impl Converted {
    fn all(&self) -> Option<Vec<u8>> {
        let mut bytes = Vec::with_capacity(usize::try_from(self.len()).ok()?);
        let read = self.read(0..self.len(), &mut |part| {
            bytes.extend_from_slice(part);
            Ok(())
        });
        read.ok().map(|()| bytes)
    }

    fn bytes(&self, values: Range<u64>) -> Option<Vec<u8>> {
        let Stored { element_type, offset, count } = self.from;
        let at = offset.checked_add(u64::try_from(byte_size(element_type, values.start)?).ok()?)?;
        let count = values.end.min(count).checked_sub(values.start)?;
        let length = usize::try_from(stored_size(element_type, count)?).ok()?;
        self.weights.with(at, length, |bytes| convert(bytes, count as usize, element_type, self.to))?
    }
}

impl Content for Converted {
    fn len(&self) -> u64 {
        byte_size(self.to, self.from.count).and_then(|size| size.try_into().ok()).unwrap_or(0)
    }

    fn read(&self, range: Range<u64>, look: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        let group = GROUP * u64::from(self.to.bits()) / 8;
        let (first, last) = (range.start / group * GROUP, range.end.div_ceil(group) * GROUP);
        for value in (first..last).step_by(CHUNK as usize) {
            poll();
            let bytes = self.bytes(value..last.min(value + CHUNK)).ok_or(io::ErrorKind::UnexpectedEof)?;
            let start = value / GROUP * group;
            let from = range.start.saturating_sub(start) as usize;
            let to = (range.end - start).min(bytes.len() as u64) as usize;
            look(bytes.get(from..to).ok_or(io::ErrorKind::UnexpectedEof)?)?;
        }
        Ok(())
    }
}

impl Layer {
    /// Converts the values of a constant of any size to another element type. Returns them as bytes of a weights file.
    /// Rounds to nearest even and saturates. `None` if the layer is not a constant, one of the types has no numbers,
    /// or bytes are missing.
    ///
    /// # Examples
    /// ```
    /// # use typelift::promote::ElementType;
    /// # let model = typelift::Model::open(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/model.xml"))?;
    /// let scale = model.graph().layer(model.graph().find("scale")?).unwrap();
    /// assert_eq!(scale.bytes_as(ElementType::U8, model.weights()), Some(vec![2]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn bytes_as(&self, to: ElementType, weights: &Weights) -> Option<Vec<u8>> {
        Stored::of(self)?.converted(to, &Arc::new(weights.clone()))?.all()
    }
}

/// Converts `count` values between element types, as packed bytes of a weights file. Rounds to nearest even and
/// saturates. `None` if one of the types has no numbers, or if there are too few bytes.
///
/// ```
/// # use typelift::promote::ElementType;
/// # use typelift::values::convert_values;
/// assert_eq!(convert_values(&[1, 2, 3], 3, ElementType::U8, ElementType::U4), Some(vec![0x21, 0x03]));
/// assert_eq!(convert_values(&[1, 2, 3], 4, ElementType::U8, ElementType::U4), None);
/// ```
#[must_use]
pub fn convert_values(bytes: &[u8], count: u64, from: ElementType, to: ElementType) -> Option<Vec<u8>> {
    let weights = Arc::new(Weights::from_bytes(bytes));
    Stored { element_type: from, offset: 0, count }.converted(to, &weights)?.all()
}

/// Converts the bytes of values to another type; `None` if one of the types has no numbers.
fn convert(bytes: &[u8], count: usize, from: ElementType, to: ElementType) -> Option<Vec<u8>> {
    halves::convert(from, to, bytes).or_else(|| Array::decode(from, smallvec![count], bytes)?.saturated(to)?.encode())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use typelift_promote::ElementType::{self, *};

    use super::*;

    /// Converts values one by one, for any types, and counts the losses.
    fn generally(bytes: &[u8], from: ElementType, to: ElementType) -> (Vec<u8>, Audit) {
        let count = bytes.len() * 8 / from.bits() as usize;
        let values = Array::decode_all(from, smallvec![count], bytes).unwrap();
        let converted = values.saturated(to).unwrap();
        let mut audit = Audit::new(from, count as u64);
        audit.add(&values, &converted);
        (converted.encode().unwrap(), audit)
    }

    fn f32s(values: &[f32]) -> Vec<u8> {
        values.iter().flat_map(|value| value.to_le_bytes()).collect()
    }

    fn halves(values: &[f32]) -> Vec<f32> {
        let bytes = convert(&f32s(values), values.len(), F32, F16).unwrap();
        bytes.chunks_exact(2).map(|b| half::f16::from_le_bytes([b[0], b[1]]).to_f32()).collect()
    }

    /// Checks the result of OpenVINO 2026.4.1's `save_model`: nearest even, saturating, NaN as the largest number.
    #[test]
    fn f32_becomes_f16_as_openvino_compresses_it() {
        let cases = [
            (1e10, 65504.0),
            (f32::NEG_INFINITY, -65504.0),
            (f32::NAN, 65504.0),
            (2049.0, 2048.0),
            (2051.0, 2052.0),
            (65519.0, 65504.0),
            (1.5 * 2_f32.powi(-25), 2_f32.powi(-24)),
        ];
        let (values, expected): (Vec<_>, Vec<_>) = cases.into_iter().unzip();
        assert_eq!(halves(&values), expected);
        assert!(halves(&[-1e-9])[0].is_sign_negative());
    }

    #[test]
    fn integers_and_wide_floats_saturate() {
        let i64s: Vec<u8> = [1_i64 << 40, -1 << 40, 7].iter().flat_map(|value| value.to_le_bytes()).collect();
        let i32s = convert(&i64s, 3, I64, I32).unwrap();
        assert_eq!(i32s, [i32::MAX, i32::MIN, 7].iter().flat_map(|it| it.to_le_bytes()).collect::<Vec<_>>());
        let f64s: Vec<u8> = [1e300, f64::NEG_INFINITY].iter().flat_map(|value| value.to_le_bytes()).collect();
        assert_eq!(convert(&f64s, 2, F64, F32).unwrap(), f32s(&[f32::MAX, -f32::MAX]));
        // An f64 value too small for f16 becomes zero without a sign.
        let tiny: Vec<u8> = (-0.9 * 2_f64.powi(-24)).to_le_bytes().into();
        assert_eq!(convert(&tiny, 1, F64, F16).unwrap(), [0, 0]);
        assert_eq!(convert(&f32s(&[300.0, -1.5, f32::NAN, 2.9]), 4, F32, U8).unwrap(), [255, 0, 0, 2]);
        assert_eq!(convert(&[0x21, 0x43], 4, U4, F16).unwrap(), halves_of([1.0, 2.0, 3.0, 4.0]));
    }

    fn halves_of<const N: usize>(values: [f32; N]) -> Vec<u8> {
        values.iter().flat_map(|&value| half::f16::from_f32(value).to_le_bytes()).collect()
    }

    #[test]
    fn what_is_read_in_parts_is_what_is_read_whole() {
        let count = CHUNK + 777;
        let values: Vec<f32> = (0..count).map(|at| at as f32 * 0.37).collect();
        let weights = Arc::new(Weights::from_bytes(f32s(&values)));
        let stored = Stored { element_type: F32, offset: 0, count };
        for to in [F16, I64, I4, U3] {
            let converted = stored.converted(to, &weights).unwrap();
            let read = |range: Range<u64>| {
                let mut bytes = Vec::new();
                let done = converted.read(range, &mut |part| {
                    bytes.extend_from_slice(part);
                    Ok(())
                });
                done.unwrap();
                bytes
            };
            let whole = read(0..converted.len());
            assert_eq!(whole.len() as u64, converted.len(), "{to}");
            let middle = whole.len() as u64 / 2 + 1;
            assert_eq!([read(0..middle), read(middle..converted.len())].concat(), whole, "{to}");
        }
    }

    #[test]
    fn every_code_of_a_half_becomes_its_number() {
        let codes: Vec<u8> = (0..=u16::MAX).flat_map(u16::to_le_bytes).collect();
        let value_of = |ty, code| match ty {
            F16 => half::f16::from_bits(code).to_f32(),
            _ => half::bf16::from_bits(code).to_f32(),
        };
        for ty in [F16, Bf16] {
            let value_of = |code| value_of(ty, code);
            let values = widen(&codes, ty);
            for (code, bytes) in (0..=u16::MAX).zip(values.chunks_exact(4)) {
                let (value, expected) = (f32::from_le_bytes(bytes.try_into().unwrap()), value_of(code));
                assert!(value.to_bits() == expected.to_bits() || value.is_nan() && expected.is_nan(), "{ty} {code:#x}");
            }
            let audit =
                Stored { element_type: ty, offset: 0, count: 1 << 16 }.audit(F32, &Weights::from_bytes(codes.clone()));
            let is = |test: fn(f32) -> bool| (0..=u16::MAX).filter(|&code| test(value_of(code))).count() as u64;
            let audit = audit.unwrap();
            assert_eq!([audit.changed(), audit.nan, audit.beyond], [0, is(f32::is_nan), is(|it| !it.is_finite())]);
            assert_eq!(audit.subnormal, is(f32::is_subnormal), "{ty}");
        }
    }

    #[test]
    fn several_threads_count_what_one_counts() {
        let values: Vec<f32> = (0..5 * CHUNK + 9).map(|at| 1e-9 * 1.0001_f32.powi(at as i32)).collect();
        let weights = Weights::from_bytes(f32s(&values));
        let stored = Stored { element_type: F32, offset: 0, count: values.len() as u64 };
        for to in [F16, I16] {
            let audit = stored.audit(to, &weights).unwrap();
            assert!(audit.changed() > 0);
            assert_eq!(Some(audit), stored.audit(to, &weights.clone().on_one_thread()));
        }
    }

    proptest! {
        #[test]
        fn the_fast_way_gives_what_the_general_one_gives(bits in prop::collection::vec(any::<u32>(), 0..3000), to_f16: bool) {
            let to = if to_f16 { F16 } else { Bf16 };
            // Exponents near the limits of f16 test every count.
            let values: Vec<f32> = bits.iter().map(|&bits| f32::from_bits(match bits % 3 {
                0 => bits,
                _ => bits & 0x83ff_ffff | (((bits >> 8) % 48 + 100) << 23),
            })).collect();
            let bytes = f32s(&values);
            let (expected, counted) = generally(&bytes, F32, to);
            prop_assert_eq!(convert(&bytes, values.len(), F32, to).unwrap(), expected.clone());
            let weights = Weights::from_bytes(bytes);
            let audit = Stored { element_type: F32, offset: 0, count: values.len() as u64 }.audit(to, &weights).unwrap();
            let counts = |it: &Audit| [it.rounded, it.overflowed, it.vanished, it.subnormal, it.nan, it.beyond, it.tiny];
            prop_assert_eq!(counts(&audit), counts(&counted));
            prop_assert!(audit.inexact.abs_diff(counted.inexact) <= 1);
            for (a, b) in [
                (audit.worst_absolute_error, counted.worst_absolute_error),
                (audit.worst_relative_error, counted.worst_relative_error),
                (audit.worst_within, counted.worst_within),
            ] {
                prop_assert!((a - b).abs() <= b * 1e-6, "{a} {b}");
            }
            prop_assert_eq!(widen(&expected, to), generally(&expected, to, F32).0);
        }
    }

    fn widen(bytes: &[u8], from: ElementType) -> Vec<u8> {
        convert(bytes, bytes.len() / 2, from, F32).unwrap()
    }
}
