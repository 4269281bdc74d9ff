//! Replacement of TopK with stable order, which older revisions lack.

use typelift_promote::ElementType;

use super::facts::{Written, axis_of, integer, list, rank};
use crate::rewrite::Match;

/// Types of `k` that every release accepts.
const COUNTS: [ElementType; 3] = [ElementType::I8, ElementType::I32, ElementType::I64];

pub(super) fn unstable(m: &Match) -> Written {
    Ok(if m.element_type("k").is_some_and(|ty| COUNTS.contains(&ty)) {
        "(v, i) = TopK-3(x, k) {...}".to_owned()
    } else {
        "(v, i) = TopK-3(x, Convert(k) {destination_type=i64}) {...}".to_owned()
    })
}

/// Writes a TopK whose `k` has a type that early releases accept.
pub(super) fn signed_count(m: &Match) -> Written {
    if m.element_type("k").is_some_and(|ty| COUNTS.contains(&ty)) {
        Err("every release accepts the type of its input k".to_owned())
    } else {
        unstable(m)
    }
}

/// Writes a TopK of one element that returns the first of equal elements. `TopK-3` may return any of them.
pub(super) fn first_of_stable(m: &Match) -> Written {
    if m.constant("k") != Some(&[1.0]) {
        return Err("TopK-3 does not keep the order of equal elements".to_owned());
    }
    let rank = rank(m, "x")?;
    let axis = axis_of(integer(m, "a")?, || Ok(rank))?;
    let reduction = if m.attribute("m")?.eq_ignore_ascii_case("min") { "ReduceMin" } else { "ReduceMax" };
    let best = format!("{reduction}(x, {axis}) {{keep_dims=true}}");
    let (places, size) = places(m, axis as usize, rank);
    let first = format!("ReduceMin(Select(Equal(x, {best}), {places}, {size}), {axis}) {{keep_dims=true}}");
    Ok(format!("({best}, Convert({first}) {{destination_type=$t}})"))
}

fn places(m: &Match, axis: usize, rank: usize) -> (String, String) {
    let size = match m.shape("x").and_then(|shape| shape.dims()?.get(axis)?.value()) {
        Some(size) => size.to_string(),
        None => format!("Gather-7(ShapeOf-3(x) {{output_type=i64}}, {axis}, 0)"),
    };
    let places = format!("Range-4(0, {size}, 1) {{output_type=i64}}");
    if axis + 1 < rank { (format!("Unsqueeze({places}, {})", list(1..rank - axis)), size) } else { (places, size) }
}

/// Writes a stable TopK. `TopK-3` finds the smallest of the k largest elements. All greater elements are selected, and
/// as many of the equal ones as needed, the first ones first. The position of an element in the result is the number
/// of selected elements before it.
pub(super) fn stable(m: &Match) -> Written {
    let rank = rank(m, "x")?;
    let axis = axis_of(integer(m, "a")?, || Ok(rank))? as usize;
    let (better, worst) = match m.attribute("m")?.to_ascii_lowercase().as_str() {
        "min" => ("Less", "ReduceMax"),
        _ => ("Greater", "ReduceMin"),
    };
    let (places, size) = places(m, axis, rank);
    let wide = m.element_type("k") == Some(ElementType::I64);
    let count = if wide { "k" } else { "Convert(k) {destination_type=i64}" };
    let top = |of: &str, output: &str, mode: &str| {
        format!("TopK-3({of}, {count}){output} {{axis={axis}, mode={mode}, sort=value, index_element_type=i64}}")
    };
    let number = |mask: &str| format!("Convert({mask}) {{destination_type=i64}}");
    let best = top("x", "", "$m");
    let worst = format!("{worst}({best}, {axis}) {{keep_dims=true}}");
    let (ahead, equal) = (format!("{better}(x, {worst})"), format!("Equal(x, {worst})"));
    let taken = format!("ReduceSum({}, {axis}) {{keep_dims=true}}", number(&ahead));
    let nth = format!("CumSum({}, {axis}) {{exclusive=false, reverse=false}}", number(&equal));
    let first = format!("LessEqual(Add({nth}, {taken}), {count})");
    let chosen = format!("LogicalOr({ahead}, LogicalAnd({equal}, {first}))");
    let index = top(&format!("Select({chosen}, {places}, {size})"), "", "min");
    let value = format!("GatherElements-6(x, {index}) {{axis={axis}}}");
    if m.attribute("s")?.eq_ignore_ascii_case("index") {
        return Ok(format!("({value}, Convert({index}) {{destination_type=$t}})"));
    }
    let along = |tensor: &str, axis: usize| format!("Unsqueeze({tensor}, [{axis}])");
    let (one, other) = (along(&value, axis + 1), along(&value, axis));
    let before =
        format!("LogicalAnd(Equal({other}, {one}), Less({}, {}))", along(&index, axis), along(&index, axis + 1));
    let before = number(&format!("LogicalOr({better}({other}, {one}), {before})"));
    let order = top(&format!("ReduceSum({before}, {}) {{keep_dims=false}}", axis + 1), ".1", "min");
    let sorted = |tensor: &str| format!("GatherElements-6({tensor}, {order}) {{axis={axis}}}");
    Ok(format!("({}, Convert({}) {{destination_type=$t}})", sorted(&value), sorted(&index)))
}
