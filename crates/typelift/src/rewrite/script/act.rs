//! Execution of statements on a model.

use std::ops::RangeInclusive;
use std::path::Path;

use typelift_promote::ElementType;

use super::expression::{Formula, Lets, Own, Resolved};
use super::names::{all as names, edited, ends as end_names, renamed, tensors, with_suggestion};
use super::{ends, state};
use crate::base::hash::HashSet;
use crate::base::names::{is_glob, matches_glob, nearest};
use crate::edit::Edit;
use crate::edit::inputs_outputs::End;
use crate::edit::precision_marks::Spelling;
use crate::findings::reason;
use crate::infer::blocks::{border, layers_of_blocks, no_blocks, numbers_of_blocks};
use crate::model::graph::{EditError, Layer, LayerId, Model, Output};
use crate::model::shape::Shape;
use crate::ops::values::array::Array;
use crate::ops::{self, LayerKind};
use crate::precision::{self, KeepPattern, Kept};
use crate::rewrite::bound::self_describe;
use crate::rewrite::known::Exact;
use crate::rewrite::losses::Losses;
use crate::rewrite::values;
use crate::text::xml::ReadError;

/// Owner of the metadata that a statement writes.
#[derive(Clone, Debug)]
pub(super) enum Owner {
    Model,
    /// The layers with this name, or the output `NAME.1` of a layer.
    Layers(String),
    /// The layers with the name at the start of the path. If there is none, the model.
    Named,
}

/// Changes inputs to a type and shape. Their values are computed by an expression if a statement gives one.
pub(super) fn input(
    model: &mut Model,
    lets: &Lets,
    name: &str,
    ty: ElementType,
    shape: Option<&Shape>,
) -> Result<(), String> {
    let found = end_names(model, End::Input, name)?;
    match lets.befores.get(name) {
        Some(value) => before_inputs(model, &found, Some((ty, shape)), value, lets),
        None => retype_inputs(model, &found, ty, shape),
    }
}

pub(super) fn before(model: &mut Model, lets: &mut Lets, name: &str, value: &Formula) -> Result<(), String> {
    if lets.inputs.contains(name) {
        return Ok(());
    }
    let found = end_names(model, End::Input, name).map_err(|error| match tensors(model, name) {
        Ok(_) => format!("`{name}` is no input of the model; `after TENSOR : …` adds layers after any tensor"),
        Err(_) => error,
    })?;
    before_inputs(model, &found, None, value, lets)
}

pub(super) fn output(model: &mut Model, name: &str, ty: ElementType) -> Result<(), String> {
    let found = end_names(model, End::Output, name)?;
    model.convert_outputs(&found, ty).map(drop).map_err(|error| error.to_string())
}

/// Keeps the layers between tensors.
pub(super) fn extract(model: &mut Model, from: &[String], to: &[String]) -> Result<(), String> {
    let [from, to] = [from, to].map(|names| {
        let found = names.iter().map(|name| tensors(model, name)).collect::<Result<Vec<_>, _>>()?;
        Ok::<_, String>(found.into_iter().flatten().map(|(tensor, _)| tensor).collect::<Vec<_>>())
    });
    let (from, to) = (from?, to?);
    edited(model, |edit| edit.extract(&from, &to))
}

/// Renames all layers and tensors that a name or pattern matches.
pub(super) fn rename(model: &mut Model, old: &str, new: &str) -> Result<(), String> {
    let error = match model.edit(|edit| edit.rename(old, new)) {
        Ok(()) => return Ok(()),
        Err(error) => error.to_string(),
    };
    let mut names: Vec<_> = names(model).filter(|name| is_glob(old) && matches_glob(old, name)).collect();
    names.sort_unstable();
    names.dedup();
    if names.is_empty() {
        return if state::rename(model, old, new)? { Ok(()) } else { Err(with_suggestion(model, old, error)) };
    }
    let pairs: Vec<_> =
        names.into_iter().map(|name| renamed(old, new, &name).map(|new| (name, new))).collect::<Result<_, _>>()?;
    edited(model, |edit| edit.rename_all(pairs.iter().map(|(old, new)| (old.as_str(), new.as_str()))))
}

pub(super) fn tap(model: &mut Model, name: &str, new: Option<&str>) -> Result<(), String> {
    let found = tensors(model, name)?.into_iter().map(|(tensor, found)| {
        let new = new.map(|new| if found == name { Ok(new.to_owned()) } else { renamed(name, new, &found) });
        Ok((tensor, new.transpose()?))
    });
    let found = found.collect::<Result<Vec<_>, String>>()?;
    edited(model, |edit| found.iter().try_for_each(|(tensor, new)| edit.expose(*tensor, new.as_deref()).map(drop)))
}

pub(super) fn cut(model: &mut Model, names: &[String]) -> Result<(), String> {
    names.iter().try_for_each(|name| {
        let found = tensors(model, name).map_err(|error| match name.split_once("..") {
            Some((from, to)) => format!("{error}; between tensors, write `cut {from} .. {to}`"),
            None => error,
        })?;
        let found: Vec<_> = found.into_iter().map(|(tensor, _)| tensor).collect();
        edited(model, |edit| edit.cut_all(&found).map(drop))
    })
}

/// Extracts blocks: the tensors that they use become inputs, those that others use become outputs.
pub(super) fn cut_blocks(model: &mut Model, numbers: &RangeInclusive<u64>) -> Result<(), String> {
    let inside: HashSet<LayerId> =
        layers_of_blocks(model, numbers).into_iter().filter_map(|(place, id)| place.is_model().then_some(id)).collect();
    let known = numbers_of_blocks(model);
    if inside.is_empty() || known.is_none_or(|it| it.start() > numbers.start() || it.end() < numbers.end()) {
        return Err(no_blocks(model, numbers));
    }
    let (from, to) = border(model.graph(), &inside);
    edited(model, |edit| edit.extract(&from, &to))
}

/// Replaces If layers of this name by their executed branch, if the condition is known; also in bodies.
pub(super) fn inline(model: &mut Model, name: &str) -> Result<(), String> {
    let fits = |known: &str| known == name || is_glob(name) && matches_glob(name, known);
    let (mut known, mut is_there) = (Vec::new(), false);
    for (place, graph) in model.walk().rev() {
        let mut exact = Exact::new(graph, model.weights());
        for layer in graph.layers().filter(|layer| layer.bodies().len() == 2 && fits(layer.name())) {
            is_there = true;
            known.extend(exact.branch(layer).map(|branch| (place.clone(), layer.id(), branch)));
        }
    }
    if !is_there {
        return Err(with_suggestion(model, name, format!("no If is called `{name}`")));
    }
    if known.is_empty() {
        return Err(format!("the condition of `{name}` is not a constant"));
    }
    edited(model, |edit| known.iter().try_for_each(|(place, id, branch)| edit.at(place)?.inline(*id, *branch)))
}

pub(super) fn join(model: &mut Model, file: &Path, prefix: &str, joints: &[(String, String)]) -> Result<(), String> {
    let mut other = Model::open(file).map_err(|error| match error {
        ReadError::Io { source, .. } => format!("cannot read `{}`: {}", file.display(), reason(&source)),
        error => error.to_string(),
    })?;
    if let Some(error) = crate::infer(&mut other).iter().find(|it| it.is_error()) {
        return Err(format!("the model `{}` has an error: {}", file.display(), super::describe(error)));
    }
    let joints: Vec<_> = joints.iter().map(|(output, input)| (output.as_str(), input.as_str())).collect();
    model.join(&other, &joints, prefix).map(drop).map_err(|error| error.to_string())
}

pub(super) fn give_name(model: &mut Model, lets: &mut Lets, name: &str, value: &Formula) -> Result<(), String> {
    let value = value.resolve(model, lets, None)?;
    let (tensor, added) = edited(model, |edit| {
        let start = edit.batch_len();
        let tensor = value.build(edit, None)?;
        Ok((tensor, edit.added_since(start).collect::<Vec<_>>()))
    })?;
    lets.added.extend(added);
    lets.tensors.insert(name.to_owned(), tensor);
    Ok(())
}

pub(super) fn set(model: &mut Model, lets: &mut Lets, name: &str, value: &Formula) -> Result<(), String> {
    let all = tensors(model, name)?;
    let found: Vec<_> =
        all.iter().filter_map(|(tensor, found)| Some((*tensor, stored(model, *tensor)?, found))).collect();
    if let (true, Some((tensor, _))) = (found.is_empty(), all.first()) {
        let layer = model.graph().layer(tensor.layer).map(self_describe).unwrap_or_default();
        let constant = model.graph().producers(tensor.layer).into_iter().flatten().find_map(|it| stored(model, it));
        let constant = constant.and_then(|id| model.graph().layer(id));
        let near = match constant {
            Some(it) => format!("; its constant is `{}`", it.name()),
            None if model.find_input(name).is_ok() => format!("; `freeze {name} = VALUE` makes it one"),
            None => String::new(),
        };
        return Err(format!("{layer} is not a constant{near}"));
    }
    let owns: Vec<_> =
        found.iter().map(|(tensor, _, found)| Own { tensor: *tensor, name: Some((name, found)) }).collect();
    let values = value.resolve_all(model, lets, &owns)?;
    edited(model, |edit| {
        found.iter().zip(&values).try_for_each(|((tensor, constant, _), value)| {
            let array = assigned(edit, *constant, *tensor, value, lets).map_err(EditError::Other)?;
            ends::put(edit, *constant, &array)
        })
    })
}

fn stored(model: &Model, tensor: Output) -> Option<LayerId> {
    let layer = model.graph().layer(tensor.layer)?;
    match ops::kind(layer) {
        LayerKind::Constant => Some(layer.id()),
        _ if values::is_conversion(layer) => stored(model, model.graph().producer(layer.id().input(0))?),
        _ => None,
    }
}

/// Evaluates an expression for a constant, in its stored type.
fn assigned(
    edit: &Edit<'_>,
    constant: LayerId,
    tensor: Output,
    value: &Resolved<'_>,
    lets: &Lets,
) -> Result<Array, String> {
    let known = values::values(edit, edit.weights(), tensor).ok_or("the values of the constant are unknown")?;
    let array = value.values(edit, known.element_type, &known.dims)?;
    let narrow = edit.layer(constant).and_then(Layer::stored_as).map(|(ty, _)| ty);
    let narrow = narrow.filter(|&ty| ty != known.element_type && array.element_type == known.element_type);
    let Some(ty) = narrow else { return Ok(array) };
    let exact = array.converted(ty).filter(|narrow| narrow.converted(array.element_type).as_ref() == Some(&array));
    if let Some(exact) = exact {
        return Ok(exact);
    }
    let stored = array.saturated(ty).ok_or_else(|| format!("{} does not convert to {ty}", array.element_type))?;
    lets.lose(Losses::of_conversion(&array, &stored));
    Ok(stored)
}

/// Writes a value into the metadata of the model or of layers.
pub(super) fn info(model: &mut Model, owner: &Owner, path: &str, value: &str) -> Result<(), String> {
    let (name, key) = match owner {
        Owner::Model => return model.set_rt_info(path, value).map_err(|error| error.describe(model.graph())),
        Owner::Layers(name) => (name.as_str(), path),
        Owner::Named => match path.rsplit_once('/') {
            Some(parts) => parts,
            None => return model.set_rt_info(path, value).map_err(|error| error.describe(model.graph())),
        },
    };
    let fits = |known: &str| known == name || is_glob(name) && matches_glob(name, known);
    let found: Vec<_> = model.graph().layers().filter(|it| fits(it.name())).map(Layer::id).collect();
    if key == "layout" && found.iter().any(|&id| ends::end_named(model, id).is_some()) {
        return ends::layout(model, name, value);
    }
    if let (true, Some(tensor)) = (found.is_empty(), port_named(model, name)) {
        return edited(model, |edit| edit.set_tensor_rt_info(tensor, key, value));
    }
    if !found.is_empty() {
        return edited(model, |edit| found.iter().try_for_each(|&id| edit.set_rt_info(id, key, value)));
    }
    let near = nearest(name, model.graph().layers().map(Layer::name));
    let is_named = matches!(owner, Owner::Named) && !is_glob(name);
    match near {
        None if is_named => model.set_rt_info(path, value).map_err(|error| error.describe(model.graph())),
        Some(near) if is_named => {
            let model_path = format!("write `info : {path} = …` for metadata of the model");
            Err(format!("no layer is called `{name}`; did you mean `{near}`? {model_path}"))
        }
        _ => Err(with_suggestion(model, name, format!("no layer is called `{name}`"))),
    }
}

/// The output of a layer that a name such as `NAME.1` means.
fn port_named(model: &Model, name: &str) -> Option<Output> {
    let (layer, port) = name.rsplit_once('.')?;
    let tensor = model.graph().find(layer).ok()?.output(port.parse().ok()?);
    model.graph().output(tensor).map(|_| tensor)
}

pub(super) fn keep(model: &mut Model, patterns: &[KeepPattern], marks: bool) -> Result<(), String> {
    let kept = Kept::find(model, patterns).map_err(|error| error.to_string())?;
    let done = if marks { precision::mark(model, &kept, Spelling::Both) } else { precision::unmark(model, &kept) };
    done.map(|_| ()).map_err(|error| error.describe(model.graph()))
}

fn retype_inputs(
    model: &mut Model,
    found: &[(LayerId, String)],
    ty: ElementType,
    shape: Option<&Shape>,
) -> Result<(), String> {
    let is_other = |id: &LayerId| model.graph().output(id.output(0)).is_none_or(|port| Some(port.shape()) != shape);
    let reshaped: Vec<_> = found.iter().map(|(id, _)| *id).filter(|id| shape.is_some() && is_other(id)).collect();
    if let (Some(shape), false) = (shape, reshaped.is_empty()) {
        edited(model, |edit| {
            reshaped.iter().try_for_each(|&id| edit.set_attribute(id, "shape", shape.to_attribute()))
        })?;
        // Errors that the new shape causes are reported after all statements.
        let _found_later = crate::infer(model);
    }
    model.convert_inputs(found, ty).map(drop).map_err(|error| error.to_string())
}

/// Replaces uses of inputs by an expression of each. The inputs get a new type or shape if one is given.
fn before_inputs(
    model: &mut Model,
    found: &[(LayerId, String)],
    given: Option<(ElementType, Option<&Shape>)>,
    value: &Formula,
    lets: &Lets,
) -> Result<(), String> {
    let owns: Vec<_> = found.iter().map(|(id, _)| Own { tensor: id.output(0), name: None }).collect();
    let values = value.resolve_all(model, lets, &owns)?;
    edited(model, |edit| {
        found.iter().zip(&values).try_for_each(|((id, _), value)| before_input(edit, *id, given, value))
    })
}

fn before_input(
    edit: &mut Edit<'_>,
    id: LayerId,
    given: Option<(ElementType, Option<&Shape>)>,
    value: &Resolved<'_>,
) -> Result<(), EditError> {
    let made = id.output(0);
    let port = edit.output(made).ok_or(EditError::NoOutput(made))?;
    let (old_type, old_shape) = (port.element_type(), port.shape().clone());
    if let Some((ty, shape)) = given {
        let shape = shape.unwrap_or(&old_shape);
        edit.set_attribute(id, "element_type", ty.name())?;
        edit.set_attribute(id, "shape", shape.to_attribute().to_string())?;
    }
    let uses: Vec<_> = edit.consumers(made).collect();
    let new = value.build(edit, None)?;
    let port = edit.output(new).ok_or(EditError::NoOutput(new))?;
    if port.element_type() != old_type || !port.shape().is_compatible(&old_shape) {
        let (is, shape) = (port.element_type(), port.shape());
        let message =
            format!("the expression has type {is}{shape}, but the consumers of the input need {old_type}{old_shape}");
        return Err(EditError::Other(message));
    }
    let is_arithmetic = |layer: &Layer| ["Add", "Subtract", "Multiply", "Divide"].contains(&layer.ty());
    if given.is_none() && *port.shape() != old_shape && edit.layer(new.layer).is_some_and(is_arithmetic) {
        let shape = port.shape();
        let message = format!(
            "the input {old_shape} would become {shape}, because lists are aligned at the last axis: give the axes of the list, such as `reshape([1, 2, 3], [1, 3, 1, 1])`"
        );
        return Err(EditError::Other(message));
    }
    edit.connect_all(uses.into_iter().map(|input| (new, input)))
}

/// Connects the consumers of tensors to an expression of each.
pub(super) fn after(model: &mut Model, lets: &mut Lets, name: &str, value: &Formula) -> Result<(), String> {
    let found = tensors(model, name)?;
    let owns: Vec<_> = found.iter().map(|(tensor, found)| Own { tensor: *tensor, name: Some((name, found)) }).collect();
    let values = value.resolve_all(model, lets, &owns)?;
    edited(model, |edit| found.iter().zip(&values).try_for_each(|((tensor, _), value)| after_one(edit, *tensor, value)))
}

fn after_one(edit: &mut Edit<'_>, tensor: Output, value: &Resolved<'_>) -> Result<(), EditError> {
    let uses: Vec<_> = edit.consumers(tensor).collect();
    let is = |id: LayerId, kind| edit.layer(id).is_some_and(|layer| ops::kind(layer) == kind);
    let is_output = uses.iter().any(|to| is(to.layer, LayerKind::Result)) && !is(tensor.layer, LayerKind::Parameter);
    let new = value.build(edit, None)?;
    edit.connect_all(uses.into_iter().map(|input| (new, input)))?;
    if is_output { edit.move_names(tensor, new) } else { Ok(()) }
}
