//! Operations that select elements by index: Gather, GatherElements, GatherND, GatherTree.

use smallvec::SmallVec;

use super::common::{INDEX, attribute_axis, check_one_number, check_rank, check_type, check_type_in, checked_axis};
use super::evaluate::{DATA, Evaluate};
use super::{Accepts, Attr, AttrKind, Context, Fault, Operation, Ties, evaluate};
use crate::findings::message;
use crate::model::shape::{Dim, Shape};

pub(super) const ROWS: &[Operation] = &[
    row(1).until(6),
    row(7).until(7).attributes(BATCH_DIMS),
    row(8).attributes(BATCH_DIMS),
    Operation::new("GatherElements", 6, gather_elements)
        .inputs(2, 2)
        .attributes(&[Attr::new("axis", AttrKind::Int).default("0")]),
    Operation::new("GatherND", 5, gather_nd).until(7).inputs(2, 2).attributes(BATCH_DIMS),
    Operation::new("GatherND", 8, gather_nd).inputs(2, 2).attributes(BATCH_DIMS),
    Operation::new("GatherTree", 1, gather_tree).inputs(4, 4).ties(Ties::All).accepts(Accepts::NotBoolean),
];

const fn row(revision: u8) -> Operation {
    Operation::new("Gather", revision, gather).evaluate(Evaluate::Ends(DATA, evaluate::gather)).inputs(3, 3)
}

const BATCH_DIMS: &[Attr] = &[Attr::new("batch_dims", AttrKind::Int).default("0")];

fn gather(cx: &mut Context) -> Result<(), Fault> {
    if cx.operation.revision > 1 {
        check_type(cx, 1, "indices", Accepts::Integer)?;
        check_type(cx, 2, "axis", Accepts::Integer)?;
    }
    if cx.shape(2).is_static() {
        check_one_number(cx, 2, "axis")?;
    }
    let (data, indices) = (cx.shape(0), cx.shape(1));
    let batch = if cx.operation.revision == 1 { 0 } else { cx.int("batch_dims")? };
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
        let message = message!("`batch_dims` is {}, so axis {} of `Gather` is a batch axis"; batch, axis);
        return Err(Fault::attribute("batch_dims", message));
    }
    if let Some(rank) = indices.rank()
        && batch > rank as i64
    {
        let message = message!("`batch_dims` is {}, but the indices have rank {}"; batch, rank);
        return Err(Fault::attribute("batch_dims", message));
    }
    let shape = match (data.dims(), indices.dims()) {
        (Some(data), Some(indices)) => gathered(data, indices, batch, axis)?,
        _ => Shape::dynamic(),
    };
    cx.finish(cx.element_type(0), shape)
}

fn gathered(data: &[Dim], indices: &[Dim], batch: i64, axis: Option<i64>) -> Result<Shape, Fault> {
    let missing = || {
        let message = message!(
            "`Gather` with {} batch axes and this axis needs data of a higher rank than {}";
            batch, data.len()
        );
        Fault::shapes(&[0, 1], message)
    };
    let common = usize::try_from(batch).ok().and_then(|batch| Some((data.get(..batch)?, indices.get(..batch)?)));
    // If the batch ends before the first axis, OpenVINO ignores it and counts dimensions of the indices from there on.
    let (left, right) = match (common, axis) {
        (Some(common), _) => common,
        (None, None) if batch < 0 => (&[][..], &[][..]),
        (None, Some(_)) if batch < 0 && batch >= -(indices.len() as i64) => (&[][..], &[][..]),
        _ => return Err(missing()),
    };
    let mut shape = common_batch(left, right)?;
    let rank = (data.len() as i64 + indices.len() as i64 - 1).saturating_sub(batch);
    match axis.map(usize::try_from) {
        None => match usize::try_from(rank) {
            Ok(rank) if rank >= shape.len() && rank <= Shape::MAX_RANK => shape.resize(rank, Dim::ANY),
            Ok(rank) if rank > Shape::MAX_RANK => return Ok(Shape::dynamic()),
            _ => return Err(missing()),
        },
        Some(Ok(axis)) if axis < data.len() && shape.len() <= axis => {
            shape.extend_from_slice(data.get(shape.len()..axis).unwrap_or_default());
            let count = indices.len() as i64;
            let picked = (batch..count).map(|at| usize::try_from(at.rem_euclid(count)).ok());
            shape.extend(picked.filter_map(|at| indices.get(at?).copied()));
            shape.extend_from_slice(data.get(axis + 1..).unwrap_or_default());
        }
        _ => return Err(missing()),
    }
    Ok(shape.into_iter().collect())
}

fn gather_elements(cx: &mut Context) -> Result<(), Fault> {
    check_type_in(cx, 1, "indices", INDEX)?;
    let (data, indices) = (cx.shape(0), cx.shape(1));
    for input in 0..2 {
        if cx.shape(input).rank() == Some(0) {
            return Err(Fault::shapes(&[input], message!("input {} of `GatherElements` must not be a scalar"; input)));
        }
    }
    let mut shape = data.clone();
    let shape = match (shape.dims_mut(), indices.dims()) {
        (None, _) => indices.clone(),
        (Some(dims), picked) => {
            let axis = attribute_axis(cx, "axis", cx.int("axis")?, dims.len())?;
            if let Some(dim) = dims.get_mut(axis) {
                *dim = picked.and_then(|picked| picked.get(axis).copied()).unwrap_or(Dim::ANY);
            }
            shape.merge(indices).map_err(|mismatch| {
                let message =
                    message!("the indices {} of `GatherElements` contradict its data {}: {}"; indices, data, mismatch);
                Fault::shapes(&[0, 1], message).rule(message!("shapes must agree on every axis but {}"; axis))
            })?
        }
    };
    cx.finish(cx.element_type(0), shape)
}

fn gather_nd(cx: &mut Context) -> Result<(), Fault> {
    check_type(cx, 1, "indices", Accepts::Integer)?;
    let batch = cx.int("batch_dims")?;
    for input in 0..2 {
        if let Some(rank) = cx.shape(input).rank()
            && !(0..rank as i64).contains(&batch)
        {
            let message = message!("`batch_dims` is {}, but input {} of `GatherND` has rank {}"; batch, input, rank);
            return Err(Fault { inputs: [input].into_iter().collect(), ..Fault::attribute("batch_dims", message) });
        }
    }
    let (data, indices) = (cx.shape(0), cx.shape(1));
    let shape = match (data.dims(), indices.dims().and_then(<[Dim]>::split_last)) {
        (Some(dims), Some((depth, outer))) if depth.is_fixed() => {
            let (left, dims) = dims.split_at(usize::try_from(batch).unwrap_or(0).min(dims.len()));
            let (right, outer) = outer.split_at(left.len().min(outer.len()));
            let Some(inner) = usize::try_from(depth.lower()).ok().and_then(|depth| dims.get(depth..)) else {
                let message = message!(
                    "the indices of `GatherND` select {} axes, but the data {} has only {} after the batch";
                    depth, data, dims.len()
                );
                return Err(Fault::shapes(&[0, 1], message));
            };
            let mut common = common_batch(left, right)?;
            if cx.operation.revision == 5 && left.len() > 1 {
                let product = common.iter().fold(Dim::ONE, |product, &dim| product * dim);
                common = [product].into_iter().collect();
            }
            common.iter().chain(outer).chain(inner).copied().collect()
        }
        _ => Shape::dynamic(),
    };
    cx.finish(cx.element_type(0), shape)
}

fn common_batch(data: &[Dim], indices: &[Dim]) -> Result<SmallVec<[Dim; 6]>, Fault> {
    let pairs = data.iter().zip(indices).enumerate().map(|(axis, (&left, &right))| {
        (left & right).ok_or_else(|| {
            let message = message!("batch axis {} is {} in the data, but {} in the indices"; axis, left, right);
            Fault::shapes(&[0, 1], message)
        })
    });
    pairs.collect()
}

fn gather_tree(cx: &mut Context) -> Result<(), Fault> {
    let element_type = cx.merge_types(&[0, 1, 2, 3])?;
    cx.check_accepted(0, element_type)?;
    for (input, role, rank) in [(0, "step_ids", 3), (1, "parent_idx", 3), (2, "max_seq_len", 1), (3, "end_token", 0)] {
        check_rank(cx, input, role, &[rank])?;
    }
    let mut shape = cx.shape(0).merge(cx.shape(1)).map_err(|mismatch| {
        let message = message!("step_ids and parent_idx of `GatherTree` must have one shape: {}"; mismatch);
        Fault::shapes(&[0, 1], message)
    })?;
    if let (Some([_, batch, _]), Some(&[length])) = (shape.dims_mut(), cx.shape(2).dims()) {
        *batch = (*batch & length).ok_or_else(|| {
            let message =
                message!("max_seq_len of `GatherTree` has {} elements, but the batch size is {}"; length, batch);
            Fault::shapes(&[0, 2], message)
        })?;
    }
    cx.finish(element_type, shape)
}
