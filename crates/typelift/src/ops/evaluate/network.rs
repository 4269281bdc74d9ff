//! Operations of neural networks. Shapes rarely depend on their values, but OpenVINO computes them if it can.

use std::ops::Range;

use ElementType::{Bf16, F16, F32, F64, I8};
use smallvec::smallvec;
use typelift_promote::ElementType;

use super::elementwise::aligned;
use super::movement::reordered;
use super::reduction::groups;
use super::{COMMON, Evaluation, axis, dims_of, inferred_dims, of_type};
use crate::model::shape::AutoBroadcast;
use crate::ops::values::array::{self, Array, Data};

pub(crate) fn activation(inputs: &[&Array], types: &[ElementType], by: impl Fn(f64) -> f64) -> Option<Array> {
    Some(of_type(inputs.first()?, &[types])?.map(|v| v, by))
}

pub(crate) fn erf(x: f64) -> f64 {
    if !(-6.0..=6.0).contains(&x) {
        return if x.is_nan() { x } else { x.signum() };
    }
    // The series is 2/sqrt(pi) * exp(-x*x) * sum over n of 2^n * x^(2n+1) / (1*3*…*(2n+1)).
    let terms =
        std::iter::successors(Some((x, 1.0)), |&(term, n)| Some((term * 2.0 * x * x / (2.0 * n + 1.0), n + 1.0)));
    let sum: f64 = terms.take(150).map(|(term, _)| term).sum();
    std::f64::consts::FRAC_2_SQRT_PI * (-x * x).exp() * sum
}

pub(crate) fn gelu(evaluation: &Evaluation, inputs: &[&Array]) -> Option<Array> {
    let is_exact = evaluation.word("approximation_mode").ok()? == "erf";
    activation(inputs, &[Bf16, F16, F32], |x| {
        let inner = || (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044_715 * x.powi(3));
        0.5 * x * (1.0 + if is_exact { erf(x * std::f64::consts::FRAC_1_SQRT_2) } else { inner().tanh() })
    })
}

/// Evaluates Swish, with a factor as its second input.
pub(crate) fn swish(_: &Evaluation, inputs: &[&Array]) -> Option<Array> {
    let beta = inputs.get(1).map_or(Some(1.0), |beta| Some(beta.first()?.1))?;
    activation(inputs, &[Bf16, F16, F32], |x| x / (1.0 + (-beta * x).exp()))
}

/// Evaluates PRelu: negative values times a slope, one for all or one for each channel.
pub(crate) fn prelu(_: &Evaluation, inputs: &[&Array]) -> Option<Array> {
    let [data, slope] = inputs else { return None };
    of_type(data, &[&[Bf16, F16, F32, I8]])?;
    let slope = match (&slope.dims[..], data.dims.get(1)) {
        (&[length], Some(&channels)) if length != 1 && length == channels => slope.stretched(&data.dims, [1])?,
        (dims, _) => slope.stretched(&data.dims, data.dims.len().checked_sub(dims.len())?..)?,
    };
    data.zip(&slope, |x, s| Some(if x < 0 { x * s } else { x }), |x, s| if x < 0.0 { x * s } else { x })
}

/// Evaluates FakeQuantize: the data are clamped to the input range and moved to the nearest level of the output range.
pub(crate) fn fake_quantize(evaluation: &Evaluation, inputs: &[&Array]) -> Option<Array> {
    of_type(inputs.first()?, &[COMMON])?;
    let steps = evaluation.unsigned("levels").ok()?.checked_sub(1)?;
    let operands = aligned(evaluation, inputs)?;
    let [data, in_low, in_high, out_low, out_high] = &operands[..] else { return None };
    let values = match (&data.data, &in_low.data, &in_high.data, &out_low.data, &out_high.data) {
        (
            Data::Floats(data),
            Data::Floats(in_low),
            Data::Floats(in_high),
            Data::Floats(out_low),
            Data::Floats(out_high),
        ) => {
            let steps = steps as f64;
            let quantized = (0..data.len()).map(|at| match (data[at], in_low[at], in_high[at]) {
                (x, low, high) if x <= low.min(high) => out_low[at],
                (x, low, high) if x > low.max(high) => out_high[at],
                (x, low, high) => {
                    let level = ((x - low) / (high - low) * steps).round_ties_even();
                    array::round(operands[0].element_type, level / steps * (out_high[at] - out_low[at]) + out_low[at])
                }
            });
            Data::Floats(quantized.collect())
        }
        (Data::Ints(data), Data::Ints(in_low), Data::Ints(in_high), Data::Ints(out_low), Data::Ints(out_high)) => {
            let steps = i128::from(steps);
            let quantized = (0..data.len()).map(|at| {
                let (out_low, out_high) = (out_low.get(at)?, out_high.get(at)?);
                match (data.get(at)?, in_low.get(at)?, in_high.get(at)?) {
                    (x, low, high) if x <= low.min(high) => Some(out_low),
                    (x, low, high) if x > low.max(high) => Some(out_high),
                    (x, low, high) => {
                        let level = (x - low).checked_div(high - low)?.checked_mul(steps)?;
                        level.checked_div(steps)?.checked_mul(out_high - out_low)?.checked_add(out_low)
                    }
                }
            });
            Data::Ints(quantized.collect::<Option<_>>()?)
        }
        _ => return None,
    };
    Some(Array { data: values, ..data.clone() })
}

pub(crate) fn mat_mul(evaluation: &Evaluation, inputs: &[&Array]) -> Option<Array> {
    let [left, right] = inputs else { return None };
    let (ty, dims) = (of_type(left, &[COMMON])?.element_type, inferred_dims(evaluation)?);
    let left = rows(left, !evaluation.bool("transpose_a").ok()?)?;
    let right = rows(right, evaluation.bool("transpose_b").ok()?)?;
    let inner = *left.dims.last()?;
    // Combines every row of one operand with every column of the other.
    let spread = |array: &Array, before_last: usize| {
        let mut dims = array.dims.clone();
        dims.insert(dims.len().checked_sub(before_last)?, 1);
        array.reshaped(dims)
    };
    let (left, right) = (spread(&left, 1)?, spread(&right, 2)?);
    let all = dims_of(&AutoBroadcast::Numpy.combine(&left.shape(), &right.shape()).ok()?)?;
    let laid = |array: &Array| array.stretched(&all, all.len() - array.dims.len()..);
    let products = laid(&left)?.zip(&laid(&right)?, |x, y| Some(x.wrapping_mul(y)), |x, y| x * y)?;
    let sums = (0..array::count(&dims)?).map(|at| at * inner..(at + 1) * inner);
    let data = match &products.data {
        Data::Ints(values) => {
            let sum = |mut row: Range<usize>| row.try_fold(0_i128, |sum, at| Some(sum.wrapping_add(values.get(at)?)));
            Data::Ints(sums.map(|row| Some(array::wrap(ty, sum(row)?))).collect::<Option<_>>()?)
        }
        Data::Floats(values) => {
            Data::Floats(sums.map(|row| Some(array::round(ty, values.get(row)?.iter().sum()))).collect::<Option<_>>()?)
        }
    };
    Some(Array { element_type: ty, dims, data })
}

fn rows(operand: &Array, inner_is_last: bool) -> Option<Array> {
    let rank = operand.dims.len();
    match rank {
        0 => None,
        1 => operand.reshaped(smallvec![1, operand.len()]),
        _ if inner_is_last => Some(operand.clone()),
        _ => reordered(operand, &[(0..rank - 2).collect(), vec![rank - 1, rank - 2]].concat()),
    }
}

/// Applies `by` to each group of values that differ only in their positions on these axes.
fn together(data: &Array, axes: &[usize], by: impl Fn(&mut Vec<f64>)) -> Option<Array> {
    let (groups, count) = groups(data, axes)?;
    let (ty, values) = (data.element_type, data.to_floats());
    let mut members = vec![Vec::new(); count];
    for (&group, &value) in groups.iter().zip(&values) {
        members.get_mut(group)?.push(value);
    }
    members.iter_mut().for_each(by);
    let mut members: Vec<_> = members.into_iter().map(Vec::into_iter).collect();
    let values = groups.into_iter().map(|group| Some(array::round(ty, members.get_mut(group)?.next()?)));
    Some(Array::floats(ty, data.dims.clone(), values.collect::<Option<_>>()?))
}

pub(crate) fn softmax(evaluation: &Evaluation, inputs: &[&Array]) -> Option<Array> {
    let data = of_type(inputs.first()?, &[&[Bf16, F16, F32, F64]])?;
    let axis = axis(evaluation.int("axis").ok()?, data.dims.len())?;
    together(data, &[axis], |values| {
        let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = values.iter().map(|v| (v - most).exp()).sum();
        values.iter_mut().for_each(|v| *v = (*v - most).exp() / sum);
    })
}

pub(crate) fn cum_sum(evaluation: &Evaluation, inputs: &[&Array]) -> Option<Array> {
    let data = of_type(inputs.first()?, &[&[F32]])?;
    let axis = axis(inputs.get(1)?.first_integer()?, data.dims.len())?;
    let (exclusive, reverse) = (evaluation.bool("exclusive").ok()?, evaluation.bool("reverse").ok()?);
    let add = |sum: &mut f64, value: &mut f64| {
        let before = std::mem::replace(sum, *sum + *value);
        *value = if exclusive { before } else { *sum };
    };
    together(data, &[axis], |values| {
        let mut sum = 0.0;
        if reverse {
            values.iter_mut().rev().for_each(|value| add(&mut sum, value))
        } else {
            values.iter_mut().for_each(|value| add(&mut sum, value))
        }
    })
}

/// Evaluates MVN: values minus their mean, divided by their standard deviation if requested.
pub(crate) fn mvn(evaluation: &Evaluation, inputs: &[&Array]) -> Option<Array> {
    let [data, axes] = inputs else { return None };
    let data = of_type(data, &[&[F32]])?;
    let axes = axes.to_integers().into_iter().map(|at| axis(at, data.dims.len())).collect::<Option<Vec<_>>>()?;
    let (normalizes, eps) = (evaluation.bool("normalize_variance").ok()?, evaluation.float("eps").ok()?);
    let inside = evaluation.word("eps_mode").ok()? == "inside_sqrt";
    together(data, &axes, |values| {
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / count;
        let deviation = if inside { (variance + eps).sqrt() } else { variance.sqrt() + eps };
        values.iter_mut().for_each(|v| *v = (*v - mean) / if normalizes { deviation } else { 1.0 });
    })
}

/// Evaluates PriorBoxClustered: boxes of given sizes around each position of a layer, relative to the image, and their
/// variances.
pub(crate) fn prior_box_clustered(evaluation: &Evaluation, inputs: &[&Array]) -> Option<Array> {
    let [layer, image] = inputs else { return None };
    let (dims, float) = (inferred_dims(evaluation)?, |name| evaluation.float(name).ok());
    let (&[rows, columns], &[height, width]) = (&layer.to_floats()[..], &image.to_floats()[..]) else { return None };
    let (widths, heights) = (evaluation.floats("width").ok()?, evaluation.floats("height").ok()?);
    let step = |own, image: f64, layer: f64| match (float(own)?, float("step")?) {
        (0.0, 0.0) => Some(image / layer),
        (0.0, step) | (step, _) => Some(step),
    };
    let steps = [step("step_w", width, columns)?, step("step_h", height, rows)?];
    let (offset, clip) = (float("offset")?, evaluation.bool("clip").ok()?);
    let count = array::count(&dims)?;
    let boxes = (0..count).flat_map(|place| (0..widths.len()).map(move |prior| (place, prior)));
    let boxes = boxes.take(count / 8).map(|(place, prior)| {
        let center = |at: f64, step: f64| (at + offset) * step;
        let x = center((place as f64) % columns, steps[0]);
        let y = center((place as f64 / columns).floor(), steps[1]);
        let (half_width, half_height) = (widths.get(prior)? / 2.0, heights.get(prior)? / 2.0);
        let ends = [
            (x - half_width) / width,
            (y - half_height) / height,
            (x + half_width) / width,
            (y + half_height) / height,
        ];
        Some(ends.map(|end| if clip { end.clamp(0.0, 1.0) } else { end }))
    });
    let boxes = boxes.collect::<Option<Vec<_>>>()?.concat();
    let variances = match &evaluation.floats("variance").ok()?[..] {
        [] => vec![0.1],
        variances => variances.to_vec(),
    };
    let values = boxes.into_iter().chain(variances.into_iter().cycle().take(count / 2));
    Some(Array::floats(F32, dims, values.map(|value| array::round(F32, value)).collect()))
}
