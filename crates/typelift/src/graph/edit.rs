//! The verbs that change a graph. Each leaves it valid or changes nothing.

use petgraph::Direction::{Incoming, Outgoing};
use petgraph::stable_graph::NodeIndex;
use petgraph::visit::{EdgeRef, IntoEdgeReferences};
use thiserror::Error;
use typelift_promote::ElementType;

use super::{Attribute, Graph, Input, InputPort, Layer, LayerId, Output, Wire};
use crate::span::Span;

/// Why an edit was not made.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum EditError {
    /// There is no such layer.
    #[error("there is no layer {0}")]
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
    /// The tensors cannot stand for each other.
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
    /// The layer would feed itself.
    #[error("layer {0} would feed itself")]
    Circle(LayerId),
}

impl Graph {
    /// Adds a layer fed by `inputs` and gives its new id: one more than any the graph ever had, or where that is more than
    /// OpenVINO reads, the least that it never had.
    ///
    /// # Errors
    /// [`EditError::NoLayer`] or [`EditError::NoOutput`] where an input does not exist; nothing is added then.
    pub fn add(&mut self, layer: Layer, inputs: &[Output]) -> Result<LayerId, EditError> {
        let sources = inputs.iter().map(|&output| self.checked(output)).collect::<Result<Vec<_>, _>>()?;
        let id = self.add_unwired(layer, inputs.len());
        if let Some(node) = self.node(id) {
            for (port, (source, output)) in sources.into_iter().zip(inputs).enumerate() {
                self.storage.add_edge(source, node, Wire::new(output.port, port, None));
            }
        }
        Ok(id)
    }

    /// Lets every consumer of `old` use `new` instead.
    ///
    /// # Errors
    /// [`EditError::Incompatible`] where the element types differ or the shapes have nothing in common;
    /// [`EditError::Circle`] where a consumer of `old` feeds `new`.
    pub fn replace_uses(&mut self, old: Output, new: Output) -> Result<(), EditError> {
        let (old_node, new_node) = (self.checked(old)?, self.checked(new)?);
        if let (Some(was), Some(is)) = (self.output(old), self.output(new)) {
            let same_type = was.element_type == is.element_type
                || [was.element_type, is.element_type].contains(&ElementType::Dynamic);
            if !same_type || !was.shape.is_compatible(&is.shape) {
                return Err(EditError::Incompatible {
                    from: new,
                    from_type: format!("{}{}", is.element_type, is.shape),
                    to: old,
                    to_type: format!("{}{}", was.element_type, was.shape),
                });
            }
        }
        let moved: Vec<_> = self
            .storage
            .edges_directed(old_node, Outgoing)
            .filter(|edge| edge.weight().from_port as usize == old.port)
            .map(|edge| (edge.id(), edge.target(), *edge.weight()))
            .collect();
        for &(_, target, _) in &moved {
            if target == new_node || petgraph::algo::has_path_connecting(&self.storage, target, new_node, None) {
                return Err(EditError::Circle(new.layer));
            }
        }
        for (edge, target, wire) in moved {
            self.storage.remove_edge(edge);
            let wire = Wire { touched: true, ..Wire::new(new.port, wire.to_port as usize, wire.span) };
            self.storage.add_edge(new_node, target, wire);
            self.mark_rewired(target);
        }
        Ok(())
    }

    /// Removes a layer that nothing uses.
    ///
    /// # Errors
    /// [`EditError::InUse`] where one of its outputs still feeds a layer.
    pub fn remove(&mut self, id: LayerId) -> Result<Layer, EditError> {
        let node = self.node(id).ok_or(EditError::NoLayer(id))?;
        if let Some(consumer) = self.storage.neighbors_directed(node, Outgoing).find_map(|n| self.weight(n)) {
            return Err(EditError::InUse { layer: id, consumer: consumer.id });
        }
        self.removed.append(&mut self.ignored);
        self.removed.extend(self.storage.edges_directed(node, Incoming).filter_map(|edge| edge.weight().span));
        let layer = self.storage.remove_node(node).ok_or(EditError::NoLayer(id))?;
        self.removed.extend(layer.span);
        // The entry stays, so that ids keep their places; it names no node any more.
        if let Some(at) = self.position(id) {
            self.index[at].1 = NodeIndex::end();
        }
        Ok(layer)
    }

    /// The graph of a layer's body, to be edited as this one: `at` counts the bodies of the layer.
    ///
    /// # Errors
    /// [`EditError::NoLayer`], [`EditError::NoBody`].
    pub fn body_mut(&mut self, layer: LayerId, at: usize) -> Result<&mut Self, EditError> {
        let node = self.node(layer).ok_or(EditError::NoLayer(layer))?;
        let body = self.storage.node_weight_mut(node).and_then(|layer| layer.bodies.get_mut(at));
        body.map(|body| &mut body.graph).ok_or(EditError::NoBody { layer, at })
    }

    /// Sets an attribute, in its place where the layer has it, else after the others.
    ///
    /// # Errors
    /// [`EditError::NoLayer`].
    pub fn set_attribute(&mut self, id: LayerId, name: &str, value: &str) -> Result<(), EditError> {
        let layer = self.edited(id)?;
        match layer.attributes.iter_mut().find(|attribute| attribute.name == name) {
            Some(attribute) => attribute.value = value.into(),
            None => layer.attributes.push(Attribute { name: name.into(), value: value.into() }),
        }
        Ok(())
    }

    /// Renames a layer.
    ///
    /// # Errors
    /// [`EditError::NoLayer`].
    pub fn rename(&mut self, id: LayerId, name: &str) -> Result<(), EditError> {
        self.edited(id)?.name = name.into();
        Ok(())
    }

    /// Sets the names of a tensor.
    ///
    /// # Errors
    /// [`EditError::NoOutput`].
    pub fn set_names(&mut self, output: Output, names: Vec<String>) -> Result<(), EditError> {
        self.checked(output)?;
        let port = self.edited(output.layer)?.outputs.get_mut(output.port).ok_or(EditError::NoOutput(output))?;
        port.names = (!names.is_empty()).then(|| super::join_names(names));
        Ok(())
    }

    /// Adds a layer whose `inputs` ports nothing feeds yet.
    pub(crate) fn add_unwired(&mut self, mut layer: Layer, inputs: usize) -> LayerId {
        let id = self.new_id();
        self.removed.append(&mut self.ignored);
        layer.id = id;
        layer.span = None;
        let port = |id| InputPort { id, declared: None, content: Span::default() };
        layer.inputs = (0..inputs as u64).map(port).collect();
        for (id, output) in (inputs as u64..).zip(&mut layer.outputs) {
            output.id = id;
        }
        self.insert(layer);
        id
    }

    /// Adds a layer of one input and one output behind a tensor, and redirects to it those consumers for which `takes`
    /// holds.
    pub(crate) fn insert_after(&mut self, tensor: Output, layer: Layer, takes: impl Fn(Input) -> bool) -> LayerId {
        let id = self.add_unwired(layer, 1);
        let made = Output { layer: id, port: 0 };
        self.rewire(|from, to| Some((if from == tensor && takes(to) { made } else { from }, to)));
        self.feed(tensor, Input { layer: id, port: 0 });
        id
    }

    /// The name, or with a number behind it the first one that no layer has.
    pub(crate) fn unused_name(&self, name: String) -> String {
        let is_taken = |name: &str| self.storage.node_weights().any(|layer| layer.name == name);
        let numbered = (2_u64..).map(|number| format!("{name}_{number}"));
        std::iter::once(name.clone()).chain(numbered).find(|name| !is_taken(name)).unwrap_or(name)
    }

    fn new_id(&self) -> LayerId {
        let gap = || (0..).zip(&self.index).find(|(free, (id, _))| *free < id.0).map(|(free, _)| free);
        let free = if self.next_id > LayerId::LARGEST { gap() } else { None };
        LayerId(free.unwrap_or(self.next_id))
    }

    /// Takes a layer in as it is, in place of the one that already has its id, whose node is returned. That node is for the
    /// caller to [`discard`](Self::discard) when all layers are in: the next one would get its index, and come too early.
    pub(crate) fn insert(&mut self, layer: Layer) -> Option<NodeIndex> {
        let id = layer.id;
        self.next_id = self.next_id.max(id.0.saturating_add(1));
        let node = self.storage.add_node(layer);
        match self.index.last() {
            Some(last) if last.0 >= id => match self.index.binary_search_by_key(&id, |entry| entry.0) {
                Ok(at) => Some(std::mem::replace(&mut self.index[at].1, node)),
                Err(at) => {
                    self.index.insert(at, (id, node));
                    None
                }
            },
            _ => {
                self.index.push((id, node));
                None
            }
        }
    }

    /// Takes out a layer that gave way to another one.
    pub(crate) fn discard(&mut self, node: NodeIndex) {
        self.ignored.extend(self.storage.remove_node(node).and_then(|layer| layer.span));
    }

    pub(crate) fn connect(&mut self, source: NodeIndex, target: NodeIndex, wire: Wire) {
        self.storage.add_edge(source, target, wire);
    }

    /// Feeds an input that nothing feeds yet; both ends are there.
    pub(crate) fn feed(&mut self, source: Output, target: Input) {
        if let (Some(from), Some(to)) = (self.node(source.layer), self.node(target.layer)) {
            self.storage.add_edge(from, to, Wire::new(source.port, target.port, None));
        }
    }

    /// Gives every wire new ends, or takes it out where `map` gives none. The wires keep their order and their places in
    /// the file. All at once, because taking a wire from a tensor with many consumers costs as much as their number.
    pub(crate) fn rewire(&mut self, map: impl FnMut(Output, Input) -> Option<(Output, Input)>) {
        let wires = self.unwire();
        self.wire(wires, map);
    }

    /// Takes all wires out, to be put back with [`wire`](Self::wire) when layers have come and gone.
    pub(crate) fn unwire(&mut self) -> Vec<(LayerId, LayerId, Wire)> {
        let ends = self
            .storage
            .edge_references()
            .filter_map(|edge| Some((self.weight(edge.source())?.id, self.weight(edge.target())?.id, *edge.weight())));
        let wires = ends.collect();
        self.storage.clear_edges();
        wires
    }

    /// Puts wires back, between other ends where `map` says so; those for which it gives none are gone.
    pub(crate) fn wire(
        &mut self,
        wires: Vec<(LayerId, LayerId, Wire)>,
        mut map: impl FnMut(Output, Input) -> Option<(Output, Input)>,
    ) {
        for (from, to, mut wire) in wires {
            let from = Output { layer: from, port: wire.from_port as usize };
            let to = Input { layer: to, port: wire.to_port as usize };
            let ends = map(from, to);
            let nodes = ends.and_then(|(from, to)| Some((self.node(from.layer)?, self.node(to.layer)?)));
            let (Some(ends), Some((source, target))) = (ends, nodes) else {
                self.removed.extend(wire.span);
                continue;
            };
            if ends != (from, to) {
                wire = Wire { touched: true, ..Wire::new(ends.0.port, ends.1.port, wire.span) };
                self.mark_rewired(target);
            }
            self.storage.add_edge(source, target, wire);
        }
    }

    fn checked(&self, output: Output) -> Result<NodeIndex, EditError> {
        let node = self.node(output.layer).ok_or(EditError::NoLayer(output.layer))?;
        let layer = self.weight(node).ok_or(EditError::NoLayer(output.layer))?;
        layer.outputs.get(output.port).map(|_| node).ok_or(EditError::NoOutput(output))
    }

    /// Marks the text of a layer's output ports, and of the input ports they feed, as possibly outdated.
    pub(crate) fn mark_ports_changed(&mut self, node: NodeIndex) {
        let consumers: Vec<_> = self.storage.neighbors_directed(node, Outgoing).collect();
        for node in consumers.into_iter().chain([node]) {
            self.mark_rewired(node);
        }
    }

    fn mark_rewired(&mut self, node: NodeIndex) {
        if let Some(layer) = self.storage.node_weight_mut(node) {
            layer.rewired = true;
        }
    }

    fn edited(&mut self, id: LayerId) -> Result<&mut Layer, EditError> {
        let node = self.node(id).ok_or(EditError::NoLayer(id))?;
        let layer = self.storage.node_weight_mut(node).ok_or(EditError::NoLayer(id))?;
        layer.edited = true;
        Ok(layer)
    }
}
