//! Text for the shell, and messages of the operating system.

use std::borrow::Cow;
use std::io;

/// Returns a word quoted for a shell.
///
/// ```
/// use typelift::findings::shell_word;
///
/// assert_eq!(shell_word("model.xml"), "model.xml");
/// assert_eq!(shell_word("my model.xml"), "'my model.xml'");
/// assert_eq!(shell_word("it's.xml"), r"'it'\''s.xml'");
/// assert_eq!(shell_word("-x.xml"), "./-x.xml");
/// ```
#[must_use]
pub fn shell_word(word: &str) -> Cow<'_, str> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./+,:@%".contains(c);
    if word.starts_with('-') {
        Cow::Owned(shell_word(&format!("./{word}")).into_owned())
    } else if word.chars().all(plain) {
        Cow::Borrowed(word)
    } else {
        Cow::Owned(format!("'{}'", word.replace('\'', r"'\''")))
    }
}

/// Returns the system's message for an error, without its number: `permission denied`.
///
/// ```
/// let error = std::io::Error::from_raw_os_error(2);
/// assert!(!typelift::findings::reason(&error).contains("os error"));
/// ```
#[must_use]
pub fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_lowercase().chain(letters).collect())
}
