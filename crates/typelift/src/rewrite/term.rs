//! The parts of a rule, as data.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use smallvec::SmallVec;
use typelift_promote::ElementType;

use crate::base::name_pattern::NamePattern;
use crate::model::shape::Shape;
use crate::ops::values::array::ArrayFile;
use crate::rewrite::notation::Literal;

/// A side of a rule: terms that refer to each other by position.
#[derive(Clone, Debug, Default)]
pub(crate) struct Side {
    pub(crate) terms: Vec<Term>,
    /// The outermost term, or for a tuple one for each output.
    pub(crate) roots: Vec<usize>,
    /// The names of the outputs of the root, where it has several; one for all of them if it is a list.
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
    /// Any number of tensors, by the position of their name.
    List(usize),
    /// A constant with these values.
    Literal(Literal),
    /// The values of an expression, computed while the rule is applied.
    Fold(usize),
    /// A constant whose values are in a file.
    File(Arc<ArrayFile>),
    /// The tensor of the graph that has this name.
    Tensor(String),
    /// An output of a layer.
    Layer(LayerTerm),
    /// Arithmetic in a pattern, in any order and grouping.
    Chain(Chain),
    /// One of several patterns.
    Either(Vec<Branch>),
    /// The value of a variable, as numbers.
    Variable(usize),
    /// An element type, to be compared with.
    Type(ElementType),
    /// What a name stands for, or else the term.
    Else { name: usize, otherwise: usize },
    /// Arithmetic on constants and properties of tensors.
    Compute(Function, Vec<usize>),
    /// Compares the name of the layer that makes a tensor with a pattern, whose parts become variables.
    NameLike(usize, Arc<NamePattern>),
    /// Whether a shape or a list of numbers is like this.
    DimsLike(usize, Vec<DimsPart>),
}

/// A part of what a list of dims is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DimsPart {
    pub(crate) dim: DimPattern,
    pub(crate) times: Times,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DimPattern {
    Any,
    Number(i64),
    /// The number that this name means, from here on if it meant none.
    Name(usize),
}

/// How often a part is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Times {
    Once,
    AtMostOnce,
    Any,
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
    /// How many of the last inputs may be missing.
    pub(crate) optional_inputs: usize,
    /// What `...` after the inputs means.
    pub(crate) more_inputs: Rest,
    pub(crate) attributes: Vec<AttributeTerm>,
    /// What `...` among the attributes means.
    pub(crate) more_attributes: Rest,
    /// The name of the new layer, on a right side.
    pub(crate) name: Option<LayerName>,
    /// The term of the pattern that must have matched, for one of several operations on a right side.
    pub(crate) same_as: Option<usize>,
    pub(crate) output: usize,
}

impl LayerTerm {
    /// Whether a layer that is built takes attributes or inputs of the one that this term of the pattern matched.
    pub(crate) fn takes_from(&self, term: usize) -> bool {
        [self.more_attributes, self.more_inputs].contains(&Rest::Of(term))
    }
}

/// The name of a new layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LayerName {
    Text(String),
    /// The name of the layer that makes a tensor, by the position of the tensor's name.
    Tensor(usize),
    /// The value of a variable.
    Variable(usize),
    All(Vec<Self>),
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
    /// The numbers of a term.
    Term(usize),
}

/// A product or a sum. What a graph has in its place is brought into the same form.
#[derive(Clone, Debug)]
pub(crate) struct Chain {
    pub(crate) kind: ChainKind,
    pub(crate) factors: Vec<Factor>,
    /// The numbers among the factors, as one.
    pub(crate) literal: Option<Number>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChainKind {
    Product,
    Sum,
}

impl ChainKind {
    /// What a chain of nothing is.
    pub(crate) fn neutral(self) -> f64 {
        match self {
            Self::Product => 1.0,
            Self::Sum => 0.0,
        }
    }

    /// Two numbers of a chain as one.
    pub(crate) fn join(self, a: f64, b: f64) -> f64 {
        match self {
            Self::Product => a * b,
            Self::Sum => a + b,
        }
    }

    /// A number that is in a chain with this power, or in a sum this many times.
    pub(crate) fn raise(self, number: f64, power: f64) -> f64 {
        match self {
            Self::Product if power == -1.0 => 1.0 / number,
            Self::Product if power == 1.0 => number,
            Self::Product => number.powf(power),
            Self::Sum => number * power,
        }
    }
}

/// A part of a product with its exponent, or of a sum with its sign.
#[derive(Clone, Debug)]
pub(crate) struct Factor {
    pub(crate) term: usize,
    pub(crate) power: f64,
    pub(crate) optional: bool,
}

/// A number of a pattern, which constants must hold.
#[derive(Clone, Debug)]
pub(crate) struct Number {
    pub(crate) value: f64,
    /// Whether it was written with `~`.
    pub(crate) tolerant: bool,
    pub(crate) span: Range<usize>,
}

/// The relative difference that `~` allows, besides what half precision makes of the number: four printed digits.
const TOLERANCE: f64 = 1.0 / 4096.0;

impl Number {
    /// Whether a number in a constant of this type is this one.
    pub(crate) fn is(&self, value: f64, ty: ElementType) -> bool {
        let round = |value| if ty.is_float() { crate::ops::values::array::round(ty, value) } else { value };
        value == self.value
            || round(value) == round(self.value)
            || value.is_nan() && self.value.is_nan()
            || self.tolerant && self.is_near(value)
    }
}

impl Number {
    fn is_near(&self, value: f64) -> bool {
        let half = ElementType::F16;
        (value - self.value).abs() <= TOLERANCE * self.value.abs()
            || crate::ops::values::array::round(half, self.value) == crate::ops::values::array::round(half, value)
                && is_half(value)
    }
}

/// Whether half precision holds a number.
fn is_half(value: f64) -> bool {
    crate::ops::values::array::round(ElementType::F16, value) == value
}

/// One of several patterns, with what holds where it is the one.
#[derive(Clone, Debug)]
pub(crate) struct Branch {
    pub(crate) term: usize,
    pub(crate) with: Vec<Setting>,
}

/// `with $m=erf`, `with lo=0`
#[derive(Clone, Debug)]
pub(crate) enum Setting {
    Variable(usize, String),
    Name(usize, f64),
    /// What is written there is another number, so the branch never holds.
    Never,
}

/// An expression of a statement, with the meaning of its names.
#[derive(Clone, Debug)]
pub(crate) struct Expression {
    pub(crate) side: Side,
    pub(crate) names: Vec<Name>,
    /// By name.
    pub(crate) sources: Vec<Source>,
}

/// Meaning of a name in an expression of a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// `_`: the tensor that the statement changes.
    Own,
    /// The tensor of this name.
    Named(String),
}

impl Side {
    /// The files that its constants are read from.
    pub(crate) fn files(&self) -> impl Iterator<Item = &Path> {
        self.terms.iter().filter_map(|term| match &term.kind {
            TermKind::File(file) => Some(file.path()),
            _ => None,
        })
    }
}

/// What can be computed of constants, and of what is known of tensors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Function {
    Add,
    Subtract,
    Multiply,
    Divide,
    Power,
    Negate,
    Sqrt,
    Exp,
    Transpose,
    Reshape,
    /// The elements at these indices of the first axis.
    Gather,
    Concat,
    Product,
    /// The product of two matrices.
    MatMul,
    /// `c[from:to]` of an axis.
    Slice(usize),
    /// The nearest whole numbers, the even one of two.
    Round,
    Abs,
    Min,
    Max,
    /// Numbers, none less than the second operand nor greater than the third.
    Clamp,
    /// Joins along an axis.
    Join(i64),
    /// True if all operands are.
    And,
    /// True if one of the operands is.
    Or,
    Not,
    Convert(Option<ElementType>),
    /// Conversion to the type that this variable is.
    ConvertTo(usize),
    Rank,
    /// The number of elements.
    Size,
    Dim,
    Shape,
    Type,
    /// Axes, counted from the end.
    Axis,
    /// Whether all dims are known.
    Static,
    /// The number of the block that the layer of a tensor belongs to.
    Block,
    /// By how many inputs a tensor is used.
    Uses,
    /// How many tensors a list has.
    Count,
    /// How many dims are not known.
    Unknown,
    /// The dims as Reshape takes them: -1 for one that is not known, 0 for one that is that of the tensor to be reshaped.
    Dims,
    /// Whether the values are known from constants alone.
    Constant,
    /// The elements of a list at other places than these.
    Without,
    /// The bits of an element.
    Bits,
    /// Whether each element is greater than the one before it.
    Sorted,
    /// Whether a constant varies along this axis of a tensor alone, when it is broadcast to it.
    Channel,
    /// The values of such a constant along the axis, as a list.
    Along,
    /// A list laid along an axis of a tensor, or along two of them.
    On,
    /// True if no element is 0 or false.
    All,
    /// True if an element is not 0 or false.
    Any,
    /// True if two lists have the same elements in the same order.
    Same,
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    /// Whether the first is one of the others.
    In,
}

impl Function {
    /// Whether the operand at a place is a tensor, of which no values are needed.
    pub(crate) fn looks_at(self, at: usize) -> bool {
        match self {
            Self::Axis | Self::Channel | Self::Along | Self::On => at == 1,
            Self::Dims => true,
            _ => at == 0 && self.measures(),
        }
    }

    /// Whether its first operand is a tensor, of which no values are needed.
    pub(crate) fn measures(self) -> bool {
        matches!(
            self,
            Self::Rank
                | Self::Size
                | Self::Dim
                | Self::Shape
                | Self::Type
                | Self::Static
                | Self::Uses
                | Self::Block
                | Self::Count
                | Self::Unknown
                | Self::Bits
                | Self::Dims
                | Self::Constant
        )
    }
}

/// The functions by their names, with the numbers of operands that they take.
pub(super) const FUNCTIONS: &[(&str, Function, usize, usize)] = &[
    ("sqrt", Function::Sqrt, 1, 1),
    ("exp", Function::Exp, 1, 1),
    ("transpose", Function::Transpose, 1, 2),
    ("reshape", Function::Reshape, 2, 2),
    ("convert", Function::Convert(None), 1, 1),
    ("gather", Function::Gather, 2, 2),
    ("concat", Function::Concat, 1, 8),
    ("product", Function::Product, 1, 1),
    ("matmul", Function::MatMul, 2, 2),
    ("round", Function::Round, 1, 1),
    ("abs", Function::Abs, 1, 1),
    ("min", Function::Min, 1, 2),
    ("max", Function::Max, 1, 2),
    ("clamp", Function::Clamp, 3, 3),
    ("rank", Function::Rank, 1, 1),
    ("size", Function::Size, 1, 1),
    ("dim", Function::Dim, 2, 2),
    ("shape", Function::Shape, 1, 1),
    ("type", Function::Type, 1, 1),
    ("axis", Function::Axis, 2, 2),
    ("static", Function::Static, 1, 1),
    ("uses", Function::Uses, 1, 1),
    ("block", Function::Block, 1, 1),
    ("count", Function::Count, 1, 1),
    ("unknown", Function::Unknown, 1, 1),
    ("bits", Function::Bits, 1, 1),
    ("sorted", Function::Sorted, 1, 1),
    ("channel", Function::Channel, 3, 3),
    ("along", Function::Along, 3, 3),
    ("on", Function::On, 3, 4),
    ("all", Function::All, 1, 1),
    ("any", Function::Any, 1, 1),
    ("same", Function::Same, 2, 2),
    ("dims", Function::Dims, 1, 3),
    ("constant", Function::Constant, 1, 1),
    ("without", Function::Without, 2, 2),
];

/// A predicate of a pattern: a term that must be true.
#[derive(Clone, Debug)]
pub(crate) struct Predicate {
    pub(crate) term: usize,
    pub(crate) text: String,
}

/// A name that a rule gives to a tensor.
#[derive(Clone, Debug)]
pub(crate) struct Name {
    pub(crate) text: String,
    pub(crate) constant: bool,
    /// Whether it means any number of tensors.
    pub(crate) is_list: bool,
    /// Whether every match has it: not one that is only in what may be absent.
    pub(crate) certain: bool,
    /// The number that stands for it where it is absent: a factor of a product or a part of a sum.
    pub(crate) neutral: Option<f64>,
    /// What `where` says that it is.
    pub(crate) definition: Option<Definition>,
}

impl Name {
    pub(crate) fn new(text: String) -> Self {
        Self { text, constant: false, is_list: false, certain: false, neutral: None, definition: None }
    }
}

/// How a root is found where those before it match.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Link {
    /// The names that they share.
    pub(crate) names: Vec<usize>,
    /// The operations that the root can have.
    pub(crate) operations: Vec<String>,
    /// By how many layers the root is at most downstream of them.
    pub(crate) depth: usize,
}

#[derive(Clone, Debug)]
pub(crate) struct Definition {
    pub(crate) term: usize,
    /// The names of all outputs of the layer, where it has several; one for all of them if it is a list.
    pub(crate) outputs: Vec<usize>,
}
