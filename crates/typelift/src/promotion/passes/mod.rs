//! Passes that rewrite a typed model. [`PASSES`] lists them.
//!
//! A pass expects inferred types and shapes, keeps them inferred, and includes bodies. [`run`] verifies the graph after
//! every pass that edited it.

mod align;
mod conversions;
mod eliminate_converts;
mod lower_promote_types;
mod unique_tensor_names;

use std::fmt;
use std::sync::Arc;

use thiserror::Error;
use typelift_promote::ElementType;

pub(crate) use self::align::unique;
pub use self::align::{Align, infer_aligned};
use self::eliminate_converts::Elimination;
use self::lower_promote_types::Lowering;
use crate::edit::Edit;
pub(crate) use crate::edit::changes::Changes;
pub use crate::edit::changes::{Action, Change};
use crate::findings::Diagnostic;
use crate::model::graph::{EditError, Graph, Layer, LayerId, Model, Place, Violation};
use crate::ops::{LayerKind, kind};

/// A rewrite of a typed model.
#[derive(Clone)]
#[non_exhaustive]
pub struct Pass {
    /// The name, such as `eliminate-converts`.
    pub name: &'static str,
    /// The state of the model after the pass, in one sentence.
    pub description: &'static str,
    rewrite: Rewrite,
}

type EachGraph = dyn Fn(&mut Edit<'_>) -> Result<(), EditError> + Send + Sync;

#[derive(Clone)]
enum Rewrite {
    /// Function that edits the model's own graph and its bodies. It must report its changes and keep types inferred.
    Whole(fn(&mut Edit<'_>, &mut Changes) -> Result<(), EditError>),
    Each(Arc<EachGraph>),
}

impl Pass {
    /// Creates a pass from a function. [`run`] calls `rewrite` for the graphs of all bodies, innermost first, and then
    /// for the model's own graph.
    ///
    /// # Examples
    /// ```
    /// use typelift::edit::Edit;
    /// use typelift::graph::{EditError, NewLayer};
    /// use typelift::passes::{run, Pass};
    ///
    /// /// Gives every ReLU another operation.
    /// fn replace_relus(graph: &mut Edit<'_>, with: &NewLayer) -> Result<(), EditError> {
    ///     let relus = graph.layers().filter(|layer| layer.ty() == "ReLU").map(|layer| layer.id());
    ///     for relu in relus.collect::<Vec<_>>() {
    ///         let inputs: Vec<_> = graph.producers(relu).into_iter().flatten().collect();
    ///         graph.replace_in_place(relu, with.clone(), &inputs)?;
    ///     }
    ///     Ok(())
    /// }
    ///
    /// # let mut model = typelift::Model::open(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/model.xml"))?;
    /// let elu = NewLayer::new("Elu", "opset1").with_attribute("alpha", 0.5);
    /// let soften = Pass::new("soften", "no ReLU is left", move |graph| replace_relus(graph, &elu));
    /// run(&mut model, soften)?;
    /// assert!(model.graph().layers().all(|layer| layer.ty() != "ReLU"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn new(
        name: &'static str,
        description: &'static str,
        rewrite: impl Fn(&mut Edit<'_>) -> Result<(), EditError> + Send + Sync + 'static,
    ) -> Self {
        Self { name, description, rewrite: Rewrite::Each(Arc::new(rewrite)) }
    }
}

impl fmt::Debug for Pass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pass({}: {})", self.name, self.description)
    }
}

/// Reason why a pass failed.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum PassError {
    /// An edit was refused; the model is unchanged.
    #[error(transparent)]
    Edit(#[from] EditError),
    /// The graph is damaged. That is a bug in the pass, and the model must not be used.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Invalid(Vec<Violation>),
    /// The model has errors of types or shapes that it did not have before.
    #[error("{}", .0.iter().map(|error| error.message.to_string()).collect::<Vec<_>>().join("; "))]
    IllTyped(Vec<Diagnostic>),
}

/// Every pass.
pub const PASSES: &[Pass] =
    &[LOWER_PROMOTE_TYPES, LOWER_WITHOUT_NOOPS, ELIMINATE_NOOP_CONVERTS, ELIMINATE_CONVERTS, UNIQUE_TENSOR_NAMES];

/// Replaces each `ConvertPromoteTypes` by two Converts, needed or not, as OpenVINO's own pass
/// `ConvertConvertPromoteTypes` does. They are named `{producer}/{name}.0` and `.1`, and get the tensor names of its
/// outputs. A `ConvertPromoteTypes` of dynamic type is kept, and an unused output gets no Convert. OpenVINO computes
/// known values through a Convert but not through a ConvertPromoteTypes, so more shapes can become known.
pub const LOWER_PROMOTE_TYPES: Pass = Pass {
    name: "lower-promote-types",
    description: "each ConvertPromoteTypes of known type is replaced by two Converts",
    rewrite: Rewrite::Whole(|graph, changes| changes.everywhere(graph, &mut Lowering::with_noops())),
};

/// Replaces each `ConvertPromoteTypes` as [`LOWER_PROMOTE_TYPES`] does, but without Converts to the type that a tensor
/// already has. The tensor itself then replaces the output and gets its names, as in [`ELIMINATE_NOOP_CONVERTS`].
pub const LOWER_WITHOUT_NOOPS: Pass = Pass {
    name: "lower-without-noops",
    description: "each ConvertPromoteTypes of known type is replaced by the Converts that have an effect",
    rewrite: Rewrite::Whole(|graph, changes| changes.everywhere(graph, &mut Lowering::without_noops())),
};

/// Removes each Convert to the type that its input already has. Its tensor names move to its producer. A Convert
/// before a Result is kept if the Result would otherwise follow a Parameter, or a tensor with other uses and other
/// names. This is the rule of OpenVINO's `NopElimination`.
pub const ELIMINATE_NOOP_CONVERTS: Pass = Pass {
    name: "eliminate-noop-converts",
    description: "no Convert keeps the type of its input, except Converts that name an output of the model",
    rewrite: Rewrite::Whole(|graph, changes| changes.everywhere(graph, &mut Elimination::Noops)),
};

/// Removes Converts without effect as OpenVINO's pass `ConvertPrecision` does after it changed types: only in the
/// model's own graph, and not after layers with several outputs.
pub(crate) const TIDY_CHANGED_TYPES: Pass = Pass {
    name: "tidy-changed-types",
    description: "no Convert in the model's own graph keeps the type of its input",
    rewrite: Rewrite::Whole(|graph, changes| changes.here(graph, &mut Elimination::NoopsOfSingles)),
};

/// Removes each Convert whose result another tensor already has, and connects the others to their earliest source.
/// `f16 → f32 → f16` is removed, `i8 → i32 → i64` becomes `i8 → i64`, and two equal Converts of one tensor are merged.
/// Results are equal for every value, by [`fidelity`](typelift_promote::fidelity()); a Convert that can change values
/// is never bypassed. Converts before a Result are kept as in [`ELIMINATE_NOOP_CONVERTS`], and unused ones are
/// removed.
pub const ELIMINATE_CONVERTS: Pass = Pass {
    name: "eliminate-converts",
    description: "no Convert has a result that another tensor already has, except Converts that name an output of the model",
    rewrite: Rewrite::Whole(|graph, changes| changes.everywhere(graph, &mut Elimination::Chains)),
};

/// Makes the tensor names of the model and its bodies unique, by a number after the later of two equal names, as
/// OpenVINO's reader does. The outputs of operations with bodies keep their names.
pub const UNIQUE_TENSOR_NAMES: Pass = Pass {
    name: "unique-tensor-names",
    description: "all tensor names are unique",
    rewrite: Rewrite::Whole(unique_tensor_names::rewrite),
};

/// Runs a pass over a model and its bodies, and verifies the graph if it was edited. Returns the changes of types.
/// Types and shapes are up to date afterwards.
///
/// # Errors
/// [`PassError`].
///
/// # Examples
/// ```
/// use typelift::passes::{run, LOWER_PROMOTE_TYPES};
/// let mut model = typelift::Model::from_xml(r#"<net name="n" version="11"><layers/></net>"#)?;
/// typelift::infer(&mut model);
/// assert!(run(&mut model, LOWER_PROMOTE_TYPES).unwrap().is_empty());
/// # Ok::<(), typelift::findings::Diagnostics>(())
/// ```
pub fn run(model: &mut Model, pass: Pass) -> Result<Vec<Change>, PassError> {
    run_with(model, pass, true)
}

/// Runs a pass as [`run`] does. Without details, a new Convert that loses nothing is reported by its id only.
pub(crate) fn run_with(model: &mut Model, pass: Pass, with_details: bool) -> Result<Vec<Change>, PassError> {
    rewrite(model, with_details, |graph, changes| match &pass.rewrite {
        Rewrite::Whole(rewrite) => rewrite(graph, changes),
        Rewrite::Each(rewrite) => {
            changes.retypes = true;
            graph.everywhere(&mut |graph| rewrite(graph))
        }
    })
}

/// Replaces the given promotions as [`LOWER_WITHOUT_NOOPS`] does. They are grouped by the place of their graph.
pub(crate) fn lower(
    model: &mut Model,
    promotions: &[(Place, Vec<LayerId>)],
    with_details: bool,
) -> Result<Vec<Change>, PassError> {
    rewrite(model, with_details, |edit, changes| {
        for (place, promotions) in promotions {
            let mut graph = changes.enter(edit, place)?;
            let converts = graph.unordered().filter(|layer| kind(layer) == LayerKind::Convert).map(Layer::id);
            let found = converts.chain(promotions.iter().copied()).collect();
            Lowering::without_noops().rewrite(&mut graph, found, changes)?;
            if !place.is_model() {
                changes.retype_parameters(&mut graph)?;
            }
        }
        Ok(())
    })
}

/// Rewrites a model, verifies it if it was edited, and infers types and shapes. Returns the changes.
fn rewrite(
    model: &mut Model,
    with_details: bool,
    rewrite: impl FnOnce(&mut Edit<'_>, &mut Changes) -> Result<(), EditError>,
) -> Result<Vec<Change>, PassError> {
    let mut changes = Changes { without_details: !with_details, ..Changes::of(&model.weights) };
    let edited = model.edit(|graph| {
        rewrite(graph, &mut changes)?;
        Ok(graph.is_edited())
    })?;
    // A pass that made no edits cannot have damaged the graph.
    if edited {
        model.graph().verify().map_err(PassError::Invalid)?;
    }
    if changes.retypes {
        let mut found = crate::infer(model);
        found.retain(Diagnostic::is_error);
        if !found.is_empty() {
            return Err(PassError::IllTyped(found));
        }
    } else if changes.reveals {
        crate::infer::refine(model);
    }
    Ok(changes.list)
}

/// Rewrite of one graph that reports its changes.
trait OneGraph {
    /// A graph without such layers is skipped.
    fn concerns(&self, graph: &Graph, layer: &Layer) -> bool;

    /// Rewrites a graph; `found` are the layers that the rewrite may change.
    fn rewrite(&mut self, graph: &mut Edit<'_>, found: Vec<LayerId>, changes: &mut Changes) -> Result<(), EditError>;
}

fn concerns(rewrite: &impl OneGraph, graph: &Graph) -> bool {
    let mut bodies = graph.unordered().flat_map(Layer::bodies);
    graph.unordered().any(|layer| rewrite.concerns(graph, layer)) || bodies.any(|body| concerns(rewrite, &body.graph))
}

impl Changes {
    /// Rewrites all bodies in `graph`, innermost first, and then `graph` itself.
    fn everywhere(&mut self, graph: &mut Edit<'_>, rewrite: &mut impl OneGraph) -> Result<(), EditError> {
        let (mut bodies, mut found) = (Vec::new(), Vec::new());
        for layer in graph.unordered() {
            bodies.extend((0..layer.bodies().len()).map(|at| (layer.id(), at)));
            found.extend(rewrite.concerns(graph, layer).then_some(layer.id()));
        }
        for (owner, at) in bodies {
            let body = graph.layer(owner).and_then(|layer| layer.bodies().get(at));
            if !body.is_some_and(|body| concerns(rewrite, &body.graph)) {
                continue;
            }
            let (removed, outside) = (self.removed, self.place.clone());
            let mut body = self.step_into(graph, owner, at)?;
            self.everywhere(&mut body, rewrite)?;
            if self.removed > removed {
                self.retype_parameters(&mut body)?;
            }
            self.place = outside;
        }
        if found.is_empty() { Ok(()) } else { rewrite.rewrite(graph, found, self) }
    }

    /// Rewrites `graph` without its bodies.
    fn here(&mut self, graph: &mut Edit<'_>, rewrite: &mut impl OneGraph) -> Result<(), EditError> {
        let found = graph.unordered().filter(|layer| rewrite.concerns(graph, layer)).map(Layer::id).collect();
        rewrite.rewrite(graph, found, self)
    }

    /// OpenVINO first infers a body with the declared types, which may have been valid only because of a removed layer.
    fn retype_parameters(&mut self, graph: &mut Edit<'_>) -> Result<(), EditError> {
        let retyped = graph.unordered().filter(|layer| kind(layer) == LayerKind::Parameter).filter_map(|layer| {
            let declared = layer.named_type("element_type")?;
            let given = layer.outputs().first()?.element_type();
            (given != declared && given != ElementType::Dynamic).then_some((layer.id(), [declared, given]))
        });
        for (id, types) in retyped.collect::<Vec<_>>() {
            self.retypes = true;
            self.retype(graph, id, "element_type", types, "the input of the body has this type")?;
        }
        Ok(())
    }
}

/// Removes the unused ones of these layers, and layers that only they used. OpenVINO's passes leave them unreachable,
/// and its writer drops them. Inputs and outputs of the model and layers with effects are kept.
fn remove_unused(graph: &mut Edit<'_>, candidates: Vec<LayerId>, changes: &mut Changes) -> Result<(), EditError> {
    graph.sweep(candidates, |graph, layer| {
        let from = graph.producer(layer.id().input(0)).and_then(|output| graph.output(output));
        if let (LayerKind::Convert, Some(from), Some(port)) = (kind(layer), from, layer.outputs().first()) {
            let types = [from.element_type(), port.element_type()];
            changes.add(Action::Removed, layer, types, "no layer uses it any more");
        }
        changes.removed += 1;
    })
}
