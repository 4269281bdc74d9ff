//! Sources and sinks of tensors: Parameter, Constant, Result, ShapeOf.

use smallvec::smallvec;
use typelift_promote::{ElementType, Kind};

use super::common::{as_data, index_type};
use super::evaluate::{Bounds, Evaluate, Evaluation};
use super::{Attr, AttrKind, Context, Fault, LayerKind, Operation, Spread};
use crate::base::number;
use crate::findings::{About, Code, Fix, Message, Owner, Text, message};
use crate::model::shape::{Dim, Shape};
use crate::model::weights::{Weights, byte_size, stored_size};
use crate::ops::values::array::Array;

pub(super) const ROWS: &[Operation] = &[
    Operation::new("Parameter", 0, parameter).kind(LayerKind::Parameter).inputs(0, 0).and(17).attributes(&[
        Attr::new("shape", AttrKind::Shape).default(""),
        Attr::new("element_type", AttrKind::Type).default("dynamic"),
    ]),
    Operation::new("Constant", 0, constant)
        .spreads_on(&[Spread::Kept])
        .kind(LayerKind::Constant)
        .inputs(0, 0)
        .evaluate(Evaluate::Source(constant_values))
        .attributes(&[
            Attr::new("element_type", AttrKind::Type),
            Attr::new("shape", AttrKind::Ints),
            Attr::new("offset", AttrKind::Bytes),
            Attr::new("size", AttrKind::Bytes),
            Attr::new("value", AttrKind::Text).default(""),
        ]),
    Operation::new("Result", 0, as_data).kind(LayerKind::Result),
    Operation::new("ShapeOf", 0, |cx| shape_as(cx, ElementType::I64)).until(2).evaluate(Evaluate::Source(shape_values)),
    Operation::new("ShapeOf", 3, shape_of).and(17).evaluate(Evaluate::Source(shape_values)).attributes(&[OUTPUT_TYPE]),
];

const OUTPUT_TYPE: Attr = Attr::new("output_type", AttrKind::Type).default("dynamic");

fn parameter(cx: &mut Context) -> Result<(), Fault> {
    if cx.layer.attributes().is_empty() {
        return Err(Fault::other(Code::MissingAttribute, "a Parameter needs its <data> with shape and element_type")
            .concerning(About::missing("data", vec!["shape".into(), "element_type".into()], None))
            .help(Fix::add(["shape", "element_type"], Owner::NewData)));
    }
    let element_type = cx.type_attribute("element_type")?;
    let mut shape = cx.partial_shape("shape")?;
    for (attribute, becomes) in [("shape", "a scalar"), ("element_type", "dynamic")] {
        if !cx.has_attribute(attribute) {
            let message = message!("a Parameter without `{}` is {}"; attribute, becomes);
            let lint = Fault::other(Code::IncompleteParameter, message);
            let lint = lint.concerning(About::missing("data", vec![attribute.into()], None));
            cx.lint(lint.help(Fix::add([attribute], Owner::Data)));
        }
    }
    let mut element_type = element_type;
    if let Some(given) = cx.given {
        shape = given.shape.clone();
        element_type = given.element_type.unwrap_or(element_type);
    }
    cx.finish(element_type, shape)
}

fn meant(dims: &[i64], element_type: ElementType, size: u64) -> Option<String> {
    let known = Shape::fixed(dims.iter().copied().filter(|&dim| dim >= 0));
    let (known, bits) = (known.element_count()?, u64::from(element_type.bits()));
    let rest = (size.checked_mul(8)?).checked_div(known.checked_mul(bits)?)?;
    let is_whole = known * bits * rest == size * 8 && dims.iter().filter(|&&dim| dim < 0).count() == 1;
    let dims = dims.iter().map(|&dim| if dim < 0 { rest.to_string() } else { dim.to_string() });
    is_whole.then(|| dims.collect::<Vec<_>>().join(","))
}

fn constant(cx: &mut Context) -> Result<(), Fault> {
    let element_type = cx.type_attribute("element_type")?;
    let dims = cx.ints("shape")?;
    let shape = Shape::fixed(dims.iter().copied().map(|dim| dim.max(0)));
    let needed = match (element_type.kind(), shape.element_count()) {
        (Kind::String | Kind::Dynamic, _) => Some(0),
        (_, None) => None,
        (_, Some(count)) => byte_size(element_type, count),
    };
    if cx.has_attribute("value") {
        // The text of the attribute is the data.
        let length = cx.text("value")?.len();
        if needed.is_none_or(|needed| needed > length as u128) {
            let message = message!("`value` has {} bytes, too few for {}{}"; length, element_type, shape);
            return Err(Fault { attribute: Some("value"), ..invalid(message) }
                .rule("OpenVINO reads beyond the end of the value"));
        }
        return cx.finish(element_type, shape);
    }
    let (offset, size) = (byte_count(cx, "offset")?, byte_count(cx, "size")?);
    if dims.iter().any(|&dim| dim < 0) {
        let written = cx.text("shape")?;
        let fault = invalid(message!("a constant cannot have the shape [{}]"; written));
        let fault = Fault { attribute: Some("shape"), ..fault };
        return Err(match meant(&dims, element_type, size) {
            Some(dims) => fault.help(message!("write shape=\"{}\": this shape has exactly `size` bytes"; Text(dims))),
            None => fault.help("write the length of each axis"),
        });
    }
    check_size(cx, (element_type, &shape), needed, size)?;
    check_bytes(cx, element_type, offset, size)?;
    cx.finish(element_type, shape)
}

fn invalid(message: Message) -> Fault {
    Fault::other(Code::InvalidConstant, message)
}

/// Compares the size that a constant declares with the size of its type and shape.
fn check_size(
    cx: &mut Context,
    (element_type, shape): (ElementType, &Shape),
    needed: Option<u128>,
    size: u64,
) -> Result<(), Fault> {
    let Some(needed) = needed.filter(|&needed| needed <= size.into()) else {
        let help = match needed {
            Some(bytes) => message!("write size=\"{}\", or correct the shape or the element type"; bytes),
            None => "correct the shape or the element type".into(),
        };
        let needed = needed.map_or_else(|| "more bytes than `size`".into(), |bytes| message!("{} bytes"; bytes));
        let fault = invalid(message!("{}{} needs {}, but `size` is {}"; element_type, shape, needed, size));
        return Err(Fault { attribute: Some("size"), ..fault }.help(help));
    };
    // Some writers store an empty constant as one byte.
    if needed.max(1) < size.into() && element_type.bits() > 0 {
        let message = message!("{}{} needs {} bytes, but `size` is {}"; element_type, shape, needed, size);
        let lint = Fault { attribute: Some("size"), ..Fault::other(Code::OversizedConstant, message) };
        cx.lint(
            lint.help(message!("correct the type or the shape if they were changed, or write size=\"{}\""; needed)),
        );
    }
    Ok(())
}

/// Checks that the weights contain the bytes of a constant, if the weights exist.
fn check_bytes(cx: &Context, element_type: ElementType, offset: u64, size: u64) -> Result<(), Fault> {
    let weights = cx.weights();
    let Some(length) = weights.len() else { return Ok(()) };
    if offset.checked_add(size).is_none_or(|end| end > length) {
        let message = message!(
            "the constant has {} bytes at offset {}, but the weights have only {} bytes";
            size, offset, length
        );
        return Err(Fault { attribute: Some("offset"), ..invalid(message) }.help(
            "the .bin is probably cut off: download or copy it again; if only this constant is wrong, correct its `offset` \
             and `size`",
        ));
    }
    if element_type.kind() == Kind::String {
        check_strings(weights, offset, size)
            .map_err(|message| invalid(message!("the strings of this constant are damaged: {}"; message)))?;
    }
    Ok(())
}

fn byte_count(cx: &Context, name: &'static str) -> Result<u64, Fault> {
    let (count, text) = (cx.int(name)?, cx.text(name)?);
    if let Some(count) = number::bytes(text) {
        return Ok(count);
    }
    if count < 0 {
        return Err(Fault::attribute(name, message!("`{}` of a constant is `{}`, less than 0"; name, text))
            .help(message!("write the number of bytes: `{}` counts from 0"; name)));
    }
    Err(Fault::attribute(name, message!("`{}` of a constant is `{}`, not a plain number"; name, text))
        .help(message!("write {}=\"{}\" if you mean this number"; name, count)))
}

/// Checks the storage of strings: their number, the offset of each and the end of the last, then their bytes.
fn check_strings(weights: &Weights, offset: u64, size: u64) -> Result<(), Message> {
    const CHUNK: usize = 1 << 12;
    let number = |bytes: &[u8]| bytes.try_into().map_or(0, i32::from_le_bytes);
    let head = weights.read(offset, 4).filter(|_| size >= 4).ok_or("the data is shorter than the number of strings")?;
    let count = u64::try_from(number(&head)).map_err(|_| "the number of strings is negative")?;
    let header = (count + 2) * 4;
    let room = size.checked_sub(header).ok_or_else(|| message!("{} strings do not fit into {} bytes"; count, size))?;
    let mut last = 0;
    let mut at = 4;
    while at < header && count > 0 {
        let length = usize::try_from(header - at).map_or(CHUNK, |left| left.min(CHUNK));
        let bytes = weights.read(offset + at, length).ok_or("the weights cannot be read")?;
        for place in bytes.chunks_exact(4).map(number) {
            if place < last {
                return Err(message!("the offset {} follows the larger offset {}"; place, last));
            }
            last = place;
        }
        at += length as u64;
    }
    if u64::from(last.unsigned_abs()) <= room {
        Ok(())
    } else {
        Err(message!("a string ends at byte {}, but there are {} bytes"; last, room))
    }
}

fn constant_values(evaluation: &Evaluation) -> Option<Bounds> {
    let output = evaluation.layer.outputs().first()?;
    let (element_type, shape) = (output.element_type(), output.shape());
    let dims = shape.dims()?.iter().map(|dim| usize::try_from(dim.value()?).ok()).collect::<Option<_>>()?;
    let decode = |bytes: &[u8]| Array::decode(element_type, dims, bytes).map(Bounds::exactly);
    if let Some(text) = evaluation.layer.attribute("value") {
        return decode(text.as_bytes());
    }
    let length = stored_size(element_type, shape.element_count()?)?;
    evaluation.weights.with(evaluation.layer.byte_count("offset")?, usize::try_from(length).ok()?, decode)?
}

fn shape_of(cx: &mut Context) -> Result<(), Fault> {
    let element_type = index_type(cx, "output_type")?;
    shape_as(cx, element_type)
}

fn shape_as(cx: &mut Context, element_type: ElementType) -> Result<(), Fault> {
    let length = cx.shape(0).rank().map_or(Dim::ANY, |rank| Dim::fixed(rank as i64));
    cx.finish(element_type, [length].into_iter().collect())
}

/// An unlimited dimension becomes the largest number of the output type.
fn shape_values(evaluation: &Evaluation) -> Option<Bounds> {
    let element_type = evaluation.layer.outputs().first()?.element_type();
    let largest = if element_type == ElementType::I32 { i128::from(i32::MAX) } else { i128::from(i64::MAX) };
    let dims = evaluation.input()?.shape().dims()?;
    let lower = dims.iter().map(|dim| i128::from(dim.lower()).min(largest));
    let upper = dims.iter().map(|dim| dim.upper().map_or(largest, i128::from).min(largest));
    let rank = smallvec![dims.len()];
    Some(Bounds::new(Array::ints(element_type, rank.clone(), lower), Array::ints(element_type, rank, upper)))
}
