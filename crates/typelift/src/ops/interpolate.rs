//! Interpolate: spatial resizing to given sizes or by given scales.

use std::borrow::Cow;

use typelift_promote::ElementType;

use super::common::{check_rank, check_type, check_type_in, map_ends};
use super::{Accepts, Attr, AttrKind, Context, Fault, Operation, Spread};
use crate::findings::message;
use crate::model::shape::{Dim, Shape};

pub(super) const ROWS: &[Operation] = &[
    Operation::new("Interpolate", 0, to_size)
        .spreads_on(&[Spread::Quantized])
        .shaped_by(&[1])
        .until(3)
        .inputs(2, 2)
        .attributes(&[
            Attr::new("axes", AttrKind::Ints).default(""),
            Attr::new("mode", AttrKind::Text).default("nearest"),
            Attr::new("align_corners", AttrKind::Bool).default("true"),
            ANTIALIAS,
            PADS_BEGIN,
            PADS_END,
        ]),
    Operation::new("Interpolate", 4, to_size_or_scale)
        .spreads_on(&[Spread::Quantized])
        .shaped_by(&[1, 2])
        .until(10)
        .inputs(3, 4)
        .floats(&[2])
        .attributes(ATTRIBUTES),
    Operation::new("Interpolate", 11, to_either)
        .spreads_on(&[Spread::Quantized])
        .shaped_by(&[1])
        .inputs(2, 3)
        .attributes(ATTRIBUTES),
];

const ATTRIBUTES: &[Attr] = &[
    Attr::new(
        "mode",
        AttrKind::Enum(&["nearest", "linear", "linear_onnx", "cubic", "bilinear_pillow", "bicubic_pillow"]),
    )
    .default("nearest"),
    Attr::new("shape_calculation_mode", AttrKind::Enum(&["sizes", "scales"])).default("sizes"),
    Attr::new(
        "coordinate_transformation_mode",
        AttrKind::Enum(&["half_pixel", "pytorch_half_pixel", "asymmetric", "tf_half_pixel_for_nn", "align_corners"]),
    )
    .default("half_pixel"),
    Attr::new("nearest_mode", AttrKind::Enum(&["round_prefer_floor", "round_prefer_ceil", "floor", "ceil", "simple"]))
        .default("round_prefer_floor"),
    ANTIALIAS,
    PADS_BEGIN,
    PADS_END,
    Attr::new("cube_coeff", AttrKind::Float).default("-0.75"),
];
const ANTIALIAS: Attr = Attr::new("antialias", AttrKind::Bool).default("false");
const PADS_BEGIN: Attr = Attr::new("pads_begin", AttrKind::UnsignedInts).default("");
const PADS_END: Attr = Attr::new("pads_end", AttrKind::UnsignedInts).default("");

const DATA_TYPES: &[ElementType] = &[
    ElementType::F32,
    ElementType::F16,
    ElementType::Bf16,
    ElementType::F64,
    ElementType::I8,
    ElementType::U8,
    ElementType::I32,
    ElementType::I64,
    ElementType::Dynamic,
];
const INDEX_TYPES: &[ElementType] = &[ElementType::I32, ElementType::I64, ElementType::U32, ElementType::U64];
const SCALE_TYPES: &[ElementType] = &[ElementType::F32, ElementType::F16, ElementType::Bf16];

fn to_size(cx: &mut Context) -> Result<(), Fault> {
    check_type(cx, 1, "sizes", Accepts::Integer)?;
    let mut axes = cx.ints("axes")?;
    axes.sort_unstable();
    axes.dedup();
    let mut shape = cx.shape(0).clone();
    if let Some(rank) = shape.rank() {
        if let Some(axis) = axes.iter().find(|&&axis| axis < 0 || axis >= rank as i64) {
            let message = message!("`axes` has {}, which is not an axis of the input of rank {}"; axis, rank);
            return Err(Fault::attribute("axes", message));
        }
        resize(cx, &mut shape, &axes, 1)?;
    }
    cx.finish(cx.element_type(0), shape)
}

fn to_size_or_scale(cx: &mut Context) -> Result<(), Fault> {
    let mode = cx.word("mode")?;
    if mode.ends_with("pillow") {
        let fault = Fault::attribute("mode", message!("`Interpolate` of {} has no mode {}"; cx.layer.version(), mode));
        return Err(fault.help("the revision of opset11 has it"));
    }
    check_type_in(cx, 1, "sizes", INDEX_TYPES)?;
    check_type_in(cx, 2, "scales", SCALE_TYPES)?;
    let by_scale = cx.word("shape_calculation_mode")? == "scales";
    check_rank(cx, if by_scale { 2 } else { 1 }, "resizing input", &[1])?;
    interpolate(cx, by_scale, if by_scale { 2 } else { 1 }, 3)
}

fn to_either(cx: &mut Context) -> Result<(), Fault> {
    let by_scale = cx.word("shape_calculation_mode")? == "scales";
    let (name, types) = if by_scale { ("scales", SCALE_TYPES) } else { ("sizes", INDEX_TYPES) };
    check_type_in(cx, 1, name, types)?;
    check_rank(cx, 1, name, &[1])?;
    interpolate(cx, by_scale, 1, 2)
}

/// Infers Interpolate: pads all axes, and resizes some or all. `by` is the input with sizes or scales, and `axes` the
/// input that selects the axes.
fn interpolate(cx: &mut Context, by_scale: bool, by: usize, axes: usize) -> Result<(), Fault> {
    check_type_in(cx, 0, "data", DATA_TYPES)?;
    if cx.inputs.len() > axes {
        check_type_in(cx, axes, "axes", INDEX_TYPES)?;
        check_rank(cx, axes, "axes", &[1])?;
    }
    let element_type = cx.element_type(0);
    let Some(dims) = cx.shape(0).dims() else { return cx.finish(element_type, Shape::dynamic()) };
    let axes = if cx.inputs.len() > axes {
        let Some(values) = cx.integers(axes) else { return cx.finish(element_type, Shape::of_rank(dims.len())) };
        if let Some(axis) = values.iter().find(|&&axis| axis < 0 || axis >= dims.len() as i64) {
            let message = message!("the axes have {}, which is not an axis of the data of rank {}"; axis, dims.len());
            return Err(Fault::value(&[axes], message));
        }
        values
    } else {
        (0..dims.len() as i64).collect()
    };
    let (begin, end) = (cx.ints("pads_begin")?, cx.ints("pads_end")?);
    let pads = (0..).map(|axis| {
        [&begin, &end].iter().filter_map(|pads| pads.get(axis)).fold(0, |sum: i64, pad| sum.saturating_add(*pad))
    });
    let mut shape: Shape = dims.iter().zip(pads).map(|(&dim, pad)| dim + Dim::fixed(pad)).collect();
    if by_scale {
        scale(cx, &mut shape, &axes, by)?
    } else {
        resize(cx, &mut shape, &axes, by)?
    }
    cx.finish(element_type, shape)
}

fn resize(cx: &mut Context, shape: &mut Shape, axes: &[i64], input: usize) -> Result<(), Fault> {
    let sizes = cx.shape_value(input)?;
    let sizes = match sizes.as_ref().and_then(Shape::dims) {
        Some(sizes) => Cow::Borrowed(sizes),
        None => Cow::Owned(vec![Dim::ANY; axes.len()]),
    };
    check_count(input, "sizes", sizes.len(), axes.len())?;
    for_axes(shape, axes, &sizes, |dim, &size| *dim = size);
    Ok(())
}

/// Multiplies the lengths of axes by the values of an input, in `float` as OpenVINO does.
fn scale(cx: &mut Context, shape: &mut Shape, axes: &[i64], input: usize) -> Result<(), Fault> {
    /// The constant keeps 3 times 0.333333 from becoming 0.
    const EPSILON: f32 = 1e-6;
    let Some(scales) = cx.reals(input)? else {
        for_axes(shape, axes, axes, |dim, _| *dim = Dim::ANY);
        return Ok(());
    };
    check_count(input, "scales", scales.len(), axes.len())?;
    for_axes(shape, axes, &scales, |dim, &scale| {
        let scale = scale as f32;
        if scale != 1.0 {
            *dim = map_ends(*dim, |length| to_length(length as f32 * (scale + EPSILON)));
        }
    });
    Ok(())
}

/// Truncates a number to an integer. NaN becomes the smallest integer, as on x86-64.
fn to_length(number: f32) -> i64 {
    const LIMIT: f32 = 9_223_372_036_854_775_808.0;
    if number.abs() < LIMIT { number as i64 } else { i64::MIN }
}

fn check_count(input: usize, name: &'static str, count: usize, axes: usize) -> Result<(), Fault> {
    if count >= axes {
        return Ok(());
    }
    Err(Fault::value(&[input], message!("there are {} {}, but {} axes to resize"; count, name, axes)))
}

fn for_axes<T>(shape: &mut Shape, axes: &[i64], values: &[T], change: impl Fn(&mut Dim, &T)) {
    let Some(dims) = shape.dims_mut() else { return };
    for (&axis, value) in axes.iter().zip(values) {
        if let Some(dim) = usize::try_from(axis).ok().and_then(|axis| dims.get_mut(axis)) {
            change(dim, value);
        }
    }
}
