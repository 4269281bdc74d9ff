//! Parsing of conditions: comparisons with `&&`, `||` and `!`.

use std::sync::Arc;

use super::{Parser, Section};
use crate::base::name_pattern::NamePattern;
use crate::rewrite::notation::{Literal, NotationError};
use crate::rewrite::term::{Function, Predicate, TermKind};

impl Parser<'_> {
    /// Parses all conditions of a rule: `rank(x) == 4 && (static(x) || !constant(y))`.
    pub(super) fn conditions(&mut self) -> Result<(), NotationError> {
        self.mode = Section::Condition;
        let term = self.either_holds()?;
        // Operands of the outermost `&&` become separate conditions, each with its own reason.
        let parts = match &self.side.terms[term].kind {
            TermKind::Compute(Function::And, of) => of.clone(),
            _ => vec![term],
        };
        for term in parts {
            let text = self.cursor.text[self.span(term)].trim().to_owned();
            self.parsed.predicates.push(Predicate { term, text });
        }
        if self.cursor.is_done() { Ok(()) } else { Err(self.cursor.expected("`&&`, `||` or the end of the rule")) }
    }

    fn either_holds(&mut self) -> Result<usize, NotationError> {
        self.joined("||", Function::Or, |parser| parser.joined("&&", Function::And, Self::negation))
    }

    fn joined(
        &mut self,
        sign: &str,
        function: Function,
        part: impl Fn(&mut Self) -> Result<usize, NotationError>,
    ) -> Result<usize, NotationError> {
        let start = self.cursor.start();
        let mut parts = vec![part(self)?];
        while self.cursor.eat(sign) {
            parts.push(part(self)?);
        }
        match parts[..] {
            [only] => Ok(only),
            _ => self.put(start..self.cursor.at, TermKind::Compute(function, parts)),
        }
    }

    /// Parses `!c`, `(c || d)` or a comparison.
    fn negation(&mut self) -> Result<usize, NotationError> {
        let start = self.cursor.start();
        if self.cursor.sees("!") && !self.cursor.sees("!=") {
            self.cursor.eat("!");
            let term = self.deeper(Self::negation)?;
            return self.put(start..self.cursor.at, TermKind::Compute(Function::Not, vec![term]));
        }
        let (cursor, terms) = (self.cursor.clone(), self.side.terms.len());
        let error = match self.comparison() {
            Ok(term) => return Ok(term),
            Err(error) => error,
        };
        // The parenthesis contains numbers, not conditions.
        self.cursor = cursor;
        if !self.cursor.eat("(") {
            return Err(error);
        }
        self.side.terms.truncate(terms);
        let term = self.deeper(Self::either_holds)?;
        self.cursor.expect(")").map(|()| term)
    }

    /// Parses `name(x) like "*.layers.{i}.*"`, if it is next.
    pub(super) fn name_like(&mut self, start: usize) -> Result<Option<usize>, NotationError> {
        if self.cursor.find(|ahead| (ahead.word() == "name" && ahead.eat_here("(")).then_some(())).is_none() {
            return Ok(None);
        }
        let (at, text) = (self.cursor.start(), self.cursor.word());
        let tensor = self.bound(at, text)?;
        self.cursor.expect(")")?;
        if !self.cursor.eat_word("like") {
            return Err(self.cursor.expected("`like` and a name in quotes: `name(x) like \"*/attn/*\"`"));
        }
        self.cursor.skip_space();
        let glob = self.cursor.quoted()?.ok_or_else(|| self.cursor.expected("a name in quotes: `\"*/attn/*\"`"))?;
        let pattern = NamePattern::new(&glob);
        for part in pattern.parts() {
            if !self.parsed.variables.iter().any(|known| known == part) {
                self.parsed.variables.push(part.to_owned());
            }
        }
        self.put(start..self.cursor.at, TermKind::NameLike(tensor, Arc::new(pattern))).map(Some)
    }

    /// The variable for a section of a name, such as `i` of `{i}`.
    pub(super) fn part_of_name(&mut self, start: usize, text: &str) -> Result<Option<usize>, NotationError> {
        let known = self.parsed.variables.iter().position(|known| known == text);
        match known.filter(|_| self.mode == Section::Condition) {
            Some(variable) => self.put(start..self.cursor.at, TermKind::Variable(variable)).map(Some),
            None => Ok(None),
        }
    }

    /// Parses a slice: `c[1:3]`, `c[2:]`, `c[0]`, or with several axes `c[:, 0:2]`.
    pub(super) fn slice(&mut self, start: usize, of: usize) -> Result<usize, NotationError> {
        self.cursor.expect("[")?;
        let (mut term, mut axis) = (of, 0);
        loop {
            let from = self.bound_of_slice(0)?;
            let mut of = vec![term, from];
            if self.cursor.eat(":") {
                of.push(self.bound_of_slice(i128::from(i32::MAX))?);
            }
            let is_one = of.len() == 2;
            term = self.compute(start..self.cursor.at, Function::Slice(axis), of)?;
            // An index without `:` removes its axis.
            axis += usize::from(!is_one);
            if !self.cursor.eat(",") {
                break;
            }
        }
        self.cursor.expect("]")?;
        Ok(term)
    }

    fn bound_of_slice(&mut self, open: i128) -> Result<usize, NotationError> {
        let at = self.cursor.start();
        let literal = match Literal::read(&mut self.cursor)? {
            Some(literal) if literal.dims.is_empty() => literal,
            _ => Literal::whole(open, at..at),
        };
        self.put(at..self.cursor.at, TermKind::Literal(literal))
    }
}
