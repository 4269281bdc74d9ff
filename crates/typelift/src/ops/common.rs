//! What rules of several families ask and say alike.

use typelift_promote::ElementType;

use super::{Accepts, Context, Fault};
use crate::shape::Dim;

/// The position of `axis`, which counts from the end where it is negative, among `rank` axes. As in OpenVINO, a scalar has
/// the axes 0 and -1, both at position 0.
pub(super) fn normalize_axis(axis: i64, rank: usize) -> Option<usize> {
    let rank = i64::try_from(rank).ok()?.max(1);
    usize::try_from(if axis < 0 { axis.checked_add(rank)? } else { axis }).ok().filter(|_| axis < rank)
}

/// As [`normalize_axis`], for an axis that came in through `input`.
pub(super) fn checked_axis(cx: &Context, input: usize, axis: i64, rank: usize) -> Result<usize, Fault> {
    normalize_axis(axis, rank).ok_or_else(|| {
        let fault =
            Fault::value(&[input], format!("axis {axis} of `{}` is outside of its data's rank {rank}", cx.layer.ty()));
        fault.rule(format!("axes go from -{} to {}", rank.max(1), rank.saturating_sub(1)))
    })
}

/// Refuses an input, called `role` in the message, whose type is not one of `accepts`.
pub(super) fn check_type(cx: &Context, input: usize, role: &str, accepts: Accepts) -> Result<(), Fault> {
    let ty = cx.element_type(input);
    if accepts.takes(ty) {
        return Ok(());
    }
    let message = format!("the {role} of `{}` must be {}, and are {ty}", cx.layer.ty(), accepts.description());
    Err(Fault::unsupported(input, message).help("put a Convert before it"))
}

/// Refuses an input, called `role` in the message, whose rank is known and is not `rank`.
pub(super) fn require_rank(cx: &Context, input: usize, role: &str, rank: usize) -> Result<(), Fault> {
    match cx.shape(input).rank() {
        Some(found) if found != rank => {
            let (ty, shape) = (cx.layer.ty(), cx.shape(input));
            Err(Fault::shapes(
                &[input],
                format!("the {role} of `{ty}` must have rank {rank}, and the shape is {shape}"),
            ))
        }
        _ => Ok(()),
    }
}

/// The dim of an input on an axis; any, where that is not known.
pub(super) fn dim(cx: &Context, input: usize, axis: usize) -> Dim {
    cx.shape(input).dims().and_then(|dims| dims.get(axis)).copied().unwrap_or(Dim::ANY)
}

/// Refuses an input, called `role` in the message, whose dim on `axis` cannot be `length`.
pub(super) fn require_dim(cx: &Context, input: usize, role: &str, axis: usize, length: i64) -> Result<(), Fault> {
    let found = dim(cx, input, axis);
    if found.is_compatible(Dim::from(length)) {
        return Ok(());
    }
    let message = format!("axis {axis} of the {role} of `{}` must be {length}, and is {found}", cx.layer.ty());
    Err(Fault::shapes(&[input], message))
}

/// What the dims of two inputs, each on its axis, are together: they must be the same, being both the `what`.
pub(super) fn common_dim(cx: &Context, what: &str, left: (usize, usize), right: (usize, usize)) -> Result<Dim, Fault> {
    let (a, b) = (dim(cx, left.0, left.1), dim(cx, right.0, right.1));
    (a & b).ok_or_else(|| {
        let message = format!(
            "axis {} of input {} and axis {} of input {} of `{}` are both the {what}, and are {a} and {b}",
            left.1,
            left.0,
            right.1,
            right.0,
            cx.layer.ty()
        );
        Fault::shapes(&[left.0, right.0], message)
    })
}

/// The integer type that the attribute `name` gives for indices.
pub(super) fn index_type(cx: &Context, name: &'static str) -> Result<ElementType, Fault> {
    match cx.type_attribute(name)? {
        ty @ (ElementType::I32 | ElementType::I64) => Ok(ty),
        ty => Err(Fault::attribute(name, format!("`{name}` is {ty}, not i32 or i64"))),
    }
}
