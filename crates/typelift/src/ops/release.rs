//! First OpenVINO release that supports an operation, an element type, an attribute value, or a version of the format.
//!
//! The data come from the released packages: `testdata/oracle/releases` has their answers and the script that recorded
//! them.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use serde::{Serialize, Serializer};
use smallvec::SmallVec;
use thiserror::Error;
use typelift_promote::ElementType;

use super::{LayerKind, Operation};
use crate::base::hash::HashSet;
use crate::base::options::deserialize_as_text;
use crate::model::graph::{Attribute, Graph, IrVersion, Layer, OutputPort, Start};
use crate::model::shape::Shape;

/// An OpenVINO release, such as 2023.3. A patch release supports the same features as its release.
///
/// # Examples
/// ```
/// use typelift::ops::Release;
/// let release: Release = "2023.3".parse()?;
/// assert!(release < "2024.0".parse()?);
/// assert_eq!(release.to_string(), "2023.3");
/// # Ok::<(), typelift::ops::UnknownRelease>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Release {
    year: u16,
    number: u8,
}

/// Text that does not name a known release.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{0}` is not an OpenVINO release from {first} to {last}, such as 2023.3", first = Release::OLDEST, last = Release::NEWEST)]
pub struct UnknownRelease(String);

impl Release {
    /// The oldest release that was tested. Older releases may support the same features.
    pub const OLDEST: Self = Self::new(2021, 3);
    /// The newest release that was tested.
    pub const NEWEST: Self = Self::new(2026, 4);

    const fn new(year: u16, number: u8) -> Self {
        Self { year, number }
    }

    /// Returns the releases that were tested, in order.
    ///
    /// ```
    /// use typelift::ops::Release;
    /// assert_eq!(Release::all().next(), Some(Release::OLDEST));
    /// assert_eq!(Release::all().last(), Some(Release::NEWEST));
    /// ```
    pub fn all() -> impl Iterator<Item = Self> {
        let years = [(2021, 3..=4), (2022, 1..=3), (2023, 0..=3), (2024, 0..=6), (2025, 0..=4), (2026, 0..=4)];
        years.into_iter().flat_map(|(year, numbers)| numbers.map(move |number| Self::new(year, number)))
    }

    pub(crate) fn of_format(version: IrVersion) -> Self {
        match version {
            IrVersion::V10 => Self::OLDEST,
            IrVersion::V11 => Self::new(2022, 1),
        }
    }

    /// The first release that accepts a graph with two layers of the same name.
    pub(crate) const WITH_REPEATED_NAMES: Self = Self::new(2024, 1);

    /// The first release that accepts inputs of dynamic shape, and dimensions of -1.
    pub(crate) const WITH_OPEN_SHAPES: Self = Self::new(2022, 1);

    /// The first release that accepts a port of dynamic element type.
    pub(crate) const WITH_OPEN_TYPES: Self = Self::new(2023, 0);

    /// The first release that reads `DisablePrecisionConversion`; earlier ones ignore it, but read `precise`.
    pub(crate) const WITH_DISABLED_CONVERSIONS: Self = Self::new(2026, 3);

    /// The first release whose plugins keep the precision of marked layers. Earlier ones ignore the marks.
    pub(crate) const WITH_PRECISE_LAYERS: Self = Self::new(2024, 0);

    /// The first release that recognizes an IR even if `<net …>` is not at the start. Earlier ones require the tag
    /// within the first 512 bytes, and more text after these.
    pub(crate) const WITH_ANY_OPENING: Self = Self::new(2024, 5);

    /// The first release whose CPU plugin takes boolean masks of attention with open lengths in models without state.
    pub(crate) const WITH_BOOLEAN_MASKS: Self = Self::new(2024, 0);

    /// The last release whose CPU plugin refuses such masks in stateful models.
    pub(crate) const WITHOUT_STATEFUL_MASKS: Self = Self::new(2024, 6);

    /// Returns the first release that reads an element type.
    pub fn of_element_type(element_type: ElementType) -> Self {
        element_type.first_release().map_or(Self::NEWEST, |(year, number)| Self::new(year, number))
    }

    /// Returns the first release that reads an operation in an operation set; `None` if no release does.
    pub fn of_operation(operation: &Operation, opset: u8) -> Option<Self> {
        if !operation.opsets().any(|known| known == opset) {
            return None;
        }
        let early = EARLY.iter().find(|row| row.1 == opset && row.0 == operation.name);
        Some(early.map_or_else(|| Self::of_opset(opset), |row| row.2))
    }

    pub(crate) fn of_revision(revision: &Operation) -> Option<Self> {
        revision.opsets().filter_map(|opset| Self::of_operation(revision, opset)).min()
    }

    /// The first release without an operation that an operation set had; `None` if none was removed.
    pub(crate) fn of_removal(ty: &str, version: &str) -> Option<Self> {
        let opset = version.strip_prefix("opset")?.parse().ok()?;
        REMOVED.iter().find(|(name, sets, _)| *name == ty && sets.contains(&opset)).map(|row| row.2)
    }

    /// Returns the first release with an operation set.
    pub fn of_opset(opset: u8) -> Self {
        match opset {
            0..=7 => Self::OLDEST,
            8 => Self::new(2022, 1),
            9 => Self::new(2022, 2),
            10 => Self::new(2022, 3),
            11 => Self::new(2023, 0),
            12 => Self::new(2023, 1),
            13 => Self::new(2023, 2),
            14 => Self::new(2024, 0),
            15 => Self::new(2024, 5),
            16 => Self::new(2026, 0),
            _ => Self::new(2026, 4),
        }
    }

    /// Returns the first release that accepts a value of an operation's attribute. It is [`OLDEST`](Self::OLDEST) if
    /// no other release than that of the operation is needed.
    pub fn of_attribute(operation: &Operation, attribute: &str, value: &str) -> Self {
        let late = LATE_VALUES.iter().find(|row| {
            row.attribute == attribute
                && row.operations.contains(&operation.name)
                && row.value.eq_ignore_ascii_case(value)
        });
        late.map_or(Self::OLDEST, |row| row.release)
    }
}

/// Operations that some releases support earlier or later than the rest of their operation set.
const EARLY: &[(&str, u8, Release)] = &[
    ("Einsum", 7, Release::new(2021, 4)),
    ("FakeConvert", 13, Release::new(2023, 3)),
    ("ScaledDotProductAttention", 13, Release::new(2023, 3)),
    ("Col2Im", 15, Release::new(2024, 2)),
    ("Convert", 15, Release::new(2024, 2)),
    ("EmbeddingBagOffsets", 15, Release::new(2024, 2)),
    ("EmbeddingBagPacked", 15, Release::new(2024, 2)),
    ("ROIAlignRotated", 15, Release::new(2024, 2)),
    ("ScatterNDUpdate", 15, Release::new(2024, 2)),
    ("ShapeOf", 15, Release::new(2024, 2)),
    ("BitwiseLeftShift", 15, Release::new(2024, 4)),
    ("BitwiseRightShift", 15, Release::new(2024, 4)),
    ("SliceScatter", 15, Release::new(2024, 4)),
    ("StringTensorPack", 15, Release::new(2024, 4)),
    ("StringTensorUnpack", 15, Release::new(2024, 4)),
    ("Convert", 16, Release::new(2025, 0)),
    ("Identity", 16, Release::new(2025, 0)),
    ("ShapeOf", 16, Release::new(2025, 0)),
    ("ISTFT", 16, Release::new(2025, 1)),
    ("SegmentMax", 16, Release::new(2025, 1)),
    ("SparseFillEmptyRows", 16, Release::new(2025, 2)),
    ("AvgPool", 16, Release::new(2025, 3)),
    ("OneHot", 16, Release::new(2025, 4)),
    ("Convert", 17, Release::new(2026, 2)),
    ("ErfInv", 17, Release::new(2026, 2)),
    ("Parameter", 17, Release::new(2026, 2)),
    ("ShapeOf", 17, Release::new(2026, 2)),
    ("GroupedMatMul", 17, Release::new(2026, 3)),
];

/// Operations of operation sets that later releases removed: the name, the sets, and the first release without them.
const REMOVED: &[(&str, RangeInclusive<u8>, Release)] = &[("LSTMSequence", 1..=3, Release::new(2025, 0))];

struct LateValue {
    operations: &'static [&'static str],
    attribute: &'static str,
    value: &'static str,
    release: Release,
}

/// Attribute values that were added after their operation.
const LATE_VALUES: &[LateValue] = &[LateValue {
    operations: &["AvgPool", "MaxPool"],
    attribute: "rounding_type",
    value: "ceil_torch",
    release: Release::new(2024, 1),
}];

/// Restriction of an operation's inputs in older releases.
struct LateForm {
    operation: &'static str,
    what: &'static str,
    release: Release,
    is_in: fn(&Requirements<'_>, &Layer) -> bool,
}

const LATE_FORMS: &[LateForm] = &[
    LateForm {
        operation: "Einsum",
        what: "an empty last subscript",
        release: Release::new(2025, 2),
        is_in: |_, layer| layer.attribute("equation").is_some() && subscripts(layer).last() == Some(""),
    },
    LateForm {
        operation: "Einsum",
        what: "an ellipsis that stands for no axis",
        release: Release::new(2025, 1),
        is_in: |around, layer| {
            let sources = around.graph.producers(layer.id());
            subscripts(layer).zip(sources).filter(|(labels, _)| labels.contains("...")).any(|(labels, source)| {
                let rank = source.and_then(|source| around.graph.output(source)?.shape().rank());
                rank == Some(labels.chars().filter(char::is_ascii_alphabetic).count())
            })
        },
    },
    LateForm {
        operation: "Interpolate",
        what: "data of element type f64",
        release: Release::new(2026, 3),
        is_in: |around, layer| {
            input(around.graph, layer, 0).is_some_and(|port| port.element_type() == ElementType::F64)
        },
    },
    LateForm {
        operation: "LogSoftmax",
        what: "a scalar as data",
        release: Release::new(2026, 1),
        is_in: |around, layer| input(around.graph, layer, 0).is_some_and(|port| port.shape().rank() == Some(0)),
    },
    LateForm {
        operation: "MulticlassNms",
        what: "an open last dim of the boxes",
        release: Release::new(2023, 1),
        is_in: |around, layer| {
            let boxes = input(around.graph, layer, 0).and_then(|port| port.shape().dims()?.last().copied());
            boxes.is_some_and(|dim| dim.value().is_none())
        },
    },
    LateForm {
        operation: "ReadValue",
        what: "no initial value",
        release: Release::new(2023, 3),
        is_in: |_, layer| layer.inputs().is_empty(),
    },
    LateForm {
        operation: "ReadValue",
        what: "a variable without an Assign",
        release: Release::new(2023, 0),
        is_in: |around, layer| {
            let variable = layer.attribute("variable_id");
            variable.is_some() && !around.assigned.contains(&variable)
        },
    },
];

fn subscripts(layer: &Layer) -> impl Iterator<Item = &str> {
    let equation = layer.attribute("equation").unwrap_or_default();
    let inputs = equation.split_once("->").map_or(equation, |(inputs, _)| inputs);
    inputs.split(',').map(str::trim)
}

fn input<'g>(graph: &'g Graph, layer: &Layer, position: usize) -> Option<&'g OutputPort> {
    graph.output(graph.producers(layer.id()).get(position).copied().flatten()?)
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.year, self.number)
    }
}

impl FromStr for Release {
    type Err = UnknownRelease;

    /// Parses `2023.3`; a patch number after it is ignored.
    fn from_str(text: &str) -> Result<Self, UnknownRelease> {
        let unknown = || UnknownRelease(text.to_owned());
        let mut parts = text.split('.');
        let year = parts.next().and_then(|year| year.parse().ok()).ok_or_else(unknown)?;
        let number = parts.next().and_then(|number| number.parse().ok()).ok_or_else(unknown)?;
        let patch = parts.next().is_none_or(|patch| patch.parse::<u8>().is_ok());
        let release = Self { year, number };
        if Self::all().any(|known| known == release) && patch && parts.next().is_none() {
            Ok(release)
        } else {
            Err(unknown())
        }
    }
}

deserialize_as_text!(Release);

impl Serialize for Release {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// First release that a feature of a layer requires.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Requirement<'a> {
    /// The first release that supports the feature.
    pub release: Release,
    /// The category.
    pub feature: Feature<'a>,
}

/// Feature of a model that a release may not support.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Feature<'a> {
    /// The operation of a layer, in its operation set.
    Operation {
        /// The name of the operation, as in the file.
        ty: &'a str,
        /// The operation set.
        version: &'a str,
    },
    /// The value of an attribute of `<data>`.
    Attribute(&'a Attribute),
    /// The element type of an output.
    ElementType(ElementType),
    /// An input of the model or of a body with a dynamic shape, or an output of unknown rank.
    OpenShape,
    /// An input or output with no elements.
    EmptyTensor,
    /// Inputs of an operation that older releases do not accept, as a description.
    Form(&'static str),
}

impl fmt::Display for Feature<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Operation { ty, version } => write!(f, "{ty} of {version}"),
            Self::Attribute(attribute) => write!(f, "{}=\"{}\"", attribute.name(), attribute.value()),
            Self::ElementType(ty) => write!(f, "element type {ty}"),
            Self::OpenShape => f.write_str("the open shape"),
            Self::EmptyTensor => f.write_str("a dim of 0"),
            Self::Form(what) => f.write_str(what),
        }
    }
}

/// Release requirements of a graph's layers.
pub struct Requirements<'a> {
    graph: &'a Graph,
    assigned: HashSet<Option<&'a str>>,
}

impl<'a> Requirements<'a> {
    /// Collects the requirements of this graph's layers, without its bodies.
    pub fn new(graph: &'a Graph) -> Self {
        let assigns = graph.unordered().filter(|layer| super::kind(layer) == LayerKind::Assign);
        Self { graph, assigned: assigns.map(|layer| layer.attribute("variable_id")).collect() }
    }

    /// Returns every feature of a layer that some releases since [`Release::OLDEST`] do not support, the operation
    /// first. An unknown operation requires nothing, because an extension can add it to any release.
    pub fn of<'l>(&self, layer: &'l Layer) -> impl Iterator<Item = Requirement<'l>> + use<'l> {
        let operation = layer.operation();
        let opset = layer.version().strip_prefix("opset").and_then(|opset| opset.parse().ok());
        let since = operation.and_then(|operation| Release::of_operation(operation, opset?));
        let (ty, version) = (layer.ty(), layer.version());
        let own = since.map(|release| Requirement { release, feature: Feature::Operation { ty, version } });
        let attributes = layer.attributes().iter().filter_map(move |attribute| {
            let release = of_attribute(operation?, attribute)?;
            Some(Requirement { release, feature: Feature::Attribute(attribute) })
        });
        // A type that only inference does not know is not in the file.
        let is_dynamic = |ty| ty == ElementType::Dynamic;
        let read = layer
            .outputs()
            .iter()
            .filter(move |port| !is_dynamic(port.element_type()) || port.declared.is_none_or(is_dynamic));
        let outputs = read.map(|port| {
            let ty = port.element_type();
            Requirement { release: Release::of_element_type(ty), feature: Feature::ElementType(ty) }
        });
        let outputs = outputs.filter(move |_| operation.is_some());
        let shape = of_shape(self.graph, layer);
        let forms = LATE_FORMS.iter().filter(move |form| operation.is_some_and(|row| row.name == form.operation));
        let forms: SmallVec<[_; 1]> = forms.filter(|form| (form.is_in)(self, layer)).collect();
        let forms =
            forms.into_iter().map(|form| Requirement { release: form.release, feature: Feature::Form(form.what) });
        let all = own.into_iter().chain(attributes).chain(outputs).chain(shape).chain(forms);
        all.filter(|requirement| requirement.release > Release::OLDEST)
    }
}

fn of_shape(graph: &Graph, layer: &Layer) -> Option<Requirement<'static>> {
    let (shape, is_open): (Shape, fn(&Shape) -> bool) = match layer.start()? {
        Start::Parameter => (layer.attribute("shape")?.parse().ok()?, |shape| !shape.is_static()),
        Start::Result => {
            let source = graph.producers(layer.id()).first().copied().flatten()?;
            (graph.output(source)?.shape().clone(), |shape| shape.rank().is_none())
        }
        Start::Assign => return None,
    };
    if shape.dims().unwrap_or_default().iter().any(|dim| dim.value() == Some(0)) {
        return Some(Requirement { release: Release::new(2023, 2), feature: Feature::EmptyTensor });
    }
    is_open(&shape).then_some(Requirement { release: Release::WITH_OPEN_SHAPES, feature: Feature::OpenShape })
}

/// The first release that accepts an attribute of a layer: its value, or the element type in it.
fn of_attribute(operation: &Operation, attribute: &Attribute) -> Option<Release> {
    let (name, value) = (attribute.name(), attribute.value());
    let is_type = operation.type_attributes().any(|row| row.name == name);
    let ty = is_type.then(|| ElementType::from_name(value)).flatten().filter(|ty| *ty != ElementType::Dynamic);
    ty.map(Release::of_element_type).max(Some(Release::of_attribute(operation, name, value)))
}
