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

use super::common::normalize_axis;
use crate::infer::array::{self, Array};
use crate::infer::value::Evaluation;
use crate::shape::Shape;

/// The element types that OpenVINO evaluates most arithmetic for.
pub(super) const COMMON: &[ElementType] = &[Bf16, F16, F32, I32, I64, U32, U64];

/// An axis, counted from the end where it is negative.
fn axis(axis: i64, rank: usize) -> Option<usize> {
    normalize_axis(axis, rank).filter(|&axis| axis < rank)
}

/// A position on an axis of this length, counted from the end where it is negative.
fn position(index: i64, length: usize) -> Option<usize> {
    let index = if index < 0 { index.checked_add(i64::try_from(length).ok()?)? } else { index };
    usize::try_from(index).ok().filter(|&index| index < length)
}

/// The dims of a shape in which all are fixed, where the tensor is not too large.
fn dims_of(shape: &Shape) -> Option<Vec<usize>> {
    let dims = shape.to_static()?.into_iter().map(usize::try_from).collect::<Result<Vec<_>, _>>().ok()?;
    array::count(&dims).map(|_| dims)
}

/// The shape that was inferred for the output, where it is fixed.
fn inferred_dims(evaluation: &Evaluation) -> Option<Vec<usize>> {
    dims_of(evaluation.layer.outputs().get(evaluation.port)?.shape())
}

/// The tensor, where it is of one of these types.
fn of_type<'a>(array: &'a Array, types: &[&[ElementType]]) -> Option<&'a Array> {
    types.iter().any(|types| types.contains(&array.element_type)).then_some(array)
}
