//! Operations that reorder or accumulate elements along axes: CumSum, Inverse, Reverse, ReverseSequence, Roll.

use typelift_promote::ElementType;

use super::common::{INDEX, INDEX_OR_DYNAMIC, attribute_axis, check_rank, check_type, check_type_in, checked_axis};
use super::evaluate::Evaluate::Exact;
use super::{Accepts, Attr, AttrKind, Context, Fault, Operation, evaluate};
use crate::findings::message;

pub(super) const ROWS: &[Operation] = &[
    Operation::new("CumSum", 0, cum_sum).wraps().evaluate(Exact(evaluate::cum_sum)).since(3).inputs(2, 2).attributes(
        &[
            Attr::new("exclusive", AttrKind::Bool).default("false"),
            Attr::new("reverse", AttrKind::Bool).default("false"),
        ],
    ),
    Operation::new("Inverse", 14, inverse)
        .accepts(Accepts::Real)
        .attributes(&[Attr::new("adjoint", AttrKind::Bool).default("false")]),
    Operation::new("Reverse", 1, reverse).until(1).inputs(2, 2).attributes(&[REVERSE_MODE]),
    Operation::new("ReverseSequence", 0, reverse_sequence).inputs(2, 2).attributes(&[
        Attr::new("batch_axis", AttrKind::Int).default("0"),
        Attr::new("seq_axis", AttrKind::Int).default("1"),
    ]),
    Operation::new("Roll", 7, roll).inputs(3, 3),
];

const REVERSE_MODE: Attr = Attr::new("mode", AttrKind::Enum(&["index", "mask"])).default("index");

fn same(cx: &mut Context) {
    cx.output(cx.element_type(0), cx.shape(0).clone());
}

fn cum_sum(cx: &mut Context) -> Result<(), Fault> {
    check_type_in(cx, 1, "axis", INDEX)?;
    same(cx);
    Ok(())
}

fn inverse(cx: &mut Context) -> Result<(), Fault> {
    cx.check_accepted(0, cx.element_type(0))?;
    let data = cx.shape(0);
    match data.dims() {
        None => {}
        Some([.., rows, columns]) if !(rows.is_fixed() && columns.is_fixed()) || rows == columns => {}
        Some(_) => {
            let message = message!("`Inverse` needs square matrices, but the data has shape {}"; data);
            return Err(Fault::shapes(&[0], message));
        }
    }
    same(cx);
    Ok(())
}

fn reverse(cx: &mut Context) -> Result<(), Fault> {
    let mask = cx.word("mode")? == "mask";
    if mask {
        check_type_in(cx, 1, "mask", &[ElementType::Boolean])?;
    } else {
        check_type(cx, 1, "axes", Accepts::Integer)?;
    }
    check_rank(cx, 1, "axes", &[1])?;
    if let Some(rank) = cx.shape(0).rank() {
        let length = cx.shape(1).dims().and_then(|dims| dims.first().copied());
        if mask && length.is_some_and(|length| !length.contains(rank as i64)) {
            let message = message!("the mask of `Reverse` does not have one element for each of {} axes"; rank);
            return Err(Fault::shapes(&[0, 1], message));
        }
        // OpenVINO treats negative axes as 0.
        if !mask && let Some(axis) = cx.numbers(1)?.into_iter().flatten().find(|&axis| axis >= rank as i64) {
            return Err(Fault::value(&[1], message!("`Reverse` has no axis {}: its data has rank {}"; axis, rank)));
        }
    }
    same(cx);
    Ok(())
}

fn reverse_sequence(cx: &mut Context) -> Result<(), Fault> {
    check_type(cx, 1, "lengths", Accepts::NotBoolean)?;
    check_rank(cx, 1, "lengths", &[1])?;
    let sequence = cx.int("seq_axis")?;
    let mut shape = cx.shape(0).clone();
    let Some(dims) = shape.dims_mut() else {
        if sequence < 0 {
            let message =
                message!("`seq_axis` is {}, which counts from the end, but the rank of the data is unknown"; sequence);
            return Err(Fault::attribute("seq_axis", message));
        }
        same(cx);
        return Ok(());
    };
    if dims.len() < 2 {
        return Err(Fault::shapes(&[0], "the data of `ReverseSequence` needs a batch axis and a sequence axis"));
    }
    attribute_axis(cx, "seq_axis", sequence, dims.len())?;
    if let Some(&[length]) = cx.shape(1).dims() {
        let axis = attribute_axis(cx, "batch_axis", cx.int("batch_axis")?, dims.len())?;
        if let Some(batch) = dims.get_mut(axis) {
            *batch = (*batch & length).ok_or_else(|| {
                Fault::shapes(&[0, 1], message!("`ReverseSequence` has {} lengths, but a batch of {}"; length, batch))
            })?;
        }
    }
    cx.finish(cx.element_type(0), shape)
}

fn roll(cx: &mut Context) -> Result<(), Fault> {
    for (input, role) in [(1, "shift"), (2, "axes")] {
        check_type_in(cx, input, role, INDEX_OR_DYNAMIC)?;
        check_rank(cx, input, role, &[0, 1])?;
    }
    let (shift, axes) = (cx.shape(1), cx.shape(2));
    if shift.rank() != Some(0)
        && let Err(mismatch) = shift.merge(axes)
    {
        let message = message!("shift and axes of `Roll` must be equally long: {}"; mismatch);
        return Err(Fault::shapes(&[1, 2], message).rule("one shift for each axis, or a single number for all"));
    }
    if let (Some(rank), Some(axes)) = (cx.shape(0).rank(), cx.numbers(2)?) {
        for axis in axes {
            checked_axis(cx, 2, axis, rank)?;
        }
    }
    same(cx);
    Ok(())
}
