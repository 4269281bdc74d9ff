//! JSON in which every long string is stored once.
//!
//! Most of a page's data are layer names, which recur in boxes, steps and inputs. Each string is listed once, at its
//! first occurrence, as `[0, "model.layers.0.q", 15, "k"]`: the number of characters shared with the string before, and
//! the rest. Every occurrence is replaced by `~1`, its position in the list. `data.js` reverses this.

use std::borrow::Cow;
use std::hash::BuildHasher as _;
use std::io;

use foldhash::HashMap;
use serde::ser::Error as _;
use serde::{Serialize, Serializer};
use serde_json::Error;
use serde_json::ser::{CharEscape, CompactFormatter, Formatter};

/// Shorter strings are not replaced, because the reference would be as long.
const LEAST: usize = 6;

/// A string of the list, by its position. Equal strings have one position.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Text(u32);

/// No other number of a page has this type.
impl Serialize for Text {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u128(self.0.into())
    }
}

/// The list, and a writer of compact JSON that replaces long strings by references to it.
#[derive(Default)]
pub(crate) struct Strings {
    /// Positions of the strings in the list, by their hashes.
    places: HashMap<u64, u32>,
    /// The ends of the strings in `texts`.
    ends: Vec<usize>,
    /// The strings of the list, one after the other.
    texts: String,
    list: String,
    /// The references to the strings, `"~1"`, each with its length.
    references: Vec<([u8; 13], usize)>,
    /// The text written so far of the current string.
    text: String,
    is_key: bool,
}

impl Strings {
    fn at(&self, number: usize) -> &str {
        let start = number.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.texts[start..self.ends[number]]
    }

    /// Lists a string.
    pub(crate) fn text(&mut self, text: &str) -> Text {
        let hash = self.places.hasher().hash_one(text);
        if let Some(&number) = self.places.get(&hash)
            && self.at(number as usize) == text
        {
            return Text(number);
        }
        let number = self.ends.len();
        let shared = number.checked_sub(1).map_or(0, |last| shared(self.at(last), text));
        let comma = if number == 0 { "" } else { "," };
        self.list.extend([comma, itoa::Buffer::new().format(shared), ",\"", &escaped(&text[shared..]), "\""]);
        self.texts.push_str(text);
        self.ends.push(self.texts.len());
        self.places.insert(hash, number as u32);
        let mut reference = *b"\"~          \"";
        let mut buffer = itoa::Buffer::new();
        let digits = buffer.format(number as u32).as_bytes();
        reference[2..2 + digits.len()].copy_from_slice(digits);
        reference[2 + digits.len()] = b'"';
        self.references.push((reference, 3 + digits.len()));
        Text(number as u32)
    }

    /// # Errors
    /// A page that cannot be written as JSON.
    pub(crate) fn folded(mut self, page: &impl Serialize) -> serde_json::Result<String> {
        let mut json = Json(b"{\"page\":".to_vec());
        page.serialize(&mut serde_json::Serializer::with_formatter(&mut json, &mut self))?;
        json.0.extend([b",\"strings\":[", self.list.as_bytes(), b"]}"].concat());
        String::from_utf8(json.0).map_err(Error::custom)
    }
}

/// Most pieces of JSON are single bytes, which are pushed without a call.
struct Json(Vec<u8>);

impl io::Write for Json {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_all(bytes).map(|()| bytes.len())
    }

    #[inline]
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match bytes {
            [byte] => self.0.push(*byte),
            _ => self.0.extend_from_slice(bytes),
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Formatter for &mut Strings {
    fn begin_object_key<W: io::Write + ?Sized>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        self.is_key = true;
        CompactFormatter.begin_object_key(writer, first)
    }

    fn end_object_key<W: io::Write + ?Sized>(&mut self, _: &mut W) -> io::Result<()> {
        self.is_key = false;
        Ok(())
    }

    fn begin_string<W: io::Write + ?Sized>(&mut self, _: &mut W) -> io::Result<()> {
        self.text.clear();
        Ok(())
    }

    fn write_string_fragment<W: io::Write + ?Sized>(&mut self, _: &mut W, fragment: &str) -> io::Result<()> {
        self.text.push_str(fragment);
        Ok(())
    }

    fn write_char_escape<W: io::Write + ?Sized>(&mut self, _: &mut W, escape: CharEscape) -> io::Result<()> {
        self.text.push(match escape {
            CharEscape::Quote => '"',
            CharEscape::ReverseSolidus => '\\',
            CharEscape::Solidus => '/',
            CharEscape::Backspace => '\u{8}',
            CharEscape::FormFeed => '\u{c}',
            CharEscape::LineFeed => '\n',
            CharEscape::CarriageReturn => '\r',
            CharEscape::Tab => '\t',
            CharEscape::AsciiControl(byte) => byte.into(),
        });
        Ok(())
    }

    fn end_string<W: io::Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        // A string that looks like a reference is replaced too.
        if !self.is_key && (self.text.len() >= LEAST || self.text.starts_with('~')) {
            let text = std::mem::take(&mut self.text);
            let Text(number) = Strings::text(self, &text);
            self.text = text;
            return self.write_u128(writer, number.into());
        }
        writer.write_all(b"\"")?;
        writer.write_all(escaped(&self.text).as_bytes())?;
        writer.write_all(b"\"")
    }

    /// Writes a reference: see [`Text`].
    fn write_u128<W: io::Write + ?Sized>(&mut self, writer: &mut W, number: u128) -> io::Result<()> {
        let (reference, length) = &self.references[number as usize];
        writer.write_all(&reference[..*length])
    }
}

/// Only characters of one byte that are not escaped count, because the page's script counts UTF-16 units.
fn shared(a: &str, b: &str) -> usize {
    let eights = a.as_bytes().chunks_exact(8).zip(b.as_bytes().chunks_exact(8));
    let equal = eights.take_while(|(a, b)| a == b && a.iter().all(|byte| *byte < b'\x7f')).count() * 8;
    let rest = a.bytes().zip(b.bytes()).skip(equal);
    equal + rest.take_while(|&(a, b)| a == b && a < b'\x7f').count()
}

/// Escapes a JSON string, so that it cannot end a script element. Characters that change the direction of a line are
/// shown as escapes.
fn escaped(text: &str) -> Cow<'_, str> {
    // Without an early end, many bytes are tested at once.
    if text.bytes().fold(true, |plain, byte| plain & matches!(byte, b' '..=b'~') & !matches!(byte, b'"' | b'<' | b'\\'))
    {
        return text.into();
    }
    let mut json = String::new();
    for c in text.chars() {
        match c {
            '"' | '\\' => json.extend(['\\', c]),
            '<' | '\0'..='\u{1f}' => json += &format!("\\u{:04x}", u32::from(c)),
            '\u{7f}'..='\u{9f}'
            | '\u{61c}'
            | '\u{200e}'
            | '\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2066}'..='\u{2069}' => json += &format!("\\\\u{{{:x}}}", u32::from(c)),
            c => json.push(c),
        }
    }
    json.into()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// Restores the strings as the page's script does.
    fn unfolded(text: &str) -> Value {
        let value: Value = serde_json::from_str(text).unwrap();
        let list = value["strings"].as_array().unwrap();
        let mut strings = Vec::<String>::new();
        for pair in list.chunks(2) {
            let shared = pair[0].as_u64().unwrap() as usize;
            let start = strings.last().map_or("", |last| &last[..shared]);
            strings.push(format!("{start}{}", pair[1].as_str().unwrap()));
        }
        fn whole(value: &Value, strings: &[String]) -> Value {
            match value {
                Value::String(text) => match text.strip_prefix('~') {
                    Some(place) => strings[place.parse::<usize>().unwrap()].as_str().into(),
                    None => value.clone(),
                },
                Value::Array(list) => list.iter().map(|item| whole(item, strings)).collect(),
                Value::Object(map) => map.iter().map(|(key, item)| (key.clone(), whole(item, strings))).collect(),
                other => other.clone(),
            }
        }
        whole(&value["page"], &strings)
    }

    #[test]
    fn data_can_neither_end_the_script_nor_turn_lines() {
        assert_eq!(escaped("a<b \u{202e}x\u{9b}<"), "a\\u003cb \\\\u{202e}x\\\\u{9b}\\u003c");
        let text = Strings::default().folded(&json!(["name\u{7f}<<1", "name\u{7f}<<2", "<"])).unwrap();
        assert!(!text.contains(['<', '\u{7f}']), "{text}");
        assert_eq!(unfolded(&text), json!(["name\\u{7f}<<1", "name\\u{7f}<<2", "<"]));
    }

    #[test]
    fn what_is_folded_is_all_there() {
        let names: Vec<_> = (0..100).map(|at| format!("model.layers.{at}/self_attn/Add")).collect();
        let document = json!({
            "names": names, "again": [names, names], "odd": ["a name with spaces", "a name with spaces", "names twice", "names 2", "~", "~0", "~9 1", "\u{e9}\\\"t\u{e9} \u{1f600}", "\u{e9}\\\"t\u{e9} \u{1f600}", "\\\\\\\\\\\\", "\\\\\\\\\\\\\u{1}", "\\\\\\\\\\\\", ""],
            "~key of an object": [1.5, null, true, "~key of an object"],
        });
        let text = serde_json::to_string(&document).unwrap();
        let short = Strings::default().folded(&document).unwrap();
        assert_eq!(unfolded(&short), document);
        assert!(short.len() * 2 < text.len(), "{short}");
        assert_eq!(unfolded(&Strings::default().folded(&json!({})).unwrap()), json!({}));
    }
}
