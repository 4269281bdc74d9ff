//! Parsing of numbers as in OpenVINO's reader: the longest number at the start of a text, with the rest ignored.

use smallvec::{Array, SmallVec};

/// Parses the integer at the start of a text, ignoring white space around it. The flag is true if text follows. `None`
/// if there is not an integer, or if it has more than 64 bits.
pub(crate) fn integer_prefix(text: &str) -> Option<(i64, bool)> {
    if let Some(number) = plain_integer(text) {
        return Some((number, false));
    }
    let trimmed = text.trim();
    let sign = usize::from(trimmed.starts_with('-'));
    let digits = trimmed[sign..].bytes().take_while(u8::is_ascii_digit).count();
    Some((trimmed[..sign + digits].parse().ok()?, sign + digits < trimmed.len()))
}

/// Parses a whole text as an integer: digits with an optional sign. White space is permitted before it and not after
/// it. OpenVINO reads ids and port maps in this way.
pub(crate) fn whole(text: &str) -> Option<i128> {
    let text = text.trim_ascii_start();
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let is_plain = !digits.is_empty() && digits.len() < 30 && digits.bytes().all(|b| b.is_ascii_digit());
    text.parse().ok().filter(|_| is_plain)
}

/// Parses the `offset` or `size` attribute of a constant.
pub(crate) fn bytes(text: &str) -> Option<u64> {
    text.parse().ok().or_else(|| u64::try_from(whole(text)?).ok())
}

/// Parses the longest number at the start of a text, ignoring white space around it. The flag is true if text follows.
/// `None` if the text does not start with a number, or with one that is too large.
pub(crate) fn float_prefix(text: &str) -> Option<(f64, bool)> {
    let trimmed = text.trim();
    let ends = (1..=trimmed.len().min(64)).rev().filter(|&end| trimmed.is_char_boundary(end));
    for start in ends.map(|end| &trimmed[..end]) {
        let spelled = start.trim_start_matches('-');
        let word = spelled.bytes().next().is_some_and(|b| b.is_ascii_alphabetic());
        if word && !["inf", "nan"].contains(&spelled) {
            continue;
        }
        if let Ok(number) = start.parse::<f64>() {
            let is_too_large = number.is_infinite() && !word;
            return (!is_too_large).then_some((number, start.len() < trimmed.len()));
        }
    }
    None
}

/// Parses the most common form of a number: a few digits after at most one space.
fn plain_integer(text: &str) -> Option<i64> {
    let (number, end) = plain_integer_at(text.as_bytes(), 0)?;
    (end == text.len()).then_some(number)
}

/// Parses the plain integer at a position. Returns it and the position after it.
fn plain_integer_at(text: &[u8], start: usize) -> Option<(i64, usize)> {
    let start = start + usize::from(text.get(start) == Some(&b' '));
    let negative = text.get(start) == Some(&b'-');
    let first = start + usize::from(negative);
    let (mut number, mut end) = (0, first);
    while let Some(digit @ b'0'..=b'9') = text.get(end) {
        if end - first == 18 {
            return None;
        }
        number = number * 10 + i64::from(digit - b'0');
        end += 1;
    }
    (end > first).then_some((if negative { -number } else { number }, end))
}

/// Parses the most common form of an integer list, plain integers separated by commas, and appends them to `list`. For
/// any other text it returns `false` and leaves `list` unchanged.
pub(crate) fn plain_integers<A: Array<Item = i64>>(text: &str, list: &mut SmallVec<A>) -> bool {
    let (before, text) = (list.len(), text.as_bytes());
    let mut at = 0;
    while at < text.len() {
        match plain_integer_at(text, at) {
            Some((number, end)) if matches!(text.get(end), None | Some(b',')) => {
                list.push(number);
                at = end + 1;
            }
            _ => {
                list.truncate(before);
                return false;
            }
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_much_as_makes_a_number_counts() {
        for (text, expected) in [
            ("7", Some((7, false))),
            (" -12", Some((-12, false))),
            ("\t3 ", Some((3, false))),
            ("-0", Some((0, false))),
            ("4x", Some((4, true))),
            ("5 6", Some((5, true))),
            ("9223372036854775807", Some((i64::MAX, false))),
            ("-9223372036854775808", Some((i64::MIN, false))),
            ("9223372036854775808", None),
            ("", None),
            (" ", None),
            ("-", None),
            ("- 1", None),
            ("+1", None),
            ("x", None),
        ] {
            assert_eq!(integer_prefix(text), expected, "{text:?}");
        }
    }

    #[test]
    fn the_longest_start_that_is_a_number_counts() {
        for (text, expected) in [
            (" 1.5", Some((1.5, false))),
            ("1e3x", Some((1000.0, true))),
            ("-inf", Some((f64::NEG_INFINITY, false))),
            ("infinity", Some((f64::INFINITY, true))),
            ("1e999", None),
            ("x1", None),
            ("", None),
        ] {
            assert_eq!(float_prefix(text), expected, "{text:?}");
        }
    }

    #[test]
    fn plain_lists_are_read_whole_or_not_at_all() {
        let read = |text| {
            let mut list = SmallVec::<[i64; 2]>::from_slice(&[9]);
            plain_integers(text, &mut list).then(|| list[1..].to_vec()).ok_or(list.len())
        };
        for (text, expected) in [("", vec![]), ("1", vec![1]), ("1, -2,3", vec![1, -2, 3]), ("4,", vec![4])] {
            assert_eq!(read(text), Ok(expected), "{text:?}");
        }
        for text in [",", "1,,2", "1, x", "1 ,2", "-", "1,+2", "9223372036854775808"] {
            assert_eq!(read(text), Err(1), "{text:?}");
        }
    }
}
