//! Graphs of a model as boxes, arrows and groups: one of its own graph, and one of each body.

use std::borrow::Cow;

use foldhash::HashMap;
use serde::{Serialize, Serializer};
use typelift::explain::blocks::{Block, Blocks};
use typelift::explain::map::{Role, Ways};
use typelift::findings::{Lines, size};
use typelift::graph::{Body, Direction, LayerMap, OutputPort, Place, PortMapEntry};
use typelift::ops::{self, LayerKind, Operation};
use typelift::precision::schemes::{self, Scheme};
use typelift::promote::ElementType;
use typelift::values::{Array, Data};
use typelift::{Graph, Layer, LayerId, Model, Output, Shapes};

use crate::folded::{Strings, Text};

/// In a graph with more boxes than this, shape computations are part of their consumer.
const MANY_BOXES: usize = 60;
/// A constant with at most this many values shows them in the line of its consumer.
const FEW_VALUES: u64 = 6;

#[derive(Default, Serialize)]
pub(crate) struct Drawn<'a> {
    /// The names of the surrounding bodies, `loop/body`; empty for the model's own graph.
    pub(crate) path: String,
    /// The graph and the box that contain it.
    pub(crate) holder: Option<(usize, usize)>,
    pub(crate) nodes: Vec<Node>,
    pub(crate) edges: Vec<Edge>,
    /// The blocks and scopes; an outer one comes before those inside.
    pub(crate) groups: Vec<Group<'a>>,
    /// The paths of shape computations without a box, each with those of its producers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) hidden: Vec<(Text, Vec<Text>)>,
    /// The paths of a body's Parameters, each with the input of the layer around it that enters there.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) entries: Vec<(Text, usize)>,
    /// The paths of a body's Results, each with the output of the layer around it that it becomes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) exits: Vec<(Text, usize)>,
    /// The paths of a body's Parameters and Results with their roles: `sliced along axis 1, start 0, stride 1`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) roles: Vec<(Text, String)>,
    /// The paths of a Result and of the Parameter that has its value in the next iteration.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) back: Vec<(Text, Text)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Side {
    Before,
    After,
}

/// A box.
#[derive(Clone, Default, PartialEq)]
pub(crate) struct Node {
    pub(crate) id: Option<LayerId>,
    pub(crate) path: Text,
    pub(crate) op: Text,
    pub(crate) line: Option<usize>,
    pub(crate) group: Option<usize>,
    /// Element types and shapes of its outputs, `f32[2]`.
    pub(crate) outputs: Vec<Text>,
    pub(crate) inputs: Vec<Entry>,
    pub(crate) attributes: Vec<(Text, Text)>,
    /// The names of its tensors that differ from its own name.
    pub(crate) tensors: Vec<Text>,
    pub(crate) more: Facts,
}

/// The facts that few boxes have.
#[derive(Clone, Default, PartialEq, Serialize)]
pub(crate) struct Facts {
    /// The name, if it is not the path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<Text>,
    /// For a Convert: source type, destination type, the possible loss, which is empty if nothing is lost, true for
    /// integers that count or select, and the reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) convert: Option<(String, &'static str, String, bool, String)>,
    /// The number of layers of a run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) layers: Option<usize>,
    /// The data path of its largest weight: `u4→f16→f32 · 30 KB`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) weights: Option<Text>,
    /// The multiply-accumulate operations; 0 for operations without any.
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) macs: u64,
    /// True if `macs` is a lower bound.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) least: bool,
    /// The name of an input or output of the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) end: Option<String>,
    /// The lengths that fit an input or that the layer demands, `seq ≤ 512`, each with the paths of the other layers concerned.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) limits: Vec<(String, Vec<Text>)>,
    /// The side that has this layer, if the other side does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) only: Option<Side>,
    /// The layer of the earlier model, if its box differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) was: Option<Box<Node>>,
}

/// Written as a row; `data.js` names the columns.
impl Serialize for Node {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { id, path, op, line, group, outputs, inputs, attributes, tensors, more } = self;
        if *more == Facts::default() {
            return (id, path, op, line, group, outputs, inputs, attributes, tensors).serialize(serializer);
        }
        (id, path, op, line, group, outputs, inputs, attributes, tensors, more).serialize(serializer)
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over references")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// An input of a layer.
#[derive(Clone, Default, PartialEq)]
pub(crate) struct Entry {
    /// The path of the producer; `None` for a constant.
    from: Option<Text>,
    /// The name of the input, such as `axis`; `None` for data.
    name: Option<&'static str>,
    /// The type and shape, `f32[2]`; for a constant also its name and other facts.
    text: Text,
    /// The paths of the layers that compute a constant, which have no boxes.
    held: Vec<Text>,
    /// For a weight of several constants: the path of each, and its part in the computation. The largest comes first.
    parts: Vec<(Text, &'static str)>,
    /// The paths of the layers whose shapes determine the values of a constant.
    of: Vec<Text>,
}

/// Written as a row; `data.js` names the columns.
impl Serialize for Entry {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { from, name, text, held, parts, of } = self;
        match (from, name) {
            (Some(_), None) => (text, from).serialize(serializer),
            (Some(_), Some(_)) => (text, from, name).serialize(serializer),
            _ if of.is_empty() => (text, from, name, held, parts).serialize(serializer),
            _ => (text, from, name, held, parts, of).serialize(serializer),
        }
    }
}

/// A numbered block, a scope in it, or the layers before, between or after blocks.
#[derive(Clone, PartialEq, Serialize)]
pub(crate) struct Group<'a> {
    pub(crate) name: Cow<'a, str>,
    pub(crate) path: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) parent: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) number: Option<u64>,
    /// The number of layers, those without boxes included.
    pub(crate) layers: usize,
    /// The stored bytes by element type.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) weights: Vec<(&'static str, u64)>,
    /// The number of computed tensors by element type.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) computed: Vec<(&'static str, usize)>,
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) parameters: u64,
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) macs: u64,
    /// True if `macs` is a lower bound.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) least: bool,
    /// The operations as an expression over lengths, of a group whose layers are not on the page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) formula: Option<String>,
    /// The differences from its siblings, in words.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    pub(crate) differs: &'a [String],
    /// The side that has this group, if the other side does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) only: Option<Side>,
    /// The group of the earlier model, if it differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) was: Option<Box<Group<'a>>>,
}

impl<'a> Group<'a> {
    pub(crate) fn of(block: &'a Block, parent: Option<usize>) -> Self {
        let mut weights: Vec<(&str, u64)> = Vec::new();
        for stored in &block.weights {
            let name = stored.element_type.name();
            match weights.iter_mut().find(|(known, _)| *known == name) {
                Some((_, bytes)) => *bytes += stored.bytes,
                None => weights.push((name, stored.bytes)),
            }
        }
        Self {
            name: block.name.as_str().into(),
            path: block.path.as_str().into(),
            parent,
            number: block.number,
            layers: block.layers.len(),
            weights,
            computed: block.computed.iter().map(|count| (count.element_type.name(), count.count)).collect(),
            parameters: block.parameters,
            macs: block.macs,
            least: block.macs_is_least && block.macs > 0,
            formula: None,
            differs: &block.differs,
            only: None,
            was: None,
        }
    }
}

#[derive(Clone)]
pub(crate) struct Edge {
    pub(crate) from: usize,
    pub(crate) to: usize,
    /// The type and shape, `f32[2]`.
    pub(crate) text: Text,
    pub(crate) only: Option<Side>,
}

/// Written as a row; `data.js` names the columns.
impl Serialize for Edge {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { from, to, text, only } = self;
        match only {
            Some(only) => (from, to, text, only).serialize(serializer),
            None => (from, to, text).serialize(serializer),
        }
    }
}

/// The facts about layers that boxes show.
struct Source<'a> {
    model: &'a Model,
    lines: Lines,
    shapes: &'a Shapes,
    /// The texts of known types and dimensions.
    texts: HashMap<(ElementType, usize), Text>,
}

impl Source<'_> {
    /// The element types of a layer's outputs with their shapes, which have the names of open lengths.
    fn outputs(&mut self, place: &Place, layer: &Layer, strings: &mut Strings) -> Vec<Text> {
        let outputs = layer.outputs().iter().enumerate().map(|(at, port)| {
            if !place.is_model() {
                return strings.text(&port.to_string());
            }
            let (tensor, ty) = (layer.id().output(at), port.element_type());
            let key = self.shapes.number(tensor).map(|number| (ty, number));
            if let Some(text) = key.and_then(|key| self.texts.get(&key)) {
                return *text;
            }
            let text = strings.text(&[ty.name(), &self.shapes.text(tensor, port)].concat());
            self.texts.extend(key.map(|key| (key, text)));
            text
        });
        outputs.collect()
    }

    /// The limits on open lengths of inputs, each with the layers that it concerns: the inputs, and the layer that demands it.
    fn limits(&self) -> Vec<(String, Vec<LayerId>)> {
        let limits = self.shapes.symbols.iter().filter_map(|symbol| {
            let (limit, constraint) = self.shapes.limit(symbol)?;
            let demanding = constraint.because.first().filter(|it| it.layer.place.is_model()).map(|it| it.layer.id);
            let mut ends: Vec<LayerId> = symbol.axes.iter().map(|&(id, _)| id).chain(demanding).collect();
            ends.sort_unstable();
            ends.dedup();
            Some((limit, ends))
        });
        limits.collect()
    }
}

/// The graphs of a model. A place includes the names of the surrounding bodies.
pub(crate) type Graphs<'d, 'a> = HashMap<&'d Place, Known<'d, 'a>>;

/// A graph with the data paths of its values, and the path and the operation of each layer.
pub(crate) struct Known<'d, 'a> {
    pub(crate) graph: &'a Graph,
    pub(crate) ways: &'d Ways<'a>,
    names: LayerMap<(Text, Text)>,
}

impl Known<'_, '_> {
    /// The path and the operation of a layer.
    pub(crate) fn names(&self, layer: LayerId) -> (Text, Text) {
        self.names.get(layer).copied().unwrap_or_default()
    }

    pub(crate) fn path(&self, layer: &Layer) -> Text {
        self.names(layer.id()).0
    }

    fn path_of(&self, layer: LayerId) -> Option<Text> {
        self.names.get(layer).map(|(path, _)| *path)
    }
}

pub(crate) fn graphs<'d, 'a>(ways: &'d [(Place, Ways<'a>)], strings: &mut Strings) -> Graphs<'d, 'a> {
    let known = ways.iter().map(|(place, ways)| {
        let graph = ways.graph();
        let mut names = LayerMap::new(graph);
        names.extend(
            graph.layers().map(|layer| (layer.id(), (strings.text(&path(place, layer)), strings.text(layer.ty())))),
        );
        (place, Known { graph, ways, names })
    });
    known.collect()
}

struct Pending<'a> {
    place: Place,
    /// The graph and the box that contain it.
    holder: Option<(usize, usize)>,
    body: Option<(&'a Layer, &'a Body)>,
}

pub(crate) fn drawn<'a>(
    model: &'a Model,
    shapes: Option<&Shapes>,
    graphs: &Graphs<'_, '_>,
    blocks: &'a Blocks,
    strings: &mut Strings,
) -> Vec<Drawn<'a>> {
    let mut list: Vec<Drawn> = Vec::new();
    let own = shapes.is_none().then(|| typelift::shapes(model));
    let Some(shapes) = shapes.or(own.as_ref()) else { return list };
    let lines = Lines::new(model.source().clone());
    let mut source = Source { model, lines, shapes, texts: HashMap::default() };
    let mut pending = vec![Pending { place: Place::default(), holder: None, body: None }];
    while let Some(Pending { place, holder, body }) = pending.pop() {
        let Some((place, known)) = graphs.get_key_value(&place) else { continue };
        let (graph, at) = (known.graph, list.len());
        let (groups, group_of) = groups(graph, blocks, place);
        let mut boxes = Boxes { nodes: Vec::new(), edges: Vec::new(), numbers: numbers(known) };
        boxes.add_layers(&mut source, known, place, strings);
        for node in &mut boxes.nodes {
            node.group = node.id.and_then(|id| group_of.get(id)).copied();
        }
        for layer in graph.layers() {
            for (number, body) in layer.bodies().iter().enumerate() {
                let holder = boxes.numbers.get(layer.id()).map(|&node| (at, node));
                pending.push(Pending { place: place.body(layer.id(), number), holder, body: Some((layer, body)) });
            }
        }
        for (limit, ends) in if place.is_model() { source.limits() } else { Vec::new() } {
            for end in ends.iter().filter_map(|&end| boxes.numbers.get(end).copied()) {
                let others = ends.iter().filter(|&&id| boxes.nodes[end].id != Some(id));
                let others = others.filter_map(|&id| known.path_of(id)).collect();
                boxes.nodes[end].more.limits.push((limit.clone(), others));
            }
        }
        let hidden = hidden(known, &boxes.numbers);
        let links = |direction: Direction| {
            let all = body.into_iter().flat_map(|(layer, body)| body.port_map.iter().map(move |link| (layer, link)));
            let wanted = all.filter(|(_, link)| link.direction == direction);
            wanted
                .filter_map(|(layer, link)| Some((known.path_of(link.internal_layer_id)?, outer(layer, link)?)))
                .collect()
        };
        let back = body.into_iter().flat_map(|(_, body)| &body.back_edges);
        list.push(Drawn {
            path: place.path().to_owned(),
            holder,
            entries: links(Direction::Input),
            exits: links(Direction::Output),
            roles: body
                .into_iter()
                .flat_map(|(_, body)| &body.port_map)
                .filter_map(|link| Some((known.path_of(link.internal_layer_id)?, role(link)?)))
                .collect(),
            back: back.filter_map(|edge| Some((known.path_of(edge.from)?, known.path_of(edge.to)?))).collect(),
            nodes: boxes.nodes,
            edges: boxes.edges,
            groups,
            hidden,
        });
    }
    list
}

/// Describes slices, concatenation and the values that only a loop uses.
fn role(link: &PortMapEntry) -> Option<String> {
    let word = if link.direction == Direction::Input { "sliced" } else { "concatenated" };
    let of = [("start", link.start), ("end", link.end), ("stride", link.stride), ("part size", link.part_size)];
    let numbers = of.into_iter().filter_map(|(name, number)| Some(format!(", {name} {}", number?)));
    let axis = link.axis.map(|axis| format!("{word} along axis {axis}{}", numbers.collect::<String>()));
    axis.or_else(|| Some(link.purpose()?.replace('_', " ")))
}

/// The position of the port of a layer to which its body is linked.
fn outer(layer: &Layer, link: &PortMapEntry) -> Option<usize> {
    let is_linked = |id: u64| i64::try_from(id) == Ok(link.external_port_id);
    match link.direction {
        Direction::Input => layer.inputs().iter().position(|port| is_linked(port.id())),
        Direction::Output => layer.outputs().iter().position(|port| is_linked(port.id())),
    }
}

fn groups<'a>(graph: &Graph, blocks: &'a Blocks, place: &Place) -> (Vec<Group<'a>>, LayerMap<usize>) {
    let (mut groups, mut group_of) = (Vec::new(), LayerMap::new(graph));
    let top = blocks.list.iter().filter(|block| block.place == *place);
    let mut pending: Vec<(&Block, Option<usize>)> = top.map(|block| (block, None)).rev().collect();
    while let Some((block, parent)) = pending.pop() {
        let number = groups.len();
        groups.push(Group::of(block, parent));
        group_of.extend(block.layers.iter().map(|&id| (id, number)));
        pending.extend(block.blocks.iter().map(|inner| (inner, Some(number))).rev());
    }
    (groups, group_of)
}

/// The numbers of the boxes. Constants, layers that compute from constants alone, and in a large graph shape computations
/// have none.
fn numbers(known: &Known<'_, '_>) -> LayerMap<usize> {
    let graph = known.graph;
    let mut layers: Vec<LayerId> = graph.layers().map(Layer::id).filter(|&id| !is_constant(known, id)).collect();
    if layers.len() > MANY_BOXES {
        layers.retain(|&id| known.ways.role(id) != Some(Role::Shape));
    }
    let mut numbers = LayerMap::new(graph);
    numbers.extend(layers.into_iter().zip(0..));
    numbers
}

/// The layers without a box that do not compute from constants alone, with their producers.
fn hidden(known: &Known<'_, '_>, numbers: &LayerMap<usize>) -> Vec<(Text, Vec<Text>)> {
    let folded = known.graph.layers().filter(|layer| numbers.get(layer.id()).is_none());
    let layers = folded.filter(|layer| !is_constant(known, layer.id()));
    let with_producers = layers.map(|layer| {
        let feeds = known.graph.producers(layer.id()).into_iter().flatten();
        let producers = feeds.filter(|feed| !is_constant(known, feed.layer)).map(|feed| known.names(feed.layer).0);
        (known.path(layer), producers.collect())
    });
    with_producers.collect()
}

pub(crate) fn path<'a>(place: &Place, layer: &'a Layer) -> Cow<'a, str> {
    if place.is_model() { layer.name().into() } else { place.path_to(layer.name()).into() }
}

struct Boxes {
    nodes: Vec<Node>,
    edges: Vec<Edge>,
    numbers: LayerMap<usize>,
}

impl Boxes {
    fn add_layers(&mut self, source: &mut Source<'_>, known: &Known<'_, '_>, place: &Place, strings: &mut Strings) {
        let graph = known.graph;
        let shown: Vec<&Layer> = graph.layers().filter(|layer| self.numbers.get(layer.id()).is_some()).collect();
        let quantized = schemes::find(graph, source.model.weights()).into_iter();
        let schemes: HashMap<LayerId, Scheme> = quantized.map(|it| (it.codes, it.scheme)).collect();
        let outputs: Vec<_> = shown.iter().map(|layer| source.outputs(place, layer, strings)).collect();
        self.nodes.reserve(shown.len());
        for (to, layer) in shown.into_iter().enumerate() {
            let (mut inputs, mut weights) = (Vec::new(), Vec::new());
            let mut names = layer.operation().into_iter().flat_map(Operation::input_names);
            for feed in graph.producers(layer.id()) {
                let name = names.next().filter(|name| *name != "data");
                let Some(feed) = feed else { continue };
                let (Some(producer), Some(port)) = (graph.layer(feed.layer), graph.output(feed)) else { continue };
                if let Some(&from) = self.numbers.get(feed.layer) {
                    let text = outputs[from][feed.port];
                    self.edges.push(Edge { from, to, text, only: None });
                    inputs.push(Entry { from: Some(known.path(producer)), name, text, ..Entry::default() });
                    continue;
                }
                let stored = Stored::new(known, feed, &self.numbers);
                let mut text = constant(source.model, producer, port, &stored);
                // A shape of a quantized tensor is not quantized.
                let codes = stored.way.first().filter(|_| stored.shaped.is_empty());
                let scheme = codes.and_then(|codes| schemes.get(&codes.id()));
                text.extend(scheme.map(|scheme| format!(", {scheme}")));
                let [held, of] =
                    [&stored.layers, &stored.shaped].map(|layers| layers.iter().map(|it| known.path(it)).collect());
                let parts = stored.parts(graph, scheme.is_some()).into_iter();
                let parts = parts.map(|(layer, part)| (known.path(layer), part)).collect();
                weights.extend(stored.weights);
                inputs.push(Entry { from: None, name, text: strings.text(&text), held, parts, of });
            }
            let largest = weights.into_iter().max_by_key(|(bytes, _)| *bytes);
            let weights = largest.map(|(_, text)| strings.text(&text));
            let more = Facts { weights, ..facts(source, known, layer, place, strings) };
            self.nodes.push(Node { inputs, more, ..node(source, known, layer, strings) });
        }
        self.nodes.iter_mut().zip(outputs).for_each(|(node, outputs)| node.outputs = outputs);
    }
}

fn input_name(layer: &Layer, input: usize) -> Option<&'static str> {
    layer.operation()?.input_name(input).filter(|name| *name != "data")
}

/// True for a layer that computes from constants alone. It is drawn as part of its consumers; without any it keeps a box.
fn is_constant(known: &Known<'_, '_>, id: LayerId) -> bool {
    known.ways.role(id) == Some(Role::Stored) && known.graph.users(id).next().is_some()
}

/// The layers that compute a constant or a shape, and the data path of the largest value that they store.
struct Stored<'a> {
    layers: Vec<&'a Layer>,
    way: Vec<&'a Layer>,
    /// The layers whose shapes are used.
    shaped: Vec<&'a Layer>,
    /// The bytes of that value and its data path; `None` for a single number.
    weights: Option<(u64, String)>,
}

impl<'a> Stored<'a> {
    fn new(known: &Known<'_, 'a>, end: Output, numbers: &LayerMap<usize>) -> Self {
        let graph = known.graph;
        let way = std::iter::successors(Some(end), |&tensor| known.ways.before(tensor));
        let mut way: Vec<&Layer> = way.filter_map(|tensor| graph.layer(tensor.layer)).collect();
        way.reverse();
        let (mut layers, mut shaped) = (Vec::from_iter(graph.layer(end.layer)), Vec::<&Layer>::new());
        let mut next = 0;
        while let Some(&layer) = layers.get(next).filter(|_| next < MOST_STORED) {
            next += 1;
            for feed in graph.producers(layer.id()).into_iter().flatten().filter_map(|feed| graph.layer(feed.layer)) {
                if ![&layers, &shaped].into_iter().flatten().any(|known| known.id() == feed.id()) {
                    let list = if numbers.get(feed.id()).is_none() { &mut layers } else { &mut shaped };
                    list.push(feed);
                }
            }
        }
        let weights = way.first().filter(|layer| count(layer) > 1 && shaped.is_empty()).map(|first| {
            let bytes = first.attribute("size").and_then(|size| size.parse().ok()).unwrap_or(0);
            let mut types: Vec<_> =
                way.iter().filter_map(|layer| Some(layer.outputs().first()?.element_type().name())).collect();
            types.dedup();
            (bytes, format!("{} · {}", types.join("→"), size(bytes)))
        });
        Self { layers, way, shaped, weights }
    }

    fn parts(&self, graph: &Graph, is_quantized: bool) -> Vec<(&'a Layer, &'static str)> {
        let mut constants: Vec<&Layer> =
            self.layers.iter().copied().filter(|layer| ops::kind(layer) == LayerKind::Constant).collect();
        if constants.len() < 2 {
            return Vec::new();
        }
        let main = self.way.first().map(|layer| layer.id());
        constants.sort_by_key(|layer| Some(layer.id()) != main);
        let mut known = HashMap::<LayerId, &'static str>::default();
        // A layer comes before those that it is computed from.
        for layer in &self.layers {
            let name = layer.operation().map_or("", |operation| operation.name);
            for (input, feed) in graph.producers(layer.id()).into_iter().enumerate() {
                let part = match (name, input) {
                    ("Subtract", 1) => "zero points",
                    ("Multiply", _) => "scales",
                    _ => input_name(layer, input).or(known.get(&layer.id()).copied()).unwrap_or("values"),
                };
                known.extend(feed.map(|feed| (feed.layer, part)));
            }
        }
        let main_part = if is_quantized { "codes" } else { "stored values" };
        known.extend(main.map(|main| (main, main_part)));
        constants.into_iter().map(|layer| (layer, *known.get(&layer.id()).unwrap_or(&main_part))).collect()
    }

    /// The values of a constant with few values after the Converts before its consumer, if nothing else is between.
    fn numbers(&self, model: &Model) -> Option<Vec<String>> {
        let (first, rest) = self.way.split_first()?;
        let is_plain = self.shaped.is_empty() && rest.iter().all(|layer| ops::kind(layer) == LayerKind::Convert);
        if !is_plain || !(1..=FEW_VALUES).contains(&count(first)) {
            return None;
        }
        let mut types = self.way.iter().map(|layer| Some(layer.outputs().first()?.element_type()));
        let dims = std::iter::once(count(first) as usize).collect();
        let stored = Array::decode_all(types.next()??, dims, &first.bytes(model.weights())?)?;
        let Array { element_type, data, .. } = types.try_fold(stored, |array, to| array.converted(to?))?;
        Some(match data {
            Data::Ints(numbers) => numbers.iter().map(|number| number.to_string()).collect(),
            Data::Floats(numbers) => numbers.iter().map(|&value| number(value, element_type)).collect(),
        })
    }
}

/// Limit on the layers that are listed for one constant.
const MOST_STORED: usize = 64;

pub(crate) fn count(layer: &Layer) -> u64 {
    layer.outputs().first().and_then(|port| port.shape().element_count()).unwrap_or(0)
}

/// Describes a constant, with its values if they are few.
fn constant(model: &Model, layer: &Layer, port: &OutputPort, stored: &Stored<'_>) -> String {
    let values = stored.numbers(model).map(|values| format!(" = {}", values.join(", ")));
    if !stored.shaped.is_empty() {
        let count = stored.layers.len();
        let layers = if count == 1 { "layer" } else { "layers" };
        return format!("{} {port} (shape arithmetic, {count} {layers})", layer.name());
    }
    let way = stored.weights.as_ref().filter(|_| stored.way.len() > 1).map(|(_, way)| format!(" ({way})"));
    format!("{} {port}{}{}", layer.name(), values.unwrap_or_default(), way.unwrap_or_default())
}

/// Formats a value with the digits that tell it apart in its element type: `0.7`, `-3.4028235e38`.
fn number(value: f64, element_type: ElementType) -> String {
    let is_far = value != 0.0 && value.is_finite() && !(1e-5..1e9).contains(&value.abs());
    match (element_type.is_float(), element_type.bits() <= 32) {
        (true, true) if is_far => format!("{:e}", value as f32),
        (true, true) => (value as f32).to_string(),
        (true, false) if is_far => format!("{value:e}"),
        _ => value.to_string(),
    }
}

fn node(source: &Source<'_>, known: &Known<'_, '_>, layer: &Layer, strings: &mut Strings) -> Node {
    let (path, op) = known.names(layer.id());
    let attributes = layer.attributes().iter();
    let attributes = attributes.map(|it| (strings.text(it.name()), strings.text(&brief(it.value())))).collect();
    let names = layer.outputs().iter().flat_map(OutputPort::each_name);
    let tensors = names.filter(|name| name != layer.name()).map(|name| strings.text(&name)).collect();
    let line = layer.span().map(|span| source.lines.line_at(span.start));
    Node { id: Some(layer.id()), path, op, line, attributes, tensors, ..Node::default() }
}

fn facts(source: &Source<'_>, known: &Known<'_, '_>, layer: &Layer, place: &Place, strings: &mut Strings) -> Facts {
    let graph = known.graph;
    let convert = ops::conversion(graph, layer).map(|found| {
        let effect = found.effect(graph, source.model.weights(), layer);
        let lost = if effect.is_exact() { String::new() } else { effect.to_string() };
        let from: Vec<&str> = found.from.iter().map(|ty| ty.name()).collect();
        let is_judged = effect.audit.is_none() && found.lossy().next().is_some();
        let reason = if is_judged { range(found.range(graph, source.model.weights(), layer)) } else { String::new() };
        (from.join(", "), found.to.name(), lost, known.ways.converts_indices(layer), reason)
    });
    let is_end = place.is_model() && matches!(ops::kind(layer), LayerKind::Parameter | LayerKind::Result);
    let macs = ops::macs(graph, layer);
    Facts {
        name: (!place.is_model()).then(|| strings.text(layer.name())),
        convert,
        macs: macs.count,
        least: macs.is_least,
        end: is_end.then(|| source.model.end_name(layer)).filter(|name| name != layer.name()),
        ..Facts::default()
    }
}

/// Describes the least and the greatest value of a tensor.
fn range(ends: [Option<f64>; 2]) -> String {
    match ends {
        [Some(least), Some(most)] => format!("its values are between {least} and {most}"),
        [Some(least), None] => format!("its values are at least {least}, and no upper limit is known"),
        [None, Some(most)] => format!("its values are at most {most}, and no lower limit is known"),
        [None, None] => "the range of its values is not known".to_owned(),
    }
}

pub(crate) fn brief(text: &str) -> Cow<'_, str> {
    const LONG: usize = 2000;
    match Some(text).filter(|text| text.len() > LONG).and_then(|text| text.char_indices().nth(LONG)) {
        Some((end, _)) => format!("{}… ({} bytes)", &text[..end], text.len()).into(),
        None => text.into(),
    }
}

#[cfg(test)]
mod tests {
    use typelift::promote::ElementType;

    #[test]
    fn a_number_has_the_digits_of_its_type() {
        let texts =
            [(0.1_f32.into(), ElementType::F32), (f64::from(f32::MIN), ElementType::F32), (0.1, ElementType::F64)];
        assert_eq!(texts.map(|(value, ty)| super::number(value, ty)), ["0.1", "-3.4028235e38", "0.1"]);
    }
}
