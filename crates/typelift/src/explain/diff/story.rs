//! Summary of the differences in a few lines.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;

use super::{Alike, BlockChange, Change, ChangeKind, Diff, ValueError, alike, ranges};
use crate::base::hash::{HashMap, HashSet};
use crate::explain::blocks::{Block, Blocks};
use crate::findings::{grouped, size};
use crate::infer::blocks::{GraphFacts, parts, plain};
use crate::model::graph::{LayerId, Model, Place};

/// Maximum number of lines in the summary.
const MOST: usize = 5;

/// Line of the summary.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct StoryLine<'a> {
    /// The text: `removed: layers.5, 72 layers, 197 KB`.
    pub text: String,
    /// The changes that it describes, in the order of the models. Constants in another type are in the order of their errors.
    pub changes: Vec<&'a Change>,
    /// The constants that it describes, if they did not change.
    pub kept: &'a [String],
}

/// The repeated blocks whose layers are all in `gone`, which contains the layers that only one model has.
pub(super) fn whole_blocks(kind: ChangeKind, model: &Model, gone: &HashSet<LayerId>) -> Vec<BlockChange> {
    if gone.is_empty() {
        return Vec::new();
    }
    let graph = model.graph();
    let blocks = parts(&GraphFacts::new(graph)).parts.into_iter().filter(|part| part.family.is_some());
    let whole = blocks.filter(|part| part.layers.iter().all(|id| gone.contains(id)));
    whole.map(|part| BlockChange { kind, bytes: 0, name: part.name, layers: part.layers }).collect()
}

impl<'a> StoryLine<'a> {
    fn new(text: String, changes: Vec<&'a Change>) -> Self {
        Self { text, changes, kept: &[] }
    }
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
        lines.extend(self.kept.iter().map(|(stored, kept)| {
            let name = if let [name] = &kept[..] { format!(", {name}") } else { String::new() };
            StoryLine {
                kept,
                ..StoryLine::new(format!("still {stored}: {}{name}", counted(kept.len(), "constant")), Vec::new())
            }
        }));
        let rest = apart.iter().filter(|change| !is_stored(change) && !is_named(change)).copied();
        let (bypassing, rest): (Vec<&Change>, Vec<_>) = rest.partition(|change| change.bypassed.is_some());
        lines.extend(bypassed(bypassing));
        let (merged, rest): (Vec<&Change>, Vec<_>) = rest.into_iter().partition(|change| change.is_merged);
        let (mut groups, constants) = rewritten(rest);
        groups.extend(equal_constants(merged));
        groups.sort_by_key(|line| std::cmp::Reverse(line.changes.len()));
        // Constants mostly come and go with their users, so they are told only if nothing else is.
        let told = if groups.is_empty() { constants.len() } else { groups.len() };
        groups.extend(constants.iter().map(line));
        let renamed: Vec<&Change> = apart.iter().filter(is_named).copied().collect();
        let room = MOST.saturating_sub(lines.len() + usize::from(!renamed.is_empty()));
        let shown = if groups.len() > room { told.min(room.saturating_sub(1)) } else { told };
        let left: Vec<&Change> = groups.split_off(shown).into_iter().flat_map(|line| line.changes).collect();
        lines.extend(groups);
        if !left.is_empty() {
            lines.push(StoryLine::new(format!("and {}", counted(left.len(), "more change")), left));
        }
        if !renamed.is_empty() {
            let is_of_tensors = renamed.iter().all(|change| change.subject.is_some());
            let what = if is_of_tensors { "other names of tensors" } else { "renamed" };
            lines.push(StoryLine::new(format!("{what}: {}", counted(renamed.len(), "layer")), renamed));
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
            StoryLine::new(line, of_side.filter(|change| ids.contains(&change.layer.id)).collect())
        };
        families.into_iter().map(line).collect()
    }
}

/// Describes blocks that still exist, and that no other block reads any more.
fn bypassed(changes: Vec<&Change>) -> Vec<StoryLine<'_>> {
    let mut blocks = BTreeMap::<&str, Vec<&Change>>::new();
    for change in changes {
        blocks.entry(change.bypassed.as_deref().unwrap_or_default()).or_default().push(change);
    }
    let line = |(block, changes)| StoryLine::new(format!("bypassed: {}", plain(block)), changes);
    blocks.into_iter().map(line).collect()
}

/// True for constants that were added or removed.
fn is_constant(group: &Alike<'_>) -> bool {
    let is_whole = |change: &&Change| matches!(change.kind, ChangeKind::Added | ChangeKind::Removed);
    group.changes.iter().all(|change| is_whole(change) && change.operation == "Const")
}

/// Describes equal changes, those that one rewriting made in one line: `fused: Transpose : f32 into Transpose, in each of
/// layer.0–11` or `replaced: 4 Slice : f32 by 2 VariadicSplit : f32, f32, in each of layers.0–7`. Returns the groups of
/// constants apart.
fn rewritten(changes: Vec<&Change>) -> (Vec<StoryLine<'_>>, Vec<Alike<'_>>) {
    // Nothing is fused into an output.
    let there = changes.iter().filter(|it| it.kind != ChangeKind::Removed && it.operation != "Result");
    let there: HashSet<_> = there.map(|it| place(it)).collect();
    let successor = |change: &Change| {
        let is_weight = change.kind == ChangeKind::Constant;
        let own = change.into.filter(|_| is_weight || !change.is_stored && change.operation != "Const");
        own.map(|id| (change.layer.place.clone(), id)).filter(|place| there.contains(place))
    };
    let (gone, rest): (Vec<&Change>, Vec<&Change>) = changes.into_iter().partition(|it| successor(it).is_some());
    let mut sources = HashMap::<_, Vec<&Change>>::default();
    for change in gone {
        sources.entry(successor(change)).or_default().push(change);
    }
    let (constants, groups): (Vec<_>, Vec<Alike<'_>>) = alike(rest).into_iter().partition(is_constant);
    let mut groups = VecDeque::from(groups);
    let mut lines = Vec::new();
    while let Some(group) = groups.pop_front() {
        let places: HashSet<_> = group.changes.iter().map(|it| place(it)).collect();
        let gone: Vec<&Change> =
            group.changes.iter().filter_map(|it| sources.remove(&Some(place(it)))).flatten().collect();
        if gone.is_empty() {
            lines.push(line(&group));
            continue;
        }
        let text = replaced(&alike(gone.iter().copied()), &group);
        let mut changes = [gone, group.changes].concat();
        // Other changes of the same layers follow from this one.
        groups.retain(|other| {
            let is_part = other.changes.iter().all(|it| places.contains(&place(it)));
            changes.extend(other.changes.iter().filter(|_| is_part));
            !is_part
        });
        lines.push(StoryLine::new(text, changes));
    }
    (lines, constants)
}

fn place(change: &Change) -> (Place, LayerId) {
    (change.layer.place.clone(), change.layer.id)
}

fn replaced(gone: &[Alike<'_>], by: &Alike<'_>) -> String {
    let is_each = by.in_each().is_some()
        && gone
            .iter()
            .all(|it| it.in_each().is_some() && it.family == by.family && it.blocks.keys().eq(by.blocks.keys()));
    let count = |it: &Alike<'_>| it.in_each().filter(|_| is_each).unwrap_or(it.changes.len());
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for it in gone {
        let operation = if gone.len() == 1 { &it.what } else { &it.changes[0].operation };
        match counts.iter_mut().find(|(known, _)| known == operation) {
            Some((_, all)) => *all += count(it),
            None => counts.push((operation, count(it))),
        }
    }
    let mut list: Vec<String> = counts.iter().take(KINDS).map(|(what, count)| format!("{count} {what}")).collect();
    list.extend((counts.len() > KINDS).then(|| format!("{} more kinds", counts.len() - KINDS)));
    let range = by.range();
    let range = if range.is_empty() { range } else { format!(", in {}{range}", if is_each { "each of " } else { "" }) };
    let first = by.changes[0];
    match (first.kind, gone) {
        (ChangeKind::Added, _) => format!("replaced: {} by {} {}{range}", list.join(", "), count(by), by.what),
        (_, [one]) => format!("fused: {} into {}, {}", one.what, first.operation, one.places()),
        _ => format!("fused: {} into {} {}{range}", list.join(", "), count(by), first.operation),
    }
}

/// Maximum number of operations that one line lists.
const KINDS: usize = 5;

/// Describes inputs that lead to another constant of the same values, and the constants that they led to.
fn equal_constants(changes: Vec<&Change>) -> Option<StoryLine<'_>> {
    let groups = alike(changes.iter().copied().filter(|change| change.kind == ChangeKind::Input));
    let mut all: Option<Alike<'_>> = None;
    for group in groups.into_iter().filter(|group| !group.blocks.is_empty()) {
        match &mut all {
            Some(all) if all.family == group.family => {
                all.changes.extend(group.changes);
                group.blocks.into_iter().for_each(|(block, count)| *all.blocks.entry(block).or_default() += count);
            }
            Some(_) => {}
            None => all = Some(group),
        }
    }
    let all = all.filter(|all| all.changes.len() > 1).map_or_else(String::new, |all| format!(", {}", all.places()));
    (!changes.is_empty()).then(|| StoryLine::new(format!("merged: constants of equal values{all}"), changes))
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
    let sides = |change: &&Change| {
        let (before, after) = (change.before.as_deref()?, change.after.as_deref()?);
        let (old, new) = (module(before), module(after));
        let (old, new) = if old == new { (before, after) } else { (old, new) };
        (change.kind == ChangeKind::Input).then(|| format!("{old} → {new}"))
    };
    let inputs: Vec<String> = group.changes.iter().filter_map(sides).collect();
    let places = match &group.changes[..] {
        [change] if inputs.len() == 1 => format!(" in {}: {}", module(&change.path), inputs[0]),
        [change] if change.operation == "Const" => {
            let values = change.values.as_ref().filter(|values| values.factor().is_none());
            let values = values.map_or_else(String::new, |values| format!(", {values}"));
            format!(" in {}{values}", change.path)
        }
        [_] if group.blocks.is_empty() => String::new(),
        [_] => format!(" in {}", group.range()),
        [_, _] if inputs.len() == 2 => format!(", {}: {}", group.places(), inputs.join(", ")),
        _ => format!(", {}", group.places()),
    };
    StoryLine::new(format!("{word}: {}{places}", group.what), group.changes.clone())
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

/// Describes constants that are stored in another type, those with the largest errors first.
fn stored<'a>(changes: &[&'a Change]) -> Vec<StoryLine<'a>> {
    let mut types = BTreeMap::<_, Vec<&'a Change>>::new();
    for &change in changes {
        types.entry(change.stored_types()).or_default().push(change);
    }
    let lines = types.into_iter().map(|([before, after], mut changes)| {
        changes.sort_by(|one, other| other.loss().total_cmp(&one.loss()));
        let most = |figure: fn(ValueError) -> f64| {
            changes.iter().filter_map(|change| change.error).map(figure).fold(0.0, f64::max)
        };
        let (worst, of_range) = (most(|error| error.max_relative), most(|error| error.max_of_range.unwrap_or(0.0)));
        let error = match (worst > 0.0, of_range > 0.0) {
            (true, true) => format!("worst error {:.2} % of a row's range", of_range * 100.0),
            (true, false) => format!("worst relative error {worst:.1e}"),
            _ => "exact".to_owned(),
        };
        StoryLine::new(format!("{before} to {after}: {}, {error}", counted(changes.len(), "constant")), changes)
    });
    lines.collect()
}

/// Formats a number with its noun: `1 layer`, `1,024 layers`.
fn counted(number: usize, what: &str) -> String {
    format!("{} {what}{}", grouped(number as u64), if number == 1 { "" } else { "s" })
}
