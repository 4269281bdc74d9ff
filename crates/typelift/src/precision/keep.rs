//! Selection of layers that keep their element types, and of the only ones that change.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Deserializer};
use thiserror::Error;
use typelift_promote::ElementType;

use super::{automatic, risks, shape_paths};
use crate::base::foreign::{self, named_element_type};
use crate::base::hash::{HashMap, HashSet};
use crate::base::names::{is_glob, matches_glob, near};
use crate::infer::blocks::{layers_of_blocks, numbers_of_blocks};
use crate::model::graph::{FindError, Graph, Layer, LayerId, Model, Place};
use crate::ops::{self, LayerKind, Operation};

/// Pattern for layers that keep their element types.
///
/// # Examples
/// ```
/// use typelift::precision::KeepPattern;
/// assert_eq!(KeepPattern::from("type:MVN-6"), KeepPattern::Operation("MVN-6".to_owned()));
/// assert_eq!(KeepPattern::from("loop/body/add*"), KeepPattern::Name("loop/body/add*".to_owned()));
/// assert_eq!(KeepPattern::from("auto"), KeepPattern::Automatic);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeepPattern {
    /// Layers by a word that [`Model::find_all`] reads: a name, an id, a path into a body, a pattern `loop/body/add*`.
    Name(String),
    /// Layers of an operation, `Softmax`, or of one revision, `MVN-6`. `*` and `?` work as in names, and case is
    /// ignored.
    Operation(String),
    /// Layers of the blocks with these numbers, the last included: `block:0-1`. [`Blocks`](crate::explain::blocks::Blocks) tells
    /// which layers those are.
    Blocks(u64, u64),
    /// The layers that OpenVINO's plugins keep in f32 when they compute in f16.
    Automatic,
    /// The layers that need their types because this type would harm them ([`risks`](super::risks)): `risk:f16`.
    AtRisk(ElementType),
}

impl From<&str> for KeepPattern {
    fn from(text: &str) -> Self {
        match text.strip_prefix("type:") {
            Some(operation) => Self::Operation(operation.to_owned()),
            None if text == "auto" => Self::Automatic,
            None if let Some((first, last)) = blocks(text) => Self::Blocks(first, last),
            None if let Some(to) = text.strip_prefix("risk:").and_then(named_element_type) => Self::AtRisk(to),
            None => Self::Name(text.to_owned()),
        }
    }
}

impl<'de> Deserialize<'de> for KeepPattern {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from).map(|text| Self::from(&*text))
    }
}

/// Parses the numbers of `block:0-1` or `block:3`.
fn blocks(text: &str) -> Option<(u64, u64)> {
    let numbers = text.strip_prefix("block:")?;
    let (first, last) = numbers.split_once('-').unwrap_or((numbers, numbers));
    Some((first.parse().ok()?, last.parse().ok()?))
}

impl fmt::Display for KeepPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Operation(operation) => write!(f, "type:{operation}"),
            Self::Blocks(first, last) => write!(f, "block:{first}-{last}"),
            Self::Automatic => f.write_str("auto"),
            Self::AtRisk(to) => write!(f, "risk:{to}"),
        }
    }
}

/// Error for a pattern that means no layers.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum KeepError {
    /// Nothing matches.
    #[error("`{pattern}` matches no layer{}", .near.as_ref().map(|near| format!("; did you mean `{near}`?")).unwrap_or_default())]
    Unmatched {
        /// The pattern, as `--keep` accepts it.
        pattern: String,
        /// A similar pattern that matches layers, if there is one.
        near: Option<String>,
    },
    /// A name does not say which layer is meant.
    #[error(transparent)]
    Find(#[from] FindError),
}

/// The layers that keep their types, and the constants that feed only these layers.
///
/// # Examples
/// ```
/// use typelift::precision::Kept;
/// let model = typelift::Model::open(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/model.xml"))?;
/// let kept = Kept::find(&model, &["type:Multiply".into()])?;
/// let (place, scale) = model.find("scale")?;
/// assert!(kept.contains(&place, scale), "its constant stays with it");
/// assert!(Kept::find(&model, &["scaledd".into()]).unwrap_err().to_string().ends_with("did you mean `scaled`?"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    layers: Layers,
    /// The only layers that change; `None` if all others do.
    only: Option<Layers>,
}

type Layers = BTreeMap<Place, HashSet<LayerId>>;

impl Kept {
    /// Returns the layers of an inferred model that match these patterns.
    ///
    /// # Errors
    /// [`KeepError`] for the first pattern that matches nothing. [`KeepPattern::Automatic`] and
    /// [`KeepPattern::AtRisk`] may match nothing.
    pub fn find(model: &Model, patterns: &[KeepPattern]) -> Result<Self, KeepError> {
        let mut kept = Self::named(model, patterns)?;
        for (place, layers) in &mut kept.layers {
            add_constants(model, place, layers, layers.iter().copied().collect());
        }
        Ok(kept)
    }

    /// Restricts the change to the layers that match these patterns, and to the constants that no other layer uses. A
    /// constant that matches changes in any case. Without patterns nothing is restricted.
    pub(crate) fn restrict(&mut self, model: &Model, only: &[KeepPattern]) -> Result<(), KeepError> {
        if only.is_empty() {
            return Ok(());
        }
        let named = Self::named(model, only)?;
        let mut only = named.layers.clone();
        for (place, layers) in &mut only {
            let Some(graph) = model.graph_at(place) else { continue };
            add_constants(model, place, layers, layers.iter().copied().collect());
            let is_added = |layer: &LayerId| !named.contains(place, *layer);
            let mut pending: Vec<_> = layers.iter().copied().filter(is_added).collect();
            while let Some(layer) = pending.pop() {
                if graph.users(layer).any(|user| !layers.contains(&user)) && layers.remove(&layer) {
                    pending.extend(graph.sources(layer).filter(is_added));
                }
            }
        }
        self.only = Some(only);
        Ok(())
    }

    /// The layers that match, without their constants.
    fn named(model: &Model, patterns: &[KeepPattern]) -> Result<Self, KeepError> {
        let mut kept = Self::default();
        for pattern in patterns {
            if *pattern == KeepPattern::Automatic {
                for (place, layers) in automatic::find(model) {
                    kept.layers.entry(place).or_default().extend(layers);
                }
                shape_paths::find(model).iter().for_each(|(place, layer)| kept.insert(place, *layer));
                continue;
            }
            if let KeepPattern::AtRisk(to) = *pattern {
                let at_risk = risks(model, to).into_iter().flat_map(|risk| risk.keep);
                at_risk.for_each(|layer| kept.insert(&layer.place, layer.id));
                continue;
            }
            if let KeepPattern::Blocks(first, last) = *pattern {
                let layers = layers_of_blocks(model, &(first..=last));
                if layers.is_empty() {
                    let known = numbers_of_blocks(model);
                    let near = known.map(|numbers| format!("block:{}-{}", numbers.start(), numbers.end()));
                    return Err(KeepError::Unmatched { pattern: pattern.to_string(), near });
                }
                layers.iter().for_each(|(place, layer)| kept.insert(place, *layer));
                continue;
            }
            let found = match pattern {
                KeepPattern::Name(name) => model.find_all(name).map_err(|error| match error {
                    FindError::Unknown(_) if let Some(near) = of_other_program(model, name) => {
                        KeepError::Unmatched { pattern: name.clone(), near: Some(near) }
                    }
                    FindError::Unknown(_) => match of_operation(model, name) {
                        Err(unmatched) if ops::all().any(|row| row.name == name) => unmatched,
                        found => {
                            let part = format!("*{name}*");
                            let is_part = !is_glob(name) && model.find_all(&part).is_ok_and(|found| found.len() > 1);
                            let near = found.map(|_| format!("type:{name}")).ok().or(is_part.then_some(part));
                            let near = near.or_else(|| model.nearest_name(name));
                            KeepError::Unmatched { pattern: name.clone(), near }
                        }
                    },
                    error => KeepError::Find(error),
                })?,
                KeepPattern::Operation(operation) => of_operation(model, operation)?,
                KeepPattern::Blocks(..) | KeepPattern::Automatic | KeepPattern::AtRisk(_) => Vec::new(),
            };
            found.iter().for_each(|(place, layer)| kept.insert(place, *layer));
        }
        Ok(kept)
    }

    /// True if a layer of the graph at `place` is among those that were found. The layers around the graph and a
    /// restriction are not considered.
    pub fn contains(&self, place: &Place, layer: LayerId) -> bool {
        has(&self.layers, place, layer)
    }

    /// Adds a layer; its constants are not added.
    pub(crate) fn insert(&mut self, place: &Place, layer: LayerId) {
        self.layers.entry(place.clone()).or_default().insert(layer);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.layers.values().all(HashSet::is_empty)
    }

    /// Iterates over all layers that keep their types, including constants.
    pub fn iter(&self) -> impl Iterator<Item = (&Place, LayerId)> {
        self.layers.iter().flat_map(|(place, layers)| layers.iter().map(move |&layer| (place, layer)))
    }

    /// True if the layer keeps its types: it or a layer around it was found, or the change is
    /// restricted to others.
    pub(crate) fn covers(&self, place: &Place, layer: LayerId) -> bool {
        self.names(place, layer) || self.leaves_out(place, layer)
    }

    pub(super) fn leaves_out(&self, place: &Place, layer: LayerId) -> bool {
        self.only.as_ref().is_some_and(|only| !has(only, place, layer) && !has_around(only, place))
    }

    pub(super) fn names(&self, place: &Place, layer: LayerId) -> bool {
        has(&self.layers, place, layer) || has_around(&self.layers, place)
    }

    pub(super) fn covers_whole(&self, place: &Place, owner: LayerId) -> bool {
        let is_inside = |only: &Layers| only.keys().any(|inner| inner.is_inside(place, owner));
        self.covers(place, owner) && (self.names(place, owner) || !self.only.as_ref().is_some_and(is_inside))
    }

    pub(super) fn restricts_ends(&self, place: &Place) -> bool {
        self.only.as_ref().is_some_and(|only| !has_around(only, place))
    }

    pub(super) fn with_promotions(&self, model: &Model) -> Self {
        let mut kept = self.clone();
        for (place, layers) in &mut kept.layers {
            let Some(graph) = model.graph_at(place) else { continue };
            let (mut pending, mut promotions) = (layers.iter().copied().collect::<Vec<_>>(), Vec::new());
            while let Some(layer) = pending.pop() {
                let sources = graph.sources(layer).filter(|&source| graph.layer(source).is_some_and(ops::is_promotion));
                let new: Vec<_> = sources.filter(|&source| layers.insert(source)).collect();
                pending.extend(&new);
                promotions.extend(new);
            }
            add_constants(model, place, layers, promotions);
        }
        kept
    }
}

fn has(layers: &Layers, place: &Place, layer: LayerId) -> bool {
    layers.get(place).is_some_and(|layers| layers.contains(&layer))
}

fn has_around(layers: &Layers, place: &Place) -> bool {
    let mut outer = Place::default();
    place.steps().iter().any(|&(owner, at)| {
        let around = outer.body(owner, at);
        has(layers, &std::mem::replace(&mut outer, around), owner)
    })
}

/// Adds constants, and layers that depend only on constants, among the producers of the kept layers in the graph at
/// `place`.
fn add_constants(model: &Model, place: &Place, kept: &mut HashSet<LayerId>, layers: Vec<LayerId>) {
    let Some(graph) = model.graph_at(place) else { return };
    let mut known = HashMap::default();
    let mut pending: Vec<_> = layers.into_iter().flat_map(|layer| graph.sources(layer)).collect();
    while let Some(layer) = pending.pop() {
        if is_computed_from_constants(graph, layer, &mut known) && kept.insert(layer) {
            pending.extend(graph.sources(layer));
        }
    }
}

/// Reads a pattern of another program: `type:MVN` for `op:LayerNorm`, `x` for `node:x`, and `*x*` for `.*x.*`.
fn of_other_program(model: &Model, name: &str) -> Option<String> {
    let glob = name.trim_start_matches("{re}").replace(".*", "*").replace('\\', "");
    let glob = glob.trim_matches(['^', '$', '/']);
    if glob != name && model.find_all(glob).is_ok() {
        return Some(glob.to_owned());
    }
    let (prefix, rest) = name.split_once([':', '='])?;
    match prefix.to_ascii_lowercase().as_str() {
        "op" | "op_type" | "optype" | "operation" | "type" => match of_operation(model, rest) {
            Ok(_) => Some(format!("type:{rest}")),
            Err(KeepError::Unmatched { near, .. }) => near,
            Err(KeepError::Find(_)) => None,
        },
        "layer" | "name" | "node" if model.find_all(rest).is_ok() => Some(rest.to_owned()),
        "layer" | "name" | "node" => model.nearest_name(rest),
        _ => None,
    }
}

fn of_operation(model: &Model, operation: &str) -> Result<Vec<(Place, LayerId)>, KeepError> {
    let glob = operation.to_ascii_lowercase();
    let (mut found, mut known) = (Vec::new(), BTreeSet::new());
    for (place, graph) in model.walk() {
        for layer in graph.layers() {
            let names = names_of_operation(layer);
            if names.iter().any(|name| matches_glob(&glob, &name.to_ascii_lowercase())) {
                found.push((place.clone(), layer.id()));
            }
            known.extend(names);
        }
    }
    if found.is_empty() {
        let names: Vec<_> = ops::all().map(|row| row.name).collect();
        let foreign = foreign::operation(operation, &names).map(|(meant, _)| meant.to_owned());
        let near =
            foreign.filter(|meant| known.contains(meant)).or_else(|| near(operation, known.iter().map(String::as_str)));
        let near = near.map(|near| format!("type:{near}"));
        return Err(KeepError::Unmatched { pattern: format!("type:{operation}"), near });
    }
    Ok(found)
}

/// The names of a layer's operation: without revision, with it, and as in the file.
fn names_of_operation(layer: &Layer) -> Vec<String> {
    let known = layer.operation().map(|row| [row.name.to_owned(), format!("{}-{}", row.name, row.revision)]);
    known.into_iter().flatten().chain([layer.ty().to_owned()]).collect()
}

fn is_computed_from_constants(graph: &Graph, layer: LayerId, known: &mut HashMap<LayerId, bool>) -> bool {
    let mut pending = vec![layer];
    while let Some(&id) = pending.last() {
        let Some(layer) = graph.layer(id).filter(|_| !known.contains_key(&id)) else {
            pending.pop();
            continue;
        };
        let sources: Vec<_> = graph.sources(id).collect();
        let is_source = sources.is_empty() || ops::kind(layer) == LayerKind::ReadValue;
        let is_repeatable = layer.operation().is_some_and(Operation::is_repeatable);
        let answer = if ops::is_constant(layer) {
            Some(true)
        } else if is_source || !is_repeatable || sources.iter().any(|source| known.get(source) == Some(&false)) {
            Some(false)
        } else {
            sources.iter().all(|source| known.contains_key(source)).then_some(true)
        };
        match answer {
            Some(answer) => {
                known.insert(id, answer);
                pending.pop();
            }
            None => pending.extend(sources.into_iter().filter(|source| !known.contains_key(source))),
        }
    }
    known.get(&layer).copied().unwrap_or(false)
}
