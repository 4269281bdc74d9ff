//! Pooling, with a window or with a given output size.

use super::attributes::before;
use super::common::{attribute_axis, check_rank, dim, dim_between, index_type};
use super::convolution::{AUTO_PAD, DILATIONS, PADS_BEGIN, PADS_END, STRIDES, ceil_div, floor_div, per_axis};
use super::{Attr, AttrKind, Context, Fault, List, Operation, Spread};
use crate::findings::{Text, message};
use crate::model::shape::{Dim, Shape};

pub(super) const ROWS: &[Operation] = &[
    window("AvgPool", 1, pool).wraps().until(13).attributes(AVERAGE),
    window("AvgPool", 14, pool).wraps().until(15).attributes(AVERAGE),
    window("AvgPool", 16, pool).wraps().attributes(&[
        STRIDES,
        DILATIONS,
        PADS_BEGIN,
        PADS_END,
        KERNEL,
        AUTO_PAD,
        ROUNDING_TYPE,
        EXCLUDE_PAD,
    ]),
    window("MaxPool", 1, pool).spreads_on(&[Spread::Quantized]).until(7).attributes(before("exclude-pad", AVERAGE)),
    window("MaxPool", 8, max_pool).spreads_on(&[Spread::Quantized]).until(13).attributes(MAX),
    window("MaxPool", 14, max_pool).attributes(MAX),
    Operation::new("AdaptiveAvgPool", 8, |cx| adaptive(cx).and_then(|shape| cx.finish(cx.element_type(0), shape)))
        .inputs(2, 2),
    Operation::new("AdaptiveMaxPool", 8, adaptive_max_pool).inputs(2, 2).attributes(&[INDEX_ELEMENT_TYPE]),
];

const fn window(name: &'static str, revision: u8, infer: fn(&mut Context) -> Result<(), Fault>) -> Operation {
    Operation::new(name, revision, infer).requires(&["kernel", "strides", "pads_begin", "pads_end"])
}

const AVERAGE: &[Attr] = &[STRIDES, PADS_BEGIN, PADS_END, KERNEL, AUTO_PAD, ROUNDING_TYPE, EXCLUDE_PAD];
const MAX: &[Attr] =
    &[STRIDES, DILATIONS, PADS_BEGIN, PADS_END, KERNEL, AUTO_PAD, ROUNDING_TYPE, INDEX_ELEMENT_TYPE, AXIS];

const KERNEL: Attr = Attr::new("kernel", AttrKind::Ints).default("");
const ROUNDING_TYPE: Attr =
    Attr::new("rounding_type", AttrKind::Enum(&["floor", "ceil", "ceil_torch"])).default("floor");
const EXCLUDE_PAD: Attr = Attr::new("exclude-pad", AttrKind::Bool).default("true");
const INDEX_ELEMENT_TYPE: Attr = Attr::new("index_element_type", AttrKind::Type).default("i64");
const AXIS: Attr = Attr::new("axis", AttrKind::Int).default("0");

fn pool(cx: &mut Context) -> Result<(), Fault> {
    let shape = pooled(cx)?;
    cx.finish(cx.element_type(0), shape)
}

fn max_pool(cx: &mut Context) -> Result<(), Fault> {
    if let Some(rank) = cx.shape(0).rank() {
        attribute_axis(cx, "axis", cx.int("axis")?, rank)?;
    }
    let indices = cx.type_attribute("index_element_type")?;
    let shape = pooled(cx)?;
    cx.output(cx.element_type(0), shape.clone());
    cx.finish(indices, shape)
}

/// Infers the output shape of a pool with a window.
fn pooled(cx: &Context) -> Result<Shape, Fault> {
    let windows = Windows::read(cx)?;
    let spatial = windows.kernel.len();
    check_rank(cx, 0, "data", &[3, 4, 5])?;
    let data = cx.shape(0);
    let Some(dims) = data.dims() else { return Ok(Shape::of_rank(spatial.saturating_add(2))) };
    if dims.len() != spatial + 2 {
        let message =
            message!("`kernel` has {} numbers, but the data {} has {} spatial axes"; spatial, data, dims.len() - 2);
        return Err(Fault::attribute("kernel", message).counts_axes());
    }
    for (axis, name) in ["batch", "channels"].iter().enumerate() {
        if dim(data, axis).value() == Some(0) {
            return Err(Fault::shapes(&[0], message!("the {} of the data {} of `{}` are 0"; name, data, cx.ty())));
        }
    }
    let mut shape: Vec<Dim> = dims[..2].to_vec();
    for (axis, &length) in dims[2..].iter().enumerate() {
        shape.push(windows.count(cx, axis, length)?);
    }
    Ok(shape.into_iter().collect())
}

/// The windows of a pool, by spatial axis.
struct Windows {
    kernel: List<i64>,
    strides: List<i64>,
    dilations: List<i64>,
    begin: List<i64>,
    end: List<i64>,
    rounding: &'static str,
    auto_pad: &'static str,
    excludes_pad: bool,
}

impl Windows {
    fn read(cx: &Context) -> Result<Self, Fault> {
        let kernel = cx.ints("kernel")?;
        let spatial = kernel.len();
        let strides = cx.ints("strides")?;
        if strides.len() != spatial {
            let message = message!("`strides` has {} numbers, but `kernel` has {}"; strides.len(), spatial);
            return Err(Fault::attribute("strides", message));
        }
        let has = |name| cx.operation.attribute(name).is_some();
        let dilations =
            if has("dilations") { per_axis(cx, "dilations", spatial, 1)? } else { List::from_elem(1, spatial) };
        for (name, numbers) in [("strides", &strides), ("dilations", &dilations)] {
            if numbers.contains(&0) {
                return Err(Fault::attribute(name, message!("`{}` has a 0"; name)));
            }
        }
        let begin = per_axis(cx, "pads_begin", spatial, 0)?;
        let end = per_axis(cx, "pads_end", spatial, 0)?;
        let (rounding, auto_pad) = (cx.word("rounding_type")?, cx.word("auto_pad")?);
        if rounding == "ceil_torch" && cx.operation.revision < 14 {
            let message = message!("`{}` of {} does not support rounding_type=ceil_torch"; cx.ty(), cx.layer.version());
            return Err(Fault::attribute("rounding_type", message).help("the revision of opset14 supports it"));
        }
        let excludes_pad = has("exclude-pad") && cx.bool("exclude-pad")?;
        Ok(Self { kernel, strides, dilations, begin, end, rounding, auto_pad, excludes_pad })
    }

    fn count(&self, cx: &Context, axis: usize, length: Dim) -> Result<Dim, Fault> {
        let (kernel, stride, dilation) = (self.kernel[axis], self.strides[axis], self.dilations[axis]);
        // OpenVINO treats an empty kernel as infinitely large.
        let span = if kernel < 1 { -1 } else { (kernel - 1).saturating_mul(dilation).saturating_add(1) };
        let (begin, end) = match (self.auto_pad, length.value()) {
            ("explicit", _) => (self.begin[axis], self.end[axis]),
            ("valid", _) => (0, 0),
            (_, None) => return Ok(Dim::ANY),
            (same, Some(length)) => same_pads(same, length, span, stride),
        };
        let padded = length + Dim::from(begin.saturating_add(end));
        if length.is_fixed() {
            if span < 1 || padded.value().is_none_or(|padded| padded < span) {
                let message = message!(
                    "the kernel of `{}` spans {} on spatial axis {}, more than the {} of the padded data";
                    cx.ty(), span, axis, padded
                );
                return Err(Fault::shapes(&[0], message));
            }
            if self.excludes_pad && (span <= begin || span <= end) {
                let message = message!(
                    "the kernel spans {} on spatial axis {}, which is not more than its padding {} and {}";
                    span, axis, begin, end
                );
                return Err(
                    Fault::attribute("exclude-pad", message).rule("a window that only covers padding has no average")
                );
            }
        }
        let room = padded - Dim::from(span);
        Ok(match self.rounding {
            "floor" => floor_div(room, stride) + Dim::ONE,
            "ceil" => ceil_div(room, stride) + Dim::ONE,
            _ => torch_windows(length, ceil_div(room, stride), stride, begin),
        })
    }
}

fn same_pads(auto_pad: &str, length: i64, span: i64, stride: i64) -> (i64, i64) {
    let steps = length.saturating_add(stride).saturating_sub(1).checked_div(stride).unwrap_or(0);
    let needed = (steps - 1).saturating_mul(stride).saturating_add(span).saturating_sub(length).max(0);
    let (less, more) = (needed / 2, needed - needed / 2);
    if auto_pad == "same_upper" { (less, more) } else { (more, less) }
}

/// A last window that would start in the padding is not counted.
fn torch_windows(length: Dim, steps: Dim, stride: i64, pad: i64) -> Dim {
    // OpenVINO computes in unsigned 64-bit integers.
    let count = |steps: i64, length: i64| {
        let (start, end) = (steps.wrapping_mul(stride) as u64, length.wrapping_add(pad).wrapping_sub(1) as u64);
        if start > end || steps == -1 { steps } else { steps.saturating_add(1) }
    };
    let lower = count(steps.lower(), length.lower());
    match (length.is_fixed(), length.upper()) {
        (true, _) => Dim::from(lower),
        (_, None) => Dim::at_least(lower),
        (_, Some(upper)) => dim_between(lower, count(steps.upper().unwrap_or(-1), upper)),
    }
}

fn adaptive_max_pool(cx: &mut Context) -> Result<(), Fault> {
    let indices = index_type(cx, "index_element_type")?;
    let shape = adaptive(cx)?;
    cx.output(cx.element_type(0), shape.clone());
    cx.finish(indices, shape)
}

/// Infers the output shape of a pool whose spatial dimensions are its second input.
fn adaptive(cx: &mut Context) -> Result<Shape, Fault> {
    check_rank(cx, 0, "data", &[3, 4, 5])?;
    let Some(dims) = cx.shape(0).dims() else { return Ok(Shape::dynamic()) };
    let spatial = dims.len() - 2;
    let unfit = |length: String| {
        let message =
            message!("the output shape has {} numbers, but the data has {} spatial axes"; Text(length), spatial);
        Fault::shapes(&[0, 1], message).counts_axes()
    };
    if let Some(target) = cx.shape(1).dims() {
        // OpenVINO checks the first axis even if it is not the batch.
        match target.first() {
            Some(length) if length.contains(spatial as i64) => {}
            length => return Err(unfit(length.map_or("no".to_owned(), ToString::to_string))),
        }
    }
    let target = match cx.shape_value(1)? {
        Some(target) if target.rank() != Some(spatial) => return Err(unfit(target.rank().unwrap_or(0).to_string())),
        Some(target) => target,
        None => Shape::of_rank(spatial),
    };
    Ok(dims[..2].iter().chain(target.dims().unwrap_or_default()).copied().collect())
}
