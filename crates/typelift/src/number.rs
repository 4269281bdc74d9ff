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
}
