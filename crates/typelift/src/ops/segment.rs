//! Operations on rows that are selected by number: SegmentMax, SparseFillEmptyRows.

use std::collections::HashSet;

use typelift_promote::ElementType;

use super::common::{INDEX_OR_DYNAMIC, check_rank, check_type_in};
use super::{Attr, AttrKind, Context, Fault, Operation, Ties};
use crate::findings::message;
use crate::model::shape::{Dim, Shape};

pub(super) const ROWS: &[Operation] = &[
    Operation::new("SegmentMax", 16, segment_max).inputs(2, 3).attributes(&[FILL_MODE]),
    Operation::new("SparseFillEmptyRows", 16, sparse_fill_empty_rows).inputs(4, 4).ties(Ties::Inputs(&[1, 2])),
];

const FILL_MODE: Attr = Attr::new("fill_mode", AttrKind::Enum(&["zero", "lowest"])).default("zero");

fn segment_max(cx: &mut Context) -> Result<(), Fault> {
    check_type_in(cx, 1, "segment_ids", INDEX_OR_DYNAMIC)?;
    check_rank(cx, 1, "segment_ids", &[1])?;
    if cx.inputs.len() == 3 {
        check_type_in(cx, 2, "num_segments", INDEX_OR_DYNAMIC)?;
        check_rank(cx, 2, "num_segments", &[0])?;
    }
    let data = cx.shape(0);
    if data.rank() == Some(0) {
        return Err(Fault::shapes(&[0], "the data of `SegmentMax` must not be a scalar"));
    }
    if let (Some([rows, ..]), Some([ids, ..])) = (data.dims(), cx.shape(1).dims())
        && !rows.is_compatible(*ids)
    {
        let message = message!("`SegmentMax` has {} segment_ids, but data of {} rows"; ids, rows);
        return Err(Fault::shapes(&[0, 1], message));
    }
    let ids = cx.integers(1);
    if ids.as_ref().is_some_and(|ids| !ids.is_sorted()) {
        return Err(Fault::value(&[1], "the segment_ids of `SegmentMax` must be in ascending order"));
    }
    let segments = if cx.inputs.len() == 3 {
        cx.shape_value(2)?.and_then(|count| count.dims()?.first().copied())
    } else {
        match ids.as_deref() {
            Some([]) => return Err(Fault::value(&[1], "`SegmentMax` without segment_ids needs num_segments")),
            ids => ids.and_then(|ids| ids.last()).map(|last| Dim::from(last.wrapping_add(1))),
        }
    };
    let mut shape = data.clone();
    if let Some(rows) = shape.dims_mut().and_then(<[Dim]>::first_mut) {
        *rows = segments.unwrap_or(Dim::ANY);
    }
    cx.finish(cx.element_type(0), shape)
}

fn sparse_fill_empty_rows(cx: &mut Context) -> Result<(), Fault> {
    cx.merge_types(&[1, 2])?;
    check_type_in(cx, 1, "dense_shape", INDEX_OR_DYNAMIC)?;
    check_type_in(cx, 2, "indices", INDEX_OR_DYNAMIC)?;
    check_rank(cx, 0, "values", &[1])?;
    check_rank(cx, 3, "default value", &[0])?;
    let (values, dense, indices) = (cx.shape(0), cx.shape(1), cx.shape(2));
    let pairs = Shape::from_iter([Dim::ANY, Dim::fixed(2)]);
    for (input, expected) in [(1, &Shape::fixed([2])), (2, &pairs)] {
        if !cx.shape(input).is_compatible(expected) {
            let found = cx.shape(input);
            let message =
                message!("input {} of `SparseFillEmptyRows` has the shape {}, not {}"; input, found, expected);
            return Err(Fault::shapes(&[input], message).rule("the sparse tensor must have rank 2"));
        }
    }
    if let (Some(_), Some(&[pairs, _]), Some(&[count])) = (dense.rank(), indices.dims(), values.dims())
        && !pairs.is_compatible(count)
    {
        let message = message!("`SparseFillEmptyRows` has {} index pairs, but {} values"; pairs, count);
        return Err(Fault::shapes(&[0, 2], message));
    }
    let size = cx.shape_value(1)?;
    // A partly known size is ignored.
    let size = size.and_then(|size| size.to_static());
    let mut counts = [Dim::ANY, Dim::ANY];
    if let Some(&[rows, columns]) = size.as_deref()
        && let Some(pairs) = cx.integers(2)
    {
        let mut used = HashSet::new();
        for pair in pairs.chunks_exact(2) {
            let &[row, column] = pair else { continue };
            if !(0..rows).contains(&row) || !(0..columns).contains(&column) {
                let message =
                    message!("index {}, {} is outside of the dense shape [{},{}]"; row, column, rows, columns);
                return Err(Fault::value(&[1, 2], message));
            }
            used.insert(row);
        }
        let empty = Dim::fixed(rows - used.len() as i64);
        let [Some(&[pairs, _]), Some(&[count])] = [indices.dims(), values.dims()] else {
            return Err(Fault::shapes(&[0, 2], "`SparseFillEmptyRows` needs the ranks of its values and indices"));
        };
        counts = [pairs + empty, count + empty];
    }
    let rows = size.and_then(|size| size.first().copied()).map_or(Dim::ANY, Dim::fixed);
    cx.output(cx.element_type(2), [counts[0], Dim::fixed(2)].into_iter().collect());
    cx.output(cx.element_type(0), [counts[1]].into_iter().collect());
    cx.finish(ElementType::Boolean, [rows].into_iter().collect())
}
