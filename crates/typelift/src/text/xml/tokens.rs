//! Tokenizer of XML: elements, attributes and texts with their positions, as OpenVINO's parser reads them.

use std::borrow::Cow;
use std::io::BufRead;
use std::iter;

use quick_xml::Reader;
use quick_xml::errors::{IllFormedError, SyntaxError};
use quick_xml::events::attributes::{AttrError, Attributes};
use quick_xml::events::{BytesStart, Event};

use crate::base::span::Span;
use crate::findings::{Code, Diagnostic, Message, Text, message};

/// Error that ends reading, because the text is not well-formed.
pub(super) type Fatal = Box<Diagnostic>;

/// Stream of elements. It does not recurse, so deep nesting cannot exhaust the stack.
pub(super) struct Tokens<'a> {
    text: &'a str,
    reader: Reader<&'a [u8]>,
    /// Offset of `text` in the source.
    base: usize,
    /// End of the content of the element that was closed last, without white space before the end tag.
    content_end: usize,
}

/// An element whose start tag was read.
pub(super) struct Element<'a> {
    tag: BytesStart<'a>,
    /// True for an element that is a single tag: `<dim />`.
    empty: bool,
    pub(super) tag_span: Span,
}

impl Element<'_> {
    pub(super) fn name(&self) -> &str {
        self.tag.name().0
    }

    fn separates(&self, name: &str) -> bool {
        let tag: &str = self.tag.as_ref();
        let at = Span::of(name, tag).start as usize;
        at.checked_sub(1).and_then(|before| tag.as_bytes().get(before)).is_none_or(u8::is_ascii_whitespace)
    }

    /// Checks the XML names of this element, of its attributes and of its children. The event reader does not.
    pub(super) fn check_name(&self, name: &str) -> Result<(), Fatal> {
        if is_name(name) {
            return Ok(());
        }
        let (message, help) = if name.starts_with(CONFLICT.0) {
            (CONFLICT.1.into(), CONFLICT.2)
        } else {
            let help = "correct the name, or remove the text that is not XML";
            (message!("`{}` is not a valid XML name"; name), help)
        };
        Err(Diagnostic::new(Code::XmlSyntax, message).at(self.tag_span, "in this element").help(help).into())
    }
}

/// The start of the first line of a merge conflict, its message and its help.
const CONFLICT: (&str, &str, &str) = (
    "<<<<<<",
    "the file contains an unresolved merge conflict",
    "resolve the conflict: keep one side and remove the lines with <<<<<<<, ======= and >>>>>>>",
);

pub(super) fn is_name(text: &str) -> bool {
    let starts = |b: u8| b.is_ascii_alphabetic() || matches!(b, b'_' | b':' | 128..);
    text.bytes().next().is_some_and(starts)
        && text.bytes().all(|b| starts(b) || b.is_ascii_digit() || matches!(b, b'-' | b'.'))
}

impl<'a> Tokens<'a> {
    pub(super) fn new(source: &'a str, span: Span) -> Self {
        let whole = span.text(source);
        // The event reader would skip a byte order mark without counting its bytes, so all are removed before.
        let text = whole.trim_start_matches('\u{feff}');
        let base = span.start as usize + whole.len() - text.len();
        let mut reader = Reader::from_str(text);
        let config = reader.config_mut();
        config.trim_text(true);
        config.allow_dangling_amp = true;
        Self { text, reader, base, content_end: base }
    }

    pub(super) fn position(&self) -> usize {
        self.base + usize::try_from(self.reader.buffer_position()).unwrap_or(usize::MAX)
    }

    /// The span from the start of `element`, whose end was just read, to the current position.
    pub(super) fn span_since(&self, element: &Element) -> Span {
        Span { end: Span::new(0, self.position()).end, ..element.tag_span }
    }

    /// The span between the tags of `element`, whose end was just read.
    pub(super) fn content_of(&self, element: &Element) -> Span {
        let start = element.tag_span.end as usize;
        Span::new(start, self.content_end.max(start))
    }

    /// Without a parent, returns the next outermost element.
    pub(super) fn child(&mut self, parent: Option<&Element>) -> Result<Option<Element<'a>>, Fatal> {
        if parent.is_some_and(|parent| parent.empty) {
            self.content_end = self.position();
            return Ok(None);
        }
        loop {
            let start = self.position();
            match if parent.is_some() { self.event_inside()? } else { self.event()? } {
                Event::Start(tag) => return Ok(Some(self.element(tag, false))),
                Event::Empty(tag) => return Ok(Some(self.element(tag, true))),
                Event::End(_) => {
                    self.content_end = start;
                    return Ok(None);
                }
                Event::Eof => return if parent.is_some() { Err(self.cut_off(None).into()) } else { Ok(None) },
                _ => {}
            }
        }
    }

    pub(super) fn text(&mut self, element: &Element<'a>) -> Result<Cow<'a, str>, Fatal> {
        let mut text = Cow::Borrowed("");
        let mut depth = usize::from(!element.empty);
        while depth > 0 {
            let start = self.position();
            let part = match self.event_inside()? {
                Event::Text(part) => part.into_inner(),
                Event::CData(part) => part.into_inner(),
                Event::GeneralRef(reference) => match reference.resolve_char_ref() {
                    Ok(Some(c)) => Cow::Owned(c.to_string()),
                    _ => Cow::Owned(format!("&{};", reference.into_inner())),
                },
                Event::Start(_) => {
                    depth += 1;
                    continue;
                }
                Event::End(_) => {
                    depth -= 1;
                    self.content_end = start;
                    continue;
                }
                Event::Eof => return Err(self.cut_off(None).into()),
                _ => continue,
            };
            if depth == 1 {
                text = if text.is_empty() { part } else { text + part };
            }
        }
        Ok(text)
    }

    /// Skips the next child of `parent`, if it has exactly this text.
    pub(super) fn pass_child(&mut self, parent: &Element, text: &str) -> bool {
        let ahead = self.ahead(parent);
        let found = ahead.trim_ascii_start().strip_prefix(text);
        if let Some(rest) = found {
            self.reader.stream().consume(ahead.len() - rest.len());
        }
        found.is_some()
    }

    /// Reads the next child of `parent`, if it is an edge with plain numbers in OpenVINO's form.
    pub(super) fn plain_edge(&mut self, parent: &Element) -> Option<([u64; 4], Span)> {
        let ahead = self.ahead(parent);
        let edge = ahead.trim_ascii_start();
        let mut rest = edge;
        let mut number = |before: &str| {
            let number;
            (number, rest) = plain_number(rest.strip_prefix(before)?)?;
            Some(number)
        };
        let from = [number("<edge from-layer=\"")?, number("\" from-port=\"")?];
        let to = [number("\" to-layer=\"")?, number("\" to-port=\"")?];
        rest = rest.strip_prefix('"')?.trim_ascii_start().strip_prefix("/>")?;
        let start = self.position() + ahead.len() - edge.len();
        self.reader.stream().consume(ahead.len() - rest.len());
        Some(([from[0], from[1], to[0], to[1]], Span::new(start, self.position())))
    }

    /// Empty if it has no content.
    pub(super) fn ahead(&self, element: &Element) -> &'a str {
        if element.empty { "" } else { self.text.get(self.position() - self.base..).unwrap_or_default() }
    }

    /// Skips the rest of `element`, which is `content` and its end tag.
    pub(super) fn pass(&mut self, element: &Element<'a>, content: &str) -> Result<(), Fatal> {
        self.reader.stream().consume(content.len());
        self.child(Some(element)).map(|_| ())
    }

    pub(super) fn skip(&mut self, element: &Element<'a>) -> Result<Span, Fatal> {
        element.check_name(element.name())?;
        let mut depth = usize::from(!element.empty);
        while depth > 0 {
            match self.event_inside()? {
                Event::Start(tag) => {
                    element.check_name(tag.name().0)?;
                    depth += 1;
                }
                Event::Empty(tag) => element.check_name(tag.name().0)?,
                Event::End(_) => depth -= 1,
                Event::Eof => return Err(self.cut_off(None).into()),
                _ => {}
            }
        }
        Ok(self.span_since(element))
    }

    pub(super) fn attribute<'e>(element: &'e Element<'a>, wanted: &str) -> Option<&'e str> {
        Self::attributes(element).flatten().find(|(name, _)| *name == wanted).map(|(_, value)| value)
    }

    /// Iterates over the attributes of `element`, including duplicates, with values as written.
    pub(super) fn attributes<'e>(element: &'e Element<'a>) -> impl Iterator<Item = Result<(&'e str, &'e str), Fatal>> {
        let tag: &str = element.tag.as_ref();
        let mut at = element.name().len();
        let mut others = None;
        // Fast path: almost all attributes have the same form. At the first one that differs, the XML parser
        // continues.
        iter::from_fn(move || {
            if others.is_none()
                && let Some((name, value, rest)) = plain_attribute(&tag[at..])
            {
                at = tag.len() - rest.len();
                return Some(Ok((name, value)));
            }
            let attribute = others.get_or_insert_with(|| Attributes::new(tag, at)).with_checks(false).next()?;
            Some(match attribute {
                Ok(attribute) if !element.separates(attribute.key.0) => Err(attribute_error(element, None).into()),
                // The value borrows from the tag, which borrows from the source, so nothing is copied.
                Ok(attribute) => match attribute.value {
                    Cow::Borrowed(value) => Ok((attribute.key.0, value)),
                    Cow::Owned(_) => Ok((attribute.key.0, "")),
                },
                Err(error) => Err(attribute_error(element, Some(&error)).into()),
            })
        })
    }

    pub(super) fn span_of(&self, part: &str) -> Span {
        let span = Span::of(part, self.text);
        Span::new(span.start as usize + self.base, span.end as usize + self.base)
    }

    /// Reads to the end of the text, which must be well-formed. Returns the position of the first content other than a
    /// comment.
    pub(super) fn rest(&mut self) -> Result<Option<Span>, Fatal> {
        let mut found = None;
        loop {
            let start = self.position();
            match self.event()? {
                Event::Eof => return Ok(found),
                Event::Comment(_) | Event::PI(_) | Event::Decl(_) | Event::DocType(_) => {}
                _ => found = found.or(Some(Span::new(start, self.position()))),
            }
        }
    }

    fn element(&self, tag: BytesStart<'a>, empty: bool) -> Element<'a> {
        let end = self.position();
        let start = end - (tag.len() + if empty { 3 } else { 2 });
        Element { tag, empty, tag_span: Span::new(start, end) }
    }

    fn event(&mut self) -> Result<Event<'a>, Fatal> {
        self.reader.read_event().map_err(|error| self.syntax_error(&error).into())
    }

    fn event_inside(&mut self) -> Result<Event<'a>, Fatal> {
        let start = self.position();
        match self.event()? {
            Event::DocType(_) => {
                let message = "a document type declaration (`<!DOCTYPE`) is inside an element";
                let refusal = Diagnostic::new(Code::XmlSyntax, message);
                let place = Span::new(start, self.position());
                Err(refusal
                    .at(place, "it must be before the root element")
                    .help("move it before the root element, or remove it")
                    .into())
            }
            event => Ok(event),
        }
    }

    #[cold]
    fn syntax_error(&self, error: &quick_xml::Error) -> Diagnostic {
        let at = self.text.floor_char_boundary(usize::try_from(self.reader.error_position()).unwrap_or(0));
        let end = self.text.ceil_char_boundary(at + 1);
        let place = Span::new(self.base + at, self.base + end);
        // The wrong end tag closed the element that the error is about.
        let open = self.open_elements(at).pop();
        match (error, open) {
            (quick_xml::Error::IllFormed(IllFormedError::MismatchedEndTag { expected, found }), Some(open))
                if !self.is_open(at, found) =>
            {
                let message = message!("`</{}>` has no start tag: <{}> is open here, not <{}>"; found, expected, found);
                let help = if expected.eq_ignore_ascii_case(found) {
                    message!("write <{}> and `</{}>`: the names differ in case"; found, found)
                } else {
                    message!("remove `</{}>`, or write `</{}>`"; found, expected)
                };
                Diagnostic::new(Code::XmlSyntax, message)
                    .at(self.end_tag(at), "this end tag has no start tag")
                    .at(open, "this element is open")
                    .help(help)
            }
            (quick_xml::Error::IllFormed(IllFormedError::MismatchedEndTag { expected, found }), Some(open)) => {
                let message = message!("`</{}>` comes before `</{}>`: <{}> is still open"; found, expected, expected);
                Diagnostic::new(Code::XmlSyntax, message)
                    .at(self.end_tag(at), message!("`</{}>` must be before it"; expected))
                    .at(open, "this element is not closed")
                    .help(message!("add `</{}>` where <{}> ends, or correct `</{}>`"; expected, expected, found))
            }
            (quick_xml::Error::Syntax(_), _) if !self.text[at..].contains('>') => self.cut_off(Some(at)),
            (quick_xml::Error::Syntax(SyntaxError::UnclosedComment), _) => {
                Diagnostic::new(Code::XmlSyntax, "a comment is never closed")
                    .at(self.line_from(at), "it begins here and contains the rest of the file")
                    .help("write `-->` where the comment ends")
            }
            (
                quick_xml::Error::Syntax(
                    SyntaxError::UnclosedSingleQuotedAttributeValue | SyntaxError::UnclosedDoubleQuotedAttributeValue,
                ),
                _,
            ) => {
                let name = self.text[at..].split(|c: char| c.is_whitespace() || c == '>').next().unwrap_or_default();
                Diagnostic::new(
                    Code::XmlSyntax,
                    message!("the value of an attribute of {}> has no closing quote"; name),
                )
                .at(self.line_from(at), "in this tag")
                .help("add the quote where the value ends")
            }
            (error, open) => {
                let error = error.to_string();
                let message = message!("{}"; error.strip_prefix("ill-formed document: ").unwrap_or(&error));
                let found =
                    Diagnostic::new(Code::XmlSyntax, message).at(place, "the text is not XML after this position");
                let found = match open {
                    Some(open) => found.at(open, "in this element"),
                    None => found,
                };
                found.help("correct the text here; if the file is damaged or incomplete, download or copy it again")
            }
        }
    }

    /// The error for an incomplete text, in the tag that begins at `tag` if given.
    #[cold]
    fn cut_off(&self, tag: Option<usize>) -> Diagnostic {
        let text = self.text.trim_end_matches('\0');
        let mut open = self.open_elements(tag.unwrap_or(text.len()));
        let layer = open.iter().rposition(|span| self.tag(*span).starts_with("<layer "));
        let layer = layer.filter(|&at| at + 1 < open.len()).map(|at| open.remove(at));
        let innermost = open.pop();
        let inside: Message = match (tag, innermost) {
            (Some(_), _) => "a tag".into(),
            (None, Some(open)) => {
                let name = self.tag(open).split(|c: char| c.is_whitespace() || "/>".contains(c)).next();
                message!("{}>"; name.unwrap_or_default())
            }
            (None, None) => "an element".into(),
        };
        let message = message!("the file is incomplete: it ends after {} bytes, inside {}"; text.len(), inside);
        let end = text.trim_end().len();
        let last = tag.unwrap_or_else(|| text.floor_char_boundary(end.saturating_sub(1)));
        let mut found = Diagnostic::new(Code::XmlSyntax, message)
            .at(Span::new(self.base + last, self.base + end), "the file ends here");
        for (open, what) in [(innermost, "this element is never closed"), (layer, "in this layer")] {
            if let Some(open) = open {
                found = found.at(open, what);
            }
        }
        if self.text.len() > text.len() {
            found = found.note(
                message!("{} zero bytes follow, as an interrupted download leaves them"; self.text.len() - text.len()),
            );
        }
        found.help("get a fresh copy of the file: download or copy it again")
    }

    fn tag(&self, span: Span) -> &'a str {
        self.text.get(span.start as usize - self.base..span.end as usize - self.base).unwrap_or_default()
    }

    fn line_from(&self, at: usize) -> Span {
        let length = self.text[at..].lines().next().map_or(0, str::len);
        Span::new(self.base + at, self.base + at + length)
    }

    fn end_tag(&self, at: usize) -> Span {
        let length = self.text[at..].find('>').map_or(1, |length| length + 1);
        Span::new(self.base + at, self.base + at + length)
    }

    fn is_open(&self, at: usize, name: &str) -> bool {
        self.open_elements(at).iter().any(|span| {
            let tag = self.tag(*span).strip_prefix('<');
            tag.and_then(|tag| tag.split(|c: char| c.is_whitespace() || "/>".contains(c)).next()) == Some(name)
        })
    }

    #[cold]
    fn open_elements(&self, at: usize) -> Vec<Span> {
        let mut reader = Reader::from_str(self.text);
        let config = reader.config_mut();
        config.check_end_names = false;
        config.allow_dangling_amp = true;
        let mut open = Vec::new();
        loop {
            let position = |reader: &Reader<_>| usize::try_from(reader.buffer_position()).unwrap_or(usize::MAX);
            let start = position(&reader);
            if start >= at {
                break;
            }
            match reader.read_event() {
                Ok(Event::Start(_)) => open.push(Span::new(self.base + start, self.base + position(&reader))),
                Ok(Event::End(_)) => drop(open.pop()),
                Ok(Event::Eof) | Err(_) => break,
                Ok(_) => {}
            }
        }
        open
    }
}

/// The error about the attributes of a tag: the parser's error, or two attributes without white space between them.
#[cold]
fn attribute_error(element: &Element, error: Option<&AttrError>) -> Diagnostic {
    let text: &str = element.tag.as_ref();
    let name = element.name();
    let (message, help) = match error {
        _ if text.contains(CONFLICT.0) => (CONFLICT.1.into(), CONFLICT.2),
        _ if text.contains(['\u{201c}', '\u{201d}', '\u{2018}', '\u{2019}']) => (
            message!("an attribute of <{}> is in typographic quotes"; name),
            "write plain quotes (\") around each value; word processors replace them",
        ),
        Some(AttrError::UnquotedValue(_)) => (
            message!("the value of an attribute of <{}> is not in quotes"; name),
            "write quotes around it, as in id=\"3\"",
        ),
        Some(AttrError::ExpectedQuote(..)) => (
            message!("the value of an attribute of <{}> has no closing quote"; name),
            "add the quote where the value ends",
        ),
        Some(AttrError::ExpectedEq(_)) => (
            message!("an attribute of <{}> has no value, or an attribute before it has no closing quote"; name),
            "write each attribute as name=\"value\", and a quote inside of a value as &quot;",
        ),
        Some(error) => (Text(error).into(), "correct this tag"),
        None => (
            message!("there is no space between two attributes of <{}>"; name),
            "write a space between a value and the next name",
        ),
    };
    Diagnostic::new(Code::XmlSyntax, message).at(element.tag_span, "in this tag").help(help)
}

/// Parses plain digits at the start of a text, if the number certainly fits. Returns the number and the rest.
pub(super) fn plain_number(text: &str) -> Option<(u64, &str)> {
    let (digits, rest) = text.split_at(text.bytes().position(|b| !b.is_ascii_digit()).unwrap_or(text.len()));
    (1..=18).contains(&digits.len()).then_some(())?;
    Some((digits.bytes().fold(0, |number, digit| number * 10 + u64::from(digit - b'0')), rest))
}

/// Parses an attribute of the form ` name="value"` at the start of a text. Returns its name, its value and the rest.
fn plain_attribute(text: &str) -> Option<(&str, &str, &str)> {
    let text = text.strip_prefix(' ')?;
    let (name, text) = text.split_at(text.bytes().position(|b| !matches!(b, b'a'..=b'z' | b'_' | b'-'))?);
    let text = text.strip_prefix("=\"").filter(|_| !name.is_empty())?;
    let end = memchr::memchr(b'"', text.as_bytes())?;
    Some((name, &text[..end], &text[end + 1..]))
}

/// Resolves the escapes of an attribute's value as OpenVINO's parser does. It knows the five named entities and
/// character references, and keeps other text after `&`. Line ends and tabs become spaces. A reference to NUL ends the
/// value.
pub(super) fn decode(raw: &str) -> Cow<'_, str> {
    let special = |b: &u8| matches!(b, b'&' | b'\n' | b'\r' | b'\t');
    // Without an early exit the loop compiles to faster code.
    if !raw.as_bytes().iter().fold(false, |found, b| found | special(b)) {
        return Cow::Borrowed(raw);
    }
    let mut out = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(at) = rest.bytes().position(|b| special(&b)) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let (text, length) = match rest.as_bytes() {
            [b'\r', b'\n', ..] => (' ', 2),
            [b'&', ..] => reference(&rest[1..]).map_or(('&', 1), |(text, length)| (text, 1 + length)),
            _ => (' ', 1),
        };
        if text == '\0' {
            return Cow::Owned(out);
        }
        out.push(text);
        rest = &rest[length..];
    }
    out.push_str(rest);
    Cow::Owned(out)
}

fn reference(text: &str) -> Option<(char, usize)> {
    let named = [("lt;", '<'), ("gt;", '>'), ("amp;", '&'), ("quot;", '"'), ("apos;", '\'')];
    if let Some((name, stands)) = named.into_iter().find(|(name, _)| text.starts_with(name)) {
        return Some((stands, name.len()));
    }
    let number = text.strip_prefix('#')?;
    let (digits, radix) = number.strip_prefix('x').map_or((number, 10), |hex| (hex, 16));
    let length = digits.find(|c: char| !c.is_digit(radix)).filter(|&end| end > 0 && digits[end..].starts_with(';'))?;
    // OpenVINO's parser lets a number overflow.
    let digits_read = digits[..length].chars().map(|digit| digit.to_digit(radix).unwrap_or(0));
    let code = digits_read.fold(0_u32, |code, digit| code.wrapping_mul(radix).wrapping_add(digit));
    Some((char::from_u32(code)?, text.len() - digits.len() + length + 1))
}

/// Appends `value` as OpenVINO's serializer writes an attribute: `>` and `'` are kept, control characters become
/// two-digit decimal references.
pub(super) fn encode(value: &str, out: &mut String) {
    let mut rest = value;
    while let Some(at) = rest.bytes().position(|b| matches!(b, b'&' | b'<' | b'"') || b < b' ') {
        out.push_str(&rest[..at]);
        match rest.as_bytes()[at] {
            b'&' => out.push_str("&amp;"),
            b'<' => out.push_str("&lt;"),
            b'"' => out.push_str("&quot;"),
            control => out.push_str(&format!("&#{control:02};")),
        }
        rest = &rest[at + 1..];
    }
    out.push_str(rest);
}

#[cfg(test)]
mod tests {
    use super::decode;

    /// The expected names are those that OpenVINO 2026.4.1 returns.
    #[test]
    fn references_are_resolved_as_openvino_does_it() {
        for (raw, decoded) in [
            ("a&lt;&gt;&amp;&quot;&apos;b", "a<>&\"'b"),
            ("a&#65;&#x41;&#x4a;&#X41;b", "aAAJ&#X41;b"),
            ("a&#00000000000000000065;b", "aAb"),
            ("a&#4294967361;&#x100000041;b", "aAAb"),
            ("a&#;&#x;&#-1;&#x4g;&#65", "a&#;&#x;&#-1;&#x4g;&#65"),
            ("a&;&b;&ampb&", "a&;&b;&ampb&"),
            ("a\r\n\tb\n&#10;&#13;", "a  b \n\r"),
            ("a&#0;b", "a"),
            ("a&amp;&#x0;b&#65;", "a&"),
            ("&#x100000000;b", ""),
        ] {
            assert_eq!(decode(raw), decoded, "{raw}");
        }
    }
}
