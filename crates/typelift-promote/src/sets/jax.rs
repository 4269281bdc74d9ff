//! JAX's rules, as jax 0.10 applies them: standard or strict promotion, with 64-bit types (`jax_enable_x64`) or without.
//!
//! Types form a lattice, and the result is the least upper bound of all operands. Weakly typed values are computed from
//! Python numbers alone; in the lattice they are below every type of their kind. Rank does not matter.

use crate::derivation::{Step, Trace, change};
use crate::operand::Operands;
use crate::operation::{MANY, operations};
use crate::{
    Category, ElementType, ElementType::*, Facts, Kind, Operand, Operation, Promotion, Reason, Refusal, Rules, Setting,
    Spelling, System,
};

/// JAX with standard promotion and 64-bit types by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Options {
    /// True for `jax.numpy_dtype_promotion("strict")`: only Python numbers and weakly typed values promote.
    pub strict: bool,
    /// True without `jax_enable_x64`, which is JAX's own default: types of 64 bits become those of 32.
    pub no_x64: bool,
}

const SYSTEM: System = System { title: "JAX", spelling: Spelling::MlDtypes };

const NO_PATH: Reason =
    Reason::new("no-promotion-path", "{a} and {b} have no common type: JAX has no implicit promotion between them");
const STRICTLY: Reason = Reason::new(
    "no-promotion-path",
    "{a} and {b} have no common type: strict promotion converts nothing but Python numbers; convert one explicitly",
);
const KIND: Reason = Reason::new("wrong-kind", "{a} and {b}: the function does not take {a}, their common type");

type Result<T> = core::result::Result<T, Refusal>;

/// Element of the lattice: a type, or a kind of weakly typed values.
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

/// Every node with the nodes directly above it, lower ones first.
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

/// A set with one bit for each node.
type Nodes = u128;

const fn place(node: Node) -> usize {
    match node {
        Type(ty) => ty as usize,
        Integer => 125,
        Float => 126,
        Complex => 127,
    }
}

/// The nodes with the nodes above them under strict promotion, lower ones first.
const STRICT: &[(Node, &[Node])] = &[
    (Integer, &[Float, Type(U8), Type(U16), Type(U32), Type(U64), Type(I8), Type(I16), Type(I32), Type(I64)]),
    (Integer, &[Type(U2), Type(U4), Type(I2), Type(I4)]),
    (Float, &FLOATS),
    (Float, &[Complex, Type(F32), Type(F64)]),
    (Complex, &[Type(C64), Type(C128)]),
];

/// For each node, the node itself and all nodes above it.
const ABOVE: [Nodes; 128] = above(LATTICE);
const ABOVE_STRICT: [Nodes; 128] = above(STRICT);

const fn above(lattice: &[(Node, &[Node])]) -> [Nodes; 128] {
    let mut above = [0; 128];
    let mut at = 0;
    while at < above.len() {
        above[at] = 1 << at;
        at += 1;
    }
    let mut row = lattice.len();
    while row > 0 {
        row -= 1;
        let (node, ups) = lattice[row];
        let mut up = 0;
        while up < ups.len() {
            above[place(node)] |= above[place(ups[up])];
            up += 1;
        }
    }
    above
}

/// True for the types that JAX supports, which are those of the lattice.
fn is_supported(ty: ElementType) -> bool {
    LATTICE.iter().any(|(node, above)| *node == Type(ty) || above.contains(&Type(ty)))
}

fn is_weak(operand: Operand) -> bool {
    matches!(operand.category, Category::Weak | Category::Number) && operand.element_type != Boolean
}

impl Options {
    fn least_upper_bound(self, nodes: impl Iterator<Item = Node>) -> Option<Node> {
        let above = if self.strict { &ABOVE_STRICT } else { &ABOVE };
        let bounds = nodes.map(|node| above[place(node)]).fold(Nodes::MAX, |all, above| all & above);
        ElementType::all().map(Type).chain([Integer, Float, Complex]).find(|&node| above[place(node)] == bounds)
    }

    /// The type that stands for a type if there are no 64-bit types.
    fn canonical(self, ty: ElementType) -> ElementType {
        match ty {
            I64 if self.no_x64 => I32,
            U64 if self.no_x64 => U32,
            F64 if self.no_x64 => F32,
            C128 if self.no_x64 => C64,
            ty => ty,
        }
    }

    fn default_type(self, ty: ElementType) -> ElementType {
        self.canonical(match ty.kind() {
            Kind::Boolean => Boolean,
            Kind::Float => F64,
            Kind::Complex => C128,
            _ => I64,
        })
    }

    fn type_of(self, operand: Operand) -> ElementType {
        if operand.is_number() { self.default_type(operand.element_type) } else { self.canonical(operand.element_type) }
    }

    fn node_of(self, operand: Operand) -> Node {
        let ty = self.type_of(operand);
        match ty.kind() {
            Kind::Boolean => Type(ty),
            _ if !is_weak(operand) => Type(ty),
            Kind::Float => Float,
            Kind::Complex => Complex,
            _ => Integer,
        }
    }

    /// Applies `jnp.result_type`. The flag is true if the result is weakly typed.
    fn result_type(self, operands: Operands, trace: Trace) -> Result<(ElementType, bool)> {
        let (first, last) = (self.type_of(operands.first()), self.type_of(operands.last()));
        let all_weak = !operands.any(|operand| !is_weak(operand));
        // Strict promotion gives the default type of their kind to several weak values.
        let keeps_weak = all_weak && (!self.strict || operands.len() == 1);
        if !operands.any(|operand| self.type_of(operand) != first) && (keeps_weak || !all_weak) {
            return Ok((first, all_weak && first != Boolean));
        }
        let node = |operand| if keeps_weak { Type(self.type_of(operand)) } else { self.node_of(operand) };
        let (ty, is_weak) = match self.least_upper_bound(operands.iter().map(node)) {
            None => return Err(SYSTEM.refuse(if self.strict { STRICTLY } else { NO_PATH }, first, last)),
            Some(Type(ty)) => (self.canonical(ty), all_weak && ty != Boolean),
            Some(Integer) => (self.default_type(I64), true),
            Some(Float) => (self.default_type(F64), true),
            Some(Complex) => (self.default_type(C128), true),
        };
        if operands.len() > 1 {
            let rule = if is_weak { WEAK } else { "the least type of the lattice above all operands" };
            trace(Step { from: first, with: Some(last), to: ty, rule });
        }
        Ok((ty, is_weak))
    }
}

const WEAK: &str = "the least type of the lattice above all operands, weak";

/// Common types that a function accepts.
#[derive(Clone, Copy, PartialEq)]
enum Takes {
    Any,
    NotBoolean,
    /// Integers and booleans.
    Whole,
    Integers,
    /// Every type except complex numbers.
    Real,
    /// Floats and complex numbers.
    Inexact,
    Floats,
    /// Floats of 16 bits and more.
    WideFloats,
    /// `jnp.gcd` has no narrow signed integers.
    Divisors,
}

impl Takes {
    fn has(self, ty: ElementType) -> bool {
        let is_complex = ty.kind() == Kind::Complex;
        match self {
            Self::Any => true,
            Self::NotBoolean => ty != Boolean,
            Self::Whole => ty == Boolean || ty.is_integer(),
            Self::Integers => ty.is_integer(),
            Self::Real => !is_complex,
            Self::Inexact => ty.is_float() || is_complex,
            Self::Floats => ty.is_float(),
            Self::WideFloats => ty.is_float() && ty.bits() >= 16,
            Self::Divisors => ty.is_integer() && !matches!(ty, I2 | I4),
        }
    }
}

/// Conversion that a function applies to the common type.
#[derive(Clone, Copy, PartialEq)]
enum Makes {
    Same,
    /// Booleans become `i32`.
    Numbers,
    /// Integers and booleans become floats.
    Floats,
    Booleans,
}

impl Makes {
    fn apply(self, ty: ElementType, trace: Trace) -> ElementType {
        match (self, ty) {
            (Self::Numbers, Boolean) => change(ty, I32, "the function takes numbers, and no booleans", trace),
            (Self::Floats, I64 | U64) => change(ty, F64, FLOATS_ONLY, trace),
            (Self::Floats, I2 | U2) => ty,
            (Self::Floats, _) if ty == Boolean || ty.is_integer() => change(ty, F32, FLOATS_ONLY, trace),
            _ => ty,
        }
    }
}

const FLOATS_ONLY: &str = "the function computes in floating point: 64-bit integers become f64, others f32";

/// Condition under which a result stays weakly typed.
#[derive(Clone, Copy, PartialEq)]
enum Weak {
    Always,
    /// If the first operand is a Python number whose own type is the result's type.
    FirstNumber,
    /// If all operands are Python numbers.
    Numbers,
}

impl Weak {
    fn stays(self, options: Options, operands: Operands, result: ElementType) -> bool {
        match self {
            Self::Always => true,
            Self::FirstNumber => operands.first().is_number() && result == options.default_type(result),
            Self::Numbers => !operands.any(|operand| !operand.is_number()),
        }
    }
}

#[derive(Clone, Copy)]
enum Rule {
    Promoted(Takes, Makes, Weak),
    ResultType,
    PromoteTypes,
    Power,
    FloorDivide,
    Ldexp,
    LogAddExp,
}

use Rule::Promoted;

const ANY: Rule = Promoted(Takes::Any, Makes::Same, Weak::Always);

operations! {
    const ROWS: Rule;
    "result_type": 1..MANY Other -> Type, Rule::ResultType;
    "promote_types": 2..2 Other -> Type, Rule::PromoteTypes;
    "concatenate": 1..MANY Other -> Type, ANY;
    "add": 2..2 Broadcast -> Type, ANY;
    "subtract": 2..2 Broadcast -> Type, Promoted(Takes::NotBoolean, Makes::Same, Weak::Always);
    "multiply": 2..2 Broadcast -> Type, ANY;
    "true_divide": 2..2 Broadcast -> Type, Promoted(Takes::Any, Makes::Floats, Weak::Always);
    "floor_divide": 2..2 Broadcast -> Type, Rule::FloorDivide;
    "remainder": 2..2 Broadcast -> Type, Promoted(Takes::Real, Makes::Numbers, Weak::Always);
    "power": 2..2 Broadcast -> Type, Rule::Power;
    "float_power": 2..2 Broadcast -> Type, Promoted(Takes::Inexact, Makes::Floats, Weak::Always);
    "maximum" "fmax" "where": 2..2 Broadcast -> Type, ANY;
    "arctan2": 2..2 Broadcast -> Type, Promoted(Takes::Inexact, Makes::Floats, Weak::Always);
    "copysign": 2..2 Broadcast -> Type, Promoted(Takes::WideFloats, Makes::Floats, Weak::Always);
    "heaviside": 2..2 Broadcast -> Type, Promoted(Takes::Real, Makes::Floats, Weak::FirstNumber);
    "hypot": 2..2 Broadcast -> Type, Promoted(Takes::Floats, Makes::Floats, Weak::Numbers);
    "ldexp": 2..2 Broadcast -> Type, Rule::Ldexp;
    "logaddexp": 2..2 Broadcast -> Type, Rule::LogAddExp;
    "nextafter": 2..2 Broadcast -> Type, Promoted(Takes::Floats, Makes::Floats, Weak::Always);
    "bitwise_and": 2..2 Broadcast -> Type, Promoted(Takes::Whole, Makes::Same, Weak::Always);
    "left_shift": 2..2 Broadcast -> Type, Promoted(Takes::Integers, Makes::Numbers, Weak::Always);
    "gcd": 2..2 Broadcast -> Type, Promoted(Takes::Divisors, Makes::Same, Weak::Numbers);
    "logical_and": 2..2 Broadcast -> Boolean, Promoted(Takes::Any, Makes::Booleans, Weak::Numbers);
    "equal" "less": 2..2 Broadcast -> Boolean, Promoted(Takes::Any, Makes::Booleans, Weak::Always);
}

fn refuse_kind<T>(ty: ElementType) -> Result<T> {
    Err(SYSTEM.refuse(KIND, ty, ty))
}

/// Applies the rule of most functions: the common type, adjusted to the types that the function accepts.
fn promoted(
    options: Options,
    operands: Operands,
    (takes, makes, weak): (Takes, Makes, Weak),
    trace: Trace,
) -> Result<Promotion> {
    let (common, is_weak) = options.result_type(operands, trace)?;
    let common = makes.apply(common, trace);
    if !takes.has(common) {
        return refuse_kind(common);
    }
    let result = match makes {
        Makes::Booleans => change(common, Boolean, "the function gives booleans", trace),
        _ => common,
    };
    Ok(Promotion { common, result, is_weak: is_weak && weak.stays(options, operands, common) })
}

/// Applies `jnp.result_type`: a weak type becomes the default type of its kind.
fn weak_by_default(options: Options, operands: Operands, trace: Trace) -> Result<Promotion> {
    let (common, is_weak) = options.result_type(operands, trace)?;
    let common = if is_weak {
        change(common, options.default_type(common), "a weak type is the default type of its kind", trace)
    } else {
        common
    };
    Ok(Promotion { common, result: common, is_weak })
}

/// Applies `jnp.power`: a Python integer as exponent is ignored by the promotion, and floats keep their type next to
/// integers.
fn power(options: Options, operands: Operands, trace: Trace) -> Result<Promotion> {
    let (base, exponent) = (operands.first(), operands.last());
    let [base_type, exponent_type] = [base, exponent].map(|operand| options.type_of(operand));
    let promotion = |ty, is_weak| Ok(Promotion { common: ty, result: ty, is_weak });
    if exponent.is_number() && (exponent_type == Boolean || exponent_type.is_integer()) {
        return promotion(Makes::Numbers.apply(base_type, trace), is_weak(base));
    }
    let (common, all_weak) = options.result_type(operands, trace)?;
    let common = Makes::Numbers.apply(common, trace);
    match common {
        _ if common.is_integer() && common.bits() < 8 => refuse_kind(common),
        _ if common.is_integer() => promotion(common, false),
        _ if Takes::Inexact.has(base_type) && exponent_type.is_integer() => {
            let rule = "a power with an integer exponent has the type of its base";
            promotion(change(common, base_type, rule, trace), is_weak(base) && is_weak(exponent))
        }
        _ => promotion(common, all_weak),
    }
}

/// Applies `jnp.floor_divide`, whose internal constants have 64 bits if operands are weakly typed.
fn floor_divide(options: Options, operands: Operands, trace: Trace) -> Result<Promotion> {
    let found = promoted(options, operands, (Takes::Real, Makes::Numbers, Weak::Always), trace)?;
    match found.result {
        _ if options.no_x64 => Ok(found),
        F32 if found.is_weak => refuse_kind(F32),
        I32 if found.is_weak => {
            let wide = change(I32, I64, "the function subtracts a weakly typed number", trace);
            Ok(Promotion { result: wide, ..found })
        }
        _ => Ok(found),
    }
}

/// Applies `jnp.ldexp`: the result has the type of the first operand as a float; the second operand is an integer.
fn ldexp(options: Options, operands: Operands, trace: Trace) -> Result<Promotion> {
    let [value, exponent] = [operands.first(), operands.last()].map(|operand| options.type_of(operand));
    if Takes::Inexact.has(exponent) {
        return refuse_kind(exponent);
    }
    let float = Makes::Floats.apply(value, trace);
    if Takes::WideFloats.has(float) { Ok(Promotion::new(float, float)) } else { refuse_kind(float) }
}

fn logaddexp(options: Options, operands: Operands, trace: Trace) -> Result<Promotion> {
    let found = promoted(options, operands, (Takes::Inexact, Makes::Floats, Weak::Always), trace)?;
    let stays = found.result.kind() != Kind::Complex || Weak::Numbers.stays(options, operands, found.result);
    Ok(Promotion { is_weak: found.is_weak && stays, ..found })
}

/// Applies `jnp.promote_types`, which accepts types only.
fn promote_types(options: Options, operands: Operands, trace: Trace) -> Result<Promotion> {
    let is_typed = |operand: &Operand| !matches!(operand.category, Category::Weak | Category::Number);
    if let Some(other) = operands.iter().find(|operand| !is_typed(operand)) {
        return refuse_kind(options.type_of(other));
    }
    // Given types keep their 64 bits. Without 64-bit types, u32 and signed integers meet at i32.
    let (common, _) = Options { no_x64: false, ..options }.result_type(operands, trace)?;
    let is_new = !operands.any(|operand| operand.element_type == common);
    let common = if options.no_x64 && common == I64 && is_new { I32 } else { common };
    Ok(Promotion::new(common, common))
}

const NO_X64: Setting =
    Setting { name: "no-x64", value: None, help: "jax: without 64-bit types, as JAX is by default", is_laxer: false };

impl Rules for Options {
    fn name(&self) -> &'static str {
        if self.strict { "jax-strict" } else { "jax" }
    }

    fn facts(&self) -> Facts {
        let categories = &[Category::Dimensioned, Category::Weak, Category::Number];
        Facts { categories, goes_by_rank: false, settings: &[NO_X64], ..Facts::new(SYSTEM, is_supported) }
    }

    fn set(&mut self, name: &str, value: &str) -> bool {
        let known = name == NO_X64.name && value.is_empty();
        self.no_x64 |= known;
        known
    }

    fn operation(&self, at: usize) -> Option<&'static Operation> {
        ROWS.get(at).map(|row| &row.operation)
    }

    fn decide(&self, at: usize, operands: Operands<'_>, trace: Trace<'_>) -> Result<Promotion> {
        let Some(row) = ROWS.get(at) else { return Err(SYSTEM.refuse(Reason::UNKNOWN_OPERATION, Dynamic, Dynamic)) };
        let options = *self;
        match row.rule {
            Promoted(takes, makes, weak) => promoted(options, operands, (takes, makes, weak), trace),
            Rule::ResultType => weak_by_default(options, operands, trace),
            Rule::PromoteTypes => promote_types(options, operands, trace),
            Rule::Power => power(options, operands, trace),
            Rule::FloorDivide => floor_divide(options, operands, trace),
            Rule::Ldexp => ldexp(options, operands, trace),
            Rule::LogAddExp => logaddexp(options, operands, trace),
        }
    }
}
