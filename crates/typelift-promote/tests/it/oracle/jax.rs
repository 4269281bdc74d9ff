//! Compares JAX's rules with its answers.

use typelift_promote::{Category, Operand, RuleSet, Spelling};

use super::tables::{compare, number};

fn operand(text: &str) -> Operand {
    let (category, name) = text.split_once(':').unwrap();
    let ty = || Spelling::MlDtypes.from_name(name).unwrap_or_else(|| panic!("no type {name}"));
    match category {
        "w" => number(name),
        "k" => Operand::new(ty(), Category::Weak),
        _ => Operand::dimensioned(ty()),
    }
}

fn answer(operation: &str, operands: &[Operand]) -> String {
    answer_of("jax", false, operation, operands)
}

fn answer_of(rules: &str, no_x64: bool, operation: &str, operands: &[Operand]) -> String {
    let mut rules = RuleSet::from_name(rules).unwrap();
    assert!(!no_x64 || rules.set("no-x64", ""));
    match rules.promote(operation, operands) {
        Ok(found) => format!("{}{}", rules.type_name(found.result), if found.is_weak { "*" } else { "" }),
        Err(refusal) => match refusal.code() {
            "no-promotion-path" => "!nopath",
            "wrong-kind" => "!kind",
            other => panic!("{other} is not a reason of jax"),
        }
        .to_owned(),
    }
}

#[test]
fn every_function_for_every_pair_of_operands() {
    let compared = compare("jax/operations.csv", |key, a, b, theirs| {
        (theirs != "-").then(|| answer(key, &[operand(a), operand(b)]))
    });
    // `concatenate` accepts no numbers, and `promote_types` accepts types only.
    assert_eq!(compared, 24 * 40 * 40 + 36 * 36 + 30 * 30);
}

#[test]
fn result_type_of_many_operands() {
    let compared = compare("jax/many.csv", |_, operands, _, theirs| {
        let operands: Vec<_> = operands.split('+').map(operand).collect();
        (theirs != "-").then(|| answer("result_type", &operands))
    });
    assert!(compared > 2000);
}

#[test]
fn strict_promotion_and_32_bits_for_every_pair_of_operands() {
    let modes = [("strict", "jax-strict", false), ("x32", "jax", true), ("strict-x32", "jax-strict", true)];
    for (file, rules, no_x64) in modes {
        let compared = compare(&format!("jax/{file}.csv"), |key, a, b, theirs| {
            (theirs != "-").then(|| answer_of(rules, no_x64, key, &[operand(a), operand(b)]))
        });
        assert_eq!(compared, 24 * 40 * 40 + 36 * 36 + 30 * 30);
    }
}
