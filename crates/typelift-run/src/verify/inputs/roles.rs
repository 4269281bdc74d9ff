//! Use of an input's values by a model: indices, masks, positions or counts.

use crate::verify::coverage;
use foldhash::HashSet;
use typelift::graph::Direction;
use typelift::ops::{self, LayerKind};
use typelift::shape::Dim;
use typelift::{Graph, Layer, Model, Output, Weights};

/// Use of an input's values.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Role {
    /// The values are indices below this number.
    pub(super) limit: Option<i64>,
    pub(super) is_mask: bool,
    /// The values are consecutive positions.
    pub(super) is_position: bool,
    /// The values are lengths or sizes.
    pub(super) is_count: bool,
    /// The values are numbers of steps.
    pub(super) is_trips: bool,
    /// The values are lengths of sequences, at most this number.
    pub(super) longest: Option<i64>,
    /// The values are boxes, which overlap if they are from 0 to 1.
    pub(super) is_box: bool,
    /// The values are sorted, as offsets and numbers of segments are.
    pub(super) is_sorted: bool,
}

impl Role {
    /// Combines the uses of two models, or of two consumers.
    pub(super) fn and(self, other: Self) -> Self {
        Self {
            limit: self.limit.into_iter().chain(other.limit).min(),
            is_mask: self.is_mask || other.is_mask,
            is_position: self.is_position || other.is_position,
            is_count: self.is_count || other.is_count,
            is_trips: self.is_trips || other.is_trips,
            longest: self.longest.into_iter().chain(other.longest).min(),
            is_box: self.is_box || other.is_box,
            is_sorted: self.is_sorted || other.is_sorted,
        }
    }
}

/// The use of each input of an inferred model, in order. Its shapes should be fixed as far as possible.
pub(super) fn roles(model: &Model) -> Vec<Role> {
    let found = model.inputs().map(|layer| {
        let name = layer.name().to_ascii_lowercase();
        let mut search = Search { weights: model.weights(), role: Role::default(), seen: HashSet::default() };
        search.uses(model.graph(), layer.id().output(0), 0);
        let mut role = search.role;
        role.is_mask |= name.contains("mask") && role.limit.is_none_or(|limit| limit > 1);
        role.is_position = name.contains("position") || name.contains("pos_ids");
        role
    });
    found.collect()
}

/// Operations that move the values of their first input without changing them.
const MOVES: [&str; 22] = [
    "Convert",
    "ConvertLike",
    "Reshape",
    "Unsqueeze",
    "Squeeze",
    "Transpose",
    "Broadcast",
    "Tile",
    "Slice",
    "StridedSlice",
    "Gather",
    "GatherElements",
    "GatherND",
    "Split",
    "VariadicSplit",
    "Concat",
    "Pad",
    "Reverse",
    "Roll",
    "SpaceToDepth",
    "Abs",
    "Clamp",
];

struct Search<'a> {
    weights: &'a Weights,
    role: Role,
    seen: HashSet<(*const Graph, Output)>,
}

impl Search<'_> {
    /// Follows a tensor to the layers that use its values. `offset` is the number that was added to them before.
    fn uses(&mut self, graph: &Graph, tensor: Output, offset: i64) {
        if !self.seen.insert((std::ptr::from_ref(graph), tensor)) {
            return;
        }
        for input in graph.consumers(tensor) {
            let Some(layer) = graph.layer(input.layer) else { continue };
            self.used_as(graph, layer, input.port, offset);
            self.inside(layer, input.port, offset);
            let name = layer.operation().map_or(layer.ty(), |operation| operation.name);
            let is_moved =
                MOVES.contains(&name) && (input.port == 0 || name == "Concat") || name == "Select" && input.port > 0;
            let offset = match name {
                "Add" => self.added(graph, layer, input.port).map(|added| offset + added),
                _ => is_moved.then_some(offset),
            };
            let Some(offset) = offset else { continue };
            for port in 0..layer.outputs().len() {
                self.uses(graph, layer.id().output(port), offset);
            }
        }
    }

    /// The largest value that an Add adds, if that is a small constant.
    fn added(&self, graph: &Graph, layer: &Layer, port: usize) -> Option<i64> {
        let other = graph.producer(layer.id().input(1 - port.min(1)))?;
        let values = graph.layer(other.layer)?.numbers(self.weights).filter(|values| values.len() <= 64)?;
        values
            .into_iter()
            .fold(None, |most: Option<f64>, value| Some(most.map_or(value, |most| most.max(value))))
            .map(|most| most as i64)
    }

    /// Follows an input of a layer into its bodies.
    fn inside(&mut self, layer: &Layer, port: usize, offset: i64) {
        for body in layer.bodies() {
            for entry in body.port_map.iter().filter(|entry| entry.direction == Direction::Input) {
                if usize::try_from(entry.external_port_id) == Ok(port) {
                    self.uses(&body.graph, entry.internal_layer_id.output(0), offset);
                }
            }
        }
    }

    fn used_as(&mut self, graph: &Graph, layer: &Layer, port: usize, offset: i64) {
        let Some(operation) = layer.operation() else { return };
        let dim = |input: usize, axis: i64| length(graph, layer, input, axis);
        let limit = match (operation.name, port) {
            ("Gather", 1) => {
                let axis =
                    graph.producer(layer.id().input(2)).and_then(|axis| graph.layer(axis.layer)?.numbers(self.weights));
                let axis = axis.and_then(|axis| axis.first().copied()).unwrap_or(0.0) as i64;
                Some(if axis == 0 && is_open_state(graph, layer) { dim(1, 0) } else { dim(0, axis) })
            }
            ("GatherElements", 1) => Some(dim(0, axis_named(layer, "axis", 0))),
            ("ScatterUpdate" | "ScatterElementsUpdate", 1) | ("ROIAlign" | "ROIAlignRotated", 2) => Some(dim(0, 0)),
            (
                "EmbeddingBagOffsetsSum"
                | "EmbeddingBagPackedSum"
                | "EmbeddingSegmentsSum"
                | "EmbeddingBagOffsets"
                | "EmbeddingBagPacked",
                1,
            ) => Some(dim(0, 0)),
            ("EmbeddingBagOffsetsSum" | "EmbeddingBagOffsets" | "EmbeddingSegmentsSum", 2) => Some(dim(1, 0)),
            ("GatherND" | "ScatterNDUpdate", 1) => Some(smallest(graph, layer)),
            ("OneHot", 0) => graph
                .producer(layer.id().input(1))
                .and_then(|depth| Some(*graph.layer(depth.layer)?.numbers(self.weights)?.first()? as i64)),
            _ => None,
        };
        let found = limit.map(|limit| (limit - offset).max(1));
        self.role = self.role.and(Role { limit: found, ..Role::default() });
        match (operation.name, port) {
            ("LSTMSequence", 3) | ("GRUSequence" | "RNNSequence", 2) => {
                self.role.longest = Some(dim(0, 1));
            }
            ("ReverseSequence", 1) => self.role.longest = Some(dim(0, axis_named(layer, "seq_axis", 1))),
            ("EmbeddingBagOffsetsSum" | "EmbeddingBagOffsets" | "EmbeddingSegmentsSum", 2) => {
                self.role.is_sorted = true
            }
            ("NonMaxSuppression" | "MatrixNms" | "MulticlassNms", 0) => self.role.is_box = true,
            ("Select", 0) | ("LogicalNot", _) => self.role.is_mask = true,
            ("Convert", 0) => self.role.is_mask |= layer.attribute("destination_type") == Some("boolean"),
            _ => {}
        }
        self.role.is_trips |= operation.kind == LayerKind::Loop && port == 0;
        self.role.is_count |= operation.shaping.contains(&port);
    }
}

/// True if the first input of a layer is a state of open length, such as a cache with an entry for each beam.
fn is_open_state(graph: &Graph, layer: &Layer) -> bool {
    let source = graph.producer(layer.id().input(0));
    let is_state = source.and_then(|source| graph.layer(source.layer)).map(ops::kind) == Some(LayerKind::ReadValue);
    let dims = source.and_then(|source| graph.output(source)).and_then(|port| port.shape().dims());
    is_state && dims.and_then(<[Dim]>::first).is_some_and(|first| !first.is_fixed())
}

/// The length of an axis of an input; 1 if it is dynamic.
fn length(graph: &Graph, layer: &Layer, input: usize, axis: i64) -> i64 {
    coverage::length(graph, layer.id(), input, axis).map_or(1, |dim| dim.lower().max(1))
}

fn smallest(graph: &Graph, layer: &Layer) -> i64 {
    let shape = graph.producer(layer.id().input(0)).and_then(|source| graph.output(source)).map(|port| port.shape());
    shape.and_then(|shape| shape.dims()).unwrap_or_default().iter().map(|dim| dim.lower().max(1)).min().unwrap_or(1)
}

fn axis_named(layer: &Layer, name: &str, otherwise: i64) -> i64 {
    layer.attribute(name).and_then(|axis| axis.trim().parse().ok()).unwrap_or(otherwise)
}
