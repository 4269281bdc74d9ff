//! Operations that generate tensors from a few numbers: Eye, OneHot, RandomUniform.

use ElementType::{Bf16, F16, F32, F64, I8, I32, I64, U8};
use typelift_promote::ElementType;

use super::{Evaluation, inferred_dims, of_type};
use crate::ops::values::array::{self, Array, Data, ZERO};

pub(crate) fn eye(evaluation: &Evaluation, inputs: &[&Array]) -> Option<Array> {
    let (ty, dims) = (evaluation.element_type(), inferred_dims(evaluation)?);
    [Bf16, F16, F32, F64, I8, I32, I64, U8].contains(&ty).then_some(())?;
    let diagonal = i128::from(inputs.get(2)?.first_integer()?);
    let &[.., rows, columns] = &dims[..] else { return None };
    let is_one = |place: usize| (place % columns) as i128 - (place / columns % rows) as i128 == diagonal;
    let ones: Vec<bool> = (0..array::count(&dims)?).map(is_one).collect();
    Array::booleans(dims, ones).converted(ty)
}

/// Evaluates OneHot: along a new axis, one value at the indexed position and another elsewhere.
pub(crate) fn one_hot(evaluation: &Evaluation, inputs: &[&Array]) -> Option<Array> {
    let [indices, _, on, off] = inputs else { return None };
    let (indices, dims) = (of_type(indices, &[&[I32, I64]])?.to_integers(), inferred_dims(evaluation)?);
    let axis = super::axis(evaluation.int("axis").ok()?, dims.len())?;
    let normalizes = evaluation.operation.attribute("negative_indices_mode").is_some()
        && evaluation.word("negative_indices_mode").ok()? == "normalize";
    let (depth, inner) = (*dims.get(axis)?, array::strides(&dims)[axis]);
    let is_on = |place: usize| {
        let index = indices.get(place / (inner * depth) * inner + place % inner).copied();
        index.map(|index| if index < 0 && normalizes { index + depth as i64 } else { index })
            == Some((place / inner % depth) as i64)
    };
    let is_on: Vec<bool> = (0..array::count(&dims)?).map(is_on).collect();
    let off = off.at(dims, std::iter::repeat(Some(0)), ZERO)?;
    Some(off.masked(&is_on, on))
}

/// Evaluates RandomUniform with seeds, which gives the same numbers every time. OpenVINO uses TensorFlow's generator.
pub(crate) fn random_uniform(evaluation: &Evaluation, inputs: &[&Array]) -> Option<Array> {
    let [_, least, most] = inputs else { return None };
    let seed = |name| Some(evaluation.int(name).ok()? as u64);
    let (key, counter) = (seed("global_seed")?, seed("op_seed")?);
    if key == 0 && counter == 0 || evaluation.word("alignment").ok()? != "tensorflow" {
        return None;
    }
    let (ty, dims) = (evaluation.element_type(), inferred_dims(evaluation)?);
    let ((low, low_float), (high, high_float)) = (least.first()?, most.first()?);
    let count = array::count(&dims)?;
    let words = (0..).flat_map(|block| philox(key, counter, block));
    let pairs = (0..).map(|block| philox(key, counter, block)).flat_map(|[a, b, c, d]| [(a, b), (c, d)]);
    // The random bits become a fraction between 0 and 1, or an integer to be divided by the length of the range.
    let fraction = |word: u32, bits: u32| f64::from(word & ((1 << bits) - 1)) / f64::from(1_u32 << bits);
    let scaled = |part: f64| {
        let range = array::round(ty, high_float - low_float);
        array::round(ty, array::round(ty, part * range) + low_float)
    };
    let floats = |bits| words.clone().take(count).map(|word| scaled(fraction(word, bits))).collect();
    let wide = |(low, high): (u32, u32)| u64::from(high) << 32 | u64::from(low);
    let within = |drawn: u64| drawn.checked_rem(u64::try_from(high - low).ok()?).map(|drawn| i128::from(drawn) + low);
    let data = match ty {
        F64 => {
            let part = |(high, low): (u32, u32)| {
                (f64::from(high & 0xf_ffff) * 2_f64.powi(32) + f64::from(low)) / 2_f64.powi(52)
            };
            Data::Floats(pairs.take(count).map(part).map(scaled).collect())
        }
        F32 => Data::Floats(floats(23)),
        F16 => Data::Floats(floats(10)),
        Bf16 => Data::Floats(floats(7)),
        I64 => Data::Ints(pairs.take(count).map(wide).map(within).collect::<Option<_>>()?),
        I32 => Data::Ints(words.take(count).map(|word| within(word.into())).collect::<Option<_>>()?),
        _ => return None,
    };
    Some(Array { element_type: ty, dims, data })
}

fn philox(key: u64, counter: u64, block: u64) -> [u32; 4] {
    let halves = |wide: u64| (wide as u32, (wide >> 32) as u32);
    let ((mut left, mut right), mut block, mut counter) = (halves(key), halves(block), halves(counter));
    for _ in 0..10 {
        let (block_low, block_high) = halves(0xd251_1f53 * u64::from(block.0));
        let (counter_low, counter_high) = halves(0xcd9e_8d57 * u64::from(counter.0));
        block = (counter_high ^ block.1 ^ left, counter_low);
        counter = (block_high ^ counter.1 ^ right, block_low);
        left = left.wrapping_add(0x9e37_79b9);
        right = right.wrapping_add(0xbb67_ae85);
    }
    [block.0, block.1, counter.0, counter.1]
}

#[cfg(test)]
mod tests {
    use super::philox;

    #[test]
    fn random_numbers_are_those_that_openvino_draws() {
        // The values are those of a RandomUniform of i32 from 0 to 9 with global_seed 1 and op_seed 2.
        let drawn = [philox(1, 2, 0), philox(1, 2, 1)].concat();
        assert_eq!(drawn.iter().map(|word| word % 9).collect::<Vec<_>>(), [8, 8, 6, 8, 8, 7, 7, 7]);
    }
}
