//! The source text with only what changed written anew.

use std::collections::HashMap;

use petgraph::stable_graph::NodeIndex;
use petgraph::visit::{EdgeRef, IntoEdgeReferences};
use typelift_promote::ElementType;

use super::canonical::Printer;
use super::read::{declared_dims, declares, matches_dims};
use super::tokens::{Element, Tokens, decode, encode};
use crate::diagnostic::{Diagnostic, Span};
use crate::graph::{Graph, Layer, LayerId, Model, OutputPort};

/// Writes the model into its source; `refresh_ports` brings every port up to date, not only those of changed layers.
pub(super) fn model(model: &Model, refresh_ports: bool) -> String {
    let mut splice = Splice { source: &model.source, refresh_ports, edits: Vec::new() };
    splice.graph(&model.graph);
    splice.apply()
}

struct Splice<'a> {
    source: &'a str,
    refresh_ports: bool,
    /// What to write in place of which bytes. None overlap.
    edits: Vec<(Span, String)>,
}

/// How the elements of a list are laid out: what stands before each, and the indentation inside.
struct Layout<'a> {
    /// The white space before an element.
    gap: &'a str,
    newline: &'a str,
    indent: &'a str,
    unit: &'a str,
}

impl<'a> Splice<'a> {
    fn apply(mut self) -> String {
        self.edits.sort_by_key(|edit| edit.0);
        let grown = self.edits.iter().map(|edit| edit.1.len()).sum::<usize>();
        let mut out = String::with_capacity(self.source.len() + grown);
        let mut at = 0;
        for (span, text) in &self.edits {
            out.push_str(self.source.get(at..span.start as usize).unwrap_or_default());
            out.push_str(text);
            at = at.max(span.end as usize);
        }
        out.push_str(self.source.get(at..).unwrap_or_default());
        out
    }

    fn edit(&mut self, span: Span, text: impl Into<String>) {
        self.edits.push((span, text.into()));
    }

    fn insert(&mut self, at: u32, text: impl Into<String>) {
        self.edit(Span { start: at, end: at }, text);
    }

    fn graph(&mut self, graph: &Graph) {
        for &span in graph.removed() {
            let gap = self.gap_before(span.start).len() as u32;
            self.edit(Span { start: span.start - gap, end: span.end }, "");
        }
        let mut added = Vec::new();
        for node in graph.written_order() {
            let Some(layer) = graph.weight(node) else { continue };
            let Some(span) = layer.span else {
                added.push((node, layer));
                continue;
            };
            if !added.is_empty() {
                let layout = self.layout(span.start);
                let texts =
                    added.drain(..).map(|(node, layer)| self.new_layer(&layout, graph, node, layer) + layout.gap);
                let text = texts.collect::<String>();
                self.insert(span.start, text);
            }
            if layer.edited || self.refresh_ports || (layer.rewired && !self.ports_agree(graph, node, layer)) {
                // The text was read once already, so it is well-formed.
                let _ = self.layer(graph, node, layer, span);
            }
            for body in &layer.bodies {
                self.graph(&body.graph);
            }
        }
        if !added.is_empty() {
            let unused = added.iter().map(|&(node, layer)| (node, layer)).collect::<Vec<_>>();
            self.append(graph.layers_span, |splice, layout| {
                unused.iter().map(|&(node, layer)| splice.new_layer(layout, graph, node, layer)).collect()
            });
        }
        self.edges(graph);
    }

    fn edges(&mut self, graph: &Graph) {
        let mut added = Vec::new();
        for edge in graph.petgraph().edge_references() {
            let wire = edge.weight();
            let (Some(from), Some(to)) = (graph.weight(edge.source()), graph.weight(edge.target())) else { continue };
            if !wire.touched {
                continue;
            }
            let mut printer = Printer::new(self.source, "", "", String::new());
            printer.edge(from, wire.from_port as usize, to, wire.to_port as usize);
            match wire.span {
                Some(span) => self.edit(span, printer.out),
                None => added.push((to.id, printer.out)),
            }
        }
        if added.is_empty() {
            return;
        }
        // An edge to a new layer goes before the first edge from it, others to the end.
        let mut anchors = HashMap::<LayerId, u32>::new();
        for edge in graph.petgraph().edge_references() {
            if let (Some(from), Some(span)) = (graph.weight(edge.source()), edge.weight().span) {
                let anchor = anchors.entry(from.id).or_insert(span.start);
                *anchor = span.start.min(*anchor);
            }
        }
        let mut last = Vec::new();
        for (to, text) in added {
            match anchors.get(&to).filter(|_| graph.layer(to).is_some_and(|layer| layer.span.is_none())) {
                Some(&anchor) => {
                    let gap = self.gap_before(anchor);
                    self.insert(anchor, text + gap);
                }
                None => last.push(text),
            }
        }
        if !last.is_empty() {
            self.append(graph.edges_span, |_, _| last);
        }
    }

    /// Adds elements at the end of the list that `container` holds.
    fn append(&mut self, container: Option<Span>, texts: impl FnOnce(&Self, &Layout) -> Vec<String>) {
        let Some(container) = container else { return };
        let text = container.text(self.source);
        let outer = self.layout(container.start);
        let inner_indent = outer.indent.to_owned() + outer.unit;
        let inner_gap = outer.newline.to_owned() + &inner_indent;
        let layout = Layout { gap: &inner_gap, newline: outer.newline, indent: &inner_indent, unit: outer.unit };
        let joined = texts(self, &layout).into_iter().map(|text| inner_gap.clone() + &text).collect::<String>();
        match text.rfind("</") {
            Some(end) => {
                let content_end = text[..end].trim_end().len();
                self.insert(container.start + content_end as u32, joined);
            }
            None => {
                let name: String = text.chars().skip(1).take_while(char::is_ascii_alphabetic).collect();
                let (newline, indent) = (outer.newline, outer.indent);
                self.edit(container, format!("<{name}>{joined}{newline}{indent}</{name}>"));
            }
        }
    }

    fn new_layer(&self, layout: &Layout, graph: &Graph, node: NodeIndex, layer: &Layer) -> String {
        let mut printer = Printer::new(self.source, layout.newline, layout.unit, layout.indent.to_owned());
        printer.layer(graph, node, layer);
        printer.out
    }

    fn ports_agree(&self, graph: &Graph, node: NodeIndex, layer: &Layer) -> bool {
        !layer.outputs.iter().any(|port| port.stale)
            && layer.inputs.iter().zip(graph.feeds(node)).all(|(port, feed)| {
                let producer = feed.and_then(|(node, port)| graph.weight(node)?.outputs.get(port));
                producer.is_none_or(|output| declares(self.source, port.declared, port.content, output))
            })
    }

    /// Brings the text of one layer up to date: walks through it beside the graph and edits where they differ.
    fn layer(&mut self, graph: &Graph, node: NodeIndex, layer: &Layer, span: Span) -> Result<(), Diagnostic> {
        let mut tokens = Tokens::new(self.source, span);
        let Some(root) = tokens.child(None)? else { return Ok(()) };
        self.attribute(&tokens, &root, "name", Some(&layer.name))?;
        self.attribute(&tokens, &root, "type", Some(&layer.ty))?;
        self.attribute(&tokens, &root, "version", Some(&layer.version))?;
        self.attribute(&tokens, &root, "output_names", layer.output_names.as_deref())?;
        let mut has_data = layer.attributes.is_empty();
        while let Some(child) = tokens.child(Some(&root))? {
            match child.name() {
                "data" => {
                    has_data = true;
                    for attribute in &layer.attributes {
                        self.attribute(&tokens, &child, &attribute.name, Some(&attribute.value))?;
                    }
                    tokens.skip(&child)?;
                }
                "input" => {
                    let mut feeds = graph.feeds(node).into_iter();
                    while let Some(port) = tokens.child(Some(&child))? {
                        let feed = if port.name() == "port" { feeds.next().flatten() } else { None };
                        match feed.and_then(|(node, port)| graph.weight(node)?.outputs.get(port)) {
                            Some(output) => self.port(&mut tokens, &port, output)?,
                            None => drop(tokens.skip(&port)?),
                        }
                    }
                }
                "output" => {
                    let mut outputs = layer.outputs.iter();
                    while let Some(port) = tokens.child(Some(&child))? {
                        match outputs.next() {
                            Some(output) if port.name() == "port" => {
                                self.attribute(&tokens, &port, "names", output.names.as_deref())?;
                                self.port(&mut tokens, &port, output)?;
                            }
                            _ => drop(tokens.skip(&port)?),
                        }
                    }
                }
                _ => drop(tokens.skip(&child)?),
            }
        }
        if !has_data {
            let outer = self.layout(span.start);
            let mut printer = Printer::new(self.source, "", "", String::new());
            printer.data(layer);
            let text = format!("{}{}{}{}", outer.newline, outer.indent, outer.unit, printer.out);
            self.insert(root.tag_span.end, text);
        }
        Ok(())
    }

    /// Lets a port say the type and the dims of `output`.
    fn port(&mut self, tokens: &mut Tokens<'a>, port: &Element<'a>, output: &OutputPort) -> Result<(), Diagnostic> {
        let written = Tokens::attributes(port).flatten().find(|(name, _)| *name == "precision").map(|(_, value)| value);
        if written.and_then(ElementType::from_port_name) != Some(output.element_type) {
            let name = output.element_type.port_name();
            self.attribute(tokens, port, "precision", name)?;
        }
        let mut dims = Vec::new();
        while let Some(child) = tokens.child(Some(port))? {
            let is_dim = child.name() == "dim";
            tokens.skip(&child)?;
            if is_dim {
                dims.push(tokens.span_since(&child));
            }
        }
        let content = tokens.content_of(port);
        if matches_dims(&declared_dims(self.source, content), &output.shape) {
            return Ok(());
        }
        let whole = tokens.span_since(port);
        let layout = self.layout(whole.start);
        let mut printer = Printer::new(self.source, layout.newline, layout.unit, layout.indent.to_owned());
        printer.nested(|printer| printer.dims(&output.shape));
        match (dims.first(), dims.last()) {
            (Some(first), Some(last)) => {
                let start = first.start - self.gap_before(first.start).len() as u32;
                self.edit(Span { start, end: last.end }, printer.out);
            }
            _ if whole == port.tag_span => {
                let close = format!(">{}{}{}</port>", printer.out, layout.newline, layout.indent);
                let tag = port.tag_span.text(self.source);
                let end = tag.trim_end_matches("/>").trim_end().len() as u32;
                self.edit(Span { start: whole.start + end, end: whole.end }, close);
            }
            _ => self.insert(port.tag_span.end, printer.out),
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
                    let mut text = String::new();
                    encode(value, &mut text);
                    self.edit(span, text);
                }
                Some(_) => {}
                None if written.is_empty() => {}
                None => {
                    let start = tokens.span_of(key).start;
                    let gap = self.gap_before(start).len() as u32;
                    self.edit(Span { start: start - gap, end }, "");
                }
            }
            return Ok(());
        }
        if let Some(value) = value {
            let mut printer = Printer::new(self.source, "", "", String::new());
            printer.attribute(name, value);
            self.insert(end, printer.out);
        }
        Ok(())
    }

    /// The white space that ends just before `at`.
    fn gap_before(&self, at: u32) -> &'a str {
        let before = self.source.get(..at as usize).unwrap_or_default();
        &before[before.trim_end_matches([' ', '\t', '\r', '\n']).len()..]
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
        // In a file that indents by blanks, a layer stands two steps in.
        let unit = if indent.contains('\t') || newline.is_empty() { "\t" } else { &indent[..indent.len().min(4) / 2] };
        Layout { gap, newline, indent, unit: if newline.is_empty() { "" } else { unit } }
    }
}
