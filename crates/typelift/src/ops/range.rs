//! Range.

use ElementType::{Boolean, I4, U1, U4, U32};
use typelift_promote::ElementType;

use super::common::check_rank;
use super::evaluate::Evaluate;
use super::{Attr, AttrKind, Context, Fault, Operation, Spread, Ties, evaluate};
use crate::findings::message;
use crate::model::shape::{Dim, Shape};
use crate::ops::values::array;

pub(super) const ROWS: &[Operation] = &[
    Operation::new("Range", 0, range).until(3).inputs(3, 3).ties(Ties::All).evaluate(Evaluate::Exact(evaluate::range)),
    Operation::new("Range", 4, range)
        .spreads_on(&[Spread::Range])
        .inputs(3, 3)
        .evaluate(Evaluate::Exact(evaluate::range))
        .attributes(&[Attr::new("output_type", AttrKind::Type).default("dynamic")]),
];

fn range(cx: &mut Context) -> Result<(), Fault> {
    const ROLES: [&str; 3] = ["start", "stop", "step"];
    let (element_type, refused): (_, &[_]) = match cx.operation.revision {
        0 => (cx.merge_types(&[0, 1, 2])?, &[Boolean, I4, U1, U4]),
        _ => (cx.type_attribute("output_type")?, &[Boolean]),
    };
    for (input, role) in ROLES.into_iter().enumerate() {
        let ty = cx.element_type(input);
        if refused.contains(&ty) {
            let message = message!("the {} of `Range` is {}, not a number"; role, ty);
            return Err(Fault::unsupported(input, message).help("insert a Convert before it"));
        }
        check_rank(cx, input, role, &[0])?;
    }
    if refused.contains(&element_type) {
        let message = message!("`output_type` of `Range` is {}, which is not numeric"; element_type);
        return Err(Fault::attribute("output_type", message));
    }
    let mut known = [None; 3];
    for (input, role) in ROLES.into_iter().enumerate() {
        known[input] = cx.reals(input)?.and_then(|values| values.first().copied());
        match known[input] {
            Some(value) if !value.is_finite() || (role == "step" && value == 0.0) => {
                return Err(Fault::value(&[input], message!("the {} of `Range` is {}"; role, value)));
            }
            _ => {}
        }
    }
    let length = match known {
        [Some(start), Some(stop), Some(step)] => {
            // Fractions are truncated first, if the result is an integer.
            let values = [start, stop, step];
            let [start, stop, step] = if element_type.is_integer() { values.map(f64::trunc) } else { values };
            let is_empty = (step > 0.0 && start >= stop) || (step < 0.0 && start <= stop);
            let steps = if is_empty { 0.0 } else { ((stop - start).abs() / step.abs()).ceil() };
            // OpenVINO counts in 32 bits.
            Dim::fixed(array::truncate(U32, steps) as i64)
        }
        _ => Dim::ANY,
    };
    cx.finish(element_type, Shape::from_iter([length]))
}
