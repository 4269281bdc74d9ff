//! Rewriting by rules: a pattern and its replacement, in the [notation] that also shows graphs.
//!
//! ```
//! use typelift::{rewrite::Rule, Model};
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
//! The layer at which a pattern matches keeps its id, its position in the file, its name, its metadata and its
//! consumers. Only its operation, attributes and inputs change. Layers inside the match that become unused are removed.

mod apply;
mod bound;
mod build;
mod builtin;
mod chain;
mod constant;
mod cut;
mod duplicates;
mod evaluate;
mod explain;
mod known;
pub mod library;
mod lists;
mod logic;
mod losses;
mod matching;
mod normal;
pub mod notation;
mod operations;
mod parse;
mod pattern;
mod pieces;
mod roots;
mod script;
mod shapes;
mod strict;
mod subject;
mod swap;
mod term;
mod values;

use std::fmt::{self, Debug, Display, Formatter};
use std::ops::{Deref, DerefMut};
use std::str::FromStr;
use std::sync::Arc;

use serde::Serialize;
use thiserror::Error;
use typelift_promote::ElementType;

pub use explain::Explanation;
pub use losses::{Losses, values_are};
pub use pattern::{Match, Pattern, UnknownName};
pub use script::{Script, ScriptError, effect::Effect};

use crate::edit::Edit;
use crate::findings::LayerRef;
use crate::model::graph::{EditError, Graph, Layer, NewLayer, Output};
use crate::model::weights::Weights;
use crate::ops::values::array::Array;
use crate::rewrite::notation::{Cursor, NotationError};
use builtin::Builtin;
use parse::Definitions;
use term::Side;

type Code = Arc<dyn Fn(&Match, &mut New<'_, '_>) -> Result<Replacement, EditError> + Send + Sync>;
type Writer = Arc<dyn Fn(&Match) -> Result<String, String> + Send + Sync>;

/// A pattern and its replacement, parsed from text:
/// ```
/// # use typelift::rewrite::Rule;
/// let rule: Rule = "Divide(x, c: const f32) => Multiply(x, 1 / c)".parse()?;
/// assert_eq!(rule.named("reciprocal").name(), "reciprocal");
/// let error = "Divide(x, 2) => Multiply(y, 0.5)".parse::<Rule>().unwrap_err();
/// assert_eq!(error.to_string(), "\
/// `y` is not in the pattern
///   Divide(x, 2) => Multiply(y, 0.5)
///                            ^
///   help: it has `x`; a line `let y = …` before the rule gives a value a name");
/// # Ok::<(), typelift::rewrite::notation::NotationError>(())
/// ```
#[derive(Clone)]
pub struct Rule {
    name: Option<String>,
    text: String,
    pattern: Pattern,
    replacement: RuleReplacement,
    /// True if a match is left unchanged when its replacement is refused.
    tries: bool,
    /// True if the rule is never applied to its own output.
    once: bool,
}

#[derive(Clone)]
enum RuleReplacement {
    Side(Side),
    Code(Code),
    /// Text of a replacement, which a function writes for each match.
    Written(Writer),
    Builtin(Builtin),
}

impl FromStr for Rule {
    type Err = NotationError;

    fn from_str(text: &str) -> Result<Self, NotationError> {
        Self::read(text, 0..text.len(), &Definitions::default())
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
    fn new(pattern: Pattern, replacement: RuleReplacement) -> Self {
        Self { name: None, text: pattern.text.clone(), pattern, replacement, tries: false, once: false }
    }

    /// Parses the rule at these bytes of a text: `[try] [once] [NAME:] PATTERN => REPLACEMENT`.
    fn read(text: &str, range: std::ops::Range<usize>, definitions: &Definitions) -> Result<Self, NotationError> {
        let mut cursor = Cursor::within(text, range.clone());
        let (mut tries, mut once) = (false, false);
        loop {
            let mut ahead = cursor.clone();
            let word = ahead.word();
            let is_word = ahead.peek().is_some_and(char::is_whitespace);
            match word {
                "try" if is_word => tries = true,
                "once" if is_word => once = true,
                _ => break,
            }
            cursor = ahead;
        }
        cursor.skip_space();
        let mut ahead = cursor.clone();
        let name = ahead.run(|c| c.is_alphanumeric() || "_-./".contains(c)).to_owned();
        let named = !name.is_empty() && ahead.eat(":");
        if named {
            cursor = ahead;
            cursor.skip_space();
        }
        let (mut pattern, right) = parse::rule(text, cursor.at..range.end, definitions)?;
        let Some(right) = right else {
            let error = Cursor::within(text, range.end..range.end).expected("`=>` and the replacement");
            return Err(error);
        };
        pattern.needs_floats = strict::needs_floats(&pattern, &right);
        let rule = Self { tries, once, ..Self::new(pattern, RuleReplacement::Side(right)) };
        Ok(if named { rule.named(&name) } else { rule })
    }

    fn built_in(text: &str, builtin: Builtin) -> Self {
        let pattern = Pattern { text: text.to_owned(), ..Pattern::default() };
        Self { tries: true, ..Self::new(pattern, RuleReplacement::Builtin(builtin)) }
    }

    /// Sets the name for reports and errors.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        self.name = Some(name.to_owned());
        self
    }

    /// Returns the name for reports and errors; a rule without name is called by its text.
    pub fn name(&self) -> &str {
        self.name.as_deref().unwrap_or(&self.text)
    }

    /// Makes the rule skip a match if its replacement is not possible.
    #[must_use]
    pub fn tried(self) -> Self {
        Self { tries: true, ..self }
    }

    /// Prevents that the rule is applied to its own output.
    #[must_use]
    pub fn once(self) -> Self {
        Self { once: true, ..self }
    }

    /// Adds a condition, as [`Pattern::when`] does.
    #[must_use]
    pub fn when(self, condition: impl Fn(&Match) -> Result<(), String> + Send + Sync + 'static) -> Self {
        Self { pattern: self.pattern.when(condition), ..self }
    }

    /// The rule without the limits on element types and ranks.
    pub(crate) fn trusted(mut self) -> Self {
        self.pattern.needs_floats = false;
        self.pattern.allowed.ranks = true;
        self
    }

    /// The operation and, if the pattern names it, the operation set of the root.
    pub(crate) fn root(&self) -> Option<(&str, Option<&str>)> {
        let root = operations::root_of(&self.pattern)?;
        Some((&root.operation, root.version.as_deref()))
    }

    /// Does the same as [`Pattern::miss`].
    pub(crate) fn miss(&self, graph: &Graph, weights: &Weights, layer: &Layer) -> Option<(usize, String)> {
        self.pattern.miss(graph, weights, layer)
    }

    fn written(&self, write: &Writer, matched: &Match) -> Result<Side, EditError> {
        let right = write(matched).map_err(EditError::Other)?;
        let side = parse::right_side(&right, &self.pattern);
        side.map_err(|error| EditError::Other(format!("its replacement cannot be parsed: {error}")))
    }
}

/// Editor that builds the replacement of a match. It has all methods of [`Edit`], and shorter ones.
#[derive(Debug)]
pub struct New<'e, 'm> {
    edit: &'e mut Edit<'m>,
}

impl<'m> Deref for New<'_, 'm> {
    type Target = Edit<'m>;

    fn deref(&self) -> &Edit<'m> {
        self.edit
    }
}

impl<'m> DerefMut for New<'_, 'm> {
    fn deref_mut(&mut self) -> &mut Edit<'m> {
        self.edit
    }
}

impl New<'_, '_> {
    /// Adds a layer to the graph, and returns its first output.
    ///
    /// # Errors
    /// The errors of [`Edit::add`].
    pub fn add(&mut self, new: NewLayer, inputs: &[Output]) -> Result<Output, EditError> {
        Ok(self.edit.add(new, inputs)?.output(0))
    }

    /// Adds a constant of this type. Integer types truncate the values.
    ///
    /// # Errors
    /// The errors of [`Edit::constant`], and values that the type cannot hold.
    pub fn constant(&mut self, ty: ElementType, dims: &[i64], values: &[f64]) -> Result<Output, EditError> {
        let lengths = dims.iter().map(|&dim| usize::try_from(dim)).collect::<Result<_, _>>();
        let lengths = lengths.map_err(|_| EditError::Other(format!("a dimension of {dims:?} is negative")))?;
        let array = Array::floats(ElementType::F64, lengths, values.into()).converted(ty);
        let bytes = array.and_then(|array| array.encode());
        let bytes = bytes.ok_or_else(|| EditError::Other(format!("a constant of {ty} cannot be made from numbers")))?;
        self.edit.constant(ty, dims, &bytes)
    }
}

/// Replacement of a match.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Replacement {
    /// The root is replaced in place by this layer with these inputs: [`Replacement::layer`].
    Layer(Box<NewLayer>, Vec<Output>),
    /// Consumers of the first output at the root use this tensor instead. If it is that output, the root is kept with
    /// its edits.
    Tensor(Output),
    /// Consumers of the outputs at the root use these tensors instead, one for each output.
    Tensors(Vec<Output>),
}

impl Replacement {
    /// Replaces the root in place by this layer with these inputs.
    #[must_use]
    pub fn layer(new: NewLayer, inputs: &[Output]) -> Self {
        Self::Layer(Box::new(new), inputs.to_vec())
    }
}

impl From<Output> for Replacement {
    fn from(tensor: Output) -> Self {
        Self::Tensor(tensor)
    }
}

/// Result of a rewrite: the applied rules with their layers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Report {
    /// All applications, in order.
    pub applied: Vec<Site>,
    /// The matches that a rule with `try` left unchanged.
    pub skipped: Vec<Skipped>,
    /// The layers, inputs and outputs that statements of a script removed.
    pub statements: Vec<Effect>,
    /// The statements of a script that lose values of constants.
    pub lossy: Vec<Lossy>,
    /// The number of errors in the result, which were there before; `None` if no statement or rule applied.
    #[serde(skip)]
    pub errors: Option<usize>,
}

/// A statement that loses values of constants.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Lossy {
    /// The statement.
    pub statement: String,
    /// Values that new constants lose.
    #[serde(flatten)]
    pub losses: Losses,
    /// Tensors of an adapter that belong to no layer, and are not applied.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unused: Vec<String>,
}

/// Match that was left unchanged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Skipped {
    /// The name of the rule.
    pub rule: String,
    /// The layer at which its pattern matched.
    pub layer: LayerRef,
    /// The reason why the replacement was not possible.
    pub reason: String,
}

impl Display for Skipped {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} skipped at {}: {}", self.rule, place(&self.layer), self.reason)
    }
}

/// Application of a rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Site {
    /// The name of the rule.
    pub rule: String,
    /// The layer at which its pattern matched.
    pub layer: LayerRef,
    /// The added layers.
    pub added: Vec<LayerRef>,
    /// The layers that were removed.
    pub removed: Vec<LayerRef>,
    /// Values that new constants lose.
    #[serde(flatten)]
    pub losses: Losses,
}

impl Display for Site {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}", self.rule, place(&self.layer))
    }
}

impl IntoIterator for Report {
    type Item = Site;
    type IntoIter = std::vec::IntoIter<Site>;

    fn into_iter(self) -> Self::IntoIter {
        self.applied.into_iter()
    }
}

/// Reason why a model was not rewritten. The model is unchanged.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RewriteError {
    /// The replacement of a match cannot be built there.
    #[error("rule `{rule}` cannot be applied at layer {}: {reason}", place(.layer))]
    Refused {
        /// The rule.
        rule: String,
        /// The layer of the match.
        layer: LayerRef,
        /// The reason.
        reason: String,
    },
    /// The type of a used tensor would change, or its shape would be less known.
    #[error("rule `{rule}` would change layer {} from {was} to {becomes}", place(.layer))]
    Changes {
        /// The rule.
        rule: String,
        /// The layer of the match.
        layer: LayerRef,
        /// The type and shape before.
        was: String,
        /// The type and shape afterwards.
        becomes: String,
    },
    /// The model would have a new error.
    #[error("{} would break the model: {error}", list(.rules))]
    Breaks {
        /// The rules that were applied.
        rules: Vec<String>,
        /// The error that the model would have.
        error: String,
    },
    /// The rules match their own output endlessly.
    #[error("{} again, last at layer {}: add a condition to a pattern that no replacement satisfies", endless(.rules), place(.layer))]
    Endless {
        /// The rules.
        rules: Vec<String>,
        /// The layer of the last application.
        layer: LayerRef,
    },
}

impl RewriteError {
    fn to_skipped(&self) -> Option<Skipped> {
        let (Self::Refused { rule, layer, .. } | Self::Changes { rule, layer, .. }) = self else { return None };
        let (_, reason) = self.at(layer)?;
        Some(Skipped { rule: rule.clone(), layer: layer.clone(), reason })
    }

    /// The rule that was not possible at a layer, and the reason.
    pub(crate) fn at(&self, at: &LayerRef) -> Option<(&str, String)> {
        match self {
            Self::Refused { rule, layer, reason } if layer == at => Some((rule, reason.clone())),
            Self::Changes { rule, layer, was, becomes } if layer == at => {
                Some((rule, format!("its type would change from {was} to {becomes}")))
            }
            _ => None,
        }
    }
}

fn place(layer: &LayerRef) -> String {
    let path = if layer.place.is_model() { String::new() } else { format!(" in {}", layer.path()) };
    format!("{} `{}`{path}", layer.id, layer.name)
}

fn list(rules: &[String]) -> String {
    let names = rules.iter().map(|rule| format!("`{rule}`")).collect::<Vec<_>>().join(", ");
    format!("{} {names}", if rules.len() == 1 { "rule" } else { "rules" })
}

fn endless(rules: &[String]) -> String {
    let what = if rules.len() == 1 {
        "never stops: it matches its own output"
    } else {
        "never stop: they match their own output"
    };
    format!("{} {what}", list(rules))
}
