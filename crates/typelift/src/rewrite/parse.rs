//! Reading rules.

use std::ops::Range;

use smallvec::SmallVec;

use super::term::{AttributeTerm, AttributeValue, Function, LayerTerm, Rest, Side, Term, TermKind};
use crate::notation::{Cursor, Literal, NotationError, attribute_value, closest, element_type, shape, word};
use crate::ops;

/// Terms in terms deeper than this are refused.
const DEEPEST: usize = 64;
/// Limit on the terms of one side of a rule: matching and building go from one to the next by recursion.
const MOST_TERMS: usize = 256;

/// A name that a rule gives to a tensor.
#[derive(Clone, Debug)]
pub(super) struct Name {
    pub(super) text: String,
    pub(super) constant: bool,
    /// Whether every match has it: not one that is only in a layer that may be absent.
    pub(super) certain: bool,
}

/// What is read of a rule.
#[derive(Clone, Debug, Default)]
pub(super) struct Parsed {
    pub(super) pattern: Side,
    pub(super) replacement: Option<Side>,
    pub(super) names: Vec<Name>,
    pub(super) variables: Vec<String>,
}

/// Reads a rule, or a pattern alone.
pub(super) fn rule(text: &str, range: Range<usize>) -> Result<Parsed, NotationError> {
    let mut parser = Parser::new(Cursor::within(text, range));
    parser.pattern()?;
    if parser.cursor.eat("=>") {
        parser.replacement()?;
    }
    parser.finish()
}

/// Reads an expression of `_`, which is a tensor that is there.
pub(super) fn expression(text: &str, range: Range<usize>) -> Result<Parsed, NotationError> {
    let mut parser = Parser::new(Cursor::within(text, range));
    parser.parsed.names.push(Name { text: "_".to_owned(), constant: false, certain: true });
    parser.replacement()?;
    parser.finish()
}

struct Parser<'a> {
    cursor: Cursor<'a>,
    parsed: Parsed,
    side: Side,
    replaces: bool,
    depth: usize,
    /// How many layers that may be absent are around this place.
    optional: usize,
}

impl<'a> Parser<'a> {
    fn new(cursor: Cursor<'a>) -> Self {
        let (parsed, side) = (Parsed::default(), Side::default());
        Self { cursor, parsed, side, replaces: false, depth: 0, optional: 0 }
    }

    fn finish(mut self) -> Result<Parsed, NotationError> {
        if !self.cursor.is_done() {
            if self.replaces {
                return Err(self.cursor.expected("the end of the rule"));
            }
            return Err(self.cursor.expected("`=>`").with_help("a rule is `PATTERN => REPLACEMENT`"));
        }
        Ok(self.parsed)
    }

    fn pattern(&mut self) -> Result<(), NotationError> {
        let outputs = self.outputs()?;
        for (at, (name, span)) in outputs.iter().enumerate() {
            if outputs[..at].iter().any(|(other, _)| other == name) {
                return Err(self.cursor.error(span.clone(), format!("`{name}` appears twice")));
            }
            let name = self.bind(name.clone(), false);
            self.side.outputs.push(name);
        }
        let root = self.operand()?;
        match &self.side.terms[root].kind {
            TermKind::Layer(layer) if layer.optional => {
                let head = layer.head.clone();
                return Err(self.cursor.error(head, "the outermost layer of a pattern cannot be absent"));
            }
            TermKind::Layer(layer) if ["Parameter", "Constant"].contains(&layer.operation.as_str()) => {
                let error =
                    self.cursor.error(layer.head.clone(), format!("a rule does not change a {}", layer.operation));
                return Err(error.with_help(
                    "in a pattern, `x` is any tensor and `c: const` a constant; `input NAME : TYPE[SHAPE]` changes an input",
                ));
            }
            TermKind::Layer(_) => {}
            _ => {
                let span = self.side.terms[root].span.clone();
                return Err(self.cursor.error(span, "a pattern is an operation with its inputs, such as `Relu(x)`"));
            }
        }
        self.side.roots.push(root);
        self.parsed.pattern = std::mem::take(&mut self.side);
        Ok(())
    }

    fn replacement(&mut self) -> Result<(), NotationError> {
        self.replaces = true;
        self.cursor.skip_space();
        let start = self.cursor.at;
        let outputs = self.outputs()?;
        let wanted = self.parsed.pattern.outputs.len().max(1);
        if !outputs.is_empty() {
            let names: Vec<_> =
                self.parsed.pattern.outputs.iter().map(|&at| self.parsed.names[at].text.as_str()).collect();
            if outputs.iter().map(|(name, _)| name.as_str()).ne(names.iter().copied()) {
                let message = format!("the outputs must be those of the pattern: ({})", names.join(", "));
                return Err(self.cursor.error(start..self.cursor.at, message));
            }
            let root = self.sum()?;
            self.side.roots.push(root);
        } else if wanted > 1 {
            self.cursor.expect("(")?;
            loop {
                let root = self.sum()?;
                self.side.roots.push(root);
                if !self.cursor.eat(",") {
                    break;
                }
            }
            self.cursor.expect(")")?;
            if self.side.roots.len() != wanted {
                let found = self.side.roots.len();
                let message = format!("the pattern has {wanted} outputs, and {found} take their place");
                return Err(self.cursor.error(start..self.cursor.at, message));
            }
        } else {
            let root = self.sum()?;
            self.side.roots.push(root);
        }
        self.side.outputs = if outputs.is_empty() { Vec::new() } else { self.parsed.pattern.outputs.clone() };
        self.parsed.replacement = Some(std::mem::take(&mut self.side));
        Ok(())
    }

    /// `(a, b) =`, if it comes here.
    fn outputs(&mut self) -> Result<Vec<(String, Range<usize>)>, NotationError> {
        let mut ahead = self.cursor.clone();
        let mut names = Vec::new();
        if !ahead.eat("(") {
            return Ok(names);
        }
        loop {
            let name = ahead.word();
            names.push((name.to_owned(), ahead.at - name.len()..ahead.at));
            if name.is_empty() || !ahead.eat(",") {
                break;
            }
        }
        if ahead.eat(")") && ahead.sees("=") && !ahead.sees("=>") {
            ahead.eat("=");
            self.cursor = ahead;
            return Ok(names);
        }
        if !self.replaces {
            return Err(self.cursor.expected("an operation, or its outputs: `(a, b) = Split(x, 0)`"));
        }
        Ok(Vec::new())
    }

    fn bind(&mut self, text: String, constant: bool) -> usize {
        let certain = self.optional == 0;
        match self.parsed.names.iter().position(|name| name.text == text) {
            Some(at) => {
                self.parsed.names[at].constant |= constant;
                self.parsed.names[at].certain |= certain;
                at
            }
            None => {
                self.parsed.names.push(Name { text, constant, certain });
                self.parsed.names.len() - 1
            }
        }
    }

    fn put(&mut self, span: Range<usize>, kind: TermKind) -> usize {
        self.side.terms.push(Term { span, kind, element_types: SmallVec::new(), type_variable: None, shape: None });
        self.side.terms.len() - 1
    }

    /// Sums of constants, or one operand.
    fn sum(&mut self) -> Result<usize, NotationError> {
        self.chain(&[("+", Function::Add), ("-", Function::Subtract)], Self::product)
    }

    fn product(&mut self) -> Result<usize, NotationError> {
        self.chain(&[("*", Function::Multiply), ("/", Function::Divide)], Self::operand)
    }

    fn chain(
        &mut self,
        signs: &[(&str, Function)],
        part: fn(&mut Self) -> Result<usize, NotationError>,
    ) -> Result<usize, NotationError> {
        let mut left = part(self)?;
        'signs: loop {
            for &(sign, function) in signs {
                if self.cursor.eat(sign) {
                    let right = part(self)?;
                    let span = self.side.terms[left].span.start..self.cursor.at;
                    left = self.compute(span, function, vec![left, right])?;
                    continue 'signs;
                }
            }
            return Ok(left);
        }
    }

    fn compute(&mut self, span: Range<usize>, function: Function, of: Vec<usize>) -> Result<usize, NotationError> {
        for &operand in &of {
            let term = &self.side.terms[operand];
            let is_constant = match &term.kind {
                TermKind::Literal(_) | TermKind::Compute(..) => true,
                TermKind::Name { name, .. } => self.parsed.names[*name].constant,
                TermKind::Any | TermKind::Layer(_) => false,
            };
            if !is_constant {
                let error = self.cursor.error(term.span.clone(), "only constants can be computed with");
                return Err(
                    error.with_help("ask for one in the pattern, `c: const`, or write the operation, `Add(x, y)`")
                );
            }
        }
        Ok(self.put(span, TermKind::Compute(function, of)))
    }

    /// A term without signs around it.
    fn operand(&mut self) -> Result<usize, NotationError> {
        self.depth += 1;
        self.cursor.skip_space();
        let start = self.cursor.at;
        if self.depth > DEEPEST {
            return Err(self.cursor.error(start..start + 1, format!("the rule nests deeper than {DEEPEST}")));
        }
        if self.side.terms.len() >= MOST_TERMS {
            let error =
                self.cursor.error(start..start + 1, format!("this side of the rule has over {MOST_TERMS} terms"));
            return Err(error.with_help("split the rule into several, each for a part of the graph"));
        }
        let term = match Literal::read(&mut self.cursor)? {
            Some(literal) => self.put(start..self.cursor.at, TermKind::Literal(literal)),
            None if self.replaces && self.cursor.eat("-") => {
                let operand = self.operand()?;
                self.compute(start..self.cursor.at, Function::Negate, vec![operand])?
            }
            None if self.replaces && self.cursor.eat("(") => {
                let inner = self.sum()?;
                self.cursor.expect(")")?;
                inner
            }
            None => self.named(start)?,
        };
        self.depth -= 1;
        Ok(term)
    }

    /// A tensor or an operation.
    fn named(&mut self, start: usize) -> Result<usize, NotationError> {
        let quoted = self.cursor.quoted()?;
        let is_quoted = quoted.is_some();
        let text = quoted.unwrap_or_else(|| self.cursor.word().to_owned());
        if text.is_empty() {
            return Err(self.cursor.expected("an operation, a name or a number"));
        }
        let word_end = self.cursor.at;
        let mut ahead = self.cursor.clone();
        let version = if ahead.eat_here("-") {
            Some(ahead.quoted()?.unwrap_or_else(|| ahead.run(|c| c.is_alphanumeric() || c == '_').to_owned()))
        } else {
            None
        };
        let head = start..ahead.at;
        let (mut optional, mut shared) = (None, None);
        loop {
            let at = ahead.at;
            if ahead.eat_here("?") {
                optional = Some(at..at + 1);
            } else if ahead.eat_here("&") {
                shared = Some(at..at + 1);
            } else {
                break;
            }
        }
        if ahead.eat("(") {
            self.cursor = ahead;
            if let (true, Some(marker)) = (self.replaces, optional.clone().or(shared.clone())) {
                return Err(self.cursor.error(marker, "`?` and `&` are for patterns"));
            }
            if self.replaces
                && version.is_none()
                && let Some(function) = function(&text)
            {
                return self.function(start, function);
            }
            let layer = self.head(text, version, head, is_quoted)?;
            return self.layer(start, LayerTerm { optional: optional.is_some(), shared: shared.is_some(), ..layer });
        }
        self.cursor.at = word_end;
        if is_quoted {
            return Err(self.cursor.expected("`(` behind the operation"));
        }
        if self.replaces { self.bound(start, &text) } else { self.tensor(start, text) }
    }

    /// A name in a pattern, with what is asked of it.
    fn tensor(&mut self, start: usize, text: String) -> Result<usize, NotationError> {
        let span = start..self.cursor.at;
        if text == "_" {
            let term = self.put(span, TermKind::Any);
            self.constraint(term)?;
            return Ok(term);
        }
        let name = self.bind(text, false);
        if self.parsed.pattern.roots.is_empty() && self.side.outputs.contains(&name) {
            return Err(self.cursor.error(span, "an output of the pattern cannot be one of its inputs"));
        }
        let term = self.put(span, TermKind::Name { name, constant: false });
        if self.constraint(term)? {
            self.parsed.names[name].constant = true;
            self.side.terms[term].kind = TermKind::Name { name, constant: true };
        }
        Ok(term)
    }

    /// `: const f32|f16[1,?]`; whether it must be a constant.
    fn constraint(&mut self, term: usize) -> Result<bool, NotationError> {
        if !self.cursor.eat(":") {
            return Ok(false);
        }
        let mut ahead = self.cursor.clone();
        let constant = ahead.word() == "const";
        if constant {
            self.cursor = ahead;
        }
        self.cursor.skip_space();
        let next = self.cursor.peek();
        if self.cursor.eat("$") {
            self.side.terms[term].type_variable = Some(self.variable()?);
        } else if next.is_some_and(char::is_alphabetic) || !constant && next != Some('[') {
            loop {
                let element_type = element_type(&mut self.cursor)?;
                self.side.terms[term].element_types.push(element_type);
                if !self.cursor.eat("|") {
                    break;
                }
            }
        }
        self.side.terms[term].shape = shape(&mut self.cursor)?;
        self.side.terms[term].span.end = self.cursor.at;
        Ok(constant)
    }

    /// A name in a replacement.
    fn bound(&mut self, start: usize, text: &str) -> Result<usize, NotationError> {
        let span = start..self.cursor.at;
        let inputs = |(at, _): &(usize, &Name)| !self.parsed.pattern.outputs.contains(at);
        let mut names = self.parsed.names.iter().enumerate().filter(inputs);
        match names.clone().find(|(_, name)| name.text == text) {
            Some((name, found)) if found.certain => Ok(self.put(span, TermKind::Name { name, constant: false })),
            Some(_) => {
                let message = format!("`{text}` is only there where a layer is that may be absent");
                Err(self.cursor.error(span, message))
            }
            None => {
                let error = self.cursor.error(span, format!("`{text}` is not in the pattern"));
                let near = closest(text, names.clone().map(|(_, name)| name.text.as_str()));
                let all: Vec<_> = names.by_ref().map(|(_, name)| format!("`{}`", name.text)).collect();
                Err(match near {
                    Some(near) => error.with_help(format!("did you mean `{near}`?")),
                    None if text == "_" => error.with_help("`_` is any tensor; give it a name in the pattern"),
                    None if ops::revisions(text).is_empty() => error.with_help(format!("it has {}", all.join(", "))),
                    None => error.with_help(format!("write `{text}(…)` for the operation")),
                })
            }
        }
    }

    fn function(&mut self, start: usize, mut function: Function) -> Result<usize, NotationError> {
        let mut of = vec![self.sum()?];
        while self.cursor.eat(",") {
            if function == Function::Convert(None) {
                function = if self.cursor.eat("$") {
                    Function::ConvertTo(self.variable()?)
                } else {
                    Function::Convert(Some(element_type(&mut self.cursor)?))
                };
            } else {
                of.push(self.sum()?);
            }
        }
        self.cursor.expect(")")?;
        let span = start..self.cursor.at;
        let counts = match function {
            Function::Reshape => 2..=2,
            Function::Transpose => 1..=2,
            _ => 1..=1,
        };
        if !counts.contains(&of.len()) {
            return Err(self.cursor.error(span, format!("it takes {} to {} operands", counts.start(), counts.end())));
        }
        self.compute(span, function, of)
    }

    /// The operation of a layer, which must be known unless it is in quotes or of an extension.
    fn head(
        &mut self,
        text: String,
        version: Option<String>,
        head: Range<usize>,
        is_quoted: bool,
    ) -> Result<LayerTerm, NotationError> {
        let number = version.as_deref().and_then(|version| version.trim_start_matches("opset").parse::<u8>().ok());
        let version = match number {
            Some(number) => Some(format!("opset{number}")),
            None => version,
        };
        let rows = ops::revisions(&text);
        let error = |message: String| self.cursor.error(head.clone(), message);
        let operation = match (rows.first(), &version) {
            (Some(row), Some(version)) if number.is_some() && ops::lookup(&text, version).is_none() => {
                let known: Vec<_> = rows.iter().filter_map(|row| row.opsets().next()).collect();
                let known: Vec<_> = known.iter().map(|opset| format!("`{}-{opset}`", row.name())).collect();
                return Err(
                    error(format!("`{text}` is not in {version}")).with_help(format!("there is {}", known.join(", ")))
                );
            }
            (Some(row), _) => row.name().to_owned(),
            (None, Some(_)) if number.is_none() => text,
            (None, _) if is_quoted => text,
            (None, _) => {
                let unknown = error(format!("`{text}` is not an operation"));
                let functions = FUNCTIONS.iter().map(|(name, _)| *name).filter(|_| self.replaces);
                return Err(match closest(&text, ops::all().map(|row| row.name()).chain(functions)) {
                    Some(near) => unknown.with_help(format!("did you mean `{near}`?")),
                    None => unknown.with_help(format!("write `\"{text}\"(…)` for an operation of an extension")),
                });
            }
        };
        Ok(LayerTerm {
            operation,
            version,
            head,
            optional: false,
            shared: false,
            inputs: Vec::new(),
            more_inputs: Rest::None,
            attributes: Vec::new(),
            more_attributes: Rest::None,
            output: 0,
        })
    }

    /// The inputs and attributes of a layer, from behind the parenthesis.
    fn layer(&mut self, start: usize, mut layer: LayerTerm) -> Result<usize, NotationError> {
        while !self.cursor.eat(")") {
            if !layer.inputs.is_empty() {
                self.cursor.expect(",")?;
            }
            if self.cursor.sees("...") {
                layer.more_inputs = self.rest(&layer, |term| term.more_inputs)?;
                self.cursor.expect(")")?;
                break;
            }
            let absent = layer.optional && !layer.inputs.is_empty();
            self.optional += usize::from(absent);
            let input = if self.replaces { self.sum()? } else { self.operand()? };
            self.optional -= usize::from(absent);
            layer.inputs.push(input);
        }
        self.check_inputs(&layer)?;
        if layer.optional && layer.inputs.is_empty() {
            let head = layer.head.clone();
            return Err(self.cursor.error(head, "a layer that may be absent needs an input that takes its place then"));
        }
        if self.cursor.eat_here(".") {
            let digits = self.cursor.run(|c| c.is_ascii_digit());
            layer.output = digits.parse().map_err(|_| self.cursor.expected("the number of an output"))?;
        }
        if self.cursor.eat("{") {
            self.attributes(&mut layer)?;
        }
        let span = start..self.cursor.at;
        let term = self.put(span, TermKind::Layer(layer));
        if !self.replaces && self.constraint(term)? {
            let span = self.side.terms[term].span.clone();
            return Err(self.cursor.error(span, "an operation is not a constant"));
        }
        Ok(term)
    }

    /// `...`: in a replacement the rest of the matched layer that has the same operation, or else of the root.
    fn rest(&mut self, layer: &LayerTerm, has: fn(&LayerTerm) -> Rest) -> Result<Rest, NotationError> {
        self.cursor.skip_space();
        let start = self.cursor.at;
        self.cursor.expect("...")?;
        if !self.replaces {
            return Ok(Rest::Any);
        }
        let pattern = &self.parsed.pattern;
        let matched = pattern.terms.iter().enumerate().rev().filter_map(|(at, term)| match &term.kind {
            TermKind::Layer(term) if has(term) == Rest::Any => Some((at, term)),
            _ => None,
        });
        let same = matched.clone().find(|(_, term)| term.operation == layer.operation);
        same.or(matched.clone().find(|(at, _)| pattern.roots.contains(at))).map(|(at, _)| Rest::Of(at)).ok_or_else(
            || {
                let error = self.cursor.error(start..self.cursor.at, "no layer of the pattern has `...` for this");
                error.with_help(format!("write `{}(…, ...)` in the pattern too", layer.operation))
            },
        )
    }

    fn check_inputs(&self, layer: &LayerTerm) -> Result<(), NotationError> {
        let rows = rows_of(layer);
        let takes = |row: &&ops::Operation| match layer.more_inputs {
            Rest::None => row.input_counts().contains(&layer.inputs.len()),
            _ => *row.input_counts().end() >= layer.inputs.len(),
        };
        if rows.is_empty() || rows.iter().any(takes) {
            return Ok(());
        }
        let counts = rows[rows.len() - 1].input_counts();
        let takes = match (*counts.start(), *counts.end()) {
            (least, most) if least == most => format!("{least}"),
            (least, usize::MAX) => format!("{least} or more"),
            (least, most) => format!("{least} to {most}"),
        };
        let message = format!("`{}` takes {takes} inputs, not {}", layer.operation, layer.inputs.len());
        Err(self.cursor.error(layer.head.clone(), message))
    }

    fn attributes(&mut self, layer: &mut LayerTerm) -> Result<(), NotationError> {
        let mut first = true;
        while !self.cursor.eat("}") {
            if !first {
                self.cursor.expect(",")?;
            }
            first = false;
            self.cursor.skip_space();
            let start = self.cursor.at;
            if self.cursor.sees("...") {
                layer.more_attributes = self.rest(layer, |_| Rest::Any)?;
                continue;
            }
            let name = word(&mut self.cursor, "the name of an attribute")?;
            let name_span = start..self.cursor.at;
            self.check_attribute(layer, &name, name_span.clone())?;
            if layer.attributes.iter().any(|other| other.name == name) {
                return Err(self.cursor.error(name_span, format!("the attribute `{name}` appears twice")));
            }
            self.cursor.expect("=")?;
            let value = if self.cursor.eat("$") {
                AttributeValue::Variable(self.variable()?)
            } else {
                AttributeValue::Text(attribute_value(&mut self.cursor)?)
            };
            layer.attributes.push(AttributeTerm { name, value, span: start..self.cursor.at });
        }
        Ok(())
    }

    fn check_attribute(&self, layer: &LayerTerm, name: &str, span: Range<usize>) -> Result<(), NotationError> {
        let rows = rows_of(layer);
        if rows.is_empty() || rows.iter().any(|row| row.attribute_names().any(|known| known == name)) {
            return Ok(());
        }
        let known: Vec<_> = rows.iter().flat_map(|row| row.attribute_names()).collect();
        let error = self.cursor.error(span, format!("`{}` does not have an attribute `{name}`", layer.operation));
        Err(match closest(name, known.iter().copied()) {
            Some(near) => error.with_help(format!("did you mean `{near}`?")),
            None if known.is_empty() => error.with_help("it has none"),
            None => error.with_help(format!("it has {}", known.join(", "))),
        })
    }

    /// A variable behind its `$`.
    fn variable(&mut self) -> Result<usize, NotationError> {
        let start = self.cursor.at;
        let name = self.cursor.run(|c| c.is_alphanumeric() || c == '_');
        if name.is_empty() {
            return Err(self.cursor.expected("the name of a variable"));
        }
        let known = self.parsed.variables.iter().position(|known| known == name);
        match known {
            Some(at) => Ok(at),
            None if self.replaces => {
                let error = self.cursor.error(start - 1..self.cursor.at, format!("`${name}` is not in the pattern"));
                Err(match closest(name, self.parsed.variables.iter().map(String::as_str)) {
                    Some(near) => error.with_help(format!("did you mean `${near}`?")),
                    None => error,
                })
            }
            None => {
                self.parsed.variables.push(name.to_owned());
                Ok(self.parsed.variables.len() - 1)
            }
        }
    }
}

/// The rows that a layer term can mean.
pub(super) fn rows_of(layer: &LayerTerm) -> Vec<&'static ops::Operation> {
    match &layer.version {
        Some(version) => ops::lookup(&layer.operation, version).into_iter().collect(),
        None => ops::revisions(&layer.operation).to_vec(),
    }
}

const FUNCTIONS: &[(&str, Function)] = &[
    ("sqrt", Function::Sqrt),
    ("exp", Function::Exp),
    ("transpose", Function::Transpose),
    ("reshape", Function::Reshape),
    ("convert", Function::Convert(None)),
];

fn function(name: &str) -> Option<Function> {
    FUNCTIONS.iter().find(|(known, _)| *known == name).map(|&(_, function)| function)
}
