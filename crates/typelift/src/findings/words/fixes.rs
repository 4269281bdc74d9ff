//! Descriptions of fixes for each audience.

use std::fmt;
use std::path::Path;

use typelift_promote::{ElementType, Fidelity, Kind, Loss, fidelity};

use super::{list, shell_word, short};
use crate::findings::{Applicability, Diagnostic, Fix, FixAction, Owner, Rules, replaced_by};

/// Audience of the description of fixes.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub enum Voice<'a> {
    /// Any audience: the text names no command and no function.
    #[default]
    Plain,
    /// Users of the program: the text names commands for this file. Without a file it names only options.
    Shell(Option<&'a Path>),
    /// Users of the Python package: the text names functions, and commands for this file.
    Python(Option<&'a Path>),
}

/// Fix of a finding in words.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Remedy {
    /// A sentence without a full stop.
    pub words: String,
    /// A command that makes the fix and writes a new file; it was tried on the model.
    pub command: Option<String>,
}

impl From<String> for Remedy {
    fn from(words: String) -> Self {
        Self { words, command: None }
    }
}

impl Voice<'_> {
    /// Returns the fixes of a finding as sentences without a full stop.
    #[must_use]
    pub fn help(self, diagnostic: &Diagnostic) -> Vec<String> {
        self.remedies(diagnostic).into_iter().map(|remedy| remedy.words).collect()
    }

    /// Returns a command that fixes the finding, if there is one that was tried.
    #[must_use]
    pub fn command(self, diagnostic: &Diagnostic) -> Option<String> {
        let (Self::Shell(Some(file)) | Self::Python(Some(file))) = self else { return None };
        diagnostic.fixes.iter().find_map(|fix| command_of(fix, file))
    }

    /// Returns the fixes of a finding, each with a command that makes it.
    #[must_use]
    pub fn remedies(self, diagnostic: &Diagnostic) -> Vec<Remedy> {
        let mut said = Vec::new();
        for alike in diagnostic.fixes.chunk_by(|a, b| {
            std::mem::discriminant(&a.action) == std::mem::discriminant(&b.action) && a.applicability == b.applicability
        }) {
            let words = alike.iter().filter_map(|fix| self.words(fix));
            match (&alike[0].action, alike[0].applicability) {
                (FixAction::Edit { .. }, Applicability::Possible) => {
                    let all: Vec<_> = words.collect();
                    said.push(Remedy::from(match &all[..] {
                        [only] => format!("perhaps {only}"),
                        all => format!("one of these changes is probably intended: {}", all.join("; or ")),
                    }));
                }
                (FixAction::AlignBy { .. }, _) => said.push(words.collect::<Vec<_>>().join(", ").into()),
                _ => {
                    let is_new = |it: &Remedy| {
                        it.command.is_some() || !said.iter().any(|known: &Remedy| known.words.contains(&it.words))
                    };
                    let new: Vec<_> = alike.iter().filter_map(|fix| self.remedy(fix)).filter(is_new).collect();
                    said.extend(new);
                }
            }
        }
        said
    }

    fn remedy(self, fix: &Fix) -> Option<Remedy> {
        let command = if let Self::Shell(Some(file)) = self { command_of(fix, file) } else { None };
        Some(Remedy { words: self.words(fix)?, command })
    }

    /// A fix as a clause; `None` if it is not shown to this audience.
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
                Some(format!("{} with `convert{options}`, once the other errors are fixed", inserting(inserts)))
            }
            (FixAction::Convert { inserts, .. }, Self::Shell(Some(_))) => Some(inserting(inserts)),
            (FixAction::RefreshPorts, Self::Shell(Some(_))) => Some(fix.to_string()),
            (FixAction::Convert { rules, inserts, succeeds }, Self::Python(Some(_))) => {
                let later = if *succeeds { "" } else { ", once the other errors are fixed" };
                let argument = rules.map(|rules| self.rules(rules)).unwrap_or_default();
                Some(format!("`model.convert({argument})`: {}{later}", inserting(inserts)))
            }
            (FixAction::RefreshPorts, Self::Python(Some(file))) => {
                command_of(fix, file).map(|_| "`model.infer()` corrects the declared types and shapes of all ports".to_owned())
            }
            (FixAction::Convert { .. } | FixAction::RefreshPorts, _) => None,
            (FixAction::Retarget, Self::Python(_)) => {
                Some("`model.convert(target=…)` writes the model for that release".to_owned())
            }
            (FixAction::ConvertInput, Self::Python(_)) => {
                Some("`input_types` changes the type of the input with a Convert after it, so that the results stay the same".to_owned())
            }
            (FixAction::Keep { to }, Self::Python(_)) => {
                let marks = if *to == ElementType::I32 { "" } else { ", mark_keeps=True" };
                let types = format!("types='{}={to}', keep=['risk:{to}']{marks}, keep_io=True", replaced_by(*to));
                Some(format!("`model.convert({types})` converts the other layers"))
            }
            (FixAction::Retarget, Self::Shell(_)) => {
                Some("`convert` with --target writes the model for that release".to_owned())
            }
            (FixAction::ConvertInput, Self::Shell(_)) => {
                Some("`--input-type` changes the type of the input with a Convert after it, so that the results stay the same".to_owned())
            }
            (FixAction::Statements(all), Self::Python(_)) => {
                let all: Vec<_> = all.iter().map(|statement| python_string(statement)).collect();
                Some(format!("`model.rewrite({})`", all.join(", ")))
            }
            (FixAction::Settings(all), Self::Shell(_)) => {
                Some(format!("add {}", list(all.iter().map(|(name, value)| format!("`--{} {value}`", name.replace('_', "-"))).collect(), "or")))
            }
            (FixAction::ReadWeights(bin), Self::Shell(_)) => {
                Some(format!("`--bin {}` reads the weights next to it", shell_word(&bin.display().to_string())))
            }
            _ => Some(fix.to_string()),
        }
    }

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

fn python_string(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
}

fn command_of(fix: &Fix, file: &Path) -> Option<String> {
    let fails = matches!(fix.action, FixAction::Convert { succeeds: false, .. });
    if fails || fix.applicability == Applicability::DisplayOnly { None } else { line_of(fix, file) }
}

fn line_of(fix: &Fix, file: &Path) -> Option<String> {
    match &fix.action {
        FixAction::Convert { rules, .. } => {
            let option = rules.map(|rules| format!(" {}", Voice::Shell(None).rules(rules))).unwrap_or_default();
            Some(shell_command("convert", &option, file))
        }
        FixAction::RefreshPorts => Some(shell_command("infer", "", file)),
        FixAction::Statements(all) => {
            let options: String = all.iter().map(|statement| format!(" -e {}", shell_word(statement))).collect();
            Some(shell_command("rewrite", &options, file))
        }
        FixAction::Rewrite(rules) => Some(shell_command("rewrite", &format!(" --use {rules}"), file)),
        FixAction::Keep { to } => {
            let marks = if *to == ElementType::I32 { "" } else { " --mark-keeps" };
            let types = format!(" --types {}={to} --keep-io --keep risk:{to}{marks}", replaced_by(*to));
            Some(shell_command("convert", &types, file))
        }
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

/// Describes Converts to insert: `insert a Convert from i64 to f32 (rounds above 2^24)`.
fn inserting(converts: &[(ElementType, ElementType)]) -> String {
    let mut converts: Vec<_> = converts.iter().map(|&(from, to)| convert(from, to)).collect();
    converts.dedup();
    if converts.is_empty() { "make the types agree".to_owned() } else { format!("insert {}", converts.join(" and ")) }
}

/// Describes one Convert: `a Convert from i64 to f32 (rounds above 2^24)`.
fn convert(from: ElementType, to: ElementType) -> String {
    let losses = fidelity(from, to).map(|losses| format!(" ({})", limits(losses, from, to)));
    format!("a Convert from {from} to {to}{}", losses.unwrap_or_default())
}

/// Lists losses with the numbers at which they begin: `rounds above 2^11, overflows above 65504`.
pub(crate) fn limits(losses: Fidelity, from: ElementType, to: ElementType) -> String {
    let words = losses.losses().map(|loss| match (loss, to.float_format()) {
        (Loss::Rounds, Some(format)) if from.is_integer() => format!("rounds above 2^{}", format.mantissa + 1),
        (Loss::Rounds, Some(format)) => format!("rounds to {} bits", format.mantissa + 1),
        (Loss::Overflows, Some(format)) => {
            let (mantissa, exponent) = format.largest();
            let largest = mantissa as f64 * 2_f64.powi(exponent);
            format!("overflows above {}", if largest < 1e6 { largest.to_string() } else { short(largest) })
        }
        (Loss::Wraps, _) => {
            let bits = to.bits() - u32::from(to.kind() == Kind::Signed);
            let end = if bits < 16 { (1_u32 << bits).to_string() } else { format!("2^{bits}") };
            let start = if bits < to.bits() { format!("-{end}") } else { "0".to_owned() };
            format!("wraps below {start} and from {end}")
        }
        _ => loss.name().to_owned(),
    });
    let words: Vec<String> = words.collect();
    if words.is_empty() { losses.to_string() } else { words.join(", ") }
}

impl fmt::Display for Fix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.action {
            FixAction::Advise(advice) => advice.fmt(f),
            FixAction::Edit { words, .. } => f.write_str(words),
            FixAction::Add { attributes, to } => {
                let written =
                    attributes.iter().map(|(name, value)| format!("{name}=\"{}\"", value.as_deref().unwrap_or("…")));
                let written = written.collect::<Vec<_>>().join(" ");
                match to {
                    Owner::Here => write!(f, "add {written}"),
                    Owner::Data => write!(f, "add {written} to its <data>"),
                    Owner::NewData => write!(f, "add <data {written}/>; `?` is a dimension that is not fixed"),
                    Owner::Element(element) => write!(f, "add {written} to <{element}>"),
                }
            }
            FixAction::AddEdge { from, to, producer } => write!(
                f,
                "add <edge from-layer=\"{}\" from-port=\"{}\" to-layer=\"{}\" to-port=\"{}\"/>: the output of {producer} has the \
                 declared type and shape, and no layer uses it",
                from.0, from.1, to.0, to.1
            ),
            FixAction::Align | FixAction::Convert { .. } => {
                f.write_str("insert Converts so that the element types agree")
            }
            FixAction::AlignBy { rules, .. } => write!(f, "align by {}", Voice::Plain.rules(*rules)),
            FixAction::RefreshPorts => f.write_str("correct the declared types and shapes of all ports"),
            FixAction::Retarget => f.write_str("write the model in the form that the release supports"),
            FixAction::ConvertInput => {
                f.write_str("insert a Convert after the Parameter, so that the results stay the same")
            }
            FixAction::Keep { to } => write!(f, "convert {} to {to}, except the layers at risk", replaced_by(*to)),
            FixAction::Rewrite(rules) => write!(f, "apply the rules `{rules}`"),
            FixAction::Statements(all) => {
                let all = all.iter().map(|statement| format!("`{statement}`")).collect();
                write!(f, "apply the statements {}", list(all, "and"))
            }
            FixAction::Settings(all) => {
                let all = all.iter().map(|(name, value)| format!("`{name}={value}`")).collect();
                write!(f, "set {}", list(all, "or"))
            }
            FixAction::ReadWeights(bin) => write!(f, "read the weights from `{}`", bin.display()),
        }
    }
}
