//! Ranges of axes that slices cover.

use std::ops::Range;

use super::operations::operation_of;
use super::values;
use crate::model::graph::{Graph, Layer};
use crate::model::weights::Weights;

pub(super) fn cut(graph: &Graph, weights: &Weights, layer: &Layer, lengths: &[usize]) -> Option<Vec<Range<usize>>> {
    let sources = graph.producers(layer.id());
    let numbers = |at: usize| -> Option<Vec<i64>> {
        let array = values::values(graph, weights, sources.get(at).copied().flatten()?)?;
        Some(array.to_integers().to_vec())
    };
    let (starts, ends, steps) = (numbers(1)?, numbers(2)?, numbers(3)?);
    let is_strided = operation_of(layer) == "StridedSlice";
    let mask = |name: &str, at: usize| {
        let text = layer.attribute(name).unwrap_or_default();
        is_strided && text.split(',').nth(at).is_some_and(|item| item.trim() == "1")
    };
    let axes = match sources.get(4) {
        Some(_) if !is_strided => numbers(4)?,
        _ => (0..starts.len() as i64).collect(),
    };
    let mut ranges: Vec<_> = lengths.iter().map(|&length| 0..length).collect();
    if [ends.len(), steps.len(), axes.len()] != [starts.len(); 3] || steps.iter().any(|&step| step != 1) {
        return None;
    }
    for (at, &axis) in axes.iter().enumerate() {
        if ["new_axis_mask", "shrink_axis_mask", "ellipsis_mask"].iter().any(|name| mask(name, at)) {
            return None;
        }
        let axis = usize::try_from(if axis < 0 { axis + lengths.len() as i64 } else { axis }).ok()?;
        let length = *lengths.get(axis)?;
        let place = |value: i64| match i64::try_from(length) {
            Ok(length) => Some((if value < 0 { value + length } else { value }).clamp(0, length) as usize),
            Err(_) if value == 0 => Some(0),
            Err(_) => (value >= i64::from(i32::MAX)).then_some(length),
        };
        let from = if mask("begin_mask", at) { 0 } else { place(starts[at])? };
        let to = if mask("end_mask", at) { length } else { place(ends[at])? };
        ranges[axis] = from..to.max(from);
    }
    Some(ranges)
}
