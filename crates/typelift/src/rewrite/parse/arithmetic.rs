//! Parsing of products, sums and their operands.

use std::ops::Range;

use typelift_promote::ElementType;

use super::{Parser, Section};
use crate::rewrite::notation::{Literal, NotationError, element_type};
use crate::rewrite::term::{
    Chain, ChainKind, DimPattern, DimsPart, FUNCTIONS, Factor, Function, LayerTerm, Number, TermKind, Times,
};

struct ChainItem {
    factor: Factor,
    span: Range<usize>,
}

impl Parser<'_> {
    pub(super) fn chain(&mut self) -> Result<usize, NotationError> {
        self.patterns(&[("+", 1.0), ("-", -1.0)], ChainKind::Sum)
    }

    fn patterns(&mut self, signs: &[(&str, f64)], kind: ChainKind) -> Result<usize, NotationError> {
        let start = self.cursor.start();
        let mut parts = vec![self.part(kind, 1.0)?];
        'parts: loop {
            for &(sign, power) in signs {
                if !self.cursor.sees("->") && self.cursor.eat(sign) {
                    parts.push(self.part(kind, power)?);
                    continue 'parts;
                }
            }
            break;
        }
        match &parts[..] {
            [ChainItem { factor: Factor { term, power: 1.0, optional: false }, .. }] => Ok(*term),
            _ => self.join(kind, parts, start..self.cursor.at),
        }
    }

    fn part(&mut self, kind: ChainKind, sign: f64) -> Result<ChainItem, NotationError> {
        let start = self.cursor.start();
        let (term, power, optional) = match kind {
            ChainKind::Sum => (self.patterns(&[("*", 1.0), ("/", -1.0)], ChainKind::Product)?, 1.0, false),
            ChainKind::Product => self.factor()?,
        };
        Ok(ChainItem { factor: Factor { term, power: power * sign, optional }, span: start..self.cursor.at })
    }

    /// Parses `x`, `x^2`, `x?`, `-x`.
    fn factor(&mut self) -> Result<(usize, f64, bool), NotationError> {
        let start = self.cursor.start();
        let is_negative = self.cursor.sees("-") && Literal::read(&mut self.cursor.clone())?.is_none();
        if is_negative {
            self.cursor.eat("-");
            let (term, power, optional) = self.deeper(Self::factor)?;
            let minus = self.number(start..start + 1, -1.0)?;
            let parts = [(minus, 1.0, false), (term, power, optional)].map(|(term, power, optional)| ChainItem {
                factor: Factor { term, power, optional },
                span: start..self.cursor.at,
            });
            let term = self.join(ChainKind::Product, parts.into(), start..self.cursor.at)?;
            return Ok((term, 1.0, false));
        }
        let (term, optional) = self.pattern_operand()?;
        if !self.cursor.eat("^") {
            return Ok((term, 1.0, optional));
        }
        match Literal::read(&mut self.cursor)? {
            Some(power) if power.dims.is_empty() => Ok((term, power.numbers[0].to_float(), optional)),
            _ => Err(self.cursor.expected("a number, the exponent")),
        }
    }

    fn number(&mut self, span: Range<usize>, value: f64) -> Result<usize, NotationError> {
        let literal = Some(Number { value, tolerant: false, span: span.clone() });
        self.put(span, TermKind::Chain(Chain { kind: ChainKind::Product, factors: Vec::new(), literal }))
    }

    /// Combines factors or summands into one chain. Numbers are computed, and nested chains of the same kind are
    /// flattened.
    fn join(&mut self, kind: ChainKind, parts: Vec<ChainItem>, span: Range<usize>) -> Result<usize, NotationError> {
        let mut chain = Chain { kind, factors: Vec::new(), literal: None };
        for ChainItem { factor, span } in parts {
            match self.side.terms[factor.term].kind.clone() {
                TermKind::Literal(literal) if literal.dims.is_empty() => {
                    fold(&mut chain, literal.numbers[0].to_float(), factor.power, false, span);
                }
                TermKind::Chain(inner) if inner.factors.is_empty() => {
                    let Some(number) = inner.literal else { continue };
                    fold(&mut chain, number.value, factor.power, number.tolerant, number.span);
                }
                TermKind::Chain(inner) if inner.kind == kind && factor.power.abs() == 1.0 && !factor.optional => {
                    if let Some(number) = inner.literal {
                        fold(&mut chain, number.value, factor.power, number.tolerant, number.span);
                    }
                    let opened = inner.factors.into_iter();
                    chain.factors.extend(opened.map(|inner| Factor { power: inner.power * factor.power, ..inner }));
                }
                TermKind::Chain(Chain {
                    kind: ChainKind::Product,
                    factors,
                    literal: Some(Number { value: -1.0, .. }),
                }) if kind == ChainKind::Sum
                    && matches!(&factors[..], [Factor { power: 1.0, optional: false, .. }]) =>
                {
                    chain.factors.push(Factor { power: -factor.power, ..factors[0].clone() });
                }
                _ => chain.factors.push(factor),
            }
        }
        self.check_chain(&chain, span.clone())?;
        for factor in chain.factors.iter().filter(|factor| factor.optional) {
            if let TermKind::Name { name, .. } = self.side.terms[factor.term].kind {
                self.parsed.names[name].neutral = Some(kind.neutral());
            }
        }
        self.put(span, TermKind::Chain(chain))
    }

    fn check_chain(&self, chain: &Chain, span: Range<usize>) -> Result<(), NotationError> {
        let is_constant = |factor: &&Factor| match &self.side.terms[factor.term].kind {
            TermKind::Name { constant, .. } => *constant,
            _ => false,
        };
        if chain.factors.len() > MOST_FACTORS {
            return Err(self
                .cursor
                .error(span, format!("a product or a sum may have at most {MOST_FACTORS} factors or summands")));
        }
        if chain.factors.iter().filter(is_constant).count() > 1 {
            let error = self.cursor.error(span, "several constants of a product or a sum are matched as one constant");
            return Err(error.with_help("use one constant, or write the operation, `Multiply(x, c: const)`"));
        }
        Ok(())
    }

    /// Parses a term of a pattern without surrounding operators. The flag is true if `?` follows.
    fn pattern_operand(&mut self) -> Result<(usize, bool), NotationError> {
        let start = self.cursor.start();
        if let Some(literal) = Literal::read(&mut self.cursor)? {
            if self.cursor.eat_here("~") {
                let number = literal.numbers.first().filter(|_| literal.dims.is_empty());
                let Some(number) = number else {
                    return Err(self.cursor.error(start..self.cursor.at, "`~` can only be before a number"));
                };
                let term = self.number(start..self.cursor.at, number.to_float())?;
                if let TermKind::Chain(Chain { literal: Some(number), .. }) = &mut self.side.terms[term].kind {
                    number.tolerant = true;
                }
                return Ok((term, false));
            }
            let term = self.put(start..self.cursor.at, TermKind::Literal(literal))?;
            return Ok((term, self.cursor.eat_here("?")));
        }
        if self.cursor.sees("(") {
            if let Some(operations) = self.operations_ahead() {
                return self.layer_of_several(start, operations).map(|term| (term, false));
            }
            self.cursor.eat("(");
            let inner = self.alternatives()?;
            self.cursor.expect(")")?;
            return Ok((inner, self.cursor.eat_here("?")));
        }
        self.named(start)
    }

    /// Parses alternative operations with an opening parenthesis, `(Add|Subtract)(`, if they are next.
    pub(super) fn operations_ahead(&mut self) -> Option<Vec<(String, Range<usize>)>> {
        self.cursor.find(|ahead| {
            ahead.eat("(");
            let mut operations = Vec::new();
            loop {
                let word = ahead.word();
                operations.push((word.to_owned(), ahead.at - word.len()..ahead.at));
                if word.is_empty() || !ahead.eat("|") {
                    break;
                }
            }
            (operations.len() > 1 && ahead.eat(")") && ahead.eat_here("(")).then_some(operations)
        })
    }

    /// Parses sums of constants, or one operand, in a replacement or a comparison.
    pub(super) fn sum(&mut self) -> Result<usize, NotationError> {
        self.deeper(|parser| parser.expression_chain(&[("+", Function::Add), ("-", Function::Subtract)], Self::product))
    }

    fn product(&mut self) -> Result<usize, NotationError> {
        self.expression_chain(&[("*", Function::Multiply), ("/", Function::Divide)], Self::power)
    }

    pub(super) fn power(&mut self) -> Result<usize, NotationError> {
        self.expression_chain(&[("^", Function::Power)], Self::operand)
    }

    fn expression_chain(
        &mut self,
        signs: &[(&str, Function)],
        part: fn(&mut Self) -> Result<usize, NotationError>,
    ) -> Result<usize, NotationError> {
        let mut left = part(self)?;
        'signs: loop {
            for &(sign, function) in signs {
                if self.cursor.eat(sign) {
                    let right = part(self)?;
                    let span = self.span(left).start..self.cursor.at;
                    left = self.compute(span, function, vec![left, right])?;
                    continue 'signs;
                }
            }
            return Ok(left);
        }
    }

    /// Parses a comparison, or a boolean term.
    pub(super) fn comparison(&mut self) -> Result<usize, NotationError> {
        const SIGNS: [(&str, Function); 6] = [
            ("==", Function::Equal),
            ("!=", Function::NotEqual),
            ("<=", Function::LessEqual),
            (">=", Function::GreaterEqual),
            ("<", Function::Less),
            (">", Function::Greater),
        ];
        let start = self.cursor.start();
        if let Some(term) = self.name_like(start)? {
            return Ok(term);
        }
        let left = self.sum()?;
        if self.cursor.eat_word("like") {
            let parts = self.dims_like(left)?;
            return self.put(start..self.cursor.at, TermKind::DimsLike(left, parts));
        }
        if self.cursor.eat_word("in") {
            let first = self.sum()?;
            if self.cursor.eat("..") {
                let last = self.sum()?;
                let span = start..self.cursor.at;
                let least = self.put(span.clone(), TermKind::Compute(Function::GreaterEqual, vec![left, first]))?;
                let most = self.put(span.clone(), TermKind::Compute(Function::LessEqual, vec![left, last]))?;
                return self.put(span, TermKind::Compute(Function::And, vec![least, most]));
            }
            let mut of = vec![left, first];
            while self.cursor.eat("|") {
                of.push(self.sum()?);
            }
            return self.put(start..self.cursor.at, TermKind::Compute(Function::In, of));
        }
        for (sign, function) in SIGNS {
            if self.cursor.eat(sign) {
                let right = self.sum()?;
                return self.put(start..self.cursor.at, TermKind::Compute(function, vec![left, right]));
            }
        }
        Ok(left)
    }

    /// Parses a test of a list: `[1?, C, 1...]`.
    fn dims_like(&mut self, list: usize) -> Result<Vec<DimsPart>, NotationError> {
        self.cursor.expect("[")?;
        let certain = self.is_certain(list);
        let mut parts = Vec::new();
        while !self.cursor.eat("]") {
            if !parts.is_empty() {
                self.cursor.expect(",")?;
            }
            let start = self.cursor.start();
            let dim = if self.cursor.sees("...") {
                DimPattern::Any
            } else if self.cursor.eat("?") {
                parts.push(DimsPart { dim: DimPattern::Any, times: Times::Once });
                continue;
            } else {
                let text = self.cursor.word();
                match text.parse() {
                    Ok(number) => DimPattern::Number(number),
                    Err(_) if text.starts_with(char::is_alphabetic) => self.dim_named(start, text, certain)?,
                    Err(_) => return Err(self.cursor.expected("a number, a name, `?` for any dimension, or `...`")),
                }
            };
            let times = match () {
                () if self.cursor.eat_here("...") => Times::Any,
                () if self.cursor.eat_here("?") => Times::AtMostOnce,
                () => Times::Once,
            };
            if times != Times::Once && matches!(dim, DimPattern::Name(_)) {
                return Err(self.cursor.error(start..self.cursor.at, "a name represents exactly one dimension"));
            }
            parts.push(DimsPart { dim, times });
        }
        if parts.iter().filter(|part| part.times != Times::Once).count() > MOST_OPEN {
            let message = format!("at most {MOST_OPEN} items may be optional or repeated");
            return Err(self.cursor.error(self.cursor.at - 1..self.cursor.at, message));
        }
        Ok(parts)
    }

    fn dim_named(&mut self, start: usize, text: &str, certain: bool) -> Result<DimPattern, NotationError> {
        let known = self.parsed.names.iter().position(|name| name.text == text);
        if text == "root" || known.is_some_and(|name| !self.parsed.names[name].constant) {
            let error = self.cursor.error(start..self.cursor.at, format!("`{text}` is not a dimension"));
            return Err(error.with_help("use a name that the pattern does not have, or that of a constant"));
        }
        let name = self.bind(text.to_owned(), true);
        self.parsed.names[name].certain |= certain && known.is_none();
        Ok(DimPattern::Name(name))
    }

    fn is_certain(&self, term: usize) -> bool {
        match &self.side.terms[term].kind {
            TermKind::Name { name, .. } | TermKind::List(name) => self.parsed.names[*name].certain,
            TermKind::Compute(_, of) => of.iter().all(|&term| self.is_certain(term)),
            _ => true,
        }
    }

    fn is_constant(&self, term: usize) -> bool {
        match &self.side.terms[term].kind {
            TermKind::Literal(_)
            | TermKind::File(_)
            | TermKind::Compute(..)
            | TermKind::Variable(_)
            | TermKind::Type(_) => true,
            TermKind::Name { name, .. } => self.parsed.names[*name].constant,
            TermKind::Else { name, otherwise } => self.parsed.names[*name].constant && self.is_constant(*otherwise),
            _ => false,
        }
    }

    pub(super) fn compute(
        &mut self,
        span: Range<usize>,
        function: Function,
        of: Vec<usize>,
    ) -> Result<usize, NotationError> {
        let mut operands = of.iter().enumerate();
        let tensor = operands.find(|&(at, &operand)| !function.looks_at(at) && !self.is_constant(operand));
        let Some((_, &tensor)) = tensor.filter(|_| self.mode == Section::Replacement) else {
            return self.put(span, TermKind::Compute(function, of));
        };
        let operation = match function {
            Function::Add => "Add",
            Function::Subtract => "Subtract",
            Function::Multiply => "Multiply",
            Function::Divide => "Divide",
            Function::Power => "Power",
            Function::Negate => "Negative",
            _ => {
                let error = self.cursor.error(self.span(tensor), "arithmetic needs constants");
                let name =
                    self.cursor.text.get(span.clone()).and_then(|text| text.split('(').next()).unwrap_or_default();
                let same = crate::ops::all().map(|row| row.name).find(|known| known.eq_ignore_ascii_case(name));
                let operation = same.unwrap_or("Sqrt");
                return Err(error.with_help(format!(
                    "require one in the pattern, `c: const`, or write the operation, `{operation}(x)`"
                )));
            }
        };
        let layer = LayerTerm { inputs: of, ..LayerTerm::new(operation, span.clone()) };
        self.put(span, TermKind::Layer(layer))
    }

    /// Parses a term of an expression without surrounding operators.
    fn operand(&mut self) -> Result<usize, NotationError> {
        let start = self.cursor.start();
        if let Some(literal) = Literal::read(&mut self.cursor)? {
            return self.put(start..self.cursor.at, TermKind::Literal(literal));
        }
        if self.cursor.eat("-") {
            let operand = self.deeper(Self::operand)?;
            return self.compute(start..self.cursor.at, Function::Negate, vec![operand]);
        }
        if self.mode == Section::Replacement
            && let Some(term) = self.matched_operation(start)?
        {
            return Ok(term);
        }
        let term = if self.cursor.eat("(") {
            let inner = self.sum()?;
            self.cursor.expect(")")?;
            inner
        } else if self.cursor.eat("$") {
            let variable = self.variable()?;
            self.put(start..self.cursor.at, TermKind::Variable(variable))?
        } else {
            self.named(start)?.0
        };
        if self.cursor.rest().starts_with('[') { self.slice(start, term) } else { Ok(term) }
    }

    /// Parses the operands of a function, after its parenthesis.
    pub(super) fn function(
        &mut self,
        start: usize,
        name: &str,
        mut function: Function,
    ) -> Result<usize, NotationError> {
        let operand = match self.mode {
            _ if function == Function::Count => Self::counted,
            Section::Condition => Self::comparison,
            _ => Self::sum,
        };
        let measures = std::mem::replace(&mut self.measures, function.looks_at(0));
        let mut of = vec![operand(self)?];
        while self.cursor.eat(",") {
            self.measures = function.looks_at(of.len());
            if let (Function::Concat, Some(axis)) = (function, self.axis_ahead()?) {
                function = Function::Join(axis);
            } else if function == Function::Convert(None) {
                function = if self.cursor.eat("$") {
                    Function::ConvertTo(self.variable()?)
                } else {
                    Function::Convert(Some(element_type(&mut self.cursor)?))
                };
            } else {
                of.push(self.sum()?);
            }
        }
        self.measures = measures;
        self.cursor.expect(")")?;
        let span = start..self.cursor.at;
        let counts = FUNCTIONS.iter().find(|(known, ..)| *known == name).map_or((1, 1), |row| (row.2, row.3));
        if !(counts.0..=counts.1).contains(&of.len()) {
            let takes =
                if counts.0 == counts.1 { format!("{}", counts.0) } else { format!("{} to {}", counts.0, counts.1) };
            let plural = if counts == (1, 1) { "" } else { "s" };
            return Err(self.cursor.error(span, format!("`{name}` takes {takes} operand{plural}, got {}", of.len())));
        }
        self.compute(span, function, of)
    }

    /// Parses `axis=1`, if it is next.
    fn axis_ahead(&mut self) -> Result<Option<i64>, NotationError> {
        if self.cursor.find(|ahead| (ahead.word() == "axis" && ahead.eat("=")).then_some(())).is_none() {
            return Ok(None);
        }
        let axis = Literal::read(&mut self.cursor)?.filter(|axis| axis.dims.is_empty() && axis.is_whole());
        let axis = axis.ok_or_else(|| self.cursor.expected("the number of an axis"))?;
        Ok(Some(axis.numbers[0].to_float() as i64))
    }

    pub(super) fn type_named(&mut self, start: usize, text: &str) -> Result<Option<usize>, NotationError> {
        match ElementType::from_name(text) {
            Some(ty) if self.mode == Section::Condition => {
                self.put(start..self.cursor.at, TermKind::Type(ty)).map(Some)
            }
            _ => Ok(None),
        }
    }
}

/// Maximum number of repeated or optional items in a test of dimensions, because all positions of each are tried.
const MOST_OPEN: usize = 4;

/// Maximum number of factors or summands in a chain, because all assignments are tried.
const MOST_FACTORS: usize = 8;

/// Multiplies or adds a number to that of a chain.
fn fold(chain: &mut Chain, value: f64, power: f64, tolerant: bool, span: Range<usize>) {
    let value = chain.kind.raise(value, power);
    chain.literal = Some(match chain.literal.take() {
        None => Number { value, tolerant, span },
        Some(other) => Number {
            value: chain.kind.join(other.value, value),
            tolerant: other.tolerant || tolerant,
            span: other.span.start.min(span.start)..other.span.end.max(span.end),
        },
    });
}

impl LayerTerm {
    pub(super) fn new(operation: &str, head: Range<usize>) -> Self {
        Self { operation: operation.to_owned(), head, ..Self::default() }
    }
}
