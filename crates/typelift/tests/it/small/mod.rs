//! Small models as text.

/// Returns the text of a model of these layers and edges, `source:port target:port`.
pub(crate) fn source(layers: &str, edges: &[&str]) -> String {
    let edge = |edge: &&str| {
        let [from, from_port, to, to_port] = edge.split([' ', ':']).collect::<Vec<_>>()[..] else { panic!("{edge}") };
        format!("<edge from-layer=\"{from}\" from-port=\"{from_port}\" to-layer=\"{to}\" to-port=\"{to_port}\"/>\n")
    };
    let edges: String = edges.iter().map(edge).collect();
    format!("<net name=\"n\" version=\"11\">\n<layers>\n{layers}</layers>\n<edges>\n{edges}</edges>\n</net>\n")
}

/// Layer 0: an input `f32[2]`.
pub(crate) const X: &str =
    "<layer id=\"0\" name=\"x\" type=\"Parameter\" version=\"opset1\"><data shape=\"2\" element_type=\"f32\"/>
<output><port id=\"0\" precision=\"FP32\"><dim>2</dim></port></output></layer>
";

/// Returns a layer with `data`, one input and one output of `f32[2]`.
pub(crate) fn layer(id: u64, name: &str, ty: &str, version: &str, data: &str) -> String {
    format!(
        "<layer id=\"{id}\" name=\"{name}\" type=\"{ty}\" version=\"{version}\">{data}
<input><port id=\"0\" precision=\"FP32\"><dim>2</dim></port></input>
<output><port id=\"1\" precision=\"FP32\"><dim>2</dim></port></output></layer>\n"
    )
}

/// Returns a Result with one input.
pub(crate) fn result(id: u64) -> String {
    format!(
        "<layer id=\"{id}\" name=\"out{id}\" type=\"Result\" version=\"opset1\"><input><port id=\"0\" precision=\"FP32\"><dim>2</dim></port></input></layer>\n"
    )
}
