//! Checks of a model for one device: features that its plugin does not support, or executes in another way. Each
//! finding names its source: a measurement, OpenVINO's documentation, or a bug report.
//!
//! Speed and memory are not checked, because they depend on the machine.

mod attention;
mod integers;
mod shapes;
mod types;
mod weights;

use std::str::FromStr;

use typelift_promote::ElementType;

use super::check_precision;
use crate::base::options::deserialize_as_text;
use crate::findings::{Code, Diagnostic, LayerRef, Message, message};
use crate::infer::blocks::{FEW_VALUES, GraphFacts, values};
use crate::model::graph::{Graph, Layer, LayerId, Model, Place};
use crate::ops::Release;
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

deserialize_as_text!(Device);

const MEASURED: &str = "measured with OpenVINO 2026.4.1 on x86-64";

/// Limit on the further layers that a finding names.
const SHOWN: usize = 8;

/// The findings of an [inferred](crate::infer()) model that hold on a device. Some hold only on older releases than
/// `target`.
pub(crate) fn check_device(
    model: &Model,
    device: Device,
    target: Option<Release>,
    has_errors: bool,
) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    for (place, graph) in model.walk() {
        let view = View::new(model, place, graph, device);
        view.ranks(&mut found);
        view.tensors(&mut found);
        match device {
            Device::Cpu => {
                view.operations(&mut found);
                view.beyond_f32(&mut found);
                view.weights(&mut found);
                view.integers_through_floats(&mut found);
                view.masks(target, &mut found);
                view.caches(&mut found);
            }
            Device::Gpu => view.bf16(&mut found),
            Device::Npu => {
                view.open_dims(&mut found);
                view.asymmetric_weights(&mut found);
            }
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
    found.extend(check_precision(model, precision, has_errors || device == Device::Cpu).into_iter().map(|finding| {
        let finding = finding.note(ground);
        match device {
            // Other types in the file change nothing, so the fix of the finding would not help.
            Device::Cpu => Diagnostic { fixes: Vec::new(), ..finding }.help("use values that fit i32"),
            _ => finding,
        }
    }));
    found
}

/// The attentions whose boolean mask the CPU plugin of a release refuses, by graph.
pub(crate) fn boolean_masks(model: &Model, target: Release) -> Vec<(Place, Vec<LayerId>)> {
    let graphs = model.walk().map(|(place, graph)| {
        let view = View::new(model, place.clone(), graph, Device::Cpu);
        let found = view.boolean_masks(target).map(|(attention, _)| attention.id()).collect();
        (place, found)
    });
    graphs.collect()
}

/// Graph of a model, with the constants that its layers depend on.
struct View<'a> {
    model: &'a Model,
    place: Place,
    graph: &'a Graph,
    device: Device,
    order: Vec<LayerId>,
    facts: GraphFacts<'a>,
    has_fake_quantize: bool,
}

/// Weights and the layers from the constant that stores them to the layer that uses them.
struct Path<'a> {
    constant: &'a Layer,
    stored: ElementType,
    /// The layers between, beginning with the one next to the constant.
    steps: Vec<&'a Layer>,
}

impl<'a> View<'a> {
    fn new(model: &'a Model, place: Place, graph: &'a Graph, device: Device) -> Self {
        let order = graph.topological_order().unwrap_or_default();
        let facts = GraphFacts::new(graph);
        let has_fake_quantize = graph.unordered().any(|layer| name(layer) == "FakeQuantize");
        Self { model, place, graph, device, order, facts, has_fake_quantize }
    }

    fn layers(&self) -> impl Iterator<Item = &'a Layer> {
        self.order.iter().filter_map(|&id| self.graph.layer(id))
    }

    /// True for layers that a plugin computes in each inference.
    fn is_computed(&self, layer: &Layer) -> bool {
        !self.facts.stored().contains(layer.id())
    }

    fn finding(
        &self,
        code: Code,
        layer: &Layer,
        message: Message,
        label: impl Into<Message>,
        ground: &'static str,
    ) -> Diagnostic {
        let span = xml::locate(self.model.source(), layer.span().unwrap_or_default(), "layer", "name");
        let finding = Diagnostic::new(code, message).at(span, label).note(ground);
        Diagnostic { layer: Some(LayerRef::of(&self.place, layer)), ..finding }
    }

    fn name(&self) -> &'static str {
        match self.device {
            Device::Cpu => "CPU",
            Device::Gpu => "GPU",
            Device::Npu => "NPU",
        }
    }

    /// The path from the largest constant that a layer is computed from, if it is computed from constants alone.
    fn path(&self, from: LayerId) -> Option<Path<'a>> {
        let mut steps = self.facts.stored().path(from).into_iter();
        let constant = steps.next().filter(|layer| values(layer) >= FEW_VALUES)?;
        Some(Path { constant, stored: constant.outputs().first()?.element_type(), steps: steps.collect() })
    }
}

fn name(layer: &Layer) -> &'static str {
    layer.operation().map_or("", |operation| operation.name)
}

fn and_others<'a>(found: Diagnostic, others: impl Iterator<Item = &'a Layer>) -> Diagnostic {
    let names: Vec<_> = others.map(|layer| format!("`{}`", layer.name())).collect();
    match names.len() {
        0 => found,
        count => {
            let shown = names.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
            let rest = if count > SHOWN { ", …" } else { "" };
            found.note(message!("{} more: {}{}"; count, shown, rest))
        }
    }
}
