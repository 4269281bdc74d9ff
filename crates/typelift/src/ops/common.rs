//! Helpers shared by several operation families.

use typelift_promote::{ElementType, fidelity};

use super::{Accepts, Context, Fault};
use crate::findings::{Message, Text, list, message};
use crate::model::shape::{Dim, Shape};

/// The types that some operations accept for indices, counts and axes.
pub(super) const INDEX: &[ElementType] = &[ElementType::I32, ElementType::I64];
pub(super) const INDEX_OR_DYNAMIC: &[ElementType] = &[ElementType::I32, ElementType::I64, ElementType::Dynamic];
/// Floating-point types of at most 32 bits, and `dynamic`. Some operations compute only in these.
pub(super) const SINGLE: &[ElementType] =
    &[ElementType::F16, ElementType::Bf16, ElementType::F32, ElementType::Dynamic];

/// A negative axis counts from the end. As in OpenVINO, a scalar has the axes 0 and -1, both at position 0.
pub(crate) fn normalize_axis(axis: i64, rank: usize) -> Option<usize> {
    let rank = i64::try_from(rank).ok()?.max(1);
    usize::try_from(if axis < 0 { axis.checked_add(rank)? } else { axis }).ok().filter(|_| axis < rank)
}

/// Checks an axis that is a value of `input`, and returns its position.
pub(super) fn checked_axis(cx: &Context, input: usize, axis: i64, rank: usize) -> Result<usize, Fault> {
    normalize_axis(axis, rank).ok_or_else(|| {
        let fault = Fault::value(&[input], message!("`{}` has no axis {}: its data has rank {}"; cx.ty(), axis, rank));
        fault.rule(axis_range(rank))
    })
}

fn axis_range(rank: usize) -> Message {
    message!("valid axes are -{} to {}"; rank.max(1), rank.saturating_sub(1))
}

/// An error if `accepts` excludes the type of an input; `role` names the input in the message.
pub(super) fn check_type(cx: &Context, input: usize, role: &'static str, accepts: Accepts) -> Result<(), Fault> {
    let ty = cx.element_type(input);
    if accepts.takes(ty) {
        return Ok(());
    }
    let message = message!("`{}` takes {} as {}, but gets {}"; cx.ty(), accepts.description(), role, ty);
    let fault = Fault::unsupported(input, message);
    Err(match accepts {
        Accepts::Bits | Accepts::Integer => fault.wants(ElementType::I64),
        _ => fault.help("insert a Convert before it"),
    })
}

/// An error if the rank of an input is known and not one of `ranks`; `role` names the input in the message.
pub(super) fn check_rank(cx: &Context, input: usize, role: &'static str, ranks: &[usize]) -> Result<(), Fault> {
    let shape = cx.shape(input);
    if shape.rank().is_none_or(|rank| ranks.contains(&rank)) {
        return Ok(());
    }
    let expected: Message = match ranks {
        [0] => "a scalar".into(),
        [1] => "a list".into(),
        [0, 1] => "a scalar or a list".into(),
        ranks => message!("rank {}"; Text(ranks.iter().map(ToString::to_string).collect::<Vec<_>>().join(" or "))),
    };
    let message = message!("`{}` takes {} as {}, but gets the shape {}"; cx.ty(), expected, role, shape);
    Err(Fault::shapes(&[input], message))
}

pub(super) fn attribute_axis(cx: &Context, name: &'static str, axis: i64, rank: usize) -> Result<usize, Fault> {
    normalize_axis(axis, rank).filter(|&axis| axis < rank).ok_or_else(|| {
        let message = message!("`{}` is {}, but the data of `{}` has rank {}"; name, axis, cx.ty(), rank);
        Fault::attribute(name, message).rule(axis_range(rank))
    })
}

/// The number is limited to the existing ports, because an attribute can contain any number.
pub(super) fn fill_outputs(cx: &mut Context, count: usize, element_type: ElementType, shape: &Shape) {
    for _ in 0..count.min(most_outputs(cx)) {
        cx.output(element_type, shape.clone());
    }
}

/// The maximum number of outputs of a layer whose operation can have any number: that of the declared outputs, or a
/// large one for a new layer.
pub(super) fn most_outputs(cx: &Context) -> usize {
    match cx.layer.outputs().len() {
        0 if cx.layer.span.is_none() => u16::MAX.into(),
        declared => declared,
    }
}

/// The dimension between two bounds in OpenVINO's notation, where -1 means unlimited.
pub(super) fn dim_between(lower: i64, upper: i64) -> Dim {
    Dim::between(lower, if upper == -1 { i64::MAX } else { upper })
}

/// An error if the type of an input is not one of `types`; `role` names the input in the message.
pub(super) fn check_type_in(
    cx: &Context,
    input: usize,
    role: &'static str,
    types: &[ElementType],
) -> Result<(), Fault> {
    let ty = cx.element_type(input);
    if types.contains(&ty) {
        return Ok(());
    }
    let known: Vec<_> = types.iter().copied().filter(|&ty| ty != ElementType::Dynamic).collect();
    let names = list(known.iter().map(ToString::to_string).collect(), "or");
    let message = message!("`{}` takes {} as {}, but gets {}"; cx.ty(), Text(names), role, ty);
    let fault = Fault::unsupported(input, message);
    let mut like = known.clone();
    like.retain(|other| other.is_integer() == ty.is_integer() && other.is_float() == ty.is_float());
    // The suggestion is the narrowest type of the same kind that holds every value, or the widest. Otherwise it is the
    // only type, or the only one of a kind.
    let exact = like.iter().filter(|other| fidelity(ty, **other).is_some_and(|fidelity| fidelity.is_exact()));
    let one_kind = known.iter().all(|ty| ty.is_integer()) || known.len() == 1;
    let others = if one_kind { &known } else { &like };
    let wanted = exact.min_by_key(|ty| ty.bits()).or_else(|| others.iter().max_by_key(|ty| ty.bits()));
    Err(match wanted {
        Some(&wanted) => fault.wants(wanted),
        None => fault.help("insert a Convert before it"),
    })
}

/// The dimension on an axis, or any length if the rank is unknown.
pub(super) fn dim(shape: &Shape, axis: usize) -> Dim {
    shape.dims().and_then(|dims| dims.get(axis)).copied().unwrap_or(Dim::ANY)
}

pub(super) fn merge_dims(inputs: &[usize], what: &'static str, left: Dim, right: Dim) -> Result<Dim, Fault> {
    (left & right)
        .ok_or_else(|| Fault::shapes(inputs, message!("the {} must be the same, but is {} and {}"; what, left, right)))
}

/// Applies a function to both bounds of a dimension. It receives -1 if the dimension is unlimited.
pub(super) fn map_ends(dim: Dim, f: impl Fn(i64) -> i64) -> Dim {
    match (dim.value(), dim.upper()) {
        (Some(length), _) => Dim::from(f(length)),
        // OpenVINO treats a lower bound of the largest number as 0.
        (None, None) if dim.lower() == i64::MAX => Dim::at_least(f(0)),
        (None, None) => Dim::at_least(f(dim.lower())),
        (None, Some(upper)) => dim_between(f(dim.lower()), f(upper)),
    }
}

/// Divides a dimension as OpenVINO does; see [`Dim::checked_div`]. Division by 0 uses floating point, and its result
/// becomes 0. `None` if no length results, or if the divisor is negative.
pub(super) fn divide(dim: Dim, divisor: i64) -> Option<Dim> {
    match divisor {
        0 if dim != Dim::ANY => Some(Dim::fixed(0)),
        0 => Some(dim),
        divisor => dim.checked_div(divisor).filter(|quotient| !quotient.is_empty()),
    }
}

/// A dimension of an input, or any length if it is unknown.
pub(super) fn input_dim(cx: &Context, input: usize, axis: usize) -> Dim {
    dim(cx.shape(input), axis)
}

/// An error if an input's dimension on `axis` cannot be `length`; `role` names the input in the message.
pub(super) fn require_dim(
    cx: &Context,
    input: usize,
    role: &'static str,
    axis: usize,
    length: i64,
) -> Result<(), Fault> {
    let found = input_dim(cx, input, axis);
    if found.is_compatible(Dim::from(length)) {
        return Ok(());
    }
    let message = message!("axis {} of the {} of `{}` must be {}, but is {}"; axis, role, cx.ty(), length, found);
    Err(Fault::shapes(&[input], message))
}

/// Unifies one dimension of two inputs. `what` names the dimension in the error.
pub(super) fn common_dim(
    cx: &Context,
    what: &'static str,
    left: (usize, usize),
    right: (usize, usize),
) -> Result<Dim, Fault> {
    let (a, b) = (input_dim(cx, left.0, left.1), input_dim(cx, right.0, right.1));
    (a & b).ok_or_else(|| {
        let message = message!(
            "axis {} of input {} and axis {} of input {} of `{}` must both be the {}, but are {} and {}";
            left.1, left.0, right.1, right.0, cx.ty(), what, a, b
        );
        Fault::shapes(&[left.0, right.0], message)
    })
}

pub(super) fn index_type(cx: &Context, name: &'static str) -> Result<ElementType, Fault> {
    match cx.type_attribute(name)? {
        ty @ (ElementType::I32 | ElementType::I64) => Ok(ty),
        ty => Err(Fault::attribute(name, message!("`{}` is {}, not i32 or i64"; name, ty))),
    }
}

/// A negative value of a Constant is converted by `read`. Computed values are never negative.
pub(super) fn dims_from(
    cx: &mut Context,
    input: usize,
    read: impl Fn(i64) -> Result<Dim, Fault>,
) -> Result<Option<Shape>, Fault> {
    if cx.is_constant(input) {
        return cx.numbers(input)?.map(|numbers| numbers.into_iter().map(read).collect()).transpose();
    }
    cx.shape_value(input)
}

/// Infers an output with the type and shape of the data.
pub(super) fn as_data(cx: &mut Context) -> Result<(), Fault> {
    cx.finish(cx.element_type(0), cx.shape(0).clone())
}

/// A shape whose rank is the length of `list`, if that is known.
pub(super) fn shape_of_length(list: &Shape) -> Shape {
    let length = list.dims().and_then(|dims| dims.first()?.value());
    length.and_then(|length| usize::try_from(length).ok()).map_or_else(Shape::dynamic, Shape::of_rank)
}

/// An error if an input cannot be a scalar or a list of one number; `role` names it in the message.
pub(super) fn check_one_number(cx: &Context, input: usize, role: &'static str) -> Result<(), Fault> {
    let shape = cx.shape(input);
    if shape.is_compatible(&Shape::scalar()) || shape.is_compatible(&Shape::fixed([1])) {
        return Ok(());
    }
    let message = message!("`{}` takes a scalar as {}, but gets the shape {}"; cx.ty(), role, shape);
    Err(Fault::shapes(&[input], message))
}
