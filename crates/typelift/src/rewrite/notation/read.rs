//! Building a model from a listing.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use typelift_promote::ElementType;

use super::listing::{BodyText, InputText, LayerText, Listing, Tie};
use super::value::Number;
use super::{Cursor, Literal, NotationError};
use crate::base::names::nearest;
use crate::base::span::Span;
use crate::findings::Diagnostic;
use crate::model::graph::{
    BackEdge, Body, Direction, Graph, Input, InputPort, Layer, LayerId, Model, Output, PortMapEntry, join_names,
};
use crate::model::shape::Shape;
use crate::model::weights::{Weights, stored_size};
use crate::ops::{self, LayerKind};
use crate::text::xml::{self, WriteOptions};

/// Maximum number of bytes of all constants, because listings are for reading and testing.
const MOST_BYTES: usize = 1 << 28;
const ALIGNMENT: usize = 64;

impl Model {
    /// Parses a model in the notation. It accepts the output of [`to_text`](Self::to_text) and
    /// [`Display`](std::fmt::Display), and shorter text.
    ///
    /// Ids, types and shapes may be omitted, except those of Parameters: ids are counted, types and shapes are
    /// inferred. A layer is referred to by its id or its name. An operation without an operation set has its oldest
    /// revision. A constant without values is filled with zeros. If no constant has values, the model has no weights.
    ///
    /// # Errors
    /// [`NotationError`] with the position.
    ///
    /// # Examples
    /// ```
    /// let model = typelift::Model::from_text("
    ///     x   = Parameter : f16[?,3]
    ///     min = Const([1, 2, 3]) : f16[3]
    ///     y   = Maximum(x, min)
    ///     out = Result(y)
    /// ")?;
    /// assert_eq!(model.to_string(), "\
    /// 0 x = Parameter : f16[?,3]
    /// 1 min = Const([1, 2, 3]) : f16[3]
    /// 2 y = Maximum(0, 1) : f16[?,3]
    /// 3 out = Result(2)
    /// ");
    /// # Ok::<(), typelift::rewrite::notation::NotationError>(())
    /// ```
    pub fn from_text(text: &str) -> Result<Self, NotationError> {
        let listing = Listing::read(text)?;
        let mut builder = Builder { text, bytes: Vec::new(), has_values: false };
        let graph = builder.read_graph(&listing.layers)?;
        // The model is written as XML and read again, so that it has a source text.
        let mut model = listing.empty_model(text)?;
        model.graph = graph;
        let source =
            xml::write(&model, WriteOptions { canonical: true, refresh_ports: true, ..WriteOptions::default() });
        let mut model = Self::from_xml(source).map_err(|found| listing.fault(text, &found.list))?;
        if builder.has_values {
            model.weights = Weights::from_bytes(builder.bytes);
        }
        let inferred = is_incomplete(&listing.layers).then(|| {
            let mut whole = model.clone();
            let _ = crate::infer(&mut whole);
            whole
        });
        declare(&mut model.graph, inferred.as_ref().map(|inferred| &inferred.graph), &listing.layers);
        Ok(model)
    }
}

impl Listing {
    fn empty_model(&self, text: &str) -> Result<Model, NotationError> {
        let mut model =
            Model::from_xml("<net version=\"11\"><layers/></net>").map_err(|found| self.fault(text, &found.list))?;
        model.name = Some(self.name.as_str().into()).filter(|_| !self.name.is_empty());
        model.version = self.version;
        model.source = Arc::default();
        Ok(model)
    }

    fn fault(&self, text: &str, found: &[Diagnostic]) -> NotationError {
        let error = found.iter().find(|diagnostic| diagnostic.is_error());
        let layer = error.and_then(|error| error.layer.as_ref()).filter(|layer| layer.place.is_model());
        let line = layer.and_then(|layer| self.layers.iter().find(|line| line.name == layer.name));
        let span = line.map_or(0..0, |line| line.span.clone());
        Cursor::new(text).error(span, error.map_or_else(String::new, |error| error.message.to_string()))
    }
}

struct Builder<'a> {
    text: &'a str,
    bytes: Vec<u8>,
    has_values: bool,
}

impl Builder<'_> {
    fn error(&self, span: &Range<usize>, message: impl Into<String>) -> NotationError {
        Cursor::new(self.text).error(span.clone(), message)
    }

    fn read_graph(&mut self, lines: &[LayerText]) -> Result<Graph, NotationError> {
        let names = LayerNames::new(lines);
        let used = names.used_outputs(lines);
        let (mut graph, mut taken) = (Graph::default(), HashSet::new());
        for (line, id) in lines.iter().zip(ids(lines)) {
            let mut layer = self.read_layer(line, used.get(&id).copied().unwrap_or_default())?;
            layer.id = id;
            // A layer with any position in a file keeps its order.
            layer.span = Some(Span::default());
            if !taken.insert(id) || id.0 > LayerId::LARGEST {
                return Err(self.error(&line.span, format!("the id {id} is used twice or too large")));
            }
            graph.append(layer);
        }
        graph.index_layers();
        for (line, layer) in lines.iter().zip(ids(lines)) {
            for (port, input) in line.inputs.iter().enumerate() {
                let Some(name) = &input.name else { continue };
                let source = names.find(name).ok_or_else(|| self.no_layer(input, name, lines))?;
                if graph.output(source).is_none() {
                    let message = format!("layer {} does not have an output {}", source.layer, source.port);
                    return Err(self.error(&input.span, message));
                }
                graph.wire(source, Input { layer, port }, None);
            }
        }
        Ok(graph)
    }

    fn no_layer(&self, input: &InputText, name: &str, lines: &[LayerText]) -> NotationError {
        let error = self.error(&input.span, format!("no layer here is named `{name}`"));
        error.with_near(nearest(name, lines.iter().map(|line| line.name.as_str())))
    }

    fn read_layer(&mut self, line: &LayerText, used: usize) -> Result<Layer, NotationError> {
        let mut layer = Layer::new(&line.ty, &line.version, &line.name);
        let kind = ops::lookup(&line.ty, &line.version).map(|row| row.kind);
        let declared = line.outputs.as_deref().unwrap_or_default();
        match (kind, declared.first()) {
            (Some(LayerKind::Parameter), None) => {
                return Err(self
                    .error(&line.span, "a Parameter needs its type")
                    .with_help("write ` : f32[1,3]` after it"));
            }
            (Some(LayerKind::Parameter), Some(output)) => {
                let shape = output.shape.clone().unwrap_or_else(Shape::dynamic);
                layer = layer
                    .with_attribute("shape", &shape.to_attribute().to_string())
                    .with_attribute("element_type", output.element_type.name());
            }
            (Some(LayerKind::Constant), _) => layer = self.read_constant(line, layer)?,
            _ => {}
        }
        for (name, value) in &line.attributes {
            layer = layer.with_attribute(name, value);
        }
        if layer.outputs.is_empty() {
            let count = match (&line.outputs, kind) {
                (Some(outputs), _) => outputs.len(),
                (None, Some(LayerKind::Result)) => 0,
                (None, _) => used.max(1),
            };
            for at in 0..count {
                let output = declared.get(at);
                let shape = output.and_then(|output| output.shape.clone()).unwrap_or_else(Shape::dynamic);
                layer = layer.with_output(output.map_or(ElementType::Dynamic, |output| output.element_type), shape);
            }
        }
        for (output, declared) in layer.outputs.iter_mut().zip(declared) {
            output.names = (!declared.names.is_empty()).then(|| join_names(declared.names.clone()));
        }
        layer.output_names = (!line.output_names.is_empty()).then(|| join_names(line.output_names.clone()).into());
        let inputs = line.inputs.len() as u64;
        layer.inputs = (0..inputs).map(|id| InputPort { id, declared: None, content: Default::default() }).collect();
        for (id, output) in (inputs..).zip(&mut layer.outputs) {
            output.id = id;
        }
        let bodies = line.bodies.iter().map(|body| self.read_body(line, body, &layer));
        layer.bodies = bodies.collect::<Result<_, _>>()?;
        Ok(layer)
    }

    /// Appends the values of a constant to the weights.
    fn read_constant(&mut self, line: &LayerText, layer: Layer) -> Result<Layer, NotationError> {
        let written = line.outputs.as_ref().and_then(|outputs| outputs.first());
        let element_type = match (written, &line.values) {
            (Some(output), _) => output.element_type,
            (None, Some(values)) => type_of(values),
            (None, None) => return Err(self.error(&line.span, "a constant needs its values or its type")),
        };
        let dims = match (written.and_then(|output| output.shape.clone()), &line.values) {
            (Some(shape), _) => shape.to_static(),
            (None, Some(values)) => Some(values.dims.iter().map(|&dim| dim as i64).collect()),
            (None, None) => None,
        };
        let dims = dims.ok_or_else(|| self.error(&line.span, "the shape of a constant must be known"))?;
        let shape = Shape::fixed(dims.iter().copied());
        let size = shape.element_count().and_then(|count| stored_size(element_type, count));
        let size = size.and_then(|size| usize::try_from(size).ok());
        let size = size.filter(|size| self.bytes.len() + size <= MOST_BYTES).ok_or_else(|| {
            let help = "read the model from its file";
            self.error(&line.span, format!("the constants need more than {} MiB", MOST_BYTES >> 20)).with_help(help)
        })?;
        let offset = self.bytes.len().next_multiple_of(ALIGNMENT);
        self.bytes.resize(offset, 0);
        match &line.values {
            Some(values) => {
                let dims: Vec<_> = dims.iter().map(|&dim| dim as usize).collect();
                let array = values.to_array(element_type, &dims).and_then(|array| array.encode());
                let refused = || format!("{element_type}{shape} cannot have these values");
                self.bytes.extend(array.ok_or_else(|| self.error(&values.span, refused()))?);
                self.has_values = true;
            }
            None => self.bytes.resize(offset + size, 0),
        }
        let texts: Vec<_> = dims.iter().map(ToString::to_string).collect();
        let attributes = [
            ("element_type", element_type.name().to_owned()),
            ("shape", texts.join(", ")),
            ("offset", offset.to_string()),
            ("size", size.to_string()),
        ];
        let layer = attributes.iter().fold(layer, |layer, (name, value)| layer.with_attribute(name, value));
        Ok(layer.with_output(element_type, shape))
    }

    fn read_body(&mut self, line: &LayerText, body: &BodyText, layer: &Layer) -> Result<Body, NotationError> {
        let graph = self.read_graph(&body.layers)?;
        let (mut port_map, mut back_edges) = (Vec::new(), Vec::new());
        for tie in &body.ties {
            let (direction, outer, inner, details, purpose) = match tie {
                Tie::Port { direction, outer, inner, details, purpose } => (direction, outer, inner, details, purpose),
                &Tie::Back { from, to } => {
                    back_edges.push(BackEdge { from: LayerId(from), to: LayerId(to) });
                    continue;
                }
            };
            let port = match (outer, direction) {
                (None, _) => None,
                (Some(at), Direction::Input) => Some(layer.inputs.get(*at).map(|port| port.id)),
                (Some(at), Direction::Output) => Some(layer.outputs.get(*at).map(|port| port.id)),
            };
            let external_port_id = match port {
                None => -1,
                Some(Some(id)) => id as i64,
                Some(None) => return Err(self.error(&line.span, "its body refers to a port that does not exist")),
            };
            let detail = |name: &str| details.iter().find(|(known, _)| known == name).map(|&(_, value)| value);
            port_map.push(PortMapEntry {
                direction: *direction,
                external_port_id,
                internal_layer_id: LayerId(*inner),
                axis: detail("axis"),
                start: detail("start"),
                end: detail("end"),
                stride: detail("stride"),
                part_size: detail("part_size"),
                purpose: purpose.as_deref().map(Into::into),
            });
        }
        Ok(Body { name: body.name.as_str().into(), graph, port_map, back_edges, rejoined: false })
    }
}

/// The type of a constant without one: i64 for integers.
fn type_of(values: &Literal) -> ElementType {
    let is = |of: fn(&Number) -> bool| !values.numbers.is_empty() && values.numbers.iter().all(of);
    if is(|number| matches!(number, Number::Bool(_))) {
        ElementType::Boolean
    } else if is(|number| !matches!(number, Number::Int(_)))
        || values.numbers.iter().any(|n| matches!(n, Number::Float(_)))
    {
        ElementType::F32
    } else {
        ElementType::I64
    }
}

fn ids(lines: &[LayerText]) -> impl Iterator<Item = LayerId> {
    lines.iter().scan(0_u64, |next, line| {
        let id = line.id.unwrap_or(*next);
        *next = id.saturating_add(1).max(*next);
        Some(LayerId(id))
    })
}

struct LayerNames<'a> {
    ids: HashSet<LayerId>,
    named: HashMap<&'a str, LayerId>,
}

impl<'a> LayerNames<'a> {
    fn new(lines: &'a [LayerText]) -> Self {
        let mut named = HashMap::new();
        for (line, id) in lines.iter().zip(ids(lines)) {
            named.entry(line.name.as_str()).or_insert(id);
        }
        Self { ids: ids(lines).collect(), named }
    }

    /// The tensor of an id or a name, with a suffix such as `.1` for the second output.
    fn find(&self, text: &str) -> Option<Output> {
        if let Some(layer) = self.find_layer(text) {
            return Some(Output { layer, port: 0 });
        }
        let (text, port) = text.rsplit_once('.')?;
        Some(Output { layer: self.find_layer(text)?, port: port.parse().ok()? })
    }

    fn find_layer(&self, text: &str) -> Option<LayerId> {
        let id = text.parse().ok().map(LayerId).filter(|id| self.ids.contains(id));
        id.or_else(|| self.named.get(text).copied())
    }

    fn used_outputs(&self, lines: &[LayerText]) -> HashMap<LayerId, usize> {
        let mut used = HashMap::new();
        for name in lines.iter().flat_map(|line| &line.inputs).filter_map(|input| input.name.as_deref()) {
            // No operation has that many outputs; the error is reported when the input is connected.
            if let Some(output) = self.find(name).filter(|output| output.port < 1 << 16) {
                let count = used.entry(output.layer).or_default();
                *count = output.port.saturating_add(1).max(*count);
            }
        }
        used
    }
}

fn is_incomplete(lines: &[LayerText]) -> bool {
    lines.iter().any(|line| {
        let outputs = line.outputs.as_ref();
        outputs.is_none_or(|outputs| outputs.iter().any(|output| output.shape.is_none()))
            || line.bodies.iter().any(|body| is_incomplete(&body.layers))
    })
}

/// Sets the types and shapes in the listing, which XML cannot express completely. Others are taken from `inferred`.
fn declare(graph: &mut Graph, inferred: Option<&Graph>, lines: &[LayerText]) {
    for (line, id) in lines.iter().zip(ids(lines)) {
        let inferred = inferred.and_then(|graph| graph.layer(id));
        let Some(layer) = graph.layer_mut(id) else { continue };
        for (at, port) in layer.outputs.iter_mut().enumerate() {
            let written = line.outputs.as_ref().and_then(|outputs| outputs.get(at));
            let found = inferred.and_then(|layer| layer.outputs.get(at));
            let element_type = written.map(|output| output.element_type).or(found.map(|port| port.element_type));
            let shape = written.and_then(|output| output.shape.as_ref()).or(found.map(|port| &port.shape));
            port.element_type = element_type.unwrap_or(port.element_type);
            if let Some(shape) = shape {
                port.shape = shape.clone();
            }
        }
        for (at, (body, written)) in layer.bodies.iter_mut().zip(&line.bodies).enumerate() {
            let inferred = inferred.and_then(|layer| layer.bodies.get(at)).map(|body| &body.graph);
            declare(&mut body.graph, inferred, &written.layers);
        }
    }
}
