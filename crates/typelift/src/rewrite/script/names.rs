//! Search of the layers and tensors that statements name.

use crate::base::name_pattern::NamePattern;
use crate::base::names::{captures, is_glob, matches_glob, near};
use crate::edit::Edit;
use crate::edit::inputs_outputs::{End, InterfaceError};
use crate::model::graph::{EditError, LayerId, Model, Output};
use crate::ops::{self, LayerKind};

/// Edits a model. The error is that of a statement.
pub(super) fn edited<T>(
    model: &mut Model,
    edits: impl FnOnce(&mut Edit<'_>) -> Result<T, EditError>,
) -> Result<T, String> {
    model.edit(edits).map_err(|error| error.describe(model.graph()))
}

pub(super) fn ends(model: &Model, end: End, name: &str) -> Result<Vec<(LayerId, String)>, String> {
    model.ends_matching(end, name).map_err(|error| unknown(model, name, &error))
}

pub(super) fn tensors(model: &Model, name: &str) -> Result<Vec<(Output, String)>, String> {
    let error = match model.graph().tensor(name) {
        Ok(tensor) => return Ok(vec![(tensor, name.to_owned())]),
        Err(error) => error,
    };
    let mut found = Vec::new();
    for layer in model.graph().layers().filter(|layer| is_glob(name) && ops::kind(layer) != LayerKind::Result) {
        for (at, port) in layer.outputs().iter().enumerate() {
            let mut names = port.names();
            if names.is_empty() && at == 0 {
                names.push(layer.name().to_owned());
            }
            let fitting = names.into_iter().find(|known| matches_glob(name, known));
            found.extend(fitting.map(|known| (layer.id().output(at), known)));
        }
    }
    // An output without a tensor name is found by its Result.
    if found.is_empty() {
        let ends = model.ends_matching(End::Output, name).unwrap_or_default();
        found.extend(ends.into_iter().filter_map(|(id, name)| Some((model.graph().producer(id.input(0))?, name))));
    }
    // A pattern of layer names, or a name as the program shortens it.
    let layers = if found.is_empty() { model.find_all(name).unwrap_or_default() } else { Vec::new() };
    for (_, id) in layers.into_iter().filter(|(place, _)| place.is_model()) {
        let named = model.graph().layer(id).map(|layer| layer.name().to_owned()).unwrap_or_default();
        found.push((model.graph().main_tensor(id), named));
    }
    if found.is_empty() { Err(with_suggestion(model, name, error.to_string())) } else { Ok(found) }
}

pub(super) fn renamed(old: &str, new: &str, name: &str) -> Result<String, String> {
    let parts = captures(old, name).unwrap_or_default();
    let filled = NamePattern::new(new).fill(&parts);
    filled.ok_or_else(|| {
        format!("`{new}` must have as many `*` and `?` as `{old}`: each is replaced by the text that matched")
    })
}

pub(super) fn tensor(model: &Model, name: &str) -> Result<Output, String> {
    model.graph().tensor(name).map_err(|error| with_suggestion(model, name, error.to_string()))
}

pub(super) fn unknown(model: &Model, name: &str, error: &InterfaceError) -> String {
    let found = match error {
        // An input is not meant where an output is missing.
        InterfaceError::Unknown { known, .. } => near(name, known.iter().map(String::as_str)),
        _ => model.nearest_name(name),
    };
    found.map_or_else(|| error.to_string(), |near| format!("{error}; did you mean `{near}`?"))
}

pub(super) fn all(model: &Model) -> impl Iterator<Item = String> {
    model.graph().layers().flat_map(|layer| {
        layer.outputs().iter().flat_map(|port| port.names()).chain([layer.name().to_owned()]).collect::<Vec<_>>()
    })
}

pub(super) fn with_suggestion(model: &Model, name: &str, message: String) -> String {
    match model.nearest_name(name) {
        Some(near) => format!("{message}; did you mean `{near}`?"),
        None => message,
    }
}
