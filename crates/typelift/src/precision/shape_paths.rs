//! Constants on which shapes depend.

use std::collections::VecDeque;

use crate::base::hash::HashSet;
use crate::model::graph::{Graph, Layer, LayerId, Model, Place, Start};

/// The layers on which shapes and indices depend, as OpenVINO's `MarkPrecisionSensitiveConstants` does. The walk goes
/// from Results and Assigns to producers. Where an input determines a shape, all its direct and indirect producers are
/// returned, up to a ShapeOf.
pub(crate) fn find(model: &Model) -> HashSet<(Place, LayerId)> {
    let mut walk = ShapeWalk::default();
    walk.graph(Place::default(), model.graph());
    walk.sensitive
}

#[derive(Default)]
struct ShapeWalk {
    /// Producers of inputs that determine a shape.
    sensitive: HashSet<(Place, LayerId)>,
}

impl ShapeWalk {
    fn graph(&mut self, place: Place, graph: &Graph) {
        let mut pending: VecDeque<LayerId> = ends(graph).collect();
        let mut visited = HashSet::default();
        while let Some(id) = pending.pop_front() {
            let Some(layer) = graph.layer(id).filter(|_| !visited.contains(&id)) else { continue };
            let shaping = layer.operation().map_or(&[][..], |row| row.shaping);
            let producers = graph.producers(id);
            for tensor in shaping.iter().filter_map(|&port| producers.get(port).copied().flatten()) {
                visited.insert(tensor.layer);
                self.above(&place, graph, tensor.layer);
            }
            visited.insert(id);
            for (at, body) in layer.bodies().iter().enumerate() {
                self.graph(place.body(id, at), &body.graph);
            }
            producers.into_iter().flatten().for_each(|tensor| pending.push_front(tensor.layer));
        }
    }

    fn above(&mut self, place: &Place, graph: &Graph, id: LayerId) {
        let mut pending = vec![(place.clone(), graph, id)];
        while let Some((place, graph, id)) = pending.pop() {
            let Some(layer) = graph.layer(id) else { continue };
            if is_shape_of(layer) || !self.sensitive.insert((place.clone(), id)) {
                continue;
            }
            for (at, body) in layer.bodies().iter().enumerate() {
                let (inner, place) = (&body.graph, place.body(id, at));
                pending.extend(ends(inner).map(|end| (place.clone(), inner, end)));
            }
            pending.extend(graph.sources(id).map(|source| (place.clone(), graph, source)));
        }
    }
}

fn ends(graph: &Graph) -> impl Iterator<Item = LayerId> {
    graph.layers().filter(|layer| matches!(layer.start(), Some(Start::Result | Start::Assign))).map(Layer::id)
}

fn is_shape_of(layer: &Layer) -> bool {
    layer.operation().is_some_and(|operation| operation.name == "ShapeOf")
}
