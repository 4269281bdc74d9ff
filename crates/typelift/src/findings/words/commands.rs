//! Text for the shell, and messages of the operating system.

use std::borrow::Cow;
use std::io;

/// Returns a word quoted for the shells of this system.
///
/// On Windows, cmd and PowerShell both take double quotes. A word that they read in different ways is quoted for
/// PowerShell, and a comment of PowerShell before it says so.
///
/// ```
/// use typelift::findings::shell_word;
///
/// assert_eq!(shell_word("model.xml"), "model.xml");
/// # if cfg!(unix) {
/// assert_eq!(shell_word("my model.xml"), "'my model.xml'");
/// assert_eq!(shell_word("it's.xml"), r"'it'\''s.xml'");
/// # }
/// assert_eq!(shell_word("-x.xml"), "./-x.xml");
/// ```
#[must_use]
pub fn shell_word(word: &str) -> Cow<'_, str> {
    if word.starts_with('-') {
        Cow::Owned(shell_word(&format!("./{word}")).into_owned())
    } else if cfg!(windows) {
        windows_word(word)
    } else {
        unix_word(word)
    }
}

fn is_plain(word: &str, marks: &str) -> bool {
    !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || marks.contains(c))
}

fn unix_word(word: &str) -> Cow<'_, str> {
    if is_plain(word, "-_./+,:@%") { word.into() } else { format!("'{}'", word.replace('\'', r"'\''")).into() }
}

fn windows_word(word: &str) -> Cow<'_, str> {
    if is_plain(word, r"-_./+:\") {
        word.into()
    } else if word.contains(['%', '$', '`', '"']) {
        // Before version 7.3, PowerShell does not pass a double quote on.
        let version = if word.contains('"') { " 7.3" } else { "" };
        format!("<# PowerShell{version} #> '{}'", word.replace('\'', "''")).into()
    } else {
        // A backslash before the last quote would have it be a part of the word.
        let last = if word.ends_with('\\') { r"\" } else { "" };
        format!("\"{word}{last}\"").into()
    }
}

/// Returns the system's message for an error, without its number: `permission denied`. What Windows says of a path in several sentences
/// is said as on other systems.
///
/// ```
/// let error = std::io::Error::from_raw_os_error(2);
/// assert!(!typelift::findings::reason(&error).contains("os error"));
/// ```
#[must_use]
pub fn reason(error: &io::Error) -> String {
    match error.kind() {
        // A name that Windows does not allow is the name of no file.
        io::ErrorKind::NotFound | io::ErrorKind::InvalidFilename if cfg!(windows) => {
            return "no such file or directory".to_owned();
        }
        io::ErrorKind::PermissionDenied if cfg!(windows) => return "permission denied".to_owned(),
        _ => {}
    }
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_lowercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_for_the_shells_of_each_system() {
        let cases = [
            ("", "''", "\"\""),
            ("a/b-1.xml", "a/b-1.xml", "a/b-1.xml"),
            (r"C:\m\a.xml", r"'C:\m\a.xml'", r"C:\m\a.xml"),
            ("my model.xml", "'my model.xml'", "\"my model.xml\""),
            (r"my models\", r"'my models\'", r#""my models\\""#),
            ("it's.xml", r"'it'\''s.xml'", "\"it's.xml\""),
            ("a&b,(c).xml", "'a&b,(c).xml'", "\"a&b,(c).xml\""),
            ("100%.xml", "100%.xml", "<# PowerShell #> '100%.xml'"),
            ("$x`'s", r"'$x`'\''s'", "<# PowerShell #> '$x`''s'"),
            (r#"x => "y""#, r#"'x => "y"'"#, r#"<# PowerShell 7.3 #> 'x => "y"'"#),
        ];
        for (word, unix, windows) in cases {
            assert_eq!((&*unix_word(word), &*windows_word(word)), (unix, windows), "{word}");
        }
    }
}
