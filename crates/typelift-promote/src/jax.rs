//! JAX's rules, as jax 0.10 does them with 64-bit types on (`jax_enable_x64`) and standard promotion.
//!
//! Types form a lattice; operands meet at their least upper bound, all at once. Values made of Python numbers alone are
//! weakly typed: they stand in the lattice below every type of their kind. Rank makes no difference.

use crate::derivation::{Step, Trace, change};
use crate::operand::Operands;
use crate::operation::MANY;
use crate::{
    Category, ElementType, ElementType::*, Kind, Operand, Operation, Promotion, Reason, Refusal, Rules, ShapeRule,
    Spelling, System,
};

/// JAX with its default settings and 64-bit types.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Options;

const SYSTEM: System = System { title: "JAX", spelling: Spelling::MlDtypes };

const NO_PATH: Reason =
    Reason::new("no-promotion-path", "{a} and {b} have no common type: JAX has no implicit promotion between them");
const KIND: Reason = Reason::new("wrong-kind", "{a} and {b}: the function does not take {a}, their common type");

type Result<T> = core::result::Result<T, Refusal>;

/// What stands in the lattice: a type, or a kind of weakly typed values.
#[derive(Clone, Copy, PartialEq)]
enum Node {
    Type(ElementType),
    Integer,
    Float,
    Complex,
}

use Node::{Complex, Float, Integer, Type};

const FLOATS: [Node; 13] = [
    Type(F16),
    Type(Bf16),
    Type(F8E4M3),
    Type(F8E5M2),
    Type(F8E4M3Fnuz),
    Type(F8E5M2Fnuz),
    Type(F8E4M3B11Fnuz),
    Type(F8E3M4),
    Type(F8E4M3Ieee),
    Type(F8E8M0),
    Type(F4E2M1),
    Type(F6E2M3),
    Type(F6E3M2),
];

/// Every node with those right above it, lower ones first.
const LATTICE: &[(Node, &[Node])] = &[
    (Type(Boolean), &[Integer]),
    (Integer, &[Type(U8), Type(I8), Type(U2), Type(U4), Type(I2), Type(I4)]),
    (Type(U2), &[]),
    (Type(U4), &[]),
    (Type(I2), &[]),
    (Type(I4), &[]),
    (Type(U8), &[Type(I16), Type(U16)]),
    (Type(U16), &[Type(I32), Type(U32)]),
    (Type(U32), &[Type(I64), Type(U64)]),
    (Type(U64), &[Float]),
    (Type(I8), &[Type(I16)]),
    (Type(I16), &[Type(I32)]),
    (Type(I32), &[Type(I64)]),
    (Type(I64), &[Float]),
    (Float, &FLOATS),
    (Float, &[Complex]),
    (Type(F16), &[Type(F32)]),
    (Type(Bf16), &[Type(F32)]),
    (Type(F32), &[Type(F64), Type(C64)]),
    (Type(F64), &[Type(C128)]),
    (Complex, &[Type(C64)]),
    (Type(C64), &[Type(C128)]),
    (Type(C128), &[]),
];

/// Whether the node `above` is the node `below`, or is reached from it upwards.
fn is_above(above: Node, below: Node) -> bool {
    let mut reached = [false; 40];
    let place = |node: Node| match node {
        Type(ty) => TYPES.iter().position(|&known| known == ty).unwrap_or(39),
        Integer => 36,
        Float => 37,
        Complex => 38,
    };
    reached[place(below)] = true;
    for &(node, ups) in LATTICE {
        if reached[place(node)] {
            ups.iter().for_each(|&up| reached[place(up)] = true);
        }
    }
    reached[place(above)]
}

/// The types that JAX has.
const TYPES: [ElementType; 30] = [
    Boolean,
    U8,
    U16,
    U32,
    U64,
    I8,
    I16,
    I32,
    I64,
    F16,
    F32,
    F64,
    C64,
    C128,
    Bf16,
    F8E4M3,
    F8E5M2,
    F8E4M3Fnuz,
    F8E5M2Fnuz,
    F8E4M3B11Fnuz,
    F8E3M4,
    F8E4M3Ieee,
    F8E8M0,
    F4E2M1,
    F6E2M3,
    F6E3M2,
    I2,
    I4,
    U2,
    U4,
];

/// The smallest node above all that are given.
fn least_upper_bound(nodes: impl Iterator<Item = Node> + Clone) -> Option<Node> {
    let all = || TYPES.into_iter().map(Type).chain([Integer, Float, Complex]);
    let is_bound = |&candidate: &Node| nodes.clone().all(|node| is_above(candidate, node));
    all().filter(is_bound).find(|&candidate| all().filter(is_bound).all(|other| is_above(other, candidate)))
}

/// The type that weakly typed values of this kind have by default.
fn default_type(ty: ElementType) -> ElementType {
    match ty.kind() {
        Kind::Boolean => Boolean,
        Kind::Float => F64,
        Kind::Complex => C128,
        _ => I64,
    }
}

fn is_weak(operand: Operand) -> bool {
    matches!(operand.category, Category::Weak | Category::Number) && operand.element_type != Boolean
}

/// The type of the values that an operand has.
fn type_of(operand: Operand) -> ElementType {
    if operand.is_number() { default_type(operand.element_type) } else { operand.element_type }
}

fn node_of(operand: Operand) -> Node {
    let ty = type_of(operand);
    match ty.kind() {
        Kind::Boolean => Type(ty),
        _ if !is_weak(operand) => Type(ty),
        Kind::Float => Float,
        Kind::Complex => Complex,
        _ => Integer,
    }
}

/// `jnp.result_type`, and whether it is weak.
fn result_type(operands: Operands, trace: Trace) -> Result<(ElementType, bool)> {
    let (first, last) = (type_of(operands.first()), type_of(operands.last()));
    let all_weak = !operands.any(|operand| !is_weak(operand));
    if !operands.any(|operand| type_of(operand) != first) {
        return Ok((first, all_weak && first != Boolean));
    }
    let node = |operand| if all_weak { Type(type_of(operand)) } else { node_of(operand) };
    let (ty, is_weak) = match least_upper_bound(operands.iter().map(node)) {
        None => return Err(SYSTEM.refuse(NO_PATH, first, last)),
        Some(Type(ty)) => (ty, all_weak && ty != Boolean),
        Some(Integer) => (I64, true),
        Some(Float) => (F64, true),
        Some(Complex) => (C128, true),
    };
    if operands.len() > 1 {
        let rule = if is_weak { WEAK } else { "the least type of the lattice above all operands" };
        trace(Step { from: first, with: Some(last), to: ty, rule });
    }
    Ok((ty, is_weak))
}

const WEAK: &str = "the least type of the lattice above all operands, weak";

#[derive(Clone, Copy, PartialEq)]
enum Takes {
    Any,
    NotBoolean,
    /// Integers and booleans.
    Whole,
}

struct Row {
    operation: Operation,
    takes: Takes,
}

const fn row(name: &'static str, least: usize, most: usize, shape: ShapeRule, takes: Takes, is_test: bool) -> Row {
    Row { operation: Operation { name, least, most, shape, is_test }, takes }
}

const fn elementwise(name: &'static str, takes: Takes, is_test: bool) -> Row {
    row(name, 2, 2, ShapeRule::Broadcast, takes, is_test)
}

const ROWS: &[Row] = &[
    row("result_type", 1, MANY, ShapeRule::Other, Takes::Any, false),
    row("concatenate", 1, MANY, ShapeRule::Other, Takes::Any, false),
    elementwise("add", Takes::Any, false),
    elementwise("subtract", Takes::NotBoolean, false),
    elementwise("multiply", Takes::Any, false),
    elementwise("maximum", Takes::Any, false),
    elementwise("fmax", Takes::Any, false),
    elementwise("where", Takes::Any, false),
    elementwise("bitwise_and", Takes::Whole, false),
    elementwise("equal", Takes::Any, true),
    elementwise("less", Takes::Any, true),
];

impl Options {
    /// The settings worth a comparison, with the words for each.
    pub(crate) const VARIANTS: &[(&str, Self)] = &[("jax", Self)];
}

impl Rules for Options {
    fn name(&self) -> &'static str {
        "jax"
    }

    fn system(&self) -> System {
        SYSTEM
    }

    fn has_type(&self, ty: ElementType) -> bool {
        TYPES.contains(&ty)
    }

    fn operation(&self, at: usize) -> Option<&'static Operation> {
        ROWS.get(at).map(|row| &row.operation)
    }

    fn decide(&self, at: usize, operands: Operands<'_>, trace: Trace<'_>) -> Result<Promotion> {
        let Some(row) = ROWS.get(at) else { return Err(SYSTEM.refuse(Reason::UNKNOWN_OPERATION, Dynamic, Dynamic)) };
        let (mut common, is_weak) = result_type(operands, trace)?;
        if is_weak && row.operation.name == "result_type" {
            common = change(common, default_type(common), "a weak type is the default type of its kind", trace);
        }
        let takes = match row.takes {
            Takes::Any => true,
            Takes::NotBoolean => common != Boolean,
            Takes::Whole => common == Boolean || common.is_integer(),
        };
        if !takes {
            return Err(SYSTEM.refuse(KIND, common, common));
        }
        let result =
            if row.operation.is_test { change(common, Boolean, "the function gives booleans", trace) } else { common };
        Ok(Promotion { common, result, is_weak })
    }

    fn goes_by_rank(&self) -> bool {
        false
    }

    fn ordinary_operation(&self) -> &'static str {
        "result_type"
    }

    fn categories(&self) -> &'static [Category] {
        &[Category::Dimensioned, Category::Weak, Category::Number]
    }
}
