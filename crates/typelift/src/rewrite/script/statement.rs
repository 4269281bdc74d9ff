//! Kinds of statements, and their parsing.

use std::fmt::{self, Debug, Display, Formatter};
use std::ops::Range;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::expression::{Formula, Lets};
use super::{Script, act, ends, lora, state};
use crate::base::names::nearest;
use crate::edit::inputs_outputs::End;
use crate::model::graph::Model;
use crate::precision::KeepPattern;
use crate::rewrite::Rule;
use crate::rewrite::notation::{Cursor, NotationError, tensor_type};

/// Statement other than a rule. In names, `*` matches any text and `?` any character.
#[derive(Clone)]
pub(super) struct Statement {
    pub(super) kind: &'static Kind,
    /// The text for errors and reports, without expressions.
    pub(super) text: String,
    pub(super) name: String,
    pub(super) value: Option<Arc<Formula>>,
    file: Option<PathBuf>,
    /// The permitted numbers of applications of the rule `name`.
    pub(super) expected: Option<RangeInclusive<usize>>,
    run: Arc<EditFunction>,
}

type EditFunction = dyn Fn(&mut Model, &mut Lets) -> Result<(), String> + Send + Sync;

pub(super) struct Kind {
    pub(super) word: &'static str,
    form: &'static str,
    pub(super) touches: Touches,
    /// Parses what follows the word.
    read: fn(&'static Kind, &mut Cursor) -> Result<Statement, NotationError>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Touches {
    /// No changes: the statement is a check or names an expression.
    Nothing,
    /// Names, values and metadata, so that the declared types and shapes remain valid.
    Layers,
    /// Inputs, outputs or edges, so that types and shapes can change.
    InputsAndOutputs,
}

static KINDS: [Kind; 25] = [
    kind("lora", "lora FILE.safetensors [SCALE]", Touches::Layers, |kind, cursor| {
        let file = PathBuf::from(cursor.name("the .safetensors file of an adapter")?);
        let scale = if cursor.is_done() { Some(1.0) } else { cursor.clone().name("")?.parse().ok() };
        let scale = scale.filter(|scale: &f64| scale.is_finite());
        let scale = scale.ok_or_else(|| cursor.expected("a number, the scale of the adapter"))?;
        cursor.at = if cursor.is_done() { cursor.at } else { cursor.end };
        let path = file.clone();
        let run = move |model: &mut Model, lets: &mut Lets| lora::lora(model, &path, scale, lets);
        Ok(Statement { file: Some(file.clone()), ..Statement::new(kind, file.display(), run) })
    }),
    kind("rename", "rename OLD NEW", Touches::Layers, |kind, cursor| {
        let (old, new) = (cursor.name("the old name")?, cursor.name("the new name")?);
        let text = format!("{old} {new}");
        Ok(Statement::new(kind, text, move |model, _| act::rename(model, &old, &new)))
    }),
    kind("input", "input NAME : TYPE[SHAPE]", Touches::InputsAndOutputs, |kind, cursor| {
        let name = name_before_colon(cursor)?;
        let (ty, shape) = tensor_type(cursor)?;
        let text = format!("{name} : {ty}{}", shape.as_ref().map(ToString::to_string).unwrap_or_default());
        let own = name.clone();
        let run = move |model: &mut Model, lets: &mut Lets| act::input(model, lets, &own, ty, shape.as_ref());
        Ok(Statement { name, ..Statement::new(kind, text, run) })
    }),
    kind("before", "before NAME : EXPRESSION with _", Touches::InputsAndOutputs, |kind, cursor| {
        with_value(name_before_colon(cursor)?, kind, cursor, "", act::before)
    }),
    kind("output", "output NAME : TYPE", Touches::InputsAndOutputs, |kind, cursor| {
        let name = name_before_colon(cursor)?;
        let start = cursor.start();
        let (ty, shape) = tensor_type(cursor)?;
        if shape.is_some() {
            return Err(cursor.error(start..cursor.at, "an output gets a type alone: its shape is computed"));
        }
        let text = format!("{name} : {ty}");
        Ok(Statement::new(kind, text, move |model, _| act::output(model, &name, ty)))
    }),
    kind("after", "after NAME : EXPRESSION with _", Touches::InputsAndOutputs, |kind, cursor| {
        with_value(name_before_colon(cursor)?, kind, cursor, "", act::after)
    }),
    kind("tap", "tap TENSOR [as NAME]", Touches::InputsAndOutputs, |kind, cursor| {
        let name = cursor.name("a tensor")?;
        let new = cursor.eat_word("as").then(|| cursor.name("the name of the output")).transpose()?;
        Ok(Statement::new(kind, name.clone(), move |model, _| act::tap(model, &name, new.as_deref())))
    }),
    kind("cut", "cut TENSOR`, `cut A .. B` or `cut block 3..5", Touches::InputsAndOutputs, |kind, cursor| {
        if let Some(numbers) = blocks(cursor)? {
            let text = format!("block {}..{}", numbers.start(), numbers.end());
            return Ok(Statement::new(kind, text, move |model, _| act::cut_blocks(model, &numbers)));
        }
        let from = names(cursor)?;
        let to = cursor.eat("..").then(|| names(cursor)).transpose()?;
        match to {
            _ if from.is_empty() && to.as_ref().is_none_or(Vec::is_empty) => Err(cursor.expected("a tensor")),
            Some(to) => {
                let text = format!("{} .. {}", from.join(", "), to.join(", "));
                Ok(Statement::new(kind, text.trim(), move |model, _| act::extract(model, &from, &to)))
            }
            None => Ok(Statement::new(kind, from.join(", "), move |model, _| act::cut(model, &from))),
        }
    }),
    kind("inline", "inline IF", Touches::InputsAndOutputs, |kind, cursor| {
        let name = cursor.name("an If")?;
        Ok(Statement::new(kind, name.clone(), move |model, _| act::inline(model, &name)))
    }),
    kind("join", "join FILE.xml [as PREFIX] [: OUTPUT -> INPUT, …]", Touches::InputsAndOutputs, |kind, cursor| {
        let file = PathBuf::from(cursor.name("the file of a model")?);
        let prefix = if cursor.eat_word("as") { cursor.name("the prefix of its names")? } else { String::new() };
        let mut joints = Vec::new();
        let mut has_more = cursor.eat(":");
        while has_more {
            let output = item(cursor)?.ok_or_else(|| cursor.expected("an output of this model"))?;
            cursor.expect("->")?;
            let input = item(cursor)?.ok_or_else(|| cursor.expected("an input of the other model"))?;
            joints.push((output, input));
            has_more = cursor.eat(",");
        }
        let path = file.clone();
        let run = move |model: &mut Model, _: &mut Lets| act::join(model, &path, &prefix, &joints);
        Ok(Statement { file: Some(file.clone()), ..Statement::new(kind, file.display(), run) })
    }),
    kind("set", "set CONSTANT = EXPRESSION", Touches::Layers, |kind, cursor| {
        let name = cursor.name("a constant")?;
        if cursor.sees(":") {
            return Err(cursor.expected("`=`").with_help(INPUT));
        }
        with_value(name, kind, cursor, "=", act::set)
    }),
    kind("info", "info [LAYER] : KEY/KEY = VALUE", Touches::Layers, info),
    kind("keep", "keep f32 NAME, …", Touches::Layers, |kind, cursor| {
        let (start, ty) = (cursor.at, cursor.name("f32")?);
        if ty != "f32" {
            let error = cursor.error(start..cursor.at, format!("layers are kept in f32, not in {ty}"));
            return Err(error.with_help("write `keep f32 NAME`: OpenVINO has no mark for another type"));
        }
        let (patterns, text) = patterns(cursor)?;
        Ok(Statement::new(kind, format!("f32 {text}"), move |model, _| act::keep(model, &patterns, true)))
    }),
    kind("unkeep", "unkeep NAME, …", Touches::Layers, |kind, cursor| {
        let (patterns, text) = patterns(cursor)?;
        Ok(Statement::new(kind, text, move |model, _| act::keep(model, &patterns, false)))
    }),
    kind("expect", "expect RULE NUMBER", Touches::Nothing, |kind, cursor| {
        let name = cursor.name("the name of a rule")?;
        let expected = Some(bounds(cursor)?);
        Ok(Statement { expected, name: name.clone(), ..Statement::new(kind, name, |_, _| Ok(())) })
    }),
    kind("let", "let NAME = EXPRESSION", Touches::Nothing, |kind, cursor| {
        let name = cursor.word().to_owned();
        if name.is_empty() || name == "_" {
            return Err(cursor.expected("a name"));
        }
        with_value(name, kind, cursor, "=", act::give_name)
    }),
    kind(
        "add",
        "add input NAME : TYPE[SHAPE]` or `add output NAME = EXPRESSION",
        Touches::InputsAndOutputs,
        |kind, cursor| {
            if which_end(cursor)? == End::Input {
                let name = name_before_colon(cursor)?;
                let (ty, shape) = tensor_type(cursor)?;
                let (text, own) = (format!("input {name}"), name.clone());
                let run =
                    move |model: &mut Model, _: &mut Lets| ends::add_input(model, &own, ty, shape.as_ref()).map(drop);
                return Ok(Statement { name, ..Statement::new(kind, text, run) });
            }
            let added = with_value(cursor.name("the name of the output")?, kind, cursor, "=", ends::add_output)?;
            Ok(Statement { text: format!("add output {}", added.name), ..added })
        },
    ),
    kind("remove", "remove output NAME, …` or `remove input NAME, …", Touches::InputsAndOutputs, |kind, cursor| {
        let end = which_end(cursor).map_err(|error| error.with_help(REMOVAL))?;
        let names = some_names(cursor)?;
        let text = format!("{end} {}", names.join(", "));
        Ok(Statement::new(kind, text, move |model, _| ends::remove(model, end, &names)))
    }),
    kind("freeze", "freeze INPUT = EXPRESSION", Touches::InputsAndOutputs, |kind, cursor| {
        with_value(cursor.name("an input")?, kind, cursor, "=", ends::freeze)
    }),
    kind("order", "order inputs NAME, …` or `order outputs NAME, …", Touches::InputsAndOutputs, |kind, cursor| {
        let (end, names) = (which_end(cursor)?, some_names(cursor)?);
        let text = format!("{end}s {}", names.join(", "));
        Ok(Statement::new(kind, text, move |model, _| ends::order(model, end, &names)))
    }),
    kind("redirect", "redirect TENSOR -> EXPRESSION", Touches::InputsAndOutputs, |kind, cursor| {
        with_value(cursor.name("a tensor")?, kind, cursor, "->", ends::redirect)
    }),
    kind("stateful", "stateful INPUT -> OUTPUT [reorder INPUT]", Touches::InputsAndOutputs, |kind, cursor| {
        let (past, present) = pair(cursor, "an input", "the output with its next value")?;
        let beam = cursor.eat_word("reorder").then(|| cursor.name("an input of indices")).transpose()?;
        let text = format!("{past} -> {present}");
        Ok(Statement::new(kind, text, move |model, _| state::stateful(model, &past, &present, beam.as_deref())))
    }),
    kind("stateless", "stateless [INPUT -> OUTPUT]", Touches::InputsAndOutputs, |kind, cursor| {
        if cursor.is_done() {
            let all = Statement::new(kind, "", |model, _| state::stateless(model, None));
            return Ok(Statement { text: kind.word.to_owned(), ..all });
        }
        let names = pair(cursor, "the name of the input", "the name of the output")?;
        let text = format!("{} -> {}", names.0, names.1);
        Ok(Statement::new(kind, text, move |model, _| state::stateless(model, Some(&names))))
    }),
    kind("state", "state NAME : TYPE[SHAPE]", Touches::InputsAndOutputs, |kind, cursor| {
        let name = name_before_colon(cursor)?;
        let (ty, shape) = tensor_type(cursor)?;
        Ok(Statement::new(kind, name.clone(), move |model, _| state::state(model, &name, ty, shape.as_ref())))
    }),
    kind("layout", "layout NAME = LAYOUT", Touches::Layers, |kind, cursor| {
        let name = cursor.name("an input or output")?;
        cursor.expect("=")?;
        cursor.skip_space();
        let text = cursor.rest();
        let bare = || text.split(" #").next().unwrap_or(text).split_whitespace().collect();
        let value = cursor.quoted()?.unwrap_or_else(bare);
        cursor.at = cursor.end;
        Ok(Statement::new(kind, name.clone(), move |model, _| ends::layout(model, &name, &value)))
    }),
];

const fn kind(
    word: &'static str,
    form: &'static str,
    touches: Touches,
    read: fn(&'static Kind, &mut Cursor) -> Result<Statement, NotationError>,
) -> Kind {
    Kind { word, form, touches, read }
}

pub(super) fn form(word: &str) -> Option<&'static str> {
    KINDS.iter().find(|kind| kind.word == word).map(|kind| kind.form)
}

const REMOVAL: &str = "`remove output NAME` removes an output; `redirect LAYER -> TENSOR` connects the consumers of a layer to a tensor before it, and removes it";

const INPUT: &str = "`input NAME : TYPE[SHAPE]` changes the type and the shape of an input";
impl Script {
    /// Parses the statement, the rule or the definition in a range of the text.
    pub(super) fn read(&mut self, text: &str, range: Range<usize>) -> Result<(), NotationError> {
        let mut cursor = Cursor::within(text, range.clone());
        let start = cursor.start();
        let word = cursor.word();
        let is_statement = cursor.peek().is_none_or(char::is_whitespace) && !cursor.sees("=>");
        if word == "def" && is_statement {
            return self.definitions.read(text, cursor.at..range.end);
        }
        let Some(kind) = KINDS.iter().find(|kind| is_statement && kind.word == word) else {
            cursor.at = start;
            return self.rule(text, cursor, range);
        };
        let mut statement = (kind.read)(kind, &mut cursor);
        if statement.is_ok() && !cursor.is_done() {
            statement = Err(cursor.expected("the end of the line"));
        }
        let statement = statement.map_err(|error| match error.help.as_deref() {
            Some(_) => error,
            None => error.with_help(format!("write `{}`", kind.form)),
        })?;
        if kind.word == "let" {
            self.definitions.declare(&statement.name);
        }
        self.statements.push(statement);
        Ok(())
    }

    /// Parses `[NAME:] PATTERN => REPLACEMENT`.
    fn rule(&mut self, text: &str, mut cursor: Cursor, range: Range<usize>) -> Result<(), NotationError> {
        let start = cursor.at;
        let name = cursor.run(|c| c.is_alphanumeric() || "_-./".contains(c));
        let rest = &text[start..range.end];
        // `input_ids : i32` lacks its first word.
        let mut ahead = cursor.clone();
        if !rest.contains("=>") && ahead.eat(":") && tensor_type(&mut ahead).is_ok() && ahead.is_done() {
            let error = cursor.error(start..range.end, "a statement begins with a word");
            return Err(error.with_help(format!("write `input {}`, or `output {name} : TYPE`", rest.trim())));
        }
        let is_rule = rest.contains("=>") || rest.contains('(') || ["try", "once"].contains(&name);
        let near = nearest(name, KINDS.iter().map(|kind| kind.word).chain(["def"]));
        if !is_rule && (near.is_some() || name.starts_with(char::is_lowercase) && rest.contains(' ')) {
            let error = cursor.error(start..start + name.len(), format!("`{name}` is not a statement"));
            return Err(match near {
                Some(_) => error.with_near(near),
                None => error.with_help("a line is a rule, `Relu(x) => Abs(x)`, or a statement, `rename OLD NEW`"),
            });
        }
        self.rules.push(Rule::read(text, start..range.end, &self.definitions)?);
        Ok(())
    }
}

impl Debug for Statement {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Statement {
    fn new(
        kind: &'static Kind,
        text: impl Display,
        run: impl Fn(&mut Model, &mut Lets) -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        let text = format!("{} {text}", kind.word);
        Self { kind, text, name: String::new(), value: None, file: None, expected: None, run: Arc::new(run) }
    }

    pub(super) fn apply(&self, model: &mut Model, lets: &mut Lets) -> Result<(), String> {
        (self.run)(model, lets)
    }

    pub(super) fn files(&self) -> impl Iterator<Item = &Path> {
        self.file.as_deref().into_iter().chain(self.value.iter().flat_map(|value| value.files()))
    }
}

/// Parses a sign and the expression for this name.
fn with_value(
    name: String,
    kind: &'static Kind,
    cursor: &mut Cursor,
    sign: &str,
    run: fn(&mut Model, &mut Lets, &str, &Formula) -> Result<(), String>,
) -> Result<Statement, NotationError> {
    cursor.expect(sign)?;
    let value = Arc::new(Formula::read(cursor)?);
    let (of, by) = (name.clone(), value.clone());
    let statement = Statement::new(kind, &name, move |model, lets| run(model, lets, &of, &by));
    Ok(Statement { name, value: Some(value), ..statement })
}

/// Parses `[[LAYER] :] PATH = VALUE`.
fn info(kind: &'static Kind, cursor: &mut Cursor) -> Result<Statement, NotationError> {
    let mut ahead = cursor.clone();
    let owner = if ahead.eat(":") {
        *cursor = ahead;
        act::Owner::Model
    } else if let Ok(name) = name_before_colon(&mut ahead) {
        *cursor = ahead;
        act::Owner::Layers(name)
    } else {
        act::Owner::Named
    };
    let start = cursor.start();
    // Up to white space or `=` outside of quotes.
    let (mut end, mut is_quoted) = (start, false);
    for c in cursor.text[start..].chars() {
        is_quoted ^= c == '"';
        if !is_quoted && (c.is_whitespace() || c == '=') {
            break;
        }
        end += c.len_utf8();
    }
    let path = &cursor.text[start..end];
    cursor.at = end;
    if path.is_empty() {
        return Err(cursor.expected("the path of the value, such as `runtime_options/KV_CACHE_PRECISION`"));
    }
    let path = path.to_owned();
    if path.contains('.') && !path.contains(['/', '"']) && !matches!(owner, act::Owner::Layers(_)) {
        let error = cursor.error(start..cursor.at, format!("`{path}` would be one key with a dot in its name"));
        let help = format!(
            "write `info {} = …` for nested keys, or `info \"{path}\" = …` for one key",
            path.replace('.', "/")
        );
        return Err(error.with_help(help));
    }
    cursor.expect("=")?;
    let value = cursor.name("a value")?;
    let text = match &owner {
        act::Owner::Layers(name) => format!("{name} : {path}"),
        _ => path.clone(),
    };
    Ok(Statement::new(kind, text, move |model, _| act::info(model, &owner, &path, &value)))
}

fn pair(cursor: &mut Cursor, first: &str, second: &str) -> Result<(String, String), NotationError> {
    let first = cursor.name(first)?;
    cursor.expect("->")?;
    Ok((first, cursor.name(second)?))
}

/// Parses `input`, `inputs`, `output` or `outputs`.
fn which_end(cursor: &mut Cursor) -> Result<End, NotationError> {
    let end = cursor.find(|ahead| match ahead.word() {
        "input" | "inputs" => Some(End::Input),
        "output" | "outputs" => Some(End::Output),
        _ => None,
    });
    end.ok_or_else(|| match cursor.clone().word() {
        "layer" | "node" | "op" => cursor.expected("`input` or `output`").with_help(REMOVAL),
        _ => cursor.expected("`input` or `output`"),
    })
}

/// Parses a comma-separated list of at least one name.
fn some_names(cursor: &mut Cursor) -> Result<Vec<String>, NotationError> {
    match names(cursor)? {
        names if names.is_empty() => Err(cursor.expected("a name")),
        names => Ok(names),
    }
}

/// Parses a name in a list: in quotes, or up to white space or a comma; `None` at the end of the list.
fn item(cursor: &mut Cursor) -> Result<Option<String>, NotationError> {
    cursor.skip_space();
    if let Some(quoted) = cursor.quoted()? {
        return Ok(Some(quoted));
    }
    let name = cursor.find(|ahead| {
        let name = ahead.run(|c| !c.is_whitespace() && c != ',');
        (!["", "..", "->"].contains(&name) && !name.starts_with('#')).then_some(name)
    });
    Ok(name.map(str::to_owned))
}

/// Parses a comma-separated list of names, which may be empty, with or without brackets.
fn names(cursor: &mut Cursor) -> Result<Vec<String>, NotationError> {
    if let Some(names) = names_in_brackets(cursor)? {
        return Ok(names);
    }
    let mut names = Vec::new();
    while let Some(name) = item(cursor)? {
        names.push(name);
        if !cursor.eat(",") {
            break;
        }
    }
    Ok(names)
}

/// Parses `[A, B]`, if it is next.
fn names_in_brackets(cursor: &mut Cursor) -> Result<Option<Vec<String>>, NotationError> {
    if !cursor.eat("[") {
        return Ok(None);
    }
    let mut names = Vec::new();
    while !cursor.eat("]") {
        cursor.skip_space();
        let is_name = |c: char| !c.is_whitespace() && c != ',' && c != ']';
        let name = cursor.quoted()?.unwrap_or_else(|| cursor.run(is_name).to_owned());
        if name.is_empty() {
            return Err(cursor.expected("a tensor or `]`"));
        }
        names.push(name);
        if !cursor.eat(",") && !cursor.sees("]") {
            return Err(cursor.expected("`,` or `]`"));
        }
    }
    Ok(Some(names))
}

/// Parses the patterns up to the end of a statement, one at least: names, or `block 0..1`. Also returns their text.
fn patterns(cursor: &mut Cursor) -> Result<(Vec<KeepPattern>, String), NotationError> {
    let mut patterns = Vec::new();
    while patterns.is_empty() || !cursor.is_done() {
        patterns.push(match blocks(cursor)? {
            Some(numbers) => KeepPattern::Blocks(*numbers.start(), *numbers.end()),
            None => KeepPattern::from(cursor.name("a layer")?.as_str()),
        });
    }
    let text = patterns.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
    Ok((patterns, text))
}

/// Parses `block 10..20` or `block 3`, if it comes here. A name `block` without numbers is an ordinary one.
fn blocks(cursor: &mut Cursor) -> Result<Option<RangeInclusive<u64>>, NotationError> {
    let mut ahead = cursor.clone();
    if !ahead.eat_word("block") {
        return Ok(None);
    }
    let start = ahead.start();
    let text = ahead.run(|c| c.is_ascii_digit() || ".-".contains(c)).to_owned();
    if !text.starts_with(|c: char| c.is_ascii_digit()) {
        return Ok(None);
    }
    *cursor = ahead;
    let (first, last) = text.split_once("..").unwrap_or((&text, &text));
    match (first.parse().ok(), last.parse().ok()) {
        (Some(first), Some(last)) if first <= last => Ok(Some(first..=last)),
        _ => Err(cursor.error(start..cursor.at, "expected the numbers of blocks: `3` or `10..20`")),
    }
}

/// Parses a name and the colon after it, which may follow without a space.
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

/// Parses `1`, `1..`, `..3`, `1..3`.
fn bounds(cursor: &mut Cursor) -> Result<RangeInclusive<usize>, NotationError> {
    let start = cursor.start();
    let text = cursor.run(|c| !c.is_whitespace());
    let parse = |text: &str, open: usize| if text.is_empty() { Some(open) } else { text.parse().ok() };
    let bounds = match text.split_once("..") {
        Some((least, most)) => parse(least, 0).zip(parse(most, usize::MAX)).map(|(least, most)| least..=most),
        None => text.parse().ok().map(|count| count..=count),
    };
    bounds
        .filter(|bounds| !bounds.is_empty() && !text.is_empty())
        .ok_or_else(|| cursor.error(start..cursor.at, "expected a number of applications: `1`, `1..` or `1..3`"))
}
