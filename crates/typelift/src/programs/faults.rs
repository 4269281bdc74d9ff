//! Ways in which models break the requirements of programs.

use serde_json::Value;
use typelift_promote::ElementType::{self, F32};

use super::facts::{Facts, Port, Variable};
use super::parts::text;
use crate::base::names::captures;
use crate::edit::inputs_outputs::End;
use crate::edit::metadata::layout_dims;
use crate::findings::{Message, Severity, Text, message};
use crate::model::graph::{LayerId, Model};
use crate::model::shape::{Dim, Shape};
use crate::ops;
use crate::rewrite::notation::Quoted;

/// Largest number of inputs or outputs that a message names.
const NAMED: usize = 3;

/// A broken requirement.
#[derive(Default)]
pub(super) struct Fault {
    /// The input, output, key or file.
    pub(super) name: String,
    pub(super) message: Message,
    /// The Parameter, Result or ReadValue.
    pub(super) layer: Option<LayerId>,
    /// The name with which statements find it.
    pub(super) address: Option<String>,
    /// Scripts of statements that may repair the model, before those of the rule.
    pub(super) scripts: Vec<String>,
    /// Advice, if no statement repairs the model.
    pub(super) advice: Option<Message>,
    pub(super) severity: Option<Severity>,
    /// Inputs and outputs that the fault explains. Later rules do not report them.
    pub(super) explains: Vec<LayerId>,
}

impl Fault {
    pub(super) fn new(name: impl Into<String>, message: impl Into<Message>) -> Self {
        Self { name: name.into(), message: message.into(), ..Self::default() }
    }

    pub(super) fn of(port: &Port, message: impl Into<Message>) -> Self {
        Self { layer: Some(port.layer), address: Some(port.address()), ..Self::new(&port.shown, message) }
    }

    pub(super) fn script(mut self, script: impl Into<String>) -> Self {
        self.scripts.push(script.into());
        self
    }

    pub(super) fn advice(self, advice: impl Into<Message>) -> Self {
        Self { advice: Some(advice.into()), ..self }
    }

    fn severity(self, severity: Severity) -> Self {
        Self { severity: Some(severity), ..self }
    }

    pub(super) fn explaining(mut self, ports: impl IntoIterator<Item = LayerId>) -> Self {
        self.explains.extend(ports);
        self
    }
}

/// Lists the first few names.
pub(super) fn shown<'p>(ports: impl IntoIterator<Item = &'p Port>) -> Text<String> {
    let names: Vec<_> = ports.into_iter().map(|port| format!("`{}`", port.shown)).collect();
    let rest = names.len().saturating_sub(NAMED);
    let more = if rest > 0 { format!(" and {rest} more") } else { String::new() };
    Text(names[..names.len() - rest].join(", ") + &more)
}

/// Names of inputs and outputs that programs know. None of them is renamed.
pub(super) const KNOWN: &[&str] = &[
    "input_ids",
    "inputs_embeds",
    "attention_mask",
    "position_ids",
    "beam_idx",
    "token_type_ids",
    "cache_position",
    "encoder_hidden_states",
    "input_features",
    "logits",
    "last_hidden_state",
    "sample",
    "timestep",
    "pixel_values",
    "pooler_output",
    "text_embeds",
    "time_ids",
];

/// True for an input or output that holds keys or values of earlier tokens.
pub(super) fn is_cache(port: &Port) -> bool {
    let name = port.shown.to_lowercase();
    ["past", "present", "cache_k", "cache_v", "cache_params", "key_values"].iter().any(|part| name.contains(part))
        && port.rank().is_none_or(|rank| rank > 1)
}

/// The model has constants, and no `.bin` beside it.
pub(super) fn weights(facts: &Facts) -> Vec<Fault> {
    let Some(file) = facts.file else { return Vec::new() };
    let bin = file.with_extension("bin");
    let misses = facts.model.weights().len().is_none()
        && facts.model.walk().any(|(_, graph)| graph.unordered().any(ops::is_constant));
    let name = bin.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let message = message!("the weights `{}` are missing"; name);
    if misses && !bin.is_file() { vec![Fault::new(name, message).severity(Severity::Error)] } else { Vec::new() }
}

/// The file has another name than the one that the program loads.
pub(super) fn file_name(facts: &Facts) -> Vec<Fault> {
    let stem = facts.stem();
    let is_known = stem.is_empty() || stem.starts_with("openvino_") || facts.has_file("openvino_model.xml");
    let message = message!("the model is called `{}.xml`, and the program loads `openvino_model.xml`"; stem);
    if is_known { Vec::new() } else { vec![Fault::new("openvino_model.xml", message)] }
}

/// Reads a settings file that exists.
fn settings(facts: &Facts, name: &str) -> Option<Value> {
    facts.has_file(name).then(|| facts.json(name).unwrap_or_default())
}

pub(super) fn languages(facts: &Facts) -> Vec<Fault> {
    let Some(settings) = settings(facts, "generation_config.json") else { return Vec::new() };
    let is_english = settings["is_multilingual"] == Value::Bool(false);
    let message = "`generation_config.json` has no `lang_to_id`, from which WhisperPipeline takes the languages";
    let fault = Fault::new("lang_to_id", message).advice("copy generation_config.json from the original model");
    if is_english || settings["lang_to_id"].is_object() { Vec::new() } else { vec![fault] }
}

pub(super) fn vlm_type(facts: &Facts) -> Vec<Fault> {
    const KNOWN: [&str; 22] = [
        "minicpmv",
        "minicpmo",
        "llava",
        "llava-qwen2",
        "llava_next",
        "llava_next_video",
        "internvl_chat",
        "phi3_v",
        "phi4mm",
        "qwen2_vl",
        "qwen2_5_vl",
        "qwen3_vl",
        "qwen3_5",
        "qwen3_5_moe",
        "gemma3",
        "gemma3n",
        "gemma4",
        "gemma4_unified",
        "videochat_flash_qwen",
        "qwen3_omni",
        "qwen3_omni_moe",
        "muse_glimmer",
    ];
    let Some(settings) = settings(facts, "config.json") else { return Vec::new() };
    let model_type = text(&settings, "model_type").unwrap_or_default();
    let message =
        message!("`model_type` in `config.json` is `{}`, which openvino.genai 2026.4 does not know"; model_type);
    if KNOWN.contains(&&*model_type) { Vec::new() } else { vec![Fault::new("model_type", message)] }
}

pub(super) fn model_type(facts: &Facts) -> Vec<Fault> {
    let Some(settings) = settings(facts, "config.json") else { return Vec::new() };
    let message = "`config.json` has no `model_type`, by which optimum-intel chooses the class";
    if text(&settings, "model_type").is_some() { Vec::new() } else { vec![Fault::new("model_type", message)] }
}

pub(super) fn transformers_version(facts: &Facts) -> Vec<Fault> {
    let has_section = facts.model.rt_info_entries().iter().any(|(key, _)| key.starts_with("optimum/"));
    let message = "the metadata has a section `optimum` without `transformers_version`";
    let is_wrong = has_section && facts.key("optimum/transformers_version").is_none();
    if is_wrong { vec![Fault::new("optimum/transformers_version", message)] } else { Vec::new() }
}

/// Reads the number at the start of a folder's name, as Model Server does.
fn version(name: &str) -> Option<i64> {
    let digits = name.trim_start_matches('+');
    let end = digits.char_indices().find(|(at, c)| !(c.is_ascii_digit() || *at == 0 && *c == '-'));
    digits[..end.map_or(digits.len(), |(at, _)| at)].parse().ok()
}

pub(super) fn version_folder(facts: &Facts) -> Vec<Fault> {
    let folder = facts.folder_name();
    if facts.file.is_none() || version(&folder).is_some_and(|number| number > 0) {
        return Vec::new();
    }
    // A model in any other folder may be the one that a configuration names directly.
    let is_meant = version(folder.trim_start_matches(['v', 'V'])).is_some();
    let severity = if is_meant { Severity::Error } else { Severity::Warning };
    let message =
        message!("the model is in the folder `{}`, and Model Server loads folders of versions: `1/`, `2/`, …"; folder);
    let advice = "move the model into a folder `1`, or name the .xml itself as base_path";
    vec![Fault::new("1/", message).severity(severity).advice(advice)]
}

const MAPPING: &str = "mapping_config.json";

pub(super) fn mapping_is_json(facts: &Facts) -> Vec<Fault> {
    let is_wrong = facts.has_file(MAPPING) && facts.json(MAPPING).is_none();
    if is_wrong { vec![Fault::new(MAPPING, "`mapping_config.json` is not JSON")] } else { Vec::new() }
}

pub(super) fn mapping(facts: &Facts) -> Vec<Fault> {
    let json = facts.json(MAPPING).unwrap_or_default();
    let mut faults = Vec::new();
    for end in [End::Input, End::Output] {
        let group = format!("{end}s");
        for name in json[&group].as_object().into_iter().flat_map(|names| names.keys()) {
            if !facts.ports(end).iter().any(|port| port.is(name)) {
                let known = shown(facts.ports(end));
                let message = message!("`mapping_config.json` maps the {} `{}`, which the model does not have; it has {}"; Text(end), name, known);
                faults.push(
                    Fault::new(format!("{group}/{name}"), message).advice("correct the name in mapping_config.json"),
                );
            }
        }
    }
    faults
}

/// Checks `shape` and `layout` of the server's configuration.
pub(super) fn server_config(facts: &Facts) -> Vec<Fault> {
    let files = ["config.json", "../config.json", "../../config.json"];
    let settings = files.iter().filter_map(|file| facts.json(file));
    let all: Vec<Value> = settings.filter_map(|json| json["model_config_list"].as_array().cloned()).flatten().collect();
    let mapping = facts.json(MAPPING).unwrap_or_default();
    let alias = |end: End, name: &str| mapping[format!("{end}s")].get(name).and_then(Value::as_str).map(str::to_owned);
    let is_of = |end: End, port: &Port, name: &str| {
        port.names.iter().any(|own| alias(end, own).as_deref() == Some(name))
            || port.is(name) && alias(end, name).is_none()
    };
    let find = |end: End, name: &str| facts.ports(end).iter().find(|port| is_of(end, port, name));
    let mut faults = Vec::new();
    for config in all.iter().map(|entry| &entry["config"]) {
        for key in ["shape", "layout"] {
            let several = config[key].as_str().is_some_and(|text| text != "auto") && facts.inputs.len() > 1;
            if let (true, Some(second)) = (several, facts.inputs.get(1)) {
                let message =
                    message!("`config.json` has one {} for a model with the inputs {}"; key, shown(&facts.inputs));
                faults.push(Fault::of(second, message).advice("write an object with the name of each input"));
            }
            for (name, value) in config[key].as_object().into_iter().flatten() {
                let port = find(End::Input, name).or_else(|| find(End::Output, name).filter(|_| key == "layout"));
                let Some(port) = port else {
                    let known = shown(&facts.inputs);
                    let message = message!("`config.json` has a {} for `{}`, which the model does not have; it has {}"; key, name, known);
                    faults.push(Fault::new(name, message).advice("correct the name in config.json"));
                    continue;
                };
                let text = value.as_str().unwrap_or_default();
                let shape: Option<Shape> =
                    text.replace(['(', ')', ' '], "").replace("-1", "?").replace(':', "..").parse().ok();
                if key == "layout" {
                    let model_layout = text.rsplit(':').next().unwrap_or_default();
                    if port.rank().is_some_and(|rank| !layout_fits(model_layout, rank)) {
                        let message = message!("`config.json` gives `{}` the layout {}, which does not fit {}"; name, model_layout, port.tensor.shape);
                        faults.push(Fault::of(port, message));
                    }
                } else if let Some(shape) = shape.filter(|_| text != "auto")
                    && !takes(facts.model, port, &shape)
                {
                    let message = message!("`config.json` reshapes `{}` to {}, which the model does not accept; it has {}"; name, shape, port.tensor.shape);
                    faults.push(Fault::of(port, message).advice("correct the shape in config.json"));
                }
            }
        }
        let batch = config["batch_size"].as_str() == Some("auto");
        if let Some(scalar) = facts.inputs.iter().find(|port| batch && port.rank() == Some(0)) {
            let message = message!("`config.json` asks for batch_size auto, and `{}` is a scalar"; scalar.shown);
            faults.push(Fault::of(scalar, message));
        }
    }
    faults
}

fn takes(model: &Model, port: &Port, shape: &Shape) -> bool {
    let mut model = model.clone();
    let is_set = model.set_input(&port.shown, None, Some(shape)).is_ok();
    is_set && !crate::infer(&mut model).iter().any(|it| it.is_error())
}

fn layout_fits(layout: &str, rank: usize) -> bool {
    let (count, is_open) = layout_dims(layout);
    count == rank || is_open && count <= rank
}

pub(super) fn layout_rank(facts: &Facts) -> Vec<Fault> {
    let mut faults = Vec::new();
    for port in facts.inputs.iter().chain(&facts.outputs) {
        let Some((layout, rank)) = layout(facts, port).zip(port.rank()) else { continue };
        if !layout_fits(&layout, rank) {
            let message =
                message!("the layout {} of `{}` does not fit its shape {}"; layout, port.shown, port.tensor.shape);
            let names = ["[N]", "[N,C]", "[N,C,D]", "[N,C,H,W]", "[N,C,D,H,W]"];
            let script = rank.checked_sub(1).and_then(|at| names.get(at));
            let script = script.map(|names| format!("layout {} = {names}", port.address()));
            faults.push(Fault { scripts: script.into_iter().collect(), ..Fault::of(port, message) });
        }
    }
    faults
}

fn layout(facts: &Facts, port: &Port) -> Option<String> {
    facts.model.layout(port.layer)
}

fn pattern(name: &str) -> String {
    let part = |part: &str| {
        let is_number = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        if is_number || ["key", "value", "keys", "values", "k", "v"].contains(&part) {
            "*".to_owned()
        } else {
            part.to_owned()
        }
    };
    let by = |separator: char, text: &str| -> String {
        text.split(separator).map(&part).collect::<Vec<_>>().join(&separator.to_string())
    };
    if name.contains('.') { by('.', name) } else { by('_', name) }
}

fn stateful(pasts: &[&Port], presents: &[&Port]) -> Option<String> {
    let mut patterns: Vec<(String, String)> = Vec::new();
    for past in pasts {
        let from = pattern(&past.shown);
        let found = captures(&from, &past.shown).unwrap_or_default();
        let to =
            presents.iter().find(|port| captures(&pattern(&port.shown), &port.shown).is_some_and(|it| it == found));
        let pair = (from, pattern(&to?.shown));
        if !patterns.contains(&pair) {
            patterns.push(pair);
        }
    }
    let statement = |(from, to): &(String, String)| {
        format!("stateful {} -> {} reorder beam_idx", Quoted::name(from), Quoted::name(to))
    };
    (!patterns.is_empty()).then(|| patterns.iter().map(statement).collect::<Vec<_>>().join("\n"))
}

/// The cache is inputs and outputs, or there is none.
pub(super) fn cache(facts: &Facts) -> Vec<Fault> {
    if !facts.variables.is_empty() {
        return Vec::new();
    }
    let beam = facts.input("beam_idx");
    let (mut pasts, mut presents): (Vec<_>, Vec<_>) = (
        facts.inputs.iter().filter(|it| is_cache(it)).collect(),
        facts.outputs.iter().filter(|it| is_cache(it)).collect(),
    );
    if pasts.is_empty() {
        // Names of a cache are free. Its inputs and outputs have as many axes and come in pairs.
        let is_free = |port: &&Port| !port.names.iter().any(|name| KNOWN.contains(&name.as_str()));
        let is_like =
            |port: &&Port| is_free(port) && port.element_type().is_float() && port.rank().is_some_and(|it| it > 2);
        pasts = facts.inputs.iter().filter(is_like).collect();
        presents = facts.outputs.iter().filter(is_like).filter(|port| port.rank() == Some(4)).collect();
    }
    let is_paired = !pasts.is_empty() && pasts.len() <= presents.len();
    if !is_paired {
        let message = "the model has no cache of past keys and values: neither state nor inputs `past_key_values`. Each step would see one token";
        let advice =
            "export the model again with a cache: optimum-cli export openvino --task text-generation-with-past";
        let fault = Fault::new("cache", message).advice(advice);
        return vec![if beam.is_some() { fault.severity(Severity::Warning) } else { fault }];
    }
    let message = message!("the cache is inputs and outputs instead of state: {} and {}"; shown(pasts.iter().copied()), shown(presents.iter().copied()));
    let beam_first = if beam.is_some() { "" } else { "add input beam_idx : i32[?]\n" };
    let script = stateful(&pasts, &presents).or_else(|| {
        let pairs = pasts.iter().zip(&presents).filter(|_| pasts.len() == presents.len() && pasts.len() <= 8);
        let all: Vec<_> = pairs
            .map(|(past, present)| format!("stateful {} -> {} reorder beam_idx", past.address(), present.address()))
            .collect();
        (!all.is_empty()).then(|| all.join("\n"))
    });
    let fault = Fault { layer: pasts.first().map(|port| port.layer), ..Fault::new("cache", message) };
    let fault = fault.explaining(pasts.iter().chain(&presents).map(|port| port.layer));
    vec![match script {
        Some(script) => fault.script(format!("{beam_first}{script}")),
        None => fault.advice("turn them into state: stateful PAST -> PRESENT reorder beam_idx"),
    }]
}

pub(super) fn optimum_cache(facts: &Facts) -> Vec<Fault> {
    let is_past =
        |port: &&Port| port.names.iter().any(|name| name.contains("past_key_values") || name.contains("cache_params"));
    if !facts.variables.is_empty() {
        return Vec::new();
    }
    let pasts: Vec<_> = facts.inputs.iter().filter(is_past).collect();
    let is_like =
        |port: &&Port| port.rank().is_some_and(|it| it > 2) && !port.is("logits") && !port.is("inputs_embeds");
    let others: Vec<_> = facts.inputs.iter().filter(|port| is_like(port) && port.element_type().is_float()).collect();
    let presents: Vec<_> =
        facts.outputs.iter().filter(is_like).filter(|port| port.rank() == Some(4) || is_cache(port)).collect();
    let named = presents.iter().filter(|port| port.names.iter().any(|name| name.contains("present"))).count();
    let renamed = |ports: &[&Port], group: &str| -> String {
        let renamed = ports.iter().enumerate().map(|(at, port)| {
            let kind = ["key", "value"][at % 2];
            format!("rename {} {group}.{}.{kind}", port.address(), at / 2)
        });
        renamed.collect::<Vec<_>>().join("\n")
    };
    match (pasts.as_slice(), others.as_slice()) {
        ([], []) => {
            let message = "the model has no cache: neither state nor inputs `past_key_values`, and `use_cache` is true by default";
            let advice =
                "load it with use_cache=False, or export the model again with --task text-generation-with-past";
            vec![Fault::new("past_key_values", message).advice(advice)]
        }
        ([], others) => {
            let message = message!("the inputs of the cache are named {}, and optimum-intel looks for `past_key_values` in their names"; shown(others.iter().copied()));
            let fault = Fault { layer: Some(others[0].layer), ..Fault::new("past_key_values", message) };
            let rest = if named == 0 { renamed(&presents, "present") } else { String::new() };
            let script = renamed(others, "past_key_values") + "\n" + &rest;
            vec![fault.script(script).explaining(others.iter().map(|port| port.layer))]
        }
        (pasts, _) if named < pasts.len() => {
            let message = message!("the outputs of the cache are named {}, and optimum-intel looks for `present` in their names"; shown(presents.iter().copied()));
            let fault = Fault { layer: presents.first().map(|port| port.layer), ..Fault::new("present", message) };
            vec![fault.script(renamed(&presents, "present")).explaining(presents.iter().map(|port| port.layer))]
        }
        _ => Vec::new(),
    }
}

fn of_variables(name: &str, message: Message, variables: &[&Variable]) -> Vec<Fault> {
    let layer = variables.first().map(|variable| variable.read);
    if layer.is_none() { Vec::new() } else { vec![Fault { layer, ..Fault::new(name, message) }] }
}

pub(super) fn state_type(facts: &Facts) -> Vec<Fault> {
    let converted: Vec<_> = facts.variables_that_grow().filter(|it| it.is_converted).collect();
    let first = converted.first().map(|it| it.id.as_str()).unwrap_or_default();
    let message = message!("Converts separate the state of {} variables from the attention, the first is `{}`: the CPU plugin does not find the cache"; converted.len(), first);
    of_variables("cache", message, &converted)
}

pub(super) fn beam(facts: &Facts) -> Vec<Fault> {
    if facts.variables.is_empty() || facts.input("beam_idx").is_some() {
        return Vec::new();
    }
    let is_index =
        |port: &&Port| port.rank() == Some(1) && port.element_type().is_integer() && !port.is("cache_position");
    let free = facts.inputs.iter().find(is_index);
    let mut fault = Fault::new("beam_idx", "the model has state, and no input `beam_idx` to reorder it");
    if let Some(port) = free {
        fault = fault.script(format!("rename {} beam_idx", port.address())).explaining([port.layer]);
        fault.layer = Some(port.layer);
        fault.message =
            message!("the model has state, and the input that reorders it is called `{}`, not `beam_idx`"; port.shown);
    }
    vec![fault]
}

pub(super) fn reorder(facts: &Facts) -> Vec<Fault> {
    let Some(beam) = facts.input("beam_idx") else { return Vec::new() };
    let fixed: Vec<_> = facts.variables_that_grow().filter(|it| !it.is_reordered).collect();
    let first = fixed.first().map(|it| it.id.as_str()).unwrap_or_default();
    let message =
        message!("`beam_idx` does not reorder the state of {} variables, the first is `{}`"; fixed.len(), first);
    let mut faults = of_variables("beam_idx", message, &fixed);
    faults.iter_mut().for_each(|fault| fault.explains.push(beam.layer));
    faults
}

pub(super) fn attention(facts: &Facts) -> Vec<Fault> {
    let caches: Vec<_> = facts.variables_that_grow().collect();
    if facts.has_attention {
        return Vec::new();
    }
    let message = "the model has state, and no ScaledDotProductAttention that uses it";
    of_variables("ScaledDotProductAttention", message.into(), &caches)
}

pub(super) fn variable_names(facts: &Facts) -> Vec<Fault> {
    let odd: Vec<_> =
        facts.variables_that_grow().filter(|it| !(it.id.contains("past") && it.id.contains("present"))).collect();
    let first = odd.first().map(|it| it.id.as_str()).unwrap_or_default();
    let message =
        message!("variables are not named like `past_key_values.0.keypresent.0.key`: the first is `{}`"; first);
    of_variables("state", message, &odd)
}

pub(super) fn unread_mask(facts: &Facts) -> Vec<Fault> {
    let unread = facts.input("attention_mask").filter(|port| !port.is_used);
    unread.map(|port| Fault::of(port, "no layer reads `attention_mask`")).into_iter().collect()
}

/// Inputs that LLMPipeline sets, apart from the cache.
const OF_DECODER: &[&str] = &["input_ids", "inputs_embeds", "attention_mask", "position_ids", "beam_idx"];

fn strangers<'f>(facts: &'f Facts) -> Vec<&'f Port> {
    let is_known = |port: &&Port| OF_DECODER.iter().any(|name| port.is(name)) || is_cache(port);
    facts.inputs.iter().filter(|port| !is_known(port)).collect()
}

pub(super) fn positions(facts: &Facts) -> Vec<Fault> {
    if facts.input("position_ids").is_some() {
        return Vec::new();
    }
    let is_position = |port: &&Port| {
        port.rank() == Some(2)
            && port.element_type().is_integer()
            && !KNOWN.contains(&&*port.shown)
            && (port.shown.to_lowercase().contains("pos")
                || facts.input("input_ids").is_some() && facts.input("attention_mask").is_some())
    };
    let Some(port) = strangers(facts).into_iter().find(is_position) else { return Vec::new() };
    let message = message!("the positions are called `{}`, and programs set them as `position_ids`"; port.shown);
    let fault = Fault { layer: Some(port.layer), ..Fault::new("position_ids", message) };
    vec![fault.script(format!("rename {} position_ids", port.address())).explaining([port.layer])]
}

pub(super) fn input_count(facts: &Facts) -> Vec<Fault> {
    let caches = facts.inputs.iter().any(is_cache);
    let extra = strangers(facts);
    let Some(first) = extra.first().filter(|_| facts.inputs.len() > 4 && !caches) else { return Vec::new() };
    let message = message!("the model has {} inputs, and the SDPA backend takes 3 or 4: {} is not one of them"; facts.inputs.len(), shown(extra.iter().copied()));
    vec![Fault::of(first, message).explaining(extra.iter().map(|port| port.layer))]
}

fn tokenizer_outputs(facts: &Facts) -> Option<Vec<String>> {
    let tokenizer = facts.neighbour("openvino_tokenizer.xml")?;
    let facts = Facts::new(&tokenizer, None);
    Some(facts.outputs.iter().flat_map(|port| port.names.clone()).collect())
}

pub(super) fn token_types(facts: &Facts) -> Vec<Fault> {
    const NAME: &str = "token_type_ids";
    let Some(given) = tokenizer_outputs(facts) else { return Vec::new() };
    match (facts.input(NAME), given.iter().any(|name| name == NAME)) {
        (Some(port), false) => {
            let fault = Fault::of(port, "the model needs `token_type_ids`, which openvino_tokenizer.xml does not give");
            vec![
                fault.script("redirect token_type_ids -> Multiply(input_ids, 0)").script("remove input token_type_ids"),
            ]
        }
        (None, true) => {
            let fault =
                Fault::new(NAME, "openvino_tokenizer.xml gives `token_type_ids`, which the model does not take");
            vec![fault.script("add input token_type_ids : i64[?,?]")]
        }
        _ => Vec::new(),
    }
}

pub(super) fn rerank_logits(facts: &Facts) -> Vec<Fault> {
    // The rerankers of Qwen3 are decoders, whose logits have rank 3.
    let model_type = facts.json("config.json").and_then(|json| text(&json, "model_type"));
    let port = facts.output("logits").filter(|port| port.rank().is_some_and(|rank| rank != 2));
    let port = port.filter(|_| model_type.as_deref() != Some("qwen3"));
    port.map(|port| {
        Fault::of(
            port,
            message!("`logits` has the shape {}, and TextRerankPipeline reads a score per text: [?,1] or [?,2]"; port.tensor.shape),
        )
    }).into_iter().collect()
}

pub(super) fn flat_inputs(facts: &Facts) -> Vec<Fault> {
    let flat = facts.inputs.iter().filter(|port| port.rank().is_some_and(|rank| rank < 2));
    flat.map(|port| Fault::of(port, message!("`{}` has the shape {}, and optimum-intel opens the dimensions 0 and 1 of every input"; port.shown, port.tensor.shape))).collect()
}

fn is_channels(length: Option<i64>) -> bool {
    length.is_some_and(|length| (1..=4).contains(&length))
}

pub(super) fn channels_last(facts: &Facts) -> Vec<Fault> {
    let last = |port: &&Port| is_channels(port.length(3)) && !is_channels(port.length(1)) && port.length(1).is_some();
    let wrong = facts.input("pixel_values").filter(last);
    wrong
        .and_then(|port| {
            let dims = port.tensor.shape.dims()?;
            let shape: Shape = [dims[0], dims[3], dims[1], dims[2]].into_iter().collect();
            let name = port.address();
            let message =
                message!("`{}` is [N,H,W,C], {}, and optimum-intel gives [N,C,H,W]"; port.shown, port.tensor.shape);
            let script =
                format!("input {name} : {}{shape}\nbefore {name} : Transpose(_, [0,2,3,1])", port.element_type());
            Some(Fault::of(port, message).script(script))
        })
        .into_iter()
        .collect()
}

pub(super) fn image_logits(facts: &Facts) -> Vec<Fault> {
    let class =
        facts.json("config.json").unwrap_or_default()["architectures"][0].as_str().unwrap_or_default().to_owned();
    let is_classifier =
        class.ends_with("Classification") || facts.outputs.len() == 1 && facts.outputs[0].rank() == Some(2);
    if !is_classifier || facts.output("logits").is_some() || facts.outputs.len() != 1 {
        return Vec::new();
    }
    let port = &facts.outputs[0];
    let message = message!("optimum-intel reads the output `logits`, and the model has `{}`"; port.shown);
    let scripts = port.addresses().map(|name| format!("rename {name} logits")).collect();
    vec![Fault { scripts, layer: Some(port.layer), ..Fault::new("logits", message) }]
}

pub(super) fn mel_bands(facts: &Facts) -> Vec<Fault> {
    let Some(port) = facts.input("input_features") else { return Vec::new() };
    let bands = facts.json("preprocessor_config.json").and_then(|json| json["feature_size"].as_i64()).unwrap_or(80);
    let wants = |axis: usize, given: i64| port.length(axis).is_some_and(|length| length != given);
    if facts.file.is_none() || !(wants(1, bands) || wants(2, 3000)) {
        return Vec::new();
    }
    let message = message!("`input_features` takes {}, and WhisperPipeline gives [1,{},3000], by preprocessor_config.json"; port.tensor.shape, bands);
    vec![Fault::of(port, message).advice("copy preprocessor_config.json from the original model")]
}

pub(super) fn hidden_width(facts: &Facts) -> Vec<Fault> {
    let encoder = facts.neighbour("openvino_encoder_model.xml");
    let given = encoder
        .as_ref()
        .and_then(|encoder| Facts::new(encoder, None).output("last_hidden_state").map(|it| it.tensor.shape.clone()));
    let wrong =
        facts.input("encoder_hidden_states").zip(given).filter(|(port, given)| !port.tensor.shape.is_compatible(given));
    wrong.map(|(port, given)| {
        let message =
            message!("`encoder_hidden_states` takes {}, and the encoder beside it gives {}"; port.tensor.shape, given);
        Fault::of(port, message).advice("take encoder and decoder from the same model")
    }).into_iter().collect()
}

/// Inputs of the denoiser whose batch is fixed to another number than 2, the batch with guidance.
pub(super) fn guidance(facts: &Facts) -> Vec<Fault> {
    let fixed = |port: &&Port| port.length(0).is_some_and(|length| length != 2);
    let inputs: Vec<_> = ["sample", "encoder_hidden_states"].iter().filter_map(|name| facts.input(name)).collect();
    let Some(first) = inputs.iter().copied().find(|port| fixed(port)) else { return Vec::new() };
    let message = message!("`{}` has the batch of {}, and the pipeline runs 2 with guidance, 1 without"; first.shown, first.tensor.shape);
    let open = |port: &&Port| {
        let mut shape = port.tensor.shape.clone();
        if let Some(batch) = shape.dims_mut().and_then(|dims| dims.first_mut()) {
            *batch = Dim::ANY;
        }
        format!("input {} : {}{shape}", port.address(), port.element_type())
    };
    vec![Fault::of(first, message).script(inputs.iter().map(open).collect::<Vec<_>>().join("\n"))]
}

pub(super) fn prompt_shape(facts: &Facts) -> Vec<Fault> {
    let length = facts.json("config.json").and_then(|json| json["max_position_embeddings"].as_i64());
    let Some(port) = facts.inputs.first().filter(|port| port.rank() == Some(2)) else { return Vec::new() };
    let is_wrong = port.length(0).is_some_and(|length| length != 2)
        || length.is_some_and(|given| port.length(1).is_some_and(|length| length != given));
    let message = message!("`{}` has the fixed shape {}, and the pipeline gives two prompts of max_position_embeddings tokens"; port.shown, port.tensor.shape);
    let fault = || Fault::of(port, message).script(format!("input {} : {}[?,?]", port.address(), port.element_type()));
    if is_wrong { vec![fault()] } else { Vec::new() }
}

pub(super) fn is_other_type(port: &Port, types: &[ElementType]) -> bool {
    port.element_type() != ElementType::Dynamic && !types.contains(&port.element_type())
}

pub(super) fn first_of_type(port: Option<&Port>, ty: ElementType, what: &'static str) -> Vec<Fault> {
    let wrong = port.filter(|port| is_other_type(port, &[ty]));
    wrong
        .map(|port| {
            Fault::of(port, message!("`{}` is {}, and the pipeline {} {}"; port.shown, port.element_type(), what, ty))
        })
        .into_iter()
        .collect()
}

pub(super) fn hidden_states_first(facts: &Facts) -> Vec<Fault> {
    let Some(first) = facts.outputs.first().filter(|port| port.rank() == Some(2)) else { return Vec::new() };
    let meant = facts.outputs.iter().find(|port| port.rank() == Some(3));
    let message =
        message!("the first output, `{}`, has rank 2, and the pipeline reads the hidden states there"; first.shown);
    vec![match meant {
        Some(meant) => {
            let message = message!("the first output is `{}`, and the pipeline reads the hidden states there, which are `{}`"; first.shown, meant.shown);
            Fault::of(meant, message)
        }
        None => Fault::of(first, message),
    }]
}

pub(super) fn latents(facts: &Facts) -> Vec<Fault> {
    const NAMES: [&str; 2] = ["latent_sample", "latent_parameters"];
    if facts.outputs.iter().any(|port| NAMES.iter().any(|name| port.is(name))) {
        return Vec::new();
    }
    let message = message!("the pipeline reads `latent_sample` or `latent_parameters`, and the model has {}"; shown(&facts.outputs));
    let port = facts.outputs.first();
    let script = port.map(|port| format!("rename {} latent_sample", port.address()));
    vec![Fault {
        scripts: script.into_iter().collect(),
        layer: port.map(|it| it.layer),
        ..Fault::new(NAMES[0], message)
    }]
}

pub(super) fn pixels(facts: &Facts) -> Vec<Fault> {
    const NAME: &str = "pixel_values";
    let model_type = facts.json("config.json").and_then(|json| text(&json, "model_type")).unwrap_or_default();
    if facts.input(NAME).is_some() || model_type.starts_with("qwen") || facts.inputs.is_empty() {
        return Vec::new();
    }
    let port = facts.inputs.iter().find(|port| port.rank() == Some(4)).unwrap_or(&facts.inputs[0]);
    let message = message!("VLMPipeline sets the input `pixel_values`, and the model has `{}`"; port.shown);
    let scripts = port.addresses().map(|name| format!("rename {name} {NAME}")).collect();
    vec![Fault { scripts, layer: Some(port.layer), ..Fault::new(NAME, message) }]
}

pub(super) fn eos(facts: &Facts) -> Vec<Fault> {
    let in_files = ["generation_config.json", "config.json", "special_tokens_map.json", "tokenizer_config.json"];
    let has = |json: &Value| ["eos_token_id", "eos_token"].iter().any(|key| !json[*key].is_null());
    if facts.key("eos_token_id").is_some() || in_files.iter().any(|file| facts.json(file).is_some_and(|it| has(&it))) {
        return Vec::new();
    }
    let message = "the metadata has no `eos_token_id`, by which openvino.genai knows the end of a text";
    let advice = "write the id of the end token: -e 'info : eos_token_id = NUMBER'";
    vec![Fault::new("eos_token_id", message).advice(advice)]
}

pub(super) fn chat_template(facts: &Facts) -> Vec<Fault> {
    const FILES: [&str; 4] =
        ["tokenizer_config.json", "processor_config.json", "chat_template.json", "chat_template.jinja"];
    let in_file = |file: &&str| match file.ends_with(".jinja") {
        true => facts.has_file(file),
        false => facts.json(file).is_some_and(|json| json.get("chat_template").is_some()),
    };
    let is_there = facts.key("chat_template").is_some() || facts.key("chat_template/default").is_some();
    // Tokenizers of other pipelines need no chat.
    let other = facts.has_file("openvino_encoder_model.xml") || facts.has_file("../model_index.json");
    let message = "the metadata has no `chat_template`, and no file beside the tokenizer has one";
    let advice = "copy chat_template.jinja from the original model, or write it as metadata";
    let fault = Fault::new("chat_template", message).advice(advice);
    if is_there || other || FILES.iter().any(in_file) { Vec::new() } else { vec![fault] }
}

fn images<'f>(facts: &'f Facts) -> impl Iterator<Item = &'f Port> {
    facts.inputs.iter().filter(|port| port.rank() == Some(4))
}

pub(super) fn channel_values(facts: &Facts) -> Vec<Fault> {
    let Some(image) = images(facts).next() else { return Vec::new() };
    let channels = if is_channels(image.length(1)) { image.length(1) } else { image.length(3) };
    let Some(channels) = channels else { return Vec::new() };
    let mut faults = Vec::new();
    for key in ["model_info/mean_values", "model_info/scale_values"] {
        let Some(value) = facts.key(key) else { continue };
        let numbers: Vec<_> = value.split_whitespace().collect();
        let is_number = numbers.iter().all(|number| number.parse::<f64>().is_ok());
        if is_number && !numbers.is_empty() && numbers.len() != 1 && numbers.len() as i64 != channels {
            let message =
                message!("`{}` has {} numbers, and `{}` has {} channels"; key, numbers.len(), image.shown, channels);
            let few: Vec<_> = numbers.iter().cycle().take(channels.unsigned_abs() as usize).copied().collect();
            faults.push(Fault::new(key, message).script(format!("info : {key} = \"{}\"", few.join(" "))));
        }
    }
    faults
}

pub(super) fn labels(facts: &Facts) -> Vec<Fault> {
    const KEY: &str = "model_info/labels";
    let output = facts.outputs.first().filter(|port| matches!(port.rank(), Some(2 | 4)));
    let classes = output.and_then(|port| port.length(1));
    let Some((written, classes)) = facts.key(KEY).zip(classes) else { return Vec::new() };
    let labels: Vec<_> = written.split_whitespace().collect();
    let count = labels.len() as i64;
    if count == classes || labels.is_empty() {
        return Vec::new();
    }
    let listed: Vec<_> = written.split([',', ';', '\n']).map(str::trim).filter(|it| !it.is_empty()).collect();
    let mut renamed: Vec<String> = match listed.len() as i64 == classes {
        true => listed.iter().map(|class| class.replace(char::is_whitespace, "_")).collect(),
        false => labels.iter().map(|&label| label.to_owned()).collect(),
    };
    renamed.extend((renamed.len()..classes.unsigned_abs() as usize).map(|at| format!("class_{at}")));
    let script = format!("info : {KEY} = {}", Quoted::text(&renamed.join(" ")));
    let message = message!("`{}` has {} words, separated by spaces, and the model has {} classes"; KEY, count, classes);
    let severity = if count > classes { Severity::Warning } else { Severity::Error };
    let fault = Fault::new(KEY, message).severity(severity);
    let advice = "write one word per class: a label of two words needs another sign between them, such as `_`";
    // The name of a class that is missing, or which one is too much, is not known.
    vec![if count > classes && listed.len() as i64 != classes { fault.advice(advice) } else { fault.script(script) }]
}

pub(super) fn image_ranks(facts: &Facts) -> Vec<Fault> {
    let wrong = facts.inputs.iter().filter(|port| port.rank().is_some_and(|rank| rank != 4 && rank != 2));
    wrong
        .map(|port| {
            let name = port.address();
            let message = message!("`{}` has the shape {}, and Model API takes images of rank 4, or rank 2"; port.shown, port.tensor.shape);
            let fault = Fault::of(port, message);
            match port.tensor.shape.dims() {
                Some(dims) if dims.len() == 3 => {
                    let shape: Shape = std::iter::once(Dim::fixed(1)).chain(dims.iter().copied()).collect();
                    fault.script(format!("input {name} : {}{shape}\nbefore {name} : Squeeze(_, [0])", port.element_type()))
                }
                _ => fault,
            }
        })
        .collect()
}

pub(super) fn one_input(facts: &Facts) -> Vec<Fault> {
    let image = images(facts).next().or(facts.inputs.first());
    let others: Vec<_> = facts.inputs.iter().filter(|port| Some(port.layer) != image.map(|it| it.layer)).collect();
    let Some(first) = others.first() else { return Vec::new() };
    let message = message!("the wrapper takes one input, and the model also has {}"; shown(others.iter().copied()));
    vec![Fault::of(first, message)]
}

pub(super) fn layout_guess(facts: &Facts) -> Vec<Fault> {
    let wrong = images(facts).filter(|port| layout(facts, port).is_none()).filter_map(|port| {
        let [second, last] = [port.length(1), port.length(3)];
        // Model API takes a dimension 1 from 1 to 4 for the channels.
        let (guess, meant) = match (is_channels(second), is_channels(last)) {
            (true, true) if second != Some(3) && matches!(last, Some(1 | 3)) => ("[N,C,H,W]", "[N,H,W,C]"),
            (false, false) if second.is_some() => ("[N,H,W,C]", "[N,C,H,W]"),
            _ => return None,
        };
        let message = message!("`{}` has the shape {} and no layout: Model API takes it for {}"; port.shown, port.tensor.shape, guess);
        Some(Fault::of(port, message).script(format!("layout {} = {meant}", port.address())))
    });
    wrong.collect()
}

pub(super) fn open_image(facts: &Facts) -> Vec<Fault> {
    let wrong = images(facts).filter_map(|port| {
        let axes = if is_channels(port.length(3)) && !is_channels(port.length(1)) { [1, 2] } else { [2, 3] };
        if axes.iter().all(|&axis| port.length(axis).is_some()) {
            return None;
        }
        let mut shape = port.tensor.shape.clone();
        let dims = shape.dims_mut()?;
        axes.iter().filter(|&&axis| port.length(axis).is_none()).for_each(|&axis| dims[axis] = Dim::fixed(224));
        let message = message!("`{}` has the shape {}, and Model API builds its preprocessing for a fixed height and width"; port.shown, port.tensor.shape);
        Some(Fault::of(port, message).script(format!("input {} : {}{shape}", port.address(), port.element_type())))
    });
    wrong.collect()
}

pub(super) fn of_output(facts: &Facts, is_wrong: impl Fn(&Port) -> bool, wanted: &'static str) -> Vec<Fault> {
    let wrong = facts.outputs.first().filter(|port| port.rank().is_some() && is_wrong(port));
    wrong.map(|port| Fault::of(port, message!("`{}` is {}{}, and the wrapper reads {}"; port.shown, port.element_type(), port.tensor.shape, wanted))).into_iter().collect()
}

pub(super) fn class_output(facts: &Facts) -> Vec<Fault> {
    let fits = |port: &Port| match port.rank() {
        Some(2) => true,
        Some(4) => [2, 3].iter().all(|&axis| port.length(axis).is_none_or(|length| length == 1)),
        _ => false,
    };
    of_output(facts, |port| !fits(port), "[N,classes] or [N,classes,1,1]")
}

pub(super) fn box_output(facts: &Facts) -> Vec<Fault> {
    let has = |name: &str| facts.outputs.iter().any(|port| port.names.iter().any(|it| it.contains(name)));
    let fits = |port: &Port| port.rank() == Some(4) && port.length(3).is_none_or(|length| length == 7);
    if has("boxes") && has("labels") { Vec::new() } else { of_output(facts, |port| !fits(port), "[1,1,N,7]") }
}

pub(super) fn yolo_output(facts: &Facts) -> Vec<Fault> {
    let fits = |port: &Port| port.rank() == Some(3) && matches!(port.element_type(), F32 | ElementType::Dynamic);
    let faults = of_output(facts, |port| !fits(port), "f32 of rank 3");
    match facts.outputs.get(1) {
        Some(second) => {
            let message =
                message!("the wrapper reads one output, and the model also has {}"; shown(&facts.outputs[1..]));
            let names: Vec<_> = facts.outputs[1..].iter().map(Port::address).collect();
            let fault = Fault::of(second, message).script(format!("remove output {}", names.join(", ")));
            faults.into_iter().chain([fault]).collect()
        }
        None => faults,
    }
}
