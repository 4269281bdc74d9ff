//! Operations that pick elements by index: Gather and its like.

use smallvec::SmallVec;

use super::common::{check_type, checked_axis};
use super::{Accepts, Attr, AttrKind, Context, Fault, Operation, evaluate};
use crate::infer::value::{DATA, Evaluate};
use crate::shape::{Dim, Shape};

pub(super) const ROWS: &[Operation] = &[
    Operation::new("Gather", 1, gather).evaluate(Evaluate::Ends(DATA, evaluate::gather)).until(6).inputs(3, 3),
    Operation::new("Gather", 7, gather)
        .evaluate(Evaluate::Ends(DATA, evaluate::gather))
        .until(7)
        .inputs(3, 3)
        .attributes(BATCH_DIMS),
    Operation::new("Gather", 8, gather)
        .evaluate(Evaluate::Ends(DATA, evaluate::gather))
        .inputs(3, 3)
        .attributes(BATCH_DIMS),
];

const BATCH_DIMS: &[Attr] = &[Attr::new("batch_dims", AttrKind::Int).default("0")];

fn gather(cx: &mut Context) -> Result<(), Fault> {
    if cx.operation.revision() > 1 {
        check_type(cx, 1, "indices", Accepts::Integer)?;
        check_type(cx, 2, "axis", Accepts::Integer)?;
    }
    let axis_shape = cx.shape(2);
    if axis_shape.is_static() && (axis_shape.rank() > Some(1) || axis_shape.element_count() != Some(1)) {
        let message = format!("the axis of `Gather` must be one number, and has the shape {axis_shape}");
        return Err(Fault::shapes(&[2], message));
    }
    let (data, indices) = (cx.shape(0), cx.shape(1));
    let batch = if cx.operation.revision() == 1 { 0 } else { cx.int("batch_dims")? };
    let batch = match indices.rank() {
        Some(rank) if batch < 0 => batch.saturating_add(rank as i64),
        _ => batch,
    };
    let axis = match (cx.numbers(2)?.as_deref(), data.rank()) {
        (Some(&[axis, ..]), Some(rank)) => Some(checked_axis(cx, 2, axis, rank)? as i64),
        (Some(&[axis, ..]), None) => Some(axis),
        _ => None,
    };
    if let Some(axis) = axis
        && batch >= 0
        && (0..batch).contains(&axis)
    {
        let message = format!("`batch_dims` is {batch}, and `Gather` picks along axis {axis}, one of the batch");
        return Err(Fault::attribute("batch_dims", message));
    }
    if let Some(rank) = indices.rank()
        && batch > rank as i64
    {
        let message = format!("`batch_dims` is {batch}, and the indices have rank {rank}");
        return Err(Fault::attribute("batch_dims", message));
    }
    let shape = match (data.dims(), indices.dims()) {
        (Some(data), Some(indices)) => gathered(data, indices, batch, axis)?,
        _ => Shape::dynamic(),
    };
    cx.output(cx.element_type(0), shape);
    Ok(())
}

fn gathered(data: &[Dim], indices: &[Dim], batch: i64, axis: Option<i64>) -> Result<Shape, Fault> {
    let missing = || {
        let message =
            format!("`Gather` has no {batch} batch axes or no axis to pick along in data of rank {}", data.len());
        Fault::shapes(&[0, 1], message)
    };
    let common = usize::try_from(batch).ok().and_then(|batch| Some((data.get(..batch)?, indices.get(..batch)?)));
    // A batch that ends before the first axis is taken where nothing is looked up in it.
    let (left, right) = match (common, axis) {
        (Some(common), _) => common,
        (None, None) if batch < 0 => (&[][..], &[][..]),
        _ => return Err(missing()),
    };
    let mut shape: SmallVec<[Dim; 6]> = SmallVec::new();
    for (axis, (&left, &right)) in left.iter().zip(right).enumerate() {
        shape.push((left & right).ok_or_else(|| {
            let message = format!("batch axis {axis}: the data has {left} there, and the indices {right}");
            Fault::shapes(&[0, 1], message)
        })?);
    }
    let rank = data.len() as i64 + indices.len() as i64 - 1 - batch;
    match axis.map(usize::try_from) {
        None => match usize::try_from(rank) {
            Ok(rank) if rank >= shape.len() && rank <= Shape::MAX_RANK => shape.resize(rank, Dim::ANY),
            Ok(rank) if rank > Shape::MAX_RANK => return Ok(Shape::dynamic()),
            _ => return Err(missing()),
        },
        Some(Ok(axis)) if axis < data.len() && shape.len() <= axis => {
            let (before, behind) = (data.get(shape.len()..axis), data.get(axis + 1..));
            let picked = indices.get(shape.len()..);
            for dims in [before, picked, behind] {
                shape.extend_from_slice(dims.unwrap_or_default());
            }
        }
        _ => return Err(missing()),
    }
    Ok(shape.into_iter().collect())
}
