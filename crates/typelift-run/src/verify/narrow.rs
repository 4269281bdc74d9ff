//! Simulation of f16 overflow on devices that compute f16 as f32.
//!
//! OpenVINO's CPU plugin keeps f16 values in f32, so a value beyond 65504 stays finite there and overflows on other
//! devices. A model from [`with_range`] computes infinity instead, on any device.

use foldhash::HashMap;
use typelift::edit::Edit;
use typelift::edit::F16;
use typelift::explain::map::{Role, roles};
use typelift::model::graph::{EditError, Graph, LayerId, Model, NewLayer, Output};
use typelift::ops::{self, LayerKind};
use typelift::promote::ElementType;

/// The largest number of f16.
const LARGEST: f32 = 65504.0;

/// Model in which computed f16 tensors become infinite if they exceed the range of f16.
pub(super) struct Ranged {
    pub(super) model: Model,
    /// For each such tensor of the model's own graph, the tensor after the check.
    pub(super) tensors: HashMap<Output, Output>,
}

impl Ranged {
    /// Returns the model without such checks.
    pub(super) fn plain(model: &Model) -> Self {
        Self { model: model.clone(), tensors: HashMap::default() }
    }

    /// Returns the tensor after the check, or the tensor itself if there is none.
    pub(super) fn of(&self, tensor: Output) -> Output {
        self.tensors.get(&tensor).copied().unwrap_or(tensor)
    }
}

/// Returns the number of f16 tensors that depend on the inputs of the model.
pub(super) fn computed(model: &Model) -> usize {
    model.walk().map(|(_, graph)| narrow(graph).len()).sum()
}

fn narrow(graph: &Graph) -> Vec<Output> {
    let roles = roles(graph);
    let mut found = Vec::new();
    for layer in graph.layers().filter(|layer| roles.get(layer.id()) != Some(&Role::Stored)) {
        let is_end = matches!(ops::kind(layer), LayerKind::Parameter | LayerKind::Result | LayerKind::Assign);
        let is_narrow = |port: usize| layer.outputs()[port].element_type() == ElementType::F16;
        found.extend(
            (0..layer.outputs().len()).filter(|&port| !is_end && is_narrow(port)).map(|port| layer.id().output(port)),
        );
    }
    found
}

/// Adds the checks to a model.
///
/// # Errors
/// An edit is refused.
pub(super) fn with_range(model: &Model) -> Result<Ranged, EditError> {
    let mut ranged = Ranged::plain(model);
    ranged.tensors = ranged.model.edit(|graph| {
        let mut tensors = HashMap::default();
        // The model's own graph is visited last, so its tensors remain.
        graph.everywhere(&mut |graph| {
            tensors = narrow(graph)
                .into_iter()
                .map(|tensor| Ok((tensor, limit(graph, tensor)?)))
                .collect::<Result<_, EditError>>()?;
            Ok(())
        })?;
        Ok(tensors)
    })?;
    Ok(ranged)
}

fn limit(graph: &mut Edit<'_>, tensor: Output) -> Result<Output, EditError> {
    let uses: Vec<_> = graph.consumers(tensor).collect();
    let layer = |graph: &mut Edit<'_>, ty: &str, inputs: &[Output]| -> Result<Output, EditError> {
        Ok(LayerId::output(graph.add(NewLayer::new(ty, "opset1"), inputs)?, 0))
    };
    let largest = graph.constant_of(&[], &[F16::from(LARGEST)])?;
    let infinity = graph.constant_of(&[], &[F16::from(f32::INFINITY)])?;
    let distance = layer(graph, "Abs", &[tensor])?;
    let is_beyond = layer(graph, "Greater", &[distance, largest])?;
    let infinite = layer(graph, "Multiply", &[tensor, infinity])?;
    let limited = layer(graph, "Select", &[is_beyond, infinite, tensor])?;
    graph.connect_all(uses.into_iter().map(|input| (limited, input)))?;
    Ok(limited)
}
