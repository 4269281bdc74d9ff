//! Marks: what the metadata of layers says about precision.
//!
//! Plugins of OpenVINO compute in a narrower element type where they are asked to. A mark in the `<rt_info>` of a layer keeps
//! that layer, or the constant that it is, out of it; another one says that a Convert undoes the compression of a constant,
//! which then stays small in memory. A mark has no other trace in a model: who loses it changes what is computed.
//!
//! The rules were established on the packages of OpenVINO 2022.3, 2023.3, 2024.6, 2025.2, 2026.2, 2026.3 and 2026.4.

use std::collections::BTreeSet;
use std::fmt;

use typelift_promote::ElementType;

use crate::edit::Edit;
use crate::model::graph::{EditError, IrVersion, Layer, LayerId};
use crate::ops::Release;
use crate::text::xml::{Entry, entries};

const CONVERSIONS: &str = "DisablePrecisionConversion";
const PRECISE: &str = "precise";
const DECOMPRESSION: &str = "decompression";

/// The marks of a layer. They are equal if they mean the same, however they are spelled: `precise` is the conversion of any
/// type to f16.
///
/// ```
/// # let mut model = typelift::Model::open(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/model.xml"))?;
/// use typelift::precision_marks::Marks;
/// let relu = model.graph().find("relu")?;
/// model.edit(|graph| graph.set_marks(relu, &Marks::precise()))?;
/// let marks = Marks::of(model.graph().layer(relu).unwrap(), model.version());
/// assert_eq!(marks.to_string(), "DisablePrecisionConversion=dynamic:f16");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Marks {
    /// The conversions, from one type to another one, that are not to happen.
    conversions: BTreeSet<(&'static str, &'static str)>,
    decompression: bool,
    /// How the conversions are spelled; `None` where nobody said it.
    spelling: Option<Spelling>,
}

impl PartialEq for Marks {
    fn eq(&self, other: &Self) -> bool {
        (&self.conversions, self.decompression) == (&other.conversions, other.decompression)
    }
}

impl Eq for Marks {}

impl Marks {
    /// The marks that OpenVINO reads of a layer of a file of this version; version 10 has none.
    #[must_use]
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

    /// The mark that keeps a layer, or a constant, out of the conversion to f16, which the hints f16 and bf16 both ask for.
    #[must_use]
    pub fn precise() -> Self {
        let conversion = (ElementType::Dynamic.name(), ElementType::F16.name());
        Self { conversions: BTreeSet::from([conversion]), ..Self::default() }
    }

    /// The mark of a Convert that undoes the compression of a constant.
    #[must_use]
    pub fn decompression() -> Self {
        Self { decompression: true, ..Self::default() }
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether the layer, or the constant, keeps its precision where everything else becomes f16: a conversion to f16, or
    /// to any type, from any type is excepted. One that names the type it starts from does not count; plugins of OpenVINO
    /// 2026.4 refuse to compile it.
    #[must_use]
    pub fn keeps_precision(&self) -> bool {
        let keeps = |(from, to): &(&str, &str)| *from == "dynamic" && ["f16", "dynamic"].contains(to);
        self.conversions.iter().any(keeps)
    }

    /// Whether it is a Convert that undoes the compression of a constant.
    #[must_use]
    pub fn is_decompression(&self) -> bool {
        self.decompression
    }

    /// The marks of one layer that does the work of two; `None` where they except different conversions, so that neither can
    /// do the work of the other one.
    #[must_use]
    pub fn union(&self, other: &Self) -> Option<Self> {
        let (one, two) = (&self.conversions, &other.conversions);
        let agree = one.is_empty() || two.is_empty() || one == two;
        agree.then(|| self.and(other))
    }

    /// Those of both layers, for layers that do the work of both together.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        let spelling = match (self.spelling, other.spelling) {
            (Some(one), Some(two)) if one != two => Some(Spelling::Both),
            (one, two) => one.or(two),
        };
        let conversions = &self.conversions | &other.conversions;
        Self { conversions, decompression: self.decompression || other.decompression, spelling }
    }

    /// The spelling that they have where they were read; `None` if that is nowhere, or they have one spelling only.
    #[must_use]
    pub fn spelling(&self) -> Option<Spelling> {
        self.spelling
    }

    /// The same marks in another spelling. Without one they are written in [both](Spelling::Both).
    #[must_use]
    pub fn spelled(mut self, spelling: Spelling) -> Self {
        self.spelling = Some(spelling).filter(|_| !self.conversions.is_empty());
        self
    }

    /// Those that a layer can have which is no Convert.
    #[must_use]
    pub(crate) fn of_computation(mut self) -> Self {
        self.decompression = false;
        self
    }

    /// An `<rt_info>` with these marks, and what `old` has besides marks; `None` if that is nothing.
    fn write(&self, old: Option<&str>) -> Option<String> {
        let mut written: Vec<String> = old
            .map(entries)
            .unwrap_or_default()
            .iter()
            .filter(|entry| !is_mark(entry))
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

/// As OpenVINO 2026.4 writes them: `DisablePrecisionConversion=dynamic:f16, decompression`.
impl fmt::Display for Marks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.conversions.is_empty() {
            write!(f, "{CONVERSIONS}={}", self.value())?;
        }
        let separator = if self.conversions.is_empty() { "" } else { ", " };
        if self.decompression { write!(f, "{separator}{DECOMPRESSION}") } else { Ok(()) }
    }
}

/// By which attribute a layer is kept out of conversions. `decompression` is spelled alike everywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Spelling {
    /// `precise`, which 2024.0 and later read; 2026.3 writes it as the other one.
    Precise,
    /// `DisablePrecisionConversion` with the types, which 2026.3 and later read, and others pass over.
    Conversions,
    /// Both, which 2022.3 and later read without an error, and each understands what it can.
    Both,
}

impl Spelling {
    /// The one that a release writes.
    #[must_use]
    pub fn of(release: Release) -> Self {
        if release < Release::WITH_DISABLED_CONVERSIONS { Self::Precise } else { Self::Conversions }
    }
}

impl Edit<'_> {
    /// Gives a layer these marks in place of those that it has. Other metadata stays.
    ///
    /// # Errors
    /// [`EditError::NoLayer`].
    ///
    /// # Examples
    /// ```
    /// # let mut model = typelift::Model::open(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/model.xml"))?;
    /// use typelift::graph::NewLayer;
    /// use typelift::precision_marks::Marks;
    /// let y = model.graph().tensor("y")?;
    /// model.edit(|graph| {
    ///     let sigmoid = graph.insert_after(y, NewLayer::new("Sigmoid", "opset1"), &[])?;
    ///     graph.set_marks(sigmoid, &Marks::precise())
    /// })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn set_marks(&mut self, id: LayerId, marks: &Marks) -> Result<(), EditError> {
        let old = self.layer(id).ok_or(EditError::NoLayer(id))?.rt_info.as_deref();
        let new = marks.write(old).map(Into::into);
        self.set_metadata(id, new)
    }

    /// The marks of a layer; none if there is no such layer.
    pub(crate) fn marks(&self, id: LayerId) -> Marks {
        self.layer(id).map(|layer| Marks::of(layer, self.version())).unwrap_or_default()
    }

    /// Gives a layer the marks of another one besides its own.
    pub(crate) fn merge_marks(&mut self, from: LayerId, into: LayerId) -> Result<(), EditError> {
        let (own, more) = (self.marks(into), self.marks(from));
        let all = own.and(&more);
        if all == own { Ok(()) } else { self.set_marks(into, &all) }
    }
}

fn is_mark(entry: &Entry<'_>) -> bool {
    [CONVERSIONS, PRECISE, DECOMPRESSION].contains(&entry.name.as_str())
}

/// The pairs of types in `from:to,to;from:to`.
fn conversions(value: &str) -> impl Iterator<Item = (&'static str, &'static str)> {
    let ty = |name: &str| Some(ElementType::from_port_name(name)?.name());
    let pairs = value.split(';').filter_map(|pair| pair.split_once(':'));
    let pairs = pairs.flat_map(|(from, to)| to.split(',').map(move |to| (from, to)));
    pairs.filter_map(move |(from, to)| Some((ty(from)?, ty(to)?)))
}
