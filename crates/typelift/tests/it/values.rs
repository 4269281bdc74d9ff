//! Rewriting keeps values: models on which rules once changed a value, and new constants.
//!
//! `testdata/oracle/rules/cases.py` asks OpenVINO whether the models compute the same before and after.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use typelift::Model;
use typelift::rewrite::{Losses, Report, Rule, library};

fn all_rules() -> Vec<Rule> {
    library::all().flat_map(|set| set.rules().unwrap()).collect()
}

#[test]
fn shipped_rules_keep_the_values_of_each_case() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata/oracle/rules/cases");
    let mut cases: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    cases.retain(|path| path.extension().is_some_and(|extension| extension == "xml"));
    cases.sort();
    assert!(cases.len() >= 39, "{}", cases.len());
    let (rules, mut found) = (all_rules(), String::new());
    for path in cases {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let mut model = Model::open(&path).unwrap();
        let report = model.rewrite(&rules).unwrap();
        let applied: Vec<_> = report.applied.iter().map(|site| site.rule.as_str()).collect();
        let _ = writeln!(found, "# {name}: {}\n{model}", applied.join(", "));
        let saved = tempfile::tempdir().unwrap();
        model.save(saved.path().join("model.xml")).unwrap();
        let again = Model::open(saved.path().join("model.xml")).unwrap().rewrite(&rules).unwrap();
        assert_eq!(again.applied, [], "a second run changes {name}");
    }
    insta::assert_snapshot!(found);
}

fn rewritten(text: &str, rule: &str) -> (String, Report) {
    let mut model = Model::from_text(text).unwrap();
    let report = model.rewrite(&[rule.parse().unwrap()]).unwrap();
    (model.to_string(), report)
}

fn losses(report: &Report) -> Losses {
    report.applied[0].losses
}

#[test]
fn a_conversion_in_a_rule_saturates_rounds_to_even_and_counts() {
    let text = "x = Parameter : i8[5]\nc = Const([300, -1.6, 2.5, 3.5, 7]) : f32[5]\nd = Convert(x) {destination_type=f32}\ny = Multiply(d, c)\nr = Result(y)";
    let rule = "Multiply(Convert(x: i8), c: const) => Convert(Multiply(x, convert(c, i8))) {destination_type=f32}";
    let (text, report) = rewritten(text, rule);
    assert!(text.contains("Const([127, -2, 2, 4, 7]) : i8[5]"), "{text}");
    let losses = losses(&report);
    assert_eq!([losses.saturated, losses.rounded, losses.non_finite, losses.vanished], [1, 3, 0, 0]);
}

#[test]
fn a_constant_is_stored_as_wide_as_its_parts_unless_every_value_survives() {
    let text = "x = Parameter : f32[2]\na = Const(A) : TYPE[2]\nb = Const([0.5, 0.25]) : f16[2]\n\
        c = Convert(b) {destination_type=f32}\ny = Multiply(x, a)\nz = Multiply(y, c)\nr = Result(z)";
    let rule = "Multiply(Multiply(x, a: const), c: const) => Multiply(x, a * c)";
    let (wide, _) = rewritten(&text.replace("A)", "[1e-8, 100000])").replace("TYPE", "f32"), rule);
    assert!(wide.contains("Const([5e-9, 25000]) : f32[2]"), "{wide}");
    let (narrow, report) = rewritten(&text.replace("A)", "[2, 4])").replace("TYPE", "f32"), rule);
    assert!(narrow.contains("Const(1) : f16[2]"), "{narrow}");
    assert!(losses(&report).is_empty());
}

#[test]
fn lists_are_compared_element_by_element() {
    let text = "x = Parameter : f32[4,3,2]\nc = Const([0, -1, 2]) : i64[3]\ny = Reshape(x, c) {special_zero=true}\nr = Result(y)";
    let applied = |condition: &str| {
        let rule = format!("Reshape(x, s: const) => Relu(Reshape(x, s) {{special_zero=true}}) if {condition}");
        let mut model = Model::from_text(text).unwrap();
        model.rewrite(&[rule.parse::<Rule>().unwrap().once()]).unwrap().applied.len()
    };
    assert_eq!(applied("all(s != 0)"), 0);
    assert_eq!(applied("any(s != 0)"), 1);
    assert_eq!(applied("same(s, [0, -1, 2])"), 1);
    assert_eq!(applied("same(s, [0, -1])"), 0);
    // A list is neither true nor false.
    assert_eq!(applied("s != 5"), 0);
}

#[test]
fn integers_and_unknown_ranks_need_a_word_of_the_rule() {
    let text = "x = Parameter : TYPESHAPE\nc = Const(CONST) : TYPE[1,1]\ny = Multiply(x, c)\nr = Result(y)";
    let applied = |ty: &str, shape: &str, allow: &str| {
        let text = text.replace("SHAPE", shape).replace("TYPE", ty).replace("CONST", "[[2]]");
        let rule = format!("Multiply(x, 2) => Add(x, x) {allow}");
        Model::from_text(&text).unwrap().rewrite(&[rule.parse().unwrap()]).unwrap().applied.len()
    };
    assert_eq!(applied("f32", "[2,3]", ""), 1);
    assert_eq!(applied("i32", "[2,3]", ""), 0);
    assert_eq!(applied("i32", "[2,3]", "allow integers"), 1);
    assert_eq!(applied("f32", "[...]", ""), 0);
    assert_eq!(applied("f32", "[...]", "allow ranks"), 1);
    let error = "Relu(x) => x allow everything".parse::<Rule>().unwrap_err();
    assert_eq!(error.help(), Some("`allow` takes integers, ranks, overflow"));
}

#[test]
fn a_negated_condition_holds_only_where_the_condition_is_known_not_to() {
    let applied = |shape: &str, condition: &str| {
        let text =
            format!("x = Parameter : f32{shape}\nc = Parameter : f32[1,3]\ny = ConvertLike(x, c)\nr = Result(y)");
        let rule = format!("once ConvertLike(x, c) => Relu(ConvertLike(x, c)) if {condition}");
        Model::from_text(&text).unwrap().rewrite(&[rule.parse().unwrap()]).unwrap().applied.len()
    };
    let table = [
        ("[2,3]", "!(rank(x) == 3)", 1),
        ("[2,3]", "!(rank(x) == 2)", 0),
        ("[...]", "!(rank(x) == 3)", 0),
        ("[?,3]", "!(dim(x, 0) == 2)", 0),
        ("[?,3]", "!(dim(x, 1) == 2)", 1),
        ("[?,3]", "!(shape(x) == shape(c))", 0),
        ("[?,4]", "!(shape(x) == shape(c))", 1),
        ("[?,3]", "!(shape(x) like [1, ?])", 0),
        ("[?,3]", "!(shape(x) like [?, 4])", 1),
        ("[?,3]", "!(shape(x) like [n, n])", 0),
        ("[...]", "!(size(x) in 3|4)", 0),
        // One part that is known decides.
        ("[?,3]", "!(dim(x, 0) == 2 && dim(x, 1) == 2)", 1),
        ("[?,3]", "!(dim(x, 1) == 2 && dim(x, 0) == 2)", 1),
        ("[?,3]", "!(dim(x, 0) == 2 || dim(x, 1) == 2)", 0),
        ("[?,3]", "dim(x, 0) == 2 || dim(x, 1) == 3", 1),
        ("[?,3]", "!(!(dim(x, 0) == 2))", 0),
        ("[2,3]", "!(!(dim(x, 0) == 2))", 1),
    ];
    for (shape, condition, expected) in table {
        assert_eq!(applied(shape, condition), expected, "{condition} of {shape}");
    }
}
