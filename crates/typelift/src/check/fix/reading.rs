//! Numbers and words in invalid spelling, and their only possible meaning: `(-1)`, `1_024`, `−1`, `Ture`.
//!
//! A reading accounts for every character of the text by named slips. A sign is never skipped. A text with two readings has
//! none: `1,000` can be 1000 and 1.
//!
//! ```text
//! "[−1]"   brackets, another dash  ->  -1
//! "1,5"    decimal comma           ->  1.5
//! "0x8"    no reading
//! ```

use std::collections::BTreeMap;

use crate::base::names;

/// Maximum length of a text that is read as a number, in bytes.
const LONGEST: usize = 64;
/// Maximum number of spelling mistakes in one text.
const MOST_SLIPS: usize = 4;

/// Name of a spelling mistake in the proof of a fix.
pub(super) type Slip = &'static str;

const SPACE: Slip = "space around it";
const BRACKETED: Slip = "brackets";
const QUOTED: Slip = "quotes";
const PUNCTUATION: Slip = "punctuation after it";
const SEPARATOR: Slip = "another separator";

/// The only value that a text can mean, in OpenVINO's spelling, with the mistakes in the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reading {
    pub(super) value: String,
    pub(super) slips: Vec<Slip>,
}

/// Kind of number that an attribute requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Integer,
    Real,
}

/// A valid number has no mistakes.
pub(super) fn number(text: &str, kind: Kind) -> Option<Reading> {
    let mut found = BTreeMap::new();
    if text.len() <= LONGEST {
        unwrap(text, kind, &[], &mut found);
    }
    only(found)
}

/// The separator is kept if it contains a comma.
pub(super) fn integers(text: &str) -> Option<Reading> {
    let (bare, outer) = bare_list(text)?;
    let mut found = BTreeMap::new();
    if bare.is_empty() {
        return Some(Reading { value: String::new(), slips: outer });
    }
    for (parts, slip) in splits(bare) {
        let read: Option<Vec<Reading>> = parts.iter().map(|part| element(part)).collect();
        let Some(read) = read else { continue };
        let mut slips = outer.clone();
        slips.extend(slip);
        slips.extend(read.iter().flat_map(|it| it.slips.iter().copied()));
        let is_dense = |mark: char| bare.contains(mark) && !bare.contains(&format!("{mark} "));
        let separator = if is_dense(',') || is_dense(';') { "," } else { ", " };
        let value = read.into_iter().map(|it| it.value).collect::<Vec<_>>().join(separator);
        found.entry(value.replace(' ', "")).or_insert((value, slips));
    }
    only(found)
}

pub(super) fn word(text: &str, words: &[&str], synonyms: &[(&str, &str)]) -> Option<Reading> {
    let (bare, mut slips) = bare_word(text)?;
    let (word, slip) = one_word(bare, words, synonyms)?;
    slips.extend(slip);
    Some(Reading { value: word.to_owned(), slips })
}

/// Possible values, by a key that is equal for two spellings of one number.
type PossibleValues = BTreeMap<String, (String, Vec<Slip>)>;

fn only(found: PossibleValues) -> Option<Reading> {
    let mut all = found.into_values();
    let (value, mut slips) = all.next()?;
    slips.sort_unstable();
    slips.dedup();
    all.next().is_none().then_some(Reading { value, slips })
}

fn unwrap(text: &str, kind: Kind, slips: &[Slip], found: &mut PossibleValues) {
    if let Some((key, value)) = plain(text, kind) {
        found.entry(key).or_insert((value, slips.to_vec()));
        return;
    }
    if slips.len() >= MOST_SLIPS {
        return;
    }
    for (slip, inner) in steps(text, kind) {
        unwrap(&inner, kind, &[slips, &[slip]].concat(), found);
    }
}

/// The number in OpenVINO's spelling, with a key for comparison.
fn plain(text: &str, kind: Kind) -> Option<(String, String)> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    match kind {
        Kind::Integer => {
            let is_plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
            let value = text.parse::<i128>().ok().filter(|_| is_plain)?;
            Some((value.to_string(), value.to_string()))
        }
        Kind::Real => {
            let (mantissa, exponent) = digits.split_once(['e', 'E']).unwrap_or((digits, "0"));
            let exponent = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
            let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, "0"));
            let is_plain = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
            let value = text.parse::<f64>().ok().filter(|value| value.is_finite())?;
            [whole, fraction, exponent].into_iter().all(is_plain).then(|| (format!("{value:e}"), text.to_owned()))
        }
    }
}

fn steps(text: &str, kind: Kind) -> Vec<(Slip, String)> {
    let trimmed = text.trim();
    if trimmed != text {
        return vec![(SPACE, trimmed.to_owned())];
    }
    let mut found: Vec<_> = inside(text).into_iter().map(|(slip, inner)| (slip, inner.to_owned())).collect();
    found.extend(named(text).map(|number| ("a name before it", number.to_owned())));
    if text.contains(OTHER_DASHES) {
        found.push(("another dash for the minus sign", text.replace(OTHER_DASHES, "-")));
    }
    let is_digit = |c: char| c.is_ascii_digit();
    if let Some(rest) = text.strip_prefix('+').filter(|rest| rest.starts_with(is_digit)) {
        found.push(("a plus sign", rest.to_owned()));
    }
    let (sign, digits) = text.strip_prefix('-').map_or(("", text), |digits| ("-", digits));
    if !sign.is_empty() && digits.starts_with(char::is_whitespace) {
        found.push(("a space after the sign", format!("-{}", digits.trim_start())));
    }
    let mut others: Vec<_> = grouped(digits).into_iter().map(|digits| ("grouped digits", digits)).collect();
    others.extend(digits.strip_suffix([',', ';']).map(|digits| (PUNCTUATION, digits.to_owned())));
    let with_point = Some(digits.replace(',', ".")).filter(|_| digits.matches(',').count() == 1);
    match kind {
        Kind::Integer => {
            others.extend(without_fraction(digits).map(|digits| ("a fraction of zero", digits)));
            others.extend(with_point.and_then(|digits| Some(("a decimal comma", without_fraction(&digits)?))));
        }
        Kind::Real => {
            others.extend(digits.strip_suffix('.').map(|digits| (PUNCTUATION, digits.to_owned())));
            others.extend(with_point.map(|digits| ("a decimal comma", digits)));
        }
    }
    let others = others.into_iter().filter(|(_, digits)| digits.starts_with(is_digit));
    found.extend(others.map(|(slip, digits)| (slip, format!("{sign}{digits}"))));
    found
}

/// Dashes that other programs put in the place of a minus sign.
const OTHER_DASHES: [char; 3] = ['\u{2012}', '\u{2013}', '\u{2212}'];
const BRACKETS: &[(char, char)] = &[('(', ')'), ('[', ']'), ('{', '}')];
const QUOTES: &[(char, char)] = &[('\'', '\''), ('"', '"'), ('`', '`'), ('‘', '’'), ('“', '”')];

/// The text between brackets or quotes.
fn inside(text: &str) -> Option<(Slip, &str)> {
    let between =
        |pairs: &[(char, char)]| pairs.iter().find_map(|&(open, close)| text.strip_prefix(open)?.strip_suffix(close));
    let bracketed = between(BRACKETS).map(|inner| (BRACKETED, inner));
    bracketed.or_else(|| Some((QUOTED, between(QUOTES)?)))
}

/// The number of `dim=-1`.
fn named(text: &str) -> Option<&str> {
    let (name, number) = text.split_once(['=', ':'])?;
    (name.chars().all(|c| c.is_ascii_alphabetic() || c == '_') && !number.starts_with('=')).then_some(number)
}

/// The digits without separators between groups: `_` anywhere, others only before groups of three.
fn grouped(digits: &str) -> Vec<String> {
    let mut found = Vec::new();
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if digits.contains('_') && digits.split('_').all(is_number) {
        found.push(digits.replace('_', ""));
    }
    for mark in [',', '.', '\'', ' ', '\u{a0}', '\u{202f}'] {
        let mut groups = digits.split(mark);
        let first = groups.next().unwrap_or_default();
        let rest: Vec<_> = groups.collect();
        let are_groups = !rest.is_empty() && rest.iter().all(|group| group.len() == 3 && is_number(group));
        if are_groups && is_number(first) && first.len() <= 3 && !first.starts_with('0') {
            found.push(digits.replace(mark, ""));
        }
    }
    found
}

fn without_fraction(digits: &str) -> Option<String> {
    let (whole, fraction) = digits.split_once('.')?;
    let is_zero = fraction.bytes().all(|byte| byte == b'0');
    (is_zero && whole.bytes().all(|byte| byte.is_ascii_digit())).then(|| whole.to_owned())
}

fn bare_list(text: &str) -> Option<(&str, Vec<Slip>)> {
    let mut slips = Vec::new();
    let mut bare = text.trim();
    while let Some((slip, inner)) = inside(bare).filter(|_| slips.len() < MOST_SLIPS) {
        bare = inner.trim();
        slips.push(slip);
    }
    Some((bare, slips)).filter(|_| !bare.contains(['(', '[', '{', ')', ']', '}']))
}

fn splits(bare: &str) -> Vec<(Vec<&str>, Option<Slip>)> {
    let by = |separators: &[char]| -> Vec<&str> { bare.split(separators).map(str::trim).collect() };
    if bare.contains(',') {
        let mut parts = by(&[',']);
        let ends = parts.last().is_some_and(|part| part.is_empty());
        parts.truncate(parts.len() - usize::from(ends));
        return vec![(parts, ends.then_some(PUNCTUATION))];
    }
    let mut found = vec![(vec![bare], None)];
    // `0x10` is 16 to a programmer.
    for separators in [&[';'][..], &['x', 'X', '\u{d7}'], &['|']] {
        if bare.contains(separators) && !(bare.starts_with("0x") || bare.starts_with("0X")) {
            found.push((by(separators), Some(SEPARATOR)));
        }
    }
    if bare.contains(char::is_whitespace) {
        found.push((bare.split_whitespace().collect(), Some(SEPARATOR)));
    }
    found
}

fn element(part: &str) -> Option<Reading> {
    let is_bound = |text: &str| text.is_empty() || text.bytes().all(|byte| byte.is_ascii_digit());
    let is_open = part == "?" || part.split_once("..").is_some_and(|(low, high)| is_bound(low) && is_bound(high));
    if is_open { Some(Reading { value: part.to_owned(), slips: Vec::new() }) } else { number(part, Kind::Integer) }
}

fn bare_word(text: &str) -> Option<(&str, Vec<Slip>)> {
    let trimmed = text.trim();
    let mut slips: Vec<Slip> = (trimmed != text).then_some(SPACE).into_iter().collect();
    let quoted = inside(trimmed).filter(|(slip, _)| *slip == QUOTED);
    slips.extend(quoted.map(|(slip, _)| slip));
    let bare = quoted.map_or(trimmed, |(_, inner)| inner);
    (!bare.is_empty() && bare.len() <= LONGEST).then_some((bare, slips))
}

fn one_word<'w>(bare: &str, words: &[&'w str], synonyms: &[(&str, &'w str)]) -> Option<(&'w str, Option<Slip>)> {
    let letters_of = |text: &str| text.to_lowercase().replace(['_', '-', ' '], "");
    let text = letters_of(bare);
    let exact = words.iter().find(|word| **word == bare);
    let same: Vec<_> = words.iter().filter(|word| letters_of(word) == text).collect();
    let listed = synonyms.iter().filter(|(other, word)| *other == text && words.contains(word));
    let listed: Vec<_> = listed.map(|(_, word)| word).collect();
    // A word with punctuation inside is not accepted.
    let is_word = bare.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let is_slip = |word: &&&str| names::distance(&letters_of(word), &text) == 1;
    let near: Vec<_> = words.iter().filter(|_| is_word && text.len() > 2).filter(is_slip).collect();
    match (exact, &same[..], &listed[..], &near[..]) {
        (Some(word), ..) => Some((word, None)),
        (None, [word], ..) => Some((word, Some("upper and lower case"))),
        (None, [], [word], near) if near.iter().all(|other| other == word) => Some((word, Some("another word for it"))),
        (None, [], [], [word]) => Some((word, Some("one letter"))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn integer(text: &str) -> Option<String> {
        number(text, Kind::Integer).map(|it| it.value)
    }

    fn real(text: &str) -> Option<String> {
        number(text, Kind::Real).map(|it| it.value)
    }

    fn guises(value: i64) -> Vec<String> {
        vec![
            format!("({value})"),
            format!("[{value}]"),
            format!("{{{value}}}"),
            format!("'{value}'"),
            format!("“{value}”"),
            format!(" {value} "),
            format!("{value}.0"),
            format!("{value}."),
            format!("dim={value}"),
            format!("{value};"),
            format!("{value},"),
            value.to_string().replace('-', "−"),
            format!("('{value}')"),
        ]
    }

    proptest! {
        #[test]
        fn an_integer_is_read_in_every_guise(value in -1_000_000_i64..1_000_000) {
            for guise in guises(value) {
                // A grouped number also has another reading.
                if let Some(read) = integer(&guise) {
                    prop_assert_eq!(&read, &value.to_string(), "{}", guise);
                } else {
                    prop_assert!(false, "`{}` is not read", guise);
                }
            }
        }

        #[test]
        fn no_reading_loses_a_sign(text in "[-−–(\\[' +0-9a-zA-Z_.,]{1,8}") {
            let is_minus = |c: char| c == '-' || OTHER_DASHES.contains(&c);
            for kind in [Kind::Integer, Kind::Real] {
                if let Some(read) = number(&text, kind) {
                    let exponent = text.to_lowercase().contains('e');
                    let negative = text.chars().filter(|c| is_minus(*c)).count();
                    prop_assert!(exponent || negative == usize::from(read.value.starts_with('-')) || read.value == "0", "{} -> {}", text, read.value);
                }
            }
        }

        #[test]
        fn a_number_as_it_is_has_no_slips(value: i64) {
            let read = number(&value.to_string(), Kind::Integer).unwrap();
            prop_assert_eq!((read.value, read.slips), (value.to_string(), vec![]));
        }
    }

    #[test]
    fn numbers_are_read_as_a_whole() {
        for (text, value) in [
            ("(-1)", "-1"),
            ("'-1'", "-1"),
            ("−1", "-1"),
            ("- 1", "-1"),
            ("dim=-1", "-1"),
            ("0_640", "640"),
            ("1_024", "1024"),
            ("1,024", "1024"),
            ("1 024", "1024"),
            ("+3", "3"),
        ] {
            assert_eq!(integer(text).as_deref(), Some(value), "{text}");
        }
        for (text, value) in [("−1.5", "-1.5"), ("0,5", "0.5"), ("1.", "1"), ("(6)", "6")] {
            assert_eq!(real(text).as_deref(), Some(value), "{text}");
        }
    }

    #[test]
    fn what_is_no_number_or_two_is_not_read() {
        for text in [
            "INT8", "⁰", "I", "l", "O", "2^8", "2**8", "8bit", "8 px", "1e", "-+1", "--1", "1-", "~1", "1 or so", "",
            "-", "1,000", "1.000", "1l", "abs(-1)", "-(1)", "0x", "0,5", "1.5", "²", "½", "1/2", "50%", "one", "x",
            "0xg", "0x8", "1e3", "1O", "int(3)", "【3】", "３", "None",
        ] {
            assert_eq!(integer(text), None, "{text}");
        }
        for text in ["1,500", "1,000", "1,2,3", "nan", "inf", "e5", "1e", "--2", "2%", "6f"] {
            assert_eq!(real(text), None, "{text}");
        }
    }

    #[test]
    fn lists_are_read_with_other_separators() {
        let list = |text: &str| integers(text).map(|it| it.value);
        for (text, value) in [
            ("[1,3]", "1,3"),
            ("(1, 3)", "1, 3"),
            ("1 3", "1, 3"),
            ("1x3x224", "1, 3, 224"),
            ("1;3", "1,3"),
            ("1,3,", "1,3"),
            ("[1,-1]", "1,-1"),
            ("{?,3}", "?,3"),
            ("2x0x3", "2, 0, 3"),
            ("1×3", "1, 3"),
            ("[]", ""),
            ("−1,2", "-1,2"),
        ] {
            assert_eq!(list(text).as_deref(), Some(value), "{text}");
        }
        for text in ["1 000", "0x1", "0x10", "1.3", "1-3", "[1],[2]", "a,b", "1,,2", "(1"] {
            assert_eq!(list(text), None, "{text}");
        }
    }

    #[test]
    fn words_are_read_if_one_is_meant() {
        let words = ["floor", "ceil", "constant", "reflect", "linear", "linear_onnx", "max", "mean", "min"];
        let synonyms = [("fixed", "constant"), ("average", "mean")];
        let read = |text: &str| word(text, &words, &synonyms).map(|it| it.value);
        for (text, value) in [
            ("Floor", "floor"),
            ("CEIL", "ceil"),
            ("cel", "ceil"),
            ("refelct", "reflect"),
            ("'floor'", "floor"),
            ("Linear-ONNX", "linear_onnx"),
            ("fixed", "constant"),
            ("average", "mean"),
            ("flooor", "floor"),
        ] {
            assert_eq!(read(text).as_deref(), Some(value), "{text}");
        }
        for text in ["mix", "bilinear", "m", "", "fl.or", "flo", "maximum", "man"] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
