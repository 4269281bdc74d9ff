//! Edges, and errors in the connections of layers.

use std::collections::BTreeMap;
use std::mem::take;

use smallvec::SmallVec;

use super::super::tokens::Element;
use super::layer::NO_PORT_ID;
use super::{Fatal, Read, SHOWN};
use crate::base::hash::{HashMap, HashSet};
use crate::findings::{About, Code, Diagnostic, Message, Severity, Text, message};
// Dropped layers are found by the text of `type` alone, as in OpenVINO, before operations are known.
use crate::base::span::Span;
use crate::model::graph::{Direction, Graph, Input, Layer, LayerId, Output, Start};

/// Attributes of an edge, in the order in which they are written.
const EDGE_ATTRIBUTES: [&str; 4] = ["from-layer", "from-port", "to-layer", "to-port"];

/// An edge as written in the file, by ids.
pub(super) struct Edge {
    from: (u64, u64),
    to: (u64, u64),
    span: Span,
}

impl Edge {
    fn about(&self) -> About {
        let [from, to] = [self.from, self.to].map(|(layer, port)| (LayerId(layer), port));
        About::Edge { from, to }
    }
}

impl<'a> Read<'a> {
    /// Reads edges and connects the graph. `open` receives the first edge that does not connect two ports and all later
    /// ones; they are connected after all layers are read.
    pub(super) fn edges(&mut self, parent: &Element<'a>, graph: &mut Graph, open: &mut Vec<Edge>) -> Result<(), Fatal> {
        let mut ports = PortIndex::default();
        let mut wire = |edge: Edge| match ports.ends(graph, &edge).filter(|_| open.is_empty()) {
            Some((source, target)) => graph.wire(source, target, Some(edge.span)),
            None => open.push(edge),
        };
        loop {
            // Fast path: almost every edge has the same form, from which four numbers are read without parsing
            // attributes.
            while let Some(([from, from_port, to, to_port], span)) = self.tokens.plain_edge(parent) {
                wire(Edge { from: (from, from_port), to: (to, to_port), span });
            }
            match self.tokens.child(Some(parent))? {
                Some(element) if element.name() == "edge" => self.edge(&element)?.into_iter().for_each(&mut wire),
                Some(element) => self.unknown_element(&element, None)?,
                None => return Ok(()),
            }
        }
    }

    fn edge(&mut self, element: &Element<'a>) -> Result<Option<Edge>, Fatal> {
        let values = self.known_attributes(element, EDGE_ATTRIBUTES, |_, _| {})?;
        let mut numbers = [None; 4];
        for ((name, value), number) in EDGE_ATTRIBUTES.into_iter().zip(values).zip(&mut numbers) {
            *number = self.required(element, name, value);
        }
        self.no_children(element)?;
        let span = self.tokens.span_since(element);
        Ok(match numbers {
            [Some(from), Some(from_port), Some(to), Some(to_port)] => {
                Some(Edge { from: (from, from_port), to: (to, to_port), span })
            }
            [_, _, to, _] => {
                self.lost.extend(to.map(LayerId));
                self.damaged = true;
                None
            }
        })
    }

    pub(super) fn wire(&mut self, graph: &mut Graph, edges: Vec<Edge>) {
        let reported = self.diagnostics.len();
        self.connect(graph, edges);
        if !self.repeated.is_empty() && self.diagnostics[reported..].iter().any(Diagnostic::is_error) {
            self.blame_repeated_ids(reported);
        }
    }

    /// Reports ids that several layers share, and removes errors that are consequences.
    #[cold]
    fn blame_repeated_ids(&mut self, reported: usize) {
        let errors: Vec<_> = self.diagnostics.drain(reported..).collect();
        let mut missing = Vec::new();
        for error in errors {
            match &error.layer {
                _ if error.code == Code::UnknownLayer => missing.push(error),
                Some(_) if error.code == Code::UnknownPort => {}
                Some(layer) if self.repeated.iter().any(|&(id, _)| id == layer.id) => {}
                _ => self.diagnostics.push(error),
            }
        }
        // If edges use an id that no layer has, it most likely belongs to one of these layers.
        let id = missing.iter().find_map(|error| match *error.about {
            About::Edge { from, .. } => Some(from.0),
            _ => None,
        });
        for &(_, at) in &self.repeated {
            let Some(found) = self.diagnostics.get_mut(at) else { continue };
            found.severity = Severity::Error;
            if let Some(id) = id {
                found.fixes = vec![message!("give one of them the id {}, which edges use and no layer has"; id).into()];
            }
        }
    }

    fn connect(&mut self, graph: &mut Graph, edges: Vec<Edge>) {
        let mut ports = PortIndex::default();
        let mut lost = take(&mut self.lost);
        let mut bad = Vec::new();
        for edge in edges {
            match ports.ends(graph, &edge) {
                Some((source, target)) => graph.wire(source, target, Some(edge.span)),
                None => {
                    if let Some(meant) = self.turned(graph, &mut ports, &edge)
                        && let Some((source, target)) = ports.ends(graph, &meant)
                    {
                        graph.wire(source, target, Some(edge.span));
                        continue;
                    }
                    if graph.layer(LayerId(edge.to.0)).is_none() && !self.damaged {
                        graph.ignore(edge.span);
                    }
                    lost.push(LayerId(edge.to.0));
                    bad.push(edge);
                }
            }
        }
        let mut absent = BTreeMap::<LayerId, Vec<Edge>>::new();
        for edge in bad {
            let ends = [edge.to.0, edge.from.0].map(LayerId);
            match ends.into_iter().find(|&id| graph.layer(id).is_none()) {
                Some(id) => absent.entry(id).or_default().push(edge),
                None => self.bad_edge(graph, &mut ports, &edge),
            }
        }
        self.report_absent_layers(graph, &absent);
        for id in lost {
            if let Some(layer) = graph.layer_mut(id) {
                layer.broken = true;
            }
        }
        self.check_names(graph);
        self.check_inputs(graph);
        if !self.dropped.is_empty() {
            // Layers with invalid inputs are disconnected, because they cannot be part of a valid graph.
            graph.disconnect(&take(&mut self.dropped));
        }
        self.check_cycles(graph);
        self.created = None;
        self.dropped.clear();
    }

    /// Reports a cycle of layers, as a warning if OpenVINO drops its layers.
    fn check_cycles(&mut self, graph: &mut Graph) {
        let Some(cycle) = graph.find_cycle() else { return };
        let refusal = self.cycle_refusal(graph, &cycle);
        let created = self.created.get_or_insert_with(|| created_layers(graph));
        let is_created = |layer: &Layer| created.contains(&layer.id);
        if created.is_empty() || cycle.iter().any(|&id| graph.layer(id).is_some_and(is_created)) {
            return self.report(refusal);
        }
        // More cycles may exist. All dropped layers are disconnected at once, which leaves only errors.
        let dropped: HashSet<_> = graph.layers().filter(|layer| !is_created(layer)).map(|layer| layer.id).collect();
        if let Some(&first) = cycle.first() {
            self.report_unless_dropped(graph, first, refusal);
        }
        for &id in &dropped {
            if let Some(layer) = graph.layer_mut(id) {
                layer.broken = true;
            }
        }
        graph.disconnect(&dropped);
        if let Some(cycle) = graph.find_cycle() {
            self.report(self.cycle_refusal(graph, &cycle));
        }
    }

    fn cycle_refusal(&self, graph: &Graph, cycle: &[LayerId]) -> Diagnostic {
        let layers: Vec<_> = cycle.iter().take(SHOWN).filter_map(|&id| graph.layer(id)).collect();
        let mut list: Vec<_> = layers.iter().map(|layer| format!("{} `{}`", layer.id, layer.name)).collect();
        if cycle.len() > layers.len() {
            list.push(format!("{} more", cycle.len() - layers.len()));
        }
        let mut refusal = Diagnostic::new(Code::Cycle, message!("layers form a cycle: {}"; list.join(" -> ")));
        for (at, layer) in layers.iter().enumerate() {
            refusal = refusal.at(
                self.tag_of(layer),
                if at == 0 { "one of its inputs depends on its own output" } else { "through here" },
            );
        }
        let refusal =
            refusal.help("remove the edge that closes the cycle; iteration needs a Loop or TensorIterator with a body");
        match layers.first() {
            Some(first) => self.of(first, refusal),
            None => refusal,
        }
    }

    /// Reports an edge that names a missing layer or port. It is an error if OpenVINO creates the layer where the edge
    /// ends.
    fn bad_edge(&mut self, graph: &Graph, ports: &mut PortIndex, edge: &Edge) {
        let (from, to) = (LayerId(edge.from.0), LayerId(edge.to.0));
        let (Some(producer), Some(consumer)) = (graph.layer(from), graph.layer(to)) else { return };
        let ends =
            [(producer, Direction::Output, "output", edge.from.1), (consumer, Direction::Input, "input", edge.to.1)];
        for (layer, direction, kind, id) in ends {
            if ports.position(layer, direction, id).is_some() {
                continue;
            }
            let message = message!("layer {} `{}` has no {} port {}"; layer.id, layer.name, kind, id);
            let refusal = Diagnostic::new(Code::UnknownPort, message).about(edge.about());
            let refusal = refusal.at(edge.span, message!("names {} port {}"; kind, id));
            let refusal = refusal.at(self.tag_of(layer), message!("has {}"; port_list(layer, kind)));
            let refusal = self.of(layer, refusal.help(help_with_port(layer, kind, id)));
            self.report_unless_dropped(graph, to, refusal);
        }
    }

    /// Reports an edge whose ends are swapped, with the corrected edge as fix.
    fn turned(&mut self, graph: &Graph, ports: &mut PortIndex, edge: &Edge) -> Option<Edge> {
        let (from, to) = (graph.layer(LayerId(edge.from.0))?, graph.layer(LayerId(edge.to.0))?);
        let meant = Edge { from: edge.to, to: edge.from, span: edge.span };
        let is_turned = ports.position(from, Direction::Output, edge.from.1).is_none()
            && ports.position(to, Direction::Input, edge.to.1).is_none()
            && ports.position(to, Direction::Output, edge.to.1).is_some()
            && ports.position(from, Direction::Input, edge.from.1).is_some();
        if !is_turned {
            return None;
        }
        let message = message!(
            "the edge from layer {} `{}` to layer {} `{}` has its ends swapped";
            from.id, from.name, to.id, to.name
        );
        let refusal = Diagnostic::new(Code::UnknownPort, message).about(edge.about());
        let label = message!(
            "port {} of layer {} is an input, port {} of layer {} an output";
            edge.from.1, from.id, edge.to.1, to.id
        );
        let refusal = refusal.at(edge.span, label).help(message!(
            "write <edge from-layer=\"{}\" from-port=\"{}\" to-layer=\"{}\" to-port=\"{}\"/>";
            to.id, edge.to.1, from.id, edge.from.1
        ));
        self.report_of(from, refusal);
        Some(meant)
    }

    /// Reports missing layers that edges name, with one finding per layer.
    fn report_absent_layers(&mut self, graph: &Graph, absent: &BTreeMap<LayerId, Vec<Edge>>) {
        if self.damaged {
            self.complete_ids(absent);
            return;
        }
        if graph.layers().next().is_none() && self.counts.contains_key(&Code::UnknownElement) {
            return;
        }
        for (&id, edges) in absent {
            let (mut out, into): (Vec<_>, Vec<_>) = edges.iter().partition(|edge| edge.from.0 == id.0);
            // An edge to a layer that OpenVINO creates decides.
            out.sort_by_cached_key(|edge| self.drops(graph, LayerId(edge.to.0)));
            let (code, first, rest) = match (&out[..], &into[..]) {
                ([first, rest @ ..], _) => (Code::UnknownLayer, *first, rest.iter().chain(&into)),
                ([], [first, rest @ ..]) => (Code::EdgeToUnknownLayer, *first, rest.iter().chain(&out)),
                ([], []) => continue,
            };
            let message = match (edges.len(), code) {
                (1, Code::UnknownLayer) => message!("an edge starts at layer {}, which does not exist"; id),
                (1, _) => message!("an edge ends at layer {}, which does not exist"; id),
                (count, _) => message!("{} edges name layer {}, which does not exist"; count, id),
            };
            let mut found = Diagnostic::new(code, message).about(first.about());
            found = match code {
                Code::UnknownLayer => found
                    .at(first.span, "`from-layer` names no layer of this graph")
                    .help(match &into[..] {
                        [only] => message!(
                            "write from-layer=\"{}\" from-port=\"{}\", where the edge to layer {} starts, and remove that edge; or restore the missing layer";
                            only.from.0, only.from.1, id
                        ),
                        _ => "set `from-layer` to the layer that produces the tensor, or restore the missing layer".into(),
                    }),
                _ => found
                    .at(first.span, "OpenVINO ignores this edge")
                    .help("set `to-layer` to the layer that uses the tensor, or remove the edge"),
            };
            for edge in rest.take(SHOWN) {
                let end = if edge.from.0 == id.0 { "starts" } else { "ends" };
                found = found.at(edge.span, message!("{} at the same layer"; end));
            }
            match graph.layer(LayerId(first.to.0)) {
                Some(consumer) => {
                    let found = if edges.len() == 1 { self.of(consumer, found) } else { found };
                    self.report_unless_dropped(graph, LayerId(first.to.0), found);
                }
                None => self.report(found),
            }
        }
    }

    /// Adds to the finding of a layer without an id: the id that edges use and no layer has.
    fn complete_ids(&mut self, absent: &BTreeMap<LayerId, Vec<Edge>>) {
        let (Some(id), 1) = (absent.keys().next(), absent.len()) else { return };
        if let Some(found) = self.diagnostics.iter_mut().rev().find(|found| match &*found.about {
            About::Missing { element, .. } => element == "layer" && found.about.is_about("id"),
            about => about.is_about("id"),
        }) {
            // The fix for a misspelled `id` names it already.
            if matches!(*found.about, About::Missing { written: Some(_), .. }) {
                return;
            }
            found.fixes = vec![message!("write id=\"{}\", which edges use and no layer has"; id).into()];
        }
    }

    /// Reports a problem with a layer's inputs; a warning if OpenVINO drops the layer.
    pub(super) fn report_unless_dropped(&mut self, graph: &Graph, id: LayerId, mut report: Diagnostic) {
        if report.is_error() && self.drops(graph, id) {
            report.severity = Severity::Warning;
            report = report.note(message!("OpenVINO drops layer {}, because no Result depends on it"; id));
        }
        self.report(report);
    }

    /// True if OpenVINO drops a layer, so that errors in its inputs do no harm.
    fn drops(&mut self, graph: &Graph, id: LayerId) -> bool {
        let created = self.created.get_or_insert_with(|| created_layers(graph));
        let dropped = !created.contains(&id);
        if dropped {
            self.dropped.insert(id);
        }
        dropped
    }

    /// Reports inputs that are fed twice, or not at all.
    fn check_inputs(&mut self, graph: &Graph) {
        for layer in graph.unordered() {
            let mut fed: SmallVec<[Option<Span>; 8]> = SmallVec::from_elem(None, layer.inputs.len());
            let mut twice = Vec::new();
            for wire in graph.wires_into(layer.id) {
                let port = wire.to_port as usize;
                match (fed.get_mut(port), wire.span) {
                    (Some(Some(other)), Some(span)) => twice.push((port, *other, span)),
                    (Some(home), span) => *home = span,
                    (None, _) => {}
                }
            }
            for (port, second, first) in twice {
                let message = message!("input {} of layer {} `{}` is fed by two edges"; port, layer.id, layer.name);
                let refusal = Diagnostic::new(Code::InputFedTwice, message).at(second, "the second edge");
                let refusal = refusal.at(first, "the first edge").at(self.tag_of(layer), "both end here");
                let free: Vec<_> = fed.iter().zip(layer.inputs()).filter(|(fed, _)| fed.is_none()).collect();
                let refusal = match free.first() {
                    Some((_, port)) => refusal
                        .help(message!("write to-port=\"{}\" in one edge: nothing is connected to that port"; port.id)),
                    None => refusal.help("remove the wrong edge, or combine the two tensors, for example by a Concat"),
                };
                self.report_unless_dropped(graph, layer.id, self.of(layer, refusal));
            }
            let fed_count = fed.iter().filter(|fed| fed.is_some()).count();
            for (port, _) in fed.iter().enumerate().take(fed_count).filter(|(_, fed)| fed.is_none()) {
                if self.damaged || layer.broken || fed_count == 0 {
                    break;
                }
                let message = message!("input {} of layer {} `{}` is not connected"; port, layer.id, layer.name);
                let refusal = Diagnostic::new(Code::UnconnectedInput, message);
                let refusal =
                    refusal.at(self.tag_of(layer), "a later input of this layer is connected, so this one must be");
                let refusal = self.of(layer, refusal.help("add the <edge> that ends at this port"));
                self.report_unless_dropped(graph, layer.id, refusal);
            }
        }
    }
}

/// Index of ports by id, in constant time even for a layer with many ports.
#[derive(Default)]
struct PortIndex {
    tables: HashMap<(LayerId, bool), HashMap<u64, usize>>,
}

impl PortIndex {
    /// The output and the input that an edge connects, if both exist.
    fn ends(&mut self, graph: &Graph, edge: &Edge) -> Option<(Output, Input)> {
        let (source, target) = (graph.layer(LayerId(edge.from.0))?, graph.layer(LayerId(edge.to.0))?);
        let from = self.position(source, Direction::Output, edge.from.1)?;
        let to = self.position(target, Direction::Input, edge.to.1)?;
        Some((source.id.output(from), target.id.input(to)))
    }

    fn position(&mut self, layer: &Layer, direction: Direction, id: u64) -> Option<usize> {
        match direction {
            Direction::Input => self.find(layer.id, true, &layer.inputs, |port| port.id, id),
            Direction::Output => self.find(layer.id, false, &layer.outputs, |port| port.id, id),
        }
    }

    fn find<P>(
        &mut self,
        layer: LayerId,
        input: bool,
        ports: &[P],
        id_of: impl Fn(&P) -> u64,
        id: u64,
    ) -> Option<usize> {
        // Edges refer to the first of equal ids.
        if ports.len() <= 32 {
            return ports.iter().position(|port| id_of(port) == id);
        }
        let table = self.tables.entry((layer, input)).or_insert_with(|| {
            let mut table = HashMap::default();
            for (at, port) in ports.iter().enumerate() {
                table.entry(id_of(port)).or_insert(at);
            }
            table
        });
        table.get(&id).copied()
    }
}

/// Suggests a fix for an edge that names a port which a layer does not have.
fn help_with_port(layer: &Layer, kind: &'static str, id: u64) -> Message {
    let (end, only) = match (kind, &layer.inputs[..], &layer.outputs[..]) {
        ("input", [], _) | ("output", _, []) => {
            return message!("declare the {} port: <{}><port id=\"{}\" …/></{}>"; kind, kind, id, kind);
        }
        ("input", [port], _) => ("to", Some(port.id)),
        ("input", ..) => ("to", None),
        (_, _, [port]) => ("from", Some(port.id)),
        _ => ("from", None),
    };
    match only {
        Some(NO_PORT_ID) => message!("write id=\"{}\" in its {} port"; id, kind),
        Some(only) => message!("write {}-port=\"{}\", or declare an {} port {}"; end, only, kind, id),
        None => message!("set {}-port to one of its {}"; end, port_list(layer, kind)),
    }
}

/// The layers that OpenVINO's reader creates: Parameters, and every layer that a Result or an Assign depends on.
fn created_layers(graph: &Graph) -> HashSet<LayerId> {
    let starts = graph.unordered().filter(|layer| layer.start().is_some());
    let mut pending: Vec<_> = starts.map(Layer::id).collect();
    let mut created: HashSet<_> = pending.iter().copied().collect();
    while let Some(id) = pending.pop() {
        // A Parameter has no inputs, so edges to it are not followed.
        if graph.layer(id).and_then(Layer::start) == Some(Start::Parameter) {
            continue;
        }
        pending.extend(graph.sources(id).filter(|&source| created.insert(source)));
    }
    created
}

fn port_list(layer: &Layer, kind: &'static str) -> Message {
    let said = |id: u64| if id == NO_PORT_ID { "without an id".to_owned() } else { id.to_string() };
    let (count, ids): (_, Vec<_>) = match kind {
        "input" => (layer.inputs.len(), layer.inputs.iter().take(SHOWN).map(|port| said(port.id)).collect()),
        _ => (layer.outputs.len(), layer.outputs.iter().take(SHOWN).map(|port| said(port.id)).collect()),
    };
    match count {
        0 => message!("no {} ports"; kind),
        1 => message!("{} port {}"; kind, Text(&ids[0])),
        _ if count > ids.len() => message!("{} ports {} and {} more"; kind, Text(ids.join(", ")), count - ids.len()),
        _ => message!("{} ports {}"; kind, Text(ids.join(", "))),
    }
}
