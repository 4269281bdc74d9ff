//! Parsing of names of tensors, and of variables.

use std::ops::Range;

use super::{Parser, Section};
use crate::base::names::nearest;
use crate::ops;
use crate::ops::values::array::ArrayFile;
use crate::rewrite::notation::{NotationError, element_type, shape};
use crate::rewrite::operations::operations_of;
use crate::rewrite::term::{Link, Name, Source, TermKind};

/// Maximum number of layers between a factor of a chain and its result, including square roots and negations.
const MOST_IN_CHAIN: usize = 16;

/// Set of names, by position.
type NameSet = std::collections::BTreeSet<usize>;

impl Parser<'_> {
    pub(super) fn bind(&mut self, text: String, constant: bool) -> usize {
        match self.parsed.names.iter().position(|name| name.text == text) {
            Some(at) => {
                self.parsed.names[at].constant |= constant;
                at
            }
            None => {
                self.parsed.names.push(Name { constant, ..Name::new(text) });
                self.parsed.names.len() - 1
            }
        }
    }

    /// Parses a name in a pattern with its constraints. The flag is true if `?` follows.
    pub(super) fn tensor(&mut self, start: usize, text: String) -> Result<(usize, bool), NotationError> {
        let span = start..self.cursor.at;
        let optional = self.cursor.eat_here("?");
        if let Some(&(_, term)) = self.parameters.iter().find(|(known, _)| *known == text) {
            return Ok((term, optional));
        }
        if let Some(reason) = reserved(&text) {
            return Err(self
                .cursor
                .error(span, format!("`{text}` is a word of the notation, not a name"))
                .with_help(reason));
        }
        if text == "_" {
            let term = self.put(span, TermKind::Any)?;
            self.constraint(term)?;
            return Ok((term, optional));
        }
        let name = self.bind(text, false);
        self.check_no_list(&span, name)?;
        if !self.has_roots && self.side.outputs.contains(&name) {
            return Err(self.cursor.error(span, "an output of the pattern cannot be one of its inputs"));
        }
        let term = self.put(span, TermKind::Name { name, constant: false })?;
        if self.constraint(term)? {
            self.parsed.names[name].constant = true;
            self.side.terms[term].kind = TermKind::Name { name, constant: true };
        }
        Ok((term, optional))
    }

    /// Parses `: const f32|f16[1,?]`. The result is true if it must be a constant.
    pub(super) fn constraint(&mut self, term: usize) -> Result<bool, NotationError> {
        if !self.cursor.eat(":") {
            return Ok(false);
        }
        let constant = self.cursor.eat_word("const");
        self.cursor.skip_space();
        let next = self.cursor.peek();
        let is_clause = ["with", "where", "if"].contains(&self.cursor.clone().word());
        if self.cursor.eat("$") {
            self.side.terms[term].type_variable = Some(self.variable()?);
        } else if !constant && next != Some('[') || next.is_some_and(char::is_alphabetic) && !is_clause {
            loop {
                let element_type = element_type(&mut self.cursor)?;
                self.side.terms[term].element_types.push(element_type);
                // Another alternative may follow.
                let mut ahead = self.cursor.clone();
                if !ahead.eat("|") || typelift_promote::ElementType::from_name(ahead.word()).is_none() {
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

    /// Parses a name in a replacement or a condition, which the pattern must have.
    pub(super) fn bound(&mut self, start: usize, text: &str) -> Result<usize, NotationError> {
        let span = start..self.cursor.at;
        if text == "root" && !self.parsed.names.iter().any(|name| name.text == text) {
            let at = self.bind(text.to_owned(), false);
            self.parsed.names[at].certain = true;
        }
        let outputs = self.parsed.side.outputs.clone();
        // The replaced tensor may be used for its shape, but not as an input of its replacement.
        let is_measured = self.measures && (self.cursor.sees(",") || self.cursor.sees(")"));
        let is_usable = |at: &usize| is_measured || !outputs.contains(at);
        let found = self.parsed.names.iter().position(|name| name.text == text).filter(is_usable);
        let Some(name) = found else {
            if let Some(term) = self.right_name(span.clone(), text)? {
                return Ok(term);
            }
            if let Some(term) = self.part_of_name(start, text)? {
                return Ok(term);
            }
            if self.mode == Section::Replacement && self.definitions.is_tensor(text) {
                return self.put(span, TermKind::Tensor(text.to_owned()));
            }
            return Err(self.unknown_name(span, text));
        };
        self.check_no_list(&span, name)?;
        let known = &self.parsed.names[name];
        let (certain, constant) = (known.certain || known.neutral.is_some(), known.constant);
        if self.mode == Section::Replacement && self.cursor.eat_word("else") {
            let otherwise = self.power()?;
            return self.put(start..self.cursor.at, TermKind::Else { name, otherwise });
        }
        if !certain && !self.may_lack && self.mode == Section::Replacement {
            let message = format!("`{text}` exists only if an optional layer is present");
            return Err(self
                .cursor
                .error(span, message)
                .with_help(format!("write its value if it is absent: `{text} else 0`")));
        }
        self.put(span, TermKind::Name { name, constant })
    }

    /// Parses the list that is the operand of `count`.
    pub(super) fn counted(&mut self) -> Result<usize, NotationError> {
        let start = self.cursor.start();
        let text = self.cursor.word().to_owned();
        let span = start..self.cursor.at;
        let known = self.parsed.names.iter().position(|known| known.text == text);
        match known {
            Some(name) if self.parsed.names[name].is_list => self.put(span, TermKind::List(name)),
            Some(_) => Err(self.cursor.error(span, format!("`{text}` is a single tensor, not a list"))),
            None => Err(self.unknown_name(span, &text)),
        }
    }

    fn check_no_list(&self, span: &Range<usize>, name: usize) -> Result<(), NotationError> {
        let Name { text, is_list: true, .. } = &self.parsed.names[name] else { return Ok(()) };
        let error = self.cursor.error(span.clone(), format!("`{text}` is a list"));
        Err(error.with_help(format!("write `{text}...` among the inputs of a layer, or `count({text})`")))
    }

    pub(super) fn source(&mut self, start: usize, mut text: String, is_quoted: bool) -> Result<usize, NotationError> {
        if !is_quoted {
            text += self.cursor.run(|c| c.is_alphanumeric() || "_.:".contains(c));
        }
        let source = if text == "_" && !is_quoted { Source::Own } else { Source::Named(text) };
        let Some(sources) = &mut self.sources else { return Err(self.cursor.expected("a name")) };
        let known = sources.found.iter().position(|known| *known == source);
        let constant = (sources.is_constant)(&source);
        let name = known.unwrap_or(sources.found.len());
        if known.is_none() {
            sources.found.push(source);
            let text = self.cursor.text[start..self.cursor.at].to_owned();
            self.parsed.names.push(Name { constant, certain: true, ..Name::new(text) });
        }
        self.put(start..self.cursor.at, TermKind::Name { name, constant })
    }

    /// Parses `("w.npy")` or `("w.safetensors", "name")`, after the word `npy` or `safetensors`.
    pub(super) fn file(&mut self, word: &str) -> Result<Option<ArrayFile>, NotationError> {
        let has_entries = match word {
            "npy" => false,
            "safetensors" => true,
            _ => return Ok(None),
        };
        if !self.cursor.eat_here("(") {
            return Ok(None);
        }
        let quoted = |parser: &mut Self, what: &str| {
            parser.cursor.skip_space();
            parser.cursor.quoted()?.ok_or_else(|| parser.cursor.expected(what))
        };
        let file = quoted(self, &format!("a file in quotes: `{word}(\"w.{word}\"…)`"))?;
        let entry = if has_entries {
            self.cursor.expect(",")?;
            Some(quoted(self, "the name of a tensor in quotes")?)
        } else {
            None
        };
        self.cursor.expect(")")?;
        Ok(Some(ArrayFile::new(file.into(), entry)))
    }

    pub(super) fn unknown_name(&self, span: Range<usize>, text: &str) -> NotationError {
        let outputs = &self.parsed.side.outputs;
        let names = self.parsed.names.iter().enumerate().filter(|(at, _)| !outputs.contains(at));
        let names: Vec<_> = names.map(|(_, name)| name.text.as_str()).collect();
        let error = self.cursor.error(span, format!("`{text}` is not in the pattern"));
        let error = error.with_help(match text {
            "_" => "`_` is any tensor; give it a name in the pattern".to_owned(),
            _ if typelift_promote::ElementType::from_name(text).is_some() => {
                format!("an element type is an attribute, in braces after the inputs: `Convert(x) {{destination_type={text}}}`")
            }
            _ if ops::revisions(text).is_empty() => {
                let all: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
                format!("it has {}; a line `let {text} = …` before the rule gives a value a name", all.join(", "))
            }
            _ => format!("write `{text}(…)` for the operation"),
        });
        error.with_near(nearest(text, names.iter().copied()))
    }

    /// Parses a variable after its `$`.
    pub(super) fn variable(&mut self) -> Result<usize, NotationError> {
        let start = self.cursor.at;
        let name = self.cursor.run(|c| c.is_alphanumeric() || c == '_');
        if name.is_empty() {
            return Err(self.cursor.expected("the name of a variable"));
        }
        let known = self.parsed.variables.iter().position(|known| known == name);
        match known {
            Some(at) => Ok(at),
            None if self.mode != Section::Pattern => {
                let error = self.cursor.error(start - 1..self.cursor.at, format!("`${name}` is not in the pattern"));
                let near = nearest(name, self.parsed.variables.iter().map(String::as_str));
                Err(error.with_near(near.map(|near| format!("${near}")).as_deref()))
            }
            None => {
                self.parsed.variables.push(name.to_owned());
                Ok(self.parsed.variables.len() - 1)
            }
        }
    }

    /// Marks the names that every match has.
    pub(super) fn find_certain(&mut self) -> Result<(), NotationError> {
        let mut all: NameSet = self.side.outputs.iter().copied().collect();
        for root in self.side.roots.clone() {
            all.extend(self.names_of(root, &mut Vec::new())?);
        }
        for (at, name) in self.parsed.names.iter_mut().enumerate() {
            name.certain = all.contains(&at);
        }
        Ok(())
    }

    pub(super) fn find_links(&mut self) -> Result<(), NotationError> {
        let roots = self.side.roots.clone();
        let mut known = NameSet::new();
        for (at, &root) in roots.iter().enumerate() {
            let names = self.names_of(root, &mut Vec::new())?;
            let is_link = |name: &&usize| !self.parsed.names[**name].constant && !self.parsed.names[**name].is_list;
            let shared: Vec<_> = known.intersection(&names).filter(is_link).copied().collect();
            if at > 0 {
                if shared.is_empty() {
                    let name = &self.parsed.names[self.side.outputs[at]].text;
                    let error = self
                        .cursor
                        .error(self.span(root), format!("`{name}` shares no tensor with the roots before it"));
                    return Err(error.with_help("use the same name for a tensor on which both depend"));
                }
                let depth = self.depth_of(root);
                let operations = operations_of(&self.side, &self.parsed.names, root);
                let operations = operations.into_iter().map(str::to_owned).collect();
                self.parsed.links.push(Link { names: shared, operations, depth });
            }
            known.extend(names);
        }
        Ok(())
    }

    fn depth_of(&self, term: usize) -> usize {
        let deepest = |terms: &mut dyn Iterator<Item = usize>| terms.map(|term| self.depth_of(term)).max().unwrap_or(0);
        match &self.side.terms[term].kind {
            TermKind::Layer(layer) => 1 + deepest(&mut layer.inputs.iter().copied()),
            TermKind::Chain(chain) => MOST_IN_CHAIN + deepest(&mut chain.factors.iter().map(|factor| factor.term)),
            TermKind::Either(branches) => deepest(&mut branches.iter().map(|branch| branch.term)),
            TermKind::Name { name, .. } | TermKind::List(name) => {
                let definition = self.parsed.names[*name].definition.iter();
                deepest(&mut definition.map(|definition| definition.term))
            }
            _ => 0,
        }
    }

    /// `open` contains the names whose definitions are being visited.
    fn names_of(&self, term: usize, open: &mut Vec<usize>) -> Result<NameSet, NotationError> {
        let union = |terms: &[usize], open: &mut Vec<usize>| {
            terms.iter().try_fold(NameSet::new(), |mut names, &term| {
                names.extend(self.names_of(term, open)?);
                Ok(names)
            })
        };
        match &self.side.terms[term].kind {
            TermKind::Name { name, .. } | TermKind::List(name) => {
                let mut names = self.names_defined_by(*name, open)?;
                names.insert(*name);
                Ok(names)
            }
            TermKind::Layer(layer) => {
                let certain = if layer.optional { 1 } else { layer.inputs.len() - layer.optional_inputs };
                let mut names = union(&layer.inputs[..certain.min(layer.inputs.len())], open)?;
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
                let mut common: Option<NameSet> = None;
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
            _ => Ok(NameSet::new()),
        }
    }

    fn names_defined_by(&self, name: usize, open: &mut Vec<usize>) -> Result<NameSet, NotationError> {
        let Some(definition) = &self.parsed.names[name].definition else { return Ok(NameSet::new()) };
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

fn reserved(text: &str) -> Option<&'static str> {
    Some(match text {
        "const" => {
            "a constant is `c: const`; before the first pattern `NAME:` is the name of the rule, so write \
             `rule: c: const * Swish(g) => …`"
        }
        "where" | "if" => "it begins a clause after the pattern or the replacement",
        "with" => "it gives a branch values: `P with $m=erf | Q with $m=tanh`",
        "else" => "it gives the value of a missing name in a replacement",
        "like" | "in" => "it is a comparison in a condition",
        "try" | "once" => "it begins a rule",
        "as" => "it names a new layer in a replacement",
        _ => return None,
    })
}
