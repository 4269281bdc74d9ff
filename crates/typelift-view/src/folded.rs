//! JSON in which a long string stands once.
//!
//! Most of what a page says is names: that of a layer is the name of a box, of a step and of what comes into other boxes. Strings that
//! come again, whole or before their first space, are in one sorted list, `[0, "model.layers.0.q", 15, "k"]`: how many characters each has of
//! the one before, and the rest. In their places is `~1`, the position in base 36, or `~1 f32[2]`. `page.js` undoes it.

use std::collections::HashMap;
use std::ops::Range;

/// A shorter string is as short as what would stand for it.
const LEAST: usize = 6;

/// `{"strings": […], "page": …}` of compact JSON.
pub(crate) fn folded(json: &str) -> String {
    let mut counts = HashMap::<&str, usize>::new();
    for value in values(json).map(|range| &json[range]) {
        // What looks like a position is in the list.
        let least = if value.starts_with('~') { 2 } else { usize::from(value.len() >= LEAST) };
        *counts.entry(value).or_default() += least;
    }
    let single = counts.iter().filter(|(_, count)| **count == 1).filter_map(|(value, _)| value.split_once(' '));
    let heads: Vec<_> = single.map(|(head, _)| head).filter(|head| head.len() >= LEAST).collect();
    for head in heads {
        *counts.entry(head).or_default() += 1;
    }
    let mut list: Vec<&str> = counts.into_iter().filter(|(_, count)| *count > 1).map(|(value, _)| value).collect();
    list.sort_unstable();
    let mut text = "{\"strings\":[".to_owned();
    let mut before = "";
    for value in &list {
        let shared = shared(before, value);
        text += &format!("{}{shared},\"{}\"", if before.is_empty() { "" } else { "," }, &value[shared..]);
        before = value;
    }
    text += "],\"page\":";
    let positions: HashMap<&str, String> = list.iter().enumerate().map(|(at, &value)| (value, base_36(at))).collect();
    let mut end = 0;
    for range in values(json) {
        let value = &json[range.clone()];
        let (position, rest) = match (positions.get(value), value.find(' ')) {
            (Some(position), _) => (position, ""),
            (None, Some(space)) => match positions.get(&value[..space]) {
                Some(position) => (position, &value[space..]),
                None => continue,
            },
            (None, None) => continue,
        };
        text += &json[end..range.start];
        text += &format!("~{position}{rest}");
        end = range.end;
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
