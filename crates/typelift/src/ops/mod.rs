//! Table of all operations: one row per operation revision, one file per family.
//!
//! A row lists the operation sets of the revision, its inputs, its attributes, the inputs that must agree in element
//! type, and the function that infers its outputs.

mod activation;
mod attributes;
mod blocks;
mod body;
mod bounds;
mod broadcast;
mod broadcasting;
mod color;
pub(crate) mod common;
mod context;
mod conversion;
mod convert;
mod convolution;
mod ctc;
mod detection;
mod elementwise;
mod embedding;
pub(crate) mod evaluate;
mod extend;
mod fault;
mod fft;
mod gather;
mod generate;
mod image;
mod indexing;
mod inputs;
mod interpolate;
mod join;
mod kind;
mod macs;
mod matmul;
mod nms;
mod normalization;
mod pooling;
mod promotion;
mod quantization;
mod range;
mod recurrent;
mod reduction;
mod release;
mod reorder;
mod reshape;
mod roi;
mod scatter;
mod search;
mod segment;
mod slice;
mod source;
mod text;
mod unknown;
pub(crate) mod values;
mod variable;

use std::ops::RangeInclusive;

pub(crate) use attributes::{Attr, AttrKind, AttributeValues, Attributes, Finding, List};
pub(crate) use body::check_port_maps;
pub(crate) use context::{BodyInput, Context, Given, Outputs, Subject, Surroundings};
pub use conversion::{Conversion, Effect, conversion};
pub(crate) use convert::promotion;
pub(crate) use fault::{Detail, Fault};
pub(crate) use indexing::{Axis, UseOfValues, use_of_values};
pub use kind::{LayerKind, is_own, kind};
pub(crate) use kind::{is_constant, is_promotion};
pub use macs::{Macs, macs};
pub(crate) use macs::{has_macs, least_count, products};
pub use promotion::Setting;
pub(crate) use promotion::{OTHER_TYPES, PromotionRule, promotion_rule, setting, write_deciding};
pub use release::{Feature, Release, Requirement, Requirements, UnknownRelease};
pub use typelift_promote::PromotedAs;
pub(crate) use unknown::{UnknownOperation, describe_unknown, is_own_opset};

use typelift_promote::ElementType;

use self::evaluate::Evaluate;
use crate::base::foreign;
use crate::model::graph::Layer;

const FAMILIES: &[&[Operation]] = &[
    activation::ROWS,
    blocks::ROWS,
    body::ROWS,
    broadcast::ROWS,
    color::ROWS,
    convert::ROWS,
    convolution::ROWS,
    ctc::ROWS,
    detection::ROWS,
    elementwise::ROWS,
    embedding::ROWS,
    extend::ROWS,
    fft::ROWS,
    gather::ROWS,
    generate::ROWS,
    image::ROWS,
    interpolate::ROWS,
    join::ROWS,
    matmul::ROWS,
    nms::ROWS,
    normalization::ROWS,
    pooling::ROWS,
    quantization::ROWS,
    range::ROWS,
    recurrent::ROWS,
    reduction::ROWS,
    reorder::ROWS,
    reshape::ROWS,
    roi::ROWS,
    scatter::ROWS,
    search::ROWS,
    segment::ROWS,
    slice::ROWS,
    source::ROWS,
    text::ROWS,
    variable::ROWS,
];

/// The newest operation set.
pub const LAST_OPSET: u8 = 17;

/// Facts about one revision of an operation.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct Operation {
    /// The name in OpenVINO's operation sets: `Relu`, `Constant`.
    pub name: &'static str,
    /// The operation set that introduced this revision; 0 for an operation of the first set without later revisions.
    pub revision: u8,
    /// The operation sets as bits: bit n is operation set n.
    opsets: u32,
    inputs: (usize, usize),
    attributes: &'static [Attr],
    /// Inputs that must have one element type.
    pub ties: Ties,
    /// The element types that its main input accepts.
    pub accepts: Accepts,
    floats: &'static [usize],
    /// Inputs that contain shapes or indices. OpenVINO keeps the precision of all layers that these depend on.
    pub shaping: &'static [usize],
    /// True if OpenVINO can read the operation with different types of tied inputs, but cannot run it.
    pub tied_when_run: bool,
    /// The role of its layers in their graph. For a single layer use [`kind()`].
    pub kind: LayerKind,
    pub(crate) commutative: bool,
    spreads: &'static [Spread],
    /// True if integer results can overflow their type or lose their fraction.
    pub(crate) can_wrap: bool,
    random: bool,
    /// The way in which frameworks promote its inputs.
    pub promoted_as: PromotedAs,
    /// Attributes that the specification requires, but that OpenVINO's reader replaces by defaults.
    pub(crate) required: &'static [&'static str],
    infer: fn(&mut Context) -> Result<(), Fault>,
    pub(crate) evaluate: Evaluate,
}

/// Inputs of an operation that must have one element type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ties {
    /// No inputs.
    None,
    /// Every input.
    All,
    /// The inputs at these positions.
    Inputs(&'static [usize]),
    /// The inputs at each of these lists of positions.
    Groups(&'static [&'static [usize]]),
    /// The inputs at these positions, and the one at `mask` unless it is boolean.
    Mask {
        /// The positions.
        inputs: &'static [usize],
        /// The position of the mask.
        mask: usize,
    },
}

impl Ties {
    /// Returns the groups of tied inputs for these input types.
    pub fn groups(self, types: &[ElementType]) -> Vec<Vec<usize>> {
        let there = |group: &[usize]| group.iter().copied().filter(|&input| input < types.len()).collect::<Vec<_>>();
        match self {
            Self::None => Vec::new(),
            Self::All => vec![(0..types.len()).collect()],
            Self::Inputs(inputs) => vec![there(inputs)],
            Self::Groups(groups) => groups.iter().map(|inputs| there(inputs)).collect(),
            Self::Mask { inputs, mask } => {
                let boolean = types.get(mask).is_none_or(|&ty| ty == ElementType::Boolean);
                let mut group = there(inputs);
                group.extend((!boolean).then_some(mask));
                vec![group]
            }
        }
    }
}

/// Precision decision of a plugin that also applies to neighbouring layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spread {
    /// The layer computes in f32.
    Kept,
    /// The layer follows a FakeQuantize, so it may compute in f16.
    Quantized,
    /// The layer computes with a range such as minimum and maximum, and must compute in f32.
    Range,
}

/// Element types that an operation accepts in its main input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Accepts {
    /// Every type.
    Any,
    /// Every type except boolean and string.
    Numeric,
    /// Every type except boolean.
    NotBoolean,
    /// Floating point, except the coded `nf4`.
    Real,
    /// Every type that is not floating point. OpenVINO counts `nf4` and string among these.
    Bits,
    /// The same as `Bits`, without boolean.
    Integer,
    /// Boolean.
    Boolean,
}

impl Accepts {
    /// True if it accepts `ty`. Every variant accepts `dynamic`.
    #[must_use]
    pub fn takes(self, ty: ElementType) -> bool {
        let real = ty.is_float() && ty != ElementType::Nf4;
        match self {
            _ if ty == ElementType::Dynamic => true,
            Self::Any => true,
            Self::Numeric => ![ElementType::Boolean, ElementType::String].contains(&ty),
            Self::NotBoolean => ty != ElementType::Boolean,
            Self::Real => real,
            Self::Bits => !real,
            Self::Integer => !real && ty != ElementType::Boolean,
            Self::Boolean => ty == ElementType::Boolean,
        }
    }

    pub(crate) fn description(self) -> &'static str {
        match self {
            Self::Any => "any type",
            Self::Numeric => "numbers",
            Self::NotBoolean => "anything but boolean",
            Self::Real => "floating-point numbers",
            Self::Bits => "integers and booleans",
            Self::Integer => "integers",
            Self::Boolean => "booleans",
        }
    }
}

impl Operation {
    /// A row of a table: the operation `name` in its revision `revision`. The revision is the first operation
    /// set that has it, where 0 counts as 1. By default it is in every later set up to 16, because set 17 has few
    /// operations.
    const fn new(name: &'static str, revision: u8, infer: fn(&mut Context) -> Result<(), Fault>) -> Self {
        let since = if revision == 0 { 1 } else { revision };
        let opsets = ((1 << LAST_OPSET) - (1 << since)) | (((since == LAST_OPSET) as u32) << LAST_OPSET);
        Self {
            name,
            revision,
            opsets,
            inputs: (1, 1),
            attributes: &[],
            ties: Ties::None,
            accepts: Accepts::Any,
            floats: &[],
            shaping: &[],
            tied_when_run: false,
            kind: LayerKind::Other,
            commutative: false,
            spreads: &[],
            can_wrap: false,
            random: false,
            required: &[],
            promoted_as: PromotedAs::Ordinary,
            infer,
            evaluate: Evaluate::Never,
        }
    }

    const fn since(mut self, first: u8) -> Self {
        self.opsets &= !((1 << first) - 1);
        self
    }

    const fn until(mut self, last: u8) -> Self {
        self.opsets &= (1 << (last + 1)) - 1;
        self
    }

    const fn except(mut self, opset: u8) -> Self {
        self.opsets &= !(1 << opset);
        self
    }

    const fn and(mut self, opset: u8) -> Self {
        self.opsets |= 1 << opset;
        self
    }

    /// Sets the number of inputs, `least` to `most`; the default is one.
    const fn inputs(mut self, least: usize, most: usize) -> Self {
        self.inputs = (least, most);
        self
    }

    const fn attributes(mut self, attributes: &'static [Attr]) -> Self {
        self.attributes = attributes;
        self
    }

    const fn ties(mut self, ties: Ties) -> Self {
        self.ties = ties;
        self
    }

    const fn accepts(mut self, accepts: Accepts) -> Self {
        self.accepts = accepts;
        self
    }

    /// Marks ties that OpenVINO's reader does not check, but its plugins require.
    const fn tied_when_run(mut self) -> Self {
        self.tied_when_run = true;
        self
    }

    const fn kind(mut self, kind: LayerKind) -> Self {
        self.kind = kind;
        self
    }

    const fn commutative(mut self) -> Self {
        self.commutative = true;
        self
    }

    /// Sets the precision decisions that pass through the operation; the default is none.
    const fn spreads_on(mut self, spreads: &'static [Spread]) -> Self {
        self.spreads = spreads;
        self
    }

    const fn wraps(mut self) -> Self {
        self.can_wrap = true;
        self
    }

    const fn random(mut self) -> Self {
        self.random = true;
        self
    }

    const fn requires(mut self, attributes: &'static [&'static str]) -> Self {
        self.required = attributes;
        self
    }

    /// Sets how frameworks promote its inputs; by default as in ordinary arithmetic.
    const fn promoted_as(mut self, promoted_as: PromotedAs) -> Self {
        self.promoted_as = promoted_as;
        self
    }

    /// Sets the inputs that accept only floating point, apart from the main input and those tied to it.
    const fn floats(mut self, inputs: &'static [usize]) -> Self {
        self.floats = inputs;
        self
    }

    /// Sets the inputs that contain shapes or indices, whose producers keep their precision in OpenVINO.
    const fn shaped_by(mut self, inputs: &'static [usize]) -> Self {
        self.shaping = inputs;
        self
    }

    const fn evaluate(mut self, evaluate: Evaluate) -> Self {
        self.evaluate = evaluate;
        self
    }

    /// Returns the operation sets that contain it, oldest first.
    pub fn opsets(&self) -> impl Iterator<Item = u8> + use<> {
        let opsets = self.opsets;
        (1..=LAST_OPSET).filter(move |opset| opsets >> opset & 1 == 1)
    }

    pub(crate) fn input_counts(&self) -> RangeInclusive<usize> {
        self.inputs.0..=self.inputs.1
    }

    /// The inputs in groups: those that must agree, then every other input by itself.
    pub(crate) fn input_groups(&self, types: &[ElementType]) -> Vec<Vec<usize>> {
        let mut groups = self.ties.groups(types);
        let mut alone = vec![true; types.len()];
        groups.iter().flatten().for_each(|&input| alone[input] = false);
        groups.extend((0..types.len()).filter(|&input| alone[input]).map(|input| vec![input]));
        groups
    }

    pub(crate) fn is_repeatable(&self) -> bool {
        !self.random
    }

    pub(crate) fn missing_attributes<'l>(&self, layer: &'l Layer) -> impl Iterator<Item = &'static str> + use<'l> {
        // If padding is automatic, pads in the file are ignored.
        let padding = layer.attribute("auto_pad").is_none_or(|text| text.eq_ignore_ascii_case("explicit"));
        let required = self.required.iter().copied().filter(move |name| padding || !name.starts_with("pads_"));
        required.filter(|name| layer.attribute(name).is_none())
    }

    pub(crate) fn spreads(&self, what: Spread) -> bool {
        self.spreads.contains(&what)
    }

    /// True if `input` is the main input, which is the first one, or tied to it.
    pub(crate) fn is_main(&self, input: usize) -> bool {
        input == 0
            || match self.ties {
                Ties::None => false,
                Ties::All => true,
                Ties::Inputs(group) | Ties::Mask { inputs: group, .. } => group.contains(&0) && group.contains(&input),
                Ties::Groups(groups) => groups.iter().any(|group| group.contains(&0) && group.contains(&input)),
            }
    }

    /// True if `input` accepts only floating point.
    pub fn takes_only_floats(&self, input: usize) -> bool {
        self.accepts == Accepts::Real && self.is_main(input) || self.floats.contains(&input)
    }

    /// Returns the default of an attribute; `None` if a file must have it, or if the operation lacks it.
    pub fn default_of(&self, attribute: &str) -> Option<&'static str> {
        self.attribute(attribute)?.default
    }

    pub(crate) fn attribute(&self, name: &str) -> Option<&'static Attr> {
        self.attributes.iter().find(|attribute| attribute.name == name)
    }

    /// Returns the names of its attributes.
    pub fn attribute_names(&self) -> impl Iterator<Item = &'static str> + use<> {
        self.attributes.iter().map(|attribute| attribute.name)
    }

    /// The names of its attributes that have to be written.
    pub(crate) fn needed(&self) -> impl Iterator<Item = &'static str> {
        let is_needed = |attribute: &&Attr| attribute.default.is_none() || self.required.contains(&attribute.name);
        self.attributes.iter().filter(is_needed).map(|attribute| attribute.name)
    }

    /// Returns its attributes that have a list of permitted words, each with that list.
    pub fn enumerations(&self) -> impl Iterator<Item = (&'static str, &'static [&'static str])> + use<> {
        self.attributes.iter().filter_map(|attribute| match attribute.kind {
            AttrKind::Enum(words) => Some((attribute.name, words)),
            _ => None,
        })
    }

    /// The names of its attributes that are words or numbers.
    pub(crate) fn settings(&self) -> impl Iterator<Item = &'static str> {
        let is_set = |kind: AttrKind| {
            use AttrKind::{Bool, Enum, Float, Floats, Int, Ints, Unsigned, UnsignedInts};
            matches!(kind, Bool | Enum(_) | Float | Floats | Int | Ints | Unsigned | UnsignedInts)
        };
        self.attributes.iter().filter(move |attribute| is_set(attribute.kind)).map(|attribute| attribute.name)
    }

    pub(crate) fn type_attributes(&self) -> impl Iterator<Item = &'static Attr> {
        self.attributes.iter().filter(|attribute| matches!(attribute.kind, AttrKind::Type))
    }

    pub(crate) fn output_type_attributes(&self) -> impl Iterator<Item = &'static Attr> {
        self.type_attributes().filter(|attribute| attribute.types_output)
    }
}

const COUNT: usize = {
    let (mut count, mut family) = (0, 0);
    while family < FAMILIES.len() {
        count += FAMILIES[family].len();
        family += 1;
    }
    count
};

/// Every row, sorted by name. The rows of a name keep the order of their family.
static ROWS: [Operation; COUNT] = sorted();

const fn sorted() -> [Operation; COUNT] {
    let mut rows = [FAMILIES[0][0]; COUNT];
    let (mut count, mut family) = (0, 0);
    while family < FAMILIES.len() {
        let mut next = 0;
        while next < FAMILIES[family].len() {
            let row = FAMILIES[family][next];
            let mut at = count;
            while at > 0 && is_before(row.name, rows[at - 1].name) {
                rows[at] = rows[at - 1];
                at -= 1;
            }
            rows[at] = row;
            count += 1;
            next += 1;
        }
        family += 1;
    }
    rows
}

const fn is_before(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut at = 0;
    while at < a.len() && at < b.len() && a[at] == b[at] {
        at += 1;
    }
    at < b.len() && (at == a.len() || a[at] < b[at])
}

/// The meaning of a name that is no operation: a name of another framework, or a misspelling.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Meant {
    /// The operation, if OpenVINO has one.
    pub operation: Option<&'static str>,
    /// True if the operation can stand in the place of the name.
    pub is_same: bool,
    /// A sentence for the user.
    pub advice: String,
}

/// Returns what a name that is no operation means.
///
/// ```
/// let meant = typelift::ops::meant("LeakyRelu").unwrap();
/// assert_eq!((meant.operation, meant.is_same), (Some("PRelu"), false));
/// assert_eq!(meant.advice, "did you mean `PRelu` (the slope is its second input)?");
/// ```
#[must_use]
pub fn meant(name: &str) -> Option<Meant> {
    let names: Vec<_> = all().map(|row| row.name).collect();
    let (operation, difference) = foreign::operation(name, &names)?;
    let advice = match (operation, difference) {
        ("", advice) => advice.to_owned(),
        (meant, "") => format!("did you mean `{meant}`?"),
        (meant, difference) => format!("did you mean `{meant}` ({difference})?"),
    };
    let operation = Some(operation).filter(|name| !name.is_empty());
    Some(Meant { operation, is_same: difference.is_empty(), advice })
}

/// Returns every row, sorted by name.
pub fn all() -> impl Iterator<Item = &'static Operation> {
    ROWS.iter()
}

/// Returns the row for a layer of type `ty` and operation set `version`, both as a file spells them. `None` if
/// OpenVINO has no such operation, for example if it belongs to an extension.
///
/// The lookup follows OpenVINO's reader. It ignores case and reads `Const` as `Constant`. Some operations of opset1
/// are also found under opset2, and old `experimental` and `extension` operations under opset6.
#[must_use]
pub fn lookup(ty: &str, version: &str) -> Option<&'static Operation> {
    let rows = revisions(ty);
    let name = rows.first()?.name;
    let opset = match version.strip_prefix("opset").map(opset_number) {
        Some(Some(1)) if ["MVN", "ROIPooling", "ReorgYolo"].contains(&name) => 2,
        Some(Some(opset)) if opset <= LAST_OPSET => opset,
        None if ["experimental", "extension"].contains(&version) && BEFORE_OPSETS.contains(&name) => 6,
        _ => return None,
    };
    rows.iter().find(|row| row.opsets >> opset & 1 == 1)
}

impl Layer {
    /// Returns the row of its operation in the operation table, as [`lookup`](crate::ops::lookup()) finds it. The
    /// result is cached.
    ///
    /// # Examples
    /// ```
    /// # let model = typelift::Model::open(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/model.xml"))?;
    /// let relu = model.graph().layer(model.graph().find("relu")?).unwrap();
    /// assert_eq!(relu.operation().unwrap().name, "Relu");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn operation(&self) -> Option<&'static Operation> {
        let row = self.operation_name.row(|ty, version| {
            let found = lookup(ty, version)?;
            u16::try_from(ROWS.iter().position(|row| std::ptr::eq(row, found))?).ok()
        });
        ROWS.get(usize::from(row?))
    }
}

/// Parses the number of an operation set. A fast path handles one or two digits.
fn opset_number(text: &str) -> Option<u8> {
    match *text.as_bytes() {
        [ones @ b'0'..=b'9'] => Some(ones - b'0'),
        [tens @ b'1'..=b'9', ones @ b'0'..=b'9'] => Some((tens - b'0') * 10 + (ones - b'0')),
        // `opset01` is no set.
        _ => text.parse().ok().filter(|_| !text.starts_with('0')),
    }
}

pub(crate) fn revisions(ty: &str) -> &'static [Operation] {
    let spelling = SPELLINGS.iter().find(|(spelling, _)| *spelling == ty);
    let named = rows_named(spelling.map_or(ty, |&(_, name)| name));
    if !named.is_empty() {
        return named;
    }
    // OpenVINO accepts the other spellings only in exactly this case.
    let in_any_case = ROWS.iter().find(|row| row.name.eq_ignore_ascii_case(ty));
    in_any_case.map_or(&[], |row| rows_named(row.name))
}

fn rows_named(name: &str) -> &'static [Operation] {
    let start = ROWS.partition_point(|row| row.name < name);
    let count = ROWS[start..].iter().take_while(|row| row.name == name).count();
    &ROWS[start..start + count]
}

pub(crate) fn first_version(ty: &str) -> Option<String> {
    let opset = revisions(ty).iter().filter_map(|row| row.opsets().next()).min()?;
    Some(format!("opset{opset}"))
}

/// The operation of a layer as statements name it: with its operation set, if the operation has several revisions.
pub(crate) fn in_statements(layer: &Layer) -> String {
    match layer.version().strip_prefix("opset") {
        Some(opset) if revisions(layer.ty()).len() > 1 => format!("{}-{opset}", layer.ty()),
        _ => layer.ty().to_owned(),
    }
}

/// Operations whose name in files differs from that in the operation table.
const SPELLINGS: &[(&str, &str)] =
    &[("Const", "Constant"), ("ReLU", "Relu"), ("PReLU", "PRelu"), ("SoftMax", "Softmax")];

/// Operations of files that are older than operation sets.
const BEFORE_OPSETS: &[&str] = &[
    "ExperimentalDetectronDetectionOutput",
    "ExperimentalDetectronGenerateProposalsSingleImage",
    "ExperimentalDetectronPriorGridGenerator",
    "ExperimentalDetectronROIFeatureExtractor",
    "ExperimentalDetectronTopKROIs",
    "GRUCell",
    "RNNCell",
    "Proposal",
];

/// Maximum number of operations that have the same attributes and are distinguished by trials.
const MOST_ALIKE: usize = 6;

/// The operations that have all of these attributes, in the spelling of files; none if there are many.
pub(crate) fn with_attributes<'n>(names: impl Iterator<Item = &'n str>) -> Vec<&'static str> {
    let names: Vec<_> = names.collect();
    let having = all().filter(|operation| names.iter().all(|name| operation.attribute(name).is_some()));
    let mut found: Vec<_> = having.map(|operation| file_spelling(operation.name)).collect();
    found.sort_unstable();
    found.dedup();
    if names.is_empty() || found.len() > MOST_ALIKE { Vec::new() } else { found }
}

pub(crate) fn file_spelling(name: &'static str) -> &'static str {
    SPELLINGS.iter().find(|(_, class)| *class == name).map_or(name, |(spelling, _)| spelling)
}
