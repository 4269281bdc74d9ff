//! Quantization plan: the mode of each constant, with the reason.

use std::fmt;
use std::sync::Arc;

use serde::Deserialize;
use typelift_promote::ElementType;

use super::loss::QuantizationLoss;
use super::mode::{Backup, Fallback, Group, Mode};
use super::order;
use super::select::{self, Role, Weight};
use super::source::{KnownScales, Source};
use crate::base::hash::HashMap;
use crate::findings::{Code, Diagnostic, Fix, LayerRef, Message, Text, message, short};
use crate::model::graph::{Graph, LayerId, Model, Place};
use crate::model::weights::{Weights, byte_size};
use crate::ops::values::conversion::Stored;
use crate::precision::Kept;
use crate::text::xml;

/// Settings for quantizing the weights of a model. The defaults are those of nncf.
///
/// # Examples
/// ```
/// use typelift::precision::quantize::{Group, Mode, Quantization};
/// let mut quantization = Quantization::to(Mode::Int4Sym);
/// quantization.group = Some(Group::Of(64));
/// assert_eq!(quantization.check(), Ok(()));
/// quantization.ratio = Some(1.5);
/// assert!(quantization.check().is_err());
/// ```
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Quantization {
    /// The main mode: for the weights of MatMul layers, or for all weights if it is an 8-bit mode.
    pub mode: Mode,
    /// The set of values that share a scale; by default 128 values of a channel, or the whole channel in 8-bit modes.
    #[serde(rename = "group_size")]
    pub group: Option<Group>,
    /// The fraction of MatMul weights that get the main mode, from 0 to 1. The others get the backup mode.
    pub ratio: Option<f64>,
    /// True if the last MatMul and the tables of Gather layers get the main mode too.
    pub all_layers: bool,
    /// The mode of all other weights; by default int8_asym, or the similar 8-bit mode for a floating-point mode.
    pub backup: Option<Backup>,
    /// The treatment of constants whose channel size is not a multiple of the group size.
    #[serde(rename = "group_fallback")]
    pub fallback: Fallback,
}

impl Default for Quantization {
    /// The settings for nncf's default mode.
    fn default() -> Self {
        Self::to(Mode::Int8Asym)
    }
}

impl Quantization {
    /// Returns nncf's default settings for a mode.
    pub fn to(mode: Mode) -> Self {
        Self { mode, group: None, ratio: None, all_layers: false, backup: None, fallback: Fallback::default() }
    }

    /// Checks that the settings can be combined, as nncf does.
    ///
    /// # Errors
    /// A sentence about the invalid setting.
    pub fn check(&self) -> Result<(), String> {
        let mode = self.mode;
        let given = [
            (self.group.is_some_and(|group| group != Group::Channel), "a group size"),
            (self.ratio.is_some_and(|ratio| ratio != 1.0), "a ratio"),
            (self.all_layers, "all layers"),
            (self.backup.is_some(), "a backup mode"),
        ];
        let is_microscaling = mode.has_powers_of_two();
        if let Some((_, what)) = given.iter().find(|(is_given, _)| *is_given && mode.is_int8()) {
            return Err(format!("{mode} always uses one scale per channel, so {what} cannot be set"));
        }
        match self.ratio {
            Some(ratio) if !(0.0..=1.0).contains(&ratio) => Err(format!("the ratio is {ratio}, not between 0 and 1")),
            _ if is_microscaling && self.group.is_some_and(|group| group != Group::Of(32)) => {
                Err(format!("the group size of {mode} must be 32"))
            }
            _ if is_microscaling && self.fallback == Fallback::Adjust => {
                Err(format!("the group size of {mode} is always 32 and cannot be adjusted"))
            }
            _ => Ok(()),
        }
    }

    pub(super) fn group(&self) -> Group {
        self.group.unwrap_or(self.mode.default_group())
    }

    pub(super) fn backup(&self) -> Backup {
        self.backup.unwrap_or(Backup::Mode(self.mode.default_backup()))
    }

    pub(super) fn ratio(&self) -> f64 {
        self.ratio.filter(|&ratio| ratio != 0.0).unwrap_or(1.0)
    }

    fn backup_for(&self, from: ElementType) -> Option<(Mode, Group)> {
        match self.backup() {
            Backup::Mode(mode) if takes(mode, from) => Some(match mode {
                Mode::Fp8 => (mode, self.group()),
                _ => (mode, mode.default_group()),
            }),
            _ => None,
        }
    }
}

fn takes(mode: Mode, from: ElementType) -> bool {
    !(mode.is_int8() && from.bits() <= 8)
}

/// Limit on the scales that a plan keeps in memory, of 8 bytes each.
const MOST_SCALES: usize = 1 << 22;

/// Rule by which the mode of a constant was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Rule {
    /// The constant gets the requested mode.
    Main,
    /// The constant belongs to the last MatMul, which gets the backup mode.
    LastLayer,
    /// The constant is a table of a Gather, which gets the backup mode.
    Embedding,
    /// The constant belongs to a convolution, which gets the backup mode.
    Convolution,
    /// The permitted fraction of weights already has the main mode.
    Ratio,
    /// The channel size is not a multiple of the group size.
    GroupSize,
    /// The plan file sets the mode.
    Plan,
}

impl Rule {
    /// Returns the name of the rule in tables and JSON, such as `last-layer`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Main => "main",
            Self::LastLayer => "last-layer",
            Self::Embedding => "embedding",
            Self::Convolution => "convolution",
            Self::Ratio => "ratio",
            Self::GroupSize => "group-size",
            Self::Plan => "plan",
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Line of a plan file, for one constant.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Choice {
    /// The name of the constant.
    pub constant: String,
    /// The mode and the group; `None` if the constant is not quantized.
    pub to: Option<(Mode, Group)>,
}

/// Request for quantization: settings, or the lines of a plan file.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Request {
    /// nncf's rules choose the mode of each constant, with these settings.
    Settings(Quantization),
    /// The plan file sets mode and group of each constant.
    Plan(Vec<Choice>),
}

impl Request {
    /// Creates the plan for a model. The weights of layers in `kept` are not quantized.
    ///
    /// # Errors
    /// The errors of [`QuantizationPlan::of`], and a finding for each name of a plan file that no constant has.
    pub fn plan(&self, model: &Model, kept: &Kept) -> Result<QuantizationPlan, Vec<Diagnostic>> {
        match self {
            Self::Settings(settings) => QuantizationPlan::of(model, settings, kept),
            Self::Plan(choices) => {
                let mut plan = QuantizationPlan::of_choices(model, choices)?;
                let constants = plan.constants.iter_mut().filter(|constant| is_kept(&constant.weight, kept));
                constants.for_each(|constant| constant.choose(None));
                Ok(plan)
            }
        }
    }
}

/// Plan for one constant.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct QuantizedConstant {
    /// The layer of the constant.
    pub layer: LayerId,
    /// The name.
    pub name: String,
    /// The element type of its values now.
    pub from: ElementType,
    /// The dimensions.
    pub dims: Vec<usize>,
    /// The mode and the group; `None` if the constant is not quantized.
    pub to: Option<(Mode, Group)>,
    /// The reason.
    pub rule: Rule,
    /// The first layer that uses it.
    pub consumer: String,
    /// The number of bytes of its values.
    pub bytes_before: u64,
    /// The number of bytes of its codes, scales and zero points.
    pub bytes_after: u64,
    /// The loss of its values, if it was computed.
    pub loss: Option<QuantizationLoss>,
    pub(super) weight: Weight,
    /// The scales for the mode and the group, if they are known.
    pub(super) scales: KnownScales,
}

/// Plan for the weights of a model. Constants in bodies are not quantized, as in nncf.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct QuantizationPlan {
    /// The constants, in the order in which nncf visits the layers that use them.
    pub constants: Vec<QuantizedConstant>,
    /// The settings of the plan; `None` for a plan from a file.
    pub settings: Option<Quantization>,
    /// New names for layers that share a name with an earlier layer.
    pub renamed: Vec<(LayerId, String)>,
    /// The layers whose weights the caller keeps.
    pub ignored: Vec<String>,
}

fn is_kept(weight: &Weight, kept: &Kept) -> bool {
    let place = Place::default();
    kept.covers(&place, weight.constant) || kept.names(&place, weight.consumer)
}

impl QuantizationPlan {
    /// Creates the plan for a model whose types and shapes are [inferred](crate::infer()). The weights of layers in
    /// `kept` are not quantized. Every value is read once, to find infinite ones.
    ///
    /// # Errors
    /// A finding for each constant that cannot be quantized with these settings, with a fix.
    pub fn of(model: &Model, settings: &Quantization, kept: &Kept) -> Result<Self, Vec<Diagnostic>> {
        settings.check().map_err(|reason| vec![Diagnostic::new(Code::CannotQuantize, Text(reason))])?;
        let (names, mut ignored) = (UniqueNames::of(model.graph()), Vec::new());
        let found = select::find(model.graph(), |weight: &Weight| {
            let is_kept = is_kept(weight, kept);
            ignored.extend(is_kept.then(|| names.name(weight.consumer)));
            is_kept || !takes(settings.mode, weight.stored.element_type)
        });
        let weights = Arc::new(model.weights().clone());
        let choices = Choices::of(settings, &found, &weights)?;
        choices.check_groups(model, settings)?;
        let choices = choices.list;
        let constants = found.list.into_iter().zip(choices);
        let constants =
            constants.map(|(weight, (to, rule))| QuantizedConstant::new(&names, weight, to, rule)).collect();
        let settings = Some(settings.clone());
        Self { constants, settings, renamed: names.renamed, ignored }.checked(model, &weights)
    }

    /// The plan from the lines of a plan file. Constants that are not in the file are not quantized.
    pub(crate) fn of_choices(model: &Model, choices: &[Choice]) -> Result<Self, Vec<Diagnostic>> {
        let names = UniqueNames::of(model.graph());
        let found = select::find(model.graph(), |_| false).list.into_iter();
        let mut constants: Vec<_> =
            found.map(|weight| QuantizedConstant::new(&names, weight, None, Rule::Plan)).collect();
        let mut errors = Vec::new();
        for choice in choices {
            match constants.iter_mut().find(|constant| constant.name == choice.constant) {
                Some(constant) => constant.choose(choice.to),
                None => {
                    let names = constants.iter().map(|constant| constant.name.as_str());
                    let near = crate::base::names::near(&choice.constant, names);
                    let near = near.map(|near| message!("; did you mean `{}`?"; near)).unwrap_or_default();
                    let message = message!("no layer has weights called `{}`{}"; choice.constant, near);
                    errors.push(Diagnostic::new(Code::CannotQuantize, message));
                }
            }
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        for QuantizedConstant { weight, to, .. } in &constants {
            if let Some((mode, group)) = to.filter(|&(_, group)| weight.shapes(group).is_none()) {
                errors.push(indivisible(model, weight, mode, group, "write another group size in the plan".into()));
            }
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        Self { constants, settings: None, renamed: names.renamed, ignored: Vec::new() }
            .checked(model, &Arc::new(model.weights().clone()))
    }

    /// The plan itself, if all values that it quantizes can be read and are finite. The scales are kept for the time
    /// when codes are computed, up to a limit.
    fn checked(self, model: &Model, weights: &Arc<Weights>) -> Result<Self, Vec<Diagnostic>> {
        let (mut errors, mut room) = (Vec::new(), MOST_SCALES);
        for constant in self.changed() {
            let Some(source) = constant.source(weights) else { continue };
            let message = match source.reserve().map(|()| source.bounds()) {
                Err(reason) => message!("`{}` cannot be quantized: {}"; constant.name, Text(reason)),
                Ok(None) => message!("the values of `{}` cannot be read"; constant.name),
                Ok(Some(bounds)) if bounds.iter().any(|it| !it.min.is_finite() || !it.max.is_finite()) => {
                    message!("`{}` has values that are infinite or not a number, or too large for f32"; constant.name)
                }
                Ok(Some(bounds)) => {
                    if let Some(left) = room.checked_sub(bounds.len()) {
                        constant.scales.set(source.scales_for(&bounds));
                        room = left;
                    }
                    continue;
                }
            };
            errors.push(finding(model, &constant.weight, message).help("exclude this constant from quantization"));
        }
        if errors.is_empty() { Ok(self) } else { Err(errors) }
    }

    /// Returns the constants that are quantized.
    pub fn changed(&self) -> impl Iterator<Item = &QuantizedConstant> {
        self.constants.iter().filter(|constant| constant.to.is_some())
    }

    /// Computes the loss of each constant's values.
    pub fn audit(&mut self, model: &Model) {
        let weights = Arc::new(model.weights().clone());
        for constant in &mut self.constants {
            constant.loss = constant.source(&weights).and_then(|source| QuantizationLoss::of(&source));
        }
    }

    /// Returns an error for each constant with a value whose error exceeds `limit`, a fraction of the range of its
    /// row; worst first.
    pub fn beyond(&self, model: &Model, limit: f64) -> Vec<Diagnostic> {
        let losses = self.changed().filter_map(|constant| Some((constant, constant.loss?)));
        let mut beyond: Vec<_> = losses.filter(|(_, loss)| loss.largest > limit).collect();
        beyond.sort_by(|(_, a), (_, b)| b.largest.total_cmp(&a.largest));
        let errors = beyond.into_iter().map(|(constant, loss)| {
            let percent = short(loss.largest * 100.0);
            let message = message!(
                "the error of `{}` would be up to {} % of the range of a row, more than {} %";
                constant.name, Text(percent), limit * 100.0
            );
            finding(model, &constant.weight, message)
                .help("exclude the constant, choose another mode, or allow a larger error")
        });
        errors.collect()
    }
}

impl QuantizedConstant {
    fn new(names: &UniqueNames<'_>, weight: Weight, to: Option<(Mode, Group)>, rule: Rule) -> Self {
        let mut constant = Self {
            layer: weight.constant,
            name: names.name(weight.constant),
            from: weight.stored.element_type,
            dims: weight.dims.clone(),
            to: None,
            rule,
            consumer: names.name(weight.consumer),
            bytes_before: weight.stored.size().unwrap_or(0),
            bytes_after: 0,
            loss: None,
            weight,
            scales: KnownScales::default(),
        };
        constant.choose(to);
        constant
    }

    /// Sets mode and group of the constant; `None` if it must not be quantized.
    pub(crate) fn choose(&mut self, to: Option<(Mode, Group)>) {
        self.to = to;
        self.scales = KnownScales::default();
        let Some((mode, group)) = to else {
            self.bytes_after = self.bytes_before;
            return;
        };
        let size = |ty, dims: &[usize]| byte_size(ty, dims.iter().product::<usize>() as u64).unwrap_or(0);
        self.bytes_after = self.weight.shapes(group).map_or(0, |[codes, scales]| {
            let zeros = if mode.has_zero_points() { size(mode.codes(), &scales) } else { 0 };
            u64::try_from(size(mode.codes(), &codes) + size(mode.scales(), &scales) + zeros).unwrap_or(u64::MAX)
        });
    }

    pub(super) fn source(&self, weights: &Arc<Weights>) -> Option<Source> {
        let (mode, group) = self.to?;
        let grid = self.weight.grid(group)?;
        let scales = self.scales.clone();
        Some(Source { stored: self.weight.stored, grid, mode, weights: weights.clone(), scales })
    }

    /// True if OpenVINO's CPU plugin computes with the codes directly, false if it first converts the weights to f32.
    /// `None` if that is unknown. Measured with OpenVINO 2026.4.
    pub fn is_kept_by_cpu(&self) -> Option<bool> {
        let (mode, _) = self.to?;
        let is_matrix = self.dims.iter().rev().skip(2).all(|&dim| dim == 1) && self.dims.len() >= 2;
        let is_integer = mode.is_int8() || matches!(mode, Mode::Int4Asym | Mode::Int4Sym);
        match self.weight.role {
            _ if self.from == ElementType::Bf16 => None,
            Role::MatMul if matches!(mode, Mode::Fp8 | Mode::Mxfp8) => Some(false),
            Role::MatMul => Some(self.weight.port == 1 && is_matrix),
            Role::Gather => Some(is_integer),
            // Plugins can treat a 1×1 convolution as matrix multiplication.
            Role::Convolution if self.dims.iter().skip(2).all(|&dim| dim == 1) => None,
            Role::Convolution => Some(false),
        }
    }
}

struct UniqueNames<'g> {
    graph: &'g Graph,
    renamed: Vec<(LayerId, String)>,
    /// Positions in `renamed`.
    places: HashMap<LayerId, usize>,
}

impl<'g> UniqueNames<'g> {
    fn of(graph: &'g Graph) -> Self {
        let renamed = order::renamed(graph);
        let places = renamed.iter().enumerate().map(|(at, (layer, _))| (*layer, at)).collect();
        Self { graph, renamed, places }
    }

    fn name(&self, id: LayerId) -> String {
        let renamed = self.places.get(&id).and_then(|&at| self.renamed.get(at));
        let own = || self.graph.layer(id).map(|layer| layer.name().to_owned()).unwrap_or_default();
        renamed.map_or_else(own, |(_, name)| name.clone())
    }
}

/// Mode and group of each weight of a graph, with the rule that chose them.
struct Choices<'a> {
    weights: &'a [Weight],
    list: Vec<(Option<(Mode, Group)>, Rule)>,
    /// Indices of the weights with the main mode.
    main: Vec<usize>,
}

impl<'a> Choices<'a> {
    fn of(
        settings: &Quantization,
        found: &'a select::Weights,
        weights: &Arc<Weights>,
    ) -> Result<Self, Vec<Diagnostic>> {
        let list = &found.list;
        let main = (settings.mode, settings.group());
        if settings.mode.is_int8() {
            return Ok(Self { weights: list, list: vec![(Some(main), Rule::Main); list.len()], main: Vec::new() });
        }
        let rule = |role| match role {
            Role::MatMul => Rule::LastLayer,
            Role::Gather => Rule::Embedding,
            Role::Convolution => Rule::Convolution,
        };
        let backup = |weight: &Weight| (settings.backup_for(weight.stored.element_type), rule(weight.role));
        let mut choices = Self { weights: list, list: list.iter().map(backup).collect(), main: Vec::new() };
        choices.main = choices.of_role(Role::MatMul).collect();
        if settings.all_layers {
            let tables = choices.of_role(Role::Gather).filter(|&at| list[at].axis().is_some());
            let tables: Vec<_> = tables.collect();
            choices.main.extend(tables);
        } else if !found.is_last_left_out {
            choices.main.pop();
        }
        choices.fall_back(settings);
        choices.share_out(settings, weights);
        Ok(choices)
    }

    fn of_role(&self, role: Role) -> impl Iterator<Item = usize> + use<'a> {
        let weights = self.weights;
        (0..weights.len()).filter(move |&at| weights[at].role == role)
    }

    /// If the settings permit it, reduces the group size to a divisor of the channel size.
    fn fall_back(&mut self, settings: &Quantization) {
        let Self { weights, list, main } = self;
        main.retain(|&at| {
            let size = weights[at].channel_size().unwrap_or(1);
            let (group, stays) = match (settings.group(), settings.fallback) {
                (Group::Of(group), fallback) if !(size as u64).is_multiple_of(group) => {
                    let power = 1_u64 << size.trailing_zeros();
                    match fallback {
                        Fallback::Refuse => (Group::Of(group), true),
                        Fallback::Adjust if power >= 32 => (Group::Of(power), true),
                        Fallback::Adjust => (Group::Channel, false),
                        Fallback::Ignore => {
                            list[at].0 = None;
                            (Group::Channel, false)
                        }
                    }
                }
                (group, _) => (group, true),
            };
            list[at] = if stays { (Some((settings.mode, group)), Rule::Main) } else { (list[at].0, Rule::GroupSize) };
            stays
        });
    }

    /// Weights with the largest error in 8 bits keep the main mode.
    fn share_out(&mut self, settings: &Quantization, weights: &Arc<Weights>) {
        if settings.ratio() >= 1.0 {
            return;
        }
        let count = |at: usize| self.weights[at].dims.iter().product::<usize>() as f64;
        let all: f64 = self.main.iter().map(|&at| count(at)).sum();
        let mut scored: Vec<_> = self.main.iter().map(|&at| (score(&self.weights[at], weights), at)).collect();
        scored.sort_by(|(a, _), (b, _)| a.total_cmp(b));
        let mut taken = 0.0;
        let first = scored.iter().position(|(_, at)| {
            taken += count(*at);
            taken / all >= settings.ratio()
        });
        let first = first.unwrap_or(scored.len());
        for &(_, at) in &scored[first..] {
            self.list[at] = (settings.backup_for(self.weights[at].stored.element_type), Rule::Ratio);
        }
    }

    /// Errors for constants whose channel size is not a multiple of the group size.
    fn check_groups(&self, model: &Model, settings: &Quantization) -> Result<(), Vec<Diagnostic>> {
        let chosen = self.weights.iter().zip(&self.list);
        let failed = chosen.filter_map(|(weight, &(to, _))| {
            let (mode, group) = to?;
            weight.shapes(group).is_none().then_some((weight, mode, group))
        });
        let failed: Vec<_> = failed.collect();
        let fix = self.fix(settings);
        let errors: Vec<_> = failed
            .into_iter()
            .map(|(weight, mode, group)| indivisible(model, weight, mode, group, fix.clone()))
            .collect();
        if errors.is_empty() { Ok(()) } else { Err(errors) }
    }

    /// The settings that avoid the error.
    fn fix(&self, settings: &Quantization) -> Fix {
        let fails = |at: &usize| self.list[*at].0.is_some_and(|(_, group)| self.weights[*at].shapes(group).is_none());
        if (0..self.list.len()).filter(fails).any(|at| !self.main.contains(&at)) {
            return Fix::settings(&[("backup", "int8_asym"), ("backup", "none")]);
        }
        if settings.mode.has_powers_of_two() {
            return Fix::settings(&[("group_fallback", "ignore")]);
        }
        let size = [128, 64, 32, 16, 8]
            .into_iter()
            .find(|size| self.main.iter().all(|&at| self.weights[at].shapes(Group::Of(*size)).is_some()));
        let size = size.map_or_else(|| "-1".to_owned(), |size| size.to_string());
        Fix::settings(&[("group_size", &size), ("group_fallback", "adjust")])
    }
}

/// Nncf's score of a weight: the smaller the score, the larger the error in 8 bits.
fn score(weight: &Weight, weights: &Arc<Weights>) -> f64 {
    let epsilon = match weight.stored.element_type {
        ElementType::F64 => f64::EPSILON,
        ElementType::F16 | ElementType::Bf16 => 2_f64.powi(-10),
        _ => f32::EPSILON.into(),
    };
    let source = |grid| Source {
        stored: weight.stored,
        grid,
        mode: Mode::Int8Asym,
        weights: weights.clone(),
        scales: KnownScales::default(),
    };
    let error = weight.grid(Group::Channel).map(source).and_then(|source| {
        let scales = source.scales_for(&source.bounds()?);
        let rows = source.errors(&scales, false)?;
        let largest = rows.iter().map(|row| row.squares).fold(0.0, f64::max);
        Some(largest / source.grid.shared() as f64)
    });
    1.0 / (error.unwrap_or(0.0) + epsilon)
}

fn indivisible(model: &Model, weight: &Weight, mode: Mode, group: Group, fix: Fix) -> Diagnostic {
    let consumer = model.graph().layer(weight.consumer).map(|layer| layer.name().to_owned()).unwrap_or_default();
    let constant = model.graph().layer(weight.constant).map(|layer| layer.name().to_owned()).unwrap_or_default();
    let message = match weight.channel_size() {
        Some(size) => {
            message!(
                "the channel size {} of `{}`, the weights of `{}`, is not a multiple of the group size {}";
                size, constant, consumer, Text(group)
            )
        }
        None => {
            message!(
                "{} needs one axis for groups, but `{}`, the weights of `{}`, has none or several";
                Text(mode), constant, consumer
            )
        }
    };
    finding(model, weight, message).help(fix)
}

fn finding(model: &Model, weight: &Weight, message: Message) -> Diagnostic {
    let layer = model.graph().layer(weight.constant);
    let span = xml::locate(model.source(), layer.and_then(|it| it.span()).unwrap_or_default(), "layer", "name");
    let Stored { element_type, .. } = weight.stored;
    let dims = weight.dims.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
    let reference = layer.map(|layer| LayerRef::of(&Place::default(), layer));
    let found = Diagnostic::new(Code::CannotQuantize, message).at(span, message!("{}[{}]"; element_type, Text(dims)));
    Diagnostic { layer: reference, ..found }
}
