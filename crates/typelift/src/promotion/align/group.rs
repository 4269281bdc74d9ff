//! Groups of inputs that must have one type, and their common type by promotion rules.

use std::borrow::Cow;
use std::fmt::Write as _;

use smallvec::SmallVec;
use typelift_promote::{Category, ElementType, Operand, PromotedAs, Refusal, RuleSet};

use crate::findings::{Code, Fix, FixAction, Message, Rules, Text, list, message};
use crate::model::graph::{Layer, OutputPort};
use crate::ops::{Accepts, Fault, Subject, is_constant};

pub(super) fn operands(subject: &Subject, inputs: &[&OutputPort]) -> Vec<Operand> {
    // The ranges of a FakeQuantize are never converted like scalar numbers, because rounded ranges would quantize
    // differently.
    let in_full = subject.operation.tied_when_run;
    let category =
        |category| if in_full && category != Category::UnknownRank { Category::Dimensioned } else { category };
    let feeds = subject.graph.feeds(subject.layer.id());
    let producer = |input: usize| feeds.get(input).copied().flatten().map(|(layer, _)| layer);
    let operands = inputs.iter().enumerate().map(|(input, port)| operand(producer(input), port));
    operands.map(|operand| Operand { category: category(operand.category), ..operand }).collect()
}

/// A constant of rank 0 is treated as a scalar number.
pub(super) fn operand(producer: Option<&Layer>, port: &OutputPort) -> Operand {
    let category = match port.shape.rank() {
        None => Category::UnknownRank,
        Some(0) if producer.is_some_and(is_constant) => Category::Number,
        Some(0) => Category::ZeroDim,
        Some(_) => Category::Dimensioned,
    };
    Operand::new(port.element_type, category)
}

pub(super) fn other_rules(
    rules: &RuleSet,
    several: bool,
    common: impl Fn(&RuleSet) -> Option<ElementType>,
) -> Vec<Fix> {
    let laxer = rules.laxer().map(|(setting, laxer)| (Some(setting.name), laxer));
    let others = RuleSet::for_models().filter(|other| other.name() != rules.name()).map(|other| (None, other));
    let found = laxer.chain(others).filter_map(|(setting, other)| {
        let (rules, to) = (Rules { name: other.name(), setting }, common(&other)?);
        Some(Fix::untried(FixAction::AlignBy { rules, several, to }))
    });
    found.collect()
}

pub(super) fn common_type(
    rules: &RuleSet,
    promoted_as: PromotedAs,
    operands: &[Operand],
    reason: &mut String,
) -> Result<ElementType, Refusal> {
    let mut steps = Vec::new();
    let found = rules.promote_all(rules.operation_for(promoted_as), operands, &mut |step| {
        let step = rules.describe(step).to_string();
        if !steps.contains(&step) {
            steps.push(step);
        }
    });
    let _ = write!(reason, "{} rules, {}", rules.name(), steps.join("; "));
    Ok(found?.unwrap_or(ElementType::Dynamic))
}

/// Inputs of one operation that must have one type, or a single input that is independent.
pub(super) struct Group<'a> {
    pub(super) subject: &'a Subject<'a>,
    /// All inputs of the layer.
    pub(super) operands: &'a [Operand],
    pub(super) inputs: &'a [usize],
}

pub(super) enum NoCommonType {
    Refused(Refusal),
    /// The common type is not accepted by the operation.
    NotTaken(ElementType),
    /// The common type depends on an unknown type or rank.
    Unknown,
}

impl Group<'_> {
    /// The type that the operation requires under these rules, if the input has another one. It is floating point
    /// instead of an integer type, or boolean instead of numbers.
    fn required(&self, rules: &RuleSet, ty: ElementType) -> Option<(ElementType, Cow<'static, str>)> {
        let input = *self.inputs.first()?;
        let operation = self.subject.operation;
        let is_logic = operation.accepts == Accepts::Boolean || operation.promoted_as == PromotedAs::Negation;
        if is_whole(ty) && operation.takes_only_floats(input) {
            Some((rules.default_float(), "the operation accepts only floating-point numbers".into()))
        } else if rules.works_on_floats(operation.promoted_as, ty) {
            let because = format!("{} computes this operation only on floating-point numbers", rules.name());
            Some((rules.default_float(), because.into()))
        } else if is_number(ty) && is_logic && operation.is_main(input) && rules.takes_numbers_for_truth() {
            Some((ElementType::Boolean, "the operation treats every number except zero as true".into()))
        } else {
            None
        }
    }

    /// `None` if the inputs already agree.
    pub(super) fn common_type(&self, rules: &RuleSet) -> Result<Option<(ElementType, String)>, NoCommonType> {
        let required = |ty| self.required(rules, ty);
        let types = self.inputs.iter().map(|&input| self.element_type(input));
        let mut known = types.clone().filter(|&ty| ty != ElementType::Dynamic);
        if let Some((boolean, rule)) = known.clone().find_map(required).filter(|found| found.0 == ElementType::Boolean)
        {
            return Ok(Some((boolean, rule.into_owned())));
        }
        let Some(ty) = known.next() else { return Ok(None) };
        let agree = known.all(|other| other == ty);
        if agree && required(ty).is_none() {
            return Ok(None);
        }
        if !agree && types.into_iter().any(|ty| ty == ElementType::Dynamic) {
            return Err(NoCommonType::Unknown);
        }
        let mut rule = String::new();
        let mut common = ty;
        if !agree {
            let operands: SmallVec<[Operand; 4]> =
                self.inputs.iter().filter_map(|&input| self.operands.get(input).copied()).collect();
            common = common_type(rules, self.subject.operation.promoted_as, &operands, &mut rule)
                .map_err(NoCommonType::Refused)?;
        }
        if let Some((float, because)) = required(common) {
            let separator = if rule.is_empty() { "" } else { "; " };
            let _ = write!(rule, "{separator}{common} becomes {float}: {because}");
            common = float;
        }
        let main = self.inputs.first().is_some_and(|&input| self.subject.operation.is_main(input));
        if common == ElementType::Dynamic {
            return Err(NoCommonType::Unknown);
        }
        if common.port_name().is_none() || main && !self.subject.operation.accepts.takes(common) {
            return Err(NoCommonType::NotTaken(common));
        }
        Ok(Some((common, rule)))
    }

    /// A common type by more permissive rules, if only constants change and all their values are kept exactly.
    pub(super) fn type_by_values(
        &self,
        rules: &RuleSet,
        survives: impl Fn(usize, ElementType) -> bool,
    ) -> Option<(ElementType, String)> {
        let (_, laxer) = rules.laxer().next()?;
        let (to, rule) = self.common_type(&laxer).ok()??;
        let mut others = self.inputs.iter().filter(|&&input| self.element_type(input) != to);
        others
            .all(|&input| survives(input, to))
            .then(|| (to, format!("{rule}; all values of the constant stay the same")))
    }

    pub(super) fn element_type(&self, input: usize) -> ElementType {
        self.operands.get(input).map_or(ElementType::Dynamic, |operand| operand.element_type)
    }

    /// Describes inputs: ``Add 3 `sum` takes f16 from `a` and i64 from `w` ``.
    pub(super) fn describe(&self, inputs: &[usize]) -> String {
        let Subject { layer, .. } = self.subject;
        let origin = |&input: &usize| {
            let name = self.subject.producer(input).map(Layer::name).unwrap_or_default();
            Some(format!("{} from `{name}`", self.operands.get(input)?.element_type))
        };
        let origins = list(inputs.iter().filter_map(origin).collect(), "and");
        format!("{} {} `{}` takes {origins}", layer.ty(), layer.id, layer.name)
    }

    /// Lists the types of the inputs, each once: `f16 and f32`.
    fn types(&self) -> String {
        list(self.distinct().iter().map(|&input| self.element_type(input).to_string()).collect(), "and")
    }

    pub(super) fn distinct(&self) -> SmallVec<[usize; 2]> {
        let mut first = SmallVec::<[usize; 2]>::new();
        for &input in self.inputs {
            if !first.iter().any(|&seen| self.element_type(seen) == self.element_type(input)) {
                first.push(input);
            }
        }
        first
    }

    pub(super) fn other_rules(&self, rules: &RuleSet) -> Vec<Fix> {
        other_rules(rules, self.inputs.len() > 1, |other| Some(self.common_type(other).ok()??.0))
    }

    #[cold]
    pub(super) fn fault(&self, rules: &RuleSet, why: &NoCommonType) -> Fault {
        let ty = self.subject.layer.ty();
        let message: Message = match why {
            NoCommonType::Refused(refusal) => Text(refusal).into(),
            NoCommonType::NotTaken(common) => {
                message!(
                    "`{}` takes {}, but its inputs {} have the common type {} by the {} rules";
                    ty, self.subject.operation.accepts.description(), Text(self.types()), common, rules.name()
                )
            }
            NoCommonType::Unknown => {
                message!("the common type of the inputs of `{}` depends on an unknown type or rank"; ty)
            }
        };
        let other_rules = self.other_rules(rules);
        let is_stuck = other_rules.is_empty();
        let fault = Fault {
            inputs: self.distinct(),
            other_rules: other_rules.into(),
            ..Fault::other(Code::NoCommonType, message)
        };
        let fault = fault.rule("these inputs must have one element type");
        match why {
            _ if !is_stuck => fault,
            NoCommonType::Unknown => fault.help("declare the types and ranks of the model's inputs"),
            NoCommonType::Refused(_) | NoCommonType::NotTaken(_) => {
                fault.help("insert a Convert before the input whose type should change")
            }
        }
    }
}

pub(super) fn is_whole(ty: ElementType) -> bool {
    ty.is_integer() || ty == ElementType::Boolean
}

pub(super) fn is_number(ty: ElementType) -> bool {
    ty.is_integer() || ty.is_float()
}

pub(super) fn types(inputs: &[&OutputPort]) -> Vec<ElementType> {
    inputs.iter().map(|port| port.element_type).collect()
}

/// The type is then not derived from other inputs.
pub(super) fn asks_for_indices(fault: &Fault, inputs: &[&OutputPort]) -> bool {
    let given = fault.inputs.first().and_then(|&input| inputs.get(input));
    fault.wants.is_some_and(ElementType::is_integer) && given.is_some_and(|port| !port.element_type.is_integer())
}

/// Floating-point numbers never become indices.
pub(super) fn permits(rules: &RuleSet, from: ElementType, to: ElementType) -> bool {
    let becomes_index = to.is_integer() && !from.is_integer();
    !becomes_index && rules.may_convert(from, to)
}
