//! Replacements that compute windows and slices.

use std::iter;

use typelift_promote::ElementType;

use super::facts::{Written, dims, integers, is_true, list, rank};
use crate::rewrite::Match;

pub(super) fn rounding(m: &Match) -> Result<&'static str, String> {
    let numbers = |name: &str, default: u64| {
        let text = m.root.attribute(name).unwrap_or_default().to_owned();
        let numbers: Vec<u64> = text.split(',').filter_map(|number| number.trim().parse().ok()).collect();
        move |axis: usize| numbers.get(axis).copied().unwrap_or(default)
    };
    let (kernel, strides, dilations) = (numbers("kernel", 1), numbers("strides", 1), numbers("dilations", 1));
    let (begin, end) = (numbers("pads_begin", 0), numbers("pads_end", 0));
    let sizes = dims(m, "x", 2)?;
    let made = m
        .root
        .outputs()
        .first()
        .and_then(|port| port.shape().dims()?.get(2..)?.iter().map(|dim| dim.value()).collect::<Option<Vec<_>>>());
    let made = made.ok_or("the shape of the output is not known")?;
    let (mut floor, mut ceil) = (true, true);
    for (axis, (&size, &made)) in sizes.iter().zip(&made).enumerate() {
        let window = dilations(axis) * (kernel(axis) - 1) + 1;
        let room = (size + begin(axis) + end(axis)).saturating_sub(window);
        floor &= u64::try_from(made) == Ok(room / strides(axis) + 1);
        ceil &= u64::try_from(made) == Ok(room.div_ceil(strides(axis)) + 1);
    }
    match (floor, ceil) {
        (true, _) => Ok("floor"),
        (false, true) => Ok("ceil"),
        (false, false) => Err("rounding_type=ceil_torch rounds some axes up and others down".to_owned()),
    }
}

/// Writes a pooling that rounds up, and removes windows that would start in the padding after the data, as PyTorch
/// does.
pub(super) fn without_padding(m: &Match, pooled: &str) -> Written {
    let rank = rank(m, "x")?;
    if !m.root.attribute("auto_pad").is_none_or(|it| it.eq_ignore_ascii_case("explicit")) {
        return Err("its padding is not known".to_owned());
    }
    let numbers = |name: &str, less: i64| {
        let text = m.root.attribute(name).unwrap_or_default();
        list(text.split(',').filter_map(|number| Some(number.trim().parse::<i64>().ok()? - less)))
    };
    let size = format!("Gather-7(ShapeOf-3(x) {{output_type=i64}}, {}, 0)", list(2..rank));
    let last = format!("Divide(Add({size}, {}), {})", numbers("pads_begin", 1), numbers("strides", 0));
    let ends = format!("Concat([0, 0], Add({last}, 1)) {{axis=0}}");
    let (zeros, ones) = (list(iter::repeat_n(0, rank)), list(iter::repeat_n(1, rank)));
    let all_of = list((0..rank).map(|axis| u8::from(axis < 2)));
    Ok(format!(
        "StridedSlice({pooled}, {zeros}, {ends}, {ones}) {{begin_mask={all_of}, end_mask={all_of}, new_axis_mask={zeros}, shrink_axis_mask={zeros}, ellipsis_mask={zeros}}}"
    ))
}

/// Limit on the elements of a pooling window that becomes a constant.
const MOST_IN_WINDOW: u64 = 1 << 16;

/// Writes an average pooling with dilation: a convolution with ones gives the sums, which are divided by the counts.
pub(super) fn dilated_average(m: &Match) -> Written {
    let ty = m
        .element_type("x")
        .filter(|ty| ty.is_float())
        .ok_or("older releases do not support convolutions of integers")?;
    let attribute = |name: &str| m.root.attribute(name).unwrap_or_default().to_owned();
    let rounds_down = ["", "floor"].contains(&attribute("rounding_type").to_ascii_lowercase().as_str());
    if !rounds_down && rounding(m)? != "floor" {
        return Err(format!("a Convolution does not round as rounding_type={}", attribute("rounding_type")));
    }
    let kernel: Vec<u64> = attribute("kernel").split(',').filter_map(|size| size.trim().parse().ok()).collect();
    let elements = kernel.iter().try_fold(1_u64, |product, &size| product.checked_mul(size));
    if elements.is_none_or(|elements| elements > MOST_IN_WINDOW) {
        return Err(format!("a window of more than {MOST_IN_WINDOW} elements is too large for a Convolution"));
    }
    let rank = rank(m, "x")?;
    let window = [1, 1].iter().chain(&kernel).rev();
    let window = window.fold("1".to_owned(), |inner, &size| list(iter::repeat_n(inner, size as usize)));
    let names = ["strides", "dilations", "pads_begin", "pads_end", "auto_pad"];
    let names = names.map(|name| (name, attribute(name))).into_iter().filter(|(_, value)| !value.is_empty());
    let attributes: Vec<_> = names
        .map(|(name, value)| if name == "auto_pad" { format!("{name}={value}") } else { format!("{name}=[{value}]") })
        .collect();
    let sum = |of: &str| format!("Convolution({of}, {window}) {{{}}}", attributes.join(", "));
    let shape = |of: &str, axes| format!("Gather-7(ShapeOf-3({of}) {{output_type=i64}}, {}, 0)", list::<usize>(axes));
    let alone = format!("Concat([-1, 1], {}) {{axis=0}}", shape("x", (2..rank).collect()));
    let sums = sum(&format!("Reshape(x, {alone}) {{special_zero=false}}"));
    let count = if is_true(m.attribute("e")?) {
        let one = format!("Concat([1, 1], {}) {{axis=0}}", shape("x", (2..rank).collect()));
        sum(&format!("Broadcast-3(convert(1, {ty}), {one}) {{mode=numpy}}"))
    } else {
        format!("{}", kernel.iter().product::<u64>())
    };
    let outer = format!("Concat({}, {}) {{axis=0}}", shape("x", vec![0, 1]), shape(&sums, (2..rank).collect()));
    Ok(format!("Reshape(Divide({sums}, {count}), {outer}) {{special_zero=false}}"))
}

/// Writes the begin, end or step of a slice with an entry for each axis up to the last one.
fn spread(m: &Match, name: &str, axes: &[usize], filler: i64) -> String {
    let count = axes.iter().max().map_or(0, |axis| axis + 1);
    let place = |axis: usize| axes.iter().position(|&known| known == axis);
    if let Some(values) = integers(m, name) {
        let values = (0..count).map(|axis| place(axis).and_then(|at| values.get(at).copied()).unwrap_or(filler));
        let ty = m.element_type(name).unwrap_or(ElementType::I64);
        return format!("convert({}, {ty})", list(values));
    }
    if axes.iter().copied().eq(0..count) {
        return name.to_owned();
    }
    let order = list((0..count).map(|axis| place(axis).unwrap_or(axes.len())));
    format!("Gather-1(Concat({name}, [{filler}]) {{axis=0}}, {order}, 0)")
}

/// End beyond any tensor; for `end` masks of every integer type.
const FAR: i64 = i32::MAX as i64;

/// Writes a Slice of some axes as a StridedSlice of all axes up to the last of them.
pub(super) fn strided(m: &Match, axes: Option<&str>) -> Written {
    let count =
        m.shape("b").and_then(|shape| shape.dims()?.first()?.value()).ok_or("the number of axes is not known")?;
    let axes = match axes.map(|axes| integers(m, axes).ok_or("the axes are not a constant")).transpose()? {
        None => (0..count).collect(),
        Some(axes) => axes,
    };
    let axes = axes.into_iter().map(|axis| {
        let axis = if axis < 0 { axis + rank(m, "x")? as i64 } else { axis };
        usize::try_from(axis).map_err(|_| "an axis is out of range".to_owned())
    });
    let axes = axes.collect::<Result<Vec<_>, _>>()?;
    let (ends, steps) = (integers(m, "e"), integers(m, "s"));
    let is_far = |at: usize| {
        let end = ends.as_ref().and_then(|ends| ends.get(at));
        let step = steps.as_ref().and_then(|steps| steps.get(at));
        end.zip(step).is_some_and(|(&end, &step)| step > 0 && end >= FAR || step < 0 && end <= -FAR)
    };
    let last = axes.iter().max().map_or(0, |axis| axis + 1);
    let place = |axis: usize| axes.iter().position(|&known| known == axis);
    let begin_mask = list((0..last).map(|axis| u8::from(place(axis).is_none())));
    let end_mask = list((0..last).map(|axis| u8::from(place(axis).is_none_or(is_far))));
    let zeros = list(iter::repeat_n(0, last));
    let [begin, end, step] = [("b", 0), ("e", 0), ("s", 1)].map(|(name, filler)| spread(m, name, &axes, filler));
    Ok(format!(
        "StridedSlice(x, {begin}, {end}, {step}) {{begin_mask={begin_mask}, end_mask={end_mask}, new_axis_mask={zeros}, shrink_axis_mask={zeros}, ellipsis_mask={zeros}}}"
    ))
}

/// Writes a SliceScatter: numbers all elements, slices the numbers, and scatters the updates to these elements.
pub(super) fn scatter(m: &Match, axes: &str) -> Written {
    let shape = "ShapeOf-3(x) {output_type=i64}";
    let computed = |_| format!("ReduceProd({shape}, 0) {{keep_dims=false}}");
    let count = dims(m, "x", 0).map_or_else(computed, |dims| dims.iter().product::<u64>().to_string());
    let numbers = format!("Reshape(Range-4(0, {count}, 1) {{output_type=i64}}, {shape}) {{special_zero=false}}");
    let chosen = format!("Reshape(Slice-8({numbers}, b, e, s{axes}), [-1, 1]) {{special_zero=false}}");
    let flat = |name: &str| format!("Reshape({name}, [-1]) {{special_zero=false}}");
    Ok(format!("Reshape(ScatterNDUpdate-4({}, {chosen}, {}), {shape}) {{special_zero=false}}", flat("x"), flat("u")))
}
