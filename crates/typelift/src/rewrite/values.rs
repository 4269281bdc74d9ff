//! Values of tensors that depend only on constants.

use super::bound::self_describe;
use crate::base::hash::HashMap;
use crate::model::graph::{Graph, Layer, Model, Output, Place};
use crate::model::weights::Weights;
use crate::ops::evaluate::Evaluation;
use crate::ops::values::array::{Array, MAX_ELEMENTS};
use crate::ops::values::export::{Export, ExportError};
use crate::ops::{self, Attributes, LayerKind};

/// Maximum number of elements for which arithmetic is computed.
pub(super) const MOST_COMPUTED: usize = 64;
/// Maximum number of layers between a value and the constants on which it depends.
const DEEPEST: usize = 16;

/// Constants and conversions may have any size, other arithmetic up to [`MOST_COMPUTED`] elements. `None` for other
/// tensors, and if values are not numeric.
pub(super) fn values(graph: &Graph, weights: &Weights, tensor: Output) -> Option<Array> {
    find(graph, weights, tensor, DEEPEST)
}

fn find(graph: &Graph, weights: &Weights, tensor: Output, depth: usize) -> Option<Array> {
    let layer = graph.layer(tensor.layer)?;
    if ops::kind(layer) == LayerKind::Constant {
        let (element_type, dims) = layer.stored_as()?;
        return layer.values(weights, element_type, dims);
    }
    if depth == 0 || !computes(layer) {
        return None;
    }
    let port = layer.outputs().get(tensor.port)?;
    let feeds = graph.producers(layer.id());
    let input = |feed: &Option<Output>| find(graph, weights, (*feed)?, depth - 1);
    if is_conversion(layer) {
        return input(feeds.first()?)?.converted(port.element_type());
    }
    if port.shape().element_count().is_none_or(|count| count > MOST_COMPUTED as u64) {
        return None;
    }
    let inputs = feeds.iter().map(input).collect::<Option<Vec<_>>>()?;
    evaluated(graph, weights, layer, tensor.port, &inputs.iter().collect::<Vec<_>>())
}

fn evaluated(graph: &Graph, weights: &Weights, layer: &Layer, port: usize, inputs: &[&Array]) -> Option<Array> {
    let operation = layer.operation()?;
    let evaluation = Evaluation::new(Attributes::new(layer, operation), graph, port, weights);
    operation.evaluate.exact(&evaluation, inputs)
}

impl<'m> Export<'m> {
    /// Creates a `.npy` file of a constant, or of a tensor that is computed from constants alone.
    ///
    /// # Errors
    /// [`ExportError`] if the format lacks the type of the tensor, or if its values are unknown or too many.
    ///
    /// # Examples
    /// ```
    /// let model = typelift::Model::open(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/model.xml"))?;
    /// let (place, scale) = model.find_tensor("scale")?;
    /// let mut file = Vec::new();
    /// typelift::values::Export::npy(&model, &place, scale)?.write(&mut file)?;
    /// assert_eq!(file[128..], 2_f32.to_le_bytes());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn npy(model: &'m Model, place: &Place, tensor: Output) -> Result<Self, ExportError> {
        let found = model.graph_at(place).and_then(|graph| Some((graph, graph.layer(tensor.layer)?)));
        let (graph, layer) = found.ok_or_else(|| ExportError::Unknown("the layer does not exist".to_owned()))?;
        if ops::kind(layer) == LayerKind::Constant {
            return Self::npy_stored(layer, model.weights());
        }
        let values = computed(graph, model.weights(), tensor).map_err(ExportError::Unknown)?;
        Self::npy_of(layer, &values, model.weights())
    }
}

/// Computes a tensor that depends only on constants, through any operations.
///
/// # Errors
/// The layer at which that is not possible.
pub(super) fn computed(graph: &Graph, weights: &Weights, tensor: Output) -> Result<Array, String> {
    let mut known = HashMap::default();
    compute(graph, weights, tensor, &mut known)?;
    known.remove(&tensor).ok_or_else(|| "the tensor has no values".to_owned())
}

fn compute(graph: &Graph, weights: &Weights, tensor: Output, known: &mut HashMap<Output, Array>) -> Result<(), String> {
    if known.contains_key(&tensor) {
        return Ok(());
    }
    let layer = graph.layer(tensor.layer).ok_or("a layer does not exist")?;
    if let Some(array) = values(graph, weights, tensor) {
        known.insert(tensor, array);
        return Ok(());
    }
    let described = self_describe(layer);
    if layer.inputs().is_empty() || !computes(layer) {
        return Err(format!("{described} is not a constant"));
    }
    let sources = graph.producers(layer.id()).into_iter().collect::<Option<Vec<_>>>();
    let sources = sources.ok_or_else(|| format!("an input of {described} is not connected"))?;
    sources.iter().try_for_each(|&source| compute(graph, weights, source, known))?;
    let inputs: Vec<_> = sources.iter().filter_map(|source| known.get(source)).collect();
    let count = layer.outputs().get(tensor.port).and_then(|port| port.shape().element_count());
    weights.compute(count.unwrap_or(0)).map_err(|reason| format!("{described} cannot be computed: {reason}"))?;
    let Some(found) = evaluated(graph, weights, layer, tensor.port, &inputs) else {
        return Err(match count.filter(|&count| count > MAX_ELEMENTS as u64) {
            Some(count) => format!("{described} has {count} elements, but at most {MAX_ELEMENTS} can be computed"),
            None => format!("the values of {described} cannot be computed"),
        });
    };
    known.insert(tensor, found);
    Ok(())
}

pub(super) fn is_constant(graph: &Graph, tensor: Output) -> bool {
    is_computed(graph, tensor, DEEPEST)
}

fn is_computed(graph: &Graph, tensor: Output, depth: usize) -> bool {
    let Some(layer) = graph.layer(tensor.layer) else { return false };
    if ops::kind(layer) == LayerKind::Constant {
        return true;
    }
    let count = layer.outputs().get(tensor.port).and_then(|port| port.shape().element_count());
    let is_small = count.is_some_and(|count| count <= MOST_COMPUTED as u64);
    if depth == 0 || !computes(layer) || !is_small && !is_conversion(layer) {
        return false;
    }
    let feeds = graph.producers(layer.id());
    let needed = if is_conversion(layer) { 1 } else { feeds.len() };
    !feeds.is_empty() && feeds[..needed].iter().all(|feed| feed.is_some_and(|feed| is_computed(graph, feed, depth - 1)))
}

pub(super) fn is_conversion(layer: &Layer) -> bool {
    layer.operation().is_some_and(|row| ["Convert", "ConvertLike"].contains(&row.name))
}

pub(super) fn computes(layer: &Layer) -> bool {
    let keeps =
        matches!(ops::kind(layer), LayerKind::Parameter | LayerKind::Result | LayerKind::Assign | LayerKind::ReadValue);
    !keeps && layer.bodies().is_empty() && layer.operation().is_some_and(ops::Operation::is_repeatable)
}
