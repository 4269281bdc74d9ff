//! Parsing of operations with their inputs and attributes.

use std::ops::Range;

use super::{Parser, Section};
use crate::base::foreign;
use crate::base::names::nearest;
use crate::ops::{self, AttrKind};
use crate::rewrite::notation::{NotationError, attribute_value, word};
use crate::rewrite::term::{
    AttributeTerm, AttributeValue, Branch, FUNCTIONS, LayerTerm, Name, Rest, TermKind, rows_of,
};

/// Operation as written in the rule, with the signs after it.
struct Head {
    text: String,
    is_quoted: bool,
    version: Option<String>,
    span: Range<usize>,
    optional: bool,
    shared: bool,
}

/// Explains how the attributes of an operation are written. `values` were written as inputs, in the order of the
/// required attributes.
fn in_braces(layer: &LayerTerm, values: &[&str]) -> String {
    let rows = rows_of(layer);
    let names: Vec<_> = rows.iter().flat_map(|row| row.attribute_names()).collect();
    let needed: Vec<_> = rows.last().into_iter().flat_map(|row| row.needed()).collect();
    let needed = if needed.is_empty() { names.get(..1).unwrap_or(&["NAME"]) } else { &needed[..] };
    let values = values.iter().chain(std::iter::repeat(&"…"));
    let pairs: Vec<_> = needed.iter().zip(values).map(|(name, value)| format!("{name}={value}")).collect();
    written_in_braces(layer, &pairs.join(", "))
}

fn written_in_braces(layer: &LayerTerm, attributes: &str) -> String {
    format!("attributes follow the inputs in braces: `{}(…) {{{attributes}}}`", layer.operation)
}

impl Parser<'_> {
    /// Parses a tensor or an operation. The flag is true if `?` follows a tensor.
    pub(super) fn named(&mut self, start: usize) -> Result<(usize, bool), NotationError> {
        let quoted = self.cursor.quoted()?;
        let is_quoted = quoted.is_some();
        let text = quoted.unwrap_or_else(|| self.cursor.word().to_owned());
        if text.is_empty() {
            return Err(self.cursor.expected("an operation, a name or a number"));
        }
        if let (false, Some(file)) = (is_quoted || self.mode == Section::Pattern, self.file(&text)?) {
            return Ok((self.put(start..self.cursor.at, TermKind::File(file.into()))?, false));
        }
        if let Some(error) = self.foreign_operation(start, &text).filter(|_| !is_quoted) {
            return Err(error);
        }
        let word_end = self.cursor.at;
        if let Some(head) = self.operation_ahead(start, &text, is_quoted)? {
            return Ok((self.operation(start, head)?, false));
        }
        self.cursor.at = word_end;
        if self.sources.is_some() {
            return Ok((self.source(start, text, is_quoted)?, false));
        }
        if is_quoted && self.mode == Section::Replacement {
            return Ok((self.put(start..self.cursor.at, TermKind::Tensor(text))?, false));
        }
        if is_quoted {
            return Err(self.cursor.expected("`(` after the operation"));
        }
        match self.mode {
            Section::Pattern => self.tensor(start, text),
            _ => match self.type_named(start, &text)? {
                Some(term) => Ok((term, false)),
                None => Ok((self.bound(start, &text)?, false)),
            },
        }
    }

    /// The error for an operation in the notation of another program: `opset7.Gelu(x)`, `ov::Gelu(x)`.
    fn foreign_operation(&self, start: usize, set: &str) -> Option<NotationError> {
        let mut ahead = self.cursor.clone();
        let mut name = String::new();
        while ["::", "."].into_iter().any(|sign| ahead.eat_here(sign)) {
            name = ahead.word().to_owned();
        }
        let end = ahead.at;
        if name.is_empty() || ops::revisions(&name).is_empty() && !set.starts_with("opset") || !ahead.eat_here("(") {
            return None;
        }
        let known = set.strip_prefix("opset").filter(|_| ops::lookup(&name, set).is_some());
        let version = known.map(|number| format!("-{number}")).unwrap_or_default();
        let near = nearest(&name, ops::all().map(|row| row.name)).unwrap_or(&name);
        let error = self.cursor.error(start..end, "an operation is written without the name of its operation set");
        Some(error.with_near(Some(&format!("{near}{version}"))))
    }

    /// Parses the rest of an operation up to its closing parenthesis. `None` if it is not an operation.
    fn operation_ahead(&mut self, start: usize, text: &str, is_quoted: bool) -> Result<Option<Head>, NotationError> {
        let mut ahead = self.cursor.clone();
        let version = if ahead.eat_here("-") {
            Some(ahead.quoted()?.unwrap_or_else(|| ahead.run(|c| c.is_alphanumeric() || c == '_').to_owned()))
        } else {
            None
        };
        let span = start..ahead.at;
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
        let spaced = ahead.peek() != Some('(');
        if spaced && text.starts_with(char::is_lowercase) && !is_quoted || !ahead.eat("(") {
            return Ok(None);
        }
        self.cursor = ahead;
        if let (true, Some(marker)) = (self.mode != Section::Pattern, optional.clone().or(shared.clone())) {
            return Err(self.cursor.error(marker, "`?` and `&` are only permitted in patterns"));
        }
        let (optional, shared) = (optional.is_some(), shared.is_some());
        Ok(Some(Head { text: text.to_owned(), is_quoted, version, span, optional, shared }))
    }

    fn operation(&mut self, start: usize, head: Head) -> Result<usize, NotationError> {
        if head.version.is_none() && head.text == "fold" && self.mode == Section::Replacement {
            return self.fold(start);
        }
        if head.version.is_none() {
            let function = FUNCTIONS.iter().find(|(name, ..)| *name == head.text);
            if let Some(&(name, function, ..)) = function.filter(|_| self.mode != Section::Pattern) {
                return self.function(start, name, function);
            }
            if self.mode == Section::Pattern && self.definitions.get(&head.text).is_some() {
                return self.inline(start, &head.text);
            }
        }
        if self.mode == Section::Condition {
            let error = self.cursor.error(head.span.clone(), format!("`{}` is not a function", head.text));
            let names: Vec<_> = FUNCTIONS.iter().map(|row| row.0).collect();
            let near = nearest(&head.text, names.iter().copied());
            return Err(error.with_help(format!("there are {}", names.join(", "))).with_near(near));
        }
        let (optional, shared) = (head.optional, head.shared);
        let layer = self.head(head)?;
        self.layer(start, LayerTerm { optional, shared, ..layer })
    }

    fn inline(&mut self, start: usize, name: &str) -> Result<usize, NotationError> {
        let mut operands = vec![self.alternatives()?];
        while self.cursor.eat(",") {
            operands.push(self.alternatives()?);
        }
        self.cursor.expect(")")?;
        let definitions = self.definitions;
        let Some(definition) = definitions.get(name) else { return Err(self.cursor.expected("a definition")) };
        let span = start..self.cursor.at;
        if operands.len() != definition.parameters.len() {
            let (takes, found) = (definition.parameters.len(), operands.len());
            return Err(self.cursor.error(span, format!("`{name}` takes {takes} operands, got {found}")));
        }
        let parameters = definition.parameters.iter().cloned().zip(operands).collect();
        let outer = std::mem::replace(&mut self.parameters, parameters);
        let cursor = std::mem::replace(&mut self.cursor, crate::rewrite::notation::Cursor::new(&definition.body));
        let used_at = self.used_at.clone();
        self.used_at.get_or_insert(span);
        let term = self.alternatives()?;
        self.used_at = used_at;
        self.cursor = cursor;
        self.parameters = outer;
        Ok(term)
    }

    /// Parses the operands of alternative operations, `(Add|Subtract)(…)`, after the second opening parenthesis.
    pub(super) fn layer_of_several(
        &mut self,
        start: usize,
        operations: Vec<(String, Range<usize>)>,
    ) -> Result<usize, NotationError> {
        let mut heads = Vec::new();
        for (text, span) in operations {
            let head = Head { text, is_quoted: false, version: None, span, optional: false, shared: false };
            heads.push(self.head(head)?);
        }
        let first = heads.remove(0);
        let term = self.layer(start, first)?;
        let TermKind::Layer(layer) = self.side.terms[term].kind.clone() else { return Ok(term) };
        let mut branches = vec![Branch { term, with: Vec::new() }];
        for LayerTerm { operation, head, .. } in heads {
            let other = LayerTerm { operation, head, ..layer.clone() };
            self.check_inputs(&other)?;
            let term = self.put(start..self.cursor.at, TermKind::Layer(other))?;
            branches.push(Branch { term, with: Vec::new() });
        }
        self.put(start..self.cursor.at, TermKind::Either(branches))
    }

    /// The operation of a layer. It must exist, unless it is in quotes or has an extension's version.
    fn head(&mut self, head: Head) -> Result<LayerTerm, NotationError> {
        let Head { text, is_quoted, version, span, .. } = head;
        let number = version.as_deref().and_then(|version| version.trim_start_matches("opset").parse::<u8>().ok());
        let version = match number {
            Some(number) => Some(format!("opset{number}")),
            None => version,
        };
        let rows = ops::revisions(&text);
        let error = |message: String| self.cursor.error(span.clone(), message);
        let operation = match (rows.first(), &version) {
            (Some(row), Some(version)) if number.is_some() && ops::lookup(&text, version).is_none() => {
                let known: Vec<_> = rows.iter().filter_map(|row| row.opsets().next()).collect();
                let known: Vec<_> = known.iter().map(|opset| format!("`{}-{opset}`", row.name)).collect();
                return Err(
                    error(format!("`{text}` is not in {version}")).with_help(format!("there is {}", known.join(", ")))
                );
            }
            (Some(row), _) => row.name.to_owned(),
            (None, Some(_)) if number.is_none() => text,
            (None, _) if is_quoted => text,
            (None, _) => {
                let unknown = error(format!("`{text}` is not an operation"));
                let functions = FUNCTIONS.iter().map(|row| row.0).filter(|_| self.mode != Section::Pattern);
                let near = || nearest(&text, ops::all().map(|row| row.name).chain(functions));
                let extension = || format!("write `\"{text}\"(…)` for an operation of an extension");
                return Err(match ops::meant(&text) {
                    Some(meant) => unknown.with_meant(meant),
                    None => unknown.with_help(extension()).with_near(near()),
                });
            }
        };
        Ok(LayerTerm { version, ..LayerTerm::new(&operation, span) })
    }

    /// Parses the inputs and attributes of a layer, after the opening parenthesis.
    fn layer(&mut self, start: usize, mut layer: LayerTerm) -> Result<usize, NotationError> {
        let measures = std::mem::take(&mut self.measures);
        let least = rows_of(&layer).iter().map(|row| *row.input_counts().start()).max().unwrap_or(usize::MAX);
        while !self.cursor.eat(")") {
            if self.cursor.sees("=>") {
                let help = format!("close the bracket of `{}(` before `=>`", layer.operation);
                return Err(self.cursor.expected("`,` or `)`").with_help(help));
            }
            if !layer.inputs.is_empty() {
                self.cursor.expect(",")?;
            }
            self.refuse_attribute(&layer)?;
            if self.cursor.sees("...") {
                layer.more_inputs = self.rest(&layer, |term| term.more_inputs)?;
                self.cursor.expect(")")?;
                break;
            }
            if let Some(list) = self.list()? {
                layer.inputs.push(list);
            } else if self.mode == Section::Pattern {
                let input = self.alternatives()?;
                self.input(&mut layer, input)?;
            } else {
                self.may_lack = layer.inputs.len() >= least;
                let input = self.sum()?;
                self.may_lack = false;
                layer.inputs.push(input);
            }
        }
        self.measures = measures;
        self.check_inputs(&layer)?;
        if layer.optional && layer.inputs.is_empty() {
            let head = layer.head.clone();
            return Err(self.cursor.error(head, "an optional layer needs an input that replaces it if it is absent"));
        }
        if self.cursor.eat_here(".") {
            let digits = self.cursor.run(|c| c.is_ascii_digit());
            layer.output = digits.parse().map_err(|_| self.cursor.expected("the number of an output"))?;
        }
        if self.cursor.eat("{") {
            self.attributes(&mut layer)?;
        }
        layer.name = self.layer_name()?;
        let span = start..self.cursor.at;
        let is_unknown = rows_of(&layer).is_empty();
        let term = self.put(span, TermKind::Layer(layer))?;
        if (self.mode == Section::Pattern || is_unknown) && self.constraint(term)? {
            return Err(self.cursor.error(self.span(term), "an operation is not a constant"));
        }
        Ok(term)
    }

    /// Parses a list, `xs...`, if it is next.
    pub(super) fn list(&mut self) -> Result<Option<usize>, NotationError> {
        let start = self.cursor.start();
        let name =
            self.cursor.find(|ahead| Some(ahead.word()).filter(|text| !text.is_empty() && ahead.eat_here("...")));
        let Some(text) = name.map(str::to_owned) else { return Ok(None) };
        let span = start..self.cursor.at;
        // Each `_...` is a separate list.
        let known = self.parsed.names.iter().position(|known| known.text == text && text != "_");
        let name = match known {
            Some(name) if self.parsed.names[name].is_list => name,
            Some(_) => {
                return Err(self.cursor.error(span, format!("`{text}` is a single tensor elsewhere in the rule")));
            }
            None if self.mode != Section::Pattern && text == "_" => {
                let error = self.cursor.error(span, "`_...` means any tensors");
                return Err(error.with_help("name the list in the pattern: `xs...`"));
            }
            None if self.mode == Section::Pattern => {
                self.parsed.names.push(Name { is_list: true, ..Name::new(text) });
                self.parsed.names.len() - 1
            }
            None => return Err(self.unknown_name(span, &text)),
        };
        self.put(span, TermKind::List(name)).map(Some)
    }

    /// Adds an input of a pattern; one with `?` is optional.
    fn input(&mut self, layer: &mut LayerTerm, input: usize) -> Result<(), NotationError> {
        let optional = match &self.side.terms[input].kind {
            TermKind::Chain(chain) => match &chain.factors[..] {
                [factor] if factor.optional && factor.power == 1.0 && chain.literal.is_none() => Some(factor.term),
                _ => None,
            },
            _ => None,
        };
        match optional {
            Some(term) => {
                if let TermKind::Name { name, .. } = self.side.terms[term].kind {
                    self.parsed.names[name].neutral = None;
                }
                layer.optional_inputs += 1;
                layer.inputs.push(term);
            }
            None if layer.optional_inputs > 0 => {
                return Err(self.cursor.error(self.span(input), "only the last inputs can be optional"));
            }
            None => layer.inputs.push(input),
        }
        Ok(())
    }

    /// Parses `...`. In a replacement it means the remaining inputs or attributes of the matched layer with the same
    /// operation. If there is none, it means those of the root.
    fn rest(&mut self, layer: &LayerTerm, has: fn(&LayerTerm) -> Rest) -> Result<Rest, NotationError> {
        let start = self.cursor.start();
        self.cursor.expect("...")?;
        if self.mode == Section::Pattern {
            return Ok(Rest::Any);
        }
        let pattern = &self.parsed.side;
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

    /// Fails for `NAME=VALUE` among the inputs of a layer.
    fn refuse_attribute(&self, layer: &LayerTerm) -> Result<(), NotationError> {
        let mut ahead = self.cursor.clone();
        let start = ahead.start();
        let name = ahead.word().to_owned();
        let end = ahead.at;
        if name.is_empty() || !ahead.sees("=") || ahead.sees("=>") {
            return Ok(());
        }
        let mut depth = 0;
        let close = ahead.text[start..].find(|letter: char| {
            depth += i32::from("([".contains(letter)) - i32::from(")]".contains(letter));
            depth < 0
        });
        let rest = &ahead.text[start..close.map_or(ahead.text.len(), |size| start + size)];
        let error = self.cursor.error(start..end, format!("`{name}` is an attribute, not an input"));
        let error = error.with_help(written_in_braces(layer, rest));
        let before = ahead.text.get(layer.head.start..start);
        let (Some(size), Some(before)) = (close, before) else { return Err(error) };
        let before = before.trim_end_matches([' ', ',']);
        Err(error.with_meaning(layer.head.start..start + size + 1, format!("{before}) {{{rest}}}")))
    }

    fn check_inputs(&self, layer: &LayerTerm) -> Result<(), NotationError> {
        let rows = rows_of(layer);
        let lists =
            layer.inputs.iter().filter(|input| matches!(self.side.terms[**input].kind, TermKind::List(_))).count();
        let is_open = layer.optional_inputs > 0 || layer.more_inputs != Rest::None;
        if lists > 0 && is_open && self.mode == Section::Pattern {
            let message = "a layer with a list cannot have optional inputs or `...`";
            return Err(self.cursor.error(layer.head.clone(), message));
        }
        let count = layer.inputs.len() - lists;
        let takes = |row: &&ops::Operation| match layer.more_inputs {
            Rest::None if lists == 0 => {
                (count - layer.optional_inputs..=count).any(|count| row.input_counts().contains(&count))
            }
            _ => *row.input_counts().end() >= count,
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
        let inputs = if takes == "1" { "input" } else { "inputs" };
        let message = format!("`{}` takes {takes} {inputs}, not {count}", layer.operation);
        let error = self.cursor.error(layer.head.clone(), message);
        if count < *counts.start() && self.mode == Section::Pattern && lists == 0 && !is_open {
            let end = layer.inputs.last().map_or(layer.head.end + 1, |input| self.span(*input).end);
            let rest = if count == 0 { "..." } else { ", ..." };
            let help = "`...` stands for the other inputs";
            return Err(error.with_help(help).with_meaning(end..end, rest.to_owned()));
        }
        if count < *counts.end() || rows.iter().all(|row| row.attribute_names().next().is_none()) {
            return Err(error);
        }
        let texts = layer.inputs.iter().skip(*counts.end()).filter_map(|&input| self.cursor.text.get(self.span(input)));
        let words: Vec<_> = texts.map(|text| text.trim_matches(['"', ' '])).collect();
        let error = error.with_help(in_braces(layer, &words));
        let needed: Vec<_> = rows.last().into_iter().flat_map(|row| row.needed()).collect();
        let ends = layer.inputs[..*counts.end()].last().map_or(layer.head.end + 1, |input| self.span(*input).end);
        let pairs: Vec<_> = needed.iter().zip(&words).map(|(name, value)| format!("{name}={value}")).collect();
        // A tensor of a definition lies in another text.
        let start = self.cursor.text.get(layer.head.start..ends).filter(|_| words.len() == needed.len());
        let meant = start.map(|start| format!("{start}) {{{}}}", pairs.join(", ")));
        Err(match meant {
            Some(meant) => error.with_meaning(layer.head.start..self.cursor.at, meant),
            None => error,
        })
    }

    fn attributes(&mut self, layer: &mut LayerTerm) -> Result<(), NotationError> {
        let mut first = true;
        while !self.cursor.eat("}") {
            if !first {
                self.cursor.expect(",")?;
            }
            first = false;
            let start = self.cursor.start();
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
            let value = self.attribute_value(layer, &name)?;
            let span = self.used_at.clone().unwrap_or(start..self.cursor.at);
            layer.attributes.push(AttributeTerm { name, value, span });
        }
        Ok(())
    }

    fn attribute_value(&mut self, layer: &LayerTerm, name: &str) -> Result<AttributeValue, NotationError> {
        let kind = rows_of(layer).iter().find_map(|row| row.attribute(name)).map(|attribute| attribute.kind);
        let is_number = kind
            .is_some_and(|kind| !matches!(kind, AttrKind::Text | AttrKind::Enum(_) | AttrKind::Type | AttrKind::Bool));
        let start = self.cursor.start();
        let mut ahead = self.cursor.clone();
        if ahead.eat("$") {
            self.cursor = ahead.clone();
            let variable = self.variable()?;
            if self.mode == Section::Pattern || self.cursor.sees(",") || self.cursor.sees("}") {
                return Ok(AttributeValue::Variable(variable));
            }
            self.cursor.at = start;
            return Ok(AttributeValue::Term(self.sum()?));
        }
        let name = ahead.clone().word().to_owned();
        let text = attribute_value(&mut ahead).ok().filter(|_| ahead.sees(",") || ahead.sees("}"));
        let is_name = is_number && name.starts_with(char::is_alphabetic) && !["inf", "nan"].contains(&name.as_str());
        match text {
            Some(text) if !is_name => {
                self.cursor = ahead;
                Ok(AttributeValue::Text(text))
            }
            _ if self.mode == Section::Pattern && is_name => {
                let word = self.cursor.word().to_owned();
                Ok(AttributeValue::Term(self.tensor(start, word)?.0))
            }
            _ if self.mode == Section::Replacement && is_number => Ok(AttributeValue::Term(self.sum()?)),
            _ => attribute_value(&mut self.cursor).map(AttributeValue::Text),
        }
    }

    fn check_attribute(&self, layer: &LayerTerm, name: &str, span: Range<usize>) -> Result<(), NotationError> {
        let rows = rows_of(layer);
        if rows.is_empty() || rows.iter().any(|row| row.attribute_names().any(|known| known == name)) {
            return Ok(());
        }
        let known: Vec<_> = rows.iter().flat_map(|row| row.attribute_names()).collect();
        let error = self.cursor.error(span, format!("`{}` does not have an attribute `{name}`", layer.operation));
        // `{eps: 1e-5}`.
        let bare = name.trim_end_matches(':');
        let near = foreign::attribute(bare, known.iter().copied());
        let near = near.map(|near| format!("{near}{}", if bare == name { "" } else { "=" }));
        let near = near.as_deref();
        let mut names = known.clone();
        names.dedup();
        let has = format!("it has {}", names.join(", "));
        Err(error.with_help(if known.is_empty() { "the operation has no attributes" } else { &has }).with_near(near))
    }
}
