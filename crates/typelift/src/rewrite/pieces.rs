//! Slices that together cover a tensor, which one split can replace.

use std::collections::BTreeMap;
use std::ops::Range;

use typelift_promote::ElementType;

use super::bound::{Bindings, Bound};
use super::build::{self, Added};
use super::cut::cut;
use super::operations::operation_of;
use super::swap::{Found, Placed, Scan};
use crate::edit::Edit;
use crate::model::graph::{EditError, Graph, Layer, LayerId, NewLayer, Output};
use crate::model::weights::Weights;
use crate::ops::values::array::Array;

/// The groups of slices that cover a tensor exactly once.
pub(super) fn groups(scan: &mut Scan<'_>) -> Vec<Found> {
    let (graph, weights) = (scan.graph, scan.model.weights());
    let mut by_axis = BTreeMap::<(Output, usize), BTreeMap<usize, (usize, LayerId)>>::new();
    for layer in graph.layers().filter(|layer| !scan.taken.contains(&layer.id())) {
        if let Some((source, axis, range)) = piece(graph, weights, layer) {
            by_axis.entry((source, axis)).or_default().insert(range.start, (range.end, layer.id()));
        }
    }
    let mut found = Vec::new();
    for ((source, axis), pieces) in by_axis {
        let dim = graph.output(source).and_then(|port| usize::try_from(port.shape().dims()?.get(axis)?.value()?).ok());
        let end = pieces.iter().try_fold(0, |at, (&start, &(end, _))| (at == start).then_some(end));
        let ids: Vec<_> = pieces.values().map(|&(_, id)| id).collect();
        let is_whole = end.is_some() && end == dim;
        if !is_whole || ids.len() < 2 || ids.iter().any(|id| scan.taken.contains(id)) || (scan.is_settled)(ids[0]) {
            continue;
        }
        let lengths = pieces.iter().map(|(&start, &(end, _))| (end - start) as i128);
        let lengths = Array::ints(ElementType::I64, [pieces.len()].into_iter().collect(), lengths);
        let names = vec![Bound::Tensor(source), Bound::Number(axis as f64), Bound::Values(lengths.into())];
        found.push(scan.take(ids, names));
    }
    found
}

pub(super) fn split(edit: &mut Edit<'_>, bound: &Bindings, constants: &mut Added) -> Result<Placed, EditError> {
    let [Some(Bound::Tensor(source)), Some(Bound::Number(axis)), Some(Bound::Values(lengths))] = &bound.names[..]
    else {
        return Err(EditError::Other("the match is not a group of slices".to_owned()));
    };
    let axis = Array::scalar(ElementType::I64, *axis);
    let axis = build::constant(edit, constants, &axis, true, None)?;
    let lengths = build::constant(edit, constants, lengths, true, None)?;
    let split = edit.add(NewLayer::new("VariadicSplit", "opset1"), &[*source, axis, lengths])?;
    let pieces = bound.layers.iter().enumerate();
    let swaps = pieces.map(|(port, &(piece, _))| (piece.output(0), split.output(port))).collect();
    Ok(Placed { added: vec![split, axis.layer, lengths.layer], swaps, ..Placed::default() })
}

fn piece(graph: &Graph, weights: &Weights, layer: &Layer) -> Option<(Output, usize, Range<usize>)> {
    if !["Slice", "StridedSlice"].contains(&operation_of(layer)) {
        return None;
    }
    let source = graph.producer(layer.id().input(0))?;
    let dims = graph.output(source)?.shape().dims()?;
    // If the length of an axis is unknown, the slice must have no end.
    let lengths: Vec<_> = dims.iter().map(|dim| dim.value().map_or(usize::MAX, |dim| dim as usize)).collect();
    let cut = cut(graph, weights, layer, &lengths)?;
    let mut parts = cut.into_iter().enumerate().filter(|(axis, range)| *range != (0..lengths[*axis]));
    let (axis, range) = parts.next()?;
    (parts.next().is_none() && lengths[axis] != usize::MAX && !range.is_empty()).then_some((source, axis, range))
}
