//! Operations that move values without changing them.

use ElementType::{Bf16, Boolean, F16, F32, I8, I32, I64, U8, U32, U64};
use typelift_promote::ElementType;

use super::{Bounds, Evaluation, ends};
use super::{COMMON, axis, inferred_dims, of_type, position};
use crate::findings::{Text, message};
use crate::ops::Fault;
use crate::ops::broadcasting::{self, Mode};
use crate::ops::values::array::{self, Array, Data, Few, Fill, MAX_ELEMENTS, ZERO};

/// The largest integer up to which an f64 holds all integers.
const MOST_EXACT: u128 = 1 << 53;

/// Evaluates Reshape, Squeeze and Unsqueeze: the values in the inferred shape.
pub(crate) fn reshape(evaluation: &Evaluation, inputs: &[&Array]) -> Option<Array> {
    inputs.first()?.reshaped(inferred_dims(evaluation)?)
}

pub(crate) fn concat(evaluation: &Evaluation, inputs: &[&Array]) -> Option<Array> {
    let first = inputs.first()?;
    let axis = axis(evaluation.int("axis").ok()?, first.dims.len())?;
    let is_valid = inputs.iter().all(|input| axis < input.dims.len());
    Array::joined(is_valid.then_some(inputs)?, axis).filter(|joined| array::count(&joined.dims).is_some())
}

/// Evaluates Gather; an index out of range gives 0.
pub(crate) fn gather(evaluation: &Evaluation, inputs: &[&Array]) -> Option<Array> {
    let [data, indices, at] = inputs else { return None };
    if !at.element_type.is_integer() {
        return evaluation
            .refuse(Fault::types(&[2], "a shape is computed by a `Gather` along an axis that is not an integer"));
    }
    of_type(data, &[&[Boolean, Bf16, F16, F32, I8, I32, I64, U8, U32, U64]])?;
    of_type(indices, &[&[I32, I64]])?;
    let at = axis(at.first_integer()?, data.dims.len())?;
    let batch = match evaluation.operation.attribute("batch_dims") {
        Some(_) => usize::try_from(match evaluation.int("batch_dims").ok()? {
            batch if batch < 0 => batch.checked_add(i64::try_from(indices.dims.len()).ok()?)?,
            batch => batch,
        })
        .ok()?,
        None => 0,
    };
    (batch <= at && data.dims.get(..batch)? == indices.dims.get(..batch)?).then_some(())?;
    let dims = Few::from([&data.dims[..at], &indices.dims[batch..], &data.dims[at + 1..]].concat());
    array::count(&dims)?;
    let length = data.dims[at];
    let wanted: Vec<Option<usize>> = indices.to_integers().into_iter().map(|index| position(index, length)).collect();
    let batches: usize = data.dims[..batch].iter().product();
    let rows: usize = data.dims[batch..at].iter().product();
    let run: usize = data.dims[at + 1..].iter().product();
    let each = indices.dims[batch..].iter().product::<usize>();
    let places = (0..batches).flat_map(|b| (0..rows).map(move |row| (b, b * rows + row))).flat_map(|(b, row)| {
        let wanted = wanted.get(b * each..(b + 1) * each).unwrap_or_default();
        wanted
            .iter()
            .flat_map(move |index| (0..run).map(move |inner| index.map(|index| (row * length + index) * run + inner)))
    });
    data.at(dims, places, ZERO)
}

/// Negative ones count from the end, and both are clamped to `0..length`.
fn slice_indices(length: usize, start: i64, stop: i64, step: i64) -> Option<Vec<usize>> {
    let length = i64::try_from(length).ok()?;
    let from_end = |index: i64| if index < 0 { index.saturating_add(length) } else { index };
    let (lowest, highest) = if step > 0 { (0, length) } else { (-1, length - 1) };
    let stop = from_end(stop).clamp(lowest, highest);
    let mut index = from_end(start).clamp(lowest, highest);
    let mut indices = Vec::new();
    (step != 0).then_some(())?;
    while if step > 0 { index < stop } else { index > stop } {
        indices.push(usize::try_from(index).ok()?);
        index = index.saturating_add(step);
    }
    Some(indices)
}

pub(crate) fn slice(_: &Evaluation, inputs: &[&Array]) -> Option<Array> {
    let [data, start, stop, step, axes @ ..] = inputs else { return None };
    let numbers = [start, stop, step].map(|list| list.to_integers());
    let axes = axes.first().map_or_else(|| (0..numbers[0].len() as i64).collect(), |axes| axes.to_integers());
    let mut result = (*data).clone();
    for (at, &slice_axis) in axes.iter().enumerate() {
        let at = |list: usize| numbers[list].get(at).copied();
        let slice_axis = axis(slice_axis, result.dims.len())?;
        let indices = slice_indices(result.dims[slice_axis], at(0)?, at(1)?, at(2)?)?;
        result = result.take(slice_axis, indices.into_iter())?;
    }
    Some(result)
}

/// Computes StridedSlice of bounds. Begin and end may be unknown where a mask ignores them.
pub(crate) fn strided_slice_bounds(evaluation: &Evaluation, known: &[&Bounds]) -> Option<Bounds> {
    for (input, mask) in [(1, "begin_mask"), (2, "end_mask")] {
        let (bounds, mask) = (known.get(input)?, evaluation.ints(mask).ok()?);
        let (lower, upper) = (bounds.lower.to_integers(), bounds.upper().to_integers());
        if lower.iter().zip(&upper).enumerate().any(|(at, (lower, upper))| lower != upper && mask.get(at) != Some(&1)) {
            return None;
        }
    }
    if known.get(3).is_some_and(|strides| !strides.is_exact()) {
        return None;
    }
    ends(evaluation, known, strided_slice)
}

pub(crate) fn strided_slice(evaluation: &Evaluation, inputs: &[&Array]) -> Option<Array> {
    let [data, begin, end, strides @ ..] = inputs else { return None };
    let (begin, end) = (begin.to_integers(), end.to_integers());
    let strides = strides.first().map(|strides| strides.to_integers());
    let mask = |name: &'static str| evaluation.ints(name).ok();
    let (begin_mask, end_mask) = (mask("begin_mask")?, mask("end_mask")?);
    let (new_axis, shrink, ellipsis) = (mask("new_axis_mask")?, mask("shrink_axis_mask")?, mask("ellipsis_mask")?);
    let set = |mask: &[i64], at: usize| mask.get(at) == Some(&1);
    let rank = data.dims.len();
    let consumed = (0..begin.len()).filter(|at| !set(&new_axis, *at) && !set(&ellipsis, *at)).count();
    let own = array::strides(&data.dims);
    let mut lists = Vec::new();
    let mut shrunk = Vec::new();
    let mut source = 0;
    for at in 0..begin.len() {
        if set(&ellipsis, at) {
            for _ in 0..rank.checked_sub(consumed)? {
                lists.push(array::steps(*data.dims.get(source)?, own[source]));
                source += 1;
            }
        } else if set(&new_axis, at) {
            lists.push(vec![Some(0)]);
        } else {
            let (length, stride) = (*data.dims.get(source)?, own[source]);
            let step = strides.as_ref().map_or(Some(1), |strides| strides.get(at).copied())?;
            let (first, last) = if step > 0 { (0, i64::MAX) } else { (-1, i64::MIN) };
            // The reference ignores `begin_mask` at an axis that is removed. The CPU plugin takes index 0 there.
            let start = if set(&begin_mask, at) && !set(&shrink, at) { first } else { *begin.get(at)? };
            let indices = if set(&shrink, at) {
                shrunk.push(lists.len());
                vec![position(start, length)?]
            } else {
                slice_indices(length, start, if set(&end_mask, at) { last } else { *end.get(at)? }, step)?
            };
            lists.push(indices.into_iter().map(|index| Some(index * stride)).collect());
            source += 1;
        }
    }
    lists.extend(data.dims.iter().zip(&own).skip(source).map(|(&dim, &stride)| array::steps(dim, stride)));
    let mut result = data.pick(&lists, ZERO)?;
    let mut at = 0;
    result.dims.retain(|_| {
        at += 1;
        !shrunk.contains(&(at - 1))
    });
    Some(result)
}

pub(crate) fn split(evaluation: &Evaluation, inputs: &[&Array]) -> Option<Array> {
    let [data, at] = inputs else { return None };
    let at = axis(at.first_integer()?, data.dims.len())?;
    let pieces = usize::try_from(evaluation.unsigned("num_splits").ok()?).ok().filter(|&pieces| pieces > 0)?;
    let length = data.dims[at] / pieces;
    data.take(at, (0..length).map(|index| evaluation.port * length + index))
}

pub(crate) fn variadic_split(evaluation: &Evaluation, inputs: &[&Array]) -> Option<Array> {
    let [data, at, lengths] = inputs else { return None };
    let at = axis(at.first_integer()?, data.dims.len())?;
    let lengths = lengths.to_integers();
    let known: i64 = lengths.iter().filter(|&&length| length > 0).try_fold(0_i64, |sum, &l| sum.checked_add(l))?;
    let rest = usize::try_from(i64::try_from(data.dims[at]).ok()?.checked_sub(known)?).ok()?;
    let length = |length: i64| usize::try_from(length).unwrap_or(rest);
    let start: usize = lengths.get(..evaluation.port)?.iter().map(|&l| length(l)).sum();
    data.take(at, (0..length(*lengths.get(evaluation.port)?)).map(|index| start + index))
}

pub(crate) fn transpose(_: &Evaluation, inputs: &[&Array]) -> Option<Array> {
    let [data, order] = inputs else { return None };
    let rank = data.dims.len();
    let order = match order.to_integers() {
        order if order.is_empty() => (0..rank).rev().collect(),
        order => order.into_iter().map(|at| axis(at, rank)).collect::<Option<Vec<_>>>()?,
    };
    if order.len() == rank { reordered(data, &order) } else { None }
}

/// The data with its axes in this order.
pub(super) fn reordered(data: &Array, order: &[usize]) -> Option<Array> {
    data.pick(&data.axes(order.iter().copied()), ZERO)
}

/// Evaluates DepthToSpace: the depth is split into blocks, whose elements are laid out in space.
pub(crate) fn depth_to_space(evaluation: &Evaluation, inputs: &[&Array]) -> Option<Array> {
    let data = inputs.first()?;
    let size = usize::try_from(evaluation.int("block_size").ok()?).ok()?;
    let (&[batch, depth], spatial) = (data.dims.first_chunk()?, data.dims.get(2..)?);
    let axes = spatial.len();
    let rest = depth.checked_div(size.checked_pow(u32::try_from(axes).ok()?)?)?;
    let blocks_first = evaluation.word("mode").ok()? == "blocks_first";
    let (depth_at, blocks_at) = if blocks_first { (axes + 1, 1) } else { (1, 2) };
    let blocks = vec![size; axes];
    let depths = if blocks_first { [blocks, vec![rest]].concat() } else { [vec![rest], blocks].concat() };
    let cut = data.reshaped([&[batch], &depths[..], spatial].concat().into())?;
    let beside = (0..axes).flat_map(|axis| [axes + 2 + axis, blocks_at + axis]);
    reordered(&cut, &[0, depth_at].into_iter().chain(beside).collect::<Vec<_>>())?.reshaped(inferred_dims(evaluation)?)
}

/// Evaluates SpaceToDepth: the elements of each block are laid out in the depth.
pub(crate) fn space_to_depth(evaluation: &Evaluation, inputs: &[&Array]) -> Option<Array> {
    let data = inputs.first()?;
    let size = usize::try_from(evaluation.int("block_size").ok()?).ok()?;
    let (&[batch, depth], spatial) = (data.dims.first_chunk()?, data.dims.get(2..)?);
    let cut = spatial.iter().map(|dim| Some([dim.checked_div(size)?, size])).collect::<Option<Vec<_>>>()?;
    let cut = data.reshaped([&[batch, depth], &cut.concat()[..]].concat().into())?;
    let outer = (0..spatial.len()).map(|axis| 2 + 2 * axis);
    let within = outer.clone().map(|axis| axis + 1);
    let order: Vec<usize> = match evaluation.word("mode").ok()? {
        "blocks_first" => [0].into_iter().chain(within).chain([1]).chain(outer).collect(),
        _ => [0, 1].into_iter().chain(within).chain(outer).collect(),
    };
    reordered(&cut, &order)?.reshaped(inferred_dims(evaluation)?)
}

/// Evaluates ShuffleChannels: the channels are split into groups and interleaved.
pub(crate) fn shuffle_channels(evaluation: &Evaluation, inputs: &[&Array]) -> Option<Array> {
    let data = inputs.first()?;
    let at = axis(evaluation.int("axis").ok()?, data.dims.len())?;
    let groups = usize::try_from(evaluation.int("group").ok()?).ok()?;
    let each = data.dims[at].checked_div(groups)?;
    let cut = data.reshaped([&data.dims[..at], &[groups, each], &data.dims[at + 1..]].concat().into())?;
    let order: Vec<usize> = (0..at).chain([at + 1, at]).chain(at + 2..cut.dims.len()).collect();
    reordered(&cut, &order)?.reshaped(data.dims.clone())
}

pub(crate) fn tile(_: &Evaluation, inputs: &[&Array]) -> Option<Array> {
    let [data, repeats] = inputs else { return None };
    let repeats = repeats.to_integers();
    let rank = data.dims.len().max(repeats.len());
    let mut data = (*data).clone();
    data.dims.insert_many(0, std::iter::repeat_n(1, rank - data.dims.len()));
    let own = array::strides(&data.dims);
    let lists = data.dims.iter().zip(own).enumerate().map(|(at, (&dim, stride))| {
        let repeat = (at + repeats.len()).checked_sub(rank).map_or(1, |at| repeats[at].max(0));
        let length = usize::try_from(repeat).ok()?.checked_mul(dim).filter(|&length| length <= MAX_ELEMENTS)?;
        Some((0..length).map(|index| Some(index % dim * stride)).collect())
    });
    data.pick(&lists.collect::<Option<Vec<_>>>()?, ZERO)
}

pub(crate) fn broadcast(evaluation: &Evaluation, inputs: &[&Array]) -> Option<Array> {
    let (data, dims) = (inputs.first()?, inferred_dims(evaluation)?);
    let at_the_end = || dims.len().checked_sub(data.dims.len());
    match broadcasting::mode(evaluation, inputs.len()).ok()? {
        Mode::Explicit => {
            let axes = inputs.get(2)?.to_integers();
            data.stretched(&dims, axes.into_iter().map(|axis| usize::try_from(axis).unwrap_or(usize::MAX)))
        }
        Mode::Pdpd { axis } if axis != -1 => data.stretched(&dims, usize::try_from(axis).ok()?..),
        _ => data.stretched(&dims, at_the_end()?..),
    }
}

pub(crate) fn pad(evaluation: &Evaluation, inputs: &[&Array]) -> Option<Array> {
    let [data, begin, end, value @ ..] = inputs else { return None };
    let fill: Fill = value.first().map_or(Some(ZERO), |value| value.first())?;
    let mode = evaluation.word("pad_mode").ok()?;
    let own = array::strides(&data.dims);
    let mut lists = Vec::new();
    for (at, (begin, end)) in begin.to_integers().into_iter().zip(end.to_integers()).enumerate() {
        let dim = i64::try_from(*data.dims.get(at)?).ok()?;
        let length = dim.checked_add(begin)?.checked_add(end)?.clamp(0, MAX_ELEMENTS as i64 + 1);
        let source = |index: i64| {
            let index = index.saturating_sub(begin);
            // Symmetric padding repeats the edge element itself.
            let repeated = i64::from(mode == "symmetric");
            let index = match mode {
                "edge" => index.clamp(0, (dim - 1).max(0)),
                "constant" => index,
                _ if index < 0 => -index - repeated,
                _ if index >= dim => 2 * dim - 2 - index + repeated,
                _ => index,
            };
            position(index, data.dims[at]).filter(|_| index >= 0).map(|index| index * own[at])
        };
        lists.push((0..length).map(source).collect());
    }
    (lists.len() == data.dims.len()).then(|| data.pick(&lists, fill))?
}

pub(crate) fn scatter_update(_: &Evaluation, inputs: &[&Array]) -> Option<Array> {
    let [data, indices, updates, at] = inputs else { return None };
    let at = axis(at.first_integer()?, data.dims.len())?;
    let (rows, length): (usize, usize) = (data.dims[..at].iter().product(), data.dims[at]);
    let run: usize = data.dims[at + 1..].iter().product();
    let indices: Vec<usize> = indices.to_integers().into_iter().map(|i| position(i, length)).collect::<Option<_>>()?;
    let starts = (0..rows).flat_map(|row| indices.iter().map(move |index| (row * length + index) * run));
    let places: Vec<usize> = starts.flat_map(|start| start..start + run).collect();
    scatter(data, &places, updates, Reduction { name: "none", keeps_element: true })
}

pub(crate) fn scatter_nd_update(evaluation: &Evaluation, inputs: &[&Array]) -> Option<Array> {
    let [data, indices, updates] = inputs else { return None };
    of_type(data, &[COMMON, &[Boolean]])?;
    let depth = *indices.dims.last()?;
    let run: usize = data.dims.get(depth..)?.iter().product();
    let own = array::strides(&data.dims);
    let values = indices.to_integers();
    let mut places = Vec::with_capacity(updates.len());
    for at in 0..values.len().checked_div(depth).unwrap_or(0) {
        let tuple = values[at * depth..][..depth].iter().zip(&data.dims).zip(&own);
        let start = tuple.map(|((&index, &dim), stride)| Some(position(index, dim)? * stride)).sum::<Option<usize>>();
        let Some(start) = start else {
            let message = message!(
                "an index of `ScatterNDUpdate` is outside of its data {}";
                Text(format_args!("{:?}", data.dims))
            );
            return evaluation
                .refuse(Fault::value(&[1], message).rule("OpenVINO computes this value when it reads the model"));
        };
        places.extend(start..start + run);
    }
    scatter(data, &places, updates, Reduction::of(evaluation)?)
}

pub(crate) fn scatter_elements_update(evaluation: &Evaluation, inputs: &[&Array]) -> Option<Array> {
    let [data, indices, updates, at] = inputs else { return None };
    of_type(data, &[COMMON, &[Boolean, ElementType::I16]])?;
    let at = axis(at.first_integer()?, data.dims.len())?;
    (indices.dims.len() == data.dims.len()).then_some(())?;
    let (own, theirs) = (array::strides(&data.dims), array::strides(&indices.dims));
    let places = indices.to_integers().into_iter().enumerate().map(|(from, index)| {
        let along = |axis: usize| from / theirs[axis] % indices.dims[axis];
        let coordinate = |axis| if axis == at { position(index, data.dims[at]) } else { Some(along(axis)) };
        (0..own.len()).map(|axis| Some(coordinate(axis)? * own[axis])).sum::<Option<usize>>()
    });
    let places = places.collect::<Option<Vec<_>>>()?;
    scatter(data, &places, updates, Reduction::of(evaluation)?)
}

/// Method by which a scatter operation combines an element with its updates.
struct Reduction<'a> {
    name: &'a str,
    /// True if the old value of the element is included.
    keeps_element: bool,
}

impl<'a> Reduction<'a> {
    /// Reads the attributes; early revisions of the operations lack them.
    fn of(evaluation: &'a Evaluation) -> Option<Self> {
        let has = |attribute| evaluation.operation.attribute(attribute).is_some();
        Some(Self {
            name: if has("reduction") { evaluation.word("reduction").ok()? } else { "none" },
            keeps_element: !has("use_init_val") || evaluation.bool("use_init_val").ok()?,
        })
    }

    /// Combines integer values. For booleans, a sum is "or" and a product is "and".
    fn integer(&self, element_type: ElementType, values: &[i128]) -> Option<i128> {
        let values = values.iter().copied();
        let boolean = element_type == Boolean;
        let result = match self.name {
            "sum" if boolean => values.max(),
            "prod" if boolean => values.min(),
            "sub" if boolean => values.reduce(|rest, value| rest - value).map(|rest| i128::from(rest != 0)),
            "sum" => Some(values.sum()),
            "prod" => values.reduce(|product, value| array::wrap(element_type, product * value)),
            "sub" => values.reduce(|rest, value| rest - value),
            "min" => values.min(),
            "max" => values.max(),
            // OpenVINO adds in the element type, and divides in floating point.
            "mean" => {
                let sum = values.clone().sum::<i128>();
                let is_exact = sum == array::wrap(element_type, sum) && sum.unsigned_abs() <= MOST_EXACT;
                is_exact.then(|| sum.div_euclid(values.len() as i128))
            }
            _ => values.last(),
        };
        result.map(|value| array::wrap(element_type, value))
    }

    fn float(&self, element_type: ElementType, values: &[f64]) -> Option<f64> {
        let round = |value| array::round(element_type, value);
        let values = values.iter().copied();
        match self.name {
            "sum" => values.reduce(|sum, value| round(sum + value)),
            "prod" => values.reduce(|product, value| round(product * value)),
            "sub" => values.reduce(|rest, value| round(rest - value)),
            "min" => values.reduce(f64::min),
            "max" => values.reduce(f64::max),
            "mean" => {
                let count = values.len() as f64;
                values.reduce(|sum, value| round(sum + value)).map(|sum| round(sum / count))
            }
            _ => values.last(),
        }
    }
}

fn scatter(data: &Array, places: &[usize], updates: &Array, reduction: Reduction) -> Option<Array> {
    fn run<T: Copy, L: FromIterator<T>>(
        mut data: Vec<T>,
        places: &[usize],
        updates: impl Iterator<Item = T>,
        keeps_element: bool,
        reduce: impl Fn(&[T]) -> Option<T>,
    ) -> Option<L> {
        let mut met = std::collections::BTreeMap::<usize, Vec<T>>::new();
        for (&place, update) in places.iter().zip(updates) {
            let element = keeps_element.then_some(*data.get(place)?);
            met.entry(place).or_insert_with(|| element.into_iter().collect()).push(update);
        }
        for (place, values) in met {
            *data.get_mut(place)? = reduce(&values)?;
        }
        Some(data.into_iter().collect())
    }
    (places.len() == updates.len()).then_some(())?;
    let (ty, keeps_element) = (data.element_type, reduction.keeps_element);
    let values = match (&data.data, &updates.data) {
        (Data::Ints(data), Data::Ints(updates)) => {
            let reduce = |values: &[i128]| reduction.integer(ty, values);
            Data::Ints(run(data.iter().collect(), places, updates.iter(), keeps_element, reduce)?)
        }
        (Data::Floats(data), Data::Floats(updates)) => {
            let reduce = |values: &[f64]| reduction.float(ty, values);
            Data::Floats(run(data.to_vec(), places, updates.iter().copied(), keeps_element, reduce)?)
        }
        _ => return None,
    };
    Some(Array { data: values, ..data.clone() })
}
