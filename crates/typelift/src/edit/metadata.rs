//! Metadata of models and layers, OpenVINO's `rt_info`: options for the runtime, the origin of the model, and values of
//! users.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use crate::edit::Edit;
use crate::model::graph::{EditError, IrVersion, Layer, LayerId, Model, Output};
use crate::text::xml::{
    leaves, metadata_attribute, names_of, value_at, value_of, with_entry, with_missing, with_value, without_entry,
    without_value,
};

/// Change of a value in the metadata of a model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct InfoChange {
    /// The keys, `model_info/labels`, or the input or output with the layout, `images: layout`.
    pub path: String,
    /// The former value; `None` if there was none.
    pub before: Option<String>,
    /// The new value; `None` if there is none.
    pub after: Option<String>,
}

impl InfoChange {
    /// Compares values with their paths.
    pub(crate) fn between(
        before: impl IntoIterator<Item = (String, String)>,
        after: impl IntoIterator<Item = (String, String)>,
    ) -> impl Iterator<Item = Self> {
        let mut values = BTreeMap::<_, [Option<String>; 2]>::new();
        before.into_iter().for_each(|(path, value)| values.entry(path).or_default()[0] = Some(value));
        after.into_iter().for_each(|(path, value)| values.entry(path).or_default()[1] = Some(value));
        let different = values.into_iter().filter(|(_, [before, after])| before != after);
        different.map(|(path, [before, after])| Self { path, before, after })
    }
}

impl fmt::Display for InfoChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self { path, before: Some(before), after: None } => write!(f, "the metadata {path}={before} is removed"),
            Self { path, after, .. } => write!(f, "the metadata {path} is {}", after.as_deref().unwrap_or_default()),
        }
    }
}

impl Model {
    /// Returns the metadata value of the model under these keys: `runtime_options/KV_CACHE_PRECISION`. A key that
    /// contains `/` is in quotes: `model_info/"a/b"`. `None` if there is no value.
    ///
    /// # Examples
    /// ```
    /// # let mut model = typelift::Model::open(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/model.xml"))?;
    /// model.set_rt_info("runtime_options/KV_CACHE_PRECISION", "f16")?;
    /// assert_eq!(model.rt_info("runtime_options/KV_CACHE_PRECISION").as_deref(), Some("f16"));
    /// assert_eq!(model.rt_info("runtime_options"), None, "it is a group");
    /// assert_eq!(model.rt_info_entries(), [("runtime_options/KV_CACHE_PRECISION".to_owned(), "f16".to_owned())]);
    /// assert!(typelift::xml::write(&model, Default::default()).contains(r#"<KV_CACHE_PRECISION value="f16" />"#));
    /// assert!(model.remove_rt_info("runtime_options/KV_CACHE_PRECISION"));
    /// assert!(!model.remove_rt_info("runtime_options"), "a group without values is removed too");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn rt_info(&self, path: &str) -> Option<String> {
        value_at(self.graph.rt_info.as_deref()?, &keys(path))
    }

    /// Sets a metadata value of the model under these keys. Missing groups are created; everything else keeps its
    /// bytes.
    ///
    /// # Errors
    /// [`EditError::Other`] if the path names a group, or continues after a value.
    pub fn set_rt_info(&mut self, path: &str, value: &str) -> Result<(), EditError> {
        let old = self.graph.rt_info.as_deref().unwrap_or("<rt_info></rt_info>");
        let new = with_value(old, &keys(path), value);
        let new = new.map_err(|reason| EditError::Other(format!("rt_info {path}: {reason}")))?;
        self.graph.rt_info = Some(new.into());
        Ok(())
    }

    /// Removes a metadata value of the model, or a group with all its values. Groups without values are removed. False if
    /// nothing has this path.
    pub fn remove_rt_info(&mut self, path: &str) -> bool {
        let new = self.graph.rt_info.as_deref().and_then(|old| without_value(old, &keys(path)));
        let is_there = new.is_some();
        self.graph.rt_info = new.map(Into::into).or(self.graph.rt_info.take());
        is_there
    }

    /// Returns the metadata values of the model with their paths, in the order of the file.
    pub fn rt_info_entries(&self) -> Vec<(String, String)> {
        self.graph.rt_info.as_deref().map(entries).unwrap_or_default()
    }

    /// The changes of the metadata since it was this text.
    pub(crate) fn info_since(&self, before: Option<&str>) -> Vec<InfoChange> {
        if before == self.graph.rt_info.as_deref() {
            return Vec::new();
        }
        InfoChange::between(before.map(entries).unwrap_or_default(), self.rt_info_entries()).collect()
    }

    /// Returns the programs that made the model, by its metadata: `optimum-intel 2.2.0 (transformers 5.5.4), nncf 3.4.0
    /// int4_sym, groups of 16`. `None` if it does not say.
    ///
    /// # Examples
    /// ```
    /// # let mut model = typelift::Model::open(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/model.xml"))?;
    /// model.set_rt_info("optimum/optimum_intel_version", "2.2.0")?;
    /// model.set_rt_info("optimum/transformers_version", "5.5.4")?;
    /// assert_eq!(model.made_by().as_deref(), Some("optimum-intel 2.2.0 (transformers 5.5.4)"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn made_by(&self) -> Option<String> {
        let value = |path: &str| self.rt_info(path).filter(|value| !value.is_empty());
        let short = |version: String| version.split(['-', '+']).next().unwrap_or_default().to_owned();
        let program = |name: &str, path: &str| value(path).map(|version| format!("{name} {}", short(version)));
        let mut parts = Vec::new();
        if let Some(optimum) = program("optimum-intel", "optimum/optimum_intel_version") {
            let from = program("transformers", "optimum/transformers_version").map(|from| format!(" ({from})"));
            parts.push(optimum + &from.unwrap_or_default());
        } else if let Some(framework) = value("conversion_parameters/framework") {
            parts.push(
                program("OpenVINO", "Runtime_version").map_or(framework.clone(), |it| format!("{it} from {framework}")),
            );
        }
        parts.extend(program("openvino-tokenizers", "openvino_tokenizers_version"));
        if let Some(mode) = value("nncf/weight_compression/mode") {
            let by = program("typelift", "typelift/version").or_else(|| program("nncf", "nncf/version"));
            let group = value("nncf/weight_compression/group_size").filter(|size| size != "-1");
            let group = group.map_or(String::new(), |size| format!(", groups of {size}"));
            parts.push(format!(
                "{} {mode}{group}",
                by.unwrap_or_else(|| "an unknown tool that stored weights as".to_owned())
            ));
        } else if let Some(nncf) = program("nncf", "nncf/version") {
            parts.push(nncf);
        }
        (!parts.is_empty()).then(|| parts.join(", "))
    }

    pub(crate) fn layout(&self, end: LayerId) -> Option<String> {
        let layer = self.graph.layer(end)?;
        let of_port = self.end_tensor(layer).and_then(|port| port.rt_info.as_deref());
        [of_port, layer.rt_info.as_deref()]
            .into_iter()
            .flatten()
            .find_map(|info| value_of(info, "layout").filter(|layout| !layout.is_empty()))
    }

    /// Removes the metadata of the model, of its bodies, layers and tensors.
    pub fn clear_metadata(&mut self) -> Result<(), EditError> {
        self.edit(|graph| {
            graph.everywhere(&mut |graph| {
                let layers: Vec<_> = graph.layers().map(|layer| (layer.id(), layer.outputs().len())).collect();
                graph.graph.rt_info = None;
                layers.into_iter().try_for_each(|(id, ports)| {
                    graph.set_metadata(id, None)?;
                    graph.clear_input_metadata(id)?;
                    (0..ports).try_for_each(|port| graph.set_tensor_metadata(id.output(port), None))
                })
            })
        })?;
        self.extras.clear();
        Ok(())
    }

    pub(crate) fn add_rt_info(&mut self, other: &Self) {
        let Some(more) = other.graph.rt_info.as_deref() else { return };
        let own = self.graph.rt_info.as_deref().unwrap_or("<rt_info></rt_info>");
        let all = with_missing(own, more);
        if all != own {
            self.graph.rt_info = Some(all.into());
        }
    }
}

impl Layer {
    /// Returns a metadata value of the layer: an attribute that OpenVINO reads, such as `fused_names` or
    /// `primitives_priority`, or a user's own entry. It is empty for an attribute without a value, such as
    /// `decompression`.
    pub fn rt_info(&self, name: &str) -> Option<String> {
        value_of(self.rt_info.as_deref()?, name)
    }

    /// Returns the names under which [`rt_info`](Self::rt_info) has a value.
    pub fn rt_info_names(&self) -> Vec<String> {
        self.rt_info.as_deref().map(names_of).unwrap_or_default()
    }
}

impl Edit<'_> {
    /// Sets a metadata value of a layer. Names that OpenVINO does not read become entries of the user, which it
    /// preserves.
    ///
    /// # Errors
    /// [`EditError::NoLayer`]; [`EditError::Other`] if OpenVINO cannot read the value under this name, and in models of
    /// version 10, whose layers have no metadata.
    ///
    /// # Examples
    /// ```
    /// # let mut model = typelift::Model::open(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/model.xml"))?;
    /// let relu = model.graph().find("relu")?;
    /// model.edit(|graph| {
    ///     graph.set_rt_info(relu, "primitives_priority", "cpu:jit")?;
    ///     graph.set_rt_info(relu, "origin", "block 3")
    /// })?;
    /// let layer = model.graph().layer(relu).unwrap();
    /// assert_eq!(layer.rt_info("origin").as_deref(), Some("block 3"));
    /// assert_eq!(layer.rt_info_names(), ["primitives_priority", "origin"]);
    /// model.edit(|graph| graph.remove_rt_info(relu, "origin"))?;
    /// assert_eq!(model.graph().layer(relu).unwrap().rt_info("origin"), None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn set_rt_info(&mut self, id: LayerId, name: &str, value: &str) -> Result<(), EditError> {
        let new = self.with_rt_info(self.layer(id).ok_or(EditError::NoLayer(id))?.rt_info.as_deref(), name, value)?;
        self.set_metadata(id, Some(new.into()))
    }

    /// Sets a metadata value of a tensor, where OpenVINO reads the `layout` of an input or output.
    pub(crate) fn set_tensor_rt_info(&mut self, tensor: Output, name: &str, value: &str) -> Result<(), EditError> {
        let port = self.layer(tensor.layer).ok_or(EditError::NoLayer(tensor.layer))?.outputs().get(tensor.port);
        let new = self.with_rt_info(port.ok_or(EditError::NoOutput(tensor))?.rt_info.as_deref(), name, value)?;
        self.set_tensor_metadata(tensor, Some(new.into()))
    }

    fn with_rt_info(&self, old: Option<&str>, name: &str, value: &str) -> Result<String, EditError> {
        let refused = |reason: String| EditError::Other(format!("rt_info {name}: {reason}"));
        if self.version() == IrVersion::V10 {
            return Err(refused("layers of version 10 have no metadata".to_owned()));
        }
        Ok(match metadata_attribute(name, value).map_err(refused)? {
            Some(attribute) => {
                let value = Some((attribute, value)).filter(|(_, value)| !value.is_empty());
                let attributes: Vec<_> = [("name", name), ("version", "0")].into_iter().chain(value).collect();
                with_entry(old, name, &attributes, true)
            }
            None => with_entry(old, name, &[("name", name), ("value", value), ("version", "")], false),
        })
    }

    /// Removes the metadata of a layer under a name, if it exists.
    ///
    /// # Errors
    /// [`EditError::NoLayer`].
    pub fn remove_rt_info(&mut self, id: LayerId, name: &str) -> Result<(), EditError> {
        let old = self.layer(id).ok_or(EditError::NoLayer(id))?.rt_info.as_deref();
        let new = old.and_then(|old| without_entry(old, name));
        self.set_metadata(id, new.map(Into::into))
    }
}

/// The number of dimensions that a layout names, and true if `...` stands for further ones.
pub(crate) fn layout_dims(layout: &str) -> (usize, bool) {
    let inside = layout.trim().strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    match inside {
        Some(list) if list.trim().is_empty() => (0, false),
        Some(list) => (list.split(',').filter(|dim| dim.trim() != "...").count(), list.contains("...")),
        None => (layout.replace("...", "").chars().count(), layout.contains("...")),
    }
}

fn entries(info: &str) -> Vec<(String, String)> {
    let path = |keys: Vec<String>| keys.iter().map(|key| quoted(key)).collect::<Vec<_>>().join("/");
    leaves(info).into_iter().map(|(keys, value)| (path(keys), value)).collect()
}

/// Splits a path at each `/` outside of quotes.
fn keys(path: &str) -> Vec<&str> {
    let mut is_quoted = false;
    let keys = path.split(|c| {
        is_quoted ^= c == '"';
        c == '/' && !is_quoted
    });
    keys.map(|key| key.strip_prefix('"').and_then(|key| key.strip_suffix('"')).unwrap_or(key))
        .filter(|key| !key.is_empty())
        .collect()
}

fn quoted(key: &str) -> String {
    if key.chars().all(|c| !c.is_whitespace() && !"/=\".".contains(c)) { key.to_owned() } else { format!("\"{key}\"") }
}
