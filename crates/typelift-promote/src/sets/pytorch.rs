//! PyTorch's rules, as torch 2.15 applies them.
//!
//! Operands have three categories: tensors with dimensions, tensors without, and Python numbers. Within a category
//! types are combined in a lattice, [`promote_types`]. A lower category changes the type of a higher one only if it has
//! a higher kind (boolean < integer < floating point < complex), [`result_type`]. A row of [`Operation`]'s table
//! describes the additional rules of an operation.
//!
//! | operations | rule |
//! |---|---|
//! | `add`, `mul`, `floor_divide`, `remainder`, `fmod`, `pow`, bitwise operations and shifts, `where`, `addcmul`, `hypot` and most others | `result_type` |
//! | `div`, `atan2`, `copysign`, `xlogy`, `sqrt`, `exp`, `sin` and other functions on floats | `result_type`, then integers and booleans become the default dtype |
//! | comparisons, logical operations | `result_type` of the operands; the result is boolean |
//! | `sub`, `rsub`, `neg` | no booleans (`no-boolean`) |
//! | `maximum`, `minimum`, `fmax`, `fmin`, `floor`, `ceil` | no complex numbers (`no-complex`) |
//! | `float_power` | always `f64`, or `c128` |
//! | `sum`, `prod`, `cumsum`, `cumprod` | integers and booleans become `i64` |
//! | `mean` | floats and complex numbers only (`not-float`) |
//! | `abs`, `angle` | of a complex number the type of its parts |
//! | `clamp` | `result_type` of all three, but bounds that are numbers leave a float alone; a complex first operand is refused |
//! | `lerp`, `heaviside`, `isclose`, `mm`, `matmul` | no promotion: one type (`same-type`) |
//! | `lerp` with a tensor as weight | a weight with dimensions must have the type of the others, one of rank 0 is promoted |
//! | `ldexp` | `a * 2**b`, where 2 has the type of `a`, or is a number if that is an integer |
//! | `cat`, `stack` | `result_type`; `cat` takes no tensor of rank 0, `stack` takes one rank (`rank`) |
//! | `add_`, `mul_`, `div_`, `pow_` | the result keeps the first operand's type, and must be of no higher kind (`cast`) |

use super::{HIGHER_KIND, of_numbers};
use crate::derivation::{Trace, change, meet};
use crate::operand::Operands;
use crate::operation::{MANY, operations};
use crate::{
    Category, ElementType, ElementType::*, Facts, Kind, Operand, Operation, PromotedAs, Promotion, Reason, Refusal,
    Rules, Setting, Spelling, System, rules,
};

/// Part of PyTorch's global state that promotion reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Options {
    /// The type set by `torch.set_default_dtype`: `f16`, `bf16`, `f32` or `f64`. Default `f32`.
    pub default_dtype: ElementType,
}

impl Default for Options {
    fn default() -> Self {
        Self { default_dtype: F32 }
    }
}

impl Options {
    /// Under `bf16` it is `c64` as well.
    fn default_complex(self) -> ElementType {
        match self.default_dtype {
            F16 => C32,
            F64 => C128,
            _ => C64,
        }
    }
}

const SYSTEM: System = System { title: "PyTorch", spelling: Spelling::Framework };

const BARE_UNSIGNED: Reason = Reason::new(
    "bare-unsigned",
    "{a} and {b} have no common type: PyTorch promotes uint16, uint32 and uint64 to floating point only",
);
const FLOAT8_COMPLEX: Reason =
    Reason::new("float8-complex", "{a} with {b} would be complex, and {a} has no complex type");
const BITS: Reason = Reason::new("bits", "{a} and {b} have no common type: PyTorch's bits types are storage only");
/// torch fails with an internal assertion.
const NO_RULE: Reason =
    Reason::new("no-rule", "{a} and {b} have no common type: PyTorch has no promotion rule for one of them");
const BOOLEAN: Reason = Reason::new("no-boolean", "{a} and {b}: PyTorch does not subtract or negate booleans");
const COMPLEX: Reason = Reason::new("no-complex", "{a} and {b}: the operation takes no complex numbers");
const NOT_FLOAT: Reason = Reason::new("not-float", "{a}: the operation takes floating-point and complex numbers only");
const ALPHA: Reason = Reason::new("alpha", "a fractional alpha with {a}: it takes floating-point operands");

fn refuse<T>(reason: Reason, a: ElementType, b: ElementType) -> Result<T> {
    Err(SYSTEM.refuse(reason, a, b))
}

fn refuse_one<T>(reason: Reason, ty: ElementType) -> Result<T> {
    refuse(reason, ty, ty)
}

type Result<T> = core::result::Result<T, Refusal>;

/// True if torch has the type.
pub fn is_supported(ty: ElementType) -> bool {
    !matches!(
        ty,
        Dynamic
            | String
            | Nf4
            | F4E2M1
            | F8E4M3Ieee
            | F8E4M3B11Fnuz
            | F8E3M4
            | F6E2M3
            | F6E3M2
            | LongDouble
            | CLongDouble
    )
}

fn is_float8(ty: ElementType) -> bool {
    ty.is_float() && ty.bits() == 8 && ty != F4E2M1x2
}

/// True for the unsigned types that torch added late, which do not promote among integers.
fn is_bare_unsigned(ty: ElementType) -> bool {
    ty.kind() == Kind::Unsigned && ty != U8
}

/// True for the types that torch calls integral, except boolean and the sub-byte types.
fn is_integral(ty: ElementType) -> bool {
    ty.is_integer() && ty.bits() >= 8
}

/// True for an integer of any width, or a boolean.
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

/// Applies `torch.promote_types`: returns the common type of two tensors of one category. `dynamic` with any type gives
/// `dynamic`.
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
/// A combination that torch refuses: 8-bit floats, bare unsigned integers, storage types.
pub fn promote_types(a: ElementType, b: ElementType) -> Result<ElementType> {
    lattice(a, b).map(|(ty, _)| ty)
}

fn lattice(a: ElementType, b: ElementType) -> Result<(ElementType, &'static str)> {
    let either = |is: fn(ElementType) -> bool| is(a) || is(b);
    if let Some(ty) = [a, b].into_iter().find(|&ty| ty != Dynamic && !is_supported(ty)) {
        return refuse_one(Reason::UNKNOWN_TYPE, ty);
    }
    if either(|ty| ty == Dynamic) {
        return Ok((Dynamic, "one of the types is not known"));
    }
    if a == b {
        return Ok((a, "the types are equal"));
    }
    if either(|ty| ty.kind() == Kind::Bits) {
        return refuse(BITS, a, b);
    }
    if either(is_float8) {
        return refuse(Reason::FLOAT8, a, b);
    }
    if either(is_bare_unsigned) {
        return if either(ElementType::is_float) { Ok(of_numbers(a, b)) } else { refuse(BARE_UNSIGNED, a, b) };
    }
    if either(|ty| ty == F4E2M1x2 || ty.is_integer() && !is_integral(ty)) {
        return refuse(NO_RULE, a, b);
    }
    if either(|ty| ty.kind() == Kind::Complex) {
        let (real, _) = lattice(a.real(), b.real())?;
        return match to_complex(real) {
            Some(ty) => Ok((ty, "the complex type whose parts hold both")),
            None => refuse(NO_RULE, a, b),
        };
    }
    // Of the unsigned types only u8 remains: the others are refused above.
    Ok(of_numbers(a, b))
}

/// Applies `torch.can_cast`: true if an in-place operation may store a result of type `from` in a tensor of type `to`.
/// Lowering the kind is refused; losing bits is not.
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

/// Applies `torch.result_type` to any number of operands.
///
/// ```
/// use typelift_promote::{ElementType::*, Operand, pytorch::{Options, result_type}};
/// let options = Options::default();
/// assert_eq!(result_type(&[Operand::dimensioned(F16), Operand::zero_dim(F64)], options), Ok(F16));
/// assert_eq!(result_type(&[Operand::dimensioned(I32), Operand::number(F64)], options), Ok(F32));
/// ```
///
/// # Errors
/// A combination that [`promote_types`] refuses, an operand of unknown rank if the answer depends on the rank, or no
/// operands.
pub fn result_type(operands: &[Operand], options: Options) -> Result<ElementType> {
    rules::trace(&options, "result_type", operands, &mut |_| {}).map(|promotion| promotion.common)
}

/// Applies [`result_type`] to operands whose ranks are known.
fn combined_type(operands: impl Iterator<Item = Operand>, options: Options, trace: Trace) -> Result<ElementType> {
    let mut types = [None; 3];
    for operand in operands {
        let ty = operand_type(operand, options, trace);
        let slot = match operand.category {
            Category::Dimensioned | Category::UnknownRank | Category::Weak => 0,
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
    combine(dimensioned, lower, trace)?.ok_or(SYSTEM.refuse(Reason::ARITY, Dynamic, Dynamic))
}

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

/// Combines the types of two categories: the lower one counts only if it has the higher kind.
fn combine(higher: Option<ElementType>, lower: Option<ElementType>, trace: Trace) -> Result<Option<ElementType>> {
    let (Some(high), Some(low)) = (higher, lower) else { return Ok(higher.or(lower)) };
    let [high_is_complex, low_is_complex] = [high, low].map(|ty| ty.kind() == Kind::Complex);
    let answer = if high_is_complex || high.is_float() && !low_is_complex {
        (high, LOWER_CATEGORY)
    } else if high.is_float() {
        let ty = to_complex(high).ok_or(SYSTEM.refuse(FLOAT8_COMPLEX, high, low))?;
        (ty, "the complex type of the higher category's float")
    } else if low_is_complex {
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

/// Positions in which an operation accepts Python numbers.
#[derive(Clone, Copy, PartialEq)]
enum Numbers {
    Anywhere,
    /// Together with a tensor.
    NotAll,
    /// After the first operand.
    NotFirst,
    Nowhere,
}

#[derive(Clone, Copy, PartialEq)]
enum Common {
    /// [`result_type`].
    Promoted,
    /// [`result_type`], with integers and booleans converted to the default type.
    Float,
    /// [`result_type`], with integers and booleans converted to `i64`.
    Sum,
    /// [`result_type`] of operands, none of which is boolean.
    NotBoolean,
    /// [`result_type`] of operands, none of which is complex.
    NotComplex,
    /// [`result_type`], which must be floating point or complex.
    OnlyFloat,
    /// [`result_type`], which must not be an integer, because the factor is fractional.
    Alpha,
    /// `f64`, or `c128` when an operand is complex.
    Double,
    /// All operands must have one type.
    Same,
    /// All operands must have one type, which is not complex.
    SameNotComplex,
    /// All operands must have one type, and dimensions.
    SameDimensioned,
    /// [`result_type`] of operands that have dimensions.
    Dimensioned,
    /// [`result_type`] of operands of one rank.
    OneRank,
    /// [`result_type`], except that bounds that are numbers do not change a floating-point type.
    Clamp,
    /// The weight must have the type of the first operand, unless it has no dimensions.
    LerpWeight,
    /// `a * 2**b`, where 2 is a zero-dimensional tensor of the type of `a`, or a number if that type is an integer.
    Ldexp,
}

#[derive(Clone, Copy, PartialEq)]
enum Output {
    Common,
    /// The type of a complex number's parts.
    Real,
    /// The result is stored in the first operand.
    First,
    /// Booleans are stored in the first operand; every type holds them.
    FirstBoolean,
}

#[derive(Clone, Copy)]
struct Rule(Numbers, Common, Output);

operations! {
    const ROWS: Rule;
    "result_type": 1..MANY Other -> Type, Rule(Numbers::Anywhere, Common::Promoted, Output::Common);
    "add" "add_alpha2" "mul" "floor_divide" "div_floor" "div_trunc" "where": 2..2 Broadcast -> Type, Rule(Numbers::Anywhere, Common::Promoted, Output::Common);
    "sub": 2..2 Broadcast -> Type, Rule(Numbers::Anywhere, Common::NotBoolean, Output::Common);
    "rsub": 2..2 Broadcast -> Type, Rule(Numbers::NotFirst, Common::NotBoolean, Output::Common);
    "div" "true_divide": 2..2 Broadcast -> Type, Rule(Numbers::Anywhere, Common::Float, Output::Common);
    "add_alpha_float": 2..2 Broadcast -> Type, Rule(Numbers::Anywhere, Common::Alpha, Output::Common);
    "remainder" "pow" "bitwise_and" "bitwise_or" "bitwise_xor" "bitwise_left_shift" "bitwise_right_shift": 2..2 Broadcast -> Type, Rule(Numbers::NotAll, Common::Promoted, Output::Common);
    "fmod": 2..2 Broadcast -> Type, Rule(Numbers::NotFirst, Common::Promoted, Output::Common);
    "float_power": 2..2 Broadcast -> Type, Rule(Numbers::NotAll, Common::Double, Output::Common);
    "xlogy": 2..2 Broadcast -> Type, Rule(Numbers::NotAll, Common::Float, Output::Common);
    "copysign": 2..2 Broadcast -> Type, Rule(Numbers::NotFirst, Common::Float, Output::Common);
    "atan2": 2..2 Broadcast -> Type, Rule(Numbers::Nowhere, Common::Float, Output::Common);
    "logaddexp" "logaddexp2" "hypot" "nextafter" "gcd" "lcm": 2..2 Broadcast -> Type, Rule(Numbers::Nowhere, Common::Promoted, Output::Common);
    "ldexp": 2..2 Broadcast -> Type, Rule(Numbers::Nowhere, Common::Ldexp, Output::Common);
    "maximum" "minimum" "fmax" "fmin": 2..2 Broadcast -> Type, Rule(Numbers::Nowhere, Common::NotComplex, Output::Common);
    "heaviside": 2..2 Broadcast -> Type, Rule(Numbers::Nowhere, Common::SameNotComplex, Output::Common);
    "eq" "ne" "lt" "le" "gt" "ge": 2..2 Broadcast -> Boolean, Rule(Numbers::NotFirst, Common::Promoted, Output::Common);
    "isclose": 2..2 Broadcast -> Boolean, Rule(Numbers::Nowhere, Common::Same, Output::Common);
    "logical_and" "logical_or" "logical_xor": 2..2 Broadcast -> Boolean, Rule(Numbers::Nowhere, Common::Promoted, Output::Common);
    "addcmul": 2..3 Broadcast -> Type, Rule(Numbers::Nowhere, Common::Promoted, Output::Common);
    "clamp_min" "clamp_max": 2..2 Broadcast -> Type, Rule(Numbers::NotFirst, Common::Clamp, Output::Common);
    "clamp": 2..3 Broadcast -> Type, Rule(Numbers::NotFirst, Common::Clamp, Output::Common);
    "lerp": 2..2 Broadcast -> Type, Rule(Numbers::Nowhere, Common::Same, Output::Common);
    "lerp_tensor_weight": 2..2 Broadcast -> Type, Rule(Numbers::NotFirst, Common::LerpWeight, Output::Common);
    "matmul": 2..2 Other -> Type, Rule(Numbers::Nowhere, Common::SameDimensioned, Output::Common);
    "mm": 2..2 Other -> Type, Rule(Numbers::Nowhere, Common::Same, Output::Common);
    "cat": 1..MANY Other -> Type, Rule(Numbers::Nowhere, Common::Dimensioned, Output::Common);
    "stack": 1..MANY Other -> Type, Rule(Numbers::Nowhere, Common::OneRank, Output::Common);
    "add_" "mul_" "pow_" "floor_divide_" "remainder_" "fmod_" "bitwise_and_" "bitwise_or_" "bitwise_xor_": 2..2 InPlace -> Type, Rule(Numbers::NotFirst, Common::Promoted, Output::First);
    "sub_": 2..2 InPlace -> Type, Rule(Numbers::NotFirst, Common::NotBoolean, Output::First);
    "div_" "true_divide_" "copysign_": 2..2 InPlace -> Type, Rule(Numbers::NotFirst, Common::Float, Output::First);
    "atan2_": 2..2 InPlace -> Type, Rule(Numbers::Nowhere, Common::Float, Output::First);
    "eq_" "ne_" "lt_" "le_" "gt_" "ge_": 2..2 InPlace -> Type, Rule(Numbers::NotFirst, Common::Promoted, Output::FirstBoolean);
    "logical_and_" "logical_or_" "logical_xor_": 2..2 InPlace -> Type, Rule(Numbers::Nowhere, Common::Promoted, Output::FirstBoolean);
    "operator +" "operator *" "operator //" "operator %" "operator **" "operator &" "operator |" "operator ^"
        "operator <<" "operator >>": 2..2 Broadcast -> Type, Rule(Numbers::NotAll, Common::Promoted, Output::Common);
    "operator -": 2..2 Broadcast -> Type, Rule(Numbers::NotAll, Common::NotBoolean, Output::Common);
    "operator /": 2..2 Broadcast -> Type, Rule(Numbers::NotAll, Common::Float, Output::Common);
    "operator ==" "operator !=" "operator <" "operator <=" "operator >" "operator >=": 2..2 Broadcast -> Boolean, Rule(Numbers::NotAll, Common::Promoted, Output::Common);
    "acos" "acosh" "asin" "asinh" "atan" "atanh" "cos" "cosh" "erf" "erfc" "exp" "exp2" "expm1" "log" "log10" "log1p"
        "log2" "reciprocal" "rsqrt" "sigmoid" "sin" "sinh" "sqrt" "tan" "tanh": 1..1 Broadcast -> Type, Rule(Numbers::Nowhere, Common::Float, Output::Common);
    "acos_" "acosh_" "asin_" "asinh_" "atan_" "atanh_" "cos_" "cosh_" "erf_" "erfc_" "exp_" "exp2_" "expm1_" "log_" "log10_" "log1p_"
        "log2_" "reciprocal_" "rsqrt_" "sigmoid_" "sin_" "sinh_" "sqrt_" "tan_" "tanh_": 1..1 InPlace -> Type, Rule(Numbers::Nowhere, Common::Float, Output::First);
    "neg_": 1..1 InPlace -> Type, Rule(Numbers::Nowhere, Common::NotBoolean, Output::First);
    "ceil_" "floor_" "trunc_": 1..1 InPlace -> Type, Rule(Numbers::Nowhere, Common::NotComplex, Output::First);
    "round_": 1..1 InPlace -> Type, Rule(Numbers::Nowhere, Common::Promoted, Output::First);
    "angle": 1..1 Broadcast -> Type, Rule(Numbers::Nowhere, Common::Float, Output::Real);
    "abs": 1..1 Broadcast -> Type, Rule(Numbers::Nowhere, Common::Promoted, Output::Real);
    "neg": 1..1 Broadcast -> Type, Rule(Numbers::Nowhere, Common::NotBoolean, Output::Common);
    "ceil" "floor" "trunc": 1..1 Broadcast -> Type, Rule(Numbers::Nowhere, Common::NotComplex, Output::Common);
    "round": 1..1 Broadcast -> Type, Rule(Numbers::Nowhere, Common::Promoted, Output::Common);
    "cumprod" "cumsum" "prod" "sum": 1..1 Other -> Type, Rule(Numbers::Nowhere, Common::Sum, Output::Common);
    "mean": 1..1 Other -> Type, Rule(Numbers::Nowhere, Common::OnlyFloat, Output::Common);
}

// Several names are constructed. `div_floor` and `div_trunc` are `div` with a rounding mode. `add_alpha2` and
// `add_alpha_float` are `add` with an integer and a fractional `alpha`. `lerp_tensor_weight` is `lerp(a, a, b)`. A
// trailing underscore means in place.

const DEFAULT_DTYPE: Setting = Setting {
    name: "default-dtype",
    value: Some("TYPE"),
    help: "pytorch: what torch.set_default_dtype has set, one of f16, bf16, f32, f64 [default: f32]",
    is_laxer: false,
};

impl Rules for Options {
    fn name(&self) -> &'static str {
        "pytorch"
    }

    fn facts(&self) -> Facts {
        let facts = Facts::new(SYSTEM, is_supported);
        let settings = &[DEFAULT_DTYPE];
        Facts {
            default_float: self.default_dtype,
            takes_numbers_for_truth: true,
            is_for_models: true,
            settings,
            ..facts
        }
    }

    fn operation(&self, at: usize) -> Option<&'static Operation> {
        ROWS.get(at).map(|row| &row.operation)
    }

    fn decide(&self, at: usize, operands: Operands<'_>, trace: Trace<'_>) -> Result<Promotion> {
        let Some(row) = ROWS.get(at) else { return refuse_one(Reason::UNKNOWN_OPERATION, Dynamic) };
        let Rule(numbers, rule, output) = row.rule;
        numbers.check(operands)?;
        row.rule.check_ranks(operands)?;
        let common = rule.of(operands, *self, trace)?;
        let result = match row.operation.is_test {
            true => change(common, Boolean, "the operation gives booleans", trace),
            false => output.of(common, operands, trace)?,
        };
        Ok(Promotion::new(common, result))
    }

    fn operation_for(&self, promoted_as: PromotedAs) -> &'static str {
        match promoted_as {
            PromotedAs::Division => "div",
            PromotedAs::Difference => "sub",
            _ => "result_type",
        }
    }

    fn works_on_floats(&self, promoted_as: PromotedAs, ty: ElementType) -> bool {
        promoted_as == PromotedAs::FloatFunction && is_integral(ty)
            || promoted_as == PromotedAs::Division && ty == Boolean
    }

    /// PyTorch stores a result of the one type in a tensor of the other.
    fn may_convert(&self, from: ElementType, to: ElementType) -> bool {
        can_cast(from, to)
    }

    fn set(&mut self, name: &str, value: &str) -> bool {
        let ty = ElementType::from_framework_name(value).filter(|ty| matches!(ty, F16 | Bf16 | F32 | F64));
        self.default_dtype = ty.unwrap_or(self.default_dtype);
        name == "default-dtype" && ty.is_some()
    }
}

impl Numbers {
    fn check(self, operands: Operands) -> Result<()> {
        let takes = match self {
            Self::Anywhere => true,
            Self::NotAll => operands.any(|operand| !operand.is_number()),
            Self::NotFirst => !operands.first().is_number(),
            Self::Nowhere => !operands.any(Operand::is_number),
        };
        if takes { Ok(()) } else { refuse_one(Reason::NUMBER, operands.first().element_type) }
    }
}

impl Rule {
    fn check_ranks(&self, operands: Operands) -> Result<()> {
        let first = operands.first();
        let has = |category| operands.any(|operand| operand.category == category);
        let fits = match (self.1, self.2) {
            // Booleans are refused before ranks are checked.
            (Common::NotBoolean, _) if operands.any(|operand| operand.element_type == Boolean) => true,
            (_, Output::First | Output::FirstBoolean) => {
                first.category == Category::Dimensioned || !has(Category::Dimensioned)
            }
            (Common::Dimensioned | Common::SameDimensioned, _) => !has(Category::ZeroDim),
            (Common::OneRank, _) => !has(Category::ZeroDim) || !has(Category::Dimensioned),
            _ => true,
        };
        if fits { Ok(()) } else { refuse(Reason::RANK, first.element_type, operands.last().element_type) }
    }
}

fn is_complex(operand: Operand) -> bool {
    operand.element_type.kind() == Kind::Complex
}

impl Common {
    fn of(self, operands: Operands, options: Options, trace: Trace) -> Result<ElementType> {
        let (first, last) = (operands.first(), operands.last());
        let complex = operands.find(is_complex);
        if let (Self::NotComplex | Self::SameNotComplex, Some(complex)) = (self, complex) {
            return refuse(COMPLEX, first.element_type, complex.element_type);
        }
        match self {
            Self::Same | Self::SameDimensioned | Self::SameNotComplex => same_type(operands),
            Self::Promoted | Self::NotComplex | Self::Dimensioned | Self::OneRank => {
                combined_type(operands.iter(), options, trace)
            }
            Self::NotBoolean => match operands.find(|operand| operand.element_type == Boolean) {
                Some(boolean) => {
                    let other = if first == boolean { last } else { boolean };
                    refuse(BOOLEAN, first.element_type, other.element_type)
                }
                None => combined_type(operands.iter(), options, trace),
            },
            Self::Float | Self::Sum | Self::OnlyFloat | Self::Alpha => {
                let ty = combined_type(operands.iter(), options, trace)?;
                self.of_whole(ty, options, trace)
            }
            Self::Double => {
                let ty = if complex.is_some() { C128 } else { F64 };
                let rule = "the operation works in double precision";
                Ok(meet((ty, rule), first.element_type, last.element_type, trace))
            }
            Self::Clamp => clamp(operands, options, trace),
            Self::LerpWeight => match last.category {
                Category::ZeroDim => combined_type(operands.iter(), options, trace),
                Category::Dimensioned => same_type(operands),
                _ => Ok(first.element_type),
            },
            Self::Ldexp => ldexp(first, last, options, trace),
        }
    }

    fn of_whole(self, ty: ElementType, options: Options, trace: Trace) -> Result<ElementType> {
        match self {
            _ if !is_whole(ty) => Ok(ty),
            Self::Float => Ok(change(ty, options.default_dtype, WORKS_ON_FLOATS, trace)),
            Self::Sum => Ok(change(ty, I64, "integers are summed as i64", trace)),
            Self::Alpha => refuse_one(ALPHA, ty),
            _ => refuse_one(NOT_FLOAT, ty),
        }
    }
}

fn same_type(operands: Operands) -> Result<ElementType> {
    let first = operands.first().element_type;
    match operands.find(|operand| operand.element_type != first) {
        Some(other) => refuse(Reason::SAME_TYPE, first, other.element_type),
        None => Ok(first),
    }
}

fn clamp(operands: Operands, options: Options, trace: Trace) -> Result<ElementType> {
    let first = operands.first();
    let only_numbers = operands.iter().skip(1).all(Operand::is_number);
    if only_numbers && first.element_type.is_float() {
        return Ok(first.element_type);
    }
    let refuse_complex = || refuse(COMPLEX, first.element_type, operands.last().element_type);
    if is_complex(first) {
        return refuse_complex();
    }
    let ty = combined_type(operands.iter(), options, trace)?;
    if only_numbers && ty.kind() == Kind::Complex { refuse_complex() } else { Ok(ty) }
}

fn ldexp(base: Operand, exponent: Operand, options: Options, trace: Trace) -> Result<ElementType> {
    let (a, b) = (base.element_type, exponent.element_type);
    let mut power = exponent;
    if is_whole(a) || !is_whole(b) || is_complex(base) || is_complex(exponent) {
        let two = if is_whole(a) { Operand::number(F64) } else { Operand::zero_dim(a) };
        power.element_type = combined_type([two, exponent].into_iter(), options, trace)?;
    }
    combined_type([base, power].into_iter(), options, trace)
}

impl Output {
    fn of(self, common: ElementType, operands: Operands, trace: Trace) -> Result<ElementType> {
        let first = operands.first().element_type;
        Ok(match self {
            Self::Common => common,
            Self::FirstBoolean => change(common, first, "the first operand stores whether it is true", trace),
            Self::Real if operands.any(is_complex) => {
                change(common, common.real(), "the operation gives a real number", trace)
            }
            Self::Real => common,
            Self::First if can_cast(common, first) => {
                change(common, first, "the result is stored in the first operand", trace)
            }
            Self::First => return refuse(Reason::CAST, first, common),
        })
    }
}
