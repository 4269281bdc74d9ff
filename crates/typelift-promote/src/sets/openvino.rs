//! The rule of OpenVINO's `ConvertPromoteTypes`-14, as the package applies it.
//!
//! Float outranks integer, and integer outranks boolean. Within a category the wider type wins. If neither type holds
//! the other, the result is the next wider type. A result that loses more than the specification allows needs
//! [`promote_unsafe`](Options::promote_unsafe). The order of the operands never matters.

use core::fmt;

use crate::derivation::{Trace, change};
use crate::operand::Operands;
use crate::operation::{MANY, operations};
use crate::rules::in_turn;
use crate::{
    Category, ElementType, Facts, Kind, Loss, Operand, Operation, PromotedAs, Promotion, Reason, Refusal, Rules,
    Setting, Spelling, Step, System, fidelity,
};

/// Attributes of `ConvertPromoteTypes`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Options {
    /// Allow results that cannot hold every value of both operands. Default `false`.
    pub promote_unsafe: bool,
    /// Let the type of a dimensioned operand win over that of a scalar of the same category. Default `false`.
    pub pytorch_scalar_promotion: bool,
    /// The result of `u64` with a signed integer. Default `f32`.
    pub u64_integer_promotion_target: ElementType,
}

impl Default for Options {
    fn default() -> Self {
        Self { promote_unsafe: false, pytorch_scalar_promotion: false, u64_integer_promotion_target: ElementType::F32 }
    }
}

macro_rules! unsafe_only {
    ($code:literal, $because:literal) => {
        Reason::new($code, concat!("{a} and {b} have no common type under OpenVINO's safe rules: ", $because))
    };
}

const UNSUPPORTED_LEFT: Reason =
    Reason::new("unsupported-type", "{a} and {b} have no common type: ConvertPromoteTypes does not take {a}");
const UNSUPPORTED_RIGHT: Reason =
    Reason::new("unsupported-type", "{a} and {b} have no common type: ConvertPromoteTypes does not take {b}");
const NO_COMMON_FLOAT: Reason = unsafe_only!("no-common-float", "neither holds the values of the other");
const INTEGER_TO_FLOAT: Reason =
    unsafe_only!("integer-to-float", "the floating-point type has less than twice the bits of the integer");
const UNSIGNED_TO_SIGNED: Reason =
    unsafe_only!("unsigned-to-signed", "no signed type of the wider one's width holds both");
const WIDE_SCALAR: Reason =
    unsafe_only!("wide-scalar", "the scalar's type is too wide for the type of the other input");
const NUMBER: Reason = Reason::new("not-a-tensor", "OpenVINO's rules have tensors only, no Python numbers");

const SYSTEM: System = System { title: "OpenVINO", spelling: Spelling::OpenVino };

/// True if `ConvertPromoteTypes` accepts the type.
pub fn is_supported(ty: ElementType) -> bool {
    use ElementType::*;
    matches!(
        ty,
        Dynamic
            | Boolean
            | U1
            | U4
            | U8
            | U16
            | U32
            | U64
            | I4
            | I8
            | I16
            | I32
            | I64
            | F8E4M3
            | F8E5M2
            | Bf16
            | F16
            | F32
            | F64
    )
}

/// Returns the type of both outputs of `ConvertPromoteTypes`.
///
/// `dynamic` with any supported type gives `dynamic`. Two different types of one category also give `dynamic` under
/// `pytorch_scalar_promotion` if a rank is unknown.
///
/// ```
/// use typelift_promote::{ElementType::*, Operand, openvino::{Options, promote}};
/// let safe = Options::default();
/// assert_eq!(promote(Operand::dimensioned(I16), Operand::dimensioned(U8), &safe), Ok(I16));
/// assert_eq!(promote(Operand::dimensioned(F16), Operand::dimensioned(I16), &safe).unwrap_err().code(), "integer-to-float");
/// ```
///
/// # Errors
/// A combination that OpenVINO 2026.4.1 refuses, with its reason.
pub fn promote(a: Operand, b: Operand, options: &Options) -> Result<ElementType, Refusal> {
    trace(a, b, options, &mut |_| {})
}

/// Does the same as [`promote`], and passes the deciding step to `trace`. A refused promotion is traced as
/// `promote_unsafe` would decide it.
///
/// # Errors
/// The errors of [`promote`].
pub fn trace(a: Operand, b: Operand, options: &Options, trace: &mut dyn FnMut(Step)) -> Result<ElementType, Refusal> {
    let (x, y) = (a.element_type, b.element_type);
    if !is_supported(x) {
        return Err(SYSTEM.refuse(UNSUPPORTED_LEFT, x, y));
    }
    if !is_supported(y) {
        return Err(SYSTEM.refuse(UNSUPPORTED_RIGHT, x, y));
    }
    let Answer { result, rule, objection } = unrestricted(a, b, options);
    trace(Step { from: x, with: Some(y), to: result, rule });
    match objection {
        Some(reason) if !options.promote_unsafe => Err(SYSTEM.refuse(reason, x, y)),
        _ => Ok(result),
    }
}

/// Change after which [`promote`] accepts the operands.
///
/// ```
/// use typelift_promote::{ElementType::*, Operand, openvino::{Options, suggestion}};
/// assert_eq!(
///     suggestion(Operand::dimensioned(U64), Operand::dimensioned(I32), &Options::default()).to_string(),
///     "promote_unsafe=\"true\" allows it; the result would be f32 (u64_integer_promotion_target)"
/// );
/// ```
pub fn suggestion(a: Operand, b: Operand, options: &Options) -> impl fmt::Display {
    let types = [a.element_type, b.element_type];
    let Answer { result, objection, .. } = unrestricted(a, b, options);
    match types.into_iter().find(|&ty| !is_supported(ty)) {
        Some(ty) => Advice::Convert(ty),
        None if objection == Some(UNSIGNED_TO_SIGNED) && types.contains(&ElementType::U64) => {
            Advice::AllowTarget(result)
        }
        None => Advice::Allow(result),
    }
}

enum Advice {
    Convert(ElementType),
    Allow(ElementType),
    /// Allow this result, which an attribute selects.
    AllowTarget(ElementType),
}

impl fmt::Display for Advice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Convert(ty) => write!(f, "convert the {ty} input to a type that promotion takes first"),
            Self::Allow(result) => write!(f, "promote_unsafe=\"true\" allows it; the result would be {result}"),
            Self::AllowTarget(result) => write!(f, "{} (u64_integer_promotion_target)", Self::Allow(*result)),
        }
    }
}

operations! {
    /// The operations that a `ConvertPromoteTypes` can precede. All promote alike. They differ in broadcasting (the
    /// attribute `auto_broadcast`) and in whether they give booleans. The types that each of them accepts are not checked
    /// here.
    const ROWS: ();
    "result_type" "concat": 1..MANY Other -> Type, ();
    "add_pdpd": 2..2 Pdpd -> Type, ();
    "add_none": 2..2 Equal -> Type, ();
    "add" "subtract" "multiply" "divide" "power" "mod" "floor_mod" "maximum" "minimum" "squared_difference" "select":
        2..2 Broadcast -> Type, ();
    "equal" "not_equal" "less" "less_equal" "greater" "greater_equal": 2..2 Broadcast -> Boolean, ();
}

impl Options {
    pub(super) const fn with(promote_unsafe: bool, pytorch_scalar_promotion: bool) -> Self {
        Self { promote_unsafe, pytorch_scalar_promotion, u64_integer_promotion_target: ElementType::F32 }
    }
}

const SETTINGS: &[Setting] = &[
    Setting {
        name: "promote-unsafe",
        value: None,
        help: "openvino: also promote to types that cannot hold every value",
        is_laxer: true,
    },
    Setting {
        name: "pytorch-scalar-promotion",
        value: None,
        help: "openvino: let the type of an input with dims win over that of a scalar",
        is_laxer: false,
    },
    Setting {
        name: "u64-integer-promotion-target",
        value: Some("TYPE"),
        help: "openvino: the common type of u64 and a signed integer [default: f32]",
        is_laxer: false,
    },
];

impl Rules for Options {
    fn name(&self) -> &'static str {
        "openvino"
    }

    /// A type is `dynamic` if it depends on an unknown rank.
    fn facts(&self) -> Facts {
        let categories: &[_] = match self.pytorch_scalar_promotion {
            true => &[Category::Dimensioned, Category::ZeroDim],
            false => &[Category::Dimensioned],
        };
        let facts = Facts::new(SYSTEM, |ty| ty.port_name().is_some());
        Facts { categories, goes_by_rank: false, is_for_models: true, settings: SETTINGS, ..facts }
    }

    fn operation_for(&self, _: PromotedAs) -> &'static str {
        "add"
    }

    fn operation(&self, at: usize) -> Option<&'static Operation> {
        ROWS.get(at).map(|row| &row.operation)
    }

    fn decide(&self, at: usize, operands: Operands<'_>, trace: Trace<'_>) -> Result<Promotion, Refusal> {
        if let Some(number) = operands.find(Operand::is_number) {
            return Err(SYSTEM.refuse(NUMBER, number.element_type, number.element_type));
        }
        let mut meet = |a: Operand, b: Operand| self::trace(a, b, self, trace);
        let common = match operands.len() {
            1 => meet(operands.first(), operands.first())?,
            _ => in_turn(operands.iter(), false, meet)?,
        };
        let is_test = ROWS.get(at).is_some_and(|row| row.operation.is_test);
        let result =
            if is_test { change(common, ElementType::Boolean, "the operation gives booleans", trace) } else { common };
        Ok(Promotion::new(common, result))
    }

    /// Types that `ConvertPromoteTypes` does not accept are refused next to `dynamic` too.
    fn decide_dynamic(&self, operation: &Operation, operands: &[Operand]) -> Result<Promotion, Refusal> {
        let at = ROWS.iter().position(|row| row.operation == *operation).unwrap_or(0);
        self.decide(at, Operands::new(operands, None), &mut |_| {})
    }

    fn may_convert(&self, from: ElementType, to: ElementType) -> bool {
        fidelity(from, to).is_some_and(|fidelity| self.promote_unsafe || fidelity.is_exact())
    }

    fn set(&mut self, name: &str, value: &str) -> bool {
        match name {
            "promote-unsafe" => self.promote_unsafe = true,
            "pytorch-scalar-promotion" => self.pytorch_scalar_promotion = true,
            "u64-integer-promotion-target" => match ElementType::from_name(value) {
                Some(ty) => self.u64_integer_promotion_target = ty,
                None => return false,
            },
            _ => return false,
        }
        true
    }
}

/// Result of `promote_unsafe`, its rule, and the objection of the safe rules.
struct Answer {
    result: ElementType,
    rule: &'static str,
    objection: Option<Reason>,
}

impl Answer {
    fn new(result: ElementType, rule: &'static str) -> Self {
        Self { result, rule, objection: None }
    }

    fn unless(self, allowed: bool, reason: Reason) -> Self {
        if allowed { self } else { Self { objection: Some(reason), ..self } }
    }
}

const HIGHER_CATEGORY: &str = "floating point outranks integer, integer outranks boolean";

fn unrestricted(a: Operand, b: Operand, options: &Options) -> Answer {
    let (x, y) = (a.element_type, b.element_type);
    if x == y {
        return Answer::new(x, "the types are equal");
    }
    match (x.kind(), y.kind()) {
        (Kind::Dynamic, _) | (_, Kind::Dynamic) => Answer::new(ElementType::Dynamic, "one of the types is not known"),
        (Kind::Boolean, _) => Answer::new(y, HIGHER_CATEGORY),
        (_, Kind::Boolean) => Answer::new(x, HIGHER_CATEGORY),
        (Kind::Float, Kind::Float) => by_scalar(a, b, options).unwrap_or_else(|| floats(x, y)),
        (Kind::Float, _) => float_and_integer(x, y),
        (_, Kind::Float) => float_and_integer(y, x),
        _ => by_scalar(a, b, options).unwrap_or_else(|| integers(x, y, options)),
    }
}

/// Decides by `pytorch_scalar_promotion` between two types of one category; `None` leaves the decision to the ordinary
/// rule.
fn by_scalar(a: Operand, b: Operand, options: &Options) -> Option<Answer> {
    use Category::{Dimensioned, Number, UnknownRank, Weak, ZeroDim};
    if !options.pytorch_scalar_promotion {
        return None;
    }
    let (dimensioned, scalar) = match (a.category, b.category) {
        (UnknownRank | Weak, _) | (_, UnknownRank | Weak) => {
            let rule = "pytorch_scalar_promotion goes by ranks, and one is not known";
            return Some(Answer::new(ElementType::Dynamic, rule));
        }
        (Dimensioned, ZeroDim | Number) => (a.element_type, b.element_type),
        (ZeroDim | Number, Dimensioned) => (b.element_type, a.element_type),
        _ => return None,
    };
    // An unsigned scalar may have twice the bits of the signed type, not half of them: OpenVINO's factor is on the
    // wrong side. See `Quirk`.
    let bits = dimensioned.bits() * if is_unsigned_into_signed(scalar, dimensioned) { 2 } else { 1 };
    let fits = bits >= scalar.bits() && !is_unsigned_into_signed(dimensioned, scalar);
    let answer = Answer::new(dimensioned, "pytorch_scalar_promotion: the scalar takes the type of the other input");
    Some(answer.unless(fits, WIDE_SCALAR))
}

fn is_unsigned_into_signed(from: ElementType, to: ElementType) -> bool {
    (from.kind(), to.kind()) == (Kind::Unsigned, Kind::Signed)
}

fn wider(x: ElementType, y: ElementType) -> ElementType {
    if x.bits() > y.bits() { x } else { y }
}

fn floats(x: ElementType, y: ElementType) -> Answer {
    if x.bits() != y.bits() {
        return Answer::new(wider(x, y), "the wider float");
    }
    // The pairs of equal width are f8e4m3 with f8e5m2, and bf16 with f16.
    let result = if x.bits() == 8 { ElementType::F16 } else { ElementType::F32 };
    Answer::new(result, "neither float holds the other").unless(false, NO_COMMON_FLOAT)
}

fn float_and_integer(float: ElementType, integer: ElementType) -> Answer {
    Answer::new(float, HIGHER_CATEGORY).unless(float.bits() >= 2 * integer.bits(), INTEGER_TO_FLOAT)
}

fn integers(x: ElementType, y: ElementType, options: &Options) -> Answer {
    let (unsigned, signed) = match (x.kind(), y.kind()) {
        (Kind::Unsigned, Kind::Signed) => (x, y),
        (Kind::Signed, Kind::Unsigned) => (y, x),
        _ => return Answer::new(wider(x, y), "the wider integer"),
    };
    if signed.bits() > unsigned.bits() {
        return Answer::new(signed, "the signed integer holds the unsigned one");
    }
    let (result, rule) = match unsigned.bits() {
        ..=4 => (ElementType::I8, NEXT_SIGNED),
        8 => (ElementType::I16, NEXT_SIGNED),
        16 => (ElementType::I32, NEXT_SIGNED),
        32 => (ElementType::I64, NEXT_SIGNED),
        _ => (options.u64_integer_promotion_target, "u64_integer_promotion_target, where u64 meets a signed integer"),
    };
    Answer::new(result, rule).unless(false, UNSIGNED_TO_SIGNED)
}

const NEXT_SIGNED: &str = "the signed integer of twice the unsigned one's bits holds both";

/// Result of the safe rules that can lose values, against the text of the specification. It is worth a warning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Quirk {
    /// The scalar's type has values that the type of the dimensioned operand cannot hold. The result has the latter
    /// type.
    ScalarOutOfRange {
        /// Type of the scalar.
        scalar: ElementType,
        /// Type of the other operand and of the result.
        result: ElementType,
    },
    /// The result has the range of the scalar's type, but a lower precision.
    ScalarRounds {
        /// Type of the scalar.
        scalar: ElementType,
        /// Type of the other operand and of the result.
        result: ElementType,
    },
}

impl fmt::Display for Quirk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ScalarOutOfRange { scalar, result } => {
                write!(
                    f,
                    "pytorch_scalar_promotion makes the {scalar} scalar {result}, which cannot hold all its values"
                )
            }
            Self::ScalarRounds { scalar, result } => {
                write!(f, "pytorch_scalar_promotion makes the {scalar} scalar {result}, which has less precision")
            }
        }
    }
}

/// Returns the quirk of a promotion that OpenVINO's safe rules allow although it can lose values. The cause is a scalar
/// under `pytorch_scalar_promotion`, such as `u16` that becomes `i8`. `None` for every other promotion, for refused
/// ones, and under `promote_unsafe`.
///
/// ```
/// use typelift_promote::{ElementType::*, Operand, openvino::{Options, Quirk, promote, quirk}};
/// let options = Options { pytorch_scalar_promotion: true, ..Options::default() };
/// let (a, b) = (Operand::dimensioned(I8), Operand::zero_dim(U16));
/// assert_eq!(promote(a, b, &options), Ok(I8));
/// assert_eq!(quirk(a, b, &options), Some(Quirk::ScalarOutOfRange { scalar: U16, result: I8 }));
/// ```
pub fn quirk(a: Operand, b: Operand, options: &Options) -> Option<Quirk> {
    if options.promote_unsafe {
        return None;
    }
    let result = promote(a, b, options).ok()?;
    let scalar = if a.category == Category::ZeroDim { a.element_type } else { b.element_type };
    let one_category = result.is_float() && scalar.is_float() || result.is_integer() && scalar.is_integer();
    by_scalar(a, b, options).filter(|_| one_category)?;
    let fidelity = fidelity(scalar, result)?;
    if fidelity.can(Loss::Wraps) || fidelity.can(Loss::Overflows) {
        Some(Quirk::ScalarOutOfRange { scalar, result })
    } else {
        fidelity.can(Loss::Rounds).then_some(Quirk::ScalarRounds { scalar, result })
    }
}
