//! Scripts of statements, one per line: rules, and edits of a model's inputs and outputs.

mod act;
pub(crate) mod effect;
mod ends;
mod expression;
mod lora;
mod names;
mod state;
mod statement;

use std::ops::Range;
use std::path::Path;
use std::str::FromStr;

use thiserror::Error;

use self::expression::Lets;
use self::statement::{Statement, Touches};
use super::apply::count;
use super::parse::{Definitions, starts_clause};
use super::{Lossy, Report, RewriteError, Rule};
use crate::base::hash::HashSet;
use crate::base::names::nearest;
use crate::edit::variables;
use crate::findings::{Diagnostic, Known};
use crate::model::graph::{Layer, Model};
use crate::ops::LayerKind;
use crate::rewrite::notation::{Cursor, NotationError};

/// Script: a list of statements that can be applied to a model, and again to later exports of it.
///
/// ```
/// use typelift::Model;
/// use typelift::rewrite::Script;
/// let script: Script = "
///     input  x : u8[1,3]                     # the model gets this, and converts inside
///     before x : Divide(Convert(_) {destination_type=f32}, 255)
///     rename r scores
///     square: Power(x, 2) => Multiply(x, x)
///     expect square 1..
/// ".parse()?;
/// let model = Model::from_text("
///     x = Parameter : f32[1,3]
///     two = Const(2) : f32[]
///     y = Power(x, two)
///     r = Result(y)
/// ")?;
/// let (model, report) = script.run(model)?;
/// assert_eq!(report.applied.len(), 1);
/// assert_eq!(model.to_string().lines().next(), Some("0 x = Parameter : u8[1,3]"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Script {
    statements: Vec<Statement>,
    rules: Vec<Rule>,
    definitions: Definitions,
}

/// Reason why statements were not applied.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ScriptError {
    /// A statement names something that does not exist, or that is ambiguous.
    #[error("{statement}: {reason}")]
    Statement {
        /// The statement.
        statement: String,
        /// The reason why it is impossible.
        reason: String,
    },
    /// A rule cannot be applied.
    #[error(transparent)]
    Rule(#[from] RewriteError),
    /// The number of applications of a rule differs from the expected one.
    #[error("rule `{rule}` was applied {found} times, but {expected} were expected")]
    Unexpected {
        /// The rule.
        rule: String,
        /// The number of applications.
        found: usize,
        /// The expected number.
        expected: String,
    },
}

impl FromStr for Script {
    type Err = NotationError;

    fn from_str(text: &str) -> Result<Self, NotationError> {
        let mut script = Self::default();
        script.read_lines(text)?;
        for Statement { name, .. } in script.expectations() {
            if !script.rules.iter().any(|rule| rule.name() == name) {
                let at = text.find(name.as_str()).unwrap_or_default();
                let error = Cursor::new(text).error(at..at + name.len(), format!("no rule is named `{name}`"));
                let names = script.rules.iter().map(Rule::name);
                let error = error.with_help(format!("write `{name}: PATTERN => REPLACEMENT`"));
                return Err(error.with_near(nearest(name, names)));
            }
        }
        Ok(script)
    }
}

/// The statements of a text. There is one per line; a line after an open bracket or a trailing `=>` continues
/// the statement.
fn lines(text: &str) -> Vec<Range<usize>> {
    let (mut found, mut start, mut depth, mut quoted) = (Vec::new(), 0, 0_usize, false);
    let mut comment = false;
    let mut before = ' ';
    for (at, c) in text.char_indices().chain([(text.len(), '\n')]) {
        match c {
            '\n' => {
                quoted = false;
                comment = false;
                let line = text[start..at].trim_end();
                if depth == 0 && !goes_on(line, text.get(at + 1..).unwrap_or_default()) {
                    if !Cursor::within(text, start..at).is_done() {
                        found.push(start..start + line.len());
                    }
                    start = (at + 1).min(text.len());
                }
            }
            _ if comment => {}
            '#' if before.is_whitespace() && !quoted => comment = true,
            '"' if before != '\\' => quoted = !quoted,
            '(' | '[' | '{' if !quoted => depth += 1,
            ')' | ']' | '}' if !quoted => depth = depth.saturating_sub(1),
            _ => {}
        }
        before = c;
    }
    if !Cursor::within(text, start..text.len()).is_done() {
        found.push(start..text.len());
    }
    found
}

fn goes_on(line: &str, after: &str) -> bool {
    let mut next = after.lines().map(str::trim_start).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let next = next.next().unwrap_or_default();
    let has_names = line.split_whitespace().any(|word| word == "where");
    let is_name = || {
        let (name, value) = next.split_once('=').unwrap_or_default();
        let is_name = |c: char| c.is_alphanumeric() || "_ ,.()".contains(c);
        !value.starts_with(['=', '>']) && !name.trim().is_empty() && name.chars().all(is_name)
    };
    line.ends_with("=>") || line.ends_with([',', '|']) || starts_clause(next) || has_names && is_name()
}

impl Script {
    /// Appends the statements, rules and definitions of a text, which can use the definitions before it.
    pub(super) fn read_lines(&mut self, text: &str) -> Result<(), NotationError> {
        lines(text).into_iter().try_for_each(|range| self.read(text, range))
    }

    /// Appends rules to those of the script.
    #[must_use]
    pub fn with_rules(mut self, rules: impl IntoIterator<Item = Rule>) -> Self {
        self.rules.extend(rules);
        self
    }

    /// Returns its rules.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// The ways to write a statement that begins with a word, as errors print them: ``cut TENSOR`, `cut A .. B``.
    /// `None` if no statement begins so.
    ///
    /// ```
    /// use typelift::rewrite::Script;
    /// assert_eq!(Script::form("freeze"), Some("freeze INPUT = EXPRESSION"));
    /// ```
    pub fn form(word: &str) -> Option<&'static str> {
        statement::form(word)
    }

    /// Returns the number of statements that edit the model, without rules and expectations.
    pub fn edits(&self) -> usize {
        self.statements.len() - self.expectations().count()
    }

    fn expectations(&self) -> impl Iterator<Item = &Statement> {
        self.statements.iter().filter(|statement| statement.expected.is_some())
    }

    /// Iterates over the files that it reads when it runs.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        self.statements.iter().flat_map(Statement::files)
    }

    /// True if it changes the inputs and outputs of the model, and not only its computation.
    pub fn edits_interface(&self) -> bool {
        self.statements.iter().any(|statement| statement.kind.touches == Touches::InputsAndOutputs)
    }

    /// Returns the names of the inputs that it adds to a model and that no layer uses.
    ///
    /// # Examples
    /// ```
    /// use typelift::Model;
    /// use typelift::rewrite::Script;
    /// let model = Model::from_text("x = Parameter : f32[2]\ny = Relu(x)\nz = Result(y)")?;
    /// let script: Script = "add input beam_idx : i32[?]".parse()?;
    /// let (model, _) = script.run(model)?;
    /// assert_eq!(script.unused_inputs(&model), ["beam_idx"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn unused_inputs<'m>(&self, model: &'m Model) -> Vec<&'m str> {
        let adds_inputs = self.statements.iter().filter(|it| it.kind.word == "add" && it.value.is_none());
        let added: HashSet<_> = adds_inputs.map(|it| it.name.as_str()).collect();
        let is_unused = |layer: &&Layer| model.graph().users(layer.id()).next().is_none();
        model.inputs().filter(|layer| added.contains(layer.name())).filter(is_unused).map(Layer::name).collect()
    }

    /// Applies the statements in their order, then the rules until none matches.
    ///
    /// # Errors
    /// [`ScriptError`]. The model is consumed, which saves a copy.
    pub fn run(&self, mut model: Model) -> Result<(Model, Report), ScriptError> {
        let written = variables(model.graph(), LayerKind::Assign);
        let mut lets = Lets::default();
        for Statement { kind, name, value, .. } in &self.statements {
            match (kind.word, value) {
                ("input", _) => drop(lets.inputs.insert(name.clone())),
                ("before", Some(value)) => drop(lets.befores.entry(name.clone()).or_insert(value.clone())),
                _ => {}
            }
        }
        let (mut effects, mut lossy, mut errors) = (Vec::new(), Vec::new(), None);
        if self.edits() > 0 {
            let known = Known::errors(&crate::infer(&mut model));
            for statement in self.statements.iter().filter(|statement| statement.expected.is_none()) {
                let before = (statement.kind.touches == Touches::InputsAndOutputs).then(|| effect::Before::new(&model));
                let done = statement.apply(&mut model, &mut lets);
                done.map_err(|reason| ScriptError::Statement { statement: statement.text.clone(), reason })?;
                let losses = lets.losses.take();
                let unused = lets.unused.take();
                if !losses.is_empty() || !unused.is_empty() {
                    lossy.push(Lossy { statement: statement.text.clone(), losses, unused });
                }
                let found = crate::infer(&mut model);
                if let Some(new) = known.compare(&found).new.first() {
                    return Err(ScriptError::Statement { statement: statement.text.clone(), reason: describe(new) });
                }
                errors = Some(count(&found));
                effects.extend(before.and_then(|before| before.compare(&model, statement.text.clone())));
            }
        }
        let (mut model, mut report) = model.rewritten(&self.rules, &lets.tensors)?;
        lets.sweep(&mut model);
        debug_assert!(keeps_state(&written, &model), "a variable is read and no longer written:\n{model}");
        report.statements = effects;
        report.lossy = lossy;
        report.errors = report.errors.or(errors);
        for Statement { name, expected, .. } in self.expectations() {
            let found = report.applied.iter().filter(|site| site.rule == *name).count();
            let Some(expected) = expected.as_ref().filter(|expected| !expected.contains(&found)) else { continue };
            let expected = match (expected.start(), expected.end()) {
                (least, most) if least == most => format!("{least} times"),
                (least, &usize::MAX) => format!("{least} times or more"),
                (least, most) => format!("{least} to {most} times"),
            };
            return Err(ScriptError::Unexpected { rule: name.clone(), found, expected });
        }
        Ok((model, report))
    }
}

/// True if each of these variables is still written, or is not read any more. A variable that is only read would have
/// its first value in every run.
fn keeps_state(written: &HashSet<String>, model: &Model) -> bool {
    let [read, now] = [LayerKind::ReadValue, LayerKind::Assign].map(|kind| variables(model.graph(), kind));
    written.iter().all(|variable| now.contains(variable) || !read.contains(variable))
}

fn describe(error: &Diagnostic) -> String {
    let place = error.layer.as_ref().map(|layer| format!(" ({layer})"));
    format!("{}{}", error.message, place.unwrap_or_default())
}
