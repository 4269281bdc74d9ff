//! Selection of the layers that are shown.

use std::collections::HashSet;

use typelift::graph::{Body, FindError, Place};
use typelift::ops::{self, LayerKind};
use typelift::{Graph, Layer, LayerId, Model, Output};

use crate::failure::Failure;
use crate::input;

/// Selection of layers.
#[derive(Clone, Debug, Default, PartialEq, Eq, clap::Args)]
pub struct SelectionArgs {
    /// Show a layer and its neighbours: a name, an id, or `loop/body/x` for a layer in a body
    #[arg(long, value_name = "NAME")]
    pub around: Option<String>,
    /// Number of layers before and after the one of --around
    #[arg(long, value_name = "N", default_value_t = 2, requires = "around")]
    pub depth: usize,
    /// Show only layers of these operations, such as Convert
    #[arg(long, value_name = "TYPE", value_delimiter = ',')]
    pub only: Vec<String>,
    /// Show constants inside their consumers instead of on their own lines: Add(0, 1.5)
    #[arg(long)]
    pub fold_constants: bool,
}

pub(crate) struct Selection<'a> {
    /// The graph where the listing begins.
    pub(crate) graph: &'a Graph,
    /// The layers near the requested one; bodies are not opened then.
    near: Option<HashSet<LayerId>>,
    /// The operations; all if empty.
    only: Vec<String>,
    /// True if constants are shown inside their consumers.
    pub(crate) folds: bool,
}

impl SelectionArgs {
    /// Finds the selection in this model.
    ///
    /// # Errors
    /// [`Failure`] if no layer has the name or the operation, or several have the name.
    pub(crate) fn find<'a>(&self, model: &'a Model) -> Result<Selection<'a>, Failure> {
        let mut selection = Selection { folds: self.fold_constants, ..Selection::all(model.graph()) };
        if let Some(name) = &self.around {
            let (place, id) = find(model, name)?;
            selection.graph = model.graph_at(&place).unwrap_or(model.graph());
            selection.near = Some(near(selection.graph, id, self.depth));
        }
        for ty in &self.only {
            known_operation(model, ty)?;
        }
        selection.only.clone_from(&self.only);
        Ok(selection)
    }
}

impl<'a> Selection<'a> {
    pub(crate) fn all(graph: &'a Graph) -> Self {
        Self { graph, near: None, only: Vec::new(), folds: false }
    }

    pub(crate) fn is_all(&self) -> bool {
        self.near.is_none() && self.only.is_empty() && !self.folds
    }

    /// Iterates over the selected layers of a graph, including those with selected layers in their bodies.
    pub(crate) fn layers<'g>(&'g self, graph: &'g Graph) -> impl Iterator<Item = &'g Layer> {
        graph.layers().filter(move |layer| self.shows(graph, layer))
    }

    pub(crate) fn shows(&self, graph: &Graph, layer: &Layer) -> bool {
        if self.near.as_ref().is_some_and(|near| !near.contains(&layer.id())) || self.is_folded(graph, layer) {
            return false;
        }
        self.is_wanted(layer) || layer.bodies().iter().any(|body| self.opens(body))
    }

    pub(crate) fn opens(&self, body: &Body) -> bool {
        if self.near.is_some() {
            return false;
        }
        let mut pending = vec![&body.graph];
        while let Some(graph) = pending.pop() {
            if graph.layers().any(|layer| self.is_wanted(layer) && !self.is_folded(graph, layer)) {
                return true;
            }
            pending.extend(graph.layers().flat_map(Layer::bodies).map(|body| &body.graph));
        }
        self.only.is_empty()
    }

    fn is_folded(&self, graph: &Graph, layer: &Layer) -> bool {
        self.folds && ops::kind(layer) == LayerKind::Constant && graph.users(layer.id()).next().is_some()
    }

    fn is_wanted(&self, layer: &Layer) -> bool {
        self.only.is_empty() || self.only.iter().any(|ty| is_operation(layer, ty))
    }
}

/// The name may have the spelling of the file or of OpenVINO.
fn is_operation(layer: &Layer, ty: &str) -> bool {
    let canonical = layer.operation().map(|row| row.name);
    layer.ty().eq_ignore_ascii_case(ty) || canonical.is_some_and(|name| name.eq_ignore_ascii_case(ty))
}

fn near(graph: &Graph, id: LayerId, depth: usize) -> HashSet<LayerId> {
    let mut near =
        within(id, depth, |id| graph.producers(id).into_iter().flatten().map(|Output { layer, .. }| layer).collect());
    near.extend(within(id, depth, |id: LayerId| graph.users(id).collect()));
    near
}

fn within(id: LayerId, depth: usize, next: impl Fn(LayerId) -> Vec<LayerId>) -> HashSet<LayerId> {
    let (mut found, mut edge) = (HashSet::from([id]), vec![id]);
    for _ in 0..depth {
        let beyond: Vec<_> = edge.iter().flat_map(|&id| next(id)).collect();
        edge = beyond.into_iter().filter(|&id| found.insert(id)).collect();
        if edge.is_empty() {
            break;
        }
    }
    found
}

fn find(model: &Model, word: &str) -> Result<(Place, LayerId), Failure> {
    model.find(word).map_err(|error| not_found(model, word, &error))
}

/// Finds a tensor.
///
/// # Errors
/// The word means no tensor, or several.
pub(crate) fn find_tensor(model: &Model, word: &str) -> Result<(Place, Output), Failure> {
    model.find_tensor(word).map_err(|error| not_found(model, word, &error))
}

fn not_found(model: &Model, word: &str, error: &FindError) -> Failure {
    let failure = Failure::new(error.to_string());
    match error {
        FindError::Unknown(_) => input::with_nearest(failure, model, word),
        FindError::Ambiguous { .. } => failure.help("ask for one of them"),
        _ => failure,
    }
}

/// Fails if an operation is neither known nor in the model.
fn known_operation(model: &Model, ty: &str) -> Result<(), Failure> {
    let (mut names, mut pending) = (HashSet::new(), vec![model.graph()]);
    while let Some(graph) = pending.pop() {
        for layer in graph.layers() {
            if is_operation(layer, ty) {
                return Ok(());
            }
            names.insert(layer.ty());
            pending.extend(layer.bodies().iter().map(|body| &body.graph));
        }
    }
    let known: Vec<_> = ops::all().map(|row| row.name).collect();
    let mut opsets = (1..=ops::LAST_OPSET).map(|opset| format!("opset{opset}"));
    if known.iter().any(|name| name.eq_ignore_ascii_case(ty)) || opsets.any(|it| ops::lookup(ty, &it).is_some()) {
        return Ok(());
    }
    let failure = Failure::new(format!("`{ty}` is not an operation, and no layer of the model has it"));
    Err(match ops::meant(ty).filter(|meant| meant.operation != Some(ty)) {
        Some(meant) => failure.help(meant.advice),
        None => failure.help("`typelift stats` lists the operations of the model"),
    })
}
