//! Statements with the signs of another notation, such as `tap x -> y`.

use std::path::Path;

use typelift::Model;
use typelift::rewrite::Script;

use super::Asked;
use super::wish::{is_filler, tokens};
use super::words::{dashed, quoted};
use crate::input::element_type;

/// Signs and words between the parts of a statement, in this and in other notations.
const SIGNS: [&str; 12] = ["->", "=>", "==", "=", ":", "..", "as", "by", "is", "to", "with", "reorder"];

impl Asked<'_> {
    /// A known statement with the signs of its form: `tap x as y` for `tap x -> y`.
    pub(super) fn reformed(&self, text: &str) -> Vec<String> {
        let Some((word, rest)) = text.split_once(char::is_whitespace) else { return Vec::new() };
        // `make_stateful a b`, `set rt_info key = value`, `image : f16`.
        let name = dashed(word);
        let mut parts = name.split('-').filter(|part| Script::form(part).is_some());
        let first = match Script::form(word) {
            Some(_) if rest.starts_with("rt_info ") => Some(text.replacen("set rt_info", "info", 1)),
            Some(_) => None,
            None if self.ends("").iter().any(|(name, _)| name == word) => Some(format!("input {text}")),
            None => parts.next().map(|part| format!("{part} {rest}")),
        };
        if let Some(first) = first.filter(|first| first != text) {
            let whole = format!("rewrite -e '{first}'");
            return [whole].into_iter().chain(self.reformed(&first)).collect();
        }
        let mut rest = rest.split(' ').map(|word| self.port(word)).collect::<Vec<_>>().join(" ");
        // A layer stands for its constant.
        if let Some((layer, constant)) =
            rest.split(' ').next().filter(|_| word == "set").and_then(|it| Some((it, self.constant_of(it)?)))
        {
            rest = rest.replacen(layer, &constant, 1);
        }
        let forms = Script::form(word).unwrap_or_default().split('`').filter_map(|form| form.strip_prefix(word));
        let lines = forms.flat_map(whole).filter_map(|form| self.in_form(&form, rest.trim())).flatten();
        lines.map(|line| format!("rewrite -e '{}'", format!("{word} {line}").trim_end())).collect()
    }

    /// The words of a statement in the places of its form, with each value that may be meant.
    fn in_form(&self, form: &str, text: &str) -> Option<Vec<String>> {
        let parts: Vec<_> = form.split_whitespace().collect();
        let is_place = |part: &str| part.contains(|letter: char| letter.is_ascii_uppercase());
        let is_part = |word: &str| parts.iter().any(|part| is_place(part) && part.to_lowercase() == word);
        let is_own = |word: &str| self.model().is_some_and(|model| model.find(word).is_ok());
        let typed = tokens(text).into_iter().flat_map(|word| if is_own(word) { vec![word] } else { both_ends(word) });
        let mut typed = typed.filter(|word| {
            is_own(word) || !SIGNS.contains(word) && !is_part(word) && (!is_filler(word) || *word == "from")
        });
        let (mut line, mut values) = (String::new(), vec![String::new()]);
        for (at, part) in parts.iter().enumerate() {
            let mut other = None;
            let (mut is_last, mut word) = (at + 1 == parts.len(), *part);
            if !SIGNS.contains(part) && *part != "…" {
                word = typed.next()?;
                is_last |= parts[at + 1..] == ["with", "_"];
                let rest = &text[word.as_ptr() as usize - text.as_ptr() as usize..];
                match *part {
                    "NAME," => {
                        let names = [word].into_iter().chain(typed.by_ref()).map(|name| self.matching(name));
                        values = vec![names.collect::<Vec<_>>().join(", ")];
                        break;
                    }
                    "TYPE[SHAPE]" => values = vec![tensor_type(rest)?],
                    "EXPRESSION" if is_last => values = self.expressions(line.trim_end_matches(" = "), rest),
                    "VALUE" if is_last && rest.contains(' ') && !rest.contains(['"', '[']) => {
                        values = vec![format!("\"{rest}\"")]
                    }
                    "LAYOUT" | "VALUE" if is_last => values = vec![rest.to_owned()],
                    "NEW" | "NAME" if is_last && rest.contains([';', ',']) => return None,
                    "NEW" | "NAME" if is_last => values = vec![quoted(rest.trim_matches(['"', '\'']))],
                    "KEY/KEY" => other = Some(word.replace('.', "/")),
                    "FILE.xml" => other = Some(self.beside(word)),
                    "INPUT" | "OUTPUT" if !is_own(word) && !word.contains('*') => other = Some(format!("{word}*")),
                    _ if is_place(part) => {}
                    _ if element_type(word).is_ok_and(|ty| ty.to_string() == *part) => word = part,
                    _ if word.trim_end_matches('s') == part.trim_end_matches('s') => word = part,
                    _ => return None,
                }
                if !values[0].is_empty() {
                    typed.by_ref().for_each(drop);
                    break;
                }
            }
            let word = other.as_deref().unwrap_or(word);
            let is_name = is_place(part) && !part.contains('.');
            line += &format!("{} ", if is_name { quoted(word.trim_matches(['"', '\''])) } else { word.to_owned() });
        }
        typed
            .next()
            .is_none()
            .then(|| values.into_iter().map(|value| format!("{line}{value}").trim_end().to_owned()).collect())
    }

    /// The values that may be meant by a text: a number, and one of the rank of the input that gets it.
    fn expressions(&self, end: &str, text: &str) -> Vec<String> {
        let number = match &*text.to_lowercase() {
            "ones" | "true" => "1",
            "zeros" | "false" => "0",
            _ => text,
        };
        let own = if number.contains('[') { self.by_channel(end, number) } else { self.of_rank(end, number) };
        [number.to_owned()].into_iter().chain(own).collect()
    }

    /// An expression with the lists of numbers at the axis of an input that has as many: `reshape([1,2,3], [1,3,1,1])`.
    fn by_channel(&self, start: &str, text: &str) -> Option<String> {
        let name = start.trim_end_matches(" : ");
        let (_, dims) = self.ends("").into_iter().find(|(own, _)| own == name)?;
        let mut parts = text.split('[');
        let mut whole = parts.next()?.to_owned();
        for part in parts {
            let (list, rest) = part.split_once(']')?;
            let size = list.split(',').count().to_string();
            let axis = dims.iter().position(|dim| *dim == size)?;
            let ones: Vec<_> = (0..dims.len()).map(|at| if at == axis { &*size } else { "1" }).collect();
            whole += &format!("reshape([{list}], [{}]){rest}", ones.join(","));
        }
        Some(whole)
    }

    /// The only constant that a layer computes from.
    fn constant_of(&self, layer: &str) -> Option<String> {
        let graph = self.model()?.graph();
        let named = |id| graph.layer(id).filter(|it| it.operation().is_some_and(|it| it.name == "Constant"));
        let own = graph.find(layer).ok().filter(|own| named(*own).is_none())?;
        let mut constants = graph.producers(own).into_iter().flatten().filter_map(|output| named(output.layer));
        let constant = constants.next()?.name().to_owned();
        constants.next().is_none().then_some(constant)
    }

    /// A file that is missing where it was typed, if it is next to the model.
    fn beside(&self, file: &str) -> String {
        let near = self.models().first().map(|model| Path::new(model).with_file_name(file));
        let near = near.filter(|near| !Path::new(file).exists() && near.exists());
        near.map_or_else(|| file.to_owned(), |near| near.display().to_string())
    }

    /// An output of a layer as a statement takes it: `split.1` for `split:1` and `split[1]`.
    fn port(&self, word: &str) -> String {
        let port = word.trim_end_matches(']').split_once(['[', ':']).map(|(layer, port)| format!("{layer}.{port}"));
        let has_ports = |(model, id): (&Model, _)| model.graph().layer(id).is_some_and(|it| it.outputs().len() > 1);
        let is_port =
            |port: &String| self.model().and_then(|it| Some((it, it.find(port).ok()?.1))).is_some_and(has_ports);
        port.filter(is_port).unwrap_or_else(|| word.to_owned())
    }

    /// A name of the model, or a pattern that matches it within a longer one.
    fn matching(&self, name: &str) -> String {
        let wide = format!("*{name}*");
        let is_own = |name: &str| self.model().is_none_or(|model| model.find_all(name).is_ok());
        quoted(if is_own(name) || !is_own(&wide) { name } else { &wide })
    }
}

/// A form with and without each of its parts in brackets.
fn whole(form: &str) -> Vec<String> {
    let Some((before, rest)) = form.split_once(" [") else { return vec![form.to_owned()] };
    let Some((inner, after)) = rest.split_once(']') else { return vec![form.to_owned()] };
    let ends = whole(after);
    [format!("{before} {inner}"), before.to_owned()]
        .iter()
        .flat_map(|start| ends.iter().map(move |end| format!("{start}{end}").replace(", …", "")))
        .collect()
}

/// The two tensors of `a..b`.
fn both_ends(word: &str) -> Vec<&str> {
    match word.split_once("..") {
        Some((from, to)) if !from.is_empty() && from.parse::<u32>().is_err() => vec![from, to],
        _ => vec![word],
    }
}

/// A type with a shape as a statement takes them: `u8[1,3]` for `uint8 [1x3]`.
fn tensor_type(text: &str) -> Option<String> {
    let (ty, dims) = text.split_once('[').unwrap_or((text, ""));
    let dims = dims.trim_end_matches(']').split([',', 'x', ';', ' ']).filter(|dim| !dim.is_empty());
    let dims: Vec<_> = dims.map(|dim| if ["-1", "None"].contains(&dim) { "?" } else { dim }).collect();
    let ty = element_type(ty.trim().trim_end_matches([':', ','])).ok()?;
    Some(if dims.is_empty() { ty.to_string() } else { format!("{ty}[{}]", dims.join(",")) })
}
