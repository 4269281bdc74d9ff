//! The roles of a graph's layers, and what follows from them.

use std::cell::OnceCell;

use super::roles::{Indices, Role, in_order, roles_of};
use super::weights::StoredPaths;
use crate::model::graph::{Graph, Layer, LayerMap};

/// GraphFacts of one graph. What is not always needed is found when it is first asked for.
#[derive(Debug)]
pub(crate) struct GraphFacts<'a> {
    pub(crate) graph: &'a Graph,
    /// The layers in topological order; in the order of the file if they form a cycle.
    pub(crate) order: Vec<&'a Layer>,
    pub(crate) roles: LayerMap<Role>,
    stored: OnceCell<StoredPaths<'a>>,
    indices: OnceCell<Indices>,
}

impl<'a> GraphFacts<'a> {
    pub(crate) fn new(graph: &'a Graph) -> Self {
        let order = in_order(graph);
        let roles = roles_of(graph, &order);
        Self { graph, order, roles, stored: OnceCell::new(), indices: OnceCell::new() }
    }

    pub(crate) fn stored(&self) -> &StoredPaths<'a> {
        self.stored.get_or_init(|| StoredPaths::new(self.graph, &self.order, &self.roles))
    }

    pub(crate) fn indices(&self) -> &Indices {
        self.indices.get_or_init(|| Indices::new(self.graph, &self.order, &self.roles))
    }
}
