//! Rules: matches, near misses, and refusals.

use typelift::rewrite::{Rule, Script, library};
use typelift::{Model, infer};

const HSWISH: &str = "\
x = Parameter : f32[?,8] \"images\"
three = Const(3) : f32[]
six = Const([[6]]) : f32[1,1]
a = Add(three, x)
b = Clamp(a) {min=0, max=6}
c = Multiply(b, x)
d = Divide(c, six) : f32[?,8] \"out\"
r = Result(d) \"out\"
";
const RULE: &str = "Divide(Multiply(x, Clamp(Add(x, 3)) {min=0, max=6}), 6) => HSwish-4(x)";

fn model(text: &str) -> Model {
    let mut model = Model::from_text(text).unwrap_or_else(|error| panic!("{error}"));
    let _of_no_interest = infer(&mut model);
    model
}

fn rule(text: &str) -> Rule {
    text.parse().unwrap_or_else(|error| panic!("{error}"))
}

/// Returns the model after one rule.
fn rewritten(text: &str, rules: &[&str]) -> String {
    let mut model = model(text);
    let rules: Vec<_> = rules.iter().map(|text| rule(text)).collect();
    model.rewrite(&rules).unwrap_or_else(|error| panic!("{error}"));
    model.graph().verify().unwrap();
    model.to_text()
}

#[test]
fn the_root_stays_and_the_rest_goes() {
    let expected =
        "0 x = Parameter : f32[?,8] \"images\"\n6 d = HSwish(0) : f32[?,8] \"out\"\n7 r = Result(6) \"out\"\n";
    assert_eq!(rewritten(HSWISH, &[RULE]), expected);
    for (from, to) in [("f32", "f16"), ("Add(three, x)", "Add(x, three)"), ("Const(3)", "Const(3.0)")] {
        assert!(rewritten(&HSWISH.replace(from, to), &[RULE]).contains("HSwish(0)"));
    }
}

/// A rule, a graph, and texts in the graph, each with a replacement.
type Miss = (&'static str, &'static str, &'static [(&'static str, &'static str)]);

/// Rewrites that match these graphs, each with small changes of the graph that prevent the match. A change concerns a
/// value, an attribute, a shared use, the order of inputs, a type, or the boundary of a body.
const MISSES: &[Miss] = &[
    (
        RULE,
        HSWISH,
        &[
            ("Const(3)", "Const(2.5)"),
            ("max=6", "max=5"),
            ("r = Result", "q = Result(b)\nr = Result"),
            ("Divide(c, six)", "Divide(six, c)"),
            ("Multiply(b, x)", "Multiply(b, three)"),
            ("Divide(c, six)", "Multiply(c, six)"),
        ],
    ),
    (
        "Divide(x, c: const f32) => Multiply(x, 1 / c)",
        "x = Parameter : f32[2]\nc = Const([2, 4]) : f32[2]\ny = Divide(x, c)\nr = Result(y)",
        &[("Divide(x, c)", "Divide(c, x)"), ("f32", "f16"), ("c = Const([2, 4])", "c = Parameter")],
    ),
    (
        "Add(x, 0) => x",
        "x = Parameter : f32[2]\nc = Const([0, 0]) : f32[2]\ny = Add(x, c)\nr = Result(y)",
        &[("[0, 0]", "[0, 1]"), ("Add", "Subtract")],
    ),
    (
        "Transpose(Convert(x: f16) {destination_type=f32}, [1, 0]) => Convert(Transpose(x, [1, 0])) {destination_type=f32}",
        "x = Parameter : f16[2,3]\na = Convert(x) {destination_type=f32}\np = Const([1, 0]) : i64[2]\nb = Transpose(a, p)\nr = Result(b)",
        &[("f16", "bf16"), ("=f32", "=f64"), ("[1, 0]", "[0, 1]"), ("r =", "s = Result(a)\nr =")],
    ),
    (
        "(a, b) = Split(x, 1) {num_splits=2} => (a, b) = VariadicSplit(x, 1, [2, 2])",
        "x = Parameter : f32[2,6]\none = Const(1) : i64[]\ns = Split(x, one) {num_splits=2}\na = Result(s.0)\nb = Result(s.1)",
        &[("num_splits=2", "num_splits=3"), ("Const(1)", "Const(0)")],
    ),
    (
        "MatMul(Softmax(Multiply(x, 0.5)) {axis=-1}, v) => MatMul(x, v)",
        "x = Parameter : f32[4,4]\nv = Parameter : f32[4,4]\nh = Const(0.5) : f32[]\na = Multiply(h, x)\nb = Softmax-8(a) {axis=-1}\nc = MatMul(b, v)\nr = Result(c)",
        &[("axis=-1", "axis=1"), ("0.5", "0.25"), ("MatMul(b, v)", "MatMul(v, b)")],
    ),
    (
        "Softmax-8(x) {axis=-1} => Softmax-1(x) {axis=1}",
        "x = Parameter : f32[4,4]\nb = Softmax-8(x) {axis=-1}\nr = Result(b)",
        &[("Softmax-8(x) {axis=-1}", "Softmax-1(x) {axis=1}"), ("axis=-1", "axis=0")],
    ),
    (
        "Convert(Convert(x: $t)) {destination_type=$t} => x",
        "x = Parameter : f16[2]\na = Convert(x) {destination_type=f32}\nb = Convert(a) {destination_type=f16}\nc = Relu(b)\nr = Result(c)",
        &[("f16[2]", "f64[2]"), ("r =", "s = Result(a)\nr =")],
    ),
    (
        "Concat(Relu(x), Relu(y)) {axis=0} => Relu(Concat(x, y))",
        "x = Parameter : f32[2]\na = Relu(x)\nb = Relu(x)\nc = Concat(a, b) {axis=0}\nr = Result(c)",
        &[("b = Relu", "b = Tanh"), ("Concat(a, b)", "Concat(a, b, a)"), ("axis=0", "axis=-1")],
    ),
    (
        "Divide(Relu(x: [?]), 2) => Multiply(Relu(x), 0.5)",
        LOOP,
        &[
            ("Divide(relu, two)", "Divide(bx, two)"),
            ("Const(2)", "Const(4)"),
            ("Divide(relu, two)", "Divide(relu, bx)"),
            ("f32[2]", "f32[2,1]"),
        ],
    ),
    ("Tanh(Relu(x)) => Relu(x)", LOOP, &[]),
];

const LOOP: &str = "\
x = Parameter : f32[2]
n = Const(3) : i64[]
go = Const(true) : boolean[]
loop = Loop(n, go, x) : f32[2]
  body (in 2 -> 0, out 5 -> 0, out 6 -> - {execution_condition}, back 5 -> 0):
    0 bx = Parameter : f32[2]
    1 relu = Relu(bx) : f32[2]
    2 two = Const(2) : f32[]
    3 z = Divide(relu, two) : f32[2]
    4 yes = Const(true) : boolean[]
    5 r = Result(z)
    6 c = Result(yes)
last = Tanh(loop)
r = Result(last)
";

#[test]
fn explain_points_at_each_detail_that_misses() {
    let mut explained = String::new();
    for (text, graph, changes) in MISSES {
        let explain = |graph: &str| model(graph).explain(&rule(text), None).unwrap();
        assert_eq!(explain(graph).matches, !changes.is_empty(), "{text}");
        for (from, to) in *changes {
            assert!(graph.contains(from), "{from} in {graph}");
            let found = explain(&graph.replace(from, to));
            assert!(!found.matches, "{text} matches in spite of {to}");
            explained += &format!("{from} → {to}\n{found}\n\n");
        }
        if changes.is_empty() {
            explained += &format!("{}\n\n", explain(graph));
        }
    }
    let half = model(HSWISH);
    let when = rule("Clamp(x) => Relu(x)").when(|m| Err(format!("{} is not wanted", m.root.name())));
    explained += &format!("{}\n\n", half.explain(&when, Some("b")).unwrap());
    insta::assert_snapshot!(explained);
}

#[test]
fn rules_that_cannot_be_read_say_where_and_why() {
    let texts = [
        "Rleu(x) => x",
        "Relu(x) => y",
        "Relu(x) => Divdie(x, 2)",
        "Relu(x, y) => x",
        "Elu(x) {alhpa=1} => x",
        "Relu?(x) => x",
        "x => Relu(x)",
        "Relu(x",
        "Relu(x) => ",
        "Relu(x) => Relu(x) extra",
        "Divide(x, c) => Multiply(x, sqrt(c))",
        "Clamp(x)",
        "HSwish-2(x) => x",
        "Convert(x) {destination_type=$t} => Convert(x) {destination_type=$u}",
        "Relu(Add?(x, c)) => Relu(c)",
        "Relu(x: float) => x",
        "(a, b) = Split(x, 0) => (x)",
        "Relu(x) => Relu?(x)",
        "Relu(_) => Relu(_)",
    ];
    let errors = texts.map(|text| format!("{}\n", text.parse::<Rule>().unwrap_err()));
    let scripts = [
        "renam a b",
        "input x u8[1]",
        "expect nothing 1..",
        "a: Relu(x) => x\nexpect b 1",
        "expect",
        "cut",
        "freeze x 0",
        "delete relu",
        "remove layer relu",
        "input x : float16",
    ];
    let scripts = scripts.map(|text| format!("{}\n", text.parse::<Script>().unwrap_err()));
    insta::assert_snapshot!(errors.join("\n") + "\n" + &scripts.join("\n"));
}

#[test]
fn a_refused_rewrite_changes_nothing() {
    let cases = [
        ("Divide(x, y) => Convert(x) {destination_type=f16}", "would change"),
        ("Divide(x, y) => Convert(Divide(x, y)) {destination_type=f32}", "its own output again"),
        ("Clamp(x) => Relu(Clamp(x) {...})", "its own output again"),
        ("Add(x, y) => Add(y, x)", "its own output again"),
        ("Divide(x, y) => ReduceMean(x, 9)", "cannot be applied"),
        ("Divide(x, y) => Elu(x)", "layer 6 `d`: Elu does not accept its inputs or attributes: it requires `alpha`"),
        ("Add(x, y) => Result(x)", "feeds layer 4 `b`; add another Result"),
        ("Divide(x, y) => Result(x)", "feeds layer 7 `r`"),
        ("Divide(x, y) => Relu(Result(x))", "cannot feed another layer"),
        ("Result(x) => Relu(x)", "layer 7 `r` is an output of its graph"),
    ];
    for (text, expected) in cases {
        let mut model = model(HSWISH);
        let before = (model.to_text(), typelift::xml::write(&model, Default::default()));
        let error = model.rewrite(&[rule(text)]).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
        assert_eq!((model.to_text(), typelift::xml::write(&model, Default::default())), before);
    }
}

#[test]
fn arithmetic_and_types_of_constants_follow_the_rule() {
    let text = "x = Parameter : f16[2]\nc = Const([2, 4])  : f16[2]\ny = Divide(x, c)\nr = Result(y)";
    let result = rewritten(text, &["Divide(x, c: const f16) => Multiply(Add(x, 0.5), (1 + 1) / c)"]);
    assert!(result.contains("Const([1, 0.5]) : f16[2]") && result.contains("Const(0.5) : f16[]"), "{result}");
    let text = text.replace("f16", "i32");
    let mut model = model(&text);
    let error = model.rewrite(&[rule("Divide(x, c: const i32) => Multiply(x, 1 / c)")]).unwrap_err().to_string();
    assert!(error.contains("not exact in i32"), "{error}");
    // A rule that does not speak of integers is for floating point.
    assert_eq!(model.rewrite(&[rule("Divide(x, c: const) => Multiply(x, 1 / c)")]).unwrap().applied, []);
}

#[test]
fn a_scale_moves_into_the_weights() {
    let text = "x = Parameter : f32[1,2,4,4]\nw = Const(2) : f32[3,2,1,1]\ns = Const([[[1]], [[2]], [[3]]]) : f32[3,1,1]\n\
        c = Convolution(x, w) {strides=\"1,1\", pads_begin=\"0,0\", pads_end=\"0,0\", dilations=\"1,1\"}\ny = Multiply(c, s)\nr = Result(y)";
    let fold = "Multiply(Convolution(x, w: const f32), s: const f32) => Convolution(x, w * reshape(s, [-1, 1, 1, 1]))";
    let result = rewritten(text, &[fold]);
    assert!(result.contains("Const([[[[2]], [[2]]], [[[4]], [[4]]], [[[6]], [[6]]]]) : f32[3,2,1,1]"), "{result}");
    assert!(result.contains("y = Convolution(0, "), "{result}");
}

#[test]
fn bodies_are_rewritten_and_their_borders_respected() {
    let text = "\
x = Parameter : f32[2]
n = Const(3) : i64[]
go = Const(true) : boolean[]
half = Const(2) : f32[]
y = Divide(x, half)
loop = Loop(n, go, y) : f32[2]
  body (in 2 -> 0, out 3 -> 4, out - -> 5):
    0 bx = Parameter : f32[2]
    1 two = Const(2) : f32[]
    2 z = Divide(0, 1) : f32[2]
    3 yes = Const(true) : boolean[]
    4 r = Result(2)
    5 c = Result(3)
r = Result(loop)
";
    let text = text.replace("out 3 -> 4, out - -> 5", "out 4 -> 0, out 5 -> - {execution_condition}, back 4 -> 0");
    let result = rewritten(&text, &["Divide(x, c: const f32) => Multiply(x, 1 / c)"]);
    assert_eq!(result.matches("Multiply(").count(), 2, "{result}");
    assert_eq!(rewritten(&text, &["Divide(Divide(x, 2), 2) => Divide(x, 4)"]).matches("Divide(").count(), 2);
}

#[test]
fn several_outputs_take_new_ones() {
    let text = "\
x = Parameter : f32[4,2]
axis = Const(0) : i64[]
s = Split(x, axis) {num_splits=2}
a = Result(s.0)
b = Result(s.1)
";
    let result = rewritten(text, &["(a, b) = Split(x, 0) {num_splits=2} => (a, b) = VariadicSplit(x, 0, [2, 2])"]);
    assert!(result.contains("s = VariadicSplit(0, ") && result.contains("Result(2.1)"), "{result}");
}

#[test]
fn a_hub_and_a_chain_are_rewritten_at_every_place() {
    let uses: String = (0..50).map(|at| format!("a{at} = Relu(x)\nr{at} = Result(a{at})\n")).collect();
    let result = rewritten(&format!("x = Parameter : f32[2]\n{uses}"), &["Relu(x) => Maximum(x, 0)"]);
    assert_eq!(result.matches("Maximum(").count(), 50);
    let chain: String = (1..50).map(|at| format!("a{at} = Relu(a{})\n", at - 1)).collect();
    let result =
        rewritten(&format!("a0 = Parameter : f32[2]\n{chain}r = Result(a49)\n"), &["Relu(Relu(x)) => Relu(x)"]);
    assert_eq!(result.matches("ReLU(").count(), 1, "{result}");
}

#[test]
fn a_result_keeps_its_name() {
    let text =
        "x = Parameter : f32[2] \"x\"\nz = Const(0) : f32[]\ny = Add(x, z) : f32[2] \"y\"\nr = Result(y) \"y\"\n";
    assert!(rewritten(text, &["Add(x, 0) => x"]).contains("y = Add("));
}

#[test]
fn a_set_and_its_inverse_give_what_was_there() {
    let mut model = model(HSWISH);
    let apply = |model: &mut Model, name: &str| {
        model.rewrite(&library::get(name).unwrap().rules().unwrap()).unwrap().applied.len()
    };
    assert_eq!(apply(&mut model, "fuse-hswish"), 1);
    let fused = model.to_text();
    assert_eq!(apply(&mut model, "split-hswish"), 1);
    assert_eq!(apply(&mut model, "fuse-hswish"), 1);
    assert_eq!(model.to_text(), fused);
}

#[test]
fn statements_edit_what_a_model_takes_and_gives() {
    let script = "
        rename out scores
        input images : u8[1,8]
        before images : Divide(Subtract(Convert(_) {destination_type=f32}, [1, 2, 3, 4, 5, 6, 7, 8]), 255)
        after scores : Softmax-8(_) {axis=-1}
        hswish: Divide(Multiply(x, Clamp(Add(x, 3)) {min=0, max=6}), 6) => HSwish-4(x)
        expect hswish 1..1
    ";
    let (model, _) = script.parse::<Script>().unwrap().run(model(HSWISH)).unwrap_or_else(|error| panic!("{error}"));
    insta::assert_snapshot!(model.to_text());
}

#[test]
fn the_rest_of_a_layer_is_taken_over() {
    let text = "\
x = Parameter : f32[2,8]
k = Const(3) : i64[]
t = TopK-11(x, k) {axis=1, mode=max, sort=value}
a = Result(t.0)
b = Result(t.1)
";
    let older = "(a, b) = TopK-11(...) => (a, b) = TopK-3(...) {...}";
    let result = rewritten(text, &[older]);
    assert!(result.contains("t = TopK-3(0, 1) {axis=1, sort=value}"), "{result}");
    // Attributes that the older revision lacks must have their defaults, or be named in the pattern.
    let stable = text.replace("sort=value", "sort=value, stable=true");
    let error = model(&stable).rewrite(&[rule(older)]).unwrap_err().to_string();
    assert!(error.contains("has stable=true, which the new TopK does not support"), "{error}");
    let asked = older.replace("TopK-11(...)", "TopK-11(x, ...) {stable=true}").replace("TopK-3(...)", "TopK-3(x, ...)");
    assert!(rewritten(&stable, &[&asked]).contains("t = TopK-3(0, 1)"));

    let text =
        "x = Parameter : f32[2]\ny = Parameter : f32[2]\nc = Concat(x, y, x) {axis=0}\nz = Relu(c)\nr = Result(z)";
    let result = rewritten(text, &["Relu(Concat(x, ...)) => Concat(Relu(x), ...) {...}"]);
    assert!(result.contains("Concat(5, 1, 0)"), "{result}");
}

#[test]
fn types_are_asked_for_and_bound() {
    let text = "x = Parameter : f16[2]\ny = Sin(x)\nr = Result(y)";
    let wide = "Sin(x: f16|bf16) => Convert(Cos(Convert(x) {destination_type=f32})) {destination_type=f16}";
    assert!(rewritten(text, &[wide]).contains("Cos("));
    assert!(rewritten(&text.replace("f16", "f64"), &[wide]).contains("Sin("));
    let bound = "Sin(x: $t[?]) => Convert(Cos(Convert(x) {destination_type=f32})) {destination_type=$t}";
    for ty in ["f16", "f64"] {
        assert!(rewritten(&text.replace("f16", ty), &[bound]).contains(&format!("{{destination_type={ty}}}")));
    }
    let pair = "x = Parameter : f16[2]\ny = Convert(x) {destination_type=f32}\nz = Convert(y) {destination_type=f16}\nr = Result(a)\na = Relu(z)";
    let back = "Convert(Convert(x: $t)) {destination_type=$t} => x";
    assert!(!rewritten(pair, &[back]).contains("Convert("));
    assert_eq!(rewritten(&pair.replace("f16[2]", "bf16[2]"), &[back]).matches("Convert(").count(), 2);
}

#[test]
fn constants_of_any_size_are_computed_with() {
    let text = "x = Parameter : f32[600,600]\nc = Const(4) : f32[600,600]\ny = Divide(x, c)\nr = Result(y)";
    let mut model = model(text);
    model.rewrite(&[rule("Divide(x, c: const f32) => Multiply(x, 1 / c)")]).unwrap();
    let constant = model.graph().layers().find(|layer| layer.ty() == "Const").unwrap();
    assert_eq!(constant.numbers(model.weights()), Some(vec![0.25; 360_000]));
    assert!(rewritten(text, &["Divide(x, 4) => Multiply(x, 0.25)"]).contains("Const(0.25) : f32[]"));
}

#[test]
fn what_neither_side_says_stays() {
    let text = "\
x = Parameter : f32[2,3]
y = Parameter : f32[4,3]
c = Convert(x) {destination_type=f64}
d = Convert(y) {destination_type=f64}
m = MatMul(c, d) {transpose_b=true}
r = Result(m)
";
    let below = "MatMul(Convert(x), Convert(y)) => Convert(MatMul(x, y))";
    let result = rewritten(text, &[below]);
    assert!(result.contains("{transpose_b=true}") && result.contains("{destination_type=f64}"), "{result}");
    // If the matched layers differ, nothing is guessed.
    let error = model(
        &text
            .replace("y = Parameter : f32[4,3]", "y = Parameter : f64[4,3]")
            .replace("Convert(y)", "Convert(yy)")
            .replace("d =", "yy = Convert(y) {destination_type=f16}\nd ="),
    )
    .rewrite(&[rule("MatMul(x, Convert(Convert(y))) => MatMul(x, Convert(Relu(y)))")])
    .unwrap_err()
    .to_string();
    assert!(error.contains("differ; write the attributes of the new Convert"), "{error}");
    // A replacement by an equal layer does not count as an application.
    assert_eq!(rewritten(text, &["MatMul(x, y) => MatMul(x, y)"]), rewritten(text, &[]));
    let text = "x = Parameter : f32[2]\ny = Relu(x)\nz = Tanh(y)\nr = Result(z)";
    assert!(rewritten(text, &["Tanh(Relu?(x)) => Tanh(x)"]).contains("z = Tanh(0)"));
}

#[test]
fn what_a_model_gives_keeps_its_type() {
    let text = "x = Parameter : f32[2]\ny = Convert(x) {destination_type=f16}\nr = Result(y)";
    let error = model(text).rewrite(&[rule("Result(Convert(x)) => Result(x)")]).unwrap_err().to_string();
    assert!(error.contains("from f16[2] to f32[2]"), "{error}");
}

/// Rules of the notation, each with a graph that matches, the result, and changes of the graph that prevent the match.
type Power = (&'static str, &'static str, &'static str, &'static [(&'static str, &'static str)]);

const POWERS: &[Power] = &[
    (
        "x * 0.5~ * (1 + e) => Gelu-7(x) {approximation_mode=$m}
            where e = Erf(x * 0.7071067811865476~) with $m=erf | Tanh(x) with $m=tanh",
        "x = Parameter : f32[2,3]\no = Const(1) : f32[1,1]\ns = Const(1.4142) : f32[]\nd = Divide(x, s)\ne = Erf(d)\na = Add(o, e)\nt = Const(2) : f32[]\nh = Divide(a, t)\ny = Multiply(h, x)\nr = Result(y)",
        "y = Gelu-7(0) : f32[2,3]",
        &[
            ("Const(1.4142)", "Const(1.41)"),
            ("Const(2)", "Const(2.1)"),
            ("Erf(d)", "Sin(d)"),
            ("o = Const(1) : f32[1,1]", "o = Const(1) : f32[1,1,1]"),
            ("r = Result(y)", "r = Result(y)\nq = Result(a)"),
        ],
    ),
    (
        "d * (v + e: const)^-0.5 => MVN-6(x, a) {normalize_variance=true, eps=e, eps_mode=INSIDE_SQRT}
            where m = ReduceMean(x, a: const) {keep_dims=true}, d = x - m, v = ReduceMean(d^2, a) {keep_dims=true}
            if size(e) == 1",
        "x = Parameter : f32[2,4]\na = Const([-1]) : i64[1]\nb = Const([-1]) : i64[1]\nm = ReduceMean(x, a) {keep_dims=true}\nd = Subtract(x, m)\nq = Multiply(d, d)\nv = ReduceMean(q, b) {keep_dims=true}\nc = Const(0.5) : f32[]\nw = Add(v, c)\ns = Sqrt(w)\ny = Divide(d, s)\nr = Result(y)",
        "y = MVN-6(0, 1) {eps=0.5, eps_mode=INSIDE_SQRT} : f32[2,4]",
        &[("b = Const([-1])", "b = Const([0])"), ("c = Const(0.5) : f32[]", "c = Const([[1], [2]]) : f32[2,1]")],
    ),
    (
        "once Softmax-8(Add?(x, m)) {axis=$a} => Softmax-8(Add(x, m else 0)) {axis=$a} if axis($a, x) == -1 && rank(x) in 1|2 && type(x) in f32|f64",
        "x = Parameter : f32[2,4]\ny = Softmax-8(x) {axis=1}\nr = Result(y)",
        "Const(0) : f32[]",
        &[("axis=1", "axis=0"), ("f32[2,4]", "f32[1,2,4]"), ("f32[2,4]", "f16[2,4]")],
    ),
    (
        "Concat(parts...) {axis=$a} => x where (parts...) = (Split|VariadicSplit)(x, n: const, ...) if axis(n, x) == axis($a, x)",
        "x = Parameter : f32[2,4]\nz = Relu(x)\nn = Const(-1) : i64[]\ns = Split(z, n) {num_splits=2}\nc = Concat(s.0, s.1) {axis=1}\ny = Tanh(c)\nr = Result(y)",
        "y = Tanh(1)",
        &[("Concat(s.0, s.1)", "Concat(s.1, s.0)"), ("axis=1", "axis=0")],
    ),
    (
        "Convolution(x, w: const) * s: const => Convolution(x, w * on(along(s, root, 1), w, 0)) {...} if channel(s, root, 1)",
        "x = Parameter : f32[1,2,4,4]\nh = Const(2) : f16[3,2,1,1]\nw = Convert(h) {destination_type=f32}\ns = Const([[[1]], [[2]], [[3]]]) : f32[3,1,1]\nc = Convolution(x, w) {strides=\"1,1\", pads_begin=\"0,0\", pads_end=\"0,0\", dilations=\"1,1\"}\ny = Multiply(c, s)\nr = Result(y)",
        "Const([[[[2]], [[2]]], [[[4]], [[4]]], [[[6]], [[6]]]]) : f16[3,2,1,1]",
        &[("Const([[[1]], [[2]], [[3]]]) : f32[3,1,1]", "Const([1, 2, 3, 4]) : f32[4]")],
    ),
];

#[test]
fn rules_see_what_people_see() {
    for (text, graph, expected, changes) in POWERS {
        let result = rewritten(graph, &[text]);
        assert!(result.contains(expected), "{text}\n{result}");
        for (from, to) in *changes {
            let changed = graph.replace(from, to);
            assert_ne!(changed, *graph, "{from}");
            assert_eq!(rewritten(&changed, &[text]), rewritten(&changed, &[]), "{text}: {from} → {to}");
        }
    }
}

#[test]
fn explain_speaks_of_arithmetic_as_rules_write_it() {
    let (text, graph, _, changes) = POWERS[0];
    let mut explained = String::new();
    for (from, to) in changes {
        let model = model(&graph.replace(from, to));
        explained += &format!("{from} → {to}\n{}\n\n", model.explain(&rule(text), Some("y")).unwrap());
    }
    insta::assert_snapshot!(explained);
}

#[test]
fn a_rule_that_tries_skips_a_site_and_says_so() {
    let text =
        "x = Parameter : f32[2]\ny = Relu(x)\nz = Relu(y)\nc = Const(1) : f32[1,1]\nw = Add(z, c)\nr = Result(w)";
    let mut model = model(text);
    let report = model.rewrite(&[rule("try wide: Add(x, c: const) => x"), rule("Relu(Relu(x)) => Relu(x)")]).unwrap();
    assert_eq!((report.applied.len(), report.skipped.len()), (1, 1));
    assert!(report.skipped[0].to_string().starts_with("wide skipped at 4 `w`: "), "{}", report.skipped[0]);
}

#[test]
fn a_rule_that_is_for_once_does_not_match_what_it_made() {
    let text = "x = Parameter : f32[2]\nc = Const(3) : f32[]\ny = Multiply(x, c)\nr = Result(y)";
    let result = rewritten(text, &["once Multiply(x, c: const f32) => Multiply(x, c * 2)"]);
    assert!(result.contains("Const(6) : f32[]"), "{result}");
}

#[test]
fn names_that_a_match_does_not_have_are_errors() {
    let pattern: typelift::rewrite::Pattern = "Elu(x) {alpha=$a}".parse().unwrap();
    let text = "x = Parameter : f32[2]\ny = Elu(x) {alpha=2}\nr = Result(y)";
    let wrong = pattern.clone().to(|m, _| Ok(m.tensor("typo")?.into()));
    let error = model(text).rewrite(&[wrong]).unwrap_err().to_string();
    assert!(error.contains("there is no tensor `typo`; the match has `x`"), "{error}");
    let wrong = pattern.when(|m| Err(m.attribute("nope").unwrap_err().into())).to(|m, _| Ok(m.tensor("x")?.into()));
    let found = model(text).explain(&wrong, None).unwrap();
    assert_eq!(found.reason.as_deref(), Some("there is no variable `$nope`; the match has `$a`"));
}

/// Returns the blocks of a document with this mark.
fn blocks<'d>(document: &'d str, mark: &str) -> Vec<&'d str> {
    let opening = format!("```{mark}\n");
    document.split(opening.as_str()).skip(1).map(|rest| rest.split("```").next().unwrap()).collect()
}

#[test]
fn what_the_documents_show_can_be_read() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let notation = std::fs::read_to_string(folder.join("notation.md")).unwrap();
    for listing in blocks(&notation, "listing") {
        assert_eq!(model(listing).to_string(), listing);
    }
    let rewriting = std::fs::read_to_string(folder.join("rewriting.md")).unwrap();
    let statements = blocks(&rewriting, "typelift");
    assert!(statements.len() >= 9);
    for statements in statements {
        statements.parse::<Script>().unwrap_or_else(|error| panic!("{error}"));
    }
    let mut table = "| `--use` | what it does | opposite |\n|---|---|---|\n".to_owned();
    for set in library::SETS {
        let inverse = set.inverse.map_or_else(String::new, |inverse| format!("`{inverse}`"));
        table += &format!("| `{}` | {} | {inverse} |\n", set.name, set.description());
    }
    let path = folder.join("rule-sets.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once("<!-- library -->\n").unwrap();
    let (shown, after) = rest.split_once("<!-- end -->").unwrap();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, format!("{before}<!-- library -->\n{table}<!-- end -->{after}")).unwrap();
    } else {
        assert_eq!(shown, table, "UPDATE_DOCS=1 writes the table anew");
    }
}

/// Returns a tree of sums, as a rule and as a graph.
fn sums(leaves: usize) -> (String, String) {
    let (mut pattern, mut graph): (Vec<String>, Vec<String>) =
        (0..leaves).map(|leaf| (format!("x{leaf}"), format!("x{leaf} = Parameter : f32[]\n"))).unzip();
    let mut names = pattern.clone();
    while names.len() > 1 {
        pattern = pattern.chunks(2).map(|pair| format!("Add({})", pair.join(", "))).collect();
        let sum = |pair: &[String]| (format!("{}_{}", pair[0], pair.len()), format!("Add({})", pair.join(", ")));
        let sums: Vec<_> = names.chunks(2).map(sum).collect();
        graph.extend(sums.iter().map(|(name, sum)| format!("{name} = {sum}\n")));
        names = sums.into_iter().map(|(name, _)| name).collect();
    }
    (format!("{} => Relu(x0)", pattern[0]), format!("{}r = Result({})", graph.concat(), names[0]))
}

#[test]
fn the_largest_pattern_matches_on_a_small_stack() {
    let (pattern, graph) = sums(128);
    let small = std::thread::Builder::new().stack_size(512 << 10);
    let rewritten = small.spawn(move || rewritten(&graph, &[&pattern])).unwrap().join().unwrap();
    assert!(rewritten.contains("ReLU(0)"), "{rewritten}");
    let refused = sums(256).0.parse::<Rule>().unwrap_err().to_string();
    assert!(refused.contains("over 256 terms"), "{refused}");
}

#[test]
fn new_values_that_leave_their_type_are_refused_or_counted() {
    let text = "x = Parameter : f16[3]\nc = Const([1, 40000, 0]) : f16[3]\ny = Multiply(x, c)\nr = Result(y)";
    let cases = [
        ("[1, 40000, 0]", "Multiply(x, c: const) => Divide(x, c * 2)", 1),
        ("[1, 40000, 0]", "Multiply(x, c: const) => Divide(x, 1 / c)", 1),
        ("[0, -0.0, 2]", "Multiply(x, c: const) => Divide(x, 1 / c)", 2),
        ("[1, 40000, 0]", "Multiply(x, c: const) => Divide(x, c + 2)", 0),
        ("[1, inf, 0]", "Multiply(x, c: const) => Divide(x, c * 2)", 0),
    ];
    for (values, text_of_rule, expected) in cases {
        let mut model = model(&text.replace("[1, 40000, 0]", values));
        let strict = model.rewrite(&[rule(text_of_rule)]);
        assert_eq!(strict.is_err(), expected > 0 || values.contains("inf"), "{text_of_rule}: {strict:?}");
        let mut model = self::model(&text.replace("[1, 40000, 0]", values));
        let report = model.rewrite(&[rule(&format!("{text_of_rule} allow overflow"))]).unwrap();
        assert_eq!(report.applied.iter().map(|site| site.losses.non_finite).sum::<usize>(), expected, "{text_of_rule}");
    }
}

/// The inputs of a definition lie elsewhere in the text than its operation: a correction once sliced from one to the other.
#[test]
fn attributes_among_the_inputs_of_a_definition_are_refused() {
    for body in ["Clamp(x, 0, 6)", "Convert(x, f32)", "Softmax(x, dim=1)"] {
        let refused = format!("def f(x) = {body}\nRelu(x) => f(x)").parse::<Script>().unwrap_err();
        assert!(refused.help.as_ref().is_some_and(|help| help.contains("in braces")), "{refused}");
    }
    let refused = "Relu(x) => Clamp(x, 0, 6)".parse::<Script>().unwrap_err();
    assert_eq!(refused.corrected().unwrap(), "Relu(x) => Clamp(x) {min=0, max=6}");
}
