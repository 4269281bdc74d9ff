//! Application of a plan's edits.

use std::sync::Arc;

use typelift_promote::ElementType;

use super::dequantize;
use super::plan::{Action, Plan};
use crate::edit::Edit;
use crate::edit::precision_marks::Marks;
use crate::model::graph::{EditError, Graph, IrVersion, LayerId, Model, NewLayer};
use crate::model::weights::{Content as _, Weights};
use crate::ops::values::conversion::{Converted, Stored};
use crate::ops::{self, LayerKind};

impl Plan {
    /// Applies the plan in one batch: all edits are made, or none. Values are converted when they are read or the
    /// model is saved, chunk by chunk. As in OpenVINO, a compressed constant is renamed to `NAME_compressed`, and its
    /// Convert is called `NAME`. After [`Action::Convert`], call [`infer`](crate::infer()) to propagate the new types.
    ///
    /// Version 10 of the format has no precision marks. Compression turns such a model into version 11.
    ///
    /// # Errors
    /// [`EditError`] if the plan belongs to another model, or if bytes of a constant are missing.
    pub fn apply(&self, model: &mut Model) -> Result<(), EditError> {
        let weights = Arc::new(model.weights.clone());
        if self.needs_marks() {
            model.upgrade()?;
        }
        let version = model.version;
        model.edit(|graph| {
            dequantize::apply(graph, self, &weights)?;
            for constant in self.changed().filter(|constant| constant.action != Action::Dequantize) {
                let mut graph = graph.at(&constant.place)?;
                let values = ConvertedConstant::of(&graph, constant.layer, constant.to, &weights)?;
                match constant.action {
                    Action::Compress => compress(&mut graph, values, constant.from)?,
                    Action::Decompress => decompress(&mut graph, values, version)?,
                    Action::Convert => store(&mut graph, values.layer, values.converted)?,
                    Action::Dequantize | Action::Keep(_) => {}
                }
            }
            for layer in &self.marked {
                mark(&mut graph.at(&layer.place)?, layer.id, version)?;
            }
            Ok(())
        })
    }

    pub(crate) fn needs_marks(&self) -> bool {
        !self.marked.is_empty() || self.constants.iter().any(|it| it.action == Action::Compress)
    }
}

fn mark(graph: &mut Edit<'_>, id: LayerId, version: IrVersion) -> Result<(), EditError> {
    let layer = graph.layer(id).ok_or(EditError::NoLayer(id))?;
    let marks = Marks::of(layer, version).union(&Marks::precise());
    marks.map_or(Ok(()), |marks| graph.set_marks(id, &marks))
}

struct ConvertedConstant {
    layer: LayerId,
    converted: Converted,
}

impl ConvertedConstant {
    fn of(graph: &Graph, layer: LayerId, to: ElementType, weights: &Arc<Weights>) -> Result<Self, EditError> {
        let stored = graph.layer(layer).ok_or(EditError::NoLayer(layer)).map(Stored::of)?;
        let converted = stored.and_then(|stored| stored.converted(to, weights)).ok_or(EditError::NoWeights)?;
        Ok(Self { layer, converted })
    }
}

/// Stores converted values in a constant. An empty constant keeps its offset, because OpenVINO writes it with a size
/// of 1.
pub(super) fn store(graph: &mut Edit<'_>, id: LayerId, values: Converted) -> Result<(), EditError> {
    let (ty, size) = (values.to, values.len());
    graph.set_attribute(id, "element_type", ty.name())?;
    if size == 0 {
        return Ok(());
    }
    let offset = graph.add_made_bytes(Arc::new(values));
    graph.set_attribute(id, "offset", offset)?;
    graph.set_attribute(id, "size", size)
}

/// Stores a constant in another type, and inserts a Convert back to its own type before all consumers. The Convert has
/// the mark `decompression`.
fn compress(graph: &mut Edit<'_>, values: ConvertedConstant, from: ElementType) -> Result<(), EditError> {
    let (id, tensor) = (values.layer, values.layer.output(0));
    let consumers: Vec<_> = graph.consumers(tensor).collect();
    let name = graph.layer(id).map(|layer| layer.name().to_owned()).unwrap_or_default();
    store(graph, id, values.converted)?;
    graph.set_name(id, &format!("{name}_compressed"))?;
    let convert = graph.add(NewLayer::convert(from).named(&name), &[tensor])?;
    graph.set_marks(convert, &Marks::decompression())?;
    graph.connect_all(consumers.into_iter().map(|input| (convert.output(0), input)))?;
    graph.move_names(tensor, convert.output(0))
}

/// Stores a constant in the type of its marked Converts, and removes these. Other consumers use a copy of the old
/// constant.
fn decompress(graph: &mut Edit<'_>, values: ConvertedConstant, version: IrVersion) -> Result<(), EditError> {
    let (id, to) = (values.layer, values.converted.to);
    let (converts, others) = decompressions(graph, id, version);
    let converts: Vec<_> = converts.into_iter().filter(|&(_, ty)| ty == to).map(|(convert, _)| convert).collect();
    let Some(first) = converts.first().and_then(|&convert| graph.layer(convert)) else { return Ok(()) };
    let name = first.name().to_owned();
    let stays = others || graph.users(id).count() > converts.len();
    let id = if stays { copy(graph, id)? } else { id };
    store(graph, id, values.converted)?;
    graph.set_name(id, &name)?;
    for convert in converts {
        let (old, new) = (convert.output(0), id.output(0));
        let consumers: Vec<_> = graph.consumers(old).collect();
        graph.connect_all(consumers.into_iter().map(|input| (new, input)))?;
        graph.move_names(old, new)?;
        graph.remove(convert)?;
    }
    Ok(())
}

fn copy(graph: &mut Edit<'_>, id: LayerId) -> Result<LayerId, EditError> {
    let layer = graph.layer(id).ok_or(EditError::NoLayer(id))?;
    let new = NewLayer::new(layer.ty(), layer.version());
    let attributes = layer.attributes().iter();
    let new = attributes.fold(new, |new, attribute| new.with_attribute(attribute.name(), attribute.value()));
    graph.add(new, &[])
}

/// The flag is true if the constant has other consumers too.
pub(super) fn decompressions(
    graph: &Graph,
    constant: LayerId,
    version: IrVersion,
) -> (Vec<(LayerId, ElementType)>, bool) {
    let (mut converts, mut others) = (Vec::new(), false);
    for id in graph.users(constant) {
        let layer = graph
            .layer(id)
            .filter(|layer| ops::kind(layer) == LayerKind::Convert && Marks::of(layer, version).is_decompression());
        match layer.and_then(|layer| layer.outputs().first()) {
            Some(port) => converts.push((id, port.element_type())),
            None => others = true,
        }
    }
    converts.sort_unstable_by_key(|(id, _)| *id);
    (converts, others)
}
