//! What statements do to a model.

use std::path::Path;
use std::sync::Arc;

use typelift_promote::ElementType;

use super::statement::{Owner, Statement};
use crate::base::names::{self, near};
use crate::edit::inputs_outputs::{End, InterfaceError};
use crate::edit::precision_marks::Spelling;
use crate::findings::reason;
use crate::infer::Probe;
use crate::model::graph::{EditError, Input, Layer, LayerId, Model, Output};
use crate::model::shape::Shape;
use crate::ops::values::array::{Array, npy};
use crate::ops::{self, LayerKind};
use crate::precision::{self, KeepPattern, Kept};
use crate::rewrite::build::{Added, Build};
use crate::rewrite::constant::stretch;
use crate::rewrite::evaluate::{Evaluator, Lack};
use crate::rewrite::known;
use crate::rewrite::matching::{Bound, self_describe};
use crate::rewrite::notation::closest;
use crate::rewrite::term::{Assignment, Name, Side, Source, TermKind};
use crate::rewrite::values;
use crate::text::xml::ReadError;

impl Statement {
    /// Changes a typed model; `all` are the statements of the script.
    pub(super) fn apply(&self, model: &mut Model, all: &[Self]) -> Result<(), String> {
        match self {
            Self::Rename { old, new } => rename(model, old, new),
            Self::Input { name, element_type, shape } => {
                let before = all.iter().find_map(|other| match other {
                    Self::Before { name: same, side } if same == name => Some(side),
                    _ => None,
                });
                ends(model, End::Input, name)?.iter().try_for_each(|name| match before {
                    Some(side) => before_input(model, name, Some((*element_type, shape.clone())), side),
                    None => retype_input(model, name, *element_type, shape.as_ref()),
                })
            }
            Self::Before { name, side } => {
                if all.iter().any(|other| matches!(other, Self::Input { name: same, .. } if same == name)) {
                    return Ok(());
                }
                ends(model, End::Input, name)?.iter().try_for_each(|name| before_input(model, name, None, side))
            }
            Self::Output { name, element_type } => ends(model, End::Output, name)?.iter().try_for_each(|name| {
                model.convert_output(name, *element_type).map(drop).map_err(|error| error.to_string())
            }),
            Self::After { name, side } => {
                tensors(model, name)?.into_iter().try_for_each(|(tensor, _)| after(model, tensor, side))
            }
            Self::Tap { name, new } => tap(model, name, new.as_deref()),
            Self::Cut { names } => cut(model, names),
            Self::Piece { from, to } => {
                let all = |names: &[String]| -> Result<Vec<_>, String> {
                    let found = names.iter().map(|name| tensors(model, name)).collect::<Result<Vec<_>, _>>()?;
                    Ok(found.into_iter().flatten().map(|(tensor, _)| tensor).collect())
                };
                let (from, to) = (all(from)?, all(to)?);
                model.edit(|edit| edit.extract(&from, &to)).map_err(text_of)
            }
            Self::Inline { name } => inline(model, name),
            Self::Join { file, prefix, joints } => join(model, file, prefix, joints),
            Self::Set { name, value } => set(model, name, value),
            Self::Info { owner, path, value } => info(model, owner, path, value),
            Self::Keep { patterns, marks } => keep(model, patterns, *marks),
            Self::Expect { .. } => Ok(()),
        }
    }
}

/// The names of the inputs or outputs that a name or pattern stands for.
fn ends(model: &Model, end: End, name: &str) -> Result<Vec<String>, String> {
    model.ends_named(end, name).map_err(|error| unknown(model, name, &error))
}

/// The tensors of the model's own graph that a name or pattern stands for, each with the name that it fits.
fn tensors(model: &Model, name: &str) -> Result<Vec<(Output, String)>, String> {
    let error = match tensor(model, name) {
        Ok(tensor) => return Ok(vec![(tensor, name.to_owned())]),
        Err(error) => error,
    };
    let mut found = Vec::new();
    let is_result = |layer: &Layer| ops::kind(layer) == LayerKind::Result;
    for layer in model.graph().layers().filter(|layer| names::is_glob(name) && !is_result(layer)) {
        for (at, port) in layer.outputs().iter().enumerate() {
            let mut names = port.names();
            if names.is_empty() && at == 0 {
                names.push(layer.name().to_owned());
            }
            let fitting = names.into_iter().find(|known| names::matches_glob(name, known));
            found.extend(fitting.map(|known| (layer.id().output(at), known)));
        }
    }
    if found.is_empty() { Err(error) } else { Ok(found) }
}

/// The name that takes the place of one that a pattern stands for: each `*` and `?` of `new` is what that of `old` was.
fn renamed(old: &str, new: &str, name: &str) -> Result<String, String> {
    let parts = names::captures(old, name).unwrap_or_default();
    let wildcards = |text: &str| text.matches(['*', '?']).count();
    if wildcards(new) != parts.len() {
        return Err(format!("write `*` and `?` as often in `{new}` as in `{old}`: they stand for the same text"));
    }
    let mut parts = parts.into_iter();
    let letters = new.chars().map(|letter| match letter {
        '*' | '?' => parts.next().unwrap_or_default(),
        _ => letter.to_string(),
    });
    Ok(letters.collect())
}

/// Gives whatever has this name another one.
fn rename(model: &mut Model, old: &str, new: &str) -> Result<(), String> {
    let error = match model.edit(|edit| edit.rename(old, new)) {
        Ok(()) => return Ok(()),
        Err(error) => with_suggestion(model, old, error.to_string()),
    };
    if !names::is_glob(old) {
        return Err(error);
    }
    let mut names: Vec<_> = names(model).filter(|name| names::matches_glob(old, name)).collect();
    names.sort_unstable();
    names.dedup();
    if names.is_empty() {
        return Err(error);
    }
    let pairs: Vec<_> =
        names.into_iter().map(|name| renamed(old, new, &name).map(|new| (name, new))).collect::<Result<_, _>>()?;
    let edited = model.edit(|edit| pairs.iter().try_for_each(|(old, new)| edit.rename(old, new)));
    edited.map_err(text_of)
}

fn tap(model: &mut Model, name: &str, new: Option<&str>) -> Result<(), String> {
    for (tensor, found) in tensors(model, name)? {
        let new = new.map(|new| if found == name { Ok(new.to_owned()) } else { renamed(name, new, &found) });
        let new = new.transpose()?;
        model.edit(|edit| edit.tap(tensor, new.as_deref())).map_err(text_of)?;
    }
    Ok(())
}

fn cut(model: &mut Model, names: &[String]) -> Result<(), String> {
    for name in names {
        for (tensor, found) in tensors(model, name)? {
            if model.graph().output(tensor).is_none() {
                return Err(format!("`{found}` is computed from another tensor of the list, and went with it"));
            }
            model.edit(|edit| edit.cut(tensor)).map_err(text_of)?;
        }
    }
    Ok(())
}

/// Puts the branch that runs in the place of each If of this name whose condition is known, in bodies too.
fn inline(model: &mut Model, name: &str) -> Result<(), String> {
    let fits = |known: &str| known == name || names::is_glob(name) && names::matches_glob(name, known);
    let (mut known, mut is_there) = (Vec::new(), false);
    for (place, graph) in model.walk().rev() {
        for layer in graph.layers().filter(|layer| layer.bodies().len() == 2 && fits(layer.name())) {
            is_there = true;
            let branch = known::branch(&mut Probe::new(model.weights()), graph, layer);
            known.extend(branch.map(|branch| (place.clone(), layer.id(), branch)));
        }
    }
    if !is_there {
        return Err(with_suggestion(model, name, format!("no If is called `{name}`")));
    }
    if known.is_empty() {
        return Err(format!("the condition of `{name}` is not a constant"));
    }
    let edited =
        model.edit(|edit| known.iter().try_for_each(|(place, id, branch)| edit.at(place)?.inline(*id, *branch)));
    edited.map_err(text_of)
}

/// Puts the model of a file after this one.
fn join(model: &mut Model, file: &Path, prefix: &str, joints: &[(String, String)]) -> Result<(), String> {
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

/// Gives the constants of this name the values of an expression.
fn set(model: &mut Model, name: &str, value: &Assignment) -> Result<(), String> {
    let all = tensors(model, name)?;
    let found: Vec<_> = all.iter().filter_map(|(tensor, _)| Some((*tensor, stored(model, *tensor)?))).collect();
    if let (true, Some((tensor, _))) = (found.is_empty(), all.first()) {
        let layer = model.graph().layer(tensor.layer).map(self_describe).unwrap_or_default();
        return Err(format!("{layer} is not a constant"));
    }
    for (tensor, constant) in found {
        let array = assigned(model, tensor, constant, value)?;
        let dims: Vec<_> = array.dims.iter().map(|&dim| dim as i64).collect();
        let bytes = array.encode().ok_or_else(|| format!("{} does not hold numbers", array.element_type))?;
        model.edit(|edit| edit.set_constant(constant, array.element_type, &dims, &bytes)).map_err(text_of)?;
    }
    Ok(())
}

/// The constant that a tensor is, or is converted from.
fn stored(model: &Model, tensor: Output) -> Option<LayerId> {
    let layer = model.graph().layer(tensor.layer)?;
    match ops::kind(layer) {
        LayerKind::Constant => Some(layer.id()),
        _ if values::is_conversion(layer) => stored(model, model.graph().producer(layer.id().input(0))?),
        _ => None,
    }
}

/// What an expression gives a constant, in the type that it is stored as.
fn assigned(model: &Model, tensor: Output, constant: LayerId, value: &Assignment) -> Result<Array, String> {
    let (graph, weights) = (model.graph(), model.weights());
    let own = values::values(graph, weights, tensor).ok_or("the values of the constant are not known")?;
    let bound = value.sources.iter().map(|source| {
        let array = match source {
            Source::Own => own.clone(),
            Source::Constant(name) => {
                let of = self::tensor(model, name)?;
                let values = values::values(graph, weights, of);
                values.ok_or_else(|| format!("`{name}` is not a constant whose values are known"))?
            }
            Source::File(file) => {
                let bytes = std::fs::read(file).map_err(|error| reason(&error));
                let read = bytes.and_then(|bytes| npy::read(&bytes));
                read.map_err(|reason| format!("cannot read `{}`: {reason}", file.display()))?
            }
        };
        Ok(Some(Bound::Values(Arc::new(array))))
    });
    let bound = bound.collect::<Result<Vec<_>, String>>()?;
    let (side, names) = (&value.side, &value.names);
    let evaluator = Evaluator { graph, weights, side, names, names_bound: &bound, variables: &[], plain: false };
    let root = side.roots.first().copied().unwrap_or_default();
    let array = evaluator.array(root, Some(own.element_type)).map_err(|lack| match lack {
        Lack::Absent => "a name in it means nothing".to_owned(),
        Lack::Reason(reason) => reason,
    })?;
    // A number has no shape of its own.
    let fills = matches!(&side.terms[root].kind, TermKind::Literal(literal) if literal.dims.is_empty());
    let array = if fills { stretch(&array, &own.dims) } else { array };
    let narrow = graph.layer(constant).and_then(Layer::stored_as).map(|(ty, _)| ty);
    let narrow = narrow.filter(|&ty| ty != own.element_type && array.element_type == own.element_type);
    match narrow {
        Some(ty) => array.converted(ty).ok_or_else(|| format!("{} does not convert to {ty}", array.element_type)),
        None => Ok(array),
    }
}

/// Writes a value into the metadata of the model or of layers.
fn info(model: &mut Model, owner: &Owner, path: &str, value: &str) -> Result<(), String> {
    let (name, key) = match owner {
        Owner::Model => return model.set_rt_info(path, value).map_err(text_of),
        Owner::Layers(name) => (name.as_str(), path),
        Owner::Named => match path.rsplit_once('/') {
            Some(parts) => parts,
            None => return model.set_rt_info(path, value).map_err(text_of),
        },
    };
    let fits = |known: &str| known == name || names::is_glob(name) && names::matches_glob(name, known);
    let found: Vec<_> = model.graph().layers().filter(|it| fits(it.name())).map(Layer::id).collect();
    if !found.is_empty() {
        let edited = model.edit(|edit| found.iter().try_for_each(|&id| edit.set_rt_info(id, key, value)));
        return edited.map_err(text_of);
    }
    let near = closest(name, model.graph().layers().map(Layer::name));
    let is_named = matches!(owner, Owner::Named) && !names::is_glob(name);
    match near {
        None if is_named => model.set_rt_info(path, value).map_err(text_of),
        Some(near) if is_named => {
            let model_path = format!("write `info : {path} = …` for metadata of the model");
            Err(format!("no layer is called `{name}`; did you mean `{near}`? {model_path}"))
        }
        _ => Err(with_suggestion(model, name, format!("no layer is called `{name}`"))),
    }
}

/// Marks layers to be computed in f32, or takes such marks away.
fn keep(model: &mut Model, patterns: &[KeepPattern], marks: bool) -> Result<(), String> {
    let kept = Kept::find(model, patterns).map_err(|error| error.to_string())?;
    let done = if marks { precision::mark(model, &kept, Spelling::Both) } else { precision::unmark(model, &kept) };
    done.map(|_| ()).map_err(text_of)
}

fn text_of(error: EditError) -> String {
    error.to_string()
}

/// A tensor of the model's own graph.
fn tensor(model: &Model, name: &str) -> Result<Output, String> {
    let result = model.graph().tensor(name).or_else(|error| {
        let result = model.find_output(name).ok();
        let source = result.and_then(|result| model.graph().producer(result.input(0)));
        source.ok_or(error)
    });
    let found = result.map_err(|error| with_suggestion(model, name, error.to_string()))?;
    // A Result is known by the tensor that feeds it.
    let is_result = model.graph().layer(found.layer).is_some_and(|layer| ops::kind(layer) == LayerKind::Result);
    let source = model.graph().producer(found.layer.input(0)).filter(|_| is_result);
    Ok(source.unwrap_or(found))
}

fn unknown(model: &Model, name: &str, error: &InterfaceError) -> String {
    with_suggestion(model, name, error.to_string())
}

/// The names of all layers and tensors of the model's own graph.
fn names(model: &Model) -> impl Iterator<Item = String> {
    model.graph().layers().flat_map(|layer| {
        layer.outputs().iter().flat_map(|port| port.names()).chain([layer.name().to_owned()]).collect::<Vec<_>>()
    })
}

fn with_suggestion(model: &Model, name: &str, message: String) -> String {
    let names: Vec<_> = names(model).filter(|known| known != name).collect();
    let names = names.iter().map(String::as_str);
    let near = if names::is_glob(name) { near(name, names) } else { closest(name, names).map(str::to_owned) };
    match near {
        Some(near) => format!("{message}; did you mean `{near}`?"),
        None => message,
    }
}

fn retype_input(model: &mut Model, name: &str, ty: ElementType, shape: Option<&Shape>) -> Result<(), String> {
    let id = model.find_input(name).map_err(|error| unknown(model, name, &error))?;
    let port = model.graph().output(id.output(0)).map(|port| (port.element_type(), port.shape().clone()));
    if let Some(shape) = shape.filter(|shape| port.as_ref().is_none_or(|(_, old)| old != *shape)) {
        model.set_input(name, None, Some(shape)).map_err(|error| error.to_string())?;
        // What the shape breaks is found once all statements are applied.
        let _found_later = crate::infer(model);
    }
    if port.is_none_or(|(old, _)| old != ty) {
        model.convert_input(name, ty).map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// Computes what the model had at an input from what it is given now.
fn before_input(
    model: &mut Model,
    name: &str,
    given: Option<(ElementType, Option<Shape>)>,
    side: &Side,
) -> Result<(), String> {
    let id = model.find_input(name).map_err(|error| unknown(model, name, &error))?;
    let made = id.output(0);
    let port = model.graph().output(made).ok_or("it does not have an output")?;
    let (old_type, old_shape) = (port.element_type(), port.shape().clone());
    let edited = model.edit(|edit| {
        if let Some((ty, shape)) = given {
            let shape = shape.unwrap_or_else(|| old_shape.clone());
            edit.set_attribute(id, "element_type", ty.name())?;
            edit.set_attribute(id, "shape", shape.to_attribute().to_string())?;
        }
        let uses: Vec<_> = edit.consumers(made).collect();
        let new = compute(edit, side, made)?;
        let port = edit.output(new).ok_or(EditError::NoOutput(new))?;
        if port.element_type() != old_type || !port.shape().is_compatible(&old_shape) {
            let (is, shape) = (port.element_type(), port.shape());
            let message = format!("it comes out as {is}{shape}, and the model computes with {old_type}{old_shape}");
            return Err(EditError::Other(message));
        }
        redirect(edit, uses, new)
    });
    edited.map_err(text_of)
}

/// Redirects the consumers of a tensor to what is computed from it.
fn after(model: &mut Model, tensor: Output, side: &Side) -> Result<(), String> {
    let edited = model.edit(|edit| {
        let uses: Vec<_> = edit.consumers(tensor).collect();
        let is = |id: LayerId, kind| edit.layer(id).is_some_and(|layer| ops::kind(layer) == kind);
        let is_output =
            uses.iter().any(|to| is(to.layer, LayerKind::Result)) && !is(tensor.layer, LayerKind::Parameter);
        let new = compute(edit, side, tensor)?;
        redirect(edit, uses, new)?;
        if is_output { edit.move_names(tensor, new) } else { Ok(()) }
    });
    edited.map_err(text_of)
}

fn redirect(edit: &mut crate::edit::Edit<'_>, uses: Vec<Input>, new: Output) -> Result<(), EditError> {
    uses.into_iter().try_for_each(|input| edit.connect(new, input))
}

/// Puts an expression of one tensor into the graph.
fn compute(edit: &mut crate::edit::Edit<'_>, side: &Side, of: Output) -> Result<Output, EditError> {
    let tensors = [Some(Bound::Tensor(of))];
    let names = [Name { certain: true, ..Name::new("_".to_owned()) }];
    let (variables, matched, mut constants) = (&[], &[], Added::default());
    let (names, bound, constants) = (&names, &tensors, &mut constants);
    let mut build = Build {
        edit,
        side,
        names,
        bound,
        variables,
        matched,
        constants,
        added: Vec::new(),
        shared: Vec::new(),
        non_finite: 0,
    };
    let root = side.roots.first().copied().unwrap_or_default();
    build.build_tensor(root, None)
}
