//! Facts about a device that decide what becomes of a model on it. Each finding states its ground: a measurement, OpenVINO's
//! documentation, or a report.
//!
//! Nothing is said about speed, memory or kernels, because they depend on the machine.

use std::str::FromStr;

use typelift_promote::{ElementType, Kind};

use super::check_precision;
use crate::base::hash::{HashMap, HashSet};
use crate::edit::precision_marks::Marks;
use crate::findings::{Code, Diagnostic, LayerRef, grouped};
use crate::model::graph::{Graph, Layer, LayerId, Model, OutputPort, Place};
use crate::model::weights::byte_size;
use crate::ops::{self, LayerKind};
use crate::text::xml;

/// A device of OpenVINO.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Device {
    /// The CPU plugin on x86-64.
    Cpu,
    /// The GPU plugin.
    Gpu,
    /// The NPU plugin.
    Npu,
}

impl FromStr for Device {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "cpu" => Ok(Self::Cpu),
            "gpu" => Ok(Self::Gpu),
            "npu" => Ok(Self::Npu),
            _ => Err("expected cpu, gpu or npu".to_owned()),
        }
    }
}

const MEASURED: &str = "measured with OpenVINO 2026.4.1 on x86-64";

/// Constants with fewer values are settings or scales.
const FEW: u64 = 64;

/// Findings of an [inferred](crate::infer()) model that hold on a device.
pub(crate) fn check_device(model: &Model, device: Device) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    for (place, graph) in model.walk() {
        let view = View::new(model, place, graph, device);
        view.ranks(&mut found);
        view.tensors(&mut found);
        if device == Device::Cpu {
            view.operations(&mut found);
            view.weights(&mut found);
        }
        if device == Device::Npu {
            view.open_dims(&mut found);
        }
    }
    let (precision, ground) = match device {
        Device::Cpu => (ElementType::I32, MEASURED),
        Device::Gpu => (
            ElementType::F16,
            "a GPU computes in f16 unless a hint says otherwise; OpenVINO's documentation: GPU device",
        ),
        Device::Npu => (ElementType::F16, "an NPU computes in f16; OpenVINO's documentation: NPU device"),
    };
    found.extend(check_precision(model, precision).into_iter().map(|found| found.note(ground)));
    found
}

/// A graph of a model, with the constants that its layers compute from.
struct View<'a> {
    model: &'a Model,
    place: Place,
    graph: &'a Graph,
    device: Device,
    order: Vec<LayerId>,
    /// For each layer that is computed from constants alone the size of the largest of them, and the layer before it on the way.
    largest: HashMap<LayerId, (u64, Option<LayerId>)>,
    has_fake_quantize: bool,
}

/// Weights on the way from the constant that stores them to the layer that uses them.
struct Way<'a> {
    constant: &'a Layer,
    stored: ElementType,
    /// The layers between, the first one next to the constant.
    steps: Vec<&'a Layer>,
}

impl<'a> View<'a> {
    fn new(model: &'a Model, place: Place, graph: &'a Graph, device: Device) -> Self {
        let order = graph.topological_order().unwrap_or_default();
        let mut largest: HashMap<LayerId, (u64, Option<LayerId>)> = HashMap::default();
        for layer in order.iter().filter_map(|&id| graph.layer(id)) {
            if ops::is_constant(layer) {
                largest.insert(layer.id(), (count(layer), None));
                continue;
            }
            let sources: Vec<_> =
                graph.producers(layer.id()).into_iter().flatten().map(|output| output.layer).collect();
            let known: Option<Vec<_>> = sources.iter().map(|id| Some((largest.get(id)?.0, *id))).collect();
            let is_end = ops::is_own(layer) || ops::kind(layer) == LayerKind::ReadValue;
            if let Some((size, before)) =
                known.filter(|_| !is_end).and_then(|known| known.into_iter().rev().max_by_key(|it| it.0))
            {
                largest.insert(layer.id(), (size, Some(before)));
            }
        }
        let has_fake_quantize = graph.unordered().any(|layer| name(layer) == "FakeQuantize");
        Self { model, place, graph, device, order, largest, has_fake_quantize }
    }

    fn layers(&self) -> impl Iterator<Item = &'a Layer> {
        self.order.iter().filter_map(|&id| self.graph.layer(id))
    }

    /// True for layers that a plugin computes in each inference.
    fn is_computed(&self, layer: &Layer) -> bool {
        !self.largest.contains_key(&layer.id())
    }

    fn finding(
        &self,
        code: Code,
        layer: &Layer,
        message: String,
        label: impl Into<String>,
        ground: &str,
    ) -> Diagnostic {
        let span = xml::locate(self.model.source(), layer.span().unwrap_or_default(), "layer", "name");
        let finding = Diagnostic::new(code, message).at(span, label).note(ground);
        Diagnostic { layer: Some(LayerRef::of(&self.place, layer)), ..finding }
    }

    /// Refuses a tensor of unknown rank, the first one only: others follow from it.
    fn ranks(&self, found: &mut Vec<Diagnostic>) {
        let is_open = |layer: &&Layer| layer.outputs().iter().any(|port| port.shape().rank().is_none());
        let Some(layer) = self.layers().filter(|layer| self.is_computed(layer)).find(is_open) else { return };
        let ground = match self.device {
            Device::Cpu => {
                "OpenVINO's documentation: CPU device; measured with OpenVINO 2026.4.1; reported: openvino#25051"
            }
            Device::Gpu => "OpenVINO's documentation: GPU device",
            Device::Npu => "reported: openvino#26907",
        };
        let message = format!("`{}` gives a tensor of unknown rank, which no device computes", layer.name());
        let finding = self.finding(Code::OpenRank, layer, message, "rank is not known", ground);
        found.push(finding.help("set the shapes of the inputs, or give a Squeeze its axes"));
    }

    /// Refuses element types that the device does not compute with.
    fn tensors(&self, found: &mut Vec<Diagnostic>) {
        const BITS: [ElementType; 3] = [ElementType::U1, ElementType::U3, ElementType::U6];
        for layer in self.layers().filter(|layer| self.is_computed(layer) && !layer.outputs().is_empty()) {
            let has = |types: &[ElementType]| {
                let mut types = layer.outputs().iter().map(OutputPort::element_type).filter(|ty| types.contains(ty));
                types.next()
            };
            let (refused, code, ground) = match self.device {
                Device::Cpu => (has(&BITS), Code::TypeRefused, MEASURED),
                Device::Gpu => (has(&[ElementType::String]), Code::StringOnDevice, "reported: openvino_tokenizers#131"),
                Device::Npu => match has(&[ElementType::U1]) {
                    Some(ty) => (Some(ty), Code::TypeRefused, "reported: openvino#27626"),
                    None => (has(&[ElementType::String]), Code::StringOnDevice, "reported: openvino_tokenizers#131"),
                },
            };
            if let Some(ty) = refused {
                let message =
                    format!("`{}` gives {ty}, which the {} plugin does not compute with", layer.name(), self.name());
                let finding = self.finding(code, layer, message, format!("{ty}"), ground);
                found.push(finding.help(match code {
                    Code::StringOnDevice => "run this part of the model on the CPU",
                    _ => "store and compute it as u8",
                }));
            }
        }
    }

    fn name(&self) -> &'static str {
        match self.device {
            Device::Cpu => "CPU",
            Device::Gpu => "GPU",
            Device::Npu => "NPU",
        }
    }

    /// Refuses operations with element types that the CPU plugin has no kernel for.
    fn operations(&self, found: &mut Vec<Diagnostic>) {
        for layer in self.layers().filter(|layer| self.is_computed(layer)) {
            let Some(ty) = layer.outputs().first().map(OutputPort::element_type) else { continue };
            let is_refused = match name(layer) {
                "NormalizeL2" => ty.is_integer(),
                "OneHot" => [ElementType::I8, ElementType::U8, ElementType::Boolean].contains(&ty),
                "Negative" => ty.kind() == Kind::Unsigned,
                _ => false,
            };
            if is_refused {
                let operation = name(layer);
                let message = format!("the CPU plugin has no {operation} of {ty}, as in `{}`", layer.name());
                let finding = self.finding(Code::OperationType, layer, message, format!("{ty}"), MEASURED);
                found.push(finding.help("compute it in a wider type, between two Converts"));
            }
        }
    }

    /// Refuses tensors that have no largest size: the inputs, and the first layer that loses a bound.
    fn open_dims(&self, found: &mut Vec<Diagnostic>) {
        const GROUND: &str = "reported: openvino#32466, openvino#34617, open_model_zoo#4047";
        let is_open =
            |port: &OutputPort| port.shape().dims().is_some_and(|dims| dims.iter().any(|dim| dim.upper().is_none()));
        let opens = |layer: &&Layer| layer.outputs().iter().any(is_open);
        let is_source = |layer: &Layer| matches!(ops::kind(layer), LayerKind::Parameter | LayerKind::ReadValue);
        let mut sources = self.layers().filter(|layer| is_source(layer)).filter(opens);
        let report = |layer: &'a Layer, message: String| {
            let shape = layer.outputs().first().map(ToString::to_string).unwrap_or_default();
            let finding = self.finding(Code::OpenDim, layer, message, shape, GROUND);
            finding.help("set the shapes of the inputs, each length a number or a range such as 1..64")
        };
        if let (Some(first), true) = (sources.next(), self.place.is_model()) {
            let tensor = first.outputs().first().map(ToString::to_string).unwrap_or_default();
            let others: Vec<_> = sources.map(|layer| format!("`{}`", layer.name())).collect();
            let others = if others.is_empty() { String::new() } else { format!(", as do {}", others.join(", ")) };
            let message =
                format!("`{}` is {tensor} and needs an upper bound for each length on an NPU{others}", first.name());
            found.push(report(first, message));
            return;
        }
        let is_bounded = |layer: &&Layer| self.graph.tensors(layer.id()).iter().all(|port| !is_open(port));
        let mut losing = self.layers().filter(|layer| self.is_computed(layer) && !is_source(layer)).filter(opens);
        if let Some(layer) = losing.find(is_bounded) {
            let message =
                format!("`{}` gives a tensor without an upper bound, which an NPU needs for each length", layer.name());
            found.push(report(layer, message));
        }
    }

    /// Looks at the weights of each layer.
    fn weights(&self, found: &mut Vec<Diagnostic>) {
        let mut known = HashSet::default();
        for layer in self.layers().filter(|layer| self.is_computed(layer)) {
            for (port, producer) in self.graph.producers(layer.id()).into_iter().enumerate() {
                let Some(way) = producer.and_then(|output| self.way(output.layer)) else { continue };
                if is_code(way.stored) && known.insert((way.constant.id(), layer.id())) {
                    found.extend(self.unfolded(layer, port, &way));
                    found.extend(self.scale_along_columns(layer, port, &way));
                }
                found.extend(self.unmarked(layer, port, &way));
            }
            found.extend(self.not_quantized(layer));
        }
    }

    /// The way of the largest constant that a layer is computed from, if it is computed from constants alone.
    fn way(&self, from: LayerId) -> Option<Way<'a>> {
        let mut steps = Vec::new();
        let mut at = from;
        while let Some(before) = self.largest.get(&at)?.1 {
            steps.push(self.graph.layer(at)?);
            at = before;
        }
        steps.reverse();
        let constant = self.graph.layer(at).filter(|layer| count(layer) >= FEW)?;
        Some(Way { constant, stored: constant.outputs().first()?.element_type(), steps })
    }

    /// Warns of weights of few bits that the CPU plugin converts to floats when it compiles the model.
    fn unfolded(&self, layer: &'a Layer, port: usize, way: &Way<'a>) -> Option<Diagnostic> {
        let reason = self.reason_to_unfold(layer, port, way)?;
        let values = count(way.constant);
        let size =
            |ty| byte_size(ty, values).and_then(|size| u64::try_from(size).ok()).map_or_else(String::new, grouped);
        let (before, after) = (size(way.stored), size(ElementType::F32));
        let message = format!(
            "the CPU plugin unfolds `{}` to f32: {before} bytes become {after}, for `{}`",
            way.constant.name(),
            layer.name()
        );
        let finding = self.finding(Code::WeightsUnfold, way.constant, message, reason, MEASURED);
        Some(finding.help(
            "weights of a MatMul are kept as input 1: Convert, then Subtract of a zero point, then Multiply by a scale",
        ))
    }

    /// The reason for which weights are unfolded; `None` if they are kept, or if that is not known.
    fn reason_to_unfold(&self, layer: &Layer, port: usize, way: &Way<'_>) -> Option<String> {
        let ty = way.stored;
        let is_byte = matches!(ty, ElementType::U8 | ElementType::I8);
        let first = way.steps.first().filter(|layer| ops::kind(layer) == LayerKind::Convert)?;
        if first.outputs().first()?.element_type() == ElementType::Bf16 {
            return None;
        }
        match name(layer) {
            "MatMul" if port == 0 => Some("weights are the first input of a MatMul".to_owned()),
            "MatMul" => {
                use ElementType::{F4E2M1, I4, I8, Nf4, U2, U4, U8};
                let dims = self.graph.output(self.graph.producer(layer.id().input(port))?)?.shape().to_static()?;
                if dims.iter().rev().skip(2).any(|&dim| dim != 1) {
                    return Some("weights have a batch of their own".to_owned());
                }
                if ![U8, I8, U4, I4, U2, Nf4, F4E2M1].contains(&ty) {
                    return Some(format!("no kernel takes weights of {ty}"));
                }
                broken_pattern(&way.steps)
            }
            "Gather" if port == 0 && broken_pattern(&way.steps).is_none() => match ty {
                ElementType::U4 | ElementType::I4 => None,
                _ if is_byte => self.has_fake_quantize.then(|| "the model has FakeQuantize layers".to_owned()),
                _ => Some(format!("no kernel gathers from {ty}")),
            },
            "Convolution" | "GroupConvolution" | "ConvolutionBackpropData" | "GroupConvolutionBackpropData"
                if port == 1 =>
            {
                // Convolutions of 1×1 can become matrix multiplications.
                let dims = way.constant.outputs().first()?.shape().to_static()?;
                let is_point = dims.iter().skip(2).all(|&dim| dim == 1);
                let data = self.graph.producer(layer.id().input(0)).and_then(|output| self.graph.layer(output.layer));
                let is_quantized = is_byte && data.is_some_and(|data| name(data) == "FakeQuantize");
                (!is_point && !is_quantized).then(|| "convolutions take floats".to_owned())
            }
            operation @ ("Einsum" | "LSTMSequence" | "LSTMCell" | "GRUSequence" | "GRUCell" | "RNNSequence"
            | "RNNCell") => Some(format!("{operation} takes floats")),
            _ => None,
        }
    }

    /// Refuses scales along the axis that a MatMul sums over: results are wrong, or the process ends.
    fn scale_along_columns(&self, layer: &'a Layer, port: usize, way: &Way<'a>) -> Option<Diagnostic> {
        let is_transposed = layer.attribute("transpose_b").is_some_and(|value| ["true", "1"].contains(&value.trim()));
        let is_grouped = way.steps.iter().any(|step| name(step) == "Reshape");
        if name(layer) != "MatMul" || port != 1 || !is_transposed || is_grouped {
            return None;
        }
        let multiply = way.steps.iter().find(|step| name(step) == "Multiply")?;
        let tensors = self.graph.tensors(multiply.id());
        let whole = multiply.outputs().first()?.shape().to_static()?;
        let scale = tensors
            .iter()
            .filter_map(|port| port.shape().to_static())
            .min_by_key(|dims| dims.iter().product::<i64>())?;
        let columns = scale.last().copied().unwrap_or(1);
        if columns == 1 || whole.len() != 2 || whole.last() != Some(&columns) {
            return None;
        }
        let message = format!(
            "`{}` has a scale for each of {columns} columns, over which `{}` sums",
            way.constant.name(),
            layer.name()
        );
        let ground = "measured on x86-64: OpenVINO 2025.2 to 2026.4.1 computes wrong numbers with 4 bits or dies, and with 8 bits dies in bf16";
        let finding = self.finding(Code::ScaleAlongColumns, multiply, message, "scale along columns", ground);
        Some(finding.help("give the codes and the scale a dimension of 1 for groups, with a Reshape after the product"))
    }

    /// Warns of 16-bit weights behind a Convert that lacks the mark with which plugins keep them.
    fn unmarked(&self, layer: &'a Layer, port: usize, way: &Way<'a>) -> Option<Diagnostic> {
        let is_half = [ElementType::F16, ElementType::Bf16].contains(&way.stored);
        let takes_weights = port == 1 && matches!(name(layer), "MatMul" | "Convolution" | "GroupConvolution");
        let [convert] = way.steps[..] else { return None };
        let is_marked = || Marks::of(convert, self.model.version()).is_decompression();
        if !is_half || !takes_weights || ops::kind(convert) != LayerKind::Convert || is_marked() {
            return None;
        }
        let message = format!(
            "the CPU plugin unfolds `{}` to f32, because the Convert after it has no decompression mark",
            way.constant.name()
        );
        let finding = self.finding(Code::WeightsUnmarked, convert, message, "no decompression mark", MEASURED);
        Some(finding.help("mark the Convert"))
    }

    /// Warns of a FakeQuantize that does not make a layer run in 8 bits.
    fn not_quantized(&self, layer: &'a Layer) -> Option<Diagnostic> {
        if !matches!(name(layer), "MatMul" | "Convolution" | "GroupConvolution") {
            return None;
        }
        let from = |input| self.graph.layer(self.graph.producer(layer.id().input(input))?.layer);
        let levels = |layer: &Layer| layer.attribute("levels").and_then(|levels| levels.trim().parse::<u64>().ok());
        let quantized = |layer: &&Layer| name(layer) == "FakeQuantize";
        let data = from(0).filter(quantized).and_then(levels);
        let (weights, source) = (self.way(from(1)?.id())?, from(1)?);
        let folded = Some(source).filter(quantized).and_then(levels);
        let has_codes = is_code(weights.stored);
        let reason = match (data, folded) {
            (Some(levels), _) if ![16, 255, 256].contains(&levels) => format!("its data have {levels} levels"),
            (Some(_), None) if !has_codes => "only its data are quantized".to_owned(),
            (None, Some(_)) => "only its weights are quantized".to_owned(),
            (Some(_), Some(levels)) if ![255, 256].contains(&levels) => format!("its weights have {levels} levels"),
            _ => return None,
        };
        let message = format!("`{}` is not computed in 8 bits on a CPU: {reason}", layer.name());
        Some(self.finding(Code::NotQuantized, layer, message, "computed in floats", MEASURED))
    }
}

/// The reason for which the layers after codes are not what the CPU plugin keeps compressed: a Convert, a Subtract, a Multiply,
/// and then a Reshape, a Transpose or a Convert.
fn broken_pattern(steps: &[&Layer]) -> Option<String> {
    let (mut is_scaled, mut is_converted) = (false, false);
    for step in &steps[1..] {
        match name(step) {
            "Subtract" if is_scaled => return Some("the zero point is taken away after the scale".to_owned()),
            "Subtract" => {}
            "Add" if !is_scaled => return Some("the zero point is added rather than taken away".to_owned()),
            "Divide" => return Some("it is divided by the scale".to_owned()),
            "Multiply" => is_scaled = true,
            "Convert" if is_scaled => is_converted = true,
            "Reshape" if is_converted => return Some("a Convert lies between the scale and a Reshape".to_owned()),
            "Reshape" | "Transpose" | "Unsqueeze" | "Squeeze" => {}
            // Nothing was measured about other layers.
            _ => return None,
        }
    }
    (!is_scaled).then(|| "it has no scale".to_owned())
}

fn name(layer: &Layer) -> &'static str {
    layer.operation().map_or("", |operation| operation.name())
}

/// The number of values of a constant.
fn count(layer: &Layer) -> u64 {
    layer.outputs().first().and_then(|port| port.shape().element_count()).unwrap_or(0)
}

/// True for the types of codes.
fn is_code(ty: ElementType) -> bool {
    ty.bits() <= 8 && !matches!(ty, ElementType::Boolean | ElementType::F8E8M0 | ElementType::Dynamic)
}
