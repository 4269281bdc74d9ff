//! Laws that hold for any text as operands of a promotion and as a shape, for tests and fuzz targets.

use typelift::promote::RuleSet;
use typelift::shape::Shape;

/// Nothing panics, and what is parsed and printed parses again.
pub(crate) fn survive(text: &str) {
    match Shape::parse_lenient(text) {
        Ok((shape, oddities)) if oddities.is_empty() => {
            assert_eq!(Shape::parse_lenient(&shape.to_string()), Ok((shape, oddities)));
        }
        _ => {}
    }
    for rules in RuleSet::all() {
        let operands: Vec<_> = text.split_whitespace().filter_map(|word| rules.operand(word).ok()).collect();
        for operation in rules.operations() {
            if let Ok(promotion) = rules.promote(operation.name, &operands) {
                let known = rules.type_from_name(rules.type_name(promotion.result));
                assert_eq!(known, Some(promotion.result), "{} {operation:?} {operands:?}", rules.name());
            }
            let mut steps = Vec::new();
            let _ =
                rules.promote_all(operation.name, &operands, &mut |step| steps.push(rules.describe(step).to_string()));
            assert!(steps.iter().all(|step| !step.is_empty()), "{} {operation:?} {operands:?}", rules.name());
        }
    }
}
