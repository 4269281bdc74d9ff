//! Low-rank adapters: a weight `W` becomes `W + factor * (B · A)`.
//!
//! | names | factor |
//! |---|---|
//! | peft: `base_model.model.….q_proj.lora_A.weight`, `.lora_B.weight` | `adapter_config.json` beside the file: lora_alpha / r, or lora_alpha / √r for rslora |
//! | kohya: `lora_unet_…_to_k.lora_down.weight`, `.lora_up.weight` | the tensor `.alpha` / r |
//! | diffusers: `unet.….to_k.lora.down.weight`, or the names of peft | 1, or `.alpha` / r |

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;
use typelift_promote::ElementType;

use super::expression::Lets;
use crate::edit::Edit;
use crate::model::graph::{EditError, Graph, Layer, LayerId, Model, NewLayer, Output};
use crate::model::weights::Weights;
use crate::ops::values::array::{Array, Arrays, Data, round};
use crate::ops::{self, LayerKind};
use crate::rewrite::bound::self_describe;
use crate::rewrite::losses::Losses;
use crate::rewrite::values;

/// Endings of the names of A and B.
const PAIRS: [(&str, &str); 6] = [
    (".lora_A.weight", ".lora_B.weight"),
    (".lora_A.default.weight", ".lora_B.default.weight"),
    (".lora_down.weight", ".lora_up.weight"),
    (".lora.down.weight", ".lora.up.weight"),
    (".lora_A", ".lora_B"),
    ("_lora.down.weight", "_lora.up.weight"),
];
/// Prefixes of names that no layer has.
const PREFIXES: [&str; 10] = [
    "base_model.model.",
    "base_model.",
    "lora_unet_",
    "lora_te1_",
    "lora_te2_",
    "lora_te_",
    "lora_transformer_",
    "unet.",
    "text_encoder.",
    "transformer.",
];
/// Names of tensors that the error or warning lists.
const NAMED: usize = 3;

struct AdapterPair {
    /// Name of the layer in the adapter.
    name: String,
    down: Array,
    up: Array,
    factor: f64,
}

/// The tensors of an adapter, which are read within the memory limit of the model.
struct Tensors<'a> {
    arrays: &'a Arrays,
    weights: &'a Weights,
}

impl Tensors<'_> {
    fn names(&self) -> impl Iterator<Item = &str> {
        self.arrays.found.keys().map(String::as_str)
    }

    fn get(&self, name: &str) -> Result<Array, String> {
        self.arrays.read(self.arrays.find(Some(name))?, self.weights)
    }
}

/// A layer that an adapter can change.
struct Target {
    layer: LayerId,
    /// Names of the layer and of its weights, with `_` between all parts.
    names: Vec<String>,
    /// The stored constant, if nothing else uses it and its type holds floats.
    stored: Option<LayerId>,
    /// True if the rows of the weights are output channels.
    is_by_row: bool,
    is_convolution: bool,
}

pub(super) fn lora(model: &mut Model, file: &Path, scale: f64, lets: &Lets) -> Result<(), String> {
    let tensors = Arrays::open(file).map_err(|reason| format!("cannot read `{}`: {reason}", file.display()))?;
    let tensors = Tensors { arrays: &tensors, weights: model.weights() };
    let config = file.with_file_name("adapter_config.json");
    let config: Value = match std::fs::read(config) {
        Ok(text) => {
            serde_json::from_slice(&text).map_err(|error| format!("`adapter_config.json` is not JSON: {error}"))?
        }
        Err(_) => Value::Null,
    };
    let (pairs, mut unused) = read(&tensors, &config)?;
    let targets = targets(model);
    let mut used = BTreeMap::<LayerId, String>::new();
    let mut changes = Vec::new();
    for pair in pairs {
        let Some(target) = find(model.graph(), &targets, &pair.name)? else {
            unused.push(pair.name);
            continue;
        };
        if let Some(other) = used.insert(target.layer, pair.name.clone()) {
            let layer = describe(model.graph(), target.layer);
            return Err(format!("the tensors `{other}` and `{}` both belong to {layer}", pair.name));
        }
        changes.push((target, pair));
    }
    if changes.is_empty() {
        return Err(format!(
            "no layer of the model has the name of a tensor of `{}`{}",
            file.display(),
            listed(&unused)
        ));
    }
    for (target, pair) in changes {
        apply(model, target, &pair, pair.factor * scale, lets)?;
    }
    if !unused.is_empty() {
        lets.unused.borrow_mut().append(&mut unused);
    }
    Ok(())
}

fn listed(names: &[String]) -> String {
    let shown: Vec<_> = names.iter().take(NAMED).map(|name| format!("`{name}`")).collect();
    let more = names.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    if names.is_empty() { String::new() } else { format!(": {}{more}", shown.join(", ")) }
}

fn describe(graph: &Graph, id: LayerId) -> String {
    graph.layer(id).map(self_describe).unwrap_or_default()
}

/// Reads the pairs of an adapter. Also returns the names of tensors that belong to no pair.
fn read(tensors: &Tensors<'_>, config: &Value) -> Result<(Vec<AdapterPair>, Vec<String>), String> {
    let names: Vec<&str> = tensors.names().collect();
    if let Some(name) = names.iter().find(|name| name.contains("lora_magnitude_vector") || name.ends_with("dora_scale"))
    {
        return Err(format!(
            "the adapter is DoRA, which scales weights by their norm: `{name}`; merge it before the export"
        ));
    }
    if config["use_dora"] == Value::Bool(true) {
        return Err("the adapter is DoRA by `adapter_config.json`; merge it before the export".to_owned());
    }
    let (mut pairs, mut unused) = (Vec::new(), Vec::new());
    for &name in &names {
        let half = PAIRS.iter().find_map(|(down, up)| {
            let of_down = name.strip_suffix(down).map(|base| (base, true));
            let (base, is_down) = of_down.or_else(|| Some((name.strip_suffix(up)?, false)))?;
            Some((base, format!("{base}{}", if is_down { up } else { down }), is_down))
        });
        match half {
            Some((_, other, _)) if !names.contains(&&*other) => {
                return Err(format!("the adapter has `{name}` without `{other}`"));
            }
            Some((base, up, true)) => {
                let (down, up) = (tensors.get(name)?, tensors.get(&up)?);
                let factor = factor(tensors, config, base, down.dims.first().copied().unwrap_or(0))?;
                pairs.push(AdapterPair { name: base.to_owned(), down, up, factor });
            }
            None if !name.ends_with(".alpha") => unused.push(name.to_owned()),
            _ => {}
        }
    }
    Ok((pairs, unused))
}

fn factor(tensors: &Tensors<'_>, config: &Value, name: &str, rank: usize) -> Result<f64, String> {
    let rank = rank as f64;
    let patterns = config["alpha_pattern"].as_object().into_iter().flatten();
    if let Some((pattern, _)) =
        patterns.clone().find(|(pattern, _)| pattern.contains(['\\', '*', '+', '?', '|', '[', '(']))
    {
        return Err(format!("`alpha_pattern` has the regular expression `{pattern}`; write the names of its layers"));
    }
    // A pattern of peft matches the end of a name, from a dot on.
    let of_pattern = patterns.into_iter().find(|(pattern, _)| {
        let rest = name.strip_suffix(pattern.trim_start_matches('^').trim_end_matches('$'));
        rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    });
    let alpha = of_pattern.map(|(_, alpha)| alpha).unwrap_or(&config["lora_alpha"]).as_f64();
    if let Some(alpha) = alpha {
        let is_by_root = config["use_rslora"] == Value::Bool(true);
        return Ok(alpha / if is_by_root { rank.sqrt() } else { rank });
    }
    let own = format!("{name}.alpha");
    if !tensors.names().any(|known| known == own) {
        return Ok(1.0);
    }
    Ok(tensors.get(&own)?.to_floats().first().copied().unwrap_or(rank) / rank)
}

fn normal(name: &str) -> String {
    name.replace(['.', '/'], "_").trim_matches('_').to_owned()
}

fn targets(model: &Model) -> Vec<Target> {
    let graph = model.graph();
    let named = |layer: &Layer, name: &str| layer.operation().is_some_and(|row| row.name == name);
    let layers = graph.layers().filter(|layer| named(layer, "MatMul") || named(layer, "Convolution"));
    layers.filter_map(|layer| target(model, layer)).collect()
}

fn target(model: &Model, layer: &Layer) -> Option<Target> {
    let graph = model.graph();
    let is_convolution = layer.operation().is_some_and(|row| row.name == "Convolution");
    let (mut at, mut is_shared, mut is_plain) = (graph.producer(layer.id().input(1))?, false, true);
    let constant = loop {
        let source = graph.layer(at.layer)?;
        is_shared |= graph.users(at.layer).nth(1).is_some();
        if ops::kind(source) == LayerKind::Constant {
            break source;
        }
        is_plain &= ops::kind(source) == LayerKind::Convert;
        let rows = ["Multiply", "Subtract", "Convert", "Reshape", "Transpose", "FakeQuantize"];
        let is_step = source.operation().is_some_and(|row| rows.contains(&row.name));
        at = graph.producer(source.id().input(0)).filter(|_| is_step)?;
    };
    let is_float = constant.stored_as().is_some_and(|(ty, _)| {
        matches!(ty, ElementType::F32 | ElementType::F16 | ElementType::Bf16 | ElementType::F64)
    });
    // `__module.layers.0.q/aten::linear/MatMul`, `/layers.0/q/MatMul`, `layers.0.q.weight`
    let name = layer.name();
    let path =
        name.split_once("/aten::").map(|(path, _)| path).or_else(|| Some(name.rsplit_once('/')?.0)).unwrap_or(name);
    let of_constant = constant.name().strip_suffix(".weight").map(|name| name.strip_prefix("self.").unwrap_or(name));
    let names = [Some(path.strip_prefix("__module.").unwrap_or(path)), of_constant];
    Some(Target {
        layer: layer.id(),
        names: names.into_iter().flatten().map(normal).collect(),
        stored: (is_plain && is_float && !is_shared).then(|| constant.id()),
        is_by_row: is_convolution || layer.attribute("transpose_b") == Some("true"),
        is_convolution,
    })
}

fn find<'t>(graph: &Graph, targets: &'t [Target], name: &str) -> Result<Option<&'t Target>, String> {
    let short = PREFIXES.iter().find_map(|prefix| name.strip_prefix(prefix)).unwrap_or(name);
    let wanted = normal(short);
    let is_end =
        |long: &str, short: &str| long.strip_suffix(short).is_some_and(|rest| rest.is_empty() || rest.ends_with('_'));
    let equal = |target: &&Target| target.names.contains(&wanted);
    let ends = |target: &&Target| target.names.iter().any(|name| is_end(name, &wanted));
    // A model of a part has shorter names than the whole: `layers.0.q` of `model.layers.0.q`.
    let begins = |target: &&Target| target.names.iter().any(|name| is_end(&wanted, name) && name.contains('_'));
    for fits in [&equal as &dyn Fn(&&Target) -> bool, &ends, &begins] {
        let found: Vec<_> = targets.iter().filter(fits).collect();
        match found.as_slice() {
            [] => {}
            [only] => return Ok(Some(only)),
            [first, second, ..] => {
                let (first, second) = (describe(graph, first.layer), describe(graph, second.layer));
                return Err(format!("the tensor `{name}` fits several layers: {first} and {second}"));
            }
        }
    }
    Ok(None)
}

fn apply(model: &mut Model, target: &Target, pair: &AdapterPair, factor: f64, lets: &Lets) -> Result<(), String> {
    let graph = model.graph();
    let weights = graph.producer(target.layer.input(1)).and_then(|tensor| Some((tensor, graph.output(tensor)?)));
    let dims = weights.and_then(|(_, port)| port.shape().to_static());
    let (Some((tensor, _)), Some(dims)) = (weights, dims) else {
        return Err(format!("{} has weights of an unknown shape", describe(graph, target.layer)));
    };
    let rank = pair.down.dims.first().copied().unwrap_or(0);
    let count = dims.iter().product::<i64>().unsigned_abs() as usize;
    let rows = (if target.is_by_row { dims[..dims.len() - 1].first() } else { dims.last() }).copied().unwrap_or(0);
    let rows = rows.unsigned_abs() as usize;
    let columns = count.checked_div(rows).unwrap_or(0);
    let fits = rank > 0 && pair.down.len() == rank * columns && pair.up.len() == rows * rank && dims.len() >= 2;
    if !fits || !target.is_convolution && dims.len() != 2 {
        let shape = dims.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
        return Err(format!(
            "the tensors of `{}` have the shapes {} and {}, which do not fit the weights [{shape}] of {}",
            pair.name,
            pair.down.shape(),
            pair.up.shape(),
            describe(graph, target.layer)
        ));
    }
    let (down, up) = (pair.down.to_floats(), pair.up.to_floats());
    let Some(stored) = target.stored else {
        return branch(model, target, pair, factor).map_err(|error| error.describe(model.graph()));
    };
    let known = values::values(graph, model.weights(), tensor).ok_or("the values of the weights are unknown")?;
    let mut sum = known.to_floats();
    for row in 0..rows {
        for at in 0..rank {
            let by = factor * up[row * rank + at];
            for column in 0..columns {
                let place = if target.is_by_row { row * columns + column } else { column * rows + row };
                sum[place] += by * down[at * columns + column];
            }
        }
    }
    let ty = graph.layer(stored).and_then(Layer::stored_as).map_or(known.element_type, |(ty, _)| ty);
    let exact = Array::floats(
        ElementType::F32,
        known.dims.clone(),
        sum.iter().map(|&value| round(ElementType::F32, value)).collect(),
    );
    let Some(new) = exact.saturated(ty) else { return Err(format!("f32 does not convert to {ty}")) };
    lets.lose(Losses::of_conversion(&exact, &new));
    let bytes = new.encode().ok_or("the weights are not numeric")?;
    model.edit(|edit| edit.set_constant(stored, ty, &dims, &bytes)).map_err(|error| error.describe(model.graph()))
}

/// Computes the adapter in a branch of its own, beside weights that cannot be changed exactly.
fn branch(model: &mut Model, target: &Target, pair: &AdapterPair, factor: f64) -> Result<(), EditError> {
    model.edit(|edit| {
        let layer = edit.layer(target.layer).ok_or(EditError::NoLayer(target.layer))?;
        let (name, version) = (layer.name().to_owned(), layer.version().to_owned());
        let attributes: Vec<_> =
            layer.attributes().iter().map(|it| (it.name().to_owned(), it.value().to_owned())).collect();
        let x = edit.producer(target.layer.input(0)).ok_or(EditError::NoInput(target.layer.input(0)))?;
        let ty = edit.output(x).map(|port| port.element_type()).ok_or(EditError::NoOutput(x))?;
        let scaled: Vec<_> = pair.up.to_floats().iter().map(|value| value * factor).collect();
        let up = Array { data: Data::Floats(scaled.into_iter().collect()), ..pair.up.clone() };
        let [down, up] = [&pair.down, &up].map(|array| constant(edit, array, ty));
        let (down, up) = (down?, up?);
        let operation = if target.is_convolution { "Convolution" } else { "MatMul" };
        let of = |which: &str| NewLayer::new(operation, &version).named(&format!("{name}/lora_{which}"));
        let mut first = of("A");
        for (key, value) in attributes.iter().filter(|(key, _)| target.is_convolution || key == "transpose_a") {
            first = first.with_attribute(key, value);
        }
        let second = match target.is_convolution {
            // The second convolution has a kernel of 1.
            true => attributes.iter().fold(of("B"), |layer, (key, value)| {
                let count = value.split(',').count();
                let ones = |text: &str| vec![text; count].join(",");
                match key.as_str() {
                    "strides" | "dilations" => layer.with_attribute(key, ones("1")),
                    "pads_begin" | "pads_end" => layer.with_attribute(key, ones("0")),
                    _ => layer.with_attribute(key, value),
                }
            }),
            false => {
                first = first.with_attribute("transpose_b", true);
                of("B").with_attribute("transpose_b", true)
            }
        };
        let reduced = edit.add(first, &[x, down])?.output(0);
        let change = edit.add(second, &[reduced, up])?.output(0);
        let tensor = target.layer.output(0);
        let is_output =
            edit.consumers(tensor).any(|to| edit.layer(to.layer).is_some_and(|it| ops::kind(it) == LayerKind::Result));
        let add = NewLayer::new("Add", "opset1").named(&format!("{name}/lora"));
        let sum = edit.insert_after(tensor, add.with_attribute("auto_broadcast", "numpy"), &[change])?;
        if is_output { edit.move_names(tensor, sum.output(0)) } else { Ok(()) }
    })
}

fn constant(edit: &mut Edit<'_>, array: &Array, ty: ElementType) -> Result<Output, EditError> {
    let dims: Vec<_> = array.dims.iter().map(|&dim| dim as i64).collect();
    let bytes = array.saturated(ty).and_then(|array| array.encode());
    let bytes = bytes.ok_or_else(|| EditError::Other(format!("the adapter does not convert to {ty}")))?;
    edit.constant(ty, &dims, &bytes)
}
