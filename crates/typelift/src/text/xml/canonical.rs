//! Prints the whole model anew, in the style of OpenVINO's serializer.

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};
use typelift_promote::ElementType;

use super::DECLARATION;
use super::locate::{declared_dims, rt_info_in};
use super::tokens::{decode, encode, is_name};
use crate::model::graph::{Body, Direction, Graph, InputPort, Layer, Model, OutputConstraints};
use crate::model::shape::Shape;

pub(super) fn model(model: &Model) -> String {
    let out = String::with_capacity(model.source.len());
    let mut printer = Printer::new(&model.source, Layout::CANONICAL, model.constraints, out);
    printer.out.push_str(DECLARATION);
    printer.out.push_str("<net");
    if let Some(name) = &model.name {
        printer.attribute("name", name);
    }
    printer.attribute("version", &model.version.number().to_string());
    printer.out.push('>');
    printer.nested(|printer| {
        printer.graph(&model.graph);
        for extra in &model.extras {
            printer.fragment(extra.text(printer.source));
        }
    });
    printer.out.push_str("\n</net>\n");
    printer.out
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Layout<'a> {
    /// The text before an element: a line end, or nothing.
    pub(super) newline: &'a str,
    /// The indentation of the outermost element.
    pub(super) indent: &'a str,
    /// The additional indentation of each nesting level.
    pub(super) unit: &'a str,
}

impl Layout<'_> {
    const CANONICAL: Self = Self { newline: "\n", indent: "", unit: "\t" };
    /// The whole element on one line.
    pub(super) const INLINE: Self = Self { newline: "", indent: "", unit: "" };
}

/// The deepest indentation of metadata. Without a limit, the text would grow with the square of the depth.
const DEEPEST_INDENT: usize = 64;

/// Printer of XML, with indentation by nesting. Each element starts on its own line.
pub(super) struct Printer<'a> {
    source: &'a str,
    pub(super) out: String,
    /// The additional indentation of each nesting level.
    unit: &'a str,
    /// The text before an element here: a line end and the indentation.
    line_start: String,
    constraints: OutputConstraints,
}

impl<'a> Printer<'a> {
    pub(super) fn new(source: &'a str, layout: Layout<'a>, constraints: OutputConstraints, out: String) -> Self {
        let mut printer = Self { source, out, unit: "", line_start: String::new(), constraints };
        printer.begin(layout);
        printer
    }

    pub(super) fn begin(&mut self, layout: Layout<'a>) {
        self.unit = layout.unit;
        self.line_start.clear();
        self.line_start.push_str(layout.newline);
        self.line_start.push_str(layout.indent);
    }

    pub(super) fn line(&mut self) {
        self.out.push_str(&self.line_start);
    }

    fn indent(&mut self) {
        self.line_start.push_str(self.unit);
    }

    fn outdent(&mut self) {
        self.line_start.truncate(self.line_start.len() - self.unit.len());
    }

    pub(super) fn nested(&mut self, print: impl FnOnce(&mut Self)) {
        self.indent();
        print(self);
        self.outdent();
    }

    pub(super) fn attribute(&mut self, name: &str, value: &str) {
        self.out.push(' ');
        self.out.push_str(name);
        self.out.push_str("=\"");
        encode(value, &mut self.out);
        self.out.push('"');
    }

    fn number(&mut self, name: &str, value: impl itoa::Integer) {
        self.out.push(' ');
        self.out.push_str(name);
        self.out.push_str("=\"");
        self.out.push_str(itoa::Buffer::new().format(value));
        self.out.push('"');
    }

    /// Prints the content of an element whose `<tag …` is printed, or ` />` if `content` prints nothing.
    pub(super) fn content(&mut self, tag: &str, content: impl FnOnce(&mut Self)) {
        let at = self.out.len();
        self.out.push('>');
        self.nested(content);
        if self.out.len() == at + 1 {
            self.out.truncate(at);
            self.out.push_str(" />");
        } else {
            self.line();
            self.close(tag);
        }
    }

    fn close(&mut self, tag: &str) {
        self.out.push_str("</");
        self.out.push_str(tag);
        self.out.push('>');
    }

    pub(super) fn open(&mut self, tag: &str) {
        self.line();
        self.out.push('<');
        self.out.push_str(tag);
    }

    /// Prints an element without attributes, unless `content` prints nothing.
    fn optional(&mut self, tag: &str, content: impl FnOnce(&mut Self)) {
        let start = self.out.len();
        self.open(tag);
        let tag_end = self.out.len();
        self.content(tag, content);
        if self.out[tag_end..] == *" />" {
            self.out.truncate(start);
        }
    }

    pub(super) fn graph(&mut self, graph: &Graph) {
        self.open("layers");
        self.content("layers", |printer| {
            for layer in graph.layers() {
                printer.line();
                printer.layer(graph, layer);
            }
        });
        self.open("edges");
        self.content("edges", |printer| {
            let mut edges: Vec<_> = graph.joints().collect();
            // The serializer groups edges by their source layer. Within a group, edges of the file keep their order.
            edges.sort_by_key(|(from, wire, _)| (from.id, wire.place()));
            for (from, wire, to) in edges {
                printer.line();
                printer.edge(from, wire.from_port as usize, to, wire.to_port as usize);
            }
        });
        if let Some(rt_info) = &graph.rt_info {
            self.fragment(rt_info);
        }
    }

    pub(super) fn edge(&mut self, from: &Layer, from_port: usize, to: &Layer, to_port: usize) {
        let parts = [
            ("<edge from-layer=\"", from.id.0),
            ("\" from-port=\"", from.outputs.get(from_port).map_or(0, |port| port.id)),
            ("\" to-layer=\"", to.id.0),
            ("\" to-port=\"", to.inputs.get(to_port).map_or(0, |port| port.id)),
        ];
        for (text, number) in parts {
            self.out.push_str(text);
            self.out.push_str(itoa::Buffer::new().format(number));
        }
        self.out.push_str("\" />");
    }

    pub(super) fn layer(&mut self, graph: &Graph, layer: &Layer) {
        self.out.push_str("<layer");
        self.number("id", layer.id.0);
        self.attribute("name", &layer.name);
        self.attribute("type", layer.ty());
        self.attribute("version", layer.version());
        if let Some(names) = layer.output_names() {
            self.attribute("output_names", names);
        }
        self.content("layer", |printer| printer.layer_content(graph, layer));
    }

    fn layer_content(&mut self, graph: &Graph, layer: &Layer) {
        for body in layer.bodies.iter().rev() {
            self.port_map(body);
        }
        layer.bodies.iter().for_each(|body| self.back_edges(body));
        if !layer.attributes.is_empty() {
            self.line();
            self.data(layer);
        }
        if let (Some(rt_info), true) = (&layer.rt_info, layer.bodies.is_empty()) {
            self.fragment(rt_info);
        }
        self.optional("input", |printer| printer.inputs(graph, layer, 0));
        self.optional("output", |printer| printer.outputs(layer, 0));
        if let (Some(rt_info), false) = (&layer.rt_info, layer.bodies.is_empty()) {
            self.fragment(rt_info);
        }
        for body in &layer.bodies {
            self.open(&body.name);
            self.content(&body.name, |printer| printer.graph(&body.graph));
        }
    }

    pub(super) fn inputs(&mut self, graph: &Graph, layer: &Layer, start: usize) {
        for (port, feed) in layer.inputs.iter().zip(graph.feeds(layer.id)).skip(start) {
            let producer = feed.and_then(|(layer, port)| layer.outputs.get(port));
            match producer {
                Some(output) => self.input(port, output.element_type, &output.shape),
                None => {
                    let dims = declared_dims(self.source, port.content);
                    let shape = dims.iter().map(|&dim| dim.into()).collect();
                    self.input(port, port.declared.unwrap_or(ElementType::Dynamic), &shape);
                }
            }
        }
    }

    pub(super) fn outputs(&mut self, layer: &Layer, start: usize) {
        for port in layer.outputs.iter().skip(start) {
            self.port(port.id, port.element_type, &port.shape, port.names.as_deref(), port.rt_info.as_deref());
        }
    }

    pub(super) fn data(&mut self, layer: &Layer) {
        self.out.push_str("<data");
        for attribute in layer.attributes.iter() {
            self.attribute(&attribute.name, &attribute.value);
        }
        self.out.push_str(" />");
    }

    fn input(&mut self, port: &InputPort, element_type: ElementType, shape: &Shape) {
        let rt_info = rt_info_in(self.source, port.content).map(|span| span.text(self.source));
        self.port(port.id, element_type, shape, None, rt_info);
    }

    fn port(&mut self, id: u64, element_type: ElementType, shape: &Shape, names: Option<&str>, rt_info: Option<&str>) {
        self.open("port");
        self.number("id", id);
        self.attribute("precision", element_type.port_name().unwrap_or("UNSPECIFIED"));
        if let Some(names) = names {
            self.attribute("names", names);
        }
        self.content("port", |printer| {
            printer.dims(shape);
            if let Some(rt_info) = rt_info {
                printer.fragment(rt_info);
            }
        });
    }

    /// Prints one `<dim>` per line; nothing for a scalar or a dynamic rank.
    pub(super) fn dims(&mut self, shape: &Shape) {
        for dim in self.constraints.dims(shape).unwrap_or_default() {
            self.open("dim>");
            self.out.push_str(itoa::Buffer::new().format(dim.value().unwrap_or(-1)));
            self.close("dim");
        }
    }

    pub(super) fn back_edges(&mut self, body: &Body) {
        self.optional("back_edges", |printer| {
            for edge in &body.back_edges {
                printer.open("edge");
                printer.number("from-layer", edge.from.0);
                printer.number("to-layer", edge.to.0);
                printer.out.push_str(" />");
            }
        });
    }

    pub(super) fn port_map(&mut self, body: &Body) {
        let name = Body::port_map_name(&body.name);
        self.optional(&name, |printer| {
            for entry in &body.port_map {
                printer.open(match entry.direction {
                    Direction::Input => "input",
                    Direction::Output => "output",
                });
                if let Some(axis) = entry.axis {
                    printer.number("axis", axis);
                }
                printer.number("external_port_id", entry.external_port_id);
                printer.number("internal_layer_id", entry.internal_layer_id.0);
                let slice = [
                    ("start", entry.start),
                    ("end", entry.end),
                    ("stride", entry.stride),
                    ("part_size", entry.part_size),
                ];
                for (name, value) in slice {
                    if let Some(value) = value {
                        printer.number(name, value);
                    }
                }
                if let Some(purpose) = &entry.purpose {
                    printer.attribute("purpose", purpose);
                }
                printer.out.push_str(" />");
            }
        });
    }

    /// Prints metadata unchanged, except for white space between elements.
    pub(super) fn fragment(&mut self, fragment: &str) {
        let mut reader = Reader::from_str(fragment);
        reader.config_mut().allow_dangling_amp = true;
        let outer = self.line_start.len();
        let mut depth = 0;
        // The first flag is true if the innermost element has no content yet, the second if its last content was text.
        let (mut bare, mut after_text) = (false, false);
        // The text was parsed before, so it is well-formed.
        while let Ok(event) = reader.read_event() {
            if bare && !matches!(&event, Event::End(_)) && !is_blank(&event) {
                self.out.push('>');
                bare = false;
            }
            match event {
                Event::Start(tag) => {
                    self.fragment_tag(&tag, after_text);
                    depth += 1;
                    if depth <= DEEPEST_INDENT {
                        self.indent();
                    }
                    (bare, after_text) = (true, false);
                }
                Event::Empty(tag) => {
                    self.fragment_tag(&tag, after_text);
                    self.out.push_str(" />");
                    after_text = false;
                }
                Event::End(tag) => {
                    if (1..=DEEPEST_INDENT).contains(&depth) {
                        self.outdent();
                    }
                    depth = depth.saturating_sub(1);
                    if bare {
                        self.out.push_str(" />");
                    } else {
                        if !after_text {
                            self.line();
                        }
                        self.close(tag.name().0);
                    }
                    (bare, after_text) = (false, false);
                }
                Event::Eof => break,
                event if is_blank(&event) => {}
                Event::Text(text) => {
                    self.out.push_str(&text.into_inner());
                    after_text = true;
                }
                Event::GeneralRef(reference) => {
                    self.out.extend(["&", &reference.into_inner(), ";"]);
                    after_text = true;
                }
                Event::CData(text) => {
                    self.out.extend(["<![CDATA[", &text.into_inner(), "]]>"]);
                    after_text = true;
                }
                Event::Comment(_) | Event::Decl(_) | Event::PI(_) | Event::DocType(_) => {}
            }
        }
        self.line_start.truncate(outer);
    }

    fn fragment_tag(&mut self, tag: &BytesStart, after_text: bool) {
        if !after_text {
            self.line();
        }
        self.out.push('<');
        self.out.push_str(tag.name().0);
        for attribute in tag.attributes().with_checks(false).flatten().filter(|attribute| is_name(attribute.key.0)) {
            self.attribute(attribute.key.0, &decode(&attribute.value));
        }
    }
}

/// True for white space between elements, and for parts that the parser ignores.
fn is_blank(event: &Event) -> bool {
    match event {
        Event::Text(text) => text.trim_ascii().is_empty(),
        Event::Comment(_) | Event::Decl(_) | Event::PI(_) | Event::DocType(_) => true,
        Event::Start(_) | Event::End(_) | Event::Empty(_) | Event::CData(_) | Event::GeneralRef(_) | Event::Eof => {
            false
        }
    }
}
