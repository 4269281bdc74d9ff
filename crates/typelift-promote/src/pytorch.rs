//! PyTorch's rules, as torch 2.15 does them.
//!
//! Operands fall into three categories: tensors with dimensions, tensors without, Python numbers. Within a category types
//! meet in a lattice, [`promote_types`]; a lower category changes the type of a higher one only when it has a higher kind
//! (boolean < integer < floating point < complex), [`result_type`]. What an operation adds to that is a row of
//! [`Operation`]'s table.

use core::fmt;

use crate::derivation::{Step, Trace, change, meet};
use crate::operand::{agreeing_ranks, with_ranks};
use crate::{Category, ElementType, ElementType::*, Kind, Operand, Promotion};

/// The part of PyTorch's global state that promotion reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Options {
    /// What `torch.set_default_dtype` set: `f16`, `bf16`, `f32` or `f64`. Default `f32`.
    pub default_dtype: ElementType,
}

impl Default for Options {
    fn default() -> Self {
        Self { default_dtype: F32 }
    }
}

impl Options {
    /// The type of a Python `complex`. Under `bf16` too it is `c64`.
    fn default_complex(self) -> ElementType {
        match self.default_dtype {
            F16 => C32,
            F64 => C128,
            _ => C64,
        }
    }
}

/// Why PyTorch refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// PyTorch has no such type.
    UnknownType,
    /// `u16`, `u32`, `u64` and the sub-byte unsigned types promote to floating point only.
    BareUnsigned,
    /// An 8-bit float promotes to nothing.
    Float8,
    /// There is no complex number of 8-bit floats.
    Float8Complex,
    /// `bits8` and its kin are storage only.
    Bits,
    /// No rule covers the type; torch fails an internal assertion.
    NoRule,
    /// The operation takes no boolean.
    Boolean,
    /// The operation takes no complex number.
    Complex,
    /// The operation takes floating point and complex numbers only.
    NotFloat,
    /// The operation does not promote: its operands must have one type.
    SameType,
    /// The result cannot be stored in the first operand.
    Cast,
    /// A fractional `alpha` on integers.
    Alpha,
    /// A Python number where the operation wants a tensor.
    Number,
    /// A tensor without dimensions where the operation wants one with, or the reverse.
    Rank,
    /// The answer depends on a rank that is not known.
    UnknownRank,
    /// Too few or too many operands.
    Arity,
}

/// A promotion that PyTorch refuses. `Display` says in one sentence what does not go together and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Refusal {
    /// Why.
    pub reason: Reason,
    /// The types that do not go together; one type twice where one operand alone is the reason.
    pub types: [ElementType; 2],
}

impl Refusal {
    fn one(reason: Reason, ty: ElementType) -> Self {
        Self { reason, types: [ty, ty] }
    }

    /// A stable word for the reason.
    pub fn code(&self) -> &'static str {
        match self.reason {
            Reason::UnknownType => "unsupported-type",
            Reason::BareUnsigned => "bare-unsigned",
            Reason::Float8 => "float8",
            Reason::Float8Complex => "float8-complex",
            Reason::Bits => "bits",
            Reason::NoRule => "no-rule",
            Reason::Boolean => "no-boolean",
            Reason::Complex => "no-complex",
            Reason::NotFloat => "not-float",
            Reason::SameType => "same-type",
            Reason::Cast => "cast",
            Reason::Alpha => "alpha",
            Reason::Number => "not-a-tensor",
            Reason::Rank => "rank",
            Reason::UnknownRank => "unknown-rank",
            Reason::Arity => "arity",
        }
    }

    /// What the user can do about it.
    pub fn remedy(&self) -> &'static str {
        match self.reason {
            Reason::UnknownType | Reason::Float8 | Reason::Float8Complex | Reason::Bits | Reason::NoRule => {
                "convert that operand to a type that promotes, such as f16 or f32"
            }
            Reason::BareUnsigned => "convert the unsigned operand to a signed or floating-point type",
            Reason::Boolean => "convert the boolean operand to an integer type, or use a logical operation",
            Reason::Complex => "take the real part or the absolute value first",
            Reason::NotFloat | Reason::Alpha => "convert the operands to a floating-point type",
            Reason::SameType => "convert the operands to one type",
            Reason::Cast => "use the operation that is not in place, or convert the first operand",
            Reason::Number => "give a tensor",
            Reason::Rank => "give tensors of rank 1 or more, all of one rank",
            Reason::UnknownRank => "give the operand a known rank",
            Reason::Arity => "give as many operands as the operation takes",
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b] = self.types.map(ElementType::framework_name);
        match self.reason {
            Reason::UnknownType => write!(f, "PyTorch has no type {a}"),
            Reason::BareUnsigned => {
                write!(
                    f,
                    "{a} and {b} have no common type: PyTorch promotes uint16, uint32 and uint64 to floating point only"
                )
            }
            Reason::Float8 => write!(f, "{a} and {b} have no common type: PyTorch does not promote 8-bit floats"),
            Reason::Float8Complex => write!(f, "{a} with {b} would be complex, and {a} has no complex type"),
            Reason::Bits => write!(f, "{a} and {b} have no common type: PyTorch's bits types are storage only"),
            Reason::NoRule => {
                write!(f, "{a} and {b} have no common type: PyTorch has no promotion rule for one of them")
            }
            Reason::Boolean => write!(f, "{a} and {b}: PyTorch does not subtract or negate booleans"),
            Reason::Complex => write!(f, "{a} and {b}: the operation takes no complex numbers"),
            Reason::NotFloat => write!(f, "{a}: the operation takes floating-point and complex numbers only"),
            Reason::SameType => write!(f, "{a} and {b} differ, and the operation does not promote"),
            Reason::Cast => write!(f, "the result is {b}, which PyTorch does not store in the {a} operand"),
            Reason::Alpha => write!(f, "a fractional alpha with {a}: it takes floating-point operands"),
            Reason::Number => f.write_str("the operation takes a tensor where a Python number is given"),
            Reason::Rank => f.write_str("the operation does not take a tensor of rank 0 here"),
            Reason::UnknownRank => write!(f, "the common type of {a} and {b} depends on ranks that are not known"),
            Reason::Arity => f.write_str("wrong number of operands"),
        }
    }
}

impl core::error::Error for Refusal {}

type Result<T> = core::result::Result<T, Refusal>;

/// Whether torch has the type.
pub fn is_supported(ty: ElementType) -> bool {
    !matches!(ty, Dynamic | String | Nf4 | F4E2M1)
}

fn is_float8(ty: ElementType) -> bool {
    ty.is_float() && ty.bits() == 8 && ty != F4E2M1x2
}

/// The unsigned types that came late to torch and do not promote among integers.
fn is_bare_unsigned(ty: ElementType) -> bool {
    ty.kind() == Kind::Unsigned && ty != U8
}

/// What torch calls integral: boolean apart, and without the sub-byte types.
fn is_integral(ty: ElementType) -> bool {
    ty.is_integer() && ty.bits() >= 8
}

/// An integer of any width, or a boolean.
fn is_whole(ty: ElementType) -> bool {
    ty.is_integer() || ty == Boolean
}

fn to_complex(ty: ElementType) -> Option<ElementType> {
    Some(match ty {
        F16 => C32,
        Bf16 => Bc32,
        F32 => C64,
        F64 => C128,
        _ if ty.kind() == Kind::Complex => ty,
        _ => return None,
    })
}

/// `torch.promote_types`: the common type of two tensors of one category. `dynamic` with any type gives `dynamic`.
///
/// ```
/// use typelift_promote::{ElementType::*, pytorch::promote_types};
/// assert_eq!(promote_types(U8, I8), Ok(I16));
/// assert_eq!(promote_types(F16, Bf16), Ok(F32));
/// assert_eq!(promote_types(I32, C64), Ok(C64));
/// assert_eq!(promote_types(I32, U32).unwrap_err().code(), "bare-unsigned");
/// ```
///
/// # Errors
/// What torch refuses: 8-bit floats, bare unsigned integers, storage types.
pub fn promote_types(a: ElementType, b: ElementType) -> Result<ElementType> {
    lattice(a, b).map(|(ty, _)| ty)
}

/// The common type and the rule that gives it.
fn lattice(a: ElementType, b: ElementType) -> Result<(ElementType, &'static str)> {
    let either = |is: fn(ElementType) -> bool| is(a) || is(b);
    let refuse = |reason| Err(Refusal { reason, types: [a, b] });
    if let Some(ty) = [a, b].into_iter().find(|&ty| ty != Dynamic && !is_supported(ty)) {
        return Err(Refusal::one(Reason::UnknownType, ty));
    }
    if either(|ty| ty == Dynamic) {
        return Ok((Dynamic, "one of the types is not known"));
    }
    if a == b {
        return Ok((a, "the types are equal"));
    }
    if either(|ty| ty.kind() == Kind::Bits) {
        return refuse(Reason::Bits);
    }
    if either(is_float8) {
        return refuse(Reason::Float8);
    }
    if either(is_bare_unsigned) {
        return match (a.is_float(), b.is_float()) {
            (true, _) => Ok((a, HIGHER_KIND)),
            (_, true) => Ok((b, HIGHER_KIND)),
            _ => refuse(Reason::BareUnsigned),
        };
    }
    if either(|ty| ty == F4E2M1x2 || ty.is_integer() && !is_integral(ty)) {
        return refuse(Reason::NoRule);
    }
    if either(|ty| ty.kind() == Kind::Complex) {
        let (real, _) = lattice(a.real(), b.real())?;
        return match to_complex(real) {
            Some(ty) => Ok((ty, "the complex type whose parts hold both")),
            None => refuse(Reason::NoRule),
        };
    }
    let wider = if a.bits() > b.bits() { a } else { b };
    Ok(match (a.kind(), b.kind()) {
        (Kind::Float, Kind::Float) if a.bits() == b.bits() => (F32, "neither float holds the other"),
        (Kind::Float, Kind::Float) => (wider, "the wider float"),
        (Kind::Float, _) | (_, Kind::Boolean) => (a, HIGHER_KIND),
        (_, Kind::Float) | (Kind::Boolean, _) => (b, HIGHER_KIND),
        // u8 and i8: the other unsigned types are refused above.
        _ if a.bits() == b.bits() => (I16, "the signed integer that holds both"),
        _ => (wider, "the wider integer"),
    })
}

const HIGHER_KIND: &str = "the higher kind wins: boolean, integer, floating point, complex";

/// `torch.can_cast`: whether an in-place operation may store a result of type `from` in a tensor of type `to`. Lowering
/// the kind is refused, losing bits is not.
///
/// ```
/// use typelift_promote::{ElementType::*, pytorch::can_cast};
/// assert!(can_cast(I64, F16) && can_cast(I64, U8));
/// assert!(!can_cast(F16, I64) && !can_cast(U8, Boolean));
/// ```
pub fn can_cast(from: ElementType, to: ElementType) -> bool {
    !(from.kind() == Kind::Complex && to.kind() != Kind::Complex
        || from.is_float() && is_integral(to)
        || from != Boolean && to == Boolean)
}

/// `torch.result_type` over any number of operands.
///
/// ```
/// use typelift_promote::{ElementType::*, Operand, pytorch::{Options, result_type}};
/// let options = Options::default();
/// assert_eq!(result_type(&[Operand::dimensioned(F16), Operand::zero_dim(F64)], options), Ok(F16));
/// assert_eq!(result_type(&[Operand::dimensioned(I32), Operand::number(F64)], options), Ok(F32));
/// ```
///
/// # Errors
/// What [`promote_types`] refuses; an operand of unknown rank when the answer depends on it; no operands.
pub fn result_type(operands: &[Operand], options: Options) -> Result<ElementType> {
    RESULT_TYPE.promote(operands, options).map(|promotion| promotion.common)
}

/// [`result_type`] of operands whose ranks are known.
fn combined_type(operands: impl Iterator<Item = Operand>, options: Options, trace: Trace) -> Result<ElementType> {
    let mut types = [None; 3];
    for operand in operands {
        let ty = operand_type(operand, options, trace);
        let slot = match operand.category {
            Category::Dimensioned | Category::UnknownRank => 0,
            Category::ZeroDim => 1,
            Category::Number => 2,
        };
        types[slot] = Some(match types[slot] {
            None => ty,
            Some(other) => meet(lattice(other, ty)?, other, ty, trace),
        });
    }
    let [dimensioned, zero_dim, number] = types;
    let lower = combine(zero_dim, number, trace)?;
    combine(dimensioned, lower, trace)?.ok_or(Refusal::one(Reason::Arity, Dynamic))
}

/// The type an operand brings along: numbers have the default types.
fn operand_type(operand: Operand, options: Options, trace: Trace) -> ElementType {
    let from = operand.element_type;
    let to = match (operand.category, from.kind()) {
        (Category::Number, Kind::Float) => options.default_dtype,
        (Category::Number, Kind::Complex) => options.default_complex(),
        (Category::Number, Kind::Signed | Kind::Unsigned) => I64,
        _ => from,
    };
    change(from, to, "a number has the default type of its kind", trace)
}

/// The type of two categories together: the lower one counts only where it has the higher kind.
fn combine(higher: Option<ElementType>, lower: Option<ElementType>, trace: Trace) -> Result<Option<ElementType>> {
    let (Some(high), Some(low)) = (higher, lower) else { return Ok(higher.or(lower)) };
    let is_complex = |ty: ElementType| ty.kind() == Kind::Complex;
    let answer = if is_complex(high) || high.is_float() && !is_complex(low) {
        (high, LOWER_CATEGORY)
    } else if high.is_float() {
        let ty = to_complex(high).ok_or(Refusal { reason: Reason::Float8Complex, types: [high, low] })?;
        (ty, "the complex type of the higher category's float")
    } else if is_complex(low) {
        (low, HIGHER_KIND)
    } else if high == Boolean || low.is_float() {
        lattice(high, low)?
    } else {
        (high, LOWER_CATEGORY)
    };
    Ok(Some(meet(answer, high, low, trace)))
}

const LOWER_CATEGORY: &str =
    "numbers and zero-dim tensors of no higher kind do not change the type of tensors above them";

const WORKS_ON_FLOATS: &str = "the operation works on floats, so integers get the default type";

/// Where an operation takes Python numbers.
#[derive(Clone, Copy, PartialEq)]
enum Numbers {
    Anywhere,
    /// Beside a tensor.
    NotAll,
    /// After the first operand.
    NotFirst,
    Nowhere,
}

/// How the operands find their common type.
#[derive(Clone, Copy, PartialEq)]
enum Common {
    /// [`result_type`].
    Promoted,
    /// [`result_type`], integers and booleans becoming the default type.
    Float,
    /// [`result_type`], integers and booleans becoming `i64`.
    Sum,
    /// [`result_type`] of operands none of which is boolean.
    NotBoolean,
    /// [`result_type`] of operands none of which is complex.
    NotComplex,
    /// [`result_type`], which must be floating point or complex.
    OnlyFloat,
    /// [`result_type`], which must not be integer: there is a fractional factor.
    Alpha,
    /// `f64`, or `c128` when an operand is complex.
    Double,
    /// All have one type already.
    Same,
    /// All have one type already, which is not complex.
    SameNotComplex,
    /// All have one type already, and dimensions.
    SameDimensioned,
    /// [`result_type`] of operands that have dimensions.
    Dimensioned,
    /// [`result_type`] of operands of one rank.
    OneRank,
    /// [`result_type`], but bounds that are numbers leave a floating-point type alone.
    Clamp,
    /// The weight must have the type of the first operand, unless it has no dimensions.
    LerpWeight,
    /// `a * 2**b`, where 2 is a zero-dim tensor of the type of `a`, or a number if that is an integer.
    Ldexp,
}

/// What the operation gives.
#[derive(Clone, Copy, PartialEq)]
enum Output {
    Common,
    Boolean,
    /// The type of a complex number's parts.
    Real,
    /// The result is stored in the first operand.
    First,
}

struct Row {
    name: &'static str,
    /// Fewest and most operands.
    arity: (usize, usize),
    numbers: Numbers,
    common: Common,
    output: Output,
}

const MANY: usize = usize::MAX;

macro_rules! operations {
    ($($($name:literal)+, $least:tt..$most:tt $numbers:ident $common:ident $output:ident;)*) => {
        const ROWS: &[Row] = &[$($(Row {
            name: $name,
            arity: ($least, $most),
            numbers: Numbers::$numbers,
            common: Common::$common,
            output: Output::$output,
        },)+)*];
    };
}

operations! {
    "result_type", 1..MANY Anywhere Promoted Common;
    "add" "add_alpha2" "mul" "floor_divide" "div_floor" "div_trunc" "where", 2..2 Anywhere Promoted Common;
    "sub", 2..2 Anywhere NotBoolean Common;
    "rsub", 2..2 NotFirst NotBoolean Common;
    "div" "true_divide", 2..2 Anywhere Float Common;
    "add_alpha_float", 2..2 Anywhere Alpha Common;
    "remainder" "pow" "bitwise_and" "bitwise_or" "bitwise_xor" "bitwise_left_shift" "bitwise_right_shift",
        2..2 NotAll Promoted Common;
    "fmod", 2..2 NotFirst Promoted Common;
    "float_power", 2..2 NotAll Double Common;
    "xlogy", 2..2 NotAll Float Common;
    "copysign", 2..2 NotFirst Float Common;
    "atan2", 2..2 Nowhere Float Common;
    "logaddexp" "logaddexp2" "hypot" "nextafter" "gcd" "lcm", 2..2 Nowhere Promoted Common;
    "ldexp", 2..2 Nowhere Ldexp Common;
    "maximum" "minimum" "fmax" "fmin", 2..2 Nowhere NotComplex Common;
    "heaviside", 2..2 Nowhere SameNotComplex Common;
    "eq" "ne" "lt" "le" "gt" "ge", 2..2 NotFirst Promoted Boolean;
    "isclose", 2..2 Nowhere Same Boolean;
    "logical_and" "logical_or" "logical_xor", 2..2 Nowhere Promoted Boolean;
    "addcmul", 2..3 Nowhere Promoted Common;
    "clamp_min" "clamp_max", 2..2 NotFirst Clamp Common;
    "clamp", 2..3 NotFirst Clamp Common;
    "lerp", 2..2 Nowhere Same Common;
    "lerp_tensor_weight", 2..2 NotFirst LerpWeight Common;
    "matmul", 2..2 Nowhere SameDimensioned Common;
    "mm", 2..2 Nowhere Same Common;
    "cat", 1..MANY Nowhere Dimensioned Common;
    "stack", 1..MANY Nowhere OneRank Common;
    "add_" "mul_" "pow_", 2..2 NotFirst Promoted First;
    "div_", 2..2 NotFirst Float First;
    "operator +" "operator *" "operator //" "operator %" "operator **" "operator &" "operator |" "operator ^"
        "operator <<" "operator >>", 2..2 NotAll Promoted Common;
    "operator -", 2..2 NotAll NotBoolean Common;
    "operator /", 2..2 NotAll Float Common;
    "operator ==" "operator !=" "operator <" "operator <=" "operator >" "operator >=", 2..2 NotAll Promoted Boolean;
    "acos" "acosh" "asin" "asinh" "atan" "atanh" "cos" "cosh" "erf" "erfc" "exp" "exp2" "expm1" "log" "log10" "log1p"
        "log2" "reciprocal" "rsqrt" "sigmoid" "sin" "sinh" "sqrt" "tan" "tanh", 1..1 Nowhere Float Common;
    "angle", 1..1 Nowhere Float Real;
    "abs", 1..1 Nowhere Promoted Real;
    "neg", 1..1 Nowhere NotBoolean Common;
    "ceil" "floor" "trunc", 1..1 Nowhere NotComplex Common;
    "round", 1..1 Nowhere Promoted Common;
    "cumprod" "cumsum" "prod" "sum", 1..1 Nowhere Sum Common;
    "mean", 1..1 Nowhere OnlyFloat Common;
}

/// An operation of PyTorch and its rule. The names are those of functions of `torch`; `operator +` and its like are
/// Python's operators, which take a number on either side; `div_floor` and `div_trunc` are `div` with a rounding mode,
/// `add_alpha2` and `add_alpha_float` are `add` with an integer and a fractional `alpha`, `lerp_tensor_weight` is
/// `lerp(a, a, b)`; a trailing underscore means in place.
///
/// ```
/// use typelift_promote::{ElementType::*, Operand, pytorch::{Operation, Options}};
/// let div = Operation::from_name("div").unwrap();
/// let operands = [Operand::dimensioned(I32), Operand::dimensioned(I32)];
/// assert_eq!(div.promote(&operands, Options::default()).unwrap().result, F32);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Operation(u8);

/// The first row.
const RESULT_TYPE: Operation = Operation(0);

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
    /// What torch refuses, missing kernels of a device apart; an operand of unknown rank when the answer depends on it.
    pub fn promote(self, operands: &[Operand], options: Options) -> Result<Promotion> {
        self.trace(operands, options, &mut |_| {})
    }

    /// [`promote`](Self::promote), handing each step of the derivation to `trace`.
    ///
    /// # Errors
    /// As [`promote`](Self::promote).
    pub fn trace(self, operands: &[Operand], options: Options, trace: &mut dyn FnMut(Step)) -> Result<Promotion> {
        let row = self.row();
        if !(row.arity.0..=row.arity.1).contains(&operands.len()) {
            return Err(Refusal::one(Reason::Arity, Dynamic));
        }
        let takes_numbers = match row.numbers {
            Numbers::Anywhere => true,
            Numbers::NotAll => !operands.iter().all(|operand| operand.is_number()),
            Numbers::NotFirst => !operands[0].is_number(),
            Numbers::Nowhere => !operands.iter().any(|operand| operand.is_number()),
        };
        if !takes_numbers {
            return Err(Refusal::one(Reason::Number, operands[0].element_type));
        }
        let types = || operands.iter().map(|operand| operand.element_type);
        if let Some(ty) = types().find(|&ty| ty != Dynamic && !is_supported(ty)) {
            return Err(Refusal::one(Reason::UnknownType, ty));
        }
        if types().any(|ty| ty == Dynamic) {
            let result = if row.output == Output::Boolean { Boolean } else { Dynamic };
            return Ok(Promotion { common: Dynamic, result });
        }
        let decide = |ranks| self.decide(with_ranks(operands, ranks), options, &mut |_| {});
        let ranks = agreeing_ranks(operands, decide, |refusal| refusal.reason == Reason::Rank).ok_or_else(|| {
            let ends = [operands[0], operands[operands.len() - 1]];
            Refusal { reason: Reason::UnknownRank, types: ends.map(|operand| operand.element_type) }
        })?;
        self.decide(with_ranks(operands, ranks), options, trace)
    }

    /// The answer for operands of known rank and known, supported type.
    fn decide(
        self,
        operands: impl Iterator<Item = Operand> + Clone,
        options: Options,
        trace: Trace,
    ) -> Result<Promotion> {
        let row = self.row();
        let refuse = |reason, a: Operand, b: Operand| Err(Refusal { reason, types: [a.element_type, b.element_type] });
        let find = |is: fn(&Operand) -> bool| operands.clone().find(is);
        let Some(first) = operands.clone().next() else { return Err(Refusal::one(Reason::Arity, Dynamic)) };
        let last = operands.clone().last().unwrap_or(first);
        let other_type = operands.clone().find(|operand| operand.element_type != first.element_type);
        let zero_dim = find(|operand| operand.category == Category::ZeroDim);
        let dimensioned = find(|operand| operand.category == Category::Dimensioned);
        let complex = find(|operand| operand.element_type.kind() == Kind::Complex);

        let rank_fits = match (row.common, row.output) {
            (_, Output::First) => first.category == Category::Dimensioned || dimensioned.is_none(),
            (Common::Dimensioned | Common::SameDimensioned, _) => zero_dim.is_none(),
            (Common::OneRank, _) => zero_dim.is_none() || dimensioned.is_none(),
            _ => true,
        };
        if !rank_fits {
            return refuse(Reason::Rank, first, last);
        }
        if let (Common::NotComplex | Common::SameNotComplex, Some(complex)) = (row.common, complex) {
            return refuse(Reason::Complex, first, complex);
        }
        let common = match row.common {
            Common::Same | Common::SameDimensioned | Common::SameNotComplex => match other_type {
                Some(other) => return refuse(Reason::SameType, first, other),
                None => first.element_type,
            },
            Common::Promoted | Common::NotComplex | Common::Dimensioned | Common::OneRank => {
                combined_type(operands, options, trace)?
            }
            Common::NotBoolean => match find(|operand| operand.element_type == Boolean) {
                Some(boolean) => return refuse(Reason::Boolean, first, if first == boolean { last } else { boolean }),
                None => combined_type(operands, options, trace)?,
            },
            Common::Float | Common::Sum | Common::OnlyFloat | Common::Alpha => {
                let ty = combined_type(operands, options, trace)?;
                match row.common {
                    _ if !is_whole(ty) => ty,
                    Common::Float => change(ty, options.default_dtype, WORKS_ON_FLOATS, trace),
                    Common::Sum => change(ty, I64, "integers are summed as i64", trace),
                    Common::Alpha => return Err(Refusal::one(Reason::Alpha, ty)),
                    _ => return Err(Refusal::one(Reason::NotFloat, ty)),
                }
            }
            Common::Double => {
                let ty = if complex.is_some() { C128 } else { F64 };
                trace(Step {
                    from: first.element_type,
                    with: Some(last.element_type),
                    to: ty,
                    rule: "the operation works in double precision",
                });
                ty
            }
            Common::Clamp => {
                let only_numbers = operands.clone().skip(1).all(Operand::is_number);
                if first.element_type.kind() == Kind::Complex {
                    return refuse(Reason::Complex, first, last);
                }
                if only_numbers && first.element_type.is_float() {
                    first.element_type
                } else {
                    let ty = combined_type(operands, options, trace)?;
                    if only_numbers && ty.kind() == Kind::Complex {
                        return refuse(Reason::Complex, first, last);
                    }
                    ty
                }
            }
            Common::LerpWeight => match (last.category, other_type) {
                (Category::ZeroDim, _) => combined_type(operands, options, trace)?,
                (Category::Dimensioned, Some(_)) => return refuse(Reason::SameType, first, last),
                _ => first.element_type,
            },
            Common::Ldexp => {
                let (a, b) = (first.element_type, last.element_type);
                let mut exponential = last;
                if is_whole(a) || !is_whole(b) || complex.is_some() {
                    let base = if is_whole(a) { Operand::number(F64) } else { Operand::zero_dim(a) };
                    exponential.element_type = combined_type([base, last].into_iter(), options, trace)?;
                }
                combined_type([first, exponential].into_iter(), options, trace)?
            }
        };
        let result = match row.output {
            Output::Common => common,
            Output::Boolean => change(common, Boolean, "the operation gives booleans", trace),
            Output::Real if complex.is_some() => {
                change(common, common.real(), "the operation gives a real number", trace)
            }
            Output::Real => common,
            Output::First if can_cast(common, first.element_type) => {
                change(common, first.element_type, "the result is stored in the first operand", trace)
            }
            Output::First => return Err(Refusal { reason: Reason::Cast, types: [first.element_type, common] }),
        };
        Ok(Promotion { common, result })
    }
}
