//! Laws that hold for every rule set, and their known exceptions.
#![allow(clippy::panic, clippy::unwrap_used, reason = "test helpers fail by panicking")]

use proptest::prelude::*;
use typelift_promote::ElementType::{self, *};
use typelift_promote::numpy::can_cast;
use typelift_promote::pytorch::{Options, result_type};
use typelift_promote::{Category, Operand, Promotion, Refusal, RuleSet, Suggestion, openvino};

/// Returns every rule set with every setting that changes its answers.
fn rule_sets() -> Vec<RuleSet> {
    let mut all: Vec<_> = RuleSet::all().collect();
    for (promote_unsafe, pytorch_scalar_promotion) in [(true, false), (false, true), (true, true)] {
        let attributes = openvino::Options { promote_unsafe, pytorch_scalar_promotion, ..Default::default() };
        all.push(RuleSet::OpenVino(attributes));
    }
    all.extend([F16, Bf16, F64].map(|default_dtype| RuleSet::PyTorch(Options { default_dtype })));
    all
}

fn operands(rules: &RuleSet) -> Vec<Operand> {
    let categories = [Category::Dimensioned, Category::ZeroDim, Category::UnknownRank];
    rules
        .types()
        .flat_map(|element_type| categories.map(|category| Operand::new(element_type, category)))
        .chain(["True", "int", "float", "complex"].map(|word| Operand::from_number(word).unwrap()))
        .collect()
}

/// Returns the answer without the parts that depend on the order of the operands.
fn answer(rules: &RuleSet, operation: &str, a: Operand, b: Operand) -> Result<ElementType, &'static str> {
    rules.promote(operation, &[a, b]).map(|promotion| promotion.result).map_err(|refusal| refusal.code())
}

#[test]
fn the_order_of_two_operands_does_not_matter() {
    for rules in rule_sets() {
        let operands = operands(&rules);
        let operation = if matches!(rules, RuleSet::Paddle(_)) { "operator +" } else { "add" };
        // NumPy treats types of ml_dtypes as interchangeable: the first one wins.
        let is_ml = |operand: Operand| {
            rules.name() == "numpy"
                && !operand.is_number()
                && can_cast(operand.element_type, F64)
                && !can_cast(operand.element_type, Bf16)
        };
        for (&a, &b) in operands.iter().flat_map(|a| operands.iter().map(move |b| (a, b))) {
            if is_ml(a) && is_ml(b) {
                continue;
            }
            assert_eq!(answer(&rules, operation, a, b), answer(&rules, operation, b, a), "{rules:?} {a:?} {b:?}");
        }
    }
}

#[test]
fn a_type_meets_itself_at_itself_wherever_it_is_taken() {
    for rules in rule_sets() {
        for ty in rules.types() {
            let same = Operand::dimensioned(ty);
            let expected = match rules {
                RuleSet::OpenVino(_) if !openvino::is_supported(ty) => Err("unsupported-type"),
                RuleSet::Paddle(_) if rules.name() == "paddle-2.6" && ty.bits() == 8 && ty.is_float() => {
                    Err("out-of-scope")
                }
                _ => Ok(ty),
            };
            assert_eq!(answer(&rules, "add", same, same), expected, "{rules:?} {ty}");
        }
    }
}

#[test]
fn dynamic_absorbs_every_type_that_is_taken() {
    for rules in rule_sets() {
        for &operand in operands(&rules).iter().filter(|operand| operand.category != Category::Number) {
            let expected = match rules {
                RuleSet::OpenVino(_) if !openvino::is_supported(operand.element_type) => Err("unsupported-type"),
                _ => Ok(Dynamic),
            };
            assert_eq!(
                answer(&rules, "add", operand, Operand::dimensioned(Dynamic)),
                expected,
                "{rules:?} {operand:?}"
            );
        }
    }
}

#[test]
fn a_rank_that_is_not_known_never_changes_an_answer_given() {
    for rules in rule_sets().into_iter().filter(|rules| !matches!(rules, RuleSet::OpenVino(_))) {
        for operation in rules.operations() {
            for a in rules.types().map(|element_type| Operand::new(element_type, Category::UnknownRank)) {
                for b in operands(&rules) {
                    let Ok(promotion) = rules.promote(operation.name, &[a, b]) else { continue };
                    for category in [Category::Dimensioned, Category::ZeroDim] {
                        match rules.promote(operation.name, &[Operand { category, ..a }, b]) {
                            Ok(known) => assert_eq!(known, promotion, "{rules:?} {operation:?} {a:?} {b:?}"),
                            Err(refusal) => assert!(["rank", "unknown-rank"].contains(&refusal.code()), "{refusal}"),
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn promote_unsafe_refuses_only_types_that_are_not_taken_and_keeps_every_safe_answer() {
    for pytorch_scalar_promotion in [false, true] {
        let safe = openvino::Options { pytorch_scalar_promotion, ..Default::default() };
        let unsafely = openvino::Options { promote_unsafe: true, ..safe };
        let operands = operands(&RuleSet::OpenVino(safe));
        for (&a, &b) in operands.iter().flat_map(|a| operands.iter().map(move |b| (a, b))) {
            match (openvino::promote(a, b, &safe), openvino::promote(a, b, &unsafely)) {
                (Ok(safe), unsafely) => assert_eq!(unsafely, Ok(safe)),
                (Err(refusal), unsafely) => assert_eq!(unsafely.is_err(), refusal.code() == "unsupported-type"),
            }
        }
    }
}

/// Returns the answer after a suggested change.
fn followed(
    rules: &RuleSet,
    operation: &str,
    operands: &[Operand],
    suggestion: Suggestion,
) -> Result<Promotion, Refusal> {
    let (mut rules, mut operation, mut operands) = (*rules, operation, operands.to_vec());
    match suggestion {
        Suggestion::Flag { name, .. } => assert!(rules.set(name, "")),
        Suggestion::Operation(other) => operation = other,
        Suggestion::Tensor { operand, to } => operands[operand] = Operand::zero_dim(to),
        Suggestion::Rank { operand, is_zero: true } => operands[operand].category = Category::ZeroDim,
        Suggestion::Rank { operand, is_zero: false } => operands[operand].category = Category::Dimensioned,
        Suggestion::Convert { operand, to } => operands[operand].element_type = to,
        Suggestion::ConvertAll(to) => {
            for operand in &mut operands {
                let category = if operand.is_number() { Category::Dimensioned } else { operand.category };
                *operand = Operand::new(to, category);
            }
        }
    }
    rules.promote(operation, &operands)
}

#[test]
fn every_remedy_works_when_followed() {
    let types = [Boolean, U8, I8, I32, I64, U16, F16, Bf16, F32, C64, F8E4M3];
    let numbers = ["True", "1", "1.0", "1j"].map(|text| Operand::from_number(text).unwrap());
    let tensors = types.into_iter().flat_map(|ty| [Operand::dimensioned(ty), Operand::zero_dim(ty)]);
    let operands: Vec<_> = tensors.chain(numbers).collect();
    let (mut refused, mut without) = (0, 0);
    // The document of Paddle 2.6 leaves out whole operations, and no change makes it answer.
    for rules in RuleSet::all().filter(|rules| rules.name() != "paddle-2.6") {
        for operation in rules.operations().filter(|operation| operation.takes(2)) {
            for (&a, &b) in operands.iter().flat_map(|a| operands.iter().map(move |b| (a, b))) {
                if rules.promote(operation.name, &[a, b]).is_ok() {
                    continue;
                }
                refused += 1;
                match rules.suggestion(operation.name, &[a, b]) {
                    Some(suggestion) => {
                        let answer = followed(&rules, operation.name, &[a, b], suggestion);
                        assert!(answer.is_ok(), "{} {} {a:?} {b:?} {suggestion:?}", rules.name(), operation.name);
                    }
                    None => without += 1,
                }
            }
        }
    }
    assert!(refused > 10_000 && without * 20 < refused, "{without} of {refused} have no suggestion");
}

#[test]
fn the_last_step_of_a_derivation_is_its_result() {
    for rules in rule_sets() {
        for operation in rules.operations() {
            for (a, b) in [(F16, I32), (I8, U8), (Boolean, F64), (F32, F64)] {
                let operands = [Operand::dimensioned(a), Operand::zero_dim(b)];
                let mut last = None;
                let answer = rules.trace(operation.name, &operands, &mut |step| last = Some(step.to));
                if let (Ok(promotion), Some(last)) = (answer, last) {
                    assert_eq!(last, promotion.result, "{} {operation:?} {a} {b}", rules.name());
                }
            }
        }
    }
}

fn any_operand() -> impl Strategy<Value = Operand> {
    let categories =
        [Category::Dimensioned, Category::ZeroDim, Category::UnknownRank, Category::Number, Category::Weak];
    (prop::sample::select(ElementType::all().collect::<Vec<_>>()), prop::sample::select(categories.to_vec()))
        .prop_map(|(element_type, category)| Operand::new(element_type, category))
}

proptest! {
    #[test]
    fn no_operands_of_any_kind_and_number_make_an_operation_panic(
        operands in prop::collection::vec(any_operand(), 0..12),
        target in prop::sample::select(ElementType::all().collect::<Vec<_>>()),
    ) {
        let attributes = openvino::Options { u64_integer_promotion_target: target, ..Default::default() };
        for rules in rule_sets().into_iter().chain([RuleSet::OpenVino(attributes)]) {
            for operation in rules.operations() {
                if let Err(refusal) = rules.promote(operation.name, &operands) {
                    prop_assert!(!refusal.to_string().is_empty());
                }
            }
        }
    }

    #[test]
    fn reading_an_operand_never_panics(text in "[a-z0-9]{0,6}(\\[[0-9?.,-]{0,9}\\]?)?|\\PC{0,20}") {
        for rules in RuleSet::all() {
            let _ = rules.operand(&text);
        }
    }

    #[test]
    fn a_repeated_operand_changes_no_result_type(operands in prop::collection::vec(any_operand(), 1..6), again in 0usize..6) {
        let first = result_type(&operands, Options::default());
        let mut more = operands.clone();
        more.push(operands[again % operands.len()]);
        let second = result_type(&more, Options::default());
        // torch combines the operands of a category from the left. An unsigned type that does not promote may come
        // before or after the float that accepts it.
        match (first, second) {
            (Ok(first), Ok(second)) => prop_assert_eq!(first, second),
            (Ok(_), Err(refusal)) => prop_assert_eq!(refusal.code(), "bare-unsigned"),
            (Err(_), second) => prop_assert!(second.is_err()),
        }
    }
}

#[test]
fn a_repeated_unsigned_operand_is_refused_as_torch_does() {
    let zero_dim = [Bf16, U1, C32, U1].map(Operand::zero_dim);
    assert_eq!(result_type(&zero_dim[..3], Options::default()), Ok(C64));
    assert_eq!(result_type(&zero_dim, Options::default()).unwrap_err().code(), "bare-unsigned");
}
