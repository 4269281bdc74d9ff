//! Checks for models that OpenVINO reads but its plugins cannot run: back edges without a target, variables without an
//! Assign, and a FakeQuantize with fewer than two levels.

use std::collections::BTreeSet;

use super::GraphCheck;
use crate::findings::{About, Code, Message, Severity, Text, described, message};
use crate::model::graph::{BackEdge, Body, Direction, Graph, Layer, Model};
use crate::ops::{self, LayerKind};
use crate::text::xml;

const FEWEST_LEVELS: i64 = 2;

impl<'a> GraphCheck<'a> {
    /// Reports back edges that do not end at a Parameter with an initial value.
    pub(super) fn check_back_edge_ends(&mut self, layer: &'a Layer, body: &'a Body) {
        for (at, edge) in body.back_edges.iter().enumerate() {
            let Some(fault) = fault_of_end(body, edge) else { continue };
            let span = xml::locate_back_edge(self.source, layer.span().unwrap_or_default(), at);
            let lint = self.lint(Code::IncompletePortMap, layer, fault).at(span, "OpenVINO drops it silently");
            self.diagnostics.push(lint.help(help_of_end(body, edge)));
        }
    }

    /// Reports a FakeQuantize with fewer than two levels.
    pub(super) fn check_levels(&mut self, graph: &Graph, layer: &Layer) {
        let Some(levels) = layer.attribute("levels").and_then(|text| text.trim().parse::<i64>().ok()) else { return };
        if levels >= FEWEST_LEVELS {
            return;
        }
        let message = message!("`levels` of `{}` is {}, but a quantized value has at least 2"; layer.name(), levels);
        let about = About::Refusal { inputs: Default::default(), attribute: Some("levels"), counts_axes: false };
        let mut lint = self.lint(Code::InvalidValue, layer, message).about(about);
        lint.severity = Severity::Warning;
        let span = self.locate(layer, "data", "levels");
        let lint = lint.at(span, "OpenVINO reads it, but its plugins fail or compute NaN");
        let of_siblings: BTreeSet<&str> = graph
            .unordered()
            .filter(|it| it.ty() == layer.ty() && it.id() != layer.id())
            .filter_map(|it| it.attribute("levels"))
            .collect();
        let help = match of_siblings.first().filter(|_| of_siblings.len() == 1) {
            Some(other) => {
                message!("write levels=\"{}\", as in the other FakeQuantize layers; the minimum is 2"; other)
            }
            None => "write the number of values, at least 2: 256 for 8 bits, 16 for 4 bits".into(),
        };
        self.diagnostics.push(lint.help(help));
    }

    /// Reports variables that a ReadValue reads and no Assign sets.
    pub(super) fn find_unassigned_variables(&mut self, model: &'a Model) {
        let of_kind = |kind| {
            let all =
                model.walk().flat_map(|(place, graph)| graph.unordered().map(move |layer| (place.clone(), layer)));
            all.filter(move |(_, layer)| ops::kind(layer) == kind)
        };
        let assigned: BTreeSet<&str> =
            of_kind(LayerKind::Assign).filter_map(|(_, layer)| layer.attribute("variable_id")).collect();
        let read: BTreeSet<&str> =
            of_kind(LayerKind::ReadValue).filter_map(|(_, layer)| layer.attribute("variable_id")).collect();
        // An Assign without a ReadValue is reported separately.
        if !assigned.is_subset(&read) {
            return;
        }
        let lone = of_kind(LayerKind::ReadValue)
            .filter(|(_, layer)| layer.attribute("variable_id").is_some_and(|name| !assigned.contains(name)));
        for (place, layer) in lone {
            let variable = layer.attribute("variable_id").unwrap_or_default();
            let message = message!("`{}` reads the variable `{}`, which no Assign sets"; layer.name(), variable);
            self.place = place;
            let mut lint = self.lint(Code::UnknownVariable, layer, message);
            lint.severity = Severity::Warning;
            let span = self.locate(layer, "data", "variable_id");
            let lint = lint.at(span, "OpenVINO reads it, but its CPU plugin fails when it runs");
            self.diagnostics
                .push(lint.help(message!("add an Assign with variable_id=\"{}\" for the new value"; variable)));
        }
        self.place = crate::model::graph::Place::default();
    }
}

fn fault_of_end(body: &Body, edge: &BackEdge) -> Option<Message> {
    let Some(end) = body.graph.layer(edge.to) else {
        return Some(message!("a back edge ends at layer {}, which `{}` does not have"; edge.to, body.name()));
    };
    if ops::kind(end) != LayerKind::Parameter {
        return Some(message!("a back edge ends at {}, not at a Parameter"; described(end)));
    }
    let is_sliced = body
        .port_map
        .iter()
        .any(|it| it.direction == Direction::Input && it.internal_layer_id == edge.to && it.axis.is_some());
    is_sliced.then(
        || message!("a back edge ends at Parameter {} `{}`, which gets a slice of an input"; end.id(), end.name()),
    )
}

fn help_of_end(body: &Body, edge: &BackEdge) -> Message {
    let graph = &body.graph;
    let is_parameter = |layer: &Layer| ops::kind(layer) == LayerKind::Parameter;
    let is_turned = graph.layer(edge.from).is_some_and(is_parameter)
        && graph.layer(edge.to).is_some_and(|layer| ops::kind(layer) == LayerKind::Result);
    if is_turned {
        return message!("write from-layer=\"{}\" to-layer=\"{}\": it starts at the Result"; edge.to, edge.from);
    }
    let value = graph.producer(edge.from.input(0)).and_then(|tensor| graph.output(tensor));
    let is_sliced =
        |layer: &Layer| body.port_map.iter().any(|it| it.internal_layer_id == layer.id() && it.axis.is_some());
    let meant = graph.layers().filter(|it| {
        let output = it.outputs().first().zip(value);
        output.is_some_and(|(given, value)| given.tensor_type() == value.tensor_type())
            && is_parameter(it)
            && !is_sliced(it)
            && body.back_edges.iter().all(|edge| edge.to != it.id())
    });
    let meant: Vec<_> = meant.map(|it| it.id().to_string()).collect();
    match &meant[..] {
        [] => "set `to-layer` to the Parameter that gets the value in the next iteration".into(),
        meant => message!("write to-layer=\"{}\""; Text(meant.join("\" or \""))),
    }
}
