//! Summary of the differences in a few lines.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::{BlockChange, Change, ChangeKind, Diff, alike, ranges};
use crate::base::hash::HashSet;
use crate::explain::map::{parts, roles};
use crate::explain::stats::Census;
use crate::findings::grouped;
use crate::model::graph::{Graph, LayerId, Model};

/// Maximum number of lines in the summary.
const MOST: usize = 5;

/// Returns the repeated blocks whose layers are all in `gone`, which contains the layers that only one model has.
pub(super) fn whole_blocks(kind: ChangeKind, model: &Model, gone: &HashSet<LayerId>) -> Vec<BlockChange> {
    if gone.is_empty() {
        return Vec::new();
    }
    let graph = model.graph();
    let blocks = parts(graph, &roles(graph)).into_iter().filter(|part| part.family.is_some());
    let whole = blocks.filter(|part| part.layers.iter().all(|id| gone.contains(id)));
    let change = |part: crate::explain::map::Part| BlockChange {
        kind,
        bytes: stored_bytes(graph, &part.layers),
        name: part.name,
        layers: part.layers,
    };
    whole.map(change).collect()
}

/// Returns the number of bytes of the constants among these layers.
fn stored_bytes(graph: &Graph, layers: &[LayerId]) -> u64 {
    layers
        .iter()
        .filter_map(|&id| graph.layer(id))
        .filter(|layer| crate::ops::is_constant(layer))
        .map(Census::size)
        .sum()
}

impl Diff {
    /// Describes the differences in at most five lines, largest first: blocks that were removed or added, constants
    /// stored in another type, other changes by block, names.
    ///
    /// # Examples
    /// ```
    /// let (mut before, mut after) = (typelift::Model::from_text("x = Parameter : f32[2]\ny = ReLU(x)\nz = Result(y)\n")?,
    ///     typelift::Model::from_text("x = Parameter : f32[2]\ny = Exp(x)\nz = Result(y)\n")?);
    /// typelift::infer(&mut before);
    /// typelift::infer(&mut after);
    /// assert_eq!(typelift::diff(&before, &after).story(), ["changed: operation of Exp Relu → Exp"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn story(&self) -> Vec<String> {
        let is_stored = |change: &&&Change| change.error.is_some();
        let is_named = |change: &&&Change| change.kind == ChangeKind::Names;
        let apart: Vec<&Change> = self.changes.iter().filter(|change| !self.is_of_whole_block(change)).collect();
        let mut lines = self.blocks();
        lines.extend(stored(&apart.iter().filter(is_stored).copied().collect::<Vec<_>>()));
        let rest = apart.iter().filter(|change| !is_stored(change) && !is_named(change)).copied();
        let mut groups = alike(rest);
        groups.sort_by_key(|group| std::cmp::Reverse(group.changes.len()));
        let renamed = apart.iter().filter(is_named).count();
        let room = MOST.saturating_sub(lines.len() + usize::from(renamed > 0));
        let shown = if groups.len() > room { room.saturating_sub(1) } else { groups.len() };
        for group in &groups[..shown] {
            let word = match group.changes.first().map(|change| change.kind) {
                Some(ChangeKind::Added) => "added",
                Some(ChangeKind::Removed) => "removed",
                _ => "changed",
            };
            let places = if group.changes.len() > 1 { format!(", {}", group.places()) } else { String::new() };
            lines.push(format!("{word}: {}{places}", group.what));
        }
        let left: usize = groups[shown..].iter().map(|group| group.changes.len()).sum();
        if left > 0 {
            lines.push(format!("and {} more changes", grouped(left as u64)));
        }
        if renamed > 0 {
            lines.push(format!("renamed: {}", counted(renamed, "layer")));
        }
        lines.truncate(MOST);
        lines
    }

    /// True if a change belongs to a block that was added or removed completely.
    #[must_use]
    pub fn is_of_whole_block(&self, change: &Change) -> bool {
        change.layer.place.is_model() && self.whole.contains(&(change.kind == ChangeKind::Added, change.layer.id))
    }

    /// Describes blocks that were added or removed completely; sibling blocks in one line.
    fn blocks(&self) -> Vec<String> {
        let mut families = BTreeMap::<(bool, &str), Vec<Numbered>>::new();
        for block in &self.blocks {
            let stem = block.name.trim_end_matches(|c: char| c.is_ascii_digit());
            let number = block.name[stem.len()..].parse().ok();
            families.entry((block.kind == ChangeKind::Added, stem)).or_default().push((block, number));
        }
        let line = |((is_added, stem), blocks): ((bool, &str), Vec<Numbered>)| {
            let mut line = format!("{}: ", if is_added { "added" } else { "removed" });
            // The last word before the number is enough: `layers.5`.
            let family = stem.trim_end_matches(['.', '/']).rfind(['.', '/']).map_or(0, |at| at + 1);
            let _ = write!(line, "{}{}", &stem[family..], ranges(blocks.iter().filter_map(|&(_, number)| number)));
            if blocks.len() > 1 {
                let _ = write!(line, ", {}", counted(blocks.len(), "block"));
            }
            let layers = blocks.iter().map(|(block, _)| block.layers.len()).sum();
            let bytes = blocks.iter().map(|(block, _)| block.bytes).sum();
            let _ = write!(line, ", {}, {}", counted(layers, "layer"), size(bytes));
            line
        };
        families.into_iter().map(line).collect()
    }
}

/// Block with the number at the end of its name.
type Numbered<'a> = (&'a BlockChange, Option<u64>);

/// Describes constants that are stored in another type.
fn stored(changes: &[&Change]) -> Vec<String> {
    let ty = |text: &Option<String>| {
        text.as_deref().and_then(|text| text.split('[').next()).unwrap_or("").trim_end().to_owned()
    };
    let mut types = BTreeMap::<_, (usize, f64, f64)>::new();
    for change in changes {
        let (count, worst, of_range) = types.entry((ty(&change.before), ty(&change.after))).or_default();
        *count += 1;
        *worst = change.error.map_or(*worst, |error| error.max_relative.max(*worst));
        *of_range = change.error.and_then(|error| error.max_of_range).map_or(*of_range, |error| error.max(*of_range));
    }
    let line = |((before, after), (count, worst, of_range)): ((String, String), (usize, f64, f64))| {
        let error = match (worst > 0.0, of_range > 0.0) {
            (true, true) => format!("worst error {:.2} % of a row's range", of_range * 100.0),
            (true, false) => format!("worst relative error {worst:.1e}"),
            _ => "exact".to_owned(),
        };
        format!("{before} to {after}: {}, {error}", counted(count, "constant"))
    };
    types.into_iter().map(line).collect()
}

/// Formats a number with its noun: `1 layer`, `1,024 layers`.
fn counted(number: usize, what: &str) -> String {
    format!("{} {what}{}", grouped(number as u64), if number == 1 { "" } else { "s" })
}

/// Formats a number of bytes with a unit: `197 KB`.
fn size(bytes: u64) -> String {
    let in_units = |unit: f64| format!("{:.*}", usize::from(bytes as f64 / unit < 10.0), bytes as f64 / unit);
    match bytes {
        0..1_000 => format!("{bytes} bytes"),
        1_000..1_000_000 => in_units(1e3) + " KB",
        1_000_000..1_000_000_000 => in_units(1e6) + " MB",
        _ => in_units(1e9) + " GB",
    }
}

#[cfg(test)]
mod tests {
    use super::size;

    #[test]
    fn sizes_have_two_digits_at_least() {
        let sizes = [0, 999, 1_000, 9_940, 197_480, 5_600_000, 24_000_000_000];
        assert_eq!(sizes.map(size), ["0 bytes", "999 bytes", "1.0 KB", "9.9 KB", "197 KB", "5.6 MB", "24 GB"]);
    }
}
