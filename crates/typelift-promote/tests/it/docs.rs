//! Compares the tables in `tables.md` with the rules. `UPDATE_DOCS=1` writes them anew.
#![allow(clippy::panic, clippy::unwrap_used, reason = "test helpers fail by panicking")]

use std::collections::BTreeMap;
use std::path::PathBuf;

use typelift_promote::paddle::Version;
use typelift_promote::{Category, ElementType, Operand, Refusal, RuleSet, openvino};

fn promote(rules: &RuleSet, operation: &str, a: Operand, b: Operand) -> Option<ElementType> {
    rules.promote(operation, &[a, b]).ok().map(|promotion| promotion.result)
}

fn unsafe_openvino() -> RuleSet {
    RuleSet::OpenVino(openvino::Options { promote_unsafe: true, ..Default::default() })
}

fn named(name: &str) -> RuleSet {
    RuleSet::from_name(name).unwrap()
}

/// Returns the types that all rule sets have.
fn common_types() -> Vec<ElementType> {
    use ElementType::*;
    vec![Boolean, U8, I8, I16, I32, I64, F16, Bf16, F32, F64]
}

fn heading(words: &str, rules: &RuleSet) -> String {
    if words == rules.name() { rules.title().to_owned() } else { format!("{}, {words}", rules.title()) }
}

/// Returns a table of the pairs on which rule sets disagree: `left` with `right`, each pair once if `symmetric`.
fn compare_table(left: fn(ElementType) -> Operand, right: fn(ElementType) -> Operand, symmetric: bool) -> String {
    let others = ["paddle-2.6", "numpy-1", "jax --no-x64", "jax-strict"];
    let variants = RuleSet::variants().filter(|(words, _)| !others.contains(words));
    let (header, rule_sets): (Vec<_>, Vec<_>) = variants.map(|(words, rules)| (heading(words, &rules), rules)).unzip();
    let mut rows = String::new();
    let types = common_types();
    let (mut pairs, mut different) = (0, 0);
    for (i, &a) in types.iter().enumerate() {
        for &b in &types[if symmetric { i } else { 0 }..] {
            let outcomes: Vec<_> = rule_sets.iter().map(|rules| promote(rules, "add", left(a), right(b))).collect();
            pairs += 1;
            if outcomes.iter().any(|outcome| *outcome != outcomes[0]) {
                different += 1;
                let cells: Vec<_> = outcomes.iter().map(|outcome| outcome.map_or("–", ElementType::name)).collect();
                rows += &format!("| {a} | {b} | {} |\n", cells.join(" | "));
            }
        }
    }
    let columns = "|---".repeat(rule_sets.len() + 2);
    format!("{different} of {pairs} pairs; – is a refusal.\n\n| | | {} |\n{columns}|\n{rows}", header.join(" | "))
}

fn associativity_table() -> String {
    let rows: [(_, _, Category); 6] = [
        ("OpenVINO, safe", named("openvino"), Category::Dimensioned),
        ("OpenVINO, unsafe", unsafe_openvino(), Category::Dimensioned),
        ("PyTorch, with dimensions", named("pytorch"), Category::Dimensioned),
        ("Paddle, with dimensions", named("paddle"), Category::Dimensioned),
        ("Paddle, 0-D", named("paddle"), Category::ZeroDim),
        ("Paddle 2.6, with dimensions", named("paddle-2.6"), Category::Dimensioned),
    ];
    let mut text = "| rules | types | triples | another type | one grouping refused | through | for example |\n|---|---|---|---|---|---|---|\n".to_owned();
    for (name, rules, category) in rows {
        let operand = |element_type| Operand::new(element_type, category);
        let meet = |a, b| promote(&rules, "add", operand(a), operand(b));
        let types: Vec<_> = rules.types().filter(|&ty| meet(ty, ty).is_some()).collect();
        let (mut triples, mut other_type, mut refused) = (0, 0, 0);
        let mut example = String::from("none");
        let mut through = BTreeMap::<&str, usize>::new();
        for &a in &types {
            for &b in &types {
                for &c in &types {
                    triples += 1;
                    let left = meet(a, b).and_then(|ab| meet(ab, c));
                    let right = meet(b, c).and_then(|bc| meet(a, bc));
                    match (left, right) {
                        (left, right) if left == right => {}
                        (Some(left), Some(right)) => {
                            if other_type == 0 {
                                let name = |ty| rules.type_name(ty);
                                let [x, y, z] = [a, b, c].map(name);
                                example =
                                    format!("({x}, {y}), {z} is {}, {x}, ({y}, {z}) is {}", name(left), name(right));
                            }
                            other_type += 1;
                            *through.entry(cause([a, b, c])).or_default() += 1;
                        }
                        _ => refused += 1,
                    }
                }
            }
        }
        let through = through.iter().map(|(cause, count)| format!("{cause}: {count}")).collect::<Vec<_>>().join(", ");
        let through = if through.is_empty() { "–".to_owned() } else { through };
        text +=
            &format!("| {name} | {} | {triples} | {other_type} | {refused} | {through} | {example} |\n", types.len());
    }
    text
}

/// Returns the reason why the grouping of a triple matters.
fn cause(types: [ElementType; 3]) -> &'static str {
    use ElementType::*;
    let has = |ty| types.contains(&ty);
    match () {
        () if has(U64) && !(has(F16) && has(Bf16)) && !(has(F8E4M3) && has(F8E5M2)) => "u64",
        () if has(F8E4M3) && has(F8E5M2) => "f8e4m3 and f8e5m2",
        () if has(F16) && has(Bf16) => "f16 and bf16",
        () if has(U8) && has(I8) => "u8 and i8",
        () => "others",
    }
}

fn quirk_table() -> String {
    let attributes = openvino::Options { pytorch_scalar_promotion: true, ..Default::default() };
    let mut text = "| dimensioned, and result | scalars it takes although it cannot hold them | scalars that round |\n|---|---|---|\n".to_owned();
    let types: Vec<_> = ElementType::all().filter(|&ty| openvino::is_supported(ty)).collect();
    for &ty in &types {
        let (mut beyond, mut rounds) = (Vec::new(), Vec::new());
        for &scalar in &types {
            let pair = (Operand::dimensioned(ty), Operand::zero_dim(scalar));
            match openvino::quirk(pair.0, pair.1, &attributes) {
                Some(openvino::Quirk::ScalarOutOfRange { .. }) => beyond.push(scalar.name()),
                Some(openvino::Quirk::ScalarRounds { .. }) => rounds.push(scalar.name()),
                _ => {}
            }
        }
        if !(beyond.is_empty() && rounds.is_empty()) {
            text += &format!("| {ty} | {} | {} |\n", beyond.join(", "), rounds.join(", "));
        }
    }
    text
}

fn paddle_versions_table() -> String {
    let mut text =
        "| API | cells | another type | package refuses | document refuses or leaves out |\n|---|---|---|---|---|\n"
            .to_owned();
    let types: Vec<_> = common_types().into_iter().chain([ElementType::C64, ElementType::C128]).collect();
    let numbers = ["True", "int", "float", "complex"].map(|word| Operand::from_number(word).unwrap());
    let tensors = types.iter().map(|&ty| Operand::dimensioned(ty));
    let operands: Vec<_> = tensors.chain(numbers).collect();
    let rules = RuleSet::Paddle(Version::V3_3);
    let all = rules.operations().filter(|operation| operation.most == 2).map(|operation| operation.name);
    let mut rows = BTreeMap::<_, Vec<&str>>::new();
    for name in all {
        let mut counts = [0; 4];
        for (a, b) in operands.iter().flat_map(|a| operands.iter().map(move |b| (*a, *b))) {
            let [real, document] = [Version::V3_3, Version::Published2_6]
                .map(|version| RuleSet::Paddle(version).promote(name, &[a, b]).map(|promotion| promotion.result));
            let left_out = |refusal: &Refusal| refusal.code() == "out-of-scope";
            if document.as_ref().is_err_and(left_out) || a.is_number() && b.is_number() {
                continue;
            }
            counts[0] += 1;
            match (real, document) {
                (Ok(real), Ok(document)) => counts[1] += usize::from(real != document),
                (Err(_), Ok(_)) => counts[2] += 1,
                (Ok(_), Err(_)) => counts[3] += 1,
                (Err(_), Err(_)) => {}
            }
        }
        if counts[0] != 0 {
            rows.entry(counts).or_default().push(name);
        }
    }
    for ([cells, other, real_refuses, document_refuses], names) in rows {
        let names = names.iter().map(|name| format!("`{}`", name.replace('|', "\\|"))).collect::<Vec<_>>().join(", ");
        text += &format!("| {names} | {cells} | {other} | {real_refuses} | {document_refuses} |\n");
    }
    text
}

#[test]
fn the_generated_tables_are_what_the_rules_give() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/it/tables.md");
    let document = std::fs::read_to_string(&path).unwrap();
    let mut expected = document.clone();
    let tables = [
        ("compare", compare_table(Operand::dimensioned, Operand::dimensioned, true)),
        ("compare-scalar", compare_table(Operand::dimensioned, Operand::zero_dim, false)),
        ("associativity", associativity_table()),
        ("openvino-quirks", quirk_table()),
        ("paddle-versions", paddle_versions_table()),
    ];
    for (name, table) in tables {
        let (start, end) = (format!("<!-- generated: {name} -->\n"), format!("<!-- end: {name} -->"));
        let from = expected.find(&start).unwrap_or_else(|| panic!("no section {name}")) + start.len();
        let to = from + expected[from..].find(&end).unwrap_or_else(|| panic!("section {name} has no end"));
        expected.replace_range(from..to, &format!("\n{table}\n"));
    }
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &expected).unwrap();
    } else {
        assert!(document == expected, "tables.md is out of date: run this test with UPDATE_DOCS=1");
    }
}
