//! Precision marks: metadata that makes OpenVINO's plugins keep the precision of layers at run time.

use super::Kept;
use crate::edit::precision_marks::{Marks, Spelling};
use crate::findings::LayerRef;
use crate::model::graph::{EditError, Model};
use crate::ops::{self, LayerKind};

/// Marks layers, so that a plugin that computes in f16 or bf16 keeps them in f32. Inputs and outputs of graphs compute
/// nothing and are not marked. Returns the layers that are newly marked. A model of version 10, which has no marks,
/// becomes version 11.
pub(crate) fn mark(model: &mut Model, kept: &Kept, spelling: Spelling) -> Result<Vec<LayerRef>, EditError> {
    let unmarked = layers(model, kept, |marks| !marks.keeps_precision());
    if !unmarked.is_empty() {
        model.upgrade()?;
    }
    let precise = Marks::precise().spelled(spelling);
    set(model, unmarked, |marks| marks.and(&precise))
}

/// Removes the marks that [`mark`] adds. Returns the layers that had one.
pub(crate) fn unmark(model: &mut Model, kept: &Kept) -> Result<Vec<LayerRef>, EditError> {
    let marked = layers(model, kept, Marks::keeps_precision);
    set(model, marked, |marks: &Marks| if marks.is_decompression() { Marks::decompression() } else { Marks::default() })
}

/// The kept layers that compute something and whose marks satisfy `has`.
fn layers(model: &Model, kept: &Kept, has: impl Fn(&Marks) -> bool) -> Vec<(LayerRef, Marks)> {
    let mut found = Vec::new();
    for (place, graph) in model.walk() {
        for layer in graph.layers().filter(|layer| kept.contains(&place, layer.id())) {
            let marks = Marks::of(layer, model.version());
            let is_end = [LayerKind::Parameter, LayerKind::Result].contains(&ops::kind(layer));
            if !is_end && has(&marks) {
                found.push((LayerRef::of(&place, layer), marks));
            }
        }
    }
    found
}

fn set(
    model: &mut Model,
    layers: Vec<(LayerRef, Marks)>,
    change: impl Fn(&Marks) -> Marks,
) -> Result<Vec<LayerRef>, EditError> {
    model.edit(|edit| {
        for (layer, marks) in &layers {
            edit.at(&layer.place)?.set_marks(layer.id, &change(marks))?;
        }
        Ok(layers.into_iter().map(|(layer, _)| layer).collect())
    })
}
