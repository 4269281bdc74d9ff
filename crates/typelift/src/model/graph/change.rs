//! Elementary changes of a graph, each recorded in the journal.

use petgraph::Direction::Outgoing;
use petgraph::stable_graph::NodeIndex;
use petgraph::visit::EdgeRef;
use typelift_promote::ElementType;

use super::journal::End;
use super::visits;
use super::{Body, EditError, Graph, Input, InputPort, Layer, LayerId, NewLayer, Output, OutputPort};
use crate::model::shape::TensorType;

impl Graph {
    pub(crate) fn batch_len(&self) -> usize {
        self.journal.len()
    }

    /// Checks that types and shapes permit the new tensor in place of the old one.
    pub(crate) fn check_compatible(&self, old: Output, new: Output) -> Result<(), EditError> {
        let (was, is) = (self.checked_output(old)?, self.checked_output(new)?);
        let same_type =
            was.element_type == is.element_type || [was.element_type, is.element_type].contains(&ElementType::Dynamic);
        if same_type && was.shape.is_compatible(&is.shape) {
            return Ok(());
        }
        Err(EditError::Incompatible { from: new, from_type: is.to_string(), to: old, to_type: was.to_string() })
    }

    /// With `ok_or`, the error would be created and dropped on success too.
    pub(super) fn known(&self, id: LayerId) -> Result<NodeIndex, EditError> {
        match self.node(id) {
            Some(node) => Ok(node),
            None => Err(EditError::NoLayer(id)),
        }
    }

    pub(crate) fn checked(&self, id: LayerId) -> Result<&Layer, EditError> {
        self.known(id).map(|node| &self.storage[node])
    }

    pub(crate) fn checked_output(&self, output: Output) -> Result<&OutputPort, EditError> {
        match self.checked(output.layer)?.outputs.get(output.port) {
            Some(port) => Ok(port),
            None => Err(EditError::NoOutput(output)),
        }
    }

    /// Connects a tensor to an input and removes the input's former edge.
    pub(crate) fn feed(&mut self, from: Output, to: Input) -> Result<(), EditError> {
        let (from, to) = (self.start_of(from)?, self.end_of(to)?);
        self.feed_one(from, to);
        Ok(())
    }

    /// Connects the inputs that `old` feeds to `new`, except those of the layer of `new`. One pass over the edges of the
    /// layer of `old` finds them: an input's own layer may have many edges.
    pub(crate) fn move_uses(&mut self, old: Output, new: Output) -> Result<(), EditError> {
        let (old, new) = (self.start_of(old)?, self.start_of(new)?);
        let edges = self.storage.edges_directed(old.0, Outgoing).inspect(visits::note);
        let uses = edges.filter(|edge| {
            let wire = edge.weight();
            !wire.gone && wire.from_port == old.1 && edge.target() != new.0
        });
        let uses: Vec<_> = uses.map(|edge| (edge.id(), (edge.target(), edge.weight().to_port))).collect();
        for (edge, to) in uses {
            self.replace_wire(Some(edge), new, to);
        }
        Ok(())
    }

    /// Does the same as [`feed`](Self::feed) for many inputs, with one pass over the edges of each layer.
    pub(crate) fn feed_all(&mut self, wires: impl IntoIterator<Item = (Output, Input)>) -> Result<(), EditError> {
        // The result reuses the memory of the argument.
        let ends = wires.into_iter().map(|(from, to)| Ok((to.layer, self.start_of(from)?, self.end_of(to)?)));
        let mut ends = ends.collect::<Result<Vec<_>, EditError>>()?;
        ends.sort_by_key(|(layer, ..)| *layer);
        for wires in ends.chunk_by(|one, next| one.0 == next.0) {
            self.feed_layer(wires.iter().map(|&(_, from, to)| (from, to)));
        }
        Ok(())
    }

    /// Bodies are changed by `enter` instead.
    pub(crate) fn change(&mut self, id: LayerId) -> Result<&mut Layer, EditError> {
        let layer = self.record_change(self.known(id)?);
        layer.edited = true;
        Ok(layer)
    }

    fn start_of(&self, output: Output) -> Result<End, EditError> {
        let node = self.known(output.layer)?;
        if output.port >= self.storage[node].outputs.len() {
            return Err(EditError::NoOutput(output));
        }
        Ok((node, output.port as u32))
    }

    fn end_of(&self, input: Input) -> Result<End, EditError> {
        let node = self.known(input.layer)?;
        if input.port >= self.storage[node].inputs.len() {
            return Err(EditError::NoInput(input));
        }
        Ok((node, input.port as u32))
    }

    pub(crate) fn add_layer(&mut self, new: &NewLayer, inputs: usize) -> LayerId {
        let mut layer = Layer::of(new.operation_name.clone(), new.name.clone().unwrap_or_default());
        layer.attributes = new.attributes.clone();
        layer.bodies = new.bodies.iter().map(|name| Body::empty(name)).collect();
        let id = self.put(layer, inputs);
        if let (None, Some(layer)) = (&new.name, self.node(id).and_then(|node| self.weight_mut(node))) {
            layer.name = match &new.scope {
                Some(scope) => format!("{scope}/{}_{id}", layer.ty()).into(),
                None => format!("{}_{id}", layer.ty()).into(),
            };
        }
        id
    }

    /// Ports are added or removed to match.
    ///
    /// # Errors
    /// [`EditError::InUse`] if an output that is used would be removed.
    pub(crate) fn set_outputs(
        &mut self,
        id: LayerId,
        outputs: impl IntoIterator<Item = TensorType>,
    ) -> Result<(), EditError> {
        let node = self.known(id)?;
        let layer = &mut self.storage[node];
        let mut labels = layer.free_labels();
        let (mut count, mut changed) = (0, false);
        for TensorType { element_type, shape } in outputs {
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

    /// The caller has recorded the layer by [`change`](Self::change). A second copy would double the memory of a rewrite.
    pub(crate) fn resize_inputs(&mut self, id: LayerId, count: usize) {
        let last = self.layer(id).map_or(0, |layer| layer.inputs.len());
        for port in count..last {
            self.starve(id.input(port));
        }
        let Some(layer) = self.layer_mut(id) else { return };
        let labels = layer.free_labels().take(count.saturating_sub(last));
        layer.inputs = layer.inputs.iter().take(count).cloned().chain(labels.map(InputPort::new)).collect();
    }

    /// Adds a layer under a new id, with `inputs` ports that are not connected yet.
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

    pub(crate) fn adopt(&mut self, mut layer: Layer) -> LayerId {
        layer.leave_file();
        layer.id = self.new_id();
        let id = layer.id;
        self.insert(layer);
        self.record_added(id);
        id
    }

    /// The name if no layer has it; otherwise the name with the first unused number appended.
    pub(crate) fn unused_name(&self, name: String) -> String {
        let numbered = (2_u64..).map(|number| format!("{name}_{number}"));
        let mut names = std::iter::once(name.clone()).chain(numbered);
        names.find(|name| self.unordered().all(|layer| *layer.name != **name)).unwrap_or(name)
    }

    fn new_id(&self) -> LayerId {
        if self.next_id <= LayerId::LARGEST {
            return LayerId(self.next_id);
        }
        // Bisection finds the smallest id that no layer ever had: below it, each id equals its position in the index.
        // The index still contains removed layers, so ids are never reused.
        let (mut start, mut end) = (0, self.index.len());
        while start < end {
            let middle = start.midpoint(end);
            if self.index[middle].0.0 == middle as u64 { start = middle + 1 } else { end = middle }
        }
        LayerId(start as u64)
    }

    fn insert(&mut self, layer: Layer) {
        let id = layer.id;
        let node = self.append_node(layer);
        let is_last = self.index.last().is_none_or(|entry| entry.0 < id);
        let at = if is_last { self.index.len() } else { self.index.partition_point(|entry| entry.0 < id) };
        self.index.insert(at, (id, node));
    }

    /// Marks the text of a layer's output ports, and of all input ports connected to them, as possibly out of date.
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
