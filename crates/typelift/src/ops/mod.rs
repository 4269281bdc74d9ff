//! What is known of each operation: one table row an operation revision, in one file a family.
//!
//! A row says in which operation sets the revision is, how many inputs it takes, which attributes it has, which inputs
//! must agree in element type, and how its outputs follow from its inputs.

mod activation;
mod attributes;
mod blocks;
mod body;
mod broadcast;
mod color;
mod common;
mod context;
mod conversion;
mod convert;
mod convolution;
mod ctc;
mod detection;
#[cfg(test)]
mod double;
mod elementwise;
mod embedding;
pub(crate) mod evaluate;
mod extend;
mod fft;
mod gather;
mod generate;
mod image;
mod indexing;
mod interpolate;
mod join;
mod kind;
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
mod stranger;
mod text;
pub mod values;
mod variable;

use std::ops::RangeInclusive;
use std::sync::LazyLock;

pub(crate) use attributes::{Attr, AttrKind, AttributeValues, Attributes, Finding, List};
pub(crate) use body::check_port_maps;
pub(crate) use context::{BodyInput, Context, Fault, Given, Outputs, Spot, Subject, Surroundings};
pub use conversion::{Conversion, conversion};
pub(crate) use convert::promotion;
pub(crate) use indexing::{Axis, UseOfValues, use_of_values};
pub use kind::{LayerKind, kind};
pub(crate) use kind::{is_constant, is_own, is_promotion};
pub use promotion::Setting;
pub(crate) use promotion::{OTHER_TYPES, PromotionRule, promotion_rule, setting, write_deciding};
pub use release::{Feature, Release, Requirement, Requirements, UnknownRelease};
pub(crate) use stranger::{Stranger, describe_stranger, is_own_opset};
pub use typelift_promote::PromotedAs;

use rustc_hash::FxHashMap;
use typelift_promote::ElementType;

use self::evaluate::Evaluate;
use crate::model::graph::Layer;

/// Every family of rows.
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

/// What is known of one revision of an operation.
#[derive(Clone, Copy)]
pub struct Operation {
    name: &'static str,
    revision: u8,
    /// Bit n: operation set n has this revision.
    opsets: u32,
    inputs: (usize, usize),
    attributes: &'static [Attr],
    ties: Ties,
    accepts: Accepts,
    floats: &'static [usize],
    /// Inputs whose values say a shape or a place, so that OpenVINO keeps the precision of all that they come from.
    shaping: &'static [usize],
    tied_when_run: bool,
    kind: LayerKind,
    commutative: bool,
    spreads: &'static [Spread],
    /// Whether what it computes of integers can lie beyond their type, or lose its fraction.
    can_wrap: bool,
    /// Whether it gives something else each time.
    random: bool,
    promoted_as: PromotedAs,
    /// Attributes that its specification requires and OpenVINO's reader does not: it takes a value of its own.
    required: &'static [&'static str],
    infer: fn(&mut Context) -> Result<(), Fault>,
    evaluate: Evaluate,
}

/// Which inputs of an operation must have one element type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ties {
    /// None.
    None,
    /// All of them.
    All,
    /// Those at these positions.
    Inputs(&'static [usize]),
    /// Those at each of these lists of positions.
    Groups(&'static [&'static [usize]]),
    /// Those at these positions, and the one at `mask` unless it is boolean.
    Mask {
        /// The positions.
        inputs: &'static [usize],
        /// The position of the mask.
        mask: usize,
    },
}

impl Ties {
    /// The groups of tied inputs of a layer whose inputs have these types.
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

/// What OpenVINO's plugins decide on the precision of a layer, and of its neighbours with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spread {
    /// It computes in f32.
    Kept,
    /// It follows a FakeQuantize, and need not compute in f32.
    Quantized,
    /// It works with a range of floating-point numbers, and computes in f32.
    Range,
}

/// Which element types an operation takes in its main input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Accepts {
    /// Every one.
    Any,
    /// All but boolean and string.
    Numeric,
    /// All but boolean.
    NotBoolean,
    /// Floating point, except the coded `nf4`.
    Real,
    /// Everything that is not floating point; to OpenVINO `nf4` and string are not.
    Bits,
    /// As `Bits`, without boolean.
    Integer,
    /// Boolean.
    Boolean,
}

impl Accepts {
    /// Whether it takes `ty`. Everything takes `dynamic`.
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

    /// What it takes, in words.
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
    /// A row of a table: the operation `name` in its revision `revision`, which is the first operation set that has it,
    /// 0 counting as 1. It is in every later set up to 16, unless the row says otherwise: set 17 holds few operations.
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

    /// The same, first found in operation set `first`.
    const fn since(mut self, first: u8) -> Self {
        self.opsets &= !((1 << first) - 1);
        self
    }

    /// The same, last found in operation set `last`.
    const fn until(mut self, last: u8) -> Self {
        self.opsets &= (1 << (last + 1)) - 1;
        self
    }

    /// The same, not found in operation set `opset`.
    const fn except(mut self, opset: u8) -> Self {
        self.opsets &= !(1 << opset);
        self
    }

    /// The same, found in operation set `opset` too.
    const fn and(mut self, opset: u8) -> Self {
        self.opsets |= 1 << opset;
        self
    }

    /// The same with `least` to `most` inputs; one where the row does not say.
    const fn inputs(mut self, least: usize, most: usize) -> Self {
        self.inputs = (least, most);
        self
    }

    /// The same with these attributes; none where the row does not say.
    const fn attributes(mut self, attributes: &'static [Attr]) -> Self {
        self.attributes = attributes;
        self
    }

    /// The same with inputs that must agree in element type; none where the row does not say.
    const fn ties(mut self, ties: Ties) -> Self {
        self.ties = ties;
        self
    }

    /// The same with a main input of these types; any where the row does not say.
    const fn accepts(mut self, accepts: Accepts) -> Self {
        self.accepts = accepts;
        self
    }

    /// The same with ties of which OpenVINO's reader does not look at all, but its plugins do.
    const fn tied_when_run(mut self) -> Self {
        self.tied_when_run = true;
        self
    }

    /// The same, being of this kind; of none where the row does not say.
    const fn kind(mut self, kind: LayerKind) -> Self {
        self.kind = kind;
        self
    }

    /// The same, giving the same when its two inputs change places.
    const fn commutative(mut self) -> Self {
        self.commutative = true;
        self
    }

    /// The same, through which these decisions on precision spread; none where the row does not say.
    const fn spreads_on(mut self, spreads: &'static [Spread]) -> Self {
        self.spreads = spreads;
        self
    }

    /// The same, computing of integers what can lie beyond their type, or lose its fraction.
    const fn wraps(mut self) -> Self {
        self.can_wrap = true;
        self
    }

    /// The same, giving something else each time.
    const fn random(mut self) -> Self {
        self.random = true;
        self
    }

    /// The same with attributes that its specification requires and OpenVINO's reader does not.
    const fn requires(mut self, attributes: &'static [&'static str]) -> Self {
        self.required = attributes;
        self
    }

    /// The same with inputs that frameworks promote in this way; in the ordinary one where the row does not say.
    const fn promoted_as(mut self, promoted_as: PromotedAs) -> Self {
        self.promoted_as = promoted_as;
        self
    }

    /// The same with inputs, besides the main one and those tied to it, that take floating point only.
    const fn floats(mut self, inputs: &'static [usize]) -> Self {
        self.floats = inputs;
        self
    }

    /// The same with inputs of which OpenVINO keeps the precision of all that they come from.
    const fn shaped_by(mut self, inputs: &'static [usize]) -> Self {
        self.shaping = inputs;
        self
    }

    /// The same with a way to find values of its outputs; none where the row does not say.
    const fn evaluate(mut self, evaluate: Evaluate) -> Self {
        self.evaluate = evaluate;
        self
    }

    /// The name that OpenVINO's operation sets give it: `Relu`, `Constant`.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The operation set that brought this revision of it; 0 for those of the first set that were never revised.
    pub fn revision(&self) -> u8 {
        self.revision
    }

    /// The operation sets that have it, oldest first.
    pub fn opsets(&self) -> impl Iterator<Item = u8> + use<> {
        let opsets = self.opsets;
        (1..=LAST_OPSET).filter(move |opset| opsets >> opset & 1 == 1)
    }

    /// How many inputs it takes.
    pub fn input_counts(&self) -> RangeInclusive<usize> {
        self.inputs.0..=self.inputs.1
    }

    /// The inputs of which OpenVINO keeps the precision of all that they come from: their values say a shape or a place.
    pub(crate) fn shaping_inputs(&self) -> &'static [usize] {
        self.shaping
    }

    /// Which of its inputs must have one element type.
    pub fn tied_inputs(&self) -> Ties {
        self.ties
    }

    /// The inputs of a layer whose inputs have these types: those that must agree, group by group, then each other one by
    /// itself.
    pub(crate) fn input_groups(&self, types: &[ElementType]) -> Vec<Vec<usize>> {
        let mut groups = self.ties.groups(types);
        let mut alone = vec![true; types.len()];
        groups.iter().flatten().for_each(|&input| alone[input] = false);
        groups.extend((0..types.len()).filter(|&input| alone[input]).map(|input| vec![input]));
        groups
    }

    /// What layers of it are to their graph. Of one layer, ask [`kind()`].
    pub fn layer_kind(&self) -> LayerKind {
        self.kind
    }

    /// Whether it gives the same for the same inputs each time.
    pub(crate) fn is_repeatable(&self) -> bool {
        !self.random
    }

    /// Attributes that its specification requires and OpenVINO's reader does not: it takes a value of its own where a file
    /// lacks them.
    pub(crate) fn required_attributes(&self) -> &'static [&'static str] {
        self.required
    }

    /// Those of them that a layer lacks.
    pub(crate) fn missing_attributes<'l>(&self, layer: &'l Layer) -> impl Iterator<Item = &'static str> + use<'l> {
        // Padding that is worked out is not read from the file.
        let padding = layer.attribute("auto_pad").is_none_or(|text| text.eq_ignore_ascii_case("explicit"));
        let required = self.required.iter().copied().filter(move |name| padding || !name.starts_with("pads_"));
        required.filter(|name| layer.attribute(name).is_none())
    }

    /// Whether it gives the same when its two inputs change places.
    pub fn is_commutative(&self) -> bool {
        self.commutative
    }

    /// Whether a decision on precision spreads through it.
    pub(crate) fn spreads(&self, what: Spread) -> bool {
        self.spreads.contains(&what)
    }

    /// How frameworks promote its inputs.
    pub fn promotion(&self) -> PromotedAs {
        self.promoted_as
    }

    /// Which element types it takes in its main input.
    pub fn accepted(&self) -> Accepts {
        self.accepts
    }

    /// Whether OpenVINO reads the operation with tied inputs that differ, and cannot run it.
    pub fn is_tied_when_run(&self) -> bool {
        self.tied_when_run
    }

    /// Whether what it computes of integers can lie beyond their type, or lose its fraction.
    pub(crate) fn can_wrap(&self) -> bool {
        self.can_wrap
    }

    /// Whether `input` is the main input, which is the first one, or tied to it.
    pub fn is_main(&self, input: usize) -> bool {
        input == 0
            || match self.ties {
                Ties::None => false,
                Ties::All => true,
                Ties::Inputs(group) | Ties::Mask { inputs: group, .. } => group.contains(&0) && group.contains(&input),
                Ties::Groups(groups) => groups.iter().any(|group| group.contains(&0) && group.contains(&input)),
            }
    }

    /// Whether `input` takes floating point only.
    pub fn takes_only_floats(&self, input: usize) -> bool {
        self.accepts == Accepts::Real && self.is_main(input) || self.floats.contains(&input)
    }

    /// What an attribute says where a file does not; `None` where a file must, or the operation does not have it.
    pub fn default_of(&self, attribute: &str) -> Option<&'static str> {
        self.attribute(attribute)?.default
    }

    pub(crate) fn attribute(&self, name: &str) -> Option<&'static Attr> {
        self.attributes.iter().find(|attribute| attribute.name == name)
    }

    /// The names of its attributes.
    pub(crate) fn attribute_names(&self) -> impl Iterator<Item = &'static str> + use<> {
        self.attributes.iter().map(|attribute| attribute.name)
    }

    /// Its attributes that hold one of a list of words, each with that list.
    pub fn enumerations(&self) -> impl Iterator<Item = (&'static str, &'static [&'static str])> + use<> {
        self.attributes.iter().filter_map(|attribute| match attribute.kind {
            AttrKind::Enum(words) => Some((attribute.name, words)),
            _ => None,
        })
    }

    /// Its attributes that are element types.
    pub(crate) fn type_attributes(&self) -> impl Iterator<Item = &'static Attr> {
        self.attributes.iter().filter(|attribute| matches!(attribute.kind, AttrKind::Type))
    }

    /// Those of them that say the type of an output, and so change with it.
    pub(crate) fn output_type_attributes(&self) -> impl Iterator<Item = &'static Attr> {
        self.type_attributes().filter(|attribute| attribute.types_output)
    }

    /// Whether its values can be found, where those of its inputs are known.
    pub(crate) fn is_evaluated(&self) -> bool {
        !matches!(self.evaluate, Evaluate::Never)
    }

    pub(crate) fn evaluator(&self) -> Evaluate {
        self.evaluate
    }
}

/// Every row, family by family.
static ROWS: LazyLock<Vec<&'static Operation>> = LazyLock::new(|| FAMILIES.iter().copied().flatten().collect());

/// Every row, family by family.
pub fn all() -> impl Iterator<Item = &'static Operation> {
    ROWS.iter().copied()
}

/// The row for a layer of type `ty` and operation set `version`, both as a file spells them, or `None` where no
/// operation set of OpenVINO's has it; an extension may.
///
/// As OpenVINO's reader, it does not care about upper and lower case, reads `Const` for `Constant`, and takes some
/// operations of the first set from the second, and old `experimental` and `extension` ones from the sixth.
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
    rows.iter().copied().find(|row| row.opsets >> opset & 1 == 1)
}

impl Layer {
    /// What is known of its operation: what [`lookup`](crate::ops::lookup()) finds, which is remembered.
    ///
    /// # Examples
    /// ```
    /// # let model = typelift::Model::open(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/model.xml"))?;
    /// let relu = model.graph().layer(model.graph().find("relu")?).unwrap();
    /// assert_eq!(relu.operation().unwrap().name(), "Relu");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn operation(&self) -> Option<&'static Operation> {
        let row = self.operation_name.row(|ty, version| {
            let found = lookup(ty, version)?;
            u16::try_from(ROWS.iter().position(|row| std::ptr::eq(*row, found))?).ok()
        });
        ROWS.get(usize::from(row?)).copied()
    }
}

/// The number of an operation set, where it has one or two digits as nearly all have, or in whatever way it is written.
fn opset_number(text: &str) -> Option<u8> {
    match *text.as_bytes() {
        [ones @ b'0'..=b'9'] => Some(ones - b'0'),
        [tens @ b'0'..=b'9', ones @ b'0'..=b'9'] => Some((tens - b'0') * 10 + (ones - b'0')),
        _ => text.parse().ok(),
    }
}

/// Every row of the operation that a file spells `ty`.
pub(crate) fn revisions(ty: &str) -> &'static [&'static Operation] {
    static BY_NAME: LazyLock<FxHashMap<&str, Vec<&'static Operation>>> = LazyLock::new(|| {
        let mut by_name = FxHashMap::<_, Vec<_>>::default();
        for row in all() {
            by_name.entry(row.name).or_default().push(row);
            if let Some(&(spelling, _)) = SPELLINGS.iter().find(|(_, name)| *name == row.name) {
                by_name.entry(spelling).or_default().push(row);
            }
        }
        by_name
    });
    // OpenVINO knows the other spellings in this case only.
    let in_any_case =
        || BY_NAME.values().find(|rows| rows.first().is_some_and(|row| row.name.eq_ignore_ascii_case(ty)));
    BY_NAME.get(ty).or_else(in_any_case).map_or(&[], Vec::as_slice)
}

/// The first operation set that has the operation that a file spells `ty`, as a file spells it.
pub(crate) fn first_version(ty: &str) -> Option<String> {
    let opset = revisions(ty).iter().filter_map(|row| row.opsets().next()).min()?;
    Some(format!("opset{opset}"))
}

/// How files spell the names that they spell otherwise.
const SPELLINGS: &[(&str, &str)] =
    &[("Const", "Constant"), ("ReLU", "Relu"), ("PReLU", "PRelu"), ("SoftMax", "Softmax")];

/// Operations that files had before there were operation sets for them.
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

/// How a file spells the operation `name`.
pub(crate) fn file_spelling(name: &'static str) -> &'static str {
    SPELLINGS.iter().find(|(_, class)| *class == name).map_or(name, |(spelling, _)| spelling)
}
