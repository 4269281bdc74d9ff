//! The pictures of a model: one of its graph, one of each body, and one of each block that repeats.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use serde::Serialize;
use typelift::map::Role;
use typelift::ops::{self, LayerKind};
use typelift::span::Lines;
use typelift::{Graph, Layer, LayerId, Model};
use unicode_width::UnicodeWidthStr;

use super::block;
use super::layout::{self, Picture};
use crate::listing;

/// An arrow across more ranks than this is drawn as two stubs; of a tensor that goes to many layers, across more than
/// `NEAR`.
const FAR: usize = 10;
const NEAR: usize = 2;
/// How many layers are many.
const MANY: usize = 6;
/// In a picture of more boxes, what computes shapes is part of what uses it.
const MANY_BOXES: usize = 60;
/// A constant with at most this many values shows them.
const FEW_VALUES: u64 = 6;

/// One picture.
#[derive(Serialize)]
pub(super) struct Scene {
    /// What it shows: the model, `loop/body`, or a block.
    pub(super) title: String,
    /// The scene that it opens from.
    pub(super) parent: Option<usize>,
    pub(super) nodes: Vec<Node>,
    pub(super) edges: Vec<Edge>,
}

/// A box.
#[derive(Default, Serialize)]
pub(super) struct Node {
    /// `None` for a block.
    pub(super) id: Option<LayerId>,
    pub(super) name: String,
    pub(super) path: String,
    pub(super) op: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) line: Option<usize>,
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) w: f64,
    pub(super) h: f64,
    /// Element types and shapes of its outputs.
    pub(super) outputs: Vec<(&'static str, String)>,
    pub(super) inputs: Vec<Entry>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) attributes: Vec<(String, String)>,
    /// From and to which type it converts, and what that can lose; empty where it loses nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) convert: Option<(String, &'static str, String)>,
    /// The scenes inside it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) opens: Vec<usize>,
    /// How many layers a block has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) layers: Option<usize>,
    /// The names of its tensors that are not its own.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) tensors: Vec<String>,
    /// How its largest weight is stored: `u4 → f16 → f32 · 30 KB`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) weights: Option<String>,
    /// Whether it is a layer that the model does not have any more.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) gone: bool,
}

/// What comes into a layer.
#[derive(Clone, Serialize)]
pub(super) struct Entry {
    /// The path of the layer that makes it, as the page looks for it; `None` for a constant.
    from: Option<String>,
    text: String,
    /// Whether the picture has no arrow for it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    stub: bool,
    /// The paths of the layers that compute a constant, which have no boxes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    held: Vec<String>,
    /// The paths of the layers of whose shapes it is computed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    of: Vec<String>,
}

/// A layer that was removed.
pub(super) struct Removed {
    pub(super) path: String,
    pub(super) operation: String,
    /// The names of what it used.
    pub(super) operands: Vec<String>,
    /// The path of a layer that used what it made.
    pub(super) user: String,
}

#[derive(Serialize)]
pub(super) struct Edge {
    pub(super) from: usize,
    pub(super) to: usize,
    #[serde(rename = "type")]
    pub(super) element_type: &'static str,
    pub(super) shape: String,
    /// The input of the layer that it leads to.
    #[serde(skip)]
    pub(super) input: usize,
}

/// Why a tensor has its type: one step, which leads to others.
#[derive(Serialize)]
pub(super) struct Step {
    id: LayerId,
    path: String,
    output: usize,
    rule: String,
    #[serde(rename = "type")]
    element_type: &'static str,
    /// The inputs that affect it, each with its step.
    from: Vec<(Option<usize>, usize)>,
}

/// What boxes say of layers comes from here.
struct Source<'a> {
    model: &'a Model,
    lines: Lines,
    removed: &'a [Removed],
}

/// A graph that is yet to be drawn.
struct Pending<'a> {
    graph: &'a Graph,
    title: String,
    prefix: String,
    /// The scene that it opens from, and the box there.
    parent: Option<(usize, usize)>,
}

/// The pictures of a model, that of its graph first.
pub(super) fn scenes(model: &Model, title: String, removed: &[Removed]) -> Vec<Scene> {
    let mut scenes: Vec<Scene> = Vec::new();
    let source = Source { model, lines: Lines::new(model.source().clone()), removed };
    let mut pending = vec![Pending { graph: model.graph(), title, prefix: String::new(), parent: None }];
    while let Some(next) = pending.pop() {
        let boxes = Boxes::new(&source, next.graph, &next.prefix);
        let first = scenes.len();
        scenes.extend(boxes.draw(next.title, next.parent.map(|(scene, _)| scene), first));
        if let Some((scene, node)) = next.parent {
            scenes[scene].nodes[node].opens.push(first);
        }
        let holders = holders(&scenes[first..], first);
        let owners = next.graph.layers().filter(|layer| !layer.bodies().is_empty());
        for layer in owners {
            let path = format!("{}{}", next.prefix, layer.name());
            for body in layer.bodies() {
                let title = format!("{path}/{}", body.name());
                let parent = holders.get(&path).copied();
                pending.push(Pending { graph: body.graph(), prefix: format!("{title}/"), title, parent });
            }
        }
    }
    scenes
}

/// The scene and the box of each layer that is drawn in these scenes, the first of which has the number `first`.
fn holders(scenes: &[Scene], first: usize) -> HashMap<String, (usize, usize)> {
    let mut holders = HashMap::new();
    for (scene, drawn) in (first..).zip(scenes) {
        for (at, node) in drawn.nodes.iter().enumerate() {
            holders.entry(node.path.clone()).or_insert((scene, at));
        }
    }
    holders
}

/// The layers of a graph that get a box, and what is between them.
struct Boxes {
    nodes: Vec<Node>,
    arrows: Vec<Edge>,
}

impl Boxes {
    fn new(source: &Source<'_>, graph: &Graph, prefix: &str) -> Self {
        let mut folded = constants(graph);
        if graph.len() - folded.len() > MANY_BOXES {
            let roles = typelift::map::roles(graph);
            folded.extend(roles.into_iter().filter(|(_, role)| *role == Role::Shape).map(|(id, _)| id));
        }
        let mut boxes = Self { nodes: Vec::new(), arrows: Vec::new() };
        let mut numbers = HashMap::<LayerId, usize>::new();
        let shown: Vec<&Layer> = graph.layers().filter(|layer| !folded.contains(&layer.id())).collect();
        numbers.extend(shown.iter().enumerate().map(|(at, layer)| (layer.id(), at)));
        for layer in shown {
            let at = boxes.nodes.len();
            let producers = graph.producers(layer.id());
            let (mut inputs, mut weights) = (Vec::new(), Vec::new());
            for feed in producers.iter().flatten() {
                let (Some(producer), Some(port)) = (graph.layer(feed.layer), graph.output(*feed)) else { continue };
                match numbers.get(&feed.layer) {
                    Some(&from) => {
                        let (element_type, shape) = (port.element_type().name(), port.shape().to_string());
                        boxes.arrows.push(Edge { from, to: at, element_type, shape, input: inputs.len() });
                        let from = Some(format!("{prefix}{}", producer.name()));
                        let text = format!("{} {port}", producer.name());
                        inputs.push(Entry { from, text, stub: false, held: Vec::new(), of: Vec::new() });
                    }
                    None => {
                        let stored = Stored::new(graph, producer, &folded);
                        let text = constant(source.model, producer, port, &stored);
                        let path = |layer: &&Layer| format!("{prefix}{}", layer.name());
                        let (held, of) =
                            (stored.layers.iter().map(path).collect(), stored.shaped.iter().map(path).collect());
                        weights.push(stored.weights());
                        inputs.push(Entry { from: None, text, stub: false, held, of });
                    }
                }
            }
            let largest = weights.into_iter().flatten().max_by_key(|(bytes, _)| *bytes);
            boxes.nodes.push(node(source, graph, layer, prefix, inputs, largest.map(|(_, text)| text)));
        }
        boxes.add_removed(source.removed, prefix);
        boxes
    }

    /// Boxes for layers that were removed, between what they used and what used them.
    fn add_removed(&mut self, removed: &[Removed], prefix: &str) {
        let places: HashMap<String, usize> =
            self.nodes.iter().enumerate().map(|(at, node)| (node.path.clone(), at)).collect();
        for gone in removed.iter().filter(|gone| gone.path.starts_with(prefix)) {
            let producers = gone.operands.iter().filter_map(|name| places.get(&format!("{prefix}{name}")));
            let producers: Vec<usize> = producers.copied().collect();
            let user = places.get(&gone.user).copied();
            if producers.is_empty() && user.is_none() {
                continue;
            }
            let at = self.nodes.len();
            let arrow = |(from, to)| Edge { from, to, element_type: "", shape: String::new(), input: usize::MAX };
            let pairs = producers.into_iter().map(|from| (from, at)).chain(user.map(|to| (at, to)));
            self.arrows.extend(pairs.map(arrow));
            let name = short(&gone.path).to_owned();
            let w = box_width(name.width().max(gone.operation.width() + 10));
            let (op, path) = (gone.operation.clone(), gone.path.clone());
            self.nodes.push(Node { op, name, path, w, h: HEIGHT, gone: true, ..Node::default() });
        }
    }

    /// The scene, then one for each block in it.
    fn draw(self, title: String, parent: Option<usize>, first: usize) -> Vec<Scene> {
        let pairs: Vec<(usize, usize)> = self.arrows.iter().map(|arrow| (arrow.from, arrow.to)).collect();
        let names: Vec<&str> = self.nodes.iter().map(|node| node.name.as_str()).collect();
        let blocks = block::blocks(&names, &pairs);
        let mut order: Vec<&String> = Vec::new();
        let mut scene_of = HashMap::<&String, usize>::new();
        for block in blocks.iter().flatten() {
            scene_of.entry(block).or_insert_with(|| {
                order.push(block);
                order.len()
            });
        }
        let mut parts: Vec<(Vec<Node>, Vec<Edge>)> = (0..=order.len()).map(|_| (Vec::new(), Vec::new())).collect();
        // Where each layer is drawn: its scene and its place there.
        let mut places = Vec::new();
        for (node, block) in self.nodes.into_iter().zip(&blocks) {
            let scene = block.as_ref().map_or(0, |block| scene_of[block]);
            places.push((scene, parts[scene].0.len()));
            parts[scene].0.push(node);
        }
        let own = parts[0].0.len();
        for (at, name) in order.iter().enumerate() {
            let layers = parts[at + 1].0.len();
            let block = of_block(name, layers, first + at + 1);
            parts[0].0.push(block);
        }
        let mut seen = HashSet::new();
        for arrow in self.arrows {
            let ((scene, from), (other, to)) = (places[arrow.from], places[arrow.to]);
            if scene == other {
                parts[scene].1.push(Edge { from, to, ..arrow });
                continue;
            }
            if let Some(input) = parts[other].0[to].inputs.get_mut(arrow.input).filter(|_| other > 0) {
                input.stub = true;
            }
            let outer = |scene: usize, at: usize| if scene == 0 { at } else { own + scene - 1 };
            let (from, to) = (outer(scene, from), outer(other, to));
            // One arrow is enough, however many tensors go from block to block.
            if seen.insert((from, to)) {
                parts[0].1.push(Edge { from, to, ..arrow });
            }
        }
        let mut scenes = Vec::new();
        for (at, (nodes, edges)) in parts.into_iter().enumerate() {
            let (title, parent) = if at == 0 { (title.clone(), parent) } else { (order[at - 1].clone(), Some(first)) };
            scenes.push(placed(title, parent, nodes, edges));
        }
        scenes
    }
}

/// The layers that compute from constants alone: they are part of what uses them.
fn constants(graph: &Graph) -> HashSet<LayerId> {
    let mut folded = HashSet::new();
    // How many inputs of a layer come from elsewhere.
    let mut open = HashMap::<LayerId, usize>::new();
    let mut waiting: Vec<LayerId> =
        graph.layers().filter(|layer| ops::kind(layer) == LayerKind::Constant).map(Layer::id).collect();
    while let Some(id) = waiting.pop() {
        let Some(layer) = graph.layer(id) else { continue };
        let outputs = (0..layer.outputs().len()).map(|port| id.output(port));
        let uses: Vec<LayerId> = outputs.flat_map(|output| graph.consumers(output)).map(|input| input.layer).collect();
        // A constant that is the whole model stays.
        if uses.is_empty() || !folded.insert(id) {
            continue;
        }
        for user in uses.into_iter().filter_map(|user| graph.layer(user)) {
            let is_end = user.start().is_some() || !user.bodies().is_empty();
            let left = open.entry(user.id()).or_insert_with(|| user.inputs().len());
            *left = left.saturating_sub(1);
            if *left == 0 && !is_end {
                waiting.push(user.id());
            }
        }
    }
    folded
}

/// The layers that compute a constant or a shape, and the way from the largest thing that they store.
struct Stored<'a> {
    layers: Vec<&'a Layer>,
    way: Vec<&'a Layer>,
    /// What has the shapes that it is computed of.
    shaped: Vec<&'a Layer>,
}

impl<'a> Stored<'a> {
    fn new(graph: &'a Graph, end: &'a Layer, folded: &HashSet<LayerId>) -> Self {
        let (mut layers, mut shaped) = (vec![end], Vec::<&Layer>::new());
        let mut used_by = HashMap::<LayerId, &Layer>::new();
        let mut next = 0;
        while let Some(&layer) = layers.get(next).filter(|_| next < MOST_STORED) {
            next += 1;
            for feed in graph.producers(layer.id()).into_iter().flatten().filter_map(|feed| graph.layer(feed.layer)) {
                if feed.id() != end.id() && used_by.insert(feed.id(), layer).is_none() {
                    let list = if folded.contains(&feed.id()) { &mut layers } else { &mut shaped };
                    list.push(feed);
                }
            }
        }
        let constants = layers.iter().filter(|layer| ops::kind(layer) == LayerKind::Constant);
        let largest = constants.rev().max_by_key(|layer| values(layer));
        let way = std::iter::successors(largest.copied(), |layer| used_by.get(&layer.id()).copied()).collect();
        Self { layers, way, shaped }
    }

    /// The numbers of a constant of few, if Converts alone are between it and what uses it.
    fn numbers(&self, model: &Model) -> Option<Vec<f64>> {
        let (first, rest) = self.way.split_first()?;
        let is_plain = self.shaped.is_empty() && rest.iter().all(|layer| ops::kind(layer) == LayerKind::Convert);
        if is_plain && values(first) <= FEW_VALUES { first.numbers(model.weights()) } else { None }
    }

    /// The bytes of a weight, and how it is stored; `None` for a single number.
    fn weights(&self) -> Option<(u64, String)> {
        let first = self.way.first().filter(|layer| values(layer) > 1 && self.shaped.is_empty())?;
        let bytes = first.attribute("size").and_then(|size| size.parse().ok()).unwrap_or(0);
        let mut types: Vec<_> =
            self.way.iter().filter_map(|layer| Some(layer.outputs().first()?.element_type().name())).collect();
        types.dedup();
        Some((bytes, format!("{} · {}", types.join("→"), size(bytes))))
    }
}

/// Limit on the layers that are listed of one constant.
const MOST_STORED: usize = 64;

fn values(layer: &Layer) -> u64 {
    layer.outputs().first().and_then(|port| port.shape().element_count()).unwrap_or(0)
}

/// `30 KB`
fn size(bytes: u64) -> String {
    match bytes {
        0..1000 => format!("{bytes} B"),
        1000..1_000_000 => format!("{} KB", bytes.div_ceil(1000)),
        1_000_000..1_000_000_000 => format!("{:.1} MB", bytes as f64 / 1e6),
        _ => format!("{:.1} GB", bytes as f64 / 1e9),
    }
}

/// A constant as text, with its values where they are few.
fn constant(model: &Model, layer: &Layer, port: &typelift::graph::OutputPort, stored: &Stored<'_>) -> String {
    let values = stored.numbers(model).map(|values| {
        let values: Vec<String> = values.iter().map(ToString::to_string).collect();
        format!(" = {}", values.join(", "))
    });
    if !stored.shaped.is_empty() {
        let count = crate::columns::count(stored.layers.len(), "layer");
        return format!("{} {port} (shape arithmetic, {count})", layer.name());
    }
    let way = stored.weights().filter(|_| stored.way.len() > 1).map(|(_, way)| format!(" ({way})"));
    format!("{} {port}{}{}", layer.name(), values.unwrap_or_default(), way.unwrap_or_default())
}

/// The height of a box, and of one with a line on its weights.
const HEIGHT: f64 = 62.0;
const HEIGHT_WITH_WEIGHTS: f64 = 78.0;

/// The width of a box whose widest line has this many letters.
fn box_width(letters: usize) -> f64 {
    (letters as f64 * 7.6 + 30.0).clamp(96.0, 280.0)
}

fn node(
    source: &Source<'_>,
    graph: &Graph,
    layer: &Layer,
    prefix: &str,
    inputs: Vec<Entry>,
    weights: Option<String>,
) -> Node {
    let outputs: Vec<_> =
        layer.outputs().iter().map(|port| (port.element_type().name(), port.shape().to_string())).collect();
    let convert =
        listing::conversion(graph, layer).map(|conversion| (conversion.from, conversion.to.name(), conversion.lost));
    let types = match &convert {
        Some((from, to, lost)) => from.len() + to.len() + lost.len() + 5,
        None => outputs.first().map_or(0, |(ty, shape)| ty.len() + shape.chars().count()),
    };
    let stored = weights.as_ref().map_or(0, |text| text.width());
    let widest = types.max(stored).max(layer.ty().chars().count() * 9 / 8 + 2).max(short(layer.name()).width());
    let names = layer.outputs().iter().flat_map(|port| port.names());
    Node {
        id: Some(layer.id()),
        name: layer.name().to_owned(),
        path: format!("{prefix}{}", layer.name()),
        op: layer.ty().to_owned(),
        line: layer.span().map(|span| source.lines.line_column(span.start).0),
        w: box_width(widest),
        h: if weights.is_some() { HEIGHT_WITH_WEIGHTS } else { HEIGHT },
        outputs,
        inputs,
        attributes: layer.attributes().iter().map(|a| (a.name().to_owned(), brief(a.value()).into_owned())).collect(),
        convert,
        tensors: names.filter(|name| name != layer.name()).collect(),
        weights,
        ..Node::default()
    }
}

/// A text of any length, as long as a person reads.
pub(super) fn brief(text: &str) -> Cow<'_, str> {
    const LONG: usize = 2000;
    match text.char_indices().nth(LONG) {
        Some((end, _)) => format!("{}… ({} bytes)", &text[..end], text.len()).into(),
        None => text.into(),
    }
}

/// The end of a long name, which says most.
fn short(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

pub(super) fn of_block(name: &str, layers: usize, scene: usize) -> Node {
    Node {
        name: name.to_owned(),
        path: name.to_owned(),
        op: "block".to_owned(),
        w: (name.width() as f64 * 7.6 + 40.0).clamp(140.0, 300.0),
        h: 70.0,
        opens: vec![scene],
        layers: Some(layers),
        ..Node::default()
    }
}

/// A scene with its boxes in their places. Arrows that would cross most of it become stubs.
pub(super) fn placed(title: String, parent: Option<usize>, mut nodes: Vec<Node>, edges: Vec<Edge>) -> Scene {
    let pairs: Vec<(usize, usize)> = edges.iter().map(|edge| (edge.from, edge.to)).collect();
    let ranks = ranks(nodes.len(), &pairs);
    let mut users = vec![0; nodes.len()];
    edges.iter().for_each(|edge| users[edge.from] += 1);
    let reach = |edge: &Edge| if users[edge.from] < MANY { FAR } else { NEAR };
    let is_far = |edge: &Edge| ranks[edge.to].saturating_sub(ranks[edge.from]) > reach(edge) && nodes.len() > 4 * FAR;
    let (far, mut edges): (Vec<Edge>, Vec<Edge>) = edges.into_iter().partition(is_far);
    for edge in &far {
        let (source, text) =
            (nodes[edge.from].path.clone(), format!("{} {}{}", nodes[edge.from].name, edge.element_type, edge.shape));
        // A block has no inputs of its own.
        if nodes[edge.to].layers.is_some() {
            nodes[edge.to].inputs.push(Entry {
                from: Some(source),
                text,
                stub: true,
                held: Vec::new(),
                of: Vec::new(),
            });
        } else if let Some(input) = nodes[edge.to].inputs.get_mut(edge.input) {
            input.stub = true;
        }
    }
    // Tensors of one kind between two layers are one arrow.
    let mut seen = HashSet::new();
    edges.retain(|edge| seen.insert((edge.from, edge.to, edge.element_type, edge.shape.clone())));
    let mut arrows: Vec<(usize, usize)> = edges.iter().map(|edge| (edge.from, edge.to)).collect();
    arrows.sort_unstable();
    arrows.dedup();
    let sizes: Vec<(f64, f64)> = nodes.iter().map(|node| (node.w, node.h)).collect();
    for (node, (x, y)) in nodes.iter_mut().zip(layout::places(&Picture { sizes: &sizes, arrows: &arrows })) {
        (node.x, node.y) = (x.round(), y.round());
    }
    Scene { title, parent, nodes, edges }
}

/// How far each box is from the start, by the longest way.
fn ranks(count: usize, arrows: &[(usize, usize)]) -> Vec<usize> {
    let (mut waits, mut next) = (vec![0_usize; count], vec![Vec::new(); count]);
    for &(from, to) in arrows {
        waits[to] += 1;
        next[from].push(to);
    }
    let mut ranks = vec![0; count];
    let mut ready: Vec<usize> = (0..count).filter(|&at| waits[at] == 0).collect();
    while let Some(at) = ready.pop() {
        for &to in &next[at] {
            ranks[to] = ranks[to].max(ranks[at] + 1);
            waits[to] -= 1;
            if waits[to] == 0 {
                ready.push(to);
            }
        }
    }
    ranks
}

/// Why each tensor has its type.
pub(super) fn steps(model: &Model) -> Vec<Step> {
    let derivation = typelift::why::why_all(model);
    let path = |step: &typelift::why::Step| step.layer.full_name();
    let premise = |premise: &typelift::why::Premise| (premise.input, premise.step);
    let steps = derivation.steps.iter().map(|step| Step {
        id: step.layer.id,
        path: path(step),
        output: step.output,
        rule: step.rule.to_string(),
        element_type: step.element_type.name(),
        from: step.from.iter().map(premise).collect(),
    });
    steps.collect()
}
