//! Effect of a Convert on values.

use std::fmt;

use typelift_promote::{ElementType, Fidelity, fidelity};

use super::kind::{LayerKind, kind};
use super::values::conversion::Audit;
use crate::model::graph::{Graph, Layer};
use crate::model::weights::Weights;

/// Element types of a Convert, ConvertLike or ConvertPromoteTypes: those of its inputs and of its output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conversion {
    /// The source types.
    pub from: Vec<ElementType>,
    /// The destination type.
    pub to: ElementType,
}

impl Conversion {
    /// Returns the input types whose values can change, with the possible loss of each.
    pub fn lossy(&self) -> impl Iterator<Item = (ElementType, Fidelity)> {
        let known = self.from.iter().filter_map(|&from| Some((from, fidelity(from, self.to)?)));
        known.filter(|(_, fidelity)| !fidelity.is_exact())
    }

    /// Returns the effect on the values of this layer's input: by the values of a constant, otherwise by the types.
    pub fn effect(&self, graph: &Graph, weights: &Weights, layer: &Layer) -> Effect {
        let Some((_, lost)) = self.lossy().next() else {
            let losses = self.from.first().and_then(|&from| fidelity(from, self.to));
            return Effect { losses, audit: None };
        };
        match converted_values(graph, weights, layer) {
            Some(audit) if audit.changed() == 0 => Effect { losses: Some(Fidelity::default()), audit: None },
            audit => Effect { losses: Some(audit.map_or(lost, Audit::losses)), audit },
        }
    }
}

/// Effect of a Convert on values.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Effect {
    /// The possible losses; those of its values for a constant. `None` for unknown types.
    pub losses: Option<Fidelity>,
    /// The counts of the values of a constant, if some change.
    pub audit: Option<Audit>,
}

impl Effect {
    /// True if every value is kept.
    pub fn is_exact(&self) -> bool {
        self.losses.is_some_and(Fidelity::is_exact)
    }
}

/// Formats as `exact`, `rounds, overflows`, or for a constant `3 of 64 values change: …`.
impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.audit, self.losses) {
            (Some(audit), _) => audit.fmt(f),
            (None, Some(losses)) => losses.fmt(f),
            (None, None) => f.write_str("of an unknown type"),
        }
    }
}

/// Returns the conversion that a layer of an inferred graph performs; `None` for other layers.
///
/// # Examples
/// ```
/// let mut model = typelift::Model::from_text("x = Parameter : f32[?]\ny = Convert(x) {destination_type=f16}\nz = Result(y)\n")?;
/// typelift::infer(&mut model);
/// let graph = model.graph();
/// let conversion = typelift::ops::conversion(graph, graph.layer(graph.find("y")?).unwrap()).unwrap();
/// assert_eq!((conversion.from[0].name(), conversion.to.name()), ("f32", "f16"));
/// assert_eq!(conversion.lossy().next().unwrap().1.to_string(), "rounds, overflows");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub fn conversion(graph: &Graph, layer: &Layer) -> Option<Conversion> {
    let inputs = match kind(layer) {
        // ConvertLike has a second input, whose type is the destination type.
        LayerKind::Convert | LayerKind::ConvertLike => 1,
        LayerKind::ConvertPromoteTypes => 2,
        _ => return None,
    };
    let feeds = graph.producers(layer.id()).into_iter().take(inputs).flatten();
    let mut from: Vec<_> = feeds.filter_map(|feed| Some(graph.output(feed)?.element_type())).collect();
    from.dedup();
    Some(Conversion { from, to: layer.outputs().first()?.element_type() })
}

/// Limit on the values of a constant that are compared.
const MOST_COMPARED: u64 = 1 << 21;

/// Limit on the Converts before another that are followed. An exact one widens its type or keeps it, and few are wider.
const MOST_PASSED: usize = 8;

/// Counts the values of a constant that a Convert changes, directly after it or after a few other Converts. `None` for
/// a Convert of a computed tensor, and for a constant that is large or cannot be read.
fn converted_values(graph: &Graph, weights: &Weights, layer: &Layer) -> Option<Audit> {
    let to = conversion(graph, layer)?.to;
    let mut at = layer;
    for _ in 0..MOST_PASSED {
        let Conversion { from, .. } = conversion(graph, at)?;
        let [from] = from[..] else { return None };
        let (source, _) = graph.feeds(at.id()).into_iter().next()??;
        if kind(source) == LayerKind::Constant {
            let is_small = source.outputs().first()?.shape().element_count()? <= MOST_COMPARED;
            if fidelity(from, to)?.is_exact() {
                return Some(Audit::default());
            }
            return if is_small { Audit::of(source, weights, to) } else { None };
        }
        if at.id() != layer.id() && conversion(graph, at)?.lossy().next().is_some() {
            return None;
        }
        at = source;
    }
    None
}
