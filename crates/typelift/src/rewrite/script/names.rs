//! Search of the layers and tensors that statements name.

use crate::base::name_pattern::NamePattern;
use crate::base::names::{captures, is_glob, matches_glob, near};
use crate::edit::inputs_outputs::{End, InterfaceError};
use crate::model::graph::{FindError, Layer, Model, Output};
use crate::ops::{self, LayerKind};
use crate::rewrite::notation::closest;

/// Returns the names of the inputs or outputs that a name or pattern matches.
pub(super) fn ends(model: &Model, end: End, name: &str) -> Result<Vec<String>, String> {
    model.ends_named(end, name).map_err(|error| unknown(model, name, &error))
}

/// Returns the tensors of the model's own graph that a name or pattern matches, each with the matching name.
pub(super) fn tensors(model: &Model, name: &str) -> Result<Vec<(Output, String)>, String> {
    let error = match find_tensor(model, name) {
        Ok(tensor) => return Ok(vec![(tensor, name.to_owned())]),
        Err(error) => error,
    };
    let mut found = Vec::new();
    let is_result = |layer: &Layer| ops::kind(layer) == LayerKind::Result;
    for layer in model.graph().layers().filter(|layer| is_glob(name) && !is_result(layer)) {
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
    for name in model.ends_named(End::Output, name).ok().filter(|_| found.is_empty()).into_iter().flatten() {
        found.push((tensor(model, &name)?, name));
    }
    if found.is_empty() { Err(with_suggestion(model, name, error.to_string())) } else { Ok(found) }
}

/// Returns the new name: each wildcard of `new` is replaced by the text that the corresponding one of `old` matched.
pub(super) fn renamed(old: &str, new: &str, name: &str) -> Result<String, String> {
    let parts = captures(old, name).unwrap_or_default();
    let filled = NamePattern::new(new).fill(&parts);
    filled.ok_or_else(|| {
        format!("`{new}` must have as many `*` and `?` as `{old}`: each is replaced by the text that matched")
    })
}

/// Returns a tensor of the model's own graph: by its name, by that of its layer, or as output of a layer, `NAME.1`.
pub(super) fn tensor(model: &Model, name: &str) -> Result<Output, String> {
    find_tensor(model, name).map_err(|error| with_suggestion(model, name, error.to_string()))
}

/// Returns a tensor as [`tensor`] does. The error suggests no other name, which takes longer.
fn find_tensor(model: &Model, name: &str) -> Result<Output, FindError> {
    let graph = model.graph();
    let result = graph.tensor(name).or_else(|error| {
        let result = model.find_output(name).ok();
        let source = result.and_then(|result| graph.producer(result.input(0)));
        let port = || {
            let (layer, port) = name.rsplit_once('.')?;
            let tensor = graph.find(layer).ok()?.output(port.parse().ok()?);
            graph.output(tensor).map(|_| tensor)
        };
        source.or_else(port).ok_or(error)
    });
    let found = result?;
    // For a Result, the tensor that feeds it is returned.
    let is_result = graph.layer(found.layer).is_some_and(|layer| ops::kind(layer) == LayerKind::Result);
    let source = graph.producer(found.layer.input(0)).filter(|_| is_result);
    Ok(source.unwrap_or(found))
}

pub(super) fn unknown(model: &Model, name: &str, error: &InterfaceError) -> String {
    with_suggestion(model, name, error.to_string())
}

/// Returns the names of all layers and tensors of the model's own graph.
pub(super) fn all(model: &Model) -> impl Iterator<Item = String> {
    model.graph().layers().flat_map(|layer| {
        layer.outputs().iter().flat_map(|port| port.names()).chain([layer.name().to_owned()]).collect::<Vec<_>>()
    })
}

pub(super) fn with_suggestion(model: &Model, name: &str, message: String) -> String {
    let names: Vec<_> = all(model).filter(|known| known != name).collect();
    let names = names.iter().map(String::as_str);
    let near = if is_glob(name) { near(name, names) } else { closest(name, names).map(str::to_owned) };
    match near {
        Some(near) => format!("{message}; did you mean `{near}`?"),
        None => message,
    }
}
