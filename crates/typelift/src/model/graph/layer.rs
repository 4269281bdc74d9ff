//! One layer: what the file says of it, as plain data.

use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use compact_str::{CompactString, format_compact};
use rustc_hash::FxHashSet;
use serde::Serialize;
use smallvec::SmallVec;
use typelift_promote::ElementType;

use super::{Graph, LayerId, Text};
use crate::base::number;
use crate::base::span::Span;
use crate::model::shape::{Shape, TensorType};

/// A node of the graph: an operation with its attributes, ports and bodies, as written in the file.
///
/// A layer knows its operation by name only, so every layer, known to [`ops`](crate::ops) or not, goes through unharmed.
#[derive(Clone)]
pub struct Layer {
    pub(crate) id: LayerId,
    pub(crate) name: Text,
    pub(crate) operation_name: Arc<OperationName>,
    /// In a box because few layers have some.
    pub(crate) output_names: Option<Box<Text>>,
    pub(crate) attributes: AttributeList,
    /// Shared by layers whose `<input>` is written alike.
    pub(crate) inputs: Arc<[InputPort]>,
    pub(crate) outputs: SmallVec<[OutputPort; 1]>,
    pub(crate) bodies: Box<[Body]>,
    /// Its `<rt_info>`: that of the file, or one that was made.
    pub(crate) rt_info: Option<Text>,
    /// Where the file has it; `None` for a layer that was added.
    pub(crate) span: Option<Span>,
    /// Whether names or attributes may differ from the text of `span`.
    pub(crate) edited: bool,
    /// Whether inputs come from elsewhere than the file says, so that the text of their ports may be outdated.
    pub(crate) rewired: bool,
    /// True if an edge to this layer could not be followed, which was reported: suppresses follow-up errors.
    pub(crate) broken: bool,
    /// Whether the rule of the layer, or of one inside of it, asked for values that come out of a ConvertPromoteTypes when
    /// types and shapes were inferred last: OpenVINO evaluates none, so more is known without it.
    pub(crate) lacks_values: bool,
    /// Whether the batch of edits under way took it out.
    pub(super) gone: bool,
}

impl Layer {
    pub(crate) fn new(ty: &str, version: &str, name: &str) -> Self {
        Self::of(OperationName::new(ty, version), name.into())
    }

    /// A layer of this operation, without anything.
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

    /// The same with one more attribute.
    #[must_use]
    pub(crate) fn with_attribute(mut self, name: &str, value: &str) -> Self {
        self.attributes.to_mut().push(Attribute { name: name.into(), value: value.into() });
        self
    }

    /// The same with one more output.
    #[must_use]
    pub(crate) fn with_output(mut self, element_type: ElementType, shape: Shape) -> Self {
        self.outputs.push(OutputPort::new(element_type, shape));
        self
    }

    /// Its number in the file, unique in its graph.
    pub fn id(&self) -> LayerId {
        self.id
    }

    /// Its name. Names may repeat.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The operation as the file spells it: `Add`, `Const`, `ReLU`.
    pub fn ty(&self) -> &str {
        self.operation_name.ty()
    }

    /// As what OpenVINO's reader looks for the layer; `None` where it creates the layer only if it leads to one of these.
    ///
    /// The reader creates every Parameter, and then whatever leads to a Result or an Assign; it drops the rest of the file.
    /// It finds these by the text of `type`, before it knows of operations: here case matters, and the operation set does
    /// not. What a layer is once it was created, [`ops::kind`](crate::ops::kind()) says.
    pub fn start(&self) -> Option<Start> {
        match self.ty() {
            "Parameter" => Some(Start::Parameter),
            "Result" => Some(Start::Result),
            "Assign" => Some(Start::Assign),
            _ => None,
        }
    }

    /// The operation set as the file spells it: `opset1`, `extension`.
    pub fn version(&self) -> &str {
        &self.operation_name.version
    }

    /// The names of the model output that a Result is, as the file writes them.
    pub fn output_names(&self) -> Option<&str> {
        self.output_names.as_ref().map(|names| &***names)
    }

    /// The attributes of its `<data>`, in the order of the file.
    pub fn attributes(&self) -> &[Attribute] {
        &self.attributes
    }

    /// The value of an attribute as written, where it is written.
    pub fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|attribute| attribute.name == name).map(|attribute| attribute.value.as_str())
    }

    /// The number of bytes that an attribute of a constant says, `offset` or `size`.
    pub(crate) fn byte_count(&self, name: &str) -> Option<u64> {
        number::bytes(self.attribute(name)?)
    }

    /// Its input ports, in order.
    pub fn inputs(&self) -> &[InputPort] {
        &self.inputs
    }

    /// Its output ports, in order.
    pub fn outputs(&self) -> &[OutputPort] {
        &self.outputs
    }

    /// The graphs inside it: one for `Loop` and `TensorIterator`, two for `If`.
    pub fn bodies(&self) -> &[Body] {
        &self.bodies
    }

    /// Labels for more ports, in order: those above the largest or, if that does not work, the smallest that no port has.
    pub(super) fn free_labels(&self) -> impl Iterator<Item = u64> + use<> {
        let labels = self.inputs.iter().map(|port| port.id).chain(self.outputs.iter().map(|port| port.id));
        let (mut taken, mut start) = (FxHashSet::default(), 0);
        match labels.clone().max() {
            Some(largest) if largest < LayerId::LARGEST => start = largest + 1,
            Some(_) => taken = labels.collect(),
            None => {}
        }
        (start..).filter(move |label| !taken.contains(label))
    }

    /// The label that an output has, or gets once there are as many outputs.
    pub(crate) fn output_label(&self, port: usize) -> i64 {
        let missing = port.saturating_sub(self.outputs.len());
        let label = self.outputs.get(port).map(|port| port.id).or_else(|| self.free_labels().nth(missing));
        label.and_then(|label| i64::try_from(label).ok()).unwrap_or(i64::MAX)
    }

    /// Forgets where a file has what is in here, which is to be in another file.
    pub(super) fn leave_file(&mut self) {
        self.span = None;
        let inputs = self.inputs.iter().map(|port| InputPort { content: Span::default(), ..port.clone() });
        self.inputs = inputs.collect();
        self.outputs.iter_mut().for_each(|port| port.content = Span::default());
        self.bodies.iter_mut().for_each(|body| body.graph.leave_file());
    }

    /// Where the file has it; `None` for a layer that was added.
    pub fn span(&self) -> Option<Span> {
        self.span
    }
}

/// The layers at which OpenVINO's reader starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Start {
    /// An input.
    Parameter,
    /// An output.
    Result,
    /// Keeps a tensor in a variable.
    Assign,
}

/// Operation, id, name, and what comes out of it.
impl fmt::Debug for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} `{}`", self.operation_name, self.id, self.name)?;
        self.outputs
            .iter()
            .enumerate()
            .try_for_each(|(at, port)| write!(f, "{} {port}", if at == 0 { ":" } else { "," }))
    }
}

/// An operation as a file names it, which layers that do the same share.
#[derive(Debug)]
pub(crate) struct OperationName {
    ty: CompactString,
    version: CompactString,
    /// The row of the operation table, once somebody looked it up: the graph knows no operations.
    row: OnceLock<Option<u16>>,
}

impl OperationName {
    pub(crate) fn new(ty: &str, version: &str) -> Arc<Self> {
        Arc::new(Self { ty: ty.into(), version: version.into(), row: OnceLock::new() })
    }

    pub(crate) fn ty(&self) -> &str {
        &self.ty
    }

    /// The row that `look_up` finds for type and version, which is asked once.
    pub(crate) fn row(&self, look_up: impl FnOnce(&str, &str) -> Option<u16>) -> Option<u16> {
        *self.row.get_or_init(|| look_up(&self.ty, &self.version))
    }
}

/// `Add-opset1`.
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

/// The attributes of a layer, which others share that have the same ones.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct AttributeList(Option<Arc<List>>);

/// A constant has four.
type List = SmallVec<[Attribute; 4]>;

impl AttributeList {
    /// Those of this layer alone, to be changed.
    pub(crate) fn to_mut(&mut self) -> &mut List {
        Arc::make_mut(self.0.get_or_insert_default())
    }

    /// Where it is, which is the same for all that share it, as long as one of them is kept; `None` if it is not shared.
    pub(crate) fn shared_at(&self) -> Option<*const ()> {
        self.0.as_ref().filter(|list| Arc::strong_count(list) > 1).map(|list| Arc::as_ptr(list).cast())
    }
}

impl Deref for AttributeList {
    type Target = [Attribute];

    fn deref(&self) -> &[Attribute] {
        self.0.as_deref().map_or(&[], List::as_slice)
    }
}

impl FromIterator<Attribute> for AttributeList {
    fn from_iter<I: IntoIterator<Item = Attribute>>(attributes: I) -> Self {
        List::from_iter(attributes).into()
    }
}

impl From<List> for AttributeList {
    fn from(attributes: List) -> Self {
        Self((!attributes.is_empty()).then(|| Arc::new(attributes)))
    }
}

/// What a layer that is not there yet does: an operation with its attributes, to [`add`](crate::Edit::add) to a graph, or
/// for a layer to [`morph`](crate::Edit::morph) into.
#[derive(Clone, Debug, PartialEq)]
pub struct NewLayer {
    pub(crate) operation_name: Arc<OperationName>,
    pub(crate) name: Option<Text>,
    pub(crate) attributes: AttributeList,
    pub(crate) outputs: SmallVec<[TensorType; 1]>,
    pub(crate) bodies: Vec<CompactString>,
}

impl NewLayer {
    /// An operation and its operation set as a file spells them: `NewLayer::new("Softmax", "opset8")`.
    #[must_use]
    pub fn new(ty: &str, version: &str) -> Self {
        Self {
            operation_name: OperationName::new(ty, version),
            name: None,
            attributes: AttributeList::default(),
            outputs: SmallVec::new(),
            bodies: Vec::new(),
        }
    }

    /// A Convert to this type.
    #[must_use]
    pub fn convert(to: ElementType) -> Self {
        Self::new("Convert", "opset1").with_attribute("destination_type", to.name())
    }

    /// The same with this name. Without one, a layer that is added is called by its operation and id, `Softmax_12`, and one
    /// that is morphed keeps its name.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        self.name = Some(name.into());
        self
    }

    /// The same with one more attribute.
    #[must_use]
    pub fn with_attribute(mut self, name: &str, value: impl fmt::Display) -> Self {
        self.attributes.to_mut().push(Attribute { name: name.into(), value: format_compact!("{value}") });
        self
    }

    /// The same with one more body, empty: `body` of a Loop or TensorIterator, `then_body` and `else_body` of an If.
    /// [`Edit::set_port_map`](crate::Edit::set_port_map) joins it to the layer once its layers are in.
    #[must_use]
    pub fn with_body(mut self, name: &str) -> Self {
        self.bodies.push(name.into());
        self
    }

    /// The same with one more output, for an operation that has no rule here; what a rule gives counts more.
    #[must_use]
    pub fn with_output(mut self, element_type: ElementType, shape: Shape) -> Self {
        self.outputs.push(TensorType { element_type, shape });
        self
    }
}

/// One attribute of a layer's `<data>`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attribute {
    pub(crate) name: CompactString,
    pub(crate) value: CompactString,
}

impl Attribute {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its value, with XML escapes resolved.
    pub fn value(&self) -> &str {
        &self.value
    }
}

/// Where a tensor enters a layer. Type and shape are those of the output that feeds it.
#[derive(Clone, Debug)]
pub struct InputPort {
    pub(crate) id: u64,
    /// What the text says the type is; `None` where it says nothing known.
    pub(crate) declared: Option<ElementType>,
    /// The text between the port's tags, which holds the declared dims, here or where another port has the same.
    pub(crate) content: Span,
}

impl InputPort {
    pub(super) fn new(id: u64) -> Self {
        Self { id, declared: None, content: Span::default() }
    }

    /// The label by which edges name it.
    pub fn id(&self) -> u64 {
        self.id
    }
}

/// Where a tensor leaves a layer: the one home of its element type and shape.
#[derive(Clone, Debug)]
pub struct OutputPort {
    pub(crate) id: u64,
    pub(crate) element_type: ElementType,
    /// What the text says the type is.
    pub(crate) declared: Option<ElementType>,
    /// Whether type or shape differ from what the text says.
    pub(crate) stale: bool,
    pub(crate) shape: Shape,
    pub(crate) names: Option<Text>,
    /// The text between the port's tags, which holds the declared dims.
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

    /// The label by which edges name it.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// The element type of the tensor.
    pub fn element_type(&self) -> ElementType {
        self.element_type
    }

    /// The shape of the tensor, as far as it is known.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Element type and shape of the tensor.
    pub fn tensor_type(&self) -> TensorType {
        TensorType { element_type: self.element_type, shape: self.shape.clone() }
    }

    /// Whether type or shape differ from what the text of the file declares.
    pub fn is_stale(&self) -> bool {
        self.stale
    }

    /// The names of the tensor: a set that the file writes with commas, `\,` for a comma inside a name.
    pub fn names(&self) -> Vec<String> {
        self.names.as_deref().map(split_names).unwrap_or_default()
    }
}

/// Element type and shape: `f32[?,3]`.
impl fmt::Display for OutputPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.element_type, self.shape)
    }
}

/// The names in a `names` attribute: separated by commas, of which `\,` is one inside a name; empty ones do not count.
pub(crate) fn split_names(text: &str) -> Vec<String> {
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

/// The writer's form of a set of names: sorted by bytes, a comma inside a name as `\,`.
pub(crate) fn join_names(mut names: Vec<String>) -> Text {
    names.sort_unstable();
    names.dedup();
    names.iter().map(|name| name.replace(',', "\\,")).collect::<Vec<_>>().join(",").into()
}

/// A graph inside a layer, with the map between the layer's ports and the body's Parameters and Results.
#[derive(Clone, Debug)]
pub struct Body {
    pub(crate) name: CompactString,
    pub(crate) graph: Graph,
    pub(crate) port_map: Vec<PortMapEntry>,
    pub(crate) back_edges: Vec<BackEdge>,
    /// Whether the text of port map and back edges says something else.
    pub(crate) rejoined: bool,
}

impl Body {
    /// A body without layers, of the element of this name.
    pub(crate) fn empty(name: &str) -> Self {
        let graph = Graph::default();
        Self { name: name.into(), graph, port_map: Vec::new(), back_edges: Vec::new(), rejoined: false }
    }

    /// The element that holds it: `body`, `then_body`, `else_body`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its layers and wires; ids start anew in each body. [`Edit::body`](crate::Edit::body) changes them.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// What enters and leaves it, in the order of the file.
    pub fn port_map(&self) -> &[PortMapEntry] {
        &self.port_map
    }

    /// From a Result to the Parameter that takes its value in the next iteration.
    pub fn back_edges(&self) -> &[BackEdge] {
        &self.back_edges
    }

    /// The element that holds the port map of the body in `body`: `port_map`, `then_port_map`.
    pub(crate) fn port_map_name(body: &str) -> String {
        body.replace("body", "port_map")
    }
}

/// What joins a body and the layer around it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Joints<'a> {
    pub(super) port_map: &'a [PortMapEntry],
    pub(super) back_edges: &'a [BackEdge],
}

impl Joints<'_> {
    /// Whether they name this Parameter or Result of the body.
    pub(crate) fn name(self, layer: LayerId) -> bool {
        self.port_map.iter().any(|entry| entry.internal_layer_id == layer)
            || self.back_edges.iter().any(|edge| [edge.from, edge.to].contains(&layer))
    }
}

/// One entry of a body's port map.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PortMapEntry {
    /// Whether it enters or leaves the body.
    pub direction: Direction,
    /// The port of the layer; -1 where the value stays inside.
    pub external_port_id: i64,
    /// The body's Parameter or Result.
    pub internal_layer_id: LayerId,
    /// Slicing or concatenation along an axis, where there is one.
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

    /// An input of the layer, counted from 0, goes to this Parameter.
    #[must_use]
    pub fn input(port: usize, parameter: LayerId) -> Self {
        Self::new(Direction::Input, i64::try_from(port).unwrap_or(i64::MAX), parameter)
    }

    /// An output of the layer, counted from 0, comes from this Result.
    #[must_use]
    pub fn output(port: usize, result: LayerId) -> Self {
        Self::new(Direction::Output, i64::try_from(port).unwrap_or(i64::MAX), result)
    }

    /// The loop itself takes the value, for `execution_condition`, or gives it, for `current_iteration`.
    #[must_use]
    pub fn with_purpose(mut self, purpose: &str) -> Self {
        self.external_port_id = -1;
        self.purpose = Some(purpose.into());
        self
    }

    /// `current_iteration` or `execution_condition`, where the loop itself uses the value.
    pub fn purpose(&self) -> Option<&str> {
        self.purpose.as_deref()
    }
}

/// Whether a value enters or leaves a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// From the layer's input to a Parameter.
    Input,
    /// From a Result to the layer's output.
    Output,
}

/// A value handed from one iteration to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct BackEdge {
    /// The body's Result.
    pub from: LayerId,
    /// The body's Parameter.
    pub to: LayerId,
}
