//! Inputs and outputs of a model: its Parameters and Results, found by name and changed in type and shape.

mod hard_coded;
mod layout;

pub use layout::LayoutChange;

use std::collections::{HashMap, HashSet, VecDeque};
use std::fmt;

use serde::Serialize;
use thiserror::Error;
use typelift_promote::{ElementType, fidelity};

use crate::base::names::{is_glob, matches_glob};
use crate::edit::Edit;
use crate::edit::changes::{Action, Change, Changes};
use crate::edit::indices::Narrowing;
use crate::findings::{Code, Diagnostic, Fix, FixAction, LayerRef, message};
use crate::model::graph::{
    EditError, Graph, Input, IrVersion, Layer, LayerId, Model, NewLayer, OutputPort, Place, split_names,
};
use crate::model::shape::{Shape, TensorType};
use crate::ops::{self, LayerKind};

/// Choice between a model's inputs and its outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The inputs: Parameters.
    Input,
    /// The outputs: Results.
    Output,
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Input => "input",
            Self::Output => "output",
        })
    }
}

/// An input or output whose shape changed.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Reshaped {
    /// The Parameter or the Result.
    pub layer: LayerRef,
    /// The former shape.
    pub from: Shape,
    /// The new shape.
    pub to: Shape,
}

/// Reason why an input or output was not changed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum InterfaceError {
    /// No input or output has this name.
    #[error("the model has no {end} `{name}`{}", list(*.end, .known))]
    Unknown {
        /// The inputs or the outputs, whichever were searched.
        end: End,
        /// The name that was asked for.
        name: String,
        /// The names of every input or output: of its layer, then of its tensor.
        known: Vec<String>,
    },
    /// Several inputs or outputs have this name.
    #[error("the model has several {end}s `{name}`: {}", .layers.iter().map(|id| format!("`id:{id}`")).collect::<Vec<_>>().join(", "))]
    Ambiguous {
        /// The inputs or the outputs, whichever were searched.
        end: End,
        /// The name that was asked for.
        name: String,
        /// The layers that have it.
        layers: Vec<LayerId>,
    },
    /// OpenVINO has no conversion between the two types.
    #[error("the {end} `{name}` is {from}, which cannot be converted to or from {to}")]
    NotConvertible {
        /// The side.
        end: End,
        /// The name that was asked for.
        name: String,
        /// The current element type.
        from: ElementType,
        /// The requested element type.
        to: ElementType,
    },
    /// The layout cannot be changed so.
    #[error("the layout of {end} `{name}`: {reason}")]
    Layout {
        /// The side.
        end: End,
        /// The name that was asked for.
        name: String,
        /// The reason, as a clause.
        reason: String,
    },
    /// No constant has this name.
    #[error("the model has no constant `{0}`")]
    UnknownConstant(String),
    /// The values of a constant are missing in the weights, or are not numbers.
    #[error("the values of constant `{name}` cannot be read as {from} and written as {to}")]
    Unreadable {
        /// The name that was asked for.
        name: String,
        /// The current element type.
        from: ElementType,
        /// The requested element type.
        to: ElementType,
    },
    /// Values of the constant would change in the new type.
    #[error("constant `{name}` cannot be converted from {from} to {to} without loss: {values}")]
    LosesValues {
        /// The name that was asked for.
        name: String,
        /// The current element type.
        from: ElementType,
        /// The requested element type.
        to: ElementType,
        /// The changes of its values: `1 of 3 values changes: 1 overflows`.
        values: String,
    },
    /// The edit was refused.
    #[error(transparent)]
    Edit(#[from] EditError),
}

fn list(end: End, known: &[String]) -> String {
    if known.is_empty() { format!("; it has no {end}s") } else { format!("; it has {}", known.join(", ")) }
}

impl Model {
    /// Returns the Parameters, in the order of the model's inputs.
    pub fn inputs(&self) -> impl Iterator<Item = &Layer> {
        self.ends(End::Input)
    }

    /// Returns the Results, in the order of the model's outputs.
    pub fn outputs(&self) -> impl Iterator<Item = &Layer> {
        self.ends(End::Output)
    }

    /// Returns the input whose layer or tensor has this name; layers come first.
    ///
    /// # Errors
    /// [`InterfaceError`] if there is none, or more than one.
    pub fn find_input(&self, name: &str) -> Result<LayerId, InterfaceError> {
        self.find_end(End::Input, name)
    }

    /// Returns the output whose Result or tensor has this name. Results come first, and the layer that produces the
    /// tensor last.
    ///
    /// # Errors
    /// [`InterfaceError`] if there is none, or more than one.
    pub fn find_output(&self, name: &str) -> Result<LayerId, InterfaceError> {
        self.find_end(End::Output, name)
    }

    /// Returns the names of the inputs or outputs that a pattern matches. An exact match is preferred; otherwise `*`
    /// matches any text and `?` any character. Each result is accepted by [`find_input`](Self::find_input) or
    /// [`find_output`](Self::find_output).
    ///
    /// # Errors
    /// [`InterfaceError`] if none matches, or if a name without `*` and `?` is ambiguous.
    ///
    /// # Examples
    /// ```
    /// use typelift::Model;
    /// use typelift::edit::inputs_outputs::End;
    /// let model = Model::from_text("
    ///     cache.0 = Parameter : f32[2]
    ///     cache.1 = Parameter : f32[2]
    ///     x = Parameter : f32[2]
    /// ")?;
    /// assert_eq!(model.ends_named(End::Input, "cache.*")?, ["cache.0", "cache.1"]);
    /// assert!(model.ends_named(End::Input, "past.*").is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn ends_named(&self, end: End, name: &str) -> Result<Vec<String>, InterfaceError> {
        Ok(self.ends_matching(end, name)?.into_iter().map(|(_, name)| name).collect())
    }

    pub(crate) fn ends_matching(&self, end: End, name: &str) -> Result<Vec<(LayerId, String)>, InterfaceError> {
        let error = match self.find_end(end, name) {
            Err(error @ InterfaceError::Unknown { .. }) if is_glob(name) => error,
            found => return found.map(|id| vec![(id, name.to_owned())]),
        };
        let found = self.ends(end).filter_map(|layer| {
            let mut names = std::iter::once(layer.name().to_owned()).chain(self.interface_names(layer));
            names.find(|known| matches_glob(name, known)).map(|known| (layer.id(), known))
        });
        let found: Vec<_> = found.collect();
        if found.is_empty() { Err(error) } else { Ok(found) }
    }

    /// The inputs or outputs by the names that find them, without names that several have.
    pub(crate) fn ends_by_name(&self, end: End) -> HashMap<String, LayerId> {
        let mut found: HashMap<String, Option<LayerId>> = HashMap::default();
        let of_layers = self.ends(end).map(|layer| (layer.id(), layer.name().to_owned()));
        let of_tensors = self.ends(end).flat_map(|layer| {
            let names = self.interface_names(layer);
            names.into_iter().map(|name| (layer.id(), name)).collect::<Vec<_>>()
        });
        for level in [of_layers.collect::<Vec<_>>(), of_tensors.collect()] {
            let mut new: HashMap<String, Option<LayerId>> = HashMap::default();
            for (id, name) in level.into_iter().filter(|(_, name)| !found.contains_key(name)) {
                let only = new.entry(name).or_insert(Some(id));
                *only = only.filter(|known| *known == id);
            }
            found.extend(new);
        }
        found.into_iter().filter_map(|(name, id)| Some((name, id?))).collect()
    }

    fn ends(&self, end: End) -> impl Iterator<Item = &Layer> {
        let wanted = if end == End::Input { LayerKind::Parameter } else { LayerKind::Result };
        self.graph.layers().filter(move |layer| ops::kind(layer) == wanted)
    }

    /// The tensor of an input or output: that of a Parameter, or the one that feeds a Result.
    pub(crate) fn end_tensor<'a>(&'a self, layer: &'a Layer) -> Option<&'a OutputPort> {
        match ops::kind(layer) {
            LayerKind::Result => self.graph.output(self.graph.producer(layer.id().input(0))?),
            _ => layer.outputs().first(),
        }
    }

    /// The inputs or outputs in order, each with the name by which users know it.
    pub(crate) fn ends_with_names(&self, end: End) -> Vec<(LayerId, String)> {
        self.ends(end).map(|layer| (layer.id(), self.end_name(layer))).collect()
    }

    fn find_end(&self, end: End, name: &str) -> Result<LayerId, InterfaceError> {
        let ends: Vec<&Layer> = self.ends(end).collect();
        let having = |names: &dyn Fn(&Layer) -> Vec<String>| -> Vec<LayerId> {
            ends.iter().filter(|layer| names(layer).iter().any(|known| known == name)).map(|layer| layer.id()).collect()
        };
        let of_layer = |layer: &Layer| vec![layer.name().to_owned()];
        let of_tensor = |layer: &Layer| self.interface_names(layer);
        let of_producer = |layer: &Layer| {
            let source = self.graph.producer(layer.id().input(0)).filter(|source| source.port == 0);
            source.and_then(|source| self.graph.layer(source.layer)).map(of_layer).unwrap_or_default()
        };
        let mut found = having(&of_layer);
        for names in [&of_tensor as &dyn Fn(&Layer) -> _, &of_producer] {
            if found.is_empty() {
                found = having(names);
            }
        }
        if let (true, Ok(tensor)) = (found.is_empty(), self.graph.tensor(name)) {
            let meant = ends.iter().filter(|layer| match end {
                End::Input => tensor.layer == layer.id(),
                End::Output => self.graph.producer(layer.id().input(0)) == Some(tensor),
            });
            found = meant.map(|layer| layer.id()).collect();
        }
        match found[..] {
            [id] => Ok(id),
            [] => Err(InterfaceError::Unknown {
                end,
                name: name.to_owned(),
                known: ends.into_iter().map(|layer| self.describe(layer)).collect(),
            }),
            _ => Err(InterfaceError::Ambiguous { end, name: name.to_owned(), layers: found }),
        }
    }

    /// Returns the names of a Parameter's output or a Result's input, including those that the Result gives it.
    pub fn interface_names(&self, layer: &Layer) -> Vec<String> {
        let mut names = self.end_tensor(layer).map(OutputPort::names).unwrap_or_default();
        names.extend(layer.output_names().map(split_names).unwrap_or_default());
        names
    }

    /// Returns the name by which users know an input or output: the first name of its tensor that has letters.
    /// The name of the layer comes before other names if the tensor has it too, or has only numbers.
    ///
    /// # Examples
    /// ```
    /// use typelift::Model;
    /// let model = Model::from_text("x = Parameter : f32[2]\ny = Abs(x) : f32[2] \"scores\"\nResult_7 = Result(y)")?;
    /// let output = model.outputs().next().unwrap();
    /// assert_eq!((output.name(), model.end_name(output).as_str()), ("Result_7", "scores"));
    /// let model = Model::from_text("pixels = Parameter : f32[2] \"44\"")?;
    /// assert_eq!(model.end_name(model.inputs().next().unwrap()), "pixels");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn end_name(&self, layer: &Layer) -> String {
        let names = layer.output_names().map(split_names).unwrap_or_else(|| self.interface_names(layer));
        let mut words = names.into_iter().filter(|name| name.contains(char::is_alphabetic)).peekable();
        let first = words.peek().cloned();
        words.find(|name| name == layer.name()).or(first).unwrap_or_else(|| layer.name().to_owned())
    }

    /// Formats `` `x` `` with the names of its tensor in parentheses, if they differ.
    fn describe(&self, layer: &Layer) -> String {
        let mut names = self.interface_names(layer);
        names.retain(|name| name != layer.name());
        names.dedup();
        let names: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
        if names.is_empty() {
            format!("`{}`", layer.name())
        } else {
            format!("`{}` ({})", layer.name(), names.join(", "))
        }
    }

    /// Changes the element type, the shape, or both of an input, found by the name of its layer or tensor.
    ///
    /// Afterwards [`infer`](crate::infer()) propagates the change, and [`trace_changes`] shows how each new error is
    /// reached from the input.
    ///
    /// # Errors
    /// [`InterfaceError`] if there is no such input, or more than one. Nothing is changed then.
    ///
    /// # Examples
    /// ```
    /// let mut model = typelift::Model::from_text("x = Parameter : f16[?,3]")?;
    /// let x = model.set_input("x", None, Some(&"[1..8,3]".parse().unwrap())).unwrap();
    /// assert!(typelift::infer(&mut model).is_empty());
    /// assert_eq!(model.graph().layer(x).unwrap().outputs()[0].shape().to_string(), "[1..8,3]");
    /// assert!(typelift::xml::write(&model, Default::default()).contains(r#"shape="1..8,3""#));
    /// # Ok::<(), typelift::rewrite::notation::NotationError>(())
    /// ```
    pub fn set_input(
        &mut self,
        name: &str,
        element_type: Option<ElementType>,
        shape: Option<&Shape>,
    ) -> Result<LayerId, InterfaceError> {
        let id = self.find_input(name)?;
        self.set_input_at(id, element_type, shape)
    }

    fn set_input_at(
        &mut self,
        id: LayerId,
        element_type: Option<ElementType>,
        shape: Option<&Shape>,
    ) -> Result<LayerId, InterfaceError> {
        self.edit(|graph| {
            if let Some(shape) = shape {
                graph.set_attribute(id, "shape", shape.to_attribute())?;
            }
            if let Some(element_type) = element_type {
                graph.set_attribute(id, "element_type", element_type.name())?;
            }
            Ok(id)
        })
        .map_err(InterfaceError::Edit)
    }

    /// Changes element types and shapes of inputs, as [`set_input`](Self::set_input) does, and returns the inputs. A
    /// name may be a pattern for several inputs, as in [`ends_named`](Self::ends_named).
    ///
    /// # Errors
    /// [`InterfaceError`] at the first input that cannot be changed. Inputs before it are changed.
    pub fn set_inputs(
        &mut self,
        types: &[(String, ElementType)],
        shapes: &[(String, Shape)],
    ) -> Result<Vec<LayerId>, InterfaceError> {
        let types = types.iter().map(|(name, element_type)| (name, Some(*element_type), None));
        let shapes = shapes.iter().map(|(name, shape)| (name, None, Some(shape)));
        let (mut changed, mut seen) = (Vec::new(), HashSet::new());
        for (name, element_type, shape) in types.chain(shapes) {
            for (id, _) in self.ends_matching(End::Input, name)? {
                self.set_input_at(id, element_type, shape)?;
                changed.extend(seen.insert(id).then_some(id));
            }
        }
        Ok(changed)
    }

    /// Changes the element type of a model input and keeps the computation. The Parameter gets the type, and a Convert
    /// after it restores the former type; an index that all users accept in the new type needs none. The Parameter keeps its name and its tensor's names, as with OpenVINO's
    /// `PrePostProcessor`. Returns the changes; nothing if the input already has the type.
    ///
    /// # Errors
    /// [`InterfaceError`] if there is no such input, or more than one, or if the types cannot be converted. Nothing is
    /// changed then.
    ///
    /// # Examples
    /// ```
    /// # use typelift::promote::ElementType;
    /// let mut model = typelift::Model::from_text("x = Parameter : f32[2]\ny = Result(x)")?;
    /// model.convert_input("x", ElementType::U8).unwrap();
    /// model.convert_output("y", ElementType::F16).unwrap();
    /// assert!(typelift::infer(&mut model).is_empty());
    /// let types: Vec<_> = model.graph().layers().flat_map(|layer| layer.outputs()).map(|port| port.element_type()).collect();
    /// assert_eq!(types, [ElementType::U8, ElementType::F32, ElementType::F16]);
    /// # Ok::<(), typelift::rewrite::notation::NotationError>(())
    /// ```
    pub fn convert_input(&mut self, name: &str, element_type: ElementType) -> Result<Vec<Change>, InterfaceError> {
        let id = self.find_input(name)?;
        self.convert_inputs(&[(id, name.to_owned())], element_type)
    }

    /// Does the same as [`convert_input`](Self::convert_input) for inputs that were found by these names.
    pub(crate) fn convert_inputs(
        &mut self,
        inputs: &[(LayerId, String)],
        to: ElementType,
    ) -> Result<Vec<Change>, InterfaceError> {
        let mut new = Vec::new();
        for (id, name) in inputs {
            let Some(layer) = self.graph.layer(*id) else { continue };
            let written = layer.named_type("element_type");
            let from = check_convertible(End::Input, name, written, to)?;
            let is_accepted = to.is_integer() && self.is_only_index(*id);
            new.extend((from != to).then_some((*id, [from, to], is_accepted)));
        }
        Ok(self.retype_inputs(&new)?)
    }

    /// True if all users of an input take it as indices, of any integer type.
    fn is_only_index(&self, id: LayerId) -> bool {
        let mut users = self.graph.consumers(id.output(0)).peekable();
        users.peek().is_some()
            && users.all(|input| {
                let name = self.graph.layer(input.layer).and_then(|layer| layer.operation()).map(|row| row.name);
                matches!((name, input.port), (Some("Gather" | "GatherElements" | "GatherND"), 1) | (Some("ShapeOf"), 0))
            })
    }

    /// Gives inputs other element types, each from the first to the second one. A Convert after the Parameter restores the
    /// first, unless all users accept the second.
    pub(crate) fn retype_inputs(
        &mut self,
        inputs: &[(LayerId, [ElementType; 2], bool)],
    ) -> Result<Vec<Change>, EditError> {
        let converts = self.edit(|graph| {
            let retyped = inputs.iter().map(|&(id, [from, to], is_accepted)| {
                let back = (!is_accepted).then(|| graph.convert_back(id, from)).transpose()?;
                graph.set_attribute(id, "element_type", to.name())?;
                Ok(back)
            });
            retyped.collect::<Result<Vec<_>, EditError>>()
        })?;
        let mut changes = Changes::default();
        for (&(id, [from, to], _), convert) in inputs.iter().zip(converts) {
            let end = if convert.is_none() { ", which all its users accept" } else { "" };
            if let Some(layer) = self.graph.layer(id) {
                changes.add(
                    Action::Retyped,
                    layer,
                    [from, to],
                    format!("the type of the input is changed to {to}{end}"),
                );
            }
            if let Some(layer) = convert.and_then(|convert| self.graph.layer(convert)) {
                let reason = format!("the layers after the input still compute in {from}");
                changes.add(Action::Inserted, layer, [to, from], reason);
            }
        }
        Ok(self.with_sources(changes))
    }

    /// Changes the element type of a model output and keeps the computation, by a Convert before the Result. The Result
    /// keeps its name and gets the tensor names, as with OpenVINO's `PrePostProcessor`. Types must be inferred. Returns
    /// the changes; nothing if the output already has the type.
    ///
    /// # Errors
    /// [`InterfaceError`] if there is no such output, or more than one, or if the types cannot be converted. Nothing is
    /// changed then.
    pub fn convert_output(&mut self, name: &str, element_type: ElementType) -> Result<Vec<Change>, InterfaceError> {
        let id = self.find_output(name)?;
        self.convert_outputs(&[(id, name.to_owned())], element_type)
    }

    /// Does the same as [`convert_output`](Self::convert_output) for outputs that were found by these names.
    pub(crate) fn convert_outputs(
        &mut self,
        outputs: &[(LayerId, String)],
        to: ElementType,
    ) -> Result<Vec<Change>, InterfaceError> {
        let mut new = Vec::new();
        for (id, name) in outputs {
            let source = self.graph.producer(id.input(0));
            let Some(port) = source.and_then(|source| self.graph.output(source)) else { continue };
            let from = check_convertible(End::Output, name, Some(port.element_type), to)?;
            new.extend((from != to).then_some((*id, [from, to])));
        }
        Ok(self.retype_outputs(&new)?)
    }

    /// Converts the inputs of Results to other element types, each from the first to the second one.
    pub(crate) fn retype_outputs(&mut self, outputs: &[(LayerId, [ElementType; 2])]) -> Result<Vec<Change>, EditError> {
        let is_old = self.version == IrVersion::V10;
        let converts = self.edit(|graph| {
            let converts = outputs.iter().map(|&(id, [_, to])| graph.convert_before(id.input(0), to, is_old));
            converts.collect::<Result<Vec<_>, _>>()
        })?;
        let mut changes = Changes::default();
        for (&(id, [from, to]), convert) in outputs.iter().zip(converts) {
            for (action, id) in [(Action::Inserted, convert), (Action::Retyped, id)] {
                if let Some(layer) = self.graph.layer(id) {
                    changes.add(action, layer, [from, to], format!("the type of the output is changed to {to}"));
                }
            }
        }
        Ok(self.with_sources(changes))
    }

    fn with_sources(&self, mut changes: Changes) -> Vec<Change> {
        for change in changes.list.iter_mut().filter(|change| change.action == Action::Inserted) {
            let source = self.graph.producer(change.layer.id.input(0));
            change.come_from(source.and_then(|source| self.graph.layer(source.layer)));
        }
        changes.list
    }

    /// True if an input is used only as index, and the narrower type can hold all indices.
    fn is_safe_index(&self, input: &Layer, types: [ElementType; 2]) -> bool {
        let is_input = ops::kind(input) == LayerKind::Parameter;
        is_input && matches!(self.narrowing(input.id(), types), Some(Narrowing::Safe(_)))
    }

    pub(crate) fn interface_types(&self) -> Vec<(LayerId, TensorType)> {
        let kinds = self.graph.layers().map(|layer| (ops::kind(layer), layer));
        let ends = kinds.filter(|(kind, _)| [LayerKind::Parameter, LayerKind::Result].contains(kind));
        let (inputs, outputs): (Vec<_>, Vec<_>) = ends.partition(|(kind, _)| *kind == LayerKind::Parameter);
        let ends = inputs.into_iter().chain(outputs);
        ends.filter_map(|(_, layer)| Some((layer.id(), self.end_tensor(layer)?.tensor_type()))).collect()
    }

    pub(crate) fn reshaped_since(&self, before: &[(LayerId, TensorType)]) -> Vec<Reshaped> {
        let before: HashMap<_, _> = before.iter().map(|(id, tensor)| (*id, &tensor.shape)).collect();
        let found = self.interface_types().into_iter().filter_map(|(id, tensor)| {
            let from = before.get(&id).filter(|&&from| *from != tensor.shape)?;
            let layer = LayerRef::of(&Place::default(), self.graph.layer(id)?);
            Some(Reshaped { layer, from: (*from).clone(), to: tensor.shape })
        });
        found.collect()
    }

    pub(crate) fn retyped_since(&self, before: &[(LayerId, TensorType)]) -> Vec<Change> {
        let before: HashMap<_, _> = before.iter().map(|(id, tensor)| (*id, tensor.element_type)).collect();
        let mut changes = Changes::default();
        for (id, TensorType { element_type: to, .. }) in self.interface_types() {
            let from = before.get(&id).copied().filter(|&from| ![to, ElementType::Dynamic].contains(&from));
            if let Some((from, layer)) = from.zip(self.graph.layer(id)) {
                let end = if ops::kind(layer) == LayerKind::Parameter { "input" } else { "output" };
                changes.add(
                    Action::Retyped,
                    layer,
                    [from, to],
                    format!("the {end} now has type {to}; the file declares {from}"),
                );
            }
        }
        changes.list
    }

    /// Returns warnings about values that may overflow because a layer now has an integer type. Examples are a product
    /// in integers instead of floats, and an input with a narrower integer type. Types must be inferred.
    pub(crate) fn narrowed(&self) -> Vec<Diagnostic> {
        let mut computed = Vec::new();
        let mut narrower = Vec::new();
        for (place, graph) in self.walk() {
            for layer in graph.layers() {
                let Some(port) = layer.outputs().first() else { continue };
                let (Some(was), is) = (port.declared, port.element_type) else { continue };
                let wraps = layer.operation().is_some_and(|row| row.can_wrap);
                if is.is_integer() && wraps && (was.is_float() || was.is_integer() && is.bits() < was.bits()) {
                    computed.push((layer, place.clone(), was, is));
                } else if was.is_integer()
                    && is.is_integer()
                    && is.bits() < was.bits()
                    && layer.inputs().is_empty()
                    && !(place.is_model() && self.is_safe_index(layer, [was, is]))
                {
                    narrower.push((layer, place.clone(), was, is));
                }
            }
        }
        let warn = |found: &[(&Layer, Place, ElementType, ElementType)], what: &'static str| {
            let (layer, place, was, is) = found.first()?;
            let span = crate::text::xml::locate(&self.source, layer.span().unwrap_or_default(), "layer", "name");
            let message = message!("{} `{}` {} {}; the file declares {}"; layer.ty(), layer.name(), what, is, was);
            let warning = Diagnostic::new(Code::LossyConversion, message).at(span, "values may overflow");
            let layer = LayerRef::of(place, layer);
            let others = found[1..].iter().take(SHOWN_AT_ENDS).map(|(layer, _, was, is)| {
                message!("also {} `{}`: {}; the file declares {}"; layer.ty(), layer.name(), is, was)
            });
            let mut warning = Diagnostic { layer: Some(layer), notes: others.collect(), ..warning };
            if found.len() > SHOWN_AT_ENDS + 1 {
                warning.notes.push(message!("and {} more"; found.len() - SHOWN_AT_ENDS - 1));
            }
            Some(warning.help(Fix::untried(FixAction::ConvertInput)))
        };
        [warn(&narrower, "now has the narrower type"), warn(&computed, "is now computed in")]
            .into_iter()
            .flatten()
            .collect()
    }
}

impl Edit<'_> {
    fn convert_back(&mut self, id: LayerId, to: ElementType) -> Result<LayerId, EditError> {
        let name = format!("{}/to_{to}", self.layer(id).ok_or(EditError::NoLayer(id))?.name());
        let name = self.unused_name(name);
        self.insert_after(id.output(0), NewLayer::convert(to).named(&name), &[])
    }

    fn convert_before(&mut self, input: Input, to: ElementType, is_old: bool) -> Result<LayerId, EditError> {
        let source = self.producer(input).ok_or(EditError::NoInput(input))?;
        let producer = self.layer(source.layer).ok_or(EditError::NoLayer(source.layer))?;
        let is_renamed = is_old && ops::kind(producer) != LayerKind::Parameter;
        let name = format!("{}/to_{to}", producer.name());
        let name = self.unused_name(name);
        let convert = self.insert_before(input, NewLayer::convert(to).named(&name), &[])?;
        if is_renamed {
            self.take_version_10_name(source, convert)?;
        }
        Ok(convert)
    }
}

/// Checks that an input or output can be converted to a type. Returns its current type.
///
/// # Errors
/// A type that is unknown, or types that cannot be converted into each other.
fn check_convertible(
    end: End,
    name: &str,
    from: Option<ElementType>,
    to: ElementType,
) -> Result<ElementType, InterfaceError> {
    let from = from.unwrap_or(ElementType::Dynamic);
    let refused = || InterfaceError::NotConvertible { end, name: name.to_owned(), from, to };
    if from == to { Ok(from) } else { fidelity(from, to).map(|_| from).ok_or_else(refused) }
}

/// Number of layers at each end of a long path that a message lists.
const SHOWN_AT_ENDS: usize = 4;

/// Adds to each error the shortest path from one of the `changed` layers. It shows how a changed input caused the
/// error.
pub fn trace_changes(graph: &Graph, changed: &[LayerId], diagnostics: &mut [Diagnostic]) {
    let name = |id| graph.layer(id).map_or_else(String::new, |layer| format!("{id} `{}`", layer.name()));
    for &start in changed.iter().filter(|&&id| graph.layer(id).is_some()) {
        let mut before = HashMap::new();
        let mut pending = VecDeque::from([start]);
        while let Some(id) = pending.pop_front() {
            for user in graph.users(id) {
                before.entry(user).or_insert_with(|| {
                    pending.push_back(user);
                    id
                });
            }
        }
        for diagnostic in diagnostics.iter_mut().filter(|diagnostic| diagnostic.is_error()) {
            let Some(layer) = &diagnostic.layer else { continue };
            // For a layer in a body, the path ends at the outermost layer around it.
            let target = layer.place.steps().first().map_or(layer.id, |&(outer, _)| outer);
            let mut chain = vec![target];
            while let Some(&id) =
                chain.last().and_then(|last| before.get(last)).filter(|_| chain.last() != Some(&start))
            {
                chain.push(id);
            }
            if chain.last() != Some(&start) || chain.len() == 1 {
                continue;
            }
            let mut chain: Vec<_> = chain.into_iter().rev().map(name).collect();
            if chain.len() > 2 * SHOWN_AT_ENDS + 1 {
                let hidden = chain.len() - 2 * SHOWN_AT_ENDS;
                chain.splice(SHOWN_AT_ENDS..chain.len() - SHOWN_AT_ENDS, [format!("({hidden} layers)")]);
            }
            diagnostic.notes.push(message!("the changed input reaches it through {}"; chain.join(" -> ")));
        }
    }
}
