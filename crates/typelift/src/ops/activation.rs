//! Activation functions with parameters that are inputs.

use super::common::check_rank;
use super::evaluate::Evaluate::Exact;
use super::{Accepts, Context, Fault, Operation, Ties, evaluate};
use crate::findings::message;

pub(super) const ROWS: &[Operation] = &[
    Operation::new("HardSigmoid", 0, hard_sigmoid).inputs(3, 3).ties(Ties::All),
    Operation::new("Selu", 0, selu).inputs(3, 3).ties(Ties::All).accepts(Accepts::Real),
    Operation::new("Swish", 4, swish)
        .evaluate(Exact(evaluate::swish))
        .inputs(1, 2)
        .ties(Ties::All)
        .accepts(Accepts::Real),
];

fn hard_sigmoid(cx: &mut Context) -> Result<(), Fault> {
    require_same_types(cx)?;
    for (input, name) in [(1, "alpha"), (2, "beta")] {
        if cx.shape(input).is_static() {
            check_rank(cx, input, name, &[0])?;
        }
    }
    cx.finish(cx.element_type(0), cx.shape(0).clone())
}

/// An error if the inputs have different types, even if one of them is dynamic.
fn require_same_types(cx: &Context) -> Result<(), Fault> {
    let first = cx.element_type(0);
    match (1..cx.inputs.len()).find(|&input| cx.element_type(input) != first) {
        None => Ok(()),
        Some(input) => {
            let message = message!(
                "`{}` needs inputs of one type, but has {} and {}";
                cx.ty(), first, cx.element_type(input)
            );
            Err(Fault::types(&[0, input], message).help("insert a Convert before the input whose type should change"))
        }
    }
}

fn selu(cx: &mut Context) -> Result<(), Fault> {
    let element_type = cx.merge_types(&[0, 1, 2])?;
    cx.check_accepted(0, element_type)?;
    cx.finish(element_type, cx.shape(0).clone())
}

fn swish(cx: &mut Context) -> Result<(), Fault> {
    cx.check_accepted(0, cx.element_type(0))?;
    if cx.inputs.len() == 2 {
        require_same_types(cx)?;
        check_rank(cx, 1, "beta", &[0])?;
    }
    cx.finish(cx.element_type(0), cx.shape(0).clone())
}
