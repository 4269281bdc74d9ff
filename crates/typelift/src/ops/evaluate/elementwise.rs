//! Element-wise operations.

use ElementType::{Boolean, F64, I8, I16, U8, U16};
use typelift_promote::{ElementType, Kind};

use super::{Bounds, Evaluation, Evaluator, ends};
use super::{COMMON, dims_of, of_type};
use crate::findings::Code;
use crate::model::shape::AutoBroadcast;
use crate::ops::Fault;
use crate::ops::bounds::{converted, is_converted};
use crate::ops::broadcasting::auto_broadcast;
use crate::ops::values::array::{self, Array, Data};

/// Applies a function of real numbers; for integers, `whole` converts the result.
pub(crate) fn function(inputs: &[&Array], by: fn(f64) -> f64, whole: fn(f64) -> f64) -> Option<Array> {
    let x = of_type(inputs.first()?, &[COMMON])?;
    let ty = x.element_type;
    Some(x.map(|v| array::truncate(ty, whole(by(v as f64))), by))
}

/// Applies a function with a separate rule for integers.
pub(crate) fn number(
    inputs: &[&Array],
    more: &[ElementType],
    ints: fn(i128) -> i128,
    floats: fn(f64) -> f64,
) -> Option<Array> {
    Some(of_type(inputs.first()?, &[COMMON, more])?.map(ints, floats))
}

pub(crate) fn absolute(_: &Evaluation, inputs: &[&Array]) -> Option<Array> {
    number(inputs, &[], i128::abs, f64::abs)
}

/// Computes Abs of bounds, which can swap lower and upper bound.
pub(crate) fn absolute_bounds(evaluation: &Evaluation, known: &[&Bounds]) -> Option<Bounds> {
    let Bounds { lower, upper } = ends(evaluation, known, absolute)?;
    let Some(upper) = upper else { return Some(Bounds::exactly(lower)) };
    let least = lower.zip(&upper, |a, b| Some(a.min(b)), f64::min)?;
    Some(Bounds::new(least, lower.zip(&upper, |a, b| Some(a.max(b)), f64::max)?))
}

pub(crate) fn clamp(evaluation: &Evaluation, inputs: &[&Array]) -> Option<Array> {
    let x = of_type(inputs.first()?, &[COMMON, &[I8, I16, U8, U16]])?;
    let (min, max) = (evaluation.float("min").ok()?, evaluation.float("max").ok()?);
    let (low, high) = (min.ceil() as i128, max.floor() as i128);
    Some(x.map(|v| v.max(low).min(high), |v| v.max(min).min(max)))
}

pub(crate) fn round(evaluation: &Evaluation, inputs: &[&Array]) -> Option<Array> {
    let even = evaluation.word("mode").ok()? == "half_to_even";
    let types: &[ElementType] = &[Boolean, I8, I16, U8, U16];
    Some(of_type(inputs.first()?, &[COMMON, types])?.map(|v| v, if even { f64::round_ties_even } else { f64::round }))
}

pub(crate) fn logical_not(_: &Evaluation, inputs: &[&Array]) -> Option<Array> {
    let x = of_type(inputs.first()?, &[COMMON, &[Boolean, U8]])?;
    Some(x.map(|v| (v == 0).into(), |v| f64::from(v == 0.0)))
}

pub(crate) fn convert(evaluation: &Evaluation, inputs: &[&Array]) -> Option<Array> {
    let (x, to) = (inputs.first()?, evaluation.element_type());
    x.converted(to).filter(|_| !evaluation.is_decompression() && is_converted(x.element_type, to))
}

pub(crate) fn convert_end(evaluation: &Evaluation, inputs: &[&Array]) -> Option<Array> {
    if evaluation.is_decompression() {
        return None;
    }
    if evaluation.element_type() == ElementType::Dynamic {
        let message = "a shape depends on a `Convert` without a destination type";
        return evaluation.refuse(Fault::other(Code::MissingAttribute, message).help("write `destination_type`"));
    }
    converted(inputs.first()?, evaluation.element_type())
}

/// Broadcasts the operands of an operation to the same shape.
pub(super) fn aligned(evaluation: &Evaluation, operands: &[&Array]) -> Option<Vec<Array>> {
    let rule = auto_broadcast(evaluation).ok()?;
    let mut shape = operands.first()?.shape();
    for operand in &operands[1..] {
        shape = rule.combine(&shape, &operand.shape()).ok()?;
    }
    let dims = dims_of(&shape)?;
    let laid = operands.iter().enumerate().map(|(input, operand)| {
        let start = match rule {
            AutoBroadcast::Pdpd { axis } if input > 0 && axis >= 0 => usize::try_from(axis).ok()?,
            _ => dims.len().checked_sub(operand.dims.len())?,
        };
        operand.stretched(&dims, start..)
    });
    laid.collect()
}

pub(crate) fn arithmetic(
    evaluation: &Evaluation,
    inputs: &[&Array],
    types: &[&[ElementType]],
    ints: impl Fn(i128, i128) -> Option<i128>,
    floats: impl Fn(f64, f64) -> f64,
) -> Option<Array> {
    of_type(inputs.first()?, types)?;
    match &aligned(evaluation, inputs)?[..] {
        [left, right] => left.zip(right, ints, floats),
        _ => None,
    }
}

pub(crate) fn floor_mod(evaluation: &Evaluation, inputs: &[&Array]) -> Option<Array> {
    let ty = inputs.first()?.element_type;
    let ints = |x: i128, y: i128| match y {
        // Result of converting infinity to an integer.
        0 if ty.kind() == Kind::Signed => Some(-1 << (ty.bits() - 1)),
        _ => x.checked_rem(y)?.checked_add(y)?.checked_rem(y),
    };
    arithmetic(evaluation, inputs, &[COMMON, &[I8, U8]], ints, |x, y| x - y * (x / y).floor())
}

pub(crate) fn power(evaluation: &Evaluation, inputs: &[&Array]) -> Option<Array> {
    let ty = inputs.first()?.element_type;
    arithmetic(evaluation, inputs, &[COMMON], |x, y| Some(array::truncate(ty, (x as f64).powf(y as f64))), f64::powf)
}

/// Computes comparisons and logic.
pub(crate) fn relation(
    evaluation: &Evaluation,
    inputs: &[&Array],
    types: &[&[ElementType]],
    ints: fn(&i128, &i128) -> bool,
    floats: fn(&f64, &f64) -> bool,
) -> Option<Array> {
    of_type(inputs.first()?, types)?;
    match &aligned(evaluation, inputs)?[..] {
        [left, right] => Some(Array::booleans(left.dims.clone(), left.compare(right, ints, floats)?)),
        _ => None,
    }
}

/// Element types for which Equal and Select are computed.
const COMPARED: &[&[ElementType]] = &[COMMON, &[Boolean, F64, I8, I16, U8, U16]];

pub(crate) fn equal(evaluation: &Evaluation, inputs: &[&Array]) -> Option<Array> {
    relation(evaluation, inputs, COMPARED, i128::eq, f64::eq)
}

/// Computes Equal of bounds. The result is also known if two intervals do not overlap.
pub(crate) fn equal_bounds(evaluation: &Evaluation, known: &[&Bounds]) -> Option<Bounds> {
    let [left, right] = known else { return None };
    let ty = of_type(&left.lower, COMPARED)?.element_type;
    let ends = aligned(evaluation, &[&left.lower, left.upper(), &right.lower, right.upper()])?;
    let [ll, lu, rl, ru] = &ends[..] else { return None };
    let equal = |a: &Array, b: &Array| a.compare(b, i128::eq, f64::eq);
    let at_most = |a: &Array, b: &Array| a.compare(b, i128::le, f64::le);
    let both = |a: Vec<bool>, b: Vec<bool>| a.into_iter().zip(b).map(|(a, b)| a && b).collect::<Vec<_>>();
    let answer = |values| Array::booleans(ll.dims.clone(), values);
    if left.is_exact() && right.is_exact() {
        return Some(Bounds::exactly(answer(equal(ll, rl)?)));
    }
    (ty == Boolean || COMMON.contains(&ty)).then_some(())?;
    let surely = both(both(equal(ll, lu)?, equal(lu, rl)?), equal(rl, ru)?);
    let possibly = both(at_most(ll, ru)?, at_most(rl, lu)?);
    Some(Bounds::new(answer(surely), answer(possibly)))
}

pub(crate) fn select(evaluation: &Evaluation, inputs: &[&Array]) -> Option<Array> {
    let [condition, then, otherwise] = inputs else { return None };
    of_type(then, COMPARED)?;
    let rule = auto_broadcast(evaluation).ok()?;
    let dims = dims_of(&rule.select(&condition.shape(), &then.shape(), &otherwise.shape()).ok()?)?;
    let lay = |array: &Array| {
        let start = match rule {
            AutoBroadcast::Pdpd { axis } if axis >= 0 && array.dims.len() < dims.len() => usize::try_from(axis).ok()?,
            _ => dims.len().checked_sub(array.dims.len())?,
        };
        array.stretched(&dims, start..)
    };
    Some(lay(otherwise)?.masked(&lay(condition)?.truths(), &lay(then)?))
}

/// Unknown if one is unlimited.
pub(crate) fn interval(evaluation: &Evaluation, known: &[&Bounds], by: Evaluator) -> Option<Bounds> {
    let [left, right] = known else { return None };
    let ends = |bounds: &&'_ Bounds| {
        std::iter::once(&bounds.lower).chain(bounds.upper.as_deref()).cloned().collect::<Vec<_>>()
    };
    let mut found: Option<(Array, Array)> = None;
    for l in &ends(left) {
        for r in &ends(right) {
            let value = by(evaluation, &[l, r])?;
            found = Some(match found {
                None => (value.clone(), value),
                Some((lower, upper)) => (
                    lower.zip(&value, |a, b| Some(a.min(b)), f64::min)?,
                    upper.zip(&value, |a, b| Some(a.max(b)), f64::max)?,
                ),
            });
        }
    }
    let (lower, upper) = found?;
    array::largest(left.lower.element_type)?;
    let open = |bounds: &Bounds| {
        let open = bounds.lower.is_open().into_iter().zip(bounds.upper().is_open()).map(|(l, u)| l || u);
        Array::booleans(bounds.lower.dims.clone(), open)
    };
    let open = aligned(evaluation, &[&open(left), &open(right)])?;
    let open: Vec<bool> = open[0].truths().into_iter().zip(open[1].truths()).map(|(l, r)| l || r).collect();
    let ty = lower.element_type;
    Some(Bounds::new(lower.masked(&open, &Array::scalar(ty, 0.0)), upper.masked(&open, &array::largest(ty)?)))
}

/// Divides integers and rounds down, or towards 0 if `m_pythondiv` is off.
fn quotient(evaluation: &Evaluation, left: &Array, right: &Array) -> Option<Array> {
    of_type(left, &[COMMON])?;
    let floor = evaluation.bool("m_pythondiv").ok()?;
    if right.element_type.is_integer() && !right.truths().iter().all(|&truth| truth) {
        let message = "a shape depends on an integer division by zero";
        return evaluation
            .refuse(Fault::value(&[1], message).rule("OpenVINO computes this value when it reads the model"));
    }
    let ints = |x: i128, y: i128| {
        if floor {
            x.checked_div_euclid(y).map(|q| if y < 0 && q * y != x { q - 1 } else { q })
        } else {
            x.checked_div(y)
        }
    };
    left.zip(right, ints, |x, y| x / y)
}

pub(crate) fn divide(evaluation: &Evaluation, inputs: &[&Array]) -> Option<Array> {
    match &aligned(evaluation, inputs)?[..] {
        [left, right] => quotient(evaluation, left, right),
        _ => None,
    }
}

/// Computes Divide of bounds. The result depends on the sign of the divisor.
pub(crate) fn divide_bounds(evaluation: &Evaluation, known: &[&Bounds]) -> Option<Bounds> {
    let [left, right] = known else { return None };
    let ends = aligned(evaluation, &[&left.lower, left.upper(), &right.lower, right.upper()])?;
    let [low, high, least, most] = &ends[..] else { return None };
    let ty = of_type(low, &[COMMON])?.element_type;
    let (zero, one, largest) = (Array::scalar(ty, 0.0), Array::scalar(ty, 1.0), array::largest(ty)?);
    let smallest = largest.map(|v| if ty.kind() == Kind::Signed { -v - 1 } else { 0 }, |v| -v);
    let sign = |array: &Array, is: fn(f64) -> bool| array.to_floats().into_iter().map(is).collect::<Vec<_>>();
    let or = |a: Vec<bool>, b: Vec<bool>| a.into_iter().zip(b).map(|(a, b)| a || b).collect::<Vec<_>>();
    let open = or(high.is_open(), most.is_open());
    let falling = sign(most, |v| v <= 0.0);
    let around: Vec<bool> = sign(least, |v| v < 0.0).into_iter().zip(&falling).map(|(l, f)| l && !f).collect();
    let dividend = low.clone().masked(&falling, high);
    let lower = quotient(evaluation, &dividend, &most.clone().masked(&falling, least))?
        .masked(&around, &smallest)
        .masked(&open, &zero);
    if left.is_exact() && right.is_exact() {
        return Some(Bounds::exactly(lower));
    }
    let divisor = least.clone().masked(&falling, most);
    let zeros = sign(&divisor, |v| v == 0.0);
    let upper = quotient(evaluation, &high.clone().masked(&falling, low), &divisor.masked(&zeros, &one))?
        .masked(&or(zeros, or(around, open)), &largest);
    Some(Bounds::new(lower, upper))
}

pub(crate) fn modulo(evaluation: &Evaluation, inputs: &[&Array]) -> Option<Array> {
    let is_known = inputs.first().is_some_and(|it| it.element_type.is_integer() && it.element_type.bits() >= 8);
    match &aligned(evaluation, inputs)?[..] {
        [left, right] if is_known => left.zip(right, i128::checked_rem, |x, y| x % y),
        _ => None,
    }
}

/// Computes Mod of bounds: the possible remainders of integers.
pub(crate) fn modulo_bounds(evaluation: &Evaluation, known: &[&Bounds]) -> Option<Bounds> {
    let [left, right] = known else { return None };
    let ends = aligned(evaluation, &[&left.lower, left.upper(), &right.lower, right.upper()])?;
    let ty = ends[0].element_type;
    (ty.is_integer() && ty.bits() >= 8).then_some(())?;
    let (largest, _) = array::largest(ty)?.first()?;
    let remainders = (0..ends[0].len()).map(|at| {
        let mut ends = ends.iter().map(|end| if let Data::Ints(values) = &end.data { values.get(at) } else { None });
        let [low, high, least, most] = [ends.next()??, ends.next()??, ends.next()??, ends.next()??];
        if least == 0 || most == 0 || least == largest || high == largest {
            return Some((0, largest));
        }
        Some(remainder(low, high, least, most))
    });
    let (lower, upper): (Vec<i128>, Vec<i128>) = remainders.collect::<Option<Vec<_>>>()?.into_iter().unzip();
    let array = |values: Vec<i128>| Array::ints(ty, ends[0].dims.clone(), values);
    if left.is_exact() && right.is_exact() {
        Some(Bounds::exactly(array(lower)))
    } else {
        Some(Bounds::new(array(lower), array(upper)))
    }
}

/// The smallest and largest remainder of `low..=high` divided by `least..=most`, as OpenVINO computes them.
fn remainder(low: i128, high: i128, least: i128, most: i128) -> (i128, i128) {
    let hull = |(a, b): (i128, i128), (c, d): (i128, i128)| (a.min(c), b.max(d));
    // The sign of the divisor is ignored; the result has the sign of the dividend.
    if most < 0 {
        return remainder(low, high, -most, -least);
    }
    if least <= 0 {
        return remainder(low, high, 1, most.max(-least).max(1));
    }
    if high < 0 {
        let (lower, upper) = remainder(-high, -low, least, most);
        return (-upper, -lower);
    }
    if low < 0 {
        return hull(remainder(low, -1, least, most), remainder(0, high, least, most));
    }
    let half = low / 2;
    if low == high && most - least > 1 && least < low && (least < half || most > low) {
        return match most {
            most if half < most && most < low => (0, (low - 1) / 2),
            most => (0, most - 1),
        };
    }
    let by = |divisor: i128| match (low % divisor, high % divisor) {
        (first, last) if high - low < divisor && first <= last => (first, last),
        _ => (0, divisor - 1),
    };
    hull(by(least), by(most))
}
