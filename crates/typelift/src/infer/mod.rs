//! Forward inference: each layer is inferred after its producers. Bodies are included.

mod alignment;
pub(crate) mod blocks;
mod probe;
mod recover;
mod retype;
mod scope;
mod value;
mod version_10;
pub(crate) mod weights;

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use typelift_promote::ElementType;

pub(crate) use self::alignment::{Alignment, Alignments};
pub(crate) use self::probe::Probe;
pub(crate) use self::recover::declared;
pub(crate) use self::retype::Retyper;
use self::scope::{Run, Scope};
pub(crate) use self::value::{Evaluator, Values};

use crate::base::hash::{HashMap, HashSet};
use crate::base::progress::{each, poll};
use crate::findings::{Code, Diagnostic, Diagnostics, Fix, FixAction, LayerRef, Message, Related, message};
use crate::model::graph::{Body, Graph, Input, IrVersion, Layer, LayerId, Model, Output, OutputPort, Place, Start};
use crate::model::shape::TensorType;
use crate::model::weights::Weights;
use crate::ops::evaluate::Bounds;
use crate::ops::{
    self, AttributeValues, Detail, Fault, Finding, Given, LayerKind, Operation, Outputs, Subject, Surroundings,
    UnknownOperation,
};
use crate::text::xml;

/// Infers the element type and the shape of every tensor of a model and its bodies, in place, and returns all errors.
///
/// Types and shapes are computed from Parameters, constants and attributes alone. The declared ports of a file are
/// used only for operations without a rule; one note lists these. After an error the outputs of the layer become
/// dynamic, so that one mistake gives one message.
///
/// # Examples
/// ```
/// let mut model = typelift::Model::from_xml(r#"<net name="n" version="11"><layers>
///     <layer id="0" name="x" type="Parameter" version="opset1"><data shape="?,3" element_type="f16"/>
///         <output><port id="0" precision="UNSPECIFIED"/></output></layer>
///     <layer id="1" name="y" type="ReLU" version="opset1"><input><port id="0"/></input>
///         <output><port id="1" precision="UNSPECIFIED"/></output></layer>
/// </layers><edges><edge from-layer="0" from-port="0" to-layer="1" to-port="0"/></edges></net>"#)?;
/// assert!(typelift::infer(&mut model).is_empty());
/// let y = &model.graph().layer(typelift::LayerId(1)).unwrap().outputs()[0];
/// assert_eq!(format!("{}{}", y.element_type(), y.shape()), "f16[?,3]");
/// # Ok::<(), typelift::findings::Diagnostics>(())
/// ```
#[must_use = "the result contains the errors of the model"]
pub fn infer(model: &mut Model) -> Vec<Diagnostic> {
    Walk::new(model, None).infer_model(model)
}

impl Model {
    /// Infers as [`infer`] does, and returns the warnings and notes.
    ///
    /// # Errors
    /// All findings, if one of them is an error.
    ///
    /// # Examples
    /// ```
    /// let mut model = typelift::Model::from_text("x = Parameter : f32[?,3]\ny = Relu(x)\n_ = Result(y)")?;
    /// model.infer()?;
    /// assert_eq!(model.graph().output(model.graph().tensor("y")?).unwrap().to_string(), "f32[?,3]");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn infer(&mut self) -> Result<Vec<Diagnostic>, Diagnostics> {
        let list = infer(self);
        let found = Diagnostics { list, ..Diagnostics::new("<memory>", self.source().clone()) };
        if found.has_errors() { Err(found) } else { Ok(found.list) }
    }
}

/// Infers types and shapes again after a ConvertPromoteTypes was removed and its values became known. Marks layers
/// whose ports change.
pub(crate) fn refine(model: &mut Model) {
    let stale: HashSet<_> = model.graph.unordered().filter(|layer| layer.lacks_values).map(Layer::id).collect();
    if !stale.is_empty() {
        let mut walk = Walk::new(model, None);
        walk.scope.stale = Some(stale);
        walk.infer_model(model);
    }
}

/// Infers the model as [`infer`] does, but with the input types that `retyper` sets, as if Converts were there.
pub(crate) fn infer_as_retyped(model: &mut Model, retyper: &mut dyn Retyper) -> Vec<Diagnostic> {
    Walk::new(model, Some(retyper)).infer_model(model)
}

fn has_constants(graph: &Graph) -> bool {
    graph.unordered().any(|layer| ops::is_constant(layer) || layer.bodies.iter().any(|body| has_constants(&body.graph)))
}

/// Minimum limit on re-inferred body layers; each byte of the file adds one. Real models need far fewer.
const MIN_ALLOWANCE: usize = 1 << 20;

/// State of one run of inference.
pub(crate) struct Walk<'a> {
    source: Arc<String>,
    evaluator: Evaluator,
    version: IrVersion,
    retyper: Option<&'a mut dyn Retyper>,
    /// True if a port keeps its declared type or shape when inference cannot determine it.
    trusts_ports: bool,
    scope: Scope,
    /// States of the surrounding graphs, outermost first.
    outer: Vec<Scope>,
    /// Type of the last ReadValue of each variable.
    variables: HashMap<String, TensorType>,
    runs: BTreeMap<Place, Run>,
    /// Layers whose inputs were not converted, because the type of one is unknown.
    undecided: Vec<LayerRef>,
    /// Number of body layers that may still be inferred.
    allowance: usize,
    /// Layers that kept their declared outputs, by operation.
    declared: BTreeMap<String, HashSet<(Place, LayerId)>>,
    /// True if the current layer or its bodies used a value that a ConvertPromoteTypes computes.
    lacks_values: bool,
}

impl<'a> Walk<'a> {
    fn new(model: &Model, retyper: Option<&'a mut dyn Retyper>) -> Self {
        let Model { source, weights, version, .. } = model;
        // Without weights no values are known. Results that OpenVINO computed from values are then only in the ports.
        let lacks_values = weights.len().is_none() && has_constants(&model.graph);
        let trusts_ports = lacks_values && !model.graph.unordered().any(|layer| layer.edited);
        Self { retyper, trusts_ports, ..Self::over(source, weights, *version) }
    }

    pub(crate) fn over(source: &Arc<String>, weights: &Weights, version: IrVersion) -> Self {
        Self {
            source: source.clone(),
            evaluator: Evaluator::new(weights),
            version,
            retyper: None,
            trusts_ports: false,
            scope: Scope::default(),
            outer: Vec::new(),
            variables: HashMap::default(),
            runs: BTreeMap::new(),
            undecided: Vec::new(),
            allowance: MIN_ALLOWANCE.saturating_add(source.len()),
            declared: BTreeMap::new(),
            lacks_values: false,
        }
    }

    /// Infers the bodies of a layer, then applies its rule.
    ///
    /// # Errors
    /// An error in the layer or in its bodies.
    pub(crate) fn outputs_with_bodies(
        &mut self,
        graph: &Graph,
        id: LayerId,
        operation: &'static Operation,
        bodies: &mut [Body],
    ) -> Result<Outputs, Message> {
        let outputs = self.outputs(graph, id, operation, bodies);
        let inside = self.runs.values().flat_map(|run| &run.diagnostics).find(|found| found.is_error());
        match inside {
            Some(error) => Err(error.message.clone()),
            None => outputs.map_err(|fault| fault.message),
        }
    }

    fn infer_model(mut self, model: &mut Model) -> Vec<Diagnostic> {
        self.check_weights(model);
        self.infer_graph(&mut model.graph);
        let bodies = std::mem::take(&mut self.runs).into_values();
        self.scope.diagnostics.extend(bodies.flat_map(|run| run.diagnostics));
        if self.version == IrVersion::V10 && self.scope.stale.is_none() {
            self.scope.diagnostics.extend(version_10::name_collisions(&model.graph, &self.source));
        }
        self.forget_consequences();
        self.scope.diagnostics.sort_by_key(|found| found.labels.first().map(|label| label.span.start));
        self.note_declared_outputs();
        self.scope.diagnostics
    }

    fn infer_graph(&mut self, graph: &mut Graph) {
        // Cycles are reported when a file is read, and edits create none.
        let Ok(mut order) = graph.topological_order() else { return };
        if graph.unordered().any(|layer| layer.start() == Some(Start::Assign)) {
            // OpenVINO checks an Assign against the ReadValue that it created last, so its order of creation matters.
            let created = creation_order(graph);
            let read = self.scope.read.insert(created.iter().copied().collect());
            order.retain(|id| !read.contains(id));
            order.splice(..0, created);
            let layers = read.iter().filter_map(|&id| graph.layer(id));
            let readers = layers.filter(|layer| ops::kind(layer) == LayerKind::ReadValue);
            let variables = readers.map(|layer| layer.attribute("variable_id").unwrap_or_default().to_owned());
            self.scope.readable = variables.collect();
        }
        for id in each("infer", order) {
            if self.scope.stale.as_ref().is_none_or(|stale| stale.contains(&id)) {
                self.infer_layer(graph, id);
            }
        }
    }

    /// Infers a body. Its Parameters get these types; with `None` they keep their own. A body with unchanged inputs is
    /// not inferred again, because nested bodies would multiply the work.
    ///
    /// # Errors
    /// Bodies of the model that exceed the limit on work.
    fn infer_body(&mut self, owner: &Layer, at: usize, body: &mut Body, given: Option<&Given>) -> Result<(), Fault> {
        let retyped = self.retyper.as_ref().map_or(0, |retyper| retyper.retyped_parameters());
        if given.is_some_and(|given| self.run(owner, at).is_like(given, retyped)) {
            return Ok(());
        }
        self.spend(body.graph.len() + 1)?;
        let inner = self.scope.of_body(owner, at, body, given);
        if let Some(retyper) = &mut self.retyper {
            retyper.enter(owner.id, at);
        }
        self.outer.push(std::mem::replace(&mut self.scope, inner));
        self.infer_graph(&mut body.graph);
        let outer = self.outer.pop().unwrap_or_default();
        let Scope { diagnostics, is_given, has_memory, given, .. } = std::mem::replace(&mut self.scope, outer);
        self.scope.has_memory |= has_memory;
        if let Some(retyper) = &mut self.retyper {
            retyper.leave(!is_given);
        }
        let run = self.run(owner, at);
        run.repeats = (is_given && !has_memory).then_some((given, retyped));
        if !run.failed() {
            run.diagnostics = diagnostics;
        }
        Ok(())
    }

    fn run(&mut self, owner: &Layer, body: usize) -> &mut Run {
        self.runs.entry(self.scope.place.body(owner.id, body)).or_default()
    }

    fn infer_layer(&mut self, graph: &mut Graph, id: LayerId) {
        let Some(layer) = graph.layer_mut(id) else { return };
        let (operation, mut bodies) = (layer.operation(), std::mem::take(&mut layer.bodies));
        let has_bodies = !bodies.is_empty();
        if operation.is_none() {
            self.note_unknown(graph, id);
            if !has_bodies {
                return;
            }
        }
        let mut infer = |walk: &mut Self| match operation {
            Some(operation) => walk.outputs(graph, id, operation, &mut bodies),
            None => walk.declared_outputs(graph, id, &mut bodies),
        };
        // Inputs of a layer that OpenVINO drops are not converted, nor are those in its bodies.
        let is_dropped = self.retyper.is_some() && has_bodies && !self.is_read(graph, id);
        let outputs = if is_dropped { self.without_retyping(&mut infer) } else { infer(self) };
        let outputs = match outputs {
            Ok(outputs) => outputs,
            Err(fault) => self.recover(graph, id, operation, &mut bodies, fault),
        };
        self.pass_doubts_on(graph, id);
        if has_bodies {
            self.forget_dropped_bodies(graph, id);
        }
        let Some(layer) = graph.layer_mut(id) else { return };
        layer.bodies = bodies;
        if self.outer.is_empty() {
            layer.lacks_values = std::mem::take(&mut self.lacks_values);
        }
        let changed = self.write_outputs(layer, outputs);
        if let Some(stale) = &mut self.scope.stale {
            if changed {
                graph.mark_ports_changed(id);
            }
            // The values of a computable layer may change even if its type and shape are unchanged.
            if changed || operation.is_some_and(|it| !matches!(it.evaluate, ops::evaluate::Evaluate::Never)) {
                stale.extend(graph.users(id));
            }
        }
    }

    /// Records the layer if its operation is unknown.
    fn note_unknown(&mut self, graph: &Graph, id: LayerId) {
        let Some(layer) = graph.layer(id).filter(|_| !self.scope.is_given) else { return };
        // An empty type or version was reported by the reader.
        if !layer.ty().is_empty() && !layer.version().is_empty() && !self.report_unknown(graph, id) {
            let operation = format!("{} ({})", layer.ty(), layer.version());
            let layer = (self.scope.place.clone(), id);
            self.declared.entry(operation).or_default().insert(layer);
        }
    }

    /// Surplus ports become dynamic. Returns true if any changed.
    fn write_outputs(&self, layer: &mut Layer, outputs: Outputs) -> bool {
        let mut changed = false;
        let mut outputs = outputs.into_iter();
        for port in &mut layer.outputs {
            let TensorType { element_type, shape } = match outputs.next() {
                None => TensorType::dynamic(),
                Some(TensorType { element_type, shape }) if self.trusts_ports => {
                    TensorType { element_type, shape: shape.merge(&port.shape).unwrap_or(shape) }
                }
                Some(output) => output,
            };
            if port.element_type == element_type && port.shape == shape {
                continue;
            }
            changed = true;
            port.element_type = element_type;
            port.shape = shape;
            port.stale = port.declared != Some(element_type)
                || !xml::matches_dims(&xml::declared_dims(&self.source, port.content), &port.shape);
        }
        changed
    }

    fn outputs(
        &mut self,
        graph: &Graph,
        id: LayerId,
        operation: &'static Operation,
        bodies: &mut [Body],
    ) -> Result<Outputs, Fault> {
        // Edits also reach this function for each new layer, so a long batch can be stopped.
        poll();
        let Some(layer) = graph.layer(id) else { return Ok(Outputs::new()) };
        if layer.broken {
            self.scope.doubtful.insert(id);
            return Ok(Outputs::new());
        }
        self.read_bodies(layer, bodies)?;
        // The number of inputs is the number of connected ports.
        let inputs = graph.tensors(id);
        check_ports_fed(layer, operation, inputs.len())?;
        let given = self.scope.given.get(&layer.id).cloned();
        let count = check_input_count(layer, operation, inputs.len());
        let mut values = AttributeValues::default();
        let findings = values.read(layer, operation);
        if !findings.is_empty() {
            self.report_attributes(graph, id, findings, count.as_ref().err(), bodies.len())?;
        }
        count?;
        let subject = Subject { graph, layer, operation, values: &values, given: given.as_ref() };
        let outputs = match self.retyper {
            Some(_) => self.apply(&subject, &inputs, bodies)?,
            None => subject.infer(&inputs, bodies, self)?,
        };
        check_output_count(graph, layer, outputs.len(), self.version)?;
        Ok(outputs)
    }

    /// Records the problems of a layer's attributes and the errors in `more`.
    ///
    /// # Errors
    /// The last fault of the attributes, which is not recorded.
    #[cold]
    fn report_attributes(
        &mut self,
        graph: &Graph,
        id: LayerId,
        findings: Vec<Finding>,
        more: Option<&Fault>,
        bodies: usize,
    ) -> Result<(), Fault> {
        let mut faults = Vec::new();
        for finding in findings {
            match finding {
                Finding::Odd(lint) => {
                    let lint = self.diagnose(graph, id, &lint);
                    self.scope.diagnostics.push(lint);
                }
                Finding::Refused(fault) => faults.push(fault),
            }
        }
        let Some(last) = faults.pop() else { return Ok(()) };
        faults.iter().chain(more).for_each(|fault| self.report(graph, id, fault, bodies));
        Err(last)
    }

    /// OpenVINO reads its bodies too, so they are inferred.
    fn declared_outputs(&mut self, graph: &Graph, id: LayerId, bodies: &mut [Body]) -> Result<Outputs, Fault> {
        let Some(layer) = graph.layer(id).filter(|layer| !layer.broken) else { return Ok(Outputs::new()) };
        self.read_bodies(layer, bodies)?;
        ops::check_port_maps(bodies)?;
        Ok(layer.outputs.iter().map(OutputPort::tensor_type).collect())
    }

    /// Infers the bodies of a layer with the types of their own Parameters, unless this was done before. OpenVINO
    /// reports errors of a body before it connects the body.
    fn read_bodies(&mut self, layer: &Layer, bodies: &mut [Body]) -> Result<(), Fault> {
        if self.scope.is_given { Ok(()) } else { self.infer_bodies(layer, bodies) }
    }

    /// Infers the bodies of a layer with the types of their own Parameters.
    fn infer_bodies(&mut self, layer: &Layer, bodies: &mut [Body]) -> Result<(), Fault> {
        bodies.iter_mut().enumerate().try_for_each(|(at, body)| self.infer_body(layer, at, body, None))
    }

    /// Records values that OpenVINO fails to compute.
    fn report_evaluation(&mut self, graph: &Graph, faults: Vec<(LayerId, Fault)>) {
        for (id, fault) in faults {
            let diagnostic = self.diagnose(graph, id, &fault);
            self.scope.diagnostics.push(diagnostic);
        }
    }

    /// Records an error of a layer. Skips it if an error in a body explains it, or if OpenVINO ignores the layer.
    #[cold]
    fn report(&mut self, graph: &Graph, id: LayerId, fault: &Fault, bodies: usize) {
        let failed = graph.layer(id).is_some_and(|layer| (0..bodies).any(|body| self.run(layer, body).failed()));
        if !failed && self.is_read(graph, id) && !self.follows_from_error(graph, id, fault) {
            let diagnostic = self.diagnose(graph, id, fault);
            if fault.code == Code::NoCommonType
                && graph.tensors(id).iter().any(|tensor| tensor.element_type == ElementType::Dynamic)
            {
                self.undecided.extend(diagnostic.layer.clone());
            }
            self.scope.diagnostics.push(diagnostic);
        }
    }

    /// Reports a layer whose operation exists only in another operation set or under another name. Returns true if it
    /// was reported.
    #[cold]
    fn report_unknown(&mut self, graph: &Graph, id: LayerId) -> bool {
        let Some(layer) = graph.layer(id) else { return false };
        let UnknownOperation { code, attribute, message, help } = ops::describe_unknown(layer.ty(), layer.version());
        if code == Code::UnknownOperation || !layer.outputs.is_empty() && !self.is_read(graph, id) {
            return false;
        }
        let found = self.diagnose(graph, id, &Fault::other(code, message).help(help));
        let span = xml::locate(&self.source, layer.span.unwrap_or_default(), "layer", attribute);
        self.scope
            .diagnostics
            .push(Diagnostic { labels: Vec::new(), ..found }.at(span, "OpenVINO does not accept this layer"));
        true
    }

    /// Removes errors about unknown types that are consequences of other errors.
    fn forget_consequences(&mut self) {
        let undecided = std::mem::take(&mut self.undecided);
        let can_follow = |found: &Diagnostic| {
            found.code == Code::NoCommonType && found.layer.as_ref().is_some_and(|layer| undecided.contains(layer))
        };
        if self.scope.diagnostics.iter().any(|found| found.is_error() && !can_follow(found)) {
            self.scope.diagnostics.retain(|found| !can_follow(found));
        }
    }

    fn runs_inside(&self, id: LayerId) -> Vec<Place> {
        let place = &self.scope.place;
        let inside = self.runs.range(place.body(id, 0)..).map(|(body, _)| body);
        inside.take_while(|body| body.is_inside(place, id)).cloned().collect()
    }

    /// Removes findings in the bodies of a layer that OpenVINO ignores.
    fn forget_dropped_bodies(&mut self, graph: &Graph, id: LayerId) {
        let inside = self.runs_inside(id);
        if inside.iter().any(|body| self.runs.get(body).is_some_and(|run| !run.diagnostics.is_empty()))
            && !self.is_read(graph, id)
        {
            inside.iter().for_each(|body| drop(self.runs.remove(body)));
        }
    }

    /// True if OpenVINO's reader keeps a layer of the current graph. It drops layers on which no Result or Assign
    /// depends.
    fn is_read(&mut self, graph: &Graph, id: LayerId) -> bool {
        self.scope.read.get_or_insert_with(|| creation_order(graph).into_iter().collect()).contains(&id)
    }

    #[cold]
    pub(crate) fn diagnose(&self, graph: &Graph, id: LayerId, fault: &Fault) -> Diagnostic {
        diagnose(&self.source, &self.scope.place, graph, id, fault)
    }

    fn note_declared_outputs(&mut self) {
        if self.declared.is_empty() {
            return;
        }
        let count: usize = self.declared.values().map(HashSet::len).sum();
        let list = self
            .declared
            .iter()
            .map(|(name, layers)| format!("{name} x{}", layers.len()))
            .collect::<Vec<_>>()
            .join(", ");
        let layers = if count == 1 { "layer keeps" } else { "layers keep" };
        let message = message!("{} {} the types and shapes that the file declares: {}"; count, layers, list);
        self.scope.diagnostics.push(Diagnostic::new(Code::DeclaredOutputs, message));
    }
}

impl Surroundings for Walk<'_> {
    fn weights(&self) -> &Weights {
        self.evaluator.weights()
    }

    fn bounds(&mut self, graph: &Graph, tensor: Output) -> Option<Rc<Bounds>> {
        let values = &mut self.scope.values;
        let alignments = self.retyper.as_ref().map(|retyper| retyper.alignments());
        let bounds = self.evaluator.bounds(graph, values, alignments, tensor);
        self.lacks_values |= std::mem::take(&mut values.lacks_promoted);
        let faults = std::mem::take(&mut values.faults);
        self.report_evaluation(graph, faults);
        bounds
    }

    fn input_bounds(&mut self, graph: &Graph, input: Input) -> Option<Rc<Bounds>> {
        let tensor = graph.producer(input)?;
        let found = self.scope.diagnostics.len();
        let bounds = self.bounds(graph, tensor);
        // OpenVINO computes no values for layers that it drops, so their errors are removed.
        if self.scope.diagnostics.len() > found && !self.is_read(graph, input.layer) {
            self.scope.diagnostics.truncate(found);
        }
        let bounds = bounds?;
        match self.retyped_inputs(input.layer).iter().find(|(retyped, _)| *retyped == input.port) {
            Some(&(_, to)) => bounds.converted(to).map(Rc::new),
            None => Some(bounds),
        }
    }

    fn lint(&mut self, graph: &Graph, id: LayerId, lint: &Fault) {
        if !self.follows_from_error(graph, id, lint) {
            let diagnostic = self.diagnose(graph, id, lint);
            self.scope.diagnostics.push(diagnostic);
        }
    }

    fn variables(&mut self) -> &mut HashMap<String, TensorType> {
        self.scope.has_memory = true;
        &mut self.variables
    }

    fn is_readable(&self, variable: &str) -> bool {
        self.scope.readable.contains(variable)
    }

    fn infer_body(&mut self, owner: &Layer, at: usize, body: &mut Body, given: &Given) -> Result<(), Fault> {
        Self::infer_body(self, owner, at, body, Some(given))
    }

    fn body_bounds(&mut self, owner: &Layer, at: usize, body: &Graph, tensor: Output) -> Option<Rc<Bounds>> {
        let alignments = self.retyper.as_ref().and_then(|retyper| retyper.alignments_of(owner.id, at));
        let mut values = Values::default();
        let bounds = self.evaluator.bounds(body, &mut values, alignments, tensor);
        self.lacks_values |= values.lacks_promoted;
        self.report_evaluation(body, values.faults);
        bounds
    }

    fn iterations(&mut self, owner: &Layer, body: usize) -> &mut Option<i64> {
        self.scope.has_memory = true;
        &mut self.run(owner, body).iterations
    }

    fn common_result_type(
        &mut self,
        owner: &Layer,
        bodies: &[Body],
        results: [(usize, LayerId); 2],
    ) -> Option<ElementType> {
        self.retyper.as_mut()?.tie_results(owner, bodies, results)
    }

    fn spend(&mut self, layers: usize) -> Result<(), Fault> {
        self.allowance = self.allowance.checked_sub(layers).ok_or_else(|| {
            Fault::other(Code::InvalidBody, "the shapes in the bodies of this layer keep changing")
                .rule("a body is inferred again until the shapes of its loop variables no longer change")
        })?;
        Ok(())
    }
}

/// Infers a model after reading, and adds new findings to those of the reader.
///
/// If the reader found errors, missing inputs are not reported, because those errors can cause them.
pub fn infer_read(model: &mut Model, found: &mut Vec<Diagnostic>) {
    let is_damaged = found.iter().any(Diagnostic::is_error);
    let mut inferred = infer(model);
    inferred.retain(|it| !(is_damaged && it.code == Code::WrongInputCount));
    found.append(&mut inferred);
}

#[cold]
pub(crate) fn diagnose(source: &Arc<String>, place: &Place, graph: &Graph, id: LayerId, fault: &Fault) -> Diagnostic {
    let mut diagnostic = Diagnostic::new(fault.code, fault.message.clone()).about(fault.to_about());
    let Some(layer) = graph.layer(id) else { return diagnostic };
    diagnostic.layer = Some(LayerRef::of(place, layer));
    let text = layer.span.unwrap_or_default();
    let name = || xml::locate(source, text, "layer", "name");
    let span = match (fault.attribute, fault.detail.as_deref()) {
        (Some(attribute), detail) => {
            let value = xml::locate(source, text, "data", attribute);
            match detail {
                Some(Detail::Bytes(bytes)) => {
                    layer.attribute(attribute).and_then(|text| value.part(bytes.clone(), text))
                }
                _ => None,
            }
            .unwrap_or(value)
        }
        (None, Some(Detail::Joint { body, direction, id })) => xml::locate_entry(source, text, body, *direction, *id)
            .or_else(|| xml::locate_joint(source, text, *id))
            .unwrap_or_else(name),
        (None, _) => name(),
    };
    diagnostic = diagnostic.at(span, fault.rule.as_deref().cloned().unwrap_or_default());
    let feeds = graph.feeds(id);
    for &input in &fault.inputs {
        let Some(&Some((producer, port))) = feeds.get(input) else { continue };
        let Some(output) = producer.outputs.get(port) else { continue };
        diagnostic.related.push(Related::of(place, layer, input, producer, output));
    }
    diagnostic.fixes.extend(fault.help.as_deref().cloned());
    match fault.code {
        _ if !fault.other_rules.is_empty() => diagnostic.fixes.extend(fault.other_rules.iter().cloned()),
        Code::TypeMismatch | Code::UnsupportedType => diagnostic.fixes.push(Fix::untried(FixAction::Align)),
        _ => {}
    }
    diagnostic
}

/// The layers that OpenVINO's reader creates, in its order: Parameters, then all producers of each Result and Assign.
fn creation_order(graph: &Graph) -> Vec<LayerId> {
    let starts = graph.layers().filter_map(|layer| Some((layer.id, layer.start()?)));
    let (parameters, sinks): (Vec<_>, Vec<_>) = starts.partition(|start| start.1 == Start::Parameter);
    let mut order: Vec<LayerId> = parameters.into_iter().map(|(id, _)| id).collect();
    let mut seen: HashSet<LayerId> = order.iter().copied().collect();
    for (sink, _) in sinks {
        let mut pending = vec![(sink, false)];
        while let Some((id, expanded)) = pending.pop() {
            if expanded {
                order.push(id);
            } else if seen.insert(id) {
                pending.push((id, true));
                // Newest edges are pushed first, so the first edge of the file is processed first.
                pending.extend(graph.sources(id).map(|source| (source, false)));
            }
        }
    }
    order
}

fn check_input_count(layer: &Layer, operation: &Operation, count: usize) -> Result<(), Fault> {
    let takes = operation.input_counts();
    if takes.contains(&count) {
        return Ok(());
    }
    let takes: Message = match (*takes.start(), *takes.end()) {
        (1, 1) => "1 input".into(),
        (least, most) if least == most => message!("{} inputs"; least),
        (least, usize::MAX) => message!("{} or more inputs"; least),
        (least, most) => message!("{} to {} inputs"; least, most),
    };
    let connected: Message = match count {
        0 => "none is".into(),
        1 => "1 is".into(),
        count => message!("{} are"; count),
    };
    let fault =
        Fault::other(Code::WrongInputCount, message!("`{}` takes {}, but {} connected"; layer.ty(), takes, connected));
    Err(fault.help("add the missing <edge>, or remove the extra ones"))
}

/// Reports unconnected input ports at the end. OpenVINO requires an edge at each port, even for optional inputs.
fn check_ports_fed(layer: &Layer, operation: &Operation, count: usize) -> Result<(), Fault> {
    if layer.inputs.len() <= count || !operation.input_counts().contains(&count) {
        return Ok(());
    }
    let message = message!("input {} of layer {} `{}` is not connected"; count, layer.id, layer.name);
    let fault = Fault::other(Code::UnconnectedInput, message).rule("every port in <input> needs an edge");
    Err(fault.help("add the <edge> that ends at this port, or remove the port"))
}

/// Reports output ports that the operation does not have. Files of version 10 may declare them if no edge uses them.
fn check_output_count(graph: &Graph, layer: &Layer, count: usize, version: IrVersion) -> Result<(), Fault> {
    if layer.outputs.len() <= count {
        return Ok(());
    }
    let used = graph.uses(layer.id).any(|(port, _)| port >= count);
    if version == IrVersion::V10 && !used {
        return Ok(());
    }
    let outputs = if count == 1 { "output" } else { "outputs" };
    let message = message!(
        "`{}` has {} {} here, but the file declares {} ports";
        layer.ty(), count, outputs, layer.outputs.len()
    );
    Err(Fault::other(Code::UnknownPort, message).help("remove the extra ports, and edges that start there"))
}
