//! Programs that load a model, and what they require of it.
//!
//! openvino.genai, OpenVINO Model Server, Model API and optimum-intel find inputs, outputs, variables, metadata and
//! files by name. Each requirement is a row of a table. A broken one is a finding, with statements that repair the model
//! if some were tried and do.

mod demands;
mod facts;
mod faults;
mod parts;
mod rules;

use std::collections::BTreeSet;
use std::path::Path;

use self::facts::Facts;
use self::faults::Fault;
use self::parts::Part;
pub use self::parts::{Pipeline, Program};
use self::rules::{Demand, Form, RULES, Rule};
use crate::findings::{About, Code, Diagnostic, Fix, FixAction, LayerRef, Severity, SubjectKind, Text, message};
use crate::model::graph::{Model, Place};
use crate::rewrite::Script;
use crate::text::xml;

/// Returns the findings of an [inferred](crate::infer()) model for a program: one for each requirement that it breaks.
/// `file` is the path of the model, beside which the program looks for other files; `None` if it has none.
///
/// A finding is an error if the program refuses the model by default. It is a warning if the program computes something
/// else without a message, or if only another backend refuses it.
///
/// # Examples
/// ```
/// use typelift::{programs, Model};
/// let mut model = Model::from_text(r#"
///     tokens = Parameter : i64[?,?] "tokens"
///     mask = Parameter : i64[?,?] "attention_mask"
///     weights = Const([[1, 2], [3, 4]]) : f32[2,2]
///     axis = Const(0) : i64[]
///     hidden = Gather-8(weights, tokens, axis) : f32[?,?,2] "last_hidden_state"
///     r = Result(hidden)
/// "#)?;
/// typelift::infer(&mut model);
/// let found = programs::check(&model, "genai:embedding".parse()?, None);
/// let message = "TextEmbeddingPipeline sets the input `input_ids`, and the model has `tokens`";
/// assert_eq!(found[0].message.to_string(), message);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub fn check(model: &Model, program: Program, file: Option<&Path>) -> Vec<Diagnostic> {
    let check = PartCheck::new(model, program, file);
    let faults = check.faults();
    faults.iter().map(|(rule, fault)| check.finding(rule, fault, &faults)).collect()
}

/// Returns the part that a model seems to play in openvino.genai: `llm`, `whisper, encoder`. `None` if it fits none.
#[must_use]
pub fn fitting_part(model: &Model, file: Option<&Path>) -> Option<String> {
    let check = PartCheck::new(model, Program::GenAi(None), file);
    let fits = check.part != Part::Other
        && !check.faults().iter().any(|(rule, _)| rule.kind != SubjectKind::File && rule.severity == Severity::Error);
    fits.then(|| check.part.to_string())
}

struct PartCheck<'a> {
    facts: Facts<'a>,
    program: Program,
    part: Part,
}

type BrokenRules = Vec<(&'static Rule, Fault)>;

impl<'a> PartCheck<'a> {
    fn new(model: &'a Model, program: Program, file: Option<&'a Path>) -> Self {
        let facts = Facts::new(model, file);
        let part = Part::of(program, &facts);
        Self { facts, program, part }
    }

    fn faults(&self) -> BrokenRules {
        let mut found: BrokenRules = Vec::new();
        let mut explained = Vec::new();
        for rule in RULES.iter().filter(|rule| rule.parts.contains(&self.part)) {
            // A second rule about the same file or key has the same cause.
            let is_known = |name: &str| {
                let of_text = matches!(rule.kind, SubjectKind::File | SubjectKind::Key | SubjectKind::State);
                of_text && found.iter().any(|(known, fault)| known.kind == rule.kind && fault.name == name)
            };
            let faults = demands::of(rule, self.part.loader(), &self.facts, &explained);
            let faults: Vec<_> = faults.into_iter().filter(|fault| !is_known(&fault.name)).collect();
            explained.extend(faults.iter().flat_map(|fault| fault.explains.iter().copied()));
            let new = faults.into_iter().map(|fault| (rule, fault));
            found.extend(new);
        }
        found
    }

    fn has_company(&self) -> bool {
        let files = RULES.iter().filter(|rule| rule.parts.contains(&self.part)).filter_map(|rule| match rule.demand {
            Demand::OneOf(files) => Some(files),
            _ => None,
        });
        files.flatten().any(|file| self.facts.has_file(file)) || self.facts.stem().starts_with("openvino_")
    }

    fn finding(&self, rule: &Rule, fault: &Fault, all: &BrokenRules) -> Diagnostic {
        let model = self.facts.model;
        let about = About::Subject { kind: rule.kind, name: fault.name.clone() };
        let mut found = Diagnostic::new(code_of(rule.kind), fault.message.clone()).about(about);
        found.severity = fault.severity.unwrap_or(rule.severity);
        if rule.kind == SubjectKind::File
            && fault.severity.is_none()
            && found.severity == Severity::Error
            && !self.has_company()
        {
            found.severity = Severity::Warning;
        }
        if let Some(layer) = fault.layer.and_then(|id| model.graph.layer(id)) {
            let span = xml::locate(model.source(), layer.span().unwrap_or_default(), "layer", "name");
            found = found.at(span, message!("for {}"; self.part.loader()));
            found.layer = Some(LayerRef::of(&Place::default(), layer));
        }
        let found = match rule.otherwise.starts_with('`') {
            true => found.note(message!("{} prints {}"; self.part.loader(), Text(rule.otherwise))),
            false => found.note(Text(rule.otherwise)),
        };
        match (self.repair(rule, fault, all), &fault.advice) {
            (Some(statements), _) => found.help(Fix::possible(FixAction::Statements(statements))),
            (None, Some(advice)) => found.help(advice.clone()),
            (None, None) => found,
        }
    }

    fn repair(&self, rule: &Rule, fault: &Fault, all: &BrokenRules) -> Option<Vec<String>> {
        let address = fault.address.as_deref();
        let of_rule = rule.repairs.iter().filter(|script| address.is_some() || !script.contains("{}"));
        let of_rule = of_rule.map(|script| script.replace("{}", address.unwrap_or_default()));
        let scripts = fault.scripts.iter().cloned().chain(of_rule);
        let mut scripts = scripts.filter(|script| self.removes(script.trim(), rule, fault, all));
        Some(scripts.next()?.trim().lines().map(str::to_owned).collect())
    }

    fn removes(&self, script: &str, rule: &Rule, fault: &Fault, all: &BrokenRules) -> bool {
        let Ok(script) = script.parse::<Script>() else { return false };
        let Ok((model, _)) = script.run(self.facts.model.clone()) else { return false };
        let after = PartCheck::new(&model, self.program, self.facts.file).faults();
        let weighs = |(rule, fault): &&(&Rule, Fault)| fault.severity.unwrap_or(rule.severity) > Severity::Note;
        !after.iter().any(|it| std::ptr::eq(it.0, rule) && it.1.name == fault.name)
            && !after.iter().filter(weighs).any(|(_, left)| !all.iter().any(|(_, known)| known.name == left.name))
    }
}

impl Rule {
    fn requirement(&self) -> String {
        let name = self.name;
        match &self.demand {
            Demand::Exists(like) => format!("`{name}`, {like}, is there"),
            Demand::Type(types) => {
                format!("`{name}` is {}", types.iter().map(|ty| ty.name()).collect::<Vec<_>>().join(" or "))
            }
            Demand::Rank(ranks) => {
                let ranks: Vec<_> = ranks.iter().map(ToString::to_string).collect();
                format!("`{name}` has rank {}", ranks.join(" or "))
            }
            Demand::Open(axes) => {
                let axes: Vec<_> = axes.iter().map(ToString::to_string).collect();
                format!("dimension {} of `{name}` is open", axes.join(" and "))
            }
            Demand::Only => format!("`{name}` is the only output"),
            Demand::NoOther(known) => format!("no other inputs than `{}`", known.join("`, `")),
            Demand::Named => {
                format!("each {} has a tensor name", if self.kind == SubjectKind::Input { "input" } else { "output" })
            }
            Demand::Value(form) => match form {
                Form::Text => format!("`{name}` is there"),
                Form::Integer => format!("`{name}` is an integer"),
                Form::Number => format!("`{name}` is a number"),
                Form::Numbers => format!("`{name}` are numbers separated by spaces"),
                Form::Flag => format!("`{name}` is `True` or `YES`, if it is to be true"),
                Form::Word(words) => format!("`{name}` is one of {}", words.join(", ")),
            },
            Demand::OneOf(files) => format!("`{}` is there", files.join("` or `")),
            Demand::Fact(text, _) => (*text).to_owned(),
        }
    }
}

/// Returns the requirements whose violations have this code, as a list in Markdown; empty for other codes. Requirements with
/// the same consequence share a line.
#[must_use]
pub fn requirements(code: Code) -> String {
    let mut lines: Vec<(String, String, Vec<String>)> = Vec::new();
    for rule in RULES.iter().filter(|rule| code_of(rule.kind) == code) {
        let (parts, otherwise) = (named(rule.parts), format!("Otherwise ({}) {}", rule.severity, rule.otherwise));
        match lines.iter_mut().find(|(its, end, _)| *its == parts && *end == otherwise) {
            Some((.., all)) => all.push(rule.requirement()),
            None => lines.push((parts, otherwise, vec![rule.requirement()])),
        }
    }
    lines.into_iter().map(|(parts, otherwise, all)| format!("- {parts}: {}. {otherwise}\n", all.join("; "))).collect()
}

/// Names the parts of a rule. All parts of a program have its name.
fn named(parts: &[Part]) -> String {
    let all: BTreeSet<_> = RULES.iter().flat_map(|rule| rule.parts).map(ToString::to_string).collect();
    let names: Vec<_> = parts.iter().map(ToString::to_string).collect();
    let mut named = Vec::new();
    for name in &names {
        let program = name.split(", ").next().unwrap_or_default();
        let is_of_it = |other: &&String| other.split(", ").next() == Some(program);
        let is_whole = all.iter().filter(is_of_it).count() == names.iter().filter(is_of_it).count();
        named.push(if is_whole { program } else { name.as_str() });
    }
    named.dedup();
    named.join("; ")
}

fn code_of(kind: SubjectKind) -> Code {
    match kind {
        SubjectKind::File => Code::ProgramFile,
        SubjectKind::Key => Code::ProgramKey,
        SubjectKind::Input => Code::ProgramInput,
        SubjectKind::Output => Code::ProgramOutput,
        SubjectKind::State => Code::ProgramState,
    }
}
