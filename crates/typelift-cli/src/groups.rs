//! Changes that are alike in many places, such as in each block of a model, as one line.

use std::collections::{BTreeMap, HashMap};

use typelift::diff::{Change, ChangeKind};
use typelift::map::numbered_prefix;

use crate::columns::count;
use crate::listing::Clean;

/// The fewest changes that are one line.
const LEAST: usize = 3;

/// What changes have in common that are one line: their kind, the family of blocks they are in, and what changed.
type Key<'a> = (ChangeKind, Option<&'a str>, String);

/// Changes that are alike, the first of them first; one that is like no others is alone. In the order of the first ones.
pub(crate) fn groups<'a>(changes: &[&'a Change]) -> Vec<Vec<&'a Change>> {
    let mut places = HashMap::<Key<'_>, usize>::new();
    let mut groups: Vec<Vec<&Change>> = Vec::new();
    for &change in changes {
        let place =
            *places.entry((change.kind, block(change).map(|(family, _)| family), what(change))).or_insert(groups.len());
        match groups.get_mut(place) {
            Some(group) => group.push(change),
            None => groups.push(vec![change]),
        }
    }
    let (alike, few): (Vec<_>, Vec<_>) = groups.into_iter().partition(|group| group.len() >= LEAST);
    let mut groups: Vec<Vec<&Change>> = few.into_iter().flatten().map(|change| vec![change]).chain(alike).collect();
    let places: HashMap<*const Change, usize> =
        changes.iter().enumerate().map(|(at, change)| (std::ptr::from_ref(*change), at)).collect();
    groups.sort_by_key(|group| group.first().and_then(|first| places.get(&std::ptr::from_ref(*first))).copied());
    groups
}

/// The block that a change is in, `layers.` and 12 for `model.layers.12.mlp/Add`.
fn block(change: &Change) -> Option<(&str, u64)> {
    let prefix = numbered_prefix(&change.path)?;
    let family = prefix.trim_end_matches(|c: char| c.is_ascii_digit());
    let number = prefix[family.len()..].parse().ok()?;
    let name = family[..family.len().saturating_sub(1)].rfind(['.', '/']).map_or(0, |at| at + 1);
    Some((&family[name..], number))
}

/// What changed, without the names and shapes that differ from block to block: `Convert {destination_type=f16} : f16`.
pub(crate) fn what(change: &Change) -> String {
    let side = |side: &Option<String>| Clean(&without_shapes(side.as_deref().unwrap_or("none"))).to_string();
    let operation = Clean(&change.operation);
    let subject = change.subject.as_deref().unwrap_or_default();
    match change.kind {
        ChangeKind::Added | ChangeKind::Removed => {
            let line = change.after.as_ref().or(change.before.as_ref()).map_or("", String::as_str);
            let (call, types) = line.rsplit_once(" : ").unwrap_or((line, ""));
            let attributes = call.rfind(" {").filter(|_| call.ends_with('}')).map_or("", |start| &call[start..]);
            // Of a constant the values differ.
            let types = without_shapes(types.split(" = ").next().unwrap_or_default());
            let colon = if types.is_empty() { "" } else { " : " };
            Clean(&format!("{operation}{attributes}{colon}{types}")).to_string()
        }
        ChangeKind::Input => format!("{} of {operation}", Clean(subject)),
        ChangeKind::Shape => format!("shape of {operation}"),
        ChangeKind::Names => "name".to_owned(),
        _ => {
            let subject = if subject.is_empty() { change.kind.name() } else { subject };
            format!("{} of {operation} {} → {}", Clean(subject), side(&change.before), side(&change.after))
        }
    }
}

/// `f32, i64` of `f32[2,?], i64[]`.
fn without_shapes(types: &str) -> String {
    let mut depth = 0_usize;
    let keep = |c: &char| {
        depth = if *c == '[' { depth + 1 } else { depth };
        let kept = depth == 0;
        depth = if *c == ']' { depth.saturating_sub(1) } else { depth };
        kept
    };
    types.chars().filter(keep).collect()
}

/// How often changes that are alike occur, and where: `2 in each of layers.0–31`, `5 in layers.0, 2–4`, `12`.
pub(crate) fn places(group: &[&Change]) -> String {
    let mut blocks = BTreeMap::<u64, usize>::new();
    for (_, number) in group.iter().filter_map(|change| block(change)) {
        *blocks.entry(number).or_default() += 1;
    }
    let family = group.first().and_then(|first| block(first)).map(|(family, _)| Clean(family));
    let Some((family, first)) = family.zip(blocks.values().next()) else { return group.len().to_string() };
    let ranges = ranges(blocks.keys().copied());
    if blocks.len() > 1 && blocks.values().all(|count| count == first) {
        let each = if *first == 1 { String::new() } else { format!("{first} ") };
        format!("{each}in each of {family}{ranges}")
    } else {
        format!("{} in {family}{ranges}", group.len())
    }
}

/// `0–3, 5` of rising numbers.
fn ranges(numbers: impl Iterator<Item = u64>) -> String {
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    for number in numbers {
        match ranges.last_mut() {
            Some((_, end)) if end.checked_add(1) == Some(number) => *end = number,
            _ => ranges.push((number, number)),
        }
    }
    let text = |(start, end): (u64, u64)| if start == end { start.to_string() } else { format!("{start}–{end}") };
    ranges.into_iter().map(text).collect::<Vec<_>>().join(", ")
}

/// What follows from changes that are alike, counted; empty if nothing does.
pub(crate) fn after(group: &[&Change]) -> String {
    let paths = group.iter().flat_map(|change| &change.follows).map(|follow| follow.path.as_str());
    let layers = paths.collect::<std::collections::HashSet<_>>().len();
    if layers == 0 { String::new() } else { format!("and {} with them", count(layers, "layer")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_ranges_and_types_have_no_shapes() {
        assert_eq!(ranges([0, 1, 2, 5, 7, 8].into_iter()), "0–2, 5, 7–8");
        assert_eq!(ranges([u64::MAX].into_iter()), u64::MAX.to_string());
        assert_eq!(without_shapes("f32[2,?], i64[]"), "f32, i64");
    }
}
