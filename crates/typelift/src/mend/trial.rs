//! What a text amounts to: read, inferred and checked in memory.

use std::collections::HashMap;
use std::sync::Arc;

use rustc_hash::FxHashSet;
use typelift_promote::ElementType;

use crate::check::{Declared, check_after};
use crate::diagnostic::{Code, Diagnostic, Severity};
use crate::graph::{Direction, Graph, Model, OutputPort};
use crate::infer::infer;
use crate::weights::Weights;
use crate::xml;

/// What a finding is, but for its words and places: its code and its layer, by path and name.
pub(super) type Key = (Code, String);

pub(super) fn key(found: &Diagnostic) -> Key {
    (found.code, found.layer.as_ref().map(crate::diagnostic::LayerRef::full_name).unwrap_or_default())
}

/// A port: the path of its layer, the layer's name, its direction and position.
type Port = (String, String, bool, usize);

/// How sound a text is.
pub(super) struct Soundness {
    findings: HashMap<Key, usize>,
    has_errors: bool,
    /// Ports whose tensor is not what they declare.
    deviating: FxHashSet<Port>,
    /// Ports of whose tensor nothing is known, although they declare it.
    unknown: FxHashSet<Port>,
}

/// What reading, inference and checks find in a text.
pub(crate) fn examine(source: &Arc<String>, weights: &Weights) -> (Option<Model>, Vec<Diagnostic>) {
    examine_unless(source, weights, |_| false).unwrap_or_default()
}

/// As [`examine`]; nothing, and no more work, where the errors of reading or of inference are `enough`.
fn examine_unless(
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
    let damaged = found.iter().any(Diagnostic::is_error);
    let mut inferred = infer(&mut model);
    inferred.retain(|it| !(damaged && it.code == Code::WrongInputCount));
    found.append(&mut inferred);
    if enough(&found) {
        return None;
    }
    let found = check_after(&model, found);
    Some((Some(model), found))
}

impl Soundness {
    pub(super) fn new(model: Option<&Model>, found: &[Diagnostic]) -> Self {
        let mut sound = Self {
            findings: HashMap::new(),
            has_errors: found.iter().any(Diagnostic::is_error),
            deviating: FxHashSet::default(),
            unknown: FxHashSet::default(),
        };
        for it in found.iter().filter(|it| it.severity > Severity::Note) {
            *sound.findings.entry(key(it)).or_default() += 1;
        }
        if let Some(model) = model {
            for (place, graph) in model.walk() {
                sound.look_at(model, graph, place.path());
            }
        }
        sound
    }

    /// That of a text that should have fewer findings of this kind than there were; `None` where it has as many.
    pub(super) fn without(target: &Key, before: &Self, source: &Arc<String>, weights: &Weights) -> Option<Self> {
        let most = before.count(target);
        let as_many = |found: &[Diagnostic]| {
            found.iter().filter(|it| it.severity > Severity::Note && key(it) == *target).count() >= most
        };
        let (model, found) = examine_unless(source, weights, as_many)?;
        let after = Self::new(model.as_ref(), &found);
        (after.count(target) < most).then_some(after)
    }

    fn count(&self, key: &Key) -> usize {
        self.findings.get(key).copied().unwrap_or_default()
    }

    fn look_at(&mut self, model: &Model, graph: &Graph, path: &str) {
        let has_values = model.weights.len().is_some();
        for layer in graph.unordered() {
            let port = |direction, at| (path.to_owned(), layer.name().to_owned(), direction == Direction::Input, at);
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

    fn compare(&mut self, declared: &Declared, output: Option<&OutputPort>, has_values: bool, port: impl Fn() -> Port) {
        let is_known = |it: &&OutputPort| it.element_type() != ElementType::Dynamic && it.shape().rank().is_some();
        match output.filter(is_known) {
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

    pub(super) fn has_errors(&self) -> bool {
        self.has_errors
    }

    /// Whether constants share some of their bytes, so that what they hold is in doubt.
    pub(super) fn doubts_constants(&self) -> bool {
        self.findings.keys().any(|(code, _)| *code == Code::OverlappingConstants)
    }

    /// How much is wrong: nothing that counts more can be made up for by what counts less.
    pub(super) fn faults(&self) -> usize {
        self.findings.values().sum::<usize>() + self.deviating.len() + self.unknown.len()
    }

    /// The findings of the text before that are gone here.
    pub(super) fn fixed_since(&self, before: &Self) -> std::collections::HashSet<Key> {
        before.findings.keys().filter(|key| !self.findings.contains_key(key)).cloned().collect()
    }

    /// Whether a port deviates of whose tensor nothing was known before.
    pub(super) fn shows_deviations(&self, before: &Self) -> bool {
        !self.deviating.is_subset(&before.deviating)
    }

    /// Whether nothing is wrong here that was not before, as far as that was known.
    pub(super) fn is_no_worse(&self, before: &Self) -> bool {
        self.findings.keys().all(|key| self.count(key) <= before.count(key))
            && self.deviating.iter().all(|port| before.deviating.contains(port) || before.unknown.contains(port))
            && self.unknown.is_subset(&before.unknown)
    }
}
