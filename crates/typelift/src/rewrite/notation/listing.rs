//! Parsing of a listing's lines.

use std::ops::Range;

use typelift_promote::ElementType;

use super::{Cursor, Literal, NotationError};
use crate::base::foreign;
use crate::base::names::nearest;
use crate::base::quoted::is_bare;
use crate::model::graph::{Direction, IrVersion};
use crate::model::shape::Shape;
use crate::ops;

/// Limit on the nesting of bodies.
const DEEPEST: usize = 64;

pub(super) struct Listing {
    pub(super) name: String,
    pub(super) version: IrVersion,
    pub(super) layers: Vec<LayerText>,
}

#[derive(Default)]
pub(super) struct LayerText {
    pub(super) span: Range<usize>,
    /// The id; if it is omitted, it is one more than the largest before it.
    pub(super) id: Option<u64>,
    pub(super) name: String,
    pub(super) ty: String,
    pub(super) version: String,
    pub(super) values: Option<Literal>,
    pub(super) inputs: Vec<InputText>,
    pub(super) attributes: Vec<(String, String)>,
    pub(super) output_names: Vec<String>,
    /// The outputs; `None` if they are omitted.
    pub(super) outputs: Option<Vec<OutputText>>,
    pub(super) bodies: Vec<BodyText>,
}

pub(super) struct InputText {
    pub(super) span: Range<usize>,
    /// The name of the tensor; `None` for an unconnected input.
    pub(super) name: Option<String>,
}

pub(super) struct OutputText {
    pub(super) element_type: ElementType,
    pub(super) shape: Option<Shape>,
    pub(super) names: Vec<String>,
}

pub(super) struct BodyText {
    pub(super) name: String,
    pub(super) ties: Vec<Tie>,
    pub(super) layers: Vec<LayerText>,
}

/// Connection of a body to its layer.
pub(super) enum Tie {
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

struct ListedGraph {
    /// The indentation of its lines, set by the first of them.
    indent: Option<usize>,
    /// A line with at most this indentation ends the graph.
    outer: Option<usize>,
    layers: Vec<LayerText>,
}

impl Listing {
    pub(super) fn read(text: &str) -> Result<Self, NotationError> {
        let mut listing = Self { name: String::new(), version: IrVersion::V11, layers: Vec::new() };
        let mut frames = vec![ListedGraph { indent: None, outer: None, layers: Vec::new() }];
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
                frames.push(ListedGraph { indent: None, outer: Some(indent), layers: Vec::new() });
                continue;
            }
            frame.indent = Some(indent);
            frame.layers.push(layer_line(&mut cursor)?);
        }
        close_frames(&mut frames, |frame| frame.outer.is_some());
        listing.layers = frames.pop().map(|frame| frame.layers).unwrap_or_default();
        Ok(listing)
    }
}

/// Ends graphs that are complete, and adds each to its layer.
fn close_frames(frames: &mut Vec<ListedGraph>, is_over: impl Fn(&ListedGraph) -> bool) {
    while frames.len() > 1
        && let Some(frame) = frames.pop_if(|frame| is_over(frame))
    {
        let owner = frames.last_mut().and_then(|outer| outer.layers.last_mut());
        if let Some(body) = owner.and_then(|owner| owner.bodies.last_mut()) {
            body.layers = frame.layers;
        }
    }
}

/// Parses `model "name" version 11`, if it comes next.
fn header(cursor: &mut Cursor) -> Result<Option<(String, IrVersion)>, NotationError> {
    if cursor.find(|ahead| (ahead.word() == "model" && !ahead.sees("=")).then_some(())).is_none() {
        return Ok(None);
    }
    let name = cursor.name("the name of the model")?;
    let mut version = IrVersion::V11;
    if !cursor.is_done() {
        let at = cursor.at;
        version = match (cursor.word(), cursor.word()) {
            ("version", "10") => IrVersion::V10,
            ("version", "11") => IrVersion::V11,
            _ => return Err(cursor.error(at..cursor.at, "expected `version 10` or `version 11`")),
        };
    }
    finish(cursor)?;
    Ok(Some((name, version)))
}

fn finish(cursor: &mut Cursor) -> Result<(), NotationError> {
    if cursor.is_done() { Ok(()) } else { Err(cursor.expected("the end of the line")) }
}

/// Parses `3 sum = Add(0, 2) {auto_broadcast=none} : f32[1,?,3..5] "sum"`.
fn layer_line(cursor: &mut Cursor) -> Result<LayerText, NotationError> {
    let start = cursor.start();
    let first = cursor.name("the id or the name of a layer")?;
    let (id, name) = match first.parse() {
        Ok(id) if cursor.sees("=") => (Some(id), first),
        Ok(id) => (Some(id), cursor.name("the name of a layer")?),
        Err(_) => (None, first),
    };
    cursor.expect("=")?;
    let (ty, version) = operation(cursor)?;
    let mut line = LayerText { span: start..cursor.at, id, name, ty, version, ..LayerText::default() };
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

/// Parses `Add`, `Softmax-8`, `Custom-extension`.
fn operation(cursor: &mut Cursor) -> Result<(String, String), NotationError> {
    let start = cursor.start();
    let quoted = cursor.quoted()?;
    let ty = quoted.unwrap_or_else(|| cursor.run(|c| is_bare(c) && c != '-').to_owned());
    if ty.is_empty() {
        return Err(cursor.expected("an operation"));
    }
    let span = start..cursor.at;
    if cursor.eat_here("-") {
        let version = cursor.quoted()?.unwrap_or_else(|| cursor.run(is_bare).to_owned());
        let is_number = version.parse::<u8>().is_ok();
        return Ok((ty, if is_number { format!("opset{version}") } else { version }));
    }
    match ops::revisions(&ty).first() {
        Some(row) => Ok((ops::file_spelling(row.name).to_owned(), ops::first_version(&ty).unwrap_or_default())),
        None => {
            let error = cursor.error(span, format!("`{ty}` is not an operation"));
            let extension = || format!("write `{ty}-extension` for an operation of an extension");
            Err(match ops::meant(&ty) {
                Some(meant) => error.with_meant(meant),
                None => error.with_help(extension()).with_near(nearest(&ty, ops::all().map(|row| row.name))),
            })
        }
    }
}

/// Parses `0, 4.1, "a b"` and the closing parenthesis.
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

/// Parses `axis=1, pads=[0, 1]}`.
fn attributes(cursor: &mut Cursor) -> Result<Vec<(String, String)>, NotationError> {
    let mut attributes: Vec<(String, String)> = Vec::new();
    while !cursor.eat("}") {
        if !attributes.is_empty() {
            cursor.expect(",")?;
        }
        let start = cursor.start();
        let name = word(cursor, "the name of an attribute")?;
        if attributes.iter().any(|(other, _)| *other == name) {
            return Err(cursor.error(start..cursor.at, format!("the attribute `{name}` appears twice")));
        }
        cursor.expect("=")?;
        attributes.push((name, attribute_value(cursor)?));
    }
    Ok(attributes)
}

/// Parses a word without quotes, or any text in quotes.
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

/// Parses the value of an attribute, and returns it as files write it: the items of a list with `, ` between them.
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

/// Parses texts in quotes, one after the other.
fn names(cursor: &mut Cursor) -> Result<Vec<String>, NotationError> {
    let mut names = Vec::new();
    cursor.skip_space();
    while let Some(name) = cursor.quoted()? {
        names.push(name);
        cursor.skip_space();
    }
    Ok(names)
}

/// Parses `f32[1,?] "a" "b", i64[]`.
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

/// Parses `f32[1,?]`, or `f32`.
pub(crate) fn tensor_type(cursor: &mut Cursor) -> Result<(ElementType, Option<Shape>), NotationError> {
    Ok((element_type(cursor)?, shape(cursor)?))
}

/// Parses `f32`.
pub(crate) fn element_type(cursor: &mut Cursor) -> Result<ElementType, NotationError> {
    let start = cursor.start();
    let name = cursor.word();
    if name.is_empty() {
        return Err(cursor.expected("an element type"));
    }
    ElementType::from_name(name).ok_or_else(|| {
        let error = cursor.error(start..cursor.at, format!("`{name}` is not an element type"));
        let near = foreign::element_type(name).map(ElementType::name);
        error.with_help("element types are f32, f16, bf16, i64, i32, u8, boolean, …").with_near(near)
    })
}

/// Parses `[1,?,3..5]` directly here.
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

/// Parses `body (in 1 -> 0, in 2 -> 3 {axis=0}, out 5 -> 0, back 6 -> 3):`.
fn body_line(cursor: &mut Cursor) -> Result<BodyText, NotationError> {
    let start = cursor.start();
    let name = cursor.quoted()?.unwrap_or_else(|| cursor.run(|c| is_bare(c) && c != ':').to_owned());
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
        let help = "a line with more indentation than its layer must start a body: `body (in 0 -> 0, out 2 -> 0):`";
        return Err(cursor.error(start..cursor.at.max(start + 1), "expected a body").with_help(help));
    }
    finish(cursor)?;
    Ok(BodyText { name, ties, layers: Vec::new() })
}

fn tie(cursor: &mut Cursor) -> Result<Tie, NotationError> {
    let start = cursor.start();
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
            let at = cursor.start();
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

/// Parses a number, or `-` for an absent one.
fn tie_end(cursor: &mut Cursor) -> Result<Option<u64>, NotationError> {
    if cursor.sees("-") && !cursor.sees("->") {
        cursor.eat("-");
        return Ok(None);
    }
    cursor.word().parse().map(Some).map_err(|_| cursor.expected("a number"))
}
