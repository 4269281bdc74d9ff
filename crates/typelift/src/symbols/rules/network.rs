//! Operations of neural networks: windows, resizing, recurrence, detection, signals.

use super::Rule;
use crate::symbols::Noticed;
use crate::symbols::walk::{Dims, Length};

struct AxisWindow {
    /// Elements from the first to the last of a window.
    span: i64,
    stride: i64,
    /// Padding before and after the data.
    pads: i64,
    begin: i64,
}

fn per_axis(rule: &Rule, name: &'static str, count: usize, default: i64) -> Option<Vec<i64>> {
    let list = rule.attributes.ints(name).ok()?;
    Some(if list.is_empty() { vec![default; count] } else { list.to_vec() })
}

/// Demands that a window fits, and returns the number of windows.
fn windows(rule: &mut Rule, length: Length, window: &AxisWindow, rounding: &str) -> Length {
    let length = length?;
    let room = rule.arena().plus(length, window.pads - window.span)?;
    let zero = rule.number(0);
    let test = rule.arena().at_least(room, zero);
    rule.demand(test, Noticed::Load, 0);
    let stride = rule.number(window.stride);
    match rounding {
        "floor" => {
            let steps = rule.arena().div(room, stride)?;
            rule.arena().plus(steps, 1)
        }
        "ceil" => {
            let steps = rule.arena().div_up(room, stride)?;
            rule.arena().plus(steps, 1)
        }
        _ => {
            // A last window that would start in the padding is not counted.
            let steps = rule.arena().div_up(room, stride)?;
            let start = rule.arena().mul(steps, stride)?;
            let end = rule.arena().plus(length, window.begin - 1)?;
            let counts = rule.arena().at_least(end, start)?;
            rule.arena().add(steps, counts)
        }
    }
}

/// Infers spatial axes with windows. `kernel` has the lengths of a window.
fn spatial(rule: &mut Rule, data: &[Length], kernel: &[Length], rounding: &str) -> Option<Dims> {
    let count = data.len();
    let strides = per_axis(rule, "strides", count, 1)?;
    let dilations = match rule.operation.attribute("dilations") {
        Some(_) => per_axis(rule, "dilations", count, 1)?,
        None => vec![1; count],
    };
    let auto_pad = rule.attributes.word("auto_pad").ok()?;
    let (begin, end) = match auto_pad {
        "explicit" => (per_axis(rule, "pads_begin", count, 0)?, per_axis(rule, "pads_end", count, 0)?),
        _ => (vec![0; count], vec![0; count]),
    };
    let mut dims = Dims::new();
    for (axis, &length) in data.iter().enumerate().take(count) {
        let stride = *strides.get(axis)?;
        let kernel = kernel.get(axis).copied().flatten().and_then(|kernel| rule.walk.arena.value(kernel));
        dims.push(match (auto_pad, kernel) {
            ("same_upper" | "same_lower", _) => {
                let stride = rule.number(stride);
                length.and_then(|length| rule.arena().div_up(length, stride))
            }
            (_, Some(kernel)) => {
                let span = (kernel - 1).checked_mul(*dilations.get(axis)?)?.checked_add(1)?;
                let pads = begin.get(axis)?.checked_add(*end.get(axis)?)?;
                let window = AxisWindow { span, stride, pads, begin: *begin.get(axis)? };
                windows(rule, length, &window, rounding)
            }
            _ => None,
        });
    }
    Some(dims)
}

pub(super) fn convolution(rule: &mut Rule) -> Option<()> {
    let (data, filters) = (rule.dims(0)?, rule.dims(1)?);
    let is_grouped = rule.operation.name == "GroupConvolution";
    let first = if is_grouped { 3 } else { 2 };
    let channels = if is_grouped { rule.product([filters[0], filters[2]]) } else { filters[1] };
    rule.same(data[1], channels, Noticed::Load, 1);
    let outputs = if is_grouped { rule.product([filters[0], filters[1]]) } else { filters[0] };
    let rest = spatial(rule, data.get(2..)?, filters.get(first..)?, "floor")?;
    let mut dims = Dims::from_slice(&[data[0], outputs]);
    dims.extend(rest);
    rule.put(dims)
}

pub(super) fn deconvolution(rule: &mut Rule) -> Option<()> {
    let (data, filters) = (rule.dims(0)?, rule.dims(1)?);
    let is_grouped = rule.operation.name == "GroupConvolutionBackpropData";
    let first = if is_grouped { 3 } else { 2 };
    let channels = if is_grouped { rule.product([filters[0], filters[1]]) } else { filters[0] };
    rule.same(data[1], channels, Noticed::Load, 1);
    let outputs = if is_grouped { rule.product([filters[0], filters[2]]) } else { filters[1] };
    let mut dims = Dims::from_slice(&[data[0], outputs]);
    let count = data.len() - 2;
    if rule.inputs.len() > 2 {
        dims.extend(rule.values(2)?);
        return rule.put(dims);
    }
    (rule.attributes.word("auto_pad").ok()? == "explicit").then_some(())?;
    let (strides, dilations) = (per_axis(rule, "strides", count, 1)?, per_axis(rule, "dilations", count, 1)?);
    let (begin, end) = (per_axis(rule, "pads_begin", count, 0)?, per_axis(rule, "pads_end", count, 0)?);
    let more = per_axis(rule, "output_padding", count, 0)?;
    for axis in 0..count {
        let kernel = filters.get(first + axis).copied().flatten().and_then(|kernel| rule.walk.arena.value(kernel));
        let length = data[2 + axis].zip(kernel).and_then(|(length, kernel)| {
            let steps = rule.arena().plus(length, -1)?;
            let steps = rule.arena().scale(steps, *strides.get(axis)?)?;
            let span = dilations.get(axis)? * (kernel - 1) + 1;
            rule.arena().plus(steps, span - begin.get(axis)? - end.get(axis)? + more.get(axis)?)
        });
        dims.push(length);
    }
    rule.put(dims)
}

pub(super) fn pool(rule: &mut Rule) -> Option<()> {
    let data = rule.dims(0)?;
    let kernel = rule.attributes.ints("kernel").ok()?;
    let kernel: Vec<Length> = kernel.iter().map(|&length| Some(rule.number(length))).collect();
    let rounding = rule.attributes.word("rounding_type").ok()?;
    let rest = spatial(rule, data.get(2..)?, &kernel, rounding)?;
    let mut dims = Dims::from_slice(&data[..2]);
    dims.extend(rest);
    for _ in rule.layer.outputs() {
        rule.put(dims.clone())?;
    }
    Some(())
}

pub(super) fn adaptive_pool(rule: &mut Rule) -> Option<()> {
    let data = rule.dims(0)?;
    let mut dims = Dims::from_slice(data.get(..2)?);
    dims.extend(rule.values(1)?);
    for _ in rule.layer.outputs() {
        rule.put(dims.clone())?;
    }
    Some(())
}

pub(super) fn interpolate(rule: &mut Rule) -> Option<()> {
    let mut dims = rule.dims(0)?;
    let revision = rule.operation.revision;
    if revision == 0 {
        let axes = rule.attributes.ints("axes").ok()?;
        let sizes = rule.values(1)?;
        for (axis, size) in axes.into_iter().zip(sizes) {
            dims[usize::try_from(axis).ok().filter(|&axis| axis < rule.dims(0).map_or(0, |dims| dims.len()))?] = size;
        }
        return rule.put(dims);
    }
    let by_scale = rule.attributes.word("shape_calculation_mode").ok()? == "scales";
    let (sizes, axes_input) = match (revision, by_scale) {
        (4, true) => (2, 3),
        (4, false) => (1, 3),
        _ => (1, 2),
    };
    let axes = match rule.inputs.len() > axes_input {
        true => rule.ints(axes_input)?,
        false => (0..dims.len() as i64).collect(),
    };
    let rank = dims.len();
    let (begin, end) = (per_axis(rule, "pads_begin", rank, 0)?, per_axis(rule, "pads_end", rank, 0)?);
    for (axis, dim) in dims.iter_mut().enumerate() {
        let pads = begin.get(axis).unwrap_or(&0) + end.get(axis).unwrap_or(&0);
        *dim = dim.and_then(|length| rule.arena().plus(length, pads));
    }
    let values = rule.input_value(sizes);
    for (at, axis) in axes.into_iter().enumerate() {
        let axis = rule.axis(axis, rank)?;
        let item = values.as_ref().and_then(|values| values.items.get(at).copied().flatten());
        dims[axis] = match (item, by_scale, dims[axis]) {
            (Some((size, 1)), false, _) => Some(size),
            (Some((scale, by)), true, Some(length)) => {
                let above = rule.arena().mul(length, scale)?;
                let below = rule.number(by);
                rule.arena().div(above, below)
            }
            _ => None,
        };
    }
    rule.put(dims)
}

pub(super) fn group_normalization(rule: &mut Rule) -> Option<()> {
    rule.same_axes(&[(0, 1), (1, 0), (2, 0)]);
    let groups = rule.attributes.int("num_groups").ok()?;
    let groups = rule.number(groups);
    let test = rule.dim(0, 1).and_then(|channels| rule.arena().divides(channels, groups));
    rule.demand(test, Noticed::Load, 0);
    rule.pass_on()
}

pub(super) fn batch_normalization(rule: &mut Rule) -> Option<()> {
    if rule.operation.revision == 0 {
        let dims = rule.dims(2)?;
        return rule.put(dims);
    }
    let channels = rule.same_axes(&[(0, 1), (1, 0), (2, 0), (3, 0), (4, 0)]);
    let mut dims = rule.dims(0)?;
    if let Some(slot) = dims.get_mut(1) {
        *slot = channels;
    }
    rule.put(dims)
}

pub(super) fn recurrent(rule: &mut Rule) -> Option<()> {
    let name = rule.operation.name;
    let states = if name.starts_with("LSTM") { 2 } else { 1 };
    let is_sequence = name.ends_with("Sequence");
    let (extra, weights) = if is_sequence { (1, states + 2) } else { (0, states + 1) };
    let mut batches: Vec<(usize, usize)> = (0..=states).map(|input| (input, 0)).collect();
    batches.extend(is_sequence.then_some((1 + states, 0)));
    let batch = rule.same_axes(&batches);
    let mut sizes: Vec<(usize, usize)> = (1..=states).map(|input| (input, 1 + extra)).collect();
    sizes.push((weights + 1, 1 + extra));
    let hidden = rule.same_axes(&sizes);
    let (size, wanted) = (rule.dim(0, 1 + extra), rule.dim(weights, 1 + extra));
    rule.same(size, wanted, Noticed::Run, weights);
    if !is_sequence {
        for _ in 0..states {
            rule.put(Dims::from_slice(&[batch, hidden]))?;
        }
        return Some(());
    }
    let directions = if rule.attributes.word("direction").ok()? == "bidirectional" { 2 } else { 1 };
    let directions = Some(rule.number(directions));
    for state in 1..=states {
        let dim = rule.dim(state, 1);
        rule.same(directions, dim, Noticed::Load, state);
    }
    let steps = rule.dim(0, 1);
    rule.put(Dims::from_slice(&[batch, directions, steps, hidden]))?;
    for _ in 0..states {
        rule.put(Dims::from_slice(&[batch, directions, hidden]))?;
    }
    Some(())
}

pub(super) fn suppression(rule: &mut Rule) -> Option<()> {
    rule.same_axes(&[(0, 0), (1, 0)]);
    rule.same_axes(&[(0, 1), (1, 2)]);
    None
}

pub(super) fn roi_align(rule: &mut Rule) -> Option<()> {
    let count = rule.same_axes(&[(1, 0), (2, 0)]);
    let channels = rule.dim(0, 1);
    let height = rule.attributes.int("pooled_h").ok()?;
    let width = rule.attributes.int("pooled_w").ok()?;
    let (height, width) = (rule.number(height), rule.number(width));
    rule.put(Dims::from_slice(&[count, channels, Some(height), Some(width)]))
}

pub(super) fn grid_sample(rule: &mut Rule) -> Option<()> {
    let batch = rule.same_axes(&[(0, 0), (1, 0)]);
    let dims = [batch, rule.dim(0, 1), rule.dim(1, 1), rule.dim(1, 2)];
    rule.put(Dims::from_slice(&dims))
}

pub(super) fn reverse_sequence(rule: &mut Rule) -> Option<()> {
    let rank = rule.dims(0)?.len();
    let axis = rule.axis(rule.attributes.int("batch_axis").ok()?, rank)?;
    rule.same_axes(&[(0, axis), (1, 0)]);
    Some(())
}

/// Replaces the lengths of transformed axes by given sizes, and returns the axes.
fn transformed(rule: &mut Rule, dims: &mut [Length], rank: usize) -> Option<Vec<usize>> {
    let axes = rule.ints(1)?;
    let axes: Vec<usize> = axes.into_iter().map(|axis| rule.axis(axis, rank)).collect::<Option<_>>()?;
    if rule.inputs.len() > 2 {
        for (&axis, size) in axes.iter().zip(rule.values(2)?) {
            if size.is_none_or(|size| rule.walk.arena.value(size) != Some(-1)) {
                *dims.get_mut(axis)? = size;
            }
        }
    }
    Some(axes)
}

pub(super) fn real_transform(rule: &mut Rule) -> Option<()> {
    let mut dims = rule.dims(0)?;
    let rank = dims.len();
    let axes = transformed(rule, &mut dims, rank)?;
    let last = *axes.last()?;
    let two = rule.number(2);
    dims[last] = dims[last].and_then(|length| {
        let half = rule.arena().div(length, two)?;
        rule.arena().plus(half, 1)
    });
    dims.push(Some(two));
    rule.put(dims)
}

pub(super) fn real_inverse(rule: &mut Rule) -> Option<()> {
    let mut dims = rule.dims(0)?;
    dims.pop();
    let rank = dims.len();
    let own = dims.clone();
    let axes = transformed(rule, &mut dims, rank)?;
    let last = *axes.last()?;
    if dims[last] == own[last] {
        dims[last] = own[last].and_then(|length| {
            let less = rule.arena().plus(length, -1)?;
            rule.arena().scale(less, 2)
        });
    }
    rule.put(dims)
}

pub(super) fn blocks_to_image(rule: &mut Rule) -> Option<()> {
    let dims = rule.dims(0)?;
    let (sizes, kernel) = (rule.values(1)?, rule.values(2)?);
    let block = rule.product(kernel)?;
    let rank = dims.len();
    let channels = dims[rank - 2].and_then(|channels| rule.arena().div(channels, block));
    let mut out: Dims = dims[..rank - 2].iter().copied().collect();
    out.push(channels);
    out.extend(sizes);
    rule.put(out)
}

pub(super) fn frames(rule: &mut Rule) -> Option<()> {
    let dims = rule.dims(0)?;
    let (size, step) = (rule.single(2)?, rule.single(3)?);
    let transpose = rule.attributes.bool("transpose_frames").ok()?;
    let (batch, length) = match dims[..] {
        [length] => (None, length?),
        [batch, length] => (Some(batch), length?),
        _ => return None,
    };
    let room = rule.arena().sub(length, size)?;
    let zero = rule.number(0);
    let test = rule.arena().at_least(room, zero);
    rule.demand(test, Noticed::Load, 2);
    let count = rule.arena().div(room, step).and_then(|steps| rule.arena().plus(steps, 1));
    let two = rule.number(2);
    let bins = rule.arena().div(size, two).and_then(|half| rule.arena().plus(half, 1));
    let mut out = Dims::new();
    out.extend(batch);
    out.extend(if transpose { [bins, count] } else { [count, bins] });
    out.push(Some(two));
    rule.put(out)
}
