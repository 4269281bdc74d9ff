//! Numbers and words in invalid spelling, and their only possible meaning: `(-1)`, `0x8`, `1_024`, `−1`, `Ture`.
//!
//! A reading accounts for every character of the text by named slips. A sign is never skipped. A text with two readings has
//! none: `1,000` can be 1000 and 1.
//!
//! ```text
//! "[-１]"  brackets, digits of another script  ->  -1
//! "1,5"    decimal comma                       ->  1.5
//! "2^8"    no reading
//! ```

use std::collections::BTreeMap;

/// Maximum length of a text that is read as a number, in bytes.
const LONGEST: usize = 64;
/// Maximum number of spelling mistakes in one text.
const MOST_SLIPS: usize = 4;

/// Kind of spelling mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Slip {
    Space,
    Brackets,
    Quotes,
    Call,
    NameBefore,
    PlusSign,
    SpaceAfterSign,
    OtherDash,
    OtherDigits,
    Hexadecimal,
    Grouping,
    DecimalComma,
    Exponent,
    Fraction,
    Punctuation,
    Suffix,
    LookAlike,
    Separator,
    Case,
    OneLetter,
    Synonym,
}

impl Slip {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Space => "space around it",
            Self::Brackets => "brackets",
            Self::Quotes => "quotes",
            Self::Call => "a call around it",
            Self::NameBefore => "a name before it",
            Self::PlusSign => "a plus sign",
            Self::SpaceAfterSign => "a space after the sign",
            Self::OtherDash => "another dash for the minus sign",
            Self::OtherDigits => "digits of another script",
            Self::Hexadecimal => "hexadecimal",
            Self::Grouping => "grouped digits",
            Self::DecimalComma => "a decimal comma",
            Self::Exponent => "an exponent",
            Self::Fraction => "a fraction of zero",
            Self::Punctuation => "punctuation after it",
            Self::Suffix => "the suffix of a type",
            Self::LookAlike => "a letter that looks like a digit",
            Self::Separator => "another separator",
            Self::Case => "upper and lower case",
            Self::OneLetter => "one letter",
            Self::Synonym => "another word for it",
        }
    }
}

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

pub(super) fn letters(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows = vec![(0..=b.len()).collect::<Vec<_>>()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let same = usize::from(a[i - 1] != b[j - 1]);
            let mut best = (rows[i - 1][j] + 1).min(row[j - 1] + 1).min(rows[i - 1][j - 1] + same);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

/// Possible values, by a key that is equal for two spellings of one number.
type Found = BTreeMap<String, (String, Vec<Slip>)>;

fn only(found: Found) -> Option<Reading> {
    let mut all = found.into_values();
    let (value, mut slips) = all.next()?;
    slips.sort_unstable();
    slips.dedup();
    all.next().is_none().then_some(Reading { value, slips })
}

fn unwrap(text: &str, kind: Kind, slips: &[Slip], found: &mut Found) {
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
    let mut found: Vec<(Slip, String)> = Vec::new();
    let trimmed = text.trim();
    if trimmed != text {
        return vec![(Slip::Space, trimmed.to_owned())];
    }
    found.extend(inside(text, BRACKETS).map(|inner| (Slip::Brackets, inner.to_owned())));
    found.extend(inside(text, QUOTES).map(|inner| (Slip::Quotes, inner.to_owned())));
    found.extend(called(text).map(|inner| (Slip::Call, inner.to_owned())));
    found.extend(named(text).map(|inner| (Slip::NameBefore, inner.to_owned())));
    found.extend(replaced(text, other_dash).map(|text| (Slip::OtherDash, text)));
    found.extend(replaced(text, other_digit).map(|text| (Slip::OtherDigits, text)));
    let (sign, digits) = text.strip_prefix('-').map_or(("", text), |digits| ("-", digits));
    let starts = |text: &str| text.starts_with(|c: char| c.is_ascii_digit());
    if let Some(rest) = text.strip_prefix('+').filter(|rest| starts(rest)) {
        found.push((Slip::PlusSign, rest.to_owned()));
    }
    if sign == "-" && digits.starts_with(char::is_whitespace) {
        found.push((Slip::SpaceAfterSign, format!("-{}", digits.trim_start())));
    }
    let mut signed = |slip, digits: Option<String>| {
        found.extend(digits.filter(|digits| starts(digits)).map(|digits| (slip, format!("{sign}{digits}"))));
    };
    signed(Slip::Hexadecimal, hexadecimal(digits));
    for text in grouped(digits) {
        signed(Slip::Grouping, Some(text));
    }
    signed(Slip::LookAlike, look_alike(digits));
    signed(Slip::Punctuation, digits.strip_suffix([',', ';']).map(str::to_owned));
    match kind {
        Kind::Integer => {
            signed(Slip::Fraction, without_fraction(digits));
            signed(Slip::DecimalComma, digits.split_once(',').and_then(|(a, b)| without_fraction(&format!("{a}.{b}"))));
            signed(Slip::Exponent, exponent(digits));
            signed(Slip::Suffix, digits.strip_suffix(['L', 'l', 'u', 'U']).map(str::to_owned));
            let is_real = digits.contains('.');
            signed(Slip::Suffix, digits.strip_suffix(['f', 'F']).filter(|_| is_real).map(str::to_owned));
        }
        Kind::Real => {
            signed(Slip::Punctuation, digits.strip_suffix('.').map(str::to_owned));
            signed(Slip::DecimalComma, (digits.matches(',').count() == 1).then(|| digits.replace(',', ".")));
            signed(Slip::Suffix, digits.strip_suffix(['f', 'F']).map(str::to_owned));
            if digits.starts_with('.') {
                found.push((Slip::Fraction, format!("{sign}0{digits}")));
            }
        }
    }
    found
}

const BRACKETS: &[(char, char)] = &[('(', ')'), ('[', ']'), ('{', '}'), ('«', '»'), ('【', '】')];
const QUOTES: &[(char, char)] = &[('\'', '\''), ('"', '"'), ('`', '`'), ('‘', '’'), ('“', '”')];
/// Functions that return their argument, such as `int(3)`.
const CALLS: &[&str] = &["int", "int32", "int64", "long", "float", "float32", "double", "str", "tensor", "array"];

fn inside<'t>(text: &'t str, pairs: &[(char, char)]) -> Option<&'t str> {
    pairs.iter().find_map(|&(open, close)| text.strip_prefix(open)?.strip_suffix(close))
}

fn called(text: &str) -> Option<&str> {
    let (name, inner) = text.strip_suffix(')')?.split_once('(')?;
    CALLS.contains(&name.rsplit('.').next().unwrap_or_default()).then_some(inner)
}

fn named(text: &str) -> Option<&str> {
    if let Some(rest) = text.strip_prefix('#') {
        return Some(rest);
    }
    let (name, rest) = text.split_once(['=', ':'])?;
    let is_name = name.chars().all(|c| c.is_ascii_alphabetic() || c == '_' || c == ' ');
    (is_name && !rest.starts_with('=')).then_some(rest)
}

fn replaced(text: &str, other: fn(char) -> Option<char>) -> Option<String> {
    let made: String = text.chars().map(|c| other(c).unwrap_or(c)).collect();
    (made != text).then_some(made)
}

fn other_dash(c: char) -> Option<char> {
    let dashes = ['\u{2010}', '\u{2011}', '\u{2012}', '\u{2013}', '\u{2014}', '\u{2212}', '\u{fe63}', '\u{ff0d}'];
    dashes.contains(&c).then_some('-')
}

/// Superscripts are excluded.
fn other_digit(c: char) -> Option<char> {
    let zeros = ['\u{660}', '\u{6f0}', '\u{966}', '\u{9e6}', '\u{ff10}'];
    let digit = zeros.iter().find_map(|&zero| (c as u32).checked_sub(zero as u32).filter(|digit| *digit < 10));
    digit.and_then(|digit| char::from_digit(digit, 10)).or(match c {
        '\u{ff0e}' => Some('.'),
        '\u{ff0c}' => Some(','),
        _ => None,
    })
}

fn hexadecimal(digits: &str) -> Option<String> {
    let bare = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X"))?;
    let is_plain = bare.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_plain.then(|| i64::from_str_radix(bare, 16).ok()).flatten().map(|value| value.to_string())
}

/// The digits without separators between groups: `_` anywhere, others only before groups of three.
fn grouped(digits: &str) -> Vec<String> {
    let mut found = Vec::new();
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if digits.contains('_') && digits.split('_').all(is_number) {
        found.push(digits.replace('_', ""));
    }
    for mark in [',', '.', '\'', '’', ' ', '\u{a0}', '\u{202f}'] {
        let mut groups = digits.split(mark);
        let first = groups.next().unwrap_or_default();
        let rest: Vec<_> = groups.collect();
        let are_groups = !rest.is_empty() && rest.iter().all(|group| group.len() == 3 && is_number(group));
        if are_groups && is_number(first) && first.len() <= 3 && !first.starts_with('0') {
            found.push([&[first], &rest[..]].concat().concat());
        }
    }
    found
}

/// Replaces letters that look like digits, if the text also has a digit.
fn look_alike(digits: &str) -> Option<String> {
    let made: String = digits
        .chars()
        .map(|c| match c {
            'O' | 'o' => '0',
            'l' | 'I' => '1',
            c => c,
        })
        .collect();
    (made != digits && digits.bytes().any(|byte| byte.is_ascii_digit())).then_some(made)
}

fn without_fraction(digits: &str) -> Option<String> {
    let (whole, fraction) = digits.split_once('.')?;
    let is_zero = fraction.bytes().all(|byte| byte == b'0');
    (is_zero && whole.bytes().all(|byte| byte.is_ascii_digit())).then(|| whole.to_owned())
}

fn exponent(digits: &str) -> Option<String> {
    let (mantissa, power) = digits.split_once(['e', 'E'])?;
    let is_plain = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let power = power.strip_prefix('+').unwrap_or(power);
    let power: usize = power.parse().ok().filter(|it| *it <= 18 && is_plain(power))?;
    is_plain(mantissa).then(|| format!("{mantissa}{}", "0".repeat(power)))
}

fn bare_list(text: &str) -> Option<(&str, Vec<Slip>)> {
    let mut slips = Vec::new();
    let mut bare = text.trim();
    for _ in 0..MOST_SLIPS {
        let (inner, slip) = if let Some(inner) = inside(bare, BRACKETS) {
            (inner, Slip::Brackets)
        } else if let Some(inner) = inside(bare, QUOTES) {
            (inner, Slip::Quotes)
        } else {
            break;
        };
        bare = inner.trim();
        slips.push(slip);
    }
    Some((bare, slips)).filter(|_| !bare.contains(['(', '[', '{', ')', ']', '}']))
}

fn splits(bare: &str) -> Vec<(Vec<&str>, Option<Slip>)> {
    let by = |separator: &dyn Fn(char) -> bool| -> Vec<&str> { bare.split(separator).map(str::trim).collect() };
    if bare.contains(',') {
        let mut parts = by(&|c| c == ',');
        let ends = parts.last().is_some_and(|part| part.is_empty());
        parts.truncate(parts.len() - usize::from(ends));
        return vec![(parts, ends.then_some(Slip::Punctuation))];
    }
    let mut found = vec![(vec![bare], None)];
    for separators in [&[';'][..], &['x', 'X', '\u{d7}'], &['|']] {
        if bare.contains(separators) {
            found.push((by(&|c| separators.contains(&c)), Some(Slip::Separator)));
        }
    }
    if bare.contains(char::is_whitespace) {
        found.push((bare.split_whitespace().collect(), Some(Slip::Separator)));
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
    let mut slips: Vec<Slip> = (trimmed != text).then_some(Slip::Space).into_iter().collect();
    let bare = inside(trimmed, QUOTES).inspect(|_| slips.push(Slip::Quotes)).unwrap_or(trimmed);
    (!bare.is_empty() && bare.len() <= LONGEST).then_some((bare, slips))
}

fn one_word<'w>(bare: &str, words: &[&'w str], synonyms: &[(&str, &'w str)]) -> Option<(&'w str, Option<Slip>)> {
    let letters_of = |text: &str| -> String {
        text.chars().filter(|c| !['_', '-', ' '].contains(c)).flat_map(char::to_lowercase).collect()
    };
    let text = letters_of(bare);
    let exact = words.iter().find(|word| **word == bare);
    let same: Vec<_> = words.iter().filter(|word| letters_of(word) == text).collect();
    let listed = synonyms.iter().filter(|(other, word)| *other == text && words.contains(word));
    let listed: Vec<_> = listed.map(|(_, word)| word).collect();
    // A word with punctuation inside is not accepted.
    let is_word = bare.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let is_slip = |word: &&&str| letters(&letters_of(word), &text) == 1;
    let near: Vec<_> = words.iter().filter(|_| is_word && text.len() > 2).filter(is_slip).collect();
    match (exact, &same[..], &listed[..], &near[..]) {
        (Some(word), ..) => Some((word, None)),
        (None, [word], ..) => Some((word, Some(Slip::Case))),
        (None, [], [word], near) if near.iter().all(|other| other == word) => Some((word, Some(Slip::Synonym))),
        (None, [], [], [word]) => Some((word, Some(Slip::OneLetter))),
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

    /// Returns spellings of an integer that people and other programs use.
    fn guises(value: i64) -> Vec<String> {
        let sign = if value < 0 { "-" } else { "" };
        let digits = value.unsigned_abs().to_string();
        let full_width: String =
            digits.chars().filter_map(|c| char::from_u32(c as u32 - '0' as u32 + 0xff10)).collect();
        vec![
            format!("({value})"),
            format!("[{value}]"),
            format!("{{{value}}}"),
            format!("'{value}'"),
            format!("“{value}”"),
            format!(" {value} "),
            format!("{value}.0"),
            format!("{value}."),
            format!("{value};"),
            format!("{value},"),
            format!("{value}L"),
            format!("int({value})"),
            format!("np.int64({value})"),
            format!("={value}"),
            format!("dim={value}"),
            format!("#{value}"),
            format!("{value}e0"),
            format!("{sign}0x{:x}", value.unsigned_abs()),
            format!("{sign}{full_width}"),
            value.to_string().replace('-', "−"),
            value.to_string().replace('-', "- "),
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
            let is_minus = |c: char| c == '-' || other_dash(c).is_some();
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
            ("0x8", "8"),
            ("0_640", "640"),
            ("1_024", "1024"),
            ("1,024", "1024"),
            ("1 024", "1024"),
            ("1O", "10"),
            ("+3", "3"),
            ("1e3", "1000"),
        ] {
            assert_eq!(integer(text).as_deref(), Some(value), "{text}");
        }
        for (text, value) in [("−1.5", "-1.5"), ("0,5", "0.5"), ("6f", "6"), ("1.", "1"), (".5", "0.5"), ("(6)", "6")]
        {
            assert_eq!(real(text).as_deref(), Some(value), "{text}");
        }
    }

    #[test]
    fn what_is_no_number_or_two_is_not_read() {
        for text in [
            "INT8", "⁰", "I", "l", "O", "2^8", "2**8", "8bit", "8 px", "1e", "-+1", "--1", "1-", "~1", "1 or so", "",
            "-", "1,000", "1.000", "1l", "abs(-1)", "-(1)", "0x", "0,5", "1.5", "²", "½", "1/2", "50%", "one", "x",
            "0xg", "None",
        ] {
            assert_eq!(integer(text), None, "{text}");
        }
        for text in ["1,500", "1,000", "1,2,3", "nan", "inf", "e5", "1e", "--2", "2%"] {
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
            ("0x1f", "31"),
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

    #[test]
    fn one_letter_is_changed_added_removed_or_two_exchanged() {
        for (a, b, distance) in [
            ("ab", "ba", 1),
            ("true", "ture", 1),
            ("floor", "flor", 1),
            ("f32", "f23", 1),
            ("abc", "cba", 2),
            ("", "x", 1),
            ("same", "same", 0),
        ] {
            assert_eq!(letters(a, b), distance, "{a} {b}");
        }
    }
}
