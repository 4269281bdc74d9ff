//! Text of findings that is derived from their data.

pub(crate) mod commands;
pub(crate) mod fixes;

use std::fmt;

use super::{Code, Diagnostic, Diagnostics, LayerRef, Message, Related, Severity, message};
use crate::base::span::Lines;
use crate::model::graph::Layer;

pub(crate) use commands::shell_word;
pub(crate) use fixes::{Voice, limits};

impl Severity {
    /// Returns `error`, `warning` or `note`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Note => "note",
        }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Formats ``layer 3 `sum` ``, without the bodies around it.
impl fmt::Display for LayerRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "layer {} `{}`", self.id, self.name)
    }
}

/// Formats ``input 0 is f32[2] from Parameter 0 `x` ``.
impl fmt::Display for Related {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { layer, element_type, shape, operation, input, role, .. } = self;
        write!(f, "input {input}")?;
        if let Some(role) = role {
            write!(f, ", {role},")?;
        }
        write!(f, " is {element_type}{shape} from {operation} {} `{}`", layer.id, layer.name)
    }
}

/// Describes a layer by its operation, id and name: ``Const 3 `x` ``.
pub(crate) fn described(layer: &Layer) -> Message {
    message!("{} {} `{}`"; layer.ty(), layer.id(), layer.name())
}

/// The text of a finding without positions: the message, the notes and the fixes, one per line.
pub(super) fn whole(lines: &Lines, diagnostic: &Diagnostic, voice: Voice<'_>) -> String {
    let layer = diagnostic.layer.iter().map(ToString::to_string);
    let related = diagnostic.related.iter().map(|related| {
        let line = lines.line_at(related.span.start);
        format!("{related} (line {line})")
    });
    let help = voice.remedies(diagnostic).into_iter().map(|remedy| match remedy.command {
        Some(command) => format!("help: {}: `{command}`", remedy.words),
        None => format!("help: {}", remedy.words),
    });
    let message = std::iter::once(diagnostic.message.to_string());
    let all = message.chain(layer).chain(related).chain(diagnostic.notes.iter().map(ToString::to_string)).chain(help);
    all.collect::<Vec<_>>().join("\n")
}

/// Prints severity, code and message on one line, without the place.
impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}[{}]: {}", self.severity, self.code, self.message)
    }
}

/// Does the same as [`Display`](fmt::Display), so that a failed `unwrap` shows the findings and not the whole file.
impl fmt::Debug for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines = Lines::new(self.source.clone());
        for (at, diagnostic) in self.list.iter().enumerate() {
            if at > 0 {
                f.write_str("\n")?;
            }
            f.write_str(&self.file)?;
            if let Some(label) = diagnostic.labels.first() {
                let (line, column) = lines.line_column(label.span.start);
                write!(f, ":{line}:{column}")?;
            }
            write!(f, ": {diagnostic}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Diagnostics {}

/// Returns a number with a comma between groups of three digits.
///
/// ```
/// assert_eq!(typelift::findings::grouped(1_234_567), "1,234,567");
/// ```
#[must_use]
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats a number of bytes with a unit, and two digits at least.
///
/// ```
/// let sizes = [1, 999, 1_000, 9_940, 197_480, 5_600_000, 24_000_000_000];
/// assert_eq!(sizes.map(typelift::findings::size), ["1 byte", "999 bytes", "1.0 KB", "9.9 KB", "197 KB", "5.6 MB", "24 GB"]);
/// ```
#[must_use]
pub fn size(bytes: u64) -> String {
    let (unit, name) = match bytes {
        1 => return "1 byte".to_owned(),
        0..1_000 => return format!("{bytes} bytes"),
        1_000..1_000_000 => (1e3, "KB"),
        1_000_000..1_000_000_000 => (1e6, "MB"),
        _ => (1e9, "GB"),
    };
    let count = bytes as f64 / unit;
    format!("{count:.*} {name}", usize::from(count < 10.0))
}

/// Formats a number with three significant digits.
pub(crate) fn short(number: f64) -> String {
    let rounded: f64 = format!("{number:.2e}").parse().unwrap_or(number);
    if rounded == 0.0 || (1e-4..1e7).contains(&rounded.abs()) { rounded.to_string() } else { format!("{rounded:e}") }
}

/// Formats a list: `a`, `a and b`, `a, b and c`.
pub(crate) fn list(texts: Vec<String>, conjunction: &str) -> String {
    match texts.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} {conjunction} {last}", rest.join(", ")),
        _ => texts.concat(),
    }
}

/// The stable word.
impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
