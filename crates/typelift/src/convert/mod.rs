//! Conversion of a whole model: makes element types agree, replaces promotions by Converts, and changes the types of
//! inputs, outputs and constants.

mod options;
pub mod retarget;
pub mod strip;

pub use self::options::OptionError;

use std::collections::BTreeSet;

use serde::Deserialize;
use thiserror::Error;
use typelift_promote::ElementType;

use crate::base::hash::HashSet;
use crate::base::quoted::Quoted;
use crate::check::{self, Device};
use crate::convert::retarget::Retargeted;
use crate::edit::inputs_outputs::{End, InterfaceError, LayoutChange, Reshaped, trace_changes};
use crate::edit::metadata::InfoChange;
use crate::edit::precision_marks::Spelling;
use crate::findings::{Code, Diagnostic, Fix, FixAction, LayerRef, Text, message};
use crate::model::graph::{EditError, Graph, IrVersion, Layer, LayerId, Model};
use crate::model::shape::Shape;
use crate::ops::{self, LayerKind, Release};
use crate::precision::quantize::{QuantizationPlan, Request};
use crate::precision::{self, KeepError, KeepPattern, Kept, Plan, Retyping, Risk, Storage, TypeMap};
use crate::promotion::passes::{
    self, Action, Align, Change, ELIMINATE_CONVERTS, ELIMINATE_NOOP_CONVERTS, LOWER_PROMOTE_TYPES, LOWER_WITHOUT_NOOPS,
    Pass, PassError, TIDY_CHANGED_TYPES, UNIQUE_TENSOR_NAMES,
};

/// Settings of a conversion: what `typelift convert` does between reading and writing. The default uses the declared types
/// of the file, and removes Converts without effect.
///
/// # Examples
/// ```
/// use typelift::promote::ElementType;
/// # let mut model = typelift::Model::open(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/model.xml"))?;
/// let mut conversion = typelift::convert::Conversion::default();
/// conversion.input_types.push(("x".to_owned(), ElementType::U8));
/// let converted = conversion.run(&mut model)?;
/// assert!(converted.refresh_ports);
/// assert!(model.to_string().starts_with("0 x = Parameter : u8[?,4]\n"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Conversion {
    /// The rule that chooses one type for inputs that must agree.
    #[serde(deserialize_with = "options::align")]
    pub align: Align,
    /// The Converts to remove.
    #[serde(deserialize_with = "options::unneeded")]
    pub unneeded: Unneeded,
    /// Inputs that get another element type, so that the layers after them also change; also constants whose values
    /// are converted ([`Model::convert_constant`]).
    #[serde(deserialize_with = "options::types")]
    pub set_types: Vec<(String, ElementType)>,
    /// Inputs that get another shape, so that the shapes after them also change.
    #[serde(deserialize_with = "crate::model::shape::pairs")]
    pub set_shapes: Vec<(String, Shape)>,
    /// Inputs that get another element type and a Convert, so that the layers after them do not change
    /// ([`Model::convert_input`]).
    #[serde(deserialize_with = "options::types")]
    pub input_types: Vec<(String, ElementType)>,
    /// Outputs that get another element type by a Convert, so that no other layer changes ([`Model::convert_output`]).
    #[serde(deserialize_with = "options::types")]
    pub output_types: Vec<(String, ElementType)>,
    /// New layouts of inputs, with the computation unchanged.
    #[serde(deserialize_with = "options::layouts")]
    pub input_layouts: Vec<(String, LayoutChange)>,
    /// New layouts of outputs, with the computation unchanged.
    #[serde(deserialize_with = "options::layouts")]
    pub output_layouts: Vec<(String, LayoutChange)>,
    /// The mapping of element types in the whole model, including attributes that name types.
    #[serde(deserialize_with = "options::type_map")]
    pub types: TypeMap,
    /// The layers that keep their types.
    #[serde(deserialize_with = "crate::base::options::list")]
    pub keep: Vec<KeepPattern>,
    /// The only layers that change, without those that keep their types; all layers if it is empty.
    #[serde(deserialize_with = "crate::base::options::list")]
    pub only: Vec<KeepPattern>,
    /// True if the kept layers also get precision marks, so that OpenVINO keeps their types at run time.
    pub mark_keeps: bool,
    /// True if inputs and outputs keep their types.
    pub keep_io: bool,
    /// The storage of constants; `None` leaves it unchanged.
    #[serde(deserialize_with = "options::storage")]
    pub storage: Option<Storage>,
    /// The method of quantizing weights; `None` leaves them unchanged.
    #[serde(deserialize_with = "options::quantize")]
    pub quantize: Option<Request>,
    /// The maximum relative error of a constant's values; `None` for no limit.
    pub max_error: Option<f64>,
    /// The release that must be able to read the model: [`Model::retarget`].
    pub target: Option<Release>,
    /// The device whose plugin of that release must compile the model; `None` is the CPU.
    pub device: Option<Device>,
    /// The values that replace those of all constants; `None` keeps them.
    #[serde(rename = "strip_weights")]
    pub strip: Option<strip::Values>,
    /// True if only the id and the types of each new Convert are reported, which saves time and memory. A Convert of a
    /// constant that loses values is always reported with name, source and reason.
    #[serde(skip)]
    pub is_brief: bool,
}

/// Selection of the Converts that a conversion removes. Each ConvertPromoteTypes is replaced by Converts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unneeded {
    /// No Convert is removed. Each ConvertPromoteTypes becomes two Converts, as in OpenVINO's own pass.
    Kept,
    /// Converts to the type that a tensor already has. If only the precision of the
    /// model changes, fewer are removed. Promotions are then kept unless a layer would get inputs of two types, and
    /// Converts are removed only where types changed.
    #[default]
    Noops,
    /// Every Convert whose result another tensor provably contains.
    Redundant,
}

/// Result of a conversion.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Converted {
    /// All changes, in order. A Convert that is inserted and later removed is listed twice.
    pub changes: Vec<Change>,
    /// Warnings and notes of the reader and of the conversion.
    pub found: Vec<Diagnostic>,
    /// The number of replaced ConvertPromoteTypes, including those in bodies.
    pub promotions_replaced: usize,
    /// The number of ConvertPromoteTypes that were kept, because their result type is unknown before run time.
    pub promotions_left: usize,
    /// The inputs and outputs whose shape differs from the file, if shapes were set.
    pub reshaped: Vec<Reshaped>,
    /// The number of Transposes that were inserted for new layouts of inputs and outputs.
    pub transposes: usize,
    /// True if declared types and shapes in the file are outdated, so that the model should be written with
    /// [`refresh_ports`](crate::xml::WriteOptions::refresh_ports).
    pub refresh_ports: bool,
    /// The changes for the target release, if there is one.
    pub retargeted: Option<Retargeted>,
    /// True if the plugin of the target release has no findings either.
    pub is_compiled: bool,
    /// The effect on constants, if their storage or their types change.
    pub stored: Option<Plan>,
    /// The effect on weights, if they are quantized.
    pub quantized: Option<QuantizationPlan>,
    /// The number of constants whose values were replaced, if [`Conversion::strip`] was set.
    pub stripped: Option<strip::Stripped>,
    /// Risks of the new types, for layers that do not keep their types.
    pub risks: Vec<Risk>,
    /// The kept layers that got a precision mark.
    pub marked: Vec<LayerRef>,
    /// The values in the metadata of the model that were added, removed or replaced.
    pub metadata: Vec<InfoChange>,
}

/// Reason why a model was not converted.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum ConvertError {
    /// The model has errors, or the request is impossible. Contains all findings, also warnings and notes.
    #[error("{}", .0.iter().filter(|it| it.is_error()).map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Refused(Vec<Diagnostic>),
    /// A named input or output cannot be changed.
    #[error(transparent)]
    Interface(#[from] InterfaceError),
    /// A pattern of layers to keep matches none.
    #[error(transparent)]
    Keep(KeepError),
    /// A pattern of the only layers to change matches none.
    #[error(transparent)]
    Only(KeepError),
    /// The model has errors with its new types.
    #[error("with these types, {}", .0.iter().map(|error| error.message.to_string()).collect::<Vec<_>>().join("; "))]
    IllTyped(Vec<Diagnostic>),
    /// The edits are impossible, because the weights are missing or the IR version has no precision marks.
    #[error(transparent)]
    Edit(#[from] EditError),
    /// A pass failed, which is a bug in Typelift.
    #[error("pass {pass} left a damaged graph: {error}")]
    Pass {
        /// The name of the pass.
        pass: &'static str,
        /// The error of the pass.
        error: PassError,
    },
}

impl Conversion {
    /// Converts a model.
    ///
    /// # Errors
    /// [`ConvertError`]: the model may be partly changed then, and must not be used.
    pub fn run(&self, model: &mut Model) -> Result<Converted, ConvertError> {
        self.run_after(model, Vec::new())
    }

    /// Converts a model after a reader that goes on after mistakes. `found` are the reader's findings, which the result
    /// repeats before those of the conversion.
    ///
    /// # Errors
    /// [`ConvertError`]: the model may be partly changed then, and must not be used.
    pub fn run_after(&self, model: &mut Model, mut found: Vec<Diagnostic>) -> Result<Converted, ConvertError> {
        let (interface, version, rt_info) = (model.interface_types(), model.version(), model.graph().rt_info.clone());
        let promotions_before = promotions(model.graph());
        let (mut changes, mut transposes) = self.infer(model, &mut found)?;
        let refresh_ports = self.changes_interface() || !self.types.is_empty() || !changes.is_empty();
        let is_aligned = !changes.is_empty();
        let mut kept = Kept::find(model, &self.keep).map_err(ConvertError::Keep)?;
        kept.restrict(model, &self.only).map_err(ConvertError::Only)?;
        if self.lowers_promotions() {
            changes.extend(self.lower(model, promotions_before)?);
            if is_aligned && promotions(model.graph()) < promotions_before {
                found.extend(crate::infer(model).into_iter().filter(Diagnostic::is_error));
                refuse_errors(&mut found)?;
            }
        }
        let risks = self.risks(model, &kept);
        let marked = self.mark(model, &kept, &mut changes)?;
        let mut stored = None;
        changes.extend(self.retype(model, &kept, &mut stored, &mut found)?);
        for (name, element_type) in &self.output_types {
            let found = model.ends_matching(End::Output, name)?;
            changes.extend(model.convert_outputs(&found, *element_type)?);
        }
        for (name, layout) in &self.output_layouts {
            for name in model.ends_named(End::Output, name)? {
                transposes += usize::from(model.change_output_layout(&name, layout)?);
            }
        }
        let quantize = |request| self.quantize(request, &kept, model, &mut found, &mut changes);
        let quantized = self.quantize.as_ref().map(quantize).transpose()?;
        if let Some(storage) = &self.storage {
            let plan = self.store(storage.plan(model, kept), model, &mut found, &mut changes)?;
            stored = Some(stored.map_or_else(|| plan.clone(), |types: Plan| types.and(&plan)));
        }
        let refresh_ports = refresh_ports || model.version() > version;
        let retargeted = self.target.map(|target| model.retarget(target)).transpose();
        let retargeted = retargeted.map_err(|refused| refusal(&mut found, refused))?;
        let mut is_compiled = true;
        if let Some(done) = &retargeted {
            found.extend(done.found.iter().cloned());
            changes.extend(self.tidy_after(model, done)?);
            let of_plugin = check::check_device(model, self.device.unwrap_or(Device::Cpu), self.target, true);
            is_compiled = of_plugin.is_empty();
            let refused: Vec<_> = of_plugin.into_iter().filter(Diagnostic::is_error).collect();
            if !refused.is_empty() {
                return Err(refusal(&mut found, refused));
            }
        }
        if refresh_ports {
            note_retyped(model.retyped_since(&interface), &mut changes);
        }
        note_narrowings(model, &mut changes);
        let reshapes = !self.set_shapes.is_empty() || self.changes_layouts();
        let reshaped = if reshapes { model.reshaped_since(&interface) } else { Vec::new() };
        if !self.set_types.is_empty() || !self.set_shapes.is_empty() {
            found.extend(model.narrowed());
            found.extend(model.hard_coded_shapes());
            found.extend(check::left_tables(model));
        }
        let stripped = self.strip.map(|values| strip::strip_weights(model, values)).transpose()?;
        let promotions_after = if promotions_before == 0 { 0 } else { promotions(model.graph()) };
        Ok(Converted {
            stripped,
            changes,
            found,
            promotions_replaced: promotions_before.saturating_sub(promotions_after),
            promotions_left: if self.lowers_promotions() { promotions_after } else { 0 },
            reshaped,
            transposes,
            refresh_ports,
            retargeted,
            is_compiled,
            stored,
            quantized,
            risks,
            marked,
            metadata: model.info_since(rt_info.as_deref()),
        })
    }

    /// Changes the types, shapes and layouts of inputs and the types of constants, infers all types, and makes types
    /// agree. Returns the changes, and the number of new Transposes.
    fn infer(&self, model: &mut Model, found: &mut Vec<Diagnostic>) -> Result<(Vec<Change>, usize), ConvertError> {
        let (changed, mut changes) = self.change_inputs(model)?;
        let mut transposes = 0;
        for (name, layout) in &self.input_layouts {
            for name in model.ends_named(End::Input, name)? {
                transposes += usize::from(model.change_input_layout(&name, layout)?);
            }
        }
        let aligned = passes::infer_aligned(model, self.align);
        let (mut inferred, aligned) = aligned.map_err(|error| ConvertError::Pass { pass: "align", error })?;
        if found.iter().any(Diagnostic::is_error) {
            // The reader already reported inputs that it could not connect.
            inferred.retain(|diagnostic| diagnostic.code != Code::WrongInputCount);
        }
        if let Some(target) = self.target {
            check::forgive_removed(model, target, &mut inferred);
        }
        trace_changes(model.graph(), &changed, &mut inferred);
        if !self.set_shapes.is_empty() {
            help_to_adapt(model, &changed, &mut inferred);
        }
        found.append(&mut inferred);
        changes.extend(aligned);
        refuse_errors(found)?;
        Ok((changes, transposes))
    }

    /// Changes the types and shapes of inputs and constants. Returns the changed inputs, and the changes.
    fn change_inputs(&self, model: &mut Model) -> Result<(Vec<LayerId>, Vec<Change>), InterfaceError> {
        let names_constant =
            |(name, _): &(String, _)| model.find_input(name).is_err() && model.find_constant(name).is_ok();
        let (constants, inputs): (Vec<_>, Vec<_>) = self.set_types.iter().cloned().partition(names_constant);
        let changed = model.set_inputs(&inputs, &self.set_shapes)?;
        let mut changes = Vec::new();
        for (name, element_type) in constants {
            changes.extend(model.convert_constant(&name, element_type)?);
        }
        for (name, element_type) in &self.input_types {
            let found = model.ends_matching(End::Input, name)?;
            changes.extend(model.convert_inputs(&found, *element_type)?);
        }
        Ok((changed, changes))
    }

    pub(crate) fn changes_interface(&self) -> bool {
        let retyped = [&self.set_types, &self.input_types, &self.output_types];
        !self.set_shapes.is_empty() || self.changes_layouts() || retyped.iter().any(|types| !types.is_empty())
    }

    fn changes_layouts(&self) -> bool {
        !self.input_layouts.is_empty() || !self.output_layouts.is_empty()
    }

    pub(crate) fn lowers_promotions(&self) -> bool {
        let keeps_precision = self.storage.is_none() && self.quantize.is_none() && self.types.is_empty();
        self.unneeded != Unneeded::Noops || keeps_precision && !self.mark_keeps
    }

    /// Replaces each ConvertPromoteTypes of a typed model, and removes Converts.
    fn lower(&self, model: &mut Model, promotions_before: usize) -> Result<Vec<Change>, ConvertError> {
        let (lower, tidy) = self.passes();
        let mut changes = self.pass(model, lower)?;
        // OpenVINO's reader makes tensor names unique, and so does this step. Models without a ConvertPromoteTypes are
        // left as they are.
        if self.unneeded != Unneeded::Kept || promotions(model.graph()) < promotions_before {
            changes.extend(self.pass(model, tidy)?);
        }
        Ok(changes)
    }

    fn risks(&self, model: &Model, kept: &Kept) -> Vec<Risk> {
        let stored = match &self.storage {
            Some(Storage::Compress { to, .. }) => Some(*to),
            _ => None,
        };
        let narrower = self.types.iter().filter(|(from, to)| to.bits() < from.bits()).map(|(_, to)| to);
        let types: BTreeSet<_> = narrower.chain(stored).collect();
        let risks = types.into_iter().flat_map(|to| precision::risks(model, to));
        risks.filter(|risk| !risk.keep.iter().all(|layer| kept.covers(&layer.place, layer.id))).collect()
    }

    fn mark(&self, model: &mut Model, kept: &Kept, changes: &mut Vec<Change>) -> Result<Vec<LayerRef>, EditError> {
        if !self.mark_keeps || kept.is_empty() {
            return Ok(Vec::new());
        }
        changes.extend(model.upgrade()?);
        precision::mark(model, kept, self.target.map_or(Spelling::Both, Spelling::of))
    }

    /// Changes the element types of an inferred model, and removes Converts without effect. `stored` receives the
    /// effect on constants.
    fn retype(
        &self,
        model: &mut Model,
        kept: &Kept,
        stored: &mut Option<Plan>,
        found: &mut Vec<Diagnostic>,
    ) -> Result<Vec<Change>, ConvertError> {
        let retyping = Retyping { types: self.types.clone(), kept: kept.clone(), keep_io: self.keep_io };
        let planned = retyping.plan_and_lower(model, !self.is_brief);
        let (plan, mut changes) =
            planned.map_err(|error| ConvertError::Pass { pass: LOWER_WITHOUT_NOOPS.name, error })?;
        if plan.is_empty() {
            return Ok(Vec::new());
        }
        self.refuse_beyond(stored.insert(plan.constants(model)), model, found)?;
        let retyped = plan.apply(model);
        changes.extend(retyped.map_err(|error| match error {
            PassError::Edit(error) => ConvertError::Edit(error),
            PassError::IllTyped(errors) => ConvertError::IllTyped(errors),
            error => ConvertError::Pass { pass: "change-types", error },
        })?);
        changes.extend(match self.unneeded {
            Unneeded::Kept => Vec::new(),
            Unneeded::Noops => self.pass(model, TIDY_CHANGED_TYPES)?,
            Unneeded::Redundant => self.pass(model, ELIMINATE_CONVERTS)?,
        });
        Ok(changes)
    }

    /// Changes the storage of constants according to the plan.
    fn store(
        &self,
        plan: Plan,
        model: &mut Model,
        found: &mut Vec<Diagnostic>,
        changes: &mut Vec<Change>,
    ) -> Result<Plan, ConvertError> {
        let compresses = matches!(self.storage, Some(Storage::Compress { .. }));
        if let Some(target) = self.target.filter(|&target| compresses && Release::of_format(IrVersion::V11) > target) {
            let message =
                message!("OpenVINO {} reads IR version 10, which has no marks for compressed constants"; Text(target));
            let error = Diagnostic::new(Code::NewerThanTarget, message).help("compress for OpenVINO 2022.1 or later");
            return Err(refusal(found, vec![error]));
        }
        self.refuse_beyond(&plan, model, found)?;
        found.extend(plan.warnings(model));
        if plan.needs_marks() {
            changes.extend(model.upgrade()?);
        }
        let applied = plan.apply(model).map_err(PassError::from);
        applied.map_err(|error| ConvertError::Pass { pass: "store-constants", error })?;
        if matches!(self.storage, Some(Storage::Dequantize(_))) {
            precision::quantize::forget(model)?;
        }
        Ok(plan)
    }

    fn quantize(
        &self,
        request: &Request,
        kept: &Kept,
        model: &mut Model,
        found: &mut Vec<Diagnostic>,
        changes: &mut Vec<Change>,
    ) -> Result<QuantizationPlan, ConvertError> {
        let plan = request.plan(model, kept);
        let mut plan = plan.map_err(|errors| refusal(found, errors))?;
        if !self.is_brief || self.max_error.is_some() {
            plan.audit(model);
        }
        let beyond = self.max_error.map(|limit| plan.beyond(model, limit)).unwrap_or_default();
        if !beyond.is_empty() {
            return Err(refusal(found, beyond));
        }
        if plan.changed().next().is_some() {
            changes.extend(model.upgrade()?);
        }
        plan.apply(model)?;
        Ok(plan)
    }

    fn refuse_beyond(&self, plan: &Plan, model: &Model, found: &mut Vec<Diagnostic>) -> Result<(), ConvertError> {
        let beyond = self.max_error.map(|limit| plan.beyond(model, limit)).unwrap_or_default();
        if beyond.is_empty() { Ok(()) } else { Err(refusal(found, beyond)) }
    }

    /// Removes unnecessary Converts among those that were added for a release.
    fn tidy_after(&self, model: &mut Model, done: &Retargeted) -> Result<Vec<Change>, ConvertError> {
        if self.unneeded == Unneeded::Kept || done.applied.is_empty() {
            return Ok(Vec::new());
        }
        self.pass(model, self.passes().1)
    }

    fn pass(&self, model: &mut Model, pass: Pass) -> Result<Vec<Change>, ConvertError> {
        let name = pass.name;
        let done = passes::run_with(model, pass, !self.is_brief);
        done.map_err(|error| ConvertError::Pass { pass: name, error })
    }

    fn passes(&self) -> (Pass, Pass) {
        match self.unneeded {
            Unneeded::Kept => (LOWER_PROMOTE_TYPES, UNIQUE_TENSOR_NAMES),
            Unneeded::Noops => (LOWER_WITHOUT_NOOPS, ELIMINATE_NOOP_CONVERTS),
            Unneeded::Redundant => (LOWER_WITHOUT_NOOPS, ELIMINATE_CONVERTS),
        }
    }
}

fn refusal(found: &mut Vec<Diagnostic>, mut errors: Vec<Diagnostic>) -> ConvertError {
    found.append(&mut errors);
    ConvertError::Refused(std::mem::take(found))
}

/// Adds to the first error the statements with which target shapes adapt to the new shapes of inputs, if there are any.
fn help_to_adapt(model: &Model, changed: &[LayerId], inferred: &mut [Diagnostic]) {
    let Some(first) = inferred.iter_mut().find(|finding| finding.is_error()) else { return };
    let mut statements = model.adapting_statements();
    if statements.is_empty() {
        return;
    }
    let inputs = changed.iter().filter_map(|&id| model.graph().layer(id));
    statements.extend(inputs.filter_map(|layer| {
        Some(format!("input {} : {}", Quoted::name(&model.end_name(layer)), layer.outputs().first()?))
    }));
    let statements = statements.iter().map(|statement| format!("`{statement}`")).collect::<Vec<_>>().join(", ");
    first.fixes.push(Fix::untried(FixAction::Advise(message!("make it adapt with the statements {}"; statements))));
}

fn refuse_errors(found: &mut Vec<Diagnostic>) -> Result<(), ConvertError> {
    match found.iter().any(Diagnostic::is_error) {
        true => Err(refusal(found, Vec::new())),
        false => Ok(()),
    }
}

fn is_retyped(change: &Change) -> bool {
    change.action == Action::Retyped && change.layer.place.is_model()
}

fn note_retyped(mut retyped: Vec<Change>, changes: &mut Vec<Change>) {
    let known: HashSet<_> = changes.iter().filter(|it| is_retyped(it)).map(|it| it.layer.id).collect();
    retyped.retain(|it| !known.contains(&it.layer.id));
    changes.append(&mut retyped);
}

fn note_narrowings(model: &Model, changes: &mut [Change]) {
    for change in changes.iter_mut().filter(|change| is_retyped(change)) {
        if let Some(narrowing) = model.narrowing(change.layer.id, [change.from, change.to]) {
            change.reason += &format!("; {narrowing}");
        }
    }
}

/// The number of ConvertPromoteTypes in a graph and its bodies, without unknown operations of this name.
fn promotions(graph: &Graph) -> usize {
    let (mut count, mut graphs) = (0, vec![graph]);
    while let Some(graph) = graphs.pop() {
        count += graph.unordered().filter(|layer| ops::kind(layer) == LayerKind::ConvertPromoteTypes).count();
        graphs.extend(graph.owners().flat_map(Layer::bodies).map(|body| &body.graph));
    }
    count
}
