//! Search for lengths that satisfy all constraints, and their trial by static inference.

use super::expression::{Expr, Node};
use super::{Constraint, Shapes};
use crate::infer::infer;
use crate::model::graph::{LayerId, Model};
use crate::model::shape::{Dim, Shape};

/// Distances from a wanted length up to which lengths are tried for one symbol. Most models need the first.
const REACHES: [usize; 3] = [16, 256, 4096];
/// The largest length that solves an equation.
const MOST_SOLUTION: i64 = 1 << 20;
/// Most evaluations of constraints in one search.
const MOST_STEPS: usize = 1 << 18;
/// Most lengths of one symbol that are listed.
const MOST_LENGTHS: i64 = 4096;
/// Most constraints that are tried to describe lengths.
const MOST_TESTS: usize = 1 << 22;
/// Most lengths that are tried by inference.
const MOST_TRIALS: i64 = 12;

/// Returns lengths, one for each symbol, that satisfy all constraints and load: static inference accepts them. They are
/// `at_least` or more where such lengths fit.
#[must_use]
pub fn fitting_lengths(model: &Model, shapes: &Shapes, at_least: i64) -> Option<Vec<i64>> {
    let mut tried: Vec<Vec<i64>> = Vec::new();
    for more in 0..MOST_TRIALS {
        let least = vec![at_least.max(1).saturating_add(more); shapes.symbols.len()];
        let lengths = shapes.fitting(&least)?;
        if tried.contains(&lengths) {
            continue;
        }
        if shapes.loads(model, &lengths) {
            return Some(lengths);
        }
        tried.push(lengths);
    }
    None
}

impl Shapes {
    /// Returns the shapes of the inputs that have symbols, with these lengths.
    pub fn input_shapes(&self, model: &Model, lengths: &[i64]) -> Vec<(LayerId, Shape)> {
        let mut found: Vec<(LayerId, Shape)> = Vec::new();
        for (symbol, &length) in self.symbols.iter().zip(lengths) {
            for &(id, axis) in &symbol.axes {
                let at = found.iter().position(|(known, _)| *known == id).unwrap_or_else(|| {
                    let port = model.graph().layer(id).and_then(|layer| layer.outputs().first());
                    found.push((id, port.map_or_else(Shape::dynamic, |port| port.shape().clone())));
                    found.len() - 1
                });
                if let Some(dim) = found[at].1.dims_mut().and_then(|dims| dims.get_mut(axis)) {
                    *dim = Dim::fixed(length);
                }
            }
        }
        found
    }

    /// Asks static inference whether the model loads with these lengths.
    pub(crate) fn loads(&self, model: &Model, lengths: &[i64]) -> bool {
        self.with_lengths(model, lengths)
            .is_some_and(|mut model| !infer(&mut model).iter().any(|found| found.is_error()))
    }

    /// A copy of the model whose inputs have these lengths; it is not inferred.
    pub(crate) fn with_lengths(&self, model: &Model, lengths: &[i64]) -> Option<Model> {
        let mut copy = model.clone();
        let shapes = self.input_shapes(model, lengths);
        let set = copy.edit(|edit| {
            shapes.iter().try_for_each(|(id, shape)| edit.set_attribute(*id, "shape", shape.to_attribute()).map(drop))
        });
        set.ok().map(|()| copy)
    }

    /// Returns lengths that satisfy all constraints, one for each symbol, `at_least` or more where one fits.
    pub fn fitting(&self, at_least: &[i64]) -> Option<Vec<i64>> {
        let mut search = LengthSearch { shapes: self, steps: 0, reach: 0, lengths: at_least.to_vec() };
        search.lengths.resize(self.symbols.len(), 1);
        // Symbols without constraints between them are independent, so each group is searched by itself.
        let mut group: Vec<usize> = (0..self.symbols.len()).collect();
        for constraint in &self.constraints {
            for pair in constraint.symbols.windows(2) {
                let (keep, give) = (group[pair[0]], group[pair[1]]);
                group.iter_mut().filter(|it| **it == give).for_each(|it| *it = keep);
            }
        }
        if self.constraints.iter().any(|it| it.symbols.is_empty() && self.arena.evaluate(it.test, &[]) == Some(0)) {
            return None;
        }
        let mut roots = group.clone();
        roots.sort_unstable();
        roots.dedup();
        for root in roots {
            let members: Vec<usize> = (0..group.len()).filter(|&at| group[at] == root).collect();
            let mut found = REACHES.iter().map(|&reach| {
                (search.steps, search.reach) = (0, reach);
                search.find(&members, 0)
            });
            if !found.any(|found| found) {
                return None;
            }
        }
        Some(search.lengths)
    }
}

/// Lengths of one symbol that satisfy constraints on it alone.
pub(crate) struct Fits {
    /// The lengths that were found, in ascending order.
    pub(crate) list: Vec<i64>,
    /// True if longer ones may fit, too.
    pub(crate) is_open: bool,
}

impl Fits {
    pub(crate) fn only(&self) -> Option<i64> {
        match self.list[..] {
            [only] if !self.is_open => Some(only),
            _ => None,
        }
    }

    pub(crate) fn is_never(&self) -> bool {
        self.list.is_empty() && !self.is_open
    }
}

impl Shapes {
    /// Finds the lengths of a symbol that satisfy constraints on it alone. Ranges in which one cannot hold are skipped,
    /// so that large lengths are found, too.
    pub(crate) fn fits(&self, symbol: usize, constraints: &[&Constraint]) -> Fits {
        const LONGEST: i64 = 1 << 40;
        let tests: Vec<Expr> = constraints.iter().map(|it| it.test).collect();
        let mut fits = Fits { list: Vec::new(), is_open: false };
        let mut pending = vec![(1, LONGEST)];
        let mut left = (MOST_TESTS / tests.len().max(1)).clamp(MOST_TESTS >> 13, MOST_TESTS >> 9);
        let mut lengths = vec![1; symbol + 1];
        while let Some((low, high)) = pending.pop() {
            let ranges = || tests.iter().map(|&test| self.arena.range_in(test, (low, high)));
            if ranges().any(|range| range == (0, 0)) {
                continue;
            }
            if fits.list.len() as i64 >= MOST_LENGTHS || left == 0 {
                fits.is_open = true;
                break;
            }
            left -= 1;
            if ranges().all(|range| range == (1, 1)) {
                let last = high.min(low.saturating_add(MOST_LENGTHS - 1));
                fits.list.extend(low..=last);
                fits.is_open |= last < high;
                continue;
            }
            if high > low {
                let middle = if high == LONGEST { low.saturating_mul(2).min(high - 1) } else { low + (high - low) / 2 };
                pending.extend([(middle + 1, high), (low, middle)]);
                continue;
            }
            lengths[symbol] = low;
            if tests.iter().all(|&test| self.arena.evaluate(test, &lengths) != Some(0)) {
                fits.list.push(low);
            }
        }
        fits
    }
}

struct LengthSearch<'s> {
    shapes: &'s Shapes,
    steps: usize,
    reach: usize,
    /// Wanted lengths, which become those that fit.
    lengths: Vec<i64>,
}

impl LengthSearch<'_> {
    /// Finds lengths of the members from `at` on.
    fn find(&mut self, members: &[usize], at: usize) -> bool {
        let Some(&symbol) = members.get(at) else { return true };
        let wanted = self.lengths[symbol];
        let decided = &members[..=at];
        let ready: Vec<Expr> = self
            .shapes
            .constraints
            .iter()
            .filter(|it| it.symbols.contains(&symbol) && it.symbols.iter().all(|it| decided.contains(it)))
            .map(|it| it.test)
            .collect();
        let [mut solved, limits] = self.solutions(symbol, &ready);
        solved.sort_by_key(|&length| (length < wanted, length));
        let (low, high) = self.shapes.symbols[symbol].bounds;
        let upward = (wanted.max(low)..=high).take(self.reach);
        // Shorter ones are the last resort.
        let is_last = REACHES.last() == Some(&self.reach);
        let downward = (low..wanted).rev().filter(|_| is_last);
        let first = std::iter::once(wanted).filter(|it| (low..=high).contains(it));
        for length in first.chain(solved).chain(upward).chain(limits).chain(downward) {
            self.lengths[symbol] = length;
            self.steps += 1 + ready.len();
            if self.steps > MOST_STEPS {
                break;
            }
            if ready.iter().all(|&test| self.shapes.arena.evaluate(test, &self.lengths) != Some(0))
                && self.find(members, at + 1)
            {
                return true;
            }
        }
        self.lengths[symbol] = wanted;
        false
    }

    /// Lengths of a symbol at which a difference that must be zero changes its sign, and those at which one does that
    /// must not be negative.
    fn solutions(&self, symbol: usize, tests: &[Expr]) -> [Vec<i64>; 2] {
        let (low, high) = self.shapes.symbols[symbol].bounds;
        let mut lengths = self.lengths.clone();
        let mut found = [Vec::new(), Vec::new()];
        let mut parts: Vec<Expr> = tests.to_vec();
        while let Some(test) = parts.pop() {
            let node = self.shapes.arena.node(test);
            match node {
                Node::Any(list) | Node::All(list) => parts.extend(list.iter().copied()),
                Node::IsZero(difference) | Node::IsNonNegative(difference) => {
                    let mut sign = |length: i64| {
                        lengths[symbol] = length;
                        self.shapes.arena.evaluate(*difference, &lengths).map(i64::signum)
                    };
                    let (mut below, mut above) = (low, high.min(MOST_SOLUTION));
                    let (Some(first), Some(last)) = (sign(below), sign(above)) else { continue };
                    if first == last || first == 0 || below >= above {
                        continue;
                    }
                    while below + 1 < above {
                        let middle = i64::midpoint(below, above);
                        if sign(middle) == Some(first) { below = middle } else { above = middle }
                    }
                    found[usize::from(matches!(node, Node::IsNonNegative(_)))].extend([below, above]);
                }
                _ => {}
            }
        }
        found
    }
}
