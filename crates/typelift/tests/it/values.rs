//! Rewriting keeps values: models on which rules once changed a value, and new constants.
//!
//! `testdata/oracle/rules/cases.py` asks OpenVINO whether the models compute the same before and after.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use typelift::Model;
use typelift::convert::Conversion;
use typelift::rewrite::{Losses, Report, Rule, Script, library};

fn all_rules() -> Vec<Rule> {
    library::all().flat_map(|set| set.rules().unwrap()).collect()
}

#[test]
fn shipped_rules_keep_the_values_of_each_case() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata/oracle/rules/cases");
    let mut cases: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    cases.retain(|path| path.extension().is_some_and(|extension| extension == "xml"));
    cases.sort();
    assert!(cases.len() >= 51, "{}", cases.len());
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
fn a_constant_is_stored_in_the_type_of_its_layer_unless_every_value_survives() {
    let text = "x = Parameter : f32[2]\na = Const(A) : TYPE[2]\nb = Const([0.5, 0.25]) : f16[2]\n\
        c = Convert(b) {destination_type=f32}\ny = Multiply(x, a)\nz = Multiply(y, c)\nr = Result(z)";
    let rule = "Multiply(Multiply(x, a: const), c: const) => Multiply(x, a * c)";
    let (wide, _) = rewritten(&text.replace("A)", "[1e-8, 100000])").replace("TYPE", "f32"), rule);
    assert!(wide.contains("Const([5e-9, 25000]) : f32[2]"), "{wide}");
    let (narrow, report) = rewritten(&text.replace("A)", "[2, 4])").replace("TYPE", "f32"), rule);
    assert!(narrow.contains("Const(1) : f16[2]"), "{narrow}");
    assert!(losses(&report).is_empty());
    // Half precision before a Convert is only a way to store what f32 computes with.
    let halves = "x = Parameter : f32[2]\nb = Const([3, 10]) : f16[2]\nc = Convert(b) {destination_type=f32}\n\
        y = Divide(x, c)\nr = Result(y)";
    let (rounded, _) = rewritten(halves, "Divide(x, c: const f32) => Multiply(x, 1 / c)");
    assert!(rounded.contains("Const([0.33333334, 0.1]) : f32[2]"), "{rounded}");
    let (exact, _) = rewritten(&halves.replace("[3, 10]", "[4, 2]"), "Divide(x, c: const f32) => Multiply(x, 1 / c)");
    assert!(exact.contains("Const([0.25, 0.5]) : f16[2]"), "{exact}");
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
    assert_eq!(error.help.as_deref(), Some("`allow` takes integers, ranks, overflow"));
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

#[test]
fn statements_count_the_values_that_they_lose() {
    let text = "x = Parameter : f32[3]\nw = Const([1, 2, 3]) : f16[3]\nc = Convert(w) {destination_type=f32}\ny = Multiply(x, c)\nr = Result(y)";
    let lossy = |statement: &str| {
        let script: Script = statement.parse().unwrap();
        let (model, report) = script.run(Model::from_text(text).unwrap()).unwrap();
        let lossy = report.lossy.into_iter().map(|it| (it.statement, it.losses.to_string())).collect::<Vec<_>>();
        (model.to_string(), lossy)
    };
    assert_eq!(lossy("set w = _ * 2").1, []);
    let (text_after, losses) = lossy("set c = [1e-9, 100000, 0.1]");
    assert!(text_after.contains("Const([0, 65500, 0.1]) : f16[3]"), "{text_after}");
    let expected = "1 value of a new constant is zero or subnormal, \
        1 value of a new constant is saturated to a limit of the type, 1 value of a new constant is rounded";
    assert_eq!(losses[0].1, expected);
    // Infinity and NaN survive in f16, so nothing is lost.
    assert_eq!(lossy("set c = [-inf, 1, 2]").1, []);
    assert_eq!(lossy("before x : Multiply(_, convert(convert([300.0, 1.5, 2], i8), f32))").1[0].0, "before x");
    let after = lossy("after y : Multiply(_, convert(convert([300.5, 1.5, 2], i8), f32))").1;
    assert_eq!(
        after[0].1,
        "1 value of a new constant is saturated to a limit of the type, 1 value of a new constant is rounded"
    );
}

#[test]
fn explain_says_what_a_rule_loses_where_it_matches() {
    let text = "x = Parameter : f32[2]\nc = Const([1.5, 300]) : f32[2]\ny = Multiply(x, c)\nr = Result(y)";
    let mut model = Model::from_text(text).unwrap();
    let _none = typelift::infer(&mut model);
    let rule: Rule = "once Multiply(x, c: const) => Multiply(x, convert(convert(c, i8), f32))".parse().unwrap();
    let explanation = model.explain(&rule, Some("y")).unwrap().to_string();
    assert!(explanation.contains("matches, and 1 value of a new constant is saturated"), "{explanation}");
}

#[test]
fn a_word_of_the_notation_is_not_a_name() {
    let text = "x = Parameter : f32[4]\ng = Parameter : f32[4]\nsw = Swish-4(g)\ny = Multiply(x, sw)\nz = Abs(y)\nr = Result(z)";
    for rule in
        ["s: const * Swish(g) => Swish(g)", "Swish(g) * s: const => Swish(g)", "drop: s: const * Swish(g) => Swish(g)"]
    {
        let found =
            rule.parse::<Rule>().map(|rule| Model::from_text(text).unwrap().rewrite(&[rule]).unwrap().applied.len());
        assert!(matches!(found, Ok(0) | Err(_)), "{rule}: {found:?}");
    }
}

#[test]
fn a_slice_bound_that_stays_out_of_range_loses_nothing_as_i32() {
    let lost = |bound: i64, user: &str| {
        let text = format!(
            "x = Parameter : f32[?,600]\ns = Const([1]) : i64[1]\ne = Const([{bound}]) : i64[1]\n\
             st = Const([1]) : i64[1]\nax = Const([1]) : i64[1]\ny = {user}\nr = Result(y)"
        );
        let mut model = Model::from_text(&text).unwrap();
        let mut conversion = Conversion::default();
        conversion.types = "i64=i32".parse().unwrap();
        let converted = conversion.run(&mut model).unwrap();
        converted
            .changes
            .iter()
            .filter_map(|change| change.warning(&model))
            .map(|it| format!("{it:?}"))
            .collect::<String>()
    };
    let slice = "Slice(x, s, e, st, ax)";
    for bound in [i64::MAX, i64::MAX - 1, i64::MIN, 5_000_000_000, 2_147_483_647] {
        assert_eq!(lost(bound, slice), "", "{bound}");
    }
    let added = lost(i64::MAX, "Add(e, e)");
    assert!(added.contains("1 becomes the limit of its type"), "{added}");
}

#[test]
fn limits_of_a_quantization_get_the_type_of_its_data() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/oracle/rules/cases/quantize_limits_f16.xml");
    let mut model = Model::open(path).unwrap();
    let converted = Conversion::default().run(&mut model).unwrap();
    let types: Vec<_> = converted.changes.iter().map(|change| (change.from.name(), change.to.name())).collect();
    assert_eq!(types, [("f16", "f32"); 4]);
    assert!(
        model.to_string().contains(" = FakeQuantize(0, ") && model.to_string().contains("{levels=16} : f32[2]"),
        "{model}"
    );
}

#[test]
fn an_exponent_of_higher_rank_keeps_a_mean_over_other_axes() {
    let path =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/oracle/rules/cases/rms_exponent_of_higher_rank.xml");
    let rules = library::get("split-rms").unwrap().rules().unwrap();
    assert_eq!(Model::open(path).unwrap().rewrite(&rules).unwrap().applied, []);
}

#[test]
fn an_empty_order_reverses_the_axes() {
    let text = "x = Parameter : f32[2,6,2]\np = Const([0, 1, 2]) : i64[3]\nq = Const([]) : i64[0]\na = Const(-1) : f32[]\nb = Const(2) : f32[]\n\
        t = Transpose(x, p)\nf = FakeQuantize(t, a, b, a, b) {levels=16}\ny = Transpose(f, q)\nr = Result(y)";
    let mut model = Model::from_text(text).unwrap();
    model.rewrite(&all_rules()).unwrap();
    assert_eq!(model.to_string().matches("Transpose(").count(), 1, "{model}");
}

#[test]
fn values_that_a_zero_point_takes_out_of_range_are_counted() {
    let text = "x = Parameter : f32[4]\nw = Const([0, 3, 9, 15]) : u4[4]\nd = Convert(w) {destination_type=f32}\ny = Multiply(x, d)\nr = Result(y)";
    let rule = "Multiply(x, Convert(w: const u4)) => Multiply(x, Convert(convert(convert(w, i32) - 9, u4)) {destination_type=f32})";
    let (text, report) = rewritten(text, &format!("once {rule}"));
    assert!(text.contains("Const([0, 0, 0, 6]) : u4[4]"), "{text}");
    assert_eq!(losses(&report).saturated, 2);
}
