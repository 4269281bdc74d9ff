//! The common interface of all rule sets, with the spelling of types and operands that users type.

use core::fmt;

use crate::rules::{self, in_turn};
use crate::{
    Category, Clash, Dim, ElementType, Operand, Operation, PromotedAs, Promotion, Refusal, RuleSet, Setting, ShapeRule,
    Step, broadcast,
};

/// Reason why a text is not an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OperandError {
    /// The word before the shape is not a type of the rule set.
    UnknownType,
    /// The text in brackets is not a shape.
    Shape,
}

impl fmt::Display for OperandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::UnknownType => "not an element type of these rules",
            Self::Shape => "not a shape: expected something like [], [2,3], [?,1..5] or [...]",
        })
    }
}

impl core::error::Error for OperandError {}

impl RuleSet {
    /// Returns every rule set with its default settings.
    pub fn all() -> impl Iterator<Item = Self> + Clone {
        Self::variants().filter(|(words, rules)| *words == rules.name()).map(|(_, rules)| rules)
    }

    /// Returns the rule sets that can align the types of models, with default settings.
    pub fn for_models() -> impl Iterator<Item = Self> + Clone {
        Self::all().filter(|rules| rules.rules().facts().is_for_models)
    }

    /// Returns the rule set of that [`name`](Self::name), with default settings.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::all().find(|rules| rules.name() == name)
    }

    /// Returns the name: `openvino`, `pytorch`, `paddle`, `paddle-2.6` for Paddle's published rules, `numpy`, `numpy-1`, `jax`,
    /// `jax-strict`.
    pub fn name(&self) -> &'static str {
        self.rules().name()
    }

    /// Returns the name of the system in messages, such as `PyTorch`.
    pub fn title(&self) -> &'static str {
        self.rules().facts().system.title
    }

    pub(crate) fn spelling(&self) -> crate::Spelling {
        self.rules().facts().system.spelling
    }

    /// Returns the settings of the rule set.
    pub fn settings(&self) -> &'static [Setting] {
        self.rules().facts().settings
    }

    /// Changes a setting; the value of a flag is empty. Returns `false` if the setting or the value does not exist.
    ///
    /// ```
    /// use typelift_promote::RuleSet;
    /// let mut rules = RuleSet::from_name("pytorch").unwrap();
    /// assert!(rules.set("default-dtype", "f64") && !rules.set("default-dtype", "i8") && !rules.set("promote-unsafe", ""));
    /// ```
    pub fn set(&mut self, name: &str, value: &str) -> bool {
        self.rules_mut().set(name, value)
    }

    /// Returns the element types that the rule set knows, except `dynamic`.
    pub fn types(&self) -> impl Iterator<Item = ElementType> + Clone + '_ {
        let has_type = self.rules().facts().has_type;
        ElementType::all().filter(move |&ty| ty != ElementType::Dynamic && has_type(ty))
    }

    /// Returns the rule set's own name of a type: `boolean` and `f8e4m3` under OpenVINO, else `bool` and `f8e4m3fn`.
    pub fn type_name(&self, ty: ElementType) -> &'static str {
        self.rules().facts().system.spelling.name(ty)
    }

    /// Describes a step of a derivation, with types in the rule set's spelling.
    pub fn describe(&self, step: Step) -> impl fmt::Display {
        step.spelled(self.rules().facts().system.spelling)
    }

    /// Returns the type with that name in the rule set's spelling, even if the rule set does not support the type.
    pub fn type_from_name(&self, name: &str) -> Option<ElementType> {
        self.rules().facts().system.spelling.from_name(name)
    }

    /// Returns the operand categories that the rule set distinguishes.
    pub fn categories(&self) -> &'static [Category] {
        self.rules().facts().categories
    }

    /// Parses an operand: a type with a shape, such as `u8[2]`, `i64[]`, `f16[...]`, `f32[?]`; a type alone, which has
    /// dimensions; or a [Python number](Operand::from_number). A star after the type makes an array weakly typed:
    /// `f32*[2]`.
    ///
    /// # Errors
    /// An unknown type, or a text in brackets that is not a shape.
    pub fn operand(&self, text: &str) -> Result<Operand, OperandError> {
        if let Some(number) = Operand::from_number(text) {
            return Ok(number);
        }
        let (name, shape) = split_shape(text)?;
        let category = match shape.map(str::trim) {
            None => Category::Dimensioned,
            Some("") => Category::ZeroDim,
            Some("...") => Category::UnknownRank,
            Some(dims) if dims.split(',').all(is_dimension) => Category::Dimensioned,
            _ => return Err(OperandError::Shape),
        };
        let has_weak = self.categories().contains(&Category::Weak);
        let (name, category) = match name.trim().strip_suffix('*').filter(|_| has_weak) {
            Some(name) => (name, Category::Weak),
            None => (name.trim(), category),
        };
        let element_type = self.type_from_name(name).ok_or(OperandError::UnknownType)?;
        Ok(Operand::new(element_type, category))
    }

    /// Returns the operations of the rule set.
    pub fn operations(&self) -> impl Iterator<Item = &'static Operation> + '_ {
        (0..).map_while(|at| self.rules().operation(at))
    }

    /// Returns the operation with that name.
    pub fn operation(&self, name: &str) -> Option<&'static Operation> {
        self.operations().find(|operation| operation.name == name)
    }

    /// Returns the type that the operation converts its operands to, and the type of its result. An operand of type
    /// `dynamic` makes both `dynamic`, except that comparisons give booleans.
    ///
    /// Every rule set has the operation `result_type`, which accepts any number of operands.
    ///
    /// ```
    /// use typelift_promote::{ElementType::*, Operand, RuleSet};
    /// let operands = [Operand::dimensioned(I32), Operand::zero_dim(F16), Operand::dimensioned(F32)];
    /// let common = |rules| RuleSet::from_name(rules).unwrap().promote("result_type", &operands).map(|found| found.result);
    /// assert_eq!(common("pytorch"), Ok(F32));
    /// assert_eq!(common("numpy"), Ok(F64));
    /// assert_eq!(common("openvino").unwrap_err().code(), "integer-to-float");
    /// ```
    ///
    /// # Errors
    /// A combination that the rule set refuses, an unknown operation, or an operand of unknown rank if the answer
    /// depends on the rank. Kernels that are missing on a device are not considered.
    pub fn promote(&self, operation: &str, operands: &[Operand]) -> Result<Promotion, Refusal> {
        self.trace(operation, operands, &mut |_| {})
    }

    /// Does the same as [`promote`](Self::promote), and passes each step of the derivation to `trace`.
    ///
    /// # Errors
    /// The errors of [`promote`](Self::promote).
    pub fn trace(
        &self,
        operation: &str,
        operands: &[Operand],
        trace: &mut dyn FnMut(Step),
    ) -> Result<Promotion, Refusal> {
        rules::trace(self.rules(), operation, operands, trace)
    }

    /// Returns the common type of any number of operands, and passes each step of the derivation to `trace`. `None`
    /// without operands.
    ///
    /// An operation that accepts that many operands decides itself. Otherwise operands are combined two at a time in
    /// the given order, numbers after tensors. The order matters, because not every rule is associative. An
    /// intermediate result has dimensions if one of its operands has. A number is treated as a tensor of rank 0 if
    /// there are only numbers, or if the rule set has no numbers.
    ///
    /// ```
    /// use typelift_promote::{ElementType::*, Operand, RuleSet};
    /// let operands = [Operand::dimensioned(F16), Operand::number(I64), Operand::dimensioned(F32)];
    /// let all = |rules: &str, name| RuleSet::from_name(rules).unwrap().promote_all(name, &operands, &mut |_| {});
    /// assert_eq!(all("pytorch", "result_type"), Ok(Some(F32)));
    /// assert_eq!(all("openvino", "add").unwrap_err().code(), "integer-to-float");
    /// ```
    ///
    /// # Errors
    /// A combination that the rule set refuses, or an unknown operation.
    pub fn promote_all(
        &self,
        operation: &str,
        operands: &[Operand],
        trace: &mut dyn FnMut(Step),
    ) -> Result<Option<ElementType>, Refusal> {
        let has_numbers = self.categories().contains(&Category::Number);
        if operands.is_empty() {
            return Ok(None);
        }
        if has_numbers && self.operation(operation).is_some_and(|row| row.takes(operands.len())) {
            return self.trace(operation, operands, trace).map(|promotion| Some(promotion.common));
        }
        let all = in_turn(operands.iter().copied(), has_numbers, |found, next| {
            self.trace(operation, &[found, next], trace).map(|promotion| promotion.common)
        });
        all.map(Some)
    }

    /// Returns the rule set's operation whose rule applies to operations of models that promote this way.
    pub fn operation_for(&self, promoted_as: PromotedAs) -> &'static str {
        self.rules().operation_for(promoted_as)
    }

    /// True if operations of models that promote this way compute in floating point for this type.
    pub fn works_on_floats(&self, promoted_as: PromotedAs, ty: ElementType) -> bool {
        self.rules().works_on_floats(promoted_as, ty)
    }

    /// True if logical operations of models accept numbers, where any value except zero is true.
    pub fn takes_numbers_for_truth(&self) -> bool {
        self.rules().facts().takes_numbers_for_truth
    }

    /// True if a tensor of a model may be converted to a type that only the operation requires.
    pub fn may_convert(&self, from: ElementType, to: ElementType) -> bool {
        self.rules().may_convert(from, to)
    }

    /// Returns the same rules with one more permissive flag set, one variant for each such flag that is not set yet.
    ///
    /// ```
    /// use typelift_promote::RuleSet;
    /// let (setting, laxer) = RuleSet::from_name("openvino").unwrap().laxer().next().unwrap();
    /// assert_eq!(setting.name, "promote-unsafe");
    /// assert!(laxer.laxer().next().is_none());
    /// ```
    pub fn laxer(&self) -> impl Iterator<Item = (&'static Setting, Self)> + '_ {
        self.settings().iter().filter(|setting| setting.is_laxer).filter_map(|setting| {
            let mut laxer = *self;
            (laxer.set(setting.name, "") && laxer != *self).then_some((setting, laxer))
        })
    }

    /// Returns the type that a floating-point operation converts integers and booleans to: PyTorch's default type, else
    /// `f32`.
    pub fn default_float(&self) -> ElementType {
        self.rules().facts().default_float
    }

    /// Returns the shape of the result of an element-wise operation. `shapes` are those of the operands that are not
    /// numbers. `None` if the operation is not element-wise.
    ///
    /// ```
    /// use typelift_promote::{Dim, ElementType::F32, Operand, RuleSet};
    /// let rules = RuleSet::from_name("pytorch").unwrap();
    /// let operands = [Operand::dimensioned(F32); 2];
    /// let (a, b) = ([Dim::fixed(2), Dim::fixed(1)], [Dim::fixed(3)]);
    /// let shape = rules.broadcast::<Vec<_>>("add", &operands, [&a[..], &b].into_iter()).unwrap();
    /// assert_eq!(shape, Ok(vec![Dim::fixed(2), Dim::fixed(3)]));
    /// assert!(rules.broadcast::<Vec<_>>("add_", &operands, [&a[..], &b].into_iter()).unwrap().is_err());
    /// ```
    pub fn broadcast<'a, C: FromIterator<Dim>>(
        &self,
        operation: &str,
        operands: &'a [Operand],
        shapes: impl Iterator<Item = &'a [Dim]> + Clone,
    ) -> Option<Result<C, Clash>> {
        let operation = self.operation(operation)?;
        let rules = self.rules();
        let numbers = operands.iter().enumerate().filter(|(_, operand)| operand.is_number());
        let shapes = shapes.chain(numbers.map(|(at, &number)| rules.number_dims(operation, number, at)));
        Some(match operation.shape {
            ShapeRule::Other => return None,
            ShapeRule::Broadcast => broadcast::numpy(shapes),
            ShapeRule::Pdpd => {
                let mut two = shapes;
                broadcast::pdpd(two.next().unwrap_or_default(), two.next().unwrap_or_default(), -1)
            }
            ShapeRule::Equal => broadcast::equal(shapes),
            ShapeRule::InPlace => broadcast::in_place(shapes),
        })
    }
}

/// Splits an operand into the name of its type and the text of its shape, if it has one.
pub(crate) fn split_shape(text: &str) -> Result<(&str, Option<&str>), OperandError> {
    match text.split_once('[') {
        None => Ok((text, None)),
        Some((name, rest)) => Ok((name, Some(rest.strip_suffix(']').ok_or(OperandError::Shape)?))),
    }
}

/// True for `3`, `?`, `-1`, `1..5`, `1..`, `..5`.
fn is_dimension(text: &str) -> bool {
    let is_length = |text: &str| text.parse::<u64>().is_ok() && text.bytes().all(|byte| byte.is_ascii_digit());
    match text.trim() {
        "?" | "-1" => true,
        text => match text.split_once("..") {
            None => is_length(text),
            Some(("", "")) => false,
            Some((low, high)) => [low, high].iter().all(|bound| bound.is_empty() || is_length(bound)),
        },
    }
}
