//! Conversions of the element type.

use typelift_promote::openvino::{self, Options};
use typelift_promote::{Category, ElementType, Operand};

use super::evaluate::Evaluate;
use super::{Attr, AttrKind, Attributes, Context, Fault, LayerKind, Operation, Spread, evaluate};
use crate::findings::{Code, Text};
use crate::model::graph::OutputPort;
use crate::model::shape::Shape;

pub(super) const ROWS: &[Operation] = &[
    Operation::new("Convert", 0, convert)
        .spreads_on(&[Spread::Kept, Spread::Range])
        .requires(&["destination_type"])
        .kind(LayerKind::Convert)
        .evaluate(Evaluate::FromBounds(evaluate::convert, |it, known| evaluate::ends(it, known, evaluate::convert_end)))
        .and(17)
        .attributes(&[Attr::new("destination_type", AttrKind::Type).default("dynamic")]),
    Operation::new("ConvertLike", 1, |cx| cx.finish(cx.element_type(1), cx.shape(0).clone()))
        .kind(LayerKind::ConvertLike)
        .inputs(2, 2),
    Operation::new("ConvertPromoteTypes", 14, convert_promote_types)
        .kind(LayerKind::ConvertPromoteTypes)
        .inputs(2, 2)
        .attributes(&[
            Attr::new("promote_unsafe", AttrKind::Bool).default("false"),
            Attr::new("pytorch_scalar_promotion", AttrKind::Bool).default("false"),
            Attr::new("u64_integer_promotion_target", AttrKind::Type).default("f32").of_rule(),
        ]),
];

fn convert(cx: &mut Context) -> Result<(), Fault> {
    cx.finish(cx.type_attribute("destination_type")?, cx.shape(0).clone())
}

pub(crate) fn promotion(attributes: &Attributes, inputs: &[&OutputPort]) -> Result<(Options, [Operand; 2]), Fault> {
    let options = Options {
        promote_unsafe: attributes.bool("promote_unsafe")?,
        pytorch_scalar_promotion: attributes.bool("pytorch_scalar_promotion")?,
        u64_integer_promotion_target: attributes.type_attribute("u64_integer_promotion_target")?,
    };
    let operands = [0, 1].map(|input| match inputs.get(input) {
        Some(port) => Operand::new(port.element_type, category(&port.shape)),
        None => Operand::new(ElementType::Dynamic, Category::UnknownRank),
    });
    Ok((options, operands))
}

fn convert_promote_types(cx: &mut Context) -> Result<(), Fault> {
    let (options, [left, right]) = promotion(&cx.attributes, cx.inputs)?;
    let common = openvino::promote(left, right, &options).map_err(|refusal| {
        Fault { inputs: [0, 1].into_iter().collect(), ..Fault::other(Code::NoCommonType, Text(refusal)) }
            .rule("these inputs cannot be promoted")
            .help(Text(openvino::suggestion(left, right, &options)))
    })?;
    if let Some(quirk) = openvino::quirk(left, right, &options) {
        cx.lint(Fault { inputs: [0, 1].into_iter().collect(), ..Fault::other(Code::LossySafePromotion, Text(quirk)) });
    }
    if common == ElementType::Dynamic {
        let message = "the common type is unknown before run time, so ConvertPromoteTypes is not replaced";
        let lint = Fault::other(Code::UndecidedPromotion, message);
        cx.lint(
            Fault { inputs: [0, 1].into_iter().collect(), ..lint }
                .help("declare the types and ranks of the model's inputs"),
        );
    }
    for input in 0..2 {
        cx.output(common, cx.shape(input).clone());
    }
    Ok(())
}

fn category(shape: &Shape) -> Category {
    match shape.rank() {
        None => Category::UnknownRank,
        Some(0) => Category::ZeroDim,
        Some(_) => Category::Dimensioned,
    }
}
