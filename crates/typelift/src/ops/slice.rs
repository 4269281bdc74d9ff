//! Operations that read or write ranges of a tensor: Slice, StridedSlice, SliceScatter.

use smallvec::SmallVec;

use super::common::{check_rank, check_type, checked_axis, dim_between};
use super::evaluate::{DATA, Evaluate};
use super::{Accepts, Attr, AttrKind, Context, Fault, List, Operation, Spread, evaluate};
use crate::findings::message;
use crate::model::shape::{Dim, Shape};
use crate::ops::values::array::Few;

pub(super) const ROWS: &[Operation] = &[
    Operation::new("Slice", 8, slice)
        .spreads_on(&[Spread::Kept, Spread::Quantized])
        .evaluate(Evaluate::Ends(DATA, evaluate::slice))
        .inputs(4, 5),
    Operation::new("SliceScatter", 15, slice_scatter).inputs(5, 6),
    Operation::new("StridedSlice", 1, strided_slice)
        .spreads_on(&[Spread::Kept, Spread::Quantized])
        .shaped_by(&[1, 2, 3])
        .evaluate(Evaluate::FromBounds(evaluate::strided_slice, evaluate::strided_slice_bounds))
        .inputs(3, 4)
        .attributes(&[
            Attr::new("begin_mask", AttrKind::Ints).default(""),
            Attr::new("end_mask", AttrKind::Ints).default(""),
            Attr::new("new_axis_mask", AttrKind::Ints).default(""),
            Attr::new("shrink_axis_mask", AttrKind::Ints).default(""),
            Attr::new("ellipsis_mask", AttrKind::Ints).default(""),
        ]),
];

/// The smallest and the largest possible index.
type Ends = (i64, i64);

fn slice(cx: &mut Context) -> Result<(), Fault> {
    let data = cx.shape(0);
    let shape = match data.rank() {
        None => {
            check_list_types(cx, 1)?;
            Shape::dynamic()
        }
        Some(0) => return Err(Fault::shapes(&[0], "the data of `Slice` is a scalar, which has no axis")),
        Some(_) => {
            let ranges = SliceRanges::new(cx, 1, data)?;
            // If the number of starts is known, OpenVINO assumes the first axes.
            let count = fixed_length(cx.shape(1));
            let axes = if cx.inputs.len() > 4 { cx.numbers(4)? } else { ranges.first_axes(count) };
            ranges.cut(cx, data, axes)?
        }
    };
    cx.finish(cx.element_type(0), shape)
}

fn slice_scatter(cx: &mut Context) -> Result<(), Fault> {
    let (data, updates) = (cx.shape(0), cx.shape(1));
    let place = match (data.rank(), updates.rank()) {
        (Some(0), _) | (_, Some(0)) => {
            return Err(Fault::shapes(&[0, 1], "neither data nor updates of `SliceScatter` can be a scalar"));
        }
        (Some(left), Some(right)) if left != right => {
            let message = message!("data and updates of `SliceScatter` have the ranks {} and {}"; left, right);
            return Err(Fault::shapes(&[0, 1], message));
        }
        (None, Some(rank)) => Shape::of_rank(rank),
        _ => data.clone(),
    };
    let ranges = SliceRanges::new(cx, 2, &place)?;
    if let Some(position) = ranges.step.iter().flatten().position(|&step| step == 0) {
        return Err(zero_step(cx, 4, position));
    }
    let axes = match cx.inputs.len() {
        5 => ranges.first_axes(None),
        _ => cx.numbers(5)?.filter(|_| data.rank().is_some()),
    };
    let expected = ranges.cut(cx, &place, axes)?;
    if !updates.is_compatible(&expected) {
        let message =
            message!("the updates of `SliceScatter` have the shape {}, but the ranges have {}"; updates, expected);
        return Err(Fault::shapes(&[0, 1], message));
    }
    cx.finish(cx.element_type(0), place)
}

const LISTS: [&str; 4] = ["start", "stop", "step", "axes"];

fn check_list_types(cx: &Context, first: usize) -> Result<(), Fault> {
    for (input, role) in (first..cx.inputs.len()).zip(LISTS) {
        check_type(cx, input, role, Accepts::Integer)?;
    }
    Ok(())
}

/// Starts, stops and steps of the ranges, as far as they are known.
struct SliceRanges {
    first: usize,
    start: Option<Few<Ends>>,
    stop: Option<Few<Ends>>,
    step: Option<Few<i64>>,
}

impl SliceRanges {
    fn new(cx: &mut Context, first: usize, data: &Shape) -> Result<Self, Fault> {
        check_list_types(cx, first)?;
        let lists: SmallVec<[(usize, &str); 4]> = (first..cx.inputs.len()).zip(LISTS).collect();
        for &(input, role) in &lists {
            check_rank(cx, input, role, &[1])?;
            let length = cx.shape(input).dims().and_then(|dims| dims.first().copied());
            if let (Some(length), Some(rank)) = (length, data.rank())
                && length.lower() > rank as i64
            {
                let message = message!("`{}` has {} ranges, but the data {} has fewer axes"; cx.ty(), length, data);
                return Err(Fault::shapes(&[0, input], message));
            }
        }
        // Axes are compared only with start.
        for pair in [(0, 1), (0, 2), (1, 2), (0, 3)] {
            if let (Some(&(left, one)), Some(&(right, other))) = (lists.get(pair.0), lists.get(pair.1))
                && let Err(mismatch) = cx.shape(left).merge(cx.shape(right))
            {
                let message = message!("{} and {} of `{}` must be equally long: {}"; one, other, cx.ty(), mismatch);
                return Err(Fault::shapes(&[left, right], message));
            }
        }
        Ok(Self { first, start: cx.ends(first)?, stop: cx.ends(first + 1)?, step: cx.numbers(first + 2)? })
    }

    /// The default axes if no input lists them: the first `count` axes, or as many as there are starts.
    fn first_axes(&self, count: Option<usize>) -> Option<Few<i64>> {
        let count = count.or(self.start.as_ref().map(Few::len))?;
        Some((0..count as i64).collect())
    }

    fn cut(&self, cx: &Context, data: &Shape, axes: Option<Few<i64>>) -> Result<Shape, Fault> {
        let mut shape = data.clone();
        let Some(dims) = shape.dims_mut() else { return Ok(shape) };
        let Some(axes) = axes else {
            dims.iter_mut().for_each(|dim| *dim = at_most(*dim));
            return Ok(shape);
        };
        let mut cut = SmallVec::<[bool; 8]>::from_elem(false, dims.len());
        for (position, axis) in axes.into_iter().enumerate() {
            let axis = checked_axis(cx, self.first + 3, axis, dims.len())?;
            let (Some(dim), Some(cut)) = (dims.get_mut(axis), cut.get_mut(axis)) else { continue };
            if std::mem::replace(cut, true) {
                let message = message!("axis {} appears twice among the axes of `{}`"; axis, cx.ty());
                return Err(Fault::value(&[self.first + 3], message));
            }
            let [start, stop] = [&self.start, &self.stop].map(|ends| ends.as_ref()?.get(position).copied());
            let step = self.step.as_ref().and_then(|step| step.get(position).copied());
            *dim = match (start, stop, step) {
                (Some(_), Some(_), Some(0)) => return Err(zero_step(cx, self.first + 2, position)),
                (Some(start), Some(stop), Some(step)) => sliced(*dim, start, stop, step),
                _ => at_most(*dim),
            };
        }
        Ok(shape)
    }
}

fn zero_step(cx: &Context, input: usize, position: usize) -> Fault {
    Fault::value(&[input], message!("the step of `{}` is 0 at position {}"; cx.ty(), position))
}

fn ceil_div(length: i64, step: i64) -> i64 {
    i64::try_from(length.unsigned_abs().div_ceil(step.unsigned_abs())).unwrap_or(i64::MAX)
}

fn at_most(dim: Dim) -> Dim {
    Dim::between(0, dim.upper().unwrap_or(i64::MAX))
}

fn strided_slice(cx: &mut Context) -> Result<(), Fault> {
    check_type(cx, 1, "begin", Accepts::Integer)?;
    check_type(cx, 2, "end", Accepts::Integer)?;
    let masks = Masks::new(cx)?;
    if cx.inputs.len() == 3 && fixed_length(cx.shape(1)).or(fixed_length(cx.shape(2))).is_none() {
        // Without strides OpenVINO uses 1, once for each begin.
        if cx.shape(1).rank().is_none() {
            let message = "the begin of `StridedSlice` must have a known rank if it has no strides";
            return Err(Fault::shapes(&[1], message));
        }
    }
    for (input, role) in [(1, "begin"), (2, "end"), (3, "strides")] {
        check_rank(cx, input, role, &[1])?;
    }
    let data = cx.shape(0);
    let Some(dims) = data.dims() else { return cx.finish(cx.element_type(0), Shape::dynamic()) };
    let (begin, end) = (cx.ends(1)?, cx.ends(2)?);
    let lengths = [fixed_length(cx.shape(1)), fixed_length(cx.shape(2))];
    let are_given = cx.inputs.len() == 4;
    let strides = if are_given { cx.numbers(3)? } else { Some(Few::new()) };
    let given = strides.as_ref().filter(|_| are_given).map(|strides| strides.len());
    let mut count = None;
    for (input, length) in [(1, lengths[0]), (2, lengths[1]), (3, given)] {
        if let (Some(before), Some(length)) = (count, length)
            && before != length
        {
            let message = message!(
                "begin, end and strides of `StridedSlice` must have the same length, but have {} and {}";
                before, length
            );
            return Err(Fault::shapes(&[1, input], message));
        }
        count = count.or(length);
    }
    let shape = match count {
        None => Shape::dynamic(),
        Some(count) => masks.apply(cx, dims, count, begin.as_deref(), end.as_deref(), strides.as_deref())?,
    };
    cx.finish(cx.element_type(0), shape)
}

fn fixed_length(list: &Shape) -> Option<usize> {
    usize::try_from(list.dims().filter(|dims| dims.len() == 1)?.first()?.value()?).ok()
}

/// Masks of a StridedSlice, by position.
struct Masks {
    begin: List<i64>,
    end: List<i64>,
    new_axis: List<i64>,
    shrink_axis: List<i64>,
    ellipsis: List<i64>,
}

impl Masks {
    fn new(cx: &Context) -> Result<Self, Fault> {
        let mut length = None;
        let mut mask = |name: &'static str| {
            let mask = cx.ints(name)?;
            if let Some(odd) = mask.iter().find(|bit| ![0, 1].contains(*bit)) {
                let message = message!("`{}` contains {}, but masks consist of 0 and 1"; name, odd);
                return Err(Fault::attribute(name, message));
            }
            // An empty mask is treated as zeros, unless it is the first one.
            let expected = *length.get_or_insert(mask.len());
            if !mask.is_empty() && mask.len() != expected {
                let message = message!("`{}` has {} positions, but `begin_mask` has {}"; name, mask.len(), expected);
                return Err(Fault::attribute(name, message).rule("all masks must have the same length"));
            }
            Ok(mask)
        };
        let masks = Self {
            begin: mask("begin_mask")?,
            end: mask("end_mask")?,
            new_axis: mask("new_axis_mask")?,
            shrink_axis: mask("shrink_axis_mask")?,
            ellipsis: mask("ellipsis_mask")?,
        };
        Ok(masks)
    }

    fn apply(
        &self,
        cx: &Context,
        dims: &[Dim],
        count: usize,
        begin: Option<&[Ends]>,
        end: Option<&[Ends]>,
        strides: Option<&[i64]>,
    ) -> Result<Shape, Fault> {
        let number = |mask: &[i64]| mask.iter().filter(|&&bit| bit == 1).count();
        let ellipses = number(&self.ellipsis);
        if ellipses > 1 {
            let message = message!("`ellipsis_mask` has {} ellipses, but at most one is permitted"; ellipses);
            return Err(Fault::attribute("ellipsis_mask", message));
        }
        if ellipses == 0 && dims.len() + number(&self.new_axis) < count {
            let message = message!("`StridedSlice` has {} ranges for {} axes"; count, dims.len());
            return Err(Fault::shapes(&[0, 1], message));
        }
        // Position and maximum length of the last range.
        let mut last_range = None;
        let mut shape: SmallVec<[Dim; 6]> = SmallVec::new();
        let mut rest = dims.iter().copied();
        for position in 0..count {
            let missing = || {
                Fault::shapes(
                    &[0, 1],
                    message!("range {} of `StridedSlice` belongs to an axis that does not exist"; position),
                )
            };
            if is_set(&self.ellipsis, position) {
                for _ in 0..self.hidden(position, dims.len(), count, begin.is_some()) {
                    shape.push(rest.next().ok_or_else(missing)?);
                }
            } else if is_set(&self.new_axis, position) {
                shape.push(Dim::ONE);
            } else if is_set(&self.shrink_axis, position) {
                rest.next();
            } else {
                let dim = rest.next().ok_or_else(missing)?;
                let Some(stride) = strides.map(|strides| strides.get(position).copied().unwrap_or(1)) else {
                    shape.push(at_most(dim));
                    continue;
                };
                let (range, most) = self.range(cx, position, dim, [begin, end], stride)?;
                last_range = Some((shape.len(), most));
                shape.push(range);
            }
        }
        // If begin or end is unknown and the masks leave only fixed dimensions, OpenVINO ignores the mask of the last
        // range.
        if let Some((at, most)) = last_range
            && (begin.is_none() || end.is_none())
            && shape.iter().all(|dim| dim.is_fixed())
        {
            shape[at] = most;
        }
        shape.extend(rest);
        Ok(shape.into_iter().collect())
    }

    fn hidden(&self, position: usize, axes: usize, count: usize, knows_begin: bool) -> usize {
        let before = (0..position).filter(|&other| !is_set(&self.new_axis, other)).count();
        // OpenVINO considers new axes after an ellipsis only if begin is known.
        let behind = (position + 1..count).filter(|&other| !(knows_begin && is_set(&self.new_axis, other))).count();
        axes.saturating_sub(behind + before)
    }

    fn range(
        &self,
        cx: &Context,
        position: usize,
        dim: Dim,
        [begin, end]: [Option<&[Ends]>; 2],
        stride: i64,
    ) -> Result<(Dim, Dim), Fault> {
        let length = dim.upper().unwrap_or(i64::MAX);
        let (first, last) = match stride {
            0 => return Err(zero_step(cx, 3, position)),
            1.. => (0, length),
            _ => (length, (-1_i64).saturating_sub(length)),
        };
        let most = Dim::between(0, dim.upper().map_or(i64::MAX, |length| ceil_div(length, stride)));
        let ends = [(&self.begin, first, begin), (&self.end, last, end)].map(|(mask, default, ends)| {
            if is_set(mask, position) { Some((default, default)) } else { ends?.get(position).copied() }
        });
        let range = match ends {
            [Some(begin), Some(end)] => sliced(dim, begin, end, stride),
            _ => most,
        };
        Ok((range, most))
    }
}

fn is_set(mask: &[i64], position: usize) -> bool {
    mask.get(position) == Some(&1)
}

/// The lengths of a range of `dim`, from `start` to `stop` by `step`, which is not 0.
fn sliced(dim: Dim, start: Ends, stop: Ends, step: i64) -> Dim {
    // A start or stop whose bounds have different signs counts from both ends. Each half is clamped separately.
    let [(first_start, last_start), (first_stop, last_stop)] = [start, stop].map(|(lower, upper)| {
        let crosses = lower < 0 && upper >= 0;
        let reaches_start = dim.upper().is_none_or(|length| lower.saturating_add(length) >= 0);
        let reaches_end = dim.upper().is_none_or(|length| upper < length);
        (if crosses && reaches_start { 0 } else { lower }, if crosses && reaches_end { -1 } else { upper })
    });
    let (short, long) = if step > 0 {
        ((last_start, first_stop), (first_start, last_stop))
    } else {
        ((first_start, last_stop), (last_start, first_stop))
    };
    let lower = range_length(Some(dim.lower()), short.0, short.1, step);
    let upper = range_length(dim.upper(), long.0, long.1, step);
    dim_between(lower.unwrap_or(0), upper.unwrap_or(-1))
}

/// `None` if it is unlimited.
fn range_length(length: Option<i64>, start: i64, stop: i64, step: i64) -> Option<i64> {
    const MAX: i64 = i64::MAX;
    let length = length.unwrap_or(MAX);
    let unbounded = length == MAX;
    let back = step < 0;
    let open = (start < 0) != (stop < 0) || start == MAX || stop == MAX || start == i64::MIN;
    let (first, end) = if unbounded && open {
        let end = match (back, start < 0) {
            (true, false) if start != MAX && stop != MAX => -1 - start,
            (false, true) if start != i64::MIN => {
                if stop == MAX {
                    start.saturating_neg()
                } else {
                    stop
                }
            }
            _ => -1,
        };
        (0, end)
    } else {
        let place = |index: i64| if index < 0 { index.saturating_add(length) } else { index };
        let (least, most) = if back { (-1, length - 1) } else { (0, length) };
        (place(start).max(0).min(most), place(stop).max(least).min(length))
    };
    if unbounded && first == 0 && end == -1 {
        return None;
    }
    let count = end.saturating_sub(first);
    let count = if back { count.min(0) } else { count.max(0) };
    Some(match step {
        1 => count,
        -1 => count.saturating_neg(),
        _ if count == 0 => 0,
        _ => (count - step.signum()) / step + 1,
    })
}
