//! Limits of rules, each of which the clause `allow` can lift.
//!
//! By default a rule that adds or removes arithmetic applies only to floating-point tensors. A constant with axes may
//! only be combined with a tensor of known rank. New constants must not overflow or underflow.

use std::collections::BTreeSet;

use typelift_promote::ElementType;

use super::bound::{Bindings, self_describe};
use super::pattern::Pattern;
use super::subject::Subject;
use super::term::{Side, TermKind};
use crate::model::graph::Layer;
use crate::ops::evaluate::moves_values;

pub(super) fn needs_floats(pattern: &Pattern, right: &Side) -> bool {
    let operations = |side: &Side| {
        let layers = side.terms.iter().filter_map(|term| match &term.kind {
            TermKind::Layer(layer) if !moves_values(&layer.operation) => Some(layer.operation.clone()),
            _ => None,
        });
        layers.collect::<BTreeSet<_>>()
    };
    let is_integer = |ty: &ElementType| ty.is_integer() && *ty != ElementType::Boolean;
    let names_integers = pattern.side.terms.iter().any(|term| term.element_types.iter().any(is_integer));
    let has_arithmetic =
        pattern.side.terms.iter().any(|term| matches!(&term.kind, TermKind::Chain(chain) if !chain.factors.is_empty()));
    !pattern.allowed.integers && !names_integers && (has_arithmetic || operations(&pattern.side) != operations(right))
}

pub(super) fn objection(subject: &Subject, pattern: &Pattern, bound: &Bindings) -> Option<String> {
    let layers = || bound.layers.iter().filter_map(|&(id, _)| subject.graph.layer(id));
    let of_integers = || layers().find_map(|layer| Some((layer, integer_type(layer)?)));
    if let Some((layer, ty)) = pattern.needs_floats.then(of_integers).flatten() {
        let layer = self_describe(layer);
        return Some(format!(
            "{layer} computes in {ty}, but the rule is only valid for floating point; `allow integers` permits it"
        ));
    }
    if pattern.allowed.ranks || !layers().any(|layer| layer.outputs().iter().any(|port| port.shape().rank().is_none()))
    {
        return None;
    }
    let layer = layers().find(|layer| may_raise_rank(subject, layer))?;
    let layer = self_describe(layer);
    Some(format!("{layer} combines a constant with axes and a tensor of unknown rank; `allow ranks` permits it"))
}

fn integer_type(layer: &Layer) -> Option<ElementType> {
    let moves = layer.operation().map(|row| row.name).is_some_and(moves_values);
    let computes = |ty: &ElementType| !ty.is_float() && *ty != ElementType::Boolean && *ty != ElementType::Dynamic;
    layer.outputs().iter().map(|port| port.element_type()).find(|ty| !moves && computes(ty))
}

fn may_raise_rank(subject: &Subject, layer: &Layer) -> bool {
    let broadcasts = layer.operation().is_some_and(|row| row.default_of("auto_broadcast").is_some());
    let sources = subject.graph.producers(layer.id());
    let has_axes = |tensor| subject.graph.output(tensor).is_some_and(|port| port.shape().rank() != Some(0));
    broadcasts && sources.into_iter().flatten().any(|it| subject.is_constant(it) && has_axes(it))
}
