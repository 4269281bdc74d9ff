//! What inference does after an error: it finds what else is wrong with the layer and keeps what the error leaves known.

use smallvec::SmallVec;
use typelift_promote::ElementType;

use super::Walk;
use crate::findings::{About, Code};
use crate::model::graph::{Body, Graph, LayerId, OutputPort};
use crate::model::shape::{Shape, TensorType};
use crate::ops::{AttributeValues, Fault, Operation, Outputs, Subject};
use crate::text::xml;

/// The parts of a layer's inputs that an error leaves open.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Types,
    Shapes,
}

impl Part {
    /// The part that a fault is about.
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
    /// Reports a fault of a layer and whatever else its rule refuses, and returns the outputs as far as they are known:
    /// the rule is applied again with what each fault is about left open. Where that leads nowhere, the outputs are what
    /// the ports declare.
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
            // A body is not walked again only to find out more about its owner.
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
        let first = self.report_with_remedy(subject, &inputs, first);
        let found = self.scope.diagnostics.len();
        let mut faults = vec![first];
        let mut reported = 0;
        // Each round leaves at least the dims, the rank or the type of one input open, and all of them at the end.
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
                let next = self.report_with_remedy(subject, &inputs, next);
                reported = self.scope.diagnostics.len() - found;
                faults.push(next);
            }
        }
        None
    }

    /// Reports a fault, with a remedy that was tried if it is one of shapes or values.
    fn report_with_remedy(&mut self, subject: &Subject, inputs: &[OutputPort], mut fault: Fault) -> Fault {
        let (graph, id) = (subject.graph, subject.layer.id);
        let tries = [Code::ShapeMismatch, Code::InvalidValue].contains(&fault.code);
        if tries && fault.help.is_none() && self.is_read(graph, id) && !self.follows_from_error(graph, id, &fault) {
            fault.help = Some(Box::new(self.suggest(subject, inputs, &fault).into()));
        }
        self.report(graph, id, &fault, 0);
        fault
    }

    /// Whether a fault only says that something is unknown, which it is because of an error elsewhere.
    pub(crate) fn follows_from_error(&self, graph: &Graph, id: LayerId, fault: &Fault) -> bool {
        let feeds = graph.feeds(id);
        let follows = |&input: &usize| {
            let Some(&Some((source, port))) = feeds.get(input) else { return false };
            let output = source.outputs.get(port);
            self.scope.doubtful.contains(&source.id) && output.is_some_and(|output| Part::of(fault).is_unknown(output))
        };
        fault.inputs.iter().any(follows)
    }

    /// Records that what is known of a layer's outputs depends on a layer with an error.
    pub(super) fn pass_doubts_on(&mut self, graph: &Graph, id: LayerId) {
        if !self.scope.doubtful.is_empty() && graph.sources(id).any(|source| self.scope.doubtful.contains(&source)) {
            self.scope.doubtful.insert(id);
        }
    }
}

/// Leaves open what a fault is about, of a shape its dims first and then its rank; `false` where it is about no input, or that is
/// open already.
fn leave_open(fault: &Fault, inputs: &mut [OutputPort]) -> bool {
    let part = Part::of(fault);
    let mut changed = false;
    for &input in &fault.inputs {
        if let Some(port) = inputs.get_mut(input).filter(|port| !part.is_unknown(port)) {
            match port.shape.rank().map(Shape::of_rank) {
                Some(open) if part == Part::Shapes && open != port.shape => port.shape = open,
                _ => part.forget(port),
            }
            changed = true;
        }
    }
    changed
}

/// Leaves all shapes open, or where they are all open already, all types.
fn leave_all_open(inputs: &mut [OutputPort]) -> bool {
    [Part::Shapes, Part::Types].into_iter().any(|part| {
        let known: Vec<_> = inputs.iter_mut().filter(|port| !part.is_unknown(port)).collect();
        let changed = !known.is_empty();
        known.into_iter().for_each(|port| part.forget(port));
        changed
    })
}

/// Whether a fault that is found after another one is about the same thing.
fn is_echo(known: &Fault, next: &Fault) -> bool {
    let overlap = known.inputs.iter().any(|input| next.inputs.contains(input));
    let same_place = known.attribute == next.attribute && (known.inputs == next.inputs || overlap);
    // With the inputs left open, lists of attributes are compared with each other.
    let counts = |fault: &&Fault| matches!(fault.about.as_deref(), Some(About::Refusal { counts_axes: true, .. }));
    let same_count = [known, next].iter().all(counts);
    Part::of(known) == Part::of(next) && (same_place || same_count)
}

/// What a port declares, as far as it says anything.
pub(crate) fn declared(source: &str, port: &OutputPort) -> TensorType {
    let dims = xml::declared_dims(source, port.content);
    let readable = !dims.is_empty() && dims.iter().all(|&dim| dim >= -1);
    let shape = if readable { dims.iter().map(|&dim| dim.into()).collect() } else { Shape::dynamic() };
    TensorType { element_type: port.declared.unwrap_or(ElementType::Dynamic), shape }
}
