//! Findings about a model, as data: a stable code, a sentence, the place, the rule and the fixes.

mod about;
mod document;
mod edit;
mod fix;
mod formats;
mod key;
#[cfg(test)]
mod tests;
mod words;

use std::path::Path;
use std::sync::Arc;

use serde::Serialize;
use typelift_promote::ElementType;

use crate::base::span::Span;
use crate::model::graph::{Layer, LayerId, Place};
use crate::model::shape::Shape;

pub use about::About;
pub use document::{Count, Document};
pub use edit::TextEdit;
pub use fix::{Applicability, Fix, FixAction, Owner, Proof, Rules};
pub use formats::{Format, Frame};
pub use key::{Comparison, FindingKey, Known, Subject};
pub(crate) use words::list;
pub use words::{Voice, grouped, reason, shell_command, shell_word};

/// The severity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth knowing; nothing is wrong.
    Note,
    /// OpenVINO accepts it silently, but it is probably a mistake.
    Warning,
    /// OpenVINO refuses the model.
    Error,
}

macro_rules! codes {
    ($($(#[doc = $doc:literal])* $variant:ident $name:literal $severity:ident;)*) => {
        /// The kind of a diagnostic: a stable word, the same in every release and in `docs/diagnostics.md`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Code { $($(#[doc = $doc])* $variant,)* }

        impl Code {
            /// Every code.
            pub const ALL: &'static [Code] = &[$(Code::$variant,)*];

            /// Returns the stable word, `unknown-layer`.
            pub fn name(self) -> &'static str {
                match self { $(Code::$variant => $name,)* }
            }

            /// Returns the meaning in one sentence.
            pub fn summary(self) -> &'static str {
                match self { $(Code::$variant => concat!($($doc),*).trim_start(),)* }
            }

            /// Returns the severity of every diagnostic with this code.
            pub fn severity(self) -> Severity {
                match self { $(Code::$variant => Severity::$severity,)* }
            }
        }
    };
}

codes! {
    /// The text is not well-formed XML.
    XmlSyntax "xml-syntax" Error;
    /// The text is not an OpenVINO IR.
    NotAnIr "not-an-ir" Error;
    /// The IR version is missing or not 10 or 11.
    UnsupportedVersion "unsupported-version" Error;
    /// An attribute that must be there is missing.
    MissingAttribute "missing-attribute" Error;
    /// An attribute or text has a value that cannot be read.
    InvalidValue "invalid-value" Error;
    /// Elements nest deeper than any real model's.
    NestingTooDeep "nesting-too-deep" Error;
    /// In a file of version 10, the name of a layer at an input or output is that of another tensor.
    NameCollision "name-collision" Error;
    /// An edge starts at a layer that is not there.
    UnknownLayer "unknown-layer" Error;
    /// An edge names a port that its layer does not have.
    UnknownPort "unknown-port" Error;
    /// Two edges end at one input port.
    InputFedTwice "input-fed-twice" Error;
    /// An input port is fed by no edge.
    UnconnectedInput "unconnected-input" Error;
    /// Layers form a cycle.
    Cycle "cycle" Error;
    /// A body, or the map of its ports, is missing or names what is not there.
    InvalidBody "invalid-body" Error;
    /// An `rt_info` attribute that may appear once appears twice.
    DuplicateRtInfo "duplicate-rt-info" Error;
    /// A constant's offset, size, shape and the weights file do not fit together.
    InvalidConstant "invalid-constant" Error;
    /// The weights file cannot be the model's: it is too short, empty, or a Git LFS pointer.
    WrongWeights "wrong-weights" Error;
    /// The operation takes another number of inputs.
    WrongInputCount "wrong-input-count" Error;
    /// Inputs that must have one element type have several.
    TypeMismatch "type-mismatch" Error;
    /// The operation does not take this element type.
    UnsupportedType "unsupported-type" Error;
    /// The promotion rules give the inputs no common type.
    NoCommonType "no-common-type" Error;
    /// Shapes do not fit together under the operation's rule.
    ShapeMismatch "shape-mismatch" Error;
    /// An `Assign` without the `ReadValue` of its variable.
    UnknownVariable "unknown-variable" Error;
    /// The operation set that a layer names does not have its operation, and another one has.
    WrongOpset "wrong-opset" Error;
    /// No operation set has the operation, and its name is a misspelling or another program's word for one that they have.
    MisnamedOperation "misnamed-operation" Error;
    /// The OpenVINO release that was asked for does not read it.
    NewerThanTarget "newer-than-target" Error;

    /// The operation or its opset is not known here; it goes through as declared.
    UnknownOperation "unknown-operation" Warning;
    /// Two layers have one id; OpenVINO keeps the later.
    DuplicateLayerId "duplicate-layer-id" Warning;
    /// Several layers of one graph have one name.
    DuplicateLayerName "duplicate-layer-name" Warning;
    /// The name of a layer begins or ends with spaces, which OpenVINO keeps.
    PaddedName "padded-name" Warning;
    /// Several output tensors of one graph share a name.
    DuplicateTensorName "duplicate-tensor-name" Warning;
    /// Two ports of a layer have one id.
    DuplicatePortId "duplicate-port-id" Warning;
    /// An attribute appears twice in one element; the first counts.
    DuplicateAttribute "duplicate-attribute" Warning;
    /// Text or elements outside the root are ignored.
    ContentOutsideRoot "content-outside-root" Warning;
    /// An edge to a layer that is not there is ignored.
    EdgeToUnknownLayer "edge-to-unknown-layer" Warning;
    /// A layer that reaches no Result and no Assign is dropped by OpenVINO.
    UnreachableLayer "unreachable-layer" Warning;
    /// An attribute that the operation, the element or the metadata does not have is ignored.
    UnknownAttribute "unknown-attribute" Warning;
    /// An element the format does not have is ignored.
    UnknownElement "unknown-element" Warning;
    /// A boolean that is neither true nor false leaves the attribute at its default.
    InvalidBoolean "invalid-boolean" Warning;
    /// A number is followed by something else, which is ignored.
    TrailingJunk "trailing-junk" Warning;
    /// A port declares another type or shape than inference finds.
    StalePort "stale-port" Warning;
    /// An input port declares a type that does not exist.
    UnknownPortType "unknown-port-type" Warning;
    /// A Parameter without a shape is a scalar, one without a type is dynamic.
    IncompleteParameter "incomplete-parameter" Warning;
    /// A dimension's text means something else than it seems to.
    OddDimension "odd-dimension" Warning;
    /// A constant's `size` is larger than its type and shape need.
    OversizedConstant "oversized-constant" Warning;
    /// A constant's offset is not a multiple of its element size, and no constant ends there.
    UnalignedConstant "unaligned-constant" Warning;
    /// Two constants share some of their bytes.
    OverlappingConstants "overlapping-constants" Warning;
    /// Bytes of the weights file belong to no constant.
    UnreferencedWeights "unreferenced-weights" Warning;
    /// The model has constants and no weights file.
    MissingWeights "missing-weights" Warning;
    /// A `&` that does not begin an entity of XML, or a `<` in a name, is kept as text.
    BareAmpersand "bare-ampersand" Warning;
    /// Legacy metadata is dropped where the file also has `rt_info`.
    IgnoredMetadata "ignored-metadata" Warning;
    /// OpenVINO calls this promotion safe, although values can be lost.
    LossySafePromotion "lossy-safe-promotion" Warning;
    /// Values of a constant do not survive a conversion that was put in.
    LossyConversion "lossy-conversion" Warning;
    /// The weights of a layer cannot be quantized as asked.
    CannotQuantize "cannot-quantize" Error;
    /// The file says what a device ran for a model, and is not a model.
    ExecutionGraph "execution-graph" Error;
    /// A device converts weights of few bits to floats when it compiles the model.
    WeightsUnfold "weights-unfold" Warning;
    /// A device converts 16-bit weights to f32, because a mark is missing.
    WeightsUnmarked "weights-unmarked" Warning;
    /// Quantized weights have a scale for each column, which a device computes wrongly.
    ScaleAlongColumns "scale-along-columns" Error;
    /// A length has no upper bound, which a device needs.
    OpenDim "open-dim" Error;
    /// The rank of a tensor is not known, and no device computes it.
    OpenRank "open-rank" Error;
    /// A device does not compute with an element type.
    TypeRefused "type-refused" Error;
    /// A device has no kernel for an operation in an element type.
    OperationType "operation-type" Error;
    /// A layer that is quantized in part is computed in floats.
    NotQuantized "not-quantized" Warning;
    /// Text is computed on the CPU only.
    StringOnDevice "string-on-device" Error;
    /// The mask of an attention is boolean, which older releases of a device refuse.
    BooleanMask "boolean-mask" Error;
    /// Values of f64 are beyond the largest f32, in which a device computes them.
    BeyondF32 "beyond-f32" Warning;
    /// An operation in bf16 fails on a device.
    Bf16OnGpu "bf16-on-gpu" Warning;
    /// Weights of four bits have a form that a device does not support.
    AsymmetricInt4 "asymmetric-int4" Warning;
    /// A plugin converted weights of few bits to a wider type.
    RanUnfolded "ran-unfolded" Warning;
    /// A plugin computed a quantized layer in floats.
    RanNotQuantized "ran-not-quantized" Warning;
    /// A plugin has no kernel for a layer, and ran slow reference code.
    RanReference "ran-reference" Warning;
    /// The promotion cannot be decided before run time, so the operation stays.
    UndecidedPromotion "undecided-promotion" Warning;

    /// An attribute that the operation requires is missing, and OpenVINO assumes a value.
    AssumedAttribute "assumed-attribute" Warning;
    /// The condition of an If or Loop is not boolean.
    ConditionType "condition-type" Warning;
    /// Something uses a Result.
    UsedResult "used-result" Warning;
    /// The port map of a Loop is wrong: no entry says if it continues, its slices do not fit, or a Parameter has two
    /// inputs or none.
    IncompletePortMap "incomplete-port-map" Warning;
    /// A back edge hands on a tensor of another rank than the loop starts from.
    UnstableState "unstable-state" Warning;
    /// The hidden size of a recurrent operation is not that of its weights.
    InconsistentSize "inconsistent-size" Warning;
    /// A 16-bit constant has values that are infinite or not a number.
    NonFiniteConstant "non-finite-constant" Warning;
    /// A Convert leaves nothing of values of the constant before it.
    DestroyedValues "destroyed-values" Warning;
    /// Version 10 of the format does not hold what the file had.
    Version10Loss "version-10-loss" Warning;
    /// An epsilon that keeps a divisor, a negative power or a logarithm away from zero becomes zero or subnormal in a
    /// narrower type.
    EpsilonLost "epsilon-lost" Warning;
    /// Exponents that are summed up get beyond the largest number of a narrower type.
    ExponentOverflow "exponent-overflow" Warning;
    /// Squares that are summed up get beyond the largest number of a narrower type.
    SquareOverflow "square-overflow" Warning;
    /// Two masks add up to what a narrower type makes infinite.
    MaskOverflow "mask-overflow" Warning;
    /// Integers are beyond the largest number of a narrower floating-point type.
    IntegerOverflow "integer-overflow" Warning;
    /// Integers go through a narrower floating-point type that does not have them all.
    IndexRounded "index-rounded" Warning;
    /// Numbers are counted up further than a narrower type tells them apart.
    CountRounded "count-rounded" Warning;
    /// A mark that keeps the precision of a layer means nothing to the release that was asked for.
    LostMark "lost-mark" Warning;
    /// A Reshape has a constant shape that was written for other lengths than those that come in.
    HardCodedShape "hard-coded-shape" Warning;

    /// Operations without an inference rule keep what the file declares.
    DeclaredOutputs "declared-outputs" Note;
    /// The oldest OpenVINO release that reads the file.
    RequiredRelease "required-release" Note;
    /// `Core.read_model` converts inputs and outputs of a file of version 10.
    LegacyTypes "legacy-types" Note;
    /// Integers that are known do not fit into 32 bits, in which OpenVINO's CPU plugin computes i64.
    BeyondI32 "beyond-i32" Note;
    /// Integers are computed as f32, which does not represent all of them.
    IntegerThroughFloat "integer-through-float" Note;
    /// A device stores keys and values of attention in 8 bits.
    CacheU8 "cache-u8" Note;
    /// A plugin computed results in fewer bits than the model declares.
    RanNarrower "ran-narrower" Note;
}

impl Serialize for Code {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// The layer of a diagnostic.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[non_exhaustive]
pub struct LayerRef {
    /// The layer's id in the file.
    pub id: LayerId,
    /// The name.
    pub name: String,
    /// The graph that it lies in. Written as the names on the way, `loop/body`; empty for the model's own graph.
    #[serde(rename = "path", serialize_with = "as_path")]
    pub place: Place,
}

fn as_path<S: serde::Serializer>(place: &Place, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(place.path())
}

impl LayerRef {
    /// A layer of the graph at a place.
    #[must_use]
    pub fn of(place: &Place, layer: &Layer) -> Self {
        Self::named(place, layer.id(), layer.name())
    }

    /// Like [`of`](Self::of), for a layer that is not read yet.
    pub(crate) fn named(place: &Place, id: LayerId, name: &str) -> Self {
        Self { id, name: name.to_owned(), place: place.clone() }
    }

    /// Returns the names of the bodies it lies in, outermost first: `loop/body`; empty in the model's own graph.
    #[must_use]
    pub fn path(&self) -> &str {
        self.place.path()
    }

    /// Returns the layer's name after the names of the bodies around it: `loop/body/add`.
    #[must_use]
    pub fn full_name(&self) -> String {
        self.place.path_to(&self.name)
    }
}

/// A place in the source with a few words about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Label {
    /// The bytes it points at.
    pub span: Span,
    /// The text at the place.
    pub message: String,
}

/// A tensor that explains a diagnostic, with the layer that produces it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Related {
    /// The layer that produces the tensor.
    pub layer: LayerRef,
    /// The byte range.
    pub span: Span,
    /// Returns the element type of the tensor.
    pub element_type: ElementType,
    /// The shape of the tensor.
    pub shape: Shape,
    /// The operation of the layer.
    pub operation: String,
    /// The input of the layer with the diagnostic that the tensor comes in at.
    pub input: usize,
    /// The role of the input in its operation, if it matters: `the trip count`.
    pub role: Option<&'static str>,
}

/// An error, warning or note about a model.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Diagnostic {
    /// The severity.
    pub severity: Severity,
    /// The stable word for its kind.
    pub code: Code,
    /// The subject as data.
    pub about: Box<About>,
    /// The message, one sentence without a full stop.
    pub message: String,
    /// The layer.
    pub layer: Option<LayerRef>,
    /// The places: first that of the finding, then others that explain it.
    pub labels: Vec<Label>,
    /// The tensors that led to it, with their producers.
    pub related: Vec<Related>,
    /// Other facts that led to it.
    pub notes: Vec<String>,
    /// The layers that do not accept what this one gives, where that is how the mistake shows.
    pub consequences: Vec<LayerRef>,
    /// The fixes, most likely first.
    pub fixes: Vec<Fix>,
}

impl Diagnostic {
    /// Creates a diagnostic of `code`'s severity that says `message`, without a place.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            severity: code.severity(),
            code,
            about: Box::default(),
            message: words::said(message.into()),
            layer: None,
            labels: Vec::new(),
            related: Vec::new(),
            notes: Vec::new(),
            consequences: Vec::new(),
            fixes: Vec::new(),
        }
    }

    /// Returns the same, pointing also at `span`; the first label is the main one.
    #[must_use]
    pub fn at(mut self, span: Span, message: impl Into<String>) -> Self {
        // Most have one of each, and a misshapen file has many findings.
        self.labels.reserve_exact(1);
        self.labels.push(Label { span, message: words::said(message.into()) });
        self
    }

    /// Returns the same, with a fact that led to it.
    #[must_use]
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.notes.reserve_exact(1);
        self.notes.push(words::said(note.into()));
        self
    }

    /// Returns the same, about this.
    #[must_use]
    pub fn about(mut self, about: About) -> Self {
        self.about = Box::new(about);
        self
    }

    /// True if OpenVINO refuses the model because of this finding.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

/// All findings of one model, with the text into which their spans point.
///
/// As an error it prints one line a diagnostic, `FILE:LINE:COLUMN: error[CODE]: MESSAGE`.
#[derive(Clone, Default)]
pub struct Diagnostics {
    /// The name of the source: a path, or `<stdin>`.
    pub file: String,
    /// Returns the text.
    pub source: Arc<String>,
    /// The findings, in the order of the file.
    pub list: Vec<Diagnostic>,
}

impl Diagnostics {
    /// Creates an empty list for `source`, which came from `file`.
    pub fn new(file: impl AsRef<Path>, source: Arc<String>) -> Self {
        Self { file: file.as_ref().display().to_string(), source, list: Vec::new() }
    }

    /// True if OpenVINO refuses the model.
    pub fn has_errors(&self) -> bool {
        self.list.iter().any(Diagnostic::is_error)
    }
}
