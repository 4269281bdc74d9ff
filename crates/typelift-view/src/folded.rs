//! JSON in which a long string stands once.
//!
//! Most of what a page says is names: that of a layer is the name of a box, of a step and of what comes into other boxes. Each
//! is in a list where it first comes, `[0, "model.layers.0.q", 15, "k"]`: how many characters it has of the one before, and the rest.
//! In its places is `~1`, its position. `page.js` undoes it.

use std::io;

use rustc_hash::FxHashMap;
use serde::Serialize;
use serde::ser::Error as _;
use serde_json::Error;
use serde_json::ser::{CharEscape, CompactFormatter, Formatter};

/// A shorter string is as short as what would stand for it.
const LEAST: usize = 6;

/// Writes compact JSON with what stands for long strings, and keeps these. All of them have their quotes.
#[derive(Default)]
struct Folding {
    /// What stands for each string.
    places: FxHashMap<String, String>,
    /// The items of the list.
    list: String,
    /// The last string of it.
    last: String,
    /// What is being written.
    text: String,
    is_key: bool,
}

impl Folding {
    /// Adds the text that was written to the list; gives what stands for it.
    fn add(&mut self) -> String {
        let (number, shared) = (self.places.len(), shared(&self.last, &self.text));
        let comma = if number == 0 { "" } else { "," };
        self.list.extend([comma, &shared.to_string(), ",\"", &self.text[1 + shared..]]);
        self.last.clone_from(&self.text);
        let place = format!("\"~{number}\"");
        self.places.insert(self.text.clone(), place.clone());
        place
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
        let mut escaped = Vec::new();
        CompactFormatter.write_char_escape(&mut escaped, escape)?;
        self.text.extend(escaped.into_iter().map(char::from));
        Ok(())
    }

    fn end_string<W: io::Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        self.text.push('"');
        // What looks like a place has one.
        let is_folded = !self.is_key && (self.text.len() >= LEAST + 2 || self.text.starts_with("\"~"));
        if !is_folded {
            return writer.write_all(self.text.as_bytes());
        }
        match self.places.get(&self.text) {
            Some(place) => writer.write_all(place.as_bytes()),
            None => writer.write_all(self.add().as_bytes()),
        }
    }
}

/// `{"page": …, "strings": […]}` of a page as compact JSON.
///
/// # Errors
/// Where it cannot be written as JSON.
pub(crate) fn folded(page: &impl Serialize) -> serde_json::Result<String> {
    let (mut json, mut folding) = (b"{\"page\":".to_vec(), Folding::default());
    page.serialize(&mut serde_json::Serializer::with_formatter(&mut json, &mut folding))?;
    json.extend([b",\"strings\":[", folding.list.as_bytes(), b"]}"].concat());
    String::from_utf8(json).map_err(Error::custom)
}

/// How many characters two strings begin with alike after the quote, of those that are one to a byte and to a script.
fn shared(a: &str, b: &str) -> usize {
    let is_plain = |byte: u8| byte.is_ascii() && byte != b'\\' && byte != b'"';
    a.bytes().zip(b.bytes()).skip(1).take_while(|&(a, b)| a == b && is_plain(a)).count()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// What the script of the page makes of it.
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
