//! Precision marks: metadata of layers about precision.
//!
//! OpenVINO's plugins can compute in a narrower element type. A mark in the `<rt_info>` of a layer or constant
//! excludes it from this conversion. Another mark says that a Convert decompresses a constant, which then remains
//! compressed in memory. If a mark is lost, the results change, and nothing else in the model shows it.
//!
//! The rules were recorded from the packages of OpenVINO 2022.3, 2023.3, 2024.6, 2025.2, 2026.2, 2026.3 and 2026.4.

use std::collections::BTreeSet;
use std::fmt;

use typelift_promote::ElementType;

use crate::edit::Edit;
use crate::model::graph::{EditError, IrVersion, Layer, LayerId};
use crate::ops::Release;
use crate::text::xml::entries;

const CONVERSIONS: &str = "DisablePrecisionConversion";
const PRECISE: &str = "precise";
const DECOMPRESSION: &str = "decompression";

/// Precision marks of a layer. Marks with the same meaning are equal, regardless of spelling: `precise` excludes the
/// conversion of any type to f16.
///
/// ```
/// # let mut model = typelift::Model::open(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/model.xml"))?;
/// use typelift::edit::precision_marks::Marks;
/// let relu = model.graph().find("relu")?;
/// model.edit(|graph| graph.set_marks(relu, &Marks::precise()))?;
/// let marks = Marks::of(model.graph().layer(relu).unwrap(), model.version());
/// assert_eq!(marks.to_string(), "DisablePrecisionConversion=dynamic:f16");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Marks {
    /// The excluded conversions, from one type to another.
    conversions: BTreeSet<(&'static str, &'static str)>,
    decompression: bool,
    /// Spelling of the exclusions; `None` for no preference.
    pub(crate) spelling: Option<Spelling>,
}

impl PartialEq for Marks {
    fn eq(&self, other: &Self) -> bool {
        (&self.conversions, self.decompression) == (&other.conversions, other.decompression)
    }
}

impl Eq for Marks {}

impl Marks {
    /// Returns the marks that OpenVINO reads in a layer of a file of this version; version 10 has none.
    pub fn of(layer: &Layer, version: IrVersion) -> Self {
        let mut marks = Self::default();
        let rt_info = layer.rt_info.as_deref().filter(|_| version > IrVersion::V10);
        for entry in rt_info.map(entries).unwrap_or_default() {
            let found = match (entry.name.as_str(), entry.value) {
                (CONVERSIONS, value) => {
                    let conversions = value.iter().flat_map(|value| conversions(value)).collect();
                    Self { conversions, ..Self::default() }.spelled(Spelling::Conversions)
                }
                (PRECISE, _) => Self::precise().spelled(Spelling::Precise),
                (DECOMPRESSION, _) => Self::decompression(),
                _ => continue,
            };
            marks = marks.and(&found);
        }
        marks
    }

    /// Returns the mark that excludes a layer, or a constant, from the conversion to f16, which the hints f16 and bf16
    /// both request.
    pub fn precise() -> Self {
        let conversion = (ElementType::Dynamic.name(), ElementType::F16.name());
        Self { conversions: BTreeSet::from([conversion]), ..Self::default() }
    }

    /// Returns the mark of a Convert that decompresses a constant.
    pub fn decompression() -> Self {
        Self { decompression: true, ..Self::default() }
    }

    /// True if there is no mark.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// True if the layer or constant keeps its precision when the model is converted to f16: the mark excludes a
    /// conversion from any type to f16 or to any type. A mark that names the source type is ignored; plugins of
    /// OpenVINO 2026.4 fail to compile it.
    pub fn keeps_precision(&self) -> bool {
        self.conversions.iter().any(|(from, to)| *from == "dynamic" && ["f16", "dynamic"].contains(to))
    }

    /// True for a Convert that decompresses a constant.
    pub fn is_decompression(&self) -> bool {
        self.decompression
    }

    pub(crate) fn exclusions(&self) -> &BTreeSet<(&'static str, &'static str)> {
        &self.conversions
    }

    /// Returns the marks of a layer that replaces two others; `None` if they exclude different conversions, so that
    /// neither can replace the other.
    pub fn union(&self, other: &Self) -> Option<Self> {
        let (one, two) = (&self.conversions, &other.conversions);
        let agree = one.is_empty() || two.is_empty() || one == two;
        agree.then(|| self.and(other))
    }

    pub(crate) fn and(&self, other: &Self) -> Self {
        let spelling = match (self.spelling, other.spelling) {
            (Some(one), Some(two)) if one != two => Some(Spelling::Both),
            (one, two) => one.or(two),
        };
        let conversions = &self.conversions | &other.conversions;
        Self { conversions, decompression: self.decompression || other.decompression, spelling }
    }

    /// Sets the spelling. Without one they are written in [both](Spelling::Both).
    #[must_use]
    pub fn spelled(mut self, spelling: Spelling) -> Self {
        self.spelling = Some(spelling).filter(|_| !self.conversions.is_empty());
        self
    }

    pub(crate) fn of_computation(mut self) -> Self {
        self.decompression = false;
        self
    }

    /// `None` if that is empty.
    fn write(&self, old: Option<&str>) -> Option<String> {
        let mut written: Vec<String> = old
            .map(entries)
            .unwrap_or_default()
            .iter()
            .filter(|entry| ![CONVERSIONS, PRECISE, DECOMPRESSION].contains(&entry.name.as_str()))
            .map(|it| it.text.into())
            .collect();
        let mut push =
            |name: &str, value: &str| written.push(format!("<attribute name=\"{name}\" version=\"0\"{value} />"));
        if !self.conversions.is_empty() {
            let spelling = self.spelling.unwrap_or(Spelling::Both);
            if spelling != Spelling::Precise {
                push(CONVERSIONS, &format!(" value=\"{}\"", self.value()));
            }
            if spelling != Spelling::Conversions {
                push(PRECISE, "");
            }
        }
        if self.decompression {
            push(DECOMPRESSION, "");
        }
        (!written.is_empty()).then(|| format!("<rt_info>{}</rt_info>", written.concat()))
    }

    fn value(&self) -> String {
        self.conversions.iter().map(|(from, to)| format!("{from}:{to}")).collect::<Vec<_>>().join(";")
    }
}

/// Formats the marks as OpenVINO 2026.4 writes them: `DisablePrecisionConversion=dynamic:f16, decompression`.
impl fmt::Display for Marks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.conversions.is_empty() {
            write!(f, "{CONVERSIONS}={}", self.value())?;
        }
        let separator = if self.conversions.is_empty() { "" } else { ", " };
        if self.decompression { write!(f, "{separator}{DECOMPRESSION}") } else { Ok(()) }
    }
}

/// Spelling of the mark that excludes a layer from conversions. The mark `decompression` has only one spelling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Spelling {
    /// `precise`, which 2024.0 and later read. 2026.3 and later write the other spelling.
    Precise,
    /// `DisablePrecisionConversion` with the types, which 2026.3 and later read. Older releases ignore it.
    Conversions,
    /// Both spellings. 2022.3 and later accept them, and each release uses the one that it knows.
    Both,
}

impl Spelling {
    /// Returns the spelling that a release writes.
    pub fn of(release: Release) -> Self {
        if release < Release::WITH_DISABLED_CONVERSIONS { Self::Precise } else { Self::Conversions }
    }
}

impl Edit<'_> {
    /// Replaces the marks of a layer. Other metadata is kept.
    ///
    /// # Errors
    /// [`EditError::NoLayer`].
    pub fn set_marks(&mut self, id: LayerId, marks: &Marks) -> Result<(), EditError> {
        let old = self.layer(id).ok_or(EditError::NoLayer(id))?.rt_info.as_deref();
        let new = marks.write(old).map(Into::into);
        self.set_metadata(id, new)
    }

    /// The marks of a layer; none if there is no such layer.
    pub(crate) fn marks(&self, id: LayerId) -> Marks {
        self.layer(id).map(|layer| Marks::of(layer, self.version())).unwrap_or_default()
    }

    pub(crate) fn merge_marks(&mut self, from: LayerId, into: LayerId) -> Result<(), EditError> {
        let (own, more) = (self.marks(into), self.marks(from));
        let all = own.and(&more);
        if all == own { Ok(()) } else { self.set_marks(into, &all) }
    }
}

/// Parses the pairs of types in `from:to,to;from:to`.
fn conversions(value: &str) -> impl Iterator<Item = (&'static str, &'static str)> {
    let ty = |name: &str| Some(ElementType::from_port_name(name)?.name());
    let pairs = value.split(';').filter_map(|pair| pair.split_once(':'));
    let pairs = pairs.flat_map(|(from, to)| to.split(',').map(move |to| (from, to)));
    pairs.filter_map(move |(from, to)| Some((ty(from)?, ty(to)?)))
}
