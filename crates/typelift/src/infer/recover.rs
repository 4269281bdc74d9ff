//! Recovery after an error. It finds further errors of the layer, and keeps the facts that are certain.

use smallvec::SmallVec;
use typelift_promote::ElementType;

use super::Walk;
use crate::findings::{About, Code, Message, message};
use crate::model::graph::{Body, Graph, LayerId, OutputPort};
use crate::model::shape::{Shape, TensorType};
use crate::ops::{Attr, AttributeValues, Fault, Operation, Outputs, Subject, is_constant};
use crate::text::xml;

/// The types or the shapes of a layer's inputs, whichever an error makes unknown.
#[derive(Clone, Copy, PartialEq, Eq)]
enum UnknownPart {
    Types,
    Shapes,
}

impl UnknownPart {
    fn of(fault: &Fault) -> Self {
        match fault.code {
            Code::TypeMismatch | Code::UnsupportedType | Code::NoCommonType => Self::Types,
            _ => Self::Shapes,
        }
    }

    fn is_unknown(self, port: &OutputPort) -> bool {
        match self {
            Self::Types => port.element_type == ElementType::Dynamic,
            Self::Shapes => port.shape.rank().is_none(),
        }
    }

    fn forget(self, port: &mut OutputPort) {
        match self {
            Self::Types => port.element_type = ElementType::Dynamic,
            Self::Shapes => port.shape = Shape::dynamic(),
        }
    }
}

impl Walk<'_> {
    /// Reports an error of a layer and all further errors of its rule. After each error its inputs become unknown, and
    /// the rule is applied again. Returns the outputs as far as they are known, or the declared ones if the rule still
    /// fails.
    #[cold]
    pub(super) fn recover(
        &mut self,
        graph: &Graph,
        id: LayerId,
        operation: Option<&'static Operation>,
        bodies: &mut [Body],
        first: Fault,
    ) -> Outputs {
        self.scope.doubtful.insert(id);
        let layer = graph.layer(id).filter(|_| self.retyper.is_none());
        let Some(layer) = layer else {
            self.report(graph, id, &first, bodies.len());
            return Outputs::new();
        };
        let outputs = match operation {
            // Bodies are not inferred again only to find more errors of their layer.
            Some(operation) if bodies.is_empty() && first.code != Code::WrongInputCount => {
                let values = AttributeValues::of(layer, operation);
                let given = self.scope.given.get(&layer.id).cloned();
                let subject = Subject { graph, layer, operation, values: &values, given: given.as_ref() };
                self.apply_leniently(&subject, first)
            }
            _ => {
                let map = "correct the <port_map>, the <back_edges> or the body that the message names";
                let first = if first.help.is_none() && !bodies.is_empty() { first.help(map) } else { first };
                self.report(graph, id, &first, bodies.len());
                None
            }
        };
        outputs.unwrap_or_else(|| layer.outputs.iter().map(|port| declared(&self.source, port)).collect())
    }

    fn apply_leniently(&mut self, subject: &Subject, first: Fault) -> Option<Outputs> {
        let tensors = subject.graph.tensors(subject.layer.id);
        let mut inputs: SmallVec<[OutputPort; 4]> = tensors.into_iter().cloned().collect();
        let first = self.report_with_advice(subject, first);
        let found = self.scope.diagnostics.len();
        let mut faults = vec![first];
        let mut reported = 0;
        // Each round makes the dimensions, the rank or the type of at least one input unknown. The last round makes
        // all unknown.
        for _ in 0..3 * inputs.len() + 2 {
            let fault = faults.last()?;
            if !leave_open(fault, &mut inputs) && !leave_all_open(&mut inputs) {
                return None;
            }
            let taken: SmallVec<[&OutputPort; 4]> = inputs.iter().collect();
            let outputs = subject.infer(&taken, &mut [], self);
            drop(taken);
            self.scope.diagnostics.truncate(found + reported);
            let next = match outputs {
                Ok(outputs) => return Some(outputs),
                Err(next) => next,
            };
            if !faults.iter().any(|known| is_echo(known, &next)) {
                let next = self.report_with_advice(subject, next);
                reported = self.scope.diagnostics.len() - found;
                faults.push(next);
            }
        }
        None
    }

    /// Reports an error. If it concerns shapes or values, adds a fix.
    fn report_with_advice(&mut self, subject: &Subject, mut fault: Fault) -> Fault {
        let (graph, id) = (subject.graph, subject.layer.id);
        let is_of_values = [Code::ShapeMismatch, Code::InvalidValue].contains(&fault.code);
        if is_of_values
            && fault.help.is_none()
            && self.is_read(graph, id)
            && !self.follows_from_error(graph, id, &fault)
        {
            fault.help = Some(Box::new(advice(subject, &fault).into()));
        }
        self.report(graph, id, &fault, 0);
        fault
    }

    pub(crate) fn follows_from_error(&self, graph: &Graph, id: LayerId, fault: &Fault) -> bool {
        let feeds = graph.feeds(id);
        fault.inputs.iter().any(|&input| {
            let Some(&Some((source, port))) = feeds.get(input) else { return false };
            let output = source.outputs.get(port);
            self.scope.doubtful.contains(&source.id)
                && output.is_some_and(|output| UnknownPart::of(fault).is_unknown(output))
        })
    }

    /// Marks a layer whose inputs depend on a layer with an error.
    pub(super) fn pass_doubts_on(&mut self, graph: &Graph, id: LayerId) {
        if !self.scope.doubtful.is_empty() && graph.sources(id).any(|source| self.scope.doubtful.contains(&source)) {
            self.scope.doubtful.insert(id);
        }
    }
}

/// Makes unknown what an error concerns: first the dimensions of a shape, then its rank. Returns `false` if it
/// concerns no input, or nothing that is known.
fn leave_open(fault: &Fault, inputs: &mut [OutputPort]) -> bool {
    let part = UnknownPart::of(fault);
    let mut changed = false;
    for &input in &fault.inputs {
        if let Some(port) = inputs.get_mut(input).filter(|port| !part.is_unknown(port)) {
            match port.shape.rank().map(Shape::of_rank) {
                Some(open) if part == UnknownPart::Shapes && open != port.shape => port.shape = open,
                _ => part.forget(port),
            }
            changed = true;
        }
    }
    changed
}

/// Makes all shapes unknown, or all types if the shapes are unknown already.
fn leave_all_open(inputs: &mut [OutputPort]) -> bool {
    [UnknownPart::Shapes, UnknownPart::Types].into_iter().any(|part| {
        let known: Vec<_> = inputs.iter_mut().filter(|port| !part.is_unknown(port)).collect();
        let changed = !known.is_empty();
        known.into_iter().for_each(|port| part.forget(port));
        changed
    })
}

fn is_echo(known: &Fault, next: &Fault) -> bool {
    let overlap = known.inputs.iter().any(|input| next.inputs.contains(input));
    let same_place = known.attribute == next.attribute && (known.inputs == next.inputs || overlap);
    // When inputs are unknown, a rule compares the lists of attributes with each other instead.
    let mut both = [known, next].into_iter();
    let same_count = both.all(|fault| matches!(fault.to_about(), About::Refusal { counts_axes: true, .. }));
    UnknownPart::of(known) == UnknownPart::of(next) && (same_place || same_count)
}

pub(crate) fn declared(source: &str, port: &OutputPort) -> TensorType {
    let dims = xml::declared_dims(source, port.content);
    let readable = !dims.is_empty() && dims.iter().all(|&dim| dim >= -1);
    let shape = if readable { dims.iter().map(|&dim| dim.into()).collect() } else { Shape::dynamic() };
    TensorType { element_type: port.declared.unwrap_or(ElementType::Dynamic), shape }
}

#[cold]
fn advice(subject: &Subject, fault: &Fault) -> Message {
    if let Some(name) = fault.attribute {
        return subject.operation.attribute(name).map_or_else(|| message!("correct `{}`"; name), Attr::usual_value);
    }
    let producers = fault.inputs.iter().filter_map(|&input| subject.producer(input));
    let constants: Vec<_> = producers.filter(|layer| is_constant(layer)).collect();
    let constants: Vec<_> = constants.iter().map(|it| format!("Const {} `{}`", it.id(), it.name())).collect();
    if constants.is_empty() {
        return "correct the attributes of this layer, or put a Reshape or Transpose before the wrong input".into();
    }
    message!("correct {}, or the attributes of this layer"; constants.join(" or "))
}
