//! Extraction of some layers of a model as a new model.

use std::collections;

use foldhash::{HashMap, HashSet};
use typelift::edit::Edit;
use typelift::graph::{EditError, NewLayer, Place};
use typelift::ops::{self, LayerKind};
use typelift::{Graph, LayerId, Model, Output};

/// The layers that compute something in topological order, with neighbours close to each other.
pub(super) fn in_order(graph: &Graph) -> Vec<LayerId> {
    let (mut order, mut seen, mut pending) = (Vec::new(), HashSet::default(), Vec::new());
    let all = graph.layers().map(|layer| layer.id());
    let ends = graph.layers().filter(|layer| is_own(ops::kind(layer))).map(|layer| layer.id());
    for root in ends.chain(all) {
        pending.push((root, false));
        while let Some((id, is_done)) = pending.pop() {
            if is_done {
                order.push(id);
            } else if seen.insert(id) {
                pending.push((id, true));
                pending.extend(graph.producers(id).into_iter().flatten().map(|source| (source.layer, false)));
            }
        }
    }
    order.retain(|id| graph.layer(*id).is_some_and(|layer| computes(ops::kind(layer))));
    order
}

fn is_own(kind: LayerKind) -> bool {
    matches!(kind, LayerKind::Result | LayerKind::Assign)
}

fn computes(kind: LayerKind) -> bool {
    !matches!(kind, LayerKind::Parameter | LayerKind::Constant) && !is_own(kind)
}

/// A copy of the model with these edits; `None` if one of them is refused.
pub(super) fn edited<T>(model: &Model, edits: impl FnOnce(&mut Edit<'_>) -> Result<T, EditError>) -> Option<Model> {
    let mut model = model.clone();
    model.edit(edits).ok()?;
    Some(model)
}

pub(super) fn move_uses(graph: &mut Edit<'_>, from: Output, to: Output) -> Result<(), EditError> {
    let uses: Vec<_> = graph.consumers(from).collect();
    graph.connect_all(uses.into_iter().map(|input| (to, input)))
}

pub(super) fn sorted(set: &HashSet<LayerId>) -> Vec<LayerId> {
    let mut sorted: Vec<LayerId> = set.iter().copied().collect();
    sorted.sort_unstable();
    sorted
}

/// Constants that they use are kept, and other tensors that they use become inputs. A layer without consumers among
/// them feeds an output. `None` if the edit is not possible.
pub(super) fn part(model: &Model, keep: &HashSet<LayerId>) -> Option<Model> {
    edited(model, |graph| {
        let kept = with_state(graph, keep);
        let mut aside: HashSet<LayerId> = kept.clone();
        let mut wanted: Vec<(Output, Vec<typelift::Input>)> = Vec::new();
        let mut places: HashMap<Output, usize> = HashMap::default();
        let sorted = sorted(&kept);
        for &id in &sorted {
            for (port, source) in graph.producers(id).into_iter().enumerate() {
                let Some(source) = source.filter(|source| !kept.contains(&source.layer)) else { continue };
                let kind = graph.layer(source.layer).map(ops::kind);
                if matches!(kind, Some(LayerKind::Constant | LayerKind::Parameter)) {
                    aside.insert(source.layer);
                    continue;
                }
                let at = *places.entry(source).or_insert_with(|| {
                    wanted.push((source, Vec::new()));
                    wanted.len() - 1
                });
                wanted[at].1.push(id.input(port));
            }
        }
        for (source, inputs) in wanted {
            let parameter = input_like(graph, source)?;
            aside.insert(parameter);
            graph.connect_all(inputs.into_iter().map(|input| (parameter.output(0), input)))?;
        }
        let results = outputs(graph, &kept, &sorted)?;
        aside.extend(results);
        let rest: Vec<LayerId> = graph.layers().map(|layer| layer.id()).filter(|id| !aside.contains(id)).collect();
        graph.remove_all(&rest)
    })
}

fn with_state(graph: &Graph, keep: &HashSet<LayerId>) -> HashSet<LayerId> {
    let variable = |id: &LayerId| graph.layer(*id).and_then(|layer| layer.attribute("variable_id"));
    let read: HashSet<&str> = keep.iter().filter_map(variable).collect();
    let assigns = graph.layers().filter(|layer| ops::kind(layer) == LayerKind::Assign).map(|layer| layer.id());
    keep.iter().copied().chain(assigns.filter(|id| variable(id).is_some_and(|name| read.contains(name)))).collect()
}

fn input_like(graph: &mut Edit<'_>, tensor: Output) -> Result<LayerId, EditError> {
    let port = graph.output(tensor).ok_or(EditError::NoOutput(tensor))?;
    let parameter = NewLayer::new("Parameter", "opset1")
        .with_attribute("shape", port.shape().to_attribute())
        .with_attribute("element_type", port.element_type().name());
    let name = graph.layer(tensor.layer).map_or_else(String::new, |layer| layer.name().to_owned());
    let name = graph.unused_name(format!("{name}/input"));
    graph.add(parameter.named(&name), &[])
}

/// Adds a Result after each kept layer without kept consumers, unless it has one.
fn outputs(graph: &mut Edit<'_>, kept: &HashSet<LayerId>, sorted: &[LayerId]) -> Result<Vec<LayerId>, EditError> {
    let mut results = Vec::new();
    for &id in sorted {
        let Some(layer) = graph.layer(id).filter(|layer| computes(ops::kind(layer)) && !layer.outputs().is_empty())
        else {
            continue;
        };
        if graph.users(id).any(|user| kept.contains(&user)) {
            continue;
        }
        let ports = layer.outputs().len();
        let used = (0..ports).find(|&port| graph.consumers(id.output(port)).next().is_some()).unwrap_or(0);
        let name = graph.unused_name(format!("{}/output", layer.name()));
        let mut own = graph
            .consumers(id.output(used))
            .map(|input| input.layer)
            .filter(|&user| graph.layer(user).is_some_and(|layer| ops::kind(layer) == LayerKind::Result));
        let found = own.next();
        drop(own);
        results.push(match found {
            Some(result) => result,
            None => graph.add(NewLayer::new("Result", "opset1").named(&name), &[id.output(used)])?,
        });
    }
    Ok(results)
}

/// The model without one layer, of a body or of its own graph. Its uses take the given input in its place.
pub(super) fn bypassed(model: &Model, place: &Place, layer: LayerId, input: usize) -> Option<Model> {
    let graph = model.graph_at(place)?;
    let source = graph.producer(layer.input(input))?;
    let (own, fed) = (graph.output(layer.output(0))?, graph.output(source)?);
    if own.element_type() != fed.element_type() || !own.shape().is_compatible(fed.shape()) {
        return None;
    }
    edited(model, |graph| {
        let mut graph = graph.at(place)?;
        move_uses(&mut graph, layer.output(0), source)?;
        graph.remove_unused([layer])?;
        // An input of a body belongs to the layer around it.
        if place.is_model() { remove_lone_inputs(&mut graph) } else { Ok(()) }
    })
}

pub(super) fn remove_lone_inputs(graph: &mut Edit<'_>) -> Result<(), EditError> {
    let inputs = graph.layers().filter(|layer| ops::kind(layer) == LayerKind::Parameter).map(|layer| layer.id());
    let lone: Vec<LayerId> = inputs.filter(|&id| graph.users(id).next().is_none()).collect();
    graph.remove_all(&lone)
}

/// Reduces a second model in the same way as the first one. `pairs` contains the second model's layer for each layer
/// of the first. Layers that only the second model has are kept if they are between kept ones. `None` if no kept layer
/// is paired.
///
/// # Examples
/// ```
/// let mut model = typelift::Model::from_text("x = Parameter : f32[2]\ny = ReLU(x)\nr = Result(y)\n")?;
/// typelift::infer(&mut model);
/// let pairs: std::collections::HashMap<_, _> = typelift::matched_layers(&model, &model).into_iter().collect();
/// let part = typelift_run::reduce::part_like(&model, &model, &pairs).unwrap();
/// assert_eq!(part.graph().len(), 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub fn part_like<S: std::hash::BuildHasher>(
    other: &Model,
    candidate: &Model,
    pairs: &collections::HashMap<LayerId, LayerId, S>,
) -> Option<Model> {
    let graph = other.graph();
    let paired: HashSet<LayerId> = pairs.values().copied().collect();
    let mut keep: HashSet<LayerId> = HashSet::default();
    let kept = in_order(candidate.graph()).into_iter().filter_map(|id| pairs.get(&id).copied());
    let mut pending: Vec<LayerId> =
        kept.filter(|id| graph.layer(*id).is_some_and(|layer| computes(ops::kind(layer)))).collect();
    while let Some(id) = pending.pop() {
        if keep.insert(id) {
            let sources = graph.producers(id).into_iter().flatten().map(|source| source.layer);
            pending.extend(sources.filter(|id: &LayerId| {
                !paired.contains(id) && graph.layer(*id).is_some_and(|layer| computes(ops::kind(layer)))
            }));
        }
    }
    if keep.is_empty() { None } else { part(other, &keep) }
}
