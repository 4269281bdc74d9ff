//! The interface of inference rules: their input, a `Context`, and their errors, `Fault`.

use std::ops::Deref;
use std::rc::Rc;
use std::sync::LazyLock;

use smallvec::SmallVec;
use typelift_promote::ElementType;

use super::bounds::Bounds;
use super::fault::{Detail, Fault};
use super::{AttributeValues, Attributes, Operation, is_constant};
use crate::base::hash::HashMap;
use crate::findings::{Code, Message, Text, message};
use crate::model::graph::{Body, Graph, Input, Layer, LayerId, Output, OutputPort};
use crate::model::shape::{Dim, Oddity, Shape, TensorType};
use crate::model::weights::Weights;
use crate::ops::values::array::{Array, Few};

/// Type and shape that a body's Parameter gets from an input of the layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BodyInput {
    pub(crate) shape: Shape,
    /// The type that replaces the Parameter's own; `None` if OpenVINO keeps the Parameter's.
    pub(crate) element_type: Option<ElementType>,
}

pub(crate) type Outputs = SmallVec<[TensorType; 2]>;

/// Parameters of a body that get types and shapes from inputs of the layer.
pub(crate) type Given = HashMap<LayerId, BodyInput>;

/// Information from the surrounding graph that an inference rule can use.
///
/// Inference implements all methods. A caller that applies a single rule implements only some: there are no bodies,
/// and lints are ignored.
pub(crate) trait Surroundings {
    fn weights(&self) -> &Weights;

    fn bounds(&mut self, graph: &Graph, tensor: Output) -> Option<Rc<Bounds>>;

    /// The known bounds of an input's values, in the element type that the rule receives.
    fn input_bounds(&mut self, graph: &Graph, input: Input) -> Option<Rc<Bounds>> {
        let tensor = graph.producer(input)?;
        self.bounds(graph, tensor)
    }

    /// Reports a lint about input that OpenVINO accepts silently. Its code must be a warning.
    fn lint(&mut self, _graph: &Graph, _layer: LayerId, _lint: &Fault) {}

    /// The type of the last ReadValue of each variable, which is kept between inferences.
    fn variables(&mut self) -> &mut HashMap<String, TensorType>;

    fn is_readable(&self, _variable: &str) -> bool {
        false
    }

    /// Infers a body of a layer; its Parameters get these types and shapes.
    ///
    /// # Errors
    /// Bodies of the model that exceed the limit on work.
    fn infer_body(&mut self, _owner: &Layer, _at: usize, _body: &mut Body, _given: &Given) -> Result<(), Fault> {
        Err(Fault::other(Code::InvalidBody, "bodies are not inferred here"))
    }

    /// The known bounds of a tensor inside a body, as far as the body was inferred.
    fn body_bounds(&mut self, _owner: &Layer, _at: usize, _body: &Graph, _tensor: Output) -> Option<Rc<Bounds>> {
        None
    }

    /// The last known number of iterations of a loop, which is kept between inferences of the loop.
    fn iterations(&mut self, owner: &Layer, body: usize) -> &mut Option<i64>;

    /// The common type that was chosen for two branches' Results, if Converts are being inserted.
    fn common_result_type(
        &mut self,
        _owner: &Layer,
        _bodies: &[Body],
        _results: [(usize, LayerId); 2],
    ) -> Option<ElementType> {
        None
    }

    /// Records that a rule infers this many layers again.
    ///
    /// # Errors
    /// Work beyond the limit.
    fn spend(&mut self, _layers: usize) -> Result<(), Fault> {
        Ok(())
    }
}

/// Layer to infer, with its graph and its attributes.
pub(crate) struct Subject<'a> {
    pub(crate) graph: &'a Graph,
    pub(crate) layer: &'a Layer,
    pub(crate) operation: &'static Operation,
    /// The attribute values that were parsed before.
    pub(crate) values: &'a AttributeValues,
    /// For a Parameter of a body: the type and shape that it gets from an input of the layer.
    pub(crate) given: Option<&'a BodyInput>,
}

impl Subject<'_> {
    /// Runs the layer's rule for these inputs.
    ///
    /// # Errors
    /// Inputs or attributes that the rule refuses.
    pub(crate) fn infer(
        &self,
        inputs: &[&OutputPort],
        bodies: &mut [Body],
        around: &mut dyn Surroundings,
    ) -> Result<Outputs, Fault> {
        let &Self { graph, layer, operation, values, given } = self;
        let attributes = Attributes::with(layer, operation, values);
        let mut cx = Context { around, graph, attributes, inputs, bodies, given, outputs: Outputs::new() };
        (operation.infer)(&mut cx)?;
        Ok(cx.outputs)
    }

    pub(crate) fn producer(&self, input: usize) -> Option<&Layer> {
        self.graph.feeds(self.layer.id).get(input).copied().flatten().map(|(layer, _)| layer)
    }
}

/// Input of an inference rule: a layer, its attributes, and all that is known about its inputs. It also collects the
/// outputs.
pub(crate) struct Context<'a> {
    around: &'a mut dyn Surroundings,
    graph: &'a Graph,
    /// The attributes of the layer, with the defaults of its operation.
    pub(crate) attributes: Attributes<'a>,
    pub(crate) inputs: &'a [&'a OutputPort],
    /// The layer's bodies, borrowed during the call.
    pub(crate) bodies: &'a mut [Body],
    /// For a Parameter of a body: the type and shape that it gets from an input of the layer.
    pub(crate) given: Option<&'a BodyInput>,
    /// The types and shapes of the outputs inferred so far.
    pub(crate) outputs: Outputs,
}

impl<'a> Deref for Context<'a> {
    type Target = Attributes<'a>;

    fn deref(&self) -> &Self::Target {
        &self.attributes
    }
}

impl<'a> Context<'a> {
    pub(crate) fn graph(&self) -> &'a Graph {
        self.graph
    }

    pub(crate) fn ty(&self) -> &'a str {
        self.layer.ty()
    }

    pub(crate) fn weights(&self) -> &Weights {
        self.around.weights()
    }

    pub(crate) fn around(&self) -> &dyn Surroundings {
        self.around
    }

    pub(crate) fn around_mut(&mut self) -> &mut dyn Surroundings {
        self.around
    }

    /// The element type of an input; dynamic if the layer has no such input.
    pub(crate) fn element_type(&self, input: usize) -> ElementType {
        self.inputs.get(input).map_or(ElementType::Dynamic, |port| port.element_type)
    }

    /// The shape of an input; `None` if the layer has no such input.
    pub(crate) fn try_shape(&self, input: usize) -> Option<&'a Shape> {
        self.inputs.get(input).map(|port| &port.shape)
    }

    /// The shape of an input. The operation table guarantees that the input exists.
    pub(crate) fn shape(&self, input: usize) -> &'a Shape {
        static UNKNOWN: LazyLock<Shape> = LazyLock::new(Shape::dynamic);
        self.try_shape(input).unwrap_or(&UNKNOWN)
    }

    /// The common element type of these inputs. `dynamic` is compatible with every type.
    pub(crate) fn merge_types(&self, inputs: &[usize]) -> Result<ElementType, Fault> {
        let mut merged = ElementType::Dynamic;
        for &input in inputs {
            match (merged, self.element_type(input)) {
                (merged, next) if merged == next || next == ElementType::Dynamic => {}
                (ElementType::Dynamic, next) => merged = next,
                _ => return Err(self.disagreement(inputs)),
            }
        }
        Ok(merged)
    }

    #[cold]
    fn disagreement(&self, inputs: &[usize]) -> Fault {
        let mut types: Vec<_> = inputs.iter().map(|&input| self.element_type(input)).collect();
        types.retain(|&ty| ty != ElementType::Dynamic);
        types.dedup();
        let types = types.iter().map(ToString::to_string).collect::<Vec<_>>().join(" and ");
        Fault::types(inputs, message!("`{}` needs inputs of one type, but has {}"; self.layer.ty(), Text(types)))
            .rule("OpenVINO inserts no Convert")
            .help("insert a Convert before the input whose type should change")
    }

    pub(crate) fn check_accepted(&self, input: usize, ty: ElementType) -> Result<(), Fault> {
        let accepts = self.operation.accepts;
        if accepts.takes(ty) {
            return Ok(());
        }
        let message = message!("`{}` takes {}, but gets {}"; self.layer.ty(), accepts.description(), ty);
        let types: SmallVec<[ElementType; 4]> = self.inputs.iter().map(|port| port.element_type).collect();
        let tied = self.operation.input_groups(&types).into_iter().find(|group| group.contains(&input));
        let tied = tied.unwrap_or_default();
        let them = if tied.len() > 1 { "them" } else { "it" };
        let logical = match self.operation.name {
            "Multiply" | "Minimum" => Some("LogicalAnd"),
            "Add" | "Maximum" => Some("LogicalOr"),
            _ => None,
        };
        let logical = logical.filter(|_| types.iter().all(|&ty| ty == ElementType::Boolean));
        let logical =
            logical.map_or_else(Message::default, |name| message!("write type=\"{}\" for truth values, or "; name));
        Err(Fault::unsupported(input, message)
            .about(&tied)
            .help(message!("{}insert a Convert before {}"; logical, them)))
    }

    /// The bounds of an input's values, if they are known. They are computed when first needed.
    pub(crate) fn bounds(&mut self, input: usize) -> Option<Rc<Bounds>> {
        let bounds = self.around.input_bounds(self.graph, self.layer.id.input(input))?;
        // A rule can be applied with another input type than the tensor has, and the values are converted.
        match self.element_type(input) {
            ElementType::Dynamic => Some(bounds),
            ty if ty == bounds.lower.element_type => Some(bounds),
            ty => bounds.converted(ty).map(Rc::new),
        }
    }

    pub(crate) fn exact(&mut self, input: usize) -> Option<Rc<Bounds>> {
        self.bounds(input).filter(|bounds| bounds.is_exact())
    }

    /// The values of an integer input, if all are known exactly; values that are too large saturate.
    pub(crate) fn integers(&mut self, input: usize) -> Option<Few<i64>> {
        Some(self.exact(input)?.lower.to_integers())
    }

    /// The numbers that OpenVINO reads from an input, if all values are known exactly.
    ///
    /// # Errors
    /// Values of an element type that OpenVINO cannot read here.
    pub(crate) fn numbers(&mut self, input: usize) -> Result<Option<Few<i64>>, Fault> {
        if let Some(bytes) = self.packed_constant(input) {
            return Ok(Some(bytes));
        }
        let exact = self.exact_list(input);
        self.check_readable(input, exact.is_some())?;
        Ok(exact.map(|bounds| as_read(&bounds.lower)))
    }

    pub(crate) fn reals(&mut self, input: usize) -> Result<Option<Few<f64>>, Fault> {
        if let Some(bytes) = self.packed_constant(input) {
            return Ok(Some(bytes.into_iter().map(|byte| byte as f64).collect()));
        }
        let exact = self.exact_list(input);
        self.check_readable(input, exact.is_some())?;
        Ok(exact.map(|bounds| bounds.lower.to_floats()))
    }

    /// The lower and upper bound of each value of an input, if they are known. The smallest or largest number
    /// of the type means unlimited, and becomes that of `i64`.
    ///
    /// # Errors
    /// The errors of [`numbers`](Self::numbers).
    pub(crate) fn ends(&mut self, input: usize) -> Result<Option<Few<(i64, i64)>>, Fault> {
        if let Some(bytes) = self.packed_constant(input) {
            return Ok(Some(bytes.into_iter().map(|byte| (byte, byte)).collect()));
        }
        let bounds = self.bounds_of_list(input);
        self.check_readable(input, bounds.is_some())?;
        let narrow = self.element_type(input) == ElementType::I32;
        Ok(bounds.map(|bounds| {
            let lower = as_read(&bounds.lower);
            let upper = bounds.upper.as_deref().map(as_read);
            let pairs = lower.iter().zip(upper.as_ref().unwrap_or(&lower));
            let ends = pairs.map(|(&lower, &upper)| {
                [lower, upper].map(|end| match i32::try_from(end) {
                    Ok(i32::MAX) if narrow => i64::MAX,
                    Ok(i32::MIN) if narrow => i64::MIN,
                    _ => end,
                })
            });
            ends.map(Into::into).collect()
        }))
    }

    pub(crate) fn feed(&self, input: usize) -> Option<Output> {
        self.graph.producer(self.layer.id.input(input))
    }

    pub(crate) fn is_constant(&self, input: usize) -> bool {
        self.constant(input).is_some()
    }

    fn constant(&self, input: usize) -> Option<&'a Layer> {
        self.graph.layer(self.feed(input)?.layer).filter(|layer| is_constant(layer))
    }

    fn packed_constant(&self, input: usize) -> Option<Few<i64>> {
        if ![ElementType::I4, ElementType::U4, ElementType::Nf4].contains(&self.element_type(input)) {
            return None;
        }
        let constant = self.constant(input)?;
        let count = self.shape(input).element_count().filter(|&count| count <= Shape::MAX_RANK as u64)?;
        let (offset, count) = (constant.byte_count("offset")?, usize::try_from(count).ok()?);
        // Bytes beyond the end of the weights are unknown.
        let lengths = [count, count.div_ceil(2)];
        let mut bytes = lengths.into_iter().find_map(|length| self.weights().read(offset, length))?;
        bytes.resize(count, 0);
        Some(bytes.into_iter().map(|byte| i64::from(byte as i8)).collect())
    }

    /// Bounds as [`bounds`](Self::bounds) does, for a list of axes or dimensions. A list longer than any rank
    /// is treated as unknown, which limits the work if many layers read the same list.
    fn bounds_of_list(&mut self, input: usize) -> Option<Rc<Bounds>> {
        let count = self.shape(input).element_count();
        if count.is_some_and(|count| count > Shape::MAX_RANK as u64) { None } else { self.bounds(input) }
    }

    fn exact_list(&mut self, input: usize) -> Option<Rc<Bounds>> {
        self.bounds_of_list(input).filter(|bounds| bounds.is_exact())
    }

    fn check_readable(&self, input: usize, known: bool) -> Result<(), Fault> {
        use ElementType as T;
        let ty = self.element_type(input);
        let unreadable = match ty {
            T::Boolean | T::String | T::U1 | T::U2 | T::U3 | T::U6 => true,
            ty => ty.bits() <= 8 && ty.is_float() && ty != T::Nf4,
        };
        if unreadable && (known || self.is_constant(input)) {
            let message = message!(
                "`{}` needs the values of input {}, but OpenVINO cannot read values of type {} here";
                self.layer.ty(), input, ty
            );
            return Err(Fault::unsupported(input, message).help("make it i64"));
        }
        Ok(())
    }

    /// The values of an input as the dimensions of a shape, as far as their bounds are known. In a Constant, -1
    /// is any length and any other negative number is 0.
    pub(crate) fn shape_value(&mut self, input: usize) -> Result<Option<Shape>, Fault> {
        if self.is_constant(input) {
            return Ok(self.numbers(input)?.map(|dims| dims.into_iter().map(Dim::from).collect()));
        }
        self.computed_shape(input)
    }

    /// Dimensions as [`shape_value`](Self::shape_value) does, without the exception for a Constant: no
    /// dimension is negative.
    pub(crate) fn computed_shape(&mut self, input: usize) -> Result<Option<Shape>, Fault> {
        let Some(bounds) = self.bounds_of_list(input) else { return Ok(None) };
        let ends = bounds.lower.to_integers().into_iter().zip(bounds.upper().to_integers());
        // The largest number of the type means that the dimension is unlimited.
        let open = if self.element_type(input) == ElementType::I32 { i64::from(i32::MAX) } else { i64::MAX };
        let ends = ends.map(|ends| <[i64; 2]>::from(ends).map(|end| if end == open { i64::MAX } else { end }));
        let dims = ends.map(|[lower, upper]| (lower >= 0 && upper >= 0).then(|| Dim::between(lower, upper)));
        match dims.collect() {
            Some(shape) => Ok(Some(shape)),
            None => Err(Fault::value(&[input], "a value that is used as dimension may be negative")),
        }
    }

    pub(crate) fn output(&mut self, element_type: ElementType, shape: Shape) {
        // A chain of layers could add dimensions without end, so the rank is limited.
        let shape = if shape.rank() > Some(Shape::MAX_RANK) { Shape::dynamic() } else { shape };
        self.outputs.push(TensorType { element_type, shape });
    }

    /// Adds the last output.
    pub(crate) fn finish(&mut self, element_type: ElementType, shape: Shape) -> Result<(), Fault> {
        self.output(element_type, shape);
        Ok(())
    }

    /// The partial shape in an attribute, with a lint for each problem of its text.
    pub(crate) fn partial_shape(&mut self, name: &'static str) -> Result<Shape, Fault> {
        let text = self.text(name)?;
        let (shape, oddities) = Shape::parse_lenient(text).map_err(|error| Fault::shape_text(name, text, error))?;
        for Oddity { kind, span, read_as } in oddities {
            let message = message!(
                "`{}` of `{}` is read as {}: {}";
                text.get(span.clone()).unwrap_or_default(), name, read_as, Text(kind)
            );
            let lint = Fault::other(Code::OddDimension, message);
            let mut lint = Fault { attribute: Some(name), detail: Some(Box::new(Detail::Bytes(span.clone()))), ..lint };
            if let Some(meant) = text.get(span).and_then(range_meant) {
                lint = lint.help(message!("write {} if you mean a range"; meant));
            }
            self.lint(lint);
        }
        Ok(shape)
    }

    /// The common type that was chosen for two branches' Results, if Converts are being inserted.
    pub(crate) fn align_results(&mut self, results: [(usize, LayerId); 2]) -> Option<ElementType> {
        self.around.common_result_type(self.attributes.layer, self.bodies, results)
    }

    pub(crate) fn infer_body(&mut self, body: usize, given: &Given) -> Result<(), Fault> {
        let owner = self.attributes.layer;
        match self.bodies.get_mut(body) {
            Some(graph) => self.around.infer_body(owner, body, graph, given),
            None => Ok(()),
        }
    }

    /// The known bounds of an output inside a body, as far as the body was inferred.
    pub(crate) fn body_bounds(&mut self, body: usize, tensor: Output) -> Option<Rc<Bounds>> {
        let graph = &self.bodies.get(body)?.graph;
        self.around.body_bounds(self.attributes.layer, body, graph, tensor)
    }

    /// Reports a lint about input that OpenVINO accepts silently. Its code must be a warning.
    #[cold]
    pub(crate) fn lint(&mut self, lint: Fault) {
        let (graph, id) = (self.graph(), self.layer.id);
        self.around_mut().lint(graph, id, &lint);
    }
}

/// Values of 4-bit elements as OpenVINO reads them: by mistake one per byte, with two elements in each.
fn as_read(array: &Array) -> Few<i64> {
    let values = array.to_integers();
    if array.element_type.bits() != 4 {
        return values;
    }
    let bytes = values.chunks(2).map(|pair| pair.iter().rev().fold(0, |byte, value| byte << 4 | (value & 15)) as i8);
    // Values beyond the last byte are unknown.
    bytes.map(i64::from).chain(std::iter::repeat(0)).take(values.len()).collect()
}

/// The range that a text such as `1-8`, `1:8` or `8..1` most likely means.
fn range_meant(dim: &str) -> Option<String> {
    let (one, other) = ["..", "-", ":"].iter().find_map(|between| dim.trim().split_once(between))?;
    let (one, other): (u32, u32) = (one.parse().ok()?, other.parse().ok()?);
    Some(format!("{}..{}", one.min(other), one.max(other)))
}
