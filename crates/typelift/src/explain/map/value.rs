//! Data paths of values, from the constant or Parameter to the first layer that computes with the value.

use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use serde::{Serialize, Serializer};
use typelift_promote::{ElementType, Fidelity, Loss};

use super::losses;
use super::paths::is_weight;
use crate::base::hash::{HashMap, HashSet};
use crate::base::span::Lines;
use crate::explain::stats::name_of;
use crate::findings::LayerRef;
use crate::infer::blocks::{GraphFacts, Role, gives_values, values};
use crate::model::graph::{FindError, Graph, Layer, LayerId, LayerMap, Model, Output};
use crate::model::shape::Shape;
use crate::ops::{self, Conversion, Effect, LayerKind};

/// Data path of a value from its constant to its use, in one graph of the model.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct ValuePath {
    /// The constant or Parameter, then each layer on the path.
    #[serde(rename = "path")]
    pub steps: Vec<ValueStep>,
    /// The combined losses of the Converts on the path.
    #[serde(serialize_with = "names")]
    pub loses: Vec<Loss>,
    /// The index of the requested tensor in the path.
    pub asked: usize,
    /// The layers of other inputs that use the requested tensor, or a converted form of it. JSON has their number.
    #[serde(serialize_with = "number_of")]
    pub other_uses: Vec<LayerRef>,
}

/// A tensor on the path, with the layer that produces it.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct ValueStep {
    /// The layer.
    pub layer: LayerRef,
    /// The operation, as the file spells it.
    pub operation: String,
    /// The output of the layer.
    pub output: usize,
    /// The line of the file; `None` for an added layer.
    pub line: Option<usize>,
    /// The element type.
    #[serde(serialize_with = "name_of")]
    pub element_type: ElementType,
    /// The shape, as far as it is known.
    pub shape: Shape,
    /// True if the layer is a Convert, ConvertLike or ConvertPromoteTypes.
    pub converts: bool,
    /// The effect of a conversion.
    #[serde(rename = "loses", serialize_with = "losses_of")]
    pub effect: Option<Effect>,
}

fn number_of<S: Serializer>(layers: &[LayerRef], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(layers.len() as u64)
}

fn names<S: Serializer>(losses: &[Loss], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(losses.iter().map(|loss| loss.name()))
}

#[expect(clippy::ref_option, reason = "serde calls it with a reference to the field")]
fn losses_of<S: Serializer>(effect: &Option<Effect>, serializer: S) -> Result<S::Ok, S::Error> {
    match effect.and_then(|effect| effect.losses) {
        Some(lost) => losses(&lost, serializer),
        None => serializer.serialize_none(),
    }
}

impl ValuePath {
    /// Returns the data path of a value in an inferred model. `name` is that of a layer or a tensor, as
    /// [`why`](crate::why()) accepts it.
    ///
    /// If the tensor depends only on constants, the path begins at the largest of them. Otherwise it begins at the
    /// nearest matrix of weights; without one, at the largest vector of weights; without weights, at the nearest
    /// Parameter. From the tensor the path continues to the first layer that computes with it, and through the
    /// Converts after that layer. A path stays within its body.
    ///
    /// # Errors
    /// [`FindError`] if nothing has that name, or several tensors have it.
    ///
    /// # Examples
    /// ```
    /// use typelift::explain::map::ValuePath;
    /// # let mut model = typelift::Model::open(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/model.xml"))?;
    /// typelift::infer(&mut model);
    /// let path = ValuePath::new(&model, "y")?;
    /// let operations: Vec<&str> = path.steps.iter().map(|step| step.operation.as_str()).collect();
    /// assert_eq!(operations, ["Parameter", "Multiply", "ReLU"]);
    /// assert_eq!(path.steps[path.asked].operation, "ReLU");
    /// assert!(path.loses.is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn new(model: &Model, name: &str) -> Result<Self, FindError> {
        let unknown = || FindError::Unknown(name.to_owned());
        let (place, asked) = model.find_tensor(name)?;
        let graph = model.graph_at(&place).ok_or_else(unknown)?;
        let ways = Ways::new(graph);
        let mut tensors: Vec<Output> = std::iter::successors(Some(asked), |&tensor| ways.before(tensor)).collect();
        tensors.reverse();
        let number = tensors.len() - 1;
        let other_uses = ways.onwards(&mut tensors).into_iter().filter_map(|id| graph.layer(id));
        let other_uses = other_uses.map(|layer| LayerRef::of(&place, layer)).collect();
        let lines = Lines::new(model.source().clone());
        let mut steps: Vec<ValueStep> = Vec::with_capacity(tensors.len());
        for tensor in tensors {
            let (Some(layer), Some(port)) = (graph.layer(tensor.layer), graph.output(tensor)) else {
                return Err(unknown());
            };
            let conversion = ops::conversion(graph, layer).map(|found| Conversion {
                from: steps.last().map_or(found.from, |before| vec![before.element_type]),
                ..found
            });
            steps.push(ValueStep {
                converts: conversion.is_some(),
                effect: conversion.map(|conversion| conversion.effect(graph, model.weights(), layer)),
                layer: LayerRef::of(&place, layer),
                operation: layer.ty().to_owned(),
                output: tensor.port,
                line: layer.span().map(|span| lines.line_at(span.start)),
                element_type: port.element_type(),
                shape: port.shape().clone(),
            });
        }
        let loses: BTreeSet<Loss> =
            steps.iter().filter_map(|step| step.effect?.losses).flat_map(Fidelity::losses).collect();
        Ok(Self { steps, loses: loses.into_iter().collect(), asked: number, other_uses })
    }
}

/// The data paths of all values of a graph.
///
/// # Examples
/// ```
/// use typelift::explain::map::Ways;
/// # let model = typelift::Model::open(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/model.xml"))?;
/// let graph = model.graph();
/// let (scaled, y) = (graph.find("scaled")?.output(0), graph.find("y")?.output(0));
/// let ways = Ways::new(graph);
/// assert_eq!((ways.before(y), ways.next(scaled)), (Some(scaled), Some(y)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Ways<'a> {
    graph: &'a Graph,
    facts: Rc<GraphFacts<'a>>,
    /// For each layer: the previous tensor on the path to its outputs.
    before: OnceCell<LayerMap<Output>>,
    /// For each tensor: the next one on its path.
    next: OnceCell<HashMap<Output, NextUser>>,
}

/// A user of a tensor; the least one is next on its path.
type NextUser = ([bool; 2], LayerId);

/// Start of a path, the preferred kind first: the nearest matrix of weights, the largest vector, the nearest
/// Parameter, a number that is all that a layer broadcasts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum PathStart {
    Number,
    Parameter { near: std::cmp::Reverse<usize> },
    Vector { size: u64, near: std::cmp::Reverse<usize> },
    Matrix { near: std::cmp::Reverse<usize>, size: u64 },
}

impl PathStart {
    fn further(self) -> Self {
        let add = |near: std::cmp::Reverse<usize>| std::cmp::Reverse(near.0 + 1);
        match self {
            Self::Number => Self::Number,
            Self::Parameter { near } => Self::Parameter { near: add(near) },
            Self::Vector { size, near } => Self::Vector { size, near: add(near) },
            Self::Matrix { near, size } => Self::Matrix { near: add(near), size },
        }
    }
}

impl<'a> Ways<'a> {
    /// Computes the data paths of a graph in linear time.
    pub fn new(graph: &'a Graph) -> Self {
        Self::of(GraphFacts::new(graph).into())
    }

    pub(super) fn of(facts: Rc<GraphFacts<'a>>) -> Self {
        Self { graph: facts.graph, facts, before: OnceCell::new(), next: OnceCell::new() }
    }

    fn find_before(&self) -> LayerMap<Output> {
        let (graph, stored) = (self.graph, self.facts.stored());
        let (mut before, mut sources) = (LayerMap::new(graph), LayerMap::<PathStart>::new(graph));
        for layer in &self.facts.order {
            let role = self.role(layer.id());
            let all = graph.feeds(layer.id());
            let feeds = all.iter().copied().enumerate();
            let feeds = feeds.filter_map(|(input, feed)| Some((input, feed?.0, feed?.0.id().output(feed?.1))));
            let best = match role {
                Some(Role::Stored) => {
                    let last = stored.before(layer.id());
                    feeds.filter(|(_, it, _)| last == Some(it.id())).map(|(.., from)| (None, from)).next()
                }
                _ => {
                    let gives_stored = |(input, feed): (usize, &Option<(&Layer, usize)>)| {
                        let role = feed.and_then(|(from, _)| self.role(from.id()));
                        role == Some(Role::Stored) || !gives_values(layer, input)
                    };
                    let number = || all.iter().enumerate().all(gives_stored).then_some(PathStart::Number);
                    let known = feeds.filter_map(|(input, producer, from)| {
                        let source = match self.role(producer.id()) {
                            Some(Role::Stored) => self.worth(stored.root(producer.id())?, from).or_else(number),
                            Some(Role::Shape) if role != Some(Role::Shape) => None,
                            _ => sources.get(producer.id()).copied().map(PathStart::further),
                        };
                        Some((gives_values(layer, input), (Some(source?), from)))
                    });
                    // Of equally good starts the first is used. A shape or an index is the last resort.
                    known.rev().max_by_key(|(gives, (source, _))| (*gives, *source)).map(|(_, best)| best)
                }
            };
            let own = (ops::kind(layer) == LayerKind::Parameter)
                .then_some(PathStart::Parameter { near: std::cmp::Reverse(0) });
            if let Some(source) = best.and_then(|(source, _)| source).or(own) {
                sources.insert(layer.id(), source);
            }
            before.extend(best.map(|(_, from)| (layer.id(), from)));
        }
        before
    }

    /// Returns the graph.
    pub fn graph(&self) -> &'a Graph {
        self.graph
    }

    /// Returns the role of a layer.
    pub fn role(&self, layer: LayerId) -> Option<Role> {
        self.facts.roles.get(layer).copied()
    }

    /// Returns the previous tensor on the path; `None` at the start.
    pub fn before(&self, tensor: Output) -> Option<Output> {
        self.before.get_or_init(|| self.find_before()).get(tensor.layer).copied()
    }

    /// Returns the next tensor on the path, of the user with the lowest id. Converts are preferred, unless the tensor
    /// depends only on constants. A use as a shape or an index is the last resort.
    /// `None` if only Results use it.
    pub fn next(&self, tensor: Output) -> Option<Output> {
        self.next.get_or_init(|| self.find_next()).get(&tensor).map(|(_, user)| user.output(0))
    }

    fn find_next(&self) -> HashMap<Output, NextUser> {
        let mut next = HashMap::<Output, NextUser>::default();
        next.reserve(self.graph.len());
        for layer in self.graph.unordered() {
            for (port, input) in self.graph.uses(layer.id()) {
                let tensor = layer.id().output(port);
                let Some(user) = self.graph.layer(input.layer).filter(|user| !user.outputs().is_empty()) else {
                    continue;
                };
                let converts = !self.is_stored(tensor) && ops::conversion(self.graph, user).is_some();
                let found = ([!gives_values(user, input.port), !converts], user.id());
                next.entry(tensor).and_modify(|known| *known = found.min(*known)).or_insert(found);
            }
        }
        next
    }

    /// True if a tensor depends only on constants.
    pub fn is_stored(&self, tensor: Output) -> bool {
        self.role(tensor.layer) == Some(Role::Stored)
    }

    /// True for a Convert of integers that count or select: shapes, indices and conditions.
    pub fn converts_indices(&self, layer: &Layer) -> bool {
        self.facts.indices().converts(self.graph, layer)
    }

    /// `None` if it is a setting.
    fn worth(&self, constant: &Layer, used: Output) -> Option<PathStart> {
        let shape = constant.outputs().first()?.shape();
        let is_matrix =
            shape.to_static().is_some_and(|lengths| lengths.iter().filter(|&&length| length != 1).count() >= 2);
        let size = values(constant);
        let near = std::cmp::Reverse(1);
        is_weight(size, self.graph.output(used)?.element_type()).then_some(if is_matrix {
            PathStart::Matrix { near, size }
        } else {
            PathStart::Vector { size, near }
        })
    }

    /// Extends the path to the first layer that computes with the value, and through the Converts after that layer.
    /// Returns the layers of other inputs that use the value.
    fn onwards(&self, tensors: &mut Vec<Output>) -> Vec<LayerId> {
        let mut seen: HashSet<LayerId> = tensors.iter().map(|tensor| tensor.layer).collect();
        let (mut other_uses, mut is_used) = (Vec::new(), false);
        let Some(&(mut last)) = tensors.last() else { return other_uses };
        loop {
            let next = self.next(last).filter(|next| seen.insert(next.layer));
            if !is_used {
                let users: Vec<LayerId> = self.graph.consumers(last).map(|input| input.layer).collect();
                // A layer that uses the value twice has another use.
                let mut on_path = next.map(|next| next.layer).or(users.first().copied());
                other_uses.extend(users.into_iter().filter(|user| on_path.take_if(|it| it == user).is_none()));
            }
            let Some(next) = next else { return other_uses };
            let converts = self.graph.layer(next.layer).is_some_and(|it| ops::conversion(self.graph, it).is_some());
            if is_used && !converts {
                return other_uses;
            }
            is_used |= !converts && !self.is_stored(next);
            tensors.push(next);
            last = next;
        }
    }
}
