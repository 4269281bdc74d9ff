//! One front to all rule sets, in the words users have for types and operands.

use core::fmt;

use crate::{Category, ElementType, Operand, Promotion, Step, openvino, paddle, pytorch};

/// Whose rules decide, with their settings.
///
/// ```
/// use typelift_promote::RuleSet;
/// let rules = RuleSet::from_name("pytorch").unwrap();
/// let operands = [rules.operand("u8[2]").unwrap(), rules.operand("int").unwrap()];
/// assert_eq!(rules.type_name(rules.promote("add", &operands).unwrap().result), "u8");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RuleSet {
    /// OpenVINO's `ConvertPromoteTypes`.
    OpenVino(openvino::Attributes),
    /// PyTorch.
    PyTorch(pytorch::Options),
    /// Paddle.
    Paddle(paddle::Version),
}

/// A promotion that a rule set refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// OpenVINO's reason.
    OpenVino(openvino::Refusal),
    /// PyTorch's reason.
    PyTorch(pytorch::Refusal),
    /// Paddle's reason.
    Paddle(paddle::Refusal),
    /// The rule set has no operation of that name.
    UnknownOperation,
    /// OpenVINO has no Python numbers.
    Number,
}

impl Refusal {
    /// A stable word for the reason.
    pub fn code(&self) -> &'static str {
        match self {
            Self::OpenVino(refusal) => refusal.code(),
            Self::PyTorch(refusal) => refusal.code(),
            Self::Paddle(refusal) => refusal.code(),
            Self::UnknownOperation => "unknown-operation",
            Self::Number => "not-a-tensor",
        }
    }

    /// What the user can do about it.
    pub fn remedy(&self) -> impl fmt::Display {
        Remedy(*self)
    }
}

struct Remedy(Refusal);

impl fmt::Display for Remedy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Refusal::OpenVino(refusal) => refusal.remedy().fmt(f),
            Refusal::PyTorch(refusal) => f.write_str(refusal.remedy()),
            Refusal::Paddle(refusal) => f.write_str(refusal.remedy()),
            Refusal::UnknownOperation => f.write_str("name an operation of the rule set"),
            Refusal::Number => f.write_str("give a tensor of rank 0, such as i64[]"),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OpenVino(refusal) => refusal.fmt(f),
            Self::PyTorch(refusal) => refusal.fmt(f),
            Self::Paddle(refusal) => refusal.fmt(f),
            Self::UnknownOperation => f.write_str("the rule set has no operation of that name"),
            Self::Number => f.write_str("OpenVINO's rules have tensors only, no Python numbers"),
        }
    }
}

impl core::error::Error for Refusal {}

/// Why a text is no operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OperandError {
    /// The word before the shape is no type of the rule set.
    UnknownType,
    /// What stands in brackets is no shape.
    Shape,
}

impl fmt::Display for OperandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::UnknownType => "no element type of that name under these rules",
            Self::Shape => "not a shape: expected something like [], [2,3], [?,1..5] or [...]",
        })
    }
}

impl core::error::Error for OperandError {}

impl RuleSet {
    /// Every rule set with its default settings, Paddle's published rules last.
    pub fn all() -> [Self; 4] {
        [
            Self::OpenVino(openvino::Attributes::default()),
            Self::PyTorch(pytorch::Options::default()),
            Self::Paddle(paddle::Version::V3_3),
            Self::Paddle(paddle::Version::Published2_6),
        ]
    }

    /// The rule set of that [`name`](Self::name), with default settings.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::all().into_iter().find(|rules| rules.name() == name)
    }

    /// `openvino`, `pytorch`, `paddle`, or `paddle-2.6` for Paddle's published rules.
    pub fn name(&self) -> &'static str {
        match self {
            Self::OpenVino(_) => "openvino",
            Self::PyTorch(_) => "pytorch",
            Self::Paddle(paddle::Version::V3_3) => "paddle",
            Self::Paddle(paddle::Version::Published2_6) => "paddle-2.6",
        }
    }

    /// The element types that the rule set knows, `dynamic` left out.
    pub fn types(&self) -> impl Iterator<Item = ElementType> + Clone {
        let is_known: fn(ElementType) -> bool = match self {
            Self::OpenVino(_) => |ty| ty.port_name().is_some(),
            Self::PyTorch(_) => pytorch::is_supported,
            Self::Paddle(_) => paddle::is_supported,
        };
        ElementType::all().filter(move |&ty| is_known(ty) && ty != ElementType::Dynamic)
    }

    /// The rule set's own name of a type: `boolean` and `f8e4m3` under OpenVINO, else `bool` and `f8e4m3fn`.
    pub fn type_name(&self, ty: ElementType) -> &'static str {
        match self {
            Self::OpenVino(_) => ty.name(),
            Self::PyTorch(_) | Self::Paddle(_) => ty.framework_name(),
        }
    }

    /// A step of a derivation, types spelled as the rule set does.
    pub fn describe(&self, step: Step) -> impl fmt::Display {
        Description { step, openvino: matches!(self, Self::OpenVino(_)) }
    }

    /// The type of that name under the rule set.
    pub fn type_from_name(&self, name: &str) -> Option<ElementType> {
        match self {
            Self::OpenVino(_) => ElementType::from_name(name),
            Self::PyTorch(_) | Self::Paddle(_) => ElementType::from_framework_name(name),
        }
    }

    /// Reads an operand: a type with a shape, `u8[2]`, `i64[]`, `f16[...]`, `f32[?]`; a type alone, which has dimensions;
    /// or a Python number, `bool`, `int`, `float`, `complex`.
    ///
    /// # Errors
    /// A type that the rule set does not know, a shape that is none.
    pub fn operand(&self, text: &str) -> Result<Operand, OperandError> {
        if let Some(number) = Operand::from_number_name(text) {
            return Ok(number);
        }
        let (name, shape) = match text.split_once('[') {
            None => (text, "?"),
            Some((name, rest)) => (name, rest.strip_suffix(']').ok_or(OperandError::Shape)?),
        };
        let category = match shape.trim() {
            "" => Category::ZeroDim,
            "..." => Category::UnknownRank,
            dims if dims.split(',').all(is_dimension) => Category::Dimensioned,
            _ => return Err(OperandError::Shape),
        };
        let element_type = self.type_from_name(name.trim()).ok_or(OperandError::UnknownType)?;
        Ok(Operand { element_type, category })
    }

    /// The names of the operations. OpenVINO has one rule for all, under `add`.
    pub fn operations(&self) -> impl Iterator<Item = &'static str> {
        let openvino = matches!(self, Self::OpenVino(_)).then_some("add");
        let pytorch = matches!(self, Self::PyTorch(_)).then(pytorch::Operation::all);
        let paddle = matches!(self, Self::Paddle(_)).then(paddle::Operation::all);
        let pytorch = pytorch.into_iter().flatten().map(pytorch::Operation::name);
        let paddle = paddle.into_iter().flatten().map(paddle::Operation::name);
        openvino.into_iter().chain(pytorch).chain(paddle)
    }

    /// The type that the operation converts its operands to, and that of its result.
    ///
    /// # Errors
    /// What the rule set refuses; an operation that it does not have.
    pub fn promote(&self, operation: &str, operands: &[Operand]) -> Result<Promotion, Refusal> {
        self.trace(operation, operands, &mut |_| {})
    }

    /// The type that the rule set gives to any number of operands that must agree, handing each step of the derivation
    /// to `trace`; `None` without operands.
    ///
    /// PyTorch looks at all operands at once. OpenVINO and Paddle promote two at a time: the first two meet, what they
    /// give meets the third, and so on, in the order given, Paddle's numbers after the tensors. The order counts, because
    /// neither rule is associative. What was found on the way has dimensions if one of its operands has. Where there are
    /// only numbers, and under OpenVINO's rules always, a number is a tensor of rank 0.
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
        if matches!(self, Self::PyTorch(_)) {
            return match operands {
                [] => Ok(None),
                operands => self.trace(operation, operands, trace).map(|promotion| Some(promotion.common)),
            };
        }
        let tensors = matches!(self, Self::OpenVino(_)) || operands.iter().all(|operand| operand.is_number());
        let late = |operand: &&Operand| operand.is_number() && !tensors;
        let (first, last) = (operands.iter().filter(|o| !late(o)), operands.iter().filter(late));
        let mut operands = first.chain(last).map(|&operand| match operand.category {
            Category::Number if tensors => Operand::zero_dim(operand.element_type),
            _ => operand,
        });
        let Some(first) = operands.next() else { return Ok(None) };
        let all = operands.try_fold(first, |found, next| {
            let category = match [found.category, next.category] {
                pair if pair.contains(&Category::Dimensioned) => Category::Dimensioned,
                pair if pair.contains(&Category::UnknownRank) => Category::UnknownRank,
                _ => Category::ZeroDim,
            };
            Ok(Operand { element_type: self.trace(operation, &[found, next], trace)?.common, category })
        })?;
        Ok(Some(all.element_type))
    }

    /// What an operation that works on floats makes of integers and booleans: PyTorch's default type, else `f32`.
    pub fn default_float(&self) -> ElementType {
        match self {
            Self::PyTorch(options) => options.default_dtype,
            Self::OpenVino(_) | Self::Paddle(_) => ElementType::F32,
        }
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
        match self {
            Self::OpenVino(attributes) => {
                let [a, b] = operands else { return Err(Refusal::UnknownOperation) };
                if operation != "add" {
                    return Err(Refusal::UnknownOperation);
                }
                if a.is_number() || b.is_number() {
                    return Err(Refusal::Number);
                }
                let ty = openvino::trace((*a).into(), (*b).into(), attributes, trace).map_err(Refusal::OpenVino)?;
                Ok(Promotion { common: ty, result: ty })
            }
            Self::PyTorch(options) => pytorch::Operation::from_name(operation)
                .ok_or(Refusal::UnknownOperation)?
                .trace(operands, *options, trace)
                .map_err(Refusal::PyTorch),
            Self::Paddle(version) => paddle::Operation::from_name(operation)
                .ok_or(Refusal::UnknownOperation)?
                .trace(operands, *version, trace)
                .map_err(Refusal::Paddle),
        }
    }
}

/// Numbers and tensors of rank 0 are scalars.
impl From<Operand> for openvino::Operand {
    fn from(operand: Operand) -> Self {
        let rank = match operand.category {
            Category::Dimensioned => openvino::RankKnowledge::Dimensioned,
            Category::ZeroDim | Category::Number => openvino::RankKnowledge::Scalar,
            Category::UnknownRank => openvino::RankKnowledge::Unknown,
        };
        Self { element_type: operand.element_type, rank }
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

struct Description {
    step: Step,
    openvino: bool,
}

impl fmt::Display for Description {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.openvino { write!(f, "{}", self.step) } else { write!(f, "{:#}", self.step) }
    }
}
