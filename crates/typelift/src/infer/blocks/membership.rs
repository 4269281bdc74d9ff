//! Assignment of layers to repeated blocks by name.
//!
//! A layer belongs to the block in its name, wherever it is in the graph: `model.layers.17.mlp/Add` to
//! `model.layers.17`. Blocks whose names differ only in the number are a family of siblings. A layer that lost its name
//! borrows one ([`Names`]). Another layer belongs to a block if it is between layers of the block, or between it and the
//! next sibling. An input, an output or another layer that is connected to only one block belongs to that block, if most
//! siblings have such a layer.
//!
//! Worked example: in a language model with a cache, `past_key_values.1.key` is a Parameter whose only consumer is a
//! Concat of `layers.1`. All siblings have such a Parameter, so it belongs to `layers.1`. The embedding only feeds
//! `layers.0`, but no sibling has one, so it is before the blocks.

use std::collections::{BTreeMap, BTreeSet};

use super::names::{Names, number_of, plain};
use crate::base::hash::HashMap;
use crate::model::graph::{Graph, Layer, LayerId, LayerMap, numbered_prefix};

/// Minimum number of layers of a block. A block that occurs only twice needs more.
pub(super) const LEAST: usize = 4;
/// Minimum number of layers of a block whose name is that of larger siblings.
const LEAST_OF_SIBLING: usize = 2;

pub(super) struct Block {
    /// Name of the block: the names of its layers up to the number, `model.layers.17`.
    pub(super) name: String,
    /// Number of its family, which siblings have in common.
    pub(super) family: usize,
    /// Its layers that compute data, in topological order.
    pub(super) layers: Vec<LayerId>,
}

pub(super) struct Membership {
    /// The blocks in topological order.
    pub(super) blocks: Vec<Block>,
    /// Positions of the layers that belong to no block: a list before each block, and one after the last.
    pub(super) gaps: Vec<Vec<usize>>,
    by_name: HashMap<String, usize>,
}

/// First and last block that a layer reaches through layers without a block.
type Reach = Option<(usize, usize)>;

impl Membership {
    /// Finds the blocks of a graph; `order` are its data layers in topological order.
    pub(super) fn new(graph: &Graph, order: &[&Layer], names: &Names<'_>) -> Self {
        let blocks = blocks(graph, order, names);
        let by_name = blocks.iter().enumerate().map(|(at, block)| (plain(&block.name).to_owned(), at)).collect();
        let mut found = Self { gaps: vec![Vec::new(); blocks.len() + 1], blocks, by_name };
        let mut of = LayerMap::new(graph);
        of.extend(order.iter().filter_map(|layer| Some((layer.id(), found.at(names.get(layer.id())?)?))));
        let families = siblings(&found.blocks);
        let reaches = Reaches::new(graph, order, &of);
        reaches.join(graph, order, &families, &mut of);
        for (place, layer) in order.iter().enumerate() {
            match of.get(layer.id()) {
                Some(&at) => found.blocks[at].layers.push(layer.id()),
                None => {
                    let gap = reaches.gap(&families, layer.id());
                    found.gaps[gap].push(place);
                }
            }
        }
        found
    }

    pub(super) fn at(&self, name: &str) -> Option<usize> {
        self.by_name.get(plain(numbered_prefix(name)?)).copied()
    }
}

/// Removes the number at the end of a block's name.
fn stem(name: &str) -> &str {
    name.trim_end_matches(|c: char| c.is_ascii_digit())
}

/// Finds the blocks in the names of layers, in topological order. A block needs a few layers and a sibling; one layer is
/// enough if a neighbour has the same one. A family begins where its first block ends: a decoder that looks at its own
/// input first is after the encoder. Blocks at the same depth are in the order of their numbers, a bypassed one too.
fn blocks(graph: &Graph, order: &[&Layer], names: &Names<'_>) -> Vec<Block> {
    // The layers of each block, and the most blocks before them and before each layer.
    let mut levels = LayerMap::new(graph);
    let mut named = HashMap::<&str, (Vec<usize>, usize)>::default();
    for (at, layer) in order.iter().enumerate() {
        let own = names.get(layer.id()).and_then(numbered_prefix);
        let feeds = graph.feeds(layer.id()).into_iter().flatten().filter_map(|(from, _)| levels.get(from.id()));
        let behind =
            feeds.map(|&(block, level): &(Option<&str>, usize)| level + usize::from(block.is_some() && block != own));
        let level = behind.max().unwrap_or(0);
        levels.insert(layer.id(), (own, level));
        if let Some(prefix) = own {
            let (places, depth) = named.entry(prefix).or_default();
            places.push(at);
            *depth = level.max(*depth);
        }
    }
    let depths: HashMap<&str, usize> = named.iter().map(|(name, (_, depth))| (*name, *depth)).collect();
    let mut places: BTreeMap<&str, Vec<usize>> = named.into_iter().map(|(name, (places, _))| (name, places)).collect();
    let is_sibling = |block: &str, own: usize| {
        let Some((inner, number)) = order[own].name().strip_prefix(block).zip(number_of(block)) else { return false };
        [number.checked_sub(1), number.checked_add(1)].into_iter().flatten().any(|number| {
            let other = format!("{}{number}", stem(block));
            places.get(&*other).into_iter().flatten().any(|&at| order[at].name().strip_prefix(&other) == Some(inner))
        })
    };
    let small = places.iter().filter(|(name, own)| own.len() < LEAST_OF_SIBLING && !is_sibling(name, own[0]));
    let small: Vec<&str> = small.map(|(name, _)| *name).collect();
    places.retain(|name, _| small.binary_search(name).is_err());
    let mut families = BTreeMap::<&str, usize>::new();
    let large = places.iter().filter(|(_, places)| places.len() >= LEAST);
    large.for_each(|(name, _)| *families.entry(stem(name)).or_default() += 1);
    families.retain(|_, siblings| *siblings > 1);
    let number: HashMap<&str, usize> = families.into_keys().enumerate().map(|(at, stem)| (stem, at)).collect();
    let siblings = places.into_iter().filter_map(|(name, places)| Some((*number.get(stem(name))?, name, places)));
    // Families stay together.
    let mut first = HashMap::<usize, usize>::default();
    let mut found = Vec::new();
    for (family, name, places) in siblings {
        let end = places.last().copied().unwrap_or(0);
        first.entry(family).and_modify(|known| *known = end.min(*known)).or_insert(end);
        found.push((family, depths.get(name), number_of(name), name));
    }
    found.sort_by_key(|&(family, depth, number, _)| (first.get(&family).copied(), family, depth, number));
    found.into_iter().map(|(family, .., name)| Block { name: name.to_owned(), family, layers: Vec::new() }).collect()
}

fn siblings(blocks: &[Block]) -> Vec<(usize, usize)> {
    let mut families = HashMap::<usize, (usize, usize)>::default();
    for (at, block) in blocks.iter().enumerate() {
        families.entry(block.family).and_modify(|known| known.1 = at).or_insert((at, at));
    }
    blocks.iter().filter_map(|block| families.get(&block.family).copied()).collect()
}

/// For each layer without a block: the blocks before and after it.
struct Reaches {
    before: LayerMap<(usize, usize)>,
    after: LayerMap<(usize, usize)>,
    /// The layers that compute data.
    data: LayerMap<()>,
}

impl Reaches {
    fn new(graph: &Graph, order: &[&Layer], of: &LayerMap<usize>) -> Self {
        let mut data = LayerMap::new(graph);
        data.extend(order.iter().map(|layer| (layer.id(), ())));
        let mut found = Self { before: LayerMap::new(graph), after: LayerMap::new(graph), data };
        let free: Vec<_> = order.iter().filter(|layer| of.get(layer.id()).is_none()).collect();
        for layer in &free {
            let producers = graph.feeds(layer.id()).into_iter().flatten().map(|(producer, _)| producer.id());
            if let Some(reach) = span(producers, of, &found.before) {
                found.before.insert(layer.id(), reach);
            }
        }
        for layer in free.iter().rev() {
            if let Some(reach) = span(graph.users(layer.id()), of, &found.after) {
                found.after.insert(layer.id(), reach);
            }
        }
        found
    }

    /// Assigns layers without a block to the block around them.
    fn join(&self, graph: &Graph, order: &[&Layer], siblings: &[(usize, usize)], of: &mut LayerMap<usize>) {
        let mut signatures = BTreeMap::<(usize, Vec<&str>), BTreeSet<usize>>::new();
        let (mut joined, mut touching) = (Vec::new(), Vec::new());
        for layer in order.iter().filter(|layer| of.get(layer.id()).is_none()) {
            match (self.before.get(layer.id()).copied(), self.after.get(layer.id()).copied()) {
                (Some((_, last)), Some((first, _))) if siblings[last] == siblings[first] => {
                    joined.push((layer.id(), last));
                }
                (Some((first, last)), None) | (None, Some((first, last))) if first == last => {
                    let signature = (siblings[first].0, self.signature(graph, layer));
                    signatures.entry(signature.clone()).or_default().insert(first);
                    touching.push((layer.id(), first, signature));
                }
                _ => {}
            }
        }
        of.extend(joined);
        for (id, block, signature) in touching {
            let (first, last) = siblings[block];
            if signatures.get(&signature).is_some_and(|having| having.len() * 2 > last - first + 1) {
                of.insert(id, block);
            }
        }
    }

    fn signature<'a>(&self, graph: &'a Graph, layer: &'a Layer) -> Vec<&'a str> {
        let producers = graph.feeds(layer.id()).into_iter().flatten().map(|(producer, _)| producer);
        let producers = producers.filter(|producer| self.data.get(producer.id()).is_some()).map(Layer::ty);
        let consumers = graph.users(layer.id()).filter(|&user| self.data.get(user).is_some());
        let consumers = consumers.filter_map(|user| graph.layer(user));
        let mut consumers: Vec<&str> = consumers.map(Layer::ty).collect();
        consumers.sort_unstable();
        [layer.ty()].into_iter().chain(producers).chain(["→"]).chain(consumers).collect()
    }

    /// The gap of a layer without a block: the number of blocks before it. No gap is between siblings.
    fn gap(&self, siblings: &[(usize, usize)], layer: LayerId) -> usize {
        match (self.before.get(layer), self.after.get(layer)) {
            (Some(&(_, before)), _) => siblings[before].1 + 1,
            (None, Some(&(after, _))) => siblings[after].0,
            (None, None) => 0,
        }
    }
}

fn span(layers: impl Iterator<Item = LayerId>, of: &LayerMap<usize>, reached: &LayerMap<(usize, usize)>) -> Reach {
    let reaches = layers.filter_map(|id| of.get(id).map(|&at| (at, at)).or_else(|| reached.get(id).copied()));
    reaches.reduce(|all, next| (all.0.min(next.0), all.1.max(next.1)))
}
