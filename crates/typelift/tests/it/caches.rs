//! Caches that become state, and inputs and outputs again. The written models are in `testdata/oracle/statements`, where `state.py` records
//! that OpenVINO computes the same over four steps, in which beams change places.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use proptest::prelude::*;
use typelift::ops::{LayerKind, kind};
use typelift::rewrite::{Script, library};
use typelift::{LayerId, Model, infer};

fn path(file: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata/oracle/statements").join(file)
}

/// Applies a statement to a model, and compares the result with the model that OpenVINO ran.
fn compare(from: &str, statement: &str, form: &str) {
    let mut model = Model::open(path(&format!("{from}.xml"))).unwrap();
    assert_eq!(infer(&mut model), []);
    let (model, _) = statement.parse::<Script>().unwrap().run(model).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let saved = folder.path().join("model.xml");
    model.save(&saved).unwrap();
    let updates = std::env::var_os("UPDATE_STATE").is_some();
    let mut sums = Vec::new();
    for extension in ["xml", "bin"] {
        let kept = path(&format!("decoder.{form}.{extension}"));
        let bytes = fs::read(saved.with_extension(extension)).unwrap();
        if updates {
            fs::write(&kept, &bytes).unwrap();
        }
        assert!(bytes == fs::read(&kept).unwrap(), "decoder.{form}.{extension} is not what is written");
        let mut sum = flate2::Crc::new();
        sum.update(&bytes);
        sums.push(sum.sum());
    }
    if !updates {
        let answers: serde_json::Value =
            serde_json::from_str(&fs::read_to_string(path("answers.json")).unwrap()).unwrap();
        assert_eq!(answers[form]["crc32"], serde_json::json!(sums), "run state.py again");
        assert!(answers[form]["largest_difference"].as_f64().unwrap() <= 1e-5, "{answers}");
    }
}

#[test]
fn openvino_computes_the_same_with_caches_as_state_and_back() {
    let statement = "stateful past_key_values.*.* -> present.*.* reorder beam_idx";
    compare("decoder", statement, "stateful");
    compare("decoder.stateful", "stateless", "stateless");
    let text = fs::read_to_string(path("decoder.stateful.xml")).unwrap();
    assert!(
        text.contains("variable_id=\"past_key_values.1.valuepresent.1.value\""),
        "as OpenVINO's own transformation"
    );
}

#[test]
fn a_cache_that_beams_already_reorder_is_not_reordered_twice() {
    let mut model = Model::open(path("decoder.stateless.xml")).unwrap();
    assert_eq!(infer(&mut model), []);
    let run = |statement: &str| statement.parse::<Script>().unwrap().run(model.clone());
    let error = run("stateful past_key_values.*.* -> present.*.* reorder beam_idx").unwrap_err().to_string();
    assert!(error.contains("is already reordered by `beam_idx`; leave out `reorder beam_idx`"), "{error}");
    run("stateful past_key_values.*.* -> present.*.*").unwrap();
}

/// Variables that outputs and other variables depend on, and all that are written.
fn variables(model: &Model) -> [BTreeSet<&str>; 2] {
    let graph = model.graph();
    let of = |id: LayerId, wanted: LayerKind| {
        graph.layer(id).filter(|layer| kind(layer) == wanted).and_then(|layer| layer.attribute("variable_id"))
    };
    let ends = graph.layers().filter(|layer| matches!(kind(layer), LayerKind::Result | LayerKind::Assign));
    let mut pending: Vec<_> = ends.map(|layer| layer.id()).collect();
    let written = pending.iter().filter_map(|&id| of(id, LayerKind::Assign)).collect();
    let (mut seen, mut read) = (BTreeSet::new(), BTreeSet::new());
    while let Some(id) = pending.pop() {
        if seen.insert(id) {
            read.extend(of(id, LayerKind::ReadValue));
            pending.extend(graph.producers(id).into_iter().flatten().map(|source| source.layer));
        }
    }
    [read, written]
}

/// Returns the listing of a model with two inputs and two outputs, and a variable for each tensor of `written`, from
/// which it is set. The numbers choose the operation and the operands of each layer.
fn stateful(layers: &[(usize, usize, usize)], written: &[usize], outputs: [usize; 2]) -> (String, Vec<String>) {
    let mut text = "x = Parameter : f32[2]\ny = Parameter : f32[2]\nk = Const([1, 2]) : f32[2]\n".to_owned();
    let mut tensors = vec!["x".to_owned(), "y".to_owned()];
    for variable in 0..written.len() {
        let first = if variable == 0 { "(k)" } else { "" };
        text += &format!(
            "v{variable} = ReadValue-6{first} {{variable_id=v{variable}, variable_type=f32, variable_shape=2}}\n"
        );
        tensors.push(format!("v{variable}"));
    }
    for (at, &(operation, a, b)) in layers.iter().enumerate() {
        let [a, b] = [a, b].map(|at| &tensors[at % tensors.len()]);
        text += &match operation % 4 {
            0 => format!("t{at} = Add({a}, {b})\n"),
            1 => format!("t{at} = Multiply({a}, {b})\n"),
            2 => format!("t{at} = ReLU({a})\n"),
            _ => format!("t{at} = Exp({b})\n"),
        };
        tensors.push(format!("t{at}"));
    }
    let tensor = |at: usize| &tensors[at % tensors.len()];
    for (variable, &at) in written.iter().enumerate() {
        text += &format!("a{variable} = Assign-6({}) {{variable_id=v{variable}}}\n", tensor(at));
    }
    for (output, at) in outputs.into_iter().enumerate() {
        text += &format!("o{output} = Abs({}) : f32[2] \"o{output}\"\nr{output} = Result(o{output})\n", tensor(at));
    }
    (text, tensors)
}

proptest! {
    // Each case runs twenty scripts.
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn each_variable_that_is_read_is_still_written(
        layers in prop::collection::vec((0..4_usize, 0..99_usize, 0..99_usize), 1..9),
        written in prop::collection::vec(0..99_usize, 1..4),
        outputs in [0..99_usize, 0..99_usize],
        (a, b) in (0..99_usize, 0..99_usize),
    ) {
        let (text, tensors) = stateful(&layers, &written, outputs);
        let [t, u] = [a, b].map(|at| &tensors[at % tensors.len()]);
        let scripts = [
            format!("redirect {t} -> Multiply({t}, 2)"),
            format!("redirect {t} -> Exp({u})"),
            format!("add output more = Exp({t})\nremove output o0"),
            "remove output o1".to_owned(),
            "freeze x = 1".to_owned(),
            format!("redirect x -> {t}\nremove input x"),
            "order inputs y, x\norder outputs o1, o0".to_owned(),
            format!("cut {t}"),
            format!("cut [{t}] .. [{u}]"),
            format!("cut .. [{t}]"),
            format!("tap {t}"),
            format!("rename {t} renamed"),
            format!("after {t} : Exp(_)"),
            "before x : Exp(_)\noutput o0 : f16".to_owned(),
            "state v0 : f16[2]".to_owned(),
            "stateless\nstateful v0 -> v0.next".to_owned(),
            "let n = Exp(x)\nredirect y -> n".to_owned(),
            "info a/b = 1\nset k = [3, 4]\nkeep f32 t0".to_owned(),
            "ReLU(Exp(x)) => Exp(x)\nAdd(x, y) => Subtract(x, y)\nAdd(x, x) => Multiply(x, 2)".to_owned(),
        ];
        let mut scripts: Vec<_> = scripts.iter().map(|script| (script.as_str(), script.parse::<Script>().unwrap())).collect();
        let rules: Vec<_> = library::all().flat_map(|set| set.rules().unwrap()).collect();
        scripts.push(("the library", Script::default().with_rules(rules)));
        let mut model = Model::from_text(&text).unwrap();
        // A variable that no output needs is unknown to its Assign.
        prop_assume!(infer(&mut model).is_empty());
        for (name, script) in scripts {
            let Ok((after, _)) = script.run(model.clone()) else { continue };
            let [read, written] = variables(&after);
            prop_assert!(read.is_subset(&written), "{}: {:?} of\n{}became\n{}", name, read, text, after);
        }
    }
}
