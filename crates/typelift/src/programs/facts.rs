//! Facts about a model on which programs rely: inputs, outputs, variables, metadata, and the files beside it.

use std::path::{Path, PathBuf};

use serde_json::Value;
use typelift_promote::ElementType;

use crate::base::hash::HashSet;
use crate::edit::inputs_outputs::End;
use crate::model::graph::{Layer, LayerId, Model, Output, split_names};
use crate::model::shape::TensorType;
use crate::ops::{self, LayerKind};
use crate::rewrite::notation::Quoted;

/// Largest settings file that is read.
const LARGEST: u64 = 16 << 20;

/// An input or output of a model.
pub(super) struct Port {
    /// The Parameter or Result.
    pub(super) layer: LayerId,
    /// The names by which programs find it. Names of a Result hide those of its producer.
    pub(super) names: Vec<String>,
    /// The name in messages.
    pub(super) shown: String,
    /// Names of layers by which statements find it if it has no tensor name.
    aliases: Vec<String>,
    pub(super) tensor: TensorType,
    pub(super) is_used: bool,
}

impl Port {
    pub(super) fn is(&self, name: &str) -> bool {
        self.names.iter().any(|known| known == name)
    }

    pub(super) fn element_type(&self) -> ElementType {
        self.tensor.element_type
    }

    pub(super) fn rank(&self) -> Option<usize> {
        self.tensor.shape.rank()
    }

    pub(super) fn length(&self, axis: usize) -> Option<i64> {
        self.tensor.shape.dims()?.get(axis)?.value()
    }

    pub(super) fn address(&self) -> String {
        Quoted::name(&self.shown).to_string()
    }

    /// Every name by which a statement may find it, as statements read them.
    pub(super) fn addresses(&self) -> impl Iterator<Item = String> {
        std::iter::once(&self.shown).chain(&self.aliases).map(|name| Quoted::name(name).to_string())
    }
}

/// Variable of a model with the layers around its ReadValue.
pub(super) struct Variable {
    pub(super) read: LayerId,
    pub(super) id: String,
    /// True if a Gather reorders it by an input.
    pub(super) is_reordered: bool,
    /// True if a Convert separates it from the layers that use it.
    pub(super) is_converted: bool,
    /// True if a Concat extends it: it is a cache.
    pub(super) grows: bool,
}

pub(super) struct Facts<'a> {
    pub(super) model: &'a Model,
    /// The path of the model; `None` if it comes from a stream.
    pub(super) file: Option<&'a Path>,
    pub(super) inputs: Vec<Port>,
    pub(super) outputs: Vec<Port>,
    pub(super) variables: Vec<Variable>,
    pub(super) has_attention: bool,
}

impl<'a> Facts<'a> {
    pub(super) fn new(model: &'a Model, file: Option<&'a Path>) -> Self {
        let is_attention = |layer: &Layer| layer.operation().is_some_and(|row| row.name == "ScaledDotProductAttention");
        let reads = model.graph.layers().filter(|layer| ops::kind(layer) == LayerKind::ReadValue);
        Self {
            model,
            file,
            inputs: model.inputs().map(|layer| port(model, layer)).collect(),
            outputs: model.outputs().map(|layer| port(model, layer)).collect(),
            variables: reads.map(|layer| variable(model, layer)).collect(),
            has_attention: model.walk().any(|(_, graph)| graph.unordered().any(is_attention)),
        }
    }

    pub(super) fn ports(&self, end: End) -> &[Port] {
        if end == End::Input { &self.inputs } else { &self.outputs }
    }

    pub(super) fn input(&self, name: &str) -> Option<&Port> {
        self.inputs.iter().find(|port| port.is(name))
    }

    pub(super) fn output(&self, name: &str) -> Option<&Port> {
        self.outputs.iter().find(|port| port.is(name))
    }

    pub(super) fn key(&self, path: &str) -> Option<String> {
        self.model.rt_info(path)
    }

    pub(super) fn variables_that_grow(&self) -> impl Iterator<Item = &Variable> {
        self.variables.iter().filter(|variable| variable.grows)
    }

    pub(super) fn stem(&self) -> &str {
        self.file.and_then(Path::file_stem).and_then(|stem| stem.to_str()).unwrap_or_default()
    }

    pub(super) fn folder_name(&self) -> String {
        let folder = self.file.map(|file| self.beside(".").unwrap_or_else(|| file.to_owned()));
        let folder = folder.and_then(|folder| folder.canonicalize().ok());
        folder.and_then(|folder| folder.file_name().map(|name| name.to_string_lossy().into_owned())).unwrap_or_default()
    }

    /// The path of a file relative to the folder of the model; `None` if the model comes from a stream.
    pub(super) fn beside(&self, name: &str) -> Option<PathBuf> {
        let folder = self.file?.parent().filter(|folder| !folder.as_os_str().is_empty());
        Some(folder.unwrap_or(Path::new(".")).join(name))
    }

    pub(super) fn has_file(&self, name: &str) -> bool {
        self.beside(name).is_some_and(|path| path.exists())
    }

    /// Reads a settings file beside the model; `None` if it does not exist or is not JSON.
    pub(super) fn json(&self, name: &str) -> Option<Value> {
        let path = self.beside(name)?;
        let is_small = path.metadata().is_ok_and(|it| it.is_file() && it.len() <= LARGEST);
        let text = is_small.then(|| std::fs::read(path).ok()).flatten()?;
        serde_json::from_slice(&text).ok()
    }

    /// Reads another model beside this one. Its types and shapes are those that the file declares.
    pub(super) fn neighbour(&self, name: &str) -> Option<Model> {
        let path = self.beside(name).filter(|path| path.is_file())?;
        Model::open(path).ok()
    }
}

fn port(model: &Model, layer: &Layer) -> Port {
    let tensor = model.end_tensor(layer);
    let own = layer.output_names().map(split_names).filter(|names| !names.is_empty());
    let names = own.or_else(|| Some(tensor?.names())).unwrap_or_default();
    let producer = model.graph.sources(layer.id()).next().and_then(|id| model.graph.layer(id));
    Port {
        layer: layer.id(),
        shown: names.first().cloned().unwrap_or_else(|| layer.name().to_owned()),
        aliases: std::iter::once(layer).chain(producer).map(|layer| layer.name().to_owned()).collect(),
        names,
        tensor: tensor.map_or_else(TensorType::dynamic, |port| port.tensor_type()),
        is_used: ops::kind(layer) == LayerKind::Result || model.graph.users(layer.id()).next().is_some(),
    }
}

fn variable(model: &Model, read: &Layer) -> Variable {
    let graph = &model.graph;
    let named = |layer: &Layer, name: &str| layer.operation().is_some_and(|row| row.name == name);
    let users = |tensor: Output| -> Vec<&Layer> {
        let consumers = graph.consumers(tensor).filter_map(|input| Some((graph.layer(input.layer)?, input.port)));
        consumers.filter(|(layer, port)| *port == 0 || named(layer, "Concat")).map(|(layer, _)| layer).collect()
    };
    let mut variable = Variable {
        read: read.id(),
        id: read.attribute("variable_id").unwrap_or_default().to_owned(),
        is_reordered: false,
        is_converted: false,
        grows: false,
    };
    let (mut pending, mut seen) = (vec![read.id()], HashSet::default());
    while let Some(id) = pending.pop() {
        for layer in users(id.output(0)) {
            let is_gather = named(layer, "Gather");
            let follows = match ops::kind(layer) {
                LayerKind::Convert => {
                    variable.is_converted = true;
                    true
                }
                _ if is_gather => {
                    variable.is_reordered |= graph.producer(layer.id().input(1)).is_some_and(|from| {
                        let behind_convert = graph.layer(from.layer).filter(|it| ops::kind(it) == LayerKind::Convert);
                        let from = behind_convert.and_then(|it| graph.producer(it.id().input(0))).unwrap_or(from);
                        graph.layer(from.layer).is_some_and(|layer| ops::kind(layer) == LayerKind::Parameter)
                    });
                    true
                }
                _ => {
                    variable.grows |= named(layer, "Concat");
                    false
                }
            };
            if follows && seen.insert(layer.id()) {
                pending.push(layer.id());
            }
        }
    }
    variable
}
