//! Operations that write elements into a tensor by index: ScatterUpdate and its variants.

use typelift_promote::ElementType;

use super::common::{INDEX_OR_DYNAMIC, check_one_number, check_rank, check_type, check_type_in, checked_axis};
use super::evaluate::Evaluate;
use super::{Accepts, Attr, AttrKind, Context, Fault, Operation, Ties, evaluate};
use crate::findings::message;
use crate::model::shape::{Dim, Shape};

pub(super) const ROWS: &[Operation] = &[
    elements(3).until(11),
    elements(12).attributes(&[
        Attr::new("reduction", AttrKind::Enum(&["none", "sum", "prod", "min", "max", "mean"])).default("none"),
        Attr::new("use_init_val", AttrKind::Bool).default("true"),
    ]),
    nd(3).since(4).until(14),
    nd(15).attributes(&[
        Attr::new("reduction", AttrKind::Enum(&["none", "sum", "sub", "prod", "min", "max"])).default("none")
    ]),
    Operation::new("ScatterUpdate", 3, scatter_update)
        .evaluate(Evaluate::Ends(DATA_AND_UPDATES, evaluate::scatter_update))
        .inputs(4, 4)
        .ties(DATA),
];

const fn elements(revision: u8) -> Operation {
    let row = Operation::new("ScatterElementsUpdate", revision, scatter_elements).inputs(4, 4).ties(DATA);
    row.evaluate(Evaluate::Ends(DATA_AND_UPDATES, evaluate::scatter_elements_update))
}

const fn nd(revision: u8) -> Operation {
    let row = Operation::new("ScatterNDUpdate", revision, scatter_nd).inputs(3, 3).ties(DATA);
    row.evaluate(Evaluate::Ends(DATA_AND_UPDATES, evaluate::scatter_nd_update))
}

const DATA: Ties = Ties::Inputs(&[0, 2]);
/// Bit set of the inputs data and updates, for [`Evaluate::Ends`].
const DATA_AND_UPDATES: u32 = 0b101;

fn scatter_update(cx: &mut Context) -> Result<(), Fault> {
    check_type(cx, 1, "indices", Accepts::Integer)?;
    cx.merge_types(&[0, 2])?;
    check_type(cx, 3, "axis", Accepts::Integer)?;
    check_one_number(cx, 3, "axis")?;
    let (data, indices, updates) = (cx.shape(0), cx.shape(1), cx.shape(2));
    if let (Some(data), Some(indices), Some(updates)) = (data.rank(), indices.rank(), updates.rank())
        && updates + 1 != data + indices
    {
        let message = message!(
            "the updates of `ScatterUpdate` have rank {}, the data {} and the indices {}";
            updates, data, indices
        );
        return Err(Fault::shapes(&[0, 1, 2], message).rule("rank(updates) = rank(data) + rank(indices) - 1"));
    }
    if let (Some(dims), Some(&[axis, ..])) = (data.dims(), cx.integers(3).as_deref()) {
        let axis = checked_axis(cx, 3, axis, dims.len())?;
        let (Some(before), Some(behind)) = (dims.get(..axis), dims.get(axis + 1..)) else {
            return Err(Fault::shapes(&[0], "the data of `ScatterUpdate` is a scalar, which has no axis"));
        };
        if let (Some(indices), Some(updates)) = (indices.dims(), updates.dims()) {
            check_updates(cx, before.iter().chain(indices).chain(behind), updates)?;
        }
    }
    cx.finish(cx.element_type(0), data.clone())
}

fn check_updates<'a>(
    cx: &Context,
    expected: impl Iterator<Item = &'a Dim> + Clone,
    updates: &[Dim],
) -> Result<(), Fault> {
    if expected.clone().zip(updates).all(|(left, &right)| left.is_compatible(right)) {
        return Ok(());
    }
    let (expected, updates): (Shape, Shape) = (expected.copied().collect(), updates.iter().copied().collect());
    let message = message!("the updates of `{}` have the shape {}, not {}"; cx.ty(), updates, expected);
    let fault =
        Fault::shapes(&[0, 1, 2], message).rule("the updates must have the shape of the elements that they replace");
    Err(fault.help(message!("provide updates of shape {}"; expected)))
}

fn scatter_nd(cx: &mut Context) -> Result<(), Fault> {
    check_type_in(cx, 1, "indices", INDEX_OR_DYNAMIC)?;
    let element_type = cx.merge_types(&[0, 2])?;
    let (data, indices, updates) = (cx.shape(0), cx.shape(1), cx.shape(2));
    for input in 0..2 {
        if cx.shape(input).rank() == Some(0) {
            return Err(Fault::shapes(&[input], message!("input {} of `ScatterNDUpdate` must not be a scalar"; input)));
        }
    }
    if let (Some(dims), Some((last, outer))) = (data.dims(), indices.dims().and_then(<[Dim]>::split_last))
        && let Some(depth) = last.value()
    {
        let Some(inner) = usize::try_from(depth).ok().and_then(|depth| dims.get(depth..)) else {
            let message = message!(
                "the indices of `ScatterNDUpdate` select {} axes, but the data {} has {}";
                depth, data, dims.len()
            );
            return Err(Fault::shapes(&[0, 1], message));
        };
        if let Some(updates) = updates.dims() {
            let rank = outer.len() + inner.len();
            if rank != updates.len() && rank != 0 {
                let message = message!("the updates of `ScatterNDUpdate` have rank {}, not {}"; updates.len(), rank);
                let rule = "rank(updates) = rank(data) + rank(indices) - last dimension of indices - 1";
                return Err(Fault::shapes(&[0, 1, 2], message).rule(rule));
            }
            check_updates(cx, outer.iter().chain(inner), updates)?;
        }
    }
    cx.finish(element_type, data.clone())
}

fn scatter_elements(cx: &mut Context) -> Result<(), Fault> {
    check_type(cx, 1, "indices", Accepts::Bits)?;
    check_type(cx, 3, "axis", Accepts::Bits)?;
    let element_type = cx.merge_types(&[0, 2])?;
    check_rank(cx, 3, "axis", &[0, 1])?;
    if cx.operation.revision == 12 && element_type == ElementType::Boolean && cx.word("reduction")? == "mean" {
        return Err(Fault::attribute("reduction", "`ScatterElementsUpdate` cannot compute the mean of boolean data"));
    }
    let (data, indices, updates) = (cx.shape(0), cx.shape(1), cx.shape(2));
    if let (Some(left), Some(right)) = (data.rank(), indices.rank())
        && left != right
    {
        let message = message!("data and indices of `ScatterElementsUpdate` have the ranks {} and {}"; left, right);
        return Err(Fault::shapes(&[0, 1], message));
    }
    if let Err(mismatch) = indices.merge(updates) {
        let message = message!("indices and updates of `ScatterElementsUpdate` must have one shape: {}"; mismatch);
        return Err(Fault::shapes(&[1, 2], message));
    }
    if let Some(rank) = data.rank()
        && let Some(axis) = cx.numbers(3)?
    {
        let Some(&axis) = axis.first() else {
            return Err(Fault::value(&[3], "`ScatterElementsUpdate` needs an axis, but its list is empty"));
        };
        checked_axis(cx, 3, axis, rank)?;
    }
    cx.finish(element_type, data.clone())
}
