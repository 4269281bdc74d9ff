//! Tensors with the explanations of their types and the data paths of their values.

use std::borrow::Cow;
use std::rc::Rc;

use foldhash::HashMap;
use serde::{Serialize, Serializer};
use typelift::explain::Rule;
use typelift::findings::LayerRef;
use typelift::graph::{LayerMap, Place};
use typelift::ops::{self, Conversion};
use typelift::{LayerId, Model, Output};

use crate::graphs::{Graphs, path};

/// A tensor: the explanation of its type, and the data path of its value.
pub(crate) struct Step<'a> {
    id: LayerId,
    path: Cow<'a, str>,
    op: &'a str,
    output: usize,
    /// Shared by equal rules.
    rule: Rc<str>,
    element_type: &'static str,
    /// The inputs that affect its type, each with its step.
    from: Vec<(Option<usize>, usize)>,
    /// The step that its value comes from, and the one that uses it.
    before: Option<usize>,
    next: Option<usize>,
    /// The shape of a stored tensor, or of one computed from constants alone.
    stored: Option<String>,
    loses: Option<String>,
}

/// Written as a row; `page.js` names the columns.
impl Serialize for Step<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { id, path, op, output, rule, element_type, from, before, next, stored, loses } = self;
        (id, path, op, output, &**rule, element_type, from, before, next, stored, loses).serialize(serializer)
    }
}

pub(crate) fn steps<'a>(model: &'a Model, graphs: &Graphs<'a>) -> Vec<Step<'a>> {
    let derivation = typelift::why_all(model);
    // The step of the first output of each layer; the steps of its other outputs follow directly.
    let mut firsts: HashMap<&Place, LayerMap<usize>> =
        graphs.iter().map(|(place, (graph, _))| (place, LayerMap::new(graph))).collect();
    for (at, step) in derivation.steps.iter().enumerate().filter(|(_, step)| step.output == 0) {
        firsts.get_mut(&step.layer.place).and_then(|firsts| firsts.insert(step.layer.id, at));
    }
    let mut rules = HashMap::<Rule, Rc<str>>::default();
    let steps = derivation.steps.into_iter().filter_map(|step| {
        let LayerRef { place, id, .. } = &step.layer;
        let ((graph, ways), firsts) = (graphs.get(place)?, firsts.get(place)?);
        let layer = graph.layer(*id)?;
        let tensor = id.output(step.output);
        let number = |tensor: Output| Some(firsts.get(tensor.layer)? + tensor.port);
        let before = ways.before(tensor);
        let conversion = ops::conversion(graph, layer).map(|found| Conversion {
            from: before.and_then(|it| graph.output(it)).map_or(found.from, |port| vec![port.element_type()]),
            ..found
        });
        Some(Step {
            id: *id,
            path: path(place, layer),
            op: layer.ty(),
            output: step.output,
            rule: rules.entry(step.rule).or_insert_with_key(|rule| rule.to_string().into()).clone(),
            element_type: step.element_type.name(),
            from: step.from.into_iter().map(|premise| (premise.input, premise.step)).collect(),
            before: before.and_then(number),
            next: ways.next(tensor).and_then(number),
            stored: ways.is_stored(tensor).then(|| step.shape.to_string()),
            loses: conversion.map(|it| it.effect(graph, model.weights(), layer).to_string()),
        })
    });
    steps.collect()
}
