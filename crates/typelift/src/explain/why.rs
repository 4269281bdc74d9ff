//! Explanation of a tensor's element type.

use std::collections::{BTreeSet, VecDeque};
use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use smallvec::SmallVec;
use typelift_promote::ElementType;

use crate::base::hash::HashMap;
use crate::base::span::Lines;
use crate::explain::stats::name_of;
use crate::findings::{LayerRef, list};
use crate::infer::Probe;
use crate::model::graph::{
    Attribute, Direction, FindError, Graph, Layer, LayerId, Model, Output, OutputPort, Place, PortMapEntry,
};
use crate::model::shape::Shape;
use crate::ops::Setting;
use crate::ops::{self, Attr, AttributeValues, Fault, LayerKind, OTHER_TYPES, Operation, Subject, kind, setting};

/// Derivation of an element type: a step for each tensor that influences it, beginning with the tensor itself.
///
/// There is one step for each tensor, even if it influences the type in several ways.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Derivation {
    /// The steps: first that of the tensor itself, then those of tensors that influence its type, the nearest first.
    pub steps: Vec<Step>,
}

impl Derivation {
    /// Iterates over the steps where the type is decided: Parameters, constants, attributes, and operations with a
    /// fixed type.
    pub fn sources(&self) -> impl Iterator<Item = &Step> {
        self.steps.iter().filter(|step| step.is_source())
    }

    /// Returns the steps that decide the type of the step at this index; the step itself if no other does.
    pub fn sources_of(&self, step: usize) -> impl Iterator<Item = &Step> {
        let (mut seen, mut pending) = (BTreeSet::new(), vec![step]);
        while let Some(next) = pending.pop() {
            if seen.insert(next) {
                pending.extend(self.steps.get(next).into_iter().flat_map(|step| &step.from).map(|source| source.step));
            }
        }
        seen.into_iter().filter_map(|step| self.steps.get(step)).filter(|step| step.is_source())
    }
}

/// Explanation of one tensor's element type.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Step {
    /// The layer that produces the tensor.
    pub layer: LayerRef,
    /// The operation, as the file spells it.
    pub operation: String,
    /// The role of the layer.
    #[serde(skip)]
    pub kind: LayerKind,
    /// The output of the layer.
    pub output: usize,
    /// The line of the file; `None` for an added layer.
    pub line: Option<usize>,
    /// The element type.
    #[serde(serialize_with = "name_of")]
    pub element_type: ElementType,
    /// The shape, as far as it is known.
    pub shape: Shape,
    /// The rule that decides the type.
    pub rule: Rule,
    /// The tensors that influence the type.
    pub from: Vec<Premise>,
}

impl Step {
    /// True if the type is decided at this step: no input influences it, or attributes do too.
    pub(crate) fn is_source(&self) -> bool {
        self.from.is_empty() || matches!(&self.rule, Rule::Promotion { attributes, .. } if !attributes.is_empty())
    }
}

/// A tensor that influences the type of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Premise {
    /// The input that it feeds; `None` for the Result of a body.
    pub input: Option<usize>,
    /// The index of its step.
    pub step: usize,
}

/// The explanations of the element types of all tensors of a model.
#[derive(Debug)]
#[non_exhaustive]
pub struct Origins<'a> {
    /// The model's own graph and its bodies.
    pub graphs: Vec<Place>,
    /// The explanations. Premises name them by their positions.
    pub list: Vec<Origin<'a>>,
}

/// Explanation of one tensor's element type, which borrows its layer.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Origin<'a> {
    /// The position of its graph.
    pub graph: usize,
    /// The layer that produces the tensor.
    pub layer: &'a Layer,
    /// The output of the layer.
    pub output: usize,
    /// The rule that decides the type. Tensors for which the same facts decide share it.
    pub rule: Arc<Rule>,
    /// The tensors that influence the type.
    pub from: Vec<Premise>,
}

/// Rule that decides an element type.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
#[non_exhaustive]
pub enum Rule {
    /// The type is an attribute of the layer.
    Attribute(Setting),
    /// The type is that of one input.
    Input {
        /// The position.
        input: usize,
    },
    /// The type is the common type of these inputs.
    Common {
        /// The position.
        inputs: Vec<usize>,
    },
    /// The type is the promotion of two inputs.
    Promotion {
        /// The steps of the promotion: `f16 with f32 gives f32: the wider float`.
        steps: Vec<String>,
        /// The attributes that decide: with other values the result would differ or be an error.
        attributes: Vec<Setting>,
    },
    /// The operation always gives this type.
    Fixed,
    /// The layer is a Parameter of a body, and has the type of its input.
    Given,
    /// The layer has bodies, and the output has the type of their Results.
    Body,
    /// The type is declared in the file, because the operation is unknown.
    Declared,
    /// The operation does not accept its inputs, so the type is unknown.
    Refused {
        /// The reason.
        message: String,
    },
}

/// Formats the rule as a clause: `attribute destination_type="f32"`, `the type of input 0`.
impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Attribute(setting) => write!(f, "attribute {setting}"),
            Self::Input { input } => write!(f, "the type of input {input}"),
            Self::Common { inputs } => {
                let mut inputs = inputs.clone();
                inputs.sort_unstable();
                write!(f, "the common type of inputs {}", list(inputs.iter().map(ToString::to_string).collect(), "and"))
            }
            Self::Promotion { steps, attributes } => {
                f.write_str(&steps.join("; "))?;
                ops::write_deciding(f, attributes)
            }
            Self::Fixed => f.write_str("the operation always gives this type"),
            Self::Given => f.write_str("the type of the tensor that enters the body"),
            Self::Body => f.write_str("the type of the tensor that leaves the body"),
            Self::Declared => f.write_str("the type that the file declares, because the operation is unknown"),
            Self::Refused { message } => write!(f, "unknown, because {message}"),
        }
    }
}

/// Explains the element type of a tensor in an inferred model. The explanation lists the Parameters, constants and
/// attributes that decide it, and each rule between them.
///
/// `name` is read as [`Model::find_tensor`] does.
///
/// To find the inputs and attributes that matter, the rule of each operation is applied again with other types.
///
/// # Errors
/// [`FindError`] if nothing has that name, or several tensors have it.
///
/// # Examples
/// ```
/// let model = typelift::Model::from_text("x = Parameter : f16[?]\ny = Relu(x)")?;
/// let derivation = typelift::why(&model, "y").unwrap();
/// assert_eq!(derivation.steps[0].rule.to_string(), "the type of input 0");
/// assert_eq!(derivation.steps[1].rule.to_string(), "attribute element_type=\"f16\"");
/// # Ok::<(), typelift::rewrite::notation::NotationError>(())
/// ```
pub fn why(model: &Model, name: &str) -> Result<Derivation, FindError> {
    let unknown = || FindError::Unknown(name.to_owned());
    let (place, tensor) = model.find_tensor(name)?;
    let mut search = PathSearch::new(model);
    let scope = search.scopes.iter().position(|scope| scope.place == place).ok_or_else(unknown)?;
    search.visit(None, scope, tensor).ok_or_else(unknown)?;
    let lines = Lines::new(model.source().clone());
    let steps = search.derive().into_iter().map(|Origin { graph, layer, output, rule, from }| {
        let port = &layer.outputs()[output];
        Step {
            layer: LayerRef::of(&search.scopes[graph].place, layer),
            operation: layer.ty().to_owned(),
            kind: kind(layer),
            output,
            line: layer.span().map(|span| lines.line_at(span.start)),
            element_type: port.element_type(),
            shape: port.shape().clone(),
            rule: Arc::unwrap_or_clone(rule),
            from,
        }
    });
    Ok(Derivation { steps: steps.collect() })
}

/// Explains the element types of all tensors of an inferred model, including bodies, in the order of the graph.
///
/// # Examples
/// ```
/// # let mut model = typelift::Model::open(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/model.xml"))?;
/// typelift::infer(&mut model);
/// let all = typelift::why_all(&model).list;
/// assert_eq!(all.len(), 4);
/// assert_eq!((all[2].layer.name(), all[2].from.len()), ("scaled", 2));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub fn why_all(model: &Model) -> Origins<'_> {
    let mut search = PathSearch::new(model);
    for scope in 0..search.scopes.len() {
        let layers = search.scopes[scope].graph.layers();
        for tensor in layers.flat_map(|layer| (0..layer.outputs().len()).map(|port| layer.id().output(port))) {
            search.visit(None, scope, tensor);
        }
    }
    let list = search.derive();
    Origins { graphs: search.scopes.into_iter().map(|scope| scope.place).collect(), list }
}

/// Body of a layer: number of the surrounding graph, the layer, and the position among its bodies.
type Door = (usize, LayerId, usize);

struct StepGraph<'a> {
    graph: &'a Graph,
    /// `loop/body`.
    place: Place,
    /// The body that it is; `None` for the model's own graph.
    door: Option<Door>,
    probe: Probe,
}

struct PathSearch<'a> {
    scopes: Vec<StepGraph<'a>>,
    /// Number of the graph of each body.
    doors: HashMap<Door, usize>,
    /// Index of the step of each visited tensor.
    indices: HashMap<(usize, Output), usize>,
    /// Tensors whose steps must still be created, in order.
    waiting: VecDeque<(usize, Output)>,
    model: &'a Model,
    /// Results of the rule of the current layer.
    answers: Option<((usize, LayerId), Answers)>,
    /// Causes of the types of earlier tensors. The layers of sibling blocks ask the same questions.
    decided: HashMap<Question<'a>, (Arc<Rule>, Vec<usize>)>,
    /// Rules of attributes that alone decide: by their names and types, and whether the file has them.
    attributes: HashMap<(&'static str, ElementType, bool), Arc<Rule>>,
}

impl<'a> PathSearch<'a> {
    fn new(model: &'a Model) -> Self {
        let mut search = Self {
            scopes: vec![StepGraph {
                graph: &model.graph,
                place: Place::default(),
                door: None,
                probe: Probe::new(&model.weights),
            }],
            doors: HashMap::default(),
            indices: HashMap::default(),
            waiting: VecDeque::new(),
            model,
            answers: None,
            decided: HashMap::default(),
            attributes: HashMap::default(),
        };
        search.open();
        search
    }

    fn derive(&mut self) -> Vec<Origin<'a>> {
        let mut list = Vec::new();
        while let Some((scope, tensor)) = self.waiting.pop_front() {
            list.extend(self.origin(scope, tensor));
        }
        list
    }

    fn open(&mut self) {
        let mut next = 0;
        while let Some(StepGraph { graph, place, .. }) = self.scopes.get(next) {
            let (graph, place) = (*graph, place.clone());
            for layer in graph.unordered() {
                for (at, body) in layer.bodies().iter().enumerate() {
                    let place = place.inside(layer, at, body.name());
                    let door = (next, layer.id(), at);
                    self.doors.insert(door, self.scopes.len());
                    let door = Some(door);
                    self.scopes.push(StepGraph {
                        graph: &body.graph,
                        place,
                        door,
                        probe: Probe::new(&self.model.weights),
                    });
                }
            }
            next += 1;
        }
    }

    /// `None` if it does not exist.
    fn visit(&mut self, input: Option<usize>, scope: usize, tensor: Output) -> Option<Premise> {
        self.scopes[scope].graph.output(tensor)?;
        let next = self.indices.len();
        let step = *self.indices.entry((scope, tensor)).or_insert_with(|| {
            self.waiting.push_back((scope, tensor));
            next
        });
        Some(Premise { input, step })
    }

    fn origin(&mut self, graph: usize, tensor: Output) -> Option<Origin<'a>> {
        let layer = self.scopes[graph].graph.layer(tensor.layer)?;
        let (rule, from) = self.decide(graph, layer, tensor.port);
        Some(Origin { graph, layer, output: tensor.port, rule, from })
    }

    fn decide(&mut self, scope: usize, layer: &'a Layer, port: usize) -> (Arc<Rule>, Vec<Premise>) {
        let graph = self.scopes[scope].graph;
        let Some(operation) = layer.operation() else { return (Rule::Declared.into(), Vec::new()) };
        match operation.kind {
            LayerKind::Parameter => {
                if let Some((outside, input, tensor)) = self.given(scope, layer.id()) {
                    return (Rule::Given.into(), self.visit(Some(input), outside, tensor).into_iter().collect());
                }
            }
            LayerKind::If | LayerKind::Loop | LayerKind::TensorIterator => {
                return (Rule::Body.into(), self.results(scope, layer, port));
            }
            _ => {}
        }
        let (rule, inputs) = self.ask(scope, layer, operation, port);
        let feeds = graph.feeds(layer.id());
        let feeds = inputs.into_iter().filter_map(|input| Some((input, (*feeds.get(input)?)?)));
        let from = feeds.filter_map(|(input, (it, port))| self.visit(Some(input), scope, it.id().output(port)));
        (rule, from.collect())
    }

    /// Finds the inputs and attributes that decide the type of an output. A rule that accepted a layer is not applied to
    /// another one that has the same facts and the same type.
    fn ask(
        &mut self,
        scope: usize,
        layer: &'a Layer,
        operation: &'static Operation,
        port: usize,
    ) -> (Arc<Rule>, Vec<usize>) {
        // Assign accepts only the type of its variable, so that no other type can be tried.
        if operation.kind == LayerKind::Assign {
            return (Rule::Input { input: 0 }.into(), vec![0]);
        }
        let known = layer.outputs().get(port).map_or(ElementType::Dynamic, OutputPort::element_type);
        if let Some((attribute, is_written)) = sole_attribute(layer, operation, known) {
            let rule = self.attributes.entry((attribute.name, known, is_written));
            return (rule.or_insert_with(|| Rule::Attribute(setting(layer, attribute)).into()).clone(), Vec::new());
        }
        let ports = self.scopes[scope].graph.tensors(layer.id());
        let inputs = ports.iter().map(|port| (port.element_type(), port.shape())).collect();
        let question = (std::ptr::from_ref(operation), &layer.attributes[..], inputs, port, known);
        if let Some(decided) = self.decided.get(&question) {
            return decided.clone();
        }
        let (rule, inputs) = self.try_others(scope, layer, operation, &ports, port);
        let decided = (Arc::new(rule), inputs);
        // A layer that is refused may differ from others in the values of its constants.
        if known != ElementType::Dynamic {
            self.decided.insert(question, decided.clone());
        }
        decided
    }

    /// Applies the rule of a layer with other types and attributes, to find those that decide.
    fn try_others(
        &mut self,
        scope: usize,
        layer: &'a Layer,
        operation: &'static Operation,
        ports: &[&'a OutputPort],
        port: usize,
    ) -> (Rule, Vec<usize>) {
        if operation.kind == LayerKind::ConvertPromoteTypes
            && let Some(ops::PromotionRule { step, attributes }) = ops::promotion_rule(layer, operation, ports)
        {
            let steps = step.iter().map(ToString::to_string).collect();
            return (Rule::Promotion { steps, attributes }, vec![0, 1]);
        }
        let known = layer.outputs().get(port).map_or(ElementType::Dynamic, OutputPort::element_type);
        // The rule of an operation is applied once for all outputs of a layer.
        if self.answers.as_ref().is_none_or(|(of, _)| *of != (scope, layer.id())) {
            let StepGraph { graph, probe, .. } = &mut self.scopes[scope];
            let answers = RuleTrial { graph, probe, operation, layer, ports }.answers();
            self.answers = Some(((scope, layer.id()), answers));
        }
        let Some((_, answers)) = &self.answers else { return (Rule::Fixed, Vec::new()) };
        let of_port = |types: &OutputTypes| types.get(port).copied().unwrap_or(ElementType::Dynamic);
        let found = match &answers.as_it_is {
            Ok(types) => of_port(types),
            // The rules of some operations need more than their layer, so they cannot be tested alone.
            Err(_) if known != ElementType::Dynamic => match ports.first() {
                Some(first) if first.element_type() == known => return (Rule::Input { input: 0 }, vec![0]),
                _ => return (Rule::Fixed, Vec::new()),
            },
            Err(message) => return (Rule::Refused { message: message.clone() }, (0..ports.len()).collect()),
        };
        // If an attribute must equal a type of an input, as in ReadValue, every other value is an error.
        if let Some((setting, _)) = answers.by_attribute.iter().find(|(setting, other)| match other {
            Some(types) => of_port(types) != found,
            None => setting.value == found.name(),
        }) {
            return (Rule::Attribute(setting.clone()), Vec::new());
        }
        let deciding =
            answers.by_inputs.iter().filter(|(_, other)| other.as_ref().is_some_and(|types| of_port(types) != found));
        let deciding: Vec<usize> = deciding.flat_map(|(inputs, _)| inputs).copied().collect();
        let rule = match deciding[..] {
            [] => Rule::Fixed,
            [input] => Rule::Input { input },
            _ => Rule::Common { inputs: deciding.clone() },
        };
        (rule, deciding)
    }

    /// A TensorIterator keeps the types of its Parameters.
    fn given(&self, scope: usize, parameter: LayerId) -> Option<(usize, usize, Output)> {
        let (outside, owner, at) = self.scopes[scope].door?;
        let graph = self.scopes[outside].graph;
        let layer = graph.layer(owner).filter(|layer| kind(layer) != LayerKind::TensorIterator)?;
        let entries = layer.bodies().get(at)?.port_map.iter().filter(|entry| entry.direction == Direction::Input);
        let entry = entries.into_iter().find(|entry| entry.internal_layer_id == parameter)?;
        let input = usize::try_from(entry.external_port_id).ok()?;
        Some((outside, input, graph.producers(owner).get(input).copied().flatten()?))
    }

    /// The tensors in bodies whose Results feed an output of the layer.
    fn results(&mut self, scope: usize, layer: &Layer, port: usize) -> Vec<Premise> {
        let bodies = layer.bodies().iter().enumerate();
        let sources = bodies.filter_map(|(at, body)| {
            let scope = *self.doors.get(&(scope, layer.id(), at))?;
            let leaves = |entry: &&PortMapEntry| entry.direction == Direction::Output && entry.external_port_id >= 0;
            let entry = body.port_map.iter().filter(leaves).nth(port)?;
            self.visit(None, scope, body.graph.producer(entry.internal_layer_id.input(0))?)
        });
        sources.collect()
    }
}

type OutputTypes = SmallVec<[ElementType; 4]>;

/// Facts that decide the rule of a tensor: operation, attributes, types and shapes of inputs, the output and its type.
type Question<'a> = (*const Operation, &'a [Attribute], SmallVec<[(ElementType, &'a Shape); 4]>, usize, ElementType);

/// Results of a layer's rule, without changes and with changes. `None` means that the rule accepts no change.
struct Answers {
    as_it_is: Result<OutputTypes, String>,
    /// For each attribute with a type: the result for another value.
    by_attribute: Vec<(Setting, Option<OutputTypes>)>,
    /// For inputs that change together: the result for another type.
    by_inputs: Vec<(Vec<usize>, Option<OutputTypes>)>,
}

/// The attribute that alone decides the type of a layer's only output, so that no test is needed. ReadValue is excluded,
/// because a test would change the type of its variable. True if the layer has it.
fn sole_attribute(layer: &Layer, operation: &'static Operation, known: ElementType) -> Option<(&'static Attr, bool)> {
    let is_sole = layer.outputs().len() == 1 && operation.kind != LayerKind::ReadValue;
    let attributes = operation.output_type_attributes().filter(|_| is_sole);
    let mut values = attributes.map(|attribute| (attribute, layer.attribute(attribute.name)));
    let found = values.find(|(attribute, written)| written.or(attribute.default) == Some(known.name()));
    found.map(|(attribute, written)| (attribute, written.is_some()))
}

struct RuleTrial<'a, 'p> {
    graph: &'a Graph,
    probe: &'p mut Probe,
    operation: &'static Operation,
    layer: &'a Layer,
    ports: &'p [&'a OutputPort],
}

impl RuleTrial<'_, '_> {
    fn answers(mut self) -> Answers {
        let values = AttributeValues::of(self.layer, self.operation);
        let as_it_is = self.types(self.layer, &values, self.ports).map_err(|fault| fault.message.to_string());
        Answers { as_it_is, by_attribute: self.by_attribute(), by_inputs: self.by_inputs(&values) }
    }

    /// Applies the rule and returns the result types.
    ///
    /// # Errors
    /// The reason why the operation does not accept the layer.
    fn types(&mut self, layer: &Layer, values: &AttributeValues, ports: &[&OutputPort]) -> Result<OutputTypes, Fault> {
        let Self { graph, operation, .. } = *self;
        let subject = Subject { graph, layer, operation, values, given: None };
        let outputs = self.probe.ask(&subject, ports)?;
        Ok(outputs.iter().map(|output| output.element_type).collect())
    }

    fn by_attribute(&mut self) -> Vec<(Setting, Option<OutputTypes>)> {
        let (layer, attributes) = (self.layer, self.operation.type_attributes());
        let changed = attributes.map(|attribute| {
            let setting = setting(layer, attribute);
            let other = OTHER_TYPES.iter().filter(|ty| ty.name() != setting.value).find_map(|ty| {
                let mut other = Layer::new(layer.ty(), layer.version(), layer.name());
                other.attributes = layer.attributes.iter().filter(|a| a.name() != attribute.name).cloned().collect();
                let other = other.with_attribute(attribute.name, ty.name());
                self.types(&other, &AttributeValues::of(&other, self.operation), self.ports).ok()
            });
            (setting, other)
        });
        changed.collect()
    }

    fn by_inputs(&mut self, values: &AttributeValues) -> Vec<(Vec<usize>, Option<OutputTypes>)> {
        let ports = self.ports;
        let types: Vec<_> = ports.iter().map(|port| port.element_type()).collect();
        // Inputs with shapes do not influence the type.
        let shaping = self.operation.shaping;
        let groups = self.operation.input_groups(&types).into_iter();
        let groups = groups.filter(|group| group.iter().any(|input| !shaping.contains(input)));
        let changed = groups.map(|group| {
            let mut others = OTHER_TYPES.iter().filter(|ty| group.iter().all(|&input| types[input] != **ty));
            let other = others.find_map(|&element_type| {
                let other = |&input: &usize| (input, OutputPort::new(element_type, ports[input].shape().clone()));
                let others: Vec<_> = group.iter().map(other).collect();
                let mut ports = ports.to_vec();
                for (input, port) in &others {
                    ports[*input] = port;
                }
                self.types(self.layer, values, &ports).ok()
            });
            (group, other)
        });
        changed.collect()
    }
}
