//! Operations with bodies.

use std::rc::Rc;

use super::Rule;
use crate::base::hash::HashMap;
use crate::model::graph::{Body, Direction, LayerId, PortMapEntry};
use crate::ops::{self, LayerKind};
use crate::symbols::walk::{Dims, Length, Tensor};

/// The entries of a body's port map in one direction, in the order of their ports.
fn entries(body: &Body, direction: Direction) -> Vec<&PortMapEntry> {
    let mut entries: Vec<_> = body.port_map.iter().filter(|entry| entry.direction == direction).collect();
    entries.sort_by_key(|entry| entry.external_port_id);
    entries
}

/// Walks a body whose Parameters have these tensors, and returns the dimensions of its Results.
fn walk(rule: &mut Rule, body: &Body, at: usize, given: HashMap<LayerId, Tensor>) -> HashMap<LayerId, Tensor> {
    let place = rule.walk.place.inside(rule.layer, at, body.name());
    let outer_place = std::mem::replace(&mut rule.walk.place, place);
    let tensors = given.into_iter().map(|(id, tensor)| (id.output(0), tensor)).collect();
    let outer = std::mem::replace(&mut rule.walk.tensors, tensors);
    let (values, probe) = (std::mem::take(&mut rule.walk.values), rule.walk.probe.take());
    super::visit(rule.walk, &body.graph);
    let results = body.graph.layers().filter(|layer| ops::kind(layer) == LayerKind::Result);
    let mut found = HashMap::default();
    for layer in results {
        let Some(producer) = body.graph.producer(layer.id().input(0)) else { continue };
        let mut tensor = rule.walk.tensors.get(&producer).cloned().unwrap_or_default();
        if tensor.value.is_none() {
            tensor.value = rule.walk.value(&body.graph, producer).map(Rc::new);
        }
        found.insert(layer.id(), tensor);
    }
    (rule.walk.values, rule.walk.probe) = (values, probe);
    rule.walk.tensors = outer;
    rule.walk.place = outer_place;
    found
}

fn input(rule: &mut Rule, port: i64) -> Option<Tensor> {
    let port = usize::try_from(port).ok()?;
    let mut tensor = rule.inputs.get(port)?.clone();
    if tensor.value.is_none() {
        tensor.value = rule.input_value(port).map(Rc::new);
    }
    Some(tensor)
}

fn merged_by(a: Option<Dims>, b: Option<Dims>, mut by: impl FnMut(Length, Length) -> Length) -> Option<Dims> {
    let (a, b) = (a?, b?);
    (a.len() == b.len()).then(|| a.iter().zip(&b).map(|(&a, &b)| by(a, b)).collect())
}

pub(super) fn branches(rule: &mut Rule) -> Option<()> {
    let layer = rule.layer;
    let test = rule.single(0);
    let mut results = Vec::new();
    for (name, holds) in [("then_body", true), ("else_body", false)] {
        let (at, body) = layer.bodies().iter().enumerate().find(|(_, body)| body.name() == name)?;
        let mut given = HashMap::default();
        for entry in entries(body, Direction::Input) {
            if let Some(tensor) = input(rule, entry.external_port_id) {
                given.insert(entry.internal_layer_id, tensor);
            }
        }
        let guard = test.and_then(|test| if holds { Some(test) } else { rule.arena().not(test) });
        let is_never = guard.and_then(|guard| rule.walk.arena.value(guard)) == Some(0);
        // A branch that depends on data may be taken or not, so what it demands cannot be said.
        let silent = rule.walk.is_silent;
        rule.walk.is_silent |= is_never || guard.is_none();
        rule.walk.guard.extend(guard);
        let found = walk(rule, body, at, given);
        if guard.is_some() {
            rule.walk.guard.pop();
        }
        rule.walk.is_silent = silent;
        let outputs = entries(body, Direction::Output);
        let dims = outputs.iter().map(|entry| {
            let dims = found.get(&entry.internal_layer_id).and_then(|tensor| tensor.dims.as_deref().cloned());
            (entry.external_port_id, dims)
        });
        results.push((dims.collect::<Vec<_>>(), is_never));
    }
    let [(then, never_then), (otherwise, never_else)] = &results[..] else { return None };
    for ((_, then), (_, otherwise)) in then.iter().zip(otherwise) {
        let dims = match (never_then, never_else) {
            (true, _) => otherwise.clone(),
            (_, true) => then.clone(),
            _ => merged_by(then.clone(), otherwise.clone(), |a, b| match (a, b, test) {
                (Some(a), Some(b), _) if a == b => Some(a),
                (Some(a), Some(b), Some(test)) => rule.arena().choose(test, a, b),
                _ => None,
            }),
        };
        rule.outputs.push(dims);
    }
    Some(())
}

pub(super) fn looped(rule: &mut Rule) -> Option<()> {
    let body = rule.layer.bodies().first()?;
    let trips = rule.single(0).filter(|&trips| rule.walk.arena.range(trips).0 >= 0);
    let condition = body.port_map.iter().find(|entry| entry.purpose() == Some("execution_condition"))?;
    let found = repeat(rule, body)?;
    // The number of iterations is known if the condition is always true.
    let goes_on = found.get(&condition.internal_layer_id).and_then(|tensor| {
        let value = tensor.value.as_ref()?.items.first().copied().flatten()?;
        rule.walk.arena.value(value.0)
    });
    let iterations =
        trips.filter(|_| goes_on == Some(1)).or_else(|| sliced_length(rule, body).filter(|_| goes_on == Some(1)));
    outputs(rule, body, &found, iterations)
}

pub(super) fn iterated(rule: &mut Rule) -> Option<()> {
    let body = rule.layer.bodies().first()?;
    let unchecked = std::mem::replace(&mut rule.walk.is_unchecked, true);
    let found = repeat(rule, body);
    rule.walk.is_unchecked = unchecked;
    let found = found?;
    let iterations = sliced_length(rule, body);
    outputs(rule, body, &found, iterations)
}

fn sliced_length(rule: &mut Rule, body: &Body) -> Length {
    let entry = body.port_map.iter().find(|entry| entry.direction == Direction::Input && entry.axis.is_some())?;
    let tensor = input(rule, entry.external_port_id)?;
    let dims = tensor.dims?;
    let axis = rule.axis(entry.axis?, dims.len())?;
    let part = rule.number(entry.part_size.unwrap_or(1));
    rule.arena().div((*dims)[axis]?, part)
}

/// Walks the body of a loop. What an iteration changes is unknown.
fn repeat(rule: &mut Rule, body: &Body) -> Option<HashMap<LayerId, Tensor>> {
    let mut given: HashMap<LayerId, Tensor> = HashMap::default();
    for entry in entries(body, Direction::Input) {
        let Some(mut tensor) = input(rule, entry.external_port_id) else { continue };
        if let (Some(axis), Some(dims)) = (entry.axis, &tensor.dims) {
            let mut dims = (**dims).clone();
            let axis = rule.axis(axis, dims.len())?;
            dims[axis] = Some(rule.number(entry.part_size.unwrap_or(1)));
            tensor = Tensor { dims: Some(Rc::new(dims)), ..Tensor::default() };
        }
        if body.back_edges.iter().any(|edge| edge.to == entry.internal_layer_id) {
            (tensor.value, tensor.last) = (None, None);
        }
        given.insert(entry.internal_layer_id, tensor);
    }
    // What one iteration makes of a carried tensor is tried as its shape; what changes again is unknown.
    for step in 0..3 {
        let found = walk(rule, body, 0, given.clone());
        let mut changed = false;
        for edge in &body.back_edges {
            let next = found.get(&edge.from).and_then(|tensor| tensor.dims.as_deref().cloned());
            let Some(tensor) = given.get_mut(&edge.to) else { continue };
            let before = tensor.dims.as_deref().cloned();
            let merged = if step == 0 { next } else { merged_by(before.clone(), next, |a, b| a.filter(|_| a == b)) };
            changed |= merged != before;
            tensor.dims = merged.map(Rc::new);
        }
        if !changed {
            return Some(found);
        }
    }
    Some(walk(rule, body, 0, given))
}

fn outputs(rule: &mut Rule, body: &Body, found: &HashMap<LayerId, Tensor>, iterations: Length) -> Option<()> {
    for entry in entries(body, Direction::Output).into_iter().filter(|entry| entry.external_port_id >= 0) {
        let mut dims = found.get(&entry.internal_layer_id).and_then(|tensor| tensor.dims.as_deref().cloned());
        if let (Some(axis), Some(dims)) = (entry.axis, &mut dims) {
            let axis = rule.axis(axis, dims.len())?;
            dims[axis] = rule.product([dims[axis], iterations]);
        }
        rule.outputs.push(dims);
    }
    Some(())
}
