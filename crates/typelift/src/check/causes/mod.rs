//! Merges findings that have the same root cause into one.
//!
//! The ports of a file declare the types and shapes that its author used. If a layer does not accept a tensor that
//! differs from the declaration, the root cause is the first producer that differs. Every error with the same first
//! producer is a consequence.

mod bodies;
mod inputs;
mod joins;

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::rc::Rc;

use typelift_promote::ElementType;

use super::PLACES;
use super::ports::Declared;
use crate::base::span::Span;
use crate::findings::{
    About, Code, Diagnostic, FixAction, Label, LayerRef, Message, Severity, Text, described, message,
};
use crate::model::graph::{Attribute, Direction, Graph, Layer, LayerId, Model, Output, OutputPort, Place};
use crate::ops::{self, LayerKind};
use crate::text::xml;

/// Lints that can cause an error of the same layer, or of a layer that depends on it.
const CAUSES: &[Code] = &[
    Code::UnknownAttribute,
    Code::AssumedAttribute,
    Code::IncompleteParameter,
    Code::InvalidBoolean,
    Code::OddDimension,
    Code::DuplicateAttribute,
];

/// Merges errors and lints with the same root cause, and removes those that are consequences.
pub(super) fn join(model: &Model, found: &mut Vec<Diagnostic>) {
    joins::explain_misspellings(found);
    joins::explain_misspelt_elements(found);
    joins::explain_port_maps(found);
    joins::join_oversized(found);
    joins::join_double_feeds(found);
    let causes = Causes::new(model);
    causes.explain_inputs(found);
    causes.join_ignored_edges(found);
    causes.drop_consequences(found);
    let groups = causes.group(found);
    let (mut by_layer, mut suppressed) = (findings_by_layer(found), HashSet::new());
    for (origin, members) in &groups {
        causes.merge_by_cause(origin, members, found, &mut by_layer, &mut suppressed);
    }
    remove(found, &suppressed);
}

fn remove(found: &mut Vec<Diagnostic>, gone: &HashSet<usize>) {
    let mut at = 0..;
    found.retain(|_| at.next().is_none_or(|at| !gone.contains(&at)));
}

#[derive(Default)]
struct LayerFindings {
    has_error: bool,
    /// The lint that can cause errors of other layers.
    cause: Option<usize>,
    consequences: Vec<usize>,
}

fn findings_by_layer(found: &[Diagnostic]) -> HashMap<LayerRef, LayerFindings> {
    let mut by_layer = HashMap::<LayerRef, LayerFindings>::new();
    for (at, it) in found.iter().enumerate() {
        let Some(layer) = &it.layer else { continue };
        let is_cause =
            CAUSES.contains(&it.code) && (it.code != Code::UnknownAttribute || it.about.meant_attribute().is_some());
        let is_consequence = [Code::StalePort, Code::OversizedConstant].contains(&it.code);
        if !it.is_error() && !is_cause && !is_consequence {
            continue;
        }
        let own = by_layer.entry(layer.clone()).or_default();
        own.has_error |= it.is_error();
        own.cause = own.cause.or(is_cause.then_some(at));
        own.consequences.extend(is_consequence.then_some(at));
    }
    by_layer
}

struct Mistake {
    span: Span,
    /// Description; `None` if it only is that an output differs from the declaration of its port.
    label: Option<Message>,
    help: Option<Message>,
}

/// Output of a layer, with the place of its graph.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Origin {
    place: Place,
    tensor: Output,
}

/// Property of a tensor that an error concerns: its type or its shape.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Aspect {
    Type,
    Any,
}

impl Aspect {
    /// `None` for other errors.
    fn of(code: Code) -> Option<Self> {
        match code {
            Code::TypeMismatch | Code::UnsupportedType | Code::NoCommonType => Some(Self::Type),
            Code::ShapeMismatch | Code::InvalidValue | Code::UnknownPort => Some(Self::Any),
            _ => None,
        }
    }
}

struct Causes<'a> {
    model: &'a Model,
    source: &'a str,
    cache: RefCell<Cache>,
}

/// Cache, so that each layer is searched only once.
#[derive(Default)]
struct Cache {
    /// For each layer: its input tensors that differ from the declaration of their ports.
    deviating: HashMap<(Place, LayerId, Aspect), Rc<[Output]>>,
    /// For each layer with such an input: the first producer whose output differs.
    origins: HashMap<(Place, LayerId, Aspect), Output>,
}

impl<'a> Causes<'a> {
    fn new(model: &'a Model) -> Self {
        Self { model, source: &model.source, cache: RefCell::default() }
    }

    fn find(&self, layer: &LayerRef) -> Option<(&'a Graph, &'a Layer)> {
        let graph = self.model.graph_at(&layer.place)?;
        Some((graph, graph.layer(layer.id)?))
    }

    fn deviates(&self, port: &OutputPort, aspect: Aspect) -> bool {
        let declared = Declared::read(self.source, port.declared, port.content);
        let other_type = declared.element_type.is_some_and(|ty| ty != port.element_type())
            && port.element_type() != ElementType::Dynamic;
        let is_said = !declared.dims.is_empty() && declared.dims.iter().all(|&dim| dim >= -1);
        other_type || aspect == Aspect::Any && is_said && !declared.shape().is_compatible(port.shape())
    }

    fn origin(&self, found: &Diagnostic) -> Option<Origin> {
        let aspect = Aspect::of(found.code).filter(|_| found.is_error())?;
        let reference = found.layer.as_ref()?;
        let (graph, layer) = self.find(reference)?;
        // An unreadable attribute is wrong, whatever the inputs are.
        if let About::Refusal { attribute: Some(name), .. } = *found.about
            && let (Some(text), Some(row)) = (layer.attribute(name), layer.operation())
            && row.attribute(name).is_some_and(|attribute| !attribute.takes(text))
        {
            return None;
        }
        let related: HashSet<LayerId> = found.related.iter().map(|it| it.layer.id).collect();
        let is_any = found.code == Code::UnknownPort || related.is_empty();
        let deviating = self.deviating(&reference.place, graph, layer.id(), aspect);
        let &tensor = deviating.iter().find(|tensor| is_any || related.contains(&tensor.layer))?;
        let tensor = self.start(&reference.place, graph, tensor, aspect);
        Some(Origin { place: reference.place.clone(), tensor })
    }

    fn deviating(&self, place: &Place, graph: &Graph, layer: LayerId, aspect: Aspect) -> Rc<[Output]> {
        let key = (place.clone(), layer, aspect);
        if let Some(known) = self.cache.borrow().deviating.get(&key) {
            return known.clone();
        }
        let feeds = graph.feeds(layer);
        let deviates = feeds.iter().flatten().filter(|(source, port)| {
            let output = source.outputs().get(*port);
            output.is_some_and(|it| self.deviates(it, aspect))
        });
        let deviating: Rc<[Output]> = deviates.map(|(source, port)| source.id().output(*port)).collect();
        self.cache.borrow_mut().deviating.insert(key, deviating.clone());
        deviating
    }

    /// Walks back from a tensor that differs from its declaration to the first one that does.
    fn start(&self, place: &Place, graph: &Graph, mut tensor: Output, aspect: Aspect) -> Output {
        let (mut seen, mut way) = (HashSet::new(), Vec::new());
        while seen.insert(tensor.layer) {
            let key = (place.clone(), tensor.layer, aspect);
            if let Some(&known) = self.cache.borrow().origins.get(&key) {
                tensor = known;
                break;
            }
            let Some(&before) = self.deviating(place, graph, tensor.layer, aspect).first() else { break };
            way.push(key);
            tensor = before;
        }
        self.cache.borrow_mut().origins.extend(way.into_iter().map(|key| (key, tensor)));
        tensor
    }

    fn group(&self, found: &[Diagnostic]) -> BTreeMap<Origin, Vec<usize>> {
        let mut groups = BTreeMap::<Origin, Vec<usize>>::new();
        for (at, diagnostic) in found.iter().enumerate() {
            if let Some(origin) = self.origin(diagnostic) {
                groups.entry(origin).or_default().push(at);
            }
        }
        groups
    }

    fn reference(&self, origin: &Origin) -> Option<(&'a Layer, LayerRef)> {
        let layer = self.model.graph_at(&origin.place)?.layer(origin.tensor.layer)?;
        Some((layer, LayerRef::of(&origin.place, layer)))
    }

    /// Merges the errors with the same root cause into one finding, and marks findings that are consequences.
    fn merge_by_cause(
        &self,
        origin: &Origin,
        members: &[usize],
        found: &mut [Diagnostic],
        by_layer: &mut HashMap<LayerRef, LayerFindings>,
        suppressed: &mut HashSet<usize>,
    ) {
        let Some((layer, reference)) = self.reference(origin) else { return };
        let own = by_layer.entry(reference.clone()).or_default();
        if own.has_error {
            suppressed.extend(members);
            return;
        }
        suppressed.extend(own.consequences.drain(..));
        let cause = own.cause;
        own.has_error = cause.is_some() || members.len() > 1;
        let consequences: Vec<_> = members.iter().filter_map(|&at| found[at].layer.clone()).collect();
        if let Some(cause) = cause {
            let labels: Vec<_> = members.iter().take(PLACES).filter_map(|&at| label_of(&found[at])).collect();
            let related = members.first().map(|&at| found[at].related.clone()).unwrap_or_default();
            let it = &mut found[cause];
            (it.severity, it.consequences) = (Severity::Error, consequences);
            it.labels.extend(labels);
            it.related.extend(related);
            suppressed.extend(members);
            return;
        }
        let Some(port) = layer.outputs().get(origin.tensor.port) else { return };
        if let Some(entry) = self.wrong_entry(&origin.place, layer, port) {
            entry.explain(members, found, suppressed);
            return;
        }
        let stray = self.model.graph_at(&origin.place).and_then(|graph| self.stray_edge(graph, layer));
        let mistake = stray.unwrap_or_else(|| self.what_to_write(layer, port));
        match members {
            [] => {}
            &[only] => self.explain_one(&mut found[only], layer, port, mistake),
            members => {
                let joined = self.join_refusals(layer, reference, port, mistake, members, found);
                suppressed.extend(&members[1..]);
                found[members[0]] = Diagnostic { consequences, ..joined };
            }
        }
    }

    fn explain_one(&self, it: &mut Diagnostic, layer: &Layer, port: &OutputPort, mistake: Mistake) {
        let declared = Declared::read(self.source, port.declared, port.content);
        let Mistake { span, label, help } = mistake;
        let message =
            label.unwrap_or_else(|| message!("its output is {}, but its port declares {}"; port, Text(declared)));
        it.labels.push(Label { span, message });
        if Aspect::of(it.code) == Some(Aspect::Any) {
            it.replace_help(Vec::new());
        }
        match help {
            Some(help) => it.fixes.insert(0, help.into()),
            None if !it.fixes.iter().any(|fix| fix.action.is_of_text()) => {
                it.fixes.insert(0, message!("correct {}"; described(layer)).into());
            }
            None => {}
        }
        if has_bytes_of_another_type(layer, port) {
            it.remove_actions();
        }
    }

    fn join_refusals(
        &self,
        layer: &Layer,
        reference: LayerRef,
        port: &OutputPort,
        Mistake { span, label, help }: Mistake,
        members: &[usize],
        found: &[Diagnostic],
    ) -> Diagnostic {
        let declared = Declared::read(self.source, port.declared, port.content);
        let first = &found[members[0]];
        let message =
            message!("`{}` is {}, and {} errors follow from it: {}"; layer.name(), port, members.len(), first.message);
        let label = label.unwrap_or_else(|| message!("its port declares {}"; Text(declared)));
        let mut joined = Diagnostic::new(first.code, message).at(span, label);
        joined.labels.extend(members.iter().take(PLACES).filter_map(|&at| label_of(&found[at])));
        joined.layer = Some(reference);
        joined.related = first.related.clone();
        if let Some(more @ 1..) = members.len().checked_sub(PLACES) {
            joined.notes.push(message!("{} more layers do not accept it either"; more));
        }
        joined.fixes.push(help.unwrap_or_else(|| message!("correct {}"; described(layer))).into());
        let converts = members.iter().all(|&at| found[at].actions().eq(first.actions()))
            && !has_bytes_of_another_type(layer, port);
        joined.fixes.extend(first.actions().filter(|_| converts).cloned());
        joined
    }

    fn what_to_write(&self, layer: &Layer, port: &OutputPort) -> Mistake {
        let declared = Declared::read(self.source, port.declared, port.content);
        let place = layer.span().unwrap_or_default();
        let of = message!("in {}, as its port declares"; described(layer));
        let wrong_type = declared.element_type.filter(|&ty| ty != port.element_type());
        if let Some(ty) = wrong_type {
            let says = |it: &&Attribute| ElementType::from_name(it.value()) == Some(port.element_type());
            if let Some(attribute) = layer.attributes().iter().find(says) {
                let span = xml::locate(self.source, place, "data", attribute.name());
                let help = Some(message!("write {}=\"{}\" {}"; attribute.name(), ty, of));
                return Mistake { span, label: None, help };
            }
        } else if matches!(ops::kind(layer), LayerKind::Parameter | LayerKind::Constant) {
            let dims: Vec<_> = declared.shape().dims().unwrap_or_default().iter().map(ToString::to_string).collect();
            let span = xml::locate(self.source, place, "data", "shape");
            return Mistake {
                span,
                label: None,
                help: Some(message!("write shape=\"{}\" {}"; Text(dims.join(",")), of)),
            };
        }
        Mistake { span: xml::locate(self.source, place, "layer", "name"), label: None, help: None }
    }

    /// Finds the wrong edge to a layer: the only one whose tensor is certain and differs from the declaration of the
    /// port.
    fn stray_edge(&self, graph: &Graph, layer: &Layer) -> Option<Mistake> {
        let feeds = graph.feeds(layer.id());
        let strays = layer.inputs().iter().zip(&feeds).enumerate().filter_map(|(at, (port, feed))| {
            let output = feed.and_then(|(source, port)| source.outputs().get(port))?;
            let declared = Declared::read(self.source, port.declared, port.content);
            (!declared.fits(output) && !self.deviates(output, Aspect::Any)).then_some((at, declared, output))
        });
        let strays: Vec<_> = strays.collect();
        let [(at, declared, output)] = &strays[..] else { return None };
        let span = graph.wires_into(layer.id()).find(|wire| wire.to_port as usize == *at)?.span?;
        Some(Mistake {
            span,
            label: Some(message!(
                "it connects {} to input {} of layer {}, which declares {}";
                output, at, layer.id(), Text(declared)
            )),
            help: Some(
                message!("connect input {} of {} to a tensor of type {} instead"; at, described(layer), Text(declared)),
            ),
        })
    }

    /// Merges the finding about an edge to a missing port or layer with findings about missing parts of the layer at
    /// its other end.
    fn join_ignored_edges(&self, found: &mut Vec<Diagnostic>) {
        let mut errors = HashMap::new();
        for (at, it) in found.iter().enumerate() {
            if let Some(FixAction::AddEdge { from: (start, _), .. }) = it.fixes.first().map(|fix| &fix.action) {
                errors.entry(*start).or_insert(at);
            }
        }
        let (mut joined, mut starts) = (HashSet::new(), HashSet::new());
        for at in 0..found.len() {
            let Diagnostic { code: Code::EdgeToUnknownLayer, about, labels, message, .. } = &found[at] else {
                continue;
            };
            let (About::Edge { from: (start, _), .. }, Some(edge)) = (&**about, labels.first()) else { continue };
            match errors.get(start) {
                Some(&error) => {
                    let (edge, message) = (edge.clone(), message.clone());
                    found[error].labels.push(edge);
                    found[error].notes.push(message);
                    joined.insert(at);
                }
                None => drop(starts.insert(*start)),
            }
        }
        remove(found, &joined);
        let starts_edge = |it: &Diagnostic| it.layer.as_ref().is_some_and(|layer| starts.contains(&layer.id));
        found.retain(|it| it.code != Code::UnreachableLayer || !starts_edge(it));
    }

    /// Removes findings caused by a producer's error or by a duplicate id.
    fn drop_consequences(&self, found: &mut Vec<Diagnostic>) {
        let key = |layer: &LayerRef| (layer.place.clone(), layer.id);
        let of = |codes: fn(&Diagnostic) -> bool| -> HashSet<_> {
            found.iter().filter(|it| codes(it)).filter_map(|it| it.layer.as_ref().map(key)).collect()
        };
        let faulty = of(Diagnostic::is_error);
        let repeated = of(|it| it.code == Code::DuplicateLayerId);
        // An edge without a valid start leaves the layer where it ends without an input.
        let cut_off: HashSet<_> = found
            .iter()
            .filter_map(|it| match *it.about {
                About::Edge { to, .. } if it.is_error() => Some((it.layer.as_ref()?.place.clone(), to.0)),
                _ => None,
            })
            .collect();
        let misspelt = of(|it| match it.code {
            Code::UnknownAttribute => it.about.meant_attribute().is_some(),
            Code::UnknownElement => it.about.meant_element().is_some(),
            Code::AssumedAttribute | Code::IncompleteParameter => true,
            _ => false,
        });
        let place = |it: &Diagnostic| it.labels.first().map(|label| label.span);
        let refused: HashSet<_> = found.iter().filter(|it| it.is_error()).map(place).collect();
        let mut causes = HashMap::new();
        let mut follows = |at: usize| {
            let it = &found[at];
            let Some(reference) = &it.layer else { return false };
            if it.code == Code::TrailingJunk {
                return refused.contains(&place(it));
            }
            if matches!(*it.about, About::Refusal { .. }) && cut_off.contains(&key(reference)) {
                return true;
            }
            if it.code == Code::StalePort {
                return misspelt.contains(&key(reference)) && is_about_port(it, Direction::Output);
            }
            let Some((graph, layer)) = self.find(reference).filter(|_| Aspect::of(it.code).is_some()) else {
                return false;
            };
            let counts_outputs = it.code == Code::UnknownPort && matches!(*it.about, About::Refusal { .. });
            *causes.entry((reference, counts_outputs)).or_insert_with(|| {
                graph.sources(layer.id()).any(|source| {
                    let source = (reference.place.clone(), source);
                    repeated.contains(&source) || counts_outputs && faulty.contains(&source)
                })
            })
        };
        let consequences: HashSet<_> = (0..found.len()).filter(|&at| follows(at)).collect();
        remove(found, &consequences);
    }
}

fn is_about_port(it: &Diagnostic, wanted: Direction) -> bool {
    matches!(*it.about, About::Port { direction, .. } if direction == wanted && it.code == Code::StalePort)
}

fn label_of(it: &Diagnostic) -> Option<Label> {
    let span = it.labels.first()?.span;
    let layer = it.layer.as_ref()?;
    Some(Label { span, message: message!("{}: {}"; layer, it.message) })
}

/// True if the size of a constant in bytes fits the declared type of its port, but not its own type.
fn has_bytes_of_another_type(layer: &Layer, port: &OutputPort) -> bool {
    let size = layer.attribute("size").and_then(|text| text.trim().parse::<i64>().ok());
    let dims = port.shape().to_static();
    let (Some(size), Some(dims)) = (size, dims) else { return false };
    let bits = dims.iter().try_fold(i64::from(port.element_type().bits()), |bits, &dim| bits.checked_mul(dim));
    ops::is_constant(layer) && bits.is_some_and(|bits| size != bits.saturating_add(7) / 8)
}
