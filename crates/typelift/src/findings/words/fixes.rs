//! Fixes in words, for each audience.

use std::fmt;
use std::path::Path;

use typelift_promote::{ElementType, Loss, fidelity};

use super::{list, shell_word};
use crate::findings::{Applicability, Diagnostic, Fix, FixAction, Owner, Rules};

/// The audience of words about fixes.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub enum Voice<'a> {
    /// Anybody: no option and no command is named.
    #[default]
    Plain,
    /// Users of the program. Commands read this file; without a file, only options are named.
    Shell(Option<&'a Path>),
    /// Users of the Python package. Commands of the program read this file.
    Python(Option<&'a Path>),
}

impl Voice<'_> {
    /// Returns the fixes of a finding as sentences without a full stop.
    #[must_use]
    pub fn help(self, diagnostic: &Diagnostic) -> Vec<String> {
        let mut said = Vec::new();
        let kind = |fix: &Fix| (std::mem::discriminant(&fix.action), fix.applicability);
        for alike in diagnostic.fixes.chunk_by(|a, b| kind(a) == kind(b)) {
            let each = alike.iter().filter_map(|fix| self.words(fix));
            match (&alike[0].action, alike[0].applicability) {
                (FixAction::Edit { .. }, Applicability::Possible) => {
                    let all: Vec<_> = each.collect();
                    said.push(match &all[..] {
                        [only] => format!("perhaps {only}"),
                        all => format!("one of these is meant: {}", all.join("; or ")),
                    });
                }
                (FixAction::AlignBy { .. }, _) => said.push(each.collect::<Vec<_>>().join(", ")),
                _ => said.extend(each),
            }
        }
        said
    }

    /// Returns the command that fixes a finding now, if there is one.
    #[must_use]
    pub fn command(self, diagnostic: &Diagnostic) -> Option<String> {
        let (Self::Shell(Some(file)) | Self::Python(Some(file))) = self else { return None };
        diagnostic.fixes.iter().find_map(|fix| command_of(fix, file))
    }

    /// Returns a fix as a clause; `None` if this audience is reported nothing of it.
    fn words(self, fix: &Fix) -> Option<String> {
        match (&fix.action, self) {
            (FixAction::Align, _) => None,
            (FixAction::AlignBy { rules, several, to }, _) => {
                let them = if *several { "them" } else { "it" };
                Some(format!("`{}` would make {them} {to}", self.rules(*rules)))
            }
            // A command that fails is not shown as one.
            (FixAction::Convert { rules, inserts, succeeds: false }, Self::Shell(Some(_))) => {
                let options = rules.map(|rules| format!(" {}", self.rules(rules))).unwrap_or_default();
                Some(format!("`convert{options}` {}, once the other errors are fixed", inserted(inserts)))
            }
            (FixAction::Convert { inserts, .. }, Self::Shell(Some(file))) => {
                Some(format!("`{}` {}", line_of(fix, file)?, inserted(inserts)))
            }
            (FixAction::RefreshPorts, Self::Shell(Some(file))) => {
                Some(format!("`{}` writes every port as inferred", command_of(fix, file)?))
            }
            (FixAction::Convert { rules, inserts, succeeds }, Self::Python(Some(_))) => {
                let later = if *succeeds { "" } else { ", once the other errors are fixed" };
                let argument = rules.map(|rules| self.rules(rules)).unwrap_or_default();
                Some(format!("`model.convert({argument})` {}{later}", inserted(inserts)))
            }
            (FixAction::RefreshPorts, Self::Python(Some(file))) => {
                command_of(fix, file).map(|_| "`model.infer()` writes every port as inferred".to_owned())
            }
            (FixAction::Convert { .. } | FixAction::RefreshPorts, _) => None,
            (FixAction::Retarget, Self::Python(_)) => {
                Some("`model.convert(target=…)` writes the text as the release reads it".to_owned())
            }
            (FixAction::ConvertInput, Self::Python(_)) => {
                Some("`input_types` takes the type and computes what the file does".to_owned())
            }
            (FixAction::Keep(layers), Self::Python(_)) => {
                let layers: Vec<_> = layers.iter().map(|layer| python_string(layer)).collect();
                Some(format!("`model.convert(types=…)` with `keep=[{}]` keeps their types", layers.join(", ")))
            }
            (FixAction::Retarget, Self::Shell(_)) => {
                Some("`typelift convert --target` writes the text as the release reads it".to_owned())
            }
            (FixAction::ConvertInput, Self::Shell(_)) => {
                Some("`--input-type` takes the type and computes what the file does".to_owned())
            }
            (FixAction::Keep(layers), Self::Shell(_)) => {
                let options: Vec<_> = layers.iter().map(|layer| format!("--keep {}", shell_word(layer))).collect();
                Some(format!("`typelift convert --types` with `{}` keeps their types", options.join(" ")))
            }
            (FixAction::Rewrite(rules), Self::Shell(Some(file))) => {
                let command = shell_command("rewrite", &format!(" --use {rules}"), file);
                Some(format!("`{command}` gives them the form that is kept"))
            }
            (FixAction::ReadWeights(bin), Self::Shell(_)) => {
                Some(format!("`--bin {}` reads the weights next to it", bin.display()))
            }
            _ => Some(fix.to_string()),
        }
    }

    /// Returns the option that chooses promotion rules, or their name.
    fn rules(self, rules: Rules) -> String {
        match (self, rules.setting) {
            (Self::Shell(_), Some(setting)) => format!("--{setting}"),
            (Self::Shell(_), None) => format!("--align {}", rules.name),
            (Self::Python(_), Some(setting)) => format!("{}=True", setting.replace('-', "_")),
            (Self::Python(_), None) => format!("align={}", python_string(rules.name)),
            (Self::Plain, setting) => setting.unwrap_or(rules.name).to_owned(),
        }
    }
}

/// A string as it is written in Python.
fn python_string(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
}

/// The command of a fix that was tried and succeeds.
fn command_of(fix: &Fix, file: &Path) -> Option<String> {
    let fails = matches!(fix.action, FixAction::Convert { succeeds: false, .. });
    if fails || fix.applicability == Applicability::DisplayOnly { None } else { line_of(fix, file) }
}

/// Returns the command of a fix of the whole model.
fn line_of(fix: &Fix, file: &Path) -> Option<String> {
    match &fix.action {
        FixAction::Convert { rules, .. } => {
            let option = rules.map(|rules| format!(" {}", Voice::Shell(None).rules(rules))).unwrap_or_default();
            Some(shell_command("convert", &option, file))
        }
        FixAction::RefreshPorts => Some(shell_command("infer", "", file)),
        _ => None,
    }
}

/// Returns a command that reads `file` and writes a new file next to it, quoted for a shell.
///
/// ```
/// use typelift::findings::shell_command;
///
/// let command = shell_command("convert", " --align pytorch", "a/b.xml".as_ref());
/// assert_eq!(command, "typelift convert --align pytorch a/b.xml -o fixed.xml");
/// ```
#[must_use]
pub fn shell_command(verb: &str, option: &str, file: &Path) -> String {
    let output = if file.file_name().is_some_and(|name| name == "fixed.xml") { "fixed-2.xml" } else { "fixed.xml" };
    format!("typelift {verb}{option} {} -o {output}", shell_word(&file.display().to_string()))
}

/// `inserts a Convert from i64 to f32 (rounds above 2^24)`.
fn inserted(converts: &[(ElementType, ElementType)]) -> String {
    let mut converts: Vec<_> = converts.iter().map(|&(from, to)| convert(from, to)).collect();
    converts.dedup();
    if converts.is_empty() {
        return "makes the types agree".to_owned();
    }
    format!("inserts {}", converts.join(" and "))
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

impl fmt::Display for Fix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.action {
            FixAction::Advise(words) | FixAction::Edit { words, .. } => f.write_str(words),
            FixAction::Add { attributes, to } => {
                let written = |(name, value): &(String, Option<String>)| {
                    format!("{name}=\"{}\"", value.as_deref().unwrap_or("…"))
                };
                let written = attributes.iter().map(written).collect::<Vec<_>>().join(" ");
                match to {
                    Owner::Here => write!(f, "add {written}"),
                    Owner::Data => write!(f, "add {written} to its <data>"),
                    Owner::NewData => write!(f, "add <data {written}/>; `?` is a dimension that is not fixed"),
                    Owner::Element(element) => write!(f, "add {written} to <{element}>"),
                }
            }
            FixAction::AddEdge { from, to, producer } => write!(
                f,
                "add <edge from-layer=\"{}\" from-port=\"{}\" to-layer=\"{}\" to-port=\"{}\"/>: the output of {producer} is what \
                 the port declares, and nothing uses it",
                from.0, from.1, to.0, to.1
            ),
            FixAction::Align | FixAction::Convert { .. } => {
                f.write_str("insert Converts so that the element types agree")
            }
            FixAction::AlignBy { rules, .. } => write!(f, "align by {}", Voice::Plain.rules(*rules)),
            FixAction::RefreshPorts => f.write_str("write every port as inferred"),
            FixAction::Retarget => f.write_str("write the model for the release: the text becomes what it reads"),
            FixAction::ConvertInput => {
                f.write_str("convert the input after its Parameter: what follows computes as before")
            }
            FixAction::Keep(layers) => {
                let layers = layers.iter().map(|layer| format!("`{layer}`")).collect();
                write!(f, "let {} keep their types", list(layers, "and"))
            }
            FixAction::Rewrite(rules) => write!(f, "apply the rules `{rules}`"),
            FixAction::ReadWeights(bin) => write!(f, "read the weights from `{}`", bin.display()),
        }
    }
}
