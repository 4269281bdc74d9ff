//! Paths of stored weights: the layers from a constant to a value that is computed from constants alone.

use super::roles::{Role, gives_values};
use crate::model::graph::{Graph, Layer, LayerId, LayerMap};

/// Number of values below which a constant is a setting or a scale instead of weights.
pub(crate) const FEW_VALUES: u64 = 32;

/// For each layer that is computed from constants alone: the path from the largest of these constants.
#[derive(Debug)]
pub(crate) struct StoredPaths<'a> {
    graph: &'a Graph,
    /// Number of values of that constant, and the layer before this one on the path.
    sources: LayerMap<(u64, Option<LayerId>)>,
}

impl<'a> StoredPaths<'a> {
    pub(super) fn new(graph: &'a Graph, order: &[&Layer], roles: &LayerMap<Role>) -> Self {
        let mut sources = LayerMap::<(u64, Option<LayerId>)>::new(graph);
        for layer in order.iter().filter(|layer| roles.get(layer.id()) == Some(&Role::Stored)) {
            let feeds = graph.feeds(layer.id()).into_iter().enumerate();
            let known = feeds.rev().filter_map(|(input, feed)| {
                let id = feed?.0.id();
                Some((gives_values(layer, input), (sources.get(id)?.0, Some(id))))
            });
            // Of equally large constants, that of the first input is on the path.
            let best = known.max_by_key(|(gives, (size, _))| (*gives, *size));
            sources.insert(layer.id(), best.map_or((values(layer), None), |(_, source)| source));
        }
        Self { graph, sources }
    }

    pub(crate) fn contains(&self, layer: LayerId) -> bool {
        self.sources.get(layer).is_some()
    }

    pub(crate) fn before(&self, layer: LayerId) -> Option<LayerId> {
        self.sources.get(layer)?.1
    }

    /// The layers from the largest constant to this layer. Empty if it is not computed from constants alone.
    pub(crate) fn path(&self, to: LayerId) -> Vec<&'a Layer> {
        let mut path: Vec<_> = self.back(to).collect();
        path.reverse();
        path
    }

    /// The first layer of the path.
    pub(crate) fn root(&self, to: LayerId) -> Option<&'a Layer> {
        self.back(to).last()
    }

    fn back(&self, to: LayerId) -> impl Iterator<Item = &'a Layer> {
        let layers = std::iter::successors(Some(to).filter(|&to| self.contains(to)), |&at| self.before(at));
        layers.filter_map(|id| self.graph.layer(id))
    }
}

pub(crate) fn values(constant: &Layer) -> u64 {
    constant.outputs().first().and_then(|port| port.shape().element_count()).unwrap_or(0)
}
