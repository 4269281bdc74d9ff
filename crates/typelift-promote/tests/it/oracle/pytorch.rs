//! Compares PyTorch's rules with its answers.

use std::cell::Cell;
use std::collections::BTreeSet;

use typelift_promote::pytorch::{Options, can_cast, promote_types, result_type};
use typelift_promote::{ElementType, Operand, Promotion, Refusal, RuleSet};

use super::tables::{compare, operand, read, rows};

fn ty(name: &str) -> ElementType {
    ElementType::from_framework_name(name).unwrap_or_else(|| panic!("no type {name}"))
}

fn code(refusal: Refusal) -> String {
    match refusal.code() {
        "bare-unsigned" => "!uint",
        "float8" => "!f8",
        "float8-complex" => "!f8complex",
        "bits" => "!bits",
        "no-rule" => "!assert",
        "no-boolean" => "!boolneg",
        "no-complex" => "!complex",
        "not-float" => "!notfloat",
        "same-type" => "!samedtype",
        "cast" => "!cast",
        "alpha" => "!alpha",
        "not-a-tensor" => "!args",
        "rank" => "!shape",
        other => panic!("{other} is not a reason of torch"),
    }
    .to_owned()
}

fn name(answer: Result<ElementType, Refusal>) -> String {
    answer.map_or_else(code, |ty| ty.framework_name().to_owned())
}

/// Formats our answer as a cell. If torch found no kernel, the type of the missing kernel is the common type.
fn cell(answer: Result<Promotion, Refusal>, cell: &str) -> String {
    match answer {
        Ok(promotion) if cell.starts_with("!k/") => format!("!k/{}", promotion.common.framework_name()),
        answer => name(answer.map(|promotion| promotion.result)),
    }
}

/// Returns the name of the operation that a key stands for.
fn operation(key: &str) -> String {
    if key.starts_with("operator_") { key.replacen('_', " ", 1) } else { key.to_owned() }
}

fn promote(key: &str, operands: &[Operand], options: Options) -> Result<Promotion, Refusal> {
    RuleSet::PyTorch(options).promote(&operation(key), operands)
}

#[test]
fn promote_types_for_every_pair() {
    let compared = compare("pytorch/promote_types.csv", |_, a, b, _| Some(name(promote_types(ty(a), ty(b)))));
    assert_eq!(compared, 42 * 42);
}

#[test]
fn can_cast_for_every_pair() {
    let compared =
        compare("pytorch/can_cast.csv", |_, from, to, _| Some(u8::from(can_cast(ty(from), ty(to))).to_string()));
    assert_eq!(compared, 42 * 42);
}

#[test]
fn result_type_for_every_pair_of_operands() {
    let compared = compare("pytorch/result_type.csv", |_, a, b, _| {
        Some(name(result_type(&[operand(a), operand(b)], Options::default())))
    });
    assert_eq!(compared, 48 * 48);
}

#[test]
fn every_operation_for_every_pair_of_operands() {
    let no_answer = Cell::new(0);
    let compared = compare("pytorch/operations.csv", |key, a, b, theirs| {
        let ours = cell(promote(key, &[operand(a), operand(b)], Options::default()), theirs);
        // These two operations run in several steps, and a step before the promoting one has no kernel.
        let stops_early = key == "ldexp" || key == "operator_/" && a == "w:complex" && b.contains(":f8");
        if theirs == "-" || stops_early && theirs.starts_with("!k/") && ours != theirs {
            no_answer.set(no_answer.get() + 1);
            return None;
        }
        Some(ours)
    });
    // The remaining cells: two numbers with one of 18 operators, and cells where an earlier step has no kernel.
    assert_eq!((compared, no_answer.get()), (96 * 48 * 48 - 18 * 16 - 438, 18 * 16 + 438));
}

#[test]
fn every_operation_on_one_operand() {
    let compared = compare("pytorch/unary.csv", |key, category, ty, theirs| {
        let operands = [operand(&format!("{category}:{ty}"))];
        Some(cell(promote(key, &operands, Options::default()), theirs))
    });
    assert_eq!(compared, 67 * 2 * 22);
}

#[test]
fn no_operation_is_without_a_table() {
    let tables = ["operations", "unary"].map(|name| read(&format!("pytorch/{name}.csv")));
    let keys: Vec<_> = tables.iter().flat_map(|text| rows(text).skip(1)).flat_map(|row| row[0].split(' ')).collect();
    let listed: BTreeSet<_> = keys.into_iter().map(operation).collect();
    let rules = RuleSet::PyTorch(Options::default());
    let names = rules.operations().map(|operation| operation.name);
    let missing: Vec<_> = names.filter(|&name| !listed.contains(name)).collect();
    // These two operations have their own tables.
    assert_eq!(missing, ["result_type", "clamp"]);
}

#[test]
fn three_operands_at_once() {
    let compared = compare("pytorch/clamp.csv", |x, min, max, theirs| {
        let operands = [operand(x), operand(min), operand(max)];
        Some(cell(promote("clamp", &operands, Options::default()), theirs))
    });
    assert_eq!(compared, 18 * 18 * 18);
}

#[test]
fn every_default_dtype() {
    let compared = compare("pytorch/default_dtype.csv", |key, operands, default, theirs| {
        let operands: Vec<_> = operands.split('+').map(operand).collect();
        Some(cell(promote(key, &operands, Options { default_dtype: ty(default) }), theirs))
    });
    assert_eq!(compared, 4 * 296);
}
