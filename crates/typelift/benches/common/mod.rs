//! Parts that the benches share: graphs of any size, and the documents' tables.
#![allow(dead_code, reason = "no bench uses all of it")]

use std::fmt::Write;
use std::path::Path;

/// Returns a chain of `blocks` times ConvertPromoteTypes and Add, in the style of OpenVINO's serializer.
pub(crate) fn chain(blocks: usize) -> String {
    let mut net = Net::default();
    let mut last = net.parameter("x", LONG);
    let bias = net.parameter("b", SHORT);
    for block in 0..blocks {
        last = net.promoted_sum(&format!("model.layers.{block}.self_attn"), last, bias);
    }
    net.result(last);
    net.text()
}

/// Returns one tensor that is promoted with and added to each of `count` others.
pub(crate) fn star(count: usize) -> String {
    let mut net = Net::default();
    let hub = net.parameter("hub", SHORT);
    for arm in 0..count {
        let own = net.parameter(&format!("x{arm}"), LONG);
        let sum = net.promoted_sum(&format!("arm{arm}"), own, hub);
        net.result(sum);
    }
    net.text()
}

/// Returns a promotion, and a chain of `depth` layers.
pub(crate) fn deep(depth: usize) -> String {
    let mut net = Net::default();
    let (x, b) = (net.parameter("x", LONG), net.parameter("b", SHORT));
    let mut last = net.promoted_sum("first", x, b);
    for level in 0..depth {
        last = net.layer(&format!("relu{level}"), "ReLU", 1, "", &[last], &[LONG]).remove(0);
    }
    net.result(last);
    net.text()
}

/// Returns one tensor with `count` consumers, each with an output.
pub(crate) fn uses(count: usize) -> String {
    let mut net = Net::default();
    let hub = net.parameter("hub", LONG);
    for arm in 0..count {
        let relu = net.layer(&format!("relu{arm}"), "ReLU", 1, "", &[hub], &[LONG]).remove(0);
        net.result(relu);
    }
    net.text()
}

/// Returns a promotion, and `count` layers without edges.
pub(crate) fn apart(count: usize) -> String {
    let mut net = Net::default();
    let (x, b) = (net.parameter("x", LONG), net.parameter("b", SHORT));
    let sum = net.promoted_sum("only", x, b);
    net.result(sum);
    for layer in 0..count {
        net.parameter(&format!("alone{layer}"), LONG);
    }
    net.text()
}

/// Returns `count` consecutive `If` layers, with a promotion in each branch.
pub(crate) fn bodies(count: usize) -> String {
    let mut net = Net::default();
    let condition = net.parameter("condition", CONDITION);
    let mut last = net.parameter("x", LONG);
    let bias = net.parameter("b", SHORT);
    let mut branch = Net::default();
    let (x, b) = (branch.parameter("x", LONG), branch.parameter("b", SHORT));
    let sum = branch.promoted_sum("branch", x, b);
    branch.result(sum);
    let graph = branch.graph();
    let mut content = String::new();
    for branch in ["else", "then"] {
        let _ = writeln!(
            content,
            "<{branch}_port_map><input external_port_id=\"1\" internal_layer_id=\"0\" /><input external_port_id=\"2\" \
             internal_layer_id=\"1\" /><output external_port_id=\"3\" internal_layer_id=\"4\" /></{branch}_port_map>"
        );
    }
    for branch in ["then", "else"] {
        let _ = writeln!(content, "<{branch}_body>\n{graph}</{branch}_body>");
    }
    for at in 0..count {
        last = net.layer(&format!("if{at}"), "If", 8, &content, &[condition, last, bias], &[LONG]).remove(0);
    }
    net.result(last);
    net.text()
}

/// The type of a tensor, as attributes and as ports spell it, and its dimensions.
type Kind = (&'static str, &'static str, &'static [u32]);

const LONG: Kind = ("f32", "FP32", &[1, 16, 64]);
const SHORT: Kind = ("f16", "FP16", &[64]);
const SHORT_PROMOTED: Kind = ("f32", "FP32", &[64]);
const CONDITION: Kind = ("boolean", "BOOL", &[1]);

/// A layer, its output port, and the kind of the tensor.
type Tensor = (usize, usize, Kind);

/// Builder of a graph.
#[derive(Default)]
struct Net {
    layers: String,
    edges: String,
    count: usize,
}

impl Net {
    fn parameter(&mut self, name: &str, kind: Kind) -> Tensor {
        let shape = kind.2.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
        let data = format!("\t\t\t<data shape=\"{shape}\" element_type=\"{}\" />\n", kind.0);
        self.layer(name, "Parameter", 1, &data, &[], &[kind]).remove(0)
    }

    fn result(&mut self, tensor: Tensor) {
        self.layer("result", "Result", 1, "", &[tensor], &[]);
    }

    /// Adds the sum of a long tensor and a short one of another type.
    fn promoted_sum(&mut self, name: &str, long: Tensor, short: Tensor) -> Tensor {
        let data = "\t\t\t<data promote_unsafe=\"true\" pytorch_scalar_promotion=\"false\" \
                    u64_integer_promotion_target=\"f32\" />\n";
        let both = [LONG, SHORT_PROMOTED];
        let promoted = self.layer(&format!("{name}/promote"), "ConvertPromoteTypes", 14, data, &[long, short], &both);
        let data = "\t\t\t<data auto_broadcast=\"numpy\" />\n";
        self.layer(&format!("{name}/add"), "Add", 1, data, &promoted, &[LONG]).remove(0)
    }

    fn layer(
        &mut self,
        name: &str,
        ty: &str,
        opset: usize,
        content: &str,
        inputs: &[Tensor],
        outputs: &[Kind],
    ) -> Vec<Tensor> {
        let id = self.count;
        self.count += 1;
        let _ = writeln!(
            self.layers,
            "\t\t<layer id=\"{id}\" name=\"{name}\" type=\"{ty}\" version=\"opset{opset}\">\n{content}"
        );
        // The content ends its own last line.
        self.layers.pop();
        let kinds: Vec<Kind> = inputs.iter().map(|tensor| tensor.2).collect();
        for (section, ports, first) in [("input", &kinds[..], 0), ("output", outputs, inputs.len())] {
            if ports.is_empty() {
                continue;
            }
            let _ = writeln!(self.layers, "\t\t\t<{section}>");
            for (port, (_, precision, dims)) in (first..).zip(ports) {
                let _ = writeln!(self.layers, "\t\t\t\t<port id=\"{port}\" precision=\"{precision}\">");
                for dim in *dims {
                    let _ = writeln!(self.layers, "\t\t\t\t\t<dim>{dim}</dim>");
                }
                self.layers.push_str("\t\t\t\t</port>\n");
            }
            let _ = writeln!(self.layers, "\t\t\t</{section}>");
        }
        self.layers.push_str("\t\t</layer>\n");
        for (to_port, (from, from_port, _)) in inputs.iter().enumerate() {
            let _ = writeln!(
                self.edges,
                "\t\t<edge from-layer=\"{from}\" from-port=\"{from_port}\" to-layer=\"{id}\" to-port=\"{to_port}\" />"
            );
        }
        (inputs.len()..).zip(outputs).map(|(port, kind)| (id, port, *kind)).collect()
    }

    fn graph(&self) -> String {
        format!("\t<layers>\n{}\t</layers>\n\t<edges>\n{}\t</edges>\n", self.layers, self.edges)
    }

    fn text(&self) -> String {
        let graph = self.graph();
        format!("<?xml version=\"1.0\"?>\n<net name=\"bench\" version=\"11\">\n{graph}\t<rt_info />\n</net>\n")
    }
}

/// Writes a table between its marks in `results.md`.
pub(crate) fn update_document(mark: &str, table: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../typelift/benches/results.md");
    let text = std::fs::read_to_string(&path).expect("the results are there");
    let begin = format!("<!-- {mark} -->\n");
    let (before, rest) = text.split_once(&begin).expect("the document has a place for the table");
    let (_, after) = rest.split_once("<!-- end -->").expect("the place for the table has an end");
    let text = format!("{before}{begin}{table}\n<!-- end -->{after}");
    std::fs::write(path, text).expect("the results can be written");
}
