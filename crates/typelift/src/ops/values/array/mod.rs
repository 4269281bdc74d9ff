//! Small tensors with their values, and the arithmetic of each element type.

mod encode;
mod file;
mod layout;
pub(super) mod npy;
pub(super) mod safetensors;
mod stored;

use half::{bf16, f16};
use smallvec::{SmallVec, smallvec};
use typelift_promote::{ElementType, FloatFormat, Kind, Specials};

pub(crate) use self::file::{ArrayFile, Arrays};
pub(crate) use self::layout::{steps, strides};
use crate::model::shape::Shape;
use crate::model::weights::stored_size;

/// Maximum number of elements of a tensor whose values are computed. No shape depends on more numbers.
pub(crate) const MAX_ELEMENTS: usize = 1 << 18;

/// List that is usually short. Most tensors from which shapes are computed have few elements.
pub type Few<T> = SmallVec<[T; 4]>;

/// Tensor with its values.
#[derive(Clone, Debug, PartialEq)]
pub struct Array {
    /// The type of the values.
    pub element_type: ElementType,
    /// The lengths of the axes.
    pub dims: Few<usize>,
    /// The values.
    pub data: Data,
}

/// Values of a tensor, in row-major order.
#[derive(Clone, Debug, PartialEq)]
pub enum Data {
    /// Integers and booleans, each within the range of the element type.
    Ints(Integers),
    /// Floating-point numbers, each representable in the element type.
    Floats(Few<f64>),
}

/// Integers of one element type, which have at most 64 bits.
#[derive(Clone, Debug, Default)]
pub struct Integers {
    bits: Few<i64>,
    /// True if the type is unsigned, so that values may exceed `i64`.
    unsigned: bool,
}

impl Integers {
    pub(crate) fn len(&self) -> usize {
        self.bits.len()
    }

    /// Returns the numbers in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = i128> + ExactSizeIterator + Clone {
        self.bits.iter().map(|&bits| self.number(bits))
    }

    pub(crate) fn get(&self, at: usize) -> Option<i128> {
        self.bits.get(at).map(|&bits| self.number(bits))
    }

    /// Replaces the value at a position, if it exists.
    pub(crate) fn set(&mut self, at: usize, number: i128) -> Option<()> {
        *self.bits.get_mut(at)? = number as i64;
        self.unsigned |= number > i64::MAX.into();
        Some(())
    }

    fn from_codes(element_type: ElementType, codes: impl Iterator<Item = u64>) -> Self {
        let unused = 64 - element_type.bits();
        let bits = match element_type.kind() {
            Kind::Signed => codes.map(|code| (code << unused) as i64 >> unused).collect(),
            _ => codes.map(|code| code as i64).collect(),
        };
        Self { bits, unsigned: element_type == ElementType::U64 }
    }

    fn number(&self, bits: i64) -> i128 {
        if self.unsigned { (bits as u64).into() } else { bits.into() }
    }
}

impl PartialEq for Integers {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl FromIterator<i128> for Integers {
    fn from_iter<I: IntoIterator<Item = i128>>(numbers: I) -> Self {
        let mut unsigned = false;
        let bits = numbers.into_iter().map(|number| {
            unsigned |= number > i64::MAX.into();
            number as i64
        });
        Self { bits: bits.collect(), unsigned }
    }
}

/// Fill value, as an integer and as a floating-point number.
pub(crate) type Fill = (i128, f64);
pub(crate) const ZERO: Fill = (0, 0.0);

impl Data {
    /// Replaces a value by one of `other`, which has the same kind of data; `None` if either does not exist.
    pub(crate) fn put(&mut self, place: usize, other: &Self, from: usize) -> Option<()> {
        match (self, other) {
            (Self::Ints(values), Self::Ints(other)) => values.set(place, other.get(from)?)?,
            (Self::Floats(values), Self::Floats(other)) => *values.get_mut(place)? = *other.get(from)?,
            _ => return None,
        }
        Some(())
    }

    /// The values at these positions, and `fill` for `None`.
    fn at(&self, places: impl Iterator<Item = Option<usize>>, fill: Fill) -> Option<Self> {
        fn at<T: Copy, L: FromIterator<T>>(
            places: impl Iterator<Item = Option<usize>>,
            value: impl Fn(usize) -> Option<T>,
            fill: T,
        ) -> Option<L> {
            places.map(|place| place.map_or(Some(fill), &value)).collect()
        }
        Some(match self {
            Self::Ints(values) => Self::Ints(at(places, |place| values.get(place), fill.0)?),
            Self::Floats(values) => Self::Floats(at(places, |place| values.get(place).copied(), fill.1)?),
        })
    }
}

/// The number of elements of a tensor with these dimensions; `None` if it exceeds the limit.
pub(crate) fn count(dims: &[usize]) -> Option<usize> {
    // A dimension of 0 must not make a huge one acceptable.
    dims.iter()
        .try_fold(1_usize, |count, dim| count.checked_mul(*dim.max(&1)).filter(|count| *count <= MAX_ELEMENTS))?;
    Some(dims.iter().product())
}

impl Array {
    /// Creates a tensor of integers or booleans, each within the range of the type.
    pub fn ints(element_type: ElementType, dims: Few<usize>, values: impl IntoIterator<Item = i128>) -> Self {
        Self { element_type, dims, data: Data::Ints(values.into_iter().collect()) }
    }

    /// Creates a tensor of floating-point numbers that the type can represent.
    pub fn floats(element_type: ElementType, dims: Few<usize>, values: Few<f64>) -> Self {
        Self { element_type, dims, data: Data::Floats(values) }
    }

    pub(crate) fn scalar(element_type: ElementType, value: f64) -> Self {
        let data = if element_type.is_float() {
            Data::Floats(smallvec![round(element_type, value)])
        } else {
            Data::Ints([value as i128].into_iter().collect())
        };
        Self { element_type, dims: Few::new(), data }
    }

    pub(crate) fn len(&self) -> usize {
        match &self.data {
            Data::Ints(values) => values.len(),
            Data::Floats(values) => values.len(),
        }
    }

    /// The values as `i64`, as a cast in C++ does: fractions are truncated, and integers keep their low bits.
    pub(crate) fn to_integers(&self) -> Few<i64> {
        match &self.data {
            Data::Ints(values) => Few::from_slice(&values.bits),
            Data::Floats(values) => values.iter().map(|&v| truncate(ElementType::I64, v) as i64).collect(),
        }
    }

    /// Returns the values as floating-point numbers.
    pub fn to_floats(&self) -> Few<f64> {
        match &self.data {
            Data::Ints(values) => values.iter().map(|v| v as f64).collect(),
            Data::Floats(values) => Few::from_slice(values),
        }
    }

    /// The first integer that satisfies `is`; `None` for other types.
    pub(crate) fn find_integer(&self, is: impl Fn(i128) -> bool) -> Option<i128> {
        match &self.data {
            Data::Ints(values) => values.iter().find(|&value| is(value)),
            Data::Floats(_) => None,
        }
    }

    pub(crate) fn first_integer(&self) -> Option<i64> {
        self.to_integers().first().copied()
    }

    pub(crate) fn shape(&self) -> Shape {
        Shape::fixed(self.dims.iter().map(|&dim| dim as i64))
    }

    pub(crate) fn reshaped(&self, dims: Few<usize>) -> Option<Self> {
        (count(&dims)? == self.len()).then(|| Self { dims, ..self.clone() })
    }

    pub(crate) fn first(&self) -> Option<Fill> {
        match &self.data {
            Data::Ints(values) => values.get(0).map(|v| (v, v as f64)),
            Data::Floats(values) => values.first().map(|&v| (v as i128, v)),
        }
    }

    /// Replaces each value. Integers wrap and floating-point numbers round, as in their type.
    pub(crate) fn map(&self, ints: impl Fn(i128) -> i128, floats: impl Fn(f64) -> f64) -> Self {
        let ty = self.element_type;
        let data = match &self.data {
            Data::Ints(values) => Data::Ints(values.iter().map(|v| wrap(ty, ints(v))).collect()),
            Data::Floats(values) => Data::Floats(values.iter().map(|&v| round(ty, floats(v))).collect()),
        };
        Self { element_type: ty, dims: self.dims.clone(), data }
    }

    /// Combines two tensors of the same type and shape; `None` if two values cannot be combined.
    pub(crate) fn zip(
        &self,
        other: &Self,
        ints: impl Fn(i128, i128) -> Option<i128>,
        floats: impl Fn(f64, f64) -> f64,
    ) -> Option<Self> {
        let ty = self.element_type;
        let data = match (&self.data, &other.data) {
            (Data::Ints(l), Data::Ints(r)) => {
                Data::Ints(l.iter().zip(r.iter()).map(|(l, r)| Some(wrap(ty, ints(l, r)?))).collect::<Option<_>>()?)
            }
            (Data::Floats(l), Data::Floats(r)) => {
                Data::Floats(l.iter().zip(r).map(|(&l, &r)| round(ty, floats(l, r))).collect())
            }
            _ => return None,
        };
        Some(Self { element_type: ty, dims: self.dims.clone(), data })
    }

    pub(crate) fn compare(
        &self,
        other: &Self,
        ints: impl Fn(&i128, &i128) -> bool,
        floats: impl Fn(&f64, &f64) -> bool,
    ) -> Option<Vec<bool>> {
        match (&self.data, &other.data) {
            (Data::Ints(l), Data::Ints(r)) => Some(l.iter().zip(r.iter()).map(|(l, r)| ints(&l, &r)).collect()),
            (Data::Floats(l), Data::Floats(r)) => Some(l.iter().zip(r).map(|(l, r)| floats(l, r)).collect()),
            _ => None,
        }
    }

    pub(crate) fn booleans(dims: Few<usize>, values: impl IntoIterator<Item = bool>) -> Self {
        Self::ints(ElementType::Boolean, dims, values.into_iter().map(i128::from))
    }

    pub(crate) fn truths(&self) -> Vec<bool> {
        match &self.data {
            Data::Ints(values) => values.bits.iter().map(|&v| v != 0).collect(),
            Data::Floats(values) => values.iter().map(|&v| v != 0.0).collect(),
        }
    }

    /// Replaces the values selected by `mask` with those of `other`. All three have one shape; `other` may be a single
    /// value.
    pub(crate) fn masked(mut self, mask: &[bool], other: &Self) -> Self {
        let single = other.len() == 1;
        for at in (0..self.len()).filter(|&at| mask.get(at) == Some(&true)) {
            self.data.put(at, &other.data, if single { 0 } else { at });
        }
        self
    }

    /// For each value, true if it is the largest number of its type, which OpenVINO reads as unlimited.
    pub(crate) fn is_open(&self) -> Vec<bool> {
        let largest = largest(self.element_type);
        match (&self.data, largest.as_ref().map(|largest| &largest.data)) {
            (Data::Ints(values), Some(Data::Ints(largest))) => {
                values.iter().map(|v| Some(v) == largest.get(0)).collect()
            }
            (Data::Floats(values), Some(Data::Floats(largest))) => values.iter().map(|v| *v == largest[0]).collect(),
            _ => vec![false; self.len()],
        }
    }

    /// Returns the values in another type, converted as OpenVINO's reference code does on x86-64.
    pub fn converted(&self, to: ElementType) -> Option<Self> {
        let is_boolean = to.kind() == Kind::Boolean;
        self.each(
            to,
            |value| if is_boolean { (value != 0).into() } else { wrap(to, value) },
            |value| if is_boolean { (value != 0.0).into() } else { truncate(to, value) },
            |value| if to == ElementType::F64 { value as f64 } else { round(to, (value as f32).into()) },
            |value| round(to, value),
        )
    }

    /// The values in another type, each rounded to the nearest number and saturated. Integers lose their
    /// fractions.
    pub(crate) fn saturated(&self, to: ElementType) -> Option<Self> {
        if to.kind() == Kind::Boolean {
            return self.converted(to);
        }
        self.each(
            to,
            |value| clamp(to, value),
            // A Rust cast saturates, and turns NaN into 0.
            |value| clamp(to, value as i128),
            |value| saturate(to, value as f64),
            |value| saturate_from(self.element_type, to, value),
        )
    }

    /// Converts each value to a type of integers or floating-point numbers by the function for the kinds of both.
    fn each(
        &self,
        to: ElementType,
        int: impl Fn(i128) -> i128,
        whole: impl Fn(f64) -> i128,
        real: impl Fn(i128) -> f64,
        float: impl Fn(f64) -> f64,
    ) -> Option<Self> {
        let data = match (&self.data, to.kind()) {
            (Data::Ints(values), Kind::Float) => Data::Floats(values.iter().map(real).collect()),
            (Data::Floats(values), Kind::Float) => Data::Floats(values.iter().map(|&value| float(value)).collect()),
            (_, Kind::Dynamic | Kind::Complex | Kind::String | Kind::Bits) => return None,
            (Data::Ints(values), _) => Data::Ints(values.iter().map(int).collect()),
            (Data::Floats(values), _) => Data::Ints(values.iter().map(|&value| whole(value)).collect()),
        };
        Some(Self { element_type: to, dims: self.dims.clone(), data })
    }

    /// A tensor from its bytes in a weights file; `None` for a type without numbers, or for too many of them.
    pub(crate) fn decode(element_type: ElementType, dims: Few<usize>, bytes: &[u8]) -> Option<Self> {
        count(&dims).and_then(|_| Self::decode_all(element_type, dims, bytes))
    }

    /// Creates a tensor of any number of elements from its bytes in a weights file; `None` for a type without numbers.
    pub fn decode_all(element_type: ElementType, dims: Few<usize>, bytes: &[u8]) -> Option<Self> {
        let count = dims.iter().try_fold(1_usize, |count, &dim| count.checked_mul(dim))?;
        if stored_size(element_type, count as u64)? > bytes.len() as u128 {
            return None;
        }
        let codes = (0..count).map(|index| code(element_type.bits(), bytes, index).unwrap_or_default());
        let data = match element_type.kind() {
            // OpenVINO converts the byte of a boolean, which may be more than 1.
            Kind::Boolean | Kind::Signed | Kind::Unsigned => Data::Ints(Integers::from_codes(element_type, codes)),
            Kind::Float if element_type == ElementType::F32 => {
                let values = bytes.as_chunks().0.iter().take(count);
                Data::Floats(values.map(|&value| f32::from_le_bytes(value).into()).collect::<Vec<f64>>().into())
            }
            Kind::Float => Data::Floats(codes.map(|code| float(element_type, code)).collect::<Option<_>>()?),
            _ => return None,
        };
        Some(Self { element_type, dims, data })
    }
}

fn little_endian<const N: usize>(bytes: &[u8], index: usize) -> Option<[u8; N]> {
    bytes.get(index * N..)?.first_chunk().copied()
}

/// The bits of the value at an index, for values of this many bits.
fn code(bits: u32, bytes: &[u8], index: usize) -> Option<u64> {
    match bits {
        8 => bytes.get(index).copied().map(u64::from),
        16 => little_endian(bytes, index).map(|item| u16::from_le_bytes(item).into()),
        32 => little_endian(bytes, index).map(|item| u32::from_le_bytes(item).into()),
        64 => little_endian(bytes, index).map(u64::from_le_bytes),
        _ => packed(bits, bytes, index),
    }
}

fn packed(bits: u32, bytes: &[u8], index: usize) -> Option<u64> {
    let byte = |at: usize| bytes.get(at).map(|&byte| u64::from(byte));
    Some(match bits {
        1 => byte(index / 8)? >> (7 - index % 8) & 1,
        2 => byte(index / 4)? >> (index % 4 * 2) & 3,
        4 => byte(index / 2)? >> (index % 2 * 4) & 15,
        // Three bytes contain the values: two contain their low bits, with the first value in the highest bits, and
        // one contains the high bits.
        3 => {
            let (group, at) = (index / 8 * 3, index % 8);
            let low = byte(group + at / 4)? >> (6 - at % 4 * 2) & 3;
            low | (byte(group + 2)? >> (7 - at) & 1) << 2
        }
        _ => {
            let (group, at) = (index / 4 * 3, index % 4);
            let low = byte(group + at / 2)? >> (4 - at % 2 * 4) & 15;
            low | (byte(group + 2)? >> (6 - at * 2) & 3) << 4
        }
    })
}

pub(crate) fn float(element_type: ElementType, bits: u64) -> Option<f64> {
    /// Values of `nf4` by code: quantiles of the normal distribution.
    const NF4: [f64; 16] = [
        -1.0,
        -0.696_192_800_998_687_7,
        -0.525_073_051_452_636_7,
        -0.394_917_488_098_144_53,
        -0.284_441_381_692_886_35,
        -0.184_773_430_228_233_34,
        -0.091_050_036_251_544_95,
        0.0,
        0.079_580_299_556_255_34,
        0.160_930_201_411_247_25,
        0.246_112_301_945_686_34,
        0.337_915_241_718_292_24,
        0.440_709_829_330_444_34,
        0.562_617_003_917_694_1,
        0.722_956_836_223_602_3,
        1.0,
    ];
    Some(match element_type {
        ElementType::F64 => f64::from_bits(bits),
        ElementType::F32 => f32::from_bits(bits as u32).into(),
        ElementType::F16 => f16::from_bits(bits as u16).to_f64(),
        ElementType::Bf16 => bf16::from_bits(bits as u16).to_f64(),
        ElementType::F8E8M0 if bits == 0xff => f64::NAN,
        ElementType::F8E8M0 => 2_f64.powi(bits as i32 - 127),
        ElementType::Nf4 => *NF4.get(bits as usize)?,
        _ => decode(element_type.float_format()?, bits),
    })
}

fn decode(format: FloatFormat, bits: u64) -> f64 {
    let (ones, top) = ((1 << format.mantissa) - 1, (1 << format.exponent) - 1);
    let (exponent, mantissa) = (bits >> format.mantissa & top, bits & ones);
    let unit = 2_f64.powi(format.lowest());
    let magnitude = match format.specials {
        Specials::Infinities if exponent == top && mantissa == 0 => f64::INFINITY,
        Specials::Infinities if exponent == top => f64::NAN,
        Specials::Nan if exponent == top && mantissa == ones => f64::NAN,
        _ if exponent == 0 => mantissa as f64 * unit,
        _ => (mantissa + ones + 1) as f64 * unit * 2_f64.powi(exponent as i32 - 1),
    };
    if bits >> (format.exponent + format.mantissa) & 1 == 1 { -magnitude } else { magnitude }
}

pub(crate) fn wrap(element_type: ElementType, value: i128) -> i128 {
    let unused = 128 - element_type.bits().clamp(1, 64);
    match element_type.kind() {
        Kind::Signed => value << unused >> unused,
        Kind::Unsigned => ((value << unused) as u128 >> unused) as i128,
        _ => value,
    }
}

pub(crate) fn clamp(element_type: ElementType, value: i128) -> i128 {
    let bits = element_type.bits().clamp(1, 64);
    match element_type.kind() {
        Kind::Signed => value.clamp(-(1 << (bits - 1)), (1 << (bits - 1)) - 1),
        Kind::Unsigned => value.clamp(0, (1 << bits) - 1),
        _ => value,
    }
}

pub(crate) fn largest_finite(element_type: ElementType) -> f64 {
    match (element_type, element_type.float_format()) {
        (ElementType::F8E8M0, _) => 2_f64.powi(127),
        (ElementType::Nf4, _) => 1.0,
        (_, Some(format)) => {
            let (mantissa, exponent) = format.largest();
            mantissa as f64 * 2_f64.powi(exponent)
        }
        (_, None) => f64::INFINITY,
    }
}

fn saturate(element_type: ElementType, value: f64) -> f64 {
    let largest = largest_finite(element_type);
    round(element_type, value.clamp(-largest, largest))
}

/// Converts a value to another floating-point type as OpenVINO does when it compresses constants. Like [`saturate`],
/// it returns the nearest finite value. Infinities are kept in a type that holds all numbers of the other one. An f64
/// below the smallest number of f16 becomes zero, and NaN of f32 becomes the largest number.
fn saturate_from(from: ElementType, to: ElementType, value: f64) -> f64 {
    match (from, to) {
        (ElementType::F32, ElementType::F16) if value.is_nan() => largest_finite(to),
        (ElementType::F64, ElementType::F16) if value.abs() < f16::from_bits(1).to_f64() => 0.0,
        _ if largest_finite(to) >= largest_finite(from) => round(to, value),
        _ => saturate(to, value),
    }
}

/// Returns the number of a floating-point type nearest to `value`.
pub fn round(element_type: ElementType, value: f64) -> f64 {
    match element_type {
        ElementType::F32 => f64::from(value as f32),
        ElementType::F16 => f16::from_f32(value as f32).to_f64(),
        ElementType::Bf16 => bf16::from_f32(value as f32).to_f64(),
        ElementType::F8E4M3 => round_to_bits(value, 3, -6, 448.0, f64::NAN),
        ElementType::F8E5M2 => round_to_bits(value, 2, -14, 57344.0, f64::INFINITY),
        _ => encode::Codes::of(element_type).map_or(value, |codes| codes.round(element_type, value)),
    }
}

/// Rounds to this many bits after the first one, ties to even. If the result exceeds the largest number of the type,
/// returns `beyond`. `lowest` is the smallest exponent of the type.
fn round_to_bits(value: f64, bits: i32, lowest: i32, largest: f64, beyond: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return if value.is_infinite() { beyond.copysign(value) } else { value };
    }
    let exponent = (value.abs().log2().floor() as i32).max(lowest);
    let step = 2_f64.powi(exponent - bits);
    let nearest = (value / step).round_ties_even() * step;
    if nearest.abs() > largest { beyond.copysign(value) } else { nearest }
}

/// Converts a number without its fraction to an integer type. Numbers out of range give the results of x86-64. For a
/// narrow type they are the low bits of the smallest 32-bit integer, and for a wide type its own smallest integer.
pub(crate) fn truncate(element_type: ElementType, value: f64) -> i128 {
    let within = |lowest: f64| value >= lowest && value < -lowest;
    let whole = value.trunc() as i128;
    let (i32_lowest, i64_lowest) = (f64::from(i32::MIN), i64::MIN as f64);
    match element_type {
        ElementType::U64 if value >= -i64_lowest => {
            if value < -2.0 * i64_lowest {
                whole
            } else {
                0
            }
        }
        ElementType::I64 | ElementType::U64 | ElementType::U32 => {
            wrap(element_type, if within(i64_lowest) { whole } else { i64::MIN.into() })
        }
        _ => wrap(element_type, if within(i32_lowest) { whole } else { i32::MIN.into() }),
    }
}

/// The largest number of a type as a tensor of rank 0; `None` for types without one in OpenVINO.
pub(crate) fn largest(element_type: ElementType) -> Option<Array> {
    let value = match element_type {
        ElementType::F64 | ElementType::F32 | ElementType::F16 | ElementType::Bf16 => largest_finite(element_type),
        ElementType::Boolean => return None,
        ty if ty.is_integer() && ty.bits() >= 8 => {
            let bits = ty.bits() - u32::from(ty.kind() == Kind::Signed);
            return Some(Array::ints(ty, Few::new(), [(1 << bits) - 1]));
        }
        _ => return None,
    };
    Some(Array::floats(element_type, Few::new(), smallvec![value]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_constants_are_read_as_openvino_packs_them() {
        let read =
            |ty, count, bytes: &[u8]| Array::decode(ty, smallvec![count], bytes).unwrap().to_integers().into_vec();
        assert_eq!(read(ElementType::U4, 3, &[0x21, 0x0f]), [1, 2, 15]);
        assert_eq!(read(ElementType::I4, 3, &[0x21, 0x0f]), [1, 2, -1]);
        assert_eq!(read(ElementType::U2, 5, &[0x39, 0x01]), [1, 2, 3, 0, 1]);
        assert_eq!(read(ElementType::U1, 9, &[0xb0, 0x80]), [1, 0, 1, 1, 0, 0, 0, 0, 1]);
        assert_eq!(read(ElementType::U3, 8, &[0x6c, 0x6c, 0x1e]), [1, 2, 3, 4, 5, 6, 7, 0]);
        assert_eq!(read(ElementType::U6, 4, &[0x12, 0x3f, 0x03]), [1, 2, 3, 63]);
        assert_eq!(read(ElementType::Boolean, 2, &[0, 7]), [0, 7]);
        assert_eq!(Array::decode(ElementType::U3, smallvec![8], &[0, 0]), None);
        assert_eq!(Array::decode(ElementType::I64, smallvec![1 << 40, 0], &[]), None);
    }

    #[test]
    fn small_floating_point_types_are_read_by_their_layouts() {
        let read = |ty, bytes: &[u8]| Array::decode(ty, smallvec![bytes.len()], bytes).unwrap().to_floats().into_vec();
        assert_eq!(read(ElementType::F8E4M3, &[0x00, 0x01, 0x38, 0x7e, 0xb8]), [0.0, 0.001953125, 1.0, 448.0, -1.0]);
        assert_eq!(
            read(ElementType::F8E5M2, &[0x01, 0x3c, 0x7b, 0xfc]),
            [1.52587890625e-5, 1.0, 57344.0, f64::NEG_INFINITY]
        );
        assert_eq!(read(ElementType::F8E8M0, &[0x7f, 0x80]), [1.0, 2.0]);
        assert!(read(ElementType::F8E4M3, &[0xff])[0].is_nan() && read(ElementType::F8E8M0, &[0xff])[0].is_nan());
        let nibbles = Array::decode(ElementType::F4E2M1, smallvec![4], &[0x21, 0xf7]).unwrap();
        assert_eq!(nibbles.to_floats().into_vec(), [0.5, 1.0, 6.0, -6.0]);
    }

    #[test]
    fn conversions_wrap_round_and_truncate() {
        let floats = |values: &[f64]| Array {
            element_type: ElementType::F32,
            dims: smallvec![values.len()],
            data: Data::Floats(values.into()),
        };
        let convert = |to, values: &[f64]| floats(values).converted(to).unwrap();
        assert_eq!(convert(ElementType::U8, &[300.0, -1.5, 3e38]).to_integers().into_vec(), [44, 255, 0]);
        assert_eq!(convert(ElementType::I8, &[128.0, -1.5]).to_integers().into_vec(), [-128, -1]);
        assert_eq!(convert(ElementType::I32, &[3e9, -2.9]).to_integers().into_vec(), [i32::MIN.into(), -2]);
        assert_eq!(convert(ElementType::U32, &[3e9, 4294967296.0]).to_integers().into_vec(), [3_000_000_000, 0]);
        assert_eq!(convert(ElementType::I64, &[1e20, f64::NAN]).to_integers().into_vec(), [i64::MIN, i64::MIN]);
        assert_eq!(
            convert(ElementType::U64, &[1.8e19, 1e20]).data,
            Data::Ints([18_000_000_000_000_000_000, 0].into_iter().collect())
        );
        assert_eq!(convert(ElementType::Boolean, &[0.0, 0.4, f64::NAN]).to_integers().into_vec(), [0, 1, 1]);
        assert_eq!(
            convert(ElementType::F16, &[65519.9, 65520.0, 6e-8]).to_floats().into_vec(),
            [65504.0, f64::INFINITY, 5.960464477539063e-8]
        );
    }
}
