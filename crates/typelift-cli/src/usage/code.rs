//! Python in place of a statement, such as `graph.outputs = [x]`.

use std::path::Path;

use super::Asked;
use super::wish::operation;
use super::words::{dashed, quoted, scoped};
use crate::input::is_xml;

impl Asked<'_> {
    /// The words of an expression: names of the model are whole, and other names are taken apart. `None` if no name is one
    /// of a program, or if a part of a tensor is meant.
    pub(super) fn code_words(&self, text: &str) -> Option<Vec<String>> {
        let (mut words, mut is_code) = (Vec::<String>::new(), false);
        for (before, atom) in atoms(text) {
            let inner = atom.trim_matches(['"', '\'', '[', ']']);
            let is_list = atom.starts_with('[');
            // `graph.outputs[0]`, `model.output(0)`.
            let is_index =
                inner.parse::<usize>().is_ok() && (is_list && before.ends_with(is_part) || before.ends_with("put("));
            // `outputs = [x]`.
            is_code |= is_list && before.trim_end().ends_with('=');
            if is_index {
                words.push(self.end(words.last()?, inner)?);
            } else if is_list && inner.contains(char::is_alphabetic) {
                let names = inner.split(',').map(|name| name.trim_matches([' ', '"', '\'', '(', ')']).to_owned());
                words.extend(names.filter(|name| !name.is_empty()));
            } else if is_list && before.ends_with(is_part) {
                return None;
            } else if inner.ends_with(".onnx") || is_xml(inner) && !Path::new(inner).exists() {
                // The program of the code reads and writes its files itself.
            } else if is_list || inner.parse::<f64>().is_ok() || is_xml(inner) {
                words.push(if is_list { atom } else { inner }.to_owned());
            } else {
                let (start, name, end) = self.named(inner);
                let own = start
                    .into_iter()
                    .flat_map(|text| self.pieces(text))
                    .chain(name)
                    .chain(end.into_iter().flat_map(|text| self.pieces(text)));
                let (glue, own): (Vec<_>, Vec<_>) = own.partition(|word| scoped("CODE", |it| it == word).is_some());
                is_code |= !glue.is_empty() && atom.starts_with(is_part);
                // `set_element_type(Type.u8)`.
                for word in own {
                    words.extend(Some(word).filter(|word| !words.contains(word)));
                }
            }
        }
        is_code.then_some(words)
    }

    /// The words in a name: `set`, `element`, and `type` in `set_element_type`. An operation or a mode is one word.
    fn pieces(&self, name: &str) -> Vec<String> {
        let is_mode = name.contains(char::is_numeric) && self.value("MODE", name).is_some();
        let is_whole = is_mode || operation(name).is_some();
        let parts = dashed(name);
        let parts = parts.split(['-', ':', '/']).filter(|it| !it.is_empty());
        if is_whole { vec![name.to_owned()] } else { parts.map(str::to_owned).collect() }
    }

    /// The longest part of a dotted text that is a name of the model, and what is before and after it.
    pub(super) fn named<'t>(&self, text: &'t str) -> (Vec<&'t str>, Option<String>, Vec<&'t str>) {
        let parts: Vec<_> = text.split('.').filter(|part| !part.is_empty()).collect();
        let is_name = |name: &str| self.model().is_some_and(|model| model.find(name).is_ok());
        let ranges = (1..=parts.len()).rev().flat_map(|size| (0..=parts.len() - size).map(move |at| at..at + size));
        match ranges.into_iter().find(|range| is_name(&parts[range.clone()].join("."))) {
            Some(it) => (parts[..it.start].to_vec(), Some(parts[it.clone()].join(".")), parts[it.end..].to_vec()),
            None => (parts, None, Vec::new()),
        }
    }

    /// The name of an input or of an output by its number.
    fn end(&self, kind: &str, number: &str) -> Option<String> {
        let kind = kind.trim_end_matches('s');
        let ends = self.ends(if ["input", "output"].contains(&kind) { kind } else { return None });
        Some(ends.get(number.parse::<usize>().ok()?)?.0.clone())
    }

    /// The statement for a tensor that is computed from itself: `before x : _ / 255` for `x = x / 255` and `x /= 255`.
    pub(super) fn updated(&self, text: &str) -> Option<String> {
        let (left, formula) = text.split_once('=')?;
        let sign = left.trim_end().chars().last().filter(|sign| "+-*/".contains(*sign));
        let left = left.trim().trim_start_matches("set ").trim_end_matches(['+', '-', '*', '/']).trim_end();
        let name = self.named(left).1.unwrap_or_else(|| left.to_owned());
        let formula = match sign {
            Some(sign) => format!("_ {sign} {}", formula.trim()),
            None => {
                let parts = formula.trim().split_inclusive(|letter| !is_part(letter));
                let end = |part: &str| part.find(|letter| !is_part(letter)).unwrap_or(part.len());
                let renamed = parts.map(|part| match part.split_at(end(part)) {
                    (word, rest) if word == name => format!("_{rest}"),
                    _ => part.to_owned(),
                });
                renamed.collect()
            }
        };
        let start = match self.model().and_then(|model| model.graph().layer(model.find(&name).ok()?.1)) {
            Some(layer) if layer.operation().is_some_and(|it| it.name == "Constant") => {
                format!("set {} =", quoted(&name))
            }
            _ if self.ends("").iter().any(|(input, _)| *input == name) => format!("before {} :", quoted(&name)),
            _ => format!("after {} :", quoted(&name)),
        };
        let is_updated = formula.split(|letter| !is_part(letter)).any(|part| part == "_");
        is_updated.then(|| format!("{start} {formula}"))
    }
}

/// A statement with functions of numpy and PyTorch as the notation has them: `npy("w.npy")` for `np.load("w.npy")`.
pub(super) fn of_numpy(text: &str) -> Option<String> {
    let mut text = text.to_owned();
    let before = text.clone();
    while let Some((start, at)) =
        ["np.", "numpy.", "torch.", "math.", "_."].iter().find_map(|it| Some((it, text.find(it)?)))
    {
        let rest = &text[at + start.len()..];
        let (name, rest) = rest.split_once('(')?;
        let mut depth = 1;
        let end = rest.find(|letter: char| {
            depth += i32::from("([".contains(letter)) - i32::from(")]".contains(letter));
            depth == 0
        })?;
        let (values, after) = (&rest[..end], &rest[end + 1..]);
        // `dtype=np.float32` is the type that the constant has.
        let values = values.split_once(", dtype").map_or(values, |(values, _)| values);
        let value = match name {
            "ones" | "ones_like" => "1".to_owned(),
            "zeros" | "zeros_like" => "0".to_owned(),
            "load" => format!("npy({values})"),
            "full" => values.rsplit_once(',')?.1.trim().to_owned(),
            "array" | "asarray" | "tensor" => values.to_owned(),
            _ if name.starts_with("float") || name.starts_with("int") => values.to_owned(),
            // `_.permute(0, 2, 1)`.
            _ if *start == "_." => match (operation(name)?, values) {
                (name, "") => format!("{name}(_)"),
                (name, values) => format!("{name}(_, [{}])", values.trim_matches(['[', ']'])),
            },
            _ => format!("{name}({values})"),
        };
        text = format!("{}{value}{after}", &text[..at]);
    }
    Some(text).filter(|text| *text != before)
}

/// True for a letter of a name.
fn is_part(letter: char) -> bool {
    letter.is_alphanumeric() || "_./:-".contains(letter)
}

/// The names, the texts in quotes, and the lists of an expression, each with the text before it.
fn atoms(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        at += text[at..].find(|letter| is_part(letter) || "\"'[".contains(letter))?;
        let (before, rest) = text.split_at(at);
        let size = match rest.chars().next()? {
            quote @ ('"' | '\'') => rest[1..].find(quote).map(|size| size + 2),
            '[' => rest.find(']').map(|size| size + 1),
            _ => rest.find(|letter| !is_part(letter)),
        };
        let atom = &rest[..size.unwrap_or(rest.len())];
        at += atom.len();
        Some((before, atom))
    })
}
