//! Commands of the program and its options, in words.

use std::borrow::Cow;
use std::fmt;
use std::io;

use typelift_promote::{ElementType, Loss, fidelity};

use crate::findings::{Advice, Command, Diagnostic, Effect, OtherRules, Remedy};

impl Advice {
    /// What the finding says, for people who have the program: its help, the options of the program that do what it names, and
    /// the command that fixes it, if there is one.
    pub fn for_shell(diagnostic: &Diagnostic, command: Option<&Command>) -> Self {
        let options = diagnostic.remedy.as_ref().and_then(Remedy::options);
        let help = diagnostic.help.iter().map(ToString::to_string).chain(options);
        let help = help.chain(command.map(ToString::to_string)).collect();
        Self { help, command: command.filter(|it| it.succeeds).map(|it| it.line.clone()) }
    }
}

impl Remedy {
    /// The options of the program that do it, where no command does.
    fn options(&self) -> Option<String> {
        match self {
            Self::OtherRules(others) => {
                let option = |other: &OtherRules| match other.setting {
                    Some(setting) => other.describe(&format!("--{setting}")),
                    None => other.describe(&format!("--align {}", other.rules)),
                };
                Some(others.iter().map(option).collect::<Vec<_>>().join(", "))
            }
            Self::Retarget => Some("`typelift convert --target` writes the text as the release reads it".to_owned()),
            Self::ConvertInput => Some("`--input-type` takes the type and computes what the file does".to_owned()),
            Self::Keep(layers) => {
                let options: Vec<_> = layers.iter().map(|layer| format!("--keep {}", shell_word(layer))).collect();
                Some(format!("`typelift convert --types` with `{}` leaves them out of it", options.join(" ")))
            }
            Self::Align | Self::RefreshPorts => None,
        }
    }
}

/// ``` `typelift convert in.xml -o fixed.xml` makes the types agree ```.
impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let later = if self.succeeds { "" } else { ", once the other errors are fixed" };
        write!(f, "`{}` {}{later}", self.line, self.effect)
    }
}

impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RefreshesPorts => f.write_str("writes every port as inferred"),
            Self::InsertsConverts(converts) if !converts.is_empty() => {
                let mut converts: Vec<_> = converts.iter().map(|&(from, to)| convert(from, to)).collect();
                converts.dedup();
                write!(f, "inserts {}", converts.join(" and "))
            }
            Self::MakesTypesAgree | Self::InsertsConverts(_) => f.write_str("makes the types agree"),
        }
    }
}

/// `a Convert from i64 to f32 (rounds above 2^24)`.
fn convert(from: ElementType, to: ElementType) -> String {
    let exact_below = match to {
        ElementType::F16 => "2^11",
        ElementType::Bf16 => "2^8",
        ElementType::F32 => "2^24",
        ElementType::F64 => "2^53",
        _ => "",
    };
    let only_rounds = |losses: &[Loss]| losses == [Loss::Rounds] && from.is_integer() && !exact_below.is_empty();
    match fidelity(from, to) {
        Some(fidelity) if only_rounds(&fidelity.losses().collect::<Vec<_>>()) => {
            format!("a Convert from {from} to {to} (rounds above {exact_below})")
        }
        Some(fidelity) => format!("a Convert from {from} to {to} ({fidelity})"),
        None => format!("a Convert from {from} to {to}"),
    }
}

/// A word as it is pasted into a shell.
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

/// What the system says of an error, without its number: `permission denied`.
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
