//! Weights of few bits, which a plugin computes with or unfolds to floats.

use typelift_promote::ElementType;

use super::{MEASURED, Path, View, and_others, name};
use crate::base::hash::HashSet;
use crate::edit::precision_marks::Marks;
use crate::findings::{Code, Diagnostic, Fix, FixAction, Message, Text, grouped, message};
use crate::infer::blocks::{FEW_VALUES, values};
use crate::model::graph::Layer;
use crate::model::weights::byte_size;
use crate::ops::{self, LayerKind};
use crate::precision::schemes::{self, Operand, Sharing, is_code};

impl<'a> View<'a> {
    pub(super) fn weights(&self, found: &mut Vec<Diagnostic>) {
        let mut known = HashSet::default();
        for layer in self.layers().filter(|layer| self.is_computed(layer)) {
            for (port, producer) in self.graph.producers(layer.id()).into_iter().enumerate() {
                let Some(path) = producer.and_then(|output| self.path(output.layer)) else { continue };
                if is_code(path.stored) && known.insert((path.constant.id(), layer.id())) {
                    found.extend(self.unfolded(layer, port, &path));
                    found.extend(self.scale_along_columns(layer, port, &path));
                }
                found.extend(self.unmarked(layer, port, &path));
            }
            found.extend(self.not_quantized(layer));
        }
    }

    /// Reports weights of few bits that the CPU plugin converts to floats when it compiles the model.
    fn unfolded(&self, layer: &'a Layer, port: usize, path: &Path<'a>) -> Option<Diagnostic> {
        let reason = self.reason_to_unfold(layer, port, path)?;
        let values = values(path.constant);
        let size =
            |ty| byte_size(ty, values).and_then(|size| u64::try_from(size).ok()).map_or_else(String::new, grouped);
        let (before, after) = (size(path.stored), size(ElementType::F32));
        let message = message!(
            "the CPU plugin converts the weights `{}` to f32: {} bytes become {}, for `{}`";
            path.constant.name(), Text(before), Text(after), layer.name()
        );
        let finding = self.finding(Code::WeightsUnfold, path.constant, message, reason, MEASURED);
        Some(match broken_pattern(&path.steps) {
            Some(broken) if matches!(name(layer), "MatMul" | "Gather") && broken.has_rule(layer, &path.steps) => finding.help(kept_by_rules()),
            _ => finding.help(
                "weights of a MatMul are kept as input 1: Convert, then Subtract of a zero point, then Multiply by a scale",
            ),
        })
    }

    /// The reason why the plugin converts weights to floats; `None` if it keeps them or if that is unknown.
    fn reason_to_unfold(&self, layer: &Layer, port: usize, path: &Path<'_>) -> Option<Message> {
        let ty = path.stored;
        let is_byte = matches!(ty, ElementType::U8 | ElementType::I8);
        let first = path.steps.first().filter(|layer| ops::kind(layer) == LayerKind::Convert)?;
        let is_bf16 = first.outputs().first()?.element_type() == ElementType::Bf16;
        match name(layer) {
            "MatMul" if port == 0 => Some("the weights are input 0 of a MatMul".into()),
            "MatMul" => {
                use ElementType::{F4E2M1, I4, I8, Nf4, U2, U4, U8};
                let dims = self.graph.output(self.graph.producer(layer.id().input(port))?)?.shape().to_static()?;
                if dims.iter().rev().skip(2).any(|&dim| dim != 1) {
                    return Some("the weights have batch dimensions".into());
                }
                if ![U8, I8, U4, I4, U2, Nf4, F4E2M1].contains(&ty) {
                    return Some(message!("no kernel supports weights of type {}"; ty));
                }
                if is_bf16 {
                    return Some("the codes are converted to bf16".into());
                }
                broken_pattern(&path.steps).map(|broken| broken.words().into())
            }
            "Gather" if port == 0 => match (ty, broken_pattern(&path.steps)) {
                (ElementType::U8 | ElementType::I8 | ElementType::U4 | ElementType::I4, Some(broken)) => {
                    Some(broken.words().into())
                }
                (ElementType::U4 | ElementType::I4, None) => None,
                _ if is_byte => self.has_fake_quantize.then(|| "the model contains FakeQuantize layers".into()),
                _ => Some(message!("no kernel supports a Gather from {}"; ty)),
            },
            "Convolution" | "GroupConvolution" | "ConvolutionBackpropData" | "GroupConvolutionBackpropData"
                if port == 1 =>
            {
                // Convolutions of 1×1 between Transposes become matrix multiplications.
                let dims = path.constant.outputs().first()?.shape().to_static()?;
                let data = self.graph.producer(layer.id().input(0)).and_then(|output| self.graph.layer(output.layer));
                let is_of = |operation| data.is_some_and(|data| name(data) == operation);
                let is_product = dims.iter().skip(2).all(|&dim| dim == 1) && is_of("Transpose");
                let is_quantized = is_byte && is_of("FakeQuantize");
                (!is_product && !is_quantized).then(|| "convolutions take floats".into())
            }
            operation @ ("Einsum" | "LSTMSequence" | "LSTMCell" | "GRUSequence" | "GRUCell" | "RNNSequence"
            | "RNNCell") => Some(message!("{} needs weights in floats"; operation)),
            operation if OF_FLOATS.contains(&operation) => Some(message!("{} needs floats"; operation)),
            _ => None,
        }
    }

    /// Reports scales along the axis that a MatMul sums over. Plugins then compute wrong results or crash.
    fn scale_along_columns(&self, layer: &'a Layer, port: usize, path: &Path<'a>) -> Option<Diagnostic> {
        let mut is_transposed =
            layer.attribute("transpose_b").is_some_and(|value| ["true", "1"].contains(&value.trim()));
        if name(layer) != "MatMul" || port != 1 {
            return None;
        }
        for step in &path.steps {
            match name(step) {
                "Reshape" => return None,
                "Transpose" => {
                    let order = Operand::of(self.graph, self.model.weights(), step.id(), 1)?;
                    is_transposed ^= order.values() == [1.0, 0.0];
                }
                _ => {}
            }
        }
        let sums_over_rows = !is_transposed;
        let multiply = path.steps.iter().find(|step| name(step) == "Multiply")?;
        let tensors = self.graph.tensors(multiply.id());
        let whole = multiply.outputs().first()?.shape().to_static()?;
        let scale = tensors
            .iter()
            .filter_map(|port| port.shape().to_static())
            .min_by_key(|dims| dims.iter().product::<i64>())?;
        let axis = if sums_over_rows { 2 } else { 1 };
        let at = |dims: &[i64]| dims.len().checked_sub(axis).and_then(|axis| dims.get(axis)).copied().unwrap_or(1);
        let summed = at(&scale);
        if summed == 1 || whole.len() != 2 || at(&whole) != summed {
            return None;
        }
        let what = if sums_over_rows { "rows" } else { "columns" };
        let message = message!(
            "`{}` has a scale for each of {} {}, over which `{}` sums";
            path.constant.name(), summed, what, layer.name()
        );
        let ground = "measured on x86-64 with OpenVINO 2025.2 to 2026.4.1: with 4 bits it computes wrong numbers or crashes, with 8 bits it crashes in bf16";
        let label = message!("scale along {}"; what);
        let finding = self.finding(Code::ScaleAlongColumns, multiply, message, label, ground);
        Some(
            finding
                .help("add a dimension of 1 for groups to the codes and the scale, and a Reshape after the Multiply"),
        )
    }

    /// Reports 16-bit weights before a Convert without the mark that makes plugins keep them in 16 bits.
    fn unmarked(&self, layer: &'a Layer, port: usize, path: &Path<'a>) -> Option<Diagnostic> {
        let is_half = [ElementType::F16, ElementType::Bf16].contains(&path.stored);
        let takes_weights = port == 1 && matches!(name(layer), "MatMul" | "Convolution" | "GroupConvolution");
        let [convert] = path.steps[..] else { return None };
        let is_marked = || Marks::of(convert, self.model.version()).is_decompression();
        if !is_half || !takes_weights || ops::kind(convert) != LayerKind::Convert || is_marked() {
            return None;
        }
        let message = message!(
            "the CPU plugin converts the weights `{}` to f32, because the Convert after them has no decompression mark";
            path.constant.name()
        );
        let finding = self.finding(Code::WeightsUnmarked, convert, message, "no decompression mark", MEASURED);
        Some(finding.help(kept_by_rules()))
    }

    /// Reports a FakeQuantize after which a layer does not run in 8 bits.
    fn not_quantized(&self, layer: &'a Layer) -> Option<Diagnostic> {
        if !matches!(name(layer), "MatMul" | "Convolution" | "GroupConvolution") {
            return None;
        }
        let from = |input| self.graph.layer(self.graph.producer(layer.id().input(input))?.layer);
        let levels = |layer: &Layer| layer.attribute("levels").and_then(|levels| levels.trim().parse::<u64>().ok());
        let quantized = |layer: &&Layer| name(layer) == "FakeQuantize";
        let data = from(0).filter(quantized).and_then(levels);
        let (weights, source) = (self.path(from(1)?.id())?, from(1)?);
        let folded = Some(source).filter(quantized).and_then(levels);
        let has_codes = is_code(weights.stored);
        let reason = match (data, folded) {
            (Some(levels), _) if ![16, 255, 256].contains(&levels) => {
                message!("its data is quantized to {} levels"; levels)
            }
            (Some(_), None) if !has_codes => "only its data is quantized".into(),
            (None, Some(_)) => "only its weights are quantized".into(),
            (Some(_), Some(levels)) if ![255, 256].contains(&levels) => {
                message!("its weights are quantized to {} levels"; levels)
            }
            _ => return None,
        };
        let message = message!("`{}` is not computed in 8 bits on a CPU: {}"; layer.name(), reason);
        Some(self.finding(Code::NotQuantized, layer, message, "computed in floats", MEASURED))
    }

    /// Warns of 4-bit weights in other forms than those that are documented for an NPU.
    pub(super) fn asymmetric_weights(&self, found: &mut Vec<Diagnostic>) {
        const GROUND: &str = "OpenVINO's documentation: GenAI on NPU; reported: openvino#34450";
        let reason = |scheme: &schemes::Scheme| -> Option<Message> {
            match scheme.sharing {
                _ if !scheme.element_type.is_integer() || scheme.element_type.bits() != 4 => None,
                _ if scheme.has_zero_point => Some("asymmetric".into()),
                _ if scheme.element_type == ElementType::U4 => Some("stored as u4".into()),
                Sharing::Group(size) if size != 128 => Some(message!("in groups of {}"; size)),
                _ => None,
            }
        };
        let quantized = schemes::find(self.graph, self.model.weights());
        let weights = quantized
            .iter()
            .filter(|weights| self.graph.layer(weights.codes).is_some_and(|codes| values(codes) >= FEW_VALUES));
        let mut odd = weights.filter_map(|weights| Some((self.graph.layer(weights.codes)?, reason(&weights.scheme)?)));
        let Some((first, reason)) = odd.next() else { return };
        let message = message!(
            "`{}` is {}, and an NPU takes symmetric int4 in groups of 128 or whole rows";
            first.name(), reason
        );
        let finding = self.finding(Code::AsymmetricInt4, first, message, reason, GROUND);
        let is_u4 = first.outputs().first().is_some_and(|port| port.element_type() == ElementType::U4);
        let finding = and_others(finding, odd.map(|(layer, _)| layer));
        let finding = finding.help("quantize the float model to int4_sym with a group size of 128 or -1");
        // Codes of u4 around 8 are codes of i4 around 0.
        let rule = "Subtract(c: const f16, 8) => Convert(convert(c - 8, i4)) {destination_type=f16}";
        found.push(if is_u4 {
            finding.help(message!("with a zero point of 8, the rule `{}` stores i4"; rule))
        } else {
            finding
        });
    }
}

/// Operations that take weights in floats only, among those that were measured.
const OF_FLOATS: &[&str] = &[
    "Add",
    "Concat",
    "EmbeddingBagOffsets",
    "EmbeddingBagOffsetsSum",
    "Greater",
    "Maximum",
    "Multiply",
    "Power",
    "ScatterUpdate",
    "Select",
    "SquaredDifference",
];

/// A deviation from the layers after codes that the CPU plugin keeps compressed: a Convert, a Subtract, a Multiply, and then a
/// Reshape to two dimensions, a Convert and a Transpose.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PathDeviation {
    ZeroPointAfterScale,
    AddedZeroPoint,
    Divided,
    ConvertBeforeReshape,
    TransposedBefore,
    Reshaped,
    NoScale,
}

impl PathDeviation {
    fn has_rule(self, user: &Layer, steps: &[&Layer]) -> bool {
        let port = |layer: &Layer| layer.outputs().first().map(|port| (port.element_type(), port.shape().rank()));
        let first = steps.first().and_then(|convert| port(convert));
        match self {
            Self::ZeroPointAfterScale | Self::Divided => first.is_some_and(|(ty, _)| ty == ElementType::F32),
            Self::AddedZeroPoint => true,
            Self::NoScale => {
                let is_plain = steps.iter().skip(1).all(|step| name(step) == "Subtract");
                name(user) == "MatMul" && is_plain && first.is_some_and(|(_, rank)| rank == Some(2))
            }
            Self::ConvertBeforeReshape | Self::TransposedBefore | Self::Reshaped => false,
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::ZeroPointAfterScale => "the zero point is taken away after the scale",
            Self::AddedZeroPoint => "the zero point is added rather than taken away",
            Self::Divided => "it is divided by the scale",
            Self::ConvertBeforeReshape => "a Convert lies between the scale and a Reshape",
            Self::TransposedBefore => "a Transpose lies before the scale or before a Convert",
            Self::Reshaped => "its rank is changed to another one than 2",
            Self::NoScale => "it has no scale",
        }
    }
}

fn kept_by_rules() -> Fix {
    Fix::possible(FixAction::Rewrite("keep-compressed"))
}

/// The deviation of the layers after codes from those that are kept; `None` as well if other layers are among them.
fn broken_pattern(steps: &[&Layer]) -> Option<PathDeviation> {
    let (mut is_scaled, mut is_converted, mut is_transposed) = (false, false, false);
    for step in steps.get(1..)? {
        match name(step) {
            "Subtract" | "Multiply" | "Convert" if is_transposed => return Some(PathDeviation::TransposedBefore),
            "Subtract" if is_scaled => return Some(PathDeviation::ZeroPointAfterScale),
            "Subtract" => {}
            "Add" if !is_scaled => return Some(PathDeviation::AddedZeroPoint),
            "Divide" => return Some(PathDeviation::Divided),
            "Multiply" => is_scaled = true,
            "Convert" => is_converted = is_scaled,
            "Reshape" if is_converted => return Some(PathDeviation::ConvertBeforeReshape),
            "Reshape" if step.outputs().first().is_some_and(|port| port.shape().rank() == Some(2)) => {}
            "Reshape" | "Unsqueeze" | "Squeeze" => return Some(PathDeviation::Reshaped),
            "Transpose" => is_transposed = true,
            // Nothing was measured about other layers.
            _ => return None,
        }
    }
    (!is_scaled).then_some(PathDeviation::NoScale)
}
