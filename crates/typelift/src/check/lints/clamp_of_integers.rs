//! Integers that are clamped by fractions.
//!
//! OpenVINO keeps the integers and rounds the limits: `min` up, `max` down. PyTorch, from which such models come, gives
//! floats. The result has another type and other values.

use crate::check::{GraphCheck, PLACES};
use crate::findings::{Code, message};
use crate::model::graph::{Graph, Layer};

pub(super) fn find(check: &mut GraphCheck<'_>, graph: &Graph) {
    let limit = |layer: &Layer, name| layer.attribute(name).and_then(|text| text.trim().parse::<f64>().ok());
    for layer in graph.layers().filter(|layer| layer.operation().is_some_and(|row| row.name == "Clamp")).take(PLACES) {
        let Some(ty) = layer.outputs().first().map(|port| port.element_type()).filter(|ty| ty.is_integer()) else {
            continue;
        };
        let fraction = ["min", "max"].into_iter().find(|name| limit(layer, name).is_some_and(|it| it.fract() != 0.0));
        let Some(name) = fraction else { continue };
        let value = layer.attribute(name).unwrap_or_default();
        let message =
            message!("`{}` clamps {} by {} and gives {}; PyTorch's rules give f32"; layer.name(), ty, value, ty);
        let rounded = if name == "min" { "up" } else { "down" };
        let lint = check.lint(Code::IntegerResult, layer, message);
        let lint = lint.at(check.locate(layer, "data", name), message!("OpenVINO rounds it {} to an integer"; rounded));
        check.diagnostics.push(lint.help("put a Convert to f32 before it, if fractions are meant"));
    }
}
