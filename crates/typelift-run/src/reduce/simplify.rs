//! Final steps of a reduction: single layers, inputs, dimensions, attributes and metadata.

use foldhash::HashSet;
use typelift::graph::Place;
use typelift::ops::{self, LayerKind};
use typelift::shape::{Dim, Shape};
use typelift::{LayerId, Model};

use super::search::{Halt, Search};
use super::{Judge, keep};

/// Maximum number of layers for steps on single layers, which need many runs.
const MOST_LAYERS: usize = 24;
/// Length above which a dimension is reduced.
const SHORT: i64 = 2;

pub(super) fn all<J: Judge>(search: &mut Search<'_, J>) -> Result<(), Halt<J>> {
    while one_layer_less(search)? || inputs_merged(search)? {}
    let plain = without_metadata(&search.best);
    search.accept("no metadata", plain)?;
    shorter_dims(search)?;
    plainer_attributes(search)
}

/// Removes one layer, or connects its consumers to one of its inputs.
fn one_layer_less<J: Judge>(search: &mut Search<'_, J>) -> Result<bool, Halt<J>> {
    let order = keep::in_order(search.best.graph());
    if order.len() > MOST_LAYERS || order.len() < 2 {
        return Ok(false);
    }
    let all: HashSet<LayerId> = order.iter().copied().collect();
    let mut candidates = Vec::new();
    for &id in &order {
        let rest: HashSet<LayerId> = all.iter().copied().filter(|&other| other != id).collect();
        candidates.push(keep::part(&search.best, &rest));
        let inputs = search.best.graph().producers(id).len();
        candidates.extend((0..inputs).map(|input| keep::bypassed(&search.best, &Place::default(), id, input)));
    }
    let before = super::layers(&search.best);
    let smaller = candidates.into_iter().map(|candidate| candidate.filter(|it| super::layers(it) < before));
    Ok(search.accept_first("one layer removed", smaller.collect())?.is_some())
}

/// Connects the consumers of an input to another input with the same type and shape.
fn inputs_merged<J: Judge>(search: &mut Search<'_, J>) -> Result<bool, Halt<J>> {
    let graph = search.best.graph();
    let kinds = |kind: LayerKind| graph.layers().filter(move |layer| ops::kind(layer) == kind);
    let inputs: Vec<_> = kinds(LayerKind::Parameter)
        .chain(kinds(LayerKind::Constant))
        .map(|layer| (layer.id(), layer.outputs().first().map(|port| port.tensor_type())))
        .collect();
    if inputs.len() > MOST_LAYERS {
        return Ok(false);
    }
    let mut candidates = Vec::new();
    for (at, (id, ty)) in inputs.iter().enumerate().rev() {
        let other = inputs[..at].iter().find(|(_, other)| other == ty);
        candidates.push(other.and_then(|(other, _)| merged(&search.best, *id, *other)));
    }
    Ok(search.accept_first("inputs merged", candidates)?.is_some())
}

fn merged(model: &Model, from: LayerId, to: LayerId) -> Option<Model> {
    keep::edited(model, |graph| {
        keep::move_uses(graph, from.output(0), to.output(0))?;
        graph.remove(from)
    })
}

pub(super) fn without_metadata(model: &Model) -> Option<Model> {
    let plain = super::share::without_metadata(model).ok()?;
    (typelift::xml::write(&plain, Default::default()) != typelift::xml::write(model, Default::default()))
        .then_some(plain)
}

/// Reduces each length of the inputs, also where inputs and constants have the same length.
fn shorter_dims<J: Judge>(search: &mut Search<'_, J>) -> Result<(), Halt<J>> {
    let mut lengths: Vec<Dim> = Vec::new();
    for layer in search.best.inputs() {
        let dims = layer.outputs().first().and_then(|port| port.shape().dims()).unwrap_or_default();
        for &dim in dims.iter().filter(|dim| dim.value().is_none_or(|length| length > SHORT)) {
            if !lengths.contains(&dim) {
                lengths.push(dim);
            }
        }
    }
    let all = with_lengths(&search.best, &lengths);
    if lengths.is_empty() || search.accept("shorter dimensions", all)? {
        return Ok(());
    }
    for length in lengths.into_iter().take(4) {
        let shorter = with_lengths(&search.best, &[length]);
        search.accept("shorter dimensions", shorter)?;
    }
    Ok(())
}

fn shorter(shape: &Shape, lengths: &[Dim]) -> Option<Shape> {
    let dims = shape.dims()?.iter().map(|dim| match lengths.contains(dim) {
        true => Dim::fixed(SHORT.max(dim.lower().min(SHORT))),
        false => *dim,
    });
    let new: Shape = dims.collect();
    (new != *shape).then_some(new)
}

fn with_lengths(model: &Model, lengths: &[Dim]) -> Option<Model> {
    let mut inputs = Vec::new();
    let mut constants = Vec::new();
    for layer in model.graph().layers() {
        let Some(port) = layer.outputs().first() else { continue };
        let Some(new) = shorter(port.shape(), lengths) else { continue };
        match ops::kind(layer) {
            LayerKind::Parameter => inputs.push((layer.id(), new)),
            LayerKind::Constant => {
                let count =
                    new.element_count().and_then(|count| typelift::values::stored_size(port.element_type(), count))?;
                let bytes = layer.bytes(model.weights())?.get(..usize::try_from(count).ok()?)?.to_vec();
                constants.push((layer.id(), port.element_type(), new.to_static()?, bytes));
            }
            _ => {}
        }
    }
    keep::edited(model, |graph| {
        inputs.iter().try_for_each(|(id, shape)| graph.set_attribute(*id, "shape", shape.to_attribute()))?;
        constants.iter().try_for_each(|(id, ty, dims, bytes)| graph.set_constant(*id, *ty, dims, bytes))
    })
}

fn with_attributes(model: &Model, changes: &[(LayerId, String, &'static str)]) -> Option<Model> {
    keep::edited(model, |graph| changes.iter().try_for_each(|(id, name, value)| graph.set_attribute(*id, name, value)))
}

fn plainer_attributes<J: Judge>(search: &mut Search<'_, J>) -> Result<(), Halt<J>> {
    let mut changes: Vec<(LayerId, String, &'static str)> = Vec::new();
    for layer in search.best.graph().layers() {
        let is_stored = matches!(ops::kind(layer), LayerKind::Parameter | LayerKind::Constant);
        let Some(operation) = layer.operation().filter(|_| !is_stored) else { continue };
        let plainer = layer.attributes().iter().filter_map(|attribute| {
            let default = operation.default_of(attribute.name())?;
            (!default.eq_ignore_ascii_case(attribute.value()))
                .then(|| (layer.id(), attribute.name().to_owned(), default))
        });
        changes.extend(plainer);
    }
    if changes.is_empty() || changes.len() > MOST_LAYERS {
        return Ok(());
    }
    let all = with_attributes(&search.best, &changes);
    if search.accept("plainer attributes", all)? || changes.len() == 1 {
        return Ok(());
    }
    for change in changes.into_iter().take(4) {
        let one = with_attributes(&search.best, &[change]);
        search.accept("plainer attributes", one)?;
    }
    Ok(())
}
