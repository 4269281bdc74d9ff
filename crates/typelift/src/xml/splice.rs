//! The source text with only what changed written anew.

use std::convert::Infallible;
use std::mem::replace;
use std::ops::Range;

use rustc_hash::FxHashMap as HashMap;
use typelift_promote::ElementType;

use super::canonical::{Layout, Printer};
use super::locate::{declared_dims, declares, locate, matches_dims};
use super::tokens::{Element, Tokens, decode, encode};
use super::{DECLARATION, OPENING};
use crate::diagnostic::Diagnostic;
use crate::graph::{Body, Demands, Graph, Layer, LayerId, Model, OutputPort};
use crate::number::integer_prefix;
use crate::span::Span;

/// Hands the source with the model written into it to `sink`; `refresh_ports` brings every port up to date, not only
/// those of changed layers.
pub(super) fn model<E>(
    model: &Model,
    refresh_ports: bool,
    mut sink: impl FnMut(&str) -> Result<(), E>,
) -> Result<(), E> {
    let graph = &model.graph;
    let mut removed = graph.removed().to_vec();
    // A few sorted runs, one behind the other, which a stable sort merges.
    removed.sort_by(|a, b| b.cmp(a));
    let demands = model.demands;
    let refresh_ports = refresh_ports || demands.port_types || demands.fixed_dims;
    let (source, edits, new) = (model.source.as_str(), Vec::new(), String::new());
    let mut splice = Splice { refresh_ports, demands, source, removed, edits, new, at: 0 };
    splice.version(model);
    if demands.opening {
        splice.bring_forward(graph.span.unwrap_or_default());
    }
    // Edges are edited after layers, wherever they are.
    let edges_first = graph.layers_span.zip(graph.edges_span).is_some_and(|(layers, edges)| edges < layers);
    splice.graph(graph, |splice, span| if edges_first { Ok(()) } else { splice.flush(Some(span), &mut sink) })?;
    splice.flush(None, &mut sink)?;
    sink(model.source.get(splice.at..).unwrap_or_default())
}

/// Prints something at the indentation that the printer has come to.
type Print<'p, 'a> = &'p dyn Fn(&mut Printer<'a>);

/// Prints something of a body there.
type PrintBody<'a> = fn(&mut Printer<'a>, &Body);

/// Which elements the text of a layer has, as far as it was walked through.
#[derive(Default)]
struct LayerText<'l, 'a> {
    data: bool,
    input: bool,
    /// Where `<output>` is.
    output: Option<Span>,
    metadata: bool,
    /// What is to be printed afresh and was not met yet, by the element that has it.
    joints: Vec<(String, &'l Body, PrintBody<'a>)>,
}

impl<'l, 'a> LayerText<'l, 'a> {
    fn new(layer: &'l Layer) -> Self {
        let mut text = Self::default();
        for body in layer.bodies.iter().filter(|body| body.rejoined) {
            text.joints.push((Body::port_map_name(&body.name), body, Printer::port_map));
            text.joints.push(("back_edges".to_owned(), body, Printer::back_edges));
        }
        text
    }

    fn take_joint(&mut self, name: &str) -> Option<(String, &'l Body, PrintBody<'a>)> {
        let at = self.joints.iter().position(|(joint, ..)| joint == name)?;
        Some(self.joints.swap_remove(at))
    }
}

struct Splice<'a> {
    refresh_ports: bool,
    demands: Demands,
    source: &'a str,
    /// What was removed and is still ahead, the next last.
    removed: Vec<Span>,
    /// What to write in place of which bytes, as a range of `new`. In no order; none overlap.
    edits: Vec<(Span, Range<usize>)>,
    new: String,
    /// How far the source was handed out.
    at: usize,
}

impl<'a> Splice<'a> {
    /// Writes what `print` prints in place of `span`.
    fn edit(&mut self, span: Span, layout: Layout<'a>, print: impl FnOnce(&mut Printer<'a>)) {
        let start = self.new.len();
        let mut printer = Printer::new(self.source, layout, self.demands, std::mem::take(&mut self.new));
        print(&mut printer);
        self.new = printer.out;
        self.edits.push((span, start..self.new.len()));
    }

    /// Writes what `print` prints before the byte `at`.
    fn insert(&mut self, at: u32, layout: Layout<'a>, print: impl FnOnce(&mut Printer<'a>)) {
        self.edit(Span { start: at, end: at }, layout, print);
    }

    fn delete(&mut self, span: Span) {
        self.edit(self.with_gap(span), Layout::INLINE, |_| {});
    }

    /// Hands out all edits, and the source between them. No later one may come before the end of `done`, or at all.
    fn flush<E>(&mut self, done: Option<Span>, sink: &mut impl FnMut(&str) -> Result<(), E>) -> Result<(), E> {
        while let Some(span) = self.removed.pop_if(|span| done.is_none_or(|done| span.start < done.end)) {
            self.delete(span);
        }
        self.edits.sort_by_key(|(span, _)| *span);
        for (span, new) in self.edits.drain(..) {
            sink(self.source.get(self.at..span.start as usize).unwrap_or_default())?;
            sink(&self.new[new])?;
            self.at = self.at.max(span.end as usize);
        }
        self.new.clear();
        Ok(())
    }

    /// Leaves out the comments before the root where they leave no room for its tag.
    fn bring_forward(&mut self, root: Span) {
        let tag = locate(self.source, root, "net", "");
        if tag.end as usize > OPENING {
            let before = Span { start: 0, end: root.start };
            self.edit(before, Layout::INLINE, |printer| printer.out.push_str(DECLARATION));
        }
    }

    /// Lets the root say the version of the format.
    fn version(&mut self, model: &Model) {
        let number = model.version.number();
        let mut tokens = Tokens::new(self.source, model.graph.span.unwrap_or_default());
        let Ok(Some(root)) = tokens.child(None) else { return };
        let written = Tokens::attributes(&root).flatten().find(|(name, _)| *name == "version");
        let Some((_, written)) = written else { return };
        if integer_prefix(written).is_some_and(|(written, _)| written != i64::from(number)) {
            self.edit(tokens.span_of(written), Layout::INLINE, |printer| printer.out.push_str(&number.to_string()));
        }
    }

    fn body(&mut self, graph: &Graph) {
        for &span in graph.removed() {
            self.delete(span);
        }
        let Ok(()) = self.graph(graph, |_, _| Ok::<_, Infallible>(()));
    }

    /// Edits a graph; `done` hears of each of its layers that is over, in the order of the source.
    fn graph<E>(&mut self, graph: &Graph, done: impl FnMut(&mut Self, Span) -> Result<(), E>) -> Result<(), E> {
        let layers = self.layers(graph, done)?;
        let edges = self.edges(graph);
        let print_layers = |printer: &mut Printer<'a>| {
            for &layer in &layers {
                printer.line();
                printer.layer(graph, layer);
            }
        };
        let print_edges = |printer: &mut Printer<'a>| {
            for &(from, from_port, to, to_port) in &edges {
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
        Ok(())
    }

    /// Edits the layers of `graph`, and gives those that come after all that are there.
    fn layers<'g, E>(
        &mut self,
        graph: &'g Graph,
        mut done: impl FnMut(&mut Self, Span) -> Result<(), E>,
    ) -> Result<Vec<&'g Layer>, E> {
        let mut added = Vec::new();
        for layer in graph.layers() {
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
            done(self, span)?;
        }
        Ok(added)
    }

    /// Edits the edges of `graph`, and gives those that come after all that are there: producer, port, consumer, port.
    fn edges<'g>(&mut self, graph: &'g Graph) -> Vec<(&'g Layer, usize, &'g Layer, usize)> {
        let mut added = Vec::new();
        for (from, wire, to) in graph.joints().filter(|(_, wire, _)| wire.touched) {
            let (from_port, to_port) = (wire.from_port as usize, wire.to_port as usize);
            match wire.span {
                Some(span) => self.edit(span, Layout::INLINE, |printer| printer.edge(from, from_port, to, to_port)),
                None => added.push((from, from_port, to, to_port)),
            }
        }
        if added.is_empty() {
            return added;
        }
        // An edge to a new layer goes before the first edge from it, others to the end.
        let mut anchors = HashMap::<LayerId, u32>::default();
        for (from, wire, _) in graph.joints() {
            if let Some(span) = wire.span {
                let anchor = anchors.entry(from.id).or_insert(span.start);
                *anchor = span.start.min(*anchor);
            }
        }
        added.retain(|&(from, from_port, to, to_port)| {
            let Some(&anchor) = anchors.get(&to.id).filter(|_| to.span.is_none()) else { return true };
            let gap = self.gap_before(anchor);
            self.insert(anchor, Layout::INLINE, |printer| {
                printer.edge(from, from_port, to, to_port);
                printer.out.push_str(gap);
            });
            false
        });
        added
    }

    /// Adds what `print` prints at the end of the content of `element`, nested.
    fn append(&mut self, element: Span, print: impl FnOnce(&mut Printer<'a>)) {
        let text = element.text(self.source);
        let layout = self.layout(element.start);
        match text.rfind("</") {
            Some(end) => {
                let content_end = text[..end].trim_end().len() as u32;
                self.insert(element.start + content_end, layout, |printer| printer.nested(print));
            }
            None => {
                // All of it is one tag, which ends in `/>`.
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

    /// Brings the text of one layer up to date: walks through it beside the graph and edits where they differ.
    fn layer(&mut self, graph: &Graph, layer: &Layer, span: Span) -> Result<(), Diagnostic> {
        let mut tokens = Tokens::new(self.source, span);
        let Some(root) = tokens.child(None)? else { return Ok(()) };
        self.attribute(&tokens, &root, "name", Some(&layer.name))?;
        self.attribute(&tokens, &root, "type", Some(layer.ty()))?;
        self.attribute(&tokens, &root, "version", Some(layer.version()))?;
        self.attribute(&tokens, &root, "output_names", layer.output_names())?;
        let mut text = LayerText::new(layer);
        // As the reader, take the first of each.
        while let Some(child) = tokens.child(Some(&root))? {
            match child.name() {
                "data" if !replace(&mut text.data, true) => {
                    let is_written = Tokens::attributes(&child).next().is_some();
                    if is_written && layer.attributes.is_empty() {
                        let whole = tokens.skip(&child)?;
                        self.delete(whole);
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
                    let written = tokens.skip(&child)?;
                    self.metadata(written, layer.rt_info);
                }
                name => {
                    let joint = text.take_joint(name);
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

    /// Adds what the text of a layer lacks, of which its start tag is the one in `spans`.
    fn missing(&mut self, graph: &Graph, layer: &Layer, (span, tag): (Span, Span), text: &LayerText<'_, 'a>) {
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
        let print_metadata = |printer: &mut Printer<'a>| layer.rt_info.iter().for_each(|span| printer.fragment(span));
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

    /// Lets the `<rt_info>` of a layer or a port be another one of the file.
    fn metadata(&mut self, written: Span, wanted: Option<Span>) {
        match wanted {
            Some(wanted) if wanted == written => {}
            Some(wanted) => {
                let layout = self.layout(written.start);
                self.edit(self.with_gap(written), layout, |printer| printer.fragment(&wanted));
            }
            None => self.delete(written),
        }
    }

    /// Lets the attributes of `<data>` be those of the layer.
    fn data(&mut self, tokens: &Tokens<'a>, data: &Element<'a>, layer: &Layer) -> Result<(), Diagnostic> {
        for attribute in layer.attributes.iter() {
            self.attribute(tokens, data, &attribute.name, Some(&attribute.value))?;
        }
        for written in Tokens::attributes(data) {
            let (name, value) = written?;
            if layer.attribute(name).is_none() {
                self.delete(Span { end: tokens.span_of(value).end + 1, ..tokens.span_of(name) });
            }
        }
        Ok(())
    }

    /// Lets the ports in `<input>` be those of the layer.
    fn inputs(
        &mut self,
        tokens: &mut Tokens<'a>,
        list: &Element<'a>,
        graph: &Graph,
        layer: &Layer,
    ) -> Result<(), Diagnostic> {
        let mut feeds = graph.feeds(layer.id).into_iter();
        let mut ports = layer.inputs.iter();
        while let Some(port) = tokens.child(Some(list))? {
            let is_port = port.name() == "port";
            let feed = if is_port { feeds.next() } else { Some(None) };
            let own = if is_port { ports.next() } else { None };
            if let Some(new) = own.filter(|own| own.content == Span::default()) {
                // It came in the place of one that went.
                self.attribute(tokens, &port, "id", Some(itoa::Buffer::new().format(new.id)))?;
            }
            match feed.map(|feed| feed.and_then(|(layer, port)| layer.outputs.get(port))) {
                Some(Some(output)) => {
                    match own.filter(|own| self.stays(tokens, &port, own.declared, own.content, output)) {
                        Some(own) => tokens.pass(&port, own.content.text(self.source))?,
                        None => self.port(tokens, &port, output, None)?,
                    }
                }
                Some(None) => drop(tokens.skip(&port)?),
                None => {
                    let gone = tokens.skip(&port)?;
                    self.delete(gone);
                }
            }
        }
        let left = feeds.len();
        if left > 0 {
            let start = layer.inputs.len() - left;
            self.append(tokens.span_since(list), |printer| printer.inputs(graph, layer, start));
        }
        Ok(())
    }

    /// Lets the ports in `<output>` be those of the layer.
    fn outputs(&mut self, tokens: &mut Tokens<'a>, list: &Element<'a>, layer: &Layer) -> Result<(), Diagnostic> {
        let mut outputs = layer.outputs.iter();
        while let Some(port) = tokens.child(Some(list))? {
            match if port.name() == "port" { outputs.next().map(Some) } else { Some(None) } {
                Some(Some(output)) => {
                    if output.content == Span::default() {
                        self.attribute(tokens, &port, "id", Some(itoa::Buffer::new().format(output.id)))?;
                    }
                    self.attribute(tokens, &port, "names", output.names.as_deref())?;
                    let content = output.content.text(self.source);
                    let keeps_metadata = output.rt_info.is_none() && !content.contains("<rt_info");
                    if keeps_metadata && self.stays(tokens, &port, output.declared, output.content, output) {
                        tokens.pass(&port, content)?;
                    } else {
                        self.port(tokens, &port, output, Some(output.rt_info))?;
                    }
                }
                Some(None) => drop(tokens.skip(&port)?),
                None => {
                    let gone = tokens.skip(&port)?;
                    self.delete(gone);
                }
            }
        }
        let left = outputs.len();
        if left > 0 {
            let start = layer.outputs.len() - left;
            self.append(tokens.span_since(list), |printer| printer.outputs(layer, start));
        }
        Ok(())
    }

    /// Whether the content of `port` is written as it was read, and with its type says what `output` is.
    fn stays(
        &self,
        tokens: &Tokens,
        port: &Element,
        declared: Option<ElementType>,
        content: Span,
        output: &OutputPort,
    ) -> bool {
        let text = content.text(self.source);
        let ends = |rest: &str| rest.trim_ascii_start().starts_with("</");
        !text.is_empty()
            && tokens.ahead(port).strip_prefix(text).is_some_and(ends)
            && self.demands == Demands::default()
            && declares(self.source, declared, content, output)
    }

    /// Lets a port say the type and the dims of `output`, and its metadata be `metadata`, if any is given.
    fn port(
        &mut self,
        tokens: &mut Tokens<'a>,
        port: &Element<'a>,
        output: &OutputPort,
        mut metadata: Option<Option<Span>>,
    ) -> Result<(), Diagnostic> {
        let written = Tokens::attributes(port).flatten().find(|(name, _)| *name == "precision").map(|(_, value)| value);
        if written.and_then(ElementType::from_port_name) != Some(output.element_type) {
            let name = output.element_type.port_name();
            self.attribute(tokens, port, "precision", name)?;
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
        let shape = self.demands.dims(&output.shape);
        let agrees = if shape.is_some() { matches_dims(&declared, &output.shape) } else { dims.is_empty() };
        let new = metadata.flatten();
        if let Some(new) = new.filter(|_| agrees || !is_tag) {
            self.append(tokens.span_since(port), |printer| printer.fragment(&new));
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
        let whole = tokens.span_since(port);
        let layout = self.layout(whole.start);
        let print = |printer: &mut Printer| printer.nested(|printer| printer.dims(&output.shape));
        match dims.split_first() {
            Some((&(first, _), others)) => {
                self.edit(self.with_gap(first), layout, print);
                for &(dim, _) in others {
                    self.delete(dim);
                }
            }
            None if is_tag => {
                let tag = port.tag_span.text(self.source);
                let end = tag.trim_end_matches("/>").trim_end().len() as u32;
                self.edit(Span { start: whole.start + end, end: whole.end }, layout, |printer| {
                    printer.out.push('>');
                    print(printer);
                    printer.nested(|printer| new.iter().for_each(|span| printer.fragment(span)));
                    printer.line();
                    printer.out.push_str("</port>");
                });
            }
            None => self.insert(port.tag_span.end, layout, print),
        }
        Ok(())
    }

    /// Lets an attribute say `value`, or takes it out.
    fn attribute(
        &mut self,
        tokens: &Tokens<'a>,
        element: &Element<'a>,
        name: &str,
        value: Option<&str>,
    ) -> Result<(), Diagnostic> {
        let mut end = element.tag_span.start + 1 + element.name().len() as u32;
        for attribute in Tokens::attributes(element) {
            let (key, written) = attribute?;
            let span = tokens.span_of(written);
            // One past the closing quote.
            end = span.end + 1;
            if key != name {
                continue;
            }
            match value {
                Some(value) if decode(written) != value => {
                    self.edit(span, Layout::INLINE, |printer| encode(value, &mut printer.out));
                }
                Some(_) => {}
                None if written.is_empty() => {}
                None => {
                    self.delete(Span { end, ..tokens.span_of(key) });
                    // One that appears twice must not count then.
                    continue;
                }
            }
            return Ok(());
        }
        if let Some(value) = value {
            self.insert(end, Layout::INLINE, |printer| printer.attribute(name, value));
        }
        Ok(())
    }

    /// The white space that ends just before `at`.
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
        // In a file that indents by blanks, a layer is indented by two steps.
        let unit = if indent.contains('\t') || newline.is_empty() { "\t" } else { &indent[..indent.len().min(4) / 2] };
        Layout { newline, indent, unit: if newline.is_empty() { "" } else { unit } }
    }
}
