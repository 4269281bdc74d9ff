//! Rewriting of a model for an older OpenVINO release.

mod bits;
mod facts;
mod order;
mod rules;
mod scatter;
mod slices;
mod version_10;

use half::{bf16, f16};
use serde::Serialize;
use typelift_promote::ElementType;

use crate::base::hash::HashMap;
use crate::check::{self, repeated_names};
use crate::edit::Edit;
use crate::edit::precision_marks::{Marks, Spelling};
use crate::findings::{Code, Diagnostic, LayerRef, Severity, Text, message};
use crate::model::graph::{EditError, Graph, IrVersion, Layer, LayerId, Model, NewLayer};
use crate::ops::{self, LayerKind, Release};
use crate::promotion::passes::{self, Change};
use crate::rewrite::{RewriteError, Rule, Site};

/// Changes that let an older release read a model.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Retargeted {
    /// Rules that were applied to replace operations which the release lacks.
    pub applied: Vec<Site>,
    /// Layers whose operation set was changed to one that the release has.
    pub versions: Vec<LayerRef>,
    /// Layers whose precision marks were spelled differently for the release.
    pub marks: Vec<LayerRef>,
    /// Layers that shared a name with another layer, and were renamed.
    pub names: Vec<LayerRef>,
    /// Attentions whose boolean mask became numbers, because the CPU plugin of the release refuses it: 0, and minus
    /// infinity where the mask is false.
    pub masks: Vec<LayerRef>,
    /// The new version of the format; `None` if it did not change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<IrVersion>,
    /// The Converts that replaced `ConvertPromoteTypes`.
    #[serde(skip)]
    pub lowered: Vec<Change>,
    /// Losses that the format of the release causes, as warnings and notes.
    #[serde(skip)]
    pub found: Vec<Diagnostic>,
}

impl Model {
    /// Rewrites the model and its bodies so that an OpenVINO release can read it and computes the same. Later
    /// revisions of operations become earlier ones, and operations that the release lacks are replaced. For releases
    /// before 2022.1 the IR version becomes 10. Types and shapes must be [inferred](crate::infer()), and are inferred
    /// on return.
    ///
    /// # Errors
    /// A finding for everything that the release does not support and that cannot be rewritten, with the reason.
    /// [`Checking`](crate::Checking) with a target reports the same findings. The model is unchanged.
    ///
    /// # Examples
    /// ```
    /// use typelift::Model;
    /// let mut model = Model::from_text("
    ///     x = Parameter : f32[2,3]
    ///     y = Softmax-8(x) {axis=-1}
    ///     r = Result(y)
    /// ")?;
    /// let done = model.retarget("2021.4".parse()?).map_err(|found| found[0].to_string())?;
    /// assert_eq!(done.applied[0].to_string(), "softmax-8-to-1 at 1 `y`");
    /// assert_eq!(model.version().number(), 10);
    /// assert!(model.to_string().contains("1 y = SoftMax(0) {axis=1} : f32[2,3]"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn retarget(&mut self, target: Release) -> Result<Retargeted, Vec<Diagnostic>> {
        let before = self.clone();
        retarget(self, target).inspect_err(|_| *self = before)
    }
}

fn retarget(model: &mut Model, target: Release) -> Result<Retargeted, Vec<Diagnostic>> {
    let mut done = Retargeted::default();
    let has_promotions =
        model.walk().any(|(_, graph)| graph.layers().any(|layer| ops::kind(layer) == LayerKind::ConvertPromoteTypes));
    if first_release(LayerKind::ConvertPromoteTypes) > target && has_promotions {
        done.lowered = passes::run(model, passes::LOWER_WITHOUT_NOOPS).map_err(|error| refusal(target, &error))?;
    }
    let rules = rules::rules_for(target);
    let (report, skipped) = model.rewrite_where_possible(&rules).map_err(|error| refusal(target, &error))?;
    done.applied = report.applied;
    done.masks = number_masks(model, target).map_err(|error| refusal(target, &error))?;
    done.versions = set_versions(model, target);
    done.marks = spell_marks(model, target);
    done.found.extend(lost_marks(model, target));
    if target < Release::WITH_REPEATED_NAMES {
        done.names = separate_names(model);
    }
    if Release::of_format(model.version) > target {
        done.found.extend(version_10::write(model));
        done.format = Some(model.version);
    }
    constrain_text(model, target);
    let mut errors: Vec<_> = crate::infer(model).into_iter().filter(Diagnostic::is_error).collect();
    check::forgive_removed(model, target, &mut errors);
    errors.extend(check::unread(model, target));
    errors.extend(check::unknown_operations(model).into_iter().map(|found| {
        let note = message!("nothing says that OpenVINO {} has it: no operation set does"; Text(target));
        Diagnostic { severity: Severity::Error, ..found }.note(note)
    }));
    if errors.is_empty() {
        done.found.extend(check::legacy_types(model));
        return Ok(done);
    }
    for error in &mut errors {
        explain(error, model, &rules, &skipped);
    }
    Err(errors)
}

fn refusal(target: Release, error: &dyn std::fmt::Display) -> Vec<Diagnostic> {
    let message = message!("the model cannot be rewritten for OpenVINO {}: {}"; Text(target), Text(error));
    vec![Diagnostic::new(Code::NewerThanTarget, message)]
}

fn first_release(kind: LayerKind) -> Release {
    let rows = ops::all().filter(|row| row.kind == kind);
    rows.filter_map(Release::of_revision).min().unwrap_or(Release::OLDEST)
}

/// Edits layers of all graphs if `edit` returns a value for them. Returns these layers.
fn edit_layers<T>(
    model: &mut Model,
    choose: impl Fn(&Graph) -> Vec<(LayerId, T)>,
    verb: impl Fn(&mut Edit<'_>, LayerId, T) -> Result<(), EditError>,
) -> Vec<LayerRef> {
    let chosen: Vec<_> = model.walk().map(|(place, graph)| (place, choose(graph))).collect();
    let mut edited = Vec::new();
    for (place, layers) in chosen {
        let ids: Vec<_> = layers.iter().map(|(id, _)| *id).collect();
        let done = model.edit(|edit| {
            let mut graph = edit.at(&place)?;
            layers.into_iter().try_for_each(|(id, change)| verb(&mut graph, id, change))
        });
        // The edits cannot fail, because the layers exist.
        debug_assert!(done.is_ok(), "{done:?}");
        let layers = ids.into_iter().filter_map(|id| model.graph_at(&place)?.layer(id));
        edited.extend(layers.map(|layer| LayerRef::of(&place, layer)));
    }
    edited
}

/// Changes the operation set of each layer that names one which the release lacks, to the first with the same
/// revision.
fn set_versions(model: &mut Model, target: Release) -> Vec<LayerRef> {
    let choose = |graph: &Graph| {
        let layers = graph.layers();
        let layers =
            layers.filter_map(|layer| Some((layer.id(), (layer.ty().to_owned(), known_version(layer, target)?))));
        layers.collect()
    };
    edit_layers(model, choose, |graph, id, (ty, version)| graph.set_operation(id, &ty, &version))
}

fn spell_marks(model: &mut Model, target: Release) -> Vec<LayerRef> {
    let (version, wanted) = (model.version, Spelling::of(target));
    let choose = |graph: &Graph| {
        let marks = graph.layers().map(|layer| (layer.id(), Marks::of(layer, version)));
        let is_other = |marks: &Marks| marks.spelling.is_some_and(|it| it != wanted && it != Spelling::Both);
        marks.filter(|(_, marks)| is_other(marks)).map(|(id, marks)| (id, marks.spelled(wanted))).collect()
    };
    edit_layers(model, choose, |graph, id, marks| graph.set_marks(id, &marks))
}

/// Replaces boolean masks that the CPU plugin of the release refuses by numbers that are added to the scores: 0, and
/// minus infinity where the mask is false. A row without any true value is NaN with both.
fn number_masks(model: &mut Model, target: Release) -> Result<Vec<LayerRef>, EditError> {
    let found = check::boolean_masks(model, target);
    for (place, attentions) in &found {
        model.edit(|edit| number_masks_of(&mut edit.at(place)?, attentions))?;
    }
    let masked = found.iter().filter_map(|(place, attentions)| Some((place, model.graph_at(place)?, attentions)));
    let masked = masked.flat_map(|(place, graph, attentions)| {
        attentions.iter().filter_map(|&id| Some(LayerRef::of(place, graph.layer(id)?))).collect::<Vec<_>>()
    });
    Ok(masked.collect())
}

fn number_masks_of(graph: &mut Edit<'_>, attentions: &[LayerId]) -> Result<(), EditError> {
    let mut numbered = HashMap::default();
    for &attention in attentions {
        let inputs = graph.producers(attention);
        let (Some(Some(query)), Some(&Some(mask))) = (inputs.first(), inputs.get(3)) else { continue };
        let Some(ty) = graph.output(*query).map(|port| port.element_type()) else { continue };
        let Some(hidden) = minus_infinity(ty) else { continue };
        let known = numbered.get(&(mask, ty)).copied();
        let numbers = match known {
            Some(numbers) => numbers,
            None => {
                let zero = graph.constant(ty, &[], &vec![0; hidden.len()])?;
                let hidden = graph.constant(ty, &[], &hidden)?;
                let name = graph.layer(mask.layer).map(|layer| format!("{}/numbers", layer.name())).unwrap_or_default();
                let select = NewLayer::new("Select", "opset1").with_attribute("auto_broadcast", "numpy");
                let select = select.named(&graph.unused_name(name));
                graph.add(select, &[mask, zero, hidden])?.output(0)
            }
        };
        numbered.insert((mask, ty), numbers);
        graph.connect(numbers, attention.input(3))?;
    }
    Ok(())
}

fn minus_infinity(ty: ElementType) -> Option<Vec<u8>> {
    Some(match ty {
        ElementType::F16 => f16::NEG_INFINITY.to_le_bytes().to_vec(),
        ElementType::Bf16 => bf16::NEG_INFINITY.to_le_bytes().to_vec(),
        ElementType::F32 => f32::NEG_INFINITY.to_le_bytes().to_vec(),
        ElementType::F64 => f64::NEG_INFINITY.to_le_bytes().to_vec(),
        _ => return None,
    })
}

fn lost_marks(model: &Model, target: Release) -> Option<Diagnostic> {
    if target >= Release::WITH_PRECISE_LAYERS || Release::of_format(model.version) > target {
        return None;
    }
    let layers = model.walk().flat_map(|(_, graph)| graph.layers());
    let marked: Vec<_> = layers.filter(|layer| Marks::of(layer, model.version).keeps_precision()).collect();
    let first = marked.first()?;
    let count = if marked.len() == 1 { "1 layer".into() } else { message!("{} layers"; marked.len()) };
    let message = message!("OpenVINO {} ignores the precision marks of {}"; Text(target), count);
    let place = first.span.unwrap_or_default();
    let place = crate::text::xml::locate(&model.source, place, "layer", "name");
    let found = Diagnostic::new(Code::LostMark, message).at(place, "the first of them");
    Some(found.help("do not request a narrower precision from its plugins, or use a release from 2024.0 on"))
}

/// Gives each layer a name that is unique in its graph.
fn separate_names(model: &mut Model) -> Vec<LayerRef> {
    let choose = |graph: &Graph| {
        let layers = repeated_names(graph).into_iter();
        layers.map(|layer| (layer.id(), layer.name().to_owned())).collect()
    };
    edit_layers(model, choose, |graph, id, name| {
        let name = graph.unused_name(name);
        graph.set_name(id, &name)
    })
}

/// The operation set to write for a layer, if the release lacks its own.
fn known_version(layer: &Layer, target: Release) -> Option<String> {
    let row = layer.operation()?;
    let opset = layer.version().strip_prefix("opset")?.parse().ok()?;
    let reads = |&opset: &u8| Release::of_operation(row, opset).is_some_and(|first| first <= target);
    if reads(&opset) {
        return None;
    }
    row.opsets().find(reads).map(|opset| format!("opset{opset}"))
}

fn constrain_text(model: &mut Model, target: Release) {
    model.constraints.port_types |= target < Release::WITH_OPEN_TYPES;
    model.constraints.fixed_dims |= model.version == IrVersion::V10 && target < Release::WITH_OPEN_SHAPES;
    model.constraints.opening |= target < Release::WITH_ANY_OPENING;
}

fn explain(error: &mut Diagnostic, model: &Model, rules: &[Rule], skipped: &[RewriteError]) {
    let Some(at) = error.layer.clone().filter(|_| error.code == Code::NewerThanTarget) else { return };
    let refused: Vec<_> = skipped.iter().filter_map(|error| error.at(&at)).collect();
    if !refused.is_empty() {
        error.notes.extend(
            refused.into_iter().map(|(rule, reason)| message!("rule {} cannot be applied: {}"; rule, Text(reason))),
        );
        return;
    }
    let Some(graph) = model.graph_at(&at.place) else { return };
    let Some(layer) = graph.layer(at.id) else { return };
    // If several rules match partly, the one with the largest matched part gives the reason.
    let misses = rules.iter().filter_map(|rule| Some((rule.miss(graph, model.weights(), layer)?, rule)));
    let miss = misses.filter(|((progress, _), _)| *progress > 0).max_by_key(|((progress, _), _)| *progress);
    error
        .notes
        .extend(miss.map(|((_, reason), rule)| message!("rule {} does not match: {}"; rule.name(), Text(reason))));
}
