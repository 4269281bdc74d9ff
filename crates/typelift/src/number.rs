//! Numbers as OpenVINO's reader takes them from text: as many characters as make a number, the rest being ignored.

/// The integer at the start of a text, white space around it left out, and whether more follows; `None` where there is none
/// or it has more than 64 bits.
pub(crate) fn integer_prefix(text: &str) -> Option<(i64, bool)> {
    if let Some(number) = plain_integer(text) {
        return Some((number, false));
    }
    let trimmed = text.trim();
    let sign = usize::from(trimmed.starts_with('-'));
    let digits = trimmed[sign..].bytes().take_while(u8::is_ascii_digit).count();
    Some((trimmed[..sign + digits].parse().ok()?, sign + digits < trimmed.len()))
}

/// The longest number at the start of a text, white space around it left out, and whether more follows; `None` if it does
/// not start with a number, or one that is too large.
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

/// What nearly every number is: a few digits after at most one space.
fn plain_integer(text: &str) -> Option<i64> {
    let digits = text.strip_prefix(' ').unwrap_or(text).as_bytes();
    let (negative, digits) = match digits.split_first()? {
        (b'-', digits) => (true, digits),
        _ => (false, digits),
    };
    if digits.is_empty() || digits.len() > 18 {
        return None;
    }
    let number = digits
        .iter()
        .try_fold(0_i64, |number, digit| digit.is_ascii_digit().then(|| number * 10 + i64::from(digit - b'0')))?;
    Some(if negative { -number } else { number })
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
}
