//! The ways of values from where they are stored to where they are used.

use std::collections::BTreeSet;

use serde::{Serialize, Serializer};
use typelift_promote::{ElementType, Fidelity, Loss, fidelity};

use super::paths::{Main, is_weight, values};
use super::roles::{Role, in_order, roles};
use super::{losses, name_of};
use crate::base::hash::{HashMap, HashSet};
use crate::base::span::Lines;
use crate::explain::why::{self, NameError};
use crate::findings::LayerRef;
use crate::model::graph::{Graph, Layer, LayerId, LayerMap, Model, Output};
use crate::model::shape::Shape;
use crate::ops::{self, LayerKind};

/// The way of a value from where it is stored to where it is used, in one graph of the model.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct ValuePath {
    /// What is stored, or the Parameter that brings it, then each layer on the way.
    #[serde(rename = "path")]
    pub steps: Vec<ValueStep>,
    /// What the Converts on the way can lose, all together.
    #[serde(serialize_with = "names")]
    pub loses: Vec<Loss>,
    /// Which of the steps is the tensor that was asked for.
    pub asked: usize,
    /// How many other inputs take the tensor that was asked for, or what is stored or converted on the way on from it.
    pub other_uses: usize,
}

/// A tensor on the way of a value, with the layer that makes it.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct ValueStep {
    /// The layer.
    pub layer: LayerRef,
    /// Its operation, as the file spells it.
    pub operation: String,
    /// Which of its outputs the tensor is.
    pub output: usize,
    /// The line of the file; `None` for a layer that was added.
    pub line: Option<usize>,
    /// The element type.
    #[serde(serialize_with = "name_of")]
    pub element_type: ElementType,
    /// The shape, as far as it is known.
    pub shape: Shape,
    /// Whether the layer is a Convert, ConvertLike or ConvertPromoteTypes.
    pub converts: bool,
    /// What it can lose of the value if it converts between types that are known.
    #[serde(serialize_with = "optional_losses")]
    pub loses: Option<Fidelity>,
}

fn names<S: Serializer>(losses: &[Loss], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(losses.iter().map(|loss| loss.name()))
}

#[expect(clippy::ref_option, reason = "serde calls it with a reference to the field")]
fn optional_losses<S: Serializer>(loses: &Option<Fidelity>, serializer: S) -> Result<S::Ok, S::Error> {
    match loses {
        Some(loses) => losses(loses, serializer),
        None => serializer.serialize_none(),
    }
}

impl ValuePath {
    /// The way of a value in an inferred model. `name` is that of a layer or a tensor, as [`why`](crate::why()) takes it.
    ///
    /// A weight, or what is computed from constants alone, comes from the largest of those constants. Any other tensor comes on
    /// the shortest way from the nearest matrix of weights; without one, from the largest vector of weights; without weights,
    /// from the nearest Parameter. From the tensor the way goes on to the first layer that computes with it, and through the
    /// Converts after that. A way does not leave its body.
    ///
    /// # Errors
    /// [`NameError`] where nothing has that name, or several tensors have it.
    ///
    /// # Examples
    /// ```
    /// use typelift::map::ValuePath;
    /// # let mut model = typelift::Model::open(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/model.xml"))?;
    /// typelift::infer(&mut model);
    /// let path = ValuePath::new(&model, "y")?;
    /// let operations: Vec<&str> = path.steps.iter().map(|step| step.operation.as_str()).collect();
    /// assert_eq!(operations, ["Parameter", "Multiply", "ReLU"]);
    /// assert_eq!(path.steps[path.asked].operation, "ReLU");
    /// assert!(path.loses.is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn new(model: &Model, name: &str) -> Result<Self, NameError> {
        let unknown = || NameError::Unknown(name.to_owned());
        let (place, asked) = why::locate(model, name)?;
        let graph = model.graph_at(&place).ok_or_else(unknown)?;
        let ways = Ways::new(graph);
        let mut tensors: Vec<Output> = std::iter::successors(Some(asked), |&tensor| ways.before(tensor)).collect();
        tensors.reverse();
        let number = tensors.len() - 1;
        let other_uses = ways.onwards(&mut tensors);
        let lines = Lines::new(model.source().clone());
        let mut steps: Vec<ValueStep> = Vec::with_capacity(tensors.len());
        for tensor in tensors {
            let (Some(layer), Some(port)) = (graph.layer(tensor.layer), graph.output(tensor)) else {
                return Err(unknown());
            };
            let converts = ops::conversion(graph, layer).is_some();
            let before = steps.last().filter(|_| converts);
            steps.push(ValueStep {
                loses: before.and_then(|before| fidelity(before.element_type, port.element_type())),
                converts,
                layer: LayerRef::of(&place, layer),
                operation: layer.ty().to_owned(),
                output: tensor.port,
                line: layer.span().map(|span| lines.line_at(span.start)),
                element_type: port.element_type(),
                shape: port.shape().clone(),
            });
        }
        let loses: BTreeSet<Loss> = steps.iter().filter_map(|step| step.loses).flat_map(Fidelity::losses).collect();
        Ok(Self { steps, loses: loses.into_iter().collect(), asked: number, other_uses })
    }
}

/// The ways of all values of a graph, as [`ValuePath`] has that of one.
///
/// # Examples
/// ```
/// use typelift::map::Ways;
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
    roles: LayerMap<Role>,
    /// For each layer the tensor that the value of its outputs comes from.
    before: HashMap<LayerId, Output>,
}

/// What a value comes from, a better one first: the nearest matrix of weights, the largest vector, the nearest Parameter.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Source {
    Parameter { near: std::cmp::Reverse<usize> },
    Vector { size: u64, near: std::cmp::Reverse<usize> },
    Matrix { near: std::cmp::Reverse<usize>, size: u64 },
}

impl Source {
    /// The same from a layer further on.
    fn further(self) -> Self {
        let add = |near: std::cmp::Reverse<usize>| std::cmp::Reverse(near.0 + 1);
        match self {
            Self::Parameter { near } => Self::Parameter { near: add(near) },
            Self::Vector { size, near } => Self::Vector { size, near: add(near) },
            Self::Matrix { near, size } => Self::Matrix { near: add(near), size },
        }
    }
}

impl<'a> Ways<'a> {
    /// Finds them, in time that grows with the size of the graph.
    #[must_use]
    pub fn new(graph: &'a Graph) -> Self {
        let mut ways = Self { graph, roles: roles(graph), before: HashMap::default() };
        let mut main = Main { graph, sources: HashMap::default() };
        let mut sources = HashMap::<LayerId, Source>::default();
        for layer in in_order(graph) {
            let role = ways.role(layer.id());
            let feeds = graph.feeds(layer.id());
            let feeds = feeds.into_iter().flatten().map(|(producer, port)| (producer, producer.id().output(port)));
            let best = match role {
                Some(Role::Stored) => {
                    let before = main.before(layer);
                    feeds.filter(|(producer, _)| before == Some(producer.id())).map(|(_, from)| (None, from)).next()
                }
                _ => {
                    let known = feeds.filter_map(|(producer, from)| {
                        let source = match ways.role(producer.id()) {
                            Some(Role::Stored) => ways.worth(main.root(producer)?, from),
                            Some(Role::Shape) if role != Some(Role::Shape) => None,
                            _ => sources.get(&producer.id()).copied().map(Source::further),
                        };
                        Some((Some(source?), from))
                    });
                    // Of equal ones the first.
                    known.rev().max_by_key(|(source, _)| *source)
                }
            };
            let parameter = || Source::Parameter { near: std::cmp::Reverse(0) };
            let own = (ops::kind(layer) == LayerKind::Parameter).then(parameter);
            if let Some(source) = best.and_then(|(source, _)| source).or(own) {
                sources.insert(layer.id(), source);
            }
            ways.before.extend(best.map(|(_, from)| (layer.id(), from)));
        }
        ways
    }

    /// What a layer does in the graph.
    #[must_use]
    pub fn role(&self, layer: LayerId) -> Option<Role> {
        self.roles.get(layer).copied()
    }

    /// The tensor that the value of a tensor comes from; `None` where it begins.
    #[must_use]
    pub fn before(&self, tensor: Output) -> Option<Output> {
        self.before.get(&tensor.layer).copied()
    }

    /// The first tensor that is computed from a tensor, of one that is not stored what a Convert makes before others; `None` if only
    /// Results take it.
    #[must_use]
    pub fn next(&self, tensor: Output) -> Option<Output> {
        let users = || {
            let users = self.graph.consumers(tensor).filter_map(|input| self.graph.layer(input.layer));
            users.filter(|user| !user.outputs().is_empty())
        };
        let converts = |user: &&Layer| !self.is_stored(tensor) && ops::conversion(self.graph, user).is_some();
        Some(users().find(converts).or_else(|| users().next())?.id().output(0))
    }

    /// Whether a tensor is stored, or computed from constants alone.
    #[must_use]
    pub fn is_stored(&self, tensor: Output) -> bool {
        self.role(tensor.layer) == Some(Role::Stored)
    }

    /// What a constant is worth that comes to this tensor, which is used; `None` if it is a setting.
    fn worth(&self, constant: &Layer, used: Output) -> Option<Source> {
        let shape = constant.outputs().first()?.shape();
        let is_matrix =
            shape.to_static().is_some_and(|lengths| lengths.iter().filter(|&&length| length != 1).count() >= 2);
        let size = values(constant);
        let near = std::cmp::Reverse(1);
        is_weight(size, self.graph.output(used)?.element_type()).then_some(if is_matrix {
            Source::Matrix { near, size }
        } else {
            Source::Vector { size, near }
        })
    }

    /// Follows the last tensor to the first layer that computes with it, and through the Converts after that. How many inputs
    /// take the value elsewhere.
    fn onwards(&self, tensors: &mut Vec<Output>) -> usize {
        let mut seen: HashSet<LayerId> = tensors.iter().map(|tensor| tensor.layer).collect();
        let (mut other_uses, mut is_used) = (0, false);
        let Some(&(mut last)) = tensors.last() else { return 0 };
        loop {
            let next = self.next(last).filter(|next| seen.insert(next.layer));
            if !is_used {
                other_uses += self.graph.consumers(last).count().saturating_sub(1);
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
