//! Check whether a narrower integer type holds all indices that an input can have, by the sizes that it indexes.

use std::fmt;

use typelift_promote::{ElementType, Kind};

use crate::base::hash::HashSet;
use crate::findings::list;
use crate::model::graph::{Graph, Layer, LayerId, Model, Output};
use crate::model::weights::Weights;
use crate::ops::{self, Axis, LayerKind, UseOfValues};

/// Possible values of an integer tensor, from its uses. `Display` is a clause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Narrowing {
    /// The values are indices into these tensors, each a layer with a number of rows, and the type can represent all of
    /// them.
    Safe(Vec<String>),
    /// A layer has more rows than the type has numbers.
    TooMany(String),
    /// A layer that the operation refuses, with the reason.
    Unknown(String),
}

impl fmt::Display for Narrowing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Safe(uses) if uses.is_empty() => f.write_str("safe: nothing uses its values"),
            Self::Safe(uses) => write!(f, "safe: only {} uses it", list(uses.clone(), "and")),
            Self::TooMany(user) => write!(f, "not safe: {user}, which are more than the type has numbers for"),
            Self::Unknown(user) => write!(f, "not known to hold every value: {user}"),
        }
    }
}

impl Model {
    /// Returns the effect of a narrower type on an integer input of the model; `None` if it is not a narrower integer.
    pub(crate) fn narrowing(&self, input: LayerId, [from, to]: [ElementType; 2]) -> Option<Narrowing> {
        let is_input = self.graph().layer(input).is_some_and(|layer| ops::kind(layer) == LayerKind::Parameter);
        let narrows = from.is_integer() && to.kind() == Kind::Signed && to.bits() < from.bits();
        (is_input && narrows).then(|| uses(self.graph(), self.weights(), input.output(0), to))
    }
}

/// Follows the values of a tensor to their uses.
fn uses(graph: &Graph, weights: &Weights, tensor: Output, to: ElementType) -> Narrowing {
    let mut safe = Vec::new();
    let (mut pending, mut seen) = (vec![tensor], HashSet::default());
    while let Some(tensor) = pending.pop() {
        for input in graph.consumers(tensor).filter(|input| seen.insert(*input)).collect::<Vec<_>>() {
            let Some(layer) = graph.layer(input.layer) else { continue };
            match ops::use_of_values(layer, input.port) {
                UseOfValues::Unused => {}
                UseOfValues::Passed => pending.push(layer.id().output(0)),
                UseOfValues::Places { of, axis } => match rows(graph, weights, layer, (of, axis)) {
                    Some(rows) if i128::from(rows) <= 1 << (to.bits() - 1) => safe.push(over(layer, rows)),
                    Some(rows) => return Narrowing::TooMany(over(layer, rows)),
                    None => return Narrowing::Unknown(format!("{} has an unknown number of rows", described(layer))),
                },
                UseOfValues::Computed => return Narrowing::Unknown(format!("{} computes with it", described(layer))),
            }
        }
    }
    safe.sort_unstable();
    Narrowing::Safe(safe)
}

/// Formats as ``Gather 3 `words` over 128 rows``.
fn over(layer: &Layer, rows: i64) -> String {
    format!("{} over {rows} rows", described(layer))
}

fn described(layer: &Layer) -> String {
    format!("{} {} `{}`", layer.ty(), layer.id(), layer.name())
}

/// Returns the largest possible length of an input along an axis.
fn rows(graph: &Graph, weights: &Weights, layer: &Layer, (of, axis): (usize, Axis)) -> Option<i64> {
    let producers = graph.producers(layer.id());
    let source = |port: usize| producers.get(port).copied().flatten();
    let dims = graph.output(source(of)?)?.shape().dims()?;
    let axis = match axis {
        Axis::First => 0,
        Axis::Attribute => layer.attribute("axis")?.trim().parse().ok()?,
        Axis::Input(port) => *graph.layer(source(port)?.layer)?.numbers(weights)?.first()? as i64,
    };
    let axis = if axis < 0 { axis + dims.len() as i64 } else { axis };
    dims.get(usize::try_from(axis).ok()?)?.upper()
}
