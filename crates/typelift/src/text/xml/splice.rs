//! Writing of a model by copying its source text and printing only the changes.

use std::mem::replace;
use std::ops::Range;

use smallvec::SmallVec;
use typelift_promote::ElementType;

use super::canonical::{Layout, Printer};
use super::in_order::print_in_order;
use super::locate::{declared_dims, declares, locate, matches_dims};
use super::tokens::{Element, Fatal, Tokens, decode, encode};
use super::{DECLARATION, OPENING, WriteOptions, is_worth_two_threads};
use crate::base::hash::HashMap;
use crate::base::number::integer_prefix;
use crate::base::span::Span;
use crate::model::graph::{Body, Graph, Layer, LayerId, Model, OutputConstraints, OutputPort};
use crate::model::shape::Shape;

/// Chunk size of the source in bytes.
const PART: u32 = 64 << 10;

/// Passes the source with the model's changes to `sink`, chunk by chunk.
pub(super) fn model<E>(model: &Model, options: WriteOptions, sink: impl FnMut(&str) -> Result<(), E>) -> Result<(), E> {
    let two_threads = !options.on_one_thread && is_worth_two_threads(model.source.len());
    in_parts(model, options.refresh_ports, PART, two_threads, sink)
}

fn in_parts<E>(
    model: &Model,
    refresh_ports: bool,
    length: u32,
    two_threads: bool,
    sink: impl FnMut(&str) -> Result<(), E>,
) -> Result<(), E> {
    let graph = &model.graph;
    let mut removed = graph.removed().to_vec();
    removed.sort();
    let layers: Vec<_> = graph.layers().collect();
    let edges = Edges::new(graph);
    let division = Division { parts: Vec::new(), length, edges: &edges.placed, removed: &removed };
    let parts = division.divide(model, &layers, &edges.added);
    print_in_order(&parts, two_threads, |part, out| Splice::new(model, refresh_ports).print(model, part, out), sink)
}

struct TextChunk<'g> {
    span: Span,
    layers: &'g [&'g Layer],
    edges: &'g [(Span, PositionEdge<'g>)],
    /// New edges for the end of `<edges>`; only the last chunk has any.
    added: &'g [PositionEdge<'g>],
    removed: &'g [Span],
}

/// Division of the source text into chunks with their layers and edges.
struct Division<'g> {
    parts: Vec<TextChunk<'g>>,
    /// The minimum length of a chunk, except the last.
    length: u32,
    edges: &'g [(Span, PositionEdge<'g>)],
    removed: &'g [Span],
}

impl<'g> Division<'g> {
    /// Divides the source text at the ends of layers and edges.
    fn divide(
        mut self,
        model: &'g Model,
        layers: &'g [&'g Layer],
        added: &'g [PositionEdge<'g>],
    ) -> Vec<TextChunk<'g>> {
        let graph = &model.graph;
        let mut done = 0;
        // Edges are edited after layers. If the file has edges before layers, the text is one chunk.
        if graph.layers_span.zip(graph.edges_span).is_none_or(|(layers, edges)| layers < edges) {
            for (at, layer) in layers.iter().enumerate() {
                if let Some(end) = self.place_to_cut(layer.span) {
                    self.cut(end, &layers[done..=at]);
                    done = at + 1;
                }
            }
            let mut wires: Vec<_> = graph.joints().filter_map(|(_, wire, _)| wire.span).collect();
            wires.sort_unstable();
            for wire in wires {
                if let Some(end) = self.place_to_cut(Some(wire)) {
                    self.cut(end, &layers[done..]);
                    done = layers.len();
                }
            }
        }
        self.cut(model.source.len() as u32, &layers[done..]);
        self.parts.last_mut().into_iter().for_each(|part| part.added = added);
        self.parts
    }

    fn start(&self) -> u32 {
        self.parts.last().map_or(0, |part| part.span.end)
    }

    /// The end of a span, if a chunk may end there.
    fn place_to_cut(&self, behind: Option<Span>) -> Option<u32> {
        behind.map(|span| span.end).filter(|end| end.saturating_sub(self.start()) >= self.length)
    }

    fn cut(&mut self, end: u32, layers: &'g [&'g Layer]) {
        let span = Span { start: self.start(), end };
        let (edges, edges_left) = self.edges.split_at(self.edges.partition_point(|(span, _)| span.start < end));
        let (removed, removed_left) = self.removed.split_at(self.removed.partition_point(|span| span.start < end));
        (self.edges, self.removed) = (edges_left, removed_left);
        self.parts.push(TextChunk { span, layers, edges, added: &[], removed });
    }
}

/// Edge to write: output of a layer to input of another one, by position.
type PositionEdge<'g> = (&'g Layer, usize, &'g Layer, usize);

/// Edges of a graph that differ from the source.
#[derive(Default)]
struct Edges<'g> {
    /// Edges that replace others, or are inserted at the position of an empty span; sorted.
    placed: Vec<(Span, PositionEdge<'g>)>,
    /// Edges for the end of `<edges>`.
    added: Vec<PositionEdge<'g>>,
}

impl<'g> Edges<'g> {
    fn new(graph: &'g Graph) -> Self {
        let mut edges = Self::default();
        for (from, wire, to) in graph.joints().filter(|(_, wire, _)| wire.touched) {
            let edge = (from, wire.from_port as usize, to, wire.to_port as usize);
            match wire.span {
                Some(span) => edges.placed.push((span, edge)),
                None => edges.added.push(edge),
            }
        }
        if !edges.added.is_empty() {
            edges.place_added(graph);
        }
        edges.placed.sort_by_key(|(span, _)| *span);
        edges
    }

    /// Chooses the positions of new edges: before the first edge from the same layer if that is new, otherwise at the
    /// end.
    fn place_added(&mut self, graph: &Graph) {
        let mut anchors = HashMap::<LayerId, u32>::default();
        for (from, wire, _) in graph.joints() {
            if let Some(span) = wire.span {
                let anchor = anchors.entry(from.id).or_insert(span.start);
                *anchor = span.start.min(*anchor);
            }
        }
        let placed = &mut self.placed;
        self.added.retain(|edge| {
            let anchor = anchors.get(&edge.2.id).filter(|_| edge.2.span.is_none());
            placed.extend(anchor.map(|&at| (Span { start: at, end: at }, *edge)));
            anchor.is_none()
        });
    }
}

type Print<'p, 'a> = &'p dyn Fn(&mut Printer<'a>);

/// Function that prints the port map or back edges of a body.
type PrintBody<'a> = fn(&mut Printer<'a>, &Body);

#[derive(Default)]
struct LayerElements<'l, 'a> {
    data: bool,
    input: bool,
    output: Option<Span>,
    metadata: bool,
    /// Port maps and back edges that must be printed and were not found yet, by element name.
    joints: Vec<(String, &'l Body, PrintBody<'a>)>,
}

impl<'l, 'a> LayerElements<'l, 'a> {
    fn new(layer: &'l Layer) -> Self {
        let mut text = Self::default();
        for body in layer.bodies.iter().filter(|body| body.rejoined) {
            text.joints.push((Body::port_map_name(&body.name), body, Printer::port_map));
            text.joints.push(("back_edges".to_owned(), body, Printer::back_edges));
        }
        text
    }
}

/// Attributes of a tag by name and value; `None` for one that was already compared.
type TagAttributes<'e> = SmallVec<[Option<(&'e str, &'e str)>; 8]>;

struct Splice<'a> {
    refresh_ports: bool,
    constraints: OutputConstraints,
    source: &'a str,
    /// Replacements: a span of the source, and the range of its new text. They are unordered and do not overlap.
    edits: Vec<(Span, Range<usize>)>,
    printer: Printer<'a>,
}

impl<'a> Splice<'a> {
    fn new(model: &'a Model, refresh_ports: bool) -> Self {
        let (source, constraints) = (model.source.as_str(), model.constraints);
        let refresh_ports = refresh_ports || constraints.port_types || constraints.fixed_dims;
        let printer = Printer::new(source, Layout::INLINE, constraints, String::new());
        Self { refresh_ports, constraints, source, edits: Vec::new(), printer }
    }

    fn print(mut self, model: &Model, part: &TextChunk, out: &mut String) {
        if part.span.start == 0 {
            self.version(model);
            if self.constraints.opening {
                self.bring_forward(model.graph.span.unwrap_or_default());
            }
        }
        self.part(&model.graph, part);
        self.edits.sort_by_key(|(span, _)| *span);
        out.reserve(part.span.text(self.source).len() + self.printer.out.len());
        let mut at = part.span.start as usize;
        for (span, new) in self.edits {
            out.push_str(self.source.get(at..span.start as usize).unwrap_or_default());
            out.push_str(&self.printer.out[new]);
            at = at.max(span.end as usize);
        }
        out.push_str(self.source.get(at..part.span.end as usize).unwrap_or_default());
    }

    fn edit(&mut self, span: Span, layout: Layout<'a>, print: impl FnOnce(&mut Printer<'a>)) {
        let start = self.printer.out.len();
        self.printer.begin(layout);
        print(&mut self.printer);
        self.edits.push((span, start..self.printer.out.len()));
    }

    fn insert(&mut self, at: u32, layout: Layout<'a>, print: impl FnOnce(&mut Printer<'a>)) {
        self.edit(Span { start: at, end: at }, layout, print);
    }

    fn delete(&mut self, span: Span) {
        self.edit(self.with_gap(span), Layout::INLINE, |_| {});
    }

    /// Drops comments before the root if older releases would then not find its tag within the first bytes.
    fn bring_forward(&mut self, root: Span) {
        let tag = locate(self.source, root, "net", "");
        if tag.end as usize > OPENING {
            let before = Span { start: 0, end: root.start };
            self.edit(before, Layout::INLINE, |printer| printer.out.push_str(DECLARATION));
        }
    }

    /// Writes the version of the format into the root. An unreadable version is kept.
    fn version(&mut self, model: &Model) {
        let number = model.version.number();
        let mut tokens = Tokens::new(self.source, model.graph.span.unwrap_or_default());
        let Ok(Some(root)) = tokens.child(None) else { return };
        let Some(written) = Tokens::attribute(&root, "version") else { return };
        if integer_prefix(written)
            .is_some_and(|(written, _)| [10, 11].contains(&written) && written != i64::from(number))
        {
            self.edit(tokens.span_of(written), Layout::INLINE, |printer| printer.out.push_str(&number.to_string()));
        }
    }

    fn body(&mut self, graph: &Graph) {
        let layers: Vec<_> = graph.layers().collect();
        let Edges { placed, added } = Edges::new(graph);
        let (span, removed) = (graph.span.unwrap_or_default(), graph.removed());
        self.part(graph, &TextChunk { span, layers: &layers, edges: &placed, added: &added, removed });
    }

    fn part(&mut self, graph: &Graph, part: &TextChunk) {
        part.removed.iter().for_each(|&span| self.delete(span));
        let layers = self.layers(graph, part.layers);
        self.edges(part.edges);
        self.lists(graph, &layers, part.added);
        self.graph_metadata(graph, part.span);
    }

    /// Replaces the `<rt_info>` of a graph if this chunk contains it; if it is missing, adds it at the end.
    fn graph_metadata(&mut self, graph: &Graph, part: Span) {
        let Some(wanted) = &graph.rt_info else { return };
        match (graph.rt_info_span, graph.span) {
            (Some(written), _) => {
                let is_here = (part.start..part.end).contains(&written.start);
                if is_here && written.text(self.source) != &**wanted {
                    self.edit(written, Layout::INLINE, |printer| printer.out.push_str(wanted));
                }
            }
            (None, Some(parent)) if part.end >= parent.end => self.append(parent, |printer| printer.fragment(wanted)),
            (None, _) => {}
        }
    }

    /// Appends new layers and edges after all existing ones.
    fn lists(&mut self, graph: &Graph, layers: &[&Layer], edges: &[PositionEdge<'_>]) {
        let print_layers = |printer: &mut Printer<'a>| {
            for &layer in layers {
                printer.line();
                printer.layer(graph, layer);
            }
        };
        let print_edges = |printer: &mut Printer<'a>| {
            for &(from, from_port, to, to_port) in edges {
                printer.line();
                printer.edge(from, from_port, to, to_port);
            }
        };
        let lists: [(_, _, _, Print<'_, 'a>); 2] = [
            ("layers", graph.layers_span, layers.is_empty(), &print_layers),
            ("edges", graph.edges_span, edges.is_empty(), &print_edges),
        ];
        let mut missing = Vec::new();
        for (name, list, _, print) in lists.into_iter().filter(|(_, _, is_empty, _)| !is_empty) {
            match list {
                Some(list) => self.append(list, print),
                None => missing.push((name, print)),
            }
        }
        if let Some(parent) = graph.span.filter(|_| !missing.is_empty()) {
            self.append(parent, |printer| {
                for (name, print) in missing {
                    printer.open(name);
                    printer.content(name, print);
                }
            });
        }
    }

    /// Applies the changes of these layers. Returns the layers to append after all existing ones.
    fn layers<'g>(&mut self, graph: &Graph, layers: &[&'g Layer]) -> Vec<&'g Layer> {
        let mut added = Vec::new();
        for &layer in layers {
            let Some(span) = layer.span else {
                added.push(layer);
                continue;
            };
            if !added.is_empty() {
                let (gap, layout) = (self.gap_before(span.start), self.layout(span.start));
                self.insert(span.start, layout, |printer| {
                    for layer in added.drain(..) {
                        printer.layer(graph, layer);
                        printer.out.push_str(gap);
                    }
                });
            }
            if layer.edited || self.refresh_ports || (layer.rewired && !self.ports_agree(graph, layer)) {
                let walked = self.layer(graph, layer, span);
                debug_assert!(walked.is_ok(), "the text was read once already: {walked:?}");
            }
            for body in &layer.bodies {
                self.body(&body.graph);
            }
        }
        added
    }

    fn edges(&mut self, edges: &[(Span, PositionEdge<'_>)]) {
        for &(span, (from, from_port, to, to_port)) in edges {
            let gap = if span.start == span.end { self.gap_before(span.start) } else { "" };
            self.edit(span, Layout::INLINE, |printer| {
                printer.edge(from, from_port, to, to_port);
                printer.out.push_str(gap);
            });
        }
    }

    /// Appends the text that `print` prints to the content of `element`, nested.
    fn append(&mut self, element: Span, print: impl FnOnce(&mut Printer<'a>)) {
        let text = element.text(self.source);
        let layout = self.layout(element.start);
        match text.rfind("</") {
            Some(end) => {
                let content_end = text[..end].trim_end().len() as u32;
                self.insert(element.start + content_end, layout, |printer| printer.nested(print));
            }
            None => {
                // The element is one tag that ends in `/>`.
                let tag = text[..text.len() - 2].trim_end();
                let name = tag[1..].split(|c: char| c.is_ascii_whitespace()).next().unwrap_or_default();
                let end = Span { start: element.start + tag.len() as u32, ..element };
                self.edit(end, layout, |printer| printer.content(name, print));
            }
        }
    }

    fn ports_agree(&self, graph: &Graph, layer: &Layer) -> bool {
        !layer.outputs.iter().any(|port| port.stale)
            && layer.inputs.iter().zip(graph.feeds(layer.id)).all(|(port, feed)| {
                let producer = feed.and_then(|(layer, port)| layer.outputs.get(port));
                producer.is_none_or(|output| declares(self.source, port.declared, port.content, output))
            })
    }

    /// Compares the text of a layer with the graph, and applies the differences.
    fn layer(&mut self, graph: &Graph, layer: &Layer, span: Span) -> Result<(), Fatal> {
        let mut tokens = Tokens::new(self.source, span);
        let Some(root) = tokens.child(None)? else { return Ok(()) };
        let (ty, version) = (Some(layer.ty()), Some(layer.version()));
        let head = [("name", Some(&*layer.name)), ("type", ty), ("version", version)];
        self.attributes(&tokens, &root, head.into_iter().chain([("output_names", layer.output_names())]))?;
        let mut text = LayerElements::new(layer);
        // The first element of each kind is used, as in the reader.
        while let Some(child) = tokens.child(Some(&root))? {
            match child.name() {
                "data" if !replace(&mut text.data, true) => {
                    let is_written = Tokens::attributes(&child).next().is_some();
                    if is_written && layer.attributes.is_empty() {
                        self.delete(tokens.skip(&child)?);
                    } else {
                        self.data(&tokens, &child, layer)?;
                        tokens.skip(&child)?;
                    }
                }
                "input" if !replace(&mut text.input, true) => self.inputs(&mut tokens, &child, graph, layer)?,
                "output" if text.output.is_none() => {
                    text.output = Some(child.tag_span);
                    self.outputs(&mut tokens, &child, layer)?;
                }
                "rt_info" if !replace(&mut text.metadata, true) => {
                    self.metadata(tokens.skip(&child)?, layer.rt_info.as_deref());
                }
                name => {
                    let joint = text.joints.iter().position(|(joint, ..)| joint == name);
                    let joint = joint.map(|at| text.joints.swap_remove(at));
                    let whole = tokens.skip(&child)?;
                    if let Some((_, body, print)) = joint {
                        self.edit(self.with_gap(whole), self.layout(whole.start), |printer| print(printer, body));
                    }
                }
            }
        }
        self.missing(graph, layer, (span, root.tag_span), &text);
        Ok(())
    }

    /// The second span is the layer's start tag.
    fn missing(&mut self, graph: &Graph, layer: &Layer, (span, tag): (Span, Span), text: &LayerElements<'_, 'a>) {
        let print_data = |printer: &mut Printer<'a>| {
            printer.line();
            printer.data(layer);
        };
        let print_inputs = |printer: &mut Printer<'a>| {
            printer.open("input");
            printer.content("input", |printer| printer.inputs(graph, layer, 0));
        };
        let print_outputs = |printer: &mut Printer<'a>| {
            printer.open("output");
            printer.content("output", |printer| printer.outputs(layer, 0));
        };
        let print_metadata = |printer: &mut Printer<'a>| layer.rt_info.iter().for_each(|text| printer.fragment(text));
        let print_joints =
            |printer: &mut Printer<'a>| text.joints.iter().for_each(|(_, body, print)| print(printer, body));
        let lacks_data = !text.data && !layer.attributes.is_empty();
        let lacks_inputs = !text.input && !layer.inputs.is_empty();
        if lacks_data && tag != span {
            self.insert(tag.end, self.layout(span.start), |printer| printer.nested(print_data));
        }
        if let Some(output) = text.output.filter(|_| lacks_inputs) {
            let at = output.start - self.gap_before(output.start).len() as u32;
            self.insert(at, self.layout(output.start), print_inputs);
        }
        let parts: [(bool, Print<'_, 'a>); 5] = [
            (!text.joints.is_empty(), &print_joints),
            (lacks_data && tag == span, &print_data),
            (lacks_inputs && text.output.is_none(), &print_inputs),
            (text.output.is_none() && !layer.outputs.is_empty(), &print_outputs),
            (!text.metadata && layer.rt_info.is_some(), &print_metadata),
        ];
        if parts.iter().any(|(lacks, _)| *lacks) {
            self.append(span, |printer| parts.iter().filter(|part| part.0).for_each(|(_, print)| print(printer)));
        }
    }

    /// Replaces the `<rt_info>` of a layer or a port.
    fn metadata(&mut self, written: Span, wanted: Option<&str>) {
        match wanted {
            Some(wanted) if wanted == written.text(self.source) => {}
            Some(wanted) => {
                let layout = self.layout(written.start);
                self.edit(self.with_gap(written), layout, |printer| printer.fragment(wanted));
            }
            None => self.delete(written),
        }
    }

    fn data(&mut self, tokens: &Tokens<'a>, data: &Element<'a>, layer: &Layer) -> Result<(), Fatal> {
        let wanted = layer.attributes.iter().map(|attribute| (attribute.name(), Some(attribute.value())));
        let others = self.attributes(tokens, data, wanted)?.into_iter().flatten();
        let gone = others.filter(|(name, _)| layer.attribute(name).is_none());
        gone.for_each(|(name, value)| self.delete(whole(tokens, name, value)));
        Ok(())
    }

    fn inputs(
        &mut self,
        tokens: &mut Tokens<'a>,
        list: &Element<'a>,
        graph: &Graph,
        layer: &Layer,
    ) -> Result<(), Fatal> {
        let mut feeds = graph.feeds(layer.id).into_iter();
        let mut ports = layer.inputs.iter();
        while let Some(port) = tokens.child(Some(list))? {
            let is_port = port.name() == "port";
            let feed = if is_port { feeds.next() } else { Some(None) };
            let own = if is_port { ports.next() } else { None };
            if let Some(new) = own.filter(|own| own.content == Span::default()) {
                // This port reuses the text of one that was removed.
                self.attributes(tokens, &port, [("id", Some(itoa::Buffer::new().format(new.id)))])?;
            }
            match feed.map(|feed| feed.and_then(|(layer, port)| layer.outputs.get(port))) {
                Some(Some(output)) => {
                    match own.filter(|own| self.stays(tokens, &port, own.declared, own.content, output)) {
                        Some(own) => tokens.pass(&port, own.content.text(self.source))?,
                        None => self.port(tokens, &port, output, None)?,
                    }
                }
                Some(None) => drop(tokens.skip(&port)?),
                None => self.delete(tokens.skip(&port)?),
            }
        }
        let left = feeds.len();
        if left > 0 {
            let start = layer.inputs.len() - left;
            self.append(tokens.span_since(list), |printer| printer.inputs(graph, layer, start));
        }
        Ok(())
    }

    fn outputs(&mut self, tokens: &mut Tokens<'a>, list: &Element<'a>, layer: &Layer) -> Result<(), Fatal> {
        let mut outputs = layer.outputs.iter();
        while let Some(port) = tokens.child(Some(list))? {
            match if port.name() == "port" { outputs.next().map(Some) } else { Some(None) } {
                Some(Some(output)) => {
                    if output.content == Span::default() {
                        self.attributes(tokens, &port, [("id", Some(itoa::Buffer::new().format(output.id)))])?;
                    }
                    self.attributes(tokens, &port, [("names", output.names.as_deref())])?;
                    let content = output.content.text(self.source);
                    let keeps_metadata = output.rt_info.is_none() && !content.contains("<rt_info");
                    if keeps_metadata && self.stays(tokens, &port, output.declared, output.content, output) {
                        tokens.pass(&port, content)?;
                    } else {
                        self.port(tokens, &port, output, Some(output.rt_info.as_deref()))?;
                    }
                }
                Some(None) => drop(tokens.skip(&port)?),
                None => self.delete(tokens.skip(&port)?),
            }
        }
        let left = outputs.len();
        if left > 0 {
            let start = layer.outputs.len() - left;
            self.append(tokens.span_since(list), |printer| printer.outputs(layer, start));
        }
        Ok(())
    }

    /// True if the content of `port` already declares the type and shape of `output`.
    fn stays(
        &self,
        tokens: &Tokens,
        port: &Element,
        declared: Option<ElementType>,
        content: Span,
        output: &OutputPort,
    ) -> bool {
        let text = content.text(self.source);
        !text.is_empty()
            && tokens.ahead(port).strip_prefix(text).is_some_and(|rest| rest.trim_ascii_start().starts_with("</"))
            && self.constraints == OutputConstraints::default()
            && declares(self.source, declared, content, output)
    }

    /// Writes the type and dimensions of `output` into a port, and `metadata` if given.
    fn port(
        &mut self,
        tokens: &mut Tokens<'a>,
        port: &Element<'a>,
        output: &OutputPort,
        mut metadata: Option<Option<&str>>,
    ) -> Result<(), Fatal> {
        if Tokens::attribute(port, "precision").and_then(ElementType::from_port_name) != Some(output.element_type) {
            let name = output.element_type.port_name();
            self.attributes(tokens, port, [("precision", name)])?;
        }
        let mut dims = Vec::new();
        while let Some(child) = tokens.child(Some(port))? {
            if child.name() == "dim" {
                tokens.text(&child)?;
                dims.push((tokens.span_since(&child), tokens.content_of(&child)));
                continue;
            }
            let is_metadata = child.name() == "rt_info";
            let written = tokens.skip(&child)?;
            if let Some(wanted) = metadata.take_if(|_| is_metadata) {
                self.metadata(written, wanted);
            }
        }
        let declared = declared_dims(self.source, tokens.content_of(port));
        let is_tag = tokens.span_since(port) == port.tag_span;
        let shape = self.constraints.dims(&output.shape);
        let agrees = if shape.is_some() { matches_dims(&declared, &output.shape) } else { dims.is_empty() };
        let new = metadata.flatten();
        if let Some(new) = new.filter(|_| agrees || !is_tag) {
            self.append(tokens.span_since(port), |printer| printer.fragment(new));
        }
        if agrees {
            return Ok(());
        }
        if let Some(shape) = shape.filter(|shape| shape.len() == dims.len()) {
            for ((&(_, content), &text), dim) in dims.iter().zip(&declared).zip(shape) {
                let length = dim.value().unwrap_or(-1);
                if text != length {
                    self.edit(content, Layout::INLINE, |printer| printer.out.push_str(&length.to_string()));
                }
            }
            return Ok(());
        }
        let dims: Vec<_> = dims.into_iter().map(|(dim, _)| dim).collect();
        self.replace_dims(tokens.span_since(port), port.tag_span, &dims, &output.shape, new);
        Ok(())
    }

    /// Replaces the dimensions of a port. If the port is a single tag, writes its metadata as well.
    fn replace_dims(&mut self, whole: Span, tag: Span, dims: &[Span], shape: &Shape, metadata: Option<&str>) {
        let layout = self.layout(whole.start);
        let print = |printer: &mut Printer| printer.nested(|printer| printer.dims(shape));
        match dims.split_first() {
            Some((&first, others)) => {
                self.edit(self.with_gap(first), layout, print);
                others.iter().for_each(|&dim| self.delete(dim));
            }
            None if whole == tag => {
                let text = tag.text(self.source);
                let end = text.trim_end_matches("/>").trim_end().len() as u32;
                self.edit(Span { start: whole.start + end, end: whole.end }, layout, |printer| {
                    printer.out.push('>');
                    print(printer);
                    printer.nested(|printer| metadata.iter().for_each(|span| printer.fragment(span)));
                    printer.line();
                    printer.out.push_str("</port>");
                });
            }
            None => self.insert(tag.end, layout, print),
        }
    }

    fn attributes<'e, 'n>(
        &mut self,
        tokens: &Tokens<'a>,
        element: &'e Element<'a>,
        wanted: impl IntoIterator<Item = (&'n str, Option<&'n str>)>,
    ) -> Result<TagAttributes<'e>, Fatal> {
        let written = Tokens::attributes(element).map(|it| it.map(Some));
        let mut written = written.collect::<Result<TagAttributes, _>>()?;
        let name_end = element.tag_span.start + 1 + element.name().len() as u32;
        let end = written.last().copied().flatten().map_or(name_end, |(_, text)| tokens.span_of(text).end + 1);
        let mut next = 0;
        for (name, value) in wanted {
            let is_it = |it: &Option<(&str, &str)>| it.is_some_and(|(key, _)| key == name);
            let Some(value) = value else {
                // A later duplicate must be removed too; otherwise it would take effect.
                let gone = written.iter_mut().filter(|it| is_it(it)).filter_map(Option::take);
                gone.filter(|(_, text)| !text.is_empty()).for_each(|(key, text)| self.delete(whole(tokens, key, text)));
                continue;
            };
            // Fast case: the attributes are in the order of the file.
            let in_order = written.get(next).is_some_and(is_it).then_some(next);
            let at = in_order.or_else(|| written.iter().position(is_it));
            next = at.map_or(next, |at| at + 1);
            match at.and_then(|at| written[at].take()) {
                None => self.insert(end, Layout::INLINE, |printer| printer.attribute(name, value)),
                Some((_, text)) if decode(text) == value => {}
                Some((_, text)) => {
                    self.edit(tokens.span_of(text), Layout::INLINE, |printer| encode(value, &mut printer.out));
                }
            }
        }
        Ok(written)
    }

    fn gap_before(&self, at: u32) -> &'a str {
        let before = self.source.get(..at as usize).unwrap_or_default();
        &before[before.trim_end_matches([' ', '\t', '\r', '\n']).len()..]
    }

    fn with_gap(&self, span: Span) -> Span {
        Span { start: span.start - self.gap_before(span.start).len() as u32, ..span }
    }

    fn layout(&self, at: u32) -> Layout<'a> {
        let gap = self.gap_before(at);
        let line = gap.rfind('\n');
        let newline = match line {
            Some(end) if gap[..end].ends_with('\r') => "\r\n",
            Some(_) => "\n",
            None => "",
        };
        let indent = line.map_or("", |end| &gap[end + 1..]);
        // In a file indented with blanks, a layer is indented by two levels.
        let unit = if indent.contains('\t') || newline.is_empty() { "\t" } else { &indent[..indent.len().min(4) / 2] };
        Layout { newline, indent, unit: if newline.is_empty() { "" } else { unit } }
    }
}

fn whole(tokens: &Tokens<'_>, name: &str, value: &str) -> Span {
    Span { end: tokens.span_of(value).end + 1, ..tokens.span_of(name) }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::convert::Conversion;

    fn written(model: &Model, refresh_ports: bool, length: u32) -> String {
        let mut text = String::new();
        let add = |piece: &str| {
            text.push_str(piece);
            Ok::<_, ()>(())
        };
        assert_eq!(in_parts(model, refresh_ports, length, true, add), Ok(()));
        text
    }

    #[test]
    fn parts_make_the_whole() {
        let models = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/models");
        let files = std::fs::read_dir(models).into_iter().flatten().flatten().map(|entry| entry.path());
        let mut converted = 0;
        for mut model in files.filter_map(|path| Model::open(path).ok()).filter(|model| model.source().len() < 1 << 19)
        {
            let changed = Conversion::default().run(&mut model);
            converted += usize::from(changed.is_ok_and(|done| !done.changes.is_empty()));
            for refresh_ports in [false, true] {
                let whole = written(&model, refresh_ports, u32::MAX);
                for length in [1, 100, 10_000] {
                    assert!(written(&model, refresh_ports, length) == whole, "{length} {}", model.name());
                }
            }
        }
        assert!(converted > 10, "{converted} models were changed");
    }
}
