//! Names of tensors, and variables.

use std::ops::Range;

use super::{Mode, Parser};
use crate::notation::{NotationError, closest, element_type, shape};
use crate::ops;
use crate::rewrite::term::{Name, Rest, Source, TermKind};

/// Names as a set of positions.
type Names = std::collections::BTreeSet<usize>;

impl Parser<'_> {
    pub(super) fn bind(&mut self, text: String, constant: bool) -> usize {
        match self.parsed.names.iter().position(|name| name.text == text) {
            Some(at) => {
                self.parsed.names[at].constant |= constant;
                at
            }
            None => {
                self.parsed.names.push(Name { text, constant, certain: false, neutral: None, definition: None });
                self.parsed.names.len() - 1
            }
        }
    }

    /// A name in a pattern, with what is asked of it; whether `?` comes after it.
    pub(super) fn tensor(&mut self, start: usize, text: String) -> Result<(usize, bool), NotationError> {
        let span = start..self.cursor.at;
        let optional = self.cursor.eat_here("?");
        if let Some(&(_, term)) = self.parameters.iter().find(|(known, _)| *known == text) {
            return Ok((term, optional));
        }
        if text == "_" {
            let term = self.put(span, TermKind::Any)?;
            self.constraint(term)?;
            return Ok((term, optional));
        }
        let name = self.bind(text, false);
        if self.side.roots.is_empty() && self.side.outputs.contains(&name) {
            return Err(self.cursor.error(span, "an output of the pattern cannot be one of its inputs"));
        }
        let term = self.put(span, TermKind::Name { name, constant: false })?;
        if self.constraint(term)? {
            self.parsed.names[name].constant = true;
            self.side.terms[term].kind = TermKind::Name { name, constant: true };
        }
        Ok((term, optional))
    }

    /// `: const f32|f16[1,?]`; whether it must be a constant.
    pub(super) fn constraint(&mut self, term: usize) -> Result<bool, NotationError> {
        if !self.cursor.eat(":") {
            return Ok(false);
        }
        let constant = self.cursor.eat_word("const");
        self.cursor.skip_space();
        let next = self.cursor.peek();
        if self.cursor.eat("$") {
            self.side.terms[term].type_variable = Some(self.variable()?);
        } else if !constant && next != Some('[') || next.is_some_and(char::is_alphabetic) && !self.sees_clause_word() {
            loop {
                let element_type = element_type(&mut self.cursor)?;
                self.side.terms[term].element_types.push(element_type);
                // Another alternative may follow.
                let mut ahead = self.cursor.clone();
                if !ahead.eat("|") || element_type_ahead(&mut ahead).is_none() {
                    break;
                }
                self.cursor.eat("|");
            }
        }
        self.side.terms[term].shape = shape(&mut self.cursor)?;
        if self.used_at.is_none() {
            self.side.terms[term].span.end = self.cursor.at;
        }
        Ok(constant)
    }

    fn sees_clause_word(&mut self) -> bool {
        ["with", "where", "if"].contains(&self.cursor.clone().word())
    }

    /// A name in a replacement or a condition.
    pub(super) fn bound(&mut self, start: usize, text: &str) -> Result<usize, NotationError> {
        let span = start..self.cursor.at;
        if text == "root" && !self.parsed.names.iter().any(|name| name.text == text) {
            let at = self.bind(text.to_owned(), false);
            self.parsed.names[at].certain = true;
        }
        let outputs = self.parsed.side.outputs.clone();
        let found = self.parsed.names.iter().position(|name| name.text == text).filter(|at| !outputs.contains(at));
        let Some(name) = found else { return Err(self.unknown_name(span, text)) };
        let known = &self.parsed.names[name];
        let (certain, constant) = (known.certain || known.neutral.is_some(), known.constant);
        if self.mode == Mode::Replacement && self.cursor.eat_word("else") {
            let otherwise = self.power()?;
            return self.put(start..self.cursor.at, TermKind::Else { name, otherwise });
        }
        if !certain && !self.may_lack && self.mode == Mode::Replacement {
            let message = format!("`{text}` is only there where a layer is that may be absent");
            return Err(self
                .cursor
                .error(span, message)
                .with_help(format!("say what is there otherwise: `{text} else 0`")));
        }
        self.put(span, TermKind::Name { name, constant })
    }

    /// A constant or a file in an expression over constants; `None` for the name of a function.
    pub(super) fn source(&mut self, start: usize) -> Result<Option<usize>, NotationError> {
        let mut ahead = self.cursor.clone();
        let source = if let Some(quoted) = ahead.quoted()? {
            Source::Constant(quoted)
        } else {
            let word = ahead.run(|c| c.is_alphanumeric() || "_.:".contains(c));
            let is_function = ahead.peek() == Some('(');
            match word {
                "" => return Ok(None),
                "npy" if is_function => {
                    ahead.expect("(")?;
                    ahead.skip_space();
                    let file = ahead.quoted()?.ok_or_else(|| ahead.expected("a file in quotes: `npy(\"w.npy\")`"))?;
                    ahead.expect(")")?;
                    Source::File(file.into())
                }
                _ if is_function => return Ok(None),
                "_" => Source::Own,
                name => Source::Constant(name.to_owned()),
            }
        };
        self.cursor = ahead;
        let sources = self.sources.get_or_insert_default();
        let name = sources.iter().position(|known| *known == source).unwrap_or(sources.len());
        if name == sources.len() {
            sources.push(source);
            let text = self.cursor.text[start..self.cursor.at].to_owned();
            self.parsed.names.push(Name { text, constant: true, certain: true, neutral: None, definition: None });
        }
        self.put(start..self.cursor.at, TermKind::Name { name, constant: true }).map(Some)
    }

    fn unknown_name(&self, span: Range<usize>, text: &str) -> NotationError {
        let outputs = &self.parsed.side.outputs;
        let names = self.parsed.names.iter().enumerate().filter(|(at, _)| !outputs.contains(at));
        let names: Vec<_> = names.map(|(_, name)| name.text.as_str()).collect();
        let error = self.cursor.error(span, format!("`{text}` is not in the pattern"));
        match closest(text, names.iter().copied()) {
            Some(near) => error.with_help(format!("did you mean `{near}`?")),
            None if text == "_" => error.with_help("`_` is any tensor; give it a name in the pattern"),
            None if ops::revisions(text).is_empty() => {
                let all: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
                error.with_help(format!("it has {}", all.join(", ")))
            }
            None => error.with_help(format!("write `{text}(…)` for the operation")),
        }
    }

    /// A variable after its `$`.
    pub(super) fn variable(&mut self) -> Result<usize, NotationError> {
        let start = self.cursor.at;
        let name = self.cursor.run(|c| c.is_alphanumeric() || c == '_');
        if name.is_empty() {
            return Err(self.cursor.expected("the name of a variable"));
        }
        let known = self.parsed.variables.iter().position(|known| known == name);
        match known {
            Some(at) => Ok(at),
            None if self.mode != Mode::Pattern => {
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

    /// Finds the names that every match has.
    pub(super) fn find_certain(&mut self) -> Result<(), NotationError> {
        let mut all: Names = self.side.outputs.iter().copied().collect();
        for root in self.side.roots.clone() {
            all.extend(self.names_of(root, &mut Vec::new())?);
        }
        for (at, name) in self.parsed.names.iter_mut().enumerate() {
            name.certain = all.contains(&at);
        }
        Ok(())
    }

    /// The names that each match of a term has. `open` are those whose definitions the term is part of.
    fn names_of(&self, term: usize, open: &mut Vec<usize>) -> Result<Names, NotationError> {
        let union = |terms: &[usize], open: &mut Vec<usize>| {
            terms.iter().try_fold(Names::new(), |mut names, &term| {
                names.extend(self.names_of(term, open)?);
                Ok(names)
            })
        };
        match &self.side.terms[term].kind {
            TermKind::Name { name, .. } => {
                let mut names = self.names_defined_by(*name, open)?;
                names.insert(*name);
                Ok(names)
            }
            TermKind::Layer(layer) => {
                let certain = if layer.optional { 1 } else { layer.inputs.len() - layer.optional_inputs };
                let mut names = union(&layer.inputs[..certain.min(layer.inputs.len())], open)?;
                if let Rest::Outputs(name) = layer.more_inputs {
                    names.insert(name);
                    names.extend(self.names_defined_by(name, open)?);
                }
                let values =
                    layer.attributes.iter().filter(|_| !layer.optional).filter_map(|attribute| match attribute.value {
                        crate::rewrite::term::AttributeValue::Term(term) => Some(term),
                        _ => None,
                    });
                names.extend(union(&values.collect::<Vec<_>>(), open)?);
                Ok(names)
            }
            TermKind::Chain(chain) => {
                let certain = chain.factors.iter().filter(|factor| !factor.optional).map(|factor| factor.term);
                union(&certain.collect::<Vec<_>>(), open)
            }
            TermKind::Either(branches) => {
                let mut common: Option<Names> = None;
                for branch in branches {
                    let mut names = self.names_of(branch.term, open)?;
                    names.extend(branch.with.iter().filter_map(|setting| match setting {
                        crate::rewrite::term::Setting::Name(name, _) => Some(*name),
                        _ => None,
                    }));
                    common = Some(common.map_or(names.clone(), |common| &common & &names));
                }
                Ok(common.unwrap_or_default())
            }
            _ => Ok(Names::new()),
        }
    }

    fn names_defined_by(&self, name: usize, open: &mut Vec<usize>) -> Result<Names, NotationError> {
        let Some(definition) = &self.parsed.names[name].definition else { return Ok(Names::new()) };
        if open.contains(&name) {
            let message = format!("`{}` is defined by itself", self.parsed.names[name].text);
            return Err(self.cursor.error(self.span(definition.term), message));
        }
        open.push(name);
        let mut names = self.names_of(definition.term, open)?;
        open.pop();
        names.extend(&definition.outputs);
        Ok(names)
    }
}

/// The element type that comes next, if one does.
fn element_type_ahead(cursor: &mut crate::notation::Cursor) -> Option<typelift_promote::ElementType> {
    typelift_promote::ElementType::from_name(cursor.word())
}
