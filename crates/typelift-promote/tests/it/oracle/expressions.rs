//! Compares expressions of several steps with the answers of the packages.

use typelift_promote::{Category, Dim, Operand, RuleSet};

use super::tables::read;

/// Value of an expression: an operand and, unless it is a number, its shape.
type Value = (Operand, Option<Vec<Dim>>);

fn value(rules: &RuleSet, text: &str) -> Value {
    let operand = rules.operand(text).unwrap();
    let dims = text.split_once('[').map(|(_, dims)| {
        let lengths = dims.trim_end_matches(']').split(',').filter(|length| !length.is_empty());
        lengths.map(|length| Dim::fixed(length.parse().unwrap())).collect()
    });
    (operand, dims)
}

fn apply(rules: &RuleSet, operation: &str, values: &[Value]) -> Option<Value> {
    let operands: Vec<_> = values.iter().map(|value| value.0).collect();
    let element_type = rules.promote(operation, &operands).ok()?.result;
    let shapes = values.iter().filter_map(|value| value.1.as_deref());
    let dims: Vec<Dim> = rules.broadcast(operation, &operands, shapes)?.ok()?;
    let category = if dims.is_empty() { Category::ZeroDim } else { Category::Dimensioned };
    Some((Operand::new(element_type, category), Some(dims)))
}

/// Evaluates an expression in postfix notation; `!` means that an operation is refused.
fn evaluate(rules: &RuleSet, expression: &str) -> String {
    let mut stack: Vec<Value> = Vec::new();
    for token in expression.split(' ') {
        // The name of an operation ends in its number of operands; `operator_//2` is a division.
        let Some((name, arity)) = token.rsplit_once('/').filter(|_| !token.contains('[')) else {
            stack.push(value(rules, token));
            continue;
        };
        let name = if name.starts_with("operator_") { name.replacen('_', " ", 1) } else { name.to_owned() };
        let operands = stack.split_off(stack.len() - arity.parse::<usize>().unwrap());
        match apply(rules, &name, &operands) {
            Some(value) => stack.push(value),
            None => return "!".to_owned(),
        }
    }
    let (operand, dims) = stack.pop().unwrap();
    let dims = dims.unwrap().iter().map(Dim::to_string).collect::<Vec<_>>().join(",");
    format!("{}[{dims}]", rules.type_name(operand.element_type))
}

fn compare(rules: &str, file: &str) {
    let rules = RuleSet::from_name(rules).unwrap();
    let text = read(&format!("expressions/{file}.tsv"));
    let mut mismatches = Vec::new();
    for line in text.lines() {
        let (expression, theirs) = line.split_once('\t').unwrap();
        let ours = evaluate(&rules, expression);
        if ours != theirs {
            mismatches.push(format!("{expression}: {theirs}, we say {ours}"));
        }
    }
    let count = text.lines().count();
    assert!(
        mismatches.is_empty(),
        "{} of {count} differ:\n{}",
        mismatches.len(),
        mismatches[..mismatches.len().min(30)].join("\n")
    );
    assert_eq!(count, 5000);
}

#[test]
fn random_expressions_beside_torch() {
    compare("pytorch", "torch");
}

#[test]
fn random_expressions_beside_paddle() {
    compare("paddle", "paddle");
}
