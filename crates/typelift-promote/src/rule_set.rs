//! One front to all rule sets, in the words users have for types and operands.
//!
//! A rule set is one file with its table, its settings and an `impl` of [`Rules`], and one line in the registry below.

use core::fmt;

use crate::derivation::Trace;
use crate::operand::{Operands, agreeing_ranks};
use crate::{
    Category, Clash, Dim, ElementType, Kind, Operand, Operation, Promotion, Reason, Refusal, ShapeRule, Step, System,
    broadcast, jax, numpy, openvino, paddle, pytorch,
};

/// What a rule set is. Everything else, [`RuleSet`] and the program included, is made of this.
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

    /// The operation whose rule holds for those that have none of their own.
    fn ordinary_operation(&self) -> &'static str {
        "add"
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

macro_rules! registry {
    ($($(#[$doc:meta])* $variant:ident($settings:ty);)*) => {
        /// Whose rules decide, with their settings.
        ///
        /// ```
        /// use typelift_promote::RuleSet;
        /// let rules = RuleSet::from_name("pytorch").unwrap();
        /// let operands = [rules.operand("u8[2]").unwrap(), rules.operand("int").unwrap()];
        /// assert_eq!(rules.type_name(rules.promote("add", &operands).unwrap().result), "u8");
        /// ```
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum RuleSet {
            $($(#[$doc])* $variant($settings),)*
        }

        impl RuleSet {
            /// Every rule set with every setting that is worth a comparison, each with words for it: its name where all
            /// settings have their defaults.
            pub fn variants() -> impl Iterator<Item = (&'static str, Self)> + Clone {
                let none = core::iter::empty();
                none$(.chain(<$settings>::VARIANTS.iter().map(|&(words, settings)| (words, Self::$variant(settings)))))*
            }

            fn rules(&self) -> &dyn Rules {
                match self {
                    $(Self::$variant(settings) => settings,)*
                }
            }

            fn rules_mut(&mut self) -> &mut dyn Rules {
                match self {
                    $(Self::$variant(settings) => settings,)*
                }
            }
        }
    };
}

registry! {
    /// OpenVINO's `ConvertPromoteTypes`.
    OpenVino(openvino::Attributes);
    /// PyTorch.
    PyTorch(pytorch::Options);
    /// Paddle.
    Paddle(paddle::Version);
    /// NumPy.
    NumPy(numpy::NumPy);
    /// JAX.
    Jax(jax::Options);
}

/// Why a text is not an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OperandError {
    /// The word before the shape is not a type of the rule set.
    UnknownType,
    /// What is in brackets is not a shape.
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
    /// Every rule set with its default settings.
    pub fn all() -> impl Iterator<Item = Self> + Clone {
        Self::variants().filter(|(words, rules)| *words == rules.name()).map(|(_, rules)| rules)
    }

    /// Those by which the types of models are aligned, with default settings.
    pub fn for_models() -> impl Iterator<Item = Self> + Clone {
        Self::all().filter(|rules| rules.rules().is_for_models())
    }

    /// The rule set of that [`name`](Self::name), with default settings.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::all().find(|rules| rules.name() == name)
    }

    /// `openvino`, `pytorch`, `paddle`, `paddle-2.6` for Paddle's published rules, `numpy`, `jax`.
    pub fn name(&self) -> &'static str {
        self.rules().name()
    }

    /// The system whose rules these are, as messages name it: `PyTorch`.
    pub fn title(&self) -> &'static str {
        self.rules().system().title
    }

    pub(crate) fn spelling(&self) -> crate::Spelling {
        self.rules().system().spelling
    }

    /// The settings that it has.
    pub fn settings(&self) -> &'static [Setting] {
        self.rules().settings()
    }

    /// Changes a setting; the value of a flag is empty. `false` if there is no such setting, or not with that value.
    ///
    /// ```
    /// use typelift_promote::RuleSet;
    /// let mut rules = RuleSet::from_name("pytorch").unwrap();
    /// assert!(rules.set("default-dtype", "f64") && !rules.set("default-dtype", "i8") && !rules.set("promote-unsafe", ""));
    /// ```
    pub fn set(&mut self, name: &str, value: &str) -> bool {
        self.rules_mut().set(name, value)
    }

    /// The element types that the rule set knows, `dynamic` left out.
    pub fn types(&self) -> impl Iterator<Item = ElementType> + Clone + '_ {
        ElementType::all().filter(|&ty| ty != ElementType::Dynamic && self.rules().has_type(ty))
    }

    /// The rule set's own name of a type: `boolean` and `f8e4m3` under OpenVINO, else `bool` and `f8e4m3fn`.
    pub fn type_name(&self, ty: ElementType) -> &'static str {
        self.rules().system().spelling.name(ty)
    }

    /// A step of a derivation, types spelled as the rule set does.
    pub fn describe(&self, step: Step) -> impl fmt::Display {
        step.spelled(self.rules().system().spelling)
    }

    /// The type of that name under the rule set, whether the rule set knows it or not.
    pub fn type_from_name(&self, name: &str) -> Option<ElementType> {
        self.rules().system().spelling.from_name(name)
    }

    /// The kinds of operand that make a difference.
    pub fn categories(&self) -> &'static [Category] {
        self.rules().categories()
    }

    /// Reads an operand: a type with a shape, `u8[2]`, `i64[]`, `f16[...]`, `f32[?]`; a type alone, which has dimensions;
    /// or a [Python number](Operand::from_number). A star after the type makes an array weakly typed: `f32*[2]`.
    ///
    /// # Errors
    /// A type that the rule set does not know, or a text in brackets that is not a shape.
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
        Ok(Operand { element_type, category })
    }

    /// The operations.
    pub fn operations(&self) -> impl Iterator<Item = &'static Operation> + '_ {
        (0..).map_while(|at| self.rules().operation(at))
    }

    /// The operation of that name.
    pub fn operation(&self, name: &str) -> Option<&'static Operation> {
        self.operations().find(|operation| operation.name == name)
    }

    /// The type that the operation converts its operands to, and that of its result. An operand of type `dynamic` makes
    /// both `dynamic`, but a comparison is boolean.
    ///
    /// Every rule set has `result_type`, which takes any number of operands.
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
    /// What the rule set refuses, missing kernels of a device apart; an operation that it does not have; an operand of
    /// unknown rank when the answer depends on it.
    pub fn promote(&self, operation: &str, operands: &[Operand]) -> Result<Promotion, Refusal> {
        self.trace(operation, operands, &mut |_| {})
    }

    /// [`promote`](Self::promote), handing each step of the derivation to `trace`.
    ///
    /// # Errors
    /// As [`promote`](Self::promote).
    pub fn trace(
        &self,
        operation: &str,
        operands: &[Operand],
        trace: &mut dyn FnMut(Step),
    ) -> Result<Promotion, Refusal> {
        let rules = self.rules();
        let refuse = |reason, a, b| rules.system().refuse(reason, a, b);
        let found = self.operations().enumerate().find(|(_, row)| row.name == operation);
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

    /// The type that the rule set gives to any number of operands that must agree, handing each step of the derivation
    /// to `trace`; `None` without operands.
    ///
    /// An operation that takes that many operands decides itself. For others two operands meet at a time: the first
    /// two, what they give and the third, and so on, in the order given, numbers after the tensors. The order counts,
    /// because not every rule is associative. What was found on the way has dimensions if one of its operands has.
    /// Where there are only numbers, and under rules that have none, a number is a tensor of rank 0.
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
    /// What the rule set refuses; an operation that it does not have.
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

    /// The rule set's name for the way that operations promote which have none of their own.
    pub fn ordinary_operation(&self) -> &'static str {
        self.rules().ordinary_operation()
    }

    /// What an operation that works on floats makes of integers and booleans: PyTorch's default type, else `f32`.
    pub fn default_float(&self) -> ElementType {
        self.rules().default_float()
    }

    /// The shape of the result of an element-wise operation; `shapes` are those of the operands that are not numbers.
    /// `None` if the operation is not element-wise.
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

/// Operands that meet two at a time; see [`RuleSet::promote_all`].
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

/// The name of a type and the text of its shape, if it has one.
pub(crate) fn split_shape(text: &str) -> Result<(&str, Option<&str>), OperandError> {
    match text.split_once('[') {
        None => Ok((text, None)),
        Some((name, rest)) => Ok((name, Some(rest.strip_suffix(']').ok_or(OperandError::Shape)?))),
    }
}

/// `3`, `?`, `-1`, `1..5`, `1..`, `..5`.
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
