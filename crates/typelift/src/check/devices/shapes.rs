//! Ranks and lengths that a device needs to know.

use super::{Device, View};
use crate::findings::{Code, Diagnostic, Message, message};
use crate::model::graph::{Layer, OutputPort};
use crate::ops::{self, LayerKind};

impl<'a> View<'a> {
    /// Reports the first tensor of unknown rank; others are consequences.
    pub(super) fn ranks(&self, found: &mut Vec<Diagnostic>) {
        let is_open = |layer: &&Layer| layer.outputs().iter().any(|port| port.shape().rank().is_none());
        let Some(layer) = self.layers().filter(|layer| self.is_computed(layer)).find(is_open) else { return };
        let ground = match self.device {
            Device::Cpu => {
                "OpenVINO's documentation: CPU device; measured with OpenVINO 2026.4.1; reported: openvino#25051"
            }
            Device::Gpu => "OpenVINO's documentation: GPU device",
            Device::Npu => "reported: openvino#26907",
        };
        let message = message!("the output of `{}` has unknown rank, which no device supports"; layer.name());
        let finding = self.finding(Code::OpenRank, layer, message, "the rank is unknown", ground);
        found.push(finding.help("set the shapes of the inputs, or add the axes of a Squeeze"));
    }

    /// Reports tensors without an upper bound: inputs, and the first layer whose output has none.
    pub(super) fn open_dims(&self, found: &mut Vec<Diagnostic>) {
        const GROUND: &str = "reported: openvino#32466, openvino#34617, open_model_zoo#4047";
        let is_open =
            |port: &OutputPort| port.shape().dims().is_some_and(|dims| dims.iter().any(|dim| dim.upper().is_none()));
        let opens = |layer: &&Layer| layer.outputs().iter().any(is_open);
        let is_source = |layer: &Layer| matches!(ops::kind(layer), LayerKind::Parameter | LayerKind::ReadValue);
        let mut sources = self.layers().filter(|layer| is_source(layer)).filter(opens);
        let report = |layer: &'a Layer, message: Message| {
            let shape = layer.outputs().first().map(|port| message!("{}"; port)).unwrap_or_default();
            let finding = self.finding(Code::OpenDim, layer, message, shape, GROUND);
            finding.help("set the shapes of the inputs: each dimension must be a number or a range such as 1..64")
        };
        if let (Some(first), true) = (sources.next(), self.place.is_model()) {
            let tensor = first.outputs().first().map(|port| message!("{}"; port)).unwrap_or_default();
            let others: Vec<_> = sources.map(|layer| format!("`{}`", layer.name())).collect();
            let others = if others.is_empty() { Message::default() } else { message!(", as do {}"; others.join(", ")) };
            let message = message!(
                "`{}` is {}, but on an NPU every dimension needs an upper bound{}";
                first.name(), tensor, others
            );
            found.push(report(first, message));
            return;
        }
        let mut losing = self.layers().filter(|layer| self.is_computed(layer) && !is_source(layer)).filter(opens);
        if let Some(layer) = losing.find(|layer| self.graph.tensors(layer.id()).iter().all(|port| !is_open(port))) {
            let message =
                message!("the output of `{}` has no upper bound, which an NPU needs for every dimension"; layer.name());
            found.push(report(layer, message));
        }
    }
}
