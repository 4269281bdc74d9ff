//! Operations that concatenate tensors along an axis or split one: Concat, Split, VariadicSplit.

use smallvec::SmallVec;
use typelift_promote::ElementType;

use super::common::{
    attribute_axis, check_one_number, check_rank, check_type, checked_axis, fill_outputs, most_outputs,
};
use super::evaluate::{ALL, DATA, Evaluate};
use super::{Accepts, Attr, AttrKind, Context, Fault, Operation, Spread, Ties, evaluate};
use crate::findings::message;
use crate::model::shape::{Dim, Shape, ShapeMismatch};
use crate::ops::values::array::Few;

pub(super) const ROWS: &[Operation] = &[
    Operation::new("Concat", 0, concat)
        .spreads_on(&[Spread::Kept, Spread::Quantized])
        .requires(&["axis"])
        .evaluate(Evaluate::Ends(ALL, evaluate::concat))
        .inputs(1, usize::MAX)
        .ties(Ties::All)
        .attributes(&[Attr::new("axis", AttrKind::Int).default("0")]),
    Operation::new("Split", 1, split)
        .spreads_on(&[Spread::Kept, Spread::Quantized])
        .requires(&["num_splits"])
        .evaluate(Evaluate::Ends(DATA, evaluate::split))
        .inputs(2, 2)
        .attributes(&[Attr::new("num_splits", AttrKind::Unsigned).default("0")]),
    Operation::new("VariadicSplit", 1, variadic_split)
        .spreads_on(&[Spread::Kept, Spread::Quantized])
        .evaluate(Evaluate::Ends(DATA, evaluate::variadic_split))
        .inputs(3, 3),
];

fn concat(cx: &mut Context) -> Result<(), Fault> {
    let inputs: SmallVec<[usize; 8]> = (0..cx.inputs.len()).collect();
    let element_type = cx.merge_types(&inputs)?;
    let axis = cx.int("axis")?;
    let mut length = Dim::fixed(0);
    // The merged shape of the inputs so far, and the position of the axis to concatenate.
    let mut common: Option<(Shape, usize)> = None;
    for &input in &inputs {
        let mut shape = cx.shape(input).clone();
        let Some(rank) = shape.rank() else {
            length = length + Dim::ANY;
            continue;
        };
        let axis = attribute_axis(cx, "axis", axis, rank)?;
        if let Some(dim) = shape.dims_mut().and_then(|dims| dims.get_mut(axis)) {
            length = length + *dim;
            *dim = Dim::ANY;
        }
        common = Some(match common {
            None => (shape, axis),
            Some((before, _)) => match before.merge(&shape) {
                Ok(both) => (both, axis),
                Err(mismatch) => return Err(apart(cx, input, axis, mismatch)),
            },
        });
    }
    let shape = common.map_or_else(Shape::dynamic, |(mut shape, axis)| {
        if let Some(dim) = shape.dims_mut().and_then(|dims| dims.get_mut(axis)) {
            *dim = length;
        }
        shape
    });
    cx.finish(element_type, shape)
}

#[cold]
fn apart(cx: &Context, input: usize, axis: usize, mismatch: ShapeMismatch) -> Fault {
    let others: SmallVec<[usize; 8]> = (0..input).filter(|&other| cx.shape(other).rank().is_some()).collect();
    let message = message!("input {} of `Concat` has the shape {}: {}"; input, cx.shape(input), mismatch);
    let fault = Fault::shapes(&[others.first().copied().unwrap_or(0), input], message);
    fault.rule(message!("shapes must agree on every axis but {}"; axis))
}

fn split(cx: &mut Context) -> Result<(), Fault> {
    check_type(cx, 1, "axis", Accepts::Integer)?;
    check_rank(cx, 1, "axis", &[0])?;
    let count = cx.unsigned("num_splits")?;
    if count == 0 || i64::try_from(count).is_err() {
        return Err(Fault::attribute("num_splits", "`num_splits` must be 1 or more"));
    }
    let axis = cx.numbers(1)?;
    let mut shape = cx.shape(0).clone();
    match (shape.dims_mut(), axis.as_deref()) {
        (Some(dims), Some(&[axis, ..])) => {
            let dim = axis_mut(cx, dims, axis)?;
            *dim = part(*dim, count).ok_or_else(|| {
                let message =
                    message!("axis {} has length {}, which cannot be split into {} equal parts"; axis, dim, count);
                Fault::shapes(&[0], message)
            })?;
        }
        (Some(dims), _) => dims.fill(Dim::ANY),
        (None, _) => {}
    }
    fill_outputs(cx, usize::try_from(count).unwrap_or(usize::MAX), cx.element_type(0), &shape);
    Ok(())
}

fn axis_mut<'a>(cx: &Context, dims: &'a mut [Dim], axis: i64) -> Result<&'a mut Dim, Fault> {
    let position = checked_axis(cx, 1, axis, dims.len())?;
    dims.get_mut(position).ok_or_else(|| {
        Fault::shapes(&[0], message!("the data of `{}` is a scalar, which has no axis to split"; cx.ty()))
    })
}

/// If only bounds are known, OpenVINO divides both in single precision.
fn part(dim: Dim, count: u64) -> Option<Dim> {
    let divisor = i64::try_from(count).ok()?;
    if let Some(length) = dim.value() {
        return (length % divisor == 0).then(|| Dim::fixed(length / divisor));
    }
    let share = 1.0 / count as f32;
    let floor = |end: i64| (end as f32 * share) as i64;
    match dim.upper() {
        Some(upper) if upper < divisor => None,
        Some(upper) => Some(Dim::between(floor(dim.lower()), floor(upper))),
        None => Some(Dim::at_least(floor(dim.lower()))),
    }
}

fn variadic_split(cx: &mut Context) -> Result<(), Fault> {
    check_one_number(cx, 1, "axis")?;
    let Some(counts) = cx.shape(2).to_static() else {
        // While the number of outputs is unknown, OpenVINO creates one unknown output.
        return cx.finish(ElementType::Dynamic, Shape::dynamic());
    };
    check_rank(cx, 2, "lengths", &[1])?;
    let count = counts.first().and_then(|&count| usize::try_from(count).ok()).unwrap_or(usize::MAX);
    let element_type = cx.element_type(0);
    let mut shape = cx.shape(0).clone();
    let axis = if shape.rank().is_some() { cx.numbers(1)? } else { None };
    let (Some(dims), Some(&[axis, ..])) = (shape.dims_mut(), axis.as_deref()) else {
        shape.dims_mut().unwrap_or_default().fill(Dim::ANY);
        fill_outputs(cx, count, element_type, &shape);
        return Ok(());
    };
    let dim = axis_mut(cx, dims, axis)?;
    let data = std::mem::replace(dim, Dim::ANY);
    let Some(lengths) = cx.numbers(2)? else {
        fill_outputs(cx, count, element_type, &shape);
        return Ok(());
    };
    let axis = checked_axis(cx, 1, axis, shape.rank().unwrap_or(0))?;
    for length in parts(data, lengths)?.into_iter().take(most_outputs(cx)) {
        let mut part = shape.clone();
        if let Some(dim) = part.dims_mut().and_then(|dims| dims.get_mut(axis)) {
            *dim = Dim::from(length);
        }
        cx.output(element_type, part);
    }
    Ok(())
}

fn parts(data: Dim, mut lengths: Few<i64>) -> Result<Few<i64>, Fault> {
    let mut rest = None;
    let mut sum = 0_i64;
    for (position, &length) in lengths.iter().enumerate() {
        if length < -1 {
            let message = message!("part {} has the length {}"; position, length);
            return Err(Fault::value(&[2], message).rule("a length must be 0 or more, or -1 for the remaining length"));
        } else if length >= 0 {
            sum = sum.wrapping_add(length);
        } else if let Some(first) = rest.replace(position) {
            let message = message!("the lengths have -1 twice, at positions {} and {}"; first, position);
            return Err(Fault::value(&[2], message).rule("only one length can be computed from the others"));
        }
    }
    let Some(whole) = data.value() else { return Ok(lengths) };
    match rest.and_then(|rest| lengths.get_mut(rest)) {
        Some(rest) => *rest = whole.wrapping_sub(sum),
        None if sum != whole => {
            return Err(Fault::value(&[0, 2], message!("the parts add up to {}, but the dimension is {}"; sum, whole)));
        }
        None => {}
    }
    Ok(lengths)
}
