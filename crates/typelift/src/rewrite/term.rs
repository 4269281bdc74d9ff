use std::ops::Range;

use smallvec::SmallVec;
use typelift_promote::ElementType;

use crate::notation::Literal;
use crate::shape::Shape;

/// A side of a rule: terms that refer to each other by position.
#[derive(Clone, Debug, Default)]
pub(crate) struct Side {
    pub(crate) terms: Vec<Term>,
    /// The outermost term, or for a tuple one for each output.
    pub(crate) roots: Vec<usize>,
    /// The names of the outputs of the root, where it has several.
    pub(crate) outputs: Vec<usize>,
}

/// A part of a rule.
#[derive(Clone, Debug)]
pub(crate) struct Term {
    pub(crate) span: Range<usize>,
    pub(crate) kind: TermKind,
    /// The element types that it may have; none for any.
    pub(crate) element_types: SmallVec<[ElementType; 2]>,
    /// The variable that is its element type.
    pub(crate) type_variable: Option<usize>,
    pub(crate) shape: Option<Shape>,
}

#[derive(Clone, Debug)]
pub(crate) enum TermKind {
    /// `_`
    Any,
    /// A tensor, by the position of its name.
    Name { name: usize, constant: bool },
    /// A constant with these values.
    Literal(Literal),
    /// An output of a layer.
    Layer(LayerTerm),
    /// Arithmetic on constants.
    Compute(Function, Vec<usize>),
}

#[derive(Clone, Debug)]
pub(crate) struct LayerTerm {
    /// The operation's own name, or the type that files write for one that is not known.
    pub(crate) operation: String,
    /// As files write it; `None` for any revision, or the oldest.
    pub(crate) version: Option<String>,
    /// Where the operation is written.
    pub(crate) head: Range<usize>,
    pub(crate) optional: bool,
    pub(crate) shared: bool,
    pub(crate) inputs: Vec<usize>,
    /// What `...` behind the inputs means.
    pub(crate) more_inputs: Rest,
    pub(crate) attributes: Vec<AttributeTerm>,
    /// What `...` among the attributes means.
    pub(crate) more_attributes: Rest,
    pub(crate) output: usize,
}

/// What `...` means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rest {
    /// It is not there.
    None,
    /// In a pattern: whatever else there is.
    Any,
    /// In a replacement: what else the layer has that this term of the pattern matched.
    Of(usize),
}

#[derive(Clone, Debug)]
pub(crate) struct AttributeTerm {
    pub(crate) name: String,
    pub(crate) value: AttributeValue,
    pub(crate) span: Range<usize>,
}

#[derive(Clone, Debug)]
pub(crate) enum AttributeValue {
    Text(String),
    /// The variable at this position.
    Variable(usize),
}

/// What can be done with constants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Function {
    Add,
    Subtract,
    Multiply,
    Divide,
    Negate,
    Sqrt,
    Exp,
    Transpose,
    Reshape,
    Convert(Option<ElementType>),
    /// Conversion to the type that this variable is.
    ConvertTo(usize),
}
