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
        Some((_, name)) => Operand::dimensioned(ty(name)),
        None => Operand::dimensioned(ty(text)),
    }
}

fn answer(operation: &str, operands: &[Operand]) -> String {
    let rules = RuleSet::from_name("numpy").unwrap();
    match rules.promote(operation, operands) {
        Ok(promotion) => rules.type_name(promotion.result).to_owned(),
        Err(refusal) => match refusal.code() {
            "no-common-type" => "!nocommon",
            "no-loop" => "!noloop",
            "no-boolean" => "!boolsub",
            "no-numbers" => "!nonumbers",
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
