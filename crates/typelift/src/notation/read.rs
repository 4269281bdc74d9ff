use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use typelift_promote::ElementType;

use super::lex::is_bare;
use super::value::{self, Number};
use super::{Cursor, Literal, NotationError, closest};
use crate::diagnostic::Diagnostic;
use crate::graph::{
    BackEdge, Body, Direction, Graph, Input, InputPort, IrVersion, Layer, LayerId, Model, Output, PortMapEntry,
    join_names,
};
use crate::ops::{self, LayerKind};
use crate::shape::Shape;
use crate::span::Span;
use crate::weights::{Weights, stored_size};
use crate::xml::{self, WriteOptions};

/// Bodies in bodies deeper than this are refused.
const DEEPEST: usize = 64;
/// The most bytes of constants: a listing is for looking and testing.
const MOST_BYTES: usize = 1 << 28;
/// Constants start at multiples of this in the weights.
const ALIGNMENT: usize = 64;

impl Model {
    /// Reads a model in the notation: what [`to_text`](Self::to_text) and [`Display`](std::fmt::Display) print, and less.
    ///
    /// Ids, types and shapes may be left out, except those of Parameters: ids are counted, types and shapes are inferred.
    /// A layer is named by its id or its name. An operation without an operation set is the oldest of its revisions. A
    /// constant without values holds zeros; if no constant has values, the model has no weights.
    ///
    /// # Errors
    /// [`NotationError`] with the place of the fault.
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
    /// # Ok::<(), typelift::notation::NotationError>(())
    /// ```
    pub fn from_text(text: &str) -> Result<Self, NotationError> {
        let listing = Listing::read(text)?;
        let mut builder = Builder { text, bytes: Vec::new(), has_values: false };
        let graph = builder.read_graph(&listing.layers)?;
        // Written and read again, so that the model has a text of its own, as one from a file has.
        let mut model = listing.empty_model(text)?;
        model.graph = graph;
        let source = xml::write(&model, WriteOptions { canonical: true, refresh_ports: true });
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

/// A listing as it is written.
struct Listing {
    name: String,
    version: IrVersion,
    layers: Vec<LayerText>,
}

/// One line, and the bodies below it.
struct LayerText {
    span: Range<usize>,
    /// Where it is not written, one more than the largest before it.
    id: Option<u64>,
    name: String,
    ty: String,
    version: String,
    values: Option<Literal>,
    inputs: Vec<InputText>,
    attributes: Vec<(String, String)>,
    output_names: Vec<String>,
    /// `None` where they are left out.
    outputs: Option<Vec<OutputText>>,
    bodies: Vec<BodyText>,
}

struct InputText {
    span: Range<usize>,
    /// What the tensor is named by; `None` for an input that nothing feeds.
    name: Option<String>,
}

struct OutputText {
    element_type: ElementType,
    shape: Option<Shape>,
    names: Vec<String>,
}

struct BodyText {
    name: String,
    ties: Vec<Tie>,
    layers: Vec<LayerText>,
}

/// How a body is tied to its layer.
enum Tie {
    Port {
        direction: Direction,
        outer: Option<usize>,
        inner: u64,
        details: Vec<(String, i64)>,
        purpose: Option<String>,
    },
    Back {
        from: u64,
        to: u64,
    },
}

/// A graph whose lines are being read.
struct Frame {
    /// Where its lines start; set by the first of them.
    indent: Option<usize>,
    /// It ends before a line that starts no farther in than this.
    outer: Option<usize>,
    layers: Vec<LayerText>,
}

impl Listing {
    fn read(text: &str) -> Result<Self, NotationError> {
        let mut listing = Self { name: String::new(), version: IrVersion::V11, layers: Vec::new() };
        let mut frames = vec![Frame { indent: None, outer: None, layers: Vec::new() }];
        let mut start = 0;
        for line in text.split_inclusive('\n') {
            let range = start..start + line.trim_end().len();
            start += line.len();
            let mut cursor = Cursor::within(text, range.clone());
            if cursor.is_done() {
                continue;
            }
            let indent = line.len() - line.trim_start().len();
            close_frames(&mut frames, |frame| {
                frame.indent.is_some_and(|own| own > indent) || frame.outer.is_some_and(|outer| outer >= indent)
            });
            let depth = frames.len();
            let Some(frame) = frames.last_mut() else { break };
            let first = frame.indent.is_none() && depth == 1;
            if first && let Some((name, version)) = header(&mut cursor)? {
                (listing.name, listing.version) = (name, version);
                continue;
            }
            if frame.indent.is_some_and(|own| indent > own) {
                let body = body_line(&mut cursor)?;
                let Some(owner) = frame.layers.last_mut() else { break };
                if depth > DEEPEST {
                    return Err(cursor.error(range, format!("bodies nest deeper than {DEEPEST}")));
                }
                owner.bodies.push(body);
                frames.push(Frame { indent: None, outer: Some(indent), layers: Vec::new() });
                continue;
            }
            frame.indent = Some(indent);
            frame.layers.push(layer_line(&mut cursor)?);
        }
        close_frames(&mut frames, |frame| frame.outer.is_some());
        listing.layers = frames.pop().map(|frame| frame.layers).unwrap_or_default();
        Ok(listing)
    }

    fn empty_model(&self, text: &str) -> Result<Model, NotationError> {
        let mut model =
            Model::from_xml("<net version=\"11\"><layers/></net>").map_err(|found| self.fault(text, &found.list))?;
        model.name = Some(self.name.as_str().into()).filter(|_| !self.name.is_empty());
        model.version = self.version;
        model.source = Arc::default();
        Ok(model)
    }

    /// What the reader found wrong, at the line of its layer.
    fn fault(&self, text: &str, found: &[Diagnostic]) -> NotationError {
        let error = found.iter().find(|diagnostic| diagnostic.is_error());
        let layer = error.and_then(|error| error.layer.as_ref()).filter(|layer| layer.path.is_empty());
        let line = layer.and_then(|layer| self.layers.iter().find(|line| line.name == layer.name));
        let span = line.map_or(0..0, |line| line.span.clone());
        Cursor::new(text).error(span, error.map_or_else(String::new, |error| error.message.to_string()))
    }
}

/// Ends the graphs that are over, and gives each to the body it is in.
fn close_frames(frames: &mut Vec<Frame>, is_over: impl Fn(&Frame) -> bool) {
    while frames.len() > 1
        && let Some(frame) = frames.pop_if(|frame| is_over(frame))
    {
        let owner = frames.last_mut().and_then(|outer| outer.layers.last_mut());
        if let Some(body) = owner.and_then(|owner| owner.bodies.last_mut()) {
            body.layers = frame.layers;
        }
    }
}

/// `model "name" version 11`, if this is what comes.
fn header(cursor: &mut Cursor) -> Result<Option<(String, IrVersion)>, NotationError> {
    let mut ahead = cursor.clone();
    if ahead.word() != "model" || ahead.sees("=") {
        return Ok(None);
    }
    let name = ahead.name("the name of the model")?;
    let mut version = IrVersion::V11;
    if !ahead.is_done() {
        let at = ahead.at;
        version = match (ahead.word(), ahead.word()) {
            ("version", "10") => IrVersion::V10,
            ("version", "11") => IrVersion::V11,
            _ => return Err(cursor.error(at..ahead.at, "expected `version 10` or `version 11`")),
        };
    }
    finish(&mut ahead)?;
    Ok(Some((name, version)))
}

fn finish(cursor: &mut Cursor) -> Result<(), NotationError> {
    if cursor.is_done() { Ok(()) } else { Err(cursor.expected("the end of the line")) }
}

/// `3 sum = Add(0, 2) {auto_broadcast=none} : f32[1,?,3..5] "sum"`
fn layer_line(cursor: &mut Cursor) -> Result<LayerText, NotationError> {
    cursor.skip_space();
    let start = cursor.at;
    let first = cursor.name("the id or the name of a layer")?;
    let (id, name) = match first.parse() {
        Ok(id) if cursor.sees("=") => (Some(id), first),
        Ok(id) => (Some(id), cursor.name("the name of a layer")?),
        Err(_) => (None, first),
    };
    cursor.expect("=")?;
    let (ty, version) = operation(cursor)?;
    let mut line = LayerText {
        span: start..cursor.at,
        id,
        name,
        ty,
        version,
        values: None,
        inputs: Vec::new(),
        attributes: Vec::new(),
        output_names: Vec::new(),
        outputs: None,
        bodies: Vec::new(),
    };
    if cursor.eat("(") {
        if ["Const", "Constant"].contains(&line.ty.as_str()) {
            line.values = Literal::read(cursor)?;
            cursor.expect(")")?;
        } else {
            line.inputs = inputs(cursor)?;
        }
    }
    if cursor.eat("{") {
        line.attributes = attributes(cursor)?;
    }
    line.output_names = names(cursor)?;
    if cursor.eat(":") {
        line.outputs = Some(outputs(cursor)?);
    }
    finish(cursor)?;
    line.span = start..cursor.at;
    Ok(line)
}

/// `Add`, `Softmax-8`, `Custom-extension`.
fn operation(cursor: &mut Cursor) -> Result<(String, String), NotationError> {
    cursor.skip_space();
    let start = cursor.at;
    let quoted = cursor.quoted()?;
    let ty = match quoted {
        Some(ty) => ty,
        None => cursor.run(|c| is_bare(c) && c != '-').to_owned(),
    };
    if ty.is_empty() {
        return Err(cursor.expected("an operation"));
    }
    let span = start..cursor.at;
    if cursor.eat_here("-") {
        let version = match cursor.quoted()? {
            Some(version) => version,
            None => cursor.run(is_bare).to_owned(),
        };
        let is_number = version.parse::<u8>().is_ok();
        return Ok((ty, if is_number { format!("opset{version}") } else { version }));
    }
    match ops::revisions(&ty).first() {
        Some(row) => Ok((ops::file_spelling(row.name()).to_owned(), ops::first_version(&ty).unwrap_or_default())),
        None => {
            let error = cursor.error(span, format!("`{ty}` is not an operation"));
            Err(match closest(&ty, ops::all().map(|operation| operation.name())) {
                Some(near) => error.with_help(format!("did you mean `{near}`?")),
                None => error.with_help(format!("write `{ty}-extension` for an operation of an extension")),
            })
        }
    }
}

/// `0, 4.1, "a b"` and the closing parenthesis.
fn inputs(cursor: &mut Cursor) -> Result<Vec<InputText>, NotationError> {
    let mut inputs = Vec::new();
    while !cursor.eat(")") {
        if !inputs.is_empty() {
            cursor.expect(",")?;
            cursor.skip_space();
        }
        let start = cursor.at;
        let name = match cursor.quoted()? {
            Some(name) => Some(name + cursor.run(|c| c == '.' || c.is_ascii_digit())),
            None => match cursor.run(|c| !",()".contains(c) && !c.is_whitespace()) {
                "" => return Err(cursor.expected("a layer")),
                "-" => None,
                name => Some(name.to_owned()),
            },
        };
        inputs.push(InputText { span: start..cursor.at, name });
    }
    Ok(inputs)
}

/// `axis=1, pads=[0, 1]}`
fn attributes(cursor: &mut Cursor) -> Result<Vec<(String, String)>, NotationError> {
    let mut attributes: Vec<(String, String)> = Vec::new();
    while !cursor.eat("}") {
        if !attributes.is_empty() {
            cursor.expect(",")?;
        }
        cursor.skip_space();
        let start = cursor.at;
        let name = word(cursor, "the name of an attribute")?;
        if attributes.iter().any(|(other, _)| *other == name) {
            return Err(cursor.error(start..cursor.at, format!("the attribute `{name}` appears twice")));
        }
        cursor.expect("=")?;
        attributes.push((name, attribute_value(cursor)?));
    }
    Ok(attributes)
}

/// A word without quotes, or anything in quotes.
pub(crate) fn word(cursor: &mut Cursor, what: &str) -> Result<String, NotationError> {
    cursor.skip_space();
    match cursor.quoted()? {
        Some(word) => Ok(word),
        None => match cursor.run(is_bare) {
            "" => Err(cursor.expected(what)),
            word => Ok(word.to_owned()),
        },
    }
}

/// The value of an attribute as files write it: the items of a list with `, ` between them.
pub(crate) fn attribute_value(cursor: &mut Cursor) -> Result<String, NotationError> {
    if !cursor.eat("[") {
        return word(cursor, "a value");
    }
    let mut items: Vec<String> = Vec::new();
    while !cursor.eat("]") {
        if !items.is_empty() {
            cursor.expect(",")?;
        }
        items.push(word(cursor, "a value")?);
    }
    Ok(items.join(", "))
}

/// Texts in quotes, one after the other.
fn names(cursor: &mut Cursor) -> Result<Vec<String>, NotationError> {
    let mut names = Vec::new();
    cursor.skip_space();
    while let Some(name) = cursor.quoted()? {
        names.push(name);
        cursor.skip_space();
    }
    Ok(names)
}

/// `f32[1,?] "a" "b", i64[]`
fn outputs(cursor: &mut Cursor) -> Result<Vec<OutputText>, NotationError> {
    let mut outputs = Vec::new();
    loop {
        let (element_type, shape) = tensor_type(cursor)?;
        outputs.push(OutputText { element_type, shape, names: names(cursor)? });
        if !cursor.eat(",") {
            return Ok(outputs);
        }
    }
}

/// `f32[1,?]`, or `f32`.
pub(crate) fn tensor_type(cursor: &mut Cursor) -> Result<(ElementType, Option<Shape>), NotationError> {
    Ok((element_type(cursor)?, shape(cursor)?))
}

/// `f32`
pub(crate) fn element_type(cursor: &mut Cursor) -> Result<ElementType, NotationError> {
    cursor.skip_space();
    let start = cursor.at;
    let name = cursor.word();
    if name.is_empty() {
        return Err(cursor.expected("an element type"));
    }
    ElementType::from_name(name).ok_or_else(|| {
        let error = cursor.error(start..cursor.at, format!("`{name}` is not an element type"));
        let near = match ElementType::from_port_name(name) {
            Some(ty) => Some(ty.name()),
            None => closest(name, ElementType::all().map(ElementType::name)),
        };
        match near {
            Some(near) => error.with_help(format!("did you mean `{near}`?")),
            None => error.with_help("they are f32, f16, bf16, i64, i32, u8, boolean, …"),
        }
    })
}

/// `[1,?,3..5]` directly here.
pub(crate) fn shape(cursor: &mut Cursor) -> Result<Option<Shape>, NotationError> {
    let start = cursor.at;
    if !cursor.eat_here("[") {
        return Ok(None);
    }
    let inner = cursor.run(|c| c != ']' && c != '\n');
    if !cursor.eat_here("]") {
        return Err(cursor.error(start..start + 1, "this bracket is not closed"));
    }
    let compact: String = inner.split_whitespace().collect();
    let (shape, oddities) = Shape::parse_lenient(&format!("[{compact}]"))
        .map_err(|error| cursor.error(start..cursor.at, error.to_string()))?;
    match oddities.first() {
        Some(oddity) => Err(cursor.error(start..cursor.at, oddity.kind.to_string())),
        None => Ok(Some(shape)),
    }
}

/// `body (in 1 -> 0, in 2 -> 3 {axis=0}, out 5 -> 0, back 6 -> 3):`
fn body_line(cursor: &mut Cursor) -> Result<BodyText, NotationError> {
    cursor.skip_space();
    let start = cursor.at;
    let name = match cursor.quoted()? {
        Some(name) => name,
        None => cursor.run(|c| is_bare(c) && c != ':').to_owned(),
    };
    let mut ties = Vec::new();
    if cursor.eat("(") {
        while !cursor.eat(")") {
            if !ties.is_empty() {
                cursor.expect(",")?;
            }
            ties.push(tie(cursor)?);
        }
    }
    if name.is_empty() || !cursor.eat(":") {
        let help = "a line that is farther in than a layer starts a body: `body (in 0 -> 0, out 2 -> 0):`";
        return Err(cursor.error(start..cursor.at.max(start + 1), "expected a body").with_help(help));
    }
    finish(cursor)?;
    Ok(BodyText { name, ties, layers: Vec::new() })
}

fn tie(cursor: &mut Cursor) -> Result<Tie, NotationError> {
    cursor.skip_space();
    let start = cursor.at;
    let kind = cursor.word();
    let from = tie_end(cursor)?;
    cursor.expect("->")?;
    let to = tie_end(cursor)?;
    let (mut details, mut purpose) = (Vec::new(), None);
    if cursor.eat("{") {
        while !cursor.eat("}") {
            if !details.is_empty() || purpose.is_some() {
                cursor.expect(",")?;
            }
            let name = word(cursor, "a word")?;
            if !cursor.eat("=") {
                purpose = Some(name);
                continue;
            }
            cursor.skip_space();
            let at = cursor.at;
            let value = word(cursor, "a number")?.parse();
            let known = ["axis", "start", "end", "stride", "part_size"].contains(&name.as_str());
            match value {
                Ok(value) if known => details.push((name, value)),
                _ => {
                    return Err(
                        cursor.error(at..cursor.at, "expected axis, start, end, stride or part_size, and a number")
                    );
                }
            }
        }
    }
    let port = |direction, outer: Option<u64>, inner: Option<u64>| {
        let inner = inner?;
        Some(Tie::Port { direction, outer: outer.and_then(|at| at.try_into().ok()), inner, details, purpose })
    };
    let tie = match kind {
        "in" => port(Direction::Input, from, to),
        "out" => port(Direction::Output, to, from),
        "back" => from.zip(to).map(|(from, to)| Tie::Back { from, to }),
        _ => None,
    };
    tie.ok_or_else(|| cursor.error(start..cursor.at, "expected `in PORT -> ID`, `out ID -> PORT` or `back ID -> ID`"))
}

/// A number, or `-` for none.
fn tie_end(cursor: &mut Cursor) -> Result<Option<u64>, NotationError> {
    if cursor.sees("-") && !cursor.sees("->") {
        cursor.eat("-");
        return Ok(None);
    }
    match cursor.word().parse() {
        Ok(number) => Ok(Some(number)),
        Err(_) => Err(cursor.expected("a number")),
    }
}

/// Makes graphs of what is written.
struct Builder<'a> {
    text: &'a str,
    /// The constants so far.
    bytes: Vec<u8>,
    /// Whether one of them has values.
    has_values: bool,
}

impl Builder<'_> {
    fn error(&self, span: &Range<usize>, message: impl Into<String>) -> NotationError {
        Cursor::new(self.text).error(span.clone(), message)
    }

    fn read_graph(&mut self, lines: &[LayerText]) -> Result<Graph, NotationError> {
        let names = Names::new(lines);
        let used = names.used_outputs(lines);
        let (mut graph, mut taken) = (Graph::default(), HashSet::new());
        for (line, id) in lines.iter().zip(ids(lines)) {
            let mut layer = self.read_layer(line, used.get(&id).copied().unwrap_or_default())?;
            layer.id = id;
            // What has a place in a file keeps it among the others.
            layer.span = Some(Span::default());
            if !taken.insert(id) || id.0 > LayerId::LARGEST {
                return Err(self.error(&line.span, format!("the id {id} is taken, or larger than ids can be")));
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
        match closest(name, lines.iter().map(|line| line.name.as_str())) {
            Some(near) => error.with_help(format!("did you mean `{near}`?")),
            None => error,
        }
    }

    fn read_layer(&mut self, line: &LayerText, used: usize) -> Result<Layer, NotationError> {
        let mut layer = Layer::new(&line.ty, &line.version, &line.name);
        let kind = ops::lookup(&line.ty, &line.version).map(ops::Operation::layer_kind);
        let declared = line.outputs.as_deref().unwrap_or_default();
        match (kind, declared.first()) {
            (Some(LayerKind::Parameter), None) => {
                return Err(self
                    .error(&line.span, "a Parameter needs its type")
                    .with_help("write ` : f32[1,3]` behind it"));
            }
            (Some(LayerKind::Parameter), Some(output)) => {
                let shape = output.shape.clone().unwrap_or_else(Shape::dynamic);
                layer = layer
                    .with_attribute("shape", &shape.to_attribute().to_string())
                    .with_attribute("element_type", output.element_type.name());
            }
            (Some(LayerKind::Constant), _) => self.read_constant(line, &mut layer)?,
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

    /// Puts the values of a constant into the weights.
    fn read_constant(&mut self, line: &LayerText, layer: &mut Layer) -> Result<(), NotationError> {
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
            self.error(&line.span, format!("the constants take more than {} MiB", MOST_BYTES >> 20)).with_help(help)
        })?;
        let offset = self.bytes.len().next_multiple_of(ALIGNMENT);
        self.bytes.resize(offset, 0);
        match &line.values {
            Some(values) => {
                let dims: Vec<_> = dims.iter().map(|&dim| dim as usize).collect();
                let array = values.to_array(element_type, &dims).and_then(|array| value::encode(&array));
                let refused = || format!("{element_type}{shape} does not hold this");
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
        for (name, value) in attributes {
            *layer = std::mem::replace(layer, Layer::new("", "", "")).with_attribute(name, &value);
        }
        *layer = std::mem::replace(layer, Layer::new("", "", "")).with_output(element_type, shape);
        Ok(())
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
                Some(None) => return Err(self.error(&line.span, "its body names a port that it does not have")),
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

/// The type of a constant that does not have one: i64 for whole numbers.
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

/// The id of each layer: the one it has, or one more than the largest before it.
fn ids(lines: &[LayerText]) -> impl Iterator<Item = LayerId> {
    lines.iter().scan(0_u64, |next, line| {
        let id = line.id.unwrap_or(*next);
        *next = id.saturating_add(1).max(*next);
        Some(LayerId(id))
    })
}

/// What the layers of a graph can be named by.
struct Names<'a> {
    ids: HashSet<LayerId>,
    /// Of several layers with one name the first.
    named: HashMap<&'a str, LayerId>,
}

impl<'a> Names<'a> {
    fn new(lines: &'a [LayerText]) -> Self {
        let mut named = HashMap::new();
        for (line, id) in lines.iter().zip(ids(lines)) {
            named.entry(line.name.as_str()).or_insert(id);
        }
        Self { ids: ids(lines).collect(), named }
    }

    /// The tensor that is named by an id or a name, and perhaps `.1` for the second output.
    fn find(&self, text: &str) -> Option<Output> {
        if let Some(layer) = self.read_layer(text) {
            return Some(Output { layer, port: 0 });
        }
        let (text, port) = text.rsplit_once('.')?;
        Some(Output { layer: self.read_layer(text)?, port: port.parse().ok()? })
    }

    fn read_layer(&self, text: &str) -> Option<LayerId> {
        let id = text.parse().ok().map(LayerId).filter(|id| self.ids.contains(id));
        id.or_else(|| self.named.get(text).copied())
    }

    /// One more than the last output of each layer that something uses.
    fn used_outputs(&self, lines: &[LayerText]) -> HashMap<LayerId, usize> {
        let mut used = HashMap::new();
        for name in lines.iter().flat_map(|line| &line.inputs).filter_map(|input| input.name.as_deref()) {
            // No operation has that number of outputs; the error is found where the input is connected.
            if let Some(output) = self.find(name).filter(|output| output.port < 1 << 16) {
                let count = used.entry(output.layer).or_default();
                *count = output.port.saturating_add(1).max(*count);
            }
        }
        used
    }
}

/// Whether types or shapes are left out.
fn is_incomplete(lines: &[LayerText]) -> bool {
    lines.iter().any(|line| {
        let outputs = line.outputs.as_ref();
        outputs.is_none_or(|outputs| outputs.iter().any(|output| output.shape.is_none()))
            || line.bodies.iter().any(|body| is_incomplete(&body.layers))
    })
}

/// Gives outputs the types and shapes that are written, which XML cannot hold whole, and the others those of `inferred`.
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
