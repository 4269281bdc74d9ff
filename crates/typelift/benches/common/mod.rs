//! What the benches share: a graph as large as one likes, and the place for their tables.

use std::fmt::Write;
use std::path::Path;

/// A chain of `blocks` times ConvertPromoteTypes and Add, in the style of OpenVINO's serializer.
pub(crate) fn chain(blocks: usize) -> String {
    const LONG: &[u32] = &[1, 16, 64];
    const SHORT: &[u32] = &[64];
    let mut out = String::from("<?xml version=\"1.0\"?>\n<net name=\"chain\" version=\"11\">\n\t<layers>\n");
    let mut edges = String::new();
    layer(
        &mut out,
        0,
        "x",
        "Parameter\" version=\"opset1",
        "shape=\"1,16,64\" element_type=\"f32\"",
        &[],
        &[("FP32", LONG)],
    );
    layer(
        &mut out,
        1,
        "b",
        "Parameter\" version=\"opset1",
        "shape=\"64\" element_type=\"f16\"",
        &[],
        &[("FP16", SHORT)],
    );
    let mut edge = |from: (usize, usize), to: (usize, usize)| {
        let (a, b, c, d) = (from.0, from.1, to.0, to.1);
        let text = format!("\t\t<edge from-layer=\"{a}\" from-port=\"{b}\" to-layer=\"{c}\" to-port=\"{d}\" />\n");
        edges.push_str(&text);
    };
    let mut previous = (0, 0);
    for block in 0..blocks {
        let (promote, add) = (2 + 2 * block, 3 + 2 * block);
        let attributes =
            "promote_unsafe=\"true\" pytorch_scalar_promotion=\"false\" u64_integer_promotion_target=\"f32\"";
        let name = format!("model.layers.{block}.self_attn");
        let both = [("FP32", LONG), ("FP32", SHORT)];
        let ty = "ConvertPromoteTypes\" version=\"opset14";
        layer(&mut out, promote, &format!("{name}/promote"), ty, attributes, &[("FP32", LONG), ("FP16", SHORT)], &both);
        let ty = "Add\" version=\"opset1";
        layer(&mut out, add, &format!("{name}/add"), ty, "auto_broadcast=\"numpy\"", &both, &[("FP32", LONG)]);
        edge(previous, (promote, 0));
        edge((1, 0), (promote, 1));
        edge((promote, 2), (add, 0));
        edge((promote, 3), (add, 1));
        previous = (add, 2);
    }
    let result = 2 + 2 * blocks;
    layer(&mut out, result, "y", "Result\" version=\"opset1", "", &[("FP32", LONG)], &[]);
    edge(previous, (result, 0));
    out + "\t</layers>\n\t<edges>\n" + &edges + "\t</edges>\n\t<rt_info />\n</net>\n"
}

type Port = (&'static str, &'static [u32]);

fn layer(out: &mut String, id: usize, name: &str, ty: &str, attributes: &str, inputs: &[Port], outputs: &[Port]) {
    let _ = writeln!(out, "\t\t<layer id=\"{id}\" name=\"{name}\" type=\"{ty}\">");
    if !attributes.is_empty() {
        let _ = writeln!(out, "\t\t\t<data {attributes} />");
    }
    for (section, ports, first) in [("input", inputs, 0), ("output", outputs, inputs.len())] {
        if ports.is_empty() {
            continue;
        }
        let _ = writeln!(out, "\t\t\t<{section}>");
        for (port, (precision, dims)) in (first..).zip(ports) {
            let _ = writeln!(out, "\t\t\t\t<port id=\"{port}\" precision=\"{precision}\">");
            for dim in *dims {
                let _ = writeln!(out, "\t\t\t\t\t<dim>{dim}</dim>");
            }
            out.push_str("\t\t\t\t</port>\n");
        }
        let _ = writeln!(out, "\t\t\t</{section}>");
    }
    out.push_str("\t\t</layer>\n");
}

/// Puts a table between its marks in `docs/benchmarks.md`.
pub(crate) fn update_document(mark: &str, table: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/benchmarks.md");
    let text = std::fs::read_to_string(&path).expect("docs/benchmarks.md is there");
    let begin = format!("<!-- {mark} -->\n");
    let (before, rest) = text.split_once(&begin).expect("the document has a place for the table");
    let (_, after) = rest.split_once("<!-- end -->").expect("the place for the table has an end");
    let text = format!("{before}{begin}{table}\n<!-- end -->{after}");
    std::fs::write(path, text).expect("docs/benchmarks.md can be written");
}
