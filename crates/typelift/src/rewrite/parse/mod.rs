//! Parsing of rules.

mod arithmetic;
mod clauses;
mod conditions;
mod layer;
mod names;
mod right;

use std::ops::Range;
use std::str::FromStr;

use smallvec::SmallVec;

use super::pattern::Pattern;
use super::term::{Branch, Expression, Name, Setting, Side, Source, Term, TermKind};
use crate::rewrite::notation::{Cursor, Literal, NotationError};
pub(super) use clauses::{Definitions, starts_clause};
use right::RightItem;

/// Limit on the nesting of terms.
const DEEPEST: usize = 64;
/// Maximum number of terms on one side of a rule, because matching and building are recursive.
const MOST_TERMS: usize = 256;

impl FromStr for Pattern {
    type Err = NotationError;

    fn from_str(text: &str) -> Result<Self, NotationError> {
        let (pattern, right) = rule(text, 0..text.len(), &Definitions::default())?;
        match right {
            None => Ok(pattern),
            Some(_) => {
                let at = text.find("=>").unwrap_or_default();
                let cursor = Cursor::new(text);
                let error = cursor.error(at..at + 2, "a pattern alone has no replacement");
                Err(error.with_help("parse the text as a `Rule`"))
            }
        }
    }
}

pub(super) fn rule(
    text: &str,
    range: Range<usize>,
    definitions: &Definitions,
) -> Result<(Pattern, Option<Side>), NotationError> {
    let mut clauses = clauses::split(text, range.clone())?;
    let right = right::take_right(text, &mut clauses);
    let mut parser = Parser::new(Cursor::within(text, clauses.pattern.clone()), definitions);
    parser.parsed.text = text[range.clone()].trim_end().to_owned();
    parser.parsed.allowed = clauses.allowed;
    parser.declare(&clauses)?;
    parser.pattern()?;
    parser.define(text, &clauses)?;
    parser.find_certain()?;
    parser.find_links()?;
    parser.right = right;
    parser.check_right()?;
    if let Some(condition) = clauses.condition {
        parser.cursor = Cursor::within(text, condition);
        parser.conditions()?;
    }
    parser.parsed.side = std::mem::take(&mut parser.side);
    let mut replacement = None;
    if let Some(right) = clauses.replacement {
        parser.cursor = Cursor::within(text, right);
        replacement = Some(parser.replacement()?);
    }
    let mut pattern = parser.parsed;
    for term in &mut pattern.side.terms {
        term.shift(range.start);
    }
    Ok((pattern, replacement))
}

pub(super) fn right_side(text: &str, pattern: &Pattern) -> Result<Side, NotationError> {
    let definitions = Definitions::default();
    let mut parser = Parser::new(Cursor::new(text), &definitions);
    // Code that generates text limits its size itself.
    parser.most_terms = usize::MAX;
    parser.parsed = pattern.clone();
    parser.replacement()
}

/// Parses an expression of a statement. `is_constant` tells for each name if it is a constant. Arithmetic on constants
/// is computed, and other arithmetic becomes layers.
pub(super) fn expression(
    text: &str,
    range: Range<usize>,
    is_constant: &dyn Fn(&Source) -> bool,
) -> Result<Expression, NotationError> {
    let definitions = Definitions::default();
    let mut parser = Parser::new(Cursor::within(text, range), &definitions);
    parser.mode = Section::Replacement;
    parser.sources = Some(Sources { found: Vec::new(), is_constant });
    let root = parser.sum()?;
    if !parser.cursor.is_done() {
        return Err(parser.cursor.expected("the end of the expression"));
    }
    parser.side.roots.push(root);
    let sources = parser.sources.map(|sources| sources.found).unwrap_or_default();
    Ok(Expression { side: parser.side, names: parser.parsed.names, sources })
}

struct Sources<'a> {
    found: Vec<Source>,
    is_constant: &'a dyn Fn(&Source) -> bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Section {
    Pattern,
    Condition,
    Replacement,
}

struct Parser<'a> {
    cursor: Cursor<'a>,
    /// The pattern as far as it is parsed; its terms are added at the end.
    parsed: Pattern,
    side: Side,
    mode: Section,
    depth: usize,
    most_terms: usize,
    definitions: &'a Definitions,
    /// True if the roots of the pattern were parsed, so that only definitions of `where` remain.
    has_roots: bool,
    /// Parameters of the definition that is being parsed, with their terms.
    parameters: Vec<(String, usize)>,
    /// Position in the rule where the definition that is being parsed is used.
    used_at: Option<Range<usize>>,
    /// True if the next name may be absent in some matches.
    may_lack: bool,
    /// Definitions that only the replacement uses.
    right: Vec<RightItem>,
    /// True while the operand of a function is parsed that only uses its shape, such as `dim`.
    measures: bool,
    /// Names in an expression of a statement; `None` in a rule.
    sources: Option<Sources<'a>>,
}

impl<'a> Parser<'a> {
    fn new(cursor: Cursor<'a>, definitions: &'a Definitions) -> Self {
        Self {
            cursor,
            parsed: Pattern::default(),
            side: Side::default(),
            mode: Section::Pattern,
            depth: 0,
            most_terms: MOST_TERMS,
            definitions,
            has_roots: false,
            parameters: Vec::new(),
            used_at: None,
            may_lack: false,
            right: Vec::new(),
            measures: false,
            sources: None,
        }
    }

    /// Parses `P`, `(x, y) = P`, `(xs...) = P`, or `x = P, y = Q`.
    fn pattern(&mut self) -> Result<(), NotationError> {
        loop {
            let start = self.cursor.start();
            let (names, is_list) = self.outputs().unwrap_or_default();
            let head = start..self.cursor.at;
            for name in &names {
                if self.parsed.names.iter().any(|known| known.text == *name) {
                    return Err(self.cursor.error(head, format!("`{name}` is already defined")));
                }
                self.side.outputs.push(self.parsed.names.len());
                self.parsed.names.push(Name { is_list, ..Name::new(name.clone()) });
            }
            let root = self.alternatives()?;
            self.check_root(root)?;
            self.side.roots.push(root);
            let is_one = names.len() == 1 && !is_list;
            if self.side.roots.len() > 1 && !is_one {
                return Err(self.cursor.error(self.span(root), "each of several roots is `NAME = PATTERN`"));
            }
            if !(is_one && self.cursor.eat(",")) {
                break;
            }
        }
        if !self.cursor.is_done() {
            return Err(self.cursor.expected("`=>`").with_help("a rule is `PATTERN => REPLACEMENT`"));
        }
        self.has_roots = true;
        Ok(())
    }

    /// Checks that a rule may change the layer that this term matches.
    fn check_root(&self, root: usize) -> Result<(), NotationError> {
        match &self.side.terms[root].kind {
            TermKind::Layer(layer) if layer.optional => {
                let head = layer.head.clone();
                Err(self.cursor.error(head, "the outermost layer of a pattern cannot be absent"))
            }
            TermKind::Layer(layer) if ["Parameter", "Constant"].contains(&layer.operation.as_str()) => {
                let error =
                    self.cursor.error(layer.head.clone(), format!("a rule cannot change a {}", layer.operation));
                Err(error.with_help(
                    "in a pattern, write `x` for any tensor and `c: const` for a constant; `input NAME : TYPE[SHAPE]` changes an input",
                ))
            }
            TermKind::Layer(_) => Ok(()),
            TermKind::Chain(chain) if !chain.factors.is_empty() => Ok(()),
            TermKind::Either(branches) => branches.iter().try_for_each(|branch| self.check_root(branch.term)),
            _ => {
                let span = self.side.terms[root].span.clone();
                Err(self.cursor.error(span, "a pattern is an operation with its inputs, such as `Relu(x)`"))
            }
        }
    }

    fn replacement(&mut self) -> Result<Side, NotationError> {
        self.mode = Section::Replacement;
        let start = self.cursor.start();
        let outputs = self.parsed.side.outputs.clone();
        let names: Vec<_> = outputs.iter().map(|&at| self.parsed.names[at].text.clone()).collect();
        let is_list = outputs.iter().any(|&at| self.parsed.names[at].is_list);
        if let Some(heads) = self.outputs() {
            if heads != (names, is_list) {
                let names = self.list_names(&outputs);
                let message = format!("the outputs must be those of the pattern: ({names})");
                return Err(self.cursor.error(start..self.cursor.at, message));
            }
            let root = self.sum()?;
            self.side.roots.push(root);
            self.side.outputs = outputs;
        } else if outputs.len() > 1 || is_list {
            if !self.cursor.eat("(") {
                let names = self.list_names(&outputs);
                let error = self.cursor.expected("a replacement for each output");
                return Err(
                    error.with_help(format!("write `({names}) = …` for one layer, or a tensor for each: `(…)`"))
                );
            }
            loop {
                let root = if let Some(list) = self.list()? { list } else { self.sum()? };
                self.side.roots.push(root);
                if !self.cursor.eat(",") {
                    break;
                }
            }
            self.cursor.expect(")")?;
            let has_list = self.side.terms.iter().any(|term| matches!(term.kind, TermKind::List(_)));
            if !is_list && !has_list && self.side.roots.len() != outputs.len() {
                let (wanted, found) = (outputs.len(), self.side.roots.len());
                let message = format!("the pattern has {wanted} outputs, but the replacement has {found}");
                return Err(self.cursor.error(start..self.cursor.at, message));
            }
        } else {
            let root = self.sum()?;
            self.side.roots.push(root);
        }
        if !self.cursor.is_done() {
            return Err(self.cursor.expected("the end of the rule"));
        }
        Ok(std::mem::take(&mut self.side))
    }

    fn list_names(&self, names: &[usize]) -> String {
        let names = names.iter().map(|&at| &self.parsed.names[at]);
        let texts = names.map(|name| if name.is_list { format!("{}...", name.text) } else { name.text.clone() });
        texts.collect::<Vec<_>>().join(", ")
    }

    /// Parses the outputs of a pattern, `(a, b) =`, `(a...) =` or `a =`, if they are next. The flag is true if the
    /// only name is a list.
    fn outputs(&mut self) -> Option<(Vec<String>, bool)> {
        self.cursor.find(clauses::head)
    }

    fn put(&mut self, span: Range<usize>, kind: TermKind) -> Result<usize, NotationError> {
        if self.side.terms.len() >= self.most_terms {
            let error = self.cursor.error(span, format!("this side of the rule has over {MOST_TERMS} terms"));
            return Err(error.with_help("split the rule into several smaller ones"));
        }
        let span = self.used_at.clone().unwrap_or(span);
        self.side.terms.push(Term { span, kind, element_types: SmallVec::new(), type_variable: None, shape: None });
        Ok(self.side.terms.len() - 1)
    }

    fn span(&self, term: usize) -> Range<usize> {
        self.side.terms[term].span.clone()
    }

    /// Parses alternatives, `P with $m=1 | Q`, or one pattern.
    fn alternatives(&mut self) -> Result<usize, NotationError> {
        self.deeper(|parser| {
            let start = parser.cursor.start();
            let mut branches = vec![parser.branch()?];
            while parser.cursor.eat("|") {
                branches.push(parser.branch()?);
            }
            match &branches[..] {
                [only] if only.with.is_empty() => Ok(only.term),
                _ => parser.put(start..parser.cursor.at, TermKind::Either(branches)),
            }
        })
    }

    fn branch(&mut self) -> Result<Branch, NotationError> {
        let term = self.chain()?;
        let mut with = Vec::new();
        while self.cursor.eat_word("with") {
            if self.cursor.eat("$") {
                let variable = self.variable()?;
                self.cursor.expect("=")?;
                with.push(Setting::Variable(variable, crate::rewrite::notation::attribute_value(&mut self.cursor)?));
                continue;
            }
            let name = self.cursor.word().to_owned();
            if name.is_empty() {
                return Err(self.cursor.expected("a name or a variable: `with lo=0` or `with $m=erf`"));
            }
            self.cursor.expect("=")?;
            let number = match Literal::read(&mut self.cursor)? {
                Some(literal) if literal.dims.is_empty() => literal.numbers[0].to_float(),
                _ => return Err(self.cursor.expected("a number")),
            };
            let known = self.parameters.iter().find(|(known, _)| *known == name).map(|&(_, term)| term);
            match known.map(|term| &self.side.terms[term].kind) {
                Some(TermKind::Name { name, .. }) => with.push(Setting::Name(*name, number)),
                // The parameter already is this number.
                Some(TermKind::Literal(literal)) if literal.is_number(number) => {}
                Some(_) => with.push(Setting::Never),
                None => with.push(Setting::Name(self.bind(name, false), number)),
            }
        }
        Ok(Branch { term, with })
    }

    fn deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T, NotationError>) -> Result<T, NotationError> {
        self.depth += 1;
        self.cursor.skip_space();
        if self.depth > DEEPEST {
            let start = self.cursor.at;
            return Err(self.cursor.error(start..start + 1, format!("the rule is nested deeper than {DEEPEST}")));
        }
        let term = read(self)?;
        self.depth -= 1;
        Ok(term)
    }
}

/// Shifts positions by `by` bytes, because the text is a section of another one.
impl Term {
    fn shift(&mut self, by: usize) {
        let move_back = |span: &mut Range<usize>| *span = span.start.saturating_sub(by)..span.end.saturating_sub(by);
        move_back(&mut self.span);
        match &mut self.kind {
            TermKind::Layer(layer) => {
                move_back(&mut layer.head);
                layer.attributes.iter_mut().for_each(|attribute| move_back(&mut attribute.span));
            }
            TermKind::Chain(chain) => chain.literal.iter_mut().for_each(|literal| move_back(&mut literal.span)),
            _ => {}
        }
    }
}
