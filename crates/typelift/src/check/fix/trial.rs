//! Trials of edits: a text is read, inferred and checked in memory, and compared with an earlier one.

use std::sync::Arc;

use typelift_promote::ElementType;

use crate::base::hash::HashSet;
use crate::check::{Declared, check_after, faults_after};
use crate::findings::{Cause, Code, Diagnostic, FindingKey, Known, Severity};
use crate::infer::infer_read;
use crate::model::graph::{Direction, Graph, LayerId, Model, OutputPort, Place};
use crate::model::weights::Weights;
use crate::ops::{self, LayerKind};
use crate::text::xml;

/// Port: path and name of its layer, its side and its position.
type PortSet = HashSet<(String, Direction, usize)>;

/// State of a text: its remaining faults.
pub(super) struct Soundness {
    /// Errors and warnings.
    pub(super) findings: Known,
    pub(super) has_errors: bool,
    pub(super) ports: StalePorts,
    /// Findings of the earlier text that no longer exist.
    pub(super) fixed: HashSet<FindingKey>,
    wiring: Wiring,
}

/// Faults that a text must not have after a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Needs {
    /// Faults that no trial permits.
    Trial,
    NoErrors,
    /// Errors, and ports that differ from their tensors.
    NoDeviations,
    /// Gaps in the ids, layers that nothing uses, and findings about edges.
    Ids,
    /// The same, and outputs that nothing uses any more.
    Wiring,
}

/// Faults in the edges and ids of a text, which make several explanations of an edge possible.
#[derive(Default)]
struct Wiring {
    /// True if there is a finding about ids, edges or ports.
    is_broken: bool,
    /// True if the ids of a graph's layers do not count on from 0, or do not end at a Result or an Assign.
    has_gap: bool,
    /// True if no output of some layer is used.
    has_unused: bool,
    /// The outputs that nothing uses, by the path and name of the layer and the position of the output.
    unused: HashSet<(String, usize)>,
}

impl Wiring {
    fn new(model: &Model, found: &[Diagnostic]) -> Self {
        let is_of_edge = |it: &Diagnostic| {
            it.code.has(Cause::Wiring)
                || it.layer.is_none() && matches!(it.code, Code::MissingAttribute | Code::InvalidValue)
        };
        let mut wiring = Self { is_broken: found.iter().any(is_of_edge), ..Self::default() };
        for (place, graph) in model.walk() {
            let mut ids: Vec<u64> = graph.unordered().map(|layer| layer.id().0).collect();
            ids.sort_unstable();
            // A lost layer leaves no gap if its id was the highest. OpenVINO gives that to a Result or an Assign.
            let last = ids.last().and_then(|&id| graph.layer(LayerId(id)));
            let ends = last.is_none_or(|last| last.outputs().is_empty() || ops::kind(last) == LayerKind::Assign);
            wiring.has_gap |= !ends || !(0..).zip(&ids).all(|(at, &id)| at == id);
            let is_body = !place.path().is_empty();
            wiring.has_unused |= graph.unordered().any(|layer| {
                let is_kept =
                    ops::kind(layer) == LayerKind::Assign || is_body && ops::kind(layer) == LayerKind::Parameter;
                !layer.outputs().is_empty() && !is_kept && graph.users(layer.id()).next().is_none()
            });
            let used: HashSet<_> = graph.wires().map(|(output, _)| (output.layer, output.port)).collect();
            for layer in graph.unordered() {
                let unused = (0..layer.outputs().len()).filter(|&at| !used.contains(&(layer.id(), at)));
                wiring.unused.extend(unused.map(|at| (place.path_to(layer.name()), at)));
            }
        }
        wiring
    }
}

/// Ports whose declarations differ from their tensors.
#[derive(Default)]
pub(super) struct StalePorts {
    /// Ports whose tensors are known and differ from the declaration.
    deviating: PortSet,
    /// Ports with a declaration whose tensors are unknown.
    unknown: PortSet,
}

pub(crate) fn examine(source: &Arc<String>, weights: &Weights) -> (Option<Model>, Vec<Diagnostic>) {
    let (model, found) = read(source, weights, |_| false).unwrap_or_default();
    let found = match &model {
        Some(model) => check_after(model, None, found),
        None => found,
    };
    (model, found)
}

/// Reads and infers a text. Stops early with `None` if the errors are already too many to accept it.
fn read(
    source: &Arc<String>,
    weights: &Weights,
    enough: impl Fn(&[Diagnostic]) -> bool,
) -> Option<(Option<Model>, Vec<Diagnostic>)> {
    let reading = xml::parse(source.clone());
    let mut found = reading.diagnostics;
    if enough(&found) {
        return None;
    }
    let Some(mut model) = reading.model else { return Some((None, found)) };
    model.set_weights(weights.clone());
    infer_read(&mut model, &mut found);
    (!enough(&found)).then_some((Some(model), found))
}

impl Soundness {
    pub(super) fn new(model: &Model, found: &[Diagnostic]) -> Self {
        Self::of(Some(model), found, StalePorts::new(model))
    }

    fn of(model: Option<&Model>, found: &[Diagnostic], ports: StalePorts) -> Self {
        let findings = Known::new(found, Severity::Warning);
        let has_errors = found.iter().any(Diagnostic::is_error);
        let wiring = model.map(|model| Wiring::new(model, found)).unwrap_or_default();
        Self { findings, has_errors, ports, fixed: HashSet::default(), wiring }
    }

    pub(super) fn leaves_unused(&self, before: &Self) -> bool {
        !self.wiring.unused.is_subset(&before.wiring.unused)
    }

    pub(super) fn satisfies(&self, needs: Needs, before: &Self) -> bool {
        match needs {
            Needs::Trial => true,
            Needs::NoErrors => !self.has_errors,
            Needs::NoDeviations => !self.has_errors && self.ports.deviating.is_empty(),
            Needs::Ids => !self.wiring.is_broken && !self.wiring.has_gap && !self.wiring.has_unused,
            Needs::Wiring => self.satisfies(Needs::Ids, before) && !self.leaves_unused(before),
        }
    }

    /// The edit must reduce the number of findings of each of these kinds, and cause no new ones; otherwise `None`.
    pub(super) fn without(
        targets: &HashSet<FindingKey>,
        before: &Self,
        source: &Arc<String>,
        weights: &Weights,
    ) -> Option<Self> {
        let (model, mut found) = read(source, weights, |found: &[Diagnostic]| {
            let compared = before.findings.compare(found);
            !targets.iter().all(|target| compared.is_fixed(target))
        })?;
        let ports = model.as_ref().map(StalePorts::new).unwrap_or_default();
        // Ports are compared first, because the checks take longer.
        if !ports.are_no_worse(&before.ports) {
            return None;
        }
        if let Some(model) = &model {
            found = faults_after(model, found);
        }
        let compared = before.findings.compare(&found);
        if !compared.new.is_empty() || !targets.iter().all(|target| compared.is_fixed(target)) {
            return None;
        }
        let fixed = compared.gone();
        Some(Self { fixed: fixed.into_iter().collect(), ..Self::of(model.as_ref(), &found, ports) })
    }

    /// A more serious fault outweighs any number of less serious ones.
    pub(super) fn faults(&self) -> usize {
        self.findings.len() + self.ports.deviating.len() + self.ports.unknown.len()
    }
}

impl StalePorts {
    fn new(model: &Model) -> Self {
        let mut ports = Self::default();
        for (place, graph) in model.walk() {
            ports.look_at(model, graph, &place);
        }
        ports
    }

    fn look_at(&mut self, model: &Model, graph: &Graph, place: &Place) {
        let has_values = model.weights.len().is_some();
        for layer in graph.unordered() {
            let port = |direction, at| (place.path_to(layer.name()), direction, at);
            let feeds = graph.feeds(layer.id());
            for (at, (declared, feed)) in layer.inputs().iter().zip(feeds).enumerate() {
                let output = feed.and_then(|(source, port)| source.outputs().get(port));
                let declared = Declared::read(&model.source, declared.declared, declared.content);
                self.compare(&declared, output, has_values, || port(Direction::Input, at));
            }
            for (at, output) in layer.outputs().iter().enumerate() {
                let declared = Declared::read(&model.source, output.declared, output.content);
                self.compare(&declared, Some(output), has_values, || port(Direction::Output, at));
            }
        }
    }

    fn compare(
        &mut self,
        declared: &Declared,
        output: Option<&OutputPort>,
        has_values: bool,
        port: impl Fn() -> (String, Direction, usize),
    ) {
        match output.filter(|it| it.element_type() != ElementType::Dynamic && it.shape().rank().is_some()) {
            Some(output) if declared.contradicts(output, has_values) => {
                self.deviating.insert(port());
            }
            Some(_) => {}
            None if declared.element_type.is_some() => {
                self.unknown.insert(port());
            }
            None => {}
        }
    }

    pub(super) fn deviate_newly(&self, before: &Self) -> bool {
        !self.deviating.is_subset(&before.deviating)
    }

    fn are_no_worse(&self, before: &Self) -> bool {
        self.deviating.iter().all(|port| before.deviating.contains(port) || before.unknown.contains(port))
            && self.unknown.is_subset(&before.unknown)
    }
}
