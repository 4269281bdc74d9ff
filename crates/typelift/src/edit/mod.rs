//! `Model::edit` and the edits of a graph. An edit leaves the graph valid; one that fails changes nothing.

mod batch;
mod body_ports;
pub(crate) mod changes;
mod element;
mod ends;
pub(crate) mod indices;
mod inline;
pub mod inputs_outputs;
mod join;
pub(crate) mod metadata;
pub(crate) mod numbers;
pub mod precision_marks;
mod refuse;
mod removed;
mod rename;
mod revisions;
mod rewire;
mod state;
mod upgrade;
mod verbs;

use std::ops::Deref;
use std::sync::Arc;

pub use self::batch::Batch;
pub use self::element::{Bf16, Element, F16};
use self::refuse::check_names;
pub use self::removed::{KeptLayer, KeptReason, Removed};
pub use self::revisions::revisions;
pub use self::state::StatePair;
pub(crate) use self::state::variables;

use crate::base::span::Span;
use crate::model::graph::{
    EditError, Graph, Input, InputPort, IrVersion, Joints, Layer, LayerId, Model, OperationName, Output, Place, Text,
    join_names, split_names,
};
use crate::model::weights::{Content, Weights};
use crate::ops::{self, LayerKind};

/// A batch of edits of one graph of a model, with all methods that change it. [`Model::edit`] creates it.
///
/// The edit [dereferences](Deref) to the graph in its current state. An edit that fails changes nothing.
#[derive(Debug)]
pub struct Edit<'m> {
    graph: &'m mut Graph,
    weights: &'m mut Weights,
    version: IrVersion,
    source: &'m Arc<String>,
    joints: Joints<'m>,
}

impl Deref for Edit<'_> {
    type Target = Graph;

    fn deref(&self) -> &Graph {
        self.graph
    }
}

impl Model {
    /// Runs a batch of edits of the model's own graph. [`Edit::body`] edits a body, and [`Edit::everywhere`] all of
    /// them. All edits are made, or none: the model is unchanged if one fails, if layers form a cycle at the end, or
    /// if `edits` panics.
    ///
    /// # Errors
    /// The error of `edits`, and [`EditError::Cycle`].
    ///
    /// # Examples
    /// ```
    /// use typelift::Model;
    /// use typelift::graph::NewLayer;
    /// let mut model = Model::from_text("x = Parameter : f16[?,3]\ny = Relu(x)")?;
    /// let y = model.graph().find("y")?;
    /// model.edit(|graph| {
    ///     graph.replace_in_place(y, NewLayer::new("Elu", "opset1").with_attribute("alpha", 0.5), &[graph.find("x")?.output(0)])
    /// })?;
    /// assert_eq!(model.graph().layer(y).unwrap().ty(), "Elu");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn edit<T>(&mut self, edits: impl FnOnce(&mut Edit<'_>) -> Result<T, EditError>) -> Result<T, EditError> {
        self.edit_or(edits)
    }

    /// Does the same as [`edit`](Self::edit), for any type of error.
    pub(crate) fn edit_or<T, E: From<EditError>>(
        &mut self,
        edits: impl FnOnce(&mut Edit<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        let value = self.as_edit().attempt_or(|edit| {
            let value = edits(edit)?;
            edit.graph.check_batch()?;
            Ok::<_, E>(value)
        })?;
        self.graph.commit();
        Ok(value)
    }

    /// The model's own graph for edits. The caller must end the batch.
    fn as_edit(&mut self) -> Edit<'_> {
        let Self { graph, weights, version, source, .. } = self;
        Edit { graph, weights, version: *version, source, joints: Joints::default() }
    }
}

/// Guard that undoes edits when it is dropped, unless they are accepted: after an error or a panic.
struct Attempt<'e, 'm> {
    edit: &'e mut Edit<'m>,
    /// Length of the graph's journal and of the added bytes before the edits.
    mark: (usize, u64),
    is_kept: bool,
}

impl Drop for Attempt<'_, '_> {
    fn drop(&mut self) {
        if !self.is_kept {
            self.edit.graph.roll_back(self.mark.0);
            self.edit.weights.shorten_tail(self.mark.1);
        }
    }
}

impl Edit<'_> {
    pub(crate) fn version(&self) -> IrVersion {
        self.version
    }

    /// Makes edits that are undone if they fail, while the rest of the batch is kept.
    ///
    /// # Errors
    /// The error of `edits`.
    ///
    /// # Examples
    /// ```
    /// # use typelift::Model;
    /// # let mut model = Model::open(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/model.xml"))?;
    /// use typelift::graph::EditError;
    /// let x = model.graph().find("x")?;
    /// model.edit(|graph| {
    ///     graph.set_name(x, "images")?;
    ///     let refused = graph.attempt(|graph| {
    ///         graph.set_name(x, "other")?;
    ///         graph.remove(x)
    ///     });
    ///     assert!(matches!(refused, Err(EditError::InUse { .. })));
    ///     Ok(())
    /// })?;
    /// assert_eq!(model.graph().layer(x).unwrap().name(), "images");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn attempt<T>(&mut self, edits: impl FnOnce(&mut Edit<'_>) -> Result<T, EditError>) -> Result<T, EditError> {
        self.attempt_or(edits)
    }

    /// Does the same as [`attempt`](Self::attempt), for any type of error.
    pub(crate) fn attempt_or<T, E>(&mut self, edits: impl FnOnce(&mut Edit<'_>) -> Result<T, E>) -> Result<T, E> {
        let mark = (self.graph.batch_len(), self.weights.len_of_tail());
        let mut attempt = Attempt { edit: self, mark, is_kept: false };
        let value = edits(attempt.edit)?;
        attempt.is_kept = true;
        Ok(value)
    }

    /// Makes the same edits in the graphs of all bodies, innermost first, and then in this graph.
    ///
    /// # Errors
    /// The error of `edits`.
    ///
    /// # Examples
    /// ```
    /// # use typelift::Model;
    /// # let mut model = Model::open(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/model.xml"))?;
    /// // Names in capital letters, in bodies too.
    /// model.edit(|graph| {
    ///     graph.everywhere(&mut |graph| {
    ///         let names: Vec<_> = graph.layers().map(|layer| (layer.id(), layer.name().to_uppercase())).collect();
    ///         names.into_iter().try_for_each(|(id, name)| graph.set_name(id, &name))
    ///     })
    /// })?;
    /// assert!(model.find("RELU").is_ok());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    // Bodies nest only a few levels deep.
    pub fn everywhere(
        &mut self,
        edits: &mut dyn FnMut(&mut Edit<'_>) -> Result<(), EditError>,
    ) -> Result<(), EditError> {
        let bodies = |layer: &Layer| (0..layer.bodies().len()).map(|at| (layer.id(), at)).collect::<Vec<_>>();
        for (owner, at) in self.owners().flat_map(bodies).collect::<Vec<_>>() {
            self.body(owner, at)?.everywhere(edits)?;
        }
        edits(self)
    }

    /// Returns the graph of a layer's body for edits. `at` is the position of the body.
    ///
    /// # Errors
    /// [`EditError::NoLayer`], [`EditError::NoBody`].
    ///
    /// # Examples
    /// ```
    /// use typelift::Model;
    /// use typelift::graph::NewLayer;
    /// let mut model = Model::from_xml(r#"<net name="n" version="11"><layers>
    ///     <layer id="0" name="if" type="If" version="opset8"><then_body><layers>
    ///         <layer id="0" name="y" type="Parameter" version="opset1"><data shape="2" element_type="f32"/>
    ///             <output><port id="0" precision="FP32"><dim>2</dim></port></output></layer>
    ///     </layers></then_body><else_body/></layer>
    /// </layers></net>"#)?;
    /// let (place, y) = model.find("if/then_body/y")?;
    /// let &[(layer, at)] = place.steps() else { unreachable!() };
    /// model.edit(|graph| graph.body(layer, at)?.add(NewLayer::new("ReLU", "opset1").named("z"), &[y.output(0)]))?;
    /// assert!(model.find("if/then_body/z").is_ok());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn body(&mut self, layer: LayerId, at: usize) -> Result<Edit<'_>, EditError> {
        self.follow(&[(layer, at)])
    }

    /// Returns the graph at a place, relative to this graph, for edits.
    ///
    /// # Errors
    /// [`EditError::NoLayer`], [`EditError::NoBody`].
    ///
    /// # Examples
    /// ```
    /// # use typelift::Model;
    /// # use typelift::graph::Place;
    /// # let mut model = Model::open(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/model.xml"))?;
    /// let (place, relu) = model.find("relu")?;
    /// model.edit(|graph| graph.at(&place)?.set_name(relu, "activation"))?;
    /// assert_eq!(model.find("activation")?, (Place::default(), relu));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn at(&mut self, place: &Place) -> Result<Edit<'_>, EditError> {
        self.follow(place.steps())
    }

    fn follow(&mut self, steps: &[(LayerId, usize)]) -> Result<Edit<'_>, EditError> {
        let &mut Edit { ref mut graph, ref mut weights, version, source, mut joints } = self;
        let mut graph: &mut Graph = graph;
        for &(layer, at) in steps {
            (graph, joints) = graph.enter(layer, at)?;
        }
        Ok(Edit { graph, weights, version, source, joints })
    }

    /// Connects a tensor to an input, whose former edge is removed. Types and shapes are not checked.
    ///
    /// # Errors
    /// [`EditError::NoLayer`], [`EditError::NoOutput`], [`EditError::NoInput`]; [`EditError::Refused`] for the output of a
    /// Result.
    ///
    /// # Examples
    /// ```
    /// # use typelift::Model;
    /// # let mut model = Model::open(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/model.xml"))?;
    /// let (x, scaled, relu) = (model.graph().tensor("x")?, model.graph().tensor("scaled")?, model.graph().find("relu")?);
    /// model.edit(|graph| graph.connect(x, relu.input(0)))?;
    /// assert_eq!(model.graph().producers(relu), [Some(x)]);
    /// model.edit(|graph| graph.connect_all([(scaled, relu.input(0))]))?;
    /// assert_eq!(model.graph().producers(relu), [Some(scaled)]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn connect(&mut self, from: Output, to: Input) -> Result<(), EditError> {
        self.check_source(from)?;
        self.graph.feed(from, to)
    }

    /// Connects tensors to many inputs, each as [`connect`](Self::connect) does. The time grows linearly with the
    /// edges, even if all are inputs of one layer.
    ///
    /// # Errors
    /// The errors of [`connect`](Self::connect).
    pub fn connect_all(&mut self, wires: impl IntoIterator<Item = (Output, Input)>) -> Result<(), EditError> {
        let wires: Vec<_> = wires.into_iter().collect();
        wires.iter().try_for_each(|&(from, _)| self.check_source(from))?;
        self.graph.feed_all(wires)
    }

    /// Changes the operation or operation set of a layer, and keeps its attributes and inputs. Its outputs are inferred
    /// if the operation accepts them; otherwise [`infer`](crate::infer()) reports the reason.
    ///
    /// # Errors
    /// [`EditError::NoLayer`], and the errors of [`replace_in_place`](Self::replace_in_place) for a Result or Parameter.
    ///
    /// # Examples
    /// ```
    /// # use typelift::Model;
    /// # let mut model = Model::open(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/model.xml"))?;
    /// let relu = model.graph().find("relu")?;
    /// model.edit(|graph| graph.set_operation(relu, "Abs", "opset1"))?;
    /// assert_eq!(model.graph().layer(relu).unwrap().ty(), "Abs");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn set_operation(&mut self, id: LayerId, ty: &str, version: &str) -> Result<(), EditError> {
        self.attempt(|edit| {
            let layer = edit.changed(id)?;
            let was = ops::kind(layer);
            layer.operation_name = OperationName::new(ty, version);
            edit.check_end(id, was)?;
            edit.refresh_outputs(id)
        })
    }

    /// Replaces the metadata of a layer, its `rt_info`, by that of another one.
    ///
    /// # Errors
    /// [`EditError::NoLayer`].
    pub fn copy_metadata(&mut self, from: LayerId, to: LayerId) -> Result<(), EditError> {
        let rt_info = self.graph.checked(from)?.rt_info.clone();
        self.set_metadata(to, rt_info)
    }

    pub(crate) fn set_metadata(&mut self, id: LayerId, rt_info: Option<Text>) -> Result<(), EditError> {
        if self.graph.checked(id)?.rt_info != rt_info {
            self.changed(id)?.rt_info = rt_info;
        }
        Ok(())
    }

    pub(crate) fn copy_tensor_metadata(&mut self, from: Output, to: Output) -> Result<(), EditError> {
        let rt_info = self.graph.checked_output(from)?.rt_info.clone();
        self.set_tensor_metadata(to, rt_info)
    }

    pub(crate) fn set_tensor_metadata(&mut self, tensor: Output, rt_info: Option<Text>) -> Result<(), EditError> {
        if self.graph.checked_output(tensor)?.rt_info != rt_info {
            let port = self.changed(tensor.layer)?.outputs.get_mut(tensor.port).ok_or(EditError::NoOutput(tensor))?;
            port.rt_info = rt_info;
        }
        Ok(())
    }

    /// Removes the `<rt_info>` of the input ports of a layer, with all else between their tags.
    pub(crate) fn clear_input_metadata(&mut self, id: LayerId) -> Result<(), EditError> {
        if self.graph.checked(id)?.inputs.iter().any(|port| port.content.text(self.source).contains("rt_info")) {
            let layer = self.changed(id)?;
            layer.inputs = layer.inputs.iter().map(|port| InputPort { content: Span::default(), ..*port }).collect();
        }
        Ok(())
    }

    /// Removes the attributes of a layer of which `keeps` does not approve.
    pub fn retain_attributes(&mut self, id: LayerId, keeps: impl Fn(&str) -> bool) -> Result<(), EditError> {
        if !self.graph.checked(id)?.attributes.iter().all(|it| keeps(it.name())) {
            self.changed(id)?.attributes.to_mut().retain(|it| keeps(it.name()));
        }
        Ok(())
    }

    pub(crate) fn move_names(&mut self, from: Output, to: Output) -> Result<(), EditError> {
        let known = self.graph.checked_output(to)?.names.clone();
        let moved = self.graph.checked_output(from)?.names.clone();
        if from == to || moved.is_none() {
            return Ok(());
        }
        let all = match known {
            None => moved,
            Some(_) => {
                let names = [known, moved].into_iter().flatten().flat_map(|names| split_names(&names));
                Some(join_names(names.collect()))
            }
        };
        self.graph.name_output(from, None);
        self.graph.name_output(to, all);
        Ok(())
    }

    /// Removes a layer whose outputs are not used.
    ///
    /// # Errors
    /// [`EditError::InUse`] if one of its outputs still feeds a layer.
    ///
    /// # Examples
    /// ```
    /// # use typelift::Model;
    /// # let mut model = Model::open(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/model.xml"))?;
    /// let (result, relu) = (model.find_output("y")?, model.graph().find("relu")?);
    /// model.edit(|graph| graph.remove(result))?;
    /// assert_eq!(model.outputs().count(), 0);
    /// model.edit(|graph| graph.remove_all(&[relu]))?;
    /// assert_eq!(model.graph().len(), 3);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn remove(&mut self, id: LayerId) -> Result<(), EditError> {
        self.remove_all(&[id])
    }

    /// Removes layers that no other layer uses.
    ///
    /// # Errors
    /// [`EditError::NoLayer`]; [`EditError::InUse`] if one of them feeds a layer that is kept; [`EditError::Joined`]
    /// for a Parameter or Result of a body that [its port map](Self::set_port_map) names.
    pub fn remove_all(&mut self, layers: &[LayerId]) -> Result<(), EditError> {
        let is_end = |&id: &LayerId| {
            let kind = self.layer(id).map(ops::kind);
            matches!(kind, Some(LayerKind::Parameter | LayerKind::Result))
        };
        if let Some(&layer) = layers.iter().find(|layer| is_end(layer) && self.joints.name(**layer)) {
            let reason = "the port map of the layer around the body refers to it".to_owned();
            return Err(EditError::Joined { layer, reason });
        }
        self.graph.take_all(layers)
    }

    /// Returns the name if no layer has it; otherwise the name with an unused number appended. The first call of a batch
    /// indexes all names, and the others take constant time.
    ///
    /// # Examples
    /// ```
    /// # use typelift::Model;
    /// # let mut model = Model::open(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/model.xml"))?;
    /// model.edit(|graph| {
    ///     assert_eq!(graph.unused_name("relu".to_owned()), "relu_2");
    ///     Ok(())
    /// })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn unused_name(&mut self, name: String) -> String {
        self.graph.free_name(name)
    }

    /// Renames a layer.
    ///
    /// # Errors
    /// [`EditError::NoLayer`].
    ///
    /// # Examples
    /// ```
    /// # use typelift::Model;
    /// # let mut model = Model::open(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/model.xml"))?;
    /// let (relu, y, result) = (model.graph().find("relu")?, model.graph().tensor("y")?, model.find_output("y")?);
    /// model.edit(|graph| {
    ///     graph.set_name(relu, "activation")?;
    ///     graph.set_names(y, vec!["logits".into(), "scores".into()])?;
    ///     graph.set_output_names(result, vec!["chosen".into()])
    /// })?;
    /// assert_eq!(model.graph().find("activation")?, relu);
    /// assert_eq!(model.graph().tensor("scores")?, y);
    /// assert_eq!(model.find_output("chosen")?, result);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn set_name(&mut self, id: LayerId, name: &str) -> Result<(), EditError> {
        self.changed(id)?.name = name.into();
        Ok(())
    }

    /// Sets the names of a tensor.
    ///
    /// # Errors
    /// [`EditError::NoLayer`], [`EditError::NoOutput`]; [`EditError::EmptyName`].
    pub fn set_names(&mut self, output: Output, names: Vec<String>) -> Result<(), EditError> {
        self.graph.checked_output(output)?;
        check_names(&names)?;
        self.graph.name_output(output, (!names.is_empty()).then(|| join_names(names)));
        Ok(())
    }

    /// Sets the names of a Result's model output.
    ///
    /// # Errors
    /// [`EditError::NoLayer`]; [`EditError::EmptyName`].
    pub fn set_output_names(&mut self, result: LayerId, names: Vec<String>) -> Result<(), EditError> {
        check_names(&names)?;
        self.changed(result)?.output_names = (!names.is_empty()).then(|| join_names(names).into());
        Ok(())
    }

    /// Returns the bytes of the model's constants, including added ones.
    pub fn weights(&self) -> &Weights {
        self.weights
    }

    /// Appends bytes of a constant that are computed when they are read, and returns their offset.
    pub(crate) fn add_made_bytes(&mut self, content: Arc<dyn Content>) -> u64 {
        self.weights.add_made(content)
    }

    fn changed(&mut self, id: LayerId) -> Result<&mut Layer, EditError> {
        self.graph.change(id)
    }
}
