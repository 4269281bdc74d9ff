//! Graph that is matched, with facts that are computed when matching needs them.

use std::cell::{OnceCell, RefCell};
use std::collections::BTreeMap;
use std::sync::Arc;

use smallvec::smallvec;

use super::bound::Bound;
use super::term::Link;
use super::values::{self, MOST_COMPUTED};
use crate::base::hash::{HashMap, HashSet};
use crate::infer::blocks::BlockNumbers;
use crate::model::graph::{Graph, Layer, LayerId, Output};
use crate::model::weights::Weights;
use crate::ops::values::array::Array;
use crate::ops::{self, LayerKind};
use crate::rewrite::notation::Literal;

/// Graph with facts that are computed when matching needs them.
pub(super) struct Subject<'a> {
    pub(super) graph: &'a Graph,
    pub(super) weights: &'a Weights,
    in_body: bool,
    pub(super) is_inferred: bool,
    /// Returns the layers, each after its producers.
    order: OnceCell<Vec<LayerId>>,
    positions: OnceCell<HashMap<LayerId, usize>>,
    /// Layers that are computed from constants alone.
    derived: OnceCell<HashSet<LayerId>>,
    pub(super) blocks: OnceCell<BlockNumbers>,
    /// The values of small constants.
    constants: RefCell<HashMap<Output, Option<Arc<Array>>>>,
    /// The layers of earlier matches.
    pub(super) taken: RefCell<HashSet<LayerId>>,
    /// Layers that can be reached from a tensor through a link, by their position in the order.
    pub(super) downstream: RefCell<HashMap<(Link, Output), BTreeMap<usize, LayerId>>>,
    /// The limit that stopped the last search, if any.
    pub(super) limit: RefCell<Option<String>>,
}

impl<'a> Subject<'a> {
    pub(super) fn new(graph: &'a Graph, weights: &'a Weights) -> Self {
        Self {
            graph,
            weights,
            in_body: false,
            is_inferred: true,
            order: OnceCell::new(),
            positions: OnceCell::new(),
            derived: OnceCell::new(),
            blocks: OnceCell::new(),
            constants: RefCell::default(),
            taken: RefCell::default(),
            downstream: RefCell::default(),
            limit: RefCell::default(),
        }
    }

    pub(super) fn in_body(self, in_body: bool) -> Self {
        Self { in_body, ..self }
    }

    /// The reason why a pattern does not continue beyond the border of a body.
    pub(super) fn border(&self, layer: &Layer) -> &'static str {
        match ops::kind(layer) {
            LayerKind::Parameter if self.in_body => "; a pattern cannot extend beyond a body",
            _ if !layer.bodies().is_empty() => "; a pattern cannot extend into its bodies",
            _ => "",
        }
    }

    pub(super) fn is_constant(&self, tensor: Output) -> bool {
        let Some(layer) = self.graph.layer(tensor.layer) else { return false };
        ops::kind(layer) == LayerKind::Constant || self.derived().contains(&layer.id())
    }

    pub(super) fn order(&self) -> &[LayerId] {
        self.order.get_or_init(|| self.graph.topological_order().unwrap_or_default())
    }

    pub(super) fn positions(&self) -> &HashMap<LayerId, usize> {
        self.positions.get_or_init(|| self.order().iter().enumerate().map(|(at, &layer)| (layer, at)).collect())
    }

    /// Layers, other than constants, that depend only on constants. They are conversions of any size, and other small
    /// operations.
    fn derived(&self) -> &HashSet<LayerId> {
        self.derived.get_or_init(|| {
            let mut found = HashSet::default();
            for &id in self.order() {
                let Some(layer) = self.graph.layer(id) else { continue };
                if layer.inputs().is_empty() || ops::kind(layer) == LayerKind::Constant || !values::computes(layer) {
                    continue;
                }
                let is_small = |layer: &Layer| {
                    let counts = layer.outputs().iter().filter_map(|port| port.shape().element_count());
                    counts.max().is_none_or(|count| count <= MOST_COMPUTED as u64)
                };
                let is_known = |from: &Layer| ops::kind(from) == LayerKind::Constant || found.contains(&from.id());
                let feeds = self.graph.feeds(id);
                let needed = if values::is_conversion(layer) { 1 } else { feeds.len() };
                let known = feeds.iter().take(needed).all(|feed| feed.is_some_and(|(from, _)| is_known(from)));
                if known && (values::is_conversion(layer) || is_small(layer)) {
                    found.insert(id);
                }
            }
            found
        })
    }

    pub(super) fn is_taken(&self, layer: LayerId) -> bool {
        self.taken.borrow().contains(&layer)
    }

    pub(super) fn small(&self, tensor: Output) -> Option<Arc<Array>> {
        let count = match self.graph.layer(tensor.layer)?.stored_as() {
            Some((_, dims)) => dims.iter().try_fold(1_u64, |count, &dim| count.checked_mul(dim as u64)),
            None => self.graph.output(tensor)?.shape().element_count(),
        };
        if count.is_none_or(|count| count > MOST_COMPUTED as u64) {
            return None;
        }
        let mut constants = self.constants.borrow_mut();
        let values = || values::values(self.graph, self.weights, tensor).map(Arc::new);
        constants.entry(tensor).or_insert_with(values).clone()
    }

    pub(super) fn number(&self, tensor: Output) -> Option<f64> {
        let values = self.small(tensor)?;
        let values = values.to_floats();
        let first = *values.first()?;
        values.iter().all(|&value| value == first || value.is_nan() && first.is_nan()).then_some(first)
    }

    pub(super) fn holds(&self, tensor: Output, literal: &Literal) -> bool {
        let Some(layer) = self.graph.layer(tensor.layer) else { return false };
        let Some((ty, dims)) = layer.stored_as() else {
            return self.small(tensor).is_some_and(|array| literal.is_held_by(&array));
        };
        let Some(count) = dims.iter().try_fold(1_usize, |count, &dim| count.checked_mul(dim)) else { return false };
        if count <= MOST_COMPUTED {
            return self.small(tensor).is_some_and(|array| literal.is_held_by(&array));
        }
        // For a large constant, the first value usually decides.
        let holds = |dims| layer.values(self.weights, ty, dims).is_some_and(|array| literal.is_held_by(&array));
        if literal.dims.is_empty() {
            holds(smallvec![1]) && holds(dims)
        } else {
            literal.numbers.len() == count && holds(dims)
        }
    }

    pub(super) fn is_same(&self, a: &Bound, b: &Bound) -> bool {
        let values = |bound: &Bound| match bound {
            Bound::Tensor(tensor) if self.is_constant(*tensor) => {
                self.small(*tensor).or_else(|| values::values(self.graph, self.weights, *tensor).map(Arc::new))
            }
            Bound::Tensor(_) | Bound::Number(_) | Bound::List(_) => None,
            Bound::Values(values) => Some(values.clone()),
        };
        match (a, b) {
            (Bound::Tensor(a), Bound::Tensor(b)) if a == b => true,
            (Bound::Number(a), Bound::Number(b)) => a == b,
            (Bound::List(a), Bound::List(b)) => {
                a.len() == b.len()
                    && a.iter().zip(b.iter()).all(|(&a, &b)| self.is_same(&Bound::Tensor(a), &Bound::Tensor(b)))
            }
            (Bound::Number(number), other) | (other, Bound::Number(number)) => {
                values(other).is_some_and(|values| values.len() == 1 && values.to_floats()[0] as f32 == *number as f32)
            }
            _ => matches!((values(a), values(b)), (Some(a), Some(b)) if a == b),
        }
    }
}
