//! Turns the remedies that the library names into commands, each tried on the model first.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use typelift::diagnostic::{Advice, Code, Diagnostic, Diagnostics, LayerRef, OtherRules, Remedy};
use typelift::graph::Place;
use typelift::passes::{Action, Align, Change};
use typelift::promote::{ElementType, RuleSet, fidelity, openvino};
use typelift::{LayerId, Model};

/// A command that fixes what a diagnostic is about.
#[derive(Clone, Debug)]
pub(crate) struct Fix {
    pub(crate) command: String,
    /// What it does, to follow the command in a sentence.
    effect: String,
    /// Whether it succeeds now: other errors may have to be fixed first.
    pub(crate) succeeds: bool,
}

impl Fix {
    /// A sentence with the command.
    pub(crate) fn help(&self) -> String {
        let later = if self.succeeds { "" } else { ", once the other errors are fixed" };
        format!("`{}` {}{later}", self.command, self.effect)
    }
}

/// What can be done about a diagnostic: its help, the options of the program that do what it names, and the command that
/// fixes it.
pub(crate) fn advice(diagnostic: &Diagnostic, fix: Option<&Fix>) -> Advice {
    let options = match &diagnostic.remedy {
        Some(Remedy::OtherRules(others)) => {
            let option = |other: &OtherRules| match other.setting {
                Some(setting) => other.describe(&format!("--{setting}")),
                None => other.describe(&format!("--align {}", other.rules)),
            };
            Some(others.iter().map(option).collect::<Vec<_>>().join(", "))
        }
        Some(Remedy::Retarget) => {
            Some("`typelift convert --target` writes the text as the release reads it".to_owned())
        }
        Some(Remedy::ConvertInput) => Some("`--input-type` takes the type and computes what the file does".to_owned()),
        Some(Remedy::Keep(layers)) => {
            let options: Vec<_> = layers.iter().map(|layer| format!("--keep {}", quoted(layer))).collect();
            Some(format!("`typelift convert --types` with `{}` leaves them out of it", options.join(" ")))
        }
        _ => None,
    };
    let help = diagnostic.help.iter().map(ToString::to_string).chain(options).chain(fix.map(Fix::help));
    let command = fix.filter(|fix| fix.succeeds).map(|fix| fix.command.clone());
    Advice { help: help.collect(), command }
}

/// The fixes of the diagnostics of a file, by position.
#[derive(Default)]
pub(crate) struct Fixes(BTreeMap<usize, Fix>);

/// The options of `convert` to try, each with what it aligns by, the one that changes least first.
fn options() -> impl Iterator<Item = (String, Align)> {
    let unsafely = openvino::Options { promote_unsafe: true, ..openvino::Options::default() };
    let others = RuleSet::for_models().filter(|rules| rules.name() != "openvino");
    let others = others.map(|rules| (format!(" --align {}", rules.name()), Align::Rules(rules)));
    let declared = [("", Align::default()), (" --promote-unsafe", Align::Declared(unsafely))];
    declared.map(|(option, align)| (option.to_owned(), align)).into_iter().chain(others)
}

impl Fixes {
    /// Finds commands for what was found in a model that was read from this file and inferred.
    pub(crate) fn find(file: &Path, model: &Model, diagnostics: &Diagnostics) -> Self {
        let mut fixes = Self::default();
        let of = |has: fn(&Diagnostic) -> bool| {
            let all = diagnostics.list.iter().enumerate().filter(move |(_, diagnostic)| has(diagnostic));
            all.map(|(at, _)| at).collect::<Vec<_>>()
        };
        if !diagnostics.has_errors() {
            let command = command("infer", "", file);
            let fix = Fix { command, effect: "writes every port as inferred".to_owned(), succeeds: true };
            fixes.0.extend(of(|it| it.remedy == Some(Remedy::RefreshPorts)).into_iter().map(|at| (at, fix.clone())));
        }
        let mut left = of(|it| match it.remedy {
            Some(Remedy::Align) => true,
            Some(Remedy::OtherRules(_)) => matches!(it.code, Code::TypeMismatch | Code::UnsupportedType),
            _ => false,
        });
        // What reading found stays, whatever is aligned.
        let unread = diagnostics.list.iter().any(|it| it.is_error() && it.remedy.is_none() && it.layer.is_none());
        let known = if left.is_empty() { HashSet::new() } else { errors_of(model) };
        for (option, align) in options() {
            if left.is_empty() {
                break;
            }
            let Some(trial) = Trial::new(align, model, &known) else { continue };
            left.retain(|&at| match trial.effect_on(&diagnostics.list[at]) {
                Some(effect) => {
                    let succeeds = !unread && trial.found.is_empty();
                    let command = command("convert", &option, file);
                    fixes.0.insert(at, Fix { command, effect, succeeds });
                    false
                }
                None => true,
            });
        }
        fixes
    }

    /// What can be done about the diagnostic at this position.
    pub(crate) fn advice(&self, at: usize, diagnostic: &Diagnostic) -> Advice {
        advice(diagnostic, self.get(at))
    }

    /// The fix of the diagnostic at this position.
    pub(crate) fn get(&self, at: usize) -> Option<&Fix> {
        self.0.get(&at)
    }
}

/// Identifies an error of a model.
type Key = (Code, Option<LayerRef>);

fn key(error: &Diagnostic) -> Key {
    (error.code, error.layer.clone())
}

/// What inference finds before anything is converted.
fn errors_of(model: &Model) -> HashSet<Key> {
    typelift::infer(&mut model.clone()).iter().filter(|it| it.is_error()).map(key).collect()
}

/// What `convert` would do to a model with some options.
struct Trial<'a> {
    model: Model,
    /// The errors that are left.
    found: Vec<Diagnostic>,
    /// What was wrong before.
    known: &'a HashSet<Key>,
    inserted: HashSet<(Place, LayerId)>,
    changes: Vec<Change>,
}

impl<'a> Trial<'a> {
    fn new(align: Align, model: &Model, known: &'a HashSet<Key>) -> Option<Self> {
        let mut model = model.clone();
        let (found, changes) = typelift::infer_aligned(&mut model, align).ok()?;
        let inserted = changes.iter().filter(|change| change.action == Action::Inserted);
        let inserted = inserted.map(|change| (change.layer.place.clone(), change.layer.id)).collect();
        let found = found.into_iter().filter(Diagnostic::is_error).collect();
        Some(Self { model, found, known, inserted, changes })
    }

    /// What is done about a diagnostic of types; `None` if it is not fixed.
    fn effect_on(&self, diagnostic: &Diagnostic) -> Option<String> {
        let mended: Vec<_> = match &diagnostic.victims[..] {
            [] => diagnostic.layer.iter().collect(),
            victims => victims.iter().collect(),
        };
        let is_mended = |found: &Diagnostic| found.layer.as_ref().is_some_and(|layer| mended.contains(&layer));
        let remains = |found: &Diagnostic| found.code == diagnostic.code && is_mended(found);
        if mended.is_empty() || self.found.iter().any(|found| remains(found) || !self.known.contains(&key(found))) {
            return None;
        }
        let converts = mended.iter().flat_map(|layer| self.converts_before(layer));
        let mut effects: Vec<_> = converts.map(|(from, to)| describe(from, to)).collect();
        effects.dedup();
        if effects.is_empty() {
            Some("makes the types agree".to_owned())
        } else {
            Some(format!("inserts {}", effects.join(" and ")))
        }
    }

    /// The types of the new Converts that feed a layer.
    fn converts_before(&self, layer: &LayerRef) -> Vec<(ElementType, ElementType)> {
        let Some(graph) = self.model.graph_at(&layer.place) else { return Vec::new() };
        let producers =
            graph.producers(layer.id).into_iter().flatten().map(|output| (layer.place.clone(), output.layer));
        let new: Vec<_> = producers.filter(|producer| self.inserted.contains(producer)).collect();
        let of = |change: &&Change| new.contains(&(change.layer.place.clone(), change.layer.id));
        self.changes.iter().filter(of).map(|change| (change.from, change.to)).collect()
    }
}

/// `a Convert from i64 to f32 (rounds above 2^24)`.
fn describe(from: ElementType, to: ElementType) -> String {
    let exact_below = match to {
        ElementType::F16 => "2^11",
        ElementType::Bf16 => "2^8",
        ElementType::F32 => "2^24",
        ElementType::F64 => "2^53",
        _ => "",
    };
    let loss = match fidelity(from, to) {
        Some(fidelity) if fidelity.is_exact() => "exact".to_owned(),
        Some(fidelity) if fidelity.to_string() == "rounds" && from.is_integer() && !exact_below.is_empty() => {
            format!("rounds above {exact_below}")
        }
        Some(fidelity) => fidelity.to_string(),
        None => return format!("a Convert from {from} to {to}"),
    };
    format!("a Convert from {from} to {to} ({loss})")
}

/// A command that reads `file` and writes beside it, as it is pasted into a shell.
pub(crate) fn command(verb: &str, option: &str, file: &Path) -> String {
    let output = if file.file_name().is_some_and(|name| name == "fixed.xml") { "fixed-2.xml" } else { "fixed.xml" };
    format!("typelift {verb}{option} {} -o {output}", quoted(&file.display().to_string()))
}

/// A command that writes over `file`, as it is pasted into a shell.
pub(crate) fn command_in_place(verb: &str, file: &Path) -> String {
    format!("typelift {verb} --in-place {}", quoted(&file.display().to_string()))
}

/// A word for a shell.
pub(crate) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./+,:@%".contains(c);
    if word.starts_with('-') {
        quoted(&format!("./{word}"))
    } else if word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_can_be_pasted() {
        assert_eq!(command("convert", " --align pytorch", Path::new("a/b.xml")), {
            "typelift convert --align pytorch a/b.xml -o fixed.xml"
        });
        assert_eq!(quoted("my model.xml"), "'my model.xml'");
        assert_eq!(quoted("it's.xml"), r"'it'\''s.xml'");
        assert_eq!(quoted("-x.xml"), "./-x.xml");
    }
}
