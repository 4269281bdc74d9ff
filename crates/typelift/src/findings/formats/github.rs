//! Findings as workflow commands of GitHub Actions.

use std::fmt::Write as _;
use std::io;

use super::{Format, Frame};
use crate::base::span::Lines;
use crate::findings::document::Region;
use crate::findings::words::whole;
use crate::findings::{Diagnostics, FileName, Severity, Voice};

pub(super) const FORMAT: Format = Format {
    name: "github",
    about: "Workflow commands of GitHub Actions, which annotate pull requests",
    frame: || Ok(Frame::default()),
    page,
};

/// Writes one workflow command for each finding. GitHub shows it with its fixes at the line in a pull request.
fn page(diagnostics: &Diagnostics, voice: Voice<'_>) -> io::Result<String> {
    let data = |text: &str| text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A");
    let property = |text: &str| data(text).replace(':', "%3A").replace(',', "%2C");
    let lines = Lines::new(diagnostics.source.clone());
    let mut text = String::new();
    for diagnostic in &diagnostics.list {
        let command = match diagnostic.severity {
            Severity::Note => "notice",
            other => other.name(),
        };
        let _ = write!(text, "::{command} file={}", property(&FileName(&diagnostics.file).portable()));
        if let Some(Region { line, column, end_line, end_column }) = Region::of(&lines, diagnostic) {
            let _ = write!(text, ",line={line},endLine={end_line},col={column},endColumn={end_column}");
        }
        let said = whole(&lines, diagnostic, voice);
        let _ = writeln!(text, ",title={}::{}", property(diagnostic.code.name()), data(said.trim_end()));
    }
    Ok(text)
}
