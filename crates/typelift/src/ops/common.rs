//! What rules of several families ask and say alike.

use super::{Accepts, Context, Fault};

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
