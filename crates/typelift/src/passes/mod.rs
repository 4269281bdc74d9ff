//! Rewrites of a typed model: each pass is a function with a row in [`PASSES`].
//!
//! A pass expects types and shapes to be inferred, leaves them inferred, and works in bodies too. [`run`] verifies the
//! graph after it, always.

pub(crate) mod align;
mod conversions;
mod eliminate_converts;
mod lower_promote_types;
mod unique_tensor_names;

use std::collections::BTreeMap;

use serde::Serialize;
use typelift_promote::ElementType;

use self::align::Plan;
use crate::diagnostic::LayerRef;
use crate::graph::{Graph, Layer, LayerId, Model, OutputPort, Violation};
use crate::infer::Place;

/// What a pass did to one layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Whether the layer came or went.
    pub action: Action,
    /// The Convert.
    pub layer: LayerRef,
    /// The element type that it converts from.
    pub from: ElementType,
    /// The element type that it converts to.
    pub to: ElementType,
    /// Why.
    pub reason: String,
}

/// Whether a pass put a Convert in or took one out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// It is new.
    Inserted,
    /// It is gone.
    Removed,
}

/// A rewrite.
#[derive(Clone, Copy, Debug)]
pub struct Pass {
    /// Its name, an imperative.
    pub name: &'static str,
    /// What it leaves, one sentence.
    pub description: &'static str,
    /// Does it to the graph of a model.
    rewrite: fn(&mut Graph, &mut Changes),
    /// Whether more can be known of types and shapes after it.
    refines: bool,
}

/// Every pass.
pub const PASSES: &[Pass] = &[LOWER_PROMOTE_TYPES, ELIMINATE_NOOP_CONVERTS, ELIMINATE_CONVERTS, UNIQUE_TENSOR_NAMES];

/// Puts the Converts that each `ConvertPromoteTypes` stands for in its place, two for each, needed or not, as OpenVINO's
/// own pass `ConvertConvertPromoteTypes` does: named `{producer}/{name}.0` and `.1`, with the tensor names of its outputs.
/// One whose type is dynamic stays, and an output that nothing uses gets no Convert. Values pass a Convert and not a
/// ConvertPromoteTypes, so shapes that are computed behind it can become better known.
pub const LOWER_PROMOTE_TYPES: Pass = Pass {
    name: "lower-promote-types",
    description: "no ConvertPromoteTypes of a known type is left",
    rewrite: |graph, changes| changes.innermost_first(graph, lower_promote_types::rewrite),
    refines: true,
};

/// Takes out each Convert to the type that its input already has. Its tensor names go to its producer. One that feeds a
/// Result stays where the Result would otherwise stand for a Parameter, or for a tensor with other uses and other names:
/// the rule of OpenVINO's `NopElimination`.
pub const ELIMINATE_NOOP_CONVERTS: Pass = Pass {
    name: "eliminate-noop-converts",
    description: "no Convert is left that does nothing, but those that give a Result its name",
    rewrite: |graph, changes| changes.innermost_first(graph, eliminate_converts::noops),
    refines: false,
};

/// Takes out each Convert whose values another tensor already holds in its type, and lets the others start as early as
/// they can: `f16 → f32 → f16` is nothing, `i8 → i32 → i64` is `i8 → i64`, and of two Converts of a tensor to one type one
/// stays. What comes out is the same for every value, by [`fidelity`](typelift_promote::fidelity()); a Convert that can
/// lose something on the way is never passed over. Converts that feed a Result stay as in [`ELIMINATE_NOOP_CONVERTS`],
/// and those that nothing uses any more go.
pub const ELIMINATE_CONVERTS: Pass = Pass {
    name: "eliminate-converts",
    description: "no Convert is left whose values another tensor provably holds, but those that give a Result its name",
    rewrite: |graph, changes| changes.innermost_first(graph, eliminate_converts::all),
    refines: false,
};

/// Gives each tensor names of its own in the model and its bodies, the later of two equal ones a number behind it: what
/// OpenVINO's reader does. The outputs of operations with bodies keep theirs.
pub const UNIQUE_TENSOR_NAMES: Pass = Pass {
    name: "unique-tensor-names",
    description: "no two tensors share a name",
    rewrite: unique_tensor_names::rewrite,
    refines: false,
};

/// Runs a pass over a model and its bodies and tells what it did, then verifies the graph.
///
/// # Errors
/// What does not hold of the graph any more; that is a fault of the pass, and the model should not be used.
///
/// # Examples
/// ```
/// use typelift::passes::{LOWER_PROMOTE_TYPES, run};
/// let mut model = typelift::Model::from_xml(r#"<net name="n" version="11"><layers/></net>"#)?;
/// typelift::infer(&mut model);
/// assert!(run(&mut model, LOWER_PROMOTE_TYPES).unwrap().is_empty());
/// # Ok::<(), typelift::Diagnostics>(())
/// ```
pub fn run(model: &mut Model, pass: Pass) -> Result<Vec<Change>, Vec<Violation>> {
    let mut changes = Changes::default();
    (pass.rewrite)(&mut model.graph, &mut changes);
    model.graph.verify()?;
    if pass.refines && !changes.list.is_empty() {
        crate::infer::refine(model);
    }
    Ok(changes.list)
}

/// Puts in the Converts that a model and its bodies need for `plan`.
pub(crate) fn align(model: &mut Model, plan: &Plan, bodies: &BTreeMap<Place, Plan>) -> Vec<Change> {
    let mut changes = Changes::default();
    align::apply(&mut model.graph, plan, &mut changes);
    for (place, plan) in bodies.iter().filter(|(_, plan)| !plan.is_empty()) {
        let mut graph = Some(&mut model.graph);
        changes.path.clear();
        for &(owner, body) in place {
            graph = graph.and_then(|graph| {
                let layer = graph.node(owner).and_then(|node| graph.weight_mut(node))?;
                let body = layer.bodies.get_mut(body)?;
                changes.path.push(format!("{}/{}", layer.name, body.name()));
                Some(&mut body.graph)
            });
        }
        if let Some(graph) = graph {
            align::apply(graph, plan, &mut changes);
        }
    }
    changes.list
}

/// What a pass did so far, and where it is.
#[derive(Default)]
struct Changes {
    list: Vec<Change>,
    path: Vec<String>,
}

impl Changes {
    /// Rewrites every graph in `graph`, then itself.
    fn innermost_first(&mut self, graph: &mut Graph, rewrite: fn(&mut Graph, &mut Self)) {
        for (name, body) in graph.bodies_mut() {
            self.path.push(format!("{name}/{}", body.name()));
            self.innermost_first(&mut body.graph, rewrite);
            self.path.pop();
        }
        rewrite(graph, self);
    }

    fn add(&mut self, action: Action, layer: &Layer, [from, to]: [ElementType; 2], reason: impl Into<String>) {
        let layer = LayerRef { id: layer.id(), name: layer.name().to_owned(), path: self.path.join("/") };
        self.list.push(Change { action, layer, from, to, reason: reason.into() });
    }
}

/// Removes those of these layers that nothing uses any more, and what only they used: OpenVINO's passes leave them behind
/// unreachable, and its writer drops them. Inputs and outputs of the model stay, and what has effects.
fn remove_unused(graph: &mut Graph, mut candidates: Vec<LayerId>, changes: &mut Changes) {
    while let Some(id) = candidates.pop() {
        let keeps =
            |layer: &Layer| ["Parameter", "Result", "Assign"].iter().any(|ty| layer.ty.eq_ignore_ascii_case(ty));
        if graph.layer(id).is_none_or(keeps) {
            continue;
        }
        let producers = graph.producers(id);
        let from =
            producers.first().copied().flatten().and_then(|output| graph.output(output)).map(OutputPort::element_type);
        let Ok(layer) = graph.remove(id) else { continue };
        if let (true, Some(from), Some(port)) = (conversions::is_convert(&layer), from, layer.outputs.first()) {
            changes.add(Action::Removed, &layer, [from, port.element_type], "nothing uses it any more");
        }
        candidates.extend(producers.into_iter().flatten().map(|output| output.layer));
    }
}
