//! Operations that occur in the matches of a pattern.

use super::pattern::Pattern;
use super::term::{LayerTerm, Name, Side, TermKind};
use crate::model::graph::Layer;
use crate::ops;

pub(super) fn operation_of(layer: &Layer) -> &str {
    let row = layer.operation().or_else(|| ops::revisions(layer.ty()).first());
    row.map_or(layer.ty(), |row| row.name)
}

pub(super) fn root_operations(pattern: &Pattern) -> Vec<&str> {
    let Pattern { side, names, .. } = pattern;
    side.roots.first().map(|&root| operations_of(side, names, root)).unwrap_or_default()
}

/// The operations of layers whose output a term can match.
pub(super) fn operations_of<'s>(side: &'s Side, names: &'s [Name], term: usize) -> Vec<&'s str> {
    let mut found = Vec::new();
    let mut pending = vec![term];
    while let Some(at) = pending.pop() {
        match &side.terms[at].kind {
            TermKind::Layer(term) => {
                found.push(term.operation.as_str());
                pending.extend(term.inputs.first().filter(|_| term.optional));
            }
            TermKind::Chain(chain) => {
                found.extend(chain.kind.operations());
                let required = chain.factors.iter().filter(|factor| !factor.optional);
                if chain.literal.is_none() && required.clone().count() <= 1 {
                    pending.extend(required.map(|factor| factor.term));
                }
            }
            TermKind::Either(branches) => pending.extend(branches.iter().map(|branch| branch.term)),
            TermKind::Name { name, .. } => {
                pending.extend(names[*name].definition.as_ref().map(|definition| definition.term));
            }
            _ => {}
        }
    }
    found
}

/// Every match contains at least one operation of each list.
pub(super) fn operations(pattern: &Pattern, term: usize) -> Vec<Vec<&str>> {
    let all = |terms: &mut dyn Iterator<Item = usize>| terms.flat_map(|term| operations(pattern, term)).collect();
    match &pattern.side.terms[term].kind {
        TermKind::Layer(layer) if layer.optional => all(&mut layer.inputs.first().copied().into_iter()),
        TermKind::Layer(layer) => {
            let certain = layer.inputs.len() - layer.optional_inputs.min(layer.inputs.len());
            let mut found: Vec<_> = all(&mut layer.inputs[..certain].iter().copied());
            found.push(vec![layer.operation.as_str()]);
            found
        }
        TermKind::Chain(chain) => {
            all(&mut chain.factors.iter().filter(|factor| !factor.optional).map(|factor| factor.term))
        }
        TermKind::Either(branches) => {
            let firsts = branches.iter().map(|branch| operations(pattern, branch.term).into_iter().next());
            firsts.collect::<Option<Vec<_>>>().map(|lists| vec![lists.concat()]).unwrap_or_default()
        }
        TermKind::Name { name, .. } | TermKind::List(name) => match &pattern.names[*name].definition {
            Some(definition) => operations(pattern, definition.term),
            None => Vec::new(),
        },
        _ => Vec::new(),
    }
}

pub(super) fn root_of(pattern: &Pattern) -> Option<&LayerTerm> {
    match pattern.side.roots.first().map(|&root| &pattern.side.terms[root].kind) {
        Some(TermKind::Layer(layer)) => Some(layer),
        _ => None,
    }
}
