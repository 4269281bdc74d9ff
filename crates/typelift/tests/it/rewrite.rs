//! Rules: what they match, what they leave alone, and what they refuse.

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

/// The model after one rule.
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

#[test]
fn explain_points_at_each_detail_that_misses() {
    let details = [
        ("Const(3)", "Const(2.5)"),
        ("max=6", "max=5"),
        ("r = Result", "q = Result(b)\nr = Result"),
        ("Divide(c, six)", "Divide(six, c)"),
        ("Multiply(b, x)", "Multiply(b, three)"),
        ("Divide(c, six)", "Multiply(c, six)"),
    ];
    let mut explained = String::new();
    for (from, to) in details {
        let model = model(&HSWISH.replace(from, to));
        explained += &format!("{}\n\n", model.explain(&rule(RULE), None).unwrap());
    }
    let half = model(HSWISH);
    explained += &format!("{}\n\n", half.explain(&rule("Clamp(Add(x: f16, 3)) => Relu(x)"), None).unwrap());
    let when = rule("Clamp(x) => Relu(x)").when(|m| Err(format!("{} is not wanted", m.root().name())));
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
        "Divide(x, c) => Multiply(x, 1 / c)",
        "HSwish-2(x) => x",
        "Convert(x) {destination_type=$t} => Convert(x) {destination_type=$u}",
        "Relu(Add?(x, c)) => Relu(c)",
        "Relu(x: float) => x",
        "(a, b) = Split(x, 0) => (x)",
        "Relu(x) => Relu?(x)",
        "Relu(_) => Relu(_)",
    ];
    let errors = texts.map(|text| format!("{}\n", text.parse::<Rule>().unwrap_err()));
    let scripts = ["renam a b", "input x u8[1]", "expect nothing 1..", "a: Relu(x) => x\nexpect b 1", "expect", "cut"];
    let scripts = scripts.map(|text| format!("{}\n", text.parse::<Script>().unwrap_err()));
    insta::assert_snapshot!(errors.join("\n") + "\n" + &scripts.join("\n"));
}

#[test]
fn a_refused_rewrite_changes_nothing() {
    let cases = [
        ("Divide(x, y) => Convert(x) {destination_type=f16}", "would change"),
        ("Divide(x, y) => Convert(Divide(x, y)) {destination_type=f32}", "matches again"),
        ("Clamp(x) => Relu(Clamp(x) {...})", "matches again"),
        ("Add(x, y) => Add(y, x)", "matches again"),
        ("Divide(x, y) => ReduceMean(x, 9)", "cannot be applied"),
        ("Clamp(x)", "what takes its place"),
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
    let error = model.rewrite(&[rule("Divide(x, c: const) => Multiply(x, 1 / c)")]).unwrap_err().to_string();
    assert!(error.contains("not exact in i32"), "{error}");
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
    let apply =
        |model: &mut Model, name: &str| model.rewrite(&library::get(name).unwrap().rules()).unwrap().applied.len();
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
