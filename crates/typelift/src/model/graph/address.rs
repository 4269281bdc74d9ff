//! Addresses: the words by which people name layers and tensors.
//!
//! | reading; the first that fits counts | |
//! |---|---|
//! | the exact name of a layer or tensor | `y`, `name:12` |
//! | an id | `12`, `id:12` |
//! | an output of a layer | `split.1`, `id:12.1` |
//! | a path into a body | `If_36/then_body/bx` |
//! | a name that only one body has | `bx` |
//! | a pattern of paths, or else of tensor names | `layers.*/Add` |
//! | a name as the program shortens it | `…attention/Add` |
//!
//! A Result means the tensor that it takes. What names several layers where one is meant is refused with an address of each.

use thiserror::Error;

use super::{Body, Graph, Layer, LayerId, Model, Output, Place, Start, split_names};
use crate::base::names::{is_glob, matches_glob, near};

/// Reason why a word does not mean one layer or tensor.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum FindError {
    /// Nothing has this name.
    #[error("no layer and no tensor is called `{0}`")]
    Unknown(String),
    /// The layer does not have this output.
    #[error("`{name}` does not exist: outputs are counted from 0, and layer {layer} has {outputs}")]
    NoOutput {
        /// The word.
        name: String,
        /// The layer.
        layer: LayerId,
        /// The number of its outputs.
        outputs: usize,
    },
    /// The word means several layers.
    #[error("several layers are called `{name}`: {}", listed(.addresses))]
    Ambiguous {
        /// The word.
        name: String,
        /// An address of each that means no other: `If_36/then_body/id:4`.
        addresses: Vec<String>,
    },
}

fn listed(addresses: &[String]) -> String {
    const SHOWN: usize = 8;
    let mut words: Vec<_> = addresses.iter().take(SHOWN).map(|address| format!("`{address}`")).collect();
    if addresses.len() > SHOWN {
        words.push(format!("and {} more", addresses.len() - SHOWN));
    }
    words.join(", ")
}

impl Graph {
    /// Returns the layer that a word means in this graph: the one of this name; the producer of the tensor of this name; the
    /// Result of the output of this name; the one with this id; the one of which the word names an output, `split.1`.
    ///
    /// # Errors
    /// [`FindError`] if there is none, or more than one.
    pub fn find(&self, word: &str) -> Result<LayerId, FindError> {
        self.find_among(word, &|_| self.unordered())
    }

    /// Finds a layer as [`find`](Self::find) does. `layers` must return all layers that have a name.
    pub(super) fn find_among<'g, I: Iterator<Item = &'g Layer>>(
        &'g self,
        word: &str,
        layers: &impl Fn(&str) -> I,
    ) -> Result<LayerId, FindError> {
        match self.named_among(word, layers)? {
            Some(id) => Ok(id),
            None => self.numbered_among(word, layers).map(|tensor| tensor.layer),
        }
    }

    fn named_among<'g, I: Iterator<Item = &'g Layer>>(
        &'g self,
        word: &str,
        layers: &impl Fn(&str) -> I,
    ) -> Result<Option<LayerId>, FindError> {
        let exact = |name: &str| {
            let readings: [fn(&Layer, &str) -> bool; 3] = [
                |layer, name| *layer.name == *name,
                |layer, name| layer.port_named(name).is_some(),
                Layer::is_output_named,
            ];
            let mut several = Ok(None);
            for fits in readings {
                match the_one(name, layers(name).filter(|layer| fits(layer, name))) {
                    Ok(None) => {}
                    // Of several layers with the name, the one whose tensor also has it is meant.
                    Err(error) => several = several.and(Err(error)),
                    found => return found,
                }
            }
            several
        };
        let id = |text: &str| text.parse().ok().map(LayerId).filter(|&id| self.layer(id).is_some());
        Ok(match (exact(word)?, word.strip_prefix("name:")) {
            (Some(found), _) => Some(found),
            (None, Some(name)) => exact(name)?,
            (None, None) => id(word.strip_prefix("id:").unwrap_or(word)),
        })
    }

    /// The output of a layer that a word such as `split.1` means.
    fn numbered_among<'g, I: Iterator<Item = &'g Layer>>(
        &'g self,
        word: &str,
        layers: &impl Fn(&str) -> I,
    ) -> Result<Output, FindError> {
        let unknown = || FindError::Unknown(word.to_owned());
        let (name, port) = word.rsplit_once('.').ok_or_else(unknown)?;
        let port: usize = port.parse().map_err(|_| unknown())?;
        let layer = self.named_among(name, layers)?.ok_or_else(unknown)?;
        let outputs = self.layer(layer).map_or(0, |layer| layer.outputs.len());
        if port < outputs {
            return Ok(layer.output(port));
        }
        Err(FindError::NoOutput { name: word.to_owned(), layer, outputs })
    }

    /// Returns the tensor that a word means in this graph: the one of this name, or else the first output of the layer that
    /// [`find`](Self::find) returns, or what a Result takes.
    ///
    /// # Errors
    /// [`FindError`] if there is none, or more than one.
    pub fn tensor(&self, word: &str) -> Result<Output, FindError> {
        self.tensor_among(word, &|_| self.unordered())
    }

    /// Finds a tensor as [`tensor`](Self::tensor) does. `layers` must return all layers that have a name.
    pub(super) fn tensor_among<'g, I: Iterator<Item = &'g Layer>>(
        &'g self,
        word: &str,
        layers: &impl Fn(&str) -> I,
    ) -> Result<Output, FindError> {
        if let Some(tensor) = self.tensor_named_among(word, layers(word))? {
            return Ok(tensor);
        }
        match self.named_among(word, layers)? {
            Some(id) => Ok(self.main_tensor(id)),
            None => self.numbered_among(word, layers),
        }
    }

    /// The tensor that a layer stands for: its first output, or what it takes if it is a Result.
    pub(crate) fn main_tensor(&self, id: LayerId) -> Output {
        let is_end =
            self.layer(id).is_some_and(|layer| layer.outputs.is_empty() || layer.start() == Some(Start::Result));
        self.producer(id.input(0)).filter(|_| is_end).unwrap_or(id.output(0))
    }

    /// Returns the tensor with this name, if there is one.
    ///
    /// # Errors
    /// [`FindError::Ambiguous`].
    pub fn tensor_named(&self, name: &str) -> Result<Option<Output>, FindError> {
        self.tensor_named_among(name, self.unordered())
    }

    pub(super) fn tensor_named_among<'g>(
        &'g self,
        name: &str,
        layers: impl Iterator<Item = &'g Layer>,
    ) -> Result<Option<Output>, FindError> {
        let found = the_one(name, layers.filter(|layer| layer.port_named(name).is_some()))?;
        Ok(found.and_then(|id| Some(id.output(self.layer(id)?.port_named(name)?))))
    }
}

impl Layer {
    fn port_named(&self, name: &str) -> Option<usize> {
        self.outputs.iter().position(|port| port.names.as_deref().is_some_and(|names| is_among(name, names)))
    }

    fn is_output_named(&self, name: &str) -> bool {
        self.output_names().is_some_and(|names| is_among(name, names))
    }
}

/// Most have only one, which is compared as it stands.
fn is_among(name: &str, names: &str) -> bool {
    if names.contains([',', '\\']) { split_names(names).iter().any(|known| known == name) } else { names == name }
}

/// The layer if there is one, `None` if there is none, and an error if there are several.
fn the_one<'g>(name: &str, layers: impl Iterator<Item = &'g Layer>) -> Result<Option<LayerId>, FindError> {
    match layers.map(|layer| layer.id).collect::<Vec<_>>()[..] {
        [] => Ok(None),
        [id] => Ok(Some(id)),
        ref layers => {
            let addresses = layers.iter().map(|id| format!("id:{id}")).collect();
            Err(FindError::Ambiguous { name: name.to_owned(), addresses })
        }
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
    pub fn graph_at(&self, place: &Place) -> Option<&Graph> {
        place
            .steps()
            .iter()
            .try_fold(self.graph(), |graph, &(layer, at)| Some(&graph.layer(layer)?.bodies.get(at)?.graph))
    }

    /// `None` for the model's own graph.
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

    /// Returns the layer that a word means, and the place of its graph. A word is, and the first reading that fits counts, the
    /// exact name of a layer or tensor (also `name:x`), an id (also `id:12`), an output of a layer (`split.1`), a path into
    /// a body (`loop/body/x`), a name that only one body has, a pattern with `*` and `?`, or a name that the program has
    /// shortened (`…attention/Add`).
    ///
    /// # Errors
    /// [`FindError`] if there is none, or more than one.
    ///
    /// # Examples
    /// ```
    /// # let model = typelift::Model::open(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/model.xml"))?;
    /// for word in ["relu", "y", "3", "id:3", "name:relu", "re*u", "relu.0"] {
    ///     assert_eq!(model.find(word)?.1, typelift::LayerId(3), "{word}");
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn find(&self, word: &str) -> Result<(Place, LayerId), FindError> {
        self.find_beyond(word, |graph, word| graph.find(word).map(|id| id.output(0)), |_, id| id.output(0))
            .map(|(place, tensor)| (place, tensor.layer))
    }

    /// Returns the tensor that a word means, and the place of its graph. The word is read as by [`find`](Self::find); a layer
    /// means its first output, and a Result what it takes.
    ///
    /// # Errors
    /// [`FindError`] if there is none, or more than one.
    pub fn find_tensor(&self, word: &str) -> Result<(Place, Output), FindError> {
        self.find_beyond(word, Graph::tensor, Graph::main_tensor)
    }

    /// Returns all layers that a word means, as [`find`](Self::find) reads it: a pattern means all that match.
    ///
    /// # Errors
    /// [`FindError`] if there is none, or if a word that is no pattern means several.
    pub fn find_all(&self, word: &str) -> Result<Vec<(Place, LayerId)>, FindError> {
        match self.find(word) {
            Ok(found) => Ok(vec![found]),
            Err(FindError::Ambiguous { .. }) if is_glob(word) => Ok(self.matching(word)),
            Err(error) => Err(error),
        }
    }

    /// Searches the model's own graph, then all bodies. `read` interprets a word in one graph; `main` returns the tensor
    /// of a layer that a pattern matches.
    fn find_beyond(
        &self,
        word: &str,
        read: impl Fn(&Graph, &str) -> Result<Output, FindError>,
        main: impl Fn(&Graph, LayerId) -> Output,
    ) -> Result<(Place, Output), FindError> {
        let unknown = match read(self.graph(), word) {
            Ok(found) => return Ok((Place::default(), found)),
            Err(unknown @ FindError::Unknown(_)) => unknown,
            Err(error) => return Err(error),
        };
        if let Some(found) = self.find_by_path(word, &read)? {
            return Ok(found);
        }
        // An id could be that of a layer of any body.
        let is_id = word.strip_prefix("id:").unwrap_or(word).parse::<u64>().is_ok();
        let mut found = Vec::new();
        for (place, graph) in self.walk().skip(1).filter(|_| !is_id) {
            match read(graph, word) {
                Ok(tensor) => found.push((place, tensor)),
                Err(FindError::Unknown(_)) => {}
                Err(error) => return Err(error),
            }
        }
        if found.is_empty() && !is_id {
            let matching = self.matching(word).into_iter();
            found.extend(matching.filter_map(|(place, id)| {
                let tensor = main(self.graph_at(&place)?, id);
                Some((place, tensor))
            }));
        }
        match found.len() {
            0 => Err(unknown),
            1 => found.pop().ok_or(unknown),
            _ => {
                let addresses = found.iter().map(|(place, tensor)| place.path_to(format_args!("id:{}", tensor.layer)));
                Err(FindError::Ambiguous { name: word.to_owned(), addresses: addresses.collect() })
            }
        }
    }

    fn find_by_path(
        &self,
        path: &str,
        read: &impl Fn(&Graph, &str) -> Result<Output, FindError>,
    ) -> Result<Option<(Place, Output)>, FindError> {
        let mut pending = vec![(Place::default(), self.graph(), path)];
        while let Some((place, graph, rest)) = pending.pop() {
            if !place.is_model() {
                match read(graph, rest) {
                    Ok(tensor) => return Ok(Some((place, tensor))),
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
        Ok(None)
    }

    /// The layers whose path matches a pattern or a shortened name; without one, those that produce a tensor whose name
    /// does.
    fn matching(&self, word: &str) -> Vec<(Place, LayerId)> {
        let glob = word.replace('…', "*");
        let is_short = glob != word || !is_glob(word);
        let fits = |path: &str| matches_glob(&glob, path) || is_short && matches_glob(&glob, &without_scopes(path));
        let (mut found, mut makers) = (Vec::new(), Vec::new());
        for (place, graph) in self.walk() {
            for layer in graph.layers() {
                if fits(&place.path_to(layer.name())) {
                    found.push((place.clone(), layer.id()));
                } else if layer.outputs.iter().flat_map(|port| port.names()).any(|name| fits(&place.path_to(name))) {
                    makers.push((place.clone(), layer.id()));
                }
            }
        }
        if found.is_empty() { makers } else { found }
    }

    /// Returns a word that means something in the model and is most similar to one that does not: the name of a layer or
    /// tensor, the path of a layer in a body, or a pattern that matches some.
    pub fn nearest_name(&self, word: &str) -> Option<String> {
        let anywhere = format!("*/{word}");
        let (mut names, mut inside) = (Vec::new(), None);
        for (place, graph) in self.walk() {
            for layer in graph.layers() {
                let tensors = layer.outputs.iter().flat_map(|port| port.names());
                let known = tensors.chain([layer.name().to_owned()]).map(|name| place.path_to(name));
                names.extend(known.filter(|name| name != word));
                if inside.is_none() && !place.is_model() && is_glob(word) {
                    inside = Some(&anywhere).filter(|glob| matches_glob(glob, &place.path_to(layer.name())));
                }
            }
        }
        // `/model/norm` and `norm:0` of other programs are `norm` here.
        let ends = word.match_indices(['/', '.', ':']).map(|(at, _)| &word[at + 1..]).chain(word.strip_suffix(":0"));
        let end = || {
            ends.filter(|end| !word.contains("..") && names.iter().any(|name| name == end)).map(str::to_owned).next()
        };
        // `self.query/MatMul` is a part of a longer name here.
        let parts = format!("*{}*", word.replace(['/', '.', ':', ' '], "*"));
        let within = || names.iter().filter(|name| matches_glob(&parts, name)).min_by_key(|name| name.len()).cloned();
        let within = || within().filter(|_| word.len() > 2 && !is_glob(word));
        inside.cloned().or_else(|| near(word, names.iter().map(String::as_str))).or_else(end).or_else(within)
    }

    /// Returns the other layer that a number means, if it is the name of one layer or tensor and the id of another.
    pub fn other_meaning(&self, word: &str) -> Option<&Layer> {
        let named = word.parse().ok().map(LayerId).and_then(|id| self.graph().layer(id))?;
        Some(named).filter(|layer| self.graph().find(word).is_ok_and(|found| found != layer.id()))
    }
}

/// A path without the scopes of its parts, `attention/cat` of `attention/aten::cat`, as the program shortens it.
fn without_scopes(path: &str) -> String {
    let parts = path.split('/').map(|part| part.rsplit_once("::").map_or(part, |(_, word)| word));
    parts.collect::<Vec<_>>().join("/")
}
