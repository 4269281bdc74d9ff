//! The requirements of programs, one row each.
//!
//! Sources: openvino.genai, OpenVINO Model Server, Model API and optimum-intel of August 2026. Each message was seen
//! with OpenVINO 2026.4.1, openvino-genai 2026.4.1.0, openvino-model-api 0.4.7 and optimum-intel 2.2.0.

use typelift_promote::ElementType::{self, F32, I32, I64};

use super::facts::Facts;
use super::faults::{self, Fault};
use super::parts::Part::{self, *};
use crate::findings::Severity::{self, Error, Note, Warning};
use crate::findings::SubjectKind::{self, File, Input, Key, Output, State};

pub(super) struct Rule {
    pub(super) parts: &'static [Part],
    pub(super) kind: SubjectKind,
    /// The input, output, key or file that the requirement concerns; empty if it concerns all.
    pub(super) name: &'static str,
    pub(super) demand: Demand,
    pub(super) severity: Severity,
    /// The consequence of a broken rule: a message of the program in backticks, or a clause.
    pub(super) otherwise: &'static str,
    /// Scripts of statements that may repair the model, tried in this order after those that follow from the demand.
    /// `{}` stands for the name in the model.
    pub(super) repairs: &'static [&'static str],
}

pub(super) enum Demand {
    /// An input or output of the name. The type tells which other one may be meant.
    Exists(&'static str),
    /// The input or output has one of these element types, if it exists.
    Type(&'static [ElementType]),
    Rank(&'static [usize]),
    /// The input accepts tensors of every length along these axes.
    Open(&'static [usize]),
    /// The model has no other output.
    Only,
    /// The model has no inputs but these.
    NoOther(&'static [&'static str]),
    /// Every input or output has a tensor name.
    Named,
    /// The metadata has the key, and its value is of this kind.
    Value(Form),
    /// One of the files exists; the first one is named in messages.
    OneOf(&'static [&'static str]),
    /// A requirement that needs more than one input, output, key or file. The text states it.
    Fact(&'static str, fn(&Facts) -> Vec<Fault>),
}

/// Kind of a value in the metadata.
#[derive(Clone, Copy)]
pub(super) enum Form {
    Text,
    /// An integer; the key may be absent.
    Integer,
    /// A number; the key may be absent.
    Number,
    /// Numbers separated by spaces; the key may be absent.
    Numbers,
    /// `True` or `YES`, or a word that means false; the key may be absent.
    Flag,
    /// One of these words without regard to case; the key may be absent.
    Word(&'static [&'static str]),
}

const fn rule(
    parts: &'static [Part],
    kind: SubjectKind,
    name: &'static str,
    demand: Demand,
    severity: Severity,
    otherwise: &'static str,
    repairs: &'static [&'static str],
) -> Rule {
    Rule { parts, kind, name, demand, severity, otherwise, repairs }
}

/// Wrappers of Model API.
pub(super) const WRAPPERS: &[&str] = &[
    "Classification",
    "Segmentation",
    "SSD",
    "YOLO",
    "YOLOV4",
    "YOLOF",
    "YOLOX",
    "YOLOv3-ONNX",
    "YOLOv5",
    "YOLOv8",
    "YOLO11",
    "YOLO-seg",
    "MaskRCNN",
    "DETRInstSeg",
    "AnomalyDetection",
    "keypoint_detection",
    "Action Classification",
    "sam_image_encoder",
    "sam_decoder",
];

const DECODERS: &[Part] = &[Llm, Language];
const WRAPPED: &[Part] = &[Classifier, Segmenter, Ssd, Yolo, Wrapped];
const OPTIMUM: &[Part] = &[OptimumDecoder, OptimumFeatures, OptimumClassifier, OptimumImage, OptimumOther];
const CACHED: &[Part] = &[Llm, Language, WhisperDecoder];
const IMAGES: &[Part] = &[Unet, TextEncoder, VaeDecoder, VaeEncoder];

const NO_PORT: &str = "`Port for tensor name … was not found.`";
const NO_POINTER: &str = "`Tensor data with element type …, is not representable as pointer to …`";
const PRECISION: &str = "`Failed to set tensor for input with precision: …`";
const SDPA_ONLY: &str = "LLMPipeline runs it by paged attention; the SDPA backend and NPUs refuse it";
const ADD_BEAM: &str =
    "add input beam_idx : i32[?]\nlet b = beam_idx\nonce ReadValue-6(x) => Gather-8(ReadValue-6(x) {...}, b, 0)";
const ADD_GATHER: &str = "let b = beam_idx\nonce ReadValue-6(x) => Gather-8(ReadValue-6(x) {...}, b, 0)";
const FUSE_ATTENTION: &str = "MatMul(Softmax-8(MatMul(q, k) {transpose_b=true} * s: const + m) {axis=-1}, v) => \
     ScaledDotProductAttention-13(q, k, v, m, s) {causal=false}";

/// Every requirement. Rules that explain others come first.
#[rustfmt::skip]
pub(super) const RULES: &[Rule] = &[
    // Files.
    rule(&[Llm, Language, TextEmbeddings, VisionEmbeddings, WhisperEncoder, WhisperDecoder, Unet, TextEncoder, VaeDecoder, VaeEncoder, Embedding, Rerank, OptimumDecoder, OptimumFeatures, OptimumClassifier, OptimumImage, OptimumOther, Served],
        File, "", Demand::Fact("the .bin lies next to the .xml", faults::weights), Error, "`Empty weights data in bin file or bin file cannot be found!`", &[]),
    rule(&[Llm, Embedding, Rerank], File, "openvino_model.xml", Demand::Fact("the model is `openvino_model.xml`", faults::file_name), Warning, "`Could not find a model in the directory`", &[]),
    rule(&[Llm, Language, Embedding, Rerank], File, "openvino_tokenizer.xml", Demand::OneOf(&["openvino_tokenizer.xml"]), Error, "`Either openvino_tokenizer.xml was not provided or it was not loaded correctly. Tokenizer::encode is not available`", &[]),
    rule(&[Llm, Language], File, "openvino_detokenizer.xml", Demand::OneOf(&["openvino_detokenizer.xml"]), Warning, "texts fail, and token ids work: `Detokenizer model has not been provided. Tokenizer::decode is not available`", &[]),
    rule(&[WhisperDecoder, WhisperEncoder], File, "openvino_detokenizer.xml", Demand::OneOf(&["openvino_detokenizer.xml"]), Error, "`Detokenizer model has not been provided. Tokenizer::decode is not available`", &[]),
    rule(&[WhisperEncoder], File, "openvino_decoder_model.xml", Demand::OneOf(&["openvino_decoder_model.xml"]), Error, "`Could not find a model in the directory`", &[]),
    rule(&[WhisperDecoder], File, "openvino_encoder_model.xml", Demand::OneOf(&["openvino_encoder_model.xml"]), Error, "`Could not find a model in the directory`", &[]),
    rule(&[WhisperDecoder, WhisperEncoder], File, "generation_config.json", Demand::OneOf(&["generation_config.json"]), Error, "`'lang_to_id' map can be provided …`", &[]),
    rule(&[WhisperDecoder, WhisperEncoder], Key, "lang_to_id", Demand::Fact("`generation_config.json` has `lang_to_id`", faults::languages), Error, "`'lang_to_id' map can be provided …`", &[]),
    rule(&[Language, TextEmbeddings, VisionEmbeddings], File, "config.json", Demand::OneOf(&["config.json"]), Error, "`Failed to open 'config.json' with processor config`", &[]),
    rule(&[Language, TextEmbeddings, VisionEmbeddings], Key, "model_type", Demand::Fact("`config.json` has a `model_type` that openvino.genai knows", faults::vlm_type), Error, "`Unsupported '…' VLM model type`", &[]),
    rule(&[Language, VisionEmbeddings], File, "openvino_text_embeddings_model.xml", Demand::OneOf(&["openvino_text_embeddings_model.xml"]), Error, "`Could not find a model in the directory`", &[]),
    rule(&[Language, TextEmbeddings], File, "openvino_vision_embeddings_model.xml", Demand::OneOf(&["openvino_vision_embeddings_model.xml"]), Error, "`Could not find a model in the directory`", &[]),
    rule(&[Language, TextEmbeddings, VisionEmbeddings], File, "preprocessor_config.json", Demand::OneOf(&["preprocessor_config.json", "processor_config.json"]), Warning, "images are prepared by other defaults: another text without a message", &[]),
    rule(IMAGES, File, "model_index.json", Demand::OneOf(&["../model_index.json"]), Error, "`Failed to open a model index file model_index.json`", &[]),
    rule(IMAGES, File, "tokenizer/openvino_tokenizer.xml", Demand::OneOf(&["../tokenizer/openvino_tokenizer.xml"]), Error, "`Either openvino_tokenizer.xml was not provided or it was not loaded correctly. Tokenizer::encode is not available`", &[]),
    rule(IMAGES, File, "scheduler/scheduler_config.json", Demand::OneOf(&["../scheduler/scheduler_config.json"]), Error, "`Failed to open scheduler_config.json`", &[]),
    rule(&[Unet, VaeDecoder, VaeEncoder], File, "text_encoder/openvino_model.xml", Demand::OneOf(&["../text_encoder/openvino_model.xml"]), Error, "`Could not find a model in the directory`", &[]),
    rule(&[Unet, TextEncoder, VaeEncoder], File, "vae_decoder/openvino_model.xml", Demand::OneOf(&["../vae_decoder/openvino_model.xml"]), Error, "`Could not find a model in the directory`", &[]),
    rule(&[TextEncoder, VaeDecoder, VaeEncoder], File, "unet/openvino_model.xml", Demand::OneOf(&["../unet/openvino_model.xml", "../transformer/openvino_model.xml"]), Error, "`Could not find a model in the directory`", &[]),
    rule(IMAGES, File, "config.json", Demand::OneOf(&["config.json"]), Error, "`Failed to open config.json`", &[]),
    rule(OPTIMUM, File, "config.json", Demand::OneOf(&["config.json"]), Error, "`The library name could not be automatically inferred.`", &[]),
    rule(OPTIMUM, File, "openvino_model.xml", Demand::Fact("the model is `openvino_model.xml`, or the only `openvino_*.xml`", faults::file_name), Warning, "`Could not open the file`", &[]),
    rule(OPTIMUM, Key, "model_type", Demand::Fact("`config.json` has a `model_type`", faults::model_type), Error, "`The library name could not be automatically inferred.`", &[]),
    rule(OPTIMUM, Key, "optimum/transformers_version", Demand::Fact("a section `optimum` in the metadata has `transformers_version`", faults::transformers_version), Error, "`KeyError`; read in the source, not run", &["info : optimum/transformers_version = \"4.57.0\""]),
    rule(&[Served], File, "1/", Demand::Fact("the folder of the model is a version, `1/`, `2/`, …", faults::version_folder), Error, "`No version found for model in path`", &[]),
    rule(&[Served], File, "mapping_config.json", Demand::Fact("`mapping_config.json` is JSON", faults::mapping_is_json), Error, "`mapping configuration file is not a valid JSON file.`", &[]),
    rule(&[Served], Key, "mapping_config.json", Demand::Fact("`mapping_config.json` names tensors of the model", faults::mapping), Warning, "it loads the model, and the mapping has no effect", &[]),
    rule(&[Served], Input, "", Demand::Fact("names and shapes in `config.json` fit the model", faults::server_config), Error, "Model Server refuses the model", &[]),

    // Names of all inputs and outputs.
    rule(&[Served], Input, "", Demand::Named, Error, "`Attempt to get a name for a Tensor without names`, `Error during layout configuration`", &["rename {} {}"]),
    rule(&[Served], Output, "", Demand::Named, Note, "the server calls it `out_0`, `out_1`, … by position", &["rename {} {}"]),
    rule(WRAPPED, Input, "", Demand::Named, Error, "`Attempt to get a name for a Tensor without names`", &["rename {} {}"]),

    // State.
    rule(&[Llm, Language, WhisperDecoder], State, "cache", Demand::Fact("the cache is state, not inputs and outputs, and there is one", faults::cache), Error, "`Port for tensor name beam_idx was not found.`, or `Model should have 3 or 4 inputs …`; ContinuousBatchingPipeline and Model Server: `Model is supposed to be stateful`", &[]),
    rule(&[OptimumDecoder], State, "cache", Demand::Fact("there is a cache: inputs named `past_key_values` or `cache_params` and outputs named `present`, or state", faults::optimum_cache), Error, "`` `use_cache` was set to `True` but the loaded model only supports `use_cache=False` ``", &[]),
    rule(CACHED, State, "cache", Demand::Fact("variables are f32 without Converts between them and the attention", faults::state_type), Error, "`ParameterMismatch: Can not clone with new dims. Descriptor's shape: {0 - ?, 2, 0, 8}`", &["state * : f32"]),
    rule(CACHED, Input, "beam_idx", Demand::Fact("an input `beam_idx` reorders the state", faults::beam), Error, NO_PORT, &[ADD_BEAM]),
    rule(DECODERS, Input, "beam_idx", Demand::Fact("each variable is read through `Gather(ReadValue, beam_idx, 0)`", faults::reorder), Error, "beam search: `Argument shapes are inconsistent`; greedy search is right; ContinuousBatchingPipeline and Model Server: `Model references undeclared parameters`", &[ADD_GATHER]),
    rule(&[OptimumDecoder], Input, "beam_idx", Demand::Fact("if there is an input `beam_idx`, each variable is read through `Gather(ReadValue, beam_idx, 0)`", faults::reorder), Error, "beam search: `Argument shapes are inconsistent`; greedy search is right", &[ADD_GATHER]),
    rule(DECODERS, State, "", Demand::Fact("the states are used by a ScaledDotProductAttention", faults::attention), Warning, "ContinuousBatchingPipeline and Model Server refuse it: `No ScaledDotProductAttention operation observed in the graph`; LLMPipeline falls back to the slower SDPA backend", &[FUSE_ATTENTION]),
    rule(DECODERS, State, "", Demand::Fact("variables are named after the input and the output that they replace", faults::variable_names), Note, "an NPU refuses it: `RemoveEmptyKVInputs().run_on_model(prefill_model) failed`", &[]),

    // Inputs of decoders and encoders of texts.
    rule(&[Llm, WhisperDecoder, Rerank, OptimumDecoder, OptimumFeatures, OptimumClassifier], Input, "input_ids", Demand::Exists("i64[?,?]"), Error, NO_PORT, &[]),
    rule(&[Embedding], Input, "input_ids", Demand::Exists("i64[?,?]"), Error, "`Input for tensor name 'input_ids' is not found.`", &[]),
    rule(&[Llm, Rerank, Embedding, WhisperDecoder], Input, "input_ids", Demand::Type(&[I64]), Error, NO_POINTER, &[]),
    rule(&[Llm, Rerank, Embedding, WhisperDecoder], Input, "input_ids", Demand::Rank(&[2]), Error, "`Accessing out-of-range dimension`", &[]),
    rule(&[Llm], Input, "input_ids", Demand::Open(&[1]), Warning, "LLMPipeline reshapes it for paged attention; the SDPA backend refuses it: `Can't set the input tensor … are incompatible`", &[]),
    rule(&[Rerank, Embedding, WhisperDecoder], Input, "input_ids", Demand::Open(&[0, 1]), Error, "`Can't set the input tensor … are incompatible`", &[]),
    rule(&[Language], Input, "inputs_embeds", Demand::Exists("f32[?,?,?]"), Error, NO_PORT, &[]),
    rule(&[Language], Input, "inputs_embeds", Demand::Type(&[F32]), Error, PRECISION, &[]),
    rule(&[Language], Input, "inputs_embeds", Demand::Rank(&[3]), Error, "`Can't set the input tensor … are incompatible`", &[]),
    rule(DECODERS, Input, "attention_mask", Demand::Exists("i64[?,?]"), Warning, SDPA_ONLY, &["add input attention_mask : i64[?,?]"]),
    rule(DECODERS, Input, "attention_mask", Demand::Type(&[I64]), Warning, SDPA_ONLY, &[]),
    rule(DECODERS, Input, "attention_mask", Demand::Open(&[1]), Warning, SDPA_ONLY, &[]),
    rule(DECODERS, Input, "attention_mask", Demand::Fact("a layer reads `attention_mask`", faults::unread_mask), Note, "texts of different length in a batch, and every prompt on an NPU, give a wrong text without a message", &[]),
    rule(&[Embedding], Input, "attention_mask", Demand::Exists("i64[?,?]"), Error, "`Input for tensor name 'attention_mask' is not found.`", &["add input attention_mask : i64[?,?]"]),
    rule(&[Rerank, OptimumFeatures, OptimumClassifier], Input, "attention_mask", Demand::Exists("i64[?,?]"), Error, NO_PORT, &["add input attention_mask : i64[?,?]"]),
    rule(&[Rerank, Embedding], Input, "attention_mask", Demand::Type(&[I64]), Error, PRECISION, &[]),
    rule(&[Rerank, Embedding], Input, "attention_mask", Demand::Open(&[0, 1]), Error, "`Can't set the input tensor … are incompatible`", &[]),
    rule(&[Rerank, Embedding], Input, "token_type_ids", Demand::Type(&[I64]), Error, PRECISION, &[]),
    rule(&[Rerank], Input, "token_type_ids", Demand::Fact("the model has `token_type_ids` if the tokenizer has it, and only then", faults::token_types), Error, "`Eltwise shape infer input shapes dim index: 0 mismatch`, or `Port for tensor name token_type_ids was not found.`", &[]),
    rule(&[Llm, OptimumDecoder], Input, "position_ids", Demand::Fact("positions have the name `position_ids`", faults::positions), Warning, "nobody sets the input: a wrong text without a message", &[]),
    rule(&[Language], Input, "position_ids", Demand::Exists("i64[?,?]"), Warning, "a wrong text without a message by paged attention; the SDPA backend refuses it", &[]),
    rule(&[Llm, Language, Rerank], Input, "position_ids", Demand::Type(&[I64]), Error, NO_POINTER, &[]),
    rule(&[Llm], Input, "position_ids", Demand::Rank(&[2]), Error, "`Can't set the input tensor … are incompatible`", &[]),
    rule(&[Llm], Input, "position_ids", Demand::Open(&[1]), Warning, SDPA_ONLY, &[]),
    rule(DECODERS, Input, "beam_idx", Demand::Type(&[I32]), Warning, SDPA_ONLY, &[]),
    rule(&[WhisperDecoder], Input, "beam_idx", Demand::Type(&[I32]), Error, PRECISION, &[]),
    rule(CACHED, Input, "beam_idx", Demand::Rank(&[1]), Warning, SDPA_ONLY, &[]),
    rule(DECODERS, Input, "", Demand::Fact("the model has 3 or 4 inputs", faults::input_count), Warning, "LLMPipeline runs it by paged attention; the SDPA backend and NPUs print `Model should have 3 or 4 inputs …`", &["remove input {}"]),
    rule(&[Llm], Input, "", Demand::NoOther(&["input_ids", "inputs_embeds", "attention_mask", "position_ids", "beam_idx", "token_type_ids"]), Warning, "nobody sets the input: a wrong text, or a refusal at run time", &["remove input {}"]),
    rule(&[Embedding], Input, "position_ids", Demand::NoOther(&["input_ids", "attention_mask", "token_type_ids"]), Error, "`Eltwise shape infer input shapes dim index: 0 mismatch`", &["remove input {}", "redirect {} -> CumSum(input_ids * 0 + 1, 1) - 1"]),
    rule(&[Rerank], Input, "", Demand::NoOther(&["input_ids", "attention_mask", "token_type_ids", "position_ids", "beam_idx"]), Error, "`Eltwise shape infer input shapes dim index: 0 mismatch`", &["remove input {}"]),
    rule(&[OptimumDecoder], Input, "", Demand::NoOther(&["input_ids", "inputs_embeds", "attention_mask", "position_ids", "beam_idx", "token_type_ids", "past", "cache"]), Warning, "nobody sets the input: a wrong text without a message", &["remove input {}"]),
    rule(&[OptimumFeatures, OptimumClassifier], Input, "", Demand::NoOther(&["input_ids", "inputs_embeds", "attention_mask", "position_ids", "token_type_ids"]), Warning, "`Got unexpected inputs`, or nobody sets the input", &["remove input {}"]),
    rule(&[OptimumFeatures, OptimumClassifier, OptimumImage], Input, "", Demand::Fact("every input has an axis 1", faults::flat_inputs), Error, "`IndexError`: dimensions 0 and 1 of every input are made open", &[]),
    rule(&[OptimumImage], Input, "pixel_values", Demand::Exists("f32[?,?,?,?]"), Error, NO_PORT, &[]),
    rule(&[OptimumImage], Input, "pixel_values", Demand::Fact("images are [N,C,H,W]", faults::channels_last), Error, "`Input and filter channels must match`", &[]),

    // Outputs.
    rule(&[Llm, Language, WhisperDecoder, Rerank, OptimumDecoder, OptimumClassifier], Output, "logits", Demand::Exists("f32[?,?,?]"), Error, NO_PORT, &[]),
    rule(&[OptimumImage], Output, "logits", Demand::Fact("a classifier has an output `logits`", faults::image_logits), Error, "`KeyError: 'logits'`", &[]),
    rule(&[Llm, Language, WhisperDecoder, Rerank], Output, "logits", Demand::Type(&[F32]), Error, NO_POINTER, &[]),
    rule(&[Llm, Language, WhisperDecoder], Output, "logits", Demand::Rank(&[3]), Error, "`Check 'logits_shape.size() == 3' failed`", &["after {} : Unsqueeze(_, [1])"]),
    rule(&[Llm, Language], Output, "logits", Demand::Only, Note, "an NPU crashes or refuses it; CPUs and GPUs run it", &[]),
    rule(&[Rerank], Output, "logits", Demand::Only, Error, "`Model must have exactly one output, got 2`", &[]),
    rule(&[Rerank], Output, "logits", Demand::Fact("`logits` has rank 2", faults::rerank_logits), Warning, "a wrong order of texts without a message", &["after {} : Squeeze(_, [1])", "after {} : Squeeze(_, [2])", "after {} : Gather(_, 0, 1)"]),
    rule(&[Embedding], Output, "last_hidden_state", Demand::Exists("f32[?,?,?]"), Error, NO_PORT, &[]),
    rule(&[WhisperEncoder], Output, "last_hidden_state", Demand::Exists("f32[?,?,?]"), Error, "`Output for tensor name 'last_hidden_state' is not found.`", &[]),
    rule(&[OptimumFeatures], Output, "last_hidden_state", Demand::Exists("f32[?,?,?]"), Error, "`KeyError: 'last_hidden_state'`", &[]),
    rule(&[Embedding, WhisperEncoder], Output, "last_hidden_state", Demand::Type(&[F32]), Error, NO_POINTER, &[]),
    rule(&[Embedding], Output, "last_hidden_state", Demand::Rank(&[3]), Error, "`Axis 1 out of the tensor rank range`", &["after {} : Unsqueeze(_, [1])"]),
    rule(&[Embedding], Output, "last_hidden_state", Demand::Only, Error, "`Model must have exactly one output, got 2`", &[]),

    // Whisper.
    rule(&[WhisperEncoder], Input, "input_features", Demand::Exists("f32[?,?,?]"), Error, NO_PORT, &[]),
    rule(&[WhisperEncoder], Input, "input_features", Demand::Type(&[F32]), Error, PRECISION, &[]),
    rule(&[WhisperEncoder], Input, "input_features", Demand::Rank(&[3]), Error, "`Can't set the input tensor … are incompatible`", &[]),
    rule(&[WhisperEncoder], Input, "input_features", Demand::Open(&[0]), Error, "`the model input (shape=[1,80,3000]) and the tensor (shape=(0.80.3000)) are incompatible`", &[]),
    rule(&[WhisperEncoder], Input, "input_features", Demand::Fact("`input_features` takes as many bands as `preprocessor_config.json` says (80 without one), and 3000 frames", faults::mel_bands), Error, "`Can't set the input tensor … are incompatible`", &[]),
    rule(&[WhisperDecoder], Input, "encoder_hidden_states", Demand::Exists("f32[?,?,?]"), Error, NO_PORT, &[]),
    rule(&[WhisperDecoder], Input, "encoder_hidden_states", Demand::Type(&[F32]), Error, PRECISION, &[]),
    rule(&[WhisperDecoder], Input, "encoder_hidden_states", Demand::Fact("the shape of `encoder_hidden_states` is that of the encoder's output", faults::hidden_width), Error, "`Can't set the input tensor … are incompatible`", &[]),
    rule(&[WhisperDecoder], Input, "cache_position", Demand::Type(&[I64]), Error, NO_POINTER, &[]),
    rule(&[WhisperDecoder], Input, "", Demand::NoOther(&["input_ids", "encoder_hidden_states", "beam_idx", "cache_position"]), Warning, "nobody sets the input: a wrong text, or a refusal at run time", &["remove input {}"]),

    // Image generation.
    rule(&[Unet], Input, "sample", Demand::Exists("f32[?,?,?,?]"), Error, NO_PORT, &[]),
    rule(&[Unet], Input, "sample", Demand::Type(&[F32]), Error, PRECISION, &[]),
    rule(&[Unet], Input, "sample", Demand::Open(&[2, 3]), Error, "`Can't set the input tensor … are incompatible`", &[]),
    rule(&[Unet], Input, "sample", Demand::Fact("the batch is open, or 2 for guidance", faults::guidance), Error, "`the model input (shape=[1,?,32]) and the tensor (shape=(2.16.32)) are incompatible`", &[]),
    rule(&[Unet], Input, "timestep", Demand::Exists("i64[1]"), Error, NO_PORT, &[]),
    rule(&[Unet], Input, "timestep", Demand::Type(&[I64]), Error, PRECISION, &[]),
    rule(&[Unet], Input, "timestep", Demand::Rank(&[1]), Error, "`the model input (shape=[]) and the tensor (shape=(1)) are incompatible`", &["input {} : i64[1]\nbefore {} : Reshape(_, [])", "input {} : i64[1]"]),
    rule(&[Unet], Input, "encoder_hidden_states", Demand::Exists("f32[?,?,?]"), Error, NO_PORT, &[]),
    rule(&[Unet], Input, "encoder_hidden_states", Demand::Type(&[F32]), Error, PRECISION, &[]),
    rule(&[Unet], Output, "out_sample", Demand::Only, Error, "`get_output_tensor() must be called on a function with exactly one parameter`", &[]),
    rule(&[Unet, VaeDecoder], Output, "", Demand::Fact("the output is f32", |facts| faults::first_of_type(facts.outputs.first(), F32, "reads")), Error, NO_POINTER, &["output {} : f32"]),
    rule(&[TextEncoder], Input, "", Demand::Fact("the first input is i64", |facts| faults::first_of_type(facts.inputs.first(), I64, "gives")), Error, PRECISION, &["input {} : i64"]),
    rule(&[TextEncoder], Input, "", Demand::Fact("the first input takes [2,max_position_embeddings]", faults::prompt_shape), Error, "`Can not clone with new dims. Descriptor's shape: …`", &[]),
    rule(&[TextEncoder], Output, "last_hidden_state", Demand::Fact("the first output are the hidden states", faults::hidden_states_first), Error, "`the model input (shape=[?,?,32]) and the tensor (shape=(2.32)) are incompatible`", &["order outputs {}"]),
    rule(&[TextEncoder], Output, "", Demand::Fact("the output is f32", |facts| faults::first_of_type(facts.outputs.first(), F32, "reads")), Error, NO_POINTER, &["output {} : f32"]),
    rule(&[VaeDecoder], Input, "", Demand::Fact("the first input is f32", |facts| faults::first_of_type(facts.inputs.first(), F32, "gives")), Error, PRECISION, &["input {} : f32"]),
    rule(&[VaeEncoder], Output, "latent_sample", Demand::Fact("the only output is `latent_sample` or `latent_parameters`", faults::latents), Error, "`Output for tensor name … is not found.`", &[]),

    // Images with text.
    rule(&[TextEmbeddings], Input, "", Demand::Fact("the first input is i64", |facts| faults::first_of_type(facts.inputs.first(), I64, "gives")), Error, PRECISION, &["input {} : i64"]),
    rule(&[VisionEmbeddings], Input, "pixel_values", Demand::Fact("an input has the name `pixel_values`", faults::pixels), Error, NO_PORT, &[]),
    rule(&[VisionEmbeddings], Input, "pixel_values", Demand::Type(&[F32]), Error, PRECISION, &[]),
    rule(&[TextEmbeddings, VisionEmbeddings], Output, "", Demand::Fact("the output is f32", |facts| faults::first_of_type(facts.outputs.first(), F32, "reads")), Error, NO_POINTER, &["output {} : f32"]),

    // Tokenizer.
    rule(&[Tokenizer], Output, "input_ids", Demand::Exists("i64[?,?]"), Error, NO_PORT, &[]),
    rule(&[Tokenizer], Output, "attention_mask", Demand::Exists("i64[?,?]"), Error, NO_PORT, &[]),
    rule(&[Tokenizer], Output, "input_ids", Demand::Type(&[I64]), Error, NO_POINTER, &[]),
    rule(&[Tokenizer], Output, "attention_mask", Demand::Type(&[I64]), Error, NO_POINTER, &[]),
    rule(&[Tokenizer], Key, "eos_token_id", Demand::Fact("`eos_token_id` is there, or in a settings file", faults::eos), Warning, "the end token is -1: generation never stops", &[]),
    rule(&[Tokenizer], Key, "eos_token_id", Demand::Value(Form::Integer), Error, "`Could not convert to: l from string`", &[]),
    rule(&[Tokenizer], Key, "bos_token_id", Demand::Value(Form::Integer), Error, "`Could not convert to: l from string`", &[]),
    rule(&[Tokenizer], Key, "pad_token_id", Demand::Value(Form::Integer), Error, "`Could not convert to: l from string`", &[]),
    rule(&[Tokenizer], Key, "chat_template", Demand::Fact("there is a `chat_template`, or a file with one", faults::chat_template), Warning, "a chat fails: `Chat template wasn't found.`; generation without a chat works", &["info : chat_template = \"{% for message in messages %}{{ message['content'] }}\\n{% endfor %}\""]),
    rule(&[Tokenizer], Key, "openvino_tokenizers_version", Demand::Value(Form::Text), Warning, "settings such as `add_special_tokens` have no effect, without a message", &["info : openvino_tokenizers_version = \"2026.4.1.0\""]),

    // Model API.
    rule(WRAPPED, Key, "model_info/model_type", Demand::Value(Form::Text), Error, "`… with name uknown in list: Classification, …`", &["info : model_info/model_type = \"Classification\"", "info : model_info/model_type = \"SSD\"", "info : model_info/model_type = \"Segmentation\""]),
    rule(WRAPPED, Key, "model_info/model_type", Demand::Value(Form::Word(WRAPPERS)), Error, "`… with name … in list: Classification, …`", &["info : model_info/model_type = \"Classification\"", "info : model_info/model_type = \"SSD\"", "info : model_info/model_type = \"Segmentation\""]),
    rule(WRAPPED, Key, "model_info/confidence_threshold", Demand::Value(Form::Number), Error, "`could not convert string to float`", &["info : model_info/confidence_threshold = 0.5"]),
    rule(WRAPPED, Key, "model_info/iou_threshold", Demand::Value(Form::Number), Error, "`could not convert string to float`", &["info : model_info/iou_threshold = 0.5"]),
    rule(WRAPPED, Key, "model_info/pad_value", Demand::Value(Form::Integer), Error, "`invalid literal for int()`", &["info : model_info/pad_value = 0"]),
    rule(WRAPPED, Key, "model_info/topk", Demand::Value(Form::Integer), Error, "`invalid literal for int()`", &["info : model_info/topk = 1"]),
    rule(WRAPPED, Key, "model_info/blur_strength", Demand::Value(Form::Integer), Error, "`invalid literal for int()`", &[]),
    rule(WRAPPED, Key, "model_info/soft_threshold", Demand::Value(Form::Number), Error, "`could not convert string to float`", &[]),
    rule(WRAPPED, Key, "model_info/mean_values", Demand::Value(Form::Numbers), Error, "`could not convert string to float`", &[]),
    rule(WRAPPED, Key, "model_info/scale_values", Demand::Value(Form::Numbers), Error, "`could not convert string to float`", &[]),
    rule(WRAPPED, Key, "model_info/mean_values", Demand::Fact("`mean_values` and `scale_values` have one number, or one per channel", faults::channel_values), Error, "`Number of channels and mean/values size mismatch`", &[]),
    rule(WRAPPED, Key, "model_info/reverse_input_channels", Demand::Value(Form::Flag), Warning, "it is false without a message", &["info : model_info/reverse_input_channels = \"True\""]),
    rule(WRAPPED, Key, "model_info/multilabel", Demand::Value(Form::Flag), Warning, "it is false without a message", &["info : model_info/multilabel = \"True\""]),
    rule(WRAPPED, Key, "model_info/hierarchical", Demand::Value(Form::Flag), Warning, "it is false without a message", &["info : model_info/hierarchical = \"True\""]),
    rule(WRAPPED, Key, "model_info/output_raw_scores", Demand::Value(Form::Flag), Warning, "it is false without a message", &["info : model_info/output_raw_scores = \"True\""]),
    rule(WRAPPED, Key, "model_info/embedded_processing", Demand::Value(Form::Flag), Warning, "it is false without a message", &["info : model_info/embedded_processing = \"True\""]),
    rule(WRAPPED, Key, "model_info/resize_type", Demand::Value(Form::Word(&["standard", "fit_to_window", "fit_to_window_letterbox", "crop"])), Error, "`KeyError`", &["info : model_info/resize_type = \"standard\""]),
    rule(&[Classifier], Key, "model_info/labels", Demand::Fact("there are as many labels, separated by spaces, as classes", faults::labels), Error, "`Model's number of classes must be greater then number of parsed labels`", &[]),
    rule(WRAPPED, Input, "", Demand::Fact("inputs have rank 4, or rank 2 beside an image", faults::image_ranks), Error, "`only 2D and 4D input layer supported`", &[]),
    rule(&[Classifier, Segmenter, Yolo], Input, "", Demand::Fact("there is one input", faults::one_input), Error, "`Expected 1 input blob , but 2 found`", &["freeze {} = 0"]),
    rule(WRAPPED, Input, "", Demand::Fact("the layout of an image is in the file, or its channels are 1 to 4", faults::layout_guess), Error, "`Resulting shape '…' after preprocessing is not aligned with original parameter's shape`", &[]),
    rule(WRAPPED, Input, "", Demand::Fact("height and width of an image are fixed", faults::open_image), Error, "`Can not clone with new dims`", &[]),
    rule(&[Classifier], Output, "", Demand::Fact("the output is [N,classes] or [N,classes,1,1]", faults::class_output), Error, "`supports topologies only with 2D or 4D output`", &["after {} : ReduceMean(_, [2,3]) {keep_dims=false}", "after {} : Squeeze(_, [0])", "after {} : Squeeze(_, [1])", "after {} : Squeeze(_, [2])", "after {} : Unsqueeze(_, [0])"]),
    rule(&[Segmenter], Output, "", Demand::Fact("the output has rank 3 or 4", |facts| faults::of_output(facts, |port| !matches!(port.rank(), Some(3 | 4)), "a map of rank 3 or 4")), Error, "`Unexpected output layer shape`", &["after {} : Unsqueeze(_, [0])"]),
    rule(&[Ssd], Output, "", Demand::Fact("the output is [1,1,N,7], or there are outputs `boxes` and `labels`", faults::box_output), Error, "`too many indices for array`", &["after {} : Unsqueeze(_, [0,1])", "after {} : Unsqueeze(_, [0])"]),
    rule(&[Yolo], Output, "", Demand::Fact("the only output is f32 of rank 3", faults::yolo_output), Error, "`the YOLO wrapper expects 1 output of rank 3`", &["output {} : f32", "after {} : Unsqueeze(_, [0])"]),

    // Model Server.
    rule(&[Served], Input, "", Demand::Fact("a layout in the file fits the rank", faults::layout_rank), Error, "`layout … is not compatible with shape …`", &[]),
];
