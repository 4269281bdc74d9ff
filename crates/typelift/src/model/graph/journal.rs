//! Journal of a batch of edits: the changes so far, so that all of them can be undone or made final together.
//!
//! Removing an edge in petgraph takes time in proportion to the tensor's uses. A batch therefore only marks edges and
//! layers as removed, and deletes them together at its end.

use std::collections::BTreeSet;

use petgraph::Direction::{Incoming, Outgoing};
use petgraph::stable_graph::{EdgeIndex, EdgeReference, NodeIndex};
use petgraph::visit::EdgeRef;

use super::layer::Joints;
use super::visits;
use super::{BackEdge, Body, EditError, Graph, Input, Layer, LayerId, Names, Output, PortMapEntry, Text, Wire};
use crate::base::hash::{HashMap, HashSet};
use crate::base::span::Span;

#[derive(Clone, Debug)]
pub(super) enum Record {
    Added(NodeIndex),
    Removed(NodeIndex),
    /// A changed layer: its node, and its former state without bodies.
    Changed(NodeIndex, Box<Layer>),
    Named(Box<Renamed>),
    Joined(Box<Joined>),
    Wired(EdgeIndex),
    /// A removed edge and the position of its text. The position is empty if it had none, which keeps a record small.
    Unwired(EdgeIndex, Span),
    /// A body that was opened for edits: its layer, its position, and the length of its journal at that time.
    Entered(NodeIndex, u32, u32),
}

impl Record {
    fn unwired(&self) -> Option<EdgeIndex> {
        if let Self::Unwired(edge, _) = self { Some(*edge) } else { None }
    }

    fn entered(&self) -> Option<(NodeIndex, u32)> {
        if let Self::Entered(node, at, _) = self { Some((*node, *at)) } else { None }
    }
}

/// Former names of a port; the flag is true if its layer was edited before.
#[derive(Clone, Debug)]
pub(super) struct Renamed {
    output: Output,
    names: Option<Text>,
    edited: bool,
}

/// Former connections of a layer and one of its bodies.
#[derive(Clone, Debug)]
pub(super) struct Joined {
    layer: LayerId,
    at: usize,
    port_map: Vec<PortMapEntry>,
    back_edges: Vec<BackEdge>,
    edited: bool,
}

/// Changes of the current batch, in order.
#[derive(Clone, Debug, Default)]
pub(super) struct Journal {
    records: Vec<Record>,
    pub(super) gone_layers: usize,
    /// True if a new edge may close a cycle.
    may_close_cycle: bool,
    /// Index of the names, once an edit has searched one.
    pub(super) names: Option<Box<Names>>,
}

impl Journal {
    pub(super) fn len(&self) -> usize {
        self.records.len()
    }
}

/// A layer, and the position of one of its inputs or outputs.
pub(super) type End = (NodeIndex, u32);

/// Up to this number, edges are removed or connected one by one. Above it, an index of the edges is faster.
const FEW: usize = 32;

impl Graph {
    /// The layers that the batch added, removed, changed or renamed since its journal had this length.
    pub(super) fn touched_since(&self, mark: usize) -> impl Iterator<Item = LayerId> {
        self.journal.records.iter().skip(mark).filter_map(|record| match record {
            Record::Added(node) | Record::Removed(node) | Record::Changed(node, _) => {
                Some(self.storage.node_weight(*node)?.id)
            }
            Record::Named(renamed) => Some(renamed.output.layer),
            _ => None,
        })
    }

    /// The existing layers that the batch added since its journal had this length.
    pub(crate) fn added_since(&self, mark: usize) -> impl Iterator<Item = LayerId> {
        let added = self.journal.records.iter().skip(mark).filter_map(|record| match record {
            Record::Added(node) => Some(self.storage.node_weight(*node)?.id),
            _ => None,
        });
        added.filter(|&id| self.layer(id).is_some())
    }

    pub(super) fn put(&mut self, layer: Layer, inputs: usize) -> LayerId {
        let id = self.place(layer, inputs);
        self.record_added(id);
        id
    }

    pub(super) fn record_added(&mut self, id: LayerId) {
        self.journal.records.extend(self.node(id).map(Record::Added));
    }

    /// Removes positions in the file, because the layer is moved to another file.
    pub(super) fn leave_file(&mut self) {
        self.storage.node_weights_mut().for_each(Layer::leave_file);
        for wire in self.storage.edge_weights_mut() {
            (wire.span, wire.touched) = (None, true);
        }
        (self.span, self.layers_span, self.edges_span, self.rt_info_span) = (None, None, None, None);
        (self.removed, self.ignored) = (Vec::new(), Vec::new());
    }

    /// Marks layers, and the edges to them, as removed.
    ///
    /// # Errors
    /// [`EditError::NoLayer`]; [`EditError::InUse`] if one of them feeds another layer.
    pub(crate) fn take_all(&mut self, layers: &[LayerId]) -> Result<(), EditError> {
        let mut nodes = layers.iter().map(|&id| self.known(id)).collect::<Result<Vec<_>, _>>()?;
        nodes.sort_unstable();
        nodes.dedup();
        nodes.iter().for_each(|&node| self.storage[node].gone = true);
        if let Some(error) = nodes.iter().find_map(|&node| self.use_of(node)) {
            nodes.iter().for_each(|&node| self.storage[node].gone = false);
            return Err(error);
        }
        self.journal.gone_layers += nodes.len();
        for node in nodes {
            let mut wires = self.storage.neighbors_directed(node, Incoming).detach();
            while let Some(wire) = wires.next_edge(&self.storage) {
                self.unwire_one(wire);
            }
            self.forget(self.storage[node].id);
            self.journal.records.push(Record::Removed(node));
        }
        Ok(())
    }

    /// The error for a layer that is still used by a layer that is kept.
    fn use_of(&self, node: NodeIndex) -> Option<EditError> {
        let mut wires = self.storage.edges_directed(node, Outgoing).filter(|edge| !edge.weight().gone);
        let consumer = wires.find_map(|edge| Some(&self.storage[edge.target()]).filter(|layer| !layer.gone))?;
        Some(EditError::InUse { layer: self.storage[node].id, consumer: consumer.id })
    }

    pub(super) fn live_edges(&self, node: NodeIndex) -> impl Iterator<Item = EdgeReference<'_, Wire>> {
        self.storage.edges_directed(node, Incoming).inspect(visits::note).filter(|edge| !edge.weight().gone)
    }

    /// The layer for changes. Its bodies cannot be changed here.
    pub(super) fn record_change(&mut self, node: NodeIndex) -> &mut Layer {
        let layer = &mut self.storage[node];
        let bodies = std::mem::take(&mut layer.bodies);
        let before = layer.clone();
        layer.bodies = bodies;
        self.journal.records.push(Record::Changed(node, Box::new(before)));
        layer
    }

    pub(crate) fn name_output(&mut self, output: Output, names: Option<Text>) {
        let Some(node) = self.node(output.layer) else { return };
        let Some(layer) = self.storage.node_weight_mut(node) else { return };
        let Some(port) = layer.outputs.get_mut(output.port) else { return };
        let names = std::mem::replace(&mut port.names, names);
        let edited = std::mem::replace(&mut layer.edited, true);
        self.journal.records.push(Record::Named(Box::new(Renamed { output, names, edited })));
    }

    pub(crate) fn join(&mut self, layer: LayerId, at: usize, port_map: Vec<PortMapEntry>, back_edges: Vec<BackEdge>) {
        let Some(owner) = self.layer_mut(layer) else { return };
        let edited = std::mem::replace(&mut owner.edited, true);
        let Some(body) = owner.bodies.get_mut(at) else { return };
        let port_map = std::mem::replace(&mut body.port_map, port_map);
        let back_edges = std::mem::replace(&mut body.back_edges, back_edges);
        body.rejoined = true;
        self.journal.records.push(Record::Joined(Box::new(Joined { layer, at, port_map, back_edges, edited })));
    }

    /// Records its state first.
    pub(crate) fn enter(&mut self, layer: LayerId, at: usize) -> Result<(&mut Self, Joints<'_>), EditError> {
        let node = self.known(layer)?;
        let body = self.storage[node].bodies.get_mut(at).ok_or(EditError::NoBody { layer, at })?;
        let length = body.graph.journal.len() as u32;
        self.journal.records.push(Record::Entered(node, at as u32, length));
        let Body { graph, port_map, back_edges, .. } = body;
        Ok((graph, Joints { port_map, back_edges }))
    }

    /// Connects an output to an input and removes the input's former edge.
    pub(super) fn feed_one(&mut self, from: End, to: End) {
        let old = self.live_edges(to.0).find(|edge| edge.weight().to_port == to.1).map(|edge| edge.id());
        self.replace_wire(old, from, to);
    }

    /// Connects an output to an input. `old` is the input's former edge. Returns the new edge, if one was needed.
    pub(super) fn replace_wire(&mut self, old: Option<EdgeIndex>, from: End, to: End) -> Option<EdgeIndex> {
        if old.is_some_and(|old| self.start(old) == Some(from)) {
            return None;
        }
        // The new edge takes the position of the old one in the file.
        let span = old.and_then(|old| {
            self.unwire_one(old);
            self.storage.edge_weight_mut(old)?.span.take()
        });
        let wire = Wire { touched: true, ..Wire::new(from.1 as usize, to.1 as usize, span) };
        let edge = self.storage.add_edge(from.0, to.0, wire);
        self.journal.records.push(Record::Wired(edge));
        // A layer without producers or without consumers is on no cycle.
        self.journal.may_close_cycle = self.journal.may_close_cycle
            || self.live_edges(from.0).next().is_some() && self.storage.neighbors(to.0).next().is_some();
        self.mark_rewired(to.0);
        Some(edge)
    }

    fn start(&self, edge: EdgeIndex) -> Option<End> {
        Some((self.storage.edge_endpoints(edge)?.0, self.storage.edge_weight(edge)?.from_port))
    }

    /// Connects several inputs of one layer, as [`feed_one`](Self::feed_one) does for one.
    pub(super) fn feed_layer(&mut self, wires: impl ExactSizeIterator<Item = (End, End)>) {
        if wires.len() <= FEW {
            return wires.for_each(|(from, to)| self.feed_one(from, to));
        }
        // One scan of the layer's edges serves all of these inputs.
        let mut old = HashMap::default();
        for (from, to) in wires {
            if old.is_empty() {
                old.extend(self.live_edges(to.0).map(|edge| (edge.weight().to_port, edge.id())));
            }
            let new = self.replace_wire(old.get(&to.1).copied(), from, to);
            old.extend(new.map(|new| (to.1, new)));
        }
    }

    pub(super) fn starve(&mut self, target: Input) {
        let Some(to) = self.node(target.layer) else { return };
        let wire = self.live_edges(to).find(|edge| edge.weight().to_port as usize == target.port).map(|edge| edge.id());
        if let Some(wire) = wire {
            self.unwire_one(wire);
        }
    }

    fn unwire_one(&mut self, edge: EdgeIndex) {
        if let Some(wire) = self.storage.edge_weight_mut(edge).filter(|wire| !wire.gone) {
            wire.gone = true;
            self.journal.records.push(Record::Unwired(edge, wire.span.unwrap_or_default()));
        }
    }

    /// Searches a cycle that the batch closed, here or in a body.
    pub(crate) fn check_batch(&self) -> Result<(), EditError> {
        // Each body is checked once, even if it was opened several times. Otherwise nested bodies would multiply the
        // work.
        let entered: BTreeSet<_> = self.journal.records.iter().filter_map(Record::entered).collect();
        let bodies = entered.into_iter().filter_map(|(node, at)| self.weight(node)?.bodies.get(at as usize));
        bodies.into_iter().try_for_each(|body| body.graph.check_batch())?;
        let cycle = if self.journal.may_close_cycle { self.find_cycle() } else { None };
        cycle.map_or(Ok(()), |cycle| Err(EditError::Cycle(cycle)))
    }

    /// Ends the batch: marked layers and edges are deleted.
    pub(crate) fn commit(&mut self) {
        let records = std::mem::take(&mut self.journal).records;
        self.fill_places(&records);
        self.drop_gone_wires(&records);
        for record in &records {
            match *record {
                Record::Removed(node) => {
                    self.removed.extend(self.storage[node].span);
                    self.storage.remove_node(node);
                    self.removed.append(&mut self.ignored);
                }
                Record::Added(_) => self.removed.append(&mut self.ignored),
                Record::Entered(node, at, _) => {
                    if let Some(body) = self.weight_mut(node).and_then(|layer| layer.bodies.get_mut(at as usize)) {
                        body.graph.commit();
                    }
                }
                Record::Changed(..) | Record::Named(_) | Record::Joined(_) | Record::Wired(_) | Record::Unwired(..) => {
                }
            }
        }
    }

    fn drop_gone_wires(&mut self, records: &[Record]) {
        let gone = || records.iter().filter_map(Record::unwired);
        self.removed.extend(gone().filter_map(|edge| self.storage.edge_weight(edge)?.span));
        if gone().nth(FEW).is_none() {
            for edge in gone() {
                self.storage.remove_edge(edge);
            }
            return;
        }
        let live = self.live_wires().map(|edge| (edge.source(), edge.target(), *edge.weight()));
        let wires: Vec<_> = live.collect();
        self.storage.clear_edges();
        for (source, target, wire) in wires {
            self.storage.add_edge(source, target, wire);
        }
    }

    /// Gives each new edge the position in the text of a removed edge of the same tensor.
    fn fill_places(&mut self, records: &[Record]) {
        let homeless = records.iter().filter_map(|record| {
            let &Record::Wired(edge) = record else { return None };
            self.storage.edge_weight(edge).filter(|wire| !wire.gone && wire.span.is_none())?;
            Some((self.start(edge)?, edge))
        });
        let mut homeless: Vec<_> = homeless.collect();
        let starts: HashSet<_> = homeless.iter().map(|(start, _)| *start).collect();
        let places = records.iter().filter_map(Record::unwired).filter_map(|edge| {
            let span = self.storage.edge_weight(edge)?.span?;
            let start = self.start(edge).filter(|start| starts.contains(start))?;
            Some((start, span, edge))
        });
        let mut places: Vec<_> = places.collect();
        places.sort_unstable();
        // Earlier edges get the earlier positions.
        homeless.sort_by_key(|(start, _)| *start);
        let mut places = places.into_iter().peekable();
        for (start, new) in homeless {
            while places.next_if(|(other, ..)| *other < start).is_some() {}
            let Some((_, span, old)) = places.next_if(|(other, ..)| *other == start) else { continue };
            for (edge, span) in [(old, None), (new, Some(span))] {
                if let Some(wire) = self.storage.edge_weight_mut(edge) {
                    wire.span = span;
                }
            }
        }
    }

    /// Undoes all records beyond this length of the journal, the last one first. In this order each edge is at the
    /// head of petgraph's lists.
    pub(crate) fn roll_back(&mut self, mark: usize) {
        let names = self.journal.names.take();
        let touched: Vec<_> = names.iter().flat_map(|_| self.touched_since(mark)).collect();
        self.undo(mark);
        self.journal.names = names.map(|mut names| {
            names.rewind(self, mark, &touched);
            names
        });
    }

    fn undo(&mut self, mark: usize) {
        while self.journal.len() > mark
            && let Some(record) = self.journal.records.pop()
        {
            match record {
                Record::Added(node) => {
                    if let Some(layer) = self.storage.remove_node(node) {
                        self.forget(layer.id);
                    }
                }
                Record::Removed(node) => {
                    if let Some(layer) = self.storage.node_weight_mut(node) {
                        layer.gone = false;
                        self.journal.gone_layers -= 1;
                        let id = layer.id;
                        if let Some(at) = self.position(id) {
                            self.index[at].1 = node;
                        }
                    }
                }
                Record::Changed(node, before) => {
                    if let Some(layer) = self.storage.node_weight_mut(node) {
                        let bodies = std::mem::take(&mut layer.bodies);
                        *layer = Layer { bodies, ..*before };
                    }
                }
                Record::Named(before) => {
                    let Renamed { output, names, edited } = *before;
                    if let Some(layer) = self.layer_mut(output.layer) {
                        layer.edited = edited;
                        if let Some(port) = layer.outputs.get_mut(output.port) {
                            port.names = names;
                        }
                    }
                }
                Record::Joined(before) => {
                    let Joined { layer, at, port_map, back_edges, edited } = *before;
                    if let Some(owner) = self.layer_mut(layer) {
                        owner.edited = edited;
                        if let Some(body) = owner.bodies.get_mut(at) {
                            (body.port_map, body.back_edges) = (port_map, back_edges);
                        }
                    }
                }
                Record::Wired(edge) => drop(self.storage.remove_edge(edge)),
                Record::Unwired(edge, span) => {
                    if let Some(wire) = self.storage.edge_weight_mut(edge) {
                        (wire.gone, wire.span) = (false, Some(span).filter(|span| *span != Span::default()));
                    }
                }
                Record::Entered(node, at, mark) => {
                    if let Some(body) = self.weight_mut(node).and_then(|layer| layer.bodies.get_mut(at as usize)) {
                        body.graph.roll_back(mark as usize);
                    }
                }
            }
        }
    }

    /// Clears a layer's entry in the index. The entry itself remains, so that ids keep their positions and are not
    /// reused.
    fn forget(&mut self, id: LayerId) {
        if let Some(at) = self.position(id) {
            self.index[at].1 = NodeIndex::end();
        }
    }
}
