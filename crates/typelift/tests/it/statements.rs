//! Statements that see the whole graph: new inputs and outputs, rewiring, state, names for expressions.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use typelift::rewrite::Script;
use typelift::{Layer, Model, infer};

fn read(listing: &str) -> Model {
    let mut model = Model::from_text(listing).unwrap();
    assert_eq!(infer(&mut model), []);
    model
}

/// Applies statements to a model, writes the result, and reads it again.
fn rewritten(listing: &str, statements: &str) -> Result<Model, String> {
    let script: Script = statements.parse().map_err(|error| format!("{error}"))?;
    let (model, _) = script.run(read(listing)).map_err(|error| error.to_string())?;
    let mut again = Model::from_xml(typelift::xml::write(&model, Default::default())).unwrap();
    again.set_weights(model.weights().clone());
    assert_eq!(infer(&mut again), []);
    Ok(again)
}

fn names<'m>(ends: impl Iterator<Item = &'m Layer>) -> Vec<&'m str> {
    ends.map(Layer::name).collect()
}

/// Checks that a statement is refused, with a text that has this reason.
fn refuses(listing: &str, cases: &[(&str, &str)]) {
    for (statement, reason) in cases {
        let error = rewritten(listing, statement).map(|model| model.to_string()).unwrap_err();
        assert!(error.contains(reason), "{statement}: {error}");
    }
}

/// An operation without its set is the newest in an expression, and the oldest in the replacement of a rule.
#[test]
fn an_operation_of_an_expression_is_its_newest_revision_that_fits() {
    let made = |statement: &str, ty: &str| {
        let model = rewritten(SUM, statement).unwrap();
        model.graph().layers().find(|layer| layer.ty() == ty).unwrap().version().to_owned()
    };
    for (expression, ty, version) in [
        ("Softmax(\"c\")", "SoftMax", "opset8"),
        ("Gelu(\"c\")", "Gelu", "opset7"),
        ("ShapeOf(\"c\") {output_type=i64}", "ShapeOf", "opset3"),
        ("Gather(\"c\", [0], 1)", "Gather", "opset8"),
        ("Broadcast(\"c\", [2, 3, 4])", "Broadcast", "opset3"),
        ("TopK(\"c\", 2) {axis=1, mode=max, sort=value}", "TopK", "opset11"),
        ("Abs(\"c\")", "Abs", "opset1"),
    ] {
        assert_eq!(made(&format!("add output new = {expression}"), ty), version, "{expression}");
    }
    assert_eq!(made("Multiply(x, y) => Softmax(x)", "SoftMax"), "opset1");
    refuses(
        SUM,
        &[
            ("add output new = TopK(\"c\", [1, 2]) {axis=1, mode=max, sort=value}", "TopK-11 does not accept"),
            ("add output new = TopK-3(\"c\", [1, 2]) {axis=1, mode=max, sort=value}", "TopK-3 does not accept"),
            ("add output new = Concat(\"c\", 1) {axis=5}", "Concat does not accept"),
        ],
    );
}

const SUM: &str = "
    a = Parameter : f32[?,4] \"a\"
    b = Parameter : f32[?,4] \"b\"
    w = Const(2) : f32[4]
    c = Add(a, b) : f32[?,4] \"c\"
    d = Multiply(c, w) : f32[?,4] \"d\"
    e = Abs(d) : f32[?,4] \"e\"
    r = Result(d)
    s = Result(e)
";

#[test]
fn an_added_input_has_a_name_and_comes_last() {
    let model = rewritten(SUM, "add input mask : f32[?,4]\nafter c : Multiply(_, mask)").unwrap();
    assert_eq!(names(model.inputs()), ["a", "b", "mask"]);
    assert_eq!(model.graph().tensor_named("mask").unwrap().unwrap().layer, model.find_input("mask").unwrap());
    // The order of inputs is that in which they were added, whichever is used first.
    let statements = "add input n : f32[?,4]\nadd input m : f32[?,4]\nafter a : Add(_, m)\nafter e : Add(_, n)";
    assert_eq!(names(rewritten(SUM, statements).unwrap().inputs()), ["a", "b", "n", "m"]);
    refuses(
        SUM,
        &[
            ("add input a : f32[2]", "add input a: a layer named `a` already exists"),
            ("add inptu x : f32[2]", "expected `input` or `output`, found `inptu`"),
            ("add input x", "expected `:`"),
        ],
    );
}

#[test]
fn outputs_are_added_removed_and_ordered() {
    let model = rewritten(SUM, "add output both = Concat(c, e) {axis=0}").unwrap();
    assert!(model.find_output("both").is_ok());
    assert_eq!(model.outputs().count(), 3);
    let model = rewritten(SUM, "remove output d\norder inputs b").unwrap();
    assert_eq!((names(model.inputs()), names(model.outputs())), (vec!["b", "a"], vec!["s"]));
    // Layers that only the output needed are removed, inputs included.
    let model = rewritten(SUM, "add output only = Abs(b)\nredirect c -> a\nremove output only").unwrap();
    assert_eq!(names(model.inputs()), ["a"]);
    let model = rewritten(SUM, "order outputs e, d").unwrap();
    assert_eq!(names(model.outputs()), ["s", "r"]);
    let model = rewritten(SUM, "order outputs [s, r]").unwrap();
    assert_eq!(names(model.outputs()), ["s", "r"]);
    refuses(
        SUM,
        &[
            ("remove output d, e", "the model would have no outputs"),
            (
                "remove input a",
                "`c` uses the input `a`: replace the input first with `redirect a -> …` or `freeze a = …`",
            ),
            ("remove output f", "the model has no output `f`"),
            ("order inputs a, a", "layer 0 `a` is given twice"),
            ("order inputs", "expected a name"),
        ],
    );
}

#[test]
fn a_frozen_input_is_a_constant() {
    let listing =
        "x = Parameter : f32[2]\ny = Parameter : i64[?]\nz = Gather(x, y, k)\nk = Const(0) : i64[]\nr = Result(z)";
    let model = rewritten(listing, "freeze y = [1, 0]\nfreeze x = 0.5").unwrap();
    assert_eq!(model.inputs().count(), 0);
    let of = |name: &str| model.graph().layer(model.graph().find(name).unwrap()).unwrap();
    assert_eq!(of("y").numbers(model.weights()), Some(vec![1.0, 0.0]));
    assert_eq!(of("x").numbers(model.weights()), Some(vec![0.5, 0.5]));
    refuses(
        listing,
        &[
            ("freeze x = [1, 2, 3]", "the value has shape [3], but the input `x` has [2]"),
            ("freeze y = z", "`z` is not a constant with known values"),
            ("freeze w = 0", "the model has no input `w`"),
        ],
    );
}

#[test]
fn expressions_name_any_tensor() {
    let model = rewritten(SUM, "after c : Multiply(_, b) + w").unwrap();
    let text = model.to_string();
    assert!(text.contains("Multiply(3, 1)"), "{text}");
    // Arithmetic on constants is computed, other arithmetic becomes layers.
    let model = rewritten(SUM, "after c : _ * (w + 1)").unwrap();
    assert!(model.to_string().contains("Const(3) : f32[4]"), "{model}");
    let model = rewritten(SUM, "let twice = c + c\nlet unused = Relu(c)\nafter e : _ - twice").unwrap();
    assert!(model.to_string().contains("Add(3, 3)") && !model.to_string().contains("Relu"), "{model}");
    let model = rewritten(SUM, "before \"a\" : Multiply(_, \"b\")").unwrap();
    assert!(model.to_string().contains("Multiply(0, 1)"));
    refuses(
        SUM,
        &[
            ("after c : Multiply(_, bb)", "no layer and no tensor is called `bb`"),
            ("let _ = c", "expected a name"),
            ("let x = Relu(_)", "`_` cannot be used in this statement"),
            ("after c : Multiply(_, )", "expected an operation, a name or a number"),
            ("after c : sqrt(_)", "arithmetic needs constants"),
        ],
    );
}

#[test]
fn redirected_consumers_use_another_tensor() {
    // Nothing needs `b` and the sum any more.
    let model = rewritten(SUM, "redirect c -> a").unwrap();
    assert_eq!(names(model.inputs()), ["a"]);
    assert!(model.graph().find("c").is_err());
    // Layers from which the new tensor is computed keep the old one.
    let model = rewritten(SUM, "redirect c -> Relu(c) * 2").unwrap();
    assert_eq!(model.graph().users(model.graph().find("c").unwrap()).count(), 1);
    // An output keeps its name.
    let model = rewritten(SUM, "redirect e -> Relu(d)").unwrap();
    assert!(model.find_output("e").is_ok() && model.graph().find("e").is_ok(), "{model}");
    let model = rewritten(SUM, "redirect w -> 3").unwrap();
    assert!(model.to_string().contains("Const(3) : f32[4]"), "{model}");
    refuses(
        SUM,
        &[
            ("redirect c -> c", "`c` would be connected to itself"),
            ("redirect d -> a", "Result 6 `r` would lose its name"),
            ("redirect c -> Convert(c) {destination_type=f16}", "cannot replace"),
            ("redirect c a", "expected `->`"),
        ],
    );
}

const CACHE: &str = "
    x = Parameter : f32[?,1,4] \"x\"
    past.0 = Parameter : f32[?,?,4] \"past.0\"
    past.1 = Parameter : f32[?,?,4] \"past.1\"
    k = Concat(past.0, x) {axis=1}
    v = Concat(past.1, x) {axis=-2}
    y = MatMul(k, v) {transpose_b=true}
    present.0 = Result(k)
    present.1 = Result(v)
    out = Result(y)
";

#[test]
fn inputs_and_outputs_become_variables_and_come_back() {
    let model = rewritten(CACHE, "stateful past.* -> present.* reorder beam_idx").unwrap();
    assert_eq!((names(model.inputs()), names(model.outputs())), (vec!["x", "beam_idx"], vec!["out"]));
    let text = model.to_string();
    let variable = "past.0 = ReadValue-6(";
    assert!(
        text.contains(variable)
            && text.contains("{variable_id=past.0present.0, variable_type=f32, variable_shape=\"?,?,4\""),
        "{text}"
    );
    assert_eq!(text.matches("Gather-8(").count(), 2, "each variable is gathered by the beams");
    let back = Script::run(&"stateless".parse().unwrap(), model).unwrap().0;
    assert_eq!(names(back.inputs()), ["x", "beam_idx", "past.0", "past.1"]);
    assert!(back.find_output("present.0").is_ok() && back.find_output("present.1").is_ok());
    assert!(!back.to_string().contains("Broadcast"), "the first values are removed: {back}");
    let model = rewritten(CACHE, "stateful past.* -> present.*\nstateless past.1 -> present.1").unwrap();
    assert_eq!(names(model.inputs()), ["x", "past.1"]);
    // Zeros as long as the first other input, whose first dimension is unknown too.
    assert!(model.to_string().contains("ShapeOf"), "{model}");
    refuses(
        CACHE,
        &[
            ("stateful past.* -> now.*", "the model has no output `now.0`"),
            ("stateful past.* -> present", "`present` must have as many `*` and `?` as `past.*`"),
            ("stateless", "the model has no variables"),
            ("state past.0 : f16", "`past.0` is an input, which `input past.0 : f16` changes"),
        ],
    );
    let listing = "x = Parameter : f32[2]\ny = Convert(x) {destination_type=f16}\nr = Result(y)";
    refuses(listing, &[("stateful x -> r", "the input `x` has type f32[2], but the output `r` has f16[2]")]);
}

#[test]
fn a_variable_gets_another_type() {
    let model = rewritten(CACHE, "stateful past.* -> present.*\nstate past.*present.* : f16").unwrap();
    let text = model.to_string();
    assert_eq!(text.matches("variable_type=f16").count(), 2, "{text}");
    // Before the first value, after each read, and before each write.
    assert_eq!(text.matches("destination_type=f16").count(), 4, "{text}");
    assert_eq!(text.matches("destination_type=f32").count(), 2, "{text}");
}

/// Converts that only an earlier change of the variable needed would hide the cache from plugins.
#[test]
fn a_variable_that_gets_its_type_back_has_no_converts() {
    let stateful = "stateful past.* -> present.* reorder beam_idx";
    let there_and_back = format!("{stateful}\nstate past.*present.* : f16\nstate past.*present.* : f32");
    let [once, back] = [stateful, &there_and_back].map(|script| rewritten(CACHE, script).unwrap().to_string());
    assert_eq!(back.matches("Convert").count(), 0, "{back}");
    assert_eq!(back.lines().count(), once.lines().count(), "{back}");
    // An export has the Convert after the Gather, from which a ShapeOf also reads.
    let exported = "
        x = Parameter : f32[?,1,4] \"x\"
        beam_idx = Parameter : i32[?] \"beam_idx\"
        past = ReadValue-6(zeros) {variable_id=v, variable_type=f16, variable_shape=\"?,?,4\"}
        zero = Const(0) : f32[]
        shape = Const([1, 0, 4]) : i64[3]
        none = Broadcast(zero, shape)
        zeros = Convert(none) {destination_type=f16}
        axis = Const(0) : i64[]
        reordered = Gather-8(past, beam_idx, axis)
        length = ShapeOf(reordered)
        wide = Convert(reordered) {destination_type=f32}
        k = Concat(wide, x) {axis=1}
        narrow = Convert(k) {destination_type=f16}
        written = Assign-6(narrow) {variable_id=v}
        out = Result(k)
        lengths = Result(length)
    ";
    let model = rewritten(exported, "state v : f32").unwrap();
    assert!(!model.to_string().contains("Convert"), "{model}");
}

#[test]
fn a_layout_is_written_where_openvino_reads_it() {
    let model = rewritten(SUM, "layout a = [N,C]\ninfo b : layout = \"?C\"\nlayout e = NC").unwrap();
    let text = typelift::xml::write(&model, Default::default());
    assert_eq!(text.matches(r#"<attribute name="layout" version="0" layout=""#).count(), 3, "{text}");
    let port = text.split("</port>").next().unwrap();
    assert!(port.contains(r#"layout="[N,C]""#), "{port}");
    let model = rewritten(SUM, "info c.0 : origin = here").unwrap();
    assert!(typelift::xml::write(&model, Default::default()).contains(r#"value="here""#));
    refuses(
        SUM,
        &[
            ("layout a = [N,C,H,W]", "the layout [N,C,H,W] has 4 dimensions, but the tensor is f32[?,4]"),
            ("layout c = [N,C]", "the model has no input or output `c`"),
            ("layout a = \"N N\"", "the layout N N is "),
        ],
    );
}

#[test]
fn cut_takes_brackets_as_its_help_prints_them() {
    let model = rewritten(SUM, "cut [c] .. [e]").unwrap();
    assert_eq!((names(model.inputs()), names(model.outputs())), (vec!["c"], vec!["s"]));
    let model = rewritten(SUM, "cut [c, w] .. [d, e]").unwrap();
    assert_eq!(names(model.inputs()), ["c", "w"]);
    refuses(SUM, &[("cut [c .. d]", "expected `,` or `]`")]);
}

const SIBLINGS: &str = "
    x = Parameter : f32[4]
    a.0 = Relu(x)
    a.1 = Sin(a.0)
    b.0 = Abs(a.1)
    b.1 = Exp(a.1)
    s = Add(b.0, b.1)
    r = Result(s)
";

#[test]
fn a_pattern_is_redirected_and_cut_as_a_whole() {
    // Of the layers that replace matches, those that a later match leaves without a use are removed.
    let model = rewritten(SIBLINGS, "redirect a.* -> Floor(x)").unwrap();
    assert_eq!(model.graph().layers().filter(|layer| layer.ty() == "Floor").count(), 1, "{model}");
    // The order in the file is no order of the layers.
    let reversed: Vec<_> = SIBLINGS.trim().lines().rev().collect();
    let model = rewritten(&reversed.join("\n"), "redirect a.* -> x").unwrap();
    assert!(model.graph().find("a.0").is_err() && model.graph().find("a.1").is_err(), "{model}");
    // A consumer that the new tensor is computed from keeps the old one, whatever was redirected before.
    let model = rewritten(SIBLINGS, "redirect a.? -> Add(_, b.1)").unwrap();
    assert_eq!(model.graph().users(model.graph().find("a.1").unwrap()).count(), 2, "{model}");
    // A match that only removed layers use becomes an output too.
    let model = rewritten(SIBLINGS, "cut b.*").unwrap();
    assert_eq!(model.outputs().count(), 2, "{model}");
    refuses(SIBLINGS, &[("cut a.*", "`a.1` depends on another tensor of the list")]);
}

#[test]
fn rules_use_the_tensors_that_let_has_named() {
    let model = rewritten(SUM, "let half = Multiply(a, 0.5)\nAbs(x) => Maximum(x, half)").unwrap();
    let maximum = model.graph().layers().find(|layer| layer.ty() == "Maximum").unwrap();
    let half = model.graph().producer(maximum.id().input(1)).unwrap();
    let half = model.graph().layer(half.layer).unwrap();
    assert_eq!(
        (half.ty(), model.graph().producer(half.id().input(0)).unwrap().layer),
        ("Multiply", model.find_input("a").unwrap())
    );
    // Without a use, nothing of it stays.
    let model = rewritten(SUM, "let half = Multiply(a, 0.5)\nAbs(x) => Negative(x)").unwrap();
    assert_eq!(model.graph().layers().filter(|layer| layer.ty() == "Multiply").count(), 1);
    // A name is there for later lines only, and the pattern's own names come first.
    refuses(SUM, &[("Abs(x) => Maximum(x, half)\nlet half = Multiply(a, 0.5)", "`half` is not in the pattern")]);
    let model = rewritten(SUM, "let x = Multiply(a, 0.5)\nAbs(x) => Negative(x)").unwrap();
    assert_eq!(model.graph().layers().filter(|layer| layer.ty() == "Multiply").count(), 1);
}

#[test]
fn new_layers_of_a_rule_are_named_after_its_root() {
    let model = rewritten(SUM, "Abs(x) => Maximum(x, Negative(x))").unwrap();
    let negative = model.graph().layers().find(|layer| layer.ty() == "Negative").unwrap();
    assert_eq!(negative.name(), format!("e/Negative_{}", negative.id()));
    assert!(model.graph().find("e").is_ok());
}

#[test]
fn statements_report_what_they_removed() {
    let script: Script =
        "redirect c -> a\nremove output d\ninput a : f32[1,4]\nfreeze a = 1\nrename e abs".parse().unwrap();
    let (_, report) = script.run(read(SUM)).unwrap();
    let texts: Vec<String> = report.statements.iter().map(ToString::to_string).collect();
    assert_eq!(
        texts,
        [
            "redirect c: removed 2 layers; input `b`",
            "remove output d: removed 1 layer; output `d`",
            "freeze a: removed input `a`",
        ]
    );
}

#[test]
fn blocks_are_kept_by_their_numbers() {
    let listing =
        "x = Parameter : f32[2]\nm.0.act = Exp(x)\nm.1.act = Exp(m.0.act)\nm.2.act = Exp(m.1.act)\nr = Result(m.2.act)";
    let model = rewritten(listing, "keep f32 block 0..1").unwrap();
    let text = typelift::xml::write(&model, Default::default());
    let marked = |name: &str| text.split("<layer ").find(|part| part.contains(name)).unwrap().contains("precise");
    assert!(marked("m.0.act") && marked("m.1.act") && !marked("m.2.act"), "{text}");
    refuses(listing, &[("keep f32 block 7", "`block:7-7` matches no layer; did you mean `block:0-2`?")]);
}
