//! Facts about a match that replacements depend on: shapes, constants and attributes.

use crate::rewrite::Match;

/// The replacement in the [notation](crate::rewrite::notation), or the reason why there is none.
pub(super) type Written = Result<String, String>;

pub(super) fn list<T: ToString>(numbers: impl IntoIterator<Item = T>) -> String {
    let numbers: Vec<_> = numbers.into_iter().map(|number| number.to_string()).collect();
    format!("[{}]", numbers.join(", "))
}

pub(super) fn rank(m: &Match, name: &str) -> Result<usize, String> {
    m.shape(name).and_then(|shape| shape.rank()).ok_or_else(|| format!("the rank of {} is not known", input(m, name)))
}

pub(super) fn dims(m: &Match, name: &str, from: usize) -> Result<Vec<u64>, String> {
    let dims = m.shape(name).and_then(|shape| shape.dims());
    let dims = dims.and_then(|dims| dims.get(from..)?.iter().map(|dim| dim.value()?.try_into().ok()).collect());
    dims.ok_or_else(|| format!("the shape of {} is not known", input(m, name)))
}

pub(super) fn integers(m: &Match, name: &str) -> Option<Vec<i64>> {
    Some(m.constant(name)?.iter().map(|&number| number as i64).collect())
}

pub(super) fn integer(m: &Match, variable: &str) -> Result<i64, String> {
    let text = m.attribute(variable)?;
    text.trim().parse().map_err(|_| format!("`{text}` is not a number"))
}

pub(super) fn axis_of(axis: i64, rank: impl FnOnce() -> Result<usize, String>) -> Result<i64, String> {
    if axis >= 0 { Ok(axis) } else { Ok(axis + rank()? as i64) }
}

/// The name of a tensor for messages, such as ``input 1``, because users do not know a rule's variables.
fn input(m: &Match, name: &str) -> String {
    let position = m.inputs.iter().position(|&tensor| m.tensor(name) == Ok(tensor));
    position.map_or_else(|| "an input".to_owned(), |position| format!("input {position}"))
}

pub(super) fn is_true(text: &str) -> bool {
    ["true", "1"].contains(&text.trim().to_ascii_lowercase().as_str())
}
