//! Matching of patterns with several roots.

use std::cell::RefCell;
use std::collections::BTreeMap;

use super::bound::{Bindings, Bound, self_describe};
use super::matching::{MOST_STEPS, Search};
use super::operations::operation_of;
use super::subject::Subject;
use super::term::Link;
use super::{Rule, Skipped};
use crate::base::hash::HashSet;
use crate::findings::LayerRef;
use crate::model::graph::{Layer, LayerId, Output};

/// Maximum number of layers that are tried for a further root in one attempt.
const MOST_TRIED: usize = 1 << 7;

/// Layers at which too many candidates for a further root existed, by rule.
#[derive(Default)]
pub(super) struct Limits(RefCell<BTreeMap<usize, (LayerRef, String, usize)>>);

impl Limits {
    pub(super) fn clear(&self) {
        self.0.borrow_mut().clear();
    }

    pub(super) fn note(&self, rule: usize, layer: LayerRef, reason: String) {
        self.0.borrow_mut().entry(rule).or_insert((layer, reason, 0)).2 += 1;
    }

    pub(super) fn to_skipped(&self, rules: &[Rule]) -> Vec<Skipped> {
        let limits = self.0.borrow();
        let skipped = limits.iter().map(|(&rule, (layer, reason, count))| {
            let others = if *count > 1 { format!("; the same at {} other layers", count - 1) } else { String::new() };
            Skipped { rule: rules[rule].name().to_owned(), layer: layer.clone(), reason: format!("{reason}{others}") }
        });
        skipped.collect()
    }
}

impl Subject<'_> {
    /// One of the tensors that a further root must depend on, preferably with few consumers.
    fn leads_to(&self, link: &Link, bound: &Bindings) -> Option<Output> {
        let tensors = link.names.iter().filter_map(|&name| bound.names[name].as_ref()?.tensor());
        tensors.min_by_key(|&tensor| self.graph.consumers(tensor).take(64).count())
    }

    /// The layers that can be reached from a tensor through a link and that are in no match. Those nearest to `near` in
    /// the order come first. If there are too many, also returns their number.
    fn downstream(&self, link: &Link, tensor: Output, near: LayerId) -> (Vec<LayerId>, Option<usize>) {
        let mut all = self.downstream.borrow_mut();
        let known = all.entry((link.clone(), tensor)).or_insert_with(|| {
            let position = |layer: &LayerId| self.positions().get(layer).copied().unwrap_or_default();
            self.find_downstream(link, tensor).into_iter().map(|layer| (position(&layer), layer)).collect()
        });
        let center = self.positions().get(&near).copied().unwrap_or_default();
        let (mut found, mut taken) = (Vec::new(), Vec::new());
        {
            let mut before = known.range(..center).rev().peekable();
            let mut after = known.range(center..).peekable();
            while found.len() < MOST_TRIED {
                let distances = (before.peek().map(|(at, _)| center - **at), after.peek().map(|(at, _)| **at - center));
                let next = match distances {
                    (None, None) => break,
                    (Some(back), forth) if forth.is_none_or(|forth| back < forth) => before.next(),
                    _ => after.next(),
                };
                let Some((&at, &layer)) = next else { break };
                if self.is_taken(layer) { taken.push(at) } else { found.push(layer) }
            }
        }
        for at in taken {
            known.remove(&at);
        }
        let count = known.len();
        let is_cut = found.len() == MOST_TRIED && count > MOST_TRIED;
        (found, is_cut.then_some(count))
    }

    fn find_downstream(&self, link: &Link, tensor: Output) -> Vec<LayerId> {
        let mut found = Vec::new();
        let mut seen = HashSet::default();
        found.extend(self.graph.consumers(tensor).map(|input| input.layer).filter(|&layer| seen.insert(layer)));
        let mut from = 0;
        for _ in 1..link.depth {
            let to = found.len();
            for at in from..to {
                found.extend(self.graph.users(found[at]).filter(|&user| seen.insert(user)));
            }
            from = to;
        }
        let is_root = |layer: &Layer| link.operations.iter().any(|name| name == operation_of(layer));
        found.into_iter().filter(|&layer| self.graph.layer(layer).is_some_and(is_root)).collect()
    }
}

impl Search<'_> {
    /// Matches the next root, among layers that depend on the tensors which it shares with earlier roots.
    pub(super) fn match_next_root(&mut self) -> bool {
        let side = self.side();
        let mut others = side.roots.iter().zip(&side.outputs).skip(1).zip(&self.pattern.links);
        let open = others.find(|((_, name), _)| self.bound.names[**name].is_none());
        let Some(((&root, &name), link)) = open else { return self.finish() };
        let (graph, port) = (self.subject.graph, self.port_of(root));
        let Some(from) = self.subject.leads_to(link, &self.bound) else { return false };
        let near = self.bound.layers.first().map_or(from.layer, |&(first, _)| first);
        let (layers, cut) = self.subject.downstream(link, from, near);
        for layer in layers {
            let tensor = layer.output(port);
            let is_inside = self.bound.layers.iter().any(|(inside, _)| *inside == layer);
            self.steps += 1;
            let fits = !is_inside
                && self.steps < MOST_STEPS
                && graph.output(tensor).is_some()
                && self.attempt(|search| {
                    search.bound.names[name] = Some(Bound::Tensor(tensor));
                    search.match_goal(root, tensor)
                });
            if fits {
                return true;
            }
        }
        let source = graph.layer(from.layer).map(self_describe).unwrap_or_default();
        let limit = cut.map(|count| {
            let name = &self.name(name).text;
            format!("of {count} layers that depend on {source}, only the nearest {MOST_TRIED} are tried as `{name}`")
        });
        let reason = limit.clone().unwrap_or_else(|| format!("no layer that depends on {source} matches"));
        *self.subject.limit.borrow_mut() = limit.or(self.subject.limit.take());
        self.refuse(side.terms[root].span.clone(), || reason)
    }

    /// True if no input of the match depends on a root, so that the replacement closes no cycle.
    pub(super) fn is_free_of_cycles(&mut self, roots: &[LayerId]) -> bool {
        let subject = self.subject;
        let position = |layer| subject.positions().get(&layer).copied().unwrap_or_default();
        let first = roots.iter().map(|&root| position(root)).min().unwrap_or_default();
        let mut pending: Vec<_> = self.bound.layers.iter().map(|&(layer, _)| layer).collect();
        let mut seen: HashSet<_> = pending.iter().copied().collect();
        while let Some(layer) = pending.pop() {
            for source in subject.graph.producers(layer).into_iter().flatten().map(|source| source.layer) {
                let is_outside = self.bound.layers.iter().all(|&(inside, _)| inside != source);
                self.steps += 1;
                if roots.contains(&source) || self.steps >= MOST_STEPS {
                    return false;
                }
                if is_outside && position(source) > first && seen.insert(source) {
                    pending.push(source);
                }
            }
        }
        true
    }
}
