//! Wiring of sibling blocks: the tensors that each layer reads.

use std::sync::Arc;

use smallvec::SmallVec;

use super::Block;
use crate::base::hash::{self, HashMap, HashSet};
use crate::explain::shown::{FEW, shown};
use crate::infer::blocks::{Role, SEPARATORS, module_of, number_of, plain, values};
use crate::model::graph::{Graph, Layer, LayerId, LayerMap, Output};
use crate::model::weights::Weights;
use crate::ops::{self, LayerKind};

/// A graph with the roles of its layers.
#[derive(Clone, Copy)]
pub(super) struct Flow<'a> {
    pub(super) graph: &'a Graph,
    pub(super) roles: &'a LayerMap<Role>,
    pub(super) weights: &'a Weights,
}

impl Flow<'_> {
    pub(super) fn is_data(self, layer: LayerId) -> bool {
        self.roles.get(layer) == Some(&Role::Data)
    }
}

/// Wiring of a block. Two are equal if each layer reads the same of its block and of its siblings.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wiring {
    /// The layers in topological order, each with a hash of all that it is computed from.
    layers: Vec<(u64, LayerId)>,
    /// The hashes in ascending order.
    hashes: Vec<u64>,
    /// The number of its tensors that several siblings read.
    pub(super) lent: usize,
    /// The tensors that most siblings read.
    shared: Arc<HashSet<Output>>,
    /// True for a block of a chain that no data leaves.
    pub(super) is_bypassed: bool,
    /// The number of layers that join a tensor of the block with one from outside, and of Adds that join two tensors, such as
    /// the end of a skip connection. They are a consequence of the operations and not compared.
    pub(super) joins: usize,
    pub(super) sums: usize,
}

impl PartialEq for Wiring {
    fn eq(&self, other: &Self) -> bool {
        self.hashes == other.hashes
    }
}

/// Finds the wiring of siblings.
///
/// A source outside of a block is known by the number of siblings between, without bypassed ones. A tensor that most
/// siblings read is the same for all of them. In a chain of blocks, the first one reads another tensor where its siblings
/// read the block before.
pub(super) fn of(flow: Flow<'_>, siblings: &[&Block]) -> Vec<Wiring> {
    let data = |block: &Block| {
        let layers = block.layers.iter().filter(|&&id| flow.is_data(id)).filter_map(|&id| flow.graph.layer(id));
        layers.map(|layer| (layer, sources(flow, layer))).collect::<Vec<_>>()
    };
    let layers: Vec<Vec<(&Layer, Sources)>> = siblings.iter().map(|block| data(block)).collect();
    let owners: HashMap<LayerId, usize> =
        layers.iter().enumerate().flat_map(|(at, layers)| layers.iter().map(move |(it, _)| (it.id(), at))).collect();
    // The last block may lead to nothing but a Result of its own.
    let is_left = |(at, layers): (usize, &Vec<(&Layer, Sources)>)| {
        let mut users = layers.iter().flat_map(|(layer, _)| flow.graph.users(layer.id()));
        at + 1 == siblings.len() || users.any(|user| owners.get(&user) != Some(&at))
    };
    let is_left: Vec<bool> = layers.iter().enumerate().map(is_left).collect();
    // The number of blocks before each one that data leaves.
    let sum = |sum: &mut usize, is_left: &bool| Some(std::mem::replace(sum, *sum + usize::from(*is_left)));
    let place: Vec<usize> = is_left.iter().chain([&false]).scan(0, sum).collect();
    // The number of other siblings that read a tensor and that data leaves, and the last of them.
    let mut readers = HashMap::<Output, (usize, usize)>::default();
    let mut is_chain = false;
    for (at, layers) in layers.iter().enumerate() {
        for &(_, source) in layers.iter().flat_map(|(_, sources)| sources) {
            let owner = owners.get(&source.layer).copied();
            if owner != Some(at) {
                is_chain |= owner.is_some_and(|owner| owner + 1 == at);
                let (count, last) = readers.entry(source).or_insert((0, usize::MAX));
                *count += usize::from(*last != at && is_left[at]);
                *last = at;
            }
        }
    }
    let shared = readers.iter().filter(|&(source, &(count, _))| {
        let possible = place[siblings.len()] - owners.get(&source.layer).map_or(0, |owner| place[owner + 1]);
        count > 1 && count * 2 > possible
    });
    let shared = Arc::new(HashSet::from_iter(shared.map(|(source, _)| *source)));
    let from_outside = |source: Output, reader: usize| match owners.get(&source.layer) {
        _ if shared.contains(&source) => hash::of((source.layer, source.port)),
        Some(&owner) => place[reader].abs_diff(place[owner]) as u64,
        None if reader == 0 && is_chain => 1,
        None => u64::MAX,
    };
    // An input of the model is known by its name, if most siblings have one of that name and their number.
    let ends = |at: usize| layers[at].iter().map(|(layer, _)| layer).filter(|it| it.inputs().is_empty());
    let mut patterns = HashMap::<String, usize>::default();
    for (at, block) in siblings.iter().enumerate() {
        ends(at).for_each(|end| *patterns.entry(pattern(end.name(), &block.name)).or_default() += 1);
    }
    patterns.retain(|pattern, count| *count * 2 > siblings.len() && pattern.contains('#'));
    let mut wirings = Vec::new();
    for (at, layers) in layers.iter().enumerate() {
        let hashes = |module: &dyn Fn(&Layer) -> u64| {
            let (mut known, mut hashes) = (HashMap::<LayerId, u64>::default(), Vec::new());
            for (layer, sources) in layers {
                let inputs = sources.iter().map(|&(input, source)| match known.get(&source.layer) {
                    Some(&hash) => (input, hash, source.port),
                    None => (input, from_outside(source, at), 0),
                });
                let mut inputs: SmallVec<[_; 4]> = inputs.collect();
                inputs.sort_unstable();
                let hash = hash::of((layer.ty(), inputs, module(layer)));
                known.insert(layer.id(), hash);
                hashes.push((hash, layer.id()));
            }
            hashes
        };
        let mut wiring = Wiring { layers: hashes(&|_| 0), ..Wiring::default() };
        // Layers that compute the same, such as projections in attention, are distinguished by their modules.
        let mut counts = HashMap::<u64, usize>::default();
        wiring.layers.iter().for_each(|&(hash, _)| *counts.entry(hash).or_default() += 1);
        let equal = wiring.layers.iter().filter(|(hash, _)| counts[hash] > 1).map(|&(_, id)| id);
        let equal: HashSet<LayerId> = equal.collect();
        let block = plain(&siblings[at].name);
        let module = |layer: &Layer| hash::of(module_of(layer.name(), block).map(|name| &name[block.len()..]));
        let word = |layer: &Layer| {
            let is_end = !patterns.is_empty() && layer.inputs().is_empty();
            let end = is_end.then(|| pattern(layer.name(), block));
            match end.filter(|end| patterns.keys().any(|it| letters(it).eq(letters(end)))) {
                Some(end) => hash::of(end),
                None if equal.contains(&layer.id()) => module(layer),
                None => 0,
            }
        };
        if !equal.is_empty() || !patterns.is_empty() {
            wiring.layers = hashes(&word);
        }
        wiring.hashes = wiring.layers.iter().map(|&(hash, _)| hash).collect();
        wiring.hashes.sort_unstable();
        for (layer, sources) in layers {
            let own = sources.iter().filter(|(_, source)| owners.get(&source.layer) == Some(&at)).count();
            wiring.joins += usize::from(own > 0 && own < sources.len());
            wiring.sums += usize::from(layer.ty() == "Add" && sources.len() > 1);
        }
        wiring.lent = shared.iter().filter(|source| owners.get(&source.layer) == Some(&at)).count();
        (wiring.shared, wiring.is_bypassed) = (shared.clone(), is_chain && !is_left[at]);
        wirings.push(wiring);
    }
    wirings
}

/// The data that a layer reads, each with the input.
type Sources = SmallVec<[(usize, Output); 2]>;

/// The inputs of a commutative operation are in no order.
fn sources(flow: Flow<'_>, layer: &Layer) -> Sources {
    let is_ordered = layer.operation().is_none_or(|it| !it.commutative);
    let feeds = flow.graph.feeds(layer.id()).into_iter().enumerate();
    let data = feeds.filter_map(|(input, feed)| Some((input, feed?))).filter(|(_, (from, _))| flow.is_data(from.id()));
    data.map(|(input, (from, port))| (if is_ordered { input } else { 0 }, from.id().output(port))).collect()
}

/// The family and the number of a block: `layers.17`.
pub(super) fn short(name: &str) -> &str {
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit()).trim_end_matches(['.', '/', ' ']);
    &name[stem.rfind(['.', '/']).map_or(0, |at| at + 1)..]
}

/// Describes the first layer of a block that reads something else than the same layer of a usual sibling.
pub(super) fn difference(flow: Flow<'_>, blocks: &[&Block], own: usize, usual: usize) -> String {
    let pairs = pairs_of_reads(flow, blocks, own, usual);
    let changes: Vec<[String; 3]> = pairs.iter().filter_map(|(mine, theirs)| changed(mine, theirs)).collect();
    let Some([name, mine, theirs]) = changes.first() else { return "reads other tensors than its siblings".to_owned() };
    let is_reverse = |[_, one, other]: &&[String; 3]| (one, other) == (theirs, mine);
    let reverse = changes.iter().find(is_reverse).map(|[name, ..]| format!(", and {name} the other way round"));
    format!("{name} reads {mine}, where its siblings read {theirs}{}", reverse.unwrap_or_default())
}

/// Describes the first layer that reads something else in one of only two siblings. A number in a name, such as that of
/// `Transpose_2`, follows from the layers before: unless both have the `same_layers`, it belongs to another layer.
pub(super) fn difference_of_two(flow: Flow<'_>, blocks: &[&Block], same_layers: bool) -> Option<String> {
    // The first block reads what enters, where the second one reads the first.
    let enters = |at: usize, read: &Read| !blocks[at].layers.contains(&read.tensor.layer);
    let pairs = pairs_of_reads(flow, blocks, 0, 1);
    let stem = |name: &str| name.trim_end_matches(|c: char| c.is_ascii_digit() || "_`".contains(c)).to_owned();
    let mut numbers = HashMap::<String, usize>::default();
    pairs
        .iter()
        .filter_map(|(mine, _)| mine.0.as_deref())
        .for_each(|name| *numbers.entry(stem(name)).or_default() += 1);
    let mut changes = pairs.into_iter().filter_map(|(mut mine, mut theirs)| {
        if mine.1.iter().any(|read| enters(0, read)) && theirs.1.iter().any(|read| enters(1, read)) {
            mine.1.retain(|read| !enters(0, read));
            theirs.1.retain(|read| !enters(1, read));
        }
        changed(&mine, &theirs)
    });
    let is_other = |[name, one, other]: &[String; 3]| {
        let is_numbered = numbers.get(&stem(name)).is_some_and(|count| *count > 1);
        stem(one) != stem(other) && (same_layers || !is_numbered)
    };
    let [name, mine, theirs] = changes.find(is_other)?;
    let [first, second] = [0, 1].map(|at| short(&blocks[at].name));
    Some(format!("{name} reads {mine} in {first} and {theirs} in {second}"))
}

/// The reads of each layer of a block, with those of the same layer of a sibling.
fn pairs_of_reads(flow: Flow<'_>, blocks: &[&Block], own: usize, usual: usize) -> Vec<(Reads, Reads)> {
    // The layers of a block; those that the other one has not come first.
    let all = |at: usize, other: usize| {
        let known: HashSet<u64> = blocks[other].form.wiring.hashes.iter().copied().collect();
        let mut layers = blocks[at].form.wiring.layers.clone();
        layers.sort_by_key(|(hash, _)| known.contains(hash));
        let layers = layers.into_iter().filter_map(|(_, id)| flow.graph.layer(id));
        layers.map(|layer| read(flow, blocks, at, layer)).collect::<Vec<Reads>>()
    };
    let (mine, theirs) = (all(own, usual), all(usual, own));
    let pairs = mine.into_iter().filter_map(|it| {
        let other = theirs.iter().find(|other| it.0.is_some() && other.0 == it.0)?.clone();
        Some((it, other))
    });
    pairs.collect()
}

/// The name of a layer, what it reads, and what the same layer of a sibling reads instead.
fn changed((name, mine): &Reads, (_, theirs): &Reads) -> Option<[String; 3]> {
    let different = |one: &[Read], other: &[Read]| one.iter().find(|it| other.iter().all(|that| !it.is(that))).cloned();
    let moved = different(mine, theirs).zip(different(theirs, mine));
    // Inputs that are exchanged have the same names.
    let exchanged = mine.iter().cloned().zip(theirs.iter().cloned()).filter(|(mine, theirs)| !mine.is(theirs));
    let found: Vec<_> = moved.map_or_else(|| exchanged.collect(), |it| vec![it]);
    let (mine, theirs): (Vec<_>, Vec<_>) =
        found.into_iter().map(|(mine, theirs)| (mine.own, theirs.name.unwrap_or(theirs.ty))).unzip();
    (!mine.is_empty()).then(|| Some([name.clone()?, mine.join(" and "), theirs.join(" and ")]))?
}

/// The name of a layer, and the tensors that it reads.
type Reads = (Option<String>, Vec<Read>);

#[derive(Clone)]
pub(super) struct Read {
    tensor: Output,
    /// `None` if siblings have other names for it.
    name: Option<String>,
    own: String,
    ty: String,
}

impl Read {
    /// True if this is the same tensor, or that of the same name in a sibling.
    pub(super) fn is(&self, other: &Self) -> bool {
        self.tensor == other.tensor || self.name == other.name
    }
}

/// The name of a layer as a block knows it: `` `attn/Add` ``, or `` `attn/Add` of the block before``. A name outside of
/// the scopes of blocks that has a number, such as `Multiply_9972` or `past.3.key`, is another one in each sibling.
fn named(blocks: &[&Block], at: usize, layer: &Layer) -> Option<String> {
    let name = plain(layer.name());
    let mut owners = std::iter::once(at).chain(0..blocks.len());
    let owner = owners.find(|&owner| blocks[owner].layers.contains(&layer.id()));
    let inner = owner.and_then(|owner| Some((owner, name.strip_prefix(plain(&blocks[owner].name))?)));
    let Some((owner, inner)) = inner else {
        let name = pattern(name, &blocks[at].name);
        return (name.contains('#') || !name.contains(|c: char| c.is_ascii_digit())).then(|| format!("`{name}`"));
    };
    let inner = inner.trim_start_matches(SEPARATORS);
    Some(match at.checked_sub(owner) {
        Some(0) => format!("`{inner}`"),
        Some(1) => format!("`{inner}` of the block before"),
        Some(back) => format!("`{inner}` of {back} blocks before"),
        None => format!("`{name}`"),
    })
}

fn read(flow: Flow<'_>, blocks: &[&Block], at: usize, layer: &Layer) -> Reads {
    let inputs = sources(flow, layer).into_iter().filter_map(|(_, tensor)| {
        let source = flow.graph.layer(tensor.layer)?;
        let of_port =
            |name| if source.outputs().len() > 1 { format!("output {} of {name}", tensor.port) } else { name };
        let own = of_port(format!("`{}`", plain(source.name())));
        let is_shared = blocks[at].form.wiring.shared.contains(&tensor);
        let name = if is_shared { Some(own.clone()) } else { named(blocks, at, source).map(of_port) };
        let own = name.clone().unwrap_or(own);
        Some(Read { tensor, name, own, ty: source.ty().to_owned() })
    });
    (named(blocks, at, layer), inputs.collect())
}

/// The tensors that each named layer of a block reads.
pub(super) fn reads(flow: Flow<'_>, blocks: &[&Block], at: usize) -> HashMap<String, Vec<Read>> {
    let layers = blocks[at].layers.iter().filter_map(|&id| flow.graph.layer(id));
    let reads = layers.filter(|layer| flow.is_data(layer.id())).map(|layer| read(flow, blocks, at, layer));
    reads.filter_map(|(name, reads)| Some((name?, reads))).collect()
}

/// Constants by the name in their block, or by the name of the layer that reads them with the number of the input, each with the
/// position of its block.
type Places<'a> = HashMap<(&'a str, Option<usize>), Vec<(usize, &'a Layer)>>;

/// The stored tensors that blocks read.
#[derive(Default)]
pub(super) struct Stored<'a> {
    places: Places<'a>,
    /// For each block a constant that has the name of a sibling, `layers.4.q.weight`, if this block has one, too.
    pub(super) misnumbered: Vec<Option<String>>,
}

pub(super) fn stored<'a>(flow: Flow<'a>, blocks: &[&'a Block]) -> Stored<'a> {
    let (mut found, mut existing) = (Stored::default(), None);
    for (at, block) in blocks.iter().enumerate() {
        let (own, mut nameless, mut misnumbered) = (plain(&block.name), 0, None);
        for layer in block.layers.iter().filter_map(|&id| flow.graph.layer(id)) {
            for (input, (source, _)) in
                flow.graph.feeds(layer.id()).into_iter().enumerate().filter_map(|(at, it)| Some((at, it?)))
            {
                let name = plain(source.name());
                let inner = name.strip_prefix(own).filter(|inner| inner.starts_with(SEPARATORS));
                if inner.is_none()
                    && misnumbered.is_none()
                    && flow.roles.get(source.id()) == Some(&Role::Stored)
                    && let Some(inner) = inner_of(name, own)
                {
                    let existing =
                        existing.get_or_insert_with(|| flow.graph.layers().map(|it| plain(it.name())).collect());
                    let has_own = HashSet::contains(existing, &*format!("{own}{inner}"));
                    let text = || format!("`{}` reads `{name}`, a constant of another block", plain(layer.name()));
                    misnumbered = has_own.then(text);
                }
                if ops::kind(source) != LayerKind::Constant {
                    continue;
                }
                let place = inner
                    .map(|name| (name, None))
                    .or_else(|| Some((plain(layer.name()).strip_prefix(own)?, Some(input))));
                // Without any name the position in the block tells what a large constant is.
                let is_large = values(source) >= LEAST_COMPARED;
                nameless += usize::from(place.is_none() && is_large);
                let place = place.or_else(|| is_large.then_some(("", Some(nameless))));
                place.into_iter().for_each(|place| found.places.entry(place).or_default().push((at, source)));
            }
        }
        found.misnumbered.push(misnumbered);
    }
    found
}

/// Describes for each block up to two constants that are others in most siblings, by their type, shape or few values, those of
/// another scale, and those of zeros. Without a usual form, types and shapes may differ. A constant without a name in its block
/// is known by the layer that reads it. The first list has the differences between only two blocks, of which neither is odd.
pub(super) fn odd_constants(
    flow: Flow<'_>,
    blocks: &[&Block],
    stored: Stored<'_>,
    is_usual: bool,
) -> (Vec<String>, Vec<Vec<String>>) {
    let (mut found, mut odd) = (vec![Vec::new(); blocks.len()], vec![Vec::new(); blocks.len()]);
    let mut of_two = Vec::new();
    let siblings = match blocks {
        [_, other] => short(&other.name),
        _ => "its siblings",
    };
    for ((inner, input), layers) in stored.places {
        let key = |&(_, it): &(usize, &'_ Layer)| {
            let ty = it.outputs().first().map(|port| (port.element_type(), port.shape().clone()));
            (ty, if values(it) > FEW { None } else { it.bytes(flow.weights) })
        };
        let keys: Vec<_> = layers.iter().map(key).collect();
        let count = |at: usize| keys.iter().filter(|key| **key == keys[at]).count();
        // The usual one is among any two of three. Of two blocks, the first is compared with the second.
        let usual = match blocks {
            [_, _] => layers.iter().position(|(at, _)| *at == 1),
            _ => {
                let first = (0..layers.len().min(2)).max_by_key(|&at| count(at));
                first.filter(|&at| count(at) * 3 >= layers.len().max(blocks.len()) * 2)
            }
        };
        let Some(usual) = usual else { continue };
        let (alike, others): (Vec<_>, Vec<_>) = layers.iter().zip(&keys).partition(|(_, key)| **key == keys[usual]);
        let text = |layer: &Layer| {
            let port = layer.outputs().first().map(ToString::to_string).unwrap_or_default();
            port + &shown(layer, flow.weights)
        };
        let name = inner.trim_start_matches(SEPARATORS);
        let name = input.map_or_else(|| format!("`{name}`"), |input| format!("input {input} of `{name}`"));
        for ((at, layer), _) in others.into_iter().filter(|_| !inner.is_empty()) {
            found[*at].push((name.clone(), [layer, layers[usual].1].map(text)));
        }
        let mut alike: Vec<_> = alike.into_iter().map(|(it, _)| *it).collect();
        alike.dedup_by_key(|(at, _)| *at);
        let (sizes, strange): (Vec<_>, Vec<_>) =
            sizes(flow.weights, alike).into_iter().partition(|it| it.0.is_finite());
        let named = |layer: &Layer| if inner.is_empty() { format!("`{}`", layer.name()) } else { name.clone() };
        for (_, at, layer) in strange.iter().filter(|_| strange.len() <= sizes.len()) {
            odd[*at].push(format!("{} has values that are not finite, unlike its siblings", named(layer)));
        }
        let is_zero = |layer: &Layer| layer.numbers(flow.weights).is_some_and(|all| all.iter().all(|it| *it == 0.0));
        let most = sizes.get(sizes.len() / 2).map_or(0.0, |size| size.0);
        for (_, at, layer) in sizes.iter().filter(|(size, _, it)| *size == 0.0 && most > 0.0 && is_zero(it)) {
            odd[*at].push(format!("all values of {} are zero, those of its siblings are not", named(layer)));
        }
        for (times, at, layer) in odd_scales(&sizes) {
            let (times, word) = if times > 1.0 { (times, "large") } else { (times.recip(), "small") };
            let unit = 10_f64.powf(times.log10().floor() - 1.0);
            let about = format!("{:.1}", (times / unit).round() * unit);
            let about = about.trim_end_matches(".0");
            let list = if blocks.len() == 2 { &mut of_two } else { &mut odd[at] };
            list.push(format!("{} has values about {about} times as {word} as in {siblings}", named(layer)));
        }
    }
    let describe = |mut words: Vec<(String, [String; 2])>| {
        words.sort();
        words.dedup();
        // Names that are exchanged are no difference of constants.
        let [mut own, mut others] = [0, 1].map(|side| words.iter().map(|(_, texts)| &texts[side]).collect::<Vec<_>>());
        own.sort();
        others.sort();
        let is_odd = own != others && words.len() <= 2 && (is_usual || blocks.len() == 2);
        let words = words.iter().map(|(name, [own, usual])| format!("{name} is {own}, in {siblings} {usual}"));
        if is_odd { words.collect() } else { Vec::new() }
    };
    odd.iter_mut().chain([&mut of_two]).for_each(|words| words.sort());
    let found = found.into_iter().map(describe);
    if blocks.len() == 2 {
        return (of_two.into_iter().chain(found.flatten()).collect(), odd);
    }
    (of_two, found.zip(odd).map(|(found, odd)| [found, odd].concat()).collect())
}

/// The number of values from which constants are compared by their size, and of those that are read of each.
const LEAST_COMPARED: u64 = 64;
const MOST_READ: usize = 512;
/// Factor between constants, by the root of the mean square, from which one is of another scale.
const OTHER_SCALE: f64 = 3.0;

/// Constants of many floats by the root of the mean square of their values, the least first. Empty if one cannot be read.
fn sizes<'a>(weights: &Weights, layers: Vec<(usize, &'a Layer)>) -> Vec<Size<'a>> {
    let sizes = layers.into_iter().map(|(at, layer)| {
        let is_float = layer.outputs().first()?.element_type().is_float() && values(layer) >= LEAST_COMPARED;
        let read = is_float.then(|| layer.sample(weights, MOST_READ))??;
        let square = read.iter().map(|value| value * value).sum::<f64>() / read.len() as f64;
        Some((square.sqrt(), at, layer))
    });
    let mut sizes = sizes.collect::<Option<Vec<_>>>().unwrap_or_default();
    sizes.sort_by(|one, other| one.0.total_cmp(&other.0));
    sizes
}

type Size<'a> = (f64, usize, &'a Layer);

/// The constants that are far from the others, each with its factor and block: farther than those are from each other. The
/// first of only two.
fn odd_scales<'a>(sizes: &[Size<'a>]) -> Vec<Size<'a>> {
    let sizes = &sizes[sizes.partition_point(|it| it.0 == 0.0)..];
    let (mut low, mut high) = (sizes.len() / 2, sizes.len() / 2);
    while low > 0 && sizes[low].0 < OTHER_SCALE * sizes[low - 1].0 {
        low -= 1;
    }
    while high + 1 < sizes.len() && sizes[high + 1].0 < OTHER_SCALE * sizes[high].0 {
        high += 1;
    }
    let (Some(near), Some(middle)) = (sizes.get(low..=high), sizes.get(low.midpoint(high))) else { return Vec::new() };
    let spread = sizes[high].0 / sizes[low].0;
    let is_far = |size: f64| size * spread <= sizes[low].0 || size >= sizes[high].0 * spread;
    match *sizes {
        [(one, 0, layer), (other, ..)] | [(other, ..), (one, 0, layer)] if near.len() == 1 => {
            vec![(one / other, 0, layer)]
        }
        _ if near.len() * 3 < sizes.len() * 2 => Vec::new(),
        _ => {
            let others = sizes[..low].iter().chain(&sizes[high + 1..]).filter(|(size, ..)| is_far(*size));
            others.map(|&(size, at, layer)| (size / middle.0, at, layer)).collect()
        }
    }
}

/// The rest of a name after the name of a block or of its sibling: `.q.weight` of `layers.4.q.weight` for `layers.3`.
fn inner_of<'a>(name: &'a str, block: &str) -> Option<&'a str> {
    let is_digit = |c: char| c.is_ascii_digit();
    let rest = name.strip_prefix(plain(block).trim_end_matches(is_digit))?;
    let inner = rest.trim_start_matches(is_digit);
    (inner.len() < rest.len() && inner.starts_with(SEPARATORS)).then_some(inner)
}

fn letters(name: &str) -> impl Iterator<Item = char> {
    name.chars().filter(|c| !c.is_ascii_digit() && *c != '#')
}

/// Replaces each number in a name that is that of its block by `#`.
fn pattern(name: &str, block: &str) -> String {
    let (number, is_digit) = (number_of(block), |c: char| c.is_ascii_digit());
    let parts = name.split_inclusive(|c: char| !is_digit(c)).map(|part| {
        let digits = part.trim_end_matches(|c: char| !is_digit(c));
        let is_own = digits.parse().is_ok_and(|it: u64| Some(it) == number);
        if is_own { format!("#{}", &part[digits.len()..]) } else { part.to_owned() }
    });
    parts.collect()
}
