//! The forward walk: every layer after those that feed it, bodies included.

pub(crate) mod array;
pub(crate) mod value;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use petgraph::stable_graph::NodeIndex;
use smallvec::SmallVec;
use typelift_promote::ElementType;

use crate::diagnostic::{Code, Diagnostic, LayerRef};
use crate::graph::{Body, Graph, Layer, LayerId, Model, OutputPort};
use crate::ops::{self, Attributes, BodyInput, Context, Fault, Operation};
use crate::shape::Shape;
use crate::weights::Weights;
use crate::xml;

/// Finds the element type and the shape of every tensor of a model and of its bodies, in place, and gives what is wrong
/// with it.
///
/// Types and shapes follow from Parameters, constants and attributes alone; what the ports of the file declare counts only
/// for operations without a rule, of which one note tells. After an error the outputs of its layer count as dynamic, so
/// that one mistake gives one message.
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
/// let y = &model.graph.layer(typelift::LayerId(1)).unwrap().outputs()[0];
/// assert_eq!(format!("{}{}", y.element_type(), y.shape()), "f16[?,3]");
/// # Ok::<(), typelift::Diagnostics>(())
/// ```
pub fn infer(model: &mut Model) -> Vec<Diagnostic> {
    let mut walk = Walk {
        source: model.source.clone(),
        weights: model.weights.clone(),
        diagnostics: Vec::new(),
        path: Vec::new(),
        declared: BTreeMap::new(),
        budget: value::BUDGET,
    };
    walk.graph(&mut model.graph, &HashMap::new());
    walk.note_declared_outputs();
    walk.diagnostics
}

/// What one run of inference carries along.
pub(crate) struct Walk {
    source: Arc<str>,
    pub(crate) weights: Weights,
    pub(crate) diagnostics: Vec<Diagnostic>,
    /// The layers around the body being walked.
    path: Vec<String>,
    /// How many layers of which operation kept what the file declares.
    declared: BTreeMap<String, usize>,
    /// How many more elements may go into and come out of the evaluation of values.
    pub(crate) budget: u64,
}

impl Walk {
    fn graph(&mut self, graph: &mut Graph, given: &HashMap<LayerId, BodyInput>) {
        // Circles are found and reported when a file is read, and the verbs make none.
        let Ok(order) = graph.topological_order() else { return };
        let mut values = value::Cache::default();
        for node in order {
            self.layer(graph, node, given, &mut values);
        }
    }

    /// Infers a body with these Parameters given from outside.
    pub(crate) fn body(&mut self, owner: &Layer, body: &mut Body, given: &HashMap<LayerId, BodyInput>) {
        self.path.push(format!("{}/{}", owner.name, body.name));
        self.graph(&mut body.graph, given);
        self.path.pop();
    }

    fn layer(
        &mut self,
        graph: &mut Graph,
        node: NodeIndex,
        given: &HashMap<LayerId, BodyInput>,
        values: &mut value::Cache,
    ) {
        let Some(layer) = graph.weight_mut(node) else { return };
        let Some(operation) = ops::lookup(&layer.ty, &layer.version) else {
            *self.declared.entry(format!("{} ({})", layer.ty, layer.version)).or_default() += 1;
            return;
        };
        let mut bodies = std::mem::take(&mut layer.bodies);
        let outputs = match self.outputs(graph, node, operation, &mut bodies, given, values) {
            Ok(outputs) => outputs,
            Err(fault) => {
                let diagnostic = self.diagnose(graph, node, &fault);
                self.diagnostics.push(diagnostic);
                SmallVec::new()
            }
        };
        let Some(layer) = graph.weight_mut(node) else { return };
        layer.bodies = bodies;
        let known = outputs.into_iter().map(Some).chain(std::iter::repeat_with(|| None));
        for (port, output) in layer.outputs.iter_mut().zip(known) {
            let (element_type, shape) = output.unwrap_or_else(|| (ElementType::Dynamic, Shape::dynamic()));
            if port.element_type == element_type && port.shape == shape {
                continue;
            }
            port.element_type = element_type;
            port.shape = shape;
            port.stale = port.declared != Some(element_type)
                || !xml::matches_dims(&xml::declared_dims(&self.source, port.content), &port.shape);
        }
    }

    fn outputs(
        &mut self,
        graph: &Graph,
        node: NodeIndex,
        operation: &'static Operation,
        bodies: &mut [Body],
        given: &HashMap<LayerId, BodyInput>,
        values: &mut value::Cache,
    ) -> Result<SmallVec<[(ElementType, Shape); 2]>, Fault> {
        let Some(layer) = graph.weight(node) else { return Ok(SmallVec::new()) };
        // An operation has as many inputs as edges arrive at it: ports at the end may be left out.
        let feeds = graph.feeds(node);
        let fed = feeds.iter().map_while(|feed| feed.as_ref());
        let inputs: SmallVec<[&OutputPort; 4]> =
            fed.filter_map(|&(node, port)| graph.weight(node)?.outputs.get(port)).collect();
        check_input_count(layer, operation, inputs.len())?;
        let mut odd: SmallVec<[Fault; 1]> = SmallVec::new();
        for attribute in &layer.attributes {
            if let Some(row) = operation.attribute(&attribute.name)
                && row.check(&attribute.value)?
            {
                odd.push(odd_attribute(row, &attribute.value));
            }
        }
        let mut cx = Context {
            walk: self,
            graph,
            node,
            attributes: Attributes { layer, operation },
            inputs: &inputs,
            bodies,
            given: given.get(&layer.id),
            values,
            outputs: SmallVec::new(),
        };
        for lint in odd {
            cx.lint(lint);
        }
        operation.infer(&mut cx)?;
        let outputs = cx.outputs;
        if outputs.len() < layer.outputs.len() {
            self.check_output_count(graph, node, layer, outputs.len())?;
        }
        Ok(outputs)
    }

    #[cold]
    fn check_output_count(&self, graph: &Graph, node: NodeIndex, layer: &Layer, count: usize) -> Result<(), Fault> {
        let used = graph.petgraph().edges(node).any(|edge| edge.weight().from_port as usize >= count);
        match used {
            true => Err(Fault::other(
                Code::UnknownPort,
                format!("`{}` has {count} outputs here, and an edge starts at one of the other ports", layer.ty),
            )),
            false => Ok(()),
        }
    }

    /// A fault of a layer with its place, the tensors it is about and their producers.
    #[cold]
    pub(crate) fn diagnose(&self, graph: &Graph, node: NodeIndex, fault: &Fault) -> Diagnostic {
        let mut diagnostic = Diagnostic::new(fault.code, fault.message.clone());
        let Some(layer) = graph.weight(node) else { return diagnostic };
        diagnostic.layer = Some(LayerRef { id: layer.id, name: layer.name.to_string(), path: self.path.join("/") });
        let place = layer.span.unwrap_or_default();
        let span = match fault.attribute {
            Some(attribute) => xml::locate(&self.source, place, "data", attribute),
            None => xml::locate(&self.source, place, "layer", "name"),
        };
        diagnostic = diagnostic.at(span, fault.rule.as_deref().unwrap_or("here").to_owned());
        let feeds = graph.feeds(node);
        for &input in &fault.inputs {
            let Some(&Some((source, port))) = feeds.get(input) else { continue };
            let Some((producer, output)) = graph.weight(source).and_then(|l| Some((l, l.outputs.get(port)?))) else {
                continue;
            };
            let line = producer.span.unwrap_or_default().line_column(&self.source).0;
            diagnostic = diagnostic.note(format!(
                "input {input} is {}{} from {} {} `{}` (line {line})",
                output.element_type, output.shape, producer.ty, producer.id, producer.name
            ));
        }
        diagnostic.help.extend(fault.help.clone());
        diagnostic
    }

    fn note_declared_outputs(&mut self) {
        if self.declared.is_empty() {
            return;
        }
        let count: usize = self.declared.values().sum();
        let list = self.declared.iter().map(|(name, count)| format!("{name} x{count}")).collect::<Vec<_>>().join(", ");
        let layers = if count == 1 { "layer keeps" } else { "layers keep" };
        let message = format!("{count} {layers} the types and shapes that the file declares: {list}");
        self.diagnostics.push(Diagnostic::new(Code::DeclaredOutputs, message));
    }
}

fn check_input_count(layer: &Layer, operation: &Operation, count: usize) -> Result<(), Fault> {
    let takes = operation.input_counts();
    if takes.contains(&count) {
        return Ok(());
    }
    let takes = match (*takes.start(), *takes.end()) {
        (least, most) if least == most => format!("{least}"),
        (least, usize::MAX) => format!("{least} or more"),
        (least, most) => format!("{least} to {most}"),
    };
    let fault =
        Fault::other(Code::WrongInputCount, format!("`{}` takes {takes} inputs, and {count} are connected", layer.ty));
    Err(fault.help("add the missing <edge>, or take out the ones too many"))
}

fn odd_attribute(row: &ops::Attr, text: &str) -> Fault {
    let (code, message) = match row.kind {
        ops::AttrKind::Bool => {
            let stays = row.default.unwrap_or("unset");
            (Code::InvalidBoolean, format!("attribute `{}` is `{text}`, no boolean: it stays {stays}", row.name))
        }
        _ => (Code::TrailingJunk, format!("attribute `{}` is `{text}`, of which only the numbers count", row.name)),
    };
    Fault { attribute: Some(row.name), ..Fault::other(code, message) }
}
