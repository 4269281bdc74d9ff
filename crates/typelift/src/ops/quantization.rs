//! Quantization that is computed in the type of the data.

use super::broadcasting::auto_broadcast;
use super::common::{SINGLE, check_type_in};
use super::elementwise::{AUTO_BROADCAST, AXIS};
use super::evaluate::Evaluate::Exact;
use super::{Accepts, Attr, AttrKind, Context, Fault, Operation, Spread, Ties, evaluate};
use crate::findings::message;
use crate::model::shape::AutoBroadcast;

pub(super) const ROWS: &[Operation] = &[
    Operation::new("FakeQuantize", 0, fake_quantize)
        .spreads_on(&[Spread::Quantized])
        .requires(&["levels"])
        .evaluate(Exact(evaluate::fake_quantize))
        .inputs(5, 5)
        .ties(Ties::All)
        .tied_when_run()
        .attributes(&[Attr::new("levels", AttrKind::Unsigned).default("0"), AUTO_BROADCAST, AXIS]),
    Operation::new("FakeConvert", 13, fake_convert)
        .inputs(2, 3)
        .ties(Ties::All)
        .accepts(Accepts::Real)
        .attributes(&[Attr::new("destination_type", AttrKind::Enum(&["f8e4m3", "f8e5m2"])).default("f8e4m3")]),
];

/// Infers FakeQuantize. The ranges must broadcast with the data, but the output has the data's shape. By the
/// specification and in all frameworks only the ranges are broadcast.
fn fake_quantize(cx: &mut Context) -> Result<(), Fault> {
    let rule = auto_broadcast(cx)?;
    let mut shape = cx.shape(0).clone();
    for input in 1..5 {
        let range = cx.shape(input);
        shape = rule.combine(&shape, range).map_err(|mismatch| {
            let message = message!(
                "the range {} of `FakeQuantize` cannot be broadcast with the inputs before it: {}";
                range, mismatch
            );
            Fault::shapes(&[0, input], message)
        })?;
    }
    cx.finish(cx.element_type(0), cx.shape(0).clone())
}

fn fake_convert(cx: &mut Context) -> Result<(), Fault> {
    let inputs: &[usize] = if cx.inputs.len() == 3 { &[0, 1, 2] } else { &[0, 1] };
    let element_type = cx.merge_types(inputs)?;
    for &input in inputs {
        check_type_in(cx, input, "data, scale and shift", SINGLE)?;
    }
    let (data, scale) = (cx.shape(0), cx.shape(1));
    if let Some(shift) = cx.try_shape(2)
        && !scale.is_compatible(shift)
    {
        let message = message!("the scale {} and the shift {} of `FakeConvert` differ"; scale, shift);
        return Err(Fault::shapes(&[1, 2], message));
    }
    let shape = AutoBroadcast::Numpy.combine(data, scale).map_err(|mismatch| {
        Fault::shapes(&[0, 1], message!("the scale {} cannot be broadcast to the data {}: {}"; scale, data, mismatch))
    })?;
    if !data.is_compatible(&shape) {
        return Err(Fault::shapes(&[0, 1], message!("the scale {} has a larger shape than the data {}"; scale, data)));
    }
    cx.finish(element_type, shape)
}
