//! Check that a narrower integer type can hold an input that is used as index, by the sizes of the indexed tensors.

use std::fmt;

use typelift_promote::{ElementType, Kind};

use crate::base::hash::HashSet;
use crate::findings::described;
use crate::findings::list;
use crate::model::graph::{Graph, Layer, LayerId, Model, Output};
use crate::model::weights::Weights;
use crate::ops::{self, Axis, LayerKind, UseOfValues};

/// Answer: can a narrower integer type hold all values that the model may use? `Display` is a clause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Narrowing {
    /// Yes: the values are only indices into these tensors, given as layer and number of rows.
    Safe(Vec<String>),
    /// No: a tensor, given in the same form, has more rows than the type has values.
    TooMany(String),
    /// Unknown, because of this use of the values.
    Unknown(String),
}

impl fmt::Display for Narrowing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Safe(uses) if uses.is_empty() => f.write_str("safe: no layer uses its values"),
            Self::Safe(uses) => write!(f, "safe: it is only used by {}", list(uses.clone(), "and")),
            Self::TooMany(user) => write!(f, "not safe: it is used by {user}, more than the type can index"),
            Self::Unknown(user) => write!(f, "not known to be safe: {user}"),
        }
    }
}

impl Model {
    /// Checks if an integer input of the model may get a narrower integer type; `None` for other inputs and types.
    pub(crate) fn narrowing(&self, input: LayerId, [from, to]: [ElementType; 2]) -> Option<Narrowing> {
        let is_input = self.graph().layer(input).is_some_and(|layer| ops::kind(layer) == LayerKind::Parameter);
        let narrows = from.is_integer() && to.kind() == Kind::Signed && to.bits() < from.bits();
        (is_input && narrows).then(|| uses(self.graph(), self.weights(), input.output(0), to))
    }
}

/// Follows a tensor to all layers that use its values.
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
                UseOfValues::Computed => {
                    return Narrowing::Unknown(format!("{} calculates with the values", described(layer)));
                }
            }
        }
    }
    safe.sort_unstable();
    Narrowing::Safe(safe)
}

/// Formats the use of an index: ``Gather 3 `words` over 128 rows``.
fn over(layer: &Layer, rows: i64) -> String {
    format!("{} over {rows} rows", described(layer))
}

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
