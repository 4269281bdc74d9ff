//! Formats in which other programs read findings. Each has its own file, and is listed here.

mod github;
mod sarif;

use std::borrow::Cow;
use std::io;

use super::{Diagnostics, Voice};

/// A format in which another program reads findings.
///
/// ```
/// use typelift::findings::{Diagnostics, Format, Voice};
/// use typelift::xml;
///
/// let source = std::sync::Arc::new("<net name='n' version='11'><layers><layer/></layers></net>".to_owned());
/// let list = xml::parse(source.clone()).diagnostics;
/// let found = Diagnostics { list, ..Diagnostics::new("model.xml", source) };
/// let sarif = Format::ALL.iter().find(|format| format.name == "sarif").unwrap();
/// let log: serde_json::Value = serde_json::from_str(&sarif.document(&found, Voice::Plain)?)?;
/// assert_eq!(log["runs"][0]["results"][0]["ruleId"], "missing-attribute");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct Format {
    /// The name.
    pub name: &'static str,
    /// A description in one line.
    pub about: &'static str,
    frame: fn() -> io::Result<Frame>,
    page: fn(&Diagnostics, Voice<'_>) -> io::Result<String>,
}

/// Text before, between and after the pages of several files in one document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    /// Before the first page.
    pub open: Cow<'static, str>,
    /// Between two pages that are not empty.
    pub between: Cow<'static, str>,
    /// After the last page.
    pub close: Cow<'static, str>,
}

impl Format {
    /// Every format.
    pub const ALL: &'static [Self] = &[github::FORMAT, sarif::FORMAT];

    /// Returns the text around the pages.
    ///
    /// # Errors
    /// Any error of the serializer. None is expected, because findings hold only text and numbers.
    pub fn frame(&self) -> io::Result<Frame> {
        (self.frame)()
    }

    /// Returns the findings of one file as a page of a document; [`frame`](Self::frame) returns the text around the
    /// pages.
    ///
    /// # Errors
    /// Any error of the serializer. None is expected, because findings hold only text and numbers.
    pub fn page(&self, diagnostics: &Diagnostics, voice: Voice<'_>) -> io::Result<String> {
        (self.page)(diagnostics, voice)
    }

    /// Returns the findings of one file as a document.
    ///
    /// # Errors
    /// Any error of the serializer. None is expected, because findings hold only text and numbers.
    pub fn document(&self, diagnostics: &Diagnostics, voice: Voice<'_>) -> io::Result<String> {
        let Frame { open, close, .. } = self.frame()?;
        Ok(format!("{open}{}{close}", self.page(diagnostics, voice)?))
    }
}
