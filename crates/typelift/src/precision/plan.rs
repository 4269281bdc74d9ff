//! Plan of a precision change, as data.

use std::collections::BTreeMap;
use std::fmt;

use serde::ser::SerializeStruct as _;
use serde::{Serialize, Serializer};
use typelift_promote::ElementType;

use crate::findings::LayerRef;
use crate::model::graph::{LayerId, Place};
use crate::ops::values::conversion::Audit;

/// Actions for the constants of a model.
///
/// The plan is data: change the [`action`](Constant::action) of a constant, and [`apply`](Self::apply) follows it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Plan {
    /// All constants that were considered, also kept ones. They are in the order of the file, those of bodies last.
    pub constants: Vec<Constant>,
    /// The constants that get a precision mark. As in OpenVINO these are all constants on which a shape depends,
    /// including integers.
    pub marked: Vec<LayerRef>,
}

/// A constant of the plan.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Constant {
    /// The graph of the constant.
    pub place: Place,
    /// The layer of the constant.
    pub layer: LayerId,
    /// The name.
    pub name: String,
    /// The path of the layer for [`Model::find`](crate::Model::find): the names of the bodies around it, then its own,
    /// `loop/body/w`.
    pub path: String,
    /// The type in which the values are stored now.
    pub from: ElementType,
    /// The type in which the action stores them.
    pub to: ElementType,
    /// The action.
    pub action: Action,
    /// The loss of the values if the action is applied.
    pub loss: Loss,
    /// The size of the values in bytes.
    pub bytes_before: u64,
    /// The size in the new type.
    pub bytes_converted: u64,
    /// The number of inputs that use the constant.
    pub consumers: usize,
}

impl Constant {
    pub(crate) fn bytes_after(&self) -> u64 {
        if self.action.changes() { self.bytes_converted } else { self.bytes_before }
    }
}

/// Action for a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Action {
    /// Stores the constant in the other type, and inserts a Convert back to its own type with the mark
    /// `decompression`.
    Compress,
    /// Stores the constant in the other type, so that its consumers get that type.
    Convert,
    /// Stores the constant in the type of its Convert with the mark `decompression`, and removes that Convert.
    Decompress,
    /// Stores the plain values of a quantized constant, and removes the layers that compute them.
    Dequantize,
    /// Keep it unchanged.
    Keep(Reason),
}

impl Action {
    /// True if the constant is stored in another type.
    pub(crate) fn changes(self) -> bool {
        !matches!(self, Self::Keep(_))
    }

    /// Returns the name in JSON: `compress`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Compress => "compress",
            Self::Convert => "convert",
            Self::Decompress => "decompress",
            Self::Dequantize => "dequantize",
            Self::Keep(_) => "keep",
        }
    }

    /// The reason for keeping the constant; `None` if it is not kept.
    pub(crate) fn reason(self) -> Option<Reason> {
        if let Self::Keep(reason) = self { Some(reason) } else { None }
    }
}

/// Reason for keeping a constant unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// A shape or an index depends on the constant.
    ShapePath,
    /// The model is already optimized for low precision: it contains FakeQuantize, or its weights are compressed.
    OptimizedModel,
    /// The constant is a single number that the other type cannot represent accurately enough.
    ScalarRelative,
    /// A value of the constant would change by too much.
    Absolute,
    /// Too many values are out of range in the other type.
    ShareOutOfRange,
    /// The layer has a precision mark.
    Marked,
    /// The caller's choice.
    Kept,
    /// The constant has no values.
    Empty,
    /// The values cannot be read.
    Unreadable,
    /// The values need more memory than permitted.
    TooLarge,
}

impl Reason {
    /// Returns the name in JSON: `shape-path`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::ShapePath => "shape-path",
            Self::OptimizedModel => "optimised-model",
            Self::ScalarRelative => "scalar-relative",
            Self::Absolute => "absolute",
            Self::ShareOutOfRange => "share-out-of-range",
            Self::Marked => "marked",
            Self::Kept => "kept",
            Self::Empty => "empty",
            Self::Unreadable => "unreadable",
            Self::TooLarge => "too-large",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Loss of a constant's values in another type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Loss {
    /// The number of values.
    pub n: u64,
    /// The largest absolute error of a value, except infinities and NaN.
    pub max_abs: f64,
    /// The largest relative error of a value that is not zero.
    pub max_rel: f64,
    /// The number of values that exceed the largest number of the type. They become the largest number; a Convert
    /// would make them infinite.
    pub to_inf: u64,
    /// The number of non-zero values that become zero.
    pub to_zero: u64,
    /// The number of values that become subnormal, and so lose precision.
    pub to_subnormal: u64,
    /// The number of values that are NaN.
    pub nan: u64,
}

impl From<&Audit> for Loss {
    fn from(audit: &Audit) -> Self {
        Self {
            n: audit.values,
            max_abs: audit.worst_absolute_error,
            max_rel: audit.worst_relative_error,
            to_inf: audit.destroyed(),
            to_zero: audit.vanished,
            to_subnormal: audit.subnormal,
            nan: audit.nan,
        }
    }
}

impl Serialize for Constant {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Loss { n, max_abs, max_rel, to_inf, to_zero, to_subnormal, nan } = self.loss;
        let mut fields = serializer.serialize_struct("Constant", 16)?;
        fields.serialize_field("name", &self.name)?;
        fields.serialize_field("path", &self.path)?;
        fields.serialize_field("from", self.from.name())?;
        fields.serialize_field("to", if self.action.changes() { self.to } else { self.from }.name())?;
        fields.serialize_field("action", self.action.name())?;
        fields.serialize_field("reason", &self.action.reason().map(Reason::name))?;
        fields.serialize_field("n", &n)?;
        fields.serialize_field("max_abs", &max_abs)?;
        fields.serialize_field("max_rel", &max_rel)?;
        fields.serialize_field("to_inf", &to_inf)?;
        fields.serialize_field("to_zero", &to_zero)?;
        fields.serialize_field("to_subnormal", &to_subnormal)?;
        fields.serialize_field("nan", &nan)?;
        fields.serialize_field("bytes_before", &self.bytes_before)?;
        fields.serialize_field("bytes_after", &self.bytes_after())?;
        fields.serialize_field("consumers", &self.consumers)?;
        fields.end()
    }
}

/// Totals of a plan.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct PlanTotals {
    /// The number of constants that the plan considers.
    pub constants: usize,
    /// The number of constants that are stored in another type.
    pub changed: usize,
    /// The size of all constants in bytes.
    pub bytes_before: u64,
    /// The size in bytes after the plan is applied.
    pub bytes_after: u64,
    /// The number of kept constants, by the name of the reason.
    pub kept: BTreeMap<&'static str, usize>,
    /// The largest relative error of a changed value.
    pub max_rel: f64,
}

impl Plan {
    /// Joins two plans, this one first.
    pub(crate) fn and(mut self, other: &Self) -> Self {
        self.constants.extend_from_slice(&other.constants);
        self.marked.extend_from_slice(&other.marked);
        self
    }

    /// Iterates over the constants that are stored in another type.
    pub fn changed(&self) -> impl Iterator<Item = &Constant> {
        self.constants.iter().filter(|constant| constant.action.changes())
    }

    /// Returns the totals.
    pub fn totals(&self) -> PlanTotals {
        let mut totals = PlanTotals { constants: self.constants.len(), ..PlanTotals::default() };
        for constant in &self.constants {
            totals.bytes_before += constant.bytes_before;
            totals.bytes_after += constant.bytes_after();
            match constant.action.reason() {
                Some(reason) => *totals.kept.entry(reason.name()).or_default() += 1,
                None => {
                    totals.changed += 1;
                    totals.max_rel = totals.max_rel.max(constant.loss.max_rel);
                }
            }
        }
        totals
    }

    /// Returns the constants with the largest relative errors, worst first, limited to this number. Constants without
    /// loss are excluded.
    pub fn worst(&self, most: usize) -> Vec<&Constant> {
        let mut worst: Vec<_> = self.changed().filter(|constant| constant.loss.max_rel > 0.0).collect();
        worst.sort_by(|a, b| b.loss.max_rel.total_cmp(&a.loss.max_rel));
        worst.truncate(most);
        worst
    }
}
