//! Element types and operations that a device does not compute.

use typelift_promote::{ElementType, Kind};

use super::{Device, MEASURED, View, and_others, name};
use crate::findings::{Code, Diagnostic, Text, message};
use crate::model::graph::{Layer, OutputPort};
use crate::ops::values::conversion::Stored;
use crate::ops::{self, LayerKind};

/// Operations for which the CPU plugin has no code in types of few bits.
const NOT_OF_FEW_BITS: [&str; 19] = [
    "Add",
    "Subtract",
    "Multiply",
    "Divide",
    "Power",
    "Maximum",
    "Minimum",
    "SquaredDifference",
    "Select",
    "Equal",
    "NotEqual",
    "Less",
    "LessEqual",
    "Greater",
    "GreaterEqual",
    "Abs",
    "Relu",
    "Negative",
    "NormalizeL2",
];

impl<'a> View<'a> {
    /// Reports element types that the device does not support.
    pub(super) fn tensors(&self, found: &mut Vec<Diagnostic>) {
        const BITS: [ElementType; 3] = [ElementType::U1, ElementType::U3, ElementType::U6];
        let is_untyped = |port: &OutputPort| port.element_type() == ElementType::Dynamic;
        let inputs = self.layers().filter(|layer| self.place.is_model() && ops::kind(layer) == LayerKind::Parameter);
        for input in inputs.filter(|input| input.outputs().iter().any(is_untyped)) {
            let message = message!("the input `{}` has no element type, so no plugin compiles the model"; input.name());
            let finding = self.finding(Code::TypeRefused, input, message, "dynamic", MEASURED);
            found.push(finding.help("write the element type that it is given, such as element_type=\"f32\""));
        }
        for layer in self.layers().filter(|layer| self.is_computed(layer) && !layer.outputs().is_empty()) {
            let has = |types: &[ElementType]| {
                let mut types = layer.outputs().iter().map(OutputPort::element_type).filter(|ty| types.contains(ty));
                types.next()
            };
            let (refused, code, ground) = match self.device {
                Device::Cpu => (has(&BITS).or_else(|| self.uncomputed(layer)), Code::TypeRefused, MEASURED),
                Device::Gpu => (has(&[ElementType::String]), Code::StringOnDevice, "reported: openvino_tokenizers#131"),
                Device::Npu => match has(&[ElementType::U1]) {
                    Some(ty) => (Some(ty), Code::TypeRefused, "reported: openvino#27626"),
                    None => (has(&[ElementType::String]), Code::StringOnDevice, "reported: openvino_tokenizers#131"),
                },
            };
            if let Some(ty) = refused {
                let message = message!(
                    "the output of `{}` has type {}, which the {} plugin does not support";
                    layer.name(), ty, self.name()
                );
                let finding = self.finding(code, layer, message, message!("{}"; ty), ground);
                found.push(finding.help(match code {
                    Code::StringOnDevice => "run these layers on the CPU",
                    _ if BITS.contains(&ty) => "store and compute it as u8",
                    _ => "convert it to a wider type before it is computed with",
                }));
            }
        }
    }

    /// Reports operations with element types for which the CPU plugin has no kernel.
    pub(super) fn operations(&self, found: &mut Vec<Diagnostic>) {
        for layer in self.layers().filter(|layer| self.is_computed(layer)) {
            // The type of the first input decides.
            let Some(ty) = self.graph.tensors(layer.id()).first().map(|tensor| tensor.element_type()) else { continue };
            let is_refused = match name(layer) {
                "NormalizeL2" => ty.is_integer() && ty.bits() > 8,
                "OneHot" => [ElementType::I8, ElementType::U8, ElementType::Boolean].contains(&ty),
                "Negative" => ty.kind() == Kind::Unsigned,
                _ => false,
            };
            if is_refused {
                let operation = name(layer);
                let message =
                    message!("the CPU plugin does not support {} in {}, which `{}` uses"; operation, ty, layer.name());
                let finding = self.finding(Code::OperationType, layer, message, message!("{}"; ty), MEASURED);
                found.push(finding.help("compute it in a wider type, between two Converts"));
            }
        }
    }

    fn uncomputed(&self, layer: &Layer) -> Option<ElementType> {
        use ElementType::{F4E2M1, F8E4M3, F8E5M2, F8E8M0, Nf4, U2};
        let coded = [Nf4, F4E2M1, F8E4M3, F8E5M2, F8E8M0, U2];
        let takes_no_u2 = ["MatMul", "ReduceSum", "Softmax"].contains(&name(layer));
        let is_u2 = |layer: &Layer| layer.outputs().first().is_some_and(|port| port.element_type() == U2);
        if !(NOT_OF_FEW_BITS.contains(&name(layer)) || takes_no_u2 && is_u2(layer)) {
            return None;
        }
        let tensors = self.graph.tensors(layer.id());
        let mut types = tensors.iter().map(|port| port.element_type());
        types.find(|ty| coded.contains(ty))
    }

    /// Warns of f64 values that f32, in which the CPU plugin computes f64, does not hold.
    pub(super) fn beyond_f32(&self, found: &mut Vec<Diagnostic>) {
        for layer in self.layers().filter(|layer| {
            ops::is_constant(layer) && layer.outputs().iter().any(|port| port.element_type() == ElementType::F64)
        }) {
            let is_beyond = |value: f64| value.is_finite() && value.abs() > f64::from(f32::MAX);
            let value = Stored::of(layer).and_then(|stored| stored.find(self.model.weights(), is_beyond));
            if let Some(value) = value {
                let message = message!(
                    "`{}` holds {}, and the CPU plugin computes f64 as f32";
                    layer.name(), Text(format_args!("{value:e}"))
                );
                let label = message!("the largest f32 is {}"; Text(format_args!("{:e}", f32::MAX)));
                let finding = self.finding(Code::BeyondF32, layer, message, label, MEASURED);
                found.push(finding.help("use numbers that f32 holds: the plugin replaces this one by the largest f32"));
            }
        }
    }

    /// Warns of operations in bf16 that fail on a GPU.
    pub(super) fn bf16(&self, found: &mut Vec<Diagnostic>) {
        const GROUND: &str = "reported: openvino#34714, fixed in part by openvino#36069 and openvino#37119";
        let mut layers = self.layers().filter(|layer| self.is_computed(layer)).filter(|layer| {
            ["Slice", "VariadicSplit", "Tile"].contains(&name(layer))
                && layer.outputs().iter().any(|port| port.element_type() == ElementType::Bf16)
        });
        let Some(first) = layers.next() else { return };
        let message =
            message!("`{}` is a {} of bf16, which fails on some releases of the GPU plugin"; first.name(), name(first));
        let finding = self.finding(Code::Bf16OnGpu, first, message, "bf16", GROUND);
        found.push(and_others(finding, layers).help("convert bf16 to f16"));
    }
}
