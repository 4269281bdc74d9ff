//! Names of symbols, by what an axis of an input usually is.

use super::Symbol;
use crate::base::hash::{HashMap, HashSet};
use crate::model::graph::{Graph, OutputPort};
use crate::model::shape::Shape;
use crate::ops::{self, LayerKind};
use typelift_promote::ElementType;

/// Gives each symbol a name that is unique in the model: what its first axis is, or that with the input's name.
pub(super) fn name(symbols: &mut [Symbol], graph: &Graph) {
    let meant: Vec<Option<&'static str>> = symbols
        .iter()
        .map(|symbol| {
            symbol.axes.iter().zip(&symbol.inputs).find_map(|(&(id, axis), input)| {
                let layer = graph.layer(id)?;
                let port = layer.outputs().first()?;
                if ops::kind(layer) == LayerKind::ReadValue {
                    return (port.shape().rank() == Some(axis + 2)).then_some("past");
                }
                meaning(input, axis, port, layer.attribute("layout"))
            })
        })
        .collect();
    let mut counts: HashMap<&str, usize> = HashMap::default();
    meant.iter().flatten().for_each(|name| *counts.entry(name).or_default() += 1);
    let mut used: HashSet<String> = HashSet::default();
    for (symbol, meant) in symbols.iter_mut().zip(meant) {
        let input = symbol.inputs.first().map(|input| identifier(input)).unwrap_or_default();
        let axis = symbol.axes.first().map_or(0, |&(_, axis)| axis);
        let candidates = match meant {
            Some(meant) => [meant.to_owned(), format!("{input}_{meant}"), format!("{input}_{meant}_{axis}")],
            None => [symbol.id.clone(), format!("{input}_{axis}"), format!("{input}_axis_{axis}")],
        };
        let free = candidates.into_iter().find(|name| used.insert(name.clone()));
        symbol.name = free.unwrap_or_else(|| symbol.id.clone());
    }
}

fn identifier(name: &str) -> String {
    let text: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    if text.starts_with(|c: char| c.is_ascii_digit()) { format!("_{text}") } else { text }
}

fn meaning(input: &str, axis: usize, port: &OutputPort, layout: Option<&str>) -> Option<&'static str> {
    if let Some(letter) = layout.and_then(|layout| layout_letter(layout, axis)) {
        return match letter {
            'N' => Some("batch"),
            'C' => Some("channels"),
            'H' => Some("height"),
            'W' => Some("width"),
            'D' => Some("depth"),
            'T' | 'L' => Some("seq"),
            _ => None,
        };
    }
    let rank = Shape::rank(port.shape())?;
    let name = input.to_ascii_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| name.contains(word));
    let is_image = has(&["pixel", "image", "sample", "latent"]) || rank == 4 && port.element_type().is_float();
    if has(&["past_key", "past_value", "past.", "key_values", "cache_k", "cache_v", "kv_cache"]) {
        return match axis {
            0 => Some("batch"),
            axis if axis + 2 == rank => Some("past"),
            _ => None,
        };
    }
    if has(&["beam_idx"]) {
        return (axis == 0).then_some("batch");
    }
    let is_tokens = has(&["input_ids", "attention_mask", "token_type", "position_ids", "tokens", "embeds", "hidden"])
        || rank == 2 && matches!(port.element_type(), ElementType::I64 | ElementType::I32) && has(&["ids", "mask"]);
    match (axis, rank) {
        (0, 2..) => Some("batch"),
        (1, 2..) if is_tokens => Some("seq"),
        (2, 4) if is_image => Some("height"),
        (3, 4) if is_image => Some("width"),
        (axis, 2 | 3) if axis + 1 == rank && has(&["audio", "input_values", "waveform", "speech", "wav"]) => {
            Some("samples")
        }
        (axis, 3) if has(&["features", "mel", "spectro"]) && axis > 0 => Some("frames"),
        _ => None,
    }
}

/// The letter of an axis in a layout such as `[N,C,H,W]` or `NCHW`.
fn layout_letter(layout: &str, axis: usize) -> Option<char> {
    let inner = layout.trim_matches(['[', ']', ' ']);
    match inner.contains(',') {
        true => inner.split(',').nth(axis)?.trim().chars().next(),
        false => inner.chars().nth(axis),
    }
}
