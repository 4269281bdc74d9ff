//! Compares Paddle's rules with its answers.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

use typelift_promote::paddle::Version;
use typelift_promote::{Operand, Promotion, Refusal, RuleSet};

use super::tables::{compare, operand, read, rows};

fn code(refusal: Refusal) -> &'static str {
    match refusal.code() {
        "no-promotion" => "!promote",
        "float8" => "!enum",
        "same-type" => "!mismatch",
        "not-a-tensor" => "!args",
        "rank" => "!shape",
        other => panic!("{other} is not a reason of paddle"),
    }
}

/// Formats our answer as a cell. If paddle found no kernel, the type of the missing kernel is the common type.
fn cell(answer: Result<Promotion, Refusal>, cell: &str) -> String {
    match answer {
        Ok(promotion) if cell.starts_with("!k/") => format!("!k/{}", promotion.common.framework_name()),
        answer => answer.map_or_else(code, |promotion| promotion.result.framework_name()).to_owned(),
    }
}

/// Returns the name of the operation that a key stands for.
fn operation(key: &str) -> String {
    if key.starts_with("operator_") { key.replacen('_', " ", 1) } else { key.to_owned() }
}

fn promote(key: &str, operands: &[Operand], version: Version) -> Result<Promotion, Refusal> {
    RuleSet::Paddle(version).promote(&operation(key), operands)
}

/// Returns the reason why a cell says nothing about promotion, if it differs from our answer.
fn no_answer(key: &str, theirs: &str, ours: &str) -> Option<&'static str> {
    let refused = ours.starts_with('!') && !ours.starts_with("!k/");
    match key {
        "-" => Some("not asked"),
        // The type without a kernel is that of an operand or of an earlier step, and our rules refuse or continue.
        "bitwise_and" | "bitwise_or" | "bitwise_xor" | "operator_&" | "operator_|" | "operator_^" | "heaviside"
        | "matmul" | "isclose"
            if theirs.starts_with("!k/") && refused =>
        {
            Some("no kernel, and the types differ")
        }
        "hypot" | "gcd" | "lcm" | "poisson_nll_loss" | "logaddexp" if theirs.starts_with("!k/") => {
            Some("no kernel for an earlier step")
        }
        "where" | "atan2" if theirs.starts_with("!k/f8") => Some("no kernel to broadcast an 8-bit float"),
        "huber_loss" | "smooth_l1_loss" if theirs.starts_with("!k/") && ours == "!shape" => {
            Some("no kernel, and the ranks differ")
        }
        "isclose" if theirs == "!RuntimeError" => (ours == "!shape").then_some("the ranks differ"),
        "matmul" | "isclose" if theirs == "!NotImplementedError" && refused => Some("refused in other words"),
        // Several kernels cast their inputs instead of refusing them, for some pairs of types only.
        "matmul" | "isclose" if ours == "!mismatch" => Some("the kernel casts one of the types"),
        _ => None,
    }
}

#[test]
fn every_operation_for_every_pair_of_operands() {
    let silent = Cell::new(BTreeMap::new());
    let compared = compare("paddle/operations.csv", |key, a, b, theirs| {
        let ours = cell(promote(key, &[operand(a), operand(b)], Version::V3_3), theirs);
        let reason = no_answer(if theirs == "-" { "-" } else { key }, theirs, &ours);
        match reason.filter(|_| ours != theirs) {
            Some(reason) => {
                let mut counts = silent.take();
                *counts.entry(reason).or_insert(0) += 1;
                silent.set(counts);
                None
            }
            None => Some(ours),
        }
    });
    let silent = silent.take();
    assert_eq!(compared + silent.values().sum::<usize>(), 74 * 32 * 32);
    insta::assert_debug_snapshot!(silent);
}

#[test]
fn no_operation_is_without_a_table() {
    let text = read("paddle/operations.csv");
    let listed: BTreeSet<_> = rows(&text).skip(1).flat_map(|row| row[0].split(' ')).map(operation).collect();
    let rules = RuleSet::Paddle(Version::V3_3);
    let names = rules.operations().map(|operation| operation.name);
    let missing: Vec<_> = names.filter(|&name| !listed.contains(name)).collect();
    assert_eq!(missing, ["result_type", "concat", "stack"]);
}

#[test]
fn lists_of_tensors_must_agree() {
    let tensors = |types: [&str; 3]| types.map(|ty| operand(&format!("d:{ty}")));
    for name in ["concat", "stack"] {
        let promoted = |types| promote(name, &tensors(types), Version::V3_3).map_err(|refusal| refusal.code());
        assert_eq!(promoted(["f32", "f32", "f64"]), Err("same-type"));
        assert!(promoted(["f32", "f32", "f32"]).is_ok());
    }
}

/// The published document, assembled from its own tables.
struct Document {
    tensors: BTreeMap<(String, String), String>,
    numbers: BTreeMap<(String, String), String>,
}

impl Document {
    fn read() -> Self {
        let table = |name: &str| {
            let text = read(name);
            let mut rows = rows(&text);
            let header = rows.next().unwrap();
            rows.flat_map(|row| {
                let pair =
                    |(column, cell): (&&str, &&str)| ((row[1].to_owned(), (*column).to_owned()), (*cell).to_owned());
                header[2..].iter().zip(&row[2..]).map(pair).collect::<Vec<_>>()
            })
            .collect()
        };
        Self { tensors: table("paddle/published_tensors.csv"), numbers: table("paddle/published_numbers.csv") }
    }

    /// Returns the type under a rule, `-` if the document has none.
    fn answer(&self, rule: &str, a: &str, b: &str) -> String {
        let [(kind_a, x), (kind_b, y)] = [a, b].map(|operand| operand.split_once(':').unwrap());
        let (table, key) = match (kind_a, kind_b) {
            // No type is promoted to itself, so most of the diagonal is missing from the document's tables.
            ("d", "d") if x == y => return if rule == "logic" { logic(x, y, x) } else { x.to_owned() },
            ("d", "d") => (&self.tensors, (x, y)),
            ("d", _) => (&self.numbers, (x, y)),
            _ => (&self.numbers, (y, x)),
        };
        let common = table[&(key.0.to_owned(), key.1.to_owned())].as_str();
        match rule {
            "-" => "-".to_owned(),
            "logic" => logic(x, y, common),
            "divide" if ["bool", "u8", "i8", "i16", "i32", "i64"].contains(&common) => "f32".to_owned(),
            _ => common.to_owned(),
        }
    }
}

/// Applies the Logic rule, which does not cover complex numbers.
fn logic(x: &str, y: &str, common: &str) -> String {
    let complex = [x, y].iter().any(|ty| ["c64", "c128", "complex"].contains(ty));
    if complex || common == "-" { "-" } else { "bool" }.to_owned()
}

#[test]
fn the_published_tables_cell_by_cell() {
    let document = Document::read();
    let types = ["bf16", "f16", "f32", "f64", "bool", "u8", "i8", "i16", "i32", "i64", "c64", "c128"];
    let mut operands: Vec<_> = types.map(|ty| format!("d:{ty}")).to_vec();
    operands.extend(["bool", "int", "float", "complex"].map(|kind| format!("w:{kind}")));
    let mut compared = 0;
    let mut contradictions = BTreeMap::<_, usize>::new();
    let rules = read("paddle/published_rules.csv");
    for row in rows(&rules).skip(1) {
        let api = row[1].split('(').next().unwrap();
        for (a, b) in operands.iter().flat_map(|a| operands.iter().map(move |b| (a, b))) {
            let rule = match (&a[..1], &b[..1]) {
                ("d", "d") => row[2],
                ("w", "w") => continue,
                _ => row[3],
            };
            // The document does not cover operations between tensors that are in no table, even with equal types.
            let theirs = if rule == "-" { "-".to_owned() } else { document.answer(rule, a, b) };
            let ours = promote(api, &[operand(a), operand(b)], Version::Published2_6);
            let ours = ours.map_or("-", |promotion| promotion.result.framework_name());
            compared += 1;
            if ours != theirs {
                *contradictions
                    .entry(format!("{a} {b}: the table says {theirs}, its mirror image {ours}"))
                    .or_default() += 1;
            }
        }
    }
    println!("{compared} cells of 31 APIs");
    assert_eq!(compared, 31 * (12 * 12 + 2 * 12 * 4));
    insta::assert_debug_snapshot!(contradictions);
}
