//! Element-wise operations: one operand, two operands, comparisons, logic, bits, Select.

use ElementType::{Bf16, Boolean, F16, F32, F64, I8, I16, U8, U16};
use typelift_promote::ElementType;

use super::broadcasting::auto_broadcast;
use super::evaluate::DATA;
use super::evaluate::Evaluate::{Ends, Exact, FromBounds, Interval};
use super::{Accepts, Attr, AttrKind, Context, Fault, Operation, PromotedAs, Spread, Ties, evaluate};
use crate::findings::{Message, message};
use crate::model::shape::{AutoBroadcast, Shape};

pub(super) const ROWS: &[Operation] = &[
    unary("Abs", 0).evaluate(FromBounds(evaluate::absolute, evaluate::absolute_bounds)),
    float_function("Acos", 0).evaluate(Exact(|_, x| evaluate::function(x, f64::acos, f64::round))),
    float_function("Acosh", 3).evaluate(Exact(|_, x| evaluate::function(x, f64::acosh, f64::round))).since(4),
    float_function("Asin", 0).evaluate(Exact(|_, x| evaluate::function(x, f64::asin, f64::trunc))),
    float_function("Asinh", 3).evaluate(Exact(|_, x| evaluate::function(x, f64::asinh, f64::round))).since(4),
    float_function("Atan", 0).evaluate(Exact(|_, x| evaluate::function(x, f64::atan, f64::round))),
    float_function("Atanh", 3).evaluate(Exact(|_, x| evaluate::function(x, f64::atanh, f64::round))).since(4),
    unary("BitwiseNot", 13).accepts(Accepts::Bits),
    unary("Ceiling", 0).evaluate(Exact(|_, x| evaluate::number(x, &[I8, I16, U8, U16], |x| x, f64::ceil))),
    unary("Clamp", 0)
        .requires(&["min", "max"])
        .evaluate(Ends(DATA, evaluate::clamp))
        .accepts(Accepts::NotBoolean)
        .attributes(&[Attr::new("min", AttrKind::Float).default("0"), Attr::new("max", AttrKind::Float).default("0")]),
    float_function("Cos", 0).evaluate(Exact(|_, x| evaluate::function(x, f64::cos, f64::round))),
    float_function("Cosh", 0).evaluate(Exact(|_, x| evaluate::function(x, f64::cosh, f64::round))),
    unary("Elu", 0)
        .requires(&["alpha"])
        .accepts(Accepts::Any)
        .attributes(&[Attr::new("alpha", AttrKind::Float).default("0")]),
    float_function("Erf", 0).evaluate(Exact(|_, x| evaluate::function(x, evaluate::erf, f64::round))),
    unary("ErfInv", 17).accepts(Accepts::Real),
    float_function("Exp", 0).evaluate(Exact(|_, x| evaluate::function(x, f64::exp, f64::trunc))),
    unary("Floor", 0).evaluate(Exact(|_, x| evaluate::number(x, &[I8, I16, U8, U16], |x| x, f64::floor))),
    unary("Gelu", 0).since(2).until(6).accepts(Accepts::Real),
    unary("Gelu", 7).evaluate(Exact(evaluate::gelu)).accepts(Accepts::Real).attributes(&[APPROXIMATION]),
    unary("HSigmoid", 5)
        .evaluate(Exact(|_, x| evaluate::activation(x, HALF_AND_SINGLE, |x| (x + 3.0).clamp(0.0, 6.0) / 6.0))),
    unary("HSwish", 4)
        .evaluate(Exact(|_, x| evaluate::activation(x, HALF_AND_SINGLE, |x| x * (x + 3.0).clamp(0.0, 6.0) / 6.0))),
    unary("Identity", 16).spreads_on(&[]).accepts(Accepts::Any),
    float_function("Log", 0).evaluate(Exact(|_, x| evaluate::function(x, f64::ln, f64::trunc))),
    unary("LogicalNot", 1)
        .promoted_as(PromotedAs::Negation)
        .evaluate(Exact(evaluate::logical_not))
        .accepts(Accepts::Any),
    unary("Mish", 4)
        .evaluate(Exact(|_, x| evaluate::activation(x, HALF_AND_SINGLE, |x| x * x.exp().ln_1p().tanh())))
        .accepts(Accepts::Real),
    unary("Negative", 0).evaluate(Exact(|_, x| evaluate::number(x, &[], i128::wrapping_neg, |x| -x))),
    unary("Relu", 0)
        .spreads_on(&[Spread::Kept, Spread::Quantized])
        .evaluate(Exact(|_, x| evaluate::number(x, &[], |x| x.max(0), |x| x.max(0.0)))),
    unary("Round", 5).evaluate(Exact(evaluate::round)).accepts(Accepts::Any).attributes(&[ROUNDING]),
    float_function("Sigmoid", 0).evaluate(Exact(|_, x| {
        evaluate::function(x, |x| 1.0 / (1.0 + (-x).exp()), |s| if s > 0.5 { 1.0 } else { 0.0 })
    })),
    unary("Sign", 0)
        .evaluate(Exact(|_, x| evaluate::number(x, &[], i128::signum, |x| if x == 0.0 { 0.0 } else { x.signum() }))),
    float_function("Sin", 0).evaluate(Exact(|_, x| evaluate::function(x, f64::sin, f64::trunc))),
    float_function("Sinh", 0).evaluate(Exact(|_, x| evaluate::function(x, f64::sinh, f64::round))),
    unary("SoftPlus", 4)
        .evaluate(Exact(|_, x| {
            evaluate::activation(x, HALF_AND_SINGLE, |x| if x < 20.0 { x.exp().ln_1p() } else { x })
        }))
        .accepts(Accepts::Real),
    unary("SoftSign", 9).accepts(Accepts::Real),
    float_function("Sqrt", 0).evaluate(Exact(|_, x| evaluate::function(x, f64::sqrt, f64::trunc))),
    float_function("Tan", 0).evaluate(Exact(|_, x| evaluate::function(x, f64::tan, f64::round))),
    float_function("Tanh", 0).evaluate(Exact(|_, x| evaluate::function(x, f64::tanh, f64::round))),
    Operation::new("IsFinite", 10, question).accepts(Accepts::Real),
    Operation::new("IsInf", 10, question).accepts(Accepts::Real).attributes(&[
        Attr::new("detect_negative", AttrKind::Bool).default("true"),
        Attr::new("detect_positive", AttrKind::Bool).default("true"),
    ]),
    Operation::new("IsNaN", 10, question).accepts(Accepts::Real),
    binary("Add", 1).wraps().commutative().evaluate(Interval(|e, x| {
        evaluate::arithmetic(e, x, &[evaluate::COMMON, &[I8, I16, U8, U16]], |x, y| Some(x + y), |x, y| x + y)
    })),
    binary("Subtract", 1).wraps().promoted_as(PromotedAs::Difference).evaluate(Interval(|e, x| {
        evaluate::arithmetic(e, x, &[evaluate::COMMON, &[I8, U8]], |x, y| Some(x - y), |x, y| x - y)
    })),
    binary("Multiply", 1).wraps().commutative().evaluate(Interval(|e, x| {
        evaluate::arithmetic(e, x, &[evaluate::COMMON, &[F64]], |x, y| Some(x.wrapping_mul(y)), |x, y| x * y)
    })),
    binary("Divide", 1)
        .wraps()
        .promoted_as(PromotedAs::Division)
        .evaluate(FromBounds(evaluate::divide, evaluate::divide_bounds))
        .attributes(&[AUTO_BROADCAST, AXIS, Attr::new("m_pythondiv", AttrKind::Bool).default("true")]),
    binary("FloorMod", 1).evaluate(Interval(evaluate::floor_mod)),
    binary("Maximum", 1)
        .commutative()
        .evaluate(Interval(|e, x| evaluate::arithmetic(e, x, &[evaluate::COMMON], |x, y| Some(x.max(y)), f64::max))),
    binary("Minimum", 1).commutative().evaluate(Interval(|e, x| {
        evaluate::arithmetic(e, x, &[evaluate::COMMON, &[U8, U16]], |x, y| Some(x.min(y)), f64::min)
    })),
    binary("Mod", 1).evaluate(FromBounds(evaluate::modulo, evaluate::modulo_bounds)),
    binary("Power", 1).wraps().evaluate(Interval(evaluate::power)),
    binary("SquaredDifference", 0)
        .wraps()
        .commutative()
        .promoted_as(PromotedAs::Difference)
        .evaluate(Interval(|e, x| evaluate::arithmetic(e, x, &[&[F32]], |_, _| None, |x, y| (x - y) * (x - y)))),
    binary("BitwiseAnd", 13).commutative().accepts(Accepts::Bits),
    binary("BitwiseOr", 13).commutative().accepts(Accepts::Bits),
    binary("BitwiseXor", 13).commutative().accepts(Accepts::Bits),
    binary("BitwiseLeftShift", 15).accepts(Accepts::Integer),
    binary("BitwiseRightShift", 15).accepts(Accepts::Integer),
    comparison("Equal", 1).commutative().evaluate(FromBounds(evaluate::equal, evaluate::equal_bounds)),
    comparison("Greater", 1)
        .spreads_on(&[Spread::Range])
        .evaluate(Exact(|e, x| evaluate::relation(e, x, &[evaluate::COMMON, &[Boolean]], i128::gt, f64::gt))),
    comparison("GreaterEqual", 1)
        .spreads_on(&[Spread::Range])
        .evaluate(Exact(|e, x| evaluate::relation(e, x, &[evaluate::COMMON, &[Boolean]], i128::ge, f64::ge))),
    comparison("Less", 1)
        .spreads_on(&[Spread::Range])
        .evaluate(Exact(|e, x| evaluate::relation(e, x, &[evaluate::COMMON, &[Boolean]], i128::lt, f64::lt))),
    comparison("LessEqual", 1)
        .spreads_on(&[Spread::Range])
        .evaluate(Exact(|e, x| evaluate::relation(e, x, &[evaluate::COMMON, &[Boolean]], i128::le, f64::le))),
    comparison("NotEqual", 1)
        .commutative()
        .evaluate(Exact(|e, x| evaluate::relation(e, x, &[evaluate::COMMON, &[Boolean]], i128::ne, f64::ne))),
    comparison("LogicalAnd", 1)
        .commutative()
        .evaluate(Exact(|e, x| evaluate::relation(e, x, &[&[Boolean]], |x, y| x & y != 0, |_, _| false)))
        .accepts(Accepts::Boolean),
    comparison("LogicalOr", 1)
        .commutative()
        .evaluate(Exact(|e, x| evaluate::relation(e, x, &[&[Boolean]], |x, y| x | y != 0, |_, _| false)))
        .accepts(Accepts::Boolean),
    comparison("LogicalXor", 1)
        .commutative()
        .evaluate(Exact(|e, x| evaluate::relation(e, x, &[&[Boolean]], i128::ne, f64::ne)))
        .accepts(Accepts::Boolean),
    comparison("Xor", 0)
        .evaluate(Exact(|e, x| evaluate::relation(e, x, &[&[Boolean]], i128::ne, f64::ne)))
        .until(1)
        .accepts(Accepts::Boolean),
    Operation::new("Select", 1, select)
        .evaluate(Ends(0b110, evaluate::select))
        .inputs(3, 3)
        .ties(Ties::Inputs(&[1, 2]))
        .attributes(&[AUTO_BROADCAST, AXIS]),
    Operation::new("PRelu", 0, same).evaluate(Exact(evaluate::prelu)).inputs(2, 2),
];

const APPROXIMATION: Attr = Attr::new("approximation_mode", AttrKind::Enum(&["erf", "tanh"])).default("erf");
const ROUNDING: Attr =
    Attr::new("mode", AttrKind::Enum(&["half_to_even", "half_away_from_zero"])).default("half_to_even");
const HALF_AND_SINGLE: &[ElementType] = &[Bf16, F16, F32];

pub(super) const AUTO_BROADCAST: Attr =
    Attr::new("auto_broadcast", AttrKind::Enum(&["none", "explicit", "numpy", "pdpd"])).default("numpy");
pub(super) const AXIS: Attr = Attr::new("auto_broadcast.auto_broadcast_axis", AttrKind::Int).default("0");

const fn unary(name: &'static str, revision: u8) -> Operation {
    Operation::new(name, revision, same).accepts(Accepts::Numeric).spreads_on(&[Spread::Kept])
}

const fn float_function(name: &'static str, revision: u8) -> Operation {
    unary(name, revision).promoted_as(PromotedAs::FloatFunction)
}

const fn binary(name: &'static str, revision: u8) -> Operation {
    Operation::new(name, revision, arithmetic)
        .inputs(2, 2)
        .ties(Ties::All)
        .accepts(Accepts::Numeric)
        .spreads_on(&[Spread::Kept])
        .attributes(&[AUTO_BROADCAST, AXIS])
}

const fn comparison(name: &'static str, revision: u8) -> Operation {
    Operation::new(name, revision, boolean).inputs(2, 2).ties(Ties::All).attributes(&[AUTO_BROADCAST, AXIS])
}

/// Infers an output with the type and shape of the first input.
fn same(cx: &mut Context) -> Result<(), Fault> {
    cx.check_accepted(0, cx.element_type(0))?;
    if cx.operation.name == "Clamp" {
        let (min, max) = (cx.float("min")?, cx.float("max")?);
        if min > max {
            return Err(Fault::attribute("min", message!("`min` is {}, more than `max`, which is {}"; min, max))
                .help("swap min and max, or correct one of them"));
        }
    }
    cx.finish(cx.element_type(0), cx.shape(0).clone())
}

/// Infers a boolean output with the shape of the input.
fn question(cx: &mut Context) -> Result<(), Fault> {
    cx.check_accepted(0, cx.element_type(0))?;
    cx.finish(Boolean, cx.shape(0).clone())
}

fn arithmetic(cx: &mut Context) -> Result<(), Fault> {
    let element_type = cx.merge_types(&[0, 1])?;
    cx.check_accepted(0, element_type)?;
    let shape = broadcast_operands(cx)?;
    cx.finish(element_type, shape)
}

fn boolean(cx: &mut Context) -> Result<(), Fault> {
    let element_type = cx.merge_types(&[0, 1])?;
    cx.check_accepted(0, element_type)?;
    let shape = broadcast_operands(cx)?;
    cx.finish(Boolean, shape)
}

fn select(cx: &mut Context) -> Result<(), Fault> {
    let condition = cx.element_type(0);
    if ![Boolean, ElementType::Dynamic].contains(&condition) {
        let message = message!("the condition of `{}` is {}, not boolean"; cx.ty(), condition);
        return Err(Fault::unsupported(0, message).help("insert a Convert to boolean before it"));
    }
    let element_type = cx.merge_types(&[1, 2])?;
    let rule = auto_broadcast(cx)?;
    let shape = rule
        .select(cx.shape(0), cx.shape(1), cx.shape(2))
        .map_err(|fault| Fault::shapes(&[0, 1, 2], message!("{}"; fault.mismatch)).rule(broadcast_rule(rule)))?;
    cx.finish(element_type, shape)
}

fn broadcast_operands(cx: &Context) -> Result<Shape, Fault> {
    let rule = auto_broadcast(cx)?;
    let (left, right) = (cx.shape(0), cx.shape(1));
    rule.combine(left, right).map_err(|mismatch| {
        let message =
            message!("the input shapes {} and {} of `{}` cannot be combined: {}"; left, right, cx.ty(), mismatch);
        let fault = Fault::shapes(&[0, 1], message).rule(broadcast_rule(rule));
        match (rule, AutoBroadcast::Numpy.combine(left, right)) {
            (AutoBroadcast::None, Ok(_)) => fault.help("set auto_broadcast=\"numpy\", which permits these shapes"),
            _ => fault,
        }
    })
}

fn broadcast_rule(rule: AutoBroadcast) -> Message {
    match rule {
        AutoBroadcast::None => "without broadcasting, shapes must be equal".into(),
        AutoBroadcast::Numpy => {
            "numpy broadcasting: the shapes are aligned at the last axis, and dimensions must be equal or 1".into()
        }
        AutoBroadcast::Pdpd { axis } => {
            message!("pdpd broadcasting: the second shape is aligned with the first from axis {} on"; axis)
        }
    }
}
