//! Parsing of syntax that occurs only in replacements: definitions, names of new layers, and `fold`.

use std::collections::HashSet;
use std::ops::Range;

use super::clauses::{Clauses, Item};
use super::{Parser, Section};
use crate::rewrite::notation::{Cursor, NotationError};
use crate::rewrite::term::{Branch, LayerName, LayerTerm, TermKind};

/// Definition of a replacement.
pub(super) struct RightItem {
    pub(super) item: Item,
    /// Its term, after it was parsed.
    term: Option<usize>,
    /// True while it is being parsed, to detect a definition by itself.
    is_open: bool,
}

/// Removes the definitions that the pattern does not use, and returns them. They belong to the replacement.
pub(super) fn take_right(text: &str, clauses: &mut Clauses) -> Vec<RightItem> {
    if clauses.replacement.is_none() {
        return Vec::new();
    }
    let mut reached = words(&text[clauses.pattern.clone()]);
    let mut rest = std::mem::take(&mut clauses.definitions);
    loop {
        let needed: Vec<_> =
            rest.extract_if(.., |item| item.names.iter().any(|name| reached.contains(&**name))).collect();
        if needed.is_empty() {
            break;
        }
        reached.extend(needed.iter().flat_map(|item| words(&text[item.body.clone()])));
        clauses.definitions.extend(needed);
    }
    clauses.definitions.sort_by_key(|item| item.body.start);
    rest.into_iter().map(|item| RightItem { item, term: None, is_open: false }).collect()
}

fn words(text: &str) -> HashSet<&str> {
    let outside = text.split('"').step_by(2);
    outside.flat_map(|part| part.split(|c: char| !(c.is_alphanumeric() || c == '_'))).collect()
}

impl<'a> Parser<'a> {
    /// An error if a definition of the replacement has a name that is already defined.
    pub(super) fn check_right(&self) -> Result<(), NotationError> {
        for RightItem { item, .. } in &self.right {
            let known = item.names.iter().find(|name| self.parsed.names.iter().any(|known| known.text == **name));
            if let Some(name) = known {
                return Err(self.cursor.error(item.body.clone(), format!("`{name}` is already defined")));
            }
        }
        Ok(())
    }

    pub(super) fn right_name(&mut self, span: Range<usize>, name: &str) -> Result<Option<usize>, NotationError> {
        let Some(at) = self.right.iter().position(|right| right.item.names.iter().any(|known| known == name)) else {
            return Ok(None);
        };
        let RightItem { item, term, is_open } = &self.right[at];
        let (item, known) = (item.clone(), term.filter(|_| self.mode == Section::Replacement));
        if *is_open {
            return Err(self.cursor.error(item.body, format!("`{name}` is defined by itself")));
        }
        let term = match known {
            Some(term) => term,
            None => self.read_right(at, item.body.clone())?,
        };
        if item.names.len() == 1 && !item.is_list {
            return Ok(Some(term));
        }
        let port = item.names.iter().position(|known| known == name).unwrap_or_default();
        match self.side.terms[term].kind.clone() {
            TermKind::Layer(layer) if !item.is_list => {
                self.put(span, TermKind::Layer(LayerTerm { output: port, ..layer })).map(Some)
            }
            _ => {
                let names = item.names.join(", ");
                let error = self.cursor.error(item.body, format!("`({names})` are the outputs of an operation"));
                Err(error.with_help("write `(a, b) = Split(x, 0) {num_splits=2}`"))
            }
        }
    }

    fn read_right(&mut self, at: usize, body: Range<usize>) -> Result<usize, NotationError> {
        let own = Cursor::within(self.cursor.text, body);
        let cursor = std::mem::replace(&mut self.cursor, own);
        self.right[at].is_open = true;
        let term = self.deeper(Self::sum)?;
        if !self.cursor.is_done() {
            return Err(self.cursor.expected("`,` or the end of the definition"));
        }
        self.right[at].is_open = false;
        self.cursor = cursor;
        if self.mode == Section::Replacement {
            self.right[at].term = Some(term);
        }
        Ok(term)
    }

    /// Parses `as "{root}/scaled"` after an operation: the name of the new layer.
    pub(super) fn layer_name(&mut self) -> Result<Option<LayerName>, NotationError> {
        if self.mode != Section::Replacement || !self.cursor.eat_word("as") {
            return Ok(None);
        }
        let start = self.cursor.start();
        let what = "a name in quotes: `as \"{root}/scaled\"`";
        let text = self.cursor.quoted()?.ok_or_else(|| self.cursor.expected(what))?;
        let mut parts = Vec::new();
        let mut rest = text.as_str();
        while let Some((before, after)) = rest.split_once('{') {
            let Some((inner, after)) = after.split_once('}') else { break };
            parts.push(LayerName::Text(before.to_owned()));
            parts.push(self.part_of(start, inner)?);
            rest = after;
        }
        parts.push(LayerName::Text(rest.to_owned()));
        Ok(Some(LayerName::All(parts)))
    }

    /// Parses the text in the braces of a name.
    fn part_of(&mut self, start: usize, inner: &str) -> Result<LayerName, NotationError> {
        let variable = inner.strip_prefix('$').unwrap_or(inner);
        if let Some(at) = self.parsed.variables.iter().position(|known| known == variable) {
            return Ok(LayerName::Variable(at));
        }
        if inner == "root" && self.sources.is_none() {
            return Ok(LayerName::Tensor(self.bind("root".to_owned(), false)));
        }
        match self.parsed.names.iter().position(|known| known.text == inner && !known.is_list) {
            Some(name) => Ok(LayerName::Tensor(name)),
            None => Err(self.unknown_name(start..self.cursor.at, inner)),
        }
    }

    /// Parses `(Add|Subtract)(…)`, if it is next. It means the operation that the same alternatives of the pattern
    /// matched.
    pub(super) fn matched_operation(&mut self, start: usize) -> Result<Option<usize>, NotationError> {
        let Some(operations) = self.operations_ahead() else { return Ok(None) };
        let span = start..self.cursor.at;
        let mut wanted: Vec<_> = operations.iter().map(|(operation, _)| operation.as_str()).collect();
        wanted.sort_unstable();
        let pattern = &self.parsed.side;
        let same = pattern.terms.iter().filter_map(|term| match &term.kind {
            TermKind::Either(branches) => {
                let of = branches.iter().map(|branch| match &pattern.terms[branch.term].kind {
                    TermKind::Layer(layer) => Some((layer.operation.as_str(), branch.term)),
                    _ => None,
                });
                let mut of: Vec<_> = of.collect::<Option<_>>()?;
                of.sort_unstable();
                of.iter().map(|(operation, _)| *operation).eq(wanted.iter().copied()).then_some(of)
            }
            _ => None,
        });
        let same: Vec<_> = same.map(|of| of.into_iter().map(|(_, term)| term).collect::<Vec<_>>()).collect();
        let [matched] = &same[..] else {
            let (words, count) = (wanted.join("|"), same.len());
            let error = self
                .cursor
                .error(span, format!("the pattern must have `({words})` exactly once, but has it {count} times"));
            return Err(error.with_help("in a replacement it means the operation that the pattern matched"));
        };
        let matched = matched.clone();
        let either = self.layer_of_several(start, operations)?;
        if let TermKind::Either(branches) = self.side.terms[either].kind.clone() {
            for Branch { term, .. } in branches {
                let TermKind::Layer(layer) = &mut self.side.terms[term].kind else { continue };
                layer.same_as = matched.iter().copied().find(|at| matches!(&self.parsed.side.terms[*at].kind, TermKind::Layer(old) if old.operation == layer.operation));
            }
        }
        Ok(Some(either))
    }

    /// Parses `fold(EXPRESSION)`, after its parenthesis.
    pub(super) fn fold(&mut self, start: usize) -> Result<usize, NotationError> {
        let inner = self.sum()?;
        self.cursor.expect(")")?;
        self.put(start..self.cursor.at, TermKind::Fold(inner))
    }
}
