//! Graph: layers, the edges between their ports, and elementary changes.

pub(crate) mod address;
mod build;
mod change;
mod compact;
pub(crate) mod error;
mod journal;
pub(crate) mod layer;
pub(crate) mod layer_map;
pub(crate) mod model;
pub(crate) mod names;
pub(crate) mod place;
mod text;
pub(crate) mod verify;
mod version_10;
mod visits;

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::mem::replace;
use std::num::ParseIntError;
use std::str::FromStr;

use petgraph::Direction::{Incoming, Outgoing};
use petgraph::stable_graph::{EdgeReference, NodeIndex, StableDiGraph};
use petgraph::visit::{EdgeRef, IntoEdgeReferences, NodeIndexable};
use serde::Serialize;
use smallvec::SmallVec;

pub(crate) use address::FindError;
pub(crate) use error::EditError;
pub(crate) use layer::{
    Attribute, AttributeList, BackEdge, Body, Direction, InputPort, Joints, Layer, NewLayer, OperationName, OutputPort,
    PortMapEntry, Start, join_names, parts_of_names, split_names,
};
pub(crate) use layer_map::LayerMap;
pub(crate) use model::{IrVersion, Model, OutputConstraints};
pub(crate) use names::{Names, numbered_prefix, numeric_words};
pub(crate) use place::Place;
pub(crate) use text::Text;
pub(crate) use verify::Violation;

use crate::base::span::Span;

/// Id of a layer in the file. It is unique in its graph and never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct LayerId(pub u64);

impl LayerId {
    /// The largest id that OpenVINO reads.
    pub(crate) const LARGEST: u64 = i64::MAX as u64;

    /// Returns the output of this layer at a position, from 0.
    #[must_use]
    pub fn output(self, port: usize) -> Output {
        Output { layer: self, port }
    }

    /// Returns the input of this layer at a position, from 0.
    #[must_use]
    pub fn input(self, port: usize) -> Input {
        Input { layer: self, port }
    }
}

impl FromStr for LayerId {
    type Err = ParseIntError;

    fn from_str(text: &str) -> Result<Self, ParseIntError> {
        text.parse().map(Self)
    }
}

impl fmt::Display for LayerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Output port of a layer, by position; it identifies a tensor in a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Output {
    /// The layer that produces the tensor.
    pub layer: LayerId,
    /// The position among its outputs, from 0.
    pub port: usize,
}

/// Formats the layer and the position: `7:0`.
impl fmt::Display for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.layer, self.port)
    }
}

/// Input port of a layer, by position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Input {
    /// The layer that uses the tensor.
    pub layer: LayerId,
    /// The position among its inputs, from 0.
    pub port: usize,
}

/// Formats the layer and the position: `7:0`.
impl fmt::Display for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.layer, self.port)
    }
}

/// An edge of the petgraph graph: an output of its source feeds an input of its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wire {
    /// Position among the outputs of the source.
    pub from_port: u32,
    /// Position among the inputs of the target.
    pub to_port: u32,
    pub(crate) span: Option<Span>,
    /// True if the file's `<edge>` at `span` is out of date.
    pub(crate) touched: bool,
    /// True if the current batch of edits removed it.
    gone: bool,
}

impl Wire {
    pub(crate) fn new(from_port: usize, to_port: usize, span: Option<Span>) -> Self {
        let [from_port, to_port] = [from_port, to_port].map(|port| u32::try_from(port).unwrap_or(u32::MAX));
        Self { from_port, to_port, span, touched: span.is_none(), gone: false }
    }

    /// Sort key: the position in the file. Added edges are the last.
    pub(crate) fn place(&self) -> (bool, Option<u32>) {
        (self.span.is_none(), self.span.map(|span| span.start))
    }
}

/// The layers of a model or of a body, and the edges between them.
///
/// The storage is a petgraph graph, available as [`petgraph`](Self::petgraph) for its algorithms. Layers are identified
/// by their [`LayerId`], which survives every edit.
#[derive(Clone, Default)]
pub struct Graph {
    storage: StableDiGraph<Layer, Wire>,
    /// Every layer by id, sorted.
    index: Vec<(LayerId, NodeIndex)>,
    /// The next free id: one more than the largest id that a layer ever had.
    next_id: u64,
    /// Positions of removed layers and edges in the text.
    removed: Vec<Span>,
    /// Positions of ignored layers and edges that could take effect after another edit.
    ignored: Vec<Span>,
    journal: journal::Journal,
    /// The text of `<rt_info>`, from the file or set by an edit.
    pub(crate) rt_info: Option<Text>,
    pub(crate) rt_info_span: Option<Span>,
    /// Position of the element that contains the graph: the root, or that of a body.
    pub(crate) span: Option<Span>,
    pub(crate) layers_span: Option<Span>,
    pub(crate) edges_span: Option<Span>,
}

/// Formats the number of layers and edges. [`layers`](Graph::layers) lists the layers.
impl fmt::Debug for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Graph({} layers, {} edges)", self.len(), self.storage.edge_count())
    }
}

impl Graph {
    pub(crate) fn with_capacity(layers: usize) -> Self {
        // Spare capacity for edits: an edge that is moved exists twice until the batch ends.
        let storage = StableDiGraph::with_capacity(layers, layers / 2 * 5);
        Self { storage, ..Self::default() }
    }

    /// Returns the petgraph graph for its algorithms. Node weights are layers, edge weights the ports that they
    /// connect. Removed parts are deleted at the end of a batch.
    pub fn petgraph(&self) -> &StableDiGraph<Layer, Wire> {
        &self.storage
    }

    /// Returns the petgraph index of a layer; it is valid until the next edit.
    pub fn node(&self, id: LayerId) -> Option<NodeIndex> {
        self.position(id).map(|at| self.index[at].1).filter(|&node| node != NodeIndex::end())
    }

    fn position(&self, id: LayerId) -> Option<usize> {
        // Files usually number their layers from 0 without gaps.
        match usize::try_from(id.0).ok().and_then(|at| Some((at, self.index.get(at)?))) {
            Some((at, &(found, _))) if found == id => Some(at),
            _ => self.index.binary_search_by_key(&id, |entry| entry.0).ok(),
        }
    }

    /// Returns the layer with this id.
    pub fn layer(&self, id: LayerId) -> Option<&Layer> {
        self.storage.node_weight(self.node(id)?)
    }

    /// Every layer in no particular order, which is faster than [`layers`](Self::layers).
    pub(crate) fn unordered(&self) -> impl Iterator<Item = &Layer> {
        self.storage.node_weights().inspect(|_| visits::note_layer()).filter(|layer| !layer.gone)
    }

    /// Returns the number of layers, without bodies.
    pub fn len(&self) -> usize {
        self.storage.node_count() - self.journal.gone_layers
    }

    pub(crate) fn is_edited(&self) -> bool {
        self.journal.len() > 0
    }

    /// True if there are no layers.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns every layer: those of the file in its order, each added one just before its first consumer. Added
    /// Parameters follow those of the file, in the order of their ids: this is the order of the model's inputs.
    pub fn layers(&self) -> impl Iterator<Item = &Layer> {
        let order = self.written_order().into_iter().inspect(|_| visits::note_layer());
        order.filter_map(|node| self.storage.node_weight(node)).filter(|layer| !layer.gone)
    }

    /// Every layer that has bodies, in the order of [`layers`](Self::layers).
    pub(crate) fn owners(&self) -> impl Iterator<Item = &Layer> {
        let any = self.unordered().any(|layer| !layer.bodies.is_empty());
        any.then(|| self.layers()).into_iter().flatten().filter(|layer| !layer.bodies.is_empty())
    }

    /// Returns the outputs that feed a layer, by input position; `None` for an unconnected input.
    pub fn producers(&self, id: LayerId) -> Vec<Option<Output>> {
        self.feeds(id).into_iter().map(|feed| feed.map(|(layer, port)| layer.id.output(port))).collect()
    }

    /// Returns the output that feeds an input; `None` if it is not connected.
    pub fn producer(&self, input: Input) -> Option<Output> {
        let wires = self.storage.edges_directed(self.node(input.layer)?, Incoming).inspect(visits::note);
        let mut wires = wires.filter(|edge| !edge.weight().gone && edge.weight().to_port as usize == input.port);
        wires.next().and_then(|edge| Some(self.weight(edge.source())?.id.output(edge.weight().from_port as usize)))
    }

    /// Returns every edge: a tensor, and an input that it feeds. Edges of the file are in its order.
    pub fn wires(&self) -> impl Iterator<Item = (Output, Input)> {
        let in_order = self.live_wires().is_sorted_by_key(|edge| edge.weight().place());
        let sorted = (!in_order).then(|| {
            let mut sorted: Vec<_> = self.live_wires().collect();
            sorted.sort_by_key(|edge| edge.weight().place());
            sorted
        });
        let wires = in_order.then(|| self.live_wires()).into_iter().flatten().chain(sorted.into_iter().flatten());
        wires.filter_map(|edge| {
            let (from, to) = (self.weight(edge.source())?.id, self.weight(edge.target())?.id);
            Some((from.output(edge.weight().from_port as usize), to.input(edge.weight().to_port as usize)))
        })
    }

    /// Returns the inputs that a tensor feeds, in no particular order.
    pub fn consumers(&self, output: Output) -> impl Iterator<Item = Input> {
        let edges = self.node(output.layer).into_iter().flat_map(|node| self.storage.edges_directed(node, Outgoing));
        edges.inspect(visits::note).filter_map(move |edge| {
            let wire = edge.weight();
            (wire.from_port as usize == output.port && !wire.gone).then_some(())?;
            Some(self.storage.node_weight(edge.target())?.id.input(wire.to_port as usize))
        })
    }

    /// The ports of a layer's outputs with the inputs that they feed, in no particular order.
    pub(crate) fn uses(&self, id: LayerId) -> impl Iterator<Item = (usize, Input)> {
        let edges = self.node(id).into_iter().flat_map(|node| self.storage.edges_directed(node, Outgoing));
        edges.inspect(visits::note).filter(|edge| !edge.weight().gone).filter_map(|edge| {
            let layer = self.storage.node_weight(edge.target())?.id;
            Some((edge.weight().from_port as usize, Input { layer, port: edge.weight().to_port as usize }))
        })
    }

    pub(crate) fn used_ports(&self, id: LayerId) -> HashSet<usize> {
        self.uses(id).map(|(port, _)| port).collect()
    }

    /// Returns the consumers of a layer, each as often as it uses an output.
    pub fn users(&self, id: LayerId) -> impl Iterator<Item = LayerId> {
        let edges = self.node(id).into_iter().flat_map(|node| self.storage.edges_directed(node, Outgoing));
        let edges = edges.inspect(visits::note).filter(|edge| !edge.weight().gone);
        edges.filter_map(|edge| Some(self.storage.node_weight(edge.target())?.id))
    }

    /// Returns the port of an output.
    pub fn output(&self, output: Output) -> Option<&OutputPort> {
        self.layer(output.layer)?.outputs.get(output.port)
    }

    pub(crate) fn feeds(&self, id: LayerId) -> SmallVec<[Option<(&Layer, usize)>; 4]> {
        self.node(id).map_or_else(SmallVec::new, |node| self.by_input(node, |node, port| (&self.storage[node], port)))
    }

    /// The list ends before the first unconnected input.
    pub(crate) fn tensors(&self, id: LayerId) -> SmallVec<[&OutputPort; 4]> {
        let Some(node) = self.node(id) else { return SmallVec::new() };
        // Fast case: each input has its edge, and the edges are in the order of the inputs.
        let mut tensors = SmallVec::new();
        let mut missing = self.storage[node].inputs.len();
        for edge in self.storage.edges_directed(node, Incoming).filter(|edge| !edge.weight().gone) {
            let port = self.storage[edge.source()].outputs.get(edge.weight().from_port as usize);
            match port {
                Some(port) if edge.weight().to_port as usize + 1 == missing => tensors.push(port),
                _ => break,
            }
            missing -= 1;
        }
        if missing == 0 {
            tensors.reverse();
            return tensors;
        }
        let ports = self.by_input(node, |node, port| self.storage[node].outputs.get(port));
        ports.into_iter().map_while(Option::flatten).collect()
    }

    /// The port numbers give the order.
    fn by_input<T: Clone>(&self, node: NodeIndex, of: impl Fn(NodeIndex, usize) -> T) -> SmallVec<[Option<T>; 4]> {
        let mut feeds = SmallVec::from_elem(None, self.storage[node].inputs.len());
        let edges = self.storage.edges_directed(node, Incoming).inspect(visits::note);
        for edge in edges.filter(|edge| !edge.weight().gone) {
            if let Some(feed) = feeds.get_mut(edge.weight().to_port as usize) {
                *feed = Some(of(edge.source(), edge.weight().from_port as usize));
            }
        }
        feeds
    }

    pub(crate) fn sources(&self, id: LayerId) -> impl Iterator<Item = LayerId> {
        let wires = self.node(id).into_iter().flat_map(|node| self.storage.edges_directed(node, Incoming));
        wires.filter(|edge| !edge.weight().gone).map(|edge| self.storage[edge.source()].id)
    }

    /// Marks layers and all that they depend on. Returns the number of newly marked ones.
    pub(crate) fn mark_upstream(&self, from: impl IntoIterator<Item = LayerId>, marked: &mut LayerMap<()>) -> usize {
        let (mut pending, mut count) = (Vec::from_iter(from), 0);
        while let Some(id) = pending.pop() {
            if marked.insert(id, ()).is_none() {
                count += 1;
                pending.extend(self.sources(id));
            }
        }
        count
    }

    pub(crate) fn wires_into(&self, id: LayerId) -> impl Iterator<Item = &Wire> {
        let edges = self.node(id).into_iter().flat_map(|node| self.storage.edges_directed(node, Incoming));
        edges.map(|edge| edge.weight()).filter(|wire| !wire.gone)
    }

    /// Returns the layers at the two ends of the edge that is written here.
    pub fn ends_of_edge(&self, span: Span) -> Option<[&Layer; 2]> {
        self.joints().find(|(_, wire, _)| wire.span == Some(span)).map(|(from, _, to)| [from, to])
    }

    pub(crate) fn joints(&self) -> impl Iterator<Item = (&Layer, &Wire, &Layer)> {
        let edges = self.storage.edge_references().filter(|edge| !edge.weight().gone);
        edges.map(|edge| (&self.storage[edge.source()], edge.weight(), &self.storage[edge.target()]))
    }

    /// Returns every layer after its producers.
    ///
    /// # Errors
    /// The layers that form a cycle, in the order of the edges. A graph from a file or an edit has none.
    pub fn topological_order(&self) -> Result<Vec<LayerId>, Vec<LayerId>> {
        let order = self.node_order()?;
        Ok(order.into_iter().filter_map(|node| Some(self.storage.node_weight(node)?.id)).collect())
    }

    pub(crate) fn producers_first(&self, layers: Vec<LayerId>) -> Vec<LayerId> {
        if layers.len() < 2 {
            return layers;
        }
        let mut nodes: Vec<_> = layers.into_iter().filter_map(|id| self.node(id)).collect();
        nodes.sort_unstable();
        if !self.is_in_order() {
            let order = self.node_order().unwrap_or_default();
            nodes = order.into_iter().filter(|node| nodes.binary_search(node).is_ok()).collect();
        }
        nodes.into_iter().map(|node| self.storage[node].id).collect()
    }

    fn is_in_order(&self) -> bool {
        // The check begins with the newest edges, which most likely violate the order.
        let mut edges = self.storage.edge_references().rev().inspect(visits::note);
        edges.all(|edge| edge.source() < edge.target() || edge.weight().gone)
    }

    /// The nodes in [topological order](Self::topological_order).
    fn node_order(&self) -> Result<Vec<NodeIndex>, Vec<LayerId>> {
        let nodes = self.storage.node_indices().filter(|&node| !self.storage[node].gone);
        if self.is_in_order() {
            return Ok(nodes.collect());
        }
        let mut waits_for = vec![0_usize; self.storage.node_bound()];
        for edge in self.live_wires() {
            waits_for[edge.target().index()] += 1;
        }
        let mut order: Vec<_> = nodes.filter(|node| waits_for[node.index()] == 0).collect();
        let mut done = 0;
        while let Some(&node) = order.get(done) {
            done += 1;
            let wires = self.storage.edges_directed(node, Outgoing).filter(|edge| !edge.weight().gone);
            for consumer in wires.map(|edge| edge.target()) {
                waits_for[consumer.index()] -= 1;
                if waits_for[consumer.index()] == 0 {
                    order.push(consumer);
                }
            }
        }
        if order.len() == self.len() { Ok(order) } else { Err(self.cycle(|node| waits_for[node.index()] > 0)) }
    }

    pub(crate) fn find_cycle(&self) -> Option<Vec<LayerId>> {
        if self.is_in_order() || self.is_plainly_acyclic() { None } else { self.node_order().err() }
    }

    /// True if every edge leads forward in the order of the file, with added layers just before their first consumer. A
    /// quick check: `false` does not prove a cycle.
    fn is_plainly_acyclic(&self) -> bool {
        let wires = self.live_wires().map(|edge| (edge.source().index(), edge.target().index()));
        // Nodes of the file have odd positions. The even position before each is for added nodes that must precede it.
        let mut places: Vec<_> = (0..self.storage.node_bound() as u32).map(|node| 2 * node + 1).collect();
        for (from, to) in wires.clone().rev() {
            if (places[from], from) > (places[to], to) {
                places[from] = places[to] & !1;
            }
        }
        wires.clone().all(|(from, to)| (places[from], from) < (places[to], to))
    }

    fn live_wires(&self) -> impl DoubleEndedIterator<Item = EdgeReference<'_, Wire>> + Clone {
        self.storage.edge_references().filter(|edge| !edge.weight().gone)
    }

    /// `waits` is true for layers with a producer that waits too. Walking from such a layer to such producers reaches a
    /// layer twice.
    fn cycle(&self, waits: impl Fn(NodeIndex) -> bool) -> Vec<LayerId> {
        let mut path = Vec::new();
        let mut position = HashMap::new();
        let mut next = self.storage.node_indices().find(|&node| waits(node));
        while let Some(node) = next {
            if let Some(start) = position.insert(node, path.len()) {
                path.drain(..start);
                break;
            }
            path.push(node);
            let wires = self.storage.edges_directed(node, Incoming).filter(|edge| !edge.weight().gone);
            next = wires.map(|edge| edge.source()).find(|&node| waits(node));
        }
        path.reverse();
        let first = path.iter().enumerate().min_by_key(|&(_, node)| node).map_or(0, |(at, _)| at);
        path.rotate_left(first);
        path.iter().filter_map(|&node| Some(self.storage.node_weight(node)?.id)).collect()
    }

    /// All nodes in the order in which they are written. Nodes of the file keep their order, and added
    /// Parameters follow the file's. Every other added node is just before its first consumer; unused ones are last.
    fn written_order(&self) -> Vec<NodeIndex> {
        if self.storage.node_weights().all(|layer| layer.span.is_some()) {
            return self.storage.node_indices().collect();
        }
        let is_added = |node: NodeIndex| self.storage.node_weight(node).is_some_and(|layer| layer.span.is_none());
        let (mut added, mut originals): (Vec<_>, Vec<_>) =
            self.storage.node_indices().partition(|&node| is_added(node));
        let is_input = |node: &NodeIndex| self.storage[*node].start() == Some(Start::Parameter);
        added.sort_by_key(|&node| self.storage[node].id);
        let inputs: Vec<_> = added.extract_if(.., |node| is_input(node)).collect();
        if !inputs.is_empty() {
            let at = originals.iter().rposition(is_input).map_or(0, |at| at + 1);
            originals.splice(at..at, inputs);
        }
        let is_added = |node: NodeIndex| is_added(node) && !is_input(&node);
        let mut follows_added = vec![false; self.storage.node_bound()];
        for node in added.iter().flat_map(|&node| self.storage.neighbors(node)) {
            follows_added[node.index()] = true;
        }
        let mut order = Vec::with_capacity(self.storage.node_count());
        let mut written = vec![false; self.storage.node_bound()];
        let mut pending = Vec::new();
        for root in originals.into_iter().chain(added) {
            if !follows_added[root.index()] {
                order.extend((!replace(&mut written[root.index()], true)).then_some(root));
                continue;
            }
            // Chains of added producers are placed before it, without recursion.
            pending.push((root, false));
            while let Some((node, expanded)) = pending.pop() {
                if expanded {
                    order.push(node);
                } else if !replace(&mut written[node.index()], true) {
                    pending.push((node, true));
                    let feeds = self.by_input(node, |node, _| node);
                    pending.extend(feeds.iter().rev().flatten().map(|&f| (f, false)).filter(|&(f, _)| is_added(f)));
                }
            }
        }
        order
    }

    fn weight(&self, node: NodeIndex) -> Option<&Layer> {
        self.storage.node_weight(node)
    }

    pub(crate) fn layer_mut(&mut self, id: LayerId) -> Option<&mut Layer> {
        let node = self.node(id)?;
        self.storage.node_weight_mut(node)
    }

    fn weight_mut(&mut self, node: NodeIndex) -> Option<&mut Layer> {
        self.storage.node_weight_mut(node)
    }

    pub(crate) fn removed(&self) -> &[Span] {
        &self.removed
    }
}
