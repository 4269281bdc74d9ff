//! The verbs that change a graph. Each leaves it valid or changes nothing.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use petgraph::Direction::Outgoing;
use petgraph::stable_graph::NodeIndex;
use petgraph::visit::EdgeRef;
use smallvec::SmallVec;
use thiserror::Error;
use typelift_promote::ElementType;

use super::journal::End;
use super::kind::LayerKind;
use super::layer::Joints;
use super::{
    Body, FindError, Graph, Input, InputPort, IrVersion, Layer, LayerId, Model, NewLayer, OperationName, Output,
    OutputPort, Place,
};
use crate::shape::Shape;
use crate::weights::Weights;

/// Why an edit was not made.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum EditError {
    /// There is no such layer.
    #[error("the graph has no layer {0}")]
    NoLayer(LayerId),
    /// The layer has no such output.
    #[error("layer {} has no output {}", .0.layer, .0.port)]
    NoOutput(Output),
    /// The layer has no such input.
    #[error("layer {} has no input {}", .0.layer, .0.port)]
    NoInput(Input),
    /// The layer has no such body.
    #[error("layer {layer} has no body {at}")]
    NoBody {
        /// The layer.
        layer: LayerId,
        /// Which one, counted from 0.
        at: usize,
    },
    /// The tensors cannot replace each other.
    #[error("{from_type} of layer {} cannot take the place of {to_type} of layer {}", .from.layer, .to.layer)]
    Incompatible {
        /// The tensor that would be used.
        from: Output,
        /// Its type and shape.
        from_type: String,
        /// The tensor that is used.
        to: Output,
        /// Its type and shape.
        to_type: String,
    },
    /// Something still uses the layer.
    #[error("layer {layer} still feeds layer {consumer}")]
    InUse {
        /// The layer that would go.
        layer: LayerId,
        /// A layer that uses it.
        consumer: LayerId,
    },
    /// Layers would form a cycle.
    #[error("layers {} would form a cycle", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))]
    Cycle(Vec<LayerId>),
    /// A Result would take a Parameter, or a tensor that has other uses and other names: it would lose its name.
    #[error("Result {result} would lose its name")]
    NamesResult {
        /// The Result.
        result: LayerId,
    },
    /// The operation refuses these inputs or attributes.
    #[error("{operation} refuses this: {reason}")]
    Refused {
        /// The operation.
        operation: String,
        /// Why.
        reason: String,
    },
    /// The operation has no rule here, and the new layer does not say its outputs.
    #[error("nothing is known of {0}: give its outputs with `with_output`")]
    NoRule(String),
    /// A constant whose bytes are not as many as its type and shape take.
    #[error("a constant of {expected} bytes cannot hold {found}")]
    WrongLength {
        /// The bytes that type and shape take.
        expected: u64,
        /// The bytes that were given.
        found: u64,
    },
    /// The model has constants, and its weights are not there: nobody knows where a new constant could go.
    #[error("the weights of the model are not there, so no constant can be added behind them")]
    NoWeights,
    /// A layer keeps the bodies that it has: one that is there does not get other ones.
    #[error("layer {0} keeps its bodies; add a layer for other ones")]
    HasBodies(LayerId),
    /// What joins a layer and its bodies would break.
    #[error("layer {layer}: {reason}")]
    Joined {
        /// The layer with the body, or the one in it.
        layer: LayerId,
        /// What would not be there.
        reason: String,
    },
    /// Another tensor has this name.
    #[error("the tensor of layer {layer} is called `{name}` already")]
    NameTaken {
        /// The name.
        name: String,
        /// The layer that makes the tensor.
        layer: LayerId,
    },
    /// Something else, which whoever edits has to say.
    #[error("{0}")]
    Other(String),
    /// There is no such layer or tensor.
    #[error(transparent)]
    Find(#[from] FindError),
}

/// A batch of edits of one graph of a model, and everything that can be done in it. [`Model::edit`] makes it.
///
/// What it [dereferences to](Deref) is the graph as it is so far. A verb that fails changes nothing.
#[derive(Debug)]
pub struct Edit<'m> {
    pub(super) graph: &'m mut Graph,
    pub(super) weights: &'m mut Weights,
    pub(super) version: IrVersion,
    pub(super) source: &'m Arc<String>,
    pub(super) operations: &'m dyn Operations,
    /// What joins a body and the layer around it.
    pub(super) joints: Joints<'m>,
}

/// What the verbs ask about operations, of which the graph knows none.
pub(crate) trait Operations: fmt::Debug {
    /// What a layer is to its graph.
    fn kind(&self, layer: &Layer) -> LayerKind;

    /// Element types and shapes of the outputs of a layer, as its rule has them, and those inside of its bodies; `None` if
    /// it has no rule.
    ///
    /// # Errors
    /// Why the operation refuses its inputs, attributes or bodies.
    fn outputs(&self, graph: &mut Graph, id: LayerId, origin: Origin<'_>) -> Option<Result<Outputs, String>>;
}

/// Element type and shape of each output of a layer.
pub(crate) type Outputs = SmallVec<[(ElementType, Shape); 2]>;

/// Where a graph comes from.
#[derive(Clone, Copy)]
pub(crate) struct Origin<'a> {
    pub(crate) source: &'a Arc<String>,
    pub(crate) weights: &'a Weights,
    pub(crate) version: IrVersion,
}

impl Deref for Edit<'_> {
    type Target = Graph;

    fn deref(&self) -> &Graph {
        self.graph
    }
}

impl Model {
    /// Makes a batch of edits, as `Model::edit` says, with what is known of operations.
    pub(crate) fn edit_knowing<T>(
        &mut self,
        operations: &dyn Operations,
        edits: impl FnOnce(&mut Edit<'_>) -> Result<T, EditError>,
    ) -> Result<T, EditError> {
        let Self { graph, weights, version, source, .. } = self;
        let mut edit = Edit { graph, weights, version: *version, source, operations, joints: Joints::default() };
        let result = edit.attempt(|edit| {
            let value = edits(edit)?;
            edit.graph.check_batch()?;
            Ok(value)
        });
        if result.is_ok() {
            self.graph.commit();
        }
        result
    }
}

impl Edit<'_> {
    /// Makes edits that are undone where they fail, while the rest of the batch stays.
    ///
    /// # Errors
    /// What `edits` returns.
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
        let mark = (self.graph.batch_len(), self.weights.len_of_tail());
        let result = edits(self);
        if result.is_err() {
            self.graph.roll_back(mark.0);
            self.weights.shorten_tail(mark.1);
        }
        result
    }

    /// The graph of a layer's body, to be edited as this one: `at` counts the bodies of the layer.
    ///
    /// # Errors
    /// [`EditError::NoLayer`], [`EditError::NoBody`].
    ///
    /// # Examples
    /// ```
    /// use typelift::{Model, graph::NewLayer};
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

    /// The graph at a place of this one, to be edited as this one.
    ///
    /// # Errors
    /// [`EditError::NoLayer`], [`EditError::NoBody`].
    ///
    /// # Examples
    /// ```
    /// # use typelift::{Model, graph::Place};
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
        let &mut Edit { ref mut graph, ref mut weights, version, source, operations, mut joints } = self;
        let mut graph: &mut Graph = graph;
        for &(layer, at) in steps {
            (graph, joints) = graph.enter(layer, at)?;
        }
        Ok(Edit { graph, weights, version, source, operations, joints })
    }

    /// Feeds an input from a tensor, in place of the one that feeds it. Types and shapes are not looked at.
    ///
    /// # Errors
    /// [`EditError::NoLayer`], [`EditError::NoOutput`], [`EditError::NoInput`].
    ///
    /// # Examples
    /// ```
    /// # use typelift::Model;
    /// # let mut model = Model::open(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/model.xml"))?;
    /// let (x, relu) = (model.graph().tensor("x")?, model.graph().find("relu")?);
    /// model.edit(|graph| graph.connect(x, relu.input(0)))?;
    /// assert_eq!(model.graph().producers(relu), [Some(x)]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn connect(&mut self, from: Output, to: Input) -> Result<(), EditError> {
        let (from, to) = (self.graph.start_of(from)?, self.graph.end_of(to)?);
        self.graph.feed_one(from, to);
        Ok(())
    }

    /// Feeds many inputs, each from a tensor, as [`connect`](Self::connect) feeds one. It takes time in proportion to the
    /// wires there are, even if all these are inputs of one layer.
    ///
    /// # Errors
    /// As [`connect`](Self::connect).
    ///
    /// # Examples
    /// ```
    /// # use typelift::Model;
    /// # let mut model = Model::open(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/model.xml"))?;
    /// let (x, scaled) = (model.graph().tensor("x")?, model.graph().tensor("scaled")?);
    /// let uses: Vec<_> = model.graph().consumers(scaled).collect();
    /// model.edit(|graph| graph.connect_all(uses.into_iter().map(|input| (x, input))))?;
    /// assert_eq!(model.graph().consumers(scaled).count(), 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn connect_all(&mut self, wires: impl IntoIterator<Item = (Output, Input)>) -> Result<(), EditError> {
        let wires = wires.into_iter();
        let mut ends = Vec::with_capacity(wires.size_hint().0);
        for (from, to) in wires {
            ends.push((to.layer, self.graph.start_of(from)?, self.graph.end_of(to)?));
        }
        ends.sort_by_key(|(layer, ..)| *layer);
        for wires in ends.chunk_by(|one, next| one.0 == next.0) {
            self.graph.feed_layer(wires.iter().map(|&(_, from, to)| (from, to)));
        }
        Ok(())
    }

    /// Lets a layer be an operation of another name or operation set, with the attributes and inputs that it has. Its
    /// outputs follow if that operation takes them; [`infer`](crate::infer()) says why if it does not.
    ///
    /// # Errors
    /// [`EditError::NoLayer`].
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
        self.changed(id)?.operation_name = OperationName::new(ty, version);
        self.refresh_outputs(id)
    }

    /// Gives a layer the metadata, the `rt_info`, of another one. What it had goes.
    ///
    /// # Errors
    /// [`EditError::NoLayer`].
    ///
    /// # Examples
    /// ```
    /// # use typelift::{Model, graph::NewLayer};
    /// # let mut model = Model::open(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/model.xml"))?;
    /// let y = model.graph().tensor("y")?;
    /// model.edit(|graph| {
    ///     let sigmoid = graph.insert_after(y, NewLayer::new("Sigmoid", "opset1"), &[])?;
    ///     graph.copy_metadata(y.layer, sigmoid)
    /// })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn copy_metadata(&mut self, from: LayerId, to: LayerId) -> Result<(), EditError> {
        let rt_info = self.graph.checked(from)?.rt_info;
        if self.graph.checked(to)?.rt_info != rt_info {
            self.changed(to)?.rt_info = rt_info;
        }
        Ok(())
    }

    /// Gives a tensor the metadata, the `rt_info` of its port, of another one. What it had goes.
    ///
    /// # Errors
    /// [`EditError::NoLayer`], [`EditError::NoOutput`].
    ///
    /// # Examples
    /// ```
    /// # use typelift::Model;
    /// # let mut model = Model::open(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/model.xml"))?;
    /// let (y, scaled) = (model.graph().tensor("y")?, model.graph().tensor("scaled")?);
    /// model.edit(|graph| graph.copy_tensor_metadata(y, scaled))?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn copy_tensor_metadata(&mut self, from: Output, to: Output) -> Result<(), EditError> {
        let rt_info = self.graph.checked_output(from)?.rt_info;
        if self.graph.checked_output(to)?.rt_info != rt_info {
            let port = self.changed(to.layer)?.outputs.get_mut(to.port).ok_or(EditError::NoOutput(to))?;
            port.rt_info = rt_info;
        }
        Ok(())
    }

    /// Gives the names of a tensor to another one.
    ///
    /// # Errors
    /// [`EditError::NoLayer`], [`EditError::NoOutput`].
    ///
    /// # Examples
    /// ```
    /// # use typelift::Model;
    /// # let mut model = Model::open(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/model.xml"))?;
    /// let (y, scaled) = (model.graph().tensor("y")?, model.graph().tensor("scaled")?);
    /// model.edit(|graph| graph.move_names(y, scaled))?;
    /// assert_eq!(model.graph().tensor("y")?, scaled);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn move_names(&mut self, from: Output, to: Output) -> Result<(), EditError> {
        let known = self.graph.checked_output(to)?.names.clone();
        let moved = self.graph.checked_output(from)?.names.clone();
        if from == to || moved.is_none() {
            return Ok(());
        }
        let all = match known {
            None => moved,
            Some(_) => {
                let names = [known, moved].into_iter().flatten().flat_map(|names| super::split_names(&names));
                Some(super::join_names(names.collect()))
            }
        };
        self.graph.name_output(from, None);
        self.graph.name_output(to, all);
        Ok(())
    }

    /// Removes a layer that nothing uses.
    ///
    /// # Errors
    /// [`EditError::InUse`] where one of its outputs still feeds a layer.
    ///
    /// # Examples
    /// ```
    /// # use typelift::Model;
    /// # let mut model = Model::open(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/model.xml"))?;
    /// let result = model.find_output("y")?;
    /// model.edit(|graph| graph.remove(result))?;
    /// assert_eq!(model.outputs().count(), 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn remove(&mut self, id: LayerId) -> Result<(), EditError> {
        self.remove_all(&[id])
    }

    /// Removes layers that nothing else uses.
    ///
    /// # Errors
    /// [`EditError::NoLayer`]; [`EditError::InUse`] where one feeds a layer that is to stay; [`EditError::Joined`] for a
    /// Parameter or Result of a body that [its port map](Self::set_port_map) names.
    ///
    /// # Examples
    /// ```
    /// # use typelift::Model;
    /// # let mut model = Model::open(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/model.xml"))?;
    /// let (result, relu) = (model.find_output("y")?, model.graph().find("relu")?);
    /// model.edit(|graph| graph.remove_all(&[relu, result]))?;
    /// assert_eq!(model.graph().len(), 3);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn remove_all(&mut self, layers: &[LayerId]) -> Result<(), EditError> {
        let is_end = |&id: &LayerId| {
            let kind = self.layer(id).map(|layer| self.operations.kind(layer));
            matches!(kind, Some(LayerKind::Parameter | LayerKind::Result))
        };
        if let Some(&layer) = layers.iter().find(|layer| is_end(layer) && self.joints.name(**layer)) {
            let reason = "the layer around the body names it in its port map".to_owned();
            return Err(EditError::Joined { layer, reason });
        }
        let nodes = layers.iter().map(|&id| self.graph.known(id)).collect::<Result<_, _>>()?;
        self.graph.take_all(nodes)
    }

    /// Gives a layer another name.
    ///
    /// # Errors
    /// [`EditError::NoLayer`].
    ///
    /// # Examples
    /// ```
    /// # use typelift::Model;
    /// # let mut model = Model::open(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/model.xml"))?;
    /// let relu = model.graph().find("relu")?;
    /// model.edit(|graph| graph.set_name(relu, "activation"))?;
    /// assert_eq!(model.graph().find("activation")?, relu);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn set_name(&mut self, id: LayerId, name: &str) -> Result<(), EditError> {
        self.changed(id)?.name = name.into();
        Ok(())
    }

    /// Sets the names of a tensor.
    ///
    /// # Errors
    /// [`EditError::NoLayer`], [`EditError::NoOutput`].
    ///
    /// # Examples
    /// ```
    /// # use typelift::Model;
    /// # let mut model = Model::open(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/model.xml"))?;
    /// let y = model.graph().tensor("y")?;
    /// model.edit(|graph| graph.set_names(y, vec!["logits".into(), "scores".into()]))?;
    /// assert_eq!(model.graph().tensor("scores")?, y);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn set_names(&mut self, output: Output, names: Vec<String>) -> Result<(), EditError> {
        self.graph.checked_output(output)?;
        self.graph.name_output(output, (!names.is_empty()).then(|| super::join_names(names)));
        Ok(())
    }

    /// Sets the names of the model's output that a Result is.
    ///
    /// # Errors
    /// [`EditError::NoLayer`].
    ///
    /// # Examples
    /// ```
    /// # use typelift::Model;
    /// # let mut model = Model::open(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/model.xml"))?;
    /// let result = model.find_output("y")?;
    /// model.edit(|graph| graph.set_output_names(result, vec!["scores".into()]))?;
    /// assert_eq!(model.find_output("scores")?, result);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn set_output_names(&mut self, result: LayerId, names: Vec<String>) -> Result<(), EditError> {
        self.changed(result)?.output_names = (!names.is_empty()).then(|| super::join_names(names).into());
        Ok(())
    }

    /// The bytes of the model's constants, those included that were added.
    pub fn weights(&self) -> &Weights {
        self.weights
    }

    /// Adds bytes of constants behind all that the weights have, and gives their offset. Equal bytes are stored once.
    ///
    /// # Examples
    /// ```
    /// # use typelift::Model;
    /// # let mut model = Model::open(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/model.xml"))?;
    /// let scale = model.graph().find("scale")?;
    /// model.edit(|graph| {
    ///     let offset = graph.add_bytes(&3_f32.to_le_bytes());
    ///     graph.set_attribute(scale, "offset", offset)
    /// })?;
    /// assert_eq!(model.graph().layer(scale).unwrap().numbers(model.weights()), Some(vec![3.0]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn add_bytes(&mut self, bytes: &[u8]) -> u64 {
        self.weights.add(bytes)
    }

    /// A layer whose text will be walked through.
    pub(super) fn changed(&mut self, id: LayerId) -> Result<&mut Layer, EditError> {
        let layer = self.graph.change(self.graph.known(id)?);
        layer.edited = true;
        Ok(layer)
    }
}

impl Graph {
    pub(super) fn batch_len(&self) -> usize {
        self.journal.len()
    }

    /// Whether one tensor can replace the other.
    pub(super) fn check_compatible(&self, old: Output, new: Output) -> Result<(), EditError> {
        let (was, is) = (self.checked_output(old)?, self.checked_output(new)?);
        let same_type =
            was.element_type == is.element_type || [was.element_type, is.element_type].contains(&ElementType::Dynamic);
        if same_type && was.shape.is_compatible(&is.shape) {
            return Ok(());
        }
        Err(EditError::Incompatible { from: new, from_type: is.to_string(), to: old, to_type: was.to_string() })
    }

    /// The node of a layer.
    // An error that `ok_or` is given is made, and dropped, where nothing is wrong too.
    pub(super) fn known(&self, id: LayerId) -> Result<NodeIndex, EditError> {
        match self.node(id) {
            Some(node) => Ok(node),
            None => Err(EditError::NoLayer(id)),
        }
    }

    pub(super) fn checked(&self, id: LayerId) -> Result<&Layer, EditError> {
        self.known(id).map(|node| &self.storage[node])
    }

    fn checked_output(&self, output: Output) -> Result<&OutputPort, EditError> {
        match self.checked(output.layer)?.outputs.get(output.port) {
            Some(port) => Ok(port),
            None => Err(EditError::NoOutput(output)),
        }
    }

    fn start_of(&self, output: Output) -> Result<End, EditError> {
        let node = self.known(output.layer)?;
        if output.port >= self.storage[node].outputs.len() {
            return Err(EditError::NoOutput(output));
        }
        Ok((node, output.port))
    }

    fn end_of(&self, input: Input) -> Result<End, EditError> {
        let node = self.known(input.layer)?;
        if input.port >= self.storage[node].inputs.len() {
            return Err(EditError::NoInput(input));
        }
        Ok((node, input.port))
    }

    /// Adds a layer whose inputs nothing feeds yet.
    pub(super) fn add_layer(&mut self, new: &NewLayer, inputs: usize) -> LayerId {
        let mut layer = Layer::of(new.operation_name.clone(), new.name.clone().unwrap_or_default());
        layer.attributes = new.attributes.clone();
        layer.bodies = new.bodies.iter().map(|name| Body::empty(name)).collect();
        let id = self.put(layer, inputs);
        if let (None, Some(layer)) = (&new.name, self.node(id).and_then(|node| self.weight_mut(node))) {
            layer.name = format!("{}_{id}", layer.ty()).into();
        }
        id
    }

    /// Gives the outputs of a layer these types and shapes; ports come and go with them.
    ///
    /// # Errors
    /// [`EditError::InUse`] where an output that something uses would go.
    pub(super) fn set_outputs(
        &mut self,
        id: LayerId,
        outputs: impl IntoIterator<Item = (ElementType, Shape)>,
    ) -> Result<(), EditError> {
        let node = self.known(id)?;
        let layer = &mut self.storage[node];
        let mut labels = layer.free_labels();
        let (mut count, mut changed) = (0, false);
        for (element_type, shape) in outputs {
            match layer.outputs.get_mut(count) {
                Some(port) if port.element_type == element_type && port.shape == shape => {}
                Some(port) => {
                    (port.element_type, port.shape, port.stale, changed) = (element_type, shape, true, true);
                }
                None => {
                    let id = labels.next().unwrap_or_default();
                    layer.outputs.push(OutputPort { id, ..OutputPort::new(element_type, shape) });
                }
            }
            count += 1;
        }
        if layer.outputs.len() > count {
            let wires = self.storage.edges_directed(node, Outgoing).filter(|edge| !edge.weight().gone);
            let lost = wires.filter(|edge| edge.weight().from_port as usize >= count).map(|edge| edge.target()).next();
            if let Some(consumer) = lost.and_then(|node| Some(self.weight(node)?.id)) {
                return Err(EditError::InUse { layer: id, consumer });
            }
        }
        if let Some(layer) = self.weight_mut(node) {
            layer.outputs.truncate(count);
        }
        if changed {
            self.mark_ports_changed(id);
        }
        Ok(())
    }

    /// Gives a layer that many inputs: the first ones stay, others go or come behind them.
    pub(super) fn resize_inputs(&mut self, id: LayerId, count: usize) {
        let Some(node) = self.node(id) else { return };
        let last = self.weight(node).map_or(0, |layer| layer.inputs.len());
        for port in count..last {
            self.starve(id.input(port));
        }
        let layer = self.change(node);
        layer.edited = true;
        let labels = layer.free_labels().take(count.saturating_sub(last));
        layer.inputs = layer.inputs.iter().take(count).cloned().chain(labels.map(InputPort::new)).collect();
    }

    /// Takes in a layer under a new id, with `inputs` ports that nothing feeds yet.
    pub(super) fn place(&mut self, mut layer: Layer, inputs: usize) -> LayerId {
        let id = self.new_id();
        layer.id = id;
        layer.span = None;
        layer.inputs = (0..inputs as u64).map(InputPort::new).collect();
        for (id, output) in (inputs as u64..).zip(&mut layer.outputs) {
            output.id = id;
        }
        self.insert(layer);
        id
    }

    /// The name, or with a number behind it the first one that no layer has.
    #[must_use]
    pub fn unused_name(&self, name: String) -> String {
        let is_taken = |name: &str| self.storage.node_weights().any(|layer| *layer.name == *name);
        let numbered = (2_u64..).map(|number| format!("{name}_{number}"));
        std::iter::once(name.clone()).chain(numbered).find(|name| !is_taken(name)).unwrap_or(name)
    }

    fn new_id(&self) -> LayerId {
        if self.next_id <= LayerId::LARGEST {
            return LayerId(self.next_id);
        }
        // The least that no layer had: up to there, each id is at its own position. Those of removed layers are in the
        // index too, so that none is given twice.
        let (mut start, mut end) = (0, self.index.len());
        while start < end {
            let middle = start.midpoint(end);
            if self.index[middle].0.0 == middle as u64 { start = middle + 1 } else { end = middle }
        }
        LayerId(start as u64)
    }

    /// Takes in a layer with an id of its own.
    fn insert(&mut self, layer: Layer) {
        let id = layer.id;
        let node = self.append_node(layer);
        let is_last = self.index.last().is_none_or(|entry| entry.0 < id);
        let at = if is_last { self.index.len() } else { self.index.partition_point(|entry| entry.0 < id) };
        self.index.insert(at, (id, node));
    }

    /// Marks the text of a layer's output ports, and of the input ports they feed, as possibly outdated.
    pub(crate) fn mark_ports_changed(&mut self, id: LayerId) {
        let Some(node) = self.node(id) else { return };
        let consumers: Vec<_> = self.storage.neighbors_directed(node, Outgoing).collect();
        for node in consumers.into_iter().chain([node]) {
            self.mark_rewired(node);
        }
    }

    pub(super) fn mark_rewired(&mut self, node: NodeIndex) {
        if let Some(layer) = self.storage.node_weight_mut(node) {
            layer.rewired = true;
        }
    }
}
