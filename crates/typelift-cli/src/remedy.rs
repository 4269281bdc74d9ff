//! Turns the remedies that the library names into commands, each tried on the model first.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use typelift::findings::{Advice, Code, Command, Diagnostic, Diagnostics, Effect, Known, LayerRef, Remedy, shell_word};
use typelift::graph::Place;
use typelift::passes::{Action, Align, Change};
use typelift::promote::{ElementType, RuleSet, openvino};
use typelift::{LayerId, Model};

/// The commands that fix the diagnostics of a file, by position.
#[derive(Default)]
pub(crate) struct Fixes(BTreeMap<usize, Command>);

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
            let line = command("infer", "", file);
            let fix = Command { line, effect: Effect::RefreshesPorts, succeeds: true };
            fixes.0.extend(of(|it| it.remedy == Some(Remedy::RefreshPorts)).into_iter().map(|at| (at, fix.clone())));
        }
        let mut left = of(|it| match it.remedy {
            Some(Remedy::Align) => true,
            Some(Remedy::OtherRules(_)) => matches!(it.code, Code::TypeMismatch | Code::UnsupportedType),
            _ => false,
        });
        // What reading found stays, whatever is aligned.
        let unread = diagnostics.list.iter().any(|it| it.is_error() && it.remedy.is_none() && it.layer.is_none());
        let known = if left.is_empty() { Vec::new() } else { typelift::infer(&mut model.clone()) };
        let known = Known::errors(&known);
        for (option, align) in options() {
            if left.is_empty() {
                break;
            }
            let Some(trial) = Trial::new(align, model, &known) else { continue };
            left.retain(|&at| match trial.effect_on(&diagnostics.list[at]) {
                Some(effect) => {
                    let succeeds = !unread && trial.found.is_empty();
                    let line = command("convert", &option, file);
                    fixes.0.insert(at, Command { line, effect, succeeds });
                    false
                }
                None => true,
            });
        }
        fixes
    }

    /// What can be done about the diagnostic at this position.
    pub(crate) fn advice(&self, at: usize, diagnostic: &Diagnostic) -> Advice {
        Advice::for_shell(diagnostic, self.get(at))
    }

    /// The fix of the diagnostic at this position.
    pub(crate) fn get(&self, at: usize) -> Option<&Command> {
        self.0.get(&at)
    }
}

/// What `convert` would do to a model with some options.
struct Trial<'a> {
    model: Model,
    /// The errors that are left.
    found: Vec<Diagnostic>,
    /// The errors before.
    known: &'a Known,
    inserted: HashSet<(Place, LayerId)>,
    changes: Vec<Change>,
}

impl<'a> Trial<'a> {
    fn new(align: Align, model: &Model, known: &'a Known) -> Option<Self> {
        let mut model = model.clone();
        let (found, changes) = typelift::infer_aligned(&mut model, align).ok()?;
        let inserted = changes.iter().filter(|change| change.action == Action::Inserted);
        let inserted = inserted.map(|change| (change.layer.place.clone(), change.layer.id)).collect();
        let found = found.into_iter().filter(Diagnostic::is_error).collect();
        Some(Self { model, found, known, inserted, changes })
    }

    /// What is done about a diagnostic of types; `None` if it is not fixed.
    fn effect_on(&self, diagnostic: &Diagnostic) -> Option<Effect> {
        let mended: Vec<_> = match &diagnostic.victims[..] {
            [] => diagnostic.layer.iter().collect(),
            victims => victims.iter().collect(),
        };
        let is_mended = |found: &Diagnostic| found.layer.as_ref().is_some_and(|layer| mended.contains(&layer));
        let remains = |found: &Diagnostic| found.code == diagnostic.code && is_mended(found);
        if mended.is_empty() || self.found.iter().any(remains) || !self.known.compare(&self.found).new.is_empty() {
            return None;
        }
        let converts: Vec<_> = mended.iter().flat_map(|layer| self.converts_before(layer)).collect();
        Some(if converts.is_empty() { Effect::MakesTypesAgree } else { Effect::InsertsConverts(converts) })
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

/// A command that reads `file` and writes beside it, as it is pasted into a shell.
pub(crate) fn command(verb: &str, option: &str, file: &Path) -> String {
    let output = if file.file_name().is_some_and(|name| name == "fixed.xml") { "fixed-2.xml" } else { "fixed.xml" };
    format!("typelift {verb}{option} {} -o {output}", shell_word(&file.display().to_string()))
}

/// A command that writes over `file`, as it is pasted into a shell.
pub(crate) fn command_in_place(verb: &str, file: &Path) -> String {
    format!("typelift {verb} --in-place {}", shell_word(&file.display().to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_can_be_pasted() {
        assert_eq!(command("convert", " --align pytorch", Path::new("a/b.xml")), {
            "typelift convert --align pytorch a/b.xml -o fixed.xml"
        });
    }
}
