//! Values of constants: range, histogram, share of zeros, and losses in narrower types.

use serde::{Serialize, Serializer};
use typelift::ops::{self, LayerKind};
use typelift::precision::schemes;
use typelift::promote::ElementType;
use typelift::values::round;
use typelift::{Graph, Layer, Model};

use crate::folded::{Strings, Text};
use crate::graphs::{Graphs, count};

/// Limit on the values that are read from all constants. Beyond it, only a sample of each constant is read.
const MOST: u64 = 1 << 21;
const SAMPLE: usize = 4096;
const BARS: usize = 24;
/// Number of values of a constant that are shown, and beyond the limit on all constants.
const FIRST: [usize; 2] = [256, 8];
/// Limit on the values that are shown of all constants.
const MOST_SHOWN: usize = 1 << 14;

#[derive(Serialize)]
pub(crate) struct Values {
    path: Text,
    /// The type and shape, `f16[64,64]`.
    text: Text,
    /// The number of bytes; 0 for values that are computed from a quantized constant.
    #[serde(skip_serializing_if = "is_zero")]
    bytes: u64,
    count: u64,
    /// The number of values that were read, if it is smaller.
    #[serde(skip_serializing_if = "Option::is_none")]
    sample: Option<usize>,
    first: Vec<Number>,
    min: Number,
    max: Number,
    /// The number of zeros among the values that were read.
    zeros: usize,
    #[serde(skip_serializing_if = "is_zero")]
    not_finite: u64,
    /// The number of values in each of equal parts of the range.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    bars: Vec<usize>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    narrowed: Vec<Narrowed>,
    /// The narrow type in which the file computes values that OpenVINO's CPU plugin computes in f32.
    #[serde(skip_serializing_if = "Option::is_none")]
    within: Option<&'static str>,
}

/// An integer with all its digits, or a number with those of f32, if f32 has it.
enum Number {
    Float(f64),
    Integer(i128),
}

/// The largest number up to which a browser has every integer.
const SAFE: i128 = (1 << 53) - 1;

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match *self {
            Self::Integer(integer) if integer.abs() <= SAFE => serializer.serialize_i64(integer as i64),
            Self::Integer(integer) => serializer.collect_str(&integer),
            Self::Float(number) if !number.is_finite() => serializer.collect_str(&number),
            Self::Float(number) => match number as f32 {
                narrow if narrow.is_normal() || number == 0.0 => serializer.serialize_f32(narrow),
                _ => serializer.serialize_f64(number),
            },
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over references")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Loss of the values of a constant in a narrower type.
#[derive(Serialize)]
struct Narrowed {
    #[serde(rename = "type")]
    element_type: &'static str,
    infinite: usize,
    zero: usize,
    /// The largest error of another value in relation to it.
    worst: f32,
}

impl Narrowed {
    fn new(to: ElementType, values: &[f64]) -> Self {
        let mut lost = Self { element_type: to.name(), infinite: 0, zero: 0, worst: 0.0 };
        for &value in values.iter().filter(|&&value| value != 0.0) {
            let rounded = round(to, value);
            match (rounded.is_infinite(), rounded == 0.0) {
                (true, _) => lost.infinite += 1,
                (_, true) => lost.zero += 1,
                _ => lost.worst = lost.worst.max(((rounded - value) / value).abs() as f32),
            }
        }
        lost
    }
}

impl Values {
    /// Integers of many bits have more digits than a float.
    fn exact(mut self, model: &Model, layer: &Layer, most: usize) -> Self {
        let is_wide = layer
            .outputs()
            .first()
            .is_some_and(|port| !port.element_type().is_float() && port.element_type().bits() > 16);
        let integers = is_wide.then(|| layer.sample_integers(model.weights(), most)).flatten().unwrap_or_default();
        if let (Some(&min), Some(&max)) = (integers.iter().min(), integers.iter().max()) {
            (self.min, self.max) = (Number::Integer(min), Number::Integer(max));
            self.first = integers.iter().take(FIRST[0]).map(|&integer| Number::Integer(integer)).collect();
        }
        self
    }
}

pub(crate) fn constants(model: &Model, graphs: &Graphs<'_, '_>, strings: &mut Strings) -> Vec<Values> {
    let (mut found, mut left) = (Vec::new(), MOST);
    for (place, graph) in model.walk() {
        let Some(known) = graphs.get(&place) else { continue };
        for layer in graph.layers().filter(|layer| ops::kind(layer) == LayerKind::Constant) {
            let size = layer.attribute("size").and_then(|size| size.parse().ok()).unwrap_or(0);
            // A single value is shown by its consumer.
            let most = room(layer, &mut left);
            let read = if count(layer) > 1 { layer.sample(model.weights(), most) } else { None };
            let values = read.and_then(|read| values(&read, layer, known.path(layer), size, strings));
            found.extend(values.map(|values| values.exact(model, layer, most)));
        }
        for layer in graph.layers().filter(|layer| layer.ty() == "FakeQuantize") {
            let read = fake_quantized(graph, layer, model, &mut left);
            found.extend(read.and_then(|read| values(&read, layer, known.path(layer), 0, strings)));
        }
        for quantized in schemes::find(graph, model.weights()) {
            let Some(layer) = graph.layer(quantized.value.layer) else { continue };
            let read = quantized.sample(graph, model.weights(), room(layer, &mut left));
            let read = read.map(|read| read.into_iter().map(f64::from).collect::<Vec<_>>());
            let ports = quantized.layers.iter().filter_map(|&id| graph.layer(id)?.outputs().first());
            let within = ports.map(|port| port.element_type().name()).find(|name| ["f16", "bf16"].contains(name));
            let values = read.and_then(|read| values(&read, layer, known.path(layer), 0, strings));
            found.extend(values.map(|values| Values { within, ..values }));
        }
    }
    let mut shown = 0;
    for values in &mut found {
        // Values of a sample are not neighbours.
        let is_whole = values.sample.is_none() && shown + values.first.len() <= MOST_SHOWN;
        values.first.truncate(FIRST[usize::from(!is_whole)]);
        shown += values.first.len();
    }
    found
}

/// All values of a layer are read while there is room.
fn room(layer: &Layer, left: &mut u64) -> usize {
    let count = count(layer);
    let all = if count <= *left { count } else { 0 };
    *left -= all;
    SAMPLE.max(all as usize)
}

/// The values that a FakeQuantize computes from constants, if there is room for all.
fn fake_quantized(graph: &Graph, layer: &Layer, model: &Model, left: &mut u64) -> Option<Vec<f64>> {
    let inputs = graph.producers(layer.id()).into_iter().map(|feed| graph.layer(feed?.layer));
    let inputs: Vec<&Layer> = inputs.collect::<Option<_>>()?;
    let shape = |layer: &Layer| layer.outputs().first()?.shape().to_static();
    let (whole, steps) = (shape(inputs.first()?)?, layer.attribute("levels")?.parse::<f64>().ok()? - 1.0);
    let count = whole.iter().product::<i64>() as u64;
    if inputs.iter().any(|it| ops::kind(it) != LayerKind::Constant) || count > *left {
        return None;
    }
    *left -= count;
    let all: Vec<Vec<f64>> = inputs.iter().map(|it| it.numbers(model.weights())).collect::<Option<_>>()?;
    let shapes: Vec<Vec<i64>> = inputs.iter().map(|it| shape(it)).collect::<Option<_>>()?;
    let [value, ranges @ ..] = &all[..] else { return None };
    let quantized = value.iter().enumerate().map(|(at, &value)| {
        // The range of this value: its index in each broadcast shape.
        let limit = |number: usize| {
            let (mut rest, mut index, mut stride) = (at as i64, 0, 1);
            let own = shapes.get(number + 1)?;
            for (axis, length) in whole.iter().rev().enumerate() {
                if let Some(&own) = own.len().checked_sub(axis + 1).and_then(|axis| own.get(axis)) {
                    index += if own == 1 { 0 } else { rest % length * stride };
                    stride *= own;
                }
                rest /= length;
            }
            ranges.get(number)?.get(index as usize).copied()
        };
        let (low, high, to_low, to_high) = (limit(0)?, limit(1)?, limit(2)?, limit(3)?);
        let part = (value.clamp(low.min(high), low.max(high)) - low) / (high - low);
        Some((part * steps).round_ties_even() / steps * (to_high - to_low) + to_low)
    });
    quantized.collect()
}

/// Describes the first output of a layer, given some of its values.
fn values(read: &[f64], layer: &Layer, path: Text, bytes: u64, strings: &mut Strings) -> Option<Values> {
    let port = layer.outputs().first()?;
    let count = port.shape().element_count().filter(|&count| count > 1)?;
    let finite: Vec<f64> = read.iter().copied().filter(|value| value.is_finite()).collect();
    let (min, max) = (
        finite.iter().copied().fold(f64::INFINITY, f64::min),
        finite.iter().copied().fold(f64::NEG_INFINITY, f64::max),
    );
    let narrower: &[ElementType] = match port.element_type() {
        // The values of a quantized constant have lost more before.
        _ if bytes == 0 => &[],
        ElementType::F32 | ElementType::F64 => &[ElementType::F16, ElementType::Bf16],
        ElementType::F16 => &[ElementType::Bf16],
        ElementType::Bf16 => &[ElementType::F16],
        _ => &[],
    };
    Some(Values {
        path,
        text: strings.text(&port.to_string()),
        bytes,
        count,
        sample: Some(read.len()).filter(|&read| (read as u64) < count),
        first: read.iter().take(FIRST[0]).map(|&value| Number::Float(value)).collect(),
        min: Number::Float(min),
        max: Number::Float(max),
        zeros: read.iter().filter(|&&value| value == 0.0).count(),
        not_finite: (read.len() - finite.len()) as u64,
        bars: if min < max { bars(&finite, min, max) } else { Vec::new() },
        narrowed: narrower.iter().map(|&to| Narrowed::new(to, &finite)).collect(),
        within: None,
    })
}

/// Counts values in equal parts of their range. A few integers have a bar for each.
fn bars(values: &[f64], min: f64, max: f64) -> Vec<usize> {
    let are_few = max - min < BARS as f64 && values.iter().all(|value| value.fract() == 0.0);
    let (width, count) = if are_few { (1.0, (max - min) as usize + 1) } else { ((max - min) / BARS as f64, BARS) };
    let mut bars = vec![0; count];
    for value in values {
        bars[(((value - min) / width) as usize).min(count - 1)] += 1;
    }
    bars
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_in_narrower_types_are_those_of_rounding() {
        let values = [0.0, 1.0, 1e6, 1e-9, 1.0 + 1.0 / 4096.0];
        let lost = Narrowed::new(ElementType::F16, &values);
        assert_eq!((lost.infinite, lost.zero), (1, 1));
        assert!(lost.worst > 2e-4 && lost.worst < 3e-4, "{}", lost.worst);
        assert_eq!(bars(&[0.0, 0.5, 1.0], 0.0, 1.0).iter().sum::<usize>(), 3);
        assert_eq!(bars(&[-8.0, -6.0, -6.0], -8.0, -6.0), [1, 0, 2]);
    }
}
