//! Layers that compute the same as an earlier layer, which can replace them.

use std::collections::BTreeSet;

use super::bound::Bound;
use super::swap::{Found, Scan, is_random};
use crate::base::hash::{HashMap, HashSet};
use crate::edit::precision_marks::Marks;
use crate::model::graph::{Graph, Layer, LayerId};
use crate::model::weights::Weights;
use crate::ops::{self, LayerKind};

pub(super) fn layers(scan: &mut Scan<'_>) -> Vec<Found> {
    let (graph, order) = (scan.graph, scan.order);
    let (apart, contents) = (random_sources(graph), contents(graph, scan.model.weights()));
    let mut alike = HashMap::<_, KeptLayers>::default();
    let mut stands_for = HashMap::<LayerId, LayerId>::default();
    let mut found = Vec::new();
    for layer in order.iter().filter_map(|&id| graph.layer(id)) {
        let id = layer.id();
        let computes = !ops::is_own(layer) && ops::kind(layer) != LayerKind::ReadValue && layer.bodies().is_empty();
        let is_repeatable = layer.operation().is_some_and(|row| row.is_repeatable());
        if !is_repeatable || !computes || scan.taken.contains(&id) || apart.contains(&id) {
            continue;
        }
        let sources = graph.producers(id).into_iter().map(|source| {
            source.map(|source| stands_for.get(&source.layer).map_or(source, |stand_in| stand_in.output(source.port)))
        });
        let sources: Vec<_> = sources.collect();
        let content = contents.get(&id);
        let own = layer.attributes().iter().filter(|attribute| content.is_none() || attribute.name() != "offset");
        let attributes: Vec<_> = own.map(|attribute| (attribute.name(), attribute.value())).collect();
        let key = (layer.ty(), layer.version(), attributes, content, sources);
        let marks = Marks::of(layer, scan.model.version());
        let alike = alike.entry(key).or_default();
        match alike.position(&marks) {
            None => alike.keep(id, marks),
            Some(_) if (scan.is_settled)(id) => {}
            Some(at) => {
                let earlier = alike.join(at, &marks);
                stands_for.insert(id, earlier);
                found.push(scan.take([id], vec![Bound::Tensor(earlier.output(0))]));
            }
        }
    }
    found
}

/// Kept layers of one computation, each with the marks of all layers that it replaces. All except the first exclude
/// conversions, and each excludes others.
#[derive(Default)]
struct KeptLayers {
    kept: Vec<(LayerId, Marks)>,
    /// Position of the kept layer for each set of excluded conversions that is not empty.
    by_exclusions: HashMap<BTreeSet<(&'static str, &'static str)>, usize>,
}

impl KeptLayers {
    /// The position of the layer that can replace one with these marks, if there is one.
    fn position(&self, marks: &Marks) -> Option<usize> {
        let (_, first) = self.kept.first()?;
        if first.union(marks).is_some() { Some(0) } else { self.by_exclusions.get(marks.exclusions()).copied() }
    }

    fn keep(&mut self, id: LayerId, marks: Marks) {
        self.note(self.kept.len(), &marks);
        self.kept.push((id, marks));
    }

    fn join(&mut self, at: usize, marks: &Marks) -> LayerId {
        let (id, kept) = &mut self.kept[at];
        *kept = kept.and(marks);
        let id = *id;
        self.note(at, marks);
        id
    }

    fn note(&mut self, at: usize, marks: &Marks) {
        if !marks.exclusions().is_empty() {
            self.by_exclusions.entry(marks.exclusions().clone()).or_insert(at);
        }
    }
}

/// For each constant in the weights file, the first one with the same bytes. Saving stores equal bytes once.
fn contents(graph: &Graph, weights: &Weights) -> HashMap<LayerId, usize> {
    let place = |layer: &Layer| Some((layer.id(), (layer.byte_count("offset")?, layer.byte_count("size")?)));
    let constants = graph.layers().filter(|layer| ops::is_constant(layer));
    let (ids, ranges): (Vec<_>, Vec<_>) = constants.filter_map(place).unzip();
    weights.first_equal(&ranges).map(|first| ids.into_iter().zip(first).collect()).unwrap_or_default()
}

/// Producers of random layers, if there are several. OpenVINO generates the same numbers for two layers with the same
/// inputs, so their inputs must remain different tensors.
fn random_sources(graph: &Graph) -> HashSet<LayerId> {
    let mut pending: Vec<_> = graph.unordered().filter(|layer| is_random(layer)).map(Layer::id).collect();
    let mut found = HashSet::default();
    if pending.len() < 2 {
        return found;
    }
    while let Some(id) = pending.pop() {
        let sources = graph.producers(id).into_iter().flatten();
        pending.extend(sources.map(|source| source.layer).filter(|&source| found.insert(source)));
    }
    found
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::model::graph::Model;

    /// A layer that names an output stays, so it is settled. Many of them took quadratic time.
    #[test]
    fn a_layer_is_compared_once_with_the_equal_ones() {
        let layers: String = (0..500).map(|at| format!("y{at} = Exp(x)\nr{at} = Result(y{at})\n")).collect();
        let model = Model::from_text(&format!("x = Parameter : f32[2]\n{layers}")).unwrap();
        let order = model.graph().topological_order().unwrap();
        let asked = Cell::new(0);
        let is_settled = |_| {
            asked.set(asked.get() + 1);
            true
        };
        let (mut taken, graph) = (HashSet::default(), model.graph());
        let mut scan =
            Scan { model: &model, graph, order: &order, rule: 0, taken: &mut taken, is_settled: &is_settled };
        assert!(super::layers(&mut scan).is_empty());
        assert_eq!(asked.get(), 499);
    }

    #[test]
    fn a_kept_layer_takes_the_marks_of_those_it_replaces() {
        let (none, precise) = (Marks::default(), Marks::precise());
        let mut alike = KeptLayers::default();
        assert_eq!(alike.position(&none), None);
        alike.keep(LayerId(4), none.clone());
        assert_eq!(alike.position(&precise), Some(0));
        assert_eq!(alike.join(0, &precise), LayerId(4));
        assert_eq!(alike.position(&none), Some(0));
        assert_eq!(alike.position(&precise), Some(0));
        assert_eq!(alike.kept, [(LayerId(4), precise)]);
    }
}
