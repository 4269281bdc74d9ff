//! Order of findings: causes before consequences.

use std::collections::HashSet;

use crate::findings::{Code, Diagnostic, LayerRef, Severity};
use crate::model::graph::{Graph, LayerId, Model, Place};

/// Layers of a model that have an error, and those that depend on one.
#[derive(Default)]
pub(super) struct Errors<'a> {
    pub(super) faulty: HashSet<(&'a Place, LayerId)>,
    dependent: HashSet<(Place, LayerId)>,
}

impl<'a> Errors<'a> {
    pub(super) fn new(model: &Model, found: &'a [Diagnostic]) -> Self {
        let layers = found.iter().filter(|diagnostic| diagnostic.is_error()).filter_map(|it| it.layer.as_ref());
        let faulty: HashSet<_> = layers.map(|layer| (&layer.place, layer.id)).collect();
        let mut errors = Self { faulty, dependent: HashSet::new() };
        if !errors.faulty.is_empty() {
            errors.spread(&model.graph, &Place::default(), false);
        }
        errors
    }

    /// Marks all layers that depend on one with an error, in a graph and its bodies. Returns true if the graph has an
    /// error.
    fn spread(&mut self, graph: &Graph, place: &Place, given: bool) -> bool {
        let Ok(order) = graph.topological_order() else { return false };
        let mut marked = HashSet::<LayerId>::new();
        let mut any = false;
        for id in order {
            let Some(layer) = graph.layer(id) else { continue };
            let depends =
                graph.sources(id).any(|source| marked.contains(&source)) || given && layer.inputs().is_empty();
            let mut has_error = self.faulty.contains(&(place, layer.id()));
            for (at, body) in layer.bodies().iter().enumerate() {
                has_error |= self.spread(&body.graph, &place.inside(layer, at, body.name()), depends);
            }
            if depends {
                self.dependent.insert((place.clone(), layer.id()));
            }
            if depends || has_error {
                marked.insert(id);
            }
            any |= has_error;
        }
        any
    }

    pub(super) fn concern(&self, layer: &LayerRef) -> bool {
        self.faulty.contains(&(&layer.place, layer.id)) || self.depends(layer)
    }

    pub(super) fn depends(&self, layer: &LayerRef) -> bool {
        !self.dependent.is_empty() && self.dependent.contains(&(layer.place.clone(), layer.id))
    }
}

/// Sorts findings: errors, warnings, notes. In each group causes are before consequences, and the rest is in the order
/// of the file.
pub(super) fn sort(model: &Model, found: &mut [Diagnostic]) {
    let seen = found.to_vec();
    let errors = Errors::new(model, &seen);
    found.sort_by_cached_key(|diagnostic| {
        let depends = diagnostic.layer.as_ref().is_some_and(|layer| errors.depends(layer));
        let severity = match diagnostic.severity {
            Severity::Error => 0,
            Severity::Warning => 1,
            Severity::Note => 2,
        };
        (severity, cause_rank(diagnostic.code), depends, diagnostic.labels.first().map(|label| label.span.start))
    });
}

/// Findings about the whole weights are first, and probable consequences last.
fn cause_rank(code: Code) -> u8 {
    use Code as C;
    match code {
        C::XmlSyntax | C::NotAnIr | C::UnsupportedVersion | C::WrongWeights => 0,
        C::StalePort | C::UnreachableLayer | C::UndecidedPromotion | C::UnreferencedWeights => 2,
        C::UnalignedConstant | C::OverlappingConstants => 2,
        _ => 1,
    }
}
