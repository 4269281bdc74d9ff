//! Statements that turn inputs and outputs into variables, and back.

use typelift_promote::ElementType;

use super::ends::{add_input, end_tensor};
use super::names::{edited, ends, renamed, tensor, unknown, with_suggestion};
use crate::base::hash::HashMap;
use crate::base::names::{captures, is_glob, matches_glob, nearest};
use crate::edit::StatePair;
use crate::edit::inputs_outputs::End;
use crate::model::graph::{Graph, Layer, LayerId, Model, Output};
use crate::model::shape::Shape;
use crate::ops::{self, LayerKind};

/// Turns pairs of inputs and outputs into variables; each output provides the next value of its input.
pub(super) fn stateful(model: &mut Model, past: &str, present: &str, name: Option<&str>) -> Result<(), String> {
    let outputs = model.ends_by_name(End::Output);
    let mut pairs = Vec::new();
    for (id, input) in ends(model, End::Input, past)? {
        let output = if is_glob(past) { renamed(past, present, &input)? } else { present.to_owned() };
        let known = outputs.get(&output).map_or_else(|| model.find_output(&output), |id| Ok(*id));
        let (past, present) = (id, known.map_err(|error| unknown(model, &output, &error))?);
        pairs.push(StatePair { past, present, variable: format!("{input}{output}") });
    }
    let beam = match name {
        None => None,
        Some(name) => Some(match model.find_input(name) {
            Ok(input) => input.output(0),
            Err(_) => match tensor(model, name) {
                Ok(tensor) => tensor,
                Err(_) => {
                    let shape = Shape::from_iter([crate::model::shape::Dim::ANY]);
                    add_input(model, name, ElementType::I32, Some(&shape))?.output(0)
                }
            },
        }),
    };
    let twice = pairs.iter().find(|pair| beam.is_some_and(|beam| is_reordered(model.graph(), pair.past, beam)));
    if let (Some(pair), Some(name)) = (twice, name) {
        let past = model.graph().layer(pair.past).map_or("", Layer::name);
        return Err(format!("`{past}` is already reordered by `{name}`; leave out `reorder {name}`"));
    }
    edited(model, |edit| edit.make_stateful(&pairs, beam).map(drop))
}

fn is_reordered(graph: &Graph, past: LayerId, beam: Output) -> bool {
    let is_gather = |id: LayerId| graph.layer(id).is_some_and(|layer| layer.ty() == "Gather");
    let mut consumers = graph.consumers(past.output(0));
    consumers
        .any(|input| input.port == 0 && is_gather(input.layer) && graph.producer(input.layer.input(1)) == Some(beam))
}

/// Turns variables into inputs and outputs.
pub(super) fn stateless(model: &mut Model, names: Option<&(String, String)>) -> Result<(), String> {
    let variables = variables(model);
    if variables.is_empty() {
        return Err("the model has no variables".to_owned());
    }
    let (reads, assigns) = (users(model, LayerKind::ReadValue), users(model, LayerKind::Assign));
    let mut found = Vec::new();
    for variable in &variables {
        let layers = (reads.get(variable).map(Vec::as_slice), assigns.get(variable).map(Vec::as_slice));
        let names = match names {
            None => Some(own_names(model, variable, layers)),
            Some((past, present)) => split(past, present, variable),
        };
        found.extend(names.map(|names| (variable, layers, names)));
    }
    if let (true, Some((past, present))) = (found.is_empty(), names) {
        let example = variables.first().map_or("", String::as_str);
        return Err(format!("no variable is called `{past}{present}`; the model has `{example}`"));
    }
    edited(model, |edit| {
        let mut each = found.iter();
        each.try_for_each(|(variable, layers, (past, present))| match *layers {
            (Some([read]), Some([assign])) => edit.make_stateless_at((*read, *assign), past, present),
            _ => edit.make_stateless(variable, past, present),
        })
    })
}

/// Renames the variables that a name or pattern matches. False if there is none.
pub(super) fn rename(model: &mut Model, old: &str, new: &str) -> Result<bool, String> {
    let found: Vec<_> =
        variables(model).into_iter().filter(|known| known == old || is_glob(old) && matches_glob(old, known)).collect();
    let named = |name: &String| if name == old { Ok(new.to_owned()) } else { renamed(old, new, name) };
    let new = found.iter().map(|name| Ok((name.as_str(), named(name)?))).collect::<Result<HashMap<_, _>, String>>()?;
    let of = |layer: &Layer| {
        let is_state = matches!(ops::kind(layer), LayerKind::ReadValue | LayerKind::Assign);
        let name = layer.attribute("variable_id").filter(|_| is_state)?;
        Some((layer.id(), new.get(name)?.clone()))
    };
    let layers: Vec<_> = model.graph().layers().filter_map(of).collect();
    edited(model, |edit| layers.iter().try_for_each(|(id, name)| edit.set_attribute(*id, "variable_id", name)))?;
    Ok(!found.is_empty())
}

/// The names of all variables, in the order in which they are read.
fn variables(model: &Model) -> Vec<String> {
    let readers = model.graph().layers().filter(|layer| ops::kind(layer) == LayerKind::ReadValue);
    let mut found: Vec<_> = readers.filter_map(|layer| layer.attribute("variable_id")).map(str::to_owned).collect();
    found.sort_by_key(|name| by_number(name));
    found.dedup();
    found
}

fn users(model: &Model, kind: LayerKind) -> HashMap<String, Vec<LayerId>> {
    let mut found = HashMap::<String, Vec<LayerId>>::default();
    for layer in model.graph().layers().filter(|layer| ops::kind(layer) == kind) {
        let Some(variable) = layer.attribute("variable_id") else { continue };
        found.entry(variable.to_owned()).or_default().push(layer.id());
    }
    found
}

/// Splits a name into text and numbers for sorting, so that 2 comes before 10.
fn by_number(name: &str) -> Vec<(String, u64)> {
    let parts = name.split_inclusive(|c: char| !c.is_ascii_digit());
    let number = |part: &str| part.trim_end_matches(|c: char| !c.is_ascii_digit()).parse().unwrap_or_default();
    parts.map(|part| (part.trim_start_matches(|c: char| c.is_ascii_digit()).to_owned(), number(part))).collect()
}

/// The names of the input and output that OpenVINO's own transformation joined into the name of a variable, whose
/// layers are given.
fn own_names(model: &Model, variable: &str, layers: (Option<&[LayerId]>, Option<&[LayerId]>)) -> (String, String) {
    let first = |layers: Option<&[LayerId]>| model.graph().layer(*layers?.first()?);
    let (read, assign) = (first(layers.0), first(layers.1));
    let names = read.and_then(|layer| layer.outputs().first()).map(|port| port.names()).unwrap_or_default();
    let past = names.iter().find(|name| variable.starts_with(name.as_str())).or(names.first());
    let past = past.cloned().unwrap_or_else(|| variable.to_owned());
    let given = assign.and_then(|layer| model.graph().output(model.graph().producer(layer.id().input(0))?));
    let given = given.and_then(|port| port.names().into_iter().next()).filter(|name| *name != past);
    let rest = variable.strip_prefix(past.as_str()).filter(|rest| !rest.is_empty()).map(str::to_owned);
    let present = rest.or(given).unwrap_or_else(|| format!("{past}.next"));
    (past, present)
}

/// Splits the name of a variable into two names that match the patterns. Their wildcards must match the same text.
fn split(past: &str, present: &str, variable: &str) -> Option<(String, String)> {
    let mut places = variable.char_indices().map(|(at, _)| at).chain([variable.len()]);
    let at = places.find(|&at| {
        let (first, second) = variable.split_at(at);
        let parts = (captures(past, first), captures(present, second));
        matches!(parts, (Some(first), Some(second)) if first == second)
    })?;
    let (first, second) = variable.split_at(at);
    Some((first.to_owned(), second.to_owned()))
}

/// Changes the types and shapes of variables.
pub(super) fn state(model: &mut Model, name: &str, ty: ElementType, shape: Option<&Shape>) -> Result<(), String> {
    let all = variables(model);
    let mut found: Vec<_> = all.iter().filter(|known| *known == name).cloned().collect();
    if found.is_empty() {
        let reads = tensor(model, name).ok().and_then(|tensor| model.graph().layer(tensor.layer));
        found.extend(reads.and_then(|layer| layer.attribute("variable_id")).map(str::to_owned));
    }
    if found.is_empty() && is_glob(name) {
        found.extend(all.iter().filter(|known| matches_glob(name, known)).cloned());
    }
    if found.is_empty() {
        let message = format!("the model has no variable `{name}`");
        return Err(match nearest(name, all.iter().map(String::as_str)) {
            Some(near) => format!("{message}; did you mean `{near}`?"),
            None if end_tensor(model, End::Input, name).is_some() => {
                format!("{message}; `{name}` is an input, which `input {name} : {ty}` changes")
            }
            None => with_suggestion(model, name, message),
        });
    }
    let (reads, assigns) = (users(model, LayerKind::ReadValue), users(model, LayerKind::Assign));
    let of_found = found.iter().filter_map(|name| reads.get(name)).flatten().map(|id| id.output(0));
    let narrowed: Vec<_> =
        of_found.filter(|read| model.graph().output(*read).is_some_and(|port| port.element_type() != ty)).collect();
    if ty != ElementType::F32 && model.edit(|edit| Ok(narrowed.iter().any(|&read| edit.attends(read)))).unwrap_or(false)
    {
        let option = format!("info : runtime_options/KV_CACHE_PRECISION = {ty}");
        return Err(format!(
            "the state is the cache of an attention, which OpenVINO does not find behind Converts: it could not run the \
             model. For a cache in {ty} write `{option}`"
        ));
    }
    edited(model, |edit| {
        found.iter().try_for_each(|name| {
            match (reads.get(name).map(Vec::as_slice), assigns.get(name).map(Vec::as_slice)) {
                (Some([read]), Some([assign])) => edit.set_variable_at((*read, *assign), name, Some(ty), shape),
                _ => edit.set_variable(name, Some(ty), shape),
            }
        })
    })
}
