//! What a rule set is, and the answers that follow from that.

use crate::derivation::Trace;
use crate::operand::{Operands, agreeing_ranks};
use crate::{
    Category, Dim, ElementType, Fidelity, Kind, Operand, Operation, Promotion, Reason, Refusal, System, fidelity,
};

/// How frameworks promote the inputs of an operation of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PromotedAs {
    /// As those of an addition.
    Ordinary,
    /// True division: PyTorch and Paddle give floating point for integers.
    Division,
    /// A difference, which PyTorch does not have for booleans.
    Difference,
    /// A function that PyTorch works out in floating point only, making integers and booleans of its default type, where
    /// OpenVINO continues with integers.
    FloatFunction,
    /// A negation: what is not zero is true.
    Negation,
}

/// What a rule set is. Everything else, [`RuleSet`](crate::RuleSet) and the program included, is made of this.
pub trait Rules {
    /// The word that chooses it: `pytorch`.
    fn name(&self) -> &'static str;

    /// Its name in messages, and how it spells types.
    fn system(&self) -> System;

    /// Whether it knows the type; `dynamic` is known to all and need not be asked about.
    fn has_type(&self, ty: ElementType) -> bool;

    /// A row of its table of operations, `result_type` among them.
    fn operation(&self, at: usize) -> Option<&'static Operation>;

    /// The answer for that operation, on as many operands as it takes, of known rank and known type.
    ///
    /// # Errors
    /// What the rule set refuses.
    fn decide(&self, at: usize, operands: Operands<'_>, trace: Trace<'_>) -> Result<Promotion, Refusal>;

    /// The answer when an operand is `dynamic`; `dynamic` unless the operation gives booleans.
    ///
    /// # Errors
    /// What the rule set refuses whatever the type may turn out to be.
    fn decide_dynamic(&self, operation: &Operation, _operands: &[Operand]) -> Result<Promotion, Refusal> {
        let result = if operation.is_test { ElementType::Boolean } else { ElementType::Dynamic };
        Ok(Promotion::new(ElementType::Dynamic, result))
    }

    /// Whether answers depend on which operands have rank 0. Then those of unknown rank get one before the rule set
    /// decides, and it refuses where that makes a difference.
    fn goes_by_rank(&self) -> bool {
        true
    }

    /// The dims with which a Python number takes part in broadcasting; `at` is its position.
    fn number_dims(&self, _operation: &Operation, _number: Operand, _at: usize) -> &'static [Dim] {
        &[]
    }

    /// The operation whose rule holds for operations of models that promote this way.
    fn operation_for(&self, _promoted_as: PromotedAs) -> &'static str {
        "add"
    }

    /// Whether operations of models that promote this way work on floats where they are given this type, which is not one.
    fn works_on_floats(&self, _promoted_as: PromotedAs, _ty: ElementType) -> bool {
        false
    }

    /// Whether logic takes numbers of models: what is not zero is true.
    fn takes_numbers_for_truth(&self) -> bool {
        false
    }

    /// Whether a tensor of a model may be converted to a type that the operation alone asks for.
    fn may_convert(&self, from: ElementType, to: ElementType) -> bool {
        fidelity(from, to).is_some_and(Fidelity::is_exact)
    }

    /// What an operation that works on floats makes of integers and booleans.
    fn default_float(&self) -> ElementType {
        ElementType::F32
    }

    /// Whether the types of models are aligned by it: it has an answer for most types that meet in graphs of OpenVINO.
    fn is_for_models(&self) -> bool {
        false
    }

    /// The kinds of operand that make a difference, each a side of the printed matrix.
    fn categories(&self) -> &'static [Category];

    /// The settings that it has.
    fn settings(&self) -> &'static [Setting] {
        &[]
    }

    /// Changes a setting; the value of a flag is empty. `false` if there is no such setting, or not with that value.
    fn set(&mut self, _name: &str, _value: &str) -> bool {
        false
    }
}

/// A setting of a rule set, an option of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Setting {
    /// Its name, words joined by hyphens.
    pub name: &'static str,
    /// The word for its value in help; `None` for a flag.
    pub value: Option<&'static str>,
    /// What it does, in one sentence.
    pub help: &'static str,
    /// Whether the flag allows what is refused without it.
    pub is_laxer: bool,
}

/// The rows of the table of operations.
pub(crate) fn operations(rules: &dyn Rules) -> impl Iterator<Item = &'static Operation> + '_ {
    (0..).map_while(|at| rules.operation(at))
}

/// The answer for an operation on these operands; see [`RuleSet::trace`](crate::RuleSet::trace).
pub(crate) fn trace(
    rules: &dyn Rules,
    operation: &str,
    operands: &[Operand],
    trace: Trace<'_>,
) -> Result<Promotion, Refusal> {
    let refuse = |reason, a, b| rules.system().refuse(reason, a, b);
    let found = operations(rules).enumerate().find(|(_, row)| row.name == operation);
    let (at, row) = found.ok_or(refuse(Reason::UNKNOWN_OPERATION, ElementType::Dynamic, ElementType::Dynamic))?;
    if !row.takes(operands.len()) {
        return Err(refuse(Reason::ARITY, ElementType::Dynamic, ElementType::Dynamic));
    }
    let types = || operands.iter().map(|operand| operand.element_type);
    let is_known = |operand: &&Operand| match operand.element_type {
        ElementType::Dynamic => true,
        ty if operand.is_number() => !matches!(ty.kind(), Kind::String | Kind::Bits),
        ty => rules.has_type(ty),
    };
    if let Some(ty) = operands.iter().find(|operand| !is_known(operand)).map(|operand| operand.element_type) {
        return Err(refuse(Reason::UNKNOWN_TYPE, ty, ty));
    }
    if types().any(|ty| ty == ElementType::Dynamic) {
        return rules.decide_dynamic(row, operands);
    }
    if !rules.goes_by_rank() {
        return rules.decide(at, Operands::new(operands, None), trace);
    }
    let decide = |ranks| rules.decide(at, Operands::new(operands, Some(ranks)), &mut |_| {});
    let ranks = agreeing_ranks(operands, decide, |refusal| refusal.reason == Reason::RANK);
    let ranks = ranks.ok_or_else(|| {
        let all = Operands::new(operands, None);
        refuse(Reason::UNKNOWN_RANK, all.first().element_type, all.last().element_type)
    })?;
    rules.decide(at, Operands::new(operands, Some(ranks)), trace)
}

/// Operands that meet two at a time; see [`RuleSet::promote_all`](crate::RuleSet::promote_all).
pub(crate) fn in_turn(
    operands: impl Iterator<Item = Operand> + Clone,
    has_numbers: bool,
    mut meet: impl FnMut(Operand, Operand) -> Result<ElementType, Refusal>,
) -> Result<ElementType, Refusal> {
    let as_tensors = !has_numbers || operands.clone().all(Operand::is_number);
    let is_late = move |operand: &Operand| operand.is_number() && !as_tensors;
    let tensors = operands.clone().filter(move |operand| !is_late(operand));
    let mut operands = tensors.chain(operands.filter(is_late)).map(|operand| match operand.category {
        Category::Number if as_tensors => Operand::zero_dim(operand.element_type),
        _ => operand,
    });
    let first = operands.next().unwrap_or(Operand::zero_dim(ElementType::Dynamic));
    let all = operands.try_fold(first, |found, next| -> Result<Operand, Refusal> {
        let category = match [found.category, next.category] {
            pair if pair.contains(&Category::Dimensioned) => Category::Dimensioned,
            pair if pair.contains(&Category::UnknownRank) => Category::UnknownRank,
            _ => Category::ZeroDim,
        };
        Ok(Operand { element_type: meet(found, next)?, category })
    })?;
    Ok(all.element_type)
}
