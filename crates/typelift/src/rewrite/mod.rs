//! Rewriting by rules: a pattern and what takes its place, in the [notation](crate::notation) that shows graphs.
//!
//! ```
//! use typelift::{Model, rewrite::Rule};
//! let mut model = Model::from_text("
//!     x = Parameter : f32[?,8]
//!     a = Add(x, Const_1)
//!     Const_1 = Const(3) : f32[]
//!     b = Clamp(a) {min=0, max=6}
//!     c = Multiply(b, x)
//!     d = Divide(c, Const_2)
//!     Const_2 = Const(6) : f32[]
//!     r = Result(d)
//! ")?;
//! let hswish: Rule = "Divide(Multiply(x, Clamp(Add(x, 3)) {min=0, max=6}), 6) => HSwish(x)".parse()?;
//! let report = model.rewrite(&[hswish.named("hswish")])?;
//! assert_eq!(report.applied.len(), 1);
//! assert_eq!(model.to_string(), "\
//! 0 x = Parameter : f32[?,8]
//! 5 d = HSwish(0) : f32[?,8]
//! 7 r = Result(5)
//! ");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The layer at which a pattern matches keeps its id, its place in the file, its name, its metadata and whatever uses it;
//! only its operation, attributes and inputs change. What was inside the match and nothing uses any more goes.

mod apply;
mod build;
mod constant;
mod explain;
pub mod library;
mod matching;
mod parse;
mod script;
mod term;

use std::fmt::{self, Debug, Display, Formatter};
use std::str::FromStr;
use std::sync::Arc;

use serde::Serialize;
use thiserror::Error;
use typelift_promote::ElementType;

pub use explain::Explanation;
pub use script::{Script, ScriptError};

use crate::array::Array;
use crate::diagnostic::LayerRef;
use crate::edit::Edit;
use crate::graph::{EditError, Graph, Layer, LayerId, NewLayer, Output};
use crate::notation::{Cursor, NotationError};
use crate::shape::Shape;
use crate::weights::Weights;
use matching::Bindings;
use parse::Name;
use term::Side;

type Condition = Arc<dyn Fn(&Match) -> Result<(), String> + Send + Sync>;
type Code = Arc<dyn Fn(&Match, &mut New<'_, '_>) -> Result<Replacement, EditError> + Send + Sync>;
type Writer = Arc<dyn Fn(&Match) -> Result<String, String> + Send + Sync>;

/// A pattern and what takes its place. It is read from text:
/// ```
/// # use typelift::rewrite::Rule;
/// let rule: Rule = "Divide(x, c: const f32) => Multiply(x, 1 / c)".parse()?;
/// assert_eq!(rule.named("reciprocal").name(), "reciprocal");
/// let error = "Divide(x, 2) => Multiply(y, 0.5)".parse::<Rule>().unwrap_err();
/// assert_eq!(error.to_string(), "\
/// `y` is not in the pattern
///   Divide(x, 2) => Multiply(y, 0.5)
///                            ^
///   help: it has `x`");
/// # Ok::<(), typelift::notation::NotationError>(())
/// ```
#[derive(Clone)]
pub struct Rule {
    name: Option<String>,
    text: String,
    pattern: Side,
    names: Vec<Name>,
    variables: Vec<String>,
    replacement: Right,
    condition: Option<Condition>,
}

/// What takes the place of a match.
#[derive(Clone)]
enum Right {
    /// Nothing yet.
    None,
    Side(Side),
    Code(Code),
    /// A right side as text, which depends on the match.
    Written(Writer),
    /// The first of the layers that compute the same.
    Same,
}

impl FromStr for Rule {
    type Err = NotationError;

    fn from_str(text: &str) -> Result<Self, NotationError> {
        Self::read(text, 0..text.len())
    }
}

impl Display for Rule {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Debug for Rule {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rule").field("name", &self.name).field("text", &self.text).finish_non_exhaustive()
    }
}

impl Rule {
    /// Reads the rule at these bytes of a text.
    fn read(text: &str, range: std::ops::Range<usize>) -> Result<Self, NotationError> {
        let parsed = parse::rule(text, range.clone())?;
        let mut rule = Self {
            name: None,
            text: text[range.clone()].trim_end().to_owned(),
            pattern: parsed.pattern,
            names: parsed.names,
            variables: parsed.variables,
            replacement: parsed.replacement.map_or(Right::None, Right::Side),
            condition: None,
        };
        for term in &mut rule.pattern.terms {
            term.shift(range.start);
        }
        Ok(rule)
    }

    /// The rule that lets layers which compute the same be one.
    fn same() -> Self {
        let (pattern, names, variables) = (Side::default(), Vec::new(), Vec::new());
        let text = "layers that compute the same".to_owned();
        Self { name: None, text, pattern, names, variables, replacement: Right::Same, condition: None }
    }

    /// The same rule under this name, by which reports and errors call it.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        self.name = Some(name.to_owned());
        self
    }

    /// What reports and errors call it: its name, or its text.
    pub fn name(&self) -> &str {
        self.name.as_deref().unwrap_or(&self.text)
    }

    /// The operation and, where the pattern says it, the operation set of the layer at which it matches.
    pub(crate) fn root(&self) -> Option<(&str, Option<&str>)> {
        let root = apply::root_of(self)?;
        Some((&root.operation, root.version.as_deref()))
    }

    /// How much of it fits at a layer, and why the rest does not; `None` if it matches.
    pub(crate) fn miss(&self, graph: &Graph, weights: &Weights, layer: &Layer) -> Option<(usize, String)> {
        let miss = matching::miss(&matching::Subject::new(graph, weights), self, layer)?;
        Some((miss.progress, miss.reason))
    }

    /// The same rule, which matches only where this holds; the reason why it does not is what
    /// [`explain`](crate::Model::explain) says.
    ///
    /// ```
    /// # use typelift::rewrite::Rule;
    /// let rule = "Softmax-8(x) {axis=$a} => Softmax-1(x) {axis=$a}".parse::<Rule>()?.when(|m| {
    ///     let axis: i64 = m.attribute("a").parse().map_err(|_| "the axis is not a number")?;
    ///     if axis >= 0 { Ok(()) } else { Err("the axis is counted from the end".into()) }
    /// });
    /// # let _ = rule;
    /// # Ok::<(), typelift::notation::NotationError>(())
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

    /// The same pattern with this in its place: a layer that the root becomes, or a tensor that takes its place. Types and
    /// shapes of new layers are inferred.
    ///
    /// ```
    /// # use typelift::rewrite::Rule;
    /// let rule = "Softmax-8(x) {axis=$a}".parse::<Rule>()?.to(|m, new| {
    ///     let rank = m.shape("x").and_then(|shape| shape.rank()).unwrap_or(1) as i64;
    ///     let axis: i64 = m.attribute("a").parse().unwrap_or(0);
    ///     Ok(new.layer("Softmax-1", &[m.tensor("x")]).with_attribute("axis", (axis + rank) % rank).into())
    /// });
    /// # let _ = rule;
    /// # Ok::<(), typelift::notation::NotationError>(())
    /// ```
    #[must_use]
    pub fn to(
        mut self,
        make: impl Fn(&Match, &mut New<'_, '_>) -> Result<Replacement, EditError> + Send + Sync + 'static,
    ) -> Self {
        self.replacement = Right::Code(Arc::new(make));
        self
    }
}

impl Rule {
    /// The same pattern with a right side that depends on the match: text in the notation, or the reason why there is none
    /// and the pattern does not match.
    ///
    /// ```
    /// # use typelift::rewrite::Rule;
    /// let rule = "Softmax-8(x) {axis=$a}".parse::<Rule>()?.writes(|m| {
    ///     let rank = m.shape("x").and_then(|shape| shape.rank()).ok_or("the rank of `x` is not known")? as i64;
    ///     let axis: i64 = m.attribute("a").parse().map_err(|_| "the axis is not a number")?;
    ///     Ok(format!("Softmax-1(x) {{axis={}}}", axis.rem_euclid(rank)))
    /// });
    /// # let _ = rule;
    /// # Ok::<(), typelift::notation::NotationError>(())
    /// ```
    #[must_use]
    pub fn writes(self, text: impl Fn(&Match) -> Result<String, String> + Send + Sync + 'static) -> Self {
        let text: Writer = Arc::new(text);
        let written = text.clone();
        Self { replacement: Right::Written(text), ..self.when(move |m| written(m).map(drop)) }
    }

    /// The right side that [`writes`](Self::writes) gives for a match, its terms counted as those of this pattern are.
    fn written(&self, write: &Writer, matched: &Match) -> Result<Side, EditError> {
        let right = write(matched).map_err(EditError::Other)?;
        let rule: Self = format!("{} => {right}", self.text)
            .parse()
            .map_err(|error: NotationError| EditError::Other(format!("its right side cannot be read: {error}")))?;
        match rule.replacement {
            Right::Side(side) => Ok(side),
            _ => Err(EditError::Other("it has no right side".to_owned())),
        }
    }
}

/// A place where a pattern matches, as conditions and replacements in Rust see it.
#[derive(Clone, Debug)]
pub struct Match {
    root: Layer,
    inputs: Vec<Output>,
    tensors: Vec<(String, Output, ElementType, Shape)>,
    variables: Vec<(String, String)>,
    constants: Vec<(String, Vec<f64>)>,
}

impl Match {
    fn new(graph: &Graph, weights: &Weights, rule: &Rule, bound: &Bindings) -> Self {
        let tensors = rule.names.iter().zip(&bound.tensors).filter_map(|(name, tensor)| {
            let port = graph.output((*tensor)?)?;
            Some((name.text.clone(), (*tensor)?, port.element_type(), port.shape().clone()))
        });
        let constants = rule.names.iter().zip(&bound.tensors).filter_map(|(name, tensor)| {
            let layer = graph
                .layer((*tensor)?.layer)
                .filter(|layer| crate::ops::kind(layer) == crate::ops::LayerKind::Constant)?;
            Some((name.text.clone(), matching::small_constant(layer, weights)?.to_floats().into_vec()))
        });
        let variables = rule.variables.iter().zip(&bound.variables);
        let variables = variables.filter_map(|(name, value)| Some((name.clone(), value.as_ref()?.to_string())));
        let root = bound.layers.first().and_then(|(root, _)| graph.layer(*root)).cloned();
        let root = root.unwrap_or_else(|| Layer::new("", "", ""));
        Self {
            inputs: graph.producers(root.id()).into_iter().flatten().collect(),
            root,
            tensors: tensors.collect(),
            variables: variables.collect(),
            constants: constants.collect(),
        }
    }

    /// The layer at which the pattern matches.
    pub fn root(&self) -> &Layer {
        &self.root
    }

    /// What feeds it.
    pub fn inputs(&self) -> &[Output] {
        &self.inputs
    }

    fn find(&self, name: &str) -> Option<&(String, Output, ElementType, Shape)> {
        self.tensors.iter().find(|(known, ..)| known == name)
    }

    /// The tensor of a name. One that the pattern does not have is an output that no layer has, which every verb refuses.
    pub fn tensor(&self, name: &str) -> Output {
        self.find(name).map_or(LayerId(u64::MAX).output(0), |(_, output, ..)| *output)
    }

    /// The element type of a tensor.
    pub fn element_type(&self, name: &str) -> Option<ElementType> {
        self.find(name).map(|(.., ty, _)| *ty)
    }

    /// The shape of a tensor.
    pub fn shape(&self, name: &str) -> Option<&Shape> {
        self.find(name).map(|(.., shape)| shape)
    }

    /// The value of a variable, without its `$`; empty where the pattern does not have it.
    pub fn attribute(&self, variable: &str) -> &str {
        self.variables.iter().find(|(known, _)| known == variable).map_or("", |(_, value)| value)
    }

    /// The values of a constant, if it has few enough.
    pub fn constant(&self, name: &str) -> Option<&[f64]> {
        self.constants.iter().find(|(known, _)| known == name).map(|(_, values)| values.as_slice())
    }
}

/// Makes what takes the place of a match.
#[derive(Debug)]
pub struct New<'e, 'm> {
    edit: &'e mut Edit<'m>,
    added: Vec<LayerId>,
}

impl New<'_, '_> {
    /// A layer that is not in the graph yet: an operation with its operation set, `Softmax-1`, and its inputs.
    pub fn layer(&self, operation: &str, inputs: &[Output]) -> Draft {
        let (ty, opset) = operation.rsplit_once('-').unwrap_or((operation, "1"));
        let version = if opset.parse::<u8>().is_ok() { format!("opset{opset}") } else { opset.to_owned() };
        Draft { new: NewLayer::new(ty, &version), inputs: inputs.to_vec() }
    }

    /// Puts a layer into the graph.
    ///
    /// # Errors
    /// As [`Edit::add`].
    pub fn add(&mut self, draft: Draft) -> Result<Output, EditError> {
        let id = self.edit.add(draft.new, &draft.inputs)?;
        self.added.push(id);
        Ok(id.output(0))
    }

    /// Adds a constant of this type: integers are rounded towards zero.
    ///
    /// # Errors
    /// As [`Edit::constant`], and where the type does not hold the values.
    pub fn constant(&mut self, ty: ElementType, dims: &[usize], values: &[f64]) -> Result<Output, EditError> {
        let array = Array::floats(ElementType::F64, dims.into(), values.into()).converted(ty);
        let bytes = array.and_then(|array| array.encode());
        let bytes = bytes.ok_or_else(|| EditError::Other(format!("a constant of {ty} cannot be made of numbers")))?;
        let dims: Vec<_> = dims.iter().map(|&dim| dim as u64).collect();
        let output = self.edit.constant(ty, &dims, &bytes)?;
        self.added.push(output.layer);
        Ok(output)
    }
}

/// A layer that is not in the graph yet.
#[derive(Clone, Debug)]
pub struct Draft {
    new: NewLayer,
    inputs: Vec<Output>,
}

impl Draft {
    /// The same with one more attribute.
    #[must_use]
    pub fn with_attribute(mut self, name: &str, value: impl Display) -> Self {
        self.new = self.new.with_attribute(name, value);
        self
    }
}

/// What takes the place of a match.
#[derive(Clone, Debug)]
pub enum Replacement {
    /// The root becomes this layer.
    Layer(Box<Draft>),
    /// Consumers of the root's first output use this tensor instead.
    Tensor(Output),
}

impl From<Draft> for Replacement {
    fn from(draft: Draft) -> Self {
        Self::Layer(Box::new(draft))
    }
}

impl From<Output> for Replacement {
    fn from(tensor: Output) -> Self {
        Self::Tensor(tensor)
    }
}

/// What was applied where.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Every application, in their order.
    pub applied: Vec<Site>,
}

/// One application of a rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Site {
    /// The name of the rule.
    pub rule: String,
    /// The layer at which its pattern matched.
    pub layer: LayerRef,
    /// The layers that came.
    pub added: Vec<LayerRef>,
    /// The layers that went.
    pub removed: Vec<LayerRef>,
}

impl Display for Site {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {} `{}`", self.rule, self.layer.id, self.layer.name)?;
        if self.layer.path.is_empty() { Ok(()) } else { write!(f, " in {}", self.layer.path) }
    }
}

impl IntoIterator for Report {
    type Item = Site;
    type IntoIter = std::vec::IntoIter<Site>;

    fn into_iter(self) -> Self::IntoIter {
        self.applied.into_iter()
    }
}

/// Why a model was not rewritten. It is as it was.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RewriteError {
    /// What takes the place of a match cannot be made there.
    #[error("rule `{rule}` cannot be applied at {}: {reason}", place(.layer))]
    Refused {
        /// The rule.
        rule: String,
        /// Where it matched.
        layer: LayerRef,
        /// Why.
        reason: String,
    },
    /// A tensor that something uses would have another type, or a shape of which less is known.
    #[error("rule `{rule}` would change {}: it is {was}, and would be {becomes}", place(.layer))]
    Changes {
        /// The rule.
        rule: String,
        /// Where it matched.
        layer: LayerRef,
        /// The type and shape before.
        was: String,
        /// The type and shape afterwards.
        becomes: String,
    },
    /// The model would have an error that it did not have.
    #[error("{} would break the model: {error}", list(.rules))]
    Breaks {
        /// The rules that were applied.
        rules: Vec<String>,
        /// The error.
        error: String,
    },
    /// Rules match what they make, for ever.
    #[error("{} again, last at {}: ask in a pattern for something that no replacement has", endless(.rules), place(.layer))]
    Endless {
        /// The rules.
        rules: Vec<String>,
        /// Where one of them was applied last.
        layer: LayerRef,
    },
    /// A pattern without anything to take its place.
    #[error("rule `{0}` says what to find and not what takes its place: add `=> …`")]
    NoReplacement(String),
}

impl RewriteError {
    /// The rule that was refused at a layer, and why.
    pub(crate) fn at(&self, at: &LayerRef) -> Option<(&str, String)> {
        match self {
            Self::Refused { rule, layer, reason } if layer == at => Some((rule, reason.clone())),
            Self::Changes { rule, layer, was, becomes } if layer == at => {
                Some((rule, format!("it is {was}, and would be {becomes}")))
            }
            _ => None,
        }
    }
}

fn place(layer: &LayerRef) -> String {
    let path = if layer.path.is_empty() { String::new() } else { format!(" in {}", layer.path) };
    format!("layer {} `{}`{path}", layer.id, layer.name)
}

fn list(rules: &[String]) -> String {
    let names = rules.iter().map(|rule| format!("`{rule}`")).collect::<Vec<_>>().join(", ");
    format!("{} {names}", if rules.len() == 1 { "rule" } else { "rules" })
}

fn endless(rules: &[String]) -> String {
    let what =
        if rules.len() == 1 { "never stops: what it makes matches" } else { "never stop: what they make matches" };
    format!("{} {what}", list(rules))
}

/// The position of a term in a text that starts at byte `by` of the one it was read from.
impl term::Term {
    fn shift(&mut self, by: usize) {
        let move_back = |span: &mut std::ops::Range<usize>| *span = span.start - by..span.end - by;
        move_back(&mut self.span);
        if let term::TermKind::Layer(layer) = &mut self.kind {
            move_back(&mut layer.head);
            layer.attributes.iter_mut().for_each(|attribute| move_back(&mut attribute.span));
        }
    }
}

/// Reads an expression of one tensor, which is called `_`.
fn expression(text: &str, range: std::ops::Range<usize>) -> Result<Side, NotationError> {
    let parsed = parse::expression(text, range.clone())?;
    parsed.replacement.ok_or_else(|| Cursor::new(text).error(range, "expected an expression"))
}
