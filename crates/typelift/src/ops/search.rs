//! Operations that find elements by their values: Bucketize, NonZero, SearchSorted, TopK, Unique.

use typelift_promote::{ElementType, Kind};

use super::common::{
    INDEX, attribute_axis, check_one_number, check_rank, check_type, check_type_in, checked_axis, dims_from, index_type,
};
use super::evaluate::Evaluate;
use super::{Accepts, Attr, AttrKind, Context, Fault, Operation, Ties, evaluate};
use crate::findings::message;
use crate::model::shape::{Dim, Shape};
use crate::ops::values::array::{Array, Data};

pub(super) const ROWS: &[Operation] = &[
    Operation::new("Bucketize", 3, bucketize).inputs(2, 2).accepts(Accepts::NotBoolean).attributes(&[
        Attr::new("output_type", AttrKind::Type).default("dynamic"),
        Attr::new("with_right_bound", AttrKind::Bool).default("true"),
    ]),
    Operation::new("NonZero", 3, non_zero).evaluate(Evaluate::Exact(evaluate::non_zero)).attributes(&[OUTPUT_TYPE]),
    Operation::new("SearchSorted", 15, search_sorted).inputs(2, 2).ties(Ties::All).attributes(&[
        Attr::new("right_mode", AttrKind::Bool).default("false"),
        Attr::new("output_type", AttrKind::Type).default("i64"),
    ]),
    top_ks(1).until(2).attributes(TOP_K),
    top_ks(3).until(10).attributes(TOP_K),
    top_ks(11).attributes(&[AXIS, MODE, SORT, INDEX_TYPE, Attr::new("stable", AttrKind::Bool).default("false")]),
    Operation::new("Unique", 10, unique).inputs(1, 2).attributes(&[
        Attr::new("sorted", AttrKind::Bool).default("true"),
        Attr::new("index_element_type", AttrKind::Type).default("i64"),
        Attr::new("count_element_type", AttrKind::Type).default("i64"),
    ]),
];

const OUTPUT_TYPE: Attr = Attr::new("output_type", AttrKind::Type).default("i64");

const fn top_ks(revision: u8) -> Operation {
    let row = Operation::new("TopK", revision, top_k).inputs(2, 2).shaped_by(&[1]);
    row.requires(&["axis", "mode", "sort"]).evaluate(Evaluate::Exact(evaluate::top_k))
}

const AXIS: Attr = Attr::new("axis", AttrKind::Int).default("0");
const MODE: Attr = Attr::new("mode", AttrKind::Enum(&["max", "min"])).default("max");
const SORT: Attr = Attr::new("sort", AttrKind::Enum(&["none", "index", "value"])).default("none");
const INDEX_TYPE: Attr = Attr::new("index_element_type", AttrKind::Type).default("i32");
const TOP_K: &[Attr] = &[AXIS, MODE, SORT, INDEX_TYPE];

fn top_k(cx: &mut Context) -> Result<(), Fault> {
    check_type(cx, 1, "k", Accepts::Integer)?;
    if cx.operation.revision == 1 {
        check_type_in(cx, 1, "k", &[ElementType::I8, ElementType::I32, ElementType::I64])?;
    }
    if cx.operation.revision == 11 && cx.bool("stable")? && cx.word("sort")? == "none" {
        return Err(Fault::attribute("sort", "a stable `TopK` needs `sort` to be value or index, but it is `none`"));
    }
    let axis = cx.int("axis")?;
    let index_type = index_type(cx, "index_element_type")?;
    check_rank(cx, 1, "k", &[0])?;
    let mut shape = cx.shape(0).clone();
    if let Some(dims) = shape.dims_mut() {
        let axis = attribute_axis(cx, "axis", axis, dims.len())?;
        let k = dims_from(cx, 1, |k| match k {
            0.. => Ok(Dim::fixed(k)),
            _ => Err(Fault::value(&[1], message!("`TopK` has k = {}, which is not a valid number of elements"; k))),
        })?;
        let k = k.as_ref().and_then(|k| k.dims()?.first().copied());
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
    cx.finish(index_type, shape)
}

fn non_zero(cx: &mut Context) -> Result<(), Fault> {
    let element_type = index_type(cx, "output_type")?;
    let known = cx.exact(0).and_then(|bounds| evaluate::non_zero_places(&bounds.lower));
    let shape = match (known, cx.shape(0).dims()) {
        (Some((rows, places)), _) => Shape::fixed([rows as i64, places.len() as i64]),
        (None, None | Some([])) => Shape::of_rank(2),
        (None, Some(dims)) => {
            let count = dims.iter().fold(Dim::between(0, 1), |count, &dim| count * dim);
            [Dim::fixed(dims.len() as i64), count].into_iter().collect()
        }
    };
    cx.finish(element_type, shape)
}

fn bucketize(cx: &mut Context) -> Result<(), Fault> {
    for input in 0..2 {
        cx.check_accepted(input, cx.element_type(input))?;
    }
    check_rank(cx, 1, "buckets", &[1])?;
    cx.finish(index_type(cx, "output_type")?, cx.shape(0).clone())
}

fn search_sorted(cx: &mut Context) -> Result<(), Fault> {
    cx.merge_types(&[0, 1])?;
    let element_type = index_type(cx, "output_type")?;
    let (sorted, values) = (cx.shape(0), cx.shape(1));
    let shape = match (sorted.dims(), values.dims()) {
        (Some([]), _) => return Err(Fault::shapes(&[0], "the sorted sequence of `SearchSorted` must not be a scalar")),
        // A single sorted sequence can be searched for values of any shape.
        (Some([_]) | None, _) => values.clone(),
        (Some([outer @ .., _]), None) => outer.iter().copied().chain([Dim::ANY]).collect(),
        (Some([outer @ .., _]), Some(dims)) => {
            let rows: Shape = outer.iter().copied().chain([dims.last().copied().unwrap_or(Dim::ANY)]).collect();
            values.merge(&rows).map_err(|mismatch| {
                let message = message!(
                    "the sequences {} of `SearchSorted` contradict the values {}: {}";
                    sorted, values, mismatch
                );
                Fault::shapes(&[0, 1], message)
                    .rule("the input must have one sequence, or one for each row of the values")
            })?
        }
    };
    cx.finish(element_type, shape)
}

fn unique(cx: &mut Context) -> Result<(), Fault> {
    let indices = index_type(cx, "index_element_type")?;
    let counts = index_type(cx, "count_element_type")?;
    let axis = unique_axis(cx)?;
    let data = cx.shape(0);
    let constant = if cx.is_constant(0) { cx.exact(0) } else { None };
    let total = data.element_count().map(|count| i64::try_from(count).unwrap_or(i64::MAX));
    // The items to compare: slices along an axis, or all elements.
    let all = match axis {
        Some(axis) => data.dims().and_then(|dims| dims.get(axis).copied()).unwrap_or(Dim::ANY),
        None => total.filter(|&total| total > 0).map_or(Dim::ANY, Dim::fixed),
    };
    let distinct = match constant {
        Some(constant) => Dim::fixed(count_distinct(cx, &constant.lower, axis)?),
        // OpenVINO searches an empty list here, and returns a dimension that no length satisfies.
        None if axis.is_none() && total == Some(0) => Dim::between(1, 0),
        None if all == Dim::ANY || all == Dim::fixed(0) => all,
        None => Dim::between(1, all.upper().unwrap_or(i64::MAX)),
    };
    // OpenVINO limits the number of first positions by the number of all elements, even if it compares slices.
    let places = match total {
        _ if distinct == Dim::fixed(0) || cx.is_constant(0) => distinct,
        Some(total @ 1..) => Dim::between(1, total),
        _ => Dim::ANY,
    };
    let mut values = if axis.is_some() { data.clone() } else { Shape::from_iter([distinct]) };
    if let Some(dim) = axis.and_then(|axis| values.dims_mut()?.get_mut(axis)) {
        *dim = distinct;
    }
    cx.output(cx.element_type(0), values);
    for (element_type, length) in [(indices, places), (indices, all), (counts, places)] {
        cx.output(element_type, Shape::from_iter([length]));
    }
    Ok(())
}

/// The axis of a Unique, if there is one. It is not checked for data of unknown rank.
fn unique_axis(cx: &mut Context) -> Result<Option<usize>, Fault> {
    // If the data is a Constant, OpenVINO reads the axis only if it is a Constant too.
    if cx.inputs.len() < 2 || cx.is_constant(0) && !cx.is_constant(1) {
        return Ok(None);
    }
    check_type_in(cx, 1, "axis", INDEX)?;
    check_one_number(cx, 1, "axis")?;
    let axis = if cx.is_constant(1) { cx.numbers(1)? } else { None };
    let Some(&[axis]) = axis.as_deref() else {
        return Err(Fault::value(&[1], "the axis of `Unique` must come from a Constant"));
    };
    let Some(rank) = cx.shape(0).rank() else { return Ok(Some(0)) };
    if rank == 0 {
        return Err(Fault::shapes(&[0], "the data of `Unique` is a scalar, which has no axis"));
    }
    checked_axis(cx, 1, axis, rank).map(Some)
}

fn count_distinct(cx: &Context, constant: &Array, axis: Option<usize>) -> Result<i64, Fault> {
    let ty = constant.element_type;
    if ty.bits() < 8 && ty.kind() != Kind::Boolean || ty.is_float() && ty.bits() == 8 {
        return Err(Fault::unsupported(0, message!("`{}` cannot compare constants of type {}"; cx.ty(), ty)));
    }
    let keys: Vec<i128> = match &constant.data {
        Data::Ints(values) => values.iter().collect(),
        // Positive and negative zero are equal.
        Data::Floats(values) => values.iter().map(|&value| i128::from((value + 0.0).to_bits())).collect(),
    };
    if keys.is_empty() {
        return Err(Fault::shapes(&[0], message!("`{}` cannot be computed for an empty constant"; cx.ty())));
    }
    let (length, inner) = match axis.and_then(|axis| Some((constant.dims.get(axis)?, constant.dims.get(axis + 1..)?))) {
        Some((&length, behind)) => (length, behind.iter().product()),
        None => (keys.len(), 1),
    };
    let mut slices = vec![Vec::new(); length];
    for (position, key) in keys.into_iter().enumerate() {
        if let Some(slice) = slices.get_mut(position / inner % length) {
            slice.push(key);
        }
    }
    slices.sort_unstable();
    slices.dedup();
    Ok(slices.len() as i64)
}
