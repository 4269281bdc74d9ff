//! Selection of the constants that OpenVINO compresses.

use typelift_promote::ElementType;

use super::Kept;
use super::optimized::is_optimized;
use super::plan::{Action, Constant, Loss, Plan, Reason};
use super::shape_paths;
use crate::base::progress::each;
use crate::edit::precision_marks::Marks;
use crate::findings::LayerRef;
use crate::model::graph::{Graph, Layer, Model, Place};
use crate::model::weights::{Weights, byte_size};
use crate::ops;
use crate::ops::values::conversion::{Audit, Stored};

/// Rules that select the constants to compress.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Like {
    /// The rules of OpenVINO 2026.4. A single number is kept if its relative error would exceed 0.01 %. Other
    /// constants are kept if the error of a value would exceed 1, or if three quarters of the values would change
    /// clearly.
    #[default]
    OpenVino2026,
    /// The rules of OpenVINO up to 2025.2. A constant is kept if three quarters of its values are out of range.
    OpenVino2025,
    /// Constants are kept only if a value is out of range, infinite or NaN. Models that were optimized before are
    /// compressed too.
    All,
}

/// Settings for compressing a model.
///
/// The rules are those of OpenVINO for f16. OpenVINO does not compress to bf16. For bf16 the limits on errors are eight
/// times as large, because it has three bits fewer.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Compression {
    /// The type in which values are stored: f16 or bf16.
    pub to: ElementType,
    /// Rules that select the constants to compress.
    pub like: Like,
    /// The layers to keep; their constants are not compressed.
    pub kept: Kept,
}

impl Compression {
    /// Returns the settings with OpenVINO's current rules.
    pub fn to(to: ElementType) -> Self {
        Self { to, like: Like::default(), kept: Kept::default() }
    }
}

impl Plan {
    /// Returns the plan that stores floating-point constants in 16 bits. It lists the f32 and f64 constants of the
    /// model and its bodies, and the reason why a constant is kept. Types and shapes must be
    /// [inferred](crate::infer()).
    #[must_use]
    pub fn compress(model: &Model, compression: &Compression) -> Self {
        let is_whole = compression.like != Like::All && is_optimized(model.graph());
        let shape_paths = shape_paths::find(model);
        let (mut constants, mut marked) = (Vec::new(), Vec::new());
        for (place, graph) in model.walk() {
            let all: Vec<_> = graph.layers().filter(|layer| ops::is_constant(layer)).collect();
            for layer in each("values", all) {
                let has_mark = Marks::of(layer, model.version()).keeps_precision();
                let shapes = shape_paths.contains(&(place.clone(), layer.id()));
                let is_left_out = compression.kept.leaves_out(&place, layer.id());
                if shapes && !has_mark && !is_whole && !is_left_out {
                    marked.push(LayerRef::of(&place, layer));
                }
                let Some(mut constant) = Constant::of(&place, graph, layer, compression.to) else { continue };
                if ![ElementType::F32, ElementType::F64].contains(&constant.from) {
                    continue;
                }
                let reason = if is_whole {
                    Some(Reason::OptimizedModel)
                } else if shapes {
                    Some(Reason::ShapePath)
                } else if has_mark {
                    Some(Reason::Marked)
                } else if compression.kept.covers(&place, layer.id()) {
                    Some(Reason::Kept)
                } else if constant.loss.n == 0 {
                    Some(Reason::Empty)
                } else {
                    None
                };
                let audit = constant.audit(layer, model.weights());
                let reason = reason.or_else(|| match &audit {
                    Some(audit) => compression.like.objection(audit, compression.to),
                    None => Some(Reason::Unreadable),
                });
                constant.action = reason.map_or(Action::Compress, Action::Keep);
                constants.push(constant);
            }
        }
        Self { constants, marked }
    }
}

impl Constant {
    /// `None` if the layer is not a valid constant.
    pub(super) fn of(place: &Place, graph: &Graph, layer: &Layer, to: ElementType) -> Option<Self> {
        let stored = Stored::of(layer)?;
        let name = layer.name().to_owned();
        Some(Self {
            path: place.path_to(&name),
            place: place.clone(),
            layer: layer.id(),
            name,
            from: stored.element_type,
            to,
            action: Action::Keep(Reason::Kept),
            loss: Loss { n: stored.count, ..Loss::default() },
            bytes_before: stored.size()?,
            bytes_converted: u64::try_from(byte_size(to, stored.count)?).ok()?,
            consumers: graph.consumers(layer.id().output(0)).count(),
        })
    }

    /// Computes the loss of the values; `None` if they cannot be read.
    pub(super) fn audit(&mut self, layer: &Layer, weights: &Weights) -> Option<Audit> {
        let audit = Stored::of(layer)?.audit(self.to, weights)?;
        self.loss = Loss::from(&audit);
        Some(audit)
    }
}

impl Like {
    /// `None` if it is compressed.
    fn objection(self, audit: &Audit, to: ElementType) -> Option<Reason> {
        /// Fraction of values that may be out of range, for constants with at most this many values.
        const SHARE: f64 = 0.75;
        let slack = if to == ElementType::Bf16 { 8.0 } else { 1.0 };
        let (rejected, is_single) = (audit.tiny + audit.beyond, audit.values == 1);
        let too_many = |rejected: u64| rejected as f64 / audit.values as f64 >= SHARE;
        match self {
            Self::All => (audit.beyond > 0 || audit.nan > 0).then_some(Reason::ShareOutOfRange),
            _ if is_single && rejected > 0 => Some(Reason::ShareOutOfRange),
            Self::OpenVino2025 => too_many(rejected).then_some(Reason::ShareOutOfRange),
            Self::OpenVino2026 if is_single => {
                (audit.worst_relative_error > slack * 1e-4).then_some(Reason::ScalarRelative)
            }
            Self::OpenVino2026 if audit.worst_within > slack => Some(Reason::Absolute),
            Self::OpenVino2026 => too_many(rejected + audit.inexact).then_some(Reason::ShareOutOfRange),
        }
    }
}
