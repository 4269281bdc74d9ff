//! Summary of the differences in a few lines.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::{Alike, BlockChange, Change, ChangeKind, Diff, alike, ranges};
use crate::base::hash::{HashMap, HashSet};
use crate::explain::blocks::{Block, Blocks};
use crate::findings::{grouped, size};
use crate::infer::blocks::{parts, plain, roles};
use crate::model::graph::{LayerId, Model};

/// Maximum number of lines in the summary.
const MOST: usize = 5;

/// Line of the summary.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct StoryLine<'a> {
    /// The text: `removed: layers.5, 72 layers, 197 KB`.
    pub text: String,
    /// The changes that it describes, in the order of the models.
    pub changes: Vec<&'a Change>,
}

/// The repeated blocks whose layers are all in `gone`, which contains the layers that only one model has.
pub(super) fn whole_blocks(kind: ChangeKind, model: &Model, gone: &HashSet<LayerId>) -> Vec<BlockChange> {
    if gone.is_empty() {
        return Vec::new();
    }
    let graph = model.graph();
    let blocks = parts(graph, &roles(graph)).parts.into_iter().filter(|part| part.family.is_some());
    let whole = blocks.filter(|part| part.layers.iter().all(|id| gone.contains(id)));
    whole.map(|part| BlockChange { kind, bytes: 0, name: part.name, layers: part.layers }).collect()
}

impl Diff {
    /// Describes the differences in at most five lines, largest first: blocks that were removed or added, constants
    /// stored in another type, other changes by block, names.
    ///
    /// # Examples
    /// ```
    /// let model = |ty| typelift::Model::from_text(&format!("x = Parameter : f32[2]\ny = {ty}(x)\nz = Result(y)"));
    /// assert_eq!(typelift::diff(&model("Relu")?, &model("Exp")?).story(), ["changed: operation of Exp Relu → Exp"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn story(&self) -> Vec<String> {
        self.story_lines().into_iter().map(|line| line.text).collect()
    }

    /// Returns the lines of the [story](Self::story), each with its changes.
    #[must_use]
    pub fn story_lines(&self) -> Vec<StoryLine<'_>> {
        let is_stored = |change: &&&Change| change.error.is_some();
        let is_named = |change: &&&Change| change.kind == ChangeKind::Names;
        let apart: Vec<&Change> = self.changes.iter().filter(|change| !self.is_of_whole_block(change)).collect();
        let mut lines = self.blocks();
        lines.extend(stored(&apart.iter().filter(is_stored).copied().collect::<Vec<_>>()));
        let rest = apart.iter().filter(|change| !is_stored(change) && !is_named(change)).copied();
        let (mut groups, constants): (Vec<Alike<'_>>, Vec<_>) =
            alike(rest).into_iter().partition(|group| !is_constant(group));
        groups.sort_by_key(|group| std::cmp::Reverse(group.changes.len()));
        let mut groups = rewritten(groups);
        // Constants mostly come and go with their users, so they are told only if nothing else is.
        let told = if groups.is_empty() { constants.len() } else { groups.len() };
        groups.extend(constants.iter().map(line));
        let renamed: Vec<&Change> = apart.iter().filter(is_named).copied().collect();
        let room = MOST.saturating_sub(lines.len() + usize::from(!renamed.is_empty()));
        let shown = if groups.len() > room { told.min(room.saturating_sub(1)) } else { told };
        let left: Vec<&Change> = groups.split_off(shown).into_iter().flat_map(|line| line.changes).collect();
        lines.extend(groups);
        if !left.is_empty() {
            lines.push(StoryLine { text: format!("and {} more changes", grouped(left.len() as u64)), changes: left });
        }
        if !renamed.is_empty() {
            lines.push(StoryLine { text: format!("renamed: {}", counted(renamed.len(), "layer")), changes: renamed });
        }
        lines.truncate(MOST);
        lines
    }

    /// True if a change belongs to a block that was added or removed completely.
    #[must_use]
    pub fn is_of_whole_block(&self, change: &Change) -> bool {
        change.layer.place.is_model() && self.whole.contains(&(change.kind == ChangeKind::Added, change.layer.id))
    }

    /// The comparison has replaced quantized constants by their values.
    pub(super) fn measure_blocks(&mut self, before: &Model, after: &Model) {
        for (kind, model) in [(ChangeKind::Removed, before), (ChangeKind::Added, after)] {
            let mut changes = self.blocks.iter_mut().filter(|block| block.kind == kind).peekable();
            if changes.peek().is_none() {
                continue;
            }
            let blocks = Blocks::new(model);
            let of_name: HashMap<&str, &Block> = blocks
                .list
                .iter()
                .filter(|block| block.place.is_model())
                .map(|block| (block.name.as_str(), block))
                .collect();
            for change in changes {
                let Some(block) = of_name.get(change.name.as_str()) else { continue };
                change.layers.clone_from(&block.layers);
                change.bytes = block.bytes();
            }
        }
    }

    /// Describes blocks that were added or removed completely; sibling blocks in one line.
    fn blocks(&self) -> Vec<StoryLine<'_>> {
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
            let ids: HashSet<LayerId> = blocks.iter().flat_map(|(block, _)| block.layers.iter().copied()).collect();
            let whole = self.changes.iter().filter(|change| self.is_of_whole_block(change));
            let of_side = whole.filter(|change| is_added == (change.kind == ChangeKind::Added));
            StoryLine { text: line, changes: of_side.filter(|change| ids.contains(&change.layer.id)).collect() }
        };
        families.into_iter().map(line).collect()
    }
}

/// True for constants that were added or removed.
fn is_constant(group: &Alike<'_>) -> bool {
    let is_whole = |change: &&Change| matches!(change.kind, ChangeKind::Added | ChangeKind::Removed);
    group.changes.iter().all(|change| is_whole(change) && change.operation == "Const")
}

/// Describes groups of equal changes, those that one rewriting made in one line: `fused: Transpose : f32 into Transpose,
/// in each of layer.0–11` or `replaced: 4 Slice : f32 by 2 VariadicSplit : f32, f32, in each of layers.0–7`.
fn rewritten<'a>(groups: Vec<Alike<'a>>) -> Vec<StoryLine<'a>> {
    let kind = |group: &Alike<'_>| group.changes.first().map(|change| change.kind);
    let of_removed = |group: &&Alike<'a>| kind(group) == Some(ChangeKind::Removed) && !group.changes[0].is_stored;
    let mut partners = HashMap::<usize, (String, Vec<usize>)>::default();
    for (at, removed) in groups.iter().enumerate().filter(|(_, group)| of_removed(group)) {
        let is_free = |other: &usize| !partners.values().any(|(_, others)| others.contains(other));
        let is_near =
            |other: &Alike<'_>| other.family == removed.family && other.blocks.keys().eq(removed.blocks.keys());
        let mut added =
            groups.iter().enumerate().filter(|(_, other)| kind(other) == Some(ChangeKind::Added) && is_near(other));
        // The layers that use a removed layer, and were changed themselves.
        let follows = removed.changes.iter().flat_map(|change| &change.follows);
        let users: HashSet<&str> = follows.filter(|it| it.kind == ChangeKind::Input).map(|it| &*it.path).collect();
        let is_user = |other: &Alike<'_>| {
            let is_whole = matches!(kind(other), Some(ChangeKind::Added | ChangeKind::Removed));
            !is_whole && other.changes.iter().all(|change| users.contains(&*change.path))
        };
        let changed: Vec<usize> =
            (0..groups.len()).filter(|other| is_user(&groups[*other]) && is_free(other)).collect();
        let found = match (added.next().filter(|(other, _)| is_free(other)), changed.first()) {
            (Some((other, by)), _) if !removed.blocks.is_empty() => {
                let [count, by_count] = [removed, by].map(|it| it.in_each().unwrap_or(it.changes.len()));
                let each = if removed.in_each().is_some() { "in each of " } else { "in " };
                let text =
                    format!("replaced: {count} {} by {by_count} {}, {each}{}", removed.what, by.what, removed.range());
                Some((text, vec![other]))
            }
            (_, Some(&first)) if users.len() == removed.changes.len() => {
                let into = &groups[first].changes[0].operation;
                Some((format!("fused: {} into {into}, {}", removed.what, removed.places()), changed))
            }
            _ => None,
        };
        partners.extend(found.map(|found| (at, found)));
    }
    let taken: HashSet<usize> = partners.values().flat_map(|(_, others)| others.iter().copied()).collect();
    let lines =
        groups.iter().enumerate().filter(|(at, _)| !taken.contains(at)).map(|(at, group)| match partners.get(&at) {
            Some((text, others)) => {
                let others = others.iter().flat_map(|&other| &groups[other].changes);
                StoryLine { text: text.clone(), changes: group.changes.iter().chain(others).copied().collect() }
            }
            None => line(group),
        });
    lines.collect()
}

/// Describes equal changes: `folded: Transpose : f32, in each of layer.0–11`.
fn line<'a>(group: &Alike<'a>) -> StoryLine<'a> {
    let first = group.changes.first();
    let word = match first.map(|change| change.kind) {
        Some(ChangeKind::Added) => "added",
        Some(ChangeKind::Removed) if group.changes.iter().all(|change| change.is_stored) && !is_constant(group) => {
            "folded"
        }
        Some(ChangeKind::Removed) => "removed",
        _ => "changed",
    };
    let places =
        match (&group.changes[..], first.and_then(|change| Some((change.before.as_ref()?, change.after.as_ref()?)))) {
            ([change], Some((before, after))) if change.kind == ChangeKind::Input => {
                let [old, new] = [before, after].map(|name| module(name));
                let (old, new) = if old == new { (before.as_str(), after.as_str()) } else { (old, new) };
                format!(" in {}: {old} → {new}", module(&change.path))
            }
            ([change], _) if change.operation == "Const" => {
                let values = change.values.as_ref().map_or_else(String::new, |values| format!(", {values}"));
                format!(" in {}{values}", change.path)
            }
            ([_], _) => String::new(),
            _ => format!(", {}", group.places()),
        };
    StoryLine { text: format!("{word}: {}{places}", group.what), changes: group.changes.clone() }
}

/// The module in a name: `encoder.layer.4.output.LayerNorm` of
/// `__module.encoder.layer.4.output.LayerNorm/aten::add/Add`.
fn module(name: &str) -> &str {
    let plain = plain(name);
    let end = plain.find("::").and_then(|at| plain[..at].rfind('/')).filter(|&end| end > 0);
    end.map_or(plain, |end| &plain[..end])
}

/// Block with the number at the end of its name.
type Numbered<'a> = (&'a BlockChange, Option<u64>);

/// Describes constants that are stored in another type.
fn stored<'a>(changes: &[&'a Change]) -> Vec<StoryLine<'a>> {
    let ty = |text: &Option<String>| {
        text.as_deref().and_then(|text| text.split('[').next()).unwrap_or("").trim_end().to_owned()
    };
    let mut types = BTreeMap::<_, (Vec<&'a Change>, f64, f64)>::new();
    for &change in changes {
        let (same, worst, of_range) = types.entry((ty(&change.before), ty(&change.after))).or_default();
        same.push(change);
        *worst = change.error.map_or(*worst, |error| error.max_relative.max(*worst));
        *of_range = change.error.and_then(|error| error.max_of_range).map_or(*of_range, |error| error.max(*of_range));
    }
    let lines = types.into_iter().map(|((before, after), (changes, worst, of_range))| {
        let error = match (worst > 0.0, of_range > 0.0) {
            (true, true) => format!("worst error {:.2} % of a row's range", of_range * 100.0),
            (true, false) => format!("worst relative error {worst:.1e}"),
            _ => "exact".to_owned(),
        };
        let text = format!("{before} to {after}: {}, {error}", counted(changes.len(), "constant"));
        StoryLine { text, changes }
    });
    lines.collect()
}

/// Formats a number with its noun: `1 layer`, `1,024 layers`.
fn counted(number: usize, what: &str) -> String {
    format!("{} {what}{}", grouped(number as u64), if number == 1 { "" } else { "s" })
}
