//! Paddle's rules: those of the package, and those its 2.6 document publishes.
//!
//! Between tensors only floats promote among each other, and real numbers to complex ones; anything else must agree. A
//! 0-D tensor or a Python number is let in where its kind (boolean < integer < floating point < complex) is no higher than
//! that of the tensor beside it, and raises the tensor's type where it is higher. Which of this an API does is a row of
//! [`Operation`]'s table.

use core::fmt;

use crate::derivation::{Step, Trace, change, meet};
use crate::operand::{agreeing_ranks, with_ranks};
use crate::{Category, ElementType, ElementType::*, Kind, Operand, Promotion};

/// Whose rules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Version {
    /// paddle 3.3.1 in dynamic graph mode, as it runs.
    #[default]
    V3_3,
    /// The tables of the Paddle 2.6 document, read as symmetric: where the row of `c64` contradicts its column, the
    /// column and the text decide.
    Published2_6,
}

/// Why Paddle refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// Paddle has no such type.
    UnknownType,
    /// Only floats promote among each other, and real numbers to complex ones.
    NoPromotion,
    /// An 8-bit float promotes to nothing.
    Float8,
    /// The operation does not promote: its operands must have one type.
    SameType,
    /// A Python number where the operation wants a tensor, or one of a kind that it does not take.
    Number,
    /// The document leaves this operation with these operands out.
    OutOfScope,
    /// The operands must have one rank.
    Rank,
    /// The answer depends on a rank that is not known.
    UnknownRank,
    /// Too few or too many operands.
    Arity,
}

/// A promotion that Paddle refuses. `Display` says in one sentence what does not go together and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Refusal {
    /// Why.
    pub reason: Reason,
    /// The types that do not go together; one type twice where one operand alone is the reason.
    pub types: [ElementType; 2],
}

impl Refusal {
    /// A stable word for the reason.
    pub fn code(&self) -> &'static str {
        match self.reason {
            Reason::UnknownType => "unsupported-type",
            Reason::NoPromotion => "no-promotion",
            Reason::Float8 => "float8",
            Reason::SameType => "same-type",
            Reason::Number => "not-a-tensor",
            Reason::OutOfScope => "out-of-scope",
            Reason::Rank => "rank",
            Reason::UnknownRank => "unknown-rank",
            Reason::Arity => "arity",
        }
    }

    /// What the user can do about it.
    pub fn remedy(&self) -> &'static str {
        match self.reason {
            Reason::UnknownType | Reason::Float8 => "convert that operand to a type that promotes, such as f16 or f32",
            Reason::NoPromotion | Reason::SameType | Reason::OutOfScope => "convert the operands to one type",
            Reason::Number => "give a tensor, or use Python's operator (`operator +`), which takes numbers",
            Reason::Rank => "give tensors of one rank",
            Reason::UnknownRank => "give the operand a known rank",
            Reason::Arity => "give as many operands as the operation takes",
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b] = self.types.map(ElementType::framework_name);
        match self.reason {
            Reason::UnknownType => write!(f, "Paddle has no type {a}"),
            Reason::NoPromotion => write!(
                f,
                "{a} and {b} have no common type: Paddle promotes between floats and from real to complex numbers only"
            ),
            Reason::Float8 => write!(f, "{a} and {b} have no common type: Paddle does not promote 8-bit floats"),
            Reason::SameType => write!(f, "{a} and {b} differ, and the operation does not promote"),
            Reason::Number => f.write_str("the operation takes a tensor where a Python number is given"),
            Reason::OutOfScope => write!(f, "{a} and {b}: the Paddle 2.6 document leaves this combination out"),
            Reason::Rank => f.write_str("the operation takes tensors of one rank"),
            Reason::UnknownRank => write!(f, "the common type of {a} and {b} depends on ranks that are not known"),
            Reason::Arity => f.write_str("wrong number of operands"),
        }
    }
}

impl core::error::Error for Refusal {}

type Result<T> = core::result::Result<T, Refusal>;

/// Whether paddle has the type.
pub fn is_supported(ty: ElementType) -> bool {
    matches!(ty, Boolean | U8 | I8 | I16 | I32 | I64 | F16 | Bf16 | F32 | F64 | C64 | C128 | F8E4M3 | F8E5M2)
}

fn is_float8(ty: ElementType) -> bool {
    matches!(ty, F8E4M3 | F8E5M2)
}

/// A float that promotes.
fn is_float(ty: ElementType) -> bool {
    ty.is_float() && !is_float8(ty)
}

fn is_complex(ty: ElementType) -> bool {
    ty.kind() == Kind::Complex
}

/// The table inside paddle that every promotion ends at, once promotion is allowed.
fn lattice(a: ElementType, b: ElementType) -> Result<(ElementType, &'static str)> {
    let wider = if a.bits() > b.bits() { a } else { b };
    Ok(match (a.kind(), b.kind()) {
        _ if is_float8(a) || is_float8(b) => return refuse(Reason::Float8, a, b),
        _ if a == b => (a, "the types are equal"),
        (Kind::Complex, _) | (_, Kind::Complex) => {
            let double = [a, b].iter().any(|&ty| ty == F64 || ty == C128);
            (if double { C128 } else { C64 }, "the complex type whose parts hold both")
        }
        (Kind::Float, Kind::Float) if a.bits() == b.bits() => (F32, "neither float holds the other"),
        (Kind::Float, Kind::Float) => (wider, "the wider float"),
        (Kind::Float, _) | (_, Kind::Boolean) => (a, HIGHER_KIND),
        (_, Kind::Float) | (Kind::Boolean, _) => (b, HIGHER_KIND),
        _ if a.bits() == b.bits() => (I16, "the signed integer that holds both"),
        _ => (wider, "the wider integer"),
    })
}

const HIGHER_KIND: &str = "the higher kind wins: boolean, integer, floating point, complex";
const SAME_KIND: &str = "a number or 0-D tensor of no higher kind does not change the type of the tensor beside it";

fn refuse<T>(reason: Reason, a: ElementType, b: ElementType) -> Result<T> {
    Err(Refusal { reason, types: [a, b] })
}

/// Two tensors, whatever their ranks.
fn tensors(a: ElementType, b: ElementType, trace: Trace) -> Result<ElementType> {
    if a == b {
        Ok(a)
    } else if is_complex(a) || is_complex(b) || is_float(a) && is_float(b) {
        Ok(meet(lattice(a, b)?, a, b, trace))
    } else {
        refuse(Reason::NoPromotion, a, b)
    }
}

/// Two tensors, a 0-D one of which gives way to one with dimensions of the same kind.
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

/// A tensor and a number beside it.
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

/// The type of the tensor that a number becomes.
fn number_type(number: ElementType) -> ElementType {
    match number.kind() {
        Kind::Boolean => Boolean,
        Kind::Float => F32,
        Kind::Complex => C64,
        _ => I64,
    }
}

/// An operand as a tensor, a number becoming one with dimensions.
fn as_tensor(operand: Operand) -> Operand {
    if operand.is_number() { Operand::dimensioned(number_type(operand.element_type)) } else { operand }
}

/// Where an operation takes Python numbers.
#[derive(Clone, Copy, PartialEq)]
enum Numbers {
    /// Beside a tensor.
    Beside,
    /// After the first operand.
    NotFirst,
    /// After the first operand, but no complex ones.
    NotFirstReal,
    /// The same, and none beside an 8-bit float.
    NotFirstRealNotFloat8,
    /// Before a tensor, booleans and integers only.
    FirstInteger,
    Nowhere,
}

/// How the operands find their common type.
#[derive(Clone, Copy, PartialEq)]
enum Common {
    /// As 0-D tensors and numbers give way to tensors of their kind.
    Elementwise,
    /// The same, but a complex number beside a 0-D tensor gives `c64`.
    ElementwiseC64,
    /// The same, but a number leaves the type of the tensor alone.
    Base,
    /// The same without a rule for 0-D tensors: they meet the other tensor in the lattice.
    FloorDivide,
    /// The same, and numbers are tensors there.
    FloorDivideTensors,
    /// As tensors, whatever their ranks.
    Tensors,
    /// All have one type already; a number has that of the tensor.
    Same,
    /// `f64` if either operand is, else `f32`.
    Ldexp,
    /// As tensors, and before that as the difference of both.
    LogAddExp,
    /// The exponential of the first less the product of both.
    PoissonNll,
    /// As tensors, of the absolute values.
    Gcd,
}

/// What integers become once the common type is found.
#[derive(Clone, Copy, PartialEq)]
enum Integers {
    Stay,
    /// All of them `f32`.
    Divide,
    /// `i32` and `i64` become `f32`.
    F32,
    /// `i32` and `i64` become `f64`.
    F64,
}

#[derive(Clone, Copy, PartialEq)]
enum Output {
    Common,
    Boolean,
    /// The type of a complex number's parts.
    Real,
}

/// What the operation asks of the ranks.
#[derive(Clone, Copy, PartialEq)]
enum Ranks {
    Any,
    /// They must be equal; types are looked at first.
    Equal,
    /// They must be equal, which is looked at first.
    EqualFirst,
}

/// A rule of the 2.6 document.
#[derive(Clone, Copy, PartialEq)]
enum Published {
    Common,
    Divide,
    Logic,
    None,
}

struct Row {
    name: &'static str,
    /// Most operands; the fewest are two, or one where there is no most.
    most: usize,
    numbers: Numbers,
    common: Common,
    integers: Integers,
    output: Output,
    ranks: Ranks,
    /// Between tensors, and between a tensor and a number.
    published: [Published; 2],
}

const MANY: usize = usize::MAX;

macro_rules! operations {
    ($($($name:literal)+, $most:tt $numbers:ident $common:ident $integers:ident $output:ident $ranks:ident,
        $tensors:ident $scalars:ident;)*) => {
        const ROWS: &[Row] = &[$($(Row {
            name: $name,
            most: $most,
            numbers: Numbers::$numbers,
            common: Common::$common,
            integers: Integers::$integers,
            output: Output::$output,
            ranks: Ranks::$ranks,
            published: [Published::$tensors, Published::$scalars],
        },)+)*];
    };
}

operations! {
    "add" "subtract" "multiply", 2 Nowhere Elementwise Stay Common Any, Common Common;
    "divide", 2 Nowhere Elementwise Divide Common Any, Common Divide;
    "floor_divide", 2 NotFirst FloorDivideTensors Stay Common Any, Common Common;
    "pow" "remainder" "mod" "floor_mod", 2 NotFirstReal Base Stay Common Any, Common Common;
    "copysign", 2 NotFirstRealNotFloat8 Base Stay Common Any, None None;
    "equal", 2 NotFirst Elementwise Stay Boolean Any, Logic Logic;
    "not_equal" "less_than" "less_equal" "greater_than" "greater_equal",
        2 Nowhere Elementwise Stay Boolean Any, Logic Logic;
    "logical_and" "logical_or" "logical_xor", 2 Nowhere Tensors Stay Boolean Any, Logic Logic;
    "bitwise_and" "bitwise_or" "bitwise_xor", 2 Nowhere Same Stay Common Any, None Common;
    "where", 2 Beside Tensors Stay Common Any, Common Common;
    "fmax" "fmin" "maximum" "minimum" "nextafter", 2 Nowhere Tensors Stay Common Any, Common None;
    "atan2", 2 Nowhere Tensors F64 Common Any, Common None;
    "logaddexp", 2 Beside LogAddExp F32 Common Any, Common None;
    "huber_loss" "smooth_l1_loss", 2 Nowhere Tensors Stay Common Equal, Common None;
    "poisson_nll_loss", 2 Nowhere PoissonNll Stay Common EqualFirst, Common None;
    "mse_loss", 2 Nowhere Elementwise Stay Common Any, Common None;
    "l1_loss", 2 Nowhere Elementwise Stay Real Any, Common None;
    "hypot", 2 Nowhere Elementwise F32 Common Any, None None;
    "heaviside", 2 Nowhere Same Stay Common Any, None None;
    "gcd" "lcm", 2 Nowhere Gcd Stay Common Any, None None;
    "ldexp", 2 Nowhere Ldexp Stay Common Any, None None;
    "isclose", 2 Nowhere Same Stay Boolean EqualFirst, None None;
    "matmul", 2 Nowhere Same Stay Common Any, None None;
    "concat" "stack", MANY Nowhere Same Stay Common Any, None None;
    "operator +" "operator -" "operator *", 2 Beside Elementwise Stay Common Any, Common Common;
    "operator /", 2 Beside ElementwiseC64 Divide Common Any, Common Divide;
    "operator //", 2 Beside FloorDivide Stay Common Any, Common Common;
    "operator %" "operator **", 2 Beside ElementwiseC64 Stay Common Any, Common Common;
    "operator ==" "operator !=" "operator <" "operator <=" "operator >" "operator >=",
        2 Beside Elementwise Stay Boolean Any, Logic Logic;
    "operator &" "operator |" "operator ^", 2 FirstInteger Same Stay Common Any, None Common;
}

/// An operation of Paddle and its rule. The names are those of functions of `paddle` and `paddle.nn.functional`;
/// `operator +` and its like are Python's operators, which take a number on either side.
///
/// ```
/// use typelift_promote::{ElementType::*, Operand, paddle::{Operation, Version}};
/// let add = Operation::from_name("add").unwrap();
/// let promote = |a, b| add.promote(&[a, b], Version::V3_3).map(|promotion| promotion.result);
/// assert_eq!(promote(Operand::dimensioned(F16), Operand::dimensioned(Bf16)), Ok(F32));
/// assert_eq!(promote(Operand::dimensioned(I32), Operand::zero_dim(I64)), Ok(I32));
/// assert!(promote(Operand::dimensioned(I32), Operand::dimensioned(I64)).is_err());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Operation(u8);

impl Operation {
    /// Every operation of the table.
    pub fn all() -> impl ExactSizeIterator<Item = Self> {
        (0..ROWS.len() as u8).map(Self)
    }

    /// The operation of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::all().find(|operation| operation.name() == name)
    }

    fn row(self) -> &'static Row {
        &ROWS[usize::from(self.0)]
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// The type its operands are converted to, and the type of its result. An operand of type `dynamic` makes both
    /// `dynamic`, but a comparison is boolean.
    ///
    /// # Errors
    /// What paddle refuses, or the document leaves out, missing kernels of a device apart; an operand of unknown rank
    /// when the answer depends on it.
    pub fn promote(self, operands: &[Operand], version: Version) -> Result<Promotion> {
        self.trace(operands, version, &mut |_| {})
    }

    /// [`promote`](Self::promote), handing each step of the derivation to `trace`.
    ///
    /// # Errors
    /// As [`promote`](Self::promote).
    pub fn trace(self, operands: &[Operand], version: Version, trace: &mut dyn FnMut(Step)) -> Result<Promotion> {
        let row = self.row();
        let (first, last) = match operands {
            [only] if row.most == MANY => (only, only),
            [first, .., last] if operands.len() <= row.most => (first, last),
            _ => return refuse(Reason::Arity, Dynamic, Dynamic),
        };
        let is_known = |operand: &Operand| match operand.element_type.kind() {
            Kind::Dynamic => true,
            Kind::String | Kind::Bits => false,
            _ => operand.is_number() || is_supported(operand.element_type),
        };
        if let Some(operand) = operands.iter().find(|operand| !is_known(operand)) {
            return refuse(Reason::UnknownType, operand.element_type, operand.element_type);
        }
        if operands.iter().any(|operand| operand.element_type == Dynamic) {
            let result = if row.output == Output::Boolean { Boolean } else { Dynamic };
            return Ok(Promotion { common: Dynamic, result });
        }
        let decide = |ranks, trace: Trace| {
            let mut operands = with_ranks(operands, ranks);
            let a = operands.next().unwrap_or(*first);
            // Only operations that do not promote take more than two: any one that differs from the first will do.
            let b = operands.clone().find(|b| b.is_number() || b.element_type != a.element_type);
            let b = b.or_else(|| operands.next()).unwrap_or(a);
            match version {
                Version::V3_3 => self.decide(a, b, trace),
                Version::Published2_6 => self.published(a, b, trace),
            }
        };
        let ranks =
            agreeing_ranks(operands, |ranks| decide(ranks, &mut |_| {}), |refusal| refusal.reason == Reason::Rank)
                .ok_or(Refusal { reason: Reason::UnknownRank, types: [first.element_type, last.element_type] })?;
        decide(ranks, trace)
    }

    /// The answer of the package for operands of known rank and known, supported type.
    fn decide(self, a: Operand, b: Operand, trace: Trace) -> Result<Promotion> {
        let row = self.row();
        let (x, y) = (a.element_type, b.element_type);
        let takes_numbers = match row.numbers {
            Numbers::Beside => !(a.is_number() && b.is_number()),
            Numbers::NotFirst => !a.is_number(),
            Numbers::NotFirstReal => !(a.is_number() || b.is_number() && is_complex(y)),
            Numbers::NotFirstRealNotFloat8 => !(a.is_number() || b.is_number() && (is_complex(y) || is_float8(x))),
            Numbers::FirstInteger => {
                !b.is_number() && !(a.is_number() && (x.is_float() || is_complex(x) || is_float8(y)))
            }
            Numbers::Nowhere => !a.is_number() && !b.is_number(),
        };
        if !takes_numbers {
            return refuse(Reason::Number, x, y);
        }
        let ranks_fit = row.ranks == Ranks::Any || a.category == b.category;
        if row.ranks == Ranks::EqualFirst && !ranks_fit {
            return refuse(Reason::Rank, x, y);
        }
        let elementwise = |trace: Trace| match (a.is_number(), b.is_number()) {
            (false, false) => zero_dim_aware(a, b, trace),
            (true, _) => with_number(y, x, trace),
            (_, true) => with_number(x, y, trace),
        };
        let found = match row.common {
            Common::Elementwise => elementwise(trace)?,
            Common::ElementwiseC64 => {
                let zero_dim = [a, b].into_iter().find(|operand| operand.category == Category::ZeroDim);
                let number = [a, b].into_iter().find(|operand| operand.is_number());
                match (zero_dim, number) {
                    (Some(tensor), Some(number))
                        if is_complex(number.element_type) && !is_float8(tensor.element_type) =>
                    {
                        let rule = "a complex number beside a 0-D tensor stays c64";
                        meet((C64, rule), tensor.element_type, number_type(number.element_type), trace)
                    }
                    _ => elementwise(trace)?,
                }
            }
            Common::Base if b.is_number() => x,
            Common::Base => zero_dim_aware(a, b, trace)?,
            Common::FloorDivide if a.is_number() || b.is_number() => elementwise(trace)?,
            Common::FloorDivide | Common::FloorDivideTensors => {
                let y = as_tensor(b).element_type;
                if x == y {
                    x
                } else if a.category == Category::Dimensioned && b.category == Category::Dimensioned {
                    tensors(x, y, trace)?
                } else {
                    meet(lattice(x, y)?, x, y, trace)
                }
            }
            Common::Tensors => tensors(as_tensor(a).element_type, as_tensor(b).element_type, trace)?,
            Common::Same if a.is_number() => y,
            Common::Same if x == y => x,
            Common::Same => return refuse(Reason::SameType, x, y),
            Common::Ldexp => {
                let ty = if x == F64 || y == F64 { F64 } else { F32 };
                meet((ty, "the operation works in f64 if an operand has it, else in f32"), x, y, trace)
            }
            Common::LogAddExp => {
                elementwise(&mut |_| {})?;
                if a.is_number() || b.is_number() {
                    return refuse(Reason::Number, x, y);
                }
                tensors(x, y, trace)?
            }
            Common::PoissonNll => {
                let product = Operand { element_type: zero_dim_aware(b, a, trace)?, ..a };
                let exponential = if matches!(x, I32 | I64) { change(x, F32, EXPONENTIAL, trace) } else { x };
                zero_dim_aware(Operand { element_type: exponential, ..a }, product, trace)?
            }
            Common::Gcd => tensors(x.real(), y.real(), trace)?,
        };
        let common = match row.integers {
            Integers::Divide if found.is_integer() => change(found, F32, "a quotient of integers is f32", trace),
            Integers::F32 if matches!(found, I32 | I64) => {
                change(found, F32, "the operation makes integers f32", trace)
            }
            Integers::F64 if matches!(found, I32 | I64) => {
                change(found, F64, "the operation makes integers f64", trace)
            }
            _ => found,
        };
        if !ranks_fit {
            return refuse(Reason::Rank, x, y);
        }
        let result = match row.output {
            Output::Common => common,
            Output::Boolean => change(common, Boolean, "the operation gives booleans", trace),
            Output::Real => change(common, common.real(), "the operation gives a real number", trace),
        };
        Ok(Promotion { common, result })
    }

    /// The answer of the 2.6 document, where a 0-D tensor is a tensor like any other.
    fn published(self, a: Operand, b: Operand, trace: Trace) -> Result<Promotion> {
        let row = self.row();
        let (x, y) = (a.element_type, b.element_type);
        let (common, rule) = match (a.is_number(), b.is_number()) {
            (true, true) => return refuse(Reason::Number, x, y),
            (false, false) => (tensors(x, y, trace), row.published[0]),
            (true, false) => (with_number(y, x, trace), row.published[1]),
            (false, true) => (with_number(x, y, trace), row.published[1]),
        };
        match rule {
            Published::None => refuse(Reason::OutOfScope, x, y),
            Published::Logic if is_complex(x) || is_complex(y) => refuse(Reason::OutOfScope, x, y),
            _ if is_float8(x) || is_float8(y) => refuse(Reason::OutOfScope, x, y),
            Published::Logic => {
                let common = common?;
                Ok(Promotion { common, result: change(common, Boolean, "the operation gives booleans", trace) })
            }
            Published::Divide | Published::Common => {
                let mut common = common?;
                if rule == Published::Divide && (common.is_integer() || common == Boolean) {
                    common = change(common, F32, "a quotient is no smaller than f32", trace);
                }
                Ok(Promotion { common, result: common })
            }
        }
    }
}

const EXPONENTIAL: &str = "the exponential of an integer is f32";
