//! Candidates that change edges, ids and port maps.

use std::collections::{BTreeSet, HashMap, HashSet};

use typelift_promote::ElementType;

use super::TRIALS;
use super::proof::is_explained;
use super::reading::{self, Kind};
use super::site::{Candidate, Case, EdgeText, Evidence, Ground, Site, element};
use super::trial::Needs;
use super::whole;
use crate::base::span::Span;
use crate::check::Declared;
use crate::findings::TextEdit;
use crate::model::graph::{Direction, InputPort, Layer, LayerId, OutputPort, numbered_prefix, split_names};
use crate::ops::{self, LayerKind};
use crate::text::xml::{self, Tag};

/// Maximum number of producers that are tried for an input.
const PRODUCERS: usize = 8;
/// Maximum number of a layer's inputs for which producers are tried. Each is compared with every tensor of the graph.
const INPUTS: usize = 64;

impl Case<'_> {
    fn layer(&self, id: u64) -> Option<&Layer> {
        self.graph.layer(LayerId(id))
    }

    /// Candidates for the edges at the positions of a finding, and for the edges between the layers of a cycle there.
    pub(super) fn edge_ends(&self, places: &[Span], is_cycle: bool) -> Vec<Candidate> {
        let holds = |span: Span| places.iter().any(|place| span.start <= place.start && place.end <= span.end);
        let mut found = Vec::new();
        for edge in self.edges.iter().filter(|edge| holds(edge.span)) {
            found.extend(self.other_sources(edge));
            found.extend(self.other_targets(edge));
            found.push(Candidate::one(Evidence::Part, Ground::None, edge.span, ""));
            let turned = self.with_values(edge, &[(0, 2), (1, 3), (2, 0), (3, 1)]);
            found.push(Candidate::new(Evidence::File, self.ground_of_turned(edge), turned));
            found.push(self.with_exchanged_layers(edge));
        }
        let is_meant = |id: u64| self.layer(id).is_some_and(|layer| holds(layer.span().unwrap_or_default()));
        let back = self.edges.iter().filter(|edge| is_cycle && is_meant(edge.from.0) && is_meant(edge.to.0));
        found.extend(back.flat_map(|edge| self.other_sources(edge)));
        found
    }

    /// Edits of the values of an edge, each by position, to those at other positions.
    fn with_values(&self, edge: &EdgeText, values: &[(usize, usize)]) -> Vec<TextEdit> {
        values.iter().map(|&(to, from)| TextEdit::new(edge.ends[to], edge.ends[from].text(self.source()))).collect()
    }

    /// The edge with its layers exchanged, whose ports are right. It is a rival of another end.
    fn with_exchanged_layers(&self, edge: &EdgeText) -> Candidate {
        Candidate::new(Evidence::Unused, Ground::None, self.with_values(edge, &[(0, 2), (2, 0)]))
    }

    /// The ends of an edge were swapped if each names a port that only the other layer has.
    fn ground_of_turned(&self, edge: &EdgeText) -> Ground {
        let (Some(source), Some(target)) = (self.layer(edge.from.0), self.layer(edge.to.0)) else {
            return Ground::None;
        };
        let has_output = |layer: &Layer, id| layer.outputs().iter().any(|port| port.id() == id);
        let has_input = |layer: &Layer, id| layer.inputs().iter().any(|port| port.id() == id);
        let is_turned = !has_output(source, edge.from.1) && has_input(source, edge.from.1);
        let is_proved = is_turned && !has_input(target, edge.to.1) && has_output(target, edge.to.1);
        self.wired(is_proved, "swap: each end names a port of the other layer", &[source, target])
    }

    /// A ground that holds if the ports of the layers are numbered as OpenVINO numbers them, and all is well wired
    /// after the change.
    fn wired(&self, is_proved: bool, says: &'static str, layers: &[&Layer]) -> Ground {
        let is_regular = is_proved && layers.iter().all(|layer| self.is_numbered(layer));
        if is_regular { Ground::File(says, Needs::Wiring) } else { Ground::None }
    }

    fn other_sources(&self, edge: &EdgeText) -> Vec<Candidate> {
        let Some(target) = self.layer(edge.to.0) else { return Vec::new() };
        let input = target.inputs().iter().position(|port| port.id() == edge.to.1);
        self.sources(target, input, Some(edge))
    }

    /// Candidates for the end of an edge: the nearest inputs without one that are declared as its tensor is.
    fn other_targets(&self, edge: &EdgeText) -> Vec<Candidate> {
        let origin = self.layer(edge.from.0);
        let made = origin.and_then(|layer| layer.outputs().iter().find(|port| port.id() == edge.from.1));
        let mut others = Vec::new();
        for layer in self.graph.layers().filter(|layer| layer.id().0 != edge.from.0) {
            for (port, feed) in layer.inputs().iter().zip(self.graph.feeds(layer.id())) {
                let declared = Declared::read(self.source(), port.declared, port.content);
                if feed.is_none() && made.is_none_or(|made| declared.is_like(self.source(), made)) {
                    let (id, distance) = (layer.id().0, layer.id().0.abs_diff(edge.to.0));
                    others.push((distance, layer, redirected(edge, (id, port.id()), 2)));
                }
            }
        }
        others.sort_by_key(|(distance, ..)| *distance);
        let nearest = others.into_iter().take(PRODUCERS);
        let ground = |layer| self.wired(true, "the only input without an edge", &[layer]);
        nearest.map(|(_, layer, edits)| Candidate::new(Evidence::File, ground(layer), edits)).collect()
    }

    /// Candidates for the producer of a layer's input that its port declares. These are the other outputs of the
    /// present one, the tensor with the name of a Result, unused tensors, and the nearest tensors.
    fn sources(&self, layer: &Layer, input: Option<usize>, edge: Option<&EdgeText>) -> Vec<Candidate> {
        let id = layer.id().0;
        let port = input.and_then(|at| layer.inputs().get(at));
        let declared = port.map(|port| Declared::read(self.source(), port.declared, port.content));
        let feed = input.and_then(|at| self.graph.feeds(layer.id()).get(at).copied().flatten());
        let now = feed.and_then(|(source, port)| source.outputs().get(port));
        let is_contradicted = declared.as_ref().is_some_and(|declared| {
            now.is_none_or(|now| declared.contradicts(now, true) && !is_explained(declared, now))
        });
        // The edges of the text are used, because the reader removes those that close cycles.
        let used: HashSet<(u64, u64)> = self.edges.iter().map(|edge| edge.from).collect();
        let users: HashSet<u64> = self.edges.iter().map(|edge| edge.from.0).collect();
        let given: Vec<String> = layer.output_names().map(split_names).unwrap_or_default().into_iter().collect();
        let is_body = !std::ptr::eq(self.graph, &self.model.graph);
        let usual = input.filter(|_| now.is_none()).and_then(|input| self.usual_source(layer, input));
        let mut found = Vec::new();
        for source in self.graph.layers().filter(|source| source.id() != layer.id()) {
            let is_own = edge.is_some_and(|edge| source.id().0 == edge.from.0);
            let is_only = is_own && now.is_none() && source.outputs().len() == 1;
            for port in source.outputs() {
                let from = (source.id().0, port.id());
                let fits = declared.as_ref().is_none_or(|declared| declared.is_like(self.source(), port));
                if edge.is_some_and(|edge| edge.from == from) || !is_own && !fits {
                    continue;
                }
                // Operations with several outputs often leave one unused, and the output of an Assign is almost never
                // used.
                let is_lost = !users.contains(&from.0) && ops::kind(source) != LayerKind::Assign;
                let is_named = !given.is_empty() && given.iter().all(|name| port.names().iter().any(|it| it == name));
                // The port may exist in a layer with the next lower or higher id.
                let is_next = now.is_none()
                    && edge.is_some_and(|edge| from.0.abs_diff(edge.from.0) == 1 && from.1 == edge.from.1);
                let is_unused = !used.contains(&from);
                let is_usual = usual.as_deref() == Some(source.name());
                let evidence = match () {
                    () if is_usual => Evidence::Near,
                    () if is_lost || is_named || is_next || is_only || is_own && is_unused => Evidence::Unused,
                    () if is_unused || is_own => Evidence::File,
                    () => Evidence::Table,
                };
                // A body may leave a Parameter unused.
                let is_needed = is_lost && !(is_body && ops::kind(source) == LayerKind::Parameter);
                let is_proved = is_contradicted && (is_needed || is_named && self.is_only_named(layer, &given));
                let ground = match is_only {
                    true => self.wired(true, "the only output of the layer", &[source]),
                    false => {
                        let says = "the only unused layer, or the tensor with the name of the Result";
                        self.wired(is_proved, says, &[layer, source])
                    }
                };
                let rank = (!is_usual, !is_own, !is_next, !is_named, !is_lost, !is_unused, from.0.abs_diff(id));
                found.push((rank, from, evidence, ground));
            }
        }
        found.retain(|(.., evidence, _)| declared.is_some() || *evidence == Evidence::Unused);
        found.sort_by_key(|&(rank, ..)| rank);
        let candidates = found.into_iter().take(PRODUCERS).filter_map(|(_, from, evidence, ground)| {
            let edits = match edge {
                Some(edge) => redirected(edge, from, 0),
                None => vec![self.new_edge(from, (id, port?.id()))],
            };
            Some(Candidate::new(evidence, ground, edits))
        });
        candidates.collect()
    }

    /// The name of the layer that an input reads, if a block before or after this one has a layer of the same name there:
    /// `layers.2.out` for `layers.3.add` if `layers.4.add` reads `layers.3.out`.
    fn usual_source(&self, layer: &Layer, input: usize) -> Option<String> {
        let (family, number, inner) = in_block(layer.name())?;
        let siblings = self.graph.layers().filter_map(|other| {
            let (its, at, name) = in_block(other.name())?;
            let is_sibling = (its, name, other.ty()) == (family, inner, layer.ty()) && at != number;
            let (source, _) = self.graph.feeds(other.id()).get(input).copied().flatten().filter(|_| is_sibling)?;
            Some((at.abs_diff(number), at, in_block(source.name())?))
        });
        let (_, at, (family, of, inner)) = siblings.min_by_key(|(distance, ..)| *distance)?;
        Some(format!("{family}{}{inner}", (of + number).checked_sub(at)?))
    }

    fn is_only_named(&self, result: &Layer, given: &[String]) -> bool {
        let others = self.graph.unordered().filter(|layer| layer.id() != result.id());
        !others.filter_map(Layer::output_names).flat_map(split_names).any(|name| given.contains(&name))
    }

    /// Edges that end at a port that does not exist or has another edge.
    fn stray(&self) -> Vec<&EdgeText> {
        let mut ends = HashMap::<(u64, u64), usize>::new();
        for edge in &self.edges {
            *ends.entry(edge.to).or_default() += 1;
        }
        let layers = self.graph.layers();
        let inputs: HashSet<(u64, u64)> =
            layers.flat_map(|layer| layer.inputs().iter().map(|port| (layer.id().0, port.id()))).collect();
        self.edges.iter().filter(|edge| ends[&edge.to] > 1 || !inputs.contains(&edge.to)).take(PRODUCERS).collect()
    }

    /// The edit that adds an edge, at its position in the order of edges.
    fn new_edge(&self, from: (u64, u64), to: (u64, u64)) -> TextEdit {
        let text = format!(
            "<edge from-layer=\"{}\" from-port=\"{}\" to-layer=\"{}\" to-port=\"{}\"/>",
            from.0, from.1, to.0, to.1
        );
        let later = self.edges.iter().find(|edge| edge.from > from);
        let at = match (later, self.edges.last()) {
            (Some(edge), _) => edge.span.start,
            (None, Some(edge)) => edge.span.end,
            (None, None) => {
                let tags = xml::tags(self.source(), self.graph.edges_span.unwrap_or_default());
                tags.first().map_or(0, |tag| tag.span.end)
            }
        };
        let before = self.source().get(..at as usize).unwrap_or_default();
        let indent: String = before.chars().rev().take_while(|c| [' ', '\t'].contains(c)).collect();
        let text = if later.is_some() { format!("{text}\n{indent}") } else { format!("\n{indent}{text}") };
        TextEdit::new(Span { start: at, end: at }, text)
    }

    /// Candidates for the id of a layer that edges name and the graph does not have.
    pub(super) fn ids(&self) -> Vec<Candidate> {
        let named: BTreeSet<u64> = self.edges.iter().flat_map(|edge| [edge.from.0, edge.to.0]).collect();
        if named.iter().all(|id| self.layer(*id).is_some()) {
            return Vec::new();
        }
        let layers = xml::tags(self.source(), self.graph.layers_span.unwrap_or_default());
        let tags: Vec<_> = layers.iter().filter(|tag| tag.parent == Some(0)).collect();
        let numbers: Vec<Option<u64>> = tags.iter().map(|tag| Some(tag.number(self.source(), "id")?.1)).collect();
        let mut counts = HashMap::<u64, usize>::new();
        for number in numbers.iter().flatten() {
            *counts.entry(*number).or_default() += 1;
        }
        let missing = named.iter().filter(|id| !counts.contains_key(id)).take(3);
        // If the ids of the file are ascending, an id out of order is probably wrong.
        let is_in_order = |at: usize, id: u64| {
            let before = at.checked_sub(1).and_then(|before| numbers[before]);
            let after = numbers.get(at + 1).copied().flatten();
            before.is_none_or(|before| before < id) && after.is_none_or(|after| id < after)
        };
        let ground = Ground::File("ids: consecutive, and no other layer is without an edge", Needs::Ids);
        let mut found = Vec::new();
        for &id in missing {
            for (at, tag) in tags.iter().enumerate() {
                let number = numbers[at];
                if number.is_some_and(|number| named.contains(&number) && counts[&number] == 1) {
                    continue;
                }
                let is_near = number.is_some_and(|number| is_in_order(at, id) && !is_in_order(at, number));
                let evidence = if is_near { Evidence::Near } else { Evidence::File };
                let edit = tag.set(self.source(), "id", &id.to_string());
                found.push(Candidate::new(evidence, ground.clone(), vec![edit]));
            }
        }
        found.truncate(3 * PRODUCERS);
        found
    }
}

/// The family, the number and the rest of the name of a layer in a block: `layers.`, 3 and `.add` of `layers.3.add`.
fn in_block(name: &str) -> Option<(&str, u64, &str)> {
    let block = numbered_prefix(name)?;
    let family = block.trim_end_matches(|c: char| c.is_ascii_digit());
    Some((family, block[family.len()..].parse().ok().filter(|number| *number < u64::MAX / 2)?, &name[block.len()..]))
}

/// `first` is the index of the layer among its four values.
fn redirected(edge: &EdgeText, (layer, port): (u64, u64), first: usize) -> Vec<TextEdit> {
    let now = if first == 0 { edge.from } else { edge.to };
    let layer = (now.0 != layer).then(|| TextEdit::new(edge.ends[first], layer.to_string()));
    let port = (now.1 != port).then(|| TextEdit::new(edge.ends[first + 1], port.to_string()));
    layer.into_iter().chain(port).collect()
}

impl Site<'_> {
    pub(super) fn inputs(&self) -> Vec<Candidate> {
        let case = self.case;
        let id = self.layer.id().0;
        let into: Vec<_> = case.edges.iter().filter(|edge| edge.to.0 == id).collect();
        let by_port: HashMap<u64, &EdgeText> = into.iter().rev().map(|edge| (edge.to.1, *edge)).collect();
        let stray = case.stray();
        let mut inputs: Vec<_> =
            self.layer.inputs().iter().zip(self.graph.feeds(self.layer.id())).enumerate().collect();
        // If there are too many inputs, those without an edge are tried first.
        inputs.sort_by_key(|(_, (_, feed))| feed.is_some());
        let mut found = Vec::new();
        for (at, (port, feed)) in inputs.into_iter().take(INPUTS) {
            let declared = Declared::read(self.source(), port.declared, port.content);
            let fed = feed.and_then(|(source, port)| source.outputs().get(port));
            let is_fed_well = fed.is_some_and(|output| !declared.contradicts(output, true));
            let to = (id, port.id());
            if declared.element_type.is_some() {
                let sources = case.sources(self.layer, Some(at), by_port.get(&port.id()).copied());
                found.extend(sources.into_iter().filter(|it| !is_fed_well || it.evidence == Evidence::Unused));
            }
            // The missing edge may exist, but end at a wrong port.
            for edge in stray.iter().filter(|_| feed.is_none()) {
                let ground = case.wired(true, "the only input without an edge", &[self.layer]);
                found.push(Candidate::new(Evidence::Unused, ground, redirected(edge, to, 2)));
                found.extend((edge.from.0 == id).then(|| case.with_exchanged_layers(edge)));
            }
        }
        // Pairs are not collected but computed one by one, because a wide Concat has millions.
        let pairs = into.iter().enumerate().flat_map(|(at, one)| into[at + 1..].iter().map(move |other| (one, other)));
        for (one, other) in pairs.take(TRIALS + 1) {
            let swap = [(one, other), (other, one)]
                .map(|(edge, by)| TextEdit::new(edge.ends[3], by.ends[3].text(self.source())));
            let ground = self.ground_of_order([one, other]);
            found.push(Candidate::new(Evidence::File, ground, swap.to_vec()));
        }
        found
    }

    /// Two inputs were swapped if their ports contradict their tensors, and each is like the other's tensor only.
    fn ground_of_order(&self, edges: [&EdgeText; 2]) -> Ground {
        let tensors = self.graph.tensors(self.layer.id());
        let inputs = self.layer.inputs();
        let declared = |port: &InputPort| Declared::read(self.source(), port.declared, port.content);
        let fits = |port: &InputPort, tensor: &OutputPort| !declared(port).contradicts(tensor, true);
        let wrong: Vec<_> = inputs.iter().zip(&tensors).filter(|(port, tensor)| !fits(port, tensor)).collect();
        let is_of_both = wrong.len() == 2
            && wrong.iter().all(|(port, tensor)| {
                let others = tensors.iter().filter(|tensor| fits(port, tensor)).count();
                edges.iter().any(|edge| edge.to.1 == port.id()) && others == 1 && !is_explained(&declared(port), tensor)
            });
        let is_all = is_of_both && tensors.len() == inputs.len();
        self.case.wired(is_all, "ports: only this order agrees with their declarations", &[self.layer])
    }

    /// The values that the tags of port maps and back edges give an attribute.
    fn joined(&self, attribute: &str) -> HashSet<&str> {
        self.joints().filter_map(|tag| Some(tag.value(self.source(), attribute)?.text(self.source()))).collect()
    }

    pub(super) fn port_maps(&self) -> Vec<Candidate> {
        let mut found = Vec::new();
        let enters: Vec<String> = self.layer.inputs().iter().map(|port| port.id().to_string()).collect();
        let leaves: Vec<String> = self.layer.outputs().iter().map(|port| port.id().to_string()).collect();
        let bodies = self.layer.bodies().iter().flat_map(|body| body.graph.layers());
        let internals: Vec<String> =
            bodies.filter(|layer| layer.start().is_some()).map(|layer| layer.id().to_string()).collect();
        let numbers = ["0", "1", "-1", "2"].map(str::to_owned);
        for tag in self.joints() {
            for &(name, value) in &tag.attributes {
                let attribute = name.text(self.source());
                let (all, is_id) = match attribute {
                    "external_port_id" if tag.name.text(self.source()) == "input" => (&enters[..], true),
                    "external_port_id" => (&leaves[..], true),
                    "internal_layer_id" | "from-layer" | "to-layer" => (&internals[..], true),
                    "axis" | "start" | "end" | "stride" | "part_size" => (&numbers[..], false),
                    _ => continue,
                };
                let used = self.joined(attribute);
                let mut others: Vec<_> = all.iter().filter(|it| *it != value.text(self.source())).collect();
                others.sort_by_key(|it| (is_id && used.contains(it.as_str()), it.len(), it.as_str()));
                for id in others.into_iter().take(PRODUCERS) {
                    let is_free = is_id && !used.contains(id.as_str());
                    let evidence = if is_free { Evidence::File } else { Evidence::Table };
                    found.push(Candidate::one(evidence, Ground::None, value, id.as_str()));
                }
            }
        }
        found.extend(self.new_joints());
        found.extend(whole::renumbered_bodies(self));
        found
    }

    /// Candidates that add entries for Parameters and Results of bodies without one.
    fn new_joints(&self) -> Vec<Candidate> {
        let mut found = Vec::new();
        let read = |ty, content| Declared::read(self.source(), ty, content);
        let input = |port: &InputPort| (port.id(), read(port.declared, port.content));
        let output = |port: &OutputPort| (port.id(), read(port.declared, port.content));
        for body in self.layer.bodies() {
            let list = format!("{}port_map", body.name().strip_suffix("body").unwrap_or_default());
            let is_list = |tag: &Tag| tag.parent == Some(0) && tag.name.text(self.source()) == list;
            let Some(at) = self.tags.iter().position(is_list) else { continue };
            let start = Span { start: self.tags[at].span.end, end: self.tags[at].span.end };
            let named = |attribute: &str| -> HashSet<&str> {
                let entries = self.tags.iter().filter(|tag| tag.parent == Some(at));
                entries.filter_map(|tag| Some(tag.value(self.source(), attribute)?.text(self.source()))).collect()
            };
            let (externals, internals) = (named("external_port_id"), named("internal_layer_id"));
            let ends = body.graph.layers().filter(|layer| layer.start().is_some());
            let ends: Vec<_> = ends.filter(|layer| !internals.contains(layer.id().to_string().as_str())).collect();
            let ground = |is_only: bool| match is_only && self.case.is_error {
                true => Ground::File("the only two ends without an entry", Needs::Trial),
                false => Ground::None,
            };
            for layer in &ends {
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
                    found.push(Candidate::one(Evidence::Unused, ground(ends.len() == 1), start, entry));
                }
                // Input 0 of an If is its condition. Loops may slice an input that is mapped.
                let is_free = |id: u64| !externals.contains(id.to_string().as_str()) && (id > 0 || element == "output");
                let are_two = ends.len() == 1 && outside.iter().filter(|(id, _)| is_free(*id)).count() == 1;
                let are_only = are_two && ops::kind(self.layer) == LayerKind::If;
                for (id, outside) in outside.iter().filter(|(id, _)| !externals.contains(id.to_string().as_str())) {
                    let is_like =
                        inside.element_type == outside.element_type && inside.dims.len() == outside.dims.len();
                    let evidence = if is_like { Evidence::Unused } else { Evidence::Table };
                    let entry = format!("<{element} external_port_id=\"{id}\" internal_layer_id=\"{}\"/>", layer.id());
                    let is_only = are_only && is_free(*id) && inside == *outside;
                    found.push(Candidate::one(evidence, ground(is_only), start, entry));
                }
            }
        }
        found
    }

    /// Candidates that add ports which edges use and the layer does not have, with the declaration of the other end.
    pub(super) fn new_ports(&self) -> Vec<Candidate> {
        let own = self.layer.id().0;
        let mut found = Vec::new();
        for edge in &self.case.edges {
            let lacks_output = edge.from.0 == own && self.layer.outputs().iter().all(|port| port.id() != edge.from.1);
            let lacks_input = edge.to.0 == own && self.layer.inputs().iter().all(|port| port.id() != edge.to.1);
            let declared = if lacks_output {
                let to = self.graph.layer(LayerId(edge.to.0));
                let port = to.and_then(|to| to.inputs().iter().find(|port| port.id() == edge.to.1));
                port.map(|port| (Direction::Output, edge.from.1, port.declared, port.content))
            } else if lacks_input {
                let from = self.graph.layer(LayerId(edge.from.0));
                let port = from.and_then(|from| from.outputs().iter().find(|port| port.id() == edge.from.1));
                port.map(|port| (Direction::Input, edge.to.1, port.declared, port.content))
            } else {
                None
            };
            let Some((direction, id, ty, content)) = declared.filter(|_| found.len() <= TRIALS) else { continue };
            let Some(precision) = ty.and_then(ElementType::port_name) else { continue };
            let dims = xml::declared_dims(self.source(), content);
            let dims: String = dims.iter().map(|dim| format!("<dim>{dim}</dim>")).collect();
            let ports = self.ports(direction);
            let are_silent = ports.iter().all(|port| port.value(self.source(), "precision").is_none());
            let port = match are_silent && !ports.is_empty() {
                true => format!("<port id=\"{id}\"/>"),
                false => format!("<port id=\"{id}\" precision=\"{precision}\">{dims}</port>"),
            };
            found.extend(self.with_port(direction, id, port));
        }
        found
    }

    fn with_port(&self, direction: Direction, id: u64, port: String) -> Option<Candidate> {
        let list = if direction == Direction::Input { "input" } else { "output" };
        let number = |tag: &Tag| Some(tag.number(self.source(), "id")?.1);
        let before = self.ports(direction).into_iter().rfind(|tag| number(tag).is_some_and(|it| it < id));
        let list_tag = self.tags.iter().find(|tag| tag.parent == Some(0) && tag.name.text(self.source()) == list);
        let (at, text) = match (before, list_tag) {
            (Some(tag), _) => (element(self.source(), tag).end, port),
            (None, Some(tag)) if !tag.span.text(self.source()).ends_with("/>") => (tag.span.end, port),
            _ => {
                let last =
                    self.tags.iter().rfind(|tag| tag.parent == Some(0)).map(|tag| element(self.source(), tag).end);
                let at = last.or_else(|| Some(self.tags.first()?.span.end))?;
                (at, format!("<{list}>{port}</{list}>"))
            }
        };
        let ids = [Direction::Input, Direction::Output].into_iter().flat_map(|it| self.ports(it)).filter_map(number);
        let mut ids: Vec<u64> = ids.chain([id]).collect();
        ids.sort_unstable();
        let evidence = if (0..).zip(&ids).all(|(at, &id)| at == id) { Evidence::Near } else { Evidence::Table };
        // The names of the new port's tensor are lost.
        let is_end = matches!(ops::kind(self.layer), LayerKind::Parameter | LayerKind::Result);
        let has_names = |layer: &Layer| layer.outputs().iter().any(|port| !port.names().is_empty());
        let loses_names = direction == Direction::Output && self.graph.unordered().any(has_names);
        let ground = self.ground_of_ports(!is_end && !loses_names);
        Some(Candidate::one(evidence, ground, Span { start: at, end: at }, text))
    }

    fn ground_of_ports(&self, is_proved: bool) -> Ground {
        if is_proved { Ground::File("ids: the port ids are consecutive", Needs::Ids) } else { Ground::None }
    }

    pub(super) fn port_ids(&self) -> Vec<Candidate> {
        let own = self.layer.id().0;
        let inputs = self.layer.inputs().iter().map(InputPort::id);
        let ids: Vec<u64> = inputs.chain(self.layer.outputs().iter().map(OutputPort::id)).collect();
        // Ids that are all too high by the same number have a hypothesis of their own.
        let is_shifted = ids
            .first()
            .is_some_and(|&first| first > 0 && (0..).zip(&ids).all(|(at, &id)| id.checked_sub(first) == Some(at)));
        let ground = self.ground_of_ports(!is_shifted);
        let mut found = Vec::new();
        for direction in [Direction::Input, Direction::Output] {
            let ends =
                self.case.edges.iter().map(|edge| if direction == Direction::Input { edge.to } else { edge.from });
            let named: BTreeSet<u64> = ends.filter(|end| end.0 == own).map(|end| end.1).collect();
            let ports = self.ports(direction);
            let numbers: Vec<Option<u64>> = ports.iter().map(|tag| Some(tag.number(self.source(), "id")?.1)).collect();
            let mut counts = HashMap::<u64, usize>::new();
            for number in numbers.iter().flatten() {
                *counts.entry(*number).or_default() += 1;
            }
            for missing in named.iter().filter(|id| !counts.contains_key(id)).take(PRODUCERS) {
                for (tag, number) in ports.iter().zip(&numbers) {
                    let is_used = number.is_some_and(|number| named.contains(&number) && counts[&number] == 1);
                    if is_used || found.len() > TRIALS {
                        continue;
                    }
                    let span = tag.value(self.source(), "id");
                    let evidence = match span {
                        Some(span) if self.is_numbered_with(Some((span, *missing))) => Evidence::Near,
                        Some(_) => Evidence::Table,
                        None => Evidence::File,
                    };
                    let edit = tag.set(self.source(), "id", &missing.to_string());
                    found.push(Candidate::new(evidence, ground.clone(), vec![edit]));
                }
            }
        }
        found
    }
}

const IDS: &[&str] = &["id", "from-layer", "from-port", "to-layer", "to-port", "external_port_id", "internal_layer_id"];

/// Candidates that correct the spelling of ids, such as `(3)`.
pub(super) fn ids_in_guise(source: &str, places: &[Span]) -> Vec<Candidate> {
    let mut found = Vec::new();
    for &place in places {
        let before = source.get(..place.start as usize).unwrap_or_default();
        let name = before.strip_suffix(['"', '\'']).and_then(|before| before.trim_end().strip_suffix('='));
        let name = name.and_then(|before| before.trim_end().rsplit(char::is_whitespace).next());
        let Some(read) = reading::number(place.text(source), Kind::Integer) else { continue };
        if name.is_some_and(|name| IDS.contains(&name)) && !read.slips.is_empty() {
            found.push(Candidate::one(Evidence::Near, Ground::Text(read.slips), place, read.value));
        }
    }
    found
}
