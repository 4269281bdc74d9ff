//! Reductions, and operations that search for values.

use ElementType::{Boolean, F64, I8, I16, U8, U16};
use smallvec::smallvec;
use typelift_promote::ElementType;

use super::{Bounds, Evaluation};
use super::{COMMON, axis, inferred_dims, of_type};
use crate::ops::Fault;
use crate::ops::values::array::{self, Array, Data, ZERO};

/// Reduces along axes. `ints` or `floats` combines the values of each group.
pub(crate) fn reduce(
    evaluation: &Evaluation,
    inputs: &[&Array],
    types: &[&[ElementType]],
    ints: fn(&[i128]) -> Option<i128>,
    floats: fn(&[f64]) -> Option<f64>,
) -> Option<Array> {
    fn run<T: Clone, L: FromIterator<T>>(
        values: impl Iterator<Item = T>,
        groups: &[usize],
        count: usize,
        by: impl Fn(&[T]) -> Option<T>,
    ) -> Option<L> {
        let mut members = vec![Vec::new(); count];
        for (value, &group) in values.zip(groups) {
            members.get_mut(group)?.push(value);
        }
        members.iter().map(|members| by(members)).collect()
    }
    let [data, axes] = inputs else { return None };
    let (ty, rank) = (of_type(data, types)?.element_type, data.dims.len());
    let axes = axes.to_integers().into_iter().map(|at| axis(at, rank)).collect::<Option<Vec<_>>>()?;
    let (groups, count) = groups(data, &axes)?;
    let values = match &data.data {
        Data::Ints(values) => {
            Data::Ints(run(values.iter(), &groups, count, |group| Some(array::wrap(ty, ints(group)?)))?)
        }
        Data::Floats(values) => {
            Data::Floats(run(values.iter().copied(), &groups, count, |group| Some(array::round(ty, floats(group)?)))?)
        }
    };
    let keep_dims = evaluation.bool("keep_dims").ok()?;
    let dims = data
        .dims
        .iter()
        .enumerate()
        .filter_map(|(at, &dim)| if axes.contains(&at) { keep_dims.then_some(1) } else { Some(dim) });
    Some(Array { element_type: ty, dims: dims.collect(), data: values })
}

/// Values that differ only in their positions on these axes form a group.
pub(super) fn groups(data: &Array, axes: &[usize]) -> Option<(Vec<usize>, usize)> {
    let kept = |at: usize| !axes.contains(&at);
    let reduced: Vec<usize> = data.dims.iter().enumerate().map(|(at, &dim)| if kept(at) { dim } else { 1 }).collect();
    let (own, into) = (array::strides(&data.dims), array::strides(&reduced));
    let along = |place: usize, at: usize| place / own[at] % data.dims[at] * into[at];
    let group = |place: usize| (0..data.dims.len()).filter(|&at| kept(at)).map(|at| along(place, at)).sum();
    Some(((0..data.len()).map(group).collect(), array::count(&reduced)?))
}

pub(crate) fn reduce_prod(evaluation: &Evaluation, inputs: &[&Array]) -> Option<Array> {
    let ints = |values: &[i128]| Some(values.iter().fold(1_i128, |product, v| product.wrapping_mul(*v)));
    reduce(evaluation, inputs, &[COMMON], ints, |values| Some(values.iter().product()))
}

/// Computes ReduceProd of bounds. The upper bound is unlimited if that of a factor is, unless another factor is 0.
pub(crate) fn product_bounds(evaluation: &Evaluation, known: &[&Bounds]) -> Option<Bounds> {
    let [data, axes] = known else { return None };
    let axes = axes.exact()?;
    let lower = reduce_prod(evaluation, &[&data.lower, axes])?;
    if data.is_exact() {
        return Some(Bounds::exactly(lower));
    }
    let upper = match data.upper() {
        upper if upper.is_open().contains(&true) && upper.truths().iter().all(|&truth| truth) => {
            let all = vec![true; lower.len()];
            lower.clone().masked(&all, &array::largest(lower.element_type)?)
        }
        upper => reduce_prod(evaluation, &[upper, axes])?,
    };
    Some(Bounds::new(lower, upper))
}

/// Evaluates NonZero: the positions of the values that are not 0, one row per axis.
pub(crate) fn non_zero(evaluation: &Evaluation, inputs: &[&Array]) -> Option<Array> {
    let (rows, places) = non_zero_places(inputs.first()?)?;
    let (dims, own) = (&inputs.first()?.dims, array::strides(&inputs.first()?.dims));
    array::count(&[rows, places.len()])?;
    let along = |row: usize, place: usize| dims.get(row).map_or(0, |dim| place / own[row] % dim) as i128;
    let values = (0..rows).flat_map(|row| places.iter().map(move |&place| (row, place)));
    let values = values.map(|(row, place)| along(row, place));
    Some(Array::ints(evaluation.element_type(), smallvec![rows, places.len()], values))
}

/// The number of rows of NonZero, and the positions of the values that are not 0.
pub(crate) fn non_zero_places(data: &Array) -> Option<(usize, Vec<usize>)> {
    of_type(data, &[COMMON, &[Boolean, F64, I8, I16, U8, U16]])?;
    let truths = data.truths().into_iter().enumerate();
    let places: Vec<usize> = truths.filter(|&(_, truth)| truth).map(|(place, _)| place).collect();
    // A scalar other than 0 is treated as a list of one value.
    let rows = if data.dims.is_empty() { places.len() } else { data.dims.len() };
    Some((rows, places))
}

/// Evaluates TopK: the greatest or smallest values along an axis, and their positions.
pub(crate) fn top_k(evaluation: &Evaluation, inputs: &[&Array]) -> Option<Array> {
    let [data, k] = inputs else { return None };
    let data = of_type(data, &[COMMON])?;
    let at = axis(evaluation.int("axis").ok()?, data.dims.len())?;
    let (length, run) = (data.dims[at], array::strides(&data.dims)[at]);
    let k = usize::try_from(k.first_integer()?).ok()?.min(length);
    if k == 0 && length > 0 {
        let message = "a shape depends on a `TopK` that selects no elements";
        return evaluation
            .refuse(Fault::value(&[1], message).rule("OpenVINO computes this value as if it selected all elements"));
    }
    let (greatest, sort) = (evaluation.word("mode").ok()? == "max", evaluation.word("sort").ok()?);
    if sort == "none" && k > 1 {
        // The order of the elements is OpenVINO's own.
        return None;
    }
    let compare = |a: usize, b: usize| match &data.data {
        Data::Ints(values) => values.get(a).cmp(&values.get(b)),
        Data::Floats(values) => values[a].total_cmp(&values[b]),
    };
    let chosen = |row: usize| {
        let start = row / run * length * run + row % run;
        let mut indices: Vec<usize> = (0..length).collect();
        indices.sort_by(|&a, &b| {
            let order = compare(start + a * run, start + b * run);
            if greatest { order.reverse() } else { order }
        });
        indices.truncate(k);
        if sort == "index" {
            indices.sort_unstable();
        }
        indices.into_iter().map(move |index| (start + index * run, index)).collect::<Vec<_>>()
    };
    let mut dims = data.dims.clone();
    dims[at] = k;
    let rows = data.len().checked_div(length).unwrap_or(0);
    let chosen: Vec<Vec<(usize, usize)>> = (0..rows).map(chosen).collect();
    let in_order = |place: usize| chosen[place / (k * run) * run + place % run][place / run % k];
    let count = array::count(&dims)?;
    match evaluation.port {
        0 => data.at(dims, (0..count).map(|place| Some(in_order(place).0)), ZERO),
        _ => Some(Array::ints(evaluation.element_type(), dims, (0..count).map(|place| in_order(place).1 as i128))),
    }
}

/// Computes Range: consecutive numbers, as many as the inferred shape has.
pub(crate) fn range(evaluation: &Evaluation, inputs: &[&Array]) -> Option<Array> {
    let [start, _, step] = inputs else { return None };
    let (dims, ty) = (inferred_dims(evaluation)?, evaluation.element_type());
    let ([start, step], count) = ([start.converted(ty)?.first()?, step.converted(ty)?.first()?], array::count(&dims)?);
    Some(if ty.is_float() {
        Array::floats(ty, dims, (0..count).map(|at| array::round(ty, start.1 + at as f64 * step.1)).collect())
    } else {
        Array::ints(ty, dims, (0..count).map(|at| array::wrap(ty, start.0 + at as i128 * step.0)))
    })
}
