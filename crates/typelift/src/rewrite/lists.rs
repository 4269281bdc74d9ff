//! Lists in patterns, which match any number of tensors.

use std::sync::Arc;

use super::bound::{Bound, List};
use super::matching::{MOST_STEPS, Search};
use super::term::TermKind;
use crate::model::graph::Output;

impl Search<'_> {
    pub(super) fn list_of(&self, term: usize) -> Option<usize> {
        match self.side().terms[term].kind {
            TermKind::List(name) => Some(name),
            _ => None,
        }
    }

    /// Matches inputs from a position on, including lists of any length.
    pub(super) fn match_lists(&mut self, terms: &[usize], feeds: &Arc<[Output]>, at: usize) -> bool {
        let Some((&first, terms)) = terms.split_first() else { return self.solve() };
        // If this fails, the caller restores the state.
        let Some(name) = self.list_of(first) else {
            let Some(&feed) = feeds.get(at) else { return false };
            self.goals.push((first, feed));
            return self.match_lists(terms, feeds, at + 1);
        };
        let others = terms.iter().filter(|&&term| self.list_of(term).is_none()).count();
        let Some(last) = feeds.len().checked_sub(others).filter(|&last| last >= at) else { return false };
        let first_end = if others == terms.len() { last } else { at };
        let fits = (first_end..=last).any(|end| {
            let next = terms.first().zip(feeds.get(end));
            if !self.explains && next.is_some_and(|(&term, &feed)| !self.may_fit(term, feed)) {
                return false;
            }
            self.steps += 1;
            self.steps < MOST_STEPS
                && self.attempt(|search| {
                    let list = List::part(feeds.clone(), at..end);
                    search.match_list(first, name, list) && search.match_lists(terms, feeds, end)
                })
        });
        let span = self.side().terms[first].span.clone();
        fits || self.refuse(span, || "no number of inputs matches".to_owned())
    }

    /// Binds a list. If `where` defines it, the list must contain all outputs of one layer in their order.
    fn match_list(&mut self, term: usize, name: usize, tensors: List) -> bool {
        let is_known = self.bound.names[name].is_some();
        if !self.binds(name, Bound::List(tensors.clone())) {
            return false;
        }
        let Some(definition) = self.name(name).definition.as_ref().filter(|_| !is_known) else { return true };
        let Some(&first) = tensors.first() else { return false };
        let count = self.subject.graph.layer(first.layer).map_or(0, |layer| layer.outputs().len());
        let in_order = tensors.iter().enumerate().all(|(port, tensor)| *tensor == first.layer.output(port));
        if !in_order || tensors.len() != count {
            let span = self.side().terms[term].span.clone();
            let text = &self.name(name).text;
            return self.refuse(span, || format!("its inputs are not all of `{text}` in their order"));
        }
        self.goals.push((definition.term, first));
        true
    }
}
