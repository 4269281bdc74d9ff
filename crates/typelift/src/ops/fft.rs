//! Fourier transforms of axes, and of short frames of a signal.

use typelift_promote::ElementType;

use super::common::{INDEX_OR_DYNAMIC, SINGLE, check_rank, check_type, check_type_in, checked_axis, dim_between};
use super::{Accepts, Attr, AttrKind, Context, Fault, Operation, Ties};
use crate::findings::message;
use crate::model::shape::{Dim, Shape};

pub(super) const ROWS: &[Operation] = &[
    Operation::new("DFT", 7, complex).inputs(2, 3).accepts(Accepts::Real),
    Operation::new("IDFT", 7, complex).inputs(2, 3).accepts(Accepts::Real),
    Operation::new("IRDFT", 9, to_real).inputs(2, 3).accepts(Accepts::Real),
    Operation::new("ISTFT", 16, from_frames)
        .inputs(4, 5)
        .ties(Ties::Inputs(&[0, 1]))
        .accepts(Accepts::Real)
        .attributes(&[
            Attr::new("center", AttrKind::Bool).default("false"),
            Attr::new("normalized", AttrKind::Bool).default("false"),
        ]),
    Operation::new("RDFT", 9, from_real).inputs(2, 3).accepts(Accepts::Real),
    Operation::new("STFT", 15, to_frames)
        .inputs(4, 4)
        .ties(Ties::Inputs(&[0, 1]))
        .accepts(Accepts::Real)
        .attributes(&[Attr::new("transpose_frames", AttrKind::Bool).default("false")]),
];

/// Infers a complex transform. Complex numbers are pairs along the last axis, which cannot be transformed.
fn complex(cx: &mut Context) -> Result<(), Fault> {
    let axes = axes(cx, 1)?;
    let mut shape = cx.shape(0).clone();
    if let (Some(dims), 3) = (shape.dims_mut(), cx.inputs.len()) {
        match axes {
            Some(axes) => {
                let sizes = cx.ends(2)?;
                for (at, &axis) in axes.iter().enumerate() {
                    let size = match &sizes {
                        None => Some(Dim::ANY),
                        Some(sizes) => sizes
                            .get(at)
                            .filter(|&&size| size != (-1, -1))
                            .map(|&(lower, upper)| dim_between(lower, upper)),
                    };
                    if let (Some(dim), Some(size)) = (dims.get_mut(axis), size) {
                        *dim = size;
                    }
                }
            }
            None => forget_all_but_last(dims),
        }
    }
    cx.finish(cx.element_type(0), shape)
}

/// Infers the transform from real numbers to half a spectrum: the last transformed axis shrinks, and an axis for the
/// pairs is added.
fn from_real(cx: &mut Context) -> Result<(), Fault> {
    let axes = axes(cx, 0)?;
    let shape = match cx.shape(0).dims() {
        None => Shape::dynamic(),
        Some(dims) => {
            let mut dims: Vec<_> = dims.iter().copied().chain([Dim::fixed(2)]).collect();
            match axes {
                None => forget_all_but_last(&mut dims),
                Some(axes) => {
                    let known = resize(cx, &mut dims, &axes)?;
                    if let Some(last) = axes.last().and_then(|&axis| dims.get_mut(axis)) {
                        let half = |length: i64| if length > 0 { length / 2 + 1 } else { length };
                        *last = if known {
                            Dim::between(half(last.lower()), last.upper().map_or(i64::MAX, half))
                        } else {
                            Dim::ANY
                        };
                    }
                }
            }
            dims.into_iter().collect()
        }
    };
    cx.finish(cx.element_type(0), shape)
}

/// Infers the inverse transform to real numbers: the axis of pairs is removed, and the last transformed axis doubles
/// unless its size is given.
fn to_real(cx: &mut Context) -> Result<(), Fault> {
    let axes = axes(cx, 1)?;
    let shape = match cx.shape(0).dims() {
        None => Shape::dynamic(),
        Some([dims @ .., _]) => {
            let mut dims = dims.to_vec();
            match axes {
                None => dims.fill(Dim::ANY),
                Some(axes) => {
                    let whole = axes.last().and_then(|&axis| dims.get(axis)).copied().unwrap_or(Dim::ANY);
                    let whole = Dim::fixed(2) * (whole - Dim::ONE);
                    let known = resize(cx, &mut dims, &axes)?;
                    let given = cx.inputs.len() == 3 && cx.numbers(2)?.is_some_and(|sizes| sizes.last() != Some(&-1));
                    if let Some(last) = axes.last().and_then(|&axis| dims.get_mut(axis)) {
                        match (known, given) {
                            (true, true) => {}
                            (true, false) => *last = whole,
                            (false, _) => *last = Dim::ANY,
                        }
                    }
                }
            }
            dims.into_iter().collect()
        }
        Some([]) => Shape::scalar(),
    };
    cx.finish(cx.element_type(0), shape)
}

/// Checks the inputs of a transform of whole axes, and returns the axes to transform, if they are known. `pairs` axes
/// of the data cannot be transformed.
fn axes(cx: &mut Context, pairs: usize) -> Result<Option<Vec<usize>>, Fault> {
    check_type_in(cx, 0, "data", SINGLE)?;
    for input in 1..cx.inputs.len() {
        check_type_in(cx, input, if input == 1 { "axes" } else { "sizes" }, INDEX_OR_DYNAMIC)?;
        check_rank(cx, input, if input == 1 { "axes" } else { "sizes" }, &[1])?;
    }
    let (data, list) = (cx.shape(0), cx.shape(1));
    let count = list.dims().and_then(<[Dim]>::first).copied();
    if let Some(dims) = data.dims() {
        if dims.len() < 1 + pairs {
            return Err(Fault::shapes(&[0], message!("the data of `{}` has the shape {}"; cx.ty(), data))
                .rule(message!("it needs at least {} axes"; 1 + pairs)));
        }
        if pairs == 1 && dims.last().is_some_and(|last| !last.contains(2)) {
            return Err(Fault::shapes(&[0], message!("the data of `{}` has the shape {}"; cx.ty(), data))
                .rule("complex numbers are pairs: the last dimension must be 2"));
        }
        if count.and_then(|count| count.value()).is_some_and(|count| count > (dims.len() - pairs) as i64) {
            let message =
                message!("{} axes cannot be transformed in data of shape {}"; count.unwrap_or(Dim::ANY), data);
            return Err(Fault::shapes(&[0, 1], message));
        }
    }
    if let (Some(sizes), Some(count)) = (cx.try_shape(2).and_then(|sizes| sizes.dims()?.first()), count)
        && sizes.is_fixed()
        && count.is_fixed()
        && *sizes != count
    {
        return Err(Fault::shapes(&[1, 2], message!("there are {} axes and {} sizes"; count, sizes))
            .rule("each axis to transform needs its size"));
    }
    let (Some(axes), Some(rank)) = (cx.numbers(1)?, cx.shape(0).rank()) else { return Ok(None) };
    if axes.is_empty() && (pairs == 0 || cx.operation.name == "IRDFT") {
        return Err(Fault::value(&[1], message!("`{}` needs at least one axis to transform"; cx.ty())));
    }
    let axes = axes.into_iter().map(|axis| checked_axis(cx, 1, axis, rank - pairs)).collect::<Result<Vec<_>, _>>()?;
    let mut seen = vec![false; rank];
    match axes.iter().find(|&&axis| std::mem::replace(&mut seen[axis], true)) {
        Some(axis) => Err(Fault::value(&[1], message!("axis {} appears twice"; axis))),
        None => Ok(Some(axes)),
    }
}

/// Sets the lengths of transformed axes from the third input, except where a size is -1. Returns true if the sizes are
/// known. Without a third input the axes keep their lengths.
fn resize(cx: &mut Context, dims: &mut [Dim], axes: &[usize]) -> Result<bool, Fault> {
    if cx.inputs.len() < 3 {
        return Ok(true);
    }
    let Some(sizes) = cx.numbers(2)? else { return Ok(false) };
    for (&axis, &size) in axes.iter().zip(&sizes).filter(|&(_, &size)| size != -1) {
        if let Some(dim) = dims.get_mut(axis) {
            *dim = Dim::fixed(size);
        }
    }
    Ok(true)
}

fn forget_all_but_last(dims: &mut [Dim]) {
    if let [dims @ .., _] = dims {
        dims.fill(Dim::ANY);
    }
}

/// Infers STFT: from a signal, or a batch of signals, to the spectra of overlapping frames.
fn to_frames(cx: &mut Context) -> Result<(), Fault> {
    let element_type = check_frames(cx)?;
    check_rank(cx, 0, "signals", &[1, 2])?;
    let Some(dims) = cx.shape(0).dims() else { return cx.finish(element_type, Shape::dynamic()) };
    let (batch, signal) = (&dims[..dims.len().saturating_sub(1)], dims.last().copied().unwrap_or(Dim::ANY));
    let (size, step) = (number(cx, 2)?, number(cx, 3)?);
    let (frames, samples) = match (size, step) {
        (Some(size), Some(step)) => {
            if size < 1 || signal.upper().is_some_and(|longest| size > longest) {
                let message = message!("frames of length {} are longer than the signal of length {}"; size, signal);
                return Err(Fault::value(&[0, 2], message));
            }
            check_frame_values(cx, Some(size), Some(step))?;
            let rest = signal - Dim::fixed(size);
            let frames =
                Dim::between(rest.lower() / step, rest.upper().map_or(i64::MAX, |upper| upper / step)) + Dim::ONE;
            (frames, Dim::fixed(size / 2 + 1))
        }
        _ => (Dim::ANY, Dim::ANY),
    };
    let spectra = if cx.bool("transpose_frames")? { [samples, frames] } else { [frames, samples] };
    let shape = batch.iter().copied().chain(spectra).chain([Dim::fixed(2)]).collect();
    cx.finish(element_type, shape)
}

/// Infers ISTFT, the inverse of STFT.
fn from_frames(cx: &mut Context) -> Result<(), Fault> {
    let element_type = check_frames(cx)?;
    check_rank(cx, 0, "spectra", &[3, 4])?;
    let (size, step) = (number(cx, 2)?, number(cx, 3)?);
    check_frame_values(cx, size, step)?;
    let Some(dims) = cx.shape(0).dims() else { return cx.finish(element_type, Shape::dynamic()) };
    let (batch, samples, frames) = match *dims {
        [samples, frames, _] => (None, samples, frames),
        [batch, samples, frames, _] => (Some(batch), samples, frames),
        _ => return Ok(()),
    };
    if let Some(size) = size
        && cx.shape(0).is_static()
        && !samples.contains(size / 2 + 1)
    {
        let message = message!("the spectra have {} samples, which frames of length {} cannot give"; samples, size);
        return Err(Fault::shapes(&[0, 2], message).rule(message!("such frames have {} samples"; size / 2 + 1)));
    }
    let length = if let Some(shape) = cx.try_shape(4) {
        check_type_in(cx, 4, "signal lengths", INDEX_OR_DYNAMIC)?;
        if !matches!(shape.dims(), None | Some([])) && !matches!(shape.dims(), Some([dim]) if dim.contains(1)) {
            let message = message!("the signal length must be one number, but has the shape {}"; shape);
            return Err(Fault::shapes(&[4], message));
        }
        let length = cx.shape_value(4)?;
        length.and_then(|length| length.dims()?.first().copied()).unwrap_or(Dim::ANY)
    } else if let (Some(size), Some(step)) = (size, step) {
        let length = (frames - Dim::ONE) * Dim::fixed(step) + Dim::fixed(size);
        // Centred frames remove half a frame at both ends.
        if cx.bool("center")? { length - Dim::fixed(size & !1) } else { length }
    } else {
        Dim::ANY
    };
    cx.finish(element_type, batch.into_iter().chain([length]).collect())
}

/// Checks the inputs of STFT and ISTFT: data, window, frame size, frame step. Returns the type of the data.
fn check_frames(cx: &Context) -> Result<ElementType, Fault> {
    for (input, role) in [(0, "data"), (1, "window")] {
        check_type(cx, input, role, Accepts::Real)?;
    }
    let element_type = cx.merge_types(&[0, 1])?;
    check_rank(cx, 1, "windows", &[1])?;
    for (input, role) in [(2, "frame sizes"), (3, "frame steps")] {
        check_type_in(cx, input, role, INDEX_OR_DYNAMIC)?;
        check_rank(cx, input, role, &[0])?;
    }
    Ok(element_type)
}

fn check_frame_values(cx: &Context, size: Option<i64>, step: Option<i64>) -> Result<(), Fault> {
    for (input, value) in [(2, size), (3, step)] {
        if let Some(value) = value.filter(|&value| value < 1) {
            let what = if input == 2 { "size" } else { "step" };
            return Err(Fault::value(&[input], message!("the frame {} is {}, but must be 1 or more"; what, value)));
        }
    }
    let window = cx.shape(1).dims().and_then(|dims| dims.first()?.value());
    match (window, size) {
        (Some(window), Some(size)) if !(1..=size).contains(&window) => Err(Fault::shapes(
            &[1, 2],
            message!("the window of length {} is longer than the frames of length {}"; window, size),
        )),
        _ => Ok(()),
    }
}

/// The value of an input that is one number, if it is known.
fn number(cx: &mut Context, input: usize) -> Result<Option<i64>, Fault> {
    Ok(cx.numbers(input)?.and_then(|numbers| numbers.first().copied()))
}
