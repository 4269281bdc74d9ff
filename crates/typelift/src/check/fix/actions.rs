//! Fixes that convert the whole model. Each one is tried in memory before it is suggested.

use std::collections::HashSet;

use typelift_promote::{ElementType, RuleSet, openvino};

use crate::findings::{Applicability, Code, Diagnostic, Fix, FixAction, Known, LayerRef, Rules};
use crate::infer::infer;
use crate::model::graph::{LayerId, Model, Place};
use crate::promotion::passes::{self, Align, Change, infer_aligned};

/// Tries the conversions that might fix the findings of a model, and adds those that do.
///
/// The model need not be inferred.
pub fn try_actions(model: &Model, found: &mut [Diagnostic]) {
    if !found.iter().any(Diagnostic::is_error) {
        for fix in found.iter_mut().flat_map(|it| &mut it.fixes).filter(|fix| fix.action == FixAction::RefreshPorts) {
            fix.applicability = Applicability::Possible;
        }
    }
    let mut left: Vec<_> = (0..found.len()).filter(|&at| asks_for_types(&found[at])).collect();
    if left.is_empty() {
        return;
    }
    // A conversion does not change errors of the reader, and needs the weights.
    let is_kept =
        |it: &Diagnostic| it.code == Code::MissingWeights || it.actions().next().is_none() && it.layer.is_none();
    let unread = found.iter().any(|it| it.is_error() && is_kept(it));
    let known = Known::errors(&infer(&mut model.clone()));
    for (rules, align) in conversions() {
        if left.is_empty() {
            break;
        }
        let Some(trial) = ConversionTrial::new(align, model, &known) else { continue };
        left.retain(|&at| {
            let Some(inserts) = trial.inserted_for(&found[at]) else { return true };
            let succeeds = !unread && trial.errors.is_empty();
            let action = FixAction::Convert { rules, inserts, succeeds };
            found[at].fixes.push(Fix::possible(action));
            false
        });
    }
}

fn asks_for_types(it: &Diagnostic) -> bool {
    it.actions().any(|fix| match fix.action {
        FixAction::Align => true,
        FixAction::AlignBy { .. } => matches!(it.code, Code::TypeMismatch | Code::UnsupportedType),
        _ => false,
    })
}

fn conversions() -> impl Iterator<Item = (Option<Rules>, Align)> {
    let unsafely = openvino::Options { promote_unsafe: true, ..openvino::Options::default() };
    let setting = Rules { name: "openvino", setting: Some("promote-unsafe") };
    let declared = [(None, Align::default()), (Some(setting), Align::Declared(unsafely))];
    let others = RuleSet::for_models().filter(|rules| rules.name() != "openvino");
    let others = others.map(|rules| (Some(Rules { name: rules.name(), setting: None }), Align::Rules(rules)));
    declared.into_iter().chain(others)
}

struct ConversionTrial<'a> {
    model: Model,
    errors: Vec<Diagnostic>,
    /// The errors before.
    known: &'a Known,
    inserted: HashSet<(Place, LayerId)>,
    changes: Vec<Change>,
}

impl<'a> ConversionTrial<'a> {
    fn new(align: Align, model: &Model, known: &'a Known) -> Option<Self> {
        let mut model = model.clone();
        let (mut errors, changes) = infer_aligned(&mut model, align).ok()?;
        let inserted = changes.iter().filter(|change| change.action == passes::Action::Inserted);
        let inserted = inserted.map(|change| (change.layer.place.clone(), change.layer.id)).collect();
        errors.retain(Diagnostic::is_error);
        Some(Self { model, errors, known, inserted, changes })
    }

    /// `None` if the conversion does not fix the finding.
    fn inserted_for(&self, it: &Diagnostic) -> Option<Vec<(ElementType, ElementType)>> {
        let layers: Vec<_> =
            if it.consequences.is_empty() { it.layer.iter().collect() } else { it.consequences.iter().collect() };
        let remains = |error: &Diagnostic| {
            error.code == it.code && error.layer.as_ref().is_some_and(|layer| layers.contains(&layer))
        };
        if layers.is_empty() || self.errors.iter().any(remains) || !self.known.compare(&self.errors).new.is_empty() {
            return None;
        }
        Some(layers.iter().flat_map(|layer| self.converts_before(layer)).collect())
    }

    fn converts_before(&self, layer: &LayerRef) -> Vec<(ElementType, ElementType)> {
        let Some(graph) = self.model.graph_at(&layer.place) else { return Vec::new() };
        let producers = graph.producers(layer.id).into_iter().flatten();
        let producers = producers.map(|output| (layer.place.clone(), output.layer));
        let new: Vec<_> = producers.filter(|producer| self.inserted.contains(producer)).collect();
        let found = self.changes.iter().filter(|change| new.contains(&(change.layer.place.clone(), change.layer.id)));
        found.map(|change| (change.from, change.to)).collect()
    }
}
