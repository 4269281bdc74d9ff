//! Blocks that repeat, such as the layers of a transformer, found by their names.

use std::collections::{BTreeMap, HashMap};

/// Graphs with fewer boxes are shown as they are.
const MANY: usize = 60;
/// The fewest boxes in a block.
const LEAST: usize = 4;

/// For each box, the name of the block that it is part of. Boxes of one block have names that begin alike, up to a number:
/// `model.layers.0`. Blocks are contracted only where no path leaves one and comes back.
pub(super) fn blocks(names: &[&str], arrows: &[(usize, usize)]) -> Vec<Option<String>> {
    let mut found = vec![None; names.len()];
    if names.len() < MANY {
        return found;
    }
    // How often each prefix occurs, and the family that it is one of: `model.layers.*`.
    let mut families = BTreeMap::<String, BTreeMap<&str, Vec<usize>>>::new();
    for (at, name) in names.iter().enumerate() {
        if let Some((family, prefix)) = first_number(name) {
            families.entry(family).or_default().entry(prefix).or_default().push(at);
        }
    }
    for members in families.into_values() {
        let large: Vec<_> = members.into_iter().filter(|(_, boxes)| boxes.len() >= LEAST).collect();
        if large.len() < 2 {
            continue;
        }
        for (prefix, boxes) in large {
            for at in boxes {
                found[at] = Some(prefix.to_owned());
            }
        }
    }
    while let Some(block) = in_cycle(&found, arrows) {
        found.iter_mut().filter(|name| name.as_deref() == Some(&block)).for_each(|name| *name = None);
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
    fn what_leaves_a_block_and_comes_back_keeps_it_open() {
        let names: Vec<String> = (0..80).map(|at| format!("net.{}.op{at}", at / 20)).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let mut arrows: Vec<(usize, usize)> = (1..80).map(|at| (at - 1, at)).collect();
        assert!(blocks(&names, &arrows).iter().all(Option::is_some));
        arrows.push((25, 15));
        let found = blocks(&names, &arrows);
        assert!(found[20..40].iter().all(Option::is_none) || found[..20].iter().all(Option::is_none));
        assert_eq!(found[79].as_deref(), Some("net.3"));
    }
}
