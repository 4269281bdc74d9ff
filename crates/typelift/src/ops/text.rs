//! String tensors, and the number tensors from which they are packed.

use typelift_promote::ElementType;

use super::common::{INDEX, check_rank, check_type_in};
use super::{Context, Fault, Operation, Ties};
use crate::findings::message;
use crate::model::shape::{Dim, Shape};

pub(super) const ROWS: &[Operation] = &[
    Operation::new("StringTensorPack", 15, pack).inputs(3, 3).ties(Ties::Inputs(&[0, 1])),
    Operation::new("StringTensorUnpack", 15, unpack),
];

/// Infers a tensor of strings from begin and end positions in the third input.
fn pack(cx: &mut Context) -> Result<(), Fault> {
    for input in [0, 1] {
        check_type_in(cx, input, "places of strings", INDEX)?;
    }
    cx.merge_types(&[0, 1])?;
    check_type_in(cx, 2, "symbols of strings", &[ElementType::U8])?;
    check_rank(cx, 2, "symbols", &[1])?;
    check_places(cx, 0)?;
    check_places(cx, 1)?;
    let shape = cx.shape(0).merge(cx.shape(1)).map_err(|mismatch| {
        let message = message!("the begin and end positions of the strings have different shapes: {}"; mismatch);
        Fault::shapes(&[0, 1], message)
    })?;
    cx.finish(ElementType::String, shape)
}

/// Checks the positions in the characters, if they are known.
fn check_places(cx: &mut Context, input: usize) -> Result<(), Fault> {
    if !cx.shape(input).is_static() {
        return Ok(());
    }
    let Some(places) = cx.numbers(input)? else { return Ok(()) };
    let (Some(first), Some(last)) = (places.first(), places.last()) else { return Ok(()) };
    if *first < 0 {
        let message = message!("the first string begins at position {}, before the first symbol"; first);
        return Err(Fault::value(&[input], message));
    }
    let symbols = cx.shape(2).dims().and_then(|dims| dims.first()?.value());
    if let Some(symbols) = symbols.filter(|symbols| last > symbols) {
        let message = message!("the last string ends at position {}, but there are {} symbols"; last, symbols);
        return Err(Fault::value(&[input, 2], message));
    }
    if places.is_sorted() {
        Ok(())
    } else {
        Err(Fault::value(&[input], "the positions of strings must be in ascending order"))
    }
}

fn unpack(cx: &mut Context) -> Result<(), Fault> {
    let ty = cx.element_type(0);
    if ty != ElementType::String {
        return Err(Fault::unsupported(0, message!("`{}` takes strings, but gets {}"; cx.ty(), ty)));
    }
    let shape = cx.shape(0);
    cx.output(ElementType::I32, shape.clone());
    cx.output(ElementType::I32, shape.clone());
    let is_empty = shape.dims().is_some_and(|dims| dims.iter().any(|dim| dim.value() == Some(0)));
    let symbols = if is_empty { Some(0) } else { constant_symbols(cx) };
    let symbols = symbols.map_or(Dim::ANY, Dim::fixed);
    cx.finish(ElementType::U8, Shape::from_iter([symbols]))
}

/// Stored are the number of strings, their offsets, and their bytes.
fn constant_symbols(cx: &Context) -> Option<i64> {
    let producer = cx.graph().layer(cx.feed(0)?.layer).filter(|_| cx.is_constant(0))?;
    let offset = producer.byte_count("offset")?;
    let number = |at: u64| {
        let bytes = cx.weights().read(offset.checked_add(at)?, 4)?;
        Some(u64::from(u32::from_le_bytes(bytes.try_into().ok()?)))
    };
    let count = number(0)?;
    i64::try_from(number((1 + count) * 4)?.checked_sub(number(4)?)?).ok()
}
