//! Operations that work element by element: one operand, two operands, comparisons, logic, bits, Select.

use typelift_promote::ElementType;

use super::{Accepts, Attr, AttrKind, Context, Fault, Operation, Ties};
use crate::shape::{AutoBroadcast, Shape};

pub(super) const ROWS: &[Operation] = &[
    unary("Abs", 0),
    unary("Acos", 0),
    unary("Acosh", 3).since(4),
    unary("Asin", 0),
    unary("Asinh", 3).since(4),
    unary("Atan", 0),
    unary("Atanh", 3).since(4),
    unary("BitwiseNot", 13).accepts(Accepts::Bits),
    unary("Ceiling", 0),
    unary("Clamp", 0)
        .accepts(Accepts::NotBoolean)
        .attributes(&[Attr::new("min", AttrKind::Float).default("0"), Attr::new("max", AttrKind::Float).default("0")]),
    unary("Cos", 0),
    unary("Cosh", 0),
    unary("Elu", 0).accepts(Accepts::Any).attributes(&[Attr::new("alpha", AttrKind::Float).default("0")]),
    unary("Erf", 0),
    unary("ErfInv", 17).accepts(Accepts::Real),
    unary("Exp", 0),
    unary("Floor", 0),
    unary("Gelu", 0).since(2).until(6).accepts(Accepts::Real),
    unary("Gelu", 7).accepts(Accepts::Real).attributes(&[Attr::new(
        "approximation_mode",
        AttrKind::Enum(&["erf", "tanh"]),
    )
    .default("erf")]),
    unary("HSigmoid", 5),
    unary("HSwish", 4),
    unary("Identity", 16).accepts(Accepts::Any),
    unary("Log", 0),
    unary("LogicalNot", 1).accepts(Accepts::Any),
    unary("Mish", 4).accepts(Accepts::Real),
    unary("Negative", 0),
    unary("Relu", 0),
    unary("Round", 5).accepts(Accepts::Any).attributes(&[Attr::new(
        "mode",
        AttrKind::Enum(&["half_to_even", "half_away_from_zero"]),
    )
    .default("half_to_even")]),
    unary("Sigmoid", 0),
    unary("Sign", 0),
    unary("Sin", 0),
    unary("Sinh", 0),
    unary("SoftPlus", 4).accepts(Accepts::Real),
    unary("SoftSign", 9).accepts(Accepts::Real),
    unary("Sqrt", 0),
    unary("Tan", 0),
    unary("Tanh", 0),
    Operation::new("IsFinite", 10, question).accepts(Accepts::Real),
    Operation::new("IsInf", 10, question).accepts(Accepts::Real).attributes(&[
        Attr::new("detect_negative", AttrKind::Bool).default("true"),
        Attr::new("detect_positive", AttrKind::Bool).default("true"),
    ]),
    Operation::new("IsNaN", 10, question).accepts(Accepts::Real),
    binary("Add", 1),
    binary("Subtract", 1),
    binary("Multiply", 1),
    binary("Divide", 1).attributes(&[AUTO_BROADCAST, AXIS, Attr::new("m_pythondiv", AttrKind::Bool).default("true")]),
    binary("FloorMod", 1),
    binary("Maximum", 1),
    binary("Minimum", 1),
    binary("Mod", 1),
    binary("Power", 1),
    binary("SquaredDifference", 0),
    binary("BitwiseAnd", 13).accepts(Accepts::Bits),
    binary("BitwiseOr", 13).accepts(Accepts::Bits),
    binary("BitwiseXor", 13).accepts(Accepts::Bits),
    binary("BitwiseLeftShift", 15).accepts(Accepts::Integer),
    binary("BitwiseRightShift", 15).accepts(Accepts::Integer),
    comparison("Equal", 1),
    comparison("Greater", 1),
    comparison("GreaterEqual", 1),
    comparison("Less", 1),
    comparison("LessEqual", 1),
    comparison("NotEqual", 1),
    comparison("LogicalAnd", 1).accepts(Accepts::Boolean),
    comparison("LogicalOr", 1).accepts(Accepts::Boolean),
    comparison("LogicalXor", 1).accepts(Accepts::Boolean),
    comparison("Xor", 0).until(1).accepts(Accepts::Boolean),
    Operation::new("Select", 1, select).inputs(3, 3).ties(Ties::Inputs(&[1, 2])).attributes(&[AUTO_BROADCAST, AXIS]),
    Operation::new("PRelu", 0, same).inputs(2, 2),
];

pub(super) const AUTO_BROADCAST: Attr =
    Attr::new("auto_broadcast", AttrKind::Enum(&["none", "explicit", "numpy", "pdpd"])).default("numpy");
pub(super) const AXIS: Attr = Attr::new("auto_broadcast.auto_broadcast_axis", AttrKind::Int).default("0");

const fn unary(name: &'static str, revision: u8) -> Operation {
    Operation::new(name, revision, same).accepts(Accepts::Numeric)
}

const fn binary(name: &'static str, revision: u8) -> Operation {
    Operation::new(name, revision, arithmetic)
        .inputs(2, 2)
        .ties(Ties::All)
        .accepts(Accepts::Numeric)
        .attributes(&[AUTO_BROADCAST, AXIS])
}

const fn comparison(name: &'static str, revision: u8) -> Operation {
    Operation::new(name, revision, boolean).inputs(2, 2).ties(Ties::All).attributes(&[AUTO_BROADCAST, AXIS])
}

/// The output is as the first input.
fn same(cx: &mut Context) -> Result<(), Fault> {
    cx.check_accepted(0, cx.element_type(0))?;
    if cx.operation.name() == "Clamp" {
        let (min, max) = (cx.float("min")?, cx.float("max")?);
        if min > max {
            return Err(Fault::attribute("min", format!("`min` is {min}, more than `max`, which is {max}")));
        }
    }
    cx.output(cx.element_type(0), cx.shape(0).clone());
    Ok(())
}

/// A boolean for each element of the input.
fn question(cx: &mut Context) -> Result<(), Fault> {
    cx.check_accepted(0, cx.element_type(0))?;
    cx.output(ElementType::Boolean, cx.shape(0).clone());
    Ok(())
}

fn arithmetic(cx: &mut Context) -> Result<(), Fault> {
    let element_type = cx.merge_types(&[0, 1])?;
    cx.check_accepted(0, element_type)?;
    let shape = broadcast_operands(cx)?;
    cx.output(element_type, shape);
    Ok(())
}

fn boolean(cx: &mut Context) -> Result<(), Fault> {
    let element_type = cx.merge_types(&[0, 1])?;
    cx.check_accepted(0, element_type)?;
    let shape = broadcast_operands(cx)?;
    cx.output(ElementType::Boolean, shape);
    Ok(())
}

fn select(cx: &mut Context) -> Result<(), Fault> {
    let condition = cx.element_type(0);
    if ![ElementType::Boolean, ElementType::Dynamic].contains(&condition) {
        return Err(Fault::unsupported(0, format!("the condition of `{}` is {condition}, not boolean", cx.layer.ty())));
    }
    let element_type = cx.merge_types(&[1, 2])?;
    let rule = auto_broadcast(cx)?;
    let shape = rule
        .select(cx.shape(0), cx.shape(1), cx.shape(2))
        .map_err(|fault| Fault::shapes(&[0, 1, 2], fault.mismatch.to_string()).rule(broadcast_rule(rule)))?;
    cx.output(element_type, shape);
    Ok(())
}

fn broadcast_operands(cx: &Context) -> Result<Shape, Fault> {
    let rule = auto_broadcast(cx)?;
    let (left, right) = (cx.shape(0), cx.shape(1));
    rule.combine(left, right).map_err(|mismatch| {
        let message = format!("the shapes {left} and {right} of `{}` do not fit together: {mismatch}", cx.layer.ty());
        let fault = Fault::shapes(&[0, 1], message).rule(broadcast_rule(rule));
        match (rule, AutoBroadcast::Numpy.combine(left, right)) {
            (AutoBroadcast::None, Ok(_)) => fault.help("auto_broadcast=\"numpy\" would allow it"),
            _ => fault,
        }
    })
}

/// How the layer brings its operands to one shape.
pub(super) fn auto_broadcast(cx: &Context) -> Result<AutoBroadcast, Fault> {
    Ok(match cx.word("auto_broadcast")? {
        "numpy" => AutoBroadcast::Numpy,
        "pdpd" => AutoBroadcast::Pdpd { axis: cx.int("auto_broadcast.auto_broadcast_axis")? },
        _ => AutoBroadcast::None,
    })
}

fn broadcast_rule(rule: AutoBroadcast) -> String {
    match rule {
        AutoBroadcast::None => "without broadcasting, shapes must be equal".to_owned(),
        AutoBroadcast::Numpy => "numpy broadcasting: from the last axis on, dims must be equal or 1".to_owned(),
        AutoBroadcast::Pdpd { axis } => {
            format!("pdpd broadcasting: the second shape is laid over the first from axis {axis} on")
        }
    }
}
