//! Operations that bring many values down to one, and those that look for values.

use std::cmp::Ordering;

use typelift_promote::ElementType;
use ElementType::{Bf16, Boolean, F16, F32, F64, I8, I16, I32, I64, U8, U16};

use super::{COMMON, axis, of_type};
use crate::infer::array::{self, Array, Data};
use crate::infer::value::{Bounds, Evaluation, ends};

/// The values that each value of a reduced tensor comes from.
struct Groups {
    dims: Vec<usize>,
    /// For each value of the data, which value of the result it goes into.
    group: Vec<usize>,
}

fn groups(evaluation: &Evaluation, inputs: &[&Array]) -> Option<Groups> {
    let [data, axes] = inputs else { return None };
    let rank = data.dims.len();
    let axes = axes.to_integers().into_iter().map(|at| axis(at, rank)).collect::<Option<Vec<_>>>()?;
    let reduced: Vec<usize> =
        data.dims.iter().enumerate().map(|(at, &dim)| if axes.contains(&at) { 1 } else { dim }).collect();
    let (own, into) = (array::strides(&data.dims), array::strides(&reduced));
    let group = (0..data.len()).map(|place| {
        let along = |at: usize| if axes.contains(&at) { 0 } else { place / own[at] % data.dims[at] * into[at] };
        (0..rank).map(along).sum()
    });
    let group = group.collect();
    let keep = evaluation.bool("keep_dims").ok()?;
    let dims = reduced.iter().enumerate().filter(|(at, _)| keep || !axes.contains(at)).map(|(_, &dim)| dim);
    Some(Groups { dims: dims.collect(), group })
}

/// A reduction that folds values one after the other, starting from the first one or from `start`.
pub(crate) fn fold(
    evaluation: &Evaluation,
    inputs: &[&Array],
    types: &[&[ElementType]],
    start: f64,
    ints: fn(i128, i128) -> i128,
    floats: fn(f64, f64) -> f64,
) -> Option<Array> {
    fn run<T: Copy>(groups: &Groups, count: usize, values: &[T], start: T, by: impl Fn(T, T) -> T) -> Vec<T> {
        let mut result = vec![start; count];
        for (&group, &value) in groups.group.iter().zip(values) {
            result[group] = by(result[group], value);
        }
        result
    }
    let data = of_type(inputs.first()?, types)?;
    let ty = data.element_type;
    let groups = groups(evaluation, inputs)?;
    let count = array::count(&groups.dims)?;
    let data = match &data.data {
        Data::Ints(values) => {
            Data::Ints(run(&groups, count, values, array::truncate(ElementType::I64, start), |a, b| array::wrap(ty, ints(a, b))))
        }
        Data::Floats(values) => Data::Floats(run(&groups, count, values, start, |a, b| array::round(ty, floats(a, b)))),
    };
    Some(Array { element_type: ty, dims: groups.dims, data })
}
