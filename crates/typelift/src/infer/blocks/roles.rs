//! Roles of layers in a graph: constants, shape computations, or data.

use smallvec::SmallVec;
use typelift_promote::ElementType;

use crate::model::graph::{Graph, Input, Layer, LayerMap};
use crate::ops::{self, LayerKind, Operation, UseOfValues, use_of_values};

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
    roles_of(graph, &in_order(graph))
}

pub(super) fn roles_of(graph: &Graph, order: &[&Layer]) -> LayerMap<Role> {
    let mut roles = LayerMap::new(graph);
    for layer in order {
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

/// The layers whose integers count or select: they are computed from shapes and positions alone, or used as shapes,
/// indices and conditions alone.
#[derive(Debug)]
pub(crate) struct Indices {
    found: LayerMap<()>,
    /// The layers that are computed from shapes and positions alone, with those of floating-point numbers.
    derived: LayerMap<()>,
}

impl Indices {
    pub(super) fn new(graph: &Graph, order: &[&Layer], roles: &LayerMap<Role>) -> Self {
        let (mut found, mut derived) = (LayerMap::new(graph), LayerMap::new(graph));
        let order: Vec<&Layer> =
            order.iter().copied().filter(|layer| roles.get(layer.id()) != Some(&Role::Stored)).collect();
        for layer in &order {
            let feeds = graph.feeds(layer.id()).into_iter().flatten().map(|(producer, _)| producer.id());
            let mut computed = feeds.filter(|&id| roles.get(id) != Some(&Role::Stored)).peekable();
            let is_derived =
                computed.peek().is_some() && computed.all(|id| derived.get(id).is_some()) && !brings_values(layer);
            let is_place = gives_integers(layer) && (is_derived || gives_indices(layer));
            if is_place || roles.get(layer.id()) == Some(&Role::Shape) {
                found.insert(layer.id(), ());
            }
            if is_derived || found.get(layer.id()).is_some() {
                derived.insert(layer.id(), ());
            }
        }
        for layer in order.into_iter().rev().filter(|layer| gives_integers(layer)) {
            let selects = |(_, input): (usize, Input)| {
                found.get(input.layer).is_some()
                    || graph.layer(input.layer).is_some_and(|user| !gives_values(user, input.port))
            };
            let mut uses = graph.uses(layer.id()).peekable();
            let is_condition = layer.outputs().iter().all(|port| port.element_type() == ElementType::Boolean);
            if is_condition || uses.peek().is_some() && uses.all(selects) {
                found.insert(layer.id(), ());
            }
        }
        Self { found, derived }
    }

    /// True for a Convert of integers that count or select.
    pub(crate) fn converts(&self, graph: &Graph, layer: &Layer) -> bool {
        let from = graph.feeds(layer.id()).into_iter().next().flatten();
        from.is_some_and(|(from, port)| {
            let is_float = || from.outputs().get(port).is_none_or(|port| port.element_type().is_float());
            let is_data = || is_float() && self.derived.get(from.id()).is_none();
            self.found.get(from.id()).is_some() || self.found.get(layer.id()).is_some() && !is_data()
        })
    }
}

/// True for a layer whose values do not follow from its inputs alone, or that contains others.
fn brings_values(layer: &Layer) -> bool {
    let is_random = ["RandomUniform", "Multinomial"].contains(&layer.operation().map_or("", |it| it.name));
    is_random || ops::kind(layer) == LayerKind::ReadValue || !layer.bodies().is_empty()
}

/// True for an input whose values go into those of the layer. Those of a target shape, of indices and of ShapeOf do not.
pub(crate) fn gives_values(layer: &Layer, input: usize) -> bool {
    let is_shaping = layer.operation().is_some_and(|it| it.shaping.contains(&input));
    !is_shaping && matches!(use_of_values(layer, input), UseOfValues::Passed | UseOfValues::Computed)
}

fn gives_integers(layer: &Layer) -> bool {
    !layer.outputs().is_empty() && layer.outputs().iter().any(|port| !port.element_type().is_float())
}

/// True for an operation that gives a shape, or positions in a tensor.
fn gives_indices(layer: &Layer) -> bool {
    let gives = |it: &Operation| it.name != "RandomUniform" && it.output_type_attributes().next().is_some();
    ops::kind(layer) == LayerKind::Other && layer.operation().is_some_and(gives)
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
    let feeds: SmallVec<[Option<Role>; 4]> = feeds.collect();
    if feeds.iter().all(|role| *role == Some(Role::Stored)) {
        return Role::Stored;
    }
    let is_shape_of = layer.operation().is_some_and(|operation| operation.name == "ShapeOf");
    let is_small = layer.outputs().iter().all(|port| port.shape().element_count().is_some_and(|count| count <= SHAPE));
    let from_shapes = feeds.iter().all(|role| matches!(role, Some(Role::Stored | Role::Shape)));
    if (is_shape_of || from_shapes) && is_small { Role::Shape } else { Role::Data }
}
