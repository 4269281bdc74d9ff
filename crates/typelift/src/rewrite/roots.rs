//! Patterns of several roots: finding the second and those after it.

use std::collections::VecDeque;

use rustc_hash::FxHashSet;

use super::apply::operation_of;
use super::matching::{Bindings, Bound, MOST_STEPS, Search, Subject, self_describe};
use super::term::Link;
use crate::model::graph::{Layer, LayerId, Output};

/// Limit on the layers that one attempt tries as a further root.
const MOST_TRIED: usize = 1 << 7;

impl Subject<'_> {
    /// Of the tensors that a link names, one that few layers use.
    fn leads_to(&self, link: &Link, bound: &Bindings) -> Option<Output> {
        let tensors = link.names.iter().filter_map(|&name| bound.names[name].as_ref()?.tensor());
        tensors.min_by_key(|&tensor| self.graph.consumers(tensor).take(64).count())
    }

    /// The layers that a link leads to from a tensor and that no match has, in the order in which they are tried.
    fn downstream(&self, link: &Link, tensor: Output) -> Vec<LayerId> {
        let mut known = self.downstream.borrow_mut();
        let layers = known.entry((link.clone(), tensor)).or_insert_with(|| self.find_downstream(link, tensor));
        while layers.front().is_some_and(|&layer| self.is_taken(layer)) {
            layers.pop_front();
        }
        layers.iter().copied().filter(|&layer| !self.is_taken(layer)).take(MOST_TRIED).collect()
    }

    fn find_downstream(&self, link: &Link, tensor: Output) -> VecDeque<LayerId> {
        let mut found = Vec::new();
        let mut seen = FxHashSet::default();
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
    /// Fits the first root that is not found yet, at a layer downstream of what it shares with those that are.
    pub(super) fn match_next_root(&mut self) -> bool {
        let side = self.side();
        let mut others = side.roots.iter().zip(&side.outputs).skip(1).zip(&self.pattern.links);
        let open = others.find(|((_, name), _)| self.bound.names[**name].is_none());
        let Some(((&root, &name), link)) = open else { return self.finish() };
        let (graph, port) = (self.subject.graph, self.port_of(root));
        let Some(from) = self.subject.leads_to(link, &self.bound) else { return false };
        for layer in self.subject.downstream(link, from) {
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
        self.refuse(side.terms[root].span.clone(), || format!("nothing that {source} leads to fits"))
    }

    /// Whether nothing that the match is computed from is computed from one of its roots, so that one layer can take the place
    /// of all of them.
    pub(super) fn is_free_of_cycles(&mut self, roots: &[LayerId]) -> bool {
        let subject = self.subject;
        let position = |layer| subject.positions().get(&layer).copied().unwrap_or_default();
        let first = roots.iter().map(|&root| position(root)).min().unwrap_or_default();
        let mut pending: Vec<_> = self.bound.layers.iter().map(|&(layer, _)| layer).collect();
        let mut seen: FxHashSet<_> = pending.iter().copied().collect();
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
