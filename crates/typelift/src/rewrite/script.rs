//! Statements, one a line: rules, and edits of what a model takes and gives.

use std::ops::Range;
use std::str::FromStr;

use thiserror::Error;
use typelift_promote::ElementType;

use super::build::{Added, Build};
use super::matching::Bound;
use super::parse::{Definitions, expression, starts_clause};
use super::term::{Name, Side};
use super::{Report, RewriteError, Rule};
use crate::diagnostic::{Diagnostic, LayerRef};
use crate::graph::{EditError, Input, LayerId, Model, Output};
use crate::interface::InterfaceError;
use crate::marks::Spelling;
use crate::notation::{Cursor, NotationError, closest, tensor_type};
use crate::ops::{self, LayerKind};
use crate::precision::{self, KeepPattern, Kept};
use crate::shape::Shape;

/// Statements to apply to a model, and again to the next export of it.
///
/// ```
/// use typelift::{Model, rewrite::Script};
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

#[derive(Clone, Debug)]
enum Statement {
    Rename { old: String, new: String },
    Input { name: String, element_type: ElementType, shape: Option<Shape> },
    Before { name: String, side: Side },
    Output { name: String, element_type: ElementType },
    After { name: String, side: Side },
    Cut { name: String },
    Keep { patterns: Vec<KeepPattern>, marks: bool },
    Expect { name: String, least: usize, most: usize },
}

/// Why statements were not applied.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ScriptError {
    /// A statement is about something that is not there, or that is there more than once.
    #[error("{statement}: {reason}")]
    Statement {
        /// The statement.
        statement: String,
        /// Why it cannot be done.
        reason: String,
    },
    /// A rule cannot be applied.
    #[error(transparent)]
    Rule(#[from] RewriteError),
    /// A rule did not apply as often as it must.
    #[error("rule `{rule}` was applied {found} times, and must be {expected}")]
    Unexpected {
        /// The rule.
        rule: String,
        /// How often it was applied.
        found: usize,
        /// How often it must be.
        expected: String,
    },
}

const WORDS: [&str; 10] = ["rename", "input", "before", "output", "after", "cut", "keep", "unkeep", "expect", "def"];

impl FromStr for Script {
    type Err = NotationError;

    fn from_str(text: &str) -> Result<Self, NotationError> {
        let mut script = Self::default();
        for range in lines(text) {
            script.statement(text, range)?;
        }
        for statement in &script.statements {
            let Statement::Expect { name, .. } = statement else { continue };
            if !script.rules.iter().any(|rule| rule.name() == name) {
                let at = text.find(name.as_str()).unwrap_or_default();
                let error = Cursor::new(text).error(at..at + name.len(), format!("no rule is named `{name}`"));
                let names = script.rules.iter().map(Rule::name);
                return Err(match closest(name, names) {
                    Some(near) => error.with_help(format!("did you mean `{near}`?")),
                    None => error.with_help(format!("write `{name}: PATTERN => REPLACEMENT`")),
                });
            }
        }
        Ok(script)
    }
}

/// The statements of a text: a line each, and those that a bracket or an `=>` at the end carries on.
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

/// Whether a statement goes on after this, with what follows it.
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
    /// Adds rules after those of the script.
    #[must_use]
    pub fn with_rules(mut self, rules: impl IntoIterator<Item = Rule>) -> Self {
        self.rules.extend(rules);
        self
    }

    /// Its rules.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// How many of its statements are edits, and not rules or what is expected of them.
    pub fn edits(&self) -> usize {
        self.statements.iter().filter(|statement| !matches!(statement, Statement::Expect { .. })).count()
    }

    /// Whether it changes what the model takes and gives, and not only what it computes with.
    pub fn edits_interface(&self) -> bool {
        self.statements.iter().any(|statement| {
            !matches!(statement, Statement::Expect { .. } | Statement::Rename { .. } | Statement::Keep { .. })
        })
    }

    fn statement(&mut self, text: &str, range: Range<usize>) -> Result<(), NotationError> {
        let mut cursor = Cursor::within(text, range.clone());
        cursor.skip_space();
        let start = cursor.at;
        let word = cursor.word();
        let is_statement = cursor.peek().is_none_or(char::is_whitespace) && !cursor.sees("=>");
        let statement = match word {
            "def" if is_statement => return self.definitions.read(text, cursor.at..range.end),
            "rename" if is_statement => {
                Statement::Rename { old: cursor.name("the old name")?, new: cursor.name("the new name")? }
            }
            "input" if is_statement => {
                let name = name_before_colon(&mut cursor)?;
                let (element_type, shape) = tensor_type(&mut cursor)?;
                Statement::Input { name, element_type, shape }
            }
            "output" if is_statement => {
                let name = name_before_colon(&mut cursor)?;
                Statement::Output { name, element_type: tensor_type(&mut cursor)?.0 }
            }
            "before" | "after" if is_statement => {
                let name = name_before_colon(&mut cursor)?;
                let side = expression(text, cursor.at..range.end)?;
                cursor.at = range.end;
                if word == "before" { Statement::Before { name, side } } else { Statement::After { name, side } }
            }
            "keep" if is_statement => {
                let (start, ty) = (cursor.at, cursor.name("f32")?);
                if ty != "f32" {
                    let error = cursor.error(start..cursor.at, format!("layers are kept in f32, not in {ty}"));
                    return Err(error.with_help("write `keep f32 NAME`: OpenVINO has no mark for another type"));
                }
                Statement::Keep { patterns: patterns(&mut cursor)?, marks: true }
            }
            "unkeep" if is_statement => Statement::Keep { patterns: patterns(&mut cursor)?, marks: false },
            "cut" if is_statement => Statement::Cut { name: cursor.name("a tensor")? },
            "expect" if is_statement => {
                let name = cursor.name("the name of a rule")?;
                let (least, most) = bounds(&mut cursor)?;
                Statement::Expect { name, least, most }
            }
            _ => {
                cursor.at = start;
                return self.rule(text, cursor, range);
            }
        };
        if !cursor.is_done() {
            return Err(cursor.expected("the end of the line"));
        }
        self.statements.push(statement);
        Ok(())
    }

    /// `[NAME:] PATTERN => REPLACEMENT`
    fn rule(&mut self, text: &str, mut cursor: Cursor, range: Range<usize>) -> Result<(), NotationError> {
        let start = cursor.at;
        let name = cursor.run(|c| c.is_alphanumeric() || "_-./".contains(c));
        let rest = &text[start..range.end];
        let is_rule = rest.contains("=>") || rest.contains('(') || ["try", "once"].contains(&name);
        if let (false, Some(near)) = (is_rule, closest(name, WORDS)) {
            let error = cursor.error(start..start + name.len(), format!("`{name}` is not a statement"));
            return Err(error.with_help(format!("did you mean `{near}`?")));
        }
        self.rules.push(Rule::read(text, start..range.end, &self.definitions)?);
        Ok(())
    }

    /// Applies the statements in their order, then the rules until none matches.
    ///
    /// # Errors
    /// [`ScriptError`]; the model is gone then, so that it need not be kept twice.
    pub fn run(&self, mut model: Model) -> Result<(Model, Report), ScriptError> {
        let interface = self.statements.iter().filter(|statement| !matches!(statement, Statement::Expect { .. }));
        if interface.clone().next().is_some() {
            let known = faults(&crate::infer(&mut model));
            for statement in interface {
                self.edit(&mut model, statement)?;
                let new = faults(&crate::infer(&mut model)).into_iter().find(|fault| !known.contains(fault));
                if let Some(reason) = new {
                    return Err(ScriptError::Statement { statement: statement.text(), reason });
                }
            }
        }
        let (model, report) = model.rewritten(&self.rules)?;
        for statement in &self.statements {
            let Statement::Expect { name, least, most } = statement else { continue };
            let found = report.applied.iter().filter(|site| site.rule == *name).count();
            if !(*least..=*most).contains(&found) {
                let expected = match (least, most) {
                    (least, most) if least == most => format!("{least} times"),
                    (least, &usize::MAX) => format!("{least} times or more"),
                    (least, most) => format!("{least} to {most} times"),
                };
                return Err(ScriptError::Unexpected { rule: name.clone(), found, expected });
            }
        }
        Ok((model, report))
    }

    fn edit(&self, model: &mut Model, statement: &Statement) -> Result<(), ScriptError> {
        let done = match statement {
            Statement::Rename { old, new } => rename(model, old, new),
            Statement::Input { name, element_type, shape } => {
                let before = self.statements.iter().find_map(|other| match other {
                    Statement::Before { name: same, side } if same == name => Some(side),
                    _ => None,
                });
                match before {
                    Some(side) => before_input(model, name, Some((*element_type, shape.clone())), side),
                    None => retype_input(model, name, *element_type, shape.as_ref()),
                }
            }
            Statement::Before { name, side } => {
                let with_input =
                    |other: &Statement| matches!(other, Statement::Input { name: same, .. } if same == name);
                if self.statements.iter().any(with_input) { Ok(()) } else { before_input(model, name, None, side) }
            }
            Statement::Output { name, element_type } => {
                model.convert_output(name, *element_type).map(|_| ()).map_err(|error| unknown(model, name, &error))
            }
            Statement::After { name, side } => after(model, name, side),
            Statement::Cut { name } => {
                tensor(model, name).and_then(|tensor| model.edit(|edit| edit.cut(tensor)).map(|_| ()).map_err(text_of))
            }
            Statement::Keep { patterns, marks } => keep(model, patterns, *marks),
            Statement::Expect { .. } => Ok(()),
        };
        done.map_err(|reason| ScriptError::Statement { statement: statement.text(), reason })
    }
}

impl Statement {
    /// How an error calls it.
    fn text(&self) -> String {
        match self {
            Self::Rename { old, new } => format!("rename {old} {new}"),
            Self::Input { name, element_type, shape } => {
                format!("input {name} : {element_type}{}", shape.as_ref().map(ToString::to_string).unwrap_or_default())
            }
            Self::Before { name, .. } => format!("before {name}"),
            Self::Output { name, element_type } => format!("output {name} : {element_type}"),
            Self::After { name, .. } => format!("after {name}"),
            Self::Cut { name } => format!("cut {name}"),
            Self::Keep { patterns, marks } => {
                let patterns: Vec<_> = patterns.iter().map(ToString::to_string).collect();
                format!("{} {}", if *marks { "keep f32" } else { "unkeep" }, patterns.join(" "))
            }
            Self::Expect { name, .. } => format!("expect {name}"),
        }
    }
}

fn faults(diagnostics: &[Diagnostic]) -> Vec<String> {
    let errors = diagnostics.iter().filter(|diagnostic| diagnostic.is_error());
    let place = |layer: &LayerRef| format!(" (layer {} `{}`)", layer.id, layer.name);
    errors.map(|error| format!("{}{}", error.message, error.layer.as_ref().map(place).unwrap_or_default())).collect()
}

/// The patterns up to the end of a statement: one at least.
fn patterns(cursor: &mut Cursor) -> Result<Vec<KeepPattern>, NotationError> {
    let mut patterns = vec![KeepPattern::from(cursor.name("a layer")?.as_str())];
    while !cursor.is_done() {
        patterns.push(KeepPattern::from(cursor.name("a layer")?.as_str()));
    }
    Ok(patterns)
}

/// Marks layers to be computed in f32, or takes such marks away.
fn keep(model: &mut Model, patterns: &[KeepPattern], marks: bool) -> Result<(), String> {
    let kept = Kept::find(model, patterns).map_err(|error| error.to_string())?;
    let done = if marks { precision::mark(model, &kept, Spelling::Both) } else { precision::unmark(model, &kept) };
    done.map(|_| ()).map_err(text_of)
}

fn text_of(error: EditError) -> String {
    error.to_string()
}

/// A name and the colon after it, which may follow without a space.
fn name_before_colon(cursor: &mut Cursor) -> Result<String, NotationError> {
    let name = cursor.name("a name")?;
    if cursor.eat(":") {
        return Ok(name);
    }
    match name.strip_suffix(':') {
        Some(name) if !name.is_empty() => Ok(name.to_owned()),
        _ => match name.rsplit_once(':') {
            Some((name, rest)) if !name.is_empty() && !name.ends_with(':') => {
                cursor.at -= rest.len() + cursor.text[..cursor.at].len() - cursor.text[..cursor.at].trim_end().len();
                Ok(name.to_owned())
            }
            _ => Err(cursor.expected("`:`")),
        },
    }
}

/// `1`, `1..`, `..3`, `1..3`
fn bounds(cursor: &mut Cursor) -> Result<(usize, usize), NotationError> {
    cursor.skip_space();
    let start = cursor.at;
    let text = cursor.run(|c| !c.is_whitespace());
    let parse = |text: &str, open: usize| if text.is_empty() { Some(open) } else { text.parse().ok() };
    let bounds = match text.split_once("..") {
        Some((least, most)) => parse(least, 0).zip(parse(most, usize::MAX)),
        None => text.parse().ok().map(|count| (count, count)),
    };
    bounds
        .filter(|(least, most)| least <= most && !text.is_empty())
        .ok_or_else(|| cursor.error(start..cursor.at, "expected how often: `1`, `1..` or `1..3`"))
}

/// A tensor of the model's own graph.
fn tensor(model: &Model, name: &str) -> Result<Output, String> {
    let result = model.graph().tensor(name).or_else(|error| {
        let result = model.find_output(name).ok();
        let source = result.and_then(|result| model.graph().producer(result.input(0)));
        source.ok_or(error)
    });
    let found = result.map_err(|error| with_suggestion(model, name, error.to_string()))?;
    // A Result is known by the tensor that feeds it.
    let is_result = model.graph().layer(found.layer).is_some_and(|layer| ops::kind(layer) == LayerKind::Result);
    let source = model.graph().producer(found.layer.input(0)).filter(|_| is_result);
    Ok(source.unwrap_or(found))
}

fn unknown(model: &Model, name: &str, error: &InterfaceError) -> String {
    with_suggestion(model, name, error.to_string())
}

fn with_suggestion(model: &Model, name: &str, message: String) -> String {
    let layers = model.graph().layers();
    let names = layers.flat_map(|layer| {
        layer.outputs().iter().flat_map(|port| port.names()).chain([layer.name().to_owned()]).collect::<Vec<_>>()
    });
    let names: Vec<_> = names.filter(|known| known != name).collect();
    match closest(name, names.iter().map(String::as_str)) {
        Some(near) => format!("{message}; did you mean `{near}`?"),
        None => message,
    }
}

/// Gives whatever has this name another one.
fn rename(model: &mut Model, old: &str, new: &str) -> Result<(), String> {
    let renamed = model.edit(|edit| edit.rename(old, new));
    renamed.map_err(|error| with_suggestion(model, old, error.to_string()))
}

fn retype_input(model: &mut Model, name: &str, ty: ElementType, shape: Option<&Shape>) -> Result<(), String> {
    let id = model.find_input(name).map_err(|error| unknown(model, name, &error))?;
    let port = model.graph().output(id.output(0)).map(|port| (port.element_type(), port.shape().clone()));
    if let Some(shape) = shape.filter(|shape| port.as_ref().is_none_or(|(_, old)| old != *shape)) {
        model.set_input(name, None, Some(shape)).map_err(|error| error.to_string())?;
        // What the shape breaks is found once all statements are applied.
        let _found_later = crate::infer(model);
    }
    if port.is_none_or(|(old, _)| old != ty) {
        model.convert_input(name, ty).map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// Computes what the model had at an input from what it is given now.
fn before_input(
    model: &mut Model,
    name: &str,
    given: Option<(ElementType, Option<Shape>)>,
    side: &Side,
) -> Result<(), String> {
    let id = model.find_input(name).map_err(|error| unknown(model, name, &error))?;
    let made = id.output(0);
    let port = model.graph().output(made).ok_or("it does not have an output")?;
    let (old_type, old_shape) = (port.element_type(), port.shape().clone());
    let edited = model.edit(|edit| {
        if let Some((ty, shape)) = given {
            let shape = shape.unwrap_or_else(|| old_shape.clone());
            edit.set_attribute(id, "element_type", ty.name())?;
            edit.set_attribute(id, "shape", shape.to_attribute().to_string())?;
        }
        let uses: Vec<_> = edit.consumers(made).collect();
        let new = compute(edit, side, made)?;
        let port = edit.output(new).ok_or(EditError::NoOutput(new))?;
        if port.element_type() != old_type || !port.shape().is_compatible(&old_shape) {
            let (is, shape) = (port.element_type(), port.shape());
            let message = format!("it comes out as {is}{shape}, and the model computes with {old_type}{old_shape}");
            return Err(EditError::Other(message));
        }
        redirect(edit, uses, new)
    });
    edited.map_err(text_of)
}

/// Redirects the consumers of a tensor to what is computed from it.
fn after(model: &mut Model, name: &str, side: &Side) -> Result<(), String> {
    let tensor = tensor(model, name)?;
    let edited = model.edit(|edit| {
        let uses: Vec<_> = edit.consumers(tensor).collect();
        let is = |id: LayerId, kind| edit.layer(id).is_some_and(|layer| ops::kind(layer) == kind);
        let is_output =
            uses.iter().any(|to| is(to.layer, LayerKind::Result)) && !is(tensor.layer, LayerKind::Parameter);
        let new = compute(edit, side, tensor)?;
        redirect(edit, uses, new)?;
        if is_output { edit.move_names(tensor, new) } else { Ok(()) }
    });
    edited.map_err(text_of)
}

fn redirect(edit: &mut crate::edit::Edit<'_>, uses: Vec<Input>, new: Output) -> Result<(), EditError> {
    uses.into_iter().try_for_each(|input| edit.connect(new, input))
}

/// Puts an expression of one tensor into the graph.
fn compute(edit: &mut crate::edit::Edit<'_>, side: &Side, of: Output) -> Result<Output, EditError> {
    let tensors = [Some(Bound::Tensor(of))];
    let names = [Name { text: "_".to_owned(), constant: false, certain: true, neutral: None, definition: None }];
    let (variables, matched, mut constants) = (&[], &[], Added::default());
    let (names, bound, constants) = (&names, &tensors, &mut constants);
    let mut build = Build {
        edit,
        side,
        names,
        bound,
        variables,
        matched,
        constants,
        added: Vec::new(),
        shared: Vec::new(),
        non_finite: 0,
    };
    let root = side.roots.first().copied().unwrap_or_default();
    build.build_tensor(root, None)
}
