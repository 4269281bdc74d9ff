//! JSON in which a long string stands once.
//!
//! Most of what a page says is names: that of a layer is the name of a box, of a step and of what comes into other boxes. Strings that
//! come again, whole or before their first space, are in one sorted list, `[0, "model.layers.0.q", 15, "k"]`: how many characters each has of
//! the one before, and the rest. In their places is `~1`, the position in base 36, or `~1 f32[2]`. `page.js` undoes it.

use std::ops::Range;

use rustc_hash::FxHashMap;

/// A shorter string is as short as what would stand for it.
const LEAST: usize = 6;

/// Strings, each once, with how often it counts.
#[derive(Default)]
struct Strings<'a> {
    numbers: FxHashMap<&'a str, usize>,
    counts: Vec<(&'a str, usize)>,
}

impl<'a> Strings<'a> {
    /// Counts a string; gives its number.
    fn add(&mut self, text: &'a str, times: usize) -> usize {
        let number = *self.numbers.entry(text).or_insert(self.counts.len());
        if number == self.counts.len() {
            self.counts.push((text, 0));
        }
        self.counts[number].1 += times;
        number
    }
}

/// `{"strings": […], "page": …}` of compact JSON.
pub(crate) fn folded(json: &str) -> String {
    let mut strings = Strings::default();
    let mut found = Vec::new();
    for range in values(json) {
        let value = &json[range.clone()];
        // What looks like a position is in the list.
        let times = if value.starts_with('~') { 2 } else { usize::from(value.len() >= LEAST) };
        if times > 0 {
            found.push((range, strings.add(value, times)));
        }
    }
    // What a string that stands once begins with.
    let mut heads = vec![None; strings.counts.len()];
    let single = strings.counts.iter().enumerate().filter(|(_, (_, count))| *count == 1);
    let single = single.filter_map(|(number, (text, _))| Some((number, text.split_once(' ')?.0)));
    let single: Vec<_> = single.filter(|(_, head)| head.len() >= LEAST).collect();
    for (number, head) in single {
        heads[number] = Some(strings.add(head, 1));
    }
    let mut list: Vec<usize> = (0..strings.counts.len()).filter(|&number| strings.counts[number].1 > 1).collect();
    list.sort_unstable_by_key(|&number| strings.counts[number].0);
    let mut positions = vec![None; strings.counts.len()];
    let mut text = "{\"strings\":[".to_owned();
    let mut before = "";
    for (at, &number) in list.iter().enumerate() {
        let value = strings.counts[number].0;
        let shared = shared(before, value);
        text += &format!("{}{shared},\"{}\"", if at == 0 { "" } else { "," }, &value[shared..]);
        positions[number] = Some(base_36(at));
        before = value;
    }
    text += "],\"page\":";
    let mut end = 0;
    for (range, number) in found {
        let (position, length) = match (&positions[number], heads[number]) {
            (Some(position), _) => (position, range.len()),
            (None, Some(head)) => match &positions[head] {
                Some(position) => (position, strings.counts[head].0.len()),
                None => continue,
            },
            (None, None) => continue,
        };
        text += &json[end..range.start];
        text.push('~');
        text += position;
        end = range.start + length;
    }
    text + &json[end..] + "}"
}

/// Where the strings are that are no names of members, as they are written.
fn values(json: &str) -> impl Iterator<Item = Range<usize>> {
    let bytes = json.as_bytes();
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            let start = at + bytes[at..].iter().position(|&byte| byte == b'"')? + 1;
            let mut end = start;
            while *bytes.get(end)? != b'"' {
                end += if bytes[end] == b'\\' { 2 } else { 1 };
            }
            at = end + 1;
            if bytes.get(at) != Some(&b':') {
                return Some(start..end);
            }
        }
    })
}

/// How many characters two strings begin with alike, of those that are one to a byte and to a script.
fn shared(a: &str, b: &str) -> usize {
    let is_plain = |byte: u8| byte.is_ascii() && byte != b'\\';
    a.bytes().zip(b.bytes()).take_while(|&(a, b)| a == b && is_plain(a)).count()
}

fn base_36(mut number: usize) -> String {
    let mut digits = Vec::new();
    loop {
        digits.push(char::from_digit((number % 36) as u32, 36).unwrap_or_default());
        number /= 36;
        if number == 0 {
            return digits.into_iter().rev().collect();
        }
    }
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
                    Some(place) => {
                        let (at, rest) = place.split_at(place.find(' ').unwrap_or(place.len()));
                        Value::String(format!("{}{rest}", strings[usize::from_str_radix(at, 36).unwrap()]))
                    }
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
            "names": names, "again": names, "typed": names.iter().map(|name| format!("{name} f32[2]")).collect::<Vec<_>>(),
            "odd": ["a name with spaces f32[2]", "a name with spaces f32[2]", "names twice", "names 2", "~", "~0", "~zz 1", "\u{e9}\\\"t\u{e9} \u{1f600}", "\u{e9}\\\"t\u{e9} \u{1f600}", "\\\\\\\\\\\\", "\\\\\\\\\\\\\u{1}", "\\\\\\\\\\\\", ""],
            "~key of an object": [1.5, null, true, "~key of an object"],
        });
        let text = serde_json::to_string(&document).unwrap();
        let short = folded(&text);
        assert_eq!(unfolded(&short), document);
        assert!(short.len() * 2 < text.len(), "{short}");
        assert_eq!(unfolded(&folded("{}")), json!({}));
    }
}
