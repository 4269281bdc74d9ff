//! NumPy 1's rules, as numpy 1.26 applies them to its own types.
//!
//! Arrays of rank 0 and Python numbers count by their value: as the smallest type that holds it, unless they are of a
//! higher kind than every array of rank 1 or more. A value that is not known counts as 1.

use super::numpy::{
    BOOLEAN, COMMON, Common, FIRST_LOOP, LOOPS, Loops, NO_COMMON, NO_LOOP, ROWS, can_cast, is_built_in, own_type,
    promote_types,
};
use crate::derivation::{Trace, change, meet};
use crate::operand::Operands;
use crate::{
    Category, ElementType, ElementType::*, Facts, Kind, Literal, Operand, Operation, Promotion, Reason, Refusal, Rules,
    Spelling, System,
};

/// NumPy 1, which has no settings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct NumPy1;

const SYSTEM: System = System { title: "NumPy 1", spelling: Spelling::MlDtypes };

const NO_NUMBERS: Reason = Reason::new("no-numbers", "{a} and {b}: the function takes arrays of rank 1 or more");

const BY_VALUE: &str = "a scalar counts as the smallest type that holds its value";

type Result<T> = core::result::Result<T, Refusal>;

/// Smallest type that holds the value of a scalar.
#[derive(Clone, Copy)]
struct Least {
    ty: ElementType,
    /// True for an unsigned type if the signed type of the same width holds the value too.
    fits_signed: bool,
}

/// Operand with its own type.
#[derive(Clone, Copy)]
struct Value {
    ty: ElementType,
    /// The smallest type; `None` for an array of rank 1 or more.
    least: Option<Least>,
}

impl Value {
    fn of(operand: Operand) -> Self {
        let is_scalar = matches!(operand.category, Category::Number | Category::ZeroDim);
        let ty = match operand.literal {
            Some(Literal::Integer(value)) if value > i128::from(i64::MAX) => U64,
            _ => own_type(operand),
        };
        Self { ty, least: is_scalar.then(|| least(operand.literal, ty)) }
    }

    /// The order of kinds in which scalars and arrays are compared.
    fn rank(self) -> u8 {
        match self.ty.kind() {
            Kind::Boolean => 0,
            Kind::Float | Kind::Complex => 2,
            _ => 1,
        }
    }

    /// Values count if `by_value`.
    fn counts(self, by_value: bool) -> Least {
        self.least.filter(|_| by_value).unwrap_or(Least { ty: self.ty, fits_signed: false })
    }

    fn can_cast(self, to: ElementType, by_value: bool) -> bool {
        let Least { ty, fits_signed } = self.counts(by_value);
        can_cast(if fits_signed && to.kind() == Kind::Signed { signed(ty) } else { ty }, to)
    }
}

fn least(literal: Option<Literal>, ty: ElementType) -> Least {
    let plain = |ty| Least { ty, fits_signed: false };
    let within =
        |all: [ElementType; 4], value: u128| all.into_iter().find(|ty| value >> ty.bits() == 0).unwrap_or(all[3]);
    match (literal, ty.kind()) {
        (_, Kind::Boolean) => plain(Boolean),
        (Some(Literal::Integer(value)), Kind::Signed | Kind::Unsigned) if value < 0 => {
            plain(within([I8, I16, I32, I64], value.unsigned_abs().saturating_sub(1) << 1))
        }
        (Some(Literal::Integer(value)), Kind::Signed | Kind::Unsigned) => {
            let ty = within([U8, U16, U32, U64], value.unsigned_abs());
            Least { ty, fits_signed: value.unsigned_abs() >> (ty.bits() - 1) == 0 }
        }
        (Some(Literal::Float(least) | Literal::Complex(least)), _) => plain(least),
        (_, Kind::Complex) => plain(C64),
        (_, Kind::Float) => plain(F16),
        _ => Least { ty: U8, fits_signed: true },
    }
}

fn signed(ty: ElementType) -> ElementType {
    match ty {
        U8 => I8,
        U16 => I16,
        U32 => I32,
        _ => I64,
    }
}

fn by_value(operands: Operands) -> bool {
    let rank_of = |is_scalar: bool| {
        let values = operands.iter().map(Value::of).filter(move |value| value.least.is_some() == is_scalar);
        values.map(Value::rank).max()
    };
    rank_of(false).is_some_and(|arrays| rank_of(true).is_some_and(|scalars| arrays >= scalars))
}

/// Promotes two types. A small unsigned value counts as signed next to anything that is not unsigned.
fn promote(a: Least, b: Least) -> Option<Least> {
    let meets = |ty: ElementType, other: ElementType, fits_signed: bool| {
        let is_kept = !fits_signed || matches!(other.kind(), Kind::Boolean | Kind::Unsigned);
        if is_kept { ty } else { signed(ty) }
    };
    let ty = match (a.fits_signed, b.fits_signed) {
        (true, _) => promote_types(meets(a.ty, b.ty, true), b.ty),
        (false, is_small) => promote_types(a.ty, meets(b.ty, a.ty, is_small)),
    };
    Some(Least { ty: ty?, fits_signed: a.fits_signed && b.fits_signed })
}

/// Applies `np.result_type`: types are combined in the order of the operands.
fn result_type(operands: Operands, trace: Trace) -> Result<ElementType> {
    let by_value = by_value(operands);
    let mut values = operands.iter().map(Value::of);
    let Some(first) = values.next().map(|value| value.counts(by_value)) else { return Ok(Dynamic) };
    let rule = if by_value { BY_VALUE } else { COMMON };
    let found = values.try_fold(first, |found, value| {
        let next = value.counts(by_value);
        let common = promote(next, found).ok_or(SYSTEM.refuse(NO_COMMON, found.ty, next.ty))?;
        meet((common.ty, rule), found.ty, next.ty, trace);
        Ok(common)
    })?;
    Ok(found.ty)
}

/// Functions that always use their first loop to which both operands can be cast.
const SEARCHED: [&str; 6] = ["bitwise_and", "floor_divide", "fmod", "left_shift", "power", "remainder"];

fn loop_type(name: &str, loops: Loops, operands: Operands, trace: Trace) -> Result<ElementType> {
    let [a, b] = [operands.first(), operands.last()].map(Value::of);
    let refuse = |reason| Err(SYSTEM.refuse(reason, a.ty, b.ty));
    if a.ty == Boolean && b.ty == Boolean && ["subtract", "gcd"].contains(&name) {
        return refuse(if name == "gcd" { NO_LOOP } else { BOOLEAN });
    }
    if loops == Loops::Divide && a.rank() < 2 && b.rank() < 2 {
        return Ok(meet((F64, "a quotient of integers is f64"), a.ty, b.ty, trace));
    }
    let common = result_type(operands, trace)?;
    if loops.has(common) && !SEARCHED.contains(&name) {
        return Ok(common);
    }
    let by_value = by_value(operands);
    let mut all = LOOPS.into_iter().filter(|&ty| loops.has(ty));
    let found = all.find(|&ty| a.can_cast(ty, by_value) && b.can_cast(ty, by_value));
    found.map_or(refuse(NO_LOOP), |ty| Ok(change(common, ty, FIRST_LOOP, trace)))
}

/// The second is an `i32` or `i64`.
fn exponent_type(operands: Operands, trace: Trace) -> Result<ElementType> {
    let [value, exponent] = [operands.first(), operands.last()].map(Value::of);
    let by_value = by_value(operands);
    let floats = [F16, F32, F64, LongDouble].into_iter();
    let rule = "the first loop of the function that the first operand can be cast to";
    match floats.clone().find(|float: &ElementType| {
        value.can_cast(*float, by_value) && [I32, I64].iter().any(|&ty| exponent.can_cast(ty, by_value))
    }) {
        Some(ty) => Ok(change(value.ty, ty, rule, trace)),
        None => Err(SYSTEM.refuse(NO_LOOP, value.ty, exponent.ty)),
    }
}

/// Refuses scalars.
fn arrays_only(operands: Operands) -> Result<()> {
    if operands.any(|operand: Operand| Value::of(operand).least.is_some()) {
        Err(SYSTEM.refuse(NO_NUMBERS, operands.first().element_type, operands.last().element_type))
    } else {
        Ok(())
    }
}

impl Rules for NumPy1 {
    fn name(&self) -> &'static str {
        "numpy-1"
    }

    fn facts(&self) -> Facts {
        Facts { default_float: F64, ..Facts::new(SYSTEM, is_built_in) }
    }

    fn operation(&self, at: usize) -> Option<&'static Operation> {
        ROWS.get(at).map(|row| &row.operation)
    }

    fn decide(&self, at: usize, operands: Operands<'_>, trace: Trace<'_>) -> Result<Promotion> {
        let Some(row) = ROWS.get(at) else { return Err(SYSTEM.refuse(Reason::UNKNOWN_OPERATION, Dynamic, Dynamic)) };
        let name = row.operation.name;
        let common = match row.rule {
            Common::Promoted => result_type(operands, trace)?,
            Common::Types => arrays_only(operands).and_then(|()| result_type(operands, trace))?,
            Common::Loop(loops, _) => loop_type(name, loops, operands, trace)?,
            Common::Product(loops, _) => {
                arrays_only(operands).and_then(|()| loop_type(name, loops, operands, trace))?
            }
            Common::Exponent => exponent_type(operands, trace)?,
        };
        let result =
            if row.operation.is_test { change(common, Boolean, "the function gives booleans", trace) } else { common };
        Ok(Promotion::new(common, result))
    }
}
