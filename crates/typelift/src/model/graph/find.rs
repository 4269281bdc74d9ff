//! Finding layers and tensors by name.

use thiserror::Error;

use super::{Body, Graph, Layer, LayerId, Model, Output, Place};

/// Reason why a name does not identify one layer or tensor.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum FindError {
    /// Nothing has this name.
    #[error("no layer and no tensor is called `{0}`")]
    Unknown(String),
    /// Several layers have this name.
    #[error("several layers are called `{name}`: {}", .layers.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))]
    Ambiguous {
        /// The name that was asked for.
        name: String,
        /// The layers that have it.
        layers: Vec<LayerId>,
    },
}

impl Graph {
    /// Returns the layer with this name. If no layer has it, returns the producer of the tensor with this name, or else
    /// the layer with this id.
    ///
    /// # Errors
    /// [`FindError`] if there is none, or more than one.
    pub fn find(&self, name: &str) -> Result<LayerId, FindError> {
        self.find_among(name, || self.unordered())
    }

    /// Finds a layer as [`find`](Self::find) does. `candidates` must contain all layers of this name.
    pub(super) fn find_among<'g, I: Iterator<Item = &'g Layer>>(
        &'g self,
        name: &str,
        layers: impl Fn() -> I,
    ) -> Result<LayerId, FindError> {
        let makes = |layer: &Layer| layer.outputs.iter().any(|port| port.names().iter().any(|known| known == name));
        let id = || name.parse().ok().map(LayerId).filter(|&id| self.layer(id).is_some());
        match the_one(name, layers().filter(|layer| *layer.name == *name))? {
            Some(id) => Ok(id),
            None => match the_one(name, layers().filter(|layer| makes(layer)))? {
                Some(id) => Ok(id),
                None => id().ok_or_else(|| FindError::Unknown(name.to_owned())),
            },
        }
    }

    /// Returns the tensor with this name. If no tensor has it, returns the first output of the layer that
    /// [`find`](Self::find) returns.
    ///
    /// # Errors
    /// [`FindError`] if there is none, or more than one.
    pub fn tensor(&self, name: &str) -> Result<Output, FindError> {
        self.tensor_among(name, || self.unordered())
    }

    /// Finds a tensor as [`tensor`](Self::tensor) does. The candidates must contain all layers of this name.
    pub(super) fn tensor_among<'g, I: Iterator<Item = &'g Layer>>(
        &'g self,
        name: &str,
        layers: impl Fn() -> I,
    ) -> Result<Output, FindError> {
        match self.tensor_named_among(name, layers())? {
            Some(output) => Ok(output),
            None => Ok(self.find_among(name, layers)?.output(0)),
        }
    }

    /// Returns the tensor with this name, if there is one.
    ///
    /// # Errors
    /// [`FindError::Ambiguous`].
    pub fn tensor_named(&self, name: &str) -> Result<Option<Output>, FindError> {
        self.tensor_named_among(name, self.unordered())
    }

    fn tensor_named_among<'g>(
        &'g self,
        name: &str,
        layers: impl Iterator<Item = &'g Layer>,
    ) -> Result<Option<Output>, FindError> {
        let port = |layer: &Layer| layer.outputs.iter().position(|port| port.names().iter().any(|n| n == name));
        let found = the_one(name, layers.filter(|layer| port(layer).is_some()))?;
        Ok(found.and_then(|id| Some(id.output(port(self.layer(id)?)?))))
    }
}

/// Returns the layer if there is one, `None` if there is none, and an error if there are several.
fn the_one<'g>(name: &str, layers: impl Iterator<Item = &'g Layer>) -> Result<Option<LayerId>, FindError> {
    match layers.map(|layer| layer.id).collect::<Vec<_>>()[..] {
        [] => Ok(None),
        [id] => Ok(Some(id)),
        ref layers => Err(FindError::Ambiguous { name: name.to_owned(), layers: layers.to_vec() }),
    }
}

impl Model {
    /// Returns the graph of the model and those of all bodies, each with its place. A graph comes before those inside
    /// it.
    ///
    /// # Examples
    /// ```
    /// # let model = typelift::Model::open(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/model.xml"))?;
    /// let layers: usize = model.walk().map(|(_, graph)| graph.len()).sum();
    /// assert_eq!(layers, 5);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn walk(&self) -> impl DoubleEndedIterator<Item = (Place, &Graph)> {
        let (mut found, mut next) = (vec![(Place::default(), self.graph())], 0);
        while let Some((place, graph)) = found.get(next).cloned() {
            next += 1;
            for layer in graph.owners() {
                let bodies = layer.bodies.iter().enumerate();
                found.extend(bodies.map(|(at, body)| (place.inside(layer, at, body.name()), &body.graph)));
            }
        }
        found.into_iter()
    }

    /// Returns the graph at a place.
    #[must_use]
    pub fn graph_at(&self, place: &Place) -> Option<&Graph> {
        place
            .steps()
            .iter()
            .try_fold(self.graph(), |graph, &(layer, at)| Some(&graph.layer(layer)?.bodies.get(at)?.graph))
    }

    /// Returns the layer and the body that a place is in, and the place of the layer; `None` for the model's own graph.
    pub(crate) fn owner_of(&self, place: &Place) -> Option<(Place, &Layer, &Body)> {
        let (&(id, at), before) = place.steps().split_last()?;
        let (mut outside, mut graph) = (Place::default(), self.graph());
        for &(id, at) in before {
            let layer = graph.layer(id)?;
            let body = layer.bodies.get(at)?;
            (outside, graph) = (outside.inside(layer, at, body.name()), &body.graph);
        }
        let owner = graph.layer(id)?;
        Some((outside, owner, owner.bodies.get(at)?))
    }

    /// Returns the layer with this name, tensor name or id, as [`Graph::find`] does, and the place of its graph.
    /// `loop/body/x` is `x` in the body `body` of the layer `loop`. A name of the model's own graph is not searched in
    /// bodies.
    ///
    /// # Errors
    /// [`FindError`] if there is none, or more than one.
    pub fn find(&self, path: &str) -> Result<(Place, LayerId), FindError> {
        match self.graph().find(path) {
            Ok(id) => Ok((Place::default(), id)),
            Err(FindError::Unknown(_)) => self.find_in_bodies(path),
            Err(error) => Err(error),
        }
    }

    /// Finds a layer as [`find`](Self::find) does, if the model's own graph has none of this name.
    pub(super) fn find_in_bodies(&self, path: &str) -> Result<(Place, LayerId), FindError> {
        let mut pending = vec![(Place::default(), self.graph(), path)];
        while let Some((place, graph, rest)) = pending.pop() {
            if !place.is_model() {
                match graph.find(rest) {
                    Ok(id) => return Ok((place, id)),
                    Err(FindError::Unknown(_)) => {}
                    Err(error) => return Err(error),
                }
            }
            let owners = rest.contains('/').then(|| graph.owners()).into_iter().flatten();
            for layer in owners {
                let inside = rest.strip_prefix(layer.name()).and_then(|rest| rest.strip_prefix('/'));
                for (at, body) in layer.bodies.iter().enumerate() {
                    let rest = inside.and_then(|rest| rest.strip_prefix(body.name.as_str())?.strip_prefix('/'));
                    pending.extend(rest.map(|rest| (place.inside(layer, at, body.name()), &body.graph, rest)));
                }
            }
        }
        Err(FindError::Unknown(path.to_owned()))
    }
}
