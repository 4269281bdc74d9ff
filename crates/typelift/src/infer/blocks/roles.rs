//! Roles of layers in a graph: constants, shape computations, or data.

use crate::model::graph::{Graph, Layer, LayerMap};
use crate::ops::{self, LayerKind};

/// Maximum number of values of a tensor that is treated as a shape.
const SHAPE: u64 = 64;

/// Role of a layer: constant, shape computation or data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// A constant, or a computation that depends only on constants, such as the decompression of weights.
    Stored,
    /// A computation of a few numbers that depends only on shapes and constants.
    Shape,
    /// Any other layer.
    Data,
}

/// Returns the roles of all layers of a graph.
///
/// # Examples
/// ```
/// use typelift::explain::map::{roles, Role};
/// # let model = typelift::Model::open(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/model.xml"))?;
/// let (scale, y) = (model.graph().find("scale")?, model.graph().find("y")?);
/// let roles = roles(model.graph());
/// assert_eq!((roles.get(scale), roles.get(y)), (Some(&Role::Stored), Some(&Role::Data)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub fn roles(graph: &Graph) -> LayerMap<Role> {
    let mut roles = LayerMap::new(graph);
    for layer in in_order(graph) {
        let role = role(graph, layer, &roles);
        roles.insert(layer.id(), role);
    }
    roles
}

/// The layers in topological order; in the order of the file if they form a cycle.
pub(crate) fn in_order(graph: &Graph) -> Vec<&Layer> {
    match graph.topological_order() {
        Ok(order) => order.into_iter().filter_map(|id| graph.layer(id)).collect(),
        Err(_) => graph.layers().collect(),
    }
}

fn role(graph: &Graph, layer: &Layer, roles: &LayerMap<Role>) -> Role {
    let kind = ops::kind(layer);
    if kind == LayerKind::Constant {
        return Role::Stored;
    }
    let is_state = matches!(kind, LayerKind::ReadValue | LayerKind::Assign);
    if layer.start().is_some() || is_state || layer.inputs().is_empty() || !layer.bodies().is_empty() {
        return Role::Data;
    }
    let feeds = graph.feeds(layer.id()).into_iter().map(|feed| roles.get(feed?.0.id()).copied());
    let feeds: Vec<Option<Role>> = feeds.collect();
    if feeds.iter().all(|role| *role == Some(Role::Stored)) {
        return Role::Stored;
    }
    let is_shape_of = layer.operation().is_some_and(|operation| operation.name() == "ShapeOf");
    let is_small = layer.outputs().iter().all(|port| port.shape().element_count().is_some_and(|count| count <= SHAPE));
    let from_shapes = feeds.iter().all(|role| matches!(role, Some(Role::Stored | Role::Shape)));
    if (is_shape_of || from_shapes) && is_small { Role::Shape } else { Role::Data }
}
