//! Place of a fault: a layer with its text, its graph and its edges. Candidates are edits there.

use std::rc::Rc;

use super::reading::{Reading, Slip};
use super::trial::{Needs, Soundness};
use crate::base::span::Span;
use crate::findings::{LayerRef, TextEdit};
use crate::model::graph::{Direction, Graph, Layer, LayerId, Model, OutputPort};
use crate::text::xml::{self, Tag};

/// Edit of the text that may be the intended change.
#[derive(Clone)]
pub(super) struct Candidate {
    pub(super) edits: Vec<TextEdit>,
    pub(super) evidence: Evidence,
    pub(super) ground: Ground,
}

/// Evidence for a candidate, strongest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Evidence {
    /// Similarity: the old and the new text differ little, or the candidate is the only one of its kind.
    Near,
    /// A layer or tensor that is unused without the candidate.
    Unused,
    /// Other text of the file supports it.
    File,
    /// The operation permits the value.
    Table,
    /// No evidence that the candidate is sufficient. Other changes may be necessary too.
    Part,
}

/// The evidence that a candidate is the intended change, if it is the only one that passes its trial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Ground {
    /// Nothing: the change is never safe.
    None,
    /// The old text. Each of its characters is explained.
    Text(Vec<Slip>),
    /// Another part of the file, if the text after the change satisfies the needs.
    File(&'static str, Needs),
    /// The declared outputs of the layer, if no similar value gives them.
    Outputs { layer: LayerId, name: String, value: String },
}

impl From<Reading> for Ground {
    fn from(read: Reading) -> Self {
        if read.slips.is_empty() { Self::None } else { Self::Text(read.slips) }
    }
}

impl Candidate {
    pub(super) fn new(evidence: Evidence, ground: Ground, edits: Vec<TextEdit>) -> Self {
        Self { edits, evidence, ground }
    }

    pub(super) fn one(evidence: Evidence, ground: Ground, span: Span, text: impl Into<String>) -> Self {
        Self::new(evidence, ground, vec![TextEdit::new(span, text)])
    }
}

/// Graph in which a finding is, with the text of its edges.
pub(super) struct Case<'a> {
    pub(super) model: &'a Model,
    pub(super) graph: &'a Graph,
    pub(super) edges: Vec<EdgeText>,
    pub(super) before: Rc<Soundness>,
    /// True if OpenVINO cannot load the file because of the finding.
    pub(super) is_error: bool,
}

impl<'a> Case<'a> {
    pub(super) fn source(&self) -> &'a str {
        &self.model.source
    }

    pub(super) fn site(&'a self, layer: &'a Layer) -> Option<Site<'a>> {
        let tags = xml::tags(self.source(), layer.span()?);
        (!tags.is_empty()).then_some(Site { case: self, graph: self.graph, layer, tags })
    }

    pub(super) fn is_numbered(&self, layer: &Layer) -> bool {
        self.site(layer).is_some_and(|site| site.is_numbered_with(None))
    }
}

/// Layer with its text.
pub(super) struct Site<'a> {
    pub(super) case: &'a Case<'a>,
    pub(super) graph: &'a Graph,
    pub(super) layer: &'a Layer,
    pub(super) tags: Vec<Tag>,
}

pub(super) struct EdgeText {
    pub(super) span: Span,
    /// Positions of the values of `from-layer`, `from-port`, `to-layer` and `to-port`.
    pub(super) ends: [Span; 4],
    pub(super) from: (u64, u64),
    pub(super) to: (u64, u64),
}

impl<'a> Site<'a> {
    pub(super) fn source(&self) -> &'a str {
        self.case.source()
    }

    fn is(&self, tag: &Tag, name: &str) -> bool {
        tag.name.text(self.source()) == name
    }

    pub(super) fn data(&self) -> Option<&Tag> {
        self.tags.iter().find(|tag| tag.parent == Some(0) && self.is(tag, "data"))
    }

    pub(super) fn head(&self, attribute: &str) -> Option<Span> {
        self.tags.first()?.value(self.source(), attribute)
    }

    pub(super) fn set(&self, attribute: &str, value: &str) -> Option<TextEdit> {
        let Some(data) = self.data() else {
            let head = self.tags.first()?.span;
            let is_open = !head.text(self.source()).ends_with("/>");
            let after = Span { start: head.end, end: head.end };
            return is_open.then(|| TextEdit::new(after, format!("<data {attribute}=\"{value}\"/>")));
        };
        Some(data.set(self.source(), attribute, value))
    }

    pub(super) fn ports(&self, direction: Direction) -> Vec<&Tag> {
        let list = if direction == Direction::Input { "input" } else { "output" };
        let is_list = |at: usize| self.tags[at].parent == Some(0) && self.is(&self.tags[at], list);
        self.tags.iter().filter(|tag| self.is(tag, "port") && tag.parent.is_some_and(is_list)).collect()
    }

    pub(super) fn joints(&self) -> impl Iterator<Item = &Tag> {
        let joins = |at: usize| {
            let name = self.tags[at].name.text(self.source());
            self.tags[at].parent == Some(0) && (name.contains("port_map") || name == "back_edges")
        };
        self.tags.iter().filter(move |tag| tag.parent.is_some_and(joins))
    }

    pub(super) fn refresh(&self, direction: Direction, at: usize, output: &OutputPort) -> Option<Vec<TextEdit>> {
        let port = *self.ports(direction).get(at)?;
        let mut edits = Vec::new();
        let precision = output.element_type().port_name()?;
        if port.value(self.source(), "precision").is_none_or(|span| span.text(self.source()) != precision) {
            edits.push(port.set(self.source(), "precision", precision));
        }
        let dims = output.shape().dims()?.iter().map(|dim| dim.value().unwrap_or(-1).to_string());
        edits.extend(self.with_dims(port, &dims.collect::<Vec<_>>()));
        (!edits.is_empty()).then_some(edits)
    }

    pub(super) fn with_dims(&self, port: &Tag, dims: &[String]) -> Vec<TextEdit> {
        let Some(place) = self.tags.iter().position(|tag| std::ptr::eq(tag, port)) else { return Vec::new() };
        let written = self.tags.iter().filter(|tag| tag.parent == Some(place) && self.is(tag, "dim"));
        let written: Vec<_> = written.map(|tag| self.content(tag)).collect();
        if dims.len() == written.len() {
            let other = written.iter().zip(dims).filter(|(span, dim)| span.text(self.source()).trim() != **dim);
            return other.map(|(span, dim)| TextEdit::new(*span, dim)).collect();
        }
        let text: String = dims.iter().map(|dim| format!("<dim>{dim}</dim>")).collect();
        let (open, close) = ("<dim>".len() as u32, "</dim>".len() as u32);
        let place = match (written.first(), written.last()) {
            (Some(first), Some(last)) => Span { start: first.start - open, end: last.end + close },
            _ => Span { start: port.span.end, end: port.span.end },
        };
        vec![TextEdit::new(place, text)]
    }

    /// The text between the tags of an element without children.
    fn content(&self, tag: &Tag) -> Span {
        let rest = self.source().get(tag.span.end as usize..).unwrap_or_default();
        let length = rest.find('<').unwrap_or_default();
        Span { start: tag.span.end, end: tag.span.end + length as u32 }
    }

    /// True if the port ids, after one was changed, are consecutive from 0, inputs first, as OpenVINO numbers them.
    pub(super) fn is_numbered_with(&self, changed: Option<(Span, u64)>) -> bool {
        let ports = [Direction::Input, Direction::Output].into_iter().flat_map(|direction| self.ports(direction));
        let id = |tag: &Tag| {
            let span = tag.value(self.source(), "id")?;
            match changed {
                Some((place, id)) if place == span => Some(id),
                _ => Some(tag.number(self.source(), "id")?.1),
            }
        };
        (0..).zip(ports).all(|(at, tag)| id(tag) == Some(at))
    }
}

pub(super) fn edges(source: &str, graph: &Graph) -> Vec<EdgeText> {
    let tags = xml::tags(source, graph.edges_span.unwrap_or_default());
    let edges = tags.iter().filter_map(|tag| {
        let [from, from_port, to, to_port] =
            ["from-layer", "from-port", "to-layer", "to-port"].map(|name| tag.value(source, name));
        let ends = [from?, from_port?, to?, to_port?];
        let number = |at: usize| ends[at].text(source).trim().parse::<u64>().unwrap_or(u64::MAX);
        Some(EdgeText { span: element(source, tag), ends, from: (number(0), number(1)), to: (number(2), number(3)) })
    });
    edges.collect()
}

/// An element without others of its name, with its end tag.
pub(super) fn element(source: &str, tag: &Tag) -> Span {
    if tag.span.text(source).ends_with("/>") {
        return tag.span;
    }
    let rest = source.get(tag.span.end as usize..).unwrap_or_default();
    let end = format!("</{}>", tag.name.text(source));
    let length = rest.find(&end).map_or(0, |at| at + end.len());
    Span { start: tag.span.start, end: tag.span.end + length as u32 }
}

pub(super) fn find<'a>(model: &'a Model, wanted: &LayerRef) -> Option<(&'a Graph, &'a Layer)> {
    let graph = model.graph_at(&wanted.place)?;
    Some((graph, graph.layer(wanted.id)?))
}

/// The innermost graph at a position in the text, for findings without a layer.
pub(super) fn graph_at(model: &Model, span: Span) -> &Graph {
    let holds = |graph: &Graph| graph.span.is_some_and(|it| it.start <= span.start && span.end <= it.end);
    let graphs = model.walk().map(|(_, graph)| graph).filter(|graph| holds(graph));
    graphs.min_by_key(|graph| graph.span.map_or(u32::MAX, |it| it.end - it.start)).unwrap_or(&model.graph)
}
