//! The layers that OpenVINO's plugins keep in f32 when they compute in f16.
//!
//! The search starts at marked layers, ranges of floating-point numbers, an Exp whose results are summed, and a
//! division with an epsilon below the smallest normal f16. From there it continues to consumers and then to producers,
//! through the operations that the operation table permits. Layers after a FakeQuantize are not kept.

use super::view::{self, GraphView, is_float};
use crate::base::hash::HashSet;
use crate::edit::precision_marks::Marks;
use crate::model::graph::{Layer, LayerId, Model, Place};
use crate::ops::{self, Spread};

const SMALLEST_NORMAL: f64 = 1.0 / (1 << 14) as f64;

pub(super) fn find(model: &Model) -> Vec<(Place, HashSet<LayerId>)> {
    let lowered = view::lowered(model);
    let found = lowered.walk().map(|(place, graph)| {
        let mut layers = GraphView::new(&lowered, graph).sensitive();
        layers.retain(|&layer| model.graph_at(&place).is_some_and(|graph| graph.layer(layer).is_some()));
        (place, layers)
    });
    found.filter(|(_, layers)| !layers.is_empty()).collect()
}

impl GraphView<'_> {
    fn sensitive(&self) -> HashSet<LayerId> {
        let mut kept = self.ranges();
        let marked = self.graph.unordered().filter(|layer| Marks::of(layer, self.version).keeps_precision());
        kept.extend(marked.map(Layer::id));
        kept.extend(self.order.iter().copied().filter(|&id| self.divides_by_epsilon(id)));
        kept.extend(self.summed_exponents());
        let quantized = self.quantized();
        kept.retain(|id| !quantized.contains(id));
        self.spread_down(&mut kept, &quantized);
        self.spread_up(&mut kept);
        kept
    }

    fn ranges(&self) -> HashSet<LayerId> {
        let (mut kept, mut ranges) = (HashSet::default(), HashSet::default());
        for &id in self.order.iter().filter(|&&id| self.spreads(id, Spread::Range)) {
            let Some(layer) = self.layer(id) else { continue };
            if self.is_of(id, &["Range"]) && is_float(layer, 0) {
                kept.extend(self.graph.sources(id));
            } else if !self.graph.sources(id).any(|source| ranges.contains(&source)) {
                continue;
            }
            ranges.insert(id);
        }
        kept.extend(ranges);
        kept
    }

    fn divides_by_epsilon(&self, id: LayerId) -> bool {
        let feeds = self.graph.feeds(id);
        let from = |input: usize| feeds.get(input).copied().flatten().map(|(layer, _)| layer.id());
        if self.is_of(id, &["Divide"]) {
            let divisor =
                from(1).and_then(
                    |divisor| if self.is_of(divisor, &["Sqrt"]) { self.source(divisor, 0) } else { Some(divisor) },
                );
            return divisor.is_some_and(|divisor| self.has_epsilon(divisor));
        }
        self.is_of(id, &["Multiply"])
            && [from(0), from(1)].into_iter().flatten().any(|power| {
                let exponent = || self.constant(self.source(power, 1)?);
                self.is_of(power, &["Power"])
                    && exponent().is_some_and(|values| values.iter().all(|&value| value < 0.0))
                    && self.source(power, 0).is_some_and(|base| self.has_epsilon(base))
            })
    }

    fn has_epsilon(&self, id: LayerId) -> bool {
        let is_small = |values: Vec<f64>| values.iter().all(|&value| value <= SMALLEST_NORMAL);
        let constant = |input| self.source(id, input).and_then(|source| self.constant(source));
        self.is_of(id, &["Add", "Maximum"]) && [0, 1].into_iter().filter_map(constant).any(is_small)
    }

    /// The Exp layers whose results reach a sum or a mean through operations that pass the decision on.
    fn summed_exponents(&self) -> Vec<LayerId> {
        let mut summed = HashSet::default();
        for &id in self.order.iter().rev() {
            let is_sum = self.is_of(id, &["ReduceSum", "ReduceMean"]);
            if is_sum || self.spreads(id, Spread::Kept) && self.feeds_floats_to(id, &summed) {
                summed.insert(id);
            }
        }
        summed.into_iter().filter(|&id| self.is_of(id, &["Exp"])).collect()
    }

    fn quantized(&self) -> HashSet<LayerId> {
        let mut quantized = HashSet::default();
        for &id in self.order.iter().filter(|&&id| self.spreads(id, Spread::Quantized)) {
            if self.is_of(id, &["FakeQuantize"]) || self.graph.sources(id).any(|source| quantized.contains(&source)) {
                quantized.insert(id);
            }
        }
        quantized
    }

    fn spread_down(&self, kept: &mut HashSet<LayerId>, quantized: &HashSet<LayerId>) {
        for &id in self.order.iter().filter(|&&id| self.spreads(id, Spread::Kept) && !self.is_of(id, &["Convert"])) {
            let first = self.float_sources(id).find(|source| quantized.contains(source) || kept.contains(source));
            match first {
                Some(source) if quantized.contains(&source) => drop(kept.remove(&id)),
                Some(_) => drop(kept.insert(id)),
                None => {}
            }
        }
    }

    fn spread_up(&self, kept: &mut HashSet<LayerId>) {
        for &id in self.order.iter().rev().filter(|&&id| self.spreads(id, Spread::Kept)) {
            let source = || self.source(id, 0).and_then(|source| self.layer(source));
            let leads_on = !self.is_of(id, &["Convert"]) || source().is_some_and(ops::is_constant);
            if leads_on && self.feeds_floats_to(id, kept) {
                kept.insert(id);
            }
        }
    }
}
