//! Metadata of models and layers, what OpenVINO calls `rt_info`: options for the runtime, how the model was made, and
//! values that users keep there.

use crate::edit::Edit;
use crate::model::graph::{EditError, IrVersion, Layer, LayerId, Model};
use crate::text::xml::{
    metadata_attribute, names_of, value_at, value_of, with_entry, with_missing, with_value, without_entry,
};

impl Model {
    /// A value in the metadata of the model, by the keys that lead to it: `runtime_options/KV_CACHE_PRECISION`. `None` if
    /// there is none.
    ///
    /// # Examples
    /// ```
    /// # let mut model = typelift::Model::open(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/model.xml"))?;
    /// model.set_rt_info("runtime_options/KV_CACHE_PRECISION", "f16")?;
    /// assert_eq!(model.rt_info("runtime_options/KV_CACHE_PRECISION").as_deref(), Some("f16"));
    /// assert_eq!(model.rt_info("runtime_options"), None, "it is a group");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn rt_info(&self, path: &str) -> Option<String> {
        value_at(self.graph.rt_info.as_deref()?, &keys(path))
    }

    /// Gives the metadata of the model a value, in the place of the one that it has under these keys. Groups that are not
    /// there are made; everything else keeps its bytes.
    ///
    /// # Errors
    /// [`EditError::Other`] if the path names a group, or something inside a value.
    ///
    /// # Examples
    /// ```
    /// # let mut model = typelift::Model::open(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/model.xml"))?;
    /// model.set_rt_info("runtime_options/ACTIVATIONS_SCALE_FACTOR", "8.0")?;
    /// let text = typelift::xml::write(&model, Default::default());
    /// assert!(text.contains(r#"<ACTIVATIONS_SCALE_FACTOR value="8.0" />"#));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn set_rt_info(&mut self, path: &str, value: &str) -> Result<(), EditError> {
        let old = self.graph.rt_info.as_deref().unwrap_or("<rt_info></rt_info>");
        let new = with_value(old, &keys(path), value);
        let new = new.map_err(|reason| EditError::Other(format!("rt_info {path}: {reason}")))?;
        self.graph.rt_info = Some(new.into());
        Ok(())
    }

    /// Adds what the metadata of another model has and that of this one lacks.
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
    /// A value in the metadata of the layer: that of an attribute that OpenVINO knows, such as `fused_names` or
    /// `primitives_priority`, empty for one that has no value, such as `decompression`; or that of an entry that a user made.
    #[must_use]
    pub fn rt_info(&self, name: &str) -> Option<String> {
        value_of(self.rt_info.as_deref()?, name)
    }

    /// The names under which [`rt_info`](Self::rt_info) has a value.
    ///
    /// # Examples
    /// ```
    /// # let mut model = typelift::Model::open(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/model.xml"))?;
    /// let relu = model.graph().find("relu")?;
    /// model.edit(|graph| graph.set_rt_info(relu, "origin", "block 3"))?;
    /// assert_eq!(model.graph().layer(relu).unwrap().rt_info_names(), ["origin"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn rt_info_names(&self) -> Vec<String> {
        self.rt_info.as_deref().map(names_of).unwrap_or_default()
    }
}

impl Edit<'_> {
    /// Gives the metadata of a layer a value, in the place of the one that it has under this name. Names that OpenVINO does
    /// not know become entries of the user, which it hands on.
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
    /// let relu = model.graph().layer(relu).unwrap();
    /// assert_eq!(relu.rt_info("origin").as_deref(), Some("block 3"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn set_rt_info(&mut self, id: LayerId, name: &str, value: &str) -> Result<(), EditError> {
        let refused = |reason: String| EditError::Other(format!("rt_info {name}: {reason}"));
        if self.version() == IrVersion::V10 {
            return Err(refused("layers of version 10 have no metadata".to_owned()));
        }
        let written = metadata_attribute(name, value).map_err(refused)?;
        let old = self.layer(id).ok_or(EditError::NoLayer(id))?.rt_info.as_deref();
        let new = match written {
            Some(attribute) => {
                let value = Some((attribute, value)).filter(|(_, value)| !value.is_empty());
                let attributes: Vec<_> = [("name", name), ("version", "0")].into_iter().chain(value).collect();
                with_entry(old, name, &attributes, true)
            }
            None => with_entry(old, name, &[("name", name), ("value", value), ("version", "")], false),
        };
        self.set_metadata(id, Some(new.into()))
    }

    /// Removes what the metadata of a layer says under a name. It need not be there.
    ///
    /// # Errors
    /// [`EditError::NoLayer`].
    ///
    /// # Examples
    /// ```
    /// # let mut model = typelift::Model::open(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/model.xml"))?;
    /// let relu = model.graph().find("relu")?;
    /// model.edit(|graph| {
    ///     graph.set_rt_info(relu, "origin", "block 3")?;
    ///     graph.remove_rt_info(relu, "origin")
    /// })?;
    /// assert_eq!(model.graph().layer(relu).unwrap().rt_info("origin"), None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn remove_rt_info(&mut self, id: LayerId, name: &str) -> Result<(), EditError> {
        let old = self.layer(id).ok_or(EditError::NoLayer(id))?.rt_info.as_deref();
        let new = old.and_then(|old| without_entry(old, name));
        self.set_metadata(id, new.map(Into::into))
    }
}

fn keys(path: &str) -> Vec<&str> {
    path.split('/').filter(|key| !key.is_empty()).collect()
}
