//! Explains findings about the inputs of a layer by the edge that is wrong or missing, where the ports declare it.

use std::collections::{HashMap, HashSet};

use super::{Aspect, Causes, Mistake, is_about_port};
use crate::base::span::Span;
use crate::check::Declared;
use crate::findings::{Code, Diagnostic, Fix, FixAction, Label, Message, described, message};
use crate::model::graph::{Direction, Graph, InputPort, Layer, OutputPort};

/// Maximum number of wrong inputs of a layer that are compared to find two swapped ones.
const PAIRS: usize = 32;

impl<'a> Causes<'a> {
    /// Adds to findings about a layer's inputs the edge that is wrong or missing, if the declarations of ports show it.
    pub(super) fn explain_inputs(&self, found: &mut Vec<Diagnostic>) {
        let (mut tried, mut explained, mut meant) = (HashSet::new(), HashSet::new(), HashSet::new());
        let mut unused = HashMap::new();
        for it in found.iter_mut() {
            let about_inputs = Aspect::of(it.code).is_some() && it.is_error() && it.code != Code::UnknownPort
                || is_about_port(it, Direction::Input)
                || [Code::WrongInputCount, Code::UnconnectedInput, Code::ConditionType].contains(&it.code);
            let Some(reference) = it.layer.clone().filter(|_| about_inputs) else { continue };
            if self.origin(it).is_some() || tried.contains(&(reference.place.clone(), reference.id)) {
                continue;
            }
            let Some((graph, layer)) = self.find(&reference) else { continue };
            if it.code == Code::WrongInputCount && graph.wires().next().is_none() {
                it.replace_help(vec![
                    "the graph has no edges at all: get a fresh copy of the file, or add <edges>".into(),
                ]);
                continue;
            }
            tried.insert((reference.place.clone(), reference.id));
            let unused = unused.entry(reference.place.clone()).or_insert_with(|| self.unused(graph));
            let Some(wrong) = self.wrong_input(graph, layer, unused) else {
                // The edge is not blamed if a missing Convert can explain the error.
                let is_new = |stray: &Mistake| it.labels.iter().all(|label| label.span != stray.span);
                let stray =
                    if it.actions().next().is_none() { self.stray_edge(graph, layer).filter(is_new) } else { None };
                it.labels.extend(stray.and_then(|it| Some(Label { span: it.span, message: it.label? })));
                continue;
            };
            if let Wrong::Source { producer, .. } | Wrong::Missing { producer, .. } = &wrong {
                meant.insert((reference.place.clone(), producer.id()));
            }
            wrong.explain(it, layer);
            explained.insert((reference.place, reference.id));
        }
        // Further errors of the layer are consequences of the wrong input.
        let mut first = HashSet::new();
        found.retain(|it| {
            let Some(layer) = &it.layer else { return true };
            let key = (layer.place.clone(), layer.id);
            let follows = it.is_error() && explained.contains(&key) && !first.insert(key.clone());
            !follows && (it.code != Code::UnreachableLayer || !meant.contains(&key))
        });
    }

    /// Finds the mistake at the inputs of a layer: an edge that starts at another tensor than its port declares, or a
    /// missing edge.
    fn wrong_input(&self, graph: &'a Graph, layer: &Layer, unused: &Unused<'a>) -> Option<Wrong<'a>> {
        let feeds = graph.feeds(layer.id());
        let declared: Vec<_> =
            layer.inputs().iter().map(|port| Declared::read(self.source, port.declared, port.content)).collect();
        let output = |at: usize| {
            let (source, port) = feeds.get(at).copied().flatten()?;
            source.outputs().get(port)
        };
        let fits = |at: usize, from: usize| output(from).is_none_or(|port| declared[at].fits(port));
        let edge = |at: usize| {
            graph.wires_into(layer.id()).find(|wire| wire.to_port as usize == at).and_then(|wire| wire.span)
        };
        let wrong: Vec<_> = (0..declared.len()).filter(|&at| !fits(at, at)).collect();
        // Two swapped edges cannot explain many wrong inputs.
        let few = &wrong[..wrong.len().min(PAIRS)];
        for &one in few {
            for other in few.iter().copied().filter(|&other| other > one) {
                if fits(one, other) && fits(other, one) {
                    let producers = [feeds[one]?.0, feeds[other]?.0];
                    return Some(Wrong::Exchanged {
                        inputs: [one, other],
                        producers,
                        edges: [edge(one)?, edge(other)?],
                    });
                }
            }
        }
        let missing = (0..declared.len()).find(|&at| feeds.get(at).copied().flatten().is_none());
        let at = missing.or(wrong.first().copied())?;
        let mut fitting = unused.get(&declared[at])?.iter().filter(|(producer, _)| producer.id() != layer.id());
        let &(producer, port) = fitting.next().filter(|_| fitting.next().is_none())?;
        Some(match missing {
            Some(input) => Wrong::Missing { input, producer, port },
            None => Wrong::Source { input: at, producer, port, edge: edge(at)? },
        })
    }

    fn unused(&self, graph: &'a Graph) -> Unused<'a> {
        let mut unused = Unused::default();
        for layer in graph.unordered() {
            let used = graph.used_ports(layer.id());
            for (_, port) in layer.outputs().iter().enumerate().filter(|(at, _)| !used.contains(at)) {
                let declared = Declared::read(self.source, port.declared, port.content);
                if declared.element_type.is_some() && declared.fits(port) {
                    unused.entry(declared).or_default().push((layer, port));
                }
            }
        }
        unused
    }
}

/// Unused tensors by declared type and shape.
type Unused<'a> = HashMap<Declared, Vec<(&'a Layer, &'a OutputPort)>>;

/// Mistake at the inputs of a layer, according to the declarations of its ports.
enum Wrong<'a> {
    /// Two edges end at each other's ports.
    Exchanged { inputs: [usize; 2], producers: [&'a Layer; 2], edges: [Span; 2] },
    /// The edge must start at this tensor instead.
    Source { input: usize, producer: &'a Layer, port: &'a OutputPort, edge: Span },
    /// The edge from this tensor is missing.
    Missing { input: usize, producer: &'a Layer, port: &'a OutputPort },
}

impl Wrong<'_> {
    fn explain(self, it: &mut Diagnostic, layer: &Layer) {
        let id = |input: usize| layer.inputs().get(input).map_or(0, InputPort::id);
        it.remove_actions();
        let label = |it: &mut Diagnostic, span, message: Message| {
            it.labels.push(Label { span, message });
        };
        let help = match self {
            Self::Exchanged { inputs: [one, other], producers, edges } => {
                for ((input, producer), edge) in [one, other].into_iter().zip(producers).zip(edges) {
                    let from = described(producer);
                    label(it, edge, message!("this edge ends at input {}, from {}"; input, from));
                }
                message!(
                    "swap the two edges: by the declared types, the tensors of inputs {} and {} are exchanged";
                    one, other
                )
                .into()
            }
            Self::Source { input, producer, port, edge } => {
                label(it, edge, message!("the edge to input {}"; input));
                message!(
                    "start the edge at {}, from-layer=\"{}\" from-port=\"{}\": its output has the declared type, and no layer uses it";
                    described(producer), producer.id(), port.id()
                )
                .into()
            }
            Self::Missing { input, producer, port } => Fix::untried(FixAction::AddEdge {
                from: (producer.id(), port.id()),
                to: (layer.id(), id(input)),
                producer: described(producer),
            }),
        };
        it.replace_help(vec![help]);
    }
}
