//! Paddle's rules: those of the package, and those of its published 2.6 document.
//!
//! Between tensors, floats promote among each other and real numbers promote to complex ones; other types must agree. A
//! 0-D tensor or a Python number is accepted if its kind is at most that of the other tensor (boolean < integer <
//! floating point < complex). If its kind is higher, it raises the tensor's type. A row of the table says which of
//! these rules an API uses.
//!
//! | operations | rule |
//! |---|---|
//! | `add`, `subtract`, `multiply`, `mse_loss`, operators | as above; the functions take no numbers |
//! | `divide`, `operator /` | integers, but not booleans, become `f32` |
//! | `floor_divide`, `operator //` | 0-D tensors always meet the other in the lattice; the function takes numbers for tensors of `bool`, `i64`, `f32` and `c64` |
//! | `pow`, `remainder`, `copysign` | a number leaves the tensor's type alone |
//! | `operator /`, `%`, `**` | a complex number with a 0-D tensor gives `c64`, even for `f64` |
//! | `equal` and the other comparisons | as `add`; the result is boolean; `equal` takes a number on the right |
//! | `where`, `fmax`, `fmin`, `maximum`, `minimum`, `nextafter`, `atan2`, `huber_loss`, logical operations | tensors whatever their rank; `where` takes numbers for tensors |
//! | `atan2` | `i32` and `i64` become `f64` |
//! | `logaddexp`, `hypot` | `i32` and `i64` become `f32` |
//! | `l1_loss` | of complex numbers the type of their parts |
//! | `poisson_nll_loss` | `exp(a) - b * a`, step by step |
//! | `ldexp` | `f64` if either operand is, else `f32` |
//! | `gcd`, `lcm` | of complex numbers their absolute values; then as tensors |
//! | bitwise operations, `heaviside`, `matmul`, `isclose`, `concat` | no promotion: one type (`same-type`) |

use super::of_numbers;
use crate::derivation::{Trace, change, meet};
use crate::operand::Operands;
use crate::operation::{MANY, Row, operations};
use crate::rules::in_turn;
use crate::{
    Category, Dim, ElementType, ElementType::*, Facts, Kind, Operand, Operation, PromotedAs, Promotion, Reason,
    Refusal, Rules, Spelling, System,
};

/// Version of the rules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Version {
    /// paddle 3.3.1 in dynamic graph mode, as it behaves.
    #[default]
    V3_3,
    /// The tables of the Paddle 2.6 document, read as symmetric. The row and the column of `c64` contradict each other;
    /// the column agrees with the text and is used.
    Published2_6,
}

const SYSTEM: System = System { title: "Paddle", spelling: Spelling::Framework };

const NO_PROMOTION: Reason = Reason::new(
    "no-promotion",
    "{a} and {b} have no common type: Paddle promotes between floats and from real to complex numbers only",
);
/// The document does not cover this operation with these operands.
const OUT_OF_SCOPE: Reason =
    Reason::new("out-of-scope", "{a} and {b}: the Paddle 2.6 document leaves this combination out");

type Result<T> = core::result::Result<T, Refusal>;

/// True if paddle has the type.
pub fn is_supported(ty: ElementType) -> bool {
    matches!(ty, Boolean | U8 | I8 | I16 | I32 | I64 | F16 | Bf16 | F32 | F64 | C64 | C128 | F8E4M3 | F8E5M2)
}

fn is_float8(ty: ElementType) -> bool {
    matches!(ty, F8E4M3 | F8E5M2)
}

fn is_float(ty: ElementType) -> bool {
    ty.is_float() && !is_float8(ty)
}

fn is_complex(ty: ElementType) -> bool {
    ty.kind() == Kind::Complex
}

/// Applies paddle's internal table, which every permitted promotion ends at.
fn lattice(a: ElementType, b: ElementType) -> Result<(ElementType, &'static str)> {
    Ok(match (a.kind(), b.kind()) {
        _ if is_float8(a) || is_float8(b) => return refuse(Reason::FLOAT8, a, b),
        _ if a == b => (a, "the types are equal"),
        (Kind::Complex, _) | (_, Kind::Complex) => {
            let double = [a, b].iter().any(|&ty| ty == F64 || ty == C128);
            (if double { C128 } else { C64 }, "the complex type whose parts hold both")
        }
        _ => of_numbers(a, b),
    })
}

const SAME_KIND: &str = "a number or 0-D tensor of no higher kind does not change the type of the other tensor";

fn refuse<T>(reason: Reason, a: ElementType, b: ElementType) -> Result<T> {
    Err(SYSTEM.refuse(reason, a, b))
}

/// Promotes two tensors of any rank.
fn tensors(a: ElementType, b: ElementType, trace: Trace) -> Result<ElementType> {
    if a == b {
        Ok(a)
    } else if is_complex(a) || is_complex(b) || is_float(a) && is_float(b) {
        Ok(meet(lattice(a, b)?, a, b, trace))
    } else {
        refuse(NO_PROMOTION, a, b)
    }
}

/// Promotes two tensors. A 0-D tensor takes the type of a tensor with dimensions of the same kind.
fn zero_dim_aware(a: Operand, b: Operand, trace: Trace) -> Result<ElementType> {
    let (x, y) = (a.element_type, b.element_type);
    let dimensioned = match (a.category, b.category) {
        _ if x == y => return Ok(x),
        (Category::Dimensioned, Category::Dimensioned) => return tensors(x, y, trace),
        (Category::Dimensioned, _) => Some(x),
        (_, Category::Dimensioned) => Some(y),
        _ => None,
    };
    let mut answer = lattice(x, y)?;
    if let Some(ty) = dimensioned.filter(|_| x.kind() == y.kind() || x.is_integer() && y.is_integer()) {
        answer = (ty, SAME_KIND);
    }
    Ok(meet(answer, x, y, trace))
}

fn with_number(tensor: ElementType, number: ElementType, trace: Trace) -> Result<ElementType> {
    let answer = match (tensor.kind(), number.kind()) {
        (Kind::Complex, Kind::Complex) => (tensor, SAME_KIND),
        (_, Kind::Complex) => lattice(tensor, C64)?,
        (Kind::Complex | Kind::Float, _) | (_, Kind::Boolean) => (tensor, SAME_KIND),
        (_, Kind::Float) => (F32, "a float makes booleans and integers f32"),
        (Kind::Boolean, _) => (I64, "an integer makes booleans i64"),
        _ => (tensor, SAME_KIND),
    };
    Ok(meet(answer, tensor, number_type(number), trace))
}

fn number_type(number: ElementType) -> ElementType {
    match number.kind() {
        Kind::Boolean => Boolean,
        Kind::Float => F32,
        Kind::Complex => C64,
        _ => I64,
    }
}

/// A number becomes a tensor with dimensions.
fn as_tensor(operand: Operand) -> Operand {
    if operand.is_number() { Operand::dimensioned(number_type(operand.element_type)) } else { operand }
}

/// Positions in which an operation accepts Python numbers.
#[derive(Clone, Copy, PartialEq)]
enum Numbers {
    Anywhere,
    /// Together with a tensor.
    Beside,
    /// After the first operand.
    NotFirst,
    /// After the first operand, except complex numbers.
    NotFirstReal,
    /// Together with a tensor, but not with an 8-bit float.
    NotFirstRealNotFloat8,
    /// Before a tensor, only booleans and integers.
    FirstInteger,
    Nowhere,
}

#[derive(Clone, Copy, PartialEq)]
enum Common {
    /// [`Elementwise`](Self::Elementwise), applied to two operands at a time.
    InTurn,
    /// 0-D tensors and numbers take the type of tensors of their kind.
    Elementwise,
    /// The same, except that a complex number with a 0-D tensor gives `c64`.
    ElementwiseC64,
    /// The same, except that a number does not change the type of the tensor.
    Base,
    /// The same without a rule for 0-D tensors: they are combined with the other tensor in the lattice.
    FloorDivide,
    /// The same, and numbers are tensors there.
    FloorDivideTensors,
    /// All operands are promoted as tensors, whatever their ranks.
    Tensors,
    /// All operands must have one type; a number has that of the tensor.
    Same,
    /// `f64` if either operand is, else `f32`.
    Ldexp,
    /// Like tensors. The type of the difference of both is computed first.
    LogAddExp,
    /// The type of the exponential of the first minus the product of both.
    PoissonNll,
    /// The type of the absolute values, promoted as tensors.
    Gcd,
}

/// Type that integers become after the common type is found.
#[derive(Clone, Copy, PartialEq)]
enum Integers {
    Stay,
    /// Integer types become `f32`.
    Divide,
    /// `i32` and `i64` become `f32`.
    F32,
    /// `i32` and `i64` become `f64`.
    F64,
}

#[derive(Clone, Copy, PartialEq)]
enum Ranks {
    Any,
    /// The ranks must be equal; types are checked first.
    Equal,
    /// The ranks must be equal; ranks are checked first.
    EqualFirst,
    /// The second operand must fit into the first; ranks are checked first.
    FirstHolds,
}

/// Rule of the 2.6 document.
#[derive(Clone, Copy, PartialEq)]
enum Published {
    Common,
    Divide,
    Logic,
    None,
}

#[derive(Clone, Copy)]
struct Rule {
    numbers: Numbers,
    common: Common,
    integers: Integers,
    /// True if the result of complex numbers has the type of their parts.
    is_real: bool,
    ranks: Ranks,
    /// The rules of the document between tensors, and between a tensor and a number.
    published: [Published; 2],
}

impl Rule {
    /// A rule without the document's, for operations that keep integers and give the common type at any ranks.
    const fn new(numbers: Numbers, common: Common) -> Self {
        let published = [Published::None, Published::None];
        Self { numbers, common, integers: Integers::Stay, is_real: false, ranks: Ranks::Any, published }
    }

    const fn published(self, tensors: Published, scalars: Published) -> Self {
        Self { published: [tensors, scalars], ..self }
    }

    const fn integers(self, integers: Integers) -> Self {
        Self { integers, ..self }
    }

    const fn ranks(self, ranks: Ranks) -> Self {
        Self { ranks, ..self }
    }
}

operations! {
    const ROWS: Rule;
    "result_type": 1..MANY Other -> Type,
        Rule::new(Numbers::Anywhere, Common::InTurn).published(Published::Common, Published::Common);
    "add" "subtract" "multiply": 2..2 Broadcast -> Type,
        Rule::new(Numbers::Nowhere, Common::Elementwise).published(Published::Common, Published::Common);
    "divide": 2..2 Broadcast -> Type,
        Rule::new(Numbers::Nowhere, Common::Elementwise).integers(Integers::Divide).published(Published::Common, Published::Divide);
    "floor_divide": 2..2 Broadcast -> Type,
        Rule::new(Numbers::NotFirst, Common::FloorDivideTensors).published(Published::Common, Published::Common);
    "pow" "remainder" "mod" "floor_mod": 2..2 Broadcast -> Type,
        Rule::new(Numbers::NotFirstReal, Common::Base).published(Published::Common, Published::Common);
    "copysign": 2..2 Broadcast -> Type,
        Rule::new(Numbers::NotFirstRealNotFloat8, Common::Base);
    "equal": 2..2 Broadcast -> Boolean,
        Rule::new(Numbers::NotFirst, Common::Elementwise).published(Published::Logic, Published::Logic);
    "not_equal" "less_than" "less_equal" "greater_than" "greater_equal": 2..2 Broadcast -> Boolean,
        Rule::new(Numbers::Nowhere, Common::Elementwise).published(Published::Logic, Published::Logic);
    "logical_and" "logical_or" "logical_xor": 2..2 Broadcast -> Boolean,
        Rule::new(Numbers::Nowhere, Common::Tensors).published(Published::Logic, Published::Logic);
    "bitwise_and" "bitwise_or" "bitwise_xor": 2..2 Broadcast -> Type,
        Rule::new(Numbers::Nowhere, Common::Same).published(Published::None, Published::Common);
    "where": 2..2 Broadcast -> Type,
        Rule::new(Numbers::Beside, Common::Tensors).published(Published::Common, Published::Common);
    "fmax" "fmin" "maximum" "minimum" "nextafter": 2..2 Broadcast -> Type,
        Rule::new(Numbers::Nowhere, Common::Tensors).published(Published::Common, Published::None);
    "atan2": 2..2 Broadcast -> Type,
        Rule::new(Numbers::Nowhere, Common::Tensors).integers(Integers::F64).published(Published::Common, Published::None);
    "logaddexp": 2..2 Broadcast -> Type,
        Rule::new(Numbers::Beside, Common::LogAddExp).integers(Integers::F32).published(Published::Common, Published::None);
    "huber_loss" "smooth_l1_loss": 2..2 Equal -> Type,
        Rule::new(Numbers::Nowhere, Common::Tensors).ranks(Ranks::Equal).published(Published::Common, Published::None);
    "poisson_nll_loss": 2..2 Equal -> Type,
        Rule::new(Numbers::Nowhere, Common::PoissonNll).ranks(Ranks::EqualFirst).published(Published::Common, Published::None);
    "mse_loss": 2..2 Broadcast -> Type,
        Rule::new(Numbers::Nowhere, Common::Elementwise).published(Published::Common, Published::None);
    "l1_loss": 2..2 Broadcast -> Type,
        Rule { is_real: true, ..Rule::new(Numbers::Nowhere, Common::Elementwise).published(Published::Common, Published::None) };
    "hypot": 2..2 Broadcast -> Type,
        Rule::new(Numbers::Nowhere, Common::Elementwise).integers(Integers::F32);
    "heaviside": 2..2 Broadcast -> Type,
        Rule::new(Numbers::Nowhere, Common::Same);
    "gcd" "lcm": 2..2 Broadcast -> Type,
        Rule::new(Numbers::Nowhere, Common::Gcd);
    "ldexp": 2..2 Broadcast -> Type,
        Rule::new(Numbers::Nowhere, Common::Ldexp);
    "isclose": 2..2 Equal -> Boolean,
        Rule::new(Numbers::Nowhere, Common::Same).ranks(Ranks::EqualFirst);
    "matmul": 2..2 Other -> Type,
        Rule::new(Numbers::Nowhere, Common::Same);
    "concat" "stack": 1..MANY Other -> Type,
        Rule::new(Numbers::Nowhere, Common::Same);
    "add_" "subtract_" "multiply_" "floor_divide_" "remainder_" "mod_": 2..2 InPlace -> Type,
        Rule::new(Numbers::Nowhere, Common::Tensors).ranks(Ranks::FirstHolds);
    "divide_": 2..2 InPlace -> Type,
        Rule::new(Numbers::Nowhere, Common::Tensors).integers(Integers::Divide).ranks(Ranks::FirstHolds);
    "equal_" "not_equal_" "less_than_" "less_equal_" "greater_than_" "greater_equal_" "logical_and_" "logical_or_"
        "logical_xor_": 2..2 InPlace -> Boolean,
        Rule::new(Numbers::Nowhere, Common::Tensors).ranks(Ranks::FirstHolds);
    "operator +" "operator -" "operator *": 2..2 Broadcast -> Type,
        Rule::new(Numbers::Beside, Common::Elementwise).published(Published::Common, Published::Common);
    "operator /": 2..2 Broadcast -> Type,
        Rule::new(Numbers::Beside, Common::ElementwiseC64).integers(Integers::Divide).published(Published::Common, Published::Divide);
    "operator //": 2..2 Broadcast -> Type,
        Rule::new(Numbers::Beside, Common::FloorDivide).published(Published::Common, Published::Common);
    "operator %" "operator **": 2..2 Broadcast -> Type,
        Rule::new(Numbers::Beside, Common::ElementwiseC64).published(Published::Common, Published::Common);
    "operator ==" "operator !=" "operator <" "operator <=" "operator >" "operator >=": 2..2 Broadcast -> Boolean,
        Rule::new(Numbers::Beside, Common::Elementwise).published(Published::Logic, Published::Logic);
    "operator &" "operator |" "operator ^": 2..2 Broadcast -> Type,
        Rule::new(Numbers::FirstInteger, Common::Same).published(Published::None, Published::Common);
}

impl Rules for Version {
    fn name(&self) -> &'static str {
        match self {
            Self::V3_3 => "paddle",
            Self::Published2_6 => "paddle-2.6",
        }
    }

    fn facts(&self) -> Facts {
        let is_for_models = *self == Self::default();
        Facts { takes_numbers_for_truth: true, is_for_models, ..Facts::new(SYSTEM, is_supported) }
    }

    fn operation(&self, at: usize) -> Option<&'static Operation> {
        ROWS.get(at).map(|row| &row.operation)
    }

    fn decide(&self, at: usize, operands: Operands<'_>, trace: Trace<'_>) -> Result<Promotion> {
        let Some(row) = ROWS.get(at) else { return refuse(Reason::UNKNOWN_OPERATION, Dynamic, Dynamic) };
        let decide = |a, b, trace: Trace| match self {
            Self::V3_3 => row.decide(a, b, trace),
            Self::Published2_6 => row.published(a, b, trace),
        };
        if row.rule.common == Common::InTurn {
            return in_turn(operands.iter(), true, |a, b| decide(a, b, trace).map(|promotion| promotion.common))
                .map(|ty| Promotion::new(ty, ty));
        }
        let a = operands.first();
        // Only operations that do not promote accept more than two operands, so any operand that differs from the first
        // one is sufficient.
        let b = operands.iter().skip(1).find(|b| b.is_number() || b.element_type != a.element_type);
        decide(a, b.or_else(|| operands.iter().nth(1)).unwrap_or(a), trace)
    }

    /// Several operators turn some numbers into a tensor of shape `[1]`.
    fn number_dims(&self, operation: &Operation, number: Operand, at: usize) -> &'static [Dim] {
        let is_complex = is_complex(number.element_type);
        let becomes_tensor = match operation.name {
            "operator //" => true,
            "operator **" => is_complex || at == 1 && number.element_type == Boolean,
            "operator /" | "operator %" | "operator <" | "operator <=" | "operator >" | "operator >=" => is_complex,
            _ => false,
        };
        if becomes_tensor { &[Dim::ONE] } else { &[] }
    }

    fn operation_for(&self, promoted_as: PromotedAs) -> &'static str {
        if promoted_as == PromotedAs::Division { "operator /" } else { "operator +" }
    }
}

impl Numbers {
    fn check(self, a: Operand, b: Operand) -> Result<()> {
        let (x, y) = (a.element_type, b.element_type);
        let takes = match self {
            Self::Anywhere => true,
            Self::Beside => !(a.is_number() && b.is_number()),
            Self::NotFirst => !a.is_number(),
            Self::NotFirstReal => !(a.is_number() || b.is_number() && is_complex(y)),
            Self::NotFirstRealNotFloat8 => !(a.is_number() || b.is_number() && (is_complex(y) || is_float8(x))),
            Self::FirstInteger => !b.is_number() && !(a.is_number() && (x.is_float() || is_complex(x) || is_float8(y))),
            Self::Nowhere => !a.is_number() && !b.is_number(),
        };
        if takes { Ok(()) } else { refuse(Reason::NUMBER, x, y) }
    }
}

/// Promotes two operands, at most one of which is a number.
fn elementwise(a: Operand, b: Operand, trace: Trace) -> Result<ElementType> {
    match (a.is_number(), b.is_number()) {
        (false, false) => zero_dim_aware(a, b, trace),
        (true, _) => with_number(b.element_type, a.element_type, trace),
        (_, true) => with_number(a.element_type, b.element_type, trace),
    }
}

/// A complex number with a 0-D tensor gives `c64`.
fn elementwise_c64(a: Operand, b: Operand, trace: Trace) -> Result<ElementType> {
    let mut operands = [a, b].into_iter();
    let zero_dim = operands.clone().find(|it| it.category == Category::ZeroDim && !is_float8(it.element_type));
    let number = operands.find(|operand| operand.is_number() && is_complex(operand.element_type));
    match (zero_dim, number) {
        (Some(tensor), Some(number)) => {
            let rule = "a complex number with a 0-D tensor stays c64";
            Ok(meet((C64, rule), tensor.element_type, number_type(number.element_type), trace))
        }
        _ => elementwise(a, b, trace),
    }
}

/// Promotes tensors; 0-D tensors are combined with others in the lattice.
fn floor_divide(a: Operand, b: Operand, trace: Trace) -> Result<ElementType> {
    let (x, y) = (a.element_type, as_tensor(b).element_type);
    if x == y {
        Ok(x)
    } else if a.category == Category::Dimensioned && b.category == Category::Dimensioned {
        tensors(x, y, trace)
    } else {
        Ok(meet(lattice(x, y)?, x, y, trace))
    }
}

fn poisson_nll(a: Operand, b: Operand, trace: Trace) -> Result<ElementType> {
    let x = a.element_type;
    let product = Operand { element_type: zero_dim_aware(b, a, trace)?, ..a };
    let exponential = if matches!(x, I32 | I64) { change(x, F32, EXPONENTIAL, trace) } else { x };
    zero_dim_aware(Operand { element_type: exponential, ..a }, product, trace)
}

impl Common {
    fn of(self, a: Operand, b: Operand, trace: Trace) -> Result<ElementType> {
        let (x, y) = (a.element_type, b.element_type);
        match self {
            Self::Elementwise => elementwise(a, b, trace),
            Self::InTurn if a.is_number() && b.is_number() => elementwise(as_tensor(a), as_tensor(b), trace),
            Self::InTurn => elementwise(a, b, trace),
            Self::ElementwiseC64 => elementwise_c64(a, b, trace),
            Self::Base if b.is_number() => Ok(x),
            Self::Base => zero_dim_aware(a, b, trace),
            Self::FloorDivide if a.is_number() || b.is_number() => elementwise(a, b, trace),
            Self::FloorDivide | Self::FloorDivideTensors => floor_divide(a, b, trace),
            Self::Tensors => tensors(as_tensor(a).element_type, as_tensor(b).element_type, trace),
            Self::Same if a.is_number() => Ok(y),
            Self::Same if x == y => Ok(x),
            Self::Same => refuse(Reason::SAME_TYPE, x, y),
            Self::Ldexp => {
                let ty = if x == F64 || y == F64 { F64 } else { F32 };
                Ok(meet((ty, "the operation works in f64 if an operand has it, else in f32"), x, y, trace))
            }
            Self::LogAddExp => {
                elementwise(a, b, &mut |_| {})?;
                if a.is_number() || b.is_number() {
                    return refuse(Reason::NUMBER, x, y);
                }
                tensors(x, y, trace)
            }
            Self::PoissonNll => poisson_nll(a, b, trace),
            Self::Gcd => tensors(x.real(), y.real(), trace),
        }
    }
}

impl Integers {
    fn of(self, found: ElementType, trace: Trace) -> ElementType {
        match self {
            Self::Divide if found.is_integer() => change(found, F32, "a quotient of integers is f32", trace),
            Self::F32 if matches!(found, I32 | I64) => change(found, F32, "the operation makes integers f32", trace),
            Self::F64 if matches!(found, I32 | I64) => change(found, F64, "the operation makes integers f64", trace),
            _ => found,
        }
    }
}

impl Row<Rule> {
    fn decide(&self, a: Operand, b: Operand, trace: Trace) -> Result<Promotion> {
        let (x, y) = (a.element_type, b.element_type);
        let Rule { numbers, common, integers, is_real, ranks, .. } = self.rule;
        numbers.check(a, b)?;
        let ranks_fit = match ranks {
            Ranks::Any => true,
            Ranks::Equal | Ranks::EqualFirst => a.category == b.category,
            Ranks::FirstHolds => a.category == Category::Dimensioned || b.category == Category::ZeroDim,
        };
        if matches!(ranks, Ranks::EqualFirst | Ranks::FirstHolds) && !ranks_fit {
            return refuse(Reason::RANK, x, y);
        }
        let common = integers.of(common.of(a, b, trace)?, trace);
        if !ranks_fit {
            return refuse(Reason::RANK, x, y);
        }
        let result = match self.operation.is_test {
            true => change(common, Boolean, "the operation gives booleans", trace),
            false if is_real => change(common, common.real(), "the operation gives a real number", trace),
            false => common,
        };
        Ok(Promotion::new(common, result))
    }

    fn published(&self, a: Operand, b: Operand, trace: Trace) -> Result<Promotion> {
        let (x, y) = (a.element_type, b.element_type);
        let (common, rule) = match (a.is_number(), b.is_number()) {
            (true, true) => return refuse(Reason::NUMBER, x, y),
            (false, false) => (tensors(x, y, trace), self.rule.published[0]),
            (true, false) => (with_number(y, x, trace), self.rule.published[1]),
            (false, true) => (with_number(x, y, trace), self.rule.published[1]),
        };
        match rule {
            Published::None => refuse(OUT_OF_SCOPE, x, y),
            Published::Logic if is_complex(x) || is_complex(y) => refuse(OUT_OF_SCOPE, x, y),
            _ if is_float8(x) || is_float8(y) => refuse(OUT_OF_SCOPE, x, y),
            Published::Logic => {
                let common = common?;
                Ok(Promotion::new(common, change(common, Boolean, "the operation gives booleans", trace)))
            }
            Published::Divide | Published::Common => {
                let mut common = common?;
                if rule == Published::Divide && (common.is_integer() || common == Boolean) {
                    common = change(common, F32, "a quotient is at least f32", trace);
                }
                Ok(Promotion::new(common, common))
            }
        }
    }
}

const EXPONENTIAL: &str = "the exponential of an integer is f32";
