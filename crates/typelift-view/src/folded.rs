//! JSON in which every long string is stored once.
//!
//! Most of a page's data are layer names, which recur in boxes, steps and inputs. Each string is listed once, at its
//! first occurrence, as `[0, "model.layers.0.q", 15, "k"]`: the number of characters shared with the string before, and
//! the rest. Every occurrence is replaced by `~1`, its position in the list. `page.js` reverses this.

use std::borrow::Cow;
use std::hash::BuildHasher as _;
use std::io;

use foldhash::HashMap;
use serde::Serialize;
use serde::ser::Error as _;
use serde_json::Error;
use serde_json::ser::{CharEscape, CompactFormatter, Formatter};

/// Shorter strings are not replaced, because the reference would be as long.
const LEAST: usize = 6;

/// Writer of compact JSON that replaces long strings by references and collects them. All strings include their quotes.
#[derive(Default)]
struct Folding {
    /// Positions of the strings in the list, by their hashes.
    places: HashMap<u64, u32>,
    /// The ends of the strings in `texts`.
    ends: Vec<usize>,
    /// The strings of the list, one after the other.
    texts: String,
    list: String,
    /// The text written so far of the current string.
    text: String,
    is_key: bool,
}

impl Folding {
    fn at(&self, number: usize) -> &str {
        let start = number.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.texts[start..self.ends[number]]
    }

    fn place(&mut self) -> usize {
        let hash = self.places.hasher().hash_one(&self.text);
        let known = self.places.get(&hash).map(|&number| number as usize);
        if let Some(number) = known.filter(|&number| self.at(number) == self.text) {
            return number;
        }
        let number = self.ends.len();
        let shared = number.checked_sub(1).map_or(0, |last| shared(self.at(last), &self.text));
        let comma = if number == 0 { "" } else { "," };
        self.list.extend([comma, itoa::Buffer::new().format(shared), ",\"", &escaped(&self.text[1 + shared..])]);
        self.texts.push_str(&self.text);
        self.ends.push(self.texts.len());
        self.places.insert(hash, number as u32);
        number
    }
}

impl Formatter for &mut Folding {
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
        self.text.push('"');
        Ok(())
    }

    fn write_string_fragment<W: io::Write + ?Sized>(&mut self, _: &mut W, fragment: &str) -> io::Result<()> {
        self.text.push_str(fragment);
        Ok(())
    }

    fn write_char_escape<W: io::Write + ?Sized>(&mut self, _: &mut W, escape: CharEscape) -> io::Result<()> {
        let mut escaped = [0; "\\u0000".len()];
        let mut rest = &mut escaped[..];
        CompactFormatter.write_char_escape(&mut rest, escape)?;
        let length = "\\u0000".len() - rest.len();
        self.text.extend(escaped[..length].iter().copied().map(char::from));
        Ok(())
    }

    fn end_string<W: io::Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        self.text.push('"');
        // A string that looks like a reference is replaced too.
        let is_folded = !self.is_key && (self.text.len() >= LEAST + 2 || self.text.starts_with("\"~"));
        if !is_folded {
            return writer.write_all(escaped(&self.text).as_bytes());
        }
        writer.write_all(b"\"~")?;
        writer.write_all(itoa::Buffer::new().format(self.place()).as_bytes())?;
        writer.write_all(b"\"")
    }
}

/// # Errors
/// A page that cannot be written as JSON.
pub(crate) fn folded(page: &impl Serialize) -> serde_json::Result<String> {
    let (mut json, mut folding) = (b"{\"page\":".to_vec(), Folding::default());
    page.serialize(&mut serde_json::Serializer::with_formatter(&mut json, &mut folding))?;
    json.extend([b",\"strings\":[", folding.list.as_bytes(), b"]}"].concat());
    String::from_utf8(json).map_err(Error::custom)
}

/// Only characters of one byte that are not escaped count, because the page's script counts UTF-16 units.
fn shared(a: &str, b: &str) -> usize {
    let alike = a.bytes().zip(b.bytes()).skip(1).take_while(|(a, b)| a == b);
    alike.take_while(|(byte, _)| byte.is_ascii() && !b"\\\"\x7f".contains(byte)).count()
}

/// Escapes a JSON string, so that it cannot end a script element. Characters that change the direction of a line are
/// shown as escapes.
fn escaped(json: &str) -> Cow<'_, str> {
    if json.bytes().all(|byte| byte < b'\x7f' && byte != b'<') {
        return json.into();
    }
    let mut text = String::new();
    for c in json.chars() {
        match c {
            '<' => text += "\\u003c",
            '\u{7f}'..='\u{9f}'
            | '\u{61c}'
            | '\u{200e}'
            | '\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2066}'..='\u{2069}' => text += &format!("\\\\u{{{:x}}}", u32::from(c)),
            c => text.push(c),
        }
    }
    text.into()
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
        let text = folded(&json!(["name\u{7f}<<1", "name\u{7f}<<2", "<"])).unwrap();
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
        let short = folded(&document).unwrap();
        assert_eq!(unfolded(&short), document);
        assert!(short.len() * 2 < text.len(), "{short}");
        assert_eq!(unfolded(&folded(&json!({})).unwrap()), json!({}));
    }
}
