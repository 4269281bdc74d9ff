//! Numbers, words and names in invalid spelling, and their only possible meaning: `(-1)`, `1_024`, `−1`, `Ture`.
//!
//! A reading accounts for every character of the text by named slips. A sign is never skipped.
//!
//! ```text
//! "[−1]"   brackets, another dash  ->  -1
//! "1,5"    decimal comma           ->  1.5
//! "0x8"    no reading
//! ```

use typelift_promote::ElementType;

use crate::base::{foreign, names};
use crate::ops::{self, Attr, AttrKind};

/// Maximum length of a text that is read as a number, in bytes.
const LONGEST: usize = 64;

/// Name of a spelling mistake in the proof of a fix.
pub(super) type Slip = &'static str;

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

type Rule = fn(&str, Kind) -> Option<String>;

/// The slips of numbers, each with the text without it.
const RULES: &[(Slip, Rule)] = &[
    ("a name before it", |text, _| {
        let (name, number) = text.split_once(['=', ':'])?;
        name.chars().all(|c| c.is_ascii_alphabetic() || c == '_').then(|| number.to_owned())
    }),
    ("another dash for the minus sign", |text, _| Some(text.replace(['\u{2012}', '\u{2013}', '\u{2212}'], "-"))),
    ("a space after the sign", |text, _| Some(format!("-{}", text.strip_prefix('-')?.trim_start()))),
    ("a plus sign", |text, _| Some(text.strip_prefix('+')?.to_owned()).filter(|rest| !rest.starts_with('-'))),
    ("punctuation after it", |text, _| {
        Some(text.strip_suffix([',', ';', '.'])?.to_owned()).filter(|rest| rest.ends_with(|c: char| c.is_ascii_digit()))
    }),
    ("grouped digits", |text, _| text.split('_').all(is_digits).then(|| text.replace('_', ""))),
    // `1.000` and `1,500` can be thousands.
    ("a fraction of zero", |text, kind| {
        let (whole, fraction) = text.split_once('.').filter(|(_, fraction)| fraction.len() != 3)?;
        (kind == Kind::Integer && fraction.bytes().all(|byte| byte == b'0')).then(|| whole.to_owned())
    }),
    ("a decimal comma", |text, kind| {
        let (whole, fraction) = text.split_once(',').filter(|(_, fraction)| fraction.len() != 3)?;
        (kind == Kind::Real).then(|| format!("{whole}.{fraction}"))
    }),
];

/// A valid number has no mistakes.
pub(super) fn number(text: &str, kind: Kind) -> Option<Reading> {
    let (bare, mut slips) = unwrapped(text, &[BRACKETS, QUOTES]);
    let mut value = bare.to_owned();
    for (slip, rule) in RULES.iter().filter(|_| text.len() <= LONGEST && !is_number(bare, kind)) {
        if let Some(other) = rule(&value, kind).filter(|other| *other != value) {
            value = other;
            slips.push(slip);
        }
    }
    is_number(&value, kind).then(|| Reading { value: canonical(value, kind), slips })
}

fn canonical(value: String, kind: Kind) -> String {
    value.parse::<i128>().ok().filter(|_| kind == Kind::Integer).map_or(value, |number| number.to_string())
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// True for a number in OpenVINO's spelling.
fn is_number(text: &str, kind: Kind) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    match kind {
        Kind::Integer => is_digits(digits),
        Kind::Real => {
            let (mantissa, exponent) = digits.split_once(['e', 'E']).unwrap_or((digits, "0"));
            let exponent = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
            let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, "0"));
            [whole, fraction, exponent].into_iter().all(is_digits)
        }
    }
}

const BRACKETS: (Slip, &[(char, char)]) = ("brackets", &[('(', ')'), ('[', ']'), ('{', '}')]);
const QUOTES: (Slip, &[(char, char)]) = ("quotes", &[('\'', '\''), ('"', '"'), ('`', '`'), ('‘', '’'), ('“', '”')]);

/// The text without space, and without pairs of these characters around it.
fn unwrapped<'t>(text: &'t str, pairs: &[(Slip, &[(char, char)])]) -> (&'t str, Vec<Slip>) {
    let mut bare = text.trim();
    let mut slips = if bare == text { Vec::new() } else { vec!["space around it"] };
    for &(slip, pairs) in pairs {
        let inside = |&(open, close): &(char, char)| {
            bare.strip_prefix(open)?.strip_suffix(close).filter(|inner| !inner.contains([open, close]))
        };
        if let Some(inner) = pairs.iter().find_map(inside) {
            bare = inner.trim();
            slips.push(slip);
        }
    }
    (bare, slips)
}

/// The separator is kept if it contains a comma.
pub(super) fn integers(text: &str) -> Option<Reading> {
    let (bare, mut slips) = unwrapped(text, &[BRACKETS, QUOTES]);
    if bare.is_empty() || bare.contains(['(', '[', '{', ')', ']', '}']) {
        return bare.is_empty().then(|| Reading { value: String::new(), slips });
    }
    let list = bare.strip_suffix(',').unwrap_or(bare).trim_end();
    let is_separator = |c: char| [',', ';', 'x', 'X', '\u{d7}', '|'].contains(&c) || c.is_whitespace();
    let mark = list.chars().filter(|c| is_separator(*c)).min_by_key(|c| (c.is_whitespace(), *c != ','));
    let parts: Vec<&str> = match mark {
        Some(mark) if mark.is_whitespace() => list.split_whitespace().collect(),
        Some(mark) => list.split(mark).map(str::trim).collect(),
        None => vec![list],
    };
    // `0x10` is 16 to a programmer, and `1 000` one number.
    let is_padded = |part: &&str| part.len() > 1 && part.starts_with('0');
    if mark.is_some_and(|mark| mark != ',') && (bare.starts_with("0x") || parts.iter().any(is_padded)) {
        return None;
    }
    let read: Vec<Reading> = parts.iter().map(|part| element(part)).collect::<Option<_>>()?;
    slips.extend(bare.ends_with(',').then_some("punctuation after it"));
    slips.extend(mark.filter(|mark| *mark != ',').map(|_| SEPARATOR));
    slips.extend(read.iter().flat_map(|it| it.slips.iter().copied()));
    slips.sort_unstable();
    slips.dedup();
    let is_dense = [',', ';'].iter().any(|mark| bare.contains(*mark) && !bare.contains(&format!("{mark} ")));
    let values: Vec<String> = read.into_iter().map(|it| it.value).collect();
    Some(Reading { value: values.join(if is_dense { "," } else { ", " }), slips })
}

fn element(part: &str) -> Option<Reading> {
    let is_bound = |text: &str| text.is_empty() || is_digits(text);
    let is_open = part == "?" || part.split_once("..").is_some_and(|(low, high)| is_bound(low) && is_bound(high));
    if is_open { Some(Reading { value: part.to_owned(), slips: Vec::new() }) } else { number(part, Kind::Integer) }
}

/// The only one of `words` that a text can mean. Each synonym is in lower case and without punctuation.
pub(super) fn word(text: &str, words: &[&str], synonyms: &[(&str, &str)]) -> Option<Reading> {
    let (bare, mut slips) = unwrapped(text, &[QUOTES]);
    let letters = |text: &str| text.to_lowercase().replace(['_', '-', ' '], "");
    let written = letters(bare);
    let only = |is_it: &dyn Fn(&&str) -> bool| {
        let mut found = words.iter().copied().filter(is_it);
        found.next().filter(|_| found.next().is_none())
    };
    let listed = synonyms.iter().find(|(other, word)| *other == written && words.contains(word)).map(|it| it.1);
    // A word with punctuation inside is not accepted.
    let is_word = bare.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') && (3..LONGEST).contains(&written.len());
    let is_near = |word: &&str| is_word && names::distance(&letters(word), &written) == 1;
    let (value, slip) = if let Some(word) = words.iter().find(|word| **word == bare) {
        (*word, None)
    } else if let Some(word) = only(&|word| letters(word) == written) {
        (word, Some("upper and lower case"))
    } else if let Some(word) = listed.filter(|word| words.iter().all(|near| near == word || !is_near(near))) {
        (word, Some("another word for it"))
    } else {
        (only(&is_near).filter(|_| listed.is_none())?, Some("one letter"))
    };
    slips.extend(slip);
    Some(Reading { value: value.to_owned(), slips })
}

/// The only value that the text of an attribute can mean, if there is exactly one.
pub(super) fn value(row: &Attr, text: &str) -> Option<Reading> {
    match row.kind {
        AttrKind::Int | AttrKind::Unsigned | AttrKind::Bytes => number(text, Kind::Integer),
        AttrKind::Float => number(text, Kind::Real),
        AttrKind::Ints | AttrKind::UnsignedInts | AttrKind::Shape => integers(text),
        AttrKind::Bool => word(text, &["true", "false"], BOOLEANS),
        AttrKind::Enum(known) => word(text, known, &[]),
        AttrKind::Type => {
            let written = text.trim().to_lowercase();
            let kind = written.trim_end_matches(|c: char| c.is_ascii_digit());
            // `fp16` has one meaning, `int` has not.
            let is_certain = match kind {
                "float" | "fp" | "int" | "uint" | "bfloat" => kind != written,
                "half" | "double" | "bool" | "str" => true,
                _ => false,
            };
            element_type(text, ElementType::all().map(|ty| ty.name()).collect(), is_certain, |ty| Some(ty.name()))
        }
        AttrKind::Text | AttrKind::Texts | AttrKind::Floats => None,
    }
}

/// The only precision of a port that a text can mean. The tensor of the port must agree, so a word may have several
/// meanings elsewhere.
pub(super) fn port_type(text: &str) -> Option<Reading> {
    element_type(text, ElementType::all().filter_map(ElementType::port_name).collect(), true, ElementType::port_name)
}

fn element_type(
    text: &str,
    names: Vec<&'static str>,
    has_synonym: bool,
    name: impl Fn(ElementType) -> Option<&'static str>,
) -> Option<Reading> {
    let written = text.trim().to_lowercase();
    let meant = foreign::named_element_type(&written).filter(|_| has_synonym).and_then(name);
    word(text, &names, meant.map(|name| (&*written, name)).as_slice())
}

/// The only operation that a name can mean, if there is exactly one.
pub(super) fn operation(text: &str) -> Option<Reading> {
    let mut names: Vec<_> = ops::all().map(|row| ops::file_spelling(row.name)).filter(|it| !it.is_empty()).collect();
    names.sort_unstable();
    names.dedup();
    let written = text.to_lowercase().replace(['_', '-', ' '], "");
    // `Constant` is the name of the operation, but not the one that files use.
    let class = || ops::all().map(|row| row.name).find(|name| name.eq_ignore_ascii_case(&written));
    let meant = foreign::same_operation(&written).or_else(class).map(|name| (&*written, ops::file_spelling(name)));
    word(text, &names, meant.as_slice()).filter(|it| !it.slips.is_empty() && has_number_of(&it.value, text))
}

/// True if a name ends with the number of another one. `ReLU6` is no `ReLU`.
pub(super) fn has_number_of(name: &str, other: &str) -> bool {
    other.chars().next_back().filter(char::is_ascii_digit).is_none_or(|number| name.ends_with(number))
}

const BOOLEANS: &[(&str, &str)] =
    &[("yes", "true"), ("on", "true"), ("no", "false"), ("off", "false"), ("t", "true"), ("f", "false")];

/// Attributes: names of other frameworks with one meaning, in lower case and without `_`.
const ATTRIBUTES: &[(&str, &str)] = &[
    ("kernelsize", "kernel"),
    ("kernelshape", "kernel"),
    ("ksize", "kernel"),
    ("poolsize", "kernel"),
    ("stride", "strides"),
    ("dilation", "dilations"),
    ("dim", "axis"),
];

/// The only one of the attributes `free` that a name can mean.
pub(super) fn attribute<'n>(written: &str, free: &[&'n str]) -> Option<&'n str> {
    let plain = |text: &str| text.to_lowercase().replace(['_', '-'], "");
    let listed = ATTRIBUTES.iter().find(|(other, _)| *other == plain(written)).map(|(_, meant)| meant);
    let mut near = free.iter().filter(|name| names::distance(&plain(written), &plain(name)) <= 1);
    let near = near.next().filter(|_| near.next().is_none());
    free.iter().find(|name| listed == Some(*name)).or(near).copied()
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

    proptest! {
        #[test]
        fn no_reading_loses_a_sign(text in "[-−–(\\[' +0-9a-zA-Z_.,]{1,8}") {
            let is_minus = |c: char| ['-', '\u{2012}', '\u{2013}', '\u{2212}'].contains(&c);
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
            ("+3", "3"),
            ("{7}", "7"),
            (" “8” ", "8"),
            ("3.0", "3"),
            ("3.", "3"),
            ("3;", "3"),
            ("('3')", "3"),
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
            "-", "1,000", "1.000", "1,024", "1 024", "1l", "abs(-1)", "-(1)", "0x", "0,5", "1.5", "²", "½", "1/2",
            "50%", "one", "x", "0xg", "0x8", "1e3", "1O", "int(3)", "【3】", "３", "None",
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
    fn a_number_at_the_end_of_an_operation_is_no_slip() {
        assert_eq!(operation("Rel").map(|it| it.value).as_deref(), Some("ReLU"));
        assert!(operation("ReLU6").is_none() && operation("TopK2").is_none());
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
    fn a_name_between_two_attributes_is_not_read() {
        assert_eq!(attribute("axes", &["axis", "keep_dims"]), Some("axis"));
        assert_eq!(attribute("kernel_size", &["kernel", "strides"]), Some("kernel"));
        assert_eq!(attribute("transpose_c", &["transpose_a", "transpose_b"]), None);
        assert_eq!(attribute("transpose_c", &["transpose_a"]), Some("transpose_a"));
    }
}
