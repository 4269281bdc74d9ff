//! Interface that every rule set implements, and the answers that all of them share.

use crate::derivation::Trace;
use crate::operand::{Operands, agreeing_ranks};
use crate::{
    Category, Dim, ElementType, Fidelity, Kind, Operand, Operation, Promotion, Reason, Refusal, System, fidelity,
};

/// Way in which frameworks promote the inputs of a model's operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PromotedAs {
    /// As an addition does.
    Ordinary,
    /// Like true division: PyTorch and Paddle give floating point for integers.
    Division,
    /// As a difference, which PyTorch refuses for booleans.
    Difference,
    /// As a function that PyTorch computes in floating point only: integers and booleans become its default type, where
    /// OpenVINO continues with integers.
    FloatFunction,
    /// As a negation: any value except zero is true.
    Negation,
}

/// Facts about a rule set that need no operands.
#[derive(Clone, Copy)]
pub struct Facts {
    /// The name of the rule set in messages, and its spelling of types.
    pub system: System,
    /// True if it has the type. `dynamic` is known to all rule sets and is never asked for.
    pub has_type: fn(ElementType) -> bool,
    /// The operand categories that matter, each a side of the printed matrix.
    pub categories: &'static [Category],
    /// True if answers depend on which operands have rank 0. Then operands of unknown rank get an assumed rank before
    /// the rule set decides, and the promotion is refused if that rank matters.
    pub goes_by_rank: bool,
    /// The type that a floating-point operation converts integers and booleans to.
    pub default_float: ElementType,
    /// True if logical operations of models accept numbers, where any value except zero is true.
    pub takes_numbers_for_truth: bool,
    /// True if the rule set can align the types of models, because it has an answer for most types that meet in graphs
    /// of OpenVINO.
    pub is_for_models: bool,
    /// The settings of the rule set.
    pub settings: &'static [Setting],
}

impl Facts {
    /// The facts of most rule sets: those about tensors with and without dimensions and numbers.
    pub(crate) const fn new(system: System, has_type: fn(ElementType) -> bool) -> Self {
        Self {
            system,
            has_type,
            categories: &[Category::Dimensioned, Category::ZeroDim, Category::Number],
            goes_by_rank: true,
            default_float: ElementType::F32,
            takes_numbers_for_truth: false,
            is_for_models: false,
            settings: &[],
        }
    }
}

/// Definition of a rule set. [`RuleSet`](crate::RuleSet) and the program use only this interface.
pub trait Rules {
    /// The word that selects the rule set: `pytorch`.
    fn name(&self) -> &'static str;

    /// The facts about it with its settings.
    fn facts(&self) -> Facts;

    /// A row of its table of operations. `result_type` is one of them.
    fn operation(&self, at: usize) -> Option<&'static Operation>;

    /// Decides for an operation and a number of operands that it accepts. All ranks and types are known.
    ///
    /// # Errors
    /// A combination that the rule set refuses.
    fn decide(&self, at: usize, operands: Operands<'_>, trace: Trace<'_>) -> Result<Promotion, Refusal>;

    /// The answer when an operand is `dynamic`: `dynamic`, unless the operation gives booleans.
    ///
    /// # Errors
    /// A combination that the rule set refuses for any type that `dynamic` may become.
    fn decide_dynamic(&self, operation: &Operation, _operands: &[Operand]) -> Result<Promotion, Refusal> {
        let result = if operation.is_test { ElementType::Boolean } else { ElementType::Dynamic };
        Ok(Promotion::new(ElementType::Dynamic, result))
    }

    /// The dimensions with which a Python number takes part in broadcasting; `at` is its position.
    fn number_dims(&self, _operation: &Operation, _number: Operand, _at: usize) -> &'static [Dim] {
        &[]
    }

    /// The rule set's operation whose rule applies to operations of models that promote this way.
    fn operation_for(&self, _promoted_as: PromotedAs) -> &'static str {
        "result_type"
    }

    /// True if operations of models that promote this way compute in floating point for this type, which is not a
    /// float.
    fn works_on_floats(&self, _promoted_as: PromotedAs, _ty: ElementType) -> bool {
        false
    }

    /// True if a tensor of a model may be converted to a type that only the operation requires.
    fn may_convert(&self, from: ElementType, to: ElementType) -> bool {
        fidelity(from, to).is_some_and(Fidelity::is_exact)
    }

    /// Changes a setting; the value of a flag is empty. Returns `false` if the setting or the value does not exist.
    fn set(&mut self, _name: &str, _value: &str) -> bool {
        false
    }
}

/// Setting of a rule set, which is an option of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Setting {
    /// The name, with words joined by hyphens.
    pub name: &'static str,
    /// The placeholder for its value in help texts; `None` for a flag.
    pub value: Option<&'static str>,
    /// A description in one sentence.
    pub help: &'static str,
    /// True if the flag permits promotions that are refused without it.
    pub is_laxer: bool,
}

pub(crate) fn operations(rules: &dyn Rules) -> impl Iterator<Item = &'static Operation> + '_ {
    (0..).map_while(|at| rules.operation(at))
}

/// Decides for an operation and operands; see [`RuleSet::trace`](crate::RuleSet::trace).
pub(crate) fn trace(
    rules: &dyn Rules,
    operation: &str,
    operands: &[Operand],
    trace: Trace<'_>,
) -> Result<Promotion, Refusal> {
    let facts = rules.facts();
    let refuse = |reason, a, b| facts.system.refuse(reason, a, b);
    let found = operations(rules).enumerate().find(|(_, row)| row.name == operation);
    let (at, row) = found.ok_or(refuse(Reason::UNKNOWN_OPERATION, ElementType::Dynamic, ElementType::Dynamic))?;
    if !row.takes(operands.len()) {
        return Err(refuse(Reason::ARITY, ElementType::Dynamic, ElementType::Dynamic));
    }
    let types = || operands.iter().map(|operand| operand.element_type);
    let is_known = |operand: &&Operand| match operand.element_type {
        ElementType::Dynamic => true,
        ty if operand.is_number() => !matches!(ty.kind(), Kind::String | Kind::Bits),
        ty => (facts.has_type)(ty),
    };
    if let Some(ty) = operands.iter().find(|operand| !is_known(operand)).map(|operand| operand.element_type) {
        return Err(refuse(Reason::UNKNOWN_TYPE, ty, ty));
    }
    if types().any(|ty| ty == ElementType::Dynamic) {
        return rules.decide_dynamic(row, operands);
    }
    if !facts.goes_by_rank {
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

/// Combines operands two at a time; see [`RuleSet::promote_all`](crate::RuleSet::promote_all).
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
        Ok(Operand::new(meet(found, next)?, category))
    })?;
    Ok(all.element_type)
}
