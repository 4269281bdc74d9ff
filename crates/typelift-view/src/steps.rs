//! Tensors with the explanations of their types and the data paths of their values.

use std::sync::Arc;

use foldhash::HashMap;
use serde::{Serialize, Serializer};
use typelift::explain::{Premise, Rule};
use typelift::graph::LayerMap;
use typelift::ops::{self, Conversion};
use typelift::{LayerId, Model, Output};

use crate::folded::{Strings, Text};
use crate::graphs::{Graphs, Known};

/// A tensor: the explanation of its type, and the data path of its value.
pub(crate) struct Step {
    id: LayerId,
    path: Text,
    op: Text,
    output: usize,
    rule: Text,
    element_type: Text,
    /// The inputs that affect its type, each with its step.
    from: Vec<Premise>,
    /// The step that its value comes from, and the one that uses it.
    before: Option<usize>,
    next: Option<usize>,
    /// The shape of a stored tensor, or of one computed from constants alone.
    stored: Option<Text>,
    loses: Option<Text>,
}

/// Written as a row; `data.js` names the columns.
impl Serialize for Step {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { id, path, op, output, rule, element_type, from, before, next, stored, loses } = self;
        let from: Vec<_> = from.iter().map(|premise| (premise.input, premise.step)).collect();
        (id, path, op, output, rule, element_type, from, before, next, stored, loses).serialize(serializer)
    }
}

pub(crate) fn steps(model: &Model, graphs: &Graphs<'_, '_>, strings: &mut Strings) -> Vec<Step> {
    let origins = typelift::why_all(model);
    let known: Vec<_> = origins.graphs.iter().map(|place| graphs.get(place)).collect();
    // The step of the first output of each layer; the steps of its other outputs follow directly.
    let first = |known: &Option<&Known<'_, '_>>| known.map(|known| LayerMap::new(known.graph));
    let mut firsts: Vec<Option<LayerMap<usize>>> = known.iter().map(first).collect();
    for (at, origin) in origins.list.iter().enumerate().filter(|(_, origin)| origin.output == 0) {
        firsts[origin.graph].as_mut().and_then(|firsts| firsts.insert(origin.layer.id(), at));
    }
    // The text of a rule that several tensors share, with the rule, so that no other one has its address.
    let mut rules = HashMap::<*const Rule, (Text, Arc<Rule>)>::default();
    let mut shapes = HashMap::default();
    let steps = origins.list.into_iter().filter_map(|origin| {
        let (known, firsts) = (known[origin.graph]?, firsts[origin.graph].as_ref()?);
        let (graph, ways, layer, id) = (known.graph, &known.ways, origin.layer, origin.layer.id());
        let (tensor, port) = (id.output(origin.output), layer.outputs().get(origin.output)?);
        let number = |tensor: Output| Some(firsts.get(tensor.layer)? + tensor.port);
        let before = ways.before(tensor);
        let conversion = ops::conversion(graph, layer).map(|found| Conversion {
            from: before.and_then(|it| graph.output(it)).map_or(found.from, |port| vec![port.element_type()]),
            ..found
        });
        let (path, op) = known.names(id);
        let address = Arc::as_ptr(&origin.rule);
        let rule = rules.entry(address).or_insert_with(|| (strings.text(&origin.rule.to_string()), origin.rule)).0;
        Some(Step {
            id,
            path,
            op,
            output: origin.output,
            rule,
            element_type: strings.text(port.element_type().name()),
            from: origin.from,
            before: before.and_then(number),
            next: ways.next(tensor).and_then(number),
            stored: ways
                .is_stored(tensor)
                .then(|| *shapes.entry(port.shape()).or_insert_with(|| strings.text(&port.shape().to_string()))),
            loses: conversion.map(|it| strings.text(&it.effect(graph, model.weights(), layer).to_string())),
        })
    });
    steps.collect()
}
