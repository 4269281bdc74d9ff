//! Division of a graph into repeated blocks, found by name and by structure, and the layers between them.

use std::collections::BTreeSet;

use smallvec::SmallVec;

use super::facts::GraphFacts;
use super::membership::{LEAST, Membership};
use super::names::{Names, number_of};
use super::repeats::Repeat;
use super::roles::Role;
use crate::base::hash::HashMap;
use crate::model::graph::{Graph, Layer, LayerId, LayerMap, OutputPort};
use crate::ops::{self, LayerKind};

/// Repeated block, or the layers between two blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    /// The name: `model.layers.0`, `block 3`, or `before model.layers.0`.
    pub(crate) name: String,
    /// The number of its family of blocks; `None` for layers between blocks.
    pub(crate) family: Option<usize>,
    /// The number of the block among its siblings, 17 for `model.layers.17`; `None` for layers between blocks. Blocks
    /// without a name count from 1, and have no number where other blocks have names.
    pub(crate) number: Option<u64>,
    /// The layers, in topological order.
    pub(crate) layers: Vec<LayerId>,
}

pub(crate) struct Parts<'a> {
    pub(crate) parts: Vec<Part>,
    pub(crate) names: Names<'a>,
    /// The constants that several blocks use.
    pub(crate) shared: Vec<LayerId>,
    /// The constants that no layer uses.
    pub(crate) unused: Vec<LayerId>,
}

struct DraftPart {
    /// Name and family; the name is empty if the block was found by structure.
    block: Option<(String, usize)>,
    layers: Vec<LayerId>,
}

/// Divides a graph: into blocks by name, then into blocks by structure among the other layers, and the rest.
pub(crate) fn parts<'a>(facts: &GraphFacts<'a>) -> Parts<'a> {
    let GraphFacts { graph, roles, .. } = facts;
    let flow = Flow::new(graph, roles);
    let names = Names::new(graph, &flow.order);
    let named = Membership::new(graph, &flow.order, &names);
    let mut pieces = Vec::new();
    let mut family = named.blocks.iter().map(|block| block.family + 1).max().unwrap_or(0);
    for at in 0..=named.blocks.len() {
        flow.divide(&names, &named.gaps[at], &mut family, &mut pieces);
        if let Some(block) = named.blocks.get(at) {
            pieces.push(DraftPart { block: Some((block.name.clone(), block.family)), layers: block.layers.clone() });
        }
    }
    let mut parts = name(pieces);
    let (shared, unused) = hand_out(facts, &named, &mut parts);
    Parts { parts, names, shared, unused }
}

/// The word before the number of a block that was found by its structure.
pub(crate) const NAMELESS: &str = "block ";

/// Numbers the blocks without a name, and names the layers between blocks.
fn name(mut pieces: Vec<DraftPart>) -> Vec<Part> {
    let are_named = pieces.iter().filter_map(|piece| piece.block.as_ref()).any(|(name, _)| !name.is_empty());
    let blocks = pieces.iter_mut().filter_map(|piece| piece.block.as_mut());
    let nameless = blocks.filter(|(name, _)| name.is_empty());
    nameless.enumerate().for_each(|(at, (name, _))| *name = format!("{NAMELESS}{}", at + 1));
    let parts = pieces.iter().enumerate().map(|(at, piece)| {
        let [before, next] = [at.checked_sub(1), Some(at + 1)].map(|at| Some(&*pieces.get(at?)?.block.as_ref()?.0));
        let (name, family) = match (&piece.block, before, next) {
            (Some((name, family)), ..) => (name.clone(), Some(*family)),
            (None, Some(before), Some(next)) => (format!("between {before} and {next}"), None),
            (None, None, Some(next)) => (format!("before {next}"), None),
            (None, Some(before), None) => (format!("after {before}"), None),
            (None, None, None) => ("all layers".to_owned(), None),
        };
        let has_number = family.is_some() && !(are_named && name.starts_with(NAMELESS));
        let number = has_number.then(|| number_of(&name)).flatten();
        Part { name, family, number, layers: piece.layers.clone() }
    });
    let parts: Vec<Part> = parts.collect();
    if parts.is_empty() {
        return vec![Part { name: "all layers".to_owned(), family: None, number: None, layers: Vec::new() }];
    }
    parts
}

/// Assigns constants and shape computations to the block of their name, otherwise to the block that uses them. Returns
/// those that several blocks use, and those that no layer uses.
fn hand_out(facts: &GraphFacts<'_>, named: &Membership, parts: &mut [Part]) -> (Vec<LayerId>, Vec<LayerId>) {
    let GraphFacts { graph, order, roles, .. } = facts;
    let mut part_of = LayerMap::<Option<usize>>::new(graph);
    let mut part_by_name = HashMap::default();
    for (at, part) in parts.iter().enumerate() {
        part_of.extend(part.layers.iter().map(|&id| (id, Some(at))));
        part_by_name.insert(part.name.clone(), at);
    }
    let (mut shared, mut unused) = (Vec::new(), Vec::new());
    for layer in order.iter().rev().filter(|layer| roles.get(layer.id()) != Some(&Role::Data)) {
        let mut users: SmallVec<[Option<usize>; 4]> =
            graph.users(layer.id()).filter_map(|user| part_of.get(user).copied()).collect();
        users.sort_unstable();
        users.dedup();
        let by_name = named.at(layer.name()).and_then(|at| part_by_name.get(&named.blocks[at].name).copied());
        let first = users.iter().copied().flatten().min();
        let is_stored = roles.get(layer.id()) == Some(&Role::Stored);
        // A constant that several blocks share belongs to none of them, whatever its name.
        let part = if is_stored && users.len() > 1 { None } else { by_name.or(first) };
        match part {
            Some(at) if !users.is_empty() => parts[at].layers.push(layer.id()),
            _ if users.is_empty() => unused.push(layer.id()),
            _ => shared.push(layer.id()),
        }
        if !users.is_empty() {
            part_of.insert(layer.id(), part);
        }
    }
    (shared, unused)
}

/// Layers that compute data in topological order, so that the layers of a block are together.
struct Flow<'a> {
    order: Vec<&'a Layer>,
    /// Number of tensors that cross each position.
    crossing: Vec<usize>,
}

impl<'a> Flow<'a> {
    fn new(graph: &'a Graph, roles: &LayerMap<Role>) -> Self {
        let mut ends: Vec<&Layer> =
            graph.layers().filter(|layer| roles.get(layer.id()) != Some(&Role::Stored)).collect();
        // Results are visited before Assigns and unused layers.
        ends.sort_by_key(|layer| ops::kind(layer) != LayerKind::Result);
        let mut order = upwards(graph, roles, &ends);
        let mut uses = Self::uses(graph, &order);
        // A tensor that many layers use, such as a mask, is placed before the blocks that use it.
        let common = uses.iter().filter_map(|&(at, first, last, count)| {
            (count > 1 && (last - first) * 4 >= order.len()).then_some((last - first, at))
        });
        let mut common: Vec<(usize, usize)> = common.collect();
        if !common.is_empty() {
            common.sort_by_key(|&(reach, at)| (std::cmp::Reverse(reach), at));
            let first = common.iter().map(|&(_, at)| order[at]);
            let ends: Vec<&Layer> = first.chain(ends.iter().copied()).collect();
            order = upwards(graph, roles, &ends);
        }
        order.retain(|layer| roles.get(layer.id()) == Some(&Role::Data));
        // An unused layer, which is after all ends, keeps no tensor open.
        let live = order.iter().rposition(|layer| layer.outputs().is_empty()).map_or(order.len(), |last| last + 1);
        uses = Self::uses(graph, &order[..live]);
        let mut crossing = vec![0; order.len() + 1];
        let mut open = vec![0_i64; order.len() + 2];
        for (at, _, last, _) in uses {
            open[at + 1] += 1;
            open[last + 1] -= 1;
        }
        let mut count = 0;
        for (at, change) in open.into_iter().take(order.len() + 1).enumerate() {
            count += change;
            crossing[at] = usize::try_from(count).unwrap_or(0);
        }
        Self { order, crossing }
    }

    fn uses(graph: &Graph, order: &[&Layer]) -> Vec<(usize, usize, usize, usize)> {
        let mut places = LayerMap::new(graph);
        places.extend(order.iter().map(|layer| layer.id()).zip(0..));
        let uses = order.iter().enumerate().filter_map(|(at, layer)| {
            let users = graph.users(layer.id()).filter_map(|user| places.get(user).copied()).filter(|&user| user > at);
            let (first, last, count) =
                users.fold((usize::MAX, 0, 0), |(first, last, count), at| (at.min(first), at.max(last), count + 1));
            (count > 0).then_some((at, first, last, count))
        });
        uses.collect()
    }

    /// Divides layers into blocks that repeat by structure, and the layers between. `places` are their positions.
    fn divide(&self, names: &Names<'_>, places: &[usize], family: &mut usize, pieces: &mut Vec<DraftPart>) {
        let mut at = 0;
        let layers =
            |start: usize, end: usize| places[start..end].iter().map(|&place| self.order[place].id()).collect();
        for block in self.repeated(names, places, family) {
            if at < block.start {
                pieces.push(DraftPart { block: None, layers: layers(at, block.start) });
            }
            let layers = layers(block.start, block.end);
            pieces.push(DraftPart { block: Some((String::new(), block.family)), layers });
            at = block.end;
        }
        if at < places.len() {
            pieces.push(DraftPart { block: None, layers: layers(at, places.len()) });
        }
    }

    /// Finds blocks by structure among these positions: the same operations in the same order, several times.
    fn repeated(&self, names: &Names<'_>, places: &[usize], family: &mut usize) -> Vec<FoundBlock> {
        let mut found = self.residual(places, family);
        // Converts are ignored, because sibling blocks may differ in them.
        let kept = (0..places.len()).filter(|&at| ops::kind(self.order[places[at]]) != LayerKind::Convert);
        let kept: Vec<usize> = kept.collect();
        let layers = kept.iter().map(|&at| self.order[places[at]]);
        let tokens = numbered(layers.map(|layer| (layer.ty(), layer.inputs().len())));
        let [start, end] =
            [found.first().map_or(places.len(), |it| it.start), found.last().map_or(places.len(), |it| it.end)];
        let [start, end] = [start, end].map(|place| kept.partition_point(|&at| at < place));
        let mut pending = vec![(0, start), (end, tokens.len())];
        while let Some((from, to)) = pending.pop() {
            let Some(repeat) = Repeat::find(&tokens[from..to]) else { continue };
            let begin = from + repeat.start;
            let slack = repeat.length % repeat.period;
            let offset = (0..=slack).min_by_key(|offset| self.crossing[places[kept[begin + offset]]]).unwrap_or(0);
            let count = repeat.length / repeat.period;
            pending.extend([(from, begin + offset), (begin + offset + count * repeat.period, to)]);
            // Work that one module does twice, such as for x and y, is no block.
            let layers = &kept[begin + offset..begin + offset + count * repeat.period];
            if count == 2 && names.are_of_one_module(layers.iter().map(|&at| self.order[places[at]])) {
                continue;
            }
            found.extend((0..count).map(|block| {
                let first = begin + offset + block * repeat.period;
                let ends = [first, first + repeat.period];
                let [start, end] = ends.map(|token| kept.get(token).copied().unwrap_or(places.len()));
                FoundBlock { start, end, family: *family }
            }));
            *family += 1;
        }
        found.sort_by_key(|run| run.start);
        found
    }

    /// Finds the blocks of a residual network: the layers between two tensors that all data pass through, if an Add at
    /// their end joins two paths. An activation after each of them belongs to it. A block with more layers than the one
    /// before, such as a Convolution on the skip connection, begins another family. Nothing, if they are not alike.
    fn residual(&self, places: &[usize], family: &mut usize) -> Vec<FoundBlock> {
        let mut found: Vec<FoundBlock> = Vec::new();
        let is_cut = |at: usize| at == places.len() || self.crossing[places[at]] == 1;
        let mut start = 0;
        for end in (1..=places.len()).filter(|&end| is_cut(end)) {
            let is_joined = self.order[places[end - 1]].ty() == "Add";
            if is_joined && end - start >= LEAST {
                found.push(FoundBlock { start, end, family: 0 });
            }
            start = end;
        }
        // An operation may be missing in one block.
        let types = |block: &FoundBlock| BTreeSet::from_iter(self.types(places, block.start, block.end));
        let count = |block: &FoundBlock| found.iter().filter(|other| types(other) == types(block)).count();
        let Some(usual) = found.iter().take(2).max_by_key(|block| count(block)).map(types) else { return Vec::new() };
        let all = found.len();
        found.retain(|block| types(block) == usual);
        if found.len() < LEAST_OF_RESIDUAL || found.len() + 1 < all {
            return Vec::new();
        }
        let is_active = |block: &FoundBlock| places.get(block.end).is_some_and(|&at| self.order[at].ty() == "ReLU");
        if found.iter().filter(|block| is_active(block)).count() + 1 >= found.len() {
            found.iter_mut().for_each(|block| block.end += usize::from(is_active(block)));
        }
        found.iter_mut().for_each(|block| block.family = block.end - block.start);
        self.add_gapped(places, &mut found);
        let mut length = usize::MAX;
        for block in &mut found {
            *family += usize::from(block.family > length);
            (length, block.family) = (block.family, *family);
        }
        *family += 1;
        found
    }

    /// Adds blocks that lack a layer, such as their Add: layers with the other operations of a near block. They are all
    /// between two blocks, or keep the shape, so that an Add could join the skip connection. The family of each block is its
    /// number of layers, that of a whole one.
    fn add_gapped(&self, places: &[usize], found: &mut Vec<FoundBlock>) {
        let shape = |at: usize| self.order[places[at]].outputs().first().map(OutputPort::shape);
        let mut at = 0;
        while at <= found.len() {
            let (before, next) = (at.checked_sub(1).map(|at| &found[at]), found.get(at));
            let (from, to) = (before.map_or(0, |it| it.end), next.map_or(places.len(), |it| it.start));
            let is_between = |start, end| before.is_some() && next.is_some() && (start, end) == (from, to);
            let gapped = |block: &FoundBlock| {
                let whole = self.types(places, block.start, block.end);
                let starts = [from, (to + 1).saturating_sub(whole.len())].into_iter();
                let mut ranges = starts.map(|start| (start, start + whole.len() - 1));
                ranges.find(|&(start, end)| {
                    (from.max(1)..=to).contains(&start)
                        && end <= to
                        && (is_between(start, end) || shape(start - 1) == shape(end - 1))
                        && is_without_one(&whole, &self.types(places, start, end))
                })
            };
            let near = &found[at.saturating_sub(2)..found.len().min(at + 2)];
            match near.iter().find_map(|block| Some((gapped(block)?, block.family))) {
                Some(((start, end), family)) => found.insert(at, FoundBlock { start, end, family }),
                None => at += 1,
            }
        }
    }

    fn types(&self, places: &[usize], start: usize, end: usize) -> Vec<&'a str> {
        places[start..end].iter().map(|&place| self.order[place].ty()).collect()
    }
}

/// True if the second list is the first one without one item.
fn is_without_one(whole: &[&str], part: &[&str]) -> bool {
    let same = whole.iter().zip(part).take_while(|(one, other)| one == other).count();
    whole.get(same + 1..) == part.get(same..)
}

/// Minimum number of blocks of a residual network without names.
const LEAST_OF_RESIDUAL: usize = 3;

/// Block that was found by structure: a range of layers.
struct FoundBlock {
    start: usize,
    end: usize,
    family: usize,
}

/// The producers of `ends` that are not constants, in topological order.
fn upwards<'a>(graph: &'a Graph, roles: &LayerMap<Role>, ends: &[&'a Layer]) -> Vec<&'a Layer> {
    let mut seen = LayerMap::new(graph);
    let (mut order, mut pending) = (Vec::new(), Vec::new());
    for end in ends {
        pending.push((*end, false));
        while let Some((layer, is_done)) = pending.pop() {
            if is_done {
                order.push(layer);
            } else if seen.insert(layer.id(), ()).is_none() {
                pending.push((layer, true));
                let feeds = graph.feeds(layer.id()).into_iter().rev().flatten().map(|(producer, _)| producer);
                let feeds = feeds.filter(|producer| roles.get(producer.id()) != Some(&Role::Stored));
                pending.extend(
                    feeds.filter(|producer| seen.get(producer.id()).is_none()).map(|producer| (producer, false)),
                );
            }
        }
    }
    order
}

/// Assigns a number to each distinct item.
fn numbered<'a>(items: impl Iterator<Item = (&'a str, usize)>) -> Vec<u32> {
    let mut numbers = HashMap::default();
    let numbered = items.map(|item| {
        let next = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
        *numbers.entry(item).or_insert(next)
    });
    numbered.collect()
}
