//! Operations on images: sampling, assembling from columns, and the YOLO operations.

use typelift_promote::ElementType;

use super::common::{INDEX, attribute_axis, check_rank, check_type, check_type_in, dim, divide, merge_dims};
use super::convolution::{DILATIONS, PADS_BEGIN, PADS_END, STRIDES};
use super::{Accepts, Attr, AttrKind, Context, Fault, Operation, Ties};
use crate::findings::message;
use crate::model::shape::{Dim, Shape};

pub(super) const ROWS: &[Operation] = &[
    Operation::new("Col2Im", 15, col2im)
        .inputs(3, 3)
        .ties(Ties::Inputs(&[1, 2]))
        .attributes(&[STRIDES, DILATIONS, PADS_BEGIN, PADS_END]),
    Operation::new("GridSample", 9, grid_sample).inputs(2, 2).floats(&[1]).attributes(&[
        Attr::new("align_corners", AttrKind::Bool).default("false"),
        Attr::new("mode", AttrKind::Enum(&["bilinear", "bicubic", "nearest"])).default("bilinear"),
        Attr::new("padding_mode", AttrKind::Enum(&["zeros", "border", "reflection"])).default("zeros"),
    ]),
    Operation::new("ReorgYolo", 0, reorg_yolo).since(2).attributes(&[Attr::new("stride", AttrKind::Ints)]),
    Operation::new("RegionYolo", 0, region_yolo).accepts(Accepts::Real).attributes(&[
        Attr::new("anchors", AttrKind::Floats).default(""),
        Attr::new("axis", AttrKind::Int).default("0"),
        Attr::new("coords", AttrKind::Unsigned).default("0"),
        Attr::new("classes", AttrKind::Unsigned).default("0"),
        Attr::new("end_axis", AttrKind::Int).default("0"),
        Attr::new("num", AttrKind::Unsigned).default("0"),
        Attr::new("do_softmax", AttrKind::Bool).default("false"),
        Attr::new("mask", AttrKind::Ints).default(""),
    ]),
];

fn col2im(cx: &mut Context) -> Result<(), Fault> {
    const NAMES: [&str; 2] = ["output size", "kernel size"];
    for (input, name) in (1..).zip(NAMES) {
        check_type_in(cx, input, name, INDEX)?;
    }
    cx.merge_types(&[1, 2])?;
    check_rank(cx, 0, "data", &[2, 3])?;
    for (input, name) in (1..).zip(NAMES) {
        let shape = cx.shape(input);
        if shape.rank().is_some() && *shape != Shape::fixed([2]) {
            let message = message!("the {} of `Col2Im` must have shape [2], but has {}"; name, shape);
            return Err(Fault::shapes(&[input], message));
        }
    }
    let element_type = cx.element_type(0);
    let Some(dims) = cx.shape(0).dims() else { return cx.finish(element_type, Shape::dynamic()) };
    let [batch @ .., columns, blocks] = dims else { return Ok(()) };
    let kernel = cx.integers(2).filter(|kernel| kernel.len() == 2);
    let mut channels = Dim::ANY;
    if let (Some(kernel), Some(_)) = (&kernel, columns.value()) {
        let elements = kernel.iter().fold(1, |product: i64, &length| product.saturating_mul(length));
        channels = divide(*columns, elements).filter(|_| elements > 0).ok_or_else(|| {
            let message = message!("{} columns are not a multiple of the {} elements of the kernel"; columns, elements);
            Fault::shapes(&[0, 2], message)
        })?;
    }
    let size = cx.shape_value(1)?.unwrap_or_else(|| Shape::of_rank(2));
    if let (Some(kernel), Some(blocks), Some(size)) = (&kernel, blocks.value(), size.to_static()) {
        let [strides, dilations] = [two(cx, "strides")?, two(cx, "dilations")?];
        let [begin, end] = [two(cx, "pads_begin")?, two(cx, "pads_end")?];
        let moves = size.iter().zip(kernel).enumerate().map(|(axis, (&length, &kernel))| {
            let span = dilations[axis].saturating_mul(kernel.saturating_sub(1)).saturating_add(1);
            let padded = length.saturating_add(begin[axis]).saturating_add(end[axis]);
            padded.saturating_sub(span).checked_div(strides[axis]).unwrap_or(0).saturating_add(1)
        });
        let needed = moves.fold(1, i64::saturating_mul);
        if blocks != needed {
            let message = message!("the data has {} blocks, but the sizes and attributes require {}"; blocks, needed);
            return Err(Fault::shapes(&[0, 1, 2], message));
        }
    }
    let shape = batch.iter().copied().chain([channels]).chain((0..2).map(|axis| dim(&size, axis))).collect();
    cx.finish(element_type, shape)
}

fn two(cx: &Context, name: &'static str) -> Result<[i64; 2], Fault> {
    match *cx.ints(name)? {
        [height, width, ..] => Ok([height, width]),
        _ => Err(Fault::attribute(name, message!("`{}` of `{}` needs two numbers"; name, cx.ty()))),
    }
}

fn grid_sample(cx: &mut Context) -> Result<(), Fault> {
    check_type(cx, 1, "positions of the grid", Accepts::Real)?;
    check_rank(cx, 0, "data", &[4])?;
    check_rank(cx, 1, "grid", &[4])?;
    let (data, grid) = (cx.shape(0), cx.shape(1));
    if !dim(grid, 3).contains(2) {
        let message = message!("the last dimension of the grid {} must be 2: the coordinates of a point"; grid);
        return Err(Fault::shapes(&[1], message));
    }
    let batch = merge_dims(&[0, 1], "batch of data and grid", dim(data, 0), dim(grid, 0))?;
    cx.finish(cx.element_type(0), [batch, dim(data, 1), dim(grid, 1), dim(grid, 2)].into_iter().collect())
}

fn reorg_yolo(cx: &mut Context) -> Result<(), Fault> {
    let Some(&stride) = cx.ints("stride")?.first() else {
        return Err(Fault::attribute("stride", "`stride` is empty"));
    };
    check_rank(cx, 0, "data", &[4])?;
    let data = cx.shape(0);
    let Some(&[batch, channels, height, width]) = data.dims() else {
        return cx.finish(cx.element_type(0), Shape::dynamic());
    };
    let cells = stride.saturating_mul(stride);
    if channels.value().is_some_and(|channels| channels < cells) {
        let message = message!("`ReorgYolo` needs at least {} channels, but gets {}"; cells, channels);
        return Err(Fault::shapes(&[0], message).rule("channels >= stride x stride"));
    }
    let (Some(rows), Some(columns)) = (divide(height, stride), divide(width, stride)) else {
        let message =
            message!("height {} and width {} of the data must be multiples of the stride {}"; height, width, stride);
        return Err(Fault::shapes(&[0], message));
    };
    let shape = [batch, channels * Dim::from(cells), rows, columns].into_iter().collect();
    cx.finish(cx.element_type(0), shape)
}

fn region_yolo(cx: &mut Context) -> Result<(), Fault> {
    let element_type = cx.element_type(0);
    if element_type == ElementType::Dynamic {
        return Err(Fault::unsupported(0, "`RegionYolo` takes floating-point numbers, but gets a dynamic type"));
    }
    cx.check_accepted(0, element_type)?;
    check_rank(cx, 0, "data", &[4])?;
    let Some(dims) = cx.shape(0).dims() else { return cx.finish(element_type, Shape::dynamic()) };
    let shape = if cx.bool("do_softmax")? {
        let (first, last) = (
            attribute_axis(cx, "axis", cx.int("axis")?, dims.len())?,
            attribute_axis(cx, "end_axis", cx.int("end_axis")?, dims.len())?,
        );
        let rest = (last + 1).max(first + 1);
        let flat = dims[first..rest].iter().fold(Dim::ONE, |product, &dim| product * dim);
        dims[..first].iter().copied().chain([flat]).chain(dims[rest..].iter().copied()).collect()
    } else {
        let per_anchor = cx.unsigned("classes")?.wrapping_add(cx.unsigned("coords")?).wrapping_add(1);
        let channels = Dim::from(per_anchor.wrapping_mul(cx.ints("mask")?.len() as u64) as i64);
        [dims[0], channels, dims[2], dims[3]].into_iter().collect()
    };
    cx.finish(element_type, shape)
}
