//! Graphs for Graphviz: boxes coloured by element type, marked conversions, and a legend.

use std::collections::{BTreeSet, HashSet};
use std::fmt::{Display, Write as _};

use typelift::graph::{Body, Direction};
use typelift::ops;
use typelift::promote::{ElementType, Kind};
use typelift::rewrite::notation::Line;
use typelift::{Graph, Layer, Model};

use crate::gate::Clean;
use crate::selection::Selection;

/// The borders of conversions, and of those that can lose something.
const KEEPS: &str = "#17803d";
const LOSES: &str = "#b3001b";

pub(crate) fn print(model: &Model, selection: &Selection<'_>) -> String {
    let mut drawing = Drawing { model, selection, types: BTreeSet::new(), converts: [false; 2], out: String::new() };
    drawing.write_graph(selection.graph, "", 1);
    let mut out = format!("digraph {} {{\n", quoted(model.name()));
    // Graphviz needs these limits to finish graphs of a thousand layers.
    out += "  graph [nslimit=2, nslimit1=2, mclimit=0.5]\n";
    out += "  node [shape=box, style=\"rounded,filled\", fontname=\"Helvetica\", fontsize=10]\n";
    out += "  edge [fontname=\"Helvetica\", fontsize=9]\n";
    out + &drawing.legend() + &drawing.out + "}\n"
}

struct Drawing<'a> {
    model: &'a Model,
    selection: &'a Selection<'a>,
    types: BTreeSet<ElementType>,
    /// True if there are conversions that keep every value, and some that can lose one.
    converts: [bool; 2],
    out: String,
}

impl Drawing<'_> {
    /// Writes the nodes and edges of a graph, and its bodies as clusters. `scope` makes its nodes unique among graphs.
    fn write_graph(&mut self, graph: &Graph, scope: &str, depth: usize) {
        let indent = "  ".repeat(depth);
        for layer in self.selection.layers(graph) {
            let node = format!("\"{scope}{}\"", layer.id());
            self.write_node(graph, layer, &format!("{indent}{node}"));
            for (port, feed) in graph.producers(layer.id()).into_iter().enumerate() {
                let Some((feed, source)) = feed.and_then(|feed| Some((feed, graph.layer(feed.layer)?))) else {
                    continue;
                };
                if !self.selection.shows(graph, source) {
                    continue;
                }
                // Ports are numbered if there are several.
                let mut attributes = Vec::new();
                if source.outputs().len() > 1 {
                    attributes.push(format!("taillabel=\"{}\"", feed.port));
                }
                if layer.inputs().len() > 1 {
                    attributes.push(format!("headlabel=\"{port}\""));
                }
                let tensor = graph.output(feed).map(ToString::to_string).unwrap_or_default();
                attributes.push(format!("edgetooltip={}", quoted(format!("{}: {tensor}", Clean(source.name())))));
                let attributes = attributes.join(", ");
                let _ = writeln!(self.out, "{indent}\"{scope}{}\" -> {node} [{attributes}]", feed.layer);
            }
            for body in layer.bodies().iter().filter(|body| self.selection.opens(body)) {
                self.write_body(layer, body, scope, depth);
            }
        }
    }

    /// Writes a layer as a box: its name, operation, constants and types, and more in a tooltip.
    fn write_node(&mut self, graph: &Graph, layer: &Layer, node: &str) {
        let ty = layer.outputs().first().map(|port| port.element_type());
        self.types.extend(ty);
        let line = Line::new(graph, layer, self.model.weights(), self.selection.folds);
        let mut label = format!("{} {}\n{}", layer.id(), layer.name(), layer.ty());
        let mut border = String::new();
        match ops::conversion(graph, layer) {
            Some(conversion) => {
                let effect = conversion.effect(graph, self.model.weights(), layer);
                let loses = !effect.is_exact();
                self.converts[usize::from(loses)] = true;
                border = format!(", color=\"{}\", penwidth=2.5", if loses { LOSES } else { KEEPS });
                let from = conversion.from.iter().map(|ty| ty.name()).collect::<Vec<_>>().join(", ");
                let _ = write!(label, "\n{from} -> {}", line.outputs);
                if loses {
                    let _ = write!(label, "\n{effect}");
                }
            }
            None if self.selection.folds && line.arguments.len() > 2 => {
                let _ = write!(label, "{}\n{}", line.arguments, line.outputs);
            }
            None => {
                let _ = write!(label, "\n{}", line.outputs);
            }
        }
        let colors = format!("fillcolor=\"{}\"{border}", color(ty));
        let (label, tooltip) = (quoted(label.trim_end()), quoted(&line));
        let _ = writeln!(self.out, "{node} [label={label}, tooltip={tooltip}, {colors}]");
    }

    fn write_body(&mut self, layer: &Layer, body: &Body, scope: &str, depth: usize) {
        let indent = "  ".repeat(depth);
        let inner = format!("{scope}{}/{}/", layer.id(), body.name());
        let _ = writeln!(self.out, "{indent}subgraph \"cluster_{inner}\" {{");
        let title = quoted(format!("{} of {}", body.name(), Clean(layer.name())));
        let _ = writeln!(self.out, "{indent}  label={title}; style=dashed; fontname=\"Helvetica\"");
        self.write_graph(&body.graph, &inner, depth + 1);
        let _ = writeln!(self.out, "{indent}}}");
        let shown: HashSet<_> = self.selection.layers(&body.graph).map(|layer| layer.id()).collect();
        for entry in body.port_map.iter().filter(|entry| shown.contains(&entry.internal_layer_id)) {
            let (node, inside) =
                (format!("\"{scope}{}\"", layer.id()), format!("\"{inner}{}\"", entry.internal_layer_id));
            let (from, to) = match entry.direction {
                Direction::Input => (&node, &inside),
                Direction::Output => (&inside, &node),
            };
            let _ = writeln!(self.out, "{indent}{from} -> {to} [style=dashed, constraint=false]");
        }
        for edge in body.back_edges.iter().filter(|it| shown.contains(&it.from) && shown.contains(&it.to)) {
            let (from, to) = (edge.from, edge.to);
            let ends = format!("\"{inner}{from}\" -> \"{inner}{to}\"");
            let _ = writeln!(self.out, "{indent}{ends} [style=dotted, constraint=false]");
        }
    }

    fn legend(&self) -> String {
        let types = self.types.iter().map(|&ty| format!("<td bgcolor=\"{}\">{ty}</td>", color(Some(ty))));
        let borders = [(KEEPS, "keeps every value"), (LOSES, "can lose values")].into_iter().zip(self.converts);
        let borders = borders
            .filter(|(_, occurs)| *occurs)
            .map(|((color, what), _)| format!("<td color=\"{color}\" border=\"2\">Convert: {what}</td>"));
        let cells: String = types.chain(borders).collect();
        if cells.is_empty() {
            return String::new();
        }
        let table = format!("<table border=\"0\" cellspacing=\"4\" cellborder=\"0\"><tr>{cells}</tr></table>");
        format!("  \"legend\" [shape=plain, style=\"\", tooltip=\"element types\", label=<{table}>]\n")
    }
}

fn color(ty: Option<ElementType>) -> &'static str {
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

/// Quotes a text for Graphviz; line breaks are kept.
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
