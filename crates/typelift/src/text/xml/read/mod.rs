//! Parsing of text into a graph.

mod edges;
mod layer;
mod metadata;

use std::borrow::Cow;
use std::mem::take;
use std::sync::Arc;

use memchr::memmem::Finder;
use smallvec::SmallVec;

pub(crate) use self::metadata::metadata_attribute;
use super::execution;
use super::locate::locate;
use super::tokens::{Element, Fatal, Tokens, decode, plain_number};
use crate::base::hash::{HashMap, HashSet};
use crate::base::names::nearest;
use crate::base::number::whole;
use crate::base::progress::Stage;
use crate::base::span::Span;
use crate::findings::{About, Code, Diagnostic, Fix, LayerRef, Owner, message};
use crate::model::graph::{
    AttributeList, Graph, InputPort, IrVersion, Layer, LayerId, Model, OperationName, OutputConstraints, OutputPort,
    Place, Text,
};
use crate::model::shape::Shape;
use crate::model::weights::Weights;

/// Limit on the nesting of bodies: several times deeper than in any real model, and safe for the stack.
const MAX_DEPTH: usize = 64;

/// Maximum number of layers, ports or attributes that a message lists.
const SHOWN: usize = 8;

/// Maximum number of findings of one code, because a finding needs much more memory than the text that causes it.
const MAX_OF_A_KIND: usize = 1000;

/// Result of reading a text.
#[derive(Clone, Debug)]
pub struct Reading {
    /// The model, as far as it could be read; `None` if the text is not an IR at all.
    pub model: Option<Model>,
    /// Errors and lints, in the order of the text.
    pub diagnostics: Vec<Diagnostic>,
}

/// Reads a model from text, with all errors and lints. Types and shapes are those declared by the ports, until
/// [`infer`](crate::infer()) has run.
#[must_use]
pub fn parse(source: Arc<String>) -> Reading {
    let whole = Span::new(0, source.len());
    if whole.end == u32::MAX {
        let refusal =
            Diagnostic::new(Code::NotAnIr, "the file is 4 GiB or larger, which is too large for an OpenVINO IR");
        return Reading { model: None, diagnostics: vec![refusal] };
    }
    if let Some(refusal) = execution::refusal(&source) {
        return Reading { model: None, diagnostics: vec![refusal] };
    }
    let mut read = Read::new(&source, whole);
    let model = read.model();
    let mut diagnostics = read.finish();
    match model {
        Ok(model) => Reading { model: model.map(|model| Model { source, ..model }), diagnostics },
        Err(fatal) => {
            // If the text stops being XML, earlier lints are most likely part of the same mistake.
            diagnostics.retain(Diagnostic::is_error);
            // NUL bytes at the end are a part that was not written, which the error says.
            diagnostics.push(nul_byte(source.trim_end_matches('\0')).unwrap_or(*fatal));
            Reading { model: None, diagnostics }
        }
    }
}

struct Read<'a> {
    source: &'a Arc<String>,
    stage: Stage,
    tokens: Tokens<'a>,
    diagnostics: Vec<Diagnostic>,
    counts: HashMap<Code, usize>,
    /// The graph being read.
    place: Place,
    version: IrVersion,
    /// True if a layer of the current graph could not be read, which suppresses errors about edges to it.
    damaged: bool,
    /// The layers of the current graph where an invalid edge ends.
    lost: Vec<LayerId>,
    /// Ids that several layers of the current graph share, with the index of the finding.
    repeated: Vec<(LayerId, usize)>,
    /// The layers of the current graph with an empty type or version.
    unnamed: Vec<LayerId>,
    /// Layers that OpenVINO drops and that have an invalid edge.
    dropped: HashSet<LayerId>,
    /// Layers that OpenVINO creates, computed when first needed.
    created: Option<HashSet<LayerId>>,
    parsed_ports: Parsed<'a, Shape>,
    parsed_inputs: Parsed<'a, Arc<[InputPort]>>,
    /// Cache of the text after `<data>` of a layer, if it contains only ports.
    parsed_rests: Parsed<'a, LayerPorts>,
    /// Index in `last` of each operation, by type and version.
    operations: HashMap<(&'a str, &'a str), usize>,
    last: Vec<Last<'a>>,
    /// Cache of attributes by the text of `<data>` tags.
    parsed_data: HashMap<&'a str, AttributeList>,
}

type LayerPorts = (Arc<[InputPort]>, SmallVec<[OutputPort; 1]>);

/// The last layer of an operation. The next layer with equal text shares its data.
struct Last<'a> {
    operation_name: Arc<OperationName>,
    /// The text of its `<data>`, and the parsed attributes.
    data: &'a str,
    attributes: AttributeList,
}

/// Cache of parsed elements of one kind, by their text. Almost every port repeats an earlier one, and comparing text
/// is much faster than parsing.
struct Parsed<'a, T> {
    end_tag: Finder<'static>,
    entries: HashMap<&'a str, T>,
}

impl<'a, T: Clone> Parsed<'a, T> {
    const MAX_ENTRIES: usize = 1 << 10;
    const MAX_BYTES: usize = 1 << 10;

    fn new(end_tag: &'static str) -> Self {
        Self { end_tag: Finder::new(end_tag), entries: HashMap::default() }
    }

    /// The cached value of `element` and skips its content, if it is in the cache.
    fn pass(&self, tokens: &mut Tokens<'a>, element: &Element<'a>) -> Result<Option<T>, Fatal> {
        let ahead = tokens.ahead(element);
        let end = self.end_tag.find(&ahead.as_bytes()[..ahead.len().min(Self::MAX_BYTES)]);
        let content = end.and_then(|end| ahead.get(..end)).map(str::trim_ascii_end);
        match content.and_then(|content| self.entries.get_key_value(content)) {
            Some((content, known)) => tokens.pass(element, content).map(|()| Some(known.clone())),
            None => Ok(None),
        }
    }

    fn add(&mut self, content: Span, source: &'a str, known: T) {
        let text = content.text(source);
        if self.entries.len() < Self::MAX_ENTRIES && text.len() <= Self::MAX_BYTES {
            self.entries.insert(text, known);
        }
    }
}

/// Names of the elements that the format defines.
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

impl<'a> Read<'a> {
    fn new(source: &'a Arc<String>, span: Span) -> Self {
        Self {
            source,
            stage: Stage::new("read", source.len() as u64),
            tokens: Tokens::new(source, span),
            diagnostics: Vec::new(),
            counts: HashMap::default(),
            place: Place::default(),
            version: IrVersion::V11,
            damaged: false,
            lost: Vec::new(),
            repeated: Vec::new(),
            unnamed: Vec::new(),
            dropped: HashSet::default(),
            created: None,
            parsed_ports: Parsed::new("</port>"),
            parsed_inputs: Parsed::new("</input>"),
            parsed_rests: Parsed::new("</layer>"),
            operations: HashMap::default(),
            last: Vec::new(),
            parsed_data: HashMap::default(),
        }
    }

    fn model(&mut self) -> Result<Option<Model>, Fatal> {
        let Some(root) = self.root()? else { return Ok(None) };
        let [name, version] = self.known_attributes(&root, ["name", "version"], |_, _| {})?;
        let version = match version.map(|text| self.ir_version(text)) {
            Some(Some(version)) => version,
            // Files of older formats break the rules of later ones everywhere.
            Some(None) => return Ok(None),
            None => {
                let refusal = Diagnostic::new(Code::UnsupportedVersion, "<net> does not say which IR version it is");
                let refusal = refusal.at(root.tag_span, "`version` is missing");
                self.report(refusal.help("write version=\"11\"; OpenVINO also reads 10"));
                IrVersion::V11
            }
        };
        self.version = version;
        let mut model = Model {
            // A layer and its edges usually need at least 450 bytes of text; 400 leaves space for added layers.
            graph: Graph::with_capacity(self.source.len() / 400),
            weights: Weights::none(),
            name: name.map(|name| decode(name).into()),
            version,
            source: Arc::default(),
            extras: Vec::new(),
            constraints: OutputConstraints::default(),
        };
        self.graph(&root, &mut model.graph, Some(&mut model.extras))?;
        if model.graph.rt_info.is_some() {
            self.lint_legacy_metadata(&model);
        }
        self.read_rest()?;
        Ok(Some(model))
    }

    /// The root element, if it is that of an OpenVINO IR.
    fn root(&mut self) -> Result<Option<Element<'a>>, Fatal> {
        let Some(root) = self.tokens.child(None)? else {
            let (message, help) = without_elements(self.source.trim_start());
            let start = Span::new(0, self.source.chars().next().map_or(0, char::len_utf8));
            let refusal = Diagnostic::new(Code::NotAnIr, message);
            self.report(refusal.at(start, "no element follows this text").help(help));
            return Ok(None);
        };
        if root.name().eq_ignore_ascii_case("net") {
            return Ok(Some(root));
        }
        let name = root.name();
        let help = match name.to_ascii_lowercase().as_str() {
            _ if ["diff ", "--- ", "Index: ", "@@ "].iter().any(|start| self.source.starts_with(start)) => {
                "this is a diff: apply it to the model with `git apply` or `patch`, and give that .xml"
            }
            "html" | "head" | "body" => {
                "this is a web page, such as an error page: download the .xml of the model again"
            }
            "error" => "this is a server's error message: download the .xml of the model again",
            "opencv_storage" => "this file belongs to OpenCV; give the .xml of an OpenVINO model",
            "layers" | "edges" | "layer" => "put <net name=\"model\" version=\"11\"> around <layers> and <edges>",
            _ => "give the .xml of an OpenVINO model",
        };
        let refusal = Diagnostic::new(Code::NotAnIr, message!("the root element is <{}>, not <net>"; name));
        self.report(refusal.at(root.tag_span, "not an OpenVINO IR").help(help));
        Ok(None)
    }

    /// Checks the text after the root, which must contain nothing else.
    fn read_rest(&mut self) -> Result<(), Fatal> {
        if let Some(refusal) = nul_byte(&self.source[..self.tokens.position()]) {
            return Err(refusal.into());
        }
        let Some(span) = self.tokens.rest()? else { return Ok(()) };
        let text = span.text(self.source).trim_start();
        let text = text.strip_prefix("<?").and_then(|text| text.split_once("?>")).map_or(text, |(_, text)| text);
        let (message, help) = if text.trim_start().starts_with("<net") {
            (
                "a second root element <net> follows the first one: OpenVINO ignores it",
                "if two models were joined in one file, move one of them to a file of its own",
            )
        } else {
            ("text after the root element is ignored", "move it into <net>, or remove it")
        };
        let lint = Diagnostic::new(Code::ContentOutsideRoot, message);
        self.report(lint.at(span, "not part of the model").help(help));
        Ok(())
    }

    /// The version, or version 11 for a later or unreadable one; `None` for one before 10.
    fn ir_version(&mut self, text: &str) -> Option<IrVersion> {
        match whole(&decode(text)) {
            Some(10) => Some(IrVersion::V10),
            Some(11) => Some(IrVersion::V11),
            other => {
                let refusal =
                    Diagnostic::new(Code::UnsupportedVersion, message!("IR version `{}` cannot be read"; text));
                let span = self.tokens.span_of(text);
                let help = match other {
                    Some(..10) => {
                        "convert the original model again with a current OpenVINO; 2020.4 is the last release that reads this version"
                    }
                    Some(12..) => "write version=\"11\", the newest version that OpenVINO 2026.4.1 reads",
                    _ => "write version=\"11\"",
                };
                self.report(refusal.at(span, "OpenVINO reads versions 10 and 11").help(help));
                other.is_none_or(|version| version > 11).then_some(IrVersion::V11)
            }
        }
    }

    fn lint_legacy_metadata(&mut self, model: &Model) {
        for span in &model.extras {
            let text = span.text(self.source);
            if let Some(name) = ["meta_data", "quantization_parameters"].into_iter().find(|n| text[1..].starts_with(n))
            {
                let lint = Diagnostic::new(
                    Code::IgnoredMetadata,
                    message!("<{}> is ignored where the file has <rt_info>"; name),
                );
                self.report(lint.at(*span, "OpenVINO reads it only if the file has no <rt_info>"));
            }
        }
    }

    /// Reads the layers and edges in `parent` into `graph`. Other children are collected in `extras`, or skipped.
    fn graph(
        &mut self,
        parent: &Element<'a>,
        graph: &mut Graph,
        mut extras: Option<&mut Vec<Span>>,
    ) -> Result<(), Fatal> {
        let outer = (take(&mut self.damaged), take(&mut self.lost), take(&mut self.repeated), take(&mut self.unnamed));
        let mut open_edges = Vec::new();
        while let Some(child) = self.tokens.child(Some(parent))? {
            match child.name() {
                "layers" if graph.layers_span.is_none() => {
                    while let Some(element) = self.tokens.child(Some(&child))? {
                        self.stage.at(self.tokens.position() as u64);
                        if element.name() == "layer" {
                            self.layer(&element, |layer| graph.append(layer))?;
                        } else {
                            self.unknown_element(&element, None)?;
                        }
                    }
                    self.index_layers(graph);
                    graph.layers_span = Some(self.tokens.span_since(&child));
                }
                "edges" if graph.edges_span.is_none() => {
                    self.edges(&child, graph, &mut open_edges)?;
                    graph.edges_span = Some(self.tokens.span_since(&child));
                }
                "rt_info" if graph.rt_info.is_none() => {
                    let span = self.tokens.skip(&child)?;
                    graph.rt_info = Some(Text::of(span.text(self.source), self.source));
                    graph.rt_info_span = Some(span);
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
        self.wire(graph, open_edges);
        (self.damaged, self.lost, self.repeated, self.unnamed) = outer;
        Ok(())
    }

    /// Indexes the layers, and drops earlier layers with the same id.
    fn index_layers(&mut self, graph: &mut Graph) {
        for (earlier, next) in graph.index_layers() {
            let lint = Diagnostic::new(
                Code::DuplicateLayerId,
                message!("layer id {} is used again: `{}` is dropped"; earlier.id, earlier.name),
            );
            let lint = lint
                .at(self.tag_at(next), "this layer is kept")
                .at(earlier.span.unwrap_or_default(), "OpenVINO silently drops this one")
                .help("give one of them an unused id, and change its edges to that id");
            let at = self.diagnostics.len();
            self.report_of(&earlier, lint);
            if self.diagnostics.len() > at {
                self.repeated.push((earlier.id, at));
            }
        }
    }

    /// Reports an empty type or version, which can never be valid.
    fn check_names(&mut self, graph: &Graph) {
        for layer in take(&mut self.unnamed).into_iter().filter_map(|id| graph.layer(id)) {
            for (attribute, value) in [("type", layer.ty()), ("version", layer.version())] {
                if value.is_empty() {
                    let message = message!("layer {} `{}` has an empty `{}`"; layer.id, layer.name, attribute);
                    let place = locate(self.source, layer.span.unwrap_or_default(), "layer", attribute);
                    let refusal = Diagnostic::new(Code::InvalidValue, message).at(place, "must not be empty");
                    self.report_unless_dropped(graph, layer.id, self.of(layer, refusal));
                }
            }
        }
    }

    /// Other attributes are collected in `unknown`.
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

    /// An attribute value, with XML escapes resolved if there are any.
    fn text(&self, raw: &str) -> Text {
        match decode(raw) {
            Cow::Borrowed(part) => Text::of(part, self.source),
            Cow::Owned(text) => text.into(),
        }
    }

    fn required(&mut self, element: &Element<'a>, name: &'static str, text: Option<&str>) -> Option<u64> {
        if text.is_none() {
            self.missing_attribute(element, name);
        }
        self.unsigned(name, text?)
    }

    fn unsigned(&mut self, name: &'static str, text: &str) -> Option<u64> {
        // Ids are usually plain digits; other forms take the slower path.
        if let Some((number, "")) = plain_number(text) {
            return Some(number);
        }
        let number = whole(&decode(text)).and_then(|number| u64::try_from(number).ok());
        let number = number.filter(|number| *number <= LayerId::LARGEST);
        number.or_else(|| self.no_number(name, text, "a number from 0", "must be digits, at most 9223372036854775807"))
    }

    fn signed(&mut self, name: &'static str, text: Option<&str>) -> Option<i64> {
        let text = text?;
        let number = whole(&decode(text)).and_then(|number| number.try_into().ok());
        number.or_else(|| self.no_number(name, text, "a number", "must be digits"))
    }

    #[cold]
    fn no_number<T>(&mut self, name: &'static str, text: &str, wanted: &'static str, form: &'static str) -> Option<T> {
        let refusal = Diagnostic::new(Code::InvalidValue, message!("`{}` is `{}`, not {}"; name, text, wanted));
        let refusal = refusal.about(About::Unreadable { attribute: name.to_owned() });
        self.report(refusal.at(self.tokens.span_of(text), form));
        None
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
        let lint =
            Diagnostic::new(Code::UnknownElement, message!("element <{}> is ignored"; name.escape_debug().to_string()));
        let lint = lint.at(element.tag_span, "the format has no such element here");
        let has_no_break_space = name.contains('\u{a0}');
        let meant = nearest(name, ELEMENTS.iter().copied()).filter(|meant| *meant != name && !has_no_break_space);
        let lint = lint.about(About::Element { element: name.to_owned(), meant });
        let lint = if has_no_break_space {
            lint.help("replace the no-break space (U+00A0) by a space: in XML it is part of the name")
        } else {
            match meant {
                Some(meant) if meant.eq_ignore_ascii_case(name) => {
                    lint.help(message!("write <{}> in small letters"; meant))
                }
                Some(meant) => lint.help(message!("write <{}> if you mean that element"; meant)),
                None => lint.help("remove it, or move it to the element that it belongs to"),
            }
        };
        match owner {
            Some(layer) => self.report_of(layer, lint),
            None => self.report(lint),
        }
        self.tokens.skip(element).map(|_| ())
    }

    #[cold]
    fn missing_attribute(&mut self, element: &Element, name: &'static str) {
        let message = message!("<{}> has no attribute `{}`"; element.name(), name);
        let refusal = Diagnostic::new(Code::MissingAttribute, message);
        let known = ["from-layer", "from-port", "to-layer", "to-port", "id", "name", "type", "version"];
        let near = Tokens::attributes(element).flatten().map(|(written, _)| written).find(|written| {
            let plain = [*written, name].map(|name| name.replace(['-', '_'], "").to_ascii_lowercase());
            plain[0] == plain[1] || !known.contains(written) && nearest(written, [name]).is_some()
        });
        let help = match near {
            Some(near) => message!("write `{}` for `{}`"; name, near).into(),
            None => Fix::add([name], Owner::Element(element.name().to_owned())),
        };
        let about = About::missing(element.name(), vec![name.to_owned().into()], near.map(str::to_owned));
        let refusal = refusal.about(about);
        let refusal = refusal.at(element.tag_span, message!("`{}` is required here"; name)).help(help);
        let [id, name] = ["id", "name"].map(|name| Tokens::attribute(element, name));
        match (element.name(), id.and_then(|id| id.parse().ok()), name) {
            ("layer", Some(id), Some(layer)) => {
                let layer = LayerRef::named(&self.place, LayerId(id), &decode(layer));
                self.report(Diagnostic { layer: Some(layer), ..refusal });
            }
            ("edge", ..) => self.report_or_join(refusal),
            _ => self.report(refusal),
        }
    }

    /// Reports a problem of an edge. An equal finding is counted instead of repeated.
    fn report_or_join(&mut self, found: Diagnostic) {
        let same = self.diagnostics.iter_mut().find(|it| it.about.lacks_as(&found.about));
        let Some(first) = same else { return self.report(found) };
        if first.labels.len() < SHOWN {
            first.labels.extend(found.labels);
        }
        let About::Missing { more, .. } = &mut *first.about else { return };
        *more += 1;
        let more = *more;
        first.notes =
            vec![message!("{} more {} with the same mistake"; more, if more == 1 { "edge is" } else { "edges are" })];
    }

    #[cold]
    fn duplicate_attribute(&mut self, element: &Element, name: &str) {
        let message = message!("attribute `{}` appears twice in <{}>"; name, element.name());
        self.report(
            Diagnostic::new(Code::DuplicateAttribute, message).at(element.tag_span, "OpenVINO uses the first one"),
        );
    }

    #[cold]
    fn trailing_junk(&mut self, what: &'static str, text: &str, span: Span) {
        let message = message!("OpenVINO reads only the number at the start of {} `{}`"; what, text);
        self.report(Diagnostic::new(Code::TrailingJunk, message).at(span, "the text after the number is ignored"));
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

    fn of(&self, layer: &Layer, diagnostic: Diagnostic) -> Diagnostic {
        Diagnostic { layer: Some(LayerRef::of(&self.place, layer)), ..diagnostic }
    }

    /// For each code over its limit, adds the number of those that are not listed.
    fn finish(self) -> Vec<Diagnostic> {
        let mut diagnostics = self.diagnostics;
        let unlisted =
            |code: &Code| Some(self.counts.get(code)?.saturating_sub(MAX_OF_A_KIND)).filter(|&more| more > 0);
        let more = Code::ALL.iter().filter_map(|code| Some((*code, unlisted(code)?)));
        diagnostics.extend(
            more.map(|(code, more)| {
                Diagnostic::new(code, message!("{} more findings of this kind are not listed"; more))
            }),
        );
        diagnostics
    }

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

fn nul_byte(text: &str) -> Option<Diagnostic> {
    let at = memchr::memchr(0, text.as_bytes())?;
    let refusal = Diagnostic::new(Code::XmlSyntax, "the text has a NUL byte");
    let help = "get a fresh copy of the file: it was damaged, or only a part of it was written";
    Some(refusal.at(Span::new(at, at + 1), "OpenVINO stops reading here").help(help))
}

/// Recognizes a text without XML elements. Returns a description and a fix.
fn without_elements(text: &str) -> (&'static str, &'static str) {
    if text.is_empty() {
        ("the file is empty", "get a fresh copy of the .xml")
    } else if text.trim_matches('\0').is_empty() {
        ("the file consists of NUL bytes", "get a fresh copy of the .xml")
    } else if text.starts_with("version https://git-lfs") {
        ("the file is a Git LFS pointer, not the model", "run `git lfs pull` in its repository to fetch the .xml")
    } else if text.starts_with("404: ") || text.starts_with("Entry not found") {
        ("the file is a server's error message, not the model", "download the .xml of the model again")
    } else if text.starts_with('{') || text.starts_with('[') {
        ("the text is JSON, not XML", "give the .xml of the model; IR starts with <net>")
    } else {
        ("the text has no XML element", "give the .xml of the model; IR starts with <net>")
    }
}
