//! Differences between sibling blocks, in words.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::sync::Arc;

use smallvec::SmallVec;
use typelift_promote::ElementType;

use super::Block;
use super::wiring::{self, Flow, short};
use crate::base::hash::{self, HashMap};
use crate::findings::{grouped, list};
use crate::infer::blocks::NAMELESS;
use crate::model::graph::Layer;
use crate::ops::{self, LayerKind};

/// Properties in which sibling blocks can differ.
#[derive(Clone, Debug, Default)]
pub(crate) struct Form {
    /// The bytes stored in each element type.
    stored: BTreeMap<ElementType, u64>,
    /// The number of tensors computed in each element type.
    computed: BTreeMap<ElementType, u64>,
    /// The number of layers of each operation, without constants.
    operations: Arc<BTreeMap<String, u64>>,
    /// The number of layers with each word of an attribute: `transpose_b="true"` of MatMul.
    words: Arc<BTreeMap<(String, String), u64>>,
    /// The multiply-accumulate operations.
    macs: u64,
    pub(super) wiring: wiring::Wiring,
    /// Hashes of the operations and of the words, by which they are compared.
    hashes: [u64; 2],
    /// For each operation: the hash of its name, its count, and the hash of its words.
    of_operations: Arc<Vec<[u64; 3]>>,
}

/// Names and values of the attributes of a layer that are settings of its operation.
type Settings<'a> = SmallVec<[(&'a str, &'a str); 2]>;

fn settings(layer: &Layer) -> Settings<'_> {
    let operation = layer.operation();
    let is_setting = |name: &str| operation.is_some_and(|it| it.settings().any(|setting| setting == name));
    let attributes = layer.attributes().iter().filter(|it| is_setting(it.name()));
    attributes.map(|it| (it.name(), it.value())).collect()
}

impl PartialEq for Form {
    fn eq(&self, other: &Self) -> bool {
        // The last ones are compared soonest.
        ASPECTS.iter().rev().all(|(_, is_alike)| is_alike(self, other))
    }
}

impl Form {
    /// Siblings whose layers have the same operations and settings share them in `known`, by the number of layers and the sum
    /// of their hashes.
    fn of(flow: Flow<'_>, block: &Block, wiring: wiring::Wiring, known: &mut HashMap<(usize, u64), Self>) -> Self {
        let mut form = Self { macs: block.macs, wiring, ..Self::default() };
        let (mut layers, mut sum) = (Vec::with_capacity(block.layers.len()), 0_u64);
        for layer in block.layers.iter().filter_map(|&id| flow.graph.layer(id)) {
            if ops::kind(layer) == LayerKind::Constant {
                continue;
            }
            let settings = settings(layer);
            sum = sum.wrapping_add(hash::of((layer.ty(), &settings)));
            layers.push((layer.ty(), settings));
        }
        let shared = known.entry((layers.len(), sum)).or_insert_with(|| Self::of_words(layers));
        (form.operations, form.words, form.hashes) = (shared.operations.clone(), shared.words.clone(), shared.hashes);
        form.of_operations = shared.of_operations.clone();
        form.computed = block.computed.iter().map(|of| (of.element_type, of.count as u64)).collect();
        for weights in &block.weights {
            *form.stored.entry(weights.element_type).or_default() += weights.bytes;
        }
        form
    }

    fn of_words(layers: Vec<(&str, Settings<'_>)>) -> Self {
        let (mut operations, mut words) = (BTreeMap::<String, u64>::new(), BTreeMap::new());
        for (ty, settings) in layers {
            *operations.entry(ty.to_owned()).or_default() += 1;
            for (name, value) in settings {
                let word = format!("{name}=\"{}\"", value.replace(' ', ""));
                *words.entry((ty.to_owned(), word)).or_default() += 1;
            }
        }
        let hashes = [hash::of(&operations), hash::of(&words)];
        let of_operations = operations.iter().map(|(ty, count)| {
            let own = words.range((ty.clone(), String::new())..).take_while(|((operation, _), _)| operation == ty);
            [hash::of(ty), *count, hash::of(own.collect::<Vec<_>>())]
        });
        let mut of_operations: Vec<_> = of_operations.collect();
        of_operations.sort_unstable();
        let of_operations = of_operations.into();
        Self { operations: operations.into(), words: words.into(), hashes, of_operations, ..Self::default() }
    }

    /// Describes a skip connection that this form has more or less than `other`.
    fn branch(&self, other: &Self) -> Option<&'static str> {
        let (mine, theirs) = (&self.wiring, &other.wiring);
        if mine.sums >= theirs.sums && mine.joins >= theirs.joins {
            return None;
        }
        let [own, others] =
            [self, other].map(|form| PRODUCTS.iter().filter_map(|it| form.operations.get(*it)).sum::<u64>());
        // A block that lacks more than an Add, and layers on the skip connection, differs in something else.
        let rest = keys(&self.operations, &other.operations)
            .into_iter()
            .filter(|it| !["Add", "Convert"].contains(&it.as_str()));
        let count = |form: &Self, operation: &String| form.operations.get(operation).copied().unwrap_or(0);
        let rest: u64 = rest.map(|operation| count(self, operation).abs_diff(count(other, operation))).sum();
        let has_gap = mine.sums < theirs.sums && (rest == 0 || rest <= 2 && mine.sums == 0);
        let has_branch = mine.joins < theirs.joins && mine.sums == theirs.sums && own == others + 1;
        has_branch.then_some("has a downsample branch").or(has_gap.then_some("lacks a skip connection"))
    }

    /// The words of attributes that only this form has, of operations of both: `Convolution with dilations="2,2"`. With
    /// `is_counted`, and as many layers of the operation, also those that it has more often.
    fn own_words(&self, other: &Self, is_counted: bool) -> Option<String> {
        let own = self.words.iter().filter(|(word, count)| match other.words.get(*word) {
            Some(others) => {
                is_counted && self.operations.get(&word.0) == other.operations.get(&word.0) && *count > others
            }
            None => other.operations.contains_key(&word.0),
        });
        let mut words = BTreeMap::<&str, Vec<&str>>::new();
        own.for_each(|((operation, word), _)| words.entry(operation).or_default().push(word));
        let words: Vec<String> =
            words.into_iter().map(|(operation, words)| format!("{operation} with {}", words.join(", "))).collect();
        (!words.is_empty()).then(|| words.join(", "))
    }

    /// Describes the differences between the only two siblings, of which neither is the usual one.
    fn differences_of_two(flow: Flow<'_>, blocks: &[&Block]) -> Vec<String> {
        let [(one, first), (other, second)] = [0, 1].map(|at| (&*blocks[at].form, short(&blocks[at].name)));
        let attributes = [false, true].map(|is_counted| {
            let words = [(one, other, first), (other, one, second)].into_iter().filter_map(|(one, other, name)| {
                one.own_words(other, is_counted).map(|own| format!("{own} in {name}"))
            });
            words.collect::<Vec<_>>()
        });
        let mut words = attributes.into_iter().find(|words| !words.is_empty()).unwrap_or_default();
        let is_rewired = one.wiring != other.wiring;
        let same_layers = one.operations == other.operations;
        words.extend(is_rewired.then(|| wiring::difference_of_two(flow, blocks, same_layers)).flatten());
        // An operation that one of them lacks comes first.
        let mut counts = pairs(&one.operations, &other.operations, "");
        counts.sort_by_key(|text| !text.starts_with("0 ") && !text.contains(" 0 "));
        let more = counts.len().saturating_sub(MOST_COUNTED);
        words.extend(counts.into_iter().take(MOST_COUNTED));
        let are = if more == 1 { "operation" } else { "operations" };
        words.extend((more > 0).then(|| format!("the count of {more} more {are}")));
        words.extend(pairs(&one.computed, &other.computed, "tensors in "));
        words.extend(pairs(&one.stored, &other.stored, "bytes of "));
        if words.is_empty() {
            words.extend(is_rewired.then(|| "wiring".to_owned()));
            let macs = [one, other].map(|form| grouped(form.macs));
            words.extend((macs[0] != macs[1]).then(|| format!("{} MACs", macs.join(" and "))));
        }
        words
    }

    /// Describes the differences from `other`, which is the form of most of `all`.
    fn differences(&self, other: &Self, all: &[&Self]) -> Vec<String> {
        let (computed, stored): (Vec<_>, Vec<_>) = all.iter().map(|form| (&form.computed, &form.stored)).unzip();
        let (is_retyped, computed) = types("computes", "in ", [&self.computed, &other.computed], &computed, " tensors");
        let stored = types("stores", "", [&self.stored, &other.stored], &stored, " bytes").1;
        let mut counts = Vec::new();
        for operation in keys(&self.operations, &other.operations) {
            let [own, usual] = [self, other].map(|form| form.operations.get(operation).copied().unwrap_or(0));
            // Converts follow from the types.
            if own != usual && !(is_retyped && operation == "Convert") {
                counts.push(format!("{} {operation} instead of {}", grouped(own), grouped(usual)));
            }
        }
        let branch = self.branch(other).map(str::to_owned);
        let counts = (!counts.is_empty()).then(|| format!("has {}", counts.join(", ")));
        // A cause comes before what follows from it: another type, other operations, other bytes.
        let (first, last) = if is_retyped { (computed, None) } else { (None, computed) };
        let mut words: Vec<String> = [first, branch, counts, last, stored].into_iter().flatten().collect();
        words.extend(self.own_words(other, true).map(|own| format!("has {own}")));
        if words.is_empty() && self.macs != other.macs {
            let whose = siblings(all.iter().filter(|form| form.macs == other.macs).count(), all.len() - 1);
            words.push(format!("needs {} MACs, {whose} {}", grouped(self.macs), grouped(other.macs)));
        }
        words
    }
}

/// Operations with weights on a skip connection.
const PRODUCTS: [&str; 3] = ["Convolution", "GroupConvolution", "MatMul"];

fn keys<'a, K: Ord, V>(one: &'a BTreeMap<K, V>, other: &'a BTreeMap<K, V>) -> BTreeSet<&'a K> {
    one.keys().chain(other.keys()).collect()
}

/// The counts that differ: `3 and 2 Convolution`.
fn pairs<K: Ord + Display>(one: &BTreeMap<K, u64>, other: &BTreeMap<K, u64>, unit: &str) -> Vec<String> {
    let counts =
        keys(one, other).into_iter().map(|key| (key, [one, other].map(|counts| counts.get(key).copied().unwrap_or(0))));
    let differ = counts.filter(|(_, [own, others])| own != others);
    differ.map(|(key, [own, others])| format!("{} and {} {unit}{key}", grouped(own), grouped(others))).collect()
}

/// Limit on the operations that are counted for two blocks.
const MOST_COUNTED: usize = 4;

/// Describes the difference of two counts by element type, and returns true if the most frequent type differs.
fn types(
    verb: &str,
    preposition: &str,
    [own, other]: [&BTreeMap<ElementType, u64>; 2],
    all: &[&BTreeMap<ElementType, u64>],
    unit: &str,
) -> (bool, Option<String>) {
    let most = |counts: &BTreeMap<ElementType, u64>| counts.iter().max_by_key(|(_, count)| **count).map(|(ty, _)| *ty);
    if let (Some(mine), Some(usual)) = (most(own), most(other))
        && mine != usual
    {
        let whose = siblings(all.iter().filter(|counts| most(counts) == Some(usual)).count(), all.len() - 1);
        return (true, Some(format!("{verb} {preposition}{mine}, {whose} {preposition}{usual}")));
    }
    let differ = keys(own, other).into_iter().filter(|ty| own.get(ty) != other.get(ty));
    let joint = if unit == " bytes" { " of " } else { " in " };
    let text = differ.map(|ty| {
        let [mine, usual] = [own, other].map(|counts| counts.get(ty).copied().unwrap_or(0));
        let unit = if mine == 1 { unit.trim_end_matches('s') } else { unit };
        format!("{}{unit}{joint}{ty} instead of {}", grouped(mine), grouped(usual))
    });
    let text: Vec<String> = text.collect();
    (false, (!text.is_empty()).then(|| format!("{verb} {}", text.join(", "))))
}

/// Siblings of one form, by their positions.
type Kind<'a> = (&'a Form, Vec<usize>);

/// Describes for each sibling how it differs from the usual form; nothing for those of that form. Where most siblings do
/// not agree, the first sibling says that all differ.
fn compare(flow: Flow<'_>, blocks: &[&Block]) -> Vec<Vec<String>> {
    let forms: Vec<&Form> = blocks.iter().map(|block| &*block.form).collect();
    let mut kinds: Vec<Kind<'_>> = Vec::new();
    for (at, form) in forms.iter().enumerate() {
        match kinds.iter_mut().find(|(known, _)| known == form) {
            Some((_, members)) => members.push(at),
            None => kinds.push((form, vec![at])),
        }
    }
    let bypassed =
        forms.iter().map(|form| form.wiring.is_bypassed.then(|| "is bypassed: no layer after it reads it".to_owned()));
    let mut stored = wiring::stored(flow, blocks);
    let misnumbered = std::mem::take(&mut stored.misnumbered);
    let mut words: Vec<Vec<String>> =
        bypassed.zip(misnumbered).map(|(one, other)| one.into_iter().chain(other).collect()).collect();
    let usual = usual(flow, &kinds, blocks);
    let (of_two, mut constants) = wiring::odd_constants(flow, blocks, stored, usual.is_some());
    if blocks.len() == 2 {
        words.iter_mut().zip(&mut constants).for_each(|(words, constants)| words.append(constants));
    }
    let is_usual = |form: &Form| usual.is_some_and(|(usual, _)| form == usual);
    let first = disagreement(flow, &kinds, blocks, usual.is_some(), of_two);
    words.first_mut().into_iter().for_each(|words| words.extend(first.iter().cloned()));
    for (form, members) in kinds.iter().filter(|(form, _)| !is_usual(form)) {
        let Some((usual, alike)) = usual else {
            let branch = kinds.iter().find_map(|(other, _)| form.branch(other));
            members.iter().for_each(|&at| words[at].extend(branch.map(str::to_owned)));
            continue;
        };
        let differences = form.differences(usual, &forms);
        for &at in members {
            let lent = form.wiring.lent.saturating_sub(usual.wiring.lent);
            let lends = if lent == 1 { "a tensor".to_owned() } else { format!("{} tensors", grouped(lent as u64)) };
            words[at].extend((lent > 0).then(|| format!("computes {lends} that several siblings read")));
            words[at].extend(differences.iter().cloned());
            let is_rewired = form.operations == usual.operations && form.wiring != usual.wiring;
            // Names inside of near siblings have the same numbers. The next ones may read a tensor that this one should not.
            let distance = |other: &&usize| Some(other.abs_diff(at)).filter(|&blocks| blocks > 1).unwrap_or(usize::MAX);
            let near = alike.iter().min_by_key(distance).filter(|_| is_rewired);
            words[at].extend(near.map(|&near| wiring::difference(flow, blocks, at, near)));
        }
    }
    words.iter_mut().zip(constants).for_each(|(words, constants)| words.extend(constants));
    words
}

/// Says of siblings without a usual form that they differ, and in what. Of two siblings, neither is the usual one.
fn disagreement(
    flow: Flow<'_>,
    kinds: &[Kind<'_>],
    blocks: &[&Block],
    is_usual: bool,
    constants: Vec<String>,
) -> Option<String> {
    let (names, differ) = match blocks {
        [one, other] => {
            // Other weights say more than counts of operations.
            let differ = [constants, Form::differences_of_two(flow, blocks)].concat().join("; ");
            (format!("{} and {}", short(&one.name), short(&other.name)), differ)
        }
        [first, ..] if !is_usual => {
            let family = short(&first.name).trim_end_matches(|c: char| c.is_ascii_digit()).trim_end_matches(['.', '/']);
            let is_named = ![NAMELESS, "block", "blocks"].contains(&family);
            let family = if is_named { format!(" of {family}") } else { String::new() };
            (format!("the {} blocks{family}", blocks.len()), aspects(kinds, blocks))
        }
        _ => return None,
    };
    (!differ.is_empty()).then(|| format!("{names} differ from each other: {differ}"))
}

/// The form that agrees with most siblings in each aspect, and the siblings of this form. Half of the siblings are
/// enough if no other form has as many. Of several such forms, the most frequent one is usual, or else the one with most
/// inputs that are those of the other siblings.
fn usual<'a, 'k>(flow: Flow<'_>, kinds: &'k [Kind<'a>], blocks: &[&Block]) -> Option<(&'a Form, &'k [usize])> {
    let is_usual = |form: &Form| {
        ASPECTS.iter().all(|(_, is_alike)| {
            let count = |form: &Form| {
                let alike = kinds.iter().filter(|(other, _)| is_alike(other, form)).map(|(_, members)| members.len());
                alike.sum::<usize>()
            };
            let own = count(form);
            let mut others = kinds.iter().filter(|(other, _)| !is_alike(other, form));
            own * 2 > blocks.len() || own * 2 == blocks.len() && others.all(|(other, _)| count(other) < own)
        })
    };
    let candidates: Vec<&Kind<'_>> = kinds.iter().filter(|(form, _)| is_usual(form)).collect();
    let most = candidates.iter().map(|(_, members)| members.len()).max()?;
    let mut found: Vec<_> = candidates.into_iter().filter(|(_, members)| members.len() == most).collect();
    if found.len() > 1 {
        let reads: Vec<_> = (0..blocks.len()).map(|at| wiring::reads(flow, blocks, at)).collect();
        let votes = |(_, members): &&Kind<'_>| {
            let own = reads[members[0]].iter();
            let alike = own.flat_map(|(name, read)| {
                let others = reads.iter().filter_map(move |other| other.get(name));
                others.flat_map(move |other| read.iter().zip(other)).filter(|(one, other)| one.is(other))
            });
            alike.count()
        };
        let most = found.iter().map(votes).max();
        found.retain(|kind| Some(votes(kind)) == most);
    }
    match found[..] {
        [(form, members)] => Some((form, members)),
        _ => None,
    }
}

/// The siblings of a block, of which this many are alike: `its 11 siblings`, `9 of its 11 siblings`.
fn siblings(alike: usize, others: usize) -> String {
    if alike == others { format!("its {others} siblings") } else { format!("{alike} of its {others} siblings") }
}

/// The properties in which blocks differ, the cause first, with the blocks that differ from most: `operations in block 6,
/// stored bytes`.
fn aspects(kinds: &[Kind<'_>], blocks: &[&Block]) -> String {
    let mut words = Vec::new();
    for (word, is_alike) in ASPECTS {
        // The form that most are like, if there is one: each form takes away from those that are not like it.
        let (mut usual, mut lead) = (kinds[0].0, 0);
        for (form, members) in kinds {
            match members.len() {
                count if is_alike(form, usual) => lead += count,
                count if count <= lead => lead -= count,
                count => (usual, lead) = (form, count - lead),
            }
        }
        let others = kinds.iter().filter(|(form, _)| !is_alike(form, usual)).flat_map(|(_, members)| members);
        let others: Vec<&str> = others.map(|&at| short(&blocks[at].name)).collect();
        let names = if *word == "attributes" { attributes(kinds) } else { String::new() };
        match others.len() {
            0 => {}
            1..=2 if others.len() * 2 < blocks.len() => {
                words.push(format!("{word}{names} in {}", others.join(" and ")))
            }
            _ if *word == "operations" => words.push(format!("{word}{}", nearest(kinds, blocks))),
            _ => words.push(format!("{word}{names}")),
        }
    }
    words.join(", ")
}

/// Names the operations in which the two blocks differ that are most alike: ` (ReLU and Tanh between block.1 and block.2)`.
fn nearest(kinds: &[Kind<'_>], blocks: &[&Block]) -> String {
    let pairs =
        kinds.iter().enumerate().take(MOST_KINDS).flat_map(|(at, one)| kinds[..at].iter().map(move |it| (it, one)));
    let differing = pairs.map(|((one, first), (other, second))| {
        let operations = keys(&one.operations, &other.operations).into_iter();
        let odd = operations.filter(|it| one.operations.get(*it) != other.operations.get(*it)).cloned();
        (odd.collect::<Vec<_>>(), [first, second].map(|members| short(&blocks[members[0]].name)))
    });
    let fewest = differing.filter(|(odd, _)| !odd.is_empty()).min_by_key(|(odd, _)| odd.len());
    let few = fewest.filter(|(odd, _)| odd.len() <= 2);
    few.map_or_else(String::new, |(odd, [one, other])| format!(" ({} between {one} and {other})", list(odd, "and")))
}

/// Limit on the forms of blocks that are compared with each other.
const MOST_KINDS: usize = 16;

/// Limit on the attributes that are named for blocks which all differ.
const MOST_NAMED: usize = 5;

/// Names the attributes that differ, if there are few: ` (axis of Gather)`.
fn attributes(kinds: &[Kind<'_>]) -> String {
    let first = kinds[0].0;
    let differing = kinds.iter().flat_map(|(form, _)| {
        keys(&form.words, &first.words).into_iter().filter(|word| {
            form.words.get(*word) != first.words.get(*word)
                && form.operations.get(&word.0) == first.operations.get(&word.0)
        })
    });
    let names = differing.map(|(operation, word)| format!("{} of {operation}", word.split('=').next().unwrap_or(word)));
    let names: BTreeSet<String> = names.collect();
    if (1..=MOST_NAMED).contains(&names.len()) {
        format!(" ({})", Vec::from_iter(names).join(", "))
    } else {
        String::new()
    }
}

type IsAlike = fn(&Form, &Form) -> bool;
const ASPECTS: &[(&str, IsAlike)] = &[
    ("operations", |one, other| one.hashes[0] == other.hashes[0]),
    ("attributes", |one, other| {
        if one.hashes[0] == other.hashes[0] {
            return one.hashes[1] == other.hashes[1];
        }
        // The words of operations that only one of them has, or more of, differ anyway.
        one.of_operations.iter().all(|[ty, count, words]| {
            let Ok(at) = other.of_operations.binary_search_by_key(ty, |it| it[0]) else { return true };
            let [_, others, theirs] = other.of_operations[at];
            others != *count || theirs == *words
        })
    }),
    ("wiring", |one, other| one.hashes[0] != other.hashes[0] || one.wiring == other.wiring),
    ("computed types", |one, other| one.computed == other.computed),
    ("stored bytes", |one, other| one.stored == other.stored),
    ("MACs", |one, other| one.macs == other.macs),
];

/// Describes the differences between the blocks of each family, and between numbered siblings inside each block.
pub(crate) fn describe(flow: Flow<'_>, blocks: &mut [Block]) {
    let mut members = HashMap::<usize, Vec<usize>>::default();
    for (at, block) in blocks.iter_mut().enumerate() {
        describe(flow, &mut block.blocks);
        if let Some(family) = block.family {
            members.entry(family).or_default().push(at);
        }
    }
    for members in members.into_values() {
        let siblings: Vec<&Block> = members.iter().map(|&at| &blocks[at]).collect();
        let mut known = HashMap::default();
        for (&at, wiring) in members.iter().zip(wiring::of(flow, &siblings)) {
            blocks[at].form = Form::of(flow, &blocks[at], wiring, &mut known).into();
        }
        let siblings: Vec<&Block> = members.iter().map(|&at| &blocks[at]).collect();
        for (at, differs) in members.into_iter().zip(compare(flow, &siblings)) {
            blocks[at].differs = differs;
        }
    }
    for (at, odd) in odd_among_families(blocks).into_iter().rev() {
        blocks[at].differs.insert(0, odd);
    }
}

/// Describes blocks of small families, such as the stages of a CNN, that have one layer more or less than blocks of several
/// other families.
fn odd_among_families(blocks: &[Block]) -> Vec<(usize, String)> {
    let members =
        |at: usize| blocks.iter().filter(move |it| it.family.is_some() && it.family == blocks[at].family).count();
    let small: Vec<usize> = (0..blocks.len()).filter(|&at| (1..=2).contains(&members(at))).collect();
    let alike = |at: usize| {
        let same = small.iter().filter(move |&&it| blocks[it].form.hashes[0] == blocks[at].form.hashes[0]);
        same.map(|&it| &blocks[it]).collect::<Vec<_>>()
    };
    let odd = small.iter().filter(|&&at| alike(at).len() == 1).filter_map(|&at| {
        let form = &blocks[at].form;
        let mut others = small.iter().map(|&it| alike(it)).filter(|alike| alike.len() > 2);
        others.find_map(|alike| {
            let usual = &alike[0].form;
            let counts = keys(&form.operations, &usual.operations).into_iter().map(|operation| {
                let [own, others] = [form, usual].map(|form| form.operations.get(operation).copied().unwrap_or(0));
                (operation, own, others)
            });
            let counts: Vec<_> = counts.filter(|(_, own, others)| own != others).collect();
            let [(operation, own, others)] = counts[..] else { return None };
            let is_branch = form.branch(usual).or(usual.branch(form)).is_some();
            let names: Vec<String> = alike.iter().map(|it| short(&it.name).to_owned()).collect();
            let names = list(names, "and");
            (own.abs_diff(others) == 1 && !is_branch)
                .then(|| (at, format!("has {own} {operation}, where {names} have {others}")))
        })
    });
    odd.collect()
}
