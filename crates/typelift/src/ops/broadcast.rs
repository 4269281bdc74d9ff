//! Broadcast to a target shape that is data.

use super::{Attr, AttrKind, Context, Fault, Operation};
use crate::shape::{BroadcastMode, Dim, ListInput, Shape};

pub(super) const ROWS: &[Operation] = &[
    Operation::new("Broadcast", 1, broadcast).until(2).inputs(2, 3).attributes(&[
        Attr::new("mode", AttrKind::Enum(&["none", "explicit", "numpy", "pdpd"])).default("numpy"),
        Attr::new("mode.auto_broadcast_axis", AttrKind::Int).default("0"),
    ]),
    Operation::new("Broadcast", 3, broadcast).inputs(2, 3).attributes(&[
        Attr::new("mode", AttrKind::Enum(&["explicit", "numpy", "pdpd", "bidirectional"])).default("numpy"),
        Attr::new("mode.auto_broadcast_axis", AttrKind::Int).default("0"),
    ]),
];

fn broadcast(cx: &mut Context) -> Result<(), Fault> {
    let element_type = cx.element_type(0);
    for input in 1..cx.inputs.len() {
        let ty = cx.element_type(input);
        if !ty.is_integer() && ty != typelift_promote::ElementType::Dynamic {
            let what = if input == 1 { "target shape" } else { "axes mapping" };
            return Err(Fault::unsupported(input, format!("the {what} of `Broadcast` is {ty}, not an integer")));
        }
        if cx.shape(input).rank().is_some_and(|rank| rank != 1) {
            return Err(Fault::shapes(&[input], format!("input {input} of `Broadcast` must be a list, of rank 1")));
        }
    }
    let mode = cx.word("mode")?;
    let explicit = ["explicit", "none"].contains(&mode);
    if explicit != (cx.inputs.len() == 3) {
        let needs = if explicit { "needs" } else { "takes no" };
        return Err(Fault::value(&[], format!("`Broadcast` in mode {mode} {needs} third input, the axes mapping")));
    }
    let axes = if explicit { cx.integers(2) } else { None };
    let mode = match mode {
        "numpy" => BroadcastMode::Numpy,
        "bidirectional" => BroadcastMode::Bidirectional,
        "pdpd" => BroadcastMode::Pdpd { axis: cx.int("mode.auto_broadcast_axis")? },
        _ => BroadcastMode::Explicit(match &axes {
            Some(axes) => ListInput::Values(axes),
            None => length_of(cx.shape(2)),
        }),
    };
    let known = cx.shape_value(1)?;
    let target = match &known {
        Some(shape) => ListInput::Values(shape),
        None => length_of(cx.shape(1)),
    };
    let data = cx.shape(0);
    let shape = mode.combine(data, target).map_err(|mismatch| {
        let target = known.as_ref().map_or("its target".to_owned(), ToString::to_string);
        Fault::shapes(&[0, 1], format!("{data} does not broadcast to {target}: {mismatch}"))
    })?;
    cx.output(element_type, shape);
    Ok(())
}

/// What the shape of a list tells of its length.
fn length_of<T>(list: &Shape) -> ListInput<T> {
    match list.dims() {
        None => ListInput::Unknown,
        Some(dims) => ListInput::Length(dims.first().copied().unwrap_or(Dim::ONE)),
    }
}
