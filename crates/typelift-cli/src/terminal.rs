//! Output streams: results go to standard output, messages to standard error.

use std::io::{self, BufWriter, IsTerminal as _, Write};
use std::path::Path;

use anstream::AutoStream;
use clap::ColorChoice;
use serde::Serialize;

use crate::document::{self, Versioned};
use crate::failure::Failure;
use crate::fit;
use crate::gate::{self, Form};
use crate::interrupt::expect_to_wait;
use crate::status::Status;

/// Format of a command's output.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// For reading
    Text,
    /// A single JSON document
    Json,
}

pub(crate) struct Terminal {
    out: BufWriter<Box<dyn Write>>,
    err: AutoStream<io::Stderr>,
    /// True if results may have colours.
    colors: bool,
    /// True if results go to a terminal.
    is_terminal: bool,
    /// True if a program reads the results: then a failure is a document as well.
    pub(crate) answers_in_json: bool,
    /// True if messages are printed only when the run ends with errors.
    pub(crate) is_quiet: bool,
    /// The messages of a quiet run so far.
    unsaid: String,
}

impl Terminal {
    pub(crate) fn new(color: ColorChoice, full_names: bool) -> Self {
        let choice = match color {
            ColorChoice::Auto => anstream::ColorChoice::Auto,
            ColorChoice::Always => anstream::ColorChoice::Always,
            ColorChoice::Never => anstream::ColorChoice::Never,
        };
        let for_stdout = match choice {
            anstream::ColorChoice::Auto => AutoStream::choice(&io::stdout()),
            choice => choice,
        };
        fit::lay_out(columns(), full_names);
        Self {
            out: BufWriter::with_capacity(1 << 16, Box::new(io::stdout().lock())),
            err: AutoStream::new(io::stderr(), choice),
            colors: for_stdout != anstream::ColorChoice::Never,
            is_terminal: io::stdout().is_terminal(),
            answers_in_json: false,
            is_quiet: false,
            unsaid: String::new(),
        }
    }

    /// A terminal for a command that is only tried.
    pub(crate) fn silent() -> Self {
        Self {
            out: BufWriter::new(Box::new(io::sink())),
            err: AutoStream::new(io::stderr(), anstream::ColorChoice::Never),
            colors: false,
            is_terminal: false,
            answers_in_json: false,
            is_quiet: true,
            unsaid: String::new(),
        }
    }

    /// True if results are formatted for reading: on a terminal, or if colours were requested.
    pub(crate) fn is_for_people(&self) -> bool {
        self.is_terminal || self.colors
    }

    /// Prints to standard error; unwanted colours are removed.
    pub(crate) fn say(&mut self, text: &str) {
        if self.is_quiet {
            self.unsaid += text;
            return;
        }
        // A failure to print a message is ignored.
        let _ = self.err.write_all(gate::pass(text, Form::Text).as_bytes());
    }

    /// Prints the messages of a quiet run that ends with this status, if it is not success.
    pub(crate) fn end(&mut self, status: Status) {
        if std::mem::take(&mut self.is_quiet) && status != Status::Done {
            let unsaid = std::mem::take(&mut self.unsaid);
            self.say(&unsaid);
        }
    }

    pub(crate) fn show(&mut self, page: &Page) -> Result<(), Failure> {
        self.say(&page.said);
        let form = if page.form == Form::Text { self.form() } else { page.form };
        if page.styled && !self.colors {
            self.print_as(&anstream::adapter::strip_str(&page.printed).to_string(), form)
        } else {
            self.print_as(&page.printed, form)
        }
    }

    pub(crate) fn flush(&mut self) -> Result<(), Failure> {
        self.out.flush().map_err(Failure::stdout)
    }

    /// Prints a result: lines for reading, or JSON where a program reads it.
    pub(crate) fn print(&mut self, text: &str) -> Result<(), Failure> {
        self.print_as(text, self.form())
    }

    pub(crate) fn print_as(&mut self, text: &str, form: Form) -> Result<(), Failure> {
        self.out.write_all(gate::pass(text, form).as_bytes()).map_err(Failure::stdout)
    }

    fn form(&self) -> Form {
        if self.answers_in_json { Form::Json } else { Form::Text }
    }

    /// Prints a failure for programs that read the results.
    pub(crate) fn fail(&mut self, failure: Failure) {
        if self.answers_in_json
            && let Ok(document) = failure.json(None)
        {
            // Standard output may be the cause of the failure.
            let _ = self.print(&document).and_then(|()| self.flush());
        }
        self.say(&failure.text());
    }

    pub(crate) fn print_json(&mut self, value: &impl Serialize) -> Result<(), Failure> {
        let out = Escaped(&mut self.out);
        serde_json::to_writer_pretty(out, value).map_err(|error| Failure::stdout(error.into()))?;
        self.print("\n")
    }

    /// Prints a result as a JSON document, piece by piece, because it can be longer than the model.
    pub(crate) fn print_document(&mut self, document: &impl Serialize) -> Result<(), Failure> {
        self.print_json(&Versioned::new(document))
    }
}

/// Writer of JSON that passes the gate. Each piece that is written is whole: a string, or characters between strings.
struct Escaped<'a, W>(&'a mut W);

impl<W: Write> Write for Escaped<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match str::from_utf8(bytes) {
            Ok(text) => self.0.write_all(gate::pass(text, Form::Json).as_bytes())?,
            Err(_) => self.0.write_all(bytes)?,
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

fn columns() -> Option<usize> {
    let set = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok()).filter(|&columns| columns > 0);
    set.or_else(|| {
        let terminal = io::stdout().is_terminal().then(terminal_size::terminal_size).flatten();
        terminal.map(|(terminal_size::Width(columns), _)| columns.into())
    })
}

/// Prints the file that a run waits for, so that it does not seem to hang.
pub(crate) fn say_waiting(file: &Path) {
    expect_to_wait();
    let _ = writeln!(io::stderr(), "waiting for another run that is writing `{}`", file.display());
}

/// Output for one model, kept until it is its turn.
#[derive(Default)]
pub(crate) struct Page {
    /// For standard error, with colours.
    pub(crate) said: String,
    /// For standard output.
    pub(crate) printed: String,
    /// True if the output has colours; unwanted ones are removed.
    pub(crate) styled: bool,
    /// Form of what is printed; text is JSON where a program reads the results.
    pub(crate) form: Form,
}

pub(crate) fn json(document: &impl Serialize) -> Result<String, Failure> {
    Ok(document::text(document)?)
}
