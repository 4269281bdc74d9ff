//! Any text as operands under every rule set, and as a shape: nothing panics, and what is parsed and printed parses
//! again.
//!
//! From `crates/typelift`: `cargo +nightly fuzz run promotion`
#![no_main]

use typelift::promote::RuleSet;
use typelift::shape::Shape;

libfuzzer_sys::fuzz_target!(|text: &str| {
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
            let _ = rules.promote_all(operation.name, &operands, &mut |step| steps.push(rules.describe(step).to_string()));
            assert!(steps.iter().all(|step| !step.is_empty()), "{} {operation:?} {operands:?}", rules.name());
        }
    }
});
