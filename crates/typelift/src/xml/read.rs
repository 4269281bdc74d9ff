//! From text to graph.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::mem::{replace, take};
use std::ops::Range;
use std::sync::{Arc, mpsc};
use std::thread;

use compact_str::CompactString;
use memchr::memmem::{self, Finder};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use typelift_promote::ElementType;

use super::tokens::{Element, Tokens, decode, plain_number};
use super::{Code, Diagnostic, Model, Span};
use crate::diagnostic::{LayerRef, Severity};
use crate::graph::kind::{LayerKind, start};
use crate::graph::{
    Attribute, AttributeList, BackEdge, Body, Demands, Direction, Graph, Input, InputPort, IrVersion, Layer, LayerId,
    OperationName, Output, OutputPort, PortMapEntry,
};
use crate::number::integer_prefix;
// The reader drops layers as OpenVINO does, by what their type says and nothing else of operations.
use crate::shape::{Dim, Shape};
use crate::spelling::{self, nearest};
use crate::weights::Weights;

/// Bodies nest at most this deep: several times deeper than in any real model, and no danger to the stack.
const MAX_DEPTH: usize = 64;

/// What a thread needs for that: what the main thread commonly has.
const STACK: usize = 8 << 20;

/// A text of as many bytes is worth a second thread.
const MIN_FOR_TWO_THREADS: usize = 4 << 20;

/// The most bodies that a layer can have; known operations have at most two.
const MAX_BODIES: usize = 64;

/// What an edge says, in the order in which it is written.
const EDGE_ATTRIBUTES: [&str; 4] = ["from-layer", "from-port", "to-layer", "to-port"];

/// How many layers, ports or attributes a message lists one by one.
const SHOWN: usize = 8;

/// Limit on the diagnostics of one code: each takes many times the memory of the bytes that cause it.
const MAX_OF_A_KIND: usize = 1000;

/// Up to this many attributes of a layer are kept, to be compared with those of the next layer of its operation.
const MOST_KEPT: usize = 64;

/// Of up to this many operations the last layer is kept.
const MOST_OPERATIONS: usize = 1 << 10;

/// `rt_info` attributes of layers and ports that OpenVINO 2026.4.1 knows, each in version 0, and whether it can read them.
const RT_INFO: &[(&str, bool)] = &[
    ("DisableConstantFolding", false),
    ("DisablePrecisionConversion", true),
    ("decompression", true),
    ("fused_names", true),
    ("layout", true),
    ("memory_type", true),
    ("nms_selected_indices", false),
    ("old_api_map_element_type", true),
    ("old_api_map_order", true),
    ("precise", true),
    ("preprocessing", true),
    ("primitives_priority", true),
    ("strides_propagation", false),
];

/// What reading a text gave.
#[derive(Clone, Debug)]
pub struct Reading {
    /// The model, as far as it could be made out; `None` where the text is not an IR at all.
    pub model: Option<Model>,
    /// Errors and lints, in the order of the text.
    pub diagnostics: Vec<Diagnostic>,
}

/// Reads a model from text, with everything that is wrong or odd about it. Types and shapes are those the ports declare
/// until [`infer`](crate::infer()) has run.
///
/// A text of several megabytes is read on two threads, where there are two cores.
#[must_use]
pub fn parse(source: Arc<String>) -> Reading {
    let has_cores = || thread::available_parallelism().is_ok_and(|cores| cores.get() > 1);
    let is_long = source.len() >= MIN_FOR_TWO_THREADS;
    match is_long.then(|| second_half(&source)).flatten().filter(|_| has_cores()) {
        Some(half) => parse_in_halves(&source, half),
        None => parse_alone(source),
    }
}

/// As [`parse`], on this thread alone.
#[must_use]
pub fn parse_alone(source: Arc<String>) -> Reading {
    parse_with(&source, None)
}

fn parse_in_halves(source: &Arc<String>, half: Span) -> Reading {
    thread::scope(|scope| {
        let (sender, layers) = mpsc::channel();
        let read = move || drop(sender.send(LayersOnly::read(source, half)));
        let started = thread::Builder::new().stack_size(STACK).spawn_scoped(scope, read);
        parse_with(source, started.is_ok().then_some(SecondHalf { span: half, layers }))
    })
}

fn parse_with(source: &Arc<String>, second_half: Option<SecondHalf>) -> Reading {
    let whole = Span::new(0, source.len());
    if whole.end == u32::MAX {
        let refusal = Diagnostic::new(Code::NotAnIr, "the text is 4 GiB or longer, and no IR is");
        return Reading { model: None, diagnostics: vec![refusal] };
    }
    let mut read = Read { second_half, ..Read::new(source, whole) };
    let model = read.model();
    let mut diagnostics = read.finish();
    match model {
        Ok(model) => Reading { model: model.map(|model| Model { source: source.clone(), ..model }), diagnostics },
        Err(fatal) => {
            // Where the text is not XML any more, what was odd before is most likely part of the same mistake.
            diagnostics.retain(Diagnostic::is_error);
            diagnostics.push(fatal);
            Reading { model: None, diagnostics }
        }
    }
}

/// Whether the text of a port, whose tags say `declared` and enclose `content`, says this type and shape. Bounds of a dim
/// cannot be written, nor can the difference between a scalar and a dynamic rank.
pub(crate) fn declares(source: &str, declared: Option<ElementType>, content: Span, output: &OutputPort) -> bool {
    declared == Some(output.element_type)
        && ((!output.stale && content.text(source) == output.content.text(source))
            || matches_dims(&declared_dims(source, content), &output.shape))
}

/// Where `attribute` of the first `element` at or directly under the layer at `span` is: its value, or the element's
/// tag if it is not written, or the layer's if it has no such element.
pub(crate) fn locate(source: &str, span: Span, element: &str, attribute: &str) -> Span {
    let mut tokens = Tokens::new(source, span);
    let Ok(Some(root)) = tokens.child(None) else { return span };
    let find = |tokens: &Tokens, tag: &Element| {
        let written = Tokens::attributes(tag).flatten().find(|(name, _)| *name == attribute);
        written.map_or(tag.tag_span, |(_, value)| tokens.span_of(value))
    };
    if root.name() == element {
        return find(&tokens, &root);
    }
    while let Ok(Some(child)) = tokens.child(Some(&root)) {
        if child.name() == element {
            return find(&tokens, &child);
        }
        if tokens.skip(&child).is_err() {
            break;
        }
    }
    root.tag_span
}

/// The tag of a port of the layer at `span`, or the layer's if it has no such port.
pub(crate) fn locate_port(source: &str, span: Span, direction: Direction, position: usize) -> Span {
    let list = if direction == Direction::Input { "input" } else { "output" };
    let mut tokens = Tokens::new(source, span);
    let Ok(Some(layer)) = tokens.child(None) else { return span };
    while let Ok(Some(child)) = tokens.child(Some(&layer)) {
        let mut ports = 0;
        while child.name() == list {
            let Ok(Some(port)) = tokens.child(Some(&child)) else { return layer.tag_span };
            if port.name() == "port" && ports == position {
                return port.tag_span;
            }
            ports += usize::from(port.name() == "port");
            if tokens.skip(&port).is_err() {
                return layer.tag_span;
            }
        }
        if tokens.skip(&child).is_err() {
            break;
        }
    }
    layer.tag_span
}

/// The tag of a back edge of the layer at `span`, by position, or the layer's if it has no such edge.
pub(crate) fn locate_back_edge(source: &str, span: Span, position: usize) -> Span {
    let mut tokens = Tokens::new(source, span);
    let Ok(Some(layer)) = tokens.child(None) else { return span };
    while let Ok(Some(child)) = tokens.child(Some(&layer)) {
        let mut edges = 0;
        while child.name() == "back_edges" {
            let Ok(Some(edge)) = tokens.child(Some(&child)) else { return layer.tag_span };
            if edges == position {
                return edge.tag_span;
            }
            edges += 1;
            if tokens.skip(&edge).is_err() {
                return layer.tag_span;
            }
        }
        if tokens.skip(&child).is_err() {
            break;
        }
    }
    layer.tag_span
}

/// The entry of a port map, or the back edge, of the layer at `span` that names a layer of a body.
#[cold]
pub(crate) fn locate_joint(source: &str, span: Span, id: LayerId) -> Option<Span> {
    let mut tokens = Tokens::new(source, span);
    let layer = tokens.child(None).ok()??;
    while let Ok(Some(child)) = tokens.child(Some(&layer)) {
        let joins = child.name().contains("port_map") || child.name() == "back_edges";
        while let Some(entry) = tokens.child(Some(&child)).ok()?.filter(|_| joins) {
            let mut names = Tokens::attributes(&entry).flatten();
            let is_it = |(name, value): (&str, &str)| {
                ["internal_layer_id", "from-layer", "to-layer"].contains(&name) && value.trim().parse() == Ok(id.0)
            };
            if names.any(is_it) {
                return Some(entry.tag_span);
            }
            tokens.skip(&entry).ok()?;
        }
        if !joins {
            tokens.skip(&child).ok()?;
        }
    }
    None
}

/// Whether a port with these dims says this shape.
pub(crate) fn matches_dims(declared: &[i64], shape: &Shape) -> bool {
    let dims = shape.dims().unwrap_or_default();
    declared.len() == dims.len() && declared.iter().zip(dims).all(|(&text, dim)| dim.value().unwrap_or(-1) == text)
}

/// The dims that the text between a port's tags declares; -1 for one that is not fixed, less if it is not a dim.
pub(crate) fn declared_dims(source: &str, content: Span) -> SmallVec<[i64; 6]> {
    if let Some(dims) = plain_dims(content.text(source)) {
        return dims;
    }
    let mut tokens = Tokens::new(source, content);
    let mut dims = SmallVec::new();
    while let Ok(Some(child)) = tokens.child(None) {
        let text = if child.name() == "dim" { tokens.text(&child) } else { tokens.skip(&child).map(|_| "".into()) };
        match text {
            Ok(text) if child.name() == "dim" => dims.push(integer_prefix(&text).map_or(i64::MIN, |(dim, _)| dim)),
            Ok(_) => {}
            Err(_) => break,
        }
    }
    dims
}

/// As [`declared_dims`], where the text is nothing but plain elements with numbers and white space, which it nearly always
/// is.
fn plain_dims(text: &str) -> Option<SmallVec<[i64; 6]>> {
    let mut dims = SmallVec::new();
    let mut rest = text.trim_ascii_start();
    while !rest.is_empty() {
        let (dim, behind) = rest.strip_prefix("<dim>")?.split_once("</dim>")?;
        match integer_prefix(dim)? {
            (dim, false) => dims.push(dim),
            (_, true) => return None,
        }
        rest = behind.trim_ascii_start();
    }
    Some(dims)
}

/// The metadata in the text between a port's tags.
pub(super) fn rt_info_in(source: &str, content: Span) -> Option<Span> {
    if !content.text(source).contains("rt_info") {
        return None;
    }
    let mut tokens = Tokens::new(source, content);
    while let Ok(Some(child)) = tokens.child(None) {
        let span = tokens.skip(&child).ok()?;
        if child.name() == "rt_info" {
            return Some(span);
        }
    }
    None
}

/// The bytes of the weights that the means in a `<pre-process>` at `span` take.
pub(crate) fn means(source: &str, span: Span) -> Vec<Range<u64>> {
    let mut tokens = Tokens::new(source, span);
    let mut found = Vec::new();
    let Ok(Some(root)) = tokens.child(None) else { return found };
    while let Ok(Some(channel)) = tokens.child(Some(&root)) {
        while let Ok(Some(mean)) = tokens.child(Some(&channel)) {
            let number = |wanted: &str| {
                let written = Tokens::attributes(&mean).flatten().find(|(name, _)| *name == wanted);
                written.and_then(|(_, value)| value.trim().parse::<u64>().ok())
            };
            if let ("mean", Some(start), Some(size)) = (mean.name(), number("offset"), number("size")) {
                found.push(start..start.saturating_add(size));
            }
            if tokens.skip(&mean).is_err() {
                return found;
            }
        }
    }
    found
}

/// Whether the metadata at `span` has this attribute, in the one version that OpenVINO knows.
pub(crate) fn has_rt_info(source: &str, span: Span, name: &str) -> bool {
    let mut tokens = Tokens::new(source, span);
    let Ok(Some(root)) = tokens.child(None) else { return false };
    while let Ok(Some(child)) = tokens.child(Some(&root)) {
        let says = |wanted: &str, value: &str| {
            Tokens::attributes(&child)
                .flatten()
                .find(|(name, _)| *name == wanted)
                .is_some_and(|(_, found)| found == value)
        };
        if child.name() == "attribute" && says("name", name) && says("version", "0") {
            return true;
        }
        if tokens.skip(&child).is_err() {
            return false;
        }
    }
    false
}

/// Where the second half of the layers of a long text could begin: behind the end of some layer. It ends with the layers.
fn second_half(source: &str) -> Option<Span> {
    let end = memmem::rfind(source.as_bytes(), b"</layers>")?;
    const END_TAG: &str = "</layer>";
    let start = end / 2 + memmem::find(&source.as_bytes()[end / 2..end], END_TAG.as_bytes())? + END_TAG.len();
    Some(Span::new(start, end))
}

/// The second half of the layers, which another thread reads.
struct SecondHalf {
    span: Span,
    layers: mpsc::Receiver<Option<LayersOnly>>,
}

/// A part of a text that has layers in it and nothing else, and nothing to report.
struct LayersOnly {
    layers: Vec<Layer>,
    unnamed: Vec<LayerId>,
}

impl LayersOnly {
    fn read(source: &str, span: Span) -> Option<Self> {
        let mut read = Read::new(source, span);
        let mut layers = Vec::new();
        while let Some(element) = read.tokens.child(None).ok()? {
            if element.name() != "layer" || !read.diagnostics.is_empty() {
                return None;
            }
            read.layer(&element, |layer| layers.push(layer)).ok()?;
        }
        let is_all = read.diagnostics.is_empty() && read.tokens.position() == span.end as usize;
        is_all.then_some(Self { layers, unnamed: read.unnamed })
    }
}

struct Read<'a> {
    source: &'a str,
    tokens: Tokens<'a>,
    second_half: Option<SecondHalf>,
    diagnostics: Vec<Diagnostic>,
    /// How often each code was reported.
    counts: FxHashMap<Code, usize>,
    /// The layers around the body being read.
    path: Vec<CompactString>,
    version: IrVersion,
    /// True if a layer of the current graph could not be read: suppresses errors about edges to it.
    damaged: bool,
    /// The layers of the current graph at which an edge ends that could not be taken in.
    lost: Vec<LayerId>,
    /// The ids of the current graph that several layers have, each with the position of its diagnostic.
    repeated: Vec<(LayerId, usize)>,
    /// The layers of the current graph that have an empty type or version.
    unnamed: Vec<LayerId>,
    /// The layers of the graph that was read last that OpenVINO drops, and to which edges lead that it could not follow.
    dropped: HashSet<LayerId>,
    /// The layers that OpenVINO creates of that graph, once somebody asked.
    created: Option<HashSet<LayerId>>,
    known_ports: Known<'a, Shape>,
    known_inputs: Known<'a, SmallVec<[InputPort; 2]>>,
    /// The place in `last` of each operation, by type and version.
    operations: FxHashMap<(&'a str, &'a str), usize>,
    last: Vec<Last<'a>>,
}

/// What the last layer of an operation was like. The next one shares it, where it is written alike.
struct Last<'a> {
    operation_name: Arc<OperationName>,
    /// Its `<data>`, and what that says.
    data: &'a str,
    attributes: AttributeList,
}

/// What was read between the tags of some kind of element, and what it says. Nearly every port repeats another one, and to
/// compare text is much faster than to read it.
struct Known<'a, T> {
    end_tag: Finder<'static>,
    entries: FxHashMap<&'a str, (Span, T)>,
}

impl<'a, T> Known<'a, T> {
    const MAX_ENTRIES: usize = 1 << 10;
    const MAX_BYTES: usize = 1 << 10;

    fn new(end_tag: &'static str) -> Self {
        Self { end_tag: Finder::new(end_tag), entries: FxHashMap::default() }
    }

    /// Passes over the content of `element` where it is known, and gives where it was read, and what it says.
    fn pass(&self, tokens: &mut Tokens<'a>, element: &Element<'a>) -> Result<Option<&(Span, T)>, Fatal> {
        let ahead = tokens.ahead(element);
        let end = self.end_tag.find(&ahead.as_bytes()[..ahead.len().min(Self::MAX_BYTES)]);
        let content = end.and_then(|end| ahead.get(..end)).map(str::trim_ascii_end);
        match content.and_then(|content| self.entries.get_key_value(content)) {
            Some((content, known)) => tokens.pass(element, content).map(|()| Some(known)),
            None => Ok(None),
        }
    }

    fn add(&mut self, content: Span, source: &'a str, known: T) {
        let text = content.text(source);
        if self.entries.len() < Self::MAX_ENTRIES && text.len() <= Self::MAX_BYTES {
            self.entries.insert(text, (content, known));
        }
    }
}

/// Ends reading: the text is not XML any more.
type Fatal = Diagnostic;

/// The elements of the format.
const ELEMENTS: &[&str] = &[
    "layers",
    "layer",
    "data",
    "input",
    "output",
    "port",
    "dim",
    "edges",
    "edge",
    "body",
    "port_map",
    "back_edges",
    "rt_info",
];

/// The wires of a graph as the file has them, by ids.
struct Edge {
    from: (u64, u64),
    to: (u64, u64),
    span: Span,
}

impl<'a> Read<'a> {
    fn new(source: &'a str, span: Span) -> Self {
        Self {
            source,
            tokens: Tokens::new(source, span),
            second_half: None,
            diagnostics: Vec::new(),
            counts: FxHashMap::default(),
            path: Vec::new(),
            version: IrVersion::V11,
            damaged: false,
            lost: Vec::new(),
            repeated: Vec::new(),
            unnamed: Vec::new(),
            dropped: HashSet::new(),
            created: None,
            known_ports: Known::new("</port>"),
            known_inputs: Known::new("</input>"),
            operations: FxHashMap::default(),
            last: Vec::new(),
        }
    }

    fn model(&mut self) -> Result<Option<Model>, Fatal> {
        let Some(root) = self.tokens.child(None)? else {
            let text = self.source.trim_start();
            let (message, help) = if text.is_empty() {
                ("the file is empty", "get a fresh copy of the .xml")
            } else if text.starts_with("version https://git-lfs") {
                (
                    "the file is a Git LFS pointer, not the model",
                    "run `git lfs pull` in its repository to fetch the .xml",
                )
            } else if text.starts_with("404: ") || text.starts_with("Entry not found") {
                ("the file is a server's error message, not the model", "download the .xml of the model again")
            } else if text.starts_with('{') || text.starts_with('[') {
                ("the text is JSON, not XML", "give the .xml of the model; IR starts with <net>")
            } else {
                ("the text has no XML element", "give the .xml of the model; IR starts with <net>")
            };
            let refusal = Diagnostic::new(Code::NotAnIr, message);
            let start = Span::new(0, self.source.chars().next().map_or(0, char::len_utf8));
            self.report(refusal.at(start, "no element from here on").help(help));
            return Ok(None);
        };
        if !root.name().eq_ignore_ascii_case("net") {
            let name = root.name();
            let refusal = Diagnostic::new(Code::NotAnIr, format!("the root element is <{name}>, not <net>"));
            let help = match name.to_ascii_lowercase().as_str() {
                "html" | "head" | "body" => {
                    "this is a web page, such as an error page: download the .xml of the model again"
                }
                "error" => "this is a server's error message: download the .xml of the model again",
                "opencv_storage" => "this is a file of OpenCV; give the .xml of an OpenVINO model",
                "layers" | "edges" | "layer" => "put <net name=\"model\" version=\"11\"> around <layers> and <edges>",
                _ => "give the .xml of an OpenVINO model",
            };
            self.report(refusal.at(root.tag_span, "not an OpenVINO IR").help(help));
            return Ok(None);
        }
        let [name, version] = self.known_attributes(&root, ["name", "version"], |_, _| {})?;
        let version = match version {
            Some(text) => self.ir_version(text),
            None => {
                let refusal = Diagnostic::new(Code::UnsupportedVersion, "<net> does not say which IR version it is");
                self.report(
                    refusal
                        .at(root.tag_span, "`version` is missing")
                        .help("write version=\"11\"; OpenVINO also reads 10"),
                );
                IrVersion::V11
            }
        };
        self.version = version;
        let mut model = Model {
            graph: Graph::default(),
            weights: Weights::none(),
            name: name.map(|name| decode(name).into()),
            version,
            source: Arc::default(),
            extras: Vec::new(),
            demands: Demands::default(),
        };
        // A layer and its edges take 450 bytes of text or more, as a rule; there is room for some that are added.
        let graph = Graph::with_capacity(self.source.len() / 400);
        model.graph = self.graph(&root, graph, Some(&mut model.extras))?;
        if model.graph.rt_info.is_some() {
            self.lint_legacy_metadata(&model);
        }
        if let Some(at) = memchr::memchr(0, &self.source.as_bytes()[..self.tokens.position()]) {
            let refusal = Diagnostic::new(Code::XmlSyntax, "the text has a NUL byte");
            return Err(refusal.at(Span::new(at, at + 1), "OpenVINO stops reading here"));
        }
        if let Some(span) = self.tokens.rest()? {
            let text = span.text(self.source).trim_start();
            let text = text.strip_prefix("<?").and_then(|text| text.split_once("?>")).map_or(text, |(_, text)| text);
            let second = text.trim_start().starts_with("<net");
            let message = if second {
                "a second root element <net> follows the first one: OpenVINO ignores it"
            } else {
                "what follows the root element is ignored"
            };
            let lint = Diagnostic::new(Code::ContentOutsideRoot, message).at(span, "not part of the model");
            self.report(lint.help(if second {
                "if two models were joined in one file, move one of them to a file of its own"
            } else {
                "move it into <net>, or remove it"
            }));
        }
        Ok(Some(model))
    }

    fn ir_version(&mut self, text: &str) -> IrVersion {
        match integer_prefix(text) {
            Some((10, false)) => IrVersion::V10,
            Some((11, false)) => IrVersion::V11,
            other => {
                let refusal = Diagnostic::new(Code::UnsupportedVersion, format!("IR version `{text}` cannot be read"));
                let span = self.tokens.span_of(text);
                let help = match other {
                    Some((..10, _)) => "it is another format: convert the original model again with a current OpenVINO",
                    Some((12.., _)) => "write version=\"11\", the newest version that OpenVINO 2026.4.1 reads",
                    _ => "write version=\"11\"",
                };
                self.report(refusal.at(span, "OpenVINO reads versions 10 and 11").help(help));
                IrVersion::V11
            }
        }
    }

    fn lint_legacy_metadata(&mut self, model: &Model) {
        for span in &model.extras {
            let text = span.text(self.source);
            if let Some(name) = ["meta_data", "quantization_parameters"].into_iter().find(|n| text[1..].starts_with(n))
            {
                let lint = Diagnostic::new(Code::IgnoredMetadata, format!("<{name}> is ignored beside <rt_info>"));
                self.report(lint.at(*span, "OpenVINO reads it only if the file has no <rt_info>"));
            }
        }
    }

    /// Reads the layers and edges in `parent` into `graph`, wired. Children that are neither go to `extras`, or are passed over.
    fn graph(
        &mut self,
        parent: &Element<'a>,
        mut graph: Graph,
        mut extras: Option<&mut Vec<Span>>,
    ) -> Result<Graph, Fatal> {
        let outer = (take(&mut self.damaged), take(&mut self.lost), take(&mut self.repeated), take(&mut self.unnamed));
        let mut edges = Vec::new();
        while let Some(child) = self.tokens.child(Some(parent))? {
            match child.name() {
                "layers" if graph.layers_span.is_none() => {
                    loop {
                        self.take_second_half(&mut graph);
                        let Some(element) = self.tokens.child(Some(&child))? else { break };
                        if element.name() == "layer" {
                            self.layer(&element, |layer| graph.append(layer))?;
                        } else {
                            self.unknown_element(&element, None)?;
                        }
                    }
                    self.index_layers(&mut graph);
                    graph.layers_span = Some(self.tokens.span_since(&child));
                }
                "edges" if graph.edges_span.is_none() => {
                    edges.reserve(graph.unordered().map(|layer| layer.inputs.len()).sum());
                    self.edges(&child, &mut edges)?;
                    graph.edges_span = Some(self.tokens.span_since(&child));
                }
                "rt_info" if graph.rt_info.is_none() => {
                    graph.rt_info = Some(self.tokens.skip(&child)?);
                }
                "meta_data" | "quantization_parameters" | "pre-process" | "statistics" if extras.is_some() => {
                    let span = self.tokens.skip(&child)?;
                    if let Some(extras) = &mut extras {
                        extras.push(span);
                    }
                }
                _ => self.unknown_element(&child, None)?,
            }
        }
        graph.span = Some(self.tokens.span_since(parent));
        self.wire(&mut graph, edges);
        (self.damaged, self.lost, self.repeated, self.unnamed) = outer;
        Ok(graph)
    }

    /// Takes over what another thread has read, where this one has come to it. As both stand between two layers, they read
    /// the same there.
    fn take_second_half(&mut self, graph: &mut Graph) {
        let here = self.tokens.position();
        let is_here = |half: &mut SecondHalf| half.span.start as usize == here;
        let Some(half) = self.second_half.take_if(is_here) else { return };
        // What metadata may say depends on the version, and how deep bodies nest on the path.
        if self.version == IrVersion::V11
            && self.path.is_empty()
            && let Ok(Some(LayersOnly { layers, unnamed })) = half.layers.recv()
        {
            layers.into_iter().for_each(|layer| graph.append(layer));
            self.unnamed.extend(unnamed);
            self.tokens.pass_to(half.span.end);
        }
    }

    /// Drops layers whose id another one takes.
    fn index_layers(&mut self, graph: &mut Graph) {
        for (earlier, next) in graph.index_layers() {
            let lint = Diagnostic::new(
                Code::DuplicateLayerId,
                format!("layer id {} is used again: `{}` is dropped", earlier.id, earlier.name),
            );
            let lint = lint
                .at(self.tag_at(next), "this layer is kept")
                .at(earlier.span.unwrap_or_default(), "OpenVINO drops this one in silence")
                .help("give one of them an id that no other layer has, and point its edges there");
            let at = self.diagnostics.len();
            self.report_of(&earlier, lint);
            if self.diagnostics.len() > at {
                self.repeated.push((earlier.id, at));
            }
        }
    }

    /// Reads a layer, and hands it over.
    fn layer(&mut self, element: &Element<'a>, take: impl FnOnce(Layer)) -> Result<(), Fatal> {
        let mut unknown = SmallVec::<[(&str, &str); 1]>::new();
        let known = ["id", "name", "type", "version", "output_names"];
        let [id, name, ty, version, output_names] =
            self.known_attributes(element, known, |name, value| unknown.push((name, value)))?;
        for (attribute, value) in [("name", name), ("type", ty), ("version", version)] {
            if value.is_none() {
                self.missing_attribute(element, attribute);
            }
        }
        let last = self.last_of(ty.unwrap_or_default(), version.unwrap_or_default());
        let mut layer = Layer::of(self.last[last].operation_name.clone(), decode(name.unwrap_or_default()).into());
        layer.output_names = output_names.map(|names| decode(names).into());
        let id = match id {
            Some(text) => self.unsigned("id", text),
            None => {
                self.missing_attribute(element, "id");
                None
            }
        };
        layer.id = LayerId(id.unwrap_or(u64::MAX));
        // An attribute that is missing is said to be misspelt so.
        let missing = |name: &str| {
            let named = [
                ("id", id.is_none()),
                ("name", layer.name.is_empty()),
                ("type", ty.is_none()),
                ("version", version.is_none()),
            ];
            named.iter().any(|(known, missing)| *missing && name.eq_ignore_ascii_case(known))
        };
        for &(name, value) in unknown.iter().filter(|(name, _)| !missing(name)).take(SHOWN) {
            let message = format!("attribute `{name}` of <layer> is ignored");
            let lint =
                Diagnostic::new(Code::UnknownAttribute, message).at(self.tokens.span_of(value), "not in the format");
            self.report_of(&layer, lint);
        }
        if unknown.len() > SHOWN {
            let message = format!("{} more attributes of this <layer> are ignored", unknown.len() - SHOWN);
            let lint = Diagnostic::new(Code::UnknownAttribute, message).at(element.tag_span, "not in the format");
            self.report_of(&layer, lint);
        }
        self.layer_content(element, &mut layer, last)?;
        layer.span = Some(self.tokens.span_since(element));
        if [ty, version].contains(&Some("")) {
            self.unnamed.push(layer.id);
        }
        match id {
            Some(_) => take(layer),
            None => self.damaged = true,
        }
        Ok(())
    }

    /// The place in `last` of the operation of this type and version.
    fn last_of(&mut self, ty: &str, version: &str) -> usize {
        if let Some(&known) = self.operations.get(&(ty, version)) {
            return known;
        }
        let operation_name = OperationName::new(&decode(ty), &decode(version));
        let new = Last { operation_name, data: "", attributes: AttributeList::default() };
        let at = self.last.len().min(MOST_OPERATIONS);
        self.last.truncate(at);
        self.last.push(new);
        if at < MOST_OPERATIONS {
            let text = |part| self.tokens.span_of(part).text(self.source);
            self.operations.insert((text(ty), text(version)), at);
        }
        at
    }

    fn layer_content(&mut self, element: &Element<'a>, layer: &mut Layer, last: usize) -> Result<(), Fatal> {
        let mut port_maps = HashMap::new();
        let mut body_names = HashSet::new();
        let mut back_edges = None;
        // Of these the first one counts.
        let (mut data, mut input, mut output) = (self.repeated_data(element, layer, last), false, false);
        while let Some(child) = self.tokens.child(Some(element))? {
            match child.name() {
                "data" if !replace(&mut data, true) => self.data(&child, layer, last)?,
                "input" if !replace(&mut input, true) => layer.inputs = self.inputs(&child, layer)?,
                "output" if !replace(&mut output, true) => {
                    while let Some(port) = self.tokens.child(Some(&child))? {
                        let port = self.output_port(&port, layer)?;
                        layer.outputs.extend(port);
                    }
                }
                "rt_info" if layer.rt_info.is_none() => {
                    let span = self.tokens.skip(&child)?;
                    self.check_rt_info(span, layer);
                    layer.rt_info = Some(span);
                }
                "back_edges" if back_edges.is_none() => back_edges = Some(self.back_edges(&child)?),
                name if name.contains("port_map") && !port_maps.contains_key(name) => {
                    child.check_name(name)?;
                    port_maps.insert(name.to_owned(), self.port_map(&child)?);
                }
                name if name.contains("body")
                    && body_names.len() < MAX_BODIES
                    && body_names.insert(name.to_owned()) =>
                {
                    child.check_name(name)?;
                    let name = CompactString::from(name);
                    if self.path.len() >= MAX_DEPTH {
                        let message = format!("bodies nest more than {MAX_DEPTH} deep");
                        return Err(
                            Diagnostic::new(Code::NestingTooDeep, message).at(child.tag_span, "one body too many")
                        );
                    }
                    self.path.push(format!("{}/{name}", layer.name).into());
                    let graph = self.graph(&child, Graph::default(), None)?;
                    self.path.pop();
                    layer.bodies.push(Body {
                        name,
                        graph,
                        port_map: Vec::new(),
                        back_edges: Vec::new(),
                        rejoined: false,
                    });
                }
                _ => self.unknown_element(&child, Some(&*layer))?,
            }
        }
        for body in &mut layer.bodies {
            body.port_map = port_maps.remove(&Body::port_map_name(&body.name)).unwrap_or_default();
        }
        if let Some(body) = layer.bodies.first_mut() {
            body.back_edges = back_edges.unwrap_or_default();
        }
        Ok(())
    }

    /// Takes over the attributes of the `<data>` that follows, where it is written as in the last layer of this operation.
    fn repeated_data(&mut self, element: &Element<'a>, layer: &mut Layer, last: usize) -> bool {
        let Last { data, attributes, .. } = &self.last[last];
        let is_repeated = !data.is_empty() && self.tokens.pass_child(element, data);
        if is_repeated {
            layer.attributes = attributes.clone();
        }
        is_repeated
    }

    fn data(&mut self, element: &Element<'a>, layer: &mut Layer, last: usize) -> Result<(), Fatal> {
        let reported = self.diagnostics.len();
        // Few attributes are the rule, and then looking at all of them is the fastest way.
        const FEW: usize = 16;
        let mut seen = HashSet::new();
        let mut repeated = HashSet::new();
        let mut attributes = SmallVec::<[Attribute; 4]>::new();
        for attribute in Tokens::attributes(element) {
            let (name, value) = attribute?;
            element.check_name(name)?;
            let is_new = match attributes.len() {
                ..FEW => attributes.iter().all(|earlier| earlier.name != name),
                _ => seen.insert(name) && attributes[..FEW].iter().all(|earlier| earlier.name != name),
            };
            if is_new {
                attributes.push(Attribute { name: name.into(), value: decode(value).into() });
            } else if repeated.insert(name) {
                self.duplicate_attribute(element, name);
            }
        }
        layer.attributes = attributes.into();
        self.no_children(element)?;
        // No two constants are written alike.
        if self.diagnostics.len() == reported && layer.ty() != "Const" && layer.attributes.len() <= MOST_KEPT {
            let Last { data, attributes, .. } = &mut self.last[last];
            *data = self.tokens.span_since(element).text(self.source);
            *attributes = layer.attributes.clone();
        }
        Ok(())
    }

    fn inputs(&mut self, element: &Element<'a>, layer: &Layer) -> Result<SmallVec<[InputPort; 2]>, Fatal> {
        let start = element.tag_span.end;
        if let Some((earlier, ports)) = self.known_inputs.pass(&mut self.tokens, element)? {
            let moved =
                |span: Span| Span { start: span.start - earlier.start + start, end: span.end - earlier.start + start };
            return Ok(ports.iter().map(|port| InputPort { content: moved(port.content), ..port.clone() }).collect());
        }
        let reported = self.diagnostics.len();
        let mut ports = SmallVec::<[InputPort; 2]>::new();
        while let Some(port) = self.tokens.child(Some(element))? {
            ports.extend(self.input_port(&port, layer, ports.last())?);
        }
        if self.diagnostics.len() == reported {
            self.known_inputs.add(self.tokens.content_of(element), self.source, ports.clone());
        }
        Ok(ports)
    }

    fn input_port(
        &mut self,
        element: &Element<'a>,
        layer: &Layer,
        previous: Option<&InputPort>,
    ) -> Result<Option<InputPort>, Fatal> {
        if element.name() != "port" {
            return self.unknown_element(element, None).map(|()| None);
        }
        let [id, precision] = self.known_attributes(element, ["id", "precision"], |_, _| {})?;
        let id = self.port_id(element, id, previous.map(|port| port.id));
        let declared = precision.and_then(|text| {
            let found = ElementType::from_port_name(text);
            if found.is_none() {
                let lint = Diagnostic::new(Code::UnknownPortType, format!("`{text}` is not an element type"));
                let lint = lint.at(self.tokens.span_of(text), "ignored: the type is that of the tensor that comes in");
                self.report_of(layer, lint);
            }
            found
        });
        self.port_content(element)?;
        Ok(Some(InputPort { id, declared, content: self.tokens.content_of(element) }))
    }

    fn output_port(&mut self, element: &Element<'a>, layer: &Layer) -> Result<Option<OutputPort>, Fatal> {
        if element.name() != "port" {
            return self.unknown_element(element, None).map(|()| None);
        }
        let [id, precision, names] = self.known_attributes(element, ["id", "precision", "names"], |_, _| {})?;
        let id = self.port_id(element, id, layer.outputs.last().map(|port| port.id));
        let element_type = match precision {
            None => {
                self.missing_attribute(element, "precision");
                None
            }
            Some(text) => {
                let found = ElementType::from_port_name(text);
                if found.is_none() {
                    let refusal =
                        Diagnostic::new(Code::InvalidValue, format!("`{text}` is not an element type of a port"));
                    let mut refusal =
                        refusal.at(self.tokens.span_of(text), "ports spell types FP32, I64, BOOL, BIN, …");
                    let meant = ElementType::from_name(text).or_else(|| spelling::element_type(text));
                    if let Some(meant) = meant.and_then(ElementType::port_name) {
                        refusal = refusal.help(format!("write `{meant}`"));
                    }
                    self.report_of(layer, refusal);
                }
                found
            }
        };
        let (shape, rt_info) = self.port_content(element)?;
        if let Some(span) = rt_info {
            self.check_rt_info(span, layer);
        }
        Ok(Some(OutputPort {
            shape,
            names: names.filter(|names| !names.is_empty()).map(|names| decode(names).into()),
            content: self.tokens.content_of(element),
            rt_info,
            id,
            declared: element_type,
            ..OutputPort::new(element_type.unwrap_or(ElementType::Dynamic), Shape::dynamic())
        }))
    }

    /// Reads the children of a port: the shape that it declares, and where its metadata is.
    fn port_content(&mut self, port: &Element<'a>) -> Result<(Shape, Option<Span>), Fatal> {
        if let Some((_, shape)) = self.known_ports.pass(&mut self.tokens, port)? {
            return Ok((shape.clone(), None));
        }
        let reported = self.diagnostics.len();
        let mut rt_info = None;
        let mut dims = SmallVec::<[Dim; 6]>::new();
        while let Some(child) = self.tokens.child(Some(port))? {
            match child.name() {
                "dim" => dims.push(self.dim(&child)?),
                "rt_info" if rt_info.is_none() => rt_info = Some(self.tokens.skip(&child)?),
                _ => self.unknown_element(&child, None)?,
            }
        }
        // Without dims a port is a scalar or has dynamic rank, and the text does not say which.
        let shape: Shape = if dims.is_empty() { Shape::dynamic() } else { dims.into_iter().collect() };
        // What is odd about a text is to be said each time.
        if self.diagnostics.len() == reported && rt_info.is_none() {
            self.known_ports.add(self.tokens.content_of(port), self.source, shape.clone());
        }
        Ok((shape, rt_info))
    }

    fn dim(&mut self, element: &Element<'a>) -> Result<Dim, Fatal> {
        let text = self.tokens.text(element)?;
        match integer_prefix(&text) {
            Some((dim, junk)) if dim >= -1 => {
                if junk {
                    self.trailing_junk("dimension", &text, self.tokens.content_of(element));
                }
                Ok(if dim < 0 { Dim::ANY } else { Dim::fixed(dim) })
            }
            _ => {
                let what = if text.is_empty() { "nothing".to_owned() } else { format!("`{text}`") };
                let refusal = Diagnostic::new(Code::InvalidValue, format!("{what} is not a dimension"));
                let span = self.tokens.span_since(element);
                self.report(refusal.at(span, "a dimension is a length, or -1 where it is not fixed"));
                Ok(Dim::ANY)
            }
        }
    }

    /// The id of a port, and a lint where it is that of the port before: the ones between are looked at with the edges.
    fn port_id(&mut self, element: &Element<'a>, text: Option<&str>, previous: Option<u64>) -> u64 {
        let Some(text) = text else {
            self.missing_attribute(element, "id");
            return u64::MAX;
        };
        let id = self.unsigned("id", text).unwrap_or(u64::MAX);
        if previous == Some(id) && id != u64::MAX {
            let lint = Diagnostic::new(Code::DuplicatePortId, format!("port id {id} is used twice"));
            self.report(lint.at(element.tag_span, "edges cannot name this port"));
        }
        id
    }

    fn port_map(&mut self, element: &Element<'a>) -> Result<Vec<PortMapEntry>, Fatal> {
        const NAMES: [&str; 8] =
            ["external_port_id", "internal_layer_id", "axis", "start", "end", "stride", "part_size", "purpose"];
        let mut entries = Vec::new();
        while let Some(child) = self.tokens.child(Some(element))? {
            let direction = match child.name() {
                "input" => Direction::Input,
                "output" => Direction::Output,
                _ => {
                    self.unknown_element(&child, None)?;
                    continue;
                }
            };
            let [external, internal, axis, start, end, stride, part_size, purpose] =
                self.known_attributes(&child, NAMES, |_, _| {})?;
            for (name, value) in [("external_port_id", external), ("internal_layer_id", internal)] {
                if value.is_none() {
                    self.missing_attribute(&child, name);
                }
            }
            let entry = PortMapEntry {
                direction,
                external_port_id: self.signed("external_port_id", external).unwrap_or(-1),
                internal_layer_id: LayerId(
                    internal.and_then(|text| self.unsigned("internal_layer_id", text)).unwrap_or(u64::MAX),
                ),
                axis: self.signed("axis", axis),
                start: self.signed("start", start),
                end: self.signed("end", end),
                stride: self.signed("stride", stride),
                part_size: self.signed("part_size", part_size),
                purpose: purpose.map(|purpose| decode(purpose).into()),
            };
            entries.push(entry);
            self.no_children(&child)?;
        }
        Ok(entries)
    }

    fn back_edges(&mut self, element: &Element<'a>) -> Result<Vec<BackEdge>, Fatal> {
        let mut edges = Vec::new();
        // OpenVINO does not look at their names.
        while let Some(child) = self.tokens.child(Some(element))? {
            child.check_name(child.name())?;
            let [from, to] = self.known_attributes(&child, ["from-layer", "to-layer"], |_, _| {})?;
            let mut id = |name, value: Option<&str>| match value {
                Some(text) => self.unsigned(name, text),
                None => {
                    self.missing_attribute(&child, name);
                    None
                }
            };
            if let (Some(from), Some(to)) = (id("from-layer", from), id("to-layer", to)) {
                edges.push(BackEdge { from: LayerId(from), to: LayerId(to) });
            }
            self.no_children(&child)?;
        }
        Ok(edges)
    }

    fn edges(&mut self, parent: &Element<'a>, edges: &mut Vec<Edge>) -> Result<(), Fatal> {
        loop {
            // Nearly every edge is written alike, and four numbers are found much faster than four attributes.
            while let Some(([from, from_port, to, to_port], span)) = self.tokens.plain_edge(parent, EDGE_ATTRIBUTES) {
                edges.push(Edge { from: (from, from_port), to: (to, to_port), span });
            }
            match self.tokens.child(Some(parent))? {
                Some(element) if element.name() == "edge" => edges.extend(self.edge(&element)?),
                Some(element) => self.unknown_element(&element, None)?,
                None => return Ok(()),
            }
        }
    }

    fn edge(&mut self, element: &Element<'a>) -> Result<Option<Edge>, Fatal> {
        let values = self.known_attributes(element, EDGE_ATTRIBUTES, |_, _| {})?;
        let mut numbers = [None; 4];
        for ((name, value), number) in EDGE_ATTRIBUTES.into_iter().zip(values).zip(&mut numbers) {
            match value {
                Some(text) => *number = self.unsigned(name, text),
                None => self.missing_attribute(element, name),
            }
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

    fn wire(&mut self, graph: &mut Graph, edges: Vec<Edge>) {
        let reported = self.diagnostics.len();
        self.connect(graph, edges);
        if !self.repeated.is_empty() && self.diagnostics[reported..].iter().any(Diagnostic::is_error) {
            self.blame_repeated_ids(reported);
        }
    }

    /// Makes ids that several layers have the error, and drops what only follows from them.
    #[cold]
    fn blame_repeated_ids(&mut self, reported: usize) {
        let errors: Vec<_> = self.diagnostics.drain(reported..).collect();
        let mut missing = Vec::new();
        for error in errors {
            let of_repeated = |layer: &LayerRef| {
                self.repeated.iter().any(|&(id, _)| id == layer.id) || error.code == Code::UnknownPort
            };
            match error.code {
                Code::UnknownLayer => missing.push(error),
                _ if error.layer.as_ref().is_some_and(of_repeated) => {}
                _ => self.diagnostics.push(error),
            }
        }
        // An id that edges name and no layer has is most likely what one of the layers was to have.
        let ids: Vec<_> =
            missing.iter().filter_map(|error| edge_source(error.labels.first()?.span.text(self.source))).collect();
        for &(_, at) in &self.repeated {
            let Some(found) = self.diagnostics.get_mut(at) else { continue };
            found.severity = Severity::Error;
            if let Some(id) = ids.first() {
                found.help = vec![format!("give one of them the id {id}, which edges name and no layer has")];
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
            // What is not fed as it should be is not part of a valid graph.
            graph.disconnect(&take(&mut self.dropped));
        }
        self.check_cycles(graph);
        self.created = None;
        self.dropped.clear();
    }

    /// Reports layers that form a cycle: no more than a warning where OpenVINO drops them.
    fn check_cycles(&mut self, graph: &mut Graph) {
        let Err(cycle) = graph.topological_order() else { return };
        let refusal = self.cycle_refusal(graph, &cycle);
        let created = self.created.get_or_insert_with(|| created_layers(graph));
        let is_created = |layer: &Layer| created.contains(&layer.id);
        if created.is_empty() || cycle.iter().any(|&id| graph.layer(id).is_some_and(is_created)) {
            return self.report(refusal);
        }
        // There can be more cycles. All that OpenVINO drops is taken apart, so that those are found at once.
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
        if let Err(cycle) = graph.topological_order() {
            self.report(self.cycle_refusal(graph, &cycle));
        }
    }

    fn cycle_refusal(&self, graph: &Graph, cycle: &[LayerId]) -> Diagnostic {
        let layers: Vec<_> = cycle.iter().take(SHOWN).filter_map(|&id| graph.layer(id)).collect();
        let mut list: Vec<_> = layers.iter().map(|layer| format!("{} `{}`", layer.id, layer.name)).collect();
        if cycle.len() > layers.len() {
            list.push(format!("{} more", cycle.len() - layers.len()));
        }
        let mut refusal = Diagnostic::new(Code::Cycle, format!("layers form a cycle: {}", list.join(" -> ")));
        for (at, layer) in layers.iter().enumerate() {
            refusal =
                refusal.at(self.tag_of(layer), if at == 0 { "its output comes back to it" } else { "through here" });
        }
        let refusal = refusal.help("remove the edge that leads back; loops are written as Loop bodies");
        match layers.first() {
            Some(first) => self.of(first, refusal),
            None => refusal,
        }
    }

    /// Reports an edge with an end that is missing: an error where OpenVINO follows it, which is where it creates the layer
    /// that the edge leads to.
    fn bad_edge(&mut self, graph: &Graph, ports: &mut PortIndex, edge: &Edge) {
        let (from, to) = (LayerId(edge.from.0), LayerId(edge.to.0));
        let (Some(producer), Some(consumer)) = (graph.layer(from), graph.layer(to)) else { return };
        let ends =
            [(producer, Direction::Output, "output", edge.from.1), (consumer, Direction::Input, "input", edge.to.1)];
        let missing = |&(layer, direction, _, id): &(&Layer, Direction, &str, u64)| {
            ports.position(layer, direction, id).is_none()
        };
        let report = |(layer, _, kind, id): (&Layer, Direction, &str, u64)| {
            let message = format!("layer {} `{}` has no {kind} port {id}", layer.id, layer.name);
            let refusal = Diagnostic::new(Code::UnknownPort, message);
            let refusal = refusal.at(edge.span, format!("names {kind} port {id}"));
            let refusal = refusal.at(self.tag_of(layer), format!("has {}", port_list(layer, kind)));
            self.of(layer, refusal.help(help_with_port(layer, kind, id)))
        };
        let missing: Vec<_> = ends.into_iter().filter(missing).collect();
        let reports: Vec<_> = missing.into_iter().map(report).collect();
        for report in reports {
            self.report_unless_dropped(graph, to, report);
        }
    }

    /// Reports an edge whose ends are exchanged, and returns it as it is meant.
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
        let message = format!(
            "the edge from layer {} `{}` to layer {} `{}` leads the wrong way",
            from.id, from.name, to.id, to.name
        );
        let refusal = Diagnostic::new(Code::UnknownPort, message);
        let label = format!(
            "port {} of layer {} is an input, port {} of layer {} an output",
            edge.from.1, from.id, edge.to.1, to.id
        );
        let refusal = refusal.at(edge.span, label).help(format!(
            "write <edge from-layer=\"{}\" from-port=\"{}\" to-layer=\"{}\" to-port=\"{}\"/>",
            to.id, edge.to.1, from.id, edge.from.1
        ));
        self.report_of(from, refusal);
        Some(meant)
    }

    /// Reports the layers that edges name and the graph does not have, one finding each.
    fn report_absent_layers(&mut self, graph: &Graph, absent: &BTreeMap<LayerId, Vec<Edge>>) {
        if self.damaged {
            self.complete_ids(absent);
            return;
        }
        if graph.layers().next().is_none() && self.counts.contains_key(&Code::UnknownElement) {
            return;
        }
        for (&id, edges) in absent {
            let (out, into): (Vec<_>, Vec<_>) = edges.iter().partition(|edge| edge.from.0 == id.0);
            let (code, first, rest) = match (&out[..], &into[..]) {
                ([first, rest @ ..], _) => (Code::UnknownLayer, *first, rest.iter().chain(&into)),
                ([], [first, rest @ ..]) => (Code::EdgeToUnknownLayer, *first, rest.iter().chain(&out)),
                ([], []) => continue,
            };
            let message = match (edges.len(), code) {
                (1, Code::UnknownLayer) => format!("an edge starts at layer {id}, which is not there"),
                (1, _) => format!("an edge ends at layer {id}, which is not there"),
                (count, _) => format!("{count} edges name layer {id}, which is not there"),
            };
            let mut found = Diagnostic::new(code, message);
            found = match code {
                Code::UnknownLayer => found
                    .at(first.span, "`from-layer` names no layer of this graph")
                    .help("point `from-layer` at the layer that makes the tensor, or put the missing layer back"),
                _ => found
                    .at(first.span, "OpenVINO ignores this edge")
                    .help("point `to-layer` at the layer that takes the tensor, or remove the edge"),
            };
            for edge in rest.take(SHOWN) {
                let end = if edge.from.0 == id.0 { "starts" } else { "ends" };
                found = found.at(edge.span, format!("{end} there, too"));
            }
            match graph.layer(LayerId(first.to.0)) {
                Some(consumer) => {
                    let found = if edges.len() == 1 { self.of(consumer, found) } else { found };
                    for edge in &out[1..] {
                        self.drops(graph, LayerId(edge.to.0));
                    }
                    self.report_unless_dropped(graph, LayerId(first.to.0), found);
                }
                None => self.report(found),
            }
        }
    }

    /// Says in the finding about a layer without an id which id edges name and no layer has.
    fn complete_ids(&mut self, absent: &BTreeMap<LayerId, Vec<Edge>>) {
        let (Some(id), 1) = (absent.keys().next(), absent.len()) else { return };
        let about_id = |found: &Diagnostic| match found.code {
            Code::MissingAttribute => found.message == "<layer> has no attribute `id`",
            Code::InvalidValue => found.message.starts_with("`id` is "),
            _ => false,
        };
        if let Some(found) = self.diagnostics.iter_mut().rev().find(|found| about_id(found)) {
            // `Id` says which it is.
            if found.help.iter().any(|help| help.starts_with("write `id` for ")) {
                return;
            }
            found.help = vec![format!("write id=\"{id}\", which edges name and no layer has")];
        }
    }

    /// Reports what is wrong about how a layer is fed: no more than a warning where OpenVINO drops the layer.
    fn report_unless_dropped(&mut self, graph: &Graph, id: LayerId, mut report: Diagnostic) {
        if report.is_error() && self.drops(graph, id) {
            report.severity = Severity::Warning;
            report = report.note(format!("OpenVINO drops layer {id}, which no Result needs"));
        }
        self.report(report);
    }

    /// Whether OpenVINO drops a layer, so that nothing about how it is fed matters.
    fn drops(&mut self, graph: &Graph, id: LayerId) -> bool {
        let created = self.created.get_or_insert_with(|| created_layers(graph));
        let dropped = !created.contains(&id);
        if dropped {
            self.dropped.insert(id);
        }
        dropped
    }

    /// Reports inputs that are fed twice, or by nothing.
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
                let message = format!("input {port} of layer {} `{}` is fed by two edges", layer.id, layer.name);
                let refusal = Diagnostic::new(Code::InputFedTwice, message).at(second, "this edge comes second");
                let refusal = refusal.at(first, "the first one").at(self.tag_of(layer), "both end here");
                let free: Vec<_> = fed.iter().zip(&layer.inputs).filter(|(fed, _)| fed.is_none()).collect();
                let refusal = match free.first() {
                    Some((_, port)) => refusal
                        .help(format!("write to-port=\"{}\" in one edge: nothing is connected to that port", port.id)),
                    None => refusal
                        .help("remove the edge that is not meant, or join the tensors, for example with a Concat"),
                };
                self.report_unless_dropped(graph, layer.id, self.of(layer, refusal));
            }
            let fed_count = fed.iter().filter(|fed| fed.is_some()).count();
            for (port, _) in fed.iter().enumerate().take(fed_count).filter(|(_, fed)| fed.is_none()) {
                if self.damaged || layer.broken || fed_count == 0 {
                    break;
                }
                let message = format!("input {port} of layer {} `{}` is not connected", layer.id, layer.name);
                let refusal = Diagnostic::new(Code::UnconnectedInput, message);
                let refusal =
                    refusal.at(self.tag_of(layer), "a later input of this layer is connected, so this one must be");
                let refusal = self.of(layer, refusal.help("add the <edge> that ends at this port"));
                self.report_unless_dropped(graph, layer.id, refusal);
            }
        }
    }

    /// Reports a type or version that is empty; no operation or set of operations has such a name.
    fn check_names(&mut self, graph: &Graph) {
        let unnamed = take(&mut self.unnamed);
        for layer in unnamed.into_iter().filter_map(|id| graph.layer(id)) {
            for (attribute, value) in [("type", layer.ty()), ("version", layer.version())] {
                if value.is_empty() {
                    let message = format!("layer {} `{}` has an empty `{attribute}`", layer.id, layer.name);
                    let place = locate(self.source, layer.span.unwrap_or_default(), "layer", attribute);
                    let refusal = Diagnostic::new(Code::InvalidValue, message).at(place, "must not be empty");
                    self.report_unless_dropped(graph, layer.id, self.of(layer, refusal));
                }
            }
        }
    }

    /// Looks at the metadata of a layer or of one of its ports. Files of version 10 have none that counts.
    fn check_rt_info(&mut self, span: Span, layer: &Layer) {
        let mut tokens = Tokens::new(self.source, span);
        let Ok(Some(root)) = tokens.child(None) else { return };
        let mut seen = SmallVec::<[&str; 4]>::new();
        while let Ok(Some(child)) = tokens.child(Some(&root)) {
            if child.name() == "attribute" && self.version == IrVersion::V11 {
                let value = |wanted| {
                    let mut attributes = Tokens::attributes(&child).flatten();
                    attributes.find(|(name, _)| *name == wanted).map(|(_, value)| value)
                };
                let name = value("name").unwrap_or_default();
                let known = RT_INFO.iter().find(|(known, _)| *known == name && value("version") == Some("0"));
                let report = match known {
                    None => {
                        let lint = Diagnostic::new(
                            Code::UnknownAttribute,
                            format!("rt_info has an unknown attribute `{name}`"),
                        );
                        Some(lint.at(child.tag_span, "OpenVINO ignores it, and a file that it writes will not have it"))
                    }
                    Some((known, _)) if seen.contains(known) => {
                        let refusal = Diagnostic::new(Code::DuplicateRtInfo, format!("rt_info has `{name}` twice"));
                        Some(refusal.at(child.tag_span, "the second").help("remove one of them"))
                    }
                    Some((_, false)) => {
                        let refusal = Diagnostic::new(
                            Code::InvalidValue,
                            format!("rt_info has `{name}`, which OpenVINO cannot read"),
                        );
                        Some(refusal.at(child.tag_span, "meant for use inside OpenVINO only").help("remove it"))
                    }
                    Some((known, true)) => {
                        seen.push(known);
                        None
                    }
                };
                if let Some(report) = report {
                    self.report_of(layer, report);
                }
            }
            if !["attribute", "user_data"].contains(&child.name()) && self.version == IrVersion::V11 {
                let message = format!("<{}> in the rt_info of a layer is ignored", child.name());
                let lint = Diagnostic::new(Code::UnknownElement, message);
                let lint = lint.at(child.tag_span, "OpenVINO reads <attribute> and <user_data> here");
                self.report_of(
                    layer,
                    lint.help("write <user_data name=\"…\" value=\"…\" version=\"\"/> to keep a value of your own"),
                );
            }
            if tokens.skip(&child).is_err() {
                return;
            }
        }
    }

    /// The values of the attributes of `element` named in `names`, as written; others go to `unknown`.
    fn known_attributes<'e, const N: usize>(
        &mut self,
        element: &'e Element<'a>,
        names: [&str; N],
        mut unknown: impl FnMut(&'e str, &'e str),
    ) -> Result<[Option<&'e str>; N], Fatal> {
        let mut values = [None; N];
        let mut duplicate = None;
        for attribute in Tokens::attributes(element) {
            let (name, value) = attribute?;
            match names.iter().position(|known| *known == name) {
                Some(at) if values[at].is_some() => duplicate = Some(name),
                Some(at) => values[at] = Some(value),
                None => unknown(name, value),
            }
        }
        if let Some(name) = duplicate {
            self.duplicate_attribute(element, name);
        }
        Ok(values)
    }

    fn unsigned(&mut self, name: &str, text: &str) -> Option<u64> {
        // Ids are plain digits; everything else takes the careful way.
        if let Some((number, "")) = plain_number(text) {
            return Some(number);
        }
        let trimmed = text.trim_start();
        let digits = trimmed.bytes().take_while(u8::is_ascii_digit).count();
        match trimmed[..digits].parse() {
            Ok(number @ 0..=LayerId::LARGEST) => {
                if digits < trimmed.len() {
                    self.trailing_junk(name, text, self.tokens.span_of(text));
                }
                Some(number)
            }
            _ => {
                let refusal = Diagnostic::new(Code::InvalidValue, format!("`{name}` is `{text}`, not a number from 0"));
                let span = self.tokens.span_of(text);
                self.report(refusal.at(span, "must be digits, at most 9223372036854775807"));
                None
            }
        }
    }

    fn signed(&mut self, name: &str, text: Option<&str>) -> Option<i64> {
        let text = text?;
        match integer_prefix(text) {
            Some((number, junk)) => {
                if junk {
                    self.trailing_junk(name, text, self.tokens.span_of(text));
                }
                Some(number)
            }
            None => {
                let refusal = Diagnostic::new(Code::InvalidValue, format!("`{name}` is `{text}`, not a number"));
                let span = self.tokens.span_of(text);
                self.report(refusal.at(span, "must be digits"));
                None
            }
        }
    }

    fn no_children(&mut self, element: &Element<'a>) -> Result<(), Fatal> {
        while let Some(child) = self.tokens.child(Some(element))? {
            self.unknown_element(&child, None)?;
        }
        Ok(())
    }

    #[cold]
    fn unknown_element(&mut self, element: &Element<'a>, owner: Option<&Layer>) -> Result<(), Fatal> {
        let name = element.name();
        let lint = Diagnostic::new(Code::UnknownElement, format!("element <{}> is ignored", name.escape_debug()));
        let lint = lint.at(element.tag_span, "not in the format here");
        let lint = match name.contains('\u{a0}') {
            true => lint.help("replace the no-break space (U+00A0) by a space: in XML it is part of the name"),
            false => match nearest(name, ELEMENTS.iter().copied()).filter(|meant| *meant != name) {
                Some(meant) => lint.help(format!("write <{meant}> if that is meant")),
                None => lint.help("remove it, or put it where the format has it"),
            },
        };
        match owner {
            Some(layer) => self.report_of(layer, lint),
            None => self.report(lint),
        }
        self.tokens.skip(element).map(|_| ())
    }

    #[cold]
    fn missing_attribute(&mut self, element: &Element, name: &str) {
        let message = format!("<{}> has no attribute `{name}`", element.name());
        let refusal = Diagnostic::new(Code::MissingAttribute, message);
        let written: Vec<_> = Tokens::attributes(element).flatten().map(|(written, _)| written).collect();
        let plain = |name: &str| name.replace(['-', '_'], "").to_ascii_lowercase();
        let known = ["from-layer", "from-port", "to-layer", "to-port", "id", "name", "type", "version"];
        let is_meant = |written: &&str| {
            let misspelt = !known.contains(written) && nearest(written, [name].into_iter()).is_some();
            plain(written) == plain(name) || misspelt
        };
        let near = written.into_iter().find(is_meant);
        let help = match near {
            Some(near) => format!("write `{name}` for `{near}`"),
            None => format!("add {name}=\"…\" to <{}>", element.name()),
        };
        let refusal = refusal.at(element.tag_span, format!("`{name}` must be here")).help(help);
        let value =
            |wanted| Tokens::attributes(element).flatten().find(|(it, _)| *it == wanted).map(|(_, value)| value);
        match (element.name(), value("id").and_then(|id| id.parse().ok()), value("name")) {
            ("layer", Some(id), Some(layer)) => {
                let layer = LayerRef { id: LayerId(id), name: decode(layer).into(), path: self.path.join("/") };
                self.report(Diagnostic { layer: Some(layer), ..refusal });
            }
            ("edge", ..) => self.report_or_join(refusal),
            _ => self.report(refusal),
        }
    }

    /// Reports what is wrong with an edge, unless the same was reported of another one, which counts them then.
    fn report_or_join(&mut self, found: Diagnostic) {
        let is_same = |it: &&mut Diagnostic| it.message == found.message && it.help == found.help;
        let Some(first) = self.diagnostics.iter_mut().find(is_same) else { return self.report(found) };
        if first.labels.len() < SHOWN {
            first.labels.extend(found.labels);
        }
        let more = first.notes.first().and_then(|note| note.split(' ').next()?.parse::<usize>().ok()).unwrap_or(0) + 1;
        first.notes = vec![format!("{more} more {} like it", if more == 1 { "edge is" } else { "edges are" })];
    }

    #[cold]
    fn duplicate_attribute(&mut self, element: &Element, name: &str) {
        let message = format!("attribute `{name}` appears twice in <{}>", element.name());
        self.report(Diagnostic::new(Code::DuplicateAttribute, message).at(element.tag_span, "the first one counts"));
    }

    #[cold]
    fn trailing_junk(&mut self, what: &str, text: &str, span: Span) {
        let message = format!("only the number at the start of {what} `{text}` counts");
        self.report(Diagnostic::new(Code::TrailingJunk, message).at(span, "what follows the number is ignored"));
    }

    #[cold]
    fn report(&mut self, diagnostic: Diagnostic) {
        let count = self.counts.entry(diagnostic.code).or_default();
        *count += 1;
        if *count <= MAX_OF_A_KIND {
            self.diagnostics.push(diagnostic);
        }
    }

    #[cold]
    fn report_of(&mut self, layer: &Layer, diagnostic: Diagnostic) {
        self.report(self.of(layer, diagnostic));
    }

    /// The diagnostic as one about this layer.
    fn of(&self, layer: &Layer, diagnostic: Diagnostic) -> Diagnostic {
        let reference = LayerRef { id: layer.id, name: layer.name.to_string(), path: self.path.join("/") };
        Diagnostic { layer: Some(reference), ..diagnostic }
    }

    /// All that was reported, and how much more there is of a kind that there is too much of.
    fn finish(self) -> Vec<Diagnostic> {
        let mut diagnostics = self.diagnostics;
        let unlisted =
            |code: &Code| Some(self.counts.get(code)?.saturating_sub(MAX_OF_A_KIND)).filter(|&more| more > 0);
        let more = Code::ALL.iter().filter_map(|code| Some((*code, unlisted(code)?)));
        diagnostics
            .extend(more.map(|(code, more)| Diagnostic::new(code, format!("{more} more like it are not listed"))));
        diagnostics
    }

    /// The start tag of a layer.
    fn tag_of(&self, layer: &Layer) -> Span {
        self.tag_at(layer.span)
    }

    fn tag_at(&self, layer: Option<Span>) -> Span {
        let span = layer.unwrap_or_default();
        match Tokens::new(self.source, span).child(None) {
            Ok(Some(element)) => element.tag_span,
            _ => span,
        }
    }
}

/// The position of a port by its id, in constant time also where a layer has very many.
#[derive(Default)]
struct PortIndex {
    tables: HashMap<(LayerId, bool), HashMap<u64, usize>>,
}

impl PortIndex {
    /// Where an edge leads from and to, if both ends are there.
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
        let guess = usize::try_from(id.wrapping_sub(id_of(ports.first()?))).unwrap_or(usize::MAX);
        // The ids of a layer's ports run on without gaps, as a rule; the first of equal ids is the one edges name.
        if guess == 0 || (ports.len() <= 32 && ports.get(guess).is_some_and(|port| id_of(port) == id)) {
            return ports.iter().position(|port| id_of(port) == id);
        }
        if ports.len() <= 32 {
            return ports.iter().position(|port| id_of(port) == id);
        }
        let table = self.tables.entry((layer, input)).or_insert_with(|| {
            let mut table = HashMap::new();
            for (at, port) in ports.iter().enumerate() {
                table.entry(id_of(port)).or_insert(at);
            }
            table
        });
        table.get(&id).copied()
    }
}

/// What to do about an edge that names a port that a layer does not have.
fn help_with_port(layer: &Layer, kind: &str, id: u64) -> String {
    let (end, only) = match (kind, &layer.inputs[..], &layer.outputs[..]) {
        ("input", [], _) | ("output", _, []) => {
            return format!("declare the {kind} port: <{kind}><port id=\"{id}\" …/></{kind}>");
        }
        ("input", [port], _) => ("to", Some(port.id)),
        ("input", ..) => ("to", None),
        (_, _, [port]) => ("from", Some(port.id)),
        _ => ("from", None),
    };
    match only {
        Some(only) => format!("write {end}-port=\"{only}\", or declare an {kind} port {id}"),
        None => format!("point {end}-port at one of its {}", port_list(layer, kind)),
    }
}

/// The layer that the text of an edge starts at.
fn edge_source(text: &str) -> Option<&str> {
    text.split_once("from-layer=")?.1.split(['"', '\'']).nth(1)
}

/// What OpenVINO's reader creates of a graph: Parameters, and whatever leads to a Result or an Assign.
fn created_layers(graph: &Graph) -> HashSet<LayerId> {
    let starts = graph.unordered().filter(|layer| start(layer).is_some());
    let mut pending: Vec<_> = starts.map(Layer::id).collect();
    let mut created: HashSet<_> = pending.iter().copied().collect();
    while let Some(id) = pending.pop() {
        // Nothing leads to a Parameter, whatever the edges say.
        if graph.layer(id).and_then(start) == Some(LayerKind::Parameter) {
            continue;
        }
        pending.extend(graph.sources(id).filter(|&source| created.insert(source)));
    }
    created
}

fn port_list(layer: &Layer, kind: &str) -> String {
    let (count, ids): (_, Vec<_>) = match kind {
        "input" => (layer.inputs.len(), layer.inputs.iter().take(SHOWN).map(|port| port.id.to_string()).collect()),
        _ => (layer.outputs.len(), layer.outputs.iter().take(SHOWN).map(|port| port.id.to_string()).collect()),
    };
    match count {
        0 => format!("no {kind} ports"),
        1 => format!("{kind} port {}", ids[0]),
        _ if count > ids.len() => format!("{kind} ports {} and {} more", ids.join(", "), count - ids.len()),
        _ => format!("{kind} ports {}", ids.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::xml::{WriteOptions, write};

    /// What can be seen of a reading.
    fn seen(reading: &Reading) -> String {
        let text = reading.model.as_ref().map(|model| {
            let layers: Vec<_> = model.graph.layers().map(|layer| (layer, layer.span, &layer.name)).collect();
            let wires: Vec<_> = model.graph.wires().collect();
            let options = WriteOptions { canonical: true, ..Default::default() };
            format!("{layers:?} {wires:?} {}", write(model, options))
        });
        format!("{text:?} {:?}", reading.diagnostics)
    }

    /// Reads a text in both ways, and whether the second half of it was layers and nothing else.
    fn is_read_alike(text: String) -> bool {
        let source = Arc::new(text);
        let Some(half) = second_half(&source) else { return false };
        assert!(seen(&parse_in_halves(&source, half)) == seen(&parse_alone(source.clone())), "{source}");
        LayersOnly::read(&source, half).is_some()
    }

    #[test]
    fn halves_are_read_as_the_whole_is() {
        let models = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/models");
        let texts = std::fs::read_dir(models).into_iter().flatten().flatten().map(|entry| entry.path());
        let texts = texts.filter(|path| path.extension().is_some_and(|extension| extension == "xml"));
        let (mut random, mut halves, mut damaged_halves) = (7_usize, 0, 0);
        let mut below = |limit: usize| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) % limit
        };
        for text in texts.filter_map(|path| std::fs::read_to_string(path).ok()).filter(|text| text.len() < 1 << 17) {
            halves += usize::from(is_read_alike(text.clone()));
            for _ in 0..8 {
                let lines: Vec<_> = text.lines().collect();
                let at = below(lines.len());
                let damaged = match below(4) {
                    0 => lines[..at].join("\n"),
                    1 => [&lines[..at], &lines[at + 1..]].concat().join("\n"),
                    2 => [&lines[..at], &["<!--"], &lines[at..]].concat().join("\n"),
                    _ => [&lines[..=at], &lines[at..]].concat().join("\n"),
                };
                damaged_halves += usize::from(is_read_alike(damaged));
            }
        }
        assert!(halves > 10 && damaged_halves > 50, "{halves} and {damaged_halves} were read in halves");
    }
}
