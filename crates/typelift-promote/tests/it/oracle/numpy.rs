//! Compares NumPy's rules with its answers.

use typelift_promote::numpy::can_cast;
use typelift_promote::{ElementType, Operand, RuleSet, Spelling};

use super::tables::{compare, number};

fn ty(name: &str) -> ElementType {
    Spelling::MlDtypes.from_name(name).unwrap_or_else(|| panic!("no type {name}"))
}

fn operand(text: &str) -> Operand {
    match text.split_once(':') {
        Some(("w", kind)) => number(kind),
        Some(("v", text)) => Operand::from_number(text).unwrap(),
        Some(("z", name)) => Operand::zero_dim(ty(name)),
        Some((_, name)) => Operand::dimensioned(ty(name)),
        None => Operand::dimensioned(ty(text)),
    }
}

fn answer(operation: &str, operands: &[Operand]) -> String {
    answer_of("numpy", operation, operands)
}

fn answer_of(rules: &str, operation: &str, operands: &[Operand]) -> String {
    let rules = RuleSet::from_name(rules).unwrap();
    match rules.promote(operation, operands) {
        Ok(promotion) => rules.type_name(promotion.result).to_owned(),
        Err(refusal) => match refusal.code() {
            "no-common-type" => "!nocommon",
            "no-loop" => "!noloop",
            "no-boolean" => "!boolsub",
            "no-numbers" => "!nonumbers",
            "out-of-bounds" => "!bounds",
            other => panic!("{other} is not a reason of numpy"),
        }
        .to_owned(),
    }
}

#[test]
fn can_cast_for_every_pair() {
    let compared =
        compare("numpy/can_cast.csv", |_, from, to, _| Some(u8::from(can_cast(ty(from), ty(to))).to_string()));
    assert_eq!(compared, 32 * 32);
}

#[test]
fn every_function_for_every_pair_of_operands() {
    let compared = compare("numpy/operations.csv", |key, a, b, theirs| {
        (theirs != "-").then(|| answer(key, &[operand(a), operand(b)]))
    });
    // `concatenate` and `promote_types` accept arrays only.
    assert_eq!(compared, 27 * 36 * 36 + 2 * 32 * 32);
}

#[test]
fn result_type_of_many_operands() {
    let compared = compare("numpy/many.csv", |_, operands, _, theirs| {
        let operands: Vec<_> = operands.split('+').map(operand).collect();
        (theirs != "-").then(|| answer("result_type", &operands))
    });
    assert!(compared > 2000);
}

#[test]
fn numbers_that_do_not_fit_are_refused() {
    let compared = compare("numpy/literals.csv", |key, a, b, theirs| {
        // `where` refuses what no integer type holds, and has no loop.
        let is_asked = theirs != "-" && (key, b) != ("where", "v:18446744073709551616");
        is_asked.then(|| answer(key, &[operand(a), operand(b)]))
    });
    assert!(compared > 1900);
}

#[test]
fn numpy_1_for_every_pair_of_operands() {
    let compared = compare("numpy/numpy-1.csv", |key, a, b, theirs| {
        (theirs != "-").then(|| answer_of("numpy-1", key, &[operand(a), operand(b)]))
    });
    assert!(compared > 20_000);
}

#[test]
fn numpy_1_for_many_operands() {
    let compared = compare("numpy/numpy-1-many.csv", |_, operands, _, theirs| {
        let operands: Vec<_> = operands.split('+').map(operand).collect();
        (theirs != "-").then(|| answer_of("numpy-1", "result_type", &operands))
    });
    assert_eq!(compared, 3000);
}
