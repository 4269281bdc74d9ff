//! Listings: what they omit, what they refuse, and that reading them returns the model.

use typelift::Model;

use crate::models::models;

/// Parses a text and prints it again.
fn again(text: &str) -> String {
    Model::from_text(text).unwrap_or_else(|error| panic!("{error}\n{text}")).to_text()
}

#[test]
fn everything_in_a_listing_comes_back() {
    let text = r#"model "a \"model\"" version 10
0 x = Parameter : f32[?,3,1..5] "a,b" "images"
1 "a b" = Const([[1, 2, 3]]) : f16[1,3]
2 aten::add/Add(x) = Split(0, 7) {num_splits=2} : f32[...], f32[...] "right"
7 axis = Const(1) : i64[]
9 odd = "My Op"-extension(2.1, 7) {a=[1, 2], b="1,2", c="", d.e=-1.5e-3} : dynamic[...], i64[] "n"
10 r = Result(9.1) "more" "scores"
"#;
    assert_eq!(again(text), text);
}

#[test]
fn bodies_come_back_with_what_ties_them() {
    let text = "\
0 x = Parameter : f32[2,4]
1 n = Const(3) : i64[]
2 go = Const(true) : boolean[]
3 loop = Loop(1, 2, 0) : f32[2,4], f32[?,4]
  body (in 2 -> 0, out 3 -> 0, out 4 -> 1 {axis=0, start=0, end=-1, stride=1, part_size=1}, out 5 -> - {execution_condition}, back 3 -> 0):
    0 bx = Parameter : f32[2,4]
    1 yes = Const(true) : boolean[]
    2 y = Relu(0) : f32[2,4]
    3 r0 = Result(2)
    4 r1 = Result(2)
    5 r2 = Result(1)
4 a = Result(3.0)
5 b = Result(3.1)
";
    let text = text.replace("Relu", "ReLU");
    assert_eq!(again(&text), text);
    assert_eq!(again(&text.replace('\n', "\r\n")), text);
    let indented: String = text.lines().map(|line| format!("    {line}\n\n")).collect();
    assert_eq!(again(&indented), text);
}

#[test]
fn types_and_ids_may_be_left_out() {
    let short = "
        x = Parameter : f32[1,3]   # comments are skipped
        y = Parameter : f32[3]

        s = Add(x, y)
        parts = Split(s, axis) {num_splits=3}
        axis = Const(1)
        r = Result(parts.2)
    ";
    let long = "\
0 x = Parameter : f32[1,3]
1 y = Parameter : f32[3]
2 s = Add(0, 1) : f32[1,3]
3 parts = Split(2, 4) {num_splits=3} : f32[1,1], f32[1,1], f32[1,1]
4 axis = Const(1) : i64[]
5 r = Result(3.2)
";
    assert_eq!(again(short), long);
}

#[test]
fn a_listing_that_cannot_be_read_says_where_and_why() {
    let texts = [
        "x = Paramter : f32[1]",
        "x = Parameter",
        "x = Parameter : float[1]",
        "x = Parameter : f32[1",
        "x = Parameter : f32[a]",
        "x = Parameter : f32[1] extra",
        "x = Parameter : f32[1]\ny = Relu(z)",
        "x = Parameter : f32[1]\ny = Relu(x.1)",
        "x = Parameter : f32[1]\n0 y = Relu(x)",
        "x = Parameter : f32[1]\n  y = Relu(x)",
        "c = Const(1.5) : i64[2]",
        "c = Const([1, [2]])",
        "c = Const",
        "c = Const : f32[1000000000,1000000000]",
        "c = Const : f32[?]",
        "x = Parameter : f32[1] \"open",
        "y = Elu(x) {alpha=1, alpha=2}",
        "model \"m\" version 12",
        "a = Relu(b)\nb = Relu(a)",
        "= Relu(x)",
        "3",
        "x Relu(y)",
    ];
    let errors = texts.map(|text| format!("{}\n", Model::from_text(text).unwrap_err()));
    insta::assert_snapshot!(errors.join("\n"));
}

#[test]
fn real_models_come_back() {
    for file in models(|name| name.ends_with(".xml")) {
        let mut model = Model::open(&file).unwrap();
        let _ = typelift::infer(&mut model);
        let text = model.to_text();
        let back = Model::from_text(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let (text, back) = (text.lines(), back.to_text());
        for (before, after) in text.zip(back.lines()) {
            // Omitted values are zeros.
            let same = before == after || before.contains("Const : ") && after.contains("Const(");
            assert!(same, "{}\n{before}\n{after}", file.display());
        }
    }
}
