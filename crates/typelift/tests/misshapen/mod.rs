//! Adversarial models of any size, for tests of cost.

/// A function that returns a graph of some size.
pub(crate) type Shape = fn(usize) -> String;

/// Returns a model of `layers`, each with one input and one output, with edges between ids.
pub(crate) fn model(
    layers: impl IntoIterator<Item = String>,
    edges: impl IntoIterator<Item = (usize, usize)>,
) -> String {
    let edge = |(from, to)| format!(r#"<edge from-layer="{from}" from-port="1" to-layer="{to}" to-port="0"/>"#);
    let (layers, edges): (String, String) = (layers.into_iter().collect(), edges.into_iter().map(edge).collect());
    format!(r#"<net name="n" version="11"><layers>{layers}</layers><edges>{edges}</edges></net>"#)
}

/// Returns a layer; `tag` is added to its start tag, `content` to its content.
fn layer(id: usize, tag: &str, content: &str) -> String {
    format!(
        r#"<layer id="{id}" name="n{id}" type="ReLU" version="opset1" {tag}>{content}<input><port id="0"/></input>
        <output><port id="1" precision="FP32"><dim>4</dim></port></output></layer>"#
    )
}

/// Returns a model whose only layer has `n` of something.
fn many(n: usize, tag: impl Fn(usize) -> String, content: impl Fn(usize) -> String) -> String {
    let join = |part: &dyn Fn(usize) -> String| (0..n).map(part).collect::<String>();
    model([layer(0, &join(&tag), &join(&content))], [])
}

fn none(_: usize) -> String {
    String::new()
}

fn data(n: usize, attribute: impl Fn(usize) -> String) -> String {
    model([layer(0, "", &format!("<data {}/>", (0..n).map(attribute).collect::<String>()))], [])
}

/// Returns a ReadValue or an Assign of one variable.
fn variable(id: usize) -> String {
    let ty = if id.is_multiple_of(2) { "ReadValue" } else { "Assign" };
    let data = r#"<data variable_id="v" variable_type="f32" variable_shape="4"/>"#;
    layer(id, "", data).replace("ReLU", ty).replace("opset1", "opset6")
}

/// Returns a layer of an operation with this many inputs and outputs, after an `id` and before a Result.
fn wide(id: usize, ty: &str, data: &str, inputs: usize, outputs: usize) -> String {
    let port = |id| format!(r#"<port id="{id}" precision="FP32"><dim>4</dim></port>"#);
    let ports = |ids: std::ops::Range<usize>| ids.map(port).collect::<String>();
    let (taken, made) = (ports(0..inputs), ports(inputs..inputs + outputs));
    format!(
        r#"<layer id="{id}" name="n{id}" type="{ty}" version="opset1">{data}<input>{taken}</input><output>{made}</output></layer>"#
    )
}

fn parameter(id: usize, ty: &str, shape: &str) -> String {
    format!(
        r#"<layer id="{id}" name="p{id}" type="Parameter" version="opset1"><data element_type="{ty}" shape="{shape}"/><output>
        <port id="1" precision="FP32"/></output></layer>"#
    )
}

/// Returns a layer with `n` inputs, all from one Parameter.
fn of_many(n: usize, ty: &str, data: &str) -> String {
    let edges: String =
        (0..n).map(|to| format!(r#"<edge from-layer="0" from-port="1" to-layer="1" to-port="{to}"/>"#)).collect();
    let layers = [parameter(0, "f32", "4"), wide(1, ty, data, n, 1)].concat();
    format!(r#"<net name="n" version="11"><layers>{layers}</layers><edges>{edges}</edges></net>"#)
}

/// Returns layers with two inputs, each fed as `from` says.
fn pairs(n: usize, ty: &str, sources: [&str; 2], from: impl Fn(usize) -> [(usize, usize); 2]) -> String {
    let given = sources.iter().enumerate().map(|(id, shape)| parameter(id, "f32", shape));
    let layers: String = given.chain((2..n + 2).map(|id| wide(id, ty, "", 2, 2))).collect();
    let edge = |to: usize, port: usize, (layer, from): (usize, usize)| {
        format!(r#"<edge from-layer="{layer}" from-port="{from}" to-layer="{to}" to-port="{port}"/>"#)
    };
    let edges: String = (2..n + 2)
        .flat_map(|id| from(id).into_iter().enumerate().map(move |(port, source)| edge(id, port, source)))
        .collect();
    format!(r#"<net name="n" version="11"><layers>{layers}</layers><edges>{edges}</edges></net>"#)
}

/// Returns the position of the preceding layer's output, in models of [`pairs`].
fn before(id: usize) -> (usize, usize) {
    if id == 2 { (0, 1) } else { (id - 1, 2) }
}

/// Returns a layer with a body of one input and one output around `inside`.
fn iterator(id: usize, inside: &str) -> String {
    let result = r#"<layer id="1" name="r" type="Result" version="opset1"><input><port id="0"/></input></layer>"#;
    let body = format!(
        r#"<body><layers>{}{result}{inside}</layers><edges><edge from-layer="0" from-port="1" to-layer="1" to-port="0"/></edges></body>"#,
        parameter(0, "f32", "4")
    );
    let map = r#"<port_map><input external_port_id="0" internal_layer_id="0"/><output external_port_id="1" internal_layer_id="1"/></port_map>"#;
    wide(id, "TensorIterator", &(map.to_owned() + &body), 1, 1)
}

/// Returns an If whose branches apply a ReLU to its second input.
fn conditional(id: usize) -> String {
    let map =
        r#"<input external_port_id="1" internal_layer_id="0"/><output external_port_id="2" internal_layer_id="1"/>"#;
    let edge =
        |from: usize, to: usize| format!(r#"<edge from-layer="{from}" from-port="1" to-layer="{to}" to-port="0"/>"#);
    let result = r#"<layer id="1" name="r" type="Result" version="opset1"><input><port id="0"/></input></layer>"#;
    let layers = [&parameter(0, "f32", "4"), result, &layer(2, "", "")].concat();
    let body = format!("<layers>{layers}</layers><edges>{}{}</edges>", edge(0, 2), edge(2, 1));
    let branch = |tag: &str| format!("<{tag}_port_map>{map}</{tag}_port_map><{tag}_body>{body}</{tag}_body>");
    wide(id, "If", &(branch("then") + &branch("else")), 2, 1).replacen("opset1", "opset8", 1)
}

/// Returns a model with something before its layers.
fn headed(head: &str) -> String {
    model([layer(0, "", "")], []).replace("<layers>", &format!("{head}<layers>"))
}

/// Adversarial models, one for each way of being large.
pub(crate) const MISSHAPEN: [(&str, Shape); 57] = [
    ("stale ports", |n| {
        let ports: String = (1..=n).map(|port| format!(r#"<port id="{port}" precision="FP16"/>"#)).collect();
        let split = r#"<layer id="0" name="n0" type="VariadicSplit" version="opset1"><output>"#;
        model([format!("{split}{ports}</output></layer>")], [])
    }),
    ("one variable", |n| model((0..n).map(variable), (1..n).map(|id| (0, id)))),
    ("a cycle", |n| model((0..n).map(|id| layer(id, "", "")), (0..n).map(|id| (id, (id + 1) % n)))),
    ("short cycles", |n| model((0..n).map(|id| layer(id, "", "")), (0..n).map(|id| (id, id ^ 1)))),
    ("a chain backwards", |n| model((0..n).rev().map(|id| layer(id, "", "")), (1..n).map(|id| (id - 1, id)))),
    ("ids backwards", |n| model((0..n).map(|id| layer(n - id, "", "")), (1..n).map(|id| (id + 1, id)))),
    ("one id", |n| model((0..n).map(|_| layer(0, "", "")), [])),
    ("edges into one port", |n| model((0..2).map(|id| layer(id, "", "")), (0..n).map(|_| (0, 1)))),
    ("edges from nowhere", |n| model([layer(0, "", "")], (0..n).map(|id| (id + 1, 0)))),
    ("edges to nowhere", |n| model([layer(0, "", "")], (0..n).map(|id| (0, id + 1)))),
    ("attributes of data", |n| data(n, |at| format!(r#"a{at}="" "#))),
    ("one attribute of data", |n| data(n, |_| r#"a="" "#.to_owned())),
    ("attributes of a layer", |n| many(n, |at| format!(r#"a{at}="" "#), none)),
    ("one attribute of a layer", |n| many(n, |_| r#"id="0" "#.to_owned(), none)),
    ("elements", |n| many(n, none, |_| "<x/>".to_owned())),
    ("port maps", |n| many(n, none, |at| format!("<port_map{at}/>"))),
    ("bodies", |n| many(n, none, |at| format!("<body{at}/>"))),
    ("metadata", |n| many(n, none, |at| format!(r#"<rt_info><attribute name="a{at}" version="0"/></rt_info>"#))),
    ("elements in elements", |n| many(1, none, |_| "<x>".repeat(n) + &"</x>".repeat(n))),
    ("metadata in metadata", |n| headed(&format!("<rt_info>{}{}</rt_info>", "<x>".repeat(n), "</x>".repeat(n)))),
    ("unclosed elements", |n| many(n, none, |_| "<x>".to_owned())),
    ("attributes of a port", |n| {
        let attributes: String = (0..n).map(|at| format!(r#"a{at}="" "#)).collect();
        model([layer(0, "", "").replace(r#"<port id="1""#, &format!(r#"<port {attributes} id="1""#))], [])
    }),
    ("attributes of an edge", |n| {
        let attributes: String = (0..n).map(|at| format!(r#"a{at}="" "#)).collect();
        model((0..2).map(|id| layer(id, "", "")), [(0, 1)]).replace("<edge ", &format!("<edge {attributes}"))
    }),
    ("attributes of the net", |n| {
        let attributes: String = (0..n).map(|at| format!(r#"a{at}="" "#)).collect();
        model([layer(0, "", "")], []).replace("<net ", &format!("<net {attributes}"))
    }),
    ("a hub", |n| model((0..n).map(|id| layer(id, "", "")), (1..n).map(|id| (0, id)))),
    ("a wide Concat", |n| of_many(n, "Concat", r#"<data axis="0"/>"#)),
    ("a Concat of several types", |n| {
        let given: String = (0..n).map(|id| parameter(id, ["f32", "i32"][id % 2], "4")).collect();
        let edge = |to| format!(r#"<edge from-layer="{to}" from-port="1" to-layer="{n}" to-port="{to}"/>"#);
        let (layers, edges) = (given + &wide(n, "Concat", r#"<data axis="0"/>"#, n, 1), (0..n).map(edge));
        let edges: String = edges.collect();
        format!(r#"<net name="n" version="11"><layers>{layers}</layers><edges>{edges}</edges></net>"#)
    }),
    ("an Einsum of many", |n| of_many(n, "Einsum", &format!(r#"<data equation="{}->a"/>"#, vec!["a"; n].join(",")))),
    ("outputs of a stranger", |n| model([wide(0, "Stranger", "", 1, n)], [])),
    ("outputs of a Split", |n| model([wide(0, "Split", &format!(r#"<data num_splits="{n}"/>"#), 2, n)], [])),
    ("many dims", |n| model([parameter(0, "f32", &vec!["1"; n].join(","))], [])),
    ("long masks", |n| {
        data(1, |_| format!(r#"begin_mask="{}""#, vec!["0"; n].join(","))).replace("ReLU", "StridedSlice")
    }),
    ("long pads", |n| {
        data(1, |_| format!(r#"pads_begin="{}""#, vec!["0"; n].join(","))).replace("ReLU", "Convolution")
    }),
    ("a long name", |n| model([layer(0, "", "").replace("n0", &"n".repeat(10 * n))], [])),
    ("a long type", |n| model([layer(0, "", "").replace("ReLU", &"T".repeat(10 * n))], [])),
    ("one name", |n| model((0..n).map(|id| layer(id, "", "").replace(&format!("\"n{id}\""), "\"n\"")), [])),
    ("metadata everywhere", |n| {
        let content = r#"<rt_info><attribute name="fused_names" version="0" value="a,b"/></rt_info>"#;
        model((0..n).map(|id| layer(id, "", content)), (1..n).map(|id| (id - 1, id)))
    }),
    ("promotions", |n| {
        pairs(n, "ConvertPromoteTypes", ["4", "4"], |id| [before(id), (1, 1)])
            .replace("opset1\"><input", "opset14\"><input")
    }),
    ("diamonds", |n| pairs(n, "Add", ["4", "4"], |id| [before(id), before(id)])),
    ("shapes that do not fit", |n| pairs(n, "Add", ["2", "3"], |_| [(0, 1), (1, 1)])),
    ("inputs that are missing", |n| model((0..n).map(|id| wide(id, "Add", "", 2, 1)), [])),
    ("misspelt elements", |n| {
        model((0..n).map(|id| layer(id, "", r#"<dta axis="0"/>"#).replace("ReLU", "Concat")), [])
    }),
    ("junk after numbers", |n| model((0..n).map(|id| wide(id, "Concat", r#"<data axis="0x"/>"#, 1, 1)), [])),
    ("constants that are too long", |n| {
        let data = r#"<data element_type="f32" shape="4" offset="0" size="64"/>"#;
        model((0..n).map(|id| wide(id, "Const", data, 0, 1)), [])
    }),
    ("one wrong type", |n| {
        let given = ["f64", "f32"].into_iter().enumerate().map(|(id, ty)| parameter(id, ty, "4"));
        let pairs = (1..=n / 2).flat_map(|at| [wide(2 * at, "ReLU", "", 1, 1), wide(2 * at + 1, "Add", "", 2, 1)]);
        let wires = (1..=n / 2).flat_map(|at| {
            let before = if at == 1 { 0 } else { 2 * at - 2 };
            [(before, 2 * at, 0), (2 * at, 2 * at + 1, 0), (1, 2 * at + 1, 1)]
        });
        let edge =
            |(from, to, port)| format!(r#"<edge from-layer="{from}" from-port="1" to-layer="{to}" to-port="{port}"/>"#);
        let edges: String = wires.map(edge).collect();
        model(given.chain(pairs), []).replace("<edges>", &format!("<edges>{edges}"))
    }),
    ("parts apart", |n| model((0..n).map(|id| layer(id, "", "")), (0..n / 2).map(|pair| (2 * pair, 2 * pair + 1)))),
    ("declared entities", |n| format!("<!DOCTYPE net [{}]>", r#"<!ENTITY a "b">"#.repeat(n)) + &headed("")),
    ("a chain in a body", |n| {
        let layers: String = (2..n + 2).map(|id| layer(id, "", "")).collect();
        let edge = |id| {
            let from = if id == 2 { 0 } else { id - 1 };
            format!(r#"<edge from-layer="{from}" from-port="1" to-layer="{id}" to-port="0"/>"#)
        };
        let edges: String = (2..n + 2).map(edge).collect();
        model([iterator(0, &layers).replace("<edges>", &format!("<edges>{edges}"))], [])
    }),
    ("constant Ifs", |n| {
        let known = [parameter(0, "f32", "4"), wide(1, "ShapeOf", "", 1, 1), wide(2, "Equal", "", 2, 1)];
        let edge = |(from, out): (usize, usize), to: usize, port: usize| {
            format!(r#"<edge from-layer="{from}" from-port="{out}" to-layer="{to}" to-port="{port}"/>"#)
        };
        let compared = [edge((0, 1), 1, 0), edge((1, 1), 2, 0), edge((1, 1), 2, 1)];
        let chained =
            (3..n + 3).map(|id| edge((2, 2), id, 0) + &edge(if id == 3 { (0, 1) } else { (id - 1, 2) }, id, 1));
        let edges: String = compared.into_iter().chain(chained).collect();
        let text = model(known.into_iter().chain((3..n + 3).map(conditional)), []);
        let (head, tail) = text.rsplit_once("<edges>").unwrap();
        [head, "<edges>", &edges, tail].concat()
    }),
    ("bodies side by side", |n| {
        let layers = std::iter::once(parameter(0, "f32", "4")).chain((1..n).map(|id| iterator(id, "")));
        model(layers, (1..n).map(|id| (id - 1, id)))
    }),
    ("bodies in bodies", |n| {
        let around = iterator(2, "\0");
        let (start, end) = around.split_once('\0').unwrap();
        model([[start.repeat(n / 40), layer(2, "", ""), end.repeat(n / 40)].concat()], [])
    }),
    ("instructions", |n| headed(&"<?x y?>".repeat(n))),
    ("comments", |n| headed(&"<!-- x -->".repeat(n))),
    ("quoted text", |n| headed(&"<![CDATA[x]]>".repeat(n))),
    ("entities", |n| model([layer(0, "", "").replace("n0", &"&amp;&#13;\r\n".repeat(n))], [])),
    ("a layout of many dims", |n| {
        many(1, none, |_| {
            format!(
                r#"<rt_info><attribute name="layout" version="0" layout="[{}]"/></rt_info>"#,
                vec!["?"; n].join(",")
            )
        })
    }),
    ("many digits and blank lines", |n| data(1, |_| format!(r#"axis="{}""#, "1".repeat(n))) + &"\n".repeat(n)),
];
