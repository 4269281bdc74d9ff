//! Data structures of a parsed rule.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use smallvec::SmallVec;
use typelift_promote::ElementType;

use crate::base::name_pattern::NamePattern;
use crate::model::shape::Shape;
use crate::ops;
use crate::ops::values::array::ArrayFile;
use crate::rewrite::notation::Literal;

/// One side of a rule: pattern or replacement. Its terms refer to each other by position.
#[derive(Clone, Debug, Default)]
pub(crate) struct Side {
    pub(crate) terms: Vec<Term>,
    /// The outermost term; several for a tuple of outputs.
    pub(crate) roots: Vec<usize>,
    /// The names of the root's outputs, if it has several. A list has one name for all of them.
    pub(crate) outputs: Vec<usize>,
}

/// Term of a rule, with its position in the text.
#[derive(Clone, Debug)]
pub(crate) struct Term {
    pub(crate) span: Range<usize>,
    pub(crate) kind: TermKind,
    /// The permitted element types; empty for any.
    pub(crate) element_types: SmallVec<[ElementType; 2]>,
    /// The variable that gets its element type.
    pub(crate) type_variable: Option<usize>,
    pub(crate) shape: Option<Shape>,
}

#[derive(Clone, Debug)]
pub(crate) enum TermKind {
    /// `_`, any tensor.
    Any,
    /// A tensor, by the position of its name.
    Name { name: usize, constant: bool },
    /// Any number of tensors, by the position of their name.
    List(usize),
    /// A constant with these values.
    Literal(Literal),
    /// The values of an expression, computed when the rule is applied.
    Fold(usize),
    /// A constant whose values are in a file.
    File(Arc<ArrayFile>),
    /// The tensor of the graph that has this name.
    Tensor(String),
    /// An output of a layer.
    Layer(LayerTerm),
    /// Arithmetic in a pattern, in any order and grouping.
    Chain(Chain),
    /// Alternatives, one of which must match.
    Either(Vec<Branch>),
    /// The value of a variable, as numbers.
    Variable(usize),
    /// An element type to compare with.
    Type(ElementType),
    /// The value of a name or, if it is absent, another term.
    Else { name: usize, otherwise: usize },
    /// Arithmetic on constants and properties of tensors.
    Compute(Function, Vec<usize>),
    /// Test of the name of a tensor's producer. The captured sections of the name become variables.
    NameLike(usize, Arc<NamePattern>),
    /// A test of a shape or a list of numbers.
    DimsLike(usize, Vec<DimsPart>),
}

/// Item of a test of dimensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DimsPart {
    pub(crate) dim: DimPattern,
    pub(crate) times: Times,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DimPattern {
    Any,
    Number(i64),
    /// The number of this name; a new name gets the dimension as its value.
    Name(usize),
}

/// Number of repetitions of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Times {
    Once,
    AtMostOnce,
    Any,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct LayerTerm {
    /// The name of the operation, or the `type` of an unknown one in files.
    pub(crate) operation: String,
    /// The operation set as in files. `None` means any revision in a pattern, the oldest in a
    /// replacement, and the newest in an expression of a statement.
    pub(crate) version: Option<String>,
    /// The position of the operation in the text.
    pub(crate) head: Range<usize>,
    pub(crate) optional: bool,
    pub(crate) shared: bool,
    pub(crate) inputs: Vec<usize>,
    /// The number of trailing inputs that are optional.
    pub(crate) optional_inputs: usize,
    /// The meaning of `...` after the inputs.
    pub(crate) more_inputs: Rest,
    pub(crate) attributes: Vec<AttributeTerm>,
    /// The meaning of `...` among the attributes.
    pub(crate) more_attributes: Rest,
    /// The name of the new layer, in a replacement.
    pub(crate) name: Option<LayerName>,
    /// For alternative operations in a replacement: the term of the pattern that decides.
    pub(crate) same_as: Option<usize>,
    pub(crate) output: usize,
}

pub(super) fn rows_of(layer: &LayerTerm) -> Vec<&'static ops::Operation> {
    match &layer.version {
        Some(version) => ops::lookup(&layer.operation, version).into_iter().collect(),
        None => ops::revisions(&layer.operation).iter().collect(),
    }
}

/// Name of a new layer, in sections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LayerName {
    Text(String),
    /// The name of a tensor's producer; the tensor is given by its position.
    Tensor(usize),
    Variable(usize),
    All(Vec<Self>),
}

/// Meaning of `...`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Rest {
    /// There is no `...`.
    #[default]
    None,
    /// In a pattern: any further inputs or attributes.
    Any,
    /// In a replacement: the further inputs or attributes of the layer that this term of the pattern matched.
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
    Variable(usize),
    Term(usize),
}

/// Product or sum. Arithmetic in the graph is converted to the same form for comparison.
#[derive(Clone, Debug)]
pub(crate) struct Chain {
    pub(crate) kind: ChainKind,
    pub(crate) factors: Vec<Factor>,
    /// The product or sum of its numbers.
    pub(crate) literal: Option<Number>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChainKind {
    Product,
    Sum,
}

impl ChainKind {
    pub(crate) fn operations(self) -> &'static [&'static str] {
        match self {
            Self::Product => &["Multiply", "Divide", "Power", "Sqrt", "Negative"],
            Self::Sum => &["Add", "Subtract", "Negative", "Multiply"],
        }
    }

    pub(crate) fn neutral(self) -> f64 {
        match self {
            Self::Product => 1.0,
            Self::Sum => 0.0,
        }
    }

    /// Combines two numbers of a chain.
    pub(crate) fn join(self, a: f64, b: f64) -> f64 {
        match self {
            Self::Product => a * b,
            Self::Sum => a + b,
        }
    }

    /// Raises a number to this power; in a sum, multiplies it.
    pub(crate) fn raise(self, number: f64, power: f64) -> f64 {
        match self {
            Self::Product if power == -1.0 => 1.0 / number,
            Self::Product if power == 1.0 => number,
            Self::Product => number.powf(power),
            Self::Sum => number * power,
        }
    }
}

/// Factor of a product with its exponent, or summand with its sign.
#[derive(Clone, Debug)]
pub(crate) struct Factor {
    pub(crate) term: usize,
    pub(crate) power: f64,
    pub(crate) optional: bool,
}

/// Number of a pattern, which a constant of the graph must equal.
#[derive(Clone, Debug)]
pub(crate) struct Number {
    pub(crate) value: f64,
    /// True if it was written with `~`.
    pub(crate) tolerant: bool,
    pub(crate) span: Range<usize>,
}

/// Relative difference that `~` permits; it corresponds to five printed digits.
const TOLERANCE: f64 = 1.0 / 32768.0;
/// Relative difference that rounding to f16 makes.
const HALF_ROUNDING: f64 = 1.0 / 4096.0;

impl Number {
    pub(crate) fn is(&self, value: f64, ty: ElementType) -> bool {
        let round = |value| if ty.is_float() { ops::values::array::round(ty, value) } else { value };
        value == self.value
            || round(value) == round(self.value)
            || value.is_nan() && self.value.is_nan()
            || self.tolerant && self.is_near(value)
    }

    /// A divisor in f16 makes a factor that is the reciprocal of an f16 number.
    fn is_near(&self, value: f64) -> bool {
        let difference = (value - self.value).abs() / self.value.abs();
        difference <= TOLERANCE || difference <= HALF_ROUNDING && (is_half(value) || is_half(1.0 / value))
    }
}

fn is_half(value: f64) -> bool {
    let rounded = ops::values::array::round(ElementType::F16, value);
    (rounded - value).abs() <= f64::from(f32::EPSILON) * value.abs()
}

/// Alternative of a pattern, with the values of names if it matches.
#[derive(Clone, Debug)]
pub(crate) struct Branch {
    pub(crate) term: usize,
    pub(crate) with: Vec<Setting>,
}

/// Setting of an alternative: `with $m=erf`, `with lo=0`.
#[derive(Clone, Debug)]
pub(crate) enum Setting {
    Variable(usize, String),
    Name(usize, f64),
    /// The alternative never matches, because another number is required.
    Never,
}

/// Expression of a statement, with the tensors of its names.
#[derive(Clone, Debug)]
pub(crate) struct Expression {
    pub(crate) side: Side,
    pub(crate) names: Vec<Name>,
    /// Bindings by name.
    pub(crate) sources: Vec<Source>,
}

/// Tensor of a name in an expression of a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// `_`: the tensor that the statement changes.
    Own,
    /// The tensor of this name.
    Named(String),
}

impl Side {
    pub(crate) fn files(&self) -> impl Iterator<Item = &Path> {
        self.terms.iter().filter_map(|term| match &term.kind {
            TermKind::File(file) => Some(file.path()),
            _ => None,
        })
    }
}

/// Function of constants or of properties of tensors.
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
    /// Returns the product of two matrices.
    MatMul,
    /// `c[from:to]` of an axis.
    Slice(usize),
    /// The nearest integers, ties to even.
    Round,
    Abs,
    Min,
    Max,
    /// Numbers limited to the range from the second to the third operand.
    Clamp,
    /// Concatenation along an axis.
    Join(i64),
    /// True if all operands are true.
    And,
    /// True if an operand is true.
    Or,
    Not,
    Convert(Option<ElementType>),
    /// Conversion to the element type that a variable has.
    ConvertTo(usize),
    Rank,
    /// Number of elements.
    Size,
    Dim,
    Shape,
    Type,
    /// Axes, with negative ones converted for the rank of a tensor.
    Axis,
    /// True if all dimensions are known.
    Static,
    /// Number of the repeated block that the producer of a tensor belongs to.
    Block,
    /// The number of inputs that use a tensor.
    Uses,
    /// The number of tensors in a list.
    Count,
    /// The number of unknown dimensions.
    Unknown,
    /// Target shape for Reshape: -1 for an unknown dimension, 0 for a copied one.
    Dims,
    /// True if the tensor depends only on constants.
    Constant,
    /// Elements of a list without those at these positions.
    Without,
    /// Number of bits of an element.
    Bits,
    /// True if each element is greater than the one before it.
    Sorted,
    /// True if a constant, broadcast to a tensor, varies only along this axis.
    Channel,
    /// Values of such a constant along the axis.
    Along,
    /// List that is broadcast along one or two axes of a tensor.
    On,
    /// True if all elements are true or not 0.
    All,
    /// True if an element is true or not 0.
    Any,
    /// True if two lists have the same elements in the same order.
    Same,
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    /// True if the first operand equals one of the others.
    In,
}

impl Function {
    /// True if the function uses only the shape or type of the operand at a position, and not its values.
    pub(crate) fn looks_at(self, at: usize) -> bool {
        match self {
            Self::Axis | Self::Channel | Self::Along | Self::On => at == 1,
            Self::Dims => true,
            _ => at == 0 && self.measures(),
        }
    }

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

/// All functions by name, with the permitted numbers of operands.
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

/// Condition of a pattern: a term that must be true.
#[derive(Clone, Debug)]
pub(crate) struct Predicate {
    pub(crate) term: usize,
    pub(crate) text: String,
}

/// Name of a tensor in a rule.
#[derive(Clone, Debug, Default)]
pub(crate) struct Name {
    pub(crate) text: String,
    pub(crate) constant: bool,
    /// True if the name represents any number of tensors.
    pub(crate) is_list: bool,
    /// True if every match has the name; false if it occurs only in optional terms.
    pub(crate) certain: bool,
    /// The number that replaces an absent operand: 1 in a product, 0 in a sum.
    pub(crate) neutral: Option<f64>,
    pub(crate) definition: Option<Definition>,
}

impl Name {
    pub(crate) fn new(text: String) -> Self {
        Self { text, ..Self::default() }
    }
}

/// Connection between a root and earlier roots, by which it is found.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Link {
    pub(crate) names: Vec<usize>,
    /// The possible operations of the root.
    pub(crate) operations: Vec<String>,
    /// The maximum number of layers between a shared name and the root.
    pub(crate) depth: usize,
}

#[derive(Clone, Debug)]
pub(crate) struct Definition {
    pub(crate) term: usize,
    /// The names of all outputs of the layer, if it has several; one name for all of them if it is a list.
    pub(crate) outputs: Vec<usize>,
}
