//! Statements of `rewrite` for words and expressions of other programs.

use std::path::Path;

use clap::Command;
use typelift::findings::Diagnostic;
use typelift::rewrite::{Script, library};
use typelift::{Layer, LayerId};

use super::code::of_numpy;
use super::line::split;
use super::wish::tokens;
use super::words::{meanings, quoted};
use super::{Asked, STATEMENT};
use crate::input::is_xml;

impl Asked<'_> {
    /// A statement for all work before an input: channels are reversed, then the mean is subtracted.
    pub(super) fn prepare(&self, words: &mut [String]) {
        const STEPS: [&str; 3] = ["Gather", "Subtract", "Divide"];
        let Some(statement) = words.iter_mut().find(|word| word.starts_with("before NAME : ")) else { return };
        let steps = self.options().filter_map(|(name, value)| {
            let meant = meanings(name).into_iter().find(|meant| meant.contains("'before NAME : "))?;
            Some((split(meant).pop()?, value.unwrap_or_default()))
        });
        let mut steps: Vec<_> = steps.collect();
        steps.sort_by_key(|(step, _)| STEPS.iter().position(|name| step.contains(name)));
        if steps.is_empty() {
            steps.push((statement.clone(), ""));
        }
        let mut text = "_".to_owned();
        for (step, value) in steps {
            let (given, numbers) = value.split_once(['[', '(']).unwrap_or(("", value));
            let numbers: Vec<_> = numbers.trim_end_matches([']', ')']).split(',').filter(|it| !it.is_empty()).collect();
            let size = numbers.len().max(3).to_string();
            let input = self.input(given, |dims| dims.contains(&size));
            let (name, dims) =
                input.unwrap_or_else(|| ("NAME".to_owned(), vec!["1".into(), size.clone(), "1".into(), "1".into()]));
            let axis = dims.iter().position(|dim| *dim == size).unwrap_or(1);
            let ones: Vec<_> = (0..dims.len()).map(|at| if at == axis { &*size } else { "1" }).collect();
            let number = match &numbers[..] {
                [] => format!("reshape([R, G, B], [{}])", ones.join(", ")),
                [number] => (*number).to_owned(),
                _ => format!("reshape([{}], [{}])", numbers.join(","), ones.join(", ")),
            };
            let step =
                step.replace("before NAME : ", "").replace("VALUE", &number).replace(", 1)", &format!(", {axis})"));
            text = step.replace('_', &text);
            *statement = format!("before {} : ", quoted(&name));
        }
        statement.push_str(&text);
    }

    /// The statement that does what an option of `convert` does.
    pub(super) fn as_statement(&self, verb: &Command, name: &str, value: Option<&str>) -> Option<Vec<String>> {
        let convert = self.program.find_subcommand("convert").filter(|_| verb.get_name() == "rewrite")?;
        let words = self.with_value(convert, &self.own_or_similar(convert, name)?, value)?;
        let statement = |pair: &[String]| {
            let (end, shape) = pair.get(1).filter(|_| pair[0] == "--set-shape")?.rsplit_once('=')?;
            Some(["-e".to_owned(), format!("input {} : {}", quoted(end), self.with_type(end, shape)?)])
        };
        let words = words.chunks(2).map(statement).collect::<Option<Vec<_>>>()?.concat();
        words.iter().skip(1).step_by(2).all(|statement| self.runs(statement)).then_some(words)
    }

    /// A shape of an input after its type, as statements take it.
    fn with_type(&self, input: &str, shape: &str) -> Option<String> {
        Some(format!("{}{shape}", self.type_of(input)?))
    }

    /// The command with what may be meant by a statement that cannot be read, or does not run on the model.
    pub(super) fn restated(&self, wrong: &str) -> Option<String> {
        let is_typed = self.values().any(|value| value == wrong) && !self.rest().any(|word| word == wrong);
        let typed = self.typed_statements().collect::<Vec<_>>();
        let meant = if typed.len() < 2 { self.statements(wrong.trim().trim_end_matches(';')) } else { Vec::new() };
        let asked = self.only(|(name, value)| match &**name {
            "" => value.as_deref().is_some_and(is_xml),
            name => !STATEMENT.contains(&name),
        });
        let mut lines = meant.iter().filter(|meant| !is_typed || **meant != written(wrong));
        if let Some(tip) = lines.find_map(|meant| asked.said(meant)) {
            return Some(tip);
        }
        let typed = if typed.contains(&wrong) { typed } else { vec![wrong] };
        for separator in [";", " and ", ","] {
            let parts: Vec<_> = typed.iter().flat_map(|text| outside(text, separator)).collect();
            let several = Some(parts).filter(|parts| parts.len() > 1).and_then(|parts| self.several(parts));
            if let Some(tip) = several.and_then(|meant| asked.said(&meant)) {
                return Some(tip);
            }
        }
        // `-e 'fold constants'`, `-e 'model.half()'`, `-e 'graph.cleanup()'`.
        let word = match self.code_words(wrong).as_deref() {
            Some([word]) => word.clone(),
            Some([]) => "no-ops".to_owned(),
            _ => wrong.replace(' ', "-"),
        };
        let is_word = !word.contains('(') && (!meanings(&word).is_empty() || library::get(&word).is_some());
        asked.verb_tip(&word).filter(|_| is_word).or_else(|| self.refusal(&meant, wrong))
    }

    /// The answer of the model to a statement that is only written otherwise than it was typed.
    fn refusal(&self, meant: &[String], wrong: &str) -> Option<String> {
        let texts = meant.iter().map(|line| plain(line));
        let is_same = |text: &&str| {
            text.split(' ').take(2).any(|word: &str| wrong.split(' ').next() == Some(word))
                && text.contains('"') == wrong.contains('"')
        };
        // The error of a statement that is read has its reason.
        let mut texts = texts.filter(|text| is_same(text) && wrong.parse::<Script>().is_err());
        let (text, script) = texts.find_map(|text| Some((text, text.parse::<Script>().ok()?)))?;
        let error = script.run(self.model()?.clone()).err()?;
        let error = error.to_string();
        let reason = error.lines().next()?.trim_start_matches(text).trim_start_matches(": ");
        Some(format!("it is written `{text}`, which this model refuses: {reason}"))
    }

    /// The command for several statements, which run after one another. One without a word of its own begins as the first:
    /// `expose a and b`.
    fn several(&self, parts: Vec<&str>) -> Option<String> {
        let first = parts.first()?.split(' ').next()?;
        let mut done = String::new();
        // `graph.cleanup()`.
        let parts = parts.iter().filter(|part| self.code_words(part).is_none_or(|words| !words.is_empty()));
        for part in parts {
            let mut texts = vec![(*part).to_owned()];
            texts.extend([(*part).to_owned(), format!("{first} {part}")].iter().flat_map(|text| self.statements(text)));
            let texts: Vec<_> = texts.iter().map(|line| plain(line)).collect();
            let run = texts.iter().find(|text| self.runs(&format!("{done}{text}\n")));
            // A statement that does not run may need the next one.
            let text = run.or_else(|| texts.iter().find(|text| text.parse::<Script>().is_ok()))?;
            done += &format!("{text}\n");
        }
        let lines = done.lines().map(|text| format!("-e '{text}'")).collect::<Vec<_>>();
        Some(format!("rewrite {}", lines.join(" "))).filter(|_| !lines.is_empty() && self.runs(&done))
    }

    fn typed_statements(&self) -> impl Iterator<Item = &str> {
        self.options().filter(|(name, _)| STATEMENT.contains(name)).filter_map(|(_, value)| value)
    }

    /// The statement that was typed and does not run, with or without `-e`.
    pub(super) fn statement(&self) -> Option<&str> {
        self.typed_statements().find(|text| !self.runs(text)).or_else(|| self.rest().next())
    }

    pub(super) fn runs(&self, statement: &str) -> bool {
        let is_read = |script: &Script| script.files().all(Path::exists);
        statement.parse().is_ok_and(|script: Script| {
            !is_read(&script) || self.model().is_none_or(|model| script.run(model.clone()).is_ok())
        })
    }

    /// Commands that may be meant by a statement of other programs or in words, the likeliest first.
    fn statements(&self, wrong: &str) -> Vec<String> {
        let text = wrong.trim();
        let signs = ["==>", "-->", ":=", "->", "=>", "→", "=", " to "];
        let rules = signs.iter().filter_map(|sign| text.split_once(sign)).filter(|(from, _)| from.contains('('));
        let mut found = vec![text.to_owned()];
        found.extend(rules.map(|(from, to)| format!("{} => {}", from.trim(), to.trim())));
        // `x = x / 255`.
        found.extend(self.updated(text));
        found.extend(of_numpy(text));
        found.extend(self.converted(text));
        let open = text.matches('(').count().saturating_sub(text.matches(')').count());
        found.extend((open > 0).then(|| format!("{text}{}", ")".repeat(open))));
        let corrected: Vec<_> = found.iter().filter_map(|text| corrected(text)).collect();
        found.extend(corrected);
        let plain = signs.iter().take(6).fold(text.replace("puts[", "puts ["), |it, sign| it.replace(sign, " -> "));
        let unescaped = text.replace("\\.", ".");
        let mut words = match sed(&unescaped) {
            Some((old, "", _)) => vec!["s", old],
            Some((old, new, true)) => vec!["s", old, new, "g"],
            Some((old, new, false)) => vec!["s", old, new],
            // `clip x to [0, 6]`.
            None => tokens(&plain)
                .into_iter()
                .flat_map(|word| if is_range(word) { tokens(&word[1..word.len() - 1]) } else { vec![word] })
                .collect(),
        };
        // `head.name = x`.
        let is_set = words.first() == Some(&"set");
        let attribute = words.get(usize::from(is_set)).and_then(|name| name.rsplit_once('.'));
        if let Some((layer, name)) = attribute.filter(|it| self.operation_of(it.0).is_some()) {
            words.splice(..=usize::from(is_set), [name, layer]);
        }
        let mut found: Vec<_> = found.iter().map(|text| written(text)).collect();
        found.extend(self.reformed(text));
        found.extend(self.wishes(&words));
        let words = self.code_words(text).unwrap_or_default();
        found.extend(self.wishes(&words.iter().map(String::as_str).collect::<Vec<_>>()));
        found
    }

    /// A computation before an input that gets another type, with a Convert to the type that the model has.
    fn converted(&self, text: &str) -> Option<String> {
        let (name, formula) = text.strip_prefix("before ")?.split_once(':')?;
        let name = name.trim();
        let convert = format!("Convert(_) {{destination_type={}}}", self.type_of(name)?);
        let formula = formula.trim().replace(&format!("({name},"), "(_,");
        let (start, rest) = match formula.split_once("Convert(") {
            Some((start, rest)) => (start, rest.split_once(')')?.1),
            None => formula.split_once('_')?,
        };
        Some(format!("before {name} : {start}{convert}{rest}"))
    }

    /// A layer, or the first one of an operation, as a pattern: `Convolution(a, b)`.
    pub(super) fn operation_of(&self, layer: &str) -> Option<String> {
        let (graph, name) = (self.model()?.graph(), layer);
        let named = |layer: &&Layer| layer.operation().is_some_and(|it| it.name.eq_ignore_ascii_case(name));
        let layer = graph.find(layer).ok().and_then(|id| graph.layer(id)).or_else(|| graph.layers().find(named))?;
        let names = ["a", "b", "c", "d", "e", "f"].get(..layer.inputs().len())?;
        Some(format!("{}({})", layer.operation()?.name, names.join(", ")))
    }

    pub(super) fn type_of(&self, layer: &str) -> Option<String> {
        let graph = self.model()?.graph();
        Some(graph.layer(graph.find(layer).ok()?)?.outputs().first()?.element_type().to_string())
    }

    /// The name of what a layer computes from: of a tensor that can replace it, if there is one.
    pub(super) fn before(&self, layer: &str) -> Option<String> {
        let graph = self.model()?.graph();
        let own = graph.find(layer).ok()?;
        let port = |id: LayerId| graph.layer(id)?.outputs().first().map(|port| port.tensor_type());
        let before: Vec<_> = graph.producers(own).into_iter().flatten().map(|output| output.layer).collect();
        let same = before.iter().copied().find(|id| port(*id) == port(own)).or(before.first().copied())?;
        Some(graph.layer(same)?.name().to_owned())
    }

    /// The layer of the first error, or the first output.
    pub(super) fn suspect(&self) -> Option<String> {
        let found = typelift::infer(&mut self.model()?.clone());
        let layer = found.into_iter().find(Diagnostic::is_error).and_then(|error| Some(error.layer?.name));
        layer.map(|name| name.to_string()).or_else(|| Some(self.ends("output").into_iter().next()?.0))
    }
}

/// True for a list of two numbers.
fn is_range(word: &str) -> bool {
    let inner = word.strip_prefix(['[', '(']).and_then(|word| word.strip_suffix([']', ')']));
    inner.is_some_and(|inner| inner.split(',').filter(|it| it.trim().parse::<f64>().is_ok()).count() == 2)
}

/// The command for a statement.
fn written(text: &str) -> String {
    format!("rewrite -e '{text}'")
}

/// The statement of a command.
fn plain(line: &str) -> &str {
    line.strip_prefix("rewrite -e '").and_then(|text| text.strip_suffix('\'')).unwrap_or(line)
}

/// The parts of a text between separators. Those in brackets separate nothing.
fn outside<'t>(text: &'t str, separator: &str) -> Vec<&'t str> {
    let (mut parts, mut start) = (Vec::new(), 0);
    for (at, _) in text.match_indices(separator).chain([(text.len(), "")]) {
        let part = &text[start..at];
        if part.matches(['[', '(']).count() <= part.matches([']', ')']).count() {
            parts.extend(Some(part.trim()).filter(|part| !part.is_empty()));
            start = (at + separator.len()).min(text.len());
        }
    }
    parts
}

/// A statement with what its errors say is meant, as far as they say it.
fn corrected(text: &str) -> Option<String> {
    let mut text = text.to_owned();
    let mut is_changed = false;
    while let Err(error) = text.parse::<Script>() {
        let next = error.corrected().filter(|next| next.len() < 2 * text.len() + 80)?;
        is_changed = next != text;
        text = if is_changed { next } else { return None };
    }
    is_changed.then_some(text)
}

/// The words of an expression of sed, `s/old/new/g`; true if all places are meant.
pub(super) fn sed(text: &str) -> Option<(&str, &str, bool)> {
    let rest = text.strip_prefix('s')?;
    let mut parts = rest.split(rest.chars().next().filter(|sign| "/|#,".contains(*sign))?).skip(1);
    let (old, new, flags) = (parts.next()?, parts.next()?, parts.next()?);
    (!old.is_empty()).then_some((old, new, flags.contains('g')))
}
