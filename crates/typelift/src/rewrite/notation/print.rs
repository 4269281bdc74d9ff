//! Printing of graphs as listings.

use std::fmt::{self, Display, Formatter, Write};

use super::Quoted;
use super::value;
use crate::base::quoted::is_bare;
use crate::model::graph::{Body, Direction, Graph, IrVersion, Layer, LayerId, Model, Output, OutputPort, PortMapEntry};
use crate::model::weights::{Weights, stored_size};
use crate::ops::values::array::Array;
use crate::ops::{self, LayerKind};

/// Maximum number of a constant's values that are printed, unless all are equal.
const MOST_VALUES: usize = 32;
/// Number of values that are read to check if all are equal.
const MOST_READ: u64 = 1024;

/// Formats the graph as `typelift show` does, with the values of small constants.
impl Display for Model {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        ListingPrinter { out: f, weights: &self.weights, with_names: false }.print_graph(&self.graph, 0)
    }
}

/// Formats the graph as `typelift show` does. The values of constants are omitted, because they are not in the graph.
impl Display for Graph {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        ListingPrinter { out: f, weights: &Weights::default(), with_names: false }.print_graph(self, 0)
    }
}

/// Formats the layer and its bodies as `typelift show` does. Its producers are not known here, so each input is
/// printed as `_`.
impl Display for Layer {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let inputs = vec!["_".to_owned(); self.inputs().len()];
        ListingPrinter { out: f, weights: &Weights::default(), with_names: false }.print_layer(self, &inputs, 0)
    }
}

impl Model {
    /// Returns the whole model in the notation: the output of [`Display`] with the model's name, its IR version, and
    /// the names of tensors and of model outputs. `rt_info` and the values of large constants are omitted.
    ///
    /// # Examples
    /// ```
    /// let text = "x = Parameter : f32[2] \"images\"\nr = Result(x)\n";
    /// let model = typelift::Model::from_text(text)?;
    /// assert_eq!(model.to_text(), "0 x = Parameter : f32[2] \"images\"\n1 r = Result(0)\n");
    /// # Ok::<(), typelift::rewrite::notation::NotationError>(())
    /// ```
    pub fn to_text(&self) -> String {
        let mut out = String::new();
        if !self.name().is_empty() || self.version() != IrVersion::V11 {
            let _ = writeln!(out, "model {} version {}", Quoted::text(self.name()), self.version().number());
        }
        let _ = ListingPrinter { out: &mut out, weights: &self.weights, with_names: true }.print_graph(&self.graph, 0);
        out
    }
}

struct ListingPrinter<'a, W: Write> {
    out: &'a mut W,
    weights: &'a Weights,
    /// True if the names of tensors and of model outputs are printed.
    with_names: bool,
}

impl<W: Write> ListingPrinter<'_, W> {
    fn print_graph(&mut self, graph: &Graph, indent: usize) -> fmt::Result {
        for layer in graph.layers() {
            let inputs = graph.producers(layer.id()).into_iter().map(|feed| tensor(graph, feed));
            self.print_layer(layer, &inputs.collect::<Vec<_>>(), indent)?;
        }
        Ok(())
    }

    fn print_layer(&mut self, layer: &Layer, inputs: &[String], indent: usize) -> fmt::Result {
        writeln!(self.out, "{:indent$}{}", "", Line::with(layer, inputs, self.weights, self.with_names))?;
        for body in layer.bodies() {
            writeln!(self.out, "{:indent$}  {}:", "", body_line(layer, body))?;
            self.print_graph(&body.graph, indent + 4)?;
        }
        Ok(())
    }
}

/// Line of a listing, in sections: `3 sum = Add(0, 2) {auto_broadcast=none} : f32[2]`. `Display` joins them.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Line {
    /// The id of the layer.
    pub id: LayerId,
    /// The name, in quotes if needed.
    pub name: String,
    /// The operation, with its operation set if that identifies the revision.
    pub operation: String,
    /// The inputs, or the values of a constant, in parentheses; empty if there are none.
    pub arguments: String,
    /// The attributes in braces, except those that have their defaults or follow from the types; empty if there are
    /// none.
    pub attributes: String,
    /// The names of a model output.
    names: Vec<String>,
    /// The types and shapes of its outputs.
    pub outputs: String,
}

impl Line {
    /// Returns the line of a layer. With `folds`, constants are shown inside their consumers, as in patterns: `Add(0,
    /// 1.5)`, `MatMul(0, weight: const f16[64,64])`.
    ///
    /// # Examples
    /// ```
    /// use typelift::rewrite::notation::Line;
    /// let model = typelift::Model::from_text("x = Parameter : f32[2]\nc = Const(1.5) : f32[]\ny = Add(x, c)\n")?;
    /// let y = model.graph().layer(model.graph().find("y")?).unwrap();
    /// let line = Line::new(model.graph(), y, model.weights(), true);
    /// assert_eq!((line.operation.as_str(), line.arguments.as_str()), ("Add", "(0, 1.5)"));
    /// assert_eq!(line.to_string(), "2 y = Add(0, 1.5) : f32[2]");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn new(graph: &Graph, layer: &Layer, weights: &Weights, folds: bool) -> Self {
        let inputs = graph.producers(layer.id()).into_iter().map(|feed| {
            let source = feed.and_then(|feed| graph.layer(feed.layer));
            match source.filter(|source| folds && ops::kind(source) == LayerKind::Constant) {
                Some(source) => folded(source, weights),
                None => tensor(graph, feed),
            }
        });
        let inputs: Vec<_> = inputs.collect();
        Self::with(layer, &inputs, weights, false)
    }

    fn with(layer: &Layer, inputs: &[String], weights: &Weights, with_names: bool) -> Self {
        let values = constant(layer, weights).map(|array| value::print(&array));
        let has_arguments = !inputs.is_empty() || values.is_some();
        let arguments = values.unwrap_or_else(|| inputs.join(", "));
        let attributes: Vec<_> = telling_attributes(layer).collect();
        let names =
            layer.output_names().filter(|_| with_names).map(crate::model::graph::split_names).unwrap_or_default();
        let outputs: Vec<_> = layer.outputs().iter().map(|port| output(port, with_names)).collect();
        Self {
            id: layer.id(),
            name: Quoted::name(layer.name()).to_string(),
            operation: ListedOperation(layer).to_string(),
            arguments: if has_arguments { format!("({arguments})") } else { String::new() },
            attributes: if attributes.is_empty() { String::new() } else { format!("{{{}}}", attributes.join(", ")) },
            names,
            outputs: outputs.join(", "),
        }
    }
}

impl Display for Line {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} = {}{}", self.id, self.name, self.operation, self.arguments)?;
        if !self.attributes.is_empty() {
            write!(f, " {}", self.attributes)?;
        }
        for name in &self.names {
            write!(f, " {}", Quoted::text(name))?;
        }
        if self.outputs.is_empty() { Ok(()) } else { write!(f, " : {}", self.outputs) }
    }
}

/// Formats a constant inside its consumer: its values if they are few, otherwise its name and type.
fn folded(layer: &Layer, weights: &Weights) -> String {
    const FEW: u64 = 8;
    let outputs: Vec<_> = layer.outputs().iter().map(ToString::to_string).collect();
    let few = layer.outputs().first().and_then(|port| port.shape().element_count()).is_some_and(|count| count <= FEW);
    let values = constant(layer, weights).map(|array| value::print(&array));
    match values.filter(|values| few || !values.starts_with('[')) {
        Some(values) => values,
        None => format!("{}: const {}", Quoted::name(layer.name()), outputs.join(", ")),
    }
}

fn output(port: &OutputPort, with_names: bool) -> String {
    let mut text = port.to_string();
    for name in port.names().iter().filter(|_| with_names) {
        let _ = write!(text, " {}", Quoted::text(name));
    }
    text
}

/// Returns the line above a body: its name, and its connections to the layer.
#[must_use]
pub fn body_line(layer: &Layer, body: &Body) -> String {
    format!("{}{}", Quoted::word(body.name()), wiring(layer, body))
}

/// Operation with its operation set, which is omitted if it is the default.
struct ListedOperation<'a>(&'a Layer);

impl Display for ListedOperation<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let layer = self.0;
        write!(f, "{}", Quoted::word(layer.ty()))?;
        let version = layer.version();
        if ops::first_version(layer.ty()).as_deref() == Some(version) {
            return Ok(());
        }
        match version
            .strip_prefix("opset")
            .filter(|number| number.parse::<u8>().is_ok_and(|n| n.to_string() == **number))
        {
            Some(number) => write!(f, "-{number}"),
            None => write!(f, "-{}", Quoted::word(version)),
        }
    }
}

/// Formats `4`, or `4.1` if layer 4 has more than one output; `-` for none.
fn tensor(graph: &Graph, output: Option<Output>) -> String {
    match output {
        None => "-".to_owned(),
        Some(Output { layer, port }) if graph.layer(layer).is_some_and(|layer| layer.outputs().len() > 1) => {
            format!("{layer}.{port}")
        }
        Some(Output { layer, .. }) => layer.to_string(),
    }
}

fn constant(layer: &Layer, weights: &Weights) -> Option<Array> {
    let output = layer.outputs().first().filter(|_| ops::kind(layer) == LayerKind::Constant)?;
    let count = output.shape().element_count().filter(|&count| count <= MOST_READ)?;
    let length = usize::try_from(stored_size(output.element_type(), count)?).ok()?;
    let dims = output.shape().to_static()?.into_iter().map(usize::try_from).collect::<Result<_, _>>().ok()?;
    let bytes = weights.read(layer.byte_count("offset")?, length)?;
    let array = Array::decode(output.element_type(), dims, &bytes)?;
    let printable = count as usize <= MOST_VALUES || value::is_filled(&array);
    // Values that would not have the same bytes after parsing are omitted, such as those of `nf4`.
    (printable && array.encode().is_some_and(|again| again == bytes)).then_some(array)
}

/// The attributes that differ from their defaults and do not follow from the types.
fn telling_attributes(layer: &Layer) -> impl Iterator<Item = String> {
    let operation = layer.operation();
    let implied: &[&str] = match ops::kind(layer) {
        LayerKind::Parameter => &["shape", "element_type"],
        LayerKind::Constant => &["shape", "element_type", "offset", "size"],
        _ => &[],
    };
    let telling = layer.attributes().iter().filter(move |attribute| {
        let default = operation.and_then(|operation| operation.default_of(attribute.name()));
        default != Some(attribute.value()) && !implied.contains(&attribute.name())
    });
    telling.map(|attribute| format!("{}={}", Quoted::word(attribute.name()), attribute_value(attribute.value())))
}

/// Formats a value of an attribute: `a, b` as a list, other text unchanged.
fn attribute_value(text: &str) -> String {
    let items: Vec<_> = text.split(", ").collect();
    if items.len() > 1 && items.iter().all(|item| !item.is_empty() && item.chars().all(is_bare)) {
        return format!("[{text}]");
    }
    Quoted::word(text).to_string()
}

/// Formats the connections of a body to its layer: ` (in 1 -> 0, in 2 -> 3 {axis=0}, out 5 -> 0, back 6 -> 3)`.
fn wiring(layer: &Layer, body: &Body) -> String {
    let entry = |entry: &PortMapEntry| {
        let ids: Vec<_> = match entry.direction {
            Direction::Input => layer.inputs().iter().map(|port| port.id()).collect(),
            Direction::Output => layer.outputs().iter().map(|port| port.id()).collect(),
        };
        let position = ids.iter().position(|&id| i64::try_from(id) == Ok(entry.external_port_id));
        let outer = position.map_or("-".to_owned(), |at| at.to_string());
        let inner = entry.internal_layer_id;
        let mut text = match entry.direction {
            Direction::Input => format!("in {outer} -> {inner}"),
            Direction::Output => format!("out {inner} -> {outer}"),
        };
        let numbers = [("axis", entry.axis), ("start", entry.start), ("end", entry.end)];
        let numbers = numbers.into_iter().chain([("stride", entry.stride), ("part_size", entry.part_size)]);
        let mut details: Vec<_> = numbers.filter_map(|(name, value)| Some(format!("{name}={}", value?))).collect();
        details.extend(entry.purpose().map(|purpose| Quoted::word(purpose).to_string()));
        if !details.is_empty() {
            let _ = write!(text, " {{{}}}", details.join(", "));
        }
        text
    };
    let mut ties: Vec<_> = body.port_map.iter().map(entry).collect();
    ties.extend(body.back_edges.iter().map(|edge| format!("back {} -> {}", edge.from, edge.to)));
    if ties.is_empty() { String::new() } else { format!(" ({})", ties.join(", ")) }
}
