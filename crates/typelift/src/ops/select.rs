//! Operations that choose elements by their values: TopK, NonZero.

use typelift_promote::ElementType;

use super::common::{attribute_axis, check_rank, check_type, index_type};
use super::{Accepts, Attr, AttrKind, Context, Fault, Operation, evaluate};
use crate::infer::value::Evaluate;
use crate::shape::{Dim, Shape};

pub(super) const ROWS: &[Operation] = &[
    Operation::new("NonZero", 3, non_zero).evaluate(Evaluate::Exact(evaluate::non_zero)).attributes(&[Attr::new(
        "output_type",
        AttrKind::Type,
    )
    .default("i64")]),
    Operation::new("TopK", 1, top_k).evaluate(Evaluate::Exact(evaluate::top_k)).until(2).inputs(2, 2).attributes(TOP_K),
    Operation::new("TopK", 3, top_k)
        .evaluate(Evaluate::Exact(evaluate::top_k))
        .until(10)
        .inputs(2, 2)
        .attributes(TOP_K),
    Operation::new("TopK", 11, top_k).evaluate(Evaluate::Exact(evaluate::top_k)).inputs(2, 2).attributes(&[
        AXIS,
        MODE,
        SORT,
        INDEX_TYPE,
        Attr::new("stable", AttrKind::Bool).default("false"),
    ]),
];

const AXIS: Attr = Attr::new("axis", AttrKind::Int).default("0");
const MODE: Attr = Attr::new("mode", AttrKind::Enum(&["max", "min"])).default("max");
const SORT: Attr = Attr::new("sort", AttrKind::Enum(&["none", "index", "value"])).default("none");
const INDEX_TYPE: Attr = Attr::new("index_element_type", AttrKind::Type).default("i32");
const TOP_K: &[Attr] = &[AXIS, MODE, SORT, INDEX_TYPE];

fn top_k(cx: &mut Context) -> Result<(), Fault> {
    check_type(cx, 1, "k", Accepts::Integer)?;
    if cx.operation.revision() == 1
        && ![ElementType::I8, ElementType::I32, ElementType::I64].contains(&cx.element_type(1))
    {
        let message =
            format!("the k of `TopK` in opset1 and opset2 must be i8, i32 or i64, and is {}", cx.element_type(1));
        return Err(Fault::unsupported(1, message).help("put a Convert before it, or take `TopK` of opset3"));
    }
    if cx.operation.revision() == 11 && cx.bool("stable")? && cx.word("sort")? == "none" {
        return Err(Fault::attribute("sort", "a stable `TopK` needs `sort` to be value or index, and it is none"));
    }
    let axis = cx.int("axis")?;
    let index_type = index_type(cx, "index_element_type")?;
    check_rank(cx, 1, "k", &[0])?;
    let mut shape = cx.shape(0).clone();
    if let Some(dims) = shape.dims_mut() {
        let axis = attribute_axis(cx, "axis", axis, dims.len())?;
        let k = wanted(cx)?;
        if let Some(dim) = dims.get_mut(axis) {
            *dim = match k {
                Some(k) if k.is_fixed() => k,
                k => {
                    let k = k.unwrap_or(Dim::ANY);
                    let upper = dim.upper().map(|length| k.upper().map_or(length, |k| k.min(length)));
                    Dim::between(dim.lower().min(k.lower()), upper.unwrap_or(i64::MAX))
                }
            };
        }
    }
    cx.output(cx.element_type(0), shape.clone());
    cx.output(index_type, shape);
    Ok(())
}

/// How many elements a TopK is to choose.
fn wanted(cx: &mut Context) -> Result<Option<Dim>, Fault> {
    if !cx.is_constant(1) {
        return Ok(cx.shape_value(1)?.and_then(|k| k.dims()?.first().copied()));
    }
    let k = cx.numbers(1)?.and_then(|k| k.first().copied());
    match k {
        Some(k) if k < 0 => Err(Fault::value(&[1], format!("`TopK` is to choose {k} elements"))),
        k => Ok(k.map(Dim::fixed)),
    }
}

fn non_zero(cx: &mut Context) -> Result<(), Fault> {
    let element_type = index_type(cx, "output_type")?;
    let shape = match cx.shape(0).dims() {
        None | Some([]) => Shape::of_rank(2),
        Some(dims) => {
            let count = dims.iter().fold(Dim::between(0, 1), |count, &dim| count * dim);
            [Dim::fixed(dims.len() as i64), count].into_iter().collect()
        }
    };
    cx.output(element_type, shape);
    Ok(())
}
