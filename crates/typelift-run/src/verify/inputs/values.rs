//! Values of inputs, chosen by their use.

use typelift::promote::{ElementType, Kind};
use typelift::values::{Array, Few, round};

use super::roles::Role;
use crate::verify::Tensor;
use crate::verify::random::Random;

/// The distribution of floating-point values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Floats {
    Normal,
    /// A quarter as large, so that fewer layers are saturated.
    Quarter,
    /// From 0 to 1.
    Unit,
    /// From 0.5 to 1.5.
    Positive,
    /// From 0 to 0.01.
    Small,
    /// Ten times as large as normal.
    Wide,
    /// Of both signs, with a sum above 0, for a branch that runs where a sum or a mean is positive.
    Raised,
    /// Of both signs, with a sum below 0.
    Lowered,
}

pub(super) struct Values {
    pub(super) words: String,
    numbers: Numbers,
}

enum Numbers {
    Ints(Vec<i128>),
    Floats(Vec<f64>),
    Texts(Vec<u8>),
}

const TEXTS: [&str; 4] = ["hello world", "The quick brown fox", "a", "x = 1 + 2"];

fn ints(words: String, ints: impl IntoIterator<Item = i64>) -> Values {
    Values { words, numbers: Numbers::Ints(ints.into_iter().map(i128::from).collect()) }
}

/// Chooses values for an input with this type and shape. `step` is the step of a model with state.
pub(super) fn values(
    ty: ElementType,
    dims: &[usize],
    role: Role,
    floats: Floats,
    step: usize,
    random: &mut Random,
) -> Values {
    let count: usize = dims.iter().product();
    let last = dims.last().copied().unwrap_or(1).max(1);
    if ty == ElementType::String {
        let texts = (0..count).flat_map(|at| {
            let text = TEXTS[at % TEXTS.len()].as_bytes();
            [&(text.len() as u32).to_le_bytes()[..], text].concat()
        });
        return Values { words: "texts".to_owned(), numbers: Numbers::Texts(texts.collect()) };
    }
    if role.is_mask && role.limit.is_none_or(|limit| limit > 1) {
        // The first element is never masked, because a softmax over nothing is NaN.
        let mask = (0..count).map(|at| i64::from(at.is_multiple_of(last) || random.unit() < 0.8));
        return as_type(ty, ints("mask of 0 and 1".to_owned(), mask));
    }
    if let Some(longest) = role.longest {
        let lengths = (0..count).map(|_| random.between(1, longest));
        return as_type(ty, ints(format!("lengths 1 to {longest}"), lengths));
    }
    let largest = role.limit.map(|limit| limit - 1);
    if role.is_position && ty.is_integer() {
        let positions = (0..count).map(|at| {
            let position = ((at % last) + step * last) as i64;
            largest.map_or(position, |largest| position.min(largest))
        });
        return ints("positions from 0".to_owned(), positions);
    }
    if let Some(largest) = largest {
        let most = if ty.is_float() { largest.min(2048) } else { largest.min(max_of(ty)) };
        let mut indices: Vec<i64> = (0..count).map(|_| random.between(0, most)).collect();
        if role.is_sorted {
            indices.sort_unstable();
            indices.first_mut().into_iter().for_each(|first| *first = 0);
        }
        let what = if role.is_sorted { "offsets" } else { "indices" };
        return as_type(ty, ints(format!("{what} 0 to {most}"), indices));
    }
    if ty.kind() == Kind::Float {
        let (words, next): (_, fn(&mut Random) -> f64) = match floats {
            _ if role.is_box => ("boxes in 0 to 1", Random::unit),
            Floats::Normal => ("normal", Random::normal),
            Floats::Quarter => ("normal / 4", |random| random.normal() / 4.0),
            Floats::Unit => ("uniform 0 to 1", Random::unit),
            Floats::Positive => ("uniform 0.5 to 1.5", |random| 0.5 + random.unit()),
            Floats::Small => ("uniform 0 to 0.01", |random| 0.01 * random.unit()),
            Floats::Wide => ("normal * 10", |random| 10.0 * random.normal()),
            Floats::Raised => ("normal + 0.5", |random| random.normal() + 0.5),
            Floats::Lowered => ("normal - 0.5", |random| random.normal() - 0.5),
        };
        let numbers = Numbers::Floats((0..count).map(|_| round(ty, next(random))).collect());
        return Values { words: words.to_owned(), numbers };
    }
    let (low, high) = match ty {
        ElementType::Boolean | ElementType::U1 => (0, 1),
        // A loop of one step does not use what it carries. Large values in many steps are likely to end it.
        _ if role.is_trips && floats == Floats::Wide => (8, 16),
        _ if role.is_trips => (2, 4),
        _ if role.is_count => (1, 3),
        ElementType::U8 if dims.len() > 2 => (0, 255),
        _ => (1, 9.min(max_of(ty))),
    };
    ints(format!("integers {low} to {high}"), (0..count).map(|_| random.between(low, high)))
}

fn max_of(ty: ElementType) -> i64 {
    let bits = ty.bits().min(62) - u32::from(ty.kind() == Kind::Signed);
    (1 << bits) - 1
}

/// Converts integers to floating-point numbers if the type requires it.
fn as_type(ty: ElementType, values: Values) -> Values {
    match values.numbers {
        Numbers::Ints(ints) if ty.is_float() => {
            let numbers = Numbers::Floats(ints.into_iter().map(|value| round(ty, value as f64)).collect());
            Values { words: values.words, numbers }
        }
        numbers => Values { numbers, ..values },
    }
}

impl Values {
    /// The values as a tensor of a type; `None` if the type is not numeric.
    pub(super) fn tensor(&self, ty: ElementType, dims: &[usize]) -> Option<Tensor> {
        let shape: Few<usize> = dims.iter().copied().collect();
        let own = match &self.numbers {
            Numbers::Texts(bytes) => return Some(Tensor::new(ty, dims.to_vec(), bytes.clone())),
            Numbers::Ints(ints) => Array::ints(ElementType::I64, shape, ints.iter().copied()),
            Numbers::Floats(floats) => Array::floats(ElementType::F64, shape, floats.iter().copied().collect()),
        };
        Some(Tensor::new(ty, dims.to_vec(), own.converted(ty)?.encode()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn branches_on_a_sum_run_with_values_of_both_signs() {
        for (floats, sign) in [(Floats::Raised, 1.0), (Floats::Lowered, -1.0)] {
            for seed in 0..50 {
                let made = values(ElementType::F32, &[6, 6], Role::default(), floats, 0, &mut Random::new(seed));
                let made = if let Numbers::Floats(made) = made.numbers { made } else { Vec::new() };
                assert!(made.iter().sum::<f64>() * sign > 0.0, "{floats:?} {seed}");
                assert!(made.iter().any(|value| value * sign < 0.0), "{floats:?} {seed}");
            }
        }
    }
}
