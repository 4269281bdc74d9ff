//! Groups of equal changes in many layers, for example one in each block of a model.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::{Change, ChangeKind, ValueChange};
use crate::infer::blocks::plain;
use crate::model::graph::numbered_prefix;

/// Equal changes to similar layers: in the blocks of one family, or outside of blocks.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Alike<'a> {
    /// Description of the change, without the names and shapes that differ between blocks: `Convert
    /// {destination_type=f16} : f16`.
    pub what: String,
    /// The changes in order; at least one.
    pub changes: Vec<&'a Change>,
    /// The common name of their blocks, `layers.`; empty outside of blocks.
    pub family: String,
    /// The number of changes in each block, by the number of the block.
    pub blocks: BTreeMap<u64, usize>,
}

/// Groups equal changes, in the order of the first of each.
///
/// # Examples
/// ```
/// let (mut before, mut after) = (typelift::Model::from_text("x = Parameter : f32[2]\ny = ReLU(x)\nz = Result(y)\n")?,
///     typelift::Model::from_text("x = Parameter : f32[2]\ny = Exp(x)\nz = Result(y)\n")?);
/// typelift::infer(&mut before);
/// typelift::infer(&mut after);
/// let diff = typelift::diff(&before, &after);
/// let alike = typelift::alike(&diff.changes);
/// assert_eq!((alike[0].changes.len(), alike[0].places()), (1, "1".to_owned()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn alike<'a>(changes: impl IntoIterator<Item = &'a Change>) -> Vec<Alike<'a>> {
    let mut places = HashMap::<(ChangeKind, Option<&str>, String), usize>::new();
    let mut alike: Vec<Alike<'_>> = Vec::new();
    for change in changes {
        let (block, what) = (block(change), what(change));
        let family = block.map(|(family, _)| family);
        let place = *places.entry((change.kind, family, what.clone())).or_insert(alike.len());
        if place == alike.len() {
            let family = family.unwrap_or_default().to_owned();
            alike.push(Alike { what, changes: Vec::new(), family, blocks: BTreeMap::new() });
        }
        alike[place].changes.push(change);
        if let Some((_, number)) = block {
            *alike[place].blocks.entry(number).or_default() += 1;
        }
    }
    // A family has its last word as its name, and more words as far as another family ends in the same ones.
    let families: BTreeSet<String> = alike.iter().map(|it| it.family.clone()).collect();
    for family in alike.iter_mut().map(|it| &mut it.family).filter(|family| !family.is_empty()) {
        let words = family[..family.len() - 1].rmatch_indices(['.', '/']).map(|(at, _)| &family[at + 1..]);
        let mut words = words.filter(|end| families.iter().filter(|other| other.ends_with(end)).count() == 1);
        if let Some(short) = words.next().map(str::to_owned) {
            *family = short;
        }
    }
    alike
}

impl Alike<'_> {
    /// Returns the numbers of the blocks, `layers.0–5, 7`; empty outside of blocks.
    pub fn range(&self) -> String {
        if self.blocks.is_empty() { String::new() } else { self.family.clone() + &ranges(self.blocks.keys().copied()) }
    }

    /// Returns the number of changes in each block, if it is the same for several blocks.
    pub fn in_each(&self) -> Option<usize> {
        let first = self.blocks.values().next()?;
        (self.blocks.len() > 1 && self.blocks.values().all(|count| count == first)).then_some(*first)
    }

    /// Describes the number of changes and the blocks: `2 in each of layers.0–31`, `5 in layers.0, 2–4`, `12`.
    pub fn places(&self) -> String {
        let (range, count) = (self.range(), self.changes.len());
        match self.in_each() {
            Some(1) => format!("in each of {range}"),
            Some(each) => format!("{each} in each of {range}"),
            None if range.is_empty() => count.to_string(),
            None => format!("{count} in {range}"),
        }
    }
}

/// The family and the number of the block of a change: `model.layers.` and 12 for `model.layers.12.mlp/Add`.
fn block(change: &Change) -> Option<(&str, u64)> {
    // A layer in a body is in the block of the layer around it.
    let renamed = change.before.as_deref().filter(|_| change.kind == ChangeKind::Names && change.subject.is_none());
    let prefix =
        renamed.and_then(numbered_prefix).or(change.block.as_deref()).or_else(|| numbered_prefix(&change.path))?;
    // A layer named after another one has the module of that one: `a/__module.layers.0`.
    let prefix = plain(&prefix[prefix.rfind("__module.").unwrap_or(0)..]);
    let family = prefix.trim_end_matches(|c: char| c.is_ascii_digit());
    Some((family, prefix[family.len()..].parse().ok()?))
}

/// Describes a change without names and shapes.
fn what(change: &Change) -> String {
    let side = |side: &Option<String>| without_shapes(side.as_deref().unwrap_or("none"));
    let operation = &change.operation;
    let subject = change.subject.as_deref().unwrap_or_default();
    match change.kind {
        ChangeKind::Added | ChangeKind::Removed => {
            let line = change.after.as_ref().or(change.before.as_ref()).map_or("", String::as_str);
            let (call, types) = line.rsplit_once(" : ").unwrap_or((line, ""));
            let attributes = call.rfind(" {").filter(|_| call.ends_with('}')).map_or("", |start| &call[start..]);
            // The values of a constant differ between blocks, so they are omitted.
            let types = without_shapes(types.split(" = ").next().unwrap_or_default());
            let colon = if types.is_empty() { "" } else { " : " };
            format!("{operation}{attributes}{colon}{types}")
        }
        ChangeKind::Input => format!("{subject} of {operation}"),
        ChangeKind::Shape => format!("shape of {operation}"),
        ChangeKind::Names => "name".to_owned(),
        ChangeKind::Constant => {
            let ty = |text: &Option<String>| side(text).split(" = ").next().unwrap_or_default().to_owned();
            let (before, after) = (ty(&change.before), ty(&change.after));
            let types = if before == after { after } else { format!("{before} → {after}") };
            let factor = change.values.as_ref().and_then(ValueChange::factor).map(|factor| format!(" times {factor}"));
            format!("values of {operation} {types}{}", factor.unwrap_or_default())
        }
        _ => {
            let subject = if subject.is_empty() { change.kind.name() } else { subject };
            format!("{subject} of {operation} {} → {}", side(&change.before), side(&change.after))
        }
    }
}

/// Removes the shapes from a list of types: `f32, i64` for `f32[2,?], i64[]`.
fn without_shapes(types: &str) -> String {
    let mut depth = 0_usize;
    let kept = types.chars().filter(|c| {
        depth = if *c == '[' { depth + 1 } else { depth };
        let kept = depth == 0;
        depth = if *c == ']' { depth.saturating_sub(1) } else { depth };
        kept
    });
    kept.collect()
}

/// Formats ascending numbers: `0–3, 5`.
pub(super) fn ranges(numbers: impl Iterator<Item = u64>) -> String {
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
