//! Programs that load a model, and the part that a model plays in one.

use std::fmt;
use std::str::FromStr;

use serde_json::Value;

use super::facts::Facts;

/// A program that loads models.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Program {
    /// openvino.genai, with the pipeline; `None` finds it by names and neighbouring files.
    GenAi(Option<Pipeline>),
    /// OpenVINO Model Server.
    ModelServer,
    /// Model API.
    ModelApi,
    /// optimum-intel.
    Optimum,
}

/// A pipeline of openvino.genai.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Pipeline {
    /// Text generation.
    Llm,
    /// Text generation from images and text.
    Vlm,
    /// Speech recognition.
    Whisper,
    /// Image generation.
    Text2Image,
    /// Embeddings of texts.
    Embedding,
    /// Ranking of texts.
    Rerank,
    /// Tokenizer and detokenizer.
    Tokenizer,
}

const PIPELINES: [(&str, Pipeline); 7] = [
    ("llm", Pipeline::Llm),
    ("vlm", Pipeline::Vlm),
    ("whisper", Pipeline::Whisper),
    ("text2image", Pipeline::Text2Image),
    ("embedding", Pipeline::Embedding),
    ("rerank", Pipeline::Rerank),
    ("tokenizer", Pipeline::Tokenizer),
];

impl Program {
    /// Returns the names that [`from_str`](FromStr::from_str) reads.
    pub fn names() -> impl Iterator<Item = String> {
        let pipelines = PIPELINES.iter().map(|(name, _)| format!("genai:{name}"));
        ["genai", "ovms", "model-api", "optimum"].map(str::to_owned).into_iter().chain(pipelines)
    }
}

impl FromStr for Program {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let pipeline = |name: &str| PIPELINES.iter().find(|(known, _)| *known == name).map(|(_, pipeline)| *pipeline);
        match text.split_once(':') {
            Some(("genai", name)) if let Some(pipeline) = pipeline(name) => Ok(Self::GenAi(Some(pipeline))),
            None if text == "genai" => Ok(Self::GenAi(None)),
            None if text == "ovms" => Ok(Self::ModelServer),
            None if text == "model-api" => Ok(Self::ModelApi),
            None if text == "optimum" => Ok(Self::Optimum),
            _ => Err(format!("expected one of {}", Self::names().collect::<Vec<_>>().join(", "))),
        }
    }
}

/// Part that a model plays in a program. Each has rules of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Part {
    Llm,
    /// Language model of a VLM.
    Language,
    TextEmbeddings,
    VisionEmbeddings,
    WhisperEncoder,
    WhisperDecoder,
    Unet,
    TextEncoder,
    VaeDecoder,
    VaeEncoder,
    Embedding,
    Rerank,
    Tokenizer,
    /// A part without rules.
    Other,
    Served,
    /// A model of Model API, by its wrapper.
    Classifier,
    Segmenter,
    Ssd,
    Yolo,
    Anomaly,
    /// A model of any other wrapper of Model API.
    Wrapped,
    OptimumDecoder,
    OptimumFeatures,
    OptimumClassifier,
    OptimumImage,
    OptimumOther,
}

impl Part {
    pub(super) fn of(program: Program, facts: &Facts) -> Self {
        match program {
            Program::GenAi(Some(pipeline)) => Self::of_pipeline(pipeline, facts),
            Program::GenAi(None) => Self::of_pipeline(pipeline_of(facts), facts),
            Program::ModelServer => Self::Served,
            Program::ModelApi => Self::wrapper(facts),
            Program::Optimum => Self::of_optimum(facts),
        }
    }

    fn of_pipeline(pipeline: Pipeline, facts: &Facts) -> Self {
        let (stem, folder) = (facts.stem(), facts.folder_name());
        // The models of an image pipeline have folders of their own.
        let has = |part: &str| stem.contains(part) || pipeline == Pipeline::Text2Image && folder.contains(part);
        match pipeline {
            Pipeline::Llm => Self::Llm,
            Pipeline::Vlm if has("text_embeddings_model") => Self::TextEmbeddings,
            Pipeline::Vlm if has("vision_embeddings_model") => Self::VisionEmbeddings,
            Pipeline::Vlm if has("language_model") || facts.output("logits").is_some() => Self::Language,
            Pipeline::Whisper if has("encoder_model") || facts.input("input_features").is_some() => {
                Self::WhisperEncoder
            }
            Pipeline::Whisper if has("decoder_with_past") || has("tokenizer") => Self::Other,
            Pipeline::Whisper => Self::WhisperDecoder,
            Pipeline::Text2Image if has("vae_decoder") => Self::VaeDecoder,
            Pipeline::Text2Image if has("vae_encoder") => Self::VaeEncoder,
            // The second text encoder and those of other families use other outputs.
            Pipeline::Text2Image if has("text_encoder") => {
                let class = facts.json("../model_index.json").and_then(|json| text(&json, "_class_name"));
                let is_known = class.is_none_or(|class| class.starts_with("StableDiffusion") && !class.contains("XL"));
                if is_known && !has("text_encoder_") { Self::TextEncoder } else { Self::Other }
            }
            Pipeline::Text2Image if has("transformer") => Self::Other,
            Pipeline::Text2Image => Self::Unet,
            Pipeline::Embedding => Self::Embedding,
            Pipeline::Rerank => Self::Rerank,
            Pipeline::Tokenizer if has("detokenizer") => Self::Other,
            Pipeline::Tokenizer => Self::Tokenizer,
            Pipeline::Vlm => Self::Other,
        }
    }

    fn wrapper(facts: &Facts) -> Self {
        let name = facts.key("model_info/model_type").unwrap_or_default().to_lowercase();
        match &*name {
            "classification" => Self::Classifier,
            "segmentation" => Self::Segmenter,
            "ssd" => Self::Ssd,
            "yolov5" | "yolov8" | "yolo11" => Self::Yolo,
            "" if ["pred_score", "pred_label", "anomaly_map", "pred_mask"]
                .iter()
                .all(|it| facts.output(it).is_some()) =>
            {
                Self::Anomaly
            }
            _ => Self::Wrapped,
        }
    }

    fn of_optimum(facts: &Facts) -> Self {
        let config = facts.json("config.json").unwrap_or_default();
        let of_decoder = |name: &str| name.contains("past_key_values") || name.contains("cache_params");
        let is_decoder = facts.input("beam_idx").is_some()
            || !facts.variables.is_empty()
            || facts.inputs.iter().any(|port| of_decoder(&port.shown));
        let class = config["architectures"][0].as_str().unwrap_or_default();
        let is_image = facts.inputs.len() == 1 && facts.inputs[0].rank() == Some(4);
        match facts.stem() {
            stem if stem.contains("tokenizer") => Self::OptimumOther,
            stem if stem.contains("encoder_model") || stem.contains("decoder") => Self::OptimumOther,
            _ if is_decoder || class.ends_with("ForCausalLM") => Self::OptimumDecoder,
            _ if is_image => Self::OptimumImage,
            _ if facts.outputs.iter().any(|port| port.is("logits")) => Self::OptimumClassifier,
            _ if facts.outputs.iter().all(|port| port.rank() == Some(2)) && class.ends_with("Classification") => {
                Self::OptimumClassifier
            }
            _ if facts.outputs.iter().any(|port| port.rank() == Some(3)) => Self::OptimumFeatures,
            _ => Self::OptimumOther,
        }
    }

    pub(super) fn loader(self) -> &'static str {
        match self {
            Self::Llm => "LLMPipeline",
            Self::Language | Self::TextEmbeddings | Self::VisionEmbeddings => "VLMPipeline",
            Self::WhisperEncoder | Self::WhisperDecoder => "WhisperPipeline",
            Self::Unet | Self::TextEncoder | Self::VaeDecoder | Self::VaeEncoder => "Text2ImagePipeline",
            Self::Embedding => "TextEmbeddingPipeline",
            Self::Rerank => "TextRerankPipeline",
            Self::Tokenizer => "openvino.genai's Tokenizer",
            Self::Other => "openvino.genai",
            Self::Served => "Model Server",
            Self::Classifier | Self::Segmenter | Self::Ssd | Self::Yolo | Self::Anomaly | Self::Wrapped => "Model API",
            Self::OptimumDecoder | Self::OptimumFeatures | Self::OptimumClassifier => "optimum-intel",
            Self::OptimumImage | Self::OptimumOther => "optimum-intel",
        }
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Llm => "llm",
            Self::Language => "vlm, language model",
            Self::TextEmbeddings => "vlm, text embeddings",
            Self::VisionEmbeddings => "vlm, vision embeddings",
            Self::WhisperEncoder => "whisper, encoder",
            Self::WhisperDecoder => "whisper, decoder",
            Self::Unet => "text2image, unet",
            Self::TextEncoder => "text2image, text encoder",
            Self::VaeDecoder => "text2image, VAE decoder",
            Self::VaeEncoder => "text2image, VAE encoder",
            Self::Embedding => "embedding",
            Self::Rerank => "rerank",
            Self::Tokenizer => "tokenizer",
            Self::Other => "genai",
            Self::Served => "ovms",
            Self::Classifier => "model-api, Classification",
            Self::Segmenter => "model-api, Segmentation",
            Self::Ssd => "model-api, SSD",
            Self::Yolo => "model-api, YOLO",
            Self::Anomaly | Self::Wrapped => "model-api",
            Self::OptimumDecoder => "optimum, decoder",
            Self::OptimumFeatures => "optimum, features",
            Self::OptimumClassifier => "optimum, classifier of texts",
            Self::OptimumImage => "optimum, images",
            Self::OptimumOther => "optimum",
        })
    }
}

/// Finds the pipeline of openvino.genai that a model belongs to, by its name, its neighbours, its inputs and outputs.
fn pipeline_of(facts: &Facts) -> Pipeline {
    let stem = facts.stem();
    let model_type = facts.json("config.json").and_then(|json| text(&json, "model_type")).unwrap_or_default();
    let has_output = |name: &str, ranks: &[usize]| {
        facts.outputs.iter().any(|port| port.is(name) && port.rank().is_none_or(|rank| ranks.contains(&rank)))
    };
    let is_whisper = model_type == "whisper" || facts.input("input_features").is_some();
    if stem.contains("tokenizer") {
        Pipeline::Tokenizer
    } else if facts.has_file("openvino_language_model.xml") || stem == "openvino_language_model" {
        Pipeline::Vlm
    } else if is_whisper
        || stem.contains("encoder_model")
        || stem.contains("decoder_model")
        || facts.input("encoder_hidden_states").is_some()
            && facts.input("timestep").is_none()
            && has_output("logits", &[3])
    {
        Pipeline::Whisper
    } else if facts.has_file("../model_index.json")
        || ["unet", "vae_decoder", "vae_encoder", "text_encoder"].contains(&&*facts.folder_name())
        || facts.input("timestep").is_some()
    {
        Pipeline::Text2Image
    } else if !facts.variables.is_empty()
        || facts.input("beam_idx").is_some()
        || facts.inputs.iter().any(|port| port.shown.contains("past_key_values"))
    {
        Pipeline::Llm
    } else if has_output("last_hidden_state", &[2, 3]) {
        Pipeline::Embedding
    } else if is_encoder(&model_type) || facts.input("token_type_ids").is_some() {
        let ranks: Vec<_> = facts.outputs.iter().filter_map(|port| port.rank()).collect();
        let is_rerank = facts.output("logits").is_some() || ranks.contains(&2);
        if is_rerank { Pipeline::Rerank } else { Pipeline::Embedding }
    } else if has_output("logits", &[2]) || facts.outputs.iter().all(|port| port.rank() == Some(2)) {
        Pipeline::Rerank
    } else if facts.input("inputs_embeds").is_some() && facts.output("logits").is_some() {
        Pipeline::Vlm
    } else {
        Pipeline::Llm
    }
}

/// True for types of models that read a text as a whole, and generate none.
fn is_encoder(model_type: &str) -> bool {
    model_type.ends_with("bert")
        || model_type.contains("bert-")
        || model_type.ends_with("roberta")
        || model_type == "mpnet"
}

pub(super) fn text(json: &Value, key: &str) -> Option<String> {
    Some(json.get(key)?.as_str()?.to_owned())
}
