//! Edits that copy layers from another graph: another model, or a body.

use std::ops::Range;
use std::sync::Arc;
use std::{collections, io};

use super::Edit;
use crate::base::hash::{HashMap, HashSet};
use crate::infer::infer;
use crate::model::graph::{Direction, EditError, Graph, Layer, LayerId, Model, Output, join_names, split_names};
use crate::model::weights::{Content, Weights};
use crate::ops::{self, LayerKind};

impl Model {
    /// Returns a body of a layer of the model's own graph as a model, and the new id of each of its layers. `None` if
    /// there is no such body, or if it refers to what is around it.
    pub fn body_alone(&self, owner: LayerId, at: usize) -> Option<(Self, collections::HashMap<LayerId, LayerId>)> {
        let graph = self.graph().layer(owner)?.bodies().get(at)?.graph.clone();
        let body = Self { graph, ..self.clone() };
        let version = self.version();
        let empty = format!(r#"<net name="body" version="{version}"><layers></layers><edges></edges></net>"#);
        let mut model = Self::from_xml(empty).ok()?;
        let ids = model.edit(|edit| edit.inline_model(&body, &[], "")).ok()?;
        let _known = infer(&mut model);
        Some((model, ids))
    }
}

impl Edit<'_> {
    /// Inserts all layers of another model, with their bodies, metadata and constants. Each input in `feeds` is
    /// replaced by the given tensor. The other inputs and all outputs are added to those of this model. All names of
    /// inserted layers, tensors, outputs and variables get `prefix`; a layer whose name exists already also gets a
    /// number. Returns the new id of each layer.
    ///
    /// # Errors
    /// [`EditError::NamesCollide`] if this model already has one of the new names. [`EditError::Other`] if an input
    /// does not accept its tensor, if `feeds` names a layer that is not an input, or if the models have different
    /// versions. [`EditError::NoWeights`] if the bytes of constants are missing.
    ///
    /// # Examples
    /// ```
    /// # use typelift::Model;
    /// # let mut model = Model::open(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/model.xml"))?;
    /// let head = Model::from_text("
    ///     features = Parameter : f32[?,4]
    ///     scores = Softmax-8(features) {axis=-1}
    ///     Result_2 = Result(scores)
    /// ")?;
    /// let y = model.graph().tensor("y")?;
    /// let features = head.find_input("features")?;
    /// model.edit(|graph| graph.inline_model(&head, &[(features, y)], "head/"))?;
    /// assert_eq!(model.graph().tensor("head/scores").is_ok(), true);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn inline_model(
        &mut self,
        other: &Model,
        feeds: &[(LayerId, Output)],
        prefix: &str,
    ) -> Result<collections::HashMap<LayerId, LayerId>, EditError> {
        if self.version != other.version() {
            let (own, theirs) = (self.version, other.version());
            return Err(EditError::Other(format!("this model has IR version {own}, the other one {theirs}")));
        }
        let feeds: HashMap<_, _> = feeds.iter().copied().collect();
        feeds.iter().try_for_each(|(&input, &tensor)| self.check_fed(other, input, tensor))?;
        let fed = feeds.keys().copied().collect();
        self.check_names(other.graph(), &fed, prefix)?;
        self.attempt(|edit| {
            let mut bytes = Bytes { weights: other.weights(), known: HashMap::default() };
            edit.take_over(other.graph(), &feeds, &fed, &mut |edit, layer| {
                layer.name = edit.unused_name(format!("{prefix}{}", layer.name())).into();
                with_prefix(layer, prefix);
                bytes.bring(edit, layer)
            })
        })
    }

    /// Replaces an If by the layers of one of its bodies, regardless of the condition. `at` is 0 for `then_body` and 1
    /// for `else_body`. Consumers of the outputs use the body's tensors instead, which get the names of the outputs.
    ///
    /// # Errors
    /// [`EditError::NoLayer`] and [`EditError::NoBody`] for a wrong name. [`EditError::Joined`] if the layer is not an
    /// If, or does not feed an input of its body. [`EditError::NamesResult`] if an output would be an input of the
    /// model.
    ///
    /// # Examples
    /// ```
    /// use typelift::Model;
    /// let mut model = Model::from_text("
    ///     x = Parameter : f32[2]
    ///     c = Const(true) : boolean[]
    ///     y = If-8(c, x)
    ///         then_body (in 1 -> 0, out 2 -> 0):
    ///             a = Parameter : f32[2]
    ///             b = Abs(a)
    ///             r = Result(b)
    ///         else_body (in 1 -> 0, out 1 -> 0):
    ///             a = Parameter : f32[2]
    ///             r = Result(a)
    ///     r = Result(y)
    /// ")?;
    /// let y = model.graph().find("y")?;
    /// model.edit(|graph| graph.inline(y, 0))?;
    /// assert_eq!(model.to_string(), "0 x = Parameter : f32[2]\n4 b = Abs(0) : f32[2]\n3 r = Result(4)\n");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn inline(&mut self, layer: LayerId, at: usize) -> Result<(), EditError> {
        self.inline_body(layer, at).map(drop)
    }

    /// Does the same as [`inline`](Self::inline), and returns the new layers.
    pub(crate) fn inline_body(&mut self, layer: LayerId, at: usize) -> Result<Vec<LayerId>, EditError> {
        let owner = self.graph.checked(layer)?;
        let body = owner.bodies().get(at).ok_or(EditError::NoBody { layer, at })?;
        let refused = |reason: &str| EditError::Joined { layer, reason: reason.to_owned() };
        if owner.bodies().len() < 2 {
            return Err(refused("only an If can be replaced by a body; a loop may run its body several times"));
        }
        let (inside, ties) = (body.graph.clone(), body.port_map.to_vec());
        let (mut feeds, mut ends) = (HashMap::default(), Vec::new());
        for tie in ties {
            let id = tie.internal_layer_id;
            match tie.direction {
                Direction::Input => {
                    let port = usize::try_from(tie.external_port_id).unwrap_or(usize::MAX);
                    feeds.extend(self.producer(layer.input(port)).map(|tensor| (id, tensor)));
                }
                Direction::Output => {
                    let port =
                        owner.outputs().iter().position(|port| i64::try_from(port.id()) == Ok(tie.external_port_id));
                    ends.extend(port.zip(inside.producer(id.input(0))).map(|(port, made)| (id, port, made)));
                }
            }
        }
        if inside.layers().any(|it| ops::kind(it) == LayerKind::Parameter && !feeds.contains_key(&it.id())) {
            return Err(refused("a Parameter of its body is not connected"));
        }
        let left_out = feeds.keys().copied().chain(ends.iter().map(|(id, ..)| *id)).collect();
        self.attempt(|edit| {
            let moved = edit.take_over(&inside, &feeds, &left_out, &mut |edit, layer| {
                layer.name = edit.unused_name(layer.name().to_owned()).into();
                edit.drop_taken(layer);
                Ok(())
            })?;
            for (_, port, made) in ends {
                let new = feeds.get(&made.layer).copied().or_else(|| Some(moved.get(&made.layer)?.output(made.port)));
                edit.stand_for(layer.output(port), new.ok_or(EditError::NoOutput(made))?)?;
            }
            let sources: Vec<_> = edit.producers(layer).into_iter().flatten().map(|source| source.layer).collect();
            edit.remove(layer)?;
            edit.remove_unused(sources)?;
            Ok(moved.into_values().collect())
        })
    }

    /// Removes the names of a new layer's tensors that other tensors have.
    fn drop_taken(&mut self, layer: &mut Layer) {
        let mut own = HashSet::default();
        for port in &mut layer.outputs {
            let mut names = port.names();
            names.retain(|name| self.graph.tensor_called(name) == Ok(None) && own.insert(name.clone()));
            port.names = (!names.is_empty()).then(|| join_names(names));
        }
    }

    /// Connects all consumers of a tensor to another one, which gets its names.
    fn stand_for(&mut self, old: Output, new: Output) -> Result<(), EditError> {
        let uses: Vec<_> = self.consumers(old).collect();
        let result = uses.iter().map(|input| input.layer).find(|&user| self.is(user, LayerKind::Result));
        if let Some(result) = result.filter(|_| self.is(new.layer, LayerKind::Parameter)) {
            return Err(EditError::NamesResult { result });
        }
        self.connect_all(uses.into_iter().map(|input| (new, input)))?;
        self.move_names(old, new)
    }

    /// Copies the layers of another graph and the edges between them, except for the layers in `left_out`. A layer in
    /// `feeds` is replaced by the given tensor. `adapt` may change each layer before it is added.
    fn take_over(
        &mut self,
        from: &Graph,
        feeds: &HashMap<LayerId, Output>,
        left_out: &HashSet<LayerId>,
        adapt: &mut dyn FnMut(&mut Self, &mut Layer) -> Result<(), EditError>,
    ) -> Result<collections::HashMap<LayerId, LayerId>, EditError> {
        let mut moved = collections::HashMap::new();
        for layer in from.layers().filter(|layer| !left_out.contains(&layer.id())) {
            let mut copy = layer.clone();
            adapt(self, &mut copy)?;
            moved.insert(layer.id(), self.graph.adopt(copy));
        }
        for (source, target) in from.wires() {
            let source =
                feeds.get(&source.layer).copied().or_else(|| Some(moved.get(&source.layer)?.output(source.port)));
            if let Some((source, target_layer)) = source.zip(moved.get(&target.layer)) {
                self.connect(source, target_layer.input(target.port))?;
            }
        }
        Ok(moved)
    }

    /// Checks that an input of another model accepts the type and shape of a tensor.
    fn check_fed(&self, other: &Model, input: LayerId, tensor: Output) -> Result<(), EditError> {
        let refused = |reason: String| Err(EditError::Other(reason));
        let taken = other.graph().layer(input).filter(|layer| ops::kind(layer) == LayerKind::Parameter);
        let Some((layer, taken)) = taken.and_then(|layer| Some((layer, layer.outputs().first()?))) else {
            return refused(format!("layer {input} of the other model is not an input"));
        };
        let given = self.graph.checked_output(tensor)?;
        if given.element_type() != taken.element_type() || !given.shape().is_compatible(taken.shape()) {
            let name = layer.name();
            let other_type = given.element_type() != taken.element_type() && given.shape().is_compatible(taken.shape());
            let help = match given.names().first().filter(|_| other_type) {
                Some(own) => format!("; convert it first: output {own} : {}", taken.element_type()),
                None => String::new(),
            };
            return refused(format!(
                "the input `{name}` of the other model has type {taken}, but the tensor of layer {} has {given}{help}",
                tensor.layer,
            ));
        }
        Ok(())
    }

    /// Checks that no input, output, tensor or variable has the same name in both graphs.
    fn check_names(&self, other: &Graph, left_out: &HashSet<LayerId>, prefix: &str) -> Result<(), EditError> {
        let own = called(self.graph, &HashSet::default());
        let theirs = called(other, left_out).into_iter().map(|name| format!("{prefix}{name}"));
        let mut names: Vec<_> = theirs.filter(|name| own.contains(name)).collect();
        names.sort_unstable();
        if names.is_empty() { Ok(()) } else { Err(EditError::NamesCollide { names }) }
    }
}

/// Copier of constants' bytes from another model.
struct Bytes<'w> {
    weights: &'w Weights,
    /// New offsets of the constants that were copied, by old offset and length.
    known: HashMap<(u64, u64), u64>,
}

impl Bytes<'_> {
    /// Copies the bytes of the constants in a layer and its bodies, and sets their new offsets.
    fn bring(&mut self, edit: &mut Edit<'_>, layer: &mut Layer) -> Result<(), EditError> {
        for body in &mut layer.bodies {
            let inside: Vec<_> = body.graph.layers().map(Layer::id).collect();
            for id in inside {
                body.graph.layer_mut(id).map_or(Ok(()), |layer| self.bring(edit, layer))?;
            }
        }
        let range = layer
            .byte_count("offset")
            .zip(layer.byte_count("size"))
            .filter(|_| ops::kind(layer) == LayerKind::Constant);
        let Some((offset, length)) = range else { return Ok(()) };
        if self.weights.len().is_none_or(|all| offset.checked_add(length).is_none_or(|end| end > all)) {
            return Err(EditError::NoWeights);
        }
        let place = *self.known.entry((offset, length)).or_insert_with(|| {
            let content = Elsewhere { weights: self.weights.clone(), offset, length };
            edit.weights.add_copied(Arc::new(content))
        });
        if let Some(offset) = layer.attributes.to_mut().iter_mut().find(|attribute| attribute.name() == "offset") {
            offset.value = compact_str::format_compact!("{place}");
        }
        Ok(())
    }
}

/// Range of bytes in the weights of another model.
struct Elsewhere {
    weights: Weights,
    offset: u64,
    length: u64,
}

impl Content for Elsewhere {
    fn len(&self) -> u64 {
        self.length
    }

    fn read(&self, range: Range<u64>, look: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        self.weights.each_piece(self.offset + range.start, range.end - range.start, look)
    }
}

fn with_prefix(layer: &mut Layer, prefix: &str) {
    if prefix.is_empty() {
        return;
    }
    let prefixed =
        |names: &str| join_names(split_names(names).into_iter().map(|name| format!("{prefix}{name}")).collect());
    for port in &mut layer.outputs {
        port.names = port.names.as_deref().map(prefixed);
    }
    layer.output_names = layer.output_names.as_deref().map(|names| Box::new(prefixed(names)));
    if layer.attribute("variable_id").is_some()
        && let Some(variable) = layer.attributes.to_mut().iter_mut().find(|it| it.name() == "variable_id")
    {
        variable.value = compact_str::format_compact!("{prefix}{}", variable.value);
    }
}

fn tensor_names(graph: &Graph, left_out: &HashSet<LayerId>) -> HashSet<String> {
    let layers = graph.unordered().filter(|layer| !left_out.contains(&layer.id()));
    layers.flat_map(|layer| layer.outputs()).flat_map(|port| port.names()).collect()
}

/// The names that users see in a graph: those of tensors, inputs, outputs and variables.
fn called(graph: &Graph, left_out: &HashSet<LayerId>) -> HashSet<String> {
    let mut found = tensor_names(graph, left_out);
    for layer in graph.unordered().filter(|layer| !left_out.contains(&layer.id())) {
        found.extend(layer.output_names().map(split_names).unwrap_or_default());
        found.extend(layer.attribute("variable_id").map(str::to_owned));
        if matches!(ops::kind(layer), LayerKind::Parameter | LayerKind::Result) {
            found.insert(layer.name().to_owned());
        }
    }
    found
}
