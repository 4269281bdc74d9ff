//! Checks that reject edits whose result OpenVINO would not run, or would run with other defaults.

use super::Edit;
use crate::base::names::on_one_line;
use crate::findings::list;
use crate::model::graph::{EditError, Layer, LayerId, Output};
use crate::ops::{self, LayerKind};

impl Edit<'_> {
    /// Rejects a new edge from a Result. Existing ones in a file are accepted.
    pub(super) fn check_source(&self, from: Output) -> Result<(), EditError> {
        let Some(layer) = self.layer(from.layer).filter(|layer| ops::kind(layer) == LayerKind::Result) else {
            return Ok(());
        };
        if self.users(from.layer).next().is_some() {
            return Ok(());
        }
        let reason = format!("{} cannot feed another layer; use the tensor before it", describe(layer));
        Err(refused(layer, reason))
    }

    /// Rejects three changes: a layer with used or named outputs to a Result, a Result to another operation, and a
    /// Parameter that a port map refers to.
    pub(super) fn check_end(&self, id: LayerId, was: LayerKind) -> Result<(), EditError> {
        let layer = self.graph.checked(id)?;
        let reason = match (was, ops::kind(layer)) {
            (was, is) if was == is => return Ok(()),
            (LayerKind::Result, _) => {
                format!("{} is an output of its graph; remove it, or put the new layer before it", describe(layer))
            }
            (LayerKind::Parameter, _) if self.joints.name(id) => {
                let reason = "the port map of the layer around the body refers to it".to_owned();
                return Err(EditError::Joined { layer: id, reason });
            }
            (_, LayerKind::Result) => {
                let user = self.users(id).next().and_then(|user| self.layer(user));
                let named = || layer.outputs().iter().flat_map(|port| port.names()).next();
                let used = user.map(|user| format!("feeds {}", describe(user)));
                let Some(used) = used.or_else(|| Some(format!("produces the tensor `{}`", named()?))) else {
                    return Ok(());
                };
                format!("{} {used}; add another Result", describe(layer))
            }
            _ => return Ok(()),
        };
        Err(refused(layer, reason))
    }

    /// Refuses a layer with attributes that XML cannot hold, or without those that its operation requires, except the ones
    /// that it lacked `before`.
    pub(super) fn check_attributes(&self, id: LayerId, before: &[&str]) -> Result<(), EditError> {
        let layer = self.graph.checked(id)?;
        layer.attributes().iter().try_for_each(|attribute| check_attribute_name(attribute.name()))?;
        let missing: Vec<_> = missing_attributes(layer).filter(|name| !before.contains(name)).collect();
        if missing.is_empty() {
            return Ok(());
        }
        let quoted = list(missing.iter().map(|name| format!("`{name}`")).collect(), "and");
        let example = missing.iter().map(|name| format!("{name}=…")).collect::<Vec<_>>().join(", ");
        Err(refused(layer, format!("it requires {quoted}; give values, as in {{{example}}}")))
    }
}

/// Rejects names of tensors that OpenVINO would drop.
pub(super) fn check_names(names: &[impl AsRef<str>]) -> Result<(), EditError> {
    if names.iter().any(|name| name.as_ref().is_empty()) { Err(EditError::EmptyName) } else { Ok(()) }
}

pub(super) fn check_attribute_name(name: &str) -> Result<(), EditError> {
    let is_start = |c: char| c.is_alphabetic() || c == '_' || c == ':';
    let is_rest = |c: char| is_start(c) || c.is_numeric() || ['-', '.', '\u{b7}'].contains(&c);
    if name.starts_with(is_start) && name.chars().all(is_rest) {
        return Ok(());
    }
    Err(EditError::Other(format!("`{}` is not a name that an attribute can have", on_one_line(name))))
}

pub(super) fn missing_attributes(layer: &Layer) -> impl Iterator<Item = &'static str> {
    layer.operation().into_iter().flat_map(|row| row.missing_attributes(layer))
}

fn describe(layer: &Layer) -> String {
    format!("layer {} `{}`", layer.id(), layer.name())
}

pub(super) fn refused(layer: &Layer, reason: String) -> EditError {
    EditError::Refused { operation: ops::in_statements(layer), reason }
}
