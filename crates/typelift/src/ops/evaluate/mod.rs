//! How operations compute, on the small tensors that shapes are computed from.
//!
//! Each function here is what OpenVINO's own evaluation of the operation gives, for the element types that it evaluates
//! the operation for; `None` means that nothing is known of the result.

mod elementwise;
mod movement;
mod reduction;

pub(crate) use elementwise::*;
pub(crate) use movement::*;
pub(crate) use reduction::*;

use typelift_promote::ElementType;
use ElementType::{Bf16, F16, F32, I32, I64, U32, U64};

use crate::infer::array::Array;

/// The element types that OpenVINO evaluates most arithmetic for.
pub(super) const COMMON: &[ElementType] = &[Bf16, F16, F32, I32, I64, U32, U64];

/// An axis counted from the end where it is negative.
pub(super) fn axis(axis: i64, rank: usize) -> Option<usize> {
    let axis = if axis < 0 { axis.checked_add(i64::try_from(rank).ok()?)? } else { axis };
    usize::try_from(axis).ok().filter(|&axis| axis < rank)
}

/// The tensor, where it is of one of these types.
fn of_type<'a>(array: &'a Array, types: &[&[ElementType]]) -> Option<&'a Array> {
    types.iter().any(|types| types.contains(&array.element_type)).then_some(array)
}
