//! Candidates for text that is not XML, or whose tags and attributes the format does not define.
//!
//! OpenVINO writes a tag on a line of its own. A line that holds no tags of the format is damaged, and one character or
//! one name makes it readable. If every line is readable, but the elements are not nested, then a line is missing or is
//! there twice.
//!
//! ```text
//! <port id="0 precision="FP32">     one quote is missing
//! <layer id="1" namer="x" …>        `name`
//! <input> <port …> </port> <output> `</input>` is missing
//! ```

use std::ops::Range;
use std::sync::{Arc, LazyLock};

use super::site::{Candidate, Evidence, Ground};
use super::trial::{Needs, Soundness, examine};
use crate::base::span::Span;
use crate::findings::{Code, Diagnostic, Fix, Proof, TextEdit};
use crate::model::weights::Weights;
use crate::ops;

/// Maximum number of damaged lines, and of their lengths in bytes.
const LINES: usize = 4;
const LENGTH: usize = 400;
/// Characters of XML that one slip can lose or replace.
const MARKS: &[&str] = &["\"", "=", "<", ">", "/", "</", "/>"];
/// Maximum number of texts that are tried for a text that is not a model.
const TEXTS: usize = 12;

/// Element of the format: its name, the names of its children and attributes, and the attributes without which it
/// means nothing.
type FormatElement = (&'static str, &'static [&'static str], &'static [&'static str], &'static [&'static str]);

const BODY: &[&str] = &["layers", "edges", "rt_info"];
const OF_LAYER: &[&str] = &[
    "data",
    "input",
    "output",
    "body",
    "then_body",
    "else_body",
    "port_map",
    "then_port_map",
    "else_port_map",
    "back_edges",
    "rt_info",
];
const ENTRY: &[&str] =
    &["external_port_id", "internal_layer_id", "axis", "start", "end", "stride", "part_size", "purpose"];

const ELEMENTS: &[FormatElement] = &[
    ("net", BODY, &["name", "version"], &["version"]),
    ("layers", &["layer"], &[], &[]),
    ("layer", OF_LAYER, &["id", "name", "type", "version", "output_names"], &["id", "name", "type"]),
    ("data", &[], &[], &[]),
    ("input", &["port"], ENTRY, &[]),
    ("output", &["port"], ENTRY, &[]),
    ("port", &["dim", "rt_info"], &["id", "precision", "names"], &["id"]),
    ("dim", &[], &[], &[]),
    ("edges", &["edge"], &[], &[]),
    ("edge", &[], &["from-layer", "from-port", "to-layer", "to-port"], &["from-layer", "to-layer"]),
    ("body", BODY, &[], &[]),
    ("then_body", BODY, &[], &[]),
    ("else_body", BODY, &[], &[]),
    ("port_map", &["input", "output"], &[], &[]),
    ("then_port_map", &["input", "output"], &[], &[]),
    ("else_port_map", &["input", "output"], &[], &[]),
    ("back_edges", &["edge"], &[], &[]),
    ("rt_info", &[], &[], &[]),
];

/// Attributes whose values are numbers in every file.
const NUMBERS: &[&str] = &["id", "from-layer", "from-port", "to-layer", "to-port", "internal_layer_id"];

/// Attributes whose values can have any character.
const NAMES: &[&str] = &["name", "names", "output_names"];

/// Names of the attributes of all operations.
static OF_OPERATIONS: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
    let mut names: Vec<_> = ops::all().flat_map(ops::Operation::attribute_names).collect();
    names.sort_unstable();
    names.dedup();
    names
});

fn find(name: &str) -> Option<&'static FormatElement> {
    ELEMENTS.iter().find(|it| it.0 == name)
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum TagRole {
    Start,
    End,
    Single,
}

#[derive(PartialEq, Eq, Debug)]
struct LineTag<'t> {
    role: TagRole,
    name: &'t str,
    attributes: Vec<(&'t str, &'t str)>,
    /// The text after the tag, up to the next one.
    text: &'t str,
}

/// `None` if it has other text, or a tag that is not XML.
fn tags(line: &str) -> Option<Vec<LineTag<'_>>> {
    let mut rest = line.trim();
    let mut found = Vec::new();
    while !rest.is_empty() {
        let inner = rest.strip_prefix('<')?;
        let (inner, ends) = inner.strip_prefix('/').map_or((inner, false), |inner| (inner, true));
        let end = inner.find(|c: char| !is_name_part(c))?;
        let (name, mut tail) = inner.split_at(end);
        let mut attributes = Vec::new();
        let role = loop {
            let bare = tail.trim_start();
            if let Some(after) = bare.strip_prefix("/>").filter(|_| !ends) {
                tail = after;
                break TagRole::Single;
            }
            if let Some(after) = bare.strip_prefix('>') {
                tail = after;
                break if ends { TagRole::End } else { TagRole::Start };
            }
            if bare.len() == tail.len() || ends {
                return None;
            }
            let (key, after) = bare.split_once("=\"")?;
            let (value, after) = after.split_once('"')?;
            let is_plain = !key.is_empty() && key.chars().all(is_name_part) && !value.contains(['<', '>', '\n']);
            attributes.push(is_plain.then_some((key, value))?);
            tail = after;
        };
        let next = tail.find('<').unwrap_or(tail.len());
        found.push(LineTag { role, name, attributes, text: &tail[..next] });
        rest = &tail[next..];
    }
    (!found.is_empty()).then_some(found)
}

fn is_name_part(c: char) -> bool {
    c.is_ascii_alphanumeric() || ['_', '-', '.'].contains(&c)
}

/// An attribute of `<data>` may belong to an extension, unless `is_strict`.
fn is_known(tag: &LineTag, is_strict: bool) -> bool {
    let Some((_, _, attributes, required)) = find(tag.name) else { return false };
    let names: Vec<_> = tag.attributes.iter().map(|(name, _)| *name).collect();
    let knows = |name: &&str| match tag.name {
        "data" if is_strict => OF_OPERATIONS.contains(name),
        "data" => name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_'),
        _ => attributes.contains(name),
    };
    let is_number = |&(name, value): &(&str, &str)| {
        let has_entity = value.contains('&') && !NAMES.contains(&name);
        let is_digits = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
        !has_entity && (is_digits || !NUMBERS.contains(&name))
    };
    let are_once = (1..names.len()).all(|at| !names[..at].contains(&names[at]));
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    let has_text = match (tag.name, tag.role) {
        ("dim", TagRole::Start) => !is_strict || is_digits(tag.text.trim()),
        _ => tag.text.trim().is_empty(),
    };
    let has_all = tag.role == TagRole::End || required.iter().all(|name| names.contains(name));
    let is_single = !matches!(tag.name, "data" | "edge") || tag.role == TagRole::Single;
    let is_plain = !is_strict || tag.attributes.iter().all(is_number);
    are_once && has_text && has_all && is_single && is_plain && names.iter().all(knows)
}

fn known(line: &str, is_strict: bool) -> Option<Vec<LineTag<'_>>> {
    let tags = tags(line).filter(|tags| tags.iter().all(|tag| is_known(tag, is_strict)))?;
    // The ends of tags within a line must be those of the line.
    let is_closed = |at: usize, tag: &LineTag| match tag.role {
        TagRole::End if at > 0 => tags[at - 1].role == TagRole::Start && tags[at - 1].name == tag.name,
        TagRole::Start if tag.name == "dim" => tags.get(at + 1).is_some_and(|next| next.role == TagRole::End),
        _ => true,
    };
    tags.iter().enumerate().all(|(at, tag)| is_closed(at, tag)).then_some(tags)
}

type PlacedLines<'s> = Vec<(usize, &'s str)>;

/// The lines that hold tags of the format, without metadata and comments.
fn lines(source: &str) -> PlacedLines<'_> {
    let mut found = PlacedLines::new();
    let (mut at, mut is_info) = (0, false);
    for line in source.split_inclusive('\n') {
        let text = line.trim();
        let starts = text.starts_with("<rt_info") && !text.ends_with("/>") && !text.contains("</rt_info>");
        let is_comment = text.starts_with("<!--") && text.ends_with("-->");
        if !is_info && !is_comment && !text.is_empty() && !text.starts_with("<?") && !text.starts_with("<rt_info") {
            found.push((at, line));
        }
        is_info = if is_info { !text.starts_with("</rt_info") } else { starts };
        at += line.len();
    }
    found
}

fn readings(line: &str) -> Vec<(String, &'static str)> {
    let mut found: Vec<(String, &'static str)> = Vec::new();
    let mut offer = |text: String, slip: &'static str| {
        let Some(read) = known(&text, true).map(trimmed) else { return };
        if found.iter().all(|(other, _)| tags(other).map(trimmed).as_ref() != Some(&read)) {
            found.push((text, slip));
        }
    };
    for (range, meant) in names(line) {
        let mut text = line.to_owned();
        text.replace_range(range, meant);
        offer(text, "text: one letter of a name");
    }
    let places =
        || line.char_indices().map(|(at, c)| (&line[..at], &line[at..at + c.len_utf8()], &line[at + c.len_utf8()..]));
    // Of readings with the same tags the first is offered, so text is added before any is replaced or removed.
    for (before, c, after) in places().chain([(line, "", "")]) {
        MARKS.iter().for_each(|mark| offer(format!("{before}{mark}{c}{after}"), "text: a lost character of XML"));
    }
    for (before, c, after) in places() {
        MARKS.iter().for_each(|mark| offer(format!("{before}{mark}{after}"), "text: one character of XML"));
        // A name can have the character, and another program has not encoded it.
        match c {
            "\"" => offer(format!("{before}&quot;{after}"), "text: `&quot;`"),
            "<" => offer(format!("{before}&lt;{after}"), "text: `&lt;`"),
            _ => {}
        }
    }
    places().for_each(|(before, _, after)| offer(format!("{before}{after}"), "text: one character too many"));
    found
}

/// The tags without space around values and texts, for comparison.
fn trimmed(mut tags: Vec<LineTag<'_>>) -> Vec<LineTag<'_>> {
    for tag in &mut tags {
        tag.text = tag.text.trim();
        tag.attributes.iter_mut().for_each(|(_, value)| *value = value.trim());
    }
    tags
}

/// The names of a line that the format does not have, each with a known name that differs by one letter.
fn names(line: &str) -> Vec<(Range<usize>, &'static str)> {
    let mut found = Vec::new();
    let is_part = |c: char| !c.is_whitespace() && !['<', '>', '/', '"', '\'', '='].contains(&c);
    let mut at = 0;
    while let Some(start) = line[at..].find(is_part).map(|start| at + start) {
        let end = line[start..].find(|c| !is_part(c)).map_or(line.len(), |length| start + length);
        let (word, before, after) = (&line[start..end], &line[..start], &line[end..]);
        let is_element = before.ends_with('<') || before.ends_with("</");
        let is_attribute = after.starts_with('=') && before.ends_with(char::is_whitespace);
        let near = |name: &&&str| strsim::osa_distance(word, name) == 1 || word.eq_ignore_ascii_case(name);
        let known: Vec<&'static str> = match () {
            () if is_element => ELEMENTS.iter().map(|it| it.0).collect(),
            () if is_attribute => {
                let mut all: Vec<_> =
                    ELEMENTS.iter().flat_map(|it| it.2).chain(OF_OPERATIONS.iter()).copied().collect();
                all.sort_unstable();
                all.dedup();
                all
            }
            () => Vec::new(),
        };
        found.extend(known.iter().filter(near).filter(|name| **name != word).map(|name| (start..end, *name)));
        at = end;
    }
    found
}

pub(super) fn damaged_lines(source: &str) -> Vec<Candidate> {
    let lines = lines(source);
    let mut damaged = lines.iter().filter(|(_, line)| line.len() <= LENGTH && known(line, false).is_none());
    let some: Vec<_> = damaged.by_ref().take(LINES).collect();
    if damaged.next().is_some() {
        return Vec::new();
    }
    let mut found = Vec::new();
    for (at, line) in some {
        let read = readings(line);
        found.extend(read.iter().map(|(text, slip)| {
            let ground = if read.len() == 1 { Ground::File(slip, Needs::NoErrors) } else { Ground::None };
            Candidate::new(Evidence::Near, ground, vec![difference(*at, line, text)])
        }));
    }
    found
}

fn difference(at: usize, line: &str, text: &str) -> TextEdit {
    let same = |(a, b): &(char, char)| a == b;
    let size = |(c, _): (char, char)| c.len_utf8();
    let mut head: usize = line.chars().zip(text.chars()).take_while(same).map(size).sum();
    let mut tail: usize = line[head..].chars().rev().zip(text[head..].chars().rev()).take_while(same).map(size).sum();
    let is_name = |part: &str| part.chars().all(is_name_part);
    if is_name(&text[head..text.len() - tail]) && !line[head..line.len() - tail].contains(['"', '=', '<', '>', '/']) {
        head = line[..head].trim_end_matches(is_name_part).len();
        let after = &line[line.len() - tail..];
        tail = after.trim_start_matches(is_name_part).len();
    } else {
        head = line.len() - line.trim_start().len();
        tail = line.len() - line.trim_end().len();
    }
    TextEdit::new(Span::new(at + head, at + line.len() - tail), &text[head..text.len() - tail])
}

/// Candidates for the first place where readable lines are not nested; `None` if all are.
fn nesting(source: &str) -> Option<Vec<Candidate>> {
    let lines = lines(source);
    let mut open: Vec<(&str, Vec<&str>)> = Vec::new();
    for (number, &(at, line)) in lines.iter().enumerate() {
        for tag in tags(line).unwrap_or_default() {
            let fits = match open.last_mut() {
                parent if tag.role == TagRole::End => parent.is_some_and(|(name, _)| *name == tag.name),
                Some((parent, children)) => {
                    // A layer has one list of inputs, one of outputs, and one `<data>`.
                    let is_again = *parent == "layer" && children.contains(&tag.name);
                    children.push(tag.name);
                    is_child(tag.name, parent) && !is_again
                }
                None => tag.name == "net",
            };
            if !fits {
                let before = number.checked_sub(1).map(|before| lines[before].1);
                let open: Vec<&str> = open.iter().map(|(name, _)| *name).collect();
                return Some(unnested((at, line), before, &tag, &open));
            }
            match tag.role {
                TagRole::Start => open.push((tag.name, Vec::new())),
                TagRole::End => drop(open.pop()),
                TagRole::Single => {}
            }
        }
    }
    None
}

fn is_child(name: &str, parent: &str) -> bool {
    find(parent).is_some_and(|(_, children, ..)| children.contains(&name))
}

/// Candidates for a tag that does not fit where it is: its line is there twice, the start or end tag before it is lost,
/// or it is an end tag.
fn unnested((at, line): (usize, &str), before: Option<&str>, tag: &LineTag, open: &[&str]) -> Vec<Candidate> {
    let mut found = Vec::new();
    let mut offer = |slip, edit| {
        found.push(Candidate::new(Evidence::Near, Ground::File(slip, Needs::Ids), vec![edit]));
    };
    let indent = &line[..line.len() - line.trim_start().len()];
    let here = Span::new(at, at);
    if before.is_some_and(|before| before.trim() == line.trim()) {
        offer("the line is there twice", TextEdit::new(Span::new(at, at + line.len()), ""));
    }
    if let [.., grand, parent] = open {
        let is_lost = if tag.role == TagRole::End { *grand == tag.name } else { is_child(tag.name, grand) };
        if is_lost {
            offer("the only place of the end tag", TextEdit::new(here, format!("{indent}</{parent}>\n")));
        }
    }
    let starts = ["input", "output", "layers", "edges", "port_map", "back_edges"];
    for start in starts.into_iter().filter(|start| tag.role != TagRole::End && is_child(tag.name, start)) {
        if open.last().is_some_and(|parent| is_child(start, parent)) {
            offer("the only place of the start tag", TextEdit::new(here, format!("{indent}<{start}>\n")));
        }
    }
    if tag.role == TagRole::Start && open.last() == Some(&tag.name) && tag.attributes.is_empty() {
        let start = at + line.find('<').unwrap_or_default() + 1;
        offer("text: a lost character of XML", TextEdit::new(Span::new(start, start), "/"));
    }
    found
}

/// Adds a safe fix to the first finding of a text that is not a model, if only one change makes it one without errors.
pub(super) fn offer_syntax(source: &Arc<String>, weights: &Weights, found: &mut [Diagnostic], budget: &mut usize) {
    let Some(finding) = found.iter_mut().find(|it| it.code == Code::XmlSyntax && it.is_error()) else { return };
    let mut all = damaged_lines(source);
    if all.is_empty() || lines(source).iter().all(|(_, line)| known(line, false).is_some()) {
        all.extend(nesting(source).unwrap_or_default());
    }
    let mut passed: Vec<(Candidate, String)> = Vec::new();
    for candidate in all.into_iter().take(TEXTS) {
        if *budget < source.len() {
            return;
        }
        *budget -= source.len();
        let text = Arc::new(TextEdit::apply(&candidate.edits, source));
        let (Some(model), left) = examine(&text, weights) else { continue };
        let after = Soundness::new(&model, &left);
        let plain = plain(&text);
        // Several lines may be lost, and a layer with them.
        let is_nested = matches!(candidate.ground, Ground::File(_, Needs::Ids));
        let is_whole = !is_nested || after.satisfies(Needs::Ids, &after) && nesting(&text).is_none();
        if !after.has_errors && is_whole && passed.iter().all(|(_, other)| *other != plain) {
            passed.push((candidate, plain));
        }
    }
    if let [(Candidate { edits, ground: Ground::File(slip, _), .. }, _)] = &passed[..] {
        finding.replace_help(vec![Fix::edit(source, None, edits.clone(), Some(Proof::new(*slip)))]);
    }
}

/// The tags of a text without comments and white space between them, for comparison.
fn plain(source: &str) -> String {
    lines(source).iter().map(|(_, line)| line.trim()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn only_reading(line: &str) -> Option<String> {
        let found = readings(line);
        (found.len() == 1).then(|| found[0].0.clone())
    }

    #[test]
    fn one_character_restores_a_line() {
        for (line, meant) in [
            ("<port id=\"0 precision=\"FP32\" />", "<port id=\"0\" precision=\"FP32\" />"),
            ("<port id\"0\" precision=\"FP32\" />", "<port id=\"0\" precision=\"FP32\" />"),
            ("<port ide\"0\" precision=\"FP32\" />", "<port id=\"0\" precision=\"FP32\" />"),
            ("<port id=\"0 />", "<port id=\"0\" />"),
            ("<dim>8<dim>", "<dim>8</dim>"),
            ("<dim5>1</dim>", "<dim>1</dim>"),
            ("<dim>4</dim", "<dim>4</dim>"),
            ("dim>4</dim>", "<dim>4</dim>"),
            ("</o9tput>", "</output>"),
            ("<Data axis=\"1\" />", "<data axis=\"1\" />"),
            ("<data axis=\"1\" >", "<data axis=\"1\" />"),
            ("<data outp,ut_type=\"i64\" />", "<data output_type=\"i64\" />"),
            ("<data shape0\"?,2\" element_type=\"f16\" />", "<data shape=\"?,2\" element_type=\"f16\" />"),
            ("<port id=\"0\" precisio7=\"FP32\">", "<port id=\"0\" precision=\"FP32\">"),
            (
                "<layer id=\"2\" namer=\"x\" type=\"Add\" version=\"opset1\">",
                "<layer id=\"2\" name=\"x\" type=\"Add\" version=\"opset1\">",
            ),
            (
                "<edge from-layer=\"7\" from-port=\"0\" to-layer=\"10' to-port=\"1\" />",
                "<edge from-layer=\"7\" from-port=\"0\" to-layer=\"10\" to-port=\"1\" />",
            ),
        ] {
            assert_eq!(known(line, false).map(|tags| tags.len()), None, "{line}");
            assert_eq!(only_reading(line).as_deref(), Some(meant), "{line}: {:?}", readings(line));
        }
    }

    #[test]
    fn a_line_with_several_readings_or_none_has_no_fix() {
        let name = "<layer id=\"2\" name=\"5\" disk\" type=\"Add\">";
        for line in [name, "<port id=\"0\" x=\"1\" y=\"2\" />", "<a>", "axis", "<data axis=\"1\" axis=\"2\" />"] {
            assert_eq!(only_reading(line), None, "{line}");
        }
    }

    #[test]
    fn lines_that_openvino_writes_are_known() {
        for line in [
            "<net name=\"m\" version=\"11\">",
            "<data element_type=\"f32\" shape=\"1, 3\" offset=\"0\" size=\"12\" />",
            "<port id=\"0\" precision=\"FP32\" names=\"a,b\" />",
            "<dim>-1</dim>",
            "<data mode=\"numpy\" of_an_extension=\"1\" />",
            "<edge from-layer=\"3\" to-layer=\"1\" />",
            "<input external_port_id=\"2\" internal_layer_id=\"0\" axis=\"1\" start=\"0\" end=\"-1\" stride=\"1\" part_size=\"1\" />",
            "<layer id=\"1\" name=\"a\" type=\"Const\" version=\"opset1\"><data offset=\"0\" size=\"4\" /><output>",
            "</then_body>",
        ] {
            assert!(known(line, false).is_some(), "{line}");
        }
    }

    #[test]
    fn an_unnested_line_is_closed_or_removed() {
        let edits = |source: &str| -> Vec<String> {
            nesting(source).iter().flatten().map(|it| TextEdit::apply(&it.edits, source)).collect()
        };
        let layer = "<net version=\"11\">\n<layers>\n<layer id=\"0\" name=\"a\" type=\"A\">\n";
        let port = "<port id=\"0\" />\n";
        let lost = format!("{layer}<input>\n{port}</layer>\n</layers>\n</net>\n");
        assert_eq!(edits(&lost), [lost.replace("</layer>\n", "</input>\n</layer>\n")]);
        let twice = format!("{layer}<input>\n<input>\n{port}</input>\n</layer>\n</layers>\n</net>\n");
        assert!(edits(&twice).contains(&twice.replacen("<input>\n", "", 1)), "{:?}", edits(&twice));
        let open = format!("{layer}{port}</input>\n</layer>\n</layers>\n</net>\n");
        let lists = twice.replace("<input>\n<input>\n", "<input>\n</input>\n<input>\n");
        assert!(nesting(&lists).is_some() && nesting(&lists.replacen("input>", "output>", 2)).is_none());
        assert!(edits(&open).contains(&open.replace(port, &format!("<input>\n{port}"))), "{:?}", edits(&open));
    }
}
