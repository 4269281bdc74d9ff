//! NumPy's rules, as numpy 2.4 applies them with the types of ml_dtypes 0.6.
//!
//! A function first looks for the common type of its operands and for a loop over that type. If either is missing, it
//! uses its first loop to which every operand can be cast safely. Python numbers count by their kind alone (NEP 50),
//! and rank does not matter.

use crate::derivation::{Trace, change, meet};
use crate::operand::Operands;
use crate::operation::{MANY, operations};
use crate::{
    Category, ElementType, ElementType::*, Facts, Kind, Literal, Operand, Operation, Promotion, Reason, Refusal, Rules,
    Spelling, System,
};

/// NumPy, which has no settings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct NumPy;

const SYSTEM: System = System { title: "NumPy", spelling: Spelling::MlDtypes };

pub(super) const NO_COMMON: Reason =
    Reason::new("no-common-type", "{a} and {b} have no common type under NumPy's rules");
pub(super) const NO_LOOP: Reason =
    Reason::new("no-loop", "{a} and {b}: the function has no loop for types to which both can be cast safely");
pub(super) const BOOLEAN: Reason = Reason::new("no-boolean", "{a} and {b}: NumPy does not subtract booleans");
const BOUNDS: Reason = Reason::new(
    "out-of-bounds",
    "the Python integer does not fit {b}: NumPy raises OverflowError; NumPy 1 widened the type",
);
const ARRAYS: Reason = Reason::new("no-numbers", "{a} and {b}: the function takes arrays, and no Python numbers");

type Result<T> = core::result::Result<T, Refusal>;

/// The types of NumPy itself in the order of their numbers, then those of ml_dtypes in the order of registration.
const TYPES: [ElementType; 32] = [
    Boolean,
    I8,
    U8,
    I16,
    U16,
    I32,
    U32,
    I64,
    U64,
    F32,
    F64,
    LongDouble,
    C64,
    C128,
    CLongDouble,
    F16,
    F8E3M4,
    F8E4M3Ieee,
    F8E4M3B11Fnuz,
    F8E4M3,
    F8E4M3Fnuz,
    F8E5M2Fnuz,
    F6E2M3,
    F6E3M2,
    F4E2M1,
    F8E8M0,
    F8E5M2,
    Bf16,
    I2,
    I4,
    U2,
    U4,
];
const BUILT_IN: usize = 16;

fn number_of(ty: ElementType) -> usize {
    TYPES.iter().position(|&known| known == ty).unwrap_or(TYPES.len())
}

pub(super) fn is_built_in(ty: ElementType) -> bool {
    number_of(ty) < BUILT_IN
}

/// True for types of ml_dtypes that NumPy treats as interchangeable, because they share the letter of their kind.
fn is_interchangeable(ty: ElementType) -> bool {
    !is_built_in(ty) && !matches!(ty, Bf16 | F8E5M2 | F8E8M0)
}

/// Applies `np.can_cast` with the rule `safe`.
///
/// ```
/// use typelift_promote::{ElementType::*, numpy::can_cast};
/// assert!(can_cast(I32, F64) && !can_cast(I32, F32));
/// assert!(can_cast(U8, Bf16) && !can_cast(F16, Bf16));
/// ```
pub fn can_cast(from: ElementType, to: ElementType) -> bool {
    if from == to || from == Boolean {
        return true;
    }
    match (is_built_in(from), is_built_in(to)) {
        (true, true) => holds(to, from),
        (true, false) => matches!(from, U8 | I8) && !to.is_integer(),
        (false, true) if from.is_integer() => {
            to != Boolean && (from.kind(), to.kind()) != (Kind::Signed, Kind::Unsigned)
        }
        (false, true) => matches!(to, F32 | F64 | LongDouble | C64 | C128 | CLongDouble),
        (false, false) => {
            let is_apart = [(from, to), (to, from)].iter().any(|pair| [(F6E2M3, I4), (F6E2M3, U4)].contains(pair));
            let integers = from.is_integer() && to.is_integer();
            is_interchangeable(from)
                && is_interchangeable(to)
                && !is_apart
                && (!integers || from.kind() == to.kind() && from.bits() < to.bits())
        }
    }
}

/// True if a type of NumPy itself holds all values of another. For floats only the significand counts.
fn holds(to: ElementType, from: ElementType) -> bool {
    match (from.kind(), to.kind()) {
        (Kind::Complex, Kind::Complex) | (Kind::Float, Kind::Float) => from.bits() < to.bits(),
        (Kind::Float, Kind::Complex) => from.bits() <= to.real().bits(),
        (Kind::Signed | Kind::Unsigned, Kind::Float | Kind::Complex) => {
            from.bits() < to.real().bits() || from.bits() == 64 && to.real().bits() == 64
        }
        (Kind::Unsigned, Kind::Unsigned) | (Kind::Signed, Kind::Signed) | (Kind::Unsigned, Kind::Signed) => {
            from.bits() < to.bits()
        }
        _ => false,
    }
}

/// Applies `np.promote_types`.
///
/// ```
/// use typelift_promote::{ElementType::*, numpy::promote_types};
/// assert_eq!(promote_types(I32, F16), Some(F64));
/// assert_eq!(promote_types(F16, Bf16), None);
/// ```
pub fn promote_types(a: ElementType, b: ElementType) -> Option<ElementType> {
    let (low, high) = if number_of(a) < number_of(b) { (a, b) } else { (b, a) };
    if !is_built_in(high) && can_cast(high, low) {
        return Some(low);
    }
    if can_cast(low, high) {
        return Some(high);
    }
    if can_cast(high, low) {
        return Some(low);
    }
    let meets = is_built_in(high) || high == F8E5M2 && is_built_in(low);
    let wider = [I16, I32, I64, F32, F64, C64, C128, LongDouble, CLongDouble];
    wider.into_iter().find(|&ty| meets && can_cast(low, ty) && can_cast(high, ty))
}

fn with_number(ty: ElementType, number: ElementType) -> Option<ElementType> {
    let first = |types: &[ElementType]| types.iter().find_map(|&other| promote_types(ty, other));
    match number.kind() {
        Kind::Boolean => promote_types(ty, Boolean),
        Kind::Float if !is_built_in(ty) => first(&[F16, F64]),
        Kind::Float if matches!(ty.kind(), Kind::Float | Kind::Complex) => Some(ty),
        Kind::Float => Some(F64),
        Kind::Complex if !is_built_in(ty) => first(&[C64, C128]),
        Kind::Complex => Some(match ty {
            F16 | F32 => C64,
            LongDouble => CLongDouble,
            ty if ty.kind() == Kind::Complex => ty,
            _ => C128,
        }),
        _ if ty == Boolean => Some(I64),
        _ if is_built_in(ty) => Some(ty),
        _ => first(&[U8, I8, I64]),
    }
}

/// The type of a number without other operands.
fn number_type(number: ElementType) -> ElementType {
    match number.kind() {
        Kind::Boolean => Boolean,
        Kind::Float => F64,
        Kind::Complex => C128,
        _ => I64,
    }
}

pub(super) fn own_type(operand: Operand) -> ElementType {
    if operand.is_number() { number_type(operand.element_type) } else { operand.element_type }
}

fn rank_of_kind(ty: ElementType) -> u8 {
    match ty.kind() {
        Kind::Boolean => 0,
        Kind::Float => 2,
        Kind::Complex => 3,
        _ => 1,
    }
}

/// Applies `np.result_type`. Every array is combined with the one of the highest type number, then these results with
/// each other, and numbers come last.
fn result_type(operands: Operands, trace: Trace) -> Result<ElementType> {
    let is_array = |operand: &Operand| !operand.is_number() || operand.element_type == Boolean;
    let arrays = operands.iter().filter(is_array).map(|operand| operand.element_type);
    let number = operands.iter().filter(|operand| !is_array(operand)).map(|operand| operand.element_type);
    let number = number.max_by_key(|&ty| rank_of_kind(ty));
    let Some(main) = arrays.clone().max_by_key(|&ty| number_of(ty)) else {
        return Ok(number_type(number.unwrap_or(Dynamic)));
    };
    let found = arrays.clone().try_fold(main, |found, ty| -> Result<ElementType> {
        let next = promote_types(main, ty).ok_or(SYSTEM.refuse(NO_COMMON, main, ty))?;
        let common = promote_types(found, next).ok_or(SYSTEM.refuse(NO_COMMON, found, next))?;
        Ok(if ty == found { common } else { meet((common, COMMON), found, ty, trace) })
    })?;
    match number {
        None => Ok(found),
        Some(number) => {
            let ty = number_type(number);
            let common = with_number(found, number).ok_or(SYSTEM.refuse(NO_COMMON, found, ty))?;
            Ok(meet((common, NUMBER), found, ty, trace))
        }
    }
}

pub(super) const COMMON: &str = "the smallest type to which both can be cast safely";
const NUMBER: &str = "a Python number counts by its kind alone";
pub(super) const FIRST_LOOP: &str = "the first loop of the function that both can be cast to";

/// The types over which a function has loops.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Loops {
    /// Every type, including booleans.
    All,
    /// Integers, floats and complex numbers.
    Numbers,
    /// The same, without integers: they become `f64`.
    Divide,
    /// Integers and floats.
    Real,
    Floats,
    /// `f64`, `longdouble` and their complex types.
    Double,
    Integers,
    IntegersAndBooleans,
}

/// The types of ml_dtypes that a function has loops for.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum MlLoops {
    All,
    Floats,
    None,
}

impl Loops {
    pub(super) fn has(self, ty: ElementType) -> bool {
        let kind = ty.kind();
        let integer = ty.is_integer();
        let float = kind == Kind::Float;
        match self {
            Self::All => true,
            Self::Numbers => kind != Kind::Boolean,
            Self::Divide => float || kind == Kind::Complex,
            Self::Real => integer || float,
            Self::Floats => float,
            Self::Double => matches!(ty, F64 | LongDouble | C128 | CLongDouble),
            Self::Integers => integer,
            Self::IntegersAndBooleans => integer || kind == Kind::Boolean,
        }
    }
}

/// NumPy's own types in the order in which functions have their loops.
pub(super) const LOOPS: [ElementType; 16] =
    [Boolean, I8, U8, I16, U16, I32, U32, I64, U64, F16, F32, F64, LongDouble, C64, C128, CLongDouble];

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Common {
    /// [`result_type`].
    Promoted,
    /// The same, of arrays alone.
    Types,
    Loop(Loops, MlLoops),
    /// The same, of arrays alone.
    Product(Loops, MlLoops),
    /// The loop of `ldexp`, whose second operand is an integer.
    Exponent,
}

operations! {
    pub(super) const ROWS: Common;
    "result_type": 1..MANY Other -> Type, Common::Promoted;
    "promote_types": 2..2 Other -> Type, Common::Types;
    "matmul": 2..2 Other -> Type, Common::Product(Loops::All, MlLoops::None);
    "ldexp": 2..2 Broadcast -> Type, Common::Exponent;
    "where": 2..2 Broadcast -> Type, Common::Promoted;
    "concatenate": 1..MANY Other -> Type, Common::Promoted;
    "add": 2..2 Broadcast -> Type, Common::Loop(Loops::All, MlLoops::All);
    "subtract": 2..2 Broadcast -> Type, Common::Loop(Loops::Numbers, MlLoops::All);
    "multiply": 2..2 Broadcast -> Type, Common::Loop(Loops::All, MlLoops::All);
    "divide": 2..2 Broadcast -> Type, Common::Loop(Loops::Divide, MlLoops::Floats);
    "floor_divide" "remainder": 2..2 Broadcast -> Type, Common::Loop(Loops::Real, MlLoops::All);
    "fmod": 2..2 Broadcast -> Type, Common::Loop(Loops::Real, MlLoops::Floats);
    "power": 2..2 Broadcast -> Type, Common::Loop(Loops::Numbers, MlLoops::Floats);
    "float_power": 2..2 Broadcast -> Type, Common::Loop(Loops::Double, MlLoops::None);
    "maximum" "fmax": 2..2 Broadcast -> Type, Common::Loop(Loops::All, MlLoops::Floats);
    "equal" "less" "logical_and": 2..2 Broadcast -> Boolean, Common::Loop(Loops::All, MlLoops::All);
    "bitwise_and": 2..2 Broadcast -> Type, Common::Loop(Loops::IntegersAndBooleans, MlLoops::None);
    "left_shift" "gcd": 2..2 Broadcast -> Type, Common::Loop(Loops::Integers, MlLoops::None);
    "arctan2" "logaddexp" "hypot" "nextafter" "copysign" "heaviside": 2..2 Broadcast -> Type, Common::Loop(Loops::Floats, MlLoops::Floats);
}

fn loop_type(name: &str, (loops, ml): (Loops, MlLoops), operands: Operands, trace: Trace) -> Result<ElementType> {
    let (a, b) = (operands.first(), operands.last());
    let (x, y) = (own_type(a), own_type(b));
    let refuse = |reason| Err(SYSTEM.refuse(reason, x, y));
    if x == Boolean && y == Boolean && name == "subtract" {
        return refuse(BOOLEAN);
    }
    if x == Boolean && y == Boolean && name == "gcd" {
        return refuse(NO_LOOP);
    }
    let built_in = LOOPS.into_iter().filter(|&ty| loops.has(ty));
    if is_built_in(x) && is_built_in(y) {
        let common = result_type(operands, trace)?;
        if loops == Loops::Divide && matches!(rank_of_kind(common), 0 | 1) {
            return Ok(change(common, F64, "a quotient of integers is f64", trace));
        }
        if loops.has(common) {
            return Ok(common);
        }
        let from = |operand: Operand| if operand.is_number() { common } else { operand.element_type };
        let mut built_in = built_in;
        let found = built_in.find(|&ty| can_cast(from(a), ty) && can_cast(from(b), ty));
        return found.map_or(refuse(NO_LOOP), |ty| Ok(change(common, ty, FIRST_LOOP, trace)));
    }
    // Next to a type of ml_dtypes, a number counts as the smallest type that holds 1.
    let casts = |operand: Operand, ty| match operand.element_type.kind() {
        _ if !operand.is_number() => can_cast(operand.element_type, ty),
        Kind::Boolean => true,
        Kind::Float => can_cast(F16, ty),
        Kind::Complex => can_cast(C64, ty),
        _ => can_cast(U8, ty) || can_cast(I8, ty),
    };
    let found = [x, y].into_iter().filter(|ty| match ml {
        _ if is_built_in(*ty) => false,
        MlLoops::All => true,
        MlLoops::Floats => ty.is_float(),
        MlLoops::None => false,
    });
    let found = found.chain(built_in).find(|&ty| casts(a, ty) && casts(b, ty));
    found.map_or(refuse(NO_LOOP), |ty| Ok(meet((ty, FIRST_LOOP), x, y, trace)))
}

fn exponent_type(operands: Operands, trace: Trace) -> Result<ElementType> {
    let (value, exponent) = (operands.first(), operands.last());
    let types = [value, exponent].map(own_type);
    // A Python number next to an array counts as the smallest type that holds 1.
    let meets_array = !exponent.is_number() && exponent.element_type != Boolean;
    let from = match types[0].kind() {
        _ if !value.is_number() => types[0],
        Kind::Float if meets_array && !is_built_in(types[1]) => F16,
        Kind::Signed if meets_array => U8,
        _ => types[0],
    };
    let exponent = match types[1] {
        ty if ty != Boolean && !ty.is_integer() => None,
        _ if exponent.is_number() => Some(I32),
        ty => [I32, I64].into_iter().find(|&exponent| can_cast(ty, exponent)),
    };
    let own = Some(from).filter(|ty| !is_built_in(*ty) && ty.is_float() && exponent == Some(I32));
    let found = own.or_else(|| [F16, F32, F64, LongDouble].into_iter().find(|&ty| can_cast(from, ty)));
    match found.filter(|_| exponent.is_some()) {
        Some(ty) => {
            Ok(change(types[0], ty, "the first loop of the function that the first operand can be cast to", trace))
        }
        None => Err(SYSTEM.refuse(NO_LOOP, types[0], types[1])),
    }
}

/// Refuses a Python integer next to an array if the type `ty`, which the function converts it to, does not hold it.
fn check_bounds(operands: Operands, ty: ElementType) -> Result<()> {
    let range = |ty: ElementType| match ty.kind() {
        Kind::Unsigned => Some(0..=(1 << ty.bits()) - 1),
        Kind::Signed => Some(-(1 << (ty.bits() - 1))..=(1 << (ty.bits() - 1)) - 1),
        _ => None,
    };
    let fits = |operand: Operand| match operand.literal {
        Some(Literal::Integer(value)) => {
            range(ty).is_none_or(|range: core::ops::RangeInclusive<i128>| range.contains(&value))
        }
        _ => true,
    };
    if operands.any(|operand: Operand| !operand.is_number()) && operands.any(|operand| !fits(operand)) {
        return Err(SYSTEM.refuse(BOUNDS, ty, ty));
    }
    Ok(())
}

/// Refuses Python numbers.
fn arrays_only(operands: Operands) -> Result<()> {
    if operands.any(Operand::is_number) {
        Err(SYSTEM.refuse(ARRAYS, operands.first().element_type, operands.last().element_type))
    } else {
        Ok(())
    }
}

impl Rules for NumPy {
    fn name(&self) -> &'static str {
        "numpy"
    }

    fn facts(&self) -> Facts {
        let categories = &[Category::Dimensioned, Category::Number];
        let facts = Facts::new(SYSTEM, |ty| number_of(ty) < TYPES.len());
        Facts { categories, goes_by_rank: false, default_float: F64, ..facts }
    }

    fn operation(&self, at: usize) -> Option<&'static Operation> {
        ROWS.get(at).map(|row| &row.operation)
    }

    fn decide(&self, at: usize, operands: Operands<'_>, trace: Trace<'_>) -> Result<Promotion> {
        let Some(row) = ROWS.get(at) else { return Err(SYSTEM.refuse(Reason::UNKNOWN_OPERATION, Dynamic, Dynamic)) };
        let common = match row.rule {
            Common::Promoted => result_type(operands, trace)?,
            Common::Types => arrays_only(operands).and_then(|()| result_type(operands, trace))?,
            Common::Loop(loops, ml) => {
                let common = loop_type(row.operation.name, (loops, ml), operands, trace)?;
                // Comparisons accept any integer, and truth needs one of 64 bits.
                match row.operation.name {
                    "equal" | "less" => {}
                    "logical_and" => check_bounds(operands, I64)?,
                    _ => check_bounds(operands, common)?,
                }
                common
            }
            Common::Product(loops, ml) => {
                arrays_only(operands).and_then(|()| loop_type(row.operation.name, (loops, ml), operands, trace))?
            }
            Common::Exponent => {
                let common = exponent_type(operands, trace)?;
                if operands.last().is_number() {
                    check_bounds(operands, I32)?;
                }
                common
            }
        };
        let result =
            if row.operation.is_test { change(common, Boolean, "the function gives booleans", trace) } else { common };
        Ok(Promotion::new(common, result))
    }
}
