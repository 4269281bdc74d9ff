//! Pictures of a model: one of its graph, one of each body, and one of each block that repeats.

use std::borrow::Cow;

use foldhash::{HashMap, HashSet};
use serde::{Serialize, Serializer};
use typelift::findings::LayerRef;
use typelift::graph::{LayerMap, Place};
use typelift::map::{PrecisionMap, Role, Ways};
use typelift::ops::{self, LayerKind};
use typelift::promote::fidelity;
use typelift::span::Lines;
use typelift::{Graph, Layer, LayerId, Model, Output};
use unicode_width::UnicodeWidthStr;

use crate::layout::{self, Picture};

/// An arrow across more ranks than this is drawn as two stubs. For a tensor with many consumers the limit is `NEAR`.
const FAR: usize = 10;
const NEAR: usize = 2;
/// The number of consumers that counts as many.
const MANY: usize = 6;
/// In a picture with more boxes than this, shape computations are part of their consumer, and blocks are boxes.
const MANY_BOXES: usize = 60;
/// The smallest number of boxes in a block.
const LEAST: usize = 4;
/// A constant with at most this many values shows them.
const FEW_VALUES: u64 = 6;

/// A picture.
#[derive(Serialize)]
pub(crate) struct Scene<'a> {
    /// The title: the model, `loop/body`, or a block.
    pub(crate) title: String,
    /// The scene from which it opens.
    pub(crate) parent: Option<usize>,
    pub(crate) nodes: Vec<Node<'a>>,
    pub(crate) edges: Vec<Edge>,
}

/// A box.
#[derive(Default, Serialize)]
pub(crate) struct Node<'a> {
    /// The id of the layer; `None` for a block.
    pub(crate) id: Option<LayerId>,
    pub(crate) name: Cow<'a, str>,
    pub(crate) path: Cow<'a, str>,
    pub(crate) op: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) line: Option<usize>,
    #[serde(serialize_with = "whole")]
    pub(crate) x: f64,
    #[serde(serialize_with = "whole")]
    pub(crate) y: f64,
    #[serde(serialize_with = "whole")]
    pub(crate) w: f64,
    #[serde(serialize_with = "whole")]
    pub(crate) h: f64,
    /// Element types and shapes of its outputs.
    pub(crate) outputs: Vec<(&'static str, String)>,
    pub(crate) inputs: Vec<Entry<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) attributes: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    /// For a Convert: source type, destination type, and the possible loss, which is empty if nothing is lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) convert: Option<(String, &'static str, String)>,
    /// The scenes inside it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) opens: Vec<usize>,
    /// The number of layers of a block.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) layers: Option<usize>,
    /// The names of its tensors that differ from its own name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) tensors: Vec<String>,
    /// The data path of its largest weight: `u4 → f16 → f32 · 30 KB`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) weights: Option<String>,
    /// True for a layer that the model no longer has.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) gone: bool,
}

/// Writes a coordinate in whole pixels.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over references")]
fn whole<S: Serializer>(place: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_i64(place.round() as i64)
}

/// An input of a layer.
#[derive(Clone, Serialize)]
pub(crate) struct Entry<'a> {
    /// The path of the producer, as the page looks it up; `None` for a constant.
    from: Option<Cow<'a, str>>,
    /// The type and shape, `f32[2]`; for a constant also its name and other facts.
    text: String,
    /// True if the picture has no arrow for it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    stub: bool,
    /// The paths of the layers that compute a constant, which have no boxes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    held: Vec<Cow<'a, str>>,
    /// The paths of the layers whose shapes determine the values of a constant.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    of: Vec<Cow<'a, str>>,
}

/// A layer that was removed.
pub(crate) struct Removed {
    pub(crate) path: String,
    pub(crate) operation: String,
    /// The names of its producers.
    pub(crate) operands: Vec<String>,
    /// The path of a layer that used its output.
    pub(crate) user: String,
}

pub(crate) struct Edge {
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) element_type: &'static str,
    pub(crate) shape: String,
    /// The input of the layer that it leads to.
    pub(crate) input: usize,
}

/// Written as a row; `page.js` names the columns.
impl Serialize for Edge {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (self.from, self.to, self.element_type, &self.shape).serialize(serializer)
    }
}

/// A tensor: the explanation of its type, and the data path of its value.
pub(crate) struct Step<'a> {
    id: LayerId,
    path: Cow<'a, str>,
    op: &'a str,
    output: usize,
    rule: String,
    element_type: &'static str,
    /// The inputs that affect its type, each with its step.
    from: Vec<(Option<usize>, usize)>,
    /// The step that its value comes from, and the one that uses it.
    before: Option<usize>,
    next: Option<usize>,
    /// The shape of a stored tensor, or of one computed from constants alone.
    stored: Option<String>,
    /// The loss of a Convert.
    loses: Option<String>,
}

/// Written as a row; `page.js` names the columns.
impl Serialize for Step<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { id, path, op, output, rule, element_type, from, before, next, stored, loses } = self;
        (id, path, op, output, rule, element_type, from, before, next, stored, loses).serialize(serializer)
    }
}

/// The facts about layers that boxes show.
struct Source<'a, 'm> {
    model: &'a Model,
    lines: Lines,
    removed: &'m [Removed],
    /// The block of each layer, by name.
    blocks: HashMap<&'m Place, HashMap<LayerId, &'m str>>,
}

/// Returns the blocks of the map, by their layers.
fn blocks(map: &PrecisionMap) -> HashMap<&Place, HashMap<LayerId, &str>> {
    let mut blocks = HashMap::<_, HashMap<_, _>>::default();
    for row in &map.rows {
        for part in row.parts.iter().filter(|part| part.family.is_some()) {
            let layers = part.layers.iter().map(|&id| (id, part.name.as_str()));
            blocks.entry(&row.place).or_default().extend(layers);
        }
    }
    blocks
}

/// The graphs of a model with the data paths of their values. A place includes the names of the surrounding bodies.
pub(crate) type Graphs<'a> = HashMap<Place, (&'a Graph, Ways<'a>)>;

pub(crate) fn graphs(model: &Model) -> Graphs<'_> {
    model.walk().map(|(place, graph)| (place, (graph, Ways::new(graph)))).collect()
}

/// A graph that is not drawn yet.
struct Pending {
    place: Place,
    title: String,
    /// The scene that opens it, and the box in that scene.
    parent: Option<(usize, usize)>,
}

/// Returns the pictures of a model, that of its own graph first.
pub(crate) fn scenes<'a>(
    model: &'a Model,
    graphs: &Graphs<'a>,
    map: &PrecisionMap,
    title: String,
    removed: &[Removed],
) -> Vec<Scene<'a>> {
    let mut scenes: Vec<Scene> = Vec::new();
    let source = Source { model, lines: Lines::new(model.source().clone()), removed, blocks: blocks(map) };
    let mut pending = vec![Pending { place: Place::default(), title, parent: None }];
    while let Some(next) = pending.pop() {
        let Some((place, (graph, ways))) = graphs.get_key_value(&next.place) else { continue };
        let boxes = Boxes::new(&source, graph, ways, place);
        let first = scenes.len();
        scenes.extend(boxes.draw(next.title, next.parent.map(|(scene, _)| scene), first));
        if let Some((scene, node)) = next.parent {
            scenes[scene].nodes[node].opens.push(first);
        }
        let holders = holders(&scenes[first..], first);
        for layer in graph.layers() {
            for (at, body) in layer.bodies().iter().enumerate() {
                let title = format!("{}/{}", place.path_to(layer.name()), body.name());
                let parent = holders.get(&layer.id()).copied();
                pending.push(Pending { place: place.body(layer.id(), at), title, parent });
            }
        }
    }
    scenes
}

/// Returns the scene and the box of each layer of a graph that these scenes draw. `first` is the number of the first
/// scene.
fn holders(scenes: &[Scene<'_>], first: usize) -> HashMap<LayerId, (usize, usize)> {
    let drawn = (first..).zip(scenes);
    let boxes =
        drawn.flat_map(|(scene, drawn)| drawn.nodes.iter().enumerate().map(move |(at, node)| (node, scene, at)));
    boxes.filter_map(|(node, scene, at)| Some((node.id?, (scene, at)))).collect()
}

/// Returns the path of a layer in a graph.
fn path<'a>(place: &Place, layer: &'a Layer) -> Cow<'a, str> {
    if place.is_model() { layer.name().into() } else { place.path_to(layer.name()).into() }
}

/// The layers of a graph that get a box, and the arrows between them.
struct Boxes<'a, 'm> {
    nodes: Vec<Node<'a>>,
    arrows: Vec<Edge>,
    /// The name of the block that contains each box.
    blocks: Vec<Option<&'m str>>,
    /// The prefix of block names: the surrounding bodies.
    prefix: String,
}

impl<'a, 'm> Boxes<'a, 'm> {
    fn new(source: &Source<'a, 'm>, graph: &'a Graph, ways: &Ways<'a>, place: &Place) -> Self {
        let prefix = place.path_to("");
        let mut folded = constants(graph);
        if graph.len() - folded.len() > MANY_BOXES {
            let ids = graph.layers().map(Layer::id);
            folded.extend(ids.filter(|&id| ways.role(id) == Some(Role::Shape)));
        }
        let mut boxes = Self { nodes: Vec::new(), arrows: Vec::new(), blocks: Vec::new(), prefix: prefix.clone() };
        let blocks = source.blocks.get(place).filter(|_| graph.len() - folded.len() >= MANY_BOXES);
        let mut numbers = HashMap::<LayerId, usize>::default();
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
                        let text = [element_type, &shape].concat();
                        boxes.arrows.push(Edge { from, to: at, element_type, shape, input: inputs.len() });
                        let from = Some(path(place, producer));
                        inputs.push(Entry { from, text, stub: false, held: Vec::new(), of: Vec::new() });
                    }
                    None => {
                        let stored = Stored::new(ways, graph, *feed, &folded);
                        let text = constant(source.model, producer, port, &stored);
                        let paths = |layers: &[&'a Layer]| layers.iter().map(|layer| path(place, layer)).collect();
                        let (held, of) = (paths(&stored.layers), paths(&stored.shaped));
                        weights.push(stored.weights());
                        inputs.push(Entry { from: None, text, stub: false, held, of });
                    }
                }
            }
            let largest = weights.into_iter().flatten().max_by_key(|(bytes, _)| *bytes);
            boxes.nodes.push(node(source, graph, layer, place, inputs, largest.map(|(_, text)| text)));
            boxes.blocks.push(blocks.and_then(|blocks| blocks.get(&layer.id())).copied());
        }
        let mut sizes = HashMap::<&str, usize>::default();
        boxes.blocks.iter().flatten().for_each(|name| *sizes.entry(name).or_default() += 1);
        for block in &mut boxes.blocks {
            block.take_if(|name| sizes.get(name).is_none_or(|&size| size < LEAST));
        }
        if !source.removed.is_empty() {
            boxes.add_removed(source.removed, &prefix);
        }
        boxes
    }

    /// Adds boxes for removed layers, between their producers and consumers.
    fn add_removed(&mut self, removed: &[Removed], prefix: &str) {
        let places: HashMap<Cow<'_, str>, usize> =
            self.nodes.iter().enumerate().map(|(at, node)| (node.path.clone(), at)).collect();
        // A layer that computes a constant has no box, so its position is directly before the box of the constant's
        // consumer.
        let mut holders = HashMap::<Cow<'_, str>, usize>::default();
        for (at, node) in self.nodes.iter().enumerate() {
            holders.extend(node.inputs.iter().flat_map(|input| &input.held).map(|path| (path.clone(), at)));
        }
        for gone in removed.iter().filter(|gone| gone.path.starts_with(prefix)) {
            let operands: Vec<String> = gone.operands.iter().map(|name| format!("{prefix}{name}")).collect();
            let producers: Vec<usize> = operands.iter().filter_map(|path| places.get(&**path)).copied().collect();
            let holder = || operands.iter().find_map(|path| holders.get(&**path)).filter(|_| producers.is_empty());
            let user = places.get(&*gone.user).or_else(|| holders.get(&*gone.user)).or_else(holder).copied();
            if producers.is_empty() && user.is_none() {
                continue;
            }
            let at = self.nodes.len();
            let arrow = |(from, to)| Edge { from, to, element_type: "", shape: String::new(), input: usize::MAX };
            let pairs = producers.into_iter().map(|from| (from, at)).chain(user.map(|to| (at, to)));
            self.arrows.extend(pairs.map(arrow));
            let name = short(&gone.path).to_owned();
            let w = box_width(name.width().max(gone.operation.width() + 10));
            let (op, path, name) = (gone.operation.clone().into(), gone.path.clone().into(), name.into());
            // The removed layer belongs to the block of a neighbour.
            let beside = self.arrows.iter().filter(|arrow| arrow.from == at || arrow.to == at);
            let beside = beside.map(|arrow| arrow.from.min(arrow.to)).max();
            let block = beside.and_then(|beside| self.blocks.get(beside)).copied().flatten();
            self.nodes.push(Node { op, name, path, w, h: HEIGHT, gone: true, ..Node::default() });
            self.blocks.push(block);
        }
    }

    /// Returns the scene, then one for each block in it.
    fn draw(self, title: String, parent: Option<usize>, first: usize) -> Vec<Scene<'a>> {
        let blocks = self.blocks;
        let mut order: Vec<&str> = Vec::new();
        let mut scene_of = HashMap::<&str, usize>::default();
        for block in blocks.iter().copied().flatten() {
            scene_of.entry(block).or_insert_with(|| {
                order.push(block);
                order.len()
            });
        }
        let mut parts: Vec<(Vec<Node>, Vec<Edge>)> = (0..=order.len()).map(|_| (Vec::new(), Vec::new())).collect();
        // The scene and the position in which each layer is drawn.
        let mut places = Vec::new();
        for (node, block) in self.nodes.into_iter().zip(&blocks) {
            let scene = block.map_or(0, |block| scene_of[block]);
            places.push((scene, parts[scene].0.len()));
            parts[scene].0.push(node);
        }
        let own = parts[0].0.len();
        for (at, name) in order.iter().enumerate() {
            let layers = parts[at + 1].0.len();
            let block = of_block(name, layers, first + at + 1);
            parts[0].0.push(Node { path: format!("{}{name}", self.prefix).into(), ..block });
        }
        let mut seen = HashSet::default();
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
            // A single arrow is drawn between two blocks, for any number of tensors.
            if seen.insert((from, to)) {
                parts[0].1.push(Edge { from, to, ..arrow });
            }
        }
        let (mut scenes, mut known) = (Vec::new(), Placements::default());
        for (at, (nodes, edges)) in parts.into_iter().enumerate() {
            let (title, parent) = if at == 0 {
                (title.clone(), parent)
            } else {
                (format!("{}{}", self.prefix, order[at - 1]), Some(first))
            };
            scenes.push(placed(title, parent, nodes, edges, &mut known));
        }
        scenes
    }
}

/// Returns the layers that compute from constants alone. They are drawn as part of their consumers.
fn constants(graph: &Graph) -> HashSet<LayerId> {
    let mut folded = HashSet::default();
    // The number of inputs of a layer that are not constant.
    let mut open = HashMap::<LayerId, usize>::default();
    let mut waiting: Vec<LayerId> =
        graph.layers().filter(|layer| ops::kind(layer) == LayerKind::Constant).map(Layer::id).collect();
    while let Some(id) = waiting.pop() {
        let Some(layer) = graph.layer(id) else { continue };
        let outputs = (0..layer.outputs().len()).map(|port| id.output(port));
        let uses: Vec<LayerId> = outputs.flat_map(|output| graph.consumers(output)).map(|input| input.layer).collect();
        // A constant without consumers keeps its box.
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

/// The layers that compute a constant or a shape, and the data path of the largest value that they store.
struct Stored<'a> {
    layers: Vec<&'a Layer>,
    way: Vec<&'a Layer>,
    /// The layers whose shapes are used.
    shaped: Vec<&'a Layer>,
}

impl<'a> Stored<'a> {
    fn new(ways: &Ways<'_>, graph: &'a Graph, end: Output, folded: &HashSet<LayerId>) -> Self {
        let way = std::iter::successors(Some(end), |&tensor| ways.before(tensor));
        let mut way: Vec<&Layer> = way.filter_map(|tensor| graph.layer(tensor.layer)).collect();
        way.reverse();
        let (mut layers, mut shaped) = (Vec::from_iter(graph.layer(end.layer)), Vec::<&Layer>::new());
        let mut seen = HashSet::from_iter([end.layer]);
        let mut next = 0;
        while let Some(&layer) = layers.get(next).filter(|_| next < MOST_STORED) {
            next += 1;
            for feed in graph.producers(layer.id()).into_iter().flatten().filter_map(|feed| graph.layer(feed.layer)) {
                if seen.insert(feed.id()) {
                    let list = if folded.contains(&feed.id()) { &mut layers } else { &mut shaped };
                    list.push(feed);
                }
            }
        }
        Self { layers, way, shaped }
    }

    /// Returns the values of a constant with few values, if only Converts are between it and its consumer.
    fn numbers(&self, model: &Model) -> Option<Vec<f64>> {
        let (first, rest) = self.way.split_first()?;
        let is_plain = self.shaped.is_empty() && rest.iter().all(|layer| ops::kind(layer) == LayerKind::Convert);
        if is_plain && values(first) <= FEW_VALUES { first.numbers(model.weights()) } else { None }
    }

    /// Returns the size of a weight in bytes and its data path; `None` for a single number.
    fn weights(&self) -> Option<(u64, String)> {
        let first = self.way.first().filter(|layer| values(layer) > 1 && self.shaped.is_empty())?;
        let bytes = first.attribute("size").and_then(|size| size.parse().ok()).unwrap_or(0);
        let mut types: Vec<_> =
            self.way.iter().filter_map(|layer| Some(layer.outputs().first()?.element_type().name())).collect();
        types.dedup();
        Some((bytes, format!("{} · {}", types.join("→"), size(bytes))))
    }
}

/// Limit on the layers that are listed for one constant.
const MOST_STORED: usize = 64;

fn values(layer: &Layer) -> u64 {
    layer.outputs().first().and_then(|port| port.shape().element_count()).unwrap_or(0)
}

/// Formats a size as `30 KB`.
fn size(bytes: u64) -> String {
    match bytes {
        0..1000 => format!("{bytes} B"),
        1000..1_000_000 => format!("{} KB", bytes.div_ceil(1000)),
        1_000_000..1_000_000_000 => format!("{:.1} MB", bytes as f64 / 1e6),
        _ => format!("{:.1} GB", bytes as f64 / 1e9),
    }
}

/// Describes a constant, with its values if they are few.
fn constant(model: &Model, layer: &Layer, port: &typelift::graph::OutputPort, stored: &Stored<'_>) -> String {
    let values = stored.numbers(model).map(|values| {
        let values: Vec<String> = values.iter().map(ToString::to_string).collect();
        format!(" = {}", values.join(", "))
    });
    if !stored.shaped.is_empty() {
        let count = stored.layers.len();
        let layers = if count == 1 { "layer" } else { "layers" };
        return format!("{} {port} (shape arithmetic, {count} {layers})", layer.name());
    }
    let way = stored.weights().filter(|_| stored.way.len() > 1).map(|(_, way)| format!(" ({way})"));
    format!("{} {port}{}{}", layer.name(), values.unwrap_or_default(), way.unwrap_or_default())
}

/// The height of a box, and of one with a line about its weights.
const HEIGHT: f64 = 62.0;
const HEIGHT_WITH_WEIGHTS: f64 = 78.0;

/// Returns the width of a box whose widest line has this many characters.
fn box_width(letters: usize) -> f64 {
    (letters as f64 * 7.6 + 30.0).clamp(96.0, 280.0)
}

fn node<'a>(
    source: &Source<'_, '_>,
    graph: &Graph,
    layer: &'a Layer,
    place: &Place,
    inputs: Vec<Entry<'a>>,
    weights: Option<String>,
) -> Node<'a> {
    let outputs: Vec<_> =
        layer.outputs().iter().map(|port| (port.element_type().name(), port.shape().to_string())).collect();
    let convert = ops::conversion(graph, layer).map(|found| {
        let lost = found.lossy().next().map_or(String::new(), |(_, lost)| lost.to_string());
        let from: Vec<&str> = found.from.iter().map(|ty| ty.name()).collect();
        (from.join(", "), found.to.name(), lost)
    });
    let types = match &convert {
        Some((from, to, lost)) => from.len() + to.len() + lost.len() + 5,
        None => outputs.first().map_or(0, |(ty, shape)| ty.len() + shape.chars().count()),
    };
    let stored = weights.as_ref().map_or(0, |text| text.width());
    let widest = types.max(stored).max(layer.ty().chars().count() * 9 / 8 + 2).max(short(layer.name()).width());
    let names = layer.outputs().iter().flat_map(|port| port.names());
    Node {
        id: Some(layer.id()),
        name: layer.name().into(),
        path: path(place, layer),
        op: layer.ty().into(),
        line: layer.span().map(|span| source.lines.line_at(span.start)),
        w: box_width(widest),
        h: if weights.is_some() { HEIGHT_WITH_WEIGHTS } else { HEIGHT },
        outputs,
        inputs,
        attributes: layer.attributes().iter().map(|a| (a.name().into(), brief(a.value()))).collect(),
        convert,
        tensors: names.filter(|name| name != layer.name()).collect(),
        weights,
        ..Node::default()
    }
}

/// Shortens a text to a readable length.
pub(crate) fn brief(text: &str) -> Cow<'_, str> {
    const LONG: usize = 2000;
    match text.char_indices().nth(LONG) {
        Some((end, _)) => format!("{}… ({} bytes)", &text[..end], text.len()).into(),
        None => text.into(),
    }
}

/// Returns the end of a long name, its most specific part.
fn short(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

pub(crate) fn of_block<'a>(name: &str, layers: usize, scene: usize) -> Node<'a> {
    Node {
        name: name.to_owned().into(),
        path: name.to_owned().into(),
        op: "block".into(),
        w: (name.width() as f64 * 7.6 + 40.0).clamp(140.0, 300.0).ceil(),
        h: 70.0,
        opens: vec![scene],
        layers: Some(layers),
        ..Node::default()
    }
}

/// Cache of placements. The key is the sizes of boxes, bit by bit, and the arrows between them, so that equal blocks
/// are placed once and look alike.
pub(crate) type Placements = HashMap<(Vec<[u64; 2]>, Vec<(usize, usize)>), Vec<(f64, f64)>>;

/// Places the boxes of a scene. Arrows that would cross most of it become stubs.
pub(crate) fn placed<'a>(
    title: String,
    parent: Option<usize>,
    mut nodes: Vec<Node<'a>>,
    edges: Vec<Edge>,
    known: &mut Placements,
) -> Scene<'a> {
    let pairs: Vec<(usize, usize)> = edges.iter().map(|edge| (edge.from, edge.to)).collect();
    let ranks = ranks(nodes.len(), &pairs);
    let mut users = vec![0; nodes.len()];
    edges.iter().for_each(|edge| users[edge.from] += 1);
    let reach = |edge: &Edge| if users[edge.from] < MANY { FAR } else { NEAR };
    let is_far = |edge: &Edge| ranks[edge.to].saturating_sub(ranks[edge.from]) > reach(edge) && nodes.len() > 4 * FAR;
    let (far, mut edges): (Vec<Edge>, Vec<Edge>) = edges.into_iter().partition(is_far);
    for edge in &far {
        let (source, text) = (nodes[edge.from].path.clone(), [edge.element_type, &edge.shape].concat());
        // The box of a block has no inputs of its own.
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
    // Tensors of one kind between two layers are drawn as one arrow.
    let mut seen = HashSet::default();
    edges.retain(|edge| seen.insert((edge.from, edge.to, edge.element_type, edge.shape.clone())));
    let mut arrows: Vec<(usize, usize)> = edges.iter().map(|edge| (edge.from, edge.to)).collect();
    arrows.sort_unstable();
    arrows.dedup();
    let sizes: Vec<(f64, f64)> = nodes.iter().map(|node| (node.w, node.h)).collect();
    let looks = (sizes.iter().map(|&(w, h)| [w.to_bits(), h.to_bits()]).collect(), arrows);
    let places =
        known.entry(looks).or_insert_with_key(|(_, arrows)| layout::places(&Picture { sizes: &sizes, arrows }));
    for (node, (x, y)) in nodes.iter_mut().zip(places) {
        (node.x, node.y) = (x.round(), y.round());
    }
    Scene { title, parent, nodes, edges }
}

/// Returns the longest distance of each box from the start.
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

/// Returns the explanation of each tensor's type, and the data paths.
pub(crate) fn steps<'a>(model: &'a Model, graphs: &Graphs<'a>) -> Vec<Step<'a>> {
    let derivation = typelift::why::why_all(model);
    // The step of the first output of each layer; the steps of its other outputs follow directly.
    let mut firsts: HashMap<&Place, LayerMap<usize>> =
        graphs.iter().map(|(place, (graph, _))| (place, LayerMap::new(graph))).collect();
    for (at, step) in derivation.steps.iter().enumerate().filter(|(_, step)| step.output == 0) {
        firsts.get_mut(&step.layer.place).and_then(|firsts| firsts.insert(step.layer.id, at));
    }
    let premise = |premise: &typelift::why::Premise| (premise.input, premise.step);
    let steps = derivation.steps.iter().filter_map(|step| {
        let LayerRef { place, id, .. } = &step.layer;
        let ((graph, ways), firsts) = (graphs.get(place)?, firsts.get(place)?);
        let layer = graph.layer(*id)?;
        let tensor = id.output(step.output);
        let number = |tensor: Output| Some(firsts.get(tensor.layer)? + tensor.port);
        let before = ways.before(tensor);
        let from = before.and_then(|before| Some(graph.output(before)?.element_type()));
        let loses = || from.and_then(|from| fidelity(from, step.element_type));
        let loses = || loses().map_or_else(|| "of an unknown type".to_owned(), |loses| loses.to_string());
        Some(Step {
            id: *id,
            path: path(place, layer),
            op: layer.ty(),
            output: step.output,
            rule: step.rule.to_string(),
            element_type: step.element_type.name(),
            from: step.from.iter().map(premise).collect(),
            before: before.and_then(number),
            next: ways.next(tensor).and_then(number),
            stored: ways.is_stored(tensor).then(|| step.shape.to_string()),
            loses: ops::conversion(graph, layer).map(|_| loses()),
        })
    });
    steps.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_layer_that_went_from_what_is_constant_has_its_box_before_what_takes_it() {
        let text = "x = Parameter : f32[2]\nc = Const([1, 2]) : f16[2]\nd = Convert(c) {destination_type=f32}\n\
                    y = Add(x, d)\nr = Result(y)\n";
        let mut model = Model::from_text(text).unwrap();
        assert_eq!(typelift::infer(&mut model), []);
        let gone = |operands: [&str; 1], user: &str| Removed {
            path: "n".to_owned(),
            operation: "Negative".to_owned(),
            operands: operands.map(str::to_owned).to_vec(),
            user: user.to_owned(),
        };
        let map = PrecisionMap::new(&model, &[]);
        for (removed, is_drawn) in [(gone(["c"], "n"), true), (gone(["?"], "d"), true), (gone(["?"], "?"), false)] {
            let removed = [removed];
            let scenes = scenes(&model, &graphs(&model), &map, "m".to_owned(), &removed);
            let (nodes, edges) = (&scenes[0].nodes, &scenes[0].edges);
            let place = |name: &str| nodes.iter().position(|node| node.name == name);
            assert_eq!(place("n").is_some(), is_drawn);
            let is_before = edges.iter().any(|edge| Some(edge.from) == place("n") && Some(edge.to) == place("y"));
            assert_eq!(is_before, is_drawn);
        }
    }
}
