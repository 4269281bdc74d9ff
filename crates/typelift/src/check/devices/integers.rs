//! Integers that a CPU plugin computes as f32.

use typelift_promote::{ElementType, Kind};

use super::{MEASURED, View, and_others, name};
use crate::base::hash::HashMap;
use crate::findings::{Code, Diagnostic, Message, message};
use crate::model::graph::{Layer, LayerId, OutputPort};
use crate::ops::{self, LayerKind};

/// Operations that the CPU plugin computes in f32 for integers, too.
const THROUGH_FLOATS: [&str; 9] =
    ["Divide", "Mod", "FloorMod", "Power", "MatMul", "ReduceSum", "ReduceMean", "ReduceMax", "Relu"];

/// f32 represents all integers up to this one.
const LAST: f64 = 16_777_216.0;

/// Values above this bound are treated alike.
const ANY: f64 = f64::INFINITY;

impl<'a> View<'a> {
    /// Notes integer arithmetic that can exceed the integers which f32 represents.
    ///
    /// Values are followed from constants and from inputs of the model. Values of unknown size, such as lengths and places, count
    /// as small.
    pub(super) fn integers_through_floats(&self, found: &mut Vec<Diagnostic>) {
        let mut largest: HashMap<LayerId, f64> = HashMap::default();
        let mut beyond: Vec<(&Layer, f64)> = Vec::new();
        for layer in self.layers() {
            let Some(port) = layer.outputs().first().filter(|port| port.element_type().is_integer()) else { continue };
            let inputs: Vec<f64> = self
                .graph
                .producers(layer.id())
                .into_iter()
                .map(|source| source.and_then(|source| largest.get(&source.layer)).copied().unwrap_or(0.0))
                .collect();
            let value = self.largest_of(layer, port, &inputs).min(limit(port.element_type()));
            largest.insert(layer.id(), value);
            let reach = inputs.iter().copied().fold(value, f64::max);
            if self.is_computed(layer) && THROUGH_FLOATS.contains(&name(layer)) && reach > LAST {
                beyond.push((layer, reach));
            }
        }
        let Some(&(first, reach)) = beyond.first() else { return };
        let label: Message = match reach {
            ANY => "its integers come from an input of the model".into(),
            reach => message!("its integers can be as large as {}"; reach),
        };
        let message = message!(
            "the CPU plugin computes the integers of `{}` in f32, which is exact up to 16,777,216";
            first.name()
        );
        let finding = self.finding(Code::IntegerThroughFloat, first, message, label, MEASURED);
        let others = beyond.iter().skip(1).map(|&(layer, _)| layer);
        found.push(and_others(finding, others).help("compute with smaller integers where exact results matter"));
    }

    fn largest_of(&self, layer: &Layer, port: &OutputPort, inputs: &[f64]) -> f64 {
        let of = |input: usize| inputs.get(input).copied().unwrap_or(0.0);
        match name(layer) {
            _ if ops::is_constant(layer) => self.largest_value(layer),
            _ if matches!(ops::kind(layer), LayerKind::Parameter | LayerKind::ReadValue) => ANY,
            "Convert" | "Reshape" | "Squeeze" | "Unsqueeze" | "Transpose" | "Broadcast" | "Slice" | "StridedSlice"
            | "Gather" | "GatherElements" | "GatherND" | "Split" | "VariadicSplit" | "Tile" | "Abs" | "Negative"
            | "Relu" | "Divide" | "ReduceMax" | "ReduceMin" | "ReduceMean" | "Clamp" => of(0),
            "Mod" | "FloorMod" => of(1),
            "Select" => of(1).max(of(2)),
            "Concat" | "Maximum" | "Minimum" => inputs.iter().copied().fold(0.0, f64::max),
            "Add" | "Subtract" => of(0) + of(1),
            "Multiply" => product(of(0), of(1)),
            "ReduceSum" => product(of(0), self.terms(layer, port)),
            "MatMul" => product(product(of(0), of(1)), self.terms(layer, port)),
            _ => 0.0,
        }
    }

    /// 1 if lengths are not known.
    fn terms(&self, layer: &Layer, port: &OutputPort) -> f64 {
        let tensors = self.graph.tensors(layer.id());
        let Some(data) = tensors.first().map(|data| data.shape()) else { return 1.0 };
        if name(layer) == "MatMul" {
            let is_transposed = layer.attribute("transpose_a").is_some_and(|value| value.trim() == "true");
            let inner = data.dims().and_then(|dims| dims.iter().rev().nth(usize::from(is_transposed)));
            return inner.and_then(|dim| dim.value()).map_or(1.0, |length| length as f64);
        }
        let counts = data.element_count().zip(port.shape().element_count().filter(|&count| count > 0));
        counts.map_or(1.0, |(data, own)| data as f64 / own as f64)
    }

    fn largest_value(&self, constant: &Layer) -> f64 {
        let values = constant.numbers(self.model.weights()).unwrap_or_default();
        values.into_iter().map(f64::abs).filter(|&value| !is_end(value)).fold(0.0, f64::max)
    }
}

/// The product, which is 0 if one factor is 0 and the other is not bounded.
fn product(a: f64, b: f64) -> f64 {
    if a == 0.0 || b == 0.0 { 0.0 } else { a * b }
}

/// True for numbers that stand for an open end.
fn is_end(value: f64) -> bool {
    [i64::MIN, i64::MAX, i32::MIN.into(), i32::MAX.into()].iter().any(|&end| (end as f64).abs() == value)
}

fn limit(ty: ElementType) -> f64 {
    match (ty.kind(), ty.bits()) {
        (Kind::Unsigned, bits @ 0..32) => 2_f64.powi(bits.cast_signed()) - 1.0,
        (_, bits @ 1..32) => 2_f64.powi(bits.cast_signed() - 1),
        _ => ANY,
    }
}
