//! The plan of a change of precision, as data.

use std::collections::BTreeMap;
use std::fmt;

use serde::ser::SerializeStruct as _;
use serde::{Serialize, Serializer};
use typelift_promote::ElementType;

use crate::findings::LayerRef;
use crate::model::graph::{LayerId, Place};
use crate::ops::values::conversion::Audit;

/// What is to become of the constants of a model.
///
/// It is data: change the [`action`](Constant::action) of a constant, and [`apply`](Self::apply) does that.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Plan {
    /// Every constant that the plan is about, those that stay included: those of a graph in the order of the file, the graph
    /// of the model before those of bodies.
    pub constants: Vec<Constant>,
    /// The constants that get the mark of what keeps its precision, as OpenVINO gives it to all from which shapes are
    /// computed, integers too.
    pub marked: Vec<LayerRef>,
}

/// What is to become of a constant.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Constant {
    /// The graph that it is in.
    pub place: Place,
    /// The layer that holds the values.
    pub layer: LayerId,
    /// Its name.
    pub name: String,
    /// Its name after those of the bodies around it, `loop/body/w`, as [`Model::find`](crate::Model::find) takes it.
    pub path: String,
    /// The type in which its values are stored.
    pub from: ElementType,
    /// The type that they would be stored in.
    pub to: ElementType,
    /// What is done.
    pub action: Action,
    /// What the values lose if it is done.
    pub loss: Loss,
    /// The number of bytes that the values take.
    pub bytes_before: u64,
    /// The number of bytes that they would take.
    pub bytes_converted: u64,
    /// How many inputs take the constant.
    pub consumers: usize,
}

impl Constant {
    /// The number of bytes that the values take once the plan is applied.
    #[must_use]
    pub fn bytes_after(&self) -> u64 {
        if self.action.changes() { self.bytes_converted } else { self.bytes_before }
    }
}

/// What is done with a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Action {
    /// It is stored in the other type, and a Convert with the mark `decompression` gives its values in their own.
    Compress,
    /// It is stored in the other type, and what takes it gets that type.
    Convert,
    /// It is stored in the type of the Convert with the mark `decompression`, which goes.
    Decompress,
    /// It stays as it is.
    Keep(Reason),
}

impl Action {
    /// Whether the constant is stored in another type.
    #[must_use]
    pub fn changes(self) -> bool {
        !matches!(self, Self::Keep(_))
    }

    /// Its name in JSON: `compress`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Compress => "compress",
            Self::Convert => "convert",
            Self::Decompress => "decompress",
            Self::Keep(_) => "keep",
        }
    }

    /// Why the constant stays; `None` if it does not.
    #[must_use]
    pub fn reason(self) -> Option<Reason> {
        if let Self::Keep(reason) = self { Some(reason) } else { None }
    }
}

/// Why a constant stays as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// A shape, or a place in a tensor, is computed from it.
    ShapePath,
    /// The model has been optimized for low precision: it quantizes, or its weights are compressed.
    OptimizedModel,
    /// It is a single number that the other type does not hold nearly enough.
    ScalarRelative,
    /// One of its values would be off by too much.
    Absolute,
    /// Too many of its values are out of the range of the other type.
    ShareOutOfRange,
    /// A mark in the file keeps its precision.
    Marked,
    /// The caller keeps it.
    Kept,
    /// It has no values.
    Empty,
    /// Its values cannot be read.
    Unreadable,
}

impl Reason {
    /// Its name in JSON: `shape-path`.
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
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What the values of a constant lose in another type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Loss {
    /// How many values there are.
    pub n: u64,
    /// The largest difference between a value and what becomes of it, values apart that are infinite or NaN.
    pub max_abs: f64,
    /// The largest such difference in relation to the value, which is not zero.
    pub max_rel: f64,
    /// How many values lie beyond the largest number of the type, which they become: a Convert makes them infinite.
    pub to_inf: u64,
    /// How many values that are not zero become zero.
    pub to_zero: u64,
    /// How many values become subnormal: they have less than the full precision of the type.
    pub to_subnormal: u64,
    /// How many values are NaN.
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

/// What a plan comes to.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct PlanTotals {
    /// How many constants the plan is about.
    pub constants: usize,
    /// How many of them are stored in another type.
    pub changed: usize,
    /// The number of bytes that all of them take.
    pub bytes_before: u64,
    /// The number of bytes that they take once the plan is applied.
    pub bytes_after: u64,
    /// How many stay, by the name of the reason.
    pub kept: BTreeMap<&'static str, usize>,
    /// The largest relative error of a value that is changed.
    pub max_rel: f64,
}

impl Plan {
    /// Both plans, this one first.
    #[must_use]
    pub(crate) fn and(mut self, other: &Self) -> Self {
        self.constants.extend_from_slice(&other.constants);
        self.marked.extend_from_slice(&other.marked);
        self
    }

    /// The constants that are stored in another type.
    pub fn changed(&self) -> impl Iterator<Item = &Constant> {
        self.constants.iter().filter(|constant| constant.action.changes())
    }

    /// What it comes to.
    #[must_use]
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

    /// The constants that lose most in relation to their values, worst first, at most this many; those that lose nothing
    /// are left out.
    #[must_use]
    pub fn worst(&self, most: usize) -> Vec<&Constant> {
        let mut worst: Vec<_> = self.changed().filter(|constant| constant.loss.max_rel > 0.0).collect();
        worst.sort_by(|a, b| b.loss.max_rel.total_cmp(&a.loss.max_rel));
        worst.truncate(most);
        worst
    }
}
