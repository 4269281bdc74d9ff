//! Expressions of statements. Their names are tensors of the model.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use typelift_promote::ElementType;

use super::names::{renamed, with_suggestion};
use crate::base::hash::{HashMap, HashSet};
use crate::base::names::is_glob;
use crate::edit::Edit;
use crate::model::graph::{EditError, FindError, LayerId, Model, Names, Output};
use crate::model::shape::TensorType;
use crate::model::weights::Weights;
use crate::ops::values::array::Array;
use crate::rewrite::bound::Bound;
use crate::rewrite::build::{Added, Build};
use crate::rewrite::constant::stretch;
use crate::rewrite::evaluate::{Evaluator, Lack};
use crate::rewrite::losses::Losses;
use crate::rewrite::notation::{self, Cursor, NotationError};
use crate::rewrite::parse;
use crate::rewrite::term::{Expression, Source, TermKind};
use crate::rewrite::values;

/// The tensors that `let` gave a name, the layers that were added for them, and what the current statement loses.
#[derive(Debug, Default)]
pub(super) struct Lets {
    pub(super) tensors: HashMap<String, Output>,
    pub(super) added: HashSet<LayerId>,
    pub(super) losses: Cell<Losses>,
    /// Tensors of an adapter that belong to no layer.
    pub(super) unused: RefCell<Vec<String>>,
    /// The inputs that a statement gives another type or shape.
    pub(super) inputs: HashSet<String>,
    /// The expressions that compute the values of inputs.
    pub(super) befores: HashMap<String, Arc<Formula>>,
}

impl Lets {
    /// Counts values that a statement loses.
    pub(super) fn lose(&self, lost: Losses) {
        let mut losses = self.losses.get();
        losses += lost;
        self.losses.set(losses);
    }

    /// Removes the added layers that are not used at the end.
    pub(super) fn sweep(self, model: &mut Model) {
        let added = self.added.into_iter().collect();
        let _nothing_is_refused = model.edit(|edit| edit.sweep(added, |_, _| {}));
    }
}

/// Tensor that a statement changes, which is `_` in its expression.
#[derive(Clone, Copy)]
pub(super) struct Own<'a> {
    pub(super) tensor: Output,
    /// The name or pattern in the statement, and the name that it matched.
    pub(super) name: Option<(&'a str, &'a str)>,
}

/// Expression as text. It is parsed again when it is applied, because only the model shows which names are constants.
#[derive(Clone, Debug)]
pub(super) struct Formula {
    text: String,
    files: Vec<PathBuf>,
}

impl Formula {
    /// Parses the rest of the text as an expression.
    pub(super) fn read(cursor: &mut Cursor) -> Result<Self, NotationError> {
        let expression = parse::expression(cursor.text, cursor.at..cursor.end, &|_| true)?;
        let text = cursor.rest().trim().to_owned();
        cursor.at = cursor.end;
        Ok(Self { text, files: expression.side.files().map(Path::to_owned).collect() })
    }

    pub(super) fn files(&self) -> impl Iterator<Item = &Path> {
        self.files.iter().map(PathBuf::as_path)
    }

    pub(super) fn resolve<'a>(&self, model: &Model, lets: &'a Lets, own: Option<Own>) -> Result<Resolved<'a>, String> {
        self.resolve_by(model, lets, own, &|name| model.graph().tensor(name))
    }

    /// Finds the tensors of its names for each of these tensors, in time in proportion to the model and their number.
    pub(super) fn resolve_all<'a>(
        &self,
        model: &Model,
        lets: &'a Lets,
        owns: &[Own<'_>],
    ) -> Result<Vec<Resolved<'a>>, String> {
        if let &[own] = owns {
            return Ok(vec![self.resolve(model, lets, Some(own))?]);
        }
        let index = Names::of(model);
        owns.iter().map(|own| self.resolve_by(model, lets, Some(*own), &|name| index.tensor(model, name))).collect()
    }

    fn resolve_by<'a>(
        &self,
        model: &Model,
        lets: &'a Lets,
        own: Option<Own>,
        tensor: &dyn Fn(&str) -> Result<Output, FindError>,
    ) -> Result<Resolved<'a>, String> {
        let tensor = |name: &str| tensor(name).map_err(|error| with_suggestion(model, name, error.to_string()));
        let find = |source: &Source| match (source, own) {
            (Source::Own, Some(own)) => Ok(own.tensor),
            (Source::Own, None) => Err("`_` cannot be used in this statement".to_owned()),
            (Source::Named(name), _) if lets.tensors.contains_key(name) => Ok(lets.tensors[name]),
            (Source::Named(name), Some(Own { name: Some((glob, found)), .. })) if is_glob(name) && is_glob(glob) => {
                tensor(&renamed(glob, name, found)?)
            }
            (Source::Named(name), _) => tensor(name),
        };
        let is_constant = |source: &Source| find(source).is_ok_and(|tensor| values::is_constant(model.graph(), tensor));
        let text = with_quoted_paths(&self.text, &|word| find(&Source::Named(word.to_owned())).is_ok());
        let expression = parse::expression(&text, 0..text.len(), &is_constant);
        let mut expression = expression.map_err(|error| error.to_string())?;
        if let Some(Own { name: Some((glob, found)), .. }) = own.filter(|own| own.name.is_some_and(|it| is_glob(it.0)))
        {
            let repeated = |text: &str| if is_glob(text) { renamed(glob, text, found) } else { Ok(text.to_owned()) };
            for term in &mut expression.side.terms {
                if let TermKind::File(file) = &mut term.kind {
                    *file = Arc::new(file.renamed(repeated)?);
                }
            }
        }
        let tensors = expression.sources.iter().map(find).collect::<Result<Vec<_>, _>>()?;
        let bound = tensors.into_iter().map(|tensor| Some(Bound::Tensor(tensor))).collect();
        Ok(Resolved { expression, bound, lets })
    }
}

/// The ends of a bare word with `/` that are tried.
const MOST_ENDS: usize = 16;

/// Quotes each bare word with `/` that is known, because `/` also divides: `a/b/2` is `"a/b"/2` if `a/b` is known. The
/// longest known word counts.
fn with_quoted_paths<'t>(text: &'t str, is_known: &dyn Fn(&str) -> bool) -> Cow<'t, str> {
    if !text.contains('/') {
        return text.into();
    }
    let is_in_word = |c: char| c.is_alphanumeric() || "_.:/-".contains(c);
    let (mut quoted, mut rest) = (String::new(), text);
    while !rest.is_empty() {
        let word = &rest[..rest.find(|c| !is_in_word(c)).unwrap_or(rest.len())];
        let ends = word.rmatch_indices(['/', '-']).map(|(at, _)| &word[..at]).take(MOST_ENDS);
        let known = std::iter::once(word).chain(ends).find(|word| word.contains('/') && is_known(word));
        let taken = if let Some(known) = known {
            quoted += &notation::quoted(known);
            known.len()
        } else {
            let taken = match rest.strip_prefix('"') {
                Some(inside) => {
                    inside.match_indices('"').find(|&(at, _)| !inside[..at].ends_with('\\')).map(|(at, _)| at + 2)
                }
                None => rest.find(|c| !is_in_word(c) || "/-".contains(c)).map(|at| rest.ceil_char_boundary(at + 1)),
            };
            let taken = taken.unwrap_or(rest.len());
            quoted += &rest[..taken];
            taken
        };
        rest = &rest[taken..];
    }
    quoted.into()
}

/// An expression whose names are tensors of a model.
pub(super) struct Resolved<'a> {
    expression: Expression,
    bound: Vec<Option<Bound>>,
    lets: &'a Lets,
}

impl Resolved<'_> {
    fn root(&self) -> usize {
        self.expression.side.roots.first().copied().unwrap_or_default()
    }

    fn fills(&self) -> bool {
        let Expression { side, .. } = &self.expression;
        matches!(&side.terms[self.root()].kind, TermKind::Literal(literal) if literal.dims.is_empty())
    }

    /// A number gets the shape of `like`.
    pub(super) fn build(&self, edit: &mut Edit<'_>, like: Option<&TensorType>) -> Result<Output, EditError> {
        let expected = like.map(|like| like.element_type);
        if let (true, Some(dims)) = (self.fills(), like.and_then(|like| like.shape.to_static())) {
            let array = self.array(edit, expected).map_err(EditError::Other)?;
            let lengths: Vec<_> = dims.iter().map(|&dim| dim as usize).collect();
            let bytes = filled(&array, &lengths, edit.weights()).map_err(EditError::Other)?.encode();
            let bytes = bytes.ok_or_else(|| EditError::Other(format!("{} is not numeric", array.element_type)))?;
            return edit.constant(array.element_type, &dims, &bytes);
        }
        let Expression { side, names, .. } = &self.expression;
        let mut constants = Added::default();
        let mut build = Build {
            edit,
            side,
            names,
            bound: &self.bound,
            variables: &[],
            matched: &[],
            constants: &mut constants,
            added: Vec::new(),
            shared: Vec::new(),
            takes_newest: true,
            may_overflow: true,
            losses: Cell::default(),
            scope: None,
        };
        let tensor = build.build_tensor(self.root(), expected)?;
        self.lets.lose(build.losses.get());
        Ok(tensor)
    }

    /// Numbers get the `expected` type, unless their operands determine another one.
    pub(super) fn array(&self, graph: &Edit<'_>, expected: Option<ElementType>) -> Result<Array, String> {
        let weights = graph.weights();
        let Expression { side, names, .. } = &self.expression;
        for (name, bound) in names.iter().zip(&self.bound) {
            let tensor = bound.as_ref().and_then(Bound::tensor);
            if tensor.is_some_and(|tensor| values::values(graph, weights, tensor).is_none()) {
                return Err(format!("`{}` is not a constant with known values", name.text));
            }
        }
        let evaluator = Evaluator::new((graph, weights), side, names, &self.bound, &[]);
        let array = evaluator.array(self.root(), expected).map_err(|lack| match lack {
            Lack::Absent => "a name in the expression is unknown".to_owned(),
            Lack::Reason(reason) | Lack::False(reason) => reason,
        })?;
        self.lets.lose(evaluator.losses.get());
        Ok(array)
    }

    /// A number fills `dims`.
    pub(super) fn values(&self, graph: &Edit<'_>, expected: ElementType, dims: &[usize]) -> Result<Array, String> {
        let array = self.array(graph, Some(expected))?;
        if self.fills() { filled(&array, dims, graph.weights()) } else { Ok(array) }
    }
}

/// A tensor of these dimensions in which every element is one number, if the memory limit permits it.
fn filled(number: &Array, dims: &[usize], weights: &Weights) -> Result<Array, String> {
    let count = dims.iter().fold(1_u64, |count, &dim| count.saturating_mul(dim as u64));
    weights.compute(count).map_err(|reason| format!("the value is too large: {reason}"))?;
    Ok(stretch(number, dims))
}
