//! Construction of a graph from a file: first the layers, then the edges. The journal of edits is not used here.

use petgraph::stable_graph::NodeIndex;
use petgraph::visit::{EdgeRef, IntoEdgeReferences};

use super::{Graph, Input, Layer, LayerId, Output, Wire};
use crate::base::hash::HashSet;
use crate::base::span::Span;

impl Graph {
    /// Adds a layer unchanged. It cannot be found by its id before [`index_layers`](Self::index_layers) has run.
    pub(crate) fn append(&mut self, layer: Layer) {
        self.append_node(layer);
    }

    pub(super) fn append_node(&mut self, layer: Layer) -> NodeIndex {
        self.next_id = self.next_id.max(layer.id.0.saturating_add(1));
        self.storage.add_node(layer)
    }

    /// Indexes the layers by id. If layers share an id, the index keeps the last one. Returns the others, each with
    /// the position of the next layer of the same id.
    pub(crate) fn index_layers(&mut self) -> Vec<(Layer, Option<Span>)> {
        let entries = self.storage.node_indices().filter_map(|node| Some((self.weight(node)?.id, node)));
        self.index = entries.collect();
        if self.index.is_sorted_by(|left, right| left.0 < right.0) {
            return Vec::new();
        }
        self.index.sort_unstable();
        let pairs = self.index.windows(2).filter(|pair| pair[0].0 == pair[1].0);
        let mut replaced: Vec<_> = pairs.map(|pair| (pair[0].1, self.storage[pair[1].1].span)).collect();
        replaced.sort_unstable_by_key(|(node, _)| *node);
        self.index.reverse();
        self.index.dedup_by_key(|entry| entry.0);
        self.index.reverse();
        let gone = replaced.into_iter().filter_map(|(node, next)| Some((self.storage.remove_node(node)?, next)));
        let gone: Vec<_> = gone.collect();
        self.ignored.extend(gone.iter().filter_map(|(layer, _)| layer.span));
        gone
    }

    /// Connects an output of a layer to an input of another. `span` is the position of the `<edge>`.
    pub(crate) fn wire(&mut self, source: Output, target: Input, span: Option<Span>) {
        if let (Some(from), Some(to)) = (self.node(source.layer), self.node(target.layer)) {
            self.storage.add_edge(from, to, Wire::new(source.port, target.port, span));
        }
    }

    /// Removes the edges that lead to these layers.
    pub(crate) fn disconnect(&mut self, layers: &HashSet<LayerId>) {
        let edges = self.storage.edge_references();
        let wires: Vec<_> = edges.map(|edge| (edge.source(), edge.target(), *edge.weight())).collect();
        self.storage.clear_edges();
        for (source, target, wire) in wires {
            if layers.contains(&self.storage[target].id) {
                self.ignored.extend(wire.span);
            } else {
                self.storage.add_edge(source, target, wire);
            }
        }
    }

    /// Records the position of an ignored layer or edge that could take effect after another edit.
    pub(crate) fn ignore(&mut self, span: Span) {
        self.ignored.push(span);
    }
}
