//! Broadcast to a target shape that is an input.

use smallvec::SmallVec;

use super::broadcasting::{Mode, mode};
use super::common::check_type;
use super::evaluate::{DATA, Evaluate};
use super::{Accepts, Attr, AttrKind, Context, Fault, Operation, Spread, evaluate, is_constant};
use crate::findings::{Text, message};
use crate::model::shape::{BroadcastMode, Dim, ListInput, Shape};

pub(super) const ROWS: &[Operation] = &[
    row(1).until(2).attributes(&[
        Attr::new("mode", AttrKind::Enum(&["none", "explicit", "numpy", "pdpd"])).default("none"),
        Attr::new("mode.auto_broadcast_axis", AttrKind::Int).default("0"),
    ]),
    row(3).attributes(&[
        Attr::new("mode", AttrKind::Enum(&["none", "explicit", "numpy", "pdpd", "bidirectional"])).default("numpy")
    ]),
];

const fn row(revision: u8) -> Operation {
    let row = Operation::new("Broadcast", revision, broadcast).inputs(2, 3).shaped_by(&[1]);
    row.spreads_on(&[Spread::Kept, Spread::Quantized]).evaluate(Evaluate::Ends(DATA, evaluate::broadcast))
}

fn broadcast(cx: &mut Context) -> Result<(), Fault> {
    let element_type = cx.element_type(0);
    let mode = mode(cx, cx.inputs.len())?;
    // Revision 1 ignores an axes mapping unless the mode is explicit.
    let mapped = matches!(mode, Mode::Explicit);
    for input in 1..if mapped { 3 } else { 2 } {
        check_type(cx, input, if input == 1 { "target shape" } else { "axes mapping" }, Accepts::Integer)?;
        if cx.shape(input).rank().is_some_and(|rank| rank != 1) {
            return Err(Fault::shapes(&[input], message!("input {} of `Broadcast` must be a list, of rank 1"; input)));
        }
    }
    let axes = if mapped { cx.numbers(2)? } else { None };
    let mode = match mode {
        Mode::Numpy => BroadcastMode::Numpy,
        Mode::Bidirectional => BroadcastMode::Bidirectional,
        Mode::Pdpd { axis } => BroadcastMode::Pdpd { axis },
        Mode::Explicit => BroadcastMode::Explicit(match &axes {
            Some(axes) => ListInput::Values(axes),
            None => length_of(cx.shape(2)),
        }),
    };
    let known = cx.shape_value(1)?.or_else(|| joined_target(cx));
    let target = match &known {
        Some(shape) => ListInput::Values(shape),
        None => length_of(cx.shape(1)),
    };
    let data = cx.shape(0);
    let shape = mode.combine(data, target).map_err(|mismatch| {
        let target = known.as_ref().map_or("its target".to_owned(), ToString::to_string);
        Fault::shapes(&[0, 1], message!("{} does not broadcast to {}: {}"; data, Text(target), mismatch))
    })?;
    cx.finish(element_type, shape)
}

/// The target shape if a Concat of single numbers builds it. Numbers that are not Constants are unknown.
fn joined_target(cx: &mut Context) -> Option<Shape> {
    let concat = cx.graph().layer(cx.feed(1)?.layer).filter(|layer| layer.ty() == "Concat")?;
    let count = usize::try_from(cx.shape(1).to_static()?.first().copied()?).ok()?;
    let numbers = cx.graph().feeds(concat.id()).into_iter().collect::<Option<SmallVec<[_; 4]>>>();
    let dims = numbers.filter(|numbers| numbers.len() == count)?.into_iter().map(|(layer, port)| {
        if !is_constant(layer) {
            return Some(Dim::ANY);
        }
        let graph = cx.graph();
        let bounds = cx.around_mut().bounds(graph, layer.id().output(port))?;
        Some(Dim::fixed(bounds.lower.first_integer()?))
    });
    dims.collect()
}

fn length_of<T>(list: &Shape) -> ListInput<T> {
    list.dims().map_or(ListInput::Unknown, |dims| ListInput::Length(dims.first().copied().unwrap_or(Dim::ONE)))
}
