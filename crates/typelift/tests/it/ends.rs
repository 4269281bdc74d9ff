//! Inputs and outputs of a model, joining models, and metadata.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use typelift::graph::EditError;
use typelift::rewrite::Script;
use typelift::{Layer, Model, infer};

fn read(listing: &str) -> Model {
    let mut model = Model::from_text(listing).unwrap();
    assert_eq!(infer(&mut model), []);
    model
}

/// Returns the model after saving and reading.
fn again(model: &Model) -> Model {
    let mut again = Model::from_xml(typelift::xml::write(model, Default::default())).unwrap();
    again.set_weights(model.weights().clone());
    assert_eq!(infer(&mut again), []);
    again
}

const STATE: &str = "
    x = Parameter : f32[2]
    k = Const([1, 2]) : f32[2]
    past = ReadValue-6(k) {variable_id=v, variable_type=f32, variable_shape=2}
    sum = Add(x, past) : f32[2] \"features\"
    kept = Assign-6(sum) {variable_id=v}
    a = Abs(sum)
    b = Exp(x)
    first = Result(a)
    second = Result(b)
";

#[test]
fn a_piece_keeps_its_state_and_no_other_outputs() {
    let mut model = read(STATE);
    let a = model.graph().tensor("a").unwrap();
    model.edit(|graph| graph.extract(&[], &[a])).unwrap();
    assert!(model.graph().find("kept").is_ok() && model.graph().find("past").is_ok());
    assert!(model.graph().find("b").is_err() && model.graph().find("second").is_err());

    let mut model = read(STATE);
    let features = model.graph().tensor("features").unwrap();
    model.edit(|graph| graph.extract(&[features], &[a])).unwrap();
    let model = again(&model);
    assert_eq!(model.to_string(), "9 features = Parameter : f32[2]\n5 a = Abs(9) : f32[2]\n7 first = Result(5)\n");
    assert!(model.find_input("features").is_ok());
}

/// A variable that is written from a tensor with two consumers.
const SHARED: &str = "
    x = Parameter : f32[2]
    y = Parameter : f32[2]
    k = Const([1, 2]) : f32[2]
    past = ReadValue-6(k) {variable_id=v, variable_type=f32, variable_shape=2}
    sum = Add(past, x) : f32[2]
    act = ReLU(sum) : f32[2]
    side = Multiply(sum, x) : f32[2]
    joined = Add(act, side) : f32[2]
    out = Add(joined, y) : f32[2] \"out\"
    kept = Assign-6(sum) {variable_id=v}
    result = Result(out)
";

#[test]
fn a_variable_that_is_read_is_written_after_each_redirect_and_removal() {
    let tensors = ["sum", "act", "side", "joined", "out"];
    for tensor in tensors {
        let script: Script = format!("redirect {tensor} -> Multiply({tensor}, 2)").parse().unwrap();
        let (model, _) = script.run(read(SHARED)).unwrap();
        assert!(model.graph().find("kept").is_ok(), "redirect {tensor}: {model}");
    }
    for tensor in tensors {
        let script: Script =
            format!("add output more = Exp({tensor}); remove output out").replace("; ", "\n").parse().unwrap();
        let (model, _) = script.run(read(SHARED)).unwrap();
        assert!(model.graph().find("kept").is_ok(), "output of {tensor}: {model}");
    }
}

#[test]
fn a_bare_name_with_slashes_is_a_name_before_it_is_a_division() {
    let text = "x = Parameter : f32[2]\nm/aten::a-1/Abs = Abs(x)\nr = Result(m/aten::a-1/Abs)\n";
    for (value, operation) in [
        ("m/aten::a-1/Abs", "Exp"),
        ("m/aten::a-1/Abs/2", "Divide"),
        ("2-m/aten::a-1/Abs", "Subtract"),
        ("x/2", "Divide"),
    ] {
        let script: Script = format!("add output y = Exp({value})").parse().unwrap();
        let (model, _) = script.run(read(text)).unwrap();
        let (found, whole) = (model.to_string(), value.len() == 15);
        assert!(whole || found.contains(operation) || found.contains("Multiply"), "{value}: {found}");
        assert!(found.contains("= Exp("), "{value}: {found}");
    }
}

#[test]
fn an_input_that_the_piece_does_not_use_is_refused() {
    let mut model = read(STATE);
    let (sum, b) = (model.graph().tensor("sum").unwrap(), model.graph().tensor("b").unwrap());
    let error = model.edit(|graph| graph.extract(&[sum], &[b])).unwrap_err();
    assert_eq!(error, EditError::Other("no remaining layer depends on `features`".into()));
    assert_eq!(model.to_string(), read(STATE).to_string());
}

#[test]
fn a_tap_is_one_more_output_and_the_only_one_of_its_tensor() {
    let mut model = read(STATE);
    let sum = model.graph().tensor("sum").unwrap();
    let first = model.edit(|graph| graph.expose(sum, None)).unwrap();
    let second = model.edit(|graph| graph.expose(sum, Some("more"))).unwrap();
    assert_eq!(first, second);
    let model = again(&model);
    assert_eq!(model.outputs().count(), 3);
    assert_eq!(model.find_output("more"), model.find_output("features"));
    let taken = model.clone().edit(|graph| graph.expose(graph.tensor("b")?, Some("features")));
    assert!(matches!(taken, Err(EditError::NameTaken { .. })), "{taken:?}");
}

/// A loop whose body has a constant.
const LOOP: &str = "
    n = Const(3) : i64[]
    go = Const(true) : boolean[]
    given = Parameter : f32[2]
    c = Const([5, 7]) : f32[2] \"shared\"
    start = Add(given, c)
    out = Loop-5(n, go, start)
        body (in 2 -> 0, out 3 -> 0, in - -> 4 {current_iteration}, out 6 -> - {execution_condition}, back 3 -> 0):
            i = Parameter : f32[2]
            w = Const([10, 20]) : f32[2]
            s = Add(i, w)
            3 r = Result(s)
            4 at = Parameter : i64[]
            5 more = Const(true) : boolean[]
            6 q = Result(more)
    r = Result(out)
";

fn simple(name: &str) -> Model {
    read(&format!(
        "
         x = Parameter : f32[2]
         c = Const([1, 2]) : f32[2]
         y = Multiply(x, c) : f32[2] \"{name}\"
         r = Result(y)"
    ))
}

#[test]
fn a_graft_brings_bodies_and_bytes_along() {
    let other = read(LOOP);
    let mut model = simple("y");
    model.join(&other, &[("y", "given")], "").unwrap();
    let model = again(&model);
    let values = |path: &str| {
        let (place, id) = model.find(path).unwrap();
        model.graph_at(&place).unwrap().layer(id).unwrap().numbers(model.weights())
    };
    assert_eq!(values("c"), Some(vec![1.0, 2.0]));
    assert_eq!(values("c_2"), Some(vec![5.0, 7.0]));
    assert_eq!(values("out/body/w"), Some(vec![10.0, 20.0]));
    assert_eq!((model.inputs().count(), model.outputs().count()), (1, 1));
}

#[test]
fn names_that_both_models_have_are_listed_and_a_prefix_parts_them() {
    let (model, other) = (simple("y"), simple("y"));
    let error = model.clone().join(&other, &[("y", "x")], "").unwrap_err();
    assert_eq!(error.to_string(), "both models have `y`; give the names of the other one a prefix");
    let mut model = model;
    model.join(&other, &[("y", "x")], "head/").unwrap();
    assert!(again(&model).find_output("head/y").is_ok());
}

#[test]
fn a_tensor_of_another_type_is_not_joined() {
    let mut model = simple("y");
    let other = read("t = Parameter : i64[2]\nu = Abs(t)\nv = Result(u)");
    let error = model.join(&other, &[], "").unwrap_err();
    let said = "the input `t` of the other model has type i64[2], but the tensor of layer 2 has f32[2]; convert it first: output y : i64";
    assert_eq!(error.to_string(), said);
    assert_eq!(model.to_string(), simple("y").to_string());
}

#[test]
fn metadata_of_a_model_changes_in_one_place() {
    let xml = "<net name=\"n\" version=\"11\">\n\t<layers />\n\t<edges />\n\t<rt_info>\n\t\t<conversion_parameters>\n\t\t\t\
               <framework value=\"onnx\" /> <!-- mine -->\n\t\t</conversion_parameters>\n\t</rt_info>\n</net>\n";
    let mut model = Model::from_xml(xml).unwrap();
    model.set_rt_info("runtime_options/KV_CACHE_PRECISION", "f16").unwrap();
    model.set_rt_info("conversion_parameters/is <0>", "a\"b").unwrap();
    model.set_rt_info("conversion_parameters/framework", "pytorch").unwrap();
    let text = typelift::xml::write(&model, Default::default());
    let expected = xml.replace("onnx", "pytorch").replace(
        "<!-- mine -->\n\t\t</conversion_parameters>",
        "<!-- mine -->\n\t\t\t<info name=\"is &lt;0>\" value=\"a&quot;b\" />\n\t\t</conversion_parameters>\n\t\t\
         <runtime_options><KV_CACHE_PRECISION value=\"f16\" /></runtime_options>",
    );
    assert_eq!(text, expected);
    assert_eq!(model.rt_info("conversion_parameters/is <0>").as_deref(), Some("a\"b"));
    assert!(model.set_rt_info("conversion_parameters", "x").is_err());
    assert!(model.set_rt_info("conversion_parameters/framework/x", "x").is_err());
    // Groups without values are removed, and everything else keeps its bytes.
    assert!(model.remove_rt_info("conversion_parameters/is <0>") && model.remove_rt_info("runtime_options"));
    assert!(!model.remove_rt_info("runtime_options") && !model.remove_rt_info("conversion_parameters/mode"));
    assert_eq!(typelift::xml::write(&model, Default::default()), xml.replace("onnx", "pytorch"));
    assert!(model.remove_rt_info("conversion_parameters/framework"));
    assert_eq!(model.rt_info_entries(), []);
}

#[test]
fn metadata_is_added_where_there_is_none() {
    let mut model = Model::from_xml(typelift::xml::write(&simple("y"), Default::default())).unwrap();
    model.set_rt_info("a/b", "1").unwrap();
    let relu = model.graph().find("y").unwrap();
    model.edit(|graph| graph.set_rt_info(relu, "fused_names", "y, z")).unwrap();
    let refused = model.edit(|graph| graph.set_rt_info(relu, "layout", "N N"));
    assert!(refused.is_err());
    let model = Model::from_xml(typelift::xml::write(&model, Default::default())).unwrap();
    assert_eq!(model.rt_info("a/b").as_deref(), Some("1"));
    assert_eq!(model.graph().layer(relu).unwrap().rt_info("fused_names").as_deref(), Some("y, z"));
}

#[test]
fn renaming_an_output_without_a_tensor_name_gives_it_one() {
    let mut model = read("x = Parameter : f32[2]\ny = Abs(x)\nr = Result(y)");
    model.edit(|graph| graph.rename("y", "scores")).unwrap();
    model.edit(|graph| graph.rename("x", "pixels")).unwrap();
    assert!(model.graph().tensor_named("scores").unwrap().is_some());
    assert!(model.graph().tensor_named("pixels").unwrap().is_some());
    let mut model = read("x = Parameter : f32[2]\ny = Abs(x)\nr = Result(y)");
    model.edit(|graph| graph.rename("r", "scores")).unwrap();
    assert_eq!(model.graph().tensor_named("scores").unwrap().unwrap().layer, model.graph().find("y").unwrap());
}

fn rewritten(model: Model, statements: &str) -> Result<Model, String> {
    let script: Script = statements.parse().map_err(|error| format!("{error}"))?;
    script.run(model).map(|(model, _)| again(&model)).map_err(|error| error.to_string())
}

fn names<'m>(ends: impl Iterator<Item = &'m Layer>) -> Vec<&'m str> {
    ends.map(Layer::name).collect()
}

#[test]
fn statements_tap_and_leave_a_piece() {
    let model = rewritten(read(STATE), "tap sum as hidden").unwrap();
    assert!(model.find_output("hidden").is_ok() && model.find_output("first").is_ok());
    let model = rewritten(read(STATE), "cut features .. a").unwrap();
    assert_eq!((names(model.inputs()), names(model.outputs())), (vec!["features"], vec!["first"]));
    let model = rewritten(read(STATE), "cut .. b").unwrap();
    assert_eq!((names(model.inputs()), names(model.outputs())), (vec!["x"], vec!["second"]));
    let model = rewritten(read(STATE), "cut features ..").unwrap();
    assert_eq!((names(model.inputs()), names(model.outputs())), (vec!["features"], vec!["first"]));
    for (statement, reason) in [
        ("cut ..", "expected a tensor"),
        ("cut features .. b", "cut features .. b: no remaining layer depends on `features`"),
        ("tap sum as \"\"", "tap sum: the name of a tensor must not be empty"),
        ("rename sum \"\"", "rename sum : the name of a tensor must not be empty"),
        ("tap featuers", "tap featuers: no layer and no tensor is called `featuers`; did you mean `features`?"),
    ] {
        let error = rewritten(read(STATE), statement).unwrap_err();
        assert!(error.contains(reason), "{error}");
    }
}

const CACHE: &str = "
    past.0.key = Parameter : f32[2]
    past.1.key = Parameter : f32[2]
    x = Parameter : f32[2]
    a = Add(past.0.key, x)
    b = Add(past.1.key, x)
    ra = Result(a)
    rb = Result(b)
";

#[test]
fn a_pattern_stands_for_all_names_that_fit() {
    let model = rewritten(read(CACHE), "input past.* : f16\nrename past.?.key cache_?").unwrap();
    assert_eq!(names(model.inputs()), ["cache_0", "cache_1", "x"]);
    let types: Vec<_> = model.inputs().map(|input| input.outputs()[0].element_type().name()).collect();
    assert_eq!(types, ["f16", "f16", "f32"]);
    let model = rewritten(read(CACHE), "output r? : f16").unwrap();
    assert!(model.outputs().all(|end| model.graph().producer(end.id().input(0)).is_some()));
    for (statement, reason) in [
        ("input pst.* : f16", "the model has no input `pst.*`; it has `past.0.key`"),
        ("rename past.* cache", "`cache` must have as many `*` and `?` as `past.*`"),
        ("rename z* y*", "no layer and no tensor is called `z*`"),
    ] {
        let error = rewritten(read(CACHE), statement).unwrap_err();
        assert!(error.contains(reason), "{error}");
    }
}

#[test]
fn statements_write_metadata_of_the_model_and_of_layers() {
    let model = read(CACHE);
    let model = Model::from_xml(typelift::xml::write(&model, Default::default())).unwrap();
    let written = rewritten(
        model,
        "info runtime_options/KV_CACHE_PRECISION = f16
         info a/primitives_priority = cpu:jit
         info past.*/origin = \"the cache\"",
    );
    let model = written.unwrap();
    assert_eq!(model.rt_info("runtime_options/KV_CACHE_PRECISION").as_deref(), Some("f16"));
    let of = |layer: &str, name: &str| model.graph().layer(model.graph().find(layer).unwrap()).unwrap().rt_info(name);
    assert_eq!(of("a", "primitives_priority").as_deref(), Some("cpu:jit"));
    assert_eq!(of("past.1.key", "origin").as_deref(), Some("the cache"));
}

#[test]
fn a_statement_joins_the_model_of_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("head model.xml");
    simple("scores").save(&file).unwrap();
    let script = format!("join {:?} as head/ : y -> x", file.display().to_string());
    let model = rewritten(simple("y"), &script).unwrap();
    assert!(model.find_output("head/scores").is_ok());
    assert_eq!((model.inputs().count(), model.outputs().count()), (1, 1));
    let parsed: Script = script.parse().unwrap();
    assert_eq!(parsed.files().collect::<Vec<_>>(), [&*file]);
    let error = rewritten(simple("y"), "join nowhere.xml").unwrap_err();
    assert!(error.contains("cannot read `nowhere.xml`: "), "{error}");
}

#[test]
fn an_if_of_a_known_condition_becomes_its_branch() {
    let listing = "
    x = Parameter : f32[2]
    go = Parameter : boolean[]
    one = Const(1) : i64[]
    two = Const(2) : i64[]
    c = Equal(one, two)
    y = If-8(c, x)
        then_body (in 1 -> 0, out 2 -> 0):
            a = Parameter : f32[2]
            b = Abs(a)
            r = Result(b)
        else_body (in 1 -> 0, out 2 -> 0):
            a = Parameter : f32[2]
            b = Exp(a)
            r = Result(b)
    z = If-8(go, y)
        then_body (in 1 -> 0, out 2 -> 0):
            a = Parameter : f32[2]
            b = Abs(a)
            r = Result(b)
        else_body (in 1 -> 0, out 2 -> 0):
            a = Parameter : f32[2]
            b = Exp(a)
            r = Result(b)
    r = Result(z)
";
    let model = rewritten(read(listing), "inline *").unwrap();
    assert!(model.graph().find("y").is_err() && model.graph().find("c").is_err());
    assert_eq!(model.graph().layer(model.graph().find("b").unwrap()).unwrap().ty(), "Exp");
    for (statement, reason) in
        [("inline z", "the condition of `z` is not a constant"), ("inline w", "no If is called `w`")]
    {
        let error = rewritten(read(listing), statement).unwrap_err();
        assert!(error.contains(reason), "{error}");
    }
}

#[test]
fn an_if_in_a_body_becomes_its_branch() {
    let listing = "
    x = Parameter : f32[2]
    go = Parameter : boolean[]
    y = If-8(go, x)
        then_body (in 1 -> 0, out 4 -> 0):
            a = Parameter : f32[2]
            no = Const(false) : boolean[]
            inner = If-8(no, a)
                then_body (in 1 -> 0, out 2 -> 0):
                    i = Parameter : f32[2]
                    b = Abs(i)
                    r = Result(b)
                else_body (in 1 -> 0, out 2 -> 0):
                    i = Parameter : f32[2]
                    b = Exp(i)
                    r = Result(b)
            c = Tanh(inner)
            r = Result(c)
        else_body (in 1 -> 0, out 1 -> 0):
            a = Parameter : f32[2]
            r = Result(a)
    r = Result(y)
";
    let by_statement = rewritten(read(listing), "inline inner").unwrap();
    let mut by_set = read(listing);
    let report = by_set.rewrite(&typelift::rewrite::library::get("constant-ifs").unwrap().rules().unwrap()).unwrap();
    assert_eq!(report.applied.len(), 1);
    assert_eq!(report.applied[0].layer.path(), "y/then_body");
    for model in [&by_statement, &by_set] {
        assert!(model.find("y/then_body/inner").is_err());
        let (place, id) = model.find("y/then_body/b").unwrap();
        assert_eq!(model.graph_at(&place).unwrap().layer(id).unwrap().ty(), "Exp");
    }
}

#[test]
fn statements_give_constants_other_values() {
    const LINEAR: &str = "
        x = Parameter : f32[1,2]
        w = Const([[1, 2], [3, 4]]) : f16[2,2]
        wide = Convert(w) {destination_type=f32}
        m = MatMul(x, wide)
        layer/bias.0 = Const([10, 20]) : f32[2]
        s = Add(m, layer/bias.0)
        r = Result(s)";
    let values = |model: &Model, name: &str| {
        let layer = model.graph().layer(model.graph().find(name).unwrap()).unwrap();
        (layer.outputs()[0].to_string(), layer.numbers(model.weights()).unwrap())
    };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("delta.npy");
    let header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1), }";
    let numbers = [1.0_f32, 2.0].map(f32::to_le_bytes).concat();
    std::fs::write(&file, [b"\x93NUMPY\x01\x00\x76\x00", format!("{header:<117}\n").as_bytes(), &numbers].concat())
        .unwrap();
    let file = format!("{:?}", file.display().to_string());
    for (statements, name, shape, expected) in [
        ("set layer/bias.0 = 0.5".to_owned(), "layer/bias.0", "f32[2]", vec![0.5, 0.5]),
        ("set layer/bias.0 = [1, 2]".to_owned(), "layer/bias.0", "f32[2]", vec![1.0, 2.0]),
        ("set layer/bias.0 = _ * 2 + \"layer/bias.0\"".to_owned(), "layer/bias.0", "f32[2]", vec![30.0, 60.0]),
        (format!("set wide = _ + matmul(npy({file}), [[1, 10]])"), "w", "f16[2,2]", vec![2.0, 12.0, 5.0, 24.0]),
        (format!("set w = transpose(convert(npy({file}), f16))"), "w", "f16[1,2]", vec![1.0, 2.0]),
        ("set layer/* = convert(wide, f32)[0]".to_owned(), "layer/bias.0", "f32[2]", vec![1.0, 2.0]),
    ] {
        let model = rewritten(read(LINEAR), &statements);
        if shape == "f16[1,2]" {
            assert!(model.unwrap_err().contains("MatMul"), "{statements}");
            continue;
        }
        let model = model.unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(values(&model, name), (shape.to_owned(), expected), "{statements}");
    }
    let parsed: Script = format!("set w = npy({file})").parse().unwrap();
    assert_eq!(parsed.files().count(), 1);
    for (statement, reason) in [
        ("set m = 1", "set m: MatMul 3 `m` is not a constant"),
        ("set x = 1", "`x` is not a constant; `freeze x = VALUE` makes it one"),
        ("set w = 1 + bais", "no layer and no tensor is called `bais`"),
        ("set w = matmul(w, [1, 2])", "[2] are not two matrices"),
        ("set w = npy(\"nowhere.npy\")", "cannot read `nowhere.npy`: "),
        ("set layr/bais* = 0", "did you mean `layer/bias*`?"),
        ("set w =", "expected an operation, a name or a number"),
        ("set w = npy(w)", "expected a file in quotes"),
    ] {
        let error = rewritten(read(LINEAR), statement).unwrap_err();
        assert!(error.contains(reason) && !error.contains("os error"), "{error}");
    }
}

#[test]
fn a_mistyped_layer_does_not_become_metadata_of_the_model() {
    let model =
        rewritten(simple("y"), "info y : origin = here\ninfo : c/origin = there\ninfo project/own = 1").unwrap();
    let y = model.graph().layer(model.graph().find("y").unwrap()).unwrap();
    assert_eq!(y.rt_info("origin").as_deref(), Some("here"));
    assert_eq!(model.rt_info("c/origin").as_deref(), Some("there"));
    assert_eq!(model.rt_info("project/own").as_deref(), Some("1"));
    let error = rewritten(read(STATE), "info frist/origin = here").unwrap_err();
    assert!(error.contains("no layer is called `frist`; did you mean `first`? write `info : frist/origin"), "{error}");
    let error = rewritten(read(STATE), "info frist : origin = here").unwrap_err();
    assert!(error.contains("no layer is called `frist`; did you mean `first`?"), "{error}");
}

#[test]
fn models_of_two_versions_become_one_of_version_11() {
    let mut old = Model::from_text(
        "model old version 10
         x = Parameter : f32[2]
         y = Relu(x)
         r = Result(y)",
    )
    .unwrap();
    assert_eq!(infer(&mut old), []);
    let mut joined = old.clone();
    joined.join(&simple("z"), &[("y", "x")], "head/").unwrap();
    assert_eq!(joined.version().to_string(), "11");
    assert!(joined.find_input("x").is_ok() && joined.find_output("head/z").is_ok());
    let mut joined = simple("z");
    joined.join(&old, &[("z", "x")], "tail/").unwrap();
    assert!(joined.find_output("tail/y").is_ok());
    assert_eq!(infer(&mut joined), []);
}
