//! Common jobs on models, each in a few lines.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use typelift::convert::Conversion;
use typelift::edit::StatePair;
use typelift::graph::NewLayer;
use typelift::precision::{Like, Storage};
use typelift::promote::ElementType;
use typelift::rewrite::{Pattern, Replacement, Rule, Script, library};
use typelift::{Model, infer};

fn read(listing: &str) -> Model {
    let mut model = Model::from_text(listing).unwrap();
    assert_eq!(infer(&mut model), []);
    model
}

/// Returns the number of layers with this operation.
fn count(model: &Model, operation: &str) -> usize {
    model.walk().flat_map(|(_, graph)| graph.layers()).filter(|layer| layer.ty() == operation).count()
}

const BLOCK: &str = "
    x = Parameter : f32[2,8]
    w = Const(0.5) : f32[8,8]
    h = MatMul(x, w) : f32[2,8] \"hidden\"
    a = Relu(h)
    v = Const(0.25) : f32[8,4]
    y = MatMul(a, v) : f32[2,4] \"logits\"
    out = Result(y)
";

#[test]
fn layer_norm_written_out_becomes_one_layer() {
    let mut model = read(
        "
         x = Parameter : f32[2,8]
         a = Const([-1]) : i64[1]
         m = ReduceMean(x, a) {keep_dims=true}
         d = Subtract(x, m)
         two = Const(2) : f32[]
         s = Power(d, two)
         v = ReduceMean(s, a) {keep_dims=true}
         e = Const(1e-5) : f32[]
         b = Add(v, e)
         q = Sqrt(b)
         y = Divide(d, q)
         out = Result(y)",
    );
    let mvn: Rule = "d * (v + e: const)^-0.5 => MVN-6(x, a) {normalize_variance=true, eps=e, eps_mode=INSIDE_SQRT}
        where m = ReduceMean(x, a: const) {keep_dims=true}, d = x - m, v = ReduceMean(d^2, a) {keep_dims=true}
        if size(e) == 1"
        .parse()
        .unwrap();
    model.rewrite(&[mvn]).unwrap();
    assert_eq!((count(&model, "MVN"), model.graph().len()), (1, 4));
}

#[test]
fn gelu_is_found_however_it_is_spelled() {
    let gelu = library::get("fuse-gelu").unwrap().rules().unwrap();
    for formula in [
        "t = Multiply(half, x)\n             y = Multiply(t, p)",
        "t = Multiply(x, p)\n             y = Multiply(t, half)",
        "t = Multiply(half, p)\n             y = Multiply(x, t)",
        "t = Divide(x, two)\n             y = Multiply(p, t)",
    ] {
        let mut model = read(&format!(
            "
             x = Parameter : f32[2,8]
             half = Const(0.5) : f32[]
             two = Const(2) : f32[]
             root = Const(1.4142135) : f32[]
             one = Const(1) : f32[]
             q = Divide(x, root)
             e = Erf(q)
             p = Add(e, one)
             {formula}
             out = Result(y)"
        ));
        model.rewrite(&gelu).unwrap();
        assert_eq!(count(&model, "Gelu"), 1, "{formula}");
    }
}

#[test]
fn images_are_converted_inside() {
    let model = read("images = Parameter : f32[1,3,4,4]\ny = Relu(images)\nout = Result(y)");
    let script: Script = "input  images : u8[1,4,4,3]
        before images : Transpose(Divide(Convert(_) {destination_type=f32}, 255), [0,3,1,2])"
        .parse()
        .unwrap();
    let (model, _) = script.run(model).unwrap();
    assert_eq!(model.inputs().next().unwrap().outputs()[0].to_string(), "u8[1,4,4,3]");
}

#[test]
fn a_model_is_cut_and_its_weights_with_it() {
    let mut model = read(BLOCK);
    model.edit(|edit| edit.cut(edit.tensor("hidden")?)).unwrap();
    let folder = tempfile::tempdir().unwrap();
    model.save(folder.path().join("cut.xml")).unwrap();
    assert_eq!(std::fs::metadata(folder.path().join("cut.bin")).unwrap().len(), 8 * 8 * 4);
}

#[test]
fn an_inner_tensor_becomes_a_further_output() {
    let mut model = read(BLOCK);
    model.edit(|edit| edit.expose(edit.tensor("hidden")?, Some("features"))).unwrap();
    assert!(model.find_output("features").is_ok() && model.find_output("logits").is_ok());
}

#[test]
fn an_output_without_a_tensor_name_gets_one() {
    let mut model = read("x = Parameter : f32[2]\ny = Relu(x)\nout = Result(y)");
    model.edit(|edit| edit.rename("out", "scores")).unwrap();
    assert!(model.graph().tensor_named("scores").unwrap().is_some());
}

#[test]
fn a_batch_becomes_dynamic() {
    let mut model = read(BLOCK);
    model.set_input("x", None, Some(&"[?,8]".parse().unwrap())).unwrap();
    assert_eq!(infer(&mut model), []);
    assert!(model.to_string().contains("MatMul(3, 4) : f32[?,4]"), "{model}");
}

#[test]
fn an_operation_is_written_as_an_older_release_has_it() {
    let mut model = read("x = Parameter : f32[2]\ny = HSwish-4(x)\nout = Result(y)");
    model.rewrite(&["HSwish(x) => Divide(Multiply(x, Clamp(Add(x, 3)) {min=0, max=6}), 6)".parse().unwrap()]).unwrap();
    assert_eq!((count(&model, "HSwish"), count(&model, "Clamp")), (0, 1));
    let mut model = read("x = Parameter : f32[2]\ny = Softmax-8(x) {axis=-1}\nout = Result(y)");
    model.retarget("2021.4".parse().unwrap()).unwrap();
    assert_eq!(model.version().to_string(), "10");
}

#[test]
fn weights_become_half_precision_but_for_a_list() {
    let mut model = read(BLOCK);
    let mut conversion = Conversion::default();
    conversion.storage = Some(Storage::Compress { to: ElementType::F16, like: Like::default() });
    conversion.keep = vec!["v".into()];
    conversion.run(&mut model).unwrap();
    assert_eq!(count(&model, "Convert"), 1);
}

#[test]
fn two_models_become_one() {
    let mut model = read(BLOCK);
    let head = read("z = Parameter : f32[2,4]\np = Softmax-8(z) {axis=-1}\nprobabilities = Result(p)");
    model.join(&head, &[("logits", "z")], "").unwrap();
    assert_eq!((model.outputs().count(), count(&model, "Softmax")), (1, 1));
}

#[test]
fn an_adapter_is_added_to_weights() {
    let script = "set w = _ + matmul([[1], [1], [1], [1], [1], [1], [1], [1]], [[2, 2, 2, 2, 2, 2, 2, 2]]) * 0.5";
    let script: Script = script.parse().unwrap();
    let (model, _) = script.run(read(BLOCK)).unwrap();
    let w = model.graph().layer(model.graph().find("w").unwrap()).unwrap();
    assert_eq!(w.numbers(model.weights()).unwrap(), [1.5; 64]);
}

#[test]
fn an_if_of_a_constant_condition_goes() {
    let mut model = read(
        "
         x = Parameter : f32[2]
         c = Const(true) : boolean[]
         y = If-8(c, x)
             then_body (in 1 -> 0, out 2 -> 0):
                 a = Parameter : f32[2]
                 b = Abs(a)
                 r = Result(b)
             else_body (in 1 -> 0, out 1 -> 0):
                 a = Parameter : f32[2]
                 r = Result(a)
         out = Result(y)",
    );
    model.rewrite(&library::get("constant-ifs").unwrap().rules().unwrap()).unwrap();
    assert_eq!((count(&model, "If"), count(&model, "Abs")), (0, 1));
}

#[test]
fn attention_becomes_one_layer() {
    let mut model = read(
        "
         q = Parameter : f32[1,2,3,4]
         k = Parameter : f32[1,2,5,4]
         v = Parameter : f32[1,2,5,4]
         m = Parameter : f32[1,1,3,5]
         s = Const(0.5) : f32[]
         a = MatMul(q, k) {transpose_b=true}
         b = Multiply(a, s)
         c = Add(b, m)
         d = Softmax-8(c) {axis=-1}
         y = MatMul(d, v)
         out = Result(y)",
    );
    model.rewrite(&library::get("fuse-sdpa").unwrap().rules().unwrap()).unwrap();
    assert_eq!(count(&model, "ScaledDotProductAttention"), 1);
}

#[test]
fn a_rule_has_its_right_side_in_rust() {
    let mut model = read(BLOCK);
    let leaky = "Relu(x)".parse::<Pattern>().unwrap().to(|found, new| {
        let slope = new.constant(found.element_type("x").unwrap_or(ElementType::F32), &[1], &[0.1])?;
        Ok(Replacement::layer(NewLayer::new("PReLU", "opset1"), &[found.tensor("x")?, slope]))
    });
    model.rewrite(&[leaky]).unwrap();
    assert_eq!(count(&model, "PReLU"), 1);
}

/// A decoder with a cache for each layer.
fn decoder(layers: usize) -> Model {
    use std::fmt::Write as _;
    let mut text = "ids = Parameter : i64[?,?]\nzero = Const(0) : i64[]\nwords = Const(0.5) : f32[16,8]
h = Gather-8(words, ids, zero)\n"
        .to_owned();
    let mut hidden = "h".to_owned();
    for at in 0..layers {
        let name = format!("layers.{at}");
        let _ = writeln!(
            text,
            "past.{at} = Parameter : f32[?,?,8]
{name}.w = Const(0.{}) : f32[8,8]
{name}.k = MatMul({hidden}, {name}.w) {{transpose_b=true}}
{name}.keys = Concat(past.{at}, {name}.k) {{axis=1}}
present.{at} = Result({name}.keys)
{name}.a = MatMul({hidden}, {name}.keys) {{transpose_b=true}}
{name}.o = MatMul({name}.a, {name}.keys)
{name}.gate = MatMul({name}.o, {name}.w) {{transpose_b=true}}
{name}.up = MatMul({name}.o, {name}.w) {{transpose_b=true}}
{name}.act = Gelu-7({name}.gate)
{name}.mul = Multiply({name}.act, {name}.up)
{name}.out = Add({hidden}, {name}.mul)",
            at + 1
        );
        hidden = format!("{name}.out");
    }
    read(&format!("{text}logits = MatMul({hidden}, words) {{transpose_b=true}}\nout = Result(logits)"))
}

#[test]
fn gate_and_up_become_one_product() {
    let mut model = decoder(2);
    let edited = model.edit(|graph| {
        for at in 0..2 {
            let (gate, up) = (graph.find(&format!("layers.{at}.gate"))?, graph.find(&format!("layers.{at}.up"))?);
            let (x, a, b) =
                (graph.producers(gate)[0].unwrap(), graph.producers(gate)[1].unwrap(), graph.producers(up)[1].unwrap());
            let weights = graph.add(NewLayer::new("Concat", "opset1").with_attribute("axis", 0), &[a, b])?;
            let both = NewLayer::new("MatMul", "opset1")
                .with_attribute("transpose_b", true)
                .named(&format!("layers.{at}.both"));
            let both = graph.add(both, &[x, weights.output(0)])?;
            let axis = graph.constant_of(&[], &[2_i64])?;
            let parts =
                graph.add(NewLayer::new("Split", "opset1").with_attribute("num_splits", 2), &[both.output(0), axis])?;
            graph.redirect(gate.output(0), parts.output(0))?;
            graph.redirect(up.output(0), parts.output(1))?;
        }
        Ok(())
    });
    edited.unwrap();
    assert!(model.graph().find("layers.0.gate").is_err() && count(&model, "Split") == 2);
}

#[test]
fn caches_become_state() {
    let mut model = decoder(3);
    let pair = |at: usize| StatePair {
        past: model.find_input(&format!("past.{at}")).unwrap(),
        present: model.find_output(&format!("present.{at}")).unwrap(),
        variable: format!("past.{at}present.{at}"),
    };
    let pairs: Vec<_> = (0..3).map(pair).collect();
    let edited = model.edit(|graph| {
        let beam =
            NewLayer::new("Parameter", "opset1").with_attribute("shape", "?").with_attribute("element_type", "i32");
        let beam = graph.add(beam.named("beam_idx"), &[])?;
        graph.make_stateful(&pairs, Some(beam.output(0)))
    });
    assert_eq!(edited.unwrap().len(), 3);
    assert_eq!((model.inputs().count(), model.outputs().count(), count(&model, "Assign")), (2, 1, 3));
}

#[test]
fn weights_of_chosen_layers_become_integers() {
    let rule: Rule =
        "MatMul(x, w: const) {transpose_b=true} => MatMul(x, Convert(q) {destination_type=f32} * s) {transpose_b=true}
        where s = fold(ReduceMax(Abs(w), 1) {keep_dims=true} / 127)
              q = fold(Convert(Round(w / s) {mode=half_to_even}) {destination_type=i8})"
            .parse()
            .unwrap();
    let chosen = |m: &typelift::rewrite::Match| {
        if m.root.name().ends_with(".gate") { Ok(()) } else { Err("not chosen".into()) }
    };
    let mut model = decoder(2);
    assert_eq!(model.rewrite(&[rule.once().when(chosen)]).unwrap().applied.len(), 2);
}

#[test]
fn some_blocks_get_another_operation() {
    let rule: Rule = "Gelu-7(x) => Gelu-7(x) {approximation_mode=TANH} if block(root) in 0..5".parse().unwrap();
    let mut model = decoder(8);
    assert_eq!(model.rewrite(&[rule]).unwrap().applied.len(), 6);
}

#[test]
fn blocks_are_removed_with_their_caches() {
    let mut model = decoder(24);
    let caches: Vec<_> = (10..=20).map(|at| model.find_output(&format!("present.{at}")).unwrap()).collect();
    let edited = model.edit(|graph| {
        graph.redirect(graph.tensor("layers.20.out")?, graph.tensor("layers.9.out")?)?;
        graph.remove_outputs(&caches)
    });
    edited.unwrap();
    assert!(model.graph().find("layers.10.k").is_err() && model.graph().find("layers.21.k").is_ok());
    assert_eq!((model.inputs().count(), model.outputs().count()), (14, 14));
}

#[test]
fn weights_and_operations_are_counted_by_block() {
    let blocks = typelift::explain::blocks::Blocks::new(&decoder(4));
    let numbered: Vec<_> = blocks.list.iter().filter(|block| block.number.is_some()).collect();
    assert_eq!(numbered.len(), 4);
    assert!(numbered.iter().all(|block| block.bytes() == 4 * 64 && block.differs.is_empty()));
    assert!(numbered.iter().all(|block| block.macs > 0 && block.macs == numbered[0].macs));
}
