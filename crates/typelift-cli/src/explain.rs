//! `typelift explain`: describes a finding.

use anstyle::Style;
use typelift::findings::{Code, Severity};

use crate::columns::{Columns, Side};
use crate::failure::Failure;
use crate::parts::by_parts;
use crate::status::Status;
use crate::terminal::Terminal;

const PAGE: &str = include_str!("../diagnostics.md");

/// The templates of messages, each after the code that has it.
const MESSAGES: &str = include_str!("../messages.txt");

/// Explain a finding, with a wrong and a right example
///
/// Prints the section of docs/diagnostics.md for a code, the word in brackets of a finding. Without a code, lists them
/// all.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  typelift explain stale-port
  typelift explain")]
pub(crate) struct Args {
    /// The code of the finding, such as type-mismatch
    #[arg(value_name = "CODE", value_parser = find_code)]
    code: Option<Code>,
}

pub(crate) fn run(args: &Args, terminal: &mut Terminal) -> Result<Status, Failure> {
    terminal.print(&text(args.code))?;
    Ok(Status::Done)
}

/// The description of a code; without one, a line for each.
pub(crate) fn text(code: Option<Code>) -> String {
    match code {
        Some(code) => {
            let requirements = typelift::programs::requirements(code);
            let gap = if requirements.is_empty() { "" } else { "\nRequirements:\n\n" };
            format!("{}\n{gap}{requirements}", without_links(section(code).unwrap_or_default()))
        }
        None => [Severity::Error, Severity::Warning, Severity::Note].map(listed).join("\n"),
    }
}

fn listed(severity: Severity) -> String {
    let mut columns = Columns::new([Side::Left, Side::Left]);
    for code in Code::ALL.iter().filter(|code| code.severity() == severity) {
        columns.push(Style::new(), [code.name().to_owned(), code.summary().to_owned()]);
    }
    format!("{severity}s\n{}", columns.print())
}

fn section(code: Code) -> Option<&'static str> {
    let start = PAGE.find(&format!("\n## {code}\n"))? + 1;
    let rest = PAGE.get(start..)?;
    let end = rest.find("\n## ").unwrap_or(rest.len());
    rest.get(..end).map(str::trim_end)
}

/// The text as a terminal shows it. A link within the page becomes its words; one to another page also names its file.
fn without_links(text: &str) -> String {
    let mut parts = text.split('[');
    let mut shown = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let link = part.split_once("](").and_then(|(words, rest)| Some((words, rest.split_once(')')?)));
        shown += &match link {
            Some((words, (page, rest))) if page.starts_with('#') => format!("{words}{rest}"),
            Some((words, (page, rest))) => format!("{words} (docs/{}){rest}", page.split('#').next().unwrap_or(page)),
            None => format!("[{part}"),
        };
    }
    shown
}

/// The code of this name.
///
/// # Errors
/// A name that no code has; the message suggests the most similar one.
pub(crate) fn find_code(text: &str) -> Result<Code, String> {
    let named = Code::ALL.iter().copied().find(|code| code.name() == text);
    named.ok_or_else(|| {
        let name = text.replace('_', "-");
        let near = code_of(text).map(str::to_owned);
        let names = Code::ALL.iter().map(|code| code.name());
        let near = near
            .or_else(|| typelift::near(&name, names.clone()))
            .or_else(|| by_parts(&name, names).filter(|_| !name.contains([' ', '.'])));
        let near = near.map_or(String::new(), |code| format!("; did you mean `{code}`?"));
        format!("no finding has this code{near}")
    })
}

/// The code in brackets of a printed finding, or the one that has its message.
fn code_of(text: &str) -> Option<&'static str> {
    if let Some(code) = Code::ALL.iter().find(|code: &&Code| text.contains(&format!("[{code}]"))) {
        return Some(code.name());
    }
    let rows = MESSAGES.lines().filter_map(|line| line.split_once(": "));
    let scores = rows.map(|(code, template)| (likeness(template, text), code));
    scores.max_by_key(|&(score, _)| score).filter(|&(score, _)| score > 0).map(|row| row.1)
}

/// The letters of a template that a message has in the same order, less those that it lacks. A shell removes words in
/// backticks.
fn likeness(template: &str, text: &str) -> isize {
    let (mut rest, mut score) = (text, 0);
    for words in template.split("{}").flat_map(|part| part.split('`')).map(str::trim).filter(|words| words.len() > 3) {
        match rest.split_once(words) {
            Some((_, after)) => {
                rest = after;
                score += words.len() as isize;
            }
            None => score -= words.len() as isize,
        }
    }
    score
}
