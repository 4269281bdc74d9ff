//! Simulation of f16 on devices that compute in f32.
//!
//! OpenVINO's CPU plugin keeps f16 values in f32, so a value beyond 65504 stays finite there and overflows on other
//! devices. A model from [`with_range`] computes infinity instead, on any device.

use typelift::promote::ElementType;

use foldhash::HashMap;
use typelift::edit::{Edit, Element, F16};
use typelift::explain::map::{Role, roles};
use typelift::graph::{EditError, NewLayer};
use typelift::ops::{self, LayerKind};
use typelift::{Graph, Layer, LayerId, Model, Output};

/// The largest number of f16.
const LARGEST: f32 = 65504.0;
/// The largest number of f32 that f16 does not round to infinity.
const ROUNDED_UP: f32 = 65519.996;

/// Model in which computed f16 tensors become infinite if they exceed the range of f16.
pub(super) struct Ranged {
    pub(super) model: Model,
    /// For each such tensor of the model's own graph, the tensor after the check.
    pub(super) tensors: HashMap<Output, Output>,
}

impl Ranged {
    /// The model without such checks.
    pub(super) fn plain(model: &Model) -> Self {
        Self { model: model.clone(), tensors: HashMap::default() }
    }

    /// The tensor after the check, or the tensor itself if there is none.
    pub(super) fn of(&self, tensor: Output) -> Output {
        self.tensors.get(&tensor).copied().unwrap_or(tensor)
    }
}

pub(super) fn computed(model: &Model) -> usize {
    model.walk().map(|(_, graph)| narrow(graph).len()).sum()
}

fn narrow(graph: &Graph) -> Vec<Output> {
    let roles = roles(graph);
    let layers = graph.layers().filter(|layer| {
        let is_end = matches!(ops::kind(layer), LayerKind::Parameter | LayerKind::Result | LayerKind::Assign);
        !is_end && roles.get(layer.id()) != Some(&Role::Stored)
    });
    tensors(graph, layers, &[ElementType::F16])
}

fn rounded(graph: &Graph) -> Vec<Output> {
    let layers = graph.layers().filter(|layer| !matches!(ops::kind(layer), LayerKind::Result | LayerKind::Assign));
    tensors(graph, layers, &[ElementType::F16, ElementType::F32])
}

fn tensors<'g>(graph: &Graph, layers: impl Iterator<Item = &'g Layer>, types: &[ElementType]) -> Vec<Output> {
    let all = layers.flat_map(outputs);
    all.filter(|&tensor| graph.output(tensor).is_some_and(|port| types.contains(&port.element_type()))).collect()
}

pub(super) fn outputs(layer: &Layer) -> impl Iterator<Item = Output> {
    let id = layer.id();
    (0..layer.outputs().len()).map(move |port| id.output(port))
}

/// Adds checks of the range to a model that computes in f16.
///
/// # Errors
/// An edit is refused.
pub(super) fn with_range(model: &Model) -> Result<Ranged, EditError> {
    with_checks(model, narrow, |graph, tensor| {
        limit(graph, tensor, tensor, &F16::from(LARGEST), &F16::from(f32::INFINITY))
    })
}

/// A model that computes floating-point tensors in f32 and rounds each to the 11 bits and the range of f16, its inputs and
/// constants too. Values below 6.1e-5, which have fewer bits in f16, keep 11.
///
/// # Errors
/// An edit is refused.
pub(super) fn with_f16(model: &Model) -> Result<Ranged, EditError> {
    with_checks(model, rounded, |graph, tensor| {
        if graph.output(tensor).is_some_and(|port| port.element_type() == ElementType::F16) {
            return limit(graph, tensor, tensor, &F16::from(LARGEST), &F16::from(f32::INFINITY));
        }
        // Veltkamp's splitting leaves the upper 24 - 13 bits.
        let factor = graph.constant_of(&[], &[8193.0_f32])?;
        let larger = computed_by(graph, "Multiply", &[tensor, factor])?;
        let lower = computed_by(graph, "Subtract", &[larger, tensor])?;
        let upper = computed_by(graph, "Subtract", &[larger, lower])?;
        if graph.layer(tensor.layer).map(ops::kind) == Some(LayerKind::Constant) {
            // Plugins clamp constants to the range when they convert them.
            let clamp = NewLayer::new("Clamp", "opset1").with_attribute("min", -LARGEST).with_attribute("max", LARGEST);
            return Ok(LayerId::output(graph.add(clamp, &[upper])?, 0));
        }
        limit(graph, tensor, upper, &ROUNDED_UP, &f32::INFINITY)
    })
}

/// Replaces tensors of all graphs of a model by checked ones for all consumers that they have.
fn with_checks(
    model: &Model,
    of: impl Fn(&Graph) -> Vec<Output>,
    check: impl Fn(&mut Edit<'_>, Output) -> Result<Output, EditError>,
) -> Result<Ranged, EditError> {
    let mut ranged = Ranged::plain(model);
    ranged.tensors = ranged.model.edit(|graph| {
        let mut checked = HashMap::default();
        // The model's own graph is visited last, so its tensors remain.
        graph.everywhere(&mut |graph| {
            checked = HashMap::default();
            for tensor in of(graph) {
                let uses: Vec<_> = graph.consumers(tensor).collect();
                let result = check(graph, tensor)?;
                graph.connect_all(uses.into_iter().map(|input| (result, input)))?;
                checked.insert(tensor, result);
            }
            Ok(())
        })?;
        Ok(checked)
    })?;
    Ok(ranged)
}

/// Adds a layer that returns `rounded`, or infinity where `tensor` is beyond the range of f16.
fn limit<T: Element>(
    graph: &mut Edit<'_>,
    tensor: Output,
    rounded: Output,
    largest: &T,
    infinity: &T,
) -> Result<Output, EditError> {
    let largest = graph.constant_of(&[], std::slice::from_ref(largest))?;
    let infinity = graph.constant_of(&[], std::slice::from_ref(infinity))?;
    let distance = computed_by(graph, "Abs", &[tensor])?;
    let is_beyond = computed_by(graph, "Greater", &[distance, largest])?;
    let infinite = computed_by(graph, "Multiply", &[tensor, infinity])?;
    computed_by(graph, "Select", &[is_beyond, infinite, rounded])
}

fn computed_by(graph: &mut Edit<'_>, ty: &str, inputs: &[Output]) -> Result<Output, EditError> {
    Ok(LayerId::output(graph.add(NewLayer::new(ty, "opset1"), inputs)?, 0))
}
