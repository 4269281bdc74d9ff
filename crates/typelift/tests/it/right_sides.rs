//! Right sides that are small programs, conditions with alternatives, and constants that are computed while a rule is applied.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use typelift::rewrite::{Report, Rule, Script};
use typelift::{Model, infer};

fn read(listing: &str) -> Model {
    let mut model = Model::from_text(listing).unwrap();
    assert_eq!(infer(&mut model), []);
    model
}

/// Applies a rule to a model.
fn rewritten(listing: &str, rule: &str) -> Result<(Model, Report), String> {
    let script: Script = rule.parse().map_err(|error| format!("{error}"))?;
    let (mut model, report) = script.run(read(listing)).map_err(|error| error.to_string())?;
    assert_eq!(infer(&mut model), []);
    Ok((model, report))
}

fn text(listing: &str, rule: &str) -> String {
    rewritten(listing, rule).unwrap().0.to_string()
}

fn refusal(rule: &str) -> String {
    rule.parse::<Rule>().unwrap_err().to_string()
}

const GATED: &str = "
    x = Parameter : f32[2,4]
    a = Const(1) : f32[4,6]
    b = Const(2) : f32[4,6]
    gate = MatMul(x, a)
    up = MatMul(x, b)
    act = Swish-4(gate)
    out = Multiply(act, up)
    r = Result(out)
";

#[test]
fn a_right_side_has_definitions_and_several_outputs() {
    let rule = "Swish(MatMul(x, a: const)) * MatMul(x, b: const) => Swish(s) * t
        where all = MatMul(x, Concat(a, b) {axis=1}) as \"{root}/both\"
              (s, t) = Split(all, 1) {num_splits=2} as \"{x}/parts\"";
    let made = text(GATED, rule);
    assert!(made.contains("out/both = MatMul(") && made.contains("x/parts = Split("), "{made}");
    assert_eq!(made.matches("Split(").count(), 1, "both outputs are of one layer: {made}");
    assert!(made.contains(".1)"), "{made}");
    let same = "Relu(x) => Multiply(h, h) where h = Tanh(x)";
    let made = text("x = Parameter : f32[2]\ny = Relu(x)\nr = Result(y)", same);
    assert_eq!(made.matches("Tanh(").count(), 1, "{made}");
    for (rule, reason) in [
        ("Relu(x) => h where h = Abs(h)", "`h` is defined by itself"),
        ("Relu(x) => a where (a, b) = x", "`(a, b)` are the outputs of an operation"),
        ("Relu(x) => Tanh(x) as act", "expected a name in quotes"),
        ("Relu(x) => Tanh(x) as \"{y}\"", "`y` is not in the pattern"),
        ("Relu(x) => Tanh(h) where h = Abs(x) 3", "expected `,` or the end of the definition"),
    ] {
        let error = refusal(rule);
        assert!(error.contains(reason), "{rule}: {error}");
    }
}

#[test]
fn a_right_side_measures_what_it_replaces() {
    let rule = "q = MatMul(x, a: const), u = MatMul(x, b: const) => (q, u) = VariadicSplit(MatMul(x, Concat(a, b) {axis=1}), 1, [dim(q, -1), -1])
        if name(q) like \"gate\" && name(u) like \"up\"";
    let rule = rule.replace("[dim(q, -1), -1]", "concat(dim(q, -1), dim(u, 1))");
    let made = text(GATED, &rule);
    assert!(made.contains("Const(6) : i64[2]"), "{made}");
    assert!(refusal("q = Relu(x) => Tanh(q)").contains("`q` is not in the pattern"));
}

#[test]
fn the_operation_that_matched_is_repeated() {
    let listing = "x = Parameter : f32[2,4]\nc = Const([1, 2, 3, 4]) : f32[4]\np = Const([1, 0]) : i64[2]
t = Transpose(x, p)\nn = Const([[1], [2], [3], [4]]) : f32[4,1]\ny = Subtract(t, n)\nr = Result(y)";
    let rule = "(Add|Subtract)(Transpose(x, p: const), c: const) => Transpose((Add|Subtract)(x, transpose(c)), p)";
    let made = text(listing, rule);
    assert!(made.contains("Subtract(0, ") && made.contains("y = Transpose("), "{made}");
    assert!(
        refusal("Add(x, 0) => (Add|Subtract)(x, x)")
            .contains("the pattern must have `(Add|Subtract)` exactly once, but has it 0 times")
    );
}

#[test]
fn conditions_have_alternatives_and_see_parts_of_names() {
    let listing = "
        x = Parameter : f32[2]
        m.layers.3.act = Relu(x)
        m.layers.12.act = Relu(m.layers.3.act)
        m.head.act = Relu(m.layers.12.act)
        r = Result(m.head.act)
    ";
    let count = |condition: &str| text(listing, &format!("Relu(x) => Tanh(x) if {condition}")).matches("Tanh(").count();
    assert_eq!(count("name(root) like \"*.layers.{i}.*\" && i <= 5"), 1);
    assert_eq!(count("name(root) like \"*.layers.{i}.*\" && (i == 3 || i == 12)"), 2);
    assert_eq!(count("name(root) like \"*.layers.[0-9].*\""), 1);
    assert_eq!(count("name(root) like \"*.{5..20}.*\" || name(root) like \"*head*\""), 2);
    assert_eq!(count("block(root) in 3..11"), 1);
    assert_eq!(count("block(root) in 3..12 && !(block(root) == 3)"), 1);
    assert_eq!(count("!(name(root) like \"*.layers.*\")"), 1);
    assert_eq!(count("!(name(root) like \"*.layers.*\" || rank(x) == 1)"), 0);
    assert_eq!(count("(rank(x) + 1) == 2 && !static(x) || size(x) == 2"), 3);
    assert!(refusal("Relu(x) => Tanh(x) if j <= 5").contains("`j` is not in the pattern"));
    assert!(refusal("Relu(x) => Tanh(x) if (rank(x) == 1 || ").contains("expected"));
}

#[test]
fn two_roots_share_a_part_of_their_names() {
    let mut listing = "x = Parameter : f32[2,4]\n".to_owned();
    for (kind, order) in [("gate", [2, 0, 1]), ("up", [1, 2, 0])] {
        for expert in order {
            listing += &format!(
                "e{expert}.{kind}.w = Const({expert}.5) : f32[4,6]\ne{expert}.{kind} = MatMul(x, e{expert}.{kind}.w)\n"
            );
        }
    }
    listing += "c = Concat(e0.gate, e1.gate, e2.gate, e0.up, e1.up, e2.up) {axis=1}\nr = Result(c)";
    let rule = "g = MatMul(x, a: const), u = MatMul(x, b: const) => (g, u) = Split(MatMul(x, Concat(a, b) {axis=1}), 1) {num_splits=2}
        if name(g) like \"e{i}.gate\" && name(u) like \"e{i}.up\"";
    let (model, report) = rewritten(&listing, rule).unwrap();
    assert_eq!(report.applied.len(), 3);
    for concat in model.graph().layers().filter(|layer| layer.ty() == "Concat" && layer.name() != "c") {
        let sources = model.graph().producers(concat.id()).into_iter().flatten();
        let names: Vec<_> =
            sources.map(|source| model.graph().layer(source.layer).unwrap().name().to_owned()).collect();
        assert_eq!(names[0].replace("gate", "up"), names[1]);
    }
}

#[test]
fn the_nearest_of_many_roots_is_tried_first_and_the_limit_is_said() {
    let mut listing = "x = Parameter : f32[1,2]\n".to_owned();
    for at in 0..300 {
        listing += &format!("w{at} = Const({at}.5) : f32[2,2]\ng{at} = MatMul(x, w{at})\n");
    }
    let all: Vec<_> = (0..300).map(|at| format!("g{at}")).collect();
    listing += &format!("c = Concat({}) {{axis=1}}\nr = Result(c)", all.join(", "));
    let rule = |first: usize, second: usize| {
        format!(
            "g = MatMul(x, a: const), u = MatMul(x, b: const) => (g, u) = Split(MatMul(x, Concat(a, b) {{axis=1}}), 1) {{num_splits=2}}
             if name(g) like \"g{first}\" && name(u) like \"g{second}\""
        )
    };
    for second in [63, 65, 1, 120] {
        assert_eq!(rewritten(&listing, &rule(64, second)).unwrap().1.applied.len(), 1, "{second}");
    }
    let (_, report) = rewritten(&listing, &rule(64, 290)).unwrap();
    assert_eq!(report.applied.len(), 0);
    let reason = "of 300 layers that depend on Parameter 0 `x`, only the nearest 128 are tried as `u`";
    assert!(report.skipped.iter().any(|skipped| skipped.reason.contains(reason)), "{:?}", report.skipped);
}

#[test]
fn a_word_of_the_notation_is_not_a_name() {
    let error = refusal("s: const * Swish(g) => Swish(g)");
    assert!(
        error.contains("`const` is a word of the notation, not a name") && error.contains("rule: c: const *"),
        "{error}"
    );
    assert!("drop: s: const * Swish(g) => Swish(g)".parse::<Rule>().is_ok());
    assert!(refusal("Add(where, x) => x").contains("`where` is a word of the notation"));
}

#[test]
fn constants_are_computed_while_a_rule_is_applied() {
    let listing =
        "x = Parameter : f32[2,2]\nw = Const([[0.9, -2.2], [3.5, 0.5]]) : f32[2,2]\ny = MatMul(x, w)\nr = Result(y)";
    let rule = "once MatMul(x, w: const) => MatMul(x, Convert(q) {destination_type=f32} * s)
        where s = fold(ReduceMax(Abs(w), 0) {keep_dims=true} / 127)
              q = fold(Convert(Round(w / s) {mode=half_to_even}) {destination_type=i8})";
    let made = text(listing, rule);
    assert!(made.contains("Const([[33, -127], [127, 29]]) : i8[2,2]"), "{made}");
    assert!(!made.contains("ReduceMax") && !made.contains("Round"), "what was folded is no layer: {made}");
    let refused =
        rewritten("x = Parameter : f32[2]\ny = Relu(x)\nr = Result(y)", "Relu(x) => fold(Tanh(x))").unwrap_err();
    assert!(refused.contains("Parameter 0 `x` is not a constant"), "{refused}");
}

#[test]
fn arithmetic_rounds_limits_joins_and_slices() {
    let listing =
        "x = Parameter : f32[2,2]\nw = Const([[0.9, -2.2], [3.5, 0.5]]) : f32[2,2]\ny = Multiply(x, w)\nr = Result(y)";
    let made = |expression: &str| text(listing, &format!("once Multiply(x, w: const) => Multiply(x, {expression})"));
    for (expression, values) in [
        ("round(w)", "[[1, -2], [4, 0]]"),
        ("abs(w)", "[[0.9, 2.2], [3.5, 0.5]]"),
        ("max(w)", "Const(3.5)"),
        ("min(w, 1)", "[[0.9, -2.2], [1, 0.5]]"),
        ("clamp(w, 0, 1)", "[[0.9, 0], [1, 0.5]]"),
        ("w[:, 1:2]", "[[-2.2], [0.5]]"),
        ("w[1, 0]", "Const(3.5)"),
        ("concat(w[:, 1:], w[:, 0:1], axis=1)", "[[-2.2, 0.9], [0.5, 3.5]]"),
        ("concat(w[1:2], w[0:1], axis=0)", "[[3.5, 0.5], [0.9, -2.2]]"),
    ] {
        assert!(made(expression).contains(values), "{expression}: {}", made(expression));
    }
}

/// Shapes need few numbers, but a rule may cut weights.
#[test]
fn weights_of_any_size_are_sliced() {
    let listing = "x = Parameter : f32[1,1024]\nw = Const(1) : f32[1024,1024]\ny = MatMul(x, w)\nr = Result(y)";
    let made =
        text(listing, "once MatMul(x, w: const) => Concat(MatMul(x, w[:, :768]), MatMul(x, w[:, 768:])) {axis=1}");
    assert!(made.contains("f32[1024,768]") && made.contains("f32[1024,256]"), "{made}");
}

#[test]
fn a_quoted_name_is_a_tensor_of_the_graph() {
    let listing = "x = Parameter : f32[2]\nmask = Parameter : f32[2]\ny = Relu(x)\nr = Result(y)";
    let made = text(listing, "Relu(x) => Multiply(x, \"mask\")");
    assert!(made.contains("Multiply(0, 1)"), "{made}");
    let error = rewritten(listing, "Relu(x) => Multiply(x, \"maks\")").unwrap_err();
    assert!(error.contains("no layer and no tensor is called `maks`"), "{error}");
}

#[test]
fn new_inputs_of_a_rule_have_names() {
    let listing = "x = Parameter : f32[2,4]\nw = Const(1) : f32[4,4]\nq = MatMul(x, w)\nr = Result(q)";
    let rule = "once MatMul(x, w: const) => MatMul(x, w) + MatMul(MatMul(x, a), b)
        where a = Parameter() {element_type=f32, shape=[4, ?]} as \"{root}.lora_a\"
              b = Parameter() {element_type=f32, shape=[?, 4]} as \"{root}.lora_b\"";
    let (model, _) = rewritten(listing, rule).unwrap();
    assert!(model.graph().tensor_named("q.lora_a").unwrap().is_some(), "{model}");
    assert_eq!(model.inputs().map(|input| input.name()).collect::<Vec<_>>(), ["x", "q.lora_a", "q.lora_b"]);
}

#[test]
fn explain_says_what_a_match_would_change() {
    let mut model = read("x = Parameter : f32[2]\nc = Const(2) : f32[]\ny = Multiply(x, c)\nr = Result(y)");
    let explain = |model: &Model, rule: &str| model.explain(&rule.parse().unwrap(), Some("y")).unwrap().to_string();
    let same = explain(&model, "x * c: const => Multiply(x, c)");
    assert!(same.ends_with("matches, but the replacement would change nothing"), "{same}");
    let refused = explain(&model, "Multiply(x, c) => Convert(x) {destination_type=f16}");
    assert!(refused.contains("matches, but the replacement is not possible"), "{refused}");
    let applied = explain(&model, "Multiply(x, 2) => Add(x, x)");
    assert!(applied.ends_with("matches"), "{applied}");
    assert!(model.rewrite(&["Multiply(x, 2) => Add(x, x)".parse().unwrap()]).is_ok());
}
