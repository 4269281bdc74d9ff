//! Reduction of layers with bodies: a body replaces the model, or its layers become constants.

use foldhash::HashSet;
use typelift::edit::Edit;
use typelift::graph::{EditError, Place, PortMapEntry};
use typelift::ops::{self, LayerKind};
use typelift::{Layer, LayerId, Model, Output};

use super::search::{Halt, Search};
use super::{Judge, keep};

/// Above this number of layers, steps for single layers of a body would take too many runs.
const MOST_LAYERS: usize = 24;

/// Tries to replace the model by a body, or an If by one of its bodies. Returns true if a result was interesting.
pub(super) fn lifted<J: Judge>(search: &mut Search<'_, J>) -> Result<bool, Halt<J>> {
    let owners: Vec<(LayerId, usize)> = search
        .best
        .graph()
        .layers()
        .filter(|layer| !layer.bodies().is_empty())
        .map(|layer| (layer.id(), layer.bodies().len()))
        .collect();
    let bodies = owners.into_iter().flat_map(|(id, count)| (0..count).map(move |at| (id, at)));
    let mut candidates = Vec::new();
    for (id, at) in bodies {
        candidates.push(search.best.body_alone(id, at).map(|(model, _)| model));
        candidates.push(keep::edited(&search.best, |graph| graph.inline(id, at)));
    }
    Ok(search.accept_first("a body replaced its layer", candidates)?.is_some())
}

/// Replaces layers of bodies by constants, first large runs of them, then single ones. Bypasses those that are left.
pub(super) fn emptied<J: Judge>(search: &mut Search<'_, J>) -> Result<(), Halt<J>> {
    let places: Vec<Place> = search.best.walk().map(|(place, _)| place).filter(|place| !place.is_model()).collect();
    for place in places {
        let Some(graph) = search.best.graph_at(&place) else { continue };
        let mut rest = keep::in_order(graph);
        let mut length = rest.len();
        while length > 0 {
            let mut start = 0;
            while start < rest.len() {
                let end = (start + length).min(rest.len());
                let candidate = without(&search.best, &place, &rest[start..end].iter().copied().collect());
                if search.accept("fewer layers in a body", candidate)? {
                    rest.drain(start..end);
                } else {
                    start = end;
                }
            }
            length /= 2;
        }
        while bypassed(search, &place)? {}
    }
    narrowed(search)
}

/// Parameter or Result of a layer's body.
#[derive(Clone)]
struct BodyEnd {
    place: Place,
    layer: LayerId,
    at: usize,
    id: LayerId,
    is_input: bool,
}

/// Removes Parameters and Results of bodies, with the ports of the layer that belong to them.
fn narrowed<J: Judge>(search: &mut Search<'_, J>) -> Result<(), Halt<J>> {
    let mut ends = Vec::new();
    for (place, graph) in search.best.walk() {
        for layer in graph.layers() {
            for (at, body) in layer.bodies().iter().enumerate() {
                let all = body.graph.layers();
                let own = all.filter(|inside| matches!(ops::kind(inside), LayerKind::Parameter | LayerKind::Result));
                ends.extend(own.map(|inside| {
                    let is_input = ops::kind(inside) == LayerKind::Parameter;
                    BodyEnd { place: place.clone(), layer: layer.id(), at, id: inside.id(), is_input }
                }));
            }
        }
    }
    // Outputs are removed first, because then fewer inputs are needed.
    ends.sort_by_key(|end| end.is_input);
    for end in ends.into_iter().take(2 * MOST_LAYERS) {
        let candidate = without_end(&search.best, &end);
        search.accept("fewer ports of a body", candidate)?;
    }
    Ok(())
}

/// The model without a Parameter or Result of a body. Zeros replace a Parameter. `None` if the layer needs it.
fn without_end(model: &Model, end: &BodyEnd) -> Option<Model> {
    let &BodyEnd { ref place, layer, at, id, is_input } = end;
    let owner = model.graph_at(place)?.layer(layer)?;
    let removed = if is_input { vec![(at, id)] } else { results_of_output(owner, at, id)? };
    keep::edited(model, |graph| {
        let mut graph = graph.at(place)?;
        let sources: Vec<LayerId> = graph.producers(layer).into_iter().flatten().map(|source| source.layer).collect();
        for (at, id) in removed {
            let mut body = graph.body(layer, at)?;
            if is_input && body.users(id).next().is_some() {
                let zeros = zeros(&mut body, id.output(0))?;
                keep::move_uses(&mut body, id.output(0), zeros)?;
            }
            remove_end(&mut graph, layer, at, id)?;
            remove_loose_results(&mut graph, layer, at)?;
        }
        let sources: Vec<LayerId> = sources.into_iter().filter(|&id| graph.layer(id).is_some()).collect();
        graph.remove_unused(sources)?;
        if place.is_model() { keep::remove_lone_inputs(&mut graph) } else { Ok(()) }
    })
}

/// The Results of all bodies that feed the same output of the layer; `None` if the layer needs that output.
fn results_of_output(owner: &Layer, at: usize, id: LayerId) -> Option<Vec<(usize, LayerId)>> {
    let entry = owner.bodies().get(at)?.port_map.iter().find(|entry| entry.internal_layer_id == id)?;
    let is_same =
        |other: &&PortMapEntry| (other.direction, other.external_port_id) == (entry.direction, entry.external_port_id);
    let found = owner.bodies().iter().enumerate().filter_map(|(at, body)| {
        let other = body.port_map.iter().find(is_same)?;
        Some((at, other.internal_layer_id))
    });
    // The output -1 is a condition of the loop.
    (entry.external_port_id >= 0 && owner.outputs().len() > 1).then(|| found.collect())
}

/// Removes a Parameter or Result of a body, and the layers that only it needs.
fn remove_end(graph: &mut Edit<'_>, layer: LayerId, at: usize, id: LayerId) -> Result<(), EditError> {
    let sources: Vec<LayerId> = {
        let body = graph.body(layer, at)?;
        body.producers(id).into_iter().flatten().map(|source| source.layer).collect()
    };
    graph.remove_body_end(layer, at, id)?;
    graph.body(layer, at)?.remove_unused(sources).map(drop)
}

/// Removes Results of a body that neither the layer nor a back edge needs.
fn remove_loose_results(graph: &mut Edit<'_>, layer: LayerId, at: usize) -> Result<(), EditError> {
    let Some(body) = graph.layer(layer).and_then(|owner| owner.bodies().get(at)) else { return Ok(()) };
    let results = body.graph.layers().filter(|inside| ops::kind(inside) == LayerKind::Result).map(Layer::id);
    let loose = results.filter(|id| {
        body.port_map.iter().all(|entry| entry.internal_layer_id != *id)
            && body.back_edges.iter().all(|edge| edge.from != *id)
    });
    let loose: Vec<LayerId> = loose.collect();
    loose.into_iter().try_for_each(|id| remove_end(graph, layer, at, id))
}

/// Connects the uses of one layer of a body to one of its inputs. True if that was interesting.
fn bypassed<J: Judge>(search: &mut Search<'_, J>, place: &Place) -> Result<bool, Halt<J>> {
    let Some(graph) = search.best.graph_at(place) else { return Ok(false) };
    let order = keep::in_order(graph);
    if order.len() > MOST_LAYERS {
        return Ok(false);
    }
    let ways = order.into_iter().flat_map(|id: LayerId| (0..graph.producers(id).len()).map(move |input| (id, input)));
    let candidates = ways.map(|(id, input)| keep::bypassed(&search.best, place, id, input)).collect();
    Ok(search.accept_first("fewer layers in a body", candidates)?.is_some())
}

/// The model with these layers of a body replaced by zeros; `None` if a shape is dynamic.
fn without(model: &Model, place: &Place, layers: &HashSet<LayerId>) -> Option<Model> {
    keep::edited(model, |graph| {
        let mut graph = graph.at(place)?;
        let sorted = keep::sorted(layers);
        for &id in &sorted {
            let ports = graph.layer(id).map_or(0, |layer| layer.outputs().len());
            for tensor in (0..ports).map(|port| id.output(port)) {
                let uses: Vec<_> = graph.consumers(tensor).filter(|input| !layers.contains(&input.layer)).collect();
                if !uses.is_empty() {
                    let zeros = zeros(&mut graph, tensor)?;
                    graph.connect_all(uses.into_iter().map(|input| (zeros, input)))?;
                }
            }
        }
        let sources: Vec<LayerId> =
            sorted.iter().flat_map(|&id| graph.producers(id)).flatten().map(|source| source.layer).collect();
        graph.remove_all(&sorted)?;
        let left =
            sources.into_iter().filter(|id| graph.layer(*id).is_some_and(|it| ops::kind(it) == LayerKind::Constant));
        let left: HashSet<LayerId> = left.collect();
        graph.remove_unused(left).map(drop)
    })
}

fn zeros(graph: &mut Edit<'_>, tensor: Output) -> Result<Output, EditError> {
    /// Maximum size in bytes of a constant that replaces a layer.
    const MOST: u128 = 1 << 20;
    let port = graph.output(tensor).ok_or(EditError::NoOutput(tensor))?;
    let (ty, dims) = (port.element_type(), port.shape().to_static());
    let size = port.shape().element_count().and_then(|count| typelift::values::stored_size(ty, count));
    let (Some(dims), Some(size)) = (dims, size.filter(|&size| size <= MOST)) else {
        return Err(EditError::NoOutput(tensor));
    };
    graph.constant(ty, &dims, &vec![0; size as usize])
}
