//! A layer of the file, as plain data.

use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use compact_str::{CompactString, format_compact};
use serde::Serialize;
use smallvec::SmallVec;
use typelift_promote::ElementType;

use super::{Graph, LayerId, Text};
use crate::base::hash::HashSet;
use crate::base::number;
use crate::base::span::Span;
use crate::model::shape::{Shape, TensorType};

/// A node of the graph: an operation with its attributes, ports and bodies, as written in the file.
///
/// A layer knows its operation only by name, so layers of operations unknown to [`ops`](crate::ops) are kept unchanged.
#[derive(Clone)]
pub struct Layer {
    pub(crate) id: LayerId,
    pub(crate) name: Text,
    pub(crate) operation_name: Arc<OperationName>,
    /// Boxed to keep a layer small: only Results have names of outputs.
    pub(crate) output_names: Option<Box<Text>>,
    pub(crate) attributes: AttributeList,
    /// Shared by layers with equal `<input>` text.
    pub(crate) inputs: Arc<[InputPort]>,
    pub(crate) outputs: SmallVec<[OutputPort; 1]>,
    pub(crate) bodies: Box<[Body]>,
    /// The text of `<rt_info>`, from the file or set by an edit.
    pub(crate) rt_info: Option<Text>,
    /// The position in the file; `None` for an added layer.
    pub(crate) span: Option<Span>,
    /// True if names or attributes may differ from the text of `span`.
    pub(crate) edited: bool,
    /// True if inputs are connected differently from the file, so that the text of their ports may be out of date.
    pub(crate) rewired: bool,
    /// True if an edge of the file to this layer is invalid. That was reported, so further errors of the layer are
    /// suppressed.
    pub(crate) broken: bool,
    /// True if inference used a value computed by a ConvertPromoteTypes in this layer or its bodies. OpenVINO does not
    /// compute such values, so it knows more after the promotion is lowered.
    pub(crate) lacks_values: bool,
    /// True if the current batch of edits removed the layer.
    pub(super) gone: bool,
}

impl Layer {
    pub(crate) fn new(ty: &str, version: &str, name: &str) -> Self {
        Self::of(OperationName::new(ty, version), name.into())
    }

    pub(crate) fn of(operation_name: Arc<OperationName>, name: Text) -> Self {
        Self {
            id: LayerId(0),
            name,
            operation_name,
            output_names: None,
            attributes: AttributeList::default(),
            inputs: Arc::default(),
            outputs: SmallVec::new(),
            bodies: Box::default(),
            rt_info: None,
            span: None,
            edited: false,
            rewired: false,
            broken: false,
            lacks_values: false,
            gone: false,
        }
    }

    pub(crate) fn with_attribute(mut self, name: &str, value: &str) -> Self {
        self.attributes.to_mut().push(Attribute { name: name.into(), value: value.into() });
        self
    }

    pub(crate) fn with_output(mut self, element_type: ElementType, shape: Shape) -> Self {
        self.outputs.push(OutputPort::new(element_type, shape));
        self
    }

    /// Returns the id in the file, unique in its graph.
    pub fn id(&self) -> LayerId {
        self.id
    }

    /// Returns the name. Names may repeat.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the operation as the file spells it: `Add`, `Const`, `ReLU`.
    pub fn ty(&self) -> &str {
        self.operation_name.ty()
    }

    /// Returns the role of a layer that OpenVINO's reader starts from: Parameter, Result or Assign; `None` for any
    /// other layer.
    ///
    /// The reader creates every Parameter, and then every layer that a Result or an Assign depends on. It ignores the
    /// rest of the file. At this point it compares only the text of `type`, with case and without the operation set.
    /// [`ops::kind`](crate::ops::kind()) returns the role of a created layer.
    pub fn start(&self) -> Option<Start> {
        match self.ty() {
            "Parameter" => Some(Start::Parameter),
            "Result" => Some(Start::Result),
            "Assign" => Some(Start::Assign),
            _ => None,
        }
    }

    /// Returns the operation set as the file spells it: `opset1`, `extension`.
    pub fn version(&self) -> &str {
        &self.operation_name.version
    }

    /// Returns the names of a Result's model output, as the file writes them.
    pub fn output_names(&self) -> Option<&str> {
        self.output_names.as_ref().map(|names| &***names)
    }

    /// Returns the attributes of its `<data>`, in the order of the file.
    pub fn attributes(&self) -> &[Attribute] {
        &self.attributes
    }

    /// Returns the value of an attribute as the file spells it; `None` if the layer does not have it.
    pub fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|attribute| attribute.name == name).map(|attribute| attribute.value.as_str())
    }

    pub(crate) fn named_type(&self, attribute: &str) -> Option<ElementType> {
        ElementType::from_name(self.attribute(attribute)?.trim())
    }

    pub(crate) fn byte_count(&self, name: &str) -> Option<u64> {
        number::bytes(self.attribute(name)?)
    }

    /// Returns the input ports, in order.
    pub fn inputs(&self) -> &[InputPort] {
        &self.inputs
    }

    /// Returns the output ports, in order.
    pub fn outputs(&self) -> &[OutputPort] {
        &self.outputs
    }

    /// Returns the graphs inside it: one for `Loop` and `TensorIterator`, two for `If`.
    pub fn bodies(&self) -> &[Body] {
        &self.bodies
    }

    /// Unused labels for additional ports, in order.
    pub(super) fn free_labels(&self) -> impl Iterator<Item = u64> + use<> {
        let labels = self.inputs.iter().map(|port| port.id).chain(self.outputs.iter().map(|port| port.id));
        let (mut taken, mut start) = (HashSet::default(), 0);
        match labels.clone().max() {
            Some(largest) if largest < LayerId::LARGEST => start = largest + 1,
            Some(_) => taken = labels.collect(),
            None => {}
        }
        (start..).filter(move |label| !taken.contains(label))
    }

    /// For an output that does not exist yet, the label that it will get.
    pub(crate) fn output_label(&self, port: usize) -> i64 {
        let missing = port.saturating_sub(self.outputs.len());
        let label = self.outputs.get(port).map(|port| port.id).or_else(|| self.free_labels().nth(missing));
        label.and_then(|label| i64::try_from(label).ok()).unwrap_or(i64::MAX)
    }

    /// Removes positions in the file, because the layer is moved to another file.
    pub(super) fn leave_file(&mut self) {
        self.span = None;
        let inputs = self.inputs.iter().map(|port| InputPort { content: Span::default(), ..port.clone() });
        self.inputs = inputs.collect();
        self.outputs.iter_mut().for_each(|port| port.content = Span::default());
        self.bodies.iter_mut().for_each(|body| body.graph.leave_file());
    }

    /// Returns the position in the file; `None` for an added layer.
    pub fn span(&self) -> Option<Span> {
        self.span
    }
}

/// Role of a layer that OpenVINO's reader starts from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Start {
    /// An input.
    Parameter,
    /// An output.
    Result,
    /// Stores a tensor in a variable.
    Assign,
}

/// Formats operation, id, name and outputs.
impl fmt::Debug for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} `{}`", self.operation_name, self.id, self.name)?;
        self.outputs
            .iter()
            .enumerate()
            .try_for_each(|(at, port)| write!(f, "{} {port}", if at == 0 { ":" } else { "," }))
    }
}

/// Operation as a file names it, shared by layers with the same operation.
#[derive(Debug)]
pub(crate) struct OperationName {
    ty: CompactString,
    version: CompactString,
    /// Row of the operation table, cached after the first lookup. The graph itself is independent of the table.
    row: OnceLock<Option<u16>>,
}

impl OperationName {
    pub(crate) fn new(ty: &str, version: &str) -> Arc<Self> {
        Arc::new(Self { ty: ty.into(), version: version.into(), row: OnceLock::new() })
    }

    pub(crate) fn ty(&self) -> &str {
        &self.ty
    }

    /// `look_up` is called only once, with type and version.
    pub(crate) fn row(&self, look_up: impl FnOnce(&str, &str) -> Option<u16>) -> Option<u16> {
        *self.row.get_or_init(|| look_up(&self.ty, &self.version))
    }
}

/// Formats as `Add-opset1`.
impl fmt::Display for OperationName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.ty, self.version)
    }
}

impl PartialEq for OperationName {
    fn eq(&self, other: &Self) -> bool {
        (&self.ty, &self.version) == (&other.ty, &other.version)
    }
}

/// Attributes of a layer, shared by layers with the same attributes.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct AttributeList(Option<Arc<InlineAttributes>>);

/// Inline storage for four attributes, as many as a constant has.
type InlineAttributes = SmallVec<[Attribute; 4]>;

impl AttributeList {
    /// A shared list is copied first.
    pub(crate) fn to_mut(&mut self) -> &mut InlineAttributes {
        Arc::make_mut(self.0.get_or_insert_default())
    }

    /// The address of the list if other layers share it. It is a valid cache key as long as one of them exists.
    pub(crate) fn shared_at(&self) -> Option<*const ()> {
        self.0.as_ref().filter(|list| Arc::strong_count(list) > 1).map(|list| Arc::as_ptr(list).cast())
    }
}

impl Deref for AttributeList {
    type Target = [Attribute];

    fn deref(&self) -> &[Attribute] {
        self.0.as_deref().map_or(&[], InlineAttributes::as_slice)
    }
}

impl FromIterator<Attribute> for AttributeList {
    fn from_iter<I: IntoIterator<Item = Attribute>>(attributes: I) -> Self {
        InlineAttributes::from_iter(attributes).into()
    }
}

impl From<InlineAttributes> for AttributeList {
    fn from(attributes: InlineAttributes) -> Self {
        Self((!attributes.is_empty()).then(|| Arc::new(attributes)))
    }
}

/// Description of a layer to [`add`](crate::edit::Edit::add) to a graph, or of an operation that
/// [replaces](crate::edit::Edit::replace_in_place) that of a layer.
#[derive(Clone, Debug, PartialEq)]
pub struct NewLayer {
    pub(crate) operation_name: Arc<OperationName>,
    pub(crate) name: Option<Text>,
    /// The name before that of the operation in a default name.
    pub(crate) scope: Option<Text>,
    pub(crate) attributes: AttributeList,
    pub(crate) outputs: SmallVec<[TensorType; 1]>,
    pub(crate) bodies: Vec<CompactString>,
}

impl NewLayer {
    /// Creates it from an operation and its operation set, as a file spells them: `NewLayer::new("Softmax", "opset8")`.
    pub fn new(ty: &str, version: &str) -> Self {
        Self {
            operation_name: OperationName::new(ty, version),
            name: None,
            scope: None,
            attributes: AttributeList::default(),
            outputs: SmallVec::new(),
            bodies: Vec::new(),
        }
    }

    /// Creates a Convert to this type.
    pub fn convert(to: ElementType) -> Self {
        Self::new("Convert", "opset1").with_attribute("destination_type", to.name())
    }

    /// Sets the name. By default an added layer is named after its operation and id, `Softmax_12`, and a replaced layer
    /// keeps its name.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Sets the name of which a default name is derived: `layers.3.gate/Softmax_12` for `layers.3.gate`.
    pub(crate) fn inside(mut self, scope: &str) -> Self {
        self.scope = Some(scope.into());
        self
    }

    /// Adds an attribute.
    #[must_use]
    pub fn with_attribute(mut self, name: &str, value: impl fmt::Display) -> Self {
        self.attributes.to_mut().push(Attribute { name: name.into(), value: format_compact!("{value}") });
        self
    }

    /// Adds an empty body: `body` of a Loop or TensorIterator, `then_body` and `else_body` of an If.
    /// [`Edit::set_port_map`](crate::edit::Edit::set_port_map) connects it to the layer after its layers are added.
    #[must_use]
    pub fn with_body(mut self, name: &str) -> Self {
        self.bodies.push(name.into());
        self
    }

    /// Adds an output, for an operation that has no inference rule. Otherwise the outputs follow from the rule.
    pub(crate) fn with_output(mut self, element_type: ElementType, shape: Shape) -> Self {
        self.outputs.push(TensorType { element_type, shape });
        self
    }
}

/// Attribute of a layer's `<data>`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Attribute {
    pub(crate) name: CompactString,
    pub(crate) value: CompactString,
}

impl Attribute {
    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the value, with XML escapes resolved.
    pub fn value(&self) -> &str {
        &self.value
    }
}

/// Input of a layer. Type and shape are those of the output that feeds it.
#[derive(Clone, Debug)]
pub struct InputPort {
    pub(crate) id: u64,
    /// The type declared in the text; `None` for an unknown type.
    pub(crate) declared: Option<ElementType>,
    /// The text between the port's tags, which holds the declared dimensions. Equal ports share it.
    pub(crate) content: Span,
}

impl InputPort {
    pub(super) fn new(id: u64) -> Self {
        Self { id, declared: None, content: Span::default() }
    }

    /// Returns the label by which edges name it.
    pub fn id(&self) -> u64 {
        self.id
    }
}

/// Output of a layer. It is the only place that stores the element type and shape of a tensor.
#[derive(Clone, Debug)]
pub struct OutputPort {
    pub(crate) id: u64,
    pub(crate) element_type: ElementType,
    pub(crate) declared: Option<ElementType>,
    /// True if type or shape differ from the text of the file.
    pub(crate) stale: bool,
    pub(crate) shape: Shape,
    pub(crate) names: Option<Text>,
    /// The text between the port's tags, which holds the declared dimensions.
    pub(crate) content: Span,
    pub(crate) rt_info: Option<Text>,
}

impl OutputPort {
    pub(crate) fn new(element_type: ElementType, shape: Shape) -> Self {
        Self {
            id: 0,
            element_type,
            declared: None,
            stale: false,
            shape,
            names: None,
            content: Span::default(),
            rt_info: None,
        }
    }

    /// Returns the label by which edges name it.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Returns the element type of the tensor.
    pub fn element_type(&self) -> ElementType {
        self.element_type
    }

    /// Returns the shape of the tensor, as far as it is known.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Returns element type and shape of the tensor.
    pub fn tensor_type(&self) -> TensorType {
        TensorType { element_type: self.element_type, shape: self.shape.clone() }
    }

    /// Returns the names of the tensor. The file separates them by commas, and writes `\,` for a comma inside a name.
    pub fn names(&self) -> Vec<String> {
        self.names.as_deref().map(split_names).unwrap_or_default()
    }

    /// Iterates over [the names](Self::names), which are borrowed unless they have commas.
    pub fn each_name(&self) -> impl Iterator<Item = Cow<'_, str>> {
        self.names.as_deref().into_iter().flat_map(parts_of_names)
    }
}

/// Formats element type and shape: `f32[?,3]`.
impl fmt::Display for OutputPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.element_type, self.shape)
    }
}

/// Splits a `names` attribute at commas, where `\,` is a comma inside a name. Empty names are ignored.
#[must_use]
pub fn split_names(text: &str) -> Vec<String> {
    let mut names = Vec::<String>::new();
    for piece in text.split(',') {
        match names.last_mut() {
            Some(name) if name.ends_with('\\') => name.replace_range(name.len() - 1.., &[",", piece].concat()),
            _ => names.push(piece.to_owned()),
        }
    }
    names.retain(|name| !name.is_empty());
    names
}

/// [`split_names`] without copies if no name has a comma.
pub(crate) fn parts_of_names(text: &str) -> impl Iterator<Item = Cow<'_, str>> {
    let (plain, escaped) = if text.contains('\\') { ("", split_names(text)) } else { (text, Vec::new()) };
    plain.split(',').filter(|name| !name.is_empty()).map(Cow::Borrowed).chain(escaped.into_iter().map(Cow::Owned))
}

/// Joins names in the writer's form: sorted by bytes, with `\,` for a comma inside a name.
pub(crate) fn join_names(mut names: Vec<String>) -> Text {
    names.sort_unstable();
    names.dedup();
    names.iter().map(|name| name.replace(',', "\\,")).collect::<Vec<_>>().join(",").into()
}

/// A graph inside a layer, with the connections between the layer's ports and the body's Parameters and Results.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Body {
    pub(crate) name: CompactString,
    /// The graph of the body, which has its own ids. [`Edit::body`](crate::edit::Edit::body) changes it.
    pub graph: Graph,
    /// The inputs and outputs of the body, in the order of the file.
    pub port_map: Vec<PortMapEntry>,
    /// The back edges: from a Result to the Parameter that receives its value in the next iteration.
    pub back_edges: Vec<BackEdge>,
    /// True if the XML text of port map and back edges is out of date.
    pub(crate) rejoined: bool,
}

impl Body {
    pub(crate) fn empty(name: &str) -> Self {
        let graph = Graph::default();
        Self { name: name.into(), graph, port_map: Vec::new(), back_edges: Vec::new(), rejoined: false }
    }

    /// Returns the XML element that stores it: `body`, `then_body`, `else_body`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The XML element that stores the port map of a body: `then_port_map` for `then_body`.
    pub(crate) fn port_map_name(body: &str) -> String {
        body.replace("body", "port_map")
    }
}

/// Connections between a body and the layer around it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Joints<'a> {
    pub(super) port_map: &'a [PortMapEntry],
    pub(super) back_edges: &'a [BackEdge],
}

impl Joints<'_> {
    pub(crate) fn name(self, layer: LayerId) -> bool {
        self.port_map.iter().any(|entry| entry.internal_layer_id == layer)
            || self.back_edges.iter().any(|edge| [edge.from, edge.to].contains(&layer))
    }
}

/// Entry of a body's port map.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PortMapEntry {
    /// The direction: into or out of the body.
    pub direction: Direction,
    /// The port of the layer; -1 for a value that only the loop itself uses.
    pub external_port_id: i64,
    /// The body's Parameter or Result.
    pub internal_layer_id: LayerId,
    /// The axis of slicing or concatenation, if there is one.
    pub axis: Option<i64>,
    /// First index along the axis.
    pub start: Option<i64>,
    /// Last index along the axis; -1 is the end.
    pub end: Option<i64>,
    /// Step along the axis.
    pub stride: Option<i64>,
    /// Length of one slice along the axis.
    pub part_size: Option<i64>,
    pub(crate) purpose: Option<CompactString>,
}

impl PortMapEntry {
    fn new(direction: Direction, port: i64, layer: LayerId) -> Self {
        Self {
            direction,
            external_port_id: port,
            internal_layer_id: layer,
            axis: None,
            start: None,
            end: None,
            stride: None,
            part_size: None,
            purpose: None,
        }
    }

    /// Connects an input of the layer, counted from 0, to this Parameter.
    pub fn input(port: usize, parameter: LayerId) -> Self {
        Self::new(Direction::Input, i64::try_from(port).unwrap_or(i64::MAX), parameter)
    }

    /// Connects this Result to an output of the layer, counted from 0.
    pub fn output(port: usize, result: LayerId) -> Self {
        Self::new(Direction::Output, i64::try_from(port).unwrap_or(i64::MAX), result)
    }

    /// Marks the value as the loop's own `execution_condition` or `current_iteration`.
    #[must_use]
    pub fn with_purpose(mut self, purpose: &str) -> Self {
        self.external_port_id = -1;
        self.purpose = Some(purpose.into());
        self
    }

    /// Returns `current_iteration` or `execution_condition`, if the loop itself provides or uses the value.
    #[must_use]
    pub fn purpose(&self) -> Option<&str> {
        self.purpose.as_deref()
    }
}

/// Direction of a value: into or out of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// From the layer's input to a Parameter.
    Input,
    /// From a Result to the layer's output.
    Output,
}

/// A value passed from one iteration to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct BackEdge {
    /// The body's Result.
    pub from: LayerId,
    /// The body's Parameter.
    pub to: LayerId,
}
