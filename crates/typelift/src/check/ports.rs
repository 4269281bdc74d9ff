//! Comparison of declared ports with inferred tensors.

use std::fmt;

use smallvec::SmallVec;
use typelift_promote::ElementType;

use super::GraphCheck;
use crate::base::hash::{HashMap, HashSet};
use crate::base::span::Span;
use crate::findings::{About, Code, Diagnostic, Fix, FixAction, Message, Text, message};
use crate::model::graph::{Direction, Graph, Layer, LayerId, OutputPort};
use crate::model::shape::Shape;
use crate::text::xml;

/// State of the tensors on which a layer depends: the worst of all.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum InputState {
    /// All tensors equal their declarations.
    Sound,
    /// A tensor differs from its declaration, which this finding reports.
    Stale(usize),
    Unknown,
}

/// Declaration of a port. The type is `None` if it is not declared.
#[derive(PartialEq, Eq, Hash)]
pub(crate) struct Declared {
    pub(crate) element_type: Option<ElementType>,
    pub(crate) dims: SmallVec<[i64; 6]>,
}

impl Declared {
    pub(crate) fn read(source: &str, declared: Option<ElementType>, content: Span) -> Self {
        let element_type = declared.filter(|&ty| ty != ElementType::Dynamic);
        Self { element_type, dims: xml::declared_dims(source, content) }
    }

    /// A port without type and dimensions contradicts nothing. A more precise declaration is a contradiction only if
    /// inference knew all values (`found`).
    pub(crate) fn contradicts(&self, output: &OutputPort, found: bool) -> bool {
        let not_found = !found && output.element_type() == ElementType::Dynamic;
        let other_type = self.element_type.is_some_and(|ty| ty != output.element_type() && !not_found);
        let unreadable = self.dims.iter().any(|&dim| dim < -1);
        let silent = unreadable || self.element_type.is_none() && self.dims.is_empty();
        let other_dims = if found {
            !xml::matches_dims(&self.dims, output.shape())
        } else {
            !self.dims.is_empty() && !self.shape().is_compatible(output.shape())
        };
        other_type || (!silent && other_dims)
    }

    pub(crate) fn is_like(&self, source: &str, output: &OutputPort) -> bool {
        !self.contradicts(output, true) || *self == Self::read(source, output.declared, output.content)
    }

    pub(crate) fn fits(&self, output: &OutputPort) -> bool {
        let same_type = self.element_type.is_none_or(|ty| ty == output.element_type());
        same_type && (self.dims.is_empty() || self.shape().is_compatible(output.shape()))
    }

    pub(crate) fn shape(&self) -> Shape {
        self.dims.iter().map(|&dim| dim.into()).collect()
    }
}

/// Formats the declaration: `f32[1,?]`.
impl fmt::Display for Declared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.element_type.map_or("", ElementType::name), self.shape())
    }
}

impl<'a> GraphCheck<'a> {
    /// Reports declared ports that differ from their tensors. Differences after the first one are probably
    /// consequences, so they are only counted. Layers after one with unknown outputs are not compared, because an
    /// error may be the reason. Returns the layers with unknown outputs.
    pub(super) fn find_stale_ports(&mut self, graph: &Graph) -> HashSet<LayerId> {
        let Ok(order) = graph.topological_order() else { return HashSet::default() };
        // States of layers that are not sound.
        let mut unsound = HashMap::<LayerId, InputState>::default();
        let mut stale = Vec::<(Diagnostic, usize)>::new();
        for id in order {
            let Some(layer) = graph.layer(id) else { continue };
            let before = graph.sources(id).filter_map(|source| unsound.get(&source).copied());
            let mut soundness = before.max().unwrap_or(InputState::Sound);
            let nothing =
                |port: &OutputPort| port.element_type() == ElementType::Dynamic && port.shape().rank().is_none();
            let lacks_part =
                |port: &OutputPort| port.element_type() == ElementType::Dynamic || port.shape().rank().is_none();
            let doubtful = !self.errors.faulty.is_empty()
                && (layer.outputs().iter().any(lacks_part) || self.errors.concern(&self.reference(layer)));
            if doubtful || layer.outputs().iter().any(nothing) {
                soundness = InputState::Unknown;
            }
            if soundness != InputState::Unknown {
                // The first wrong port is reported, and the others are counted.
                let ports = self.stale_ports_of(graph, layer);
                match (soundness, ports.first()) {
                    (_, None) => {}
                    (InputState::Stale(root), Some(_)) => stale[root].1 += ports.len(),
                    (_, Some(port)) => {
                        soundness = InputState::Stale(stale.len());
                        stale.push((self.stale_port(graph, layer, port), ports.len() - 1));
                    }
                }
            }
            if soundness != InputState::Sound {
                unsound.insert(id, soundness);
            }
        }
        for (mut lint, more) in stale {
            if more > 0 {
                let ports = if more == 1 { "port after it is" } else { "ports after it are" };
                lint = lint.note(message!("{} more {} declared differently, too"; more, ports));
            }
            self.diagnostics.push(lint);
        }
        unsound.into_iter().filter(|(_, soundness)| *soundness == InputState::Unknown).map(|(id, _)| id).collect()
    }

    /// The ports of a layer whose declarations differ; only inputs if the operation has no rule.
    fn stale_ports_of(&self, graph: &Graph, layer: &Layer) -> Vec<StalePort> {
        let mut stale = Vec::new();
        for (at, (port, feed)) in layer.inputs().iter().zip(graph.feeds(layer.id())).enumerate() {
            let output = feed.and_then(|(layer, port)| layer.outputs().get(port));
            let Some(output) = output.filter(|output| !xml::declares(self.source, port.declared, port.content, output))
            else {
                continue;
            };
            let declared = Declared::read(self.source, port.declared, port.content);
            // If both declarations are equal, the warning about the output is enough.
            if declared.contradicts(output, self.has_values)
                && declared != Declared::read(self.source, output.declared, output.content)
            {
                stale.push(StalePort { direction: Direction::Input, at, declared });
            }
        }
        let inferred = layer.operation().is_some();
        for (at, port) in layer.outputs().iter().enumerate().filter(|(_, port)| inferred && port.stale) {
            let declared = Declared::read(self.source, port.declared, port.content);
            if declared.contradicts(port, self.has_values) {
                stale.push(StalePort { direction: Direction::Output, at, declared });
            }
        }
        stale
    }

    #[cold]
    fn stale_port(&self, graph: &Graph, layer: &Layer, port: &StalePort) -> Diagnostic {
        let &StalePort { direction, at, ref declared } = port;
        let feed = match direction {
            Direction::Input => graph.feeds(layer.id()).get(at).copied().flatten(),
            Direction::Output => Some((layer, at)),
        };
        let tensor = feed.and_then(|(producer, port)| Some((producer, producer.outputs().get(port)?)));
        let (message, label) = match (direction, tensor) {
            (Direction::Input, Some((producer, output))) => (
                message!("input {} of `{}` declares {}, but gets {}"; at, layer.name(), Text(declared), output),
                message!("it comes from layer {} `{}`"; producer.id(), producer.name()),
            ),
            (_, tensor) => {
                let is = tensor.map_or_else(Message::default, |(_, output)| message!(", and is {}"; output));
                (
                    message!("output {} of `{}` declares {}{}"; at, layer.name(), Text(declared), is),
                    "inference gives another type or shape".into(),
                )
            }
        };
        let span = xml::locate_port(self.source, layer.span().unwrap_or_default(), direction, at);
        let lint = self.lint(Code::StalePort, layer, message).at(span, label);
        let lint = lint.about(About::Port { direction, at });
        let lint = lint.help("correct the port; OpenVINO ignores its declaration");
        lint.help(Fix::untried(FixAction::RefreshPorts))
    }
}

struct StalePort {
    direction: Direction,
    at: usize,
    declared: Declared,
}
