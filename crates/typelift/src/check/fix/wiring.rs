//! Candidates that change edges, ids and port maps.

use std::collections::{BTreeSet, HashMap, HashSet};

use typelift_promote::ElementType;

use super::TRIALS;
use super::change::Change;
use super::reading::{self, Kind};
use super::site::{Candidate, EdgeText, Evidence, Site, with_end_tag};
use super::whole;
use crate::base::span::Span;
use crate::check::Declared;
use crate::findings::TextEdit;
use crate::model::graph::{Direction, Graph, InputPort, Layer, LayerId, Model, Output, OutputPort, split_names};
use crate::ops::{self, LayerKind};
use crate::text::xml::{self, Tag};

/// Maximum number of producers that are tried for an input.
const PRODUCERS: usize = 8;
/// Maximum number of a layer's inputs for which producers are tried. Each is compared with every tensor of the graph.
const INPUTS: usize = 64;
/// Maximum number of layers of the same operation whose producers are compared.
const SIBLINGS: usize = 1000;

impl Site<'_> {
    pub(super) fn inputs(&self) -> Vec<Candidate> {
        let edges = self.edges;
        let into: Vec<_> = edges.iter().filter(|edge| edge.to.0 == self.layer.id().0).collect();
        let by_port: HashMap<u64, &EdgeText> = into.iter().rev().map(|edge| (edge.to.1, *edge)).collect();
        let stray = self.stray();
        let mut inputs: Vec<_> =
            self.layer.inputs().iter().zip(self.graph.feeds(self.layer.id())).enumerate().collect();
        // If there are too many inputs, those without an edge are tried first.
        inputs.sort_by_key(|(_, (_, feed))| feed.is_some());
        let mut found = Vec::new();
        for (at, (port, feed)) in inputs.into_iter().take(INPUTS) {
            let declared = Declared::read(self.source(), port.declared, port.content);
            let fed = feed.and_then(|(source, port)| source.outputs().get(port));
            let is_fed_well = fed.is_some_and(|output| !declared.contradicts(output, true));
            for Producer { from, evidence } in self.producers(at, &declared) {
                if is_fed_well && evidence != Evidence::Unused {
                    continue;
                }
                let edits = match by_port.get(&port.id()) {
                    Some(edge) => redirected(edge, from, 0),
                    None => vec![self.new_edge(from, port)],
                };
                let change = Change::Source { layer: self.layer.id(), input: at, from };
                found.push(Candidate::new(evidence, change, edits));
            }
            // The missing edge may exist, but end at a wrong port.
            if feed.is_none() {
                let to = (self.layer.id().0, port.id());
                let change = Change::Target { layer: self.layer.id() };
                let ends_here =
                    stray.iter().map(|edge| Candidate::new(Evidence::Unused, change.clone(), redirected(edge, to, 2)));
                found.extend(ends_here);
                let own = stray.iter().filter(|edge| edge.from.0 == self.layer.id().0);
                found.extend(own.map(|edge| with_exchanged_layers(self.source(), edge)));
            }
        }
        // Pairs are not collected but computed one by one, because a wide Concat has millions.
        let pairs = into.iter().enumerate().flat_map(|(at, one)| into[at + 1..].iter().map(move |other| (one, other)));
        for (one, other) in pairs.take(TRIALS + 1) {
            let swap = [(one, other), (other, one)]
                .map(|(edge, by)| TextEdit::new(edge.ends[3], by.ends[3].text(self.source())));
            let change = Change::Order { layer: self.layer.id() };
            found.push(Candidate::new(Evidence::File, change, swap.to_vec()));
        }
        found
    }

    fn declared(&self, element_type: Option<ElementType>, content: Span) -> Declared {
        Declared::read(self.source(), element_type, content)
    }

    fn producers(&self, input: usize, declared: &Declared) -> Vec<Producer> {
        if declared.element_type.is_none() {
            return Vec::new();
        }
        producers(self.graph, self.edges, self.layer, input, |layer, port| {
            layer.id() != self.layer.id() && declared.is_like(self.source(), port)
        })
    }

    /// The edit that adds an edge to a port, at its position in the order of edges.
    fn new_edge(&self, from: (u64, u64), port: &InputPort) -> TextEdit {
        let (id, to_port) = (self.layer.id(), port.id());
        let text = format!(
            "<edge from-layer=\"{}\" from-port=\"{}\" to-layer=\"{id}\" to-port=\"{to_port}\"/>",
            from.0, from.1
        );
        added_edge(self.source(), self.graph, self.edges, from, text)
    }

    /// Edges that end at a port that does not exist or has another edge.
    fn stray(&self) -> Vec<&EdgeText> {
        let mut ends = HashMap::<(u64, u64), usize>::new();
        for edge in self.edges {
            *ends.entry(edge.to).or_default() += 1;
        }
        let layers = self.graph.layers();
        let inputs: HashSet<(u64, u64)> =
            layers.flat_map(|layer| layer.inputs().iter().map(|port| (layer.id().0, port.id()))).collect();
        self.edges.iter().filter(|edge| ends[&edge.to] > 1 || !inputs.contains(&edge.to)).take(PRODUCERS).collect()
    }

    pub(super) fn port_maps(&self) -> Vec<Candidate> {
        let mut found = Vec::new();
        let enters: HashSet<String> = self.layer.inputs().iter().map(|port| port.id().to_string()).collect();
        let leaves: HashSet<String> = self.layer.outputs().iter().map(|port| port.id().to_string()).collect();
        let internals: HashSet<String> = self
            .layer
            .bodies()
            .iter()
            .flat_map(|body| body.graph.layers().filter(|layer| layer.start().is_some()))
            .map(|layer| layer.id().to_string())
            .collect();
        let named = |attribute: &str| -> HashSet<&str> {
            self.joints().filter_map(|tag| Some(tag.value(self.source(), attribute)?.text(self.source()))).collect()
        };
        for tag in self.joints() {
            for &(name, value) in &tag.attributes {
                let attribute = name.text(self.source());
                let all = match attribute {
                    "external_port_id" if tag.name.text(self.source()) == "input" => &enters,
                    "external_port_id" => &leaves,
                    "internal_layer_id" | "from-layer" | "to-layer" => &internals,
                    "axis" | "start" | "end" | "stride" | "part_size" => {
                        let numbers = ["0", "1", "-1", "2"].into_iter().filter(|it| *it != value.text(self.source()));
                        found.extend(
                            numbers.map(|number| Candidate::one(Evidence::Table, Change::Other, value, number)),
                        );
                        continue;
                    }
                    _ => continue,
                };
                let used = named(attribute);
                let mut others: Vec<_> = all.iter().filter(|it| *it != value.text(self.source())).collect();
                others.sort_by_key(|it| (used.contains(it.as_str()), it.len(), it.as_str()));
                let evidence = |it: &str| if used.contains(it) { Evidence::Table } else { Evidence::File };
                found.extend(
                    others
                        .into_iter()
                        .take(8)
                        .map(|it| Candidate::one(evidence(it), Change::Other, value, it.as_str())),
                );
            }
        }
        found.extend(self.new_joints());
        found.extend(whole::renumbered_bodies(self));
        found
    }

    /// Candidates that add entries for Parameters and Results of bodies without one.
    fn new_joints(&self) -> Vec<Candidate> {
        let mut found = Vec::new();
        for body in self.layer.bodies() {
            let list = format!("{}port_map", body.name().strip_suffix("body").unwrap_or_default());
            let Some(at) =
                self.tags.iter().position(|tag| tag.parent == Some(0) && tag.name.text(self.source()) == list)
            else {
                continue;
            };
            let start = Span { start: self.tags[at].span.end, end: self.tags[at].span.end };
            let named = |attribute: &str| -> HashSet<&str> {
                let entries = self.tags.iter().filter(|tag| tag.parent == Some(at));
                entries.filter_map(|tag| Some(tag.value(self.source(), attribute)?.text(self.source()))).collect()
            };
            let (externals, internals) = (named("external_port_id"), named("internal_layer_id"));
            let ends = body.graph.layers().filter(|layer| layer.start().is_some());
            let ends: Vec<_> = ends.filter(|layer| !internals.contains(layer.id().to_string().as_str())).collect();
            let is_lone = ends.len() == 1;
            for layer in ends {
                let input = |port: &InputPort| (port.id(), self.declared(port.declared, port.content));
                let output = |port: &OutputPort| (port.id(), self.declared(port.declared, port.content));
                let (element, inside, outside): (_, _, Vec<_>) = if layer.inputs().is_empty() {
                    ("input", layer.outputs().first().map(output), self.layer.inputs().iter().map(input).collect())
                } else {
                    ("output", layer.inputs().first().map(input), self.layer.outputs().iter().map(output).collect())
                };
                let Some((_, inside)) = inside else { continue };
                // The condition for another iteration is connected to no port.
                if element == "output"
                    && inside.element_type == Some(ElementType::Boolean)
                    && ops::kind(self.layer) == LayerKind::Loop
                    && !named("purpose").contains("execution_condition")
                {
                    let entry = format!(
                        "<output external_port_id=\"-1\" internal_layer_id=\"{}\" purpose=\"execution_condition\"/>",
                        layer.id()
                    );
                    found.push(Candidate::one(Evidence::Unused, Change::Joint { is_only: is_lone }, start, entry));
                }
                // Input 0 of an If is its condition. Loops may slice an input that is mapped.
                let is_free = |id: u64| !externals.contains(id.to_string().as_str()) && (id > 0 || element == "output");
                let are_two = is_lone && outside.iter().filter(|(id, _)| is_free(*id)).count() == 1;
                let is_only = are_two && ops::kind(self.layer) == LayerKind::If;
                for (id, outside) in outside {
                    let is_only = is_only && is_free(id) && inside == outside;
                    let id = id.to_string();
                    let is_like =
                        inside.element_type == outside.element_type && inside.dims.len() == outside.dims.len();
                    let evidence = if is_like { Evidence::Unused } else { Evidence::Table };
                    let entry = format!("<{element} external_port_id=\"{id}\" internal_layer_id=\"{}\"/>", layer.id());
                    if !externals.contains(id.as_str()) {
                        found.push(Candidate::one(evidence, Change::Joint { is_only }, start, entry));
                    }
                }
            }
        }
        found
    }
}

/// Possible producer of an input: layer and port, by the ids that an edge uses.
struct Producer {
    from: (u64, u64),
    evidence: Evidence,
}

/// The possible producers of a layer's input that satisfy `fits`. These are the tensor with the name of a Result,
/// unused tensors, tensors that feed the same input of similar layers, and the nearest tensors.
fn producers(
    graph: &Graph,
    edges: &[EdgeText],
    layer: &Layer,
    input: usize,
    fits: impl Fn(&Layer, &OutputPort) -> bool,
) -> Vec<Producer> {
    let id = layer.id().0;
    // The edges of the text are used, because the reader removes those that close cycles.
    let used: HashSet<(u64, u64)> = edges.iter().map(|edge| edge.from).collect();
    let users: HashSet<u64> = edges.iter().map(|edge| edge.from.0).collect();
    let given: HashSet<String> = layer.output_names().map(split_names).unwrap_or_default().into_iter().collect();
    let (mut same, mut distances) = (HashMap::<Output, usize>::new(), HashMap::<(i128, usize), usize>::new());
    for sibling in graph.unordered().filter(|it| it.ty() == layer.ty() && it.id() != layer.id()).take(SIBLINGS) {
        let Some((source, port)) = graph.feeds(sibling.id()).get(input).copied().flatten() else { continue };
        *same.entry(source.id().output(port)).or_default() += 1;
        let distance = i128::from(sibling.id().0) - i128::from(source.id().0);
        *distances.entry((distance, port)).or_default() += 1;
    }
    let mut found = Vec::new();
    for source in graph.layers() {
        for (at, port) in source.outputs().iter().enumerate().filter(|(_, port)| fits(source, port)) {
            let tensor = source.id().output(at);
            let is_unused = !used.contains(&(source.id().0, port.id()));
            let distance = i128::from(id) - i128::from(source.id().0);
            let count = |count: Option<&usize>| count.copied().unwrap_or_default();
            let siblings = count(same.get(&tensor)) + count(distances.get(&(distance, at)));
            // Operations with several outputs often leave one unused, and the output of an Assign is almost never
            // used.
            let is_lost = !users.contains(&source.id().0) && ops::kind(source) != LayerKind::Assign;
            let is_named = !given.is_empty() && port.names().iter().any(|name| given.contains(name));
            let evidence = match () {
                () if is_lost || is_named => Evidence::Unused,
                () if is_unused || siblings > 0 => Evidence::File,
                () => Evidence::Table,
            };
            let rank = (!is_named, !is_lost, std::cmp::Reverse(siblings), !is_unused, source.id().0.abs_diff(id));
            found.push((rank, Producer { from: (source.id().0, port.id()), evidence }));
        }
    }
    found.sort_by_key(|&(rank, _)| rank);
    found.into_iter().take(PRODUCERS).map(|(_, producer)| producer).collect()
}

/// `first` is the index of the layer among its four values.
fn redirected(edge: &EdgeText, (layer, port): (u64, u64), first: usize) -> Vec<TextEdit> {
    let now = if first == 0 { edge.from } else { edge.to };
    let mut edits = Vec::new();
    if now.0 != layer {
        edits.push(TextEdit::new(edge.ends[first], layer.to_string()));
    }
    if now.1 != port {
        edits.push(TextEdit::new(edge.ends[first + 1], port.to_string()));
    }
    edits
}

fn added_edge(source: &str, graph: &Graph, edges: &[EdgeText], from: (u64, u64), text: String) -> TextEdit {
    let later = edges.iter().find(|edge| edge.from > from);
    let at = match (later, edges.last()) {
        (Some(edge), _) => edge.span.start,
        (None, Some(edge)) => {
            let end = edge.span.end;
            let rest = source.get(end as usize..).unwrap_or_default();
            end + if rest.starts_with("</edge>") { "</edge>".len() as u32 } else { 0 }
        }
        (None, None) => {
            graph.edges_span.map_or(0, |span| xml::tags(source, span).first().map_or(0, |tag| tag.span.end))
        }
    };
    let before = source.get(..at as usize).unwrap_or_default();
    let indent: String = before.chars().rev().take_while(|c| [' ', '\t'].contains(c)).collect();
    let text = if later.is_some() { format!("{text}\n{indent}") } else { format!("\n{indent}{text}") };
    TextEdit::new(Span { start: at, end: at }, text)
}

pub(super) fn edge_ends(model: &Model, graph: &Graph, edges: &[EdgeText], places: &[Span]) -> Vec<Candidate> {
    let source = &model.source;
    let mut found = Vec::new();
    for edge in edges
        .iter()
        .filter(|edge| places.iter().any(|place| edge.span.start <= place.start && place.end <= edge.span.end))
    {
        found.extend(other_sources(model, graph, edges, edge));
        found.extend(other_targets(source, graph, edge));
        let whole = with_end_tag(source, edge.span);
        found.push(Candidate::one(Evidence::Part, Change::Other, whole, ""));
        let turned = [(0, 2), (1, 3), (2, 0), (3, 1)];
        let turned = turned.map(|(to, from)| TextEdit::new(edge.ends[to], edge.ends[from].text(source)));
        let change = Change::Turned { from: edge.from, to: edge.to };
        found.push(Candidate::new(Evidence::File, change, turned.to_vec()));
        found.push(with_exchanged_layers(source, edge));
    }
    found
}

/// The edge with its layers exchanged, whose ports are right. It is a rival of another end.
fn with_exchanged_layers(source: &str, edge: &EdgeText) -> Candidate {
    let edits = [(0, 2), (2, 0)].map(|(to, from)| TextEdit::new(edge.ends[to], edge.ends[from].text(source)));
    Candidate::new(Evidence::Unused, Change::Other, edits.to_vec())
}

/// Attributes that contain the id of a layer or port.
const IDS: &[&str] = &["id", "from-layer", "from-port", "to-layer", "to-port", "external_port_id", "internal_layer_id"];

/// Candidates that correct the spelling of ids, such as `(3)` or `0x3`.
pub(super) fn ids_in_guise(source: &str, places: &[Span]) -> Vec<Candidate> {
    let mut found = Vec::new();
    for &place in places {
        let before = source.get(..place.start as usize).unwrap_or_default();
        let name = before.strip_suffix(['"', '\'']).and_then(|before| before.trim_end().strip_suffix('='));
        let name = name.and_then(|before| before.trim_end().rsplit(char::is_whitespace).next());
        let Some(read) = reading::number(place.text(source), Kind::Integer) else { continue };
        if name.is_some_and(|name| IDS.contains(&name)) && !read.slips.is_empty() {
            found.push(Candidate::one(Evidence::Near, Change::Number(read.slips), place, read.value));
        }
    }
    found
}

/// Candidates for other starts of the edges of a cycle, whose layers are at these positions.
pub(super) fn cycle_edges(model: &Model, graph: &Graph, edges: &[EdgeText], places: &[Span]) -> Vec<Candidate> {
    let is_meant = |layer: &Layer| {
        let span = layer.span().unwrap_or_default();
        places.iter().any(|place| span.start <= place.start && place.end <= span.end)
    };
    let cycle: HashSet<u64> = graph.unordered().filter(|layer| is_meant(layer)).map(|layer| layer.id().0).collect();
    let back = edges.iter().filter(|edge| cycle.contains(&edge.from.0) && cycle.contains(&edge.to.0));
    back.flat_map(|edge| other_sources(model, graph, edges, edge)).collect()
}

fn other_sources(model: &Model, graph: &Graph, edges: &[EdgeText], edge: &EdgeText) -> Vec<Candidate> {
    let source = &model.source;
    let mut found = Vec::new();
    if let Some(producer) = graph.layer(LayerId(edge.from.0)) {
        let site = Site::new(model, graph, edges, producer);
        let is_regular = site.is_some_and(|site| site.is_numbered_with(None));
        let only = producer.outputs().len() == 1 && is_regular;
        let used = graph.used_ports(producer.id());
        for (at, port) in producer.outputs().iter().enumerate().filter(|(_, port)| port.id() != edge.from.1) {
            let evidence = if only || !used.contains(&at) { Evidence::Unused } else { Evidence::File };
            let change = match only {
                true => Change::OutputPort { from: producer.id() },
                false => source_of(graph, edge, (edge.from.0, port.id())),
            };
            found.push(Candidate::one(evidence, change, edge.ends[1], port.id().to_string()));
        }
    }
    let target = graph.layer(LayerId(edge.to.0));
    let Some(target) = target else { return found };
    let input = target.inputs().iter().position(|port| port.id() == edge.to.1);
    let declared = input.and_then(|at| target.inputs().get(at));
    let declared = declared.map(|port| Declared::read(source, port.declared, port.content));
    let fits = |layer: &Layer, port: &OutputPort| {
        let is_other = layer.id().0 != edge.from.0 && layer.id().0 != edge.to.0;
        is_other && declared.as_ref().is_none_or(|declared| declared.is_like(source, port))
    };
    let others = producers(graph, edges, target, input.unwrap_or_default(), fits);
    let others = others.into_iter().filter(|it| declared.is_some() || it.evidence == Evidence::Unused);
    found.extend(
        others.map(|it| Candidate::new(it.evidence, source_of(graph, edge, it.from), redirected(edge, it.from, 0))),
    );
    // The port may exist in a layer with the next lower or higher id.
    let neighbours = graph.unordered().filter(|layer| layer.id().0.abs_diff(edge.from.0) == 1);
    for layer in neighbours {
        let named = layer.outputs().iter().find(|port| port.id() == edge.from.1);
        if named.is_some_and(|port| fits(layer, port)) {
            let change = source_of(graph, edge, (layer.id().0, edge.from.1));
            found.push(Candidate::one(Evidence::Unused, change, edge.ends[0], layer.id().to_string()));
        }
    }
    found
}

fn source_of(graph: &Graph, edge: &EdgeText, from: (u64, u64)) -> Change {
    let target = graph.layer(LayerId(edge.to.0));
    let input = target.and_then(|layer| layer.inputs().iter().position(|port| port.id() == edge.to.1));
    input.map_or(Change::Other, |input| Change::Source { layer: LayerId(edge.to.0), input, from })
}

fn other_targets(source: &str, graph: &Graph, edge: &EdgeText) -> Vec<Candidate> {
    let origin = graph.layer(LayerId(edge.from.0));
    let made = origin.and_then(|layer| layer.outputs().iter().find(|port| port.id() == edge.from.1));
    let mut others = Vec::new();
    for layer in graph.layers().filter(|layer| layer.id().0 != edge.from.0) {
        for (port, feed) in layer.inputs().iter().zip(graph.feeds(layer.id())) {
            let declared = Declared::read(source, port.declared, port.content);
            let fits = made.is_none_or(|made| declared.is_like(source, made));
            if feed.is_none() && fits {
                let edits = redirected(edge, (layer.id().0, port.id()), 2);
                let is_same = layer.id().0 == edge.to.0;
                let change = Change::Target { layer: layer.id() };
                others.push((!is_same, layer.id().0.abs_diff(edge.to.0), change, edits));
            }
        }
    }
    others.sort_by_key(|(other, distance, ..)| (*other, *distance));
    let nearest = others.into_iter().take(PRODUCERS);
    nearest.map(|(.., change, edits)| Candidate::new(Evidence::File, change, edits)).collect()
}

pub(super) fn ids(source: &str, graph: &Graph, edges: &[EdgeText]) -> Vec<Candidate> {
    let mut ends = edges.iter().flat_map(|edge| [edge.from.0, edge.to.0]);
    if ends.all(|id| graph.layer(LayerId(id)).is_some()) {
        return Vec::new();
    }
    let layers = xml::tags(source, graph.layers_span.unwrap_or_default());
    let value = |tag: &Tag| tag.value(source, "id").map(|span| (span, span.text(source).trim().parse::<u64>().ok()));
    let tags: Vec<_> = layers.iter().filter(|tag| tag.parent == Some(0)).collect();
    let known: HashSet<u64> = tags.iter().filter_map(|tag| value(tag)?.1).collect();
    let mut missing: Vec<u64> =
        edges.iter().flat_map(|edge| [edge.from.0, edge.to.0]).filter(|id| !known.contains(id)).collect();
    missing.sort_unstable();
    missing.dedup();
    let named: HashSet<u64> = edges.iter().flat_map(|edge| [edge.from.0, edge.to.0]).collect();
    let mut counts = HashMap::<u64, usize>::new();
    for number in tags.iter().filter_map(|tag| value(tag)?.1) {
        *counts.entry(number).or_default() += 1;
    }
    let mut found = Vec::new();
    // If the ids of the file are ascending, an id out of order is probably wrong.
    let is_in_order = |at: usize, id: u64| {
        let number = |at: usize| value(tags.get(at)?)?.1;
        let before = at.checked_sub(1).and_then(number);
        before.is_none_or(|before| before < id) && number(at + 1).is_none_or(|after| id < after)
    };
    for &id in missing.iter().take(3) {
        for (at, tag) in tags.iter().enumerate() {
            match value(tag) {
                Some((span, Some(number))) if !named.contains(&number) || counts.get(&number) > Some(&1) => {
                    let is_near = is_in_order(at, id) && !is_in_order(at, number);
                    let evidence = if is_near { Evidence::Near } else { Evidence::File };
                    found.push(Candidate::one(evidence, Change::LayerId, span, id.to_string()));
                }
                Some((span, None)) => {
                    found.push(Candidate::one(Evidence::File, Change::LayerId, span, id.to_string()));
                }
                Some(_) => {}
                None => {
                    let edit = super::site::insert_attribute(tag, "id", &id.to_string());
                    found.push(Candidate::new(Evidence::File, Change::LayerId, vec![edit]));
                }
            }
        }
    }
    found.truncate(3 * PRODUCERS);
    found
}

impl Site<'_> {
    /// Candidates that add ports which edges use and the layer does not have, with the declaration of the other end.
    pub(super) fn new_ports(&self) -> Vec<Candidate> {
        let own = self.layer.id().0;
        let mut found = Vec::new();
        let inputs: HashSet<u64> = self.layer.inputs().iter().map(InputPort::id).collect();
        let outputs: HashSet<u64> = self.layer.outputs().iter().map(OutputPort::id).collect();
        for edge in self.edges {
            let declared = if edge.from.0 == own && !outputs.contains(&edge.from.1) {
                let to = self.graph.layer(LayerId(edge.to.0));
                let port = to.and_then(|to| to.inputs().iter().find(|port| port.id() == edge.to.1));
                port.map(|port| (Direction::Output, edge.from.1, port.declared, port.content))
            } else if edge.to.0 == own && !inputs.contains(&edge.to.1) {
                let from = self.graph.layer(LayerId(edge.from.0));
                let port = from.and_then(|from| from.outputs().iter().find(|port| port.id() == edge.from.1));
                port.map(|port| (Direction::Input, edge.to.1, port.declared, port.content))
            } else {
                None
            };
            let Some((direction, id, ty, content)) = declared else { continue };
            if found.len() > TRIALS {
                break;
            }
            let Some(precision) = ty.and_then(ElementType::port_name) else { continue };
            let dims = xml::declared_dims(self.source(), content);
            let dims: String = dims.iter().map(|dim| format!("<dim>{dim}</dim>")).collect();
            let port = match self.has_silent_ports(direction) {
                true => format!("<port id=\"{id}\"/>"),
                false => format!("<port id=\"{id}\" precision=\"{precision}\">{dims}</port>"),
            };
            found.extend(self.with_port(direction, id, port));
        }
        found
    }

    fn has_silent_ports(&self, direction: Direction) -> bool {
        let ports = self.ports(direction);
        !ports.is_empty() && ports.iter().all(|port| port.value(self.source(), "precision").is_none())
    }

    fn with_port(&self, direction: Direction, id: u64, port: String) -> Option<Candidate> {
        let list = if direction == Direction::Input { "input" } else { "output" };
        let number =
            |tag: &Tag| tag.value(self.source(), "id").and_then(|it| it.text(self.source()).trim().parse().ok());
        let before = self.ports(direction).into_iter().rfind(|tag| number(tag).is_some_and(|it: u64| it < id));
        let list_tag = self.tags.iter().find(|tag| tag.parent == Some(0) && tag.name.text(self.source()) == list);
        let (at, text) = match (before, list_tag) {
            (Some(tag), _) => (self.element(tag).end, port),
            (None, Some(tag)) if !tag.span.text(self.source()).ends_with("/>") => (tag.span.end, port),
            _ => {
                let last = self.tags.iter().rfind(|tag| tag.parent == Some(0)).map(|tag| self.element(tag).end);
                let at = last.or_else(|| Some(self.tags.first()?.span.end))?;
                (at, format!("<{list}>{port}</{list}>"))
            }
        };
        let ids = [Direction::Input, Direction::Output].into_iter().flat_map(|it| self.ports(it)).filter_map(number);
        let mut ids: Vec<u64> = ids.chain([id]).collect();
        ids.sort_unstable();
        let evidence = if (0..).zip(&ids).all(|(at, &id)| at == id) { Evidence::Near } else { Evidence::Table };
        let change = Change::NewPort { layer: self.layer.id(), direction };
        Some(Candidate::one(evidence, change, Span { start: at, end: at }, text))
    }

    pub(super) fn port_ids(&self) -> Vec<Candidate> {
        let edges = self.edges;
        let own = self.layer.id().0;
        let change = Change::PortId { layer: self.layer.id() };
        let mut found = Vec::new();
        for direction in [Direction::Input, Direction::Output] {
            let named: BTreeSet<u64> = edges
                .iter()
                .map(|edge| if direction == Direction::Input { edge.to } else { edge.from })
                .filter(|end| end.0 == own)
                .map(|end| end.1)
                .collect();
            let ports = self.ports(direction);
            let id = |tag: &&Tag| tag.value(self.source(), "id");
            let number = |tag: &&Tag| id(tag)?.text(self.source()).trim().parse::<u64>().ok();
            let mut counts = HashMap::<u64, usize>::new();
            for id in ports.iter().filter_map(number) {
                *counts.entry(id).or_default() += 1;
            }
            for missing in named.iter().filter(|id| !counts.contains_key(id)).take(PRODUCERS) {
                for tag in &ports {
                    let Some(span) = id(tag) else {
                        let edit = super::site::insert_attribute(tag, "id", &missing.to_string());
                        found.push(Candidate::new(Evidence::File, change.clone(), vec![edit]));
                        continue;
                    };
                    if found.len() <= TRIALS && number(tag).is_none_or(|id| !(named.contains(&id) && counts[&id] == 1))
                    {
                        let is_regular = self.is_numbered_with(Some((span, *missing)));
                        let evidence = if is_regular { Evidence::Near } else { Evidence::Table };
                        found.push(Candidate::one(evidence, change.clone(), span, missing.to_string()));
                    }
                }
            }
        }
        found
    }
}
