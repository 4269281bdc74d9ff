//! Models are made smaller as long as a condition holds.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::convert::Infallible;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering};

use typelift::Model;
use typelift::reduce::{Reduced, Reduction, Stopped, anonymized};

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
fn an_anonymous_model_has_no_name_of_its_owner() {
    let mut whole = model("secret = Parameter : f32[2]\nhidden = ReLU(secret)\nprivate = Result(hidden)\n");
    whole.edit(|graph| graph.rename("hidden", "confidential")).unwrap();
    whole.set_rt_info("owner", "somebody").unwrap();
    let plain = anonymized(&whole).unwrap();
    let options = typelift::xml::WriteOptions { canonical: true, ..Default::default() };
    let text = typelift::xml::write(&plain, options);
    for word in ["secret", "hidden", "private", "confidential", "somebody"] {
        assert!(!text.contains(word), "{word} in {text}");
    }
    assert_eq!(plain.graph().len(), whole.graph().len());
}
