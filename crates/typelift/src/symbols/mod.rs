//! Symbolic lengths: which lengths of open dimensions fit, and why.
//!
//! [`shapes`] walks an inferred model once. Each open dimension of an input is a symbol, a dimension of a tensor is an
//! expression over symbols, and what an operation demands of lengths is a [`Constraint`] with its reason. Inference
//! itself is not touched: without this walk, symbols cost nothing.
//!
//! - `expression`: integer expressions in a normal form
//! - `walk`: tensors, ties of symbols, and constraints while the layers are visited
//! - `rules`: dimensions and constraints by operation, and values of shape computations
//! - `answer`: which lengths fit, where one comes from, and why some are refused, in words
//! - `trial`: lengths that fit, tried by static inference
//! - `formula`: multiply-accumulate operations and bytes as expressions
//! - `names`: what symbols are called

mod answer;
mod expression;
pub(crate) mod formula;
mod names;
mod rules;
pub(crate) mod trial;
mod walk;

use std::fmt;

use self::expression::{Arena, Expr, Level, Names};
use self::walk::Walk;
use crate::base::hash::HashMap;
use crate::base::span::Span;
use crate::findings::LayerRef;
use crate::model::graph::{LayerId, Model, Output, OutputPort};

pub(crate) use self::formula::Formulas;
pub(crate) use self::trial::fitting_lengths;

/// Symbols, constraints and dimensions of a model.
#[derive(Debug)]
#[non_exhaustive]
pub struct Shapes {
    arena: Arena,
    /// The open lengths, in the order of the inputs.
    pub symbols: Vec<Symbol>,
    /// The open lengths of the state, which are numbered after those of the inputs.
    state: Vec<Symbol>,
    /// The constraints in the order of the graph.
    pub constraints: Vec<Constraint>,
    /// The lists of dimensions, and for each tensor the position of its list.
    dims: Vec<Box<[Option<Expr>]>>,
    tensors: HashMap<Output, usize>,
    pub(crate) swallows: Vec<Swallow>,
    /// Each symbol, or the first of those with which it broadcasts.
    merged: Vec<Expr>,
    /// Long dimensions as they are if lengths that broadcast are equal.
    brief: HashMap<Expr, Expr>,
}

/// An open length of a model's inputs.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Symbol {
    /// The id, which is unique and short: `s0`.
    pub id: String,
    /// The name, which is unique in the model: `batch`.
    pub name: String,
    /// Parameters with the axes that have this length.
    pub axes: Vec<(LayerId, usize)>,
    /// Inputs by name, for messages.
    inputs: Vec<String>,
    /// Why the axes have one length, if there are several.
    pub because: Vec<Reason>,
    /// The limits that the Parameters declare, at least 1; `i64::MAX` if there is no upper one.
    pub bounds: (i64, i64),
}

/// When a constraint that does not hold is noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Noticed {
    /// Static shape inference refuses the lengths.
    Load,
    /// Only a device refuses them, or it computes from values that do not exist.
    Run,
}

/// What the lengths of a model must satisfy.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Constraint {
    test: Expr,
    /// Positions of the symbols that it names.
    pub symbols: Vec<usize>,
    text: String,
    /// The expression with the names of symbols in place of their ids.
    pub named: String,
    pub(crate) is_never: bool,
    /// When it is noticed that it does not hold.
    pub at: Noticed,
    /// The layer that demands it, and those above it up to a constant.
    pub because: Vec<Reason>,
    /// The values that are read where it does not hold, if that is no error.
    pub reads: Option<Reads>,
    /// The table that an index leaves.
    table: Option<Reason>,
}

/// The values that a device reads beyond the end of a table, without an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reads {
    /// Zeros.
    Zeros,
    /// Bytes of other tensors.
    ForeignMemory,
}

impl fmt::Display for Reads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Zeros => "zeros",
            Self::ForeignMemory => "foreign memory",
        })
    }
}

/// A Reshape whose -1 takes a length of the first axis, which the Reshape makes 1.
#[derive(Clone, Debug)]
pub(crate) struct Swallow {
    pub(crate) layer: LayerId,
    /// The symbol of the first axis.
    pub(crate) symbol: usize,
    /// The axis of the -1.
    pub(crate) axis: usize,
    /// True if other axes with several elements come between the first one and that of the -1.
    pub(crate) is_scrambled: bool,
}

/// A layer that is the reason of a constraint: the one that demands it, then those above it up to a constant.
#[derive(Clone, Debug)]
pub struct Reason {
    /// The layer.
    pub layer: LayerRef,
    /// Its type.
    pub operation: String,
    /// Where the layer is written.
    pub span: Span,
}

impl Symbol {
    /// Returns the axes with the names of their inputs.
    pub fn named_axes(&self) -> impl Iterator<Item = (&str, usize)> {
        self.inputs.iter().zip(&self.axes).map(|(name, &(_, axis))| (name.as_str(), axis))
    }

    /// Returns its first axis: `input_ids[1]`.
    pub fn axis(&self) -> String {
        self.named_axes().next().map_or_else(|| self.name.clone(), |(input, axis)| format!("{input}[{axis}]"))
    }

    /// True if the inputs declare an upper bound.
    pub fn is_bounded(&self) -> bool {
        self.bounds.1 < i64::MAX
    }
}

impl Constraint {
    /// Returns the layer with the number that it needs, and what that layer is: `position table`, `a constant`, or the
    /// operation that demands it.
    pub fn source(&self) -> Option<(&str, &Reason)> {
        match (&self.table, self.because.last()) {
            (Some(table), _) => Some(("position table", table)),
            (None, Some(last)) if last.operation == "Const" => Some(("a constant", last)),
            _ => self.because.first().map(|first| (first.operation.as_str(), first)),
        }
    }
}

/// Formats the expression, as Python, with the ids of symbols.
impl fmt::Display for Constraint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Shapes {
    /// Returns the dimensions of a tensor of the model's own graph, as Python with the ids of symbols; `?` is unknown.
    /// `None` if the rank is unknown.
    pub fn dims(&self, tensor: Output) -> Option<Vec<String>> {
        self.dims_with(tensor, &|symbol| &self.any(symbol).id)
    }

    /// Returns the dimensions as [`dims`](Self::dims) does, with the names of symbols.
    pub fn named_dims(&self, tensor: Output) -> Option<Vec<String>> {
        self.dims_with(tensor, &|symbol| &self.any(symbol).name)
    }

    /// A symbol of an input or of the state.
    fn any(&self, at: usize) -> &Symbol {
        self.symbols.get(at).unwrap_or_else(|| &self.state[at - self.symbols.len()])
    }

    /// Formats the dimensions of a tensor with the names of symbols: `[batch,seq,64]`, or `[batch, seq + past, 64]`.
    /// A long dimension is written as if inputs that broadcast had equal lengths. An unknown one is that of `port`, which
    /// produces the tensor.
    pub fn text(&self, tensor: Output, port: &OutputPort) -> String {
        let Some(dims) = self.dims_of(tensor) else { return port.shape().to_string() };
        let mut text = "[".to_owned();
        for (at, dim) in dims.iter().enumerate() {
            text.push_str(if at == 0 { "" } else { ", " });
            match (dim, port.shape().dims().and_then(|dims| dims.get(at))) {
                (Some(dim), _) => {
                    let names: Names<'_> = &|symbol| &self.any(symbol).name;
                    self.arena.write(*self.brief.get(dim).unwrap_or(dim), names, Level::Or, &mut text);
                }
                (None, Some(inferred)) => text.push_str(&inferred.to_string()),
                (None, None) => text.push('?'),
            }
        }
        // Only dimensions with spaces need one between them.
        text = if text.matches(' ').count() < dims.len() { text.replace(' ', "") } else { text };
        text + "]"
    }

    fn dims_of(&self, tensor: Output) -> Option<&[Option<Expr>]> {
        self.tensors.get(&tensor).map(|&list| &*self.dims[list])
    }

    /// Returns a number that two tensors share if they have the same dimensions, and so the same [`text`](Self::text). `None` if a
    /// dimension is unknown.
    pub fn number(&self, tensor: Output) -> Option<usize> {
        self.tensors.get(&tensor).copied().filter(|&list| self.dims[list].iter().all(Option::is_some))
    }

    fn dims_with(&self, tensor: Output, names: Names<'_>) -> Option<Vec<String>> {
        let dims = self.dims_of(tensor)?;
        Some(dims.iter().map(|dim| dim.map_or_else(|| "?".to_owned(), |dim| self.arena.text(dim, names))).collect())
    }

    /// Returns the lengths of a tensor's dimensions for these lengths of the symbols; `None` for unknown ones.
    pub fn lengths_of(&self, tensor: Output, lengths: &[i64]) -> Option<Vec<Option<i64>>> {
        let dims = self.dims_of(tensor)?;
        Some(dims.iter().map(|dim| dim.and_then(|dim| self.arena.evaluate(dim, lengths))).collect())
    }

    /// Returns the constraints that do not hold for these lengths, one length for each symbol.
    pub fn broken(&self, lengths: &[i64]) -> Vec<&Constraint> {
        self.constraints.iter().filter(|it| self.arena.evaluate(it.test, lengths) == Some(0)).collect()
    }
}

/// Finds symbols, constraints and dimensions of an inferred model.
///
/// An open dimension of an input of known rank is a symbol. Lengths are at least 1.
///
/// # Examples
/// ```
/// let mut model = typelift::Model::open(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/model.xml"))?;
/// assert_eq!(typelift::infer(&mut model), []);
/// let shapes = typelift::shapes(&model);
/// let y = model.graph().tensor("y")?;
/// assert_eq!(shapes.dims(y), Some(vec!["s0".to_owned(), "4".to_owned()]));
/// assert!(shapes.constraints.is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub fn shapes(model: &Model) -> Shapes {
    let mut walk = Walk::new(model);
    rules::visit(&mut walk, model.graph());
    walk.finish()
}
