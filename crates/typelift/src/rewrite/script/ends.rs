//! Statements that add, remove, order and replace inputs and outputs of a model, and connect tensors differently.

use typelift_promote::ElementType;

use super::expression::{Formula, Lets, Own, Resolved};
use super::names::{edited, ends, tensors};
use crate::edit::Edit;
use crate::edit::inputs_outputs::End;
use crate::edit::metadata::layout_dims;
use crate::model::graph::{EditError, LayerId, Model, NewLayer, Output};
use crate::model::shape::Shape;
use crate::ops::values::array::Array;
use crate::ops::{self, LayerKind};
use crate::text::xml::metadata_attribute;

pub(super) fn add_input(
    model: &mut Model,
    name: &str,
    ty: ElementType,
    shape: Option<&Shape>,
) -> Result<LayerId, String> {
    if model.graph().unordered().any(|layer| layer.name() == name) {
        return Err(format!("a layer named `{name}` already exists"));
    }
    let shape = shape.cloned().unwrap_or_else(Shape::dynamic);
    let input = NewLayer::new("Parameter", "opset1")
        .named(name)
        .with_attribute("shape", shape.to_attribute())
        .with_attribute("element_type", ty.name());
    edited(model, |edit| edit.add(input, &[]))
}

pub(super) fn add_output(model: &mut Model, lets: &mut Lets, name: &str, value: &Formula) -> Result<(), String> {
    let value = value.resolve(model, lets, None)?;
    edited(model, |edit| {
        let tensor = value.build(edit, None)?;
        edit.expose(tensor, Some(name)).map(drop)
    })
}

pub(super) fn remove(model: &mut Model, end: End, names: &[String]) -> Result<(), String> {
    match end {
        End::Input => remove_inputs(model, names),
        End::Output => remove_outputs(model, names),
    }
}

/// Removes outputs, and the layers that only they need.
fn remove_outputs(model: &mut Model, names: &[String]) -> Result<(), String> {
    let mut results: Vec<_> = ends_of(model, End::Output, names)?.into_iter().map(|(id, _)| id).collect();
    results.sort_unstable();
    results.dedup();
    if results.len() == model.outputs().count() {
        return Err("the model would have no outputs".to_owned());
    }
    edited(model, |edit| edit.remove_outputs(&results).map(drop))
}

fn ends_of(model: &Model, end: End, names: &[String]) -> Result<Vec<(LayerId, String)>, String> {
    let found = names.iter().map(|name| ends(model, end, name)).collect::<Result<Vec<_>, _>>()?;
    Ok(found.concat())
}

/// Removes inputs that no layer uses.
fn remove_inputs(model: &mut Model, names: &[String]) -> Result<(), String> {
    let mut inputs = Vec::new();
    for (input, name) in ends_of(model, End::Input, names)? {
        if let Some(user) = model.graph().users(input).next().and_then(|user| model.graph().layer(user)) {
            let user = user.name();
            return Err(format!(
                "`{user}` uses the input `{name}`: replace the input first with `redirect {name} -> …` or `freeze {name} = …`"
            ));
        }
        inputs.push(input);
    }
    edited(model, |edit| edit.remove_all(&inputs))
}

/// Replaces inputs by constants.
pub(super) fn freeze(model: &mut Model, lets: &mut Lets, name: &str, value: &Formula) -> Result<(), String> {
    let found = ends(model, End::Input, name)?;
    let owns: Vec<_> =
        found.iter().map(|(input, found)| Own { tensor: input.output(0), name: Some((name, found)) }).collect();
    let values = value.resolve_all(model, lets, &owns)?;
    edited(model, |edit| {
        found.iter().zip(&values).try_for_each(|((input, _), value)| freeze_one(edit, *input, name, value))
    })
}

fn freeze_one(edit: &mut Edit<'_>, input: LayerId, name: &str, value: &Resolved<'_>) -> Result<(), EditError> {
    let refused = |reason: String| Err(EditError::Other(reason));
    let port = edit.output(input.output(0)).ok_or(EditError::NoOutput(input.output(0)))?;
    let (ty, shape) = (port.element_type(), port.shape().clone());
    let lengths = shape.to_static().unwrap_or_default();
    let lengths: Vec<_> = lengths.into_iter().map(|dim| dim as usize).collect();
    let array = value.values(edit, ty, &lengths).map_err(EditError::Other)?;
    if !array.shape().is_compatible(&shape) {
        let found = array.shape();
        let fixed = if shape.is_static() { "" } else { "; set its lengths first with `input NAME : TYPE[SHAPE]`" };
        return refused(format!("the value has shape {found}, but the input `{name}` has {shape}{fixed}"));
    }
    let given = array.element_type;
    let array = array.converted(ty).filter(|converted| converted.converted(given).as_ref() == Some(&array));
    let Some(array) = array else {
        return refused(format!("the value has type {given}, and {ty} cannot represent all of its numbers"));
    };
    put(edit, input, &array)
}

/// Sets the values of a constant, or puts one in the place of an input.
pub(super) fn put(edit: &mut Edit<'_>, id: LayerId, array: &Array) -> Result<(), EditError> {
    let dims: Vec<_> = array.dims.iter().map(|&dim| dim as i64).collect();
    let bytes = array.encode().ok_or_else(|| EditError::Other(format!("{} is not numeric", array.element_type)))?;
    edit.set_constant(id, array.element_type, &dims, &bytes)
}

/// Moves inputs or outputs to the front, in this order.
pub(super) fn order(model: &mut Model, end: End, names: &[String]) -> Result<(), String> {
    let found: Vec<_> = ends_of(model, end, names)?.into_iter().map(|(id, _)| id).collect();
    edited(model, |edit| edit.order(&found))
}

/// Connects the consumers of tensors to an expression.
pub(super) fn redirect(model: &mut Model, lets: &mut Lets, name: &str, value: &Formula) -> Result<(), String> {
    let found = tensors(model, name)?;
    let owns: Vec<_> = found.iter().map(|(tensor, found)| Own { tensor: *tensor, name: Some((name, found)) }).collect();
    let values = value.resolve_all(model, lets, &owns)?;
    let old: Vec<_> = found.iter().map(|(tensor, _)| *tensor).collect();
    let new = |edit: &mut Edit<'_>, at: usize| {
        let like = edit.checked_output(old[at])?.tensor_type();
        let new = values[at].build(edit, Some(&like))?;
        if new == old[at] {
            return Err(EditError::Other(format!("`{}` would be connected to itself", found[at].1)));
        }
        Ok(new)
    };
    edited(model, |edit| edit.redirect_all(&old, &lets.added, new).map(drop))
}

pub(super) fn layout(model: &mut Model, name: &str, value: &str) -> Result<(), String> {
    let mut found = Vec::new();
    for end in [End::Input, End::Output] {
        let named = model.ends_matching(end, name).unwrap_or_default();
        found.extend(named.into_iter().filter_map(|(id, _)| end_named(model, id)));
    }
    if found.is_empty() {
        return Err(super::names::with_suggestion(model, name, format!("the model has no input or output `{name}`")));
    }
    metadata_attribute("layout", value).map_err(|reason| format!("the layout {value} is {reason}"))?;
    for &tensor in &found {
        check_layout(model, tensor, value)?;
    }
    edited(model, |edit| found.iter().try_for_each(|&tensor| edit.set_tensor_rt_info(tensor, "layout", value)))
}

pub(super) fn end_tensor(model: &Model, end: End, name: &str) -> Option<Output> {
    match end {
        End::Input => Some(model.find_input(name).ok()?.output(0)),
        End::Output => model.graph().producer(model.find_output(name).ok()?.input(0)),
    }
}

/// The tensor of a layer, if it is an input or output of the model.
pub(super) fn end_named(model: &Model, id: LayerId) -> Option<Output> {
    match ops::kind(model.graph().layer(id)?) {
        LayerKind::Parameter => Some(id.output(0)),
        LayerKind::Result => model.graph().producer(id.input(0)),
        _ => None,
    }
}

/// An error for a layout with another number of dimensions than the tensor, which OpenVINO would not accept.
fn check_layout(model: &Model, tensor: Output, value: &str) -> Result<(), String> {
    let Some(rank) = model.graph().output(tensor).and_then(|port| port.shape().rank()) else { return Ok(()) };
    let (count, is_open) = layout_dims(value);
    if value.contains("**SCALAR**") || count == rank || is_open && count <= rank {
        return Ok(());
    }
    let port = model.graph().output(tensor).map(ToString::to_string).unwrap_or_default();
    Err(format!("the layout {value} has {count} dimensions, but the tensor is {port}"))
}
