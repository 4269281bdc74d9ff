//! Operations that extend a tensor along its axes: Tile, Pad.

use typelift_promote::ElementType;

use super::common::{check_rank, check_type, dims_from, shape_of_length};
use super::evaluate::{DATA, Evaluate};
use super::{Accepts, Attr, AttrKind, Context, Fault, Operation, Spread, Ties, evaluate};
use crate::findings::message;
use crate::model::shape::{Dim, Shape};

pub(super) const ROWS: &[Operation] = &[
    padding(1).until(11),
    padding(12),
    Operation::new("Tile", 0, tile)
        .spreads_on(&[Spread::Kept, Spread::Quantized])
        .shaped_by(&[1])
        .evaluate(Evaluate::Ends(DATA, evaluate::tile))
        .inputs(2, 2),
];

const fn padding(revision: u8) -> Operation {
    Operation::new("Pad", revision, pad)
        .spreads_on(&[Spread::Quantized])
        .shaped_by(&[1, 2])
        .requires(&["pad_mode"])
        .evaluate(Evaluate::Ends(0b1001, evaluate::pad))
        .inputs(3, 4)
        .ties(Ties::Inputs(&[0, 3]))
        .attributes(PAD_MODE)
}

const PAD_MODE: &[Attr] =
    &[Attr::new("pad_mode", AttrKind::Enum(&["constant", "edge", "reflect", "symmetric"])).default("constant")];

fn tile(cx: &mut Context) -> Result<(), Fault> {
    check_type(cx, 1, "repeats", Accepts::Bits)?;
    check_rank(cx, 1, "repeats", &[1])?;
    // In a Constant, a negative repeat counts as 0.
    let repeats = dims_from(cx, 1, |count| Ok(Dim::fixed(count)))?;
    let data = cx.shape(0);
    let shape = match (data.dims(), repeats.as_ref().and_then(Shape::dims)) {
        (Some(dims), Some(repeats)) => {
            let rank = dims.len().max(repeats.len());
            let aligned =
                |dims: &[Dim], axis: usize| (axis + dims.len()).checked_sub(rank).and_then(|at| dims.get(at).copied());
            (0..rank)
                .map(|axis| aligned(dims, axis).unwrap_or(Dim::ONE) * aligned(repeats, axis).unwrap_or(Dim::ONE))
                .collect()
        }
        (Some(dims), None) => {
            let repeats = shape_of_length(cx.shape(1)).rank();
            repeats.map_or_else(Shape::dynamic, |repeats| Shape::of_rank(repeats.max(dims.len())))
        }
        _ => Shape::dynamic(),
    };
    cx.finish(cx.element_type(0), shape)
}

fn pad(cx: &mut Context) -> Result<(), Fault> {
    let mode = cx.word("pad_mode")?;
    let mut element_type = cx.element_type(0);
    if mode == "constant" && cx.inputs.len() == 4 {
        element_type = cx.merge_types(&[0, 3])?;
        check_rank(cx, 3, "padding value", &[0])?;
    } else if cx.inputs.len() == 3 && element_type == ElementType::Dynamic {
        let message = "`Pad` of type dynamic needs a padding value";
        return Err(Fault::unsupported(0, message).help("add the padding value as input 3"));
    }
    if element_type == ElementType::String && mode != "constant" {
        let message = message!("strings can only be padded in mode constant, not {}"; mode);
        return Err(Fault::attribute("pad_mode", message));
    }
    for (input, role) in [(1, "pads_begin"), (2, "pads_end")] {
        check_type(cx, input, role, Accepts::Integer)?;
        check_rank(cx, input, role, &[1])?;
    }
    let (begin, end) = (cx.ends(1)?, cx.ends(2)?);
    let data = cx.shape(0);
    let shape = match (data.dims(), begin, end) {
        (None, ..) => Shape::dynamic(),
        (Some(dims), Some(begin), Some(end)) => {
            for (input, count) in [(1, begin.len()), (2, end.len())] {
                check_count(data, input, count as i64, count == dims.len())?;
            }
            let padded = dims.iter().zip(begin.into_iter().zip(end)).enumerate().map(|(axis, (&dim, (begin, end)))| {
                check_reach(mode, axis, dim, begin.0, end.0)?;
                Ok(padded(dim, begin, end))
            });
            padded.collect::<Result<_, _>>()?
        }
        (Some(dims), ..) => {
            for input in [1, 2] {
                if let Some(count) = cx.shape(input).dims().and_then(|dims| dims.first()?.value()) {
                    check_count(data, input, count, count <= dims.len() as i64)?;
                }
            }
            Shape::of_rank(dims.len())
        }
    };
    cx.finish(element_type, shape)
}

fn check_count(data: &Shape, input: usize, count: i64, fits: bool) -> Result<(), Fault> {
    if fits {
        return Ok(());
    }
    let message = message!("`Pad` has {} pads, but its data {} has another number of axes"; count, data);
    Err(Fault::shapes(&[0, input], message))
}

/// An error if a pad is larger than the elements that it copies.
fn check_reach(mode: &str, axis: usize, dim: Dim, begin: i64, end: i64) -> Result<(), Fault> {
    let Some(length) = dim.value() else { return Ok(()) };
    let longest = begin.max(end);
    let fits = match mode {
        "edge" => longest <= 0 || length >= 1,
        "reflect" => longest < length && (longest <= 0 || length >= 2),
        "symmetric" => longest <= length,
        _ => true,
    };
    if fits {
        return Ok(());
    }
    let message =
        message!("axis {} is {} long, too short for pads of {} and {} in mode {}"; axis, length, begin, end, mode);
    Err(Fault::shapes(&[0], message))
}

fn padded(dim: Dim, begin: (i64, i64), end: (i64, i64)) -> Dim {
    let (least, most) = (begin.0.saturating_add(end.0), begin.1.saturating_add(end.1));
    if (least, most) == (0, 0) {
        return dim;
    }
    // OpenVINO treats a negative sum as unlimited.
    let sum = |length: i64, pads: i64| length.checked_add(pads).filter(|&sum| sum >= 0);
    let open = [begin, end].iter().any(|&(least, most)| least == 0 && [-1, i64::MAX].contains(&most));
    let upper = if open { None } else { dim.upper().and_then(|length| sum(length, most)) };
    Dim::between(sum(dim.lower(), least).unwrap_or(0), upper.unwrap_or(i64::MAX))
}
