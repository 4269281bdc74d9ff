//! Sums and means of rows of an embedding table, bag by bag.

use super::common::{INDEX, check_rank, check_type_in};
use super::{Attr, AttrKind, Context, Fault, Operation, Ties};
use crate::findings::message;
use crate::model::shape::{Dim, Shape};

pub(super) const ROWS: &[Operation] = &[
    Operation::new("EmbeddingBagOffsets", 15, bag_offsets)
        .inputs(3, 5)
        .ties(Ties::Groups(&[&[0, 4], &[1, 2, 3]]))
        .attributes(REDUCTION),
    Operation::new("EmbeddingBagOffsetsSum", 3, bag_offsets).inputs(3, 5).ties(Ties::Groups(&[&[0, 4], &[1, 2, 3]])),
    Operation::new("EmbeddingBagPacked", 15, bag_packed).inputs(2, 3).ties(Ties::Inputs(&[0, 2])).attributes(REDUCTION),
    Operation::new("EmbeddingBagPackedSum", 3, bag_packed).inputs(2, 3).ties(Ties::Inputs(&[0, 2])),
    Operation::new("EmbeddingSegmentsSum", 3, segments_sum).inputs(4, 6).ties(Ties::Groups(&[&[0, 5], &[1, 2, 3, 4]])),
];

const REDUCTION: &[Attr] = &[Attr::new("reduction", AttrKind::Enum(&["sum", "mean"])).default("sum")];

fn bag_offsets(cx: &mut Context) -> Result<(), Fault> {
    check_indices(cx, &[(1, "indices"), (2, "offsets"), (3, "default index")])?;
    check_rank(cx, 1, "indices", &[1])?;
    check_rank(cx, 2, "offsets", &[1])?;
    check_rank(cx, 3, "default index", &[0])?;
    check_weights(cx, 4, 1)?;
    bags(cx, cx.shape(2).dims().and_then(|dims| dims.first().copied()))
}

fn bag_packed(cx: &mut Context) -> Result<(), Fault> {
    check_indices(cx, &[(1, "indices")])?;
    check_rank(cx, 1, "indices", &[2])?;
    let indices = check_weights(cx, 2, 2)?;
    bags(cx, indices.dims().and_then(|dims| dims.first().copied()))
}

fn segments_sum(cx: &mut Context) -> Result<(), Fault> {
    check_indices(cx, &[(1, "indices"), (2, "segment ids"), (3, "number of segments"), (4, "default index")])?;
    check_rank(cx, 1, "indices", &[1])?;
    check_rank(cx, 2, "segment ids", &[1])?;
    merge_shapes(cx, (1, "indices"), (2, "segment ids"))?;
    check_rank(cx, 3, "number of segments", &[0])?;
    check_rank(cx, 4, "default index", &[0])?;
    check_weights(cx, 5, 1)?;
    let segments = match cx.shape(0).rank() {
        Some(_) => cx.shape_value(3)?.and_then(|value| value.dims()?.first().copied()),
        None => None,
    };
    bags(cx, segments)
}

/// An error if indices are not i32 or i64, or differ in type.
fn check_indices(cx: &Context, roles: &[(usize, &'static str)]) -> Result<(), Fault> {
    let given = roles.iter().filter(|(input, _)| *input < cx.inputs.len());
    for &(input, role) in given.clone() {
        check_type_in(cx, input, role, INDEX)?;
    }
    let inputs: smallvec::SmallVec<[usize; 4]> = given.map(|&(input, _)| input).collect();
    cx.merge_types(&inputs).map(|_| ())
}

/// Checks the weights of the indices, if `input` exists. Returns the common shape of indices and weights.
fn check_weights(cx: &Context, input: usize, rank: usize) -> Result<Shape, Fault> {
    if input >= cx.inputs.len() {
        return Ok(cx.shape(1).clone());
    }
    cx.merge_types(&[0, input])?;
    if cx.operation.attribute("reduction").is_some() && cx.word("reduction")? != "sum" {
        return Err(Fault::attribute("reduction", message!("`{}` takes weights only for sums"; cx.ty()))
            .help("set reduction=\"sum\", or remove the weights"));
    }
    check_rank(cx, input, "weights", &[rank])?;
    merge_shapes(cx, (1, "indices"), (input, "weights"))
}

fn merge_shapes(cx: &Context, left: (usize, &'static str), right: (usize, &'static str)) -> Result<Shape, Fault> {
    let (a, b) = (cx.shape(left.0), cx.shape(right.0));
    a.merge(b).map_err(|mismatch| {
        let message = message!(
            "the {} and the {} of `{}` must have one shape, but have {} and {}: {}";
            left.1, right.1, cx.ty(), a, b, mismatch
        );
        Fault::shapes(&[left.0, right.0], message)
    })
}

/// Infers the output: one row of the table's shape for each bag.
fn bags(cx: &mut Context, count: Option<Dim>) -> Result<(), Fault> {
    let mut shape = cx.shape(0).clone();
    match shape.dims_mut() {
        Some([]) => return Err(Fault::shapes(&[0], message!("the table of `{}` is a scalar"; cx.ty()))),
        Some([rows, ..]) => *rows = count.unwrap_or(Dim::ANY),
        None => {}
    }
    cx.finish(cx.element_type(0), shape)
}
