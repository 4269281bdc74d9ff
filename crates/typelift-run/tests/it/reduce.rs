//! Models are made smaller as long as a condition holds.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::convert::Infallible;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering};

use typelift::Model;
use typelift_run::reduce::{Reduced, Reduction, Stopped, anonymized};

fn model(text: &str) -> Model {
    let mut model = Model::from_text(text).unwrap();
    assert_eq!(typelift::infer(&mut model), [], "{text}");
    model
}

/// True if a layer of type `user` uses one of type `source`, in a body or not.
fn has_pair(model: &Model, source: &str, user: &str) -> bool {
    model.walk().any(|(_, graph)| {
        graph.layers().filter(|layer| layer.ty() == user).any(|layer| {
            let sources = graph.producers(layer.id()).into_iter().flatten().filter_map(|from| graph.layer(from.layer));
            sources.into_iter().any(|from| from.ty() == source)
        })
    })
}

fn reduce(reduction: &Reduction, model: &Model, source: &str, user: &str) -> Reduced<Infallible> {
    reduction.run(model, &|candidate: &Model| Ok::<_, Infallible>(has_pair(candidate, source, user))).unwrap()
}

/// A chain of blocks, one of them with Exp before Tanh.
fn blocks(count: usize) -> Model {
    let mut text = "x = Parameter : f32[?,4]\nk = Const([1, 2, 3, 4]) : f32[4]\nh.0 = ReLU(x)\n".to_owned();
    for at in 0..count {
        let inner = if at == count * 2 / 3 { "Exp" } else { "Abs" };
        let _ = write!(text, "a.{at} = Multiply(h.{at}, k)\nb.{at} = {inner}(a.{at})\nc.{at} = Tanh(b.{at})\n");
        let _ = writeln!(text, "h.{} = Add(c.{at}, h.{at})", at + 1);
    }
    let _ = writeln!(text, "r = Result(h.{count})");
    model(&text)
}

#[test]
fn the_pair_that_matters_is_left_in_few_runs() {
    for count in [3, 50, 500] {
        let whole = blocks(count);
        let reduced = reduce(&Reduction::default(), &whole, "Exp", "Tanh");
        assert_eq!(reduced.layers_after, 4, "Parameter, Exp, Tanh, Result:\n{}", reduced.model);
        let limit = 12.0 * (whole.graph().len() as f64).log2() + 40.0;
        assert!((reduced.runs as f64) < limit, "{} runs of {limit}", reduced.runs);
        assert!(has_pair(&reduced.model, "Exp", "Tanh"));
    }
}

#[test]
fn jobs_change_nothing_but_the_time() {
    let whole = blocks(40);
    let mut several = Reduction::default();
    several.jobs = 4;
    let (one, four) = (reduce(&Reduction::default(), &whole, "Exp", "Tanh"), reduce(&several, &whole, "Exp", "Tanh"));
    assert_eq!(one.model.to_string(), four.model.to_string());
    let again = reduce(&Reduction::default(), &whole, "Exp", "Tanh");
    assert_eq!((one.model.to_string(), one.runs), (again.model.to_string(), again.runs));
}

#[test]
fn every_candidate_is_well_typed() {
    let whole = blocks(20);
    let judge = |candidate: &Model| {
        let mut candidate = candidate.clone();
        assert_eq!(typelift::infer(&mut candidate), []);
        assert_eq!(candidate.graph().verify(), Ok(()));
        Ok::<_, Infallible>(has_pair(&candidate, "Exp", "Tanh"))
    };
    Reduction::default().run(&whole, &judge).unwrap();
}

#[test]
fn a_body_becomes_the_model() {
    let whole = model(
        "
        x = Parameter : f32[2]
        c = Parameter : boolean[]
        a = Abs(x)
        y = If-8(c, a)
            then_body (in 1 -> 0, out 3 -> 0):
                p = Parameter : f32[2]
                q = Exp(p)
                t = Tanh(q)
                u = Result(t)
            else_body (in 1 -> 0, out 1 -> 0):
                p = Parameter : f32[2]
                u = Result(p)
        z = ReLU(y)
        r = Result(z)
        ",
    );
    let reduced = reduce(&Reduction::default(), &whole, "Exp", "Tanh");
    assert_eq!(reduced.layers_after, 4, "{}", reduced.model);
}

#[test]
fn dimensions_and_metadata_become_plain() {
    let mut whole = model(
        "x = Parameter : f32[64,128]\nw = Parameter : f32[128,32]\ny = MatMul(x, w) {transpose_a=false, transpose_b=false}\nr = Result(y)\n",
    );
    whole.set_rt_info("owner", "somebody").unwrap();
    let judge = |candidate: &Model| Ok::<_, Infallible>(candidate.graph().layers().any(|layer| layer.ty() == "MatMul"));
    let reduced = Reduction::default().run(&whole, &judge).unwrap();
    assert_eq!(reduced.model.rt_info("owner"), None);
    let shapes: Vec<_> = reduced.model.inputs().map(|layer| layer.outputs()[0].to_string()).collect();
    assert!(shapes.iter().all(|shape| shape == "f32[2,2]"), "{shapes:?}");
}

#[test]
fn a_search_that_is_stopped_keeps_the_smallest_model_so_far() {
    let whole = blocks(100);
    let runs = AtomicUsize::new(0);
    let judge = |candidate: &Model| {
        if runs.fetch_add(1, Ordering::Relaxed) == 6 { Err("Ctrl-C") } else { Ok(has_pair(candidate, "Exp", "Tanh")) }
    };
    let reduced = Reduction::default().run(&whole, &judge).unwrap();
    assert_eq!(reduced.stopped, Some(Stopped::ByJudge("Ctrl-C")));
    assert!(reduced.layers_after < reduced.layers_before && has_pair(&reduced.model, "Exp", "Tanh"));
    let mut few = Reduction::default();
    few.most_runs = 5;
    let reduced = reduce(&few, &whole, "Exp", "Tanh");
    assert!(matches!(reduced.stopped, Some(Stopped::AtLimit)) && reduced.runs <= 5);
}

#[test]
fn a_model_that_is_not_interesting_is_refused() {
    let never = |_: &Model| Ok::<_, Infallible>(false);
    assert!(Reduction::default().run(&blocks(3), &never).is_err());
}

#[test]
fn an_anonymous_model_has_nothing_of_its_owner() {
    let text = r#"<?xml version="1.0"?>
<!-- secret -->
<net name="secret" version="11">
  <layers>
    <layer id="0" name="secret_c" type="Parameter" version="opset1">
      <data shape="" element_type="boolean" />
      <output><port id="0" precision="BOOL" names="secret_t,ReLU_1" /></output>
    </layer>
    <layer id="1" name="secret_x" type="Parameter" version="opset1">
      <data shape="2" element_type="f32" secret="1" />
      <rt_info><secret value="1" /></rt_info>
      <output><port id="0" precision="FP32" names="t1"><dim>2</dim><rt_info><secret value="1" /></rt_info></port></output>
    </layer>
    <layer id="2" name="secret_if" type="If" version="opset8">
      <input>
        <port id="0" precision="BOOL" />
        <port id="1" precision="FP32"><dim>2</dim><rt_info><secret value="1" /></rt_info></port>
      </input>
      <output><port id="2" precision="FP32"><dim>2</dim></port></output>
      <then_port_map>
        <input external_port_id="1" internal_layer_id="0" />
        <output external_port_id="0" internal_layer_id="2" />
      </then_port_map>
      <else_port_map>
        <input external_port_id="1" internal_layer_id="0" />
        <output external_port_id="0" internal_layer_id="1" />
      </else_port_map>
      <then_body><layers>
        <layer id="0" name="secret_p" type="Parameter" version="opset1">
          <data shape="2" element_type="f32" />
          <output><port id="0" precision="FP32"><dim>2</dim></port></output>
        </layer>
        <layer id="1" name="secret_r" type="ReLU" version="opset1">
          <input><port id="0" precision="FP32"><dim>2</dim></port></input>
          <output><port id="1" precision="FP32"><dim>2</dim></port></output>
        </layer>
        <layer id="2" name="secret_o" type="Result" version="opset1" output_names="secret_out">
          <input><port id="0" precision="FP32"><dim>2</dim></port></input>
        </layer>
      </layers>
      <edges><!-- secret -->
        <edge from-layer="0" from-port="0" to-layer="1" to-port="0" />
        <edge from-layer="1" from-port="1" to-layer="2" to-port="0" />
      </edges>
      <rt_info><secret value="1" /></rt_info></then_body>
      <else_body><layers>
        <layer id="0" name="secret_p" type="Parameter" version="opset1">
          <data shape="2" element_type="f32" />
          <output><port id="0" precision="FP32"><dim>2</dim></port></output>
        </layer>
        <layer id="1" name="secret_o" type="Result" version="opset1">
          <input><port id="0" precision="FP32"><dim>2</dim></port></input>
        </layer>
      </layers>
      <edges><edge from-layer="0" from-port="0" to-layer="1" to-port="0" /></edges></else_body>
    </layer>
    <layer id="3" name="secret_y" type="Result" version="opset1">
      <input><port id="0" precision="FP32"><dim>2</dim></port></input>
    </layer>
  </layers>
  <edges>
    <edge from-layer="0" from-port="0" to-layer="2" to-port="0" />
    <edge from-layer="1" from-port="0" to-layer="2" to-port="1" />
    <edge from-layer="2" from-port="2" to-layer="3" to-port="0" />
  </edges>
  <rt_info><secret value="1" /></rt_info>
</net>"#;
    let mut whole = Model::from_xml(text).unwrap();
    assert_eq!(typelift::infer(&mut whole), []);
    let [plain, other] = anonymized([&whole, &whole]).unwrap();
    for options in [false, true].map(|canonical| typelift::xml::WriteOptions { canonical, ..Default::default() }) {
        let text = typelift::xml::write(&plain, options);
        assert!(!text.contains("secret"), "{text}");
        // New names are none of the old ones.
        assert!(!text.contains("\"t1\"") && !text.contains("\"ReLU_1\""), "{text}");
        assert_eq!(text, typelift::xml::write(&other, options), "equal names get one new name");
    }
    assert_eq!(typelift_run::reduce::layers(&plain), typelift_run::reduce::layers(&whole));
}

#[test]
fn a_layer_of_a_body_is_bypassed_where_constants_cannot_replace_it() {
    let whole = model(
        "
        n = Const(3) : i64[]
        c = Const(true) : boolean[]
        x = Parameter : f32[?]
        y = Loop-5(n, c, x)
            body (in 2 -> 0, out 4 -> 0, out 6 -> - {execution_condition}, back 4 -> 0):
                p = Parameter : f32[?]
                a = Abs(p)
                q = Exp(a)
                t = Tanh(q)
                4 u = Result(t)
                more = Const(true) : boolean[]
                6 v = Result(more)
        r = Result(y)
        ",
    );
    let judge = |candidate: &Model| {
        Ok::<_, Infallible>(
            candidate.graph().layers().any(|layer| layer.ty() == "Loop") && has_pair(candidate, "Exp", "Tanh"),
        )
    };
    let reduced = Reduction::default().run(&whole, &judge).unwrap();
    assert!(!reduced.model.to_string().contains("Abs"), "{}", reduced.model);
}

#[test]
fn values_of_a_loop_that_do_not_matter_are_removed_with_their_ports() {
    let whole = model(
        "
        n = Const(3) : i64[]
        c = Const(true) : boolean[]
        x = Parameter : f32[2]
        z = Parameter : f32[2]
        w = Parameter : f32[2]
        y = Loop-5(n, c, x, z, w)
            body (in 2 -> 0, in 3 -> 1, in 4 -> 2, out 5 -> 0, out 7 -> 1, out 9 -> - {execution_condition}, back 5 -> 0, back 7 -> 1):
                0 p = Parameter : f32[2]
                1 q = Parameter : f32[2]
                2 s = Parameter : f32[2]
                3 a = Add(p, s)
                4 b = Exp(q)
                5 u = Result(a)
                6 t = Tanh(b)
                7 v = Result(t)
                8 more = Const(true) : boolean[]
                9 k = Result(more)
        r = Result(y.0)
        e = Result(y.1)
        ",
    );
    let judge = |candidate: &Model| {
        assert_eq!(candidate.graph().verify(), Ok(()));
        let has_loop = candidate.graph().layers().any(|layer| layer.ty() == "Loop");
        Ok::<_, Infallible>(has_loop && has_pair(candidate, "Exp", "Tanh"))
    };
    let reduced = Reduction::default().run(&whole, &judge).unwrap();
    let owner = reduced.model.graph().layers().find(|layer| layer.ty() == "Loop").unwrap();
    assert_eq!((owner.inputs().len(), owner.outputs().len()), (3, 1), "{}", reduced.model);
    assert_eq!(typelift::infer(&mut reduced.model.clone()), []);
}
