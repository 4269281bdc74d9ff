//! Matching of the layers of two graphs.

use std::hash::Hash;

use smallvec::SmallVec;

use super::side::{Side, hash_of};
use crate::base::hash::{HashMap, HashSet};

/// Matched layers of two graphs: for each layer its number in the other graph.
pub(super) struct Pairs {
    pub(super) of_before: Vec<Option<usize>>,
    pub(super) of_after: Vec<Option<usize>>,
}

/// Matches layers in several rounds: by unique names and equal operations, then by inputs and consumers, then by name
/// alone.
pub(super) fn matched(before: &Side<'_>, after: &Side<'_>) -> Pairs {
    let pairs = Pairs { of_before: vec![None; before.len()], of_after: vec![None; after.len()] };
    let mut matching = Matching { before, after, labels: None, pairs };
    let named = by_name(before, after);
    for &(a, b) in named.iter().filter(|&&(a, b)| before.operation(a) == after.operation(b)) {
        matching.put(a, b);
    }
    if !matching.is_complete() {
        matching.by_structure();
        for (a, b) in named {
            if matching.is_free(a, b) {
                matching.put(a, b);
            }
        }
    }
    matching.pairs
}

struct Matching<'s, 'a> {
    before: &'s Side<'a>,
    after: &'s Side<'a>,
    /// Hashes of operation and attributes of each layer, computed when needed.
    labels: Option<(Vec<u64>, Vec<u64>)>,
    pairs: Pairs,
}

/// Choice among layers with equal hashes.
#[derive(Clone, Copy, PartialEq)]
enum Among {
    /// Layers are matched only if each graph has exactly one.
    One,
    /// Every layer is matched, first by name and then in the order of the graph.
    All,
}

impl Matching<'_, '_> {
    fn is_complete(&self) -> bool {
        self.pairs.of_before.iter().all(Option::is_some) || self.pairs.of_after.iter().all(Option::is_some)
    }

    fn count(&self) -> usize {
        self.pairs.of_before.iter().flatten().count()
    }

    fn is_free(&self, a: usize, b: usize) -> bool {
        self.pairs.of_before[a].is_none() && self.pairs.of_after[b].is_none()
    }

    fn put(&mut self, a: usize, b: usize) {
        self.pairs.of_before[a] = Some(b);
        self.pairs.of_after[b] = Some(a);
    }

    fn by_structure(&mut self) {
        let labels = |side: &Side<'_>, pairs: &[Option<usize>]| {
            (0..side.len()).map(|at| if pairs[at].is_some() { 0 } else { side.label(at) }).collect()
        };
        let before = labels(self.before, &self.pairs.of_before);
        self.labels = Some((before, labels(self.after, &self.pairs.of_after)));
        // Each round uses the matches of the last one. Real models need two or three rounds.
        for _ in 0..8 {
            if !self.has_alike() {
                break;
            }
            let count = self.count();
            self.by_hash(true, true, Among::All);
            self.by_hash(true, false, Among::One);
            self.by_hash(false, true, Among::One);
            if self.count() == count {
                self.spread(true);
            }
            if self.count() == count || self.is_complete() {
                break;
            }
        }
        self.spread(false);
        if self.has_alike() {
            self.by_hash(true, false, Among::All);
            self.spread(false);
        }
        // Remaining layers are matched by position, even if their operations differ.
        let places = |side: &Side<'_>| {
            (0..side.len()).map(|at| if side.feeds[at].is_empty() { side.rough_label(at) } else { 0 }).collect()
        };
        self.labels = Some((places(self.before), places(self.after)));
        self.by_hash(true, true, Among::One);
    }

    fn has_alike(&self) -> bool {
        let Some((before, after)) = &self.labels else { return false };
        let free = |labels: &[u64], pairs: &[Option<usize>]| {
            let free = labels.iter().zip(pairs).filter(|(_, pair)| pair.is_none());
            free.map(|(label, _)| *label).collect::<HashSet<_>>()
        };
        !free(before, &self.pairs.of_before).is_disjoint(&free(after, &self.pairs.of_after))
    }

    /// Matches layers with the same label and the same hash of all producers (`from`) or all consumers (`to`).
    fn by_hash(&mut self, from: bool, to: bool, among: Among) {
        let Some((labels_before, labels_after)) = &self.labels else { return };
        let keys = |side: &Side<'_>, labels: &[u64], token: &dyn Fn(usize) -> Option<usize>| -> Vec<(u64, u64)> {
            let forward = if from { forward(side, labels, token) } else { vec![0; side.len()] };
            let backward = if to { backward(side, labels, token) } else { vec![0; side.len()] };
            forward.into_iter().zip(backward).collect()
        };
        let keys_before = keys(self.before, labels_before, &|at| self.pairs.of_before[at]);
        let keys_after = keys(self.after, labels_after, &|at| self.pairs.of_after[at].map(|_| at));
        let mut groups = HashMap::<_, (Vec<usize>, Vec<usize>)>::default();
        for at in (0..self.before.len()).filter(|&at| self.pairs.of_before[at].is_none()) {
            groups.entry(keys_before[at]).or_default().0.push(at);
        }
        for at in (0..self.after.len()).filter(|&at| self.pairs.of_after[at].is_none()) {
            groups.entry(keys_after[at]).or_default().1.push(at);
        }
        for (a, b) in groups.into_values() {
            if among == Among::All || a.len() == 1 && b.len() == 1 {
                self.put_group(&a, &b);
            }
        }
    }

    /// Matches layers with equal hashes; those with equal names first.
    fn put_group(&mut self, a: &[usize], b: &[usize]) {
        let mut by_name = HashMap::<&str, Vec<usize>>::default();
        for &at in b.iter().rev() {
            by_name.entry(self.after.layers[at].name()).or_default().push(at);
        }
        for &at in a {
            if let Some(other) = by_name.get_mut(self.before.layers[at].name()).and_then(Vec::pop) {
                self.put(at, other);
            }
        }
        let rest: Vec<usize> = b.iter().copied().filter(|&at| self.pairs.of_after[at].is_none()).collect();
        let left = a.iter().copied().filter(|&at| self.pairs.of_before[at].is_none()).collect::<Vec<_>>();
        for (at, other) in left.into_iter().zip(rest) {
            self.put(at, other);
        }
    }

    /// Matches producers and consumers of matched layers at the same ports. With `strict` they must be equal;
    /// otherwise they must have the same operation.
    fn spread(&mut self, strict: bool) {
        let mut pending: Vec<(usize, usize)> =
            self.pairs.of_before.iter().enumerate().filter_map(|(a, b)| Some((a, (*b)?))).collect();
        while let Some((a, b)) = pending.pop() {
            let (before, after) = (self.before, self.after);
            let mut found = Vec::new();
            for (&feed, &other) in before.feeds[a].iter().zip(&after.feeds[b]) {
                if let (Some((a, port)), Some((b, other))) = (feed, other)
                    && port == other
                {
                    found.push((a, b));
                }
            }
            let mut users = HashMap::<_, (Vec<usize>, Vec<usize>)>::default();
            for use_ in before.uses[a].iter().filter(|use_| self.pairs.of_before[use_.layer].is_none()) {
                let key = (use_.output, use_.input, self.label(0, use_.layer, strict));
                users.entry(key).or_default().0.push(use_.layer);
            }
            if !users.is_empty() {
                for use_ in after.uses[b].iter().filter(|use_| self.pairs.of_after[use_.layer].is_none()) {
                    let key = (use_.output, use_.input, self.label(1, use_.layer, strict));
                    users.entry(key).or_default().1.push(use_.layer);
                }
            }
            found.extend(users.into_values().filter_map(|(a, b)| match (&a[..], &b[..]) {
                (&[a], &[b]) => Some((a, b)),
                _ => None,
            }));
            for (a, b) in found {
                if self.is_free(a, b) && self.label(0, a, strict) == self.label(1, b, strict) {
                    self.put(a, b);
                    pending.push((a, b));
                }
            }
        }
    }

    fn label(&self, side: usize, at: usize, strict: bool) -> u64 {
        match (&self.labels, side) {
            (Some((labels, _)), 0) if strict => labels[at],
            (Some((_, labels)), _) if strict => labels[at],
            (_, 0) => self.before.rough_label(at),
            _ => self.after.rough_label(at),
        }
    }
}

/// The layers whose names are equal, and unique in both graphs.
fn by_name(before: &Side<'_>, after: &Side<'_>) -> Vec<(usize, usize)> {
    let (names, others) = (unique(before), unique(after));
    names.into_iter().filter_map(|(name, a)| Some((a, *others.get(name)?))).collect()
}

fn unique<'a>(side: &Side<'a>) -> HashMap<&'a str, usize> {
    let mut names = HashMap::<&str, Option<usize>>::default();
    for (at, layer) in side.layers.iter().enumerate() {
        names.entry(layer.name()).and_modify(|at| *at = None).or_insert(Some(at));
    }
    names.into_iter().filter_map(|(name, at)| Some((name, at?))).collect()
}

/// If the neighbour is matched, the number of the match is used.
fn neighbour(token: Option<usize>, hash: u64, ports: impl Hash) -> u64 {
    hash_of(&(token, if token.is_some() { 0 } else { hash }, ports))
}

fn forward(side: &Side<'_>, labels: &[u64], token: &dyn Fn(usize) -> Option<usize>) -> Vec<u64> {
    let mut hashes = labels.to_vec();
    for at in 0..side.len() {
        let feeds =
            side.feeds[at].iter().map(|feed| feed.map(|(from, port)| neighbour(token(from), hashes[from], port)));
        hashes[at] = hash_of(&(labels[at], feeds.collect::<SmallVec<[_; 4]>>()));
    }
    hashes
}

fn backward(side: &Side<'_>, labels: &[u64], token: &dyn Fn(usize) -> Option<usize>) -> Vec<u64> {
    let mut hashes = labels.to_vec();
    for at in (0..side.len()).rev() {
        let user =
            |use_: &super::side::Use| neighbour(token(use_.layer), hashes[use_.layer], (use_.output, use_.input));
        let mut users: SmallVec<[u64; 4]> = side.uses[at].iter().map(user).collect();
        users.sort_unstable();
        hashes[at] = hash_of(&(labels[at], users));
    }
    hashes
}
