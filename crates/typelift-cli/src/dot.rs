//! Graphs for Graphviz: nodes coloured by element type, conversions standing out.

use std::fmt::{Display, Write as _};

use typelift::ops::{self, LayerKind};
use typelift::promote::{ElementType, Kind};
use typelift::{Graph, Layer, Model};

use crate::listing::Clean;

pub(crate) fn print(model: &Model) -> String {
    let mut out = format!("digraph {} {{\n", quoted(model.name()));
    // Limits on its search, without which Graphviz does not finish graphs of a thousand layers.
    out += "  graph [nslimit=2, nslimit1=2, mclimit=0.5]\n";
    out += "  node [shape=box, style=\"rounded,filled\", fontname=\"Helvetica\", fontsize=10]\n";
    out += "  edge [fontname=\"Helvetica\", fontsize=9]\n";
    graph(model.graph(), "", 1, &mut out);
    out + "}\n"
}

/// The nodes and edges of a graph, and its bodies as clusters. `scope` sets its nodes apart from those of other graphs.
fn graph(graph: &Graph, scope: &str, depth: usize, out: &mut String) {
    let indent = "  ".repeat(depth);
    for layer in graph.layers() {
        let node = format!("\"{scope}{}\"", layer.id());
        let _ = writeln!(out, "{indent}{node} [label={}, {}]", quoted(label(graph, layer)), style(layer));
        for (port, feed) in graph.producers(layer.id()).into_iter().enumerate() {
            let Some(feed) = feed else { continue };
            let source = graph.layer(feed.layer);
            // Ports have numbers where there is a choice.
            let mut ports = Vec::new();
            if source.is_some_and(|layer| layer.outputs().len() > 1) {
                ports.push(format!("taillabel=\"{}\"", feed.port));
            }
            if layer.inputs().len() > 1 {
                ports.push(format!("headlabel=\"{port}\""));
            }
            let _ = writeln!(out, "{indent}\"{scope}{}\" -> {node} [{}]", feed.layer, ports.join(", "));
        }
        for body in layer.bodies() {
            let inner = format!("{scope}{}/{}/", layer.id(), body.name());
            let _ = writeln!(out, "{indent}subgraph \"cluster_{inner}\" {{");
            let title = format!("{} of {}", body.name(), Clean(layer.name()));
            let _ = writeln!(out, "{indent}  label={}; style=dashed; fontname=\"Helvetica\"", quoted(&title));
            self::graph(body.graph(), &inner, depth + 1, out);
            let _ = writeln!(out, "{indent}}}");
            for entry in body.port_map() {
                let inside = format!("\"{inner}{}\"", entry.internal_layer_id);
                let (from, to) = match entry.direction {
                    typelift::graph::Direction::Input => (&node, &inside),
                    typelift::graph::Direction::Output => (&inside, &node),
                };
                let _ = writeln!(out, "{indent}{from} -> {to} [style=dashed, constraint=false]");
            }
            for edge in body.back_edges() {
                let _ = writeln!(
                    out,
                    "{indent}\"{inner}{}\" -> \"{inner}{}\" [style=dotted, constraint=false]",
                    edge.from, edge.to
                );
            }
        }
    }
}

fn label(graph: &Graph, layer: &Layer) -> String {
    let outputs = layer.outputs().iter().map(|port| format!("{}{}", port.element_type(), port.shape()));
    let mut types = outputs.collect::<Vec<_>>().join(", ");
    if is_conversion(layer) {
        let inputs = graph.producers(layer.id()).into_iter().flatten().filter_map(|feed| graph.output(feed));
        let from: Vec<_> = inputs.map(|port| port.element_type().name()).collect();
        types = format!("{} -> {types}", from.join(", "));
    }
    let head = format!("{} {}\n{}", layer.id(), layer.name(), layer.ty());
    if types.is_empty() { head } else { head + "\n" + &types }
}

fn is_conversion(layer: &Layer) -> bool {
    matches!(ops::kind(layer), LayerKind::Convert | LayerKind::ConvertLike | LayerKind::ConvertPromoteTypes)
}

fn style(layer: &Layer) -> String {
    let colour = colour(layer.outputs().first().map(|port| port.element_type()));
    let border = if is_conversion(layer) { ", color=\"#b3001b\", penwidth=2.5" } else { "" };
    format!("fillcolor=\"{colour}\"{border}")
}

/// One hue a kind of type, darker for wider ones.
fn colour(ty: Option<ElementType>) -> &'static str {
    let Some(ty) = ty else { return "#ffffff" };
    match (ty.kind(), ty.bits()) {
        (Kind::Float, 0..=8) => "#eaf3fb",
        (Kind::Float, 9..=16) => "#cfe4f7",
        (Kind::Float, 17..=32) => "#a6cdf0",
        (Kind::Float, _) => "#7fb3e6",
        (Kind::Signed, 0..=8) => "#edf7e8",
        (Kind::Signed, 9..=16) => "#d8efcc",
        (Kind::Signed, 17..=32) => "#bfe3ab",
        (Kind::Signed, _) => "#9fd284",
        (Kind::Unsigned, 0..=8) => "#fdf5da",
        (Kind::Unsigned, 9..=16) => "#fbebb3",
        (Kind::Unsigned, 17..=32) => "#f8de86",
        (Kind::Unsigned, _) => "#f2cc4d",
        (Kind::Boolean, _) => "#f9d5c4",
        (Kind::String, _) => "#e6d5f2",
        _ => "#e4e4e4",
    }
}

/// A text in the quotes that Graphviz wants; lines stay lines.
fn quoted(text: impl Display) -> String {
    let mut out = String::from("\"");
    for c in text.to_string().chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            c if c.is_control() => out.push('?'),
            c => out.push(c),
        }
    }
    out + "\""
}
