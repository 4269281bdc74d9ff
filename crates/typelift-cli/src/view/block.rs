//! Blocks that repeat, such as the layers of a transformer, found by their names.

use std::collections::{BTreeMap, HashMap};

/// Graphs with fewer boxes are shown as they are.
const MANY: usize = 60;
/// The fewest boxes in a block.
const LEAST: usize = 4;

/// How often blocks are made whole: what one of them takes in or gives up can matter to another.
const ROUNDS: usize = 8;

/// For each box, the name of the block that it is part of. Boxes of one block have names that begin alike, up to a number:
/// `model.layers.0`. No path leaves a block and comes back: what lies between two parts of a block is taken in, or the
/// smaller part is given up.
pub(super) fn blocks(names: &[&str], arrows: &[(usize, usize)]) -> Vec<Option<String>> {
    if names.len() < MANY {
        return vec![None; names.len()];
    }
    let mut members = Members::new(families(names), names.len(), arrows);
    for _ in 0..ROUNDS {
        if !members.make_whole() {
            break;
        }
    }
    let mut found = members.names();
    while let Some(block) = in_cycle(&found, arrows) {
        found.iter_mut().filter(|name| name.as_deref() == Some(&block)).for_each(|name| *name = None);
    }
    found
}

/// Blocks by name, each with its boxes.
fn families<'a>(names: &[&'a str]) -> BTreeMap<&'a str, Vec<usize>> {
    // How often each prefix occurs, and the family that it is one of: `model.layers.*`.
    let mut families = BTreeMap::<String, BTreeMap<&str, Vec<usize>>>::new();
    for (at, name) in names.iter().enumerate() {
        if let Some((family, prefix)) = first_number(name) {
            families.entry(family).or_default().entry(prefix).or_default().push(at);
        }
    }
    let large = families.into_values().map(|mut members| {
        members.retain(|_, boxes| boxes.len() >= LEAST);
        members
    });
    large.filter(|members| members.len() > 1).flatten().collect()
}

/// Which block each box is part of, while blocks are made whole.
struct Members<'a> {
    blocks: Vec<&'a str>,
    of: Vec<Option<usize>>,
    next: Vec<Vec<usize>>,
    back: Vec<Vec<usize>>,
}

impl<'a> Members<'a> {
    fn new(families: BTreeMap<&'a str, Vec<usize>>, count: usize, arrows: &[(usize, usize)]) -> Self {
        let (mut of, mut next, mut back) = (vec![None; count], vec![Vec::new(); count], vec![Vec::new(); count]);
        let mut blocks = Vec::new();
        for (name, boxes) in families {
            boxes.into_iter().for_each(|at| of[at] = Some(blocks.len()));
            blocks.push(name);
        }
        for &(from, to) in arrows {
            next[from].push(to);
            back[to].push(from);
        }
        Self { blocks, of, next, back }
    }

    fn names(&self) -> Vec<Option<String>> {
        self.of.iter().map(|block| block.map(|block| self.blocks[block].to_owned())).collect()
    }

    /// Whether any block had to be changed.
    fn make_whole(&mut self) -> bool {
        (0..self.blocks.len()).fold(false, |changed, block| {
            let between = self.between(block);
            between.iter().for_each(|part| self.settle(block, part));
            changed | !between.is_empty()
        })
    }

    fn boxes(&self, block: usize) -> Vec<usize> {
        (0..self.of.len()).filter(|&at| self.of[at] == Some(block)).collect()
    }

    /// The boxes outside of a block that are on a path from it to it, those together that arrows join.
    fn between(&self, block: usize) -> Vec<Vec<usize>> {
        let boxes = self.boxes(block);
        let outside = |at: usize| self.of[at] != Some(block);
        let (after, before) = (reach(&boxes, &self.next, outside), reach(&boxes, &self.back, outside));
        let is_between = |at: usize| after[at] && before[at] && outside(at);
        let mut taken = vec![false; self.of.len()];
        let mut parts = Vec::new();
        for at in (0..self.of.len()).filter(|&at| is_between(at)) {
            if !taken[at] {
                let either = |at: usize| self.next[at].iter().chain(&self.back[at]).copied();
                let mut part = vec![at];
                taken[at] = true;
                let mut done = 0;
                while let Some(&at) = part.get(done) {
                    part.extend(either(at).filter(|&at| is_between(at) && !std::mem::replace(&mut taken[at], true)));
                    done += 1;
                }
                parts.push(part);
            }
        }
        parts
    }

    /// Takes in what lies between two parts of a block, or gives up the smaller of them if that is less.
    fn settle(&mut self, block: usize, part: &[usize]) {
        let inside = |at: usize| self.of[at] == Some(block);
        let mine = |links: &[Vec<usize>]| -> Vec<usize> {
            let found = reach(part, links, inside);
            (0..found.len()).filter(|&at| found[at] && inside(at)).collect()
        };
        let (behind, ahead) = (mine(&self.next), mine(&self.back));
        let smaller = if behind.len() < ahead.len() { behind } else { ahead };
        let is_free = part.iter().all(|&at| self.of[at].is_none());
        if is_free && part.len() <= smaller.len().max(LEAST) {
            part.iter().for_each(|&at| self.of[at] = Some(block));
        } else {
            smaller.iter().for_each(|&at| self.of[at] = None);
        }
        let rest = self.boxes(block);
        if rest.len() < LEAST {
            rest.iter().for_each(|&at| self.of[at] = None);
        }
    }
}

/// The boxes that links lead to from `start`, by way of those that `through` allows.
fn reach(start: &[usize], links: &[Vec<usize>], through: impl Fn(usize) -> bool) -> Vec<bool> {
    let mut found = vec![false; links.len()];
    let mut pending: Vec<usize> = start.to_vec();
    while let Some(at) = pending.pop() {
        let new = links[at].iter().copied().filter(|&to| through(to) && !std::mem::replace(&mut found[to], true));
        pending.extend(new);
    }
    found
}

/// A name up to its first part that is a number, and the same with `*` for the number.
fn first_number(name: &str) -> Option<(String, &str)> {
    let mut start = 0;
    for part in name.split_inclusive(['.', '/']) {
        let word = part.trim_end_matches(['.', '/']);
        let end = start + word.len();
        if start > 0 && !word.is_empty() && word.bytes().all(|b| b.is_ascii_digit()) && end < name.len() {
            return Some((format!("{}*", &name[..start]), &name[..end]));
        }
        start += part.len();
    }
    None
}

/// A block that is in a cycle once every block is one box.
fn in_cycle(blocks: &[Option<String>], arrows: &[(usize, usize)]) -> Option<String> {
    let mut numbers = HashMap::<&str, usize>::new();
    let count = blocks.len();
    let group: Vec<usize> = blocks
        .iter()
        .enumerate()
        .map(|(at, block)| match block {
            Some(block) => {
                let next = count + numbers.len();
                *numbers.entry(block).or_insert(next)
            }
            None => at,
        })
        .collect();
    let total = count + numbers.len();
    let ahead: Vec<_> =
        arrows.iter().map(|&(from, to)| (group[from], group[to])).filter(|(from, to)| from != to).collect();
    let back: Vec<_> = ahead.iter().map(|&(from, to)| (to, from)).collect();
    // What only follows a cycle, or only leads to one, can be taken away from one of the two ends.
    let (after, before) = (waiting(total, &ahead), waiting(total, &back));
    let between = numbers.into_iter().filter(|&(_, number)| after[number] > 0 && before[number] > 0);
    between.min_by_key(|&(name, number)| (after[number], name)).map(|(name, _)| name.to_owned())
}

/// For each box, how many arrows into it remain when boxes without one are taken away again and again.
fn waiting(total: usize, arrows: &[(usize, usize)]) -> Vec<usize> {
    let (mut waits, mut next) = (vec![0_usize; total], vec![Vec::new(); total]);
    for &(from, to) in arrows {
        waits[to] += 1;
        next[from].push(to);
    }
    let mut ready: Vec<usize> = (0..total).filter(|&at| waits[at] == 0).collect();
    while let Some(at) = ready.pop() {
        for &to in &next[at] {
            waits[to] -= 1;
            if waits[to] == 0 {
                ready.push(to);
            }
        }
    }
    waits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_in_a_name_is_that_of_a_block() {
        let found = first_number("model.layers.12.mlp/Add_3").map(|(family, prefix)| (family, prefix.to_owned()));
        assert_eq!(found, Some(("model.layers.*".to_owned(), "model.layers.12".to_owned())));
        assert_eq!(first_number("Add_3"), None);
        assert_eq!(first_number("12"), None);
    }

    #[test]
    fn what_leaves_a_block_and_comes_back_splits_it() {
        let names: Vec<String> = (0..80).map(|at| format!("net.{}.op{at}", at / 20)).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let mut arrows: Vec<(usize, usize)> = (1..80).map(|at| (at - 1, at)).collect();
        assert!(blocks(&names, &arrows).iter().all(Option::is_some));
        // From the second block back to the first: the smaller end of one is given up.
        arrows.retain(|&arrow| arrow != (14, 15));
        arrows.push((25, 15));
        let found = blocks(&names, &arrows);
        assert!(in_cycle(&found, &arrows).is_none());
        assert!(found.iter().filter(|block| block.is_some()).count() >= 70, "{found:?}");
        assert_eq!(found[79].as_deref(), Some("net.3"));
    }

    #[test]
    fn what_lies_between_two_parts_of_a_block_is_taken_in() {
        let mut names: Vec<String> = (0..80).map(|at| format!("net.{}.op{at}", at / 20)).collect();
        names[30] = "Transpose_7".to_owned();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let arrows: Vec<(usize, usize)> = (1..80).map(|at| (at - 1, at)).collect();
        assert_eq!(blocks(&names, &arrows)[30].as_deref(), Some("net.1"));
    }
}
