//! The way of one value from where it is stored to where it is used.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};

use rustc_hash::FxHashMap;
use serde::{Serialize, Serializer};
use typelift_promote::{ElementType, Fidelity, Loss, fidelity};

use super::paths::{Main, is_weight, values};
use super::roles::{Role, roles};
use super::{losses, name_of};
use crate::diagnostic::LayerRef;
use crate::graph::{Graph, Layer, LayerId, Model, Output};
use crate::ops::{self, LayerKind};
use crate::shape::Shape;
use crate::span::Lines;
use crate::why::{self, NameError};

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
    /// How many other inputs take the stored value, or what is computed from it alone, and are not on the way.
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
    /// What the layer can lose of the value if it is a Convert between known types; `None` for any other.
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
    /// A weight, or what is computed from constants alone, comes from the largest of those constants and is followed to the
    /// first layer that uses it with data, and through the Converts after that. Any other tensor is followed back on the
    /// shortest way to the nearest matrix of weights; without one, to the largest vector of weights; without weights, to the
    /// nearest Parameter. A way does not leave its body.
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
    /// assert!(path.loses.is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn new(model: &Model, name: &str) -> Result<Self, NameError> {
        let unknown = || NameError::Unknown(name.to_owned());
        let (place, asked) = why::locate(model, name)?;
        let graph = model.graph_at(&place).ok_or_else(unknown)?;
        let search = Search { graph, roles: roles(graph) };
        let mut tensors = search.back(asked).ok_or_else(unknown)?;
        let other_uses = search.onwards(&mut tensors);
        let lines = Lines::new(model.source().clone());
        let mut steps: Vec<ValueStep> = Vec::with_capacity(tensors.len());
        for tensor in tensors {
            let (Some(layer), Some(port)) = (graph.layer(tensor.layer), graph.output(tensor)) else { continue };
            let before = steps.last().filter(|_| ops::conversion(graph, layer).is_some());
            steps.push(ValueStep {
                loses: before.and_then(|before| fidelity(before.element_type, port.element_type())),
                layer: LayerRef::of(&place, layer),
                operation: layer.ty().to_owned(),
                output: tensor.port,
                line: layer.span().map(|span| lines.line_column(span.start).0),
                element_type: port.element_type(),
                shape: port.shape().clone(),
            });
        }
        let loses: BTreeSet<Loss> = steps.iter().filter_map(|step| step.loses).flat_map(Fidelity::losses).collect();
        Ok(Self { steps, loses: loses.into_iter().collect(), other_uses })
    }
}

/// Whether a weight has two dimensions or more that are not 1, and the number of its values.
type Worth = (bool, u64);

struct Search<'a> {
    graph: &'a Graph,
    roles: HashMap<LayerId, Role>,
}

impl<'a> Search<'a> {
    fn role(&self, layer: LayerId) -> Option<Role> {
        self.roles.get(&layer).copied()
    }

    /// The tensors from where a value comes to this one.
    fn back(&self, asked: Output) -> Option<Vec<Output>> {
        let layer = self.graph.layer(asked.layer)?;
        let mut main = Main { graph: self.graph, sources: FxHashMap::default() };
        let layers = match self.role(asked.layer) {
            Some(Role::Stored) => main.chain(layer),
            _ => self.to_source(layer, &mut main),
        };
        let joints = layers.windows(2).filter_map(|pair| {
            let mut feeds = self.graph.feeds(pair[1].id()).into_iter().flatten();
            let (producer, port) = feeds.find(|(producer, _)| producer.id() == pair[0].id())?;
            Some(producer.id().output(port))
        });
        Some(joints.chain([asked]).collect())
    }

    /// The layers from the source of a value to a layer that computes it from data, on the shortest way.
    fn to_source(&self, asked: &'a Layer, main: &mut Main<'a>) -> Vec<&'a Layer> {
        let of_shapes = self.role(asked.id()) == Some(Role::Shape);
        let mut after = FxHashMap::<LayerId, Option<&Layer>>::from_iter([(asked.id(), None)]);
        let mut pending = VecDeque::from([asked]);
        // The best weight so far with the layer that uses it, and the nearest Parameter.
        let (mut weight, mut parameter) = (None::<(Worth, Vec<&Layer>, &Layer)>, None);
        while let Some(layer) = pending.pop_front() {
            if ops::kind(layer) == LayerKind::Parameter {
                parameter.get_or_insert(layer);
            }
            for (producer, port) in self.graph.feeds(layer.id()).into_iter().flatten() {
                match self.role(producer.id()) {
                    Some(Role::Stored) => {
                        let chain = main.chain(producer);
                        let worth = self.worth(&chain, producer.id().output(port));
                        if worth > weight.as_ref().map(|(best, ..)| *best) {
                            weight = worth.map(|worth| (worth, chain, layer));
                        }
                    }
                    Some(Role::Shape) if !of_shapes => {}
                    _ if after.contains_key(&producer.id()) => {}
                    _ => {
                        after.insert(producer.id(), Some(layer));
                        pending.push_back(producer);
                    }
                }
            }
            if weight.as_ref().is_some_and(|((is_matrix, _), ..)| *is_matrix) {
                break;
            }
        }
        let (mut way, first) = match (weight, parameter) {
            (Some((_, chain, user)), _) => (chain, user),
            (None, Some(parameter)) => (Vec::new(), parameter),
            (None, None) => (Vec::new(), asked),
        };
        way.extend(std::iter::successors(Some(first), |layer| after.get(&layer.id()).copied().flatten()));
        way
    }

    /// What the constant is worth that comes by this chain to the tensor that is used; `None` if it is a setting.
    fn worth(&self, chain: &[&Layer], used: Output) -> Option<Worth> {
        let constant = chain.first()?;
        let shape = constant.outputs().first()?.shape();
        let is_matrix =
            shape.to_static().is_some_and(|lengths| lengths.iter().filter(|&&length| length != 1).count() >= 2);
        let size = values(constant);
        is_weight(size, self.graph.output(used)?.element_type()).then_some((is_matrix, size))
    }

    /// Follows what is stored to the first layer that uses it, and through the Converts after that. How many inputs take
    /// it elsewhere.
    fn onwards(&self, tensors: &mut Vec<Output>) -> usize {
        let mut seen: HashSet<LayerId> = tensors.iter().map(|tensor| tensor.layer).collect();
        let mut other_uses = 0;
        let Some(&(mut last)) = tensors.last() else { return 0 };
        if self.role(last.layer) != Some(Role::Stored) {
            return 0;
        }
        loop {
            let is_stored = self.role(last.layer) == Some(Role::Stored);
            let mut users = self.graph.consumers(last).filter_map(|input| self.graph.layer(input.layer));
            let next = users
                .find(|user| !user.outputs().is_empty() && (is_stored || ops::conversion(self.graph, user).is_some()));
            if is_stored {
                other_uses += self.graph.consumers(last).count() - usize::from(next.is_some());
            }
            let Some(next) = next.filter(|next| seen.insert(next.id())) else { return other_uses };
            last = next.id().output(0);
            tensors.push(last);
        }
    }
}
