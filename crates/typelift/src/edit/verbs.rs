//! Edits that infer types and shapes of the layers that they add or change.

use std::fmt;
use std::sync::Arc;

use compact_str::format_compact;
use typelift_promote::ElementType;

use super::removed::{KeptLayer, Removed};
use super::{Edit, Element, refuse};
use crate::findings::Message;
use crate::infer::{Probe, Walk};
use crate::model::graph::{
    Attribute, BackEdge, Direction, EditError, Input, Layer, LayerId, NewLayer, Output, PortMapEntry,
};
use crate::model::weights::{self, Content};
use crate::ops::{self, LayerKind, Outputs};

impl Edit<'_> {
    /// Adds a layer with these inputs and returns its new id, one more than any that the graph ever had. Its outputs
    /// are inferred from its inputs and attributes. In the file it is written just before its first consumer, and a
    /// Parameter after the other Parameters. The tensor of a Parameter gets the name of the layer: OpenVINO finds inputs
    /// by it.
    ///
    /// # Errors
    /// [`EditError::NoLayer`] or [`EditError::NoOutput`] if an input does not exist. [`EditError::Refused`] if the
    /// operation refuses its inputs or attributes, lacks an attribute that its specification requires, or uses the
    /// output of a Result. [`EditError::NoRule`] if the operation is unknown and `new` does not declare its outputs.
    /// [`EditError::NameTaken`] if another tensor has the name of a new Parameter.
    ///
    /// # Examples
    /// ```
    /// # use typelift::Model;
    /// # use typelift::graph::NewLayer;
    /// # let mut model = Model::open(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/model.xml"))?;
    /// let relu = model.graph().tensor("y")?;
    /// let best = model.edit(|graph| {
    ///     let axis = graph.constant_of(&[], &[1_i64])?;
    ///     graph.add(NewLayer::new("ReduceMax", "opset1").with_attribute("keep_dims", false), &[relu, axis])
    /// })?;
    /// assert_eq!(model.graph().layer(best).unwrap().outputs()[0].to_string(), "f32[?]");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn add(&mut self, new: NewLayer, inputs: &[Output]) -> Result<LayerId, EditError> {
        self.attempt(|edit| {
            let id = edit.graph.add_layer(&new, inputs.len());
            edit.check_attributes(id, &[])?;
            let is_named = new.name.is_some();
            edit.feed_and_infer(id, new, inputs)?;
            edit.name_input(id, is_named)?;
            Ok(id)
        })
    }

    fn name_input(&mut self, id: LayerId, is_named: bool) -> Result<(), EditError> {
        if !self.is(id, LayerKind::Parameter) {
            return Ok(());
        }
        let name = self.checked(id)?.name().to_owned();
        match self.graph.tensor_called(&name)? {
            Some(other) if is_named => Err(EditError::NameTaken { name, layer: other.layer }),
            Some(_) => Ok(()),
            None if name.is_empty() => Ok(()),
            None => self.set_names(id.output(0), vec![name]),
        }
    }

    /// Replaces a layer in place by another operation with other inputs. It keeps its id, its position in the file, its
    /// metadata, its bodies, the names of its outputs, its consumers, and its name unless `new` has one. Unchanged
    /// parts of its text are kept byte for byte.
    ///
    /// # Errors
    /// The errors of [`add`](Self::add), except for required attributes that it lacked before. [`EditError::Refused`]
    /// if a layer with used or named outputs would become a Result, or a Result another operation. [`EditError::InUse`]
    /// if a used output would be removed. [`EditError::Joined`] if an input would be removed that a body uses, or a
    /// Parameter that [a port map](Self::set_port_map) names. [`EditError::HasBodies`] if `new` has bodies.
    ///
    /// # Examples
    /// ```
    /// # use typelift::Model;
    /// # use typelift::graph::NewLayer;
    /// # let mut model = Model::open(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/model.xml"))?;
    /// let relu = model.graph().find("relu")?;
    /// let scaled = model.graph().tensor("scaled")?;
    /// model.edit(|graph| graph.replace_in_place(relu, NewLayer::new("Elu", "opset1").with_attribute("alpha", 0.5), &[scaled]))?;
    /// let text = typelift::xml::write(&model, Default::default());
    /// assert!(text.contains(r#"<layer id="3" name="relu" type="Elu" version="opset1">"#));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn replace_in_place(&mut self, id: LayerId, new: NewLayer, inputs: &[Output]) -> Result<(), EditError> {
        self.attempt(|edit| {
            let old = edit.graph.checked(id)?;
            if !new.bodies.is_empty() {
                return Err(EditError::HasBodies(id));
            }
            let entries = old.bodies.iter().flat_map(|body| &body.port_map);
            let entered = entries.filter(|entry| entry.direction == Direction::Input);
            if let Some(lost) = entered.map(|entry| entry.external_port_id).find(|&port| port >= inputs.len() as i64) {
                return Err(EditError::Joined { layer: id, reason: format!("a body uses its input {lost}") });
            }
            let layer = edit.changed(id)?;
            let was = ops::kind(layer);
            let is_same = layer.ty() == new.operation_name.ty();
            let missing: Vec<_> = refuse::missing_attributes(layer).filter(|_| is_same).collect();
            layer.operation_name = new.operation_name.clone();
            // Existing attributes keep their order.
            let place = |attribute: &Attribute| {
                layer.attributes.iter().position(|old| old.name == attribute.name).unwrap_or(usize::MAX)
            };
            let mut attributes = new.attributes.clone();
            if !attributes.is_sorted_by_key(place) {
                attributes.to_mut().sort_by_cached_key(place);
            }
            layer.attributes = attributes;
            if let Some(name) = &new.name {
                layer.name = name.clone();
            }
            edit.check_end(id, was)?;
            edit.check_attributes(id, &missing)?;
            edit.graph.resize_inputs(id, inputs.len());
            edit.feed_and_infer(id, new, inputs)
        })
    }

    /// Adds a layer whose first input is `tensor`, followed by `others`, and connects all consumers of the tensor to
    /// the first output of the new layer. If a Result is one of them, the names of the tensor move too, except for the
    /// output of a Parameter: inputs and outputs keep their names.
    ///
    /// # Errors
    /// The errors of [`add`](Self::add).
    ///
    /// # Examples
    /// ```
    /// # use typelift::Model;
    /// # use typelift::graph::NewLayer;
    /// # use typelift::promote::ElementType;
    /// # let mut model = Model::open(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/model.xml"))?;
    /// let y = model.graph().tensor("y")?;
    /// let softmax = NewLayer::new("Softmax", "opset8").with_attribute("axis", -1);
    /// let softmax = model.edit(|graph| graph.insert_after(y, softmax, &[]))?;
    /// assert_eq!(model.graph().tensor("y")?, softmax.output(0));
    /// let result = model.find_output("y")?;
    /// model.edit(|graph| graph.insert_before(result.input(0), NewLayer::convert(ElementType::F16), &[]))?;
    /// assert_eq!(model.graph().output(model.graph().tensor("y")?).unwrap().element_type(), ElementType::F16);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn insert_after(&mut self, tensor: Output, new: NewLayer, others: &[Output]) -> Result<LayerId, EditError> {
        let consumers: Vec<_> = self.consumers(tensor).collect();
        self.insert(tensor, new, others, &consumers)
    }

    /// Adds a layer whose first input is the tensor that feeds `input`, followed by `others`, and connects its first
    /// output to `input`. Names move as with [`insert_after`](Self::insert_after).
    ///
    /// # Errors
    /// The errors of [`add`](Self::add); [`EditError::NoInput`] if the input is not connected.
    pub fn insert_before(&mut self, input: Input, new: NewLayer, others: &[Output]) -> Result<LayerId, EditError> {
        let tensor = self.producer(input).ok_or(EditError::NoInput(input))?;
        self.insert(tensor, new, others, &[input])
    }

    fn insert(
        &mut self,
        tensor: Output,
        new: NewLayer,
        others: &[Output],
        consumers: &[Input],
    ) -> Result<LayerId, EditError> {
        self.attempt(|edit| {
            let id = edit.add(new, &[&[tensor], others].concat())?;
            for &input in consumers {
                edit.connect(id.output(0), input)?;
            }
            let to_result = consumers.iter().any(|input| edit.is(input.layer, LayerKind::Result));
            if to_result && !edit.is(tensor.layer, LayerKind::Parameter) {
                edit.move_names(tensor, id.output(0))?;
            }
            Ok(id)
        })
    }

    /// Connects all consumers of `old` to `new`, and moves the names of `old` to it. The rule is that of OpenVINO's
    /// pass `NopElimination`: a Convert is kept if a Result would otherwise use a Parameter, or a tensor with other
    /// uses.
    ///
    /// # Errors
    /// [`EditError::Incompatible`] if the element types differ or the shapes contradict each other;
    /// [`EditError::NamesResult`] if a Result would lose its name.
    ///
    /// # Examples
    /// ```
    /// # use typelift::Model;
    /// # let mut model = Model::open(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/model.xml"))?;
    /// let (relu, scaled) = (model.graph().tensor("y")?, model.graph().tensor("scaled")?);
    /// model.edit(|graph| {
    ///     graph.replace_uses(relu, scaled)?;
    ///     graph.remove(relu.layer)
    /// })?;
    /// assert_eq!(model.graph().tensor("y")?, scaled);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn replace_uses(&mut self, old: Output, new: Output) -> Result<(), EditError> {
        self.graph.check_compatible(old, new)?;
        if old == new {
            return Ok(());
        }
        let users = self.consumers(old).map(|input| input.layer).filter(|&layer| layer != new.layer);
        let users: Vec<_> = users.collect();
        let result = users.iter().copied().find(|&layer| self.is(layer, LayerKind::Result));
        if let Some(result) = result
            && (self.is(new.layer, LayerKind::Parameter) || self.consumers(new).any(|input| input.layer != old.layer))
        {
            return Err(EditError::NamesResult { result });
        }
        if !users.is_empty() {
            self.check_source(new)?;
            self.graph.move_uses(old, new)?;
        }
        self.move_names(old, new)
    }

    /// Adds a constant with values in little-endian bytes, as OpenVINO stores them, and returns its tensor. The bytes
    /// are appended to the weights; equal bytes are stored once.
    ///
    /// # Errors
    /// [`EditError::WrongLength`]; [`EditError::NoWeights`] if the bytes of the model's constants are missing.
    ///
    /// # Examples
    /// ```
    /// # use typelift::Model;
    /// # use typelift::promote::ElementType;
    /// # let mut model = Model::open(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/model.xml"))?;
    /// let scale = model.graph().find("scale")?;
    /// let (half, mean) = model.edit(|graph| {
    ///     graph.set_constant(scale, ElementType::F32, &[], &0.5_f32.to_le_bytes())?;
    ///     let half = graph.constant(ElementType::F16, &[], &0x3800_u16.to_le_bytes())?;
    ///     Ok((half, graph.constant_of(&[3, 1, 1], &[123.675_f32, 116.28, 103.53])?))
    /// })?;
    /// assert_eq!(model.graph().output(half).unwrap().to_string(), "f16[]");
    /// assert_eq!(model.graph().output(mean).unwrap().to_string(), "f32[3,1,1]");
    /// assert_eq!(model.graph().layer(scale).unwrap().attribute("offset"), Some("64"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn constant(&mut self, ty: ElementType, dims: &[i64], bytes: &[u8]) -> Result<Output, EditError> {
        let constant = self.constant_layer(ty, dims, bytes)?;
        Ok(self.add(constant, &[])?.output(0))
    }

    pub(crate) fn constant_inside(
        &mut self,
        scope: &str,
        ty: ElementType,
        dims: &[i64],
        bytes: &[u8],
    ) -> Result<Output, EditError> {
        let constant = self.constant_layer(ty, dims, bytes)?.inside(scope);
        Ok(self.add(constant, &[])?.output(0))
    }

    /// Adds a constant with these values, and returns its tensor.
    ///
    /// # Errors
    /// The errors of [`constant`](Self::constant).
    pub fn constant_of<T: Element>(&mut self, dims: &[i64], values: &[T]) -> Result<Output, EditError> {
        let mut bytes = Vec::with_capacity(size_of_val(values));
        values.iter().for_each(|value| value.write(&mut bytes));
        self.constant(T::TYPE, dims, &bytes)
    }

    /// Changes the values of a constant. The old bytes stay in the weights until saving, because other constants may
    /// use them.
    ///
    /// # Errors
    /// The errors of [`constant`](Self::constant); [`EditError::NoLayer`].
    pub fn set_constant(&mut self, id: LayerId, ty: ElementType, dims: &[i64], bytes: &[u8]) -> Result<(), EditError> {
        let constant = self.constant_layer(ty, dims, bytes)?;
        self.replace_in_place(id, constant, &[])
    }

    fn constant_layer(&mut self, ty: ElementType, dims: &[i64], bytes: &[u8]) -> Result<NewLayer, EditError> {
        let count = dims.iter().try_fold(1, |count: u64, &dim| count.checked_mul(dim.try_into().ok()?));
        let expected = count.and_then(|count| weights::byte_size(ty, count)?.try_into().ok()).unwrap_or(u64::MAX);
        if expected != bytes.len() as u64 {
            return Err(EditError::WrongLength { expected, found: bytes.len() as u64 });
        }
        if self.weights.len().is_none() && self.unordered().any(|layer| ops::kind(layer) == LayerKind::Constant) {
            return Err(EditError::NoWeights);
        }
        Ok(constant_at(ty, dims, self.weights.add(bytes), expected))
    }

    /// Describes a constant whose bytes are computed when they are read.
    pub(crate) fn made_constant(
        &mut self,
        ty: ElementType,
        dims: &[impl ToString],
        content: impl Content + 'static,
    ) -> NewLayer {
        let size = content.len();
        constant_at(ty, dims, self.add_made_bytes(Arc::new(content)), size)
    }

    /// Sets an attribute of a layer. A new one is added after the others. The outputs of the layer are inferred if its
    /// operation accepts the value; otherwise [`infer`](crate::infer()) reports the reason.
    ///
    /// # Errors
    /// [`EditError::NoLayer`].
    ///
    /// # Examples
    /// ```
    /// # use typelift::Model;
    /// # let mut model = Model::open(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/model.xml"))?;
    /// let x = model.graph().find("x")?;
    /// model.edit(|graph| graph.set_attribute(x, "shape", "8,4"))?;
    /// assert_eq!(model.graph().layer(x).unwrap().outputs()[0].to_string(), "f32[8,4]");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn set_attribute(&mut self, id: LayerId, name: &str, value: impl fmt::Display) -> Result<(), EditError> {
        refuse::check_attribute_name(name)?;
        self.attempt(|edit| {
            let layer = edit.changed(id)?;
            let value = format_compact!("{value}");
            let attributes = layer.attributes.to_mut();
            match attributes.iter_mut().find(|attribute| attribute.name == name) {
                Some(attribute) => attribute.value = value,
                None => attributes.push(Attribute { name: name.into(), value }),
            }
            edit.refresh_outputs(id)
        })
    }

    /// Replaces the inputs, outputs and back edges of a layer's body. Inputs and outputs of the layer are counted from
    /// 0. The outputs of the layer are inferred if its operation accepts the bodies.
    ///
    /// # Errors
    /// [`EditError::NoLayer`], [`EditError::NoBody`]; [`EditError::Joined`] if an entry names an input that does not
    /// exist, or a layer that is not a Parameter or Result of the body.
    ///
    /// # Examples
    /// ```
    /// # use typelift::Model;
    /// use typelift::graph::{EditError, NewLayer, PortMapEntry};
    /// # let mut model = Model::open(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/model.xml"))?;
    /// let y = model.graph().tensor("y")?;
    /// let choice = model.edit(|graph| {
    ///     let condition = graph.constant_of(&[], &[true])?;
    ///     let choice = NewLayer::new("If", "opset8").with_body("then_body").with_body("else_body");
    ///     let choice = graph.add(choice, &[condition, y])?;
    ///     for (at, operation) in ["Abs", "Negative"].into_iter().enumerate() {
    ///         let mut body = graph.body(choice, at)?;
    ///         let given = NewLayer::new("Parameter", "opset1").with_attribute("shape", "?,4");
    ///         let given = body.add(given.with_attribute("element_type", "f32"), &[])?;
    ///         let made = body.add(NewLayer::new(operation, "opset1"), &[given.output(0)])?;
    ///         let result = body.add(NewLayer::new("Result", "opset1"), &[made.output(0)])?;
    ///         let joints = vec![PortMapEntry::input(1, given), PortMapEntry::output(0, result)];
    ///         graph.set_port_map(choice, at, joints, Vec::new())?;
    ///     }
    ///     graph.add(NewLayer::new("Result", "opset1"), &[choice.output(0)])?;
    ///     Ok(choice)
    /// })?;
    /// assert_eq!(model.graph().layer(choice).unwrap().outputs()[0].to_string(), "f32[?,4]");
    /// assert_eq!(typelift::infer(&mut model), []);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn set_port_map(
        &mut self,
        layer: LayerId,
        at: usize,
        mut port_map: Vec<PortMapEntry>,
        back_edges: Vec<BackEdge>,
    ) -> Result<(), EditError> {
        let owner = self.graph.checked(layer)?;
        let body = owner.bodies.get(at).ok_or(EditError::NoBody { layer, at })?;
        let refuse = |reason: String| Err(EditError::Joined { layer, reason });
        let is = |id, kind| body.graph.layer(id).is_some_and(|layer| ops::kind(layer) == kind);
        let inputs = owner.inputs.len() as i64;
        for entry in &mut port_map {
            let (kind, inside) = match entry.direction {
                Direction::Input => (LayerKind::Parameter, entry.internal_layer_id),
                Direction::Output => (LayerKind::Result, entry.internal_layer_id),
            };
            if !is(inside, kind) {
                return refuse(format!("layer {inside} of the body is not a {kind:?}"));
            }
            match entry.direction {
                Direction::Input if entry.external_port_id >= inputs => {
                    return refuse(format!("it has no input {}", entry.external_port_id));
                }
                // Port maps refer to outputs by port label.
                Direction::Output => {
                    if let Ok(port) = usize::try_from(entry.external_port_id) {
                        entry.external_port_id = owner.output_label(port);
                    }
                }
                Direction::Input => {}
            }
        }
        let lost = |edge: &&BackEdge| !is(edge.from, LayerKind::Result) || !is(edge.to, LayerKind::Parameter);
        if let Some(BackEdge { from, to }) = back_edges.iter().find(lost) {
            return refuse(format!(
                "a back edge must lead from a Result to a Parameter of the body, not from {from} to {to}"
            ));
        }
        self.attempt(|edit| {
            edit.graph.join(layer, at, port_map, back_edges);
            edit.refresh_outputs(layer)
        })
    }

    /// Removes the unused ones of these layers, and layers that only they used. Returns the removed layers, and for each
    /// of these layers that stays the reason. Parameters, Results and Assigns are kept: they are the model's own.
    ///
    /// # Errors
    /// [`EditError::NoLayer`], except for layers that were removed together with another one.
    ///
    /// # Examples
    /// ```
    /// # use typelift::Model;
    /// # let mut model = Model::open(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/model.xml"))?;
    /// let (x, relu) = (model.graph().tensor("x")?, model.graph().find("relu")?);
    /// let scaled = model.graph().find("scaled")?;
    /// let done = model.edit(|graph| {
    ///     graph.connect(x, relu.input(0))?;
    ///     graph.remove_unused([scaled, relu])
    /// })?;
    /// assert_eq!(done.layers.len(), 2, "the Multiply and its constant");
    /// assert_eq!(done.kept[0].to_string(), "`relu` is kept: `y/sink_port_0` uses it");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn remove_unused(&mut self, layers: impl IntoIterator<Item = LayerId>) -> Result<Removed, EditError> {
        let asked: Vec<_> = layers.into_iter().collect();
        if let Some(&missing) = asked.iter().find(|&&id| self.layer(id).is_none()) {
            return Err(EditError::NoLayer(missing));
        }
        let mut removed = Removed::default();
        self.sweep(asked.clone(), |_, layer| removed.layers.push(layer.id()))?;
        removed.kept.extend(asked.into_iter().filter_map(|id| KeptLayer::of(self, id)));
        Ok(removed)
    }

    /// Removes those of `layers` whose outputs are not used, and then their producers that become unused. Calls a
    /// function with each before. Parameters, Results and Assigns are kept.
    pub(crate) fn sweep(
        &mut self,
        mut pending: Vec<LayerId>,
        mut going: impl FnMut(&Self, &Layer),
    ) -> Result<(), EditError> {
        while let Some(id) = pending.pop() {
            let Some(layer) = self.layer(id).filter(|layer| !ops::is_own(layer)) else { continue };
            if self.users(id).next().is_some() {
                continue;
            }
            going(self, layer);
            let producers = self.producers(id);
            self.remove(id)?;
            pending.extend(producers.into_iter().flatten().map(|output| output.layer));
        }
        Ok(())
    }

    pub(super) fn is(&self, layer: LayerId, kind: LayerKind) -> bool {
        self.layer(layer).is_some_and(|layer| ops::kind(layer) == kind)
    }

    /// Infers the outputs of a layer again, if its rule accepts its inputs.
    pub(super) fn refresh_outputs(&mut self, id: LayerId) -> Result<(), EditError> {
        match self.outputs_of(id) {
            Some(Ok(outputs)) => self.graph.set_outputs(id, outputs),
            _ => Ok(()),
        }
    }

    /// Infers the outputs of a layer; `None` if its operation has no rule, or if it has bodies without outputs.
    fn outputs_of(&mut self, id: LayerId) -> Option<Result<Outputs, Message>> {
        let Self { graph, weights, source, version, .. } = self;
        let layer = graph.layer_mut(id)?;
        let operation = layer.operation()?;
        if layer.bodies.is_empty() {
            let outputs = Probe::new(weights).ask_as_it_is(graph, id, operation);
            return Some(outputs.map_err(|fault| fault.message));
        }
        if layer.bodies.iter().any(|body| body.port_map.is_empty()) {
            return None;
        }
        let mut bodies = std::mem::take(&mut layer.bodies);
        let outputs = Walk::over(source, weights, *version).outputs_with_bodies(graph, id, operation, &mut bodies);
        graph.layer_mut(id)?.bodies = bodies;
        Some(outputs)
    }

    fn feed_and_infer(&mut self, id: LayerId, new: NewLayer, inputs: &[Output]) -> Result<(), EditError> {
        self.connect_all(inputs.iter().enumerate().map(|(port, &source)| (source, id.input(port))))?;
        let outputs = match self.outputs_of(id) {
            Some(Ok(outputs)) => outputs,
            Some(Err(reason)) => {
                return Err(refuse::refused(self.graph.checked(id)?, reason.to_string()));
            }
            None if new.outputs.is_empty() && !new.bodies.is_empty() => return Ok(()),
            None if new.outputs.is_empty() => return Err(EditError::NoRule(new.operation_name.to_string())),
            None => new.outputs.into_iter().collect(),
        };
        self.graph.set_outputs(id, outputs)
    }
}

fn constant_at(ty: ElementType, dims: &[impl ToString], offset: u64, size: u64) -> NewLayer {
    let shape = dims.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    NewLayer::new("Const", "opset1")
        .with_attribute("element_type", ty.name())
        .with_attribute("shape", shape)
        .with_attribute("offset", offset)
        .with_attribute("size", size)
}
