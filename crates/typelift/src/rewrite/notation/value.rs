//! Values of constants in the notation.

use std::fmt::Write as _;
use std::ops::Range;

use typelift_promote::{ElementType, Kind};

use super::{Cursor, NotationError};
use crate::ops::values::array::{Array, Data, round, wrap};

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Number {
    Int(i128),
    Float(f64),
    Bool(bool),
}

impl Number {
    pub(crate) fn to_float(self) -> f64 {
        match self {
            Self::Int(value) => value as f64,
            Self::Float(value) => value,
            Self::Bool(value) => f64::from(u8::from(value)),
        }
    }

    /// `None` for a fraction, or if it is out of range.
    pub(crate) fn to_int(self, ty: ElementType) -> Option<i128> {
        let value = match self {
            Self::Int(value) => value,
            Self::Bool(value) => value.into(),
            Self::Float(value) if value.fract() == 0.0 && value.abs() < 1e30 => value as i128,
            Self::Float(_) => return None,
        };
        let fits = if ty == ElementType::Boolean { value == 0 || value == 1 } else { wrap(ty, value) == value };
        fits.then_some(value)
    }
}

/// Constant in the notation: a number, or nested lists of numbers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Literal {
    pub(crate) numbers: Vec<Number>,
    /// The lengths of the lists, outermost first; empty for a number.
    pub(crate) dims: Vec<usize>,
    pub(crate) span: Range<usize>,
}

/// Limit on the nesting of lists.
const DEEPEST: usize = 16;

impl Literal {
    pub(crate) fn read(cursor: &mut Cursor) -> Result<Option<Self>, NotationError> {
        let start = cursor.start();
        if cursor.peek() != Some('[') {
            let Some(number) = read_number(cursor) else { return Ok(None) };
            return Ok(Some(Self { numbers: vec![number], dims: Vec::new(), span: start..cursor.at }));
        }
        let (mut numbers, mut dims) = (Vec::new(), Vec::<Option<usize>>::new());
        // Number of items in each open list, the innermost last; and the depth at which numbers were found.
        let (mut open, mut deepest) = (Vec::<usize>::new(), None);
        loop {
            let at = cursor.start();
            if cursor.eat_here("[") {
                open.push(0);
                if open.len() > deepest.unwrap_or(DEEPEST) {
                    let message = match deepest {
                        Some(_) => "a list must contain either numbers or lists".to_owned(),
                        None => format!("lists are nested deeper than {DEEPEST}"),
                    };
                    return Err(cursor.error(at..at + 1, message));
                }
                dims.resize(dims.len().max(open.len()), None);
                if !cursor.sees("]") {
                    continue;
                }
            } else {
                numbers.push(read_number(cursor).ok_or_else(|| cursor.expected("a number"))?);
                if *deepest.get_or_insert(open.len()) != open.len() {
                    return Err(cursor.error(at..cursor.at, "a list must contain either numbers or lists"));
                }
                open.last_mut().into_iter().for_each(|count| *count += 1);
            }
            while cursor.eat("]") {
                let length = open.pop().unwrap_or_default();
                if dims[open.len()].replace(length).is_some_and(|other| other != length) {
                    return Err(cursor.error(at..cursor.at, "lists at the same level must have the same length"));
                }
                match open.last_mut() {
                    Some(count) => *count += 1,
                    None => {
                        let dims = dims.into_iter().map(Option::unwrap_or_default).collect();
                        return Ok(Some(Self { numbers, dims, span: start..cursor.at }));
                    }
                }
            }
            if !cursor.eat(",") {
                return Err(cursor.expected("`,` or `]`"));
            }
        }
    }

    /// A single number fills `dims`. `None` if the type cannot represent the numbers, or if the number of elements
    /// differs.
    pub(crate) fn to_array(&self, ty: ElementType, dims: &[usize]) -> Option<Array> {
        let count = dims.iter().try_fold(1_usize, |count, &dim| count.checked_mul(dim))?;
        let fill = if self.dims.is_empty() { self.numbers.first() } else { None };
        if fill.is_none() && self.numbers.len() != count {
            return None;
        }
        let numbers = || (0..count).map(|at| fill.or_else(|| self.numbers.get(at)).copied());
        match ty.kind() {
            Kind::Float => {
                let values = numbers().map(|number| Some(round(ty, number?.to_float()))).collect::<Option<_>>()?;
                Some(Array::floats(ty, dims.into(), values))
            }
            Kind::Signed | Kind::Unsigned | Kind::Boolean => {
                let values = numbers().map(|number| number?.to_int(ty)).collect::<Option<Vec<_>>>()?;
                Some(Array::ints(ty, dims.into(), values))
            }
            _ => None,
        }
    }

    pub(crate) fn whole(number: i128, span: Range<usize>) -> Self {
        Self { numbers: vec![Number::Int(number)], dims: Vec::new(), span }
    }

    pub(crate) fn is_number(&self, number: f64) -> bool {
        let own = self.numbers.first().filter(|_| self.dims.is_empty()).map(|own| own.to_float());
        own.is_some_and(|own| own == number || own as f32 == number as f32)
    }

    pub(crate) fn is_whole(&self) -> bool {
        self.numbers.iter().all(|number| matches!(number, Number::Int(_)))
    }

    /// True if an array has the same numbers in the same order, or if all of its elements equal the single number.
    pub(crate) fn is_held_by(&self, array: &Array) -> bool {
        if array.len() == 0 {
            return self.numbers.is_empty();
        }
        if self.dims.len() > 1 && self.dims[..] != array.dims[..] {
            return false;
        }
        let dims = [self.numbers.len()];
        let wanted = self.to_array(array.element_type, if self.dims.is_empty() { &[] } else { &dims });
        match (wanted.map(|wanted| wanted.data), &array.data) {
            (Some(Data::Ints(wanted)), Data::Ints(values)) => {
                holds(values.iter(), self.dims.is_empty(), wanted.len(), |at, value| wanted.get(at) == Some(value))
            }
            (Some(Data::Floats(wanted)), Data::Floats(values)) => {
                let same = |at: usize, a: &f64| wanted.get(at).is_some_and(|b| a == b || a.is_nan() && b.is_nan());
                holds(values.iter(), self.dims.is_empty(), wanted.len(), same)
            }
            _ => false,
        }
    }
}

fn holds<T>(
    values: impl ExactSizeIterator<Item = T>,
    fills: bool,
    wanted: usize,
    same: impl Fn(usize, T) -> bool,
) -> bool {
    (fills || values.len() == wanted) && values.enumerate().all(|(at, value)| same(if fills { 0 } else { at }, value))
}

/// Parses a number, `true`, `false`, `inf` or `nan`, if one comes here.
fn read_number(cursor: &mut Cursor) -> Option<Number> {
    let rest = cursor.rest();
    let signed = rest.starts_with('-');
    let body = &rest[usize::from(signed)..];
    let length = match body.bytes().next()? {
        b'0'..=b'9' | b'.' => number_length(body),
        b'a'..=b'z' => body.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(body.len()),
        _ => return None,
    };
    let text = &rest[..usize::from(signed) + length];
    let number = match (&body[..length], signed) {
        ("true", false) => Number::Bool(true),
        ("false", false) => Number::Bool(false),
        ("inf" | "nan", _) => Number::Float(text.parse().ok()?),
        (word, _) if word.starts_with(|c: char| c.is_ascii_alphabetic()) => return None,
        _ => match text.parse() {
            Ok(value) if text != "-0" => Number::Int(value),
            // Only `inf` means infinity: 1e999 would become one without a word.
            _ => Number::Float(text.parse().ok().filter(|value: &f64| value.is_finite())?),
        },
    };
    cursor.at += text.len();
    Some(number)
}

/// A range `1..5` ends before its dots.
fn number_length(text: &str) -> usize {
    let digits = |from: usize| text[from..].bytes().take_while(u8::is_ascii_digit).count();
    let mut length = digits(0);
    if text[length..].starts_with('.') && !text[length..].starts_with("..") {
        length += 1 + digits(length + 1);
    }
    if text[length..].starts_with(['e', 'E']) {
        let sign = usize::from(text[length + 1..].starts_with(['-', '+']));
        let exponent = digits(length + 1 + sign);
        if exponent > 0 {
            length += 1 + sign + exponent;
        }
    }
    length
}

pub(crate) fn number(ty: ElementType, value: f64) -> String {
    if !value.is_finite() {
        return value.to_string().to_lowercase();
    }
    let shortest = (0..17).map(|digits| format!("{value:.digits$e}"));
    let text = shortest.into_iter().find(|text| text.parse().is_ok_and(|parsed| round(ty, parsed) == value));
    let text = text.unwrap_or_else(|| format!("{value:e}"));
    // Digits and exponent in the usual form.
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    match exponent.parse::<i32>() {
        Ok(-5..=15) => text.parse::<f64>().map_or(text.clone(), |short| short.to_string()),
        _ => format!("{mantissa}e{exponent}"),
    }
}

pub(crate) fn is_filled(array: &Array) -> bool {
    let is_boolean = array.element_type == ElementType::Boolean;
    let alike = match &array.data {
        Data::Ints(values) => {
            let first = values.get(0);
            values.iter().all(|value| Some(value) == first || is_boolean && value != 0 && first != Some(0))
        }
        Data::Floats(values) => {
            values.iter().all(|&value| value.to_bits() == values[0].to_bits() || value.is_nan() && values[0].is_nan())
        }
    };
    alike && (array.len() > 1 || array.len() == 1 && array.dims.len() != 1)
}

/// Formats the values of a constant: a number if all are equal, else lists.
pub(crate) fn print(array: &Array) -> String {
    let is_filled = is_filled(array);
    let count = if is_filled { 1 } else { array.len() };
    let texts: Vec<String> = match &array.data {
        Data::Ints(values) if array.element_type == ElementType::Boolean => {
            values.iter().take(count).map(|value| (value != 0).to_string()).collect()
        }
        Data::Ints(values) => values.iter().take(count).map(|value| value.to_string()).collect(),
        Data::Floats(values) => values.iter().take(count).map(|&value| number(array.element_type, value)).collect(),
    };
    if is_filled {
        return texts.concat();
    }
    let mut out = String::new();
    for (at, text) in texts.iter().enumerate() {
        let mut block = 1;
        let starts = array.dims.iter().rev().filter(|&&dim| {
            block *= dim.max(1);
            at % block == 0
        });
        let starts = starts.count();
        if at > 0 {
            let _ = write!(out, "{}, ", "]".repeat(starts));
        }
        let _ = write!(out, "{}{text}", "[".repeat(starts));
    }
    if texts.is_empty() {
        return "[]".to_owned();
    }
    out + &"]".repeat(array.dims.len())
}

#[cfg(test)]
mod tests {
    use smallvec::smallvec;

    use super::*;

    fn read(text: &str) -> Literal {
        Literal::read(&mut Cursor::new(text)).unwrap().unwrap()
    }

    #[test]
    fn literals_are_numbers_or_lists_of_equal_lengths() {
        assert_eq!(read("-1.5e-3").numbers, [Number::Float(-0.0015)]);
        assert_eq!(read("1..5").numbers, [Number::Int(1)]);
        assert_eq!(read("[[1, 2], [3, 4], [5, 6]]").dims, [3, 2]);
        assert_eq!((read("[]").dims, read("[[], []]").dims), (vec![0], vec![2, 0]));
        for text in ["[1, [2]]", "[[1], 2]", "[[1], [2, 3]]", "[1", "[1,]", "[a]", "[1e999]"] {
            assert!(Literal::read(&mut Cursor::new(text)).is_err(), "{text}");
        }
        assert_eq!(Literal::read(&mut Cursor::new("x")).unwrap(), None);
    }

    #[test]
    fn values_are_compared_in_the_type_of_the_constant() {
        let tenth = Array::floats(ElementType::F16, smallvec![1], smallvec![round(ElementType::F16, 0.1)]);
        assert!(read("0.1").is_held_by(&tenth) && read("[0.1]").is_held_by(&tenth));
        assert!(!read("0.2").is_held_by(&tenth) && !read("[0.1, 0.1]").is_held_by(&tenth));
        let bytes = Array::ints(ElementType::U8, smallvec![2], [3, 3]);
        assert!(read("3").is_held_by(&bytes) && read("3.0").is_held_by(&bytes));
        assert!(!read("2.5").is_held_by(&bytes) && !read("259").is_held_by(&bytes));
    }

    #[test]
    fn constants_are_printed_short_and_come_back() {
        let arrays = [
            Array::floats(ElementType::F16, smallvec![], smallvec![round(ElementType::F16, 0.1)]),
            Array::floats(ElementType::F32, smallvec![2], smallvec![f64::from(1e-30_f32), f64::INFINITY]),
            Array::floats(ElementType::F8E4M3, smallvec![2], smallvec![0.001953125, -448.0]),
            Array::ints(ElementType::I64, smallvec![2, 2], [1, 2, i64::MIN.into(), 4]),
            Array::ints(ElementType::U4, smallvec![3], [1, 2, 15]),
            Array::ints(ElementType::Boolean, smallvec![2], [1, 0]),
            Array::ints(ElementType::I32, smallvec![1, 3], [7, 7, 7]),
            Array::ints(ElementType::I32, smallvec![0], []),
        ];
        let expected = ["0.1", "[1e-30, inf]", "[0.002, -450]", "[[1, 2], [-9223372036854775808, 4]]"];
        let expected = expected.into_iter().chain(["[1, 2, 15]", "[true, false]", "7", "[]"]);
        for (array, expected) in arrays.iter().zip(expected) {
            let text = print(array);
            assert_eq!(text, expected);
            assert_eq!(read(&text).to_array(array.element_type, &array.dims).as_ref(), Some(array));
            let bytes = array.encode().unwrap();
            assert_eq!(Array::decode(array.element_type, array.dims.clone(), &bytes).as_ref(), Some(array));
        }
    }
}
