//! Operations whose output shape is an input: Eye, Multinomial, OneHot, RandomUniform.

use smallvec::SmallVec;

use super::common::{
    INDEX, INDEX_OR_DYNAMIC, attribute_axis, check_one_number, check_rank, check_type, check_type_in, dims_from,
    shape_of_length,
};
use super::evaluate::Evaluate::Exact;
use super::{Accepts, Attr, AttrKind, Context, Fault, Operation, Ties, evaluate};
use crate::findings::message;
use crate::model::shape::{Dim, Shape};

pub(super) const ROWS: &[Operation] = &[
    Operation::new("Eye", 9, eye).evaluate(Exact(evaluate::eye)).inputs(3, 4).attributes(&[OUTPUT_TYPE]),
    Operation::new("Multinomial", 13, multinomial).random().inputs(2, 2).accepts(Accepts::Real).attributes(&[
        Attr::new("convert_type", AttrKind::Type).default("dynamic"),
        Attr::new("with_replacement", AttrKind::Bool).default("false"),
        Attr::new("log_probs", AttrKind::Bool).default("false"),
        Attr::new("global_seed", AttrKind::Int).default("0"),
        Attr::new("op_seed", AttrKind::Int).default("0"),
    ]),
    one_hots(1).until(15).attributes(&[AXIS]),
    one_hots(16).attributes(&[
        AXIS,
        Attr::new("negative_indices_mode", AttrKind::Enum(&["ignore_negative", "normalize"]))
            .default("ignore_negative"),
    ]),
    Operation::new("RandomUniform", 8, random_uniform)
        .random()
        .requires(&["output_type"])
        .evaluate(Exact(evaluate::random_uniform))
        .inputs(3, 3)
        .ties(Ties::Inputs(&[1, 2]))
        .attributes(&[
            Attr::new("output_type", AttrKind::Type).default("dynamic"),
            Attr::new("global_seed", AttrKind::Int).default("0"),
            Attr::new("op_seed", AttrKind::Int).default("0"),
            Attr::new("alignment", AttrKind::Enum(&["tensorflow", "pytorch"])).default("tensorflow"),
        ]),
];

const OUTPUT_TYPE: Attr = Attr::new("output_type", AttrKind::Type).default("dynamic");

const fn one_hots(revision: u8) -> Operation {
    let row = Operation::new("OneHot", revision, one_hot).inputs(4, 4).shaped_by(&[1]).requires(&["axis"]);
    row.ties(Ties::Inputs(&[2, 3])).accepts(Accepts::Bits).evaluate(Exact(evaluate::one_hot))
}

const AXIS: Attr = Attr::new("axis", AttrKind::Int).default("0");

fn length(number: i64) -> Result<Dim, Fault> {
    if number < 0 {
        return Err(Fault::value(&[], message!("{} is not a valid length"; number)));
    }
    Ok(Dim::fixed(number))
}

fn eye(cx: &mut Context) -> Result<(), Fault> {
    let element_type = cx.type_attribute("output_type")?;
    for (input, role) in [(0, "number of rows"), (1, "number of columns"), (2, "diagonal index")] {
        check_type_in(cx, input, role, INDEX)?;
        if cx.shape(input).is_static() {
            check_one_number(cx, input, role)?;
        }
    }
    let mut shape: SmallVec<[Dim; 6]> = SmallVec::new();
    if cx.inputs.len() == 4 {
        check_type_in(cx, 3, "batch shape", INDEX)?;
        check_rank(cx, 3, "batch shape", &[1])?;
        let batch = if cx.shape(3).is_static() { cx.shape_value(3)? } else { None };
        let batch = batch.unwrap_or_else(|| shape_of_length(cx.shape(3)));
        let Some(dims) = batch.dims() else { return cx.finish(element_type, Shape::dynamic()) };
        shape.extend_from_slice(dims);
    }
    for input in 0..2 {
        let dim = dims_from(cx, input, length)?;
        shape.push(dim.and_then(|dim| dim.dims()?.first().copied()).unwrap_or(Dim::ANY));
    }
    cx.finish(element_type, shape.into_iter().collect())
}

fn multinomial(cx: &mut Context) -> Result<(), Fault> {
    cx.check_accepted(0, cx.element_type(0))?;
    check_type(cx, 1, "number of samples", Accepts::Integer)?;
    check_rank(cx, 0, "probabilities", &[2])?;
    check_one_number(cx, 1, "number of samples")?;
    let shape = match cx.shape(0).dims() {
        Some(&[batch, _]) => {
            let samples = cx.shape_value(1)?;
            let samples = samples.and_then(|samples| samples.dims()?.first().copied());
            [batch, samples.unwrap_or(Dim::ANY)].into_iter().collect()
        }
        _ => Shape::dynamic(),
    };
    cx.finish(cx.type_attribute("convert_type")?, shape)
}

fn one_hot(cx: &mut Context) -> Result<(), Fault> {
    check_type(cx, 0, "indices", Accepts::Bits)?;
    check_type(cx, 1, "depth", Accepts::Bits)?;
    cx.merge_types(&[2, 3])?;
    for (input, role) in [(1, "depth"), (2, "on value"), (3, "off value")] {
        if cx.shape(input).is_static() {
            check_rank(cx, input, role, &[0])?;
        }
    }
    let shape = match cx.shape(0).dims() {
        None => Shape::dynamic(),
        Some(dims) => {
            let axis = attribute_axis(cx, "axis", cx.int("axis")?, dims.len() + 1)?;
            let depth = dims_from(cx, 1, length)?;
            let depth = depth.and_then(|depth| depth.dims().filter(|dims| dims.len() == 1)?.first().copied());
            let (before, behind) = dims.split_at(axis.min(dims.len()));
            before.iter().copied().chain([depth.unwrap_or(Dim::ANY)]).chain(behind.iter().copied()).collect()
        }
    };
    cx.finish(cx.element_type(2), shape)
}

fn random_uniform(cx: &mut Context) -> Result<(), Fault> {
    let element_type = cx.type_attribute("output_type")?;
    let drawn = INDEX.contains(&element_type) || element_type.is_float() && Accepts::Real.takes(element_type);
    if !drawn {
        let message = message!("`RandomUniform` cannot generate numbers of type {}"; element_type);
        return Err(Fault::attribute("output_type", message));
    }
    check_type_in(cx, 0, "shape", INDEX_OR_DYNAMIC)?;
    for (input, role) in [(1, "minimum"), (2, "maximum")] {
        check_type_in(cx, input, role, &[element_type])?;
        check_one_number(cx, input, role)?;
    }
    check_rank(cx, 0, "shape", &[1])?;
    if let Some(&[least, ..]) = cx.reals(1)?.as_deref()
        && let Some(&[most, ..]) = cx.reals(2)?.as_deref()
        && (least >= most || least.is_nan() || most.is_nan())
    {
        let message = message!("`RandomUniform` has an empty range: minimum {}, maximum {}"; least, most);
        return Err(Fault::value(&[1, 2], message));
    }
    let shape = cx.shape_value(0)?.unwrap_or_else(|| {
        // OpenVINO uses the upper bound of the list's length.
        let length = cx.shape(0).dims().and_then(|dims| dims.first()?.upper());
        length.and_then(|length| usize::try_from(length).ok()).map_or_else(Shape::dynamic, Shape::of_rank)
    });
    cx.finish(element_type, shape)
}
