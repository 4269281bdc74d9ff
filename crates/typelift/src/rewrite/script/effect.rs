//! Effects of a statement: the layers, inputs and outputs that it removed.

use std::fmt::{self, Display, Formatter};

use serde::Serialize;

use crate::base::hash::HashSet;
use crate::edit::inputs_outputs::End;
use crate::findings::{LayerRef, grouped};
use crate::model::graph::{Layer, LayerId, Model, Place};

/// The most names that a line lists.
const MOST_NAMES: usize = 3;

/// Layers, inputs and outputs that a statement removed from a model's own graph.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Effect {
    /// The statement.
    pub statement: String,
    /// The layers that were removed.
    pub removed: Vec<LayerRef>,
    /// The names of inputs that the model no longer has.
    pub inputs: Vec<String>,
    /// The names of outputs that the model no longer has.
    pub outputs: Vec<String>,
}

impl Display for Effect {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        match self.removed.len() {
            0 => {}
            1 => parts.push("1 layer".to_owned()),
            count => parts.push(format!("{} layers", grouped(count as u64))),
        }
        for (kind, names) in [("input", &self.inputs), ("output", &self.outputs)] {
            let plural = if names.len() == 1 { "" } else { "s" };
            let (shown, rest) = names.split_at(names.len().min(MOST_NAMES));
            let rest = if rest.is_empty() { String::new() } else { format!(" and {} more", rest.len()) };
            if !shown.is_empty() {
                parts.push(format!("{kind}{plural} `{}`{rest}", shown.join("`, `")));
            }
        }
        write!(f, "{}: removed {}", self.statement, parts.join("; "))
    }
}

/// Layers, inputs and outputs of a model before a statement.
pub(super) struct Before {
    layers: Vec<LayerRef>,
    ends: [Vec<(LayerId, String)>; 2],
}

const ENDS: [End; 2] = [End::Input, End::Output];

impl Before {
    pub(super) fn new(model: &Model) -> Self {
        let place = Place::default();
        Self {
            layers: model.graph().layers().map(|layer| LayerRef::of(&place, layer)).collect(),
            ends: ENDS.map(|end| model.ends_with_names(end)),
        }
    }

    /// `None` if it removed nothing. A layer that has another id or another name now was not removed.
    pub(super) fn compare(self, model: &Model, statement: String) -> Option<Effect> {
        let now: HashSet<LayerId> = model.graph().unordered().map(Layer::id).collect();
        let names: HashSet<&str> = model.graph().unordered().map(Layer::name).collect();
        let removed: Vec<_> =
            self.layers.into_iter().filter(|layer| !now.contains(&layer.id) && !names.contains(&*layer.name)).collect();
        let mut ends = ENDS.into_iter().zip(self.ends).map(|(end, before)| {
            let (ids, names): (HashSet<_>, HashSet<_>) = model.ends_with_names(end).into_iter().unzip();
            let gone = before.into_iter().filter(|(id, name)| !ids.contains(id) && !names.contains(name));
            gone.map(|(_, name)| name).collect::<Vec<_>>()
        });
        let (inputs, outputs) = (ends.next().unwrap_or_default(), ends.next().unwrap_or_default());
        let is_empty = removed.is_empty() && inputs.is_empty() && outputs.is_empty();
        (!is_empty).then_some(Effect { statement, removed, inputs, outputs })
    }
}
