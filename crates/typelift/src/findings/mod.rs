//! Findings about a model, as data: code, message, position, the rule that was violated, and fixes.

mod about;
mod document;
mod edit;
mod fix;
mod formats;
mod key;
mod message;
#[cfg(test)]
mod tests;
mod words;

use std::path::Path;
use std::sync::Arc;

use serde::Serialize;
use typelift_promote::ElementType;

use crate::model::graph::{Layer, LayerId, OutputPort, Place};
use crate::model::shape::Shape;

pub use crate::base::span::{Lines, Span};
pub use about::{About, SubjectKind};
pub use document::{Count, Document, FileName};
pub use edit::TextEdit;
pub(crate) use fix::replaced_by;
pub use fix::{Applicability, Fix, FixAction, Owner, Proof, Rules};
pub use formats::{Format, Frame};
pub(crate) use key::FindingKey;
pub use key::{Comparison, Known};
pub(crate) use message::message;
pub use message::{Argument, Kind, Message, Text, Value};
pub use words::{
    commands::{reason, shell_word},
    fixes::{Remedy, Voice, shell_command},
    grouped, size,
};
pub(crate) use words::{described, limits, list, short};

/// The severity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// A fact worth knowing; nothing is wrong.
    Note,
    /// OpenVINO accepts it silently, but it is probably a mistake.
    Warning,
    /// OpenVINO refuses the model.
    Error,
}

/// Mistake in the text that can cause a finding. It decides which fixes are tried.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cause {
    /// No edit of the text is a fix.
    NotText,
    /// The file contradicts itself, although OpenVINO accepts it.
    Contradiction,
    /// A misspelled tag or attribute.
    Text,
    /// A mistake in the ids of a whole graph.
    Graph,
    /// A wrong id of a layer.
    Id,
    /// A fault in ids, edges or ports, which makes several explanations of an edge possible.
    Wiring,
    /// A mistake in the offsets of all constants.
    Offsets,
    /// A type that was replaced in several layers.
    Types,
    /// The values of constants, so that the finding says nothing about a file with the weights of another model.
    Values,
}

macro_rules! codes {
    ($($(#[doc = $doc:literal])* $variant:ident $name:literal $severity:ident $($cause:ident)*;)*) => {
        /// Kind of a finding: a stable code, the same in every release and in `docs/diagnostics.md`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Code { $($(#[doc = $doc])* $variant,)* }

        impl Code {
            /// Every code.
            pub const ALL: &'static [Code] = &[$(Code::$variant,)*];

            /// Returns the stable code, such as `unknown-layer`.
            pub fn name(self) -> &'static str {
                match self { $(Code::$variant => $name,)* }
            }

            /// Returns the meaning of the code in one sentence.
            pub fn summary(self) -> &'static str {
                match self { $(Code::$variant => concat!($($doc),*).trim_start(),)* }
            }

            /// Returns the severity of every finding with this code.
            pub fn severity(self) -> Severity {
                match self { $(Code::$variant => Severity::$severity,)* }
            }

            pub(crate) fn has(self, cause: Cause) -> bool {
                let causes: &[Cause] = match self { $(Code::$variant => &[$(Cause::$cause),*],)* };
                causes.contains(&cause)
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
    /// A required attribute is missing.
    MissingAttribute "missing-attribute" Error Text Id;
    /// An attribute or text has a value that cannot be read.
    InvalidValue "invalid-value" Error Text Id Offsets;
    /// Elements are nested too deeply.
    NestingTooDeep "nesting-too-deep" Error;
    /// In a file of version 10, an input or output layer has the name of another tensor.
    NameCollision "name-collision" Error;
    /// An edge starts at a layer that does not exist.
    UnknownLayer "unknown-layer" Error Text Graph Id Wiring;
    /// An edge names a port that its layer does not have.
    UnknownPort "unknown-port" Error Text Graph Wiring;
    /// Two edges end at one input port.
    InputFedTwice "input-fed-twice" Error Graph Wiring;
    /// No edge ends at an input port.
    UnconnectedInput "unconnected-input" Error Text Graph Id Wiring;
    /// Layers form a cycle.
    Cycle "cycle" Error Graph Wiring;
    /// A body or its port map is missing, or names a layer or port that does not exist.
    InvalidBody "invalid-body" Error Wiring;
    /// An `rt_info` attribute that may appear once appears twice.
    DuplicateRtInfo "duplicate-rt-info" Error;
    /// A constant's offset, size and shape contradict each other or the weights file.
    InvalidConstant "invalid-constant" Error Offsets Types;
    /// The weights file does not belong to the model: it is too short, empty, or a Git LFS pointer.
    WrongWeights "wrong-weights" Error NotText Offsets;
    /// A layer has a different number of inputs than its operation requires.
    WrongInputCount "wrong-input-count" Error Text Graph Id Wiring;
    /// Inputs that must have the same element type have different ones.
    TypeMismatch "type-mismatch" Error Graph Types;
    /// The operation does not support this element type.
    UnsupportedType "unsupported-type" Error;
    /// The promotion rules define no common type for the inputs.
    NoCommonType "no-common-type" Error Types;
    /// The shapes of a layer's inputs contradict the rule of its operation.
    ShapeMismatch "shape-mismatch" Error Graph Offsets;
    /// No length of an open dimension satisfies two layers.
    ShapeConflict "shape-conflict" Error NotText;
    /// An `Assign` has no `ReadValue` with the same variable.
    UnknownVariable "unknown-variable" Error;
    /// The operation is not in the layer's operation set, but in another one.
    WrongOpset "wrong-opset" Error;
    /// The operation exists in no operation set; its name is a misspelling or another framework's name.
    MisnamedOperation "misnamed-operation" Error;
    /// The target release of OpenVINO does not support a layer or its type.
    NewerThanTarget "newer-than-target" Error NotText;

    /// The operation is unknown; the outputs of the layer are kept as declared.
    UnknownOperation "unknown-operation" Warning;
    /// Two layers have the same id; OpenVINO uses the later one.
    DuplicateLayerId "duplicate-layer-id" Warning Graph Id Wiring;
    /// Several layers of one graph have the same name.
    DuplicateLayerName "duplicate-layer-name" Warning NotText Graph;
    /// A layer name begins or ends with spaces, which OpenVINO keeps.
    PaddedName "padded-name" Warning;
    /// Several output tensors of one graph have the same name.
    DuplicateTensorName "duplicate-tensor-name" Warning NotText;
    /// An input of a model with tensor names has none.
    NamelessInput "nameless-input" Warning;
    /// Two ports of a layer have the same id.
    DuplicatePortId "duplicate-port-id" Warning Wiring;
    /// An attribute appears twice in one element; the first counts.
    DuplicateAttribute "duplicate-attribute" Warning;
    /// Text or elements outside the root are ignored.
    ContentOutsideRoot "content-outside-root" Warning;
    /// An edge to a layer that does not exist is ignored.
    EdgeToUnknownLayer "edge-to-unknown-layer" Warning Text Graph Id Wiring;
    /// No Result or Assign depends on a layer, so OpenVINO drops it.
    UnreachableLayer "unreachable-layer" Warning Wiring;
    /// An attribute that does not exist for the operation, element or metadata is ignored.
    UnknownAttribute "unknown-attribute" Warning Text;
    /// An element that does not exist in the format is ignored.
    UnknownElement "unknown-element" Warning Text;
    /// A boolean is neither true nor false, so the default is used.
    InvalidBoolean "invalid-boolean" Warning;
    /// Text after a number is ignored.
    TrailingJunk "trailing-junk" Warning Contradiction;
    /// A port declares a different type or shape than inference computes.
    StalePort "stale-port" Warning Contradiction Types;
    /// An input port declares a type that does not exist.
    UnknownPortType "unknown-port-type" Warning;
    /// A Parameter without a shape is a scalar; one without a type has type dynamic.
    IncompleteParameter "incomplete-parameter" Warning;
    /// OpenVINO reads a dimension differently than its text suggests.
    OddDimension "odd-dimension" Warning;
    /// A constant's `size` is larger than its type and shape require.
    OversizedConstant "oversized-constant" Warning;
    /// A constant's offset is not a multiple of its element size, and no other constant ends there.
    UnalignedConstant "unaligned-constant" Warning;
    /// Two constants share some of their bytes.
    OverlappingConstants "overlapping-constants" Warning Contradiction Offsets;
    /// Bytes of the weights file belong to no constant.
    UnreferencedWeights "unreferenced-weights" Warning NotText Values;
    /// The model has constants, but no weights file.
    MissingWeights "missing-weights" Warning NotText Values;
    /// A `&` that begins no XML entity, or a `<` in a name, is kept as text.
    BareAmpersand "bare-ampersand" Warning;
    /// Legacy metadata is ignored because the file also has `rt_info`.
    IgnoredMetadata "ignored-metadata" Warning;
    /// OpenVINO calls this promotion safe, although values can be lost.
    LossySafePromotion "lossy-safe-promotion" Warning NotText;
    /// An inserted conversion changes values of a constant.
    LossyConversion "lossy-conversion" Warning NotText;
    /// The weights of a layer cannot be quantized as requested.
    CannotQuantize "cannot-quantize" Error NotText;
    /// The file is an execution graph, which a device writes, and not a model.
    ExecutionGraph "execution-graph" Error NotText;
    /// A device stores compressed weights as floats when it compiles the model.
    WeightsUnfold "weights-unfold" Warning NotText;
    /// A device stores 16-bit weights as f32 because a decompression mark is missing.
    WeightsUnmarked "weights-unmarked" Warning NotText;
    /// Quantized weights have a scale per column, for which a device computes wrong results.
    ScaleAlongColumns "scale-along-columns" Error NotText;
    /// A dimension has no upper bound, which a device requires.
    OpenDim "open-dim" Error NotText;
    /// A tensor has an unknown rank, which no device supports.
    OpenRank "open-rank" Error NotText;
    /// A device does not support an element type.
    TypeRefused "type-refused" Error NotText;
    /// A device does not support an operation with an element type.
    OperationType "operation-type" Error NotText;
    /// A layer is only partly quantized, so it is computed in floats.
    NotQuantized "not-quantized" Warning NotText;
    /// Only the CPU supports string tensors.
    StringOnDevice "string-on-device" Error NotText;
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
    /// The promotion depends on a type that is unknown before run time, so ConvertPromoteTypes is not replaced.
    UndecidedPromotion "undecided-promotion" Warning NotText;

    /// An attribute that the operation requires is missing, and OpenVINO assumes a value.
    AssumedAttribute "assumed-attribute" Warning Contradiction;
    /// The condition of an If or Loop is not boolean.
    ConditionType "condition-type" Warning;
    /// An edge starts at a Result.
    UsedResult "used-result" Warning Wiring;
    /// The port map of a Loop is wrong: no entry sets the condition, the slices do not fit, or a Parameter has no
    /// input or two.
    IncompletePortMap "incomplete-port-map" Warning Contradiction;
    /// A back edge passes a tensor of another rank than the loop's initial value.
    UnstableState "unstable-state" Warning NotText;
    /// A recurrent layer's `hidden_size` differs from the shape of its weights.
    InconsistentSize "inconsistent-size" Warning;
    /// A 16-bit constant has values that are infinite or NaN.
    NonFiniteConstant "non-finite-constant" Warning NotText Values;
    /// A Convert turns values of a constant into zero or infinity.
    DestroyedValues "destroyed-values" Warning NotText Values;
    /// Information of the file cannot be stored in IR version 10.
    Version10Loss "version-10-loss" Warning;
    /// An epsilon of a divisor, negative power or logarithm becomes zero or subnormal in a narrower type.
    EpsilonLost "epsilon-lost" Warning;
    /// The sum of exponentials exceeds the largest number of a narrower type.
    ExponentOverflow "exponent-overflow" Warning;
    /// The sum of squares exceeds the largest number of a narrower type.
    SquareOverflow "square-overflow" Warning;
    /// The sum of two masks is infinite in a narrower type.
    MaskOverflow "mask-overflow" Warning;
    /// An integer exceeds the largest number of a narrower floating-point type.
    IntegerOverflow "integer-overflow" Warning;
    /// Integers are converted to a narrower floating-point type, which rounds large ones.
    IndexRounded "index-rounded" Warning;
    /// A counter is so large that a narrower type rounds it.
    CountRounded "count-rounded" Warning;
    /// The target release ignores a mark that keeps the precision of a layer.
    LostMark "lost-mark" Warning;
    /// The constant target shape of a Reshape does not fit the lengths of its input.
    HardCodedShape "hard-coded-shape" Warning;
    /// A Reshape to a first length of 1 mixes a larger batch into the length that it computes.
    SwallowedBatch "swallowed-batch" Warning;

    /// A program that loads the model needs a file that is missing or has other content.
    ProgramFile "program-file" Warning;
    /// A program that loads the model needs another value in the metadata or in a settings file.
    ProgramKey "program-key" Warning;
    /// A program that loads the model needs an input of another name, type or shape.
    ProgramInput "program-input" Warning;
    /// A program that loads the model needs an output of another name, type or shape.
    ProgramOutput "program-output" Warning;
    /// A program that loads the model needs state in another form.
    ProgramState "program-state" Warning;

    /// The outputs of operations without an inference rule are kept as declared.
    DeclaredOutputs "declared-outputs" Note;
    /// The oldest OpenVINO release that reads the file.
    RequiredRelease "required-release" Note;
    /// `Core.read_model` converts inputs and outputs of a file of version 10.
    LegacyTypes "legacy-types" Note;
    /// An integer constant needs more than 32 bits, and OpenVINO's CPU plugin computes i64 in 32 bits.
    BeyondI32 "beyond-i32" Note Values;
    /// An operation keeps integers where PyTorch's rules give floats.
    IntegerResult "integer-result" Note;
    /// A dimension of an input is open, but the model works with one length only.
    FixedLength "fixed-length" Note;
    /// An index leaves its table without an error.
    TableBound "table-bound" Note;
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

/// Reference to the layer that a finding concerns.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[non_exhaustive]
pub struct LayerRef {
    /// The layer's id in the file.
    pub id: LayerId,
    /// The name.
    pub name: String,
    /// The graph that contains the layer, written as the names of layers and bodies around it: `loop/body`. It is
    /// empty for the model's own graph.
    #[serde(rename = "path", serialize_with = "as_path")]
    pub place: Place,
}

fn as_path<S: serde::Serializer>(place: &Place, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(place.path())
}

impl LayerRef {
    /// Creates a reference to a layer of the graph at `place`.
    pub fn of(place: &Place, layer: &Layer) -> Self {
        Self::named(place, layer.id(), layer.name())
    }

    /// Creates a reference to a layer that is not in the graph yet, with its name.
    pub(crate) fn named(place: &Place, id: LayerId, name: &str) -> Self {
        Self { id, name: name.to_owned(), place: place.clone() }
    }

    /// Returns the names of the layers and bodies around the layer, outermost first: `loop/body`; empty in the model's
    /// own graph.
    pub fn path(&self) -> &str {
        self.place.path()
    }

    /// Returns the layer's path: the names around it and its own, `loop/body/add`.
    pub fn full_name(&self) -> String {
        self.place.path_to(&self.name)
    }
}

/// Position in the source with a short remark.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Label {
    /// The bytes in the source.
    pub span: Span,
    /// The remark.
    pub message: Message,
}

/// A tensor that explains a finding, with the layer that produces it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Related {
    /// The layer that produces the tensor.
    pub layer: LayerRef,
    /// The byte range.
    pub span: Span,
    /// The element type of the tensor.
    pub element_type: ElementType,
    /// The shape of the tensor.
    pub shape: Shape,
    /// The operation of the layer.
    pub operation: String,
    /// The input that the tensor feeds, in the layer that the finding concerns.
    pub input: usize,
    /// The name of the input, if its operation has one: `axis`.
    pub role: Option<&'static str>,
}

impl Related {
    /// Describes the tensor at an input of a layer, given its producer.
    pub(crate) fn of(place: &Place, user: &Layer, input: usize, producer: &Layer, port: &OutputPort) -> Self {
        Self {
            layer: LayerRef::of(place, producer),
            span: producer.span().unwrap_or_default(),
            element_type: port.element_type(),
            shape: port.shape().clone(),
            operation: producer.ty().to_owned(),
            input,
            role: user.operation().and_then(|it| it.input_name(input)),
        }
    }
}

/// An error, warning or note about a model.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Diagnostic {
    /// The severity.
    pub severity: Severity,
    /// The stable code of its kind.
    pub code: Code,
    /// Details as data.
    pub about: Box<About>,
    /// The message, one sentence without a full stop.
    pub message: Message,
    /// The layer.
    pub layer: Option<LayerRef>,
    /// Positions in the source: first that of the finding, then others that explain it.
    pub labels: Vec<Label>,
    /// Tensors that explain the finding, with their producers.
    pub related: Vec<Related>,
    /// Further facts that explain the finding.
    pub notes: Vec<Message>,
    /// Layers that do not accept an output of this one. Their errors are consequences of this finding.
    pub consequences: Vec<LayerRef>,
    /// The fixes, most likely first.
    pub fixes: Vec<Fix>,
}

impl Diagnostic {
    /// Creates a finding with the severity of its code, without a position.
    pub fn new(code: Code, message: impl Into<Message>) -> Self {
        Self {
            severity: code.severity(),
            code,
            about: Box::default(),
            message: message.into(),
            layer: None,
            labels: Vec::new(),
            related: Vec::new(),
            notes: Vec::new(),
            consequences: Vec::new(),
            fixes: Vec::new(),
        }
    }

    /// Returns the finding with one more position; the first one is the main one.
    #[must_use]
    pub fn at(mut self, span: Span, message: impl Into<Message>) -> Self {
        // Most findings have one position, and a damaged file has many findings.
        self.labels.reserve_exact(1);
        self.labels.push(Label { span, message: message.into() });
        self
    }

    /// Returns the finding with one more fact that explains it.
    #[must_use]
    pub fn note(mut self, note: impl Into<Message>) -> Self {
        self.notes.reserve_exact(1);
        self.notes.push(note.into());
        self
    }

    pub(crate) fn about(mut self, about: About) -> Self {
        self.about = Box::new(about);
        self
    }

    /// True if OpenVINO refuses the model because of this finding.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

/// All findings of one model, with the source text that their spans refer to.
///
/// `Display` writes one line for each, `FILE:LINE:COLUMN: error[CODE]: MESSAGE`.
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
    /// Creates an empty list. `source` is the text of `file`.
    pub fn new(file: impl AsRef<Path>, source: Arc<String>) -> Self {
        Self { file: file.as_ref().display().to_string(), source, list: Vec::new() }
    }

    /// True if OpenVINO refuses the model.
    pub fn has_errors(&self) -> bool {
        self.list.iter().any(Diagnostic::is_error)
    }
}
