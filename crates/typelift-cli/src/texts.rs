//! Texts written by people, which are short: endless input is an error.

use std::io::{BufRead, Error, ErrorKind, Read};
use std::path::Path;

use typelift::host::open_regular;

use crate::failure::Failure;
use crate::noted;

/// Limit on a file of rules, and on a line of standard input, in bytes.
const LONGEST_TEXT: u64 = 16 << 20;
const LONGEST_LINE: u64 = 64 << 10;
/// Byte order mark, with which editors of Windows begin a text.
const MARK: char = '\u{feff}';

/// The text of a file that people write.
///
/// # Errors
/// The file cannot be read, is a pipe or a device, or is longer than any text that people write.
pub(crate) fn read(path: &Path) -> Result<String, Failure> {
    noted::note_read(path);
    let mut bytes = Vec::new();
    let read = open_regular(path).and_then(|file| file.take(LONGEST_TEXT + 1).read_to_end(&mut bytes));
    let text = read.and_then(|_| {
        decoded(bytes).ok_or_else(|| Error::new(ErrorKind::InvalidData, "stream did not contain valid UTF-8"))
    });
    let mut text = text.map_err(|error| Failure::io("read", path, &error))?;
    if text.len() as u64 > LONGEST_TEXT {
        return Err(Failure::new(format!(
            "`{}` has over {} MB, and is read as text",
            path.display(),
            LONGEST_TEXT >> 20
        )));
    }
    if text.starts_with(MARK) {
        text.drain(..MARK.len_utf8());
    }
    Ok(text)
}

/// A text in UTF-8, or in UTF-16 as PowerShell writes it.
fn decoded(bytes: Vec<u8>) -> Option<String> {
    let number: fn([u8; 2]) -> u16 = match bytes[..] {
        [0xff, 0xfe, ..] => u16::from_le_bytes,
        [0xfe, 0xff, ..] => u16::from_be_bytes,
        _ => return String::from_utf8(bytes).ok(),
    };
    let numbers: Vec<_> = bytes.chunks_exact(2).map(|pair| number([pair[0], pair[1]])).collect();
    String::from_utf16(&numbers).ok()
}

/// The name of another kind of text, by its first line that is no comment.
pub(crate) fn kind(text: &str) -> Option<&'static str> {
    let first = text.lines().map(str::trim_end).find(|line| !line.is_empty() && !line.starts_with('#'));
    match first? {
        line if line.starts_with('<') => Some("XML"),
        line if ["import ", "from ", "def ", "class "].iter().any(|it| line.starts_with(it)) => Some("Python"),
        line if line.ends_with(':') || line == "---" => Some("YAML or Python"),
        line if line.starts_with(['{', '[', '"']) => Some("JSON"),
        line if line.starts_with("```") => Some("Markdown"),
        _ => None,
    }
}

/// Iterates over the lines of a text; one that is too long is an error.
pub(crate) fn lines(mut text: impl BufRead) -> impl Iterator<Item = Result<String, Failure>> {
    let mut number = 0;
    std::iter::from_fn(move || {
        number += 1;
        let mut line = String::new();
        match text.by_ref().take(LONGEST_LINE + 1).read_line(&mut line) {
            Ok(0) => None,
            Ok(length) if length as u64 > LONGEST_LINE => {
                Some(Err(Failure::new(format!("line {number} has over {} KB", LONGEST_LINE >> 10))))
            }
            Ok(_) => Some(Ok(line.trim_end_matches(['\n', '\r']).to_owned())),
            Err(error) => Some(Err(Failure::io("read", "standard input".as_ref(), &error))),
        }
    })
}
