//! Patterns and matches.

use std::fmt::{self, Debug, Display, Formatter};
use std::sync::Arc;

use thiserror::Error;
use typelift_promote::ElementType;

use super::bound::{Bindings, Bound, List};
use super::term::{Link, Name, Predicate, Side};
use super::{Code, Replacement, Rule, RuleReplacement, values};
use crate::model::graph::{EditError, Graph, Layer, Output};
use crate::model::shape::Shape;
use crate::model::weights::Weights;

/// Limits that the `allow` clause of a rule lifts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Allowed {
    /// The rule may change arithmetic on integers.
    pub(super) integers: bool,
    /// The rule may combine a constant with axes and a tensor of unknown rank.
    pub(super) ranks: bool,
    /// New constants may be infinite, zero or subnormal although their operands are not.
    pub(super) overflow: bool,
}

impl Allowed {
    pub(super) const WORDS: [&str; 3] = ["integers", "ranks", "overflow"];

    /// Lifts the limit with this name; returns false if there is none.
    pub(super) fn lift(&mut self, word: &str) -> bool {
        let limit = match word {
            "integers" => &mut self.integers,
            "ranks" => &mut self.ranks,
            "overflow" => &mut self.overflow,
            _ => return false,
        };
        *limit = true;
        true
    }
}

type Condition = Arc<dyn Fn(&Match) -> Result<(), String> + Send + Sync>;

/// Pattern of a rule in the [notation](crate::rewrite::notation): operations, arithmetic in any order, names and conditions.
/// With a replacement it becomes a [`Rule`].
///
/// ```
/// # use typelift::rewrite::Pattern;
/// let pattern: Pattern = "x * Sigmoid(x * b?) if size(b) == 1".parse()?;
/// let error = "Relu(x) if rnak(x) == 4".parse::<Pattern>().unwrap_err();
/// assert_eq!(error.help.as_deref(), Some("did you mean `rank`?"));
/// # Ok::<(), typelift::rewrite::notation::NotationError>(())
/// ```
#[derive(Clone, Default)]
pub struct Pattern {
    pub(super) text: String,
    pub(super) side: Side,
    pub(super) names: Vec<Name>,
    pub(super) variables: Vec<String>,
    pub(super) predicates: Vec<Predicate>,
    /// Connections to the second root and later ones.
    pub(super) links: Vec<Link>,
    pub(super) condition: Option<Condition>,
    pub(super) allowed: Allowed,
    pub(super) needs_floats: bool,
}

impl Display for Pattern {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Debug for Pattern {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Pattern").field(&self.text).finish()
    }
}

impl Pattern {
    /// Adds a condition. If it returns an error, the pattern does not match, and [`explain`](crate::Model::explain)
    /// shows the reason.
    ///
    /// ```
    /// # use typelift::rewrite::Pattern;
    /// let pattern = "Softmax-8(x) {axis=$a}".parse::<Pattern>()?.when(|m| {
    ///     let axis: i64 = m.attribute("a")?.parse().map_err(|_| "the axis is not a number")?;
    ///     if axis >= 0 { Ok(()) } else { Err("the axis is counted from the end".into()) }
    /// });
    /// # let _ = pattern;
    /// # Ok::<(), typelift::rewrite::notation::NotationError>(())
    /// ```
    #[must_use]
    pub fn when(mut self, condition: impl Fn(&Match) -> Result<(), String> + Send + Sync + 'static) -> Self {
        let earlier = self.condition.take();
        self.condition = Some(Arc::new(move |m| {
            earlier.as_ref().map_or(Ok(()), |earlier| earlier(m))?;
            condition(m)
        }));
        self
    }

    /// Creates the rule that replaces a match: with a layer for the root, or with tensors for its outputs. Types and
    /// shapes of new layers are inferred.
    ///
    /// ```
    /// use typelift::graph::NewLayer;
    /// use typelift::rewrite::{Pattern, Replacement};
    ///
    /// let rule = "Softmax-8(x) {axis=$a}".parse::<Pattern>()?.to(|m, _| {
    ///     let rank = m.shape("x").and_then(|shape| shape.rank()).unwrap_or(1) as i64;
    ///     let axis: i64 = m.attribute("a")?.parse().unwrap_or(0);
    ///     let softmax = NewLayer::new("Softmax", "opset1").with_attribute("axis", (axis + rank) % rank);
    ///     Ok(Replacement::layer(softmax, &[m.tensor("x")?]))
    /// });
    /// # let _ = rule;
    /// # Ok::<(), typelift::rewrite::notation::NotationError>(())
    /// ```
    ///
    /// All methods of [`Edit`](crate::edit::Edit) are available:
    /// ```
    /// # use typelift::Model;
    /// # use typelift::rewrite::Pattern;
    /// # let mut model = Model::open(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/model.xml"))?;
    /// let marked = "Relu(x)".parse::<Pattern>()?.to(|m, graph| {
    ///     graph.set_rt_info(m.root.id(), "origin", "activation")?;
    ///     Ok(m.root.id().output(0).into())
    /// });
    /// assert_eq!(model.rewrite(&[marked.once()])?.applied.len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn to(
        self,
        make: impl Fn(&Match, &mut super::New<'_, '_>) -> Result<Replacement, EditError> + Send + Sync + 'static,
    ) -> Rule {
        let code: Code = Arc::new(make);
        Rule::new(self, RuleReplacement::Code(code))
    }

    /// Creates a rule whose replacement depends on the match. The function returns it as text in the notation, or the
    /// reason why the rule does not apply.
    ///
    /// ```
    /// # use typelift::rewrite::Pattern;
    /// let rule = "Softmax-8(x) {axis=$a}".parse::<Pattern>()?.writes(|m| {
    ///     let rank = m.shape("x").and_then(|shape| shape.rank()).ok_or("the rank of `x` is not known")? as i64;
    ///     let axis: i64 = m.attribute("a")?.parse().map_err(|_| "the axis is not a number")?;
    ///     Ok(format!("Softmax-1(x) {{axis={}}}", axis.rem_euclid(rank)))
    /// });
    /// # let _ = rule;
    /// # Ok::<(), typelift::rewrite::notation::NotationError>(())
    /// ```
    #[must_use]
    pub fn writes(self, text: impl Fn(&Match) -> Result<String, String> + Send + Sync + 'static) -> Rule {
        let text: super::Writer = Arc::new(text);
        let written = text.clone();
        Rule::new(self.when(move |m| written(m).map(drop)), RuleReplacement::Written(text))
    }
}

/// A name that a pattern does not have, or that is absent in a match.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{reason}; the match has {}", if .known.is_empty() { "no such names".to_owned() } else { .known.join(", ") })]
pub struct UnknownName {
    reason: String,
    known: Vec<String>,
}

impl From<UnknownName> for String {
    fn from(error: UnknownName) -> Self {
        error.to_string()
    }
}

impl From<UnknownName> for EditError {
    fn from(error: UnknownName) -> Self {
        Self::Other(error.to_string())
    }
}

/// A match of a pattern, for conditions and replacements in Rust.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Match {
    /// The layer at which the pattern matches.
    pub root: Layer,
    /// The inputs of that layer.
    pub inputs: Vec<Output>,
    tensors: Vec<(String, Option<Output>, ElementType, Shape)>,
    lists: Vec<(String, List)>,
    variables: Vec<(String, String)>,
    constants: Vec<(String, Vec<f64>)>,
}

impl Match {
    pub(super) fn new(graph: &Graph, weights: &Weights, pattern: &Pattern, bound: &Bindings) -> Self {
        let names = || pattern.names.iter().zip(&bound.names).filter_map(|(name, to)| Some((name, to.as_ref()?)));
        let tensors = names().filter_map(|(name, to)| match to {
            Bound::Tensor(tensor) => {
                let port = graph.output(*tensor)?;
                Some((name.text.clone(), Some(*tensor), port.element_type(), port.shape().clone()))
            }
            Bound::Values(values) => Some((name.text.clone(), None, values.element_type, values.shape())),
            Bound::Number(_) | Bound::List(_) => None,
        });
        let constants = names().filter_map(|(name, to)| {
            let values = match to {
                Bound::Tensor(tensor) => {
                    let count = graph.output(*tensor)?.shape().element_count()?;
                    crate::ops::values::array::count(&[usize::try_from(count).ok()?])?;
                    values::values(graph, weights, *tensor)?.to_floats().into_vec()
                }
                Bound::Values(values) => values.to_floats().into_vec(),
                Bound::Number(number) => vec![*number],
                Bound::List(_) => return None,
            };
            Some((name.text.clone(), values))
        });
        let variables = pattern.variables.iter().zip(&bound.variables);
        let variables = variables.filter_map(|(name, value)| Some((name.clone(), value.as_ref()?.to_string())));
        let root = bound.layers.first().and_then(|(root, _)| graph.layer(*root)).cloned();
        let root = root.unwrap_or_else(|| Layer::new("", "", ""));
        Self {
            inputs: graph.producers(root.id()).into_iter().flatten().collect(),
            root,
            tensors: tensors.collect(),
            lists: names()
                .filter_map(|(name, to)| match to {
                    Bound::List(tensors) => Some((name.text.clone(), tensors.clone())),
                    _ => None,
                })
                .collect(),
            variables: variables.collect(),
            constants: constants.collect(),
        }
    }

    /// Iterates over the names of its tensors and computed constants.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let numbers = self.constants.iter().map(|(name, _)| name.as_str()).filter(|name| self.find(name).is_none());
        self.tensors.iter().map(|(name, ..)| name.as_str()).chain(numbers)
    }

    /// Iterates over its variables, without their `$`, and their values.
    pub fn attributes(&self) -> impl Iterator<Item = (&str, &str)> {
        self.variables.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    fn find(&self, name: &str) -> Option<&(String, Option<Output>, ElementType, Shape)> {
        self.tensors.iter().find(|(known, ..)| known == name)
    }

    /// Returns the tensor of a name.
    ///
    /// # Errors
    /// A name that the match does not have, or that is bound to computed constants.
    pub fn tensor(&self, name: &str) -> Result<Output, UnknownName> {
        let known = || self.tensors.iter().filter(|tensor| tensor.1.is_some()).map(|(name, ..)| format!("`{name}`"));
        let error = |reason| UnknownName { reason, known: known().collect() };
        match self.find(name) {
            Some((_, Some(output), ..)) => Ok(*output),
            Some(_) => Err(error(format!("`{name}` is a computed constant, which has values but no tensor"))),
            None => Err(error(format!("there is no tensor `{name}`"))),
        }
    }

    /// Returns the tensors of a list, `xs...`, in the order of inputs or outputs.
    ///
    /// # Errors
    /// A list that the match does not have.
    ///
    /// ```
    /// # use typelift::rewrite::Pattern;
    /// let pattern = "Concat(xs...)".parse::<Pattern>()?.when(|m| match m.tensors("xs")? {
    ///     [first, others @ ..] if others.iter().all(|other| other == first) => Ok(()),
    ///     _ => Err("they are different tensors".into()),
    /// });
    /// # let _ = pattern;
    /// # Ok::<(), typelift::rewrite::notation::NotationError>(())
    /// ```
    pub fn tensors(&self, list: &str) -> Result<&[Output], UnknownName> {
        let found = self.lists.iter().find(|(known, _)| known == list);
        found.map(|(_, tensors)| &**tensors).ok_or_else(|| UnknownName {
            reason: format!("there is no list `{list}`"),
            known: self.lists.iter().map(|(name, _)| format!("`{name}`")).collect(),
        })
    }

    /// Iterates over its lists and their tensors.
    pub fn lists(&self) -> impl Iterator<Item = (&str, &[Output])> {
        self.lists.iter().map(|(name, tensors)| (name.as_str(), &**tensors))
    }

    /// Returns the element type of a tensor.
    pub fn element_type(&self, name: &str) -> Option<ElementType> {
        self.find(name).map(|(.., ty, _)| *ty)
    }

    /// Returns the shape of a tensor.
    pub fn shape(&self, name: &str) -> Option<&Shape> {
        self.find(name).map(|(.., shape)| shape)
    }

    /// Returns the value of a variable, named without its `$`.
    ///
    /// # Errors
    /// A variable that the match does not have.
    pub fn attribute(&self, variable: &str) -> Result<&str, UnknownName> {
        let found = self.variables.iter().find(|(known, _)| known == variable);
        found.map(|(_, value)| value.as_str()).ok_or_else(|| UnknownName {
            reason: format!("there is no variable `${variable}`"),
            known: self.variables.iter().map(|(name, _)| format!("`${name}`")).collect(),
        })
    }

    /// Returns the values of a small constant.
    pub fn constant(&self, name: &str) -> Option<&[f64]> {
        self.constants.iter().find(|(known, _)| known == name).map(|(_, values)| values.as_slice())
    }
}
