//! Encoding of values as bytes of a weights file.

use std::sync::LazyLock;

use typelift_promote::ElementType;

use super::{Array, Data, float};

impl Array {
    /// Returns the bytes of the tensor in a weights file; `None` for a type without numbers.
    pub fn encode(&self) -> Option<Vec<u8>> {
        let ty = self.element_type;
        let codes: Vec<u64> = match (&self.data, ty) {
            (Data::Ints(values), _) => values.iter().map(|value| value as u64).collect(),
            (Data::Floats(values), ElementType::F64) => values.iter().map(|value| value.to_bits()).collect(),
            (Data::Floats(values), ElementType::F32) => values.iter().map(|&v| (v as f32).to_bits().into()).collect(),
            (Data::Floats(values), ElementType::F16) => {
                values.iter().map(|&v| half::f16::from_f64(v).to_bits().into()).collect()
            }
            (Data::Floats(values), ElementType::Bf16) => {
                values.iter().map(|&v| half::bf16::from_f64(v).to_bits().into()).collect()
            }
            (Data::Floats(values), _) => {
                let codes = Codes::of(ty)?;
                values.iter().map(|&value| codes.nearest(value).into()).collect()
            }
        };
        pack(ty.bits(), &codes)
    }
}

/// Packs values of this many bits, as in a weights file.
fn pack(bits: u32, codes: &[u64]) -> Option<Vec<u8>> {
    fn part(code: u64, bits: u32, shift: usize) -> u8 {
        (code as u8 & ((1 << bits) - 1)) << shift
    }
    let bytes = bits as usize / 8;
    Some(match bits {
        8 | 16 | 32 | 64 => codes.iter().flat_map(|code| code.to_le_bytes().into_iter().take(bytes)).collect(),
        1 | 2 | 4 => {
            let packed = codes.chunks(8 / bits as usize).map(|chunk| {
                chunk.iter().enumerate().fold(0, |byte, (at, &code)| {
                    // Values of 1 bit fill a byte from the highest bit, those of 2 and 4 bits from the lowest.
                    byte | part(code, bits, if bits == 1 { 7 - at } else { at * bits as usize })
                })
            });
            packed.collect()
        }
        // Three bytes contain the values: two contain their low bits, with the first value in the highest bits, and
        // one contains the high bits.
        3 | 6 => {
            let (low, high) = if bits == 3 { (2, 1) } else { (4, 2) };
            let (in_byte, in_group) = (8 / low as usize, 8 / high as usize);
            let pack = |chunk: &[u64]| {
                chunk.iter().enumerate().fold([0; 3], |mut group, (at, &code)| {
                    group[at / in_byte] |= part(code, low, (in_byte - 1 - at % in_byte) * low as usize);
                    group[2] |= part(code >> low, high, (in_group - 1 - at) * high as usize);
                    group
                })
            };
            codes.chunks(in_group).flat_map(pack).collect()
        }
        _ => return None,
    })
}

/// Finite values of a floating-point type of up to 8 bits, each with its code.
pub(super) struct Codes {
    /// Values in ascending order; zero occurs once, without sign.
    numbers: Vec<(f64, u8)>,
    negative_zero: Option<u8>,
    /// Code of NaN; the code of the largest number for a type without NaN.
    nan: u8,
}

impl Codes {
    /// `None` if it has more than 8 bits or is not floating point.
    pub(super) fn of(ty: ElementType) -> Option<&'static Self> {
        static CODES: LazyLock<Vec<(ElementType, Codes)>> = LazyLock::new(|| {
            let small = ElementType::all().filter(|ty| ty.is_float() && ty.bits() <= 8 && float(*ty, 0).is_some());
            small.map(|ty| (ty, Codes::new(ty))).collect()
        });
        CODES.iter().find(|(known, _)| *known == ty).map(|(_, codes)| codes)
    }

    fn new(ty: ElementType) -> Self {
        let codes = (0..1_u32 << ty.bits()).map(|code| code as u8);
        let all: Vec<_> = codes.filter_map(|code| Some((float(ty, code.into())?, code))).collect();
        let is_negative_zero = |number: f64| number == 0.0 && number.is_sign_negative();
        let mut numbers: Vec<_> = all.iter().copied().filter(|(it, _)| it.is_finite()).collect();
        numbers.retain(|&(number, _)| !is_negative_zero(number));
        numbers.sort_by(|a, b| a.0.total_cmp(&b.0));
        let largest = numbers.last().map_or(0, |last| last.1);
        let code_of = |is: &dyn Fn(f64) -> bool| all.iter().find(|(number, _)| is(*number)).map(|found| found.1);
        Self { numbers, negative_zero: code_of(&is_negative_zero), nan: code_of(&f64::is_nan).unwrap_or(largest) }
    }

    /// The code of the nearest number, ties to the even code, as OpenVINO rounds. A value beyond the largest number
    /// becomes that number.
    fn nearest(&self, value: f64) -> u8 {
        if value.is_nan() {
            return self.nan;
        }
        let above = self.numbers.partition_point(|(number, _)| *number < value);
        let (below, above) = (self.numbers.get(above.wrapping_sub(1)), self.numbers.get(above));
        let nearest = match (below, above) {
            (Some(below), Some(above)) => {
                let (down, up) = (value - below.0, above.0 - value);
                if down < up || down == up && below.1 % 2 == 0 { below } else { above }
            }
            (one, other) => one.or(other).unwrap_or(&(0.0, 0)),
        };
        if nearest.0 == 0.0 && value.is_sign_negative() {
            return self.negative_zero.unwrap_or(nearest.1);
        }
        nearest.1
    }

    pub(super) fn round(&self, ty: ElementType, value: f64) -> f64 {
        float(ty, self.nearest(value).into()).unwrap_or(value)
    }
}

#[cfg(test)]
mod tests {
    use smallvec::smallvec;

    use super::*;

    /// The expected values are those of OpenVINO 2026.4.1: `Convert` of the reference implementation, and `Constant`
    /// for nf4.
    #[test]
    fn small_floats_round_as_openvino_rounds() {
        let values = [0.0, -0.0, 0.3, 0.4, 0.25, 0.75, 2.5, 3.5, 5.0, 464.0, -0.1, -0.6, 1e-3, f64::NAN];
        let rounded = |ty| values.map(|value| float(ty, Codes::of(ty).unwrap().nearest(value).into()).unwrap());
        let same = |ty: ElementType, expected: [f64; 14]| {
            let found = rounded(ty);
            let pairs = found.iter().zip(&expected);
            assert!(
                pairs.into_iter().all(|(a, b)| a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan()),
                "{ty} {found:?}"
            );
        };
        let nan = f64::NAN;
        same(
            ElementType::F8E4M3,
            [0.0, -0.0, 0.3125, 0.40625, 0.25, 0.75, 2.5, 3.5, 5.0, 448.0, -0.101_562_5, -0.625, 0.001_953_125, nan],
        );
        same(ElementType::F4E2M1, [0.0, -0.0, 0.5, 0.5, 0.0, 1.0, 2.0, 4.0, 4.0, 6.0, -0.0, -0.5, 0.0, 6.0]);
        let least = 2_f64.powi(-127);
        same(
            ElementType::F8E8M0,
            [least, least, 0.25, 0.5, 0.25, 0.5, 2.0, 4.0, 4.0, 512.0, least, least, 2_f64.powi(-10), nan],
        );
    }

    #[test]
    fn every_code_of_every_width_comes_back() {
        for ty in ElementType::all().filter(|ty| [1, 2, 3, 4, 6, 8].contains(&ty.bits())) {
            let count = 3 * (1 << ty.bits().min(4));
            let bytes: Vec<u8> = (0..count * 3).map(|at| (at * 37 + 11) as u8).collect();
            let Some(array) = Array::decode(ty, smallvec![count], &bytes) else { continue };
            let encoded = array.encode().unwrap();
            let again = Array::decode(ty, smallvec![count], &encoded).unwrap();
            let same = |a: f64, b: f64| a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan();
            assert!(array.to_floats().iter().zip(again.to_floats()).all(|(&a, b)| same(a, b)), "{ty}");
        }
    }
}
