//! Layers: their attributes, ports, bodies, and the connections of bodies.

use std::mem::replace;
use std::sync::Arc;

use smallvec::SmallVec;
use typelift_promote::ElementType;

use super::super::tokens::{Element, Tokens, decode};
use super::{Fatal, Last, MAX_DEPTH, Read, SHOWN};
use crate::base::foreign;
use crate::base::hash::{HashMap, HashSet};
use crate::base::number::integer_prefix;
use crate::base::span::Span;
use crate::findings::{About, Code, Diagnostic, message};
use crate::model::graph::{
    Attribute, AttributeList, BackEdge, Body, Direction, InputPort, Layer, LayerId, OperationName, OutputPort,
    PortMapEntry, Text,
};
use crate::model::shape::{Dim, Shape};

/// The largest number of bodies of a layer; known operations have at most two.
const MAX_BODIES: usize = 64;

/// Maximum number of a layer's attributes that are cached for the next layer of the same operation.
const MOST_KEPT: usize = 64;

/// Maximum number of operations whose last layer is cached.
const MOST_OPERATIONS: usize = 1 << 10;

/// Maximum number of cached `<data>` tags.
const MOST_DATA: usize = 1 << 10;

/// Id of a layer whose id cannot be parsed; no valid layer has it.
const NO_ID: LayerId = LayerId(u64::MAX);

pub(super) const NO_PORT_ID: u64 = u64::MAX;

impl<'a> Read<'a> {
    pub(super) fn layer(&mut self, element: &Element<'a>, take: impl FnOnce(Layer)) -> Result<(), Fatal> {
        let (mut layer, last) = self.layer_tag(element)?;
        let has_data = self.leading_data(element, &mut layer, last)?;
        if let Some((inputs, outputs)) = self.parsed_rests.pass(&mut self.tokens, element)? {
            (layer.inputs, layer.outputs) = (inputs, outputs);
        } else {
            self.layer_children(element, &mut layer, last, has_data)?;
        }
        layer.span = Some(self.tokens.span_since(element));
        if layer.id == NO_ID {
            self.damaged = true;
        } else {
            take(layer);
        }
        Ok(())
    }

    /// Reads the start tag of a layer. Returns the layer, and the index of its operation in the cache `last`.
    fn layer_tag(&mut self, element: &Element<'a>) -> Result<(Layer, usize), Fatal> {
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
        let mut layer = Layer::of(self.last[last].operation_name.clone(), self.text(name.unwrap_or_default()));
        layer.output_names = output_names.map(|names| self.text(names).into());
        let id = self.required(element, "id", id);
        layer.id = id.map_or(NO_ID, LayerId);
        // A missing attribute is reported together with a similar attribute that the tag has.
        let known = [
            ("id", id.is_some()),
            ("name", !layer.name.is_empty()),
            ("type", ty.is_some()),
            ("version", version.is_some()),
        ];
        let ignored = unknown.iter().filter(|(name, _)| {
            known.iter().all(|(known, is_written)| *is_written || !name.eq_ignore_ascii_case(known))
        });
        for &(name, value) in ignored.take(SHOWN) {
            let message = message!("attribute `{}` of <layer> is ignored"; name);
            let lint = Diagnostic::new(Code::UnknownAttribute, message)
                .at(self.tokens.span_of(value), "this attribute does not exist");
            let lint = lint.about(About::Unknown { attribute: name.to_owned(), meant: None });
            self.report_of(&layer, lint);
        }
        if unknown.len() > SHOWN {
            let message = message!("{} more attributes of this <layer> are ignored"; unknown.len() - SHOWN);
            let lint =
                Diagnostic::new(Code::UnknownAttribute, message).at(element.tag_span, "this attribute does not exist");
            self.report_of(&layer, lint);
        }
        if [ty, version].contains(&Some("")) {
            self.unnamed.push(layer.id);
        }
        Ok((layer, last))
    }

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
            let [ty, version] = [ty, version].map(|part| self.tokens.span_of(part).text(self.source));
            self.operations.insert((ty, version), at);
        }
        at
    }

    /// Reads the content of a layer after its leading `<data>`. `has_data` is true if there was one.
    fn layer_children(
        &mut self,
        element: &Element<'a>,
        layer: &mut Layer,
        last: usize,
        has_data: bool,
    ) -> Result<(), Fatal> {
        let (reported, start) = (self.diagnostics.len(), self.tokens.position());
        let mut port_maps = HashMap::default();
        let mut body_names = HashSet::default();
        let mut back_edges = None;
        let mut bodies = Vec::new();
        // The first element of each kind counts.
        let (mut data, mut input, mut output) = (has_data, false, false);
        while let Some(child) = self.tokens.child(Some(element))? {
            match child.name() {
                "data" if !replace(&mut data, true) => self.data(&child, layer, last)?,
                "input" if !replace(&mut input, true) => layer.inputs = self.inputs(&child, layer)?,
                "output" if !replace(&mut output, true) => self.outputs(&child, layer)?,
                "rt_info" if layer.rt_info.is_none() => {
                    let span = self.tokens.skip(&child)?;
                    self.check_rt_info(span, layer);
                    layer.rt_info = Some(Text::of(span.text(self.source), self.source));
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
                    self.body(&child, layer, &mut bodies)?;
                }
                _ => self.unknown_element(&child, Some(&*layer))?,
            }
        }
        let has_more = data != has_data || layer.rt_info.is_some() || back_edges.is_some();
        // The text of a port with names or metadata is never cached, because it does not repeat.
        if !has_more
            && (port_maps.is_empty() && bodies.is_empty())
            && layer.outputs.iter().all(|port| port.names.is_none() && port.rt_info.is_none())
            && self.diagnostics.len() == reported
        {
            let rest = Span::new(start, self.tokens.content_of(element).end as usize);
            self.parsed_rests.add(rest, self.source, (layer.inputs.clone(), layer.outputs.clone()));
        }
        for body in &mut bodies {
            body.port_map = port_maps.remove(&Body::port_map_name(&body.name)).unwrap_or_default();
        }
        if let Some(body) = bodies.first_mut() {
            body.back_edges = back_edges.unwrap_or_default();
        }
        layer.bodies = bodies.into();
        Ok(())
    }

    fn body(&mut self, element: &Element<'a>, owner: &Layer, bodies: &mut Vec<Body>) -> Result<(), Fatal> {
        element.check_name(element.name())?;
        if self.place.steps().len() >= MAX_DEPTH {
            return Err(nested_too_deep(element));
        }
        let inside = self.place.inside(owner, bodies.len(), element.name());
        let outside = replace(&mut self.place, inside);
        bodies.push(Body::empty(element.name()));
        if let Some(body) = bodies.last_mut() {
            self.graph(element, &mut body.graph, None)?;
        }
        self.place = outside;
        Ok(())
    }

    /// Reads the `<data>` at the start of a layer, if it is there. It often equals that of the previous layer of the
    /// same operation, whose attributes are then shared.
    fn leading_data(&mut self, element: &Element<'a>, layer: &mut Layer, last: usize) -> Result<bool, Fatal> {
        let Last { data, attributes, .. } = &self.last[last];
        if !data.is_empty() && self.tokens.pass_child(element, data) {
            layer.attributes = attributes.clone();
            return Ok(true);
        }
        let tail = self.tokens.ahead(element).trim_ascii_start().strip_prefix("<data");
        if tail.is_none_or(|tail| !tail.starts_with([' ', '/', '>'])) {
            return Ok(false);
        }
        match self.tokens.child(Some(element))? {
            Some(child) => self.data(&child, layer, last).map(|()| true),
            None => Ok(false),
        }
    }

    fn data(&mut self, element: &Element<'a>, layer: &mut Layer, last: usize) -> Result<(), Fatal> {
        let text = element.tag_span.text(self.source);
        if let Some(attributes) = self.parsed_data.get(text) {
            layer.attributes = attributes.clone();
            return self.no_children(element);
        }
        let reported = self.diagnostics.len();
        // Most layers have few attributes, and comparing all of them is fastest.
        const FEW: usize = 16;
        let mut seen = HashSet::default();
        let mut repeated = HashSet::default();
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
        if self.diagnostics.len() == reported && layer.attributes.len() <= MOST_KEPT {
            let Last { data, attributes, .. } = &mut self.last[last];
            *data = self.tokens.span_since(element).text(self.source);
            *attributes = layer.attributes.clone();
            if self.parsed_data.len() < MOST_DATA {
                self.parsed_data.insert(text, layer.attributes.clone());
            }
        }
        Ok(())
    }

    fn inputs(&mut self, element: &Element<'a>, layer: &Layer) -> Result<Arc<[InputPort]>, Fatal> {
        if let Some(ports) = self.parsed_inputs.pass(&mut self.tokens, element)? {
            return Ok(ports);
        }
        let reported = self.diagnostics.len();
        let mut ports = SmallVec::<[InputPort; 4]>::new();
        while let Some(port) = self.tokens.child(Some(element))? {
            ports.extend(self.input_port(&port, layer, ports.last())?);
        }
        let ports: Arc<[_]> = ports.iter().cloned().collect();
        if self.diagnostics.len() == reported {
            self.parsed_inputs.add(self.tokens.content_of(element), self.source, ports.clone());
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
        let declared = precision.and_then(ElementType::from_port_name);
        if let Some(text) = precision.filter(|_| declared.is_none()) {
            let lint = Diagnostic::new(Code::UnknownPortType, message!("`{}` is not an element type"; text));
            let lint = lint.at(
                self.tokens.span_of(text),
                "OpenVINO ignores it: the type is that of the tensor that feeds the port",
            );
            self.report_of(layer, lint);
        }
        self.port_content(element)?;
        Ok(Some(InputPort { id, declared, content: self.tokens.content_of(element) }))
    }

    fn outputs(&mut self, element: &Element<'a>, layer: &mut Layer) -> Result<(), Fatal> {
        while let Some(port) = self.tokens.child(Some(element))? {
            let port = self.output_port(&port, layer)?;
            layer.outputs.extend(port);
        }
        Ok(())
    }

    fn output_port(&mut self, element: &Element<'a>, layer: &Layer) -> Result<Option<OutputPort>, Fatal> {
        if element.name() != "port" {
            return self.unknown_element(element, None).map(|()| None);
        }
        let [id, precision, names] = self.known_attributes(element, ["id", "precision", "names"], |_, _| {})?;
        let id = self.port_id(element, id, layer.outputs.last().map(|port| port.id));
        let element_type = precision.and_then(ElementType::from_port_name);
        match precision {
            None => self.missing_attribute(element, "precision"),
            Some(text) if element_type.is_none() => {
                let refusal =
                    Diagnostic::new(Code::InvalidValue, message!("`{}` is not an element type of a port"; text));
                let mut refusal = refusal.at(self.tokens.span_of(text), "ports spell types FP32, I64, BOOL, BIN, …");
                let meant = ElementType::from_name(text).or_else(|| foreign::element_type(text));
                if let Some(meant) = meant.and_then(ElementType::port_name) {
                    refusal = refusal.help(message!("write `{}`"; meant));
                }
                self.report_of(layer, refusal);
            }
            Some(_) => {}
        }
        let (shape, rt_info) = self.port_content(element)?;
        if let Some(span) = rt_info {
            self.check_rt_info(span, layer);
        }
        Ok(Some(OutputPort {
            shape,
            names: names.filter(|names| !names.is_empty()).map(|names| self.text(names)),
            content: self.tokens.content_of(element),
            rt_info: rt_info.map(|span| Text::of(span.text(self.source), self.source)),
            id,
            declared: element_type,
            ..OutputPort::new(element_type.unwrap_or(ElementType::Dynamic), Shape::dynamic())
        }))
    }

    /// Reads the children of a port: the declared shape, and the position of its metadata.
    fn port_content(&mut self, port: &Element<'a>) -> Result<(Shape, Option<Span>), Fatal> {
        if let Some(shape) = self.parsed_ports.pass(&mut self.tokens, port)? {
            return Ok((shape, None));
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
        // Without dimensions a port is a scalar or has dynamic rank; the text does not say which.
        let shape: Shape = if dims.is_empty() { Shape::dynamic() } else { dims.into_iter().collect() };
        // A text with a lint is not cached, so that every occurrence is reported.
        if self.diagnostics.len() == reported && rt_info.is_none() {
            self.parsed_ports.add(self.tokens.content_of(port), self.source, shape.clone());
        }
        Ok((shape, rt_info))
    }

    fn dim(&mut self, element: &Element<'a>) -> Result<Dim, Fatal> {
        let text = self.tokens.text(element)?;
        match integer_prefix(text.trim_ascii_start().trim_start_matches('+')) {
            Some((dim, junk)) if dim >= -1 => {
                if junk {
                    self.trailing_junk("dimension", &text, self.tokens.content_of(element));
                }
                Ok(if dim < 0 { Dim::ANY } else { Dim::fixed(dim) })
            }
            _ => {
                let what = if text.is_empty() { "nothing".into() } else { message!("`{}`"; text) };
                let refusal = Diagnostic::new(Code::InvalidValue, message!("{} is not a dimension"; what));
                let span = self.tokens.span_since(element);
                let refusal = refusal.at(span, "a dimension is a length, or -1 for any length");
                self.report(refusal.help("write a length, or -1 for any length (`?` in a shape attribute)"));
                Ok(Dim::ANY)
            }
        }
    }

    /// Reports an id that equals that of the previous port; other errors are found with the edges.
    fn port_id(&mut self, element: &Element<'a>, text: Option<&str>, previous: Option<u64>) -> u64 {
        let id = self.required(element, "id", text).unwrap_or(NO_PORT_ID);
        if previous == Some(id) && id != NO_PORT_ID {
            let lint = Diagnostic::new(Code::DuplicatePortId, message!("port id {} is used twice"; id));
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
        while let Some(child) = self.tokens.child(Some(element))? {
            if child.name() != "edge" {
                self.unknown_element(&child, None)?;
                continue;
            }
            let [from, to] = self.known_attributes(&child, ["from-layer", "to-layer"], |_, _| {})?;
            let ends = (self.required(&child, "from-layer", from), self.required(&child, "to-layer", to));
            if let (Some(from), Some(to)) = ends {
                edges.push(BackEdge { from: LayerId(from), to: LayerId(to) });
            }
            self.no_children(&child)?;
        }
        Ok(edges)
    }
}

#[cold]
fn nested_too_deep(body: &Element) -> Fatal {
    let message = message!("bodies nest more than {} deep"; MAX_DEPTH);
    Diagnostic::new(Code::NestingTooDeep, message).at(body.tag_span, "one body too many").into()
}
