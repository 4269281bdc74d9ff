//! A model that is safe to send: without names and metadata of its owner.

use std::collections::HashMap;

use crate::edit::Edit;
use crate::model::graph::{EditError, Layer, LayerId, Model};

/// Removes the metadata of a model: that of its layers and tensors, and its own.
///
/// # Errors
/// An edit is refused.
///
/// # Examples
/// ```
/// # let mut model = typelift::Model::open(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/model.xml"))?;
/// model.set_rt_info("owner", "me")?;
/// let plain = typelift::reduce::without_metadata(&model)?;
/// assert_eq!(plain.rt_info("owner"), None);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn without_metadata(model: &Model) -> Result<Model, EditError> {
    let mut model = model.clone();
    model.clear_metadata()?;
    Ok(model)
}

/// Gives all layers, tensors and variables of a model names that say nothing, and removes its metadata.
///
/// # Errors
/// An edit is refused.
///
/// # Examples
/// ```
/// # let model = typelift::Model::open(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/model.xml"))?;
/// let anonymous = typelift::reduce::anonymized(&model)?;
/// assert!(anonymous.graph().find("relu").is_err());
/// assert_eq!(anonymous.graph().len(), model.graph().len());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn anonymized(model: &Model) -> Result<Model, EditError> {
    let mut model = without_metadata(model)?;
    model.name = Some("model".into());
    let mut names = Names::default();
    model.edit(|graph| graph.everywhere(&mut |graph| names.replace(graph)))?;
    Ok(model)
}

#[derive(Default)]
struct Names {
    layers: usize,
    tensors: usize,
    variables: HashMap<String, String>,
}

impl Names {
    fn replace(&mut self, graph: &mut Edit<'_>) -> Result<(), EditError> {
        let layers: Vec<LayerId> = graph.layers().map(Layer::id).collect();
        // Old names go first, so that no new one is taken.
        for &id in &layers {
            let ports = graph.layer(id).map_or(0, |layer| layer.outputs().len());
            let named: Vec<usize> = (0..ports)
                .filter(|&port| graph.output(id.output(port)).is_some_and(|it| !it.names().is_empty()))
                .collect();
            for port in named {
                self.tensors += 1;
                graph.set_names(id.output(port), vec![format!("t{}", self.tensors)])?;
            }
        }
        for id in layers {
            let Some(layer) = graph.layer(id) else { continue };
            let name = format!("{}_{}", layer.ty(), self.layers);
            self.layers += 1;
            let has_names = layer.output_names().is_some();
            let variable = layer.attribute("variable_id").map(str::to_owned);
            graph.set_name(id, &name)?;
            if has_names {
                graph.set_output_names(id, Vec::new())?;
            }
            if let Some(variable) = variable {
                let count = self.variables.len();
                let new = self.variables.entry(variable).or_insert_with(|| format!("state_{count}")).clone();
                graph.set_attribute(id, "variable_id", new)?;
            }
        }
        Ok(())
    }
}
