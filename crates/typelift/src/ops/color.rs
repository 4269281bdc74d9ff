//! Conversions between RGB and the YUV layouts of video.

use typelift_promote::ElementType;

use super::common::{check_rank, dim};
use super::{Accepts, Attr, AttrKind, Context, Fault, Operation, Ties};
use crate::findings::message;
use crate::model::shape::{Dim, Shape};

pub(super) const ROWS: &[Operation] = &[
    decoder("I420toBGR", |cx| from_yuv(cx, 3, 1)).inputs(1, 3),
    decoder("I420toRGB", |cx| from_yuv(cx, 3, 1)).inputs(1, 3),
    decoder("NV12toBGR", |cx| from_yuv(cx, 2, 2)).inputs(1, 2),
    decoder("NV12toRGB", |cx| from_yuv(cx, 2, 2)).inputs(1, 2),
    encoder("BGRtoNV12"),
    encoder("RGBtoNV12"),
];

const fn decoder(name: &'static str, infer: fn(&mut Context) -> Result<(), Fault>) -> Operation {
    Operation::new(name, 8, infer).ties(Ties::All)
}

const fn encoder(name: &'static str) -> Operation {
    Operation::new(name, 17, to_nv12).attributes(&[SINGLE_PLANE])
}

const SINGLE_PLANE: Attr = Attr::new("single_plane", AttrKind::Bool).default("true");

fn plane_type(cx: &Context, accepts: fn(ElementType) -> bool) -> Result<ElementType, Fault> {
    let planes: &[usize] = match cx.inputs.len() {
        1 => &[0],
        2 => &[0, 1],
        _ => &[0, 1, 2],
    };
    let ty = cx.merge_types(planes)?;
    if ty == ElementType::U8 || accepts(ty) {
        return Ok(ty);
    }
    let message = message!("`{}` takes u8 or floating-point numbers, but gets {}"; cx.ty(), ty);
    Err(Fault::unsupported(0, message).help("insert a Convert before it"))
}

/// Refuses an image whose last dimension is not `count`.
fn check_channels(cx: &Context, input: usize, count: i64) -> Result<(), Fault> {
    check_rank(cx, input, "image", &[4])?;
    if dim(cx.shape(input), 3).contains(count) {
        return Ok(());
    }
    let message =
        message!("input {} of `{}` must have {} in its last dim, but has {}"; input, cx.ty(), count, cx.shape(input));
    Err(Fault::shapes(&[input], message).rule("images are laid out as batch, height, width, channels"))
}

/// Refuses an image whose height or width is odd, because the chroma planes are half as large.
fn check_even(cx: &Context, height: Dim, width: Dim) -> Result<(), Fault> {
    for (name, length) in [("height", height), ("width", width)] {
        if length.checked_div(2).is_none_or(Dim::is_empty) {
            let message = message!("the {} of the image of `{}` is {}, not even"; name, cx.ty(), length);
            return Err(Fault::shapes(&[0], message));
        }
    }
    Ok(())
}

/// Infers the conversion from one plane, or from `planes` planes whose chroma planes have `chroma` channels.
fn from_yuv(cx: &mut Context, planes: usize, chroma: i64) -> Result<(), Fault> {
    if ![1, planes].contains(&cx.inputs.len()) {
        let message = message!("`{}` takes 1 or {} planes, but gets {}"; cx.ty(), planes, cx.inputs.len());
        return Err(Fault::shapes(&[0], message));
    }
    let element_type = plane_type(cx, |ty| Accepts::Real.takes(ty))?;
    check_channels(cx, 0, 1)?;
    let [batch, mut height, mut width] = [0, 1, 2].map(|axis| dim(cx.shape(0), axis));
    let mut image = Shape::from_iter([batch, height, width]);
    if planes > 1 && cx.inputs.len() == 1 {
        height = (height * Dim::fixed(2)).checked_div(3).unwrap_or(Dim::ANY);
        if height.is_empty() {
            let message = message!("the height of the plane {} of `{}` is not a multiple of 3"; cx.shape(0), cx.ty());
            return Err(Fault::shapes(&[0], message)
                .rule("two thirds of the plane contain brightness, one third contains colour"));
        }
        image = Shape::from_iter([batch, height, width]);
    }
    for input in 1..cx.inputs.len() {
        check_channels(cx, input, chroma)?;
        let plane = cx.shape(input);
        let doubled = [dim(plane, 0), dim(plane, 1) * Dim::fixed(2), dim(plane, 2) * Dim::fixed(2)];
        image = image.merge(&Shape::from_iter(doubled)).map_err(|mismatch| {
            let message = message!(
                "the shapes of the planes {} and {} of `{}` contradict each other: {}";
                cx.shape(0), plane, cx.ty(), mismatch
            );
            Fault::shapes(&[0, input], message).rule("the colour planes must have half the height and half the width")
        })?;
    }
    [height, width] = [1, 2].map(|axis| dim(&image, axis));
    check_even(cx, height, width)?;
    cx.finish(element_type, [dim(&image, 0), height, width, Dim::fixed(3)].into_iter().collect())
}

fn to_nv12(cx: &mut Context) -> Result<(), Fault> {
    // Floats of one byte or less are refused.
    let element_type = plane_type(cx, |ty| Accepts::Real.takes(ty) && (ty == ElementType::Dynamic || ty.bits() > 8))?;
    check_channels(cx, 0, 3)?;
    let [batch, height, width] = [0, 1, 2].map(|axis| dim(cx.shape(0), axis));
    check_even(cx, height, width)?;
    let half = |length: Dim| length.checked_div(2).unwrap_or(Dim::ANY);
    if cx.bool("single_plane")? {
        let height = half(height * Dim::fixed(3));
        cx.output(element_type, [batch, height, width, Dim::ONE].into_iter().collect());
    } else {
        cx.output(element_type, [batch, height, width, Dim::ONE].into_iter().collect());
        cx.output(element_type, [batch, half(height), half(width), Dim::fixed(2)].into_iter().collect());
    }
    Ok(())
}
