//! Laws of every rewrite, on generated graphs and rules.

use proptest::prelude::*;
use typelift::promote::ElementType;
use typelift::rewrite::{Rule, library};
use typelift::{Model, infer};

use crate::common::nets;

const GIVEN: &[&str] =
    &["f32[2,3]", "f32[3]", "f16[2,3]", "i32[3]", "const f32[3]", "const f32[]", "const i32[]", "const f16[1]"];
const TYPES: &[&str] = &["f32", "f16", "i32"];
const OPERATIONS: &[&str] =
    &["Add-opset1", "Multiply-opset1", "Divide-opset1", "Subtract-opset1", "Maximum-opset1", "ConvertLike-opset1"];

/// Valid and invalid rules: some match their own output, change types, lose shapes or require the impossible.
const RULES: &[&str] = &[
    "Add(x, 0) => x",
    "Multiply(x, 0) => 0",
    "Divide(x, c: const f32) => Multiply(x, 1 / c)",
    "Convert(Convert(x)) {destination_type=$t} => Convert(x) {destination_type=$t}",
    "Convert&(x) {destination_type=$t} => Convert(Relu(x)) {destination_type=$t}",
    "Subtract(x, y) => Add(x, Negative(y))",
    "Add(x, x) => Multiply(x, 2)",
    "Add(x, y) => Add(y, x)",
    "Maximum(x, y) => Convert(x) {destination_type=f16}",
    "Multiply(x, y) => ReduceMean(x, 1)",
    "Divide(x, y) => x",
    "ConvertLike(x, y) => y",
    "Convert(x: f32) => x",
    "a = Add(x, y), b = Multiply(x, z) => (Add(x, z), Multiply(x, y))",
    "once a = Add(x, y), b = Maximum(x, z) => (Divide(x, y), Divide(x, z))",
    "a = Subtract(x, y), b = Multiply(Maximum(x, z), y) => (y, x)",
    "try a = Divide(x, y), b = Add(y, z) => (x, z)",
    "Add(xs...) => Multiply(xs...) if count(xs) == 2",
    "Maximum(xs..., Add(ys...)) => Maximum(xs..., Subtract(ys...))",
    "Add(x, y) => Subtract(y, x) if shape(root) like [..., 3] && name(x) like \"*1*\"",
];

/// Returns the names, types and shapes of a model's outputs.
fn outputs(model: &Model) -> Vec<(String, ElementType, String)> {
    let graph = model.graph();
    let results = graph.layers().filter(|layer| layer.ty() == "Result");
    let tensors = results.map(|layer| {
        let port = graph.producers(layer.id())[0].and_then(|tensor| graph.output(tensor)).unwrap();
        (layer.name().to_owned(), port.element_type(), port.shape().to_string())
    });
    tensors.collect()
}

fn errors(model: &mut Model) -> Vec<String> {
    infer(model).iter().filter(|found| found.is_error()).map(|found| found.message.to_string()).collect()
}

proptest! {
    #[test]
    fn a_listing_is_the_graph(net in nets(GIVEN, TYPES, OPERATIONS)) {
        let mut model = net.model();
        let _ = infer(&mut model);
        let text = model.to_text();
        let mut again = Model::from_text(&text).unwrap();
        prop_assert_eq!(again.to_text(), &*text);
        let _ = infer(&mut again);
        prop_assert_eq!(again.to_text(), text);
    }

    #[test]
    fn a_rewrite_breaks_nothing_and_a_refused_one_changes_nothing(
        net in nets(GIVEN, TYPES, OPERATIONS),
        rules in prop::collection::vec(prop::sample::select(RULES), 1..4),
    ) {
        let rules: Vec<Rule> = rules.into_iter().map(|text| text.parse().unwrap()).collect();
        let mut model = net.model();
        let known = errors(&mut model.clone());
        let (text, written) = (model.to_text(), typelift::xml::write(&model, Default::default()));
        if model.rewrite(&rules).is_err() {
            prop_assert_eq!(model.to_text(), text);
            prop_assert_eq!(typelift::xml::write(&model, Default::default()), written);
            return Ok(());
        }
        prop_assert_eq!(model.graph().verify(), Ok(()));
        let new = errors(&mut model).into_iter().find(|error| !known.contains(error));
        prop_assert_eq!(new, None);
        // A fact that an error left unknown may become known.
        if known.is_empty() {
            let mut before = net.model();
            let _ = infer(&mut before);
            prop_assert_eq!(outputs(&model), outputs(&before));
        }
    }

    #[test]
    fn a_library_set_and_its_inverse_give_the_same_graph(
        ty in prop::sample::select(&["f32", "f16"][..]),
        links in prop::collection::vec((any::<prop::sample::Index>(), 0..FUSED.len()), 1..6),
        in_body in any::<bool>(),
    ) {
        let mut model = Model::from_text(&fused(ty, &links, in_body)).unwrap();
        prop_assert_eq!(errors(&mut model), Vec::<String>::new());
        let fused = model.to_text();
        for name in ["gelu", "hswish", "sdpa"] {
            let [split, fuse] = ["split", "fuse"].map(|verb| library::get(&format!("{verb}-{name}")).unwrap().rules().unwrap());
            let expected = model.rewrite(&split).unwrap().applied.len();
            prop_assert_eq!(model.rewrite(&fuse).unwrap().applied.len(), expected);
        }
        prop_assert_eq!(model.to_text(), fused);
    }
}

/// Operations that the library expands and fuses again, with `$` for their inputs.
const FUSED: [&str; 4] = [
    "Gelu-7($) {approximation_mode=erf}",
    "Gelu-7($) {approximation_mode=tanh}",
    "HSwish-4($)",
    "ScaledDotProductAttention-13($, $, $, mask, scale) {causal=false}",
];

/// Generates a graph of these, each fed by an earlier one, in the model or in the body of a Loop.
fn fused(ty: &str, links: &[(prop::sample::Index, usize)], in_body: bool) -> String {
    let mut lines = vec![format!("x0 = Parameter : {ty}[1,2,3,3]"), format!("mask = Const(0.25) : {ty}[3,3]")];
    lines.push(format!("scale = Const(0.5) : {ty}[]"));
    for (at, (from, kind)) in links.iter().enumerate() {
        let input = format!("x{}", from.index(at + 1));
        lines.push(format!("x{} = {}", at + 1, FUSED[*kind].replace('$', &input)));
    }
    let last = links.len();
    if !in_body {
        let outputs = (1..=last).map(|at| format!("r{at} = Result(x{at})"));
        lines.extend(outputs);
        return lines.join("\n");
    }
    lines.extend([
        "yes = Const(true) : boolean[]".to_owned(),
        format!("r = Result(x{last})"),
        "c = Result(yes)".to_owned(),
    ]);
    let (result, condition) = (lines.len() - 2, lines.len() - 1);
    let body: String = lines.iter().enumerate().map(|(id, line)| format!("    {id} {line}\n")).collect();
    format!(
        "x = Parameter : {ty}[1,2,3,3]\nn = Const(3) : i64[]\ngo = Const(true) : boolean[]\nloop = Loop(n, go, x) : {ty}[1,2,3,3]\n  \
         body (in 2 -> 0, out {result} -> 0, out {condition} -> - {{execution_condition}}, back {result} -> 0):\n{body}r = Result(loop)\n"
    )
}
